//! Limits on the connections, time and memory that all clients together can use.
//!
//! A connection uses two threads and at most [`SMALL_PAYLOAD_BYTES`] bytes for a payload, and as many for an answer.
//! Only [`MAX_LARGE_PAYLOADS`] larger payloads are held at a time, each only as far as it has arrived: a client that
//! announces much and sends little uses little memory. The total is less than 600 MiB for any number of clients.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::stream::Stream;

/// Maximum number of clients of a server at a time: several for each volume of a machine.
pub(crate) const MAX_CLIENTS: usize = 1024;
/// Time limit for a client to choose a volume.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for the rest of a request after its first byte. There is no limit between requests: a volume may be idle
/// for days.
pub(super) const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of bytes that every connection may use for a payload, and for an answer.
pub(super) const SMALL_PAYLOAD_BYTES: usize = 128 << 10;
/// Number of payloads above [`SMALL_PAYLOAD_BYTES`] that are held at a time; each is at most 32 MiB.
const MAX_LARGE_PAYLOADS: usize = 8;

/// The limits of a server, shared by its clients.
#[derive(Debug)]
pub(crate) struct Limits {
    inside: Mutex<LimitsLeft>,
    freed: Condvar,
}

#[derive(Debug)]
struct LimitsLeft {
    clients: usize,
    large: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            inside: Mutex::new(LimitsLeft {
                clients: MAX_CLIENTS,
                large: MAX_LARGE_PAYLOADS,
            }),
            freed: Condvar::new(),
        }
    }
}

impl Limits {
    fn left(&self) -> MutexGuard<'_, LimitsLeft> {
        // Two numbers, each changed by a single statement.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts one more client until [`Limits::leave`]; false if there is no room for it.
    pub(crate) fn admit(&self) -> bool {
        let mut left = self.left();
        let is_free = left.clients > 0;
        left.clients -= usize::from(is_free);
        is_free
    }

    /// Releases the room of a client.
    pub(crate) fn leave(&self) {
        self.left().clients += 1;
    }

    /// Waits for room for a large payload. Its holder waits only for its own client, and for a limited time, so that
    /// the wait ends.
    pub(super) fn large(&self) -> PayloadPermit<'_> {
        let mut left = self.left();
        while left.large == 0 {
            left = self
                .freed
                .wait(left)
                .unwrap_or_else(PoisonError::into_inner);
        }
        left.large -= 1;
        PayloadPermit(self)
    }
}

/// Room for a large payload, until this is dropped.
pub(super) struct PayloadPermit<'a>(&'a Limits);

impl Drop for PayloadPermit<'_> {
    fn drop(&mut self) {
        self.0.left().large += 1;
        self.0.freed.notify_one();
    }
}

/// A stream whose reads end at a deadline, if there is one.
pub(super) struct DeadlineStream<'a> {
    stream: &'a mut Stream,
    until: Option<Instant>,
    is_limited: bool,
}

impl<'a> DeadlineStream<'a> {
    pub(super) fn new(stream: &'a mut Stream) -> DeadlineStream<'a> {
        DeadlineStream {
            stream,
            until: None,
            is_limited: false,
        }
    }

    pub(super) fn within(&mut self, time: Option<Duration>) {
        self.until = time.map(|time| Instant::now() + time);
    }

    /// Sets the socket's own limit to the remaining time. Most requests arrive completely, and never need it.
    fn limit(&mut self) -> io::Result<()> {
        match self.until {
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                self.stream.limit_reads(Some(left))?;
            }
            None if self.is_limited => self.stream.limit_reads(None)?,
            None => {}
        }
        self.is_limited = self.until.is_some();
        Ok(())
    }
}

impl Read for DeadlineStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.read(buffer)
    }
}

impl io::Write for DeadlineStream<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.stream.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Waits without a limit until a request begins to arrive; its time limit starts then.
pub(super) fn wait_for_request(stream: &mut BufReader<DeadlineStream<'_>>) -> io::Result<()> {
    if stream.buffer().is_empty() {
        stream.get_mut().within(None);
        if stream.fill_buf()?.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    stream.get_mut().within(Some(MESSAGE_TIMEOUT));
    Ok(())
}

/// Reads a payload of this length as it arrives. The room that is returned with it is kept until the payload is used.
pub(super) fn read_payload<'a>(
    stream: &mut impl Read,
    payload: &mut Vec<u8>,
    length: usize,
    limits: &'a Limits,
) -> io::Result<Option<PayloadPermit<'a>>> {
    payload.clear();
    payload.shrink_to(SMALL_PAYLOAD_BYTES);
    read_more(stream, payload, length.min(SMALL_PAYLOAD_BYTES))?;
    if length <= SMALL_PAYLOAD_BYTES {
        return Ok(None);
    }
    let room = limits.large();
    read_more(stream, payload, length - SMALL_PAYLOAD_BYTES)?;
    Ok(Some(room))
}

fn read_more(stream: &mut impl Read, payload: &mut Vec<u8>, bytes: usize) -> io::Result<()> {
    // Only received bytes are written to, so that the rest does not occupy memory yet.
    payload.reserve_exact(bytes);
    let read = stream.take(bytes as u64).read_to_end(payload)?;
    if read < bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_let_in_until_there_is_no_room_and_again_when_one_has_left() {
        let limits = Limits::default();
        assert!((0..MAX_CLIENTS).all(|_| limits.admit()));
        assert!(!limits.admit());
        limits.leave();
        assert!(limits.admit() && !limits.admit());
    }

    #[test]
    fn a_large_payload_waits_for_room_and_a_small_one_never_does() {
        let limits = Limits::default();
        let held: Vec<PayloadPermit<'_>> =
            (0..MAX_LARGE_PAYLOADS).map(|_| limits.large()).collect();
        let mut payload = Vec::new();
        let small = vec![1; SMALL_PAYLOAD_BYTES];
        let room =
            read_payload(&mut &small[..], &mut payload, SMALL_PAYLOAD_BYTES, &limits).unwrap();
        assert!(room.is_none() && payload == small);
        std::thread::scope(|scope| {
            let limits = &limits;
            let waits = scope.spawn(move || {
                let large = vec![2; SMALL_PAYLOAD_BYTES + 1];
                let mut payload = Vec::new();
                let room = read_payload(&mut &large[..], &mut payload, large.len(), limits);
                assert!(room.unwrap().is_some() && payload == large);
            });
            assert_eq!(limits.left().large, 0);
            drop(held);
            waits.join().unwrap();
        });
        assert_eq!(limits.left().large, MAX_LARGE_PAYLOADS);
    }

    #[test]
    fn a_payload_that_ends_early_is_an_error_and_its_room_is_given_back() {
        let limits = Limits::default();
        for length in [2, SMALL_PAYLOAD_BYTES + 2, SMALL_PAYLOAD_BYTES * 3] {
            let short = vec![1; length - 1];
            let read = read_payload(&mut &short[..], &mut Vec::new(), length, &limits);
            assert!(read.is_err());
        }
        assert_eq!(limits.left().large, MAX_LARGE_PAYLOADS);
    }
}
