//! Mapping of a device's bytes to one below it: on captured and modelled trees, and on real loop devices,
//! which need root.

// A list of ranges may have one.
#![allow(clippy::single_range_in_vec_init)]

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::support::Tree;
use crate::support::loops::{Loop, run};
use crate::support::mapper::Mapped;
use linux::Root;
use linux::block::{Devices, place_of};
use linux::mapping::{Map, NotMapped};
use record::{Bytes, Ranges};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn map(tree: &Tree, from: &str, to: &str) -> Result<Map, NotMapped> {
    Map::down(
        &tree.root,
        &tree.devices(),
        tree.number(from),
        tree.number(to),
    )
}

/// Bytes of `to` that hold a range of `from`.
fn down(tree: &Tree, from: &str, to: &str, range: Range<u64>) -> Vec<Range<u64>> {
    let lower = map(tree, from, to).unwrap().ranges(&range.into());
    lower.iter().collect()
}

fn refusal(tree: &Tree, from: &str, to: &str) -> String {
    map(tree, from, to).unwrap_err().to_string()
}

/// The members of an array and the bytes that each holds of the whole array.
fn all_of(tree: &Tree, array: &str, members: &[&str]) -> Vec<Bytes> {
    let size = tree.devices().named(array).unwrap().size;
    let held = |member: &&str| {
        map(tree, array, member)
            .unwrap()
            .ranges(&Ranges::all(size))
            .total()
    };
    members.iter().map(held).collect()
}

#[test]
fn a_device_is_where_it_is() {
    let tree = Tree::unpack("captured-md-layouts-6.1");
    assert_eq!(down(&tree, "vda", "vda", 5..7), [5..7]);
    let behind = 64 * MIB - 1..64 * MIB + 9;
    assert_eq!(down(&tree, "vda", "vda", behind), [64 * MIB - 1..64 * MIB]);
}

#[test]
fn equal_members_of_a_raid_0_have_turns() {
    let tree = Tree::unpack("captured-md-layouts-6.1");
    let chunk = 64 * KIB;
    assert_eq!(down(&tree, "md0", "vda", 0..chunk), [MIB..MIB + chunk]);
    assert_eq!(down(&tree, "md0", "vdb", 0..chunk), []);
    let fifth = 5 * chunk + 10..5 * chunk + 20;
    assert_eq!(
        down(&tree, "md0", "vdb", fifth),
        [MIB + chunk + 10..MIB + chunk + 20]
    );
    let members = ["vda", "vdb", "vdc", "vdd"];
    assert_eq!(all_of(&tree, "md0", &members), [Bytes::mib(63); 4]);
}

#[test]
fn a_raid_0_continues_behind_its_smallest_member() {
    let tree = Tree::unpack("captured-md-layouts-6.1");
    let members = ["vde", "vdf", "vdg"];
    let sizes = [Bytes::mib(63), Bytes::mib(127), Bytes::mib(255)];
    assert_eq!(all_of(&tree, "md1", &members), sizes);
    // The second zone begins with chunk 3024 of the array, which two members share. The chunks of this array are
    // counted from its beginning: 3024 is even, so it is on the first of the two.
    let (zone, chunk) = (3 * 63 * MIB, 64 * KIB);
    assert_eq!(down(&tree, "md1", "vde", zone..zone + MIB), []);
    assert_eq!(
        down(&tree, "md1", "vdf", zone..zone + chunk),
        [64 * MIB..64 * MIB + chunk]
    );
    assert_eq!(down(&tree, "md1", "vdg", zone..zone + chunk), []);
    // With the first member a chunk shorter, the second zone begins with chunk 3021.
    let folder = "sys/devices/virtual/block/md1";
    tree.write(&format!("{folder}/md/dev-vde/size"), "64448\n");
    tree.write(&format!("{folder}/size"), "911232\n");
    let zone = zone - 3 * chunk;
    let held = |member| down(&tree, "md1", member, zone..zone + chunk);
    let begin = 64 * MIB - chunk;
    assert_eq!(
        (held("vdf"), held("vdg")),
        (vec![], vec![begin..begin + chunk])
    );
    tree.write(&format!("{folder}/md/layout"), "2\n");
    let held = |member| down(&tree, "md1", member, zone..zone + chunk);
    assert_eq!(
        (held("vdf"), held("vdg")),
        (vec![begin..begin + chunk], vec![])
    );
    tree.write(&format!("{folder}/md/layout"), "-1\n");
    let words = "/dev/md1 (raid0 array) has members of unequal size and no md/layout";
    assert!(refusal(&tree, "md1", "vdf").contains(words));
}

