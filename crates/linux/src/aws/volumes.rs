//! EBS volumes as `aws ec2 describe-volumes` shows them (Amazon EC2 API Reference, Volume).

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;

use super::{Error, RunProgram, command, pages};
use crate::volume_id::VolumeId;

/// Maximum number of values of a filter in one request (Amazon EC2 API Reference, DescribeVolumes).
const MAX_VALUES: usize = 200;

/// A volume as `aws ec2 describe-volumes` shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EbsVolume {
    /// Id of the volume, such as `vol-0123456789abcdef0`.
    pub id: String,
    /// Type of the volume, such as `gp3`.
    pub kind: Option<String>,
    /// Size in GiB.
    pub gib: Option<u64>,
    /// Provisioned IOPS, or those that follow from the size; `None` for types without provisioned IOPS.
    pub iops: Option<u64>,
    /// Provisioned MiB/s; `None` for types without provisioned throughput.
    pub mibps: Option<u64>,
    /// `creating`, `available`, `in-use`, `deleting`, `deleted` or `error`.
    pub state: Option<String>,
    /// Availability zone.
    pub zone: Option<String>,
    /// The snapshot that it was created from.
    pub snapshot: Option<String>,
    /// Attachments; most volumes have at most one.
    pub attachments: Vec<Attachment>,
    /// Tags by key.
    pub tags: BTreeMap<String, String>,
}

/// An attachment of a volume to an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Attachment {
    /// The instance's id.
    pub instance_id: Option<String>,
    /// Device name given at the attachment, such as `/dev/sdf`.
    pub device: Option<String>,
    /// `attaching`, `attached`, `detaching`, `detached` or `busy`.
    pub state: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Page {
    volumes: Option<Vec<VolumeResponse>>,
    next_token: Option<String>,
}

/// A volume in an answer. Unknown values are absent or null.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct VolumeResponse {
    volume_id: Option<String>,
    volume_type: Option<String>,
    size: Option<u64>,
    iops: Option<u64>,
    throughput: Option<u64>,
    state: Option<String>,
    availability_zone: Option<String>,
    snapshot_id: Option<String>,
    attachments: Option<Vec<Attachment>>,
    tags: Option<Vec<Tag>>,
}

/// A tag in an answer.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tag {
    key: String,
    #[serde(default)]
    value: Option<String>,
}

impl From<VolumeResponse> for EbsVolume {
    fn from(answer: VolumeResponse) -> EbsVolume {
        let tags = answer.tags.into_iter().flatten();
        EbsVolume {
            id: answer.volume_id.unwrap_or_default(),
            kind: answer.volume_type,
            gib: answer.size,
            // Some answers have 0 for types without these limits.
            iops: answer.iops.filter(|iops| *iops > 0),
            mibps: answer.throughput.filter(|mibps| *mibps > 0),
            state: answer.state,
            zone: answer.availability_zone,
            snapshot: answer.snapshot_id.filter(|id| !id.is_empty()),
            attachments: answer.attachments.unwrap_or_default(),
            tags: tags
                .map(|tag| (tag.key, tag.value.unwrap_or_default()))
                .collect(),
        }
    }
}

/// The volumes with these ids in the account and its region. An unknown id is left out.
///
/// # Errors
/// When `aws` fails.
pub fn by_id(
    ids: &[VolumeId],
    interrupt: &AtomicBool,
    run: RunProgram<'_>,
) -> Result<Vec<EbsVolume>, Error> {
    let mut found = Vec::new();
    for ids in ids.chunks(MAX_VALUES) {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let filter = format!("Name=volume-id,Values={}", ids.join(","));
        found.extend(describe(None, &filter, interrupt, run)?);
    }
    Ok(found)
}

/// The volumes that a filter matches, in a region or in the configured one.
///
/// # Errors
/// When `aws` fails.
pub fn describe(
    region: Option<&str>,
    filter: &str,
    interrupt: &AtomicBool,
    run: RunProgram<'_>,
) -> Result<Vec<EbsVolume>, Error> {
    let mut program = command(&["ec2", "describe-volumes"]).args(["--filters", filter]);
    if let Some(region) = region {
        program = program.args(["--region", region]);
    }
    let mut found = Vec::new();
    pages(
        &program,
        "--starting-token",
        interrupt,
        run,
        |page: Page| {
            found.extend(page.volumes.into_iter().flatten().map(EbsVolume::from));
            page.next_token
        },
    )?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_read_with_what_an_answer_has_of_them() {
        let answer = r#"{"Volumes": [
            {"VolumeId": "vol-00000001", "VolumeType": "gp3", "Size": 100, "Iops": 3000, "Throughput": 125,
             "State": "in-use", "AvailabilityZone": "us-east-1a", "SnapshotId": "", "Encrypted": false,
             "Attachments": [{"InstanceId": "i-1", "Device": "/dev/sdf", "State": "attached"}],
             "Tags": [{"Key": "Name", "Value": "db"}, {"Key": "x"}]},
            {"VolumeId": "vol-00000002", "VolumeType": "st1", "Iops": 0, "Tags": null}]}"#;
        let ids: Vec<VolumeId> = ["vol-00000001", "vol00000002"]
            .into_iter()
            .filter_map(VolumeId::parse)
            .collect();
        let mut lines = Vec::new();
        let volumes = by_id(&ids, &AtomicBool::new(false), &mut |program| {
            lines.push(program.line());
            Ok(answer.as_bytes().to_vec())
        });
        let volumes = volumes.unwrap();
        assert_eq!(
            lines,
            ["aws ec2 describe-volumes --output json --filters \
              Name=volume-id,Values=vol-00000001,vol-00000002"]
        );
        let first = &volumes[0];
        assert_eq!((first.iops, first.mibps), (Some(3000), Some(125)));
        assert_eq!(first.snapshot, None);
        assert_eq!(first.attachments[0].device.as_deref(), Some("/dev/sdf"));
        assert_eq!(first.tags["Name"], "db");
        assert_eq!(first.tags["x"], "");
        assert_eq!((volumes[1].iops, volumes[1].gib), (None, None));
    }

    #[test]
    fn many_ids_take_several_requests_and_none_takes_none() {
        let ids: Vec<VolumeId> = (0..250)
            .filter_map(|nth| VolumeId::parse(&format!("vol-{nth:08x}")))
            .collect();
        let mut count = 0;
        let mut run = |_: &crate::exec::Exec| {
            count += 1;
            Ok(b"{}".to_vec())
        };
        let interrupt = AtomicBool::new(false);
        assert_eq!(by_id(&ids, &interrupt, &mut run), Ok(Vec::new()));
        assert_eq!(by_id(&[], &interrupt, &mut run), Ok(Vec::new()));
        assert_eq!(count, 2);
    }
}
