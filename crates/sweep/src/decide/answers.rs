//! Conclusions about the factors, as sentences.

use crate::decision::FactorEffect;
use crate::layout::Factor;

use super::effects::{settings, subject};
use super::measurements::Measurements;
use super::members;
use super::scaling::MeasuredCurve;

/// Conclusions about factors and members: odd or even numbers of members, the limit of scaling and its reason, the
/// effects of chunk, file system, level and scheduler, and slow volumes. Empty before the first measurement.
pub(super) fn of(
    measurements: &Measurements,
    effects: &[FactorEffect],
    curves: &[MeasuredCurve],
) -> Vec<String> {
    let record = measurements.record;
    if !(0..record.layouts.len()).any(|layout| measurements.measured(layout) > 0) {
        return Vec::new();
    }
    let mut answers = vec![
        members::odd_and_even(curves),
        members::scaling(measurements, curves),
    ];
    for factor in [Factor::Chunk, Factor::Fs, Factor::Level, Factor::Scheduler] {
        let of_factor = effects.iter().filter(|effect| effect.factor == factor);
        let texts: Vec<String> = of_factor.map(|effect| effect.text.clone()).collect();
        if texts.is_empty() {
            answers.extend(not_measured(measurements, factor));
        }
        answers.extend(texts);
    }
    answers.extend(members::slow(measurements, curves));
    answers
}

/// Reason why nothing is concluded about a factor; `None` for a factor that is not varied by default.
fn not_measured(measurements: &Measurements, factor: Factor) -> Option<String> {
    let settings = settings(&measurements.record.layouts, factor);
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
