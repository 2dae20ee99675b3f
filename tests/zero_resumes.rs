//! Resuming of `zero` after kills and signals. They need root and loop devices; without
//! them each says so and passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/disk.rs"]
mod disk;
#[path = "support/loops.rs"]
mod loops;
mod support;

use std::thread::sleep;
use std::time::Duration;

use disk::{Disk, MIB, not_zero, only};
use loops::{digest, fill};
use rustix::process::Signal;
use support::{Place, ProgramOutput, Running};

#[test]
fn with_root_it_goes_on_after_kills_at_any_moment() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, "disk.img", 80 * MIB + 512) else {
        return;
    };
    // The first comes when something may have been kept; the others at moments that differ. A busy host may keep
    // nothing in any of them: then more follow, until a start goes on.
    let moments = [3500, 30, 700, 150, 1300, 0, 420];
    let nanos = || std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    let mut goes_on = false;
    for (at, millis) in moments.into_iter().chain([3500; 50]).enumerate() {
        if goes_on && at >= moments.len() {
            break;
        }
        let running = disk.start(&place, &["--limit", "20MiB/s"]);
        let jitter = u64::from(nanos() % 100) * u64::from(at > 0);
        sleep(Duration::from_millis(millis + jitter));
        running.signal(Signal::KILL);
        let said = running.end();
        assert!(!said.err.contains("from the beginning"), "{said:#?}");
        // On a host that was slow to kill it, it came to its end, and the next begins anew.
        goes_on = said.status.is_none() && (goes_on || said.err.contains("continuing with"));
        assert!(matches!(said.status, None | Some(0)), "{said:#?}");
    }
    let said = disk.zero(&place, &["--json"]).ends_with(0);
    assert!(said.err.contains("continuing with"), "{said:#?}");
    let shown = only(&said);
    assert!(shown["starts"].as_u64().unwrap() >= 2, "{shown:#}");
    assert_eq!(not_zero(&disk.device.node), 0);
    // It is forgotten now: the next begins anew.
    let said = disk.zero(&place, &["--json"]).ends_with(0);
    assert_eq!(only(&said)["starts"], 1);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_root_it_goes_on_however_often_it_is_killed() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, "disk.img", 400 * MIB + 512) else {
        return;
    };
    let mut kept = 0;
    for round in 0..50_u32 {
        let running = disk.start(&place, &["--limit", "20MiB/s"]);
        let nanos = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
        sleep(Duration::from_millis(u64::from(nanos % 4000)));
        running.signal(Signal::KILL);
        let said = running.end();
        if said.status.is_some() {
            break;
        }
        kept += u32::from(said.err.contains("continuing with"));
        assert!(
            !said.err.contains("from the beginning"),
            "round {round}: {said:#?}"
        );
    }
    println!("{kept} starts went on with what was kept");
    assert!(kept > 5);
    disk.zero(&place, &[]).ends_with(0);
    assert_eq!(not_zero(&disk.device.node), 0);
}

#[test]
fn with_root_a_signature_that_it_has_erased_itself_is_none_any_more() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, "disk.img", 80 * MIB) else {
        return;
    };
    disk.device.mkfs();
    disk.zero(&place, &[])
        .refuses(&["carries the signature 'ext4'"]);
    let named = format!("{}=ext4", disk.path());
    let words = ["zero", disk.path(), "--destroy", &named];
    for signal in [Signal::KILL, Signal::INT] {
        let before = disk.written();
        let mut command = place.command(&[&words[..], &LIMIT].concat());
        let mut running = Running::start(&mut command);
        running.wait_for_handler(Signal::INT);
        // A second of the limit, of eight in all.
        running.wait_until("zeroes nothing", || disk.written() > before + 10 * MIB);
        running.signal(signal);
        let said = running.end();
        assert_ne!(said.status, Some(2), "{said:#?}");
    }
    // Its name may be said again, and need not be.
    disk.zero(&place, &["--dry-run"]).ends_with(0);
    place.run(&words).ends_with(0);
    assert_eq!(not_zero(&disk.device.node), 0);
}

/// A zeroing at this rate is seconds from its end when it has come so far as is waited for.
const LIMIT: [&str; 2] = ["--limit", "10MiB/s"];

/// Zeroes a part of a disk and is stopped by a signal.
fn stopped(place: &Place, disk: &Disk, signal: Signal) -> ProgramOutput {
    let running = disk.start_and_wait(&mut disk.command(place, &LIMIT));
    running.signal(signal);
    running.end()
}

