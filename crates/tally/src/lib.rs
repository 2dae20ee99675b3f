//! Exactly-once roll-ups of events: sources, sums, stores and queries.
//!
//! Events come from a [`source`], are parsed ([`parse`]), summed ([`sums`]) and written to one or more [`store`]s by a
//! [`pipeline`] each. [`query`] answers from the stores.

pub mod args;
pub mod classes;
pub mod config;
pub mod event;
pub mod histogram;
mod identity;
pub mod level;
mod lines;
mod metrics;
mod moving;
mod news;
pub mod parse;
pub mod pipeline;
mod places;
mod plans;
pub mod query;
mod run;
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
use query::Reader;
use ui::context::Context;
use ui::exit::{Answer, Outcome};

/// Takes events and sums them, or answers a query. `reload` is raised to have the configuration read again.
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
            let zone = reader.settings().zone.clone();
            // The period that has begun before is shown too.
            let from = zone.start(args.by, from);
            let rows = reader
                .rows(selection, args.by, from, to)
                .map_err(places::refused)?;
            let report =
                views::Report::new(selection, args.by, (from, to), &rows, reader.settings());
            let text = match args.json {
                true => report.json(),
                false => report.text(context.columns),
            };
            (text, !rows.is_empty())
        }
    };
    context.print(&text)?;
    Ok(if found { Answer::Done } else { Answer::No })
}
