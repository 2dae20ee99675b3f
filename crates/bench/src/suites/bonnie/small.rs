//! The calls of the tests of many small files.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use engine::calls::{self, Task, Timer};
use engine::{EngineError, derive_seed};
use record::{Bytes, Direction};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, fsync, mkdirat, openat, statat, syncfs, unlinkat};
use rustix::io::{Errno, read, retry_on_intr, write};

use super::plan::{FileOp, Files};
use crate::test_folder::Folder;
use crate::test_folder::names::{self, Round};

/// Maximum size of a read or write.
const PIECE: Bytes = Bytes::kib(64);

/// A small file.
struct Entry {
    directory: usize,
    name: CString,
    size: u64,
}

/// The files of a test round.
pub(super) struct SmallFileSet {
    folder: Folder,
    /// Directories in the folder that the files are spread over; empty where all lie in the folder itself.
    directories: Vec<OwnedFd>,
    entries: Vec<Entry>,
    round: Round,
    seed: u64,
    sync: bool,
    memory: Vec<u8>,
    /// Number of entries that were created.
    created: Cell<usize>,
}

/// Removes the files that were created and still exist, by their names alone.
impl Drop for SmallFileSet {
    fn drop(&mut self) {
        for entry in &self.entries[..self.created.get()] {
            let directory = self.directory(entry.directory);
            let _ = unlinkat(directory, &entry.name, AtFlags::empty());
        }
    }
}

impl SmallFileSet {
    /// Names the files, and creates the directories that they will lie in.
    ///
    /// # Errors
    /// When a directory cannot be created.
    pub(super) fn new(
        folder: Folder,
        files: &Files,
        round: Round,
        seed: u64,
        sync: bool,
    ) -> Result<SmallFileSet, EngineError> {
        let seed = derive_seed(seed, round as u64);
        let directories = (0..files.directories).map(|number| {
            let name = names::subdirectory(number);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            mkdirat(folder.as_fd(), &name, Mode::RWXU)
                .and_then(|()| openat(folder.as_fd(), &name, flags, Mode::empty()))
                .map_err(|errno| {
                    calls::call_error(format!("creating the directory {name} of the test"), errno)
                })
        });
        let directories = directories.collect::<Result<_, _>>()?;
        let spread = u64::from(files.directories.max(1));
        let entry = |number: u32| Entry {
            // As Bonnie++ spreads them: consecutive numbers share a directory.
            directory: (u64::from(number) * spread / u64::from(files.count)) as usize,
            name: names::file(round, number, derive_seed(seed, u64::from(number))),
            size: size(files, derive_seed(!seed, u64::from(number))),
        };
        let words = (0..PIECE.0 / 8).flat_map(|word| derive_seed(seed, word).to_ne_bytes());
        Ok(SmallFileSet {
            entries: (0..files.count).map(entry).collect(),
            folder,
            directories,
            round,
            seed,
            sync,
            memory: words.collect(),
            created: Cell::new(0),
        })
    }

