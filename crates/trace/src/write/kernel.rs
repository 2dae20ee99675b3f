//! Device numbers, thread ids and letters of operations, as the kernel writes them.

use crate::event::{Event, FIRST_SUBSTITUTE};
use crate::io::Op;

/// A device's number: the one in its name if it has one, else a number made from its index.
pub(super) fn number_of(name: &str, place: usize) -> (u32, u32) {
    own_number(name).unwrap_or((259, place as u32))
}

/// The number of a device whose name is `major,minor`.
pub(super) fn own_number(name: &str) -> Option<(u32, u32)> {
    let (major, minor) = name.split_once(',')?;
    let number = (major.parse().ok()?, minor.parse().ok()?);
    let fits = |(major, minor): &(u32, u32)| *major < 1 << 12 && *minor < 1 << 20;
    Some(number).filter(fits)
}

/// Thread id of an event, or else a number that stands for its process's name, or 0.
pub(super) fn pid_of(event: &Event) -> u32 {
    let substitute = || Some(FIRST_SUBSTITUTE.saturating_add(event.process?.0));
    event.thread.or_else(substitute).unwrap_or(0)
}

/// Letters of an operation as the kernel writes them.
pub(super) fn rwbs(op: Op, fua: bool) -> &'static str {
    match (op, fua) {
        (Op::Read, _) => "R",
        (Op::Write, false) => "W",
        (Op::Write, true) => "WFS",
        (Op::Flush, _) => "FN",
        (Op::Discard, _) => "D",
    }
}
