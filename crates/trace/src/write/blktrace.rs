//! blktrace's binary events, version 7, as if from one processor.

use std::collections::HashMap;
use std::io::{self, Write};

use jiff::Timestamp;

use super::events::EventOutput;
use super::kernel::{number_of, pid_of};
use crate::event::{Event, RequestStep};
use crate::io::{Described, NameIndex, Op};

const MAGIC: u32 = 0x6561_7407;
const NOTIFY: u32 = 1 << 10;
/// Error of a completion: EIO.
const EIO: u16 = 5;

/// Writer.
pub(super) struct Blktrace<W> {
    out: W,
    sequence: u32,
    /// The last written name of each thread id.
    named: HashMap<u32, NameIndex>,
}

/// Fields of an event in blktrace's format.
#[derive(Default)]
struct EventFields<'a> {
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    error: u16,
    data: &'a [u8],
}

impl<W: Write> Blktrace<W> {
    pub(super) fn new(out: W, started: Option<Timestamp>) -> io::Result<Blktrace<W>> {
        let mut writer = Blktrace {
            out,
            sequence: 0,
            named: HashMap::new(),
        };
        if let Some(started) = started {
            let seconds = started.as_second() as u32;
            let nanos = started.subsec_nanosecond().cast_unsigned();
            let data = [seconds.to_le_bytes(), nanos.to_le_bytes()].concat();
            writer.put(&EventFields {
                action: NOTIFY << 16 | 1,
                data: &data,
                ..EventFields::default()
            })?;
        }
        Ok(writer)
    }

    fn put(&mut self, raw: &EventFields<'_>) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut bytes = Vec::with_capacity(48 + raw.data.len());
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(raw.time.to_le_bytes());
        bytes.extend(raw.sector.to_le_bytes());
        for number in [raw.bytes, raw.action, raw.pid, raw.device, 0] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(raw.error.to_le_bytes());
        bytes.extend((raw.data.len() as u16).to_le_bytes());
        bytes.extend(raw.data);
        self.out.write_all(&bytes)
    }

    /// Id of the event's thread, or the number of its process; a new name is written before it.
    fn process(&mut self, event: &Event, described: &dyn Described) -> io::Result<u32> {
        let pid = pid_of(event);
        let Some(index) = event.process else {
            return Ok(pid);
        };
        if self.named.insert(pid, index) != Some(index) {
            // As in the kernel: 16 bytes, zero-terminated.
            let mut data = [0; 16];
            let name = described.name(index).unwrap_or_default().bytes().take(15);
            for (to, from) in data.iter_mut().zip(name) {
                *to = from;
            }
            self.put(&EventFields {
                time: event.time.0,
                action: NOTIFY << 16,
                pid,
                data: &data,
                ..EventFields::default()
            })?;
        }
        Ok(pid)
    }
}

impl<W: Write> EventOutput for Blktrace<W> {
    fn event(&mut self, event: &Event, described: &dyn Described) -> io::Result<()> {
        let pid = self.process(event, described)?;
        let (act, step, failed) = match event.step {
            RequestStep::Queued => (1, 1 << 4, false),
            RequestStep::Requeued => (6, 1 << 5, false),
            RequestStep::Issued => (7, 1 << 6, false),
            RequestStep::Completed { failed } => (8, 1 << 7, failed),
        };
        let kind = match event.op {
            Op::Read => 1,
            Op::Write => 2,
            Op::Flush => 4,
            Op::Discard => 2 | 1 << 13,
        };
        let fua = if event.fua { 1 << 15 } else { 0_u32 };
        let place = usize::from(event.device.0);
        let name = described
            .devices()
            .get(place)
            .map_or("", |device| &device.name);
        let (major, minor) = number_of(name, place);
        self.put(&EventFields {
            time: event.time.0,
            sector: event.offset.0 / 512,
            bytes: u32::try_from(event.length.0).unwrap_or(u32::MAX),
            action: (kind | step | fua) << 16 | act,
            pid,
            device: major << 20 | minor,
            error: if failed { EIO } else { 0 },
            data: &[],
        })
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
