//! The foreground without the background: its latency, and the throughput that the background costs it.

use super::Targets;
use super::latencies::LastLatencies;

/// Maximum number of latencies that are kept: those of about a minute between two periods of work, so that changes of
/// the load over a day are followed.
const MAX_LATENCIES: usize = 400;
/// Minimum number of latencies for a p99.
const MIN_LATENCIES_FOR_P99: usize = 50;
/// Time after which a third of the weight of a known value is left, in seconds. By time and not by cycle: with long
/// cycles a loss by chance would count for minutes, and with short ones a true one would soon be forgotten.
const REMEMBERED_S: f64 = 60.0;

/// Share of the weight of known values that is left after so many seconds.
fn remembered(seconds: f64) -> f64 {
    (-seconds / REMEMBERED_S).exp()
}

/// Latencies of the foreground while the background pauses.
#[derive(Clone, Debug, Default)]
pub(super) struct PausedLatencies {
    probed: LastLatencies<MAX_LATENCIES>,
    timed: (f64, f64),
}

impl PausedLatencies {
    pub(super) fn take(&mut self, latencies_s: &[f64], timed: Option<(f64, f64)>) {
        self.probed.take(latencies_s);
        if let Some((requests, seconds)) = timed {
            self.timed.0 += requests;
            self.timed.1 += seconds;
        }
    }

    /// Lowers the weight of earlier timed requests at the end of a cycle of work and pause of so many seconds.
    pub(super) fn fade(&mut self, seconds: f64) {
        self.timed.0 *= remembered(seconds);
        self.timed.1 *= remembered(seconds);
    }

    /// True if there are enough latencies for a p99.
    pub(super) fn is_enough(&self) -> bool {
        self.probed.len() >= MIN_LATENCIES_FOR_P99
    }

    pub(super) fn mean_of_probes_s(&self) -> Option<f64> {
        self.probed.mean_s()
    }

    /// Mean and p99 of the foreground without the background.
    pub(super) fn latency(&self) -> Targets {
        let mean_of_timed_s = (self.timed.0 > 0.0).then(|| self.timed.1 / self.timed.0);
        Targets {
            mean_s: mean_of_timed_s.or(self.probed.mean_s()),
            p99_s: self.probed.p99_s(),
        }
    }
}

/// Share of its throughput that the foreground may lose.
pub(super) const MAX_LOSS: f64 = 0.001;
/// Number of standard errors beyond which a loss is significant, and minimum number of cycles.
const SIGNIFICANCE_SE: f64 = 2.0;
const MIN_CYCLES: f64 = 3.0;

/// Throughput of the foreground as a function of the background's rate: the cost of one byte of the background.
///
/// A closed-loop foreground, which waits for each completion, loses by every delay; an open-loop one loses nothing
/// until the device is saturated. Each cycle gives one difference between a pause and the work before it; their slope
/// over the rate (least squares through zero) remains valid when the rate changes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Throughput {
    /// Requests and seconds of the pause, and of the work.
    paused: (f64, f64),
    worked: (f64, f64),
    bytes: f64,
    /// Sums of rate², rate × difference, difference², of weights, and of the paused throughput.
    xx: f64,
    xy: f64,
    yy: f64,
    cycles: f64,
    level: f64,
}

impl Throughput {
    pub(super) fn paused(&mut self, requests: f64, seconds: f64) {
        self.paused.0 += requests;
        self.paused.1 += seconds;
    }

    pub(super) fn worked(&mut self, requests: f64, seconds: f64, bytes: f64) {
        self.worked.0 += requests;
        self.worked.1 += seconds;
        self.bytes += bytes;
    }

    /// Adds the end of the work, while the background's last requests complete; ignored if there was no work in this
    /// cycle.
    pub(super) fn drained(&mut self, requests: f64, seconds: f64, bytes: f64) {
        if self.worked.1 > 0.0 {
            self.worked(requests, seconds, bytes);
        }
    }

    /// Ends a cycle of pause and work: adds the difference of its throughputs to the sums. Returns its length in
    /// seconds.
    pub(super) fn cycle(&mut self) -> f64 {
        let (paused, worked, bytes) = (self.paused, self.worked, self.bytes);
        (self.paused, self.worked, self.bytes) = ((0.0, 0.0), (0.0, 0.0), 0.0);
        let seconds = paused.1 + worked.1;
        // A foreground that pauses by itself gives no information.
        if paused.0 <= 0.0 || worked.0 <= 0.0 || paused.1 <= 0.0 || worked.1 <= 0.0 {
            return seconds;
        }
        let level = paused.0 / paused.1;
        let lost = level - worked.0 / worked.1;
        let rate = bytes / worked.1;
        let keeps = remembered(seconds);
        self.xx = keeps * self.xx + rate * rate;
        self.xy = keeps * self.xy + rate * lost;
        self.yy = keeps * self.yy + lost * lost;
        self.cycles = keeps * self.cycles + 1.0;
        self.level = keeps * self.level + level;
        seconds
    }

    /// The rate at which the foreground loses [`MAX_LOSS`] of its throughput, by the smallest slope that is not
    /// rejected; `None` if no loss is significant.
    pub(super) fn bound(&self) -> Option<f64> {
        if self.cycles < MIN_CYCLES || self.xx <= 0.0 {
            return None;
        }
        let slope = self.xy / self.xx;
        let left = (self.yy - slope * self.xy).max(0.0) / (self.cycles - 1.0);
        // With few cycles the standard error itself is uncertain (approximately Student's quantiles).
        let errors = SIGNIFICANCE_SE * (1.0 + SIGNIFICANCE_SE / (self.cycles - 1.0));
        let significant_slope = slope - errors * (left / self.xx).sqrt();
        let level = self.level / self.cycles;
        (significant_slope > 0.0).then(|| MAX_LOSS * level / significant_slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_given_late_count_as_of_the_work() {
        let mut throughput = Throughput::default();
        // There was no work before.
        throughput.drained(50.0, 0.5, 0.0);
        assert_eq!(throughput.worked, (0.0, 0.0));
        for rate in [1e6, 2e6, 3e6, 4e6] {
            throughput.worked(80.0, 1.0, rate);
            // 104 in 1.04 s: the same rate as alone.
            throughput.drained(24.0, 0.04, 0.0);
            throughput.paused(50.0, 0.5);
            throughput.cycle();
        }
        assert_eq!(throughput.bound(), None);
    }

    #[test]
    fn a_loss_is_forgotten_by_time_whatever_the_length_of_cycles() {
        /// Throughput after four cycles with a loss of about a fifth.
        fn with_a_loss() -> Throughput {
            let mut throughput = Throughput::default();
            for lost in [19.0, 21.0, 20.0, 18.0] {
                throughput.worked(0.5 * (100.0 - lost), 0.5, 5e6);
                throughput.paused(25.0, 0.25);
                assert_eq!(throughput.cycle(), 0.75);
            }
            assert!(throughput.bound().is_some());
            throughput
        }
        for work_s in [0.5, 4.0] {
            let mut throughput = with_a_loss();
            let (before, mut seconds) = (throughput.xx, 0.0);
            while seconds < REMEMBERED_S {
                throughput.worked(100.0 * work_s, work_s, 0.0);
                throughput.paused(25.0, 0.25);
                seconds += throughput.cycle();
            }
            let left = throughput.xx / before;
            assert!((0.33..0.38).contains(&left), "{work_s} {left}");
        }
    }
}
