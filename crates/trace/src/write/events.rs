//! Converts I/Os to events in the order of time.

use std::io;

use record::Nanos;

use super::output::Output;
use crate::event::{Event, RequestStep};
use crate::io::{Described, Io, Op};
use crate::order::{REORDER_ENTRIES, Reorder};

/// Writer of events.
pub(super) trait EventOutput {
    fn event(&mut self, event: &Event, described: &dyn Described) -> io::Result<()>;
    fn finish(&mut self) -> io::Result<()>;
}

/// Sorts events, and passes them to a writer.
pub(super) struct Events<W> {
    writer: W,
    waiting: Reorder<Event>,
    /// Names used so far, which are needed at the end too, when the trace is no longer available.
    known: UsedNames,
}

/// Names that were used so far.
#[derive(Default)]
struct UsedNames {
    devices: Vec<crate::io::Device>,
    names: std::collections::HashMap<crate::io::NameIndex, String>,
}

impl Described for UsedNames {
    fn devices(&self) -> &[crate::io::Device] {
        &self.devices
    }

    fn name(&self, index: crate::io::NameIndex) -> Option<&str> {
        self.names.get(&index).map(String::as_str)
    }
}

impl<W: EventOutput> Events<W> {
    pub(super) fn new(writer: W) -> Events<W> {
        Events {
            writer,
            waiting: Reorder::default(),
            known: UsedNames::default(),
        }
    }

    fn emit(&mut self, keep: usize) -> io::Result<()> {
        while self.waiting.len() > keep {
            if let Some(event) = self.waiting.pop() {
                self.writer.event(&event, &self.known)?;
            }
        }
        Ok(())
    }
}

impl<W: EventOutput> Output for Events<W> {
    fn write(&mut self, io: &Io, described: &dyn Described) -> io::Result<()> {
        if self.known.devices.len() < described.devices().len() {
            self.known.devices = described.devices().to_vec();
        }
        if let Some(name) = io.process {
            let known = self.known.names.entry(name);
            known.or_insert_with(|| described.name(name).unwrap_or_default().to_owned());
        }
        let mut push = |time: Option<Nanos>, step| {
            if let Some(time) = time {
                self.waiting.push(Event {
                    time,
                    device: io.device,
                    step,
                    op: io.op,
                    fua: io.fua,
                    flush_first: false,
                    marked_write: io.op == Op::Write,
                    offset: io.offset,
                    length: io.length,
                    process: io.process,
                    thread: io.thread,
                });
            }
        };
        // fio's reader and others use only queueing events, so that one is always written.
        push(Some(io.queued.unwrap_or(io.issued)), RequestStep::Queued);
        push(Some(io.issued), RequestStep::Issued);
        push(io.completed, RequestStep::Completed { failed: io.failed });
        self.emit(REORDER_ENTRIES)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.emit(0)?;
        self.writer.finish()
    }
}
