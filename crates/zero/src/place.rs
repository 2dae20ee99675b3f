//! A disk that is being zeroed: claimed, opened with direct I/O, and identified by its stamp.

use std::fs::File;
use std::io::{self, Seek as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use linux::Root;
use linux::block::{Device, DeviceNumber, Devices};
use linux::consent::DestroyTarget;
use linux::offload::{self, Offload};
use linux::signature;
use linux::signature::ZEROING;
use reader::Buffer;
use record::Bytes;
use rustix::fs::OFlags;

use domain::plan_binding::{self, DiskIdentity};

/// Size of a request: large enough for the throughput of any disk, small enough to locate bad places closely.
pub(crate) const REQUEST_SIZE: Bytes = Bytes::MIB;
/// Size of the head of the disk, which is zeroed first: most signatures lie there, so that a partly zeroed disk is not
/// taken for its former content.
pub(crate) const HEAD: Bytes = Bytes::MIB;
/// Maximum size of a logical block of a disk that can be zeroed; Linux before 6.15 supports none above it.
pub(crate) const MAX_LOGICAL_BLOCK: Bytes = Bytes::kib(4);
/// Size of the stamp, in bytes.
const STAMP: usize = MAX_LOGICAL_BLOCK.0 as usize;

/// A disk that is claimed until it is zeroed.
pub(crate) struct ClaimedDisk {
    claim: DestroyTarget,
    /// Device number of the disk.
    pub number: DeviceNumber,
    /// The disk, opened with direct I/O.
    pub direct: File,
}

impl ClaimedDisk {
    /// Opens a claimed device with direct I/O.
    ///
    /// # Errors
    /// The reason why it cannot be zeroed, as a sentence.
    pub(crate) fn of(claim: DestroyTarget) -> Result<ClaimedDisk, String> {
        let shown = claim.path.display();
        let number = claim.device.ok_or_else(|| {
            format!("{shown} is a file; zero works on block devices. To empty a file, truncate it")
        })?;
        let direct = claim.reopen(OFlags::DIRECT).map_err(|error| {
            format!("{shown} cannot be opened with direct I/O (O_DIRECT): {error}")
        })?;
        Ok(ClaimedDisk {
            number,
            direct,
            claim,
        })
    }

    /// Size of the disk when it was claimed.
    pub(crate) fn size(&self) -> Bytes {
        self.claim.size
    }

    /// Identity of the disk. `devices` must have been read after it was claimed.
    ///
    /// # Errors
    /// The reason, as a sentence, why it is not known.
    pub(crate) fn identity(&self, devices: &Devices, root: &Root) -> Result<DiskIdentity, String> {
        DiskIdentity::of(&self.claim.file, self.size(), devices, root)
    }

    /// Content of the disk, in the words of `--destroy`.
    pub(crate) fn content(&self) -> Vec<String> {
        plan_binding::content_names(&self.claim.content)
    }

    /// Clause about a change of the disk's size since it was claimed, or about an error in reading the size; `None`
    /// where it is unchanged.
    pub(crate) fn resized(&self) -> Option<String> {
        // `st_size` of a block device is zero: its size is the offset of its end.
        let now = match (&self.claim.file).seek(io::SeekFrom::End(0)) {
            Ok(now) => Bytes(now),
            Err(error) => return Some(format!("its size cannot be read any more: {error}")),
        };
        (now != self.size()).then(|| {
            format!(
                "its size changed from {} to {now} ({} to {} bytes)",
                self.size(),
                self.size().0,
                now.0
            )
        })
    }

    /// The head of the disk, which is zeroed first.
    pub(crate) fn head(&self) -> Range<u64> {
        0..HEAD.0.min(self.size().0)
    }

    /// The block of the stamp: the only part of the head that is zeroed at the end.
    pub(crate) fn stamped(&self) -> Range<u64> {
        0..(STAMP as u64).min(self.size().0)
    }

    /// Writes the stamp, and flushes it to the disk.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn put_stamp(&self, stamp: &str) -> io::Result<()> {
        let mut block = Buffer::new(1, self.stamped().end as usize);
        let bytes = block.part_mut(0);
        for (byte, text) in bytes.iter_mut().zip(filled(stamp)) {
            *byte = text;
        }
        self.direct.write_all_at(bytes, 0)?;
        self.sync()
    }

    /// Erases the stamp: zeros its block by the method that was used for the rest of the disk.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn clear_stamp(&self, offload: Option<Offload>) -> io::Result<()> {
        let block = self.stamped();
        match offload {
            Some(how) => offload::zero(&self.direct, how, block)?,
            None => {
                let zeros = Buffer::new(1, block.end as usize);
                self.direct.write_all_at(zeros.part(0), 0)?;
            }
        }
        self.sync()
    }

    /// The stamp that the disk carries; `None` where its first block is not wholly a stamp.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn stamp(&self) -> io::Result<Option<String>> {
        let mut block = Buffer::new(1, STAMP.min(self.size().0 as usize));
        self.direct.read_exact_at(block.part_mut(0), 0)?;
        let text = String::from_utf8_lossy(block.part(0));
        let first = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix(ZEROING));
        let stamp = first.map(str::to_owned);
        Ok(stamp.filter(|stamp| filled(stamp).zip(block.part(0)).all(|(a, b)| a == *b)))
    }

    /// True if the disk carries no signature. A disk that cannot be read counts as carrying one.
    pub(crate) fn is_bare(&self) -> bool {
        signature::probe(&self.direct).is_ok_and(|found| found.is_empty())
    }

    /// True if every byte of a range is zero, read with direct I/O. The range consists of whole logical blocks.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn is_zero(&self, range: Range<u64>) -> io::Result<bool> {
        let mut read = Buffer::new(1, (range.end - range.start) as usize);
        self.direct.read_exact_at(read.part_mut(0), range.start)?;
        Ok(read.part(0).iter().all(|byte| *byte == 0))
    }

    /// Flushes the disk, so that what was written survives a power cut.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.direct.sync_data()
    }
}

