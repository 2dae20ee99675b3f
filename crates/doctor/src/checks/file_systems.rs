//! Mount options, and alignment from the file system down to the disk.

use linux::block::{BlockDeviceKind, Device};
use linux::mounts::Mount;

use crate::check::{Area, Basis, Check, Judgement};
use crate::facts::Facts;
use record::Bytes;

/// Size of a sector in sysfs and in XFS's mount options, in bytes.
const SECTOR: u64 = 512;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "mount-barriers",
        area: Area::Host,
        reads: "/proc/self/mountinfo",
        rule: "A file system that holds data flushes the device's cache: no nobarrier, no barrier=0.",
        source: "ext4(5), barrier; Linux, Documentation/block/writeback_cache_control.rst",
        basis: Basis::Documented,
        playbook: "commits-lost-at-power-cut",
        judge: |facts| each_mount(facts, barriers),
    },
    Check {
        name: "mount-discard",
        area: Area::Host,
        reads: "/proc/self/mountinfo",
        rule: "Freed blocks are discarded by fstrim.timer, not with each delete (discard).",
        source: "fstrim(8); Red Hat, \"Discarding unused blocks\"",
        basis: Basis::Documented,
        playbook: "mount-options",
        judge: |facts| each_mount(facts, discard),
    },
    Check {
        name: "mount-atime",
        area: Area::Host,
        reads: "/proc/self/mountinfo",
        rule: "Reads write no access times: noatime or relatime.",
        source: "mount(8), relatime",
        basis: Basis::Documented,
        playbook: "mount-options",
        judge: |facts| each_mount(facts, atime),
    },
    Check {
        name: "alignment",
        area: Area::Host,
        reads: "/sys/block/DEVICE/PARTITION/start, alignment_offset, chunk_size, mount options",
        rule: "A partition starts at a multiple of 1 MiB, and below an array at one of the chunk; a file system on a \
               striped array knows the chunk.",
        source: "Linux, Documentation/ABI/stable/sysfs-block, alignment_offset; mkfs.xfs(8), sunit; mke2fs(8), stride",
        basis: Basis::Inferred,
        playbook: "alignment",
        judge: alignment,
    },
];

fn each_mount(facts: &Facts, judge: fn(&Facts, &Mount) -> Option<Judgement>) -> Vec<Judgement> {
    let mounts = facts.host.concerned_mounts().into_iter();
    mounts.filter_map(|mount| judge(facts, mount)).collect()
}

fn options(mount: &Mount) -> impl Iterator<Item = &str> {
    mount
        .options
        .split(',')
        .chain(mount.super_options.split(','))
}

fn barriers(_: &Facts, mount: &Mount) -> Option<Judgement> {
    let found = options(mount).find(|option| matches!(*option, "nobarrier" | "barrier=0"));
    let point = mount.point.display();
    Some(match found {
        Some(option) => Judgement::fix(
            format!("{point} ({}): {option}", mount.kind),
            "Commits that are in the device's cache are lost with the power. Without a volatile cache barriers cost nothing.",
        )
        .command(format!("mount -o remount,barrier=1 {point}")),
        None => Judgement::ok(format!("{point} ({}): barriers", mount.kind)),
    })
}

fn discard(_: &Facts, mount: &Mount) -> Option<Judgement> {
    let point = mount.point.display();
    // btrfs has an asynchronous discard.
    let is_sync = options(mount).any(|option| option == "discard" || option == "discard=sync");
    let is_sync = is_sync && !options(mount).any(|option| option == "discard=async");
    Some(match is_sync {
        true => Judgement::consider(
            format!("{point}: discard"),
            "Trim once a week instead of within each commit.",
        )
        .command(format!(
            "mount -o remount,nodiscard {point} && systemctl enable --now fstrim.timer"
        )),
        false => Judgement::ok(format!("{point}: no discard")),
    })
}

