//! Two runs beside each other: the ratio of their rates with its interval.

use record::{Direction, Phase, RunId, Verdict};
use serde_json::{Value, json};
use study::compare::{RatioInterval, ratio};
use study::interval::LEAST_SLICES;

use super::Concluded;
use crate::bench::conclusion::PhaseFigures;
use crate::failure::Answer;
use crate::render::json::SCHEMA;
use crate::render::table::{Column, layout, wrap};
use crate::render::words::{engine, latency, number, percent, workload};

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
    pub(super) fn of(a: &Concluded, b: &Concluded, bar: Option<f64>) -> Comparison {
        let ((a, of_a), (b, of_b)) = (a, b);
        let mut rows = Vec::new();
        let mut remarks: Vec<String> = [(a, of_a), (b, of_b)]
            .into_iter()
            .filter(|(_, conclusion)| conclusion.verdict == Verdict::Invalid)
            .map(|(run, _)| {
                format!(
                    "{} is invalid: its figures do not say what they seem to say, and neither does \
                     this comparison (disksmith show {}).",
                    run.id, run.id
                )
            })
            .collect();
        let figures_of_b = |name: &str| {
            let phases = b.phases.iter().zip(&of_b.phases);
            phases.into_iter().find(|(phase, _)| phase.name == name)
        };
        for (of_a, figures_a) in a.phases.iter().zip(&of_a.phases) {
            let Some((of_b, figures_b)) = figures_of_b(&of_a.name) else {
                remarks.push(format!("{} has no phase {}.", b.id, of_a.name));
                continue;
            };
            if unlike(of_a, of_b) {
                remarks.push(format!(
                    "{}: the two runs did not do the same work. A: {} ({}). B: {} ({}).",
                    of_a.name,
                    workload(&of_a.workload).trim_end_matches('.'),
                    engine(of_a.engine.kind),
                    workload(&of_b.workload).trim_end_matches('.'),
                    engine(of_b.engine.kind),
                ));
            }
            rows.extend(Row::of_phases((of_a, figures_a), (of_b, figures_b), bar));
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
        let amount = (w.block, w.threads, w.depth, w.rate_per_s, w.span);
        let syncs = (w.sync_every, w.sync_at_end);
        (w.pattern, w.read_fraction, amount, syncs, phase.engine.kind)
    };
    key(a) != key(b)
}

/// A phase and what was concluded of it.
type Figured<'a> = (&'a Phase, &'a PhaseFigures);

/// The rates of one direction, without the warm-up.
fn settled((phase, figures): Figured<'_>, direction: Direction) -> Vec<f64> {
    let mut rates = phase.slice_rates(direction);
    rates.drain(..figures.warmup_slices.min(rates.len()));
    rates
}

impl Row {
    fn of_phases(a: Figured<'_>, b: Figured<'_>, bar: Option<f64>) -> Vec<Row> {
        a.0.directions()
            // One sync at the end has no rate.
            .filter(|(direction, _)| *direction != Direction::Sync || a.0.workload.sync_every > 0)
            .filter_map(|(direction, flow_a)| {
                let flow_b = b.0.flow(direction)?;
                let (rates_a, rates_b) = (settled(a, direction), settled(b, direction));
                let ratio = ratio(&rates_b, &rates_a);
                let mean = |of: Figured<'_>| of.1.flow(direction).map(|flow| flow.iops.mean);
                Some(Row {
                    phase: a.0.name.clone(),
                    direction,
                    iops: (mean(a)?, mean(b)?),
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
        let run = sample::database_run(1);
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
        let a = sample::database_run(1);
        let mut b = a.clone();
        for phase in &mut b.0.phases {
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
        let a = sample::database_run(1);
        let b = sample::imported_run(2);
        let text = Comparison::of(&a, &b, Some(0.05)).text(100);
        assert!(text.contains("no interval"), "{text}");
    }

    #[test]
    fn different_work_is_said() {
        let a = sample::database_run(1);
        let mut b = a.clone();
        b.0.phases[1].workload.depth = 64;
        b.0.phases.remove(0);
        b.1.phases.remove(0);
        b.1.verdict = Verdict::Invalid;
        let text = Comparison::of(&a, &b, None).text(100);
        assert!(text.contains("did not do the same work"), "{text}");
        assert!(text.contains("has no phase seek"), "{text}");
        assert!(text.contains("is invalid"), "{text}");
    }
}
