//! What the foreground feels, against what it was promised.

use std::collections::VecDeque;

/// So many probes are looked back on: two seconds of them.
const PROBES: usize = 100;
/// Fewer say nothing.
const LEAST: usize = 5;
/// So many times what the kernel counts is looked back on: a second.
const COUNTS: usize = 10;
/// Without a target of the user's, the foreground may get slower by this factor.
pub(crate) const ROOM: f64 = 1.5;

/// What was seen since the last look.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// How long probes took that came back, in seconds.
    pub probes: Vec<f64>,
    /// How long a probe waits that has not come back, in seconds.
    pub waiting: f64,
    /// Requests to the array of anybody else; `None` where the kernel does not count.
    pub others: Option<u64>,
    /// How many requests of anybody the kernel has counted, and the seconds that they took together.
    pub counted: Option<(u64, f64)>,
}

/// The latencies that the foreground is to keep, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Targets {
    /// Of the mean.
    pub mean: Option<f64>,
    /// Of the latency that 1 of 100 requests exceeds.
    pub p99: Option<f64>,
}

/// The last probes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Felt {
    probes: VecDeque<f64>,
    waiting: f64,
    counted: VecDeque<(u64, f64)>,
}

impl Felt {
    /// Takes what was seen.
    pub(crate) fn take(&mut self, seen: &Seen) {
        self.probes.extend(&seen.probes);
        while self.probes.len() > PROBES {
            self.probes.pop_front();
        }
        self.waiting = seen.waiting;
        self.counted.extend(seen.counted);
        while self.counted.len() > COUNTS {
            self.counted.pop_front();
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = Felt::default();
    }

    /// The mean latency: that of probes, or what the kernel counts where that is more. A request that
    /// waits before md has taken it is not in the kernel's count, and probes are few.
    pub(crate) fn mean(&self) -> Option<f64> {
        if self.probes.len() < LEAST {
            return None;
        }
        let probed = self.probes.iter().sum::<f64>() / self.probes.len() as f64;
        let requests: u64 = self.counted.iter().map(|one| one.0).sum();
        let seconds: f64 = self.counted.iter().map(|one| one.1).sum();
        Some(probed.max(seconds / requests.max(1) as f64))
    }

    /// The latency that 1 of 100 exceeds. Of fewer than 200 probes it is the second largest: a single
    /// one may be chance.
    pub(crate) fn p99(&self) -> Option<f64> {
        if self.probes.len() < LEAST {
            return None;
        }
        let mut sorted: Vec<f64> = self.probes.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let above = (sorted.len() / 100).max(1);
        sorted.get(sorted.len() - 1 - above).copied()
    }

    /// The targets for a foreground that feels this by itself.
    pub(crate) fn with_room(&self) -> Option<Targets> {
        Some(Targets {
            mean: Some(ROOM * self.mean()?),
            p99: Some(ROOM * self.p99()?),
        })
    }

    /// What is felt as a multiple of the target; of two targets the one that is kept worse counts.
    /// `None` as long as too little was felt.
    pub(crate) fn ratio(&self, targets: &Targets) -> Option<f64> {
        let of = |felt: Option<f64>, target: Option<f64>| Some(felt? / target?);
        let felt = [of(self.mean(), targets.mean), of(self.p99(), targets.p99)];
        let most = felt.into_iter().flatten().reduce(f64::max);
        // One that has not come back yet is at least as slow as it waits.
        let strictest = [targets.p99, targets.mean].into_iter().flatten().next();
        let waits = strictest
            .map(|target| self.waiting / target)
            .filter(|ratio| *ratio > 1.0);
        [most, waits].into_iter().flatten().reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn felt(probes: &[f64]) -> Felt {
        let mut felt = Felt::default();
        felt.take(&Seen {
            probes: probes.to_vec(),
            ..Seen::default()
        });
        felt
    }

    #[test]
    fn one_slow_probe_is_chance_and_two_are_not() {
        let mut probes = vec![0.001; 98];
        probes.push(1.0);
        assert_eq!(felt(&probes).p99(), Some(0.001));
        probes.push(1.0);
        assert_eq!(felt(&probes).p99(), Some(1.0));
        assert_eq!(felt(&[0.001; LEAST - 1]).p99(), None);
    }

    #[test]
    fn the_target_that_is_kept_worse_counts() {
        let mut probes = vec![0.001; 98];
        probes.extend([0.020, 0.020]);
        let felt = felt(&probes);
        let targets = |mean, p99| Targets { mean, p99 };
        let ratio = |targets| felt.ratio(&targets).unwrap();
        assert!((ratio(targets(None, Some(0.010))) - 2.0).abs() < 1e-9);
        assert!(ratio(targets(Some(0.010), None)) < 0.2);
        assert!((ratio(targets(Some(0.010), Some(0.010))) - 2.0).abs() < 1e-9);
        let room = felt.with_room().unwrap();
        assert!((ratio(room) - 1.0 / ROOM).abs() < 1e-9);
        assert_eq!(felt.ratio(&Targets::default()), None);
    }

    #[test]
    fn a_probe_that_does_not_come_back_is_felt_while_it_waits() {
        let mut felt = felt(&[0.001; 50]);
        let targets = Targets {
            mean: None,
            p99: Some(0.010),
        };
        assert!(felt.ratio(&targets).unwrap() < 0.2);
        felt.take(&Seen {
            waiting: 0.100,
            ..Seen::default()
        });
        assert!(felt.ratio(&targets).unwrap() > 9.0);
    }

    #[test]
    fn what_the_kernel_counts_is_taken_where_it_is_more() {
        let mut felt = felt(&[0.001; 50]);
        let count = |mean| Seen {
            counted: Some((10, 10.0 * mean)),
            ..Seen::default()
        };
        felt.take(&count(0.005));
        assert_eq!(felt.mean(), Some(0.005));
        (0..COUNTS).for_each(|_| felt.take(&count(0.0001)));
        assert!((felt.mean().unwrap() - 0.001).abs() < 1e-9);
    }
}
