//! One JSON document a run. Its keys are read by other programs: none is renamed or retyped
//! without raising [`SCHEMA`].

use record::{Activity, Direction, Flow, Histogram, Machine, Phase, Run, Window};
use serde_json::{Value, json};

use ui::json::SCHEMA;

use crate::conclusion::{Conclusion, Estimate, FlowFigures, PhaseFigures};

/// The document of one run, with a line's end behind it.
pub(crate) fn document(run: &Run, conclusion: &Conclusion) -> String {
    let mut text = format!("{:#}", value(run, conclusion));
    text.push('\n');
    text
}

fn value(run: &Run, conclusion: &Conclusion) -> Value {
    let phases: Vec<Value> = run
        .phases
        .iter()
        .zip(&conclusion.phases)
        .map(|(phase, figures)| phase_value(phase, figures))
        .collect();
    json!({
        "schema": SCHEMA,
        "command": "bench",
        "disksmith": run.disksmith,
        "run": run.id,
        "started": run.started,
        "origin": run.origin,
        "interrupted": run.interrupted,
        "target": target(run),
        "machine": machine(&run.machine),
        "suite": run.suite,
        "phases": phases,
        "answer": conclusion.answer,
        "findings": conclusion.findings,
        "verdict": conclusion.verdict,
        "notes": run.notes,
    })
}

fn target(run: &Run) -> Value {
    let target = &run.target;
    let caches: Vec<Value> = target
        .caches
        .iter()
        .map(|cache| json!({ "layer": cache.layer, "kind": ui::words::cache(&cache.kind) }))
        .collect();
    json!({
        "path": target.path,
        "kind": target.kind,
        "device": target.device,
        "disks": target.disks,
        "model": target.model,
        "serial": target.serial,
        "size_bytes": target.size,
        "unwritten_fraction": target.unwritten_fraction,
        "zero_fraction": target.zero_fraction,
        "direct": target.direct,
        "in_memory": target.in_memory,
        "caches": caches,
    })
}

/// Facts about the machine, as every document has them.
pub fn machine(machine: &Machine) -> Value {
    let filesystem = machine.filesystem.as_ref();
    json!({
        "hostname": machine.hostname,
        "kernel": machine.kernel,
        "arch": machine.arch,
        "cpu": machine.cpu,
        "cores": machine.cores,
        "memory_bytes": machine.memory,
        "memory_limit_bytes": machine.memory_limit,
        "filesystem": filesystem.map(|filesystem| &filesystem.kind),
        "mount_point": filesystem.map(|filesystem| &filesystem.mount_point),
        "mount_options": filesystem.map(|filesystem| &filesystem.options),
        "scheduler": machine.scheduler,
        "read_ahead_bytes": machine.read_ahead,
        "rotational": machine.rotational,
        "write_cache": machine.write_cache,
        "cloud": machine.cloud,
    })
}

fn phase_value(phase: &Phase, figures: &PhaseFigures) -> Value {
    let workload = &phase.workload;
    let flow = |direction| {
        phase
            .flow(direction)
            .zip(figures.flow(direction))
            .map(|(flow, figures)| flow_value(flow, figures))
    };
    // Work on files is neither a read nor a write, for whoever adds those up.
    let data = |direction| flow(direction).filter(|_| !workload.is_of_files());
    let of_files = |activity| {
        let counted = |direction: &Direction| workload.activity(*direction) == activity;
        Direction::ALL.into_iter().find(counted).and_then(flow)
    };
    let windows: Vec<Value> = phase.windows.iter().map(window_value).collect();
    json!({
        "name": phase.name,
        "workload": {
            "pattern": workload.pattern,
            "read_fraction": workload.read_fraction,
            "block_bytes": workload.block,
            "threads": workload.threads,
            "depth": workload.depth,
            "rate_per_s": workload.rate_per_s,
            "span_bytes": workload.span,
            "sync_every": workload.sync_every,
            "sync_at_end": workload.sync_at_end,
            "details": workload.details,
        },
        "engine": {
            "kind": phase.engine.kind,
            "clock": phase.engine.clock,
            "detail": phase.engine.detail,
        },
        "began_s": phase.began_s,
        "seconds": phase.seconds,
        "drain_seconds": phase.drain_seconds,
        "warmup_seconds": figures.warmup_slices as f64 * phase.slice_seconds(),
        "stopped": phase.stopped,
        "read": data(Direction::Read),
        "write": data(Direction::Write),
        "create": of_files(Activity::Create),
        "stat": of_files(Activity::Stat),
        "delete": of_files(Activity::Delete),
        "sync": flow(Direction::Sync),
        "commit": flow(Direction::Commit),
        "threads_fairness": fairness(&phase.thread_ops, &phase.thread_seconds),
        "cpu": { "user_s": phase.cpu.user_s, "system_s": phase.cpu.system_s },
        "device": device_value(phase),
        "windows": windows,
    })
}

