//! Arrays and members that a killed `array create` left.

use linux::block::{BlockDeviceKind, Device, Devices};

use super::super::building::{BuildStage, Building};
use super::super::host::ArrayHost;
use super::super::teardown;

/// An array that a killed `array create` made, or began to make.
pub(super) struct UnfinishedArray {
    pub(super) device: Device,
    /// True if it has no members and no size: mdadm was killed before it gave it any.
    pub(super) is_hollow: bool,
}

/// The arrays that carry our id, or consist of members that do, as long as mdadm has not started it.
/// If mdadm may have been killed, hollow ones too: nothing can be on them, and one that another
/// mdadm is just filling is open and cannot be stopped.
pub(super) fn unfinished_arrays(
    host: &mut ArrayHost,
    building: &Building,
) -> anyhow::Result<Vec<UnfinishedArray>> {
    let devices = Devices::read(&host.root)?;
    let is_array = |device: &&Device| matches!(device.kind, BlockDeviceKind::Raid { .. });
    let mut found = Vec::new();
    for array in devices.iter().filter(is_array) {
        let below = devices.parents(array.number);
        let is_hollow = array.is_empty() && below.is_empty();
        let is_made = if is_hollow {
            building.stage == BuildStage::Assembling
        } else {
            let of_ours = |member: &&Device| has_our_uuid(host, "--examine", member, building);
            let consists_of_ours = !below.is_empty() && below.iter().all(of_ours);
            consists_of_ours || has_our_uuid(host, "--detail", array, building)
        };
        if is_made {
            found.push(UnfinishedArray {
                device: array.clone(),
                is_hollow,
            });
        }
    }
    Ok(found)
}

/// Devices whose superblock has our id, under whichever name: after a boot they may have other names.
pub(super) fn members(host: &mut ArrayHost, building: &Building) -> anyhow::Result<Vec<Device>> {
    let devices = Devices::read(&host.root)?;
    let may_be = |device: &&Device| !device.is_empty() && !device.hidden && !device.read_only;
    let mut found = Vec::new();
    for device in devices.iter().filter(may_be) {
        if has_our_uuid(host, "--examine", device, building) {
            found.push(device.clone());
        }
    }
    Ok(found)
}

pub(super) fn has_our_uuid(
    host: &mut ArrayHost,
    option: &str,
    device: &Device,
    building: &Building,
) -> bool {
    // A device that cannot be examined now is examined by the next repair.
    teardown::has_uuid(host, option, &device.node(), &building.uuid).unwrap_or(false)
}
