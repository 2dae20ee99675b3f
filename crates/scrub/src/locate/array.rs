//! An array's geometry and its members, from sysfs (linux, Documentation/admin-guide/md.rst).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::raid::{Level, MdLevel, Placement};
use linux::Root;
use linux::block::{Device, DeviceNumber, Devices};
use linux::diskstats::{Counter, DiskStats};
use linux::root::{attribute, names_in, number};
use reader::IdleGap;
use rustix::fs::OFlags;

use super::geometry::{Copies, Geometry, Parity, Raid10, Rotation};
use super::search::Members;

/// Offsets in sysfs are in sectors of this many bytes.
const SECTOR: u64 = 512;

/// Reason why an array's members cannot be compared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotCompared {
    /// sysfs lacks an attribute.
    Silent(String, &'static str),
    /// The level has nothing to compare.
    Level(String, MdLevel),
    /// The layout is not supported.
    Layout(String, u64),
    /// The array is being reshaped.
    Reshaped(String),
    /// The metadata is kept outside of the kernel, such as imsm.
    External(String),
    /// A member could not be opened.
    Member(String, String),
}

impl std::fmt::Display for NotCompared {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            NotCompared::Silent(array, what) => {
                write!(out, "{array} does not show its {what} in sysfs")
            }
            NotCompared::Level(array, level) => write!(
                out,
                "{array} is of level {level}, which has no redundancy to compare; the members of RAID {} are compared",
                Level::redundant_list()
            ),
            NotCompared::Layout(array, layout) => write!(
                out,
                "{array} has the layout {layout:#x}, which is not supported"
            ),
            NotCompared::Reshaped(array) => {
                write!(
                    out,
                    "{array} is being reshaped; try again when that is done"
                )
            }
            NotCompared::External(array) => {
                write!(out, "{array} has external metadata, which is not supported")
            }
            NotCompared::Member(member, error) => {
                write!(
                    out,
                    "{member} could not be opened: {error}; {}",
                    linux::remedy::as_root()
                )
            }
        }
    }
}

impl std::error::Error for NotCompared {}

/// An array whose members can be compared.
#[derive(Debug)]
pub(crate) struct OpenedArray {
    /// Layout of the array on its members.
    pub geometry: Geometry,
    /// The members themselves.
    pub members: Disks,
}

/// The members of an array, opened for reading with direct I/O.
#[derive(Debug)]
pub(crate) struct Disks {
    /// Members by slot; `None` where one is missing, failed, or being rebuilt.
    slots: Vec<Option<Disk>>,
    /// State of the detection of idle gaps, of each member.
    gaps: Vec<IdleGap>,
}

#[derive(Debug)]
struct Disk {
    /// Path of the device.
    label: String,
    file: File,
    /// Start of the array's data on it, in bytes.
    offset: u64,
    /// Counter of the member; `None` where the kernel does not count. A partition has its own, not the disk's:
    /// otherwise two members of one disk would wait for each other.
    counter: Option<Counter>,
}

impl Disks {
    fn of(slots: Vec<Option<Disk>>) -> Disks {
        Disks {
            gaps: vec![IdleGap::default(); slots.len()],
            slots,
        }
    }

    /// Path of the member in a slot.
    pub(crate) fn label(&self, slot: u32) -> Option<&str> {
        let disk = self.slots.get(slot as usize)?.as_ref()?;
        Some(&disk.label)
    }

    /// Members in files, for tests.
    #[cfg(test)]
    pub(crate) fn of_files(files: Vec<File>) -> Disks {
        let disk = |file| Disk {
            label: String::new(),
            file,
            offset: 0,
            counter: None,
        };
        Disks::of(files.into_iter().map(disk).map(Some).collect())
    }
}

impl Members for Disks {
    fn has(&self, slot: u32) -> bool {
        matches!(self.slots.get(slot as usize), Some(Some(_)))
    }

    fn offset(&self, slot: u32) -> u64 {
        let disk = self.slots.get(slot as usize).and_then(Option::as_ref);
        disk.map_or(0, |disk| disk.offset)
    }

    /// Reads in an idle gap: a foreground request waits for at most one read.
    fn read(&mut self, slot: u32, at: u64, into: &mut [u8]) -> io::Result<()> {
        let mut gap = self.gaps.get(slot as usize).copied().unwrap_or_default();
        let (read, _) = gap.read(
            Some(Duration::ZERO),
            || self.counted(slot),
            || self.read_at(slot, at, into),
        );
        if let Some(kept) = self.gaps.get_mut(slot as usize) {
            *kept = gap;
        }
        read
    }
}

impl Disks {
    /// Slots of the members that are present.
    pub(crate) fn slots(&self) -> Vec<u32> {
        (0..self.slots.len() as u32)
            .filter(|slot| self.has(*slot))
            .collect()
    }

    /// The kernel's counters of a member; `None` where there are none.
    pub(crate) fn counted(&self, slot: u32) -> Option<DiskStats> {
        let disk = self.slots.get(slot as usize)?.as_ref()?;
        disk.counter.as_ref()?.read().ok()
    }

