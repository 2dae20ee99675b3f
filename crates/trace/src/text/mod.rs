//! Reads lines of text and their fields; errors name line and column.

mod fields;

pub(crate) use fields::{Field, Fields, Malformed};

use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};

use crate::decode::{Decode, Sink};
use crate::input::Input;
use crate::io::ReadError;

/// Maximum bytes of a line.
const MAX_LINE_BYTES: usize = 64 << 10;

/// A format whose records are lines.
pub(crate) trait LineFormat: Send {
    /// Decodes a line into `sink`.
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), LineError>;

    /// Handles the end of the file.
    fn end(&mut self, _sink: &mut Sink) {}
}

/// Reason why a line was not decoded.
pub(crate) enum LineError {
    /// The line is malformed.
    Malformed(Malformed),
    /// The trace cannot be read, although the line is well-formed.
    Trace(ReadError),
}

impl From<Malformed> for LineError {
    fn from(malformed: Malformed) -> LineError {
        LineError::Malformed(malformed)
    }
}

impl From<ReadError> for LineError {
    fn from(error: ReadError) -> LineError {
        LineError::Trace(error)
    }
}

/// Decoder of a text format.
pub(crate) struct TextDecoder<F> {
    format: F,
    input: Input,
    path: PathBuf,
    number: u64,
    line: Vec<u8>,
}

impl<F> TextDecoder<F> {
    pub(crate) fn new(format: F, input: Input, path: &Path) -> TextDecoder<F> {
        TextDecoder {
            format,
            input,
            path: path.to_path_buf(),
            number: 0,
            line: Vec::new(),
        }
    }

    /// Reads the next line; false at the end.
    fn next_line(&mut self) -> Result<bool, ReadError> {
        self.line.clear();
        let mut limited = self.input.by_ref().take(MAX_LINE_BYTES as u64 + 1);
        limited
            .read_until(b'\n', &mut self.line)
            .map_err(|source| ReadError::Io {
                path: self.path.clone(),
                source,
            })?;
        if self.line.is_empty() {
            return Ok(false);
        }
        self.number += 1;
        while self.line.last().is_some_and(|c| matches!(c, b'\n' | b'\r')) {
            self.line.pop();
        }
        match self.line.len() > MAX_LINE_BYTES {
            true => Err(self.at(Malformed::new(MAX_LINE_BYTES, "the end of the line"))),
            false => Ok(true),
        }
    }

    fn at(&self, malformed: Malformed) -> ReadError {
        ReadError::Text {
            path: self.path.clone(),
            line: self.number,
            column: malformed.column,
            expected: malformed.expected,
        }
    }
}

impl<F: LineFormat> Decode for TextDecoder<F> {
    fn decode(&mut self, sink: &mut Sink) -> Result<bool, ReadError> {
        if !self.next_line()? {
            self.format.end(sink);
            return Ok(false);
        }
        // Names may have another encoding; invalid UTF-8 is replaced.
        let line = String::from_utf8_lossy(&self.line);
        match self.format.line(&line, sink) {
            Ok(()) => Ok(true),
            Err(LineError::Malformed(malformed)) => Err(self.at(malformed)),
            Err(LineError::Trace(error)) => Err(error),
        }
    }
}
