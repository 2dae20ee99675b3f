//! Members that carry no superblock, and the evidence that they never got one.

use std::fs::File;

use linux::block::{BlockDeviceKind, Device, Devices};
use linux::signature::{self, SignatureKind};

use super::super::building::{Building, SavedMember, partition_number};
use super::super::host::ArrayHost;

/// Reason for which it cannot be determined that mdadm was killed before it had written all superblocks, as a clause.
/// `None` where it can: each member that is not among the `found`, which carry one of ours, is
/// attached, can be read, and carries none. One that is detached may carry its own, and the array
/// may have been used.
///
/// # Errors
/// When the kernel's lists cannot be read.
pub(super) fn doubt(
    host: &ArrayHost,
    building: &Building,
    found: &[Device],
) -> anyhow::Result<Option<String>> {
    let devices = Devices::read(&host.root)?;
    let same_boot = linux::process::boot_id(&host.root).is_ok_and(|boot| boot == building.boot);
    let carries = |device: &Device| found.iter().any(|one| one.number == device.number);
    for member in &building.members {
        let alike: Vec<&Device> = devices
            .iter()
            .filter(|device| is_alike(member, device, same_boot))
            .collect();
        // Namespaces of one NVMe drive share its serial number, and are distinguished by their count.
        let wanted = building.members.iter().filter(|other| {
            other.serial == member.serial
                && other.partition == member.partition
                && (member.serial.is_some() || other.number == member.number)
        });
        let wanted = wanted.count();
        let (carrying, bare): (Vec<&Device>, Vec<&Device>) =
            alike.into_iter().partition(|device| carries(device));
        if carrying.len() >= wanted {
            continue;
        }
        if carrying.len() + bare.len() < wanted {
            let named = member.named();
            return Ok(Some(if member.serial.is_some() || same_boot {
                format!("{named} is not here")
            } else {
                format!("which device was {named} before this boot is not known")
            }));
        }
        if let Some(why) = bare.into_iter().find_map(|device| mark(host, device)) {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// True if a device is the former member: by its serial number, which a boot does not change, or else by its
/// number, which another device may have after one.
fn is_alike(member: &SavedMember, device: &Device, same_boot: bool) -> bool {
    match &member.serial {
        Some(serial) => {
            device.serial.as_ref() == Some(serial)
                && partition_number(device) == member.partition
                && !matches!(device.kind, BlockDeviceKind::Raid { .. })
        }
        None => same_boot && device.number.to_string() == member.number,
    }
}

/// Evidence that a device was a member, as a clause.
fn mark(host: &ArrayHost, device: &Device) -> Option<String> {
    let node = device.node();
    let shown = node.display();
    let is_raid = |found: &signature::Signature| found.kind == SignatureKind::LinuxRaidMember;
    match File::open(host.root.locate(&node)).and_then(|file| signature::probe(&file)) {
        Ok(found) if found.iter().any(is_raid) => {
            Some(format!("{shown} carries the superblock of another array"))
        }
        Ok(_) => None,
        Err(error) => Some(format!("{shown} cannot be read: {error}")),
    }
}
