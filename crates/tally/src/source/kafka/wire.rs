//! Kafka's wire format: big-endian numbers, strings and arrays with their lengths before them.

use std::io;

use record::varint;

/// The error for an answer that breaks the protocol.
pub(super) fn protocol_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the broker's answer is not Kafka's protocol",
    )
}

/// Reader of the wire format, which consumes bytes from the front.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteReader<'a>(pub(super) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(super) fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(protocol_error)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(protocol_error)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn i8(&mut self) -> io::Result<i8> {
        self.array().map(i8::from_be_bytes)
    }

    pub(super) fn i16(&mut self) -> io::Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> io::Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> io::Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> io::Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A string, empty if it is null.
    pub(super) fn string(&mut self) -> io::Result<String> {
        let length = self.i16()?;
        let bytes = self.take(usize::try_from(length).unwrap_or(0))?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Bytes, empty if they are null.
    pub(super) fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let length = self.i32()?;
        self.take(usize::try_from(length).unwrap_or(0))
    }

    /// Elements of an array; empty if it is null.
    pub(super) fn elements<T>(
        &mut self,
        mut read: impl FnMut(&mut ByteReader<'a>) -> io::Result<T>,
    ) -> io::Result<Vec<T>> {
        let count = self.i32()?;
        // Each element takes at least one byte, so that a false length fails soon.
        (0..count.max(0)).map(|_| read(self)).collect()
    }

    /// A varint in zigzag encoding.
    pub(super) fn varint(&mut self) -> io::Result<i64> {
        varint::take(&mut self.0)
            .map(varint::unfolded)
            .ok_or_else(protocol_error)
    }

    /// Bytes with their length before them as a varint; `None` if they are null.
    pub(super) fn varbytes(&mut self) -> io::Result<Option<&'a [u8]>> {
        let length = self.varint()?;
        match usize::try_from(length) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// Appends a string.
pub(super) fn put_string(into: &mut Vec<u8>, text: &str) {
    into.extend_from_slice(&(text.len() as i16).to_be_bytes());
    into.extend_from_slice(text.as_bytes());
}

/// Appends an array's length.
pub(super) fn put_length(into: &mut Vec<u8>, length: usize) {
    into.extend_from_slice(&(length as i32).to_be_bytes());
}
