//! Events of several processors, brought into the order of their time and paired.

use record::Bytes;

use crate::decode::Sink;
use crate::event::{Event, Step};
use crate::io::Op;
use crate::order::{HELD, Reorder};
use crate::pair::Pairing;

/// Events on their way to I/Os.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    events: Reorder<Event>,
    pairing: Pairing,
    /// True if flushes are issued with the letters of the requests that asked for them.
    flushes_are_writes: bool,
}

impl Ordered {
    /// Takes an event in, and gives on what is certain by it. `is_write` is true of one with the letter of a write.
    pub(super) fn push(&mut self, event: Event, is_write: bool, sink: &mut Sink) {
        if self.repeats(&event, is_write) {
            return;
        }
        self.events.push(event);
        while self.events.len() > HELD {
            self.pair(sink);
        }
    }

    /// True of a completion that is told once more: the kernel makes a request of its own of a flush, behind which the
    /// request that asked for it is completed, and so is a write behind which a flush followed, without bytes then.
    fn repeats(&mut self, event: &Event, is_write: bool) -> bool {
        if event.length > Bytes(0) {
            return false;
        }
        match (event.step, event.op) {
            // Before Linux 4.10 the kernel's own request had the letters of the one that asked for it.
            (Step::Issued, Op::Flush) => self.flushes_are_writes |= is_write,
            (Step::Completed { .. }, Op::Flush) => return is_write && !self.flushes_are_writes,
            (Step::Completed { .. }, _) => return true,
            _ => {}
        }
        false
    }

    /// No more events come.
    pub(super) fn end(&mut self, sink: &mut Sink) {
        while self.events.len() > 0 {
            self.pair(sink);
        }
        self.pairing.end();
        self.give(sink);
    }

    fn pair(&mut self, sink: &mut Sink) {
        if let Some(event) = self.events.pop() {
            self.pairing.push(event);
            self.give(sink);
        }
    }

    fn give(&mut self, sink: &mut Sink) {
        while let Some(io) = self.pairing.pop() {
            sink.push(io);
        }
        sink.caveats.ambiguous = self.pairing.ambiguous;
    }
}
