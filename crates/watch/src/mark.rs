//! The verb `mark`: named times, such as a deploy.

mod args;

use jiff::Timestamp;
use ledger::{Ledger, Mark};
use linux::machine;
use serde::Serialize;

pub use args::MarkArgs;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::format;

/// Maximum length of a mark's text, in characters, so that it fits beside a line in a graph.
const MAX_TEXT_CHARS: usize = 200;

/// Sets a mark, lists the marks, or removes one.
pub fn mark(args: &MarkArgs, context: &mut Context) -> Outcome {
    if let Some(number) = args.remove {
        context
            .open_ledger_or_empty()?
            .remove_mark(number)
            .refused()?;
        return answer(args, context, &Document::Removed(number), || {
            format!("Removed mark {number}.\n")
        });
    }
    let Some(text) = &args.text else {
        let marks = all(&context.open_ledger_or_empty()?)?;
        let listed = Document::Marks(marks.iter().map(MarkDocument::of).collect());
        return answer(args, context, &listed, || list(&marks));
    };
    let text = text.trim();
    let is_broken = text.chars().any(char::is_control);
    if text.is_empty() || is_broken || text.chars().count() > MAX_TEXT_CHARS {
        return Err(Failure::refused(format!(
            "a mark is a name of 1 to {MAX_TEXT_CHARS} characters on one line, such as \"deploy 1.4.2\""
        )));
    }
    let at = args.at.map_or_else(Timestamp::now, |when| when.at);
    let host = machine::hostname(&context.root);
    let mark = context.open_ledger()?.mark(at, &host, text).refused()?;
    let set = Document::Mark(MarkDocument::of(&mark));
    answer(args, context, &set, || {
        format!(
            "Marked {} as \"{}\" (mark {}).\n",
            format::local_date(at),
            text,
            mark.number
        )
    })
}

fn all(ledger: &Ledger) -> Result<Vec<Mark>, Failure> {
    ledger.marks(Timestamp::MIN, Timestamp::MAX).midway()
}

fn answer(
    args: &MarkArgs,
    context: &mut Context,
    document: &Document,
    text: impl FnOnce() -> String,
) -> Outcome {
    let text = if args.json {
        ui::json::document("mark", document)
    } else {
        text()
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

fn list(marks: &[Mark]) -> String {
    if marks.is_empty() {
        return "No marks are set; disksmith mark \"deploy 1.4.2\" sets one.\n".to_owned();
    }
    let line = |mark: &Mark| {
        let (number, host) = (mark.number, &mark.host);
        format!(
            "{number:>4}  {}  {host}  {}\n",
            format::local_date(mark.at),
            mark.text
        )
    };
    marks.iter().map(line).collect()
}

/// A mark: a named moment.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MarkDocument<'a> {
    /// Number of the mark in the ledger.
    id: i64,
    /// Time of the mark.
    time: Timestamp,
    /// Host on which it was set.
    hostname: &'a str,
    /// Name of the mark.
    text: &'a str,
}

impl<'a> MarkDocument<'a> {
    pub(crate) fn of(mark: &'a Mark) -> MarkDocument<'a> {
        MarkDocument {
            id: mark.number,
            time: mark.at,
            hostname: &mark.host,
            text: &mark.text,
        }
    }
}

/// The document of `mark --json`, by what was requested.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Document<'a> {
    /// The mark that was set.
    Mark(MarkDocument<'a>),
    /// The marks of the ledger.
    Marks(Vec<MarkDocument<'a>>),
    /// Number of the mark that was removed.
    Removed(i64),
}

/// Type of the document of `mark`, for its schema.
#[cfg(feature = "schema")]
pub(crate) fn document_type() -> ui::schema::DocumentType {
    ui::schema::DocumentType::of::<Document>("mark")
}
