//! One of two runs that are compared, measured or imported: what a comparison needs of either.

use record::{Activity, Direction, ImportedRun, Pattern, Phase, PhaseSummary, Run, RunId, Verdict};

use crate::bench::conclusion::{Conclusion, PhaseFigures};
use crate::imported::Judged;
use crate::render::words::{engine, number, percent, workload};

/// A run.
pub(super) struct Side {
    pub(super) id: RunId,
    pub(super) verdict: Verdict,
    pub(super) phases: Vec<SidePhase>,
}

/// A phase.
pub(super) struct SidePhase {
    pub(super) name: String,
    /// What was done, to tell whether another phase did the same.
    pub(super) work: Work,
    /// The same as a sentence's part.
    pub(super) described: String,
    pub(super) flows: Vec<SideFlow>,
}

/// What was done of one kind.
pub(super) struct SideFlow {
    pub(super) activity: Activity,
    /// The mean of requests a second; `None` where the tool does not say.
    pub(super) iops: Option<f64>,
    /// The mean of bytes a second; `None` where the tool does not say.
    pub(super) bytes_per_s: Option<f64>,
    /// Requests a second in each slice, without the warm-up; empty for an imported run.
    pub(super) rates: Vec<f64>,
    /// The 99th percentile of the latency in nanoseconds; `None` where the tool does not say.
    pub(super) p99: Option<u64>,
}

/// What a phase did, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Work {
    pattern: Option<Pattern>,
    read_fraction: Option<f64>,
    block: Option<u64>,
    in_flight: Option<u64>,
    span: Option<u64>,
    sync_every: Option<u32>,
    sync_at_end: Option<bool>,
    rate_per_s: Option<f64>,
    threads: Option<u32>,
    engine: Option<&'static str>,
}

impl Work {
    /// Whether anything that is known of both differs. Between two tools, threads of depth one and
    /// one thread of depth ten are the same work, and so are their ways to the kernel.
    pub(super) fn differs(&self, other: &Work) -> bool {
        fn apart<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
            a.zip(b).is_some_and(|(a, b)| a != b)
        }
        let shares = self.read_fraction.zip(other.read_fraction);
        shares.is_some_and(|(a, b)| (a - b).abs() > 0.005)
            || apart(self.pattern, other.pattern)
            || apart(self.block, other.block)
            || apart(self.in_flight, other.in_flight)
            || apart(self.span, other.span)
            || apart(self.sync_every, other.sync_every)
            || apart(self.sync_at_end, other.sync_at_end)
            || apart(self.rate_per_s, other.rate_per_s)
            || apart(self.threads, other.threads)
            || apart(self.engine, other.engine)
    }

    /// Whether two phases of unlike names do the same: enough is known of both, and nothing of it
    /// differs. The span may: tools have files of their own sizes, which a remark tells.
    pub(super) fn is_like(&self, other: &Work) -> bool {
        let known = |work: &Work| {
            work.pattern.is_some() && work.read_fraction.is_some() && work.block.is_some()
        };
        let mut spanless = self.clone();
        spanless.span = None;
        known(self) && known(other) && !spanless.differs(other)
    }
}

impl Side {
    /// A run that was measured here.
    pub(super) fn measured(run: &Run, conclusion: &Conclusion) -> Side {
        let phases = run.phases.iter().zip(&conclusion.phases);
        Side {
            id: run.id.clone(),
            verdict: conclusion.verdict,
            phases: phases
                .map(|(phase, figures)| measured_phase(phase, figures))
                .collect(),
        }
    }

    /// A run of another tool.
    pub(super) fn imported(run: &ImportedRun, judged: &Judged) -> Side {
        Side {
            id: run.id.clone(),
            verdict: judged.verdict,
            phases: run.summary.phases.iter().map(imported_phase).collect(),
        }
    }
}

