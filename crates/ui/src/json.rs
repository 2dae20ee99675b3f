//! The documents that `--json` prints.

use serde::Serialize;

/// The version of the documents' form.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    command: &'a str,
    disksmith: &'a str,
    #[serde(flatten)]
    answer: T,
}

/// A document as text: the version of its form, the command, the version of disksmith, and the fields of the answer.
pub fn document(command: &str, answer: &impl Serialize) -> String {
    let document = Document {
        schema: SCHEMA,
        command,
        disksmith: env!("CARGO_PKG_VERSION"),
        answer,
    };
    let text = serde_json::to_string_pretty(&document);
    // Maps with keys that are no text, the one thing that JSON cannot hold, are in no document.
    text.map_or_else(
        |error| format!("{{\"error\": \"{error}\"}}\n"),
        |text| text + "\n",
    )
}
