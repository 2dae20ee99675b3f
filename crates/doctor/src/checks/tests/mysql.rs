//! Tests of the checks of MySQL and MariaDB.

use super::*;
use crate::facts::mysql::{ColumnPair, Mysql, RunTimeSetting};
use crate::sql::{ExplainedStatements, UnusableIndex};
use formats::slow_log::Statement;

/// Rows for a server on nvme1n1 with correct settings, changed by these variables and counters.
fn mysql(variables: &[(&str, &str)], status: &[(&str, &str)]) -> Vec<CheckRow> {
    let well = [
        ("version", "8.0.36"),
        ("innodb_io_capacity", "1000"),
        ("innodb_io_capacity_max", "2000"),
        ("innodb_flush_method", "O_DIRECT"),
        ("innodb_flush_neighbors", "0"),
        ("innodb_use_native_aio", "ON"),
        ("innodb_page_size", "16384"),
        ("innodb_doublewrite", "ON"),
        ("innodb_redo_log_capacity", "2147483648"),
        ("innodb_buffer_pool_size", "8589934592"),
        ("innodb_flush_log_at_trx_commit", "1"),
        ("sync_binlog", "1"),
        ("log_bin", "ON"),
        ("table_open_cache", "4000"),
        ("open_files_limit", "10000"),
        ("max_connections", "500"),
    ];
    let counters = [
        ("uptime", "100000"),
        ("innodb_os_log_written", "1000000"),
        ("innodb_buffer_pool_read_requests", "1000000000"),
        ("innodb_buffer_pool_reads", "1000"),
        ("max_used_connections", "100"),
        ("table_open_cache_overflows", "10"),
    ];
    let tree = Tree::with(&[]);
    let mut facts = tree.facts();
    let server = Mysql {
        variables: text(&[&well[..], variables].concat()),
        status: text(&[&counters[..], status].concat()),
        run_time: Some(Vec::new()),
        columns: Some(Vec::new()),
        innodb_bytes: Some(5e10),
        pid: Some(77),
        replicas: Some(1),
        ..Mysql::default()
    };
    place_on(&mut facts, "nvme1n1", &["data", "redo log", "binary log"]);
    facts.evidence = Evidence::of(vec![run("nvme1n1", measured())], Vec::new());
    facts.mysql = Some(server);
    judged(&facts)
        .into_iter()
        .filter(|row| row.check.area == Area::Mysql)
        .collect()
}

#[test]
fn each_setting_of_mysql_that_is_wrong_for_the_measured_disk_is_found_alone() {
    use CheckResult::{Consider, Fix};
    assert_eq!(found(&mysql(&[], &[])), []);
    let table: &[(&str, CheckResult, Pairs<'_>, Pairs<'_>)] = &[
        (
            "innodb-io-capacity",
            Consider,
            &[
                ("innodb_io_capacity", "10000"),
                ("innodb_io_capacity_max", "20000"),
            ],
            &[],
        ),
        (
            "innodb-io-capacity",
            Consider,
            &[("innodb_io_capacity_max", "20000")],
            &[],
        ),
        (
            "innodb-io-capacity",
            Consider,
            &[("innodb_io_capacity", "99")],
            &[],
        ),
        (
            "innodb-flush-method",
            Consider,
            &[("innodb_flush_method", "fsync")],
            &[],
        ),
        (
            "innodb-flush-method",
            Fix,
            &[("innodb_flush_method", "nosync")],
            &[],
        ),
        (
            "innodb-flush-neighbors",
            Consider,
            &[("innodb_flush_neighbors", "1")],
            &[],
        ),
        (
            "innodb-native-aio",
            Consider,
            &[("innodb_use_native_aio", "OFF")],
            &[],
        ),
        (
            "innodb-doublewrite",
            Fix,
            &[("innodb_doublewrite", "OFF")],
            &[],
        ),
        (
            "innodb-doublewrite",
            Consider,
            &[("innodb_doublewrite", "DETECT_ONLY")],
            &[],
        ),
        (
            "innodb-redo-size",
            Consider,
            &[("innodb_redo_log_capacity", "104857600")],
            &[("innodb_os_log_written", "100000000000")],
        ),
        (
            "innodb-redo-size",
            Consider,
            // As in MySQL 8.0.32 with a log of 10 MiB by innodb_log_file_size.
            &[
                ("innodb_redo_log_capacity", "104857600"),
                ("innodb_log_file_size", "5242880"),
            ],
            &[
                ("innodb_redo_log_capacity_resized", "10485760"),
                ("innodb_os_log_written", "580000000"),
            ],
        ),
        (
            "innodb-buffer-pool",
            Consider,
            &[],
            &[("innodb_buffer_pool_reads", "100000000")],
        ),
        (
            "innodb-buffer-pool",
            Fix,
            &[("innodb_buffer_pool_size", "16000000000")],
            &[],
        ),
        ("commit-durability", Consider, &[("sync_binlog", "0")], &[]),
        (
            "commit-durability",
            Consider,
            &[("innodb_flush_log_at_trx_commit", "2")],
            &[],
        ),
        (
            "table-open-cache",
            Consider,
            &[],
            &[("table_open_cache_overflows", "10000000")],
        ),
        (
            "mysql-file-limit",
            Fix,
            &[("open_files_limit", "5000")],
            &[],
        ),
        (
            "max-connections",
            Consider,
            &[],
            &[("max_used_connections", "499")],
        ),
        (
            "max-connections",
            Consider,
            &[],
            &[("connection_errors_max_connections", "3")],
        ),
        (
            "mysql-memory",
            Consider,
            &[("sort_buffer_size", "33554432")],
            &[],
        ),
        (
            "mysql-memory",
            Fix,
            &[("sort_buffer_size", "134217728")],
            &[],
        ),
        (
            "max-connections",
            Fix,
            &[("max_connections", "6000"), ("open_files_limit", "20000")],
            &[],
        ),
    ];
    for (name, result, variables, status) in table {
        let rows = mysql(variables, status);
        assert_eq!(found(&rows), [(*name, *result)], "{variables:?} {status:?}");
    }
}

