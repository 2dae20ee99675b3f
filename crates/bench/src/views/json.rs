//! One JSON document a run. Its keys are read by other programs: none is renamed or retyped
//! without raising [`SCHEMA`].

use std::path::Path;

use jiff::Timestamp;
use record::{
    Activity, Bytes, ClockKind, Cloud, CpuTime, Direction, EngineKind, Finding, Flow, Histogram,
    JobFileResults, JobOptions, Machine, Origin, Pattern, Phase, Run, RunId, StopReason, Target,
    TargetKind, Verdict, Window, Workload,
};
use serde::Serialize;

use ui::json::SCHEMA;

use crate::answer::SuiteResult;
use crate::conclusion::Conclusion;
use crate::figures::{Estimate, FlowFigures, PhaseFigures, mean_and_deviation};

/// The document of one run, with a line's end behind it.
pub(crate) fn document(run: &Run, conclusion: &Conclusion) -> String {
    // Memory is all that could fail, and there is none that could.
    serde_json::to_string_pretty(&RunDocument::of(run, conclusion)).unwrap_or_default() + "\n"
}

/// The document of `bench --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunDocument<'a> {
    schema: u32,
    command: &'static str,
    /// The version that measured.
    disksmith: &'a str,
    run: &'a RunId,
    started: Timestamp,
    origin: &'a Origin,
    interrupted: bool,
    target: TargetDocument<'a>,
    machine: MachineDocument<'a>,
    suite: &'a str,
    phases: Vec<PhaseDocument<'a>>,
    /// The figures that the suite was run for.
    answer: &'a Option<SuiteResult>,
    findings: &'a [Finding],
    verdict: Verdict,
    /// Sentences for people.
    notes: &'a [String],
}

impl<'a> RunDocument<'a> {
    fn of(run: &'a Run, conclusion: &'a Conclusion) -> RunDocument<'a> {
        let phases = run.phases.iter().zip(&conclusion.phases);
        RunDocument {
            schema: SCHEMA,
            command: "bench",
            disksmith: &run.disksmith,
            run: &run.id,
            started: run.started,
            origin: &run.origin,
            interrupted: run.interrupted,
            target: TargetDocument::of(&run.target),
            machine: MachineDocument::of(&run.machine),
            suite: &run.suite,
            phases: phases
                .map(|(phase, figures)| PhaseDocument::of(phase, figures))
                .collect(),
            answer: &conclusion.answer,
            findings: &conclusion.findings,
            verdict: conclusion.verdict,
            notes: &run.notes,
        }
    }
}

/// The measured target.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TargetDocument<'a> {
    path: &'a str,
    kind: &'a TargetKind,
    /// The device that it lies on.
    device: Option<&'a str>,
    /// The disks below.
    disks: &'a [String],
    model: Option<&'a str>,
    serial: Option<&'a str>,
    size_bytes: Bytes,
    /// Share that was never written, from 0 to 1.
    unwritten_fraction: Option<f64>,
    /// Share of blocks of zeros.
    zero_fraction: Option<f64>,
    /// True if the page cache was bypassed.
    direct: bool,
    in_memory: bool,
    caches: Vec<CacheDocument<'a>>,
}

/// A layer below the target that may answer from memory.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CacheDocument<'a> {
    layer: &'a str,
    kind: String,
}

impl<'a> TargetDocument<'a> {
    fn of(target: &'a Target) -> TargetDocument<'a> {
        let caches = target.caches.iter().map(|cache| CacheDocument {
            layer: &cache.layer,
            kind: ui::format::cache(&cache.kind).to_string(),
        });
        TargetDocument {
            path: &target.path,
            kind: &target.kind,
            device: target.device.as_deref(),
            disks: &target.disks,
            model: target.model.as_deref(),
            serial: target.serial.as_deref(),
            size_bytes: target.size,
            unwritten_fraction: target.unwritten_fraction,
            zero_fraction: target.zero_fraction,
            direct: target.direct,
            in_memory: target.in_memory,
            caches: caches.collect(),
        }
    }
}

/// Facts about the machine, as every document has them.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineDocument<'a> {
    hostname: &'a str,
    kernel: &'a str,
    arch: &'a str,
    cpu: &'a str,
    cores: u32,
    memory_bytes: Bytes,
    /// Limit of the control group.
    memory_limit_bytes: Option<Bytes>,
    /// Type of the file system that was measured on.
    filesystem: Option<&'a str>,
    mount_point: Option<&'a Path>,
    mount_options: Option<&'a str>,
    scheduler: Option<&'a str>,
    read_ahead_bytes: Option<Bytes>,
    rotational: Option<bool>,
    write_cache: Option<&'a str>,
    cloud: &'a Option<Cloud>,
}

