//! A disk that is being zeroed: claimed, opened past the page cache, and known by its stamp.

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

/// Size of a request: large enough for the throughput of any disk, small enough that a bad place is soon found.
pub(crate) const REQUEST_SIZE: Bytes = Bytes::MIB;
/// Bytes of the disk's beginning that are zeroed first: where most signatures are, so that a disk which is
/// half zeroed passes for nothing that it once was.
pub(crate) const HEAD: Bytes = Bytes::MIB;
/// The largest logical block of a disk that can be zeroed; Linux before 6.15 knows none above it.
pub(crate) const MAX_LOGICAL_BLOCK: Bytes = Bytes::kib(4);
/// The stamp fills this much.
const STAMP: usize = MAX_LOGICAL_BLOCK.0 as usize;

/// A disk that is claimed until it is zeroed.
pub(crate) struct ClaimedDisk {
    claim: DestroyTarget,
    /// The disk.
    pub number: DeviceNumber,
    /// The same disk past the page cache.
    pub direct: File,
}

impl ClaimedDisk {
    /// Opens a claimed device past the page cache.
    ///
    /// # Errors
    /// The reason why it cannot be zeroed, as a sentence.
    pub(crate) fn of(claim: DestroyTarget) -> Result<ClaimedDisk, String> {
        let shown = claim.path.display();
        let number = claim.device.ok_or_else(|| {
            format!("{shown} is a file; zero works on block devices. To empty a file, truncate it")
        })?;
        let direct = claim.reopen(OFlags::DIRECT).map_err(|error| {
            format!("{shown} cannot be opened past the page cache (O_DIRECT): {error}")
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
    /// Why that cannot be said, as a sentence.
    pub(crate) fn identity(&self, devices: &Devices, root: &Root) -> Result<DiskIdentity, String> {
        DiskIdentity::of(&self.claim.file, self.size(), devices, root)
    }

    /// Content, as words that `--destroy` takes.
    pub(crate) fn content(&self) -> Vec<String> {
        plan_binding::content_names(&self.claim.content)
    }

    /// Present size of the disk, as a clause, where it has changed since the disk was claimed.
    pub(crate) fn resized(&self) -> Option<String> {
        // A device has its size where a file ends; `st_size` of it is zero.
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

    /// The part at its beginning that is zeroed first.
    pub(crate) fn head(&self) -> Range<u64> {
        0..HEAD.0.min(self.size().0)
    }

    /// The stamp's own block, which alone of the head is not zero until the end.
    pub(crate) fn stamped(&self) -> Range<u64> {
        0..(STAMP as u64).min(self.size().0)
    }

    /// Writes the stamp. It is on the disk when this returns.
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

    /// Takes the stamp away: zeros its block in the way that the rest was.
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

    /// The stamp that it carries, if what it begins with is one and nothing else.
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

    /// True if it carries no signature any more. A disk that cannot be read counts as one that does.
    pub(crate) fn is_bare(&self) -> bool {
        signature::probe(&self.direct).is_ok_and(|found| found.is_empty())
    }

    /// True if every byte of a range is zero, as the disk itself has it. The range is made of
    /// logical blocks.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn is_zero(&self, range: Range<u64>) -> io::Result<bool> {
        let mut read = Buffer::new(1, (range.end - range.start) as usize);
        self.direct.read_exact_at(read.part_mut(0), range.start)?;
        Ok(read.part(0).iter().all(|byte| *byte == 0))
    }

    /// Makes what was written survive a power cut.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.direct.sync_data()
    }
}

/// The stamp's block: its line again and again.
fn filled(stamp: &str) -> impl Iterator<Item = u8> {
    let line = format!("{ZEROING}{stamp}\n").into_bytes();
    line.into_iter().cycle().take(STAMP)
}

/// The disk of a partition, or the device itself.
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
            // A disk that is smaller than the stamp knows it all the same.
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
