//! Reasons why a device may not be overwritten, on captured and modelled trees: each reason, and a similar device
//! without it.

use std::fs;

use crate::support::{Tree, ext4_image};
use linux::consent::{BackingUnknown, DeviceUsers, Reason, Relation, why_not_writable};
use linux::signature::{LocatedContent, SignatureKind};

fn reasons(tree: &Tree, name: &str) -> Vec<Reason> {
    let uses = DeviceUsers::read(&tree.root).unwrap();
    uses.reasons(uses.devices().named(name).unwrap().number)
}

fn mounted(device: &str, relation: Relation, point: &str) -> Reason {
    Reason::Mounted {
        device: device.to_owned(),
        relation,
        point: point.into(),
    }
}

fn root_disk(disk: &str, point: &str) -> Reason {
    Reason::RootDisk {
        disk: disk.to_owned(),
        point: point.into(),
    }
}

fn held(device: &str, relation: Relation, holder: &str) -> impl Fn(&Reason) -> bool {
    move |reason| {
        matches!(reason, Reason::Held { device: d, relation: r, holder: h, .. }
            if d == device && *r == relation && h == holder)
    }
}

#[test]
fn the_root_disk_is_refused_with_all_that_is_on_it() {
    let tree = Tree::unpack("ec2-nvme");
    assert_eq!(
        reasons(&tree, "nvme0n1"),
        [
            root_disk("/dev/nvme0n1", "/"),
            mounted("/dev/nvme0n1p1", Relation::Partition, "/"),
            mounted("/dev/nvme0n1p15", Relation::Partition, "/boot/efi"),
        ]
    );
}

#[test]
fn an_unused_partition_of_the_root_disk_is_refused() {
    let tree = Tree::unpack("ec2-nvme");
    assert_eq!(
        reasons(&tree, "nvme0n1p14"),
        [root_disk("/dev/nvme0n1", "/")]
    );
}

#[test]
fn the_root_disk_of_a_captured_machine_is_refused() {
    let tree = Tree::unpack("captured-virtio-6.18");
    assert_eq!(
        reasons(&tree, "vda"),
        [
            root_disk("/dev/vda", "/"),
            mounted("/dev/vda", Relation::Itself, "/"),
        ]
    );
}

#[test]
fn the_disks_below_an_overlay_root_are_refused() {
    let tree = Tree::unpack("overlay-root");
    assert_eq!(reasons(&tree, "vda3"), [root_disk("/dev/vda", "/")]);
    assert!(reasons(&tree, "vdb").contains(&root_disk("/dev/vdb", "/")));
    assert_eq!(reasons(&tree, "vdc"), []);
}

#[test]
fn a_root_disk_that_only_the_first_process_sees_is_refused() {
    let tree = Tree::unpack("ec2-nvme");
    let host = fs::read(tree.root.proc.join("self/mountinfo")).unwrap();
    fs::create_dir(tree.root.proc.join("1")).unwrap();
    tree.write("proc/1/mountinfo", host);
    tree.write(
        "proc/self/mountinfo",
        "1 0 0:50 / / rw - overlay overlay rw,lowerdir=/l\n",
    );
    assert!(reasons(&tree, "nvme0n1p14").contains(&root_disk("/dev/nvme0n1", "/")));
}

#[test]
fn a_mounted_disk_is_refused_and_the_free_one_alongside_it_is_not() {
    let tree = Tree::unpack("ec2-nvme");
    assert_eq!(
        reasons(&tree, "nvme1n1"),
        [mounted("/dev/nvme1n1", Relation::Itself, "/var/lib/mysql")]
    );
    assert_eq!(reasons(&tree, "nvme2n1"), []);
}

#[test]
fn a_partition_of_a_mounted_whole_disk_is_refused() {
    let tree = Tree::unpack("swap-partition");
    tree.write(
        "proc/self/mountinfo",
        "41 27 254:16 / /srv rw - ext4 /dev/vdb rw\n",
    );
    assert_eq!(
        reasons(&tree, "vdb2"),
        [mounted("/dev/vdb", Relation::Below, "/srv")]
    );
}

#[test]
fn a_read_only_disk_is_refused() {
    let tree = Tree::unpack("ec2-nvme");
    assert_eq!(
        reasons(&tree, "nvme3n1"),
        [Reason::ReadOnly {
            device: "/dev/nvme3n1".to_owned()
        }]
    );
}

