//! Events of the block layer, as blktrace, blkparse and the kernel's tracepoints report them.

use record::{Bytes, Nanos};

use crate::io::{DeviceIndex, NameIndex, Op};

/// Step in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestStep {
    /// A bio was queued in the block layer.
    Queued,
    /// A request was issued to the driver.
    Issued,
    /// The driver returned a request, to be issued again later.
    Requeued,
    /// A request, or a part of it, was completed.
    Completed {
        /// True if it failed.
        failed: bool,
    },
}

/// An event of the kernel: a step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) time: Nanos,
    pub(crate) device: DeviceIndex,
    pub(crate) step: RequestStep,
    pub(crate) op: Op,
    pub(crate) fua: bool,
    /// True for a write before which the device's cache must be flushed. If the device has requests, the kernel issues
    /// a separate request for this flush.
    pub(crate) flush_first: bool,
    /// True if the kernel marked it as a write. A flush that a program requests is an empty write; the kernel's own
    /// flush request is not marked as a write since Linux 4.10.
    pub(crate) marked_write: bool,
    pub(crate) offset: Bytes,
    pub(crate) length: Bytes,
    pub(crate) process: Option<NameIndex>,
    pub(crate) thread: Option<u32>,
}

/// Linux thread ids are lower (PID_MAX_LIMIT). From here on, numbers stand for process names, if a format needs a
/// number and the trace has none.
pub(crate) const FIRST_SUBSTITUTE: u32 = 1 << 22;

/// Thread id from blktrace's `pid`, which is 0 if there is none.
pub(crate) fn thread_of(pid: u32) -> Option<u32> {
    (1..FIRST_SUBSTITUTE).contains(&pid).then_some(pid)
}

impl Event {
    /// Offset of the first byte; 0 for flushes, whose sector has no meaning.
    pub(crate) fn begin(&self) -> u64 {
        match self.op {
            Op::Flush => 0,
            _ => self.offset.0,
        }
    }

    /// Offset after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.begin().saturating_add(self.length.0)
    }
}

/// Operation of a request, and its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestKind {
    pub(crate) op: Op,
    pub(crate) fua: bool,
    pub(crate) flush_first: bool,
    pub(crate) marked_write: bool,
}

/// Kind of a request of this length by the letters of `rwbs` (the kernel's blk_fill_rwbs): F for a flush before it,
/// then the operation, then flags, of which F is FUA. `None` for requests that transfer no user data, such as commands
/// to the driver.
pub(crate) fn of_rwbs(rwbs: &str, length: Bytes) -> Option<RequestKind> {
    let (flush_first, rest) = match rwbs.strip_prefix('F') {
        Some(rest) => (true, rest),
        None => (false, rwbs),
    };
    let kind = |op| RequestKind {
        op,
        fua: op == Op::Write && rest.get(1..).is_some_and(|flags| flags.contains('F')),
        flush_first: op == Op::Write && flush_first,
        marked_write: rest.starts_with('W'),
    };
    match rest.bytes().next() {
        Some(b'R') => Some(kind(Op::Read)),
        Some(b'W') if flush_first && length == Bytes(0) => Some(kind(Op::Flush)),
        // REQ_OP_WRITE_ZEROES, as FALLOC_FL_PUNCH_HOLE sends it: WZ on kernels that have letters for it, N before.
        Some(b'W') if rest.starts_with("WZ") => Some(kind(Op::Discard)),
        Some(b'N') if length > Bytes(0) => Some(kind(Op::Discard)),
        Some(b'W') => Some(kind(Op::Write)),
        Some(b'D') => Some(kind(Op::Discard)),
        Some(b'F') => Some(kind(Op::Flush)),
        // blkparse leaves out an operation that is neither a read nor a write.
        _ if flush_first && length == Bytes(0) => Some(kind(Op::Flush)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_the_kernel_writes_them() {
        let some = Bytes(4096);
        for (rwbs, length, expected) in [
            ("R", some, Some((Op::Read, false, false))),
            ("RA", some, Some((Op::Read, false, false))),
            ("WS", some, Some((Op::Write, false, false))),
            ("WFS", some, Some((Op::Write, true, false))),
            ("FWFS", some, Some((Op::Write, true, true))),
            ("FWS", some, Some((Op::Write, false, true))),
            ("FWS", Bytes(0), Some((Op::Flush, false, false))),
            ("FF", Bytes(0), Some((Op::Flush, false, false))),
            ("FN", Bytes(0), Some((Op::Flush, false, false))),
            ("D", some, Some((Op::Discard, false, false))),
            ("DE", some, Some((Op::Discard, false, false))),
            ("N", some, Some((Op::Discard, false, false))),
            ("NS", some, Some((Op::Discard, false, false))),
            ("WZS", some, Some((Op::Discard, false, false))),
            ("ZA", some, None),
            ("N", Bytes(0), None),
            ("", some, None),
        ] {
            let expected = expected.map(|(op, fua, flush_first)| RequestKind {
                op,
                fua,
                flush_first,
                marked_write: rwbs.contains('W'),
            });
            assert_eq!(of_rwbs(rwbs, length), expected, "{rwbs}");
        }
    }
}
