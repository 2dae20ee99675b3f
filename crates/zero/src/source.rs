//! Sources of write requests for the engine, and the handling of their completions.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;

use engine::list::{CompletedRequest, Errno, Next, RequestError, RequestSource};
use record::{Bytes, Nanos, Ranges};

use super::checkpoint::Disk;
use super::limiter::Limiter;
use super::pace::PaceRecorder;
use super::place::ClaimedDisk;
use super::sample::{PLACE, pieces};
use super::state::{DiskState, lock};

/// Number of requests in flight: enough for the throughput of a cloud disk with requests of 1 MiB.
pub(crate) const DEPTH: u32 = 8;
/// Number of requests in flight beside a foreground: one is written while the next waits. In simulation, eight requests
/// raised the foreground's p99.9 to 2.6 times its value alone instead of 1.5 times, and the work took longer.
const DEPTH_BESIDE: u32 = 2;
/// Number of consecutive failures after which the disk's presence is checked. It is doubled after each check.
const PRESENCE_CHECK_FAILURES: u32 = 16;

/// Source of requests that write zeros to a set of ranges, in ascending order.
pub(crate) struct ZeroStream<'a> {
    place: &'a ClaimedDisk,
    shared: &'a DiskState,
    todo: VecDeque<Range<u64>>,
    largest: Bytes,
    limiter: Limiter<'a>,
    /// Recorder of the rate; `None` for small pieces, whose rate is not the disk's.
    recorder: Option<PaceRecorder>,
    doubt: PresenceDoubt,
    /// Reason for giving the disk up.
    pub gone: Option<String>,
}

impl<'a> ZeroStream<'a> {
    /// Source of writes to all of `todo`, in pieces of at most `largest`.
    pub(crate) fn new(
        place: &'a ClaimedDisk,
        shared: &'a DiskState,
        todo: &Ranges,
        largest: Bytes,
        limiter: Limiter<'a>,
        timed: bool,
    ) -> ZeroStream<'a> {
        ZeroStream {
            place,
            shared,
            todo: todo.iter().collect(),
            largest,
            limiter,
            recorder: timed.then(|| PaceRecorder::start(&lock(&shared.now).pace, Nanos(0))),
            doubt: PresenceDoubt::default(),
            gone: None,
        }
    }

    /// The next piece. Pieces end on multiples of their size, as the storage behind a disk is allocated.
    fn piece(&mut self) -> Option<Range<u64>> {
        let most = self.limiter.request_size(self.largest).0;
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

/// Detection of a disk that is gone, by many consecutive failures.
pub(crate) struct PresenceDoubt {
    failures: u32,
    limit: u32,
}

impl Default for PresenceDoubt {
    fn default() -> PresenceDoubt {
        PresenceDoubt {
            failures: 0,
            limit: PRESENCE_CHECK_FAILURES,
        }
    }
}

impl PresenceDoubt {
    /// Notes a request that succeeded.
    pub(crate) fn note_success(&mut self) {
        *self = PresenceDoubt::default();
    }

    /// Notes a request that failed, and adds its range to the disk's failed ranges. Returns the reason for giving the
    /// disk up, if there is one.
    pub(crate) fn failed(
        &mut self,
        place: &ClaimedDisk,
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
        reason_missing(place, stamp.as_deref())
    }
}

/// True if the kernel's error means that the device is gone.
pub(crate) fn is_away(error: &std::io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NODEV | Errno::NXIO))
}

/// A request's error as an I/O error.
fn as_io(error: RequestError) -> std::io::Error {
    match error {
        RequestError::Kernel(errno) => errno.into(),
        short @ RequestError::Short { .. } => std::io::Error::other(short),
    }
}

/// Reason why the disk is no longer the one that was claimed: its size or stamp has changed, or it cannot be read.
/// `None` where it is unchanged.
fn reason_missing(place: &ClaimedDisk, stamp: Option<&str>) -> Option<String> {
    if let Some(why) = place.resized() {
        return Some(why);
    }
    // A disk whose first block is bad has no stamp to read.
    let stamp = stamp?;
    match place.stamp() {
        Ok(found) if found.as_deref() == Some(stamp) => None,
        Ok(_) => Some("another program has written to it".to_owned()),
        Err(error) => Some(format!("it cannot even be read any more: {error}")),
    }
}

impl RequestSource for ZeroStream<'_> {
    fn depth(&self) -> u32 {
        match self.limiter.is_beside() {
            true => DEPTH_BESIDE,
            false => DEPTH,
        }
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
        let latency = done.result.is_ok().then_some(done.latency);
        self.limiter.done(Bytes(range.end - range.start), latency);
        if let Err(error) = done.result {
            let gone = self
                .doubt
                .failed(self.place, &self.shared.now, range, &as_io(error));
            self.gone = self.gone.take().or(gone);
            return;
        }
        self.doubt.note_success();
        let mut disk = lock(&self.shared.now);
        if !disk.failed.is_empty() {
            disk.failed = disk.failed.subtract(&Ranges::from(range.clone()));
        }
        disk.zeroed.insert(range);
        if let Some(recorder) = &mut self.recorder {
            disk.latency.record(done.latency.0);
            recorder.done(&mut disk.pace, now, done.moved());
        }
    }
}

