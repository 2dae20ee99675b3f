//! Issued requests in the order of issue, with an index of those in flight by their end.

use std::collections::{BTreeSet, VecDeque};

use crate::event::Event;
use crate::io::{DeviceIndex, Io, Op};

/// Maximum number of requests examined for one completion.
const MAX_LOOKUPS: usize = 64;

/// An issued request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) io: Io,
    pub(super) under_way: bool,
    pub(super) given_back: bool,
}

impl Request {
    pub(super) fn of(io: Io, under_way: bool) -> Request {
        Request {
            io,
            under_way,
            given_back: false,
        }
    }
}

/// Requests by number, in the order of issue.
#[derive(Debug, Default)]
pub(super) struct Requests {
    list: VecDeque<Request>,
    /// Number of the first request in `list`.
    first: u64,
    /// Requests in flight: device, operation, end offset, number.
    under_way: BTreeSet<(DeviceIndex, Op, u64, u64)>,
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

    /// Marks all requests as no longer in flight.
    pub(super) fn give_up(&mut self) {
        for (.., number) in std::mem::take(&mut self.under_way) {
            if let Some(request) = self.get(number) {
                request.under_way = false;
            }
        }
    }

    pub(super) fn push(&mut self, request: Request) {
        if request.under_way {
            let number = self.first + self.list.len() as u64;
            self.under_way.insert(place(&request.io, number));
        }
        self.list.push_back(request);
    }

    pub(super) fn front(&self) -> Option<&Request> {
        self.list.front()
    }

    /// Removes the first request, which is then no longer in flight.
    pub(super) fn pop(&mut self) -> Option<Request> {
        self.unlink(self.first);
        self.first += 1;
        self.list.pop_front()
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Request> {
        let at = self.at(number)?;
        self.list.get_mut(at)
    }

    fn at(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }

    fn io(&self, number: u64) -> Option<&Io> {
        Some(&self.list.get(self.at(number)?)?.io)
    }

    /// The request that an event completes, and true if several match. Of several, it is one of the same length, and of
    /// these the first, as most devices keep this order.
    ///
    /// The last part of a request ends where the request ends, however many parts there are, and whether all of them or
    /// only the last is reported.
    pub(super) fn find(&self, event: &Event) -> Option<(u64, bool)> {
        let (device, op, end) = (event.device, event.op, event.end());
        let numbers = self
            .under_way
            .range((device, op, end, 0)..=(device, op, end, u64::MAX))
            .take(MAX_LOOKUPS);
        let mut fitting = numbers.filter_map(|(.., number)| {
            let length = self.io(*number)?.length;
            (length >= event.length).then_some((*number, length))
        });
        let mut exact = fitting
            .clone()
            .filter(|(_, length)| *length == event.length);
        let (number, _) = exact.next().or_else(|| fitting.clone().next())?;
        Some((number, fitting.nth(1).is_some()))
    }

    /// A request of which these bytes are a part, but not the last.
    pub(super) fn around(&self, event: &Event) -> Option<u64> {
        let (device, op, end) = (event.device, event.op, event.end());
        let behind = self
            .under_way
            .range((device, op, end.saturating_add(1), 0)..=(device, op, u64::MAX, u64::MAX));
        let mut numbers = behind.take(MAX_LOOKUPS).map(|(.., number)| *number);
        numbers.find(|number| {
            let io = self.io(*number);
            io.is_some_and(|io| io.offset.0 <= event.begin())
        })
    }

    /// Marks a request as no longer in flight.
    pub(super) fn unlink(&mut self, number: u64) {
        if let Some(request) = self.get(number)
            && std::mem::take(&mut request.under_way)
        {
            let place = place(&request.io, number);
            self.under_way.remove(&place);
        }
    }
}

fn place(io: &Io, number: u64) -> (DeviceIndex, Op, u64, u64) {
    let end = io.offset.0.saturating_add(io.length.0);
    (io.device, io.op, end, number)
}
