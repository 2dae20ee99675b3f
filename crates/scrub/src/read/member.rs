//! The requests to one member or disk, at the pace that all members share.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use engine::list::{CompletedRequest, Next, Op, Request, RequestSource};
use job::{CheckpointWriter, EndState};
use linux::Root;
use record::{Bytes, Nanos, Ranges};
use study::depth::{Bounds, Controller};

use super::checkpoint::Checkpoint;
use super::share::SharedReadState;
use super::source::ReadPart;
use reader::{Meter, REQUEST_SIZE_BESIDE_FOREGROUND, ReadRequest, Work};
use study::pace::Allowed;
use ui::exit::sentence;

/// Size of a request while there is no foreground.
pub(crate) const BLOCK: Bytes = Bytes::kib(512);
/// Maximum number of requests in flight, for each member: at 512 KiB and 10 ms a request, 800 MiB/s.
pub(crate) const MAX_DEPTH: usize = 16;
/// Number of requests in flight at the start.
const START_DEPTH: usize = 4;
/// Tag of a request for a piece of a block that failed.
const PIECE_MARK: u64 = 1;
/// Tag of a request for a block.
const BLOCK_MARK: u64 = 0;
/// Interval at which the disk is polled.
const POLL_EVERY: Nanos = Nanos(250_000_000);
/// Wait when nothing can be requested.
const IDLE_WAIT: Nanos = Nanos(10_000_000);

/// The reading of one member or disk.
pub(crate) struct Member<'a> {
    part: &'a ReadPart,
    root: &'a Root,
    share: &'a SharedReadState,
    work: Work<()>,
    meter: Meter,
    depth: Option<Controller>,
    gone: bool,
    polled: Option<Nanos>,
    checkpoint: Checkpoint,
    writer: CheckpointWriter<Checkpoint>,
    began: Instant,
    ran_before_s: f64,
}

/// Result of reading one member.
pub(crate) struct MemberResult {
    /// State of its reading.
    pub checkpoint: Checkpoint,
    /// Bytes that were read at this start.
    pub read: Bytes,
    /// Bytes that are still to be read.
    pub left: Bytes,
    /// True if the disk went away.
    pub gone: bool,
    /// True if blocks that are marked as unreadable may hold readable pages.
    pub is_coarse: bool,
    /// True if the state is stored in the ledger; the error if it could not be written.
    pub is_kept: Result<bool, String>,
}

