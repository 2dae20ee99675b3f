//! The jobs in the ledger, and the ownership of one.

use std::borrow::BorrowMut;
use std::path::Path;

use ledger::{Claim, Ledger, LongWork, Owner, OwnerLiveness, StoredWork, WorkSummary};
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

use crate::process::ProcessIdentity;

/// The folder of the host's settings, which contains the machine id.
const ETC: &str = "/etc";

/// The owners from whom an unfinished job may be taken, in addition to those on this host that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// From no other owner.
    FromDead,
    /// From owners on other hosts and in other containers too. A device is only on the host where it is attached: an
    /// owner on another host has lost it, and otherwise nothing is lost except the time for doing work twice.
    WithTarget,
    /// From those, and from this process, which has claimed the job before to clean up after a kill.
    WithTargetOrOwn,
}

impl Takeover {
    fn judge(self, own: &ProcessIdentity, owner: &Owner) -> OwnerLiveness {
        match (own.liveness(owner), self) {
            (OwnerLiveness::Elsewhere, Takeover::WithTarget | Takeover::WithTargetOrOwn) => {
                OwnerLiveness::Dead
            }
            (OwnerLiveness::Alive, Takeover::WithTargetOrOwn) if owner == own.owner() => {
                OwnerLiveness::Dead
            }
            (liveness, _) => liveness,
        }
    }
}

/// The ledger, and this process as an owner of jobs.
#[derive(Debug)]
pub struct JobStore {
    ledger: Ledger,
    identity: ProcessIdentity,
}

impl JobStore {
    /// The jobs of a ledger, for the process `identity`.
    pub fn new(ledger: Ledger, identity: ProcessIdentity) -> JobStore {
        JobStore { ledger, identity }
    }

    /// The jobs of the user's ledger, which is created if there is none.
    ///
    /// # Errors
    /// Refused, if it cannot be opened, or the identity of this process cannot be determined.
    pub fn open(context: &Context) -> Result<JobStore, Failure> {
        JobStore::of(context.open_ledger()?, context)
    }

    /// The same; `None` if there is no ledger.
    ///
    /// # Errors
    /// As [`JobStore::open`].
    pub fn open_if_there(context: &Context) -> Result<Option<JobStore>, Failure> {
        let ledger = context.open_ledger_if_there()?;
        ledger
            .map(|ledger| JobStore::of(ledger, context))
            .transpose()
    }

    fn of(ledger: Ledger, context: &Context) -> Result<JobStore, Failure> {
        let identity = ProcessIdentity::of_process(&context.root, Path::new(ETC)).refused()?;
        Ok(JobStore::new(ledger, identity))
    }

    /// Ledger of the jobs.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The ledger, to save runs beside the job.
    pub fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// The ledger alone.
    pub fn into_ledger(self) -> Ledger {
        self.ledger
    }

    /// Identity of this process as an owner.
    pub fn owner(&self) -> &Owner {
        self.identity.owner()
    }

    /// Liveness of an owner.
    pub fn liveness(&self, owner: &Owner) -> OwnerLiveness {
        self.identity.liveness(owner)
    }

    /// The job with a key and its last checkpoint, finished or not.
    ///
    /// # Errors
    /// When the ledger or the checkpoint cannot be read.
    pub fn find<W: LongWork>(&self, key: &str) -> ledger::Result<Option<StoredWork<W>>> {
        self.ledger.work::<W>(key)
    }

    /// The unfinished jobs of a kind whose owner satisfies `is_wanted`, with their last checkpoints, the newest first.
    /// Each is read when the iterator reaches it.
    ///
    /// # Errors
    /// When the ledger, or one of the checkpoints, cannot be read.
    pub fn unfinished<W: LongWork>(
        &self,
        is_wanted: impl Fn(OwnerLiveness) -> bool,
    ) -> ledger::Result<impl Iterator<Item = ledger::Result<StoredWork<W>>>> {
        let works = self.ledger.unfinished::<W>()?.into_iter();
        let wanted = works.filter(move |work| is_wanted(self.liveness(&work.owner)));
        // A missing one was removed a moment ago.
        Ok(wanted.filter_map(move |work| self.find::<W>(&work.key).transpose()))
    }

