//! Scaling with the number of members: the number at which the rate stops growing, and the reason; odd and even
//! numbers; slow members.

use study::compare::RatioInterval;
use study::effects::{Pair, SettingEffect, effect};
use study::median::median;
use study::scaling::{Point, RatioEstimate, knee, odd_against_even};

use crate::figure::{Figure, Metric};
use crate::record::{Probe, Value};
use ui::format::{count, number};

use super::clauses::{hundredths, range, shown};
use super::measurements::Measurements;
use super::scaling::{MeasuredCurve, in_flight, per_request, rate};

/// Share of the expected rate below which a rate is significantly lower: probes of a few seconds vary by some percent.
const LOWER_RATE_SHARE: f64 = 0.9;

/// Requests in flight for each member below which their number may be the limit: a cloud volume has a latency of about
/// a millisecond, and with one request in flight completes a thousand a second, whatever its provisioned rate.
const LOW_IN_FLIGHT_PER_MEMBER: f64 = 4.0;

/// Number of members at which the rate stops growing, and the limit.
pub(super) fn scaling(measurements: &Measurements, curves: &[MeasuredCurve]) -> String {
    let Some(best) = curves.first() else {
        return "Scaling with the number of members was not measured: no layout was swept with two \
                numbers of members."
            .to_owned();
    };
    let points = &best.curve.points;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    let figure = rate(measurements);
    let value = |value: f64| shown(&figure, value);
    let label = &best.curve.label;
    let at = |members: usize| points.iter().find(|point| point.members == members);
    let growth = match knee(&studied(best)).and_then(at) {
        Some(knee) => format!(
            "{label} stops scaling at {} members: {} there and {} with {}.",
            knee.members,
            value(knee.value.mean),
            value(last.value.mean),
            last.members
        ),
        None => format!(
            "No end of scaling is shown for {label}: {} with {} members and {} with {}.",
            value(first.value.mean),
            first.members,
            value(last.value.mean),
            last.members
        ),
    };
    let is_flat = knee(&studied(best)).is_some();
    let growth = match few_in_flight(measurements, best).filter(|_| is_flat) {
        Some(few) => format!("{growth} Too few requests in flight may be the reason: {few}."),
        None => growth,
    };
    format!("{growth} {}", limit(measurements, best))
}

/// Number of requests in flight on the members of the largest array, as a clause; `None` if they are enough.
fn few_in_flight(measurements: &Measurements, curve: &MeasuredCurve) -> Option<String> {
    let layout = curve.layouts.last()?;
    let members = measurements.record.layouts.get(*layout)?.members;
    let (all, each) = in_flight(measurements, *layout)?;
    (members > 1 && each < LOW_IN_FLIGHT_PER_MEMBER).then(|| {
        format!(
            "{all} in flight are {} for each of {members} members; try with more (--depth)",
            number(each)
        )
    })
}

