//! blkparse's default output.

use std::io::{self, Write};

use super::events::EventOutput;
use super::kernel::{number_of, pid_of, rwbs};
use crate::event::{Event, RequestStep};
use crate::io::{Described, Op};

/// Writer.
pub(super) struct Blkparse<W> {
    out: W,
    sequence: u64,
}

impl<W> Blkparse<W> {
    pub(super) fn new(out: W) -> Blkparse<W> {
        Blkparse { out, sequence: 0 }
    }
}

impl<W: Write> EventOutput for Blkparse<W> {
    fn event(&mut self, event: &Event, described: &dyn Described) -> io::Result<()> {
        self.sequence += 1;
        let place = usize::from(event.device.0);
        let name = described
            .devices()
            .get(place)
            .map_or("", |device| &device.name);
        let (major, minor) = number_of(name, place);
        let (action, bracket) = match event.step {
            RequestStep::Completed { failed: false } => ('C', "0"),
            RequestStep::Completed { failed: true } => ('C', "-5"),
            step => {
                let process = event.process.and_then(|index| described.name(index));
                let letter = match step {
                    RequestStep::Queued => 'Q',
                    RequestStep::Requeued => 'R',
                    _ => 'D',
                };
                (letter, process.unwrap_or_default())
            }
        };
        let pid = pid_of(event);
        let (seconds, nanos) = (event.time.0 / 1_000_000_000, event.time.0 % 1_000_000_000);
        write!(
            self.out,
            "{major:3},{minor:<3} {:2} {:8} {seconds:5}.{nanos:09} {pid:5} {action:>2} {:>3} ",
            0,
            self.sequence,
            rwbs(event.op, event.fua),
        )?;
        if event.op != Op::Flush {
            write!(
                self.out,
                "{} + {} ",
                event.offset.0 / 512,
                event.length.0 / 512
            )?;
        }
        // A process may have a line feed in its name.
        writeln!(self.out, "[{}]", bracket.replace(char::is_control, " "))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
