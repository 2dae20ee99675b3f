//! An EBS volume's own counters: the log page 0xD0 of its NVMe controller, on instances of the Nitro system.
//!
//! Meaning of the counters: EBS User Guide, "Amazon EBS detailed performance statistics". Their offsets in the page:
//! AWS's own reader (`ebsnvme` in amazon-ec2-utils), which agrees with the plugin of nvme-cli for these volumes.
//! [`StatsPage`] is the whole page, including the volume's latency histograms; the page of instance stores has the
//! same layout.
#![allow(unsafe_code)]

mod page;

pub use page::StatsPage;

use std::fs::File;
use std::io;
use std::time::Duration;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// Magic number at the start of the page.
const MAGIC: u32 = 0x3C23_B510;
/// Identifier of the log page.
const PAGE: u32 = 0xD0;
/// Length in bytes.
const LENGTH: usize = 4096;

/// The counters of a volume since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeCounters {
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Total time of all reads, in microseconds.
    pub read_us: u64,
    /// Total time of all writes, in microseconds.
    pub write_us: u64,
    /// Microseconds in which demand exceeded the volume's provisioned IOPS.
    pub over_volume_iops_us: u64,
    /// Microseconds in which demand exceeded the volume's provisioned throughput.
    pub over_volume_bytes_us: u64,
    /// Microseconds in which demand exceeded the instance's IOPS limit.
    pub over_instance_iops_us: u64,
    /// Microseconds in which demand exceeded the instance's throughput limit.
    pub over_instance_bytes_us: u64,
    /// Requests waiting or in progress at that moment.
    pub queue: u64,
}

/// Time for which demand exceeded the limits, between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExceededLimits {
    /// Time over the volume's limit of operations a second.
    pub volume_iops: Duration,
    /// Time over the volume's limit of bytes a second.
    pub volume_bytes: Duration,
    /// Time over the instance's limit of operations a second.
    pub instance_iops: Duration,
    /// Time over the instance's limit of bytes a second.
    pub instance_bytes: Duration,
}

impl VolumeCounters {
    /// Reads the page of an opened volume, which must be a whole disk. Only root may.
    ///
    /// It is only read from a device that identifies itself as an EBS volume: on other devices the page with this
    /// number has a vendor-specific meaning. Get Log Page changes nothing (NVMe Base Specification, Get Log Page
    /// command); the histograms and counters continue.
    ///
    /// # Errors
    /// When the kernel or the volume refuses, or returns another page.
    pub fn read(device: &File) -> io::Result<VolumeCounters> {
        let page = read_page(device)?;
        VolumeCounters::parse(page.as_slice()).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the volume's log page 0xD0 is not that of an EBS volume",
            )
        })
    }

    /// Parses the counters of a page. `None` if it does not have the magic number of an EBS volume, or is too short.
    pub fn parse(page: &[u8]) -> Option<VolumeCounters> {
        (magic(page)? == MAGIC).then(|| VolumeCounters::fields(page))?
    }

    /// Parses the counters of a page, of an EBS volume or an instance store.
    fn fields(page: &[u8]) -> Option<VolumeCounters> {
        let field = |number: usize| {
            // After the magic number and four bytes that are reserved, fields of eight bytes.
            let at = 8 + 8 * number;
            let bytes = page.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        Some(VolumeCounters {
            reads: field(0)?,
            writes: field(1)?,
            read_bytes: field(2)?,
            written_bytes: field(3)?,
            read_us: field(4)?,
            write_us: field(5)?,
            over_volume_iops_us: field(6)?,
            over_volume_bytes_us: field(7)?,
            over_instance_iops_us: field(8)?,
            over_instance_bytes_us: field(9)?,
            queue: field(10)?,
        })
    }

    /// Time over the limits since an earlier reading. `None` if a counter decreased, for example because the volume
    /// was attached again.
    pub fn exceeded_since(&self, before: &VolumeCounters) -> Option<ExceededLimits> {
        let passed = |now: u64, before: u64| now.checked_sub(before).map(Duration::from_micros);
        Some(ExceededLimits {
            volume_iops: passed(self.over_volume_iops_us, before.over_volume_iops_us)?,
            volume_bytes: passed(self.over_volume_bytes_us, before.over_volume_bytes_us)?,
            instance_iops: passed(self.over_instance_iops_us, before.over_instance_iops_us)?,
            instance_bytes: passed(self.over_instance_bytes_us, before.over_instance_bytes_us)?,
        })
    }
}

/// The magic number of a page.
fn magic(page: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(page.get(..4)?.try_into().ok()?))
}

