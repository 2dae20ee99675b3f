//! Answers of verbs on hosts, as far as hosts are compared by them. Their keys are pinned in `tests/documents/`.

use doctor::CheckResult;
use serde::Deserialize;
use serde_json::Value;

/// Answer of a verb on one host, as far as hosts are compared.
#[derive(Debug, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase")]
pub(super) enum VerbAnswer {
    Bench {
        phases: Vec<MeasuredPhase>,
        verdict: Option<String>,
    },
    Zero {
        disks: Vec<ZeroedDisk>,
    },
    Warm {
        volumes: Vec<WarmedVolume>,
    },
    Doctor {
        checks: Vec<DoctorCheck>,
    },
    /// An answer by which hosts are not compared.
    #[serde(other)]
    Other,
}

impl VerbAnswer {
    /// The answer of a document; `None` of text, and of what the verb never printed.
    pub(super) fn of(document: &Value) -> Option<VerbAnswer> {
        VerbAnswer::deserialize(document).ok()
    }
}

/// A phase of a run.
#[derive(Debug, Deserialize)]
pub(super) struct MeasuredPhase {
    pub(super) name: String,
    read: Option<MeasuredFlow>,
    write: Option<MeasuredFlow>,
    create: Option<MeasuredFlow>,
    stat: Option<MeasuredFlow>,
    delete: Option<MeasuredFlow>,
}

impl MeasuredPhase {
    /// The flows that the phase has.
    pub(super) fn flows(&self) -> impl Iterator<Item = &MeasuredFlow> {
        let all = [
            &self.read,
            &self.write,
            &self.create,
            &self.stat,
            &self.delete,
        ];
        all.into_iter().flatten()
    }
}

/// Requests of one kind.
#[derive(Debug, Deserialize)]
pub(super) struct MeasuredFlow {
    pub(super) iops: MeanEstimate,
}

/// A disk that was zeroed.
#[derive(Debug, Deserialize)]
pub(super) struct ZeroedDisk {
    pub(super) bytes_per_s: Option<MeanEstimate>,
}

/// A volume that was warmed.
#[derive(Debug, Deserialize)]
pub(super) struct WarmedVolume {
    pub(super) bytes_per_s: Option<f64>,
}

/// A mean, and its bounds of 95 % where the verb reports them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(super) struct MeanEstimate {
    pub(super) mean: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
}

/// A check of `doctor` on a host, with its result and value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct DoctorCheck {
    pub(super) result: CheckResult,
    pub(super) name: String,
    pub(super) value: String,
}
