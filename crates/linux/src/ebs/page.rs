//! The whole statistics page of an EC2 volume, and the difference of two.
//!
//! After the counters, from byte 512 on, there are two histograms, of reads and of writes. Each has the number of bins
//! in eight bytes, and 64 bins of 24 bytes each: their bounds in microseconds and a count of 32 bits, which wraps. The
//! page of an instance store has the same form, but it has only one kind of cap, the volume's own, counted in the
//! fields of an EBS volume's instance cap (EC2 User Guide, "Amazon EC2 instance store volume detailed performance
//! statistics": `instance_store_volume_performance_exceeded_iops` and `_tp`; that these are the third and fourth of
//! the four times is in the plugin of nvme-cli).

use std::fs::File;
use std::io;

use record::Nanos;
use record::sample::{LatencyBin, TimeOverLimits, VendorPage, VendorSample};

use super::{MAGIC, VolumeCounters, magic, read_page};

/// Magic number at the start of an instance store's page.
const INSTANCE_STORE_MAGIC: u32 = 0xEC2C_0D7E;
/// Offset of the histogram of reads.
const HISTOGRAMS: usize = 512;
/// Maximum number of bins of a histogram.
const MAX_BINS: usize = 64;
/// Size of a bin, in bytes.
const BIN: usize = 24;
/// Size of a histogram, in bytes.
const HISTOGRAM: usize = 8 + MAX_BINS * BIN;
/// Model name of an EBS volume (EC2 User Guide, "Identify the EBS device").
const EBS_MODEL: &str = "Amazon Elastic Block Store";
/// Model name of an instance store.
const INSTANCE_STORE_MODEL: &str = "Amazon EC2 NVMe Instance Storage";

/// A bin of a histogram as the page has it, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bin {
    from_us: u64,
    to_us: u64,
    count: u32,
}

/// The page at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsPage {
    page: VendorPage,
    counters: VolumeCounters,
    reads: Vec<Bin>,
    writes: Vec<Bin>,
}

impl StatsPage {
    /// True if a disk of this model has the page. It is read from no other disk: there the page with this number has a
    /// vendor-specific meaning.
    pub fn is_had_by(model: &str) -> bool {
        [EBS_MODEL, INSTANCE_STORE_MODEL].contains(&model.trim())
    }

    /// Reads the page of an opened whole disk. Only root may. A controller that hangs blocks the caller for its time
    /// limit (`nvme_core.admin_timeout`, 60 s).
    ///
    /// # Errors
    /// When the kernel or the volume refuses, or returns another page.
    pub fn read(device: &File) -> io::Result<StatsPage> {
        let page = read_page(device)?;
        StatsPage::parse(page.as_slice()).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the disk's log page 0xD0 is not that of a volume of EC2",
            )
        })
    }

    /// Parses a page. `None` if it has neither magic number, or is too short.
    pub fn parse(page: &[u8]) -> Option<StatsPage> {
        let owner = match magic(page)? {
            MAGIC => VendorPage::Ebs,
            INSTANCE_STORE_MAGIC => VendorPage::InstanceStore,
            _ => return None,
        };
        Some(StatsPage {
            page: owner,
            counters: VolumeCounters::fields(page)?,
            reads: bins(page.get(HISTOGRAMS..HISTOGRAMS + HISTOGRAM)?)?,
            writes: bins(page.get(HISTOGRAMS + HISTOGRAM..HISTOGRAMS + 2 * HISTOGRAM)?)?,
        })
    }

    /// Counts since an earlier reading, `length` ago. `None` if a counter decreased, for example because another
    /// volume was attached, or if the pages are of different vendors.
    pub fn since(&self, before: &StatsPage, length: Nanos) -> Option<VendorSample> {
        if self.page != before.page {
            return None;
        }
        let (now, then) = (&self.counters, &before.counters);
        let more = |now: u64, then: u64| now.checked_sub(then);
        let micros = |now: u64, then: u64| Some(Nanos(more(now, then)?.saturating_mul(1000)));
        let exceeded = now.exceeded_since(then)?;
        Some(VendorSample {
            page: self.page,
            length,
            reads: more(now.reads, then.reads)?,
            writes: more(now.writes, then.writes)?,
            read_bytes: more(now.read_bytes, then.read_bytes)?,
            write_bytes: more(now.written_bytes, then.written_bytes)?,
            read_time: micros(now.read_us, then.read_us)?,
            write_time: micros(now.write_us, then.write_us)?,
            exceeded: match self.page {
                VendorPage::Ebs => TimeOverLimits {
                    volume_iops: exceeded.volume_iops.into(),
                    volume_bytes: exceeded.volume_bytes.into(),
                    instance_iops: Some(exceeded.instance_iops.into()),
                    instance_bytes: Some(exceeded.instance_bytes.into()),
                },
                VendorPage::InstanceStore => TimeOverLimits {
                    volume_iops: exceeded.instance_iops.into(),
                    volume_bytes: exceeded.instance_bytes.into(),
                    instance_iops: None,
                    instance_bytes: None,
                },
            },
            queue: now.queue,
            read_latency: more_in_bins(&self.reads, &before.reads),
            write_latency: more_in_bins(&self.writes, &before.writes),
        })
    }
}

