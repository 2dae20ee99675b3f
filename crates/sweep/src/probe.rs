//! Probe of the volumes before any array is built: each alone, and all at the same time. It shows the sum of their
//! rates, and whether the instance limits it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use engine::{Engine, EngineError, IoInterface, Job, Observer, derive_seed};
use linux::consent::DestroyTarget;
use record::{Bytes, Nanos, Phase};
use rustix::fs::OFlags;
use study::interval::mean_interval;
use study::steady::warmup_end;

use super::measure::bench_args;
use super::record::{Probe, SweepSettings, Value};
use super::testbed::Testbed;
use bench::{PhasePlan, suite};

/// Time for which a volume is probed: long enough for its rate, and short enough to probe sixteen volumes.
const PROBE_TIME: Nanos = Nanos::from_secs(3);

/// Length of the windows of a probe.
const WINDOW: Nanos = Nanos::from_secs(1);

/// Probes the claimed devices with the workload of the sweep's first phase. `Ok(None)` if that phase commits, since a
/// commit depends on the file system.
///
/// # Errors
/// The device that failed, and the error.
pub(crate) fn probe(
    settings: &SweepSettings,
    testbed: &Testbed,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> anyhow::Result<Option<Probe>> {
    let Some(plan) = plan(settings) else {
        return Ok(None);
    };
    let probe_volume = |at: usize, target: &DestroyTarget| {
        probe_volume(&plan, settings, target, at, engine, interrupt).map_err(|error| {
            anyhow::Error::new(error).context(format!("{} as it is", target.path.display()))
        })
    };
    // Only devices that layouts use: the first layout overwrites the data written here.
    let used = settings.factors.members.iter().max().copied().unwrap_or(0);
    let targets: Vec<&DestroyTarget> = testbed.claims().take(used).collect();
    let mut alone = Vec::new();
    for (at, target) in targets.iter().enumerate() {
        alone.push(rate(&probe_volume(at, target)?));
    }
    let phases = thread::scope(|scope| {
        let probe_volume = &probe_volume;
        let threads: Vec<_> = targets
            .iter()
            .enumerate()
            .map(|(at, target)| scope.spawn(move || probe_volume(at, target)))
            .collect();
        let joined = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread of the probe panicked")))
        });
        joined.collect::<anyhow::Result<Vec<Phase>>>()
    })?;
    Ok((!interrupt.load(Relaxed)).then(|| Probe {
        phase: plan.name,
        alone,
        together: phases.iter().map(rate).collect(),
    }))
}

fn plan(settings: &SweepSettings) -> Option<PhasePlan> {
    let args = bench_args(settings, Path::new("/"), 0).ok()?;
    let first = match &settings.workload {
        Some(_) => Vec::new(),
        None => vec![settings.phases.first()?.clone()],
    };
    let mut plan = suite::plan(&args, &first).ok()?.into_iter().next()?;
    let workload = &mut plan.workload;
    workload.longest = PROBE_TIME;
    workload.shortest = PROBE_TIME;
    workload.sync_at_end = false;
    (workload.sync_every == 0).then_some(plan)
}

fn probe_volume(
    plan: &PhasePlan,
    settings: &SweepSettings,
    target: &DestroyTarget,
    at: usize,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Result<Phase, EngineError> {
    let file = target
        .reopen(OFlags::DIRECT | OFlags::CLOEXEC)
        .map_err(EngineError::Setup)?;
    let span: Bytes = plan.workload.span.unwrap_or(settings.size);
    let job = Job {
        name: &plan.name,
        file: &file,
        span: span.min(target.size).round_down(plan.workload.block),
        workload: &plan.workload,
        interface: IoInterface::Auto,
        window: WINDOW,
        seed: derive_seed(settings.seed, at as u64),
        interrupt,
    };
    engine.run(&job, &mut NeverStops)
}

/// An observer that never ends a phase early.
struct NeverStops;

impl Observer for NeverStops {
    fn window(&mut self, _: &mut record::Window) -> engine::Control {
        engine::Control::Continue
    }
}

/// Requests a second.
fn rate(phase: &Phase) -> Value {
    let counts = phase.slice_ops();
    let settled = counts.get(warmup_end(&counts)..).unwrap_or_default();
    let slice = phase.slice_seconds();
    match mean_interval(settled) {
        Some(interval) => Value {
            mean: interval.mean / slice,
            low: Some(interval.low.max(0.0) / slice),
            high: Some(interval.high / slice),
        },
        None => Value::plain(counts.iter().sum::<f64>() / phase.seconds.max(slice)),
    }
}
