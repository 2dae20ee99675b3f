//! The places of a sample, each read twice.

use engine::list::{Done, Feed, Next, Request};
use record::{Bytes, Nanos};
use study::cold::sample::Pair;

/// So many places are read.
pub(super) const PLACES: u64 = 400;
/// So many requests in flight: few enough that they do not wait for each other.
pub(super) const DEPTH: u32 = 4;
/// So many other places lie between the two reads of one, so that both see the same weather and the
/// second does not meet the first one's fetch.
pub(super) const LAG: usize = 32;
/// What is read of a place.
pub(super) const PAGE: u32 = 4096;

/// So many warm reads above what others may feel are no chance.
const SLOW: usize = 2;
/// After so many, of which fewer were slow, one more is in flight.
const FELT: usize = 25;

/// The first byte of a block in each of many equal parts of a volume, in an order of chance.
pub(super) fn places(size: Bytes, block: Bytes, seed: u64) -> Vec<u64> {
    let blocks = size.0 / block.0;
    let count = blocks.min(PLACES);
    let mut places: Vec<u64> = (0..count)
        .map(|part| {
            let from = part * blocks / count;
            let to = (part + 1) * blocks / count;
            (from + engine::part_of_seed(seed, part) % (to - from)) * block.0
        })
        .collect();
    places.sort_by_cached_key(|place| engine::part_of_seed(seed ^ 1, *place));
    places
}

/// Reads each place twice.
pub(super) struct Pairs<'a> {
    places: &'a [u64],
    /// How many requests were given out.
    given: usize,
    read: Vec<[Option<f64>; 2]>,
    /// What others' requests may take, in seconds.
    target_s: Option<f64>,
    /// So many are wanted in flight.
    depth: u32,
    /// Latencies of second reads, which are warm, since the depth was set.
    felt: Vec<f64>,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(places: &'a [u64], target: Option<Nanos>) -> Pairs<'a> {
        Pairs {
            places,
            given: 0,
            read: vec![[None; 2]; places.len()],
            target_s: target.map(|target| target.as_secs_f64()),
            depth: DEPTH,
            felt: Vec::new(),
        }
    }

    /// Which place is read with a request of this number, and whether for the second time. First
    /// reads and second ones, which lag behind, take turns.
    pub(super) fn turn(&self, number: usize) -> Option<(usize, bool)> {
        let count = self.places.len();
        let lag = LAG.min(count);
        if number >= 2 * count {
            None
        } else if number < lag {
            Some((number, false))
        } else if number >= 2 * count - lag {
            Some((number - count, true))
        } else {
            let step = number - lag;
            Some(if step.is_multiple_of(2) {
                (lag + step / 2, false)
            } else {
                (step / 2, true)
            })
        }
    }

    /// Fewer in flight while warm reads, which wait as those of others do, take longer than others' may.
    fn feel(&mut self, latency_s: f64) {
        let Some(target_s) = self.target_s else {
            return;
        };
        self.felt.push(latency_s);
        let slow = self.felt.iter().filter(|felt| **felt > target_s).count();
        if slow >= SLOW {
            self.depth = (self.depth / 2).max(1);
            self.felt.clear();
        } else if self.felt.len() >= FELT {
            self.depth = (self.depth + 1).min(DEPTH);
            self.felt.clear();
        }
    }

    /// The places of which both reads came back.
    pub(super) fn pairs(&self) -> Vec<Pair> {
        let both = |read: &[Option<f64>; 2]| match read {
            [Some(first_s), Some(second_s)] => Some(Pair {
                first_s: *first_s,
                second_s: *second_s,
            }),
            _ => None,
        };
        self.read.iter().filter_map(both).collect()
    }
}

impl Feed for Pairs<'_> {
    fn depth(&self) -> u32 {
        self.depth
    }

    fn next(&mut self, _now: Nanos) -> Next {
        let Some((place, again)) = self.turn(self.given) else {
            return Next::End;
        };
        self.given += 1;
        Next::Request(Request {
            offset: self.places[place],
            len: PAGE,
            tag: 2 * place as u64 + u64::from(again),
        })
    }

    fn done(&mut self, _now: Nanos, done: Done) {
        let tag = done.request.tag as usize;
        // A clock of a nanosecond may see none pass.
        let latency_s = done.latency.as_secs_f64().max(1e-9);
        if done.result.is_err() {
            return;
        }
        if let Some(read) = self.read.get_mut(tag / 2) {
            read[tag % 2] = Some(latency_s);
        }
        if tag % 2 == 1 {
            self.feel(latency_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_are_in_flight_while_others_would_wait_too_long() {
        let places: Vec<u64> = (0..400).map(|number| number << 19).collect();
        let mut pairs = Pairs::new(&places, Some(Nanos(5_000_000)));
        let mut depths = |latency_s: f64, reads: usize| {
            (0..reads).for_each(|_| pairs.feel(latency_s));
            pairs.depth
        };
        assert_eq!(depths(0.001, 100), DEPTH);
        assert_eq!(depths(0.006, SLOW), 2);
        assert_eq!(depths(0.006, SLOW), 1);
        assert_eq!(depths(0.006, 50), 1);
        assert_eq!(depths(0.001, 3 * FELT), DEPTH);
        let mut free = Pairs::new(&places, None);
        (0..100).for_each(|_| free.feel(1.0));
        assert_eq!(free.depth, DEPTH);
    }
}
