//! An imported run as a JSON document: the keys of [`crate::views::json`], with null where the
//! tool did not say, and a few more.

use std::collections::BTreeMap;

use jiff::Timestamp;
use record::{
    Activity, Bytes, Fairness, Finding, FlowSummary, ImportedRun, LatencySummary, Pattern,
    PhaseSummary, RunId, Verdict,
};
use serde::Serialize;
use ui::json::SCHEMA;

use crate::judged::ImportConclusion;

/// The document of one run, with a line's end behind it.
pub(crate) fn document(run: &ImportedRun, judged: &ImportConclusion) -> String {
    // Memory is all that could fail, and there is none that could.
    serde_json::to_string_pretty(&ImportedDocument::of(run, judged)).unwrap_or_default() + "\n"
}

/// The document of one run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ImportedDocument<'a> {
    schema: u32,
    command: &'static str,
    /// The version that imported it.
    disksmith: &'a str,
    /// `null` where nothing was kept.
    pub(crate) run: Option<&'a RunId>,
    /// Time at which the tool ran.
    started: Option<Timestamp>,
    imported: Timestamp,
    origin: OriginDocument<'a>,
    /// The file that it was read from.
    source: &'a str,
    interrupted: bool,
    target: TargetDocument<'a>,
    machine: MachineDocument<'a>,
    suite: &'a str,
    phases: Vec<PhaseDocument<'a>>,
    findings: &'a [Finding],
    verdict: Verdict,
    notes: [&'a str; 0],
}

/// The tool that measured.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum OriginDocument<'a> {
    Imported { tool: &'a str },
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TargetDocument<'a> {
    path: Option<&'a str>,
    kind: (),
    device: (),
    model: (),
    size_bytes: (),
    /// True if the page cache was bypassed, where that is known of all phases and the same.
    direct: Option<bool>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MachineDocument<'a> {
    hostname: Option<&'a str>,
}

impl<'a> ImportedDocument<'a> {
    pub(crate) fn of(run: &'a ImportedRun, judged: &'a ImportConclusion) -> ImportedDocument<'a> {
        let summary = &run.summary;
        ImportedDocument {
            schema: SCHEMA,
            command: "import",
            disksmith: &run.disksmith,
            run: Some(&run.id),
            started: summary.ran,
            imported: run.imported,
            origin: OriginDocument::Imported {
                tool: &summary.tool,
            },
            source: &run.source,
            interrupted: false,
            target: TargetDocument {
                path: summary.target.as_deref(),
                kind: (),
                device: (),
                model: (),
                size_bytes: (),
                direct: direct(&summary.phases),
            },
            machine: MachineDocument {
                hostname: summary.host.as_deref(),
            },
            suite: run.suite(),
            phases: summary.phases.iter().map(PhaseDocument::of).collect(),
            findings: &judged.findings,
            verdict: judged.verdict,
            notes: [],
        }
    }
}

fn direct(phases: &[PhaseSummary]) -> Option<bool> {
    let first = phases.first()?.work.direct?;
    let all = phases.iter().all(|phase| phase.work.direct == Some(first));
    all.then_some(first)
}

