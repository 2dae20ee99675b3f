//! Undo of a killed `array create`, in the reverse order of its steps.

use std::io::ErrorKind;

use linux::block::Device;
use linux::consent::{DeviceUsers, Reason};
use linux::exec::Exec;
use linux::mounts::Mounts;

use super::super::building::{BuildStage, Building};
use super::super::content::{Content, content};
use super::super::host::ArrayHost;
use super::super::steps::UndoResult;
use super::super::{files, teardown};
use super::unfinished::{UnfinishedArray, members, unfinished_arrays};

/// Result of undoing a part.
pub(super) struct ReleaseResult {
    /// Result of the undo.
    pub undone: UndoResult,
    /// True if a later attempt may succeed.
    again: bool,
}

impl ReleaseResult {
    /// True if the part still exists although it should not.
    pub(super) fn is_stuck(&self) -> bool {
        self.again
    }

    fn reverted(what: String) -> ReleaseResult {
        ReleaseResult {
            undone: UndoResult::Reverted(what),
            again: false,
        }
    }

    fn stuck(what: String) -> ReleaseResult {
        ReleaseResult {
            undone: UndoResult::Leftover(what),
            again: true,
        }
    }

    fn not_released(what: String) -> ReleaseResult {
        ReleaseResult {
            undone: UndoResult::Leftover(what),
            again: false,
        }
    }
}

/// Undoes everything that was left.
///
/// # Errors
/// When the kernel's lists cannot be read.
pub(super) fn release(
    host: &mut ArrayHost,
    building: &Building,
) -> anyhow::Result<Vec<ReleaseResult>> {
    let mut released = lines(building);
    let arrays = unfinished_arrays(host, building)?;
    for UnfinishedArray { device, .. } in &arrays {
        released.extend(unmount(host, building, device)?);
    }
    released.extend(folders(building));
    for UnfinishedArray { device, is_hollow } in &arrays {
        forget_content(host, building, device);
        let shown = device.node().display().to_string();
        released.push(match teardown::stop_with_retries(host, &device.node()) {
            Ok(()) => ReleaseResult::reverted(format!("the array {shown} was stopped")),
            Err(error) if *is_hollow => ReleaseResult::not_released(format!(
                "{shown}, which has no members and may belong to another program: {error}"
            )),
            Err(error) => ReleaseResult::stuck(format!(
                "the array {shown}, which could not be stopped: {error}"
            )),
        });
    }
    for member in members(host, building)? {
        released.push(zero(host, &member)?);
    }
    Ok(released)
}

fn lines(building: &Building) -> Vec<ReleaseResult> {
    if building.stage < BuildStage::Persisting {
        return Vec::new();
    }
    let take_out = |kept| match files::take_out(kept) {
        Ok(false) => None,
        Ok(true) => Some(ReleaseResult::reverted(format!(
            "the line in {} was taken out",
            kept.file.display()
        ))),
        Err(error) => Some(ReleaseResult::stuck(format!(
            "the line '{}' in {}, which could not be taken out: {error}",
            kept.line,
            kept.file.display()
        ))),
    };
    building.lines.iter().rev().filter_map(take_out).collect()
}

fn unmount(
    host: &mut ArrayHost,
    building: &Building,
    array: &Device,
) -> anyhow::Result<Option<ReleaseResult>> {
    let mounts = Mounts::read(&host.root)?;
    let is_there = |point: &&std::path::Path| {
        let mut on = mounts.on(array.number);
        on.any(|mount| mount.point == **point)
    };
    let Some(point) = building.point().filter(is_there) else {
        return Ok(None);
    };
    let shown = point.display();
    Ok(Some(match host.run(&Exec::new("umount").arg(point)) {
        Ok(_) => ReleaseResult::reverted(format!("{shown} was unmounted")),
        Err(error) => ReleaseResult::stuck(format!("{shown} is mounted: {error}")),
    }))
}

fn folders(building: &Building) -> Vec<ReleaseResult> {
    if building.stage < BuildStage::Mounting {
        return Vec::new();
    }
    let remove = |folder: &std::path::PathBuf| {
        let shown = folder.display();
        match std::fs::remove_dir(folder) {
            Ok(()) => Some(ReleaseResult::reverted(format!(
                "the folder {shown} was removed"
            ))),
            Err(error) => match error.kind() {
                ErrorKind::NotFound => None,
                ErrorKind::DirectoryNotEmpty => Some(ReleaseResult::not_released(format!(
                    "the folder {shown}, in which there is something"
                ))),
                _ => Some(ReleaseResult::stuck(format!("the folder {shown}: {error}"))),
            },
        }
    };
    building.folders.iter().rev().filter_map(remove).collect()
}

/// Erases the mark of our own file system, so that it does not show through in the next array on
/// these members and look like a foreign array. A failure here does no harm.
fn forget_content(host: &mut ArrayHost, building: &Building, array: &Device) {
    let node = array.node();
    let is_ours = std::fs::File::open(host.root.locate(&node))
        .and_then(|file| content(&file, building.fs.as_ref()))
        .is_ok_and(|content| matches!(content, Content::Fresh | Content::Used(_)));
    if is_ours && host.programs.has("wipefs") {
        let _ = host.run(&Exec::new("wipefs").args(["--all", "--quiet"]).arg(&node));
    }
}

/// Erases our superblock on a device that nothing uses.
fn zero(host: &mut ArrayHost, member: &Device) -> anyhow::Result<ReleaseResult> {
    let node = member.node();
    let shown = node.display();
    let reasons = DeviceUsers::read(&host.root)?.reasons(member.number);
    let held = reasons
        .iter()
        .find(|reason| !matches!(reason, Reason::RootDisk { .. }));
    if let Some(reason) = held {
        return Ok(ReleaseResult::stuck(format!(
            "the superblock on {shown}: {reason}"
        )));
    }
    let zero = Exec::new("mdadm").arg("--zero-superblock").arg(&node);
    Ok(match host.run(&zero) {
        Ok(_) => ReleaseResult::reverted(format!("the superblock on {shown} was erased")),
        Err(error) => ReleaseResult::stuck(format!("a superblock on {shown}: {error}")),
    })
}
