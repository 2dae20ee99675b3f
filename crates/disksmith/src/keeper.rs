//! Keeps how long work stands, on a thread of its own: a commit waits for the ledger's disk, and the
//! work should not wait with it.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use ledger::{Claim, Ledger, LongWork};

/// Keeps how the work stands, without making the caller wait.
pub(crate) struct Keeper<W> {
    states: SyncSender<W>,
    thread: JoinHandle<Held<W>>,
}

/// What the keeper's thread holds, and the error after which nothing was kept any more.
struct Held<W> {
    ledger: Ledger,
    claim: Claim<W>,
    failed: Option<ledger::Error>,
}

impl<W: LongWork + Clone + Send + 'static> Keeper<W> {
    /// Starts to keep the work of a claim.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(crate) fn start(ledger: Ledger, claim: Claim<W>) -> std::io::Result<Keeper<W>> {
        // One state waits at most: the next one says all that it says.
        let (states, arriving) = sync_channel(1);
        let held = Held {
            ledger,
            claim,
            failed: None,
        };
        let thread = std::thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(move || held.keep_all(&arriving))?;
        Ok(Keeper { states, thread })
    }

    /// Hands over how the work stands now. Whether it was taken: not while an earlier state is
    /// still being written, nor after a failure.
    pub(crate) fn keep(&self, state: &W) -> bool {
        match self.states.try_send(state.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// Keeps the last state, as finished or not, and waits until that is done.
    ///
    /// # Errors
    /// What has gone wrong with keeping, now or earlier.
    pub(crate) fn end(self, state: &W, finished: bool) -> anyhow::Result<()> {
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
            if let Err(error) = self.ledger.keep_work(&self.claim, &state) {
                self.failed = Some(error);
                break;
            }
        }
        self
    }
}
