//! The verbs that read the ledger: `runs`, `show`, `compare`, `report`.

pub mod args;
pub(crate) mod compare;
mod other_ledger;
pub(crate) mod recordings;
mod side;
mod work;

use jiff::Timestamp;
use ledger::{Filter, Ledger, RunSummary, StoredRun};
use record::{ImportedRun, Origin, Run, RunId, Verdict};
use serde::Serialize;

use crate::conclusion::Conclusion;
use crate::judged::ImportConclusion;
use crate::runs::args::{CompareArgs, ReportArgs, RunsArgs, RunsVerb, ShowArgs};
use crate::views;
use side::Side;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::output::{OutputFile, OutputFormat};
use ui::table::{Column, layout};

/// Lists runs, or removes some.
pub fn runs(args: &RunsArgs, context: &mut Context) -> Outcome {
    let mut ledger = context.open_ledger_or_empty()?;
    match &args.verb {
        Some(RunsVerb::Remove { runs }) => return remove(&mut ledger, runs, context),
        Some(RunsVerb::Recordings {
            remove: Some(number),
            json,
        }) => return recordings::remove(&mut ledger, *number, *json, context),
        Some(RunsVerb::Recordings { remove: None, json }) => {
            return recordings::list(&ledger, *json, context);
        }
        None => {}
    }
    let filter = Filter {
        host: args.host.clone(),
        target: args.target.clone(),
        suite: args.suite.clone(),
        limit: Some(args.limit),
        ..Filter::default()
    };
    let found = ledger.list(&filter).midway()?;
    let text = if args.json {
        list_document(&found)
    } else {
        let recorded = recordings::line(&ledger)?;
        let elsewhere = match found.is_empty() {
            true => other_ledger::note(context).unwrap_or_default(),
            false => String::new(),
        };
        list_text(&found, &filter, context.columns) + &elsewhere + &recorded
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

/// Removes all named runs, or none of them: each is searched for before the first is removed.
fn remove(ledger: &mut Ledger, words: &[String], context: &mut Context) -> Outcome {
    let mut ids = Vec::new();
    for word in words {
        let id = ledger.find(word).refused()?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    for (index, id) in ids.iter().enumerate() {
        let removed = ledger.remove(id.as_str());
        // Until the first run is removed, an error means that nothing was changed.
        let removed = match index {
            0 => removed.refused()?,
            _ => removed.midway()?,
        };
        context.print(&format!("Removed run {removed}.\n"))?;
    }
    Ok(CommandEnd::Done)
}

const COLUMNS: [Column; 7] = [
    Column::text("run"),
    Column::text("started (UTC)").ranked(3),
    Column::text("host").ranked(2),
    Column::text("target"),
    Column::text("device").ranked(4),
    Column::text("suite").ranked(1),
    Column::text("verdict"),
];

fn list_text(found: &[RunSummary], filter: &Filter, columns: usize) -> String {
    let filtered = [&filter.host, &filter.target, &filter.suite];
    if found.is_empty() && filtered.iter().any(|wanted| wanted.is_some()) {
        return "No run that is kept here is of that host, target and suite.\n".to_owned();
    }
    if found.is_empty() {
        return "No runs are kept here yet; this makes one: disksmith bench .\n".to_owned();
    }
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|run| {
            let partial = if run.interrupted { " (partial)" } else { "" };
            vec![
                run.id.to_string(),
                run.started.strftime("%Y-%m-%d %H:%M").to_string(),
                text_or_dash(&run.host),
                text_or_dash(&run.target),
                run.device.clone().unwrap_or_default(),
                match &run.origin {
                    Origin::Measured => run.suite.clone(),
                    Origin::Imported { tool } => format!("{} ({tool})", run.suite),
                },
                format!("{}{partial}", run.verdict),
            ]
        })
        .collect();
    layout(&COLUMNS, &rows, columns)
}

/// The text, or a dash where another tool's output does not have it.
fn text_or_dash(text: &str) -> String {
    match text {
        "" => "–".to_owned(),
        text => text.to_owned(),
    }
}

/// Body of the document of `runs --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunsBody<'a> {
    /// Runs in the ledger.
    runs: Vec<RunBody<'a>>,
}

/// A run in the ledger.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RunBody<'a> {
    /// Id of the run.
    run: &'a RunId,
    /// Start of the run.
    started: Timestamp,
    /// Host that it ran on; null where another tool's output does not say.
    hostname: Option<&'a str>,
    /// Path of the target, as it was given; null where another tool's output does not say.
    target: Option<&'a str>,
    /// Block device below the target; null where there is none or it is not known.
    device: &'a Option<String>,
    /// Name of the suite, or of the tool whose output was imported.
    suite: &'a str,
    /// Names of its phases.
    phases: &'a [String],
    origin: &'a Origin,
    /// True if a signal ended the run before its last phase was done.
    interrupted: bool,
    verdict: Verdict,
}