/// The limit of the largest array of a curve: the limit of the instance, of the array, or of its volumes.
fn limit(measurements: &Measurements, curve: &MeasuredCurve) -> String {
    let unknown =
        || "What limits it cannot be determined: the volumes were not measured alone.".to_owned();
    let (Some(probe), Some(last)) = (&measurements.record.probe, curve.curve.points.last()) else {
        return unknown();
    };
    let layout = curve.layouts.last().copied();
    let Some(io) = layout.and_then(|layout| per_request(measurements, layout)) else {
        return unknown();
    };
    let Some(alone) = sum(probe.alone.get(..last.members).unwrap_or_default()) else {
        return unknown();
    };
    let figure = rate(measurements);
    let value = |value: f64| shown(&figure, value);
    let reached = last.value.mean * io;
    // In requests of the largest array: a write to several copies is a request to each of their volumes.
    let makes = if io > 1.001 {
        format!(", which are {} to the volumes", value(reached))
    } else {
        String::new()
    };
    let array = format!(
        "{} of {} members{makes}",
        value(last.value.mean),
        last.members
    );
    let (bound, whose) = match cap(probe) {
        Some(cap) if cap.together < alone => (cap.together, cap.text(&value)),
        _ => (
            alone,
            format!(
                "The {} volumes give {} one after another, added up",
                last.members,
                value(alone)
            ),
        ),
    };
    let share = reached / bound;
    let percent = hundredths(share);
    if last.value.low.map_or(share, |low| low * io / bound) > 1.0 / LOWER_RATE_SHARE {
        format!(
            "{whose}; {array} is {percent} % of that, which is impossible: something slowed the \
             volumes while they were measured alone, such as another load or cold blocks. What \
             limits the array cannot be determined."
        )
    } else if last.value.high.map_or(share, |high| high * io / bound) < LOWER_RATE_SHARE {
        match few_in_flight(measurements, curve) {
            // Each volume was probed alone with all requests in flight.
            Some(few) => format!(
                "{whose}; {array} is {percent} % of that. Whether the array or the file system \
                 loses the rest, or too few requests are in flight, cannot be determined: {few}."
            ),
            None => format!(
                "{whose}; {array} is {percent} % of that: the rest is lost in the array or the \
                 file system, not in the volumes, or too few requests are in flight for so many \
                 (--depth)."
            ),
        }
    } else if bound < alone {
        format!("{whose}; {array} is {percent} % of that: the instance's limit is reached.")
    } else {
        format!("{whose}; {array} is {percent} % of that: the volumes' own sum is the limit.")
    }
}

/// A limit on all volumes together.
struct Cap {
    volumes: usize,
    alone: f64,
    together: f64,
}

impl Cap {
    fn text(&self, value: &dyn Fn(f64) -> String) -> String {
        format!(
            "All {} volumes measured at once reach {} and one after another {}, so the instance or its \
             host limits them",
            self.volumes,
            value(self.together),
            value(self.alone)
        )
    }
}

/// The limit of the instance or its host; `None` unless all volumes at once are significantly slower than the sum of
/// their rates alone.
fn cap(probe: &Probe) -> Option<Cap> {
    let (alone, together) = (sum(&probe.alone)?, sum(&probe.together)?);
    let least = sum_of(&probe.alone, |value| value.low.unwrap_or(value.mean));
    let most = sum_of(&probe.together, |value| value.high.unwrap_or(value.mean));
    let clear = probe.alone.len() == probe.together.len()
        && together < LOWER_RATE_SHARE * alone
        && most < least;
    clear.then_some(Cap {
        volumes: probe.alone.len(),
        alone,
        together,
    })
}

/// Number of curves from which on the interval is computed from the differences between curves, which is safer than
/// from the noise of a single curve.
const MIN_CURVES: usize = 3;

/// Comparison of even and odd numbers of members.
pub(super) fn odd_and_even(curves: &[MeasuredCurve]) -> String {
    let shares = curves
        .iter()
        .filter_map(|one| Some((one, odd_against_even(&studied(one))?)));
    let shares: Vec<(&MeasuredCurve, RatioEstimate)> = shares.collect();
    let Some((first, share)) = shares.first() else {
        return "Whether an even number of members does better than an odd one was not measured: no \
                odd number was swept together with both of its even neighbours."
            .to_owned();
    };
    let all = shares.iter().map(|(_, share)| share.ratio);
    match over_curves(all).filter(|_| shares.len() >= MIN_CURVES) {
        Some(all) => {
            let of = format!(
                "over {} of the other settings",
                count(shares.len(), "combination")
            );
            odd_or_even(all.ratio, all.interval, &of)
        }
        None => odd_or_even(share.ratio, share.interval, &first.curve.label),
    }
}

/// The mean effect over the curves, each of which counts as a pair of an even and an odd number.
fn over_curves(ratios: impl Iterator<Item = f64>) -> Option<SettingEffect> {
    let pairs = ratios.enumerate().map(|(at, ratio)| Pair {
        from: 2 * at,
        to: 2 * at + 1,
        blocks: vec![(1.0, ratio)],
    });
    effect(&pairs.collect::<Vec<_>>())
}

