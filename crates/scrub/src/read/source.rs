//! Source of `scrub --read`: an array with all its members, or a single disk. Checks that it can be read.

use std::path::Path;

use domain::raid::{Level, MdLevel};
use linux::Root;
use linux::block::{Device, DeviceNumber, Devices};
use linux::md::sync::Sync;
use linux::md::{self, Array};
use linux::root::number;
use record::{Bytes, Ranges};

use super::super::foreground::Shared;
use super::super::lock;
use reader::{OpenError, Volume};

/// An array, or a single disk.
pub(crate) struct ReadSource {
    /// The device whose foreground I/O is watched: the array, or the whole disk.
    pub watched: Device,
    /// Disks of which members of the array are partitions: foreground I/O on the rest of them is watched too.
    pub shared: Vec<Shared>,
    /// The device that was named.
    pub device: Device,
    /// State of the array; `None` for a disk.
    pub array: Option<ArrayState>,
    /// Members of the array, or the disk itself.
    pub parts: Vec<ReadPart>,
}

/// State of an array that is read.
pub(crate) struct ArrayState {
    /// UUID by which the ledger knows the array.
    pub uuid: String,
    /// RAID level, from the kernel.
    pub level: Option<MdLevel>,
    /// State of md's work on it.
    pub sync: Sync,
}

impl ArrayState {
    /// md's name of the level; empty where it is not known.
    pub(crate) fn level_name(&self) -> &str {
        self.level.as_ref().map_or("", MdLevel::name)
    }

    /// True if md can rewrite unreadable sectors from other members. An unknown level counts as redundant.
    pub(crate) fn is_redundant(&self) -> bool {
        let level = self.level.as_ref().and_then(MdLevel::raid);
        level.is_none_or(Level::is_redundant)
    }
}

/// A member, or a disk.
pub(crate) struct ReadPart {
    /// The device.
    pub volume: Volume,
    /// Slot of a member in the array; `None` for a disk.
    pub slot: Option<u32>,
    /// Start of the array's data on it, in bytes.
    pub offset: u64,
    /// Ranges of the device that are read, in bytes.
    pub whole: Ranges,
}

impl ReadSource {
    /// The source that `word` names.
    ///
    /// # Errors
    /// The reason why it cannot be read, as a sentence.
    pub(crate) fn find(word: &str, root: &Root, devices: &Devices) -> Result<ReadSource, String> {
        let source = match md::find(root, devices, word) {
            Some(device) => of_array(device, root, devices)
                .map_err(|why| format!("{} cannot be read: {why}", device.node().display()))?,
            None => of_disk(word, root, devices)?,
        };
        if lock::is_taken(&source.device) {
            return Err(format!(
                "{} cannot be read: {}",
                source.path(),
                lock::SCRUBBED_ALREADY
            ));
        }
        Ok(source)
    }

    /// Path of the device's node.
    pub(crate) fn path(&self) -> String {
        self.device.node().display().to_string()
    }

    /// Numbers of the disks that the source lies on.
    pub(crate) fn disks(&self) -> Vec<DeviceNumber> {
        let parts = self.parts.iter();
        let mut disks: Vec<DeviceNumber> = parts.map(|part| part.volume.disk.number).collect();
        disks.sort();
        disks.dedup();
        disks
    }

    /// Key of a part in the ledger.
    pub(crate) fn key(&self, part: &ReadPart) -> String {
        match (&self.array, part.slot) {
            (Some(array), Some(slot)) => format!("{} slot {slot}", array.uuid),
            _ => part.volume.key.text().to_owned(),
        }
    }
}

fn of_disk(word: &str, root: &Root, devices: &Devices) -> Result<ReadSource, String> {
    let volume = Volume::open(Path::new(word), devices, root).map_err(|error| match error {
        OpenError::File(path) => format!("{path} is a file; name the disk that it lies on"),
        OpenError::Other(why) => why,
    })?;
    Ok(ReadSource {
        watched: volume.disk.clone(),
        shared: Vec::new(),
        device: volume.device.clone(),
        array: None,
        parts: vec![ReadPart {
            whole: Ranges::all(volume.size),
            volume,
            slot: None,
            offset: 0,
        }],
    })
}

