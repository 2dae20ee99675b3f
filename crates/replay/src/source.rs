//! The trace, as both passes read it.

use trace::{Io, ReadError, TraceReader};

/// Opens the trace from its start; it is called once for each pass.
pub type Opener<'a> = dyn Fn() -> Result<Box<dyn TraceReader>, ReadError> + Sync + 'a;

/// Time at which an I/O came: to the block layer where that was recorded, since the time of issue is shaped by the
/// disk's own queue, and else its issue.
pub(crate) fn arrival(io: &Io) -> u64 {
    io.queued.unwrap_or(io.issued).min(io.issued).0
}
