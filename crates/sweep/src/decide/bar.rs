//! Requirements on a layout.

use study::few;
use study::interval::Interval;

use super::clauses::{blocks, shown};
use super::observed::Observed;
use crate::objective::Requirement;

/// One block alone speaks against a layout, or for it, only where it is this many times on one side
/// of the bar. Cloud disks double their latency for minutes, and percentiles more than that.
const FAR_RATE: f64 = 2.0;
const FAR_LATENCY: f64 = 4.0;

/// Result of a requirement on a layout.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bar {
    /// It is met.
    Met,
    /// Not known yet.
    Open,
    /// It is missed: why, as a clause.
    Missed(String),
}

/// Measurements of one requirement on one layout.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    /// The value in each block.
    values: Vec<f64>,
    /// Interval of the true mean, with the noise that all layouts show; `None` while no layout was measured
    /// twice.
    interval: Option<Interval>,
}

/// All requirements, held against all layouts.
pub(super) struct Bars<'a> {
    /// Each with what was measured of it, by layout.
    all: Vec<(&'a Requirement, Vec<Measured>)>,
    /// True if nothing more will be measured, so that the mean over the blocks decides what was open.
    last: bool,
}

impl<'a> Bars<'a> {
    /// Holds them against each other. The interval of a mean is that of the table: see
    /// [`few::means`].
    pub(super) fn of(observed: &Observed<'a>, last: bool) -> Bars<'a> {
        let record = observed.record;
        let measured = |requirement: &Requirement| {
            let of_layout = |layout| {
                let values = observed.blocks(layout, &requirement.figure).into_values();
                values.map(|value| value.mean).collect()
            };
            let groups: Vec<Vec<f64>> = (0..record.layouts.len()).map(of_layout).collect();
            let intervals = few::means(&groups);
            let each = groups.into_iter().zip(intervals);
            each.map(|(values, interval)| Measured { values, interval })
                .collect()
        };
        let requires = record.settings.requires.iter();
        Bars {
            all: requires
                .map(|requirement| (requirement, measured(requirement)))
                .collect(),
            last,
        }
    }

    /// Result of all requirements on a layout: the first that is missed decides.
    pub(super) fn judge(&self, layout: usize) -> Bar {
        let mut all = Bar::Met;
        for (requirement, measured) in self.on(layout) {
            match one(requirement, measured, self.last) {
                Bar::Met => {}
                Bar::Open => all = Bar::Open,
                missed @ Bar::Missed(_) => return missed,
            }
        }
        all
    }

    /// Doubt that a layout which is taken meets the requirements, as a clause.
    pub(super) fn doubt(&self, layout: usize) -> Option<String> {
        let mut all = self.on(layout);
        all.find_map(|(requirement, measured)| doubt(requirement, measured))
    }

    fn on(&self, layout: usize) -> impl Iterator<Item = (&'a Requirement, &Measured)> {
        let all = self.all.iter();
        all.filter_map(move |(requirement, measured)| Some((*requirement, measured.get(layout)?)))
    }
}

/// On which side of the bar the truth lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lies {
    Right,
    Wrong,
    /// On either, as far as can be told.
    Either,
}

/// By the interval or, while there is none, by one block that is far from the bar.
fn lies(requirement: &Requirement, measured: &Measured) -> Lies {
    let excess: Vec<f64> = match measured.interval {
        Some(interval) => vec![
            requirement.excess(interval.low),
            requirement.excess(interval.high),
        ],
        None => {
            let far = if requirement.figure.metric.is_latency() {
                FAR_LATENCY
            } else {
                FAR_RATE
            };
            let values = measured.values.iter();
            let excess = values.map(|value| requirement.excess(*value));
            excess
                .flat_map(|excess| [excess / far, excess * far])
                .collect()
        }
    };
    if excess.is_empty() {
        Lies::Either
    } else if excess.iter().all(|excess| *excess > 1.0) {
        Lies::Wrong
    } else if excess.iter().all(|excess| *excess < 1.0) {
        Lies::Right
    } else {
        Lies::Either
    }
}

fn one(requirement: &Requirement, measured: &Measured, last: bool) -> Bar {
    let Some(average) = measured.average() else {
        // What was never measured is not met.
        return if last {
            Bar::Missed(format!(
                "cannot be held against {requirement}: no run has that figure"
            ))
        } else {
            Bar::Open
        };
    };
    let missed = |how: &str| {
        Bar::Missed(format!(
            "misses {requirement} {how} {}: {}",
            blocks(measured.values.len()),
            shown(&requirement.figure, average)
        ))
    };
    match lies(requirement, measured) {
        Lies::Wrong => missed("in"),
        Lies::Right => Bar::Met,
        Lies::Either if !last => Bar::Open,
        Lies::Either if requirement.is_met_by(average) => Bar::Met,
        Lies::Either => missed("on the average of"),
    }
}

