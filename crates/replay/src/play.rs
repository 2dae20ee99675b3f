//! Runs a replay.

use std::fs::File;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::thread;

use engine::list::{BufferMode, EndReason, List, ListEngine, ListSummary, MAX_IN_FLIGHT};
use engine::{EngineError, IoInterface, Observer};
use record::{
    Bytes, Direction, HostConditions, JobOptions, Nanos, Pace, Pattern, Phase, Replay,
    ReplayCounts, ReplaySettings, ReplayedDevice, StopReason, Workload,
};
use trace::ReadError;

use crate::map::Placer;
use crate::schedule::Schedule;
use crate::second_pass::{self, MAX_BATCHES, SortSettings};
use crate::source::Opener;
use crate::survey::Survey;
use crate::tally::Tally;

/// Maximum bytes of a read or a write; a longer one is shortened.
const MAX_IO_BYTES: u64 = 16 << 20;
/// Minimum width of a window, in nanoseconds.
const WINDOW: u64 = 1_000_000_000;
/// Number of windows in a replay that takes as long as its trace.
const WINDOWS: f64 = 600.0;

/// Disk on which a device of the trace is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Disk<'a> {
    /// The open target, with O_DIRECT.
    pub file: &'a File,
    /// Path of the disk.
    pub path: &'a str,
    /// Size of the disk.
    pub size: Bytes,
    /// Alignment of direct I/O on it.
    pub alignment: Bytes,
}

/// Result of a replay.
#[derive(Debug)]
pub struct Played {
    /// The replay as a phase of a run.
    pub phase: Phase,
    /// Measurements of the replay that a phase does not have.
    pub replay: Replay,
    /// Error that ended the second reading of the trace.
    pub failed: Option<ReadError>,
}

