//! What volumes give when warm blocks of all of them are read at once: the rate of a forecast.

use std::sync::atomic::AtomicBool;

use engine::Choice;
use engine::list::{Deed, Done, Feed, List, Lister, Next, Request};
use record::{Bytes, Nanos};
use study::interval::{Interval, mean_interval};

use super::super::pace::{Limit, Manners, Pace};
use super::super::volume::Volume;

/// So many requests in flight: with 512 KiB each enough for more than any instance gives of warm
/// blocks, and few enough for others to live beside them.
pub(super) const DEPTH: u32 = 16;
/// The rate is that of so many equal parts, which show how it wanders.
const PARTS: usize = 20;

/// Reads whole blocks that are warm now, several at once, to see what the volume gives.
pub(super) struct Burst<'a> {
    places: &'a [u64],
    block: u32,
    size: u64,
    pace: Pace<'a>,
    given: usize,
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
            came: Vec::new(),
        }
    }

    /// Bytes a second, with a 95 % interval whose bounds are finite and above zero. `None` where too
    /// few blocks came.
    pub(super) fn rate(&self) -> Option<Interval> {
        let each = self.came.len() / PARTS;
        let part_bytes = each as f64 * f64::from(self.block);
        let mut since = Nanos(0);
        let mut spans = Vec::new();
        for part in self.came.chunks_exact(each.max(1)).take(PARTS) {
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

impl Feed for Burst<'_> {
    fn depth(&self) -> u32 {
        DEPTH
    }

    fn next(&mut self, now: Nanos) -> Next {
        let Some(&offset) = self.places.get(self.given) else {
            return Next::End;
        };
        if let Some(until) = self.pace.wait(now) {
            return Next::Wait(until);
        }
        self.given += 1;
        self.pace.goes(now, Bytes(u64::from(self.block)));
        debug_assert!(offset + u64::from(self.block) <= self.size);
        Next::Request(Request {
            offset,
            len: self.block,
            tag: 0,
        })
    }

    fn done(&mut self, now: Nanos, done: Done) {
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
    limit: Option<Bytes>,
    lister: &dyn Lister,
    interrupt: &AtomicBool,
) -> Vec<Option<Interval>> {
    let limit = Limit::new(limit, each.len());
    let one = |volume: &Volume, places: &[u64]| {
        let pace = Pace::new(&limit, Manners::None, None);
        let mut burst = Burst::new(places, block, volume.size, pace);
        let file = volume.direct().ok()?;
        let list = List {
            file: &file,
            deed: Deed::Read,
            most_in_flight: DEPTH,
            largest: block,
            choice: Choice::Auto,
            interrupt,
        };
        let ended = lister.run(&list, &mut burst);
        limit.leave();
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
        let pace = Pace::new(limit, Manners::None, None);
        Burst {
            came,
            ..Burst::new(&[], Bytes(1000), Bytes(0), pace)
        }
    }

    #[test]
    fn a_rate_has_an_interval_that_is_as_wide_as_it_wanders() {
        let limit = Limit::new(None, 1);
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
        let limit = Limit::new(Some(Bytes(10_000)), 1);
        let pace = Pace::new(&limit, Manners::None, None);
        let places = [0, 1000, 2000];
        let mut burst = Burst::new(&places, Bytes(1000), Bytes(3000), pace);
        let start = Nanos(1_000_000_000);
        assert!(matches!(burst.next(start), Next::Request(_)));
        assert!(matches!(burst.next(start), Next::Wait(_)));
    }
}
