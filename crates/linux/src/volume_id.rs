//! Ids of EBS volumes, and their disks on this host.
//!
//! On instances of the Nitro system the serial number of a volume's disk is the volume's id without the dash (EC2 User
//! Guide, "Amazon EBS volumes and NVMe"). udev makes links from it, which are missing in a container or an image
//! without its rules. Therefore a volume may be named by its id (`vol-0123456789abcdef0`), by the serial number
//! (`vol0123456789abcdef0`) or by the link, each optionally followed by the `-part1` of udev's links for a partition.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::block::{BlockDeviceKind, Device, Devices};
use crate::root::Root;

/// Prefix of udev's links to EBS volumes (60-persistent-storage.rules of systemd).
const LINK: &str = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_";
/// Numbers of hexadecimal digits of an id: the present one, and that of volumes created before 2018 (EC2 User Guide,
/// "Resource IDs").
const LENGTHS: [usize; 2] = [17, 8];
/// Maximum number of volumes that an error lists.
const MAX_LISTED_VOLUMES: usize = 8;

/// Id of an EBS volume, such as `vol-0123456789abcdef0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId {
    digits: String,
}

impl VolumeId {
    /// Parses an id, with its dash or, as a serial number, without.
    pub fn parse(word: &str) -> Option<VolumeId> {
        let digits = word.strip_prefix("vol")?;
        let digits = digits.strip_prefix('-').unwrap_or(digits);
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_id = LENGTHS.contains(&digits.len()) && digits.bytes().all(is_digit);
        is_id.then(|| VolumeId {
            digits: digits.to_owned(),
        })
    }

    /// The volume id of a disk, or of the disk of a partition.
    pub fn of(device: &Device) -> Option<VolumeId> {
        VolumeId::parse(device.serial.as_deref()?.trim())
    }

    /// The serial number of its disk.
    pub fn serial(&self) -> String {
        format!("vol{}", self.digits)
    }
}

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vol-{}", self.digits)
    }
}

/// Error of a volume without exactly one disk on this host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// No disk has the volume's id.
    #[error("{id} is not attached to this host, {}", listed(attached))]
    NotAttached {
        /// Id of the volume that was named.
        id: VolumeId,
        /// The attached volumes, with their nodes.
        attached: Vec<(VolumeId, String)>,
    },
    /// Several disks have it.
    #[error("{} have the serial number of {id}; name one of them by its path", nodes.join(" and "))]
    Several {
        /// Id of the volume that was named.
        id: VolumeId,
        /// Their nodes.
        nodes: Vec<String>,
    },
    /// The disk has no such partition.
    #[error("{node}, which is {id}, has no partition {partition}")]
    NoPartition {
        /// Id of the volume that was named.
        id: VolumeId,
        /// The disk's node.
        node: String,
        /// The partition's number.
        partition: u32,
    },
    /// The disks cannot be listed.
    #[error("the disk of {id} cannot be looked up: {why}")]
    Unknown {
        /// Id of the volume that was named.
        id: VolumeId,
        /// The error of the kernel's list.
        why: String,
    },
}

fn listed(attached: &[(VolumeId, String)]) -> String {
    if attached.is_empty() {
        return "on which no disk has the id of a volume: EBS shows it as the serial number, on instances of the Nitro \
                system"
            .to_owned();
    }
    let mut names: Vec<String> = attached
        .iter()
        .take(MAX_LISTED_VOLUMES)
        .map(|(id, node)| format!("{id} ({node})"))
        .collect();
    if attached.len() > MAX_LISTED_VOLUMES {
        names.push(format!("{} more", attached.len() - MAX_LISTED_VOLUMES));
    }
    format!("which has {}", names.join(", "))
}

