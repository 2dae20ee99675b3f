//! The verb `sweep`: which layout of these devices is best.

pub mod args;
mod check;
mod checkpoint;
mod commands;
mod decide;
mod decided;
mod figure;
mod figures;
mod html;

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
mod run;
mod settings;
mod start;
mod testbed;
mod underway;
mod views;

use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use engine::Engine;
use ledger::Ledger;

#[cfg(test)]
pub(crate) use decide::survivors;
pub(crate) use decided::{Curve, Decided, Drift, Effect, LayoutOutcome, Row, Survivor};
pub use figure::{Figure, Metric};
pub use figures::{figures_of, why_never};
pub(crate) use layout::{Factor, Layout};
pub use objective::{Objective, Requirement, Side};
pub(crate) use record::{Cell, CellOutcome, LeftOut, Probe, Settings, SweepRecord, Value};
#[cfg(test)]
pub(crate) use {decided::Point, plan::Factors, price::Cost, record::Volume};

use crate::args::SweepArgs;
use array::programs::Installed;
use decide::decide;
use run::Ending;
use start::Start;
use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Failure, Outcome};
use ui::output::{Format, OutputFile};

/// At most so many layouts have their latencies drawn.
const FINALISTS: usize = 4;

/// Finds the layout of the devices that is best, or shows what was found before.
pub fn sweep(
    args: &SweepArgs,
    context: &mut Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Outcome {
    let page = OutputFile::check_if_any(args.report.as_ref(), Format::Page, args.force)?;
    if let Some(word) = &args.show {
        return past::show(args, word, page.as_ref(), context);
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
            answer(args, page.as_ref(), context, &record, &ledger)
        }
        Ending::Interrupted => {
            let ledger = sweep.job.suspend().into_ledger();
            let record = sweep.checkpoint.record;
            if !record.cells.is_empty() {
                answer(args, page.as_ref(), context, &record, &ledger)?;
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
    page: Option<&OutputFile>,
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
        views::json::document(record, &decided, &commands)
    } else {
        views::text::sweep(record, &decided, &commands, context.columns)
    };
    let printed = context.print(&text);
    // Also when nobody reads the answer any more, as in a closed pipe.
    if let Some(page) = page {
        let finalists = finalists(record, &decided, ledger);
        html::write_file(page, record, &decided, &finalists, &commands).midway()?;
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

/// Exit of the verb: no, where measured layouts miss the requirements.
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