/// Reason for which it is not certain that a requirement is met whose bar the mean meets, as a clause.
fn doubt(requirement: &Requirement, measured: &Measured) -> Option<String> {
    let average = measured.average()?;
    if lies(requirement, measured) != Lies::Either {
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

impl Measured {
    /// The geometric mean, as the table has it; `None` of nothing.
    fn average(&self) -> Option<f64> {
        let logs = self.values.iter().map(|value| value.ln());
        let mean = logs.sum::<f64>() / self.values.len() as f64;
        (!self.values.is_empty()).then(|| mean.exp())
    }
}

/// The requirements whose figure no layout has, as doubts.
pub(super) fn unmeasured(observed: &Observed) -> Vec<String> {
    let layouts = 0..observed.record.layouts.len();
    if !layouts.clone().any(|layout| observed.measured(layout) > 0) {
        return Vec::new();
    }
    let required = observed.record.settings.requires.iter();
    let absent = required.filter(|requirement| {
        let has = |layout| !observed.blocks(layout, &requirement.figure).is_empty();
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

    /// With a noise of so much a block, known from many.
    fn noisy(text: &str, values: &[f64], noise: f64, last: bool) -> Bar {
        one(&text.parse().unwrap(), &measured(values, noise), last)
    }

    fn measured(values: &[f64], noise: f64) -> Measured {
        let mut measured = Measured {
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

    fn alone(text: &str, value: f64) -> Bar {
        noisy(text, &[value], 0.0, false)
    }

    fn is_missed(bar: &Bar) -> bool {
        matches!(bar, Bar::Missed(_))
    }

    #[test]
    fn before_the_end_a_bar_is_missed_only_where_the_interval_excludes_it() {
        let text = "seek.p99<1ms";
        assert_eq!(noisy(text, &[], 0.0, false), Bar::Open);
        assert_eq!(noisy(text, &[1.01e6, 1.03e6], 0.05, false), Bar::Open);
        assert_eq!(noisy(text, &[9.7e5, 9.9e5], 0.05, false), Bar::Open);
        assert_eq!(noisy(text, &[8e5, 8e5], 0.05, false), Bar::Met);
        assert_eq!(
            noisy(text, &[1.2e6, 1.2e6], 0.05, false),
            Bar::Missed("misses seek.p99<1ms in 2 blocks: 1.20 ms".to_owned())
        );
        // One block is enough where the noise is known from others.
        assert!(is_missed(&noisy(text, &[1.2e6], 0.05, false)));
        assert_eq!(
            noisy("seek.iops>=1000", &[980.0; 2], 0.05, false),
            Bar::Open
        );
        assert!(is_missed(&noisy(
            "seek.iops>=1000",
            &[900.0; 2],
            0.05,
            false
        )));
    }

    #[test]
    fn while_no_noise_is_known_one_block_must_be_far_from_the_bar() {
        assert!(is_missed(&alone("seek.p99<1ms", 4.1e6)));
        assert_eq!(alone("seek.p99<1ms", 3.9e6), Bar::Open);
        assert!(is_missed(&alone("seek.iops>=1000", 490.0)));
        assert_eq!(alone("seek.iops>=1000", 510.0), Bar::Open);
        assert_eq!(alone("seek.iops>=1000", 1900.0), Bar::Open);
        assert_eq!(alone("seek.iops>=1000", 2100.0), Bar::Met);
    }

    #[test]
    fn at_the_end_the_average_decides_and_what_is_near_the_bar_is_said() {
        let text = "seek.p99<1ms";
        let near = measured(&[1.02e6, 9.7e5], 0.05);
        let requirement: Requirement = text.parse().unwrap();
        assert_eq!(one(&requirement, &near, true), Bar::Met);
        let message = doubt(&requirement, &near).unwrap();
        assert!(
            message.starts_with("995 µs in 2 blocks is too near to seek.p99<1ms to be certain"),
            "{message}"
        );
        assert!(message.contains("between 928 µs and 1.07 ms"), "{message}");
        assert_eq!(doubt(&requirement, &measured(&[8e5; 2], 0.05)), None);
        assert!(is_missed(&noisy(text, &[1.05e6, 9.8e5], 0.05, true)));
        assert!(is_missed(&noisy(text, &[1.1e6], 0.0, true)));
        // Never measured is not met.
        assert!(is_missed(&noisy(text, &[], 0.0, true)));
    }
}
