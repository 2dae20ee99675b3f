//! A target that is measured repeatedly: it is opened and prepared once, and held until the end.

use std::sync::atomic::AtomicBool;

use engine::{Engine, EngineError, IoInterface, derive_seed};
use jiff::Timestamp;
use linux::Root;
use linux::diskstats::DiskStats;
use record::{
    Finding, FindingCode, Machine, Nanos, Origin, Phase, Replay, Run, RunId, Severity, Target,
};

use super::conclusion::Conclusion;
use super::from_trace::{self, TraceRounds};
use super::measure;
use super::phase_plan::{PhasePlan, WINDOW};
use super::phases::{ReadyPhases, inspect_content, lay_out_in_directory};
use super::progress::Progress;
use super::schedule::FixedSchedule;
use super::session::{machine_of, seed};
use super::target::Prepared;
use crate::args::BenchArgs;
use domain::plan_binding::BoundTarget;
use replay::PlayError;
use ui::exit::Failure;

/// A target, ready to be measured. It stays open, and claimed, until this is dropped.
pub struct PreparedTarget {
    prepared: Prepared,
    work: Work,
    machine: Machine,
    suite: &'static str,
    interface: IoInterface,
    seed: u64,
    /// Number of rounds measured; it is part of the seed, so that each round makes other requests.
    rounds: u64,
}

/// Work of a round of measurements.
enum Work {
    /// Phases, one after another.
    Phases(Vec<PhasePlan>),
    /// The first part of a trace.
    Trace(Box<TraceRounds>),
}

impl Work {
    fn writes(&self) -> bool {
        match self {
            Work::Phases(phases) => phases.iter().any(|plan| plan.workload.writes()),
            Work::Trace(trace) => trace.writes(),
        }
    }
}

/// Result of a round of measuring.
pub struct RoundResult {
    /// The phases that ran.
    pub phases: Vec<Phase>,
    /// Mean time that a request took on the slowest of the disks below, by the kernel's counters, in nanoseconds;
    /// `None` if it is not counted, or no request completed.
    pub disk_latency_ns: Option<f64>,
    /// Reason why the figures are not the disk's, as a sentence.
    pub invalid: Option<String>,
    /// Reasons to doubt that the figures are the disk's alone.
    pub doubts: Vec<Finding>,
    /// Error that ended the round early.
    pub failed: Option<EngineError>,
}

impl PreparedTarget {
    /// Opens and prepares the target that `args` name: in a directory, a test file is laid out.
    ///
    /// # Errors
    /// Refused, where `bench` would refuse, and also if a phase may not write; failed midway, where the test file
    /// cannot be laid out.
    pub fn prepare(
        args: &BenchArgs,
        root: &Root,
        engine: &dyn Engine,
        interrupt: &AtomicBool,
    ) -> Result<PreparedTarget, Failure> {
        let seed = seed(args, Timestamp::now());
        if let Some(file) = &args.replay {
            let ready = from_trace::ReadyTrace::make(args, file, root, interrupt)?;
            let device = args.replay_options.device.clone();
            let (prepared, trace) = TraceRounds::prepare(ready, device, engine, seed, interrupt)?;
            return Ok(PreparedTarget::of(
                args,
                root,
                prepared,
                Work::Trace(trace.into()),
                seed,
            ));
        }
        let ReadyPhases {
            mut prepared,
            phases,
        } = ReadyPhases::make(args, root, engine)?;
        if let Some(plan) = phases.iter().find(|plan| plan.workload.writes())
            && !prepared.writable
        {
            return Err(Failure::refused(format!(
                "{} would write, and {} is only read unless --destroy names it",
                plan.name, prepared.target.path
            )));
        }
        lay_out_in_directory(
            args,
            engine,
            &mut prepared,
            &phases,
            seed,
            interrupt,
            &mut Progress::new(false),
        )?;
        inspect_content(&mut prepared, &phases)?;
        Ok(PreparedTarget::of(
            args,
            root,
            prepared,
            Work::Phases(phases),
            seed,
        ))
    }

    fn of(args: &BenchArgs, root: &Root, prepared: Prepared, work: Work, seed: u64) -> Self {
        PreparedTarget {
            machine: machine_of(root, &prepared),
            suite: args.suite_name(),
            interface: args.interface(),
            prepared,
            work,
            seed,
            rounds: 0,
        }
    }

    /// The prepared target.
    pub fn target(&self) -> &Target {
        &self.prepared.target
    }

