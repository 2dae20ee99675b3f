//! Rates too flat to be a disk's own limit, from counters alone.
//!
//! The test is that of [`crate::plateau`]: the cumulative count follows a line as only a grant by the clock does. In
//! `watch`, the programs' demand is unknown: a program that sends a fixed number of requests a second makes a flat
//! rate too. Therefore requests must also wait: longer than this disk was seen to take, or longer than any healthy
//! disk takes.
//!
//! A load does not continue without pauses: a database waits briefly at each checkpoint. A second in which a disk was
//! not busy throughout does not show its limit; a few such seconds are left out, each with the second after it.

use std::iter;

use record::sample::DeviceId;

use super::history::{DeviceHistory, FlowKindPoint, Point, jitter, mean_known, mean_of, variation};
use crate::noise::mean;
use crate::plateau::{
    MIN_SLICES_REPEATED, Plateau, Throughput, assess_often, few, without_outliers,
};

/// Window in seconds, and minimum number of points.
const WINDOW_S: f64 = 80.0;
const MIN_POINTS: usize = MIN_SLICES_REPEATED;
/// Variation, as a share of a rate and in addition to jitter, above which the rate is not flat even if it returns to
/// its line.
const FLAT_VARIATION: f64 = 0.03;
/// Minimum share of the time with something in flight in nearly all points, and the share of these points.
const BUSY_SHARE: f64 = 0.9;
const BUSY_POINT_SHARE: f64 = 0.9;
/// Minimum wait as a multiple of the shortest wait seen, from which requests queue.
const QUEUEING: f64 = 2.0;
/// Wait in seconds, and number in flight, from which requests queue if no shorter wait was ever seen.
const QUEUED_WAIT_S: f64 = 0.004;
const QUEUED_IN_FLIGHT: f64 = 4.0;
/// Number of consecutive points for the shortest wait.
const RUN: usize = 5;
/// Minimum number of requests in these points.
const RUN_OPS: f64 = 20.0;

/// A rate that a limit keeps constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldRate {
    /// The level, and the limited quantity.
    pub(super) plateau: Plateau,
    /// Mean wait in seconds.
    pub(super) wait: f64,
    /// Requests in flight on average.
    pub(super) in_flight: f64,
}

/// The points in which a plateau of a disk would be detected.
pub(super) fn window(history: &DeviceHistory, id: DeviceId) -> Option<&[Point]> {
    history.last(id, WINDOW_S, MIN_POINTS)
}

/// The level at which a limit holds a disk; `None` without one.
pub(super) fn held(history: &DeviceHistory, id: DeviceId) -> Option<HeldRate> {
    let points = window(history, id)?;
    held_in(points, || least_wait(history.all(id), |point| &point.all))
}

/// The level at which a series of points is constant. `base` returns the shortest wait that was seen, in seconds; it
/// is called only if everything else indicates a plateau, since it takes longest.
pub(super) fn held_in(points: &[Point], base: impl FnOnce() -> Option<f64>) -> Option<HeldRate> {
    let at_work = at_work(points);
    let pairs = points.iter().zip(&at_work);
    let working: Vec<Point> = pairs
        .filter_map(|(point, works)| works.then_some(*point))
        .collect();
    if (working.len() as f64) < BUSY_POINT_SHARE * points.len() as f64 {
        return None;
    }
    let seconds = working.iter().map(|point| point.seconds).sum::<f64>() / working.len() as f64;
    let wait = mean_of(&working, |point| &point.all).wait?;
    let in_flight = mean_known(&working, |point| point.in_flight)?;
    let ops = counts(points, &at_work, |point| point.all.ops * seconds);
    let bytes = counts(points, &at_work, |point| point.all.bytes * seconds);
    let flat = FLAT_VARIATION + jitter(in_flight, mean(&ops));
    let size = mean(&bytes) / mean(&ops);
    if !is_steady(&ops, 1.0, flat) && !is_steady(&bytes, size, flat) {
        return None;
    }
    let is_long = wait >= QUEUED_WAIT_S && in_flight >= QUEUED_IN_FLIGHT;
    if !is_long && base().is_none_or(|base| wait < QUEUEING * base) {
        return None;
    }
    let plateau = assess_often(&Throughput {
        ops: &ops,
        bytes: &bytes,
        slice_s: seconds,
        // All requests in flight are those of other programs.
        depth: f64::MIN_POSITIVE,
        mean_latency_s: wait,
        base_latency_s: None,
    })?;
    Some(HeldRate {
        plateau,
        wait,
        in_flight,
    })
}

