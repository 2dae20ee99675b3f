//! Limits of open files, threads and asynchronous I/O.

use crate::check::{Area, Basis, Check, Judgement, format_count};
use crate::facts::Facts;
use crate::facts::limits::{hard_file_limits, unit_file_limit, uses_pam_limits};
use crate::facts::server::Server;

/// Share of a limit above which its use is reported.
const NEAR_LIMIT_SHARE: f64 = 0.8;
/// Minimum limit of open files of a server, which opens a file for each table, segment or connection.
const MIN_OPEN_FILES: u64 = 16_384;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "file-limit",
        area: Area::Host,
        reads: "/proc/PID/limits and /proc/PID/fd of the running server, LimitNOFILE of its unit",
        rule: "A database server may open 16,384 files or more, as many as its unit gives, and has less than 80 % of its \
               limit open.",
        source: "MySQL Reference Manual, \"File Not Found and Similar Errors\"; PostgreSQL, \"Resource Limits\"; \
                 systemd.exec(5), LimitNOFILE",
        basis: Basis::Inferred,
        playbook: "too-many-open-files",
        judge: |facts| {
            facts
                .host
                .servers
                .iter()
                .map(|server| file_limit(server, facts))
                .collect()
        },
    },
    Check {
        name: "nofile-above-nr-open",
        area: Area::Host,
        reads: "/etc/security/limits.conf, limits.d, /etc/pam.d, fs.nr_open",
        rule: "No hard limit of open files is above fs.nr_open: setrlimit(2) fails with EPERM, and pam_limits rejects the \
               login. fs.file-max, which is often blamed, has no part in it.",
        source: "setrlimit(2); Linux, Documentation/admin-guide/sysctl/fs.rst, nr_open",
        basis: Basis::Documented,
        playbook: "login-rejected-by-limits",
        judge: nofile_above_nr_open,
    },
    Check {
        name: "file-max",
        area: Area::Host,
        reads: "fs.file-nr, fs.file-max",
        rule: "Less than 80 % of the files that the whole system may have open are open.",
        source: "Linux, Documentation/admin-guide/sysctl/fs.rst, file-max & file-nr",
        basis: Basis::Inferred,
        playbook: "too-many-open-files",
        judge: file_max,
    },
    Check {
        name: "threads",
        area: Area::Host,
        reads: "/proc/PID/limits, /proc/PID/status, pids.max of the control group, kernel.threads-max, vm.max_map_count",
        rule: "A server uses less than 80 % of the threads and memory maps that it may have; beyond, MySQL refuses \
               connections with error 1135, errno 11.",
        source: "pthread_create(3), EAGAIN; Linux, Documentation/admin-guide/sysctl/vm.rst, max_map_count",
        basis: Basis::Inferred,
        playbook: "cannot-create-thread",
        judge: |facts| {
            facts
                .host
                .servers
                .iter()
                .map(|server| threads(server, facts))
                .collect()
        },
    },
    Check {
        name: "aio-max-nr",
        area: Area::Host,
        reads: "fs.aio-nr, fs.aio-max-nr",
        rule: "Less than 80 % of the asynchronous requests that the system may have are taken: beyond, io_setup(2) gives \
               EAGAIN, and mysqld does not start (MY-012584).",
        source: "Linux, Documentation/admin-guide/sysctl/fs.rst, aio-nr & aio-max-nr; MySQL Reference Manual, \
                 innodb_use_native_aio",
        basis: Basis::Inferred,
        playbook: "io-setup-eagain",
        judge: aio,
    },
];

fn of(server: &Server) -> String {
    format!("{} (pid {})", server.program, server.pid)
}

fn file_limit(server: &Server, facts: &Facts) -> Judgement {
    let Some((soft, hard)) = server.files else {
        return Judgement::unknown(
            format!("{}: its limits cannot be read", of(server)),
            "Run this as root, or as the user of the server.",
        );
    };
    let Some(soft) = soft else {
        return Judgement::ok(format!("{}: unlimited", of(server)));
    };
    let open = server
        .open_files
        .map_or("?".to_owned(), |open| format_count(open as f64));
    let value = format!(
        "{}: {open} of {} files open",
        of(server),
        format_count(soft as f64)
    );
    let ceiling = facts.host.sysctl_number("fs.nr_open").unwrap_or(1 << 20);
    let wanted = (MIN_OPEN_FILES * 4).max(soft * 2).min(ceiling);
    let command = format!(
        "systemctl edit {} # [Service] LimitNOFILE={wanted}; then restart it",
        unit(server)
    );
    let advice = format!(
        "Raise the limit of the service to {} or more, not above fs.nr_open ({}). The hard limit is {}.",
        format_count(wanted as f64),
        format_count(ceiling as f64),
        hard.map_or("unlimited".to_owned(), |hard| format_count(hard as f64))
    );
    let is_near = server
        .open_files
        .is_some_and(|open| open as f64 >= soft as f64 * NEAR_LIMIT_SHARE);
    // Each process of PostgreSQL has its own limit, and keeps at most max_files_per_process files open.
    let enough = if server.program == "postgres" {
        1024
    } else {
        MIN_OPEN_FILES
    };
    let given = unit_limit(server, facts, ceiling).filter(|(_, files)| *files > soft);
    match given {
        _ if is_near => Judgement::fix(value, advice).command(command),
        Some((place, files)) => Judgement::consider(
            format!(
                "{value}; LimitNOFILE is {} in {place}",
                format_count(files as f64)
            ),
            "It was started before that was written: reload systemd, and restart it.",
        )
        .command(format!(
            "systemctl daemon-reload; systemctl restart {}",
            unit(server)
        )),
        None if soft < enough => Judgement::consider(value, advice).command(command),
        None => Judgement::ok(value),
    }
}

