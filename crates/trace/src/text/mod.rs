//! Lines of text and their fields, with the place of what is malformed.

mod fields;

pub(crate) use fields::{Field, Fields, Malformed};

use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};

use crate::decode::{Decode, Sink};
use crate::input::Input;
use crate::io::ReadError;

/// Bytes that a line may have.
const MAX_LINE_BYTES: usize = 64 << 10;

/// A format whose records are lines.
pub(crate) trait LineFormat: Send {
    /// Decodes a line into `sink`.
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), LineError>;

    /// Decodes what is left behind the last line.
    fn end(&mut self, _sink: &mut Sink) {}
}

/// Reason for which a line was not taken.
pub(crate) enum LineError {
    /// The line is malformed.
    Malformed(Malformed),
    /// The trace is not readable, regardless of the line's form.
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

/// Decoder of a format of lines.
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
        // Names in another encoding are kept as far as they can be read.
        let line = String::from_utf8_lossy(&self.line);
        match self.format.line(&line, sink) {
            Ok(()) => Ok(true),
            Err(LineError::Malformed(malformed)) => Err(self.at(malformed)),
            Err(LineError::Trace(error)) => Err(error),
        }
    }
}
