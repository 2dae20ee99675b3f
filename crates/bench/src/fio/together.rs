//! Runs streams at the same time, and walls one after another.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use engine::{Control, Engine, EngineError, Job, Observer, StartGroup, derive_seed};
use linux::diskstats::Counter;
use record::{Phase, Window};

use super::ends::{Rules, StreamEnds};
use super::files::{Handles, OpenedTarget};
use super::plan::FioPlan;
use super::stream::Stream;
use super::sum::{self, Reported};
use crate::measure::{MeasuredPhases, Watch};
use crate::phase_plan::{PhasePlan, WINDOW};
use crate::progress::Progress;
use crate::session::Session;

/// Interval at which a stream checks whether it must end too.
const POLL: Duration = Duration::from_millis(20);

/// Result of a plan.
pub(super) struct FioResult {
    pub measured: MeasuredPhases,
    /// The names of all phases, including those that did not run.
    pub names: Vec<String>,
    /// True if all streams that ran bypassed the page cache.
    pub direct: bool,
    /// True if a rule of a job that ended prevents the jobs after its wall from beginning.
    pub by_rule: bool,
}

/// Runs all walls of a plan, until a stream fails or a signal arrives.
pub(super) fn run(
    session: &Session<'_>,
    plan: &FioPlan,
    opened: &OpenedTarget,
    progress: &mut Progress,
) -> FioResult {
    let began = Instant::now();
    let mut measured = MeasuredPhases {
        phases: Vec::new(),
        failed: None,
    };
    let (mut direct, mut by_rule) = (true, false);
    let walls: Vec<(&[Stream], Vec<Reported>)> = plan
        .walls
        .iter()
        .map(|streams| (&streams[..], sum::reported(streams)))
        .collect();
    let names = walls
        .iter()
        .flat_map(|(_, reported)| reported.iter().map(|(name, _)| name.clone()))
        .collect();
    let mut before = 0;
    for (streams, reported) in walls {
        if session.interrupt.load(Relaxed) || by_rule {
            break;
        }
        let began_s = began.elapsed().as_secs_f64();
        let all: Vec<&str> = reported.iter().map(|(name, _)| name.as_str()).collect();
        // The kernel counts the I/O of all streams: the counts are only added to a phase that is the sum of all of
        // them.
        let counters = match reported.len() {
            1 => &opened.prepared.counters[..],
            _ => &[],
        };
        match Wall::begin(session, opened, streams, before).and_then(|wall| {
            direct &= wall.handles.direct;
            let phases = wall.run(&all.join(", "), counters, progress);
            by_rule = wall.ends.ends_all();
            phases
        }) {
            Ok(phases) => {
                let sums = reported.into_iter().map(|(name, members)| {
                    let began_s = began_s + delay_s(&streams[members[0]]);
                    sum::phase(name, &members, streams, &phases, began_s)
                });
                measured.phases.extend(sums);
            }
            Err((name, error)) => {
                measured.failed = Some((name, error));
                break;
            }
        }
        before += streams.len();
    }
    progress.end();
    FioResult {
        measured,
        names,
        direct,
        by_rule,
    }
}

/// Seconds after which a stream begins.
fn delay_s(stream: &Stream) -> f64 {
    let details = stream.workload.details.as_ref();
    details.map_or(0.0, |details| details.delay.as_secs_f64())
}

/// The streams between two walls.
struct Wall<'a> {
    session: &'a Session<'a>,
    handles: Handles,
    streams: &'a [Stream],
    /// Number of streams before this wall, which gives each stream its own random numbers.
    before: usize,
    /// Set by a signal or by a failed stream: all streams end.
    stop: AtomicBool,
    ends: StreamEnds,
}

/// Parts of a session that a thread that runs streams needs.
#[derive(Clone, Copy)]
struct Runner<'a> {
    engine: &'a dyn Engine,
    interrupt: &'a AtomicBool,
    seed: u64,
    start: &'a StartGroup,
    stop: &'a AtomicBool,
}

/// A stream that failed: its name, and the error.
type FailedStream = (String, EngineError);

