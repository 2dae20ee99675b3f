//! State of a disk that is being zeroed: the current one, and the one that survives a power cut.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::checkpoint::Disk;
use super::place::ClaimedDisk;

/// Interval between flushes, after which what was written survives a power cut.
const FLUSH_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum delay after which a signal is noticed.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Locks the state of a disk, also where a thread that held it has panicked.
pub(crate) fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reason why a disk was not zeroed to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IncompleteReason {
    /// A signal arrived.
    Signal,
    /// The disk was given up, for this reason, a clause.
    Gone(String),
}

/// State of a disk, shared between threads.
pub(crate) struct DiskState {
    /// Current state.
    pub now: Mutex<Disk>,
    /// State that would remain after a power cut.
    durable: Mutex<DurableSnapshot>,
    /// Held during a flush, so that an earlier snapshot does not replace a later one. It keeps the error of a failed
    /// flush: the kernel reports it once (fsync(2)), and a later flush that succeeds does not report what the failed
    /// one lost.
    settling: Mutex<Option<String>>,
    /// True once a flush has failed; it can be read without waiting for a flush in progress.
    lost: AtomicBool,
    /// True once the disk's thread has ended.
    pub ended: AtomicBool,
}

/// A snapshot that is on the disk.
struct DurableSnapshot {
    disk: Disk,
    /// True if [`DiskState::take`] has not returned it yet.
    is_new: bool,
}

impl DiskState {
    /// State of a disk whose current state is durable.
    pub(crate) fn new(disk: Disk) -> DiskState {
        DiskState {
            now: Mutex::new(disk.clone()),
            durable: Mutex::new(DurableSnapshot {
                disk,
                is_new: false,
            }),
            settling: Mutex::new(None),
            lost: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    /// Flushes the disk, and records the state before the flush as durable.
    ///
    /// # Errors
    /// The kernel's error of this flush or of an earlier one: what was written since the last successful flush may be
    /// lost, and is never recorded as durable.
    pub(crate) fn make_durable(&self, place: &ClaimedDisk) -> Result<(), IncompleteReason> {
        let mut failed = lock(&self.settling);
        if failed.is_none() {
            let disk = lock(&self.now).clone();
            match place.sync() {
                Ok(()) => {
                    *lock(&self.durable) = DurableSnapshot { disk, is_new: true };
                    return Ok(());
                }
                Err(error) => {
                    self.lost.store(true, Relaxed);
                    *failed = Some(error.to_string());
                }
            }
        }
        let why = failed.as_deref().unwrap_or("no reason given");
        Err(IncompleteReason::Gone(format!(
            "what was written could not be flushed: {why}"
        )))
    }

    /// Flushes the disk every [`FLUSH_INTERVAL`] until the disk's thread has ended.
    pub(crate) fn keep_settling(&self, place: &ClaimedDisk) {
        let mut last = Instant::now();
        while !self.ended.load(Relaxed) {
            sleep(POLL);
            if last.elapsed() >= FLUSH_INTERVAL {
                // The disk's own thread notices the failure, and reports it when it ends.
                if self.make_durable(place).is_err() {
                    return;
                }
                last = Instant::now();
            }
        }
    }

    /// True if a flush has failed, so that the disk is given up.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    /// The durable state, if it has changed since the last call.
    pub(crate) fn take(&self) -> Option<Disk> {
        let mut durable = lock(&self.durable);
        std::mem::take(&mut durable.is_new).then(|| durable.disk.clone())
    }

    /// The durable state; final once all threads of the disk have ended.
    pub(crate) fn durable(&self) -> Disk {
        lock(&self.durable).disk.clone()
    }
}