fn atime(_: &Facts, mount: &Mount) -> Option<Judgement> {
    let point = mount.point.display();
    let found = options(mount).find(|option| matches!(*option, "noatime" | "relatime"));
    Some(match found {
        Some(option) => Judgement::ok(format!("{point}: {option}")),
        None => Judgement::consider(
            format!("{point}: strictatime"),
            "Each read of a file writes its inode.",
        )
        .command(format!("mount -o remount,noatime {point}")),
    })
}

fn alignment(facts: &Facts) -> Vec<Judgement> {
    let host = &facts.host;
    let mut found: Vec<Judgement> = host
        .checked_devices()
        .into_iter()
        .filter_map(|device| partition_start(facts, device))
        .collect();
    for mount in host.concerned_mounts() {
        let array = host
            .arrays
            .iter()
            .find(|array| array.number == mount.device);
        let chunk = array.and_then(|array| array.chunk);
        found.extend(chunk.and_then(|chunk| stripe(mount, chunk)));
    }
    found
}

fn partition_start(facts: &Facts, device: &Device) -> Option<Judgement> {
    let BlockDeviceKind::Partition { of, .. } = device.kind else {
        return None;
    };
    let host = &facts.host;
    let start: u64 = host.attribute(device, "start")?.parse().ok()?;
    let start = start * SECTOR;
    let offset = host
        .attribute(device, "alignment_offset")
        .unwrap_or_default();
    let value = format!("{}: starts at {}", device.name, Bytes(start));
    // The device is an array's partition, or a member of an array.
    let arrays = host.arrays.iter().filter(|array| {
        array.number == of
            || array
                .members
                .iter()
                .any(|member| member.number == Some(device.number))
    });
    let chunk = arrays.filter_map(|array| array.chunk).next();
    let unit = chunk
        .unwrap_or(Bytes::MIB)
        .max(device.physical_block.unwrap_or(Bytes(SECTOR)));
    let is_aligned = start.is_multiple_of(unit.0) && matches!(offset.as_str(), "" | "0");
    let physical = device.physical_block.unwrap_or(Bytes::kib(4));
    Some(match () {
        () if is_aligned => Judgement::ok(value),
        () if start.is_multiple_of(physical.0) && chunk.is_none() => Judgement::consider(
            value,
            "It is no multiple of 1 MiB, so that large blocks lie across two of the device's. A new partition starts at 1 MiB.",
        ),
        () => Judgement::fix(
            value,
            format!(
                "Blocks lie across two of {unit} each, so that a write becomes two. Make the partition anew at 1 MiB, and restore."
            ),
        ),
    })
}

/// Judgement of the stripe for which a file system on an array was created.
fn stripe(mount: &Mount, chunk: Bytes) -> Option<Judgement> {
    let number = |name: &str| -> Option<u64> {
        let all = mount
            .super_options
            .split(',')
            .chain(mount.options.split(','));
        let mut found = all.filter_map(|option| option.strip_prefix(name)?.strip_prefix('='));
        found.next()?.parse().ok()
    };
    let point = mount.point.display();
    let (known, unit) = match mount.kind.as_str() {
        "xfs" => (number("sunit").map(|sectors| sectors * SECTOR), "sunit"),
        "ext4" => (number("stripe").map(|blocks| blocks * 4096), "stripe"),
        _ => return None,
    };
    let value = match known {
        Some(known) => format!(
            "{point} ({}): {unit} of {}, chunk of {chunk}",
            mount.kind,
            Bytes(known)
        ),
        None => format!("{point} ({}): no {unit}, chunk of {chunk}", mount.kind),
    };
    Some(match known {
        Some(known) if known.is_multiple_of(chunk.0) => Judgement::ok(value),
        Some(_) => Judgement::fix(
            value,
            "The file system aligns to another array than it lies on. XFS takes sunit and swidth when it is mounted.",
        ),
        None => Judgement::consider(
            value,
            "Its allocation does not follow the stripes: writes touch more members than they need to.",
        ),
    })
}
