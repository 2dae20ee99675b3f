//! The verb `zero` on real block devices: what it must not touch, that it zeroes all of what it may,
//! and that it goes on after a kill. They need root; without it, or where the kernel lacks a part,
//! each says so and passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use loops::{Loop, Mounted, SwapOn, Throttle, digest, fill, make, run, skipped};
use rustix::process::Signal;
use serde_json::Value;
use support::{Place, Running, Said};

const MIB: u64 = 1 << 20;

/// A loop device on a file in the test's own place, full of data that is no signature.
struct Disk {
    device: Loop,
    file: PathBuf,
}

impl Disk {
    /// One of so many bytes.
    fn new(place: &Place, name: &str, bytes: u64) -> Option<Disk> {
        let file = place.path(name);
        fill(file.to_str().unwrap(), bytes.div_ceil(MIB));
        File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        Disk::on(file)
    }

    /// One that has nothing behind it yet.
    fn sparse(place: &Place, name: &str, bytes: u64) -> Option<Disk> {
        let file = place.path(name);
        File::create(&file).unwrap().set_len(bytes).unwrap();
        Disk::on(file)
    }

    fn on(file: PathBuf) -> Option<Disk> {
        let device = Loop::on(&file).map_err(|why| skipped(&why)).ok()?;
        Some(Disk { device, file })
    }

    fn path(&self) -> &str {
        self.device.path()
    }

    fn zero(&self, place: &Place, arguments: &[&str]) -> Said {
        place.run(&self.words(arguments))
    }

    fn words<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        [&["zero", self.path(), "--destroy", self.path()], arguments].concat()
    }

    fn start(&self, place: &Place, arguments: &[&str]) -> Running {
        Running::start(&mut place.command(&self.words(arguments)))
    }

    /// How much is allocated behind it, in bytes.
    fn allocated(&self) -> u64 {
        fs::metadata(&self.file).unwrap().blocks() * 512
    }

    fn change(&self, at: u64) {
        let mut node = File::options().write(true).open(self.path()).unwrap();
        node.seek(SeekFrom::Start(at)).unwrap();
        node.write_all(&[7; 4096]).unwrap();
        node.sync_all().unwrap();
    }
}

/// How many bytes of a device are not zero.
fn not_zero(node: &Path) -> usize {
    let mut bytes = Vec::new();
    File::open(node).unwrap().read_to_end(&mut bytes).unwrap();
    bytes.iter().filter(|byte| **byte != 0).count()
}

fn only(said: &Said) -> Value {
    let document = said.json();
    assert_eq!(
        (&document["schema"], &document["command"]),
        (&1.into(), &"zero".into())
    );
    let disks = document["disks"].as_array().unwrap();
    assert_eq!(disks.len(), 1, "{document:#}");
    disks[0].clone()
}

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
        .refuses(&[&format!("--destroy {}=ext4", signed.path())]);
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
        .run(&["zero", plain.path(), "--destroy", plain.path(), "--dry-run"])
        .ends_with(0);
    assert_eq!((digest(&plain.node), digest(&signed.node)), before);
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
        run("mkfs.ext4", &["-q", "-F", &partition.node]);
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
        .run(&["zero", file, "--destroy", file])
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
    let consents = paths.map(|path| ["--destroy", path]).concat();
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
fn with_root_it_goes_on_after_kills_at_any_moment() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, "disk.img", 80 * MIB + 512) else {
        return;
    };
    // The first comes when something must have been kept; the others at moments that differ.
    let moments = [3500, 30, 700, 150, 1300, 0, 420];
    let nanos = || std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    for (at, millis) in moments.into_iter().enumerate() {
        let running = disk.start(&place, &["--limit", "20MiB/s"]);
        let jitter = u64::from(nanos() % 100) * u64::from(at > 0);
        sleep(Duration::from_millis(millis + jitter));
        running.signal(Signal::KILL);
        let said = running.end();
        assert_eq!(said.status, None, "{said:#?}");
        assert!(!said.err.contains("does not count"), "{said:#?}");
    }
    let said = disk.zero(&place, &["--json"]).ends_with(0);
    assert!(said.err.contains("going on with"), "{said:#?}");
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
        kept += u32::from(said.err.contains("going on with"));
        assert!(
            !said.err.contains("does not count"),
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
        let mut command = place.command(&[&words[..], &["--limit", "20MiB/s"]].concat());
        let running = Running::start(&mut command);
        sleep(Duration::from_millis(1500));
        running.signal(signal);
        let said = running.end();
        assert_ne!(said.status, Some(2), "{said:#?}");
    }
    // Its name may be said again, and need not be.
    disk.zero(&place, &["--dry-run"]).ends_with(0);
    place.run(&words).ends_with(0);
    assert_eq!(not_zero(&disk.device.node), 0);
}