    /// The target whose data is overwritten by measuring; `None` where nothing is overwritten.
    ///
    /// # Errors
    /// Reason why it is not known, as a sentence.
    pub fn destroy_target(&self, root: &Root) -> Result<Option<BoundTarget>, String> {
        if self.work.writes() {
            self.prepared.destroy_target(root)
        } else {
            Ok(None)
        }
    }

    /// Measures all phases one after another, for a total time; or replays the first part of the trace that takes this
    /// time.
    pub fn measure(
        &mut self,
        seconds: f64,
        engine: &dyn Engine,
        interrupt: &AtomicBool,
    ) -> RoundResult {
        let started = Timestamp::now();
        let before = self.counted();
        self.rounds += 1;
        let seed = derive_seed(self.seed, self.rounds);
        let (prepared, interface) = (&self.prepared, self.interface);
        let mut replayed = None;
        let (phases, failed) = match &mut self.work {
            Work::Phases(phases) => {
                let share = Nanos((seconds / phases.len() as f64 * 1e9) as u64);
                let plans = phases.iter().map(|plan| with_length(plan, share));
                let measured = measure::measure(
                    engine,
                    prepared,
                    &[&prepared.file],
                    &mut FixedSchedule(plans.collect()),
                    interface,
                    seed,
                    interrupt,
                    &mut Progress::new(false),
                );
                (measured.phases, measured.failed.map(|(_, error)| error))
            }
            Work::Trace(trace) => {
                match trace.measure(prepared, seconds, interface, seed, interrupt) {
                    Ok((phase, replay)) => {
                        replayed = Some(Box::new(replay));
                        (vec![phase], None)
                    }
                    Err(PlayError::Engine(error)) => (Vec::new(), Some(error)),
                    Err(PlayError::Read(error)) => {
                        let error = std::io::Error::other(error);
                        (Vec::new(), Some(EngineError::Setup(error)))
                    }
                }
            }
        };
        let after = self.counted();
        let run = self.run(started, phases, replayed);
        let findings = Conclusion::of(&run).findings;
        let is_invalid = |finding: &&Finding| finding.severity == Severity::Invalid;
        let invalid = findings.iter().find(is_invalid).cloned();
        let doubts = findings.into_iter().filter(is_doubt).collect();
        RoundResult {
            phases: run.phases,
            disk_latency_ns: slowest(&before, &after),
            invalid: invalid.map(|finding| finding.text),
            doubts,
            failed,
        }
    }

    /// The kernel's counts of each disk below; `None` where they cannot be read.
    fn counted(&self) -> Vec<Option<DiskStats>> {
        let counters = self.prepared.counters.iter();
        counters.map(|counter| counter.read().ok()).collect()
    }

    /// The round as a run of its own, with its findings.
    fn run(&self, started: Timestamp, phases: Vec<Phase>, replay: Option<Box<Replay>>) -> Run {
        Run {
            id: RunId::new(started, self.seed ^ u64::from(std::process::id())),
            started,
            disksmith: env!("CARGO_PKG_VERSION").to_owned(),
            command: Vec::new(),
            origin: Origin::Measured,
            target: self.prepared.target.clone(),
            machine: self.machine.clone(),
            suite: self.suite.to_owned(),
            p99_target: None,
            replay,
            phases,
            notes: Vec::new(),
            interrupted: false,
        }
    }
}

/// True if a finding makes it doubtful that the figures are the disk's. Whether they are steady is decided by
/// comparing the rounds.
fn is_doubt(finding: &Finding) -> bool {
    let is_of_source = matches!(
        finding.code,
        FindingCode::Unwritten
            | FindingCode::Cached
            | FindingCode::CpuBound
            | FindingCode::ForeignIo
            | FindingCode::SmallSpan
    );
    finding.severity == Severity::Warn && is_of_source
}

/// The plan with exactly this length, so that rounds can be compared.
fn with_length(plan: &PhasePlan, share: Nanos) -> PhasePlan {
    let mut plan = plan.clone();
    plan.workload.longest = share;
    plan.workload.shortest = share;
    plan.workload.precision = 0.0;
    plan.window = WINDOW.min(share);
    plan
}

/// The mean latency of the slowest disk, in nanoseconds.
fn slowest(before: &[Option<DiskStats>], after: &[Option<DiskStats>]) -> Option<f64> {
    let of_disk = |(before, after): (&Option<DiskStats>, &Option<DiskStats>)| {
        after.as_ref()?.mean_latency_ns(before.as_ref()?)
    };
    before
        .iter()
        .zip(after)
        .filter_map(of_disk)
        .max_by(f64::total_cmp)
}
