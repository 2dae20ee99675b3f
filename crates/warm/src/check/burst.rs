//! Rate of volumes when warm blocks of all of them are read at once: the rate of a forecast.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use engine::IoInterface;
use engine::list::{
    BufferMode, CompletedRequest, List, ListEngine, Next, Op, Request, RequestSource,
};
use record::{Bytes, Nanos};
use study::interval::{Interval, mean_interval};

use super::super::pace::{PROBE_MARK, idle_wait};
use super::volume_pace::{Pacing, VolumePace};
use reader::{REQUEST_SIZE_BESIDE_FOREGROUND, Volume};

/// Requests in flight. At 512 KiB each they suffice for the rate of warm blocks of any instance, and are few enough
/// not to delay a foreground much.
pub(super) const DEPTH: u32 = 16;
/// Tag of a request for a block.
const BLOCK: u64 = 0;
/// Number of parts, with equally many requests each, from whose rates the interval of the rate is computed.
const RATE_PARTS: usize = 20;
/// Time after which a burst beside a foreground ends, if enough blocks have arrived by then for a rate.
const MAX_TIME_BESIDE_FOREGROUND: Nanos = Nanos::from_secs(20);

/// Reads whole blocks that are warm now, several at once, to measure the volume's rate.
pub(super) struct Burst<'a> {
    places: &'a [u64],
    block: u64,
    size: u64,
    paced: VolumePace<'a>,
    given: usize,
    /// Bytes of the current block that are still to be requested.
    left: Range<u64>,
    /// Number of requests in flight, without probes.
    in_flight: u32,
    /// Completions of blocks, or of parts of blocks beside a foreground: time and bytes, in order.
    completions: Vec<(Nanos, u64)>,
}

impl<'a> Burst<'a> {
    pub(super) fn new(
        places: &'a [u64],
        block: Bytes,
        size: Bytes,
        paced: VolumePace<'a>,
    ) -> Burst<'a> {
        Burst {
            places,
            block: block.0,
            size: size.0,
            paced,
            given: 0,
            left: 0..0,
            in_flight: 0,
            completions: Vec::new(),
        }
    }

    /// Rate in bytes a second, with a 95 % interval whose bounds are finite and above zero. `None` where too few blocks
    /// arrived.
    pub(super) fn rate(&self) -> Option<Interval> {
        // While the pacer still searches for its rate, the rate is not the volume's: at most half of the blocks.
        let half = self.completions.len() / 2;
        let from = match self.paced.pace.has_probed() {
            false => 0,
            true => half.min(self.completions.len().saturating_sub(RATE_PARTS)),
        };
        let (before, counting) = self.completions.split_at(from);
        let each = counting.len() / RATE_PARTS;
        let mut since = before.last().map_or(Nanos(0), |last| last.0);
        let mut per_byte_s = Vec::new();
        for part in counting.chunks_exact(each.max(1)).take(RATE_PARTS) {
            let until = part.last().map_or(since, |last| last.0);
            let bytes: u64 = part.iter().map(|one| one.1).sum();
            per_byte_s.push((until - since).as_secs_f64() / bytes as f64);
            since = until;
        }
        let per_byte_s = mean_interval(&per_byte_s).filter(|_| each > 0)?;
        let mean = 1.0 / per_byte_s.mean;
        Some(Interval {
            mean,
            low: 1.0 / per_byte_s.high,
            // The upper bound is at most twice the mean, however much the rate varied.
            high: (1.0 / per_byte_s.low.max(per_byte_s.mean / 2.0)).max(mean),
        })
        .filter(|rate| rate.low > 0.0 && rate.high.is_finite())
    }
}

impl Burst<'_> {
    /// The next request: a block, or a part of one beside a foreground.
    fn piece(&mut self) -> Option<Range<u64>> {
        if self.left.is_empty() {
            let &offset = self.places.get(self.given)?;
            self.given += 1;
            debug_assert!(offset + self.block <= self.size);
            self.left = offset..offset + self.block;
        }
        let most = match self.paced.pace.is_beside() {
            true => REQUEST_SIZE_BESIDE_FOREGROUND.0.min(self.block),
            false => self.block,
        };
        let piece = self.left.start..self.left.end.min(self.left.start + most);
        self.left.start = piece.end;
        Some(piece)
    }

    /// True if, beside a foreground, enough blocks have arrived to end the burst early.
    fn is_enough(&self, now: Nanos) -> bool {
        now >= MAX_TIME_BESIDE_FOREGROUND
            && self.completions.len() >= 2 * RATE_PARTS
            && self.paced.pace.is_beside()
    }
}

