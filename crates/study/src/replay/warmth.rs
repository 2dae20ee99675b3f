//! Detection of a higher share of reads served from a cache in the replay than in the recording.
//!
//! A cache shows as two kinds of reads, fast and slow ones. A queue makes two kinds as well, so that only reads are
//! compared that found nothing else in flight. The reads are divided where the variance between the logarithms of the
//! kinds' latencies is largest (Otsu, 1979), and only count as two kinds if these are far apart and there is little in
//! between.

use record::Histogram;

/// Minimum number of reads for a conclusion, in the recording and in the replay.
const MIN_READS: u64 = 200;
/// Minimum ratio of the slow kind's median latency to the fast kind's.
const MIN_MEDIAN_RATIO: f64 = 4.0;
/// Minimum share of reads that each kind has.
const MIN_KIND_SHARE: f64 = 0.03;
/// Maximum number of reads in the middle third between the medians (of logarithms), as a share of the smaller kind's
/// reads.
const MAX_BETWEEN_SHARE: f64 = 0.25;
/// Minimum excess of the fast kind's share in the replay over that in the recording; three standard errors of the
/// difference are added.
const WARMER: f64 = 0.1;

/// The fast and the slow kind of reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadKinds {
    /// Share of the fast kind, 0 to 1.
    pub fast_share: f64,
    /// Median latency of the fast kind, in the histogram's unit.
    pub fast: u64,
    /// Median latency of the slow kind.
    pub slow: u64,
}

/// Shares of reads served from a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warmer {
    /// Share of the recorded reads that were served from a cache, 0 to 1.
    pub recorded: f64,
    /// The kinds of reads in the replay.
    pub replayed: ReadKinds,
}

/// The shares, if a cache served more of the replayed reads than of the recorded ones.
pub fn warmer(recorded: &Histogram, replayed: &Histogram) -> Option<Warmer> {
    if recorded.count() < MIN_READS {
        return None;
    }
    let now = kinds(replayed)?;
    // Even if the recorded reads are not far enough apart to be two kinds, those as fast as the replay's fast ones may
    // have been served from a cache.
    let middle = (now.fast as f64 * now.slow as f64).sqrt();
    let as_fast = recorded.count_at_most(middle as u64) as f64 / recorded.count() as f64;
    let then = kinds(recorded).map_or(as_fast, |kinds| kinds.fast_share.max(as_fast));
    let variance = |share: f64, count: u64| share * (1.0 - share) / count as f64;
    let error =
        (variance(then, recorded.count()) + variance(now.fast_share, replayed.count())).sqrt();
    (now.fast_share - then > WARMER + 3.0 * error).then_some(Warmer {
        recorded: then,
        replayed: now,
    })
}

/// The two kinds of reads; `None` if there is only one.
pub fn kinds(latency: &Histogram) -> Option<ReadKinds> {
    if latency.count() < MIN_READS {
        return None;
    }
    let buckets: Vec<(f64, u64, f64)> = latency
        .buckets()
        .map(|(low, high, count)| {
            let middle = (low + (high - low) / 2).max(1);
            ((middle as f64).ln(), middle, count as f64)
        })
        .collect();
    let split = best_split(&buckets)?;
    let (fast, slow) = buckets.split_at(split);
    let (fast_count, slow_count) = (total(fast), total(slow));
    let all = fast_count + slow_count;
    let (fast_median, slow_median) = (median(fast)?, median(slow)?);
    let smaller = fast_count.min(slow_count);
    if smaller < MIN_KIND_SHARE * all
        || (slow_median as f64) < MIN_MEDIAN_RATIO * fast_median as f64
    {
        return None;
    }
    // A third of the distance on either side of the middle, in logarithms.
    let (from, to) = ((fast_median as f64).ln(), (slow_median as f64).ln());
    let third = (to - from) / 3.0;
    let between = buckets
        .iter()
        .filter(|(ln, ..)| (from + third..to - third).contains(ln));
    let between: f64 = between.map(|(.., count)| count).sum();
    (between <= MAX_BETWEEN_SHARE * smaller).then_some(ReadKinds {
        fast_share: fast_count / all,
        fast: fast_median,
        slow: slow_median,
    })
}

/// Number of buckets of the fast kind: the split with the greatest variance between the kinds.
fn best_split(buckets: &[(f64, u64, f64)]) -> Option<usize> {
    let all = total(buckets);
    let sum: f64 = buckets.iter().map(|(ln, _, count)| ln * count).sum();
    let (mut below, mut sum_below) = (0.0, 0.0);
    let mut best: Option<(f64, usize)> = None;
    for (index, (ln, _, count)) in buckets.iter().enumerate() {
        below += count;
        sum_below += ln * count;
        let above = all - below;
        if above <= 0.0 {
            break;
        }
        let apart = sum_below / below - (sum - sum_below) / above;
        let between = below * above * apart * apart;
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, index + 1));
        }
    }
    best.map(|(_, split)| split)
}

fn total(buckets: &[(f64, u64, f64)]) -> f64 {
    buckets.iter().map(|(.., count)| count).sum()
}

fn median(buckets: &[(f64, u64, f64)]) -> Option<u64> {
    let half = total(buckets) / 2.0;
    let mut seen = 0.0;
    for (_, middle, count) in buckets {
        seen += count;
        if seen >= half {
            return Some(*middle);
        }
    }
    None
}
