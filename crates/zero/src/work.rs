//! The work on one disk, on its own thread: it is stamped, sampled and zeroed, and failed ranges are retried in small
//! pieces.

use std::ops::Range;
use std::slice::from_ref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Instant;

use engine::IoInterface;
use engine::list::{BufferMode, EndReason, List, ListEngine, RequestSource};
use job::RaiseOnDrop;
use linux::offload::{self, Offload};
use record::{Bytes, Nanos, Ranges};

use super::foreground::Throttle;
use super::limiter::Limiter;
use super::pace::PaceRecorder;
use super::place::{ClaimedDisk, MAX_LOGICAL_BLOCK, REQUEST_SIZE};
use super::sample::{DoubleWriteTimes, PLACE, PLACES_PER_TURN, places};
use super::source::{DEPTH, DoubleWrites, PresenceDoubt, ZeroStream, is_away};
use super::state::{DiskState, IncompleteReason, lock};
use ui::context::notice;

/// Size of the pieces that the device zeroes itself: signals are noticed between them.
const OFFLOADED_PIECE: Bytes = Bytes::mib(64);
/// Size of the pieces in which failed ranges are retried, so that only bad blocks are lost.
const RETRY_PIECE: Bytes = MAX_LOGICAL_BLOCK;
/// Failed bytes above which ranges are not retried: the disk is unusable, and finding each bad block would take hours.
const MAX_RETRIED: Bytes = Bytes::mib(64);

/// The work on one disk.
pub(crate) struct Work<'a> {
    /// The disk.
    pub place: &'a ClaimedDisk,
    /// State of the disk, shared with other threads.
    pub shared: &'a DiskState,
    /// Engine that issues the requests.
    pub lister: &'a dyn ListEngine,
    /// Limit of the rate, in bytes a second.
    pub limit: Option<Bytes>,
    /// Rate that the foreground allows; `None` where none is detected.
    pub throttle: Option<&'a Throttle>,
    /// True once a signal has arrived.
    pub interrupt: &'a AtomicBool,
}

