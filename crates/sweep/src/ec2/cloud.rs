//! Requests to EC2 about volumes, through the user's `aws`. Each names one volume, and before each detach or delete
//! the volume is queried (`cleanup`).

use std::sync::atomic::AtomicBool;

use linux::aws::volumes::{self, EbsVolume};
use linux::aws::{self, Error, RunProgram};
use linux::exec::Exec;
use serde::Deserialize;

use super::checkpoint::{VolumeSpec, region_of};

/// Key of the tag with the id of the sweep that created a volume. Volumes without it are never detached or deleted.
pub(crate) const TAG: &str = "disksmith-sweep";
/// Key of the tag with the instance for which it was created.
const INSTANCE_TAG: &str = "disksmith-instance";
/// Error code of a successful dry run (Amazon EC2 API Reference, DryRun).
const DRY_RUN_SUCCEEDED: &str = "DryRunOperation";

/// EC2, called through `aws`.
pub(crate) struct Ec2<'a> {
    run: RunProgram<'a>,
    /// The region; `None` for the one that `aws` is configured for.
    pub(crate) region: Option<String>,
}

/// The instance that volumes are attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostInstance {
    pub(crate) id: String,
    pub(crate) zone: String,
    /// Device names in use, such as `/dev/sdf`.
    pub(crate) taken: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct InstanceList {
    reservations: Vec<Reservation>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Reservation {
    instances: Vec<InstanceDescription>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct InstanceDescription {
    instance_id: Option<String>,
    placement: Option<Placement>,
    state: Option<InstanceState>,
    block_device_mappings: Vec<BlockDeviceMapping>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Placement {
    availability_zone: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct InstanceState {
    name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct BlockDeviceMapping {
    device_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct CreatedVolume {
    volume_id: Option<String>,
}

impl<'a> Ec2<'a> {
    pub(crate) fn new(run: RunProgram<'a>, region: Option<String>) -> Ec2<'a> {
        Ec2 { run, region }
    }

    fn command(&self, action: &str) -> Exec {
        let program = aws::command(&["ec2", action]);
        match &self.region {
            Some(region) => program.args(["--region", region]),
            None => program,
        }
    }

    fn call<T: serde::de::DeserializeOwned + Default>(
        &mut self,
        program: &Exec,
    ) -> Result<T, Error> {
        aws::answer(program, self.run)
    }

    /// The running instance with an id.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn instance(&mut self, id: &str) -> Result<HostInstance, String> {
        let program = self
            .command("describe-instances")
            .args(["--instance-ids", id]);
        let answer: InstanceList = self.call(&program).map_err(|why| why.to_string())?;
        let mut all = answer
            .reservations
            .into_iter()
            .flat_map(|one| one.instances);
        let found = all
            .find(|one| one.instance_id.as_deref() == Some(id))
            .ok_or_else(|| format!("aws does not know the instance {id}"))?;
        let state = found.state.and_then(|state| state.name).unwrap_or_default();
        if state != "running" {
            return Err(format!("the instance {id} is {state}, and not running"));
        }
        let zone = found.placement.and_then(|place| place.availability_zone);
        let zone = zone.ok_or_else(|| format!("aws does not say the zone of {id}"))?;
        self.region = self.region.take().or_else(|| region_of(&zone));
        Ok(HostInstance {
            id: id.to_owned(),
            zone,
            taken: found
                .block_device_mappings
                .into_iter()
                .filter_map(|one| one.device_name)
                .collect(),
        })
    }

    fn creation(&self, spec: &VolumeSpec, place: &HostInstance, sweep: &str, token: &str) -> Exec {
        let tags = format!(
            "ResourceType=volume,Tags=[{{Key={TAG},Value={sweep}}},{{Key={INSTANCE_TAG},Value={}}},\
             {{Key=Name,Value=disksmith-{sweep}}}]",
            place.id
        );
        let mut program = self.command("create-volume").args([
            "--availability-zone",
            &place.zone,
            "--volume-type",
            &spec.kind,
            "--size",
            &spec.gib.to_string(),
            "--tag-specifications",
            &tags,
            "--client-token",
            token,
        ]);
        for (option, value) in [("--iops", spec.iops), ("--throughput", spec.mibps)] {
            if let Some(value) = value {
                program = program.args([option, &value.to_string()]);
            }
        }
        program
    }

    /// Checks by a dry run that the user may create a volume.
    ///
    /// # Errors
    /// The reason against it, as a sentence.
    pub(crate) fn may_create(
        &mut self,
        spec: &VolumeSpec,
        place: &HostInstance,
        sweep: &str,
    ) -> Result<(), String> {
        let program = self.creation(spec, place, sweep, sweep).arg("--dry-run");
        match (self.run)(&program) {
            Err(why) if why.code() == Some(DRY_RUN_SUCCEEDED) => Ok(()),
            Err(why) => Err(why.to_string()),
            Ok(_) => Err(
                "'aws ec2 create-volume --dry-run' succeeded, which a dry run never does: nothing is created \
                 through such a program"
                    .to_owned(),
            ),
        }
    }

    /// Creates a volume, and returns its id. The same token never creates two (Amazon EC2 API Reference, "Ensuring
    /// idempotency").
    pub(crate) fn create(
        &mut self,
        spec: &VolumeSpec,
        place: &HostInstance,
        sweep: &str,
        token: &str,
    ) -> Result<String, Error> {
        let program = self.creation(spec, place, sweep, token);
        let created: CreatedVolume = self.call(&program)?;
        created.volume_id.ok_or_else(|| {
            let line = program.line();
            Error::of(&format!("'{line}' answers without an id"), &["ec2"])
        })
    }

    pub(crate) fn attach(&mut self, volume: &str, instance: &str, name: &str) -> Result<(), Error> {
        let program = self.command("attach-volume").args([
            "--volume-id",
            volume,
            "--instance-id",
            instance,
            "--device",
            name,
        ]);
        (self.run)(&program).map(drop)
    }

    pub(crate) fn detach(&mut self, volume: &str, instance: &str) -> Result<(), Error> {
        let program =
            self.command("detach-volume")
                .args(["--volume-id", volume, "--instance-id", instance]);
        (self.run)(&program).map(drop)
    }

    pub(crate) fn delete(&mut self, volume: &str) -> Result<(), Error> {
        let program = self.command("delete-volume").args(["--volume-id", volume]);
        (self.run)(&program).map(drop)
    }

    /// The volumes that carry the tag of a sweep.
    pub(crate) fn tagged(&mut self, sweep: &str) -> Result<Vec<EbsVolume>, Error> {
        let mut found = self.describe(&format!("Name=tag:{TAG},Values={sweep}"))?;
        // A filter may have wildcards, and `aws` may be another program.
        found.retain(|volume| is_of(volume, sweep));
        Ok(found)
    }

    /// A volume by its id; `None` where it is gone.
    pub(crate) fn volume(&mut self, id: &str) -> Result<Option<EbsVolume>, Error> {
        let found = self.describe(&format!("Name=volume-id,Values={id}"))?;
        Ok(found.into_iter().find(|volume| volume.id == id))
    }

    fn describe(&mut self, filter: &str) -> Result<Vec<EbsVolume>, Error> {
        // Cleaning up is not interrupted.
        volumes::describe(
            self.region.as_deref(),
            filter,
            &AtomicBool::new(false),
            self.run,
        )
    }
}

/// True if a volume carries the tag of a sweep.
pub(crate) fn is_of(volume: &EbsVolume, sweep: &str) -> bool {
    volume.tags.get(TAG).is_some_and(|value| value == sweep)
}

/// True if a volume is deleted or being deleted: EC2 lists such volumes for a while.
pub(crate) fn is_gone(volume: &EbsVolume) -> bool {
    matches!(volume.state.as_deref(), Some("deleting" | "deleted"))
}
