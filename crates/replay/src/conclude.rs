//! Figures of a replay and their worth: derived from what was measured, and again from an old run by a better
//! rule.

use crate::class;
use crate::tally::LATE;
use record::{
    Code, Direction, Finding, Histogram, LoadSlice, OffsetMap, Pace, Replay, ReplayClass,
    ReplayCounts, Severity,
};
use serde::Serialize;
use study::replay::cap::{self, Load};
use study::replay::{percentile, warmth};
use ui::format::{latency, number, percent};

/// Name of the phase that a replay is.
const PHASE: &str = "replay";
/// Share of I/Os issued late from which figures may mislead.
const SOME_LATE: f64 = 0.01;
/// Share from which the schedule was not kept.
const MOSTLY_LATE: f64 = 0.25;
/// Share of lost events from which a trace is doubtful, and invalid.
const LOST: (f64, f64) = (0.001, 0.05);
/// The same of I/Os beyond the target's end.
const CLIPPED: (f64, f64) = (0.001, 0.1);

/// Answer of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayAnswer {
    /// Path of the trace.
    pub trace: String,
    /// Its format.
    pub format: String,
    /// True if it holds completion times, without which there are no recorded latencies.
    pub has_completions: bool,
    /// I/Os in it.
    pub trace_ios: u64,
    /// Seconds from its first I/O to its last.
    pub trace_seconds: f64,
    /// Rule of times.
    pub pace: Pace,
    /// Factor by which recorded times were shortened.
    pub speed: f64,
    /// Most I/Os in flight.
    pub depth: u32,
    /// Rule of offsets.
    pub map: OffsetMap,
    /// Devices of the trace and their targets.
    pub devices: Vec<DeviceAnswer>,
    /// All reads, all writes, and what commits wait for: flushes and writes with FUA.
    pub totals: Vec<ClassAnswer>,
    /// Kinds of I/Os.
    pub classes: Vec<ClassAnswer>,
    /// Time from when an I/O was due until it was issued.
    pub lateness: Latencies,
    /// I/Os that were issued more than 1 ms late.
    pub late: u64,
    /// Counts of what differs from the trace.
    pub counts: Counts,
    /// Load over time.
    pub in_flight: InFlight,
}

/// A device of the trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceAnswer {
    /// Its name.
    pub name: String,
    /// Path of its target.
    pub target: String,
    /// Size of the target.
    pub target_bytes: u64,
    /// End of the last byte that the trace touches.
    pub reach_bytes: u64,
    /// Bytes of the touched parts; null where the map does not ask.
    pub footprint_bytes: Option<u64>,
}

/// Kind of I/Os.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassAnswer {
    /// Its name.
    pub name: String,
    /// `read`, `write` or `sync`.
    pub direction: &'static str,
    /// I/Os that were replayed.
    pub ios: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// I/Os that failed.
    pub failed: u64,
    /// I/Os that failed when they were recorded.
    pub failed_recorded: u64,
    /// Recorded latencies; null where the trace holds none.
    pub recorded: Option<Latencies>,
    /// Latencies from when an I/O was due.
    pub replayed: Latencies,
    /// The 99th percentile from when an I/O was issued.
    pub service_p99_ns: u64,
}

/// Percentiles of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latencies {
    /// The median.
    pub p50: Figure,
    /// The 99th percentile.
    pub p99: Figure,
    /// The 99.9th percentile.
    pub p999: Figure,
    /// The longest.
    pub max_ns: u64,
}

/// A percentile with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The percentile.
    pub ns: u64,
    /// The lower bound; null where too little is known.
    pub low_ns: Option<u64>,
    /// The upper bound.
    pub high_ns: Option<u64>,
}

/// Counts of what differs from the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "record::ReplayCounts says what they are")]
pub struct Counts {
    pub ios: u64,
    pub issued: u64,
    pub clipped: u64,
    pub shortened: u64,
    pub remapped: u64,
    pub widened: u64,
    pub left_out: u64,
    pub discards_left_out: u64,
    pub full: u64,
    pub starved: u64,
    pub failed: u64,
}

/// I/Os in flight over time, each the mean over a slice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InFlight {
    /// Length of a slice.
    pub slice_seconds: f64,
    /// When they were recorded, on the replay's time.
    pub recorded: Vec<f64>,
    /// When they were replayed, those that were due and waited included.
    pub replayed: Vec<f64>,
}

