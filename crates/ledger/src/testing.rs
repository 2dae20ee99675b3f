//! Runs and scratch folders for tests.

pub(crate) mod arbitrary;

use std::path::PathBuf;

use jiff::{Span, Timestamp};
pub(crate) use record::random::SplitMix64 as Random;
use record::*;

/// A folder that is removed at the end.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.path().join("ledger.db")
    }

    /// Names of the files in the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

pub(crate) fn workload(read_fraction: f64) -> Workload {
    Workload {
        read_fraction,
        block: Bytes::kib(16),
        depth: 20,
        span: Some(Bytes::gib(1)),
        longest: Nanos::from_secs(8),
        shortest: Nanos::from_secs(3),
        precision: 0.03,
        ..Workload::default()
    }
}

pub(crate) fn finding() -> Finding {
    Finding {
        code: FindingCode::Burst,
        severity: Severity::Warn,
        phase: Some("page-read".into()),
        text: "16,000/s for 3 s, and then 3,000/s: burst credit was spent.".into(),
    }
}

/// A run without phases that began this number of minutes after a fixed time.
pub(crate) fn small_run(minute: i64) -> Run {
    let start: Timestamp = "2026-11-21T20:45:12.123456789Z".parse().unwrap();
    let started = start.checked_add(Span::new().minutes(minute)).unwrap();
    Run {
        id: RunId::new(started, minute as u64),
        started,
        disksmith: "0.1.0".into(),
        command: vec!["disksmith".into(), "bench".into(), ".".into()],
        origin: Origin::Measured,
        target: Target {
            path: "/data".into(),
            kind: TargetKind::Directory,
            device: Some("nvme1n1".into()),
            disks: vec!["nvme1n1".into()],
            model: Some("Amazon Elastic Block Store".into()),
            serial: Some("vol-0123".into()),
            size: Bytes::gib(4),
            unwritten_fraction: Some(0.0),
            zero_fraction: None,
            direct: true,
            in_memory: false,
            caches: Vec::new(),
        },
        machine: Machine {
            hostname: "db-1".into(),
            ..Machine::default()
        },
        suite: "database".into(),
        p99_target: None,
        replay: None,
        phases: Vec::new(),
        notes: vec!["The phase load was left out.".into()],
        interrupted: false,
    }
}

/// Latencies like those of a disk: log-normal, with one outlier in five hundred.
fn latencies(random: &mut Random, count: u64, median_ns: f64) -> Histogram {
    let mut histogram = Histogram::new();
    for _ in 0..count {
        let tail = if random.uniform() < 0.002 {
            5.0 + 20.0 * random.uniform()
        } else {
            1.0
        };
        histogram.record((median_ns * tail * (0.25 * random.normal()).exp()) as u64);
    }
    histogram
}

/// A run like those of the suite `database`: seven phases of eight windows. `share` scales the number of requests.
pub(crate) fn database_run(minute: i64, share: f64) -> Run {
    let mut random = Random::new(minute as u64);
    // Reads, writes and syncs (as many commits) a second, and their median latency.
    let phases = [
        ("seek", 3000.0, 0.0, 0.0, 450e3),
        ("page-read", 16_000.0, 0.0, 0.0, 1.1e6),
        ("page-write", 0.0, 12_000.0, 0.0, 1.5e6),
        ("page-mixed", 9000.0, 4000.0, 0.0, 1.3e6),
        ("log-append", 0.0, 900.0, 900.0, 400e3),
        ("scan", 800.0, 0.0, 0.0, 9e6),
        ("load", 0.0, 700.0, 1.0, 11e6),
    ];
    let mut run = small_run(minute);
    for (place, (name, reads, writes, syncs, median)) in phases.into_iter().enumerate() {
        let mut windows: Vec<Window> = Vec::new();
        for number in 0..8 {
            let mut flow = |rate: f64| {
                let ops = (rate * share * (0.95 + 0.1 * random.uniform())).ceil() as u64;
                (ops > 0).then(|| WindowFlow {
                    slices: (0..10)
                        .map(|_| {
                            let ops = (ops as f64 * (0.09 + 0.02 * random.uniform())) as u64;
                            let bytes = ops << 14;
                            Slice { ops, bytes }
                        })
                        .collect(),
                    latency: latencies(&mut random, ops, median),
                })
            };
            let (read, write) = (flow(reads), flow(writes));
            let (sync, commit) = (flow(syncs), flow(syncs));
            windows.push(Window {
                t_s: f64::from(number),
                seconds: 1.0 + 1e-4 * random.uniform(),
                slice_seconds: 0.1,
                read,
                write,
                sync,
                commit,
                trim: None,
                in_flight: 20,
                idle_fraction: random.uniform(),
                device: Some(DeviceCounts {
                    reads: random.bits() % 20_000,
                    read_bytes: random.bits() % (1 << 28),
                    busy_ms: 999,
                    ..DeviceCounts::default()
                }),
            });
        }
        let total = |direction: Direction| {
            let flows: Vec<_> = windows.iter().filter_map(|w| w.flow(direction)).collect();
            let mut latency = Histogram::new();
            flows.iter().for_each(|flow| latency.merge(&flow.latency));
            (!flows.is_empty()).then(|| Flow {
                ops: flows.iter().map(|flow| flow.ops()).sum(),
                bytes: flows.iter().map(|flow| flow.bytes().0).sum(),
                latency,
                service: None,
            })
        };
        run.phases.push(Phase {
            name: name.into(),
            workload: workload(reads / (reads + writes)),
            engine: EngineUsed {
                kind: EngineKind::Uring,
                clock: ClockKind::Tsc,
                detail: String::new(),
            },
            began_s: 8.3 * place as f64,
            seconds: 8.000_123,
            drain_seconds: 0.001_7,
            stopped: StopReason::Time,
            read: total(Direction::Read),
            write: total(Direction::Write),
            sync: total(Direction::Sync),
            commit: total(Direction::Commit),
            trim: None,
            thread_ops: vec![123_456],
            thread_seconds: vec![7.9],
            cpu: CpuTime {
                user_s: 0.7,
                system_s: 1.1,
            },
            windows,
            surroundings: HostConditions::default(),
            outcome: record::JobFileResults::default(),
        });
    }
    run
}

/// A run of another tool, of which little is known.
pub(crate) fn imported_run(minute: i64) -> ImportedRun {
    let at = small_run(minute).started;
    let mut flow = FlowSummary::of(Activity::Read);
    flow.ops_per_s = Some(400.0);
    ImportedRun {
        id: RunId::new(at, 7),
        imported: at,
        disksmith: "0.1.0".to_owned(),
        source: "fio.json".to_owned(),
        summary: Summary {
            tool: "fio 3.33".to_owned(),
            phases: vec![PhaseSummary {
                name: "page-read".to_owned(),
                flows: vec![flow],
                ..PhaseSummary::default()
            }],
            ..Summary::default()
        },
    }
}
