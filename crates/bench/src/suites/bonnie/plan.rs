//! Tests, their sizes, and the room for them.

use std::path::Path;

use engine::IoInterface;
use linux::space::{self, Space};
use record::{Bytes, JobOptions, Nanos, Pattern, SmallFiles, Workload};

use crate::args::BenchArgs;
use crate::descriptors;
use crate::phase_plan::base;
use crate::test_folder::names::Round;

/// Default size of a call of the block tests.
const BLOCK: Bytes = Bytes::kib(8);
/// Bytes of the tests of single bytes. bonnie++(8) says 20 MiB, but version 2.00a makes 3,145,728 calls (by strace),
/// whatever the size of its file.
const CHARS: Bytes = Bytes::mib(3);
/// Number of seeks over all seekers.
const SEEKS: u64 = 8192;
/// Number of seekers at the same time.
const SEEKERS: u32 = 5;
/// Number of small files.
const FILES: u32 = 16 * 1024;
/// Size of the large file as a multiple of the memory, so that the page cache cannot hold most of it.
const TIMES_MEMORY: u64 = 2;
/// The divisor of a file system's size that gives the part left free where no size was given.
const FREE_SPACE_DIVISOR: u64 = 20;
/// Maximum disk space of a small file beside its data, in bytes: an inode and its name.
const MAX_FILE_METADATA_BYTES: u64 = 4096;

/// Operation on each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileOp {
    Create,
    Stat,
    Delete,
}

impl FileOp {
    /// The kind of call in a record.
    pub(super) fn calls(self) -> record::CallKind {
        match self {
            FileOp::Create => record::CallKind::Create,
            FileOp::Stat => record::CallKind::Stat,
            FileOp::Delete => record::CallKind::Delete,
        }
    }
}

/// A test of Bonnie++.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    CharWrite,
    BlockWrite,
    Rewrite,
    CharRead,
    BlockRead,
    Seeks,
    Files(Round, FileOp),
}

impl Test {
    /// All tests, in the order in which they are run.
    pub(super) const ALL: [Test; 12] = [
        Test::CharWrite,
        Test::BlockWrite,
        Test::Rewrite,
        Test::CharRead,
        Test::BlockRead,
        Test::Seeks,
        Test::Files(Round::Sequential, FileOp::Create),
        Test::Files(Round::Sequential, FileOp::Stat),
        Test::Files(Round::Sequential, FileOp::Delete),
        Test::Files(Round::Random, FileOp::Create),
        Test::Files(Round::Random, FileOp::Stat),
        Test::Files(Round::Random, FileOp::Delete),
    ];

    /// Name of the phase, as in Bonnie++'s own CSV.
    pub(super) fn name(self) -> &'static str {
        match self {
            Test::CharWrite => "char-write",
            Test::BlockWrite => "block-write",
            Test::Rewrite => "rewrite",
            Test::CharRead => "char-read",
            Test::BlockRead => "block-read",
            Test::Seeks => "seeks",
            Test::Files(Round::Sequential, FileOp::Create) => "seq-create",
            Test::Files(Round::Sequential, FileOp::Stat) => "seq-stat",
            Test::Files(Round::Sequential, FileOp::Delete) => "seq-delete",
            Test::Files(Round::Random, FileOp::Create) => "random-create",
            Test::Files(Round::Random, FileOp::Stat) => "random-stat",
            Test::Files(Round::Random, FileOp::Delete) => "random-delete",
        }
    }

    /// The test that creates the files which this one needs.
    fn needs(self) -> Option<Test> {
        match self {
            Test::Rewrite | Test::CharRead | Test::BlockRead | Test::Seeks => {
                Some(Test::BlockWrite)
            }
            Test::Files(round, FileOp::Stat | FileOp::Delete) => {
                Some(Test::Files(round, FileOp::Create))
            }
            Test::Files(_, FileOp::Create) | Test::CharWrite | Test::BlockWrite => None,
        }
    }

    /// Seed of its random numbers.
    pub(super) fn number(self) -> u64 {
        let at = Test::ALL.iter().position(|test| *test == self);
        at.unwrap_or_default() as u64
    }
}

/// The small files.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Files {
    pub(super) count: u32,
    /// Sizes are drawn from `smallest` to `largest`.
    pub(super) smallest: Bytes,
    pub(super) largest: Bytes,
    /// Number of directories that the files are spread over; 0 if all are in the folder itself.
    pub(super) directories: u32,
}

/// The tests of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tests {
    pub(super) list: Vec<Test>,
    /// The size of the large file.
    pub(super) size: Bytes,
    /// True if the user gave the size.
    pub(super) sized: bool,
    /// Size of a call, in bytes.
    pub(super) block: Bytes,
    /// Number of bytes that are transferred one by one.
    pub(super) chars: Bytes,
    pub(super) seeks: u64,
    pub(super) seekers: u32,
    pub(super) files: Files,
    /// True if each write, and each file that is created or removed, is flushed at once.
    pub(super) sync: bool,
    /// Notes for the user, as sentences.
    pub(super) notes: Vec<String>,
}

