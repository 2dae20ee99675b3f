//! Exchange of a member for another disk, and its commands.

use std::path::{Path, PathBuf};

use linux::block::{DeviceNumber, Devices};
use linux::consent::Consent;
use linux::exec::Exec;
use linux::md;

use super::super::building::CheckedMember;
use super::super::host::ArrayHost;
use super::super::plan;

/// The member or the disk of an exchange, with its place in the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExchangeDevice {
    /// Path as the user wrote it.
    pub path: PathBuf,
    /// The device that was checked.
    pub number: DeviceNumber,
    /// Place in the array; `None` where it has none.
    pub slot: Option<u32>,
}

/// Method by which the disk replaces the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeMethod {
    /// The member stays in use while it is copied to the disk (mdadm(8), `--replace`).
    Replace,
    /// The member has failed: the disk is rebuilt from the others.
    Rebuild,
    /// The member has failed and a spare has replaced it: the disk becomes a hot spare.
    Spare,
    /// An exchange of the same two devices is in progress.
    Continue,
}

/// An exchange that is possible.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// Device number of the array.
    pub array: DeviceNumber,
    /// Device node of the array.
    pub node: PathBuf,
    /// Name of the array in sysfs.
    pub sysfs_name: String,
    /// UUID of the array.
    pub uuid: String,
    /// The member that is replaced.
    pub old: ExchangeDevice,
    /// The disk that takes its place.
    pub new: ExchangeDevice,
    /// The disk as it was claimed; `None` for one that is in the array.
    pub claimed: Option<CheckedMember>,
    /// Course of the exchange.
    pub course: ExchangeMethod,
    /// Consents to erase the superblock of the replaced member; empty to keep it.
    pub erase: Vec<Consent>,
}

impl Exchange {
    fn manage(&self) -> Exec {
        Exec::new("mdadm").arg("--manage").arg(&self.node)
    }

    /// Command that adds the disk to the array.
    pub(super) fn add(&self, path: &Path) -> Exec {
        self.manage().arg("--add-spare").arg(path)
    }

    /// Command that begins to copy. The member stays in use meanwhile.
    pub(super) fn copy(&self) -> Exec {
        let old = self.manage().arg("--replace").arg(&self.old.path);
        old.arg("--with").arg(&self.new.path)
    }

    /// Command that declares a device to have failed.
    pub(super) fn fail(&self, path: &Path) -> Exec {
        self.manage().arg("--fail").arg(path)
    }

    /// Command that removes a failed device, or a spare, from the array.
    pub(super) fn remove(&self, path: &Path) -> Exec {
        self.manage().arg("--remove").arg(path)
    }

    /// The commands, as lines of a shell.
    pub(super) fn commands(&self) -> Vec<String> {
        let claimed = self.claimed.as_ref();
        let signed = claimed.filter(|member| member.signed);
        let copies = self.course == ExchangeMethod::Replace;
        [
            signed.map(|member| plan::wipe(&member.path)),
            claimed.map(|member| self.add(&member.path)),
            copies.then(|| self.copy()),
            Some(self.remove(&self.old.path)),
            (!self.erase.is_empty()).then(|| plan::wipe(&self.old.path)),
        ]
        .into_iter()
        .flatten()
        .map(|command| command.line())
        .collect()
    }

    /// The array as it is now.
    ///
    /// # Errors
    /// When it does not exist any more, or cannot be read.
    pub(super) fn now(&self, host: &ArrayHost) -> anyhow::Result<md::Array> {
        let devices = Devices::read(&host.root)?;
        let arrays = md::arrays(&host.root, &devices)?;
        let found = arrays.into_iter().find(|array| array.number == self.array);
        found.ok_or_else(|| anyhow::anyhow!("{} is gone", self.node.display()))
    }
}

/// A device among the members of an array.
pub(super) fn member(array: &md::Array, number: DeviceNumber) -> Option<&md::Member> {
    let mut members = array.members.iter();
    members.find(|member| member.number == Some(number))
}

/// True if a member is in its slot with all of its contents.
pub(super) fn serves(member: &md::Member) -> bool {
    member.slot.is_some() && member.has("in_sync") && !member.has("faulty")
}
