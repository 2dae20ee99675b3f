//! The documents that `--json` prints: a header with the version of the form, the command and the version of disksmith,
//! and the fields of the answer.

use std::fmt;

use serde::Serialize;

/// Version of the form of all documents.
pub const SCHEMA: u32 = 1;

/// A document: a header, and the fields of the answer.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document<B> {
    /// Version of the form of all documents.
    schema: u32,
    /// The command that printed the document, without its options.
    command: &'static str,
    /// Version of disksmith that printed the document.
    disksmith: &'static str,
    #[serde(flatten)]
    body: B,
}

/// The fields of a document of a command that prints several kinds.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kind<B> {
    /// Kind of the document, of a command that prints several kinds.
    kind: &'static str,
    #[serde(flatten)]
    body: B,
}

impl<B: Serialize> Document<Kind<B>> {
    /// Document of a kind, by the command's words.
    pub fn of_kind(command: &'static str, kind: &'static str, body: B) -> Document<Kind<B>> {
        Document::of(command, Kind { kind, body })
    }
}

impl<B: Serialize> Document<B> {
    /// Document of a command that prints one kind, by the command's words.
    pub fn of(command: &'static str, body: B) -> Document<B> {
        Document {
            schema: SCHEMA,
            command,
            disksmith: env!("CARGO_PKG_VERSION"),
            body,
        }
    }
}

/// `{:#}` writes the document indented, `{}` on one line; both end with a newline.
impl<B: Serialize> fmt::Display for Document<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match f.alternate() {
            true => serde_json::to_string_pretty(self),
            false => serde_json::to_string(self),
        };
        writeln!(f, "{}", text.map_err(|_| fmt::Error)?)
    }
}

/// Text of a document, indented.
pub fn document(command: &'static str, body: &impl Serialize) -> String {
    format!("{:#}", Document::of(command, body))
}
