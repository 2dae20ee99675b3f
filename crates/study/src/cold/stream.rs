//! Detection of cold reads in a stream of reads.

/// Latencies are counted in steps of an eighth of a doubling.
const STEPS: f64 = 8.0;
/// The shortest latency that is distinguished, in seconds.
const MIN_LATENCY_S: f64 = 1e-6;
/// Number of bins; the last one is at about 70 minutes.
const BINS: usize = 256;
/// Minimum number of reads for a conclusion.
const MIN_READS: f64 = 50.0;
/// Number of reads after which the weight of earlier reads is halved.
const READS_HALF_LIFE: f64 = 4000.0;
/// Minimum number of doublings between warm and cold reads: four times as long.
const MIN_DOUBLINGS: f64 = 2.0;
/// Maximum count between the two peaks, as a share of the lower peak.
const VALLEY_SHARE: f64 = 0.3;
/// Minimum share of all reads that the smaller class must have.
const MIN_CLASS_SHARE: f64 = 0.005;
/// Number of reads after which the threshold is learned again.
const RELEARN_READS: u32 = 64;
/// Multiple of the known latency of a warm read up to which reads are warm, if only one kind is seen.
const WARM_LATENCY_FACTOR: f64 = 2.0;

/// State of the block that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temperature {
    /// The block had to be fetched first.
    Cold,
    /// The block was on the volume.
    Warm,
}

/// Distinguishes cold reads from warm ones by their latencies alone, with a threshold that it learns.
///
/// On a logarithmic scale the latencies have two peaks. The threshold is that of Otsu (1979), which maximizes the
/// variance between the classes, moved to the emptiest bin between the two peaks. With a single peak there is no
/// threshold: reads not slower than the known latency of a warm read are then warm, and the others are not classified.
/// No read can be classified either while requests wait longer for a cap than cold reads take: all latencies are then
/// alike, by Little's law. Fewer than about 3 cold reads in 100 may be missed among warm reads with a large scatter.
#[derive(Clone, Debug)]
pub struct ReadClassifier {
    warm_s: Option<f64>,
    bins: Vec<f64>,
    reads: f64,
    until_learned: u32,
    threshold_bin: Option<usize>,
    cold: u64,
    warm: u64,
}

impl ReadClassifier {
    /// A classifier. `warm_s` is the latency of a warm read in seconds if known, such as that of
    /// [`super::sample::Sample`].
    pub fn new(warm_s: Option<f64>) -> ReadClassifier {
        ReadClassifier {
            warm_s: warm_s.filter(|warm| *warm > 0.0 && warm.is_finite()),
            bins: vec![0.0; BINS],
            reads: 0.0,
            until_learned: RELEARN_READS,
            threshold_bin: None,
            cold: 0,
            warm: 0,
        }
    }

    /// Adds a read by its latency, and returns its class; `None` if it cannot be classified, and for a latency that is
    /// not positive and finite, which is not counted.
    pub fn watch(&mut self, latency_s: f64) -> Option<Temperature> {
        if !(latency_s > 0.0 && latency_s.is_finite()) {
            return None;
        }
        let bin = bin_of(latency_s);
        self.bins[bin] += 1.0;
        self.reads += 1.0;
        self.until_learned -= 1;
        if self.until_learned == 0 {
            self.until_learned = RELEARN_READS;
            self.learn();
        }
        let found = self.judge(bin, latency_s);
        match found {
            Some(Temperature::Cold) => self.cold += 1,
            Some(Temperature::Warm) => self.warm += 1,
            None => {}
        }
        found
    }

    /// Share of the classified reads that were cold; `None` before any. It is a share of the reads, not an estimate
    /// for the rest of the volume.
    pub fn cold_share(&self) -> Option<f64> {
        let reads = self.cold + self.warm;
        (reads > 0).then(|| self.cold as f64 / reads as f64)
    }

    /// The latency in seconds from which a read is cold; `None` while only one class is seen.
    pub fn threshold_s(&self) -> Option<f64> {
        self.threshold_bin
            .map(|bin| MIN_LATENCY_S * (bin as f64 / STEPS).exp2())
    }

    fn judge(&self, bin: usize, latency_s: f64) -> Option<Temperature> {
        match (self.threshold_bin, self.warm_s) {
            (Some(threshold), _) if bin >= threshold => Some(Temperature::Cold),
            (Some(_), _) => Some(Temperature::Warm),
            (None, Some(warm)) if latency_s <= WARM_LATENCY_FACTOR * warm => {
                Some(Temperature::Warm)
            }
            _ => None,
        }
    }

    fn learn(&mut self) {
        if self.reads >= MIN_READS {
            self.threshold_bin = threshold(&self.bins);
        }
        if self.reads >= READS_HALF_LIFE {
            self.reads *= 0.5;
            self.bins.iter_mut().for_each(|count| *count *= 0.5);
        }
    }
}