/// Refuses options that the tests cannot use.
///
/// # Errors
/// A sentence with the option and the reason.
pub(crate) fn check_options(args: &BenchArgs) -> Result<(), String> {
    let given = [
        (args.shared.rate.is_some(), "--rate"),
        (args.depth.is_some(), "--depth"),
        (args.span.is_some(), "--span"),
        (args.read_fraction.is_some(), "--read-fraction"),
        (args.seconds.is_some(), "--seconds"),
        (args.precision.is_some(), "--precision"),
        (args.quick, "--quick"),
        (args.engine.is_some(), "--engine"),
    ];
    match given.into_iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, option)) => Err(format!(
            "{option} does not go with --suite bonnie: its tests are a fixed amount of work, by \
             blocking calls one after another; --size, --block and --files set it"
        )),
    }
}

impl Tests {
    /// The tests that `args` and the names of phases request, on a machine with this memory.
    ///
    /// # Errors
    /// When a test is named that does not exist, or a value makes no sense.
    pub(super) fn of(args: &BenchArgs, names: &[String], memory: Bytes) -> Result<Tests, String> {
        check_options(args)?;
        let known = |name: &String| Test::ALL.iter().any(|test| test.name() == name);
        if let Some(name) = names.iter().find(|name| !known(name)) {
            let all: Vec<&str> = Test::ALL.iter().map(|test| test.name()).collect();
            return Err(format!(
                "there is no phase '{name}'; the suite has {}",
                all.join(", ")
            ));
        }
        let named = |test: Test| names.is_empty() || names.iter().any(|name| name == test.name());
        let needed = |test: Test| {
            let mut all = Test::ALL.into_iter();
            all.any(|other| named(other) && other.needs() == Some(test))
        };
        let list: Vec<Test> = Test::ALL
            .into_iter()
            .filter(|test| named(*test) || needed(*test))
            .collect();
        let added = list.iter().filter(|test| !named(**test));
        let notes = added.map(|test| {
            format!(
                "{} was run too, since the requested tests work on the files that it writes.",
                test.name()
            )
        });
        let notes = notes.collect();
        let tests = Tests {
            size: args.shared.size.map_or_else(
                // A memory may be any number of KiB, and the file must be at least twice that.
                || Bytes((memory.0 * TIMES_MEMORY).next_multiple_of(Bytes::MIB.0)),
                |size| size.0.round_down(Bytes::MIB),
            ),
            sized: args.shared.size.is_some(),
            block: args.block.map_or(BLOCK, |block| block.0),
            chars: CHARS,
            seeks: SEEKS,
            seekers: args.threads.unwrap_or(SEEKERS),
            files: files(args)?,
            sync: args.shared.sync,
            notes,
            list,
        };
        tests.checked(memory)
    }

    fn checked(mut self, memory: Bytes) -> Result<Tests, String> {
        if self.size < Bytes::MIB || self.block.0 == 0 || self.block > Bytes::MIB {
            return Err(format!(
                "a file of {} in blocks of {}: Bonnie++'s tests take a --size of 1 MiB or more, and \
                 a --block of 1 byte to 1 MiB",
                self.size, self.block
            ));
        }
        self.chars = self.chars.min(self.size);
        if self.has_large_file() && self.size.0 < TIMES_MEMORY * memory.0.max(1) {
            self.notes.push(format!(
                "The file of {} is less than twice this machine's memory of {memory}, as Bonnie++ \
                 would have it.",
                self.size
            ));
        }
        Ok(self)
    }

    /// True if a test needs the large file.
    fn has_large_file(&self) -> bool {
        let other = |test: &Test| matches!(test, Test::Files(..) | Test::CharWrite);
        !self.list.iter().all(other)
    }

    /// Maximum amount of data on the disk at one time, without small files.
    pub(super) fn data(&self) -> Bytes {
        if self.has_large_file() {
            // The file of single bytes is removed before the large one is created, and is not larger.
            self.size
        } else if self.list.contains(&Test::CharWrite) {
            self.chars
        } else {
            Bytes(0)
        }
    }

    /// Maximum number of files open at once: those of the seekers, and the directories of small files.
    pub(super) fn open_at_once(&self) -> u64 {
        // The calls are made by threads without a ring.
        let seeker = 1 + descriptors::of_thread(IoInterface::Sync);
        let of_test = |test: &Test| match test {
            Test::Files(..) => u64::from(self.files.directories),
            Test::Seeks => u64::from(self.seekers) * seeker,
            _ => 0,
        };
        self.list.iter().map(of_test).max().unwrap_or(0)
    }