fn of_array(device: &Device, root: &Root, devices: &Devices) -> Result<ReadSource, String> {
    let arrays = md::arrays(root, devices).map_err(|error| error.to_string())?;
    let array = arrays
        .into_iter()
        .find(|array| array.number == device.number)
        .ok_or("the kernel does not list it among its arrays")?;
    is_there(&array)?;
    let sync = Sync::of(root, device);
    let uuid = sync.uuid().ok_or(
        "the kernel does not show its id, by which its place would be known again; Linux does since \
         5.17. Name its members instead",
    )?;
    let parts: Result<Vec<ReadPart>, String> = array
        .members
        .iter()
        .filter_map(|member| Some((member, member.slot?)))
        .map(|(member, slot)| {
            let listed = member.number.and_then(|number| devices.get(number));
            let node = listed
                .ok_or_else(|| format!("its member {} is gone", member.name))?
                .node();
            let volume =
                Volume::open(&root.locate(&node), devices, root).map_err(|error| match error {
                    OpenError::File(path) => format!("its member {path} is a file"),
                    OpenError::Other(why) => format!("of its members, {why}"),
                })?;
            let folder = sync
                .folder()
                .join(format!("dev-{}", member.name.replace('/', "!")));
            let offset: u64 = number(&folder.join("offset"))
                .ok_or_else(|| format!("{} is not there", folder.join("offset").display()))?;
            let offset = offset.saturating_mul(512);
            let used = member.used.unwrap_or(Bytes(0));
            let whole = Ranges::from(offset..offset.saturating_add(used.0));
            Ok(ReadPart {
                whole: whole.intersect(&Ranges::all(volume.size)),
                volume,
                slot: Some(slot),
                offset,
            })
        })
        .collect();
    let parts = parts?;
    let members: Vec<Device> = parts
        .iter()
        .map(|part| part.volume.device.clone())
        .collect();
    Ok(ReadSource {
        watched: device.clone(),
        shared: Shared::of(&members, devices),
        device: device.clone(),
        parts,
        array: Some(ArrayState {
            uuid,
            level: array.level,
            sync,
        }),
    })
}

/// Checks that an array is running, that no member is missing where that matters, and that md is idle.
fn is_there(array: &Array) -> Result<(), String> {
    let state = array.state.as_deref().unwrap_or("inactive");
    if matches!(state, "inactive" | "clear") || array.size.0 == 0 {
        return Err(format!(
            "it is not running (its state is '{state}'); start it, or name its members"
        ));
    }
    let slots = array.members.iter().filter(|member| {
        let is_faulty = member.state.iter().any(|word| word == "faulty");
        member.slot.is_some() && member.number.is_some() && !is_faulty
    });
    let wanted = array.wanted.unwrap_or(0);
    let there = u32::try_from(slots.count()).unwrap_or(u32::MAX);
    if array.degraded.unwrap_or(0) > 0 || there < wanted || state == "broken" {
        return Err(format!(
            "of its {wanted} members {} missing, and what it held cannot be read. Replace it first, or \
             name the others one by one",
            match wanted
                .saturating_sub(there)
                .max(array.degraded.unwrap_or(0))
            {
                0 | 1 => "one is".to_owned(),
                more => format!("{more} are"),
            }
        ));
    }
    match array.action.as_deref() {
        None | Some("idle") => Ok(()),
        Some(action) => Err(format!(
            "md is busy with it (its sync_action is '{action}'), and reads its members itself; wait for \
             that"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux::md::Member;

    fn array() -> Array {
        let member = |slot| Member {
            name: format!("sd{slot}"),
            number: Some(DeviceNumber::from_raw(slot)),
            slot: Some(slot as u32),
            state: vec!["in_sync".to_owned()],
            errors: None,
            used: Some(Bytes::mib(1)),
        };
        Array {
            name: "md0".to_owned(),
            number: DeviceNumber::from_raw(9),
            names: Vec::new(),
            level: Some(Level::Zero.into()),
            size: Bytes::mib(2),
            state: Some("clean".to_owned()),
            chunk: None,
            layout: None,
            bitmap: None,
            metadata: Some("1.2".to_owned()),
            wanted: Some(2),
            degraded: None,
            action: None,
            position: None,
            members: vec![member(0), member(1)],
        }
    }

    #[test]
    fn arrays_that_lack_a_member_or_are_busy_are_refused() {
        type Change = fn(&mut Array);
        assert_eq!(is_there(&array()), Ok(()));
        let changes: [(Change, &str); 6] = [
            (
                |array| array.state = Some("inactive".to_owned()),
                "not running",
            ),
            (
                |array| array.state = Some("broken".to_owned()),
                "one is missing",
            ),
            (|array| array.members.truncate(1), "one is missing"),
            (|array| array.members[1].number = None, "one is missing"),
            (|array| array.degraded = Some(2), "2 are missing"),
            (
                |array| array.action = Some("resync".to_owned()),
                "busy with it",
            ),
        ];
        for (change, words) in changes {
            let mut changed = array();
            change(&mut changed);
            let why = is_there(&changed).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
