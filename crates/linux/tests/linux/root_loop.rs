//! Consent to overwrite real loop devices, on the running kernel. These tests need root; without it, or if no loop
//! device can be attached, each is skipped with a note.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::time::Duration;

use crate::support::loops::{Loop, Mounted, SwapOn, alone, run};
use linux::Root;
use linux::block::{BlockDeviceKind, Devices, device_of, place_of};
use linux::consent::{
    Consent, DestroyTarget, DeviceUsers, PinnedTarget, Reason, Refusal, Relation,
    open_for_destroying, open_for_reading, why_not_writable,
};
use linux::diskstats::Counter;
use linux::signature::{LocatedContent, SignatureKind};
use rustix::fs::OFlags;

fn consent(path: &Path, suffix: &str) -> Consent {
    let mut text = path.as_os_str().to_owned();
    text.push(suffix);
    Consent::parse(&text).unwrap()
}

/// Requests consent to overwrite a path, with the signatures in `suffix`.
fn destroy(path: impl AsRef<Path>, suffix: &str) -> Result<DestroyTarget, Refusal> {
    let path = path.as_ref();
    let _alone = alone();
    open_for_destroying(&Root::host(), path, &[consent(path, suffix)])
}

fn claim(opened: PinnedTarget, consents: &[Consent]) -> Result<DestroyTarget, Refusal> {
    let _alone = alone();
    opened.claim(&Root::host(), consents)
}

