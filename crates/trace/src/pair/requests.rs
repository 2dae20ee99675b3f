//! Requests that were issued, in that order, and those of each place that are under way.

use std::collections::{HashMap, VecDeque};

use record::Bytes;

use crate::event::Event;
use crate::io::{DeviceIndex, Io, Op};

/// Place of a request that is under way: its first byte that was not completed yet.
pub(super) type Key = (DeviceIndex, Op, u64);

/// A request that was issued.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) io: Io,
    /// Bytes that were not completed yet.
    pub(super) left: u64,
    pub(super) under_way: bool,
    pub(super) given_back: bool,
    /// The next request of the same place.
    next: Option<u64>,
}

impl Request {
    pub(super) fn of(io: Io, under_way: bool) -> Request {
        Request {
            io,
            left: io.length.0,
            under_way,
            given_back: false,
            next: None,
        }
    }

    fn key(&self) -> Key {
        let done = self.io.length.0.saturating_sub(self.left);
        let begin = self.io.offset.0.saturating_add(done);
        (self.io.device, self.io.op, begin)
    }
}

/// Requests by their number, which counts them in the order of their issue.
#[derive(Debug, Default)]
pub(super) struct Requests {
    list: VecDeque<Request>,
    /// Number of the first of `list`.
    first: u64,
    /// Number of the first request of each place.
    under_way: HashMap<Key, u64>,
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// True if there was no request so far.
    pub(super) fn were_none(&self) -> bool {
        self.first == 0 && self.list.is_empty()
    }

    #[cfg(test)]
    pub(super) fn are_none_under_way(&self) -> bool {
        self.under_way.is_empty()
    }

    pub(super) fn forget(&mut self) {
        self.first += self.list.len() as u64;
        self.list.clear();
        self.under_way.clear();
    }

    pub(super) fn push(&mut self, request: Request) {
        let number = self.first + self.list.len() as u64;
        let key = request.under_way.then(|| request.key());
        self.list.push_back(request);
        if let Some(key) = key {
            self.link(key, number);
        }
    }

    pub(super) fn front(&self) -> Option<&Request> {
        self.list.front()
    }

    /// Removes the first, which is under way no longer.
    pub(super) fn pop(&mut self) -> Option<Request> {
        self.unlink(self.first);
        self.first += 1;
        self.list.pop_front()
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Request> {
        let at = number.checked_sub(self.first)?;
        self.list.get_mut(usize::try_from(at).ok()?)
    }

    /// The request that an event is of, and how many are under way at its place: of several the one of this length, and
    /// among these the first, as most devices keep that order.
    pub(super) fn find(&mut self, event: &Event) -> Option<(u64, u32)> {
        let first = *self.under_way.get(&key(event))?;
        let (mut at, mut found, mut count) = (Some(first), None, 0);
        while let Some(number) = at {
            let request = self.get(number)?;
            count += 1;
            if found.is_none() && request.left == event.length.0 {
                found = Some(number);
            }
            at = request.next;
        }
        Some((found.unwrap_or(first), count))
    }

    /// Puts a request that is under way again to those of its place.
    pub(super) fn relink(&mut self, number: u64) {
        if let Some(request) = self.get(number) {
            request.under_way = true;
            let key = request.key();
            self.link(key, number);
        }
    }

    fn link(&mut self, key: Key, number: u64) {
        let Some(first) = self.under_way.get(&key).copied() else {
            self.under_way.insert(key, number);
            return;
        };
        let mut at = first;
        while let Some(next) = self.get(at).and_then(|request| request.next) {
            at = next;
        }
        if let Some(last) = self.get(at) {
            last.next = Some(number);
        }
    }

    /// Takes a request from those of its place, if it is under way.
    pub(super) fn unlink(&mut self, number: u64) {
        let Some(request) = self.get(number).filter(|request| request.under_way) else {
            return;
        };
        let next = request.next.take();
        request.under_way = false;
        let key = request.key();
        let Some(first) = self.under_way.get(&key).copied() else {
            return;
        };
        if first == number {
            match next {
                Some(next) => self.under_way.insert(key, next),
                None => self.under_way.remove(&key),
            };
            return;
        }
        let mut at = first;
        while let Some(request) = self.get(at) {
            if request.next == Some(number) {
                request.next = next;
                return;
            }
            match request.next {
                Some(further) => at = further,
                None => return,
            }
        }
    }
}

/// Place of the request that an event is of.
pub(super) fn key(event: &Event) -> Key {
    (event.device, event.op, place(event).0)
}

/// Flushes have no place, though events give one.
pub(super) fn place(event: &Event) -> Bytes {
    match event.op {
        Op::Flush => Bytes(0),
        _ => event.offset,
    }
}
