#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::super::choose;
use super::*;

/// A RAID 10 of two members, as kernel 6.1 shows it, with changes to some files; an empty text removes a file.
pub(crate) fn tree(changes: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let place = tempfile::tempdir().unwrap();
    let root = Root::under(place.path());
    let block = root.sys.join("class/block");
    for (name, number) in [("vda", "254:0"), ("vdb", "254:16"), ("md0", "9:0")] {
        let folder = block.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("dev"), number).unwrap();
        fs::write(folder.join("size"), "2048\n").unwrap();
    }
    let md = block.join("md0/md");
    for (slot, name) in ["vda", "vdb"].iter().enumerate() {
        let member = md.join(format!("dev-{name}"));
        fs::create_dir_all(&member).unwrap();
        fs::write(member.join("slot"), format!("{slot}\n")).unwrap();
        fs::write(member.join("state"), "in_sync\n").unwrap();
        fs::write(member.join("size"), "1024\n").unwrap();
    }
    let files = [
        ("level", "raid10"),
        ("array_state", "clean"),
        ("chunk_size", "65536"),
        ("component_size", "1024"),
        ("layout", "258"),
        ("metadata_version", "1.2"),
        ("raid_disks", "2"),
        ("degraded", "0"),
        ("sync_action", "idle"),
        ("sync_completed", "none"),
        ("sync_min", "0"),
        ("sync_max", "max"),
        ("sync_speed_min", "1000 (system)"),
        ("sync_speed_max", "200000 (system)"),
        ("mismatch_cnt", "0"),
        ("uuid", "42a903bc-285c-4385-a4ec-0a93132a224d"),
    ];
    for (file, text) in files.iter().chain(changes) {
        if text.is_empty() {
            fs::remove_file(md.join(file)).unwrap();
        } else {
            fs::write(md.join(file), format!("{text}\n")).unwrap();
        }
    }
    (place, root)
}

pub(crate) fn find(changes: &[(&str, &str)]) -> Result<Target, String> {
    let (_place, root) = tree(changes);
    let devices = Devices::read(&root).unwrap();
    Target::find("md0", &root, &devices)
}

#[test]
fn an_array_that_is_well_can_be_scrubbed() {
    let target = find(&[]).unwrap();
    assert_eq!(target.uuid, "42a903bc:285c4385:a4ec0a93:132a224d");
    assert_eq!((target.chunk(), target.end), (Sectors(128), Sectors(2048)));
    assert_eq!(target.disks.len(), 2);
    assert_eq!(
        target.identities(),
        ["", ""],
        "these have no names of their own"
    );
    let parity = find(&[("level", "raid6"), ("stripe_cache_size", "256")]).unwrap();
    assert_eq!(parity.end, Sectors(2048));
}

#[test]
fn each_reason_not_to_is_a_sentence_of_its_own() {
    for (changes, expected) in [
        (&[("degraded", "1")][..], "1 of its 2 members is missing"),
        (&[("array_state", "readonly")], "it is read-only"),
        (&[("array_state", "read-auto")], "mdadm --readwrite"),
        (&[("array_state", "inactive")], "it is not running"),
        (&[("sync_action", "recover")], "'recover'"),
        (&[("sync_action", "resync")], "which has priority"),
        (&[("sync_action", "check")], "another program has begun"),
        (&[("sync_action", "dance")], "not known"),
        (&[("sync_action", "")], "without which nothing can be begun"),
        (&[("metadata_version", "external:imsm")], "mdmon"),
        (&[("metadata_version", "external:/md127/0")], "mdmon"),
        (&[("level", "raid0")], "disksmith scrub --read /dev/md0"),
        (&[("level", "linear")], "no second copy"),
        (&[("sync_max", "")], "no usable sync_max"),
        (&[("sync_speed_min", "")], "no usable sync_speed_min"),
        (&[("sync_max", "65536")], "echo max >"),
        (
            &[("uuid", "")],
            "no superblock of its members could be read",
        ),
    ] {
        let error = find(changes).unwrap_err();
        assert!(error.contains(expected), "{changes:?}: {error}");
        assert!(
            error.starts_with("/dev/md0 cannot be scrubbed: "),
            "{error}"
        );
    }
}