fn bin_of(latency_s: f64) -> usize {
    // A negative number becomes zero when it is cast.
    (((latency_s / MIN_LATENCY_S).log2() * STEPS) as usize).min(BINS - 1)
}

/// The first bin of the upper class, if there are two.
fn threshold(bins: &[f64]) -> Option<usize> {
    let split = otsu(bins)?;
    let low = peak(bins, 0..split)?;
    let high = peak(bins, split..bins.len())?;
    let smooth = |bin: usize| neighbourhood(bins, bin);
    let valley = (low..=high).min_by(|a, b| smooth(*a).total_cmp(&smooth(*b)))?;
    // In an empty range the first bin would be at the edge of the lower class.
    let last = (valley..=high)
        .take_while(|bin| smooth(*bin) <= smooth(valley))
        .last()?;
    let threshold = usize::midpoint(valley, last);
    let all: f64 = bins.iter().sum();
    let upper: f64 = bins[threshold..].iter().sum();
    let apart = mean_bin(bins, threshold..bins.len()) - mean_bin(bins, 0..threshold);
    let two = apart >= MIN_DOUBLINGS * STEPS
        && smooth(threshold) <= VALLEY_SHARE * smooth(low).min(smooth(high))
        && (MIN_CLASS_SHARE..=1.0 - MIN_CLASS_SHARE).contains(&(upper / all));
    two.then_some(threshold)
}

/// Bin that divides the bins with the largest variance between both parts.
fn otsu(bins: &[f64]) -> Option<usize> {
    let all: f64 = bins.iter().sum();
    let moment: f64 = bins
        .iter()
        .enumerate()
        .map(|(at, count)| at as f64 * count)
        .sum();
    let (mut best, mut split) = (0.0, None);
    let (mut below, mut below_moment) = (0.0, 0.0);
    for (at, count) in bins.iter().enumerate() {
        let above = all - below;
        if below > 0.0 && above > 0.0 {
            let apart = (moment - below_moment) / above - below_moment / below;
            let between = below * above * apart * apart;
            if between > best {
                (best, split) = (between, Some(at));
            }
        }
        below += count;
        below_moment += at as f64 * count;
    }
    split
}

/// The bin with the most reads around it, within a range.
fn peak(bins: &[f64], within: std::ops::Range<usize>) -> Option<usize> {
    let start = within.start;
    let class = &bins[within];
    let around = |bin: &usize| neighbourhood(class, *bin);
    let peak = (0..class.len()).max_by(|a, b| around(a).total_cmp(&around(b)))?;
    Some(start + peak)
}

/// The reads in a bin and in the two on either side of it.
fn neighbourhood(bins: &[f64], bin: usize) -> f64 {
    bins[bin.saturating_sub(2)..(bin + 3).min(bins.len())]
        .iter()
        .sum()
}

/// The mean bin number of the reads in a range; zero if it is empty.
fn mean_bin(bins: &[f64], within: std::ops::Range<usize>) -> f64 {
    let count: f64 = bins[within.clone()].iter().sum();
    let moment: f64 = within.map(|bin| bin as f64 * bins[bin]).sum();
    if count > 0.0 { moment / count } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_heaps_are_parted_and_one_is_not() {
        let mut stream = ReadClassifier::new(None);
        for _ in 0..64 {
            assert_eq!(stream.watch(0.001), None);
        }
        assert_eq!((stream.threshold_s(), stream.cold_share()), (None, None));
        for read in 0..64 {
            stream.watch(if read % 2 == 0 { 0.04 } else { 0.001 });
        }
        assert_eq!(stream.watch(0.05), Some(Temperature::Cold));
        assert_eq!(stream.watch(0.0012), Some(Temperature::Warm));
        assert!(
            stream
                .threshold_s()
                .is_some_and(|at| (0.002..0.03).contains(&at))
        );
    }

    #[test]
    fn a_read_as_fast_as_a_warm_one_is_warm() {
        let mut stream = ReadClassifier::new(Some(0.001));
        assert_eq!(stream.watch(0.0011), Some(Temperature::Warm));
        assert_eq!(stream.watch(0.05), None);
        assert_eq!(stream.cold_share(), Some(0.0));
    }

    proptest! {
        #[test]
        fn any_input_is_answered_or_refused(
            warm: Option<f64>, latencies in prop::collection::vec(any::<f64>(), 0..300),
        ) {
            let mut stream = ReadClassifier::new(warm);
            for latency in latencies {
                let judgement = stream.watch(latency);
                prop_assert!(judgement.is_none() || latency > 0.0);
            }
            prop_assert!(stream.cold_share().is_none_or(|share| (0.0..=1.0).contains(&share)));
        }
    }
}
