//! Used and free parts of the device of a mounted file system, by GETFSMAP (include/uapi/linux/fsmap.h;
//! ioctl_getfsmap(2)).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use record::Ranges;
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

use crate::block::DeviceNumber;

/// The space of a file system on the device that it is mounted from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceMap {
    /// Device that the file system lies on.
    pub device: DeviceNumber,
    /// The bytes of the device that are not free: data, metadata, the log, and parts that the kernel does not report.
    pub used: Ranges,
    /// The bytes of the device that are free.
    pub free: Ranges,
}

/// Reason why the used parts of a file system cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum NotListed {
    /// The file system does not support the request. ext4 and XFS do; btrfs, for example, does not.
    #[error("this file system does not list its space (GETFSMAP): ext4 and XFS do")]
    NotOffered,
    /// Only root may read it.
    #[error(
        "only root may query the space that the file system uses; {}",
        crate::remedy::as_root()
    )]
    NeedsRoot,
    /// The file system has several devices, with numbers of its own.
    #[error("the file system numbers its devices in its own way, so they cannot be distinguished")]
    OwnNumbers,
    /// The file system reports nothing on the device that it is mounted from.
    #[error("the file system lists nothing on the device {0}, which it is mounted from")]
    Nothing(DeviceNumber),
    /// The file system returns records that do not advance.
    #[error(
        "the file system lists its space at byte {0} again and again; it cannot be trusted, so \
         check it with its fsck"
    )]
    Stuck(u64),
    /// The caller has cancelled.
    #[error("the listing of its space was stopped")]
    Stopped,
    /// The request failed.
    #[error("the kernel could not list the space of the file system: {0}")]
    Failed(#[source] io::Error),
}

/// The space of the file system of an open file or folder.
///
/// Space that is not reported as free counts as used: XFS without a reverse map only reports free space, and ext4
/// omits some ranges of used blocks (seen on Linux 6.18). Neither set contains the part after the last record, since
/// the device may be larger than the file system. Parts on other devices, such as an external log or realtime device,
/// are left out. A file system that is in use changes while it is listed.
///
/// On a large volume, and on one whose own maps are cold, this takes long: `is_unwanted` is called before each
/// thousand records, and stops the listing if it returns true.
///
/// # Errors
/// When the file system does not support it, the user may not use it, and when `is_unwanted` returned true.
pub fn of_file(file: &File, is_unwanted: &dyn Fn() -> bool) -> Result<SpaceMap, NotListed> {
    let metadata = file.metadata().map_err(NotListed::Failed)?;
    let device = DeviceNumber::from_raw(metadata.dev());
    let mut seen = FreeRanges::default();
    walk(file, is_unwanted, |record, numbers| {
        seen.add(device, record, numbers)
    })?;
    seen.finish(device)
}

/// Free ranges found so far.
#[derive(Default)]
struct FreeRanges {
    /// Free ranges in ascending order.
    free: Vec<Range<u64>>,
    /// End of the last record.
    end: u64,
}

impl FreeRanges {
    fn add(
        &mut self,
        device: DeviceNumber,
        record: &RawRecord,
        are_numbers: bool,
    ) -> Result<(), NotListed> {
        if !are_numbers {
            return Err(NotListed::OwnNumbers);
        }
        if number_of(record.device) != device {
            return Ok(());
        }
        let end = record.physical.saturating_add(record.length);
        self.end = self.end.max(end);
        if record.is_free() {
            match self.free.last_mut() {
                // Adjacent ranges are merged immediately: there are many, split at the boundaries of allocation
                // groups.
                Some(last) if last.end == record.physical => last.end = end,
                _ => self.free.push(record.physical..end),
            }
        }
        Ok(())
    }

    fn finish(self, device: DeviceNumber) -> Result<SpaceMap, NotListed> {
        if self.end == 0 {
            return Err(NotListed::Nothing(device));
        }
        let free: Ranges = self.free.into_iter().collect();
        Ok(SpaceMap {
            device,
            used: Ranges::from(0..self.end).subtract(&free),
            free,
        })
    }
}

/// A `dev_t` of 32 bits: twelve bits of the major number between eight and twelve bits of the minor one
/// (include/linux/kdev_t.h, new_encode_dev).
fn number_of(raw: u32) -> DeviceNumber {
    DeviceNumber::new((raw >> 8) & 0xfff, (raw & 0xff) | ((raw >> 12) & 0xf_ff00))
}

/// struct fsmap.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RawRecord {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

impl RawRecord {
    const SPECIAL_OWNER: u32 = 0x10;
    const LAST: u32 = 0x20;
    /// FMR_OWN_FREE is FMR_OWNER(0, 1).
    const OWN_FREE: u64 = 1;

    /// The highest possible key.
    const MAX_KEY: RawRecord = RawRecord {
        device: u32::MAX,
        flags: u32::MAX,
        physical: u64::MAX,
        owner: u64::MAX,
        offset: u64::MAX,
        length: 0,
        reserved: [0; 3],
    };

    /// True for free space. Owners are inode numbers unless a flag says otherwise.
    fn is_free(&self) -> bool {
        self.flags & Self::SPECIAL_OWNER != 0 && self.owner == Self::OWN_FREE
    }

    fn is_last(&self) -> bool {
        self.flags & Self::LAST != 0
    }

    fn end(&self) -> (u32, u64) {
        (self.device, self.physical.saturating_add(self.length))
    }
}

/// struct fsmap_head, without its records.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawHead {
    input_flags: u32,
    output_flags: u32,
    count: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [RawRecord; 2],
}

impl RawHead {
    /// FMH_OF_DEV_T: the devices are `dev_t`s.
    const DEVICES_ARE_NUMBERS: u32 = 1;
}

