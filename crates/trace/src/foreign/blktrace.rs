//! blktrace's binary events, versions 7 and 8 (blktrace_api.h): one stream, or a file for each processor.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use record::{Bytes, Nanos};

use super::ordered::OrderedEvents;
use crate::decode::{Decode, Sink, TimeOrigin};
use crate::event::{Event, RequestStep, thread_of};
use crate::input::Input;
use crate::io::{NameIndex, Op, ReadError};

/// Name of the format.
pub(crate) const NAME: &str = "blktrace";
/// Origin of its times.
pub(crate) const ZERO: TimeOrigin = TimeOrigin::Arbitrary;

const MAGIC: u32 = 0x0065_6174;
const SECTOR: u64 = 512;

// Categories of an action, in its upper half.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const COMMAND: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;
/// Write-zeroes; version 7 records them as writes.
const WRITE_ZEROES: u32 = 1 << 22;

/// Byte order of a file: that of the traced host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn of(start: &[u8]) -> Option<Order> {
        let start = *start.first_chunk()?;
        match (
            u32::from_le_bytes(start) >> 8,
            u32::from_be_bytes(start) >> 8,
        ) {
            (MAGIC, _) => Some(Order::Little),
            (_, MAGIC) => Some(Order::Big),
            _ => None,
        }
    }

    fn number<const N: usize>(self, bytes: &[u8], at: usize) -> u64 {
        let bytes = bytes[at..at + N].iter();
        let digits = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        match self {
            Order::Little => bytes.rev().fold(0, digits),
            Order::Big => bytes.fold(0, digits),
        }
    }
}

/// True if a file that begins with `start` is blktrace's.
pub(crate) fn matches(start: &[u8]) -> bool {
    Order::of(start).is_some()
}

/// The files of all processors, if `path` is one of them: `sda.blktrace.0`, `sda.blktrace.1`, and so on.
pub(crate) fn of_all_processors(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str());
    let stem = name.and_then(|name| Some(name.rsplit_once(".blktrace.")?.0));
    let Some(stem) = stem else {
        return vec![path.to_path_buf()];
    };
    let files = (0..).map(|cpu| path.with_file_name(format!("{stem}.blktrace.{cpu}")));
    let there: Vec<PathBuf> = files.take_while(|file| file.exists()).collect();
    match there.iter().any(|file| file == path) {
        true => there,
        false => vec![path.to_path_buf()],
    }
}

/// An event of the file.
struct BlktraceEvent {
    time: u64,
    sector: u64,
    bytes: u64,
    action: u64,
    pid: u32,
    device: u64,
    error: u64,
    data: Vec<u8>,
    order: Order,
}

/// Events of a file.
struct Stream {
    input: Input,
    path: PathBuf,
    at: u64,
}

impl Stream {
    fn failed(&self, source: io::Error) -> ReadError {
        ReadError::Io {
            path: self.path.clone(),
            source,
        }
    }

    fn damaged(&self, detail: &str) -> ReadError {
        ReadError::Binary {
            path: self.path.clone(),
            offset: self.at,
            detail: detail.to_owned(),
        }
    }

    /// The next event; `None` at the end, which may be within an event if blktrace was killed.
    fn next(&mut self, sink: &mut Sink) -> Result<Option<BlktraceEvent>, ReadError> {
        let mut head = Vec::new();
        self.fill(&mut head, 48)?;
        if head.is_empty() {
            return Ok(None);
        }
        let order =
            Order::of(&head).ok_or_else(|| self.damaged("no event of blktrace begins here"))?;
        let version = order.number::<4>(&head, 0) as u8;
        let length = match version {
            7 => 48,
            8 => 64,
            _ => return Err(self.damaged("the version of blktrace's events is neither 7 nor 8")),
        };
        self.fill(&mut head, length - 48)?;
        if head.len() < length {
            sink.caveats.cut_off = true;
            return Ok(None);
        }
        let u16_at = |at| order.number::<2>(&head, at);
        let u32_at = |at| order.number::<4>(&head, at);
        let u64_at = |at| order.number::<8>(&head, at);
        let (action, pid, device, error, data) = match version {
            7 => (u32_at(28), u32_at(32), u32_at(36), u16_at(44), u16_at(46)),
            _ => (u64_at(32), u32_at(28), u32_at(40), u16_at(48), u16_at(50)),
        };
        let mut raw = BlktraceEvent {
            time: u64_at(8),
            sector: u64_at(16),
            bytes: u32_at(24),
            action,
            pid: pid as u32,
            device,
            error,
            data: Vec::new(),
            order,
        };
        let mut bytes = Vec::new();
        self.fill(&mut bytes, data as usize)?;
        self.at += (length + bytes.len()) as u64;
        if (bytes.len() as u64) < data {
            sink.caveats.cut_off = true;
            return Ok(None);
        }
        raw.data = bytes;
        Ok(Some(raw))
    }

