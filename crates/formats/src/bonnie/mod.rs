//! Bonnie++'s CSV: one line a run, without or below a heading (`PrintHeader` and `DoReport` in its
//! bon_time.cpp).
//!
//! | format | fields |
//! | --- | --- |
//! | 1.96, 1.97 | 48 |
//! | 1.98 (written by 1.98 and 2.00) | 50: the number of seeks and of seeking processes follow the chunk size |
//!
//! Rates of tests that transfer data are KiB/s; seeks and small files are counted per second. `+++++` is a test that
//! took less than half a second, an empty field a test that was skipped. A latency is that of the longest call of the
//! test.

pub(crate) mod read;
pub(crate) mod write;

use record::{Activity, Pattern};

/// A test of Bonnie++, in the order of the fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Test {
    /// Name of the test in this program.
    pub(crate) name: &'static str,
    pub(crate) activity: Activity,
    /// Pattern of offsets, for tests that read and write.
    pub(crate) pattern: Option<Pattern>,
    /// Share of requests that are reads; `None` for tests of small files.
    pub(crate) read_fraction: Option<f64>,
    pub(crate) unit: Unit,
}

/// Unit of a test's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// KiB per second.
    Kib,
    /// Seeks, each with a read, or files, per second.
    Each,
}

const fn bytes(name: &'static str, activity: Activity, read_fraction: f64) -> Test {
    Test {
        name,
        activity,
        pattern: Some(Pattern::Sequential),
        read_fraction: Some(read_fraction),
        unit: Unit::Kib,
    }
}

const fn files(name: &'static str, activity: Activity) -> Test {
    Test {
        name,
        activity,
        pattern: None,
        read_fraction: None,
        unit: Unit::Each,
    }
}

/// Prefix of the version in a line that this program wrote.
pub(crate) const OWN_VERSION_PREFIX: &str = "disksmith-";

/// Fields before the rates that are options of the run; 1.96 and 1.97 have the first four.
pub(crate) const RUN_OPTIONS: [&str; 6] = [
    "concurrency",
    "seed",
    "file_size",
    "io_chunk_size",
    "seeks",
    "seek_proc_count",
];

/// Fields between the rates of the data and those of the files: options of the tests of small files.
pub(crate) const FILE_OPTIONS: [&str; 5] = [
    "num_files",
    "max_size",
    "min_size",
    "num_dirs",
    "file_chunk_size",
];

/// The tests of the files' data come first.
pub(crate) const DATA_TESTS: usize = 6;

/// All tests, in the order of the fields. A tenth of the seeks writes the block back (bonnie++'s `do_seek`).
pub(crate) const TESTS: [Test; 12] = [
    bytes("char-write", Activity::Write, 0.0),
    bytes("block-write", Activity::Write, 0.0),
    bytes("rewrite", Activity::All, 0.5),
    bytes("char-read", Activity::Read, 1.0),
    bytes("block-read", Activity::Read, 1.0),
    Test {
        name: "seeks",
        activity: Activity::All,
        pattern: Some(Pattern::Random),
        read_fraction: Some(10.0 / 11.0),
        unit: Unit::Each,
    },
    files("seq-create", Activity::Create),
    files("seq-stat", Activity::Stat),
    files("seq-delete", Activity::Delete),
    files("random-create", Activity::Create),
    files("random-stat", Activity::Stat),
    files("random-delete", Activity::Delete),
];

/// Default block size of Bonnie++.
pub(crate) const CHUNK: record::Bytes = record::Bytes::kib(8);
