//! Load as a cause: a response time that moved along its curve over the request rate.

use super::earlier_days::unusual_shift;
use super::inputs::{Observations, Windows, pairs};
use super::{LEVEL, MIN_CHANGE_RATIO};
use crate::shift::{Shift, StepEffect, shift_at_equal_load};

/// Changes of the request rate, and of the response time at equal rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadEvidence {
    /// Change of the request rate, beyond that of the same hours of earlier days.
    pub rate: Shift,
    /// Change of the response time at equal rate, on logarithms; `None` where the rates before and after do not
    /// overlap, so that the curve cannot be compared.
    pub at_equal_rate: Option<StepEffect>,
}

impl LoadEvidence {
    /// Compares the rate and the response time `metric`. Earlier days count as before, so that a rate that is new
    /// today can be compared where it occurred then.
    pub(crate) fn new(observed: &Observations, metric: &[f64], windows: &Windows) -> Option<Self> {
        let requests = &observed.service.requests;
        let rate = unusual_shift(requests, windows)?;
        let earlier = windows.days.iter().rev();
        let mut before: Vec<(f64, f64)> = earlier
            .flat_map(|(before, after)| {
                [
                    pairs(requests, metric, before),
                    pairs(requests, metric, after),
                ]
                .concat()
            })
            .collect();
        before.extend(pairs(requests, metric, &windows.before));
        let after = pairs(requests, metric, &windows.after);
        Some(Self {
            rate,
            at_equal_rate: shift_at_equal_load(&before, &after),
        })
    }

    /// True if the rate moved in the direction that makes the response time move as it did.
    pub(crate) fn moved(&self, direction: f64) -> bool {
        self.rate.shows(LEVEL, MIN_CHANGE_RATIO) && self.rate.size() * direction > 0.0
    }

    /// True if the rate moved so, and at equal rate no change is left to explain, or none can be seen.
    pub(crate) fn explains(&self, direction: f64) -> bool {
        let left = |effect: StepEffect| {
            effect.p <= LEVEL && effect.size * direction >= MIN_CHANGE_RATIO.ln()
        };
        self.moved(direction) && !self.at_equal_rate.is_some_and(left)
    }
}