impl ReplayAnswer {
    /// Answer of a replay.
    pub fn of(replay: &Replay) -> ReplayAnswer {
        let trace = &replay.trace;
        let has_recorded = replay.settings.pace != Pace::Asap && trace.has_completions;
        let curve = |of: fn(&LoadSlice) -> f64| replay.load.iter().map(of).collect();
        ReplayAnswer {
            trace: trace.path.clone(),
            format: trace.format.clone(),
            has_completions: trace.has_completions,
            trace_ios: trace.ios,
            trace_seconds: trace.seconds,
            pace: replay.settings.pace,
            speed: replay.settings.speed,
            depth: replay.settings.depth,
            map: replay.settings.map,
            devices: replay
                .devices
                .iter()
                .map(|device| DeviceAnswer {
                    name: device.name.clone(),
                    target: device.target.clone(),
                    target_bytes: device.size.0,
                    reach_bytes: device.reach.0,
                    footprint_bytes: device.footprint.map(|bytes| bytes.0),
                })
                .collect(),
            totals: totals(&replay.classes),
            classes: replay.classes.iter().map(ClassAnswer::of).collect(),
            lateness: Latencies::of(std::slice::from_ref(&replay.lateness)),
            late: late(replay),
            counts: Counts::of(replay),
            in_flight: InFlight {
                slice_seconds: replay.slice_seconds,
                recorded: match has_recorded {
                    true => curve(|slice| slice.recorded_in_flight),
                    false => Vec::new(),
                },
                replayed: curve(|slice| slice.replayed_in_flight),
            },
        }
    }
}

/// Sums of classes: reads, writes, commits, where there are any.
fn totals(classes: &[ReplayClass]) -> Vec<ClassAnswer> {
    type Belongs = fn(&ReplayClass) -> bool;
    let sums: [(&str, Belongs); 3] = [
        ("reads", |class| class.direction == Direction::Read),
        ("writes", |class| class.direction == Direction::Write),
        ("commits", |class| class::is_durable(&class.name)),
    ];
    sums.into_iter()
        .filter_map(|(name, belongs)| {
            let mut members = classes.iter().filter(|class| belongs(class));
            let mut sum = members.next()?.clone();
            members.for_each(|class| sum.add(class));
            name.clone_into(&mut sum.name);
            Some(ClassAnswer::of(&sum))
        })
        .collect()
}

impl ClassAnswer {
    fn of(class: &ReplayClass) -> ClassAnswer {
        ClassAnswer {
            name: class.name.clone(),
            direction: class.direction.word(),
            ios: class.ios,
            bytes: class.bytes,
            failed: class.failed,
            failed_recorded: class.failed_recorded,
            recorded: (!class.recorded.is_empty())
                .then(|| Latencies::of(std::slice::from_ref(&class.recorded))),
            replayed: Latencies::of(&class.replayed),
            service_p99_ns: class.service.quantile(0.99),
        }
    }
}

impl Latencies {
    /// Of the parts of a replay.
    fn of(parts: &[Histogram]) -> Latencies {
        let figure = |quantile| {
            let found = percentile::percentile(parts, quantile);
            Figure {
                ns: found.value,
                low_ns: found.bounds.map(|(low, _)| low),
                high_ns: found.bounds.map(|(_, high)| high),
            }
        };
        Latencies {
            p50: figure(0.5),
            p99: figure(0.99),
            p999: figure(0.999),
            max_ns: parts.iter().map(Histogram::max).max().unwrap_or(0),
        }
    }
}

impl Counts {
    fn of(replay: &Replay) -> Counts {
        let ReplayCounts {
            ios,
            issued,
            clipped,
            shortened,
            remapped,
            widened,
            left_out,
            discards_left_out,
            full,
            starved,
        } = replay.counts;
        Counts {
            ios,
            issued,
            clipped,
            shortened,
            remapped,
            widened,
            left_out,
            discards_left_out,
            full,
            starved,
            failed: replay.classes.iter().map(|class| class.failed).sum(),
        }
    }
}

/// I/Os that were issued more than [`LATE`] after they were due.
fn late(replay: &Replay) -> u64 {
    replay.lateness.count() - replay.lateness.count_at_most(LATE)
}

