//! I/O of processes (proc_pid_io(5)).

use std::collections::HashMap;
use std::fs;

use record::Bytes;

use super::polled_file::lines;
use crate::process::group_membership;
use crate::root::{Root, attribute};

/// I/O counters of a process since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Bytes that it caused to be read from disks.
    pub read: Bytes,
    /// Bytes that it caused to be written to disks, without those that were truncated before.
    pub written: Bytes,
}

/// Counters of all processes that did any I/O, by process id. Processes that may not be examined are left out.
pub fn process_io(root: &Root) -> HashMap<u32, ProcessIo> {
    let mut all = HashMap::new();
    for entry in fs::read_dir(&root.proc).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let counters = fs::read(entry.path().join("io"));
        let counters = counters.map(|text| parse(&text)).unwrap_or_default();
        if counters != ProcessIo::default() {
            all.insert(pid, counters);
        }
    }
    all
}

fn parse(text: &[u8]) -> ProcessIo {
    let field = |wanted: &str| {
        let fields = lines(text).filter_map(|line| line.split_once(": "));
        let mut values = fields.filter(|(name, _)| *name == wanted);
        let value = values.next().and_then(|(_, value)| value.parse().ok());
        value.unwrap_or(0)
    };
    ProcessIo {
        read: Bytes(field("read_bytes")),
        written: Bytes(field("write_bytes")),
    }
}

/// The process of a thread; `None` if it has ended.
pub fn process_of_thread(root: &Root, thread: u32) -> Option<u32> {
    let status = fs::read(root.proc.join(thread.to_string()).join("status")).ok()?;
    let group = lines(&status).find_map(|line| line.strip_prefix("Tgid:"))?;
    group.trim().parse().ok()
}

/// The kernel's name of a process.
pub fn process_name(root: &Root, pid: u32) -> Option<String> {
    attribute(&root.proc.join(pid.to_string()).join("comm"))
}

/// Path of a process's control group in the unified hierarchy, or else in the one that counts I/O.
pub fn process_group(root: &Root, pid: u32) -> Option<String> {
    let text = fs::read(root.proc.join(pid.to_string()).join("cgroup")).ok()?;
    let mut groups = lines(&text).filter_map(|line| {
        let (controllers, path) = group_membership(line)?;
        let counts_io = controllers.split(',').any(|name| name == "blkio");
        (controllers.is_empty() || counts_io).then_some((counts_io, path))
    });
    let first = groups.next()?;
    let group = groups.find(|(counts_io, _)| *counts_io).unwrap_or(first);
    (group.1 != "/").then(|| group.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_groups_are_read_from_the_kernels_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        let process = root.proc.join("12");
        fs::create_dir_all(&process).unwrap();
        let put = |file: &str, text: &str| fs::write(process.join(file), text).unwrap();
        put(
            "io",
            "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\n\
             cancelled_write_bytes: 0\n",
        );
        put("comm", "mariadbd\n");
        put("cgroup", "0::/system.slice/mariadb.service\n");
        put("status", "Name:\tx\nTgid:\t12\n");
        let io = ProcessIo {
            read: Bytes(4096),
            written: Bytes(8192),
        };
        assert_eq!(process_io(&root), HashMap::from([(12, io)]));
        assert_eq!(process_name(&root, 12).unwrap(), "mariadbd");
        let group = || process_group(&root, 12);
        assert_eq!(group().unwrap(), "/system.slice/mariadb.service");
        put("cgroup", "4:memory:/m\n3:blkio:/db\n0::/\n");
        assert_eq!(group().unwrap(), "/db");
        put("cgroup", "0::/\n");
        assert_eq!(group(), None);
        assert_eq!(process_of_thread(&root, 12), Some(12));
        assert_eq!(process_of_thread(&root, 13), None);
    }
}
