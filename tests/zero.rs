//! The verb `zero` on real block devices: what it must not touch, that it zeroes all of what it may,
//! and that it names what is bad. They need root; without it, or where the kernel lacks a part, each
//! says so and passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/disk.rs"]
mod disk;
#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs::{self, File};

use disk::{Disk, MIB, not_zero, only};
use loops::{Loop, Mounted, SwapOn, Throttle, digest, fill, make, run};
use rustix::process::Signal;
use serde_json::{Value, json};
use support::{Place, Running};

#[test]
fn with_root_what_is_not_named_is_refused_and_all_reasons_stand_in_one_answer() {
    let (Some(plain), Some(signed)) = (Loop::new(16), Loop::new(16)) else {
        return;
    };
    fill(plain.path(), 16);
    signed.mkfs();
    let before = (digest(&plain.node), digest(&signed.node));
    let place = Place::new();
    let both = ["zero", plain.path(), signed.path()];
    let unknown = format!("{}=unknown", plain.path());
    place.run(&both).refuses(&[
        &format!("{} is not overwritten", plain.path()),
        &format!("{} is not overwritten", signed.path()),
        "it is not named with --destroy",
        "carries the signature 'ext4'",
    ]);
    // One that may be zeroed is not, when another may not.
    place
        .run(
            &[
                &both[..],
                &["--destroy", plain.path(), "--destroy", signed.path()],
            ]
            .concat(),
        )
        .refuses(&[
            &format!("--destroy {}=ext4", signed.path()),
            &format!("carries data of an unknown kind (at 0 B); if all of that may be lost, say so: --destroy {unknown}"),
        ]);
    place
        .run(&["zero", plain.path(), "--destroy", signed.path()])
        .refuses(&["which is not among the disks"]);
    place
        .run(&[
            "zero",
            plain.path(),
            plain.path(),
            "--destroy",
            plain.path(),
        ])
        .refuses(&["is named twice"]);
    let link = place.path("link");
    std::os::unix::fs::symlink(&plain.node, &link).unwrap();
    let link = link.to_str().unwrap();
    let words = ["zero", plain.path(), link, "--destroy", plain.path()];
    place
        .run(&[&words[..], &["--destroy", link]].concat())
        .refuses(&["are the same device"]);
    assert_eq!((digest(&plain.node), digest(&signed.node)), before);
    place
        .run(&["zero", plain.path(), "--destroy", &unknown, "--dry-run"])
        .ends_with(0);
    assert_eq!((digest(&plain.node), digest(&signed.node)), before);
}

#[test]
fn with_root_a_disk_that_took_the_name_of_the_planned_one_is_not_written() {
    let Some(device) = Loop::new(16) else {
        return;
    };
    fill(device.path(), 16);
    let place = Place::new();
    let unknown = format!("{}=unknown", device.path());
    let zero = ["zero", device.path(), "--destroy", &unknown];
    let plan = place.run(&[&zero[..], &["--dry-run", "--json"]].concat());
    let plan = plan.ends_with(0).json();
    let seen = &plan["disks"][0]["seen"];
    assert_eq!(seen["size_bytes"], 16 * MIB);
    let before = digest(&device.node);
    for (key, other, expected) in [
        ("boot", Value::from("another"), "was rebooted"),
        ("identity", Value::from("vol-2"), "serial number"),
        ("size_bytes", Value::from(8 * MIB), "its size"),
        ("diskseq", Value::from(u32::MAX), "was attached"),
    ] {
        let mut other_disk = seen.clone();
        other_disk[key] = other;
        let planned = json!({ "path": device.path(), "seen": other_disk }).to_string();
        place
            .run(&[&zero[..], &["--planned", &planned]].concat())
            .refuses(&["is not the disk that the plan was made of", expected]);
    }
    let mut other = seen.clone();
    other["boot"] = Value::from("another");
    let other = json!({ "path": device.path(), "seen": other }).to_string();
    for verb in [
        &["bench", device.path(), "--phase", "page-write"][..],
        &["sweep", "--devices", device.path()],
        &[
            "array",
            "create",
            "--level",
            "0",
            "--members",
            device.path(),
        ],
    ] {
        let words = [verb, &["--destroy", &unknown]].concat();
        place
            .run(&[&words[..], &["--planned", &other]].concat())
            .refuses(&["is not the disk that the plan was made of"]);
    }
    let bench = ["bench", device.path(), "--phase", "page-write"];
    let consent = ["--destroy", &unknown];
    let inspected = place.run(&[&["look", "--"], &bench[..], &consent].concat());
    let inspected = inspected.ends_with(0).json();
    assert_eq!(&inspected["disks"][0]["seen"], seen, "{inspected:#}");
    assert_eq!(
        inspected["disks"][0]["content"],
        json!(["unknown"]),
        "{inspected:#}"
    );
    place
        .run(&[&["look", "--"], &bench[..]].concat())
        .refuses(&["overwrites nothing"]);
    assert_eq!(digest(&device.node), before);
    let planned = json!({ "path": device.path(), "seen": seen }).to_string();
    place
        .run(&[&zero[..], &["--planned", &planned]].concat())
        .ends_with(0);
    assert_eq!(not_zero(&device.node), 0);
}

