//! Objective of a sweep, and requirements.

use std::fmt;
use std::str::FromStr;

use record::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::figure::{Figure, Metric};

/// The objective, by which layouts are ranked: `page-mixed.iops`, `page-read.p99`, `page-mixed.iops/$` or `cost`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The highest rate, or the lowest latency.
    Figure(Figure),
    /// The highest rate for each dollar a month.
    PerDollar(Figure),
    /// The lowest cost of the layouts that meet the requirements.
    Cost,
}

/// A requirement: a threshold for a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// Figure that the requirement is on.
    pub figure: Figure,
    /// Comparison of the figure with the threshold.
    pub side: ThresholdSide,
    /// The threshold, in the figure's unit: requests or bytes a second, or nanoseconds.
    #[serde(rename = "bar")]
    pub threshold: f64,
}

/// A comparison with a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdSide {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

impl Objective {
    /// The figure by which the objective ranks; `None` if the objective is the cost alone.
    pub(crate) fn figure(&self) -> Option<&Figure> {
        match self {
            Objective::Figure(figure) | Objective::PerDollar(figure) => Some(figure),
            Objective::Cost => None,
        }
    }

    /// True if the objective needs prices.
    pub(crate) fn needs_prices(&self) -> bool {
        !matches!(self, Objective::Figure(_))
    }

    /// True if lower values of the objective are better.
    pub(crate) fn less_is_better(&self) -> bool {
        match self {
            Objective::Figure(figure) => figure.metric.is_latency(),
            Objective::PerDollar(_) => false,
            Objective::Cost => true,
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Objective::Figure(figure) => write!(f, "{figure}"),
            Objective::PerDollar(figure) => write!(f, "{figure}/$"),
            Objective::Cost => f.write_str("cost"),
        }
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Objective, String> {
        let text = text.trim();
        if text == "cost" {
            return Ok(Objective::Cost);
        }
        let Some(rate) = text.strip_suffix("/$") else {
            return text.parse().map(Objective::Figure).map_err(|why| {
                format!("{why}; or write PHASE.iops/$ for the rate of each dollar, or cost")
            });
        };
        let figure: Figure = rate.parse()?;
        if figure.metric.is_latency() {
            return Err(format!(
                "'{text}' divides a latency by dollars, which ranks nothing; write a rate, as in \
                 page-mixed.iops/$, or the latency alone"
            ));
        }
        Ok(Objective::PerDollar(figure))
    }
}

impl ThresholdSide {
    /// All comparisons, the longer signs first, since `<=` begins with `<`.
    const ALL: [ThresholdSide; 4] = [
        ThresholdSide::AtMost,
        ThresholdSide::AtLeast,
        ThresholdSide::Below,
        ThresholdSide::Above,
    ];

    /// Sign on the command line.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            ThresholdSide::Below => "<",
            ThresholdSide::AtMost => "<=",
            ThresholdSide::Above => ">",
            ThresholdSide::AtLeast => ">=",
        }
    }

    /// True if small values satisfy the comparison.
    pub fn is_low(self) -> bool {
        matches!(self, ThresholdSide::Below | ThresholdSide::AtMost)
    }
}

impl Requirement {
    /// True if a value of the figure meets the requirement.
    pub fn is_met_by(&self, value: f64) -> bool {
        match self.side {
            ThresholdSide::Below => value < self.threshold,
            ThresholdSide::AtMost => value <= self.threshold,
            ThresholdSide::Above => value > self.threshold,
            ThresholdSide::AtLeast => value >= self.threshold,
        }
    }

