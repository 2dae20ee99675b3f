use std::sync::Arc;

use super::*;
use crate::Bytes;

fn device(id: u32, name: &str, lies_on: &[u32]) -> DeviceSample {
    let mut device = Device::by_name(DeviceId(id), name, SampleTime::default());
    device.lies_on = lies_on.iter().map(|id| DeviceId(*id)).collect();
    DeviceSample::unknown(Arc::new(device))
}

fn names<'a>(samples: impl Iterator<Item = &'a DeviceSample>) -> Vec<&'a str> {
    samples.map(|sample| sample.device.name.as_str()).collect()
}

#[test]
fn the_tree_is_walked_both_ways() {
    let mut sample = Sample {
        devices: vec![
            device(0, "md0", &[1, 2]),
            device(1, "vdb", &[]),
            device(2, "vdc", &[]),
            device(3, "vda", &[]),
            device(4, "vda1", &[3]),
        ],
        ..Sample::default()
    };
    let part = Device::clone(&sample.devices[4].device);
    sample.devices[4].device = Arc::new(Device {
        kind: DeviceKind::Partition,
        ..part
    });
    let md = &sample.named("md0").unwrap().device;
    assert_eq!(names(sample.below(md)), ["vdb", "vdc"]);
    assert_eq!(names(sample.above(DeviceId(1))), ["md0"]);
    assert_eq!(names(sample.tops()), ["md0", "vda"]);
}

#[test]
fn the_kind_of_a_device_follows_from_its_name() {
    for (name, kind) in [
        ("sda", DeviceKind::Disk),
        ("sda1", DeviceKind::Disk),
        ("nvme0n1", DeviceKind::Disk),
        ("nvme0n1p2", DeviceKind::Disk),
        ("cciss/c0d0p1", DeviceKind::Disk),
        ("md127", DeviceKind::Array),
        ("md0p1", DeviceKind::Array),
        ("md_d0", DeviceKind::Array),
        ("dm-3", DeviceKind::Mapper),
        ("loop0", DeviceKind::Loop),
        ("zram0", DeviceKind::Memory),
        ("sr0", DeviceKind::Disk),
        ("", DeviceKind::Disk),
    ] {
        assert_eq!(DeviceKind::by_name(name), kind, "{name}");
    }
}

#[test]
fn the_disk_of_a_partition_is_named_by_it() {
    for (part, disk) in [
        ("sda1", "sda"),
        ("hda3", "hda"),
        ("xvdba2", "xvdba"),
        ("xvdap1", "xvda"),
        ("nvme0n1p12", "nvme0n1"),
        ("mmcblk0p1", "mmcblk0"),
        ("cciss/c0d0p1", "cciss/c0d0"),
        ("rbd0p1", "rbd0"),
        ("md0p1", "md0"),
        ("emcpowera1", "emcpowera"),
        ("dasda1", "dasda"),
        ("mpatha1", "mpatha"),
        ("mpathap1", "mpatha"),
        ("mpatha-part1", "mpatha"),
        ("ata-X_1234-part2", "ata-X_1234"),
    ] {
        assert!(disks_of_partition(part).any(|one| one == disk), "{part}");
    }
    for (name, other) in [
        ("vg-data1", "vg-data"),
        ("nvme0n1", "nvme0"),
        ("sda", "sd"),
        ("dm-1", "dm-"),
        ("12", ""),
        ("", ""),
    ] {
        assert!(disks_of_partition(name).all(|one| one != other), "{name}");
    }
}

#[test]
fn reads_writes_and_discards_add_up() {
    let mut sample = device(0, "vda", &[]);
    sample.read = Flow {
        iops: Some(PerSecond(300.0)),
        bytes: Some(BytesPerSecond(300.0 * 4096.0)),
        wait: Some(Nanos(1_000_000)),
        ..Flow::default()
    };
    sample.write = Flow {
        iops: Some(PerSecond(100.0)),
        bytes: Some(BytesPerSecond(100.0 * 8192.0)),
        wait: Some(Nanos(5_000_000)),
        ..Flow::default()
    };
    sample.sum_up();
    assert_eq!(sample.all.iops, Some(PerSecond(400.0)));
    assert_eq!(sample.all.wait, Some(Nanos(2_000_000)));
    assert_eq!(sample.all.size, Some(Bytes(5120)));
    assert_eq!(sample.all.merged, None);
}

#[test]
fn values_known_only_of_the_sum_stay() {
    let mut sample = device(0, "sda", &[]);
    sample.all.wait = Some(Nanos(7));
    sample.all.iops = Some(PerSecond(9.0));
    sample.sum_up();
    assert_eq!(sample.all.wait, Some(Nanos(7)));
    assert_eq!(sample.all.iops, Some(PerSecond(9.0)));
}

#[test]
fn an_idle_device_has_no_wait() {
    let mut sample = device(0, "sda", &[]);
    sample.read.iops = Some(PerSecond(0.0));
    sample.sum_up();
    assert_eq!(sample.all.iops, Some(PerSecond(0.0)));
    assert_eq!(sample.all.wait, None);
    assert!(!sample.read.is_active());
}

#[test]
fn the_word_of_an_action_is_the_kernels() {
    for word in [
        "idle", "resync", "recover", "check", "repair", "reshape", "frozen",
    ] {
        assert_eq!(SyncAction::from_name(word).unwrap().name(), word);
    }
    assert_eq!(SyncAction::from_name("none"), None);
}
