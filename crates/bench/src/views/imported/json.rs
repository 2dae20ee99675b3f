//! An imported run as a JSON document: the keys of [`crate::views::json`], with null where the tool does not give a
//! value, and a few more.

use std::collections::BTreeMap;

use jiff::Timestamp;
use record::{
    Activity, Bytes, Fairness, Finding, FlowSummary, ImportedRun, LatencySummary, Pattern,
    PhaseSummary, RunId, Verdict,
};
use serde::Serialize;
use ui::json::SCHEMA;

use crate::judged::ImportConclusion;

/// Document of one run, with a line end.
pub(crate) fn document(run: &ImportedRun, judged: &ImportConclusion) -> String {
    // Memory is all that could fail, and there is none that could.
    serde_json::to_string_pretty(&ImportedDocument::of(run, judged)).unwrap_or_default() + "\n"
}

/// The document of one run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ImportedDocument<'a> {
    /// Version of the document's form.
    schema: u32,
    /// `import`, the command that made the document.
    command: &'static str,
    /// Version of the program that imported the run.
    disksmith: &'a str,
    /// Id of the run; null where nothing was kept (`--dry-run`).
    pub(crate) run: Option<&'a RunId>,
    /// Time at which the tool ran; null where its output does not say.
    started: Option<Timestamp>,
    /// Time of the import.
    imported: Timestamp,
    origin: OriginDocument<'a>,
    /// File that the run was read from.
    source: &'a str,
    /// Always false: it is not known of another tool's run.
    interrupted: bool,
    target: TargetDocument<'a>,
    machine: MachineDocument<'a>,
    /// Name of the tool, such as `fio`, in place of a suite's name.
    suite: &'a str,
    /// Phases of the run, in the order of the tool's output.
    phases: Vec<PhaseDocument<'a>>,
    /// Reasons to doubt the figures; empty without one.
    findings: &'a [Finding],
    /// Sum of the findings.
    verdict: Verdict,
    /// Empty: only runs of this program have notes.
    notes: [&'a str; 0],
}

/// The tool that measured.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum OriginDocument<'a> {
    /// Read from another tool's output.
    Imported {
        /// Tool and its version, such as `fio 3.33`.
        tool: &'a str,
    },
}

/// The measured target, as far as the tool reports it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TargetDocument<'a> {
    /// File, directory or device that was measured; null where the tool does not say.
    path: Option<&'a str>,
    /// Null: not known of an imported run, as the three keys below.
    kind: (),
    /// Null: device below the target.
    device: (),
    /// Null: model of the device.
    model: (),
    /// Null: size of the target.
    size_bytes: (),
    /// True if the page cache was bypassed; null where that is not known of all phases, or differs between them.
    direct: Option<bool>,
}

/// The machine, as far as the tool reports it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MachineDocument<'a> {
    /// Host that the tool ran on; null where its output does not say.
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
    /// Name of the job or the test.
    name: &'a str,
    workload: WorkloadDocument<'a>,
    engine: EngineDocument<'a>,
    /// Measured time; null where the tool does not say.
    seconds: Option<f64>,
    /// Null: the reason for which the phase ended is not known.
    stopped: (),
    /// Reads; null where the tool reports none, as the other kinds of requests.
    read: Option<FlowDocument>,
    /// Writes.
    write: Option<FlowDocument>,
    /// Sync calls; null where the tool reports none.
    sync: Option<FlowDocument>,
    /// Commits: writes together with the sync that ends them.
    commit: Option<FlowDocument>,
    /// Fairness between the threads, as sysbench reports it; null for other tools.
    threads_fairness: Option<Fairness>,
    /// Processor time that the phase used.
    cpu: CpuDocument,
    /// Empty: other tools give totals only.
    windows: [(); 0],
    /// Failure that the tool reports, as a clause; null without one.
    failure: Option<&'a str>,
    /// Kinds of requests that a run of this program never has, where the tool gives them.
    #[serde(flatten)]
    others: BTreeMap<&'static str, FlowDocument>,
}

/// Workload of a phase; a key is null where the tool does not say.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WorkloadDocument<'a> {
    /// Pattern of positions.
    pattern: Option<&'a Pattern>,
    /// Share of the requests that read, 0 to 1.
    read_fraction: Option<f64>,
    /// Size of a request.
    block_bytes: Option<Bytes>,
    /// Threads or processes that issue I/O.
    threads: Option<u32>,
    /// Requests in flight of each thread.
    depth: Option<u32>,
    /// Rate of an open loop, in requests a second over all threads; 0 for a closed loop.
    rate_per_s: Option<f64>,
    /// Bytes of the target that are used.
    span_bytes: Option<Bytes>,
    /// Writes between two syncs; 0 for no such syncs.
    sync_every: Option<u32>,
    /// Null: not reported for imported runs.
    sync_at_end: (),
}

/// Interface of the I/O.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EngineDocument<'a> {
    /// `imported`.
    kind: &'static str,
    /// Null: the tool's clock is not known.
    clock: (),
    /// Engine of the tool by the tool's own word, such as `libaio`; null where it does not say.
    detail: Option<&'a str>,
}

/// Processor time of a phase.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CpuDocument {
    /// Processor time in user mode, in seconds; null where the tool does not say.
    user_s: Option<f64>,
    /// Processor time in the kernel, in seconds; null where the tool does not say.
    system_s: Option<f64>,
    /// Processor time as a share of one processor: 2 is two processors busy all the time; null where the tool does
    /// not say.
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
    /// Completed requests; null where the tool does not say.
    ops: Option<u64>,
    /// Bytes that they transferred; null where the tool does not say.
    bytes: Option<u64>,
    /// Requests a second.
    iops: MeanDocument,
    /// Bytes a second.
    bytes_per_s: MeanDocument,
    latency_ns: LatencyDocument,
    /// Null: not reported for imported runs.
    service_ns: (),
    /// True if the tool says only that the test was too fast to measure (`+++++` of Bonnie++).
    too_fast: bool,
}

/// A mean without interval: other tools give none.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MeanDocument {
    /// Mean; null where the tool does not say.
    mean: Option<f64>,
    /// Null: lower bound of the interval.
    low: (),
    /// Null: upper bound of the interval.
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

/// Latency of requests, in nanoseconds; a figure is null where the tool does not give it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LatencyDocument {
    /// Shortest latency.
    min: Option<f64>,
    /// Mean latency.
    mean: Option<f64>,
    /// Standard deviation of the latency.
    stddev: Option<f64>,
    /// 50th percentile, the median.
    p50: Option<f64>,
    /// 90th percentile.
    p90: Option<f64>,
    /// 95th percentile.
    p95: Option<f64>,
    /// 99th percentile.
    p99: Option<f64>,
    /// 99.9th percentile.
    p99_9: Option<f64>,
    /// 99.99th percentile.
    p99_99: Option<f64>,
    /// Longest latency.
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