/// The figures of a phase.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PhaseDocument<'a> {
    name: &'a str,
    workload: WorkloadDocument<'a>,
    engine: EngineDocument<'a>,
    seconds: Option<f64>,
    stopped: (),
    read: Option<FlowDocument>,
    write: Option<FlowDocument>,
    sync: Option<FlowDocument>,
    commit: Option<FlowDocument>,
    threads_fairness: Option<Fairness>,
    cpu: CpuDocument,
    windows: [(); 0],
    failure: Option<&'a str>,
    /// Kinds of requests that a run of our own never has, where the tool gives them.
    #[serde(flatten)]
    others: BTreeMap<&'static str, FlowDocument>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WorkloadDocument<'a> {
    pattern: Option<&'a Pattern>,
    /// Share of reads, from 0 to 1.
    read_fraction: Option<f64>,
    block_bytes: Option<Bytes>,
    threads: Option<u32>,
    /// Requests in flight of each thread.
    depth: Option<u32>,
    /// Rate of an open loop; 0 of a closed one.
    rate_per_s: Option<f64>,
    span_bytes: Option<Bytes>,
    /// Writes between two syncs; 0 for none.
    sync_every: Option<u32>,
    sync_at_end: (),
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EngineDocument<'a> {
    kind: &'static str,
    clock: (),
    /// The tool's own word, such as `libaio`.
    detail: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CpuDocument {
    user_s: Option<f64>,
    system_s: Option<f64>,
    /// Both, in processors.
    share: Option<f64>,
}

impl<'a> PhaseDocument<'a> {
    fn of(phase: &'a PhaseSummary) -> PhaseDocument<'a> {
        let work = &phase.work;
        let of = |activity| {
            let flow = phase.flows.iter().find(|flow| flow.activity == activity);
            flow.map(FlowDocument::of)
        };
        let others = [
            Activity::All,
            Activity::Trim,
            Activity::Create,
            Activity::Stat,
            Activity::Delete,
        ];
        let cpu = &phase.cpu;
        let seconds = |share: Option<f64>| Some(share? * phase.seconds?);
        PhaseDocument {
            name: &phase.name,
            workload: WorkloadDocument {
                pattern: work.pattern.as_ref(),
                read_fraction: work.read_fraction,
                block_bytes: work.block,
                threads: work.threads,
                depth: work.depth,
                rate_per_s: work.rate_per_s,
                span_bytes: work.span,
                sync_every: work.sync_every,
                sync_at_end: (),
            },
            engine: EngineDocument {
                kind: "imported",
                clock: (),
                detail: work.engine.as_deref(),
            },
            seconds: phase.seconds,
            stopped: (),
            read: of(Activity::Read),
            write: of(Activity::Write),
            sync: of(Activity::Sync),
            commit: of(Activity::Commit),
            threads_fairness: phase.fairness,
            cpu: CpuDocument {
                user_s: seconds(cpu.user),
                system_s: seconds(cpu.system),
                share: cpu.total.or_else(|| Some(cpu.user? + cpu.system?)),
            },
            windows: [],
            failure: phase.failure.as_deref(),
            others: others
                .into_iter()
                .filter_map(|activity| Some((activity.name(), of(activity)?)))
                .collect(),
        }
    }
}

/// Requests of one kind.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FlowDocument {
    ops: Option<u64>,
    bytes: Option<u64>,
    iops: MeanDocument,
    bytes_per_s: MeanDocument,
    latency_ns: LatencyDocument,
    service_ns: (),
    /// True if the tool says only that it was too fast to measure.
    too_fast: bool,
}

/// A mean; other tools give no interval.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MeanDocument {
    mean: Option<f64>,
    low: (),
    high: (),
}

impl FlowDocument {
    fn of(flow: &FlowSummary) -> FlowDocument {
        let mean = |mean| MeanDocument {
            mean,
            low: (),
            high: (),
        };
        FlowDocument {
            ops: flow.ops,
            bytes: flow.bytes,
            iops: mean(flow.ops_per_s),
            bytes_per_s: mean(flow.bytes_per_s),
            latency_ns: LatencyDocument::of(&flow.latency),
            service_ns: (),
            too_fast: flow.too_fast,
        }
    }
}

/// Latency of requests, in nanoseconds.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LatencyDocument {
    min: Option<f64>,
    mean: Option<f64>,
    stddev: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    p99_9: Option<f64>,
    p99_99: Option<f64>,
    max: Option<f64>,
}

impl LatencyDocument {
    fn of(latency: &LatencySummary) -> LatencyDocument {
        LatencyDocument {
            min: latency.min_ns,
            mean: latency.mean_ns,
            stddev: latency.stddev_ns,
            p50: latency.quantile(0.50),
            p90: latency.quantile(0.90),
            p95: latency.quantile(0.95),
            p99: latency.quantile(0.99),
            p99_9: latency.quantile(0.999),
            p99_99: latency.quantile(0.9999),
            max: latency.max_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::imported::sample;

    #[test]
    fn what_is_not_known_is_null_and_never_a_zero() {
        let run = sample::bonnie();
        let judged = ImportConclusion::of(&run);
        let value = serde_json::to_value(ImportedDocument::of(&run, &judged)).unwrap();
        let block = &value["phases"][0];
        assert_eq!(block["write"]["bytes_per_s"]["mean"], 61022.0 * 1024.0);
        for unknown in ["ops", "bytes"] {
            assert!(block["write"][unknown].is_null(), "{block:#}");
        }
        assert!(block["write"]["iops"]["mean"].is_null());
        assert!(block["write"]["latency_ns"]["p99"].is_null());
        assert!(block["seconds"].is_null() && block["cpu"]["user_s"].is_null());
        assert_eq!(block["cpu"]["share"], 0.09);
        assert_eq!(value["phases"][1]["stat"]["too_fast"], true);
        assert!(value["target"]["path"].is_null());
    }
}
