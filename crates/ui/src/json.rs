//! The documents that `--json` prints: a frame with the form, the command and the version, around the fields of the
//! answer.

use std::fmt;

use serde::Serialize;

/// The version of the documents' form.
pub const SCHEMA: u32 = 1;

/// A document. `{:#}` writes it indented, `{}` in one line; both end with a line's end.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document<B> {
    schema: u32,
    command: &'static str,
    disksmith: &'static str,
    #[serde(flatten)]
    body: B,
}

/// The fields of a document of which a command prints several kinds.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kind<B> {
    kind: &'static str,
    #[serde(flatten)]
    body: B,
}

impl<B: Serialize> Document<Kind<B>> {
    /// The answer of a command, of a kind.
    pub fn of_kind(command: &'static str, kind: &'static str, body: B) -> Document<Kind<B>> {
        Document::of(command, Kind { kind, body })
    }
}

impl<B: Serialize> Document<B> {
    /// The answer of a command, by the command's words.
    pub fn of(command: &'static str, body: B) -> Document<B> {
        Document {
            schema: SCHEMA,
            command,
            disksmith: env!("CARGO_PKG_VERSION"),
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

/// A document as indented text.
pub fn document(command: &'static str, body: &impl Serialize) -> String {
    format!("{:#}", Document::of(command, body))
}
