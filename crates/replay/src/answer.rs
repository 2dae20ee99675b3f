//! Answer of a replay: figures derived from the measurements, for the table, the page and JSON.

use record::{Direction, Histogram, LoadSlice, OffsetMap, Pace, Replay, ReplayClass, ReplayCounts};
use serde::Serialize;
use study::replay::percentile;
use trace::Class;

use crate::tally::LATE_NANOS;

/// Result of a replay: the replayed I/O, and its figures compared with the recorded ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayAnswer {
    /// Path of the trace.
    pub trace: String,
    /// Format of the trace.
    pub format: String,
    /// True if the trace holds completion times, without which there are no recorded latencies.
    pub has_completions: bool,
    /// Number of I/Os in the trace.
    pub trace_ios: u64,
    /// Seconds from the first I/O of the trace to its last.
    pub trace_seconds: f64,
    /// Rule by which I/Os are timed.
    pub pace: Pace,
    /// Factor by which recorded times were shortened.
    pub speed: f64,
    /// The most I/Os in flight.
    pub depth: u32,
    /// Rule by which offsets are mapped.
    pub map: OffsetMap,
    /// Devices of the trace and their targets.
    pub devices: Vec<DeviceAnswer>,
    /// Figures of all reads, all writes, and what commits wait for: flushes and writes with FUA.
    pub totals: Vec<ClassAnswer>,
    /// Figures of each class of I/Os.
    pub classes: Vec<ClassAnswer>,
    /// Time from when an I/O was due until it was issued.
    pub lateness: Latencies,
    /// Number of I/Os that were issued more than 1 ms late.
    pub late: u64,
    /// Counts of what differs from the trace.
    pub counts: Counts,
    /// I/Os in flight over time.
    pub in_flight: InFlight,
}

/// A device of the trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceAnswer {
    /// Name of the device.
    pub name: String,
    /// Path of its target.
    pub target: String,
    /// Size of the target.
    pub target_bytes: u64,
    /// End of the last byte that the trace touches.
    pub reach_bytes: u64,
    /// Bytes of the touched parts; null where the rule of offsets does not need them.
    pub footprint_bytes: Option<u64>,
}

/// Figures of a class of I/Os.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassAnswer {
    /// Name of the class.
    pub name: String,
    /// `read`, `write` or `sync`.
    pub direction: &'static str,
    /// Number of I/Os that were replayed.
    pub ios: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Number of I/Os that failed.
    pub failed: u64,
    /// Number of I/Os that failed when they were recorded.
    pub failed_recorded: u64,
    /// Recorded latencies; null where the trace holds none.
    pub recorded: Option<Latencies>,
    /// Latencies of the replay, from when an I/O was due.
    pub replayed: Latencies,
    /// 99th percentile of the latency from when an I/O was issued, in nanoseconds.
    pub service_p99_ns: u64,
}

/// Percentiles of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latencies {
    /// The median.
    pub p50: PercentileEstimate,
    /// The 99th percentile.
    pub p99: PercentileEstimate,
    /// The 99.9th percentile.
    pub p999: PercentileEstimate,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}

/// A percentile with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PercentileEstimate {
    /// The percentile, in nanoseconds.
    pub ns: u64,
    /// Lower bound, in nanoseconds; null where too little is known.
    pub low_ns: Option<u64>,
    /// Upper bound, in nanoseconds; null where too little is known.
    pub high_ns: Option<u64>,
}

/// Counts of what differs from the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Counts of the replay itself.
    #[serde(flatten)]
    pub replayed: ReplayCounts,
    /// Number of I/Os that failed.
    pub failed: u64,
}

/// I/Os in flight over time, each the mean over a slice.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InFlight {
    /// Length of a slice, in seconds.
    pub slice_seconds: f64,
    /// Mean when the I/Os were recorded, on the replay's time, for each slice.
    pub recorded: Vec<f64>,
    /// Mean when the I/Os were replayed, for each slice; I/Os that were due and waited are included.
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

/// Sums over classes: reads, writes, and I/Os that commits wait for, if there are any.
fn totals(classes: &[ReplayClass]) -> Vec<ClassAnswer> {
    type Belongs = fn(&ReplayClass) -> bool;
    let sums: [(&str, Belongs); 3] = [
        ("reads", |class| class.direction == Direction::Read),
        ("writes", |class| class.direction == Direction::Write),
        ("commits", |class| Class::is_durable_name(&class.name)),
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
            direction: class.direction.name(),
            ios: class.ios,
            bytes: class.bytes,
            failed: class.failed,
            failed_recorded: class.failed_recorded,
            recorded: (!class.recorded.is_empty())
                .then(|| Latencies::of(class.recorded_by_parts())),
            replayed: Latencies::of(&class.replayed),
            service_p99_ns: class.service.quantile(0.99),
        }
    }
}

impl Latencies {
    /// Percentiles of a latency, whose intervals are computed from the parts of a replay.
    fn of(parts: &[Histogram]) -> Latencies {
        let figure = |quantile| {
            let found = percentile::percentile(parts, quantile);
            PercentileEstimate {
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
        Counts {
            replayed: replay.counts,
            failed: replay.classes.iter().map(|class| class.failed).sum(),
        }
    }
}

/// Number of I/Os that were issued more than [`LATE_NANOS`] after they were due.
pub(crate) fn late(replay: &Replay) -> u64 {
    replay.lateness.count() - replay.lateness.count_at_most(LATE_NANOS)
}
