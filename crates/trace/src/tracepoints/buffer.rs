//! Size of the kernel's buffers for events.

use std::ops::RangeInclusive;

use linux::Root;
use linux::machine::{available_memory, memory, online_processors};
use record::{Bytes, Nanos};

/// Bounds of the minimum size of a processor's buffer, which it has at any rate of requests.
const GUARANTEED_SHARE: RangeInclusive<Bytes> = Bytes::MIB..=Bytes::mib(32);
/// Fraction (1/n) of the memory for the minimum size of all buffers together, within these bounds.
const SHARE_OF_MEMORY: u64 = 128;
/// Fraction (1/n) of the available memory that all buffers together take at most.
const SHARE_OF_AVAILABLE: u64 = 32;
/// Bytes of a request's events in the kernel's buffers: 60 for queueing, 72 for issue and 56 for completion, rounded
/// up. Sizes of Linux 6.18; those of earlier versions are smaller.
const REQUEST: u64 = 192;
/// Time between two reads of the buffers without loss of events. The reader also writes the trace, and may wait for a
/// disk that does not answer: the kernel aborts a request to SCSI or NVMe after 30 s (SD_TIMEOUT, NVME_IO_TIMEOUT).
pub(crate) const MAX_READ_INTERVAL: Nanos = Nanos::from_secs(30);

/// Size of each processor's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BufferSize {
    /// The size that the user gave.
    Exactly(Bytes),
    /// A size for this rate in requests per second.
    ForRate(f64),
}

impl BufferSize {
    /// The size on a machine with these bounds.
    pub(super) fn bytes(self, bounds: BufferBounds) -> Bytes {
        match self {
            BufferSize::Exactly(size) => size,
            BufferSize::ForRate(rate) => size_for(rate).clamp(bounds.least, bounds.most),
        }
    }
}

/// Bounds that a machine's memory sets to the size of each processor's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferBounds {
    least: Bytes,
    most: Bytes,
}

impl BufferBounds {
    /// The bounds on this machine. The kernel has `possible` buffers, and allocates memory for those of online
    /// processors (`trace_rb_cpu_prepare`).
    pub(super) fn of(root: &Root, possible: usize) -> BufferBounds {
        let total = memory(root).unwrap_or_default();
        let available = available_memory(root).unwrap_or_default();
        BufferBounds::within(
            total,
            available,
            online_processors(root).unwrap_or(possible),
        )
    }

    fn within(total: Bytes, available: Bytes, processors: usize) -> BufferBounds {
        let of_each = |all: u64| Bytes(all / processors.max(1) as u64);
        let least = of_each(total.0 / SHARE_OF_MEMORY)
            .clamp(*GUARANTEED_SHARE.start(), *GUARANTEED_SHARE.end());
        let most = of_each(available.0 / SHARE_OF_AVAILABLE).max(least);
        BufferBounds { least, most }
    }

    /// The option for larger buffers than a size that was too small at this rate; `None` if memory is insufficient.
    pub(crate) fn larger(self, rate: f64, too_small: Bytes) -> Option<String> {
        let wanted = size_for(rate).0.max(too_small.0.saturating_mul(2));
        let size = Bytes(wanted.min(self.most.0) / Bytes::MIB.0 * Bytes::MIB.0);
        (size > too_small).then(|| option(size))
    }
}

/// Size that holds the events of [`MAX_READ_INTERVAL`] at a rate in requests per second, all of which one processor may
/// issue and complete. Rounded to whole MiB.
fn size_for(rate: f64) -> Bytes {
    let events = rate * MAX_READ_INTERVAL.as_secs_f64() * REQUEST as f64;
    Bytes((events as u64).next_multiple_of(Bytes::MIB.0))
}

/// The option for a recording that loses no events at this rate.
pub(crate) fn option_for(rate: f64) -> String {
    option(size_for(rate).max(Bytes::MIB))
}

fn option(size: Bytes) -> String {
    format!("--buffer {}MiB", size.0 / Bytes::MIB.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_follow_the_rate_between_what_any_rate_has_and_what_the_memory_bears() {
        let size = |gib, processors, rate| {
            let (total, available) = (Bytes::gib(gib), Bytes::gib(gib / 2));
            BufferSize::ForRate(rate).bytes(BufferBounds::within(total, available, processors))
        };
        // 192 bytes a request for 30 s: 10,000 requests a second need 55 MiB.
        for (gib, processors, rate, mib) in [
            (64, 4, 0.0, 32),
            (64, 4, 5_000.0, 32),
            (64, 4, 10_000.0, 55),
            (64, 4, 20_000.0, 110),
            // A 32nd of 32 GiB, a quarter each.
            (64, 4, 1e6, 256),
            (64, 64, 1e6, 16),
            (2, 2, 0.0, 8),
            (2, 2, 2_000.0, 11),
            (2, 2, 1e6, 16),
            (2, 64, 0.0, 1),
            (2, 64, 1e6, 1),
        ] {
            let found = size(gib, processors, rate);
            assert_eq!(found, Bytes::mib(mib), "{gib} {processors} {rate}");
        }
    }

    #[test]
    fn the_option_is_larger_than_what_did_not_do_as_far_as_the_memory_has_room() {
        // At most 256 MiB each.
        let bounds = BufferBounds::within(Bytes::gib(64), Bytes::gib(32), 4);
        let larger = |rate, too_small| bounds.larger(rate, too_small);
        let option = |mib| Some(format!("--buffer {mib}MiB"));
        assert_eq!(larger(10_000.0, Bytes::mib(8)), option(55));
        assert_eq!(larger(10_000.0, Bytes::mib(40)), option(80));
        assert_eq!(larger(1e6, Bytes::mib(8)), option(256));
        assert_eq!(larger(1e6, Bytes::mib(200)), option(256));
        assert_eq!(larger(1e6, Bytes::mib(256)), None);
        assert_eq!(larger(0.0, Bytes::gib(1)), None);
        assert_eq!(option_for(10_000.0), "--buffer 55MiB");
        assert_eq!(option_for(0.0), "--buffer 1MiB");
    }

    #[test]
    fn without_known_memory_the_least_is_taken() {
        let most =
            |total, available, processors| BufferBounds::within(total, available, processors).most;
        assert_eq!(most(Bytes(0), Bytes(0), 0), Bytes::MIB);
        assert_eq!(most(Bytes::gib(64), Bytes::mib(100), 2), Bytes::mib(32));
    }
}
