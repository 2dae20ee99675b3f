//! Runs for tests: one phase with a given rate over time, noise and circumstances.

use std::ops::Range;

use record::{
    Bytes, ClockKind, CpuTime, DeviceCounts, EngineKind, EngineUsed, FindingCode, Flow, Histogram,
    HostConditions, Machine, Nanos, Origin, Phase, Run, RunId, Severity, Slice, StopReason, Target,
    TargetKind, Window, WindowFlow, Workload,
};

use crate::conclusion::Conclusion;

const SECONDS: usize = 8;
const DEPTH: u32 = 20;

/// A run that a test makes: one phase of a given rate, noise and circumstances.
pub(super) struct TestRun {
    rate: Box<dyn Fn(f64) -> f64>,
    noise: f64,
    /// Correlation between the deviations of consecutive slices from the rate, 0 to 1.
    memory: f64,
    /// True if slices differ from the rate only by rounding to whole requests.
    flat: bool,
    seed: u64,
    seconds: usize,
    block: Bytes,
    reads: bool,
    /// The device's count for each request of the run; `None` without a device.
    device_share: Option<f64>,
    idle: f64,
    stalled: Range<usize>,
}

impl TestRun {
    pub(super) fn new(rate: impl Fn(f64) -> f64 + 'static) -> TestRun {
        TestRun {
            rate: Box::new(rate),
            noise: 0.02,
            memory: 0.0,
            flat: false,
            seed: 1,
            seconds: SECONDS,
            block: Bytes::kib(16),
            reads: true,
            device_share: Some(1.0),
            idle: 0.8,
            stalled: 0..0,
        }
    }

    pub(super) fn steady(rate: f64) -> TestRun {
        TestRun::new(move |_| rate)
    }

    pub(super) fn capped(rate: f64) -> TestRun {
        TestRun::steady(rate).flat()
    }

    pub(super) fn flat(self) -> TestRun {
        TestRun { flat: true, ..self }
    }

    pub(super) fn noise(self, noise: f64) -> TestRun {
        TestRun { noise, ..self }
    }

    pub(super) fn memory(self, memory: f64) -> TestRun {
        TestRun { memory, ..self }
    }

    pub(super) fn lasting(self, seconds: usize) -> TestRun {
        TestRun { seconds, ..self }
    }

    pub(super) fn seed(self, seed: u64) -> TestRun {
        TestRun { seed, ..self }
    }

    pub(super) fn block(self, block: Bytes) -> TestRun {
        TestRun { block, ..self }
    }

    pub(super) fn writing(self) -> TestRun {
        TestRun {
            reads: false,
            ..self
        }
    }

    pub(super) fn device_share(self, share: f64) -> TestRun {
        TestRun {
            device_share: Some(share),
            ..self
        }
    }

    pub(super) fn no_device(self) -> TestRun {
        TestRun {
            device_share: None,
            ..self
        }
    }

    pub(super) fn idle(self, idle: f64) -> TestRun {
        TestRun { idle, ..self }
    }

    /// No request completes in these windows.
    pub(super) fn stalled(self, stalled: Range<usize>) -> TestRun {
        TestRun { stalled, ..self }
    }

    pub(super) fn run(self) -> Run {
        let mut random = Normal {
            state: self.seed,
            memory: self.memory,
            last: 0.0,
        };
        let windows: Vec<Window> = (0..self.seconds)
            .map(|second| self.window(second, &mut random))
            .collect();
        let mut flow = Flow {
            ops: 0,
            bytes: 0,
            latency: Histogram::new(),
            service: None,
        };
        for part in windows
            .iter()
            .filter_map(|w| w.read.as_ref().or(w.write.as_ref()))
        {
            flow.ops += part.ops();
            flow.bytes += part.bytes().0;
            flow.latency.merge(&part.latency);
        }
        let (read, write) = if self.reads {
            (Some(flow), None)
        } else {
            (None, Some(flow))
        };
        let ops: u64 = windows.iter().map(Window::ops).sum();
        run_of(Phase {
            name: "page-read".to_owned(),
            workload: self.workload(),
            engine: EngineUsed {
                kind: EngineKind::Scripted,
                clock: ClockKind::Monotonic,
                detail: String::new(),
            },
            began_s: 0.0,
            seconds: self.seconds as f64,
            drain_seconds: 0.0,
            stopped: StopReason::Time,
            read,
            write,
            sync: None,
            commit: None,
            trim: None,
            thread_ops: vec![ops],
            thread_seconds: Vec::new(),
            cpu: CpuTime::default(),
            windows,
            surroundings: HostConditions::default(),
            outcome: record::JobFileResults::default(),
        })
    }

