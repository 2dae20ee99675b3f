//! Size of the kernel's buffers for events.

use std::ops::RangeInclusive;

use linux::Root;
use linux::machine::{available_memory, memory};
use record::{Bytes, Nanos};

/// Bounds of the share of the memory that a processor's buffer takes at any rate.
const LEAST: RangeInclusive<Bytes> = Bytes::MIB..=Bytes::mib(32);
/// Share of the memory that all buffers take together at any rate, within these bounds.
const SHARE_OF_MEMORY: u64 = 128;
/// Share of the available memory that all buffers take together at most.
const SHARE_OF_AVAILABLE: u64 = 32;
/// Bytes of a request's events in the kernel's buffers: 60 of its arrival, 72 of its issue and 56 of its completion,
/// rounded up. The fields of Linux 6.18; earlier ones are shorter.
const REQUEST: u64 = 192;
/// Longest time between two reads of the buffers that loses nothing: the reader also writes the trace, and waits for a
/// disk that does not answer. The kernel aborts a request of SCSI or NVMe after 30 s (SD_TIMEOUT, NVME_IO_TIMEOUT).
pub(crate) const AWAY: Nanos = Nanos::from_secs(30);

/// Size of each processor's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BufferSize {
    /// As the user has it.
    Exactly(Bytes),
    /// For so many requests a second.
    ForRate(f64),
}

impl BufferSize {
    /// The size on a machine with so many buffers.
    pub(super) fn bytes(self, root: &Root, processors: usize) -> Bytes {
        match self {
            BufferSize::Exactly(size) => size,
            BufferSize::ForRate(rate) => {
                let total = memory(root).unwrap_or_default();
                let available = available_memory(root).unwrap_or_default();
                within(total, available, processors, rate)
            }
        }
    }
}

/// Size for a rate of requests a second, within the bounds that a machine's memory sets.
fn within(total: Bytes, available: Bytes, processors: usize, rate: f64) -> Bytes {
    let of_each = |all: u64| Bytes(all / processors.max(1) as u64);
    let least = of_each(total.0 / SHARE_OF_MEMORY).clamp(*LEAST.start(), *LEAST.end());
    let most = of_each(available.0 / SHARE_OF_AVAILABLE).max(least);
    size_for(rate).clamp(least, most)
}

/// Size that holds the events of [`AWAY`] at a rate of requests a second, all of which one processor may issue and
/// complete. In whole MiB, as a person would write it.
fn size_for(rate: f64) -> Bytes {
    let events = rate * AWAY.as_secs_f64() * REQUEST as f64;
    whole_mib(Bytes(events as u64))
}

fn whole_mib(size: Bytes) -> Bytes {
    Bytes(size.0.next_multiple_of(Bytes::MIB.0))
}

/// The option of a recording that loses nothing at this rate, with more than a size that did not do.
pub(crate) fn option_for(rate: f64, too_small: Bytes) -> String {
    let size = size_for(rate).max(whole_mib(Bytes(2 * too_small.0)));
    format!("--buffer {}MiB", size.max(Bytes::MIB).0 / Bytes::MIB.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_follow_the_rate_between_what_any_rate_has_and_what_the_memory_bears() {
        let size = |gib, processors, rate| {
            let (total, available) = (Bytes::gib(gib), Bytes::gib(gib / 2));
            within(total, available, processors, rate)
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
    fn the_option_is_larger_than_what_did_not_do() {
        assert_eq!(option_for(10_000.0, Bytes::mib(8)), "--buffer 55MiB");
        assert_eq!(option_for(10_000.0, Bytes::mib(40)), "--buffer 80MiB");
        assert_eq!(option_for(0.0, Bytes::kib(16)), "--buffer 1MiB");
    }

    #[test]
    fn without_known_memory_the_least_is_taken() {
        assert_eq!(within(Bytes(0), Bytes(0), 0, 1e9), Bytes::MIB);
        let scarce = within(Bytes::gib(64), Bytes::mib(100), 2, 1e6);
        assert_eq!(scarce, Bytes::mib(32));
    }
}
