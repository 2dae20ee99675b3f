//! Safety of data: backups, restore tests, and replicas.

use jiff::tz::TimeZone;

use crate::check::{Area, Basis, Check, Judgement};
use crate::facts::Facts;
use crate::facts::backup::Safety;
use ui::units::span;

/// Maximum age of the last restore test, in days.
const MAX_RESTORE_AGE_DAYS: i32 = 90;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "backup-age",
        area: Area::Safety,
        reads: "--backup PLACE (xtrabackup, mariabackup, mysqldump, pgBackRest, pg_basebackup, WAL archive), the server's \
                history of backups, pg_stat_archiver, snapshots of EBS",
        rule: "The last whole backup is no older than --rpo.",
        source: "Google, Site Reliability Engineering, \"Data Integrity\"",
        basis: Basis::Inferred,
        playbook: "backups",
        judge: |facts| with(facts, age),
    },
    Check {
        name: "backup-incomplete",
        area: Area::Safety,
        reads: "the last line of dumps",
        rule: "A dump ends with the line that marks it as complete.",
        source: "mysqldump(1); pg_dump(1)",
        basis: Basis::Documented,
        playbook: "backups",
        judge: |facts| with(facts, incomplete),
    },
    Check {
        name: "backup-device",
        area: Area::Safety,
        reads: "the device of --backup PLACE and of the data",
        rule: "A backup does not lie on the disks of the data.",
        source: "Google, Site Reliability Engineering, \"Data Integrity\"",
        basis: Basis::Inferred,
        playbook: "backups",
        judge: |facts| with(facts, device),
    },
    Check {
        name: "wal-archive-failing",
        area: Area::Safety,
        reads: "pg_stat_archiver",
        rule: "The last segment of the WAL was archived, and no later try failed.",
        source: "PostgreSQL, pg_stat_archiver",
        basis: Basis::Documented,
        playbook: "backups",
        judge: archive,
    },
    Check {
        name: "restore-tried",
        area: Area::Safety,
        reads: "--restored-on DATE",
        rule: "A backup was restored in the last 90 days.",
        source: "Google, Site Reliability Engineering, \"Data Integrity\"",
        basis: Basis::Inferred,
        playbook: "backups",
        judge: |facts| with(facts, restored),
    },
    Check {
        name: "replica-present",
        area: Area::Safety,
        reads: "SHOW REPLICAS, SHOW SLAVE HOSTS, pg_stat_replication",
        rule: "A primary has a replica.",
        source: "MySQL Reference Manual, \"Replication\"; PostgreSQL, \"High Availability\"",
        basis: Basis::Inferred,
        playbook: "no-replica",
        judge: replica,
    },
];

fn with(facts: &Facts, judge: fn(&Facts, &Safety) -> Vec<Judgement>) -> Vec<Judgement> {
    facts
        .safety
        .as_ref()
        .map_or(Vec::new(), |safety| judge(facts, safety))
}

fn age(_: &Facts, safety: &Safety) -> Vec<Judgement> {
    let searched = match safety.searched.is_empty() {
        true => "no place was named".to_owned(),
        false => format!("searched: {}", safety.searched.join(", ")),
    };
    let failed = match safety.failed.is_empty() {
        true => String::new(),
        false => format!(" ({})", safety.failed.join("; ")),
    };
    let Some(last) = safety.last() else {
        let value = format!("no backup was found; {searched}{failed}");
        return vec![
            match safety.searched.is_empty() || !safety.failed.is_empty() {
                true => Judgement::unknown(
                    value,
                    "Name where backups lie: --backup DIR, or --ebs-snapshots.",
                ),
                false => Judgement::fix(value, "Make a backup, and a timer that repeats it."),
            },
        ];
    };
    let seconds = safety.now.duration_since(last.ended).as_secs_f64().max(0.0);
    let value = format!("{}: {} of {} ago", last.place, last.kind, span(seconds));
    vec![match safety.rpo {
        Some(rpo) if seconds > rpo.as_secs_f64() => Judgement::fix(
            format!("{value}; --rpo is {}", span(rpo.as_secs_f64())),
            "All changes since then are lost with the data. Find out why none was made after it.",
        ),
        Some(rpo) => Judgement::ok(format!("{value}; --rpo is {}", span(rpo.as_secs_f64()))),
        None => Judgement::unknown(value, "Give how much may be lost: --rpo 24h."),
    }]
}

fn incomplete(_: &Facts, safety: &Safety) -> Vec<Judgement> {
    let parts = safety.backups.iter().filter(|backup| !backup.is_whole);
    parts
        .map(|backup| {
            Judgement::fix(
                format!("{}: does not end as a whole dump does", backup.place),
                "It was cut off: look for a full disk, or an error in its log.",
            )
        })
        .collect()
}

fn device(_: &Facts, safety: &Safety) -> Vec<Judgement> {
    let Some(last) = safety.last() else {
        return Vec::new();
    };
    let elsewhere = safety
        .backups
        .iter()
        .any(|backup| backup.is_with_data == Some(false));
    vec![match last.is_with_data {
        Some(true) if !elsewhere => Judgement::fix(
            format!("{}: on the disks of the data", last.place),
            "What destroys the data destroys the backup. Copy it to another disk, and to another place.",
        ),
        Some(_) => Judgement::ok(format!("{}: not only on the disks of the data", last.place)),
        None => return Vec::new(),
    }]
}

fn archive(facts: &Facts) -> Vec<Judgement> {
    let Some(postgres) = &facts.postgres else {
        return Vec::new();
    };
    if !matches!(postgres.text("archive_mode"), Some("on" | "always")) {
        return Vec::new();
    }
    let of = &postgres.statistics;
    let age = of
        .archived_age_s
        .map_or("never".to_owned(), |age| format!("{} ago", span(age)));
    vec![match of.archive_failing {
        true => Judgement::fix(
            format!("last archived: {age}; the last try failed"),
            "The WAL grows until its disk is full, and backups cannot be rolled forward. See the server's log for \
             archive_command.",
        ),
        false => Judgement::ok(format!("last archived: {age}")),
    }]
}

fn restored(_: &Facts, safety: &Safety) -> Vec<Judgement> {
    let Some(date) = safety.restored_on else {
        return vec![Judgement::unknown(
            "no restore is known",
            "A backup that was never restored is a hope. Restore one, check its data, and give the date with --restored-on.",
        )];
    };
    let today = safety.now.to_zoned(TimeZone::UTC).date();
    let days = date.until(today).map_or(0, |span| span.get_days());
    let value = format!("restored on {date}, {days} days ago");
    vec![match days > MAX_RESTORE_AGE_DAYS {
        true => Judgement::consider(value, "Restore one again: tools, keys and people change."),
        false => Judgement::ok(value),
    }]
}

fn replica(facts: &Facts) -> Vec<Judgement> {
    let count = match (&facts.mysql, &facts.postgres) {
        (Some(mysql), _) if mysql.sources.is_empty() => mysql.replicas.map(|count| count as f64),
        (_, Some(postgres)) if !postgres.statistics.is_replica => {
            Some(postgres.statistics.replicas)
        }
        _ => return Vec::new(),
    };
    vec![match count {
        Some(0.0) => Judgement::consider(
            "no replica is connected",
            "When this host fails, the service is down until a backup is restored. Have a replica on another host.",
        ),
        Some(count) => Judgement::ok(format!("{count} replicas are connected")),
        None => Judgement::unknown(
            "the server does not report its replicas",
            "Give the user REPLICATION SLAVE ADMIN, or REPLICATION MASTER ADMIN.",
        ),
    }]
}