/// Reads the page from the controller.
fn read_page(device: &File) -> io::Result<Box<[u8; LENGTH]>> {
    let mut page = Box::new([0_u8; LENGTH]);
    let mut command = RawCommand::get_log_page(&mut page);
    // SAFETY: the opcode is NVME_IOCTL_ADMIN_CMD, whose argument is a struct nvme_passthru_cmd, as
    // `RawCommand` is laid out. It names a buffer of `data_len` bytes that lives until the call is
    // over, which the kernel fills; any bytes are valid in it.
    let status = unsafe {
        ioctl(
            device,
            Updater::<NVME_IOCTL_ADMIN_CMD, RawCommand>::new(&mut command),
        )
    };
    status?;
    Ok(page)
}

/// struct nvme_passthru_cmd (include/uapi/linux/nvme_ioctl.h).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    data: u64,
    metadata_len: u32,
    data_len: u32,
    words_10_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// NVME_IOCTL_ADMIN_CMD is `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const NVME_IOCTL_ADMIN_CMD: Opcode = opcode::read_write::<RawCommand>(b'N', 0x41);

impl RawCommand {
    /// Get Log Page (0x02) for the page [`PAGE`] into a buffer. Word 10 has the page's identifier and, from bit 16 on,
    /// the number of dwords requested, minus one.
    fn get_log_page(into: &mut [u8; LENGTH]) -> RawCommand {
        let words = (LENGTH / 4 - 1) as u32;
        RawCommand {
            opcode: 0x02,
            namespace: 1,
            data: into.as_mut_ptr() as u64,
            data_len: LENGTH as u32,
            words_10_15: [PAGE | words << 16, 0, 0, 0, 0, 0],
            ..RawCommand::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A page with these fields after the magic number, as AWS's reader has them in order.
    fn page(fields: [u64; 11]) -> Vec<u8> {
        let mut page = Vec::from(MAGIC.to_le_bytes());
        page.extend([0; 4]);
        page.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
        page.resize(LENGTH, 0);
        page
    }

    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!(size_of::<RawCommand>(), 72);
        assert_eq!(NVME_IOCTL_ADMIN_CMD, 0xC048_4E41);
        let mut buffer = [0; LENGTH];
        let command = RawCommand::get_log_page(&mut buffer);
        assert_eq!(command.words_10_15[0], 0x03FF_00D0);
    }

    #[test]
    fn only_an_ebs_page_is_believed() {
        let fields = std::array::from_fn(|number| number as u64);
        let mut page = page(fields);
        assert!(VolumeCounters::parse(&page).is_some());
        assert!(VolumeCounters::parse(&page[..95]).is_none());
        assert!(VolumeCounters::parse(&page[..96]).is_some());
        page[0] ^= 1;
        assert!(VolumeCounters::parse(&page).is_none());
        // The magic number of instance stores, whose page has the same layout and another meaning.
        page[..4].copy_from_slice(&0xEC2C_0D7E_u32.to_le_bytes());
        assert!(VolumeCounters::parse(&page).is_none());
    }

    #[test]
    fn what_is_no_nvme_device_refuses() {
        assert!(VolumeCounters::read(&File::open("/dev/null").unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn every_field_is_where_it_belongs(fields in any::<[u64; 11]>()) {
            let counters = VolumeCounters::parse(&page(fields)).unwrap();
            let read = [
                counters.reads,
                counters.writes,
                counters.read_bytes,
                counters.written_bytes,
                counters.read_us,
                counters.write_us,
                counters.over_volume_iops_us,
                counters.over_volume_bytes_us,
                counters.over_instance_iops_us,
                counters.over_instance_bytes_us,
                counters.queue,
            ];
            prop_assert_eq!(read, fields);
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = VolumeCounters::parse(&bytes);
        }

        #[test]
        fn time_passes_or_nothing_is_reported(before in any::<[u64; 11]>(), more in any::<[u32; 11]>()) {
            let before = before.map(|field| field / 2);
            let mut now = before;
            for (now, more) in now.iter_mut().zip(more) {
                *now += u64::from(more);
            }
            let (before, now) = (page(before), page(now));
            let (before, now) = (VolumeCounters::parse(&before).unwrap(), VolumeCounters::parse(&now).unwrap());
            let exceeded = now.exceeded_since(&before).unwrap();
            prop_assert_eq!(exceeded.volume_iops, Duration::from_micros(u64::from(more[6])));
            prop_assert_eq!(exceeded.instance_bytes, Duration::from_micros(u64::from(more[9])));
            let back = more[6..10].iter().any(|more| *more > 0);
            prop_assert_eq!(before.exceeded_since(&now).is_none(), back);
        }
    }
}
