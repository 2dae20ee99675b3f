//! The memory limit of the control groups that this process is in.

use std::path::{Path, PathBuf};

use record::Bytes;

use crate::mounts::{Mount, Mounts};
use crate::process::group_membership;
use crate::root::{Root, attribute, number};

/// The lowest memory limit of this process's control group and its visible ancestors. The page cache counts against
/// it, so a larger file cannot be cached completely.
///
/// Version 2 has `memory.max`, and `memory.high` above which memory is reclaimed
/// (Documentation/admin-guide/cgroup-v2.rst); version 1 has `memory.limit_in_bytes`
/// (Documentation/admin-guide/cgroup-v1/memory.rst). Both may be mounted at once, and then only one of them has the
/// memory controller.
pub(super) fn memory_limit(root: &Root) -> Option<Bytes> {
    let groups = attribute(&root.proc.join("self/cgroup"))?;
    let mounts = Mounts::read(root).ok()?;
    groups
        .lines()
        .filter_map(|line| {
            let (controllers, path) = group_membership(line)?;
            if controllers.is_empty() {
                let mount = mounts.iter().find(|mount| mount.kind == "cgroup2")?;
                tightest(root, mount, path, &["memory.max", "memory.high"])
            } else if has(controllers, "memory") {
                let mount = mounts
                    .iter()
                    .find(|mount| mount.kind == "cgroup" && has(&mount.super_options, "memory"))?;
                tightest(root, mount, path, &["memory.limit_in_bytes"])
            } else {
                None
            }
        })
        .min()
}

fn has(list: &str, word: &str) -> bool {
    list.split(',').any(|one| one == word)
}

/// The smallest number in these files, from the group's folder up to the mount point of the hierarchy.
fn tightest(root: &Root, mount: &Mount, group: &str, files: &[&str]) -> Option<Bytes> {
    let top = located(root, &mount.point);
    folder(&top, mount, group)
        .ancestors()
        .take_while(|folder| folder.starts_with(&top))
        .flat_map(|folder| files.iter().map(move |file| folder.join(file)))
        // `max` (version 2) and the largest number of whole pages (version 1) mean no limit; the first does not parse
        // as a number, the second is larger than any memory.
        .filter_map(|file| number::<u64>(&file))
        .min()
        .map(Bytes)
}

/// The folder of a group. A mount shows the hierarchy from its own root down; a process in a container may have a path
/// outside of that (`/../..`), and then the mount point itself is its group.
fn folder(top: &Path, mount: &Mount, group: &str) -> PathBuf {
    match Path::new(group).strip_prefix(&mount.root) {
        Ok(inside) if !group.split('/').any(|part| part == "..") => top.join(inside),
        _ => top.to_path_buf(),
    }
}

/// Path of a kernel folder under this root; hierarchies are usually mounted under `/sys`.
fn located(root: &Root, path: &Path) -> PathBuf {
    match path.strip_prefix("/sys") {
        Ok(rest) => root.sys.join(rest),
        Err(_) => root.locate(path),
    }
}
