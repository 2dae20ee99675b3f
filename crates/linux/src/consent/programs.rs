//! Programs that use a file or device without a claim that the kernel would enforce: an InnoDB raw volume, a
//! virtual machine's disk, a data file of a database.
//!
//! `O_EXCL` keeps out only those who ask for it too, so the descriptors and mappings of every process are
//! examined (proc_pid_fd(5), proc_pid_fdinfo(5), proc_pid_map_files(5)). A thread may have descriptors of its
//! own, and those of a process whose first thread has ended are seen in its other threads only.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use rustix::fs::OFlags;

use super::commands::CommandDevices;
use super::identity::Storage;
use crate::root::{Root, attribute, unescape};

mod rings;
mod threads;

/// Use of storage by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramUse {
    /// The program has the storage open for writing.
    Writing,
    /// The program has the storage mapped into its memory.
    Mapped,
    /// The program holds a lock on the storage (flock(2), fcntl(2)).
    Locked,
    /// The program has registered the storage with io_uring(7), for which it need not keep a descriptor.
    Registered,
}

impl fmt::Display for ProgramUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProgramUse::Writing => "open for writing",
            ProgramUse::Mapped => "mapped into memory",
            ProgramUse::Locked => "locked",
            ProgramUse::Registered => "registered with io_uring",
        })
    }
}

/// A program that uses storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UsingProgram {
    /// Process id of the program.
    pub(super) pid: u32,
    /// Name of the program (`comm`).
    pub(super) name: String,
    /// Kind of use.
    pub(super) hold: ProgramUse,
    /// Storage that the program uses.
    pub(super) storage: Storage,
}

/// The programs found, and how many processes could not be examined.
#[derive(Clone, Debug, Default)]
pub(super) struct Programs {
    pub(super) found: Vec<UsingProgram>,
    pub(super) unreadable: usize,
}

/// Time for which a program may hold a file before that counts: a child has its parent's files until it
/// executes its own program, and udev opens and locks a device for a moment after each change.
const HELD_FILE_TIME: Duration = Duration::from_millis(100);
const SEARCHES: u32 = 5;

/// The programs that use any of the storage for more than a moment. This program is one
/// of them when it has it open under another name than the target's own: as another target.
pub(super) fn using(
    root: &Root,
    commands: &CommandDevices,
    target: Storage,
    storage: &[Storage],
) -> io::Result<Programs> {
    let search = Search {
        root,
        commands,
        target,
        storage,
    };
    let mut programs = search.programs()?;
    for _ in 1..SEARCHES {
        if programs.found.is_empty() {
            break;
        }
        std::thread::sleep(HELD_FILE_TIME);
        let mut pids: Vec<u32> = programs.found.iter().map(|program| program.pid).collect();
        pids.dedup();
        let again = pids.into_iter().map(|pid| search.of_process(pid));
        let again: Vec<UsingProgram> = again.filter_map(Result::ok).flatten().collect();
        programs.found.retain(|program| again.contains(program));
    }
    Ok(programs)
}

/// A search for the programs that use some storage.
struct Search<'a> {
    root: &'a Root,
    commands: &'a CommandDevices,
    /// The storage itself, which this program may have open.
    target: Storage,
    /// All storage whose use is a use of the target.
    storage: &'a [Storage],
}

impl Search<'_> {
    fn programs(&self) -> io::Result<Programs> {
        let mut programs = Programs::default();
        for entry in fs::read_dir(&self.root.proc)? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            match self.of_process(pid) {
                Ok(found) => programs.found.extend(found),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    programs.unreadable += 1;
                }
                // It has ended.
                Err(_) => {}
            }
        }
        Ok(programs)
    }

    /// The uses of the storage by one process.
    fn of_process(&self, pid: u32) -> io::Result<Vec<UsingProgram>> {
        let folder = self.root.proc.join(pid.to_string());
        let holds = self.holds_of_threads(&folder, pid)?;
        if holds.is_empty() {
            return Ok(Vec::new());
        }
        let name = attribute(&folder.join("comm")).unwrap_or_else(|| "a program".to_owned());
        let program = |(storage, hold)| UsingProgram {
            pid,
            name: name.clone(),
            hold,
            storage,
        };
        Ok(holds.into_iter().map(program).collect())
    }

    /// Uses of the storage by a process, each once, with those of only some of its threads.
    fn holds_of_threads(&self, process: &Path, pid: u32) -> io::Result<Vec<(Storage, ProgramUse)>> {
        let is_own = |storage: Storage| pid == std::process::id() && storage == self.target;
        let mut all = self.uses_of_process(process)?;
        for thread in threads::with_own_files(process, pid) {
            // A thread has a folder like a process's, which is not listed. One that has ended has none.
            let folder = self.root.proc.join(thread.to_string());
            for (storage, hold) in self.uses_of_process(&folder).unwrap_or_default() {
                if !all.iter().any(|(known, _)| *known == storage) {
                    all.push((storage, hold));
                }
            }
        }
        all.retain(|(storage, _)| !is_own(*storage));
        Ok(all)
    }

    /// Uses of the storage by one process or thread: each once, the strongest.
    fn uses_of_process(&self, process: &Path) -> io::Result<Vec<(Storage, ProgramUse)>> {
        let mut holds: Vec<(Storage, ProgramUse)> = Vec::new();
        let mut unread = Ok(());
        let mut add = |storage, hold| {
            if !holds.iter().any(|(known, _)| *known == storage) {
                holds.push((storage, hold));
            }
        };
        for entry in fs::read_dir(process.join("fd"))? {
            let entry = entry?;
            let link = entry.path();
            let info = || attribute(&process.join("fdinfo").join(entry.file_name()));
            if let Some(storage) = self.wanted_at(&link)
                && let Some(info) = info()
                && let Some(hold) = use_of(&info)
            {
                add(storage, hold);
            }
            if fs::read_link(&link).is_ok_and(|link| link == Path::new("anon_inode:[io_uring]")) {
                match rings::registered_files(info) {
                    Ok(files) => {
                        for storage in files.iter().filter_map(|path| self.wanted_at(path)) {
                            add(storage, ProgramUse::Registered);
                        }
                    }
                    Err(error) => unread = Err(error),
                }
            }
        }
        for storage in mappings(process) {
            if self.storage.contains(&storage) {
                add(storage, ProgramUse::Mapped);
            }
        }
        if holds.is_empty() {
            unread?;
        }
        Ok(holds)
    }

    /// The storage at the end of a link of `/proc`, if it is one that is searched for. Following it opens nothing.
    fn wanted_at(&self, link: &Path) -> Option<Storage> {
        let storage = self.commands.storage(&fs::metadata(link).ok()?)?;
        self.storage.contains(&storage).then_some(storage)
    }
}

