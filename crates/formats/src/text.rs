//! Decodes text of other programs: UTF-8, or UTF-16 as Windows PowerShell's `>` writes it.

use std::io::{self, Read};

/// Number of bytes by which the encoding is recognized: a byte order mark, or two ASCII characters in UTF-16.
const HEAD: usize = 4;
/// Bytes taken from the source at a time.
const CHUNK: usize = 64 << 10;

/// Encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// UTF-8, or any other superset of ASCII. Passed on unchanged.
    Bytes,
    Utf16(ByteOrder),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl Encoding {
    /// Encoding of a text that begins with `head`, and length of its byte order mark. Without a mark, UTF-16 is
    /// recognized by two ASCII characters at its beginning, since single-byte text has no zero bytes.
    fn of(head: &[u8]) -> (Encoding, usize) {
        match head {
            [0xEF, 0xBB, 0xBF, ..] => (Encoding::Bytes, 3),
            [0xFF, 0xFE, ..] => (Encoding::Utf16(ByteOrder::Little), 2),
            [0xFE, 0xFF, ..] => (Encoding::Utf16(ByteOrder::Big), 2),
            [1..=0x7F, 0, 1..=0x7F, 0] => (Encoding::Utf16(ByteOrder::Little), 0),
            [0, 1..=0x7F, 0, 1..=0x7F] => (Encoding::Utf16(ByteOrder::Big), 0),
            _ => (Encoding::Bytes, 0),
        }
    }
}

/// Reader that converts UTF-8 or UTF-16 to UTF-8 without a byte order mark. Every text file that a user names is read
/// through it. Invalid UTF-8 passes unchanged; unpaired surrogates in UTF-16 become U+FFFD.
#[derive(Debug)]
pub struct Utf8<R> {
    source: R,
    /// `None` until the head was read.
    encoding: Option<Encoding>,
    /// Bytes read from the source and not yet decoded.
    raw: Vec<u8>,
    /// A high surrogate whose low surrogate has not been read yet.
    high: Option<u16>,
    /// Decoded bytes; those up to `taken` were returned.
    ready: Vec<u8>,
    taken: usize,
    at_end: bool,
}

impl<R: Read> Utf8<R> {
    /// A reader of `source`; reads nothing yet.
    pub fn new(source: R) -> Utf8<R> {
        Utf8 {
            source,
            encoding: None,
            raw: Vec::new(),
            high: None,
            ready: Vec::new(),
            taken: 0,
            at_end: false,
        }
    }

    /// Reads up to `most` further bytes from the source.
    fn fill(&mut self, most: usize) -> io::Result<()> {
        let begin = self.raw.len();
        self.raw.resize(begin + most, 0);
        let read = self.source.read(&mut self.raw[begin..]);
        self.raw.truncate(begin + *read.as_ref().unwrap_or(&0));
        self.at_end = read? == 0;
        Ok(())
    }

    /// The encoding; reads as much as is needed to recognize it.
    fn encoding(&mut self) -> io::Result<Encoding> {
        if let Some(encoding) = self.encoding {
            return Ok(encoding);
        }
        while self.raw.len() < HEAD && !self.at_end {
            self.fill(HEAD - self.raw.len())?;
        }
        let (encoding, mark) = Encoding::of(&self.raw);
        self.raw.drain(..mark);
        self.encoding = Some(encoding);
        Ok(encoding)
    }

    /// Decodes all complete code units that were read; at the end of the source, also an incomplete one.
    fn decode(&mut self, order: ByteOrder) {
        let (units, rest) = self.raw.as_chunks::<2>();
        let units = units.iter().map(|unit| match order {
            ByteOrder::Little => u16::from_le_bytes(*unit),
            ByteOrder::Big => u16::from_be_bytes(*unit),
        });
        let units = self.high.take().into_iter().chain(units);
        let mut last = None;
        for decoded in char::decode_utf16(units) {
            let mut push = |character: char| {
                let mut bytes = [0; 4];
                self.ready
                    .extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
            };
            if last.take().is_some() {
                push(char::REPLACEMENT_CHARACTER);
            }
            match decoded {
                Ok(character) => push(character),
                Err(unpaired) => last = Some(unpaired.unpaired_surrogate()),
            }
        }
        // The last unit may be a high surrogate, whose low surrogate is in the next chunk.
        self.high = last;
        let cut = !rest.is_empty();
        self.raw.drain(..self.raw.len() - rest.len());
        if self.at_end && (self.high.take().is_some() || cut) {
            self.raw.clear();
            self.ready.extend_from_slice("\u{FFFD}".as_bytes());
        }
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let encoding = self.encoding()?;
        while self.taken == self.ready.len() {
            match encoding {
                // Once the bytes read to recognize the encoding are returned, reads go directly to the source.
                Encoding::Bytes if self.raw.is_empty() => return self.source.read(buffer),
                Encoding::Bytes => self.ready = std::mem::take(&mut self.raw),
                Encoding::Utf16(order) => {
                    self.ready.clear();
                    if self.at_end {
                        self.taken = 0;
                        return Ok(0);
                    }
                    self.fill(CHUNK)?;
                    self.decode(order);
                }
            }
            self.taken = 0;
        }
        let length = buffer.len().min(self.ready.len() - self.taken);
        buffer[..length].copy_from_slice(&self.ready[self.taken..self.taken + length]);
        self.taken += length;
        Ok(length)
    }
}