/// Replaces a volume's id in an argument with the path of its disk: the whole word, or the part before an `=`
/// (`vol-0123456789abcdef0=ext4`). Another word is left unchanged, and so is a link that exists.
///
/// # Errors
/// When the volume is not one disk of this host.
pub fn name_disk(word: &mut OsString, root: &Root) -> Result<(), VolumeError> {
    let bytes = word.as_bytes();
    let end = bytes.iter().position(|&byte| byte == b'=');
    let (name, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
    let Some(name) = VolumeName::parse(OsStr::from_bytes(name), root) else {
        return Ok(());
    };
    let devices = Devices::read(root).map_err(|why| VolumeError::Unknown {
        id: name.id.clone(),
        why: why.to_string(),
    })?;
    let link = name.link();
    let found = match name.find(&devices) {
        Ok(disk) => disk.node(),
        // If sysfs hides the serial numbers, udev's link may exist.
        Err(VolumeError::NotAttached { .. }) if root.locate(&link).exists() => link,
        Err(error) => return Err(error),
    };
    let mut named = found.into_os_string().into_vec();
    named.extend_from_slice(rest);
    *word = OsString::from_vec(named);
    Ok(())
}

/// A volume, or a partition of it.
struct VolumeName {
    id: VolumeId,
    partition: Option<u32>,
}

impl VolumeName {
    fn parse(word: &OsStr, root: &Root) -> Option<VolumeName> {
        let text = word.to_str()?;
        let of_link = text.strip_prefix(LINK);
        if of_link.is_some() && root.locate(Path::new(text)).exists() {
            return None;
        }
        let text = of_link.unwrap_or(text);
        let (text, partition) = match text.split_once("-part") {
            Some((text, number)) => (text, Some(number.parse().ok()?)),
            None => (text, None),
        };
        // Newer rules also append the namespace, of which a volume has one.
        let id = text.strip_suffix("_1").filter(|_| of_link.is_some());
        Some(VolumeName {
            id: VolumeId::parse(id.unwrap_or(text))?,
            partition,
        })
    }

    /// udev's link to it.
    fn link(&self) -> PathBuf {
        let serial = self.id.serial();
        let part = self.partition.map(|number| format!("-part{number}"));
        format!("{LINK}{serial}{}", part.unwrap_or_default()).into()
    }

    fn find(self, devices: &Devices) -> Result<&Device, VolumeError> {
        let id = self.id;
        let node = |device: &Device| device.node().display().to_string();
        let disks: Vec<(VolumeId, &Device)> = devices
            .iter()
            .filter(|device| device.kind == BlockDeviceKind::Disk && !device.hidden)
            .filter_map(|device| Some((VolumeId::of(device)?, device)))
            .collect();
        let found: Vec<&Device> = disks
            .iter()
            .filter(|(other, _)| *other == id)
            .map(|(_, device)| *device)
            .collect();
        let disk = match found.as_slice() {
            [disk] => *disk,
            [] => {
                let attached = disks.iter().map(|(id, disk)| (id.clone(), node(disk)));
                let attached = attached.collect();
                return Err(VolumeError::NotAttached { id, attached });
            }
            several => {
                let nodes = several.iter().map(|disk| node(disk)).collect();
                return Err(VolumeError::Several { id, nodes });
            }
        };
        let Some(partition) = self.partition else {
            return Ok(disk);
        };
        let is_it = |device: &&Device| {
            device.kind
                == BlockDeviceKind::Partition {
                    of: disk.number,
                    number: partition,
                }
        };
        devices
            .iter()
            .find(is_it)
            .ok_or_else(|| VolumeError::NoPartition {
                id,
                node: node(disk),
                partition,
            })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use proptest::prelude::*;

    const FIRST: &str = "vol-0123456789abcdef0";
    const SECOND: &str = "vol-0fedcba9876543210";

    /// A host with these disks, by name and serial number; the first has a partition.
    fn host(disks: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let place = tempfile::tempdir().unwrap();
        let root = Root::under(place.path());
        let put = |folder: &Path, dev: String| {
            fs::create_dir_all(folder.join("device")).unwrap();
            fs::write(folder.join("dev"), dev).unwrap();
            fs::write(folder.join("size"), "2048\n").unwrap();
        };
        fs::create_dir_all(root.sys.join("class/block")).unwrap();
        for (index, (name, serial)) in disks.iter().enumerate() {
            let folder = root.sys.join("devices").join(name);
            put(&folder, format!("259:{}\n", index * 16));
            fs::write(folder.join("device/serial"), serial).unwrap();
            let link = |target: &Path, name: &str| {
                std::os::unix::fs::symlink(target, root.sys.join("class/block").join(name))
                    .unwrap();
            };
            link(&folder, name);
            if index == 0 {
                let partition = folder.join(format!("{name}p1"));
                put(&partition, "259:1\n".to_owned());
                fs::write(partition.join("partition"), "1\n").unwrap();
                link(&partition, &format!("{name}p1"));
            }
        }
        (place, root)
    }

    fn named(word: &str, root: &Root) -> Result<String, VolumeError> {
        let mut word = OsString::from(word);
        name_disk(&mut word, root)?;
        Ok(word.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_volume_is_named_by_its_id_its_serial_number_and_the_links_of_udev() {
        let (_place, root) = host(&[
            ("nvme1n1", "vol0123456789abcdef0"),
            ("nvme2n1", "vol0fedcba9876543210   "),
            ("vda", "vol-1"),
        ]);
        let link = format!("{LINK}vol0123456789abcdef0");
        for (word, expected) in [
            (FIRST, "/dev/nvme1n1"),
            ("vol0123456789abcdef0", "/dev/nvme1n1"),
            (SECOND, "/dev/nvme2n1"),
            ("vol-0123456789abcdef0-part1", "/dev/nvme1n1p1"),
            ("vol-0123456789abcdef0=ext4,gpt", "/dev/nvme1n1=ext4,gpt"),
            ("vol0123456789abcdef0-part1=", "/dev/nvme1n1p1="),
            (&link, "/dev/nvme1n1"),
            (&format!("{link}_1"), "/dev/nvme1n1"),
            (&format!("{link}-part1=xfs"), "/dev/nvme1n1p1=xfs"),
        ] {
            assert_eq!(named(word, &root).as_deref(), Ok(expected), "{word}");
        }
    }

    #[test]
    fn words_that_are_no_id_stay_as_they_are() {
        let (_place, root) = host(&[("nvme1n1", "vol0123456789abcdef0")]);
        for word in [
            "",
            "=",
            "/dev/nvme1n1",
            "nvme1n1",
            "vol-1",
            "vol-012345678",
            "VOL-0123456789abcdef0",
            "vol-0123456789abcdeg0",
            "./vol-0123456789abcdef0",
            "vol-0123456789abcdef0_1",
            "vol-0123456789abcdef0-partx",
            "vol-0123456789abcdef0/disk",
            "/dev/disk/by-id/nvme-Samsung_S1",
        ] {
            assert_eq!(named(word, &root).as_deref(), Ok(word), "{word}");
        }
        // An existing link leads to its disk by itself, even if the serial number is hidden.
        let link = format!("{LINK}vol0fedcba9876543210");
        fs::create_dir_all(root.dev.join("disk/by-id")).unwrap();
        fs::write(root.locate(Path::new(&link)), "").unwrap();
        for word in [SECOND, &link] {
            assert_eq!(named(word, &root).as_deref(), Ok(link.as_str()));
        }
    }

    #[test]
    fn a_volume_that_is_no_disk_of_this_host_is_refused_and_those_that_are_listed() {
        let (_place, root) = host(&[
            ("nvme1n1", "vol0123456789abcdef0"),
            ("nvme2n1", "vol0123456789abcdef0"),
            ("nvme3n1", "vol0fedcba9876543210"),
        ]);
        let error = |word: &str, root: &Root| named(word, root).unwrap_err().to_string();
        let lost = error("vol-01234567", &root);
        assert!(
            lost.contains("vol-0fedcba9876543210 (/dev/nvme3n1)"),
            "{lost}"
        );
        let both = error(FIRST, &root);
        assert!(both.starts_with("/dev/nvme1n1 and /dev/nvme2n1 have"));
        let part = error("vol-0fedcba9876543210-part2", &root);
        assert!(part.starts_with("/dev/nvme3n1, which is vol-0f"), "{part}");
        let (_place, none) = host(&[("vda", "")]);
        let nitro = error(FIRST, &none);
        assert!(nitro.contains("instances of the Nitro system"), "{nitro}");
        let many: Vec<(String, String)> = (0..10)
            .map(|nth| (format!("nvme{nth}n1"), format!("vol0000000{nth}")))
            .collect();
        let many: Vec<(&str, &str)> = many
            .iter()
            .map(|(name, serial)| (name.as_str(), serial.as_str()))
            .collect();
        let (_place, ten) = host(&many);
        assert!(error(FIRST, &ten).ends_with("vol-00000007 (/dev/nvme7n1), 2 more"));
    }

    proptest! {
        #[test]
        fn any_word_is_answered(word in prop::collection::vec(any::<u8>(), 0..60)) {
            let root = Root::under(Path::new("/no/such"));
            let mut word = OsString::from_vec(word);
            let before = word.clone();
            if name_disk(&mut word, &root).is_ok() {
                prop_assert_eq!(word, before);
            }
        }
    }
}
