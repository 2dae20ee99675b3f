//! Access to the trace for both passes.

use trace::{Io, ReadError, TraceReader};

/// Opens the trace at its start; called once for each pass.
pub type Opener<'a> = dyn Fn() -> Result<Box<dyn TraceReader>, ReadError> + Sync + 'a;

/// Arrival of an I/O in nanoseconds: when it was queued in the block layer if that was recorded, since the time of
/// issue depends on the recorded disk's queue, and else its issue.
pub(crate) fn arrival(io: &Io) -> u64 {
    io.queued.unwrap_or(io.issued).min(io.issued).0
}
