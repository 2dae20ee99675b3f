//! `instance-cap`: the instance limits the sum of its volumes.
//!
//! The volumes' own pages report it. Without pages: the sum over the disks is as flat as a cap makes it, while the
//! disks themselves are not: when one has more, another has less.

use record::sample::DeviceId;
use record::{Severity, Subject};

use crate::watch::format::{digits, percent, rate, time};
use crate::watch::history::{FlowPoint, Point, beginning, mean_of, variation};
use crate::watch::page::{Pages, TimeOverCap};
use crate::watch::plateaus::{HeldRate, at_work, calm_variation, held_in, least_wait, window};
use crate::watch::rule::{Rule, RuleInput, Sighting};

/// Number of points between two tests of the counters.
const TEST_INTERVAL_POINTS: u64 = 5;
/// Number of consecutive observations that must show it.
const OBSERVATIONS: u32 = 2;
/// Minimum ratio of a disk's variation to that of the sum.
const MIN_VARIATION_RATIO: f64 = 3.0;
/// Disks with less than this share of the sum are ignored in that comparison.
const COUNTS: f64 = 0.1;

const ADVICE: &str = "More or faster volumes do not help: use an instance with more storage bandwidth, \
                      or move load to another one.";

/// Rule for a cap that the disks share.
#[derive(Default)]
pub(super) struct InstanceCap {
    pages: Pages,
    observations: u32,
    held: Option<HeldRate>,
}

impl Rule for InstanceCap {
    fn forget(&mut self) {
        self.pages.forget();
        self.observations = 0;
    }

    fn is_instant(&self) -> bool {
        true
    }

    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        // An instance store shares no cap with others, so its page reports none. That counts as evidence too.
        self.pages.take(now.sample, |exceeded| {
            let ops = exceeded.instance_iops.unwrap_or_default();
            (ops, exceeded.instance_bytes.unwrap_or_default())
        });
        let over: Vec<(&str, TimeOverCap)> = now
            .disks()
            .filter_map(|device| {
                let over = self.pages.over(device.device.id)?;
                Some((device.device.name.as_str(), over))
            })
            .collect();
        if !over.is_empty() {
            seen.push(by_statistics_pages(&over));
            return;
        }
        if now.disks().any(|device| self.pages.has(device.device.id)) {
            return;
        }
        if now.history.ended_point() && now.history.count().is_multiple_of(TEST_INTERVAL_POINTS) {
            self.held = held_together(now);
            self.observations = if self.held.is_some() {
                self.observations + 1
            } else {
                0
            };
        }
        if let Some(held) = self.held.filter(|_| self.observations >= OBSERVATIONS) {
            let mut points = now
                .disks()
                .filter_map(|disk| window(now.history, disk.device.id));
            let began = points.next().map(beginning).unwrap_or_default();
            seen.push(by_counters(&held, host(began)));
        }
    }
}

fn host(began: record::sample::SampleTime) -> Sighting {
    Sighting {
        subject: Subject::Host,
        name: "host".to_owned(),
        severity: Severity::Warn,
        began,
        text: String::new(),
        advice: ADVICE,
        figures: Vec::new(),
    }
}

fn by_statistics_pages(over: &[(&str, TimeOverCap)]) -> Sighting {
    let most = |share: fn(&TimeOverCap) -> f64| {
        over.iter().map(|(_, over)| share(over)).fold(0.0, f64::max)
    };
    let (ops, bytes) = (most(|over| over.ops), most(|over| over.bytes));
    let names: Vec<&str> = over.iter().map(|(name, _)| *name).collect();
    let began = over.iter().map(|(_, over)| over.began);
    let began = began.min_by_key(|began| began.elapsed).unwrap_or_default();
    let reports = if names.len() == 1 {
        "reports"
    } else {
        "report"
    };
    Sighting {
        text: format!(
            "{} {reports} that demand exceeded the instance's storage limit for {} of the \
             time.",
            names.join(", "),
            percent(ops.max(bytes)),
        ),
        figures: vec![("over_iops_share", ops), ("over_throughput_share", bytes)],
        ..host(began)
    }
}

fn by_counters(held: &HeldRate, sighting: Sighting) -> Sighting {
    Sighting {
        text: format!(
            "All disks together are constant at {} IOPS ({}), while each of them varies, with {} \
             requests in flight that take {}: they share a limit.",
            digits(held.plateau.ops_per_s),
            rate(held.plateau.bytes_per_s),
            digits(held.in_flight),
            time(held.wait),
        ),
        figures: vec![
            ("iops", held.plateau.ops_per_s),
            ("bytes_per_s", held.plateau.bytes_per_s),
            ("in_flight", held.in_flight),
            ("await_s", held.wait),
        ],
        ..sighting
    }
}

/// The level at which the disks are limited together, if no disk is limited by itself; `None` otherwise.
fn held_together(now: &RuleInput<'_>) -> Option<HeldRate> {
    let series: Vec<(DeviceId, &[Point])> = now
        .disks()
        .filter_map(|device| Some((device.device.id, window(now.history, device.device.id)?)))
        .filter(|(_, points)| mean_of(points, |point| &point.all).ops > 0.0)
        .collect();
    if series.len() < 2 {
        return None;
    }
    let length = series.iter().map(|(_, points)| points.len()).min()?;
    let sum: Vec<Point> = (0..length)
        .map(|back| {
            add(series
                .iter()
                .filter_map(|(_, points)| points.get(points.len() - 1 - back)))
        })
        .rev()
        .collect::<Option<_>>()?;
    let held = held_in(&sum, || {
        let waits = series
            .iter()
            .filter_map(|(id, _)| least_wait(now.history.all(*id), |point| &point.all));
        waits.min_by(f64::total_cmp)
    })?;
    let at_work = at_work(&sum);
    let rates = |points: &[Point]| -> Vec<f64> {
        let tail = points[points.len() - length..].iter().zip(&at_work);
        tail.filter_map(|(point, works)| works.then_some(point.all.ops))
            .collect()
    };
    let whole = mean_of(&sum, |point| &point.all).ops;
    let flat = calm_variation(&rates(&sum), 1.0);
    let wild = series.iter().filter(|(_, points)| {
        let share = mean_of(points, |point| &point.all).ops / whole;
        share >= COUNTS && variation(&rates(points)) >= MIN_VARIATION_RATIO * flat.max(0.005)
    });
    (wild.count() >= 2).then_some(held)
}

/// The sum of several disks' points of one moment.
fn add<'a>(points: impl Iterator<Item = &'a Point>) -> Option<Point> {
    let mut sum: Option<Point> = None;
    for point in points {
        match &mut sum {
            None => sum = Some(*point),
            Some(sum) => {
                sum.all = flow_sum(&sum.all, &point.all);
                sum.in_flight = sum.in_flight.zip(point.in_flight).map(|(a, b)| a + b);
                sum.busy = sum.busy.zip(point.busy).map(|(a, b)| a.max(b));
            }
        }
    }
    sum
}

fn flow_sum(a: &FlowPoint, b: &FlowPoint) -> FlowPoint {
    let ops = a.ops + b.ops;
    let waited = |part: &FlowPoint| part.wait.map_or(0.0, |wait| wait * part.ops);
    FlowPoint {
        ops,
        bytes: a.bytes + b.bytes,
        wait: (ops > 0.0).then(|| (waited(a) + waited(b)) / ops),
    }
}
