//! Rate of volumes when warm blocks of all of them are read at once: the rate of a forecast.

use std::sync::atomic::AtomicBool;

use engine::IoInterface;
use engine::list::{CompletedRequest, List, ListEngine, Memory, Next, Request, RequestSource};
use record::{Bytes, Nanos};
use study::interval::{Interval, mean_interval};

use super::super::limit::Limit;
use super::super::pace::{IoPolicy, Pace};
use super::pairs::PAGE;
use reader::Volume;

/// So many requests in flight: with 512 KiB each enough for more than any instance gives of warm
/// blocks, and few enough for others to live beside them.
pub(super) const DEPTH: u32 = 16;
/// The mark of a block.
const BLOCK: u64 = 0;
/// Mark of a request that is a probe of foreground latency.
const PROBE: u64 = 1;
/// A prime number: a step that reaches all places.
const SPREAD: usize = 7919;
/// Wait when nothing can be requested; a completion ends it earlier.
const NAP: Nanos = Nanos(10_000_000);
/// The rate is that of so many equal parts, which show how it wanders.
const PARTS: usize = 20;

/// Reads whole blocks that are warm now, several at once, to see what the volume gives.
pub(super) struct Burst<'a> {
    places: &'a [u64],
    block: u32,
    size: u64,
    pace: Pace<'a>,
    given: usize,
    /// Blocks in flight, and how many probes were sent.
    in_flight: u32,
    probes: usize,
    /// When the blocks came, in order.
    came: Vec<Nanos>,
}

impl<'a> Burst<'a> {
    pub(super) fn new(places: &'a [u64], block: Bytes, size: Bytes, pace: Pace<'a>) -> Burst<'a> {
        Burst {
            places,
            block: u32::try_from(block.0).unwrap_or(u32::MAX),
            size: size.0,
            pace,
            given: 0,
            in_flight: 0,
            probes: 0,
            came: Vec::new(),
        }
    }

    /// Bytes a second, with a 95 % interval whose bounds are finite and above zero. `None` where too
    /// few blocks came.
    pub(super) fn rate(&self) -> Option<Interval> {
        // While the pace is being found it is no rate of the volume's: that takes half of the blocks at most.
        let half = self.came.len() / 2;
        let from = match self.probes {
            0 => 0,
            _ => half.min(self.came.len().saturating_sub(PARTS)),
        };
        let (before, counting) = self.came.split_at(from);
        let each = counting.len() / PARTS;
        let part_bytes = each as f64 * f64::from(self.block);
        let mut since = before.last().copied().unwrap_or(Nanos(0));
        let mut spans = Vec::new();
        for part in counting.chunks_exact(each.max(1)).take(PARTS) {
            let until = part.last().copied().unwrap_or(since);
            spans.push((until - since).as_secs_f64());
            since = until;
        }
        let span = mean_interval(&spans).filter(|_| each > 0)?;
        let mean = part_bytes / span.mean;
        Some(Interval {
            mean,
            low: part_bytes / span.high,
            // No more is promised than twice what was seen, however much it wandered.
            high: (part_bytes / span.low.max(span.mean / 2.0)).max(mean),
        })
        .filter(|rate| rate.low > 0.0 && rate.high.is_finite())
    }
}

impl Burst<'_> {
    /// A page of a place, which is warm, as a probe of foreground latency.
    fn probe(&mut self) -> Option<Request> {
        self.probes += 1;
        let at = self.probes.wrapping_mul(SPREAD) % self.places.len().max(1);
        let place = self.places.get(at);
        place.map(|&offset| Request::read(offset, PAGE, PROBE))
    }
}

impl RequestSource for Burst<'_> {
    fn depth(&self) -> u32 {
        // Room for a probe, which is not to wait for its turn here.
        DEPTH + 1
    }

    fn next(&mut self, now: Nanos) -> Next {
        // The foreground is not counted: there may be one.
        self.pace.adjust(now, || None);
        let Some(&offset) = self.places.get(self.given) else {
            return Next::End;
        };
        if self.pace.probes(now) {
            match self.probe() {
                Some(probe) => return Next::Request(probe),
                None => self.pace.cannot_probe(),
            }
        }
        if self.in_flight >= DEPTH {
            return Next::Wait(now + NAP);
        }
        if let Some(until) = self.pace.wait(now) {
            return Next::Wait(until.min(now + NAP));
        }
        self.given += 1;
        self.in_flight += 1;
        self.pace.goes(now, Bytes(u64::from(self.block)));
        debug_assert!(offset + u64::from(self.block) <= self.size);
        Next::Request(Request::read(offset, self.block, BLOCK))
    }

    fn done(&mut self, now: Nanos, done: CompletedRequest) {
        let bytes = Bytes(u64::from(done.request.len));
        if done.request.tag == PROBE {
            return self.pace.probed(now, bytes, done.latency);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        self.pace.came(bytes);
        if done.result.is_ok() {
            self.came.push(now);
        }
    }
}

/// Reads these blocks of each volume, of all volumes at once, so that a limit that they share is in
/// the rates. `None` for a volume where that gave no rate.
pub(super) fn together(
    each: &[(&Volume, &[u64])],
    block: Bytes,
    (limit, policy): (Option<Bytes>, IoPolicy),
    lister: &dyn ListEngine,
    interrupt: &AtomicBool,
) -> Vec<Option<Interval>> {
    let limit = Limit::new(limit);
    let one = |volume: &Volume, places: &[u64]| {
        let pace = Pace::new(&limit, policy);
        let mut burst = Burst::new(places, block, volume.size, pace);
        let file = volume.direct().ok()?;
        let list = List {
            files: &[&file],
            memory: Memory::Reads,
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
    use super::*;

    fn burst(limit: &Limit, came: Vec<Nanos>) -> Burst<'_> {
        let pace = Pace::unbound(limit);
        Burst {
            came,
            ..Burst::new(&[], Bytes(1000), Bytes(0), pace)
        }
    }

    #[test]
    fn a_rate_has_an_interval_that_is_as_wide_as_it_wanders() {
        let limit = Limit::new(None);
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
        let limit = Limit::new(Some(Bytes(10_000)));
        let pace = Pace::unbound(&limit);
        let places = [0, 1000, 2000];
        let mut burst = Burst::new(&places, Bytes(1000), Bytes(3000), pace);
        let start = Nanos(1_000_000_000);
        assert!(matches!(burst.next(start), Next::Request(_)));
        assert!(matches!(burst.next(start), Next::Wait(_)));
    }
}
