//! Causes derived from the evidence, and the conclusion from the causes.

use super::disks::DiskEvidence;
use super::earlier_days::unusual_shift;
use super::inputs::{Moment, Observations, ResponseFigure, Windows, part};
use super::load::LoadEvidence;
use super::{LEVEL, MIN_CHANGE_RATIO};
use crate::shift::{MIN_SLOTS, Shift, shift};

/// Minimum superiority (or its complement) of another series that may be a cause: most values after exceed most values
/// before.
const MIN_SUPERIORITY: f64 = 0.85;
/// Multiple of the increase of the disk's latency beyond which a response time has a further cause: the I/Os of a
/// request need not wait for each other.
const EXCESS: f64 = 1.5;
/// Share of busy time from which requests queue in front of a disk, which its own latency does not show.
const SATURATED: f64 = 0.95;
/// Ratio of a percentile's change that the conclusion "nothing changed" must exclude.
const EXCLUDED: f64 = 1.3;

/// A cause of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The code deployed at the marker.
    Code,
    /// The request rate.
    Load,
    /// A disk, by its name.
    Disk(String),
    /// A series other than those of a disk, by its name.
    Series(String),
}

/// The conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conclusion {
    /// The program's own code.
    Code,
    /// The request rate.
    Load,
    /// The system below the service: a disk, or another series.
    System,
    /// Causes of more than one kind.
    Several,
    /// Response times did not change.
    NothingChanged,
    /// Too few data, or no recorded series explains the change.
    NotEnoughData,
}

impl Conclusion {
    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Conclusion::Code => "code",
            Conclusion::Load => "load",
            Conclusion::System => "system",
            Conclusion::Several => "several",
            Conclusion::NothingChanged => "nothing-changed",
            Conclusion::NotEnoughData => "not-enough-data",
        }
    }
}

/// Strength of a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Another cause could not be examined.
    Low,
    /// The cause is shown, and another may contribute.
    Medium,
    /// The cause is shown, and all others are excluded.
    High,
}

/// A conclusion with the figures that led to it.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseVerdict {
    /// The conclusion.
    pub conclusion: Conclusion,
    /// Strength of the conclusion.
    pub certainty: Certainty,
    /// The causes, in the order of the analysis.
    pub causes: Vec<Cause>,
    /// The change of each comparable figure of response times; the decisive one first.
    pub changes: Vec<(ResponseFigure, Shift)>,
    /// Evidence about the load.
    pub load: Option<LoadEvidence>,
    /// Evidence about each comparable disk.
    pub disks: Vec<DiskEvidence>,
    /// Change of each other comparable series.
    pub series: Vec<(String, Shift)>,
}

