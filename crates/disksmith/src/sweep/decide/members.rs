//! Where more members stop helping and why, whether odd numbers of them do worse, and whether one of
//! them is slow.

use study::compare::RatioInterval;
use study::scaling::{Point, knee, odd_against_even};

use crate::sweep::record::{Probe, SweepRecord, Value};

use super::observed::Observed;
use super::scaling::{Explained, per_request, rate};
use super::words::{hundredths, range, shown};

/// Less than this share of what it should be is clearly less: probes of a few seconds wander by some
/// percent.
const CLEARLY: f64 = 0.9;

/// Where the rate stops growing, and whose limit that is.
pub(super) fn scaling(observed: &Observed, curves: &[Explained]) -> String {
    let Some(best) = curves.first() else {
        return "Where more members stop helping was not measured: no layout was swept with two \
                numbers of members."
            .to_owned();
    };
    let points = &best.curve.points;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    let figure = rate(observed);
    let value = |value: f64| shown(&figure, value);
    let label = &best.curve.label;
    let at = |members: usize| points.iter().find(|point| point.members == members);
    let growth = match knee(&studied(best)).and_then(at) {
        Some(knee) => format!(
            "{label} stops scaling at {} members: {} there and {} with {}.",
            knee.members,
            value(knee.value.mean),
            value(last.value.mean),
            last.members
        ),
        None => format!(
            "No end of scaling is shown for {label}: {} with {} members and {} with {}.",
            value(first.value.mean),
            first.members,
            value(last.value.mean),
            last.members
        ),
    };
    format!("{growth} {}", limit(observed, best))
}

/// Whose limit the largest array of a curve meets: the instance's, its own, or its volumes'.
fn limit(observed: &Observed, curve: &Explained) -> String {
    let unknown = || {
        "Whose limit that is cannot be told: the volumes were not measured by themselves."
            .to_owned()
    };
    let (Some(probe), Some(last)) = (&observed.record.probe, curve.curve.points.last()) else {
        return unknown();
    };
    let layout = curve.layouts.last().copied();
    let Some(io) = layout.and_then(|layout| per_request(observed, layout)) else {
        return unknown();
    };
    let Some(alone) = sum(probe.alone.get(..last.members).unwrap_or_default()) else {
        return unknown();
    };
    let figure = rate(observed);
    let value = |value: f64| shown(&figure, value);
    let reached = last.value.mean * io;
    // In the largest array's requests: a write to copies is as many requests to the volumes.
    let makes = if io > 1.001 {
        format!(", which are {} to the volumes", value(reached))
    } else {
        String::new()
    };
    let array = format!(
        "{} of {} members{makes}",
        value(last.value.mean),
        last.members
    );
    let (bound, whose) = match cap(probe) {
        Some(cap) if cap.together < alone => (cap.together, cap.text(&value)),
        _ => (
            alone,
            format!(
                "The {} volumes give {} one after another, added up",
                last.members,
                value(alone)
            ),
        ),
    };
    let share = reached / bound;
    let percent = hundredths(share);
    if last.value.high.map_or(share, |high| high * io / bound) < CLEARLY {
        format!(
            "{whose}; {array} is {percent} % of that: the rest is lost in the array or the file \
             system, not in the volumes."
        )
    } else if bound < alone {
        format!("{whose}; {array} is {percent} % of that: the instance's limit is reached.")
    } else {
        format!("{whose}; {array} is {percent} % of that: the volumes' own sum is the limit.")
    }
}

/// A limit on all volumes together.
struct Cap {
    volumes: usize,
    alone: f64,
    together: f64,
}

impl Cap {
    fn text(&self, value: &dyn Fn(f64) -> String) -> String {
        format!(
            "All {} volumes asked at once give {} and one after another {}, so the instance or its \
             host limits them",
            self.volumes,
            value(self.together),
            value(self.alone)
        )
    }
}

