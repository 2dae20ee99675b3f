//! One line of a comparison: the rates of one kind of request in two runs.

use serde::Serialize;
use study::compare::{RatioInterval, ratio};
use study::interval::MIN_SLICES;

use crate::runs::side::{SideFlow, SidePhase};
use ui::format::{latency, number};
use ui::relative;

/// Comparison of one kind of request of one phase that both runs have.
pub(super) struct ComparedRow {
    pub(super) phase: String,
    /// The phase's name in B, if it differs.
    other: Option<String>,
    pub(super) what: &'static str,
    /// Unit of the means.
    unit: Unit,
    /// The mean rates of A and B.
    means: (f64, f64),
    /// Rate of B divided by that of A. `None` where there is no interval.
    pub(super) ratio: Option<RatioInterval>,
    /// True if both runs have windows, and enough of them for an interval.
    windows: bool,
    /// The 99th percentile of the latency of A and B, in nanoseconds.
    p99: (Option<u64>, Option<u64>),
    /// True if B is slower than the limit allows, beyond doubt.
    pub(super) is_slower: bool,
}

/// Unit of the comparison: requests where both runs count them, and else bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Requests,
    Bytes,
}

impl ComparedRow {
    pub(super) fn of_phases(a: &SidePhase, b: &SidePhase) -> Vec<ComparedRow> {
        let both = a.flows.iter().filter_map(|of_a| {
            let of_b = b.flows.iter().find(|flow| flow.activity == of_a.activity)?;
            let mut row = ComparedRow::of_flows(of_a, of_b)?;
            row.phase.clone_from(&a.name);
            row.other = (a.name != b.name).then(|| b.name.clone());
            Some(row)
        });
        both.collect()
    }

    /// The comparison of two flows; `None` if there is no figure that both tools give.
    fn of_flows(a: &SideFlow, b: &SideFlow) -> Option<ComparedRow> {
        let requests = a.iops.zip(b.iops).map(|means| (Unit::Requests, means));
        let bytes = a.bytes_per_s.zip(b.bytes_per_s);
        let (unit, means) = requests.or(bytes.map(|means| (Unit::Bytes, means)))?;
        let ratio = ratio(&b.rates, &a.rates);
        Some(ComparedRow {
            phase: String::new(),
            other: None,
            what: a.activity.name(),
            unit,
            means,
            ratio,
            windows: a.rates.len().min(b.rates.len()) >= MIN_SLICES,
            p99: (a.p99, b.p99),
            is_slower: false,
        })
    }

    /// The phase's name, followed by its name in B if that differs.
    pub(super) fn phases(&self) -> String {
        match &self.other {
            Some(other) => format!("{} ({other})", self.phase),
            None => self.phase.clone(),
        }
    }

    pub(super) fn name(&self) -> String {
        format!("{} {}", self.phases(), self.what)
    }

    /// Reason why there is no interval, as a clause.
    pub(super) fn without_interval(&self) -> Option<&'static str> {
        match (self.ratio, self.windows) {
            (Some(_), _) => None,
            (None, true) => Some("the rates vary too much for an interval"),
            (None, false) => {
                Some("there is no interval, since one of the runs has no windows or too few")
            }
        }
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let (a, b) = self.means;
        let (ratio, interval) = match self.ratio {
            Some(ratio) => (
                format!("{:.3}", ratio.ratio),
                format!("{:.3} to {:.3}", ratio.low, ratio.high),
            ),
            None if a > 0.0 => (format!("{:.3}", b / a), "?".to_owned()),
            None => ("–".to_owned(), "?".to_owned()),
        };
        let mean = |mean: f64| match self.unit {
            Unit::Requests => number(mean),
            Unit::Bytes => format!("{} MiB/s", number(mean / (1_u64 << 20) as f64)),
        };
        let p99 = |p99: Option<u64>| p99.map_or("–".to_owned(), latency);
        let p99s = match self.p99 {
            (None, None) => String::new(),
            (a, b) => format!("{} → {}", p99(a), p99(b)),
        };
        let phase = match &self.other {
            Some(other) => format!("{} / {other}", self.phase),
            None => self.phase.clone(),
        };
        vec![
            phase,
            self.what.to_owned(),
            mean(a),
            mean(b),
            ratio,
            interval,
            p99s,
        ]
    }

    pub(super) fn sentence(&self) -> String {
        let name = self.name();
        match self.ratio {
            None => format!(
                "{name}: {}; the difference is unknown.",
                self.without_interval().unwrap_or_default()
            ),
            Some(ratio) if !ratio.shows_difference() => format!("{name}: no difference shown."),
            Some(ratio) => {
                let word = if ratio.ratio > 1.0 {
                    "faster"
                } else {
                    "slower"
                };
                format!(
                    "{name}: B is {word} by {}.",
                    relative::by(ratio.ratio, ratio.low, ratio.high)
                )
            }
        }
    }

    pub(super) fn document(&self) -> RowDocument<'_> {
        let (counts, moves) = (self.unit == Unit::Requests, self.unit == Unit::Bytes);
        let side = |mean: f64, p99_ns| SideDocument {
            iops: counts.then_some(mean),
            bytes_per_s: moves.then_some(mean),
            p99_ns,
        };
        RowDocument {
            name: &self.phase,
            name_in_b: self.other.as_ref().unwrap_or(&self.phase),
            direction: self.what,
            a: side(self.means.0, self.p99.0),
            b: side(self.means.1, self.p99.1),
            ratio: self.ratio.map(|ratio| RatioDocument {
                mean: ratio.ratio,
                low: ratio.low,
                high: ratio.high,
            }),
            difference_shown: self.ratio.map(|ratio| ratio.shows_difference()),
            slower: self.is_slower,
        }
    }
}

/// Comparison of one kind of request of one phase that both runs have.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RowDocument<'a> {
    /// Name of the phase in A.
    name: &'a str,
    /// Name of the phase in B.
    name_in_b: &'a str,
    /// Kind of request, such as `read`.
    direction: &'static str,
    /// Figures of A.
    a: SideDocument,
    /// Figures of B.
    b: SideDocument,
    /// Rate of B divided by that of A; null where there is no interval.
    ratio: Option<RatioDocument>,
    /// True if the interval of the ratio leaves out 1; null where there is no interval.
    difference_shown: Option<bool>,
    /// True if B is slower than `--fail-if-slower` allows, beyond doubt.
    slower: bool,
}

/// Figures of one run. The rate is in requests where both runs count them, and else in bytes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SideDocument {
    /// Mean rate in requests a second; null where the runs are compared by bytes.
    iops: Option<f64>,
    /// Mean rate in bytes a second; null where the runs are compared by requests.
    bytes_per_s: Option<f64>,
    /// 99th percentile of the latency, in nanoseconds; null where it is not known.
    p99_ns: Option<u64>,
}

/// A ratio with the bounds of its 95 % interval.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RatioDocument {
    /// Ratio.
    mean: f64,
    /// Lower bound of the interval.
    low: f64,
    /// Upper bound of the interval.
    high: f64,
}
