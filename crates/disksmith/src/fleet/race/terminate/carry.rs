//! Carries a termination out, after the list was shown and agreed to.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::anyhow;

use super::super::super::agree::is_agreed;
use super::super::conclude::Concluded;
use super::super::keeper::Keeper;
use super::{Termination, check_permission, really};
use crate::cli::RaceArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::fleet::run::FleetRun;

/// A race that has ended.
pub(in super::super) struct Ended<'a> {
    /// What it came to.
    pub concluded: &'a Concluded,
    /// What was asked for.
    pub args: &'a RaceArgs,
    /// Whether the user wants the end.
    pub interrupt: &'a AtomicBool,
}

impl Ended<'_> {
    /// Terminates the instances that were measured to be bad, after the list was shown and agreed to.
    ///
    /// # Errors
    /// Failed midway, where EC2 cannot be asked, does not allow it, nobody agrees, or the ledger cannot be
    /// written: the race is over by then.
    pub(in super::super) fn carry_out(
        &self,
        run: &mut FleetRun,
        context: &Context,
        keeper: &mut Keeper,
    ) -> Result<(), Failure> {
        let midway = |why: String| Failure::Midway(anyhow!("no instance was terminated: {why}"));
        let Some(mut plan) = self.plan(run).map_err(midway)? else {
            return Ok(());
        };
        context.tell(&plan.text());
        let ids = plan.ids(0..plan.doomed.len());
        if !ids.is_empty() {
            check_permission(&ids, &mut really).map_err(midway)?;
            if !self.is_wanted(ids.len())? {
                return Err(midway("nobody has agreed".to_owned()));
            }
            // The question may have stood for a night.
            let now = self.plan(run).map_err(midway)?.unwrap_or_default();
            plan.keep_only(&now)
                .iter()
                .for_each(|sentence| context.tell(sentence));
        }
        let executed = plan.execute(&mut really, &mut |plan| {
            if self.interrupt.load(Relaxed) {
                return Err("Nothing more was terminated, since that was interrupted.".to_owned());
            }
            if let Some(record) = &mut run.race {
                record.termination = Some(plan.clone());
            }
            keeper.keep_now(run).map_err(|why| {
                format!("Nothing more was terminated, since the ledger cannot be written: {why}.")
            })
        });
        if let Some(record) = &mut run.race {
            record.termination = Some(plan);
        }
        executed.map_err(|why| {
            Failure::Midway(anyhow!(
                "not all instances were terminated; 'disksmith fleet show {}' says which were: {why}",
                run.id
            ))
        })
    }

    /// Who is terminated as things are now; `None` where the race was ended before it was over.
    fn plan(&self, run: &FleetRun) -> Result<Option<Termination>, String> {
        let Some(record) = run.race.as_deref().filter(|record| !record.interrupted) else {
            return Ok(None);
        };
        let (is_of_ec2, is_asked) = (!self.args.source.ec2.is_empty(), !self.args.yes);
        let program = &mut really;
        Termination::plan(run, record, self.concluded, is_of_ec2, is_asked, program).map(Some)
    }

    /// Whether somebody agrees.
    fn is_wanted(&self, count: usize) -> Result<bool, Failure> {
        let words = format!("These {count} instances will be terminated.");
        let is_agreed = self.args.yes
            || is_agreed(&words, "terminated", self.interrupt)
                // Much was done by now, whatever is answered.
                .map_err(|failure| Failure::Midway(failure.error()))?;
        Ok(is_agreed && !self.interrupt.load(Relaxed))
    }
}