#[test]
fn a_linear_array_has_its_members_one_after_the_other() {
    let tree = Tree::unpack("captured-md-layouts-6.1");
    let members = ["vdh", "vdi"];
    assert_eq!(
        all_of(&tree, "md2", &members),
        [Bytes::mib(63), Bytes::mib(99)]
    );
    let seam = 63 * MIB - 5..63 * MIB + 7;
    assert_eq!(
        down(&tree, "md2", "vdh", seam.clone()),
        [64 * MIB - 5..64 * MIB]
    );
    assert_eq!(down(&tree, "md2", "vdi", seam), [MIB..MIB + 7]);
}

#[test]
fn near_copies_lie_side_by_side() {
    let tree = Tree::unpack("captured-md-layouts-6.1");
    let chunk = 64 * KIB;
    // 0 0 1 / 1 2 2 / 3 3 4
    let held = |member, at: u64| down(&tree, "md3", member, at * chunk..(at + 1) * chunk);
    let row = |row: u64| vec![MIB + row * chunk..MIB + (row + 1) * chunk];
    assert_eq!(
        (held("vdj", 0), held("vdk", 0), held("vdl", 0)),
        (row(0), row(0), vec![])
    );
    assert_eq!(
        (held("vdj", 1), held("vdk", 1), held("vdl", 1)),
        (row(1), vec![], row(0))
    );
    assert_eq!(
        (held("vdj", 2), held("vdk", 2), held("vdl", 2)),
        (vec![], row(1), row(1))
    );
    assert_eq!(
        (held("vdj", 3), held("vdk", 3), held("vdl", 3)),
        (row(2), row(2), vec![])
    );
    let members = ["vdj", "vdk", "vdl"];
    assert_eq!(all_of(&tree, "md3", &members), [Bytes::mib(63); 3]);
}

#[test]
fn a_partition_begins_where_its_disk_says() {
    let tree = Tree::unpack("ec2-nvme");
    let error = refusal(&tree, "nvme0n1p1", "nvme0n1");
    let words = "where the data of /dev/nvme0n1p1 lies on /dev/nvme0n1 is not known: /dev/nvme0n1p1 \
                 has no start in sysfs";
    assert_eq!(error, words);
    tree.write("sys/class/block/nvme0n1p1/start", "2048\n");
    assert_eq!(down(&tree, "nvme0n1p1", "nvme0n1", 0..1), [MIB..MIB + 1]);
    assert!(refusal(&tree, "nvme0n1", "nvme0n1p1").ends_with("is not built on the other"));
}

#[test]
fn a_stack_is_followed_through_each_of_its_steps() {
    let tree = Tree::unpack("md-on-partitions");
    // An array's data begins 1 MiB into each member, and the members at 1 and 2 MiB of their disks.
    let second_chunk = 64 * KIB..128 * KIB;
    assert_eq!(down(&tree, "md0", "vda", second_chunk.clone()), []);
    assert_eq!(
        down(&tree, "md0", "vdb1", second_chunk.clone()),
        [MIB..MIB + 64 * KIB]
    );
    assert_eq!(
        down(&tree, "md0", "vdb", second_chunk),
        [3 * MIB..3 * MIB + 64 * KIB]
    );
    assert_eq!(all_of(&tree, "md0", &["vda", "vdb"]), [Bytes::mib(32); 2]);
}

