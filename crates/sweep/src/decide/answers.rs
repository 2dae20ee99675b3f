//! The old questions, answered in sentences.

use crate::decided::Effect;
use crate::layout::Factor;

use super::effects::{settings, subject};
use super::members;
use super::observed::Observed;
use super::scaling::Explained;

/// All of them: odd or even, where it stops scaling and why, what chunk, file system, level and
/// scheduler did, and which volume is slow. Empty before anything was measured.
pub(super) fn of(observed: &Observed, effects: &[Effect], curves: &[Explained]) -> Vec<String> {
    let record = observed.record;
    if !(0..record.layouts.len()).any(|layout| observed.measured(layout) > 0) {
        return Vec::new();
    }
    let mut answers = vec![
        members::odd_and_even(curves),
        members::scaling(observed, curves),
    ];
    for factor in [Factor::Chunk, Factor::Fs, Factor::Level, Factor::Scheduler] {
        let of_factor = effects.iter().filter(|effect| effect.factor == factor);
        let texts: Vec<String> = of_factor.map(|effect| effect.text.clone()).collect();
        if texts.is_empty() {
            answers.extend(not_measured(observed, factor));
        }
        answers.extend(texts);
    }
    answers.extend(members::slow(observed, curves));
    answers
}

/// Reason for which nothing is concluded of a factor; nobody asks for one that is left as it is by default.
fn not_measured(observed: &Observed, factor: Factor) -> Option<String> {
    let settings = settings(&observed.record.layouts, factor);
    let why = match settings.as_slice() {
        [_] if factor == Factor::Scheduler || factor == Factor::Level => return None,
        [only] if only == "–" => "no layout has one".to_owned(),
        [only] => format!("only {only} was swept"),
        _ => "no two layouts that differ in it alone were measured in the same block".to_owned(),
    };
    Some(format!(
        "What {} does was not measured: {why}.",
        subject(factor)
    ))
}
