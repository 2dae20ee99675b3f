//! The reading of one volume: gives the requests one after the other, and keeps account of what came
//! of them.
//!
//! - `narrowing`: the pieces of blocks that failed;
//! - `outcome`: what came of it;
//! - `probes`: where to ask how long others wait;
//! - `together`: what it gives beside other volumes.

mod narrowing;
mod outcome;
mod probes;
mod together;

use std::ops::Range;

use engine::list::{Done, Errno, Feed, Next, Request, RequestError};
use record::{Bytes, Nanos, Ranges};
use study::cold::stream::Stream;
use study::depth::{Bounds, Controller};

use super::later::Later;
use super::meter::Meter;
use super::pace::{Counted, Pace};
use super::plan::{Plan, Stage};
use super::queue::Queue;
use super::turns::{Turn, Turns};
use narrowing::Narrowing;
use together::Together;

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

/// Reads what a plan names.
pub(crate) struct Reading<'a> {
    queue: Queue,
    /// What to read in the end, if that is not known yet.
    later: Later,
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
    narrowing: Narrowing,
}

impl<'a> Reading<'a> {
    /// Reads `plan` of a volume of `size`, of which `done` is read already, and which has a number
    /// among those that take turns. The plan may be replaced `later`.
    pub(crate) fn new(
        (plan, later): (&Plan, Later),
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
            later,
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
            narrowing: Narrowing::default(),
        }
    }

    /// How many requests are wanted in flight.
    fn wanted(&self) -> usize {
        self.depth.as_ref().map_or(START_DEPTH, Controller::depth)
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
            self.look_at_plan();
            self.tell();
        }
    }

    /// Goes by the final plan, once it is known.
    fn look_at_plan(&mut self) {
        let Some((plan, asked)) = self.later.take() else {
            return;
        };
        let todo = plan.without(&self.done.union(&self.unreadable).union(&asked));
        self.queue.replace(&todo);
        self.planned = self.planned.union(&plan.all().subtract(&self.done));
        self.end_at(self.smallest_size);
    }

    /// What lies behind this is not read.
    fn end_at(&mut self, size: Bytes) {
        self.queue.cut_at(size.0);
        self.planned = self.planned.intersect(&Ranges::all(size));
        let covered = self.done.union(&self.unreadable);
        self.left = self.planned.subtract(&covered).total().0;
    }

    fn look_at_device(&mut self) {
        match self.watch.size() {
            None => self.gone = true,
            Some(size) => {
                self.size = size;
                if size < self.smallest_size {
                    self.smallest_size = size;
                    self.end_at(size);
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

    fn failed(&mut self, now: Nanos, range: Range<u64>, error: RequestError) {
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
        if !self.narrowing.has_time(now) {
            for piece in self.queue.give_up_pieces() {
                self.give_up(piece);
            }
            self.give_up(within);
        } else if !self.queue.narrow(&within) {
            self.give_up(within);
        }
    }

    /// Calls a place unreadable.
    fn give_up(&mut self, range: Range<u64>) {
        if range.end - range.start > u64::from(PROBE_BYTES) {
            self.narrowing.is_coarse_now();
        }
        self.left = self.left.saturating_sub(range.end - range.start);
        self.unreadable.insert(range);
    }

    /// The next request of the warming itself.
    fn next_of_plan(&mut self, now: Nanos) -> Next {
        let near = self.narrowing.with_room();
        if let Some(piece) = near.and_then(|near| self.queue.next_piece(near)) {
            self.narrowing.goes(now, piece.clone());
            return self.request(now, piece, PIECE);
        }
        match self.queue.next_block() {
            Some(range) => {
                self.later.asks(range.clone());
                self.request(now, range, BLOCK)
            }
            // What is in flight may fail, and is asked for again in pieces then.
            None if self.in_flight > 0 || self.later.is_open() => {
                self.look_at_plan();
                Next::Wait(now + NAP)
            }
            None => Next::End,
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
        self.next_of_plan(now)
    }

    fn done(&mut self, now: Nanos, done: Done) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let Request { offset, len, tag } = done.request;
        if tag == PROBE {
            self.pace.felt(Bytes(u64::from(len)), done.latency);
            return self.look(now);
        }
        let range = offset..offset + u64::from(len);
        if tag == PIECE {
            self.narrowing.came(now, &range);
        }
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
            Err(error) => self.failed(now, range, error),
        }
        self.look(now);
    }
}

#[cfg(test)]
mod tests;
