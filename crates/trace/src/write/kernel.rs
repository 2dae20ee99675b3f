//! Numbers of devices and threads, and letters of operations, as the kernel writes them.

use crate::event::{Event, FIRST_SUBSTITUTE};
use crate::io::Op;

/// A device's number, `major,minor`: its own where it is named so, else one by its place.
pub(super) fn number_of(name: &str, place: usize) -> (u32, u32) {
    let own = name.split_once(',');
    let own = own.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let fits = |(major, minor): &(u32, u32)| *major < 1 << 12 && *minor < 1 << 20;
    own.filter(fits).unwrap_or((259, place as u32))
}

/// Number of an event's thread, or else one that stands for its process's name, or 0.
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
