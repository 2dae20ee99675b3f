//! Growth of the rate with the number of members, and the sum of the members' own rates.

use std::collections::BTreeMap;
use std::path::Path;

use record::Workload;

use crate::decision::{Point, ScalingCurve};
use crate::figure::{Figure, Metric};
use crate::layout::{Factor, Layout};
use crate::measure::bench_args;
use crate::price::write_io;
use crate::record::SweepRecord;
use bench::suite;

use super::measurements::{Measurements, is_positive};
use super::summary::in_average_block;

/// A curve of measured layouts.
pub(super) struct MeasuredCurve {
    /// Objective over the number of members.
    pub curve: ScalingCurve,
    /// The layouts of its points.
    pub layouts: Vec<usize>,
}

/// The rate of the curves: the objective's own, or for a latency the requests a second of its phase.
pub(super) fn rate(measurements: &Measurements) -> Figure {
    let figure = measurements.speed();
    if figure.metric.is_latency() {
        return Figure {
            metric: Metric::Iops,
            ..figure
        };
    }
    figure
}

/// Curves of rates by the number of members: one for each combination of the other factors with at least two measured
/// numbers, the one with the highest rate first.
pub(super) fn of(measurements: &Measurements) -> Vec<MeasuredCurve> {
    let values = in_average_block(measurements, &rate(measurements));
    let value = |layout: usize| values.get(layout).copied().flatten();
    let layouts = &measurements.record.layouts;
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
    let mut curves: Vec<MeasuredCurve> = groups
        .values()
        .filter(|members| members.len() > 1)
        .map(|members| {
            let layouts: Vec<usize> = members.values().copied().collect();
            let points = layouts.iter().filter_map(|at| {
                Some(Point {
                    members: measurements.record.layouts.get(*at)?.members,
                    value: value(*at)?,
                    ideal: ideal(measurements, *at),
                })
            });
            let curve = ScalingCurve {
                label: layouts
                    .first()
                    .map_or_else(String::new, |at| label(measurements, *at)),
                points: points.collect(),
            };
            MeasuredCurve { curve, layouts }
        })
        .collect();
    let most = |one: &MeasuredCurve| {
        let values = one.curve.points.iter().map(|point| point.value.mean);
        values.fold(0.0, f64::max)
    };
    curves.sort_by(|a, b| most(b).total_cmp(&most(a)));
    curves
}

/// Common part of the points of a curve: `RAID 10, 256 KiB, xfs`.
fn label(measurements: &Measurements, layout: usize) -> String {
    let layout = &measurements.record.layouts[layout];
    let mut parts = vec![layout.level_name()];
    parts.extend(layout.chunk.map(|chunk| chunk.to_string()));
    parts.push(layout.fs.name().to_owned());
    parts.extend(layout.scheduler.clone());
    parts.join(", ")
}

/// Sum of the rates of a layout's members alone, in requests of the application. Each was probed with the whole depth
/// of the phase, which the members of an array share: with a low depth no array may reach this.
fn ideal(measurements: &Measurements, layout: usize) -> Option<f64> {
    let members = measurements.record.layouts.get(layout)?.members;
    let alone = &measurements.record.probe.as_ref()?.alone;
    let alone = alone.get(..members)?.iter().map(|value| value.mean).sum();
    Some(alone)
        .filter(|sum| is_positive(*sum))
        .zip(per_request(measurements, layout))
        .map(|(sum, io)| sum / io)
}

/// Mean number of member requests for each request of the application, with the share of writes of the probed phase.
/// `None` where another phase was probed or the rate is not one of requests.
pub(super) fn per_request(measurements: &Measurements, layout: usize) -> Option<f64> {
    let rate = rate(measurements);
    let probe = measurements.record.probe.as_ref()?;
    let same = probe.phase == rate.phase && rate.metric == Metric::Iops && rate.direction.is_none();
    let workload = same.then(|| workload(measurements.record, &rate.phase))??;
    let layout = measurements.record.layouts.get(layout)?;
    Some(requests(&workload, layout))
}

/// Mean number of member requests for each request of the application.
fn requests(workload: &Workload, layout: &Layout) -> f64 {
    let reads = workload.read_fraction;
    reads + (1.0 - reads) * write_io(layout)
}

/// The depth of the phase of the curves, and the depth for each member of a layout. `None` where no suite has the
/// phase any more.
pub(super) fn in_flight(measurements: &Measurements, layout: usize) -> Option<(u64, f64)> {
    let workload = workload(measurements.record, &rate(measurements).phase)?;
    let layout = measurements.record.layouts.get(layout)?;
    let members = layout.members as f64;
    // A request larger than a chunk goes to several members.
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

/// Workload of a phase, as requested.
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
