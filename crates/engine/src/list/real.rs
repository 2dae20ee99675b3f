//! Runs a list on a real file, with io_uring if the kernel permits it, and reports the interface that was used.

use std::fs::File;
use std::thread;

use record::{Bytes, EngineKind, EngineUsed};
use rustix::fs::{AtFlags, OFlags, StatxFlags};

use crate::clock::{Clock, cpu_since, monotonic_nanos, process_cpu_time};
use crate::discard;
use crate::disks::{DiskEngine, drift, note};
use crate::job::{EngineError, IoInterface, MAX_BLOCK_SIZE};
use crate::list::drive::{Limits, drive};
use crate::list::memory::ListBuffers;
use crate::list::pool::{Pool, PoolState};
use crate::list::ring::ListRing;
use crate::list::{EndReason, Errno, List, ListEngine, ListSummary, MAX_IN_FLIGHT, RequestSource};

/// Alignment of direct I/O if the kernel does not report it: a sector.
const SECTOR: u32 = 512;

impl ListEngine for DiskEngine {
    fn run(
        &self,
        list: &List<'_>,
        source: &mut dyn RequestSource,
    ) -> Result<ListSummary, EngineError> {
        run(list, source)
    }
}

/// Runs one list on a real file or device.
///
/// # Errors
/// As [`ListEngine::run`].
pub fn run(list: &List<'_>, source: &mut dyn RequestSource) -> Result<ListSummary, EngineError> {
    check(list)?;
    let alignments = list.files.iter().map(|file| alignment(file));
    let limits = Limits {
        alignments: alignments
            .collect::<Result<_, _>>()
            .map_err(unknown_alignment)?,
        memory: list.memory,
        largest: list.largest.0,
    };
    let clock = Clock::best();
    let began = (clock.now(), monotonic_nanos());
    let used = process_cpu_time();
    let (kind, mut detail, ended) = run_by_interface(list, limits, clock, source)?;
    let passed = (clock.now(), monotonic_nanos());
    note(&mut detail, drift(clock, began, passed));
    let kind = EngineUsed {
        kind,
        clock: clock.kind(),
        detail,
    };
    let cpu = cpu_since(process_cpu_time(), used);
    Ok(ListSummary { kind, ended, cpu })
}

/// Checks the limits of a list, independently of its requests.
///
/// # Errors
/// An error with the invalid value and the permitted ones.
pub(super) fn check_figures(list: &List<'_>) -> Result<(), EngineError> {
    let unfit = |text: String| Err(EngineError::Unfit(text));
    if !(1..=MAX_IN_FLIGHT).contains(&list.max_in_flight) {
        return unfit(format!(
            "a list may have from 1 to {MAX_IN_FLIGHT} requests in flight, not {}",
            list.max_in_flight
        ));
    }
    if list.largest == Bytes(0) || list.largest > MAX_BLOCK_SIZE {
        return unfit(format!(
            "requests of {} cannot be made; the largest is {MAX_BLOCK_SIZE}",
            list.largest
        ));
    }
    Ok(())
}

fn check(list: &List<'_>) -> Result<(), EngineError> {
    check_figures(list)?;
    for file in list.files {
        let flags = rustix::fs::fcntl_getfl(file).map_err(unknown_alignment)?;
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

/// The error for a target of unknown alignment.
fn unknown_alignment(errno: Errno) -> EngineError {
    EngineError::Unfit(format!("the alignment of the target is unknown: {errno}"))
}

/// Alignment of offsets and lengths: the logical block size of a device (ioctl BLKSSZGET); for a file the value that
/// the kernel reports (statx(2), STATX_DIOALIGN, Linux 6.1), or a sector if it reports none.
fn alignment(file: &File) -> Result<u32, Errno> {
    if discard::is_device(file) {
        return rustix::fs::ioctl_blksszget(file);
    }
    let reported = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
        .map_or(0, |status| status.stx_dio_offset_align);
    Ok(if reported == 0 { SECTOR } else { reported })
}

/// Buffers for a list's requests.
fn buffers(list: &List<'_>) -> Result<ListBuffers, EngineError> {
    let largest = list.largest.0 as usize;
    ListBuffers::new(list.memory, largest, list.max_in_flight).map_err(EngineError::Setup)
}

/// Runs a list with the requested interface, or with threads if io_uring is not available.
fn run_by_interface(
    list: &List<'_>,
    limits: Limits,
    clock: Clock,
    source: &mut dyn RequestSource,
) -> Result<(EngineKind, String, EndReason), EngineError> {
    if list.interface == IoInterface::Sync {
        return by_threads(list, limits, clock, source, String::new());
    }
    if source.may_discard()
        && list.files.iter().any(|file| discard::is_device(file))
        && !discard::ring_takes_devices()
    {
        let detail = "io_uring takes no discards of a device here (since Linux 6.12 it does)";
        if list.interface == IoInterface::Uring {
            let way_out = format!("{detail}; leave out --engine uring, or --discards");
            return Err(EngineError::Unfit(way_out));
        }
        return by_threads(list, limits, clock, source, detail.to_owned());
    }
    match ListRing::new(list, buffers(list)?, clock) {
        Ok(mut ring) => {
            let ended = drive(list, limits, &mut ring, source)?;
            let missing = ring.granted().missing().unwrap_or_default();
            Ok((EngineKind::Uring, missing, ended))
        }
        Err(error) if list.interface == IoInterface::Uring => Err(EngineError::NoUring(error)),
        Err(error) => {
            let detail = format!("io_uring is refused here: {error}");
            by_threads(list, limits, clock, source, detail)
        }
    }
}

fn by_threads(
    list: &List<'_>,
    limits: Limits,
    clock: Clock,
    source: &mut dyn RequestSource,
    mut detail: String,
) -> Result<(EngineKind, String, EndReason), EngineError> {
    // Outside of the scope, so that they outlive all threads.
    let (shared, buffers) = (PoolState::new(list, clock), buffers(list)?);
    let ended = thread::scope(|scope| {
        let mut pool = Pool::new(scope, &shared, &buffers).map_err(EngineError::Setup)?;
        let ended = drive(list, limits, &mut pool, source)?;
        note(&mut detail, pool.depth_note());
        Ok(ended)
    })?;
    Ok((EngineKind::Sync, detail, ended))
}
