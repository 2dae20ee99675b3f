//! Stores of roll-ups: the contract of all of them, and what is written to them.
//!
//! A batch is written in one transaction with the identities of its events, so that each event is counted once whatever
//! is sent again. [`Store`] writes, [`Archive`] reads; [`StoreAddress`] opens either.

mod address;
#[cfg(feature = "clickhouse")]
pub mod clickhouse;
pub mod late_events;
#[cfg(feature = "mysql")]
pub mod mysql;
pub mod piece;
mod redact;
mod settings;
mod sql;
pub mod sqlite;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::level::{RollUpLevel, Seconds};
use crate::sums::{Sums, Values};

pub use address::StoreAddress;
pub use settings::{Settings, StoreLimits};

/// The schema that this version writes and reads.
pub const SCHEMA: u32 = 1;
/// The longest identity, in bytes.
pub const MAX_KEY_BYTES: usize = 255;
/// Maximum number of tags whose numbers a store caches.
const MAX_CACHED_TAGS: usize = 500_000;
/// Time for which identities are kept, in the store's running time: a source delivers again sooner than that.
pub const KEYS_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Time after the end of a period until it is rolled up. Events may be later still, at the price of more writes.
pub const ROLL_UP_DELAY: Seconds = 300;

/// Identity of a delivery, such as a job, a request or a batch. It begins with the source's kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Box<[u8]>);

impl Key {
    /// An identity made of these parts. One that is too long is shortened to a hash of itself.
    pub fn new(kind: &str, parts: &[&[u8]]) -> Key {
        let mut bytes = kind.as_bytes().to_vec();
        for part in parts {
            bytes.push(0);
            bytes.extend_from_slice(part);
        }
        if bytes.len() > MAX_KEY_BYTES {
            let hash = crate::identity::fingerprint(&bytes);
            bytes.truncate(MAX_KEY_BYTES - size_of_val(&hash));
            bytes.extend_from_slice(&hash);
        }
        Key(bytes.into())
    }

    /// An identity from the bytes in a store.
    pub(crate) fn of(bytes: Vec<u8>) -> Key {
        Key(bytes.into())
    }

    /// Bytes of the identity.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A range of a source that delivers in order, such as a file or a partition of Kafka.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advance {
    /// Name of the source: at most [`MAX_KEY_BYTES`] bytes.
    pub source: String,
    /// Position of the first event.
    pub from: u64,
    /// Position after the last event.
    pub to: u64,
}

/// Rows that are written in one transaction.
#[derive(Debug)]
pub struct Batch {
    /// Identity of the batch itself: applied again after an answer that was lost, it changes nothing.
    pub key: Key,
    /// Sums by minute.
    pub sums: Sums,
    /// Identities of the deliveries that were summed.
    pub keys: Vec<Key>,
    /// Ranges of sources that were summed.
    pub advances: Vec<Advance>,
}

impl Batch {
    /// True if nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty() && self.keys.is_empty() && self.advances.is_empty()
    }
}

/// Outcome of a batch that is in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppliedBatch {
    /// Number of tags in the store's dictionary.
    pub tags: u64,
    /// Number of tags of the batch that went to `(other)`.
    pub others: u64,
}

/// Reason why an operation of a store failed. Either nothing was changed, or the whole batch is in the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A retry may succeed: the server is down, the disk is full, another process has the lock.
    #[error(transparent)]
    Unavailable(anyhow::Error),
    /// An event of the batch was counted by another process meanwhile.
    #[error("another process has counted some of these events")]
    Conflict,
    /// A retry cannot succeed: a schema of a newer version, other settings, no permission.
    #[error(transparent)]
    Refused(anyhow::Error),
}

impl StoreError {
    /// A refusal with a sentence.
    pub fn refused(text: impl Into<String>) -> StoreError {
        StoreError::Refused(anyhow::Error::msg(text.into()))
    }
}

