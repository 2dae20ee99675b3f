//! A served volume: its model, its data, and their common clock.

mod delay;
mod requests;
mod shared_fair_queue;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use record::{Bytes, Nanos};

use crate::model::{Admission, Request, RequestKind, Volume};
use crate::spec::Span;
use crate::store::{Unflushed, VolumeData};

pub(crate) use delay::{Clock, DelayQueue, precise_timers};
pub(crate) use requests::RequestLog;
pub(crate) use shared_fair_queue::SharedFairQueue;

/// Error of a request that fails.
pub(crate) const EIO: u32 = 5;
/// Error where there is no room, or the end is passed.
pub(crate) const ENOSPC: u32 = 28;

/// An answer that is due later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingReply {
    /// The client's number of the request.
    pub(crate) cookie: [u8; 8],
    /// The protocol's error; 0 for success.
    pub(crate) error: u32,
    /// Offset and length of the data in the answer.
    pub(crate) data: Option<(u64, u32)>,
    /// The answered write, if it is not yet durable.
    pub(crate) unflushed: Option<Unflushed>,
}

/// One volume.
pub(crate) struct Disk {
    serial: String,
    size: Bytes,
    clock: Clock,
    model: Mutex<Volume>,
    store: VolumeData,
    /// Limit of the instance over all its volumes, and this volume's number there.
    fair_queue: Option<(Arc<SharedFairQueue>, usize)>,
    log: Option<Arc<RequestLog>>,
}

/// A request that has left its volume's queue and waits for the instance.
pub(crate) struct PendingRequest {
    disk: Arc<Disk>,
    admission: Admission,
    reply: PendingReply,
    outbox: Arc<DelayQueue<PendingReply>>,
}

impl Disk {
    pub(crate) fn new(
        serial: String,
        clock: Clock,
        model: Volume,
        store: VolumeData,
        fair_queue: Option<(Arc<SharedFairQueue>, usize)>,
        log: Option<Arc<RequestLog>>,
    ) -> Disk {
        Disk {
            serial,
            size: model.spec().size,
            clock,
            model: Mutex::new(model),
            store,
            fair_queue,
            log,
        }
    }

    pub(crate) fn serial(&self) -> &str {
        &self.serial
    }

    pub(crate) fn size(&self) -> Bytes {
        self.size
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) fn store(&self) -> &VolumeData {
        &self.store
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Volume> {
        // The model is consistent between any two statements: at worst a request is not counted.
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a request, and queues its answer for the time when it is due.
    ///
    /// Data is written now, before the write is due. That cannot be observed, as a read that arrives in
    /// between may see either version. So a flush covers all writes that were answered when it arrived, and a write
    /// with forced unit access (`fua`) is durable before its answer.
    pub(crate) fn submit(
        self: &Arc<Disk>,
        request: &Request,
        fua: bool,
        payload: &[u8],
        mut reply: PendingReply,
        outbox: &Arc<DelayQueue<PendingReply>>,
    ) {
        let (admission, due, elapsed) = self.admit(request);
        if let Some(log) = &self.log {
            log.note(self.clock.now(), &self.serial, request, fua);
        }
        let done = match admission.failed {
            true => Err(EIO),
            false => self.apply(request, payload, elapsed),
        };
        match done {
            Ok(Some(write)) if fua => self.store.persist(write),
            Ok(unflushed) => reply.unflushed = unflushed,
            Err(error) => reply.error = error,
        }
        match &self.fair_queue {
            None => outbox.push(due, reply),
            Some((fair_queue, number)) => {
                let (at, ops, bytes) = (admission.start, admission.ops, admission.bytes);
                let passing = PendingRequest {
                    disk: Arc::clone(self),
                    admission,
                    reply,
                    outbox: Arc::clone(outbox),
                };
                fair_queue.enqueue(at, *number, ops, bytes, passing);
            }
        }
    }

    fn admit(&self, request: &Request) -> (Admission, Nanos, Option<Nanos>) {
        let mut model = self.model();
        // Read under the lock, so that the model's time does not go back.
        let now = self.clock.now();
        let admission = model.admit(now, request);
        let due = model.due(&admission, admission.start);
        (admission, due, model.noise().elapsed(now))
    }

    /// Applies the request to the data, and returns the write that is not durable, if any. Errors are those of the
    /// protocol.
    fn apply(
        &self,
        request: &Request,
        payload: &[u8],
        elapsed: Option<Nanos>,
    ) -> Result<Option<Unflushed>, u32> {
        let done = match request.kind {
            RequestKind::Read => Ok(None),
            RequestKind::Flush => {
                self.store.flush();
                Ok(None)
            }
            RequestKind::Write => self.store.write(payload, request.offset, elapsed),
            RequestKind::Zero | RequestKind::Trim => {
                self.store.zero(request.offset, request.length, elapsed)
            }
        };
        done.map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull => ENOSPC,
            _ => EIO,
        })
    }

    /// Fills the buffer from `offset`.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.store.read(buffer, offset, self.elapsed())
    }

    /// The time of the volume's episodes; `None` while it is held.
    pub(crate) fn elapsed(&self) -> Option<Nanos> {
        let now = self.clock.now();
        self.model().noise().elapsed(now)
    }

    /// Starts its faults now, if they are held.
    pub(crate) fn begin(&self) {
        let mut model = self.model();
        let now = self.clock.now();
        model.begin(now);
    }

    /// Corrupts bytes now.
    pub(crate) fn corrupt(&self, place: Span) {
        self.store.corrupt(place);
    }
}

impl PendingRequest {
    /// Continues to its client, after it passed the instance at this time.
    pub(crate) fn go(self, at: Nanos) {
        let due = self.disk.model().due(&self.admission, at);
        self.outbox.push(due, self.reply);
    }
}

#[cfg(test)]
impl Disk {
    /// A volume in memory, for tests that speak to it without a server.
    pub(crate) fn for_tests(what: &str, serial: &str) -> Arc<Disk> {
        let spec = what.parse::<crate::spec::VolumeGroup>().unwrap().spec;
        let memory = crate::store::DataMedium::Memory;
        let store = VolumeData::new(&spec, 1, memory, std::path::Path::new("/")).unwrap();
        let model = Volume::new(spec, 1);
        Arc::new(Disk::new(
            serial.into(),
            Clock::start(),
            model,
            store,
            None,
            None,
        ))
    }
}