    /// Factor by which a value misses the threshold: 2 for twice the allowed latency or half the required rate. Below
    /// 1 if the threshold is met.
    pub(crate) fn excess(&self, value: f64) -> f64 {
        if self.side.is_low() {
            value / self.threshold
        } else {
            self.threshold / value
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threshold = shown(self.figure.metric, self.threshold);
        write!(f, "{}{}{threshold}", self.figure, self.side.sign())
    }
}

/// A threshold in the largest unit from which it is parsed as the same number.
fn shown(metric: Metric, threshold: f64) -> String {
    const TIMES: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
    const SIZES: [(&str, f64); 4] = [
        ("GiB", (1_u64 << 30) as f64),
        ("MiB", (1_u64 << 20) as f64),
        ("KiB", (1_u64 << 10) as f64),
        ("B", 1.0),
    ];
    let units: &[(&str, f64)] = match metric {
        Metric::Iops => return threshold.to_string(),
        Metric::Bytes => &SIZES,
        _ => &TIMES,
    };
    let fits = |value: f64| value >= 1.0 && (value * 1e3).round() / 1e3 == value;
    match units.iter().find(|(_, unit)| fits(threshold / unit)) {
        Some((word, unit)) => format!("{}{word}", threshold / unit),
        None => format!("{threshold}{}", units.last().map_or("", |(word, _)| word)),
    }
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Requirement, String> {
        let signs = |at: &usize| {
            ThresholdSide::ALL
                .into_iter()
                .find(|s| text[*at..].starts_with(s.sign()))
        };
        let found = text.find(['<', '>']);
        let Some((at, side)) = found.and_then(|at| Some((at, signs(&at)?))) else {
            return Err(format!(
                "'{text}' has no threshold; write FIGURE<VALUE or FIGURE>=VALUE, as in page-write.p99<5ms, \
                 page-read.iops>=10000 or scan.bytes>=200MiB"
            ));
        };
        let figure: Figure = text[..at].trim().parse()?;
        let threshold = threshold_of(figure.metric, text[at + side.sign().len()..].trim())
            .map_err(|why| format!("the threshold of '{text}': {why}"))?;
        Ok(Requirement {
            figure,
            side,
            threshold,
        })
    }
}

/// Parses a threshold in the unit of the metric.
fn threshold_of(metric: Metric, text: &str) -> Result<f64, String> {
    match metric {
        Metric::Iops => text
            .parse()
            .ok()
            .filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
            .ok_or_else(|| {
                format!(
                    "'{text}' is not a number of requests a second above zero; write it plainly, \
                     such as 10000"
                )
            }),
        Metric::Bytes => match text.parse::<Bytes>() {
            Ok(Bytes(0)) => Err("nothing a second is met by all; write such as 200MiB".to_owned()),
            Ok(size) => Ok(size.0 as f64),
            Err(why) => Err(why.to_string()),
        },
        // A bare number would be seconds, which is not a plausible latency.
        _ if text.ends_with(|last: char| last.is_ascii_digit()) => Err(format!(
            "'{text}' has no unit; write a latency with ns, us, ms or s behind it, such as 5ms"
        )),
        _ => match text.parse::<Nanos>() {
            Ok(Nanos(0)) => Err("no request takes no time; write such as 5ms".to_owned()),
            Ok(span) => Ok(span.0 as f64),
            Err(why) => Err(why.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_objective_reads_back_as_it_is_shown() {
        for text in [
            "page-mixed.iops",
            "page-read.p99",
            "page-mixed.read.p99.9",
            "scan.bytes/$",
            "page-mixed.iops/$",
            "cost",
        ] {
            let objective: Objective = text.parse().unwrap();
            assert_eq!(objective.to_string(), text);
        }
        let latency: Objective = "page-read.p99".parse().unwrap();
        assert!(latency.less_is_better() && !latency.needs_prices());
        assert!(Objective::Cost.less_is_better() && Objective::Cost.needs_prices());
    }

    #[test]
    fn an_invalid_objective_is_an_error_with_the_valid_form() {
        for (text, expected) in [
            ("speed", "page-mixed.iops"),
            ("", "page-mixed.iops"),
            ("page-read.p99/$", "divides a latency"),
            ("/$", "PHASE.METRIC"),
        ] {
            let error = text.parse::<Objective>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_requirement_is_in_the_unit_of_its_figure() {
        for (text, side, threshold, shown) in [
            (
                "page-write.p99<5ms",
                ThresholdSide::Below,
                5e6,
                "page-write.p99<5ms",
            ),
            (
                "seek.p50 <= 0.2ms",
                ThresholdSide::AtMost,
                2e5,
                "seek.p50<=200us",
            ),
            (
                "page-read.iops>=10000",
                ThresholdSide::AtLeast,
                1e4,
                "page-read.iops>=10000",
            ),
            (
                "page-read.iops > 2.5",
                ThresholdSide::Above,
                2.5,
                "page-read.iops>2.5",
            ),
            (
                "scan.bytes>=200MiB",
                ThresholdSide::AtLeast,
                200.0 * 1_048_576.0,
                "scan.bytes>=200MiB",
            ),
            (
                "seek.p99.9<1234567ns",
                ThresholdSide::Below,
                1_234_567.0,
                "seek.p99.9<1234.567us",
            ),
        ] {
            let requirement: Requirement = text.parse().unwrap();
            assert_eq!(
                (requirement.side, requirement.threshold),
                (side, threshold),
                "{text}"
            );
            assert_eq!(requirement.to_string(), shown);
        }
    }

    #[test]
    fn an_invalid_requirement_is_an_error_with_the_reason() {
        for (text, expected) in [
            ("page-write.p99", "has no threshold"),
            ("page-write.p99=5ms", "has no threshold"),
            ("page-write.p99<5", "has no unit"),
            ("page-write.p99<", "not a duration"),
            ("page-write.p99<0ms", "no time"),
            ("page-write.p99<5MiB", "not a duration"),
            ("page-read.iops>=many", "requests a second"),
            ("page-read.iops>=-1", "requests a second"),
            ("page-read.iops>=inf", "requests a second"),
            ("scan.bytes>=5ms", "not a size"),
            ("<5ms", "PHASE.METRIC"),
        ] {
            let error = text.parse::<Requirement>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_threshold_itself_counts_where_the_sign_includes_it() {
        let of = |text: &str| text.parse::<Requirement>().unwrap();
        assert!(!of("seek.p99<1ms").is_met_by(1e6) && of("seek.p99<=1ms").is_met_by(1e6));
        assert!(!of("seek.iops>10").is_met_by(10.0) && of("seek.iops>=10").is_met_by(10.0));
        assert_eq!(of("seek.p99<1ms").excess(3e6), 3.0);
        assert_eq!(of("seek.iops>=10").excess(5.0), 2.0);
    }

    proptest! {
        #[test]
        fn every_requirement_reads_back(
            metric in prop::sample::select(Metric::ALL.to_vec()),
            side in prop::sample::select(ThresholdSide::ALL.to_vec()),
            threshold in 1_u64..1 << 40,
        ) {
            let figure = Figure::of("page-read", metric);
            let requirement = Requirement { figure, side, threshold: threshold as f64 };
            prop_assert_eq!(requirement.to_string().parse(), Ok(requirement));
        }

        #[test]
        fn parsing_any_text_does_not_panic(text in ".{0,40}") {
            let _ = text.parse::<Requirement>();
            let _ = text.parse::<Objective>();
        }
    }
}