    /// The unfinished jobs of a kind whose owners have ended on this host, the oldest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn abandoned<W: LongWork>(&self) -> ledger::Result<Vec<WorkSummary>> {
        let mut works = self.ledger.unfinished::<W>()?;
        works.retain(|work| self.liveness(&work.owner) == OwnerLiveness::Dead);
        works.reverse();
        Ok(works)
    }

    /// Removes a job, unless its owner may be working on it.
    ///
    /// # Errors
    /// When the ledger cannot be written, there is no such job, or it may not be taken over.
    pub fn remove<W: LongWork>(&mut self, key: &str, from: Takeover) -> ledger::Result<()> {
        let own = &self.identity;
        self.ledger
            .remove_work(W::KIND, key, |owner| from.judge(own, owner))
    }
}

/// A job that this process owns. `S` is the store, or a borrowed one.
#[derive(Debug)]
pub struct OwnedJob<W, S = JobStore> {
    store: S,
    claim: Claim<W>,
}

impl<W: LongWork, S: BorrowMut<JobStore>> OwnedJob<W, S> {
    /// Begins a job with its first checkpoint. A finished job with the same key is replaced.
    ///
    /// # Errors
    /// When the ledger cannot be written, or there is an unfinished job with this key.
    pub fn begin(mut store: S, key: &str, checkpoint: &W, from: Takeover) -> ledger::Result<Self> {
        let JobStore { ledger, identity } = store.borrow_mut();
        let judge = |owner: &Owner| from.judge(identity, owner);
        let claim = ledger.begin_work(key, identity.owner(), checkpoint, judge)?;
        Ok(OwnedJob { store, claim })
    }

    /// Claims an unfinished job, and returns its last checkpoint.
    ///
    /// # Errors
    /// When there is none, its owner may be alive, or the ledger cannot be used.
    pub fn claim(mut store: S, key: &str, from: Takeover) -> ledger::Result<(Self, StoredWork<W>)> {
        let JobStore { ledger, identity } = store.borrow_mut();
        let judge = |owner: &Owner| from.judge(identity, owner);
        let (claim, work) = ledger.claim_work::<W>(key, identity.owner(), judge)?;
        Ok((OwnedJob { store, claim }, work))
    }

    /// Claims the unfinished job with a key, or begins it with `checkpoint`.
    ///
    /// # Errors
    /// As [`OwnedJob::begin`] and [`OwnedJob::claim`].
    pub fn open(store: S, key: &str, checkpoint: &W, from: Takeover) -> ledger::Result<Self> {
        let found = store.borrow().find::<W>(key)?;
        if found.is_none_or(|work| work.summary.finished.is_some()) {
            return OwnedJob::begin(store, key, checkpoint, from);
        }
        let (mut job, _) = OwnedJob::claim(store, key, from)?;
        job.save(checkpoint)?;
        Ok(job)
    }

    /// The key of the job.
    pub fn key(&self) -> &str {
        self.claim.key()
    }

    /// The store of the job.
    pub fn store_mut(&mut self) -> &mut JobStore {
        self.store.borrow_mut()
    }

    /// Writes a checkpoint. It is on the disk when this returns; a kill before that leaves the preceding one.
    ///
    /// # Errors
    /// When the ledger cannot be written, or another process has taken the job.
    pub fn save(&mut self, checkpoint: &W) -> ledger::Result<()> {
        let ledger = &mut self.store.borrow_mut().ledger;
        ledger.keep_work(&self.claim, checkpoint)
    }

    /// Writes the last checkpoint of a finished job.
    ///
    /// # Errors
    /// As [`OwnedJob::save`].
    pub fn finish(mut self, checkpoint: &W) -> ledger::Result<S> {
        let ledger = &mut self.store.borrow_mut().ledger;
        ledger.finish_work(self.claim, checkpoint)?;
        Ok(self.store)
    }

    /// Writes a checkpoint, and releases the job, so that another process may claim it while this one runs.
    ///
    /// # Errors
    /// As [`OwnedJob::save`].
    pub fn release(mut self, checkpoint: &W) -> ledger::Result<S> {
        let ledger = &mut self.store.borrow_mut().ledger;
        ledger.release_work(self.claim, checkpoint)?;
        Ok(self.store)
    }

