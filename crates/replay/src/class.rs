//! Assigns classes to I/Os, and recognizes the writes of a database's log.
//!
//! A log write continues where an earlier write ended, or rewrites the block in which that ended, and a flush or its
//! own FUA makes it durable. If the trace names files, log writes are recognized by the names of the logs of MySQL,
//! MariaDB and PostgreSQL instead. A sequential write that no flush follows, as in a bulk load, is not a log write.
//!
//! To a device without a volatile write cache the block layer sends neither flushes nor FUA (`submit_bio_noacct`), and
//! a commit waits for the write itself. There a write of a log file is a [`Class::DurableWrite`].

use std::collections::HashMap;

use record::Direction;
use trace::{Class, DeviceIndex, Io, Op, WriteCache};

/// Direction as which I/Os of a class are counted; a discard counts as a write.
pub(crate) fn direction(class: Class) -> Direction {
    match class {
        Class::Read(_) => Direction::Read,
        Class::Flush => Direction::Sync,
        Class::Write(_) | Class::LogWrite | Class::DurableWrite | Class::Discard => {
            Direction::Write
        }
    }
}

/// True if I/Os of the class are reads whose latency hardly depends on their size.
pub(crate) fn is_small_read(class: Class) -> bool {
    matches!(class, Class::Read(size) if size.is_small())
}

/// Maximum number of append streams tracked on a device.
const MAX_STREAMS: usize = 8;
/// Maximum number of bytes that a write may rewrite at the end of the stream that it continues: a log's block.
const MAX_REWRITTEN_BYTES: u64 = 16 << 10;
/// Maximum bytes of a log write: a log's buffer is flushed in pieces.
const MAX_LOG_WRITE_BYTES: u64 = 1 << 20;

/// An append stream of a device: a sequence of writes, each of which continues the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    end: u64,
    /// True if its last write was not followed by a flush yet.
    is_open: bool,
    /// True if a flush has followed one of its writes.
    is_log: bool,
}

/// Assigns classes to I/Os, which must be in the order of the trace.
#[derive(Debug, Default)]
pub(crate) struct Classifier {
    /// Streams of each device, the one used last first.
    streams: HashMap<DeviceIndex, Vec<Stream>>,
}

impl Classifier {
    /// Class of the next I/O, in a file with this name, on a device with this write cache.
    pub(crate) fn class(
        &mut self,
        io: &Io,
        file: Option<&str>,
        cache: Option<WriteCache>,
    ) -> Class {
        match io.op {
            Op::Read | Op::Discard => Class::of(io),
            Op::Flush => {
                self.flushed(io.device);
                Class::Flush
            }
            Op::Write => {
                let continues = self.continues_log(io);
                if io.fua {
                    self.flushed(io.device);
                    return Class::DurableWrite;
                }
                let is_log = file.map_or(continues, is_log_file);
                match is_log && io.length.0 <= MAX_LOG_WRITE_BYTES {
                    true if cache == Some(WriteCache::Through) => Class::DurableWrite,
                    true => Class::LogWrite,
                    false => Class::of(io),
                }
            }
        }
    }

    /// Records a write; true if it continues a log.
    fn continues_log(&mut self, io: &Io) -> bool {
        let streams = self.streams.entry(io.device).or_default();
        let (start, end) = (io.offset.0, io.offset.0.saturating_add(io.length.0));
        let found = streams.iter().position(|stream| {
            start <= stream.end && start + MAX_REWRITTEN_BYTES > stream.end && end >= stream.end
        });
        let mut stream = match found {
            Some(index) => streams.remove(index),
            None => {
                streams.truncate(MAX_STREAMS - 1);
                Stream::default()
            }
        };
        stream.end = end;
        stream.is_open = true;
        streams.insert(0, stream);
        stream.is_log
    }

    /// Records a flush, which makes all streams durable that were written before it. Only the stream written last is
    /// assumed to have requested it, and so to be a log.
    fn flushed(&mut self, device: DeviceIndex) {
        let streams = self.streams.entry(device).or_default();
        if let Some(last) = streams.first_mut().filter(|last| last.is_open) {
            last.is_log = true;
        }
        streams.iter_mut().for_each(|stream| stream.is_open = false);
    }
}

/// True for a redo log, a binary log or a write-ahead log.
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
    fn a_log_is_continued_and_flushed() {
        let mut classes = Classifier::default();
        let mut of = |io: Io| classes.class(&io, None, None).name();
        assert_eq!(of(read(0, 0, 4096)), "read-4k");
        assert_eq!(of(read(0, 0, 16384)), "read-16k");
        assert_eq!(of(read(0, 0, 1 << 20)), "read-large");
        // A log whose last block is rewritten, with page writes in between.
        assert_eq!(of(write(0, 1 << 20, 512)), "write-4k");
        assert_eq!(of(flush(0)), "flush");
        assert_eq!(of(write(0, 9 << 20, 16384)), "write-16k");
        assert_eq!(of(write(0, 1 << 20, 1024)), "write-log");
        assert_eq!(of(flush(0)), "flush");
        assert_eq!(of(write(0, (1 << 20) + 1024, 8192)), "write-log");
        // A load that no flush follows.
        for block in 0..4 {
            assert_eq!(of(write(0, (64 + block) << 20, 1 << 20)), "write-large");
        }
    }

    #[test]
    fn names_of_files_tell_logs_and_others() {
        let mut classes = Classifier::default();
        let io = write(0, 0, 512);
        for (file, expected) in [
            ("ib_logfile0", "write-log"),
            ("#innodb_redo/#ib_redo12", "write-log"),
            ("mysql-bin.000012", "write-log"),
            ("pg_wal/000000010000000000000002", "write-log"),
            ("base/16384/2619", "write-4k"),
        ] {
            let class = classes.class(&io, Some(file), Some(WriteCache::Back));
            assert_eq!(class.name(), expected, "{file}");
            let through = classes.class(&io, Some(file), Some(WriteCache::Through));
            assert_eq!(through.is_durable(), expected == "write-log", "{file}");
        }
        let durable = Io { fua: true, ..io };
        let class = classes.class(&durable, Some("ib_logfile0"), None);
        assert_eq!(class, Class::DurableWrite);
    }
}
