//! md's work on arrays that share a disk. md works on one of them at a time: the second waits until the first is done,
//! and shows `delayed` in `sync_completed`. A check that has reached `sync_max` is not done (linux, drivers/md/md.c:
//! md_do_sync and match_mddev_units).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use record::sample::SyncAction;

use super::sync::Sync;
use crate::root::{attribute, names_in};

/// An array that shares a disk with another one, and on which md is not idle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompetingArray {
    /// The kernel's name, such as `md1`.
    pub name: String,
    /// md's action on it, in progress or pending.
    pub action: SyncAction,
}

impl Sync {
    /// The arrays that share a disk with this one and on which md is not idle, ordered by name. Arrays that cannot be
    /// read are left out, since they may have been stopped.
    pub fn competing(&self) -> Vec<CompetingArray> {
        let Some(block) = self.folder().parent().and_then(Path::parent) else {
            return Vec::new();
        };
        let names = names_in(block).unwrap_or_default();
        let names = names.iter().filter_map(|name| name.to_str());
        let mut busy: Vec<CompetingArray> = names
            .filter(|name| name.starts_with("md"))
            .filter(|name| block.join(name).join("md") != self.folder())
            .filter_map(|name| {
                let action = attribute(&block.join(name).join("md/sync_action"))?;
                Some(CompetingArray {
                    name: name.to_owned(),
                    action: SyncAction::from_name(&action)
                        .filter(|action| *action != SyncAction::Idle)?,
                })
            })
            .collect();
        if !busy.is_empty() {
            let own = disks(self.folder(), block);
            busy.retain(|one| !disks(&block.join(&one.name).join("md"), block).is_disjoint(&own));
        }
        busy.sort_by(|one, other| one.name.cmp(&other.name));
        busy
    }
}

/// The disks of the members of an array: the members themselves, or their disks if they are partitions.
fn disks(folder: &Path, block: &Path) -> BTreeSet<PathBuf> {
    let entries = names_in(folder).unwrap_or_default();
    let members = entries
        .iter()
        .filter_map(|entry| entry.to_str()?.strip_prefix("dev-"));
    members
        .filter_map(|member| {
            let own = fs::canonicalize(block.join(member)).ok()?;
            // The folder of a partition is inside that of its disk.
            match own.join("partition").exists() {
                true => own.parent().map(Path::to_path_buf),
                false => Some(own),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::Root;
    use crate::block::Devices;

    /// The disks and partitions that an array has as members.
    type Members<'a> = &'a [(&'a str, &'a str)];

    /// Arrays over partitions, each with md's action on it, as in sysfs: with links to the partitions, whose folders
    /// are inside those of their disks.
    fn arrays(arrays: &[(&str, &str, Members<'_>)]) -> (tempfile::TempDir, Root) {
        let place = tempfile::tempdir().unwrap();
        let root = Root::under(place.path());
        let block = root.sys.join("class/block");
        fs::create_dir_all(&block).unwrap();
        for (number, (name, action, members)) in arrays.iter().enumerate() {
            let md = block.join(name).join("md");
            fs::create_dir_all(&md).unwrap();
            fs::write(block.join(name).join("dev"), format!("9:{number}\n")).unwrap();
            fs::write(block.join(name).join("size"), "2048\n").unwrap();
            fs::write(md.join("sync_action"), format!("{action}\n")).unwrap();
            for (disk, part) in *members {
                let own = root.sys.join("devices").join(disk).join(part);
                fs::create_dir_all(&own).unwrap();
                fs::write(own.join("partition"), "1\n").unwrap();
                fs::create_dir_all(md.join(format!("dev-{part}"))).unwrap();
                symlink(&own, block.join(part)).unwrap();
            }
        }
        (place, root)
    }

    fn competing(root: &Root) -> Vec<(String, SyncAction)> {
        let devices = Devices::read(root).unwrap();
        let sync = Sync::of(root, devices.named("md0").unwrap());
        let found = sync.competing().into_iter();
        found.map(|one| (one.name, one.action)).collect()
    }

    #[test]
    fn of_other_arrays_those_count_that_share_a_disk_and_are_busy() {
        let own: (&str, &str, Members<'_>) = ("md0", "check", &[("sda", "sda1"), ("sdb", "sdb1")]);
        let (_place, root) = arrays(&[
            own,
            ("md1", "recover", &[("sdb", "sdb2"), ("sdc", "sdc2")]),
            ("md2", "recover", &[("sdd", "sdd1")]),
            ("md3", "idle", &[("sda", "sda3")]),
            ("md_home", "resync", &[("sda", "sda4")]),
        ]);
        assert_eq!(
            competing(&root),
            [
                ("md1".to_owned(), SyncAction::Recover),
                ("md_home".to_owned(), SyncAction::Resync)
            ]
        );
        let (_place, root) = arrays(&[own]);
        assert_eq!(competing(&root), []);
    }
}