/// Number of records requested at a time (64 KiB).
const BATCH: usize = 1024;

#[repr(C)]
struct RawMap {
    head: RawHead,
    records: [RawRecord; BATCH],
}

/// FS_IOC_GETFSMAP is `_IOWR('X', 59, struct fsmap_head)`; the size in it is that of the head.
const FS_IOC_GETFSMAP: Opcode = opcode::read_write::<RawHead>(b'X', 59);

/// Calls `each` for every record; returns true if the devices in the records are `dev_t`s.
fn walk(
    file: &File,
    is_unwanted: &dyn Fn() -> bool,
    mut each: impl FnMut(&RawRecord, bool) -> Result<(), NotListed>,
) -> Result<(), NotListed> {
    let mut raw = Box::new(RawMap {
        head: RawHead::default(),
        records: [RawRecord::default(); BATCH],
    });
    let mut low = RawRecord::default();
    loop {
        if is_unwanted() {
            return Err(NotListed::Stopped);
        }
        raw.head = RawHead {
            count: BATCH as u32,
            keys: [low, RawRecord::MAX_KEY],
            ..RawHead::default()
        };
        // SAFETY: the opcode is FS_IOC_GETFSMAP, whose argument is a struct fsmap_head followed by
        // `fmh_count` struct fsmap. `RawMap` is laid out so, holds exactly that many, and is made of
        // integers, for which any bytes that the kernel writes are valid.
        let answer = unsafe { ioctl(file, Updater::<FS_IOC_GETFSMAP, RawMap>::new(&mut raw)) };
        match answer {
            Ok(()) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(refusal(error)),
        }
        let entries = (raw.head.entries as usize).min(BATCH);
        let are_numbers = raw.head.output_flags & RawHead::DEVICES_ARE_NUMBERS != 0;
        for record in &raw.records[..entries] {
            each(record, are_numbers)?;
        }
        let Some(last) = raw.records[..entries].last() else {
            return Ok(());
        };
        if last.is_last() {
            return Ok(());
        }
        // The records are grouped by device, in any order of devices; within a device offsets ascend.
        if last.device == low.device && last.end() <= low.end() {
            return Err(NotListed::Stuck(last.physical));
        }
        // The last record is the lower key of the next request (fsmap.h, fsmap_advance).
        low = *last;
    }
}

fn refusal(error: Errno) -> NotListed {
    match error {
        Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS => NotListed::NotOffered,
        Errno::PERM | Errno::ACCESS => NotListed::NeedsRoot,
        error => NotListed::Failed(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceNumber = DeviceNumber::new(259, 3);

    fn record(minor: u32, range: Range<u64>, owner: u64, flags: u32) -> RawRecord {
        RawRecord {
            device: 259 << 8 | minor,
            flags,
            physical: range.start,
            owner,
            length: range.end - range.start,
            ..RawRecord::default()
        }
    }

    fn space_of(records: &[RawRecord]) -> Result<SpaceMap, NotListed> {
        let mut seen = FreeRanges::default();
        for one in records {
            seen.add(DISK, one, true)?;
        }
        seen.finish(DISK)
    }

    #[test]
    fn space_that_is_not_free_is_used_and_other_devices_are_left_out() {
        let special = RawRecord::SPECIAL_OWNER;
        let space = space_of(&[
            record(3, 0..4096, 3, special),
            record(3, 8192..12288, 1, special),
            record(3, 12288..16384, 1, special),
            // The inode whose number equals that of free space.
            record(3, 16384..20480, 1, 0),
            record(4, 0..1 << 30, 1, special),
        ]);
        let space = space.unwrap();
        let used: Vec<_> = space.used.iter().collect();
        assert_eq!(used, [0..8192, 16384..20480], "with the gap");
        assert_eq!(space.free, Ranges::from(8192..16384));
        assert_eq!(space.device, DISK);
    }

    #[test]
    fn answers_that_say_nothing_of_the_device_are_errors() {
        let other = [record(4, 0..4096, 1, RawRecord::SPECIAL_OWNER)];
        let error = space_of(&other).unwrap_err();
        assert!(error.to_string().contains("the device 259:3"), "{error}");
        let mut seen = FreeRanges::default();
        let error = seen.add(DISK, &other[0], false).unwrap_err();
        assert!(matches!(error, NotListed::OwnNumbers));
    }

    #[test]
    fn refusals_say_what_to_do() {
        assert!(matches!(refusal(Errno::NOTTY), NotListed::NotOffered));
        assert!(
            refusal(Errno::PERM)
                .to_string()
                .contains("file system uses; r")
        );
        assert!(matches!(refusal(Errno::IO), NotListed::Failed(_)));
    }

    #[test]
    fn a_file_system_without_it_says_so() {
        let shm = File::open("/dev/shm")
            .or_else(|_| File::open("/proc"))
            .unwrap();
        let error = of_file(&shm, &|| false).unwrap_err();
        assert!(matches!(error, NotListed::NotOffered), "{error}");
        let stopped = of_file(&shm, &|| true).unwrap_err();
        assert!(matches!(stopped, NotListed::Stopped), "{stopped}");
    }

    #[test]
    fn device_numbers_are_decoded_as_the_kernel_encodes_them() {
        assert_eq!(number_of(0x0010_3003), DeviceNumber::new(0x30, 0x103));
        assert_eq!(number_of(0x0000_0700), DeviceNumber::new(7, 0));
    }

    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!(FS_IOC_GETFSMAP, 0xC0C0_583B);
        assert_eq!(size_of::<RawRecord>(), 64);
        assert_eq!(size_of::<RawHead>(), 192);
    }
}