impl<'a> MachineDocument<'a> {
    /// Of the machine that a run was made on.
    pub fn of(machine: &'a Machine) -> MachineDocument<'a> {
        let filesystem = machine.filesystem.as_ref();
        MachineDocument {
            hostname: &machine.hostname,
            kernel: &machine.kernel,
            arch: &machine.arch,
            cpu: &machine.cpu,
            cores: machine.cores,
            memory_bytes: machine.memory,
            memory_limit_bytes: machine.memory_limit,
            filesystem: filesystem.map(|filesystem| filesystem.kind.as_str()),
            mount_point: filesystem.map(|filesystem| Path::new(&filesystem.mount_point)),
            mount_options: filesystem.map(|filesystem| filesystem.options.as_str()),
            scheduler: machine.scheduler.as_deref(),
            read_ahead_bytes: machine.read_ahead,
            rotational: machine.rotational,
            write_cache: machine.write_cache.as_deref(),
            cloud: &machine.cloud,
        }
    }
}

/// Results of a phase.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PhaseDocument<'a> {
    name: &'a str,
    workload: WorkloadDocument<'a>,
    engine: EngineDocument<'a>,
    /// Beginning, in seconds since that of the run.
    began_s: f64,
    seconds: f64,
    /// Time until the last request was answered.
    drain_seconds: f64,
    /// Beginning of the phase that its figures leave out.
    warmup_seconds: f64,
    stopped: &'a StopReason,
    /// Results that rules of a job file ask for.
    outcome: Option<&'a JobFileResults>,
    read: Option<FlowDocument>,
    write: Option<FlowDocument>,
    create: Option<FlowDocument>,
    stat: Option<FlowDocument>,
    delete: Option<FlowDocument>,
    /// Discards.
    #[serde(skip_serializing_if = "Option::is_none")]
    trim: Option<FlowDocument>,
    sync: Option<FlowDocument>,
    commit: Option<FlowDocument>,
    threads_fairness: FairnessDocument,
    cpu: CpuDocument,
    device: Option<DeviceDocument>,
    windows: Vec<WindowDocument>,
}

impl<'a> PhaseDocument<'a> {
    fn of(phase: &'a Phase, figures: &PhaseFigures) -> PhaseDocument<'a> {
        let workload = &phase.workload;
        let flow = |direction| {
            let flow = phase.flow(direction).zip(figures.flow(direction));
            flow.map(|(flow, figures)| FlowDocument::of(flow, figures))
        };
        // Work on files and discards are neither reads nor writes, for whoever adds those up.
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
            threads_fairness: FairnessDocument::of(&phase.thread_ops, &phase.thread_seconds),
            cpu: CpuDocument::of(&phase.cpu),
            device: DeviceDocument::of(phase),
            windows: phase.windows.iter().map(WindowDocument::of).collect(),
        }
    }
}

/// The load of a phase.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WorkloadDocument<'a> {
    pattern: &'a Pattern,
    /// Share of reads, from 0 to 1.
    read_fraction: f64,
    block_bytes: Bytes,
    threads: u32,
    /// Requests in flight of each thread.
    depth: u32,
    /// Rate of an open loop; `null` of a closed one.
    rate_per_s: Option<f64>,
    span_bytes: Option<Bytes>,
    /// Writes between two syncs; 0 for none.
    sync_every: u32,
    sync_at_end: bool,
    details: &'a Option<Box<JobOptions>>,
}

impl<'a> WorkloadDocument<'a> {
    fn of(workload: &'a Workload) -> WorkloadDocument<'a> {
        WorkloadDocument {
            pattern: &workload.pattern,
            read_fraction: workload.read_fraction,
            block_bytes: workload.block,
            threads: workload.threads,
            depth: workload.depth,
            rate_per_s: workload.rate_per_s,
            span_bytes: workload.span,
            sync_every: workload.sync_every,
            sync_at_end: workload.sync_at_end,
            details: &workload.details,
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EngineDocument<'a> {
    kind: &'a EngineKind,
    clock: &'a ClockKind,
    detail: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CpuDocument {
    user_s: f64,
    system_s: f64,
}

impl CpuDocument {
    fn of(cpu: &CpuTime) -> CpuDocument {
        CpuDocument {
            user_s: cpu.user_s,
            system_s: cpu.system_s,
        }
    }
}

/// Requests of one kind.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FlowDocument {
    ops: u64,
    bytes: u64,
    iops: EstimateDocument,
    bytes_per_s: EstimateDocument,
    latency_ns: LatencyDocument,
    /// Time from issue to completion, of an open loop, whose latency counts from the scheduled time.
    service_ns: Option<LatencyDocument>,
}

impl FlowDocument {
    fn of(flow: &Flow, figures: &FlowFigures) -> FlowDocument {
        FlowDocument {
            ops: flow.ops,
            bytes: flow.bytes,
            iops: figures.iops.into(),
            bytes_per_s: figures.bytes_per_s.into(),
            latency_ns: LatencyDocument::of(&flow.latency),
            service_ns: flow.service.as_ref().map(LatencyDocument::of),
        }
    }
}

/// A mean with the bounds of its 95 % interval.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EstimateDocument {
    mean: f64,
    low: Option<f64>,
    high: Option<f64>,
}

impl From<Estimate> for EstimateDocument {
    fn from(estimate: Estimate) -> EstimateDocument {
        EstimateDocument {
            mean: estimate.mean,
            low: estimate.low,
            high: estimate.high,
        }
    }
}

/// Latency of requests, in nanoseconds.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LatencyDocument {
    min: u64,
    mean: f64,
    stddev: f64,
    p50: u64,
    p90: u64,
    p95: u64,
    p99: u64,
    p99_9: u64,
    p99_99: u64,
    max: u64,
}

impl LatencyDocument {
    fn of(latency: &Histogram) -> LatencyDocument {
        LatencyDocument {
            min: latency.min(),
            mean: latency.mean(),
            stddev: latency.stddev(),
            p50: latency.quantile(0.50),
            p90: latency.quantile(0.90),
            p95: latency.quantile(0.95),
            p99: latency.quantile(0.99),
            p99_9: latency.quantile(0.999),
            p99_99: latency.quantile(0.9999),
            max: latency.max(),
        }
    }
}

/// Fairness between the threads: means and population deviations of their requests, and of the seconds that
/// these took; null where that is not known.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FairnessDocument {
    ops_mean: f64,
    ops_stddev: f64,
    seconds_mean: Option<f64>,
    seconds_stddev: Option<f64>,
}

