//! Comparison of two runs: the ratio of their rates with its interval.

mod gate;
mod row;

use self::gate::{Judgement, Outcome, judge};
use self::row::{ComparedRow, RowDocument};
use super::side::{Side, SidePhase};
use linux::remedy;
use record::{RunId, Verdict};
use serde::Serialize;
use ui::exit::CommandEnd;
use ui::format::percent;
use ui::table::{Column, layout, wrap};

/// The limit of `--fail-if-slower`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SlowdownLimit {
    /// The share of A's rate by which B may be slower.
    pub(super) share: f64,
    /// True if the gate also passes inconclusive comparisons.
    pub(super) allows_inconclusive: bool,
}

/// The gate's answer for one kind of request of a phase of A, or for a phase as a whole.
struct GateResult {
    phase: String,
    /// `None` where B does not have the phase at all.
    what: Option<&'static str>,
    judgement: Judgement,
}

/// Comparison of two runs.
pub(super) struct Comparison {
    a: RunId,
    b: RunId,
    rows: Vec<ComparedRow>,
    /// Phases that only one run has, and differences that make the runs hard to compare.
    remarks: Vec<String>,
    limit: Option<SlowdownLimit>,
    /// Answers of the gate; empty without a limit.
    judged: Vec<GateResult>,
}

impl Comparison {
    /// Compares `b` with `a`.
    pub(super) fn of(a: &Side, b: &Side, limit: Option<SlowdownLimit>) -> Comparison {
        let mut remarks: Vec<String> = [a, b]
            .into_iter()
            .filter(|side| side.verdict == Verdict::Invalid)
            .map(|side| {
                format!(
                    "{} is invalid: its figures do not mean what they seem to mean, and neither \
                     does this comparison ({}).",
                    side.id,
                    remedy::command(&format!("show {}", side.id))
                )
            })
            .collect();
        let invalid = [a, b]
            .into_iter()
            .find(|side| side.verdict == Verdict::Invalid)
            .map(|side| format!("{} is invalid", side.id));
        let pairs = pairs(&a.phases, &b.phases);
        let (mut rows, mut judged) = (Vec::new(), Vec::new());
        for (index, of_a) in a.phases.iter().enumerate() {
            let Some((_, other)) = pairs.iter().find(|(first, _)| *first == index) else {
                remarks.push(format!("{} has no phase {}.", b.id, of_a.name));
                judged.push(GateResult {
                    phase: of_a.name.clone(),
                    what: None,
                    judgement: Judgement::Inconclusive("B has no such phase".to_owned()),
                });
                continue;
            };
            let of_b = &b.phases[*other];
            let is_other_work = of_a.work.differs(&of_b.work);
            let other_work =
                is_other_work.then(|| "the two runs did not do the same work".to_owned());
            let doubt = invalid.clone().or(other_work);
            if is_other_work {
                remarks.push(format!(
                    "{}: the two runs did not do the same work. A: {}. B: {}.",
                    of_a.name, of_a.described, of_b.described,
                ));
            }
            let mut of_phases = ComparedRow::of_phases(of_a, of_b);
            if let Some(limit) = limit {
                let of_rows = judge_phase(of_a, &of_phases, limit.share, doubt.as_deref());
                for row in &mut of_phases {
                    row.is_slower = of_rows.iter().any(|one| one.is_slower(row));
                }
                judged.extend(of_rows);
            }
            rows.extend(of_phases);
        }
        if limit.is_none() {
            judged.clear();
        }
        for (index, phase) in b.phases.iter().enumerate() {
            if !pairs.iter().any(|(_, second)| *second == index) {
                remarks.push(format!("{} has no phase {}.", a.id, phase.name));
            }
        }
        Comparison {
            a: a.id.clone(),
            b: b.id.clone(),
            rows,
            remarks,
            limit,
            judged,
        }
    }

    /// The gate's outcome; `None` without a limit.
    fn outcome(&self) -> Option<Outcome> {
        self.limit?;
        let judgements = self.judged.iter().map(|one| &one.judgement);
        Some(Outcome::of(judgements))
    }

