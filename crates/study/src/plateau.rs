//! Detection of caps: throughput too flat to be the disk's own limit.
//!
//! A token bucket (a cloud volume's limit, blkio's throttle) grants work by the clock. The cumulative count of
//! completed operations then follows a straight line: it may be ahead or behind by a grant, by latency jitter or by
//! the end of a slice, but such errors do not accumulate. In a device limited by its own service times they do: each
//! operation that took longer leaves the count behind permanently, so that the count deviates from its line like a
//! random walk, ever further with time. The scatter of the slices alone shows nothing: a cap that grants in bursts has
//! more scatter from slice to slice than a good disk. The decisive figure is the wander of the cumulative count
//! relative to the scatter of the slices, the statistic of Kwiatkowski, Phillips, Schmidt and Shin (1992) around a
//! straight line, used at its lower tail. It needs no scale: it is about 1/15 for independent slices, larger for any
//! slow wander, and about 1/2n for a cap.
//!
//! Limit: a device without any randomness (exactly equal service times, no other load, no memory or CPU wander) is as
//! flat as a cap. Real ones are not, not even memory: refreshes, interrupts and clock changes make the speed of
//! anything run by a CPU wander by a thousandth or more from one second to the next. The second test, that requests
//! wait far longer than they would alone, does not separate such a device from a cap: 20 in flight on one fast server
//! wait too. It does separate a cap from a device that serves all requests in flight at once. Without that test, the
//! longer such a device takes for a request, the less regular it needs to be to look like a cap: each of the requests
//! in flight rounds the count to whole ones, and these errors do not accumulate.

use crate::noise::mean;
use crate::residual::residual_of_line;

/// Minimum length of a series.
pub const MIN_SLICES: usize = 20;
/// Minimum length of a series that is tested repeatedly.
pub(crate) const MIN_SLICES_REPEATED: usize = 80;
/// Minimum latency as a multiple of the base latency: otherwise nothing delayed the requests.
const WAITING: f64 = 1.5;
/// Minimum share of the requested depth that was in flight (Little's law): with less, the program itself did not
/// request more.
const IN_FLIGHT: f64 = 0.7;
/// The variance, in operations squared, that rounding to whole operations alone gives the cumulative count: 1/12, with
/// some margin.
const QUANTIZATION: f64 = 0.13;
/// Maximum error that counts as slight, in operations squared, for many operations in a slice.
const SLIGHT_ERROR: f64 = 2.0;

/// Distance from the median at which a slice is an outlier, in mean deviations. Normal noise does not reach it.
const OUTLIER: f64 = 6.0;
/// Minimum length of a slice in base latencies. If requests last nearly as long as slices, the requests in flight
/// complete in step with the slices, and these look flat.
const MIN_LATENCIES_IN_SLICE: f64 = 20.0;

/// Measurements of a phase.
#[derive(Clone, Copy, Debug)]
pub struct Throughput<'a> {
    /// Operations completed in each slice, warm-up left out.
    pub ops: &'a [f64],
    /// Bytes completed in each slice; as many as `ops`.
    pub bytes: &'a [f64],
    /// The length of a slice in seconds.
    pub slice_s: f64,
    /// Operations kept in flight. An open-loop phase keeps none in flight and must not be tested.
    pub depth: f64,
    /// Mean latency in seconds.
    pub mean_latency_s: f64,
    /// Latency in seconds of a request that does not wait: with one in flight, or the minimum. With `None`, the wait
    /// of requests is not tested.
    pub base_latency_s: Option<f64>,
}

/// Quantity that is constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedQuantity {
    /// Operations a second.
    Ops,
    /// Bytes a second.
    Bytes,
    /// Operations or bytes a second: with one block size it is unknown which of them is limited.
    Either,
}

/// A throughput that a limit keeps constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// The level in operations a second.
    pub ops_per_s: f64,
    /// The level in bytes a second.
    pub bytes_per_s: f64,
    /// Quantity that is constant.
    pub capped: LimitedQuantity,
}

