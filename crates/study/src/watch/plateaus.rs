//! Rates too flat to be a disk's own, from counters alone.
//!
//! The test is that of [`crate::plateau`]: the count keeps to a line as only a grant by the clock
//! does. In watching, nobody knows how much the programs want: a program that sends a fixed number
//! of requests a second makes a flat rate too. So requests must also wait: longer than this disk was
//! seen to take, or so long that no disk that answers takes it.

use record::sample::DeviceId;

use super::history::{History, Kind, Point, jitter, mean_known, mean_of, variation};
use crate::plateau::{LEAST_SLICES_OFTEN, Plateau, Throughput, assess_often};

/// How far back it looks, in seconds, and over how many points at least.
const WINDOW_S: f64 = 80.0;
const LEAST_POINTS: usize = LEAST_SLICES_OFTEN;
/// A rate that varies more, as a share of it and beside jitter, is not flat however it comes back to
/// its line.
const FLAT: f64 = 0.03;
/// Something must be in flight for so much of the time, in nearly all points.
const BUSY: f64 = 0.9;
const NEARLY_ALL: f64 = 0.95;
/// So many times the least wait that was seen is queueing.
const QUEUEING: f64 = 2.0;
/// Where no less was ever seen, a wait of so many seconds with so many in flight is queueing.
const LONG_S: f64 = 0.004;
const SEVERAL: f64 = 4.0;
/// The least wait is that of so many points in a row.
const RUN: usize = 5;
/// With at least so many requests in them.
const RUN_OPS: f64 = 20.0;

/// A rate that is held at a level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// The level and what is held.
    pub(super) plateau: Plateau,
    /// Mean wait in seconds.
    pub(super) wait: f64,
    /// Requests in flight on average.
    pub(super) in_flight: f64,
}

/// The points that a plateau of a disk would be seen in.
pub(super) fn window(history: &History, id: DeviceId) -> Option<&[Point]> {
    history.last(id, WINDOW_S, LEAST_POINTS)
}

/// The level at which a disk is held, if it is.
pub(super) fn held(history: &History, id: DeviceId) -> Option<Held> {
    let points = window(history, id)?;
    held_in(points, || least_wait(history.all(id), |point| &point.all))
}

/// The level at which a series of points is held. `base` gives the least wait that was seen, in
/// seconds; it is asked for only where all else speaks for a plateau, since it takes longest.
pub(super) fn held_in(points: &[Point], base: impl FnOnce() -> Option<f64>) -> Option<Held> {
    let works = |point: &&Point| {
        let flies = point.in_flight.is_some_and(|count| count >= 0.9);
        flies && point.busy.is_none_or(|busy| busy >= BUSY)
    };
    let working = points.iter().filter(works).count();
    if (working as f64) < NEARLY_ALL * points.len() as f64 {
        return None;
    }
    let seconds = points.iter().map(|point| point.seconds).sum::<f64>() / points.len() as f64;
    let wait = mean_of(points, |point| &point.all).wait?;
    let in_flight = mean_known(points, |point| point.in_flight)?;
    let counts = |rate: fn(&Point) -> f64| -> Vec<f64> {
        points.iter().map(|point| rate(point) * seconds).collect()
    };
    let (ops, bytes) = (
        counts(|point| point.all.ops),
        counts(|point| point.all.bytes),
    );
    let mean_ops = ops.iter().sum::<f64>() / ops.len() as f64;
    let flat = FLAT + jitter(in_flight, mean_ops);
    if variation(&ops).min(variation(&bytes)) > flat {
        return None;
    }
    let is_long = wait >= LONG_S && in_flight >= SEVERAL;
    if !is_long && base().is_none_or(|base| wait < QUEUEING * base) {
        return None;
    }
    let plateau = assess_often(&Throughput {
        ops: &ops,
        bytes: &bytes,
        slice_s: seconds,
        // All that is in flight was asked for by somebody else.
        depth: f64::MIN_POSITIVE,
        mean_latency_s: wait,
        base_latency_s: None,
    })?;
    Some(Held {
        plateau,
        wait,
        in_flight,
    })
}

/// The least mean wait of requests of a kind over a few points in a row, in seconds.
pub(super) fn least_wait(points: &[Point], part: Kind) -> Option<f64> {
    points
        .windows(RUN)
        .filter_map(|run| {
            let mean = mean_of(run, part);
            let seconds: f64 = run.iter().map(|point| point.seconds).sum();
            mean.wait.filter(|_| mean.ops * seconds >= RUN_OPS)
        })
        .min_by(f64::total_cmp)
}
