//! Results of the classic suites, beside the figures of their phases.

use record::{Nanos, Phase, Run};
use replay::ReplayAnswer;
use serde::Serialize;
use study::curve::{self, TargetMet};
use study::zones::{self as zoned, DiskEnds, Rate};

use super::figures::{Estimate, PhaseFigures, mean_and_deviation};
use super::trials::trials_of;
use super::zone_phases::{is_again, position};

/// The answer of a suite.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "suite", rename_all = "kebab-case")]
pub enum SuiteResult {
    /// The cells of sysbench's grid, with its figures.
    Sysbench {
        /// Cells of the grid, one for each phase.
        cells: Vec<Cell>,
    },
    /// Bonnie++'s tests, with its figures.
    Bonnie {
        /// Tests, one for each phase.
        tests: Vec<Test>,
    },
    /// Speed of random reads, by the number in flight.
    Seek {
        /// Numbers in flight, one for each phase.
        points: Vec<SeekPoint>,
    },
    /// Speed of sequential reads, by position.
    Zones(ZonesAnswer),
    /// Rate of requests that keeps a target.
    Curve(CurveAnswer),
    /// A trace, recorded and replayed.
    Replay(Box<ReplayAnswer>),
}

/// A cell of sysbench's grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// The phase.
    pub name: String,
    /// Requests a second, all over the whole time as sysbench counts them.
    pub requests_per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// The shortest latency, in nanoseconds.
    pub min_ns: u64,
    /// The mean.
    pub avg_ns: f64,
    /// The longest.
    pub max_ns: u64,
    /// The 95th percentile.
    pub p95_ns: u64,
    /// Requests a thread: the mean and the deviation.
    pub events: (f64, f64),
    /// Seconds a thread spent in its requests: the mean and the deviation.
    pub execution_s: (f64, f64),
}

/// A test of Bonnie++. Its rate is over the whole time, with the call that ends the work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Test {
    /// The phase.
    pub name: String,
    /// Bytes of the file a second, for the tests of its data in order.
    pub bytes_per_s: Option<f64>,
    /// Seeks or files a second, for the others.
    pub per_s: Option<f64>,
    /// Processor time, as a share of one processor: 2 is two of them busy all the time.
    pub cpu: f64,
    /// The longest call that reads or writes, or that is about a file, in nanoseconds. Bonnie++ does
    /// not time the flush at the end as a call, and on a disk that would always be the longest.
    pub max_ns: u64,
    /// The longest flush, in nanoseconds, where there was one.
    pub max_sync_ns: Option<u64>,
    /// Seconds it took.
    pub seconds: f64,
}

/// Speed of random reads with a number in flight.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeekPoint {
    /// Number in flight.
    pub in_flight: u64,
    /// Seeks a second.
    pub seeks_per_s: Estimate,
    /// The mean time of one, in nanoseconds.
    pub access_ns: f64,
}

/// The zones of a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZonesAnswer {
    /// Zones, in the order of their position.
    pub zones: Vec<Zone>,
    /// Comparison of the ends, where enough zones were read. Cold zones count by their second read.
    pub ends: Option<EndsFigures>,
}

/// A zone of the target: what its first and second read gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zone {
    /// Start of the zone.
    pub position_bytes: u64,
    /// The first read of it.
    pub first: Estimate,
    /// The second read of the same place.
    pub again: Option<Estimate>,
    /// True if the second read was far faster: the zone was cold, and its first read does not count.
    pub cold: bool,
}

impl Zone {
    /// Rate of the place when it is not cold, in bytes a second.
    pub(crate) fn warm(&self) -> f64 {
        match &self.again {
            Some(again) if self.cold => again.mean,
            _ => self.first.mean,
        }
    }
}

/// The two ends of a target, each an eighth of the zones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndsFigures {
    /// Bytes a second at its start.
    pub first: f64,
    /// Bytes a second at its end.
    pub last: f64,
    /// The last over the first.
    pub ratio: f64,
    /// The lower bound of its 99 % interval.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// True if they differ beyond the noise.
    pub differ: bool,
}

/// The rate that keeps a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurveAnswer {
    /// Target that 99 of 100 requests may take at most.
    pub p99_target_ns: u64,
    /// The best guess at the highest rate, in requests a second.
    pub iops: Option<f64>,
    /// The highest rate that kept it.
    pub low: Option<f64>,
    /// The lowest rate that did not.
    pub high: Option<f64>,
    /// Every trial, in order of the rate.
    pub points: Vec<CurvePoint>,
}

/// Measurements at one rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// Requests due a second.
    pub rate_per_s: f64,
    /// The 99th percentile of their latency.
    pub p99_ns: u64,
    /// True if the rate keeps the target; null where that is not known.
    pub kept: Option<bool>,
}

impl SuiteResult {
    /// The answer of a run, if its suite has one and anything was measured.
    pub(crate) fn of(run: &Run, figures: &[PhaseFigures]) -> Option<SuiteResult> {
        if run.phases.is_empty() {
            return None;
        }
        if let Some(replay) = &run.replay {
            return Some(SuiteResult::Replay(Box::new(ReplayAnswer::of(replay))));
        }
        match run.suite.as_str() {
            "sysbench" => Some(SuiteResult::Sysbench {
                cells: run.phases.iter().filter_map(cell).collect(),
            }),
            "bonnie" => Some(SuiteResult::Bonnie {
                tests: run.phases.iter().filter_map(test).collect(),
            }),
            "seek" => Some(SuiteResult::Seek {
                points: run
                    .phases
                    .iter()
                    .zip(figures)
                    .filter_map(seek_point)
                    .collect(),
            }),
            "zones" => Some(SuiteResult::Zones(zones(run, figures))),
            "curve" => curve_answer(run).map(SuiteResult::Curve),
            _ => None,
        }
    }
}

