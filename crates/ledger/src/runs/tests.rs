use super::*;
use crate::testing::{Scratch, arbitrary, database_run, finding, imported_run, small_run};
use proptest::prelude::*;
use record::Verdict::{Doubtful, Invalid, Trusted};

fn empty() -> (Scratch, Ledger) {
    let scratch = Scratch::new();
    let ledger = Ledger::open(scratch.ledger()).unwrap();
    (scratch, ledger)
}

fn ids(ledger: &Ledger, filter: &Filter) -> Vec<String> {
    let runs = ledger.list(filter).unwrap();
    runs.iter().map(|run| run.id.to_string()).collect()
}

#[test]
fn a_run_is_kept_over_a_reopening_with_what_was_concluded() {
    let (scratch, mut ledger) = empty();
    let run = database_run(3, 0.01);
    ledger.save(&run, Doubtful, &[finding()]).unwrap();
    drop(ledger);
    let ledger = Ledger::open(scratch.ledger()).unwrap();
    assert_eq!(ledger.load(run.id.as_str()).unwrap(), run);
    let conclusion = ledger.conclusion("last").unwrap();
    assert_eq!(conclusion.verdict, Doubtful);
    assert_eq!(conclusion.findings, [finding()]);
    assert_eq!(conclusion.disksmith, env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_list_shows_what_the_run_says() {
    let (_scratch, mut ledger) = empty();
    let mut run = database_run(3, 0.001);
    run.interrupted = true;
    run.origin = Origin::Imported {
        tool: "fio 3.33".into(),
    };
    ledger.save(&run, Invalid, &[]).unwrap();
    let expected = RunSummary {
        id: run.id.clone(),
        started: run.started,
        host: "db-1".into(),
        target: "/data".into(),
        device: Some("nvme1n1".into()),
        suite: "database".into(),
        phases: [
            "seek",
            "page-read",
            "page-write",
            "page-mixed",
            "log-append",
            "scan",
            "load",
        ]
        .map(String::from)
        .to_vec(),
        verdict: Invalid,
        origin: run.origin,
        interrupted: true,
    };
    assert_eq!(ledger.list(&Filter::default()).unwrap(), [expected]);
}

#[test]
fn a_list_is_newest_first_and_the_filter_narrows_it() {
    let (_scratch, mut ledger) = empty();
    let mut runs: Vec<Run> = (0..6).map(small_run).collect();
    runs[1].machine.hostname = "db-2".into();
    runs[2].suite = "seek".into();
    runs[3].target.path = "/var".into();
    runs[4].target.device = None;
    for place in [3, 0, 5, 1, 4, 2] {
        let verdict = if place == 5 { Invalid } else { Trusted };
        ledger.save(&runs[place], verdict, &[]).unwrap();
    }
    let all = Filter::default;
    for (filter, expected) in [
        (all(), vec![5, 4, 3, 2, 1, 0]),
        (
            Filter {
                limit: Some(2),
                ..all()
            },
            vec![5, 4],
        ),
        (
            Filter {
                limit: Some(0),
                ..all()
            },
            vec![],
        ),
        (
            Filter {
                host: Some("db-2".into()),
                ..all()
            },
            vec![1],
        ),
        (
            Filter {
                suite: Some("seek".into()),
                ..all()
            },
            vec![2],
        ),
        (
            Filter {
                target: Some("/var".into()),
                ..all()
            },
            vec![3],
        ),
        (
            Filter {
                target: Some("nvme1n1".into()),
                ..all()
            },
            vec![5, 3, 2, 1, 0],
        ),
        (
            Filter {
                target: Some("/dev/nvme1n1".into()),
                ..all()
            },
            vec![5, 3, 2, 1, 0],
        ),
        (
            Filter {
                since: Some(runs[4].started),
                ..all()
            },
            vec![5, 4],
        ),
        (
            Filter {
                verdict: Some(Invalid),
                ..all()
            },
            vec![5],
        ),
        (
            Filter {
                host: Some("%".into()),
                ..all()
            },
            vec![],
        ),
        (
            Filter {
                host: Some("db-1".into()),
                limit: Some(1),
                suite: Some("seek".into()),
                ..all()
            },
            vec![2],
        ),
    ] {
        let expected: Vec<String> = expected
            .into_iter()
            .map(|place: usize| runs[place].id.to_string())
            .collect();
        assert_eq!(ids(&ledger, &filter), expected, "{filter:?}");
    }
}

#[test]
fn the_same_id_twice_is_refused_and_the_first_stays() {
    let (_scratch, mut ledger) = empty();
    let run = small_run(0);
    ledger.save(&run, Trusted, &[]).unwrap();
    let mut other = run.clone();
    other.suite = "seek".into();
    let error = ledger.save(&other, Invalid, &[]).unwrap_err();
    assert!(matches!(error, Error::AlreadySaved { .. }), "{error}");
    assert_eq!(ledger.load("last").unwrap(), run);
}

#[test]
fn a_full_disk_is_named_and_the_ledger_stays_whole() {
    let (_scratch, mut ledger) = empty();
    ledger.save(&small_run(0), Trusted, &[]).unwrap();
    // SQLite's own limit gives the error that a full disk gives.
    let pages: i64 = ledger
        .connection
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .unwrap();
    let limit = |ledger: &Ledger, pages: i64| {
        let sql = format!("PRAGMA max_page_count = {pages}");
        ledger.connection.query_row(&sql, [], |_| Ok(())).unwrap();
    };
    limit(&ledger, pages);
    let big = database_run(1, 0.01);
    let error = ledger.save(&big, Trusted, &[]).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert_eq!(ids(&ledger, &Filter::default()).len(), 1);
    limit(&ledger, pages + 1000);
    ledger.save(&big, Trusted, &[]).unwrap();
}

#[test]
fn a_removed_run_is_gone_with_all_that_belongs_to_it() {
    let (_scratch, mut ledger) = empty();
    for minute in 0..3 {
        ledger
            .save(&small_run(minute), Trusted, &[finding()])
            .unwrap();
    }
    assert_eq!(ledger.remove("last~1").unwrap(), small_run(1).id);
    assert_eq!(ids(&ledger, &Filter::default()).len(), 2);
    for table in ["runs", "documents", "conclusions"] {
        let count: i64 = ledger
            .connection
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(count, 2, "{table}");
    }
    let error = ledger.remove("2026").unwrap_err();
    assert!(
        matches!(error, Error::Ambiguous { count: 2, .. }),
        "{error}"
    );
    assert!(ledger.remove(small_run(1).id.as_str()).is_err());
}

#[test]
fn a_new_conclusion_replaces_the_old_and_leaves_the_document_alone() {
    let (_scratch, mut ledger) = empty();
    let run = small_run(0);
    ledger.save(&run, Trusted, &[]).unwrap();
    ledger.conclude("last", Doubtful, &[finding()]).unwrap();
    assert_eq!(ledger.conclusion("last").unwrap().findings, [finding()]);
    assert_eq!(
        ledger.list(&Filter::default()).unwrap()[0].verdict,
        Doubtful
    );
    assert_eq!(ledger.load("last").unwrap(), run);
}

#[test]
fn a_run_of_a_newer_form_or_with_a_damaged_document_concerns_no_other() {
    let (_scratch, mut ledger) = empty();
    for minute in 0..3 {
        ledger.save(&small_run(minute), Trusted, &[]).unwrap();
    }
    let newest = |sql: &str| {
        let changed = ledger.connection.execute(sql, []).unwrap();
        assert_eq!(changed, 1);
    };
    newest("UPDATE documents SET form = 99 WHERE run = 3");
    newest("UPDATE documents SET body = x'00010203' WHERE run = 2");
    newest("UPDATE conclusions SET findings = '[{\"code\":\"new\"}]' WHERE run = 1");
    assert_eq!(ids(&ledger, &Filter::default()).len(), 3);
    let error = ledger.load("last").unwrap_err();
    assert!(
        matches!(error, Error::NewerRun { found: 99, .. }),
        "{error}"
    );
    let error = ledger.load("last~1").unwrap_err();
    assert!(matches!(error, Error::UnreadableRun { .. }), "{error}");
    assert_eq!(ledger.load("last~2").unwrap(), small_run(0));
    let error = ledger.conclusion("last~2").unwrap_err();
    assert!(matches!(error, Error::UnreadableRun { .. }), "{error}");
    ledger.remove("last").unwrap();
}

#[test]
fn listing_ten_thousand_runs_reads_no_document() {
    let (_scratch, mut ledger) = empty();
    let run = database_run(0, 0.001);
    ledger.save(&run, Trusted, &[finding()]).unwrap();
    ledger
        .connection
        .execute_batch(
            "BEGIN;
             WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
             INSERT INTO runs SELECT i, printf('20261122-000000-%05d', i), started, host, target,
                 device, suite, phases, tool, interrupted FROM n, runs WHERE number = 1;
             INSERT INTO conclusions SELECT number, verdict, findings, disksmith
                 FROM runs, conclusions WHERE run = 1 AND number > 1;
             COMMIT;
             DROP TABLE documents",
        )
        .unwrap();
    let path = ledger.path().to_owned();
    drop(ledger);
    // There are no documents any more, and neither opening nor listing nor searching misses them.
    let ledger = Ledger::open(path).unwrap();
    assert_eq!(ledger.list(&Filter::default()).unwrap().len(), 10_000);
    assert_eq!(ledger.find("last~9999").unwrap(), run.id);
    assert_eq!(ledger.find(run.id.as_str()).unwrap(), run.id);
    assert!(ledger.load("last").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn saved_runs_are_loaded(run in arbitrary::run()) {
        let (_scratch, mut ledger) = empty();
        ledger.save(&run, Trusted, &[]).unwrap();
        prop_assert_eq!(&ledger.load(run.id.as_str()).unwrap(), &run);
        let summary = &ledger.list(&Filter::default()).unwrap()[0];
        prop_assert_eq!(summary.started, run.started);
        prop_assert_eq!(&summary.origin, &run.origin);
    }
}

#[test]
fn an_imported_run_is_listed_with_its_tool_and_is_no_measured_one() {
    let (_scratch, mut ledger) = empty();
    let run = imported_run(1);
    ledger.save_imported(&run, Doubtful, &[finding()]).unwrap();
    let [listed] = &ledger.list(&Filter::default()).unwrap()[..] else {
        panic!("not one run");
    };
    assert_eq!((listed.host.as_str(), listed.target.as_str()), ("", ""));
    assert_eq!(
        (listed.suite.as_str(), listed.device.as_deref()),
        ("fio", None)
    );
    assert_eq!(listed.phases, ["page-read"]);
    let tool = "fio 3.33".to_owned();
    assert_eq!(listed.origin, Origin::Imported { tool });
    let kept = ledger.load_kept("last").unwrap();
    assert_eq!(kept, crate::StoredRun::Imported(Box::new(run.clone())));
    let error = ledger.load("last").unwrap_err();
    assert!(matches!(error, Error::NotMeasured { .. }), "{error}");
    let mut other = run;
    other.summary.phases[0].name = "another".to_owned();
    assert!(matches!(
        ledger.save_imported(&other, Doubtful, &[]).unwrap_err(),
        Error::AlreadySaved { .. }
    ));
}

#[test]
fn the_same_report_is_kept_once_until_it_is_removed() {
    let (_scratch, mut ledger) = empty();
    let first = imported_run(1);
    let again = ImportedRun {
        source: "copy.json".to_owned(),
        ..imported_run(2)
    };
    assert_eq!(ledger.save_imported(&first, Doubtful, &[]).unwrap(), None);
    let kept = ledger.save_imported(&again, Doubtful, &[]).unwrap();
    assert_eq!(kept.as_ref(), Some(&first.id));
    assert_eq!(ledger.list(&Filter::default()).unwrap().len(), 1);
    // An equal hash alone is not the same report.
    let mut other = imported_run(3);
    other.summary.tool = "fio 3.34".to_owned();
    let hash = crate::report::hash(&other.summary);
    ledger
        .connection
        .execute("UPDATE reports SET hash = ?1", [hash])
        .unwrap();
    assert_eq!(ledger.save_imported(&other, Doubtful, &[]).unwrap(), None);
    ledger.remove(first.id.as_str()).unwrap();
    assert_eq!(ledger.save_imported(&again, Doubtful, &[]).unwrap(), None);
}
