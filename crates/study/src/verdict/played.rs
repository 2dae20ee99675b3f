//! Verdicts on recorded series: those of `bench/serve-play`, with known causes, and PetShop's issues of five points
//! each.

use super::*;

/// A table with named columns. Lines that begin with `#` are comments.
struct Table<'a> {
    head: Vec<&'a str>,
    rows: Vec<Vec<&'a str>>,
}

impl<'a> Table<'a> {
    fn new(text: &'a str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let mut rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        Self {
            head: rows.remove(0),
            rows,
        }
    }

    fn place(&self, name: &str) -> usize {
        self.head.iter().position(|other| *other == name).unwrap()
    }

    fn column(&self, name: &str) -> Vec<f64> {
        let place = self.place(name);
        let figures = self.rows.iter().map(|row| row[place].parse().unwrap());
        figures.collect()
    }

    fn service(&self) -> ServiceTimes {
        let bounds = self.head.iter().filter_map(|name| {
            let bound = name.strip_prefix("above_")?.strip_suffix("_ms")?;
            Some((bound.parse().unwrap(), self.column(name)))
        });
        ServiceTimes {
            requests: self.column("requests"),
            mean_ms: self.column("mean_ms"),
            p50_ms: self.column("p50_ms"),
            p95_ms: self.column("p95_ms"),
            p99_ms: self.column("p99_ms"),
            above: bounds.collect(),
        }
    }
}

/// A case of `bench/serve-play`: its file with the recorded seconds, and its true cause.
struct Case {
    name: &'static str,
    marked: bool,
    truth: Conclusion,
}

const CASES: [Case; 10] = [
    of("release-sleeps", true, Conclusion::Code),
    of("release-n-plus-1", true, Conclusion::Code),
    of("release-lost-index", true, Conclusion::Code),
    of("more-load", false, Conclusion::Load),
    of("capped-disk", false, Conclusion::System),
    of("stalled-disk", false, Conclusion::System),
    of("scrub", false, Conclusion::System),
    of("small-cache", false, Conclusion::System),
    of("release-and-capped-disk", true, Conclusion::Several),
    of("nothing", true, Conclusion::NothingChanged),
];

const fn of(name: &'static str, marked: bool, truth: Conclusion) -> Case {
    Case {
        name,
        marked,
        truth,
    }
}

fn text(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/verdict/played");
    std::fs::read_to_string(format!("{folder}/{name}.csv")).unwrap()
}

/// The verdict on a case, whose change is in its middle.
fn judged(case: &Case) -> CauseVerdict {
    let text = text(case.name);
    let table = Table::new(&text);
    let observed = Observations {
        slot_s: 1.0,
        service: table.service(),
        disks: vec![ObservedDisk {
            name: "loop".to_owned(),
            iops: table.column("iops"),
            await_ms: table.column("await_ms"),
            busy: table.column("busy"),
            findings: Vec::new(),
            layer: DiskLayer::default(),
        }],
        series: vec![NamedSeries {
            name: "cache reads".to_owned(),
            values: table.column("cache_reads"),
        }],
    };
    let count = table.rows.len();
    let moment = Moment {
        slot: count / 2,
        marked: case.marked,
    };
    judge(
        &observed,
        moment,
        &Windows::around(moment.slot, 40, count, 0, 0..count),
    )
}

#[test]
fn cases_that_were_played_are_judged_right() {
    let wrong: Vec<String> = CASES
        .iter()
        .map(|case| (case, judged(case)))
        .filter(|(case, verdict)| verdict.conclusion != case.truth)
        .map(|(case, verdict)| format!("{}: {verdict:#?}", case.name))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn petshops_issues_of_five_points_are_not_enough() {
    let text = text("petshop");
    let table = Table::new(&text);
    let all = table.service();
    for first in (0..table.rows.len()).step_by(5) {
        let part = |values: &[f64]| values[first..first + 5].to_vec();
        let observed = Observations {
            slot_s: 300.0,
            service: ServiceTimes {
                requests: part(&all.requests),
                mean_ms: part(&all.mean_ms),
                p50_ms: part(&all.p50_ms),
                p95_ms: part(&all.p95_ms),
                p99_ms: part(&all.p99_ms),
                above: Vec::new(),
            },
            ..Observations::default()
        };
        for (slot, marked) in (1..5).flat_map(|slot| [(slot, false), (slot, true)]) {
            let windows = Windows::around(slot, 40, 5, 288, 0..5);
            let verdict = judge(&observed, Moment { slot, marked }, &windows);
            let issue = table.rows[first][0];
            assert_eq!(verdict.conclusion, Conclusion::NotEnoughData, "{issue}");
        }
    }
}
