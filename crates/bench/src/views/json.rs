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

/// Document of one run, with a line end.
pub(crate) fn document(run: &Run, conclusion: &Conclusion) -> String {
    // Memory is all that could fail, and there is none that could.
    serde_json::to_string_pretty(&RunDocument::of(run, conclusion)).unwrap_or_default() + "\n"
}

/// The document of `bench --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunDocument<'a> {
    /// Version of the document's form.
    schema: u32,
    /// `bench`, the command that made the document.
    command: &'static str,
    /// Version of the program that measured.
    disksmith: &'a str,
    /// Id of the run.
    run: &'a RunId,
    /// Start of the run.
    started: Timestamp,
    origin: &'a Origin,
    /// True if a signal ended the run before its last phase was done.
    interrupted: bool,
    target: TargetDocument<'a>,
    machine: MachineDocument<'a>,
    /// Name of the suite; `workload` for a single workload of `--workload`.
    suite: &'a str,
    /// Phases that ran, in order.
    phases: Vec<PhaseDocument<'a>>,
    /// Results of the suite beside the figures of its phases; null where the suite has none or nothing was measured.
    answer: &'a Option<SuiteResult>,
    /// Reasons to doubt the figures; empty without one.
    findings: &'a [Finding],
    /// Sum of the findings.
    verdict: Verdict,
    /// Remarks for people, as sentences, such as which phases were left out.
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
    /// Path as it was given; bytes that are not UTF-8 are shown as U+FFFD.
    path: &'a str,
    kind: &'a TargetKind,
    /// Block device below the target, such as `nvme1n1`; null where there is none (tmpfs, NFS).
    device: Option<&'a str>,
    /// Physical disks below that device, through partitions, md and dm.
    disks: &'a [String],
    /// Model of the device, or of the first of the disks; null where it is not known.
    model: Option<&'a str>,
    /// Serial number or volume id of the device, or of the first of the disks; null where it is not known.
    serial: Option<&'a str>,
    /// Usable size of the test files, the file or the device.
    size_bytes: Bytes,
    /// Share of the size that was never written (holes, unwritten extents), 0 to 1; null where the file system does
    /// not report it.
    unwritten_fraction: Option<f64>,
    /// Share of the blocks sampled on a block device that held only zeros, 0 to 1; null for files.
    zero_fraction: Option<f64>,
    /// True if the page cache was bypassed.
    direct: bool,
    /// True if the file system keeps its data in memory, or has no block device below.
    in_memory: bool,
    /// Layers below the target that may serve requests instead of the disk, nearest first.
    caches: Vec<CacheDocument<'a>>,
}

/// A layer below the target that may serve requests from memory or from a faster disk.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CacheDocument<'a> {
    /// Device, or mount point of the file system, that is or has the cache.
    layer: &'a str,
    /// `page-cache`, `memory`, or the type or driver that caches, such as `zfs` or `bcache`.
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
    /// Name of the host.
    hostname: &'a str,
    /// Release of the kernel, such as `6.1.0-13-cloud-amd64`.
    kernel: &'a str,
    /// Architecture of the processor, such as `x86_64`.
    arch: &'a str,
    /// Model of the processor.
    cpu: &'a str,
    /// Processors that the program may use.
    cores: u32,
    /// Memory of the machine.
    memory_bytes: Bytes,
    /// Tightest memory limit of the program's control groups; null where none is below the machine's memory.
    memory_limit_bytes: Option<Bytes>,
    /// Type of the file system that the target lies on, such as `ext4`; null for a block device, as the two keys
    /// below.
    filesystem: Option<&'a str>,
    /// Mount point of that file system.
    mount_point: Option<&'a Path>,
    /// Mount options and super-block options of that file system.
    mount_options: Option<&'a str>,
    /// I/O scheduler of the device below the target; null where it is not known, as the three keys below.
    scheduler: Option<&'a str>,
    /// Read-ahead of that device.
    read_ahead_bytes: Option<Bytes>,
    /// True if that device reports itself as rotational.
    rotational: Option<bool>,
    /// Write cache of that device as the kernel sees it: `write back` or `write through`.
    write_cache: Option<&'a str>,
    /// Description of the instance by the cloud's metadata service; null outside of a cloud.
    cloud: &'a Option<Cloud>,
}

impl<'a> MachineDocument<'a> {
    /// Facts about the machine that a run was made on.
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
    threads_fairness: FairnessDocument,
    /// Processor time that the phase used.
    cpu: CpuDocument,
    /// Counts of the kernel on the disks below; null where it has none.
    device: Option<DeviceDocument>,
    /// Windows of the phase, in order of time, without gap.
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

/// Workload of a phase.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WorkloadDocument<'a> {
    pattern: &'a Pattern,
    /// Share of the requests that read, 0 to 1.
    read_fraction: f64,
    /// Size of a request.
    block_bytes: Bytes,
    /// Threads that issue I/O.
    threads: u32,
    /// Requests in flight of each thread (closed loop), or at most (open loop).
    depth: u32,
    /// Rate of an open loop, in requests a second over all threads; null for a closed loop.
    rate_per_s: Option<f64>,
    /// Bytes of the target, from its start, that are used; null where that is all of it.
    span_bytes: Option<Bytes>,
    /// Writes of a thread between two calls of fdatasync; 0 for no such calls.
    sync_every: u32,
    /// True if each thread calls fdatasync when its last write has completed.
    sync_at_end: bool,
    /// Options of a job file beyond those above; null without any.
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

/// Processor time of a phase. Where several phases run at the same time, of the threads of each.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CpuDocument {
    /// Processor time in user mode, in seconds.
    user_s: f64,
    /// Processor time in the kernel, in seconds, with that of kernel threads which work for the I/O threads.
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
    /// Requests completed within the measured time.
    ops: u64,
    /// Bytes that they transferred.
    bytes: u64,
    /// Requests a second.
    iops: EstimateDocument,
    /// Bytes a second.
    bytes_per_s: EstimateDocument,
    latency_ns: LatencyDocument,
    /// Latency from submission, of an open loop, whose `latency_ns` counts from the time at which a request was due;
    /// null for a closed loop.
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
    /// Mean, in the figure's unit.
    mean: f64,
    /// Lower bound of the interval; null where there are too few slices of the phase for an interval.
    low: Option<f64>,
    /// Upper bound of the interval; null where there are too few slices of the phase for an interval.
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
    /// Shortest latency.
    min: u64,
    /// Mean latency.
    mean: f64,
    /// Standard deviation of the latency.
    stddev: f64,
    /// 50th percentile, the median.
    p50: u64,
    /// 90th percentile.
    p90: u64,
    /// 95th percentile.
    p95: u64,
    /// 99th percentile.
    p99: u64,
    /// 99.9th percentile.
    p99_9: u64,
    /// 99.99th percentile.
    p99_99: u64,
    /// Longest latency.
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

/// Fairness between the threads.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FairnessDocument {
    /// Mean of the threads' completed requests.
    ops_mean: f64,
    /// Population standard deviation of the threads' completed requests.
    ops_stddev: f64,
    /// Mean of the seconds that each thread's requests took together; null where that is not known.
    seconds_mean: Option<f64>,
    /// Population standard deviation of these seconds; null where they are not known.
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
