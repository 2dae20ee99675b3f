//! Traces in memory.

use std::sync::Arc;

use record::{Bytes, Nanos};
use trace::{Device, DeviceIndex, Header, Io, NameIndex, Op, ReadError, TraceReader};

/// A trace that is a list of I/Os.
pub(crate) struct InMemory {
    header: Header,
    ios: Arc<Vec<Io>>,
    next: usize,
}

/// Opens a trace of these I/Os, with `devices` devices.
pub(crate) fn opener(
    ios: Vec<Io>,
    devices: u16,
) -> impl Fn() -> Result<Box<dyn TraceReader>, ReadError> + Sync {
    let has_completions = ios.iter().any(|io| io.completed.is_some());
    let ios = Arc::new(ios);
    move || {
        Ok(Box::new(InMemory {
            header: Header {
                format: "memory",
                started: None,
                devices: (0..devices).map(device).collect(),
                has_completions,
                has_flushes: true,
            },
            ios: Arc::clone(&ios),
            next: 0,
        }) as Box<dyn TraceReader>)
    }
}

fn device(index: u16) -> Device {
    Device {
        name: format!("sd{}", char::from(b'a' + index as u8)),
        size: None,
        write_cache: None,
    }
}

impl Iterator for InMemory {
    type Item = Result<Io, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let io = self.ios.get(self.next).copied()?;
        self.next += 1;
        Some(Ok(io))
    }
}

impl TraceReader for InMemory {
    fn header(&self) -> &Header {
        &self.header
    }

    fn name(&self, _: NameIndex) -> Option<&str> {
        None
    }
}

fn io(op: Op, at_us: u64, offset: u64, length: u64) -> Io {
    Io {
        device: DeviceIndex(0),
        op,
        fua: false,
        offset: Bytes(offset),
        length: Bytes(length),
        queued: None,
        issued: Nanos(at_us * 1000),
        completed: None,
        failed: false,
        process: None,
        thread: None,
        file: None,
    }
}

/// A read at a time in microseconds.
pub(crate) fn read(at_us: u64, offset: u64, length: u64) -> Io {
    io(Op::Read, at_us, offset, length)
}

/// A write of `length` bytes at `offset`, issued at `at_us` microseconds.
pub(crate) fn write(at_us: u64, offset: u64, length: u64) -> Io {
    io(Op::Write, at_us, offset, length)
}

/// A flush, issued at `at_us` microseconds.
pub(crate) fn flush(at_us: u64) -> Io {
    io(Op::Flush, at_us, 0, 0)
}

/// The I/O, completed after `us` microseconds.
pub(crate) fn took(io: Io, us: u64) -> Io {
    Io {
        completed: Some(io.issued + Nanos(us * 1000)),
        ..io
    }
}