/// Required flatness of a series.
struct Test {
    /// Minimum number of slices.
    least_slices: usize,
    /// Maximum statistic, as a share of the slices' accumulated scatter, at which slices are not independent.
    flattest: fn(slices: f64) -> f64,
    /// Error in operations squared up to which a series counts as that of a cap even with little scatter, for this
    /// number of operations in each slice.
    slight: fn(level: f64) -> f64,
    /// Maximum number of outliers among the slices.
    outliers: fn(slices: usize) -> usize,
}

/// The test for a phase that is judged once: fewer than 1 in 100 series of independent slices are flatter.
const SINGLE_TEST: Test = Test {
    least_slices: MIN_SLICES,
    flattest: |slices| 0.012 + 0.3 / slices,
    slight: |_| QUANTIZATION,
    outliers: |_| 1,
};
/// The test for a disk that is judged every few seconds, for days: fewer than 1 in 100,000 series of 80 independent
/// slices are flatter. Of series of a cap, whose errors do not accumulate, 99 in 100 pass, and of series in which a
/// fifth of the errors accumulates, nearly 9 in 10 (`table_of_looks` in the proofs prints it). If the slices hardly
/// scatter, the smallest error is large in comparison: a volume that merges two neighbouring requests occasionally
/// lets a few more pass. A slight error is therefore accepted, up to the error of a disk whose service times vary by a
/// tenth (0.0095 of 80 slices' scatter, which is 0.1 squared of the operations in each), but at most [`SLIGHT_ERROR`]:
/// with many operations, disks with steadier times would pass.
const REPEATED_TEST: Test = Test {
    least_slices: MIN_SLICES_REPEATED,
    flattest: |_| 0.0095,
    slight: |level| (0.0095 * 80.0 * 0.1 * 0.1 * level).clamp(QUANTIZATION, SLIGHT_ERROR),
    outliers: few,
};

/// Maximum number of outliers in a minute and more: one second in twenty. While a host pauses, a cap's grants are
/// lost, and blkio's cap does not compensate.
pub(crate) fn few(slices: usize) -> usize {
    slices / 20
}

/// The plateau of a closed-loop phase; `None` if there is none, with fewer than [`MIN_SLICES`] slices, and if a figure
/// is missing or invalid.
pub fn assess(phase: &Throughput<'_>) -> Option<Plateau> {
    assess_by(phase, &SINGLE_TEST)
}

/// The plateau of a disk that is judged repeatedly: an error probability of one in a hundred would give many false
/// findings a day. It needs [`MIN_SLICES_REPEATED`] slices.
pub(crate) fn assess_often(phase: &Throughput<'_>) -> Option<Plateau> {
    assess_by(phase, &REPEATED_TEST)
}

fn assess_by(phase: &Throughput<'_>, test: &Test) -> Option<Plateau> {
    let (ops, bytes) = (mean(phase.ops), mean(phase.bytes));
    let sensible = [ops, bytes, phase.slice_s, phase.depth, phase.mean_latency_s];
    if phase.ops.len() < test.least_slices
        || phase.bytes.len() != phase.ops.len()
        || !sensible.iter().all(|x| x.is_finite() && *x > 0.0)
    {
        return None;
    }
    let ops_per_s = ops / phase.slice_s;
    let in_flight = ops_per_s * phase.mean_latency_s;
    let waits = phase.base_latency_s.is_none_or(|base| {
        phase.mean_latency_s >= WAITING * base && phase.slice_s >= MIN_LATENCIES_IN_SLICE * base
    });
    if !waits || in_flight < IN_FLIGHT * phase.depth {
        return None;
    }
    // Bytes are counted in operations of the mean size, so that one rounding error is one operation.
    let sizes: Vec<f64> = phase.bytes.iter().map(|x| x / (bytes / ops)).collect();
    let capped = match (is_flat(phase.ops, test), is_flat(&sizes, test)) {
        (true, true) => LimitedQuantity::Either,
        (true, false) => LimitedQuantity::Ops,
        (false, true) => LimitedQuantity::Bytes,
        (false, false) => return None,
    };
    Some(Plateau {
        ops_per_s,
        bytes_per_s: bytes / phase.slice_s,
        capped,
    })
}