/// Source of requests that write all places of a group, one request at a time, and then all of them again.
pub(crate) struct DoubleWrites<'a> {
    places: Vec<Range<u64>>,
    /// Remaining requests of both passes, in order. Both passes use the same request size, so that their times can be
    /// compared.
    left: VecDeque<Range<u64>>,
    limiter: Limiter<'a>,
    /// Duration of each write, in the order of the places, the second pass after the first; `None` if a part of it
    /// failed.
    took: Vec<Option<Nanos>>,
    /// The ranges whose write failed, with the kernel's error.
    pub failed: Vec<(Range<u64>, std::io::Error)>,
}

impl<'a> DoubleWrites<'a> {
    /// Writes these places twice.
    pub(crate) fn new(places: Vec<Range<u64>>, limiter: Limiter<'a>) -> DoubleWrites<'a> {
        let size = limiter.request_size(PLACE);
        let both = places.iter().chain(&places);
        DoubleWrites {
            left: both.flat_map(|place| pieces(place.clone(), size)).collect(),
            places,
            limiter,
            took: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Times of the first and the second write of each place that was written twice, and the ranges of these places.
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

impl RequestSource for DoubleWrites<'_> {
    fn depth(&self) -> u32 {
        1
    }

    fn next(&mut self, now: Nanos) -> Next {
        if let Some(until) = self.limiter.wait(now) {
            return Next::Wait(until);
        }
        // A foreground has appeared: the rest of the group is not timed, and is written later with all other ranges.
        let size = self.limiter.request_size(PLACE);
        if let Some(range) = self.left.front()
            && range.end - range.start > size.0
        {
            return Next::End;
        }
        let Some(range) = self.left.pop_front() else {
            return Next::End;
        };
        Next::Request(self.limiter.request(now, range))
    }

    fn done(&mut self, _now: Nanos, done: CompletedRequest) {
        let range = done.request.range();
        let latency = done.result.is_ok().then_some(done.latency);
        self.limiter
            .done(Bytes(u64::from(done.request.len)), latency);
        if self.places.iter().any(|place| place.start == range.start) {
            self.took.push(Some(Nanos(0)));
        }
        if let Some(took) = self.took.last_mut() {
            let so_far = took.filter(|_| done.result.is_ok());
            *took = so_far.map(|so_far| so_far + done.latency);
        }
        if let Err(error) = done.result {
            self.failed.push((range, as_io(error)));
        }
    }
}

#[cfg(test)]
mod tests {
    use study::pace::Allowed;

    use super::super::foreground::Throttle;
    use super::*;

    const MS: Nanos = Nanos(1_000_000);

    #[test]
    fn places_that_are_written_in_parts_have_the_time_of_all_parts() {
        let throttle = Throttle::new();
        throttle.allow(Allowed::Rate(1e9));
        let place = |number: u64| number * PLACE.0..(number + 1) * PLACE.0;
        let places = vec![place(5), place(2), place(9)];
        let mut twice = DoubleWrites::new(places, Limiter::new(None, Some(&throttle)));
        let mut now = Nanos(0);
        loop {
            now += MS;
            let request = match twice.next(now) {
                Next::Request(request) => request,
                Next::Wait(_) => continue,
                Next::End => break,
            };
            assert_eq!(
                u64::from(request.len),
                reader::REQUEST_SIZE_BESIDE_FOREGROUND.0
            );
            let is_bad = request.offset == 2 * PLACE.0 + reader::REQUEST_SIZE_BESIDE_FOREGROUND.0;
            let error = RequestError::Kernel(Errno::IO);
            let done = CompletedRequest {
                request,
                began: now,
                latency: MS,
                result: if is_bad { Err(error) } else { Ok(()) },
            };
            twice.done(now, done);
        }
        let (pairs, written) = twice.pairs();
        let parts = Nanos(MS.0 * (PLACE.0 / reader::REQUEST_SIZE_BESIDE_FOREGROUND.0));
        assert_eq!(pairs, [(parts, parts); 2]);
        assert_eq!(written, [place(5), place(9)].into_iter().collect());
        assert_eq!(twice.failed.len(), 2);
    }

    #[test]
    fn a_group_ends_when_a_foreground_comes_instead_of_going_on_with_large_requests() {
        let throttle = Throttle::new();
        throttle.allow(Allowed::All);
        let place = |number: u64| number * PLACE.0..(number + 1) * PLACE.0;
        let limiter = Limiter::new(None, Some(&throttle));
        let mut twice = DoubleWrites::new(vec![place(5), place(2)], limiter);
        let Next::Request(request) = twice.next(MS) else {
            panic!("nothing holds it back");
        };
        assert_eq!(u64::from(request.len), PLACE.0);
        let done = CompletedRequest {
            request,
            began: MS,
            latency: MS,
            result: Ok(()),
        };
        twice.done(MS + MS, done);
        throttle.allow(Allowed::Rate(1e9));
        let later = Nanos::from_secs(10);
        assert!(matches!(twice.next(later), Next::End));
        assert_eq!(twice.pairs(), (Vec::new(), Ranges::new()));
    }
}
