//! Placement: the devices that the parts of a database lie on, and faster devices for them.

use crate::check::{Area, Basis, Check, Judgement};
use crate::facts::Facts;
use crate::facts::evidence::EvidenceFigure;
use crate::facts::host::Folder;

/// Factor by which another device must be faster for a finding.
const MIN_SPEED_RATIO: f64 = 1.5;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "mysql-placement",
        area: Area::Mysql,
        reads: "datadir, innodb_log_group_home_dir, log_bin_basename, innodb_doublewrite_dir, tmpdir, /proc/self/mountinfo",
        rule: "Logs lie on the device with the fastest syncs, and tables on that with the most random writes, of those that \
               were measured; tmpdir is not on the root disk or in memory that is needed.",
        source: "MySQL Reference Manual, \"Optimizing InnoDB Disk I/O\"",
        basis: Basis::Inferred,
        playbook: "placement",
        judge: |facts| {
            if facts.mysql.is_some() {
                place(facts, LOGS_OF_MYSQL)
            } else {
                Vec::new()
            }
        },
    },
    Check {
        name: "postgres-placement",
        area: Area::Postgres,
        reads: "data_directory, pg_wal, tablespaces, /proc/self/mountinfo",
        rule: "The WAL lies on the device with the fastest syncs, and tables on that with the most random writes, of those \
               that were measured.",
        source: "PostgreSQL, \"WAL Internals\"",
        basis: Basis::Inferred,
        playbook: "placement",
        judge: |facts| {
            if facts.postgres.is_some() {
                place(facts, LOGS_OF_POSTGRES)
            } else {
                Vec::new()
            }
        },
    },
];

const LOGS_OF_MYSQL: &[&str] = &["redo log", "binary log"];
const LOGS_OF_POSTGRES: &[&str] = &["WAL"];

fn place(facts: &Facts, logs: &[&str]) -> Vec<Judgement> {
    let host = &facts.host;
    if host.folders.is_empty() {
        return vec![Judgement::unknown(
            "the server's folders are not on this host",
            "Run this where the server runs.",
        )];
    }
    let parts: Vec<String> = host
        .folders
        .iter()
        .map(|folder| {
            let device = host
                .device_of(folder)
                .map_or("no device", |device| &device.name);
            format!("{} on {device}", folder.what)
        })
        .collect();
    let value = parts.join(", ");
    let mut found = Vec::new();
    for folder in &host.folders {
        if logs.contains(&folder.what) {
            found.extend(slower(
                facts,
                folder,
                &value,
                "ms a sync",
                |facts, names| {
                    facts
                        .evidence
                        .commit_seconds(names)
                        .map(|figure| (1.0 / figure.value, figure.times(1000.0)))
                },
            ));
        } else if folder.what == "data" {
            found.extend(slower(
                facts,
                folder,
                &value,
                "writes of 16 KiB a second",
                |facts, names| {
                    facts
                        .evidence
                        .page_writes(names)
                        .map(|figure| (figure.value, figure))
                },
            ));
        }
    }
    if found.is_empty() {
        found.push(Judgement::ok(value));
    }
    found
}

/// Speed of a device (higher is faster), with the measured figure.
type Speed = (f64, EvidenceFigure);

/// Finding where another writable device of the host is faster for the purpose of a folder.
fn slower(
    facts: &Facts,
    folder: &Folder,
    value: &str,
    unit: &str,
    speed: fn(&Facts, &[String]) -> Option<Speed>,
) -> Option<Judgement> {
    let host = &facts.host;
    let own_names = host.names_of(folder.what);
    let (own, own_figure) = speed(facts, &own_names)?;
    let others = host
        .mounts
        .iter()
        .filter(|mount| !mount.device.is_anonymous() && !mount.is_read_only());
    let others = others.filter_map(|mount| {
        let device = host.devices.get(mount.device)?;
        let names = host.names_below(device);
        let is_apart = !names.iter().any(|name| own_names.contains(name));
        let (rate, figure) = speed(facts, &names).filter(|_| is_apart)?;
        Some((
            rate,
            figure,
            mount.point.display().to_string(),
            device.name.clone(),
        ))
    });
    let (best, figure, point, device) = others.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best > own * MIN_SPEED_RATIO).then(|| {
        Judgement::consider(
            value,
            format!("The {} would be faster on {device}, which is mounted at {point}, if it may share that.", folder.what),
        )
        .evidence(format!("{}; {device}: {}", own_figure.cite(unit), figure.cite(unit)))
    })
}