/// Root may write to any file; but on Linux a single thread may change its user (credentials(7)).
#[test]
fn a_user_who_may_not_turn_its_tunables_is_shown_how() {
    let (place, root) = tree(&[]);
    let allow = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
    allow(place.path(), 0o755).unwrap();
    let file = root.sys.join("class/block/md0/md/sync_action");
    allow(&file, 0o444).unwrap();
    let found = std::thread::spawn(move || {
        if rustix::process::getuid().is_root() {
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_534)).unwrap();
        }
        let devices = Devices::read(&root).unwrap();
        Target::find("md0", &root, &devices)
    });
    let error = found.join().unwrap().unwrap_err();
    assert!(error.contains("sync_action may not be written"), "{error}");
    assert!(error.contains("run it as root: "), "{error}");
}

#[test]
fn an_array_is_not_begun_while_md_is_at_work_on_its_disks() {
    let (_place, root) = tree(&[]);
    let other = root.sys.join("class/block/md1/md");
    fs::create_dir_all(other.join("dev-vdb")).unwrap();
    for (action, is_free) in [("recover", false), ("check", false), ("idle", true)] {
        fs::write(other.join("sync_action"), format!("{action}\n")).unwrap();
        let devices = Devices::read(&root).unwrap();
        match Target::find("md0", &root, &devices) {
            Ok(_) => assert!(is_free, "{action}"),
            Err(error) => assert!(
                error.contains(&format!(
                    "/dev/md1, which shares a disk with it (its sync_action is '{action}')"
                )),
                "{error}"
            ),
        }
    }
}

#[test]
fn a_disk_that_two_arrays_of_a_command_share_is_locked_once() {
    let (_place, root) = tree(&[]);
    let devices = Devices::read(&root).unwrap();
    let one = Target::find("md0", &root, &devices).unwrap();
    let other = Target {
        disks: one.disks[..1].to_vec(),
        ..one.clone()
    };
    assert_eq!(choose::new_disks(&one, &[]), one.disks);
    assert_eq!(
        choose::new_disks(&one, std::slice::from_ref(&other)),
        one.disks[1..]
    );
    assert_eq!(choose::new_disks(&other, &[one]), []);
}

#[test]
fn an_array_is_read_again_before_its_round() {
    let (_place, root) = tree(&[]);
    let devices = Devices::read(&root).unwrap();
    let target = Target::find("md0", &root, &devices).unwrap();
    assert_eq!(target.again(&root).unwrap().end, target.end);
    let md = root.sys.join("class/block/md0/md");
    for (file, before, now, expected) in [
        ("degraded", "0", "1", "1 of its 2 members is missing"),
        ("sync_action", "idle", "recover", "md is busy with it"),
        ("sync_max", "max", "128", "its sync_max is 128"),
        (
            "uuid",
            "42a903bc-285c-4385-a4ec-0a93132a224d",
            "52a903bc-285c-4385-a4ec-0a93132a224d",
            "its name belongs to another array",
        ),
    ] {
        fs::write(md.join(file), format!("{now}\n")).unwrap();
        let (still, left_out) = choose::refresh_targets(vec![target.clone()], &root);
        assert!(still.is_empty(), "{file}");
        let message = left_out.concat();
        assert!(
            message.contains("/dev/md0 cannot be scrubbed: "),
            "{message}"
        );
        assert!(message.contains(expected), "{message}");
        fs::write(md.join(file), format!("{before}\n")).unwrap();
    }
    let other = Target {
        disks: target.disks[..1].to_vec(),
        ..target.clone()
    };
    assert!(other.again(&root).unwrap_err().contains("another disk"));
    let (still, left_out) = choose::refresh_targets(vec![target], &root);
    assert_eq!((still.len(), left_out.len()), (1, 0));
}

#[test]
fn where_the_kernel_does_not_show_the_id_it_is_read_from_a_member() {
    let (_place, root) = tree(&[("uuid", "")]);
    fs::create_dir_all(&root.dev).unwrap();
    let mut member = vec![0; 8192];
    member[4096..4100].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
    member[4112..4128].copy_from_slice(&[0x42; 16]);
    fs::write(root.dev.join("vdb"), member).unwrap();
    let devices = Devices::read(&root).unwrap();
    let target = Target::find("md0", &root, &devices).unwrap();
    assert_eq!(target.uuid, "42424242:42424242:42424242:42424242");
}

#[test]
fn a_disk_that_is_no_array_is_refused_as_none() {
    let (_place, root) = tree(&[]);
    let devices = Devices::read(&root).unwrap();
    for word in ["vda", "/dev/vda", "md1", ""] {
        let error = Target::find(word, &root, &devices).unwrap_err();
        assert!(
            error.contains("not an array that the kernel lists"),
            "{error}"
        );
    }
}
