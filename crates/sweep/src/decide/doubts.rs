//! Doubts about the table of a sweep, as sentences.

use std::collections::BTreeMap;

use super::candidates::Candidates;
use super::measurements::Measurements;
use crate::record::CellOutcome;
use ui::format::count;

/// Reasons to doubt the table.
pub(super) fn of(measurements: &Measurements, candidates: &Candidates) -> Vec<String> {
    let settings = &measurements.record.settings;
    let mut doubts = Vec::new();
    doubts.extend(findings(measurements));
    doubts.extend(few_blocks(candidates));
    if let Some(prices) = &settings.prices {
        doubts.extend(prices.costs_left_out());
    } else if settings.objective.needs_prices() {
        doubts.push(format!(
            "{} cannot be ranked without prices; give a table of them with --price.",
            settings.objective
        ));
    }
    doubts
}

/// Reason to doubt that the winner meets a requirement.
pub(super) fn near_threshold(candidates: &Candidates, winner: Option<usize>) -> Option<String> {
    let doubt = candidates.checks.doubt(winner?)?;
    Some(format!(
        "It is not certain that the best meets the requirements: {doubt}."
    ))
}

/// Number of doubtful and invalid runs, with the codes of their findings.
fn findings(measurements: &Measurements) -> Option<String> {
    let (mut runs, mut doubtful) = (0, 0);
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    for cell in &measurements.record.cells {
        if let CellOutcome::Measured { doubts, .. } = &cell.outcome {
            runs += 1;
            doubtful += usize::from(!doubts.is_empty());
            for code in doubts {
                *codes.entry(code).or_default() += 1;
            }
        }
    }
    let mut codes: Vec<(&str, usize)> = codes.into_iter().collect();
    codes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let codes: Vec<String> = codes
        .iter()
        .map(|(code, n)| format!("{code} in {n}"))
        .collect();
    (doubtful > 0).then(|| {
        format!(
            "{doubtful} of {} {} findings that make the figures doubtful or invalid: {}.",
            count(runs, "run"),
            if doubtful == 1 { "has" } else { "have" },
            codes.join(", ")
        )
    })
}

/// Doubt about layouts that were measured in only one block.
fn few_blocks(candidates: &Candidates) -> Option<String> {
    let most = candidates
        .contenders()
        .map(|layout| candidates.measurements.measured(layout))
        .max()?;
    (most == 1).then(|| {
        "The layouts were measured in 1 block: the variation between builds is not known yet, and \
         the intervals are those of single runs."
            .to_owned()
    })
}
