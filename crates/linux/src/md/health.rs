//! md's records of its members' media: sectors that were unreadable and rewritten, and those that md gave up.

use record::Bytes;

use super::sync::{Sectors, Sync};
use crate::root::{attribute, names_in, number};

/// Health of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The kernel's name, such as `nvme1n1`.
    pub name: String,
    /// Slot of the member in the array.
    pub slot: u32,
    /// Number of sectors that could not be read, were rewritten from the other members, and could then be read
    /// (`errors`; superblocks of version 1 keep it).
    pub errors: u64,
    /// Bytes that md considers unreadable, and leaves out of a check (`bad_blocks`: a list of sectors and lengths). A
    /// lower bound, since the list is truncated to the page of sysfs.
    pub bad: Bytes,
}

impl Sync {
    /// Health of each member with a slot, ordered by slot. Empty if nothing is shown.
    pub fn health(&self) -> Vec<Health> {
        let names = names_in(self.folder()).unwrap_or_default();
        let mut members: Vec<Health> = names
            .iter()
            .filter_map(|entry| {
                let entry = entry.to_str()?;
                let own = self.folder().join(entry);
                let bad = attribute(&own.join("bad_blocks")).unwrap_or_default();
                Some(Health {
                    name: entry.strip_prefix("dev-")?.replace('!', "/"),
                    // "none" does not parse as a number.
                    slot: number(&own.join("slot"))?,
                    errors: number(&own.join("errors")).unwrap_or(0),
                    bad: sum(&bad),
                })
            })
            .collect();
        members.sort_by_key(|member| member.slot);
        members
    }
}

impl Sync {
    /// True if md has a member to replace and a spare for it: it was requested (`mdadm --replace`), or writes to the
    /// member failed. md begins as soon as it is idle. The array is not degraded meanwhile, and md's other work does
    /// not end for it (`want_replacement` in linux, Documentation/admin-guide/md.rst).
    pub fn is_to_replace(&self) -> bool {
        let names = names_in(self.folder()).unwrap_or_default();
        let members = names
            .iter()
            .filter_map(|entry| entry.to_str())
            .filter(|entry| entry.starts_with("dev-"))
            .filter_map(|entry| {
                let own = self.folder().join(entry);
                let has_place = number::<u32>(&own.join("slot")).is_some();
                Some((has_place, attribute(&own.join("state"))?))
            });
        let (mut wants, mut spare) = (false, false);
        for (has_place, state) in members {
            let is = |word| state.split(',').any(|part| part == word);
            wants |= has_place && is("want_replacement");
            spare |= !has_place && is("spare") && !is("faulty");
        }
        wants && spare
    }
}

/// The sum of the lengths, in lines of a sector and a length.
fn sum(list: &str) -> Bytes {
    let lengths = list.lines().filter_map(|line| {
        let (_, length) = line.trim().split_once(' ')?;
        length.trim().parse::<u64>().ok()
    });
    Sectors(lengths.fold(0, u64::saturating_add)).bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use std::fs;

    use super::*;
    use crate::Root;
    use crate::block::Devices;

    #[test]
    fn members_are_listed_with_their_read_errors_and_a_wanted_replacement() {
        let place = tempfile::tempdir().unwrap();
        let root = Root::under(place.path());
        let folder = root.sys.join("class/block/md0");
        for (name, slot, errors, bad) in [
            ("vdb", "1", "0", ""),
            ("vda", "0", "24", "2048 8\n4096 16\n"),
            ("vdc", "none", "3", ""),
        ] {
            let own = folder.join("md").join(format!("dev-{name}"));
            fs::create_dir_all(&own).unwrap();
            fs::write(own.join("slot"), format!("{slot}\n")).unwrap();
            fs::write(own.join("errors"), format!("{errors}\n")).unwrap();
            fs::write(own.join("bad_blocks"), bad).unwrap();
        }
        fs::write(folder.join("dev"), "9:0\n").unwrap();
        fs::write(folder.join("size"), "2048\n").unwrap();
        let devices = Devices::read(&root).unwrap();
        let sync = Sync::of(&root, devices.named("md0").unwrap());
        for (vda, vdc, is_to_replace) in [
            ("in_sync", "spare", false),
            ("in_sync,want_replacement", "spare", true),
            ("in_sync,want_replacement", "faulty", false),
            ("in_sync,want_replacement", "faulty,spare", false),
        ] {
            for (name, state) in [("vda", vda), ("vdb", "in_sync"), ("vdc", vdc)] {
                let own = folder.join("md").join(format!("dev-{name}"));
                fs::write(own.join("state"), format!("{state}\n")).unwrap();
            }
            assert_eq!(sync.is_to_replace(), is_to_replace, "{vda} and {vdc}");
        }
        let member = |name: &str, slot, errors, bad| Health {
            name: name.to_owned(),
            slot,
            errors,
            bad: Bytes(bad),
        };
        assert_eq!(
            sync.health(),
            [member("vda", 0, 24, 24 * 512), member("vdb", 1, 0, 0)]
        );
    }
}
