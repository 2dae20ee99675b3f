//! `disksmith warm` on loop devices and mounted file systems, through the real program, and on cold
//! volumes in the lab's machine. The first need root, the second QEMU; where these are missing, the
//! tests say so and pass.
//!
//! That several disks of a host may have the same serial number is tested beside the code that tells
//! them apart, since no loop device and no disk of the lab is NVMe.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it saw"
)]

#[path = "support/loops.rs"]
mod loops;
mod support;

#[path = "warm/files.rs"]
mod files;
#[path = "warm/lab.rs"]
mod lab;
#[path = "warm/others.rs"]
mod others;
#[path = "warm/troubles.rs"]
mod troubles;

use std::fs;
use std::time::Instant;

use loops::Loop;
use serde_json::Value;
use support::{Place, number};

const MIB: u64 = 1 << 20;

fn set(volume: &Value, name: &str) -> u64 {
    let sets = volume["sets"].as_array().unwrap();
    let found = sets.iter().find(|set| set["set"] == name);
    found.map_or(0, |set| number(&set["bytes"]))
}

/// Findings but `yielded`, which anyone may cause: a file system writes when it likes, another test may look at all disks
/// of the host, and where a machine is halted between the kernel's count of a completion and the program's, own I/O
/// looks like the foreground's for a moment.
fn codes(volume: &Value) -> Vec<String> {
    let findings = volume["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap().to_owned())
        .filter(|code| code != "yielded")
        .collect()
}

fn has_yielded(volume: &Value) -> bool {
    let findings = volume["findings"].as_array().unwrap();
    findings.iter().any(|finding| finding["code"] == "yielded")
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
        (&["/dev/no-such", "--ready-by", "soon"], "is not a time"),
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
    let volume = &said["volumes"][0];
    assert_eq!(number(&volume["read_bytes"]), 3 << 19);
    assert_eq!(codes(volume), ["left-cold"]);
    assert_eq!(volume["findings"][0]["severity"], "warn", "{volume}");
    if let Some(other) = Loop::new(16) {
        let both = [&arguments[..], &[other.path()]].concat();
        place.run(&both).refuses(&["is the list of one snapshot"]);
    }
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
    let began = Instant::now();
    let said = place.run(&arguments).ends_with(0).json();
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(said["volumes"].as_array().unwrap().len(), 2);
    // On a busy host one may have begun later than the other, and so been alone for a while.
    assert!(
        seconds > 1.7,
        "{seconds}: both together at 16 MiB/s: {said}"
    );
    place
        .run(&["warm", a.path(), a.path()])
        .refuses(&["are the same device"]);
}
