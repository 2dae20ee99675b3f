//! The gate of `--fail-if-slower`, which passes only phases that could be compared.
//!
//! Each kind of request of each phase of A (the baseline) is judged by itself. It is slower when its interval is below
//! the limit. It passes when both runs did the same work, neither is invalid, and the interval excludes two slowdowns
//! by the limit, one after the other; without this bound a wide interval would always pass. Anything else is
//! inconclusive. Phases that only B has are not judged.

use study::compare::RatioInterval;

use ui::format::percent;

/// Minimum ratio that the lower bound of the interval may have: that of two slowdowns by the limit, one after the
/// other.
fn reach(limit: f64) -> f64 {
    (1.0 - limit).powi(2)
}

/// Answer of the gate for one kind of request of one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// B is slower than A by more than the limit, beyond doubt.
    Slower,
    /// Neither a slowdown nor its absence is shown; the reason, as a clause.
    Inconclusive(String),
    Passed,
}

/// Answer of the gate for the comparison as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Something is slower, whether or not something else is inconclusive.
    Slower,
    Inconclusive,
    Passed,
}

impl Outcome {
    /// Outcome of all judgements. Without any judgement nothing was compared, and the outcome is inconclusive.
    pub(super) fn of<'a>(judgements: impl Iterator<Item = &'a Judgement>) -> Outcome {
        let mut outcome = None;
        for judgement in judgements {
            outcome = match (judgement, outcome) {
                (Judgement::Slower, _) => return Outcome::Slower,
                (Judgement::Inconclusive(_), _) => Some(Outcome::Inconclusive),
                (Judgement::Passed, before) => before.or(Some(Outcome::Passed)),
            };
        }
        outcome.unwrap_or(Outcome::Inconclusive)
    }

    /// The word in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Outcome::Slower => "slower",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Passed => "passed",
        }
    }
}

/// Judges a ratio of B to A. `doubt` is the reason why the ratio cannot be relied on, as a clause.
pub(super) fn judge(limit: f64, ratio: Option<RatioInterval>, doubt: Option<&str>) -> Judgement {
    let reaches = |ratio: RatioInterval| {
        format!(
            "B may be slower by up to {}, which is more than {} twice over: measure longer, or \
             with less other load",
            percent(1.0 - ratio.low),
            percent(limit)
        )
    };
    match (ratio, doubt) {
        // Doubt never turns a failure into a pass.
        (Some(ratio), _) if ratio.high < 1.0 - limit => Judgement::Slower,
        (_, Some(doubt)) => Judgement::Inconclusive(doubt.to_owned()),
        (None, None) => Judgement::Inconclusive("there is no interval".to_owned()),
        (Some(ratio), None) if ratio.low < reach(limit) => Judgement::Inconclusive(reaches(ratio)),
        (Some(_), None) => Judgement::Passed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(low: f64, high: f64) -> Option<RatioInterval> {
        Some(RatioInterval {
            ratio: (low * high).sqrt(),
            low,
            high,
        })
    }

    #[test]
    fn an_interval_is_judged_by_where_it_lies_and_how_wide_it_is() {
        use Judgement::{Inconclusive, Passed, Slower};
        let unclear = || Inconclusive(String::new());
        for (low, high, expected) in [
            (0.80, 0.94, Slower),
            (0.40, 0.949, Slower),
            (0.99, 1.01, Passed),
            (0.93, 0.99, Passed),
            (0.91, 0.96, Passed),
            (1.20, 3.00, Passed),
            (0.89, 0.96, unclear()),
            (0.50, 2.00, unclear()),
            (0.00, 9.00, unclear()),
        ] {
            let got = match judge(0.05, between(low, high), None) {
                Inconclusive(_) => unclear(),
                judgement => judgement,
            };
            assert_eq!(got, expected, "{low} to {high}");
        }
    }

    #[test]
    fn doubt_makes_a_pass_inconclusive_and_a_failure_stays_one() {
        let doubted = |ratio| judge(0.05, ratio, Some("A is invalid"));
        assert_eq!(doubted(between(0.5, 0.6)), Judgement::Slower);
        let unclear = Judgement::Inconclusive("A is invalid".to_owned());
        for ratio in [between(0.99, 1.01), between(0.5, 2.0), None] {
            assert_eq!(doubted(ratio), unclear);
        }
    }

    #[test]
    fn the_worst_judgement_is_the_outcome_and_none_at_all_is_inconclusive() {
        let unclear = Judgement::Inconclusive(String::new());
        for (judgements, outcome) in [
            (&[][..], Outcome::Inconclusive),
            (&[Judgement::Passed, Judgement::Passed], Outcome::Passed),
            (&[Judgement::Passed, unclear.clone()], Outcome::Inconclusive),
            (&[unclear.clone(), Judgement::Passed], Outcome::Inconclusive),
            (&[unclear.clone(), Judgement::Slower], Outcome::Slower),
            (&[Judgement::Slower, unclear.clone()], Outcome::Slower),
        ] {
            assert_eq!(Outcome::of(judgements.iter()), outcome, "{judgements:?}");
        }
    }
}
