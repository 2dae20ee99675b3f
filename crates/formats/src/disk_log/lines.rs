//! Splits a stream into lines of bounded length, so that a log without line ends needs no more memory than any other.

use std::io::{self, BufRead};

/// Maximum length of a line; a longer one is returned in pieces. The widest report that sysstat prints has lines of
/// some 300 bytes.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// A line, or a piece of one that is too long.
#[derive(Debug)]
pub(crate) struct LinePiece<'a> {
    /// The number of the line, from 1.
    pub(crate) line: u64,
    /// Content, without the line end.
    pub(crate) bytes: &'a [u8],
    /// True if the line begins with this piece.
    pub(crate) begins: bool,
    /// True if the line ends with this piece: with a line end, or at the end of the stream.
    pub(crate) ends: bool,
    /// True if a line end follows. If none does, the stream may have been cut within a number.
    pub(crate) terminated: bool,
}

/// The lines of a stream.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    line: u64,
    begins: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Lines<R> {
        Lines {
            input,
            buffer: Vec::new(),
            line: 0,
            begins: true,
        }
    }

    /// The next piece; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<LinePiece<'_>>> {
        self.buffer.clear();
        let terminated = self.fill()?;
        if self.buffer.is_empty() && !terminated {
            return Ok(None);
        }
        let begins = self.begins;
        self.line += u64::from(begins);
        let ends = terminated || self.buffer.len() < MAX_LINE_BYTES;
        self.begins = ends;
        Ok(Some(LinePiece {
            line: self.line,
            bytes: self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer),
            begins,
            ends,
            terminated,
        }))
    }

    /// Fills the buffer up to and including a line end, to the maximum length, or to the end of the stream. Returns
    /// true if a line end was found.
    fn fill(&mut self) -> io::Result<bool> {
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let room = MAX_LINE_BYTES - self.buffer.len();
            let window = &available[..available.len().min(room)];
            let end = window.iter().position(|byte| *byte == b'\n');
            let length = end.unwrap_or(window.len());
            self.buffer.extend_from_slice(&window[..length]);
            let used = length + usize::from(end.is_some());
            let exhausted = available.is_empty() || self.buffer.len() == MAX_LINE_BYTES;
            self.input.consume(used);
            if end.is_some() {
                return Ok(true);
            }
            if exhausted {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &[u8]) -> Vec<(u64, usize, bool, bool, bool)> {
        let mut lines = Lines::new(std::io::BufReader::with_capacity(7, text));
        let mut pieces = Vec::new();
        while let Some(piece) = lines.next().unwrap() {
            pieces.push((
                piece.line,
                piece.bytes.len(),
                piece.begins,
                piece.ends,
                piece.terminated,
            ));
        }
        pieces
    }

    #[test]
    fn lines_are_numbered_and_lose_their_ends() {
        assert_eq!(
            cut(b"one\r\n\nthree, longer than the buffer"),
            [
                (1, 3, true, true, true),
                (2, 0, true, true, true),
                (3, 29, true, true, false)
            ]
        );
        assert!(cut(b"").is_empty());
        assert_eq!(cut(b"\n"), [(1, 0, true, true, true)]);
    }

    #[test]
    fn a_line_without_end_is_handed_out_in_pieces() {
        let mut text = vec![b'x'; 2 * MAX_LINE_BYTES + 5];
        text.extend_from_slice(b"\nlast\n");
        assert_eq!(
            cut(&text),
            [
                (1, MAX_LINE_BYTES, true, false, false),
                (1, MAX_LINE_BYTES, false, false, false),
                (1, 5, false, true, true),
                (2, 4, true, true, true)
            ]
        );
    }
}