/// Bytes of the stamp's block: the stamp's line, repeated.
fn filled(stamp: &str) -> impl Iterator<Item = u8> {
    let line = format!("{ZEROING}{stamp}\n").into_bytes();
    line.into_iter().cycle().take(STAMP)
}

/// The disk that a partition lies on, or the device itself.
pub(crate) fn whole<'a>(device: &'a Device, devices: &'a Devices) -> &'a Device {
    device
        .partition_of()
        .and_then(|disk| devices.get(disk))
        .unwrap_or(device)
}

/// A file that stands for a disk, in tests.
#[cfg(test)]
pub(crate) fn on_file(size: Bytes) -> ClaimedDisk {
    let file = tempfile::tempfile().unwrap();
    file.set_len(size.0).unwrap();
    ClaimedDisk::of(DestroyTarget {
        path: "/dev/test".into(),
        file,
        device: Some(DeviceNumber::new(7, 0)),
        size,
        content: signature::Content::default(),
        related: Vec::new(),
        unreadable: 0,
    })
    .unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_known_again_only_while_it_is_whole() {
        for size in [Bytes(512), Bytes(4096), Bytes(3 << 20)] {
            let place = on_file(size);
            assert_eq!(place.stamp().unwrap(), None);
            place.put_stamp("one/1").unwrap();
            // A disk that is smaller than the stamp is recognized too.
            assert_eq!(place.stamp().unwrap().as_deref(), Some("one/1"));
            let last = size.0.min(4096) - 1;
            place.claim.file.write_all_at(&[0], last).unwrap();
            assert_eq!(place.stamp().unwrap(), None);
            place.put_stamp("two/2").unwrap();
            place.clear_stamp(None).unwrap();
            assert_eq!(place.stamp().unwrap(), None);
            assert!(place.is_zero(0..size.0).unwrap());
        }
    }

    #[test]
    fn a_size_that_changes_is_noticed() {
        let place = on_file(Bytes::MIB);
        assert_eq!(place.resized(), None);
        place.direct.set_len(512).unwrap();
        let message = place.resized().unwrap();
        assert!(message.contains("(1048576 to 512 bytes)"), "{message}");
    }

    #[test]
    fn a_stamp_fills_its_block() {
        let block: Vec<u8> = filled("20261122-000437-k7q2/1").collect();
        assert_eq!(block.len(), STAMP);
        assert!(block.starts_with(ZEROING.as_bytes()));
        assert!(!block.contains(&0));
    }
}
