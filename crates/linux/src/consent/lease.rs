//! Files that are open for writing, as the kernel shows by way of a lease (fcntl(2), "Leases").
//!
//! `/proc` shows the processes of this container, and to a user only those of that user. The kernel counts every writer
//! of a file: those elsewhere, shared mappings, and its own, such as a target of iSCSI.

// Leases are not among what rustix wraps.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;

use libc::{F_RDLCK, F_SETLEASE, F_UNLCK, SIGURG, c_int};
use rustix::io::Errno;

/// include/uapi/asm-generic/fcntl.h; libc does not have it.
const F_SETSIG: c_int = 10;

/// True if anyone has a file open for writing, or has it mapped shared and writable. `file` must be open for
/// reading only. False too where the kernel does not tell: for what is no regular file or belongs to another
/// user, and on file systems without leases.
pub(super) fn has_writers(file: &File) -> bool {
    // A program that opens the file before the lease is given up waits for that, and this program is sent a
    // signal: SIGIO would end it, SIGURG is ignored.
    let granted = set(file, F_SETSIG, SIGURG).and_then(|()| set(file, F_SETLEASE, F_RDLCK));
    if granted.is_ok() {
        let _ = set(file, F_SETLEASE, F_UNLCK);
    }
    granted == Err(Errno::AGAIN)
}

fn set(file: &File, command: c_int, argument: c_int) -> Result<(), Errno> {
    // SAFETY: these commands take an integer, and neither read nor write memory of this process. The
    // descriptor is open as long as `file` is borrowed.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn a_file_has_writers_while_it_is_open_for_writing() {
        // On a disk, since not every file system in memory has leases.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("file");
        let writer = File::create(&path).unwrap();
        let reader = File::open(&path).unwrap();
        let another = File::open(&path).unwrap();
        assert!(has_writers(&reader));
        drop(writer);
        // A program that another test starts has this one's files for a moment.
        let gone = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            !has_writers(&reader)
        });
        assert!(gone, "readers are no writers");
        // The lease is given up, so that this does not wait.
        let writer = OpenOptions::new().append(true).open(&path).unwrap();
        assert!(has_writers(&another));
        drop(writer);
        assert!(!has_writers(&File::open("/dev/null").unwrap()));
    }
}
