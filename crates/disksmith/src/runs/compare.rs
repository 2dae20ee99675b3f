//! Two runs beside each other: the ratio of their rates with its interval.

use record::{Direction, Phase, Run, RunId};
use serde_json::{Value, json};
use study::compare::{RatioInterval, ratio};
use study::interval::LEAST_SLICES;
use study::steady::warmup_end;

use crate::failure::Answer;
use crate::render::json::SCHEMA;
use crate::render::table::{Column, layout, wrap};
use crate::render::words::{latency, number, percent};

/// One direction of one phase that both runs have.
struct Row {
    phase: String,
    direction: Direction,
    /// The mean IOPS of A and B.
    iops: (f64, f64),
    /// B over A. `None` where no interval can be had.
    ratio: Option<RatioInterval>,
    /// Whether both have windows enough to take an interval from.
    windows: bool,
    /// The 99th percentile of the latency of A and B, in nanoseconds.
    p99: (u64, u64),
    /// Whether B is slower than the bar allows, beyond doubt.
    fails: bool,
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
    pub(super) fn of(a: &Run, b: &Run, bar: Option<f64>) -> Comparison {
        let mut rows = Vec::new();
        let mut remarks = Vec::new();
        for of_a in &a.phases {
            let Some(of_b) = b.phases.iter().find(|phase| phase.name == of_a.name) else {
                remarks.push(format!("{} has no phase {}.", b.id, of_a.name));
                continue;
            };
            if unlike(of_a, of_b) {
                remarks.push(format!(
                    "{}: the two runs did not do the same work: {} against {}.",
                    of_a.name,
                    crate::render::words::workload(&of_a.workload),
                    crate::render::words::workload(&of_b.workload),
                ));
            }
            rows.extend(Row::of_phases(of_a, of_b, bar));
        }
        for phase in &b.phases {
            if !a.phases.iter().any(|other| other.name == phase.name) {
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
            let answer = if failed.is_empty() {
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
            "slower": self.bar.map(|_| self.answer() == Answer::No),
        });
        format!("{document:#}\n")
    }
}

/// Whether two phases of one name did different work.
fn unlike(a: &Phase, b: &Phase) -> bool {
    let key = |phase: &Phase| {
        let w = &phase.workload;
        let shares = (w.read_fraction, w.rate_per_s);
        (w.pattern, w.block, w.threads, w.depth, w.sync_every, shares)
    };
    key(a) != key(b)
}

impl Row {
    fn of_phases(a: &Phase, b: &Phase, bar: Option<f64>) -> Vec<Row> {
        let warm = |phase: &Phase| warmup_end(&phase.slice_ops());
        let (warm_a, warm_b) = (warm(a), warm(b));
        a.directions()
            .filter_map(|(direction, flow_a)| {
                let flow_b = b.flow(direction)?;
                let settled = |phase: &Phase, warm: usize| {
                    let mut rates = phase.slice_rates(direction);
                    rates.drain(..warm.min(rates.len()));
                    rates
                };
                let (rates_a, rates_b) = (settled(a, warm_a), settled(b, warm_b));
                let ratio = ratio(&rates_b, &rates_a);
                Some(Row {
                    phase: a.name.clone(),
                    direction,
                    iops: (flow_a.ops as f64 / a.seconds, flow_b.ops as f64 / b.seconds),
                    ratio,
                    windows: rates_a.len().min(rates_b.len()) >= LEAST_SLICES,
                    p99: (flow_a.latency.quantile(0.99), flow_b.latency.quantile(0.99)),
                    fails: bar
                        .zip(ratio)
                        .is_some_and(|(bar, ratio)| ratio.high < 1.0 - bar),
                })
            })
            .collect()
    }

    fn name(&self) -> String {
        format!("{} {}", self.phase, self.direction.word())
    }

    fn cells(&self) -> Vec<String> {
        let (a, b) = self.iops;
        let (ratio, interval) = match self.ratio {
            Some(ratio) => (
                format!("{:.3}", ratio.ratio),
                format!("{:.3} to {:.3}", ratio.low, ratio.high),
            ),
            None => (format!("{:.3}", b / a), "?".to_owned()),
        };
        vec![
            self.phase.clone(),
            self.direction.word().to_owned(),
            number(a),
            number(b),
            ratio,
            interval,
            format!("{} → {}", latency(self.p99.0), latency(self.p99.1)),
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
        json!({
            "name": self.phase,
            "direction": self.direction,
            "a": { "iops": self.iops.0, "p99_ns": self.p99.0 },
            "b": { "iops": self.iops.1, "p99_ns": self.p99.1 },
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
mod tests {
    use super::*;
    use crate::render::sample;

    #[test]
    fn a_run_does_not_differ_from_itself() {
        let (run, _) = sample::database_run(1);
        let comparison = Comparison::of(&run, &run, Some(0.05));
        assert_eq!(comparison.answer(), Answer::Done);
        let text = comparison.text(100);
        assert!(
            text.contains("page-read read: no difference shown."),
            "{text}"
        );
        assert!(!text.contains("B is"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100));
    }

    #[test]
    fn a_run_at_half_the_rate_fails_the_bar() {
        let (a, _) = sample::database_run(1);
        let mut b = a.clone();
        for phase in &mut b.phases {
            for window in &mut phase.windows {
                let flows = [&mut window.read, &mut window.write, &mut window.sync];
                for slice in flows
                    .into_iter()
                    .flatten()
                    .flat_map(|flow| &mut flow.slices)
                {
                    slice.ops /= 2;
                }
            }
        }
        let comparison = Comparison::of(&a, &b, Some(0.05));
        assert_eq!(comparison.answer(), Answer::No);
        assert!(
            comparison
                .text(100)
                .contains("page-read read: B is slower by 5")
        );
        // Without a bar it is an answer like any other.
        assert_eq!(Comparison::of(&a, &b, None).answer(), Answer::Done);
        assert_eq!(Comparison::of(&b, &a, Some(0.05)).answer(), Answer::Done);
        let document: Value = serde_json::from_str(&comparison.document()).unwrap();
        assert_eq!(document["slower"], true);
    }

    #[test]
    fn without_windows_nothing_is_claimed() {
        let (a, _) = sample::database_run(1);
        let (b, _) = sample::imported_run(2);
        let text = Comparison::of(&a, &b, Some(0.05)).text(100);
        assert!(text.contains("no interval"), "{text}");
    }

    #[test]
    fn different_work_is_said() {
        let (a, _) = sample::database_run(1);
        let mut b = a.clone();
        b.phases[1].workload.depth = 64;
        b.phases.remove(0);
        let text = Comparison::of(&a, &b, None).text(100);
        assert!(text.contains("did not do the same work"), "{text}");
        assert!(text.contains("has no phase seek"), "{text}");
    }
}
