//! Detection of caps: throughput too flat to be the disk's own.
//!
//! A token bucket (a cloud volume's limit, blkio's throttle) grants work by the clock. The count of completed
//! operations then keeps to a straight line: it may be ahead or behind by a grant, by latency jitter or by
//! where a slice happens to end, but such errors do not add up. A device that is limited by its own service
//! times forgets nothing: each operation that took longer leaves the count behind for good, so the count
//! wanders off its line like a random walk, the further the longer one looks. How small the slices' own
//! scatter is tells nothing: a cap that grants in bursts scatters more from slice to slice than a good disk
//! does. What decides is the wander of the cumulative count relative to the scatter of the slices, the
//! statistic of Kwiatkowski, Phillips, Schmidt and Shin (1992) around a straight line, used at its lower
//! tail. It needs no scale: it is about 1/15 for independent slices, larger for any slow wander, and about
//! 1/2n for a cap.
//!
//! Limit: a device without any randomness at all (exactly equal service times, no other load,
//! no memory or CPU wander) is by nature as flat as a cap. Real ones are not, not even memory: refreshes,
//! interrupts and clock changes make the speed of anything run by a CPU wander by a thousandth or more from
//! one second to the next. The second test, that requests wait far longer than they would alone, does not
//! separate such a device from a cap: 20 in flight on one fast server wait too. It does separate a cap from a
//! device that answers all in flight at once. Without that test such a device needs the less randomness to
//! look like a cap the longer it takes: each of the requests in flight rounds the count to whole ones by
//! itself, and no such error adds up.

use crate::noise::mean;
use crate::residual::residual_of_line;

/// Minimum length of a series.
pub const MIN_SLICES: usize = 20;
/// Minimum length of a series that is judged again and again.
pub(crate) const MIN_SLICES_REPEATED: usize = 80;
/// Multiple of the base latency that requests must take: otherwise nothing held them back.
const WAITING: f64 = 1.5;
/// Share of the requested depth that must really have been in flight (Little's law): with less, the program itself
/// did not request more.
const IN_FLIGHT: f64 = 0.7;
/// The variance, in operations squared, that counting whole operations alone gives the cumulative
/// count: 1/12, with some room.
const QUANTIZATION: f64 = 0.13;
/// Maximum error that passes as slight, in operations squared, where there are many operations in a slice.
const SLIGHT_ERROR: f64 = 2.0;

/// Distance from the median at which a slice is an outlier, in mean deviations. Normal noise does not reach that.
const OUTLIER: f64 = 6.0;
/// Minimum number of base latencies in a slice. Where requests last nearly as long as slices, slices are filled by the
/// rhythm of the requests in flight, and look flat.
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
    /// Latency in seconds of a request that does not wait: with one in flight, or the least seen.
    /// Without it, it is not tested whether requests wait.
    pub base_latency_s: Option<f64>,
}

/// Quantity that is held flat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedQuantity {
    /// Operations a second.
    Ops,
    /// Bytes a second.
    Bytes,
    /// Operations or bytes a second: with one block size it is unknown which of them is limited.
    Either,
}

/// A throughput that something holds at a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// The level in operations a second.
    pub ops_per_s: f64,
    /// The level in bytes a second.
    pub bytes_per_s: f64,
    /// Quantity that is held flat.
    pub capped: LimitedQuantity,
}

/// Flatness that a series must have.
struct Test {
    /// A shorter one is not judged.
    least_slices: usize,
    /// Flatness, as a share of the slices' added scatter, below which slices are not independent.
    flattest: fn(slices: f64) -> f64,
    /// Error in operations squared up to which a series is that of a cap however little the slices scatter, for this
    /// number of operations in each.
    slight: fn(level: f64) -> f64,
    /// Number of slices that may be outliers.
    outliers: fn(slices: usize) -> usize,
}

/// The test for a phase that is judged once: fewer than 1 series of independent slices in 100 are flatter.
const SINGLE_TEST: Test = Test {
    least_slices: MIN_SLICES,
    flattest: |slices| 0.012 + 0.3 / slices,
    slight: |_| QUANTIZATION,
    outliers: |_| 1,
};
/// The test for a disk that is judged every few seconds, for days: of series of 80 independent slices, fewer than 1
/// in 100,000 are flatter. Of series that a cap holds, whose errors do not add up, 99 in 100 pass, and of series with
/// a fifth of their errors adding up, nearly 9 in 10 (`table_of_looks` in the proofs prints it). Where the slices
/// hardly scatter, the least error is large next to it: a volume that takes two neighbouring requests for one lets a
/// few more pass, by chance. So a slight error is let pass, up to what the times of a disk would add up to that vary
/// by a tenth (0.0095 of 80 slices' scatter, which is 0.1 squared of the operations in each), but no more than
/// [`SLIGHT_ERROR`]: where there are many operations, disks of steadier times would pass.
const REPEATED_TEST: Test = Test {
    least_slices: MIN_SLICES_REPEATED,
    flattest: |_| 0.0095,
    slight: |level| (0.0095 * 80.0 * 0.1 * 0.1 * level).clamp(QUANTIZATION, SLIGHT_ERROR),
    outliers: few,
};

/// Maximum number of outliers in a minute and more: one second in twenty. A host that hesitates makes a cap lose what
/// it would have granted then, and blkio's does not make up for it.
pub(crate) fn few(slices: usize) -> usize {
    slices / 20
}

/// The plateau of a closed-loop phase, if there is one. `None` too with fewer than
/// [`MIN_SLICES`] slices and where a figure is missing or invalid.
pub fn assess(phase: &Throughput<'_>) -> Option<Plateau> {
    assess_by(phase, &SINGLE_TEST)
}

/// The plateau of a disk that is judged again and again, so that what chance does once in a hundred times would be
/// seen many times a day. It takes [`MIN_SLICES_REPEATED`] slices.
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
    // Bytes are counted in operations of mean size, so that one rounding error is one operation.
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

/// True if the cumulative count keeps to a straight line, or would but for outliers.
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
    // Rounding to whole operations scatters the slices without adding up, as a cap does. Where few
    // operations fit a slice it would make any disk look flat.
    let scatter = (scatter - 1.0 / 12.0).max(0.0);
    wander <= (test.flattest)(slices) * slices * scatter
}

/// The counts with outliers, up to so many of them, replaced by the mean of the others. One stall, or one grant
/// that fell on the other side of a slice's end, shifts the line but is no random walk; a neighbour that makes up
/// for it belongs to it. `one` is one operation in the unit of the counts: rounding to whole ones makes no
/// outlier.
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

    /// Plateau of these operations, all of 4 KiB.
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

    /// Grants of blkio's cap of 153 requests in seconds on a host that now and then was not heard for some
    /// tenths of one: what it would have granted then is lost.
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
        // More than a few are no accident.
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
