//! PostgreSQL: durability, the WAL and checkpoints; and settings that do not apply yet.

use crate::check::{Area, Basis, Check, Judgement, format_count, of_postgres};
use crate::facts::Facts;
use crate::facts::postgres::Postgres;
use record::Bytes;
use ui::format::{number, percent, seconds};

/// Minimum number of checkpoints for meaningful shares.
const MIN_CHECKPOINTS: f64 = 5.0;
/// Maximum share of checkpoints that are requested before their time.
const MAX_REQUESTED_SHARE: f64 = 0.2;
/// Maximum share of the disk's sustained write rate for checkpoints.
const MAX_CHECKPOINT_SHARE: f64 = 0.5;
/// Factor by which another method must be faster for a finding.
const MIN_SPEED_RATIO: f64 = 1.1;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "postgres-durability",
        area: Area::Postgres,
        reads: "fsync, full_page_writes, synchronous_commit",
        rule: "fsync and full_page_writes are on, and a commit waits for its WAL.",
        source: "PostgreSQL, \"Write Ahead Log: Settings\"",
        basis: Basis::Documented,
        playbook: "commits-lost-at-power-cut",
        judge: durability,
    },
    Check {
        name: "wal-sync-method",
        area: Area::Postgres,
        reads: "wal_sync_method; with --measure, each method in turn on a file without a name in pg_wal",
        rule: "The method that is fastest on the device of the WAL in every turn, by a tenth or more.",
        source: "PostgreSQL, wal_sync_method; pg_test_fsync",
        basis: Basis::Documented,
        playbook: "slow-commits",
        judge: |facts| of_postgres(facts, sync_method),
    },
    Check {
        name: "checkpoint-spread",
        area: Area::Postgres,
        reads: "checkpoint_completion_target, checkpoint_timeout, buffers written by checkpoints",
        rule: "Checkpoints are spread over 0.9 of their interval, and take less than half of what the disk was measured to \
               sustain.",
        source: "PostgreSQL, checkpoint_completion_target",
        basis: Basis::Inferred,
        playbook: "checkpoints",
        judge: |facts| of_postgres(facts, spread),
    },
    Check {
        name: "max-wal-size",
        area: Area::Postgres,
        reads: "max_wal_size, checkpoints by time and on request",
        rule: "Fewer than a fifth of checkpoints are requested because the WAL has grown to max_wal_size.",
        source: "PostgreSQL, \"WAL Configuration\"",
        basis: Basis::Inferred,
        playbook: "checkpoints",
        judge: |facts| of_postgres(facts, wal_size),
    },
    Check {
        name: "postgres-settings-not-applied",
        area: Area::Postgres,
        reads: "pg_settings.pending_restart, pg_file_settings",
        rule: "Every setting of the files applies: none waits for a restart, and none is wrong.",
        source: "PostgreSQL, pg_settings and pg_file_settings",
        basis: Basis::Documented,
        playbook: "settings-lost-at-restart",
        judge: not_applied,
    },
];

fn durability(facts: &Facts) -> Vec<Judgement> {
    let Some(postgres) = &facts.postgres else {
        return Vec::new();
    };
    let is_off = |name: &str| postgres.text(name) == Some("off");
    let copies_on_write = facts.host.folders.iter().any(|folder| {
        let mount = folder.place.mount.as_ref();
        folder.what == "data"
            && mount.is_some_and(|mount| matches!(mount.kind.as_str(), "zfs" | "btrfs"))
    });
    let mut found = Vec::new();
    let set = |name: &str| format!("ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf()");
    if is_off("fsync") {
        found.push(
            Judgement::fix(
                "fsync: off",
                "A crash of the host can destroy the whole cluster.",
            )
            .command(set("fsync")),
        );
    }
    if is_off("full_page_writes") && !copies_on_write {
        found.push(
            Judgement::fix(
                "full_page_writes: off",
                "A page that is written by half when the power goes cannot be repaired.",
            )
            .command(set("full_page_writes")),
        );
    }
    if is_off("synchronous_commit") {
        found.push(
            Judgement::consider(
                "synchronous_commit: off",
                "A crash loses the last commits, up to three times wal_writer_delay of them. Set it off for single \
                 transactions that can be lost.",
            )
            .command(set("synchronous_commit")),
        );
    }
    if found.is_empty() {
        found.push(Judgement::ok(
            "fsync, full_page_writes and synchronous_commit are on",
        ));
    }
    found
}

