//! One disk on its thread: stamped, sampled, zeroed, and what failed tried again in small pieces.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use engine::Choice;
use engine::list::{Deed, Ended, Feed, List, Lister};
use linux::offload::{self, Offload};
use record::{Bytes, Nanos, Ranges};

use super::feed::{DEPTH, Limiter, Stream, Twice, lock};
use super::kept::Disk;
use super::pace::Clocked;
use super::place::{LARGEST_BLOCK, Place};
use super::sample::{GROUP, PLACE, Passes, places};

/// Large enough for the throughput of any disk, small enough that a bad place is soon found.
const LARGEST: Bytes = Bytes::MIB;
/// What the device zeroes itself goes in pieces of this size: between two of them a signal is heard.
const OFFLOADED: Bytes = Bytes::mib(64);
/// What failed is tried again in such pieces, so that only what is bad is lost.
const SMALL: Bytes = LARGEST_BLOCK;
/// If more than this failed, the disk is worth nothing, and finding each bad block would take hours.
const MOST_TRIED_AGAIN: Bytes = Bytes::mib(64);
/// How often what was written is made to survive a power cut, and kept.
pub(crate) const KEEP: Duration = Duration::from_secs(2);
/// A signal is heard after at most this long.
const LOOK: Duration = Duration::from_millis(20);

/// Why a disk was not zeroed to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// There was a signal.
    Signal,
    /// The disk is not to be worked with any more; a clause says why.
    Gone(String),
}

/// Where a disk stands, for all who want to know.
pub(crate) struct Shared {
    /// This moment.
    pub now: Mutex<Disk>,
    /// What would be left after a power cut, if it has changed since it was last taken.
    pub durable: Mutex<Option<Disk>>,
    /// Whether its thread has ended.
    pub ended: AtomicBool,
}

impl Shared {
    /// For a disk that stands there.
    pub(crate) fn new(disk: Disk) -> Shared {
        Shared {
            now: Mutex::new(disk),
            durable: Mutex::new(None),
            ended: AtomicBool::new(false),
        }
    }

    /// Makes what was written until now survive a power cut, and says so.
    pub(crate) fn settle(&self, place: &Place) -> std::io::Result<()> {
        let disk = lock(&self.now).clone();
        place.sync()?;
        *lock(&self.durable) = Some(disk);
        Ok(())
    }

    /// Does that again and again until the disk's thread has ended.
    pub(crate) fn keep_settling(&self, place: &Place) {
        let mut last = Instant::now();
        while !self.ended.load(Relaxed) {
            sleep(LOOK);
            // What could not be flushed is not said to be durable; the disk's own thread will say
            // what is wrong when it ends.
            if last.elapsed() >= KEEP && self.settle(place).is_ok() {
                last = Instant::now();
            }
        }
    }
}

/// Tells whoever waits that a thread has ended, also when it panics.
struct EndsOnDrop<'a>(&'a AtomicBool);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// The work on one disk.
pub(crate) struct Work<'a> {
    /// The disk.
    pub place: &'a Place,
    /// Where it stands.
    pub shared: &'a Shared,
    /// What makes the requests.
    pub lister: &'a dyn Lister,
    /// At most so many bytes a second.
    pub limit: Option<Bytes>,
    /// Set by a signal.
    pub interrupt: &'a AtomicBool,
}