    /// End of the command: `No` where the gate does not let B pass.
    pub(super) fn answer(&self) -> CommandEnd {
        let allows = self.limit.is_some_and(|limit| limit.allows_inconclusive);
        match self.outcome() {
            None | Some(Outcome::Passed) => CommandEnd::Done,
            Some(Outcome::Inconclusive) if allows => CommandEnd::Done,
            Some(Outcome::Inconclusive | Outcome::Slower) => CommandEnd::No,
        }
    }

    /// The gate's answer in sentences.
    fn verdict(&self, limit: SlowdownLimit) -> Vec<String> {
        let named = |wanted: fn(&Judgement) -> bool| -> Vec<String> {
            let found = self.judged.iter().filter(|one| wanted(&one.judgement));
            found.map(GateResult::name).collect()
        };
        let share = percent(limit.share);
        let slower = named(|judgement| *judgement == Judgement::Slower);
        let mut sentences = Vec::new();
        if !slower.is_empty() {
            sentences.push(format!(
                "Slower by more than {share}: {}.",
                slower.join(", ")
            ));
        }
        for one in &self.judged {
            if let Judgement::Inconclusive(why) = &one.judgement {
                sentences.push(format!("Inconclusive: {}: {why}.", one.name()));
            }
        }
        sentences.extend(match self.outcome() {
            None | Some(Outcome::Slower) => None,
            Some(Outcome::Passed) => Some(format!(
                "Nothing is slower by more than {share} beyond doubt."
            )),
            Some(Outcome::Inconclusive) => Some(format!(
                "It is unknown whether B is slower than A by more than {share}: not all of A was \
                 compared. {}",
                match limit.allows_inconclusive {
                    true => "--allow-inconclusive lets this pass.",
                    false => "The status is 1; with --allow-inconclusive it is 0.",
                }
            )),
        });
        sentences
    }

    pub(super) fn text(&self, columns: usize) -> String {
        const COLUMNS: [Column; 7] = [
            Column::text("phase"),
            Column::text(""),
            Column::numbers("A IOPS", 3),
            Column::numbers("B IOPS", 3),
            Column::numbers("B/A", 0),
            Column::numbers("95 %", 0),
            Column::numbers("p99 A → B", 2),
        ];
        let mut text = format!("A: {}\nB: {}\n\n", self.a, self.b);
        if self.rows.is_empty() {
            text.push_str("They have no phase in common.\n");
        } else {
            let rows: Vec<Vec<String>> = self.rows.iter().map(ComparedRow::cells).collect();
            text.push_str(&layout(&COLUMNS, &rows, columns));
            text.push('\n');
        }
        let sentences = self.rows.iter().map(ComparedRow::sentence);
        for sentence in sentences.chain(self.remarks.iter().cloned()) {
            text.push_str(&wrap(&sentence, columns, "  "));
            text.push('\n');
        }
        for sentence in self.limit.iter().flat_map(|limit| self.verdict(*limit)) {
            text.push_str(&wrap(&sentence, columns, "  "));
            text.push('\n');
        }
        text
    }

    pub(super) fn document(&self) -> String {
        let outcome = self.outcome();
        let inconclusive: Vec<_> = self
            .judged
            .iter()
            .filter_map(GateResult::document)
            .collect();
        let body = ComparisonBody {
            a: &self.a,
            b: &self.b,
            phases: self.rows.iter().map(ComparedRow::document).collect(),
            remarks: &self.remarks,
            fail_if_slower: self.limit.map(|limit| limit.share),
            allow_inconclusive: self.limit.map(|limit| limit.allows_inconclusive),
            outcome: outcome.map(Outcome::name),
            slower: outcome
                .filter(|outcome| *outcome != Outcome::Inconclusive)
                .map(|outcome| outcome == Outcome::Slower),
            inconclusive: outcome.map(|_| !inconclusive.is_empty() || self.judged.is_empty()),
            inconclusive_phases: inconclusive,
        };
        ui::json::document("compare", &body)
    }
}

