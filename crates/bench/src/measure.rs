//! Runs the phases on a prepared target, and ends each when it is long enough.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use engine::{Control, Engine, EngineError, IoInterface, Job, Observer, derive_seed};
use linux::diskstats::{self, Counter, DiskStats};
use record::{Bytes, DeviceCounts, HostConditions, Phase, Window};
use study::steady;
use study::stop::{StopDecision, StopRule, Stopper};

use super::phase_observer::PhaseObserver;
use super::phase_plan::{EarlyEnd, PhasePlan};
use super::progress::Progress;
use super::schedule::Schedule;
use super::target::Prepared;
use super::trials::TargetMissDetector;

/// Result of the phases.
pub(crate) struct MeasuredPhases {
    /// Phases that ran, the last one perhaps cut short by a signal.
    pub phases: Vec<Phase>,
    /// The error that ended the run, with the name of its phase.
    pub failed: Option<(String, EngineError)>,
}

/// Runs the phases that `schedule` gives over `files`, one after another, until one fails or a signal comes.
#[allow(clippy::too_many_arguments, reason = "a run has so many parts")]
pub(crate) fn measure(
    engine: &dyn Engine,
    prepared: &Prepared,
    files: &[&File],
    schedule: &mut dyn Schedule,
    interface: IoInterface,
    seed: u64,
    interrupt: &AtomicBool,
    progress: &mut Progress,
) -> MeasuredPhases {
    let mut measured = MeasuredPhases {
        phases: Vec::new(),
        failed: None,
    };
    let began = Instant::now();
    let Some((file, others)) = files.split_first() else {
        return measured;
    };
    while !interrupt.load(Relaxed) {
        let index = measured.phases.len();
        let Some(plan) = schedule.next(&measured.phases) else {
            break;
        };
        let workload = &plan.workload;
        progress.begin(&plan.name, workload.longest.as_secs_f64());
        let began_s = began.elapsed().as_secs_f64();
        let span = workload.span.unwrap_or(prepared.target.size);
        let job = Job {
            name: &plan.name,
            file,
            span: span.round_down(workload.block),
            workload,
            interface,
            window: plan.window,
            seed: derive_seed(seed, index as u64),
            interrupt,
        };
        let mut watch = Watch::new(&plan, &prepared.counters, progress);
        match engine.run_over(&job, others, &mut watch) {
            Ok(mut phase) => {
                phase.began_s = began_s;
                watch.finish(&mut phase);
                measured.phases.push(phase);
            }
            Err(error) => {
                measured.failed = Some((plan.name.clone(), error));
                break;
            }
        }
    }
    progress.end();
    measured
}

/// Observes the windows of a phase: adds the kernel's counts, shows progress, and ends the phase when it is steady
/// and precise.
pub(crate) struct Watch<'a> {
    counters: &'a [Counter],
    /// Last reading of the counters. The first is taken before any worker is started: on a busy machine the observer
    /// may learn late that the workers have begun, and would miss requests that the disk has already served, as if
    /// they had come from a cache. A phase with a ramp is read at the end of the ramp instead.
    before: Option<Vec<DiskStats>>,
    progress: &'a Progress,
    shortest_s: f64,
    stopper: Stopper,
    /// Requests by slice.
    slices: Vec<f64>,
    /// Rule that ends the phase when it misses a latency target.
    misses: Option<TargetMissDetector>,
    around: PhaseObserver,
}

impl<'a> Watch<'a> {
    /// An observer of a phase that is about to begin.
    pub(crate) fn new(
        plan: &PhasePlan,
        counters: &'a [Counter],
        progress: &'a Progress,
    ) -> Watch<'a> {
        let slice_s = plan.window.as_secs_f64() / 10.0;
        let details = plan.workload.details.as_ref();
        let has_ramp = details.is_some_and(|details| details.ramp.0 > 0);
        let shortest_s = plan.workload.shortest.as_secs_f64();
        Watch {
            counters,
            before: if has_ramp { None } else { readings(counters) },
            progress,
            shortest_s,
            stopper: Stopper::new(StopRule {
                precision: plan.workload.precision,
                min_slices: (shortest_s / slice_s) as usize,
            }),
            slices: Vec::new(),
            misses: match plan.ends {
                EarlyEnd::Precise => None,
                EarlyEnd::Misses(target) => Some(TargetMissDetector::new(target, &plan.workload)),
            },
            around: PhaseObserver::begin(),
        }
    }

    /// Adds the state of the host during a phase that has ended.
    pub(crate) fn finish(self, phase: &mut Phase) {
        let after = self.since(readings(self.counters).as_deref());
        phase.surroundings = HostConditions {
            after,
            ..self.around.end()
        };
    }

    /// Counts of the disks since the last reading.
    fn since(&self, now: Option<&[DiskStats]>) -> Option<DeviceCounts> {
        let pairs = now?.iter().zip(self.before.as_ref()?);
        let parts: Option<Vec<_>> = pairs.map(|(now, before)| now.since(before)).collect();
        parts.map(diskstats::sum)
    }
}