fn odd_or_even(ratio: f64, interval: Option<RatioInterval>, of: &str) -> String {
    let reach = |bounds: String| {
        format!(
            "odd numbers of members reach {} %{bounds} of the mean of their even neighbours \
             ({of}).",
            hundredths(ratio)
        )
    };
    let Some(interval) = interval else {
        return format!("Without an interval: {}", reach(String::new()));
    };
    let bounds = format!(" ({})", range(interval.low, interval.high));
    let answer = if interval.high < 1.0 {
        "Even numbers of members do better than odd ones"
    } else if interval.low > 1.0 {
        "Odd numbers of members do better than even ones"
    } else {
        "No difference between odd and even numbers of members is shown"
    };
    format!("{answer}: {}", reach(bounds))
}

/// The volumes that are significantly slower than the others, and the loss caused by each. A volume that was faster as
/// a member of an array than alone is not slow: something else limited the probe.
pub(super) fn slow(measurements: &Measurements, curves: &[MeasuredCurve]) -> Vec<String> {
    let record = measurements.record;
    let Some(probe) = &record.probe else {
        return Vec::new();
    };
    let count = probe.alone.len();
    let alone = probe.alone.iter().map(|value| value.mean).collect();
    let Some(usual) = median(alone).filter(|_| count > 2) else {
        return Vec::new();
    };
    let slow = probe
        .alone
        .iter()
        .zip(&record.settings.devices)
        .enumerate()
        .filter(|(at, (value, _))| {
            value.mean < LOWER_RATE_SHARE * usual
                && value.high.unwrap_or(value.mean) < usual
                && as_member(measurements, curves, *at) < value.mean / LOWER_RATE_SHARE
        });
    slow.map(|(_, (value, volume))| {
        let figure = Figure::of(&probe.phase, Metric::Iops);
        let all = count as f64;
        format!(
            "{} is slow: it reaches {} alone, {} % of the median of the {count} volumes ({}). Stripes \
             wait for their slowest member, so that all {count} with it give about {} at best \
             instead of {}, with enough requests in flight: replace it, or leave it out.",
            volume.path.display(),
            shown(&figure, value.mean),
            hundredths(value.mean / usual),
            shown(&figure, usual),
            shown(&figure, all * value.mean),
            shown(&figure, all * usual)
        )
    })
    .collect()
}

/// The highest rate of requests to each member of an array with this volume.
fn as_member(measurements: &Measurements, curves: &[MeasuredCurve], volume: usize) -> f64 {
    let mut most = 0.0;
    for curve in curves {
        for (point, layout) in curve.curve.points.iter().zip(&curve.layouts) {
            if let Some(io) = per_request(measurements, *layout).filter(|_| volume < point.members)
            {
                most = f64::max(most, point.value.mean * io / point.members as f64);
            }
        }
    }
    most
}

/// The points of a curve, for `study`.
fn studied(one: &MeasuredCurve) -> Vec<Point> {
    let points = one.curve.points.iter().map(|point| {
        let value = point.value;
        let half = value
            .low
            .zip(value.high)
            .map(|(low, high)| 0.5 * (high - low));
        Point {
            members: point.members,
            value: value.mean,
            half_width: half.map(|half| half / value.mean),
        }
    });
    points.collect()
}

/// The sum of rates; `None` if there are no rates, or one is invalid.
fn sum(values: &[Value]) -> Option<f64> {
    let sum = sum_of(values, |value| value.mean);
    let sensible = values.iter().all(|value| value.mean >= 0.0) && sum > 0.0 && sum.is_finite();
    sensible.then_some(sum)
}