impl Work<'_> {
    /// Zeros the rest of the disk, except its stamp.
    ///
    /// # Errors
    /// The reason why it ended early.
    pub(crate) fn run(&self) -> Result<(), IncompleteReason> {
        let _ended = RaiseOnDrop(from_ref(&self.shared.ended));
        let ended = self.zero();
        // The error of a flush comes first: it is the reason why the rest ended.
        self.shared.make_durable(self.place)?;
        ended
    }

    fn zero(&self) -> Result<(), IncompleteReason> {
        let (stamp, untouched, first, offload) = {
            let disk = lock(&self.shared.now);
            let (untouched, first) = (disk.zeroed.is_empty(), disk.starts == 1);
            (disk.stamp.clone(), untouched, first, disk.method.offload())
        };
        if untouched {
            self.begin(&stamp, offload.is_some())?;
        }
        match offload {
            None => {
                // A start that was killed may have written places without recording them: then first writes can no
                // longer be timed.
                if untouched && first {
                    self.sample()?;
                }
                self.stream(&self.left(), REQUEST_SIZE, true)?;
            }
            Some(how) => {
                self.offload(how)?;
                // Ranges that the device failed to zero itself are written.
                self.stream(&self.failed(), REQUEST_SIZE, false)?;
                if lock(&self.shared.now).passes.is_none() {
                    self.sample()?;
                }
            }
        }
        self.try_again()?;
        self.place
            .resized()
            .map_or(Ok(()), |why| Err(IncompleteReason::Gone(why)))
    }

    /// Writes the stamp, and zeros the rest of the head, which holds the signatures of the disk's former content.
    fn begin(&self, stamp: &str, offloaded: bool) -> Result<(), IncompleteReason> {
        let block = self.place.stamped();
        match self.place.put_stamp(stamp) {
            Ok(()) => self.zeroed(block.clone()),
            Err(error) if is_away(&error) => return Err(stop_of_error("it is gone", &error)),
            Err(error) => {
                let mut disk = lock(&self.shared.now);
                notice(&format!(
                    "disksmith: the first block of {} could not be written ({error}); zeroing \
                     continues. The disk cannot be recognized later: after a kill it would be zeroed from the beginning.",
                    disk.path.display()
                ));
                disk.fail(block.clone(), error.to_string());
                disk.unstamped = true;
            }
        }
        // With offloading, the head is the first piece anyway.
        if offloaded {
            return Ok(());
        }
        let head = Ranges::from(self.place.head()).subtract(&Ranges::from(block));
        self.stream(&head, REQUEST_SIZE, false)
    }

    fn failed(&self) -> Ranges {
        lock(&self.shared.now).failed.clone()
    }

    fn left(&self) -> Ranges {
        lock(&self.shared.now).left()
    }

    fn zeroed(&self, range: Range<u64>) {
        lock(&self.shared.now).zeroed.insert(range);
    }

    /// Writes zeros over a set of bytes.
    fn stream(&self, todo: &Ranges, largest: Bytes, timed: bool) -> Result<(), IncompleteReason> {
        let limiter = Limiter::new(self.limit, self.throttle);
        let mut stream = ZeroStream::new(self.place, self.shared, todo, largest, limiter, timed);
        let ended = self.list(&mut stream, DEPTH, largest);
        match stream.gone.take() {
            Some(why) => Err(IncompleteReason::Gone(why)),
            None => ended,
        }
    }

    fn list(
        &self,
        source: &mut dyn RequestSource,
        depth: u32,
        largest: Bytes,
    ) -> Result<(), IncompleteReason> {
        let list = List {
            files: &[&self.place.direct],
            memory: BufferMode::Zeros,
            max_in_flight: depth,
            largest,
            interface: IoInterface::Auto,
            interrupt: self.interrupt,
        };
        match self.lister.run(&list, source) {
            Ok(end) if end.ended == EndReason::Interrupted => Err(IncompleteReason::Signal),
            Ok(_) => Ok(()),
            Err(error) => Err(IncompleteReason::Gone(error.to_string())),
        }
    }

    /// Has the device zero the remaining ranges itself.
    fn offload(&self, how: Offload) -> Result<(), IncompleteReason> {
        let began = Instant::now();
        let mut limiter = Limiter::new(self.limit, self.throttle);
        let mut recorder = PaceRecorder::start(&lock(&self.shared.now).pace, Nanos(0));
        let mut left = self.left();
        let mut doubt = PresenceDoubt::default();
        while !left.is_empty() {
            while let Some(until) = limiter.wait(began.elapsed().into()) {
                self.check_signals()?;
                sleep((until - began.elapsed().into()).into());
            }
            self.check_signals()?;
            // Computed after the wait, in which a foreground may have appeared or ended.
            let Some(piece) = left.blocks(limiter.piece(OFFLOADED_PIECE)).next() else {
                break;
            };
            left = left.subtract(&Ranges::from(piece.clone()));
            let issued = Instant::now();
            let bytes = Bytes(piece.end - piece.start);
            limiter.issued(began.elapsed().into(), bytes);
            let result = offload::zero(&self.place.direct, how, piece.clone());
            limiter.done(bytes, None);
            match result {
                Ok(()) => {
                    doubt.note_success();
                    let mut disk = lock(&self.shared.now);
                    disk.zeroed.insert(piece);
                    disk.latency.record(Nanos::from(issued.elapsed()).0);
                    recorder.done(&mut disk.pace, began.elapsed().into(), bytes);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                    return Err(stop_of_error(
                        "it does not zero by itself after all",
                        &error,
                    ));
                }
                Err(error) => {
                    let gone = doubt.failed(self.place, &self.shared.now, piece, &error);
                    gone.map_or(Ok(()), |why| Err(IncompleteReason::Gone(why)))?;
                }
            }
        }
        Ok(())
    }

    fn check_signals(&self) -> Result<(), IncompleteReason> {
        if self.interrupt.load(Relaxed) {
            return Err(IncompleteReason::Signal);
        }
        if self.shared.is_lost() {
            return self.shared.make_durable(self.place);
        }
        Ok(())
    }

    /// Retries the failed ranges, by writing zeros in small pieces.
    fn try_again(&self) -> Result<(), IncompleteReason> {
        let failed = self.failed();
        if failed.is_empty() || failed.total() > MAX_RETRIED {
            return Ok(());
        }
        self.stream(&failed, RETRY_PIECE, false)
    }

    /// Times the first and the second write to a sample of places, in the ranges that are not written yet or, with
    /// offloading, in those that the device has zeroed.
    fn sample(&self) -> Result<(), IncompleteReason> {
        let (of, seed) = {
            let disk = lock(&self.shared.now);
            let of = match disk.method.offload() {
                None => disk.left(),
                Some(_) => disk.zeroed.subtract(&Ranges::from(self.place.stamped())),
            };
            // Other places at each start: those of a start that was killed may be written already.
            let numbers = disk.stamp.bytes().map(u64::from);
            (
                of,
                numbers.fold(u64::from(disk.starts), engine::derive_seed),
            )
        };
        let mut passes = DoubleWriteTimes::default();
        for group in places(&of, PLACE, seed).chunks(PLACES_PER_TURN) {
            self.check_signals()?;
            let mut twice =
                DoubleWrites::new(group.to_vec(), Limiter::new(self.limit, self.throttle));
            let ended = self.list(&mut twice, 1, PLACE);
            let (pairs, written) = twice.pairs();
            written.iter().for_each(|range| self.zeroed(range));
            // Without offloading, ranges whose write failed are still to be zeroed; with it, they count as zeroed
            // until now.
            for (range, error) in twice.failed {
                if is_away(&error) {
                    return Err(stop_of_error("it is gone", &error));
                }
                let mut disk = lock(&self.shared.now);
                if disk.zeroed.contains(&range) {
                    disk.fail(range, error.to_string());
                }
            }
            ended?;
            if !pairs.is_empty() {
                passes.groups.push(pairs);
            }
        }
        lock(&self.shared.now).passes = Some(passes);
        Ok(())
    }
}

fn stop_of_error(what: &str, error: &std::io::Error) -> IncompleteReason {
    IncompleteReason::Gone(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests;
