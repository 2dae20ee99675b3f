//! What looks at a device while it is read, keeps how far it is, and shows it.

use std::time::Instant;

use linux::Root;
use linux::diskstats::{Counter, DiskStats};
use record::Bytes;

use super::pace::Counted;
use super::place::{Keeper, Kept};
use super::progress::Line;
use super::reading::{At, Watch};
use super::volume::Volume;

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
}

impl<'a> Watching<'a> {
    /// Looks at `volume`, whose warming stands as `kept` says.
    pub(crate) fn new(
        volume: &'a Volume,
        root: &'a Root,
        kept: Kept,
        keeper: Option<Keeper>,
        line: Line,
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
        }
    }

    /// Keeps the last state, and gives it with what has gone wrong with keeping.
    pub(crate) fn end(mut self, finished: bool) -> (Kept, Option<anyhow::Error>) {
        self.kept.ran_s = self.ran_before_s + self.began.elapsed().as_secs_f64();
        self.line.end();
        let failed = self
            .keeper
            .and_then(|keeper| keeper.end(&self.kept, finished).err());
        (self.kept, failed)
    }

    /// Whether what was read is kept.
    pub(crate) fn keeps(&self) -> bool {
        self.keeper.is_some()
    }
}

impl Watch for Watching<'_> {
    fn size(&self) -> Option<Bytes> {
        let name = self.volume.device.sysfs_name();
        let listed = self.root.sys.join("class/block").join(name).exists();
        let size = self.volume.size_now().ok();
        size.filter(|size| listed && size.0 > 0)
    }

    fn counted(&mut self) -> Option<Counted> {
        let now = self.counter.as_ref()?.read().ok()?;
        let before = self.before.replace(now)?;
        let counts = now.since(&before)?;
        // Two of our own requests that became one on their way are two all the same.
        let merged = now.reads_merged.checked_sub(before.reads_merged)?;
        Some(Counted {
            reads: counts.reads + merged,
            writes: counts.writes,
        })
    }

    fn stands(&mut self, at: &At<'_>) {
        self.line.show(at);
        self.kept.done.clone_from(at.done);
        self.kept.unreadable.clone_from(at.unreadable);
        self.kept.ran_s = self.ran_before_s + self.began.elapsed().as_secs_f64();
        if let Some(keeper) = &self.keeper {
            // A state that is not taken is in the next one too.
            keeper.keep(&self.kept);
        }
    }
}