#[test]
fn with_root_what_is_in_use_is_refused_whatever_is_said() {
    let place = Place::new();
    let Some(device) = Loop::new(64) else {
        return;
    };
    let ext4 = format!("{}=ext4", device.path());
    let zero = |consent: &str| place.run(&["zero", device.path(), "--destroy", consent]);
    assert!(make("ext4", &device));
    {
        let mounted = Mounted::new(device.path());
        let point = mounted.point.to_str().unwrap().to_owned();
        fs::write(mounted.point.join("kept"), "of value").unwrap();
        run("mount", &["-o", "remount,ro", &point]);
        let before = digest(&device.node);
        zero(&ext4).refuses(&[
            &format!("is mounted at {point}; unmount it first"),
            "O_EXCL",
        ]);
        assert_eq!(digest(&device.node), before);
        assert!(mounted.point.join("kept").exists());
    }
    let before = digest(&device.node);
    {
        let above = Loop::on(&device.node).unwrap();
        zero(&ext4).refuses(&[above.path()]);
    }
    assert_eq!(digest(&device.node), before);
    fill(device.path(), 64);
    {
        let partition = device.add_partition();
        partition.mkfs();
        let mounted = Mounted::new(&partition.node);
        let point = mounted.point.to_str().unwrap().to_owned();
        run("mount", &["-o", "remount,ro", &point]);
        let before = digest(&device.node);
        zero(device.path()).refuses(&[&partition.node, &point]);
        assert_eq!(digest(&device.node), before);
    }
    let _swap = SwapOn::new(device.path());
    let before = digest(&device.node);
    zero(&format!("{}=swap", device.path())).refuses(&["swap"]);
    assert_eq!(digest(&device.node), before);
}

#[test]
fn a_file_is_no_disk_and_two_ways_at_once_are_none() {
    let place = Place::new();
    let file = place.path("file");
    fs::write(&file, vec![7; 8192]).unwrap();
    let file = file.to_str().unwrap();
    place
        .run(&["zero", file, "--destroy", &format!("{file}=unknown")])
        .refuses(&["is a file; zero works on block devices"]);
    assert_eq!(fs::read(file).unwrap(), vec![7; 8192]);
    place
        .run(&[
            "zero",
            file,
            "--destroy",
            file,
            "--discard",
            "--write-zeroes",
        ])
        .refuses(&["cannot be used with"]);
    place.run(&["zero"]).refuses(&["DEVICE"]);
}

#[test]
fn with_root_all_of_it_is_zeroed_and_allocated_also_an_odd_size() {
    let place = Place::new();
    let odd = 37 * MIB + 7 * 512;
    let tiny = 300 * 512;
    let disks = (
        Disk::new(&place, "odd.img", odd),
        Disk::new(&place, "tiny.img", tiny),
        Disk::sparse(&place, "sparse.img", 16 * MIB),
    );
    let (Some(first), Some(second), Some(third)) = disks else {
        return;
    };
    assert!(third.allocated() < MIB);
    let paths = [first.path(), second.path(), third.path()];
    let consents = [&first, &second, &third]
        .map(|disk| ["--destroy", &disk.consent])
        .concat();
    let said = place.run(&[&["zero", "--json"], &paths[..], &consents].concat());
    let document = said.ends_with(0).json();
    assert_eq!(document["well"], true);
    for (disk, size) in [(&first, odd), (&second, tiny), (&third, 16 * MIB)] {
        assert_eq!(not_zero(&disk.device.node), 0, "{}", disk.path());
        assert_eq!(fs::metadata(&disk.file).unwrap().len(), size);
        let all = document["disks"].as_array().unwrap().iter();
        let shown = all.clone().find(|shown| shown["path"] == disk.path());
        let shown = shown.unwrap();
        assert_eq!(shown["size_bytes"], size);
        assert_eq!(shown["method"], "writes");
        assert_eq!(shown["not_written"], Value::Array(Vec::new()));
        assert!(shown["read_back"]["places"].as_u64().unwrap() >= 2);
    }
    // A file system may need a moment to allocate what is cached.
    File::open(&third.file).unwrap().sync_all().unwrap();
    assert!(third.allocated() >= 16 * MIB);
    // The table says the same.
    let said = first.zero(&place, &[]).ends_with(0);
    assert!(
        said.out.contains(first.path()) && said.out.contains("MiB/s"),
        "{said:#?}"
    );
    said.fits(100);
}

