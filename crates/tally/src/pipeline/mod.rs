//! Pipeline from one source to all stores: sums events, flushes them, and acknowledges what every store has committed.
//!
//! Each source has a pipeline of its own, of two threads. One polls the source and sums; the other writes a sealed
//! batch to each store, while the next one is summed. A slow store makes batches larger, up to the bound on memory;
//! then the source is not polled until the writer is done.

mod dead_letters;
pub mod meter;
mod open;
mod plan;
mod shared;
mod store_sums;
mod summing;
mod timing;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::parse::Parser;
use crate::source::{PollResult, Source};
use crate::store::Batch;

pub use dead_letters::DeadLetters;
use meter::Meter;
pub(crate) use open::open_when_it_answers;
pub(crate) use plan::join;
pub use plan::{Plans, SumTargets};
pub use shared::{FlushRule, SharedState};
use store_sums::StoreSums;
use summing::DeliveryReceiver;
pub use timing::now;
use timing::{MAX_RETRY_DELAY, TICK};
use writer::{Outcome, Writer};
/// Tags of a batch that the screen may show.
const MAX_TOP_TAGS: usize = 5;
/// Time for the last flush after a stop.
const LAST_FLUSH_TIMEOUT: Duration = Duration::from_secs(20);

/// Events that a pipeline leaves unstored at its end, and the reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PipelineEnd {
    /// Events that were summed and are in no store, since a store was down to the end.
    pub unstored: u64,
    /// Reason why they are not stored.
    pub reason: Option<String>,
}

/// A source with the stores that its sums go to.
pub struct Pipeline {
    source: Box<dyn Source>,
    intake: DeliveryReceiver,
    writer: Writer,
    shared: SharedState,
    /// Number of the batch that is being summed.
    number: u64,
    /// Number of the batch that is being written.
    in_flight: Option<u64>,
    /// Time of the first delivery since the last flush.
    since: Option<Instant>,
    ended: bool,
    retry: Duration,
}

impl Pipeline {
    /// A pipeline from a source.
    ///
    /// # Errors
    /// Where a store cannot be opened, or a stop was requested while it did not answer.
    pub fn new(
        source: Box<dyn Source>,
        parser: Parser,
        shared: SharedState,
        meter: Arc<Meter>,
    ) -> crate::store::Result<Pipeline> {
        let plan = shared.plans.current();
        let (stores, writer) = open::open_stores(&plan, &shared, Arc::clone(&meter))?;
        let intake = DeliveryReceiver {
            stores,
            plan,
            parser,
            meter,
            stop: Arc::clone(&shared.stop),
            dead_letters: Arc::clone(&shared.dead_letters),
            source: source.address().to_owned(),
            taken: false,
        };
        Ok(Pipeline {
            source,
            intake,
            writer,
            shared,
            number: 0,
            in_flight: None,
            since: None,
            ended: false,
            retry: TICK,
        })
    }

