//! Positions of files and free space, as the running kernel reports them for file systems on loop devices, compared
//! with the devices' contents. These tests need root; without it, or if no loop device can be attached, each is
//! skipped with a note.

use std::fs::{self, File};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::support::loops::{Loop, Mounted, run};
use linux::block::DeviceNumber;
use linux::extents::{ExtentLocation, LocatedExtent, LocationUnknown, placed};
use linux::spacemap::{self, NotListed};
use record::{Bytes, Ranges};
use rustix::fs::{FallocateFlags, fallocate};

const KIB: u64 = 1 << 10;

/// Bytes that are unique for each position of each file.
fn content(seed: u64, blocks: u64) -> Vec<u8> {
    let words =
        (0..blocks * 512).map(|word| (seed << 40 | word).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    words.flat_map(u64::to_le_bytes).collect()
}

/// Writes a file of `blocks` blocks of 4 KiB and syncs it, so that it has a position.
fn write(folder: &Path, name: &str, seed: u64, blocks: u64) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, content(seed, blocks)).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    path
}

/// A file of which every second block is deallocated: as many extents, and as many gaps between them.
fn write_with_holes(folder: &Path, name: &str, seed: u64, blocks: u64) -> PathBuf {
    let path = write(folder, name, seed, blocks);
    let file = File::options().write(true).open(&path).unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for block in (0..blocks).step_by(2) {
        fallocate(&file, punch, block * 4 * KIB, 4 * KIB).unwrap();
    }
    file.sync_all().unwrap();
    path
}

fn places(path: &Path) -> Vec<LocatedExtent> {
    let mut all = Vec::new();
    placed(&File::open(path).unwrap(), |one| {
        all.push(one);
        ControlFlow::Continue(())
    })
    .unwrap();
    all
}

fn on_device(path: &Path) -> Ranges {
    places(path)
        .iter()
        .filter_map(LocatedExtent::on_device)
        .collect()
}

fn read(file: &File, range: Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut bytes, range.start).unwrap();
    bytes
}

/// Files of several kinds, the last of which has more extents and gaps than the kernel is queried for at a time.
fn make_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = (1..20)
        .map(|n| write(folder, &format!("file{n}"), n, n * n))
        .collect();
    files.push(write_with_holes(folder, "holes", 99, 4096));
    // Gaps of more than one block, some of them at a group's or the device's edge.
    for n in (1..19).step_by(3) {
        fs::remove_file(files[n].clone()).unwrap();
    }
    files.retain(|path| path.exists());
    files
}

/// Compares the reported positions of a file system with its device.
fn is_true(disk: &Loop, check: &[&str]) {
    let mount = Mounted::new(disk.path());
    let files = make_files(&mount.point);
    // From here on nothing changes.
    run(
        "mount",
        &["-o", "remount,ro", mount.point.to_str().unwrap()],
    );

    let device = File::options()
        .read(true)
        .write(true)
        .open(&disk.node)
        .unwrap();
    let space = spacemap::of_file(&File::open(&mount.point).unwrap(), &|| false).unwrap();
    assert_eq!(
        space.device,
        DeviceNumber::from_raw(device.metadata().unwrap().rdev())
    );
    assert!(space.used.intersect(&space.free).is_empty());
    let end = space.used.end().max(space.free.end());
    assert_eq!(space.used.union(&space.free), Ranges::all(Bytes(end)));
    let size = fs::metadata(&files[0]).unwrap().blksize();
    assert!(end <= read_size(&device) && end > read_size(&device) - 2 * size);
    assert!(space.free.count() > 2048, "{}", space.free.count());
    let room = linux::space::of(&mount.point).unwrap();
    let apart = room.free.0.abs_diff(space.free.total().0);
    assert!(apart < end / 50, "{} and {}", room.free, space.free.total());

    let mut all = Ranges::new();
    for path in &files {
        let file = File::open(path).unwrap();
        for one in places(path) {
            let range = one.on_device().unwrap();
            assert!(space.used.contains(&range), "{} {range:?}", path.display());
            assert_eq!(
                read(&device, range),
                read(&file, one.logical..one.logical + one.length),
                "{}",
                path.display()
            );
        }
        let own = on_device(path);
        assert!(all.intersect(&own).is_empty(), "{}", path.display());
        // The number of blocks includes the file's extent tree.
        let counted = file.metadata().unwrap().blocks() * 512;
        assert!(own.total().0 <= counted && own.total().0 >= counted / 100 * 99);
        all = all.union(&own);
    }
    let kept: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();

    // Free space may be overwritten.
    drop(mount);
    for block in space.free.blocks(Bytes::mib(1)) {
        let noise = vec![0xA5; (block.end - block.start) as usize];
        device.write_all_at(&noise, block.start).unwrap();
    }
    device.sync_all().unwrap();
    run(check[0], &[&check[1..], &[disk.path()]].concat());
    let mount = Mounted::new(disk.path());
    for (path, kept) in files.iter().zip(kept) {
        let again = mount.point.join(path.file_name().unwrap());
        assert_eq!(fs::read(again).unwrap(), kept);
    }
}