    /// The task of a test on these files.
    pub(super) fn task(&mut self, op: FileOp) -> Box<dyn Task + '_> {
        match (op, self.round) {
            (FileOp::Create, _) => Box::new(Creation { small: self, at: 0 }),
            (_, Round::Sequential) => Box::new(ListedOrder {
                small: self,
                op,
                directory: 0,
                listing: None,
            }),
            (_, Round::Random) => {
                let seed = derive_seed(self.seed, op as u64);
                let mut order: Vec<usize> = (0..self.entries.len()).collect();
                order.sort_by_key(|at| derive_seed(seed, *at as u64));
                Box::new(RandomOrder {
                    small: self,
                    op,
                    order,
                    at: 0,
                })
            }
        }
    }

    fn directory(&self, number: usize) -> BorrowedFd<'_> {
        self.directories
            .get(number)
            .map_or(self.folder.as_fd(), AsFd::as_fd)
    }

    /// True if a file with this name was created in this directory.
    fn has(&self, directory: usize, name: &CStr) -> bool {
        let number = names::number_of(self.round, name.to_bytes());
        let entry = number.and_then(|number| self.entries.get(number as usize));
        entry.is_some_and(|entry| entry.directory == directory && *entry.name == *name)
    }

    fn create(&mut self, at: usize, timer: &mut Timer<'_>) -> Result<(), EngineError> {
        let entry = &self.entries[at];
        let directory = self.directory(entry.directory);
        let wrong = |errno: Errno| of_file("creating", &entry.name, errno);
        let since = timer.start_call();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(directory, &entry.name, flags, Mode::RUSR | Mode::WUSR).map_err(wrong)?;
        self.created.set(at + 1);
        let mut left = entry.size as usize;
        while left > 0 {
            let piece = &self.memory[..left.min(self.memory.len())];
            left -= retry_on_intr(|| write(&file, piece)).map_err(wrong)?;
        }
        if self.sync {
            timer.record(Direction::Write, 0, since);
            for descriptor in [file.as_fd(), directory] {
                let flush = || retry_on_intr(|| fsync(descriptor));
                timer.time(Direction::Sync, 0, flush).map_err(wrong)?;
            }
            timer.record(Direction::Commit, 0, since);
        } else {
            drop(file);
            timer.record(Direction::Write, 0, since);
        }
        Ok(())
    }

    fn stat(
        &mut self,
        directory: usize,
        name: &CStr,
        timer: &mut Timer<'_>,
    ) -> Result<(), EngineError> {
        let wrong = |errno: Errno| of_file("looking at", name, errno);
        let directory = self
            .directories
            .get(directory)
            .map_or(self.folder.as_fd(), AsFd::as_fd);
        let memory = &mut self.memory;
        let since = timer.start_call();
        let seen = statat(directory, name, AtFlags::empty()).map_err(wrong)?;
        if seen.st_size > 0 {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let file = openat(directory, name, flags, Mode::empty()).map_err(wrong)?;
            while retry_on_intr(|| read(&file, &mut memory[..])).map_err(wrong)? > 0 {}
        }
        timer.record(Direction::Read, 0, since);
        Ok(())
    }

    fn delete(
        &self,
        directory: usize,
        name: &CStr,
        timer: &mut Timer<'_>,
    ) -> Result<(), EngineError> {
        let wrong = |errno: Errno| of_file("removing", name, errno);
        let directory = self.directory(directory);
        let since = timer.start_call();
        let remove = || unlinkat(directory, name, AtFlags::empty());
        timer.time(Direction::Write, 0, remove).map_err(wrong)?;
        if self.sync {
            let flush = || retry_on_intr(|| fsync(directory));
            timer.time(Direction::Sync, 0, flush).map_err(wrong)?;
            timer.record(Direction::Commit, 0, since);
        }
        Ok(())
    }

    fn op(
        &mut self,
        op: FileOp,
        directory: usize,
        name: &CStr,
        timer: &mut Timer<'_>,
    ) -> Result<bool, EngineError> {
        match op {
            FileOp::Delete => self.delete(directory, name, timer)?,
            FileOp::Create | FileOp::Stat => self.stat(directory, name, timer)?,
        }
        Ok(true)
    }

    /// Ends a test: Bonnie++ calls sync(2) if it changed something. Here only this file system is synced.
    fn end(&self, op: FileOp, timer: &mut Timer<'_>) -> Result<bool, EngineError> {
        if op != FileOp::Stat {
            let flush = || retry_on_intr(|| syncfs(self.folder.as_fd()));
            let done = timer.time(Direction::Sync, 0, flush);
            done.map_err(|errno| calls::call_error("syncfs of the file system", errno))?;
        }
        Ok(false)
    }
}

fn of_file(doing: &str, name: &CStr, errno: Errno) -> EngineError {
    calls::call_error(
        format!("{doing} the file {}", name.to_string_lossy()),
        errno,
    )
}

fn size(files: &Files, random: u64) -> u64 {
    let (smallest, largest) = (files.smallest.0, files.largest.0);
    smallest + random % (largest.saturating_sub(smallest) + 1)
}

/// Creates the files in the order of their numbers.
struct Creation<'a> {
    small: &'a mut SmallFileSet,
    at: usize,
}

impl Task for Creation<'_> {
    fn step(&mut self, timer: &mut Timer<'_>) -> Result<bool, EngineError> {
        if self.at == self.small.entries.len() {
            return self.small.end(FileOp::Create, timer);
        }
        self.small.create(self.at, timer)?;
        self.at += 1;
        Ok(true)
    }
}

/// Applies an operation to the files in the order in which their directories list them. Files that this run did not
/// create are skipped.
struct ListedOrder<'a> {
    small: &'a mut SmallFileSet,
    op: FileOp,
    directory: usize,
    listing: Option<Dir>,
}

impl Task for ListedOrder<'_> {
    fn step(&mut self, timer: &mut Timer<'_>) -> Result<bool, EngineError> {
        let listing = match &mut self.listing {
            Some(listing) => listing,
            None => {
                let opened = Dir::read_from(self.small.directory(self.directory));
                self.listing.insert(opened.map_err(listing_failed)?)
            }
        };
        match listing.next() {
            Some(entry) => {
                let entry = entry.map_err(listing_failed)?;
                let name = entry.file_name();
                if !self.small.has(self.directory, name) {
                    return Ok(true);
                }
                self.small.op(self.op, self.directory, name, timer)
            }
            None => {
                self.listing = None;
                self.directory += 1;
                if self.directory < self.small.directories.len() {
                    return Ok(true);
                }
                self.small.end(self.op, timer)
            }
        }
    }
}

fn listing_failed(errno: Errno) -> EngineError {
    calls::call_error("listing the directory of the small files", errno)
}

/// Applies an operation to each file, in random order.
struct RandomOrder<'a> {
    small: &'a mut SmallFileSet,
    op: FileOp,
    order: Vec<usize>,
    at: usize,
}

impl Task for RandomOrder<'_> {
    fn step(&mut self, timer: &mut Timer<'_>) -> Result<bool, EngineError> {
        let Some(number) = self.order.get(self.at) else {
            return self.small.end(self.op, timer);
        };
        self.at += 1;
        let entry = &self.small.entries[*number];
        let (directory, name) = (entry.directory, entry.name.clone());
        self.small.op(self.op, directory, &name, timer)
    }
}
