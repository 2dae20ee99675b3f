//! The reading of one volume: gives the requests one after the other, and keeps account of what came
//! of them.

use std::ops::Range;

use engine::list::{Done, Errno, Feed, Next, Request, RequestError};
use record::{Bytes, Nanos, Ranges};
use study::cold::forecast::MERGE_BYTES;
use study::cold::stream::Stream;
use study::depth::verdict::{self, Binds, Caps, Verdict};
use study::depth::{Bounds, Controller};

use super::meter::Meter;
use super::pace::{Counted, Pace};
use super::plan::{Plan, Stage};
use super::queue::Queue;
use super::turns::{Turn, Turns};

/// The least and the most requests in flight. At 512 KiB and 50 ms a request the most is 1.3 GB/s, which
/// is more than most volumes give; a deeper queue would make others wait for seconds on a small one.
pub(crate) const LEAST_DEPTH: usize = 4;
/// See [`LEAST_DEPTH`].
pub(crate) const MOST_DEPTH: usize = 128;
/// With so many it begins.
const START_DEPTH: usize = 16;
/// The mark of a request that only asks how long others wait.
const PROBE: u64 = 1;
/// The mark of a piece of a block that failed.
const PIECE: u64 = 2;
/// The mark of a block.
const BLOCK: u64 = 0;
/// The size of a probe: a page, as databases read them at least.
const PROBE_BYTES: u32 = 4096;
/// How often the device is looked at, and how the work stands is told.
const LOOK_EVERY: Nanos = Nanos(250_000_000);
/// A turn alone ends when it is known what the volume gives, or after this long.
const LONGEST_TURN: Nanos = Nanos(10_000_000_000);
/// What several volumes give together counts after so long a time, and when it lasted as long.
const SETTLE: Nanos = Nanos(2_000_000_000);
/// See [`SETTLE`].
const LONG_ENOUGH: Nanos = Nanos(2_000_000_000);
/// So long may be spent on finding out which parts of bad blocks can be read: some disks take half a
/// minute for each, one after the other.
const LONGEST_NARROWING: Nanos = Nanos(600_000_000_000);
/// How long to wait when nothing can be asked for; what comes back ends it earlier.
const NAP: Nanos = Nanos(10_000_000);

/// What is known of the device from elsewhere, while it is read.
pub(crate) trait Watch {
    /// Its size now; `None` when it is gone.
    fn size(&self) -> Option<Bytes>;
    /// What was counted on it since this was asked last.
    fn counted(&mut self) -> Option<Counted>;
    /// How the work stands, told about four times a second.
    fn stands(&mut self, at: &At<'_>);
}

/// How the work stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    /// What was read, now or at an earlier start.
    pub done: &'a Ranges,
    /// What could not be read.
    pub unreadable: &'a Ranges,
    /// The set that is being read.
    pub stage: Option<Stage>,
    /// Bytes a second, of late.
    pub rate: Option<f64>,
    /// The share of what was read just now that was cold, where that could be told.
    pub cold: Option<f64>,
    /// Requests wanted in flight.
    pub depth: usize,
    /// Bytes that are still to be read.
    pub left: Bytes,
}

/// Why nothing more is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// All was asked for.
    All,
    /// The device is gone.
    Gone,
}

/// What came while all volumes were read together, from a little after that began.
#[derive(Clone, Copy, Debug, Default)]
struct Together {
    since: Option<Nanos>,
    until: Nanos,
    bytes: u64,
}

impl Together {
    /// They are read together now.
    fn goes_on(&mut self, now: Nanos) {
        self.since.get_or_insert(now + SETTLE);
        self.until = now;
    }

    fn came(&mut self, now: Nanos, bytes: u64) {
        // Once one of them has ended it does not go on any more.
        let lasts = self.since.is_some_and(|since| now >= since);
        if lasts && now - self.until <= LOOK_EVERY {
            self.bytes += bytes;
        }
    }

    /// Bytes a second; `None` where it did not last.
    fn rate(&self) -> Option<f64> {
        let lasted = self.until - self.since?;
        (lasted >= LONG_ENOUGH && self.bytes > 0).then(|| self.bytes as f64 / lasted.as_secs_f64())
    }
}

/// Reads what a plan names.
pub(crate) struct Reading<'a> {
    queue: Queue,
    pace: Pace<'a>,
    meter: Meter,
    /// `None` only if the bounds were none: the depth stays then.
    depth: Option<Controller>,
    stream: Stream,
    watch: &'a mut dyn Watch,
    turns: &'a Turns,
    /// Its number among the volumes.
    number: usize,
    /// When its turn alone began, and what it gave then, in bytes a second.
    turn_began: Option<Nanos>,
    alone: Option<f64>,
    /// What it gave while all volumes were read together.
    together: Together,
    planned: Ranges,
    done: Ranges,
    unreadable: Ranges,
    /// Bytes that were read at this start.
    read: u64,
    /// Bytes of the plan that were neither read nor given up.
    left: u64,
    gone: bool,
    block: Bytes,
    size: Bytes,
    smallest_size: Bytes,
    probes: u64,
    looked: Nanos,
    /// Requests of all kinds.
    in_flight: u32,
    piece_in_flight: bool,
    /// How long pieces were waited for.
    narrowing: Nanos,
    /// Whether something is called unreadable of which a part may not be.
    is_coarse: bool,
}

