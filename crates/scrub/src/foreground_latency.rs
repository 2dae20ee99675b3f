//! What the foreground feels, against what it was promised.
//!
//! Latencies of cloud volumes and of shared disks have long tails, so that a percentile of the reads of a
//! few seconds passes its target by chance alone. Reads are therefore counted one by one against the
//! target, as a cumulative sum does (Page 1954, "Continuous inspection schemes"): a slow read adds one,
//! each read takes a little away, and what has led to an answer does not count again.

use std::collections::VecDeque;

use record::Nanos;

/// So many probes are looked back on, some four seconds of them.
const PROBES: usize = 200;
/// Fewer say nothing.
const LEAST: usize = 5;
/// What the kernel counts is added up over so long, however often it is looked at.
const COUNTED_OVER: Nanos = Nanos(100_000_000);
/// So many such sums are looked back on: four seconds, since the check goes in steps; and with fewer it says
/// nothing against a target.
const COUNTS: usize = 40;
const FEW_COUNTS: usize = 15;
/// A mean of fewer requests than this says nothing against a target.
const FEW: usize = 60;
/// A mean of probes must be above its target by so many of its standard errors: they are few, and
/// their tails long.
const SURELY: f64 = 2.0;
/// So large a share of slow reads is let pass, a few times what a p99 promises: the chance of a false alarm is small, and a
/// rise of slow reads to one in ten is found in some forty.
const USUAL: f64 = 0.025;
/// So many slow reads beyond the usual are too many.
const TOO_MANY: f64 = 3.0;
/// With so many the rate does not grow.
const MANY: f64 = 1.5;
/// So far below its target a mean must be for the rate to grow.
const CALM: f64 = 0.93;
/// Where each request waits for a lull, the rate leans on the mean ([`IssueMode::IdleGaps`]), and a mean of a few seconds
/// that is above its target by less than this is answered by that alone.
const PASSED: f64 = 1.25;
/// A read is far beyond the target at this multiple of it. One of three times that counts as three.
const FAR: f64 = 2.5;
/// Of so many last reads, three that are far beyond the target demand an answer at once.
const LAST: usize = 6;
const FAR_READS: u32 = 3;
/// Where only a mean is promised, a single read is slow at this multiple of it.
const OF_MEAN: f64 = 3.0;
/// Without a target of the user's, the p99 of the foreground may get slower by this factor.
pub(crate) const ROOM: f64 = 1.5;

/// How the check meets others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IssueMode {
    /// In steps, which whoever is there feels as long as one lasts.
    Steps,
    /// By single requests, each when others ask for little: they wait for the rest of one at most.
    IdleGaps,
}

impl IssueMode {
    /// The mean may get slower by this factor. Of the slowest requests more fall into a step than of all, so that
    /// with a mean of 1.5 times the p99.9 would be more. Who waits for one request at most waits no longer where
    /// he waits long by himself.
    pub(crate) fn room_of_mean(self) -> f64 {
        match self {
            IssueMode::Steps => 1.35,
            IssueMode::IdleGaps => ROOM,
        }
    }
}

/// What was seen since the last look.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ForegroundSample {
    /// How long probes took that came back, in seconds.
    pub probes: Vec<f64>,
    /// How long a probe waits that has not come back, in seconds.
    pub waiting: f64,
    /// Requests to the disks of anybody else; `None` where the kernel does not count.
    pub others: Option<u64>,
    /// How many requests of anybody the kernel has counted, and the seconds that they took together.
    pub counted: Option<(u64, f64)>,
    /// For how long any request to the array was on its way, in seconds; zero where that is not told.
    pub busy: f64,
}

/// The latencies that the foreground is to keep, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Targets {
    /// Of the mean.
    pub mean: Option<f64>,
    /// Of the latency that 1 of 100 requests exceeds.
    pub p99: Option<f64>,
}

impl Targets {
    /// The same, but no stricter than `own` where both are given.
    pub(crate) fn no_stricter_than(self, own: &Targets) -> Targets {
        let more = |asked: Option<f64>, own: Option<f64>| {
            asked.map(|asked| own.map_or(asked, |own| asked.max(own)))
        };
        Targets {
            mean: more(self.mean, own.mean),
            p99: more(self.p99, own.p99),
        }
    }

    /// What may become of what others have by themselves.
    pub(crate) fn with_room(self, way: IssueMode) -> Targets {
        Targets {
            mean: self.mean.map(|mean| way.room_of_mean() * mean),
            p99: self.p99.map(|p99| ROOM * p99),
        }
    }

