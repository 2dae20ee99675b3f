//! The checkpoint of a sweep of volume types: its settings, its volumes and its measurements.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ledger::LongWork;
use record::{Bytes, RunId};
use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::objective::{Objective, Requirement};
use crate::record::Value;

/// Prefix of the ids of these sweeps, which distinguishes them from sweeps of layouts.
pub(crate) const PREFIX: &str = "ec2-";

/// Name of the documents.
pub(crate) const DOCUMENT: &str = "sweep ec2";

/// A type of volume that is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct VolumeSpec {
    /// The type as given by the user, such as `gp3,iops=6000:100GiB`.
    pub text: String,
    /// The volume type, such as `gp3`.
    pub kind: String,
    /// Size of the volume, in GiB.
    pub gib: u64,
    /// Provisioned IOPS; `null` where they are those of the type.
    pub iops: Option<u64>,
    /// Provisioned MiB a second; `null` where they are those of the type.
    pub mibps: Option<u64>,
    /// Price of an hour, in `currency`.
    pub per_hour: f64,
    /// Currency of the price.
    pub currency: String,
}

impl VolumeSpec {
    /// Size of the volume.
    pub(crate) fn size(&self) -> Bytes {
        Bytes::gib(self.gib)
    }
}

/// Stage of a volume of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VolumeStage {
    /// Creation of the volume may have been requested: it may or may not exist.
    Requested,
    /// The volume was created.
    Created,
    /// The volume is deleted, or was never created.
    Gone,
}

/// A volume of the sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VolumeState {
    /// Stage of the volume.
    pub stage: VolumeStage,
    /// Id of the volume; `None` until it is known.
    pub id: Option<String>,
}

/// Measurement of a volume in a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoundMeasurement {
    /// Index of the type.
    pub spec: usize,
    /// The round, from 0.
    pub round: usize,
    /// The run in the ledger; `None` where it failed.
    pub run: Option<RunId>,
    /// Figures of the measurement; empty where it failed.
    pub figures: BTreeMap<Figure, Value>,
    /// Reasons to doubt it.
    pub doubts: Vec<String>,
    /// Reason for which it failed; `None` where it was measured.
    pub failed: Option<String>,
}

/// A sweep of volume types.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TypeSweepCheckpoint {
    /// Id of the sweep, which its volumes carry as a tag.
    pub id: String,
    /// Time at which the sweep started.
    pub started: Timestamp,
    /// The instance that the volumes are attached to.
    pub instance: String,
    /// Availability zone of the instance.
    pub zone: String,
    /// Region of the instance; `None` where it does not follow from the zone.
    pub region: Option<String>,
    /// The types.
    pub specs: Vec<VolumeSpec>,
    /// The volumes so far, one for each type in their order.
    pub volumes: Vec<VolumeState>,
    /// Objective by which types are ranked.
    pub objective: Objective,
    /// The requirements.
    pub requires: Vec<Requirement>,
    /// Number of rounds.
    pub rounds: usize,
    /// Measurements, in order of time.
    pub cells: Vec<RoundMeasurement>,
    /// True if the sweep was ended before all was measured.
    pub given_up: bool,
}

impl LongWork for TypeSweepCheckpoint {
    const KIND: &'static str = "sweep-ec2";
    const FORM: u32 = 1;
}

/// The region of an availability zone, such as `us-east-1` of `us-east-1a`. `None` for local zones, which have other
/// names.
pub(crate) fn region_of(zone: &str) -> Option<String> {
    let region = zone.strip_suffix(|last: char| last.is_ascii_lowercase())?;
    let is_region = region.ends_with(|last: char| last.is_ascii_digit())
        && region.split('-').count() >= 3
        && !region.split('-').any(str::is_empty);
    is_region.then(|| region.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_tells_its_region() {
        for (zone, region) in [
            ("us-east-1a", Some("us-east-1")),
            ("us-gov-west-1b", Some("us-gov-west-1")),
            ("us-east-1", None),
            ("", None),
            ("a", None),
        ] {
            assert_eq!(region_of(zone).as_deref(), region, "{zone}");
        }
    }
}