    /// Checks that the directory has room for everything: data, and the number of files.
    ///
    /// # Errors
    /// A sentence with what does not fit, and what to give instead.
    pub(super) fn check_room(&self, directory: &Path) -> Result<(), String> {
        let space = space::of(directory).map_err(|error| error.to_string())?;
        self.check_bytes(directory, &space)?;
        let files = self.named();
        match rustix::fs::statvfs(directory) {
            // File systems that create inodes on demand report a total of 0.
            Ok(room) if room.f_files > 0 && room.f_favail < files + 1 => Err(format!(
                "{} has room for {} more files by number, and {files} would be created; give fewer \
                 --files",
                directory.display(),
                room.f_favail
            )),
            _ => Ok(()),
        }
    }

    /// Maximum number of named files and directories that exist at once.
    fn named(&self) -> u64 {
        match self.list.iter().any(|test| matches!(test, Test::Files(..))) {
            true => u64::from(self.files.count) + u64::from(self.files.directories),
            false => 0,
        }
    }

    /// Checks that all data fits into `space`. Without a given size, a part is left free for other programs.
    ///
    /// # Errors
    /// A sentence with the space that is needed, and what to give instead.
    pub(super) fn check_bytes(&self, directory: &Path, space: &Space) -> Result<(), String> {
        let each = self.files.largest.0 + MAX_FILE_METADATA_BYTES;
        // The large file exists until the end.
        let data = self.data() + Bytes(self.named().saturating_mul(each));
        let (kept, unasked) = match self.sized || !self.has_large_file() {
            true => (Bytes(0), String::new()),
            false => {
                let kept = Bytes(space.total.0 / FREE_SPACE_DIVISOR);
                (
                    kept,
                    format!(", of which {kept} stay free unless --size is given"),
                )
            }
        };
        if data + kept <= space.available {
            return Ok(());
        }
        Err(format!(
            "the tests of --suite bonnie need {data} in {}, and {} are free{unasked}; a file of \
             twice the memory is written unless a smaller --size is given, and {} small files \
             unless other --files are",
            directory.display(),
            space.available,
            self.files.count
        ))
    }

    /// Workload of a test, for the record.
    pub(super) fn workload(&self, test: Test) -> Workload {
        let each = |calls| Workload {
            pattern: Pattern::Sequential,
            span: Some(self.size),
            block: self.block,
            longest: Nanos(0),
            shortest: Nanos(0),
            precision: 0.0,
            details: Some(Box::new(JobOptions {
                full_sync: true,
                calls: Some(calls),
                ..JobOptions::default()
            })),
            ..base()
        };
        let data = each(record::CallKind::Data);
        let writes = |read_fraction| Workload {
            read_fraction,
            sync_every: u32::from(self.sync),
            sync_at_end: true,
            ..data.clone()
        };
        let blocks = Some(self.size.0.div_ceil(self.block.0));
        let one_byte = |workload| Workload {
            block: Bytes(1),
            span: Some(self.chars),
            ops: Some(self.chars.0),
            ..workload
        };
        match test {
            Test::CharWrite => one_byte(writes(0.0)),
            Test::BlockWrite => Workload {
                ops: blocks,
                ..writes(0.0)
            },
            Test::Rewrite => Workload {
                ops: blocks.map(|count| 2 * count),
                ..writes(0.5)
            },
            Test::CharRead => one_byte(data),
            Test::BlockRead => Workload {
                ops: blocks,
                ..data
            },
            Test::Seeks => Workload {
                pattern: Pattern::Random,
                threads: self.seekers,
                ops: Some(self.seeks + self.seeks / 10),
                ..writes(10.0 / 11.0)
            },
            Test::Files(round, op) => self.of_files(round, op, each(op.calls())),
        }
    }

    fn of_files(&self, round: Round, op: FileOp, plain: Workload) -> Workload {
        let changes = op != FileOp::Stat;
        Workload {
            pattern: match round {
                Round::Sequential => Pattern::Sequential,
                Round::Random => Pattern::Random,
            },
            block: self.files.largest,
            read_fraction: if changes { 0.0 } else { 1.0 },
            // The span is that of each file, as with several files everywhere.
            span: Some(self.files.largest),
            ops: Some(u64::from(self.files.count)),
            sync_every: u32::from(self.sync && changes),
            sync_at_end: changes,
            details: plain.details.map(|details| {
                Box::new(JobOptions {
                    files: self.files.count,
                    small_files: Some(SmallFiles {
                        smallest: self.files.smallest,
                        directories: self.files.directories,
                    }),
                    ..*details
                })
            }),
            ..plain
        }
    }
}

/// The small files that `args` request.
fn files(args: &BenchArgs) -> Result<Files, String> {
    let sizes = args.file_size.unwrap_or_default();
    if sizes.largest > Bytes::gib(1) {
        return Err(format!(
            "small files of {} are not small; give a --file-size of 1 GiB or less",
            sizes.largest
        ));
    }
    Ok(Files {
        count: args.files.unwrap_or(FILES),
        smallest: sizes.smallest,
        largest: sizes.largest,
        directories: args.directories.unwrap_or(0),
    })
}
