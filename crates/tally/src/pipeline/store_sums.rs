//! Sums for one store, and the deliveries that this store already has.

use hashbrown::{HashMap, HashSet};

use crate::event::{ParsedEvent, Rejection};
use crate::identity::unique;
use crate::level::Seconds;
use crate::source::{Delivery, Identity};
use crate::store::{Advance, Batch, Key, Result, Store, StoreError};
use crate::sums::Sums;

/// Bytes to skip if the store has the whole delivery.
pub(super) const ALL: usize = usize::MAX;

/// Sums for one store that are not committed.
pub(super) struct StoreSums {
    /// Only queried; the writer has a connection of its own.
    store: Box<dyn Store>,
    sums: Sums,
    keys: Vec<Key>,
    /// Identities of deliveries that are summed and not committed.
    pending: HashSet<Key>,
    advances: Vec<Advance>,
    /// Positions up to which events are summed or committed.
    positions: HashMap<String, u64>,
    /// Sums of a committed batch, whose memory is reused.
    spare: Option<Sums>,
    /// Number of events in the batch that is being written.
    in_flight: u64,
    name: [u8; 16],
    number: u64,
    /// True if the store did not answer. Until a batch is committed, every identity is taken for new; if one is not,
    /// the batch is a conflict, and the source delivers again.
    is_blind: bool,
}

impl StoreSums {
    pub(super) fn new(store: Box<dyn Store>) -> StoreSums {
        StoreSums {
            sums: Sums::new(store.settings().bounds.clone()),
            store,
            keys: Vec::new(),
            pending: HashSet::new(),
            advances: Vec::new(),
            positions: HashMap::new(),
            spare: None,
            in_flight: 0,
            name: unique(),
            number: 0,
            is_blind: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Number of rows that a flush writes, without histograms. Identities are included: a source with many small
    /// deliveries would otherwise reach its own limit long before a flush is due.
    pub(super) fn rows(&self) -> usize {
        self.sums.len() + self.keys.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sums.is_empty() && self.keys.is_empty() && self.advances.is_empty()
    }

    /// Number of events that are summed and not committed.
    pub(super) fn events(&self) -> u64 {
        self.sums.events() + self.in_flight
    }

    pub(super) fn bytes(&self) -> usize {
        self.sums.bytes()
            + self
                .keys
                .iter()
                .map(|key| 2 * (key.bytes().len() + 24))
                .sum::<usize>()
    }

    /// Bytes of each delivery to skip, since the store has them; [`ALL`] if it has the whole delivery.
    pub(super) fn skips(&mut self, deliveries: &[Delivery<'_>]) -> Result<Vec<usize>> {
        let keys: Vec<Key> = deliveries
            .iter()
            .filter_map(|delivery| match &delivery.identity {
                Identity::Key(key) => Some(key.clone()),
                _ => None,
            })
            .collect();
        let known = match keys.is_empty() || self.is_blind {
            true => Vec::new(),
            false => match self.store.known(&keys) {
                Ok(known) => known,
                Err(StoreError::Unavailable(_)) => {
                    self.is_blind = true;
                    Vec::new()
                }
                Err(error) => return Err(error),
            },
        };
        let mut known = known.into_iter();
        let mut seen: HashSet<&Key> = HashSet::new();
        let mut skips = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            skips.push(match &delivery.identity {
                Identity::None => 0,
                Identity::Key(key) => {
                    let is_known = known.next().unwrap_or(false)
                        || self.pending.contains(key)
                        || !seen.insert(key);
                    if is_known { ALL } else { 0 }
                }
                Identity::Step { source, from, to } => {
                    match self.position(source)?.unwrap_or(*from) {
                        at if at >= *to => ALL,
                        at => usize::try_from(at.saturating_sub(*from)).unwrap_or(ALL),
                    }
                }
            });
        }
        Ok(skips)
    }

    pub(super) fn position(&mut self, source: &str) -> Result<Option<u64>> {
        if let Some(at) = self.positions.get(source) {
            return Ok(Some(*at));
        }
        let at = self.store.position(source)?;
        if let Some(at) = at {
            self.positions.insert(source.to_owned(), at);
        }
        Ok(at)
    }

    pub(super) fn add(
        &mut self,
        event: &ParsedEvent<'_>,
        now: Seconds,
    ) -> std::result::Result<(), Rejection> {
        self.sums.add(event, now)
    }

    /// Records that a delivery is summed, except the bytes that were skipped.
    pub(super) fn took(&mut self, delivery: &Delivery<'_>, skipped: usize) {
        if skipped == ALL {
            return;
        }
        match &delivery.identity {
            Identity::None => {}
            Identity::Key(key) => {
                self.pending.insert(key.clone());
                self.keys.push(key.clone());
            }
            Identity::Step { source, from, to } => {
                let from = from + skipped as u64;
                self.positions.insert((*source).to_owned(), *to);
                match self
                    .advances
                    .iter_mut()
                    .find(|advance| advance.source == *source)
                {
                    Some(advance) => advance.to = *to,
                    None => self.advances.push(Advance {
                        source: (*source).to_owned(),
                        from,
                        to: *to,
                    }),
                }
            }
        }
    }

    /// Returns the sums as a batch; the next sums are empty.
    pub(super) fn seal(&mut self) -> Batch {
        let bounds = self.store.settings().bounds.clone();
        let empty = self.spare.take().unwrap_or_else(|| Sums::new(bounds));
        let mut sums = std::mem::replace(&mut self.sums, empty);
        sums.settle();
        self.in_flight = sums.events();
        self.number += 1;
        Batch {
            key: Key::new("batch", &[&self.name, &self.number.to_be_bytes()]),
            sums,
            keys: std::mem::take(&mut self.keys),
            advances: std::mem::take(&mut self.advances),
        }
    }

    /// Records that a batch is in every store.
    pub(super) fn committed(&mut self, mut batch: Batch) {
        for key in &batch.keys {
            self.pending.remove(key);
        }
        batch.sums.clear();
        self.spare = Some(batch.sums);
        self.in_flight = 0;
        self.is_blind = false;
    }

    /// Drops all uncommitted sums, and the cached positions of the store.
    pub(super) fn forget(&mut self) {
        self.sums.clear();
        self.keys.clear();
        self.pending.clear();
        self.advances.clear();
        self.positions.clear();
        self.in_flight = 0;
        self.is_blind = false;
    }
}