/// Result of a store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A store that is written.
pub trait Store: Send {
    /// Address of the store, without secrets.
    fn address(&self) -> &str;

    /// Settings with which it was made.
    fn settings(&self) -> &Settings;

    /// For each identity, true if the store has it.
    fn known(&mut self, keys: &[Key]) -> Result<Vec<bool>>;

    /// Position up to which a source's events are in the store; `None` if none are.
    fn position(&mut self, source: &str) -> Result<Option<u64>>;

    /// True of a store with no identity and no position, or to which they are being copied.
    fn is_fresh(&mut self) -> Result<bool>;

    /// The first `most` identities after `after`, in order.
    fn identities(&mut self, after: &[u8], most: usize) -> Result<Vec<Key>>;

    /// Position of each source.
    fn positions(&mut self) -> Result<Vec<(String, u64)>>;

    /// Adds identities and positions of another store. While `more` is true, this store still counts as fresh.
    fn adopt(&mut self, keys: &[Key], positions: &[(String, u64)], more: bool) -> Result<()>;

    /// Adds a batch with its identities, in one transaction that is durable when this returns.
    fn apply(&mut self, batch: &Batch, now: Seconds) -> Result<AppliedBatch>;

    /// Rolls up finished periods, and removes rows beyond the limits: a bounded part per call; true if more is left.
    /// `ran` is added to the store's running time.
    fn maintain(&mut self, limits: &StoreLimits, now: Seconds, ran: Duration) -> Result<bool>;
}

/// A tag of a store's dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number of the tag.
    pub id: i64,
    /// Tag with labels: `api.get;host=a`.
    pub name: String,
}

/// A row of a level's table.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRow {
    /// Number of the tag.
    pub tag: i64,
    /// Start of the period.
    pub start: Seconds,
    /// Number of events.
    pub count: f64,
    /// Figures of values.
    pub values: Option<Values>,
}

/// A row of a level's table of buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredBucket {
    /// Number of the tag.
    pub tag: i64,
    /// Start of the period.
    pub start: Seconds,
    /// Bucket of [`crate::histogram`].
    pub bucket: i16,
    /// Number of values.
    pub count: f64,
}

/// A store that is read.
///
/// Periods of a level that begin before its watermark are in its table; later ones are the sum of the finer level's.
/// [`crate::query`] puts them together.
pub trait Archive: Send {
    /// Settings with which the store was made.
    fn settings(&self) -> &Settings;

    /// Begins a snapshot: until [`Archive::release`], all answers are from one moment.
    fn snapshot(&mut self) -> Result<()>;

    /// Ends the snapshot: while it lasts, the database has to keep old versions of changed rows.
    fn release(&mut self);

    /// The dictionary.
    fn entries(&mut self) -> Result<Vec<Entry>>;

    /// Time up to which a level is rolled up. Minutes are not rolled up.
    fn watermark(&mut self, level: RollUpLevel) -> Result<Seconds>;

    /// The earliest and the latest start of a period in a level's table.
    fn span(&mut self, level: RollUpLevel) -> Result<Option<(Seconds, Seconds)>>;

    /// The rows of some tags in a level's table whose periods begin in `[from, to)`.
    fn rows(
        &mut self,
        level: RollUpLevel,
        tags: &[i64],
        from: Seconds,
        to: Seconds,
    ) -> Result<Vec<StoredRow>>;

    /// The histogram buckets of the same rows.
    fn buckets(
        &mut self,
        level: RollUpLevel,
        tags: &[i64],
        from: Seconds,
        to: Seconds,
    ) -> Result<Vec<StoredBucket>>;

    /// The tags with the most events among a level's periods that begin in `[from, to)`, and those counts.
    fn top(
        &mut self,
        level: RollUpLevel,
        from: Seconds,
        to: Seconds,
        most: usize,
    ) -> Result<Vec<(i64, f64)>>;
}
