//! Binding of a plan to the disks that it was made for. Names change with a reboot or when a volume is attached again:
//! a user who confirms a plan confirms these disks, and not those that later have their names.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use linux::block::{DeviceNumber, Devices};
use linux::consent::{DestroyTarget, open_for_reading};
use linux::signature::Content;
use linux::{Root, process, root};
use record::Bytes;
use serde::{Deserialize, Serialize};

/// Identity of a disk, which distinguishes it from any other that may get its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DiskIdentity {
    /// Boot id of the host; with a different one, it may also be another host.
    pub boot: String,
    /// The disk's sequence number among all disks attached since the boot (`diskseq` in Linux,
    /// Documentation/ABI/stable/sysfs-block); `None` before Linux 5.15.
    pub diskseq: Option<u64>,
    /// The device's number; for a file, that of its file system and its inode.
    pub number: String,
    /// The worldwide unique name, or the serial number.
    pub identity: Option<String>,
    /// Size of the disk, in bytes.
    pub size_bytes: u64,
}

/// A disk of a plan: its path, and its identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedDisk {
    /// The path in the verb's arguments.
    pub path: PathBuf,
    /// Identity of the disk when the plan was made.
    pub seen: DiskIdentity,
}

impl FromStr for PlannedDisk {
    type Err = String;

    fn from_str(text: &str) -> Result<PlannedDisk, String> {
        serde_json::from_str(text).map_err(|why| format!("'{text}' is not a disk of a plan: {why}"))
    }
}

/// A device or file that a plan will overwrite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoundTarget {
    /// The kinds of signatures on it, such as `ext4`.
    pub content: Vec<String>,
    /// The disk of the plan.
    pub seen: DiskIdentity,
}

impl BoundTarget {
    /// The target of a claim. `devices` must have been read after the target was opened.
    ///
    /// # Errors
    /// The reason why it cannot be identified, as a sentence.
    pub fn of(
        claim: &DestroyTarget,
        devices: &Devices,
        root: &Root,
    ) -> Result<BoundTarget, String> {
        let shown = claim.path.display();
        let seen = DiskIdentity::of(&claim.file, claim.size, devices, root)
            .map_err(|why| format!("{shown}: {why}"))?;
        Ok(BoundTarget {
            content: content_names(&claim.content),
            seen,
        })
    }
}

/// The option that binds a verb to a disk of a plan.
pub const OPTION: &str = "--planned";

impl PlannedDisk {
    /// The arguments that bind a verb to this disk.
    pub fn arguments(&self) -> [String; 2] {
        // A path that is not UTF-8 cannot be represented in JSON; without a binding the verb is refused.
        let bound = serde_json::to_string(self).unwrap_or_default();
        [OPTION.to_owned(), bound]
    }
}

impl DiskIdentity {
    /// Identity of an open device or file. `devices` must have been read after it was opened and, if it is to be
    /// written, claimed: before that another disk may take its name.
    ///
    /// # Errors
    /// When the boot id is unknown, or the file cannot be examined; as a sentence.
    pub fn of(
        file: &File,
        size: Bytes,
        devices: &Devices,
        root: &Root,
    ) -> Result<DiskIdentity, String> {
        let unreadable = |why: std::io::Error| format!("it cannot be examined: {why}");
        let metadata = file.metadata().map_err(unreadable)?;
        let boot = process::boot_id(root).map_err(|why| why.to_string())?;
        let Some(number) = device_of(&metadata) else {
            return Ok(DiskIdentity {
                boot,
                diskseq: None,
                number: format!("{}/{}", metadata.dev(), metadata.ino()),
                identity: None,
                size_bytes: size.0,
            });
        };
        let device = devices.get(number);
        let disk = device.and_then(|device| match device.partition_of() {
            Some(disk) => devices.get(disk),
            None => Some(device),
        });
        let diskseq = disk.and_then(|disk| {
            let folder = root.sys.join("class/block").join(disk.sysfs_name());
            root::number(&folder.join("diskseq"))
        });
        Ok(DiskIdentity {
            boot,
            diskseq,
            number: number.to_string(),
            identity: device.and_then(linux::block::Device::identity),
            size_bytes: size.0,
        })
    }