    /// Runs until the source ends or a stop is requested, and flushes.
    pub fn run(mut self) -> PipelineEnd {
        loop {
            while !self.ended && !self.is_stopped() {
                self.step();
            }
            if let Some(ended) = self.end() {
                return ended;
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Relaxed)
    }

    fn step(&mut self) {
        if self.shared.plans.is_held() {
            self.change_plan();
        } else if self.is_full() || self.is_off() {
            self.reap(TICK);
        } else {
            self.poll();
            self.reap(Duration::ZERO);
        }
        if self.in_flight.is_none() && self.is_due() {
            self.flush();
        }
    }

    /// True if no events are taken from this source.
    fn is_off(&self) -> bool {
        let routes = self.intake.plan.routes.as_ref();
        routes.is_some_and(|routes| routes.is_off(self.source.address()))
    }

    /// Writes all sums, waits for the new plan, and continues with it; with the old plan if this takes too long.
    fn change_plan(&mut self) {
        while self.has_sums() {
            if self.is_stopped() || !self.shared.plans.is_held() {
                return;
            }
            if self.in_flight.is_none() {
                self.flush();
            }
            self.reap(TICK);
        }
        let stop = Arc::clone(&self.shared.stop);
        self.shared.plans.wait(|| stop.load(Relaxed));
        let plan = self.shared.plans.current();
        if self.is_stopped() || Arc::ptr_eq(&plan, &self.intake.plan) {
            return;
        }
        match open::open_stores(&plan, &self.shared, Arc::clone(&self.intake.meter)) {
            Ok((stores, writer)) => {
                self.intake.stores = stores;
                self.intake.plan = plan;
                self.writer = writer;
            }
            // The store answered when the plan was made.
            Err(error) => self.intake.meter.store_is_down(&error.to_string()),
        }
    }

    fn has_sums(&self) -> bool {
        self.in_flight.is_some() || !self.intake.stores.iter().all(StoreSums::is_empty)
    }

    fn poll(&mut self) {
        let wait = match (self.since, self.in_flight) {
            (Some(since), None) => TICK.min(self.delay().saturating_sub(since.elapsed())),
            // The writer is soon done.
            (_, Some(_)) => TICK / 10,
            (None, None) => TICK,
        };
        let polled = self.source.poll(wait, &mut self.intake);
        self.intake.meter.set_lag(self.source.lag());
        if std::mem::take(&mut self.intake.taken) && self.since.is_none() {
            self.since = Some(Instant::now());
        }
        let meter = &self.intake.meter;
        meter
            .unidentified
            .store(self.source.unidentified(), Relaxed);
        meter.lost.store(self.source.lost(), Relaxed);
        match polled {
            PollResult::More | PollResult::Idle => {
                self.retry = TICK;
                meter.source_is_up();
            }
            PollResult::End => self.ended = true,
            PollResult::Down(reason) => {
                meter.source_is_down(self.source.address(), &reason);
                self.pause();
            }
        }
    }

    /// Waits before the source is tried again, without missing a flush.
    fn pause(&mut self) {
        let until = Instant::now() + self.retry;
        self.retry = (self.retry * 2).min(MAX_RETRY_DELAY);
        while Instant::now() < until && !self.is_stopped() {
            self.reap(TICK / 4);
            if self.in_flight.is_none() && self.is_due() {
                self.flush();
            }
            std::thread::sleep(TICK / 4);
        }
    }

    fn delay(&self) -> Duration {
        let every = self.shared.flush.every;
        self.source.delay().map_or(every, |delay| delay.min(every))
    }

    /// True if no more may be summed before the writer is done.
    fn is_full(&self) -> bool {
        self.in_flight.is_some() && self.intake.bytes() >= self.shared.flush.memory
    }

    fn is_due(&self) -> bool {
        let rule = &self.shared.flush;
        self.since
            .is_some_and(|since| since.elapsed() >= self.delay())
            || self
                .intake
                .stores
                .iter()
                .any(|store| store.rows() >= rule.sums)
            || self.intake.bytes() >= rule.memory
    }

    fn flush(&mut self) {
        self.since = None;
        let batches: Vec<Batch> = self.intake.stores.iter_mut().map(StoreSums::seal).collect();
        self.source.sealed(self.number);
        self.in_flight = Some(self.number);
        self.number += 1;
        let meter = &self.intake.meter;
        meter.in_memory(0);
        if meter.top_is_shown.load(Relaxed)
            && let Some(largest) = batches.iter().max_by_key(|batch| batch.sums.len())
        {
            meter.set_top(largest.sums.top(MAX_TOP_TAGS));
        }
        self.writer.write(batches);
    }

    /// Receives the writer's outcome if it arrives within this time.
    fn reap(&mut self, wait: Duration) {
        if self.in_flight.is_some()
            && let Some(outcome) = self.writer.outcome(wait)
        {
            self.answered(outcome);
        }
    }

    /// Flushes for the last time and ends; `None` if the source has to deliver again because another process counted
    /// some of the events.
    fn end(&mut self) -> Option<PipelineEnd> {
        self.writer
            .give_up_after(Some(Instant::now() + LAST_FLUSH_TIMEOUT));
        while self.has_sums() {
            if self.in_flight.is_none() {
                self.flush();
            }
            let reason = match self.writer.outcome(LAST_FLUSH_TIMEOUT * 2) {
                Some(Outcome::GivenUp(reason)) => reason,
                Some(outcome) => {
                    self.answered(outcome);
                    continue;
                }
                None => "the store does not answer".to_owned(),
            };
            let summed = self.intake.stores.iter().map(StoreSums::events).max();
            return Some(PipelineEnd {
                unstored: summed.unwrap_or(0),
                reason: Some(reason),
            });
        }
        if self.ended || self.is_stopped() {
            return Some(PipelineEnd::default());
        }
        self.writer.give_up_after(None);
        None
    }

    fn answered(&mut self, outcome: Outcome) {
        let Some(batch) = self.in_flight.take() else {
            return;
        };
        match outcome {
            Outcome::Committed(batches) => {
                for (store, batch) in self.intake.stores.iter_mut().zip(batches) {
                    store.committed(batch);
                }
                self.source.committed(batch);
            }
            Outcome::Conflict => {
                // Another process counted some of these events, for example after a broken connection. For everything
                // that is not acknowledged, the stores are asked again for its identity.
                self.intake.stores.iter_mut().for_each(StoreSums::forget);
                self.source.rewind();
                self.since = None;
                self.ended = false;
            }
            Outcome::GivenUp(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
