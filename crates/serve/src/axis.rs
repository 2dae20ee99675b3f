//! Time axes, and figures summed per slot of an axis.

use jiff::Timestamp;

use crate::documents::{Line, figures};

/// Seconds since 1970.
pub(crate) type Seconds = i64;

/// Time slots in ascending order, without overlap. Slots of days and months differ in length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// Start of each slot, ascending.
    starts: Vec<Seconds>,
    /// End of the last slot.
    end: Seconds,
    /// Usual length of a slot in seconds.
    slot_s: i64,
}

impl Axis {
    /// Slots of equal length that cover `[from, to)`; each begins at a multiple of that length.
    pub(crate) fn uniform(from: Seconds, to: Seconds, slot_s: i64) -> Axis {
        let slot_s = slot_s.max(1);
        let first = from - from.rem_euclid(slot_s);
        let count = (to - first).max(0).div_euclid(slot_s)
            + i64::from((to - first).max(0).rem_euclid(slot_s) > 0);
        Axis {
            starts: (0..count).map(|nth| first + nth * slot_s).collect(),
            end: first + count * slot_s,
            slot_s,
        }
    }

    /// An axis whose slots begin at the given times.
    pub(crate) fn of_starts(starts: Vec<Seconds>, end: Seconds, slot_s: i64) -> Axis {
        Axis {
            starts,
            end,
            slot_s,
        }
    }

    /// Slots of several axes of one slot length, one axis after the other.
    pub(crate) fn joined(axes: &[Axis]) -> Axis {
        Axis {
            starts: axes
                .iter()
                .flat_map(|axis| axis.starts.iter().copied())
                .collect(),
            end: axes.last().map_or(0, |axis| axis.end),
            slot_s: axes.last().map_or(1, |axis| axis.slot_s),
        }
    }

    /// Start of each slot.
    pub(crate) fn starts(&self) -> &[Seconds] {
        &self.starts
    }

    /// Number of slots.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Start of the first slot.
    pub(crate) fn from(&self) -> Seconds {
        self.starts.first().copied().unwrap_or(self.end)
    }

    /// End of the last slot.
    pub(crate) fn to(&self) -> Seconds {
        self.end
    }

    /// Usual length of a slot in seconds.
    pub(crate) fn slot_s(&self) -> i64 {
        self.slot_s
    }

    /// Index of the slot that contains time `at`, in seconds since 1970; `None` outside the axis.
    pub(crate) fn slot(&self, at: f64) -> Option<usize> {
        if at >= self.end as f64 {
            return None;
        }
        let after = self.starts.partition_point(|start| *start as f64 <= at);
        after.checked_sub(1)
    }

    /// Indices of the slots that begin within `[from, to)`.
    pub(crate) fn slots(&self, from: f64, to: f64) -> std::ops::Range<usize> {
        let first = self.starts.partition_point(|start| (*start as f64) < from);
        let last = self.starts.partition_point(|start| (*start as f64) < to);
        first..last.max(first)
    }

    /// Indices of the slots that a measurement over `[from, to)` belongs to. A measurement of up to 1.5 slots belongs
    /// to the slot of its midpoint, a longer one to all slots that begin within it.
    pub(crate) fn covered(&self, from: f64, to: f64) -> std::ops::Range<usize> {
        if to - from > 1.5 * self.slot_s as f64 {
            return self.slots(from, to);
        }
        match self.slot((from + to) / 2.0) {
            Some(slot) => slot..slot + 1,
            None => 0..0,
        }
    }
}

/// Converts a time of an axis.
pub(crate) fn timestamp(at: Seconds) -> Timestamp {
    Timestamp::from_second(at).unwrap_or_default()
}

/// Seconds since 1970 with their fraction.
pub(crate) fn seconds(at: Timestamp) -> f64 {
    at.as_nanosecond() as f64 / 1e9
}

/// Weighted sum, extremes and number of the values of one slot.
#[derive(Clone, Copy, Debug)]
struct Sum {
    total: f64,
    weight: f64,
    min: f64,
    max: f64,
    values: u32,
}

const ZERO_SUM: Sum = Sum {
    total: 0.0,
    weight: 0.0,
    min: f64::INFINITY,
    max: f64::NEG_INFINITY,
    values: 0,
};

/// Values of a figure, summed per slot: weighted mean, minimum and maximum.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotFigures(Vec<Sum>);