    /// The arguments that bind a verb to this disk at `path`.
    pub fn binding_options(&self, path: &str) -> [String; 2] {
        let planned = PlannedDisk {
            path: path.into(),
            seen: self.clone(),
        };
        planned.arguments()
    }

    /// Reason why this identity differs from the present one, as a clause; `None` if it does not.
    fn differs(&self, now: &DiskIdentity) -> Option<&'static str> {
        if self.boot != now.boot {
            Some("the host was rebooted since, or is another one")
        } else if self.identity != now.identity {
            Some("its serial number is another")
        } else if self.size_bytes != now.size_bytes {
            Some("its size is another")
        } else if self.diskseq != now.diskseq || self.number != now.number {
            Some("a disk was attached under this name since")
        } else {
            None
        }
    }
}

/// The number of a device; `None` for a file.
fn device_of(metadata: &std::fs::Metadata) -> Option<DeviceNumber> {
    let is_device = metadata.file_type().is_block_device();
    is_device.then(|| DeviceNumber::from_raw(metadata.rdev()))
}

/// Checks that the claimed device or file is the one in the plan. Without a plan everything is accepted.
///
/// # Errors
/// A sentence, if it is another disk, or one that is not in the plan.
pub fn check(planned: &[PlannedDisk], claim: &DestroyTarget, root: &Root) -> Result<(), String> {
    agrees(planned, &claim.path, &claim.file, claim.size, root)
}

