//! The verbs `doctor` and `playbook`, through the real program, on this host and on real servers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

#[path = "support/database.rs"]
mod database;

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use database::{Server, client, done, mariadb, postgres, postgres_programs, psql, url_of};
use support::{Place, ProgramOutput, TIMEOUT, skipped};

/// Result of each check that judged: the gravest of its rows.
fn results(said: &ProgramOutput) -> BTreeMap<String, String> {
    let document = said.json();
    let mut found = BTreeMap::new();
    // The gravest come first.
    for row in document["checks"].as_array().unwrap() {
        let word = |key: &str| row[key].as_str().unwrap().to_owned();
        found.entry(word("name")).or_insert(word("result"));
    }
    found
}

#[test]
fn this_host_is_checked_in_each_form() {
    let place = Place::new();
    let said = place.run("doctor --data data --json");
    let checks = said.json()["checks"].as_array().unwrap().clone();
    let to_fix = checks.iter().any(|row| row["result"] == "fix");
    assert_eq!(said.status, Some(i32::from(to_fix)), "{said:#?}");
    assert!(
        checks.iter().any(|row| row["name"] == "swappiness"),
        "{said:#?}"
    );
    for row in &checks {
        let is_finding = row["result"] == "fix" || row["result"] == "consider";
        let advice = row["advice"].as_str().unwrap();
        assert_eq!(advice.contains("disksmith playbook "), is_finding, "{row}");
    }
    // Only of a check that does not change by itself between two runs.
    let to_fix = checks
        .iter()
        .any(|row| row["name"] == "swappiness" && row["result"] == "fix");
    let quiet = place
        .run("doctor --check swappiness --check-only")
        .ends_with(i32::from(to_fix));
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("", ""));
    place.run("doctor --all").fits(100);
    let mut narrow = place.command("doctor --all");
    support::output_of(narrow.env("COLUMNS", "40")).fits(40);
    let line = place.run("doctor --nagios --check swappiness");
    assert!(
        line.out.starts_with("DISKSMITH ") && line.out.contains(" | fix=0 "),
        "{line:#?}"
    );
    assert_eq!(line.out.lines().count(), 1);
    place.run("doctor --report host.html");
    let page = fs::read_to_string(place.path("host.html")).unwrap();
    assert!(page.contains("swappiness") && page.contains("Each rule has its source"));
    place.assert_nothing_left();
}

#[test]
fn checks_are_chosen_listed_and_refused_by_name() {
    let place = Place::new();
    let only = place.run("doctor --check swappiness,clock-source --json");
    assert!(
        results(&only)
            .keys()
            .all(|name| name == "swappiness" || name == "clock-source")
    );
    let none = place.run("doctor --ignore host --json").ends_with(0);
    assert!(results(&none).is_empty());
    let list = place.run("doctor --list").ends_with(0);
    list.prints(&["innodb-io-capacity (mysql)", "Source: "]);
    list.fits(100);
    for (arguments, words) in [
        (
            &["--check", "nosuch"][..],
            &["no check and no area 'nosuch'", "--list"][..],
        ),
        (&["--data", "/no/such/folder"], &["/no/such/folder"]),
        (&["--mysql", "mysql://me:secret@db1"], &["~/.my.cnf"]),
        (
            &["--postgres", "postgresql://me:secret@db1/x"],
            &["~/.pgpass"],
        ),
        (&["--mysql", "--postgres"], &["--postgres"]),
        (&["--restored-on", "2999-01-01"], &["2999-01-01"]),
        (&["--queries", "x.sql"], &["--mysql"]),
    ] {
        let said = place.run(&[&["doctor"], arguments].concat()).refuses(words);
        assert!(!said.err.contains("secret"), "{said:#?}");
    }
    let down = place
        .run("doctor --nagios --mysql mysql://?socket=/no/such.sock")
        .ends_with(3);
    assert!(down.out.starts_with("DISKSMITH UNKNOWN - "), "{down:#?}");
}

#[test]
fn playbooks_are_listed_and_printed() {
    let place = Place::new();
    let list = place.run("playbook").ends_with(0);
    list.fits(100);
    list.prints(&["slow-commits"]);
    let page = place.run("playbook slow-commits").ends_with(0);
    assert!(
        page.out.starts_with("# ") && page.out.contains("## For good"),
        "{page:#?}"
    );
    place
        .run("playbook nosuch")
        .refuses(&["no playbook 'nosuch'"]);
}

