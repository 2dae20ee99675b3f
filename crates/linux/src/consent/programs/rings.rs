//! Files that are registered with an io_uring, which outlive their descriptors.
//!
//! The `fdinfo` of a ring lists them behind `UserFiles:` (io_uring/fdinfo.c of the kernel), but only while the
//! kernel gets the ring's lock at once: not while the ring submits, nor while another reader of `fdinfo` is
//! there. Since 6.12 all that is special to a ring is missing then, before that the lines of its files.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::root::unescape;

/// A lock is held for microseconds at a time; a ring that is busy without a pause is read within these tries.
const ATTEMPTS: u32 = 50;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(2);

/// The paths of the files that are registered with a ring, of which `fdinfo` reads the text (`None`: the ring is
/// gone). Where the kernel does not list them it is an error of kind `PermissionDenied`.
pub(super) fn registered_files(fdinfo: impl Fn() -> Option<String>) -> io::Result<Vec<PathBuf>> {
    let mut listed = None;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(ATTEMPT_INTERVAL);
        }
        let Some(text) = fdinfo() else {
            return Ok(Vec::new());
        };
        let table = Table::parse(&text);
        if table.as_ref().is_some_and(Table::is_listed) {
            listed = table;
            break;
        }
        listed = listed.or(table);
    }
    // A table in which the kernel lists no slot though it has some is empty: kernels since 6.12 leave out the
    // slots that are free.
    let table = listed.ok_or(io::ErrorKind::PermissionDenied)?;
    Ok(table.files)
}

/// The table of a ring's registered files.
struct Table {
    slots: u32,
    /// Lines of slots, with those that are free.
    lines: usize,
    files: Vec<PathBuf>,
}

impl Table {
    fn parse(fdinfo: &str) -> Option<Table> {
        let mut lines = fdinfo.lines();
        let slots = lines.find_map(|line| line.strip_prefix("UserFiles:"))?;
        let lines: Vec<&str> = lines
            .map_while(|line| {
                let (number, path) = line.split_once(": ")?;
                number.trim().parse::<u32>().ok().map(|_| path)
            })
            .collect();
        let paths = lines.iter().filter(|path| path.starts_with('/'));
        Some(Table {
            slots: slots.trim().parse().ok()?,
            lines: lines.len(),
            files: paths
                .map(|path| PathBuf::from(unescape(path.as_bytes())))
                .collect(),
        })
    }

    fn is_listed(&self) -> bool {
        self.slots == 0 || self.lines > 0
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LISTED: &str = "pos:\t0\nflags:\t02000002\nSqMask:\t0x7\n    0: opcode:NOP, fd:0\nUserFiles:\t4\n    \
                          0: /dev/loop3\n    1: <none>\n    2: /data/my\\040file (deleted)\nUserBufs:\t1\n    \
                          0: 0/4096\nPollList:\n";

    /// The files that are found where `fdinfo` reads as these texts, one after the other, and then as the last.
    fn found(texts: &[&str]) -> Result<Vec<PathBuf>, io::ErrorKind> {
        let read = Cell::new(0);
        let files = registered_files(|| {
            let text = texts[read.get().min(texts.len() - 1)];
            read.set(read.get() + 1);
            Some(text.to_owned())
        });
        files.map_err(|error| error.kind())
    }

    #[test]
    fn files_that_are_registered_are_named() {
        let expected = ["/dev/loop3", "/data/my file (deleted)"].map(PathBuf::from);
        assert_eq!(found(&[LISTED]).unwrap(), expected);
    }

    #[test]
    fn a_ring_whose_lock_is_held_is_read_again() {
        let since_6_12 = "pos:\t0\nflags:\t02000002\n";
        let before = "pos:\t0\nSqMask:\t0x7\nUserFiles:\t4\nUserBufs:\t1\n";
        for busy in [since_6_12, before] {
            assert_eq!(found(&[busy, busy, LISTED]).unwrap().len(), 2, "{busy}");
        }
        assert_eq!(found(&[since_6_12]), Err(io::ErrorKind::PermissionDenied));
    }

    #[test]
    fn a_ring_without_files_or_that_is_gone_has_none() {
        assert_eq!(found(&["UserFiles:\t0\nUserBufs:\t0\n"]), Ok(Vec::new()));
        assert_eq!(found(&["UserFiles:\t8\nUserBufs:\t0\n"]), Ok(Vec::new()));
        assert!(registered_files(|| None).unwrap().is_empty());
    }
}
