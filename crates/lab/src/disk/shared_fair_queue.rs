//! The fair queue of an instance in real time: a thread that releases requests when the caps allow.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use record::Nanos;

use super::{Clock, PendingRequest, precise_timers};
use crate::model::{Caps, FairQueue};

/// A fair queue that several volumes share.
pub(crate) struct SharedFairQueue {
    clock: Clock,
    inside: Mutex<FairQueueState>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct FairQueueState {
    fair_queue: FairQueue<PendingRequest>,
    closed: bool,
}

impl SharedFairQueue {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the kernel cannot create a thread.
    pub(crate) fn start(
        caps: Caps,
        volumes: usize,
        clock: Clock,
    ) -> io::Result<Arc<SharedFairQueue>> {
        let shared = Arc::new(SharedFairQueue {
            clock,
            inside: Mutex::new(FairQueueState {
                fair_queue: FairQueue::new(caps, volumes),
                closed: false,
            }),
            changed: Condvar::new(),
            thread: Mutex::new(None),
        });
        let thread = std::thread::Builder::new().name("lab-queue".into()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.run()
        });
        *shared.thread() = Some(thread?);
        Ok(shared)
    }

    fn inside(&self) -> MutexGuard<'_, FairQueueState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request that leaves its volume's queue at `at`.
    pub(crate) fn enqueue(
        &self,
        at: Nanos,
        volume: usize,
        ops: u64,
        bytes: u64,
        passing: PendingRequest,
    ) {
        let mut inside = self.inside();
        if inside.closed {
            return;
        }
        let before = inside.fair_queue.next();
        inside.fair_queue.enqueue(at, volume, ops, bytes, passing);
        let sooner = inside.fair_queue.next() != before;
        drop(inside);
        if sooner {
            self.changed.notify_one();
        }
    }

    fn run(&self) {
        precise_timers();
        let mut inside = self.inside();
        while !inside.closed {
            let now = self.clock.now();
            if let Some(passed) = inside.fair_queue.step(now) {
                // Called without the lock, since it takes the locks of the volume and of the connection.
                drop(inside);
                passed.what.go(passed.at);
                inside = self.inside();
                continue;
            }
            inside = match inside.fair_queue.next() {
                Some(next) => {
                    let wait = Duration::from(next - now);
                    let woken = self.changed.wait_timeout(inside, wait);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let woken = self.changed.wait(inside);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }

    /// Ends the thread; waiting requests are dropped.
    pub(crate) fn stop(&self) {
        let mut inside = self.inside();
        inside.closed = true;
        // Waiting requests hold their volume, which holds this queue.
        inside.fair_queue = FairQueue::new(Caps::default(), 0);
        drop(inside);
        self.changed.notify_all();
        if let Some(thread) = self.thread().take() {
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }
}
