//! Keeps a race in the ledger while it runs.

use std::time::Instant;

use ledger::{Claim, Ledger};

use crate::store::FleetRun;
use job::process::ProcessIdentity;
use ui::exit::{ExitClass as _, Failure};

/// Pause after a write, as a multiple of the time that it took.
const REST: u32 = 3;

/// Keeps a race in the ledger while it runs.
pub(super) struct Keeper {
    ledger: Ledger,
    claim: Claim<FleetRun>,
    /// End of that pause: each write puts all of the race.
    rested: Instant,
    /// True where the last write failed.
    is_failing: bool,
}

impl Keeper {
    /// Begins it.
    ///
    /// # Errors
    /// Refused, where the ledger cannot be written.
    pub(super) fn begin(
        mut ledger: Ledger,
        here: &ProcessIdentity,
        run: &FleetRun,
    ) -> Result<Keeper, Failure> {
        let standing = |owner: &ledger::Owner| here.standing(owner);
        let claim = ledger.begin_work(&run.id, here.owner(), run, standing);
        Ok(Keeper {
            claim: claim.refused()?,
            ledger,
            rested: Instant::now(),
            is_failing: false,
        })
    }

    /// Keeps what is known now, unless that was tried a moment ago. Where it cannot be kept, that is told
    /// once, and tried again the next time.
    pub(super) fn keep(&mut self, run: &FleetRun, tell: &mut dyn FnMut(&str)) {
        if Instant::now() < self.rested {
            return;
        }
        let was_failing = self.is_failing;
        match self.keep_now(run) {
            Err(why) if !was_failing => tell(&format!(
                "disksmith: the race cannot be kept in the ledger: {why}. It goes on, and that is \
                 tried again after each round; make room there."
            )),
            Ok(()) if was_failing => tell("disksmith: the race is in the ledger again."),
            _ => {}
        }
    }

    /// Keeps what is known now.
    ///
    /// # Errors
    /// Why it cannot be kept, as a sentence without its end.
    pub(super) fn keep_now(&mut self, run: &FleetRun) -> Result<(), String> {
        let began = Instant::now();
        let kept = self.ledger.keep_work(&self.claim, run);
        self.rested = Instant::now() + began.elapsed() * REST;
        self.is_failing = kept.is_err();
        kept.map_err(|why| why.to_string())
    }

    /// Keeps the end of it.
    ///
    /// # Errors
    /// A sentence, where that cannot be done: what of the race is in the ledger all the same.
    pub(super) fn finish(mut self, run: &FleetRun) -> Result<(), String> {
        let finished = self.ledger.finish_work(self.claim, run);
        finished.map_err(|why| match self.is_failing {
            true => format!("the race is not in the ledger as it ended: {why}."),
            false => format!("the race is in the ledger, but not that it is over: {why}."),
        })
    }

    /// Forgets a race that never began.
    pub(super) fn forget(mut self) {
        // Where that cannot be done, it stays as one that was not finished.
        let _ = self.ledger.drop_work(self.claim);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ledger::LongWork as _;

    use super::*;
    use crate::race::test_races;

    #[test]
    fn a_ledger_that_fails_is_told_once_and_tried_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ledger.db");
        let here = ProcessIdentity::of_process(&linux::Root::host(), Path::new("/etc")).unwrap();
        let run = test_races::raced(&[1000.0, 900.0, 500.0]);
        let ledger = Ledger::open(&path).unwrap();
        let mut keeper = Keeper::begin(ledger, &here, &run).unwrap();
        let mut told: Vec<String> = Vec::new();
        let mut keep = |keeper: &mut Keeper| {
            keeper.rested = Instant::now();
            keeper.keep(&run, &mut |text| told.push(text.to_owned()));
        };
        keep(&mut keeper);
        // The claim of a run that is not there any more.
        let other = FleetRun {
            id: "other".to_owned(),
            ..run.clone()
        };
        let mut ledger = Ledger::open(&path).unwrap();
        let lost = Keeper::begin(Ledger::open(&path).unwrap(), &here, &other).unwrap();
        let dead = |_: &ledger::Owner| ledger::OwnerLiveness::Dead;
        ledger.remove_work(FleetRun::KIND, "other", dead).unwrap();
        let claim = std::mem::replace(&mut keeper.claim, lost.claim);
        keep(&mut keeper);
        keep(&mut keeper);
        assert!(keeper.keep_now(&run).is_err());
        keeper.claim = claim;
        keep(&mut keeper);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("cannot be kept"), "{told:?}");
        assert!(told[1].contains("again"), "{told:?}");
        assert_eq!(keeper.finish(&run), Ok(()));
    }

    #[test]
    fn what_is_in_the_ledger_is_told_where_the_end_of_the_race_cannot_be() {
        for (is_kept, told) in [(true, "but not that it is over"), (false, "as it ended")] {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("ledger.db");
            let here =
                ProcessIdentity::of_process(&linux::Root::host(), Path::new("/etc")).unwrap();
            let run = test_races::raced(&[1000.0, 900.0, 500.0]);
            let mut keeper = Keeper::begin(Ledger::open(&path).unwrap(), &here, &run).unwrap();
            if is_kept {
                keeper.keep_now(&run).unwrap();
            }
            let mut ledger = Ledger::open(&path).unwrap();
            let dead = |_: &ledger::Owner| ledger::OwnerLiveness::Dead;
            ledger.remove_work(FleetRun::KIND, &run.id, dead).unwrap();
            if !is_kept {
                assert!(keeper.keep_now(&run).is_err());
            }
            let why = keeper.finish(&run).unwrap_err();
            assert!(why.contains(told), "{why}");
        }
    }
}
