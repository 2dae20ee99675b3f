//! Report of a race as one typed document. Its JSON is complete; the table and the page show parts of it.

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

/// Ratio of an upper bound to the figure from which it is meaningless, as after two rounds that differ a lot.
const MEANINGLESS_BOUND_FACTOR: f64 = 1000.0;

/// Result of a race.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RaceReport<'a> {
    /// Id of the run.
    fleet: &'a str,
    /// Start.
    began: Timestamp,
    /// Command on each host.
    args: &'a [String],
    /// Name of the figure that hosts are ranked by.
    pub figure: String,
    /// Number of hosts to keep of each group.
    keep: usize,
    /// Floors that a host must reach throughout, as on the command line.
    floors: &'a [String],
    /// Length of a round, in seconds.
    round_s: f64,
    /// Number of rounds that were measured.
    rounds: usize,
    /// Number of rounds in which every host is measured before any drops out.
    least_rounds: usize,
    /// Maximum number of rounds of the race.
    most_rounds: usize,
    /// True if the user ended the race.
    interrupted: bool,
    /// Instances that were to be terminated; `null` where that was not asked for.
    terminated: Option<&'a [TerminationTarget]>,
    /// Bad hosts that were not to be terminated, with the reasons; `null` where termination was not asked for.
    spared: Option<&'a [SparedHost]>,
    /// Standard deviation of one round of a disk, as a share of its rate; `null` where it is not known.
    noise: Option<f64>,
    /// Number of rounds in which a host is measured before it is kept: enough to show one that is slow in a tenth of
    /// them.
    proof_rounds: usize,
    /// Groups of which no host was measured.
    empty_groups: &'a [String],
    /// The groups, in the order of their names.
    groups: Vec<GroupReport<'a>>,
    /// The hosts, by group, and the best first.
    pub hosts: Vec<HostReport<'a>>,
}

/// Result of a race for a group.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct GroupReport<'a> {
    /// Name of the group: a zone, an instance type, or `all`.
    group: &'a str,
    /// Number of its hosts.
    hosts: usize,
    /// End of its race: `decided` (the best are known), `equal` (the best are known, and others are as good),
    /// `rounds` (no rounds are left), `few` (no more hosts than are kept) or `open` (it did not end).
    end: &'static str,
    /// Number of hosts that are kept.
    kept: usize,
    /// Number of hosts that are kept, or tie for a place, and were reachable at the end.
    there: usize,
    /// Number of hosts that tie for `places`.
    tied: usize,
    /// Number of places for which hosts tie.
    places: usize,
}

/// Result of a race for a host.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HostReport<'a> {
    /// Name of the host.
    pub host: &'a str,
    /// Address given to ssh.
    address: &'a str,
    /// Name of its group; `null` where it was never measured.
    pub group: Option<&'a str>,
    /// The zone, such as `us-east-1a`; `null` where it is not known.
    pub zone: Option<&'a str>,
    /// The instance type, such as `i4i.large`; `null` where it is not known.
    #[serde(rename = "type")]
    pub kind: Option<&'a str>,
    /// Id of its instance; `null` where it is not known.
    pub id: Option<&'a str>,
    /// Outcome: `waiting`, `done`, `no` (done, and the answer is no), `refused`, `failed`, `unreached`, `unfit` (no
    /// agent can run there), `busy` (another run measures there), `lost` (the connection broke) or `interrupted`.
    #[serde(rename = "came")]
    outcome: &'static str,
    /// Decision: `keep`, `tie` (may be one of the best), `open` (the race ended before it was decided), `cull`
    /// (enough others are better), `floor` (missed a floor), `failed`, `unreachable` or `busy` (another run measures
    /// there).
    #[serde(serialize_with = "decision_word")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub decision: Decision,
    /// Reason for the decision, as a sentence without a full stop.
    pub reason: &'a str,
    /// Figure by which it is ranked; `null` where it was never measured.
    pub figure: Option<RankedFigure>,
    /// Number of rounds in which it was measured.
    pub rounds: usize,
    /// Number of rounds in which it was missing.
    missed_rounds: usize,
    /// Number of rounds in which its worst target was slow; `null` where it was never measured.
    slow_rounds: Option<usize>,
    /// Mean rate of the slow rounds as a share of the other rounds; `null` where it was never measured.
    left_when_slow: Option<f64>,
    /// Target by which it is ranked, its worst; `null` where it was never measured.
    worst_target: Option<&'a TargetFacts>,
    /// Targets that are measured on it; `null` where it has no record.
    targets: Option<&'a [TargetFacts]>,
    /// Seconds by which its clock is ahead of this host's; `null` where it was not compared.
    clock_ahead_s: Option<f64>,
    /// Reasons to doubt its figures, as sentences.
    doubts: &'a [String],
    /// Further notes, as sentences.
    notes: &'a [String],
}

/// Figure by which a host is ranked, in the figure's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RankedFigure {
    /// Mean of the worst tenth of the rounds of the worst target.
    pub value: f64,
    /// Lower bound of the 95 % interval, which holds for all hosts at once; `null` after a single round.
    low: Option<f64>,
    /// Upper bound of that interval; `null` after a single round.
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
    /// Worst disk of a host with several.
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

    /// Cells of the host, for the table and the page.
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
            Some((low, high)) if high > MEANINGLESS_BOUND_FACTOR * self.value => {
                format!("{} or more", self.by.text(low))
            }
            Some((low, high)) => format!("{}–{}", self.by.text(low), self.by.text(high)),
        }
    }
}

/// Name of the worst target of several; `None` if there is only one.
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