#[test]
fn a_few_reads_of_a_server_that_rests_are_no_finding() {
    let reads = ("innodb_buffer_pool_reads", "9000");
    let status = [reads, ("innodb_buffer_pool_read_requests", "500000")];
    assert_eq!(found(&mysql(&[], &status)), []);
}

#[test]
fn the_command_has_the_value_derived_of_the_disk_and_the_evidence_the_run() {
    let rows = mysql(&[("innodb_io_capacity_max", "20000")], &[]);
    let row = rows
        .iter()
        .find(|row| row.check.name == "innodb-io-capacity")
        .unwrap();
    let command = row.judgement.command.as_deref().unwrap();
    assert!(
        command.contains("innodb_io_capacity_max = 2000;")
            && command.contains("innodb_io_capacity = 1000;"),
        "{command}"
    );
    let evidence = row.judgement.evidence.as_deref().unwrap();
    assert!(
        evidence.contains("4,000") && evidence.contains("2026-11-21"),
        "{evidence}"
    );
    let rows = mysql(
        &[
            ("innodb_doublewrite", "OFF"),
            ("innodb_io_capacity_max", "20000"),
        ],
        &[],
    );
    let row = rows
        .iter()
        .find(|row| row.check.name == "innodb-io-capacity")
        .unwrap();
    assert!(
        row.judgement
            .command
            .as_deref()
            .unwrap()
            .contains("innodb_io_capacity_max = 4000;")
    );
    let commit = rows
        .iter()
        .find(|row| row.check.name == "commit-latency")
        .unwrap();
    // Two syncs of 2 ms.
    assert!(
        commit.judgement.value.contains("at most 250 commits/s"),
        "{}",
        commit.judgement.value
    );
}

#[test]
fn a_doublewrite_buffer_may_be_off_where_pages_are_written_at_once() {
    let atomic = (
        "sys/class/block/nvme1n1/queue/atomic_write_unit_max_bytes",
        "16384",
    );
    for (files, expected) in [(&[atomic][..], CheckResult::Ok), (&[], CheckResult::Fix)] {
        let tree = Tree::with(files);
        let mut facts = tree.facts();
        place_on(&mut facts, "nvme1n1", &["data"]);
        facts.mysql = Some(Mysql {
            variables: text(&[
                ("innodb_doublewrite", "OFF"),
                ("innodb_flush_method", "O_DIRECT"),
            ]),
            ..Mysql::default()
        });
        let rows = judged(&facts);
        let row = rows
            .iter()
            .find(|row| row.check.name == "innodb-doublewrite")
            .unwrap();
        assert_eq!(row.result(), expected);
    }
}

