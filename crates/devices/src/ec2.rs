//! The EBS volumes behind the disks, queried through the user's `aws`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use linux::aws::volumes::{self, EbsVolume};
use linux::aws::{Error, RunProgram};
use linux::block::{Device, Devices};
use linux::volume_id::VolumeId;
use serde::Serialize;

use ui::table::{Column, layout, wrap};

/// The volumes of this host's disks.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    by_id: BTreeMap<String, EbsVolume>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

impl Volumes {
    /// The EBS volume of a whole disk; `None` where it is none.
    pub(crate) fn of(&self, device: &Device) -> Option<&EbsVolume> {
        let id = VolumeId::of(device).filter(|_| device.partition_of().is_none())?;
        self.by_id.get(&id.to_string())
    }
}

/// Queries the volumes of all disks.
///
/// # Errors
/// When `aws` fails.
pub(crate) fn query(
    devices: &Devices,
    interrupt: &AtomicBool,
    run: RunProgram<'_>,
) -> Result<Volumes, Error> {
    let ids: BTreeSet<VolumeId> = devices.iter().filter_map(VolumeId::of).collect();
    if ids.is_empty() {
        return Ok(Volumes {
            notes: vec![
                "disksmith: no disk here has the id of an EBS volume, which they show on instances of the Nitro \
                 system; aws was not called."
                    .to_owned(),
            ],
            ..Volumes::default()
        });
    }
    let ids: Vec<VolumeId> = ids.into_iter().collect();
    let found = volumes::by_id(&ids, interrupt, run)?;
    let by_id: BTreeMap<String, EbsVolume> = found
        .into_iter()
        .map(|volume| (volume.id.clone(), volume))
        .collect();
    let unknown: Vec<String> = ids
        .iter()
        .map(ToString::to_string)
        .filter(|id| !by_id.contains_key(id))
        .collect();
    let note = (!unknown.is_empty()).then(|| {
        format!(
            "disksmith: aws does not know {}: it is set to another region or account.",
            unknown.join(", ")
        )
    });
    Ok(Volumes {
        by_id,
        notes: note.into_iter().collect(),
    })
}

const COLUMNS: [Column; 7] = [
    Column::text("device"),
    Column::text("volume"),
    Column::text("type"),
    Column::numbers("GiB", 0),
    Column::numbers("IOPS", 0),
    Column::numbers("MiB/s", 0),
    Column::text("snapshot").ranked(1),
];

/// Table of the volumes, each with the name of its disk, and their tags.
pub(crate) fn text(volumes: &[(&str, &EbsVolume)], columns: usize) -> String {
    if volumes.is_empty() {
        return String::new();
    }
    let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
    let number = |number: Option<u64>| number.map_or("–".to_owned(), |it| it.to_string());
    let row = |(name, volume): &(&str, &EbsVolume)| {
        vec![
            (*name).to_owned(),
            volume.id.clone(),
            word(&volume.kind),
            number(volume.gib),
            number(volume.iops),
            number(volume.mibps),
            word(&volume.snapshot),
        ]
    };
    let rows: Vec<Vec<String>> = volumes.iter().map(row).collect();
    let mut text = layout(&COLUMNS, &rows, columns);
    text.push('\n');
    for (name, volume) in volumes.iter().filter(|(_, volume)| !volume.tags.is_empty()) {
        let tags: Vec<String> = volume
            .tags
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let line = format!("{name} is tagged {}", tags.join(", "));
        text.push_str(&wrap(&line, columns, "  "));
        text.push('\n');
    }
    text
}

/// An EBS volume in the document of `devices --json`. Keys but `volume` are `null` where EC2 does not report them.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct VolumeDocument<'a> {
    /// Id of the volume, such as `vol-0123456789abcdef0`.
    volume: &'a str,
    /// Volume type, such as `gp3`.
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    /// Size in GiB.
    size_gib: Option<u64>,
    /// IOPS that are provisioned or come with the size; `null` for types without.
    iops: Option<u64>,
    /// Provisioned throughput in MiB/s; `null` for types that sell none.
    throughput_mib_per_s: Option<u64>,
    /// State of the volume: `creating`, `available`, `in-use`, `deleting`, `deleted` or `error`.
    state: Option<&'a str>,
    /// Availability zone of the volume, such as `us-east-1a`.
    zone: Option<&'a str>,
    /// Id of the snapshot that it was made from; `null` where it was made empty.
    snapshot: Option<&'a str>,
    /// Tags of the volume.
    tags: &'a BTreeMap<String, String>,
}

impl<'a> VolumeDocument<'a> {
    pub(crate) fn of(volume: &'a EbsVolume) -> VolumeDocument<'a> {
        VolumeDocument {
            volume: &volume.id,
            kind: volume.kind.as_deref(),
            size_gib: volume.gib,
            iops: volume.iops,
            throughput_mib_per_s: volume.mibps,
            state: volume.state.as_deref(),
            zone: volume.zone.as_deref(),
            snapshot: volume.snapshot.as_deref(),
            tags: &volume.tags,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use linux::Root;

    use super::*;

    fn host(serials: &[&str]) -> (tempfile::TempDir, Devices) {
        let place = tempfile::tempdir().unwrap();
        let root = Root::under(place.path());
        for (index, serial) in serials.iter().enumerate() {
            let folder = root.sys.join(format!("class/block/nvme{index}n1"));
            fs::create_dir_all(folder.join("device")).unwrap();
            fs::write(folder.join("dev"), format!("259:{index}\n")).unwrap();
            fs::write(folder.join("size"), "2048\n").unwrap();
            fs::write(folder.join("device/serial"), serial).unwrap();
        }
        let devices = Devices::read(&root).unwrap();
        (place, devices)
    }

    #[test]
    fn volumes_are_found_by_the_serial_numbers_and_unknown_ones_are_reported() {
        let (_place, devices) = host(&["vol00000001", "AWS123", "vol00000002"]);
        let answer =
            br#"{"Volumes": [{"VolumeId": "vol-00000001", "VolumeType": "gp3", "Iops": 3000,
            "Tags": [{"Key": "Name", "Value": "db"}]}]}"#;
        let volumes = query(&devices, &AtomicBool::new(false), &mut |program| {
            assert!(program.line().ends_with("=vol-00000001,vol-00000002"));
            Ok(answer.to_vec())
        });
        let volumes = volumes.unwrap();
        let of = |name: &str| volumes.of(devices.named(name).unwrap());
        assert_eq!(of("nvme0n1").unwrap().iops, Some(3000));
        assert!(of("nvme1n1").is_none() && of("nvme2n1").is_none());
        assert!(volumes.notes[0].contains("does not know vol-00000002"));
    }

    #[test]
    fn without_a_volume_aws_is_not_called_and_an_error_of_aws_is_one() {
        let interrupt = AtomicBool::new(false);
        let (_place, none) = host(&["AWS123"]);
        let described = query(&none, &interrupt, &mut |_| panic!("aws is asked"));
        assert!(described.unwrap().notes[0].contains("aws was not called"));
        let (_place, devices) = host(&["vol00000001"]);
        let failed = query(&devices, &interrupt, &mut |_| {
            Err(Error::of("You must specify a region.", &["ec2"]))
        });
        assert!(failed.unwrap_err().to_string().contains("AWS_REGION"));
    }
}
