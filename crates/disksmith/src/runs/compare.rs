//! Two runs beside each other: the ratio of their rates with its interval.

use record::{RunId, Verdict};
use serde_json::{Value, json};
use study::compare::{RatioInterval, ratio};
use study::interval::LEAST_SLICES;

use super::side::{Side, SideFlow, SidePhase};
use crate::failure::Answer;
use crate::render::json::SCHEMA;
use crate::render::table::{Column, layout, wrap};
use crate::render::words::{latency, number, percent};

/// One kind of request of one phase that both runs have.
struct Row {
    phase: String,
    /// The phase's name in B, where it has another one.
    other: Option<String>,
    what: &'static str,
    /// What the means count.
    unit: Unit,
    /// The mean rates of A and B.
    means: (f64, f64),
    /// B over A. `None` where no interval can be had.
    ratio: Option<RatioInterval>,
    /// Whether both have windows enough to take an interval from.
    windows: bool,
    /// The 99th percentile of the latency of A and B, in nanoseconds.
    p99: (Option<u64>, Option<u64>),
    /// Whether B is slower than the bar allows, beyond doubt.
    fails: bool,
}

/// What is compared: requests where both runs count them, and else bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Requests,
    Bytes,
}

/// Two runs beside each other.
pub(super) struct Comparison {
    a: RunId,
    b: RunId,
    rows: Vec<Row>,
    /// What only one of them has, or what makes them unlike.
    remarks: Vec<String>,
    bar: Option<f64>,
}

impl Comparison {
    /// Compares `b` with `a`. `bar` is the share by which B may be slower.
    pub(super) fn of(a: &Side, b: &Side, bar: Option<f64>) -> Comparison {
        let mut remarks: Vec<String> = [a, b]
            .into_iter()
            .filter(|side| side.verdict == Verdict::Invalid)
            .map(|side| {
                format!(
                    "{} is invalid: its figures do not say what they seem to say, and neither does \
                     this comparison (disksmith show {}).",
                    side.id, side.id
                )
            })
            .collect();
        let pairs = pairs(&a.phases, &b.phases);
        let mut rows = Vec::new();
        for (index, of_a) in a.phases.iter().enumerate() {
            let Some((_, other)) = pairs.iter().find(|(first, _)| *first == index) else {
                remarks.push(format!("{} has no phase {}.", b.id, of_a.name));
                continue;
            };
            let of_b = &b.phases[*other];
            if of_a.work.differs(&of_b.work) {
                remarks.push(format!(
                    "{}: the two runs did not do the same work. A: {}. B: {}.",
                    of_a.name, of_a.described, of_b.described,
                ));
            }
            rows.extend(Row::of_phases(of_a, of_b, bar));
        }
        for (index, phase) in b.phases.iter().enumerate() {
            if !pairs.iter().any(|(_, second)| *second == index) {
                remarks.push(format!("{} has no phase {}.", a.id, phase.name));
            }
        }
        Comparison {
            a: a.id.clone(),
            b: b.id.clone(),
            rows,
            remarks,
            bar,
        }
    }

    /// No, if any phase is slower than the bar allows.
    pub(super) fn answer(&self) -> Answer {
        if self.rows.iter().any(|row| row.fails) {
            Answer::No
        } else {
            Answer::Done
        }
    }

    /// Whether there are figures, and of none an interval: then nothing is decided.
    fn is_undecided(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.ratio.is_none())
    }

    pub(super) fn text(&self, columns: usize) -> String {
        const COLUMNS: [Column; 7] = [
            Column::words("phase"),
            Column::words(""),
            Column::numbers("A IOPS", 3),
            Column::numbers("B IOPS", 3),
            Column::numbers("B/A", 0),
            Column::numbers("95 %", 0),
            Column::numbers("p99 A → B", 2),
        ];
        let mut text = format!("A: {}\nB: {}\n\n", self.a, self.b);
        if self.rows.is_empty() {
            text.push_str("They have no phase in common.\n");
        } else {
            let rows: Vec<Vec<String>> = self.rows.iter().map(Row::cells).collect();
            text.push_str(&layout(&COLUMNS, &rows, columns));
            text.push('\n');
        }
        let sentences = self.rows.iter().map(Row::sentence);
        for sentence in sentences.chain(self.remarks.iter().cloned()) {
            text.push_str(&wrap(&sentence, columns, "  "));
            text.push('\n');
        }
        if let Some(bar) = self.bar {
            let failed: Vec<String> = self
                .rows
                .iter()
                .filter(|r| r.fails)
                .map(Row::name)
                .collect();
            let answer = if self.is_undecided() {
                format!(
                    "Whether anything is slower by more than {} cannot be said, for want of an \
                     interval.",
                    percent(bar)
                )
            } else if failed.is_empty() {
                format!(
                    "Nothing is slower by more than {} beyond doubt.",
                    percent(bar)
                )
            } else {
                format!(
                    "Slower by more than {}: {}.",
                    percent(bar),
                    failed.join(", ")
                )
            };
            text.push_str(&wrap(&answer, columns, "  "));
            text.push('\n');
        }
        text
    }

    pub(super) fn document(&self) -> String {
        let rows: Vec<Value> = self.rows.iter().map(Row::value).collect();
        let document = json!({
            "schema": SCHEMA,
            "command": "compare",
            "a": self.a,
            "b": self.b,
            "phases": rows,
            "remarks": self.remarks,
            "fail_if_slower": self.bar,
            "slower": self
                .bar
                .filter(|_| !self.is_undecided())
                .map(|_| self.answer() == Answer::No),
        });
        format!("{document:#}\n")
    }
}

