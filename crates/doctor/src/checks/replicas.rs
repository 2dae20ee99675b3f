//! Replication lag.

use crate::check::{Area, Basis, Check, Judgement, format_count};
use crate::client::mysql::MysqlRow;
use crate::facts::Facts;

/// Lag, in seconds, above which reads on a replica are out of date, and a failover is delayed.
const MAX_LAG_S: f64 = 30.0;
/// Lag, in seconds, above which the replica is to be corrected.
const LONG_LAG_S: f64 = 300.0;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "mysql-replication-lag",
        area: Area::Mysql,
        reads: "SHOW REPLICA STATUS, SHOW ALL SLAVES STATUS",
        rule: "A replica runs, and is less than 30 s behind.",
        source: "MySQL Reference Manual, SHOW REPLICA STATUS",
        basis: Basis::Inferred,
        playbook: "replication-lag",
        judge: mysql,
    },
    Check {
        name: "postgres-replication-lag",
        area: Area::Postgres,
        reads: "pg_last_xact_replay_timestamp()",
        rule: "A standby is less than 30 s behind.",
        source: "PostgreSQL, \"Recovery Information Functions\"",
        basis: Basis::Inferred,
        playbook: "replication-lag",
        judge: postgres,
    },
];

fn judge(name: &str, lag: f64) -> Judgement {
    let value = format!("{name}: {} s behind", format_count(lag));
    let advice = "Check whether the replica's disk is slower than the primary's at random writes and syncs, and whether it \
                  applies in parallel.";
    match () {
        () if lag >= LONG_LAG_S => Judgement::fix(value, advice),
        () if lag >= MAX_LAG_S => Judgement::consider(value, advice),
        () => Judgement::ok(value),
    }
}

fn mysql(facts: &Facts) -> Vec<Judgement> {
    let Some(mysql) = &facts.mysql else {
        return Vec::new();
    };
    mysql.sources.iter().map(channel).collect()
}

fn channel(row: &MysqlRow) -> Judgement {
    let cell = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| row.get(*name))
            .map(String::as_str)
    };
    let source = cell(["source_host", "master_host"]).unwrap_or("the source");
    let lag =
        cell(["seconds_behind_source", "seconds_behind_master"]).and_then(|text| text.parse().ok());
    let io = cell(["replica_io_running", "slave_io_running"]).unwrap_or("?");
    let sql = cell(["replica_sql_running", "slave_sql_running"]).unwrap_or("?");
    match lag {
        Some(lag) if io == "Yes" && sql == "Yes" => judge(source, lag),
        _ => {
            let error = cell(["last_error", "last_sql_error"])
                .filter(|text| !text.is_empty())
                .unwrap_or("no error");
            Judgement::fix(
                format!("{source}: receiver running: {io}, applier running: {sql}, {error}"),
                "Replication stands still. Correct the error, and start it.",
            )
            .command("START REPLICA")
        }
    }
}

fn postgres(facts: &Facts) -> Vec<Judgement> {
    let Some(of) = facts.postgres.as_ref().map(|postgres| &postgres.statistics) else {
        return Vec::new();
    };
    match of.is_replica {
        true => vec![judge("standby", of.replay_lag_s.unwrap_or(0.0))],
        false => Vec::new(),
    }
}
