//! The receiver of a source's deliveries: parses them and sums what no store has yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use super::meter::Meter;
use super::store_sums::StoreSums;
use super::timing::{MAX_RETRY_DELAY, TICK, now};
use super::{DeadLetters, SumTargets};
use crate::level::Seconds;
use crate::parse::Parser;
use crate::source::{Delivery, Intake, Stopped};

/// The receiver of a source's deliveries.
pub(super) struct DeliveryReceiver {
    pub(super) stores: Vec<StoreSums>,
    pub(super) plan: Arc<SumTargets>,
    pub(super) parser: Parser,
    pub(super) meter: Arc<Meter>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) dead_letters: Arc<DeadLetters>,
    pub(super) source: String,
    /// True if something was taken since it was last reset.
    pub(super) taken: bool,
}

impl DeliveryReceiver {
    /// Memory of the sums for all stores, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.stores.iter().map(StoreSums::bytes).sum()
    }

    /// Sums lines in one store, or in all.
    fn sum(&mut self, store: Option<usize>, lines: &[u8], now: Seconds) {
        let stores = match store {
            Some(store) => store..store + 1,
            None => 0..self.stores.len(),
        };
        let (all, plan) = (&mut self.stores, &self.plan);
        let (mut events, mut rejected) = (0, 0);
        self.parser.lines(lines, &mut |line, event| {
            let added = event.and_then(|event| {
                let stores = match &plan.routes {
                    None => stores.clone(),
                    Some(routes) => match routes.store(event.tag, event.at.unwrap_or(now)) {
                        Some(store) if stores.contains(&store) => store..store + 1,
                        _ => return Ok(()),
                    },
                };
                let mut stores = all[stores].iter_mut();
                stores.try_for_each(|store| store.add(&event, now))
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

    /// Repeats a query until the stores answer, so that a source waits while a store is down.
    fn ask<T>(
        &mut self,
        mut ask: impl FnMut(&mut [StoreSums]) -> crate::store::Result<T>,
    ) -> Result<T, Stopped> {
        let mut wait = TICK;
        loop {
            match ask(&mut self.stores) {
                Ok(answer) => return Ok(answer),
                Err(error) => self.meter.store_is_down(&error.to_string()),
            }
            let until = Instant::now() + wait;
            wait = (wait * 2).min(MAX_RETRY_DELAY);
            while Instant::now() < until {
                if self.stop.load(Relaxed) {
                    return Err(Stopped);
                }
                std::thread::sleep(TICK / 4);
            }
        }
    }
}

impl Intake for DeliveryReceiver {
    fn take(&mut self, deliveries: &[Delivery<'_>]) -> Result<(), Stopped> {
        let skips = self.ask(|stores| {
            let skips = stores.iter_mut().map(|store| store.skips(deliveries));
            skips.collect::<Result<Vec<_>, _>>()
        })?;
        let now = now();
        for (index, delivery) in deliveries.iter().enumerate() {
            let first = skips.first().map_or(0, |skips| skips[index]);
            if skips.iter().all(|skips| skips[index] == first) {
                self.sum(None, delivery.lines.get(first..).unwrap_or_default(), now);
            } else {
                // The last run ended after some stores had committed, and before the others.
                for (store, skips) in skips.iter().enumerate() {
                    self.sum(
                        Some(store),
                        delivery.lines.get(skips[index]..).unwrap_or_default(),
                        now,
                    );
                }
            }
            for (store, skips) in self.stores.iter_mut().zip(&skips) {
                store.took(delivery, skips[index]);
            }
        }
        self.taken = true;
        self.meter
            .in_memory(self.stores.iter().map(StoreSums::len).sum());
        Ok(())
    }

    fn position(&mut self, source: &str) -> Result<Option<u64>, Stopped> {
        self.ask(|stores| {
            let at: Result<Vec<Option<u64>>, _> = stores
                .iter_mut()
                .map(|store| store.position(source))
                .collect();
            let at = at?;
            // The lowest position of all stores; a store without a position counts as 0 if another store has one.
            let least = at.iter().map(|at| at.unwrap_or(0)).min();
            Ok(least.filter(|_| at.iter().any(Option::is_some)))
        })
    }
}
