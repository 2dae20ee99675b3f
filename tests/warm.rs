//! `disksmith warm` on loop devices and mounted file systems, through the real program, and on cold
//! volumes in the lab's machine. The first need root, the second QEMU; where these are missing, the
//! tests say so and pass.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs::{self, File};
use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;

use loops::{FileSystem, Loop, fill, run, skipped};
use rustix::process::Signal;
use serde_json::Value;
use support::{Place, Running, Said};

const MIB: u64 = 1 << 20;

/// Bytes that were read from a device of this name since the host was started.
fn bytes_read(device: &Loop) -> u64 {
    let text = fs::read_to_string(format!("/sys/block/{}/stat", device.name())).unwrap();
    let sectors: u64 = text.split_whitespace().nth(2).unwrap().parse().unwrap();
    512 * sectors
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Waits until so much was read from a device.
fn wait_for(device: &Loop, bytes: u64) {
    for _ in 0..6000 {
        if bytes_read(device) >= bytes {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("nothing is read");
}

#[test]
fn what_cannot_be_warmed_is_refused_with_a_reason() {
    let place = Place::new();
    fs::write(place.path("file"), "x").unwrap();
    fs::write(place.path("blocks.json"), "{}").unwrap();
    for (arguments, words) in [
        (&["file"][..], "is a file; name the volume that it lies on"),
        (&["data"], "is a directory"),
        (&["/dev/no-such"], "cannot be opened"),
        (&["/dev/null"], "name a regular file or a block device"),
        (&["/dev/no-such", "--block", "1000"], "a multiple of 4 KiB"),
        (
            &["/dev/no-such", "--ready-by", "18:00"],
            "--ready-by goes with",
        ),
        (&["/dev/no-such", "--ready-by", "soon"], "is no time"),
        (&["/dev/no-such", "--limit", "fast"], "'fast' is not a size"),
        (&["/dev/no-such", "--until-hot"], "--first"),
        (
            &["/dev/no-such", "--check", "--only-used"],
            "cannot be used with",
        ),
        (&["--plan", "1GiB"], "--rate"),
        (&[], "DEVICE"),
    ] {
        place
            .run(&[&["warm"], arguments].concat())
            .refuses(&[words]);
    }
}

#[test]
fn how_long_it_takes_is_computed_without_a_device() {
    let place = Place::new();
    let plan = ["warm", "--plan", "200GiB", "--rate", "50MB/s"];
    let said = place.run(&plan).ends_with(0);
    assert_eq!(said.out, "To read 200 GiB at 50.0 MiB/s takes 68 min.\n");
    let by = ["--ready-by", "2100-01-01T18:00Z", "--json"];
    let document = place.run(&[&plan[..], &by].concat()).ends_with(0).json();
    assert_eq!(document["command"], "warm");
    assert_eq!(document["seconds"], 4096.0);
    assert_eq!(document["schedule"]["begin_at"], "2100-01-01T16:51:44Z");
    assert_eq!(document["schedule"]["late"], false);
}

#[test]
fn as_root_kills_lose_only_what_was_in_flight_and_the_totals_are_the_same() {
    let (place, Some(device)) = (Place::new(), Loop::new(96)) else {
        return;
    };
    let slow = ["warm", device.path(), "--limit", "24MiB/s", "--json"];
    let all = ["warm", device.path(), "--json"];
    let start = bytes_read(&device);
    let mut last = start;
    for wait_ms in [400, 900, 150] {
        let running = Running::start(&mut place.command(&slow));
        wait_for(&device, last + MIB);
        sleep(Duration::from_millis(wait_ms));
        running.signal(Signal::KILL);
        running.end();
        last = bytes_read(&device);
    }
    let said = place.run(&all).ends_with(0);
    let volume = &said.json()["volumes"][0];
    let (before, read) = (
        number(&volume["before_bytes"]),
        number(&volume["read_bytes"]),
    );
    assert_eq!(before + read, 96 * MIB, "{volume}");
    assert!(before > 0, "something was kept: {volume}");
    assert_eq!(volume["ended"], "done");
    assert_eq!(volume["findings"][0]["code"], "resumed");
    // Exactly the rest was read.
    let rest = bytes_read(&device) - last;
    assert!(rest.abs_diff(read) <= MIB, "{rest} {read}");
    // Of three kills, each costs what was read since the last commit: a fraction of a second as a
    // rule. The bound is wide for a host that is busy.
    let twice = (bytes_read(&device) - start).saturating_sub(96 * MIB);
    assert!(twice < 3 * 24 * MIB, "{twice} bytes were read twice");
}

#[test]
fn as_root_a_second_warming_of_the_same_device_says_so() {
    let (place, Some(device)) = (Place::new(), Loop::new(64)) else {
        return;
    };
    let first = ["warm", device.path(), "--limit", "8MiB/s"];
    let before = bytes_read(&device);
    let running = Running::start(&mut place.command(&first));
    wait_for(&device, before + MIB);
    place
        .run(&["warm", device.path()])
        .refuses(&["another disksmith is warming", device.path()]);
    // Ctrl-C ends it, and says how to go on.
    running.signal(Signal::INT);
    let said = running.end().ends_with(3);
    assert!(said.out.contains("interrupted"), "{said:#?}");
    assert!(said.err.contains("The same command goes on"), "{said:#?}");
    let on = place.run(&["warm", device.path()]).ends_with(0);
    assert!(on.prose().contains("were read before"), "{on:#?}");
    on.fits(100);
}

#[test]
fn as_root_places_that_cannot_be_read_are_listed_and_the_rest_is_read() {
    let place = Place::new();
    let path = place.path("disk.img");
    let file = File::create(&path).unwrap();
    file.set_len(32 * MIB).unwrap();
    let Ok(device) = Loop::on(&path).map_err(|why| skipped(&why)) else {
        return;
    };
    let good = 20 * MIB + 12288;
    file.set_len(good).unwrap();
    let said = place.run(&["warm", device.path(), "--json"]).ends_with(1);
    let volume = &said.json()["volumes"][0];
    let bad = &volume["unreadable"];
    assert_eq!(number(&bad[0]["offset_bytes"]), good, "{volume}");
    assert_eq!(number(&bad[0]["length_bytes"]), 32 * MIB - good);
    assert_eq!(number(&volume["read_bytes"]), good);
    let text = place.run(&["warm", device.path(), "--anew"]).ends_with(1);
    let extent = format!("{good}+{}", 32 * MIB - good);
    assert!(text.prose().contains(&extent), "{text:#?}");
}

#[test]
fn as_root_a_device_that_grows_is_read_to_its_old_end() {
    let place = Place::new();
    let path = place.path("disk.img");
    let file = File::create(&path).unwrap();
    file.set_len(32 * MIB).unwrap();
    let Ok(device) = Loop::on(&path).map_err(|why| skipped(&why)) else {
        return;
    };
    let arguments = ["warm", device.path(), "--limit", "16MiB/s", "--json"];
    let before = bytes_read(&device);
    let running = Running::start(&mut place.command(&arguments));
    wait_for(&device, before + MIB);
    file.set_len(48 * MIB).unwrap();
    run("losetup", &["--set-capacity", device.path()]);
    let said = running.end().ends_with(0);
    let volume = &said.json()["volumes"][0];
    assert_eq!(number(&volume["read_bytes"]), 32 * MIB);
    assert_eq!(volume["findings"][0]["code"], "resized", "{volume}");
}

#[test]
fn as_root_a_ledger_that_cannot_be_written_is_said_and_no_reason_to_stop() {
    let (place, Some(device)) = (Place::new(), Loop::new(8)) else {
        return;
    };
    let said = place
        .run(&["--ledger", "/proc/none/ledger.db", "warm", device.path()])
        .ends_with(0);
    assert!(said.out.contains("warning: not-kept"), "{said:#?}");
    assert!(said.prose().contains("begins from the start"), "{said:#?}");
    let said = place
        .run(&["warm", device.path(), "--no-ledger"])
        .ends_with(0);
    assert!(!said.out.contains("not-kept"), "{said:#?}");
    assert!(!place.ledger().exists());
}

/// A mounted file system with a file of 6 MiB in it.
fn mounted(kind: &str, mib: u64) -> Option<FileSystem> {
    let system = FileSystem::new(kind, mib)?;
    fs::create_dir(system.path().join("app")).unwrap();
    File::create(system.path().join("app/t1.ibd"))
        .and_then(|mut file| file.write_all(b"x"))
        .unwrap();
    fill(&system.join("app/t1.ibd"), 6);
    run("sync", &["-f", system.path().to_str().unwrap()]);
    Some(system)
}

fn set(volume: &Value, name: &str) -> u64 {
    let sets = volume["sets"].as_array().unwrap();
    let found = sets.iter().find(|set| set["set"] == name);
    found.map_or(0, |set| number(&set["bytes"]))
}

fn codes(volume: &Value) -> Vec<String> {
    let findings = volume["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn as_root_named_files_come_first_then_what_is_used_then_the_rest() {
    for (kind, mib) in [("ext4", 64), ("xfs", 320)] {
        let place = Place::new();
        let Some(system) = mounted(kind, mib) else {
            continue;
        };
        let device = &system.device;
        let first = ["--first", &system.join("app/*.ibd")];
        let warm = |more: &[&str]| -> Said {
            place.run(&[&["warm", device.path(), "--json"], &first[..], more].concat())
        };
        let hot = warm(&["--until-hot"]).ends_with(0).json();
        let volume = &hot["volumes"][0];
        let named = set(volume, "first");
        assert!((6 * MIB..9 * MIB).contains(&named), "{kind}: {volume}");
        assert_eq!(number(&volume["read_bytes"]), named);
        assert_eq!(codes(volume), ["left-cold"]);

        let used = warm(&["--only-used", "--no-ledger"]).ends_with(0).json();
        let volume = &used["volumes"][0];
        assert!(set(volume, "used") > 0, "{kind}: {volume}");
        assert!(
            number(&volume["left_out_bytes"]) > mib * MIB / 4,
            "{kind}: {volume}"
        );

        let all = warm(&["--no-ledger"]).ends_with(0).json();
        let volume = &all["volumes"][0];
        let sets = ["first", "used", "rest"].map(|name| set(volume, name));
        assert_eq!(sets[0], named);
        assert_eq!(sets.iter().sum::<u64>(), mib * MIB, "{kind}: {volume}");
        assert_eq!(number(&volume["read_bytes"]), mib * MIB);
    }
}

#[test]
fn as_root_a_named_file_that_is_not_there_is_refused_and_one_elsewhere_is_said() {
    let (place, Some(system)) = (Place::new(), mounted("ext4", 64)) else {
        return;
    };
    let device = &system.device;
    let missing = system.join("app/none.ibd");
    place
        .run(&["warm", device.path(), "--first", &missing])
        .refuses(&["there is no such file", &missing]);
    let Some(other) = mounted("ext4", 64) else {
        return;
    };
    let first = ["--first", &other.join("app/t1.ibd")];
    let said = place
        .run(&[&["warm", device.path()], &first[..]].concat())
        .ends_with(0);
    assert!(said.out.contains("warning: not-mapped"), "{said:#?}");
    assert!(said.prose().contains("is on other volumes"), "{said:#?}");
}

#[test]
fn as_root_only_the_blocks_of_the_snapshot_are_read() {
    let (place, Some(device)) = (Place::new(), Loop::new(16)) else {
        return;
    };
    let page = |blocks: &str| format!(r#"{{"Blocks":[{blocks}],"BlockSize":524288}}"#);
    let pages = [
        page(r#"{"BlockIndex":1,"BlockToken":"a"},{"BlockIndex":2}"#),
        page(r#"{"BlockIndex":31}"#),
    ];
    fs::write(place.path("blocks.json"), pages.concat()).unwrap();
    let arguments = ["warm", device.path(), "--blocks", "blocks.json", "--json"];
    let said = place.run(&arguments).ends_with(0).json();
    assert_eq!(number(&said["volumes"][0]["read_bytes"]), 3 << 19);
    let half = pages[0].replace("]", r#"],"NextToken":"more""#);
    fs::write(place.path("blocks.json"), half).unwrap();
    place.run(&arguments).refuses(&["NextToken"]);
    fs::write(place.path("blocks.json"), "{}").unwrap();
    place
        .run(&arguments)
        .refuses(&["cannot be used", "list-snapshot-blocks"]);
}

#[test]
fn as_root_several_devices_share_a_limit() {
    let (place, Some(a), Some(b)) = (Place::new(), Loop::new(16), Loop::new(16)) else {
        return;
    };
    let arguments = ["warm", a.path(), b.path(), "--limit", "16MiB/s", "--json"];
    let said = place.run(&arguments).ends_with(0).json();
    let volumes = said["volumes"].as_array().unwrap();
    assert_eq!(volumes.len(), 2);
    for volume in volumes {
        let seconds = volume["seconds"].as_f64().unwrap();
        assert!(seconds > 1.7, "both together at 16 MiB/s: {volume}");
    }
    place
        .run(&["warm", a.path(), a.path()])
        .refuses(&["are the same device"]);
}

/// Runs a script in a machine with these volumes; `None`, with a note, where there is no machine.
fn in_lab(place: &Place, volumes: &[&str], script: &str) -> Option<Said> {
    let command = ["--", "sh", "-c", script];
    let said = place.run(&[&["lab", "run"], volumes, &command].concat());
    let wanting = ["is not installed: apt-get install", "cannot be fetched"];
    if said.status == Some(2) && wanting.iter().any(|words| said.err.contains(words)) {
        skipped(&said.err);
        return None;
    }
    Some(said)
}

/// A file on an array of two volumes.
const ON_AN_ARRAY: &str = r#"
mdadm --create /dev/md0 --run --level 0 --chunk 256K --raid-devices 2 /dev/vda /dev/vdb >&2 || exit 9
mkfs.ext4 -q /dev/md0 && mkdir -p /srv/data && mount /dev/md0 /srv/data || exit 9
dd if=/dev/urandom of=/srv/data/file bs=1M count=6 2>/dev/null; sync
disksmith warm /dev/md0 >&2; [ $? = 2 ] || exit 9
disksmith warm /dev/vda /dev/vdb --first /srv/data/file --only-used --json
"#;

#[test]
fn with_qemu_a_file_on_an_array_comes_first_on_each_of_its_volumes() {
    let place = Place::new();
    let volumes = ["--volumes", "2xcold:200MiB"];
    let Some(said) = in_lab(&place, &volumes, ON_AN_ARRAY) else {
        return;
    };
    let said = said.ends_with(0);
    let named = "Name the volumes that it lies on: disksmith warm /dev/vda /dev/vdb";
    assert!(said.err.contains(named), "{said:#?}");
    let document = said.json();
    for volume in document["volumes"].as_array().unwrap() {
        // Half of the file each, in whole blocks.
        assert!(
            (3 * MIB..5 * MIB).contains(&set(volume, "first")),
            "{volume}"
        );
        assert!(number(&volume["left_out_bytes"]) > 100 * MIB, "{volume}");
        assert_eq!(codes(volume), ["left-cold"]);
    }
}

/// All that is tried in one machine. What is asked goes to stdout, the rest to stderr.
const SCRIPT: &str = r#"
is() { [ "$1" = "$2" ] || { echo "status $1 instead of $2: $3" >&2; exit 9; }; }
disksmith warm --check /dev/vda >&2; is $? 1 "a cold volume"
disksmith warm /dev/vda --json; is $? 0 warm
# One check in twenty may see a difference that is none, or more on a busy host.
disksmith warm --check /dev/vda >&2 || disksmith warm --check /dev/vda >&2; is $? 0 "a warm volume"
disksmith warm /dev/vda --json >/tmp/again; is $? 0 "once more"
grep -q '"before_bytes": 0' /tmp/again || exit 9
disksmith warm /dev/vdb >&2; is $? 1 "places that cannot be read"
"#;

#[test]
fn with_qemu_a_cold_volume_is_warm_after_it_and_a_check_says_what_is_true() {
    let place = Place::new();
    let truth = place.path("truth.json");
    let volumes = [
        "--volumes",
        "cold,throughput=60MiB:384MiB",
        "--volumes",
        "cold,error=1MiB+4KiB:32MiB",
        "--truth",
        truth.to_str().unwrap(),
    ];
    let Some(said) = in_lab(&place, &volumes, SCRIPT) else {
        return;
    };
    let said = said.ends_with(0);
    let volume = &said.json()["volumes"][0];
    assert_eq!(volume["ended"], "done");
    // The 384 places of the first check were warm already.
    assert_eq!(number(&volume["read_bytes"]), 384 * MIB);
    let prose = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        // How much exactly is the check's own test's: this host may be busy.
        "% is cold (95 %:",
        "nothing was seen to be cold",
        "4 KiB in 1 extents cannot be read. As byte offset and length: 1048576+4096.",
    ] {
        assert!(prose.contains(words), "no '{words}' in {}", said.err);
    }
    let truth: Value = serde_json::from_str(&fs::read_to_string(truth).unwrap()).unwrap();
    let left: Vec<&Value> = truth["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|volume| &volume["cold_blocks_left"])
        .collect();
    assert_eq!(left, [0, 0], "{truth}");
}
