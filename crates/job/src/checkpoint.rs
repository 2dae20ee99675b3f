//! Writes checkpoints on a separate thread: a commit waits for the ledger's disk, and the job does not.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ledger::LongWork;

use crate::interval::{CheckpointInterval, Timer};
use crate::store::OwnedJob;

/// State of a job after its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndState {
    /// The job is finished.
    Finished,
    /// The job is to be continued.
    Suspended,
    /// The job is removed: there is nothing to continue.
    Discarded,
}

/// Writer of a job's checkpoints; it writes none if the ledger cannot be used.
pub struct CheckpointWriter<W> {
    thread: Option<Thread<W>>,
}

/// A checkpoint, and the channel to a caller that waits until it is on the disk.
type Message<W> = (W, Option<SyncSender<ledger::Result<()>>>);

struct Thread<W> {
    checkpoints: SyncSender<Message<W>>,
    shared: Arc<Shared>,
    timer: Timer,
    handle: JoinHandle<OwnedJob<W>>,
}

#[derive(Default)]
struct Shared {
    is_writing: AtomicBool,
    /// The first error of writing, until it is requested.
    failure: Mutex<Option<ledger::Error>>,
    is_failing: AtomicBool,
    /// True after a checkpoint was written that follows a failed one, until it is requested.
    has_recovered: AtomicBool,
}

impl<W: LongWork + Clone + Send + 'static> CheckpointWriter<W> {
    /// A writer of the checkpoints of a job.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        job: OwnedJob<W>,
        interval: CheckpointInterval,
    ) -> io::Result<CheckpointWriter<W>> {
        let (checkpoints, arriving) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let handle = std::thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || write_all(job, &arriving, &for_thread))?;
        Ok(CheckpointWriter {
            thread: Some(Thread {
                checkpoints,
                shared,
                timer: Timer::new(interval),
                handle,
            }),
        })
    }

    /// A writer that writes nothing.
    pub fn none() -> CheckpointWriter<W> {
        CheckpointWriter { thread: None }
    }

    /// True if checkpoints are written, so that a later start can continue.
    pub fn writes(&self) -> bool {
        self.thread.is_some()
    }

    /// Sets another interval.
    pub fn set_interval(&mut self, interval: CheckpointInterval) {
        if let Some(thread) = &mut self.thread {
            thread.timer = Timer::new(interval);
        }
    }

    /// True if a checkpoint is due in a job that has run for `ran`, and the one before is written. The caller then
    /// builds it and calls [`CheckpointWriter::write`].
    pub fn is_due(&mut self, ran: Duration) -> bool {
        let is_due = |thread: &mut Thread<W>| {
            !thread.shared.is_writing.load(Relaxed) && thread.timer.is_due(ran)
        };
        self.thread.as_mut().is_some_and(is_due)
    }

    /// Writes a checkpoint that was due. Does not wait for the ledger.
    pub fn write(&mut self, checkpoint: &W) {
        let Some(thread) = &mut self.thread else {
            return;
        };
        // Set before it is passed on, since it could otherwise be written before the flag is set.
        thread.shared.is_writing.store(true, Relaxed);
        if thread
            .checkpoints
            .try_send((checkpoint.clone(), None))
            .is_err()
        {
            thread.shared.is_writing.store(false, Relaxed);
        }
        thread.timer.built();
    }

    /// Writes a checkpoint, and waits until it is on the ledger's disk.
    ///
    /// # Errors
    /// When the ledger cannot be written, or another process has taken the job.
    pub fn save(&self, checkpoint: &W) -> anyhow::Result<()> {
        let Some(thread) = &self.thread else {
            return Ok(());
        };
        let (answer, answered) = sync_channel(1);
        thread.shared.is_writing.store(true, Relaxed);
        thread
            .checkpoints
            .send((checkpoint.clone(), Some(answer)))
            .map_err(|_| lost())?;
        Ok(answered.recv().map_err(|_| lost())??)
    }

    /// The error with which checkpoints began to fail, once; the next ones are attempted anyway.
    pub fn failure(&self) -> Option<ledger::Error> {
        let shared = &self.thread.as_ref()?.shared;
        let mut failure = shared
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }

    /// True if the last checkpoint could not be written.
    pub fn is_failing(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| thread.shared.is_failing.load(Relaxed))
    }

    /// True, once, if a checkpoint was written after earlier ones failed.
    pub fn has_recovered(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| thread.shared.has_recovered.swap(false, Relaxed))
    }

    /// True while a checkpoint is being written to the ledger's disk.
    pub fn is_writing(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| thread.shared.is_writing.load(Relaxed))
    }

    /// Writes the last checkpoint, and waits until the job is in this state. False if the writer writes nothing.
    ///
    /// # Errors
    /// When the ledger cannot be written, or another process has taken the job.
    pub fn end(self, checkpoint: &W, state: EndState) -> anyhow::Result<bool> {
        let Some(thread) = self.thread else {
            return Ok(false);
        };
        drop(thread.checkpoints);
        let mut job = thread.handle.join().map_err(|_| lost())?;
        match state {
            EndState::Finished => job.finish(checkpoint).map(drop)?,
            EndState::Suspended => job.save(checkpoint)?,
            EndState::Discarded => job.discard().map(drop)?,
        }
        Ok(true)
    }
}

