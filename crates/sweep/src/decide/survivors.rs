//! The best layout for each number of failed members that it survives.
//!
//! Layouts are compared with the best of all, so that layouts of a slower class may have been dropped early: within a
//! class, layouts whose intervals overlap tie.

use crate::decision::{LayoutOutcome, LayoutResult, Survivor};
use crate::record::SweepRecord;

/// Highest number of failed members that is considered.
const MAX_LOSSES: usize = 2;

/// The best layout for each number of failed members, from the required number on. `rows` are sorted, the best first.
pub(crate) fn of(rows: &[LayoutResult], record: &SweepRecord) -> Vec<Survivor> {
    let contends = |row: &&LayoutResult| {
        let is_out = matches!(row.outcome, LayoutOutcome::Missed | LayoutOutcome::Failed);
        !is_out && row.value.is_some()
    };
    (record.settings.factors.survives..=MAX_LOSSES)
        .map(|losses| {
            let mut class = rows
                .iter()
                .filter(contends)
                .filter(|row| row.survives >= losses);
            let best = class.next();
            let ties = class.filter(|row| best.is_some_and(|best| overlap(best, row)));
            Survivor {
                losses,
                best: best.map(|row| row.layout),
                ties: ties.map(|row| row.layout).collect(),
            }
        })
        .collect()
}

/// True if two rows are not distinguishable by their shares of the best of all, or by their values.
fn overlap(a: &LayoutResult, b: &LayoutResult) -> bool {
    // The best of all has no share; its ties are already known.
    if a.of_winner.is_none() {
        return b.outcome == LayoutOutcome::Tie;
    }
    let bounds = |row: &LayoutResult| {
        let share = row.of_winner?;
        Some((share.low?, share.high?))
    };
    match bounds(a).zip(bounds(b)) {
        Some(((a_low, a_high), (b_low, b_high))) => a_low <= b_high && b_low <= a_high,
        // Without intervals they are not distinguishable.
        None => true,
    }
}

/// Warning if the best layout survives no failure.
pub(super) fn doubt(
    record: &SweepRecord,
    rows: &[LayoutResult],
    winner: Option<usize>,
) -> Option<String> {
    let winner = winner?;
    let row = rows.iter().find(|row| row.layout == winner)?;
    let layout = record.layouts.get(winner).filter(|_| row.survives == 0)?;
    let lost = match layout.members {
        0 | 1 => "a failure of its volume loses all data".to_owned(),
        many => format!("one failed volume of its {many} loses all data"),
    };
    Some(format!(
        "The best layout, {layout}, has no redundancy: {lost}. Use it only where the data may be lost, \
         or choose with --survives 1."
    ))
}