impl Work<'_> {
    /// Zeros what is left of the disk, but for its stamp.
    ///
    /// # Errors
    /// What ended it before.
    pub(crate) fn run(&self) -> Result<(), Stop> {
        let _ended = EndsOnDrop(&self.shared.ended);
        let ended = self.zero();
        let settled = self.shared.settle(self.place);
        ended?;
        settled.map_err(|error| gone("what was written could not be flushed", &error))
    }

    fn zero(&self) -> Result<(), Stop> {
        let (stamp, untouched, first, offload) = {
            let disk = lock(&self.shared.now);
            let (untouched, first) = (disk.zeroed.is_empty(), disk.starts == 1);
            (disk.stamp.clone(), untouched, first, disk.method.offload())
        };
        if untouched {
            self.place
                .put_stamp(&stamp)
                .map_err(|error| gone("its first block could not be written", &error))?;
            self.zeroed(self.place.head());
        }
        match offload {
            None => {
                // A start that was killed may have written places and not said so: then there are
                // no first writes to be timed any more.
                if untouched && first {
                    self.sample()?;
                }
                self.stream(&self.left(), LARGEST, true)?;
            }
            Some(how) => self.offload(how)?,
        }
        self.try_again()?;
        if offload.is_some() && lock(&self.shared.now).passes.is_none() {
            self.sample()?;
        }
        Ok(())
    }

    fn left(&self) -> Ranges {
        lock(&self.shared.now).left()
    }

    fn zeroed(&self, range: Range<u64>) {
        lock(&self.shared.now).zeroed.insert(range);
    }

    /// Writes zeros over a set of bytes.
    fn stream(&self, todo: &Ranges, largest: Bytes, timed: bool) -> Result<(), Stop> {
        let limiter = Limiter::new(self.limit);
        let disk = &self.shared.now;
        let mut stream = Stream::new(self.place, disk, todo, largest, limiter, timed);
        let ended = self.list(&mut stream, DEPTH, largest);
        match stream.gone.take() {
            Some(why) => Err(Stop::Gone(why)),
            None => ended,
        }
    }

    fn list(&self, feed: &mut dyn Feed, depth: u32, largest: Bytes) -> Result<(), Stop> {
        let list = List {
            file: &self.place.direct,
            deed: Deed::WriteZeros,
            most_in_flight: depth,
            largest,
            choice: Choice::Auto,
            interrupt: self.interrupt,
        };
        match self.lister.run(&list, feed) {
            Ok(end) if end.ended == Ended::Interrupted => Err(Stop::Signal),
            Ok(_) => Ok(()),
            Err(error) => Err(Stop::Gone(error.to_string())),
        }
    }

    /// Has the device zero what is left.
    fn offload(&self, how: Offload) -> Result<(), Stop> {
        let began = Instant::now();
        let mut limiter = Limiter::new(self.limit);
        let mut clocked = Clocked::start(&lock(&self.shared.now).pace, Nanos(0));
        let left = self.left();
        for piece in left.blocks(OFFLOADED) {
            while let Some(until) = limiter.wait(began.elapsed().into()) {
                self.hear()?;
                let left = Duration::from(until - began.elapsed().into());
                sleep(left.min(LOOK));
            }
            self.hear()?;
            let issued = Instant::now();
            let bytes = Bytes(piece.end - piece.start);
            limiter.issued(began.elapsed().into(), bytes);
            let said = offload::zero(&self.place.direct, how, piece.clone());
            let mut disk = lock(&self.shared.now);
            match said {
                Ok(()) => {
                    disk.zeroed.insert(piece);
                    disk.latency.record(Nanos::from(issued.elapsed()).0);
                    clocked.done(&mut disk.pace, began.elapsed().into(), bytes);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                    return Err(gone("it does not zero by itself after all", &error));
                }
                Err(error) => {
                    disk.failed.insert(piece);
                    disk.why_failed.get_or_insert(error.to_string());
                }
            }
        }
        Ok(())
    }

    fn hear(&self) -> Result<(), Stop> {
        if self.interrupt.load(Relaxed) {
            Err(Stop::Signal)
        } else {
            Ok(())
        }
    }

    /// Tries again, in small pieces and by writing, what failed.
    fn try_again(&self) -> Result<(), Stop> {
        let failed = lock(&self.shared.now).failed.clone();
        if failed.is_empty() || failed.total() > MOST_TRIED_AGAIN {
            return Ok(());
        }
        self.stream(&failed, SMALL, false)
    }

    /// Times the first and the second write of a sample of places: of what is not written yet, or,
    /// where the device has zeroed it, of what it zeroed.
    fn sample(&self) -> Result<(), Stop> {
        let (of, seed) = {
            let disk = lock(&self.shared.now);
            let of = match disk.method.offload() {
                None => disk.left(),
                Some(_) => disk.zeroed.subtract(&Ranges::from(self.place.head())),
            };
            // Other places at each start: those of one that was killed may be written already.
            let numbers = disk.stamp.bytes().map(u64::from);
            (
                of,
                numbers.fold(u64::from(disk.starts), engine::part_of_seed),
            )
        };
        let mut passes = Passes::default();
        for group in places(&of, seed).chunks(GROUP) {
            let mut twice = Twice::new(group.to_vec(), Limiter::new(self.limit));
            let ended = self.list(&mut twice, 1, PLACE);
            let (pairs, written) = twice.pairs();
            written.iter().for_each(|range| self.zeroed(range));
            ended?;
            if !pairs.is_empty() {
                passes.groups.push(pairs);
            }
        }
        lock(&self.shared.now).passes = Some(passes);
        Ok(())
    }
}

fn gone(what: &str, error: &std::io::Error) -> Stop {
    Stop::Gone(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests;