#[test]
fn a_member_of_a_mounted_array_is_refused_for_both() {
    let tree = Tree::unpack("md-raid10-xfs");
    let found = reasons(&tree, "nvme1n1");
    assert!(held(
        "/dev/nvme1n1",
        Relation::Itself,
        "/dev/md0 (raid10 array)"
    )(&found[0]));
    assert_eq!(
        found[1..],
        [mounted(
            "/dev/md0 (raid10 array)",
            Relation::Above,
            "/var/lib/mysql"
        )]
    );
    assert!(found[0].to_string().contains("mdadm --stop"));
}

#[test]
fn a_disk_under_an_array_under_volumes_is_refused_for_each() {
    let tree = Tree::unpack("lvm-over-md");
    let found = reasons(&tree, "sda");
    let array = "/dev/md127 (raid1 array)";
    assert!(
        found
            .iter()
            .any(held("/dev/sda1", Relation::Partition, array))
    );
    assert!(found.iter().any(held(
        array,
        Relation::Above,
        "/dev/dm-2 (LVM volume vg-free)"
    )));
    assert!(found.contains(&mounted(
        "/dev/dm-0 (LVM volume vg-data)",
        Relation::Above,
        "/srv"
    )));
    assert!(found.contains(&Reason::Swap {
        device: "/dev/dm-1 (LVM volume vg-swap)".to_owned(),
        relation: Relation::Above,
    }));
    assert_eq!(found.len(), 6, "{found:#?}");
}

#[test]
fn a_free_volume_alongside_used_ones_is_not_refused() {
    let tree = Tree::unpack("lvm-over-md");
    assert_eq!(reasons(&tree, "dm-2"), []);
}

#[test]
fn a_free_volume_on_the_root_disk_is_refused() {
    let tree = Tree::unpack("lvm-over-md");
    tree.write(
        "proc/self/mountinfo",
        "27 1 252:0 / / rw - ext4 /dev/mapper/vg-data rw\n",
    );
    assert_eq!(
        reasons(&tree, "dm-2"),
        [root_disk("/dev/sda", "/"), root_disk("/dev/sdb", "/")]
    );
}

#[test]
fn swap_is_refused_and_so_is_the_disk_that_it_is_a_partition_of() {
    let tree = Tree::unpack("swap-partition");
    let swap = |relation| Reason::Swap {
        device: "/dev/vdb1".to_owned(),
        relation,
    };
    assert_eq!(reasons(&tree, "vdb1"), [swap(Relation::Itself)]);
    assert_eq!(reasons(&tree, "vdb"), [swap(Relation::Partition)]);
    assert_eq!(reasons(&tree, "vdb2"), []);
}

#[test]
fn a_path_of_a_multipath_device_is_refused() {
    let tree = Tree::unpack("multipath");
    let found = reasons(&tree, "sda");
    assert!(held(
        "/dev/sda",
        Relation::Itself,
        "/dev/dm-0 (multipath device mpatha)"
    )(&found[0]));
    assert!(found[0].to_string().contains("name the multipath device"));
    assert!(found.contains(&mounted(
        "/dev/dm-1 (mapped partition mpatha1)",
        Relation::Above,
        "/srv"
    )));
    assert!(
        reasons(&tree, "sdc")[0]
            .to_string()
            .contains("cryptsetup close")
    );
}

#[test]
fn a_partition_of_a_path_that_multipath_holds_is_refused() {
    let tree = Tree::unpack("multipath");
    let found = reasons(&tree, "sda1");
    let holder = "/dev/dm-0 (multipath device mpatha)";
    assert!(held("/dev/sda", Relation::Below, holder)(&found[0]));
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_reason_says_who_is_meant_and_what_to_do() {
    let tree = Tree::unpack("lvm-over-md");
    let text: Vec<String> = reasons(&tree, "sda")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        text[0],
        "/dev/sda1, a partition of it, is in use by /dev/md127 (raid1 array); stop the array \
         first (mdadm --stop)"
    );
    assert!(text.iter().any(|text| text
        == "/dev/dm-0 (LVM volume vg-data), which is built on it, is mounted at /srv; unmount it \
            first"));
}

#[test]
fn a_device_that_a_loop_device_shows_is_refused() {
    let tree = Tree::unpack("loops");
    let found = reasons(&tree, "vdb");
    assert!(found.contains(&Reason::Loop {
        device: "/dev/vdb1".to_owned(),
        relation: Relation::Partition,
        holder: "/dev/loop1".to_owned(),
    }));
    assert!(found.contains(&mounted("/dev/loop1", Relation::Above, "/mnt/loop")));
    // A tree has only the kernel's lists: neither the devices nor the file at the device's path exist.
    let unclear = Reason::UnclearLoop {
        target: "/dev/loop0".to_owned(),
        holder: "/dev/loop0".to_owned(),
        why: BackingUnknown::Unknown,
    };
    assert_eq!(reasons(&tree, "loop0"), [unclear]);
}