fn bins(histogram: &[u8]) -> Option<Vec<Bin>> {
    let long = |at: usize| {
        let bytes = histogram.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let count = usize::try_from(long(0)?).map_or(MAX_BINS, |count| count.min(MAX_BINS));
    (0..count)
        .map(|bin| {
            let at = 8 + BIN * bin;
            let count = histogram.get(at + 16..at + 20)?.try_into().ok()?;
            Some(Bin {
                from_us: long(at)?,
                to_us: long(at + 8)?,
                count: u32::from_le_bytes(count),
            })
        })
        .collect()
}

/// Additions to the bins between two readings. Empty bins are left out.
fn more_in_bins(now: &[Bin], before: &[Bin]) -> Vec<LatencyBin> {
    let nanos = |us: u64| Nanos(us.saturating_mul(1000));
    now.iter()
        .zip(before)
        .filter(|(now, before)| now.from_us == before.from_us && now.count != before.count)
        .map(|(now, before)| LatencyBin {
            from: nanos(now.from_us),
            // The upper bound of the last bin is the largest number, or equals its lower bound.
            to: (now.to_us > now.from_us && now.to_us < u64::MAX).then(|| nanos(now.to_us)),
            count: u64::from(now.count.wrapping_sub(before.count)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A page with these counters after the magic number, and these histograms.
    fn page(magic: u32, counters: [u64; 11], reads: &[Bin], writes: &[Bin]) -> Vec<u8> {
        let mut page = Vec::from(magic.to_le_bytes());
        page.extend([0; 4]);
        page.extend(counters.iter().flat_map(|field| field.to_le_bytes()));
        page.resize(HISTOGRAMS, 0);
        for (end, bins) in [(1, reads), (2, writes)] {
            page.extend((bins.len() as u64).to_le_bytes());
            for bin in bins {
                page.extend(bin.from_us.to_le_bytes());
                page.extend(bin.to_us.to_le_bytes());
                page.extend(bin.count.to_le_bytes());
                page.extend([0; 4]);
            }
            page.resize(HISTOGRAMS + end * HISTOGRAM, 0);
        }
        page.resize(4096, 0);
        page
    }

    fn bin(from_us: u64, to_us: u64, count: u32) -> Bin {
        Bin {
            from_us,
            to_us,
            count,
        }
    }

    #[test]
    fn the_difference_of_two_pages_is_what_happened_between() {
        let before = page(
            MAGIC,
            [10, 20, 4096, 8192, 1000, 2000, 5, 6, 7, 8, 3],
            &[bin(0, 1, 9), bin(1, 2, u32::MAX), bin(2, u64::MAX, 4)],
            &[],
        );
        let now = page(
            MAGIC,
            [15, 20, 8192, 8192, 1500, 2000, 105, 6, 7, 58, 4],
            &[bin(0, 1, 9), bin(1, 2, 2), bin(2, u64::MAX, 5)],
            &[],
        );
        let parse = |page: &[u8]| StatsPage::parse(page).unwrap();
        let since = parse(&now)
            .since(&parse(&before), Nanos::from_secs(1))
            .unwrap();
        assert_eq!((since.reads, since.writes), (5, 0));
        assert_eq!(since.read_time, Nanos(500_000));
        assert_eq!(since.exceeded.volume_iops, Nanos(100_000));
        assert_eq!(since.exceeded.instance_bytes, Some(Nanos(50_000)));
        assert_eq!(since.queue, 4);
        let latency = |from, to, count| LatencyBin {
            from: Nanos(from),
            to,
            count,
        };
        assert_eq!(
            since.read_latency,
            [latency(1000, Some(Nanos(2000)), 3), latency(2000, None, 1)]
        );
        assert!(since.write_latency.is_empty());
        assert!(parse(&before).since(&parse(&now), Nanos(1)).is_none());
    }

    #[test]
    fn an_instance_store_has_caps_of_its_own_alone() {
        let counters = [1; 11];
        let text = page(INSTANCE_STORE_MAGIC, counters, &[], &[]);
        let store = StatsPage::parse(&text).unwrap();
        let later = page(
            INSTANCE_STORE_MAGIC,
            [1, 1, 1, 1, 1, 1, 1, 1, 8, 21, 3],
            &[],
            &[],
        );
        let later = StatsPage::parse(&later).unwrap();
        let since = later.since(&store, Nanos::from_secs(1)).unwrap();
        assert_eq!(since.page, VendorPage::InstanceStore);
        let own = TimeOverLimits {
            volume_iops: Nanos(7_000),
            volume_bytes: Nanos(20_000),
            ..TimeOverLimits::default()
        };
        assert_eq!(since.exceeded, own);
        let volume = StatsPage::parse(&page(MAGIC, counters, &[], &[])).unwrap();
        assert_eq!(volume.since(&store, Nanos(1)), None);
    }

    #[test]
    fn only_a_page_of_ec2_is_believed() {
        let text = page(MAGIC, [0; 11], &[], &[]);
        assert!(StatsPage::parse(&text[..HISTOGRAMS + 2 * HISTOGRAM]).is_some());
        assert!(StatsPage::parse(&text[..HISTOGRAMS + 2 * HISTOGRAM - 1]).is_none());
        assert!(StatsPage::parse(&page(7, [0; 11], &[], &[])).is_none());
        assert!(StatsPage::is_had_by("Amazon Elastic Block Store   "));
        assert!(!StatsPage::is_had_by("Samsung SSD"));
    }

    #[test]
    fn what_is_no_nvme_device_refuses() {
        assert!(StatsPage::read(&File::open("/dev/null").unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn any_page_is_read_or_refused(mut text in prop::collection::vec(any::<u8>(), 0..4096)) {
            let _ = StatsPage::parse(&text);
            if text.len() > 4 {
                text[..4].copy_from_slice(&MAGIC.to_le_bytes());
            }
            if let Some(page) = StatsPage::parse(&text) {
                prop_assert!(page.since(&page, Nanos(1)).is_some());
            }
        }
    }
}
