//! The verb `ledger`: checking, compacting, exporting and copying the ledger.

use std::path::Path;

use ledger::{Compacted, Error, Examination, Ledger};
use record::Bytes;
use serde::Serialize;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Outcome};
use ui::format::count;
use ui::table::wrap;

use crate::args::{LedgerArgs, LedgerVerb};
use crate::export::export;

/// Runs an action on the ledger.
pub fn ledger(args: &LedgerArgs, context: &mut Context) -> Outcome {
    match &args.verb {
        LedgerVerb::Check { json } => check(*json, context),
        LedgerVerb::Compact { json } => compact(*json, context),
        LedgerVerb::Export => export(context),
        LedgerVerb::Backup { file, json } => back_up(file, *json, context),
    }
}

/// Body of the document of `ledger check --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckBody {
    /// Path of the ledger.
    ledger: String,
    /// True if nothing in it is damaged.
    sound: bool,
    /// Number of its schema; 0 where it could not be read.
    ledger_schema: u32,
    /// Size of the file.
    bytes: Bytes,
    /// Unused part of the file, which `ledger compact` gives back.
    free_bytes: Bytes,
    /// Number of runs.
    runs: u64,
    /// Number of recordings.
    recordings: u64,
    /// Number of blocks of samples of all recordings.
    recording_blocks: u64,
    /// Number of marks.
    marks: u64,
    /// Number of rows of long work, such as sweeps and scrubs.
    work: u64,
    /// Inconsistent or unreadable content, a sentence each.
    damage: Vec<String>,
}

impl CheckBody {
    fn of(found: Examination) -> CheckBody {
        CheckBody {
            ledger: found.path.display().to_string(),
            sound: found.damage.is_empty(),
            ledger_schema: found.schema,
            bytes: found.size,
            free_bytes: found.free,
            runs: found.runs,
            recordings: found.recordings,
            recording_blocks: found.blocks,
            marks: found.marks,
            work: found.work,
            damage: found.damage,
        }
    }

    fn text(&self, width: usize) -> String {
        let state = if self.sound { "sound" } else { "damaged" };
        let mut text = format!("{} is {state}.\n", self.ledger);
        if self.ledger_schema > 0 {
            let many = |count_of: u64, what: &str| count(count_of as usize, what);
            text += &format!(
                "Schema {}, {}, {} of it free. {}, {} ({}), {}, {} of long work.\n",
                self.ledger_schema,
                self.bytes,
                self.free_bytes,
                many(self.runs, "run"),
                many(self.recordings, "recording"),
                many(self.recording_blocks, "block"),
                many(self.marks, "mark"),
                many(self.work, "row"),
            );
        }
        for damage in &self.damage {
            text += &format!("- {damage}\n");
        }
        text += match self.sound {
            true if self.free_bytes.0 > self.bytes.0 / 4 => {
                "'disksmith ledger compact' gives the free room back.\n"
            }
            true => "",
            false => {
                "What can be read is printed by 'disksmith ledger export'. Move the file aside to begin a new one.\n"
            }
        };
        text.lines()
            .map(|line| wrap(line, width, "  ") + "\n")
            .collect()
    }
}

fn check(json: bool, context: &mut Context) -> Outcome {
    let body = match Ledger::examine(context.ledger_path()?) {
        // Damaged so much that SQLite reads nothing of it.
        Err(Error::Damaged { path, detail }) => CheckBody::of(Examination {
            path,
            damage: vec![detail],
            ..Examination::default()
        }),
        other => CheckBody::of(other.refused()?),
    };
    let text = match json {
        true => ui::json::document("ledger check", &body),
        false => body.text(context.columns),
    };
    context.print(&text)?;
    Ok(match body.sound {
        true => CommandEnd::Done,
        false => CommandEnd::No,
    })
}

/// Body of the document of `ledger compact --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CompactBody {
    /// Path of the ledger.
    ledger: String,
    /// Size of the file before.
    before_bytes: Bytes,
    /// Size of the file after.
    after_bytes: Bytes,
}

fn compact(json: bool, context: &mut Context) -> Outcome {
    let path = context.ledger_path()?;
    let Some(mut ledger) = context.open_ledger_if_there()? else {
        return Err(Error::Missing { path }).refused();
    };
    let Compacted { before, after } = ledger.compact().refused()?;
    let body = CompactBody {
        ledger: ledger.path().display().to_string(),
        before_bytes: before,
        after_bytes: after,
    };
    let text = match json {
        true => ui::json::document("ledger compact", &body),
        false => format!("{}: {before} before, {after} now.\n", body.ledger),
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

/// Body of the document of `ledger backup --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BackupBody<'a> {
    /// Path of the ledger.
    ledger: String,
    /// Path of the copy.
    backup: &'a Path,
    /// Size of the copy.
    bytes: Bytes,
}

fn back_up(file: &Path, json: bool, context: &mut Context) -> Outcome {
    let path = context.ledger_path()?;
    let size = Ledger::back_up(&path, file).refused()?;
    let body = BackupBody {
        ledger: path.display().to_string(),
        backup: file,
        bytes: size,
    };
    let text = match json {
        true => ui::json::document("ledger backup", &body),
        false => format!(
            "Copied {} to {} ({size}). To use it: disksmith --ledger {} runs\n",
            body.ledger,
            file.display(),
            file.display()
        ),
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}
