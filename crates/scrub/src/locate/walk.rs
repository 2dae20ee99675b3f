//! Walk over all regular files of a mounted file system, one after the other, without a change of their access times.
//! The memory it needs is proportional to the depth of the deepest path.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use linux::block::DeviceNumber;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

/// Result of walking over a file system's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalkResult {
    /// Number of files that were passed to the callback.
    pub files: u64,
    /// Number of files and folders that could not be opened or listed.
    pub unseen: u64,
    /// True if the walk was completed.
    pub complete: bool,
}

/// Calls `each` with every regular file below a folder that is on the device, until `each` breaks or `interrupt` is
/// set. Symbolic links are not followed, and other file systems are not entered.
///
/// # Errors
/// When the folder itself cannot be opened.
pub(crate) fn walk(
    folder: &Path,
    device: DeviceNumber,
    interrupt: &AtomicBool,
    each: &mut dyn FnMut(&Path, &File) -> ControlFlow<()>,
) -> io::Result<WalkResult> {
    let mut walked = WalkResult::default();
    let top = open(CWD, folder.as_os_str(), OFlags::DIRECTORY)?;
    let mut stack = vec![(Dir::new(top)?, folder.to_path_buf())];
    while let Some((open_folder, path)) = stack.last_mut() {
        if interrupt.load(Ordering::Relaxed) {
            return Ok(walked);
        }
        let entry = match open_folder.read() {
            None => {
                stack.pop();
                continue;
            }
            Some(Ok(entry)) => entry,
            Some(Err(_)) => {
                walked.unseen += 1;
                stack.pop();
                continue;
            }
        };
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let kind = entry.file_type();
        let is_other = !matches!(
            kind,
            FileType::Directory | FileType::RegularFile | FileType::Unknown
        );
        if is_other || name == "." || name == ".." {
            continue;
        }
        let parent = open_folder.fd()?;
        match enter(parent, name, device) {
            Ok(Some(Entry::File(file))) => {
                walked.files += 1;
                if each(&path.join(name), &file).is_break() {
                    return Ok(walked);
                }
            }
            Ok(Some(Entry::Folder(folder))) => {
                let path: PathBuf = path.join(name);
                stack.push((folder, path));
            }
            Ok(None) => {}
            // It was removed meanwhile.
            Err(Errno::NOENT) => {}
            Err(_) => walked.unseen += 1,
        }
    }
    walked.complete = true;
    Ok(walked)
}

enum Entry {
    File(File),
    Folder(Dir),
}

/// Opens an entry of a folder; `None` if it is neither a file nor a folder, or is on another device.
fn enter(folder: BorrowedFd, name: &OsStr, device: DeviceNumber) -> Result<Option<Entry>, Errno> {
    let opened = match open(folder, name, OFlags::empty()) {
        // A symbolic link, or a socket or device whose type was not in the folder's entry.
        Err(Errno::LOOP | Errno::NXIO) => return Ok(None),
        opened => opened?,
    };
    let found = fstat(&opened)?;
    if DeviceNumber::from_raw(found.st_dev) != device {
        return Ok(None);
    }
    Ok(match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => Some(Entry::Folder(Dir::new(opened)?)),
        FileType::RegularFile => Some(Entry::File(File::from(opened))),
        _ => None,
    })
}

/// Opens for reading without a change of the access time, which only the owner and root may do (open(2), `O_NOATIME`);
/// other users open it without that flag.
fn open(folder: BorrowedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let all = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | flags;
    let with = |extra| openat(folder, name.as_bytes(), all | extra, Mode::empty());
    match with(OFlags::NOATIME) {
        Err(Errno::PERM) => with(OFlags::empty()),
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::os::unix::net::UnixListener;

    static NOT_INTERRUPTED: AtomicBool = AtomicBool::new(false);

    fn device(path: &Path) -> DeviceNumber {
        DeviceNumber::from_raw(fs::metadata(path).unwrap().dev())
    }

    #[test]
    fn every_file_is_given_once_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path();
        for name in ["a", "b/c/d/e", "b/f"] {
            fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
            fs::write(top.join(name), "x").unwrap();
        }
        symlink("/etc/passwd", top.join("b/link")).unwrap();
        symlink(top, top.join("b/loop")).unwrap();
        let _socket = UnixListener::bind(top.join("socket")).unwrap();
        let mut found = Vec::new();
        let walked = walk(top, device(top), &NOT_INTERRUPTED, &mut |path, _| {
            found.push(path.strip_prefix(top).unwrap().display().to_string());
            ControlFlow::Continue(())
        })
        .unwrap();
        found.sort();
        assert_eq!(found, ["a", "b/c/d/e", "b/f"]);
        let wanted = WalkResult {
            files: 3,
            unseen: 0,
            complete: true,
        };
        assert_eq!(walked, wanted);
    }

    #[test]
    fn other_devices_are_not_entered_and_an_interruption_ends_it() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("a"), "x").unwrap();
        let mut go_on = |_: &Path, _: &File| ControlFlow::Continue(());
        let other = DeviceNumber::new(4095, 7);
        let walked = walk(place.path(), other, &NOT_INTERRUPTED, &mut go_on).unwrap();
        assert_eq!((walked.files, walked.complete), (0, true));
        let stop = AtomicBool::new(true);
        let walked = walk(place.path(), device(place.path()), &stop, &mut go_on).unwrap();
        assert_eq!((walked.files, walked.complete), (0, false));
        assert!(walk(Path::new("/no/such"), other, &NOT_INTERRUPTED, &mut go_on).is_err());
    }
}