    /// Reads like [`Members::read`], but without waiting for an idle gap; several threads may call it at the same time.
    ///
    /// # Errors
    /// When the member is missing, or the read fails.
    pub(crate) fn read_at(&self, slot: u32, at: u64, into: &mut [u8]) -> io::Result<()> {
        let disk = self.slots.get(slot as usize).and_then(Option::as_ref);
        let disk = disk.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let from = disk
            .offset
            .checked_add(at)
            .ok_or(io::ErrorKind::InvalidInput)?;
        disk.file.read_exact_at(into, from)
    }
}

/// Opens an array's members for comparison.
///
/// # Errors
/// When the array has nothing to compare, its layout is not supported, or a member cannot be opened.
pub(crate) fn open(
    root: &Root,
    devices: &Devices,
    array: &Device,
) -> Result<OpenedArray, NotCompared> {
    let folder = folder(root, array);
    let geometry = geometry(&folder, array)?;
    let members = members(root, &folder, devices, array)?;
    Ok(OpenedArray { geometry, members })
}

/// Folder of an array in sysfs.
pub(crate) fn folder(root: &Root, array: &Device) -> PathBuf {
    let folder = root.sys.join("class/block").join(array.sysfs_name());
    folder.join("md")
}

/// Layout of an array on its members.
///
/// # Errors
/// As [`open`], except those of the members.
pub(crate) fn geometry(folder: &Path, array: &Device) -> Result<Geometry, NotCompared> {
    let label = || array.label();
    let silent = |what| move || NotCompared::Silent(array.label(), what);
    let level = attribute(&folder.join("level")).ok_or_else(silent("md/level"))?;
    let level = MdLevel::from(level);
    if attribute(&folder.join("reshape_position")).is_some_and(|position| position != "none") {
        return Err(NotCompared::Reshaped(label()));
    }
    let is_external = |form: String| form.starts_with("external");
    if attribute(&folder.join("metadata_version")).is_some_and(is_external) {
        return Err(NotCompared::External(label()));
    }
    let disks: u32 = number(&folder.join("raid_disks")).ok_or_else(silent("md/raid_disks"))?;
    let kib: u64 =
        number(&folder.join("component_size")).ok_or_else(silent("md/component_size"))?;
    let component = kib.saturating_mul(1024);
    let chunk: u64 = number(&folder.join("chunk_size")).unwrap_or(0);
    let layout: u64 = number(&folder.join("layout")).unwrap_or(0);
    let refused = || NotCompared::Layout(array.label(), layout);
    let parity = |parities, rotation: Option<Rotation>| {
        let rotation = rotation.ok_or_else(refused)?;
        Parity::new(disks.into(), parities, chunk, rotation, component)
            .map(Geometry::Parity)
            .ok_or_else(refused)
    };
    match level.raid().map(Level::placement) {
        Some(Placement::Mirrored) => Ok(Geometry::Mirror {
            disks,
            size: component,
        }),
        Some(Placement::StripedCopies) => Copies::of(layout, disks.into())
            .and_then(|copies| Raid10::new(disks.into(), chunk, copies, component))
            .map(Geometry::Ten)
            .ok_or_else(refused),
        Some(Placement::Parity { count, rotates }) => {
            let rotation = match rotates {
                true => Rotation::of(layout),
                false => Some(Rotation::Last),
            };
            parity(count as u64, rotation)
        }
        Some(Placement::Striped | Placement::Concatenated) | None => {
            Err(NotCompared::Level(label(), level))
        }
    }
}

/// A member that is in sync.
struct InSync<'a> {
    slot: usize,
    device: &'a Device,
    /// Start of the array's data on it, in bytes.
    offset: u64,
}

/// The members that are in sync.
fn in_sync<'a>(
    folder: &Path,
    devices: &'a Devices,
    array: &Device,
) -> Result<Vec<InSync<'a>>, NotCompared> {
    let silent = |what| NotCompared::Silent(array.label(), what);
    let mut found = Vec::new();
    for entry in names_in(folder).map_err(|_| silent("members"))? {
        let entry = entry.to_string_lossy();
        let Some(name) = entry.strip_prefix("dev-") else {
            continue;
        };
        let own = folder.join(&*entry);
        let state = attribute(&own.join("state")).unwrap_or_default();
        let Some(slot) = number::<usize>(&own.join("slot")) else {
            continue;
        };
        if !state.split(',').any(|word| word == "in_sync") || state.contains("faulty") {
            continue;
        }
        let Some(device) = devices.named(&name.replace('!', "/")) else {
            continue;
        };
        let offset: u64 = number(&own.join("offset")).ok_or_else(|| silent("md/dev-*/offset"))?;
        found.push(InSync {
            slot,
            device,
            offset: offset.saturating_mul(SECTOR),
        });
    }
    Ok(found)
}

