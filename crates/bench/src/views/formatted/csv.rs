//! CSV: a header, and a row for each kind of request of each phase.

use record::{FlowSummary, Histogram, ImportedRun, LatencySummary, PhaseSummary, Run};
use ui::csv::line;

use crate::conclusion::Conclusion;
use crate::figures::Estimate;
use crate::judged::ImportConclusion;

/// The columns. A value that is not known is empty.
const HEADER: [&str; 23] = [
    "run",
    "target",
    "verdict",
    "phase",
    "kind",
    "block_bytes",
    "threads",
    "depth",
    "seconds",
    "ops",
    "bytes",
    "iops",
    "iops_low",
    "iops_high",
    "bytes_per_s",
    "bytes_per_s_low",
    "bytes_per_s_high",
    "mean_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "p99_9_ns",
    "max_ns",
];

/// Table of a run that this program measured.
pub(super) fn measured(run: &Run, conclusion: &Conclusion) -> String {
    let head = [
        run.id.to_string(),
        run.target.path.clone(),
        conclusion.verdict.name().to_owned(),
    ];
    let mut text = line(HEADER.map(str::to_owned));
    for (phase, figures) in run.phases.iter().zip(&conclusion.phases) {
        for (direction, flow) in phase.directions() {
            let Some(rates) = figures.flow(direction) else {
                continue;
            };
            let [iops, low, high] = estimate(rates.iops);
            let [bytes_per_s, bytes_low, bytes_high] = estimate(rates.bytes_per_s);
            let workload = &phase.workload;
            let row = [
                figures.name.clone(),
                workload.activity(direction).name().to_owned(),
                workload.block.0.to_string(),
                workload.threads.to_string(),
                workload.depth.to_string(),
                decimal(phase.seconds),
                flow.ops.to_string(),
                flow.bytes.to_string(),
                iops,
                low,
                high,
                bytes_per_s,
                bytes_low,
                bytes_high,
            ];
            text += &line(
                head.iter()
                    .cloned()
                    .chain(row)
                    .chain(latency(&flow.latency)),
            );
        }
    }
    text
}

fn estimate(estimate: Estimate) -> [String; 3] {
    [
        decimal(estimate.mean),
        known(estimate.low.map(decimal)),
        known(estimate.high.map(decimal)),
    ]
}

fn latency(latency: &Histogram) -> [String; 6] {
    let quantile = |share| latency.quantile(share).to_string();
    [
        decimal(latency.mean()),
        quantile(0.5),
        quantile(0.95),
        quantile(0.99),
        quantile(0.999),
        latency.max().to_string(),
    ]
}

/// The table of another tool's run.
pub(super) fn imported(run: &ImportedRun, judged: &ImportConclusion) -> String {
    let head = [
        run.id.to_string(),
        run.summary.target.clone().unwrap_or_default(),
        judged.verdict.name().to_owned(),
    ];
    let rows = run.summary.phases.iter().flat_map(|phase| {
        let head = &head;
        phase
            .flows
            .iter()
            .map(move |flow| line(head.iter().cloned().chain(imported_row(phase, flow))))
    });
    [line(HEADER.map(str::to_owned))]
        .into_iter()
        .chain(rows)
        .collect()
}

fn imported_row(phase: &PhaseSummary, flow: &FlowSummary) -> Vec<String> {
    let work = &phase.work;
    let row = [
        phase.name.clone(),
        flow.activity.name().to_owned(),
        known(work.block.map(|block| block.0)),
        known(work.threads),
        known(work.depth),
        known(phase.seconds.map(decimal)),
        known(flow.ops),
        known(flow.bytes),
        known(flow.ops_per_s.map(decimal)),
        String::new(),
        String::new(),
        known(flow.bytes_per_s.map(decimal)),
        String::new(),
        String::new(),
    ];
    row.into_iter()
        .chain(latency_cells(&flow.latency))
        .collect()
}

fn latency_cells(latency: &LatencySummary) -> [String; 6] {
    let percentile = |percent: f64| {
        let found = latency
            .percentiles
            .iter()
            .find(|percentile| (percentile.percent - percent).abs() < 1e-6);
        known(found.map(|percentile| decimal(percentile.ns)))
    };
    [
        known(latency.mean_ns.map(decimal)),
        percentile(50.0),
        percentile(95.0),
        percentile(99.0),
        percentile(99.9),
        known(latency.max_ns.map(decimal)),
    ]
}

/// A number with three decimals.
fn decimal(value: f64) -> String {
    format!("{value:.3}")
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::sample;

    #[test]
    fn a_row_for_each_kind_of_request_with_as_many_fields_as_the_header() {
        let (run, conclusion) = sample::database_run(1);
        let text = measured(&run, &conclusion);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        let kinds: usize = run
            .phases
            .iter()
            .map(|phase| phase.directions().count())
            .sum();
        assert_eq!(lines.len(), kinds + 1);
        assert!(
            lines.iter().all(|fields| fields.len() == HEADER.len()),
            "{text}"
        );
        let iops: f64 = lines[1][11].parse().unwrap();
        let [low, high] = [12, 13].map(|at: usize| lines[1][at].parse::<f64>().unwrap());
        assert!(low <= iops && iops <= high);
    }
}
