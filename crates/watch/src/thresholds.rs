//! Thresholds of a check, as ranges of the Monitoring Plugins Development Guidelines: `20` alerts above 20 and below 0,
//! `10:` below 10, `~:20` above 20, `10:20` outside of the range, and `@10:20` inside.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use record::Nanos;

/// A figure that a check reports, and that may have thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Metric {
    /// Mean latency, in milliseconds.
    Await,
    /// Share of the time with requests in flight, in percent.
    Busy,
    /// Mean number of requests in flight.
    InFlight,
    /// Requests a second.
    Iops,
    /// Share of the time in which a program waited for a disk (PSI), in percent.
    Pressure,
}

impl Metric {
    const ALL: [Metric; 5] = [
        Metric::Await,
        Metric::Busy,
        Metric::InFlight,
        Metric::Iops,
        Metric::Pressure,
    ];

    /// Name in thresholds and performance data.
    pub(super) fn name(self) -> &'static str {
        match self {
            Metric::Await => "await",
            Metric::Busy => "busy",
            Metric::InFlight => "in-flight",
            Metric::Iops => "iops",
            Metric::Pressure => "pressure",
        }
    }

    /// Unit of the values, and of bounds without a unit.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Metric::Await => "ms",
            Metric::Busy | Metric::Pressure => "%",
            Metric::InFlight | Metric::Iops => "",
        }
    }

    /// A bound in this metric's unit, from a number with or without a unit.
    fn bound(self, text: &str) -> Result<f64, String> {
        let number = |text: &str| text.parse().ok().filter(|value: &f64| value.is_finite());
        let value = match self {
            Metric::Await => number(text).or_else(|| {
                let time: Nanos = text.parse().ok()?;
                Some(time.as_secs_f64() * 1e3)
            }),
            Metric::Busy | Metric::Pressure => number(text.strip_suffix('%').unwrap_or(text)),
            Metric::InFlight | Metric::Iops => number(text),
        };
        let wrong = || {
            let example = match self {
                Metric::Await => "20 or 20ms",
                Metric::Busy | Metric::Pressure => "95 or 95%",
                Metric::InFlight | Metric::Iops => "64",
            };
            format!(
                "'{text}' is not a threshold of {}; {example} is",
                self.name()
            )
        };
        value.ok_or_else(wrong)
    }
}

/// Range of values that alert: those outside of the bounds, or inside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    low: f64,
    high: f64,
    inside: bool,
}

impl Range {
    fn of(metric: Metric, text: &str) -> Result<Range, String> {
        let (inside, bounds) = match text.strip_prefix('@') {
            Some(bounds) => (true, bounds),
            None => (false, text),
        };
        let (low, high) = match bounds.split_once(':') {
            None => (0.0, metric.bound(bounds)?),
            Some((low, high)) => {
                let low = match low {
                    "~" => f64::NEG_INFINITY,
                    "" => 0.0,
                    low => metric.bound(low)?,
                };
                let high = match high {
                    "" => f64::INFINITY,
                    high => metric.bound(high)?,
                };
                (low, high)
            }
        };
        if low > high {
            return Err(format!("'{text}' begins above its end"));
        }
        if high < 0.0 {
            return Err(format!("'{text}' lies below 0, where no figure is"));
        }
        Ok(Range { low, high, inside })
    }

    /// True if this value alerts.
    pub(super) fn alerts(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value) == self.inside
    }

    /// True if each value that alerts here also alerts in `other`. Between two adjacent bounds nothing changes, so one
    /// value of each stretch is tested.
    fn is_within(self, other: Range) -> bool {
        let mut bounds = vec![0.0];
        let finite = [self.low, self.high, other.low, other.high];
        bounds.extend(
            finite
                .into_iter()
                .filter(|one| one.is_finite() && *one > 0.0),
        );
        bounds.sort_by(f64::total_cmp);
        let beyond = bounds.last().map_or(1.0, |last| last * 2.0 + 1.0);
        let between = bounds
            .windows(2)
            .map(|pair| f64::midpoint(pair[0], pair[1]));
        let mut values = bounds.iter().copied().chain(between).chain([beyond]);
        values.all(|value| !self.alerts(value) || other.alerts(value))
    }
}

/// Formats a range as in performance data.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.inside {
            f.write_str("@")?;
        }
        match self.low {
            low if low == 0.0 && self.high.is_finite() => {}
            low if low.is_finite() => write!(f, "{low}:")?,
            _ => f.write_str("~:")?,
        }
        match self.high.is_finite() {
            true => write!(f, "{}", self.high),
            false => Ok(()),
        }
    }
}

/// Thresholds of one severity, such as `await=20ms,busy=95`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thresholds(BTreeMap<Metric, Range>);

impl Thresholds {
    pub(super) fn of(&self, metric: Metric) -> Option<Range> {
        self.0.get(&metric).copied()
    }

