//! The reading of one volume: issues the requests, and accounts for their results.
//!
//! - `doubt`: whether a device that fails all requests still answers any;
//! - `outcome`: the result;
//! - `probes`: the probes of foreground latency;
//! - `common_rate`: the rate while all volumes are read together.

mod common_rate;
mod doubt;
mod outcome;
mod probes;

use std::ops::Range;

use engine::list::{CompletedRequest, Next, Op, Request, RequestError, RequestSource};
use record::{Bytes, Nanos, Ranges};
use study::cold::stream::ReadClassifier;
use study::depth::{Bounds, Controller};

use super::pace::{KernelBytes, PROBE_MARK, Pace, idle_wait};
use super::plan::{Plan, Stage};
use super::turns::{Turn, Turns};
use super::wanted_space::FinalPlanReceiver;
use common_rate::{CombinedRate, POLL_EVERY};
use doubt::DeviceDoubt;
use reader::{Meter, REQUEST_SIZE_BESIDE_FOREGROUND, ReadRequest, Work};

/// Minimum number of requests in flight.
pub(crate) const MIN_DEPTH: usize = 4;
/// Maximum number of requests in flight. At 512 KiB and 50 ms a request this gives 1.3 GB/s, more than the limit of
/// most volumes; on a small volume a deeper queue would delay the foreground by seconds.
pub(crate) const MAX_DEPTH: usize = 128;
/// Requests in flight at the start: enough for a cold volume of 3,000 IOPS and 125 MiB/s. In simulation, warming such a
/// volume from a depth of 16 took 0.6 to 2.5 % longer, and larger volumes took no less (`table_of_depths` in `study`).
const START_DEPTH: usize = 32;
/// Tag of a request for a piece of a block that failed.
const PIECE_MARK: u64 = 2;
/// Tag of a request for a page that tests whether the device answers.
const PRESENCE_MARK: u64 = 3;
/// Tag of a request for a block.
const BLOCK: u64 = 0;

/// Source of facts about the device while it is read, and receiver of the progress.
pub(crate) trait DeviceObserver {
    /// Current size of the device; `None` when it is gone.
    fn size(&self) -> Option<Bytes>;
    /// The kernel's counts since the last call.
    fn counted(&mut self) -> Option<KernelBytes>;
    /// Takes the progress, about four times a second.
    fn take_progress(&mut self, at: &ReadingProgress<'_>);
}

/// Ranges read so far, and the rate.
#[derive(Clone, Debug)]
pub(crate) struct ReadingProgress<'a> {
    /// Ranges that were read, now or at an earlier start.
    pub done: &'a Ranges,
    /// Ranges that could not be read.
    pub unreadable: &'a Ranges,
    /// The set that is being read.
    pub stage: Option<Stage>,
    /// Recent rate, in bytes a second.
    pub rate: Option<f64>,
    /// Share of the recent reads that were cold, from 0 to 1, where it is known.
    pub cold: Option<f64>,
    /// Number of requests to keep in flight.
    pub depth: usize,
    /// Bytes that are still to be read.
    pub left: Bytes,
    /// Text with latency and target of the foreground.
    pub foreground: Option<String>,
}

/// Reason why no more is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndOfReading {
    /// Everything was requested.
    All,
    /// The device is gone.
    Gone,
    /// The device is listed, and answers nothing any more.
    Silent,
}

fn bounds() -> Option<Bounds> {
    Bounds::new(MIN_DEPTH, MAX_DEPTH)
}

/// The reading of a plan's ranges.
pub(crate) struct Reading<'a> {
    work: Work<Stage>,
    /// Receiver of the final plan, if it is not known yet.
    later: FinalPlanReceiver,
    pace: Pace<'a>,
    meter: Meter,
    /// Controller of the number of requests in flight; `None` only if the bounds are invalid: the depth is then
    /// constant.
    depth: Option<Controller>,
    stream: ReadClassifier,
    watch: &'a mut dyn DeviceObserver,
    turns: &'a Turns,
    /// Number of this volume among all.
    number: usize,
    /// Start of this volume's turn alone.
    turn_began: Option<Nanos>,
    /// Rate during the turn alone, in bytes a second.
    alone: Option<f64>,
    /// Rate while all volumes were read together.
    together: CombinedRate,
    gone: bool,
    block: Bytes,
    size: Bytes,
    polled: Nanos,
    /// Number of requests in flight, of all kinds.
    in_flight: u32,
    doubt: DeviceDoubt,
}