#[test]
fn with_root_the_offload_zeroes_too_and_it_is_said_what_came_of_it() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, "disk.img", 280 * MIB + 512) else {
        return;
    };
    let before = disk.allocated();
    let said = disk.zero(&place, &["--discard", "--json"]).ends_with(0);
    assert_eq!(not_zero(&disk.device.node), 0);
    let shown = only(&said);
    assert_eq!(shown["method"], "discard");
    let places = shown["first_write"]["places"].as_u64().unwrap();
    assert_eq!(places, 64);
    // The sample was written; the rest is given back.
    let after = disk.allocated();
    assert!(after < before - 200 * MIB, "{before} to {after}");
    let notes = said.json()["notes"].to_string();
    assert!(notes.contains("had zeroed itself"), "{notes}");
    fill(disk.path(), 280);
    let said = disk
        .zero(&place, &["--write-zeroes", "--json"])
        .ends_with(0);
    assert_eq!(only(&said)["method"], "write-zeroes");
    assert_eq!(not_zero(&disk.device.node), 0);
}

#[test]
fn with_root_of_two_at_once_on_one_disk_the_second_is_refused() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, "disk.img", 40 * MIB) else {
        return;
    };
    let mut running = disk.start(&place, &["--limit", "10MiB/s"]);
    running.wait_until("zeroes nothing", || !disk.zero_places().is_empty());
    // However long the others take, it is not done before.
    running.signal(Signal::STOP);
    disk.zero(&place, &[]).refuses(&["is claimed by something"]);
    // With a ledger of its own too.
    disk.zero(&Place::new(), &[])
        .refuses(&["is claimed by something"]);
    running.signal(Signal::CONT);
    running.end().ends_with(0);
    assert_eq!(not_zero(&disk.device.node), 0);
}

/// A tmpfs of so many mebibytes.
fn small(mib: u64) -> Mounted {
    Mounted::by(&["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
}

#[test]
fn with_root_places_that_cannot_be_written_are_listed_and_the_rest_is_zeroed() {
    if !support::is_root() {
        return;
    }
    // Behind the device there is room for 24 of its 64 MiB; writes of more fail.
    let small = small(24);
    let file = small.point.join("disk.img");
    File::create(&file).unwrap().set_len(64 * MIB).unwrap();
    let Some(disk) = Disk::on(file) else {
        return;
    };
    let place = Place::new();
    let said = disk.zero(&place, &["--json"]).ends_with(1);
    let shown = only(&said);
    assert_eq!(shown["well"], false);
    let lost: u64 = shown["not_written"]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| place["bytes"].as_u64().unwrap())
        .sum();
    assert!((39 * MIB..42 * MIB).contains(&lost), "{lost}");
    let notes = said.json()["notes"].to_string();
    assert!(notes.contains("could not be written"), "{notes}");
    // It is done, as far as it goes: nothing goes on.
    let said = disk.zero(&place, &[]).ends_with(1);
    assert!(!said.err.contains("continuing"), "{said:#?}");
    assert!(said.out.contains("all but"), "{said:#?}");
}

#[test]
fn with_root_the_slow_one_of_two_is_named() {
    // On a host that gives the fast one no processor for seconds, nothing is sure, and nothing is named.
    for _ in 0..3 {
        match slow_one_is_named() {
            None | Some(true) => return,
            Some(false) => (),
        }
    }
    panic!("the slow one is named in none of some runs");
}

/// True if the slow one of two disks was named. The fast one never is.
fn slow_one_is_named() -> Option<bool> {
    let place = Place::new();
    // At rates that a busy host has too, for some seconds.
    let sizes = 40 * MIB;
    let fast = Disk::new(&place, "fast.img", sizes)?;
    let slow = Disk::new(&place, "slow.img", sizes)?;
    let throttle = Throttle::on(&slow.device)?;
    throttle.limit_bytes(3 * MIB / 2);
    let paths = [fast.path(), slow.path()];
    let consents = [&fast, &slow]
        .map(|disk| ["--destroy", &disk.consent])
        .concat();
    let words = [
        &["zero", "--json", "--limit", "9MiB/s"],
        &paths[..],
        &consents,
    ]
    .concat();
    let running = Running::start(&mut throttle.hold(&place.command(&words)));
    let said = running.end().ends_with(0);
    let document = said.json();
    assert_eq!(not_zero(&slow.device.node), 0);
    let notes = document["notes"].to_string();
    assert!(
        !notes.contains(&format!("{} is slower", fast.path())),
        "{notes}"
    );
    let disks = &document["disks"];
    assert!(disks[0]["slower_than_siblings"].is_null(), "{document:#}");
    if !notes.contains(&format!("{} is slower than its siblings", slow.path())) {
        eprintln!("not named: {document:#}");
        return Some(false);
    }
    let ratio = &disks[1]["slower_than_siblings"]["mean"];
    assert!(ratio.as_f64().unwrap() < 0.5, "{document:#}");
    Some(true)
}