fn cell(phase: &Phase) -> Option<Cell> {
    let flow = phase.read.as_ref().or(phase.write.as_ref())?;
    let events: Vec<f64> = phase.thread_ops.iter().map(|ops| *ops as f64).collect();
    let seconds = phase.seconds.max(1e-9);
    Some(Cell {
        name: phase.name.clone(),
        requests_per_s: flow.ops as f64 / seconds,
        bytes_per_s: flow.bytes as f64 / seconds,
        min_ns: flow.latency.min(),
        avg_ns: flow.latency.mean(),
        max_ns: flow.latency.max(),
        p95_ns: flow.latency.quantile(0.95),
        events: mean_and_deviation(&events),
        execution_s: mean_and_deviation(&phase.thread_seconds),
    })
}

fn test(phase: &Phase) -> Option<Test> {
    // What is read and written back counts once, as a read.
    let flow = phase.read.as_ref().or(phase.write.as_ref())?;
    let seconds = phase.seconds.max(1e-9);
    let in_order = phase.workload.pattern == record::Pattern::Sequential;
    let of_data = in_order && !phase.workload.is_metadata_work();
    let both = [&phase.read, &phase.write].into_iter().flatten();
    let longest = both.map(|flow| flow.latency.max()).max();
    Some(Test {
        name: phase.name.clone(),
        bytes_per_s: of_data.then(|| flow.bytes as f64 / seconds),
        per_s: (!of_data).then(|| flow.ops as f64 / seconds),
        cpu: (phase.cpu.user_s + phase.cpu.system_s) / seconds,
        max_ns: longest.unwrap_or_default(),
        max_sync_ns: phase.sync.as_ref().map(|sync| sync.latency.max()),
        seconds: phase.seconds,
    })
}

fn seek_point((phase, figures): (&Phase, &PhaseFigures)) -> Option<SeekPoint> {
    let read = phase.read.as_ref()?;
    Some(SeekPoint {
        in_flight: phase.workload.in_flight(),
        seeks_per_s: figures.flow(record::Direction::Read)?.iops,
        access_ns: read.latency.mean(),
    })
}

fn zones(run: &Run, figures: &[PhaseFigures]) -> ZonesAnswer {
    let rate = |(_, figures): &(&Phase, &PhaseFigures)| {
        let flow = figures.flow(record::Direction::Read)?;
        Some(flow.bytes_per_s)
    };
    let all: Vec<_> = run.phases.iter().zip(figures).collect();
    let mut zones: Vec<Zone> = all
        .iter()
        .filter(|(phase, _)| !is_again(phase))
        .filter_map(|first| {
            let place = position(first.0);
            let again = all
                .iter()
                .find(|(phase, _)| is_again(phase) && position(phase) == place);
            let (first, again) = (rate(first)?, again.and_then(rate));
            Some(Zone {
                position_bytes: place.0,
                cold: again
                    .is_some_and(|again| zoned::is_cold(known_rate(first), known_rate(again))),
                first,
                again,
            })
        })
        .collect();
    zones.sort_by_key(|zone| zone.position_bytes);
    let rates: Vec<f64> = zones.iter().map(Zone::warm).collect();
    ZonesAnswer {
        ends: zoned::ends(&rates).map(EndsFigures::of),
        zones,
    }
}

fn known_rate(estimate: Estimate) -> Rate {
    let bounds = estimate.low.zip(estimate.high);
    Rate {
        mean: estimate.mean,
        interval: bounds.map(|(low, high)| study::interval::Interval {
            mean: estimate.mean,
            low,
            high,
        }),
    }
}

impl EndsFigures {
    fn of(ends: DiskEnds) -> EndsFigures {
        EndsFigures {
            first: ends.first,
            last: ends.last,
            ratio: ends.ratio.ratio,
            low: ends.ratio.low,
            high: ends.ratio.high,
            differ: ends.differ,
        }
    }
}

fn curve_answer(run: &Run) -> Option<CurveAnswer> {
    let (target, trials) = trials_of(run)?;
    let found = curve::so_far(&trials);
    let mut points: Vec<CurvePoint> = run
        .phases
        .iter()
        .filter_map(|phase| {
            let rate = phase.workload.rate_per_s?;
            Some(CurvePoint {
                rate_per_s: rate,
                p99_ns: p99(phase),
                kept: match curve::kept_at(&trials, rate)? {
                    TargetMet::Yes => Some(true),
                    TargetMet::No => Some(false),
                    TargetMet::Unclear => None,
                },
            })
        })
        .collect();
    points.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    Some(CurveAnswer {
        p99_target_ns: target.0,
        iops: found.rate,
        low: found.low,
        high: found.high,
        points,
    })
}

/// The 99th percentile of reads and writes together.
fn p99(phase: &Phase) -> u64 {
    let mut all = record::Histogram::new();
    for flow in [&phase.read, &phase.write].into_iter().flatten() {
        all.merge(&flow.latency);
    }
    all.quantile(0.99)
}

impl CurveAnswer {
    /// Target of the p99 latency.
    pub(crate) fn target(&self) -> Nanos {
        Nanos(self.p99_target_ns)
    }
}