fn flow_value(flow: &Flow, figures: &FlowFigures) -> Value {
    json!({
        "ops": flow.ops,
        "bytes": flow.bytes,
        "iops": estimate(figures.iops),
        "bytes_per_s": estimate(figures.bytes_per_s),
        "latency_ns": latency(&flow.latency),
        "service_ns": flow.service.as_ref().map(latency),
    })
}

fn estimate(estimate: Estimate) -> Value {
    json!({ "mean": estimate.mean, "low": estimate.low, "high": estimate.high })
}

fn latency(latency: &Histogram) -> Value {
    json!({
        "min": latency.min(),
        "mean": latency.mean(),
        "stddev": latency.stddev(),
        "p50": latency.quantile(0.50),
        "p90": latency.quantile(0.90),
        "p95": latency.quantile(0.95),
        "p99": latency.quantile(0.99),
        "p99_9": latency.quantile(0.999),
        "p99_99": latency.quantile(0.9999),
        "max": latency.max(),
    })
}

/// Fairness between the threads: means and population deviations of their requests, and of the seconds that
/// these took; null where that is not known.
fn fairness(thread_ops: &[u64], thread_seconds: &[f64]) -> Value {
    let ops: Vec<f64> = thread_ops.iter().map(|ops| *ops as f64).collect();
    let (ops_mean, ops_stddev) = mean_and_deviation(&ops);
    let seconds = (!thread_seconds.is_empty()).then(|| mean_and_deviation(thread_seconds));
    json!({
        "ops_mean": ops_mean,
        "ops_stddev": ops_stddev,
        "seconds_mean": seconds.map(|(mean, _)| mean),
        "seconds_stddev": seconds.map(|(_, stddev)| stddev),
    })
}

/// Zeros where there are no values.
pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / count).sqrt())
}

/// The kernel's counts on the disks below during the windows; null where there are none.
fn device_value(phase: &Phase) -> Value {
    let Some((counts, seconds)) = super::device_totals(phase) else {
        return Value::Null;
    };
    let ops = counts.reads + counts.writes;
    let bytes = counts.read_bytes + counts.write_bytes;
    json!({
        "iops": ops as f64 / seconds,
        "mean_bytes": (ops > 0).then(|| bytes as f64 / ops as f64),
        "reads": counts.reads,
        "read_bytes": counts.read_bytes,
        "writes": counts.writes,
        "write_bytes": counts.write_bytes,
        "flushes": counts.flushes,
        "busy_s": counts.busy_ms as f64 / 1e3,
    })
}

fn window_value(window: &Window) -> Value {
    let mut latency = Histogram::new();
    let flows = [&window.read, &window.write].into_iter().flatten();
    flows.for_each(|flow| latency.merge(&flow.latency));
    let bytes: u64 = [&window.read, &window.write]
        .into_iter()
        .flatten()
        .map(|flow| flow.bytes().0)
        .sum();
    json!({
        "t_s": window.t_s,
        "seconds": window.seconds,
        "ops": window.ops(),
        "bytes": bytes,
        "p50_ns": latency.quantile(0.50),
        "p99_ns": latency.quantile(0.99),
        "max_ns": latency.max(),
        "in_flight": window.in_flight,
    })
}

#[cfg(test)]
mod tests {
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
        let value = fairness(&[90, 110], &[1.0]);
        assert_eq!(value["ops_mean"], 100.0);
        assert_eq!(value["ops_stddev"], 10.0);
        assert_eq!(value["seconds_mean"], 1.0);
        assert!(fairness(&[1], &[])["seconds_mean"].is_null());
    }
}