fn read_size(device: &File) -> u64 {
    use std::io::{Seek, SeekFrom};
    let mut device = device;
    device.seek(SeekFrom::End(0)).unwrap()
}

#[test]
fn root_loop_places_and_free_space_of_an_ext4_are_true() {
    let Some(disk) = Loop::new(320) else { return };
    disk.mkfs();
    is_true(&disk, &["e2fsck", "-f", "-n"]);
}

#[test]
fn root_loop_places_and_free_space_of_an_xfs_are_true() {
    let Some(disk) = Loop::new(320) else { return };
    disk.mkfs_xfs();
    is_true(&disk, &["xfs_repair", "-n"]);
}

#[test]
fn root_loop_unwritten_and_small_files_have_nothing_to_read() {
    let Some(disk) = Loop::new(320) else { return };
    // mkfs.ext4 does not enable inline data by default.
    run("mkfs.ext4", &["-q", "-F", "-O", "inline_data", disk.path()]);
    let mount = Mounted::new(disk.path());
    let unwritten = File::create(mount.point.join("unwritten")).unwrap();
    fallocate(&unwritten, FallocateFlags::empty(), 0, 64 * KIB).unwrap();
    let found = places(&mount.point.join("unwritten"));
    assert!(!found.is_empty());
    let space = spacemap::of_file(&unwritten, &|| false).unwrap();
    for one in &found {
        let ExtentLocation::Unwritten(range) = &one.place else {
            panic!("{one:?}");
        };
        assert!(space.used.contains(range));
        assert_eq!(one.on_device(), None);
    }
    fs::write(mount.point.join("small"), "in the inode").unwrap();
    let found = places(&mount.point.join("small"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].place, ExtentLocation::Unaligned);
    assert_eq!(on_device(&mount.point.join("small")), Ranges::new());
}

#[test]
fn root_loop_nothing_is_written_back_to_find_a_place() {
    let Some(disk) = Loop::new(320) else { return };
    disk.mkfs_xfs();
    let mount = Mounted::new(disk.path());
    let path = mount.point.join("new");
    fs::write(&path, content(1, 16)).unwrap();
    // On a slow machine it may already be written back: then it has a position.
    let at_once = places(&path);
    let waits = at_once
        .iter()
        .all(|one| one.place == ExtentLocation::Nowhere);
    assert!(
        waits || on_device(&path).total() == Bytes::kib(64),
        "{at_once:?}"
    );
    File::open(&path).unwrap().sync_all().unwrap();
    assert_eq!(on_device(&path).total(), Bytes::kib(64));
    let mut count = 0;
    let holes = write_with_holes(&mount.point, "holes", 2, 2048);
    placed(&File::open(holes).unwrap(), |_| {
        count += 1;
        match count {
            300 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    })
    .unwrap();
    assert_eq!(count, 300, "it ends when it is told to");
}

#[test]
fn root_loop_shared_blocks_are_marked() {
    let Some(disk) = Loop::new(320) else { return };
    disk.mkfs_xfs();
    let mount = Mounted::new(disk.path());
    let one = write(&mount.point, "one", 1, 16);
    let other = mount.point.join("other");
    let paths = [one.to_str().unwrap(), other.to_str().unwrap()];
    run("cp", &["--reflink=always", paths[0], paths[1]]);
    assert!(places(&one).iter().all(|run| run.shared));
    assert_eq!(on_device(&one), on_device(&other));
    assert_eq!(on_device(&one).total(), Bytes::kib(64));
}

#[test]
fn root_loop_btrfs_is_refused() {
    let Some(disk) = Loop::new(320) else { return };
    run("mkfs.btrfs", &["-q", "-f", disk.path()]);
    let mount = Mounted::new(disk.path());
    let path = write(&mount.point, "file", 1, 16);
    let file = File::open(path).unwrap();
    let error = placed(&file, |_| ControlFlow::Continue(())).unwrap_err();
    assert!(
        matches!(error, LocationUnknown::OtherPlaces(0x9123_683E)),
        "{error}"
    );
    let error = spacemap::of_file(&file, &|| false).unwrap_err();
    assert!(matches!(error, NotListed::NotOffered), "{error}");
}
