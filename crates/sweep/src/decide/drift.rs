//! Drift of the baseline over the sweep.

use crate::decision::BaselineDrift;
use crate::record::Value;
use ui::units::span;

use super::clauses::{amount, changed};
use super::measurements::{Measurements, is_positive};

/// Change between two measurements of the baseline that is larger than the variation from rebuilding it.
const JUMP: f64 = 0.2;

/// The drift over all measurements of the baseline's layout. `None` before it was measured twice.
pub(super) fn of(measurements: &Measurements) -> Option<BaselineDrift> {
    let record = measurements.record;
    let figure = measurements.speed();
    let cells = record
        .cells
        .iter()
        .filter(|cell| cell.layout == record.baseline);
    let mut points: Vec<(f64, f64)> = cells
        .filter_map(|cell| Some((cell.began_s, cell.figure(&figure)?.mean)))
        .filter(|(time, value)| time.is_finite() && is_positive(*value))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let assessed = study::drift::assess(&points)?;
    let baseline = record.layouts.get(record.baseline)?;
    let measured = format!(
        "The baseline ({baseline}) was measured {} times in {}",
        points.len(),
        span(points.last()?.0 - points.first()?.0)
    );
    let text = match assessed.change {
        None => format!(
            "{measured}: too few to detect a drift; the largest step was {}.",
            amount(assessed.jump)
        ),
        Some(ratio) => format!(
            "{measured}: {}at the end {}; the largest step was {}.",
            if ratio.shows_difference() {
                ""
            } else {
                "no drift shown, "
            },
            changed(&figure, ratio),
            amount(assessed.jump)
        ),
    };
    Some(BaselineDrift {
        points,
        change: assessed.change.map(|ratio| Value {
            mean: ratio.ratio - 1.0,
            low: Some(ratio.low - 1.0),
            high: Some(ratio.high - 1.0),
        }),
        jump: assessed.jump,
        text,
    })
}

/// The doubt that a drift raises: comparisons within a block are valid, absolute figures are not.
pub(super) fn doubt_of_drift(drift: &BaselineDrift, tie: f64) -> Option<String> {
    let shown = drift.change.filter(|change| {
        let excludes_zero = change.low > Some(0.0) || change.high < Some(0.0);
        excludes_zero && change.mean.abs() > tie
    });
    let what = match shown {
        Some(change) => format!("drifted by {} while the sweep ran", amount(change.mean)),
        None if drift.jump.abs() > JUMP => {
            format!("jumped by {} from one time to the next", amount(drift.jump))
        }
        None => return None,
    };
    Some(format!(
        "The baseline {what}: comparisons of layouts, which are made within blocks, are still valid, \
         but figures of different blocks are not comparable."
    ))
}

#[cfg(test)]
mod tests {
    use super::super::decide;
    use super::super::testing::{Truth, raid10, sweep};
    use crate::decision::SweepDecision;
    use crate::layout::Layout;

    fn decision(drift: f64, blocks: usize) -> SweepDecision {
        let of = |_: &Layout| vec![("page-mixed.iops", 5000.0)];
        let truth = Truth {
            of: &of,
            noise: 0.005,
            drift,
            seed: 9,
        };
        let mut record = sweep("page-mixed.iops", vec![raid10(2), raid10(4)]);
        for block in 0..blocks {
            truth.measure(&mut record, block, &[1]);
            truth.baseline(&mut record, block);
        }
        decide(&record)
    }

    #[test]
    fn a_drift_is_shown_and_makes_doubtful() {
        let decision = decision(0.05, 5);
        let drift = decision.drift.unwrap();
        assert_eq!(drift.points.len(), 5);
        let change = drift.change.unwrap();
        assert!((change.mean - 0.2).abs() < 0.03, "{change:?}");
        assert!(
            drift.text.contains("at the end ") && drift.text.contains("% faster"),
            "{}",
            drift.text
        );
        assert!(
            decision
                .doubts
                .iter()
                .any(|text| text.contains("drifted by")),
            "{:?}",
            decision.doubts
        );
    }

    #[test]
    fn a_steady_machine_is_not_doubted() {
        let decision = decision(0.0, 5);
        let drift = decision.drift.unwrap();
        assert!(drift.text.contains("no drift shown"), "{}", drift.text);
        assert!(
            !decision.doubts.iter().any(|text| text.contains("baseline")),
            "{:?}",
            decision.doubts
        );
    }

    #[test]
    fn before_the_second_measurement_there_is_none() {
        assert!(decision(0.0, 1).drift.is_none());
        assert!(decision(0.0, 2).drift.unwrap().text.contains("too few"));
    }
}
