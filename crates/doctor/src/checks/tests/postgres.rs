//! Tests of the checks of PostgreSQL.

use super::*;
use crate::facts::postgres::{FileError, Postgres, Setting, Statistics};
use crate::wal_sync::{Method, WalSync};

/// Settings with their value and unit.
type Units<'a> = &'a [(&'a str, &'a str, &'a str)];

/// Rows for PostgreSQL on nvme1n1 with correct settings, changed by these.
fn postgres(settings: &[(&str, &str, &str)], statistics: Statistics) -> Vec<CheckRow> {
    let well = [
        ("random_page_cost", "1.1", ""),
        ("seq_page_cost", "1", ""),
        ("effective_io_concurrency", "16", ""),
        ("shared_buffers", "524288", "8kB"),
        ("fsync", "on", ""),
        ("full_page_writes", "on", ""),
        ("synchronous_commit", "on", ""),
        ("checkpoint_completion_target", "0.9", ""),
        ("checkpoint_timeout", "300", "s"),
        ("max_wal_size", "4096", "MB"),
        ("block_size", "8192", ""),
        ("io_method", "worker", ""),
        ("archive_mode", "on", ""),
    ];
    let tree = Tree::with(&[]);
    let mut facts = tree.facts();
    place_on(&mut facts, "nvme1n1", &["data", "WAL"]);
    facts.evidence = Evidence::of(vec![run("nvme1n1", measured())], Vec::new());
    let setting = |(name, setting, unit): &(&str, &str, &str)| {
        let unit = (!unit.is_empty()).then(|| (*unit).to_owned());
        (
            (*name).to_owned(),
            Setting {
                name: (*name).to_owned(),
                setting: (*setting).to_owned(),
                unit,
                pending_restart: false,
            },
        )
    };
    facts.postgres = Some(Postgres {
        settings: well.iter().chain(settings).map(setting).collect(),
        statistics,
        folder: Some("/data".into()),
        ..Postgres::default()
    });
    judged(&facts)
        .into_iter()
        .filter(|row| matches!(row.check.area, Area::Postgres | Area::Safety))
        .collect()
}

#[test]
fn each_setting_of_postgresql_that_is_wrong_for_the_measured_disk_is_found_alone() {
    use CheckResult::{Consider, Fix};
    let quiet = || Statistics {
        timed: 100.0,
        seconds: Some(30_000.0),
        replicas: 1.0,
        archived_age_s: Some(60.0),
        bytes: Some(1e11),
        ..Statistics::default()
    };
    assert_eq!(found(&postgres(&[], quiet())), []);
    let table: &[(&str, CheckResult, Units<'_>)] = &[
        (
            "random-page-cost",
            Consider,
            &[("random_page_cost", "4", "")],
        ),
        ("random-page-cost", Fix, &[("random_page_cost", "0.5", "")]),
        (
            "effective-io-concurrency",
            Consider,
            &[("effective_io_concurrency", "1", "")],
        ),
        (
            "effective-io-concurrency",
            Consider,
            &[("effective_io_concurrency", "1000", "")],
        ),
        (
            "shared-buffers",
            Consider,
            &[("shared_buffers", "16384", "8kB")],
        ),
        (
            "shared-buffers",
            Consider,
            &[("shared_buffers", "1600000", "8kB")],
        ),
        ("postgres-durability", Fix, &[("fsync", "off", "")]),
        (
            "postgres-durability",
            Fix,
            &[("full_page_writes", "off", "")],
        ),
        (
            "postgres-durability",
            Consider,
            &[("synchronous_commit", "off", "")],
        ),
        (
            "checkpoint-spread",
            Consider,
            &[("checkpoint_completion_target", "0.5", "")],
        ),
        ("io-method", Consider, &[("io_method", "sync", "")]),
    ];
    for (name, result, settings) in table {
        assert_eq!(
            found(&postgres(settings, quiet())),
            [(*name, *result)],
            "{settings:?}"
        );
    }
    let requested = Statistics {
        requested: 80.0,
        ..quiet()
    };
    assert_eq!(
        found(&postgres(&[], requested)),
        [("max-wal-size", Consider)]
    );
    let busy = Statistics {
        checkpoint_buffers: 2e8,
        ..quiet()
    };
    assert_eq!(
        found(&postgres(&[], busy)),
        [("checkpoint-spread", Consider)]
    );
    let failing = Statistics {
        archive_failing: true,
        ..quiet()
    };
    assert_eq!(
        found(&postgres(&[], failing)),
        [("wal-archive-failing", Fix)]
    );
    let alone = Statistics {
        replicas: 0.0,
        ..quiet()
    };
    assert_eq!(
        found(&postgres(&[], alone)),
        [("replica-present", Consider)]
    );
    let behind = Statistics {
        is_replica: true,
        replay_lag_s: Some(400.0),
        ..quiet()
    };
    assert_eq!(
        found(&postgres(&[], behind)),
        [("postgres-replication-lag", Fix)]
    );
}

#[test]
fn settings_that_do_not_apply_and_slow_methods_of_syncing_are_found() {
    use CheckResult::{Consider, Fix, Ok};
    let setting = |value: &str, pending_restart| Setting {
        name: "wal_sync_method".into(),
        setting: value.into(),
        unit: None,
        pending_restart,
    };
    let measured = |is_clear| WalSync {
        medians: vec![(Method::Fdatasync, 0.002), (Method::OpenSync, 0.004)],
        is_clear,
    };
    let wrong = FileError {
        name: Some("work_mem".into()),
        error: Some("invalid value".into()),
    };
    let name = "postgres-settings-not-applied";
    for (check, expected, own, wal_sync, file_errors) in [
        (
            "wal-sync-method",
            Ok,
            setting("fdatasync", false),
            measured(true),
            None,
        ),
        (
            "wal-sync-method",
            Ok,
            setting("open_sync", false),
            measured(false),
            None,
        ),
        (
            "wal-sync-method",
            Consider,
            setting("open_sync", false),
            measured(true),
            None,
        ),
        (name, Ok, setting("fdatasync", false), measured(true), None),
        (
            name,
            Consider,
            setting("fdatasync", true),
            measured(true),
            None,
        ),
        (
            name,
            Fix,
            setting("fdatasync", false),
            measured(true),
            Some(wrong),
        ),
    ] {
        let mut facts = Tree::with(&[]).facts();
        facts.postgres = Some(Postgres {
            settings: [("wal_sync_method".to_owned(), own)].into(),
            wal_sync: Some(wal_sync),
            file_errors: file_errors.into_iter().collect(),
            ..Postgres::default()
        });
        let rows = judged(&facts);
        let row = rows.iter().find(|row| row.check.name == check).unwrap();
        assert_eq!(row.result(), expected, "{check}: {}", row.judgement.value);
    }
}

#[test]
fn a_faster_device_for_the_wal_is_named() {
    let tree = Tree::with(&[]);
    for (rate, expected) in [(5_000, CheckResult::Consider), (100, CheckResult::Ok)] {
        let mut facts = tree.facts();
        place_on(&mut facts, "md0", &["data", "WAL"]);
        let log = |rate| vec![phase("log-append", Pattern::Sequential, 0.0, 4, 1, rate)];
        facts.evidence = Evidence::of(
            vec![run("md0", log(100)), run("sda1", log(rate))],
            Vec::new(),
        );
        facts.postgres = Some(Postgres::default());
        let rows = judged(&facts);
        let row = rows
            .iter()
            .find(|row| row.check.name == "postgres-placement");
        assert_eq!(row.unwrap().result(), expected, "{rate}");
    }
}
