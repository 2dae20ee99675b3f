//! List of the instances to terminate and of the hosts to spare, as shown, agreed to and kept in the ledger.

use crate::race::conclude::{Decision, RaceConclusion, RankedHost};
use crate::race::ranked_by::RankedBy;
use crate::race::report::{RankedFigure, figure_text};
use crate::race::terminate::aws::{BATCH, RunProgram};
use crate::race::terminate::choice::{Candidate, now};
use crate::store::FleetRun;
use crate::store::race::RaceRecord;
use crate::store::termination::{SparedHost, Termination, UNKNOWN, is_gone};

impl Termination {
    /// Those of the chosen that EC2 does not protect now. Where the list is shown, what may be another
    /// instance is in it with that doubt.
    ///
    /// # Errors
    /// A sentence, where EC2 cannot be asked.
    pub(super) fn of(
        chosen: &[Candidate],
        spared: Vec<SparedHost>,
        is_shown: bool,
        program: RunProgram<'_>,
    ) -> Result<Termination, String> {
        let mut plan = Termination {
            targets: Vec::new(),
            spared,
        };
        for batch in chosen.chunks(BATCH) {
            let known = now(batch.iter(), program)?;
            for one in batch {
                let doubt = one.doubt(&known);
                match (one.protection(&known), doubt) {
                    (Some(why), _) => plan.spared.push(SparedHost::new(&one.target.host, why)),
                    (None, Some(why)) if !is_shown => {
                        let why = format!("{why}; without --yes you are asked");
                        plan.spared.push(SparedHost::new(&one.target.host, why));
                    }
                    (None, doubt) => {
                        let mut targets = one.target.clone();
                        targets.doubts.extend(doubt.map(|why| format!("{why}.")));
                        plan.targets.push(targets);
                    }
                }
            }
        }
        Ok(plan)
    }

    /// Text of the list, for the user to agree to. `kept` are the lines of those that they are compared with.
    pub(super) fn text(&self, kept: &str) -> String {
        let mut text = match self.targets.len() {
            0 => "No instance is terminated.\n".to_owned(),
            1 => "To be terminated is 1 instance:\n".to_owned(),
            count => format!("To be terminated are {count} instances:\n"),
        };
        for one in &self.targets {
            let figure = one.figure.as_ref();
            let figure = figure.map_or_else(String::new, |figure| format!(" ({figure})"));
            text.push_str(&format!(
                "  {} ({}): {}{figure}.\n",
                one.host, one.id, one.why
            ));
            for doubt in &one.doubts {
                text.push_str(&format!("    A doubt: {doubt}\n"));
            }
        }
        text.push_str(kept);
        for one in &self.spared {
            text.push_str(&format!("  {}\n", one.sentence()));
        }
        text.pop();
        text
    }

    pub(super) fn set(&mut self, id: &str, state: Option<&str>) {
        for one in self.targets.iter_mut().filter(|one| one.id == id) {
            one.state = state.map(str::to_owned);
        }
    }

    fn state(&self, id: &str) -> Option<&str> {
        let mut targets = self.targets.iter();
        targets.find(|one| one.id == id)?.state.as_deref()
    }

    /// True where EC2 reports that the instance is or will be gone.
    pub(super) fn is_gone(&self, id: &str) -> bool {
        self.state(id).is_some_and(is_gone)
    }

    /// Message that an instance may not be gone; `None` where it is.
    pub(super) fn not_gone(&self, id: &str) -> Option<String> {
        match self.state(id) {
            Some(state) if is_gone(state) => None,
            None | Some(UNKNOWN) => Some(format!(
                "The state of {id} is unknown; check it with 'aws ec2 describe-instances --instance-ids {id}'."
            )),
            Some(state) => Some(format!(
                "EC2 was asked to terminate {id}, and answered that it is {state}."
            )),
        }
    }

    /// Lets an instance stay after all.
    pub(super) fn spare(&mut self, id: &str, why: String) -> Option<&SparedHost> {
        let at = self.targets.iter().position(|one| one.id == id)?;
        let one = self.targets.remove(at);
        self.spared.push(SparedHost::new(&one.host, why));
        self.spared.last()
    }
}

/// The hosts that are kept or tie with their figures and what is doubtful of them, a line each.
pub(super) fn kept(run: &FleetRun, record: &RaceRecord, concluded: &RaceConclusion) -> String {
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
        for doubt in &one.doubts {
            text.push_str(&format!("    A doubt: {doubt}\n"));
        }
    }
    text
}
