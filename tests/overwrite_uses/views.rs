//! A machine that is seen in part only: from a container, or with lists of the kernel hidden.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use crate::loops::{Loop, Mounted, run};
use crate::support::{self, Place, ProgramOutput};
use crate::ways::{Holder, statements_of};
use crate::{MIB, refused, row};

/// With the kernel's lists hidden, nothing is known to be unused.
#[test]
fn with_root_with_a_part_of_the_kernels_lists_hidden_everything_is_refused() {
    if !support::is_root() {
        return;
    }
    let empty = |place: &str| format!("mount -t tmpfs none {place}");
    for prepare in [
        empty("/sys"),
        empty("/sys/class/block"),
        empty("/sys/devices/virtual/block"),
        "mount --bind /sys/class/net /sys/class/block".to_owned(),
        empty("/proc/1"),
        empty("/proc/1/fd"),
        "mount --bind /proc/$$ /proc/1".to_owned(),
    ] {
        let place = Place::new();
        let file = place.path("plain");
        File::create(&file).unwrap().set_len(16 * MIB).unwrap();
        let file = file.to_str().unwrap();
        let said = bench_in(&place, &["--mount"], &prepare, file);
        refused(
            &format!("bench, after {prepare}"),
            said,
            "its users are unknown",
        );
    }
}

/// `bench` on a target that it may overwrite, in new namespaces that a command has prepared.
fn bench_in(place: &Place, namespaces: &[&str], prepare: &str, target: &str) -> ProgramOutput {
    let bench = format!("bench {target} --destroy {target} --phase page-write");
    let command = place.command(&format!("{bench} --seconds 200ms"));
    let mut inside = Command::new("unshare");
    inside.args(namespaces);
    inside.args(["--propagation", "private", "sh", "-c"]);
    inside.arg(format!("{prepare} && exec \"$0\" \"$@\""));
    support::output_of(support::behind(inside, &command).current_dir(place.data()))
}

/// From a container the node of a loop device may be missing, and its file system be mounted nowhere. Any other
/// storage may then be its own.
#[test]
fn with_root_a_loop_device_that_cannot_be_judged_from_here_keeps_all_else_from_being_overwritten() {
    let (Some(base), Some(target)) = (Loop::new(64), Loop::new(16)) else {
        return;
    };
    base.mkfs();
    let mounted = Mounted::new(base.path());
    let file = mounted.point.join("disk.img");
    File::create(&file).unwrap().set_len(16 * MIB).unwrap();
    let other = Loop::on(&file).unwrap();
    let place = Place::new();
    let plain = place.path("plain");
    File::create(&plain).unwrap().set_len(16 * MIB).unwrap();
    let point = mounted.point.display();
    let views = [
        (
            "its node is missing, and its path leads nowhere",
            &["--mount"][..],
            format!("mount --bind /dev/null {} && umount {point}", other.path()),
        ),
        (
            "its file system is mounted nowhere",
            &["--mount", "--pid", "--fork", "--mount-proc"],
            format!("umount {point}"),
        ),
    ];
    for (view, namespaces, prepare) in views {
        for target in [target.path(), plain.to_str().unwrap()] {
            let said = bench_in(&place, namespaces, &prepare, target);
            let fails = said.status != Some(2);
            row(
                &format!("bench, beside a loop device: {view}: {target}"),
                "refusal",
                &said,
                fails,
            );
            said.refuses(&["cannot be found from here"]);
        }
    }
    // Seen whole, it is not in the way.
    for target in [target.path(), plain.to_str().unwrap()] {
        let said = bench_in(&place, &["--mount"], "true", target);
        row(
            &format!("bench, beside a loop device: {target}"),
            "success",
            &said,
            said.status != Some(0),
        );
        said.ends_with(0);
    }
}

/// Without privileges `/proc/PID/map_files` may not be followed.
#[test]
fn with_root_a_user_is_kept_from_what_a_program_of_their_own_has_mapped() {
    if !support::is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    support::copy_program(
        assert_cmd::cargo::cargo_bin!("disksmith"),
        &path("disksmith"),
    );
    let file = path("data");
    let as_nobody = |program: &Path| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command
            .arg(program)
            .env("DISKSMITH_LEDGER", path("ledger.db"));
        command
            .env("PATH", "/usr/bin:/bin")
            .current_dir(folder.path());
        command
    };
    let made = as_nobody(Path::new("truncate"))
        .args(["--size", "16M"])
        .arg(&file)
        .status();
    assert!(made.unwrap().success());
    let Some(device) = Loop::new(16) else { return };
    // A node of its own: the permissions of the system's stay as they are.
    let number = fs::metadata(&device.node).unwrap().rdev();
    let node = path("node");
    let [major, minor] =
        [rustix::fs::major(number), rustix::fs::minor(number)].map(|part| part.to_string());
    run(
        "mknod",
        &["-m", "666", node.to_str().unwrap(), "b", &major, &minor],
    );
    // What else stands against it, such as a loop device over a file that a user cannot see, is no concern here.
    let bench = |target: &Path| {
        let mut command = as_nobody(&path("disksmith"));
        let name = target.to_str().unwrap();
        command.args([
            "bench",
            name,
            "--destroy",
            name,
            "--phase",
            "page-write",
            "--seconds",
            "200ms",
        ]);
        support::output_of(&mut command)
    };
    for target in [&file, &node] {
        for way in ["mapped, shared", "mapped, private"] {
            let mut program = as_nobody(Path::new("python3"));
            let holder = Holder::of(&mut program, target, &statements_of(way));
            let said = bench(target);
            let state = format!("bench of {} by a user, {way}", target.display());
            refused(&state, said, "mapped into memory by python3");
            drop(holder);
        }
    }
}
