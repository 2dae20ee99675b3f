//! Limit of requests in flight beside a foreground.
//!
//! A request that is issued cannot be cancelled: when the device is at its cap, a foreground request waits for all that
//! were issued before it. So no more are in flight than the rate takes. A block that is fetched from a snapshot takes
//! long without occupying the volume, and at a rate more of them are in flight at once (Little's law).

use record::{Bytes, Nanos};

/// Requests in flight where none is fetched: while one is served, the next one may be issued.
const SERVED_AT_ONCE: f64 = 2.0;
/// Multiple of the mean number of fetched requests in flight: their latencies vary.
const SPARE: f64 = 1.5;
/// Time constant of the averages, in seconds.
const AVERAGED_S: f64 = 2.0;

/// Averages by which the limit is set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DepthBeside {
    /// Of own requests.
    own: RecentMean,
    /// Of probes, which read pages that are warm.
    probes: RecentMean,
}

impl DepthBeside {
    /// Adds the latency of a block.
    pub(crate) fn note_block(&mut self, latency: Nanos) {
        self.own.add(latency);
    }

    /// Adds the latency of a probe.
    pub(crate) fn note_probe(&mut self, latency: Nanos) {
        self.probes.add(latency);
    }

    /// Lets `seconds` pass.
    pub(crate) fn pass(&mut self, seconds: f64) {
        self.own.pass(seconds);
        self.probes.pass(seconds);
    }

    /// Maximum number of requests of `size` in flight at a rate in bytes a second, at least 2.
    pub(crate) fn most(&self, bytes_per_s: f64, size: Bytes) -> usize {
        let fetch_s = (self.own.mean_s() - self.probes.mean_s()).max(0.0);
        let fetched = bytes_per_s / size.0.max(1) as f64 * fetch_s;
        (SERVED_AT_ONCE + SPARE * fetched) as usize
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

    const SIZE: Bytes = Bytes::kib(64);
    const MS: u64 = 1_000_000;

    /// The limit at 64 MiB/s after ten seconds with these latencies of blocks and probes.
    fn most(block: Nanos, probe: Nanos) -> usize {
        let mut depth = DepthBeside::default();
        for _ in 0..250 {
            depth.note_block(block);
            depth.note_probe(probe);
            depth.pass(0.04);
        }
        depth.most(Bytes::mib(64).0 as f64, SIZE)
    }

    #[test]
    fn warm_blocks_are_two_however_long_all_wait() {
        for latency in [Nanos(MS), Nanos(100 * MS)] {
            assert_eq!(most(latency, latency), 2);
            assert_eq!(most(latency, latency + latency), 2);
        }
        assert_eq!(DepthBeside::default().most(1e9, SIZE), 2);
    }

    #[test]
    fn fetched_blocks_are_as_many_as_the_rate_takes() {
        // 1,024 a second of 50 ms: 51 at once on average.
        let most = most(Nanos(51 * MS), Nanos(MS));
        assert!((70..90).contains(&most), "{most}");
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        let mut depth = DepthBeside::default();
        for latency in [Nanos(200 * MS), Nanos(MS)] {
            for _ in 0..500 {
                depth.note_block(latency);
                depth.note_probe(Nanos(MS));
                depth.pass(0.04);
            }
        }
        assert_eq!(depth.most(1e8, SIZE), 2);
    }
}
