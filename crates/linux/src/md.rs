//! Linux software RAID, as sysfs shows it (linux, Documentation/admin-guide/md.rst).

pub mod competing;
pub mod health;
pub mod superblock;
pub mod sync;

use std::path::{Path, PathBuf};

use record::Bytes;
use record::raid::{Level, MdLevel, Placement};

use crate::block::{BlockDeviceKind, Device, DeviceNumber, Devices};
use crate::root::{self, Result, Root, attribute, number};

/// Sizes and positions in sysfs are in sectors of this many bytes.
const SECTOR: u64 = 512;

/// An array of md, as sysfs shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// The kernel's name, such as `md127`.
    pub name: String,
    /// Major and minor number of the array.
    pub number: DeviceNumber,
    /// The names below `/dev/md`, such as `data`, that lead to it.
    pub names: Vec<String>,
    /// Its level; `None` while it is not assembled.
    pub level: Option<MdLevel>,
    /// Size of the array.
    pub size: Bytes,
    /// `clean`, `active`, `inactive`, `read-auto`, …
    pub state: Option<String>,
    /// Chunk size; `None` at levels without chunks.
    pub chunk: Option<Bytes>,
    /// Layout of RAID 10's copies: `n2`, `f2`, `o2`; `None` at other levels.
    pub layout: Option<String>,
    /// Kind of its write-intent bitmap: `internal`, `external` (in a file), `lockless` or `none`; `None` at levels
    /// without bitmaps, and if the kernel does not show it.
    pub bitmap: Option<String>,
    /// The version of its superblocks, such as `1.2`.
    pub metadata: Option<String>,
    /// Number of members that it should have.
    pub wanted: Option<u32>,
    /// Number of missing members; `None` at levels without redundancy.
    pub degraded: Option<u32>,
    /// Sync action: `idle`, `resync`, `recover`, `check`, `repair`, `reshape`, `frozen`; `None` at levels without
    /// redundancy.
    pub action: Option<String>,
    /// Position of that action and its end; `None` if no action is in progress.
    pub position: Option<(Bytes, Bytes)>,
    /// Its members, ordered by slot; spares and failed ones come last.
    pub members: Vec<Member>,
}

/// A member of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The kernel's name, such as `nvme1n1`.
    pub name: String,
    /// Its number; `None` if the kernel no longer lists the device.
    pub number: Option<DeviceNumber>,
    /// Slot of the member in the array; `None` for a spare or a failed member.
    pub slot: Option<u32>,
    /// State: `in_sync`, `spare`, `faulty`, `write_mostly`, …
    pub state: Vec<String>,
    /// Number of read errors that were corrected from a copy.
    pub errors: Option<u64>,
    /// Bytes of it that the array uses.
    pub used: Option<Bytes>,
}

/// True if the kernel has md: its list of arrays exists.
pub fn is_supported(root: &Root) -> bool {
    root.proc.join("mdstat").exists()
}

/// The present arrays, including those that are not assembled completely.
///
/// # Errors
/// When the members of an array cannot be listed.
pub fn arrays(root: &Root, devices: &Devices) -> Result<Vec<Array>> {
    let links = links(root, devices)?;
    devices
        .iter()
        .filter(|device| matches!(device.kind, BlockDeviceKind::Raid { .. }))
        .map(|device| array(root, devices, device, &links))
        .collect()
}

/// Number of sectors that differed in the last check of an array, in whole units of the check (`mismatch_cnt`); `None`
/// at levels without redundancy.
pub fn mismatches(root: &Root, name: &str) -> Option<u64> {
    let sysfs_name = name.replace('/', "!");
    let folder = root.sys.join("class/block").join(sysfs_name);
    number(&folder.join("md/mismatch_cnt"))
}

/// The array that a user names as `data`, `md127`, `/dev/md127` or `/dev/md/data`.
pub fn find<'a>(root: &Root, devices: &'a Devices, word: &str) -> Option<&'a Device> {
    let is_array = |device: &&Device| matches!(device.kind, BlockDeviceKind::Raid { .. });
    let at = |path: PathBuf| devices.at_path(root, &path).filter(is_array);
    if word.starts_with('/') {
        return at(PathBuf::from(word));
    }
    at(Path::new("/dev/md").join(word)).or_else(|| devices.named(word).filter(is_array))
}

/// The names below `/dev/md`, such as `data`, and their arrays.
///
/// # Errors
/// When the folder exists and cannot be listed.
pub fn links(root: &Root, devices: &Devices) -> Result<Vec<(String, DeviceNumber)>> {
    let names = root::names_in(&root.dev.join("md"))?;
    Ok(names
        .iter()
        .filter_map(|name| {
            let device = devices.at_path(root, &Path::new("/dev/md").join(name))?;
            Some((name.to_string_lossy().into_owned(), device.number))
        })
        .collect())
}

