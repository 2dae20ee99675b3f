//! Which zeros are written next, and what becomes of the answers.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::list::{Done, Errno, Feed, Next, Request, RequestError};
use record::{Bytes, Nanos, Ranges};

use super::kept::Disk;
use super::pace::Clocked;
use super::place::Place;

/// Enough in flight to keep a cloud disk at its throughput with requests of a mebibyte.
pub(crate) const DEPTH: u32 = 8;
/// After so many failures in a row, and then after twice as many, it is looked whether the disk is
/// there at all.
const DOUBT: u32 = 16;
/// A disk that was held up may catch up on so much time.
const BURST: Nanos = Nanos(100_000_000);

/// Where a disk stands, whatever a thread that held it has come to.
pub(crate) fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps to so many bytes a second.
#[derive(Debug)]
pub(crate) struct Limiter {
    per_second: Option<Bytes>,
    /// When the next request may be issued.
    due: Nanos,
}

impl Limiter {
    /// Without a limit it never holds anything up.
    pub(crate) fn new(per_second: Option<Bytes>) -> Limiter {
        Limiter {
            per_second,
            due: Nanos(0),
        }
    }

    /// Until when to wait; `None` when the next request may be issued.
    pub(crate) fn wait(&self, now: Nanos) -> Option<Nanos> {
        (self.due > now).then_some(self.due)
    }

    /// So many bytes are issued.
    pub(crate) fn issued(&mut self, now: Nanos, bytes: Bytes) {
        if let Some(per_second) = self.per_second {
            let takes = bytes.0 as f64 * 1e9 / per_second.0 as f64;
            self.due = self.due.max(now - BURST) + Nanos(takes as u64);
        }
    }
}

/// Writes zeros over a set of bytes, in rising order.
pub(crate) struct Stream<'a> {
    place: &'a Place,
    disk: &'a Mutex<Disk>,
    todo: VecDeque<Range<u64>>,
    largest: u64,
    limiter: Limiter,
    /// `None` where what is written says nothing of the disk's pace: small pieces.
    clocked: Option<Clocked>,
    failures: u32,
    doubt: u32,
    /// Why there is no point in going on.
    pub gone: Option<String>,
}

impl<'a> Stream<'a> {
    /// All of `todo`, in pieces of `largest`.
    pub(crate) fn new(
        place: &'a Place,
        disk: &'a Mutex<Disk>,
        todo: &Ranges,
        largest: Bytes,
        limiter: Limiter,
        timed: bool,
    ) -> Stream<'a> {
        Stream {
            place,
            disk,
            todo: todo.iter().collect(),
            largest: largest.0,
            limiter,
            clocked: timed.then(|| Clocked::start(&lock(disk).pace, Nanos(0))),
            failures: 0,
            doubt: DOUBT,
            gone: None,
        }
    }

    /// The next piece. Pieces end on multiples of their size, as what backs a disk is allocated.
    fn piece(&mut self) -> Option<Range<u64>> {
        let front = self.todo.front_mut()?;
        let end = ((front.start / self.largest + 1) * self.largest).min(front.end);
        let piece = front.start..end;
        front.start = end;
        if front.is_empty() {
            self.todo.pop_front();
        }
        Some(piece)
    }

    /// A request failed. Many in a row may mean that the disk is gone.
    fn failed(&mut self, range: Range<u64>, why: String) {
        let stamp = {
            let mut disk = lock(self.disk);
            disk.failed.insert(range);
            disk.why_failed.get_or_insert(why);
            disk.stamp.clone()
        };
        self.failures += 1;
        if self.failures >= self.doubt {
            self.doubt *= 2;
            self.gone = gone(self.place, &stamp);
        }
    }
}

/// Why a disk is not there any more; `None` when it is, and is the same.
fn gone(place: &Place, stamp: &str) -> Option<String> {
    match place.stamp() {
        Ok(found) if found.as_deref() == Some(stamp) => None,
        Ok(_) => Some("somebody else has written to it".to_owned()),
        Err(error) => Some(format!("it cannot even be read any more: {error}")),
    }
}

impl Feed for Stream<'_> {
    fn depth(&self) -> u32 {
        DEPTH
    }

    fn next(&mut self, now: Nanos) -> Next {
        if self.gone.is_some() {
            return Next::End;
        }
        if let Some(until) = self.limiter.wait(now) {
            return Next::Wait(until);
        }
        let Some(range) = self.piece() else {
            return Next::End;
        };
        let len = range.end - range.start;
        self.limiter.issued(now, Bytes(len));
        Next::Request(Request {
            offset: range.start,
            // A piece is at most `largest`, which is far below 4 GiB.
            len: len as u32,
            tag: 0,
        })
    }

    fn done(&mut self, now: Nanos, done: Done) {
        let Request { offset, len, .. } = done.request;
        let range = offset..offset + u64::from(len);
        if let Err(error) = done.result {
            if let RequestError::Kernel(Errno::NODEV | Errno::NXIO) = error {
                self.gone = Some(format!("it is gone: {error}"));
            } else {
                self.failed(range, error.to_string());
            }
            return;
        }
        self.failures = 0;
        self.doubt = DOUBT;
        let mut disk = lock(self.disk);
        if !disk.failed.is_empty() {
            disk.failed = disk.failed.subtract(&Ranges::from(range.clone()));
        }
        disk.zeroed.insert(range);
        if let Some(clocked) = &mut self.clocked {
            disk.latency.record(done.latency.0);
            clocked.done(&mut disk.pace, now, Bytes(u64::from(len)));
        }
    }
}

/// Writes the places of a group one at a time, twice each: all of them, and then all again.
pub(crate) struct Twice {
    places: Vec<Range<u64>>,
    asked: usize,
    limiter: Limiter,
    /// How long each write took, in the order of the places; `None` when it failed.
    took: Vec<Option<Nanos>>,
}

impl Twice {
    /// For these places.
    pub(crate) fn new(places: Vec<Range<u64>>, limiter: Limiter) -> Twice {
        Twice {
            places,
            asked: 0,
            limiter,
            took: Vec::new(),
        }
    }

    /// The first and the second write of each place that was written twice, and these places.
    pub(crate) fn pairs(&self) -> (Vec<(Nanos, Nanos)>, Ranges) {
        let half = self.places.len();
        let took = |at: usize| self.took.get(at).copied().flatten();
        let mut pairs = Vec::new();
        let mut written = Ranges::new();
        for (at, place) in self.places.iter().enumerate() {
            if let (Some(first), Some(second)) = (took(at), took(half + at)) {
                pairs.push((first, second));
                written.insert(place.clone());
            }
        }
        (pairs, written)
    }
}

impl Feed for Twice {
    fn depth(&self) -> u32 {
        1
    }

    fn next(&mut self, now: Nanos) -> Next {
        if let Some(until) = self.limiter.wait(now) {
            return Next::Wait(until);
        }
        if self.asked == 2 * self.places.len() {
            return Next::End;
        }
        let range = self.places[self.asked % self.places.len()].clone();
        self.asked += 1;
        let len = range.end - range.start;
        self.limiter.issued(now, Bytes(len));
        Next::Request(Request {
            offset: range.start,
            len: len as u32,
            tag: 0,
        })
    }

    fn done(&mut self, _now: Nanos, done: Done) {
        self.took.push(done.result.ok().map(|()| done.latency));
    }
}