fn sync_method(_: &Facts, postgres: &Postgres) -> Option<Judgement> {
    let now = postgres.text("wal_sync_method")?;
    let value = format!("wal_sync_method: {now}");
    let Some(measured) = &postgres.wal_sync else {
        let why = postgres.unmeasured.clone().unwrap_or_else(|| {
            "Measure the methods on the device of the WAL with --measure, which writes 16 MiB into a file that it removes."
                .to_owned()
        });
        return Some(Judgement::unknown(value, why));
    };
    let times: Vec<String> = measured
        .medians
        .iter()
        .map(|(method, time)| format!("{} {}", method.name(), seconds(*time)))
        .collect();
    let evidence = format!(
        "median of a write, measured now in turns: {}",
        times.join(", ")
    );
    let (best, fastest) = measured.medians.first()?;
    let own = measured
        .medians
        .iter()
        .find(|(method, _)| method.name() == now);
    let gain = own.map_or(1.0, |(_, time)| time / fastest.max(1e-9));
    Some(
        match measured.is_clear && gain > MIN_SPEED_RATIO {
            true => Judgement::consider(
                format!("{value}, {} times as long as {}", number(gain), best.name()),
                "Every commit waits for it.",
            )
            .command(format!(
                "ALTER SYSTEM SET wal_sync_method = '{}'; SELECT pg_reload_conf()",
                best.name()
            )),
            false => Judgement::ok(value),
        }
        .evidence(evidence),
    )
}

fn spread(facts: &Facts, postgres: &Postgres) -> Option<Judgement> {
    let target = postgres.number("checkpoint_completion_target")?;
    let timeout = postgres.quantity("checkpoint_timeout")?;
    let of = &postgres.statistics;
    let checkpoints = of.timed + of.requested;
    let value = format!(
        "checkpoint_completion_target: {target}, checkpoint_timeout: {} s",
        format_count(timeout)
    );
    if target < 0.7 {
        return Some(
            Judgement::consider(
                value,
                "Checkpoints write in a burst and then rest; spread them.",
            )
            .command(
                "ALTER SYSTEM SET checkpoint_completion_target = 0.9; SELECT pg_reload_conf()",
            ),
        );
    }
    let page = postgres.number("block_size").unwrap_or(8192.0);
    let each = of.checkpoint_buffers * page / checkpoints.max(1.0);
    let interval = of.seconds.map_or(timeout, |seconds| {
        (seconds / checkpoints.max(1.0)).min(timeout)
    });
    let rate = each / (interval * target).max(1.0);
    let Some(disk) = facts
        .evidence
        .page_writes(&facts.host.names_of("data"))
        .filter(|_| checkpoints >= MIN_CHECKPOINTS)
    else {
        return Some(Judgement::ok(value));
    };
    let disk = disk.times(16384.0 / (1 << 20) as f64);
    let rate = rate / (1 << 20) as f64;
    let value = format!("{value}; checkpoints write {} MiB/s", number(rate));
    Some(
        match rate > disk.value * MAX_CHECKPOINT_SHARE {
            true => Judgement::consider(
                value,
                "Checkpoints take more than half of the disk. Let them come less often.",
            )
            .command(format!(
                "ALTER SYSTEM SET checkpoint_timeout = '{} s'; SELECT pg_reload_conf()",
                (timeout * 2.0) as u64
            )),
            false => Judgement::ok(value),
        }
        .evidence(disk.cite("MiB/s of random writes")),
    )
}

fn wal_size(_: &Facts, postgres: &Postgres) -> Option<Judgement> {
    let size = postgres.quantity("max_wal_size")?;
    let of = &postgres.statistics;
    let checkpoints = of.timed + of.requested;
    let value = format!(
        "max_wal_size: {}; {} of {} checkpoints requested",
        Bytes(size as u64),
        format_count(of.requested),
        format_count(checkpoints)
    );
    let share = of.requested / checkpoints.max(1.0);
    Some(match checkpoints >= MIN_CHECKPOINTS && share > MAX_REQUESTED_SHARE {
        true => Judgement::consider(
            format!("{value} ({})", percent(share)),
            "Each checkpoint writes every page once more into the WAL when it is next changed. Let the WAL grow, where its \
             disk has room.",
        )
        .command(format!(
            "ALTER SYSTEM SET max_wal_size = '{}MB'; SELECT pg_reload_conf()",
            (size * 4.0 / 1_048_576.0) as u64
        )),
        false => Judgement::ok(value),
    })
}

fn not_applied(facts: &Facts) -> Vec<Judgement> {
    let Some(postgres) = &facts.postgres else {
        return Vec::new();
    };
    let waiting: Vec<&str> = postgres
        .settings
        .values()
        .filter(|one| one.pending_restart)
        .map(|one| one.name.as_str())
        .collect();
    let wrong = postgres.file_errors.iter().map(|one| {
        let name = one.name.as_deref().unwrap_or("a line");
        format!("{name}: {}", one.error.as_deref().unwrap_or("wrong"))
    });
    let wrong: Vec<String> = wrong.collect();
    let mut found = Vec::new();
    if !wrong.is_empty() {
        found.push(Judgement::fix(
            wrong.join("; "),
            "The server does not start again with this. Correct the file.",
        ));
    }
    if !waiting.is_empty() {
        found.push(Judgement::consider(
            format!("waiting for a restart: {}", waiting.join(", ")),
            "Restart when it suits, before a crash does.",
        ));
    }
    if found.is_empty() {
        found.push(Judgement::ok("all settings of the files apply"));
    }
    found
}
