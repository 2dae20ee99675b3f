//! Takes events from all sources until they end or a stop is requested.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::args::TallyArgs;
use crate::metrics::{self, NamedMeter};
use crate::parse::Parser;
use crate::pipeline::meter::Meter;
use crate::pipeline::{DeadLetters, FlushRule, Pipeline, PipelineEnd, Plans, SharedState};
use crate::run_settings::RunSettings;
use crate::screen::TallyScreen;
use crate::store::StoreError;
use crate::{places, plans};
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::format::count;
use ui::journal::{JournalPriority, report};
use ui::service_manager::notify;

/// Interval at which the pipelines are polled.
const POLL: Duration = Duration::from_millis(100);
/// Interval between two progress lines.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Runs a pipeline for each source.
pub(crate) fn run(
    args: &TallyArgs,
    context: &mut Context,
    interrupt: &Arc<AtomicBool>,
    reload: &Arc<AtomicBool>,
) -> Outcome {
    let RunSettings {
        stores,
        rejected,
        sources: options,
    } = RunSettings::of(args, context)?;
    let plan = plans::plan(args, &stores).refused()?;
    let (off, on): (Vec<_>, Vec<_>) = args.from.iter().partition(|address| stores.is_off(address));
    for address in off {
        context.notice(&format!("{address} is switched off by the configuration."));
    }
    for address in &on {
        if let Some(reservation) = address.reservation() {
            context.notice(&format!("{address}: {reservation}."));
        }
    }
    let sources: anyhow::Result<Vec<_>> = on.iter().map(|address| address.open(&options)).collect();
    let sources = sources.refused()?;
    // Stores are created, or compared with the arguments, before any events are taken.
    let opened = plans::open(args, &plan, interrupt);
    if let Err(error) = opened.and_then(|mut stores| plans::join(&plan, &mut stores)) {
        return unopened(error, context, interrupt);
    }
    let shared = SharedState {
        stop: Arc::clone(interrupt),
        dead_letters: Arc::new(DeadLetters::at(&rejected)),
        flush: FlushRule {
            sums: args.flush_sums.get(),
            every: Duration::from_nanos(args.flush_every.0.0),
            memory: usize::try_from(args.memory.0.0).unwrap_or(usize::MAX),
        },
        plans: Arc::new(Plans::new(plan)),
    };
    let (mut pipelines, mut meters) = (Vec::new(), Vec::new());
    for (address, source) in on.into_iter().zip(sources) {
        let meter = Arc::new(Meter::default());
        meters.push((address.to_string(), Arc::clone(&meter)));
        let parser = match &args.log_format {
            Some(format) => Parser::of_log(format.clone()),
            None => Parser::new(args.format),
        };
        match Pipeline::new(source, parser, shared.clone(), meter) {
            Ok(pipeline) => pipelines.push(pipeline),
            Err(error) => return unopened(error, context, interrupt),
        }
    }
    let server = args
        .metrics
        .map(|address| metrics::serve(address, meters.clone()));
    let server = server
        .transpose()
        .context("metrics cannot be served")
        .refused()?;
    if let Some(server) = &server {
        context.notice(&format!(
            "Metrics are served at http://{}/metrics.",
            server.address
        ));
    }
    notify("READY=1");
    let threads: Vec<_> = pipelines
        .into_iter()
        .map(|pipeline| std::thread::spawn(move || pipeline.run()))
        .collect();
    let mut reported = Instant::now();
    let mut screen = TallyScreen::open(&meters);
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        std::thread::sleep(POLL);
        if reload.swap(false, Relaxed) {
            plans::reload(args, &stores, &shared, &threads, &meters);
        }
        match &mut screen {
            Some(screen) => screen.show(&meters),
            None if reported.elapsed() >= REPORT_INTERVAL => {
                reported = Instant::now();
                print_summary(&meters);
            }
            None => {}
        }
    }
    drop(screen);
    let ended: Vec<PipelineEnd> = threads
        .into_iter()
        .map(|thread| {
            thread.join().unwrap_or_else(|_| PipelineEnd {
                unstored: 0,
                reason: Some("a fault of this program ended the source".to_owned()),
            })
        })
        .collect();
    print_summary(&meters);
    report_rejected(context, &meters, shared.dead_letters.path());
    match ended.iter().find_map(|ended| ended.reason.as_ref()) {
        None => Ok(CommandEnd::Done),
        Some(reason) => Err(Failure::Midway(anyhow::anyhow!(
            "{} not stored: {reason}. Files and gearmand deliver them again at the next start",
            count(
                ended.iter().map(|ended| ended.unstored as usize).sum(),
                "event"
            ),
        ))),
    }
}

/// A store that was not opened: refused, or still down when a stop was requested.
fn unopened(error: StoreError, context: &Context, interrupt: &AtomicBool) -> Outcome {
    if matches!(error, StoreError::Unavailable(_)) && interrupt.load(Relaxed) {
        context.notice("Stopped before the store answered; nothing was taken.");
        return Ok(CommandEnd::Done);
    }
    Err(places::refused(error))
}

/// Prints a summary of each source, with fields for the journal.
fn print_summary(meters: &[NamedMeter]) {
    for (address, meter) in meters {
        let field = |name: &str, value: String| (format!("DISKSMITH_{name}"), value);
        let counter = |name, counter: &AtomicU64| field(name, counter.load(Relaxed).to_string());
        let fields = [
            field("SOURCE", address.clone()),
            counter("EVENTS", &meter.events),
            counter("COMMITS", &meter.flushes),
            counter("REJECTED", &meter.rejected),
            counter("LOST", &meter.lost),
        ];
        report(JournalPriority::Notice, &summary(address, meter), &fields);
    }
}

fn summary(address: &str, meter: &Meter) -> String {
    let of = |counter: &AtomicU64| counter.load(Relaxed) as usize;
    let mut line = format!(
        "{address}: {} in {}, {}",
        count(of(&meter.events), "event"),
        count(of(&meter.flushed_sums), "sum"),
        count(of(&meter.flushes), "commit")
    );
    for (many, what) in [
        (of(&meter.rejected), "rejected"),
        (
            of(&meter.unidentified),
            "without an identity, at least once",
        ),
        (of(&meter.lost), "datagrams dropped by the kernel"),
        (
            of(&meter.others),
            "tags beyond --max-tags, summed as (other)",
        ),
    ] {
        if many > 0 {
            line.push_str(&format!(", {many} {what}"));
        }
    }
    line
}

fn report_rejected(context: &Context, meters: &[NamedMeter], path: &Path) {
    if meters
        .iter()
        .any(|(_, meter)| meter.rejected.load(Relaxed) > 0)
    {
        context.notice(&format!(
            "Rejected lines are in {}, each with its reason.",
            path.display()
        ));
    }
}
