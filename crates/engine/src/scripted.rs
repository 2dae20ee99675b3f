//! An engine without I/O, which returns phases from a script, to test commands with known histograms.

use record::{
    ClockKind, CpuTime, Direction, EngineKind, EngineUsed, Flow, Histogram, HostConditions, Phase,
    StopReason, Window,
};

use crate::job::{Control, Engine, EngineError, Job, Observer};

/// An engine that returns the windows of a script for each job, until the observer ends the phase.
pub struct ScriptedEngine<S> {
    script: S,
}

impl<S> ScriptedEngine<S>
where
    S: Fn(&Job<'_>) -> Result<Vec<Window>, EngineError>,
{
    /// An engine whose phases consist of the windows that `script` returns.
    pub fn new(script: S) -> ScriptedEngine<S> {
        ScriptedEngine { script }
    }
}

impl<S> Engine for ScriptedEngine<S>
where
    S: Fn(&Job<'_>) -> Result<Vec<Window>, EngineError> + Sync,
{
    fn run(&self, job: &Job<'_>, observer: &mut dyn Observer) -> Result<Phase, EngineError> {
        job.check()?;
        let mut windows = Vec::new();
        let mut stopped = StopReason::Time;
        for mut window in (self.script)(job)? {
            let control = observer.window(&mut window);
            windows.push(window);
            if control != Control::Continue {
                stopped = match control {
                    Control::StopByRule => StopReason::Rule,
                    _ => StopReason::Precise,
                };
                break;
            }
        }
        // Only completed work ends within a slice.
        let is_within = |window: &Window| {
            let whole = window.complete_slices() as f64 * window.slice_seconds;
            window.seconds - whole > 1e-6
        };
        if stopped == StopReason::Time && windows.last().is_some_and(is_within) {
            stopped = StopReason::Ops;
        }
        Ok(phase_of(job, windows, stopped))
    }
}

/// A phase with only `windows`.
fn phase_of(job: &Job<'_>, windows: Vec<Window>, stopped: StopReason) -> Phase {
    let total = |direction: Direction| {
        let mut flow: Option<Flow> = None;
        for part in windows.iter().filter_map(|window| window.flow(direction)) {
            let flow = flow.get_or_insert_with(|| Flow {
                ops: 0,
                bytes: 0,
                latency: Histogram::new(),
                service: None,
            });
            flow.ops += part.ops();
            flow.bytes += part.bytes().0;
            flow.latency.merge(&part.latency);
        }
        flow
    };
    let mut workload = job.workload.clone();
    workload.span = Some(job.span);
    Phase {
        name: job.name.to_owned(),
        workload,
        engine: EngineUsed {
            kind: EngineKind::Scripted,
            clock: ClockKind::Monotonic,
            detail: String::new(),
        },
        began_s: 0.0,
        seconds: windows.iter().map(|window| window.seconds).sum(),
        drain_seconds: 0.0,
        stopped,
        read: total(Direction::Read),
        write: total(Direction::Write),
        sync: total(Direction::Sync),
        commit: total(Direction::Commit),
        trim: total(Direction::Trim),
        thread_ops: vec![windows.iter().map(Window::ops).sum()],
        thread_seconds: Vec::new(),
        cpu: CpuTime::default(),
        windows,
        surroundings: HostConditions::default(),
        outcome: record::JobFileResults::default(),
    }
}
