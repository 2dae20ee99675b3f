//! Exactly-once roll-ups of events: sources, sums, stores and queries.
//!
//! Events come from a [`source`], are parsed ([`parse`]), summed ([`sums`]) and written to one or more [`store`]s by a
//! [`pipeline`] each. [`query`] answers from the stores.

pub mod args;
pub mod classes;
pub mod config;
pub mod event;
#[cfg(not(all(feature = "clickhouse", feature = "kafka", feature = "mysql")))]
mod features;
pub mod histogram;
mod identity;
pub mod level;
mod lines;
mod metrics;
mod moving;
mod notices;
pub mod parse;
pub mod pipeline;
mod places;
mod plans;
pub mod query;
mod run;
mod run_settings;
mod screen;
mod send;
mod server;
pub mod source;
pub mod store;
pub mod sums;
mod views;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use args::{QueryArgs, TallyArgs, TallyVerb};
use jiff::Timestamp;
use ledger::{Ledger, Mark};
use level::Seconds;
use query::Reader;
use run_settings::RunSettings;
use ui::context::Context;
use ui::exit::{CommandEnd, Failure, Outcome};

/// Takes events and sums them, or answers a query. Setting `reload` makes it read the configuration again.
pub fn tally(
    args: &TallyArgs,
    context: &mut Context,
    interrupt: &Arc<AtomicBool>,
    reload: &Arc<AtomicBool>,
) -> Outcome {
    match &args.verb {
        None => run::run(args, context, interrupt, reload),
        Some(TallyVerb::Send(args)) => send::send(args, context),
        Some(TallyVerb::Query(args)) => answer(args, context),
        Some(TallyVerb::Move(args)) => moving::run(args, context, interrupt),
    }
}

/// Performs those checks of a start with these arguments that need no network and no server.
///
/// # Errors
/// As [`tally`].
pub fn validate(args: &TallyArgs, context: &Context) -> Result<(), Failure> {
    match args.verb {
        None => RunSettings::of(args, context).map(drop),
        Some(_) => Ok(()),
    }
}

fn answer(args: &QueryArgs, context: &mut Context) -> Outcome {
    let addresses = places::stores(&args.store, args.config.as_deref(), context)?.addresses();
    let mut reader = Reader::open(&addresses).map_err(places::refused)?;
    let (text, found) = match &args.tag {
        None => {
            let series = reader.series().map_err(places::refused)?;
            (views::tags(&series, args.json), !series.is_empty())
        }
        Some(selection) => {
            let from = args.from.at.as_second();
            let to = match args.to {
                Some(when) => when.day_ends.unwrap_or(when.at).as_second(),
                None => pipeline::now() + 1,
            };
            if to <= from {
                return Err(Failure::refused("--to is not later than --from"));
            }
            let zone = reader.settings().zone.clone();
            // The period that contains --from is shown whole.
            let from = zone.start(args.by, from);
            let rows = reader
                .rows(selection, args.by, from, to)
                .map_err(places::refused)?;
            let marks = marks(context, (from, to));
            let settings = reader.settings();
            let report = views::Report::new(selection, args.by, (from, to), &rows, marks, settings);
            let text = match args.json {
                true => report.json(),
                false => report.text(context.columns),
            };
            (text, !rows.is_empty())
        }
    };
    context.print(&text)?;
    Ok(if found {
        CommandEnd::Done
    } else {
        CommandEnd::No
    })
}

/// Marks of the ledger in a range; empty if the ledger does not exist or cannot be read.
fn marks(context: &Context, (from, to): (Seconds, Seconds)) -> Vec<Mark> {
    let path = context.ledger_path().ok();
    let ledger = path.and_then(|path| Ledger::open_to_read(&path).ok().flatten());
    let (Some(ledger), Ok(from), Ok(to)) = (
        ledger,
        Timestamp::from_second(from),
        Timestamp::from_second(to),
    ) else {
        return Vec::new();
    };
    ledger.marks(from, to).unwrap_or_default()
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![
        DocumentType::of::<views::Report>("tally query"),
        DocumentType::of::<views::Tags>("tally tags"),
    ]
}