fn measured_phase(phase: &Phase, figures: &PhaseFigures) -> SidePhase {
    let w = &phase.workload;
    let flow = |(direction, flow): (Direction, &record::Flow)| {
        // One sync at the end has no rate.
        let once = direction == Direction::Sync && w.sync_every == 0;
        let figures_of = figures.flow(direction).filter(|_| !once)?;
        Some(SideFlow {
            activity: w.activity(direction),
            iops: Some(figures_of.iops.mean),
            bytes_per_s: (!w.is_of_files()).then_some(figures_of.bytes_per_s.mean),
            rates: settled(phase, figures, direction),
            p99: Some(flow.latency.quantile(0.99)),
        })
    };
    let both = read_and_written_back(phase, figures);
    SidePhase {
        name: phase.name.clone(),
        work: Work {
            // Bonnie++ says neither of its tests of files, nor that single bytes are moved in some.
            pattern: Some(w.pattern).filter(|_| !w.is_of_files()),
            read_fraction: Some(w.read_fraction).filter(|_| !w.is_of_files()),
            block: (w.calls().is_none() || w.block.0 > 1).then_some(w.block.0),
            in_flight: Some(w.in_flight()),
            span: w.span.map(|span| span.0),
            sync_every: Some(w.sync_every),
            sync_at_end: Some(w.sync_at_end),
            // None is a closed loop, and known to be one.
            rate_per_s: Some(w.rate_per_s.unwrap_or(0.0)),
            threads: Some(w.threads),
            engine: Some(engine(phase.engine.kind)),
        },
        described: format!(
            "{} ({})",
            workload(w).trim_end_matches('.'),
            engine(phase.engine.kind)
        ),
        flows: phase.directions().filter_map(flow).chain(both).collect(),
    }
}

/// What is read and written back, counted once as Bonnie++ counts it.
fn read_and_written_back(phase: &Phase, figures: &PhaseFigures) -> Option<SideFlow> {
    phase.workload.calls()?;
    let (_, figures_of) = phase.write.as_ref().zip(figures.flow(Direction::Read))?;
    Some(SideFlow {
        activity: Activity::All,
        iops: Some(figures_of.iops.mean),
        bytes_per_s: Some(figures_of.bytes_per_s.mean),
        rates: settled(phase, figures, Direction::Read),
        p99: None,
    })
}

/// The rates of one direction, without the warm-up.
fn settled(phase: &Phase, figures: &PhaseFigures, direction: Direction) -> Vec<f64> {
    let mut rates = phase.slice_rates(direction);
    rates.drain(..figures.warmup_slices.min(rates.len()));
    rates
}

fn imported_phase(phase: &PhaseSummary) -> SidePhase {
    let w = &phase.work;
    let in_flight = w.threads.zip(w.depth);
    let flows = phase.flows.iter().map(|flow| SideFlow {
        activity: flow.activity,
        iops: flow.ops_per_s,
        bytes_per_s: flow.bytes_per_s,
        rates: Vec::new(),
        p99: flow
            .latency
            .quantile(0.99)
            .map(|nanos| nanos.round() as u64),
    });
    SidePhase {
        name: phase.name.clone(),
        work: Work {
            pattern: w.pattern,
            read_fraction: w.read_fraction,
            block: w.block.map(|block| block.0),
            in_flight: in_flight.map(|(threads, depth)| u64::from(threads) * u64::from(depth)),
            span: w.span.map(|span| span.0),
            sync_every: w.sync_every,
            rate_per_s: w.rate_per_s,
            ..Work::default()
        },
        described: described(phase),
        flows: flows.collect(),
    }
}

/// What is known of an imported phase's work.
fn described(phase: &PhaseSummary) -> String {
    let work = &phase.work;
    let pattern = work.pattern.map(|pattern| match pattern {
        Pattern::Random => "random".to_owned(),
        Pattern::Sequential => "sequential".to_owned(),
    });
    let in_flight = work.threads.zip(work.depth);
    let parts: Vec<String> = [
        pattern,
        work.read_fraction
            .map(|share| format!("{} reads", percent(share))),
        work.block.map(|block| format!("requests of {block}")),
        in_flight
            .map(|(threads, depth)| format!("{} in flight", u64::from(threads) * u64::from(depth))),
        work.span.map(|span| format!("over {span}")),
        work.sync_every
            .filter(|every| *every > 0)
            .map(|every| format!("a sync after every {every} writes")),
        work.rate_per_s
            .map(|rate| format!("at {} a second", number(rate))),
        work.engine.clone(),
    ]
    .into_iter()
    .flatten()
    .collect();
    match parts.is_empty() {
        true => "not known".to_owned(),
        false => parts.join(", "),
    }
}