/// True if the cumulative count follows a straight line, apart from outliers.
fn is_flat(counts: &[f64], test: &Test) -> bool {
    let most = (test.outliers)(counts.len());
    keeps_to_line(counts, test) || keeps_to_line(&without_outliers(counts, 1.0, most), test)
}

fn keeps_to_line(counts: &[f64], test: &Test) -> bool {
    let level = mean(counts);
    let slices = counts.len() as f64;
    let scatter = counts.iter().map(|x| (x - level).powi(2)).sum::<f64>() / slices;
    let mut ahead = vec![0.0];
    let mut sum = 0.0;
    for count in counts {
        sum += count - level;
        ahead.push(sum);
    }
    let wander = residual_of_line(&ahead) / ahead.len() as f64;
    if wander <= (test.slight)(level) {
        return true;
    }
    // Rounding to whole operations scatters the slices without accumulating, like a cap. With few operations in a
    // slice it would make any disk look flat.
    let scatter = (scatter - 1.0 / 12.0).max(0.0);
    wander <= (test.flattest)(slices) * slices * scatter
}

/// The counts with up to `most` outliers replaced by the mean of the others. One stall, or one grant on the other side
/// of a slice's end, shifts the line but is no random walk; a neighbouring slice that compensates for it is replaced
/// too. `one` is one operation in the unit of the counts: rounding to whole ones makes no outlier.
pub(crate) fn without_outliers(counts: &[f64], one: f64, most: usize) -> Vec<f64> {
    let mut sorted = counts.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(median) = sorted.get(sorted.len() / 2).copied() else {
        return sorted;
    };
    let off: Vec<f64> = counts.iter().map(|x| x - median).collect();
    let mut usual: Vec<usize> = (0..counts.len()).collect();
    for _ in 0..most {
        let farthest = |a: &&usize, b: &&usize| off[**a].abs().total_cmp(&off[**b].abs());
        let Some(worst) = usual.iter().max_by(farthest).copied() else {
            break;
        };
        usual.retain(|slice| *slice != worst);
        let distances: Vec<f64> = usual.iter().map(|slice| off[*slice].abs()).collect();
        let near = one + OUTLIER * mean(&distances);
        if off[worst].abs() <= near {
            usual.push(worst);
            break;
        }
        let makes_up =
            |slice: &usize| slice.abs_diff(worst) == 1 && (off[*slice] + off[worst]).abs() <= near;
        if let Some(at) = usual.iter().position(makes_up) {
            usual.swap_remove(at);
        }
    }
    let level = mean(&usual.iter().map(|slice| counts[*slice]).collect::<Vec<_>>());
    let mut calm = vec![level; counts.len()];
    for slice in usual {
        calm[slice] = counts[slice];
    }
    calm
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices of a cap at 400 operations a second with 20 in flight, 4 KiB each.
    const OPS: [f64; 40] = [40.0; 40];
    const BYTES: [f64; 40] = [163_840.0; 40];
    const CAP: Throughput<'static> = Throughput {
        ops: &OPS,
        bytes: &BYTES,
        slice_s: 0.1,
        depth: 20.0,
        mean_latency_s: 0.05,
        base_latency_s: Some(0.001),
    };

    #[test]
    fn a_constant_count_is_a_plateau() {
        let plateau = assess(&CAP).unwrap();
        assert_eq!(plateau.capped, LimitedQuantity::Either);
        assert!((plateau.ops_per_s - 400.0).abs() < 1e-9);
        assert!((plateau.bytes_per_s - 1_638_400.0).abs() < 1e-6);
    }

    /// Plateau of operations of 4 KiB.
    fn of_one_size(ops: &[f64]) -> Option<Plateau> {
        let bytes: Vec<f64> = ops.iter().map(|x| x * 4096.0).collect();
        assess(&Throughput {
            ops,
            bytes: &bytes,
            ..CAP
        })
    }

    #[test]
    fn bursts_that_even_out_are_a_plateau() {
        let ops: Vec<f64> = (0..40).map(|t| [30.0, 50.0, 40.0][t % 3]).collect();
        assert!(of_one_size(&ops).is_some());
    }

    #[test]
    fn a_missed_grant_does_not_hide_the_plateau() {
        let mut ops = vec![40.0; 40];
        ops[17] = 0.0;
        assert!(of_one_size(&ops).is_some());
    }

    /// Grants of blkio's cap of 153 requests, by second, on a host that occasionally paused for some tenths of a
    /// second: its grants in that time are lost.
    #[test]
    fn grants_that_are_lost_do_not_hide_a_plateau_that_is_searched_for_often() {
        let mut ops = vec![150.0; 80];
        for (at, count) in [
            (3, 120.0),
            (4, 122.0),
            (26, 120.0),
            (27, 180.0),
            (39, 135.0),
        ] {
            ops[at] = count;
        }
        ops[40] = 165.0;
        ops[70] = 122.0;
        assert!(is_flat(&ops, &REPEATED_TEST));
        assert!(!is_flat(&ops, &SINGLE_TEST));
        // More than a few are no chance.
        ops[50] = 120.0;
        ops[60] = 120.0;
        ops[65] = 120.0;
        assert!(!is_flat(&ops, &REPEATED_TEST));
    }

    #[test]
    fn mixed_sizes_tell_which_is_capped() {
        let uneven: Vec<f64> = (0..40).map(|t| f64::from(t * t % 61)).collect();
        let wandering: Vec<f64> = uneven.iter().map(|x| 163_840.0 + 1000.0 * x).collect();
        let capped = |ops: &[f64], bytes: &[f64]| {
            assess(&Throughput { ops, bytes, ..CAP }).map(|p| p.capped)
        };
        assert_eq!(capped(&OPS, &wandering), Some(LimitedQuantity::Ops));
        let ops: Vec<f64> = (0..40).map(|t| f64::from(40 + t / 4)).collect();
        let slower = CAP.mean_latency_s;
        assert_eq!(
            assess(&Throughput {
                ops: &ops,
                mean_latency_s: slower,
                ..CAP
            })
            .map(|p| p.capped),
            Some(LimitedQuantity::Bytes)
        );
    }

    #[test]
    fn requests_that_do_not_wait_are_not_capped() {
        assert_eq!(
            assess(&Throughput {
                base_latency_s: Some(0.04),
                ..CAP
            }),
            None
        );
    }

    #[test]
    fn a_rhythm_as_slow_as_the_slices_is_not_judged() {
        assert_eq!(
            assess(&Throughput {
                base_latency_s: Some(0.006),
                ..CAP
            }),
            None
        );
    }

    #[test]
    fn few_in_flight_are_our_own_limit() {
        assert_eq!(
            assess(&Throughput {
                mean_latency_s: 0.01,
                base_latency_s: None,
                ..CAP
            }),
            None
        );
    }

    #[test]
    fn senseless_input_is_none() {
        assert_eq!(
            assess(&Throughput {
                ops: &OPS[..MIN_SLICES - 1],
                bytes: &BYTES[..MIN_SLICES - 1],
                ..CAP
            }),
            None
        );
        assert_eq!(
            assess(&Throughput {
                bytes: &BYTES[..39],
                ..CAP
            }),
            None
        );
        assert_eq!(
            assess(&Throughput {
                ops: &[0.0; 40],
                bytes: &[0.0; 40],
                ..CAP
            }),
            None
        );
        assert_eq!(
            assess(&Throughput {
                ops: &[f64::NAN; 40],
                ..CAP
            }),
            None
        );
        assert_eq!(
            assess(&Throughput {
                slice_s: 0.0,
                ..CAP
            }),
            None
        );
    }
}