/// Body of the document of `compare --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ComparisonBody<'a> {
    /// Id of the first run, the baseline.
    a: &'a RunId,
    /// Id of the second run.
    b: &'a RunId,
    /// Rates of each kind of request of each phase that both runs have.
    phases: Vec<RowDocument<'a>>,
    /// Phases that only one run has, differences between the workloads and invalid runs, as sentences.
    remarks: &'a [String],
    /// Share by which B may be slower, of `--fail-if-slower`; null without that option, as the four keys below.
    fail_if_slower: Option<f64>,
    /// True with `--allow-inconclusive`.
    allow_inconclusive: Option<bool>,
    /// Outcome of the comparison with the limit: `slower`, `inconclusive` or `passed`.
    outcome: Option<&'static str>,
    /// True if anything is slower than the limit allows; null also where the outcome is `inconclusive`.
    slower: Option<bool>,
    /// True if anything could not be judged, or nothing was compared.
    inconclusive: Option<bool>,
    /// Comparisons that could not be judged, with the reason; empty without `--fail-if-slower`.
    inconclusive_phases: Vec<InconclusiveDocument<'a>>,
}

/// A comparison that `--fail-if-slower` could not judge.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct InconclusiveDocument<'a> {
    /// Name of the phase in A, with that in B behind it in brackets where it differs.
    name: &'a str,
    /// Kind of request, such as `read`; null where B does not have the phase.
    direction: Option<&'static str>,
    /// Reason, as a clause.
    reason: &'a str,
}

/// Pairs of corresponding phases, by their indices: phases of the same name (the second of a name with the second),
/// and then phases of different names that do the same work, since every tool has its own names.
fn pairs(a: &[SidePhase], b: &[SidePhase]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let same: fn(&SidePhase, &SidePhase) -> bool = |a, b| a.name == b.name;
    let like: fn(&SidePhase, &SidePhase) -> bool = |a, b| a.work.is_like(&b.work);
    let named = |phase: &SidePhase, among: &[SidePhase]| among.iter().any(|p| p.name == phase.name);
    for (belong, whatever_name) in [(same, true), (like, false)] {
        for (first, of_a) in a.iter().enumerate() {
            let taken = |index: usize| pairs.iter().any(|(_, second)| *second == index);
            let free = |index: &usize| {
                // A phase whose own name the other run has is only paired with that phase.
                !taken(*index) && (whatever_name || !named(&b[*index], a) && !named(of_a, b))
            };
            let found = (0..b.len())
                .filter(free)
                .find(|index| belong(of_a, &b[*index]));
            if let Some(second) = found.filter(|_| !pairs.iter().any(|(one, _)| *one == first)) {
                pairs.push((first, second));
            }
        }
    }
    pairs
}

/// Judges all kinds of requests of A in a phase.
fn judge_phase(
    a: &SidePhase,
    rows: &[ComparedRow],
    limit: f64,
    doubt: Option<&str>,
) -> Vec<GateResult> {
    let judged = a.flows.iter().map(|flow| {
        let what = flow.activity.name();
        let row = rows.iter().find(|row| row.what == what);
        GateResult {
            phase: row.map_or_else(|| a.name.clone(), ComparedRow::phases),
            what: Some(what),
            judgement: match row {
                Some(row) => judge(limit, row.ratio, doubt.or(row.without_interval())),
                None => Judgement::Inconclusive("B does not report how often it did so".to_owned()),
            },
        }
    });
    judged.collect()
}

impl GateResult {
    fn is_slower(&self, row: &ComparedRow) -> bool {
        self.what == Some(row.what) && self.judgement == Judgement::Slower
    }

    fn name(&self) -> String {
        match self.what {
            Some(what) => format!("{} {what}", self.phase),
            None => self.phase.clone(),
        }
    }

    /// The comparison as an entry of the document; `None` unless it is inconclusive.
    fn document(&self) -> Option<InconclusiveDocument<'_>> {
        let Judgement::Inconclusive(reason) = &self.judgement else {
            return None;
        };
        Some(InconclusiveDocument {
            name: &self.phase,
            direction: self.what,
            reason,
        })
    }
}

#[cfg(test)]
mod tests;
