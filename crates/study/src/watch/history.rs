//! History of each device in the last minutes, in points of about a second.

use std::collections::{HashMap, HashSet};

use record::Nanos;
use record::sample::{ArraySample, DeviceId, DeviceKind, DeviceSample, Flow, Sample, SampleTime};

/// Minimum length of a point; shorter samples are combined.
const POINT: Nanos = Nanos(950_000_000);
/// Maximum number of points kept of a device.
const MAX_POINTS: usize = 300;
/// Maximum number of points of all devices together (some 20 MB), for hosts with thousands of devices.
const MAX_TOTAL_POINTS: usize = 100_000;
/// Minimum number of points kept for each device: the number that the rule with the longest window needs.
const MIN_POINTS: usize = 100;
/// Number of points that are allocated, and dropped, at once.
const STEP: usize = 32;

/// Requests of one kind in a point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FlowPoint {
    /// Requests a second.
    pub(super) ops: f64,
    /// Bytes a second.
    pub(super) bytes: f64,
    /// Mean wait in seconds; `None` if no request completed, or it is unknown.
    pub(super) wait: Option<f64>,
}

/// Selects a kind of requests of a point.
pub(super) type FlowKindPoint = fn(&Point) -> &FlowPoint;

/// State of a device in about a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// End of the interval.
    pub(super) end: SampleTime,
    /// Length, in seconds.
    pub(super) seconds: f64,
    /// Reads.
    pub(super) read: FlowPoint,
    /// Writes.
    pub(super) write: FlowPoint,
    /// Reads, writes and discards.
    pub(super) all: FlowPoint,
    /// Requests in flight on average.
    pub(super) in_flight: Option<f64>,
    /// Requests in flight at the end.
    pub(super) in_flight_at_end: Option<f64>,
    /// The share of time in which anything was in flight.
    pub(super) busy: Option<f64>,
}

/// Sums over the samples of a point.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    seconds: f64,
    parts: [PartSums; 3],
    in_flight: Option<f64>,
    in_flight_at_end: Option<f64>,
    busy: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct PartSums {
    ops: f64,
    bytes: f64,
    waited: f64,
    timed: f64,
}

impl PartSums {
    fn add(&mut self, flow: &Flow, seconds: f64) {
        let ops = flow.iops.map_or(0.0, |iops| iops.0) * seconds;
        self.ops += ops;
        self.bytes += flow.bytes.map_or(0.0, |bytes| bytes.0) * seconds;
        if let Some(wait) = flow.wait {
            self.waited += wait.as_secs_f64() * ops;
            self.timed += ops;
        }
    }

    fn part(&self, seconds: f64) -> FlowPoint {
        FlowPoint {
            ops: self.ops / seconds,
            bytes: self.bytes / seconds,
            wait: (self.timed > 0.0).then(|| self.waited / self.timed),
        }
    }
}

impl Sums {
    fn add(&mut self, sample: &DeviceSample, seconds: f64) {
        self.seconds += seconds;
        for (sums, flow) in self
            .parts
            .iter_mut()
            .zip([&sample.read, &sample.write, &sample.all])
        {
            sums.add(flow, seconds);
        }
        let more = |sum: &mut Option<f64>, value: Option<f64>| {
            if let Some(value) = value {
                *sum = Some(sum.unwrap_or(0.0) + value * seconds);
            }
        };
        more(&mut self.in_flight, sample.mean_in_flight);
        more(&mut self.busy, sample.busy.map(|busy| busy.0));
        self.in_flight_at_end = sample.in_flight.map(|count| count as f64);
    }

    fn point(&self, end: SampleTime) -> Point {
        let seconds = self.seconds;
        Point {
            end,
            seconds,
            read: self.parts[0].part(seconds),
            write: self.parts[1].part(seconds),
            all: self.parts[2].part(seconds),
            in_flight: self.in_flight.map(|sum| sum / seconds),
            in_flight_at_end: self.in_flight_at_end,
            busy: self.busy.map(|sum| sum / seconds),
        }
    }
}

/// The points of a device.
#[derive(Debug, Default)]
struct Series {
    points: Vec<Point>,
    sums: Sums,
    /// True if it was in the last sample.
    is_there: bool,
    /// Number of points since the last activity of the device. A device that was idle for as long as points are kept
    /// has none.
    quiet: usize,
}

/// The points of all devices.
#[derive(Debug, Default)]
pub(super) struct DeviceHistory {
    series: HashMap<DeviceId, Series>,
    length: Nanos,
    count: u64,
    ended_point: bool,
}

impl DeviceHistory {
    /// Adds a sample; true if it completes a point.
    pub(super) fn take(&mut self, sample: &Sample) -> bool {
        self.ended_point = self.add(sample);
        self.ended_point
    }

    fn add(&mut self, sample: &Sample) -> bool {
        let seconds = sample.length.as_secs_f64();
        if seconds <= 0.0 {
            return false;
        }
        for device in &sample.devices {
            let id = device.device.id;
            let series = self.series.entry(id).or_default();
            series.is_there = true;
            if device.reset || device.all.iops.is_none() {
                // The next point does not follow the earlier ones.
                series.points.clear();
                series.sums = Sums::default();
            } else {
                series.sums.add(device, seconds);
            }
        }
        self.length += sample.length;
        if self.length < POINT {
            return false;
        }
        self.length = Nanos(0);
        self.count += 1;
        self.series
            .retain(|_, series| std::mem::take(&mut series.is_there));
        let together = at_work_together(sample);
        let kept = self.series.values().filter(|series| series.is_kept());
        let most = (MAX_TOTAL_POINTS / kept.count().max(1)).clamp(MIN_POINTS, MAX_POINTS);
        for (id, series) in &mut self.series {
            series.end_point(sample.at, most, together.contains(id));
        }
        true
    }

