//! `scrub-hurts`: an array's users wait longer while md checks or rebuilds it.
//!
//! The rule compares the mean wait of the array's own requests during the work with that of the last minutes without
//! it, at no higher load. If the watch began during the work, there is nothing to compare with, and nothing is
//! reported. Kernels before 5.14 do not time an array's requests; there the waits of the members are used, which
//! include those of the check.
//!
//! Mirrors delay requests before they are timed: raid1 and raid10 let nothing pass the place that they check
//! (`wait_barrier` in drivers/md/raid10.c comes before the request is counted). There the wait does not show, but the
//! rate does: it falls when the work begins, while programs wait for disks as much as before (PSI). Their wait is only
//! known for the whole host, and may be for another disk, all day. Therefore the rate must fall just when the work
//! begins, and not to zero: a rate that falls later is that of a decreasing load.

use std::collections::{HashMap, VecDeque};

use record::Severity;
use record::sample::{DeviceId, DeviceSample, SyncAction};

use crate::median::median;
use crate::watch::format::{digits, time};
use crate::watch::history::{DeviceHistory, FlowPoint, Point, beginning, mean_of};
use crate::watch::members::arrays;
use crate::watch::rule::{Rule, RuleInput, Sighting};

/// Maximum number of remembered points without work, and the minimum number for a comparison.
const MAX_CALM_POINTS: usize = 120;
const MIN_CALM_POINTS: usize = 20;
/// Length of the examined part of the work in seconds, and minimum number of points.
const DURING_S: f64 = 10.0;
const MIN_POINTS_DURING: usize = 5;
/// Number of points whose pressure is examined.
const RECENT_POINTS: usize = 10;
/// Minimum ratio of the wait to that without work at which the work harms the foreground.
const MIN_WAIT_RATIO: f64 = 2.0;
/// Minimum difference of waits that is reported, in seconds.
const MIN_WAIT_DIFFERENCE_S: f64 = 0.001;
/// Maximum ratio of the load to that before: a higher load may be the reason.
const LOAD: f64 = 1.3;
/// Maximum share of the earlier rate, if waits do not show the harm.
const MAX_RATE_SHARE: f64 = 0.6;
/// Number of points from the beginning of the work in which the rate must fall, compared with as many just before it.
const FALL_POINTS: usize = 10;
/// Minimum rate in requests a second after the fall: an idle array has no foreground to slow down.
const MIN_OPS_AFTER_FALL: f64 = 1.0;
/// Maximum number of points between the last one without work and the first one with it.
const MAX_POINTS_BETWEEN: u64 = 3;
/// Minimum share of the time for which programs wait then, and minimum ratio to the share before.
const PRESSURE: f64 = 0.3;
const AS_MUCH: f64 = 0.8;
/// Minimum number of requests a second: with fewer there is no foreground to slow down.
const MIN_OPS: f64 = 5.0;

const ADVICE: &str = "The check or rebuild takes I/O from the foreground. Slow it down (sync_speed_max of the array in sysfs, or \
                      sync_max to pause it), or run it when the load is low (disksmith scrub keeps \
                      a latency target).";

/// Compares waits with and without work.
#[derive(Default)]
pub(super) struct ScrubHurts {
    /// The last points without work.
    calm: HashMap<DeviceId, VecDeque<CalmPoint>>,
    /// Start of the work of arrays with work in progress.
    begun: HashMap<DeviceId, FirstPoints>,
    /// Share of the time for which programs waited for disks, in the last points.
    pressure: VecDeque<f64>,
}

/// A point without work.
#[derive(Clone, Copy, Debug)]
struct CalmPoint {
    /// The array's rate and wait.
    part: FlowPoint,
    /// Share of the time for which programs waited for disks; `None` if unknown.
    pressure: Option<f64>,
    /// Number of the point among all points.
    number: u64,
}

/// The first points of work.
#[derive(Debug, Default)]
struct FirstPoints {
    /// Requests a second in each.
    rates: Vec<f64>,
    /// Requests a second just before, if the array got requests.
    before: Option<f64>,
}

impl FirstPoints {
    /// True if the rate fell at the beginning of the work, and not to zero.
    fn is_a_fall(&self) -> bool {
        let at_once = median(self.rates.clone()).filter(|_| self.rates.len() >= MIN_POINTS_DURING);
        at_once.zip(self.before).is_some_and(|(at_once, before)| {
            (MIN_OPS_AFTER_FALL..=MAX_RATE_SHARE * before).contains(&at_once)
        })
    }

    /// The last points of an array, limited to those of the work.
    fn of_work<'a>(&self, points: &'a [Point]) -> &'a [Point] {
        let known = self.rates.len();
        let before = points.len().saturating_sub(known);
        if known < FALL_POINTS {
            &points[before..]
        } else {
            points
        }
    }
}