fn list_document(found: &[RunSummary]) -> String {
    let runs = found.iter().map(|run| RunBody {
        run: &run.id,
        started: run.started,
        hostname: Some(run.host.as_str()).filter(|host| !host.is_empty()),
        target: Some(run.target.as_str()).filter(|target| !target.is_empty()),
        device: &run.device,
        suite: &run.suite,
        phases: &run.phases,
        origin: &run.origin,
        interrupted: run.interrupted,
        verdict: run.verdict,
    });
    let body = RunsBody {
        runs: runs.collect(),
    };
    ui::json::document("runs", &body)
}

/// A run of the ledger, and the conclusions from it by this version.
enum ConcludedRun {
    /// Measured by this program.
    Measured(Box<Run>, Conclusion),
    /// Imported from another tool.
    Imported(Box<ImportedRun>, ImportConclusion),
}

impl ConcludedRun {
    /// Data of the run for a comparison.
    fn side(&self) -> Side {
        match self {
            ConcludedRun::Measured(run, conclusion) => Side::measured(run, conclusion),
            ConcludedRun::Imported(run, judged) => Side::imported(run, judged),
        }
    }

    /// The JSON document of the run.
    fn document(&self) -> String {
        match self {
            ConcludedRun::Measured(run, conclusion) => views::json::document(run, conclusion),
            ConcludedRun::Imported(run, judged) => views::json::imported(run, judged),
        }
    }
}

fn load(ledger: &Ledger, word: &str) -> Result<ConcludedRun, Failure> {
    Ok(match ledger.load_kept(word).refused()? {
        StoredRun::Measured(run) => {
            let conclusion = Conclusion::of(&run);
            ConcludedRun::Measured(run, conclusion)
        }
        StoredRun::Imported(run) => {
            let judged = ImportConclusion::of(&run);
            ConcludedRun::Imported(run, judged)
        }
    })
}

/// Shows a run again.
pub fn show(args: &ShowArgs, context: &mut Context) -> Outcome {
    let ledger = context.open_ledger_or_empty()?;
    let run = load(&ledger, &args.run)?;
    let text = match (&run, args.format) {
        (ConcludedRun::Measured(run, conclusion), Some(format)) => {
            format.measured(run, conclusion).refused()?
        }
        (ConcludedRun::Imported(run, judged), Some(format)) => {
            format.imported(run, judged).refused()?
        }
        (run, None) if args.json => run.document(),
        (ConcludedRun::Measured(run, conclusion), None) => {
            views::text::run(run, conclusion, context.columns, true)
        }
        (ConcludedRun::Imported(run, judged), None) => {
            views::imported::text::run(run, judged, context.columns)
        }
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

/// Compares two runs, phase by phase.
pub fn compare(args: &CompareArgs, context: &mut Context) -> Outcome {
    let ledger = context.open_ledger_or_empty()?;
    let a = load(&ledger, &args.a)?.side();
    let b = load(&ledger, &args.b)?.side();
    let limit = args.fail_if_slower.map(|limit| compare::SlowdownLimit {
        share: limit.0,
        allows_inconclusive: args.allow_inconclusive,
    });
    let comparison = compare::Comparison::of(&a, &b, limit);
    let text = if args.json {
        comparison.document()
    } else {
        comparison.text(context.columns)
    };
    context.print(&text)?;
    Ok(comparison.answer())
}

/// Draws runs as an HTML page.
pub fn report(args: &ReportArgs, context: &mut Context) -> Outcome {
    let output = OutputFile::check(&args.output, OutputFormat::Page, args.force)?;
    let ledger = context.open_ledger_or_empty()?;
    let page = report_page(&ledger, &args.runs)?;
    output.write(&page).midway()?;
    Ok(CommandEnd::Done)
}

/// The page of some runs.
///
/// # Errors
/// When a run is not in the ledger, or cannot be read.
pub fn report_page(ledger: &Ledger, runs: &[String]) -> Result<Vec<u8>, Failure> {
    let mut measured = Vec::new();
    let mut imported = Vec::new();
    for word in runs {
        match load(ledger, word)? {
            ConcludedRun::Measured(run, conclusion) => measured.push((*run, conclusion)),
            ConcludedRun::Imported(run, judged) => imported.push((*run, judged)),
        }
    }
    let marks = ledger.marks(Timestamp::MIN, Timestamp::MAX).midway()?;
    views::html::page(&measured, &imported, &marks).midway()
}

/// The document of a run.
///
/// # Errors
/// When the run is not in the ledger, or cannot be read.
pub fn document(ledger: &Ledger, run: &str) -> Result<String, Failure> {
    Ok(load(ledger, run)?.document())
}

/// The document that compares two runs.
///
/// # Errors
/// When a run is not in the ledger, or cannot be read.
pub fn comparison_document(ledger: &Ledger, a: &str, b: &str) -> Result<String, Failure> {
    let (a, b) = (load(ledger, a)?.side(), load(ledger, b)?.side());
    Ok(compare::Comparison::of(&a, &b, None).document())
}
