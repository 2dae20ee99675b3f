//! Limit of the bytes in flight beside a foreground.
//!
//! A request that is issued cannot be cancelled: when the device is at its cap, a foreground request waits for all that
//! were issued before it. So no more are in flight than the rate takes: its product with the latency of a block (Little's
//! law). A block that is fetched from a snapshot takes long without occupying the volume. The time for which all requests
//! wait in the volume's queue does not count: it is by how much probes take longer than the fastest of them.

use record::{Bytes, Nanos};

/// Bytes in flight that are always allowed: while one request is served, the next one may be issued.
const ALWAYS: f64 = 2.0 * reader::REQUEST_SIZE_BESIDE_FOREGROUND.0 as f64;
/// Multiple of the mean number of bytes in flight at a rate: latencies vary.
const SPARE: f64 = 1.5;
/// Time constant of the averages, in seconds: at the least rate a few tens of blocks.
const AVERAGED_S: f64 = 2.0;

/// Averages by which the limit is set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DepthBeside {
    /// Of blocks that were issued beside a foreground.
    blocks: RecentMean,
    /// Of probes, which read pages that are warm.
    probes: RecentMean,
    /// The minimum latency of a probe.
    least: Option<Nanos>,
}

impl DepthBeside {
    /// Adds the latency of a block.
    pub(crate) fn note_block(&mut self, latency: Nanos) {
        self.blocks.add(latency);
    }

    /// Adds the latency of a probe.
    pub(crate) fn note_probe(&mut self, latency: Nanos) {
        self.probes.add(latency);
        self.least = Some(self.least.map_or(latency, |least| least.min(latency)));
    }

    /// Lets `seconds` pass.
    pub(crate) fn pass(&mut self, seconds: f64) {
        self.blocks.pass(seconds);
        self.probes.pass(seconds);
    }

    /// Maximum number of bytes in flight at a rate in bytes a second.
    pub(crate) fn most(&self, bytes_per_s: f64) -> Bytes {
        let least_s = self.least.unwrap_or_default().as_secs_f64();
        let queued_s = (self.probes.mean_s() - least_s).max(0.0);
        let takes_s = (self.blocks.mean_s() - queued_s).max(0.0);
        Bytes((ALWAYS + SPARE * bytes_per_s * takes_s) as u64)
    }
}

/// Mean latency of the last seconds.
#[derive(Clone, Copy, Debug, Default)]
struct RecentMean {
    /// Sum in seconds, and number; older latencies count less.
    sum_s: f64,
    number: f64,
}

impl RecentMean {
    fn add(&mut self, latency: Nanos) {
        self.sum_s += latency.as_secs_f64();
        self.number += 1.0;
    }

    fn pass(&mut self, seconds: f64) {
        let kept = (-seconds / AVERAGED_S).exp();
        self.sum_s *= kept;
        self.number *= kept;
    }

    /// 0 where there was none.
    fn mean_s(&self) -> f64 {
        if self.number > 0.0 {
            self.sum_s / self.number
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f64 = (64 << 20) as f64;
    const MS: u64 = 1_000_000;

    /// Ten seconds with these latencies of blocks and probes.
    fn pass_ten_seconds(depth: &mut DepthBeside, block: Nanos, probe: Nanos) {
        for _ in 0..250 {
            depth.note_block(block);
            depth.note_probe(probe);
            depth.pass(0.04);
        }
    }

    /// Requests in flight at 64 MiB/s after these latencies.
    fn most(latencies: &[(u64, u64)]) -> f64 {
        let mut depth = DepthBeside::default();
        for (block, probe) in latencies {
            pass_ten_seconds(&mut depth, Nanos(block * MS / 10), Nanos(probe * MS / 10));
        }
        depth.most(RATE).0 as f64 / reader::REQUEST_SIZE_BESIDE_FOREGROUND.0 as f64
    }

    #[test]
    fn warm_blocks_are_as_many_as_the_rate_takes_however_long_all_wait() {
        // 1,024 a second of 1 ms: 1 at once on average.
        assert_eq!(most(&[]), 2.0);
        for queued in [0, 500] {
            let most = most(&[(10, 5), (10 + queued, 5 + queued)]);
            assert!((3.4..3.7).contains(&most), "{queued}: {most}");
        }
    }

    #[test]
    fn fetched_blocks_are_as_many_as_the_rate_takes() {
        // 1,024 a second of 50 ms: 51 at once on average.
        let most = most(&[(500, 5)]);
        assert!((70.0..90.0).contains(&most), "{most}");
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        let most = most(&[(2000, 5), (10, 5), (10, 5)]);
        assert!(most < 4.0, "{most}");
    }
}
