//! The answer of a sweep: its conclusions as text, JSON or a page.

use anyhow::anyhow;
use ledger::Ledger;

use crate::args::SweepArgs;
use crate::decide::decide;
use crate::decision::SweepDecision;
use crate::record::{Cell, CellOutcome, SweepRecord};
use crate::{commands, html, views};
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::output::OutputFile;

/// Maximum number of layouts whose latency distributions are drawn.
const MAX_FINALISTS: usize = 4;

/// Shows the conclusions of a sweep.
pub(crate) fn answer(
    args: &SweepArgs,
    page: Option<&OutputFile>,
    context: &mut Context,
    record: &SweepRecord,
    ledger: &Ledger,
) -> Outcome {
    let decision = decide(record);
    let commands = commands_of(record, &decision);
    let text = if args.json {
        views::json::document(record, &decision, &commands)
    } else {
        views::text::sweep(record, &decision, &commands, context.columns)
    };
    let printed = context.print(&text);
    // Even when standard output is closed, as with a pipe.
    if let Some(page) = page {
        let content = drawn(record, &decision, &commands, ledger).midway()?;
        page.write(&content).midway()?;
    }
    printed?;
    status(record, &decision)
}

/// The page of a sweep.
///
/// # Errors
/// When a template fails.
pub(crate) fn page(record: &SweepRecord, ledger: &Ledger) -> anyhow::Result<Vec<u8>> {
    let decision = decide(record);
    drawn(record, &decision, &commands_of(record, &decision), ledger)
}

/// The document of a sweep.
pub(crate) fn document(record: &SweepRecord) -> String {
    let decision = decide(record);
    views::json::document(record, &decision, &commands_of(record, &decision))
}

fn drawn(
    record: &SweepRecord,
    decision: &SweepDecision,
    commands: &[String],
    ledger: &Ledger,
) -> anyhow::Result<Vec<u8>> {
    let finalists = finalists(record, decision, ledger);
    html::of(record, decision, &finalists, commands)
}

/// Commands that build the winner.
fn commands_of(record: &SweepRecord, decision: &SweepDecision) -> Vec<String> {
    let winner = decision
        .winner
        .and_then(|winner| record.layouts.get(winner));
    winner.map_or_else(Vec::new, |winner| {
        commands::commands(&record.settings, winner)
    })
}

/// The best layouts with a run of each.
fn finalists(
    record: &SweepRecord,
    decision: &SweepDecision,
    ledger: &Ledger,
) -> Vec<(String, ::record::Run)> {
    let best = decision.winner.iter().chain(&decision.ties);
    best.take(MAX_FINALISTS)
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

/// Exit status of the verb: 1 where the measured layouts miss the requirements.
fn status(record: &SweepRecord, decision: &SweepDecision) -> Outcome {
    if decision.winner.is_some() || !decision.over {
        return Ok(CommandEnd::Done);
    }
    let measured = |cell: &Cell| matches!(cell.outcome, CellOutcome::Measured { .. });
    if record.cells.iter().any(measured) {
        return Ok(CommandEnd::No);
    }
    Err(Failure::Midway(anyhow!(
        "no layout could be built and measured; nothing is left assembled"
    )))
}
