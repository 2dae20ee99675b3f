//! Answers of `disksmith bench --json` in a race.

use std::path::Path;

use record::{Direction, Verdict};
use serde::Deserialize;

use crate::protocol::rounds::{TargetFacts, TargetRound};
use sweep::{Figure, Metric};

/// Name of a replay's only phase.
const REPLAY: &str = bench::REPLAY;

/// Answers of a host in a round, one for each target.
pub(super) struct CollectedHost {
    pub facts: Vec<TargetFacts>,
    pub targets: Vec<TargetRound>,
    /// Ids of the runs.
    pub runs: Vec<String>,
}

/// A document of `bench --json`, with the keys that a race needs. They are pinned in `tests/documents/`.
#[derive(Deserialize)]
struct Document {
    command: String,
    run: String,
    target: Target,
    phases: Vec<Phase>,
    findings: Vec<record::Finding>,
    verdict: Verdict,
    interrupted: bool,
}

#[derive(Deserialize)]
struct Target {
    path: String,
    device: Option<String>,
    model: Option<String>,
    serial: Option<String>,
    size_bytes: u64,
}

#[derive(Deserialize)]
struct Phase {
    name: String,
    read: Option<Flow>,
    write: Option<Flow>,
    sync: Option<Flow>,
    commit: Option<Flow>,
    trim: Option<Flow>,
}

#[derive(Deserialize)]
struct Flow {
    iops: Mean,
    bytes_per_s: Mean,
    latency_ns: Latency,
}

#[derive(Deserialize)]
struct Mean {
    mean: f64,
}

#[derive(Deserialize)]
struct Latency {
    mean: f64,
    p50: f64,
    p90: f64,
    p95: f64,
    p99: f64,
    p99_9: f64,
}

/// The concatenated answers in a file, with these figures of each.
///
/// # Errors
/// A sentence without its end, if there is no answer, or something else.
pub(super) fn answers(file: &Path, figures: &[Figure]) -> Result<CollectedHost, String> {
    let text = std::fs::read_to_string(file).map_err(|why| format!("it cannot be read: {why}"))?;
    let mut answered = CollectedHost {
        facts: Vec::new(),
        targets: Vec::new(),
        runs: Vec::new(),
    };
    for document in serde_json::Deserializer::from_str(&text).into_iter::<Document>() {
        let document = document
            .map_err(|why| format!("it is no answer of 'disksmith bench --json': {why}"))?;
        if document.command != "bench" {
            let command = &document.command;
            return Err(format!(
                "it is an answer of '{command}', and not of 'bench'"
            ));
        }
        answered.targets.push(round_of(&document, figures));
        answered.facts.push(TargetFacts {
            path: document.target.path,
            device: document.target.device,
            model: document.target.model,
            serial: document.target.serial,
            size_bytes: document.target.size_bytes,
            overwritten: None,
        });
        answered.runs.push(document.run);
    }
    match answered.runs.is_empty() {
        true => Err("it is empty".to_owned()),
        false => Ok(answered),
    }
}

fn round_of(document: &Document, figures: &[Figure]) -> TargetRound {
    let of_severity = |severity| {
        let of = document
            .findings
            .iter()
            .filter(move |one| one.severity == severity);
        of.map(|finding| finding.text.clone())
    };
    let is_invalid = document.verdict == Verdict::Invalid;
    let missing = figures.iter().find(|figure| {
        !document
            .phases
            .iter()
            .any(|phase| phase.name == figure.phase)
    });
    TargetRound {
        figures: figures
            .iter()
            .map(|figure| value(&document.phases, figure))
            .collect(),
        disk_latency_ns: None,
        invalid: of_severity(record::Severity::Invalid)
            .next()
            .filter(|_| is_invalid),
        broken: None,
        failed: match (document.interrupted, missing) {
            (true, _) => Some("its run was interrupted".to_owned()),
            (false, Some(figure)) => Some(format!("its run has no phase {}", figure.phase)),
            (false, None) => None,
        },
        doubts: of_severity(record::Severity::Warn).collect(),
        is_slowed: document.findings.iter().any(|finding| {
            matches!(
                finding.code,
                record::FindingCode::ForeignIo
                    | record::FindingCode::CpuBound
                    | record::FindingCode::Gap
            )
        }),
    }
}

/// A figure; `None` if it was not measured, or is a percentile over reads and writes together, which a document does
/// not have.
fn value(phases: &[Phase], figure: &Figure) -> Option<f64> {
    let phase = phases.iter().find(|phase| phase.name == figure.phase)?;
    let data = || {
        [&phase.read, &phase.write]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    let flows: Vec<&Flow> = match (figure.direction, &phase.commit) {
        (Some(Direction::Read), _) => phase.read.iter().collect(),
        (Some(Direction::Write), _) => phase.write.iter().collect(),
        (Some(Direction::Sync), _) => phase.sync.iter().collect(),
        (Some(Direction::Commit), _) => phase.commit.iter().collect(),
        (Some(Direction::Trim), _) => phase.trim.iter().collect(),
        (None, Some(commit)) if figure.metric != Metric::Bytes && phase.name != REPLAY => {
            vec![commit]
        }
        (None, _) => data(),
    };
    let sum = |of: fn(&Flow) -> f64| flows.iter().map(|flow| of(flow)).sum::<f64>();
    let alone = |of: fn(&Latency) -> f64| match &flows[..] {
        [flow] => Some(of(&flow.latency_ns)),
        _ => None,
    };
    if flows.is_empty() {
        return None;
    }
    match figure.metric {
        Metric::Iops => Some(sum(|flow| flow.iops.mean)),
        Metric::Bytes => Some(sum(|flow| flow.bytes_per_s.mean)),
        Metric::Mean => {
            let took = sum(|flow| flow.latency_ns.mean * flow.iops.mean);
            Some(took / sum(|flow| flow.iops.mean)).filter(|mean| mean.is_finite())
        }
        Metric::P50 => alone(|latency| latency.p50),
        Metric::P90 => alone(|latency| latency.p90),
        Metric::P95 => alone(|latency| latency.p95),
        Metric::P99 => alone(|latency| latency.p99),
        Metric::P99_9 => alone(|latency| latency.p99_9),
    }
}
