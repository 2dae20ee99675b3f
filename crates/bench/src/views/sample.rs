//! Realistic runs for tests of the views: the suite `database` on a network volume, drawn from log-normal latencies
//! by a seeded generator, so that the same seed is the same run.

mod draw;

use record::{
    Bytes, Cloud, EngineKind, FilesystemFacts, Finding, FindingCode, Machine, Origin, Run, RunId,
    Severity, StopReason, Target, TargetKind, Verdict,
};

use crate::conclusion::Conclusion;
use crate::figures::{Estimate, FlowFigures, PhaseFigures};
pub use draw::Random;

/// Largest share by which the seed makes a run faster or slower.
const SPREAD: f64 = 0.25;

fn machine() -> Machine {
    Machine {
        hostname: "db-replica-3".to_owned(),
        kernel: "6.1.0-28-cloud-amd64".to_owned(),
        arch: "x86_64".to_owned(),
        cpu: "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz".to_owned(),
        cores: 8,
        memory: Bytes::gib(64),
        memory_limit: None,
        filesystem: Some(FilesystemFacts {
            kind: "ext4".to_owned(),
            mount_point: "/var/lib/mysql".to_owned(),
            options: "rw,noatime,errors=remount-ro".to_owned(),
        }),
        scheduler: Some("none".to_owned()),
        read_ahead: Some(Bytes::kib(128)),
        rotational: Some(false),
        write_cache: Some("write through".to_owned()),
        cloud: Some(Cloud {
            provider: "aws".to_owned(),
            instance_type: Some("r6i.2xlarge".to_owned()),
            zone: Some("us-east-1a".to_owned()),
            instance_id: Some("i-0abcdef1234567890".to_owned()),
        }),
    }
}

/// A run of all seven phases of the suite `database`, and the conclusions from it. Runs of different seeds differ in
/// id, speed and noise.
pub fn database_run(seed: u64) -> (Run, Conclusion) {
    let mut random = Random::new(seed);
    let speed = 1.0 + SPREAD * (2.0 * random.uniform() - 1.0);
    let began = jiff::Timestamp::UNIX_EPOCH
        + jiff::SignedDuration::from_secs(1_795_293_912 + 86_400 * (seed % 1_000) as i64);
    let mut phases = Vec::new();
    let mut at = 1.0;
    for plan in draw::plans() {
        phases.push(draw::phase(&plan, at, speed, &mut random));
        at += plan.seconds + 0.5;
    }
    let run = Run {
        id: RunId::new(began, seed),
        started: began,
        disksmith: "0.1.0".to_owned(),
        command: ["disksmith", "bench", "/var/lib/mysql"]
            .map(String::from)
            .to_vec(),
        origin: Origin::Measured,
        target: Target {
            path: "/var/lib/mysql".to_owned(),
            kind: TargetKind::Directory,
            device: Some("nvme1n1".to_owned()),
            model: Some("Amazon Elastic Block Store".to_owned()),
            serial: Some("vol0123456789abcdef0".to_owned()),
            size: Bytes::gib(4),
            disks: vec!["nvme1n1".to_owned()],
            unwritten_fraction: Some(0.0),
            zero_fraction: None,
            direct: true,
            in_memory: false,
            caches: Vec::new(),
        },
        machine: machine(),
        suite: "database".to_owned(),
        p99_target: None,
        replay: None,
        phases,
        notes: Vec::new(),
        interrupted: false,
    };
    let conclusion = conclusion(&run);
    (run, conclusion)
}

/// A conclusion from `run`: means with intervals of 2 % where there are windows, and one finding of each severity if
/// its phase ran.
pub(crate) fn conclusion(run: &Run) -> Conclusion {
    let estimate = |mean: f64, measured: bool| Estimate {
        mean,
        low: measured.then_some(mean * 0.98),
        high: measured.then_some(mean * 1.02),
    };
    let phases = run
        .phases
        .iter()
        .map(|phase| PhaseFigures {
            name: phase.name.clone(),
            warmup_slices: 0,
            flows: phase
                .directions()
                .map(|(direction, flow)| FlowFigures {
                    direction,
                    iops: estimate(flow.ops as f64 / phase.seconds, !phase.windows.is_empty()),
                    bytes_per_s: estimate(
                        flow.bytes as f64 / phase.seconds,
                        !phase.windows.is_empty(),
                    ),
                })
                .collect(),
        })
        .collect();
    let findings: Vec<Finding> = [
        (
            FindingCode::Burst,
            Severity::Warn,
            "page-write",
            "3,010 IOPS for the first 4.5 s, then 1,350: burst credit was used up, and the second \
             level is the sustained one.",
        ),
        (
            FindingCode::Stall,
            Severity::Warn,
            "page-mixed",
            "From 5.0 s to 5.8 s almost nothing completed while 20 requests were in flight.",
        ),
        (
            FindingCode::Capped,
            Severity::Note,
            "scan",
            "Throughput stays within 1 % of 250 MB/s: a configured limit, not the disk's own.",
        ),
    ]
    .into_iter()
    .filter(|(_, _, name, _)| run.phases.iter().any(|phase| phase.name == *name))
    .map(|(code, severity, name, text)| Finding {
        code,
        severity,
        phase: Some(name.to_owned()),
        text: text.to_owned(),
    })
    .collect();
    let verdict = Verdict::of(&findings);
    Conclusion {
        answer: None,
        phases,
        findings,
        verdict,
    }
}

/// A run as it is read from another tool's output: totals, and nothing over time.
pub fn imported_run(seed: u64) -> (Run, Conclusion) {
    let (mut run, _) = database_run(seed);
    run.origin = Origin::Imported {
        tool: "fio 3.33".to_owned(),
    };
    for phase in &mut run.phases {
        phase.windows.clear();
        phase.engine.kind = EngineKind::Imported;
    }
    let conclusion = conclusion(&run);
    (run, conclusion)
}

/// A run that a signal ended in its third phase.
pub fn interrupted_run(seed: u64) -> (Run, Conclusion) {
    let (mut run, _) = database_run(seed);
    run.phases.truncate(3);
    if let Some(last) = run.phases.last_mut() {
        last.stopped = StopReason::Signal;
    }
    run.interrupted = true;
    run.notes
        .push("Ctrl-C ended the run in phase page-write; four phases were left out.".to_owned());
    let conclusion = conclusion(&run);
    (run, conclusion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_draws_the_same_run() {
        assert_eq!(database_run(7), database_run(7));
        assert_ne!(database_run(7).0.id, database_run(8).0.id);
    }
}
