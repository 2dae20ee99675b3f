//! Pairs issues and completions. Events do not identify their request, so they are paired by device, operation and end
//! offset.

mod requests;

use std::collections::{BTreeMap, HashMap, VecDeque};

use record::{Bytes, Nanos};

use crate::event::{Event, RequestStep};
use crate::io::{DeviceIndex, Io, NameIndex, Op};
use requests::{Request, Requests};

/// Maximum number of requests held, to return them in the order of their issue: some 120 MB.
const MAX_HELD_REQUESTS: usize = 1 << 20;
/// Maximum time for which a request in flight delays later ones; then it is returned without a completion. Twice the
/// timeout after which most drivers end a request themselves.
const MAX_HELD_TIME: Nanos = Nanos::from_secs(60);
/// Maximum number of requests in flight, if requests are returned in the order of completion.
const MAX_IN_FLIGHT: usize = 1 << 16;
/// Maximum number of bios that wait for their request.
const MAX_QUEUED_BIOS: usize = 1 << 16;
/// Maximum number of events held for a device until it is known whether it has requests.
const MAX_UNDECIDED_EVENTS: usize = 1 << 15;

/// Layer whose events report a device's I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoLayer {
    /// Requests: they are issued and completed.
    Requests,
    /// Bios, as of md and dm, which have no requests: they are queued and completed.
    Bios,
}

/// Key of a bio: device, operation and first byte.
type Key = (DeviceIndex, Op, u64);

/// A bio that waits for its request.
#[derive(Clone, Copy, Debug)]
struct Bio {
    end: u64,
    /// Bytes before it that were completed before the driver returned the rest.
    done: u64,
    time: Nanos,
    process: Option<NameIndex>,
    thread: Option<u32>,
}

/// Pairs events, which must be in the order of time, into I/Os in the order of their issue.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    requests: Requests,
    bios: BTreeMap<Key, Bio>,
    traced: HashMap<DeviceIndex, IoLayer>,
    undecided: HashMap<DeviceIndex, Vec<Event>>,
    /// True if the kernel marks its own flush requests as writes, as before Linux 4.10.
    flushes_are_writes: bool,
    /// Number of completions that matched several requests, or none (after the first request).
    pub(crate) ambiguous: u64,
    /// Time up to which events were added.
    time: Nanos,
    ended: bool,
    /// Completed requests, if they are returned in the order of completion.
    completed: Option<VecDeque<Io>>,
}

impl Pairing {
    /// Pairing into I/Os in the order of their completion, so that a request that hangs does not delay others.
    pub(crate) fn by_completion() -> Pairing {
        Pairing {
            completed: Some(VecDeque::new()),
            ..Pairing::default()
        }
    }

    /// Gives up the requests in flight, after a loss of events: their completions may be lost, and the completion of a
    /// later request would be taken for theirs. They are returned without a completion.
    pub(crate) fn give_up(&mut self) {
        self.requests.give_up();
        self.bios.clear();
    }

    /// Sets the time before which no more events are added.
    pub(crate) fn advance(&mut self, time: Nanos) {
        self.time = self.time.max(time);
    }

    /// Sets the layer of a device's events; otherwise the first events show it.
    pub(crate) fn set_traced(&mut self, device: DeviceIndex, traced: IoLayer) {
        self.traced.insert(device, traced);
    }

    /// Adds an event.
    pub(crate) fn push(&mut self, event: Event) {
        self.advance(event.time);
        match self.traced.get(&event.device) {
            Some(traced) => self.take(event, *traced),
            None => self.decide(event),
        }
    }

    /// Ends the pairing after the last event: requests in flight are returned without a completion.
    pub(crate) fn end(&mut self) {
        let devices: Vec<DeviceIndex> = self.undecided.keys().copied().collect();
        for device in devices {
            self.replay(device, IoLayer::Bios);
        }
        self.ended = true;
    }