impl<'a> Reading<'a> {
    /// Reads `plan` of a volume of `size`, of which `done` is read already, and which has a number
    /// among those that take turns.
    pub(crate) fn new(
        plan: &Plan,
        size: Bytes,
        block: Bytes,
        done: Ranges,
        pace: Pace<'a>,
        (turns, number): (&'a Turns, usize),
        watch: &'a mut dyn Watch,
    ) -> Reading<'a> {
        let bounds = Bounds::new(LEAST_DEPTH, MOST_DEPTH);
        Reading {
            queue: Queue::new(plan, block),
            pace,
            meter: Meter::default(),
            depth: bounds.map(|bounds| Controller::new(bounds, START_DEPTH)),
            stream: Stream::new(None),
            watch,
            turns,
            number,
            turn_began: None,
            alone: None,
            together: Together::default(),
            planned: plan.all(),
            done,
            unreadable: Ranges::new(),
            read: 0,
            left: plan.total().0,
            gone: false,
            block,
            size,
            smallest_size: size,
            probes: 0,
            looked: Nanos(0),
            in_flight: 0,
            piece_in_flight: false,
            narrowing: Nanos(0),
            is_coarse: false,
        }
    }

    /// How many requests are wanted in flight.
    fn wanted(&self) -> usize {
        self.depth.as_ref().map_or(START_DEPTH, Controller::depth)
    }

    /// Why nothing more was asked for.
    pub(crate) fn over(&self) -> Over {
        if self.gone { Over::Gone } else { Over::All }
    }

    /// What was read, now or at an earlier start.
    pub(crate) fn done_ranges(&self) -> &Ranges {
        &self.done
    }

    /// What could not be read.
    pub(crate) fn unreadable(&self) -> &Ranges {
        &self.unreadable
    }

    /// Whether more is called unreadable than may be, since to look closer would have taken too long.
    pub(crate) fn is_coarse(&self) -> bool {
        self.is_coarse
    }

    /// How much was read at this start.
    pub(crate) fn read(&self) -> Bytes {
        Bytes(self.read)
    }

    /// The share of what was read at this start that was cold, where that could be told.
    pub(crate) fn cold_share(&self) -> Option<f64> {
        self.stream.cold_share()
    }