    /// From what on a single read is slow, in seconds.
    pub(crate) fn of_one(&self) -> Option<f64> {
        self.p99.or(self.mean.map(|mean| OF_MEAN * mean))
    }
}

/// How what is felt stands to what was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Too little was felt.
    Unknown,
    /// There is room.
    Calm,
    /// It is kept, with no room to spare.
    Near,
    /// It is not kept.
    Passed,
    /// It is far from being kept.
    Far,
}

/// The last probes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForegroundLatency {
    probes: VecDeque<f64>,
    waiting: f64,
    counted: VecDeque<(u64, f64)>,
    /// The sum that is not full yet, and since when it is filled.
    filling: Option<(u64, f64)>,
    since: Nanos,
    /// How many of the last probes came after the last answer.
    new: usize,
    /// Slow reads beyond the usual since then.
    slow: f64,
}

impl ForegroundLatency {
    /// Takes what was seen since the last time, against the targets if there are any.
    pub(crate) fn take(&mut self, now: Nanos, seen: &ForegroundSample, targets: Option<&Targets>) {
        if let Some(slow) = targets.and_then(|targets| targets.p99) {
            for probe in &seen.probes {
                let hit = if *probe > slow { 1.0 } else { 0.0 };
                self.slow = (self.slow + hit - USUAL).max(0.0);
            }
        }
        self.new += seen.probes.len();
        self.probes.extend(&seen.probes);
        while self.probes.len() > PROBES {
            self.probes.pop_front();
        }
        self.waiting = seen.waiting;
        self.count(now, seen.counted);
        while self.counted.len() > COUNTS {
            self.counted.pop_front();
        }
    }

    fn count(&mut self, now: Nanos, counted: Option<(u64, f64)>) {
        if let Some((requests, seconds)) = counted {
            let (before, took) = self.filling.unwrap_or_default();
            self.filling = Some((before + requests, took + seconds));
        }
        if now.0.saturating_sub(self.since.0) >= COUNTED_OVER.0 {
            self.counted.extend(self.filling.take());
            self.since = now;
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = ForegroundLatency::default();
    }

    /// What was felt until now is answered, and does not count against a target again.
    pub(crate) fn answer(&mut self) {
        self.new = 0;
        self.slow = 0.0;
        self.counted.clear();
        self.filling = None;
    }

    /// The mean latency: that of probes, or what the kernel counts where that is more. A request that
    /// waits before md has taken it is not in the kernel's count, and probes are few.
    pub(crate) fn mean(&self) -> Option<f64> {
        if self.probes.len() < LEAST {
            return None;
        }
        let probed = mean_of(self.probes.iter(), self.probes.len());
        let (requests, seconds) = self.counts();
        Some(probed.max(seconds / requests.max(1) as f64))
    }

    /// The latency that 1 of 100 exceeds. Of fewer than 200 probes it is the second largest: a single
    /// one may be chance.
    pub(crate) fn p99(&self) -> Option<f64> {
        if self.probes.len() < LEAST {
            return None;
        }
        p99(self.probes.iter())
    }

    /// How what was felt since the last answer stands to the targets.
    pub(crate) fn verdict(&self, targets: &Targets, way: IssueMode) -> Verdict {
        if self.is_far(targets) {
            return Verdict::Far;
        }
        if self.new < LEAST {
            return Verdict::Unknown;
        }
        let share = self.share(targets);
        let too_much = match way {
            IssueMode::Steps => 1.0,
            IssueMode::IdleGaps => PASSED,
        };
        if self.slow >= TOO_MANY || share.is_some_and(|share| share > too_much) {
            return Verdict::Passed;
        }
        if !self.is_even() || share.is_some_and(|share| share > CALM) {
            return Verdict::Near;
        }
        Verdict::Calm
    }

    /// The mean since the last answer as a multiple of its target; `None` while it is of too few.
    pub(crate) fn share(&self, targets: &Targets) -> Option<f64> {
        Some(self.new_mean()? / targets.mean?)
    }

    /// Whether no more reads than usual were slow.
    pub(crate) fn is_even(&self) -> bool {
        self.slow < MANY
    }

    /// Whether so many of the last reads were far beyond the target that it cannot be chance. One that
    /// has not come back yet is at least as slow as it waits.
    fn is_far(&self, targets: &Targets) -> bool {
        let Some(target) = targets.of_one() else {
            return false;
        };
        let far = |latency: &f64| ((latency / (FAR * target)) as u32).min(FAR_READS);
        let last = self.probes.iter().rev().take(self.new.min(LAST));
        far(&self.waiting) + last.map(far).sum::<u32>() >= FAR_READS
    }

    /// What the mean since the last answer is at least, if it is of enough: of probes with some
    /// confidence, and of all requests that the kernel has counted as it is.
    fn new_mean(&self) -> Option<f64> {
        let number = self.new.min(self.probes.len());
        let last = || self.probes.iter().rev().take(number);
        let probed = (number >= FEW).then(|| {
            let mean = mean_of(last(), number);
            let squares = last().map(|probe| (probe - mean).powi(2)).sum::<f64>();
            mean - SURELY * (squares / (number * number) as f64).sqrt()
        });
        let (requests, seconds) = self.counts();
        let is_enough = requests >= FEW as u64 && self.counted.len() >= FEW_COUNTS;
        let counted = is_enough.then(|| seconds / requests as f64);
        [probed, counted].into_iter().flatten().reduce(f64::max)
    }

    fn counts(&self) -> (u64, f64) {
        let requests = self.counted.iter().map(|one| one.0).sum();
        (requests, self.counted.iter().map(|one| one.1).sum())
    }
}

/// What the foreground has by itself: what was felt while the check was held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alone {
    probes: VecDeque<f64>,
    requests: u64,
    seconds: f64,
}

