//! Zeros to write next, and the treatment of completions.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;

use engine::list::{CompletedRequest, Errno, Next, Op, Request, RequestError, RequestSource};
use record::{Bytes, Nanos, Ranges};
use study::pace::Allowed;

use super::checkpoint::Disk;
use super::foreground::Throttle;
use super::pace::Clocked;
use super::place::Place;
use super::state::{Shared, lock};

/// Enough in flight to keep a cloud disk at its throughput with requests of a mebibyte.
pub(crate) const DEPTH: u32 = 8;
/// After so many failures in a row, and then after twice as many, it is looked whether the disk is
/// there at all.
const DOUBT: u32 = 16;
/// A disk that was held up may catch up on so much time.
const BURST: Nanos = Nanos(100_000_000);

/// Keeps to so many bytes a second.
#[derive(Debug)]
pub(crate) struct Limiter<'a> {
    per_second: Option<Bytes>,
    throttle: Option<&'a Throttle>,
    /// Time at which the next request may be issued.
    due: Nanos,
}

impl<'a> Limiter<'a> {
    /// Without a limit and a throttle it never holds anything up.
    pub(crate) fn new(per_second: Option<Bytes>, throttle: Option<&'a Throttle>) -> Limiter<'a> {
        Limiter {
            per_second,
            throttle,
            due: Nanos(0),
        }
    }

    /// Time until which to wait; `None` when the next request may be issued.
    pub(crate) fn wait(&self, now: Nanos) -> Option<Nanos> {
        let closed = self.throttle.and_then(|throttle| throttle.rate(now).err());
        let until = closed.unwrap_or_default().max(self.due);
        (until > now).then_some(until)
    }

    /// Bytes a second of the limit, or of what the foreground leaves if that is less.
    fn rate(&self, now: Nanos) -> Option<f64> {
        let left = self
            .throttle
            .and_then(|throttle| throttle.rate(now).ok().flatten());
        let limit = self.per_second.map(|limit| limit.0 as f64);
        left.into_iter().chain(limit).reduce(f64::min)
    }

    /// Size of the pieces that the device zeroes by itself, at most `largest`: beside a foreground no more than it
    /// may zero in a tenth of a second, since a piece is not interrupted.
    pub(crate) fn piece(&self, largest: Bytes) -> Bytes {
        const OF_A_SECOND: f64 = 0.1;
        let allowed = self.throttle.map(Throttle::allowed);
        match allowed {
            Some(Allowed::Rate(rate)) => Bytes((OF_A_SECOND * rate) as u64)
                .round_down(Bytes::MIB)
                .clamp(Bytes::MIB, largest),
            Some(Allowed::All) | None => largest,
            Some(Allowed::Nothing) => Bytes::MIB.min(largest),
        }
    }

    /// True beside a foreground.
    fn is_beside(&self) -> bool {
        let allowed = self.throttle.map(Throttle::allowed);
        matches!(allowed, Some(Allowed::Rate(_)))
    }

    /// Notes bytes that have completed.
    pub(crate) fn done(&self, bytes: Bytes) {
        if let Some(throttle) = self.throttle {
            throttle.done(bytes);
        }
    }

    /// Notes bytes that were issued.
    pub(crate) fn issued(&mut self, now: Nanos, bytes: Bytes) {
        if let Some(throttle) = self.throttle {
            throttle.issued(bytes);
        }
        if let Some(rate) = self.rate(now) {
            let takes = bytes.0 as f64 * 1e9 / rate;
            self.due = self.due.max(now - BURST) + Nanos(takes as u64);
        }
    }

    /// The request for a range, which is issued now. A range is at most as long as the largest
    /// piece, which is far below 4 GiB.
    fn request(&mut self, now: Nanos, range: Range<u64>) -> Request {
        self.issued(now, Bytes(range.end - range.start));
        Request::of(Op::Write, &range, 0)
    }
}

/// Writes zeros over a set of bytes, in rising order.
pub(crate) struct Stream<'a> {
    place: &'a Place,
    shared: &'a Shared,
    todo: VecDeque<Range<u64>>,
    largest: u64,
    limiter: Limiter<'a>,
    /// `None` where what is written says nothing of the disk's pace: small pieces.
    clocked: Option<Clocked>,
    doubt: Doubt,
    /// Reason for which there is no point in going on.
    pub gone: Option<String>,
}

impl<'a> Stream<'a> {
    /// All of `todo`, in pieces of `largest`.
    pub(crate) fn new(
        place: &'a Place,
        shared: &'a Shared,
        todo: &Ranges,
        largest: Bytes,
        limiter: Limiter<'a>,
        timed: bool,
    ) -> Stream<'a> {
        Stream {
            place,
            shared,
            todo: todo.iter().collect(),
            largest: largest.0,
            limiter,
            clocked: timed.then(|| Clocked::start(&lock(&shared.now).pace, Nanos(0))),
            doubt: Doubt::default(),
            gone: None,
        }
    }

    /// The next piece. Pieces end on multiples of their size, as what backs a disk is allocated.
    fn piece(&mut self) -> Option<Range<u64>> {
        let most = if self.limiter.is_beside() {
            self.largest.min(reader::BESIDE.0)
        } else {
            self.largest
        };
        let front = self.todo.front_mut()?;
        let end = ((front.start / most + 1) * most).min(front.end);
        let piece = front.start..end;
        front.start = end;
        if front.is_empty() {
            self.todo.pop_front();
        }
        Some(piece)
    }
}

