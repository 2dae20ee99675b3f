//! Threads whose descriptors are not those of their process.

// kcmp(2) is not among what rustix or libc wrap.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::path::Path;

use libc::{SYS_kcmp, c_long, pid_t};

/// include/uapi/linux/kcmp.h.
const KCMP_FILES: c_long = 2;

/// The threads of a process, without its first, that have a table of descriptors that neither the first thread nor
/// one named before has: after unshare(2), or since the first thread has ended and has none.
pub(super) fn with_own_files(process: &Path, pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(process.join("task")) else {
        return Vec::new();
    };
    let threads = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut tables = vec![pid];
    for thread in threads.filter(|thread| *thread != pid) {
        let is_known =
            |known: &u32| share(*known, thread).unwrap_or_else(|| has_files(process, *known));
        if !tables.iter().any(is_known) {
            tables.push(thread);
        }
    }
    tables.split_off(1)
}

/// True if a thread of a process has any descriptors: one that has ended has none.
fn has_files(process: &Path, thread: u32) -> bool {
    let folder = process.join("task").join(thread.to_string()).join("fd");
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// True if two threads share one table of descriptors; `None` where the kernel lacks kcmp(2) (`CONFIG_KCMP`).
fn share(one: u32, other: u32) -> Option<bool> {
    let (one, other) = (pid_t::try_from(one).ok()?, pid_t::try_from(other).ok()?);
    // SAFETY: with KCMP_FILES the call takes two ids and no pointer, and reads or writes no memory of this process.
    let compared = unsafe { libc::syscall(SYS_kcmp, one, other, KCMP_FILES, 0, 0) };
    match compared {
        -1 => {
            let error = io::Error::last_os_error().raw_os_error();
            // A thread that has ended meanwhile has no descriptors of its own.
            (error == Some(libc::ESRCH)).then_some(true)
        }
        order => Some(order == 0),
    }
}
