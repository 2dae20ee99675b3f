//! A job that many threads change at the same time. Each waits until its change is on the ledger's disk; one commit
//! writes all pending changes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ledger::LongWork;

use crate::store::{JobStore, OwnedJob};

/// Pause after a commit, as a multiple of its duration: each writes the whole checkpoint, and changes in the pause are
/// written together by the next one.
const PAUSE_FACTOR: u32 = 3;
/// Maximum length of such a pause.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Changes in addition to the checkpoint, which are written to the ledger before it.
pub trait CheckpointExtra<W>: Default {
    /// Writes them.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    fn write(&mut self, store: &mut JobStore) -> ledger::Result<()>;

    /// Updates a checkpoint with the results of writing them.
    fn update_checkpoint(&self, checkpoint: &mut W);
}

/// A job that many threads change.
pub struct SharedJob<W, B> {
    state: Mutex<State<W, B>>,
    changed: Condvar,
}

struct State<W, B> {
    checkpoint: W,
    extra: B,
    /// Number of changes so far, and of those that are on the disk.
    changes: u64,
    written: u64,
    failure: Option<ledger::Error>,
    /// True after an error, when nothing more is written.
    has_failed: bool,
    is_closed: bool,
}

impl<W: LongWork + Clone, B: CheckpointExtra<W>> SharedJob<W, B> {
    /// A job that begins with this checkpoint.
    pub fn new(checkpoint: W) -> SharedJob<W, B> {
        SharedJob {
            state: Mutex::new(State {
                checkpoint,
                extra: B::default(),
                changes: 0,
                written: 0,
                failure: None,
                has_failed: false,
                is_closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<W, B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change, and waits until it is on the disk; true if it is. During the wait, `beat` is called after each
    /// `interval`.
    pub fn change(
        &self,
        change: impl FnOnce(&mut W, &mut B),
        interval: Duration,
        beat: &mut dyn FnMut(),
    ) -> bool {
        let mut guard = self.lock();
        let state = &mut *guard;
        change(&mut state.checkpoint, &mut state.extra);
        state.changes += 1;
        let own = state.changes;
        self.changed.notify_all();
        while guard.written < own && !guard.has_failed && !guard.is_closed {
            let waited = self.changed.wait_timeout(guard, interval);
            let (next, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            guard = next;
            if waited.timed_out() {
                drop(guard);
                beat();
                guard = self.lock();
            }
        }
        guard.written >= own
    }

    /// Ends [`SharedJob::write_all`] after a last commit.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// The checkpoint with all changes so far.
    pub fn checkpoint(&self) -> W {
        self.lock().checkpoint.clone()
    }

    /// The error because of which nothing more is written; returned once.
    pub fn failure(&self) -> Option<ledger::Error> {
        self.lock().failure.take()
    }

    /// Writes changes as they are made, on the calling thread, and finishes the job when it is closed. Ends at the
    /// first error.
    pub fn write_all(&self, mut job: OwnedJob<W>) {
        let mut rest = Duration::ZERO;
        let ended = loop {
            let (mut checkpoint, mut extra, changes, is_closed) = self.next(rest);
            let began = Instant::now();
            let mut written = extra.write(job.store_mut());
            extra.update_checkpoint(&mut checkpoint);
            if is_closed {
                break written.and_then(|()| job.finish(&checkpoint).map(|_| (extra, changes)));
            }
            written = written.and_then(|()| job.save(&checkpoint));
            rest = (began.elapsed() * PAUSE_FACTOR).min(MAX_PAUSE);
            if let Err(error) = written {
                break Err(error);
            }
            self.written(&extra, changes);
        };
        match ended {
            Ok((extra, changes)) => self.written(&extra, changes),
            Err(error) => {
                let mut state = self.lock();
                state.failure = Some(error);
                state.has_failed = true;
                drop(state);
                self.changed.notify_all();
            }
        }
    }

    /// Waits for a change or the end, and takes everything that is to be written: not before `rest` has passed, unless
    /// the job is closed.
    fn next(&self, rest: Duration) -> (W, B, u64, bool) {
        let until = Instant::now() + rest;
        let mut state = self.lock();
        while state.written == state.changes && !state.is_closed {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if state.is_closed || left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let extra = std::mem::take(&mut state.extra);
        (
            state.checkpoint.clone(),
            extra,
            state.changes,
            state.is_closed,
        )
    }

    fn written(&self, extra: &B, changes: u64) {
        let mut state = self.lock();
        extra.update_checkpoint(&mut state.checkpoint);
        state.written = changes;
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;
    use crate::store::Takeover;
    use crate::store::tests::{Count, store};

    const INTERVAL: Duration = Duration::from_millis(20);

    /// Numbers that go next to the checkpoint; each commit adds 1000 to it for each.
    #[derive(Default)]
    struct Numbers(Vec<u64>);

    impl CheckpointExtra<Count> for Numbers {
        fn write(&mut self, _: &mut JobStore) -> ledger::Result<()> {
            Ok(())
        }

        fn update_checkpoint(&self, checkpoint: &mut Count) {
            checkpoint.0 += 1000 * self.0.len() as u64;
        }
    }

    fn shared() -> SharedJob<Count, Numbers> {
        SharedJob::new(Count(0))
    }

    fn job(folder: &Path) -> OwnedJob<Count> {
        OwnedJob::begin(store(folder), "a", &Count(0), Takeover::FromDead).unwrap()
    }

    fn kept(folder: &Path) -> ledger::StoredWork<Count> {
        store(folder).find::<Count>("a").unwrap().unwrap()
    }

    #[test]
    fn a_change_is_on_the_disk_when_it_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let job = job(folder.path());
        std::thread::scope(|scope| {
            scope.spawn(|| shared.write_all(job));
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let add = |count: &mut Count, numbers: &mut Numbers| {
                            count.0 += 1;
                            numbers.0.push(1);
                        };
                        assert!(shared.change(add, INTERVAL, &mut || {}));
                        let Count(written) = kept(folder.path()).document;
                        assert!(written % 1000 >= 1 && written >= 1000, "{written}");
                    })
                })
                .collect();
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            shared.close();
        });
        assert!(shared.failure().is_none());
        let last = kept(folder.path());
        assert_eq!(
            (last.document, shared.checkpoint()),
            (Count(8008), Count(8008))
        );
        assert!(last.summary.finished.is_some());
    }

    #[test]
    fn a_thread_that_waits_for_the_ledger_is_called_and_let_go_when_nothing_is_written_any_more() {
        let (shared, beats) = (shared(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            // No writer runs, as with a slow disk of the ledger.
            let waiting = scope.spawn(|| {
                shared.change(|_, _| {}, INTERVAL, &mut || {
                    beats.fetch_add(1, Relaxed);
                })
            });
            while beats.load(Relaxed) < 2 {
                std::thread::yield_now();
            }
            shared.close();
            assert!(!waiting.join().unwrap());
        });
    }

    #[test]
    fn an_error_ends_it_and_is_given_once() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let job = job(folder.path());
        let mut other = store(folder.path());
        let from = Takeover::WithTargetOrOwn;
        other.remove::<Count>("a", from).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| shared.write_all(job));
            assert!(!shared.change(|count, _| count.0 = 1, INTERVAL, &mut || {}));
        });
        assert!(shared.failure().is_some() && shared.failure().is_none());
        assert!(!shared.change(|count, _| count.0 = 2, INTERVAL, &mut || {}));
        assert_eq!(shared.checkpoint(), Count(2));
    }
}