#[test]
fn backups_are_found_and_judged() {
    let place = Place::new();
    fs::create_dir(place.path("backup")).unwrap();
    fs::write(place.path("backup/cut.sql"), "INSERT INTO t VALUES (1").unwrap();
    let age = |place: &Place| {
        let said = place.run("doctor --data data --check safety --backup backup --rpo 1h --json");
        let results = results(&said);
        (
            results["backup-age"].clone(),
            results.get("backup-incomplete").cloned(),
        )
    };
    assert_eq!(age(&place), ("fix".to_owned(), Some("fix".to_owned())));
    fs::remove_file(place.path("backup/cut.sql")).unwrap();
    fs::write(
        place.path("backup/whole.sql"),
        "--\n-- PostgreSQL database dump complete\n--\n",
    )
    .unwrap();
    assert_eq!(age(&place), ("ok".to_owned(), None));
}

/// A configuration with wrong settings, and the checks that find them.
const BAD_MARIADB: &str = "innodb_flush_method = fsync\ninnodb_doublewrite = 0\ninnodb_use_native_aio = 0\n\
    innodb_flush_log_at_trx_commit = 2\nsync_binlog = 0\nlog_bin = binlog\nserver_id = 1\nmax_connections = 10\n\
    innodb_buffer_pool_size = 6M\ninnodb_log_file_size = 4M\nslow_query_log = 1\nlong_query_time = 0\n";
const GOOD_MARIADB: &str = "log_bin = binlog\nsync_binlog = 1\nserver_id = 1\nperformance_schema = ON\n\
    performance_schema_consumer_events_statements_current = ON\n\
    performance_schema_consumer_events_statements_history_long = ON\ninnodb_buffer_pool_size = 64M\n\
    slow_query_log = 1\nlong_query_time = 0\n";

/// Indexed columns, and a table that is larger than a buffer pool of 6 MiB.
const TABLES: &str = "CREATE DATABASE app; USE app; \
    CREATE TABLE a (id INT PRIMARY KEY, n INT, v VARCHAR(20), KEY (n), KEY (v)); \
    INSERT INTO a SELECT seq, seq, seq FROM seq_1_to_20000; ANALYZE TABLE a;";
const READS: &str = "USE app; CREATE TABLE big AS SELECT seq AS id, REPEAT('x', 500) AS v FROM seq_1_to_20000; \
    CREATE TABLE user_a (user_id INT PRIMARY KEY); CREATE TABLE user_b (user_id VARCHAR(9) PRIMARY KEY); \
    DELETE FROM a WHERE v = 77777777; SELECT COUNT(*) FROM big WHERE v LIKE '%y'; \
    SELECT COUNT(*) FROM big WHERE v LIKE '%z'; SET GLOBAL max_allowed_packet = 33554432; \
    SELECT a.v, big.v FROM a JOIN big USING (id) WHERE big.v LIKE '%w' LIMIT 1; SELECT 1";

#[test]
fn on_mariadb_what_is_set_wrong_is_found_and_what_is_right_is_not() {
    if !support::has_program("mariadb-install-db") {
        return;
    }
    let place = Place::new();
    let judge = |server: &Server, more: &[&str]| {
        let url = format!(
            "mysql://root@?socket={}",
            server.path().join("sock").display()
        );
        results(
            &place.run(
                &[
                    &["doctor", "--mysql", &url, "--check", "mysql,sql", "--json"],
                    more,
                ]
                .concat(),
            ),
        )
    };
    let bad = mariadb(BAD_MARIADB);
    let socket = bad.path().join("sock");
    done(&mut client(&socket, TABLES));
    done(&mut client(&socket, READS));
    let found = judge(&bad, &[]);
    for (name, result) in [
        ("innodb-doublewrite", "fix"),
        ("innodb-flush-method", "consider"),
        ("innodb-native-aio", "consider"),
        ("innodb-redo-size", "consider"),
        ("innodb-buffer-pool", "consider"),
        ("commit-durability", "consider"),
        ("mysql-settings-not-in-files", "consider"),
        // The DELETE of the slow log, explained as a SELECT.
        ("implicit-conversion", "fix"),
        ("column-types", "consider"),
        ("innodb-io-capacity", "unknown"),
    ] {
        assert_eq!(
            found.get(name).map(String::as_str),
            Some(result),
            "{name} of {found:?}"
        );
    }
    assert_eq!(
        done(&mut client(&socket, "SELECT COUNT(*) AS '' FROM app.a")).trim(),
        "20000"
    );

    let queries = place.path("queries.sql");
    let file = queries.to_str().unwrap();
    for (statement, expected) in [
        ("SELECT * FROM a WHERE v = 5", "consider"),
        ("SELECT * FROM a WHERE v = '5'", "ok"),
        ("DELETE FROM a WHERE v = 5", "fix"),
        ("UPDATE a SET n = 1 WHERE v IN (1, 2)", "fix"),
        (
            "SELECT * FROM a WHERE n IN ('5', '99999999999')",
            "consider",
        ),
        ("SELECT * FROM a WHERE n IN (5, 99999)", "ok"),
        // Neither is explained, and neither is run.
        ("DROP TABLE a", "unknown"),
        ("SELECT 1; DROP TABLE a", "unknown"),
    ] {
        fs::write(&queries, format!("USE app;\n{statement};\n")).unwrap();
        let found = judge(&bad, &["--queries", file]);
        assert_eq!(found["implicit-conversion"], expected, "{statement}");
    }
    assert_eq!(
        done(&mut client(&socket, "SELECT COUNT(*) AS '' FROM app.a")).trim(),
        "20000"
    );
    drop(bad);

    let good = mariadb(GOOD_MARIADB);
    let socket = good.path().join("sock");
    done(&mut client(&socket, TABLES));
    // A statement is in the slow log a moment after its answer, and before the next one is answered.
    done(&mut client(
        &socket,
        "USE app; SELECT * FROM a WHERE v = '5'; SELECT 1",
    ));
    let found = judge(&good, &[]);
    let findings: Vec<_> = found
        .iter()
        .filter(|(_, result)| *result == "fix" || *result == "consider")
        .collect();
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(found["implicit-conversion"], "ok", "{found:?}");
    done(&mut client(&socket, "SET GLOBAL sync_binlog = 0"));
    let found = judge(&good, &[]);
    assert_eq!(found["commit-durability"], "consider");
    assert_eq!(found["mysql-settings-not-in-files"], "consider");
}