impl Alone {
    /// So many probes at least make a target.
    pub(crate) const ENOUGH: usize = 350;
    /// The newest that count.
    const MOST: usize = 1000;

    /// Takes what was seen while nothing was checked.
    pub(crate) fn take(&mut self, seen: &ForegroundSample) {
        self.probes.extend(&seen.probes);
        while self.probes.len() > Self::MOST {
            self.probes.pop_front();
        }
        if let Some((requests, seconds)) = seen.counted {
            self.requests += requests;
            self.seconds += seconds;
        }
    }

    /// How many probes it has.
    pub(crate) fn probes(&self) -> usize {
        self.probes.len()
    }

    /// What the kernel counted before counts half as much as what it counts from now on.
    pub(crate) fn age(&mut self) {
        self.requests /= 2;
        self.seconds /= 2.0;
    }

    /// What a foreground that feels this has by itself.
    pub(crate) fn own(&self) -> Option<Targets> {
        if self.probes.len() < LEAST {
            return None;
        }
        let probed = mean_of(self.probes.iter(), self.probes.len());
        let counted = self.seconds / self.requests.max(1) as f64;
        Some(Targets {
            mean: Some(probed.max(counted)),
            p99: Some(p99(self.probes.iter())?),
        })
    }
}

fn mean_of<'a>(latencies: impl Iterator<Item = &'a f64>, number: usize) -> f64 {
    latencies.sum::<f64>() / number.max(1) as f64
}

