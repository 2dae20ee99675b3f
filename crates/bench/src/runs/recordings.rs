//! Recordings of `watch --record`: list with size and time span, and removal.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ledger::{Ledger, RecordingSummary};
use linux::remedy;
use record::Bytes;
use serde::Serialize;

use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::table::{Column, layout};

const COLUMNS: [Column; 9] = [
    Column::numbers("#", 0),
    Column::text("host"),
    Column::text("from"),
    Column::text("to"),
    Column::numbers("as taken", 2),
    Column::numbers("minutes", 3),
    Column::numbers("hours", 4),
    Column::numbers("findings", 1),
    Column::numbers("size", 0),
];

/// Lists the recordings.
pub(super) fn list(ledger: &Ledger, json: bool, context: &mut Context) -> Outcome {
    let found = ledger.recordings().midway()?;
    let text = if json {
        document(&found)
    } else {
        text(&found, context.columns)
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

/// Removes a recording.
pub(super) fn remove(
    ledger: &mut Ledger,
    number: i64,
    json: bool,
    context: &mut Context,
) -> Outcome {
    ledger.remove_recording(number).refused()?;
    let text = if json {
        ui::json::document("runs", &RemovedBody { removed: number })
    } else {
        format!("Removed recording {number}. The ledger uses its room again.\n")
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

/// Body of the document of `runs recordings --remove --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RemovedBody {
    /// Number of the recording that was removed.
    removed: i64,
}

/// A line below the list of runs; empty where nothing is recorded.
pub(super) fn line(ledger: &Ledger) -> Result<String, Failure> {
    let found = ledger.recordings().midway()?;
    let (Some(from), Some(to)) = (
        found.iter().map(|one| one.from).min(),
        found.iter().map(|one| one.to).max(),
    ) else {
        return Ok(String::new());
    };
    let bytes = ledger.recorded_bytes().midway()?;
    Ok(format!(
        "\nAlso kept: a recording from {} to {}, in {bytes}; disksmith runs recordings lists \
         it.\n",
        minute(from),
        minute(to)
    ))
}

fn text(found: &[RecordingSummary], columns: usize) -> String {
    if found.is_empty() {
        let record = remedy::command("watch --record");
        return format!("Nothing is recorded here yet; this does it: {record}\n");
    }
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|one| {
            let open = if one.is_open { " …" } else { "" };
            vec![
                one.number.to_string(),
                one.host.clone(),
                minute(one.from),
                format!("{}{open}", minute(one.to)),
                one.taken.to_string(),
                one.minutes.to_string(),
                one.hours.to_string(),
                one.events.to_string(),
                one.bytes.to_string(),
            ]
        })
        .collect();
    layout(&COLUMNS, &rows, columns)
}

fn minute(at: Timestamp) -> String {
    let local = at.to_zoned(TimeZone::system());
    local.strftime("%Y-%m-%d %H:%M").to_string()
}

/// Body of the document of `runs recordings --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RecordingsBody<'a> {
    /// Recordings in the ledger.
    recordings: Vec<RecordingBody<'a>>,
}

/// A recording of `watch --record`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RecordingBody<'a> {
    /// Number by which it is removed.
    recording: i64,
    /// Host that was recorded.
    hostname: &'a str,
    /// Start of the first sample that is kept.
    from: Timestamp,
    /// End of the last sample.
    to: Timestamp,
    /// True while `watch` still writes it.
    open: bool,
    /// Number of samples kept as they were taken.
    samples: u64,
    /// Number of samples thinned out to one a minute.
    samples_per_minute: u64,
    /// Number of samples thinned out to one an hour.
    samples_per_hour: u64,
    /// Number of findings in the recording.
    findings: u64,
    /// Bytes that the samples take in the ledger.
    bytes: Bytes,
}

fn document(found: &[RecordingSummary]) -> String {
    let recordings = found.iter().map(|one| RecordingBody {
        recording: one.number,
        hostname: &one.host,
        from: one.from,
        to: one.to,
        open: one.is_open,
        samples: one.taken,
        samples_per_minute: one.minutes,
        samples_per_hour: one.hours,
        findings: one.events,
        bytes: one.bytes,
    });
    let body = RecordingsBody {
        recordings: recordings.collect(),
    };
    ui::json::document("runs", &body)
}
