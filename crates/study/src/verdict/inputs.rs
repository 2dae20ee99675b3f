//! Series from which a verdict is drawn.

use std::ops::Range;

use crate::watch::EventCode;

/// Response times of a service, one value per slot. Slots without requests have NaN for times and shares.
#[derive(Clone, Debug, Default)]
pub struct ServiceTimes {
    /// Requests in the slot.
    pub requests: Vec<f64>,
    /// Mean, in milliseconds.
    pub mean_ms: Vec<f64>,
    /// Median, in milliseconds.
    pub p50_ms: Vec<f64>,
    /// 95th percentile, in milliseconds.
    pub p95_ms: Vec<f64>,
    /// 99th percentile, in milliseconds.
    pub p99_ms: Vec<f64>,
    /// Bound of each bucket in milliseconds, and the share of requests above it.
    pub above: Vec<(f64, Vec<f64>)>,
}

/// A figure of response times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResponseFigure {
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Share of requests that took longer than this number of milliseconds.
    Above(f64),
}

impl ServiceTimes {
    /// The series of each figure, with NaN if a slot has too few requests for it: a percentile is meaningful only if
    /// about one request is beyond it.
    pub(crate) fn metrics(&self) -> Vec<(ResponseFigure, Vec<f64>)> {
        let with = |values: &[f64], least: f64| -> Vec<f64> {
            let pairs = values.iter().zip(&self.requests);
            pairs
                .map(|(value, requests)| if *requests >= least { *value } else { f64::NAN })
                .collect()
        };
        let percentiles = [
            (ResponseFigure::P50, with(&self.p50_ms, 2.0)),
            (ResponseFigure::P95, with(&self.p95_ms, 20.0)),
            (ResponseFigure::P99, with(&self.p99_ms, 100.0)),
        ];
        // Half a request of a usual slot is added, so that a share that rises from zero has a ratio. It is the same in
        // all slots: a constant share must not change with the number of requests.
        let known = self.requests.iter().filter(|x| x.is_finite() && **x > 0.0);
        let known: Vec<f64> = known.copied().collect();
        let half = 0.5 / crate::noise::mean(&known).max(1.0);
        let shares = self.above.iter().map(|(bound, shares)| {
            let shares: Vec<f64> = shares.iter().map(|share| share + half).collect();
            (ResponseFigure::Above(*bound), with(&shares, 20.0))
        });
        percentiles.into_iter().chain(shares).collect()
    }
}

/// A finding on a disk, with its duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFinding {
    /// Code of the finding.
    pub code: EventCode,
    /// Slots in which it was open.
    pub slots: Range<usize>,
}

/// A disk below the service, one value per slot; NaN if it was not recorded.
#[derive(Clone, Debug, Default)]
pub struct ObservedDisk {
    /// Name of the disk, with the host's where there are several.
    pub name: String,
    /// I/Os a second.
    pub iops: Vec<f64>,
    /// Mean latency of an I/O, in milliseconds.
    pub await_ms: Vec<f64>,
    /// Share of the time in which it was busy, 0 to 1.
    pub busy: Vec<f64>,
    /// Findings on the disk.
    pub findings: Vec<DiskFinding>,
    /// Position of the disk in a stack of devices.
    pub layer: DiskLayer,
}

/// Position of a disk in a stack of devices: arrays, mapped devices, their members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskLayer {
    /// True if the disk lies on others, whose latency is included in its own.
    pub lies_on_others: bool,
    /// True if others lie on the disk: not all of its I/O is the service's, since a check of an array also reads its
    /// members.
    pub carries_others: bool,
}

/// Any other series that may be a cause, such as cache evictions a second.
#[derive(Clone, Debug)]
pub struct NamedSeries {
    /// Name of the series.
    pub name: String,
    /// A value per slot; NaN where there is none.
    pub values: Vec<f64>,
}

/// Observations of a service and the system below it, on one time axis.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    /// Length of a slot, in seconds.
    pub slot_s: f64,
    /// Response times of the service.
    pub service: ServiceTimes,
    /// Disks below the service.
    pub disks: Vec<ObservedDisk>,
    /// Other series.
    pub series: Vec<NamedSeries>,
}