/// The counters of all disks now; `None` when there are none, or one cannot be read.
fn readings(counters: &[Counter]) -> Option<Vec<DiskStats>> {
    if counters.is_empty() {
        return None;
    }
    counters.iter().map(|counter| counter.read().ok()).collect()
}

impl Observer for Watch<'_> {
    fn begin(&mut self) {
        self.around.measured_from_now();
        if self.before.is_none() {
            self.before = readings(self.counters);
        }
    }

    fn window(&mut self, window: &mut Window) -> Control {
        let now = readings(self.counters);
        // Without counters, the counts that an engine reports of its own devices stay.
        window.device = self.since(now.as_deref()).or(window.device);
        self.before = now;
        self.progress.window(window);
        let slices = window
            .slice_ops()
            .into_iter()
            .take(window.complete_slices());
        self.slices.extend(slices.map(|ops| ops as f64));
        match &mut self.misses {
            Some(misses) => misses.observe(window),
            None => self.decide(window.t_s + window.seconds),
        }
    }
}

impl Watch<'_> {
    fn decide(&mut self, took_s: f64) -> Control {
        let settled = &self.slices[steady::warmup_end(&self.slices)..];
        // The stopper needs every window, so that two consecutive checks are of two windows.
        let precise = matches!(self.stopper.check(settled), StopDecision::Precise(_));
        if precise && took_s + 1e-6 >= self.shortest_s && steady::assess(settled).steady {
            Control::StopPrecise
        } else {
            Control::Continue
        }
    }
}

/// Maximum number of bytes of the target that the phases use.
pub(crate) fn largest_span(phases: &[PhasePlan], size: Bytes) -> Bytes {
    phases
        .iter()
        .map(|plan| plan.workload.span.unwrap_or(size))
        .max()
        .unwrap_or(size)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use linux::Root;
    use linux::block::Devices;

    use super::*;
    use crate::phase_plan::base;
    use record::Nanos;

    /// Requests counted on the device in a phase with such a ramp: the disk serves 30 reads before the observer learns
    /// that the workers have begun, and 70 more after.
    fn counted(ramp: Nanos) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        let disk = root.sys.join("class/block/sdb");
        fs::create_dir_all(disk.join("slaves")).unwrap();
        fs::create_dir_all(&root.proc).unwrap();
        fs::write(disk.join("dev"), "8:16\n").unwrap();
        fs::write(disk.join("size"), "2048\n").unwrap();
        let reads = |count: u64| {
            let line = format!("{count} 0 {} 9 0 0 0 0 0 9 9\n", 32 * count);
            fs::write(disk.join("stat"), line).unwrap();
        };
        reads(1000);
        let devices = Devices::read(&root).unwrap();
        let device = devices.iter().next().unwrap();
        let counters = [Counter::open(&root, device).unwrap()];
        let mut plan = PhasePlan::new("page-read", base());
        let details = plan.workload.details.get_or_insert_default();
        details.ramp = ramp;
        let progress = Progress::new(false);
        let mut watch = Watch::new(&plan, &counters, &progress);
        reads(1030);
        watch.begin();
        reads(1100);
        let mut window = Window {
            t_s: 0.0,
            seconds: 1.0,
            slice_seconds: 0.1,
            read: None,
            write: None,
            sync: None,
            commit: None,
            trim: None,
            in_flight: 0,
            idle_fraction: 0.0,
            device: None,
        };
        watch.window(&mut window);
        window.device.unwrap().reads
    }

    #[test]
    fn what_a_disk_does_before_the_begin_is_heard_of_counts_unless_it_is_the_ramp() {
        assert_eq!(counted(Nanos(0)), 100);
        assert_eq!(counted(Nanos::from_secs(1)), 70);
    }
}
