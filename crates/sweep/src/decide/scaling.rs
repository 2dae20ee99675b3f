//! Growth of the rate with the members, and the sum of their own rates.

use std::collections::BTreeMap;
use std::path::Path;

use record::Workload;

use crate::decided::{Curve, Point};
use crate::figure::{Figure, Metric};
use crate::layout::{Factor, Layout};
use crate::measure::bench_args;
use crate::price::write_io;
use crate::record::SweepRecord;
use bench::suite;

use super::observed::{Observed, is_positive};
use super::summary::in_average_block;

/// A curve with what is needed to explain it.
pub(super) struct Explained {
    /// The curve.
    pub curve: Curve,
    /// The layouts of its points.
    pub layouts: Vec<usize>,
}

/// The rate whose growth is looked at: the objective's own, or the requests a second of its phase
/// where it is a latency.
pub(super) fn rate(observed: &Observed) -> Figure {
    let figure = observed.speed();
    if figure.metric.is_latency() {
        return Figure {
            metric: Metric::Iops,
            ..figure
        };
    }
    figure
}

/// One curve for each combination of the other factors of which two numbers of members or more were
/// measured, the one that reaches the most first.
pub(super) fn of(observed: &Observed) -> Vec<Explained> {
    let values = in_average_block(observed, &rate(observed));
    let value = |layout: usize| values.get(layout).copied().flatten();
    let layouts = &observed.record.layouts;
    let mut groups: BTreeMap<Vec<String>, BTreeMap<usize, usize>> = BTreeMap::new();
    for (at, layout) in layouts.iter().enumerate() {
        let others = Factor::ALL
            .into_iter()
            .filter(|factor| *factor != Factor::Members);
        let key = others.map(|factor| layout.setting(factor)).collect();
        if value(at).is_some() {
            groups
                .entry(key)
                .or_default()
                .entry(layout.members)
                .or_insert(at);
        }
    }
    let mut curves: Vec<Explained> = groups
        .values()
        .filter(|members| members.len() > 1)
        .map(|members| {
            let layouts: Vec<usize> = members.values().copied().collect();
            let points = layouts.iter().filter_map(|at| {
                Some(Point {
                    members: observed.record.layouts.get(*at)?.members,
                    value: value(*at)?,
                    ideal: ideal(observed, *at),
                })
            });
            let curve = Curve {
                label: layouts
                    .first()
                    .map_or_else(String::new, |at| label(observed, *at)),
                points: points.collect(),
            };
            Explained { curve, layouts }
        })
        .collect();
    let most = |one: &Explained| {
        let values = one.curve.points.iter().map(|point| point.value.mean);
        values.fold(0.0, f64::max)
    };
    curves.sort_by(|a, b| most(b).total_cmp(&most(a)));
    curves
}

/// Common part of the points of a curve: `RAID 10, 256 KiB, xfs`.
fn label(observed: &Observed, layout: usize) -> String {
    let layout = &observed.record.layouts[layout];
    let mut parts = vec![layout.level_name()];
    parts.extend(layout.chunk.map(|chunk| chunk.to_string()));
    parts.push(layout.fs.word().to_owned());
    parts.extend(layout.scheduler.clone());
    parts.join(", ")
}

/// Sum of the own rates of a layout's members, as requests of the application. Each was asked with all
/// requests that the phase has in flight, of which an array's members get a share each: with few of them the
/// array may not reach this whatever it is.
fn ideal(observed: &Observed, layout: usize) -> Option<f64> {
    let members = observed.record.layouts.get(layout)?.members;
    let alone = &observed.record.probe.as_ref()?.alone;
    let alone = alone.get(..members)?.iter().map(|value| value.mean).sum();
    Some(alone)
        .filter(|sum| is_positive(*sum))
        .zip(per_request(observed, layout))
        .map(|(sum, io)| sum / io)
}

/// Number of requests to its members that a layout makes of one of the application's, with the share of
/// writes that the probed phase has. `None` where the probe was of another phase or the rate is not one of
/// requests.
pub(super) fn per_request(observed: &Observed, layout: usize) -> Option<f64> {
    let rate = rate(observed);
    let probe = observed.record.probe.as_ref()?;
    let same = probe.phase == rate.phase && rate.metric == Metric::Iops && rate.direction.is_none();
    let workload = same.then(|| workload(observed.record, &rate.phase))??;
    let layout = observed.record.layouts.get(layout)?;
    Some(requests(&workload, layout))
}

/// Mean number of requests to its members that a layout makes of one of the application's.
fn requests(workload: &Workload, layout: &Layout) -> f64 {
    let reads = workload.read_fraction;
    reads + (1.0 - reads) * write_io(layout)
}

/// The requests that the looked at phase has in flight, and how many that makes for each member of a
/// layout. `None` where the phase is of no suite any more.
pub(super) fn in_flight(observed: &Observed, layout: usize) -> Option<(u64, f64)> {
    let workload = workload(observed.record, &rate(observed).phase)?;
    let layout = observed.record.layouts.get(layout)?;
    let members = layout.members as f64;
    // A request larger than a chunk is one to several members.
    let chunks = layout
        .chunk
        .map_or(1, |chunk| workload.block.0.div_ceil(chunk.0.max(1)));
    let parts = (chunks as f64).clamp(1.0, members);
    let all = workload.in_flight();
    Some((
        all,
        all as f64 * parts * requests(&workload, layout) / members,
    ))
}

/// Workload of a phase, as it was asked for.
fn workload(record: &SweepRecord, phase: &str) -> Option<Workload> {
    let args = bench_args(&record.settings, Path::new("/"), 0).ok()?;
    let names: &[String] = match &record.settings.workload {
        Some(_) => &[],
        None => &[phase.to_owned()],
    };
    let plans = suite::plan(&args, names).ok()?;
    let plan = plans.into_iter().find(|plan| plan.name == phase)?;
    Some(plan.workload)
}