impl<'a> Wall<'a> {
    /// Opens the files of the streams.
    fn begin(
        session: &'a Session<'a>,
        opened: &OpenedTarget,
        streams: &'a [Stream],
        before: usize,
    ) -> Result<Wall<'a>, FailedStream> {
        let handles = opened.handles(streams).map_err(|error| {
            let name = streams
                .first()
                .map_or_else(String::new, |lead| lead.name.clone());
            let path = &opened.prepared.target.path;
            let why = format!("{path} could not be opened for each of the jobs: {error}");
            (name, EngineError::Unfit(why))
        })?;
        Ok(Wall {
            session,
            handles,
            streams,
            before,
            stop: AtomicBool::new(false),
            ends: StreamEnds::of(streams),
        })
    }

    /// Runs all streams. The first leads: it shows progress and reads the kernel's counters.
    fn run(
        &self,
        names: &str,
        counters: &[Counter],
        progress: &mut Progress,
    ) -> Result<Vec<Phase>, FailedStream> {
        let Some(lead) = self.streams.first() else {
            return Ok(Vec::new());
        };
        let runner = Runner {
            engine: self.session.engine,
            interrupt: self.session.interrupt,
            seed: self.session.seed,
            start: &StartGroup::of(self.streams.len() as u32),
            stop: &self.stop,
        };
        let ramp = lead
            .workload
            .details
            .as_ref()
            .map_or(0.0, |details| details.ramp.as_secs_f64());
        let longest = lead.workload.longest.as_secs_f64() + ramp + delay_s(lead);
        progress.begin(names, longest);
        let plan = PhasePlan::new(lead.name.clone(), lead.workload.clone());
        let mut watch = Watch::new(&plan, counters, progress);
        let (streams, before, files) = (self.streams, self.before, &self.handles.of);
        let ends = &self.ends;
        let mut results: Vec<Result<Phase, EngineError>> =
            stopped_by_signal(runner.interrupt, runner.stop, |scope| {
                let others: Vec<_> = (1..streams.len())
                    .map(|index| {
                        let work = move || {
                            let stream = &streams[index];
                            let mut quiet = NoWatch;
                            let mut rules = ends.watch(index, stream, &mut quiet);
                            let number = before + index;
                            let phase = runner.stream(stream, &files[index], number, &mut rules);
                            ended(phase, rules, ends, index, streams)
                        };
                        let thread = thread::Builder::new().spawn_scoped(scope, work);
                        thread.inspect_err(|_| runner.end_all())
                    })
                    .collect();
                let mut rules = ends.watch(0, lead, &mut watch);
                let first = runner.stream(lead, &files[0], before, &mut rules);
                let first = ended(first, rules, ends, 0, streams);
                let others = others.into_iter().map(|other| {
                    let other = other.map_err(EngineError::Setup)?;
                    other.join().unwrap_or_else(|_| {
                        Err(EngineError::Unfit(
                            "a thread of the run ended by itself".to_owned(),
                        ))
                    })
                });
                [first].into_iter().chain(others).collect()
            });
        if let Some(Ok(first)) = results.first_mut() {
            watch.finish(first);
        }
        let named = streams.iter().zip(results);
        named
            .map(|(stream, result)| result.map_err(|error| (stream.name.clone(), error)))
            .collect()
    }
}

/// Completes the phase of a stream: adds the results of its rules, and ends the streams that must end with it.
fn ended(
    phase: Result<Phase, EngineError>,
    rules: Rules<'_>,
    ends: &StreamEnds,
    index: usize,
    streams: &[Stream],
) -> Result<Phase, EngineError> {
    let mut phase = phase?;
    rules.finish(&mut phase);
    ends.end(index, streams);
    Ok(phase)
}

/// Runs `work`, and sets `stop` if a signal arrives meanwhile.
fn stopped_by_signal<'env, T>(
    interrupt: &'env AtomicBool,
    stop: &'env AtomicBool,
    work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
) -> T {
    let ended = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let _ends = SignalThreadEnd(Arc::clone(&ended));
        scope.spawn(move || {
            while !ended.load(Relaxed) {
                if interrupt.load(Relaxed) {
                    stop.store(true, Relaxed);
                }
                thread::sleep(POLL);
            }
        });
        work(scope)
    })
}

/// Ends the thread that waits for a signal; the scope waits for that thread even when the work panics.
struct SignalThreadEnd(Arc<AtomicBool>);

impl Drop for SignalThreadEnd {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Runner<'_> {
    fn stream(
        self,
        stream: &Stream,
        files: &[File],
        number: usize,
        observer: &mut dyn Observer,
    ) -> Result<Phase, EngineError> {
        let files: Vec<&File> = files.iter().collect();
        let Some((file, others)) = files.split_first() else {
            self.end_all();
            return Err(EngineError::Unfit(format!("{} has no file", stream.name)));
        };
        let seed = derive_seed(self.seed ^ stream.seed, number as u64);
        let job = Job {
            name: &stream.name,
            file,
            span: stream.span,
            workload: &stream.workload,
            interface: stream.interface,
            window: WINDOW,
            seed,
            interrupt: self.stop,
        };
        let beside = self
            .engine
            .run_concurrently(&job, others, self.start, observer);
        if beside.is_err() {
            self.end_all();
        }
        beside
    }

    /// Ends all streams, including those that wait for others to begin.
    fn end_all(self) {
        self.stop.store(true, Relaxed);
        self.start.open();
    }
}

/// Observes nothing: another stream reports progress and reads the counters.
struct NoWatch;

impl Observer for NoWatch {
    fn window(&mut self, _window: &mut Window) -> Control {
        Control::Continue
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use super::*;

    /// Long, since the host may be busy.
    const TIMEOUT: Duration = Duration::from_secs(60);

    fn run_until_stopped<T>(signal: bool, work: impl FnOnce(&AtomicBool) -> T) -> T {
        let (interrupt, stop) = (AtomicBool::new(signal), AtomicBool::new(false));
        stopped_by_signal(&interrupt, &stop, |_| work(&stop))
    }

    #[test]
    fn a_stream_that_panics_keeps_nobody_waiting() {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let done = catch_unwind(AssertUnwindSafe(|| {
                run_until_stopped(false, |_| panic!("a stream"))
            }));
            let _ = sender.send(done.is_err());
        });
        assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(true));
    }

    #[test]
    fn a_signal_stops_the_streams() {
        let stopped = run_until_stopped(true, |stop| {
            let began = Instant::now();
            while !stop.load(Relaxed) && began.elapsed() < TIMEOUT {
                thread::sleep(POLL);
            }
            stop.load(Relaxed)
        });
        assert!(stopped);
    }
}
