//! Sorts events of several processors by time, and pairs them.

use crate::decode::Sink;
use crate::event::Event;
use crate::order::{REORDER_ENTRIES, Reorder};
use crate::pair::Pairing;

/// Sorts events, and pairs them into I/Os.
#[derive(Debug, Default)]
pub(super) struct OrderedEvents {
    events: Reorder<Event>,
    pairing: Pairing,
}

impl OrderedEvents {
    /// Adds an event, and passes on the I/Os whose order is certain.
    pub(super) fn push(&mut self, event: Event, sink: &mut Sink) {
        self.events.push(event);
        while self.events.len() > REORDER_ENTRIES {
            self.pair(sink);
        }
    }

    /// Passes on all held events; no more follow.
    pub(super) fn end(&mut self, sink: &mut Sink) {
        while self.events.len() > 0 {
            self.pair(sink);
        }
        self.pairing.end();
        self.emit(sink);
    }

    fn pair(&mut self, sink: &mut Sink) {
        if let Some(event) = self.events.pop() {
            self.pairing.push(event);
            self.emit(sink);
        }
    }

    fn emit(&mut self, sink: &mut Sink) {
        while let Some(io) = self.pairing.pop() {
            sink.push(io);
        }
        sink.caveats.ambiguous = self.pairing.ambiguous;
    }
}