/// For each point, true if a disk was busy throughout: something was in flight nearly all of the time, in this point
/// and the one before. The first second after a pause has fewer completions than work.
pub(super) fn at_work(points: &[Point]) -> Vec<bool> {
    let works = |point: &Point| {
        let flies = point.in_flight.is_some_and(|count| count >= 0.9);
        flies && point.busy.is_none_or(|busy| busy >= BUSY_SHARE)
    };
    let before = iter::once(true).chain(points.iter().map(works));
    let both = points.iter().zip(before);
    both.map(|(point, before)| before && works(point)).collect()
}

/// Completions in each point. A point that was partly idle gets the mean of the others.
fn counts(points: &[Point], at_work: &[bool], count: impl Fn(&Point) -> f64) -> Vec<f64> {
    let known = points.iter().zip(at_work);
    let known: Vec<Option<f64>> = known
        .map(|(point, works)| works.then(|| count(point)))
        .collect();
    let others: Vec<f64> = known.iter().copied().flatten().collect();
    let usual = mean(&others);
    let counts = known.into_iter().map(|count| count.unwrap_or(usual));
    counts.collect()
}

/// True if counts vary by at most this share of their mean, without a few outliers: a stall, or late grants. `one` is
/// one operation in the unit of the counts.
fn is_steady(counts: &[f64], one: f64, flat: f64) -> bool {
    calm_variation(counts, one) <= flat
}

/// Variation of counts without a few outliers, as a share of their mean.
pub(super) fn calm_variation(counts: &[f64], one: f64) -> f64 {
    variation(&without_outliers(counts, one, few(counts.len())))
}

/// The shortest mean wait of requests of a kind over a few consecutive points, in seconds.
pub(super) fn least_wait(points: &[Point], part: FlowKindPoint) -> Option<f64> {
    points
        .windows(RUN)
        .filter_map(|run| {
            let mean = mean_of(run, part);
            let seconds: f64 = run.iter().map(|point| point.seconds).sum();
            mean.wait.filter(|_| mean.ops * seconds >= RUN_OPS)
        })
        .min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use record::sample::SampleTime;

    use super::super::history::FlowPoint;
    use super::*;

    /// A second of a disk that is limited to 400 IOPS with 32 in flight; it has work for `share` of it, of which
    /// `done` completes.
    fn second(number: usize, share: f64, done: f64) -> Point {
        // A grant may come just before or just after the second ends.
        let late = [1.0, -1.0, 0.0][number % 3];
        let ops = (done * (400.0 * share + late)).round();
        let part = FlowPoint {
            ops,
            bytes: 16_384.0 * ops,
            wait: (ops > 0.0).then_some(0.08),
        };
        Point {
            end: SampleTime::default(),
            seconds: 1.0,
            read: part,
            write: FlowPoint::default(),
            all: part,
            in_flight: Some(32.0 * share),
            in_flight_at_end: None,
            busy: Some(share),
        }
    }

    /// The level at which a disk is held for 80 seconds, some of which differ.
    fn level(different: &[(usize, f64, f64)]) -> Option<f64> {
        let mut points: Vec<Point> = (0..80).map(|number| second(number, 1.0, 1.0)).collect();
        for (number, share, done) in different {
            points[*number] = second(*number, *share, *done);
        }
        held_in(&points, || None).map(|held| held.plateau.ops_per_s)
    }

    #[test]
    fn pauses_of_the_load_do_not_hide_a_cap() {
        for pauses in [
            &[][..],
            &[(40, 0.0, 1.0)],
            // A pause that begins and ends within seconds, and one a minute later.
            &[(10, 0.6, 1.0), (11, 0.4, 1.0), (70, 0.0, 1.0)],
        ] {
            let level = level(pauses).unwrap();
            assert!((level - 400.0).abs() < 1.0, "{pauses:?}: {level}");
        }
    }

    #[test]
    fn a_few_stalls_do_not_hide_a_cap() {
        let stalls = |at: &[usize]| -> Vec<(usize, f64, f64)> {
            at.iter().map(|number| (*number, 1.0, 0.0)).collect()
        };
        assert!(level(&stalls(&[40])).is_some());
        assert!(level(&stalls(&[20, 21, 60, 70])).is_some());
        assert_eq!(level(&stalls(&[10, 20, 40, 60, 70])), None);
    }

    #[test]
    fn a_load_that_pauses_all_the_time_tells_of_no_cap() {
        let often: Vec<(usize, f64, f64)> = (0..5).map(|pause| (16 * pause, 0.5, 1.0)).collect();
        assert_eq!(level(&often), None);
    }
}
