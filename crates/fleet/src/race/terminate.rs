//! `--terminate`: terminates the instances that a race measured to be bad, through the user's own `aws`.
//!
//! An instance is only terminated if all ten rules hold; any other bad host is spared, with the reason.
//!
//! 1. Each host on it was measured to be bad: worse than the hosts that are kept, below a floor, or with a broken
//!    disk; a race that was interrupted terminates nothing (`Terminator::terminate`, `choose`).
//! 2. No finding says that something other than the disks slowed it (`instance_of`).
//! 3. It is still the boot that was measured (`instance_of`), and EC2 started it before the race began
//!    (`Candidate::check`).
//! 4. A host of its group is kept or ties, and was there when the race was over (`instance_of`).
//! 5. The host's metadata service, or EC2 in this run, reported its instance id, which has the form of one and
//!    contradicts no other source (`instance_of`).
//! 6. No other host that stays is, or may be, on the same instance (`neighbour_doubt`).
//! 7. EC2 reports it as running and without the tag `keep`, when the list is made and again right before its batch,
//!    and the list of hosts has no tag `keep` for it (`Candidate::check`, `instance_of`).
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
use linux::aws::RunProgram;
use linux::remedy;

use crate::args::RaceArgs;
use crate::hosts::{Host, instances_now, is_keep};
use crate::race::conclude::RaceConclusion;
use crate::store::FleetRun;
use ui::confirm::confirm;
use ui::context::Context;
use ui::exit::{Failure, listed};

use crate::store::termination::{Termination, TerminationTarget, UNKNOWN, is_gone};
use address::{Addresses, look_up};
use aws::{BATCH, terminate};
pub(super) use aws::{DryRunError, check_permission};
use choice::{Candidate, ChoiceOptions, choose};

/// The ids in the source of the hosts, without those tagged `keep`.
///
/// # Errors
/// Sentences, if an id is not that of an EC2 instance.
pub(crate) fn ids_of(hosts: &[Host]) -> Result<Vec<String>, Vec<String>> {
    let (mut ids, mut wrong) = (Vec::new(), Vec::new());
    for host in hosts {
        let Some(id) = &host.id else {
            continue;
        };
        if !linux::aws::is_id(id, "i") {
            wrong.push(format!(
                "The id of {} is '{id}', which is none of an instance of EC2, as i-0123456789abcdef0 is; correct \
                 it, or leave the host out with --exclude.",
                host.name
            ));
        } else if !host.tags.keys().any(|name| is_keep(name)) {
            ids.push(id.clone());
        }
    }
    if wrong.is_empty() {
        Ok(ids)
    } else {
        Err(wrong)
    }
}

/// Terminates the instances that were measured to be bad, after the list was shown and confirmed.
///
/// # Errors
/// Failed midway, if EC2 cannot be queried or does not permit it, the ledger cannot be written, or the list is not
/// confirmed: the race is already over.
pub(super) fn carry_out(
    run: &mut FleetRun,
    concluded: &RaceConclusion,
    args: &RaceArgs,
    context: &Context,
    interrupt: &AtomicBool,
    writer: &CheckpointWriter<FleetRun>,
) -> Result<(), Failure> {
    let mut terminator = Terminator {
        program: &mut linux::aws::run,
        save: &mut |run| writer.save(run).map_err(|why| why.to_string()),
        confirm: &mut |notice| Ok(args.yes || confirm(notice, "terminated", interrupt)?),
        notice: &mut |text| context.notice(text),
        interrupt,
    };
    let options = ChoiceOptions {
        is_of_ec2: !args.source.ec2.is_empty(),
        is_shown: !args.yes,
    };
    terminator.terminate(run, concluded, options)
}

/// External effects of a termination: programs, the ledger, the user.
struct Terminator<'a> {
    /// Runs `aws` and `getent`.
    program: RunProgram<'a>,
    /// Saves the run to the ledger.
    save: &'a mut dyn FnMut(&FleetRun) -> Result<(), String>,
    /// Asks for confirmation after this text; true if it is given.
    confirm: &'a mut dyn FnMut(&str) -> Result<bool, Failure>,
    /// Reports something to the user.
    notice: &'a mut dyn FnMut(&str),
    /// Set by a signal.
    interrupt: &'a AtomicBool,
}

