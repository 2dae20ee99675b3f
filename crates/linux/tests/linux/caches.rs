//! Caches below a device: on a modelled tree, and on real loop devices, which need root.

use std::fs::File;
use std::path::Path;

use crate::support::Tree;
use crate::support::loops::{Loop, Mounted};
use linux::block::Devices;
use linux::{Root, cache};
use record::CacheKind;

fn kinds(root: &Root, name: &str) -> Vec<CacheKind> {
    let devices = Devices::read(root).unwrap();
    let number = devices.named(name).unwrap().number;
    let found = cache::below(root, &devices, number);
    found.into_iter().map(|cache| cache.kind).collect()
}

#[test]
fn a_faster_disk_and_memory_are_caches_and_a_disk_is_none() {
    let tree = Tree::unpack("bcache");
    let bcache = CacheKind::FasterDisk("bcache".to_owned());
    assert_eq!(kinds(&tree.root, "bcache0"), [bcache]);
    assert_eq!(kinds(&tree.root, "bcache1"), []);
    assert_eq!(kinds(&tree.root, "vdb"), []);
    assert_eq!(kinds(&tree.root, "ram0"), [CacheKind::Memory]);
}

/// The kinds of caches below a loop device on a file.
fn below_file(file: &Path, options: &[&str]) -> Option<Vec<CacheKind>> {
    match Loop::part_of(file, options) {
        Ok(device) => Some(kinds(&Root::host(), &device.name())),
        Err(why) => {
            skip::skipped(&why.to_string());
            None
        }
    }
}

#[test]
fn root_loop_a_loop_device_caches_unless_it_does_direct_io() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("disk.img");
    File::create(&file).unwrap().set_len(64 << 20).unwrap();
    let Some(cached) = below_file(&file, &[]) else {
        return;
    };
    assert_eq!(cached, [CacheKind::PageCache]);
    assert_eq!(below_file(&file, &["--direct-io=on"]), Some(vec![]));
    // A loop device with direct I/O on a file that is on one without.
    let lower = Loop::on(&file).unwrap();
    lower.mkfs();
    let mounted = Mounted::new(lower.path());
    let inner = mounted.point.join("inner.img");
    File::create(&inner).unwrap().set_len(16 << 20).unwrap();
    assert_eq!(
        below_file(&inner, &["--direct-io=on"]),
        Some(vec![CacheKind::PageCache])
    );
}

#[test]
fn root_loop_a_file_in_memory_is_named() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = folder.path().join("disk.img");
    File::create(&file).unwrap().set_len(16 << 20).unwrap();
    let Some(found) = below_file(&file, &[]) else {
        return;
    };
    assert_eq!(found, [CacheKind::PageCache, CacheKind::Memory]);
}