/// The limit of the instance or its host, where all volumes at once give clearly less than the sum of
/// each alone.
fn cap(probe: &Probe) -> Option<Cap> {
    let (alone, together) = (sum(&probe.alone)?, sum(&probe.together)?);
    let least = sum_of(&probe.alone, |value| value.low.unwrap_or(value.mean));
    let most = sum_of(&probe.together, |value| value.high.unwrap_or(value.mean));
    let clear =
        probe.alone.len() == probe.together.len() && together < CLEARLY * alone && most < least;
    clear.then_some(Cap {
        volumes: probe.alone.len(),
        alone,
        together,
    })
}

/// Whether an even number of members does better than an odd one.
pub(super) fn odd_and_even(curves: &[Explained]) -> String {
    let found = curves
        .iter()
        .find_map(|one| Some((one, odd_against_even(&studied(one))?)));
    let Some((one, share)) = found else {
        return "Whether an even number of members does better than an odd one was not measured: no \
                odd number was swept together with both of its even neighbours."
            .to_owned();
    };
    let label = &one.curve.label;
    let reach = |bounds: String| {
        format!(
            "odd numbers of members reach {} %{bounds} of what lies between their even neighbours \
             ({label}).",
            hundredths(share.ratio)
        )
    };
    let Some(interval) = share.interval else {
        return format!("Without an interval: {}", reach(String::new()));
    };
    let bounds = format!(" ({})", range(interval.low, interval.high));
    match interval {
        RatioInterval { high, .. } if high < 1.0 => {
            format!(
                "Even numbers of members do better than odd ones: {}",
                reach(bounds)
            )
        }
        RatioInterval { low, .. } if low > 1.0 => {
            format!(
                "Odd numbers of members do better than even ones: {}",
                reach(bounds)
            )
        }
        _ => format!(
            "No difference between odd and even numbers of members is shown: {}",
            reach(bounds)
        ),
    }
}

/// The volumes that are clearly slower than the others, and what that costs.
pub(super) fn slow(record: &SweepRecord) -> Vec<String> {
    let Some(probe) = &record.probe else {
        return Vec::new();
    };
    let count = probe.alone.len();
    let Some(usual) = median(&probe.alone).filter(|_| count > 2) else {
        return Vec::new();
    };
    let slow = probe
        .alone
        .iter()
        .zip(&record.settings.devices)
        .filter(|(value, _)| {
            value.mean < CLEARLY * usual && value.high.unwrap_or(value.mean) < usual
        });
    slow.map(|(value, volume)| {
        let figure = crate::sweep::figure::Figure::of(
            &probe.phase,
            crate::sweep::figure::Metric::Iops,
        );
        let all = count as f64;
        format!(
            "{} is slow: it gives {} alone, {} % of the median of the {count} volumes ({}). Stripes \
             wait for their slowest member, so that all {count} with it give about {} at best \
             instead of {}: replace it, or leave it out.",
            volume.path.display(),
            shown(&figure, value.mean),
            hundredths(value.mean / usual),
            shown(&figure, usual),
            shown(&figure, all * value.mean),
            shown(&figure, all * usual)
        )
    })
    .collect()
}

/// A curve as `study` takes it.
fn studied(one: &Explained) -> Vec<Point> {
    let points = one.curve.points.iter().map(|point| {
        let value = point.value;
        let half = value
            .low
            .zip(value.high)
            .map(|(low, high)| 0.5 * (high - low));
        Point {
            members: point.members,
            value: value.mean,
            half_width: half.map(|half| half / value.mean),
            ideal: point.ideal,
        }
    });
    points.collect()
}

/// The sum of rates; `None` where there is none, or one is no rate.
fn sum(values: &[Value]) -> Option<f64> {
    let sum = sum_of(values, |value| value.mean);
    let sensible = values.iter().all(|value| value.mean >= 0.0) && sum > 0.0 && sum.is_finite();
    sensible.then_some(sum)
}

fn sum_of(values: &[Value], of: impl Fn(&Value) -> f64) -> f64 {
    values.iter().map(of).sum()
}

fn median(values: &[Value]) -> Option<f64> {
    let mut means: Vec<f64> = values.iter().map(|value| value.mean).collect();
    means.sort_by(f64::total_cmp);
    let count = means.len();
    let low = means.get(count.checked_sub(1)? / 2)?;
    Some(0.5 * (low + means.get(count / 2)?))
}
