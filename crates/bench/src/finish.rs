//! The end of a run: it is concluded, kept in the ledger, and shown.

use anyhow::anyhow;
use jiff::Timestamp;
use ledger::Ledger;
use linux::remedy;
use record::Run;

use crate::args::BenchArgs;
use crate::conclusion::Conclusion;
use crate::session::FinishedRun;
use crate::views;
use crate::views::logs::Logs;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome, sentence};
use ui::output::OutputFile;

/// Files that a run writes, all of which were checked before it.
pub(crate) struct Outputs {
    pub report: Option<OutputFile>,
    pub logs: Option<Logs>,
}

/// Keeps the run, shows it, and returns the end of the command.
pub(crate) fn finish(
    ran: FinishedRun,
    args: &BenchArgs,
    context: &mut Context,
    ledger: Option<Ledger>,
    outputs: &Outputs,
) -> Outcome {
    let FinishedRun { run, failed } = ran;
    let conclusion = Conclusion::of(&run);
    if !run.phases.is_empty() {
        let kept = keep(&run, &conclusion, context, ledger);
        let text = match args.answer_format() {
            Some(format) => format.measured(&run, &conclusion).midway(),
            None if args.json => Ok(views::json::document(&run, &conclusion)),
            None => Ok(views::text::run(&run, &conclusion, context.columns, kept)),
        };
        let printed = text.and_then(|text| context.print(&text));
        // Written also when standard output is no longer read, as with a closed pipe.
        write_report(outputs.report.as_ref(), &run, &conclusion, kept, context)?;
        if let Some(logs) = &outputs.logs {
            logs.write(&run.phases)?;
        }
        printed?;
    }
    match failed {
        Some(error) => Err(Failure::Midway(error)),
        None if run.interrupted => Err(Failure::Midway(anyhow!(
            "interrupted; what was measured until then {}, and no test file is left",
            if run.phases.is_empty() {
                "is nothing"
            } else {
                "is shown above"
            }
        ))),
        None if is_no(&run) => Ok(CommandEnd::No),
        None => Ok(CommandEnd::Done),
    }
}

/// True if a rule of the jobs was not met: data differs from the data written, a rate was missed, or requests failed
/// without ending the phase.
fn is_no(run: &Run) -> bool {
    run.phases.iter().any(|phase| {
        let outcome = &phase.outcome;
        let verified = outcome.verified.as_ref();
        verified.is_some_and(|verified| verified.failed > 0)
            || outcome.floor_missed.is_some()
            || outcome.failed.is_some()
    })
}

/// Saves the run in the ledger; true if it was saved.
fn keep(run: &Run, conclusion: &Conclusion, context: &Context, ledger: Option<Ledger>) -> bool {
    let Some(ledger) = ledger else {
        return false;
    };
    let save = |mut ledger: Ledger| -> anyhow::Result<()> {
        Ok(ledger.save(run, conclusion.verdict, &conclusion.findings)?)
    };
    let mut saved = save(ledger);
    if let Err(error) = &saved
        && let Some(ledger::Error::Gone { .. }) = error.downcast_ref()
    {
        let reason = sentence(error);
        context.notice(&format!(
            "disksmith: {reason}; a new one is made for this run."
        ));
        let anew = context.open_ledger();
        saved = anew.map_err(Failure::error).and_then(save);
    }
    if let Err(error) = &saved {
        context.notice(&format!(
            "disksmith: the run is not kept: {}",
            sentence(error)
        ));
    }
    saved.is_ok()
}

fn write_report(
    report: Option<&OutputFile>,
    run: &Run,
    conclusion: &Conclusion,
    is_kept: bool,
    context: &Context,
) -> Result<(), Failure> {
    let Some(report) = report else {
        return Ok(());
    };
    // An error of the ledger was reported when the run was to be kept.
    let marks = context
        .open_ledger_if_there()
        .ok()
        .flatten()
        .and_then(|ledger| ledger.marks(run.started, Timestamp::MAX).ok())
        .unwrap_or_default();
    let written =
        views::html::write_file(report, &[(run.clone(), conclusion.clone())], &[], &marks);
    written
        .map_err(|error| match is_kept {
            true => anyhow!(
                "{}; the run is kept, and this draws it: {}",
                sentence(&error),
                remedy::command(&format!("report {} -o FILE.html", run.id))
            ),
            false => error,
        })
        .midway()
}

/// The ledger; `None` if the run is not to be kept or cannot be.
pub(crate) fn open_ledger(args: &BenchArgs, context: &Context) -> Result<Option<Ledger>, Failure> {
    if args.no_ledger {
        return Ok(None);
    }
    let opened = context
        .open_ledger()
        .and_then(|ledger| ledger.demand_writable().refused().map(|()| ledger));
    match opened {
        Ok(ledger) => Ok(Some(ledger)),
        // A full or read-only disk is no reason not to measure.
        Err(Failure::Refused(error)) if is_of_place(&error) => {
            context.notice(&format!(
                "disksmith: this run will not be kept: {}",
                sentence(&error)
            ));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// True if an error means that the ledger is sound but cannot be written where it is.
fn is_of_place(error: &anyhow::Error) -> bool {
    let error: Option<&ledger::Error> = error.downcast_ref();
    error.is_some_and(ledger::Error::is_of_place)
}