    /// Checks that each critical value is also a warning.
    pub(super) fn are_warnings_of(&self, critical: &Thresholds) -> Result<(), String> {
        for (metric, warning) in &self.0 {
            let is_beyond = |range: &Range| match range.inside && warning.inside {
                // Both ranges may be disjoint; but a warning range within the critical one would never be reported.
                true => warning != range && warning.is_within(*range),
                false => !range.is_within(*warning),
            };
            if critical.0.get(metric).is_some_and(is_beyond) {
                return Err(format!(
                    "the warning of {} lies beyond its critical threshold; exchange --warning and --critical",
                    metric.name()
                ));
            }
        }
        Ok(())
    }
}

impl FromStr for Thresholds {
    type Err = String;

    fn from_str(text: &str) -> Result<Thresholds, String> {
        let mut ranges = BTreeMap::new();
        // An argument that a Nagios service leaves out is passed as an empty one.
        for pair in text.split(',').filter(|_| !text.is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("'{pair}' is not KEY=RANGE, such as await=20ms"))?;
            let metric = Metric::ALL.into_iter().find(|metric| metric.name() == key);
            let metric = metric.ok_or_else(|| {
                let names = Metric::ALL.map(Metric::name).join(", ");
                format!("'{key}' has no threshold; these have: {names}")
            })?;
            if ranges.insert(metric, Range::of(metric, value)?).is_some() {
                return Err(format!("{key} has two thresholds; give one"));
            }
        }
        Ok(Thresholds(ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the guidelines, section "Threshold and Ranges", and units.
    #[test]
    fn ranges_alert_as_the_guidelines_say() {
        for (text, alerting, quiet) in [
            ("10", &[10.1, 11.0][..], &[0.0, 10.0][..]),
            ("10:", &[9.9, 0.0], &[10.0, 1e9]),
            ("~:10", &[10.1], &[0.0, 10.0]),
            ("10:20", &[9.9, 20.1], &[10.0, 20.0]),
            ("@10:20", &[10.0, 15.0, 20.0], &[9.9, 20.1]),
            ("20ms", &[20.5], &[20.0]),
            ("@1ms:1s", &[1.0, 1000.0], &[0.9, 1000.1]),
            ("0.5", &[0.6], &[0.4]),
        ] {
            let range = Range::of(Metric::Await, text).unwrap();
            assert!(alerting.iter().all(|value| range.alerts(*value)), "{text}");
            assert!(!quiet.iter().any(|value| range.alerts(*value)), "{text}");
        }
    }

    #[test]
    fn a_range_is_printed_as_performance_data_have_it() {
        for text in ["10", "10:", "~:10", "10:20", "@10:20", "@10"] {
            let range = Range::of(Metric::InFlight, text).unwrap();
            assert_eq!(range.to_string(), text);
        }
    }

    #[test]
    fn a_warning_comes_before_what_is_critical() {
        for (warning, critical, right) in [
            ("await=20ms", "await=100ms", true),
            ("await=20", "await=20", true),
            ("await=100ms", "await=20ms", false),
            ("iops=100:", "iops=10:", true),
            ("iops=10:", "iops=100:", false),
            ("in-flight=10:20", "in-flight=5:40", true),
            ("in-flight=10:20", "in-flight=15:40", false),
            ("busy=@50:100", "busy=@90:100", true),
            ("busy=@90:100", "busy=@50:100", false),
            ("iops=@5:10", "iops=@0:5", true),
            ("iops=@10:20", "iops=@21:30", true),
            ("busy=@50:", "busy=90", true),
            ("busy=50", "busy=@90:100", true),
            ("busy=90", "await=1", true),
        ] {
            let parse = |text: &str| text.parse::<Thresholds>().unwrap();
            let result = parse(warning).are_warnings_of(&parse(critical));
            assert_eq!(result.is_ok(), right, "{warning} {critical}");
        }
    }

    #[test]
    fn an_empty_argument_has_no_thresholds() {
        assert!("".parse::<Thresholds>().unwrap().0.is_empty());
        assert!(",".parse::<Thresholds>().is_err());
    }

    #[test]
    fn thresholds_are_ranges_of_known_figures() {
        let limits: Thresholds = "await=20ms,busy=95%,pressure=50".parse().unwrap();
        assert!(limits.of(Metric::Await).unwrap().alerts(20.1));
        assert!(limits.of(Metric::Busy).unwrap().alerts(95.1));
        assert!(limits.of(Metric::InFlight).is_none());
        for wrong in [
            "await",
            "await=x",
            "await=",
            "busy=-1",
            "busy=NaN",
            "await=20:10",
            "await=5%",
            "svctm=1",
            "busy=1,busy=2",
            "iops=@",
        ] {
            assert!(wrong.parse::<Thresholds>().is_err(), "{wrong}");
        }
    }
}
