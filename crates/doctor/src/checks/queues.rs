//! Queues of block devices.

use linux::block::{BlockDeviceKind, Device};
use linux::cloud::Provider;

use crate::check::{Area, Basis, Check, Judgement};
use crate::facts::Facts;
use crate::facts::host::HostFacts;
use record::Bytes;

/// Read-ahead above which an accidental scan reads much more than was requested.
const LARGE_READ_AHEAD: Bytes = Bytes::mib(4);
/// Maximum nvme_core.io_timeout that the module accepts, in seconds, which EBS recommends.
const MAX_TIMEOUT_S: u64 = 4_294_967_295;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "scheduler",
        area: Area::Host,
        reads: "/sys/block/DEVICE/queue/scheduler",
        rule: "NVMe and virtual disks use none: the device orders requests itself. bfq and kyber are not for databases.",
        source: "Linux, Documentation/block/switching-sched.rst; seastar, perftune.py",
        basis: Basis::Inferred,
        playbook: "device-queue",
        judge: |facts| each_disk(facts, scheduler),
    },
    Check {
        name: "read-ahead",
        area: Area::Host,
        reads: "/sys/block/DEVICE/queue/read_ahead_kb",
        rule: "Read-ahead is at most 4 MiB; on disks that rotate 1 MiB or more, as AWS advises for st1 and sc1.",
        source: "Amazon EBS User Guide, \"Configure read-ahead for st1 and sc1 volumes\"",
        basis: Basis::Inferred,
        playbook: "device-queue",
        judge: |facts| each_disk(facts, read_ahead),
    },
    Check {
        name: "nomerges",
        area: Area::Host,
        reads: "/sys/block/DEVICE/queue/nomerges",
        rule: "Requests of neighbouring blocks are merged: a volume whose IOPS are counted pays for each.",
        source: "Linux, Documentation/ABI/stable/sysfs-block, nomerges; Amazon EBS User Guide, \"I/O characteristics\"",
        basis: Basis::Inferred,
        playbook: "device-queue",
        judge: |facts| each_disk(facts, nomerges),
    },
    Check {
        name: "write-cache",
        area: Area::Host,
        reads: "/sys/block/DEVICE/queue/write_cache, scsi_disk/cache_type",
        rule: "A device with a volatile cache is not declared write through: the kernel would send no flushes, and a \
               power cut takes what was committed.",
        source: "Linux, Documentation/block/writeback_cache_control.rst; sysfs-block, write_cache",
        basis: Basis::Documented,
        playbook: "commits-lost-at-power-cut",
        judge: |facts| each_disk(facts, write_cache),
    },
    Check {
        name: "nvme-io-timeout",
        area: Area::Host,
        reads: "/sys/module/nvme_core/parameters/io_timeout",
        rule: "On EC2 the NVMe driver waits as long as it can: after the default of 30 s a request fails, and the file \
               system turns read-only while the volume would have answered.",
        source: "Amazon EBS User Guide, \"NVMe I/O operation timeout\"",
        basis: Basis::Documented,
        playbook: "nvme-timeout",
        judge: nvme_timeout,
    },
];

fn each_disk(facts: &Facts, judge: fn(&HostFacts, &Device) -> Option<Judgement>) -> Vec<Judgement> {
    let disks = facts.host.disks().into_iter();
    disks.filter_map(|disk| judge(&facts.host, disk)).collect()
}

/// True for disks that order requests themselves: virtual disks and NVMe.
fn orders_itself(disk: &Device) -> bool {
    let virtual_names = ["nvme", "vd", "xvd"];
    virtual_names.iter().any(|name| disk.name.starts_with(name))
}

fn scheduler(_: &HostFacts, disk: &Device) -> Option<Judgement> {
    let now = disk.scheduler.as_deref()?;
    let value = format!("{}: {now}", disk.name);
    let wanted = if orders_itself(disk) {
        "none"
    } else {
        "mq-deadline"
    };
    let is_fine = match now {
        "none" | "noop" => true,
        "mq-deadline" | "deadline" => !orders_itself(disk),
        _ => false,
    };
    Some(match is_fine {
        true => Judgement::ok(value),
        false => Judgement::consider(
            value,
            format!("Choose {wanted}, in a udev rule so that it stays; 'disksmith sweep' compares schedulers here."),
        )
        .command(format!("echo {wanted} > /sys/block/{}/queue/scheduler", disk.sysfs_name())),
    })
}