impl Rule for ScrubHurts {
    fn forget(&mut self) {
        self.calm.clear();
        self.begun.clear();
        self.pressure.clear();
    }

    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        self.calm.retain(|id, _| now.sample.device(*id).is_some());
        self.begun.retain(|id, _| now.sample.device(*id).is_some());
        let pressure = now.sample.host.pressure.as_ref();
        let pressure = pressure.and_then(|pressure| Some(pressure.some.stalled?.0));
        push(&mut self.pressure, pressure.unwrap_or(0.0), RECENT_POINTS);
        for array in arrays(now.sample) {
            let id = array.device.id;
            // A pending action does nothing yet.
            let at_work = array.array.as_ref().filter(|state| state.is_at_work());
            match at_work.and_then(|state| state.action) {
                Some(action) => {
                    self.begin(now, id);
                    seen.extend(self.compare(now, array, action));
                }
                None => {
                    self.begun.remove(&id);
                    if let Some(part) = last(now.history, now, array) {
                        let number = now.history.count();
                        let point = CalmPoint {
                            part,
                            pressure,
                            number,
                        };
                        push(self.calm.entry(id).or_default(), point, MAX_CALM_POINTS);
                    }
                }
            }
        }
    }
}

/// Adds the newest value, and drops the oldest ones beyond `most`.
fn push<T>(queue: &mut VecDeque<T>, newest: T, most: usize) {
    queue.push_back(newest);
    if queue.len() > most {
        queue.pop_front();
    }
}

/// An array's last point, if its requests were timed.
fn last(history: &DeviceHistory, now: &RuleInput<'_>, array: &DeviceSample) -> Option<FlowPoint> {
    let points = history.all(array.device.id);
    let part = points.last()?.all;
    let wait = part.wait.or_else(|| {
        members_wait(now, array, |points| {
            points.last().map_or(&[], std::slice::from_ref)
        })
    });
    (part.ops >= MIN_OPS && wait.is_some()).then_some(FlowPoint { wait, ..part })
}

/// The members' mean wait over selected points.
fn members_wait(
    now: &RuleInput<'_>,
    array: &DeviceSample,
    choose: impl Fn(&[Point]) -> &[Point],
) -> Option<f64> {
    let waits = now.sample.below(&array.device).filter_map(|member| {
        let points = now.history.all(member.device.id);
        mean_of(choose(points), |point| &point.all).wait
    });
    median(waits.collect())
}

impl ScrubHurts {
    /// Adds the last point of an array with work in progress, if it is one of the first.
    fn begin(&mut self, now: &RuleInput<'_>, id: DeviceId) {
        let calm = self.calm.get(&id);
        let beginning = self.begun.entry(id).or_insert_with(|| FirstPoints {
            rates: Vec::new(),
            before: calm.and_then(|calm| rate_before(calm, now.history.count())),
        });
        if let Some(point) = now.history.all(id).last()
            && beginning.rates.len() < FALL_POINTS
        {
            beginning.rates.push(point.all.ops);
        }
    }

    fn compare(
        &self,
        now: &RuleInput<'_>,
        array: &DeviceSample,
        action: SyncAction,
    ) -> Option<Sighting> {
        let calm = self.calm.get(&array.device.id)?;
        if calm.len() < MIN_CALM_POINTS {
            return None;
        }
        let before = TypicalPoint::of(calm)?;
        let points = now
            .history
            .last(array.device.id, DURING_S, MIN_POINTS_DURING)?;
        let beginning_of_work = self.begun.get(&array.device.id)?;
        let points = beginning_of_work.of_work(points);
        let count = points.len();
        if count < MIN_POINTS_DURING {
            return None;
        }
        let during = mean_of(points, |point| &point.all);
        let wait = during.wait.or_else(|| {
            members_wait(now, array, |points| {
                &points[points.len().saturating_sub(count)..]
            })
        })?;
        let waits =
            wait >= MIN_WAIT_RATIO * before.wait && wait - before.wait >= MIN_WAIT_DIFFERENCE_S;
        let waits = waits && during.ops >= MIN_OPS && during.ops <= LOAD * before.ops;
        let text = if waits {
            format!(
                "Requests to {} take {} during its {}, compared with {} before, at {} IOPS.",
                array.device.name,
                time(wait),
                action.name(),
                time(before.wait),
                digits(during.ops),
            )
        } else if (MIN_OPS_AFTER_FALL..=MAX_RATE_SHARE * before.ops).contains(&during.ops)
            && beginning_of_work.is_a_fall()
            && self.is_wanted(&before)
        {
            format!(
                "{} completes {} IOPS during its {}, compared with {} before, while programs wait for disks \
                 as much as before.",
                array.device.name,
                digits(during.ops),
                action.name(),
                digits(before.ops),
            )
        } else {
            return None;
        };
        Some(Sighting {
            text,
            advice: ADVICE,
            figures: vec![
                ("await_s", wait),
                ("await_s_before", before.wait),
                ("iops", during.ops),
                ("iops_before", before.ops),
            ],
            ..Sighting::of(array, Severity::Warn, beginning(points))
        })
    }