impl<'a> Reading<'a> {
    /// Reads the ranges of `plan` from a volume of `size` bytes, of which `done` is already read. `number` is the
    /// volume's among those that take turns. `later` may deliver another plan.
    pub(crate) fn new(
        (plan, later): (&Plan, FinalPlanReceiver),
        size: Bytes,
        block: Bytes,
        done: Ranges,
        pace: Pace<'a>,
        (turns, number): (&'a Turns, usize),
        watch: &'a mut dyn DeviceObserver,
    ) -> Reading<'a> {
        Reading {
            work: Work::new(&plan.stages, block, done, size),
            later,
            pace,
            meter: Meter::default(),
            depth: bounds().map(|bounds| Controller::new(bounds, START_DEPTH)),
            stream: ReadClassifier::new(None),
            watch,
            turns,
            number,
            turn_began: None,
            alone: None,
            together: CombinedRate::default(),
            gone: false,
            block,
            size,
            polled: Nanos(0),
            in_flight: 0,
            doubt: DeviceDoubt::default(),
        }
    }

    /// Number of requests to keep in flight.
    fn wanted(&self) -> usize {
        self.depth.as_ref().map_or(START_DEPTH, Controller::depth)
    }

    /// True if the volume may be read now, by the turns of all volumes.
    fn has_turn(&mut self, now: Nanos) -> bool {
        if self.work.set() != Some(Stage::First) {
            self.turns.note_first_set_warm(self.number);
        }
        match self.turns.of(self.number) {
            Turn::Wait => false,
            Turn::Together => true,
            Turn::Alone => {
                self.continue_turn(now);
                true
            }
        }
    }

    /// Ends the turn alone once the rate is known or the time is over. The turn begins with its first request.
    fn continue_turn(&mut self, now: Nanos) {
        let Some(began) = self.turn_began else {
            return;
        };
        let level = self.depth.as_ref().and_then(Controller::level);
        let known = level.map(|level| level.bytes_per_s);
        if known.is_some() || now - began >= self.turns.longest() {
            self.alone = known.or(self.meter.recent_rate());
            self.turns.pass(self.number);
        }
    }

    /// Notes that a request is issued. If it is the first of the turn alone, measurements from before the turn are
    /// discarded.
    fn note_turn_started(&mut self, now: Nanos) {
        let is_alone = self.turns.of(self.number) == Turn::Alone;
        if is_alone && self.turn_began.is_none() {
            self.turn_began = Some(now);
            let depth = self.wanted();
            self.depth = bounds().map(|bounds| Controller::new(bounds, depth));
            self.meter.forget();
        }
    }

    fn request(&mut self, now: Nanos, range: Range<u64>, tag: u64) -> Next {
        self.in_flight += 1;
        self.note_turn_started(now);
        self.meter.issued(now);
        self.pace.note_issued(now, Bytes(range.end - range.start));
        Next::Request(Request::of(Op::Read, &range, tag))
    }

    fn poll(&mut self, now: Nanos) {
        if let (Some(interval), Some(depth)) = (self.meter.interval(now), &mut self.depth) {
            depth.observe(&interval);
        }
        let watch = &mut *self.watch;
        self.pace.adjust(now, || watch.counted());
        if now - self.polled >= POLL_EVERY {
            self.polled = now;
            if self.turns.all_together() {
                self.together.note_together(now);
            }
            self.poll_device();
            self.poll_plan();
            self.report();
        }
    }

    /// Replaces the plan by the final one, once it is known.
    fn poll_plan(&mut self) {
        let Some((plan, requested)) = self.later.take() else {
            return;
        };
        let covered = self.work.done().union(self.work.unreadable());
        let todo = plan.without(&covered.union(&requested));
        self.work.replace(&todo.stages, &plan.all());
    }

    fn poll_device(&mut self) {
        match self.watch.size() {
            None => self.gone = true,
            Some(size) => {
                self.size = size;
                if size < self.work.end() {
                    self.work.end_at(size);
                }
            }
        }
    }

    /// Reports the progress.
    pub(crate) fn report(&mut self) {
        self.watch.take_progress(&ReadingProgress {
            done: self.work.done(),
            unreadable: self.work.unreadable(),
            stage: self.work.set(),
            rate: self.meter.recent_rate(),
            cold: self.stream.cold_share(),
            depth: self.wanted(),
            left: self.work.left(),
            foreground: self.pace.live(),
        });
    }

