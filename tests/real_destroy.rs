//! The content of a real block device: only read unless `--destroy` names it, and
//! refused whatever is said while it is in use. They need root; without it, or where the kernel
//! lacks a part, each says so and passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs;

use loops::{Loop, Mounted, digest, fill, make, run};
use support::{Place, ProgramOutput, Words};

const MIB: u64 = 64;

/// A device full of data that is no signature.
fn filled() -> Option<Loop> {
    let device = Loop::new(MIB)?;
    fill(device.path(), MIB);
    Some(device)
}

/// A tenth of a second of each phase.
fn bench(device: &Loop, arguments: &(impl Words + ?Sized)) -> ProgramOutput {
    let words = vec!["bench", device.path(), "--json", "--seconds", "100ms"];
    Place::new().run(&[words, arguments.words()].concat())
}

fn phases(said: &ProgramOutput) -> Vec<String> {
    let document = said.json();
    let phases = document["phases"].as_array().unwrap().iter();
    phases
        .map(|phase| phase["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn with_root_a_device_is_only_read_and_the_writing_phases_are_left_out_with_a_note() {
    let Some(device) = filled() else {
        return;
    };
    let before = digest(&device.node);
    let said = bench(&device, "").ends_with(0);
    assert_eq!(phases(&said), ["seek", "page-read", "scan"]);
    let notes = said.json()["notes"].to_string();
    for phase in [
        "page-write",
        "page-mixed",
        "log-append",
        "load",
        "--destroy",
    ] {
        assert!(notes.contains(phase), "no {phase} in {notes}");
    }
    // Alone, a phase that writes is refused.
    bench(&device, "--phase page-write").refuses(&["page-write would write", "--destroy"]);
    assert_eq!(digest(&device.node), before);
}

#[test]
fn with_root_a_device_that_destroy_names_is_written() {
    let Some(device) = filled() else {
        return;
    };
    let before = digest(&device.node);
    let unknown = format!("{}=unknown", device.path());
    let said = bench(&device, &["--destroy", &unknown]).ends_with(0);
    assert_eq!(phases(&said).len(), 7);
    assert_ne!(digest(&device.node), before);
}

#[test]
fn with_root_a_file_system_is_destroyed_only_by_its_name() {
    let Some(device) = Loop::new(MIB) else {
        return;
    };
    assert!(make("ext4", &device));
    let before = digest(&device.node);
    let named = |suffix: &str| format!("{}{suffix}", device.path());
    let signature = format!(
        "carries the signature 'ext4' (at 1.1 KiB); if all of that may be lost, say so: \
         --destroy {}=ext4",
        device.path()
    );
    bench(&device, &["--destroy", device.path()]).refuses(&[&signature]);
    bench(&device, &["--destroy", &named("=xfs")]).refuses(&[&signature]);
    let mistyped = "'ext44' is not a signature that disksmith knows";
    bench(&device, &["--destroy", &named("=ext44")]).refuses(&[mistyped]);
    assert_eq!(digest(&device.node), before);
    bench(
        &device,
        &["--destroy", &named("=ext4"), "--phase", "page-write"],
    )
    .ends_with(0);
    assert_ne!(digest(&device.node), before);
}

#[test]
fn with_root_a_mounted_device_is_refused_whatever_is_given_and_all_reasons_are_named() {
    let Some(device) = Loop::new(MIB) else {
        return;
    };
    assert!(make("ext4", &device));
    let mounted = Mounted::new(device.path());
    let kept = mounted.point.join("kept");
    fs::write(&kept, "of value").unwrap();
    // From now on the file system itself writes nothing.
    let point = mounted.point.to_str().unwrap();
    run("mount", &["-o", "remount,ro", point]);
    let before = digest(&device.node);
    let at = format!(
        "is mounted at {}; unmount it first",
        mounted.point.display()
    );
    let with_signature = format!("{}=ext4", device.path());
    for consent in [device.path(), with_signature.as_str()] {
        let said = bench(&device, &["--destroy", consent]).refuses(&[&at, "O_EXCL"]);
        let carries = said.err.contains("carries the signature 'ext4'");
        assert_eq!(carries, consent == device.path(), "{}", said.err);
    }
    assert_eq!(digest(&device.node), before);
    assert_eq!(fs::read_to_string(&kept).unwrap(), "of value");
    // Reading it does no harm, and is allowed.
    bench(&device, "--phase seek").ends_with(0);
    assert_eq!(digest(&device.node), before);
}

/// A symbolic link and its device are one storage, whichever of them is the target.
#[test]
fn with_root_a_link_and_its_device_are_named_by_each_other() {
    let place = Place::new();
    let Some(device) = Loop::new(16) else { return };
    let link = place.path("link");
    std::os::unix::fs::symlink(&device.node, &link).unwrap();
    let link = link.to_str().unwrap();
    for (target, named) in [(link, device.path()), (device.path(), link)] {
        let short = "--phase page-write --seconds 200ms";
        let bench = format!("bench {target} --destroy {named} {short}");
        place.run(&bench).ends_with(0);
        // What that wrote is known to nobody.
        let named = format!("{named}=unknown");
        place
            .run(&["zero", target, "--destroy", &named])
            .ends_with(0);
    }
}

#[test]
fn with_root_a_destroy_that_names_something_else_is_refused() {
    let (Some(device), Some(other)) = (filled(), filled()) else {
        return;
    };
    let before = (digest(&device.node), digest(&other.node));
    let not_the_target = format!(
        "--destroy names {}, which is not the target {}",
        other.path(),
        device.path()
    );
    bench(&device, &["--destroy", other.path()]).refuses(&[&not_the_target]);
    bench(
        &device,
        &["--destroy", device.path(), "--destroy", other.path()],
    )
    .refuses(&[&not_the_target]);
    assert_eq!((digest(&device.node), digest(&other.node)), before);
}
