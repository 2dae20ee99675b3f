//! Keeps how long work stands, on a thread of its own: a commit waits for the ledger's disk, and the
//! work should not wait with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use ledger::{Claim, Ledger, LongWork};

/// Keeps how the work stands, without making the caller wait.
pub struct Keeper<W> {
    states: SyncSender<W>,
    /// Whether a state was taken and is not written yet.
    is_writing: Arc<AtomicBool>,
    thread: JoinHandle<Held<W>>,
}

/// What the keeper's thread holds, and the error after which nothing was kept any more.
struct Held<W> {
    ledger: Ledger,
    claim: Claim<W>,
    failed: Option<ledger::Error>,
    is_writing: Arc<AtomicBool>,
}

impl<W: LongWork + Clone + Send + 'static> Keeper<W> {
    /// Starts to keep the work of a claim.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(ledger: Ledger, claim: Claim<W>) -> std::io::Result<Keeper<W>> {
        // One state waits at most: the next one says all that it says.
        let (states, arriving) = sync_channel(1);
        let is_writing = Arc::new(AtomicBool::new(false));
        let held = Held {
            ledger,
            claim,
            failed: None,
            is_writing: Arc::clone(&is_writing),
        };
        let thread = std::thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(move || held.keep_all(&arriving))?;
        Ok(Keeper {
            states,
            is_writing,
            thread,
        })
    }

    /// Hands over how the work stands now. Whether it was taken: not while an earlier state is
    /// still being written, nor after a failure.
    pub fn keep(&self, state: &W) -> bool {
        // Before it is handed over, or it could be written before this is said.
        self.is_writing.store(true, Relaxed);
        match self.states.try_send(state.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => false,
            Err(TrySendError::Disconnected(_)) => {
                self.is_writing.store(false, Relaxed);
                false
            }
        }
    }

    /// Whether a state is being written to the ledger's disk.
    pub fn is_writing(&self) -> bool {
        self.is_writing.load(Relaxed)
    }

    /// Keeps the last state, as finished or not, and waits until that is done.
    ///
    /// # Errors
    /// What has gone wrong with keeping, now or earlier.
    pub fn end(self, state: &W, finished: bool) -> anyhow::Result<()> {
        drop(self.states);
        let held = self
            .thread
            .join()
            .map_err(|_| anyhow::anyhow!("the thread that keeps the state has panicked"))?;
        if let Some(error) = held.failed {
            return Err(error.into());
        }
        let Held {
            mut ledger, claim, ..
        } = held;
        if finished {
            ledger.finish_work(claim, state)?;
        } else {
            ledger.keep_work(&claim, state)?;
        }
        Ok(())
    }
}

impl<W: LongWork> Held<W> {
    /// Until the other end is closed, or a state cannot be kept.
    fn keep_all(mut self, arriving: &Receiver<W>) -> Held<W> {
        for state in arriving {
            self.is_writing.store(true, Relaxed);
            let kept = self.ledger.keep_work(&self.claim, &state);
            self.is_writing.store(false, Relaxed);
            if let Err(error) = kept {
                self.failed = Some(error);
                break;
            }
        }
        self
    }
}
