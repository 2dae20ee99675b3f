//! Commits of MySQL: their durability, and the time of a sync.

use crate::check::{Area, Basis, Check, Judgement};
use crate::facts::Facts;
use crate::facts::evidence::EvidenceFigure;
use crate::facts::mysql::Mysql;
use ui::format::{number, seconds};

/// Duration of a sync, in seconds, above which a single session makes fewer than 100 commits a second.
const SLOW_SYNC_S: f64 = 0.005;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "commit-durability",
        area: Area::Mysql,
        reads: "innodb_flush_log_at_trx_commit, sync_binlog",
        rule: "1 and 1: a commit that was acknowledged is on the disk, and the binary log agrees with the tables.",
        source: "MySQL Reference Manual, innodb_flush_log_at_trx_commit and sync_binlog",
        basis: Basis::Documented,
        playbook: "commits-lost-at-power-cut",
        judge: durability,
    },
    Check {
        name: "commit-latency",
        area: Area::Mysql,
        reads: "sync_binlog, log_bin, Binlog_commits, Binlog_group_commits",
        rule: "A sync of the log takes at most 5 ms. Commits a second are at most the size of a group by the time of its \
               syncs: one of the redo log and one of the binary log.",
        source: "MariaDB documentation, \"Group Commit for the Binary Log\"",
        basis: Basis::Inferred,
        playbook: "slow-commits",
        judge: latency,
    },
];

fn has_binlog(mysql: &Mysql) -> bool {
    mysql.is_on("log_bin").unwrap_or(false)
}

/// Measured duration of a sync on the device of the log, in seconds.
fn sync_seconds(facts: &Facts) -> Option<EvidenceFigure> {
    let places = ["binary log", "redo log", "data"];
    let found = places.iter().map(|what| facts.host.names_of(what));
    let mut figures = found
        .filter(|names| !names.is_empty())
        .filter_map(|names| facts.evidence.commit_seconds(&names));
    figures.next()
}

fn syncs(mysql: &Mysql) -> f64 {
    if has_binlog(mysql) { 2.0 } else { 1.0 }
}

fn durability(facts: &Facts) -> Vec<Judgement> {
    let Some(mysql) = &facts.mysql else {
        return Vec::new();
    };
    let Some(redo) = mysql.variable("innodb_flush_log_at_trx_commit") else {
        return Vec::new();
    };
    let binlog = mysql.variable("sync_binlog").filter(|_| has_binlog(mysql));
    let value = match binlog {
        Some(binlog) => format!("innodb_flush_log_at_trx_commit: {redo}, sync_binlog: {binlog}"),
        None => format!("innodb_flush_log_at_trx_commit: {redo}, no binary log"),
    };
    let figure = sync_seconds(facts);
    let is_durable = redo == "1" && binlog.is_none_or(|binlog| binlog == "1");
    let judged = match is_durable {
        true => Judgement::ok(value),
        false => {
            let cost = figure.as_ref().map_or(String::new(), |figure| {
                format!(
                    " With 1 and 1 a commit takes {} here, and sessions that commit together share it.",
                    seconds(figure.value * syncs(mysql))
                )
            });
            let loses = match redo {
                "1" => {
                    "After a crash of the host the binary log may lack commits that the tables have, so that replicas differ."
                }
                _ => {
                    "A crash of the host loses the last second of commits, and the binary log may not agree with the tables."
                }
            };
            Judgement::consider(
                value,
                format!("{loses} On a replica that can be made anew this may be wanted.{cost}"),
            )
            .command("SET GLOBAL innodb_flush_log_at_trx_commit = 1; SET GLOBAL sync_binlog = 1")
        }
    };
    vec![match figure {
        Some(figure) => judged.evidence(figure.times(1000.0).cite("ms a sync")),
        None => judged,
    }]
}

fn latency(facts: &Facts) -> Vec<Judgement> {
    let Some(mysql) = &facts.mysql else {
        return Vec::new();
    };
    let commits = mysql
        .counter("binlog_commits")
        .filter(|_| has_binlog(mysql))
        .or_else(|| mysql.counter("com_commit"))
        .unwrap_or(0.0);
    let rate = commits / mysql.uptime();
    let groups = mysql
        .counter("binlog_group_commits")
        .filter(|groups| *groups > 0.0);
    let group = groups.map_or(1.0, |groups| (commits / groups).max(1.0));
    let value = format!("{} commits/s, {} in a group", number(rate), number(group));
    let Some(figure) = sync_seconds(facts) else {
        return vec![Judgement::unknown(
            value,
            format!(
                "The time of a sync is not known: disksmith bench {} --phase log-append",
                facts.host.data_path()
            ),
        )];
    };
    let time = figure.value * syncs(mysql);
    let value = format!(
        "{value}; at most {} commits/s one by one, {} in such groups",
        number(1.0 / time),
        number(group / time)
    );
    let judged = match figure.value > SLOW_SYNC_S {
        true => Judgement::consider(
            value,
            "Put the logs on a device with faster syncs, or let more sessions commit together \
             (binlog_group_commit_sync_delay, binlog_commit_wait_usec).",
        ),
        false => Judgement::ok(value),
    };
    vec![judged.evidence(figure.times(1000.0).cite("ms a sync"))]
}
