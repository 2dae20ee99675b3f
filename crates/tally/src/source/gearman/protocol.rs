//! Gearman's binary protocol, as far as a worker and a producer of background jobs need it.

use std::io::{self, Read, Write};

/// Kinds of packets, by their numbers in the protocol.
pub(crate) mod kind {
    pub(crate) const CAN_DO: u32 = 1;
    pub(crate) const PRE_SLEEP: u32 = 4;
    pub(crate) const NOOP: u32 = 6;
    pub(crate) const JOB_CREATED: u32 = 8;
    pub(crate) const NO_JOB: u32 = 10;
    pub(crate) const WORK_COMPLETE: u32 = 13;
    pub(crate) const SUBMIT_JOB_BG: u32 = 18;
    pub(crate) const ERROR: u32 = 19;
    pub(crate) const GRAB_JOB_UNIQ: u32 = 30;
    pub(crate) const JOB_ASSIGN_UNIQ: u32 = 31;
}

/// Length of a packet's header in bytes.
const HEAD: usize = 12;
/// Maximum bytes of a payload.
const MAX_PAYLOAD_BYTES: usize = 64 << 20;
/// Maximum bytes of one read.
const READ: usize = 256 << 10;

/// Appends a request.
pub(crate) fn request(into: &mut Vec<u8>, kind: u32, parts: &[&[u8]]) {
    let length: usize =
        parts.iter().map(|part| part.len()).sum::<usize>() + parts.len().saturating_sub(1);
    into.extend_from_slice(b"\0REQ");
    into.extend_from_slice(&kind.to_be_bytes());
    into.extend_from_slice(&(length as u32).to_be_bytes());
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            into.push(0);
        }
        into.extend_from_slice(part);
    }
}

/// A response of gearmand: its kind and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response<'a> {
    pub(crate) kind: u32,
    pub(crate) data: &'a [u8],
}

/// The first response in some bytes, and its length with its header; `None` if it is incomplete.
///
/// # Errors
/// Where the bytes are not a response of gearmand.
pub(crate) fn response(bytes: &[u8]) -> io::Result<Option<(Response<'_>, usize)>> {
    let Some((head, rest)) = bytes.split_at_checked(HEAD) else {
        return Ok(None);
    };
    let number =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = number(8) as usize;
    if !head.starts_with(b"\0RES") || length > MAX_PAYLOAD_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the answer is not gearmand's",
        ));
    }
    Ok(rest.get(..length).map(|data| {
        let kind = number(4);
        (Response { kind, data }, HEAD + length)
    }))
}

/// The first `N` parts of some data, the last of which has all the rest.
pub(crate) fn parts<const N: usize>(data: &[u8]) -> Option<[&[u8]; N]> {
    let mut parts = data.splitn(N, |byte| *byte == 0);
    let mut found = [&b""[..]; N];
    for place in &mut found {
        *place = parts.next()?;
    }
    Some(found)
}

/// A connection, with a buffer of the bytes that were received and not consumed.
#[derive(Debug)]
pub(crate) struct Stream<S> {
    stream: S,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
}

impl<S: Read + Write> Stream<S> {
    pub(crate) fn new(stream: S) -> Stream<S> {
        Stream {
            stream,
            buffer: Vec::new(),
            begin: 0,
            end: 0,
        }
    }

    pub(crate) fn get(&self) -> &S {
        &self.stream
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Length of the first response in the buffer; `None` if it is incomplete.
    pub(crate) fn buffered(&self) -> io::Result<Option<usize>> {
        response(&self.buffer[self.begin..self.end]).map(|found| found.map(|(_, length)| length))
    }

    /// Reads once.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        if self.begin > 0 {
            self.buffer.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
        }
        if self.buffer.len() < self.end + READ {
            self.buffer.resize(self.end + READ, 0);
        }
        match self.stream.read(&mut self.buffer[self.end..])? {
            0 => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "gearmand has closed the connection",
            )),
            count => {
                self.end += count;
                Ok(())
            }
        }
    }

    /// Waits for the next response.
    pub(crate) fn next(&mut self) -> io::Result<Response<'_>> {
        let length = loop {
            match self.buffered()? {
                Some(length) => break length,
                None => self.fill()?,
            }
        };
        let begin = self.begin;
        self.begin += length;
        let found = response(&self.buffer[begin..begin + length])?;
        // The loop found it complete.
        found
            .map(|(response, _)| response)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn packets_are_those_of_the_protocol() {
        let mut bytes = Vec::new();
        request(&mut bytes, kind::SUBMIT_JOB_BG, &[b"f", b"id", b"a\0b"]);
        assert_eq!(bytes, b"\0REQ\0\0\0\x12\0\0\0\x08f\0id\0a\0b");
        bytes[1..4].copy_from_slice(b"RES");
        let (found, length) = response(&bytes).unwrap().unwrap();
        assert_eq!((found.kind, length), (18, 20));
        assert_eq!(parts(found.data), Some([&b"f"[..], b"id", b"a\0b"]));
        assert_eq!(response(&bytes[..19]).unwrap(), None);
        assert!(response(b"HTTP/1.1 400").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = response(&bytes);
            let mut bytes = bytes;
            if bytes.len() > 4 {
                bytes[..4].copy_from_slice(b"\0RES");
            }
            let _ = response(&bytes);
        }
    }
}
