//! The figures of an imported run as the cells of a table.

use record::{FlowSummary, ImportedRun, PhaseSummary};

use ui::format::{latency, number};

/// Text for a figure that the tool does not give.
const UNKNOWN: &str = "–";

/// Row of one kind of request of a phase.
pub(crate) struct ImportedRow {
    /// The phase's name.
    pub phase: String,
    /// Kind of request.
    pub what: &'static str,
    /// Requests a second.
    pub iops: String,
    /// MiB a second.
    pub mib: String,
    /// The median, the 95th, 99th and 99.9th percentile and the largest latency.
    pub latencies: [String; 5],
    /// Seconds that were measured.
    pub seconds: String,
}

/// A row for each kind of request; a single row for a phase without any.
pub(crate) fn rows(run: &ImportedRun) -> Vec<ImportedRow> {
    run.summary.phases.iter().flat_map(of_phase).collect()
}

fn of_phase(phase: &PhaseSummary) -> Vec<ImportedRow> {
    if phase.flows.is_empty() {
        return vec![row(phase, None)];
    }
    phase
        .flows
        .iter()
        .map(|flow| row(phase, Some(flow)))
        .collect()
}

fn row(phase: &PhaseSummary, flow: Option<&FlowSummary>) -> ImportedRow {
    let given = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), number);
    let timed = |nanos: Option<f64>| {
        nanos.map_or(UNKNOWN.to_owned(), |nanos| latency(nanos.round() as u64))
    };
    let rate = |value: Option<f64>| match flow {
        Some(flow) if flow.too_fast => "+++++".to_owned(),
        _ => given(value),
    };
    let quantile = |q| timed(flow.and_then(|flow| flow.latency.quantile(q)));
    let mib = |bytes: f64| bytes / (1_u64 << 20) as f64;
    ImportedRow {
        phase: phase.name.clone(),
        what: flow.map_or("", |flow| flow.activity.name()),
        iops: rate(flow.and_then(|flow| flow.ops_per_s)),
        mib: rate(flow.and_then(|flow| flow.bytes_per_s).map(mib)),
        latencies: [
            quantile(0.50),
            quantile(0.95),
            quantile(0.99),
            quantile(0.999),
            timed(flow.and_then(|flow| flow.latency.max_ns)),
        ],
        seconds: given(phase.seconds),
    }
}
