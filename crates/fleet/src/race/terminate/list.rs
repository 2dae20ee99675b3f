//! List of the instances to terminate and of the hosts to spare, as shown, confirmed and kept in the ledger.

use linux::aws::RunProgram;

use crate::hosts::instances_now;
use crate::race::conclude::{Decision, RaceConclusion, RankedHost};
use crate::race::ranked_by::RankedBy;
use crate::race::report::{RankedFigure, figure_text};
use crate::race::terminate::address::Addresses;
use crate::race::terminate::aws::BATCH;
use crate::race::terminate::choice::{Candidate, clause};
use crate::store::FleetRun;
use crate::store::race::RaceRecord;
use crate::store::termination::{SparedHost, Termination};
use ui::format;

impl Termination {
    /// Makes the list: the selected instances that EC2 does not protect now. If the list is not shown to the user,
    /// instances with any doubt are spared too.
    ///
    /// # Errors
    /// A sentence, if EC2 cannot be queried.
    pub(super) fn of(
        chosen: &[Candidate],
        spared: Vec<SparedHost>,
        addresses: &Addresses,
        is_shown: bool,
        program: RunProgram<'_>,
    ) -> Result<Termination, String> {
        let mut plan = Termination {
            targets: Vec::new(),
            spared,
        };
        for batch in chosen.chunks(BATCH) {
            let ids: Vec<&str> = batch.iter().map(|one| one.target.id.as_str()).collect();
            let known = instances_now(&ids, program)?;
            for one in batch {
                let mut target = one.target.clone();
                let spared = match one.check(&known, addresses) {
                    Ok(doubt) => {
                        target.doubts.extend(doubt);
                        (!is_shown && !target.doubts.is_empty()).then(|| {
                            let doubts = clause(&target.doubts);
                            format!("there is a doubt: {doubts}; without --yes you are asked")
                        })
                    }
                    Err(why) => Some(why),
                };
                match spared {
                    Some(why) => plan.spared.push(SparedHost::new(&target.host, why)),
                    None => plan.targets.push(target),
                }
            }
        }
        Ok(plan)
    }

    /// Text of the list, for confirmation. `kept` are the lines of the hosts that they are compared with.
    pub(super) fn text(&self, kept: &str) -> String {
        let mut text = match self.targets.len() {
            0 => "No instance is terminated.\n".to_owned(),
            many => format!("To be terminated: {}.\n", format::count(many, "instance")),
        };
        for one in &self.targets {
            let figure = one.figure.as_ref();
            let figure = figure.map_or_else(String::new, |figure| format!(" ({figure})"));
            text.push_str(&format!(
                "  {} ({}): {}{figure}.\n",
                one.host, one.id, one.why
            ));
            push_doubts(&mut text, &one.doubts);
        }
        text.push_str(kept);
        for one in &self.spared {
            text.push_str(&format!("  {}\n", one.sentence()));
        }
        text.pop();
        text
    }

    /// The ids of the targets.
    pub(super) fn ids(&self) -> Vec<String> {
        self.targets.iter().map(|one| one.id.clone()).collect()
    }

    /// Sets the state of instances.
    pub(super) fn set(&mut self, ids: &[String], state: Option<&str>) {
        for one in self.targets.iter_mut().filter(|one| ids.contains(&one.id)) {
            one.state = state.map(str::to_owned);
        }
    }
}

/// The hosts that are kept or tie, with their figures and doubts about these, one line each.
pub(super) fn kept_hosts(
    run: &FleetRun,
    record: &RaceRecord,
    concluded: &RaceConclusion,
) -> String {
    let is_kept = |one: &&RankedHost| matches!(one.decided, Decision::Keep | Decision::Tie);
    let mut text = String::new();
    for one in concluded.ranked.iter().filter(is_kept) {
        let name = run.name(one.place);
        let word = match one.decided {
            Decision::Tie => "ties",
            _ => "is kept",
        };
        let figure = one.known.map_or_else(String::new, |known| {
            let bounds = RankedFigure::of(&known, RankedBy::of(&record.figures)).bounds();
            let bounds = match bounds.as_str() {
                "" => bounds,
                bounds => format!(", within {bounds}"),
            };
            format!(" ({}{bounds})", figure_text(&known, record))
        });
        text.push_str(&format!("  {name} {word}{figure}.\n"));
        push_doubts(&mut text, &one.doubts);
    }
    text
}

fn push_doubts(text: &mut String, doubts: &[String]) {
    for doubt in doubts {
        text.push_str(&format!("    A doubt: {doubt}\n"));
    }
}
