//! blkparse's default output: `device cpu sequence seconds pid action rwbs`, then by action `sector + sectors
//! [process]`, or `[error]` of a completion (blkparse(1)). `(time)` may come before the brackets (`-t`). Flushes have
//! no `sector + sectors`, completions without data no `+ sectors`; commands to the driver have `bytes (payload)` or
//! less.

use record::{Bytes, Nanos};

use super::ordered::OrderedEvents;
use crate::decode::{Sink, TimeOrigin};
use crate::event::{Event, RequestStep, of_rwbs, thread_of};
use crate::io::Op;
use crate::text::{Fields, LineError, LineFormat, Malformed};

/// Name of the format.
pub(crate) const NAME: &str = "blkparse";
/// Origin of its times.
pub(crate) const ZERO: TimeOrigin = TimeOrigin::Arbitrary;

const SECTOR: u64 = 512;

/// True if a text that begins with `start` is output of blkparse.
pub(crate) fn matches(start: &str) -> bool {
    let line = start.lines().find(|line| !is_notice(line));
    line.is_some_and(|line| head_of(line).is_ok())
}

/// True for a line without events: blkparse lists its files on standard output, before or after the events.
fn is_notice(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with("Input file ")
}

/// True for the first line of the sums after the events: `CPU0 (sda):`, or with `-s` `kjournald (697)`.
fn begins_sums(line: &str) -> bool {
    let known = ["CPU", "Total (", "Throughput (", "Events ("];
    let process = line
        .trim_end()
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once(" ("));
    let is_process = process.is_some_and(|(_, pid)| pid.parse::<u32>().is_ok());
    is_process || known.iter().any(|word| line.starts_with(word))
}

/// True for lines of events.
fn is_event(line: &str) -> bool {
    let device = line.split_ascii_whitespace().next();
    device.is_some_and(is_device)
}

fn is_device(text: &str) -> bool {
    let number = |text: &str| text.parse::<u32>().is_ok();
    let device = text.split_once(',');
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
    let expected = "the device, such as 8,0";
    let device = fields.next(expected)?;
    if !is_device(device.text) {
        return Err(device.expected(expected));
    }
    for expected in ["the processor", "the sequence number"] {
        fields.next(expected)?.number::<u64>(expected)?;
    }
    let time = "the time in seconds, such as 0.000000000";
    let time = fields.next(time)?.fixed(9, time)?;
    let pid = "the process's number";
    let pid = fields.next(pid)?.number::<u32>(pid)?;
    let action = fields.next("the action, such as Q")?.text;
    let expected = "the kind of request, such as WS";
    let rwbs = fields.next(expected)?;
    if !rwbs.text.bytes().all(|letter| letter.is_ascii_uppercase()) {
        return Err(rwbs.expected(expected));
    }
    Ok(Head {
        device: device.text,
        time: Nanos(time),
        pid,
        action,
        rwbs: rwbs.text,
        rest: fields,
    })
}

/// Sector and number of sectors; `None` for a command to the driver.
fn place_of(head: &mut Head<'_>) -> Result<Option<(u64, u64)>, Malformed> {
    let is_flush = || of_rwbs(head.rwbs, Bytes(0)).is_some_and(|kind| kind.op == Op::Flush);
    let rest = &mut head.rest;
    if rest.rest().starts_with(['(', '[']) || (rest.rest().is_empty() && is_flush()) {
        return Ok(is_flush().then_some((0, 0)));
    }
    let expected = "the sector";
    let sector = rest.next(expected)?.number(expected)?;
    if rest.rest().starts_with(['(', '[']) {
        let has_sector = matches!(head.action, "C" | "R");
        return Ok(has_sector.then_some((sector, 0)));
    }
    let plus = rest.next("+")?;
    if plus.text != "+" {
        return Err(plus.expected("+"));
    }
    let expected = "the number of sectors";
    let sectors = rest.next(expected)?.number(expected)?;
    Ok(Some((sector, sectors)))
}

/// Text in the brackets at the end; empty if there are none.
fn in_brackets<'a>(rest: &mut Fields<'a>) -> Result<&'a str, Malformed> {
    let text = rest.rest();
    let Some(field) = rest.next_if_any() else {
        return Ok("");
    };
    let text = match text.strip_prefix('(') {
        Some(time) => time.split_once(')').map(|(_, behind)| behind.trim_start()),
        None => Some(text),
    };
    let text = text.and_then(|text| text.strip_prefix('[')?.strip_suffix(']'));
    text.ok_or_else(|| field.expected("the process or the error in brackets"))
}

/// Decoder of the format.
#[derive(Debug, Default)]
pub(crate) struct Blkparse {
    events: OrderedEvents,
    in_sums: bool,
}

impl LineFormat for Blkparse {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), LineError> {
        if !is_event(line) && (is_notice(line) || self.in_sums || begins_sums(line)) {
            self.in_sums |= !is_notice(line);
            return Ok(());
        }
        let mut head = head_of(line)?;
        let step = match head.action {
            "Q" => RequestStep::Queued,
            "D" => RequestStep::Issued,
            "R" => RequestStep::Requeued,
            "C" => RequestStep::Completed { failed: false },
            _ => return Ok(()),
        };
        let Some((sector, sectors)) = place_of(&mut head)? else {
            return Ok(());
        };
        let in_brackets = in_brackets(&mut head.rest)?;
        let length = Bytes(sectors.saturating_mul(SECTOR));
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
            offset: Bytes(sector.saturating_mul(SECTOR)),
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