#[test]
fn pages_larger_than_a_chunk_and_slower_devices_for_logs_are_found() {
    let tree = Tree::with(&[
        ("sys/class/block/md0/md/chunk_size", "4096"),
        (
            "proc/self/mountinfo",
            "30 1 9:0 / /data rw,noatime - btrfs /dev/md0 rw\n31 1 8:1 / /other rw,relatime - ext4 /dev/sda1 rw\n",
        ),
    ]);
    let mut facts = tree.facts();
    place_on(&mut facts, "md0", &["data", "redo log"]);
    let slow = vec![phase("log-append", Pattern::Sequential, 0.0, 4, 1, 100)];
    let fast = vec![phase("log-append", Pattern::Sequential, 0.0, 4, 1, 5_000)];
    facts.evidence = Evidence::of(vec![run("md0", slow), run("sda1", fast)], Vec::new());
    facts.mysql = Some(Mysql {
        variables: text(&[("innodb_page_size", "16384"), ("sync_binlog", "1")]),
        ..Mysql::default()
    });
    let rows = judged(&facts);
    let names: Vec<&str> = found(&rows).iter().map(|(name, _)| *name).collect();
    assert!(
        names.contains(&"innodb-page-size") && names.contains(&"mysql-placement"),
        "{names:?}"
    );
    assert!(names.contains(&"commit-latency"), "{names:?}");
}

#[test]
fn replication_and_settings_of_the_running_server_are_found() {
    let mut facts = Tree::with(&[]).facts();
    let channel = |lag: &str, sql: &str| {
        text(&[
            ("source_host", "db0"),
            ("seconds_behind_source", lag),
            ("replica_io_running", "Yes"),
            ("replica_sql_running", sql),
        ])
    };
    for (source, expected) in [
        (channel("0", "Yes"), CheckResult::Ok),
        (channel("60", "Yes"), CheckResult::Consider),
        (channel("900", "Yes"), CheckResult::Fix),
        (channel("NULL", "No"), CheckResult::Fix),
    ] {
        facts.mysql = Some(Mysql {
            sources: vec![source],
            run_time: None,
            ..Mysql::default()
        });
        let rows = judged(&facts);
        let row = rows
            .iter()
            .find(|row| row.check.name == "mysql-replication-lag")
            .unwrap();
        assert_eq!(row.result(), expected, "{}", row.judgement.value);
    }
}

#[test]
fn settings_of_the_running_server_alone_are_found() {
    let own = |name: &str| RunTimeSetting {
        name: name.into(),
        value: "1".into(),
    };
    for (run_time, expected) in [
        (None, CheckResult::Unknown),
        (Some(Vec::new()), CheckResult::Ok),
        // A setting of a replica, which does not belong in the file.
        (Some(vec![own("read_only")]), CheckResult::Ok),
        (Some(vec![own("sync_binlog")]), CheckResult::Consider),
    ] {
        let mut facts = Tree::with(&[]).facts();
        facts.mysql = Some(Mysql {
            run_time,
            ..Mysql::default()
        });
        let rows = judged(&facts);
        let row = rows
            .iter()
            .find(|row| row.check.name == "mysql-settings-not-in-files");
        assert_eq!(row.unwrap().result(), expected);
    }
}

#[test]
fn statements_and_columns_that_cannot_use_an_index_are_found() {
    let statement = |text: &str, rows: f64| UnusableIndex {
        statement: Statement {
            schema: Some("app".into()),
            text: text.into(),
        },
        reason: "Cannot use key v".into(),
        rows: Some(rows),
    };
    let pair = ColumnPair {
        schema: "app".into(),
        column: "user_id".into(),
        kinds: vec!["a int".into(), "b varchar(9)".into()],
    };
    for (unusable, pairs, expected) in [
        (Vec::new(), Vec::new(), Vec::new()),
        (
            vec![statement("SELECT 1 FROM a WHERE v = 5", 2_000.0)],
            vec![pair],
            vec![
                ("implicit-conversion", CheckResult::Consider),
                ("column-types", CheckResult::Consider),
            ],
        ),
        // A statement that locks the rows that it reads.
        (
            vec![statement("DELETE FROM a WHERE v = 5", 2_000.0)],
            Vec::new(),
            vec![("implicit-conversion", CheckResult::Fix)],
        ),
    ] {
        let mut facts = Tree::with(&[]).facts();
        facts.sql = Some(ExplainedStatements {
            explained: 1,
            has_notes: true,
            unusable,
            ..ExplainedStatements::default()
        });
        facts.mysql = Some(Mysql {
            columns: Some(pairs),
            ..Mysql::default()
        });
        let mut rows = judged(&facts);
        rows.retain(|row| row.check.area == Area::Sql);
        assert_eq!(found(&rows), expected);
    }
}

#[test]
fn commits_are_counted_where_they_are() {
    let of = |log_bin: &str| {
        let rows = mysql(
            &[("log_bin", log_bin)],
            &[("binlog_commits", "0"), ("com_commit", "1000000")],
        );
        let row = rows
            .into_iter()
            .find(|row| row.check.name == "commit-latency");
        row.unwrap().judgement.value
    };
    assert!(of("ON").starts_with("0.0 commits/s"), "{}", of("ON"));
    assert!(of("OFF").starts_with("10.0 commits/s"), "{}", of("OFF"));
}
