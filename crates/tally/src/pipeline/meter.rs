//! Counters of a pipeline, which the screen, the log lines and `/metrics` read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::store::AppliedBatch;

/// The counters of a source.
#[derive(Debug, Default)]
pub struct Meter {
    /// Events that were summed.
    pub events: AtomicU64,
    /// Lines that were rejected.
    pub rejected: AtomicU64,
    /// Deliveries without an identity.
    pub unidentified: AtomicU64,
    /// Datagrams that the kernel dropped.
    pub lost: AtomicU64,
    /// Batches that were committed.
    pub flushes: AtomicU64,
    /// Sums of all committed batches.
    pub flushed_sums: AtomicU64,
    /// Duration of the last flush, in microseconds.
    pub last_flush_us: AtomicU64,
    /// Duration of all flushes, in microseconds.
    pub flush_us: AtomicU64,
    /// Different sums in memory.
    pub sums: AtomicU64,
    /// Number of tags in the largest dictionary of all stores.
    pub tags: AtomicU64,
    /// Tags that went to `(other)`, in all batches.
    pub others: AtomicU64,
    /// Events or bytes that wait at the source.
    pub lag: AtomicU64,
    /// True if the source knows its lag.
    pub has_lag: AtomicBool,
    /// True while a screen shows the top tags.
    pub top_is_shown: AtomicBool,
    /// Tags with the most events of the last batch.
    top: Mutex<Vec<(String, f64)>>,
    /// Reasons why the source and the stores are down.
    down: Mutex<Down>,
}

#[derive(Clone, Debug, Default)]
struct Down {
    source: Option<String>,
    store: Option<String>,
}

impl Meter {
    pub(super) fn took(&self, events: u64, rejected: u64) {
        self.events.fetch_add(events, Relaxed);
        self.rejected.fetch_add(rejected, Relaxed);
    }

    pub(crate) fn set_lag(&self, lag: Option<u64>) {
        self.has_lag.store(lag.is_some(), Relaxed);
        self.lag.store(lag.unwrap_or(0), Relaxed);
    }

    /// Tags with the most events of the last batch.
    pub fn top(&self) -> Vec<(String, f64)> {
        self.top
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_top(&self, top: Vec<(String, f64)>) {
        *self.top.lock().unwrap_or_else(PoisonError::into_inner) = top;
    }

    pub(super) fn in_memory(&self, sums: usize) {
        self.sums.store(sums as u64, Relaxed);
    }

    pub(super) fn flushed(&self, sums: usize, took: Duration, applied: &[AppliedBatch]) {
        let micros = took.as_micros() as u64;
        self.flushes.fetch_add(1, Relaxed);
        self.flushed_sums.fetch_add(sums as u64, Relaxed);
        self.last_flush_us.store(micros, Relaxed);
        self.flush_us.fetch_add(micros, Relaxed);
        self.tags.store(
            applied.iter().map(|one| one.tags).max().unwrap_or(0),
            Relaxed,
        );
        self.others
            .fetch_add(applied.iter().map(|one| one.others).sum(), Relaxed);
    }

    fn change(&self, change: impl FnOnce(&mut Down) -> Option<String>) {
        let mut down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(news) = change(&mut down) {
            drop(down);
            crate::notices::report(&news);
        }
    }

    pub(crate) fn source_is_down(&self, source: &str, reason: &str) {
        self.change(|down| {
            let is_news = down.source.replace(reason.to_owned()).is_none();
            is_news.then(|| format!("{source}: {reason}; trying again"))
        });
    }

    pub(super) fn source_is_up(&self) {
        self.change(|down| {
            down.source
                .take()
                .map(|reason| format!("The source is back, after: {reason}"))
        });
    }

    pub(super) fn store_is_down(&self, reason: &str) {
        self.change(|down| {
            let is_news = down.store.replace(reason.to_owned()).is_none();
            is_news.then(|| format!("{reason}; trying again, and summing in memory meanwhile"))
        });
    }

    pub(super) fn store_is_up(&self, store: &str) {
        self.change(|down| {
            down.store
                .take()
                .map(|_| format!("{store} takes sums again"))
        });
    }

    /// Reason why a store is down.
    pub(crate) fn store_reason(&self) -> Option<String> {
        let down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        down.store.clone()
    }

    /// Reasons why the source or a store is down.
    pub fn reasons(&self) -> Vec<String> {
        let down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        [&down.source, &down.store]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }
}
