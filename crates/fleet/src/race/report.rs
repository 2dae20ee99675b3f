//! Report of a race: one typed document. Its JSON is all of it; the table and the page show parts of it.

use jiff::Timestamp;
use serde::Serialize;
use study::burnin::HostEstimate;

use crate::protocol::rounds::TargetFacts;
use crate::race::conclude::{Decision, GroupEnd, RaceConclusion, RankedHost};
use crate::race::ranked_by::RankedBy;
use crate::race::running_race::end_label;
use crate::store::FleetRun;
use crate::store::race::RaceRecord;
use crate::store::termination::{SparedHost, TerminationTarget};

/// An upper bound that is more than so many times the figure is meaningless, as after two rounds that differ by
/// much.
const FAR: f64 = 1000.0;

/// Result of a race.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RaceReport<'a> {
    /// Id of the run.
    fleet: &'a str,
    began: Timestamp,
    /// Command on each host.
    args: &'a [String],
    /// Name of the figure that hosts are ranked by.
    pub figure: String,
    /// Hosts to keep of each group.
    keep: usize,
    floors: &'a [String],
    round_s: f64,
    rounds: usize,
    least_rounds: usize,
    most_rounds: usize,
    interrupted: bool,
    /// Instances that were to be terminated; `null` where that was not asked for.
    terminated: Option<&'a [TerminationTarget]>,
    spared: Option<&'a [SparedHost]>,
    /// Scatter of one round of a disk, as a share; `null` where it is not known.
    noise: Option<f64>,
    /// Rounds that show each host that is slow in one of ten.
    proof_rounds: usize,
    /// Groups of which no host was measured.
    empty_groups: &'a [String],
    groups: Vec<GroupReport<'a>>,
    /// The hosts, best first.
    pub hosts: Vec<HostReport<'a>>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct GroupReport<'a> {
    group: &'a str,
    hosts: usize,
    end: &'static str,
    kept: usize,
    /// Number that are kept and were there at the end.
    there: usize,
    tied: usize,
    /// Places for which they tie.
    places: usize,
}

/// Result of a race for a host.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HostReport<'a> {
    pub host: &'a str,
    address: &'a str,
    /// Its group; `null` where it was never measured.
    pub group: Option<&'a str>,
    pub zone: Option<&'a str>,
    #[serde(rename = "type")]
    pub kind: Option<&'a str>,
    /// Id of its instance.
    pub id: Option<&'a str>,
    #[serde(rename = "came")]
    outcome: &'static str,
    #[serde(serialize_with = "decision_word")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub decision: Decision,
    /// Reason of the decision, as a sentence without its end.
    pub reason: &'a str,
    pub figure: Option<RankedFigure>,
    /// Rounds in which it was measured.
    pub rounds: usize,
    missed_rounds: usize,
    /// Rounds in which its worst target was slow.
    slow_rounds: Option<usize>,
    /// Mean rate of these, as a share of the others.
    left_when_slow: Option<f64>,
    worst_target: Option<&'a TargetFacts>,
    targets: Option<&'a [TargetFacts]>,
    /// Seconds by which its clock was ahead.
    clock_ahead_s: Option<f64>,
    doubts: &'a [String],
    notes: &'a [String],
}

/// Figure by which a host is ranked, in the figure's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RankedFigure {
    pub value: f64,
    /// Bounds of 95 %, which hold for all hosts at once; `null` after a single round.
    low: Option<f64>,
    high: Option<f64>,
    #[serde(skip)]
    by: RankedBy,
}

/// Cells of a host, as the table and the page show them.
pub(crate) struct HostCells {
    pub host: String,
    pub group: String,
    pub zone: String,
    pub kind: String,
    pub id: String,
    pub figure: String,
    pub bounds: String,
    /// Worst disk of a host that has several.
    pub worst: String,
    pub rounds: String,
    pub decision: &'static str,
}

impl<'a> RaceReport<'a> {
    /// Report of a race with its conclusion.
    pub(crate) fn of(
        run: &'a FleetRun,
        record: &'a RaceRecord,
        concluded: &'a RaceConclusion,
    ) -> RaceReport<'a> {
        let termination = record.termination.as_ref();
        let ranked = concluded.ranked.iter();
        RaceReport {
            fleet: &run.id,
            began: run.began,
            args: &run.args,
            figure: figure_name(record),
            keep: record.keep,
            floors: &record.floors,
            round_s: record.round_s,
            rounds: record.rounds.len(),
            least_rounds: record.least_rounds,
            most_rounds: record.most_rounds,
            interrupted: record.interrupted,
            terminated: termination.map(|one| one.targets.as_slice()),
            spared: termination.map(|one| one.spared.as_slice()),
            noise: concluded.noise,
            proof_rounds: concluded.proof_rounds,
            empty_groups: &concluded.empty,
            groups: concluded.groups.iter().map(GroupReport::of).collect(),
            hosts: ranked
                .filter_map(|one| HostReport::of(one, run, record))
                .collect(),
        }
    }
}