    /// What held the rate where it was; `None` when it was over before that was known.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        verdict::of_one(self.depth.as_ref()?, &Caps::default())
    }

    /// What it gave while all volumes were read together, and the bytes a second that it gave alone.
    pub(crate) fn in_company(&self) -> Option<(Verdict, f64)> {
        let bytes_per_s = self.together.rate()?;
        let depth = self.wanted();
        let binds = match self.verdict() {
            Some(verdict) => verdict.binds,
            None => Binds::Unknown,
        };
        let requests_per_s = bytes_per_s / self.block.0 as f64;
        let together = Verdict {
            binds,
            bytes_per_s,
            iops: bytes_per_s / MERGE_BYTES as f64,
            depth,
            latency_s: depth as f64 / requests_per_s,
            share_of_limit: None,
        };
        Some((together, self.alone?))
    }

    /// Whether it may read now, by its turn.
    fn has_turn(&mut self, now: Nanos) -> bool {
        match self.turns.of(self.number) {
            Turn::Wait => false,
            Turn::Together => true,
            Turn::Alone => {
                let began = *self.turn_began.get_or_insert(now);
                let level = self.depth.as_ref().and_then(Controller::level);
                let known = level.map(|level| level.bytes_per_s);
                if known.is_some() || now - began >= LONGEST_TURN {
                    self.alone = known.or(self.meter.recent_rate());
                    self.turns.pass(self.number);
                }
                true
            }
        }
    }

    /// The size of the volume at the last look, and the smallest that was seen.
    pub(crate) fn sizes(&self) -> (Bytes, Bytes) {
        (self.size, self.smallest_size)
    }

    fn request(&mut self, now: Nanos, range: Range<u64>, tag: u64) -> Next {
        self.in_flight += 1;
        if tag != PROBE {
            self.meter.issued(now);
            self.pace.goes(now, Bytes(range.end - range.start));
        }
        Next::Request(Request {
            offset: range.start,
            len: u32::try_from(range.end - range.start).unwrap_or(u32::MAX),
            tag,
        })
    }

    /// A place that is warm, another one each time.
    fn warm_place(&mut self) -> Option<Range<u64>> {
        let length = u64::from(PROBE_BYTES);
        let pages = self.done.total().0 / length;
        self.probes = self.probes.wrapping_add(1);
        // A multiplication by the golden ratio spreads the places over all (Knuth, volume 3, 6.4).
        let spread = self.probes.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut at = ((u128::from(spread) * u128::from(pages)) >> 64) as u64 * length;
        for range in self.done.iter() {
            let own = range.end - range.start;
            if at + length <= own {
                let start = (range.start + at).next_multiple_of(length);
                return (start + length <= range.end).then_some(start..start + length);
            }
            at = at.saturating_sub(own);
        }
        None
    }

    fn look(&mut self, now: Nanos) {
        if let (Some(interval), Some(depth)) = (self.meter.interval(now), &mut self.depth) {
            depth.observe(&interval);
        }
        let watch = &mut *self.watch;
        self.pace.adjust(now, || watch.counted());
        if now - self.looked >= LOOK_EVERY {
            self.looked = now;
            if self.turns.all_together() {
                self.together.goes_on(now);
            }
            self.look_at_device();
            self.tell();
        }
    }

    fn look_at_device(&mut self) {
        match self.watch.size() {
            None => self.gone = true,
            Some(size) => {
                self.size = size;
                if size < self.smallest_size {
                    self.smallest_size = size;
                    self.queue.cut_at(size.0);
                    self.planned = self.planned.intersect(&Ranges::all(size));
                    let covered = self.done.union(&self.unreadable);
                    self.left = self.planned.subtract(&covered).total().0;
                }
            }
        }
    }

    /// Tells how the work stands.
    pub(crate) fn tell(&mut self) {
        self.watch.stands(&At {
            done: &self.done,
            unreadable: &self.unreadable,
            stage: self.queue.stage(),
            rate: self.meter.recent_rate(),
            cold: self.stream.cold_share(),
            depth: self.wanted(),
            left: Bytes(self.left),
        });
    }

    fn failed(&mut self, range: Range<u64>, error: RequestError) {
        self.look_at_device();
        let lost = matches!(
            error,
            RequestError::Kernel(Errno::NODEV | Errno::NXIO | Errno::NOMEDIUM)
        );
        if lost || self.gone {
            self.gone = true;
            return;
        }
        let within = range.start..range.end.min(self.smallest_size.0);
        if within.is_empty() {
            return;
        }
        let in_time = self.narrowing < LONGEST_NARROWING;
        if !(in_time && self.queue.narrow(&within)) {
            self.is_coarse |= within.end - within.start > u64::from(PROBE_BYTES);
            self.left = self.left.saturating_sub(within.end - within.start);
            self.unreadable.insert(within);
        }
    }
}

impl Feed for Reading<'_> {
    fn depth(&self) -> u32 {
        // Room for a probe, which is not to wait for its turn here.
        u32::try_from(self.wanted() + 1).unwrap_or(u32::MAX)
    }

    fn next(&mut self, now: Nanos) -> Next {
        self.look(now);
        if self.gone {
            return Next::End;
        }
        if !self.has_turn(now) {
            return Next::Wait(now + NAP);
        }
        if self.pace.probes(now)
            && let Some(place) = self.warm_place()
        {
            return self.request(now, place, PROBE);
        }
        if self.meter.in_flight() as usize >= self.wanted() {
            return Next::Wait(now + NAP);
        }
        if let Some(until) = self.pace.wait(now) {
            return Next::Wait(until.min(now + NAP));
        }
        if !self.piece_in_flight
            && let Some(piece) = self.queue.next_piece()
        {
            self.piece_in_flight = true;
            return self.request(now, piece, PIECE);
        }
        match self.queue.next_block() {
            Some(range) => self.request(now, range, BLOCK),
            // What is in flight may fail, and is asked for again in pieces then.
            None if self.in_flight > 0 => Next::Wait(now + NAP),
            None => Next::End,
        }
    }

    fn done(&mut self, now: Nanos, done: Done) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let Request { offset, len, tag } = done.request;
        if tag == PROBE {
            self.pace.felt(done.latency);
            return self.look(now);
        }
        if tag == PIECE {
            self.piece_in_flight = false;
            self.narrowing += done.latency;
        }
        let range = offset..offset + u64::from(len);
        let moved = if done.result.is_ok() {
            u64::from(len)
        } else {
            0
        };
        self.meter.came(now, Bytes(moved), done.latency);
        self.pace.came(Bytes(moved));
        match done.result {
            Ok(()) => {
                self.stream.watch(done.latency.as_secs_f64());
                self.read += moved;
                // What lies behind a new end was taken off already.
                let within = range.end.min(self.smallest_size.0);
                let counts = within.saturating_sub(range.start);
                self.left = self.left.saturating_sub(counts);
                self.together.came(now, moved);
                self.done.insert(range);
            }
            Err(error) => self.failed(range, error),
        }
        self.look(now);
    }
}

#[cfg(test)]
mod tests;