/// Storage that a process has mapped, which outlives the descriptor. Kernel threads have none.
fn mappings(process: &Path) -> Vec<Storage> {
    let links = fs::read_dir(process.join("map_files"));
    let links = links.map(|entries| entries.flatten().collect::<Vec<_>>());
    let mapped = links.unwrap_or_default();
    let mapped: Vec<Storage> = mapped
        .iter()
        .filter_map(|link| storage_at(&link.path()))
        .collect();
    if mapped.is_empty() {
        // To follow a link takes a capability. The numbers in `maps` tell files, and the paths devices and files of
        // btrfs, whose numbers there are not those of stat(2).
        let maps = attribute(&process.join("maps")).unwrap_or_default();
        let named = paths_in_maps(&maps);
        let named = named.iter().filter_map(|path| storage_at(path));
        return files_in_maps(&maps).into_iter().chain(named).collect();
    }
    mapped
}

/// The paths that lines of `maps` end with, each once.
fn paths_in_maps(maps: &str) -> BTreeSet<PathBuf> {
    let path = |line: &str| line.find('/').map(|at| unescape(&line.as_bytes()[at..]));
    let paths = maps.lines().filter_map(path);
    paths.map(PathBuf::from).collect()
}

/// The files that lines of `maps` name by device and inode: `7f… r--p 00000000 fd:01 4312 /srv/data`.
fn files_in_maps(maps: &str) -> Vec<Storage> {
    let file = |line: &str| {
        let mut words = line.split_whitespace().skip(3);
        let (major, minor) = words.next()?.split_once(':')?;
        let number = |hex: &str| u32::from_str_radix(hex, 16).ok();
        let device = rustix::fs::makedev(number(major)?, number(minor)?);
        let inode: u64 = words.next()?.parse().ok()?;
        (inode > 0).then_some(Storage::File(device, inode))
    };
    maps.lines().filter_map(file).collect()
}

/// The storage at the end of a link of `/proc`. Following it opens nothing.
fn storage_at(link: &Path) -> Option<Storage> {
    fs::metadata(link).ok().as_ref().and_then(Storage::of)
}

/// The use that a descriptor's `fdinfo` tells of: `flags` in octal, and a line for each lock that was taken
/// through it. A reader without a lock is no use that overwriting harms.
fn use_of(info: &str) -> Option<ProgramUse> {
    let flags = info
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())?;
    let flags = OFlags::from_bits_retain(flags);
    let locked = info.lines().any(|line| line.starts_with("lock:"));
    let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    if flags.contains(OFlags::PATH) {
        None
    } else if locked {
        Some(ProgramUse::Locked)
    } else {
        writes.then_some(ProgramUse::Writing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_name_files_by_device_and_inode() {
        let maps = "7f0 r--p 00000000 fd:01 4312 /srv/a file\n7f1 rw-p 00000000 00:00 0 [heap]\n";
        let file = Storage::File(rustix::fs::makedev(0xfd, 1), 4312);
        assert_eq!(files_in_maps(maps), [file]);
        let named = BTreeSet::from([PathBuf::from("/srv/a file")]);
        assert_eq!(paths_in_maps(maps), named);
    }

    #[test]
    fn writers_and_locks_are_uses_and_readers_are_none() {
        let lock = |kind: &str, mode: &str| {
            format!("lock:\t1: {kind}  ADVISORY  {mode} 4312 00:05:98 0 EOF\n")
        };
        for (flags, lock, expected) in [
            ("02100000", String::new(), None),
            ("02100002", String::new(), Some(ProgramUse::Writing)),
            ("0100001", String::new(), Some(ProgramUse::Writing)),
            ("012000000", String::new(), None),
            ("02100000", lock("FLOCK", "WRITE"), Some(ProgramUse::Locked)),
            ("02100000", lock("FLOCK", "READ"), Some(ProgramUse::Locked)),
            (
                "02100002",
                lock("OFDLCK", "WRITE"),
                Some(ProgramUse::Locked),
            ),
            ("02100002", lock("POSIX", "READ"), Some(ProgramUse::Locked)),
        ] {
            let info = format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t29\nino:\t98\n{lock}");
            assert_eq!(use_of(&info), expected, "{info}");
        }
        assert_eq!(use_of("nonsense"), None);
    }
}
