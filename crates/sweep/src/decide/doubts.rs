//! Doubts about the table of a sweep, as sentences.

use std::collections::BTreeMap;

use super::field::Field;
use super::observed::Observed;
use crate::record::CellOutcome;
use ui::format::count;

/// All of them.
pub(super) fn of(observed: &Observed, field: &Field) -> Vec<String> {
    let settings = &observed.record.settings;
    let mut doubts = Vec::new();
    doubts.extend(findings(observed));
    doubts.extend(few_blocks(field));
    if let Some(prices) = &settings.prices {
        doubts.extend(prices.remarks());
    } else if settings.objective.needs_prices() {
        doubts.push(format!(
            "{} cannot be ranked without prices; give a table of them with --price.",
            settings.objective
        ));
    }
    doubts
}

/// Doubt that the winner meets a requirement.
pub(super) fn near_bar(field: &Field, winner: Option<usize>) -> Option<String> {
    let doubt = field.bars.doubt(winner?)?;
    Some(format!(
        "It is not certain that the best meets the requirements: {doubt}."
    ))
}

/// Number of runs with findings that make them doubtful or invalid, and their names.
fn findings(observed: &Observed) -> Option<String> {
    let (mut runs, mut doubtful) = (0, 0);
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    for cell in &observed.record.cells {
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
            "{doubtful} of {} {} findings that speak against the figures: {}.",
            count(runs, "run"),
            if doubtful == 1 { "has" } else { "have" },
            codes.join(", ")
        )
    })
}

/// Doubt about layouts that were measured in one block only.
fn few_blocks(field: &Field) -> Option<String> {
    let most = field
        .contenders()
        .map(|layout| field.observed.measured(layout))
        .max()?;
    (most == 1).then(|| {
        "The layouts were measured in 1 block: the variation between builds is not known yet, and \
         the intervals are those of single runs."
            .to_owned()
    })
}
