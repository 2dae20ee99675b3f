//! The data of a volume: a sparse file without a name, on disk or in memory; the ranges that read back corrupted; and
//! the writes that a power cut may undo.

mod cache;
mod corrupt_ranges;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use record::{Bytes, Nanos};
use rustix::fs::{FallocateFlags, MemfdFlags, OFlags, fallocate, memfd_create};
use rustix::io::Errno;

use crate::spec::{Span, VolumeSpec};
use cache::WriteCache;
use corrupt_ranges::CorruptRanges;

/// Zeros are written in pieces of this size where a hole cannot be made.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Place of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataMedium {
    /// A file in the server's folder, which has no name and goes with the process.
    #[default]
    Disk,
    /// The server's memory.
    Memory,
}

/// The data of one volume.
pub struct VolumeData {
    file: File,
    /// True if any place is or will be corrupt, so that sound volumes take no lock.
    unsound: AtomicBool,
    corrupt_ranges: Mutex<CorruptRanges>,
    /// Reads that were changed.
    changed_reads: AtomicU64,
    /// `None` for a volume on which every write is durable.
    cache: Option<Mutex<WriteCache>>,
    /// Blocks that went back at power cuts.
    lost_blocks: AtomicU64,
}

/// A write that a power cut may take back, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unflushed {
    write: u64,
    place: Span,
}

impl VolumeData {
    /// An empty volume that reads as zeros.
    ///
    /// # Errors
    /// When the file cannot be made, or the file system does not hold one so large.
    pub fn new(
        spec: &VolumeSpec,
        seed: u64,
        keep: DataMedium,
        folder: &Path,
    ) -> io::Result<VolumeData> {
        let file = match keep {
            DataMedium::Disk => unnamed_file(folder)?,
            DataMedium::Memory => File::from(memfd_create("disksmith-lab", MemfdFlags::CLOEXEC)?),
        };
        file.set_len(spec.size.0)?;
        let corrupt_ranges = CorruptRanges::new(spec, seed);
        Ok(VolumeData {
            file,
            unsound: AtomicBool::new(!corrupt_ranges.is_empty()),
            corrupt_ranges: Mutex::new(corrupt_ranges),
            changed_reads: AtomicU64::new(0),
            cache: spec.volatile.then(|| Mutex::new(WriteCache::new(seed))),
            lost_blocks: AtomicU64::new(0),
        })
    }

    /// Fills the buffer from `offset`. `elapsed` is the time on the clock of the volume's episodes, and
    /// `None` while that is held: then no place becomes corrupt.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self, buffer: &mut [u8], offset: u64, elapsed: Option<Nanos>) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)?;
        if self.unsound.load(Ordering::Acquire)
            && self.corrupt_ranges().corrupt_reads(buffer, offset, elapsed)
        {
            self.changed_reads.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes the data at `offset`. Says how to refer to the write where it is not durable.
    ///
    /// # Errors
    /// When the file cannot be written; most likely the disk below is full.
    pub fn write(
        &self,
        data: &[u8],
        offset: u64,
        elapsed: Option<Nanos>,
    ) -> io::Result<Option<Unflushed>> {
        let length = data.len() as u64;
        let unflushed = self.change(Span { offset, length }, || {
            self.file.write_all_at(data, offset)
        })?;
        self.repair(offset, length, elapsed);
        Ok(unflushed)
    }

    /// Makes zeros, and a hole where the file system can. Says how to refer to this where it is not
    /// durable.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn zero(
        &self,
        offset: u64,
        length: u64,
        elapsed: Option<Nanos>,
    ) -> io::Result<Option<Unflushed>> {
        if length == 0 {
            return Ok(None);
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let unflushed = self.change(Span { offset, length }, || {
            match fallocate(&self.file, hole, offset, length) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(offset, length),
                other => Ok(other?),
            }
        })?;
        self.repair(offset, length, elapsed);
        Ok(unflushed)
    }

