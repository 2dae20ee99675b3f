//! The verb `import`: results of other tools are kept beside those of this program.

pub mod args;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use jiff::Timestamp;
use ledger::Ledger;
use linux::remedy;
use record::{ImportedRun, RunId, Summary};
use serde::Serialize;

use crate::imported::args::ImportArgs;
use crate::judged::ImportConclusion;
use crate::views::json::ImportedDocument;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::table::wrap;

/// Maximum size of an input: more than hundreds of fio's longest documents, and less than a device that was named by
/// mistake. Parsed, a document takes several times the memory of its text.
const MAX_INPUT_BYTES: u64 = 64 << 20;

/// Maximum number of names that are tried for a run whose name is already used.
const ATTEMPTS: u64 = 100;

/// Reads all files, and keeps all of their runs, or none if a file is not understood.
pub fn import(args: &ImportArgs, context: &mut Context) -> Outcome {
    let imported = Timestamp::now();
    let mut runs = Vec::new();
    for file in &args.files {
        let text = text_of(file).refused()?;
        let summaries = formats::read(&text)
            .with_context(|| named(file))
            .refused()?;
        for summary in summaries {
            let source = file.to_string_lossy().into_owned();
            runs.push(imported_run(summary, source, imported, runs.len() as u64));
        }
    }
    let judged: Vec<ImportedEntry> = match args.dry_run {
        true => runs.into_iter().map(judge).collect(),
        false => keep_all(runs, context)?,
    };
    let text = if args.json {
        document(&judged, args.dry_run)
    } else {
        sentences(&judged, args.dry_run, context.columns)
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

fn named(file: &Path) -> String {
    match file.as_os_str() == "-" {
        true => "standard input cannot be imported".to_owned(),
        false => format!("{} cannot be imported", file.display()),
    }
}

fn unread(file: &Path, error: &io::Error) -> anyhow::Error {
    let takes = "the files that are taken are listed by: disksmith import --help";
    anyhow!("{}: {}", named(file), remedy::file(error, takes))
}

/// Contents of a file, or of standard input. Bytes that are not UTF-8 may occur in a path, and are no reason to refuse
/// the figures.
fn text_of(file: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let mut source: Box<dyn Read> = match file.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(file).map_err(|error| unread(file, &error))?),
    };
    source
        .as_mut()
        .take(MAX_INPUT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unread(file, &error))?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(anyhow!("it is larger than 64 MiB; split it").context(named(file)));
    }
    Ok(formats::text::lossy(bytes))
}

/// The run that a summary becomes.
fn imported_run(summary: Summary, source: String, imported: Timestamp, number: u64) -> ImportedRun {
    let mut run = ImportedRun {
        id: RunId::new(imported, 0),
        imported,
        disksmith: env!("CARGO_PKG_VERSION").to_owned(),
        source,
        summary,
    };
    name(&mut run, number << 32);
    run
}

fn name(run: &mut ImportedRun, entropy: u64) {
    let own = u64::from(std::process::id()) ^ run.imported.as_nanosecond() as u64;
    run.id = RunId::new(run.started(), own.wrapping_add(entropy));
}

/// A document that was imported.
struct ImportedEntry {
    run: ImportedRun,
    judged: ImportConclusion,
    /// True if the ledger had the same run already, under this id.
    already_kept: bool,
}

fn judge(run: ImportedRun) -> ImportedEntry {
    ImportedEntry {
        judged: ImportConclusion::of(&run),
        run,
        already_kept: false,
    }
}

fn keep_all(runs: Vec<ImportedRun>, context: &Context) -> Result<Vec<ImportedEntry>, Failure> {
    let mut ledger = context.open_ledger()?;
    let mut kept = Vec::new();
    for (index, run) in runs.into_iter().enumerate() {
        let outcome = keep(&mut ledger, run, (index as u64) << 32);
        kept.push(match index {
            0 => outcome.refused()?,
            _ => outcome
                .with_context(|| format!("only the first {index} runs are kept"))
                .midway()?,
        });
    }
    Ok(kept)
}

/// Keeps a run, under another name if its own is already used. If the ledger already has the same run, the run gets
/// the existing name.
fn keep(
    ledger: &mut Ledger,
    run: ImportedRun,
    entropy: u64,
) -> Result<ImportedEntry, ledger::Error> {
    let mut imported = judge(run);
    let mut attempt = 0;
    loop {
        let ImportedEntry { run, judged, .. } = &imported;
        match ledger.save_imported(run, judged.verdict, &judged.findings) {
            Err(ledger::Error::AlreadySaved { .. }) if attempt < ATTEMPTS => {
                attempt += 1;
                name(&mut imported.run, entropy + attempt);
            }
            Ok(Some(id)) => {
                imported.run.id = id;
                imported.already_kept = true;
                return Ok(imported);
            }
            outcome => return outcome.map(|_| imported),
        }
    }
}

fn sentences(runs: &[ImportedEntry], dry: bool, columns: usize) -> String {
    let line = |imported: &ImportedEntry| {
        let ImportedEntry { run, judged, .. } = imported;
        let names: Vec<&str> = run.summary.phases.iter().map(|p| p.name.as_str()).collect();
        let kept = match dry {
            true => "would be kept".to_owned(),
            false if imported.already_kept => {
                format!("kept already, as run {}, and not again", run.id)
            }
            false => format!("kept as run {}", run.id),
        };
        let text = format!(
            "{} from {}: {kept}, {} ({}).",
            run.summary.tool,
            run.source,
            judged.verdict,
            names.join(", ")
        );
        format!("{}\n", wrap(&text, columns, "  "))
    };
    runs.iter().map(line).collect()
}

/// Body of the document of `import --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ImportBody<'a> {
    /// True if nothing was kept (`--dry-run`).
    dry_run: bool,
    /// Runs of the files, in the order of the files.
    runs: Vec<ImportedBody<'a>>,
}

/// An imported run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ImportedBody<'a> {
    #[serde(flatten)]
    run: ImportedDocument<'a>,
    /// True if the ledger had the same run already, under the run's id.
    already_kept: bool,
}

impl ImportedBody<'_> {
    fn of(imported: &ImportedEntry, dry: bool) -> ImportedBody<'_> {
        let mut run = ImportedDocument::of(&imported.run, &imported.judged);
        run.run = run.run.filter(|_| !dry);
        ImportedBody {
            run,
            already_kept: imported.already_kept,
        }
    }
}

fn document(runs: &[ImportedEntry], dry: bool) -> String {
    let body = ImportBody {
        dry_run: dry,
        runs: runs.iter().map(|one| ImportedBody::of(one, dry)).collect(),
    };
    ui::json::document("import", &body)
}