/// Doubt that a disk is there at all, when requests to it fail. Many failures in a row may mean that it is
/// gone.
pub(crate) struct Doubt {
    failures: u32,
    limit: u32,
}

impl Default for Doubt {
    fn default() -> Doubt {
        Doubt {
            failures: 0,
            limit: DOUBT,
        }
    }
}

impl Doubt {
    /// A request went well.
    pub(crate) fn well(&mut self) {
        *self = Doubt::default();
    }

    /// A request failed. Where it stands among the failed ones is noted; gives why there is no
    /// point in going on, if there is none.
    pub(crate) fn failed(
        &mut self,
        place: &Place,
        disk: &Mutex<Disk>,
        range: Range<u64>,
        error: &std::io::Error,
    ) -> Option<String> {
        if is_away(error) {
            return Some(format!("it is gone: {error}"));
        }
        let (stamp, nothing) = {
            let mut disk = lock(disk);
            disk.fail(range, error.to_string());
            let stamp = (!disk.unstamped).then(|| disk.stamp.clone());
            (stamp, disk.zeroed.is_empty())
        };
        self.failures += 1;
        if self.failures < self.limit {
            return None;
        }
        self.limit *= 2;
        if nothing {
            return Some(format!("nothing can be written to it: {error}"));
        }
        gone(place, stamp.as_deref())
    }
}

/// True if the kernel's error means that the device is not there any more.
pub(crate) fn is_away(error: &std::io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NODEV | Errno::NXIO))
}

/// A request's error as an error of the system.
fn as_io(error: RequestError) -> std::io::Error {
    match error {
        RequestError::Kernel(errno) => errno.into(),
        short @ RequestError::Short { .. } => std::io::Error::other(short),
    }
}

/// Reason for which a disk is not there any more; `None` when it is, and is the same.
fn gone(place: &Place, stamp: Option<&str>) -> Option<String> {
    if let Some(why) = place.resized() {
        return Some(why);
    }
    // A disk whose first block is bad cannot be known again, nor asked there whether it answers.
    let stamp = stamp?;
    match place.stamp() {
        Ok(found) if found.as_deref() == Some(stamp) => None,
        Ok(_) => Some("another program has written to it".to_owned()),
        Err(error) => Some(format!("it cannot even be read any more: {error}")),
    }
}

impl RequestSource for Stream<'_> {
    fn depth(&self) -> u32 {
        DEPTH
    }

    fn next(&mut self, now: Nanos) -> Next {
        if self.gone.is_some() || self.shared.is_lost() {
            return Next::End;
        }
        if let Some(until) = self.limiter.wait(now) {
            return Next::Wait(until);
        }
        let Some(range) = self.piece() else {
            return Next::End;
        };
        Next::Request(self.limiter.request(now, range))
    }

    fn done(&mut self, now: Nanos, done: CompletedRequest) {
        let range = done.request.range();
        self.limiter.done(Bytes(range.end - range.start));
        if let Err(error) = done.result {
            let gone = self
                .doubt
                .failed(self.place, &self.shared.now, range, &as_io(error));
            self.gone = self.gone.take().or(gone);
            return;
        }
        self.doubt.well();
        let mut disk = lock(&self.shared.now);
        if !disk.failed.is_empty() {
            disk.failed = disk.failed.subtract(&Ranges::from(range.clone()));
        }
        disk.zeroed.insert(range);
        if let Some(clocked) = &mut self.clocked {
            disk.latency.record(done.latency.0);
            clocked.done(&mut disk.pace, now, done.moved());
        }
    }
}

/// Writes the places of a group one at a time, twice each: all of them, and then all again.
pub(crate) struct Twice<'a> {
    places: Vec<Range<u64>>,
    asked: usize,
    limiter: Limiter<'a>,
    /// Time of each write, in the order of the places; `None` when it failed.
    took: Vec<Option<Nanos>>,
    /// The places of which a write failed, and what the kernel said.
    pub failed: Vec<(Range<u64>, std::io::Error)>,
}

impl<'a> Twice<'a> {
    /// For these places.
    pub(crate) fn new(places: Vec<Range<u64>>, limiter: Limiter<'a>) -> Twice<'a> {
        Twice {
            places,
            asked: 0,
            limiter,
            took: Vec::new(),
            failed: Vec::new(),
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

impl RequestSource for Twice<'_> {
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
        Next::Request(self.limiter.request(now, range))
    }

    fn done(&mut self, _now: Nanos, done: CompletedRequest) {
        self.limiter.done(Bytes(u64::from(done.request.len)));
        if let Err(error) = done.result {
            self.failed.push((done.request.range(), as_io(error)));
        }
        self.took.push(done.result.ok().map(|()| done.latency));
    }
}
