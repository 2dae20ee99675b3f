//! The receiver of a source's deliveries: parses them and sums what no store has yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use super::lane::Lane;
use super::meter::Meter;
use super::{DeadLetters, Plan, SLOWEST_RETRY, TICK, now};
use crate::level::Seconds;
use crate::parse::Parser;
use crate::source::{Delivery, Intake, Stopped};

/// The receiver of a source's deliveries.
pub(super) struct Summing {
    pub(super) lanes: Vec<Lane>,
    pub(super) plan: Arc<Plan>,
    pub(super) parser: Parser,
    pub(super) meter: Arc<Meter>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) dead_letters: Arc<DeadLetters>,
    pub(super) source: String,
    /// Something was taken since this was last looked at.
    pub(super) taken: bool,
}

impl Summing {
    /// Bytes of all lanes.
    pub(super) fn bytes(&self) -> usize {
        self.lanes.iter().map(Lane::bytes).sum()
    }

    /// Sums lines in one lane, or in all.
    fn sum(&mut self, lane: Option<usize>, lines: &[u8], now: Seconds) {
        let lanes = match lane {
            Some(lane) => lane..lane + 1,
            None => 0..self.lanes.len(),
        };
        let (all, plan) = (&mut self.lanes, &self.plan);
        let (mut events, mut rejected) = (0, 0);
        self.parser.lines(lines, &mut |line, event| {
            let added = event.and_then(|event| {
                let lanes = match &plan.routes {
                    None => lanes.clone(),
                    Some(routes) => match routes.store(event.tag, event.at.unwrap_or(now)) {
                        Some(store) if lanes.contains(&store) => store..store + 1,
                        _ => return Ok(()),
                    },
                };
                let mut lanes = all[lanes].iter_mut();
                lanes.try_for_each(|lane| lane.add(&event, now))
            });
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
