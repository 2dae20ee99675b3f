//! The verb `mark`: a moment with a name.

mod args;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ledger::{Ledger, Mark};
use linux::machine;
use serde_json::{Value, json};

pub use args::MarkArgs;
use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Failure, Outcome};
use ui::json::SCHEMA;

/// The longest text of a mark, in characters: it is to fit beside a line in a graph.
const LONGEST: usize = 200;

/// Sets a mark, lists them, or removes one.
pub fn mark(args: &MarkArgs, context: &mut Context) -> Outcome {
    if let Some(number) = args.remove {
        context.open_ledger()?.remove_mark(number).refused()?;
        let removed = || json!({ "removed": number });
        return answer(args, context, removed, || {
            format!("Removed mark {number}.\n")
        });
    }
    let Some(text) = &args.text else {
        let marks = context
            .open_ledger_if_there()?
            .map_or(Ok(Vec::new()), |ledger| all(&ledger))?;
        let listed = || json!({ "marks": marks.iter().map(value).collect::<Vec<_>>() });
        return answer(args, context, listed, || list(&marks));
    };
    let text = text.trim();
    let is_broken = text.chars().any(char::is_control);
    if text.is_empty() || is_broken || text.chars().count() > LONGEST {
        return Err(Failure::refused(format!(
            "a mark is a name of 1 to {LONGEST} characters on one line, such as \"deploy 1.4.2\""
        )));
    }
    let at = args.at.map_or_else(Timestamp::now, |when| when.at);
    let host = machine::hostname(&context.root);
    let mark = context.open_ledger()?.mark(at, &host, text).refused()?;
    let set = || json!({ "mark": value(&mark) });
    answer(args, context, set, || {
        format!(
            "Marked {} as \"{}\" (mark {}).\n",
            local(at),
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
    document: impl FnOnce() -> Value,
    text: impl FnOnce() -> String,
) -> Outcome {
    let text = if args.json {
        let mut document = document();
        document["schema"] = SCHEMA.into();
        document["command"] = "mark".into();
        format!("{document:#}\n")
    } else {
        text()
    };
    context.print(&text)?;
    Ok(Answer::Done)
}

fn list(marks: &[Mark]) -> String {
    if marks.is_empty() {
        return "No marks are set; disksmith mark \"deploy 1.4.2\" sets one.\n".to_owned();
    }
    let line = |mark: &Mark| {
        let (number, host) = (mark.number, &mark.host);
        format!("{number:>4}  {}  {host}  {}\n", local(mark.at), mark.text)
    };
    marks.iter().map(line).collect()
}

fn local(at: Timestamp) -> String {
    let local = at.to_zoned(TimeZone::system());
    local.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn value(mark: &Mark) -> Value {
    json!({
        "id": mark.number,
        "time": mark.at,
        "hostname": mark.host,
        "text": mark.text,
    })
}
