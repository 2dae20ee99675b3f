//! `ledger export`: the content of the ledger, a line of JSON for each row, in bounded memory.

use jiff::Timestamp;
use ledger::{Filter, Ledger, Mark, RecordingSummary, StoredRun, WorkSummary};
use record::{Finding, ImportedRun, Run, Verdict};
use serde::Serialize;
use study::watch::WatchEvent;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::json::Document;

/// A line of the export: one row of the ledger.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Line {
    Run(RunLine<Run>),
    Import(RunLine<ImportedRun>),
    Mark(MarkLine),
    Recording(RecordingLine),
    Event(EventLine),
    Work(WorkLine),
}

/// A run that was measured or that another tool reported, as the ledger keeps it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunLine<R> {
    /// The run with all its measurements.
    run: Box<R>,
    /// Verdict that the findings lead to.
    verdict: Verdict,
    /// Findings of the run.
    findings: Vec<Finding>,
    /// Version of disksmith that concluded the verdict and the findings.
    concluded_by: String,
}

/// A mark: a named moment.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MarkLine {
    /// Number of the mark in the ledger.
    mark: i64,
    /// Time of the mark.
    time: Timestamp,
    /// Host on which it was set.
    hostname: String,
    /// Name of the mark.
    text: String,
}

/// A recording of a host's disks.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RecordingLine {
    /// Number of the recording in the ledger.
    recording: i64,
    /// Host that was watched.
    hostname: String,
    /// Start of the first sample that is kept.
    from: Timestamp,
    /// End of the last sample.
    to: Timestamp,
    /// True while it is being recorded, and where it was cut off by a kill.
    open: bool,
    /// Number of samples that are kept as they were taken.
    samples: u64,
    /// Number of samples of a minute each, merged from older ones.
    samples_per_minute: u64,
    /// Number of samples of an hour each, merged from older ones.
    samples_per_hour: u64,
}

/// A finding of a recording.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct EventLine {
    /// Host that was watched.
    hostname: String,
    /// The finding, with its beginning, end and figures.
    event: Box<WatchEvent>,
}

/// Long work that can be resumed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WorkLine {
    /// Kind of the work, such as `sweep`.
    work: String,
    /// Target of the work, by which its kind finds it.
    key: String,
    /// Start of the work.
    began: Timestamp,
    /// Time of its last checkpoint.
    changed: Timestamp,
    /// End; `null` while it is not finished.
    finished: Option<Timestamp>,
}

/// Prints the rows of the ledger, a line each. A row that cannot be read is reported, and the rest printed.
pub(crate) fn export(context: &mut Context) -> Outcome {
    let path = context.ledger_path()?;
    let Some(ledger) = context.open_ledger_if_there()? else {
        return Err(ledger::Error::Missing { path }).refused();
    };
    let mut lost = false;
    for summary in ledger.list(&Filter::default()).midway()? {
        match run(&ledger, summary.id.as_str()) {
            Ok(line) => print(line, context)?,
            Err(error) => {
                lost = true;
                context.notice(&error.to_string());
            }
        }
    }
    for mark in ledger.marks(Timestamp::MIN, Timestamp::MAX).midway()? {
        print(of_mark(mark), context)?;
    }
    let recordings = ledger.recordings().midway()?;
    let mut hosts: Vec<&str> = recordings.iter().map(|one| one.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    for recording in &recordings {
        print(of_recording(recording), context)?;
    }
    for host in hosts {
        for event in ledger.events_since(host, Timestamp::MIN).midway()? {
            let (hostname, event) = (host.to_owned(), Box::new(event));
            print(Line::Event(EventLine { hostname, event }), context)?;
        }
    }
    for work in ledger.list_work(None).midway()? {
        print(of_work(work), context)?;
    }
    Ok(match lost {
        true => CommandEnd::No,
        false => CommandEnd::Done,
    })
}

fn run(ledger: &Ledger, id: &str) -> ledger::Result<Line> {
    let conclusion = ledger.conclusion(id)?;
    let (verdict, findings) = (conclusion.verdict, conclusion.findings);
    let concluded_by = conclusion.disksmith;
    Ok(match ledger.load_kept(id)? {
        StoredRun::Measured(run) => Line::Run(RunLine {
            run,
            verdict,
            findings,
            concluded_by,
        }),
        StoredRun::Imported(run) => Line::Import(RunLine {
            run,
            verdict,
            findings,
            concluded_by,
        }),
    })
}

fn of_mark(mark: Mark) -> Line {
    Line::Mark(MarkLine {
        mark: mark.number,
        time: mark.at,
        hostname: mark.host,
        text: mark.text,
    })
}

fn of_recording(recording: &RecordingSummary) -> Line {
    Line::Recording(RecordingLine {
        recording: recording.number,
        hostname: recording.host.clone(),
        from: recording.from,
        to: recording.to,
        open: recording.is_open,
        samples: recording.taken,
        samples_per_minute: recording.minutes,
        samples_per_hour: recording.hours,
    })
}

fn of_work(work: WorkSummary) -> Line {
    Line::Work(WorkLine {
        work: work.kind,
        key: work.key,
        began: work.began,
        changed: work.changed,
        finished: work.finished,
    })
}

fn print(line: Line, context: &mut Context) -> Result<(), Failure> {
    context.print(&Document::of("ledger export", line).to_string())
}
