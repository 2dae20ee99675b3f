//! Results of a phase.

use std::collections::BTreeMap;

use record::{
    Activity, ClockKind, CpuTime, Direction, EngineKind, Fairness, Histogram, JobFileResults,
    Phase, PhaseSummary, StopReason, Window,
};
use serde::Serialize;

use super::flow::{FlowDocument, ImportedFlow};
use super::workload::{ImportedWorkload, WorkloadDocument};
use crate::figures::{PhaseFigures, device_totals, mean_and_deviation};

/// Results of a phase.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct PhaseDocument<'a> {
    /// Name of the phase in its suite.
    name: &'a str,
    workload: WorkloadDocument<'a>,
    engine: EngineDocument<'a>,
    /// Start, in seconds from the start of the run.
    began_s: f64,
    /// Measured time, without the wait for requests in flight at the end.
    seconds: f64,
    /// Time from the end of the measured time until the last requests in flight completed.
    drain_seconds: f64,
    /// Time at the start that rates and intervals leave out as warm-up.
    warmup_seconds: f64,
    stopped: &'a StopReason,
    /// Results that rules of a job file ask for; null without any.
    outcome: Option<&'a JobFileResults>,
    /// Reads; null where the phase has none, as the other kinds of requests.
    read: Option<FlowDocument>,
    /// Writes.
    write: Option<FlowDocument>,
    /// Files created.
    create: Option<FlowDocument>,
    /// Calls of stat on files.
    stat: Option<FlowDocument>,
    /// Files deleted.
    delete: Option<FlowDocument>,
    /// Discards; the key is absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    trim: Option<FlowDocument>,
    /// Calls of fdatasync.
    sync: Option<FlowDocument>,
    /// Commits: writes together with the fdatasync that ends them.
    commit: Option<FlowDocument>,
    /// Fairness between the threads; the figures of their time are null where it is not known.
    threads_fairness: Fairness,
    /// Processor time that the phase used.
    cpu: CpuTime,
    /// Counts of the kernel on the disks below; null where it has none.
    device: Option<DeviceDocument>,
    /// Windows of the phase, in order of time, without gap.
    windows: Vec<WindowDocument>,
}

impl<'a> PhaseDocument<'a> {
    pub(super) fn of(phase: &'a Phase, figures: &PhaseFigures) -> PhaseDocument<'a> {
        let workload = &phase.workload;
        let flow = |direction| {
            let flow = phase.flow(direction).zip(figures.flow(direction));
            flow.map(|(flow, figures)| FlowDocument::of(flow, figures))
        };
        // Work on files and discards count as neither reads nor writes, for readers that add those up.
        let data = |direction: Direction| {
            flow(direction).filter(|_| workload.activity(direction) == direction.into())
        };
        let of_activity = |activity| {
            let counted = |direction: &Direction| workload.activity(*direction) == activity;
            Direction::ALL.into_iter().find(counted).and_then(flow)
        };
        PhaseDocument {
            name: &phase.name,
            workload: WorkloadDocument::of(workload),
            engine: EngineDocument {
                kind: &phase.engine.kind,
                clock: &phase.engine.clock,
                detail: &phase.engine.detail,
            },
            began_s: phase.began_s,
            seconds: phase.seconds,
            drain_seconds: phase.drain_seconds,
            warmup_seconds: figures.warmup_slices as f64 * phase.slice_seconds(),
            stopped: &phase.stopped,
            outcome: (!phase.outcome.is_empty()).then_some(&phase.outcome),
            read: data(Direction::Read),
            write: data(Direction::Write),
            create: of_activity(Activity::Create),
            stat: of_activity(Activity::Stat),
            delete: of_activity(Activity::Delete),
            trim: of_activity(Activity::Trim),
            sync: flow(Direction::Sync),
            commit: flow(Direction::Commit),
            threads_fairness: fairness(&phase.thread_ops, &phase.thread_seconds),
            cpu: phase.cpu,
            device: DeviceDocument::of(phase),
            windows: phase.windows.iter().map(WindowDocument::of).collect(),
        }
    }
}

/// Results of a phase of another tool.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ImportedPhase<'a> {
    /// Name of the job or the test.
    name: &'a str,
    workload: ImportedWorkload<'a>,
    engine: ImportedEngine<'a>,
    /// Measured time; null where the tool does not say.
    seconds: Option<f64>,
    /// Null: the reason for which the phase ended is not known.
    stopped: (),
    /// Reads; null where the tool reports none, as the other kinds of requests.
    read: Option<ImportedFlow>,
    /// Writes.
    write: Option<ImportedFlow>,
    /// Sync calls; null where the tool reports none.
    sync: Option<ImportedFlow>,
    /// Commits: writes together with the sync that ends them.
    commit: Option<ImportedFlow>,
    /// Fairness between the threads, as sysbench reports it; null for other tools.
    threads_fairness: Option<Fairness>,
    /// Processor time that the phase used.
    cpu: ImportedCpu,
    /// Empty: other tools give totals only.
    windows: [(); 0],
    /// Failure that the tool reports, as a clause; null without one.
    failure: Option<&'a str>,
    /// Kinds of requests that a run of this program never has, where the tool gives them.
    #[serde(flatten)]
    others: BTreeMap<&'static str, ImportedFlow>,
}