const BAD_POSTGRES: &str = "fsync = off\nfull_page_writes = off\nsynchronous_commit = off\nrandom_page_cost = 0.5\n\
    checkpoint_completion_target = 0.3\nmax_wal_size = 32MB\nmin_wal_size = 32MB\nshared_buffers = 128kB\n";
const GOOD_POSTGRES: &str = "shared_buffers = 256MB\ncheckpoint_completion_target = 0.9\n";

#[test]
fn on_postgresql_what_is_set_wrong_is_found_and_what_is_right_is_not() {
    let Some(programs) = postgres_programs() else {
        return skipped("postgresql is not installed");
    };
    let place = Place::new();
    let judge = |server: &Server, more: &[&str]| {
        let url = url_of(server);
        results(
            &place.run(
                &[
                    &[
                        "doctor",
                        "--postgres",
                        &url,
                        "--check",
                        "postgres",
                        "--json",
                    ],
                    more,
                ]
                .concat(),
            ),
        )
    };
    let bad = postgres(&programs, BAD_POSTGRES);
    let url = url_of(&bad);
    done(&mut psql(
        &url,
        "CREATE TABLE x AS SELECT g, repeat('y', 200) v FROM generate_series(1, 300000) g",
    ));
    for _ in 0..5 {
        done(&mut psql(&url, "CHECKPOINT"));
    }
    let file = bad.path().join("data/postgresql.conf");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        format!("{text}\nmax_connections = 77\nwork_mem = 'lots'\n"),
    )
    .unwrap();
    done(&mut psql(&url, "SELECT pg_reload_conf()"));
    let began = Instant::now();
    while done(&mut psql(
        &url,
        "SELECT count(*) FROM pg_file_settings WHERE name = 'work_mem' AND error IS NOT NULL",
    ))
    .trim()
        != "1"
    {
        assert!(began.elapsed() < TIMEOUT);
    }
    let found = judge(&bad, &[]);
    for (name, result) in [
        ("postgres-durability", "fix"),
        ("random-page-cost", "fix"),
        ("checkpoint-spread", "consider"),
        ("max-wal-size", "consider"),
        ("shared-buffers", "consider"),
        ("postgres-settings-not-applied", "fix"),
        ("effective-io-concurrency", "unknown"),
        ("wal-sync-method", "unknown"),
    ] {
        assert_eq!(
            found.get(name).map(String::as_str),
            Some(result),
            "{name} of {found:?}"
        );
    }
    drop(bad);

    let good = postgres(&programs, GOOD_POSTGRES);
    let before = support::names_in(&good.path().join("data/pg_wal"));
    let found = judge(&good, &["--measure"]);
    let findings: Vec<_> = found
        .iter()
        .filter(|(_, result)| *result == "fix")
        .collect();
    assert!(findings.is_empty(), "{findings:?}");
    for name in [
        "postgres-durability",
        "checkpoint-spread",
        "max-wal-size",
        "shared-buffers",
        "postgres-settings-not-applied",
    ] {
        assert_eq!(found[name], "ok", "{found:?}");
    }
    // Measured, and gone.
    assert_ne!(found["wal-sync-method"], "unknown", "{found:?}");
    assert_eq!(support::names_in(&good.path().join("data/pg_wal")), before);
}
