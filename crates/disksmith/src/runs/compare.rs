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
mod tests {
    use super::*;
    use crate::imported::Judged;
    use crate::render::{imported, sample};
    use record::{Bytes, ImportedRun, Run, SizeShare, Spread};

    fn side(of: &(Run, crate::bench::conclusion::Conclusion)) -> Side {
        Side::measured(&of.0, &of.1)
    }

    fn other(run: &ImportedRun) -> Side {
        Side::imported(run, &Judged::of(run))
    }

    #[test]
    fn a_run_does_not_differ_from_itself() {
        let run = side(&sample::database_run(1));
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
        let (a, b) = (side(&a), side(&b));
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
        let text = Comparison::of(&side(&a), &side(&b), Some(0.05)).text(100);
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
        let text = Comparison::of(&side(&a), &side(&b), None).text(100);
        assert!(text.contains("did not do the same work"), "{text}");
        assert!(text.contains("has no phase seek"), "{text}");
        assert!(text.contains("is invalid"), "{text}");
    }

    /// A run beside another in which `change` was made to the second phase's workload.
    fn beside(
        change: impl FnOnce(&mut record::Workload, &mut record::Target),
        a: impl FnOnce(&mut record::Workload),
    ) -> String {
        let mut one = sample::database_run(1);
        a(&mut one.0.phases[1].workload);
        let mut other = one.clone();
        change(&mut other.0.phases[1].workload, &mut other.0.target);
        Comparison::of(&side(&one), &side(&other), Some(0.05)).text(400)
    }

    #[test]
    fn work_that_differs_in_its_details_is_said() {
        let changes: [(&str, fn(&mut record::Details)); 7] = [
            ("zipf", |details| details.spread = Spread::Zipf(1.2)),
            ("once", |details| details.spread = Spread::Once),
            ("offset", |details| details.offset = Bytes::mib(1)),
            ("files", |details| details.files = 4),
            ("sizes", |details| {
                details.read_sizes = [(4, 0.1), (16, 0.9)]
                    .map(|(kib, share)| SizeShare {
                        size: Bytes::kib(kib),
                        share,
                    })
                    .to_vec();
            }),
            ("cadence", |details| details.even_rate = true),
            ("sync", |details| details.full_sync = true),
        ];
        for (name, change) in changes {
            let text = beside(
                |workload, _| change(workload.details.get_or_insert_default()),
                |workload| (workload.rate_per_s, workload.sync_every) = (Some(100.0), 1),
            );
            assert!(text.contains("did not do the same work"), "{name}: {text}");
        }
        let same = beside(
            |workload, _| {
                let details = workload.details.get_or_insert_default();
                (details.even_rate, details.full_sync, details.files) = (true, true, 1);
            },
            |workload| (workload.rate_per_s, workload.sync_every) = (None, 0),
        );
        assert!(!same.contains("did not do"), "without rate or sync: {same}");
    }

    #[test]
    fn the_page_cache_is_another_work() {
        let text = beside(|_, target| target.direct = false, |_| {});
        assert!(text.contains("did not do the same work"), "{text}");
        assert!(text.contains("past the page cache"), "{text}");
        let mut fio = imported::sample::fio();
        fio.summary.phases[0].work.direct = Some(false);
        let text = Comparison::of(&side(&sample::database_run(1)), &other(&fio), None).text(400);
        assert!(text.contains("did not do the same work"), "{text}");
        assert!(text.contains("through the page cache"), "{text}");
        assert!(text.contains("is invalid"), "{text}");
    }

    #[test]
    fn another_tools_phase_of_the_same_work_is_compared_and_nothing_decided() {
        let mut fio = imported::sample::fio();
        fio.summary.phases[0].name = "randread-16k".to_owned();
        let a = side(&sample::database_run(1));
        let b = other(&fio);
        for (a, b) in [(&a, &b), (&b, &a)] {
            let comparison = Comparison::of(a, b, Some(0.05));
            assert_eq!(comparison.answer(), Answer::Done);
            let text = comparison.text(100);
            assert!(text.contains("no interval"), "{text}");
            assert!(text.contains("cannot be said"), "{text}");
            assert!(
                text.lines().all(|line| line.chars().count() <= 100),
                "{text}"
            );
            let document: Value = serde_json::from_str(&comparison.document()).unwrap();
            assert!(document["slower"].is_null() && document["phases"][0]["ratio"].is_null());
            assert!(document["phases"][0]["difference_shown"].is_null());
        }
        let text = Comparison::of(&a, &b, None).text(100);
        assert!(text.contains("page-read / randread-16k"), "{text}");
        assert!(text.contains("400"), "{text}");
        // Other work is no pair.
        fio.summary.phases[0].work.depth = Some(1);
        let text = Comparison::of(&a, &other(&fio), None).text(100);
        assert!(text.contains("no phase in common"), "{text}");
    }

    #[test]
    fn what_counts_bytes_only_is_compared_by_bytes() {
        let bonnie = imported::sample::bonnie();
        let comparison = Comparison::of(&other(&bonnie), &other(&bonnie), None);
        let text = comparison.text(100);
        assert!(text.contains("59.6 MiB/s"), "{text}");
        let document: Value = serde_json::from_str(&comparison.document()).unwrap();
        let rows = document["phases"].as_array().unwrap();
        assert_eq!(rows.len(), 1, "what was too fast has no figure to compare");
        assert!(rows[0]["a"]["iops"].is_null() && rows[0]["a"]["p99_ns"].is_null());
        assert_eq!(rows[0]["a"]["bytes_per_s"], 61022.0 * 1024.0);
    }
}
