//! Events of the block layer, as blktrace, blkparse and the kernel's tracepoints report them.

use record::{Bytes, Nanos};

use crate::io::{DeviceIndex, NameIndex, Op};

/// Step of a request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestStep {
    /// A bio came to the block layer.
    Queued,
    /// A request went to the driver.
    Issued,
    /// The driver gave a request back, to issue it again later.
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
    /// True of a write before which the device's cache is to be flushed. Where a device has requests, the kernel makes
    /// one of its own of that flush.
    pub(crate) flush_first: bool,
    /// True if the kernel marked it as a write. A flush that a program asks for is an empty write; the kernel's
    /// own request for it is not, since Linux 4.10.
    pub(crate) marked_write: bool,
    pub(crate) offset: Bytes,
    pub(crate) length: Bytes,
    pub(crate) process: Option<NameIndex>,
    pub(crate) thread: Option<u32>,
}

/// Threads of Linux have lower numbers (its PID_MAX_LIMIT), so that those from here on stand for the names of processes
/// where a format needs a number and the trace has none.
pub(crate) const FIRST_SUBSTITUTE: u32 = 1 << 22;

/// Thread of an event by blktrace's `pid`, which is 0 where there is none.
pub(crate) fn thread_of(pid: u32) -> Option<u32> {
    (1..FIRST_SUBSTITUTE).contains(&pid).then_some(pid)
}

impl Event {
    /// First byte. Flushes have no place, though events give one.
    pub(crate) fn begin(&self) -> u64 {
        match self.op {
            Op::Flush => 0,
            _ => self.offset.0,
        }
    }

    /// First byte behind it.
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
/// then the operation, then flags, of which F is FUA. `None` for what moves no data of a user, such as commands to the
/// driver.
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
        // Zeroes without data, as FALLOC_FL_PUNCH_HOLE sends them: WZ where the kernel has letters for them, N before.
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
