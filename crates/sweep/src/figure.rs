//! A figure of a phase by its name, such as `page-mixed.iops` or `page-mixed.read.p99`.

use std::fmt;
use std::str::FromStr;

use record::Direction;
use serde::{Deserialize, Serialize};

/// A metric of a phase: a rate or a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// Requests a second.
    Iops,
    /// Bytes a second.
    Bytes,
    /// The mean latency in nanoseconds.
    Mean,
    /// The median latency in nanoseconds.
    P50,
    /// 90th percentile of latency in nanoseconds.
    P90,
    /// 95th percentile of latency in nanoseconds.
    P95,
    /// 99th percentile of latency in nanoseconds.
    P99,
    /// 99.9th percentile of latency in nanoseconds.
    P99_9,
}

impl Metric {
    /// All metrics.
    pub(crate) const ALL: [Metric; 8] = [
        Metric::Iops,
        Metric::Bytes,
        Metric::Mean,
        Metric::P50,
        Metric::P90,
        Metric::P95,
        Metric::P99,
        Metric::P99_9,
    ];

    /// Name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Metric::Iops => "iops",
            Metric::Bytes => "bytes",
            Metric::Mean => "mean",
            Metric::P50 => "p50",
            Metric::P90 => "p90",
            Metric::P95 => "p95",
            Metric::P99 => "p99",
            Metric::P99_9 => "p99.9",
        }
    }

    /// True if the metric is a latency, for which lower is better; for rates higher is better.
    pub fn is_latency(self) -> bool {
        !matches!(self, Metric::Iops | Metric::Bytes)
    }
}

/// A figure of a phase, `PHASE[.DIRECTION].METRIC`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Figure {
    /// The phase.
    pub phase: String,
    /// The direction; `None` for reads and writes together, or for the commits if there are any.
    pub direction: Option<Direction>,
    /// Metric of the figure.
    pub metric: Metric,
}

impl Figure {
    /// A figure over both directions.
    pub fn of(phase: &str, metric: Metric) -> Figure {
        Figure {
            phase: phase.to_owned(),
            direction: None,
            metric,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = self
            .direction
            .map_or_else(String::new, |direction| format!(".{}", direction.name()));
        write!(f, "{}{direction}.{}", self.phase, self.metric.name())
    }
}

impl From<Figure> for String {
    fn from(figure: Figure) -> String {
        figure.to_string()
    }
}

impl TryFrom<String> for Figure {
    type Error = String;

    fn try_from(text: String) -> Result<Figure, String> {
        text.parse()
    }
}

impl FromStr for Figure {
    type Err = String;

    fn from_str(text: &str) -> Result<Figure, String> {
        let bad = || {
            let names: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
            format!(
                "'{text}' is not a figure; write PHASE.METRIC or PHASE.DIRECTION.METRIC, as in \
                 page-mixed.iops or page-mixed.read.p99; the metrics are {}",
                names.join(", ")
            )
        };
        // The longest first, since "p99.9" contains a dot.
        let mut metrics = Metric::ALL;
        metrics.sort_by_key(|metric| std::cmp::Reverse(metric.name().len()));
        let (rest, metric) = metrics
            .into_iter()
            .find_map(|metric| {
                let rest = text.strip_suffix(metric.name())?.strip_suffix('.')?;
                Some((rest, metric))
            })
            .ok_or_else(bad)?;
        let (phase, direction) = match rest.split_once('.') {
            None => (rest, None),
            Some((phase, word)) => {
                let direction = Direction::ALL
                    .into_iter()
                    .find(|direction| direction.name() == word)
                    .ok_or_else(bad)?;
                (phase, Some(direction))
            }
        };
        if phase.is_empty() {
            return Err(bad());
        }
        Ok(Figure {
            phase: phase.to_owned(),
            direction,
            metric,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_reads_back_as_it_is_shown() {
        for text in [
            "page-mixed.iops",
            "page-mixed.read.p99",
            "log-append.commit.p99.9",
            "seek.p99.9",
            "scan.bytes",
        ] {
            let figure: Figure = text.parse().unwrap();
            assert_eq!(figure.to_string(), text);
        }
        let figure: Figure = "page-mixed.read.p99.9".parse().unwrap();
        assert_eq!(figure.direction, Some(Direction::Read));
        assert_eq!(figure.metric, Metric::P99_9);
    }

    #[test]
    fn an_invalid_figure_is_an_error_with_the_valid_form() {
        for text in ["", "iops", ".iops", "page.speed", "page.up.p99", "page."] {
            let error = text.parse::<Figure>().unwrap_err();
            assert!(error.contains("PHASE.METRIC"), "{text}: {error}");
        }
    }
}
