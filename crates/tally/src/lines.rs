//! A buffer that returns whole lines from data that is read in pieces.

use std::io;

/// The buffer.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Maximum bytes of one read.
    read: usize,
    /// Maximum bytes of a line. A longer line is returned in pieces, which are not events.
    longest: usize,
    buffer: Vec<u8>,
    /// End of the bytes that were read.
    filled: usize,
    /// End of the bytes that were returned last.
    given: usize,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines::of(256 << 10, 1 << 20)
    }
}

impl Lines {
    /// A buffer with these maximum bytes of one read and of a line.
    pub(crate) fn of(read: usize, longest: usize) -> Lines {
        Lines {
            read,
            longest,
            buffer: Vec::new(),
            filled: 0,
            given: 0,
        }
    }

    /// Reads once, and returns the number of bytes read.
    pub(crate) fn fill(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let room = self.filled + self.read;
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let count = read(&mut self.buffer[self.filled..room])?;
        self.filled += count;
        Ok(count)
    }

    /// The whole lines. They are given again until they are consumed.
    pub(crate) fn whole_lines(&mut self) -> &[u8] {
        let end = memchr::memrchr(b'\n', &self.buffer[..self.filled]);
        self.given = match end {
            Some(end) => end + 1,
            None if self.filled >= self.longest => self.filled,
            None => 0,
        };
        &self.buffer[..self.given]
    }

    /// All remaining bytes, even without a newline at the end.
    pub(crate) fn rest(&mut self) -> &[u8] {
        self.given = self.filled;
        &self.buffer[..self.given]
    }

    /// Removes the text that was returned last.
    pub(crate) fn consume(&mut self) {
        self.buffer.copy_within(self.given..self.filled, 0);
        self.filled -= self.given;
        self.given = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_come_whole_and_all_of_them(text in "[a\n]{0,60}", cuts in prop::collection::vec(1_usize..9, 60)) {
            let (mut lines, mut found, mut rest) = (Lines::default(), Vec::new(), text.as_bytes());
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                lines.fill(|room| {
                    room[..piece.len()].copy_from_slice(piece);
                    Ok(piece.len())
                }).unwrap();
                rest = behind;
                let whole = lines.whole_lines();
                prop_assert!(whole.is_empty() || whole.ends_with(b"\n"));
                found.extend_from_slice(whole);
                lines.consume();
            }
            found.extend_from_slice(lines.rest());
            prop_assert_eq!(found, text.as_bytes());
        }
    }
}
