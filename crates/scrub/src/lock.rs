//! Locks between processes: on files in a folder that only root may access (flock(2)). A lock is released when its
//! process ends, however it ends. The empty files remain until the next boot: if a file were removed while another
//! process waits for its lock, both could hold one.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::block::{Device, DeviceNumber};

/// Folder of the files. A boot empties it, as it does the tunables.
pub(super) const LOCK_FOLDER: &str = "/run/disksmith";
/// Refusal of an array that another process scrubs.
pub(super) const SCRUBBED_ALREADY: &str = "another disksmith is scrubbing it already; wait for it, or end it; its progress: disksmith scrub --status";
/// Maximum wait for a lock, which another process may hold in shared mode for a moment to see whether it is taken.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Interval between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Takes the lock of a name.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when another process holds it; any other kind when the file cannot be opened or
/// locked.
pub(super) fn hold(folder: &Path, name: &str) -> io::Result<File> {
    let file = open(folder, name)?;
    let until = Instant::now() + TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Err(TryLockError::WouldBlock) => sleep(RETRY_INTERVAL),
        }
    }
}

/// True if another process holds the lock of a name. A file that cannot be opened counts as free.
fn is_held(folder: &Path, name: &str) -> bool {
    let Ok(file) = File::open(folder.join(name)) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// The file of a name, which is created if it does not exist.
fn open(folder: &Path, name: &str) -> io::Result<File> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join(name))
}

/// Takes the locks of a device and its disks, so that no other process scrubs it, or a device that shares one of its
/// disks.
///
/// # Errors
/// A sentence, when another process does.
pub(super) fn take(device: DeviceNumber, disks: &[DeviceNumber]) -> Result<Vec<File>, String> {
    std::iter::once(name(device))
        .chain(disks.iter().map(|disk| format!("scrub-disk-{disk}")))
        .map(|name| {
            hold(Path::new(LOCK_FOLDER), &name).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock if name.contains("-disk-") => {
                    "another disksmith is scrubbing its disk, or an array that shares a disk with it; \
                     wait for it, or end it; its progress: disksmith scrub --status"
                        .to_owned()
                }
                io::ErrorKind::WouldBlock => SCRUBBED_ALREADY.to_owned(),
                _ => format!(
                    "the lock {LOCK_FOLDER}/{name}, which keeps others from scrubbing it, cannot be taken: \
                     {error}"
                ),
            })
        })
        .collect()
}

/// True if another process scrubs an array.
pub(super) fn is_taken(target: &Device) -> bool {
    is_held(Path::new(LOCK_FOLDER), &name(target.number))
}

fn name(array: DeviceNumber) -> String {
    format!("scrub-{array}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::thread;

    #[test]
    fn a_name_is_had_once_and_is_free_when_its_holder_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("disksmith");
        assert!(!is_held(&folder, "a"), "there is no folder");
        let held = hold(&folder, "a").unwrap();
        assert!(is_held(&folder, "a") && !is_held(&folder, "b"));
        let again = hold(&folder, "a").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::WouldBlock);
        drop(held);
        assert!(!is_held(&folder, "a"));
        hold(&folder, "a").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("a"))), (0o700, 0o600));
    }

    #[test]
    fn a_reader_keeps_nobody_from_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        thread::scope(|scope| {
            let checks = scope.spawn(|| (0..20_000).filter(|_| is_held(folder, "a")).count());
            while !checks.is_finished() {
                drop(hold(folder, "a").unwrap());
                sleep(Duration::from_micros(100));
            }
        });
    }
}