impl Terminator<'_> {
    /// Terminates the bad instances of a race. The run holds the list and the states, which its last save writes to
    /// the ledger.
    fn terminate(
        &mut self,
        run: &mut FleetRun,
        concluded: &RaceConclusion,
        options: ChoiceOptions,
    ) -> Result<(), Failure> {
        let none = |why: String| Failure::Midway(anyhow!("no instance was terminated: {why}"));
        let Some(record) = run.race.as_deref().filter(|record| !record.interrupted) else {
            return Ok(());
        };
        let (chosen, spared) = choose(run, record, concluded, options);
        let reached = chosen.iter().flat_map(|one| &one.alone);
        let addresses = look_up(reached, self.interrupt, self.program);
        let is_shown = options.is_shown;
        let plan = Termination::of(&chosen, spared, &addresses, is_shown, self.program);
        let mut plan = plan.map_err(none)?;
        (self.notice)(&plan.text(&list::kept_hosts(run, record, concluded)));
        if plan.targets.is_empty() {
            note(run, &plan);
            return Ok(());
        }
        // Before the question: an instance that is not in the ledger is not terminated.
        self.record(run, &plan).map_err(none)?;
        let ids = plan.ids();
        if let Err(error) = check_permission(&ids, self.program) {
            if error.may_be_gone.is_empty() {
                return Err(none(error.why));
            }
            plan.set(&error.may_be_gone, Some(UNKNOWN));
            // The last save tries again.
            let _ = self.record(run, &plan);
            return Err(Failure::Midway(anyhow!(error.why)));
        }
        let notice = "The listed instances will be terminated.";
        // The race is already done, whatever the answer.
        let agreed = (self.confirm)(notice).map_err(|why| Failure::Midway(why.error()))?;
        if !agreed {
            return Err(none("it was not confirmed".to_owned()));
        }
        if self.interrupt.load(Relaxed) {
            return Err(none("a signal came before".to_owned()));
        }
        let mut targets = chosen;
        targets.retain(|one| ids.contains(&one.target.id));
        let problems = self.execute(&targets, &mut plan, run);
        note(run, &plan);
        if problems.is_empty() {
            return Ok(());
        }
        Err(Failure::Midway(anyhow!(
            "some instances could not be terminated; the state of each is in the answer, and shown by \
             '{}':{}",
            remedy::command(&format!("fleet show {}", run.id)),
            listed(&problems)
        )))
    }

    /// Terminates instances batch by batch, and sets their states. Returns the problems, as sentences: a failed batch
    /// does not prevent others, unless the ledger cannot be written.
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
                Ok(ids) if ids.is_empty() => continue,
                Ok(ids) => ids,
                Err(why) => {
                    problems.push(why);
                    continue;
                }
            };
            // Whatever happens next, the ledger says that they may be gone.
            plan.set(&ids, Some(UNKNOWN));
            if let Err(why) = self.record(run, plan) {
                plan.set(&ids, None);
                problems.push(why);
                break;
            }
            problems.extend(self.end(&ids, plan));
        }
        problems
    }

    /// The ids of a batch that EC2 does not protect immediately before their termination; the others are spared.
    ///
    /// # Errors
    /// A sentence, if EC2 cannot be queried.
    fn still_targets(
        &mut self,
        batch: &[Candidate],
        plan: &mut Termination,
    ) -> Result<Vec<String>, String> {
        // Doubts were already shown, or have already spared a host.
        let fresh = Termination::of(batch, Vec::new(), &Addresses::new(), true, self.program)?;
        let ids = fresh.ids();
        for spared in fresh.spared {
            (self.notice)(&spared.sentence());
            plan.targets.retain(|one| one.host != spared.host);
            plan.spared.push(spared);
        }
        Ok(ids)
    }

    /// Terminates a batch, and sets the states. Returns the problems, as sentences.
    fn end(&mut self, ids: &[String], plan: &mut Termination) -> Vec<String> {
        let mut problems = Vec::new();
        match terminate(ids, self.program) {
            Ok(states) => states
                .into_iter()
                .for_each(|(id, state)| plan.set(&[id], Some(&state))),
            Err(why) => problems.push(why),
        }
        let is_left = |one: &TerminationTarget| ids.contains(&one.id) && !one.is_gone();
        if plan.targets.iter().any(is_left) {
            // An instance that still runs may do so only because the request is being processed.
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let known = instances_now(&ids, self.program).unwrap_or_default();
            for now in known.into_iter().filter(|now| is_gone(&now.state)) {
                plan.set(&[now.id], Some(&now.state));
            }
        }
        let left = plan.targets.iter().filter(|one| is_left(one));
        problems.extend(left.map(TerminationTarget::sentence));
        problems
    }

    /// Records the list and its states in the ledger.
    ///
    /// # Errors
    /// A sentence, if that is not possible.
    fn record(&mut self, run: &mut FleetRun, plan: &Termination) -> Result<(), String> {
        note(run, plan);
        (self.save)(run).map_err(|why| {
            format!(
                "the ledger cannot be written ({why}), and only instances that are recorded there \
                 are terminated."
            )
        })
    }
}

/// Copies the list and the states of its instances to the run.
fn note(run: &mut FleetRun, plan: &Termination) {
    if let Some(record) = &mut run.race {
        record.termination = Some(plan.clone());
    }
}

#[cfg(test)]
mod tests;
