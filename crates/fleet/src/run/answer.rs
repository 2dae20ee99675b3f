//! Answers of verbs on hosts, with the values by which hosts are compared. Their keys are pinned in
//! `tests/documents/`.

use doctor::CheckResult;
use serde::Deserialize;
use serde_json::Value;

/// The phase of the suite `database` that represents the run.
const MAIN_PHASE: &str = "page-mixed";

/// A mean, with its bounds of 95 %.
pub(super) type Bounded = (f64, Option<(f64, f64)>);

/// Answer of a verb on one host, with the values by which hosts are compared.
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
    /// The answer in a document; `None` for text, and for a document of another program.
    pub(super) fn of(document: &Value) -> Option<VerbAnswer> {
        VerbAnswer::deserialize(document).ok()
    }

    /// Name and value of the main figure, of which a larger one is better; `None` if the verb has none, or it was not
    /// measured.
    pub(super) fn main_figure(&self) -> Option<(String, Bounded)> {
        match self {
            VerbAnswer::Bench { phases, .. } => main_phase(phases),
            // The slowest disk delays all others.
            VerbAnswer::Zero { disks } => {
                let disks = disks.iter().filter_map(|disk| disk.bytes_per_s?.bounded());
                Some(("slowest disk's bytes/s".to_owned(), least(disks)?))
            }
            VerbAnswer::Warm { volumes } => {
                let volumes = volumes.iter().filter_map(|volume| volume.bytes_per_s);
                let volumes = volumes.map(|rate| (rate, None));
                Some(("slowest volume's bytes/s".to_owned(), least(volumes)?))
            }
            VerbAnswer::Doctor { .. } | VerbAnswer::Other => None,
        }
    }

    /// Verdict of the findings, where the verb reports one.
    pub(super) fn verdict(self) -> Option<String> {
        match self {
            VerbAnswer::Bench { verdict, .. } => verdict,
            _ => None,
        }
    }
}

/// Requests a second of the phase that represents the run.
fn main_phase(phases: &[MeasuredPhase]) -> Option<(String, Bounded)> {
    let main = phases.iter().find(|phase| phase.name == MAIN_PHASE);
    let phase = main.or_else(|| phases.first())?;
    let flows = phase.flows().filter_map(|flow| flow.iops.bounded());
    // The flows of a phase share its disk, so their half widths are added, which is never too narrow.
    let sum = flows.reduce(|(a, of_a), (b, of_b)| {
        let both = of_a.zip(of_b);
        (a + b, both.map(|(a, b)| (a.0 + b.0, a.1 + b.1)))
    });
    Some((format!("{}.iops", phase.name), sum?))
}

fn least(values: impl Iterator<Item = Bounded>) -> Option<Bounded> {
    values.min_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// A phase of a run.
#[derive(Debug, Deserialize)]
pub(super) struct MeasuredPhase {
    name: String,
    read: Option<MeasuredFlow>,
    write: Option<MeasuredFlow>,
    create: Option<MeasuredFlow>,
    stat: Option<MeasuredFlow>,
    delete: Option<MeasuredFlow>,
}

impl MeasuredPhase {
    /// The flows of the phase.
    fn flows(&self) -> impl Iterator<Item = &MeasuredFlow> {
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
    iops: MeanEstimate,
}

/// A disk that was zeroed.
#[derive(Debug, Deserialize)]
pub(super) struct ZeroedDisk {
    bytes_per_s: Option<MeanEstimate>,
}

/// A volume that was warmed.
#[derive(Debug, Deserialize)]
pub(super) struct WarmedVolume {
    bytes_per_s: Option<f64>,
}

/// A mean, and its bounds of 95 % where the verb reports them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(super) struct MeanEstimate {
    mean: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl MeanEstimate {
    fn bounded(self) -> Option<Bounded> {
        Some((self.mean?, self.low.zip(self.high)))
    }
}

/// A check of `doctor` on a host, with its result and value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct DoctorCheck {
    pub(super) result: CheckResult,
    pub(super) name: String,
    pub(super) value: String,
}