/// Reasons to doubt a replay.
pub fn findings(replay: &Replay) -> Vec<Finding> {
    [
        lateness(replay),
        lost(replay),
        clipped(replay),
        failed(replay),
        warmer(replay),
        behind_a_cap(replay),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn finding(code: Code, severity: Severity, text: String) -> Finding {
    Finding {
        code,
        severity,
        phase: Some(PHASE.to_owned()),
        text,
    }
}

/// Severity by a share; `None` below both bounds is a note.
fn by_share(share: f64, (warn, invalid): (f64, f64)) -> Severity {
    match share {
        share if share >= invalid => Severity::Invalid,
        share if share >= warn => Severity::Warn,
        _ => Severity::Note,
    }
}

fn lateness(replay: &Replay) -> Option<Finding> {
    if replay.settings.pace == Pace::Asap || replay.lateness.is_empty() {
        return None;
    }
    let share = late(replay) as f64 / replay.lateness.count() as f64;
    if share < SOME_LATE {
        return None;
    }
    let counts = &replay.counts;
    let why = if counts.full as f64 > 0.5 * late(replay) as f64 {
        format!(
            "Most of them came while {} were in flight, the most that may be: the target is slower than the \
             recorded load asks. Their wait is in the latencies. Give a greater --depth, or --pace dependencies, by \
             which a slower disk slows the load.",
            replay.settings.depth
        )
    } else if counts.starved > 0 {
        "The trace was not read fast enough: keep it on another disk than the target, and unpacked."
            .to_owned()
    } else {
        "This host did not issue them in time: its processors were busy.".to_owned()
    };
    let severity = match share >= MOSTLY_LATE && counts.full as f64 <= 0.5 * late(replay) as f64 {
        true => Severity::Invalid,
        false => Severity::Warn,
    };
    Some(finding(
        Code::Late,
        severity,
        format!(
            "{} of the I/Os were issued more than 1 ms after they were due, one in a hundred more than {}. {why}",
            percent(share),
            latency(replay.lateness.quantile(0.99)),
        ),
    ))
}

fn lost(replay: &Replay) -> Option<Finding> {
    let trace = &replay.trace;
    let doubtful = trace.lost + trace.ambiguous;
    if doubtful == 0 && !trace.cut_off {
        return None;
    }
    // A lost event is half of an I/O.
    let share = doubtful as f64 / (2.0 * trace.ios as f64 + doubtful as f64).max(1.0);
    let mut text = format!(
        "The recorder of the trace lost {} events, and {} completions fitted more than one request or none: {} of \
         all. I/Os that it lost are not replayed.",
        number(trace.lost as f64),
        number(trace.ambiguous as f64),
        percent(share),
    );
    if trace.cut_off {
        text.push_str(" It was ended before it closed the file, so that the end is missing.");
    }
    Some(finding(Code::LostEvents, by_share(share, LOST), text))
}

fn clipped(replay: &Replay) -> Option<Finding> {
    let counts = &replay.counts;
    let share = counts.clipped as f64 / (counts.ios as f64).max(1.0);
    (counts.clipped > 0).then(|| {
        finding(
            Code::Clipped,
            by_share(share, CLIPPED),
            format!(
                "{} of {} I/Os lie beyond the end of the target and were left out ({}). Give --map compact or --map \
                 wrap, or a larger target.",
                number(counts.clipped as f64),
                number(counts.ios as f64),
                percent(share),
            ),
        )
    })
}

fn failed(replay: &Replay) -> Option<Finding> {
    let failed: u64 = replay.classes.iter().map(|class| class.failed).sum();
    let before: u64 = replay
        .classes
        .iter()
        .map(|class| class.failed_recorded)
        .sum();
    (failed > before).then(|| {
        finding(
            Code::Failed,
            Severity::Invalid,
            format!(
                "{} I/Os failed, and {} when they were recorded. Their latencies do not count. See the kernel's log.",
                number(failed as f64),
                number(before as f64)
            ),
        )
    })
}

fn warmer(replay: &Replay) -> Option<Finding> {
    let warmer = warmth::warmer(&replay.lone_recorded, &replay.lone_replayed)?;
    let now = warmer.replayed;
    Some(finding(
        Code::CacheWarmer,
        Severity::Warn,
        format!(
            "Of the reads of at most 16 KiB that found nothing else in flight, {} took about {} and the others about {}: a cache \
             answered the fast ones. When they were recorded it was {}. The target's cache is warmer, and the \
             database's reads would take longer than these. Replay on a target larger than its caches, or drop them.",
            percent(now.fast_share),
            latency(now.fast),
            latency(now.slow),
            percent(warmer.recorded),
        ),
    ))
}

fn behind_a_cap(replay: &Replay) -> Option<Finding> {
    if replay.settings.pace == Pace::Asap || !replay.trace.has_completions {
        return None;
    }
    let load: Vec<Load> = replay
        .load
        .iter()
        .map(|slice| Load {
            ios: slice.recorded_ios as f64,
            bytes: slice.recorded_bytes as f64,
            in_flight: slice.recorded_in_flight,
        })
        .collect();
    let mut all = Histogram::new();
    let moving = replay
        .classes
        .iter()
        .filter(|class| class.direction != Direction::Sync);
    moving.for_each(|class| all.merge(&class.recorded));
    // A tenth of the requests waits for nothing, or all of them do.
    let base_s = all.quantile(0.1) as f64 / 1e9 / replay.settings.speed;
    let held = cap::held(&load, replay.slice_seconds, base_s)?;
    let scale = replay.settings.speed;
    Some(finding(
        Code::BehindACap,
        Severity::Warn,
        format!(
            "For {} of the time the recorded load was constant at {} IOPS and {} MiB/s while requests queued: a limit \
             of the disk that it was recorded on. The database would have asked for more, and sooner, on a faster \
             one, so that recorded times ask too little of the target. Compare with --pace dependencies, and record \
             on a disk without that limit.",
            percent(held.share),
            number(held.plateau.ops_per_s / scale),
            number(held.plateau.bytes_per_s / scale / f64::from(1 << 20)),
        ),
    ))
}
