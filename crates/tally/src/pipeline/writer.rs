//! The thread that writes batches to the stores, and maintains the stores between batches.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::meter::Meter;
use super::shared::SharedState;
use super::timing::{MAX_RETRY_DELAY, TICK, now};
use crate::store::{AppliedBatch, Batch, Store, StoreError, StoreLimits};

/// Interval at which periods are rolled up and old rows removed.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(10);
/// Minimum time that is added to the running time of the stores at once.
const MIN_TIME_STEP: Duration = Duration::from_secs(60);
/// Maximum time that is added at once: the rest of a time for which a store was down does not count as running.
const MAX_TIME_STEP: Duration = Duration::from_secs(120);

/// Outcome of writing a batch.
pub(super) enum Outcome {
    /// The batch is in every store.
    Committed(Vec<Batch>),
    /// Some of the batch's events were counted by another process.
    Conflict,
    /// The deadline passed before a store answered.
    GivenUp(String),
}

/// Handle of the thread that writes batches.
pub(super) struct Writer {
    batches: Option<SyncSender<Vec<Batch>>>,
    outcomes: Receiver<Outcome>,
    deadline: Arc<Mutex<Option<Instant>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        stores: Vec<Box<dyn Store>>,
        shared: SharedState,
        limits: StoreLimits,
        meter: Arc<Meter>,
    ) -> Writer {
        let (batches, from) = sync_channel(1);
        let (to, outcomes) = sync_channel(1);
        let deadline = Arc::new(Mutex::new(None));
        let mut work = Work {
            applied: vec![AppliedBatch::default(); stores.len()],
            stores,
            shared,
            limits,
            meter,
            deadline: Arc::clone(&deadline),
            counted: Instant::now(),
        };
        let thread = std::thread::spawn(move || work.run(&from, &to));
        Writer {
            batches: Some(batches),
            outcomes,
            deadline,
            thread: Some(thread),
        }
    }

    /// Writes a batch for each store.
    pub(super) fn write(&self, batches: Vec<Batch>) {
        if let Some(sender) = &self.batches {
            // Sending does not fail or block: at most one batch is sent, and the thread lives as long as this handle.
            let _ = sender.send(batches);
        }
    }

    /// The outcome of the batch, if it arrives within this time.
    pub(super) fn outcome(&self, wait: Duration) -> Option<Outcome> {
        self.outcomes.recv_timeout(wait).ok()
    }

    /// Sets the time after which a store that does not answer is given up; `None` for never.
    pub(super) fn give_up_after(&self, moment: Option<Instant>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = moment;
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.give_up_after(Some(Instant::now()));
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    stores: Vec<Box<dyn Store>>,
    applied: Vec<AppliedBatch>,
    shared: SharedState,
    limits: StoreLimits,
    meter: Arc<Meter>,
    deadline: Arc<Mutex<Option<Instant>>>,
    /// Moment up to which the stores' running time has been counted.
    counted: Instant,
}

impl Work {
    fn run(&mut self, batches: &Receiver<Vec<Batch>>, outcomes: &SyncSender<Outcome>) {
        let mut maintenance = Instant::now();
        loop {
            let wait = maintenance.saturating_duration_since(Instant::now());
            match batches.recv_timeout(wait) {
                Ok(batches) => {
                    if outcomes.send(self.write(batches)).is_err() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if Instant::now() >= maintenance {
                let more = self.maintain();
                // Each call does a bounded part, so that batches can be written in between.
                maintenance = Instant::now()
                    + if more {
                        Duration::ZERO
                    } else {
                        MAINTENANCE_INTERVAL
                    };
            }
        }
    }

    fn write(&mut self, batches: Vec<Batch>) -> Outcome {
        let began = Instant::now();
        self.shared.dead_letters.sync();
        for (index, batch) in batches.iter().enumerate() {
            if !batch.is_empty()
                && let Err(outcome) = self.apply(index, batch)
            {
                return outcome;
            }
        }
        let sums = batches.iter().map(|batch| batch.sums.len()).sum();
        self.meter.flushed(sums, began.elapsed(), &self.applied);
        Outcome::Committed(batches)
    }

    /// Applies a batch to one store, and retries until it succeeds.
    fn apply(&mut self, index: usize, batch: &Batch) -> Result<(), Outcome> {
        let mut wait = TICK;
        loop {
            match self.stores[index].apply(batch, now()) {
                Ok(applied) => {
                    self.applied[index] = applied;
                    self.meter.store_is_up(self.stores[index].address());
                    return Ok(());
                }
                Err(StoreError::Conflict) => return Err(Outcome::Conflict),
                Err(StoreError::Unavailable(error) | StoreError::Refused(error)) => {
                    let reason = ui::exit::sentence(&error);
                    self.meter.store_is_down(&reason);
                    self.pause(wait).map_err(|()| Outcome::GivenUp(reason))?;
                    wait = (wait * 2).min(MAX_RETRY_DELAY);
                }
            }
        }
    }

    /// Waits before a retry; an error if the deadline has passed.
    fn pause(&self, wait: Duration) -> Result<(), ()> {
        let until = Instant::now() + wait;
        loop {
            let deadline = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(());
            }
            if Instant::now() >= until {
                return Ok(());
            }
            std::thread::sleep(TICK / 4);
        }
    }

    fn maintain(&mut self) -> bool {
        let mut ran = self.counted.elapsed().min(MAX_TIME_STEP);
        if ran >= MIN_TIME_STEP {
            self.counted = Instant::now();
        } else {
            ran = Duration::ZERO;
        }
        let mut more = false;
        for store in &mut self.stores {
            // An error is not reported: maintenance is retried later, and the next batch shows if the store is down.
            more |= store.maintain(&self.limits, now(), ran).unwrap_or(false);
        }
        more
    }
}
