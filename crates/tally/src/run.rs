//! Taking events from all sources until they end or a stop is asked for.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::args::TallyArgs;
use crate::level::Seconds;
use crate::metrics::{self, Metered};
use crate::parse::Parser;
use crate::pipeline::meter::Meter;
use crate::pipeline::{DeadLetters, Ended, FlushRule, Pipeline, Shared};
use crate::store::Limits;
use crate::{places, source};
use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Failure, Outcome};
use ui::service_manager::notify;

/// Interval between two looks at the pipelines.
const LOOK: Duration = Duration::from_millis(100);
/// Interval between two lines of what was done.
const REPORT: Duration = Duration::from_secs(60);

/// Runs a pipeline for each source.
pub(crate) fn run(args: &TallyArgs, context: &mut Context, interrupt: &Arc<AtomicBool>) -> Outcome {
    let stores = places::stores(&args.store, context)?;
    let rejected = match &args.rejected {
        Some(path) => path.clone(),
        None => places::beside_ledger(context, "tally.rejected")?,
    };
    let shared = Shared {
        stop: Arc::clone(interrupt),
        dead_letters: Arc::new(DeadLetters::at(&rejected)),
        flush: FlushRule {
            sums: args.flush_sums.get(),
            every: Duration::from_nanos(args.flush_every.0.0),
            memory: usize::try_from(args.memory.0.0).unwrap_or(usize::MAX),
        },
        limits: limits(args),
    };
    let options = source::Options {
        follow: args.follow,
        token: token(args)?,
    };
    let sources: anyhow::Result<Vec<_>> = args
        .from
        .iter()
        .map(|address| address.open(&options))
        .collect();
    let sources = sources.refused()?;
    // Made, or compared with what is asked for, before anything is taken.
    for store in &stores {
        store
            .open(
                args.classes.as_ref(),
                args.timezone.as_ref(),
                &shared.limits,
            )
            .map_err(places::refused)?;
    }
    let (mut pipelines, mut meters) = (Vec::new(), Vec::new());
    for (address, source) in args.from.iter().zip(sources) {
        let meter = Arc::new(Meter::default());
        meters.push((address.to_string(), Arc::clone(&meter)));
        let parser = match &args.log_format {
            Some(format) => Parser::of_log(format.clone()),
            None => Parser::new(args.format),
        };
        let pipeline = Pipeline::new(source, parser, &stores, shared.clone(), meter);
        pipelines.push(pipeline.map_err(places::refused)?);
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
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        std::thread::sleep(LOOK);
        if interrupt.load(Relaxed) {
            notify("STOPPING=1");
        }
        if reported.elapsed() >= REPORT {
            reported = Instant::now();
            context.notice(&summary(&meters));
        }
    }
    let ended: Vec<Ended> = threads
        .into_iter()
        .map(|thread| {
            thread.join().unwrap_or_else(|_| Ended {
                unstored: 0,
                reason: Some("a fault of this program ended the source".to_owned()),
            })
        })
        .collect();
    context.notice(&summary(&meters));
    tell_rejected(context, &meters, shared.dead_letters.path());
    match ended.iter().find_map(|ended| ended.reason.as_ref()) {
        None => Ok(Answer::Done),
        Some(reason) => Err(Failure::Midway(anyhow::anyhow!(
            "{} events are not stored: {reason}. Files and gearmand deliver them again at the next start",
            ended.iter().map(|ended| ended.unstored).sum::<u64>(),
        ))),
    }
}

/// The token that clients of HTTP must send.
fn token(args: &TallyArgs) -> Result<Option<String>, Failure> {
    let Some(path) = &args.token_file else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{} cannot be read", path.display()))
        .refused()?;
    match text.trim() {
        "" => Err(Failure::refused(format!("{} has no token", path.display()))),
        token => Ok(Some(token.to_owned())),
    }
}

fn limits(args: &TallyArgs) -> Limits {
    let seconds =
        |span: record::Nanos| Seconds::try_from(span.0 / 1_000_000_000).unwrap_or(Seconds::MAX);
    Limits {
        minutes: seconds(args.keep_minutes),
        hours: seconds(args.keep_hours),
        size: args.max_size.0,
        tags: args.max_tags,
    }
}

fn summary(meters: &[Metered]) -> String {
    let lines: Vec<String> = meters
        .iter()
        .map(|(address, meter)| {
            let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Relaxed);
            let mut line = format!(
                "{address}: {} events in {} sums, {} flushes",
                of(&meter.events),
                of(&meter.flushed_sums),
                of(&meter.flushes)
            );
            for (count, what) in [
                (of(&meter.rejected), "rejected"),
                (
                    of(&meter.unidentified),
                    "without an identity, at least once",
                ),
                (
                    of(&meter.others),
                    "tags beyond --max-tags, summed as (other)",
                ),
            ] {
                if count > 0 {
                    line.push_str(&format!(", {count} {what}"));
                }
            }
            line
        })
        .collect();
    lines.join("\n")
}

fn tell_rejected(context: &Context, meters: &[Metered], path: &Path) {
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
