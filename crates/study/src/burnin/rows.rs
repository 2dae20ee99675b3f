//! The rounds of one disk: its level, and the rounds in which it was slow.

/// Number of standard deviations of the noise by which a slow round is below the others. Normal noise reaches that in
/// one round of three million.
pub(super) const SLOW_DEVIATIONS: f64 = 5.0;

/// Number of rounds from which a disk's own scatter decides which rounds are slow.
const MIN_OWN_ROUNDS: usize = 6;

/// The median absolute deviation of a normal value, in standard deviations.
const MAD: f64 = 0.674_49;

/// The rounds of a disk, as logarithms and without the effects of the hours.
#[derive(Clone, Debug, Default)]
pub(super) struct DiskRounds {
    /// Logarithms of the rounds, in four bytes each: there may be millions.
    logs: Vec<f32>,
    /// The mean of the calm rounds, as a logarithm.
    pub(super) level: f64,
    /// Number of calm rounds, and the sum of the squares of their distances from the level.
    pub(super) calm: usize,
    pub(super) squares: f64,
    /// Number of slow rounds.
    pub(super) slow: usize,
    /// Mean depth of the slow rounds below the level, as a difference of logarithms.
    pub(super) depth: f64,
    /// Number of rounds at the last judgement, and the noise used in it.
    judged: (usize, f64),
}

impl DiskRounds {
    pub(super) fn push(&mut self, log: f64) {
        self.logs.push(log as f32);
        if self.logs.len() == 1 {
            self.level = log;
            self.calm = 1;
        }
    }

    /// Number of rounds.
    pub(super) fn rounds(&self) -> usize {
        self.logs.len()
    }

    /// The unbiased variance of all rounds, while there are few and none is left out.
    pub(super) fn plain_variance(&self) -> Option<f64> {
        let count = self.logs.len() as f64;
        let mean = self.logs.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
        let squares: f64 = self
            .logs
            .iter()
            .map(|x| (f64::from(*x) - mean).powi(2))
            .sum();
        (self.logs.len() > 1).then(|| squares / (count - 1.0))
    }

    /// Separates the slow rounds from the calm ones; false where nothing has changed.
    pub(super) fn judge(&mut self, deviation: f64) -> bool {
        let state = (self.logs.len(), deviation);
        if self.judged == state || self.logs.is_empty() {
            return false;
        }
        self.judged = state;
        // The upper median: of two rounds the better one, and calm if half of the rounds are slow.
        let usual = upper_median(&self.logs);
        self.classify(usual, self.far(usual, deviation));
        true
    }

    /// Separates the slow rounds from the calm ones by the scatter of other disks alone. A disk whose level drops
    /// during the race has two levels, which its own scatter would include as noise.
    pub(super) fn judge_by_others(&mut self, deviation: f64) {
        let usual = upper_median(&self.logs);
        self.classify(usual, self.reach(deviation));
    }

    /// Separates the rounds that are below `usual` by more than `far`.
    fn classify(&mut self, usual: f64, far: f64) {
        let (mut calm, mut sum) = (0_usize, 0.0);
        let (mut slow, mut below) = (0_usize, 0.0);
        for log in &self.logs {
            let log = f64::from(*log);
            if log < usual - far {
                slow += 1;
                below += log;
            } else if log <= usual + far {
                calm += 1;
                sum += log;
            }
        }
        self.calm = calm;
        self.level = sum / calm.max(1) as f64;
        self.slow = slow;
        self.depth = if slow == 0 {
            0.0
        } else {
            self.level - below / slow as f64
        };
        let off = |log: &f32| (f64::from(*log) - self.level).powi(2);
        let near = |log: &&f32| (f64::from(**log) - usual).abs() <= far;
        self.squares = self.logs.iter().filter(near).map(off).sum();
    }

    /// Distance below the usual value from which a round is slow.
    fn far(&self, usual: f64, deviation: f64) -> f64 {
        let own = if self.logs.len() < MIN_OWN_ROUNDS {
            0.0
        } else {
            let off: Vec<f32> = self
                .logs
                .iter()
                .map(|x| (f64::from(*x) - usual).abs() as f32)
                .collect();
            upper_median(&off) / MAD
        };
        self.reach(deviation.max(own))
    }

    /// The same with a known scatter.
    fn reach(&self, deviation: f64) -> f64 {
        // The median of few rounds has an error of its own: 1.57 times the variance of a mean.
        SLOW_DEVIATIONS * deviation * (1.0 + 1.57 / self.logs.len() as f64).sqrt()
    }

    /// The figure: the mean of the worst `tail` of the rounds, if the share `share` of them is slow.
    pub(super) fn figure(&self, share: f64, tail: f64) -> f64 {
        self.level - (share / tail).min(1.0) * self.depth
    }
}

/// The middle value, the upper one of two; zero without values.
fn upper_median(values: &[f32]) -> f64 {
    let mut values = values.to_vec();
    let middle = values.len() / 2;
    if values.is_empty() {
        return 0.0;
    }
    let (_, at, _) = values.select_nth_unstable_by(middle, f32::total_cmp);
    f64::from(*at)
}
