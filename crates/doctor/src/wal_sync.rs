//! Measurement of the methods of `wal_sync_method` on the device of the WAL, in turns, on an unnamed file that
//! disappears when it is closed, also by a kill. pg_test_fsync makes the same measurement.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Instant;

use rustix::fs::OFlags;
use study::median::median;

/// Size of the file in bytes. Writes wrap around in it, as in a recycled WAL segment.
const FILE: u64 = 16 << 20;
/// Size of a page of the WAL, in bytes.
const PAGE: usize = 8192;
/// Number of writes of each method in a turn.
const WRITES: u64 = 40;
/// Number of turns.
const TURNS: usize = 5;

/// Result of the measurement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WalSync {
    /// Median duration of a WAL write with each method, in seconds; the fastest first.
    pub(crate) medians: Vec<(Method, f64)>,
    /// True if the fastest method was faster than the current one in every turn.
    pub(crate) is_clear: bool,
}

/// A sync method that Linux supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Fdatasync,
    Fsync,
    OpenDatasync,
    OpenSync,
}

impl Method {
    const ALL: [Method; 4] = [
        Method::Fdatasync,
        Method::OpenDatasync,
        Method::Fsync,
        Method::OpenSync,
    ];

    /// The value of `wal_sync_method`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::Fdatasync => "fdatasync",
            Method::Fsync => "fsync",
            Method::OpenDatasync => "open_datasync",
            Method::OpenSync => "open_sync",
        }
    }

    fn flags(self) -> OFlags {
        match self {
            Method::Fdatasync | Method::Fsync => OFlags::empty(),
            Method::OpenDatasync => OFlags::DSYNC,
            Method::OpenSync => OFlags::SYNC,
        }
    }

    /// Makes the last write durable.
    fn sync(self, file: &File) -> io::Result<()> {
        match self {
            Method::Fdatasync => file.sync_data(),
            Method::Fsync => file.sync_all(),
            Method::OpenDatasync | Method::OpenSync => Ok(()),
        }
    }
}

/// Measures the methods in a folder. `now` is the name of the current method.
///
/// # Errors
/// When a file cannot be created and written there.
pub(crate) fn measure(folder: &Path, now: &str) -> io::Result<WalSync> {
    let file = tempfile::tempfile_in(folder)?;
    let zeros = vec![0_u8; 1 << 20];
    for at in (0..FILE).step_by(zeros.len()) {
        file.write_all_at(&zeros, at)?;
    }
    file.sync_all()?;
    let mut turns: Vec<[f64; 4]> = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let mut medians = [0.0; 4];
        for (median, method) in medians.iter_mut().zip(Method::ALL) {
            *median = one_turn(&file, method)?;
        }
        turns.push(medians);
    }
    Ok(conclude(&turns, now))
}

/// Median duration of a write with a method, in seconds.
fn one_turn(file: &File, method: Method) -> io::Result<f64> {
    let opened = OpenOptions::new()
        .write(true)
        .custom_flags(method.flags().bits() as i32)
        .open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let page = [0x5A_u8; PAGE];
    let mut times = Vec::with_capacity(WRITES as usize);
    for number in 0..WRITES {
        let began = Instant::now();
        opened.write_all_at(&page, number * PAGE as u64 % FILE)?;
        method.sync(&opened)?;
        times.push(began.elapsed().as_secs_f64());
    }
    Ok(median(times).unwrap_or(0.0))
}

fn conclude(turns: &[[f64; 4]], now: &str) -> WalSync {
    let mut medians: Vec<(usize, Method, f64)> = Method::ALL
        .into_iter()
        .enumerate()
        .map(|(at, method)| {
            let times = turns.iter().map(|turn| turn[at]).collect();
            (at, method, median(times).unwrap_or(0.0))
        })
        .collect();
    medians.sort_by(|a, b| a.2.total_cmp(&b.2));
    let set = Method::ALL.iter().position(|method| method.name() == now);
    let fastest = medians.first().map(|(at, _, _)| *at);
    let is_clear = match (set, fastest) {
        (Some(set), Some(fastest)) => turns.iter().all(|turn| turn[fastest] < turn[set]),
        _ => false,
    };
    WalSync {
        medians: medians
            .into_iter()
            .map(|(_, method, time)| (method, time))
            .collect(),
        is_clear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_is_clear_only_when_it_won_every_turn() {
        let fast = [2.0, 1.0, 3.0, 4.0];
        let found = conclude(&[fast; 5], "fdatasync");
        assert_eq!(found.medians[0], (Method::OpenDatasync, 1.0));
        assert!(found.is_clear);
        let mut mixed = [fast; 5];
        mixed[3] = [1.0, 2.0, 3.0, 4.0];
        assert!(!conclude(&mixed, "fdatasync").is_clear);
        assert!(!conclude(&[fast; 5], "open_datasync").is_clear);
    }

    #[test]
    fn measuring_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let found = measure(folder.path(), "fdatasync").unwrap();
        assert_eq!(found.medians.len(), 4);
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }
}
