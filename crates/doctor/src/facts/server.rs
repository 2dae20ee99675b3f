//! Running database servers, with their limits.

use linux::Root;
use linux::process::group_membership;
use linux::root::{attribute, names_in};

/// Names of programs that count as database servers.
const PROGRAMS: [&str; 6] = [
    "mariadbd",
    "mysqld",
    "postgres",
    "mongod",
    "redis-server",
    "clickhouse-serv",
];

/// A limit of a process; `None` for unlimited.
pub(crate) type Limit = Option<u64>;

/// A running database server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) pid: u32,
    pub(crate) program: String,
    /// Soft and hard limit of open files.
    pub(crate) files: Option<(Limit, Limit)>,
    /// Soft limit of processes and threads of its user.
    pub(crate) processes: Option<Limit>,
    /// Number of open files; `None` where they may not be listed.
    pub(crate) open_files: Option<u64>,
    pub(crate) threads: Option<u64>,
    /// Number of memory maps.
    pub(crate) maps: Option<u64>,
    /// `pids.max` and `pids.current` of its control group; `None` without a limit.
    pub(crate) group: Option<(u64, u64)>,
    /// Name of the systemd unit that runs it, such as `mariadb.service`.
    pub(crate) unit: Option<String>,
    /// NUMA nodes whose memory the process may use (`Mems_allowed_list`).
    pub(crate) nodes: Option<String>,
}

/// The running servers, by process id. Of PostgreSQL's processes only the postmaster counts.
pub(crate) fn servers(root: &Root) -> linux::Result<Vec<Server>> {
    let mut found = Vec::new();
    for name in names_in(&root.proc)? {
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        found.extend(server(root, pid));
    }
    let pids: Vec<u32> = found.iter().map(|(server, _)| server.pid).collect();
    found.retain(|(_, parent)| !pids.contains(parent));
    Ok(found.into_iter().map(|(server, _)| server).collect())
}

/// The server with this process id, and the id of its parent; `None` for other programs.
fn server(root: &Root, pid: u32) -> Option<(Server, u32)> {
    let folder = root.proc.join(pid.to_string());
    let program = attribute(&folder.join("comm"))?;
    if !PROGRAMS.contains(&program.as_str()) {
        return None;
    }
    let status = attribute(&folder.join("status")).unwrap_or_default();
    let field = |name: &str| -> Option<&str> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim())
    };
    let limits = attribute(&folder.join("limits")).unwrap_or_default();
    let cgroup = attribute(&folder.join("cgroup")).unwrap_or_default();
    let count = |text: Option<String>| text.map(|text| text.lines().count() as u64);
    let server = Server {
        pid,
        files: limit(&limits, "Max open files"),
        processes: limit(&limits, "Max processes").map(|(soft, _)| soft),
        open_files: names_in(&folder.join("fd"))
            .ok()
            .map(|names| names.len() as u64)
            .filter(|count| *count > 0),
        threads: field("Threads").and_then(|text| text.parse().ok()),
        maps: count(attribute(&folder.join("maps"))),
        group: group(root, &cgroup),
        unit: unit(&cgroup),
        nodes: field("Mems_allowed_list").map(str::to_owned),
        program,
    };
    let parent = field("PPid")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    Some((server, parent))
}

/// Soft and hard limit from a line of `/proc/PID/limits` (proc_pid_limits(5)).
fn limit(limits: &str, name: &str) -> Option<(Limit, Limit)> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = line.split_whitespace();
    let mut one = || -> Option<Limit> {
        match words.next()? {
            "unlimited" => Some(None),
            number => number.parse().ok().map(Some),
        }
    };
    Some((one()?, one()?))
}

/// Maximum and current number of processes of a control group, version 1 or 2 (cgroups(7)).
fn group(root: &Root, cgroup: &str) -> Option<(u64, u64)> {
    let all = root.sys.join("fs/cgroup");
    let folder = groups(cgroup).find_map(|(controllers, path)| match controllers {
        "" => Some(all.join(path)),
        "pids" => Some(all.join("pids").join(path)),
        _ => None,
    })?;
    let number = |name: &str| attribute(&folder.join(name))?.parse().ok();
    Some((number("pids.max")?, number("pids.current")?))
}

/// The systemd unit, from the name of the control group.
fn unit(cgroup: &str) -> Option<String> {
    let mut names = groups(cgroup).filter_map(|(_, path)| path.split('/').next_back());
    names
        .find(|name| name.ends_with(".service"))
        .map(str::to_owned)
}

/// The controllers of each hierarchy and the path in it. Version 2, which is last, has no controllers.
fn groups(cgroup: &str) -> impl Iterator<Item = (&str, &str)> {
    let groups = cgroup.lines().filter_map(group_membership);
    groups.map(|(controllers, path)| (controllers, path.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_unlimited_is_none() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max processes             63704                unlimited            processes \n\
                    Max open files            1024                 524288               files     \n";
        assert_eq!(
            limit(text, "Max open files"),
            Some((Some(1024), Some(524_288)))
        );
        assert_eq!(limit(text, "Max processes"), Some((Some(63_704), None)));
        assert_eq!(limit(text, "Max locked memory"), None);
    }

    #[test]
    fn control_groups_of_both_versions_name_the_unit() {
        for (cgroup, name) in [
            (
                "0::/system.slice/mariadb.service\n",
                Some("mariadb.service"),
            ),
            (
                "8:pids:/system.slice/system-postgresql.slice/postgresql@15-main.service\n0::/\n",
                Some("postgresql@15-main.service"),
            ),
            ("0::/user.slice/session-1.scope\n", None),
            ("", None),
        ] {
            assert_eq!(unit(cgroup).as_deref(), name, "{cgroup}");
        }
    }
}
