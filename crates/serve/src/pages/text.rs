//! Formats figures and times as text. `assets/serve.js` formats them in the same way.

use jiff::Timestamp;

use crate::documents::{DiskNow, HostSource, HostState, RoundedFigure};
use ui::format;

/// Text in place of an unknown figure.
const UNKNOWN: &str = "–";

fn known(figure: RoundedFigure, word: impl Fn(f64) -> String) -> String {
    match figure.0.is_finite() {
        true => word(figure.0),
        false => UNKNOWN.to_owned(),
    }
}

/// A figure as a number; [`UNKNOWN`] if the figure is not known.
pub(super) fn number(figure: &RoundedFigure) -> String {
    known(*figure, format::number)
}

/// Bytes in MiB, without the unit.
pub(super) fn mib(bytes: &RoundedFigure) -> String {
    known(*bytes, |bytes| format::number(bytes / 1_048_576.0))
}

/// A response time or latency, given in milliseconds.
pub(super) fn duration(ms: &RoundedFigure) -> String {
    known(*ms, |ms| format::latency((ms * 1e6).round() as u64))
}

/// A share as percent.
pub(super) fn percent(share: &RoundedFigure) -> String {
    known(*share, |share| match share < 0.0995 {
        true => format!("{} %", (share * 1000.0).round() / 10.0),
        false => format!("{:.0} %", share * 100.0),
    })
}

/// Length of a bar for a share, from 0 to 100.
pub(super) fn bar(share: &RoundedFigure) -> String {
    let share = share.0.clamp(0.0, 1.0);
    format!("{:.1}", if share.is_nan() { 0.0 } else { share * 100.0 })
}

/// The check or rebuild that runs on an array; empty if none does.
pub(super) fn array_work(disk: &DiskNow) -> &str {
    let array = disk.array.as_ref().filter(|array| array.is_at_work());
    array.map_or("", |array| &array.action)
}

/// A probability with three decimals, or that it is less than 0.001.
pub(super) fn probability(p: RoundedFigure) -> String {
    known(p, |p| match p < 0.001 {
        true => "< 0.001".to_owned(),
        false => format!("{p:.3}"),
    })
}

/// A moment in UTC, to the second. The script writes it in the zone of the reader.
pub(super) fn moment(at: &Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A duration in words.
pub(super) fn span(seconds: &i64) -> String {
    let (many, unit) = match *seconds {
        s if s >= 86_400 && s % 86_400 == 0 => (s / 86_400, "day"),
        s if s >= 3_600 && s % 3_600 == 0 => (s / 3_600, "hour"),
        s if s >= 60 && s % 60 == 0 => (s / 60, "minute"),
        s => (s, "second"),
    };
    match many {
        1 => unit.to_owned(),
        many => format!("{many} {unit}s"),
    }
}

/// Age of figures.
pub(super) fn age(seconds: &RoundedFigure) -> String {
    known(*seconds, |seconds| span(&(seconds.round() as i64)))
}

/// The text, or [`UNKNOWN`] if it is `None`.
pub(super) fn or_dash(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or(UNKNOWN)
}

/// The text, or an empty one if it is `None`.
pub(super) fn or_empty(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

/// The state of a host's figures.
pub(super) fn state(state: &HostState) -> &'static str {
    match state {
        HostState::Live => "live",
        HostState::Stale => "stale",
    }
}

/// The source of a host's figures.
pub(super) fn source(source: &HostSource) -> &'static str {
    match source {
        HostSource::Kernel => "this host",
        HostSource::Prometheus => "from Prometheus",
    }
}

/// Kind, size and model of a disk.
pub(super) fn kind(disk: &DiskNow) -> String {
    let size = disk
        .size_bytes
        .map(|bytes| match bytes as f64 / f64::from(1 << 30) {
            gib if gib >= 1024.0 => format!("{:.1} TiB", gib / 1024.0),
            gib if gib >= 9.95 => format!("{gib:.0} GiB"),
            gib => format!("{gib:.1} GiB"),
        });
    let parts = [Some(disk.kind.to_owned()), size, disk.model.clone()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A ratio with its 95 % interval.
#[derive(Clone, Copy)]
pub(super) struct Ratio {
    pub(super) mean: RoundedFigure,
    pub(super) low: RoundedFigure,
    pub(super) high: RoundedFigure,
}

impl Ratio {
    /// A ratio without an interval.
    pub(super) fn alone(mean: RoundedFigure) -> Ratio {
        let unknown = RoundedFigure(f64::NAN);
        Ratio {
            mean,
            low: unknown,
            high: unknown,
        }
    }

    /// The ratio as text.
    pub(super) fn text(&self) -> String {
        known(self.mean, factor)
    }

    /// Interval of the ratio as text.
    pub(super) fn interval(&self) -> String {
        match self.low.0.is_finite() && self.high.0.is_finite() {
            true => format!("{} to {}", factor(self.low.0), factor(self.high.0)),
            false => UNKNOWN.to_owned(),
        }
    }

    /// Low end, mean and high end on an axis of 0 to 100 from one eighth to eight times, where they are known.
    pub(super) fn places(&self) -> Option<(String, String, String)> {
        let place = |ratio: RoundedFigure| {
            let at = 50.0 + 50.0 * ratio.0.ln() / 8_f64.ln();
            at.is_finite()
                .then(|| format!("{:.1}", at.clamp(1.0, 99.0)))
        };
        let mean = place(self.mean)?;
        Some((
            place(self.low).unwrap_or(mean.clone()),
            mean.clone(),
            place(self.high).unwrap_or(mean),
        ))
    }
}

/// A factor with two decimals, or fewer if it is large.
fn factor(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 9.995 => format!("{ratio:.2}×"),
        ratio => format!("{}×", format::number(ratio)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_what_is_not_known_is_a_dash() {
        for (ms, text) in [
            (0.0004, "400 ns"),
            (0.004, "4.00 µs"),
            (0.25, "250 µs"),
            (3.456, "3.46 ms"),
            (34.56, "34.6 ms"),
            (345.6, "346 ms"),
            (3456.0, "3.46 s"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(duration(&RoundedFigure(ms)), text);
        }
        for (share, text) in [
            (0.0, "0 %"),
            (0.0123, "1.2 %"),
            (0.5, "50 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(&RoundedFigure(share)), text);
        }
        for (seconds, text) in [
            (1, "second"),
            (60, "minute"),
            (3600, "hour"),
            (90, "90 seconds"),
            (172_800, "2 days"),
        ] {
            assert_eq!(span(&seconds), text);
        }
    }

    #[test]
    fn ratios_lie_on_an_axis_of_which_equal_is_the_middle() {
        let ratio = |mean, low, high| Ratio {
            mean: RoundedFigure(mean),
            low: RoundedFigure(low),
            high: RoundedFigure(high),
        };
        let places = |ratio: Ratio| ratio.places().unwrap();
        let text = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(
            places(ratio(1.0, 1.0 / 8.0, 100.0)),
            text("1.0", "50.0", "99.0")
        );
        assert_eq!(
            places(Ratio::alone(RoundedFigure(1.0))),
            text("50.0", "50.0", "50.0")
        );
        assert!(Ratio::alone(RoundedFigure(f64::NAN)).places().is_none());
        assert_eq!(ratio(2.0, 1.5, 12.34).interval(), "1.50× to 12.3×");
    }
}
