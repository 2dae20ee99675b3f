//! The array to scrub, and the checks that it can be scrubbed.

use domain::raid::{Level, MdLevel, Placement};
use linux::Root;
use linux::block::{Device, DeviceNumber, Devices};
use linux::md::sync::{Sectors, Sync};
use linux::md::{self, Array};
use record::Bytes;
use record::sample::SyncAction;
use rustix::fs::{Access, access};
use ui::journal::JournalField;

use super::foreground::Shared;
use super::saved_tunables::SavedTunables;
use super::{locate, lock};

/// An array that can be scrubbed.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The array's block device.
    pub device: Device,
    /// The array's attributes, from md.
    pub array: Array,
    /// RAID level of the array.
    pub level: Level,
    /// UUID by which the ledger knows it.
    pub uuid: String,
    /// State of md's work on it.
    pub sync: Sync,
    /// Block devices of the members.
    pub members: Vec<Device>,
    /// Numbers of the disks that the members are, or lie on.
    pub disks: Vec<DeviceNumber>,
    /// The disks of which members are partitions.
    pub shared: Vec<Shared>,
    /// End of md's positions, in sectors.
    pub end: Sectors,
    /// True if a single wrong member can be identified; `None` where the layout is not known.
    pub names_odd: Option<bool>,
}

impl Target {
    /// True if all foreground requests wait for each request of md's check: RAID 10 (`raise_barrier`,
    /// drivers/md/raid10.c).
    pub(crate) fn holds_all(&self) -> bool {
        self.level.placement() == Placement::StripedCopies
    }

    /// The array that `word` names, if it can be scrubbed.
    ///
    /// # Errors
    /// The reason why it cannot be, as a sentence.
    pub(crate) fn find(word: &str, root: &Root, devices: &Devices) -> Result<Target, String> {
        // Checked first: otherwise the check of another disksmith would be reported as that of another program.
        if let Some(device) = md::find(root, devices, word)
            && lock::is_taken(device)
        {
            return Err(format!(
                "{} cannot be scrubbed: {}",
                device.node().display(),
                lock::SCRUBBED_ALREADY
            ));
        }
        Target::read(word, root, devices)
    }

    /// The same array in its current state, if it can still be scrubbed. This process holds its lock and those of its
    /// disks.
    ///
    /// # Errors
    /// The reason why it can no longer be, as a sentence.
    pub(crate) fn again(&self, root: &Root) -> Result<Target, String> {
        let devices = Devices::read(root).map_err(|error| error.to_string())?;
        let now = Target::read(&self.path(), root, &devices)?;
        let refuse = |why: &str| Err(format!("{} cannot be scrubbed: {why}", self.path()));
        if now.uuid != self.uuid {
            return refuse("its name belongs to another array by now");
        }
        if now.disks.iter().any(|disk| !self.disks.contains(disk)) {
            return refuse("it has got another disk since the command began, which is not locked");
        }
        Ok(now)
    }

    fn read(word: &str, root: &Root, devices: &Devices) -> Result<Target, String> {
        let device = md::find(root, devices, word).ok_or_else(|| {
            format!(
                "{word} is not an array that the kernel lists; 'disksmith array list' shows all arrays"
            )
        })?;
        let node = device.node().display().to_string();
        let refuse = |why: String| format!("{node} cannot be scrubbed: {why}");
        let arrays = md::arrays(root, devices).map_err(|error| error.to_string())?;
        let array = arrays
            .into_iter()
            .find(|array| array.number == device.number)
            .ok_or_else(|| refuse("the kernel does not list it among its arrays".to_owned()))?;
        let sync = Sync::of(root, device);
        let level = is_whole(&array).map_err(refuse)?;
        may_be_turned(&sync).map_err(refuse)?;
        is_free(&array, &sync).map_err(refuse)?;
        let uuid = sync.uuid().ok_or_else(|| {
            refuse(
                "its id, by which its place would be known again, is not known: the kernel does not \
                 show it (Linux does since 5.17), and no superblock of its members could be read"
                    .to_owned(),
            )
        })?;
        let members: Vec<Device> = array
            .members
            .iter()
            .filter_map(|member| devices.get(member.number?).cloned())
            .collect();
        let mut disks: Vec<DeviceNumber> = members
            .iter()
            .map(|member| member.partition_of().unwrap_or(member.number))
            .collect();
        disks.sort();
        disks.dedup();
        Ok(Target {
            device: device.clone(),
            shared: Shared::of(&members, devices),
            names_odd: locate::geometry(sync.folder(), device)
                .ok()
                .map(|geometry| geometry.names_odd()),
            end: end(&array, level),
            level,
            uuid,
            sync,
            members,
            disks,
            array,
        })
    }

    /// Journal field that identifies the array's messages.
    pub(crate) fn field(&self) -> JournalField {
        ("DISKSMITH_DEVICE".to_owned(), self.device.name.clone())
    }

    /// Path of the device's node.
    pub(crate) fn path(&self) -> String {
        self.device.node().display().to_string()
    }

    /// Size of a chunk, in sectors; 0 where the array has none.
    pub(crate) fn chunk(&self) -> Sectors {
        Sectors::of(self.array.chunk.unwrap_or(Bytes(0)))
    }

