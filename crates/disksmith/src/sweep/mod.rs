//! The verb `sweep`: which layout of these devices is best.

mod check;
mod commands;
mod decide;
mod decided;
mod figure;
mod figures;
mod kept;
mod layout;
mod measure;
mod objective;
mod order;
mod past;
mod plan;
mod price;
mod probe;
mod progress;
mod record;
mod resume;
mod rig;
mod run;
mod settings;
mod start;
mod underway;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use engine::Engine;
use ledger::Ledger;

#[cfg(test)]
pub(crate) use decide::survivors;
pub(crate) use decided::{Curve, Decided, Drift, Effect, Row, Standing, Survivor};
pub(crate) use figure::{Figure, Metric};
pub(crate) use figures::{figures_of, why_never};
pub(crate) use layout::{Factor, Layout};
pub(crate) use objective::{Objective, Requirement, Side};
pub(crate) use record::{Cell, CellOutcome, LeftOut, Probe, Settings, SweepRecord, Value};
#[cfg(test)]
pub(crate) use {decided::Point, plan::Factors, price::Cost, record::Volume};

use crate::array::programs::Installed;
use crate::bench::check_page;
use crate::cli::SweepArgs;
use crate::context::Context;
use crate::failure::{Answer, Failure, Outcome, Standing as _};
use crate::render;
use decide::decide;
use run::Ending;
use start::Start;

/// At most so many layouts have their latencies drawn.
const FINALISTS: usize = 4;

/// Finds the layout of the devices that is best, or shows what was found before.
pub(crate) fn sweep(
    args: &SweepArgs,
    context: &mut Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Outcome {
    if let Some(page) = &args.report {
        args.devices
            .iter()
            .map(|device| &**device)
            .chain([Path::new("")])
            .try_for_each(|device| check_page(page, device))?;
    }
    if let Some(word) = &args.show {
        return past::show(args, word, context);
    }
    let mut programs = Installed;
    if let Some(word) = &args.abandon {
        return past::abandon(args, word, context, &mut programs);
    }
    let start = start::start(args, context, &mut programs)?;
    let Start::Ready(ready) = start else {
        return Ok(Answer::Done);
    };
    let mut sweep = ready.sweep(context, &mut programs, engine, interrupt);
    match sweep.run()? {
        Ending::Over => {
            let (record, ledger) = sweep.finish()?;
            answer(args, context, &record, &ledger)
        }
        Ending::Interrupted => {
            let (record, ledger) = (sweep.kept.record, sweep.ledger);
            if !record.cells.is_empty() {
                answer(args, context, &record, &ledger)?;
            }
            Err(Failure::Midway(anyhow!(
                "interrupted; nothing is left assembled, and the same command goes on where this \
                 stopped"
            )))
        }
    }
}

/// Shows what is concluded of a sweep.
fn answer(
    args: &SweepArgs,
    context: &mut Context,
    record: &SweepRecord,
    ledger: &Ledger,
) -> Outcome {
    let decided = decide(record);
    let winner = decided.winner.and_then(|winner| record.layouts.get(winner));
    let commands = winner.map_or_else(Vec::new, |winner| {
        commands::commands(&record.settings, winner)
    });
    let text = if args.json {
        render::sweep::json::document(record, &decided, &commands)
    } else {
        render::sweep::text::sweep(record, &decided, &commands, context.columns)
    };
    let printed = context.print(&text);
    // Also when nobody reads the answer any more, as in a closed pipe.
    if let Some(page) = &args.report {
        let finalists = finalists(record, &decided, ledger);
        render::html::sweep::write_file(page, record, &decided, &finalists, &commands).midway()?;
    }
    printed?;
    status(record, &decided)
}

/// The best layouts with a run of each.
fn finalists(
    record: &SweepRecord,
    decided: &Decided,
    ledger: &Ledger,
) -> Vec<(String, ::record::Run)> {
    let best = decided.winner.iter().chain(&decided.ties);
    best.take(FINALISTS)
        .filter_map(|&layout| {
            let cells = record.cells.iter().rev();
            let run = cells
                .filter(|cell| cell.layout == layout)
                .find_map(|cell| match &cell.outcome {
                    CellOutcome::Measured { run, .. } => Some(run),
                    CellOutcome::Failed(_) => None,
                })?;
            let run = ledger.load(run.as_str()).ok()?;
            Some((record.layouts.get(layout)?.to_string(), run))
        })
        .collect()
}

/// How the answer ends: no, where measured layouts miss what is required of them.
fn status(record: &SweepRecord, decided: &Decided) -> Outcome {
    if decided.winner.is_some() || !decided.over {
        return Ok(Answer::Done);
    }
    let measured = |cell: &Cell| matches!(cell.outcome, CellOutcome::Measured { .. });
    if record.cells.iter().any(measured) {
        return Ok(Answer::No);
    }
    Err(Failure::Midway(anyhow!(
        "no layout could be built and measured; nothing is left assembled"
    )))
}
