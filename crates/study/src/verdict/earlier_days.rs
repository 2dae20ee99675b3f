//! Response times in the same hours of earlier days: a rise that happens each morning is usual.

use super::inputs::{Windows, part};
use crate::distribution::{student_quantile, student_tail};
use crate::noise::mean;
use crate::shift::{MIN_SLOTS, Shift, logs, shift, step_effect, upper};

/// Standard deviation of a 90th percentile divided by that of the mean, for normal values.
const UPPER_SPREAD: f64 = 1.71;

/// Weight of the noise within days in the estimate of the variation between days, in days.
const WITHIN_DAY_NOISE_DAYS: f64 = 4.0;

/// Change of a series beyond the usual change in these hours. The mean change of the earlier days is subtracted. The
/// variation of these changes between days widens the interval, and the change must be significant with it too.
pub(crate) fn unusual_shift(values: &[f64], windows: &Windows) -> Option<Shift> {
    let before = part(values, &windows.before);
    let days = windows.days.iter();
    let days: Vec<LevelChange> = days
        .filter_map(|(before, after)| level_change(part(values, before), part(values, after)))
        .collect();
    let usual = mean(&days.iter().map(|day| day.level).collect::<Vec<_>>());
    let after: Vec<f64> = part(values, &windows.after)
        .iter()
        .map(|value| value / usual.exp())
        .collect();
    let mut change = shift(before, &after)?;
    if days.is_empty() {
        return Some(change);
    }
    let of_days = Days::new(&days);
    let (level, upper) = (change.ratio.ratio.ln(), change.upper.ln());
    let by_days = match level.abs() >= upper.abs() {
        true => of_days.tail(level),
        false => of_days.tail((upper - of_days.upper) / UPPER_SPREAD),
    };
    change.p = change.p.max(by_days);
    change.ratio = change.ratio.widened(of_days.uncertainty());
    Some(change)
}

/// Scatter of a day's change around the mean of the earlier days.
struct Days {
    /// Variance of the change of a day from the noise within it.
    within: f64,
    /// Variance of the change between days.
    variance: f64,
    /// Degrees of freedom of that variance.
    degrees: f64,
    /// Mean change of the 90th percentile in excess of that of the level.
    upper: f64,
    count: f64,
}

impl Days {
    /// Estimates the variation between days. With a few days it is imprecise, so the variance is moderated by that of
    /// the noise within them (Smyth, 2004).
    fn new(days: &[LevelChange]) -> Self {
        let of =
            |figure: fn(&LevelChange) -> f64| -> Vec<f64> { days.iter().map(figure).collect() };
        let levels = of(|day| day.level);
        let middle = mean(&levels);
        let within = mean(&of(|day| day.error * day.error));
        let squares = levels.iter().map(|level| (level - middle).powi(2));
        let degrees = WITHIN_DAY_NOISE_DAYS + days.len() as f64 - 1.0;
        Self {
            variance: (WITHIN_DAY_NOISE_DAYS * within + squares.sum::<f64>()) / degrees,
            within,
            degrees,
            upper: mean(&of(|day| day.upper)) - middle,
            count: days.len() as f64,
        }
    }

    /// Variance of a day's distance from the mean of the others.
    fn of_distance(&self) -> f64 {
        self.variance * (1.0 + 1.0 / self.count)
    }

    /// Probability that an ordinary day is this far from the mean of the others.
    fn tail(&self, distance: f64) -> f64 {
        match self.of_distance() {
            variance if variance > 0.0 => student_tail(distance / variance.sqrt(), self.degrees),
            _ => f64::from(u8::from(distance == 0.0)),
        }
    }

    /// Half of the 95 % interval that the days add to that of the change itself, which includes the noise within the
    /// day.
    fn uncertainty(&self) -> f64 {
        let more = (self.of_distance() - self.within).max(0.0);
        student_quantile(0.05, self.degrees) * more.sqrt()
    }
}

/// Change of an earlier day, as logarithms.
struct LevelChange {
    level: f64,
    /// Standard error of the level.
    error: f64,
    /// Change of the 90th percentile.
    upper: f64,
}

/// The change; `None` if there are too few values.
fn level_change(before: &[f64], after: &[f64]) -> Option<LevelChange> {
    let (before, after) = (logs(before), logs(after));
    if before.len() < MIN_SLOTS || after.len() < MIN_SLOTS {
        return None;
    }
    let rise = upper(&after) - upper(&before);
    let effect = step_effect(&[&before[..], &after].concat(), before.len(), &[])?;
    Some(LevelChange {
        level: effect.size,
        error: effect.error,
        upper: rise,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(rises: &[f64]) -> (Vec<f64>, Windows) {
        let level = |slot: usize| {
            if slot % 100 < 50 {
                10.0
            } else {
                10.0 * rises[slot / 100]
            }
        };
        let wave = |slot: usize| 1.0 + 0.01 * (slot * 7 % 5) as f64;
        let values = (0..100 * rises.len()).map(|slot| level(slot) * wave(slot));
        let moment = 100 * (rises.len() - 1) + 50;
        let windows = Windows::around(moment, 30, 100 * rises.len(), 100, 0..usize::MAX);
        (values.collect(), windows)
    }

    #[test]
    fn a_rise_of_each_day_is_usual() {
        let (values, windows) = days(&[1.5, 1.52, 1.5, 1.51]);
        let change = unusual_shift(&values, &windows).unwrap();
        assert!(!change.shows(0.01, 1.1), "{change:?}");
    }

    #[test]
    fn a_rise_beyond_that_of_each_day_is_not() {
        let (values, windows) = days(&[1.5, 1.52, 1.5, 3.0]);
        let change = unusual_shift(&values, &windows).unwrap();
        assert!(change.shows(0.01, 1.1), "{change:?}");
        assert!((change.ratio.ratio - 2.0).abs() < 0.05, "{change:?}");
    }

    #[test]
    fn without_earlier_days_all_counts() {
        let (values, windows) = days(&[1.5]);
        assert!(unusual_shift(&values, &windows).unwrap().shows(0.01, 1.1));
    }
}