/// The file that sets the limit of open files in the server's systemd unit, and the limit.
fn unit_limit(server: &Server, facts: &Facts, ceiling: u64) -> Option<(String, u64)> {
    let unit = server.unit.as_deref()?;
    let limit = unit_file_limit(facts.host.root.system(), unit)?;
    // systemd lowers limits above fs.nr_open to it.
    let files = limit.files.unwrap_or(ceiling).min(ceiling);
    Some((limit.place.display().to_string(), files))
}

/// The systemd unit that runs a server, or the usual unit of the program.
fn unit(server: &Server) -> &str {
    if let Some(unit) = &server.unit {
        return unit;
    }
    match server.program.as_str() {
        "mariadbd" => "mariadb",
        "mysqld" => "mysql",
        "postgres" => "postgresql",
        "clickhouse-serv" => "clickhouse-server",
        other => other,
    }
}

fn nofile_above_nr_open(facts: &Facts) -> Vec<Judgement> {
    let etc = facts.host.root.system().join("etc");
    let Some(ceiling) = facts.host.sysctl_number("fs.nr_open") else {
        return Vec::new();
    };
    let limits = hard_file_limits(&etc);
    let above = limits
        .iter()
        .filter(|limit| limit.files.is_none_or(|files| files > ceiling));
    let shown = format_count(ceiling as f64);
    let uses_pam = uses_pam_limits(&etc);
    let mut found: Vec<Judgement> = above
        .map(|limit| {
            let files = limit
                .files
                .map_or("unlimited".to_owned(), |files| format_count(files as f64));
            let value = format!(
                "{}: {} nofile {files}, and fs.nr_open is {shown}",
                limit.place, limit.domain
            );
            let advice = format!("Write at most {ceiling} there, or raise fs.nr_open first.");
            match uses_pam {
                true => Judgement::fix(value, advice),
                false => Judgement::consider(value, advice),
            }
            .command(format!(
                "sysctl -w fs.nr_open={}",
                limit.files.unwrap_or(ceiling).max(ceiling)
            ))
        })
        .collect();
    if found.is_empty() {
        found.push(Judgement::ok(format!(
            "{} hard limits of open files in limits.conf, none above fs.nr_open ({shown})",
            limits.len()
        )));
    }
    found
}

fn file_max(facts: &Facts) -> Vec<Judgement> {
    let Some(text) = facts.host.sysctl("fs.file-nr") else {
        return Vec::new();
    };
    let numbers: Vec<f64> = text
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let &[open, _, most] = &numbers[..] else {
        return Vec::new();
    };
    let value = format!(
        "fs.file-nr: {} of {} files open",
        format_count(open),
        format_count(most)
    );
    vec![match open >= most * NEAR_LIMIT_SHARE {
        true => Judgement::fix(
            value,
            "Raise fs.file-max; beyond it open(2) gives ENFILE to every program.",
        )
        .command(format!("sysctl -w fs.file-max={}", (most * 2.0) as u64)),
        false => Judgement::ok(value),
    }]
}

fn threads(server: &Server, facts: &Facts) -> Judgement {
    let used = server.threads.unwrap_or(0);
    // A thread has two memory maps: its stack and the guard page below it.
    let limits = [
        (
            server.processes.flatten(),
            used,
            "LimitNPROC of the service",
        ),
        (
            server.group.map(|(most, _)| most),
            server.group.map_or(0, |(_, now)| now),
            "TasksMax of the service",
        ),
        (
            facts.host.sysctl_number("kernel.threads-max"),
            used,
            "kernel.threads-max",
        ),
        (
            facts.host.sysctl_number("vm.max_map_count"),
            server.maps.unwrap_or(0),
            "vm.max_map_count",
        ),
    ];
    let known = limits.iter().filter_map(|(most, used, name)| {
        let most = most.filter(|most| *most > 0)?;
        Some((*used as f64 / most as f64, *used, most, *name))
    });
    let Some((share, used, most, name)) = known.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Judgement::unknown(
            format!("{}: its limits cannot be read", of(server)),
            "Run this as root.",
        );
    };
    let value = format!(
        "{}: {} of {} by {name}",
        of(server),
        format_count(used as f64),
        format_count(most as f64)
    );
    match share >= NEAR_LIMIT_SHARE {
        true => Judgement::fix(
            value,
            format!("Raise {name}, or lower the number of connections."),
        ),
        false => Judgement::ok(value),
    }
}

fn aio(facts: &Facts) -> Vec<Judgement> {
    let host = &facts.host;
    let (Some(used), Some(most)) = (
        host.sysctl_number("fs.aio-nr"),
        host.sysctl_number("fs.aio-max-nr"),
    ) else {
        return Vec::new();
    };
    let value = format!(
        "fs.aio-nr: {} of {}",
        format_count(used as f64),
        format_count(most as f64)
    );
    vec![match used as f64 >= most as f64 * NEAR_LIMIT_SHARE {
        true => Judgement::fix(
            value,
            "Raise fs.aio-max-nr, so that a restarted server gets its requests again.",
        )
        .command(format!(
            "sysctl -w fs.aio-max-nr={}",
            (most * 4).max(1 << 20)
        )),
        false => Judgement::ok(value),
    }]
}
