//! Classes of I/O: those that a device answers alike, so that their latencies may be put together.

use record::Bytes;

use crate::io::{Io, Op};

/// Upper ends of the classes of size; above the last there is one more.
const SIZES: [Bytes; 4] = [
    Bytes::kib(4),
    Bytes::kib(16),
    Bytes::kib(64),
    Bytes::kib(256),
];

/// A class: an operation, and of reads and writes a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Reads of a class of size.
    Read(SizeClass),
    /// Writes of a class of size.
    Write(SizeClass),
    /// Writes that are durable before they are answered (FUA), such as those of a log.
    DurableWrite,
    /// Flushes.
    Flush,
    /// Discards.
    Discard,
}

/// A range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SizeClass(u8);

impl SizeClass {
    fn of(length: Bytes) -> SizeClass {
        SizeClass(SIZES.iter().filter(|end| length > **end).count() as u8)
    }

    fn name(self) -> &'static str {
        ["4k", "16k", "64k", "256k", "large"][usize::from(self.0).min(SIZES.len())]
    }
}

impl Class {
    /// The class of an I/O.
    pub fn of(io: &Io) -> Class {
        match io.op {
            Op::Read => Class::Read(SizeClass::of(io.length)),
            Op::Write if io.fua => Class::DurableWrite,
            Op::Write => Class::Write(SizeClass::of(io.length)),
            Op::Flush => Class::Flush,
            Op::Discard => Class::Discard,
        }
    }

    /// Its name: the operation, and the size that the class goes to.
    pub fn name(self) -> String {
        match self {
            Class::Read(size) => format!("read-{}", size.name()),
            Class::Write(size) => format!("write-{}", size.name()),
            Class::DurableWrite => "write-fua".to_owned(),
            Class::Flush => "flush".to_owned(),
            Class::Discard => "discard".to_owned(),
        }
    }
}
