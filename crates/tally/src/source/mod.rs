//! Sources of events: the contract of all of them, and their addresses.
//!
//! A source delivers lines of events, each delivery with its identity, and is told when they are committed to every
//! store. It acknowledges them then, and not before, so that what was not committed is delivered again.

mod address;
pub mod file;
pub mod gearman;
pub mod http;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod statsd;
pub mod stdin;

use std::time::Duration;

use crate::store::Key;

pub use address::{Options, SourceAddress};

/// Identity of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity<'a> {
    /// No identity: it is counted as often as it is delivered.
    None,
    /// A unique key.
    Key(Key),
    /// A range of a source that is read in order.
    Step {
        /// Name of the file or partition.
        source: &'a str,
        /// Position at which the delivery begins.
        from: u64,
        /// Position after the delivery. Only a position that counts bytes of the lines may lie within a delivery.
        to: u64,
    },
}

/// Lines of events with their identity.
#[derive(Clone, Debug)]
pub struct Delivery<'a> {
    /// Identity of the delivery, by which it is counted once.
    pub identity: Identity<'a>,
    /// The events, one a line.
    pub lines: &'a [u8],
}

/// The receiver of deliveries.
pub trait Intake {
    /// Sums the events of deliveries that no store has yet. All of them belong to the batch that is sealed next.
    ///
    /// # Errors
    /// Where a stop was requested while a store did not answer; nothing was taken.
    fn take(&mut self, deliveries: &[Delivery<'_>]) -> Result<(), Stopped>;

    /// Position up to which every store has the events of a source that is read in order; `None` if no store has any.
    ///
    /// # Errors
    /// Where a stop was requested while a store did not answer.
    fn position(&mut self, source: &str) -> Result<Option<u64>, Stopped>;
}

/// A stop was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

/// Outcome of a poll.
#[derive(Debug)]
pub enum PollResult {
    /// More may be available at once.
    More,
    /// Nothing arrived within the wait.
    Idle,
    /// The source has ended.
    End,
    /// The source cannot be read now, for this reason; a later poll tries again.
    Down(String),
}

/// A source.
///
/// The calls come from one thread, in this order: `poll`, any number of times; `sealed`, when what was taken so far
/// makes a batch; `committed`, when that batch is in every store, after further polls.
pub trait Source: Send {
    /// Address of the source, without secrets.
    fn address(&self) -> &str;

    /// Maximum time from a delivery to its flush; `None` if the flush rule is enough.
    fn delay(&self) -> Option<Duration> {
        None
    }

    /// Waits for deliveries at most this time, and passes some to `intake`.
    fn poll(&mut self, wait: Duration, intake: &mut dyn Intake) -> PollResult;

    /// Assigns everything taken since the last call to this batch.
    fn sealed(&mut self, batch: u64) {
        let _ = batch;
    }

    /// Acknowledges a batch that is in every store.
    fn committed(&mut self, batch: u64) {
        let _ = batch;
    }

    /// Forgets the deliveries of batches that are not committed; they are to be delivered again.
    fn rewind(&mut self);

    /// Number of events or bytes that wait at the source; `None` if it is unknown.
    fn lag(&self) -> Option<u64> {
        None
    }

    /// Number of datagrams that the kernel dropped, since they came faster than they were taken.
    fn lost(&self) -> u64 {
        0
    }

    /// Number of deliveries that could only be counted at least once, for want of an identity.
    fn unidentified(&self) -> u64 {
        0
    }
}