    fn workload(&self) -> Workload {
        Workload {
            read_fraction: if self.reads { 1.0 } else { 0.0 },
            block: self.block,
            depth: DEPTH,
            span: Some(Bytes::gib(100)),
            longest: Nanos::from_secs(SECONDS as u64),
            shortest: Nanos::from_secs(3),
            precision: 0.03,
            ..Workload::default()
        }
    }

    fn window(&self, second: usize, random: &mut Normal) -> Window {
        let slices: Vec<Slice> = (0..10)
            .map(|slice| {
                let rate = (self.rate)(second as f64 + f64::from(slice) / 10.0);
                let noise = if self.flat { 0.0 } else { self.noise };
                let ops = (rate / 10.0 * (1.0 + noise * random.next()))
                    .round()
                    .max(0.0);
                let ops = if self.stalled.contains(&second) {
                    0
                } else {
                    ops as u64
                };
                Slice {
                    ops,
                    bytes: ops * self.block.0,
                }
            })
            .collect();
        let mut flow = WindowFlow {
            slices,
            latency: Histogram::new(),
        };
        let ops = flow.ops();
        // Little's law; a few requests find the disk idle and take a twentieth of that time.
        let latency = (f64::from(DEPTH) / ops.max(1) as f64 * 1e9) as u64;
        flow.latency.record_many(latency, ops - ops / 20);
        flow.latency
            .record_many(latency / u64::from(DEPTH), ops / 20);
        let device = self.device_share.map(|share| {
            let count = |ours: u64| (ours as f64 * share) as u64;
            let (ops, bytes) = (count(ops), count(flow.bytes().0));
            if self.reads {
                DeviceCounts {
                    reads: ops,
                    read_bytes: bytes,
                    ..DeviceCounts::default()
                }
            } else {
                DeviceCounts {
                    writes: ops,
                    write_bytes: bytes,
                    ..DeviceCounts::default()
                }
            }
        });
        let (read, write) = if self.reads {
            (Some(flow), None)
        } else {
            (None, Some(flow))
        };
        Window {
            t_s: second as f64,
            seconds: 1.0,
            slice_seconds: 0.1,
            read,
            write,
            sync: None,
            commit: None,
            trim: None,
            in_flight: u64::from(DEPTH),
            idle_fraction: self.idle,
            device,
        }
    }
}

fn run_of(phase: Phase) -> Run {
    let started = jiff::Timestamp::UNIX_EPOCH;
    Run {
        id: RunId::new(started, 1),
        started,
        disksmith: "0.1.0".to_owned(),
        command: Vec::new(),
        origin: Origin::Measured,
        target: Target {
            path: "/data".to_owned(),
            kind: TargetKind::Directory,
            device: Some("nvme1n1".to_owned()),
            disks: vec!["nvme1n1".to_owned()],
            model: None,
            serial: None,
            size: Bytes::gib(100),
            unwritten_fraction: Some(0.0),
            zero_fraction: None,
            direct: true,
            in_memory: false,
            caches: Vec::new(),
        },
        machine: Machine {
            cores: 8,
            memory: Bytes::gib(16),
            ..Machine::default()
        },
        suite: "database".to_owned(),
        p99_target: None,
        replay: None,
        phases: vec![phase],
        notes: Vec::new(),
        interrupted: false,
    }
}

/// Conclusion from a run.
pub(super) fn conclude(run: &Run) -> Conclusion {
    Conclusion::of(run)
}

/// The codes and severities of a run's findings.
pub(super) fn codes(run: &Run) -> Vec<(FindingCode, Severity)> {
    conclude(run)
        .findings
        .iter()
        .map(|finding| (finding.code, finding.severity))
        .collect()
}

/// Normally distributed numbers, each the sum of twelve uniform ones, with a share of the one before.
struct Normal {
    state: u64,
    memory: f64,
    last: f64,
}

impl Normal {
    fn next(&mut self) -> f64 {
        let drawn = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        self.last = self.memory * self.last + (1.0 - self.memory * self.memory).sqrt() * drawn;
        self.last
    }

    fn uniform(&mut self) -> f64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }
}