    /// Changes the file, and notes how to undo it where a power cut may.
    fn change(
        &self,
        place: Span,
        change: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Option<Unflushed>> {
        let Some(mut cache) = self.cache() else {
            return change().map(|()| None);
        };
        // Under the lock: what another write to the same block does in between would be undone with
        // this one, or not at all.
        let write = cache.note(&self.file, place)?;
        change()?;
        Ok(write.map(|write| Unflushed { write, place }))
    }

    /// Notes that a write is about to be answered: from now on a flush covers it.
    pub fn note_answered(&self, write: Unflushed) {
        if let Some(mut cache) = self.cache() {
            cache.note_answered(write.write, write.place);
        }
    }

    /// Makes a write durable, which requested it (FUA).
    pub fn persist(&self, write: Unflushed) {
        if let Some(mut cache) = self.cache() {
            cache.persist(write.place);
        }
    }

    /// Makes all writes durable that were answered before.
    pub fn flush(&self) {
        if let Some(mut cache) = self.cache() {
            cache.flush();
        }
    }

    /// Loses unflushed data as in a power cut: some of the blocks of 4 KiB with writes that are not durable get their
    /// earlier contents, chosen by the seed. Returns their number.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn cut_power(&self) -> io::Result<u64> {
        let Some(mut cache) = self.cache() else {
            return Ok(0);
        };
        let lost = cache.drop_unflushed(&self.file)?;
        self.lost_blocks.fetch_add(lost, Ordering::Relaxed);
        Ok(lost)
    }

    /// Number of blocks of 4 KiB that hold writes that are not durable.
    pub fn unflushed_blocks(&self) -> u64 {
        self.cache().map_or(0, |cache| cache.blocks())
    }

    /// Number of blocks of 4 KiB that have gone back at power cuts.
    pub fn lost_blocks(&self) -> u64 {
        self.lost_blocks.load(Ordering::Relaxed)
    }

