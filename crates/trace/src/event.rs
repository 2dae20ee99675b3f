//! Events of the block layer, as blktrace, blkparse and the kernel's tracepoints tell them.

use record::{Bytes, Nanos};

use crate::io::{DeviceIndex, NameIndex, Op};

/// Step of a request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A bio came to the block layer.
    Queued,
    /// A request went to the driver.
    Issued,
    /// The driver gave a request back, to issue it again later.
    Requeued,
    /// A request, or a part of it, was completed.
    Completed {
        /// With an error.
        failed: bool,
    },
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) time: Nanos,
    pub(crate) device: DeviceIndex,
    pub(crate) step: Step,
    pub(crate) op: Op,
    pub(crate) fua: bool,
    pub(crate) offset: Bytes,
    pub(crate) length: Bytes,
    pub(crate) process: Option<NameIndex>,
}

/// Operation and FUA of a request of this length by the letters of `rwbs` (the kernel's blk_fill_rwbs): F for a
/// flush before it, then the operation, then flags, of which F is FUA. `None` for what moves no data of a user, such
/// as commands to the driver.
pub(crate) fn of_rwbs(rwbs: &str, length: Bytes) -> Option<(Op, bool)> {
    let (flush_first, rest) = match rwbs.strip_prefix('F') {
        Some(rest) => (true, rest),
        None => (false, rwbs),
    };
    let fua = rest.get(1..).is_some_and(|flags| flags.contains('F'));
    match rest.bytes().next() {
        Some(b'R') => Some((Op::Read, false)),
        Some(b'W') if flush_first && length == Bytes(0) => Some((Op::Flush, false)),
        Some(b'W') => Some((Op::Write, fua)),
        Some(b'D') => Some((Op::Discard, false)),
        Some(b'F') => Some((Op::Flush, false)),
        // blkparse leaves out an operation that is neither a read nor a write.
        _ if flush_first && length == Bytes(0) => Some((Op::Flush, false)),
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
            ("R", some, Some((Op::Read, false))),
            ("RA", some, Some((Op::Read, false))),
            ("WS", some, Some((Op::Write, false))),
            ("WFS", some, Some((Op::Write, true))),
            ("FWFS", some, Some((Op::Write, true))),
            ("FWS", some, Some((Op::Write, false))),
            ("FWS", Bytes(0), Some((Op::Flush, false))),
            ("FF", Bytes(0), Some((Op::Flush, false))),
            ("FN", Bytes(0), Some((Op::Flush, false))),
            ("D", some, Some((Op::Discard, false))),
            ("DE", some, Some((Op::Discard, false))),
            ("N", Bytes(0), None),
            ("", some, None),
        ] {
            assert_eq!(of_rwbs(rwbs, length), expected, "{rwbs}");
        }
    }
}
