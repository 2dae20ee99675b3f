//! `burst-spent`: a level that was held for at least a minute is followed by a lower one, at the same demand.
//!
//! The step is found as in [`crate::level`]. It is the end of burst credit if the programs' demand is unchanged (as
//! many requests are in flight, of the same size and mix) and the lower level is flat, as grants by the clock are. The
//! rate of a disk that is slowed by something else wanders.
//!
//! Equal members of an array spend their credit equally. If one alone becomes slower, with its usual share of requests
//! in flight, that is `slow-member`.

use std::collections::HashMap;

use record::Severity;
use record::sample::{DeviceId, DeviceSample, SampleTime};

use crate::level::{MIN_SLICES, find_drop_where};
use crate::median::median;
use crate::watch::format::{digits, rate, time};
use crate::watch::history::{Point, jitter, mean_known, mean_of, variation};
use crate::watch::members::arrays;
use crate::watch::rule::{Rule, RuleInput, Sighting};

/// Number of points that are examined, and interval between examinations.
const WINDOW: usize = 240;
const TEST_INTERVAL_POINTS: u64 = 10;
/// Minimum time for which the first and the second level must be held, in seconds.
const MIN_FIRST_LEVEL_S: f64 = 45.0;
const MIN_SECOND_LEVEL_S: f64 = 15.0;
/// Maximum ratio of the second level to the first.
const MAX_LEVEL_RATIO: f64 = 0.75;
/// Maximum variation of the second level as a share of itself, in addition to jitter.
const FLAT_VARIATION: f64 = 0.05;
/// Minimum share of the earlier demand.
const MIN_DEMAND_SHARE: f64 = 0.7;
/// Minimum ratio of the latency after to that before.
const MIN_LATENCY_RATIO: f64 = 1.15;
/// Factor up to which sizes and mixes count as equal.
const EQUAL_FACTOR: f64 = 1.5;
/// Share of the first level at which the event is over.
const RECOVERED: f64 = 0.9;
/// Number of points that are examined for recovery.
const RECENT_POINTS: usize = 10;

const ADVICE: &str = "The volume or the instance exceeded its baseline until its burst credit was used up; credit returns \
                      while it is idle. For a sustained load, provision the higher level (gp3 and provisioned IOPS \
                      have no burst credit).";

/// A level that was lost.
#[derive(Clone, Copy, Debug)]
struct LostLevel {
    at: SampleTime,
    before: Level,
    after: Level,
}

/// Mean figures of a disk while its rate was level.
#[derive(Clone, Copy, Debug)]
struct Level {
    ops: f64,
    bytes: f64,
    wait: f64,
    in_flight: f64,
    read_share: f64,
}

/// Rule for lost levels.
#[derive(Default)]
pub(super) struct BurstSpent {
    spent: HashMap<DeviceId, LostLevel>,
}

impl Rule for BurstSpent {
    fn forget(&mut self) {
        self.spent.clear();
    }

    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        let is_time = now.history.count().is_multiple_of(TEST_INTERVAL_POINTS);
        let mut lasting = HashMap::new();
        for device in now.disks() {
            let id = device.device.id;
            let points = now.history.all(id);
            let before = self.spent.get(&id).filter(|spent| spent.persists(points));
            let found = || {
                let spent = is_time.then(|| find(points)).flatten()?;
                (!is_slow_alone(now, id, spent.at)).then_some(spent)
            };
            if let Some(spent) = before.copied().or_else(found) {
                lasting.insert(id, spent);
                seen.push(sighting(device, &spent));
            }
        }
        self.spent = lasting;
    }
}

impl LostLevel {
    /// True if the level is still low, and the demand still high.
    fn persists(&self, points: &[Point]) -> bool {
        let tail = &points[points.len().saturating_sub(RECENT_POINTS)..];
        Level::of(tail).is_some_and(|now| {
            let is_low =
                now.ops < RECOVERED * self.before.ops || now.bytes < RECOVERED * self.before.bytes;
            is_low && now.in_flight >= 0.5 * self.after.in_flight
        })
    }
}

impl Level {
    fn of(points: &[Point]) -> Option<Level> {
        let all = mean_of(points, |point| &point.all);
        let read = mean_of(points, |point| &point.read);
        Some(Level {
            ops: all.ops,
            bytes: all.bytes,
            wait: all.wait?,
            in_flight: mean_known(points, |point| point.in_flight)?,
            read_share: read.ops / all.ops,
        })
    }

    fn size(&self) -> f64 {
        self.bytes / self.ops
    }
}