impl FairnessDocument {
    fn of(thread_ops: &[u64], thread_seconds: &[f64]) -> FairnessDocument {
        let ops: Vec<f64> = thread_ops.iter().map(|ops| *ops as f64).collect();
        let (ops_mean, ops_stddev) = mean_and_deviation(&ops);
        let seconds = (!thread_seconds.is_empty()).then(|| mean_and_deviation(thread_seconds));
        FairnessDocument {
            ops_mean,
            ops_stddev,
            seconds_mean: seconds.map(|(mean, _)| mean),
            seconds_stddev: seconds.map(|(_, stddev)| stddev),
        }
    }
}

/// The kernel's counts on the disks below during the windows.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DeviceDocument {
    iops: f64,
    mean_bytes: Option<f64>,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    write_bytes: u64,
    flushes: u64,
    busy_s: f64,
}

impl DeviceDocument {
    /// `None` where there are no counts.
    fn of(phase: &Phase) -> Option<DeviceDocument> {
        let (counts, seconds) = crate::figures::device_totals(phase)?;
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

/// A part of a phase's time.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WindowDocument {
    /// Beginning, in seconds since that of the phase.
    t_s: f64,
    seconds: f64,
    ops: u64,
    bytes: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    /// Requests in flight at its end.
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
    use serde_json::Value;

    use super::*;
    use crate::views::sample;

    /// The keys that the design promises, for other programs.
    #[test]
    fn the_document_holds_what_was_promised() {
        let (run, conclusion) = sample::database_run(1);
        let text = document(&run, &conclusion);
        let document: Value = serde_json::from_str(&text).unwrap();
        let promised = [
            (
                "",
                "schema command disksmith run target machine suite phases findings verdict",
            ),
            ("/target", "path kind device model size_bytes"),
            (
                "/machine",
                "hostname kernel cpu cores memory_bytes filesystem scheduler cloud",
            ),
            (
                "/phases/1",
                "name workload seconds stopped read write sync threads_fairness cpu windows",
            ),
            (
                "/phases/1/workload",
                "pattern read_fraction block_bytes threads depth rate_per_s span_bytes",
            ),
            ("/phases/1/read", "ops bytes iops bytes_per_s latency_ns"),
            ("/phases/1/read/iops", "mean low high"),
            (
                "/phases/1/read/latency_ns",
                "min mean stddev p50 p90 p95 p99 p99_9 p99_99 max",
            ),
            ("/phases/1/threads_fairness", "ops_mean ops_stddev"),
            ("/phases/1/cpu", "user_s system_s"),
            ("/phases/1/windows/0", "t_s ops bytes p50_ns p99_ns max_ns"),
        ];
        for (place, keys) in promised {
            let object = document.pointer(place).unwrap();
            for key in keys.split(' ') {
                assert!(object.get(key).is_some(), "{place} has no {key}");
            }
        }
        assert_eq!(document["schema"], 1);
        assert_eq!(document["command"], "bench");
        assert!(document["phases"][1]["write"].is_null());
        assert!(document["phases"][1]["read"]["iops"]["mean"].is_f64());
        assert!(matches!(
            document["verdict"].as_str(),
            Some("trusted" | "doubtful" | "invalid")
        ));
    }

    #[test]
    fn fairness_is_mean_and_deviation_of_the_threads() {
        let value = serde_json::to_value(FairnessDocument::of(&[90, 110], &[1.0])).unwrap();
        assert_eq!(value["ops_mean"], 100.0);
        assert_eq!(value["ops_stddev"], 10.0);
        assert_eq!(value["seconds_mean"], 1.0);
        assert_eq!(FairnessDocument::of(&[1], &[]).seconds_mean, None);
    }
}
