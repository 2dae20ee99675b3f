//! What looks at a device while it is read, keeps how far it is, and shows it.

use std::time::{Duration, Instant};

use linux::Root;
use linux::diskstats::{Counter, DiskStats};
use record::{Bytes, Ranges};

use super::pace::Counted;
use super::place::{End, Keeper, Kept};
use super::progress::Line;
use super::reading::{At, Watch};
use reader::Volume;

/// Looks at one volume.
pub(crate) struct Watching<'a> {
    volume: &'a Volume,
    root: &'a Root,
    counter: Option<Counter>,
    before: Option<DiskStats>,
    kept: Kept,
    keeper: Option<Keeper>,
    line: Line,
    began: Instant,
    ran_before_s: f64,
    /// Before that, no state is handed over to be kept.
    next_keep: Instant,
    /// Whether the ledger lies on the same disk, and when it was last being written then.
    holds_ledger: bool,
    last_write: Option<Instant>,
}

/// To hand over a state is to copy it, which on a volume of many extents takes its time; one part in
/// so many of the time may go on that.
const SHARE: u32 = 100;
/// A ledger on the volume itself is told this often: each commit is a write that others could have made,
/// and waits for the volume.
const SELDOM: Duration = Duration::from_secs(10);
/// So long after a commit the file system may still write of it.
const AFTER: Duration = Duration::from_secs(1);

impl<'a> Watching<'a> {
    /// Looks at `volume`, whose warming stands as `kept` says. `holds_ledger`: the keeper's writes go to the
    /// same disk.
    pub(crate) fn new(
        volume: &'a Volume,
        root: &'a Root,
        kept: Kept,
        keeper: Option<Keeper>,
        line: Line,
        holds_ledger: bool,
    ) -> Watching<'a> {
        // What others do to the rest of a disk holds back a partition too.
        let disk = &volume.disk;
        let counter = disk
            .is_counted(root)
            .then(|| Counter::open(root, disk).ok())
            .flatten();
        Watching {
            before: counter.as_ref().and_then(|counter| counter.read().ok()),
            counter,
            volume,
            root,
            ran_before_s: kept.ran_s,
            kept,
            keeper,
            line,
            began: Instant::now(),
            next_keep: Instant::now(),
            last_write: None,
            holds_ledger,
        }
    }

    /// Keeps how it ended, what was read and what could not be, and gives what has gone wrong with
    /// keeping.
    pub(crate) fn end(
        mut self,
        end: End,
        done: Ranges,
        unreadable: Ranges,
    ) -> Option<anyhow::Error> {
        self.kept.ran_s = self.ran_before_s + self.began.elapsed().as_secs_f64();
        (self.kept.done, self.kept.unreadable) = (done, unreadable);
        self.kept.ended = end != End::Midway;
        self.line.end();
        self.keeper
            .and_then(|keeper| keeper.end(&self.kept, end == End::Whole).err())
    }

    /// Whether what was written of late may be our own, the ledger's.
    fn writes_itself(&mut self) -> bool {
        if !self.holds_ledger {
            return false;
        }
        if self.keeper.as_ref().is_some_and(Keeper::is_writing) {
            self.last_write = Some(Instant::now());
        }
        self.last_write.is_some_and(|last| last.elapsed() < AFTER)
    }

    /// Whether what was read is kept.
    pub(crate) fn keeps(&self) -> bool {
        self.keeper.is_some()
    }
}

impl Watch for Watching<'_> {
    fn size(&self) -> Option<Bytes> {
        self.volume.size_if_there(self.root)
    }

    fn counted(&mut self) -> Option<Counted> {
        let now = self.counter.as_ref()?.read().ok()?;
        let before = self.before.replace(now)?;
        let counts = now.since(&before)?;
        // Two of our own requests that became one on their way are two all the same.
        let merged = now.reads_merged.checked_sub(before.reads_merged)?;
        let (writes, written_bytes) = if self.writes_itself() {
            (0, 0)
        } else {
            (counts.writes, counts.write_bytes)
        };
        Some(Counted {
            reads: counts.reads + merged,
            writes,
            read_bytes: counts.read_bytes,
            written_bytes,
        })
    }

    fn stands(&mut self, at: &At<'_>) {
        self.line.show(at);
        let Some(keeper) = &self.keeper else {
            return;
        };
        let began = Instant::now();
        if began < self.next_keep {
            return;
        }
        self.kept.done.clone_from(at.done);
        self.kept.unreadable.clone_from(at.unreadable);
        self.kept.ran_s = self.ran_before_s + self.began.elapsed().as_secs_f64();
        // A state that is not taken is in the next one too.
        let is_taken = keeper.keep(&self.kept);
        self.next_keep = began + SHARE * began.elapsed();
        if self.holds_ledger && is_taken {
            self.next_keep = self.next_keep.max(began + SELDOM);
            self.last_write = Some(began);
        }
    }
}