fn sum_of(values: &[Value], of: impl Fn(&Value) -> f64) -> f64 {
    values.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::super::decide;
    use super::super::testing::{Truth, probed, raid10, sweep};
    use crate::decision::SweepDecision;
    use crate::layout::Layout;
    use domain::raid::Level;

    /// Rate of a layout as a multiple of the rate of its members, for page-mixed with 70 % reads.
    fn io(layout: &Layout) -> f64 {
        match layout.level {
            Some(Level::Ten) => 1.3,
            _ => 1.0,
        }
    }

    fn decision(
        members: &[usize],
        level: Level,
        of: &dyn Fn(&Layout) -> f64,
        alone: &[f64],
        share: f64,
    ) -> SweepDecision {
        with_depth(64, members, level, of, alone, share)
    }

    fn with_depth(
        depth: u32,
        members: &[usize],
        level: Level,
        of: &dyn Fn(&Layout) -> f64,
        alone: &[f64],
        share: f64,
    ) -> SweepDecision {
        let layouts = members.iter().map(|members| Layout {
            level: Some(level),
            ..raid10(*members)
        });
        let figures = |layout: &Layout| vec![("page-mixed.iops", of(layout))];
        let truth = Truth {
            of: &figures,
            noise: 0.01,
            drift: 0.0,
            seed: 2,
        };
        let mut record = probed(sweep("page-mixed.iops", layouts.collect()), alone, share);
        record.settings.depth = Some(depth);
        decide(&truth.all(record, 5))
    }

    fn has(decision: &SweepDecision, words: &[&str]) {
        for word in words {
            assert!(
                decision.answers.iter().any(|text| text.contains(word)),
                "{word}: {:#?}",
                decision.answers
            );
        }
    }

    const EQUAL: [f64; 8] = [3000.0; 8];

    #[test]
    fn a_probe_that_an_array_exceeds_is_ignored() {
        let of = |layout: &Layout| 3000.0 * layout.members as f64 / io(layout);
        let mut alone = EQUAL.map(|rate| 0.5 * rate);
        alone[2] = 700.0;
        let decision = decision(&[2, 4, 6, 8], Level::Ten, &of, &alone, 0.5);
        has(&decision, &["which is impossible", "cannot be determined"]);
        let slow = decision.answers.iter().any(|text| text.contains("is slow"));
        assert!(!slow, "{:#?}", decision.answers);
    }

    #[test]
    fn growth_to_the_volumes_sum_is_the_volumes_own() {
        let of = |layout: &Layout| 3000.0 * layout.members as f64 / io(layout) * 0.97;
        let decision = decision(&[2, 4, 6, 8], Level::Ten, &of, &EQUAL, 1.0);
        has(
            &decision,
            &[
                "No end of scaling is shown for RAID 10, 256 KiB, xfs: ",
                "the volumes' own sum is the limit",
                "The 8 volumes give 24,000 IOPS one after another",
            ],
        );
        let curve = &decision.curves[0];
        assert_eq!(curve.points.len(), 4);
        // Of 2 x 3,000 requests to the volumes a write takes two.
        let ideal = curve.points[0].ideal.unwrap();
        assert!((ideal - 6000.0 / 1.3).abs() < 1.0, "{ideal}");
    }

    #[test]
    fn a_plateau_below_the_volumes_together_is_the_arrays_limit() {
        let of = |layout: &Layout| (3000.0 * layout.members as f64 / io(layout)).min(9000.0);
        let decision = decision(&[2, 4, 6, 8], Level::Ten, &of, &EQUAL, 1.0);
        has(
            &decision,
            &[
                "stops scaling at 4 members",
                "lost in the array or the file system",
            ],
        );
    }

    #[test]
    fn with_few_requests_in_flight_neither_the_array_nor_a_knee_is_blamed_alone() {
        let of = |layout: &Layout| (3000.0 * layout.members as f64 / io(layout)).min(9000.0);
        let blames = |decision: &SweepDecision, word: &str| {
            let mut answers = decision.answers.iter();
            answers.any(|text| text.contains(word))
        };
        // 1.3 times 20 requests over eight members are 3.2 each, below 4; 1.3 times 26 are above.
        for (depth, few) in [(20, true), (26, false)] {
            let decision = with_depth(depth, &[2, 4, 6, 8], Level::Ten, &of, &EQUAL, 1.0);
            has(&decision, &["stops scaling at 4 members"]);
            let want = "Too few requests in flight may be the reason: 20 in flight are 3.2 for each of 8 members";
            assert_eq!(blames(&decision, want), few, "{:#?}", decision.answers);
            assert_eq!(blames(&decision, "in flight, cannot be determined"), few);
            assert_eq!(blames(&decision, "the rest is lost in the array"), !few);
        }
        let grows = |layout: &Layout| 3000.0 * layout.members as f64;
        let decision = with_depth(20, &[2, 4, 8], Level::Zero, &grows, &EQUAL, 1.0);
        assert!(!blames(&decision, "Too few requests in flight may be"));
    }

    #[test]
    fn a_plateau_at_the_volumes_together_is_the_instances_limit() {
        let of = |layout: &Layout| (3000.0 * layout.members as f64).min(12_000.0);
        let decision = decision(&[2, 4, 6, 8], Level::Zero, &of, &EQUAL, 0.5);
        has(
            &decision,
            &[
                "stops scaling at 4 members",
                "All 8 volumes measured at once reach 12,000 IOPS and one after another 24,000 IOPS",
                "the instance's limit is reached",
            ],
        );
    }

    #[test]
    fn without_a_probe_the_limit_is_unknown() {
        let of = |layout: &Layout| 3000.0 * layout.members as f64;
        let decision = decision(&[2, 4], Level::Zero, &of, &[], 1.0);
        has(&decision, &["the volumes were not measured alone"]);
    }

    #[test]
    fn odd_against_even() {
        let odd = |layout: &Layout| {
            let share = if layout.members % 2 == 1 { 0.85 } else { 1.0 };
            3000.0 * layout.members as f64 * share
        };
        let all = [2, 3, 4, 5, 6, 7, 8];
        has(
            &decision(&all, Level::Zero, &odd, &EQUAL, 1.0),
            &["Even numbers of members do better than odd ones: odd numbers of members reach 8"],
        );
        let same = |layout: &Layout| 3000.0 * layout.members as f64;
        has(
            &decision(&all, Level::Zero, &same, &EQUAL, 1.0),
            &["No difference between odd and even numbers of members is shown: "],
        );
        has(
            &decision(&[2, 4, 6], Level::Zero, &same, &EQUAL, 1.0),
            &["an even number of members does better than an odd one was not measured"],
        );
    }

    #[test]
    fn several_curves_answer_together() {
        let answer = |ratios: [f64; 4]| {
            let all = super::over_curves(ratios.into_iter()).unwrap();
            super::odd_or_even(all.ratio, all.interval, "over 4 combinations")
        };
        let odd = answer([0.9, 0.92, 0.88, 0.9]);
        let begin =
            "Even numbers of members do better than odd ones: odd numbers of members reach 90 %";
        assert!(odd.starts_with(begin), "{odd}");
        // One distant value is not enough.
        assert!(answer([0.9, 1.0, 1.01, 0.99]).starts_with("No difference"));
    }

    #[test]
    fn a_slow_volume_is_named_with_its_loss() {
        let mut alone = EQUAL;
        alone[2] = 2000.0;
        let of = |layout: &Layout| 2000.0 * layout.members as f64;
        let slow = decision(&[2, 4, 8], Level::Zero, &of, &alone, 1.0);
        has(
            &slow,
            &[
                "/dev/nvme3n1 is slow: it reaches 2,000 IOPS alone, 67 % of the median of the 8 volumes",
                "all 8 with it give about 16,000 IOPS at best instead of 24,000 IOPS, with enough",
            ],
        );
        alone[2] = 2800.0;
        let calm = decision(&[2, 4, 8], Level::Zero, &of, &alone, 1.0);
        assert!(
            !calm.answers.iter().any(|text| text.contains("is slow")),
            "{:?}",
            calm.answers
        );
    }
}
