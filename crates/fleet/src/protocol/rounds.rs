//! Messages to and from a host that measures rounds: JSON, one message a line.

use serde::{Deserialize, Serialize};

use domain::plan_binding::BoundTarget;

/// A round to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Round {
    /// Number of the round, from 0.
    pub number: usize,
    /// Length of the round, in seconds.
    pub seconds: f64,
}

/// Messages of such a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoundMessage {
    /// All targets are prepared, and the host is ready for the next round.
    Ready(Vec<TargetFacts>),
    /// A round was measured.
    Measured(HostRound),
}

/// Facts about a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TargetFacts {
    /// The path as it was given.
    pub path: String,
    /// The block device that it is or lies on; `null` where there is none.
    pub device: Option<String>,
    /// Model of the device; `null` where the kernel shows none.
    pub model: Option<String>,
    /// Serial number of the device, on EBS the volume's id; `null` where the kernel shows none.
    pub serial: Option<String>,
    /// Size of the device; of the target where there is none.
    pub size_bytes: u64,
    /// Content and identity of a target that is overwritten; absent where it is only read, or is a test file.
    #[serde(rename = "doomed", default, skip_serializing_if = "Option::is_none")]
    pub overwritten: Option<BoundTarget>,
}

impl TargetFacts {
    /// Options that bind a verb to the disk that is overwritten; empty if none is.
    pub(crate) fn binding(&self) -> Vec<String> {
        let overwritten = self.overwritten.iter();
        overwritten
            .flat_map(|one| one.seen.binding_options(&self.path))
            .collect()
    }
}

/// Results of a round on a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostRound {
    /// Number of the round.
    pub number: usize,
    /// Length of the round, in seconds.
    pub seconds: f64,
    /// The targets, in their order.
    pub targets: Vec<TargetRound>,
}

/// Results of a round on a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TargetRound {
    /// The requested figures, in their order and units; `None` if one was not measured, such as the latency of a disk
    /// without completed requests.
    pub figures: Vec<Option<f64>>,
    /// Mean time of a request on the slowest disk below, in nanoseconds, by the kernel's counters.
    pub disk_latency_ns: Option<f64>,
    /// Reason why the figures are not the disk's, as a sentence.
    pub invalid: Option<String>,
    /// Error of the disk for a request, as a sentence.
    pub broken: Option<String>,
    /// Another cause of the early end of the round, as a sentence, for which the disk is not responsible.
    pub failed: Option<String>,
    /// Reasons to doubt that the figures are the disk's alone, as sentences, each reported once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// True if something other than the disk may have slowed it in this round: other programs, or the processor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_slowed: bool,
}
