//! Runs a list on a real file: checks what is requested, finds out which way to the kernel is open,
//! and says afterwards which it was.

use std::fs::File;
use std::thread;

use record::{Bytes, EngineKind, EngineUsed};
use rustix::fs::{AtFlags, OFlags, StatxFlags};

use crate::clock::{Clock, cpu_since, monotonic_nanos, process_cpu_time};
use crate::discard;
use crate::disks::{Disks, drift, note};
use crate::job::{Choice, EngineError, LARGEST_BLOCK};
use crate::list::drive::{Limits, drive};
use crate::list::memory::Sources;
use crate::list::pool::{Pool, Shared};
use crate::list::ring::Ringed;
use crate::list::{Ended, Errno, List, ListEnd, Lister, MOST_IN_FLIGHT, RequestSource};

/// Alignment of direct I/O before kernels told theirs: a sector.
const SECTOR: u32 = 512;

impl Lister for Disks {
    fn run(&self, list: &List<'_>, feed: &mut dyn RequestSource) -> Result<ListEnd, EngineError> {
        run(list, feed)
    }
}

/// Runs one list on a real file or device.
///
/// # Errors
/// As [`Lister::run`].
pub fn run(list: &List<'_>, feed: &mut dyn RequestSource) -> Result<ListEnd, EngineError> {
    check(list)?;
    let alignments = list.files.iter().map(|file| alignment(file));
    let limits = Limits {
        alignments: alignments.collect::<Result<_, _>>().map_err(unasked)?,
        memory: list.memory,
        largest: list.largest.0,
    };
    let clock = Clock::best();
    let began = (clock.now(), monotonic_nanos());
    let used = process_cpu_time();
    let (kind, mut detail, ended) = go(list, limits, clock, feed)?;
    let passed = (clock.now(), monotonic_nanos());
    note(&mut detail, drift(clock, began, passed));
    let kind = EngineUsed {
        kind,
        clock: clock.kind(),
        detail,
    };
    let cpu = cpu_since(process_cpu_time(), used);
    Ok(ListEnd { kind, ended, cpu })
}

/// Checks what does not depend on the requests.
///
/// # Errors
/// Names the invalid figure and the allowed values.
pub(super) fn check_figures(list: &List<'_>) -> Result<(), EngineError> {
    let unfit = |text: String| Err(EngineError::Unfit(text));
    if !(1..=MOST_IN_FLIGHT).contains(&list.most_in_flight) {
        return unfit(format!(
            "a list may have from 1 to {MOST_IN_FLIGHT} requests in flight, not {}",
            list.most_in_flight
        ));
    }
    if list.largest == Bytes(0) || list.largest > LARGEST_BLOCK {
        return unfit(format!(
            "requests of {} cannot be made; the largest is {LARGEST_BLOCK}",
            list.largest
        ));
    }
    Ok(())
}

fn check(list: &List<'_>) -> Result<(), EngineError> {
    check_figures(list)?;
    for file in list.files {
        let flags = rustix::fs::fcntl_getfl(file).map_err(unasked)?;
        if flags.contains(OFlags::DIRECT) {
            continue;
        }
        return Err(EngineError::Unfit(
            "the target is open without O_DIRECT, and the page cache would answer in its place; \
             open it with O_DIRECT"
                .to_owned(),
        ));
    }
    Ok(())
}

/// The error for a target that does not say what it is.
fn unasked(errno: Errno) -> EngineError {
    EngineError::Unfit(format!("the alignment of the target is unknown: {errno}"))
}

/// Alignment of offsets and lengths: the logical block size of a device (ioctl BLKSSZGET); for a file the
/// kernel's answer (statx(2), STATX_DIOALIGN, Linux 6.1), or a sector where it gives none.
fn alignment(file: &File) -> Result<u32, Errno> {
    if discard::is_device(file) {
        return rustix::fs::ioctl_blksszget(file);
    }
    let told = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
        .map_or(0, |status| status.stx_dio_offset_align);
    Ok(if told == 0 { SECTOR } else { told })
}

/// Memory for a list's requests.
fn buffers(list: &List<'_>) -> Result<Sources, EngineError> {
    let largest = list.largest.0 as usize;
    Sources::new(list.memory, largest, list.most_in_flight).map_err(EngineError::Setup)
}

fn go(
    list: &List<'_>,
    limits: Limits,
    clock: Clock,
    feed: &mut dyn RequestSource,
) -> Result<(EngineKind, String, Ended), EngineError> {
    if list.choice == Choice::Sync {
        return by_threads(list, limits, clock, feed, String::new());
    }
    if feed.may_discard()
        && list.files.iter().any(|file| discard::is_device(file))
        && !discard::ring_takes_devices()
    {
        let detail = "io_uring takes no discards of a device here (since Linux 6.12 it does)";
        return by_threads(list, limits, clock, feed, detail.to_owned());
    }
    match Ringed::new(list, buffers(list)?, clock) {
        Ok(mut ring) => {
            let ended = drive(list, limits, &mut ring, feed)?;
            let missing = ring.granted().missing().unwrap_or_default();
            Ok((EngineKind::Uring, missing, ended))
        }
        Err(error) if list.choice == Choice::Uring => Err(EngineError::NoUring(error)),
        Err(error) => {
            let detail = format!("io_uring is refused here: {error}");
            by_threads(list, limits, clock, feed, detail)
        }
    }
}

fn by_threads(
    list: &List<'_>,
    limits: Limits,
    clock: Clock,
    feed: &mut dyn RequestSource,
    mut detail: String,
) -> Result<(EngineKind, String, Ended), EngineError> {
    // Outside the scope, so that they are there until all threads have ended.
    let (shared, buffers) = (Shared::new(list, clock), buffers(list)?);
    let ended = thread::scope(|scope| {
        let mut pool = Pool::new(scope, &shared, &buffers).map_err(EngineError::Setup)?;
        let ended = drive(list, limits, &mut pool, feed)?;
        note(&mut detail, pool.remark());
        Ok(ended)
    })?;
    Ok((EngineKind::Sync, detail, ended))
}
