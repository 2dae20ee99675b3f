//! The directory of the tests of small files. It must have a name, as they must, so a kill leaves
//! it behind: its own lock tells whether its owner is alive, and the next start removes it.
//!
//! Only names that the tests give are removed, and only in it and one level below. Whatever else
//! somebody put there stays, and the directory with it.

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{
    AtFlags, Dir, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, statat,
};
use rustix::io::Errno;

/// How the names begin and end that say whose they are.
const PREFIX: &str = ".disksmith-";
const SUFFIX: &str = ".dir";
/// How often a name is tried: another start may take the directory for abandoned before it is
/// locked.
const ATTEMPTS: u32 = 10;

/// The directory, which is removed with what the tests left in it.
pub(crate) struct Folder {
    parent: OwnedFd,
    name: CString,
    directory: OwnedFd,
}

impl Folder {
    /// Creates it in `parent`, and locks it.
    ///
    /// # Errors
    /// When `parent` may not be written.
    pub(super) fn create(parent: &Path) -> io::Result<Folder> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let parent: OwnedFd = open_directory(rustix::fs::CWD, parent)?;
        for _ in 0..ATTEMPTS {
            let number = COUNT.fetch_add(1, Relaxed);
            let name = CString::new(format!("{PREFIX}{}-{number}{SUFFIX}", std::process::id()))?;
            match mkdirat(&parent, &name, Mode::RWXU) {
                // Left by a process that had our number, and in use or full of others' files.
                Err(Errno::EXIST) => continue,
                other => other?,
            }
            if let Some(directory) = locked(parent.as_fd(), &name) {
                return Ok(Folder {
                    parent,
                    name,
                    directory,
                });
            }
        }
        Err(io::Error::other(
            "each directory for the small files was taken away as soon as it was created",
        ))
    }

    /// Its descriptor.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now the next start removes.
        let _ = remove(self.parent.as_fd(), &self.name, self.directory.as_fd());
    }
}

/// The name of a directory in it.
pub(super) fn subdirectory(number: u32) -> String {
    format!("{number:05}")
}

/// Removes directories in `parent` that bear our name and whose owner is gone. Returns what was
/// removed.
pub(crate) fn remove_left_over(parent: &Path) -> Vec<PathBuf> {
    let Ok(above) = open_directory(rustix::fs::CWD, parent) else {
        return Vec::new();
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .filter(|entry| is_ours(&entry.file_name()))
        .filter(|entry| remove_abandoned(above.as_fd(), &entry.file_name()))
        .map(|entry| entry.path())
        .collect()
}

fn is_ours(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
}

fn remove_abandoned(parent: BorrowedFd<'_>, name: &OsStr) -> bool {
    let Ok(name) = CString::new(name.as_bytes()) else {
        return false;
    };
    locked(parent, &name).is_some_and(|directory| remove(parent, &name, directory.as_fd()).is_ok())
}

/// The directory of that name, if nobody else holds it and it is still the one of that name.
fn locked(parent: BorrowedFd<'_>, name: &CStr) -> Option<OwnedFd> {
    let directory = open_directory(parent, name).ok()?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    let (own, named) = (
        fstat(&directory).ok()?,
        statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()?,
    );
    (own.st_dev == named.st_dev && own.st_ino == named.st_ino).then_some(directory)
}

fn open_directory(at: BorrowedFd<'_>, path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, path, flags, Mode::empty())
}

/// Removes what is ours in the directory, and then itself if it is empty.
fn remove(parent: BorrowedFd<'_>, name: &CStr, directory: BorrowedFd<'_>) -> Result<(), Errno> {
    for below in names(directory)? {
        let subdirectory =
            below.to_bytes().len() == 5 && open_directory(directory, &*below).is_ok();
        if subdirectory {
            let inner = open_directory(directory, &*below)?;
            remove_files(inner.as_fd())?;
            let _ = rustix::fs::unlinkat(directory, &*below, AtFlags::REMOVEDIR);
        }
    }
    remove_files(directory)?;
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Removes the files that the tests created.
fn remove_files(directory: BorrowedFd<'_>) -> Result<(), Errno> {
    let ours = names(directory)?
        .into_iter()
        .filter(|name| is_small_file(name.to_bytes()));
    for name in ours {
        rustix::fs::unlinkat(directory, &*name, AtFlags::empty())?;
    }
    Ok(())
}

/// Ten digits, and up to twelve letters or digits on one side of them.
fn is_small_file(name: &[u8]) -> bool {
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_hexdigit);
    (10..=22).contains(&name.len())
        && name.iter().all(u8::is_ascii_alphanumeric)
        && (digits(&name[..10]) || digits(&name[name.len() - 10..]))
}

/// What is in a directory.
fn names(directory: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    Dir::read_from(directory)?
        .map(|entry| entry.map(|entry| entry.file_name().to_owned()))
        .filter(|name| !matches!(name, Ok(name) if matches!(name.to_bytes(), b"." | b"..")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(parent: &Path) -> PathBuf {
        let path = parent.join(".disksmith-7-0.dir");
        fs::create_dir_all(path.join("00001")).unwrap();
        fs::write(path.join("0000000001aB3"), "x").unwrap();
        fs::write(path.join("00001/zZ000000000f"), "x").unwrap();
        path
    }

    #[test]
    fn it_goes_with_what_the_tests_left_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::create(parent.path()).unwrap();
        let name = fs::read_dir(parent.path()).unwrap().next().unwrap();
        let path = name.unwrap().path();
        fs::write(path.join("0000000000"), "").unwrap();
        assert_eq!(remove_left_over(parent.path()), [] as [PathBuf; 0]);
        assert!(path.is_dir(), "its owner is alive");
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn the_next_start_removes_what_a_killed_one_left() {
        let parent = tempfile::tempdir().unwrap();
        let path = left(parent.path());
        assert_eq!(remove_left_over(parent.path()), [path]);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_ours_stays() {
        let parent = tempfile::tempdir().unwrap();
        let path = left(parent.path());
        fs::write(path.join("notes.txt"), "mine").unwrap();
        fs::write(path.join("00001/thesis"), "mine").unwrap();
        fs::create_dir(parent.path().join("disksmith-1-0.dir")).unwrap();
        let other = parent.path().join("elsewhere");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("0000000000"), "mine").unwrap();
        std::os::unix::fs::symlink(&other, parent.path().join(".disksmith-8-0.dir")).unwrap();
        assert_eq!(remove_left_over(parent.path()), [] as [PathBuf; 0]);
        assert!(path.join("notes.txt").exists() && path.join("00001/thesis").exists());
        assert!(other.join("0000000000").exists());
        assert!(parent.path().join("disksmith-1-0.dir").exists());
    }
}
