use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use super::*;

const MIB: u64 = 1 << 20;

/// A file in the folder of the build, which is on a disk more often than /tmp.
fn disk_file() -> File {
    tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

/// True if the file system reports unwritten extents, as ext4 and XFS do.
fn has_map(file: &File) -> bool {
    let known = map(file, 0, MIB).unwrap().is_some();
    if !known {
        skip::skipped(concat!("no FIEMAP on ", env!("CARGO_MANIFEST_DIR")));
    }
    known
}

fn fill(file: &File, from: u64, to: u64) {
    file.write_all_at(&vec![0xA5; (to - from) as usize], from)
        .unwrap();
}

fn fraction(file: &File, len: u64) -> f64 {
    unwritten_fraction(file, len).unwrap().unwrap()
}

#[test]
fn a_sparse_file_is_unwritten() {
    let file = disk_file();
    file.set_len(8 * MIB).unwrap();
    assert_eq!(fraction(&file, 8 * MIB), 1.0);
    if has_map(&file) {
        assert_eq!(map(&file, 0, 8 * MIB).unwrap().unwrap(), []);
    }
}

#[test]
fn a_preallocated_file_is_unwritten() {
    let file = disk_file();
    if fallocate(&file, FallocateFlags::empty(), 0, 8 * MIB).is_err() || !has_map(&file) {
        skip::skipped("no preallocation or no map of extents in the folder of temporary files");
        return;
    }
    assert_eq!(fraction(&file, 8 * MIB), 1.0);
    let extents = map(&file, 0, 8 * MIB).unwrap().unwrap();
    assert!(!extents.is_empty());
    assert!(extents.iter().all(|extent| extent.flags.is_unwritten()));
}

#[test]
fn a_written_file_is_written_even_before_a_sync() {
    let file = disk_file();
    fill(&file, 0, 8 * MIB);
    assert_eq!(fraction(&file, 8 * MIB), 0.0, "before the sync");
    file.sync_all().unwrap();
    assert_eq!(fraction(&file, 8 * MIB), 0.0, "after the sync");
    if !has_map(&file) {
        return;
    }
    let extents = map(&file, 0, 8 * MIB).unwrap().unwrap();
    let total: u64 = extents.iter().map(|extent| extent.length).sum();
    assert_eq!(total, 8 * MIB);
    assert!(extents.iter().all(|extent| !extent.flags.is_delayed()));
    assert!(extents.last().unwrap().flags.is_last());
}

#[test]
fn parts_add_up_to_the_share() {
    let file = disk_file();
    file.set_len(8 * MIB).unwrap();
    fill(&file, 2 * MIB, 4 * MIB);
    file.sync_all().unwrap();
    assert_eq!(fraction(&file, 8 * MIB), 0.75);
    assert_eq!(fraction(&file, 4 * MIB), 0.5);
    assert_eq!(
        fraction(&file, 3 * MIB),
        1.0 - 1.0 / 3.0,
        "an extent is cut"
    );
    assert_eq!(fraction(&file, 16 * MIB), 0.875, "behind the end");
    assert_eq!(fraction(&file, 0), 0.0);
}

#[test]
fn more_extents_than_one_batch_holds_are_all_listed() {
    let file = disk_file();
    if !has_map(&file) {
        return;
    }
    let count = 2 * BATCH as u64 + 7;
    for block in 0..count {
        // 64 KiB apart, so that no file system makes one extent of them.
        fill(&file, block * 65536, block * 65536 + 4096);
    }
    file.sync_all().unwrap();
    let len = count * 65536;
    let extents = map(&file, 0, len).unwrap().unwrap();
    let starts: Vec<u64> = extents.iter().map(|extent| extent.logical).collect();
    let expected: Vec<u64> = (0..count).map(|block| block * 65536).collect();
    assert_eq!(starts, expected);
    assert_eq!(fraction(&file, len), 1.0 - 1.0 / 16.0);

    let some = map(&file, 65536, 2 * 65536).unwrap().unwrap();
    assert_eq!(some.len(), 2, "only the range asked for");
}

#[test]
fn without_a_map_holes_are_sought() {
    let shm = Path::new("/dev/shm");
    let Ok(file) = tempfile::tempfile_in(shm) else {
        skip::skipped("no /dev/shm");
        return;
    };
    file.set_len(8 * MIB).unwrap();
    fill(&file, 0, 2 * MIB);
    assert_eq!(map(&file, 0, MIB).unwrap(), None, "tmpfs has no FIEMAP");
    assert_eq!(fraction(&file, 8 * MIB), 0.75);
    fill(&file, 2 * MIB, 8 * MIB);
    assert_eq!(fraction(&file, 8 * MIB), 0.0);
    fallocate(&file, FallocateFlags::empty(), 8 * MIB, 8 * MIB).unwrap();
    assert_eq!(fraction(&file, 16 * MIB), 0.5, "allocated in memory");
}

#[test]
fn seeking_agrees_with_the_map_and_keeps_the_offset() {
    let file = disk_file();
    file.set_len(8 * MIB).unwrap();
    fill(&file, MIB, 3 * MIB);
    file.sync_all().unwrap();
    seek(&file, SeekFrom::Start(5)).unwrap();
    assert_eq!(data_by_seek(&file, 8 * MIB).unwrap(), Some(2 * MIB));
    assert_eq!(data_by_seek(&file, 2 * MIB).unwrap(), Some(MIB));
    assert_eq!(data_by_seek(&file, MIB).unwrap(), Some(0));
    assert_eq!(seek(&file, SeekFrom::Current(0)).unwrap(), 5);
}

#[test]
fn a_file_that_is_not_regular_has_no_extents() {
    let zero = File::open("/dev/zero").unwrap();
    assert_eq!(unwritten_fraction(&zero, MIB).unwrap(), None);
    assert_eq!(map(&zero, 0, MIB).unwrap(), None);
    let folder = File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
    assert_eq!(unwritten_fraction(&folder, MIB).unwrap(), None);
}

#[test]
fn the_request_number_is_the_kernels() {
    // _IOWR('f', 11, struct fiemap) on x86-64 and aarch64.
    assert_eq!(FS_IOC_FIEMAP, 0xC020_660B);
    assert_eq!(size_of::<RawHead>(), 32);
    assert_eq!(size_of::<RawExtent>(), 56);
}
