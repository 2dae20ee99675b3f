//! One of two compared runs, measured or imported: the data that a comparison needs.

use record::{Activity, Direction, ImportedRun, Pattern, Phase, PhaseSummary, Run, RunId, Verdict};

use super::work::Work;
use crate::conclusion::Conclusion;
use crate::figures::PhaseFigures;
use crate::judged::ImportConclusion;
use ui::format::{details, engine, number, percent, workload};

/// A run.
pub(super) struct Side {
    pub(super) id: RunId,
    pub(super) verdict: Verdict,
    pub(super) phases: Vec<SidePhase>,
}

/// A phase of one side of a comparison.
pub(super) struct SidePhase {
    pub(super) name: String,
    /// Work of the phase, to decide whether another phase did the same.
    pub(super) work: Work,
    /// Description of the work, as a part of a sentence.
    pub(super) described: String,
    pub(super) flows: Vec<SideFlow>,
}

/// Results of one kind of request.
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

impl Side {
    /// Data of a run that this program measured.
    pub(super) fn measured(run: &Run, conclusion: &Conclusion) -> Side {
        let phases = run.phases.iter().zip(&conclusion.phases);
        Side {
            id: run.id.clone(),
            verdict: conclusion.verdict,
            phases: phases
                .map(|(phase, figures)| measured_phase(phase, figures, run.target.direct))
                .collect(),
        }
    }

    /// A run of another tool.
    pub(super) fn imported(run: &ImportedRun, judged: &ImportConclusion) -> Side {
        Side {
            id: run.id.clone(),
            verdict: judged.verdict,
            phases: run.summary.phases.iter().map(imported_phase).collect(),
        }
    }
}

fn measured_phase(phase: &Phase, figures: &PhaseFigures, direct: bool) -> SidePhase {
    let w = &phase.workload;
    let flow = |(direction, flow): (Direction, &record::Flow)| {
        // A single sync at the end has no rate.
        let once = direction == Direction::Sync && w.sync_every == 0;
        let figures_of = figures.flow(direction).filter(|_| !once)?;
        Some(SideFlow {
            activity: w.activity(direction),
            iops: Some(figures_of.iops.mean),
            bytes_per_s: (!w.is_metadata_work()).then_some(figures_of.bytes_per_s.mean),
            rates: rates_without_warm_up(phase, figures, direction),
            p99: Some(flow.latency.quantile(0.99)),
        })
    };
    let both = read_and_written_back(phase, figures);
    SidePhase {
        name: phase.name.clone(),
        work: Work::measured(phase, direct),
        described: format!(
            "{} ({}, {})",
            workload(w).trim_end_matches('.'),
            engine(phase.engine.kind),
            cache_mode(direct)
        ),
        flows: phase.directions().filter_map(flow).chain(both).collect(),
    }
}

/// Data that is read and written back, counted once as Bonnie++ counts it.
fn read_and_written_back(phase: &Phase, figures: &PhaseFigures) -> Option<SideFlow> {
    phase.workload.calls()?;
    let (_, figures_of) = phase.write.as_ref().zip(figures.flow(Direction::Read))?;
    Some(SideFlow {
        activity: Activity::All,
        iops: Some(figures_of.iops.mean),
        bytes_per_s: Some(figures_of.bytes_per_s.mean),
        rates: rates_without_warm_up(phase, figures, Direction::Read),
        p99: None,
    })
}

/// The rates of one direction, without the warm-up.
fn rates_without_warm_up(phase: &Phase, figures: &PhaseFigures, direction: Direction) -> Vec<f64> {
    let mut rates = phase.slice_rates(direction);
    rates.drain(..figures.warmup_slices.min(rates.len()));
    rates
}

fn imported_phase(phase: &PhaseSummary) -> SidePhase {
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
        work: Work::imported(&phase.work),
        described: described(phase),
        flows: flows.collect(),
    }
}

/// The use of the page cache, as a clause.
fn cache_mode(direct: bool) -> &'static str {
    match direct {
        true => "past the page cache",
        false => "through the page cache",
    }
}

/// Description of an imported phase's work, as far as it is known.
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
            .filter(|rate| *rate > 0.0)
            .map(|rate| format!("at {} a second", number(rate))),
        work.engine.clone(),
        work.direct.map(|direct| cache_mode(direct).to_owned()),
    ]
    .into_iter()
    .flatten()
    .chain(work.details.iter().flat_map(|asked| details(asked)))
    .collect();
    match parts.is_empty() {
        true => "not known".to_owned(),
        false => parts.join(", "),
    }
}