/// Opens the members that are in sync.
fn members(
    root: &Root,
    folder: &Path,
    devices: &Devices,
    array: &Device,
) -> Result<Disks, NotCompared> {
    let mut slots = Vec::new();
    for InSync {
        slot,
        device,
        offset,
    } in in_sync(folder, devices, array)?
    {
        if slots.len() <= slot {
            slots.resize_with(slot + 1, || None);
        }
        slots[slot] = Some(Disk {
            label: device.label(),
            file: open_member(root, device, OpenOptions::new().read(true), OFlags::DIRECT)?,
            offset,
            counter: Counter::open(root, device).ok(),
        });
    }
    Ok(Disks::of(slots))
}

fn open_member(
    root: &Root,
    device: &Device,
    options: &mut OpenOptions,
    flags: OFlags,
) -> Result<File, NotCompared> {
    let file = options
        .custom_flags(flags.bits().cast_signed())
        .open(root.locate(&device.node()))
        .map_err(|error| NotCompared::Member(device.label(), error.to_string()))?;
    is_disk(&file, device)?;
    Ok(file)
}

/// A member that is open for writing.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    /// Start of the array's data on it, in bytes.
    offset: u64,
}

impl Writer {
    /// Opens the member in a slot with direct I/O, although md has it open too.
    ///
    /// # Errors
    /// When not exactly one member is in sync in the slot, or it cannot be opened.
    pub(crate) fn open(
        root: &Root,
        devices: &Devices,
        array: &Device,
        slot: u32,
    ) -> Result<Writer, NotCompared> {
        let mut members = in_sync(&folder(root, array), devices, array)?;
        members.retain(|member| member.slot == slot as usize);
        let [member] = &members[..] else {
            let count = members.len();
            let why = format!("{count} members are in sync there instead of 1");
            return Err(NotCompared::Member(format!("slot {slot}"), why));
        };
        let mut options = OpenOptions::new();
        let flags = OFlags::DIRECT | OFlags::DSYNC;
        Ok(Writer {
            file: open_member(root, member.device, options.write(true), flags)?,
            offset: member.offset,
        })
    }

    /// Writes all bytes at offset `at`, in bytes from the start of the array's data. They are durable when this
    /// returns.
    ///
    /// # Errors
    /// When the write fails.
    pub(crate) fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let from = self
            .offset
            .checked_add(at)
            .ok_or(io::ErrorKind::InvalidInput)?;
        self.file.write_all_at(bytes, from)
    }
}

/// Checks that an open file is this disk: the device node may be that of another disk by now.
fn is_disk(file: &File, device: &Device) -> Result<(), NotCompared> {
    let skipped = |why: String| NotCompared::Member(device.label(), why);
    let meta = file
        .metadata()
        .map_err(|error| skipped(error.to_string()))?;
    let number = DeviceNumber::from_raw(meta.rdev());
    if meta.file_type().is_block_device() && number != device.number {
        return Err(skipped(format!("its device node now belongs to {number}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux::block::Devices;
    use std::fs;

    /// Geometry read from an array with these attributes.
    fn read(attributes: &[(&str, &str)]) -> Result<Geometry, NotCompared> {
        let place = tempfile::tempdir().unwrap();
        let root = Root::under(place.path());
        let md = root.sys.join("class/block/md0/md");
        fs::create_dir_all(&md).unwrap();
        fs::write(md.join("../dev"), "9:0\n").unwrap();
        for (name, value) in attributes {
            fs::write(md.join(name), format!("{value}\n")).unwrap();
        }
        let devices = Devices::read(&root).unwrap();
        geometry(&md, devices.named("md0").unwrap())
    }

    fn array<'a>(level: &'a str, layout: &'a str) -> Vec<(&'a str, &'a str)> {
        vec![
            ("level", level),
            ("layout", layout),
            ("raid_disks", "4"),
            ("chunk_size", "65536"),
            ("component_size", "1024"),
            ("reshape_position", "none"),
            ("metadata_version", "1.2"),
        ]
    }

    #[test]
    fn geometries_are_read_in_bytes() {
        for (level, layout, span) in [
            ("raid1", "0", 1 << 20),
            ("raid10", "258", 2 << 20),
            ("raid10", "513", 2 << 20),
            ("raid4", "0", 1 << 20),
            ("raid5", "2", 1 << 20),
            ("raid6", "2", 1 << 20),
        ] {
            assert_eq!(read(&array(level, layout)).unwrap().span(), span, "{level}");
        }
    }

    #[test]
    fn arrays_that_cannot_be_compared_are_refused_with_a_sentence() {
        let mut reshaped = array("raid5", "2");
        reshaped[5].1 = "1024";
        let mut external = array("raid5", "2");
        external[6].1 = "external:/md127/0";
        for (attributes, words) in [
            (array("raid0", "0"), "no redundancy to compare"),
            (
                array("raid6", "18"),
                "the layout 0x12, which is not supported",
            ),
            (array("raid10", "0"), "is not supported"),
            (
                array("raid5", "2")[..2].to_vec(),
                "does not show its md/raid_disks",
            ),
            (reshaped, "is being reshaped"),
            (external, "external metadata"),
        ] {
            let error = read(&attributes).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