fn lost() -> anyhow::Error {
    anyhow::anyhow!("the thread that writes checkpoints has panicked")
}

/// Writes checkpoints until the channel is closed. After a failure the next one is attempted.
fn write_all<W: LongWork>(
    mut job: OwnedJob<W>,
    arriving: &Receiver<Message<W>>,
    shared: &Shared,
) -> OwnedJob<W> {
    for (checkpoint, answer) in arriving {
        shared.is_writing.store(true, Relaxed);
        let written = job.save(&checkpoint);
        let was_failing = shared.is_failing.swap(written.is_err(), Relaxed);
        if was_failing && written.is_ok() {
            shared.has_recovered.store(true, Relaxed);
        }
        let Some(answer) = answer else {
            if let (Err(error), false) = (written, was_failing) {
                let mut failure = shared
                    .failure
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *failure = Some(error);
            }
            shared.is_writing.store(false, Relaxed);
            continue;
        };
        // Before the reply: the caller may request the next checkpoint as soon as it has it.
        shared.is_writing.store(false, Relaxed);
        // The caller may have stopped waiting.
        let _ = answer.send(written);
    }
    job
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::store::Takeover;
    use crate::store::tests::{Count, store};

    fn writer(folder: &Path) -> CheckpointWriter<Count> {
        let job = OwnedJob::begin(store(folder), "a", &Count(0), Takeover::FromDead).unwrap();
        CheckpointWriter::start(job, CheckpointInterval::every(Duration::ZERO)).unwrap()
    }

    fn wait(writer: &CheckpointWriter<Count>) {
        while writer.is_writing() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_last_checkpoint_is_there_when_it_ends() {
        for (state, is_there, is_finished) in [
            (EndState::Finished, true, true),
            (EndState::Suspended, true, false),
            (EndState::Discarded, false, false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut writer = writer(folder.path());
            let second = Duration::from_secs(1);
            assert!(writer.is_due(second));
            writer.write(&Count(1));
            // Whether another is due depends on the speed of the disk.
            if writer.is_due(1000 * second) {
                writer.write(&Count(2));
            }
            writer.save(&Count(3)).unwrap();
            let kept = store(folder.path()).find::<Count>("a").unwrap().unwrap();
            assert_eq!(kept.document, Count(3));
            assert!(writer.end(&Count(4), state).unwrap());
            let kept = store(folder.path()).find::<Count>("a").unwrap();
            assert_eq!(kept.is_some(), is_there);
            if let Some(work) = kept {
                assert_eq!(work.document, Count(4));
                assert_eq!(work.summary.finished.is_some(), is_finished);
            }
        }
    }

    #[test]
    fn a_job_that_was_taken_away_is_told_once_and_an_error_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(folder.path());
        let mut other = store(folder.path());
        other
            .remove::<Count>("a", Takeover::WithTargetOrOwn)
            .unwrap();
        let mut reported = 0;
        for second in 1..4 {
            assert!(writer.is_due(Duration::from_secs(1000 * second)));
            writer.write(&Count(second));
            wait(&writer);
            reported += usize::from(writer.failure().is_some());
        }
        assert_eq!(reported, 1);
        assert!(writer.save(&Count(8)).is_err());
        let error = writer.end(&Count(9), EndState::Finished).unwrap_err();
        assert!(error.to_string().contains("no longer"), "{error}");
    }

    #[test]
    fn without_a_ledger_nothing_is_due_and_nothing_fails() {
        let mut writer = CheckpointWriter::<Count>::none();
        assert!(!writer.is_due(Duration::MAX));
        writer.write(&Count(1));
        writer.save(&Count(1)).unwrap();
        assert!(!writer.writes() && !writer.is_writing());
        assert!(!writer.end(&Count(1), EndState::Finished).unwrap());
    }
}