#[test]
fn memory_that_is_swap_is_refused() {
    let tree = Tree::unpack("loops");
    assert_eq!(
        reasons(&tree, "zram0"),
        [Reason::Swap {
            device: "/dev/zram0".to_owned(),
            relation: Relation::Itself
        }]
    );
}

#[test]
fn a_disk_of_a_btrfs_that_mountinfo_does_not_name_is_refused() {
    let tree = Tree::unpack("btrfs-two-disks");
    for disk in ["vdb", "vdc"] {
        let device = format!("/dev/{disk}");
        assert_eq!(
            reasons(&tree, disk),
            [mounted(&device, Relation::Itself, "/srv")]
        );
    }
    assert_eq!(reasons(&tree, "vdd"), []);
}

#[test]
fn a_holder_that_is_not_listed_is_a_holder() {
    let tree = Tree::unpack("odd-names");
    let found = reasons(&tree, "cciss/c0d0");
    assert!(found.contains(&mounted("/dev/cciss/c0d0p2", Relation::Partition, "/srv")));
    assert!(found.iter().any(held(
        "/dev/cciss/c0d0p10",
        Relation::Partition,
        "/dev/bcache0"
    )));
}

#[test]
fn a_device_that_the_kernel_does_not_list_is_refused() {
    let tree = Tree::unpack("going-away");
    let number = "259:12".parse().unwrap();
    assert_eq!(
        why_not_writable(&tree.root, number),
        [Reason::Unlisted { number }]
    );
}

#[test]
fn lists_that_cannot_be_read_or_understood_refuse_everything() {
    let tree = Tree::unpack("ec2-nvme");
    let number = tree.number("nvme2n1");
    for damage in ["nonsense\n", ""] {
        tree.write("proc/self/mountinfo", damage);
        let found = why_not_writable(&tree.root, number);
        assert!(
            matches!(&found[..], [Reason::Unknown { .. }]),
            "{damage:?}: {found:?}"
        );
    }
    fs::remove_file(tree.root.proc.join("self/mountinfo")).unwrap();
    let found = why_not_writable(&tree.root, number);
    assert!(found[0].to_string().contains("mountinfo"), "{found:?}");
}

#[test]
fn a_signature_is_a_reason_for_the_list_of_devices() {
    let tree = Tree::unpack("ec2-nvme");
    let number = tree.number("nvme2n1");
    tree.write("dev/nvme2n1", vec![0; 1 << 20]);
    assert_eq!(why_not_writable(&tree.root, number), []);
    tree.write("dev/nvme2n1", ext4_image());
    assert_eq!(
        why_not_writable(&tree.root, number),
        [Reason::Carries {
            path: "/dev/nvme2n1".into(),
            unnamed: vec![LocatedContent {
                partition: None,
                volume: None,
                offset: 1080,
                kind: SignatureKind::Ext4
            }],
            all: vec![SignatureKind::Ext4]
        }]
    );
}

#[test]
fn a_device_without_a_node_cannot_be_probed() {
    let tree = Tree::unpack("ec2-nvme");
    fs::remove_file(tree.root.dev.join("nvme2n1")).unwrap();
    let found = why_not_writable(&tree.root, tree.number("nvme2n1"));
    assert!(matches!(&found[..], [Reason::Unprobed { .. }]), "{found:?}");
}

/// As on hybrid images of CDs, and with an extended partition, of which the kernel shows 1 KiB.
#[test]
fn a_partition_that_shares_bytes_with_one_in_use_is_refused() {
    let tree = Tree::unpack("swap-partition");
    let part = |name: &str, attribute: &str, value: &str| {
        let path = format!("sys/class/block/{name}/{attribute}");
        tree.write(&path, format!("{value}\n"));
    };
    part("vdb1", "start", "2048");
    part("vdb2", "start", "8390656");
    assert_eq!(reasons(&tree, "vdb2"), []);
    let shared = Reason::Swap {
        device: "/dev/vdb1".to_owned(),
        relation: Relation::Sibling,
    };
    part("vdb2", "start", "8390655");
    assert_eq!(reasons(&tree, "vdb2"), std::slice::from_ref(&shared));
    part("vdb1", "partition", "5");
    part("vdb2", "start", "1024");
    part("vdb2", "size", "2");
    assert_eq!(reasons(&tree, "vdb2"), [shared]);
}
