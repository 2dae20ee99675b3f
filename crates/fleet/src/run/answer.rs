//! Answers of verbs on hosts, as far as hosts are compared by them. Their keys are pinned in `tests/documents/`.

use doctor::CheckResult;
use serde::Deserialize;
use serde_json::Value;

/// An answer, by its verb.
#[derive(Debug, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase")]
pub(super) enum Answer {
    Bench {
        phases: Vec<Phase>,
        verdict: Option<String>,
    },
    Zero {
        disks: Vec<Disk>,
    },
    Warm {
        volumes: Vec<Volume>,
    },
    Doctor {
        checks: Vec<Check>,
    },
    /// One by which hosts are not compared.
    #[serde(other)]
    Other,
}

impl Answer {
    /// The answer of a document; `None` of text, and of what the verb never printed.
    pub(super) fn of(document: &Value) -> Option<Answer> {
        Answer::deserialize(document).ok()
    }
}

/// A phase of a run.
#[derive(Debug, Deserialize)]
pub(super) struct Phase {
    pub(super) name: String,
    read: Option<Flow>,
    write: Option<Flow>,
    create: Option<Flow>,
    stat: Option<Flow>,
    delete: Option<Flow>,
}

impl Phase {
    /// Its flows, of those that it has.
    pub(super) fn flows(&self) -> impl Iterator<Item = &Flow> {
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
pub(super) struct Flow {
    pub(super) iops: Estimate,
}

/// A disk that was zeroed.
#[derive(Debug, Deserialize)]
pub(super) struct Disk {
    pub(super) bytes_per_s: Option<Estimate>,
}

/// A volume that was warmed.
#[derive(Debug, Deserialize)]
pub(super) struct Volume {
    pub(super) bytes_per_s: Option<f64>,
}

/// A mean, and its bounds of 95 % where the verb reports them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(super) struct Estimate {
    pub(super) mean: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
}

/// A check of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Check {
    pub(super) result: CheckResult,
    pub(super) name: String,
    pub(super) value: String,
}