/// A value of a figure, with its extremes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    /// Weighted mean.
    pub(crate) mean: f64,
    /// Minimum.
    pub(crate) min: f64,
    /// Maximum.
    pub(crate) max: f64,
}

impl Value {
    /// A value whose extremes equal its mean.
    pub(crate) fn single(value: f64) -> Value {
        Value {
            mean: value,
            min: value,
            max: value,
        }
    }
}

impl SlotFigures {
    /// Adds a value to a slot; does nothing if the mean is not finite or the weight is not positive.
    pub(crate) fn add(&mut self, slot: usize, value: Value, weight: f64) {
        if !value.mean.is_finite() || weight.is_nan() || weight <= 0.0 {
            return;
        }
        if self.0.len() <= slot {
            self.0.resize(slot + 1, ZERO_SUM);
        }
        let sum = &mut self.0[slot];
        sum.total += value.mean * weight;
        sum.weight += weight;
        sum.min = sum.min.min(value.min);
        sum.max = sum.max.max(value.max);
        sum.values += 1;
    }

    /// Widens the extremes of a slot to include `value`; does nothing if the slot has no mean.
    pub(crate) fn widen(&mut self, slot: usize, value: f64) {
        if let Some(sum) = self.0.get_mut(slot).filter(|sum| sum.weight > 0.0) {
            sum.min = sum.min.min(value);
            sum.max = sum.max.max(value);
        }
    }

    /// Sum of the means of all slots.
    pub(crate) fn total(&self) -> f64 {
        let known = self.0.iter().filter(|sum| sum.weight > 0.0);
        known.map(|sum| sum.total / sum.weight).sum()
    }

    /// Means of the first `slots` slots; NaN for a slot without values.
    pub(crate) fn means(&self, slots: usize) -> Vec<f64> {
        self.of_each(slots, |sum| sum.total / sum.weight)
    }

    /// Means of the first `slots` slots, with minima and maxima if they differ anywhere.
    pub(crate) fn line(&self, slots: usize) -> Line {
        let has_spread = self.0.iter().any(|sum| sum.max > sum.min);
        let extreme = |of: fn(&Sum) -> f64| has_spread.then(|| figures(self.of_each(slots, of)));
        Line {
            mean: figures(self.means(slots)),
            min: extreme(|sum| sum.min),
            max: extreme(|sum| sum.max),
        }
    }

    fn of_each(&self, slots: usize, of: impl Fn(&Sum) -> f64) -> Vec<f64> {
        let value = |slot: usize| match self.0.get(slot) {
            Some(sum) if sum.weight > 0.0 => of(sum),
            _ => f64::NAN,
        };
        (0..slots).map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_begin_at_multiples_and_hold_what_lies_in_them() {
        let axis = Axis::uniform(130, 250, 60);
        assert_eq!(axis.starts(), [120, 180, 240]);
        assert_eq!((axis.from(), axis.to()), (120, 300));
        assert_eq!(axis.slot(119.9), None);
        assert_eq!(axis.slot(120.0), Some(0));
        assert_eq!(axis.slot(299.0), Some(2));
        assert_eq!(axis.slot(300.0), None);
        assert_eq!(Axis::uniform(5, 5, 60).len(), 1);
        assert_eq!(Axis::uniform(60, 60, 60).len(), 0);
    }

    #[test]
    fn a_long_measurement_belongs_to_all_slots_that_begin_in_it() {
        let axis = Axis::uniform(0, 600, 60);
        assert_eq!(axis.covered(59.5, 60.5), 1..2);
        assert_eq!(axis.covered(60.0, 120.0), 1..2);
        assert_eq!(axis.covered(60.0, 240.0), 1..4);
        assert_eq!(axis.covered(600.0, 601.0), 0..0);
    }

    #[test]
    fn no_spike_is_lost() {
        let mut gathered = SlotFigures::default();
        for value in [1.0, 1.0, 100.0, f64::NAN] {
            gathered.add(1, Value::single(value), 1.0);
        }
        let line = gathered.line(3);
        let most = line.max.unwrap()[1].rounded();
        assert_eq!((line.mean[1].rounded(), most), (Some(34.0), Some(100.0)));
        assert_eq!(line.mean[0].rounded(), None);
        assert_eq!(line.mean[2].rounded(), None);
    }

    #[test]
    fn values_without_spread_have_no_extremes() {
        let mut gathered = SlotFigures::default();
        gathered.add(0, Value::single(5.0), 1.0);
        assert!(gathered.line(1).min.is_none());
    }
}