    fn failed(&mut self, now: Nanos, range: Range<u64>, error: RequestError) {
        self.poll_device();
        if self.gone || error.is_device_gone() {
            self.gone = true;
            return;
        }
        if self.doubt.is_silent() || range.start >= self.work.end().0 {
            return;
        }
        self.doubt.failed();
        for given_up in self.work.failed(now, &range).iter() {
            self.doubt.note_unreadable(given_up);
        }
    }

    /// The next step while the device is tested for an answer; `None` while it is not being tested.
    fn next_presence_check(&mut self, now: Nanos) -> Option<Next> {
        self.doubt.poll(now, self.work.done(), self.work.end());
        if !self.doubt.is_open() {
            return None;
        }
        let page = self.doubt.next_page(now);
        let asks = page.map(|page| self.request(now, page, PRESENCE_MARK));
        Some(asks.unwrap_or(idle_wait(now)))
    }

    /// Notes the result of a page that tests whether the device answers. If the device turns out to answer nothing, the
    /// ranges that failed since its last answer are not marked as unreadable.
    fn has_answered(&mut self, is_good: bool) {
        self.doubt.note_completed(is_good);
        if self.doubt.is_silent() {
            self.work.mark_unread(&self.doubt.take_suspect_ranges());
            self.poll_device();
        }
    }

    /// The next request for a range of the plan.
    fn next_of_plan(&mut self, now: Nanos) -> Next {
        self.work.cut_by(if self.pace.is_beside() {
            self.block.min(REQUEST_SIZE_BESIDE_FOREGROUND)
        } else {
            self.block
        });
        match self.work.next(now) {
            Some(ReadRequest::Piece(piece)) => self.request(now, piece, PIECE_MARK),
            Some(ReadRequest::Block(range)) => {
                self.later.note_requested(range.clone());
                self.request(now, range, BLOCK)
            }
            // A request in flight may fail; its range is then requested again in pieces.
            None if self.in_flight > 0 || self.later.may_add() => {
                self.poll_plan();
                if self.in_flight == 0 {
                    // Nothing can be read until the space in use is known: the turn passes on.
                    self.turns.pass(self.number);
                }
                idle_wait(now)
            }
            None => Next::End,
        }
    }
}

impl RequestSource for Reading<'_> {
    fn depth(&self) -> u32 {
        // One more, so that a probe does not wait for a free place in the queue.
        u32::try_from(self.wanted() + 1).unwrap_or(u32::MAX)
    }

    fn next(&mut self, now: Nanos) -> Next {
        self.poll(now);
        if self.gone || self.doubt.is_silent() {
            return Next::End;
        }
        if !self.has_turn(now) {
            return idle_wait(now);
        }
        if let Some(next) = self.next_presence_check(now) {
            return next;
        }
        if let Some(probe) = self.probe(now) {
            self.in_flight += 1;
            return Next::Request(probe);
        }
        if self.meter.in_flight() as usize >= self.wanted() {
            return idle_wait(now);
        }
        if let Some(wait) = self.pace.wait(now) {
            return wait;
        }
        self.next_of_plan(now)
    }

    /// Notes a completed request. It does not poll the device: the kernel's counts may include other requests of the
    /// same batch, which are not noted yet.
    fn done(&mut self, now: Nanos, done: CompletedRequest) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let Request { len, tag, .. } = done.request;
        if tag == PROBE_MARK {
            return self
                .pace
                .note_probe(now, Bytes(u64::from(len)), done.latency);
        }
        let range = done.request.range();
        if tag == PIECE_MARK {
            self.work.note_completed(now, &range);
        }
        let moved = done.moved();
        self.meter.note_completed(now, moved, done.latency);
        let latency = done.result.is_ok().then_some(done.latency);
        self.pace.note_completed(Bytes(u64::from(len)), latency);
        if tag == PRESENCE_MARK {
            return self.has_answered(done.result.is_ok());
        }
        match done.result {
            Ok(()) => {
                self.doubt.succeeded();
                // Where blocks are read in parts, only the first part of a block can be cold.
                if !self.pace.is_beside() || range.start.is_multiple_of(self.block.0) {
                    self.stream.watch(done.latency.as_secs_f64());
                }
                self.together.note_completed(now, moved.0);
                self.work.was_read(range);
            }
            Err(error) => self.failed(now, range, error),
        }
    }
}

#[cfg(test)]
mod tests;
