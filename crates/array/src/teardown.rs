//! Removes only objects made by disksmith: an array, its superblocks and a file system are recognized by the ids that
//! were chosen before they were made.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use linux::block::{BlockDeviceKind, Device, DeviceNumber, Devices};
use linux::consent::{DeviceUsers, Reason};
use linux::exec::{self, Exec};
use linux::signature;

use super::host::ArrayHost;
use super::plan;
use super::steps::UndoResult;

/// Attempts to stop an array: a program that examines a new device, as udev does, holds it for a moment.
const STOP_ATTEMPTS: u32 = 5;

/// Wait between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// Stops the array with this id, if it exists: an array with this id, an array with a member that has it, and an array
/// at the chosen node to which mdadm has not added a member yet.
pub fn stop(host: &mut ArrayHost, uuid: &str, node: &Path) -> Vec<UndoResult> {
    let unknown = |error: &dyn std::fmt::Display| {
        UndoResult::Leftover(format!(
            "it is unknown whether the array {uuid} still exists: {error}"
        ))
    };
    let devices = match Devices::read(&host.root) {
        Ok(devices) => devices,
        Err(error) => return vec![unknown(&error)],
    };
    let is_array = |device: &&Device| matches!(device.kind, BlockDeviceKind::Raid { .. });
    let mut undone = Vec::new();
    for array in devices.iter().filter(is_array) {
        match is_built_array(host, &devices, array, uuid, node) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                undone.push(unknown(&error));
                continue;
            }
        }
        let shown = array.node().display().to_string();
        undone.push(match stop_with_retries(host, &array.node()) {
            Ok(()) => UndoResult::Reverted(format!("the array {shown} was stopped")),
            Err(error) => UndoResult::Leftover(format!(
                "the array {shown}, which could not be stopped: {error}; when nothing uses it, \
                 mdadm --stop {shown}"
            )),
        });
    }
    undone
}

fn is_built_array(
    host: &mut ArrayHost,
    devices: &Devices,
    array: &Device,
    uuid: &str,
    node: &Path,
) -> Result<bool, exec::Error> {
    let below = devices.parents(array.number);
    if array.is_empty() && below.is_empty() {
        return Ok(array.node() == node);
    }
    for member in below {
        if has_uuid(host, "--examine", &member.node(), uuid)? {
            return Ok(true);
        }
    }
    has_uuid(host, "--detail", &array.node(), uuid)
}

/// Erases a member's superblock, if it belongs to the array of this id.
pub fn release(host: &mut ArrayHost, uuid: &str, path: &Path) -> Option<UndoResult> {
    let shown = path.display();
    match has_uuid(host, "--examine", path, uuid) {
        Ok(true) => {}
        Ok(false) => return None,
        Err(error) => {
            return Some(UndoResult::Leftover(format!(
                "perhaps a superblock on {shown}, which could not be examined: {error}"
            )));
        }
    }
    let zero = Exec::new("mdadm").arg("--zero-superblock").arg(path);
    Some(match host.run(&zero.bound()) {
        Ok(_) => UndoResult::Reverted(format!("the superblock on {shown} was erased")),
        Err(error) => UndoResult::Leftover(format!(
            "a superblock on {shown}: {error}; mdadm --zero-superblock {shown}"
        )),
    })
}

/// Erases the file system on a disk, if it is the one of this id.
pub fn erase(host: &mut ArrayHost, id: &str, path: &Path) -> Option<UndoResult> {
    let shown = path.display();
    let found =
        File::open(host.root.locate(path)).and_then(|file| signature::file_system_id(&file));
    match found {
        Ok(Some(found)) if found == id => {}
        Ok(_) => return None,
        Err(error) => {
            return Some(UndoResult::Leftover(format!(
                "perhaps a file system on {shown}, which could not be examined: {error}"
            )));
        }
    }
    Some(match host.run(&plan::wipe(path).bound()) {
        Ok(_) => UndoResult::Reverted(format!("the file system on {shown} was erased")),
        Err(error) => UndoResult::Leftover(format!(
            "a file system on {shown}: {error}; wipefs --all {shown}"
        )),
    })
}

/// mdadm's messages about devices that are neither an array nor a member.
const NOT_AN_ARRAY_MESSAGES: [&str; 3] = [
    "No md superblock",
    "does not appear to be",
    "No such file or directory",
];

/// True if `mdadm --detail` or `--examine` of a device names the array of this id.
///
/// # Errors
/// When mdadm failed, so that the answer is unknown.
pub(crate) fn has_uuid(
    host: &mut ArrayHost,
    option: &str,
    path: &Path,
    uuid: &str,
) -> Result<bool, exec::Error> {
    let command = Exec::new("mdadm").args([option, "--export"]).arg(path);
    let ours = format!("MD_UUID={uuid}");
    match host.ask(&command.bound()) {
        Ok(output) => Ok(output.text().lines().any(|line| line.trim() == ours)),
        Err(exec::Error::Failed { stderr, .. })
            if NOT_AN_ARRAY_MESSAGES
                .iter()
                .any(|none| stderr.contains(none)) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The id of an assembled array, as mdadm writes it.
///
/// # Errors
/// When mdadm cannot tell it.
pub(crate) fn uuid_of(host: &mut ArrayHost, node: &Path) -> anyhow::Result<String> {
    let detail = Exec::new("mdadm").args(["--detail", "--export"]).arg(node);
    let text = host.ask(&detail.bound())?.text();
    let mut lines = text.lines();
    let uuid = lines.find_map(|line| line.trim().strip_prefix("MD_UUID="));
    let uuid = uuid.filter(|uuid| !uuid.is_empty()).map(str::to_owned);
    uuid.with_context(|| format!("mdadm reports no id of {}", node.display()))
}

/// Stops an array.
///
/// # Errors
/// mdadm's error of the last attempt.
pub(crate) fn stop_with_retries(host: &mut ArrayHost, node: &Path) -> Result<(), exec::Error> {
    host.run_with_retries(&plan::stop(node).bound(), STOP_ATTEMPTS, PAUSE)
}

/// Uses of an array, as sentences. Devices below it do not matter for stopping what is on it.
pub(crate) fn uses_of(uses: &DeviceUsers, array: DeviceNumber) -> Vec<String> {
    let is_use =
        |reason: &&Reason| !matches!(reason, Reason::RootDisk { .. } | Reason::ReadOnly { .. });
    let reasons = uses.reasons(array);
    reasons
        .iter()
        .filter(is_use)
        .map(ToString::to_string)
        .collect()
}
