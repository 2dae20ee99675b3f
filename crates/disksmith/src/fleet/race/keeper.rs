//! Keeps a race in the ledger while it runs.

use std::time::Instant;

use ledger::{Claim, Ledger};

use super::super::run::FleetRun;
use crate::failure::{Failure, Standing as _};
use crate::longwork::Here;

/// How many times as long as the last write nothing is written.
const REST: u32 = 3;

/// Keeps a race in the ledger while it runs.
pub(super) struct Keeper {
    ledger: Ledger,
    claim: Claim<FleetRun>,
    /// Until when nothing is written: all of the race is, each time.
    rested: Instant,
    /// Whether it was told that it cannot be kept.
    has_told: bool,
}

impl Keeper {
    /// Begins it.
    ///
    /// # Errors
    /// Refused, where the ledger cannot be written.
    pub(super) fn begin(
        mut ledger: Ledger,
        here: &Here,
        run: &FleetRun,
    ) -> Result<Keeper, Failure> {
        let standing = |owner: &ledger::Owner| here.standing(owner);
        let claim = ledger.begin_work(&run.id, here.owner(), run, standing);
        Ok(Keeper {
            claim: claim.refused()?,
            ledger,
            rested: Instant::now(),
            has_told: false,
        })
    }

    /// Keeps what is known now, unless it was kept a moment ago. The first time that this fails is told; it
    /// is tried again all the same.
    pub(super) fn keep(&mut self, run: &FleetRun) {
        if Instant::now() < self.rested {
            return;
        }
        let kept = self.keep_now(run);
        if let Err(why) = kept
            && !self.has_told
        {
            self.has_told = true;
            crate::context::tell(&format!(
                "disksmith: the ledger does not take the race at the moment: {why}."
            ));
        }
    }

    /// Keeps what is known now.
    ///
    /// # Errors
    /// A sentence without its end, where the ledger cannot be written.
    pub(super) fn keep_now(&mut self, run: &FleetRun) -> Result<(), String> {
        let began = Instant::now();
        let kept = self.ledger.keep_work(&self.claim, run);
        self.rested = Instant::now() + began.elapsed() * REST;
        kept.map_err(|why| why.to_string())
    }

    /// Keeps the end of it. Why that cannot be done; `None` where it can.
    pub(super) fn finish(mut self, run: &FleetRun) -> Option<String> {
        let finished = self.ledger.finish_work(self.claim, run);
        finished.err().map(|why| why.to_string())
    }
}