impl<'a> ImportedPhase<'a> {
    pub(super) fn of(phase: &'a PhaseSummary) -> ImportedPhase<'a> {
        let work = &phase.work;
        let of = |activity| {
            let flow = phase.flows.iter().find(|flow| flow.activity == activity);
            flow.map(ImportedFlow::of)
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
        ImportedPhase {
            name: &phase.name,
            workload: ImportedWorkload::of(work),
            engine: ImportedEngine {
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
            cpu: ImportedCpu {
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

/// Interface and clock of the I/O.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EngineDocument<'a> {
    kind: &'a EngineKind,
    clock: &'a ClockKind,
    /// Reason for which another interface was used, or features of the ring that the kernel refused; empty without
    /// any.
    detail: &'a str,
}

/// Interface of the I/O of another tool.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ImportedEngine<'a> {
    /// `imported`.
    kind: &'static str,
    /// Null: the tool's clock is not known.
    clock: (),
    /// Engine of the tool by the tool's own word, such as `libaio`; null where it does not say.
    detail: Option<&'a str>,
}

/// Processor time of a phase of another tool.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ImportedCpu {
    /// Processor time in user mode, in seconds; null where the tool does not say.
    user_s: Option<f64>,
    /// Processor time in the kernel, in seconds; null where the tool does not say.
    system_s: Option<f64>,
    /// Processor time as a share of one processor: 2 is two processors busy all the time; null where the tool does
    /// not say.
    share: Option<f64>,
}

/// Means over the threads, and the population's deviations.
fn fairness(thread_ops: &[u64], thread_seconds: &[f64]) -> Fairness {
    let ops: Vec<f64> = thread_ops.iter().map(|ops| *ops as f64).collect();
    let (ops_mean, ops_stddev) = mean_and_deviation(&ops);
    let seconds = (!thread_seconds.is_empty()).then(|| mean_and_deviation(thread_seconds));
    Fairness {
        ops_mean,
        ops_stddev,
        seconds_mean: seconds.map(|(mean, _)| mean),
        seconds_stddev: seconds.map(|(_, stddev)| stddev),
    }
}

/// Counts of the kernel on the disks below during the windows.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DeviceDocument {
    /// Reads and writes completed a second, after merging.
    iops: f64,
    /// Mean size of these reads and writes; null where there were none.
    mean_bytes: Option<f64>,
    /// Reads completed, after merging.
    reads: u64,
    /// Bytes read.
    read_bytes: u64,
    /// Writes completed, after merging.
    writes: u64,
    /// Bytes written.
    write_bytes: u64,
    /// Flushes completed; 0 before Linux 5.5, which does not count them.
    flushes: u64,
    /// Time in which anything was in flight, in seconds.
    busy_s: f64,
}

impl DeviceDocument {
    /// The counts; `None` if there are none.
    fn of(phase: &Phase) -> Option<DeviceDocument> {
        let (counts, seconds) = device_totals(phase)?;
        let ops = counts.reads + counts.writes;
        let bytes = counts.read_bytes + counts.write_bytes;
        Some(DeviceDocument {
            iops: ops as f64 / seconds,
            mean_bytes: (ops > 0).then(|| bytes as f64 / ops as f64),
            reads: counts.reads,
            read_bytes: counts.read_bytes,
            writes: counts.writes,
            write_bytes: counts.write_bytes,
            flushes: counts.flushes,
            busy_s: counts.busy_ms as f64 / 1e3,
        })
    }
}

/// A window: a part of a phase's time. Counts and latency are of reads and writes together.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WindowDocument {
    /// Start, in seconds from the start of the phase.
    t_s: f64,
    /// Length of the window; the last one of a phase is often shorter.
    seconds: f64,
    /// Requests completed in the window.
    ops: u64,
    /// Bytes that they transferred.
    bytes: u64,
    /// 50th percentile of their latency, in nanoseconds.
    p50_ns: u64,
    /// 99th percentile of their latency, in nanoseconds.
    p99_ns: u64,
    /// Longest latency of these requests, in nanoseconds.
    max_ns: u64,
    /// Requests in flight, or due, at the end of the window.
    in_flight: u64,
}

impl WindowDocument {
    fn of(window: &Window) -> WindowDocument {
        let flows = || [&window.read, &window.write].into_iter().flatten();
        let mut latency = Histogram::new();
        flows().for_each(|flow| latency.merge(&flow.latency));
        WindowDocument {
            t_s: window.t_s,
            seconds: window.seconds,
            ops: window.ops(),
            bytes: flows().map(|flow| flow.bytes().0).sum(),
            p50_ns: latency.quantile(0.50),
            p99_ns: latency.quantile(0.99),
            max_ns: latency.max(),
            in_flight: window.in_flight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_mean_and_deviation_of_the_threads() {
        let value = serde_json::to_value(fairness(&[90, 110], &[1.0])).unwrap();
        assert_eq!(value["ops_mean"], 100.0);
        assert_eq!(value["ops_stddev"], 10.0);
        assert_eq!(value["seconds_mean"], 1.0);
        assert_eq!(fairness(&[1], &[]).seconds_mean, None);
    }
}
