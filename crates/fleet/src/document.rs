//! JSON documents, as `--json` prints them: a frame with the form and the command, around a typed body.

use std::fmt;

use serde::Serialize;
use ui::json::SCHEMA;

/// A document. `{:#}` writes it indented, `{}` in one line; both end with a line's end.
#[derive(Debug, Serialize)]
pub(crate) struct Document<B> {
    schema: u32,
    /// Words of the command that answers.
    command: &'static str,
    #[serde(flatten)]
    body: B,
}

impl<B: Serialize> Document<B> {
    /// The answer of a command.
    pub(crate) fn of(command: &'static str, body: B) -> Document<B> {
        Document {
            schema: SCHEMA,
            command,
            body,
        }
    }
}

impl<B: Serialize> fmt::Display for Document<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match f.alternate() {
            true => serde_json::to_string_pretty(self),
            false => serde_json::to_string(self),
        };
        writeln!(f, "{}", text.map_err(|_| fmt::Error)?)
    }
}
