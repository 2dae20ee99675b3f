//! The places of a sample, each read beside one that is warm.

use std::collections::VecDeque;

use engine::list::{CompletedRequest, Next, Request, RequestSource};
use record::{Bytes, Nanos};
use study::cold::sample::Pair;

use super::super::pace::{PROBE_MARK, idle_wait};
use super::volume_pace::VolumePace;

/// Number of places that are read.
pub(super) const SAMPLED_PLACES: u64 = 400;
/// Number of requests in flight: few enough not to wait for each other.
pub(super) const DEPTH: u32 = 4;
/// Number of other places that are read between the first and the second read of a place, once so many were read: the
/// second read is then not affected by the fetch that the first one caused.
const PLACES_BETWEEN_READS: usize = 32;
/// Number of places that are read first, without a warm place beside them; their latencies are not judged.
pub(super) const LEAD_PLACES: usize = 2;
/// Bytes that are read at a place: as many as by a probe.
pub(super) const PAGE: u32 = reader::PROBE_BYTES;

/// Offsets of one random block in each of up to [`SAMPLED_PLACES`] equal parts of a volume, in random order.
pub(super) fn places(size: Bytes, block: Bytes, seed: u64) -> Vec<u64> {
    let blocks = size.0 / block.0;
    let count = blocks.min(SAMPLED_PLACES);
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
enum ReadResult {
    #[default]
    Nothing,
    Failed,
    /// The read succeeded, with this latency in seconds.
    After(f64),
}

/// Reads each place for the first time, and at the same moment a place that was read before.
///
/// Where the host or the volume stalls for a moment, all requests in flight are slow. So a first read is compared with
/// a warm read that is in flight with it, and which of the two is issued first is random: a stall affects either with
/// the same probability. The next pairs are issued when all requests of the current ones have completed, so that both
/// reads of a pair begin together. Beside a foreground there is one pair at a time, when the foreground's latency
/// allows it.
pub(super) struct PairedReads<'a> {
    places: &'a [u64],
    seed: u64,
    /// Number of places whose reads were requested.
    given: usize,
    /// Requests of the current round that are not issued yet.
    round: VecDeque<Request>,
    /// Number of requests in flight, without probes.
    in_flight: usize,
    /// Results of the first read of each place and of the warm read beside it.
    read: Vec<[ReadResult; 2]>,
    paced: VolumePace<'a>,
}

impl<'a> PairedReads<'a> {
    /// Reads these places in their order. By the seed, either the first read or the warm one of a pair is issued first.
    pub(super) fn new(places: &'a [u64], seed: u64, paced: VolumePace<'a>) -> PairedReads<'a> {
        PairedReads {
            places,
            seed,
            given: 0,
            round: VecDeque::new(),
            in_flight: 0,
            read: vec![[ReadResult::Nothing; 2]; places.len()],
            paced,
        }
    }

    /// Index of the warm place that is read beside this one. It lies [`PLACES_BETWEEN_READS`] places back; near the
    /// start, half as far back as there are places. `None` where no place as far back was read successfully.
    fn warm_neighbour(&self, place: usize) -> Option<usize> {
        let lag = (place / 2).clamp(LEAD_PLACES, PLACES_BETWEEN_READS);
        warm_until(&self.read, place.checked_sub(lag)?)
    }

    /// A probe of foreground latency at a place that was read, if one is due.
    fn probe(&mut self, now: Nanos) -> Option<Request> {
        let (places, read) = (self.places, &self.read);
        let warm = |place| warm_until(read, place as usize).map(|place| places[place]);
        self.paced.pace.probe(now, self.given as u64, warm)
    }

    /// Begins the next round: first reads, and the warm ones beside them.
    fn begin_round(&mut self) {
        let pairs = match self.paced.pace.is_beside() {
            true => 1,
            false => DEPTH as usize / 2,
        };
        let until = (self.given + pairs).min(self.places.len());
        for place in self.given..until {
            let request = |of: usize, again: bool| {
                let tag = 2 * place as u64 + u64::from(again);
                Request::read(self.places[of], PAGE, tag)
            };
            let mut both = vec![request(place, false)];
            both.extend(self.warm_neighbour(place).map(|warm| request(warm, true)));
            if engine::derive_seed(self.seed, place as u64).is_multiple_of(2) {
                both.reverse();
            }
            self.round.extend(both);
        }
        self.given = until;
    }

    /// Latencies of the places of which both the first read and the warm read beside it succeeded.
    pub(super) fn pairs(&self) -> Vec<Pair> {
        let both = |read: &[ReadResult; 2]| match read {
            [ReadResult::After(first_s), ReadResult::After(warm_s)] => Some(Pair {
                first_s: *first_s,
                warm_s: *warm_s,
            }),
            _ => None,
        };
        self.read.iter().filter_map(both).collect()
    }

    /// Number of places that could not be read.
    pub(super) fn failed(&self) -> usize {
        let failed = |read: &&[ReadResult; 2]| read[0] == ReadResult::Failed;
        self.read.iter().filter(failed).count()
    }
}

/// Index of the last place, up to this one, that was read successfully.
fn warm_until(read: &[[ReadResult; 2]], place: usize) -> Option<usize> {
    let is_warm = |place: &usize| matches!(read[*place][0], ReadResult::After(_));
    (0..=place).rev().find(is_warm)
}

impl RequestSource for PairedReads<'_> {
    fn depth(&self) -> u32 {
        // One more, so that a probe does not wait for a free place in the queue.
        DEPTH + 1
    }

    fn next(&mut self, now: Nanos) -> Next {
        self.paced.adjust(now);
        if self.round.is_empty() {
            let is_back = self.in_flight == 0;
            if is_back && self.given >= self.places.len() {
                return Next::End;
            }
            // Until the first place is warm there is nothing to probe.
            let last = self.given.checked_sub(1);
            let is_warm = last.is_some_and(|last| warm_until(&self.read, last).is_some());
            if is_warm && let Some(probe) = self.probe(now) {
                return Next::Request(probe);
            }
            if !is_back {
                return idle_wait(now);
            }
            if let Some(wait) = self.paced.pace.wait(now) {
                return wait;
            }
            self.begin_round();
        }
        let Some(request) = self.round.pop_front() else {
            return Next::End;
        };
        self.in_flight += 1;
        self.paced.pace.note_issued(now, Bytes(u64::from(PAGE)));
        Next::Request(request)
    }

    fn done(&mut self, now: Nanos, done: CompletedRequest) {
        let bytes = Bytes(u64::from(done.request.len));
        if done.request.tag == PROBE_MARK {
            return self.paced.pace.note_probe(now, bytes, done.latency);
        }
        self.paced
            .pace
            .note_completed(bytes, done.result.is_ok().then_some(done.latency));
        self.in_flight = self.in_flight.saturating_sub(1);
        let tag = done.request.tag as usize;
        // The measured latency may be 0 ns.
        let latency_s = done.latency.as_secs_f64().max(1e-9);
        let came = match done.result {
            Ok(()) => ReadResult::After(latency_s),
            Err(_) => ReadResult::Failed,
        };
        if let Some(read) = self.read.get_mut(tag / 2) {
            read[tag % 2] = came;
        }
    }
}
