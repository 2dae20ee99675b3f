//! Disks and files that the kernel exports to other machines, on modelled trees of configfs and sysfs.

use crate::support::Tree;
use linux::consent::DeviceUsers;

/// The reasons against overwriting a device of a tree.
fn reasons(tree: &Tree, name: &str) -> Vec<String> {
    let uses = DeviceUsers::read(&tree.root).unwrap();
    let number = uses.devices().named(name).unwrap().number;
    uses.reasons(number)
        .iter()
        .map(ToString::to_string)
        .collect()
}

const NAMESPACE: &str = "sys/kernel/config/nvmet/subsystems/nqn.2026-11.test:data/namespaces/7";
const LUN: &str = "sys/kernel/config/usb_gadget/stick/functions/mass_storage.0/lun.0";

#[test]
fn a_disk_that_the_kernel_serves_is_refused_by_each_of_its_servers() {
    for (files, sentence) in [
        (
            vec![
                (format!("{NAMESPACE}/device_path"), "/dev/nvme2n1\n"),
                (format!("{NAMESPACE}/enable"), "1\n"),
            ],
            "/dev/nvme2n1 is served by the NVMe target as namespace 7 of nqn.2026-11.test:data; disable the namespace",
        ),
        (
            vec![(format!("{LUN}/file"), "/dev/nvme2n1\n")],
            "/dev/nvme2n1 is served by a USB gadget as mass storage; take the medium out",
        ),
        (
            vec![(
                "sys/class/udc/dummy_udc.0/device/gadget/lun0/file".to_owned(),
                "/dev/nvme2n1\n",
            )],
            "/dev/nvme2n1 is served by a USB gadget as mass storage; take the medium out",
        ),
        (
            vec![(
                "sys/kernel/config/target/core/fileio_1/disk/info".to_owned(),
                "Status: ACTIVATED  Max Queue Depth: 0  SectorSize: 512  HwMaxSectors: 16384\n        \
                 TCM FILEIO ID: 0        File: /dev/nvme2n1  Size: 1073741824  Mode: O_DSYNC Async: 0\n",
            )],
            "/dev/nvme2n1 is served by the SCSI target as disk; delete that backstore",
        ),
    ] {
        let tree = Tree::unpack("ec2-nvme");
        assert_eq!(reasons(&tree, "nvme2n1"), [""; 0]);
        for (path, text) in &files {
            tree.write(path, text);
        }
        let found = reasons(&tree, "nvme2n1");
        assert!(
            matches!(&found[..], [one] if one.starts_with(sentence)),
            "{found:?}"
        );
    }
}

#[test]
fn targets_that_are_configured_and_not_served_are_free() {
    let tree = Tree::unpack("ec2-nvme");
    tree.write(&format!("{NAMESPACE}/device_path"), "/dev/nvme2n1\n");
    tree.write(&format!("{NAMESPACE}/enable"), "0\n");
    // No medium is inserted.
    tree.write(&format!("{LUN}/file"), "");
    assert_eq!(reasons(&tree, "nvme2n1"), [""; 0]);
}
