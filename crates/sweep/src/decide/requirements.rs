//! Checks of requirements on layouts.

use study::interval::Interval;
use study::small_samples;

use super::clauses::{blocks, shown};
use super::measurements::Measurements;
use crate::objective::Requirement;

/// Factor by which a rate must differ from its threshold for one block to decide. The latency of cloud disks doubles
/// for minutes, and percentiles vary even more.
const DECISIVE_RATE_FACTOR: f64 = 2.0;
const DECISIVE_LATENCY_FACTOR: f64 = 4.0;

/// Result of a check of a requirement on a layout.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RequirementResult {
    /// The requirement is met.
    Met,
    /// Not decided yet.
    Undecided,
    /// The requirement is missed: the reason, as a clause.
    Missed(String),
}

/// Measurements of one requirement on one layout.
#[derive(Clone, Debug, PartialEq)]
struct RequirementValues {
    /// The value in each block.
    values: Vec<f64>,
    /// Interval of the true mean, by the noise over all layouts; `None` while no layout was measured twice.
    interval: Option<Interval>,
}

/// Checks of all requirements on all layouts.
pub(super) struct RequirementChecks<'a> {
    /// Requirements, each with the measurements of its figure by layout.
    all: Vec<(&'a Requirement, Vec<RequirementValues>)>,
    /// True if nothing more will be measured, so that the mean over the blocks decides.
    last: bool,
}

impl<'a> RequirementChecks<'a> {
    /// Checks of a sweep's requirements. The interval of a mean is that of the table: see [`small_samples::means`].
    pub(super) fn of(measurements: &Measurements<'a>, last: bool) -> RequirementChecks<'a> {
        let record = measurements.record;
        let measured = |requirement: &Requirement| {
            let of_layout = |layout| {
                let values = measurements
                    .blocks(layout, &requirement.figure)
                    .into_values();
                values.map(|value| value.mean).collect()
            };
            let groups: Vec<Vec<f64>> = (0..record.layouts.len()).map(of_layout).collect();
            let intervals = small_samples::means(&groups);
            let each = groups.into_iter().zip(intervals);
            each.map(|(values, interval)| RequirementValues { values, interval })
                .collect()
        };
        let requires = record.settings.requires.iter();
        RequirementChecks {
            all: requires
                .map(|requirement| (requirement, measured(requirement)))
                .collect(),
            last,
        }
    }

    /// Result of all requirements on a layout; the first one that is missed decides.
    pub(super) fn check(&self, layout: usize) -> RequirementResult {
        let mut all = RequirementResult::Met;
        for (requirement, measured) in self.on(layout) {
            match one(requirement, measured, self.last) {
                RequirementResult::Met => {}
                RequirementResult::Undecided => all = RequirementResult::Undecided,
                missed @ RequirementResult::Missed(_) => return missed,
            }
        }
        all
    }

    /// Reason to doubt that a layout that counts as meeting the requirements meets them, as a clause.
    pub(super) fn doubt(&self, layout: usize) -> Option<String> {
        let mut all = self.on(layout);
        all.find_map(|(requirement, measured)| doubt(requirement, measured))
    }

    fn on(&self, layout: usize) -> impl Iterator<Item = (&'a Requirement, &RequirementValues)> {
        let all = self.all.iter();
        all.filter_map(move |(requirement, measured)| Some((*requirement, measured.get(layout)?)))
    }
}

/// Position of the true value relative to the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Right,
    Wrong,
    /// Not known.
    Either,
}

/// Position by the interval or, while there is no interval, by one block that is far from the threshold.
fn position(requirement: &Requirement, measured: &RequirementValues) -> Position {
    let excess: Vec<f64> = match measured.interval {
        Some(interval) => vec![
            requirement.excess(interval.low),
            requirement.excess(interval.high),
        ],
        None => {
            let far = if requirement.figure.metric.is_latency() {
                DECISIVE_LATENCY_FACTOR
            } else {
                DECISIVE_RATE_FACTOR
            };
            let values = measured.values.iter();
            let excess = values.map(|value| requirement.excess(*value));
            excess
                .flat_map(|excess| [excess / far, excess * far])
                .collect()
        }
    };
    if excess.is_empty() {
        Position::Either
    } else if excess.iter().all(|excess| *excess > 1.0) {
        Position::Wrong
    } else if excess.iter().all(|excess| *excess < 1.0) {
        Position::Right
    } else {
        Position::Either
    }
}

fn one(requirement: &Requirement, measured: &RequirementValues, last: bool) -> RequirementResult {
    let Some(average) = measured.average() else {
        // A requirement on a figure that was never measured is missed.
        return if last {
            RequirementResult::Missed(format!("has no measurement for {requirement}"))
        } else {
            RequirementResult::Undecided
        };
    };
    let missed = |how: &str| {
        RequirementResult::Missed(format!(
            "misses {requirement} {how} {}: {}",
            blocks(measured.values.len()),
            shown(&requirement.figure, average)
        ))
    };
    match position(requirement, measured) {
        Position::Wrong => missed("in"),
        Position::Right => RequirementResult::Met,
        Position::Either if !last => RequirementResult::Undecided,
        Position::Either if requirement.is_met_by(average) => RequirementResult::Met,
        Position::Either => missed("on the average of"),
    }
}