/// A moment to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// First slot after the moment.
    pub slot: usize,
    /// True if it is a marker (a deploy); false for a change that was detected in the series.
    pub marked: bool,
}

/// Slot ranges that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Slots before the moment.
    pub before: Range<usize>,
    /// Slots after it.
    pub after: Range<usize>,
    /// The same two windows on earlier days.
    pub days: Vec<(Range<usize>, Range<usize>)>,
}

/// Number of slots after a moment that are left out: a service that restarts is slow at first.
const SETTLE_SLOTS: usize = 1;
/// Maximum number of earlier days that are examined.
const MAX_DAYS: usize = 7;

impl Windows {
    /// Windows of at most `width` slots around `slot` in a series of `count` slots, with `day` slots a day. `bounds`
    /// are other changes that the windows must not cross.
    pub fn around(
        slot: usize,
        width: usize,
        count: usize,
        day: usize,
        bounds: Range<usize>,
    ) -> Self {
        let settle = |to: usize| (slot + SETTLE_SLOTS).min(to);
        let to = (slot + SETTLE_SLOTS + width)
            .min(count)
            .min(bounds.end.max(slot));
        let from = slot.saturating_sub(width).max(bounds.start.min(slot));
        let (before, after) = (from..slot, settle(to)..to);
        let earlier = |number: usize| {
            let back = number * day;
            let shift = |range: &Range<usize>| -> Option<Range<usize>> {
                Some(range.start.checked_sub(back)?..range.end.checked_sub(back)?)
            };
            Some((shift(&before)?, shift(&after)?))
        };
        let days = (1..=MAX_DAYS)
            .filter(|_| day >= 2 * width)
            .map_while(earlier);
        Self {
            days: days.collect(),
            before,
            after,
        }
    }
}

/// Values of a range, without the part beyond the end of the series.
pub(crate) fn part<'a>(values: &'a [f64], range: &Range<usize>) -> &'a [f64] {
    let end = range.end.min(values.len());
    values.get(range.start.min(end)..end).unwrap_or_default()
}

/// Pairs of two series in a range.
pub(crate) fn pairs(loads: &[f64], values: &[f64], range: &Range<usize>) -> Vec<(f64, f64)> {
    let pairs = part(loads, range).iter().zip(part(values, range));
    pairs.map(|(load, value)| (*load, *value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_stay_within_the_series_and_between_other_changes() {
        let windows = Windows::around(100, 30, 1000, 0, 0..1000);
        assert_eq!((windows.before, windows.after), (70..100, 101..131));
        let windows = Windows::around(100, 30, 110, 0, 90..105);
        assert_eq!((windows.before, windows.after), (90..100, 101..105));
        let windows = Windows::around(0, 30, 0, 0, 0..0);
        assert!(windows.before.is_empty() && windows.after.is_empty());
    }

    #[test]
    fn earlier_days_are_those_that_are_recorded() {
        let windows = Windows::around(250, 30, 1000, 100, 0..1000);
        assert_eq!(windows.days, [(120..150, 151..181), (20..50, 51..81)]);
    }

    #[test]
    fn a_share_that_stays_does_not_change_with_the_rate() {
        let service = ServiceTimes {
            requests: vec![50.0, 500.0, 5000.0],
            above: vec![(200.0, vec![0.0; 3])],
            ..ServiceTimes::default()
        };
        let metrics = service.metrics();
        let (_, shares) = metrics.last().unwrap();
        assert!(shares[0] == shares[1] && shares[1] == shares[2] && shares[0] > 0.0);
    }

    #[test]
    fn percentiles_of_few_requests_are_left_out() {
        let service = ServiceTimes {
            requests: vec![1.0, 50.0, 500.0],
            p50_ms: vec![5.0; 3],
            p95_ms: vec![9.0; 3],
            p99_ms: vec![20.0; 3],
            ..ServiceTimes::default()
        };
        let known: Vec<usize> = service
            .metrics()
            .iter()
            .map(|(_, values)| values.iter().filter(|x| x.is_finite()).count())
            .collect();
        assert_eq!(known, [2, 2, 1]);
    }
}