/// Expects consent to be sufficient. Another program may briefly have the device open, which delays the detachment of
/// a loop device, so a single refusal is retried.
fn accepted(path: impl AsRef<Path>, suffix: &str) -> DestroyTarget {
    let mut tries = 50;
    loop {
        match destroy(&path, suffix) {
            Ok(target) => return target,
            Err(refusal) if tries == 0 => panic!("{refusal}"),
            Err(_) => tries -= 1,
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn reasons(path: impl AsRef<Path>, suffix: &str) -> Vec<Reason> {
    destroy(path, suffix).unwrap_err().reasons
}

fn is_busy(reason: &Reason) -> bool {
    matches!(reason, Reason::Busy { .. })
}

fn mounted(device: &str, relation: Relation, point: &Path) -> Reason {
    Reason::Mounted {
        device: device.to_owned(),
        relation,
        point: point.to_owned(),
    }
}

#[test]
fn root_loop_an_unused_device_is_claimed_until_it_is_dropped() {
    let Some(disk) = Loop::new(16) else { return };
    let target = accepted(&disk.node, "");
    assert_eq!(target.size.0, 16 << 20);
    assert_eq!(
        target.device,
        device_of(
            &Root::host(),
            &Devices::read(&Root::host()).unwrap(),
            &disk.node
        )
        .unwrap()
    );
    target.file.write_all_at(b"mine", 0).unwrap();
    // The claim permits a worker's own descriptor, but not another claim.
    assert!(target.reopen(OFlags::DIRECT).is_ok());
    assert!(reasons(&disk.node, "").iter().any(is_busy));
    drop(target);
    accepted(&disk.node, "=unknown");
}

#[test]
fn root_loop_a_device_that_is_not_named_is_only_read() {
    let Some(disk) = Loop::new(16) else { return };
    let refusal = open_for_destroying(&Root::host(), &disk.node, &[]).unwrap_err();
    assert!(
        matches!(refusal.reasons[..], [Reason::NotNamed { .. }]),
        "{refusal}"
    );
    let target = open_for_reading(&disk.node).unwrap();
    assert_eq!(target.size.0, 16 << 20);
    assert!((&target.file).write_all(b"x").is_err());
}

#[test]
fn root_loop_a_mounted_device_is_refused() {
    let Some(disk) = Loop::new(16) else { return };
    disk.mkfs();
    let mount = Mounted::new(disk.path());
    let found = reasons(&disk.node, "=ext4");
    assert_eq!(
        found[0],
        mounted(disk.path(), Relation::Itself, &mount.point)
    );
    assert!(is_busy(&found[1]));
    assert_eq!(found.len(), 2, "{found:?}");
    let number = device_of(
        &Root::host(),
        &Devices::read(&Root::host()).unwrap(),
        &mount.point,
    )
    .unwrap()
    .unwrap();
    assert!(why_not_writable(&Root::host(), number).contains(&found[0]));
}

#[test]
fn root_loop_a_mount_that_is_not_seen_is_busy() {
    let Some(disk) = Loop::new(16) else { return };
    disk.mkfs();
    let mount = Mounted::new(disk.path());
    // As in a container, where the host's mounts are not listed.
    let proc = tempfile::tempdir().unwrap();
    let listed = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let others: String = listed
        .lines()
        .filter(|line| !line.contains(mount.point.to_str().unwrap()))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::create_dir(proc.path().join("self")).unwrap();
    fs::write(proc.path().join("self/mountinfo"), others).unwrap();
    let root = Root {
        proc: proc.path().to_owned(),
        ..Root::host()
    };
    let refusal =
        open_for_destroying(&root, &disk.node, &[consent(&disk.node, "=ext4")]).unwrap_err();
    assert!(
        matches!(refusal.reasons[..], [Reason::Busy { .. }]),
        "{refusal}"
    );
}

#[test]
fn root_loop_swap_is_refused() {
    let Some(disk) = Loop::new(16) else { return };
    let _swap = SwapOn::new(disk.path());
    let found = reasons(&disk.node, "=swap");
    assert_eq!(
        found[0],
        Reason::Swap {
            device: disk.path().to_owned(),
            relation: Relation::Itself
        }
    );
    assert!(is_busy(&found[1]));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn root_loop_a_swap_file_is_refused() {
    // Swap files cannot be on tmpfs or overlay, so this one has its own file system.
    let Some(disk) = Loop::new(32) else { return };
    disk.mkfs();
    let mount = Mounted::new(disk.path());
    let file = mount.point.join("my swap");
    fs::write(&file, vec![0; 4 << 20]).unwrap();
    run("chmod", &["600", file.to_str().unwrap()]);
    let _swap = SwapOn::new(file.to_str().unwrap());
    let found = reasons(&file, "=swap");
    assert!(
        found.contains(&Reason::Swap {
            device: file.display().to_string(),
            relation: Relation::Itself
        }),
        "{found:?}"
    );
    let uses = DeviceUsers::read(&Root::host()).unwrap();
    let swaps = linux::swaps::read(&Root::host()).unwrap();
    let swap = swaps.iter().find(|swap| swap.path == file).unwrap();
    let on = swap.devices(&Root::host(), uses.devices());
    assert_eq!(uses.devices().get(on[0]).unwrap().name, disk.name());
}

#[test]
fn root_loop_the_disk_of_a_mounted_partition_is_refused() {
    let Some(disk) = Loop::new(16) else { return };
    let partition = disk.add_partition();
    partition.mkfs();
    let mount = Mounted::new(&partition.node);
    let whole = reasons(&disk.node, "");
    assert_eq!(
        whole[0],
        mounted(&partition.node, Relation::Partition, &mount.point)
    );
    assert!(is_busy(&whole[1]));
    let part = reasons(&partition.node, "=ext4");
    assert_eq!(
        part[0],
        mounted(&partition.node, Relation::Itself, &mount.point)
    );
    let devices = Devices::read(&Root::host()).unwrap();
    let number = device_of(&Root::host(), &devices, Path::new(&partition.node))
        .unwrap()
        .unwrap();
    assert_eq!(devices.stack_below(number)[0].name, disk.name());
}

#[test]
fn root_loop_a_partition_of_a_mounted_disk_is_refused() {
    let Some(disk) = Loop::new(16) else { return };
    disk.mkfs();
    let partition = disk.add_partition();
    let mount = Mounted::new(disk.path());
    let found = reasons(&partition.node, "");
    assert!(
        found.contains(&mounted(disk.path(), Relation::Below, &mount.point)),
        "{found:?}"
    );
}

#[test]
fn root_loop_an_unused_partition_alongside_a_free_one_is_accepted() {
    let Some(disk) = Loop::new(16) else { return };
    let partition = disk.add_partition();
    assert_eq!(accepted(&partition.node, "").size.0, 8192 * 512);
}

#[test]
fn root_loop_a_device_that_another_shows_is_refused() {
    let Some(disk) = Loop::new(16) else { return };
    let upper = Loop::on(&disk.node).unwrap();
    let shown = Reason::Loop {
        device: disk.path().to_owned(),
        relation: Relation::Itself,
        holder: upper.path().to_owned(),
    };
    assert_eq!(reasons(&disk.node, ""), std::slice::from_ref(&shown));
    upper.mkfs();
    let mount = Mounted::new(upper.path());
    let found = reasons(&disk.node, "=ext4");
    assert_eq!(
        found,
        [shown, mounted(upper.path(), Relation::Above, &mount.point)]
    );
}

#[test]
fn root_loop_the_file_that_a_device_shows_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().canonicalize().unwrap().join("my disk.img");
    File::create(&file).unwrap().set_len(16 << 20).unwrap();
    let Ok(disk) = Loop::on(&file) else {
        skip::skipped("no loop device can be attached here");
        return;
    };
    let devices = Devices::read(&Root::host()).unwrap();
    let BlockDeviceKind::Loop { backing_file, .. } = &devices.named(&disk.name()).unwrap().kind
    else {
        panic!("not a loop device");
    };
    assert_eq!(backing_file.as_ref(), Some(&file));
    assert_eq!(
        reasons(&file, ""),
        [Reason::Loop {
            device: file.display().to_string(),
            relation: Relation::Itself,
            holder: disk.path().to_owned()
        }]
    );
    // The device identifies the file by its inode, whatever its name.
    let other_name = folder.path().canonicalize().unwrap().join("again");
    fs::hard_link(&file, &other_name).unwrap();
    fs::remove_file(&file).unwrap();
    let found = reasons(&other_name, "");
    assert!(matches!(found[..], [Reason::Loop { .. }]), "{found:?}");
    drop(disk);
    accepted(&other_name, "");
}

#[test]
fn root_loop_a_signature_must_be_named() {
    let Some(disk) = Loop::new(16) else { return };
    disk.mkfs();
    let signature = Reason::Carries {
        path: disk.node.clone(),
        unnamed: vec![LocatedContent {
            partition: None,
            volume: None,
            offset: 1080,
            kind: SignatureKind::Ext4,
        }],
        all: vec![SignatureKind::Ext4],
    };
    assert_eq!(reasons(&disk.node, ""), std::slice::from_ref(&signature));
    let found = reasons(&disk.node, "=xfs");
    assert!(matches!(found[0], Reason::NotThere { .. }), "{found:?}");
    assert_eq!(found[1], signature);
    accepted(&disk.node, "=ext4");
}

#[test]
fn root_loop_a_read_only_device_is_refused() {
    let Some(disk) = Loop::new(16) else { return };
    run("blockdev", &["--setro", disk.path()]);
    let found = reasons(&disk.node, "");
    assert_eq!(
        found[0],
        Reason::ReadOnly {
            device: disk.path().to_owned()
        }
    );
    run("blockdev", &["--setrw", disk.path()]);
    accepted(&disk.node, "");
}

#[test]
fn root_loop_a_link_swapped_to_a_free_device_does_not_free_the_one_opened() {
    let (Some(used), Some(free)) = (Loop::new(16), Loop::new(16)) else {
        return;
    };
    used.mkfs();
    let mount = Mounted::new(used.path());
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("data");
    symlink(&used.node, &link).unwrap();
    let opened = PinnedTarget::at(&link).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&free.node, &link).unwrap();
    let consents = [consent(&link, "=ext4"), consent(&used.node, "=ext4")];
    let refusal = claim(opened, &consents).unwrap_err();
    assert!(
        refusal
            .reasons
            .contains(&mounted(used.path(), Relation::Itself, &mount.point)),
        "{refusal}"
    );
}

#[test]
fn root_loop_a_link_swapped_to_another_device_is_refused() {
    let (Some(mine), Some(other)) = (Loop::new(16), Loop::new(16)) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("data");
    symlink(&mine.node, &link).unwrap();
    let opened = PinnedTarget::at(&link).unwrap();
    let pinned = opened.device();
    fs::remove_file(&link).unwrap();
    symlink(&other.node, &link).unwrap();
    let refusal = claim(opened, &[consent(&link, "")]).unwrap_err();
    assert_eq!(refusal.reasons, [Reason::Moved { path: link.clone() }]);
    // Named by its own node it is accepted, and it is still the device that was opened.
    fs::remove_file(&link).unwrap();
    symlink(&mine.node, &link).unwrap();
    let opened = PinnedTarget::at(&link).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&other.node, &link).unwrap();
    let target = claim(opened, &[consent(&mine.node, "")]).unwrap();
    assert_eq!(target.device, pinned);
    target
        .reopen(OFlags::empty())
        .unwrap()
        .write_all_at(b"mine", 0)
        .unwrap();
    let mut seen = [0; 4];
    open_for_reading(&mine.node)
        .unwrap()
        .file
        .read_exact_at(&mut seen, 0)
        .unwrap();
    assert_eq!(&seen, b"mine");
    open_for_reading(&other.node)
        .unwrap()
        .file
        .read_exact_at(&mut seen, 0)
        .unwrap();
    assert_eq!(seen, [0; 4]);
}

#[test]
fn root_loop_nothing_is_mounted_on_a_claimed_device() {
    let Some(disk) = Loop::new(16) else { return };
    disk.mkfs();
    let target = accepted(&disk.node, "=ext4");
    let point = tempfile::tempdir().unwrap();
    let result =
        crate::support::loops::try_run("mount", &[disk.path(), point.path().to_str().unwrap()]);
    if result.is_ok() {
        run("umount", &[point.path().to_str().unwrap()]);
    }
    assert!(result.is_err());
    drop(target);
}

#[test]
fn root_loop_counters_see_what_is_written() {
    let Some(disk) = Loop::new(16) else { return };
    let devices = Devices::read(&Root::host()).unwrap();
    let counter = Counter::open(&Root::host(), devices.named(&disk.name()).unwrap()).unwrap();
    let before = counter.read().unwrap();
    let target = accepted(&disk.node, "");
    target.file.write_all_at(&[7; 1 << 20], 0).unwrap();
    target.file.sync_all().unwrap();
    let counts = counter.read().unwrap().since(&before).unwrap();
    assert_eq!(counts.write_bytes, 1 << 20);
    assert!(counts.writes > 0);
}

#[test]
fn root_loop_a_folder_lies_on_the_mounted_device() {
    let Some(disk) = Loop::new(16) else { return };
    disk.mkfs();
    let mount = Mounted::new(disk.path());
    let folder = mount.point.join(OsStr::new("a b"));
    fs::create_dir(&folder).unwrap();
    let root = Root::host();
    let devices = Devices::read(&root).unwrap();
    let place = place_of(&root, &devices, &folder).unwrap();
    assert_eq!(devices.get(place.devices[0]).unwrap().name, disk.name());
    let found = place.mount.unwrap();
    assert_eq!(
        (found.point, found.kind.as_str()),
        (mount.point.clone(), "ext4")
    );
}

#[test]
fn root_loop_the_root_disk_of_this_machine_is_refused() {
    let root = Root::host();
    let uses = DeviceUsers::read(&root).unwrap();
    let place = place_of(&root, uses.devices(), Path::new("/")).unwrap();
    let Some(&number) = place.devices.first() else {
        skip::skipped("/ lies on no block device here");
        return;
    };
    for disk in uses.devices().stack_below(number) {
        let found = uses.reasons(disk.number);
        assert!(matches!(found[0], Reason::RootDisk { .. }), "{found:?}");
    }
}
