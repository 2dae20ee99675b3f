//! Classes of I/O with similar latency on a device, so that their latencies may be put into one histogram. `trace show`
//! and `replay` use the same names.

use record::Bytes;

use crate::io::{Io, Op};

/// Upper bounds of the size classes; a further class has all larger sizes.
const SIZES: [Bytes; 4] = [
    Bytes::kib(4),
    Bytes::kib(16),
    Bytes::kib(64),
    Bytes::kib(256),
];

/// A class: an operation and, for reads and writes, a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Reads of a size class.
    Read(SizeClass),
    /// Writes of a database's log that a later flush makes durable. A single I/O does not show this, so that
    /// [`Class::of`] never returns it.
    LogWrite,
    /// Writes of a size class.
    Write(SizeClass),
    /// Writes that are durable before they complete: those with FUA, and those of a log on a device without a volatile
    /// write cache. [`Class::of`] recognizes only the former.
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
    /// Number of size classes.
    const COUNT: usize = SIZES.len() + 1;

    /// True for at most 16 KiB: the latency of such a read hardly depends on its size.
    pub fn is_small(self) -> bool {
        self.0 <= 1
    }

    fn of(length: Bytes) -> SizeClass {
        SizeClass(SIZES.iter().filter(|end| length > **end).count() as u8)
    }

    fn name(self) -> &'static str {
        ["4k", "16k", "64k", "256k", "large"][usize::from(self.0).min(SIZES.len())]
    }
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 2 * SizeClass::COUNT + 4;

    /// Index of the class in the order in which classes are shown.
    pub fn place(self) -> usize {
        match self {
            Class::Read(size) => usize::from(size.0),
            Class::LogWrite => SizeClass::COUNT,
            Class::Write(size) => SizeClass::COUNT + 1 + usize::from(size.0),
            Class::DurableWrite => 2 * SizeClass::COUNT + 1,
            Class::Flush => 2 * SizeClass::COUNT + 2,
            Class::Discard => 2 * SizeClass::COUNT + 3,
        }
    }

    /// True if its I/Os are durable when they complete; commits wait for them.
    pub fn is_durable(self) -> bool {
        matches!(self, Class::Flush | Class::DurableWrite)
    }

    /// True if the class with this name is durable (see [`Class::is_durable`]).
    pub fn is_durable_name(name: &str) -> bool {
        let durable = [Class::Flush, Class::DurableWrite];
        durable.iter().any(|class| class.name() == name)
    }

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

    /// Name of the class: the operation, and the upper bound of the size.
    pub fn name(self) -> String {
        match self {
            Class::Read(size) => format!("read-{}", size.name()),
            Class::LogWrite => "write-log".to_owned(),
            Class::Write(size) => format!("write-{}", size.name()),
            Class::DurableWrite => "write-fua".to_owned(),
            Class::Flush => "flush".to_owned(),
            Class::Discard => "discard".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_class_has_a_place_and_a_name() {
        let sizes = || (0..SizeClass::COUNT as u8).map(SizeClass);
        let all: Vec<Class> = sizes()
            .map(Class::Read)
            .chain([Class::LogWrite])
            .chain(sizes().map(Class::Write))
            .chain([Class::DurableWrite, Class::Flush, Class::Discard])
            .collect();
        let places: Vec<usize> = all.iter().map(|class| class.place()).collect();
        assert_eq!(places, (0..Class::COUNT).collect::<Vec<usize>>());
        let names: HashSet<String> = all.iter().map(|class| class.name()).collect();
        assert_eq!(names.len(), Class::COUNT);
        for class in all {
            assert_eq!(Class::is_durable_name(&class.name()), class.is_durable());
        }
    }
}