    /// Identities of the members that persist over reboots, in the order of their slots; empty for a member without a
    /// unique name.
    pub(crate) fn identities(&self) -> Vec<String> {
        let members = self.array.members.iter();
        members
            .filter(|member| member.slot.is_some())
            .map(|member| {
                let devices = self.members.iter();
                let mut device = devices.filter(|device| Some(device.number) == member.number);
                device.next().and_then(Device::identity).unwrap_or_default()
            })
            .collect()
    }

    /// Number of members with a slot; a spare has none.
    pub(crate) fn places(&self) -> usize {
        let members = self.array.members.iter();
        members.filter(|member| member.slot.is_some()).count()
    }

    /// Number of members, or of pairs of members, over which md's positions are spread: pairs with RAID 10, whose
    /// positions are those of the array; 1 otherwise.
    pub(crate) fn parallel_members(&self) -> u64 {
        match self.level.placement() {
            Placement::StripedCopies => (self.members.len() as u64 / 2).max(1),
            _ => 1,
        }
    }

    /// Number of bytes to read from each member.
    pub(crate) fn of_member(&self) -> Bytes {
        let used = self.array.members.iter().filter_map(|member| member.used);
        used.max().unwrap_or(Bytes(0))
    }
}

/// End of md's positions, in sectors: that of the array with RAID 10, and that of a member otherwise
/// (`resync_max_sectors` in linux, drivers/md).
fn end(array: &Array, level: Level) -> Sectors {
    let used = array.members.iter().filter_map(|member| member.used).min();
    match level.placement() {
        Placement::StripedCopies => Sectors::of(array.size),
        _ => Sectors::of(used.unwrap_or(array.size)),
    }
}

/// Checks that an array is running with all its members and has redundancy. Returns its level.
fn is_whole(array: &Array) -> Result<Level, String> {
    if let Some(metadata) = array
        .metadata
        .as_deref()
        .filter(|metadata| metadata.starts_with("external"))
    {
        return Err(format!(
            "its metadata is '{metadata}', which another program (mdmon) manages, and that program controls its checks"
        ));
    }
    let state = array.state.as_deref().unwrap_or("inactive");
    if matches!(state, "inactive" | "clear") || array.size.0 == 0 {
        return Err(format!(
            "it is not running (its state is '{state}'); mdadm --run starts one that lacks nothing it \
             needs"
        ));
    }
    let raid = array.level.as_ref().and_then(MdLevel::raid);
    let Some(level) = raid.filter(|level| level.is_redundant()) else {
        let word = array.level.as_ref().map_or("", MdLevel::name);
        return Err(format!(
            "{word} keeps no second copy and no parity to compare with. To find what cannot be read, \
             read each member from end to end: disksmith scrub --read /dev/{}",
            array.name
        ));
    };
    if matches!(state, "readonly" | "read-auto") {
        return Err(format!(
            "it is read-only (its state is '{state}'), and md does not check such an array; mdadm \
             --readwrite makes it writable"
        ));
    }
    if array.degraded.unwrap_or(0) > 0 {
        let missing = array.degraded.unwrap_or(0);
        return Err(format!(
            "it is degraded: {missing} of its {} members {} missing, so that there is nothing to \
             compare with where it matters. Replace what is missing first",
            array.wanted.unwrap_or(0),
            if missing == 1 { "is" } else { "are" }
        ));
    }
    Ok(level)
}

/// Checks that this process may write to the array's tunables.
fn may_be_turned(sync: &Sync) -> Result<(), String> {
    let file = sync.folder().join("sync_action");
    if !file.exists() {
        return Err(format!(
            "the kernel shows no {}, without which nothing can be begun",
            file.display()
        ));
    }
    access(&file, Access::WRITE_OK).map_err(|error| {
        format!(
            "{} may not be written ({error}); {}",
            file.display(),
            linux::remedy::as_root()
        )
    })
}

/// Checks that md is idle, and that nobody has left its tunables changed.
fn is_free(array: &Array, sync: &Sync) -> Result<(), String> {
    let action = array.action.as_deref().and_then(SyncAction::from_name);
    match action {
        Some(SyncAction::Idle) => {}
        Some(SyncAction::Check | SyncAction::Repair) => {
            return Err(format!(
                "a {} that another program has begun is running; wait for it, or end it: echo idle > {}",
                array.action.as_deref().unwrap_or_default(),
                sync.folder().join("sync_action").display()
            ));
        }
        Some(other) => {
            return Err(format!(
                "md is busy with it (its sync_action is '{}'), which has priority; wait for that",
                other.name()
            ));
        }
        None => {
            return Err(format!(
                "its sync_action is '{}', which is not known",
                array.action.as_deref().unwrap_or_default()
            ));
        }
    }
    if let Some(other) = sync.competing().first() {
        return Err(format!(
            "md is at work on /dev/{}, which shares a disk with it (its sync_action is '{}'), and does not \
             begin a check of this one before that is done; wait for that",
            other.name,
            other.action.name()
        ));
    }
    SavedTunables::read(sync, false)?;
    SavedTunables::left_over(sync).map_or(Ok(()), Err)
}

#[cfg(test)]
pub(super) mod tests;
