//! Kinds of I/Os: what is asked for, how much of it, and for what.
//!
//! A log write is recognized by what a log does: it continues where an earlier write ended, or rewrites the block in which
//! that ended, and a flush or an own FUA makes it durable. Where the trace names files, the names of the logs of
//! MySQL, MariaDB and PostgreSQL tell it. A sequential write that no flush follows, as of a load, is none.

use std::collections::HashMap;

use record::Direction;
use trace::{DeviceIndex, Io, Op};

/// Kinds of I/Os, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Class {
    Read4,
    Read16,
    Read64,
    ReadLarge,
    LogWrite,
    FuaWrite,
    Write4,
    Write16,
    Write64,
    WriteLarge,
    Flush,
    Discard,
}

impl Class {
    pub(crate) const ALL: [Class; 12] = [
        Class::Read4,
        Class::Read16,
        Class::Read64,
        Class::ReadLarge,
        Class::LogWrite,
        Class::FuaWrite,
        Class::Write4,
        Class::Write16,
        Class::Write64,
        Class::WriteLarge,
        Class::Flush,
        Class::Discard,
    ];

    /// Name in tables and documents. A size is the largest of the class.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Read4 => "read 4K",
            Class::Read16 => "read 16K",
            Class::Read64 => "read 64K",
            Class::ReadLarge => "read larger",
            Class::LogWrite => "log write",
            Class::FuaWrite => "FUA write",
            Class::Write4 => "write 4K",
            Class::Write16 => "write 16K",
            Class::Write64 => "write 64K",
            Class::WriteLarge => "write larger",
            Class::Flush => "flush",
            Class::Discard => "discard",
        }
    }

    /// Direction under which it is counted; a discard counts as a write.
    pub(crate) fn direction(self) -> Direction {
        match self {
            Class::Read4 | Class::Read16 | Class::Read64 | Class::ReadLarge => Direction::Read,
            Class::Flush => Direction::Sync,
            _ => Direction::Write,
        }
    }

    /// True if its I/Os are durable when they are answered: what a commit waits for.
    pub(crate) fn is_durable(self) -> bool {
        matches!(self, Class::Flush | Class::FuaWrite)
    }

    /// True if its I/Os are reads whose latency hardly depends on their size.
    pub(crate) fn is_small_read(self) -> bool {
        matches!(self, Class::Read4 | Class::Read16)
    }

    /// The class of this name.
    fn named(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }

    fn of_size(op: Op, bytes: u64) -> Class {
        let sizes = match op {
            Op::Read => [Class::Read4, Class::Read16, Class::Read64, Class::ReadLarge],
            _ => [
                Class::Write4,
                Class::Write16,
                Class::Write64,
                Class::WriteLarge,
            ],
        };
        match bytes {
            0..=4096 => sizes[0],
            4097..=16384 => sizes[1],
            16385..=65536 => sizes[2],
            _ => sizes[3],
        }
    }
}

/// True if I/Os of the class of this name are durable when they are answered.
pub(crate) fn is_durable(name: &str) -> bool {
    Class::named(name).is_some_and(Class::is_durable)
}

/// Append streams that are followed on a device.
const STREAMS: usize = 8;
/// The most by which a write may begin before the end of the one that it goes on from: a log's block.
const REWRITTEN: u64 = 16 << 10;
/// The largest write of a log: its buffer is flushed in pieces.
const LARGEST_LOG_WRITE: u64 = 1 << 20;

/// Place at which writes of a device go on.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    end: u64,
    /// True if a write of it was not followed by a flush yet.
    is_open: bool,
    /// True if a flush has followed a write of it.
    is_log: bool,
}

/// Tells the class of I/Os in the order of the trace.
#[derive(Debug, Default)]
pub(crate) struct Classifier {
    /// Streams of each device, the one used last first.
    streams: HashMap<DeviceIndex, Vec<Stream>>,
}