/// Reason to doubt that a requirement is met, though its mean meets the threshold, as a clause.
fn doubt(requirement: &Requirement, measured: &RequirementValues) -> Option<String> {
    let average = measured.average()?;
    if position(requirement, measured) != Position::Either {
        return None;
    }
    let value = |value: f64| shown(&requirement.figure, value);
    let between = match measured.interval {
        Some(interval) => format!(
            ", and it may lie between {} and {}",
            value(interval.low),
            value(interval.high)
        ),
        None => String::new(),
    };
    Some(format!(
        "{} in {} is too near to {requirement} to be certain{between}",
        value(average),
        blocks(measured.values.len())
    ))
}

impl RequirementValues {
    /// The geometric mean, as in the table; `None` without values.
    fn average(&self) -> Option<f64> {
        let logs = self.values.iter().map(|value| value.ln());
        let mean = logs.sum::<f64>() / self.values.len() as f64;
        (!self.values.is_empty()).then(|| mean.exp())
    }
}

/// Doubts about requirements on figures that no layout has.
pub(super) fn unmeasured(measurements: &Measurements) -> Vec<String> {
    let layouts = 0..measurements.record.layouts.len();
    if !layouts
        .clone()
        .any(|layout| measurements.measured(layout) > 0)
    {
        return Vec::new();
    }
    let required = measurements.record.settings.requires.iter();
    let absent = required.filter(|requirement| {
        let has = |layout| !measurements.blocks(layout, &requirement.figure).is_empty();
        !layouts.clone().any(has)
    });
    absent
        .map(|requirement| {
            format!(
                "No run has the figure {}, so that no layout is known to meet {requirement}.",
                requirement.figure
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result with a noise known from many blocks.
    fn noisy(text: &str, values: &[f64], noise: f64, last: bool) -> RequirementResult {
        one(&text.parse().unwrap(), &measured(values, noise), last)
    }

    fn measured(values: &[f64], noise: f64) -> RequirementValues {
        let mut measured = RequirementValues {
            values: values.to_vec(),
            interval: None,
        };
        let half = 1.96 * noise / (values.len() as f64).sqrt();
        measured.interval = measured
            .average()
            .filter(|_| noise > 0.0)
            .map(|mean| Interval {
                mean,
                low: mean * (-half).exp(),
                high: mean * half.exp(),
            });
        measured
    }

    fn alone(text: &str, value: f64) -> RequirementResult {
        noisy(text, &[value], 0.0, false)
    }

    fn is_missed(result: &RequirementResult) -> bool {
        matches!(result, RequirementResult::Missed(_))
    }

    #[test]
    fn before_the_end_a_requirement_is_missed_only_where_the_interval_excludes_it() {
        let text = "seek.p99<1ms";
        assert_eq!(noisy(text, &[], 0.0, false), RequirementResult::Undecided);
        assert_eq!(
            noisy(text, &[1.01e6, 1.03e6], 0.05, false),
            RequirementResult::Undecided
        );
        assert_eq!(
            noisy(text, &[9.7e5, 9.9e5], 0.05, false),
            RequirementResult::Undecided
        );
        assert_eq!(
            noisy(text, &[8e5, 8e5], 0.05, false),
            RequirementResult::Met
        );
        assert_eq!(
            noisy(text, &[1.2e6, 1.2e6], 0.05, false),
            RequirementResult::Missed("misses seek.p99<1ms in 2 blocks: 1.20 ms".to_owned())
        );
        // One block is enough where the noise is known from others.
        assert!(is_missed(&noisy(text, &[1.2e6], 0.05, false)));
        assert_eq!(
            noisy("seek.iops>=1000", &[980.0; 2], 0.05, false),
            RequirementResult::Undecided
        );
        assert!(is_missed(&noisy(
            "seek.iops>=1000",
            &[900.0; 2],
            0.05,
            false
        )));
    }

    #[test]
    fn while_no_noise_is_known_one_block_must_be_far_from_the_threshold() {
        assert!(is_missed(&alone("seek.p99<1ms", 4.1e6)));
        assert_eq!(alone("seek.p99<1ms", 3.9e6), RequirementResult::Undecided);
        assert!(is_missed(&alone("seek.iops>=1000", 490.0)));
        assert_eq!(
            alone("seek.iops>=1000", 510.0),
            RequirementResult::Undecided
        );
        assert_eq!(
            alone("seek.iops>=1000", 1900.0),
            RequirementResult::Undecided
        );
        assert_eq!(alone("seek.iops>=1000", 2100.0), RequirementResult::Met);
    }

    #[test]
    fn at_the_end_the_average_decides_and_a_value_near_the_threshold_is_doubted() {
        let text = "seek.p99<1ms";
        let near = measured(&[1.02e6, 9.7e5], 0.05);
        let requirement: Requirement = text.parse().unwrap();
        assert_eq!(one(&requirement, &near, true), RequirementResult::Met);
        let message = doubt(&requirement, &near).unwrap();
        assert!(
            message.starts_with("995 µs in 2 blocks is too near to seek.p99<1ms to be certain"),
            "{message}"
        );
        assert!(message.contains("between 928 µs and 1.07 ms"), "{message}");
        assert_eq!(doubt(&requirement, &measured(&[8e5; 2], 0.05)), None);
        assert!(is_missed(&noisy(text, &[1.05e6, 9.8e5], 0.05, true)));
        assert!(is_missed(&noisy(text, &[1.1e6], 0.0, true)));
        // A figure that was never measured misses its requirement.
        assert!(is_missed(&noisy(text, &[], 0.0, true)));
    }
}