    /// The next I/O, if it is complete.
    pub(crate) fn pop(&mut self) -> Option<Io> {
        if self.completed.is_some() {
            self.let_go();
            return self.completed.as_mut()?.pop_front();
        }
        loop {
            let first = self.requests.front()?;
            let is_held = first.under_way
                && self.requests.len() <= MAX_HELD_REQUESTS
                && self.time - first.io.issued < MAX_HELD_TIME;
            if is_held && !self.ended {
                return None;
            }
            let request = self.requests.pop()?;
            if !request.given_back {
                return Some(request.io);
            }
        }
    }

    /// Frees the memory of requests that were returned. A request in flight with many later ones is moved after them.
    fn let_go(&mut self) {
        while let Some(first) = self.requests.front() {
            let is_under_way = first.under_way;
            if is_under_way && self.requests.len() <= MAX_IN_FLIGHT {
                return;
            }
            let Some(mut request) = self.requests.pop() else {
                return;
            };
            if is_under_way && self.requests.len() < MAX_HELD_REQUESTS {
                request.under_way = true;
                self.requests.push(request);
                return;
            }
        }
    }

    /// Decides by the first events of a device whether it has requests, or only bios.
    fn decide(&mut self, event: Event) {
        let held = self.undecided.entry(event.device).or_default();
        let is_of_bio = |bio: &Event| {
            bio.step == RequestStep::Queued && (bio.op, bio.end()) == (event.op, event.end())
        };
        let traced = match event.step {
            RequestStep::Issued | RequestStep::Requeued => Some(IoLayer::Requests),
            // A completion without bytes may repeat that of a flush.
            RequestStep::Completed { .. }
                if event.length > Bytes(0) && held.iter().any(is_of_bio) =>
            {
                Some(IoLayer::Bios)
            }
            _ if held.len() >= MAX_UNDECIDED_EVENTS => Some(IoLayer::Bios),
            _ => None,
        };
        held.push(event);
        if let Some(traced) = traced {
            self.replay(event.device, traced);
        }
    }

    fn replay(&mut self, device: DeviceIndex, traced: IoLayer) {
        self.traced.insert(device, traced);
        for event in self.undecided.remove(&device).unwrap_or_default() {
            self.take(event, traced);
        }
    }

    fn take(&mut self, event: Event, traced: IoLayer) {
        match (event.step, traced) {
            (RequestStep::Queued, IoLayer::Bios) => {
                if event.flush_first {
                    self.flush_before(&event);
                }
                self.issue(event, None);
            }
            (RequestStep::Queued, IoLayer::Requests) => self.queue(event),
            (RequestStep::Issued, IoLayer::Requests) => {
                self.flushes_are_writes |= event.op == Op::Flush && event.marked_write;
                let bio = self.bios_of(&event);
                self.issue(event, bio);
            }
            (RequestStep::Requeued, IoLayer::Requests) => self.requeue(&event),
            (RequestStep::Completed { .. }, IoLayer::Requests) if self.repeats(&event) => {}
            (RequestStep::Completed { failed }, _) => self.complete(&event, failed),
            (RequestStep::Issued | RequestStep::Requeued, IoLayer::Bios) => {}
        }
    }

    /// True for a completion that repeats an earlier one. The kernel issues a separate request for a flush; the request
    /// that asked for the flush, and a write that is followed by a flush, complete again after it, without bytes.
    fn repeats(&self, event: &Event) -> bool {
        let is_own_flush =
            event.op == Op::Flush && (self.flushes_are_writes || !event.marked_write);
        event.length == Bytes(0) && !is_own_flush
    }

    fn queue(&mut self, event: Event) {
        // Bios that never become a request, such as one that another layer completed, must not accumulate.
        if self.bios.len() >= MAX_QUEUED_BIOS {
            self.bios.clear();
        }
        let bio = Bio {
            end: event.end(),
            done: 0,
            time: event.time,
            process: event.process,
            thread: event.thread,
        };
        self.bios.entry(key(&event)).or_insert(bio);
    }

