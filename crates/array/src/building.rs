//! Record of an array that is being built, with everything that is needed to undo it.

use std::path::{Path, PathBuf};

use ledger::LongWork;
use linux::block::{BlockDeviceKind, Device, DeviceNumber, Devices};
use serde::{Deserialize, Serialize};

use super::plan::ArrayPlan;
use domain::filesystem::Fs;

/// A member as it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedMember {
    /// Path as the user wrote it.
    pub path: PathBuf,
    /// The device that was checked.
    pub number: DeviceNumber,
    /// True if it carries signatures, which `--destroy` has named.
    pub signed: bool,
}

/// Path from which mdadm reads its arrays: Debian has a folder for it (mdadm.conf(5)).
pub(crate) fn mdadm_conf(etc: &Path) -> PathBuf {
    let folder = etc.join("mdadm");
    if folder.is_dir() {
        folder.join("mdadm.conf")
    } else {
        etc.join("mdadm.conf")
    }
}

/// Progress of building an array: the step that was begun last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BuildStage {
    /// Nothing was changed yet.
    Begun,
    /// Old signatures are being erased.
    Erasing,
    /// mdadm makes the array.
    Assembling,
    /// mdadm has made the array, which may be used from here on.
    Assembled,
    /// The read-ahead of the array is being set.
    Tuning,
    /// The file system is being made.
    Formatting,
    /// Folders are made and the file system is being mounted.
    Mounting,
    /// Lines are added for the next boot.
    Persisting,
    /// All steps are done.
    Done,
}

/// An array that is being built, with everything that is needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Building {
    /// UUID of the array, as mdadm writes it.
    pub uuid: String,
    /// Device node of the array: `/dev/md/NAME` or `/dev/mdN`.
    pub node: PathBuf,
    /// Members of the array.
    pub members: Vec<SavedMember>,
    /// Boot id (random(4), `boot_id`) for which the members' numbers are valid; empty if unknown.
    #[serde(default)]
    pub boot: String,
    /// The file system.
    pub fs: Option<SavedFs>,
    /// Folders that do not exist and are created: the mount point and its parents, the outermost first.
    pub folders: Vec<PathBuf>,
    /// The lines for the next boot.
    pub lines: Vec<SavedLine>,
    /// Progress.
    pub stage: BuildStage,
    /// True if the build is being undone: nothing of it needs to be kept then.
    pub undoing: bool,
}

/// A member of the array. After a boot it is found by its superblock; this record is to name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedMember {
    /// Path as the user wrote it.
    pub path: PathBuf,
    /// Device number at that time, as `8:16`.
    pub number: String,
    /// Serial number, on EBS the volume's id; `None` where the kernel shows none.
    pub serial: Option<String>,
    /// Number in the partition table of its disk, which has the same serial number; `None` for a whole disk.
    #[serde(default)]
    pub partition: Option<u32>,
}

/// The file system on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedFs {
    /// The file system.
    pub fs: Fs,
    /// UUID of the file system.
    pub uuid: String,
    /// Mount point.
    pub mount: Option<PathBuf>,
}

/// A line that is added to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedLine {
    /// Path of the file, with symbolic links resolved.
    pub file: PathBuf,
    /// Text of the line.
    pub line: String,
    /// True if the file existed before.
    pub existed: bool,
}

impl LongWork for Building {
    const KIND: &'static str = "array";
    const FORM: u32 = 1;
}

impl Building {
    /// Record of the array that is about to be built. `lines` are for the next boot, each with its file.
    pub(crate) fn of(
        plan: &ArrayPlan,
        members: &[CheckedMember],
        lines: Vec<(PathBuf, String)>,
        devices: &Devices,
        boot: String,
    ) -> Building {
        let member = |member: &CheckedMember| {
            let device = devices.get(member.number);
            SavedMember {
                path: member.path.clone(),
                number: member.number.to_string(),
                serial: device.and_then(|device| device.serial.clone()),
                partition: device.and_then(partition_number),
            }
        };
        let lines = lines.into_iter().map(|(file, line)| SavedLine {
            existed: file.exists(),
            file: std::fs::canonicalize(&file).unwrap_or(file),
            line,
        });
        let point = plan.fs.as_ref().and_then(|fs| fs.mount.as_deref());
        Building {
            uuid: plan.uuid.clone(),
            node: plan.node.clone(),
            members: members.iter().map(member).collect(),
            boot,
            fs: plan.fs.as_ref().map(|fs| SavedFs {
                fs: fs.fs,
                uuid: fs.uuid.clone(),
                mount: fs.mount.clone(),
            }),
            folders: point.map(missing).unwrap_or_default(),
            lines: lines.collect(),
            stage: BuildStage::Begun,
            undoing: false,
        }
    }

    /// Mount point of its file system.
    pub(crate) fn point(&self) -> Option<&Path> {
        self.fs.as_ref()?.mount.as_deref()
    }
}

impl SavedMember {
    /// Name of the member in messages, with which the user can find it: `/dev/sdf (serial number vol-1)`.
    pub(crate) fn named(&self) -> String {
        match &self.serial {
            Some(serial) => format!("{} (serial number {serial})", self.path.display()),
            None => self.path.display().to_string(),
        }
    }
}

/// Number of a partition in the table of its disk; `None` if it is not a partition.
pub(crate) fn partition_number(device: &Device) -> Option<u32> {
    match device.kind {
        BlockDeviceKind::Partition { number, .. } => Some(number),
        _ => None,
    }
}

/// A folder and those above it that do not exist, the outermost first.
pub(crate) fn missing(folder: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = folder
        .ancestors()
        .take_while(|folder| !folder.exists())
        .map(Path::to_path_buf)
        .collect();
    missing.reverse();
    missing
}
