//! Rates of a device from its counters, computed as iostat does.

use std::sync::Arc;

use linux::diskstats::{CountedFields, DiskStats, SECTOR};
use record::sample::{BytesPerSecond, Device, DeviceKind, DeviceSample, Flow, Fraction, PerSecond};
use record::{Bytes, Nanos};

use super::device_registry::DeviceReading;

/// Numbers in flight from this value on are small negative numbers: some kernels count a request of a stacked device as
/// completed before it began.
const MIN_NEGATIVE_COUNT: u64 = 1 << 31;

/// The sample of a device.
pub(super) fn sample(device: Arc<Device>, seen: &DeviceReading, seconds: f64) -> DeviceSample {
    let mut sample = DeviceSample::unknown(device);
    let in_flight = seen.stats.in_flight;
    sample.in_flight = (in_flight < MIN_NEGATIVE_COUNT).then_some(in_flight);
    sample.reset = seen.reset;
    if let Some(moved) = seen.moved.filter(|_| seconds > 0.0) {
        let clock = has_clock(sample.device.kind, &seen.stats);
        fill(&mut sample, &moved, seen.counted, seconds, clock);
    }
    sample
}

/// True if the counters measure time. Those of arrays do not before Linux 5.14: they stay at zero.
fn has_clock(kind: DeviceKind, stats: &DiskStats) -> bool {
    let stacked = matches!(kind, DeviceKind::Array | DeviceKind::Mapper);
    !stacked || stats.busy_ms > 0 || stats.weighted_ms > 0 || stats.reads + stats.writes == 0
}

fn fill(
    sample: &mut DeviceSample,
    moved: &DiskStats,
    counted: CountedFields,
    seconds: f64,
    has_clock: bool,
) {
    let flow = |ops: u64, sectors: Option<u64>, merged: Option<u64>, ms: u64| Flow {
        iops: Some(PerSecond(ops as f64 / seconds)),
        // Some drivers count below zero, which appears as a very large number.
        bytes: sectors
            .map(|sectors| BytesPerSecond(sectors.saturating_mul(SECTOR) as f64 / seconds)),
        merged: merged.map(|merged| PerSecond(merged as f64 / seconds)),
        wait: (ops > 0 && has_clock).then(|| Nanos((ms as f64 * 1e6 / ops as f64).round() as u64)),
        size: sectors
            .filter(|_| ops > 0)
            .map(|sectors| Bytes(sectors.saturating_mul(SECTOR) / ops)),
    };
    sample.read = flow(
        moved.reads,
        Some(moved.sectors_read),
        Some(moved.reads_merged),
        moved.read_ms,
    );
    sample.write = flow(
        moved.writes,
        Some(moved.sectors_written),
        Some(moved.writes_merged),
        moved.write_ms,
    );
    if counted.discards {
        sample.discard = flow(
            moved.discards,
            Some(moved.sectors_discarded),
            Some(moved.discards_merged),
            moved.discard_ms,
        );
    }
    // Partitions have this field and never count in it.
    if counted.flushes && sample.device.kind != DeviceKind::Partition {
        sample.flush = flow(moved.flushes, None, None, moved.flush_ms);
    }
    if has_clock {
        let milliseconds = seconds * 1e3;
        sample.mean_in_flight = Some(moved.weighted_ms as f64 / milliseconds);
        // The kernel counts in ticks of some milliseconds, so that the busy time may exceed a short interval.
        sample.busy = Some(Fraction((moved.busy_ms as f64 / milliseconds).min(1.0)));
    }
    sample.sum_up();
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux::block::DeviceNumber;
    use record::sample::{DeviceId, SampleTime};

    fn device(name: &str) -> Arc<Device> {
        Arc::new(Device::by_name(DeviceId(0), name, SampleTime::default()))
    }

    fn seen(moved: DiskStats) -> DeviceReading {
        DeviceReading {
            stats: DiskStats {
                busy_ms: 1,
                in_flight: moved.in_flight,
                reads: 9,
                ..DiskStats::default()
            },
            moved: Some(moved),
            counted: CountedFields {
                discards: true,
                flushes: true,
            },
            number: DeviceNumber::new(8, 0),
            reset: false,
        }
    }

    #[test]
    fn rates_are_over_the_interval() {
        let moved = DiskStats {
            reads: 100,
            sectors_read: 3200,
            reads_merged: 10,
            read_ms: 250,
            writes: 0,
            flushes: 4,
            flush_ms: 10,
            in_flight: 3,
            busy_ms: 400,
            weighted_ms: 260,
            ..DiskStats::default()
        };
        let sample = sample(device("vda"), &seen(moved), 0.5);
        assert_eq!(sample.read.iops, Some(PerSecond(200.0)));
        assert_eq!(
            sample.read.bytes,
            Some(BytesPerSecond(3200.0 * 512.0 / 0.5))
        );
        assert_eq!(sample.read.merged, Some(PerSecond(20.0)));
        assert_eq!(sample.read.wait, Some(Nanos(2_500_000)));
        assert_eq!(sample.read.size, Some(Bytes::kib(16)));
        assert_eq!(sample.write.iops, Some(PerSecond(0.0)));
        assert_eq!(sample.write.wait, None);
        assert_eq!(sample.flush.wait, Some(Nanos(2_500_000)));
        assert_eq!(sample.flush.bytes, None);
        assert_eq!(sample.in_flight, Some(3));
        assert_eq!(sample.mean_in_flight, Some(0.52));
        assert_eq!(sample.busy, Some(Fraction(0.8)));
        assert_eq!(sample.all.iops, Some(PerSecond(200.0)));
    }

    #[test]
    fn counters_that_a_kernel_lacks_are_not_known() {
        let mut old = seen(DiskStats {
            reads: 1,
            ..DiskStats::default()
        });
        old.counted = CountedFields::default();
        let disk = sample(device("sda"), &old, 1.0);
        assert_eq!((disk.discard, disk.flush), Default::default());
        let mut part = Device::clone(&device("sda1"));
        part.kind = DeviceKind::Partition;
        let part = sample(Arc::new(part), &seen(DiskStats::default()), 1.0);
        assert_eq!(part.flush, Flow::default());
        assert_eq!(part.discard.iops, Some(PerSecond(0.0)));
        old.stats.busy_ms = 0;
        let array = sample(device("md0"), &old, 1.0);
        assert_eq!((array.read.wait, array.busy), (None, None));
        assert_eq!(array.read.iops, Some(PerSecond(1.0)));
    }

    #[test]
    fn no_disk_is_busy_for_longer_than_the_interval_nor_moves_less_than_nothing() {
        let odd = DiskStats {
            reads: 1,
            sectors_read: u64::MAX,
            busy_ms: 104,
            ..DiskStats::default()
        };
        let sample = sample(device("vda"), &seen(odd), 0.1);
        assert_eq!(sample.busy, Some(Fraction(1.0)));
        assert!(sample.read.bytes.is_some_and(|bytes| bytes.0 > 0.0));
    }

    #[test]
    fn nothing_in_flight_is_never_less_than_nothing() {
        let below = DiskStats {
            in_flight: u64::from(u32::MAX),
            ..DiskStats::default()
        };
        let sample = sample(device("md0"), &seen(below), 1.0);
        assert_eq!(sample.in_flight, None);
    }

    #[test]
    fn without_an_earlier_reading_only_now_is_known() {
        let mut first = seen(DiskStats::default());
        first.moved = None;
        first.stats.in_flight = 2;
        let sample = sample(device("vda"), &first, 1.0);
        assert_eq!((sample.in_flight, sample.read), (Some(2), Flow::default()));
    }
}