    /// The earliest bio of a request, which has several bios after merges, and a part of one after a split.
    fn bios_of(&mut self, event: &Event) -> Option<Bio> {
        let (device, op, begin) = key(event);
        let end = event.end();
        let mut done = 0;
        let mut earliest: Option<Bio> = None;
        if op == Op::Flush {
            return self.bios.remove(&(device, op, begin));
        }
        loop {
            let before = self.bios.range((device, op, 0)..(device, op, end));
            let Some((at, bio)) = before.last() else {
                break;
            };
            if bio.end <= begin {
                break;
            }
            let at = *at;
            let bio = self.bios.remove(&at)?;
            if bio.end > end {
                // The rest of the bio is for the next request.
                self.bios.insert((device, op, end), Bio { done: 0, ..bio });
            }
            if at.2 == begin {
                done = bio.done;
            }
            if earliest.is_none_or(|known| bio.time < known.time) {
                earliest = Some(bio);
            }
        }
        earliest.map(|bio| Bio { done, ..bio })
    }

    fn issue(&mut self, event: Event, bio: Option<Bio>) {
        let done = bio.map_or(0, |bio| bio.done);
        let io = Io {
            device: event.device,
            op: event.op,
            fua: event.fua,
            offset: Bytes(event.begin()) - Bytes(done),
            length: event.length + Bytes(done),
            queued: bio.map(|bio| bio.time),
            issued: event.time,
            completed: None,
            failed: false,
            // The process that issues a request may have taken it from the scheduler, where another process's bio made
            // it.
            process: bio.map_or(event.process, |bio| bio.process),
            thread: bio.map_or(event.thread, |bio| bio.thread),
            file: None,
        };
        self.requests.push(Request::of(io, true));
    }

    /// Adds the flush before a write. It has no completion of its own: the write's completion ends both.
    fn flush_before(&mut self, event: &Event) {
        let io = Io {
            device: event.device,
            op: Op::Flush,
            fua: false,
            offset: Bytes(0),
            length: Bytes(0),
            queued: None,
            issued: event.time,
            completed: None,
            failed: false,
            process: event.process,
            thread: event.thread,
            file: None,
        };
        self.requests.push(Request::of(io, false));
    }

    fn find(&mut self, event: &Event) -> Option<u64> {
        let (number, is_one_of_several) = self.requests.find(event)?;
        // Flushes are interchangeable: it makes no difference which of them completes.
        if is_one_of_several && event.op != Op::Flush {
            self.ambiguous += 1;
        }
        self.requests.unlink(number);
        Some(number)
    }

    /// Completes the request that ends where an event ends. A completion that ends earlier is that of a part: of a
    /// request that the driver completes piece by piece, or of a bio that was split, whose parts complete in any order
    /// before the whole.
    fn complete(&mut self, event: &Event, failed: bool) {
        let Some(number) = self.find(event) else {
            return self.complete_part(event, failed);
        };
        let Some(request) = self.requests.get(number) else {
            return;
        };
        request.io.failed |= failed;
        request.io.completed = Some(event.time);
        let io = request.io;
        if let Some(completed) = &mut self.completed {
            completed.push_back(io);
        }
    }

    fn complete_part(&mut self, event: &Event, failed: bool) {
        let whole = self.requests.around(event);
        if let Some(request) = whole.and_then(|number| self.requests.get(number)) {
            request.io.failed |= failed;
        } else if event.op != Op::Flush && !self.requests.were_none() {
            // Before the first issue, it belongs to a request that was in flight when the trace began. If flushes are
            // marked as writes, the completion of a flush may be a repetition.
            self.ambiguous += 1;
        }
    }

    /// The driver returned the request, or the rest of it: it is issued again later, and its time counts from then.
    fn requeue(&mut self, event: &Event) {
        let number = self.find(event);
        let Some(request) = number.and_then(|number| self.requests.get(number)) else {
            return;
        };
        request.given_back = true;
        let io = request.io;
        let bio = Bio {
            end: event.end(),
            done: event.begin().saturating_sub(io.offset.0),
            time: io.queued.unwrap_or(io.issued),
            process: io.process,
            thread: io.thread,
        };
        self.bios.insert(key(event), bio);
    }
}

fn key(event: &Event) -> Key {
    (event.device, event.op, event.begin())
}

#[cfg(test)]
mod tests;
