//! The places of a sample, each read beside one that is warm.

use std::collections::VecDeque;

use engine::list::{CompletedRequest, Next, Request, RequestSource};
use record::{Bytes, Nanos};
use study::cold::sample::Pair;
use study::pace::Targets;

/// So many places are read.
pub(super) const PLACES: u64 = 400;
/// So many requests in flight: few enough that they do not wait for each other.
pub(super) const DEPTH: u32 = 4;
/// So many other places lie between the two reads of one, once there are so many, so that the second does
/// not meet what the first one has set off.
const LAG: usize = 32;
/// So many places are read before there is a warm one to read beside them; they are not judged.
pub(super) const LEAD: usize = 2;
/// Bytes that are read of a place.
pub(super) const PAGE: u32 = 4096;

/// So many warm reads above the foreground's target are significant.
const SLOW: usize = 2;
/// Wait when nothing can be requested; a completion ends it earlier.
const NAP: Nanos = Nanos(10_000_000);
/// After so many, of which fewer were slow, one more is in flight.
const ENOUGH_LATENCIES: usize = 25;

/// The first byte of a block in each of many equal parts of a volume, in an order of chance.
pub(super) fn places(size: Bytes, block: Bytes, seed: u64) -> Vec<u64> {
    let blocks = size.0 / block.0;
    let count = blocks.min(PLACES);
    let mut places: Vec<u64> = (0..count)
        .map(|part| {
            let from = part * blocks / count;
            let to = (part + 1) * blocks / count;
            (from + engine::derive_seed(seed, part) % (to - from)) * block.0
        })
        .collect();
    places.sort_by_cached_key(|place| engine::derive_seed(seed ^ 1, *place));
    places
}

/// Result of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Came {
    #[default]
    Nothing,
    Failed,
    /// After so many seconds.
    After(f64),
}

/// Reads each place for the first time, and in the same moment one that was read before.
///
/// Where the host or the volume stands still for a moment, all that is in flight is slow. So a first read
/// is judged by a warm one that is in flight with it, and chance says which of the two is issued first:
/// whatever holds them up meets either as likely as the other. The next reads go when all of these are
/// back, so that both begin together, at the volume's first place as at its last.
pub(super) struct Pairs<'a> {
    places: &'a [u64],
    seed: u64,
    /// Number of places that were given out.
    given: usize,
    /// Requests of the next round, and the number of those in flight.
    round: VecDeque<Request>,
    in_flight: usize,
    /// Of each place, the first read, and that of the warm one beside it.
    read: Vec<[Came; 2]>,
    /// Latency above which a request of the foreground is slow, in seconds.
    target_s: Option<f64>,
    /// So many are wanted in flight.
    depth: u32,
    /// Latencies of warm reads since the depth was set.
    latencies_s: Vec<f64>,
}

impl<'a> Pairs<'a> {
    /// Reads these places, in an order by this seed, within the foreground's target.
    pub(super) fn new(places: &'a [u64], seed: u64, target: Option<Targets>) -> Pairs<'a> {
        Pairs {
            places,
            seed,
            given: 0,
            round: VecDeque::new(),
            in_flight: 0,
            read: vec![[Came::Nothing; 2]; places.len()],
            target_s: target.and_then(|target| target.slow_s()),
            depth: DEPTH,
            latencies_s: Vec::new(),
        }
    }

    /// The place that is read beside this one: it is warm, and was read a while ago if it can be.
    fn beside(&self, place: usize) -> Option<usize> {
        let lag = (place / 2).clamp(LEAD, LAG);
        let is_warm = |place: &usize| matches!(self.read[*place][0], Came::After(_));
        (0..=place.checked_sub(lag)?).rev().find(is_warm)
    }

    /// Begins the next round: first reads, and the warm ones beside them.
    fn begin_round(&mut self) {
        let pairs = (self.depth as usize / 2).max(1);
        let until = (self.given + pairs).min(self.places.len());
        for place in self.given..until {
            let request = |of: usize, again: bool| {
                let tag = 2 * place as u64 + u64::from(again);
                Request::read(self.places[of], PAGE, tag)
            };
            let mut both = vec![request(place, false)];
            both.extend(self.beside(place).map(|warm| request(warm, true)));
            if engine::derive_seed(self.seed, place as u64).is_multiple_of(2) {
                both.reverse();
            }
            self.round.extend(both);
        }
        self.given = until;
    }

    /// Lowers the depth while warm reads, which wait as foreground requests do, exceed the target.
    fn observe(&mut self, latency_s: f64) {
        let Some(target_s) = self.target_s else {
            return;
        };
        self.latencies_s.push(latency_s);
        let slow = self
            .latencies_s
            .iter()
            .filter(|one| **one > target_s)
            .count();
        if slow >= SLOW {
            self.depth = (self.depth / 2).max(1);
            self.latencies_s.clear();
        } else if self.latencies_s.len() >= ENOUGH_LATENCIES {
            self.depth = (self.depth + 1).min(DEPTH);
            self.latencies_s.clear();
        }
    }

    /// The places whose first read came back, and the warm one beside it.
    pub(super) fn pairs(&self) -> Vec<Pair> {
        let both = |read: &[Came; 2]| match read {
            [Came::After(first_s), Came::After(warm_s)] => Some(Pair {
                first_s: *first_s,
                warm_s: *warm_s,
            }),
            _ => None,
        };
        self.read.iter().filter_map(both).collect()
    }

    /// Number of places that could not be read.
    pub(super) fn failed(&self) -> usize {
        let failed = |read: &&[Came; 2]| read[0] == Came::Failed;
        self.read.iter().filter(failed).count()
    }
}

impl RequestSource for Pairs<'_> {
    fn depth(&self) -> u32 {
        self.depth
    }

    fn next(&mut self, now: Nanos) -> Next {
        if self.round.is_empty() && self.in_flight == 0 {
            self.begin_round();
        }
        match self.round.pop_front() {
            Some(request) => {
                self.in_flight += 1;
                Next::Request(request)
            }
            None if self.in_flight > 0 => Next::Wait(now + NAP),
            None => Next::End,
        }
    }

    fn done(&mut self, _now: Nanos, done: CompletedRequest) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let tag = done.request.tag as usize;
        // A clock of a nanosecond may see none pass.
        let latency_s = done.latency.as_secs_f64().max(1e-9);
        let came = match done.result {
            Ok(()) => Came::After(latency_s),
            Err(_) => Came::Failed,
        };
        if let Some(read) = self.read.get_mut(tag / 2) {
            read[tag % 2] = came;
        }
        if tag % 2 == 1 && done.result.is_ok() {
            self.observe(latency_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_are_in_flight_while_others_would_wait_too_long() {
        let places: Vec<u64> = (0..400).map(|number| number << 19).collect();
        let target = Targets {
            mean_s: None,
            p99_s: Some(0.005),
        };
        let mut pairs = Pairs::new(&places, 1, Some(target));
        let mut depths = |latency_s: f64, reads: usize| {
            (0..reads).for_each(|_| pairs.observe(latency_s));
            pairs.depth
        };
        assert_eq!(depths(0.001, 100), DEPTH);
        assert_eq!(depths(0.006, SLOW), 2);
        assert_eq!(depths(0.006, SLOW), 1);
        assert_eq!(depths(0.006, 50), 1);
        assert_eq!(depths(0.001, 3 * ENOUGH_LATENCIES), DEPTH);
        let mut free = Pairs::new(&places, 1, None);
        (0..100).for_each(|_| free.observe(1.0));
        assert_eq!(free.depth, DEPTH);
    }
}
