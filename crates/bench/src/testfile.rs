//! The file that a run lays out in a directory and measures.
//!
//! It has no name while it is used: it is created without one (O_TMPFILE, open(2)), or unlinked immediately. The
//! kernel frees it when the last descriptor closes, however the process ends, including kill -9 and a power loss. Only
//! where a file system has no O_TMPFILE can a kill between creation and unlink leave a file; the next start removes
//! it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use record::Bytes;
use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags, fallocate, flock};
use rustix::io::Errno;

/// Prefix of the names of this program's test files.
const PREFIX: &str = ".disksmith-";
const SUFFIX: &str = ".tmp";

/// Creates an empty file without a name in `directory`, for reading and writing.
///
/// # Errors
/// When the directory may not be written, or is on a file system that is read-only or full.
pub(crate) fn create(directory: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let unnamed = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(directory, unnamed, mode) {
        Ok(file) => Ok(file.into()),
        // A file system without O_TMPFILE returns EOPNOTSUPP, an older kernel EISDIR or ENOENT.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
            create_and_unlink(directory)
        }
        Err(error) => Err(error.into()),
    }
}

fn create_and_unlink(directory: &Path) -> io::Result<File> {
    let name = format!("{PREFIX}{}-{}{SUFFIX}", std::process::id(), unique());
    let path = directory.join(name);
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    // The lock shows that the owner is alive.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    match fs::remove_file(&path) {
        // Another process took the file for abandoned between creation and lock, and removed it, as this process would
        // have done next.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(file),
        Err(error) => Err(error),
        Ok(()) => Ok(file),
    }
}

/// A number that is unique within the process; with the process id it is unique on the host.
fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

/// Removes files in `directory` that have this program's name and whose owner has ended. Returns the removed paths;
/// none if the directory cannot be listed.
pub(crate) fn remove_left_over(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| is_test_file_name(&entry.file_name()))
        .map(|entry| entry.path())
        .filter(|path| is_abandoned(path) && fs::remove_file(path).is_ok())
        .collect()
}

fn is_test_file_name(name: &OsString) -> bool {
    name.to_str()
        .is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
}

/// True if it is a regular file without a lock.
fn is_abandoned(path: &Path) -> bool {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else {
        return false;
    };
    let file = File::from(file);
    let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
    regular && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Reserves room for the file, so that a full disk is found before anything is measured.
///
/// # Errors
/// When there is no room. A file system that does not support reservation is not an error.
pub(crate) fn reserve(file: &File, size: Bytes) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, size.0) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Size of the smallest test file with meaningful figures.
pub(crate) const MIN_SIZE: Bytes = Bytes::mib(256);
/// Maximum size that is laid out without a request.
pub(crate) const MAX_DEFAULT_SIZE: Bytes = Bytes::gib(4);

/// A size to suggest where the requested or the default size does not fit: half of the free space, as a power of two
/// of at most 64 MiB; `None` where that is too small for a test file.
pub(crate) fn fitting(free: Bytes) -> Option<Bytes> {
    let half = Bytes(free.0 / 2).min(Bytes::mib(64));
    (half >= Bytes::MIB).then(|| Bytes(1 << half.0.ilog2()))
}

/// Maximum size to lay out in the free space: `asked` if it fits; without a request up to 4 GiB and at most a tenth of
/// the free space.
///
/// # Errors
/// A sentence, when it does not fit.
pub(crate) fn size_for(asked: Option<Bytes>, free: Bytes) -> Result<Bytes, String> {
    match asked {
        Some(size) if size < Bytes::MIB => Err(format!(
            "a test file of {size} is too small to measure anything"
        )),
        Some(size) if size > free => Err(format!(
            "a test file of {size} does not fit: {free} are free"
        )),
        Some(size) => Ok(size.round_down(Bytes::MIB)),
        None => {
            let tenth = Bytes(free.0 / 10);
            if tenth < MIN_SIZE {
                return Err(format!(
                    "{free} are free, and a test file takes at most a tenth of that unless you \
                     say otherwise: at least {MIN_SIZE} are needed"
                ));
            }
            Ok(tenth.min(MAX_DEFAULT_SIZE).round_down(Bytes::MIB))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_test_file_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        for create in [create, create_and_unlink] {
            let mut file = create(folder.path()).unwrap();
            file.write_all(b"data").unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn only_our_own_abandoned_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path(".disksmith-1-0.tmp"), "left").unwrap();
        fs::write(path("disksmith-1-0.tmp"), "not ours").unwrap();
        fs::write(path(".disksmith-notes"), "not ours").unwrap();
        fs::create_dir(path(".disksmith-2-0.tmp")).unwrap();
        std::os::unix::fs::symlink(path(".disksmith-notes"), path(".disksmith-3-0.tmp")).unwrap();
        fs::write(path(".disksmith-4-0.tmp"), "in use").unwrap();
        let held = File::open(path(".disksmith-4-0.tmp")).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();

        assert_eq!(
            remove_left_over(folder.path()),
            [path(".disksmith-1-0.tmp")]
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
        assert!(path(".disksmith-notes").exists());
        drop(held);
        assert_eq!(
            remove_left_over(folder.path()),
            [path(".disksmith-4-0.tmp")]
        );
    }

    #[test]
    fn the_size_is_a_tenth_of_what_is_free_up_to_4_gib() {
        assert_eq!(size_for(None, Bytes::gib(100)), Ok(Bytes::gib(4)));
        assert_eq!(size_for(None, Bytes::gib(10)), Ok(Bytes::gib(1)));
        assert!(
            size_for(None, Bytes::gib(2))
                .unwrap_err()
                .contains("2 GiB are free")
        );
        assert_eq!(
            size_for(Some(Bytes::gib(2)), Bytes::gib(3)),
            Ok(Bytes::gib(2))
        );
        assert!(
            size_for(Some(Bytes::gib(4)), Bytes::gib(3))
                .unwrap_err()
                .contains("does not fit")
        );
        assert!(size_for(Some(Bytes(1000)), Bytes::gib(3)).is_err());
    }
}
