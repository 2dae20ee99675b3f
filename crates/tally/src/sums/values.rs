//! Figures of values.

use crate::classes::MAX_CLASSES;

/// Figures of a tag's values in a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    /// Sum of values, each times its event's count.
    pub sum: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Last value of a gauge.
    pub last: Option<f64>,
    /// Response times by class.
    pub classes: [f64; MAX_CLASSES],
}

impl Values {
    /// Figures without any value.
    pub const EMPTY: Values = Values {
        sum: 0.0,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        last: None,
        classes: [0.0; MAX_CLASSES],
    };

    pub(super) fn add(&mut self, value: f64, count: f64) {
        self.sum += value * count;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds the figures of a later period.
    pub fn merge(&mut self, later: &Values) {
        self.sum += later.sum;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.last = later.last.or(self.last);
        for (sum, more) in self.classes.iter_mut().zip(later.classes) {
            *sum += more;
        }
    }
}