    fn fill(&mut self, bytes: &mut Vec<u8>, most: usize) -> Result<(), ReadError> {
        let read = self.input.by_ref().take(most as u64).read_to_end(bytes);
        read.map(|_| ()).map_err(|error| self.failed(error))
    }
}

/// Decoder of the format.
pub(crate) struct Blktrace {
    streams: Vec<(Stream, Option<BlktraceEvent>)>,
    begun: bool,
    processes: HashMap<u32, NameIndex>,
    events: OrderedEvents,
}

/// Maximum number of process names held.
const MAX_PROCESSES: usize = 1 << 16;

impl Blktrace {
    pub(crate) fn new(inputs: Vec<(Input, PathBuf)>) -> Blktrace {
        let stream = |(input, path)| (Stream { input, path, at: 0 }, None);
        Blktrace {
            streams: inputs.into_iter().map(stream).collect(),
            begun: false,
            processes: HashMap::new(),
            events: OrderedEvents::default(),
        }
    }

    /// The earliest event of all files.
    fn next(&mut self, sink: &mut Sink) -> Result<Option<BlktraceEvent>, ReadError> {
        if !self.begun {
            self.begun = true;
            for (stream, next) in &mut self.streams {
                *next = stream.next(sink)?;
            }
        }
        let times = self.streams.iter().enumerate();
        let times = times.filter_map(|(at, (_, next))| Some((next.as_ref()?.time, at)));
        let Some((_, at)) = times.min() else {
            return Ok(None);
        };
        let (stream, next) = &mut self.streams[at];
        let event = next.take();
        *next = stream.next(sink)?;
        Ok(event)
    }

    fn note(&mut self, raw: &BlktraceEvent, sink: &mut Sink) {
        match raw.action as u8 {
            0 => {
                let name = String::from_utf8_lossy(&raw.data);
                let name = sink.names.number(name.trim_end_matches('\0'));
                if self.processes.len() >= MAX_PROCESSES {
                    self.processes.clear();
                }
                self.processes.insert(raw.pid, name);
            }
            1 if raw.data.len() >= 8 && sink.epoch.is_none() => {
                let seconds = raw.order.number::<4>(&raw.data, 0).cast_signed();
                let nanos = raw.order.number::<4>(&raw.data, 4) as i32;
                let since = SignedDuration::from_nanos(i64::try_from(raw.time).unwrap_or(0));
                let wall = Timestamp::new(seconds, nanos).ok();
                sink.epoch = wall.and_then(|wall| wall.checked_sub(since).ok());
            }
            _ => {}
        }
    }

    fn event(&self, raw: &BlktraceEvent, sink: &mut Sink) -> Result<Option<Event>, ReadError> {
        let category = (raw.action >> 16) as u32;
        let failed = raw.error != 0;
        // Only the low byte: a higher bit means that a cgroup id precedes the data.
        let step = match raw.action as u8 {
            1 => RequestStep::Queued,
            6 => RequestStep::Requeued,
            7 => RequestStep::Issued,
            8 => RequestStep::Completed { failed },
            _ => return Ok(None),
        };
        let has = |bits: u32| category & bits != 0;
        if has(COMMAND) {
            return Ok(None);
        }
        let op = match () {
            () if has(DISCARD | WRITE_ZEROES) => Op::Discard,
            () if has(FLUSH) && raw.bytes == 0 => Op::Flush,
            () if has(WRITE) => Op::Write,
            () => Op::Read,
        };
        let device = format!("{},{}", raw.device >> 20, raw.device & 0xf_ffff);
        Ok(Some(Event {
            time: Nanos(raw.time),
            device: sink.device(&device)?,
            step,
            op,
            fua: op == Op::Write && has(FUA),
            flush_first: op == Op::Write && has(FLUSH),
            marked_write: has(WRITE),
            offset: Bytes(raw.sector.saturating_mul(SECTOR)),
            length: Bytes(raw.bytes),
            process: self.processes.get(&raw.pid).copied(),
            thread: thread_of(raw.pid),
        }))
    }
}

impl Decode for Blktrace {
    fn decode(&mut self, sink: &mut Sink) -> Result<bool, ReadError> {
        let Some(raw) = self.next(sink)? else {
            self.events.end(sink);
            return Ok(false);
        };
        if (raw.action >> 16) as u32 & NOTIFY != 0 {
            self.note(&raw, sink);
        } else if let Some(event) = self.event(&raw, sink)? {
            self.events.push(event, sink);
        }
        Ok(true)
    }
}
