//! The plan of a run: from arguments, or from a configuration that is read again at SIGHUP.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::args::TallyArgs;
use crate::config::{Config, ConfigFile};
use crate::level::Seconds;
use crate::metrics::NamedMeter;
use crate::notices::report;
use crate::pipeline::{self, PipelineEnd, SharedState, SumTargets};
use crate::places::Stores;
use crate::store::{Result, Store, StoreError, StoreLimits};

/// Interval at which pipelines that are held are polled.
const POLL: Duration = Duration::from_millis(20);
/// Time for the stores in force to take what is summed, before the plan changes.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The plan that arguments and configuration ask for.
pub(crate) fn plan(args: &TallyArgs, stores: &Stores) -> anyhow::Result<SumTargets> {
    match stores {
        Stores::Named(named) => Ok(SumTargets {
            stores: named.clone(),
            routes: None,
            limits: limits(args),
        }),
        Stores::Configured(file, config) => configured(args, file, config),
    }
}

fn configured(args: &TallyArgs, file: &ConfigFile, config: &Config) -> anyhow::Result<SumTargets> {
    Ok(SumTargets {
        stores: config
            .stores
            .iter()
            .map(|(_, store)| store.clone())
            .collect(),
        routes: Some(file.routes(config, pipeline::now())?),
        limits: StoreLimits {
            off: config.off.levels.clone(),
            ..limits(args)
        },
    })
}

/// Opens the stores of a plan, and makes those that are not there.
pub(crate) fn open(
    args: &TallyArgs,
    plan: &SumTargets,
    stop: &AtomicBool,
) -> Result<Vec<Box<dyn Store>>> {
    let stores = plan.stores.iter().map(|store| {
        let (classes, zone) = (args.classes.as_ref(), args.timezone.as_ref());
        pipeline::open_when_it_answers(stop, || store.open(classes, zone, &plan.limits))
    });
    stores.collect()
}

/// If a plan has routes, copies identities and positions to its new stores.
pub(crate) fn join(plan: &SumTargets, stores: &mut [Box<dyn Store>]) -> Result<()> {
    match plan.routes {
        // Without routes each store takes all events, also those from before it existed.
        None => Ok(()),
        Some(_) => pipeline::join(stores),
    }
}

/// Reads the configuration again. If it is wrong, the current one stays in force.
pub(crate) fn reload(
    args: &TallyArgs,
    stores: &Stores,
    shared: &SharedState,
    pipelines: &[JoinHandle<PipelineEnd>],
    meters: &[NamedMeter],
) {
    let Stores::Configured(file, _) = stores else {
        // Without a configuration, SIGHUP ends the run, as it does by default.
        shared.stop.store(true, Relaxed);
        return;
    };
    match change(args, file, shared, pipelines, meters) {
        Ok(()) => report(&format!("{} is read again.", file.path().display())),
        Err(error) => report(&format!(
            "{}; the configuration in force stays",
            ui::exit::sentence(&error)
        )),
    }
}

fn change(
    args: &TallyArgs,
    file: &ConfigFile,
    shared: &SharedState,
    pipelines: &[JoinHandle<PipelineEnd>],
    meters: &[NamedMeter],
) -> anyhow::Result<()> {
    let config = file.read()?;
    let mut addresses = config.stores.iter().map(|(_, store)| store);
    let reason = |error: StoreError| anyhow::anyhow!("{}: {error}", file.path().display());
    // Opened before the pipelines are held, so that a store that fails does not interrupt the others.
    let opened: Result<Vec<Box<dyn Store>>> = addresses
        .by_ref()
        .map(|store| store.open(args.classes.as_ref(), args.timezone.as_ref(), &limits(args)))
        .collect();
    let mut opened = opened.map_err(reason)?;
    all_are_up(meters)?;
    let plans = &shared.plans;
    plans.hold(true);
    let is_running = |pipeline: &&JoinHandle<PipelineEnd>| !pipeline.is_finished();
    let is_held = || plans.held() >= pipelines.iter().filter(is_running).count();
    let began = Instant::now();
    while !is_held() && began.elapsed() < DRAIN_TIMEOUT && !shared.stop.load(Relaxed) {
        std::thread::sleep(POLL);
    }
    let changed = match is_held() || shared.stop.load(Relaxed) {
        true => configured(args, file, &config).and_then(|plan| {
            join(&plan, &mut opened).map_err(reason)?;
            plans.change(plan);
            Ok(())
        }),
        false => all_are_up(meters).and_then(|()| {
            anyhow::bail!(
                "the stores in force did not accept all sums within {} s; send SIGHUP again",
                DRAIN_TIMEOUT.as_secs()
            )
        }),
    };
    plans.hold(false);
    changed
}

/// An error if a store in force is down: it would not get what is summed for it.
fn all_are_up(meters: &[NamedMeter]) -> anyhow::Result<()> {
    match meters.iter().find_map(|(_, meter)| meter.store_reason()) {
        None => Ok(()),
        Some(reason) => anyhow::bail!(
            "a store in force is down, and events are summed for it: {reason}. Start it and send SIGHUP again, or \
             stop disksmith and start it with the new file: sources that acknowledge deliver those events again"
        ),
    }
}

fn limits(args: &TallyArgs) -> StoreLimits {
    let seconds =
        |span: record::Nanos| Seconds::try_from(span.0 / 1_000_000_000).unwrap_or(Seconds::MAX);
    StoreLimits {
        minutes: seconds(args.keep_minutes),
        hours: seconds(args.keep_hours),
        size: args.max_size.0,
        tags: args.max_tags,
        off: Vec::new(),
    }
}