    /// Number of points since the start.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// True if the last sample completed a point.
    pub(super) fn ended_point(&self) -> bool {
        self.ended_point
    }

    /// Forgets all points.
    pub(super) fn clear(&mut self) {
        self.series.clear();
        self.length = Nanos(0);
    }

    /// Points of a device, the oldest first: the last minutes, if the device was active in them. Empty for a device
    /// that was idle all that time.
    pub(super) fn all(&self, id: DeviceId) -> &[Point] {
        self.series
            .get(&id)
            .map_or(&[][..], |series| &series.points)
    }

    /// Points of the last `seconds`, but at least `least` of them. `None` if there are fewer, or they do not cover
    /// that time.
    pub(super) fn last(&self, id: DeviceId, seconds: f64, least: usize) -> Option<&[Point]> {
        let points = self.all(id);
        let mut length = 0.0;
        for count in 1..=points.len() {
            length += points[points.len() - count].seconds;
            // A point is a little shorter or longer than a second.
            if count >= least && length >= 0.97 * seconds {
                return Some(&points[points.len() - count..]);
            }
        }
        None
    }
}

impl Series {
    fn is_kept(&self) -> bool {
        !self.points.is_empty()
    }

    /// Ends a point. `in_use`: the device belongs to an active array, even if it is idle itself.
    fn end_point(&mut self, end: SampleTime, most: usize, in_use: bool) {
        if self.sums.seconds <= 0.0 {
            return;
        }
        let point = std::mem::take(&mut self.sums).point(end);
        if in_use || point.is_active() {
            self.quiet = 0;
        } else {
            self.quiet = self.quiet.saturating_add(1);
            if self.quiet > most || !self.is_kept() {
                self.points = Vec::new();
                return;
            }
        }
        if self.points.len() == self.points.capacity() {
            self.points.reserve_exact(STEP);
        }
        self.points.push(point);
        if self.points.len() >= most + STEP {
            self.points.drain(..self.points.len() - most);
        }
    }
}

impl Point {
    fn is_active(&self) -> bool {
        let is_more = |value: Option<f64>| value.is_some_and(|value| value > 0.0);
        self.all.ops > 0.0 || is_more(self.in_flight_at_end) || is_more(self.busy)
    }
}

/// Members of arrays that did something: one of them may be idle, and is compared with the others. An array that a
/// log does not show is known by its members.
fn at_work_together(sample: &Sample) -> HashSet<DeviceId> {
    let arrays = sample.devices.iter().filter(|device| {
        device.device.kind == DeviceKind::Array
            && (device.all.is_active()
                || is_worked_on(device)
                || sample.below(&device.device).any(|one| one.all.is_active()))
    });
    arrays
        .flat_map(|array| array.device.lies_on.iter().copied())
        .collect()
}

fn is_worked_on(array: &DeviceSample) -> bool {
    array.array.as_ref().is_some_and(ArraySample::is_at_work)
}

/// Requests a second and mean wait of one kind over points. The wait is `None` where no request was timed.
pub(super) fn mean_of(points: &[Point], part: FlowKindPoint) -> FlowPoint {
    let mut sums = PartSums::default();
    let mut seconds = 0.0;
    for point in points {
        let one = part(point);
        let ops = one.ops * point.seconds;
        seconds += point.seconds;
        sums.ops += ops;
        sums.bytes += one.bytes * point.seconds;
        if let Some(wait) = one.wait {
            sums.waited += wait * ops;
            sums.timed += ops;
        }
    }
    if seconds > 0.0 {
        sums.part(seconds)
    } else {
        FlowPoint::default()
    }
}

/// Mean of a value over the points; `None` if a point lacks it.
pub(super) fn mean_known(points: &[Point], value: fn(&Point) -> Option<f64>) -> Option<f64> {
    let mut sum = 0.0;
    for point in points {
        sum += value(point)?;
    }
    (!points.is_empty()).then(|| sum / points.len() as f64)
}

/// The standard deviation of values as a share of their mean; infinite where the mean is zero.
pub(super) fn variation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    if mean > 0.0 {
        square.sqrt() / mean
    } else {
        f64::INFINITY
    }
}

/// Relative variation of counts from point to point at a rate that is granted by the clock: requests in flight
/// complete together, just before or just after the end of a point. Such errors do not accumulate.
pub(super) fn jitter(in_flight: f64, ops_in_point: f64) -> f64 {
    if ops_in_point > 0.0 {
        0.5 * in_flight / ops_in_point
    } else {
        0.0
    }
}

/// Start of a stretch of points.
pub(super) fn beginning(points: &[Point]) -> SampleTime {
    points.first().map_or_else(SampleTime::default, |first| {
        first.end.before(Nanos((first.seconds * 1e9) as u64))
    })
}
