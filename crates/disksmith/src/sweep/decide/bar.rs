//! Whether a layout meets what is required of it.

use super::observed::{Observed, mean};
use super::words::{blocks, shown};
use crate::sweep::objective::Requirement;

/// One block alone speaks against a layout only where it is this many times worse than the bar.
/// Cloud disks double their latency for minutes, and percentiles more than that.
const FAR_RATE: f64 = 2.0;
const FAR_LATENCY: f64 = 4.0;

/// In so many blocks a bar must be missed, each time, by a layout that misses it by less.
const ENOUGH_BLOCKS: usize = 2;

/// What became of a requirement on a layout.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bar {
    /// It was met in each block.
    Met,
    /// It was met in some blocks, or in too few to tell.
    Open,
    /// It is missed: why, as a clause.
    Missed(String),
}

/// What became of all requirements on a layout: the first that is missed decides. `last` says that
/// nothing more will be measured, so that the mean over the blocks decides what was open.
pub(super) fn judge(observed: &Observed, layout: usize, last: bool) -> Bar {
    let mut all = Bar::Met;
    for requirement in &observed.record.settings.requires {
        let measured = observed.blocks(layout, &requirement.figure);
        let values: Vec<f64> = measured.values().map(|value| value.mean).collect();
        match one(requirement, &values, last) {
            Bar::Met => {}
            Bar::Open => all = Bar::Open,
            missed @ Bar::Missed(_) => return missed,
        }
    }
    all
}

fn one(requirement: &Requirement, values: &[f64], last: bool) -> Bar {
    if values.is_empty() {
        // What was never measured is not met.
        return if last {
            Bar::Missed(format!(
                "cannot be held against {requirement}: no run has that figure"
            ))
        } else {
            Bar::Open
        };
    }
    let missed = values
        .iter()
        .filter(|value| !requirement.is_met_by(**value));
    let missed: Vec<f64> = missed.map(|value| requirement.excess(*value)).collect();
    if missed.is_empty() {
        return Bar::Met;
    }
    let figure = &requirement.figure;
    let far = if figure.metric.is_latency() {
        FAR_LATENCY
    } else {
        FAR_RATE
    };
    let always = missed.len() == values.len();
    let is_far = missed.iter().all(|excess| *excess >= far);
    let average = mean(values.iter().copied());
    if always && (values.len() >= ENOUGH_BLOCKS || is_far) {
        return Bar::Missed(format!(
            "misses {requirement} in {}: {}",
            blocks(values.len()),
            shown(figure, average)
        ));
    }
    if last && !requirement.is_met_by(average) {
        return Bar::Missed(format!(
            "misses {requirement} on the average of {}: {}",
            blocks(values.len()),
            shown(figure, average)
        ));
    }
    Bar::Open
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

    fn judged(text: &str, values: &[f64], last: bool) -> Bar {
        one(&text.parse().unwrap(), values, last)
    }

    fn is_missed(text: &str, values: &[f64], last: bool) -> bool {
        matches!(judged(text, values, last), Bar::Missed(_))
    }

    #[test]
    fn two_blocks_that_miss_are_beyond_doubt_and_one_is_not() {
        assert_eq!(judged("seek.p99<1ms", &[], false), Bar::Open);
        assert!(is_missed("seek.p99<1ms", &[], true));
        assert_eq!(judged("seek.p99<1ms", &[9e5], false), Bar::Met);
        assert_eq!(judged("seek.p99<1ms", &[1.1e6], false), Bar::Open);
        assert_eq!(judged("seek.p99<1ms", &[1.1e6, 9e5], false), Bar::Open);
        assert_eq!(
            judged("seek.p99<1ms", &[1.1e6, 1.3e6], false),
            Bar::Missed("misses seek.p99<1ms in 2 blocks: 1.20 ms".to_owned())
        );
    }

    #[test]
    fn one_block_far_beyond_the_bar_is_enough() {
        assert!(is_missed("seek.p99<1ms", &[4.1e6], false));
        assert!(!is_missed("seek.p99<1ms", &[3.9e6], false));
        assert!(is_missed("seek.iops>=1000", &[490.0], false));
        assert!(!is_missed("seek.iops>=1000", &[510.0], false));
    }

    #[test]
    fn at_the_end_the_average_decides() {
        assert!(is_missed("seek.p99<1ms", &[1.3e6, 9e5], true));
        assert_eq!(judged("seek.p99<1ms", &[1.05e6, 9e5], true), Bar::Open);
        assert!(is_missed("seek.p99<1ms", &[1.1e6], true));
    }
}
