//! From one source to all stores: sums events, flushes them, and acknowledges what every store has committed.
//!
//! Each source has a pipeline of its own, of two threads. One polls the source and sums; the other writes a sealed batch
//! to each store, while the next one is summed. A slow store makes batches larger, up to the bound on memory; then the
//! source is not polled until the writer is done.

mod dead_letters;
mod lane;
pub mod meter;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::level::Seconds;
use crate::parse::Parser;
use crate::source::{Delivery, Intake, Polled, Source, Stopped};
use crate::store::{Address, Batch, Limits, Store};

pub use dead_letters::DeadLetters;
use lane::Lane;
use meter::Meter;
use writer::{Outcome, Writer};

/// The longest wait for a source, so that a timer or a stop is seen.
const TICK: Duration = Duration::from_millis(100);
/// The longest wait before a source that is down, or a store, is tried again.
const SLOWEST_RETRY: Duration = Duration::from_secs(5);
/// Time for the last flush after a stop.
const LAST_FLUSH: Duration = Duration::from_secs(20);

/// Rules by which sums are flushed: whichever is first.
#[derive(Clone, Copy, Debug)]
pub struct FlushRule {
    /// Number of different sums and identities.
    pub sums: usize,
    /// Time since the first delivery.
    pub every: Duration,
    /// Bytes of all sums in memory.
    pub memory: usize,
}

impl Default for FlushRule {
    fn default() -> FlushRule {
        FlushRule {
            sums: 30_000,
            every: Duration::from_secs(20),
            memory: 64 << 20,
        }
    }
}

/// State that all pipelines share.
#[derive(Clone)]
pub struct Shared {
    /// The end was asked for.
    pub stop: Arc<AtomicBool>,
    /// Rejected events.
    pub dead_letters: Arc<DeadLetters>,
    /// When to flush.
    pub flush: FlushRule,
    /// Retention of the stores.
    pub limits: Limits,
}

/// End of a pipeline.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Events that were summed and are in no store, since a store was down to the end.
    pub unstored: u64,
    /// Reason for which they are not.
    pub reason: Option<String>,
}

/// A source with the stores that its sums go to.
pub struct Pipeline {
    source: Box<dyn Source>,
    intake: Summing,
    writer: Writer,
    shared: Shared,
    /// Number of the batch that is being summed.
    number: u64,
    /// The batch that the writer has.
    in_flight: Option<u64>,
    /// Time of the first delivery since the last flush.
    since: Option<Instant>,
    ended: bool,
    retry: Duration,
}

/// Moment in seconds.
pub fn now() -> Seconds {
    Timestamp::now().as_second()
}

impl Pipeline {
    /// A pipeline to some stores, each of which it opens twice: to write, and to look up identities.
    ///
    /// # Errors
    /// Where a store cannot be opened.
    pub fn new(
        source: Box<dyn Source>,
        parser: Parser,
        stores: &[Address],
        shared: Shared,
        meter: Arc<Meter>,
    ) -> crate::store::Result<Pipeline> {
        let open = |address: &Address| address.open(None, None, &shared.limits);
        let writing: Result<Vec<Box<dyn Store>>, _> = stores.iter().map(open).collect();
        let lanes: Result<Vec<Lane>, _> = stores
            .iter()
            .map(|address| open(address).map(Lane::new))
            .collect();
        let intake = Summing {
            lanes: lanes?,
            parser,
            meter: Arc::clone(&meter),
            stop: Arc::clone(&shared.stop),
            dead_letters: Arc::clone(&shared.dead_letters),
            source: source.address().to_owned(),
            taken: false,
        };
        Ok(Pipeline {
            source,
            intake,
            writer: Writer::start(writing?, shared.clone(), meter),
            shared,
            number: 0,
            in_flight: None,
            since: None,
            ended: false,
            retry: TICK,
        })
    }

    /// Runs until the source ends or a stop is asked for, and flushes.
    pub fn run(mut self) -> Ended {
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
        if self.is_full() {
            self.reap(TICK);
        } else {
            self.poll();
            self.reap(Duration::ZERO);
        }
        if self.in_flight.is_none() && self.is_due() {
            self.flush();
        }
    }

    fn poll(&mut self) {
        let wait = match (self.since, self.in_flight) {
            (Some(since), None) => TICK.min(self.delay().saturating_sub(since.elapsed())),
            // The writer is soon done.
            (_, Some(_)) => TICK / 10,
            (None, None) => TICK,
        };
        let polled = self.source.poll(wait, &mut self.intake);
        if std::mem::take(&mut self.intake.taken) && self.since.is_none() {
            self.since = Some(Instant::now());
        }
        let meter = &self.intake.meter;
        meter
            .unidentified
            .store(self.source.unidentified(), Relaxed);
        match polled {
            Polled::More | Polled::Idle => {
                self.retry = TICK;
                meter.source_is_up();
            }
            Polled::End => self.ended = true,
            Polled::Down(reason) => {
                meter.source_is_down(self.source.address(), &reason);
                self.pause();
            }
        }
    }

    /// Waits before the source is tried again, without missing a flush.
    fn pause(&mut self) {
        let until = Instant::now() + self.retry;
        self.retry = (self.retry * 2).min(SLOWEST_RETRY);
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
                .lanes
                .iter()
                .any(|lane| lane.rows() >= rule.sums)
            || self.intake.bytes() >= rule.memory
    }