fn p99<'a>(latencies: impl Iterator<Item = &'a f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = latencies.copied().collect();
    sorted.sort_by(f64::total_cmp);
    let above = (sorted.len() / 100).max(1);
    sorted
        .len()
        .checked_sub(1 + above)
        .and_then(|at| sorted.get(at).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    const P99: Targets = Targets {
        mean: None,
        p99: Some(0.010),
    };

    fn felt(probes: &[f64], targets: &Targets) -> ForegroundLatency {
        let mut felt = ForegroundLatency::default();
        felt.take(
            Nanos(0),
            &ForegroundSample {
                probes: probes.to_vec(),
                ..ForegroundSample::default()
            },
            Some(targets),
        );
        felt
    }

    #[test]
    fn a_slow_read_is_chance_and_four_are_not() {
        let mut probes = vec![0.001; 60];
        for (slow, verdict) in [(1, Verdict::Calm), (1, Verdict::Near), (2, Verdict::Passed)] {
            probes.extend(vec![0.020; slow]);
            assert_eq!(felt(&probes, &P99).verdict(&P99, IssueMode::Steps), verdict);
            probes.push(0.001);
        }
        assert_eq!(
            felt(&[0.001; LEAST - 1], &P99).verdict(&P99, IssueMode::Steps),
            Verdict::Unknown
        );
    }

    #[test]
    fn a_mean_that_the_rate_leans_on_is_passed_a_quarter_above_its_target() {
        let mean = Targets {
            mean: Some(0.010),
            p99: None,
        };
        for (latency, steps, lulls) in [
            (0.009, Verdict::Calm, Verdict::Calm),
            (0.011, Verdict::Passed, Verdict::Near),
            (0.013, Verdict::Passed, Verdict::Passed),
        ] {
            let felt = felt(&[latency; FEW], &mean);
            assert_eq!(felt.verdict(&mean, IssueMode::Steps), steps, "{latency}");
            assert_eq!(felt.verdict(&mean, IssueMode::IdleGaps), lulls, "{latency}");
        }
    }

    #[test]
    fn what_was_answered_does_not_count_again() {
        let mut felt = felt(&[0.020; 5], &P99);
        assert_eq!(felt.verdict(&P99, IssueMode::Steps), Verdict::Passed);
        felt.answer();
        felt.take(
            Nanos(0),
            &ForegroundSample {
                probes: vec![0.001; LEAST],
                ..ForegroundSample::default()
            },
            Some(&P99),
        );
        assert_eq!(felt.verdict(&P99, IssueMode::Steps), Verdict::Calm);
    }

    #[test]
    fn three_far_reads_or_one_that_does_not_come_back_are_answered_at_once() {
        assert_eq!(
            felt(&[0.030; 2], &P99).verdict(&P99, IssueMode::Steps),
            Verdict::Unknown
        );
        assert_eq!(
            felt(&[0.030; 3], &P99).verdict(&P99, IssueMode::Steps),
            Verdict::Far
        );
        let mut waits = felt(&[0.001; 50], &P99);
        let mut wait = |waiting: f64| {
            waits.take(
                Nanos(0),
                &ForegroundSample {
                    waiting,
                    ..ForegroundSample::default()
                },
                Some(&P99),
            );
            waits.verdict(&P99, IssueMode::Steps)
        };
        assert_eq!(wait(0.030), Verdict::Calm, "one may be chance");
        assert_eq!(wait(0.100), Verdict::Far);
        // Of a mean, one read that takes a few times as long is nothing.
        let mean = Targets {
            mean: Some(0.010),
            p99: None,
        };
        assert_eq!(
            felt(&[0.030; 20], &mean).verdict(&mean, IssueMode::Steps),
            Verdict::Calm
        );
        assert_eq!(
            felt(&[0.012; FEW], &mean).verdict(&mean, IssueMode::Steps),
            Verdict::Passed
        );
        assert_eq!(
            felt(&[0.080; 3], &mean).verdict(&mean, IssueMode::Steps),
            Verdict::Far
        );
    }

    #[test]
    fn what_the_kernel_counts_is_taken_where_it_is_more() {
        let mean = Targets {
            mean: Some(0.004),
            p99: None,
        };
        let mut felt = felt(&[0.001; 50], &mean);
        let count = |mean| ForegroundSample {
            counted: Some((10, 10.0 * mean)),
            ..ForegroundSample::default()
        };
        let mut now = Nanos(0);
        let mut take = |felt: &mut ForegroundLatency, latency, times: usize| {
            for _ in 0..times {
                now += COUNTED_OVER;
                felt.take(now, &count(latency), Some(&mean));
            }
        };
        take(&mut felt, 0.005, FEW_COUNTS);
        assert!((felt.mean().unwrap() - 0.005).abs() < 1e-9);
        assert_eq!(felt.verdict(&mean, IssueMode::Steps), Verdict::Passed);
        take(&mut felt, 0.0001, COUNTS);
        assert!((felt.mean().unwrap() - 0.001).abs() < 1e-9);
    }

    #[test]
    fn the_own_latency_gives_the_target_and_loosens_one_that_is_stricter() {
        let mut alone = Alone::default();
        assert_eq!(alone.own(), None);
        let mut probes = vec![0.001; 98];
        probes.extend([0.020, 0.020]);
        alone.take(&ForegroundSample {
            probes,
            ..ForegroundSample::default()
        });
        let own = alone.own().unwrap().with_room(IssueMode::Steps);
        assert!((own.p99.unwrap() - ROOM * 0.020).abs() < 1e-9);
        assert_eq!(P99.no_stricter_than(&own), Targets { mean: None, ..own });
        let loose = Targets {
            mean: None,
            p99: Some(1.0),
        };
        assert_eq!(loose.no_stricter_than(&own), loose);
    }
}