#[test]
fn a_disk_that_an_array_has_twice_has_both_parts() {
    let tree = Tree::unpack("md-on-partitions");
    // The third partition, at 53 MiB, has the first 8 MiB; the second, at 35 MiB, the rest.
    let seam = 8 * MIB - 5..8 * MIB + 7;
    let parts = [36 * MIB..36 * MIB + 7, 62 * MIB - 5..62 * MIB];
    assert_eq!(down(&tree, "md1", "vda", seam), parts);
    assert_eq!(
        all_of(&tree, "md1", &["vda", "vda2", "vda3"]),
        [24, 16, 8].map(Bytes::mib)
    );
    assert!(refusal(&tree, "md1", "vda1").ends_with("the one is not built on the other"));
}

#[test]
fn mappings_that_cannot_be_followed_are_refused_in_a_sentence() {
    let tree = Tree::unpack("captured-md-layouts-6.1");
    let md = |array: &str, name: &str, text: &str| {
        tree.write(&format!("sys/devices/virtual/block/{array}/{name}"), text);
    };
    let is_refused = |from: &str, to: &str, words: &str| {
        let error = refusal(&tree, from, to);
        assert!(error.contains(words), "no '{words}' in {error}");
    };
    is_refused(
        "md0",
        "vde",
        "where the data of /dev/md0 (raid0 array) lies on /dev/vde is not known",
    );
    is_refused("md0", "vde", "the one is not built on the other");

    md("md3", "md/layout", "513\n");
    is_refused(
        "md3",
        "vdj",
        "/dev/md3 (raid10 array) has far copies; of RAID 10, only near",
    );
    md("md3", "md/layout", "66049\n");
    is_refused("md3", "vdj", "has far copies");
    md("md3", "md/layout", "258\n");
    md("md3", "size", "193600\n");
    is_refused(
        "md3",
        "vdj",
        "has 99123200 bytes, and its parts add up to 99090432",
    );
    md("md3", "md/level", "raid6\n");
    is_refused("md3", "vdj", "is of level raid6; linear arrays, RAID 0");
    md("md3", "md/reshape_position", "4096\n");
    is_refused(
        "md3",
        "vdj",
        "is being reshaped; try again when that is done",
    );

    md("md2", "size", "331784\n");
    is_refused(
        "md2",
        "vdh",
        "has 169873408 bytes, and its parts add up to 169869312",
    );
    md("md0", "md/dev-vdc/slot", "none\n");
    is_refused(
        "md0",
        "vda",
        "a member of /dev/md0 (raid0 array) is missing",
    );
    md("md1", "md/chunk_size", "0\n");
    is_refused("md1", "vde", "has no md/chunk_size in sysfs");
}

#[test]
fn spares_and_failed_members_hold_nothing() {
    let tree = Tree::unpack("captured-md-6.1");
    // This tree was captured without the offsets.
    let words = "/dev/md127 (raid10 array) has no md/dev-*/offset in sysfs";
    assert!(refusal(&tree, "md127", "vda").contains(words));
    for member in ["vda", "vdb", "vdc", "vdd", "vdg", "vdh"] {
        let folder = "sys/devices/virtual/block/md127/md";
        tree.write(&format!("{folder}/dev-{member}/offset"), "2048\n");
    }
    for member in ["vdb", "vdh"] {
        assert!(refusal(&tree, "md127", member).contains("the lower one is a spare, or failed"));
    }
    // A member that is being rebuilt will have the same data as the failed one.
    for member in ["vda", "vdg"] {
        assert_eq!(down(&tree, "md127", member, 0..KIB), [MIB..MIB + KIB]);
    }
}

#[test]
fn a_mirror_has_everything_on_each_member() {
    let tree = Tree::unpack("captured-md-6.1");
    for member in ["vde", "vdf"] {
        let folder = "sys/devices/virtual/block/md126/md";
        tree.write(&format!("{folder}/dev-{member}/offset"), "4096\n");
        assert!(map(&tree, "md126", member).is_err() || member == "vdf");
    }
    for member in ["vde", "vdf"] {
        assert_eq!(
            down(&tree, "md126", member, 7..9),
            [2 * MIB + 7..2 * MIB + 9]
        );
    }
}

#[test]
fn a_table_that_cannot_be_read_is_named() {
    let tree = Tree::unpack("lvm-over-md");
    let devices = tree.devices();
    let volume = devices
        .iter()
        .find(|device| device.name.starts_with("dm-"))
        .unwrap();
    let below = devices.below(volume.number)[0];
    let error = refusal(&tree, &volume.name, &below.name);
    assert!(error.contains("the table of /dev/dm-"), "{error}");
    assert!(error.contains("could not be read: "), "{error}");
}