    fn cache(&self) -> Option<MutexGuard<'_, WriteCache>> {
        // What a thread that failed left is a list of undos, each good for itself.
        let lock = |cache| Mutex::lock(cache).unwrap_or_else(PoisonError::into_inner);
        self.cache.as_ref().map(lock)
    }

    fn write_zeros(&self, offset: u64, length: u64) -> io::Result<()> {
        let end = offset + length;
        let mut at = offset;
        while at < end {
            let piece = (end - at).min(ZEROS.len() as u64);
            self.file.write_all_at(&ZEROS[..piece as usize], at)?;
            at += piece;
        }
        Ok(())
    }

    /// Corrupts these bytes now: until they are written again they read back differently.
    pub fn corrupt(&self, place: Span) {
        self.corrupt_ranges().add(place);
        self.unsound.store(true, Ordering::Release);
    }

    /// The places that read back differently now.
    pub fn corrupt_places(&self, elapsed: Option<Nanos>) -> Vec<Span> {
        self.corrupt_ranges().places(elapsed).to_vec()
    }

    /// Number of reads that were answered with data that was not written.
    pub fn changed_reads(&self) -> u64 {
        self.changed_reads.load(Ordering::Relaxed)
    }

    /// Bytes that the data takes; holes take none.
    ///
    /// # Errors
    /// When the file's facts cannot be read.
    pub fn occupied(&self) -> io::Result<Bytes> {
        Ok(Bytes(self.file.metadata()?.blocks() * 512))
    }

    fn repair(&self, offset: u64, length: u64, elapsed: Option<Nanos>) {
        if self.unsound.load(Ordering::Acquire) {
            self.corrupt_ranges()
                .repair(Span { offset, length }, elapsed);
        }
    }

    fn corrupt_ranges(&self) -> MutexGuard<'_, CorruptRanges> {
        // What a thread that failed left is a list of places, and as good as before.
        self.corrupt_ranges
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file without a name in this folder: nothing is left of it, however the process ends.
fn unnamed_file(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let made = options
        .custom_flags(OFlags::TMPFILE.bits() as i32)
        .open(folder);
    match made {
        // Some file systems, overlays among them, do not know files without a name.
        Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
            let path = folder.join("data");
            let file = options.custom_flags(0).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::corrupt_ranges::CHANGED_BITS;
    use super::*;
    use crate::spec::VolumeGroup;

    fn store(what: &str, keep: DataMedium) -> VolumeData {
        let folder = tempfile::tempdir().unwrap();
        let spec = what.parse::<VolumeGroup>().unwrap().spec;
        let store = VolumeData::new(&spec, 1, keep, folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        store
    }

    fn read(store: &VolumeData, offset: u64, length: usize, elapsed: u64) -> Vec<u8> {
        let mut buffer = vec![9; length];
        store
            .read(&mut buffer, offset, Some(Nanos(elapsed)))
            .unwrap();
        buffer
    }

    #[test]
    fn holes_are_zeros_and_take_no_room() {
        for keep in [DataMedium::Disk, DataMedium::Memory] {
            let store = store("gp3:64GiB", keep);
            assert_eq!(read(&store, 50 << 30, 4096, 0), vec![0; 4096]);
            store.write(&[7; 8192], 50 << 30, Some(Nanos(0))).unwrap();
            assert_eq!(read(&store, 50 << 30, 8192, 0), vec![7; 8192]);
            store.zero(50 << 30, 4096, Some(Nanos(0))).unwrap();
            assert_eq!(read(&store, 50 << 30, 4096, 0), vec![0; 4096]);
            assert_eq!(read(&store, (50 << 30) + 4096, 4096, 0), vec![7; 4096]);
            assert!(store.occupied().unwrap() <= Bytes::mib(4));
        }
    }

    #[test]
    fn zeros_are_written_where_holes_cannot_be() {
        let store = store("gp3:1MiB", DataMedium::Memory);
        store.write(&[7; 300_000], 0, Some(Nanos(0))).unwrap();
        store.write_zeros(1, 200_000).unwrap();
        assert_eq!(read(&store, 0, 2, 0), [7, 0]);
        assert_eq!(read(&store, 200_000, 2, 0), [0, 7]);
    }

    #[test]
    fn a_power_cut_takes_back_only_what_a_volatile_volume_did_not_flush() {
        for (what, most) in [("gp3:4MiB", 0), ("volatile=1:4MiB", 1024)] {
            let store = store(what, DataMedium::Memory);
            let kept = store.write(&[1; 2 << 20], 0, None).unwrap();
            kept.into_iter()
                .for_each(|write| store.note_answered(write));
            store.flush();
            let forced = store.write(&[2; 1 << 20], 2 << 20, None).unwrap();
            forced.into_iter().for_each(|write| store.persist(write));
            assert_eq!(store.unflushed_blocks(), 0);
            // One that is not answered, one that was not flushed, and zeros over what was.
            store.write(&[3; 512 << 10], 3 << 20, None).unwrap();
            store.flush();
            let unflushed = store.write(&[3; 512 << 10], 7 << 19, None).unwrap();
            unflushed
                .into_iter()
                .for_each(|write| store.note_answered(write));
            store.zero(0, 1 << 20, None).unwrap();
            assert_eq!(store.unflushed_blocks(), most.min(512));

            let lost = store.cut_power().unwrap();
            assert_eq!(lost > 0, most > 0);
            assert_eq!(store.lost_blocks(), lost);
            assert_eq!(read(&store, 1 << 20, 1 << 20, 0), vec![1; 1 << 20]);
            assert_eq!(read(&store, 2 << 20, 1 << 20, 0), vec![2; 1 << 20]);
            let count = |offset, value| {
                let data = read(&store, offset, 1 << 20, 0);
                data.chunks(4096).filter(|b| **b == [value; 4096]).count() as u64
            };
            assert_eq!(count(0, 1) + count(3 << 20, 0), lost);
            assert_eq!(count(0, 0) + count(3 << 20, 3), 512 - lost);
        }
    }

    #[test]
    fn a_bad_place_stays_bad() {
        let store = store("corrupt=4096+2:1MiB", DataMedium::Memory);
        for written in [0, 1, 255] {
            store.write(&[written; 8192], 0, Some(Nanos(0))).unwrap();
            let back = read(&store, 4095, 4, 0);
            assert_eq!(
                back,
                [
                    written,
                    written ^ CHANGED_BITS,
                    written ^ CHANGED_BITS,
                    written
                ]
            );
        }
        assert_eq!(store.changed_reads(), 3);
        assert_eq!(read(&store, 0, 4096, 0), vec![255; 4096]);
        assert_eq!(store.changed_reads(), 3);
    }

    #[test]
    fn rot_of_a_given_time_is_cured_by_a_later_write() {
        let store = store(
            "corrupt=1024+512,corrupt-after=1us:1MiB",
            DataMedium::Memory,
        );
        store.write(&[1; 4096], 0, Some(Nanos(0))).unwrap();
        assert_eq!(read(&store, 1024, 1, 999), [1]);
        assert_eq!(read(&store, 1024, 1, 1000), [1 ^ CHANGED_BITS]);
        store.write(&[2; 100], 1200, Some(Nanos(2000))).unwrap();
        let left = |offset, length| Span { offset, length };
        assert_eq!(
            store.corrupt_places(Some(Nanos(2000))),
            [left(1024, 176), left(1300, 236)]
        );
        store.zero(0, 4096, Some(Nanos(3000))).unwrap();
        assert_eq!(store.corrupt_places(Some(Nanos(3000))), []);
        assert_eq!(read(&store, 1024, 1, 3000), [0]);
    }

    #[test]
    fn a_place_can_be_made_to_rot_at_once() {
        let store = store("gp3:1MiB", DataMedium::Memory);
        store.corrupt(Span {
            offset: 0,
            length: 1,
        });
        assert_eq!(read(&store, 0, 2, 0), [CHANGED_BITS, 0]);
        store.write(&[5], 0, Some(Nanos(0))).unwrap();
        assert_eq!(read(&store, 0, 2, 0), [5, 0]);
    }
}