fn array(
    root: &Root,
    devices: &Devices,
    device: &Device,
    links: &[(String, DeviceNumber)],
) -> Result<Array> {
    let folder = root
        .sys
        .join("class/block")
        .join(device.sysfs_name())
        .join("md");
    let level = attribute(&folder.join("level")).map(MdLevel::from);
    let raid = level.as_ref().and_then(MdLevel::raid);
    let placement = raid.map(Level::placement);
    let is_ten = placement == Some(Placement::StripedCopies);
    Ok(Array {
        name: device.name.clone(),
        number: device.number,
        names: links
            .iter()
            .filter(|(_, number)| *number == device.number)
            .map(|(name, _)| name.clone())
            .collect(),
        size: device.size,
        state: attribute(&folder.join("array_state")),
        chunk: number(&folder.join("chunk_size"))
            .filter(|&chunk: &u64| chunk > 0)
            .map(Bytes),
        layout: number(&folder.join("layout"))
            .filter(|_| is_ten)
            .map(copies_label),
        bitmap: raid
            .filter(|raid| raid.is_redundant())
            .and_then(|_| bitmap(&folder))
            .map(str::to_owned),
        metadata: attribute(&folder.join("metadata_version")),
        wanted: number(&folder.join("raid_disks")),
        degraded: number(&folder.join("degraded")),
        action: attribute(&folder.join("sync_action")),
        position: attribute(&folder.join("sync_completed")).and_then(|text| position(&text)),
        members: members(&folder, devices)?,
        level,
    })
}

/// Kind of bitmap. Linux has several kinds since 6.17, and shows the selected one in brackets in `bitmap_type`;
/// `location` is that of the usual kind, as an offset from the superblock or a file.
fn bitmap(folder: &Path) -> Option<&'static str> {
    let kinds = attribute(&folder.join("bitmap_type")).unwrap_or_default();
    if kinds.contains("[llbitmap]") {
        return Some("lockless");
    }
    Some(match attribute(&folder.join("bitmap/location"))?.as_str() {
        "none" => "none",
        place if place.starts_with(['+', '-']) => "internal",
        _ => "external",
    })
}

impl Array {
    /// Number of hot spares, which have no slot in the array.
    pub fn spares(&self) -> usize {
        let waits = |member: &&Member| member.is_spare();
        self.members.iter().filter(waits).count()
    }
}

impl Member {
    /// True if it is a hot spare.
    pub fn is_spare(&self) -> bool {
        self.slot.is_none() && self.has("spare") && !self.has("faulty")
    }

    /// True if `state` is one of its states.
    pub fn has(&self, state: &str) -> bool {
        self.state.iter().any(|word| word == state)
    }
}

/// The members, from the folders `dev-NAME`.
fn members(folder: &Path, devices: &Devices) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    // 0 if each member has a part of its own size, as at RAID 0 and linear.
    let component = kib(&folder.join("component_size")).filter(|size| size.0 > 0);
    for entry in root::names_in(folder)? {
        let entry = entry.to_string_lossy();
        let Some(name) = entry.strip_prefix("dev-") else {
            continue;
        };
        let own = folder.join(&*entry);
        let name = name.replace('!', "/");
        members.push(Member {
            number: devices.named(&name).map(|device| device.number),
            // "none" does not parse as a number.
            slot: number(&own.join("slot")),
            state: attribute(&own.join("state"))
                .map(|text| text.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
            errors: number(&own.join("errors")),
            used: kib(&own.join("size")).map(|room| component.map_or(room, |used| used.min(room))),
            name,
        });
    }
    members.sort_by_key(|member| member.slot.unwrap_or(u32::MAX));
    Ok(members)
}

/// A size in KiB; most sizes in sysfs are in sectors.
fn kib(path: &Path) -> Option<Bytes> {
    number::<u64>(path).map(|kib| Bytes(kib.saturating_mul(1024)))
}

/// `layout` of RAID 10: the number of near copies in the lowest byte, of far copies in the next, and
/// a bit that says that far copies are offset (linux, drivers/md/raid10.c, setup_geo).
fn copies_label(layout: u32) -> String {
    let (near, far) = (layout & 0xff, (layout >> 8) & 0xff);
    match (near, far) {
        (near, 1) => format!("n{near}"),
        (1, far) if layout & (1 << 16) != 0 => format!("o{far}"),
        (1, far) => format!("f{far}"),
        (near, far) => format!("n{near}f{far}"),
    }
}

/// `sync_completed`: `1024 / 2097152` in sectors, or a word.
fn position(text: &str) -> Option<(Bytes, Bytes)> {
    let (done, of) = text.split_once('/')?;
    let bytes = |sectors: &str| -> Option<Bytes> {
        let sectors: u64 = sectors.trim().parse().ok()?;
        Some(Bytes(sectors.saturating_mul(SECTOR)))
    };
    Some((bytes(done)?, bytes(of)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_copies_of_raid_10_are_named_as_mdadm_names_them() {
        for (layout, word) in [
            (0x102, "n2"),
            (0x201, "f2"),
            (0x1_0201, "o2"),
            (0x103, "n3"),
        ] {
            assert_eq!(copies_label(layout), word);
        }
    }

    #[test]
    fn a_bitmap_is_recognized_by_its_kind_and_place() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        assert_eq!(bitmap(folder), None);
        std::fs::create_dir(folder.join("bitmap")).unwrap();
        for (location, kinds, word) in [
            ("none", "[none] bitmap", "none"),
            ("+8", "none [bitmap]", "internal"),
            ("-16", "", "internal"),
            ("file", "", "external"),
            ("none", "none bitmap [llbitmap]", "lockless"),
        ] {
            std::fs::write(folder.join("bitmap/location"), location).unwrap();
            std::fs::write(folder.join("bitmap_type"), kinds).unwrap();
            assert_eq!(bitmap(folder), Some(word), "{location} {kinds}");
        }
    }

    #[test]
    fn a_position_is_read_in_sectors() {
        assert_eq!(
            position("2048 / 4096"),
            Some((Bytes::mib(1), Bytes::mib(2)))
        );
        for text in ["none", "delayed", "", "1 /", "/ 1"] {
            assert_eq!(position(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String, layout: u32) {
            let _ = position(&text);
            let _ = copies_label(layout);
        }
    }
}
