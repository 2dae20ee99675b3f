//! `ledger export`: what the ledger holds, a line of JSON each, in bounded memory.

use jiff::Timestamp;
use ledger::{Filter, Ledger, Mark, RecordingSummary, StoredRun, WorkSummary};
use record::{Finding, ImportedRun, Run, Verdict};
use serde::Serialize;
use study::watch::WatchEvent;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::json::Document;

/// A line.
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

/// A run that was measured or that another tool reported, as it is kept.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunLine<R> {
    run: Box<R>,
    verdict: Verdict,
    findings: Vec<Finding>,
    concluded_by: String,
}

/// A named moment.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MarkLine {
    mark: i64,
    time: Timestamp,
    hostname: String,
    text: String,
}

/// A recording of a host's disks.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RecordingLine {
    recording: i64,
    hostname: String,
    from: Timestamp,
    to: Timestamp,
    open: bool,
    samples: u64,
    samples_per_minute: u64,
    samples_per_hour: u64,
}

/// A finding of a recording.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct EventLine {
    hostname: String,
    event: Box<WatchEvent>,
}

/// Long work.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WorkLine {
    work: String,
    key: String,
    began: Timestamp,
    changed: Timestamp,
    finished: Option<Timestamp>,
}

/// Prints all lines. What cannot be read is reported, and the rest printed.
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