/// Checks that these paths lead to the disks of the plan, before anything is claimed: they are only read. Disks that
/// are written later must be checked again once they are claimed.
///
/// # Errors
/// As [`check`], with a sentence for each path that differs or cannot be opened.
pub fn check_reading(
    planned: &[PlannedDisk],
    paths: &[PathBuf],
    root: &Root,
) -> Result<(), Vec<String>> {
    if planned.is_empty() {
        return Ok(());
    }
    let one = |path: &PathBuf| {
        let opened = open_for_reading(path).map_err(|why| why.to_string())?;
        agrees(planned, path, &opened.file, opened.size, root)
    };
    let problems: Vec<String> = paths.iter().filter_map(|path| one(path).err()).collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Checks that an open file or device is the one in the plan under this path.
fn agrees(
    planned: &[PlannedDisk],
    path: &Path,
    file: &File,
    size: Bytes,
    root: &Root,
) -> Result<(), String> {
    if planned.is_empty() {
        return Ok(());
    }
    let shown = path.display();
    // One was given by a user, the other by a program that may have made it absolute.
    let whole = |path: &Path| std::path::absolute(path).ok();
    let is_known = |one: &&PlannedDisk| whole(&one.path) == whole(path);
    let known = planned.iter().find(is_known);
    let known = known.ok_or_else(|| {
        format!("{shown} is not among the disks that the plan was made of; make the plan again")
    })?;
    let devices = Devices::read(root).map_err(|why| why.to_string())?;
    let now =
        DiskIdentity::of(file, size, &devices, root).map_err(|why| format!("{shown}: {why}"))?;
    match known.seen.differs(&now) {
        None => Ok(()),
        Some(why) => Err(format!(
            "{shown} is not the disk that the plan was made of: {why}; make the plan again"
        )),
    }
}

/// Contents of a device or file and of its partitions, each name once, such as `ext4`.
pub fn content_names(content: &Content) -> Vec<String> {
    content.kinds().iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> DiskIdentity {
        DiskIdentity {
            boot: "b1".to_owned(),
            diskseq: Some(9),
            number: "259:1".to_owned(),
            identity: Some("vol1".to_owned()),
            size_bytes: 1 << 30,
        }
    }

    #[test]
    fn a_disk_that_took_the_name_of_another_is_not_the_disk_of_the_plan() {
        assert_eq!(seen().differs(&seen()), None);
        let others = [
            (
                DiskIdentity {
                    boot: "b2".to_owned(),
                    ..seen()
                },
                "rebooted",
            ),
            (
                DiskIdentity {
                    identity: None,
                    ..seen()
                },
                "serial number",
            ),
            (
                DiskIdentity {
                    size_bytes: 1 << 20,
                    ..seen()
                },
                "size",
            ),
            (
                DiskIdentity {
                    diskseq: Some(10),
                    ..seen()
                },
                "attached under",
            ),
            (
                DiskIdentity {
                    number: "259:2".to_owned(),
                    ..seen()
                },
                "attached under",
            ),
        ];
        for (now, reason) in others {
            let why = seen().differs(&now).unwrap();
            assert!(why.contains(reason), "{why}");
        }
    }

    /// A file in place of a disk, claimed under this name.
    fn claimed(path: &str) -> DestroyTarget {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        DestroyTarget {
            path: path.into(),
            file,
            device: None,
            size: Bytes(4096),
            content: Content::default(),
            related: Vec::new(),
            unreadable: 0,
        }
    }

    #[test]
    fn a_claimed_disk_must_be_of_the_plan_where_there_is_one() {
        let root = Root::host();
        let (one, other) = (claimed("/a"), claimed("/a"));
        let devices = Devices::read(&root).unwrap_or_default();
        let planned = |claim: &DestroyTarget, path: &str| PlannedDisk {
            path: path.into(),
            seen: DiskIdentity::of(&claim.file, claim.size, &devices, &root).unwrap(),
        };
        assert_eq!(check(&[], &one, &root), Ok(()));
        assert_eq!(check(&[planned(&one, "/a")], &one, &root), Ok(()));
        let moved = check(&[planned(&other, "/a")], &one, &root).unwrap_err();
        assert!(moved.contains("is not the disk"), "{moved}");
        let stray = check(&[planned(&one, "/b")], &one, &root).unwrap_err();
        assert!(stray.contains("not among the disks"), "{stray}");
    }

    #[test]
    fn a_disk_that_is_not_claimed_yet_is_compared_by_reading_it() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["a", "b"].map(|name| folder.path().join(name));
        for path in [&one, &other] {
            std::fs::write(path, [0; 4096]).unwrap();
        }
        let root = Root::host();
        let opened = open_for_reading(&one).unwrap();
        let devices = Devices::read(&root).unwrap_or_default();
        let seen = DiskIdentity::of(&opened.file, opened.size, &devices, &root).unwrap();
        let both = [one.clone(), other.clone()];
        let planned = both.clone().map(|path| PlannedDisk {
            path,
            seen: seen.clone(),
        });
        assert_eq!(check_reading(&[], &both, &root), Ok(()));
        assert_eq!(check_reading(&planned, &both[..1], &root), Ok(()));
        let wrong = check_reading(&planned, &both, &root).unwrap_err();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].contains("is not the disk"), "{wrong:?}");
        std::fs::remove_file(&one).unwrap();
        assert_eq!(check_reading(&planned, &both, &root).unwrap_err().len(), 2);
    }

    #[test]
    fn it_is_read_as_it_is_written_and_nothing_else_is() {
        let planned = PlannedDisk {
            path: "/dev/a".into(),
            seen: seen(),
        };
        let [option, text] = planned.arguments();
        assert_eq!(option, "--planned");
        assert_eq!(text.parse::<PlannedDisk>(), Ok(planned));
        for bad in ["", "{}", "/dev/a", r#"{"boot":1}"#] {
            assert!(bad.parse::<PlannedDisk>().is_err(), "{bad}");
        }
    }
}
