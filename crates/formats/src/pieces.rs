//! Splits a text into documents, by the way that they begin.

use record::Summary;
use serde_json::{Deserializer, Value};

use crate::{ReadError, bonnie, fio, sysbench};

/// A document of a text.
#[derive(Debug)]
pub(crate) enum DocumentPiece<'a> {
    /// A JSON document of fio. It is converted at once, so that only one JSON tree is in memory at a time.
    Fio(Box<Summary>),
    /// The output of one run of sysbench, up to the start of the next document.
    Sysbench {
        /// Number of its first line, from 1.
        line: usize,
        /// Text of the output.
        text: &'a str,
    },
    /// A line of Bonnie++'s CSV.
    Bonnie {
        /// Number of the line, from 1.
        line: usize,
        /// The line.
        text: &'a str,
    },
}

/// The documents of `text`, in their order.
pub(crate) fn pieces(text: &str) -> Result<Vec<DocumentPiece<'_>>, ReadError> {
    let mut cutter = DocumentSplitter {
        text,
        pieces: Vec::new(),
        sysbench: None,
        last_fio: text.rfind(fio::read::VERSION_KEY).unwrap_or(0),
    };
    let (mut at, mut line) = (0, 1);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let end = match cutter.json(at, line)? {
            Some(end) => end,
            None => {
                let end = rest.find('\n').map_or(text.len(), |length| at + length + 1);
                cutter.line(at, end, line);
                end
            }
        };
        line += text[at..end].matches('\n').count();
        at = end;
    }
    cutter.end_sysbench(text.len());
    Ok(cutter.pieces)
}

/// Splits a text into documents.
struct DocumentSplitter<'a> {
    text: &'a str,
    pieces: Vec<DocumentPiece<'a>>,
    /// Start of the current sysbench output: offset and line.
    sysbench: Option<(usize, usize)>,
    /// Last offset at which fio's version is named: no JSON document of fio begins after it.
    last_fio: usize,
}

impl DocumentSplitter<'_> {
    /// Reads the JSON document that begins at `at`, and returns its end; `None` if there is no document: a brace in a
    /// message is not an error.
    fn json(&mut self, at: usize, line: usize) -> Result<Option<usize>, ReadError> {
        let rest = &self.text[at..];
        if at >= self.last_fio || !rest.trim_start_matches([' ', '\t']).starts_with('{') {
            return Ok(None);
        }
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(document)) => {
                let end = at + values.byte_offset();
                if fio::read::is_fio(&document) {
                    self.end_sysbench(at);
                    let summary = fio::read::summary(line, &document)?;
                    self.pieces.push(DocumentPiece::Fio(Box::new(summary)));
                }
                Ok(Some(end))
            }
            Some(Err(error)) if fio::read::begins_like_fio(rest) => Err(ReadError::at(
                line + error.line().saturating_sub(1),
                format!(
                    "the JSON of fio that begins at line {line} is damaged or cut short ({error})"
                ),
            )),
            _ => Ok(None),
        }
    }

    /// Processes one line.
    fn line(&mut self, at: usize, end: usize, line: usize) {
        let text = self.text[at..end].trim_end();
        if bonnie::read::is_result(text) {
            self.end_sysbench(at);
            self.pieces.push(DocumentPiece::Bonnie { line, text });
        } else if sysbench::read::is_heading(text) {
            self.end_sysbench(at);
            self.sysbench = Some((at, line));
        } else if self.sysbench.is_none() && sysbench::read::begins_headless(text) {
            self.sysbench = Some((at, line));
        }
    }

    fn end_sysbench(&mut self, end: usize) {
        if let Some((at, line)) = self.sysbench.take() {
            let text = &self.text[at..end];
            self.pieces.push(DocumentPiece::Sysbench { line, text });
        }
    }
}
