//! Observer of a device while it is read: writes its progress to the ledger, and shows it.

use std::time::{Duration, Instant};

use job::{CheckpointInterval, CheckpointWriter, EndState};
use linux::Root;
use record::{Bytes, Ranges};

use super::checkpoint::{Checkpoint, WarmedPart};
use super::pace::KernelBytes;
use super::progress::VolumeLine;
use super::reading::{DeviceObserver, ReadingProgress};
use reader::{DiskCounter, Volume};

/// Observer of one volume.
pub(crate) struct VolumeObserver<'a> {
    volume: &'a Volume,
    root: &'a Root,
    counter: Option<DiskCounter>,
    checkpoint: Checkpoint,
    writer: CheckpointWriter<Checkpoint>,
    line: VolumeLine,
    began: Instant,
    ran_before_s: f64,
    /// True if the ledger lies on the same disk.
    holds_ledger: bool,
    /// True if the ledger was written to since the counts were last read.
    wrote: bool,
}

/// Interval of commits to a ledger on the volume itself, longer than elsewhere: each commit looks like a write of the
/// foreground, and waits for the volume.
const OWN_VOLUME_COMMIT_INTERVAL: Duration = Duration::from_secs(10);

impl<'a> VolumeObserver<'a> {
    /// Observer of `volume`, whose warming is at this checkpoint. `holds_ledger` is true if checkpoints are written to
    /// the same disk.
    pub(crate) fn new(
        volume: &'a Volume,
        root: &'a Root,
        checkpoint: Checkpoint,
        writer: CheckpointWriter<Checkpoint>,
        line: VolumeLine,
        holds_ledger: bool,
    ) -> VolumeObserver<'a> {
        let mut writer = writer;
        if holds_ledger {
            writer.set_interval(CheckpointInterval::every(OWN_VOLUME_COMMIT_INTERVAL));
        }
        VolumeObserver {
            // I/O of other programs to the rest of a disk slows down a partition too.
            counter: DiskCounter::open(&volume.disk, root),
            volume,
            root,
            ran_before_s: checkpoint.ran_s,
            checkpoint,
            writer,
            line,
            began: Instant::now(),
            holds_ledger,
            // The claim of the work was a commit too.
            wrote: holds_ledger,
        }
    }

    /// Writes the last checkpoint: the end, the ranges that were read and those that could not be. Returns the error of
    /// checkpoints that could not be written, if any.
    pub(crate) fn end(
        mut self,
        end: WarmedPart,
        done: Ranges,
        unreadable: Ranges,
    ) -> Option<anyhow::Error> {
        self.checkpoint.ran_s = self.ran_before_s + self.began.elapsed().as_secs_f64();
        (self.checkpoint.done, self.checkpoint.unreadable) = (done, unreadable);
        self.checkpoint.ended = end != WarmedPart::Midway;
        self.line.end();
        let state = match end {
            WarmedPart::Whole => EndState::Finished,
            WarmedPart::Requested | WarmedPart::Midway => EndState::Suspended,
        };
        self.writer.end(&self.checkpoint, state).err()
    }

    /// True if progress is written to the ledger.
    pub(crate) fn writes(&self) -> bool {
        self.writer.writes()
    }
}

impl DeviceObserver for VolumeObserver<'_> {
    fn size(&self) -> Option<Bytes> {
        self.volume.size_if_there(self.root)
    }

    fn counted(&mut self) -> Option<KernelBytes> {
        let counts = self.counter.as_mut()?.since()?;
        Some(KernelBytes {
            read_bytes: counts.read_bytes,
            written_bytes: counts.write_bytes,
            commits: std::mem::take(&mut self.wrote)
                || self.holds_ledger && self.writer.is_writing(),
        })
    }

    fn take_progress(&mut self, at: &ReadingProgress<'_>) {
        self.line.show(at);
        let ran = self.began.elapsed();
        if !self.writer.is_due(ran) {
            return;
        }
        self.checkpoint.done.clone_from(at.done);
        self.checkpoint.unreadable.clone_from(at.unreadable);
        self.checkpoint.ran_s = self.ran_before_s + ran.as_secs_f64();
        self.writer.write(&self.checkpoint);
        self.wrote = self.holds_ledger;
    }
}