/// Reason why a trace is not replayed.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The I/O cannot be issued.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Replays a trace on `disks`, one for each device of the survey, in its order.
///
/// # Errors
/// When the trace cannot be opened, or the engine refuses or fails. A request that fails is no error here.
#[allow(clippy::too_many_arguments, reason = "a replay has so many parts")]
pub fn play(
    lister: &dyn ListEngine,
    open: &Opener<'_>,
    survey: &Survey,
    disks: &[Disk<'_>],
    settings: ReplaySettings,
    interface: IoInterface,
    seed: u64,
    interrupt: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Played, PlayError> {
    let reader = open()?;
    let alignment = disks
        .iter()
        .map(|disk| disk.alignment.0)
        .max()
        .unwrap_or(512);
    let longest = survey
        .longest
        .clamp(4096, MAX_IO_BYTES)
        .next_multiple_of(alignment)
        + alignment;
    let sorting = &sorting(survey, disks, settings, longest);
    let files: Vec<&File> = disks.iter().map(|disk| disk.file).collect();
    let list = List {
        files: &files,
        memory: BufferMode::Mixed {
            seed,
            compressible: settings.compressible,
        },
        max_in_flight: settings.depth.clamp(1, MAX_IN_FLIGHT),
        largest: Bytes(longest),
        interface,
        interrupt,
    };
    let expected_s = survey.trace.seconds / settings.speed;
    let width = ((expected_s / WINDOWS * 1e9) as u64).max(WINDOW);
    let ios = match settings.reads_only {
        true => survey.reads,
        false => survey.trace.ios,
    };
    let tally = Tally::new(ios, settings.speed, width, observer);
    let (to, from) = sync_channel(MAX_BATCHES);
    let discards = settings.discards && survey.discards > 0;
    let mut schedule = Schedule::new(
        from,
        ReplaySettings {
            discards,
            ..settings
        },
        tally,
    );
    let over = &AtomicBool::new(false);
    let (end, fed) = thread::scope(|scope| {
        let feeder = thread::Builder::new()
            .name("trace".to_owned())
            .spawn_scoped(scope, move || second_pass::run(reader, sorting, &to, over))
            .map_err(EngineError::Setup)?;
        let end = lister.run(&list, &mut schedule);
        over.store(true, Relaxed);
        // This drops the receiver, so that the reading thread does not wait for space.
        let counted = schedule.end();
        let fed = feeder.join().unwrap_or_else(|panic| resume_unwind(panic));
        Ok::<_, EngineError>((end.map(|end| (end, counted)), fed))
    })?;
    let (end, (mut tally, starved)) = end?;
    let counts = ReplayCounts {
        issued: tally.issued,
        full: tally.full,
        blocked: tally.blocked,
        starved,
        ..fed.counts
    };
    let phase = phase(end, survey, settings, &mut tally);
    let (slice_seconds, load) = tally.curve.finish();
    let replay = Replay {
        trace: survey.trace.clone(),
        devices: devices(survey, disks),
        settings,
        classes: tally.classes(),
        lateness: tally.lateness.clone(),
        counts,
        slice_seconds,
        load,
        lone_recorded: tally.lone_recorded.clone(),
        lone_replayed: tally.lone_replayed.clone(),
    };
    Ok(Played {
        phase,
        replay,
        failed: fed.failed,
    })
}

/// The replay as a phase.
fn phase(
    end: ListSummary,
    survey: &Survey,
    settings: ReplaySettings,
    tally: &mut Tally<'_>,
) -> Phase {
    Phase {
        name: "replay".to_owned(),
        seconds: tally.finish(),
        workload: workload(survey, settings, tally),
        engine: end.kind,
        began_s: 0.0,
        drain_seconds: 0.0,
        stopped: match end.ended {
            EndReason::Complete => StopReason::Ops,
            EndReason::Interrupted => StopReason::Signal,
        },
        read: tally.total(Direction::Read),
        write: tally.total(Direction::Write),
        sync: tally.total(Direction::Sync),
        commit: tally.total(Direction::Commit),
        trim: None,
        thread_ops: vec![tally.issued],
        thread_seconds: Vec::new(),
        cpu: end.cpu,
        windows: std::mem::take(&mut tally.windows),
        surroundings: HostConditions::default(),
        outcome: record::JobFileResults::default(),
    }
}

/// Settings of the reading thread.
fn sorting(
    survey: &Survey,
    disks: &[Disk<'_>],
    settings: ReplaySettings,
    longest: u64,
) -> SortSettings {
    let most = survey
        .devices
        .iter()
        .map(|device| usize::from(device.index.0))
        .max();
    let mut devices = vec![None; most.map_or(0, |most| most + 1)];
    for (file, (device, disk)) in survey.devices.iter().zip(disks).enumerate() {
        let placer = Placer::new(
            settings.map,
            device.touched.as_ref(),
            disk.size.0,
            disk.alignment.0,
            longest - longest % disk.alignment.0.max(1),
        );
        devices[usize::from(device.index.0)] = Some((file as u16, placer));
    }
    SortSettings {
        devices,
        reads_only: settings.reads_only,
        discards: settings.discards,
        infers: settings.pace == Pace::Dependencies,
        first: survey.first,
    }
}

fn devices(survey: &Survey, disks: &[Disk<'_>]) -> Vec<ReplayedDevice> {
    let pairs = survey.devices.iter().zip(disks);
    pairs
        .map(|(device, disk)| ReplayedDevice {
            name: device.name.clone(),
            target: disk.path.to_owned(),
            size: disk.size,
            reach: device.reach,
            footprint: device.footprint(),
        })
        .collect()
}

/// The trace as a workload, in mean values.
fn workload(survey: &Survey, settings: ReplaySettings, tally: &Tally<'_>) -> Workload {
    let ops = |direction| tally.total(direction).map_or(0, |flow| flow.ops);
    let (reads, writes) = (ops(Direction::Read), ops(Direction::Write));
    let rate = survey.trace.ios as f64 / survey.trace.seconds.max(1e-3) * settings.speed;
    let all = Nanos((survey.trace.seconds / settings.speed * 1e9) as u64);
    Workload {
        pattern: Pattern::Random,
        read_fraction: reads as f64 / ((reads + writes) as f64).max(1.0),
        block: tally.mean_size(),
        threads: 1,
        depth: settings.depth,
        rate_per_s: (settings.pace == Pace::Recorded).then_some(rate),
        span: None,
        sync_every: 0,
        sync_at_end: false,
        longest: all,
        shortest: Nanos(0),
        precision: 0.0,
        ops: None,
        details: Some(Box::new(JobOptions {
            mixed: true,
            ..JobOptions::default()
        })),
    }
}