fn read_ahead(_: &HostFacts, disk: &Device) -> Option<Judgement> {
    let now = disk.read_ahead?;
    let value = format!("{}: {now}", disk.name);
    let rotates = disk.rotational == Some(true) && !orders_itself(disk);
    let command = |kib: u64| {
        format!(
            "echo {kib} > /sys/block/{}/queue/read_ahead_kb",
            disk.sysfs_name()
        )
    };
    Some(match () {
        () if now > LARGE_READ_AHEAD => Judgement::consider(
            value,
            "A smaller read-ahead leaves IOPS and memory to the reads that programs request.",
        )
        .command(command(128)),
        () if rotates && now < Bytes::MIB => Judgement::consider(
            value,
            "Scans of a disk that rotates gain from reading 1 MiB at once.",
        )
        .command(command(1024)),
        () => Judgement::ok(value),
    })
}

fn nomerges(host: &HostFacts, disk: &Device) -> Option<Judgement> {
    let now = host.attribute(disk, "queue/nomerges")?;
    let value = format!("{}: {now}", disk.name);
    // A local NVMe disk has no paid IOPS limit, and less CPU is used without merging.
    let is_local_nvme = disk.name.starts_with("nvme")
        && !disk
            .model
            .as_deref()
            .is_some_and(|model| model.contains("Elastic Block Store"));
    Some(match now == "0" || is_local_nvme {
        true => Judgement::ok(value),
        false => Judgement::consider(value, "Merge neighbouring requests again.").command(format!(
            "echo 0 > /sys/block/{}/queue/nomerges",
            disk.sysfs_name()
        )),
    })
}

fn write_cache(host: &HostFacts, disk: &Device) -> Option<Judgement> {
    let now = disk.write_cache.as_deref()?;
    let folder = host
        .root
        .sys
        .join("class/block")
        .join(disk.sysfs_name())
        .join("device/scsi_disk");
    let of_disk = linux::root::names_in(&folder)
        .unwrap_or_default()
        .iter()
        .find_map(|name| linux::root::attribute(&folder.join(name).join("cache_type")));
    let value = match &of_disk {
        Some(own) => format!("{}: {now}; the disk reports {own}", disk.name),
        None => format!("{}: {now}", disk.name),
    };
    let is_volatile = of_disk.is_some_and(|own| own.starts_with("write back"));
    Some(match is_volatile && now == "write through" {
        true => Judgement::fix(
            value,
            "Let the kernel flush the cache, unless a battery or capacitor is known to keep it.",
        )
        .command(format!(
            "echo 'write back' > /sys/block/{}/queue/write_cache",
            disk.sysfs_name()
        )),
        false => Judgement::ok(value),
    })
}

fn nvme_timeout(facts: &Facts) -> Vec<Judgement> {
    let host = &facts.host;
    let path = host.root.sys.join("module/nvme_core/parameters/io_timeout");
    let has_nvme = host
        .devices
        .iter()
        .any(|device| device.kind == BlockDeviceKind::Disk && device.name.starts_with("nvme"));
    let Some(now) = linux::root::number::<u64>(&path)
        .filter(|_| has_nvme && host.provider == Some(Provider::Aws))
    else {
        return Vec::new();
    };
    let value = format!("nvme_core.io_timeout: {now} s");
    vec![match now >= MAX_TIMEOUT_S {
        true => Judgement::ok(value),
        false => Judgement::fix(
            value,
            "Set it on the kernel's command line, which needs a restart; until then at run time.",
        )
        .command(format!(
            "echo {MAX_TIMEOUT_S} > /sys/module/nvme_core/parameters/io_timeout"
        )),
    }]
}
