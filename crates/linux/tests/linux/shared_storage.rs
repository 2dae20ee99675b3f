//! Storage with more than one name, on the running kernel with real loop devices. These tests need root; without it,
//! or if no loop device can be attached, each is skipped with a note.

use std::fs::{self, File};
use std::path::Path;

use crate::support::loops::{Loop, Mounted, alone, run};
use linux::Root;
use linux::consent::{
    Consent, DestroyTarget, ProgramUse, Reason, Refusal, Relation, open_for_destroying,
};

/// Requests consent to overwrite a path, with the signatures in `suffix`.
fn destroy(path: &Path, suffix: &str) -> Result<DestroyTarget, Refusal> {
    let mut text = path.as_os_str().to_owned();
    text.push(suffix);
    let _alone = alone();
    open_for_destroying(&Root::host(), path, &[Consent::parse(&text).unwrap()])
}

/// Pairs of loop devices with the same 16 MiB: two on one file, and one on the other's device. `None` without loop
/// devices.
fn pairs() -> Option<[(Loop, Loop); 2]> {
    let (first, base) = (Loop::new(16)?, Loop::new(16)?);
    let shown = fs::read_to_string(format!("/sys/block/{}/loop/backing_file", first.name()));
    let over_file = Loop::on(Path::new(shown.unwrap().trim())).unwrap();
    let over_device = Loop::on(&base.node).unwrap();
    Some([(over_file, first), (over_device, base)])
}

#[test]
fn with_root_one_storage_is_no_two_targets() {
    let Some(pairs) = pairs() else { return };
    for (above, below) in pairs {
        let claimed = destroy(&above.node, "").unwrap();
        let refusal = destroy(&below.node, "").unwrap_err();
        let other = above.path().to_owned();
        assert!(
            refusal.reasons.contains(&Reason::AlsoTarget { other }),
            "{refusal}"
        );
        drop(claimed);
    }
}

#[test]
fn with_root_devices_of_other_storage_are_targets_side_by_side() {
    let (Some(one), Some(two)) = (Loop::new(16), Loop::new(16)) else {
        return;
    };
    let _one = destroy(&one.node, "").unwrap();
    let _two = destroy(&two.node, "").unwrap();
}

/// The node of a device may be outside `/dev`; sysfs then shows its path for a loop device on it, but not that it is a
/// device.
#[test]
fn with_root_a_loop_device_over_a_node_elsewhere_is_one_over_the_device() {
    let Some(base) = Loop::new(16) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let node = folder.path().join("node");
    let number = fs::read_to_string(format!("/sys/block/{}/dev", base.name())).unwrap();
    let (major, minor) = number.trim().split_once(':').unwrap();
    run("mknod", &[node.to_str().unwrap(), "b", major, minor]);
    let above = Loop::on(&node).unwrap();
    base.mkfs();
    let mounted = Mounted::new(base.path());
    let reasons = destroy(&above.node, "=ext4").unwrap_err().reasons;
    assert!(
        reasons.contains(&Reason::Mounted {
            device: base.path().to_owned(),
            relation: Relation::Below,
            point: mounted.point.clone(),
        }),
        "{reasons:?}"
    );
    drop(mounted);
    let reasons = destroy(&base.node, "=ext4").unwrap_err().reasons;
    assert!(
        reasons.contains(&Reason::Loop {
            device: base.path().to_owned(),
            relation: Relation::Itself,
            holder: above.path().to_owned(),
        }),
        "{reasons:?}"
    );
}

/// Users of storage are found by the storage, even if the file has been deleted.
#[test]
fn with_root_a_file_without_a_name_is_shared_too() {
    let Some(_) = Loop::new(1) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("disk.img");
    File::create(&file).unwrap().set_len(16 << 20).unwrap();
    let (one, two) = (Loop::on(&file).unwrap(), Loop::on(&file).unwrap());
    fs::remove_file(&file).unwrap();
    one.mkfs();
    let mounted = Mounted::new(one.path());
    let reasons = destroy(&two.node, "=ext4").unwrap_err().reasons;
    assert!(
        reasons.contains(&Reason::Mounted {
            device: one.path().to_owned(),
            relation: Relation::Sibling,
            point: mounted.point.clone(),
        }),
        "{reasons:?}"
    );
}

/// A program in another container, or the kernel itself, is not visible in this `/proc`. An empty folder stands for a
/// `/proc` that hides it.
#[test]
fn a_file_with_a_writer_that_is_not_seen_is_refused() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("data.ibd");
    let writer = File::create(&file).unwrap();
    writer.set_len(1 << 20).unwrap();
    let refusal = {
        let consent = Consent::parse(file.as_os_str()).unwrap();
        open_for_destroying(&Root::under(folder.path()), &file, &[consent]).unwrap_err()
    };
    let unseen = Reason::Unseen {
        path: file.clone(),
        hold: ProgramUse::Writing,
    };
    assert!(refusal.reasons.contains(&unseen), "{refusal}");
    drop(writer);
    let _reader = File::open(&file).unwrap();
    destroy(&file, "").unwrap();
}
