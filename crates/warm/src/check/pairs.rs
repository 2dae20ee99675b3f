//! The places of a sample, each read beside one that is warm.

use std::collections::VecDeque;

use engine::list::{CompletedRequest, Next, Request, RequestSource};
use record::{Bytes, Nanos};
use study::cold::sample::Pair;

use super::super::pace::{PROBE_MARK, idle_wait};
use super::volume_pace::VolumePace;

/// Number of places that are read.
pub(super) const SAMPLED_PLACES: u64 = 400;
/// Requests in flight: few enough that they do not wait for each other.
pub(super) const DEPTH: u32 = 4;
/// Number of other places between the two reads of one, once there are so many, so that the second does not meet what
/// the first has caused.
const PLACES_BETWEEN_READS: usize = 32;
/// Number of places that are read before there is a warm one to read beside them; they are not judged.
pub(super) const LEAD_PLACES: usize = 2;
/// Bytes that are read of a place: as many as by a probe.
pub(super) const PAGE: u32 = reader::PROBE_BYTES;

/// The first byte of a block in each of many equal parts of a volume, in an order of chance.
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
    /// The read succeeded after so many seconds.
    After(f64),
}

/// Reads each place for the first time, and in the same moment one that was read before.
///
/// Where the host or the volume stands still for a moment, all that is in flight is slow. So a first read
/// is judged by a warm one that is in flight with it, and chance says which of the two is issued first:
/// whatever holds them up meets either as likely as the other. The next reads go when all of these are
/// back, so that both begin together, at the volume's first place as at its last; beside a foreground when its
/// latency allows it, and one pair at a time.
pub(super) struct PairedReads<'a> {
    places: &'a [u64],
    seed: u64,
    /// Number of places that were given out.
    given: usize,
    /// Requests of the next round, and the number of those in flight.
    round: VecDeque<Request>,
    in_flight: usize,
    /// The first read of each place, and that of the warm one beside it.
    read: Vec<[ReadResult; 2]>,
    paced: VolumePace<'a>,
}

impl<'a> PairedReads<'a> {
    /// Reads these places, in an order by this seed.
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

    /// The place that is read beside this one: it is warm, and was read a while ago if it can be.
    fn warm_neighbour(&self, place: usize) -> Option<usize> {
        let lag = (place / 2).clamp(LEAD_PLACES, PLACES_BETWEEN_READS);
        warm_until(&self.read, place.checked_sub(lag)?)
    }

    /// A probe of foreground latency, if one is due, of a place that was read.
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

    /// The places whose first read came back, and the warm one beside it.
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

/// The last place up to this one that was read.
fn warm_until(read: &[[ReadResult; 2]], place: usize) -> Option<usize> {
    let is_warm = |place: &usize| matches!(read[*place][0], ReadResult::After(_));
    (0..=place).rev().find(is_warm)
}

impl RequestSource for PairedReads<'_> {
    fn depth(&self) -> u32 {
        // Room for a probe, which is not to wait for its turn here.
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
        // A clock of a nanosecond may see none pass.
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