impl<'a> Member<'a> {
    /// The reading of the ranges that `checkpoint` does not have yet.
    pub(crate) fn new(
        part: &'a ReadPart,
        root: &'a Root,
        share: &'a SharedReadState,
        checkpoint: Checkpoint,
        writer: CheckpointWriter<Checkpoint>,
    ) -> Member<'a> {
        let todo = part.whole.subtract(&checkpoint.done);
        Member {
            part,
            root,
            share,
            work: Work::new(
                &[((), todo)],
                BLOCK,
                checkpoint.done.clone(),
                part.volume.size,
            ),
            meter: Meter::default(),
            depth: Bounds::new(1, MAX_DEPTH).map(|bounds| Controller::new(bounds, START_DEPTH)),
            gone: false,
            polled: None,
            ran_before_s: checkpoint.ran_s,
            checkpoint,
            writer,
            began: Instant::now(),
        }
    }

    /// Ends the reading, and returns its result. If all was requested (`is_done`), the job is finished in the ledger.
    pub(crate) fn end(mut self, is_done: bool) -> MemberResult {
        self.take();
        let finished = is_done && !self.gone;
        let state = match finished {
            true => EndState::Finished,
            false => EndState::Suspended,
        };
        let is_kept = self.writer.end(&self.checkpoint, state);
        MemberResult {
            read: self.work.read(),
            left: self.work.left(),
            gone: self.gone,
            is_coarse: self.work.is_coarse(),
            checkpoint: self.checkpoint,
            is_kept: is_kept.map_err(|error| sentence(&error)),
        }
    }

    fn take(&mut self) {
        self.checkpoint.done.clone_from(self.work.done());
        self.checkpoint
            .unreadable
            .clone_from(self.work.unreadable());
        self.checkpoint.ran_s = self.ran_before_s + self.began.elapsed().as_secs_f64();
    }

    fn poll(&mut self, now: Nanos) {
        let is_free = self.share.allowance() == Allowed::All;
        if let (Some(interval), Some(depth)) = (self.meter.interval(now), &mut self.depth)
            && is_free
        {
            depth.observe(&interval);
        }
        let is_recent = |polled: Nanos| now.0.saturating_sub(polled.0) < POLL_EVERY.0;
        if self.polled.is_some_and(is_recent) {
            return;
        }
        self.polled = Some(now);
        self.poll_disk();
        if self.writer.is_due(now.into()) {
            self.take();
            self.writer.write(&self.checkpoint);
            self.share.commits.store(true, Relaxed);
        }
        if self.writer.is_writing() {
            self.share.commits.store(true, Relaxed);
        }
    }

    fn poll_disk(&mut self) {
        match self.part.volume.size_if_there(self.root) {
            None => self.gone = true,
            Some(size) if size < self.work.end() => self.work.end_at(size),
            Some(_) => {}
        }
    }

    /// Number and size of the requests to keep in flight.
    fn wanted(&self) -> (usize, Bytes) {
        match self.share.allowance() {
            Allowed::All => (
                self.depth.as_ref().map_or(START_DEPTH, Controller::depth),
                BLOCK,
            ),
            Allowed::Rate(_) | Allowed::Nothing => (1, REQUEST_SIZE_BESIDE_FOREGROUND),
        }
    }

    fn note_skipped(&self, before: Bytes) {
        self.share
            .note_skipped(before.0.saturating_sub(self.work.left().0));
    }
}

impl RequestSource for Member<'_> {
    fn depth(&self) -> u32 {
        u32::try_from(self.wanted().0).unwrap_or(u32::MAX)
    }

    fn next(&mut self, now: Nanos) -> Next {
        self.poll(now);
        if self.gone {
            return Next::End;
        }
        let (depth, block) = self.wanted();
        if self.meter.in_flight() as usize >= depth {
            return Next::Wait(now + IDLE_WAIT);
        }
        if let Err(wait) = self.share.has_room(self.share.now()) {
            return Next::Wait(now + wait.map_or(IDLE_WAIT, |wait| wait.min(IDLE_WAIT)));
        }
        self.work.cut_by(block);
        let (range, tag) = match self.work.next(now) {
            Some(ReadRequest::Block(range)) => (range, BLOCK_MARK),
            Some(ReadRequest::Piece(range)) => (range, PIECE_MARK),
            None => {
                // A request in flight may fail; its range is then requested again in pieces.
                return match self.meter.in_flight() {
                    0 => Next::End,
                    _ => Next::Wait(now + IDLE_WAIT),
                };
            }
        };
        self.meter.issued(now);
        self.share
            .note_issued(self.share.now(), range.end - range.start);
        Next::Request(Request::of(Op::Read, &range, tag))
    }

    fn done(&mut self, now: Nanos, done: CompletedRequest) {
        let Request { len, tag, .. } = done.request;
        let range = done.request.range();
        if tag == PIECE_MARK {
            self.work.note_completed(now, &range);
        }
        let moved = done.moved();
        self.meter.note_completed(now, moved, done.latency);
        // The bytes that were requested count, also where they could not be read: they have used the rate.
        self.share.note_completed(u64::from(len), done.latency);
        let before = self.work.left();
        match done.result {
            Ok(()) => self.work.was_read(range),
            Err(error) if error.is_device_gone() => self.gone = true,
            Err(_) => {
                self.poll_disk();
                if !self.gone {
                    self.work.failed(now, &range);
                }
            }
        }
        self.note_skipped(before);
        self.poll(now);
    }
}

/// Number of bytes of a part that earlier starts have read or given up.
pub(crate) fn behind(whole: &Ranges, checkpoint: &Checkpoint) -> u64 {
    whole.intersect(&checkpoint.done).total().0
}
