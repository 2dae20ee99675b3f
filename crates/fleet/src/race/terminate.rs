//! `--terminate`: terminates the instances that a race measured to be bad, through the user's own `aws`.
//!
//! An instance is terminated only where all ten rules hold; each other bad host is spared with the reason.
//!
//! 1. Each host on it was measured to be bad: worse than the hosts that are kept, below a floor, or with a broken
//!    disk; a race that was interrupted terminates nothing (`choose`).
//! 2. No finding says that something other than the disks slowed it (`doubt`).
//! 3. It is still the boot that was measured (`doubt`), and EC2 started it before the race began
//!    (`Candidate::protection`).
//! 4. A host of its group is kept or ties, and was there when the race was over (`doubt`).
//! 5. The host's metadata service, or EC2 in this run, reported its instance id, which has the form of one and
//!    contradicts no other source (`id_of`).
//! 6. No other host that stays is, or may be, on the same instance (`housemate`).
//! 7. EC2 reports it as running and without the tag `keep`, when the list is made and again right before its batch,
//!    and the list of hosts has no tag `keep` for it (`Candidate::protection`, `id_of`).
//! 8. A dry run, of one instance alone at first, is answered `DryRunOperation` (`check_permission`).
//! 9. The user saw the list with all doubts and agreed; with `--yes` a host is spared also for any doubt about its
//!    figures, its address or those it was compared with, and where its group keeps fewer than were wanted.
//! 10. The ledger has recorded the list before the question, and each batch as `unknown` before its command; the
//!     state that EC2 then reports takes the place of `unknown`. A batch that fails stops no other; a ledger that
//!     cannot be written stops all that are left.

mod address;
mod aws;
mod choice;
mod list;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::anyhow;
use job::CheckpointWriter;

use crate::args::RaceArgs;
use crate::hosts::{Host, InstanceState, instances_now, is_keep};
use crate::race::conclude::RaceConclusion;
use crate::store::FleetRun;
use ui::confirm::confirm;
use ui::context::Context;
use ui::exit::{Failure, listed};

use crate::store::termination::{Termination, UNKNOWN, is_gone};
use address::Resolve;
use aws::{BATCH, RunProgram, terminate};
pub(super) use aws::{DryRunError, check_permission, really};
use choice::{Candidate, ChoiceOptions, choose, now};

/// The ids that the source of the hosts knows, without those that it tags `keep`.
///
/// # Errors
/// Sentences, where an id is none of an instance of EC2.
pub(crate) fn ids_of(hosts: &[Host]) -> Result<Vec<String>, Vec<String>> {
    let given = || {
        hosts
            .iter()
            .filter_map(|host| Some((host, host.id.as_ref()?)))
    };
    let wrong: Vec<String> = given()
        .filter(|(_, id)| !linux::aws::is_id(id, "i"))
        .map(|(host, id)| {
            format!(
                "The id of {} is '{id}', which is none of an instance of EC2, as i-0123456789abcdef0 is; correct \
                 it, or leave the host out with --exclude.",
                host.name
            )
        })
        .collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let is_kept = |host: &Host| host.tags.keys().any(|name| is_keep(name));
    let mortal = given().filter(|(host, _)| !is_kept(host));
    Ok(mortal.map(|(_, id)| id.clone()).collect())
}

/// Terminates the instances that were measured to be bad, after the list was shown and agreed to.
///
/// # Errors
/// Failed midway, where EC2 cannot be asked, does not allow it, the ledger cannot be written, or the list
/// is not confirmed: the race is over by then.
pub(super) fn carry_out(
    run: &mut FleetRun,
    concluded: &RaceConclusion,
    args: &RaceArgs,
    context: &Context,
    interrupt: &AtomicBool,
    writer: &CheckpointWriter<FleetRun>,
) -> Result<(), Failure> {
    let names = run
        .race
        .as_deref()
        .map(|record| address::names(run, record, concluded));
    let names = names.unwrap_or_default();
    let found = address::found(names, address::LOOKUP_TIMEOUT, interrupt, address::really);
    let mut terminator = Terminator {
        program: &mut really,
        resolve: &mut |name| found.get(name).cloned().unwrap_or_default(),
        keep: &mut |run| writer.save(run).map_err(|why| why.to_string()),
        confirm: &mut |words| Ok(args.yes || confirm(words, "terminated", interrupt)?),
        notice: &mut |text| context.notice(text),
        interrupt,
    };
    let asked = ChoiceOptions {
        is_of_ec2: !args.source.ec2.is_empty(),
        is_shown: !args.yes,
    };
    terminator.terminate(run, concluded, asked)
}