impl<'a> GroupReport<'a> {
    fn of(group: &'a GroupEnd) -> GroupReport<'a> {
        GroupReport {
            group: &group.name,
            hosts: group.hosts,
            end: end_label(group.end),
            kept: group.kept,
            there: group.there,
            tied: group.tied,
            places: group.places,
        }
    }
}

impl<'a> HostReport<'a> {
    fn of(
        one: &'a RankedHost,
        run: &'a FleetRun,
        record: &'a RaceRecord,
    ) -> Option<HostReport<'a>> {
        let host = run.hosts.get(one.place)?;
        let raced = record.hosts.get(one.place);
        let known = one.known.as_ref();
        let targets = raced.map(|raced| raced.targets.as_slice());
        Some(HostReport {
            host: &host.host,
            address: &host.address,
            group: raced.and_then(|raced| raced.group.as_deref()),
            zone: host.zone.as_deref(),
            kind: host.kind.as_deref(),
            id: host.id.as_deref(),
            outcome: host.outcome.name(),
            decision: one.decided,
            reason: &one.reason,
            figure: known.map(|known| RankedFigure::of(known, RankedBy::of(&record.figures))),
            rounds: known.map_or(0, |known| known.rounds),
            missed_rounds: one.missed,
            slow_rounds: known.map(|known| known.slow),
            left_when_slow: known.map(|known| known.left),
            worst_target: known.and_then(|known| targets?.get(known.disk)),
            targets,
            clock_ahead_s: host.clock_ahead_s,
            doubts: &one.doubts,
            notes: &host.notes,
        })
    }

    /// Its cells.
    pub(crate) fn cells(&self) -> HostCells {
        let word = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let of_figure = |shown: fn(&RankedFigure) -> String| {
            self.figure.as_ref().map_or_else(String::new, shown)
        };
        let worst = self.worst_target;
        let worst = worst.and_then(|worst| worst_name(worst, self.targets.unwrap_or_default()));
        HostCells {
            host: self.host.to_owned(),
            group: word(self.group),
            zone: word(self.zone),
            kind: word(self.kind),
            id: word(self.id),
            figure: of_figure(RankedFigure::text),
            bounds: of_figure(RankedFigure::bounds),
            worst: worst.unwrap_or_default(),
            rounds: match self.figure {
                Some(_) => self.rounds.to_string(),
                None => String::new(),
            },
            decision: self.decision.name(),
        }
    }
}

impl RankedFigure {
    /// The figure of a host. A single round has no bounds.
    pub(crate) fn of(known: &HostEstimate, by: RankedBy) -> RankedFigure {
        let (low, high) = match by {
            RankedBy::Rate => (known.low, known.high),
            RankedBy::Latency => (by.turned(known.high), by.turned(known.low)),
        };
        let has_bounds = known.low.is_finite() && known.high.is_finite();
        RankedFigure {
            value: by.turned(known.figure),
            low: has_bounds.then_some(low),
            high: has_bounds.then_some(high).filter(|high| high.is_finite()),
            by,
        }
    }

    /// The figure in words.
    pub(crate) fn text(&self) -> String {
        self.by.text(self.value)
    }

    /// The bounds in words.
    pub(crate) fn bounds(&self) -> String {
        match self.low.zip(self.high) {
            None => String::new(),
            Some((low, high)) if high > FAR * self.value => {
                format!("{} or more", self.by.text(low))
            }
            Some((low, high)) => format!("{}–{}", self.by.text(low), self.by.text(high)),
        }
    }
}

/// Name of the worst target of several; `None` where there is only one.
pub(crate) fn worst_name(worst: &TargetFacts, targets: &[TargetFacts]) -> Option<String> {
    let name = worst.device.as_ref().unwrap_or(&worst.path);
    (targets.len() > 1).then(|| name.clone())
}

/// Name of the figure that hosts are ranked by.
pub(crate) fn figure_name(record: &RaceRecord) -> String {
    let figure = record.figures.first();
    figure.map_or_else(String::new, ToString::to_string)
}

/// Figure by which a host was ranked, with its name.
pub(crate) fn figure_text(known: &HostEstimate, record: &RaceRecord) -> String {
    let figure = RankedFigure::of(known, RankedBy::of(&record.figures));
    format!("{} {}", figure_name(record), figure.text())
}

fn decision_word<S: serde::Serializer>(
    decision: &Decision,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(decision.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meaningless_bound_is_left_out() {
        let bounds = |high| {
            let known = HostEstimate {
                figure: 100.0,
                low: 90.0,
                high,
                disk: 0,
                rounds: 2,
                slow: 0,
                left: 1.0,
            };
            RankedFigure::of(&known, RankedBy::Rate).bounds()
        };
        assert_eq!(bounds(110.0), "90.0–110");
        assert_eq!(bounds(1e200), "90.0 or more");
        assert_eq!(bounds(f64::INFINITY), "");
    }
}