/// The phases that belong together, by their places: those of one name, the second of a name with
/// the second, and then those of other names that do the same work, since every tool has its own.
fn pairs(a: &[SidePhase], b: &[SidePhase]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let same: fn(&SidePhase, &SidePhase) -> bool = |a, b| a.name == b.name;
    let like: fn(&SidePhase, &SidePhase) -> bool = |a, b| a.work.is_like(&b.work);
    let named = |phase: &SidePhase, among: &[SidePhase]| among.iter().any(|p| p.name == phase.name);
    for (belong, whatever_name) in [(same, true), (like, false)] {
        for (first, of_a) in a.iter().enumerate() {
            let taken = |index: usize| pairs.iter().any(|(_, second)| *second == index);
            let free = |index: &usize| {
                // A phase whose own name the other run knows goes with that or with none.
                !taken(*index) && (whatever_name || !named(&b[*index], a) && !named(of_a, b))
            };
            let found = (0..b.len())
                .filter(free)
                .find(|index| belong(of_a, &b[*index]));
            if let Some(second) = found.filter(|_| !pairs.iter().any(|(one, _)| *one == first)) {
                pairs.push((first, second));
            }
        }
    }
    pairs
}

impl Row {
    fn of_phases(a: &SidePhase, b: &SidePhase, bar: Option<f64>) -> Vec<Row> {
        let both = a.flows.iter().filter_map(|of_a| {
            let of_b = b.flows.iter().find(|flow| flow.activity == of_a.activity)?;
            let mut row = Row::of_flows(of_a, of_b, bar)?;
            row.phase.clone_from(&a.name);
            row.other = (a.name != b.name).then(|| b.name.clone());
            Some(row)
        });
        both.collect()
    }

    /// `None` where nothing that both tools count can be compared.
    fn of_flows(a: &SideFlow, b: &SideFlow, bar: Option<f64>) -> Option<Row> {
        let requests = a.iops.zip(b.iops).map(|means| (Unit::Requests, means));
        let bytes = a.bytes_per_s.zip(b.bytes_per_s);
        let (unit, means) = requests.or(bytes.map(|means| (Unit::Bytes, means)))?;
        let ratio = ratio(&b.rates, &a.rates);
        Some(Row {
            phase: String::new(),
            other: None,
            what: a.activity.word(),
            unit,
            means,
            ratio,
            windows: a.rates.len().min(b.rates.len()) >= LEAST_SLICES,
            p99: (a.p99, b.p99),
            fails: bar
                .zip(ratio)
                .is_some_and(|(bar, ratio)| ratio.high < 1.0 - bar),
        })
    }

    fn name(&self) -> String {
        match &self.other {
            Some(other) => format!("{} ({other}) {}", self.phase, self.what),
            None => format!("{} {}", self.phase, self.what),
        }
    }

    fn cells(&self) -> Vec<String> {
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

    fn sentence(&self) -> String {
        let name = self.name();
        match self.ratio {
            None if self.windows => format!(
                "{name}: the rates vary too much for an interval; nothing can be said of the \
                 difference."
            ),
            None => format!(
                "{name}: no interval, since one of the runs has no windows or too few; nothing \
                 can be said of the difference."
            ),
            Some(ratio) if !ratio.shows_difference() => format!("{name}: no difference shown."),
            Some(ratio) => {
                let word = if ratio.ratio > 1.0 {
                    "faster"
                } else {
                    "slower"
                };
                let by = |value: f64| percent((value - 1.0).abs());
                let (least, most) = if ratio.ratio > 1.0 {
                    (ratio.low, ratio.high)
                } else {
                    (ratio.high, ratio.low)
                };
                format!(
                    "{name}: B is {word} by {} ({} to {}).",
                    by(ratio.ratio),
                    by(least),
                    by(most)
                )
            }
        }
    }

    fn value(&self) -> Value {
        let (counts, moves) = (self.unit == Unit::Requests, self.unit == Unit::Bytes);
        let side = |mean: f64, p99: Option<u64>| {
            json!({
                "iops": counts.then_some(mean),
                "bytes_per_s": moves.then_some(mean),
                "p99_ns": p99,
            })
        };
        json!({
            "name": self.phase,
            "name_in_b": self.other.as_ref().unwrap_or(&self.phase),
            "direction": self.what,
            "a": side(self.means.0, self.p99.0),
            "b": side(self.means.1, self.p99.1),
            "ratio": self.ratio.map(|ratio| json!({
                "mean": ratio.ratio,
                "low": ratio.low,
                "high": ratio.high,
            })),
            "difference_shown": self.ratio.map(|ratio| ratio.shows_difference()),
            "slower": self.fails,
        })
    }
}

#[cfg(test)]
mod tests;
