//! blkparse's default output: `device cpu sequence seconds pid action rwbs`, then by action `sector + sectors
//! [process]`, or `[error]` of a completion (blkparse(1)).

use record::{Bytes, Nanos};

use super::ordered::Ordered;
use crate::decode::{Sink, Zero};
use crate::event::{Event, RequestStep, of_rwbs, thread_of};
use crate::text::{Fields, LineError, LineFormat, Malformed};

/// Its name.
pub(crate) const NAME: &str = "blkparse";
/// Zero of its times.
pub(crate) const ZERO: Zero = Zero::Arbitrary;

const SECTOR: u64 = 512;

/// True if a text that begins so is of blkparse.
pub(crate) fn matches(start: &str) -> bool {
    let line = start.lines().find(|line| !line.trim().is_empty());
    line.is_some_and(|line| is_event(line) && head_of(line).is_ok())
}

/// True of lines of events; behind them come sums.
fn is_event(line: &str) -> bool {
    let number = |text: &str| text.parse::<u32>().is_ok();
    let device = line.split_ascii_whitespace().next().unwrap_or_default();
    let device = device.split_once(',');
    device.is_some_and(|(major, minor)| number(major) && number(minor))
}

struct Head<'a> {
    device: &'a str,
    time: Nanos,
    pid: u32,
    action: &'a str,
    rwbs: &'a str,
    rest: Fields<'a>,
}

fn head_of(line: &str) -> Result<Head<'_>, Malformed> {
    let mut fields = Fields::spaced(line);
    let device = fields.next("the device, such as 8,0")?.text;
    for expected in ["the processor", "the sequence number"] {
        fields.next(expected)?.number::<u64>(expected)?;
    }
    let time = "the time in seconds, such as 0.000000000";
    let time = fields.next(time)?.fixed(9, time)?;
    let pid = "the process's number";
    let pid = fields.next(pid)?.number::<u32>(pid)?;
    let action = fields.next("the action, such as Q")?.text;
    let rwbs = fields.next("the kind of request, such as WS")?.text;
    Ok(Head {
        device,
        time: Nanos(time),
        pid,
        action,
        rwbs,
        rest: fields,
    })
}

/// The format.
#[derive(Debug, Default)]
pub(crate) struct Blkparse {
    events: Ordered,
}

impl LineFormat for Blkparse {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), LineError> {
        if !is_event(line) {
            return Ok(());
        }
        let head = head_of(line)?;
        let step = match head.action {
            "Q" => RequestStep::Queued,
            "D" => RequestStep::Issued,
            "R" => RequestStep::Requeued,
            "C" => RequestStep::Completed { failed: false },
            _ => return Ok(()),
        };
        let mut rest = head.rest;
        // Commands to the driver show their bytes in parentheses, and have no sectors.
        if rest.rest().starts_with('(') {
            return Ok(());
        }
        let (mut offset, mut length) = (0, 0);
        if rest.rest().starts_with(|c: char| c.is_ascii_digit()) {
            let sector = "the sector";
            offset = rest.next(sector)?.number::<u64>(sector)?;
            if rest.rest().starts_with('+') {
                rest.next("+")?;
                let sectors = "the number of sectors";
                length = rest.next(sectors)?.number::<u64>(sectors)?;
            }
        }
        let in_brackets = rest.rest().trim_start_matches('[').trim_end_matches(']');
        let length = Bytes(length.saturating_mul(SECTOR));
        let Some(kind) = of_rwbs(head.rwbs, length) else {
            sink.caveats.skipped += 1;
            return Ok(());
        };
        let (step, process) = match step {
            RequestStep::Completed { .. } => {
                let failed = !matches!(in_brackets, "0" | "");
                (RequestStep::Completed { failed }, None)
            }
            step if in_brackets.is_empty() => (step, None),
            step => (step, Some(sink.names.number(in_brackets))),
        };
        let event = Event {
            time: head.time,
            device: sink.device(head.device)?,
            step,
            op: kind.op,
            fua: kind.fua,
            flush_first: kind.flush_first,
            marked_write: kind.marked_write,
            offset: Bytes(offset.saturating_mul(SECTOR)),
            length,
            process,
            thread: thread_of(head.pid),
        };
        self.events.push(event, sink);
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink) {
        self.events.end(sink);
    }
}
