//! An imported run as a JSON document: the keys of [`crate::views::json`], with null where the
//! tool did not say, and a few more.

use record::{Activity, FlowSummary, ImportedRun, LatencySummary, PhaseSummary};
use serde_json::{Value, json};

use crate::imported::Judged;
use ui::json::SCHEMA;

/// The document of one run, with a line's end behind it.
pub(crate) fn document(run: &ImportedRun, judged: &Judged) -> String {
    format!("{:#}\n", value(run, judged))
}

/// The document of one run.
pub(crate) fn value(run: &ImportedRun, judged: &Judged) -> Value {
    let summary = &run.summary;
    let phases: Vec<Value> = summary.phases.iter().map(phase).collect();
    json!({
        "schema": SCHEMA,
        "command": "import",
        "disksmith": run.disksmith,
        "run": run.id,
        "started": summary.ran,
        "imported": run.imported,
        "origin": { "imported": { "tool": summary.tool } },
        "source": run.source,
        "interrupted": false,
        "target": {
            "path": summary.target,
            "kind": null,
            "device": null,
            "model": null,
            "size_bytes": null,
            "direct": direct(&summary.phases),
        },
        "machine": { "hostname": summary.host },
        "suite": run.suite(),
        "phases": phases,
        "findings": judged.findings,
        "verdict": judged.verdict,
        "notes": [],
    })
}

/// True if the page cache was bypassed, where that is known of all phases and the same.
fn direct(phases: &[PhaseSummary]) -> Option<bool> {
    let first = phases.first()?.work.direct?;
    let all = phases.iter().all(|phase| phase.work.direct == Some(first));
    all.then_some(first)
}

fn phase(phase: &PhaseSummary) -> Value {
    let work = &phase.work;
    let of = |activity| phase.flows.iter().find(|flow| flow.activity == activity);
    let cpu = &phase.cpu;
    let seconds = |share: Option<f64>| Some(share? * phase.seconds?);
    let mut value = json!({
        "name": phase.name,
        "workload": {
            "pattern": work.pattern,
            "read_fraction": work.read_fraction,
            "block_bytes": work.block,
            "threads": work.threads,
            "depth": work.depth,
            "rate_per_s": work.rate_per_s,
            "span_bytes": work.span,
            "sync_every": work.sync_every,
            "sync_at_end": null,
        },
        "engine": { "kind": "imported", "clock": null, "detail": work.engine },
        "seconds": phase.seconds,
        "stopped": null,
        "read": of(Activity::Read).map(flow),
        "write": of(Activity::Write).map(flow),
        "sync": of(Activity::Sync).map(flow),
        "commit": of(Activity::Commit).map(flow),
        "threads_fairness": phase.fairness,
        "cpu": {
            "user_s": seconds(cpu.user),
            "system_s": seconds(cpu.system),
            "share": cpu.total.or_else(|| Some(cpu.user? + cpu.system?)),
        },
        "windows": [],
        "failure": phase.failure,
    });
    // What a run of our own never has is only there where the tool gives it.
    for activity in [
        Activity::All,
        Activity::Trim,
        Activity::Create,
        Activity::Stat,
        Activity::Delete,
    ] {
        if let Some(found) = of(activity) {
            value[activity.word()] = flow(found);
        }
    }
    value
}

fn flow(flow: &FlowSummary) -> Value {
    let mean = |mean: Option<f64>| json!({ "mean": mean, "low": null, "high": null });
    json!({
        "ops": flow.ops,
        "bytes": flow.bytes,
        "iops": mean(flow.ops_per_s),
        "bytes_per_s": mean(flow.bytes_per_s),
        "latency_ns": latency(&flow.latency),
        "service_ns": null,
        "too_fast": flow.too_fast,
    })
}

fn latency(latency: &LatencySummary) -> Value {
    json!({
        "min": latency.min_ns,
        "mean": latency.mean_ns,
        "stddev": latency.stddev_ns,
        "p50": latency.quantile(0.50),
        "p90": latency.quantile(0.90),
        "p95": latency.quantile(0.95),
        "p99": latency.quantile(0.99),
        "p99_9": latency.quantile(0.999),
        "p99_99": latency.quantile(0.9999),
        "max": latency.max_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::imported::sample;

    #[test]
    fn what_is_not_known_is_null_and_never_a_zero() {
        let run = sample::bonnie();
        let value = value(&run, &Judged::of(&run));
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
