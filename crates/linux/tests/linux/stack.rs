//! Block devices and their stack, on captured and modelled trees.

use std::path::Path;

use crate::support::Tree;
use linux::block::{BlockDeviceKind, DeviceNumber, Devices, device_of, place_of};
use linux::diskstats::{Counter, DiskStats};
use linux::mounts::Mounts;
use proptest::prelude::*;
use record::Bytes;
use record::raid::Level;

fn names<'a>(devices: impl IntoIterator<Item = &'a linux::block::Device>) -> Vec<&'a str> {
    devices.into_iter().map(|d| d.name.as_str()).collect()
}

fn below(devices: &Devices, name: &str) -> Vec<String> {
    let number = devices.named(name).unwrap().number;
    names(devices.stack_below(number))
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn above(devices: &Devices, name: &str) -> Vec<String> {
    let number = devices.named(name).unwrap().number;
    names(devices.stack_above(number))
        .into_iter()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_captured_virtio_disk_is_described() {
    let tree = Tree::unpack("captured-virtio-6.18");
    let devices = tree.devices();
    assert_eq!(names(devices.iter()), ["loop0", "vda", "zram0"]);
    let disk = devices.named("vda").unwrap();
    assert_eq!(disk.number, DeviceNumber::new(254, 0));
    assert_eq!(disk.kind, BlockDeviceKind::Disk);
    assert_eq!(disk.size, Bytes::gib(256));
    assert_eq!(disk.model, None);
    assert_eq!(disk.serial.as_deref(), Some("overlayblk"));
    assert_eq!(disk.rotational, Some(true));
    assert_eq!(disk.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!(disk.read_ahead, Some(Bytes::mib(8)));
    assert_eq!(disk.write_cache.as_deref(), Some("write back"));
    assert_eq!(disk.logical_block, Some(Bytes(512)));
    assert_eq!(disk.physical_block, Some(Bytes(4096)));
    assert!(!disk.removable && !disk.read_only && !disk.is_empty());
    assert!(devices.named("loop0").unwrap().is_empty());
    assert_eq!(devices.named("zram0").unwrap().kind, BlockDeviceKind::Ram);
}

#[test]
fn a_partition_has_the_model_and_queue_of_its_disk() {
    let tree = Tree::unpack("ec2-nvme");
    let devices = tree.devices();
    let partition = devices.named("nvme0n1p1").unwrap();
    assert_eq!(partition.partition_of(), Some(DeviceNumber::new(259, 0)));
    assert_eq!(
        partition.model.as_deref(),
        Some("Amazon Elastic Block Store")
    );
    assert_eq!(partition.serial.as_deref(), Some("vol0123456789abcdef0"));
    assert_eq!(partition.scheduler.as_deref(), Some("none"));
    assert!(devices.named("nvme3n1").unwrap().read_only);
}

#[test]
fn partitions_lie_on_their_disk() {
    let tree = Tree::unpack("ec2-nvme");
    let devices = tree.devices();
    assert_eq!(below(&devices, "nvme0n1p1"), ["nvme0n1"]);
    assert_eq!(below(&devices, "nvme0n1"), ["nvme0n1"]);
    assert_eq!(
        above(&devices, "nvme0n1"),
        ["nvme0n1p1", "nvme0n1p14", "nvme0n1p15"]
    );
    assert!(above(&devices, "nvme0n1p1").is_empty());
}

#[test]
fn an_array_lies_on_its_members() {
    let tree = Tree::unpack("md-raid10-xfs");
    let devices = tree.devices();
    let array = devices.named("md0").unwrap();
    assert_eq!(array.title(), "raid10 array");
    let BlockDeviceKind::Raid { level, disks, uuid } = &array.kind else {
        panic!("{:?}", array.kind);
    };
    assert_eq!((level.clone(), *disks), (Some(Level::Ten.into()), Some(4)));
    assert!(uuid.is_some());
    assert_eq!(
        below(&devices, "md0"),
        ["nvme1n1", "nvme2n1", "nvme3n1", "nvme4n1"]
    );
    assert_eq!(above(&devices, "nvme3n1"), ["md0"]);
}

#[test]
fn a_volume_over_an_array_over_partitions_lies_on_the_disks() {
    let tree = Tree::unpack("lvm-over-md");
    let devices = tree.devices();
    assert_eq!(below(&devices, "dm-0"), ["sda", "sdb"]);
    assert_eq!(
        above(&devices, "sda"),
        ["sda1", "md127", "dm-0", "dm-1", "dm-2"]
    );
    let volume = devices.named("dm-0").unwrap();
    assert_eq!(volume.label(), "/dev/dm-0 (LVM volume vg-data)");
    let disk = devices.named("sda").unwrap();
    assert_eq!(disk.model.as_deref(), Some("Google PersistentDisk"));
}

#[test]
fn a_mapper_path_is_followed_to_its_device() {
    let tree = Tree::unpack("lvm-over-md");
    let devices = tree.devices();
    let find = |path: &str| devices.at_path(&tree.root, Path::new(path));
    assert_eq!(find("/dev/mapper/vg-free").unwrap().name, "dm-2");
    assert_eq!(find("/dev/sda1").unwrap().name, "sda1");
    assert_eq!(find("/dev/nothing"), None);
    assert_eq!(find("/srv/sda1"), None);
}

#[test]
fn a_mapper_path_without_a_node_is_found_by_name() {
    let tree = Tree::unpack("lvm-over-md");
    std::fs::remove_dir_all(&tree.root.dev).unwrap();
    let devices = tree.devices();
    let find = |path: &str| devices.at_path(&tree.root, Path::new(path));
    assert_eq!(find("/dev/mapper/vg-free").unwrap().name, "dm-2");
    assert_eq!(find("/dev/sdb1").unwrap().name, "sdb1");
}

#[test]
fn a_multipath_device_lies_on_its_paths() {
    let tree = Tree::unpack("multipath");
    let devices = tree.devices();
    assert_eq!(below(&devices, "dm-1"), ["sda", "sdb"]);
    assert_eq!(above(&devices, "sdb"), ["dm-0", "dm-1"]);
    let label = |name| devices.named(name).unwrap().label();
    assert_eq!(label("dm-0"), "/dev/dm-0 (multipath device mpatha)");
    assert_eq!(label("dm-1"), "/dev/dm-1 (mapped partition mpatha1)");
    assert_eq!(label("dm-2"), "/dev/dm-2 (encrypted volume secret)");
    let model = |name: &str| devices.named(name).unwrap().model.clone();
    assert_eq!(model("sda").as_deref(), Some("NETAPP LUN C-Mode"));
    assert_eq!(model("sdc").as_deref(), Some("VBOX HARDDISK"));
}

#[test]
fn an_nvme_multipath_head_is_a_disk_and_its_paths_are_hidden() {
    let tree = Tree::unpack("nvme-multipath");
    let devices = tree.devices();
    assert_eq!(below(&devices, "nvme0n1"), ["nvme0n1"]);
    assert_eq!(
        devices.named("nvme0n1").unwrap().wwid.as_deref(),
        Some("eui.0025385a71b00000")
    );
    assert!(!devices.named("nvme0n1").unwrap().hidden);
    assert!(devices.named("nvme0c0n1").unwrap().hidden);
}

#[test]
fn a_loop_device_ends_at_its_file_and_continues_to_its_device() {
    let tree = Tree::unpack("loops");
    let devices = tree.devices();
    assert_eq!(below(&devices, "loop0"), ["loop0"]);
    assert_eq!(below(&devices, "loop1"), ["vdb"]);
    assert_eq!(above(&devices, "vdb"), ["vdb1", "loop1"]);
    let backing = |name| match &devices.named(name).unwrap().kind {
        BlockDeviceKind::Loop { backing_file, .. } => backing_file.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        backing("loop0").as_deref(),
        Some(Path::new("/srv/images/my disk.img"))
    );
    assert_eq!(backing("loop2"), None);
    assert!(devices.named("loop2").unwrap().is_empty());
}

#[test]
fn a_slash_in_a_name_is_an_exclamation_mark_in_sysfs() {
    let tree = Tree::unpack("odd-names");
    let devices = tree.devices();
    assert_eq!(
        names(devices.iter()),
        [
            "cciss/c0d0",
            "cciss/c0d0p1",
            "cciss/c0d0p2",
            "cciss/c0d0p10"
        ]
    );
    let disk = devices.named("cciss/c0d0").unwrap();
    assert_eq!(disk.sysfs_name(), "cciss!c0d0");
    assert_eq!(disk.node(), Path::new("/dev/cciss/c0d0"));
    assert_eq!(below(&devices, "cciss/c0d0p10"), ["cciss/c0d0"]);
    assert!(DiskStats::read(&tree.root, disk).is_ok());
}

#[test]
fn a_device_that_is_going_away_is_listed_with_what_is_left_or_not_at_all() {
    let tree = Tree::unpack("going-away");
    let devices = tree.devices();
    assert_eq!(names(devices.iter()), ["nvme0n1", "nvme1n1"]);
    let leaving = devices.named("nvme1n1").unwrap();
    assert!(leaving.is_empty());
    assert_eq!(
        (leaving.scheduler.as_ref(), leaving.rotational),
        (None, None)
    );
    // Its own stat file does not exist any more; the list of all devices still has it.
    assert_eq!(DiskStats::read(&tree.root, leaving).unwrap().reads, 7);
}

#[test]
fn counters_of_a_device_that_is_gone_are_an_error_that_names_it() {
    let tree = Tree::unpack("going-away");
    let devices = tree.devices();
    let leaving = devices.named("nvme1n1").unwrap();
    tree.write("proc/diskstats", "");
    let error = DiskStats::read(&tree.root, leaving).unwrap_err();
    assert!(error.to_string().contains("259:4"), "{error}");
}

#[test]
fn damaged_counters_are_an_error_that_names_the_file() {
    let tree = Tree::unpack("captured-virtio-6.18");
    tree.write("sys/class/block/vda/stat", "1 2 three");
    let disk = tree.devices().named("vda").unwrap().clone();
    let error = DiskStats::read(&tree.root, &disk).unwrap_err().to_string();
    assert!(error.contains("vda/stat, line 1"), "{error}");
}

#[test]
fn an_open_counter_sees_what_is_counted_later() {
    let tree = Tree::unpack("captured-virtio-6.18");
    let disk = tree.devices().named("vda").unwrap().clone();
    let counter = Counter::open(&tree.root, &disk).unwrap();
    let before = counter.read().unwrap();
    assert_eq!(before.reads, 198_870);
    tree.write(
        "sys/class/block/vda/stat",
        "198880 12788 8486130 233771 70026 31278 9144040 36890 0 31766 274309",
    );
    // Only the first eleven counters changed: no real kernel drops counters at run time.
    let after = DiskStats {
        flushes: before.flushes,
        ..counter.read().unwrap()
    };
    let counts = after.since(&before).unwrap();
    assert_eq!((counts.reads, counts.read_bytes), (10, 160 * 512));
    assert_eq!(counts.busy_ms, 10);
}

#[test]
fn diskstats_of_many_devices_are_read_to_the_end() {
    let tree = Tree::unpack("going-away");
    let mut text = String::new();
    for minor in 100..400 {
        text += &format!(" 8 {minor} sd{minor} 1 2 3 4 5 6 7 8 9 10 11\n");
    }
    text += " 259 4 nvme1n1 42 2 3 4 5 6 7 8 9 10 11\n";
    tree.write("proc/diskstats", text);
    let leaving = tree.devices().named("nvme1n1").unwrap().clone();
    assert_eq!(DiskStats::read(&tree.root, &leaving).unwrap().reads, 42);
}

#[test]
fn a_btrfs_lies_on_all_its_disks() {
    let tree = Tree::unpack("btrfs-two-disks");
    let devices = tree.devices();
    let mounts = Mounts::read(&tree.root).unwrap();
    let mount = mounts.containing(Path::new("/srv/db")).unwrap();
    assert_eq!(mount.root, Path::new("/@data"));
    let on = mount.devices(&tree.root, &devices, &mounts);
    assert_eq!(on, [tree.number("vdb"), tree.number("vdc")]);
}

#[test]
fn an_overlay_lies_where_its_layers_lie() {
    let tree = Tree::unpack("overlay-root");
    let devices = tree.devices();
    let mounts = Mounts::read(&tree.root).unwrap();
    let mount = mounts.containing(Path::new("/home")).unwrap();
    let on = mount.devices(&tree.root, &devices, &mounts);
    assert_eq!(on, [tree.number("vdb"), tree.number("vda1")]);
}

#[test]
fn memory_and_network_file_systems_lie_on_no_device() {
    let tree = Tree::unpack("loops");
    tree.write(
        "proc/self/mountinfo",
        "27 1 0:30 / / rw - nfs4 host:/dev/vdb1 rw\n",
    );
    let (devices, mounts) = (tree.devices(), Mounts::read(&tree.root).unwrap());
    let mount = mounts.containing(Path::new("/")).unwrap();
    assert!(mount.devices(&tree.root, &devices, &mounts).is_empty());
}

#[test]
fn a_path_on_this_machine_has_a_place_or_none() {
    let root = linux::Root::host();
    let devices = Devices::read(&root).unwrap();
    let place = place_of(&root, &devices, Path::new("/proc/self")).unwrap();
    assert!(place.devices.is_empty());
    assert_eq!(place.mount.unwrap().kind, "proc");
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(
        place_of(&root, &devices, file.path())
            .unwrap()
            .mount
            .is_some()
    );
    let error = device_of(&root, &devices, Path::new("/no/such")).unwrap_err();
    assert!(error.to_string().starts_with("/no/such could not be read"));
}

proptest! {
    // Each case unpacks a tree.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_bytes_in_an_attribute_are_read_or_passed_over(bytes: Vec<u8>) {
        let tree = Tree::unpack("loops");
        for path in [
            "vdb/size",
            "vdb/ro",
            "vdb/queue/scheduler",
            "vdb/queue/read_ahead_kb",
            "vdb1/partition",
            "loop0/loop/backing_file",
            "loop1/dev",
        ] {
            tree.write(&format!("sys/class/block/{path}"), &bytes);
        }
        let devices = tree.devices();
        for device in devices.iter() {
            let _ = devices.stack_below(device.number);
            let _ = devices.stack_above(device.number);
            let _ = DiskStats::read(&tree.root, device);
        }
    }
}