/// Judges a moment.
pub fn judge(observed: &Observations, moment: Moment, windows: &Windows) -> CauseVerdict {
    let metrics = observed.service.metrics();
    let mut changes: Vec<(ResponseFigure, Shift)> = metrics
        .iter()
        .filter(|(metric, values)| {
            !matches!(metric, ResponseFigure::Above(_)) || varies(values, windows)
        })
        .filter_map(|(metric, values)| Some((*metric, unusual_shift(values, windows)?)))
        .collect();
    correct_for_many(&mut changes);
    changes.sort_by(|(_, a), (_, b)| {
        let order = |s: &Shift| (!s.shows(LEVEL, MIN_CHANGE_RATIO), -s.size().abs());
        order(a)
            .partial_cmp(&order(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut verdict = CauseVerdict {
        conclusion: Conclusion::NotEnoughData,
        certainty: Certainty::Low,
        causes: Vec::new(),
        changes,
        load: None,
        disks: observed
            .disks
            .iter()
            .filter_map(|disk| DiskEvidence::new(observed, disk, windows))
            .collect(),
        series: observed
            .series
            .iter()
            .filter_map(|series| {
                let change = shift(
                    part(&series.values, &windows.before),
                    part(&series.values, &windows.after),
                )?;
                Some((series.name.clone(), change))
            })
            .collect(),
    };
    let Some((metric, change)) = verdict.changes.first().cloned() else {
        return verdict;
    };
    let values = metrics.iter().find(|(other, _)| *other == metric);
    verdict.load = values.and_then(|(_, values)| LoadEvidence::new(observed, values, windows));
    if !change.shows(LEVEL, MIN_CHANGE_RATIO) {
        if let Some(certainty) = nothing_changed(&verdict.changes) {
            verdict.conclusion = Conclusion::NothingChanged;
            verdict.certainty = certainty;
        }
        return verdict;
    }
    CauseAnalysis {
        observed,
        windows,
        marked: moment.marked,
        direction: change.size().signum(),
    }
    .conclude(verdict)
}

/// True unless a share is the same in all slots: a constant share carries no information, and would reduce the
/// significance of the other figures.
fn varies(values: &[f64], windows: &Windows) -> bool {
    let both = [part(values, &windows.before), part(values, &windows.after)].concat();
    let mut known = both.into_iter().filter(|value| value.is_finite());
    let first = known.next();
    first.is_none_or(|first| known.any(|value| (value / first - 1.0).abs() > 1e-9))
}

/// Corrects p for the number of figures (Benjamini and Hochberg, 1995). The figures are of the same requests: if all
/// of them changed, each keeps its p.
fn correct_for_many(changes: &mut [(ResponseFigure, Shift)]) {
    let tests = changes.len();
    changes.sort_by(|(_, a), (_, b)| b.p.total_cmp(&a.p));
    let mut least: f64 = 1.0;
    for (place, (_, shift)) in changes.iter_mut().enumerate() {
        least = least.min(shift.p * tests as f64 / (tests - place) as f64);
        shift.p = least;
    }
}

/// Certainty that no percentile changed: the intervals of all include no change, and exclude a large one. `None` if an
/// interval does not.
fn nothing_changed(changes: &[(ResponseFigure, Shift)]) -> Option<Certainty> {
    let percentiles = changes
        .iter()
        .filter(|(metric, _)| !matches!(metric, ResponseFigure::Above(_)));
    let mut farthest: Option<f64> = None;
    for (_, shift) in percentiles {
        let (low, high) = (shift.ratio.low, shift.ratio.high);
        if low >= MIN_CHANGE_RATIO || high <= 1.0 / MIN_CHANGE_RATIO {
            return None;
        }
        farthest = Some(farthest.unwrap_or(1.0).max(high).max(1.0 / low));
    }
    match farthest? {
        within if within <= MIN_CHANGE_RATIO => Some(Certainty::High),
        within if within <= EXCLUDED => Some(Certainty::Medium),
        _ => None,
    }
}

/// Analysis of a change of response times in one direction: 1 slower, -1 faster.
struct CauseAnalysis<'a> {
    observed: &'a Observations,
    windows: &'a Windows,
    marked: bool,
    direction: f64,
}

impl CauseAnalysis<'_> {
    fn conclude(&self, mut verdict: CauseVerdict) -> CauseVerdict {
        let load = verdict.load.as_ref();
        let by_load = load.is_some_and(|load| load.explains(self.direction));
        let changed = verdict
            .disks
            .iter()
            .filter(|disk| disk.changed(self.direction));
        let changed: Vec<&DiskEvidence> = changed.collect();
        let demand = verdict
            .disks
            .iter()
            .any(|disk| disk.demand_moved(self.direction));
        let mut causes = Vec::new();
        if by_load {
            causes.push(Cause::Load);
        }
        causes.extend(changed.iter().map(|disk| Cause::Disk(disk.name.clone())));
        let unexplained = causes.is_empty();
        if !by_load && (unexplained || demand || self.exceeds(&changed)) {
            causes.extend(self.other_cause(&verdict));
        }
        verdict.certainty = self.certainty(&causes, load, demand);
        verdict.conclusion = conclusion(&causes);
        verdict.causes = causes;
        verdict
    }

    /// The cause if neither load nor disks explain everything: a series that changed, if each request makes other I/O
    /// or there is no marker; otherwise the code, if there is a marker.
    fn other_cause(&self, verdict: &CauseVerdict) -> Option<Cause> {
        let telling = |(_, shift): &&(String, Shift)| {
            shift.p <= LEVEL
                && (shift.superiority - 0.5).abs() >= MIN_SUPERIORITY - 0.5
                && shift.size().abs() >= MIN_CHANGE_RATIO.ln()
        };
        let series = verdict.series.iter().filter(telling);
        let largest = series.max_by(|(_, a), (_, b)| a.size().abs().total_cmp(&b.size().abs()));
        if self.marked {
            Some(Cause::Code)
        } else {
            largest.map(|(name, _)| Cause::Series(name.clone()))
        }
    }

    /// True if response times changed by clearly more than the I/O of a request at the disks' latency.
    fn exceeds(&self, changed: &[&DiskEvidence]) -> bool {
        let mean = |window| {
            let values = part(&self.observed.service.mean_ms, window).iter();
            let finite: Vec<f64> = values.copied().filter(|x| x.is_finite()).collect();
            (finite.len() >= MIN_SLOTS).then(|| crate::noise::mean(&finite))
        };
        let (Some(before), Some(after)) = (mean(&self.windows.before), mean(&self.windows.after))
        else {
            return false;
        };
        let saturated = changed.iter().any(|disk| disk.busy >= SATURATED);
        let of_disks = changed.iter().map(|disk| {
            let (before, after) = disk.per_request_ms;
            (after - before).max(0.0)
        });
        let most = EXCESS * of_disks.sum::<f64>() + (MIN_CHANGE_RATIO - 1.0) * before;
        self.direction > 0.0 && !saturated && after - before > most
    }

    fn certainty(&self, causes: &[Cause], load: Option<&LoadEvidence>, demand: bool) -> Certainty {
        let load_moved = load.is_some_and(|load| load.moved(self.direction));
        let curve_known = load.is_some_and(|load| load.at_equal_rate.is_some());
        match causes {
            [] => Certainty::Low,
            // The rate was never this high before: how the code behaves at the old rate cannot be compared.
            _ if load_moved && !curve_known => match self.marked {
                true => Certainty::Low,
                false => Certainty::Medium,
            },
            [Cause::Code] if self.observed.disks.is_empty() => Certainty::Medium,
            [Cause::Code] | [Cause::Load] => Certainty::High,
            [Cause::Disk(_)] if self.marked && !demand => Certainty::Medium,
            [Cause::Disk(_)] => Certainty::High,
            [_] | [_, _, ..] => Certainty::Medium,
        }
    }
}

fn conclusion(causes: &[Cause]) -> Conclusion {
    let kind = |cause: &Cause| match cause {
        Cause::Code => Conclusion::Code,
        Cause::Load => Conclusion::Load,
        Cause::Disk(_) | Cause::Series(_) => Conclusion::System,
    };
    match causes.first().map(kind) {
        None => Conclusion::NotEnoughData,
        Some(first) if causes.iter().all(|cause| kind(cause) == first) => first,
        Some(_) => Conclusion::Several,
    }
}
