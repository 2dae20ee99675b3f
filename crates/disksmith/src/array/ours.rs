//! Taking back what was made here, and nothing else: an array, its superblocks and a file system are
//! known by the ids that were chosen for them before they were made.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linux::block::{Device, Devices, Kind};
use linux::exec::{self, Exec};
use linux::signature;

use super::host::Host;
use super::plan;
use super::steps::Undone;

/// How often stopping an array is tried: whoever looks at a new device, as udev does, holds it for
/// a moment.
const STOPS: u32 = 5;

/// How long is waited between.
const PAUSE: Duration = Duration::from_millis(500);

/// Stops the array of this id, if it is there.
pub(crate) fn stop(host: &mut Host, uuid: &str) -> Vec<Undone> {
    let devices = match Devices::read(&host.root) {
        Ok(devices) => devices,
        Err(error) => {
            return vec![Undone::Left(format!(
                "whether the array {uuid} is still there is not known: {error}"
            ))];
        }
    };
    let is_array = |device: &&Device| matches!(device.kind, Kind::Raid { .. });
    let nodes: Vec<PathBuf> = devices.iter().filter(is_array).map(Device::node).collect();
    let mut undone = Vec::new();
    for node in nodes {
        if !has_uuid(host, "--detail", &node, uuid) {
            continue;
        }
        let shown = node.display().to_string();
        undone.push(match stop_patiently(host, &node) {
            Ok(()) => Undone::Back(format!("the array {shown} was stopped")),
            Err(error) => Undone::Left(format!(
                "the array {shown}, which could not be stopped: {error}; when nothing uses it, \
                 mdadm --stop {shown}"
            )),
        });
    }
    undone
}

/// Takes the superblock off a member, if it is of the array of this id.
pub(crate) fn release(host: &mut Host, uuid: &str, path: &Path) -> Option<Undone> {
    if !has_uuid(host, "--examine", path, uuid) {
        return None;
    }
    let shown = path.display();
    let zero = Exec::new("mdadm").arg("--zero-superblock").arg(path);
    Some(match host.run(&zero) {
        Ok(_) => Undone::Back(format!("the superblock on {shown} was erased")),
        Err(error) => Undone::Left(format!(
            "a superblock on {shown}: {error}; mdadm --zero-superblock {shown}"
        )),
    })
}

/// Erases the file system on a disk, if it is the one of this id.
pub(crate) fn erase(host: &mut Host, id: &str, path: &Path) -> Option<Undone> {
    let file = File::open(host.root.locate(path)).ok()?;
    let found = signature::file_system_id(&file).ok()??;
    drop(file);
    if found != id {
        return None;
    }
    let shown = path.display();
    Some(match host.run(&plan::wipe(path)) {
        Ok(_) => Undone::Back(format!("the file system on {shown} was erased")),
        Err(error) => Undone::Left(format!(
            "a file system on {shown}: {error}; wipefs --all {shown}"
        )),
    })
}

/// Whether mdadm's look at a device, `--detail` or `--examine`, names the array of this id.
pub(crate) fn has_uuid(host: &mut Host, look: &str, path: &Path, uuid: &str) -> bool {
    let said = host.ask(&Exec::new("mdadm").args([look, "--export"]).arg(path));
    let ours = format!("MD_UUID={uuid}");
    said.is_ok_and(|said| said.text().lines().any(|line| line.trim() == ours))
}

/// Stops an array.
///
/// # Errors
/// What mdadm says at the last try.
pub(crate) fn stop_patiently(host: &mut Host, node: &Path) -> Result<(), exec::Error> {
    let stop = plan::stop(node);
    let mut outcome = host.run(&stop);
    for _ in 1..STOPS {
        if outcome.is_ok() {
            break;
        }
        std::thread::sleep(PAUSE);
        outcome = host.ask(&stop);
    }
    outcome.map(|_| ())
}