#[test]
fn root_loop_a_byte_written_to_a_partition_is_where_the_map_says() {
    let Some(disk) = Loop::new(16) else { return };
    let partition = disk.add_partition();
    let root = Root::host();
    let devices = Devices::read(&root).unwrap();
    let number = |node: &str| place_of(&root, &devices, node.as_ref()).unwrap().devices[0];
    let from = number(&partition.node);
    let map = Map::down(&root, &devices, from, number(disk.path())).unwrap();
    let upper = Ranges::from(8192..12288);
    let lower: Vec<Range<u64>> = map.ranges(&upper).iter().collect();

    let file = File::options().write(true).open(&partition.node).unwrap();
    file.write_all_at(&[0x5A; 4096], 8192).unwrap();
    file.sync_all().unwrap();
    run("blockdev", &["--flushbufs", disk.path()]);
    let mut found = vec![0; 4096];
    File::open(&disk.node)
        .unwrap()
        .read_exact_at(&mut found, lower[0].start)
        .unwrap();
    assert_eq!(lower, [MIB + 8192..MIB + 12288]);
    assert_eq!(found, [0x5A; 4096]);
    let size = devices.get(from).unwrap().size;
    assert_eq!(map.ranges(&Ranges::all(size)).total(), size);
}

#[test]
fn root_loop_a_loop_device_on_a_device_has_its_offset() {
    let Some(disk) = Loop::new(16) else { return };
    let upper = Loop::on(&disk.node).unwrap();
    let root = Root::host();
    let devices = Devices::read(&root).unwrap();
    let number = |loop_: &Loop| devices.named(&loop_.name()).unwrap().number;
    let map = Map::down(&root, &devices, number(&upper), number(&disk)).unwrap();
    assert_eq!(map.ranges(&Ranges::from(5..9)), Ranges::from(5..9));
    let own = Map::down(&root, &devices, number(&disk), number(&upper)).unwrap_err();
    assert!(
        own.to_string()
            .ends_with("the one is not built on the other")
    );
}

#[test]
#[ignore = "needs a kernel with the device mapper: make prove"]
fn root_loop_a_mapped_device_has_its_bytes_where_its_table_says() {
    let (Some(one), Some(other)) = (Loop::new(8), Loop::new(8)) else {
        return;
    };
    let root = Root::host();
    let listed = Devices::read(&root).unwrap();
    let [first, second] = [&one, &other].map(|disk| listed.named(&disk.name()).unwrap().number);
    let lines = [
        (4096, "linear", format!("{first} 2048")),
        (4096, "striped", format!("2 128 {first} 8192 {second} 64")),
        (2048, "linear", format!("{second} 4096")),
    ];
    let Some(mapped) = Mapped::new(&lines) else {
        return;
    };
    let devices = Devices::read(&root).unwrap();
    let size = devices.get(mapped.number).unwrap().size;
    assert_eq!(size, Bytes::mib(5));

    let content = |at: u64| at.to_le_bytes().repeat(512);
    let blocks: Vec<u64> = (0..size.0).step_by(4096).collect();
    let all: Vec<u8> = blocks.iter().flat_map(|&at| content(at)).collect();
    let file = File::options().write(true).open(mapped.node()).unwrap();
    file.write_all_at(&all, 0).unwrap();
    file.sync_all().unwrap();

    let mut found = 0;
    for (disk, number) in [(&one, first), (&other, second)] {
        run("blockdev", &["--flushbufs", disk.path()]);
        let held = std::fs::read(&disk.node).unwrap();
        let map = Map::down(&root, &devices, mapped.number, number).unwrap();
        for &at in &blocks {
            for lower in map.ranges(&Ranges::from(at..at + 4096)).iter() {
                assert_eq!(
                    held[lower.start as usize..lower.end as usize],
                    content(at),
                    "{at}"
                );
                found += 4096;
            }
        }
    }
    assert_eq!(found, size.0);
}
