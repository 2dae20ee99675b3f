//! Reads traces of other tools: a decoder for each format, and the sorting and naming that all formats need.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use record::Nanos;

use crate::io::{Caveats, Device, DeviceIndex, Header, Io, NameIndex, ReadError, TraceReader};
use crate::names::Names;
use crate::order::{REORDER_ENTRIES, Reorder};

/// Maximum number of devices in a trace.
const MAX_DEVICES: usize = u16::MAX as usize;

/// Decoder of a format.
pub(crate) trait Decode: Send {
    /// Decodes some of the file into `sink`; false at the end.
    fn decode(&mut self, sink: &mut Sink) -> Result<bool, ReadError>;
}

/// Origin of a format's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeOrigin {
    /// The start of the trace.
    Start,
    /// An arbitrary time: the trace starts with its first I/O.
    Arbitrary,
    /// 1970-01-01 UTC.
    Unix,
}

/// Receives a decoder's output: I/Os with the format's times, devices and names.
pub(crate) struct Sink {
    path: PathBuf,
    header: Header,
    zero: TimeOrigin,
    device_numbers: HashMap<String, DeviceIndex>,
    /// Names of processes and files.
    pub(crate) names: Names,
    /// Reasons to doubt the trace.
    pub(crate) caveats: Caveats,
    order: Reorder<Io>,
    /// Wall-clock time at the format's time 0; `None` if unknown.
    pub(crate) epoch: Option<Timestamp>,
}

impl Sink {
    pub(crate) fn new(path: &Path, format: &'static str, zero: TimeOrigin) -> Sink {
        Sink {
            path: path.to_path_buf(),
            header: Header {
                format,
                started: None,
                devices: Vec::new(),
                has_completions: false,
                has_flushes: false,
            },
            zero,
            device_numbers: HashMap::new(),
            names: Names::default(),
            caveats: Caveats::default(),
            order: Reorder::default(),
            epoch: (zero == TimeOrigin::Unix).then_some(Timestamp::UNIX_EPOCH),
        }
    }

    /// Marks the format as one that has flushes.
    pub(crate) fn with_flushes(mut self) -> Sink {
        self.header.has_flushes = true;
        self
    }

    /// The number of a device; a new device is added.
    pub(crate) fn device(&mut self, name: &str) -> Result<DeviceIndex, ReadError> {
        if let Some(number) = self.device_numbers.get(name) {
            return Ok(*number);
        }
        let devices = &mut self.header.devices;
        if devices.len() >= MAX_DEVICES {
            return Err(ReadError::Devices {
                path: self.path.clone(),
                most: MAX_DEVICES,
            });
        }
        let number = DeviceIndex(devices.len() as u16);
        devices.push(Device {
            name: name.to_owned(),
            size: None,
            write_cache: None,
        });
        self.device_numbers.insert(name.to_owned(), number);
        Ok(number)
    }

    /// Adds an I/O.
    pub(crate) fn push(&mut self, io: Io) {
        self.order.push(io);
    }
}

/// A trace that a decoder reads.
pub(crate) struct DecodedTrace<D> {
    decoder: D,
    sink: Sink,
    /// The format's time at the start of the trace.
    base: Nanos,
    last: Nanos,
    given: u64,
    at_end: bool,
}

impl<D: Decode> DecodedTrace<D> {
    /// Reads as many I/Os as sorting needs, so that the header is known.
    pub(crate) fn open(decoder: D, sink: Sink) -> Result<DecodedTrace<D>, ReadError> {
        let mut decoded = DecodedTrace {
            decoder,
            sink,
            base: Nanos(0),
            last: Nanos(0),
            given: 0,
            at_end: false,
        };
        decoded.fill()?;
        let sink = &mut decoded.sink;
        if let (Some(first), true) = (sink.order.peek(), sink.zero != TimeOrigin::Start) {
            decoded.base = first.queued.unwrap_or(first.issued).min(first.issued);
        }
        sink.header.has_completions = sink.order.iter().any(|io| io.completed.is_some());
        sink.header.started = sink.epoch.and_then(|epoch| {
            let since = jiff::SignedDuration::from_nanos(i64::try_from(decoded.base.0).ok()?);
            epoch.checked_add(since).ok()
        });
        Ok(decoded)
    }

    fn fill(&mut self) -> Result<(), ReadError> {
        while !self.at_end && self.sink.order.len() < REORDER_ENTRIES {
            self.at_end = !self.decoder.decode(&mut self.sink)?;
        }
        Ok(())
    }

    /// The I/O with times since the start of the trace.
    fn relative(&self, io: Io) -> Io {
        Io {
            queued: io.queued.map(|time| time - self.base),
            issued: io.issued - self.base,
            completed: io.completed.map(|time| time - self.base),
            ..io
        }
    }

    /// Ends the trace, and returns the error.
    fn failed(&mut self, error: ReadError) -> Option<Result<Io, ReadError>> {
        self.at_end = true;
        self.sink.order = Reorder::default();
        Some(Err(error))
    }
}

impl<D: Decode> Iterator for DecodedTrace<D> {
    type Item = Result<Io, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.fill() {
            return self.failed(error);
        }
        let io = self.sink.order.pop()?;
        self.given += 1;
        if io.issued < self.last {
            let error = ReadError::Disordered {
                path: self.sink.path.clone(),
                number: self.given,
                by: self.last - io.issued,
                held: REORDER_ENTRIES,
            };
            return self.failed(error);
        }
        self.last = io.issued;
        Some(Ok(self.relative(io)))
    }
}

impl<D: Decode> TraceReader for DecodedTrace<D> {
    fn header(&self) -> &Header {
        &self.sink.header
    }

    fn name(&self, index: NameIndex) -> Option<&str> {
        self.sink.names.name(index)
    }

    fn caveats(&self) -> Caveats {
        self.sink.caveats
    }
}