impl RequestSource for Burst<'_> {
    fn depth(&self) -> u32 {
        // One more, so that a probe does not wait for a free place in the queue.
        DEPTH + 1
    }

    fn next(&mut self, now: Nanos) -> Next {
        self.paced.adjust(now);
        let is_over = self.left.is_empty() && self.given >= self.places.len();
        if is_over || self.is_enough(now) {
            return Next::End;
        }
        // All of them are warm.
        let places = self.places;
        let warm = |place| places.get(place as usize).copied();
        if let Some(probe) = self.paced.pace.probe(now, places.len() as u64, warm) {
            return Next::Request(probe);
        }
        if self.in_flight >= DEPTH {
            return idle_wait(now);
        }
        if let Some(wait) = self.paced.pace.wait(now) {
            return wait;
        }
        let Some(piece) = self.piece() else {
            return Next::End;
        };
        self.in_flight += 1;
        self.paced
            .pace
            .note_issued(now, Bytes(piece.end - piece.start));
        Next::Request(Request::of(Op::Read, &piece, BLOCK))
    }

    fn done(&mut self, now: Nanos, done: CompletedRequest) {
        let bytes = Bytes(u64::from(done.request.len));
        if done.request.tag == PROBE_MARK {
            return self.paced.pace.note_probe(now, bytes, done.latency);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        self.paced
            .pace
            .note_completed(bytes, done.result.is_ok().then_some(done.latency));
        if done.result.is_ok() {
            self.completions.push((now, bytes.0));
        }
    }
}

/// Rate of each volume, in bytes a second, while the given blocks of all volumes are read at once, so that a limit that
/// they share affects the rates. `None` for a volume of which too few blocks arrived.
pub(super) fn read_together(
    each: &[(&Volume, &[u64])],
    block: Bytes,
    pacing: Pacing<'_>,
    lister: &dyn ListEngine,
    interrupt: &AtomicBool,
) -> Vec<Option<Interval>> {
    let one = |volume: &Volume, places: &[u64]| {
        let mut burst = Burst::new(places, block, volume.size, pacing.of(volume));
        let file = volume.direct().ok()?;
        let list = List {
            files: &[&file],
            memory: BufferMode::Reads,
            max_in_flight: DEPTH + 1,
            largest: block,
            interface: IoInterface::Auto,
            interrupt,
        };
        let ended = lister.run(&list, &mut burst);
        ended.ok().and_then(|_| burst.rate())
    };
    std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = each
            .iter()
            .map(|&(volume, places)| scope.spawn(move || one(volume, places)))
            .collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(rate) => rate,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::limit::SharedRateLimit;
    use super::super::super::pace::Pace;
    use super::*;

    fn unbound(limit: &SharedRateLimit) -> VolumePace<'_> {
        VolumePace::new(Pace::unbound(limit), None)
    }

    fn burst(limit: &SharedRateLimit, came: Vec<Nanos>) -> Burst<'_> {
        let came = came.into_iter().map(|at| (at, 1000));
        Burst {
            completions: came.collect(),
            ..Burst::new(&[], Bytes(1000), Bytes(0), unbound(limit))
        }
    }

    #[test]
    fn a_rate_has_an_interval_that_is_as_wide_as_it_wanders() {
        let limit = SharedRateLimit::new(None);
        let steady = (1..=400).map(|number| Nanos(number * 1_000_000)).collect();
        let rate = burst(&limit, steady).rate().unwrap();
        assert!((rate.mean - 1e6).abs() < 1.0, "{rate:?}");
        assert!(rate.low > 0.999e6 && rate.high < 1.001e6, "{rate:?}");
        let mut at = 0;
        let wandering = (0..400).map(|number| {
            at += if number / 20 % 2 == 0 {
                500_000
            } else {
                1_500_000
            };
            Nanos(at)
        });
        let rate = burst(&limit, wandering.collect()).rate().unwrap();
        assert!((rate.mean - 1e6).abs() < 1.0, "{rate:?}");
        assert!(rate.low < 0.98e6 && rate.high > 1.02e6, "{rate:?}");
        assert!(burst(&limit, vec![Nanos(1); 19]).rate().is_none());
        assert!(burst(&limit, vec![Nanos(0); 400]).rate().is_none());
    }

    #[test]
    fn a_limit_holds_it_back() {
        let limit = SharedRateLimit::new(Some(Bytes(10_000)));
        let places = [0, 1000, 2000];
        let mut burst = Burst::new(&places, Bytes(1000), Bytes(3000), unbound(&limit));
        let start = Nanos(1_000_000_000);
        assert!(matches!(burst.next(start), Next::Request(_)));
        assert!(matches!(burst.next(start), Next::Wait(_)));
    }
}
