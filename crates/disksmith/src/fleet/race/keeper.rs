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
    failed: Option<String>,
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
            failed: None,
        })
    }

    /// Keeps what is known now, unless it was kept a moment ago.
    pub(super) fn keep(&mut self, run: &FleetRun) {
        let began = Instant::now();
        if began < self.rested || self.failed.is_some() {
            return;
        }
        if let Err(why) = self.ledger.keep_work(&self.claim, run) {
            self.failed = Some(why.to_string());
        }
        self.rested = Instant::now() + began.elapsed() * REST;
    }

    /// Keeps the end of it. Why that cannot be done; `None` where it can.
    pub(super) fn finish(mut self, run: &FleetRun) -> Option<String> {
        let finished = self.ledger.finish_work(self.claim, run);
        finished.err().map(|why| why.to_string())
    }
}