    /// True if programs wait for disks, and as much as before.
    fn is_wanted(&self, before: &TypicalPoint) -> bool {
        let lately = self.pressure.iter().sum::<f64>() / self.pressure.len().max(1) as f64;
        let enough = |pressure: f64| lately >= PRESSURE.max(AS_MUCH * pressure);
        before.pressure.is_some_and(enough)
    }
}

/// Requests a second in the last points without work, if the point of this number follows them.
fn rate_before(calm: &VecDeque<CalmPoint>, number: u64) -> Option<f64> {
    let newest = calm.back()?;
    let last = calm.iter().rev().take(FALL_POINTS);
    let rate = median(last.map(|point| point.part.ops).collect());
    rate.filter(|_| number - newest.number <= MAX_POINTS_BETWEEN)
}

/// The typical point without work.
struct TypicalPoint {
    wait: f64,
    ops: f64,
    pressure: Option<f64>,
}

impl TypicalPoint {
    fn of(calm: &VecDeque<CalmPoint>) -> Option<TypicalPoint> {
        let median_of = |value: fn(&CalmPoint) -> Option<f64>| {
            let values = calm.iter().filter_map(value);
            median(values.collect())
        };
        Some(TypicalPoint {
            wait: median_of(|point| point.part.wait)?,
            ops: median_of(|point| Some(point.part.ops))?,
            pressure: median_of(|point| point.pressure),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::watch::WatchEvent;
    use record::sample::{
        ArraySample, Device, Flow, Fraction, HostSample, PerSecond, Pressure, PressureLine,
        Progress, Sample, SampleTime,
    };
    use record::{Bytes, Nanos};

    use super::*;
    use crate::watch::EventCode;
    use crate::watch::{Settings, Watch};

    /// A second of a mirror that completes `iops` requests, on a host where programs wait for some disk for half of
    /// the time.
    fn second(number: u64, iops: f64, is_checked: bool) -> Sample {
        let device = Device::by_name(DeviceId(0), "md0", SampleTime::default());
        let mut device = DeviceSample::unknown(Arc::new(device));
        device.read = Flow {
            iops: Some(PerSecond(iops)),
            wait: (iops > 0.0).then_some(Nanos(2_000_000)),
            ..Flow::default()
        };
        device.sum_up();
        device.array = Some(ArraySample {
            action: Some(match is_checked {
                true => SyncAction::Check,
                false => SyncAction::Idle,
            }),
            position: is_checked.then_some(Progress {
                done: Bytes::mib(1),
                of: Bytes::mib(2),
            }),
            ..ArraySample::default()
        });
        let some = PressureLine {
            stalled: Some(Fraction(0.5)),
            ..PressureLine::default()
        };
        Sample {
            at: SampleTime {
                wall: None,
                elapsed: Nanos::from_secs(number),
            },
            length: Nanos::from_secs(1),
            devices: vec![device],
            host: HostSample {
                pressure: Some(Pressure { some, full: None }),
                ..HostSample::default()
            },
            ..Sample::default()
        }
    }

    /// The second in which the finding of a check that begins at 60 s appears, and the finding; `iops` gives the rate
    /// of the array by second.
    fn event(iops: fn(u64) -> f64) -> Option<(u64, WatchEvent)> {
        let mut watch = Watch::new(Settings::default());
        (1..240).find_map(|number| {
            let sample = second(number, iops(number), number > 60);
            let mut events = watch
                .observe(&sample)
                .into_iter()
                .map(|change| change.event);
            let event = events.find(|event| event.code == EventCode::ScrubHurts)?;
            Some((number, event))
        })
    }

    fn found(iops: fn(u64) -> f64) -> Option<u64> {
        event(iops).map(|(number, _)| number)
    }

    #[test]
    fn a_rate_that_falls_when_a_check_begins_is_found() {
        let falls = |number: u64| if number > 60 { 30.0 } else { 100.0 };
        let (found, event) = event(falls).unwrap();
        assert!((61..80).contains(&found), "{found}");
        // The sentence and its figures are those of the check alone.
        assert!(event.text.contains("completes 30"), "{}", event.text);
        let iops = event.figures.iter().find(|figure| figure.key == "iops");
        assert_eq!(iops.unwrap().value, 30.0);
        assert_eq!(event.began.elapsed, Nanos::from_secs(60));
    }

    #[test]
    fn a_load_that_grows_less_during_a_check_is_not_hurt_by_it() {
        let evening = |number: u64| if number > 120 { 30.0 } else { 100.0 };
        assert_eq!(found(evening), None);
        let before = |number: u64| if number > 50 { 30.0 } else { 100.0 };
        assert_eq!(found(before), None);
    }

    #[test]
    fn a_load_that_ends_is_not_hurt_by_a_check() {
        let ends = |number: u64| if number > 60 { 0.5 } else { 100.0 };
        assert_eq!(found(ends), None);
        let ended = |number: u64| match number {
            ..40 => 100.0,
            40..=80 => 0.0,
            _ => 30.0,
        };
        assert_eq!(found(ended), None);
    }
}