#[test]
fn with_root_each_disk_of_a_command_may_go_on_by_itself() {
    let place = Place::new();
    let disks = (
        Disk::new(&place, "one.img", 60 * MIB),
        Disk::new(&place, "two.img", 60 * MIB),
    );
    let (Some(one), Some(two)) = disks else {
        return;
    };
    let paths = [one.path(), two.path()];
    let consents = [&one, &two]
        .map(|disk| ["--destroy", &disk.consent])
        .concat();
    let words = [&["zero"], &LIMIT[..], &paths, &consents].concat();
    let mut running = one.start_and_wait(&mut place.command(&words));
    running.wait_until("zeroes nothing", || two.has_come_beyond(0));
    running.signal(Signal::INT);
    running.end().ends_with(3);
    for disk in [&one, &two] {
        let said = disk.zero(&place, &["--json"]).ends_with(0);
        assert_eq!(only(&said)["starts"], 2);
        assert_eq!(not_zero(&disk.device.node), 0);
    }
    let said = place.run(&[&["zero", "--json"], &paths[..], &consents].concat());
    assert_eq!(said.ends_with(0).json()["disks"][0]["starts"], 1);
}

#[test]
fn with_root_a_signal_ends_it_orderly_and_the_consent_must_be_named_again() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, "disk.img", 140 * MIB) else {
        return;
    };
    for signal in [Signal::INT, Signal::TERM] {
        let said = stopped(&place, &disk, signal).ends_with(3);
        for words in [
            "stopped by a signal",
            "The same command continues",
            disk.path(),
        ] {
            assert!(said.err.contains(words), "no '{words}' in {said:#?}");
        }
        assert_eq!(said.out, "");
    }
    place
        .run(&["zero", disk.path()])
        .refuses(&["it is not named with --destroy"]);
    let said = disk.zero(&place, &["--dry-run"]).ends_with(0);
    assert!(said.out.contains("left of 140 MiB"), "{said:#?}");
    let said = disk.zero(&place, &["--json"]).ends_with(0);
    assert_eq!(only(&said)["starts"], 3);
    assert_eq!(not_zero(&disk.device.node), 0);
}

#[test]
fn with_root_a_disk_that_was_changed_meanwhile_is_begun_anew() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, "disk.img", 80 * MIB) else {
        return;
    };
    // Zeros that are none any more, also where md and bcache have their superblocks; another way to
    // zero.
    for (at, arguments, expected) in [
        (Some(MIB), &[][..], "another program has written to it"),
        (Some(4096), &[], "another program has written to it"),
        (None, &["--discard"], "then it was zeroed by writes"),
    ] {
        fill(disk.path(), 80);
        stopped(&place, &disk, Signal::INT).ends_with(3);
        at.into_iter().for_each(|at| disk.change(at));
        let said = disk.zero(&place, &[&["--json"], arguments].concat());
        let said = said.ends_with(0);
        assert!(said.err.contains(expected), "no '{expected}' in {said:#?}");
        assert_eq!(only(&said)["starts"], 1);
        assert_eq!(not_zero(&disk.device.node), 0);
    }
}

#[test]
fn with_root_another_disk_under_the_name_of_one_that_was_begun_is_refused() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, "disk.img", 80 * MIB) else {
        return;
    };
    disk.device.mkfs();
    let named = format!("{}=ext4", disk.path());
    let words = ["zero", disk.path(), "--destroy", &named];
    let slowly = [&words[..], &LIMIT].concat();
    let running = disk.start_and_wait(&mut place.command(&slowly));
    running.signal(Signal::INT);
    let said = running.end().ends_with(3);
    // What was erased is not to be named again.
    let again = format!("--destroy {}", disk.path());
    assert!(said.err.contains(&again), "{said:#?}");
    assert!(!said.err.contains("=ext4"), "{said:#?}");
    // Names have changed: now it is another disk, and carries what was consented to.
    fill(disk.path(), 80);
    disk.device.mkfs();
    let before = digest(&disk.device.node);
    for arguments in [&[][..], &["--dry-run"]] {
        place
            .run(&[&words[..], arguments].concat())
            .refuses(&["is not the disk that was begun", "--anew"]);
    }
    assert_eq!(digest(&disk.device.node), before);
    let said = place.run(&[&words[..], &["--anew", "--json"]].concat());
    assert_eq!(only(&said.ends_with(0))["starts"], 1);
    assert_eq!(not_zero(&disk.device.node), 0);
    // And it is forgotten.
    disk.zero(&place, &[]).ends_with(0);
}

#[test]
fn with_root_a_ledger_that_may_only_be_read_costs_only_the_going_on() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, "disk.img", 8 * MIB) else {
        return;
    };
    let ledger = place.path("no ledger");
    std::fs::create_dir(&ledger).unwrap();
    let said = disk.zero(&place, &["--ledger", ledger.to_str().unwrap(), "--json"]);
    let said = said.ends_with(0);
    assert!(said.err.contains("cannot go on"), "{said:#?}");
    assert_eq!(only(&said)["well"], true);
    assert_eq!(not_zero(&disk.device.node), 0);
    let said = disk
        .zero(&place, &["--dry-run", "--json"])
        .ends_with(0)
        .json();
    assert_eq!(
        (&said["command"], &said["dry_run"]),
        (&"zero".into(), &true.into())
    );
    assert_eq!(said["disks"][0]["left_bytes"], 8 * MIB);
}
