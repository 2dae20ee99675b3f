//! What is said to a host that measures round by round, and what it answers: JSON, one message a line.

use serde::{Deserialize, Serialize};

use domain::plan_binding::BoundTarget;

/// A round that is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Round {
    /// Which, from 0.
    pub number: usize,
    /// How long it takes, in seconds.
    pub seconds: f64,
}

/// What a host answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoundSaid {
    /// All targets are prepared, and the next round may come.
    Ready(Vec<TargetFacts>),
    /// A round was measured.
    Measured(HostRound),
}

/// What a target is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TargetFacts {
    /// The path as it was given.
    pub path: String,
    /// The block device that it is or lies on.
    pub device: Option<String>,
    /// The maker's name for that.
    pub model: Option<String>,
    /// Its serial number, on EBS the volume's id.
    pub serial: Option<String>,
    /// The size of that device in bytes; of the target where there is none.
    pub size_bytes: u64,
    /// What is lost of it when it is measured; `None` where it is only read, or is a test file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doomed: Option<BoundTarget>,
}

/// What a round gave on a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostRound {
    /// Which round.
    pub number: usize,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The targets, in their order.
    pub targets: Vec<TargetRound>,
}

/// What a round gave on a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TargetRound {
    /// The figures that were asked for, in their order and units; `None` where one was not measured,
    /// as the latency of a disk from which nothing came back.
    pub figures: Vec<Option<f64>>,
    /// The mean time that a request took on the slowest disk below, in nanoseconds, as the kernel counts
    /// it.
    pub disk_latency_ns: Option<f64>,
    /// Why the figures are not the disk's, as a sentence.
    pub invalid: Option<String>,
    /// The request that the disk answered with an error, as a sentence.
    pub broken: Option<String>,
    /// What else ended it before its end, as a sentence: nothing that the disk is blamed for.
    pub failed: Option<String>,
    /// Reasons to doubt that the figures are the disk's alone, as sentences, each said once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Whether something else than the disk may have slowed it in this round: others that used it, or the
    /// processor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_slowed: bool,
}