/// Everything that a termination needs from outside: programs, names, the ledger, the user.
struct Terminator<'a> {
    /// Runs `aws`.
    program: RunProgram<'a>,
    /// Asks for the addresses of a name.
    resolve: Resolve<'a>,
    /// Puts the run to the ledger.
    keep: &'a mut dyn FnMut(&FleetRun) -> Result<(), String>,
    /// Shows this text and asks for agreement; true where it is given.
    confirm: &'a mut dyn FnMut(&str) -> Result<bool, Failure>,
    /// Reports something to the user.
    notice: &'a mut dyn FnMut(&str),
    /// Set by a signal.
    interrupt: &'a AtomicBool,
}

impl Terminator<'_> {
    fn terminate(
        &mut self,
        run: &mut FleetRun,
        concluded: &RaceConclusion,
        asked: ChoiceOptions,
    ) -> Result<(), Failure> {
        let none = |why: String| Failure::Midway(anyhow!("no instance was terminated: {why}"));
        let Some(record) = run.race.as_deref().filter(|record| !record.interrupted) else {
            return Ok(());
        };
        let (chosen, spared) = choose(run, record, concluded, asked, self.resolve);
        let mut plan =
            Termination::of(&chosen, spared, asked.is_shown, self.program).map_err(none)?;
        (self.notice)(&plan.text(&list::kept(run, record, concluded)));
        if plan.targets.is_empty() {
            note(run, &plan);
            return Ok(());
        }
        // Before the user is asked: what is not in the ledger is not done.
        self.record(run, &plan).map_err(none)?;
        let ids: Vec<String> = plan.targets.iter().map(|one| one.id.clone()).collect();
        check_permission(&ids, self.program).map_err(|why| match why {
            DryRunError::Refused(why) => none(why),
            DryRunError::MayBeGone(_) => self.dry_run_failed(&why, &mut plan, run),
        })?;
        let words = match ids.len() {
            1 => "This instance will be terminated.".to_owned(),
            count => format!("These {count} instances will be terminated."),
        };
        // Much was done by now, whatever is answered.
        let agreed = (self.confirm)(&words).map_err(|why| Failure::Midway(why.error()))?;
        if !agreed {
            return Err(none("it was not confirmed".to_owned()));
        }
        if self.interrupt.load(Relaxed) {
            return Err(none("a signal came before".to_owned()));
        }
        let is_target = |one: &&Candidate| ids.contains(&one.target.id);
        let targets: Vec<Candidate> = chosen.iter().filter(is_target).cloned().collect();
        let problems = self.execute(&targets, &mut plan, run);
        if problems.is_empty() {
            return Ok(());
        }
        Err(Failure::Midway(anyhow!(
            "some instances could not be terminated; the state of each is in the answer, and shown by \
             'disksmith fleet show {}':{}",
            run.id,
            listed(&problems)
        )))
    }

    /// Notes what may have been terminated instead of a rehearsal, and ends the race with it.
    fn dry_run_failed(
        &mut self,
        why: &DryRunError,
        plan: &mut Termination,
        run: &mut FleetRun,
    ) -> Failure {
        if let DryRunError::MayBeGone(ids) = why {
            ids.iter().for_each(|id| plan.set(id, Some(UNKNOWN)));
            self.note_gone(ids, plan);
        }
        note(run, plan);
        let mut problems = vec![why.sentence()];
        problems.extend((self.keep)(run).err().map(|why| {
            format!(
                "The ledger cannot be written either ({why}), and has it that none of them is terminated, which may \
                 not be so."
            )
        }));
        Failure::Midway(anyhow!("{}", problems.join(" ")))
    }

    /// Terminates those, batch by batch, and notes what came of each. What went wrong, as sentences: one
    /// batch that fails is no reason to leave another, unless the ledger cannot be written.
    fn execute(
        &mut self,
        targets: &[Candidate],
        plan: &mut Termination,
        run: &mut FleetRun,
    ) -> Vec<String> {
        let mut problems = Vec::new();
        for batch in targets.chunks(BATCH) {
            if self.interrupt.load(Relaxed) {
                problems.push("Interrupted; those that are left were not terminated.".to_owned());
                break;
            }
            let ids = match self.still_targets(batch, plan) {
                Ok(ids) => ids,
                Err(why) => {
                    problems.push(why);
                    continue;
                }
            };
            if ids.is_empty() {
                continue;
            }
            // Whatever comes in between, it is known that they may be gone.
            ids.iter().for_each(|id| plan.set(id, Some(UNKNOWN)));
            if let Err(why) = self.record(run, plan) {
                ids.iter().for_each(|id| plan.set(id, None));
                problems.push(why);
                break;
            }
            problems.extend(self.end(&ids, plan));
            if let Err(why) = self.record(run, plan) {
                problems.push(why);
                break;
            }
        }
        note(run, plan);
        problems
    }

    /// The ids of a batch against which EC2 says nothing right before they are terminated; the others
    /// are spared.
    ///
    /// # Errors
    /// A sentence, where EC2 cannot be asked.
    fn still_targets(
        &mut self,
        batch: &[Candidate],
        plan: &mut Termination,
    ) -> Result<Vec<String>, String> {
        let known = now(batch.iter(), self.program)?;
        let mut ids = Vec::new();
        for one in batch {
            match one.protection(&known) {
                Some(why) => {
                    if let Some(spared) = plan.spare(&one.target.id, why) {
                        (self.notice)(&spared.sentence());
                    }
                }
                None => ids.push(one.target.id.clone()),
            }
        }
        Ok(ids)
    }

    /// Terminates a batch. What went wrong, as sentences.
    fn end(&mut self, ids: &[String], plan: &mut Termination) -> Vec<String> {
        let mut problems = Vec::new();
        match terminate(ids, self.program) {
            Ok(states) => {
                for (id, state) in states.iter().filter(|(id, _)| ids.contains(id)) {
                    plan.set(id, Some(state));
                }
            }
            Err(why) => problems.push(why),
        }
        if !ids.iter().all(|id| plan.is_gone(id)) {
            self.note_gone(ids, plan);
        }
        problems.extend(ids.iter().filter_map(|id| plan.not_gone(id)));
        problems
    }

    /// Notes which of these EC2 says to be gone. That one runs still may only be so because the request is on
    /// its way.
    fn note_gone(&mut self, ids: &[String], plan: &mut Termination) {
        let words: Vec<&str> = ids.iter().map(String::as_str).collect();
        let known = instances_now(&words, self.program).unwrap_or_default();
        let is_gone = |now: &&InstanceState| is_gone(&now.state) && ids.contains(&now.id);
        for now in known.iter().filter(is_gone) {
            plan.set(&now.id, Some(&now.state));
        }
    }

    /// Records the list and its states in the ledger.
    ///
    /// # Errors
    /// A sentence, where that cannot be done.
    fn record(&mut self, run: &mut FleetRun, plan: &Termination) -> Result<(), String> {
        note(run, plan);
        (self.keep)(run).map_err(|why| {
            format!(
                "the ledger cannot be written ({why}), and only instances that are recorded there \
                 are terminated."
            )
        })
    }
}

/// Puts to the run who is terminated, and what came of it.
fn note(run: &mut FleetRun, plan: &Termination) {
    if let Some(record) = &mut run.race {
        record.termination = Some(plan.clone());
    }
}

#[cfg(test)]
mod tests;
