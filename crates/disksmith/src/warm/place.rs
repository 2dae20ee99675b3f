//! Where the warming of a volume stands: what the ledger keeps of it.
//!
//! The state is kept on a thread of its own: a commit waits for the ledger's disk, and requests
//! should not wait with it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use jiff::Timestamp;
use ledger::{Claim, Ledger, LongWork};
use linux::Root;
use linux::block::{self, DevNum, Devices};
use record::{Bytes, Ranges};
use serde::{Deserialize, Serialize};

/// Which attachment of a disk it was: no other disk has the same, and the same disk has another one
/// after it was detached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attached {
    /// The boot of the host.
    pub boot: String,
    /// The disk's number among all that were attached since.
    pub diskseq: u64,
}

/// How a start of a warming ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Before its end.
    Midway,
    /// As it was asked to, which left something out.
    AsAsked,
    /// With the whole volume.
    Whole,
}

/// The warming of one volume, and how far it is. Ranges are bytes of the volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The path by which the volume was named last. After a reboot it may have another.
    pub path: String,
    /// The size that the volume had.
    pub size: Bytes,
    /// What is fetched at once.
    pub block: Bytes,
    /// What was read.
    pub done: Ranges,
    /// What could not be read.
    pub unreadable: Ranges,
    /// Whether the whole volume was to be read, and not only what is used, named or held.
    pub whole: bool,
    /// The attachment, of a volume whose name is not enough to know it by.
    #[serde(default)]
    pub attached: Option<Attached>,
    /// Whether the last start ended as it was asked to: not by a signal, a kill or trouble.
    #[serde(default)]
    pub ended: bool,
    /// When it was first begun.
    pub began: Timestamp,
    /// How long it was worked on, over all starts, in seconds.
    pub ran_s: f64,
    /// How often it was started.
    pub starts: u32,
}

impl LongWork for Kept {
    const KIND: &'static str = "warm";
    const FORM: u32 = 1;
}

/// The disks that a ledger of this path lies on: its commits are writes there that are no stranger's.
/// Empty where that is not known.
pub(crate) fn below_ledger(root: &Root, devices: &Devices, path: &Path) -> Vec<DevNum> {
    let Some(folder) = path.ancestors().skip(1).find(|folder| folder.exists()) else {
        return Vec::new();
    };
    let Ok(place) = block::place_of(root, devices, folder) else {
        return Vec::new();
    };
    let of = |number: DevNum| {
        let below = devices.below(number).into_iter().map(|below| below.number);
        std::iter::once(number).chain(below).collect::<Vec<_>>()
    };
    place.devices.into_iter().flat_map(of).collect()
}

/// Keeps how the work stands, without making the caller wait.
pub(crate) struct Keeper {
    states: SyncSender<Kept>,
    /// Whether a state was taken and is not written yet.
    is_writing: Arc<AtomicBool>,
    thread: JoinHandle<Held>,
}

/// What the keeper's thread holds, and the error after which nothing was kept any more.
struct Held {
    ledger: Ledger,
    claim: Claim<Kept>,
    failed: Option<ledger::Error>,
    is_writing: Arc<AtomicBool>,
}

impl Keeper {
    /// Starts to keep the work of a claim.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(crate) fn start(ledger: Ledger, claim: Claim<Kept>) -> std::io::Result<Keeper> {
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
    pub(crate) fn keep(&self, state: &Kept) -> bool {
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
    pub(crate) fn is_writing(&self) -> bool {
        self.is_writing.load(Relaxed)
    }

    /// Keeps the last state, as finished or not, and waits until that is done.
    ///
    /// # Errors
    /// What has gone wrong with keeping, now or earlier.
    pub(crate) fn end(self, state: &Kept, finished: bool) -> anyhow::Result<()> {
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

impl Held {
    /// Until the other end is closed, or a state cannot be kept.
    fn keep_all(mut self, arriving: &Receiver<Kept>) -> Held {
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

#[cfg(test)]
mod tests {
    use ledger::{Owner, Standing};

    use super::*;

    fn state(done: std::ops::Range<u64>) -> Kept {
        Kept {
            path: "/dev/vda".to_owned(),
            size: Bytes(1000),
            block: Bytes(100),
            done: Ranges::from(done),
            unreadable: Ranges::new(),
            whole: true,
            attached: None,
            ended: false,
            began: Timestamp::UNIX_EPOCH,
            ran_s: 1.5,
            starts: 1,
        }
    }

    fn owner() -> Owner {
        Owner {
            host: "db".to_owned(),
            machine: String::new(),
            boot: "b".to_owned(),
            namespace: String::new(),
            pid: 7,
            started: 1,
        }
    }

    #[test]
    fn the_last_state_is_there_when_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let mut ledger = Ledger::open(path.clone()).unwrap();
        let claim = ledger.begin_work("vol1", &owner(), &state(0..0), |_| Standing::Dead);
        let keeper = Keeper::start(ledger, claim.unwrap()).unwrap();
        // Whether each is taken depends on the disk; the first is.
        assert!(keeper.keep(&state(0..100)));
        for end in 2..5 {
            keeper.keep(&state(0..100 * end));
        }
        while keeper.is_writing() {
            std::thread::yield_now();
        }
        keeper.end(&state(0..900), false).unwrap();
        let ledger = Ledger::open(path).unwrap();
        let work = ledger.work::<Kept>("vol1").unwrap().unwrap();
        assert_eq!(work.document, state(0..900));
        assert_eq!(work.summary.finished, None);
    }

    #[test]
    fn work_that_was_taken_away_is_an_error_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let mut ledger = Ledger::open(path.clone()).unwrap();
        let claim = ledger.begin_work("vol1", &owner(), &state(0..0), |_| Standing::Dead);
        let keeper = Keeper::start(ledger, claim.unwrap()).unwrap();
        let mut other = Ledger::open(path).unwrap();
        other
            .remove_work(Kept::KIND, "vol1", |_| Standing::Dead)
            .unwrap();
        let error = keeper.end(&state(0..900), true).unwrap_err();
        assert!(error.to_string().contains("no longer"), "{error}");
    }
}