/// True if a device has siblings in an array, and their waits (median of the ratios) did not rise after a moment.
fn is_slow_alone(now: &RuleInput<'_>, id: DeviceId, at: SampleTime) -> bool {
    let of_it = |array: &&DeviceSample| array.device.lies_on.contains(&id);
    let members = arrays(now.sample).filter(of_it);
    let members = members.flat_map(|array| now.sample.below(&array.device));
    let slower = members
        .filter(|member| member.device.id != id)
        .filter_map(|member| {
            let points = now.history.all(member.device.id);
            let split = points.partition_point(|point| point.end.elapsed <= at.elapsed);
            let (before, after) = points.split_at(split);
            let wait = |points| mean_of(points, |point| &point.all).wait;
            Some(wait(after)? / wait(before)?)
        });
    median(slower.collect()).is_some_and(|slower| slower < MIN_LATENCY_RATIO)
}

/// The level that was lost within the points; `None` without one.
fn find(points: &[Point]) -> Option<LostLevel> {
    let points = &points[points.len().saturating_sub(WINDOW)..];
    if points.len() < MIN_SLICES {
        return None;
    }
    let rates: [fn(&Point) -> f64; 2] = [|point| point.all.ops, |point| point.all.bytes];
    rates.into_iter().find_map(|rate| {
        let series: Vec<f64> = points.iter().map(rate).collect();
        let drop = find_drop_where(&series, |at| lost_at(points, at, rate).is_some())?;
        lost_at(points, drop.at, rate)
    })
}

/// The level that was lost at a point, if burst credit ended there.
fn lost_at(points: &[Point], at: usize, rate: fn(&Point) -> f64) -> Option<LostLevel> {
    let (first, second) = points.split_at(at);
    let seconds = |points: &[Point]| points.iter().map(|point| point.seconds).sum::<f64>();
    if seconds(first) < MIN_FIRST_LEVEL_S || seconds(second) < MIN_SECOND_LEVEL_S {
        return None;
    }
    // The position of the step is only exact to a few points.
    let settled = &second[second.len() / 10..];
    let spent = LostLevel {
        at: first.last()?.end,
        before: Level::of(first)?,
        after: Level::of(settled)?,
    };
    let lower: Vec<f64> = settled.iter().map(rate).collect();
    let in_point = spent.after.ops * seconds(settled) / settled.len() as f64;
    let flat = FLAT_VARIATION + jitter(spent.after.in_flight, in_point);
    (is_spent(&spent) && variation(&lower) <= flat).then_some(spent)
}

fn is_spent(spent: &LostLevel) -> bool {
    let (before, after) = (&spent.before, &spent.after);
    let lower =
        after.ops <= MAX_LEVEL_RATIO * before.ops || after.bytes <= MAX_LEVEL_RATIO * before.bytes;
    let size = after.size() / before.size();
    let alike = (1.0 / EQUAL_FACTOR..=EQUAL_FACTOR).contains(&size)
        && (after.read_share - before.read_share).abs() <= 0.25;
    let wanted = after.in_flight >= (MIN_DEMAND_SHARE * before.in_flight).max(0.9);
    lower && alike && wanted && after.wait >= MIN_LATENCY_RATIO * before.wait
}

fn sighting(device: &DeviceSample, spent: &LostLevel) -> Sighting {
    let (before, after) = (&spent.before, &spent.after);
    Sighting {
        text: format!(
            "{} fell from {} IOPS ({}) to {} IOPS ({}) at the same demand, and requests take {} \
             compared with {} before: its burst credit is used up.",
            device.device.name,
            digits(before.ops),
            rate(before.bytes),
            digits(after.ops),
            rate(after.bytes),
            time(after.wait),
            time(before.wait),
        ),
        advice: ADVICE,
        figures: vec![
            ("iops_before", before.ops),
            ("iops_after", after.ops),
            ("bytes_per_s_before", before.bytes),
            ("bytes_per_s_after", after.bytes),
            ("await_s_before", before.wait),
            ("await_s_after", after.wait),
        ],
        ..Sighting::of(device, Severity::Warn, spent.at)
    }
}

#[cfg(test)]
mod tests {
    use record::raid::Level;

    use crate::simulate::Rng;
    use crate::watch::simulated::{Disk, Host};
    use crate::watch::{EventCode, WatchEvent};

    /// Of four disks, those with a finding, if the credit of `spent` of them is spent.
    fn found(level: Option<Level>, spent: usize) -> Vec<String> {
        let capped = Disk {
            cap: Some(3000.0),
            ..Disk::healthy(12.0)
        };
        let mut host = Host::of(vec![capped; 4]);
        host.level = level;
        let events = host.play(200, &mut Rng::new(8), |host, second| {
            if second == 100 {
                for disk in &mut host.disks[..spent] {
                    disk.cap = Some(1000.0);
                }
            }
        });
        let is_spent = |event: &WatchEvent| event.code == EventCode::BurstSpent;
        let mut names: Vec<String> = events
            .into_iter()
            .filter(is_spent)
            .map(|event| event.name)
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_member_that_alone_becomes_slower_has_not_spent_its_credit() {
        assert_eq!(found(None, 1), ["d0"]);
        assert_eq!(found(Some(Level::Zero), 1), [""; 0]);
        assert_eq!(found(Some(Level::Zero), 4), ["d0", "d1", "d2", "d3"]);
    }
}
