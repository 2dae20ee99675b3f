//! A client: a thread that reads its requests, and a thread that answers them when they are due.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use record::Nanos;

use super::Exports;
use super::handshake::handshake;
use super::limits::{
    DeadlineStream, HANDSHAKE_TIMEOUT, Limits, SMALL_PAYLOAD_BYTES, read_payload, wait_for_request,
};
use super::stream::Stream;
use super::wire::{Meaning, Message, ProtocolError, reply_head};
use crate::disk::{DelayQueue, Disk, EIO, PendingReply, precise_timers};
use crate::model::RequestKind;

/// Maximum number of requests in flight, more than any client has: QEMU has 16, the kernel and fio some hundreds.
const MAX_IN_FLIGHT: usize = 1 << 13;

/// State that the two threads of a connection share.
#[derive(Default)]
struct ConnectionState {
    /// Number of requests that are not answered yet.
    in_flight: AtomicUsize,
    /// True if the client has announced that it disconnects: the connection ends with the last answer.
    leaving: AtomicBool,
}

/// Ends the connection, however the answering thread ends: a client must not wait for answers that are never sent.
struct HangUpGuard<'a> {
    stream: Stream,
    outbox: &'a DelayQueue<PendingReply>,
}

impl Drop for HangUpGuard<'_> {
    fn drop(&mut self) {
        // The other thread waits for requests; this also ends its wait.
        self.stream.shutdown();
        self.outbox.close();
    }
}

impl ConnectionState {
    /// Records that a request is finished; true if it was the last of a client that disconnects.
    fn done(&self) -> bool {
        let last = self.in_flight.fetch_sub(1, Ordering::SeqCst) == 1;
        last && self.leaving.load(Ordering::SeqCst)
    }
}

/// Serves a client until it disconnects, its connection fails, or it violates the protocol.
///
/// # Errors
/// The reason for the end, unless the client disconnected in order.
pub(crate) fn serve(
    mut stream: Stream,
    exports: &Exports,
    limits: &Limits,
) -> Result<(), ProtocolError> {
    stream.limit_writes(Some(HANDSHAKE_TIMEOUT))?;
    let mut greeted = DeadlineStream::new(&mut stream);
    greeted.within(Some(HANDSHAKE_TIMEOUT));
    let Some(disk) = handshake(&mut greeted, exports)? else {
        return Ok(());
    };
    stream.limit_reads(None)?;
    stream.limit_writes(None)?;
    let outbox = Arc::new(DelayQueue::new(disk.clock()));
    let between = Arc::new(ConnectionState::default());
    let answerer = {
        let (disk, outbox) = (Arc::clone(&disk), Arc::clone(&outbox));
        let (stream, between) = (stream.try_clone()?, Arc::clone(&between));
        std::thread::Builder::new()
            .name("lab-answers".into())
            .spawn(move || answer(stream, &disk, &outbox, &between))?
    };
    let ended = take_requests(&mut stream, &disk, &outbox, &between, limits);
    outbox.close();
    stream.shutdown();
    // A thread that panicked has reported it, and its client is gone.
    let _ = answerer.join();
    ended
}

/// Reads requests, and passes each to its volume.
fn take_requests(
    stream: &mut Stream,
    disk: &Arc<Disk>,
    outbox: &Arc<DelayQueue<PendingReply>>,
    between: &ConnectionState,
    limits: &Limits,
) -> Result<(), ProtocolError> {
    // Several small requests arrive in one read; large payloads bypass this buffer.
    let mut stream = io::BufReader::with_capacity(32 << 10, DeadlineStream::new(stream));
    let mut payload = Vec::new();
    loop {
        wait_for_request(&mut stream)?;
        let mut bytes = [0; Message::SIZE];
        stream.read_exact(&mut bytes)?;
        let message = Message::parse(&bytes)?;
        let _room = read_payload(&mut stream, &mut payload, message.payload()?, limits)?;
        if between.in_flight.fetch_add(1, Ordering::SeqCst) >= MAX_IN_FLIGHT {
            return Err(ProtocolError::TooMany);
        }
        let reply = |error, data| PendingReply {
            cookie: message.cookie,
            error,
            data,
            unflushed: None,
        };
        match message.meaning(disk.size().0) {
            Meaning::Leave => {
                between.leaving.store(true, Ordering::SeqCst);
                if !between.done() {
                    // Requests in flight are still answered (proto.md, `NBD_CMD_DISC`). This wait ends with the last
                    // answer, or when the client or the server ends the connection.
                    stream.get_mut().within(None);
                    io::copy(&mut stream, &mut io::sink())?;
                }
                return Ok(());
            }
            Meaning::Refuse(error) => outbox.push(Nanos(0), reply(error, None)),
            Meaning::Do { request, fua } => {
                let wants = request.kind == RequestKind::Read;
                let data = wants.then_some((message.offset, message.length));
                disk.submit(&request, fua, &payload, reply(0, data), outbox);
            }
        }
    }
}

/// Sends answers when they are due, until the queue is closed or the client has disconnected.
fn answer(
    stream: Stream,
    disk: &Disk,
    outbox: &DelayQueue<PendingReply>,
    between: &ConnectionState,
) {
    precise_timers();
    let mut message = Vec::new();
    let mut client = HangUpGuard { stream, outbox };
    while let Some(reply) = outbox.next() {
        // Before it is sent: a client that has received the answer may flush at once.
        if let Some(write) = reply.unflushed {
            disk.store().note_answered(write);
        }
        let sent = send(&mut client.stream, &mut message, disk, reply);
        if sent.is_err() || between.done() {
            return;
        }
    }
}

/// Sends the answer with its data, part by part through `message`.
///
/// # Errors
/// When the client has disconnected, or data cannot be read after a part was sent: the protocol's simple replies
/// contain the error code at their beginning, so the connection must be closed.
fn send(
    stream: &mut impl Write,
    message: &mut Vec<u8>,
    disk: &Disk,
    reply: PendingReply,
) -> io::Result<()> {
    const HEAD: usize = 16;
    let (mut offset, length) = match reply.data.filter(|_| reply.error == 0) {
        Some((offset, length)) => (offset, length as usize),
        None => return stream.write_all(&reply_head(reply.cookie, reply.error)),
    };
    let mut left = length.saturating_sub(SMALL_PAYLOAD_BYTES);
    message.resize(HEAD + length - left, 0);
    if disk.read(&mut message[HEAD..], offset).is_err() {
        return stream.write_all(&reply_head(reply.cookie, EIO));
    }
    message[..HEAD].copy_from_slice(&reply_head(reply.cookie, 0));
    stream.write_all(message)?;
    offset += (length - left) as u64;
    while left > 0 {
        let part = left.min(SMALL_PAYLOAD_BYTES);
        disk.read(&mut message[..part], offset)?;
        stream.write_all(&message[..part])?;
        left -= part;
        offset += part as u64;
    }
    Ok(())
}