impl Classifier {
    /// Class of the next I/O, of a file of this name.
    pub(crate) fn class(&mut self, io: &Io, file: Option<&str>) -> Class {
        match io.op {
            Op::Read => Class::of_size(Op::Read, io.length.0),
            Op::Discard => Class::Discard,
            Op::Flush => {
                self.flushed(io.device);
                Class::Flush
            }
            Op::Write => {
                let goes_on = self.goes_on(io);
                if io.fua {
                    self.flushed(io.device);
                    return Class::FuaWrite;
                }
                let is_log = file.map_or(goes_on, is_log_file);
                match is_log && io.length.0 <= LARGEST_LOG_WRITE {
                    true => Class::LogWrite,
                    false => Class::of_size(Op::Write, io.length.0),
                }
            }
        }
    }

    /// Notes a write. True if it goes on a log.
    fn goes_on(&mut self, io: &Io) -> bool {
        let streams = self.streams.entry(io.device).or_default();
        let (start, end) = (io.offset.0, io.offset.0.saturating_add(io.length.0));
        let found = streams.iter().position(|stream| {
            start <= stream.end && start + REWRITTEN > stream.end && end >= stream.end
        });
        let mut stream = match found {
            Some(index) => streams.remove(index),
            None => {
                streams.truncate(STREAMS - 1);
                Stream::default()
            }
        };
        stream.end = end;
        stream.is_open = true;
        streams.insert(0, stream);
        stream.is_log
    }

    /// Notes a flush: streams written before it are made durable by it. Only the one written last is taken for what
    /// asked for it.
    fn flushed(&mut self, device: DeviceIndex) {
        let streams = self.streams.entry(device).or_default();
        if let Some(last) = streams.first_mut().filter(|last| last.is_open) {
            last.is_log = true;
        }
        streams.iter_mut().for_each(|stream| stream.is_open = false);
    }
}

/// True of a redo log, a binary log or a write-ahead log.
fn is_log_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("ib_logfile")
        || name.starts_with("#ib_redo")
        || name.contains("binlog.")
        || name.contains("-bin.")
        || path.contains("pg_wal/")
        || path.contains("pg_xlog/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flush, read, write};

    #[test]
    fn sizes_part_reads_and_a_log_is_what_goes_on_and_is_flushed() {
        let mut classes = Classifier::default();
        let mut of = |io: Io| classes.class(&io, None);
        assert_eq!(of(read(0, 0, 4096)), Class::Read4);
        assert_eq!(of(read(0, 0, 16384)), Class::Read16);
        assert_eq!(of(read(0, 0, 1 << 20)), Class::ReadLarge);
        // A log whose last block is written again, with pages between.
        assert_eq!(of(write(0, 1 << 20, 512)), Class::Write4);
        assert_eq!(of(flush(0)), Class::Flush);
        assert_eq!(of(write(0, 9 << 20, 16384)), Class::Write16);
        assert_eq!(of(write(0, 1 << 20, 1024)), Class::LogWrite);
        assert_eq!(of(flush(0)), Class::Flush);
        assert_eq!(of(write(0, (1 << 20) + 1024, 8192)), Class::LogWrite);
        // A load that no flush follows.
        for block in 0..4 {
            assert_eq!(of(write(0, (64 + block) << 20, 1 << 20)), Class::WriteLarge);
        }
    }

    #[test]
    fn names_of_files_tell_logs_and_others() {
        let mut classes = Classifier::default();
        let io = write(0, 0, 512);
        for (file, expected) in [
            ("ib_logfile0", Class::LogWrite),
            ("#innodb_redo/#ib_redo12", Class::LogWrite),
            ("mysql-bin.000012", Class::LogWrite),
            ("pg_wal/000000010000000000000002", Class::LogWrite),
            ("base/16384/2619", Class::Write4),
        ] {
            assert_eq!(classes.class(&io, Some(file)), expected, "{file}");
        }
        let durable = Io { fua: true, ..io };
        assert_eq!(
            classes.class(&durable, Some("ib_logfile0")),
            Class::FuaWrite
        );
    }
}