    fn flush(&mut self) {
        self.since = None;
        let batches: Vec<Batch> = self.intake.lanes.iter_mut().map(Lane::seal).collect();
        self.source.sealed(self.number);
        self.in_flight = Some(self.number);
        self.number += 1;
        self.intake.meter.in_memory(0);
        self.writer.write(batches);
    }

    /// Takes the writer's answer, if it comes in this time.
    fn reap(&mut self, wait: Duration) {
        if self.in_flight.is_some()
            && let Some(outcome) = self.writer.outcome(wait)
        {
            self.answered(outcome);
        }
    }

    /// The last flush, and the end; `None` if the source has to deliver again what another process counted in part.
    fn end(&mut self) -> Option<Ended> {
        self.writer.give_up_after(Some(Instant::now() + LAST_FLUSH));
        while self.in_flight.is_some() || !self.intake.lanes.iter().all(Lane::is_empty) {
            if self.in_flight.is_none() {
                self.flush();
            }
            let reason = match self.writer.outcome(LAST_FLUSH * 2) {
                Some(Outcome::GivenUp(reason)) => reason,
                Some(outcome) => {
                    self.answered(outcome);
                    continue;
                }
                None => "the store does not answer".to_owned(),
            };
            let summed = self.intake.lanes.iter().map(Lane::events).max();
            return Some(Ended {
                unstored: summed.unwrap_or(0),
                reason: Some(reason),
            });
        }
        if self.ended || self.is_stopped() {
            return Some(Ended::default());
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
                for (lane, batch) in self.intake.lanes.iter_mut().zip(batches) {
                    lane.committed(batch);
                }
                self.source.committed(batch);
            }
            Outcome::Conflict => {
                // Another process counted some of these events, as after a connection that broke: what is known is
                // looked up again for all that is not acknowledged.
                self.intake.lanes.iter_mut().for_each(Lane::forget);
                self.source.rewind();
                self.since = None;
                self.ended = false;
            }
            Outcome::GivenUp(_) => {}
        }
    }
}

/// The receiver of a source's deliveries.
struct Summing {
    lanes: Vec<Lane>,
    parser: Parser,
    meter: Arc<Meter>,
    stop: Arc<AtomicBool>,
    dead_letters: Arc<DeadLetters>,
    source: String,
    taken: bool,
}

impl Summing {
    fn bytes(&self) -> usize {
        self.lanes.iter().map(Lane::bytes).sum()
    }

    /// Sums lines in one lane, or in all.
    fn sum(&mut self, lane: Option<usize>, lines: &[u8], now: Seconds) {
        let lanes = match lane {
            Some(lane) => &mut self.lanes[lane..=lane],
            None => &mut self.lanes[..],
        };
        let (mut events, mut rejected) = (0, 0);
        self.parser.lines(lines, &mut |line, event| {
            let added =
                event.and_then(|event| lanes.iter_mut().try_for_each(|lane| lane.add(&event, now)));
            match added {
                Ok(()) => events += 1,
                Err(reason) => {
                    rejected += 1;
                    self.dead_letters.add(&self.source, reason, line);
                }
            }
        });
        self.meter.took(events, rejected);
    }

    /// Asks the stores until they answer, so that a source waits while a store is down.
    fn ask<T>(
        &mut self,
        mut ask: impl FnMut(&mut [Lane]) -> crate::store::Result<T>,
    ) -> Result<T, Stopped> {
        let mut wait = TICK;
        loop {
            match ask(&mut self.lanes) {
                Ok(answer) => return Ok(answer),
                Err(error) => self.meter.store_is_down(&error.to_string()),
            }
            let until = Instant::now() + wait;
            wait = (wait * 2).min(SLOWEST_RETRY);
            while Instant::now() < until {
                if self.stop.load(Relaxed) {
                    return Err(Stopped);
                }
                std::thread::sleep(TICK / 4);
            }
        }
    }
}

impl Intake for Summing {
    fn take(&mut self, deliveries: &[Delivery<'_>]) -> Result<(), Stopped> {
        let skips = self.ask(|lanes| {
            let skips = lanes.iter_mut().map(|lane| lane.skips(deliveries));
            skips.collect::<Result<Vec<_>, _>>()
        })?;
        let now = now();
        for (index, delivery) in deliveries.iter().enumerate() {
            let first = skips.first().map_or(0, |skips| skips[index]);
            if skips.iter().all(|skips| skips[index] == first) {
                self.sum(None, delivery.lines.get(first..).unwrap_or_default(), now);
            } else {
                // After an end at which some stores had committed, and others not.
                for (lane, skips) in skips.iter().enumerate() {
                    self.sum(
                        Some(lane),
                        delivery.lines.get(skips[index]..).unwrap_or_default(),
                        now,
                    );
                }
            }
            for (lane, skips) in self.lanes.iter_mut().zip(&skips) {
                lane.took(delivery, skips[index]);
            }
        }
        self.taken = true;
        self.meter.in_memory(self.lanes.iter().map(Lane::len).sum());
        Ok(())
    }

    fn position(&mut self, source: &str) -> Result<Option<u64>, Stopped> {
        self.ask(|lanes| {
            let at: Result<Vec<Option<u64>>, _> =
                lanes.iter_mut().map(|lane| lane.position(source)).collect();
            let at = at?;
            // Of several stores the one that has least; one without is at the beginning of what another has.
            let least = at.iter().map(|at| at.unwrap_or(0)).min();
            Ok(least.filter(|_| at.iter().any(Option::is_some)))
        })
    }
}

#[cfg(test)]
mod tests;
