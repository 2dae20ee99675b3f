//! Writes traces in the formats of other tools.

mod blkparse;
mod blktrace;
mod events;
mod fio;
mod kernel;
mod output;

use std::fs::File;
use std::io::{self, BufWriter};

use crate::file::{Tick, TraceWriter};
use crate::io::{Described, Header, Io};
use output::Output;

/// A format that traces are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceFormat {
    /// disksmith's own format.
    Own,
    /// blktrace's binary events, version 7.
    Blktrace,
    /// blkparse's text.
    Blkparse,
    /// fio's I/O log, version 2.
    Iolog2,
    /// fio's I/O log, version 3.
    Iolog3,
}

/// A part of an I/O that some format cannot hold, or whose absence it cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoPart {
    /// The time of completion.
    Completion,
    /// The time at which it was queued in the block layer.
    Queued,
    /// Durability before the completion (FUA).
    Fua,
    /// An error.
    Failure,
    /// The process's name.
    Process,
    /// The thread's number.
    Thread,
    /// The file's name.
    File,
    /// The device's name.
    DeviceName,
    /// The device's size and write cache.
    DeviceFacts,
    /// The date at which the trace starts.
    Started,
    /// Digits of its time below a microsecond.
    Nanoseconds,
    /// A wait that is too short for the format.
    ShortWait,
    /// An offset or a length that is not a multiple of 512 bytes.
    OddLength,
    /// The absence of a queueing time, if the format has one for each I/O.
    NoQueued,
    /// The absence of flushes from the recording, if the format has flushes.
    NoFlushes,
}

impl IoPart {
    /// True if the I/O that `writer` has just written, or the description of its device, has this part.
    fn is_in(self, io: &Io, described: &dyn Described, writer: &dyn Output) -> bool {
        let device = described.devices().get(usize::from(io.device.0));
        match self {
            IoPart::Completion => io.completed.is_some(),
            IoPart::Queued => io.queued.is_some(),
            IoPart::Fua => io.fua,
            IoPart::Failure => io.failed,
            IoPart::Process => io.process.is_some(),
            IoPart::Thread => io.thread.is_some(),
            IoPart::File => io.file.is_some(),
            IoPart::DeviceName => {
                device.is_some_and(|device| kernel::own_number(&device.name).is_none())
            }
            IoPart::DeviceFacts => {
                device.is_some_and(|device| device.size.is_some() || device.write_cache.is_some())
            }
            IoPart::Nanoseconds => !io.issued.0.is_multiple_of(1000),
            IoPart::ShortWait => writer.has_moved(io),
            IoPart::OddLength => {
                !io.offset.0.is_multiple_of(512) || !io.length.0.is_multiple_of(512)
            }
            IoPart::NoQueued => io.queued.is_none(),
            IoPart::Started | IoPart::NoFlushes => true,
        }
    }

    /// Name of the part, in the plural.
    pub(crate) fn name(self) -> &'static str {
        match self {
            IoPart::Completion => "times of completion",
            IoPart::Queued => "times before the scheduler",
            IoPart::Fua => "FUA flags",
            IoPart::Failure => "errors",
            IoPart::Process => "names of processes",
            IoPart::Thread => "numbers of threads",
            IoPart::File => "names of files",
            IoPart::DeviceName => "names of devices",
            IoPart::DeviceFacts => "sizes and write caches of devices",
            IoPart::Started => "the date of the start",
            IoPart::Nanoseconds => "times of issue below a microsecond",
            IoPart::ShortWait => "waits below 100 µs",
            IoPart::OddLength => "offsets or lengths that are no multiples of 512 bytes",
            IoPart::NoQueued => {
                "that times before the scheduler were not recorded: Q events repeat the time of issue"
            }
            IoPart::NoFlushes => "that flushes were not recorded",
        }
    }
}

impl TraceFormat {
    /// Parts of a trace that the format cannot hold.
    fn lacks(self, header: &Header) -> Vec<IoPart> {
        let mut lacks = match self {
            TraceFormat::Own => return Vec::new(),
            TraceFormat::Blktrace | TraceFormat::Blkparse => vec![
                IoPart::File,
                IoPart::DeviceName,
                IoPart::DeviceFacts,
                IoPart::OddLength,
                IoPart::NoQueued,
            ],
            TraceFormat::Iolog2 | TraceFormat::Iolog3 => vec![
                IoPart::Completion,
                IoPart::Queued,
                IoPart::Fua,
                IoPart::Failure,
                IoPart::Process,
                IoPart::Thread,
                IoPart::File,
                IoPart::DeviceFacts,
                IoPart::Nanoseconds,
                IoPart::ShortWait,
            ],
        };
        if header.started.is_some() && self != TraceFormat::Blktrace {
            lacks.push(IoPart::Started);
        }
        if !header.has_flushes {
            lacks.push(IoPart::NoFlushes);
        }
        lacks
    }

    /// Begins a trace in an empty file.
    pub(crate) fn begin(self, file: File, header: &Header) -> io::Result<Conversion> {
        let out = |file| BufWriter::with_capacity(256 << 10, file);
        let writer: Box<dyn Output> = match self {
            TraceFormat::Own => Box::new(TraceWriter::new(file, header, Tick::EXACT)?),
            TraceFormat::Blktrace => Box::new(events::Events::new(blktrace::Blktrace::new(
                out(file),
                header.started,
            )?)),
            TraceFormat::Blkparse => {
                Box::new(events::Events::new(blkparse::Blkparse::new(out(file))))
            }
            TraceFormat::Iolog2 => Box::new(fio::Iolog::new(out(file), fio::Version::Two)?),
            TraceFormat::Iolog3 => Box::new(fio::Iolog::new(out(file), fio::Version::Three)?),
        };
        Ok(Conversion {
            writer,
            lost: self
                .lacks(header)
                .into_iter()
                .map(|part| (part, 0))
                .collect(),
            ios: 0,
        })
    }
}

impl Output for TraceWriter {
    fn write(&mut self, io: &Io, described: &dyn Described) -> io::Result<()> {
        TraceWriter::write(self, io, described)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        TraceWriter::finish(*self).map(|_| ())
    }
}

/// A trace that is being written in another format.
pub(crate) struct Conversion {
    writer: Box<dyn Output>,
    lost: Vec<(IoPart, u64)>,
    ios: u64,
}

/// Result of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Converted {
    pub(crate) ios: u64,
    /// Parts that the format could not hold, each with the number of I/Os that had it.
    pub(crate) lost: Vec<(IoPart, u64)>,
}

impl Conversion {
    pub(crate) fn write(&mut self, io: &Io, described: &dyn Described) -> io::Result<()> {
        self.ios += 1;
        self.writer.write(io, described)?;
        for (part, count) in &mut self.lost {
            *count += u64::from(part.is_in(io, described, &*self.writer));
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> io::Result<Converted> {
        self.writer.finish()?;
        let mut lost = self.lost;
        lost.retain(|(_, count)| *count > 0);
        Ok(Converted {
            ios: self.ios,
            lost,
        })
    }
}

#[cfg(test)]
mod tests;