/// Zeroes a part of a disk and is stopped by a signal.
fn stopped(place: &Place, disk: &Disk, signal: Signal) -> Said {
    let running = disk.start(place, &["--limit", "20MiB/s"]);
    sleep(Duration::from_millis(3500));
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
    let consents = paths.map(|path| ["--destroy", path]).concat();
    let words = [&["zero", "--limit", "20MiB/s"], &paths[..], &consents].concat();
    let running = Running::start(&mut place.command(&words));
    sleep(Duration::from_millis(2500));
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
            "The same command goes on",
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
    // Zeros that are none any more; a stamp that is gone; another way to zero.
    for (at, arguments, says) in [
        (Some(MIB), &[][..], "somebody else has written to it"),
        (Some(512), &[], ""),
        (None, &["--discard"], "then it was zeroed by writes"),
    ] {
        fill(disk.path(), 80);
        stopped(&place, &disk, Signal::INT).ends_with(3);
        at.into_iter().for_each(|at| disk.change(at));
        let said = disk.zero(&place, &[&["--json"], arguments].concat());
        let said = said.ends_with(0);
        assert!(said.err.contains(says), "no '{says}' in {said:#?}");
        assert_eq!(only(&said)["starts"], 1);
        assert_eq!(not_zero(&disk.device.node), 0);
    }
}

#[test]
fn with_root_of_two_at_once_on_one_disk_the_second_is_refused() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, "disk.img", 40 * MIB) else {
        return;
    };
    let running = disk.start(&place, &["--limit", "10MiB/s"]);
    sleep(Duration::from_millis(1500));
    disk.zero(&place, &[]).refuses(&["is claimed by something"]);
    // With a ledger of its own too.
    disk.zero(&Place::new(), &[])
        .refuses(&["is claimed by something"]);
    running.end().ends_with(0);
    assert_eq!(not_zero(&disk.device.node), 0);
}

/// A tmpfs of so many mebibytes.
struct Small {
    point: PathBuf,
    _folder: tempfile::TempDir,
}

impl Small {
    fn new(mib: u64) -> Small {
        let folder = tempfile::tempdir().unwrap();
        let point = folder.path().canonicalize().unwrap();
        let size = format!("size={mib}m");
        run(
            "mount",
            &["-t", "tmpfs", "-o", &size, "tmpfs", point.to_str().unwrap()],
        );
        Small {
            point,
            _folder: folder,
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        loops::unmount(&self.point);
    }
}

#[test]
fn with_root_places_that_cannot_be_written_are_listed_and_the_rest_is_zeroed() {
    if !support::is_root() {
        return;
    }
    // Behind the device there is room for 24 of its 64 MiB; writes of more fail.
    let small = Small::new(24);
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
    assert!(!said.err.contains("going on"), "{said:#?}");
    assert!(said.out.contains("all but"), "{said:#?}");
}

#[test]
fn with_root_the_slow_one_of_two_is_named() {
    let place = Place::new();
    let sizes = 100 * MIB;
    let disks = (
        Disk::new(&place, "fast.img", sizes),
        Disk::new(&place, "slow.img", sizes),
    );
    let (Some(fast), Some(slow)) = disks else {
        return;
    };
    let Some(throttle) = Throttle::on(&slow.device) else {
        return;
    };
    throttle.limit_bytes(10 * MIB);
    let paths = [fast.path(), slow.path()];
    let consents = paths.map(|path| ["--destroy", path]).concat();
    let words = [
        &["zero", "--json", "--limit", "30MiB/s"],
        &paths[..],
        &consents,
    ]
    .concat();
    let running = Running::start(&mut throttle.hold(&place.command(&words)));
    let said = running.end().ends_with(0);
    let document = said.json();
    let named = format!("{} is slower than its siblings", slow.path());
    let notes = document["notes"].to_string();
    assert!(notes.contains(&named), "{document:#}");
    assert!(
        !notes.contains(&format!("{} is slower", fast.path())),
        "{notes}"
    );
    let disks = &document["disks"];
    assert!(disks[0]["slower_than_siblings"].is_null(), "{document:#}");
    let ratio = &disks[1]["slower_than_siblings"]["mean"];
    assert!(ratio.as_f64().unwrap() < 0.5, "{document:#}");
    assert_eq!(not_zero(&slow.device.node), 0);
}