/// A whole text as a string (see [`Utf8`]). Invalid UTF-8 becomes U+FFFD.
pub fn lossy(bytes: Vec<u8>) -> String {
    let bytes = utf8(bytes);
    // Valid UTF-8 is not copied.
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A whole text as [`Utf8`] reads it.
pub fn utf8(bytes: Vec<u8>) -> Vec<u8> {
    if Encoding::of(&bytes[..bytes.len().min(HEAD)]) == (Encoding::Bytes, 0) {
        return bytes;
    }
    let mut text = Vec::with_capacity(bytes.len());
    // Reading from memory does not fail.
    let _ = Utf8::new(bytes.as_slice()).read_to_end(&mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn utf16(text: &str, order: ByteOrder) -> Vec<u8> {
        let unit = |unit: u16| match order {
            ByteOrder::Little => unit.to_le_bytes(),
            ByteOrder::Big => unit.to_be_bytes(),
        };
        text.encode_utf16().flat_map(unit).collect()
    }

    /// A reader that returns one byte at a time, as a slow pipe does.
    struct SlowReader<'a>(&'a [u8]);

    impl Read for SlowReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    fn dribbled(bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        Utf8::new(SlowReader(bytes)).read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn a_text_is_the_same_in_every_encoding() {
        for text in ["", "a", "ab", "abc", "Linux 5.4 ±3 µs 😀\r\n", "😀"] {
            let mut forms = vec![
                text.as_bytes().to_vec(),
                [b"\xEF\xBB\xBF", text.as_bytes()].concat(),
                utf16(&format!("\u{FEFF}{text}"), ByteOrder::Little),
                utf16(&format!("\u{FEFF}{text}"), ByteOrder::Big),
            ];
            if text.len() > 2 && text.starts_with(|first: char| first.is_ascii()) {
                forms.push(utf16(text, ByteOrder::Little));
                forms.push(utf16(text, ByteOrder::Big));
            }
            for form in forms {
                assert_eq!(dribbled(&form), text.as_bytes(), "{form:x?}");
                assert_eq!(lossy(form), text);
            }
        }
    }

    #[test]
    fn halves_of_characters_are_replaced_and_nothing_else_is_lost() {
        for (units, text) in [
            (&[0xFEFF, 0xD83D, 0x61][..], "\u{FFFD}a"),
            (&[0xFEFF, 0x61, 0xDE00, 0x62], "a\u{FFFD}b"),
            (&[0xFEFF, 0xD83D, 0xD83D, 0xDE00], "\u{FFFD}😀"),
            (&[0xFEFF, 0x61, 0xD83D], "a\u{FFFD}"),
            (&[0xFEFF, 0xD83D, 0xD83D], "\u{FFFD}\u{FFFD}"),
        ] {
            let bytes: Vec<u8> = units
                .iter()
                .flat_map(|unit: &u16| unit.to_le_bytes())
                .collect();
            assert_eq!(String::from_utf8(dribbled(&bytes)).unwrap(), text);
            assert_eq!(lossy(bytes), text);
        }
        assert_eq!(lossy(b"\xFF\xFEa\0b".to_vec()), "a\u{FFFD}");
    }

    #[test]
    fn other_bytes_pass_as_they_are() {
        for bytes in [&b"\xE9t\xE9"[..], b"\0\0\0\0ab", b"a\0", b"\x1f\x8b\x08\0"] {
            assert_eq!(dribbled(bytes), bytes);
            assert_eq!(utf8(bytes.to_vec()), bytes);
        }
    }

    proptest! {
        #[test]
        fn text_in_utf_16_comes_back(text in ".{0,200}") {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let bytes = utf16(&format!("\u{FEFF}{text}"), order);
                prop_assert_eq!(&lossy(bytes), &text);
            }
        }

        #[test]
        fn bytes_may_come_in_any_pieces(bytes: Vec<u8>) {
            prop_assert_eq!(dribbled(&bytes), utf8(bytes));
        }
    }
}
