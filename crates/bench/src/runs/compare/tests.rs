//! Comparisons of two runs.

use serde_json::Value;

use super::*;
use crate::judged::ImportConclusion;
use crate::runs::work::Work;
use crate::views::{imported, sample};
use record::{
    Bytes, ImportedRun, Nanos, OneSidedRate, RandomDistribution, Run, SizeShare, SmallFiles,
    Stride, ThinkTime, WriteZones, ZoneShare,
};

const FIVE: SlowdownLimit = SlowdownLimit {
    share: 0.05,
    allows_inconclusive: false,
};

/// A text without its line breaks.
fn flat(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

fn side(of: &(Run, crate::conclusion::Conclusion)) -> Side {
    Side::measured(&of.0, &of.1)
}

fn other(run: &ImportedRun) -> Side {
    Side::imported(run, &ImportConclusion::of(run))
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let run = side(&sample::database_run(1));
    let comparison = Comparison::of(&run, &run, None);
    assert_eq!(comparison.answer(), CommandEnd::Done);
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
    let comparison = Comparison::of(&a, &b, Some(FIVE));
    assert_eq!(comparison.answer(), CommandEnd::No);
    assert!(
        comparison
            .text(100)
            .contains("page-read read: B is slower by 5")
    );
    // Without a limit the command ends with status 0.
    assert_eq!(Comparison::of(&a, &b, None).answer(), CommandEnd::Done);
    let document: Value = serde_json::from_str(&comparison.document()).unwrap();
    assert_eq!(document["slower"], true);
    assert_eq!(document["outcome"], "slower");
}

/// The gate's answer for `b` compared with the run `a`: exit status, document and text.
fn gated(a: &Side, b: &Side) -> (CommandEnd, Value, String) {
    let comparison = Comparison::of(a, b, Some(FIVE));
    let document: Value = serde_json::from_str(&comparison.document()).unwrap();
    let allowing = SlowdownLimit {
        allows_inconclusive: true,
        ..FIVE
    };
    let allowed = Comparison::of(a, b, Some(allowing)).answer();
    let is_slower = document["outcome"] == "slower";
    assert_eq!(allowed == CommandEnd::No, is_slower, "{document:#}");
    // Without a limit nothing is gated.
    assert_eq!(Comparison::of(a, b, None).answer(), CommandEnd::Done);
    (comparison.answer(), document, flat(&comparison.text(400)))
}

/// A run whose rates vary by chance alone, and little.
fn steady() -> Side {
    let mut side = side(&sample::database_run(1));
    for flow in side.phases.iter_mut().flat_map(|phase| &mut phase.flows) {
        flow.rates = (0..80_u32)
            .map(|slice| 1000.0 + f64::from(slice.wrapping_mul(2_654_435_761) >> 26))
            .collect();
    }
    side
}

#[test]
fn the_gate_passes_only_when_all_of_the_baseline_was_compared() {
    type Change = fn(&mut Side);
    let changes: [(&str, Change, &str); 9] = [
        ("nothing", |_| {}, ""),
        (
            "a phase is new",
            |b| {
                b.phases.push(SidePhase {
                    name: "new".to_owned(),
                    work: Work::default(),
                    described: String::new(),
                    flows: Vec::new(),
                })
            },
            "",
        ),
        (
            "no phases",
            |b| b.phases.clear(),
            "page-read: B has no such phase",
        ),
        (
            "all renamed",
            |b| {
                for (number, phase) in b.phases.iter_mut().enumerate() {
                    phase.name = format!("other-{number}");
                    phase.work = Work::default();
                }
            },
            "page-read: B has no such phase",
        ),
        (
            "one is missing",
            |b| drop(b.phases.remove(1)),
            "B has no such phase",
        ),
        (
            "one kind of request is missing",
            |b| drop(b.phases[3].flows.remove(0)),
            "B does not report how often it did so",
        ),
        (
            "no windows",
            |b| b.phases[1].flows[0].rates.clear(),
            "no windows or too few",
        ),
        (
            "rates that vary",
            |b| {
                let rates = &mut b.phases[1].flows[0].rates;
                let half = rates.len() / 2;
                rates[..half].iter_mut().for_each(|rate| *rate *= 3.0);
            },
            "page-read read: ",
        ),
        ("invalid", |b| b.verdict = Verdict::Invalid, "is invalid"),
    ];
    for (name, change, reason) in changes {
        let a = steady();
        let mut b = steady();
        change(&mut b);
        let (answer, document, text) = gated(&a, &b);
        let passes = reason.is_empty();
        assert_eq!(answer == CommandEnd::Done, passes, "{name}: {text}");
        assert_eq!(document["inconclusive"], !passes, "{name}: {document:#}");
        let slower = if passes {
            Value::Bool(false)
        } else {
            Value::Null
        };
        assert_eq!(document["slower"], slower, "{name}");
        let reasons = document["inconclusive_phases"].as_array().unwrap();
        assert_eq!(reasons.is_empty(), passes, "{name}: {document:#}");
        assert!(passes || text.contains("Inconclusive: "), "{name}: {text}");
        assert!(text.contains(reason), "{name}: {text}");
    }
}

#[test]
fn a_slower_phase_fails_whatever_is_inconclusive_beside_it() {
    let a = steady();
    let mut b = steady();
    b.phases.remove(0);
    b.phases[0].flows[0]
        .rates
        .iter_mut()
        .for_each(|rate| *rate *= 0.5);
    let (answer, document, text) = gated(&a, &b);
    assert_eq!(answer, CommandEnd::No);
    assert_eq!(document["outcome"], "slower");
    assert_eq!(
        (&document["slower"], &document["inconclusive"]),
        (&true.into(), &true.into())
    );
    assert!(
        text.contains("Slower by more than 5 %: page-read read."),
        "{text}"
    );
}

#[test]
fn nothing_compared_with_nothing_is_inconclusive() {
    let mut a = side(&sample::database_run(1));
    a.phases.clear();
    let (answer, document, _) = gated(&a, &a);
    assert_eq!(
        (answer, &document["inconclusive"]),
        (CommandEnd::No, &true.into())
    );
}

#[test]
fn without_windows_nothing_is_claimed() {
    let a = sample::database_run(1);
    let b = sample::imported_run(2);
    let text = Comparison::of(&side(&a), &side(&b), Some(FIVE)).text(100);
    assert!(text.contains("no interval"), "{text}");
}

#[test]
fn different_work_is_reported() {
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

/// The comparison of a run with one in which `change` was made to the second phase's workload.
fn compared(
    change: impl FnOnce(&mut record::Workload, &mut record::Target),
    a: impl FnOnce(&mut record::Workload),
) -> String {
    let mut one = sample::database_run(1);
    a(&mut one.0.phases[1].workload);
    let mut other = one.clone();
    change(&mut other.0.phases[1].workload, &mut other.0.target);
    flat(&Comparison::of(&side(&one), &side(&other), Some(FIVE)).text(400))
}

/// The pauses of a job; the job must have some.
fn thinking(details: &mut record::JobOptions) -> &mut ThinkTime {
    details.think.get_or_insert_default()
}

#[test]
fn work_that_differs_in_its_details_is_reported() {
    type Change = fn(&mut record::JobOptions);
    let changes: [(&str, Change); 18] = [
        ("directories", |details| {
            details.small_files = Some(SmallFiles {
                directories: 512,
                ..SmallFiles::default()
            });
        }),
        ("smallest", |details| {
            details.small_files = Some(SmallFiles {
                smallest: Bytes::kib(64),
                ..SmallFiles::default()
            });
        }),
        ("zipf", |details| {
            details.spread = RandomDistribution::Zipf(1.2)
        }),
        ("once", |details| details.spread = RandomDistribution::Once),
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
        ("pauses", |details| details.think = None),
        ("pauses after more", |details| thinking(details).every = 2),
        ("pauses by time", |details| {
            thinking(details).io_time = Nanos(1)
        }),
        ("pauses by those issued", |details| {
            thinking(details).counts_issued = true;
        }),
        ("pauses that stop the rate", |details| {
            thinking(details).stops_rate = true;
        }),
        ("one-sided rate", |details| {
            details.one_sided_rate = Some(OneSidedRate {
                writes: true,
                per_s: 50.0,
            });
        }),
        ("step", |details| details.stride = Some(Stride::Add(4096))),
        ("zones", |details| {
            details.write_zones = Some(WriteZones {
                range: Bytes::mib(1),
                size: Bytes::mib(1),
                open: None,
            });
        }),
        ("shares of zones", |details| {
            details.zones = vec![ZoneShare {
                access: 1.0,
                size: 0.5,
            }];
        }),
        ("sync", |details| details.full_sync = true),
    ];
    for (name, change) in changes {
        let text = compared(
            |workload, _| change(workload.details.get_or_insert_default()),
            |workload| {
                (workload.rate_per_s, workload.sync_every) = (Some(100.0), 1);
                let details = workload.details.get_or_insert_default();
                details.small_files = Some(SmallFiles::default());
                details.think = Some(ThinkTime {
                    time: Nanos(1_000_000),
                    every: 1,
                    ..ThinkTime::default()
                });
            },
        );
        assert!(text.contains("did not do the same work"), "{name}: {text}");
    }
    let same = compared(
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
    let text = compared(|_, target| target.direct = false, |_| {});
    assert!(text.contains("did not do the same work"), "{text}");
    assert!(text.contains("past the page cache"), "{text}");
    let mut fio = imported::sample::fio();
    fio.summary.phases[0].work.direct = Some(false);
    let text = flat(&Comparison::of(&side(&sample::database_run(1)), &other(&fio), None).text(400));
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
        let comparison = Comparison::of(a, b, Some(FIVE));
        assert_eq!(comparison.answer(), CommandEnd::No);
        let text = comparison.text(100);
        assert!(text.contains("no interval"), "{text}");
        assert!(text.contains("is unknown"), "{text}");
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
    // A phase with other work is not paired.
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
