//! Load as a cause: a response time that followed its curve over the request rate.

use super::earlier_days::unusual_shift;
use super::inputs::{Observations, Windows, pairs};
use super::{LEVEL, MIN_CHANGE_RATIO};
use crate::shift::{Shift, StepEffect, shift_at_equal_load};

/// Changes of the request rate, and of the response time at equal rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadEvidence {
    /// Change of the request rate, in excess of that in the same hours of earlier days.
    pub rate: Shift,
    /// Change of the response time at equal rate, as a logarithm; `None` if the rates before and after do not overlap,
    /// so that the curve cannot be compared.
    pub at_equal_rate: Option<StepEffect>,
}

impl LoadEvidence {
    /// Compares the rate and the response time `metric`. Earlier days count as before, so that a rate that is new
    /// today can be compared if it occurred then.
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

    /// True if the rate changed in the direction that explains the change of the response time.
    pub(crate) fn moved(&self, direction: f64) -> bool {
        self.rate.shows(LEVEL, MIN_CHANGE_RATIO) && self.rate.size() * direction > 0.0
    }

    /// True if the rate changed in that direction, and at equal rate no change remains, or none can be shown.
    pub(crate) fn explains(&self, direction: f64) -> bool {
        let left = |effect: StepEffect| {
            effect.p <= LEVEL && effect.size * direction >= MIN_CHANGE_RATIO.ln()
        };
        self.moved(direction) && !self.at_equal_rate.is_some_and(left)
    }
}
