//! State of a disk that is being zeroed: where it stands, and what of that survives a power cut.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::checkpoint::Disk;
use super::place::ClaimedDisk;

/// The time between two flushes, after which what was written survives a power cut.
const FLUSH_INTERVAL: Duration = Duration::from_secs(2);
/// A signal is heard after at most this long.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Locks the state of a disk, also where a thread that held it has panicked.
pub(crate) fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reason for which a disk was not zeroed to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IncompleteReason {
    /// A signal came.
    Signal,
    /// The disk is not to be worked with any more; a clause says why.
    Gone(String),
}

/// State of a disk, for all who want to know.
pub(crate) struct DiskState {
    /// State at this moment.
    pub now: Mutex<Disk>,
    /// State that would be left after a power cut.
    durable: Mutex<DurableSnapshot>,
    /// Held while what was written is flushed, so that no snapshot overtakes a later one. What the
    /// kernel said when a flush failed stays in it: the kernel says it once (fsync(2)), and a later
    /// flush that goes well says nothing of what the failed one lost.
    settling: Mutex<Option<String>>,
    /// True once a flush has failed, for those who would wait for a flush under way.
    lost: AtomicBool,
    /// True once its thread has ended.
    pub ended: AtomicBool,
}

/// A snapshot that is on the disk.
struct DurableSnapshot {
    disk: Disk,
    /// True if it was not taken yet.
    is_new: bool,
}

impl DiskState {
    /// State of a disk as it is now, and as it would be after a power cut.
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

    /// Makes what was written until now survive a power cut, and says so.
    ///
    /// # Errors
    /// The kernel's error, of this flush or of an earlier one that failed: what was written since the last
    /// good one may be lost, and is never called durable.
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

    /// Does that again and again until the disk's thread has ended.
    pub(crate) fn keep_settling(&self, place: &ClaimedDisk) {
        let mut last = Instant::now();
        while !self.ended.load(Relaxed) {
            sleep(POLL);
            if last.elapsed() >= FLUSH_INTERVAL {
                // The disk's own thread hears of a failure, and says it when it ends.
                if self.make_durable(place).is_err() {
                    return;
                }
                last = Instant::now();
            }
        }
    }

    /// True if a flush has failed, so that there is no point in going on.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    /// Durable state since it was last taken.
    pub(crate) fn take(&self) -> Option<Disk> {
        let mut durable = lock(&self.durable);
        std::mem::take(&mut durable.is_new).then(|| durable.disk.clone())
    }

    /// Durable state of the disk, when all of its threads have ended.
    pub(crate) fn durable(&self) -> Disk {
        lock(&self.durable).disk.clone()
    }
}