    /// Leaves a job unfinished; the next start continues from its last checkpoint.
    pub fn suspend(self) -> S {
        self.store
    }

    /// Removes a job that needs no record.
    ///
    /// # Errors
    /// As [`OwnedJob::save`].
    pub fn discard(mut self) -> ledger::Result<S> {
        let ledger = &mut self.store.borrow_mut().ledger;
        ledger.drop_work(self.claim)?;
        Ok(self.store)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use linux::Root;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub(crate) struct Count(pub u64);

    impl LongWork for Count {
        const KIND: &'static str = "count";
        const FORM: u32 = 1;
    }

    pub(crate) fn store(folder: &Path) -> JobStore {
        let identity = ProcessIdentity::of_process(&Root::host(), Path::new(ETC)).unwrap();
        JobStore::new(Ledger::open(folder.join("ledger.db")).unwrap(), identity)
    }

    #[test]
    fn a_job_is_taken_only_from_owners_that_the_rule_names() {
        let folder = tempfile::tempdir().unwrap();
        let own = store(folder.path()).identity.owner().clone();
        let on_another_host = Owner {
            host: "another".to_owned(),
            boot: "another".to_owned(),
            ..own.clone()
        };
        let dead = Owner {
            started: own.started.wrapping_add(1),
            ..own.clone()
        };
        let all = [
            Takeover::FromDead,
            Takeover::WithTarget,
            Takeover::WithTargetOrOwn,
        ];
        for (owner, is_dead, may) in [
            (dead, true, [true, true, true]),
            (on_another_host, false, [false, true, true]),
            (own, false, [false, false, true]),
        ] {
            for (from, may) in all.into_iter().zip(may) {
                let mut store = store(folder.path());
                let of_nobody = |_: &Owner| unreachable!("it was not there");
                let begun = store.ledger.begin_work("a", &owner, &Count(1), of_nobody);
                begun.unwrap();
                let abandoned = store.abandoned::<Count>().unwrap();
                assert_eq!(abandoned.len(), usize::from(is_dead));
                let dead = store.unfinished::<Count>(|owner| owner == OwnerLiveness::Dead);
                let dead: Vec<Count> = dead.unwrap().map(|work| work.unwrap().document).collect();
                assert_eq!(dead, vec![Count(1); usize::from(is_dead)]);
                assert!(OwnedJob::begin(&mut store, "a", &Count(9), from).is_err());
                let claimed = OwnedJob::<Count, _>::claim(&mut store, "a", from).is_ok();
                assert_eq!(claimed, may, "{from:?} {owner:?}");
                store
                    .remove::<Count>("a", Takeover::WithTargetOrOwn)
                    .unwrap();
            }
        }
    }

    #[test]
    fn a_job_that_is_released_is_abandoned_while_its_last_owner_lives() {
        let folder = tempfile::tempdir().unwrap();
        let from = Takeover::FromDead;
        let job = OwnedJob::open(store(folder.path()), "a", &Count(1), from).unwrap();
        let store = job.release(&Count(2)).unwrap();
        assert_eq!(store.abandoned::<Count>().unwrap().len(), 1);
        let (_, work) = OwnedJob::<Count>::claim(store, "a", from).unwrap();
        assert_eq!(work.document, Count(2));
    }

    #[test]
    fn a_job_continues_from_its_last_checkpoint_until_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let from = Takeover::WithTargetOrOwn;
        let mut job = OwnedJob::open(store(folder.path()), "a", &Count(1), from).unwrap();
        job.save(&Count(2)).unwrap();
        let (job, work) = OwnedJob::<Count>::claim(job.suspend(), "a", from).unwrap();
        assert_eq!((work.document, job.key()), (Count(2), "a"));
        let store = OwnedJob::open(job.suspend(), "a", &Count(3), from).unwrap();
        let store = store.finish(&Count(4)).unwrap();
        assert_eq!(
            store.find::<Count>("a").unwrap().unwrap().document,
            Count(4)
        );
        let left = store.unfinished::<Count>(|_| true).unwrap();
        assert_eq!(left.count(), 0);
        // A finished job is begun again, and a discarded one is removed.
        let job = OwnedJob::open(store, "a", &Count(5), from).unwrap();
        assert!(job.discard().unwrap().find::<Count>("a").unwrap().is_none());
    }
}
