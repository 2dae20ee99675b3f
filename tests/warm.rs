//! `disksmith warm` on loop devices and mounted file systems, through the real program, and on cold
//! volumes in the lab's machine. The first need root, the second QEMU; where these are missing, the
//! tests say so and pass.
//!
//! Several disks of a host with the same serial number are tested beside the code that tells
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
use support::moto::Moto;
use support::{Place, number, output_of};

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
fn as_root_a_snapshot_of_which_aws_says_nothing_is_refused_with_what_to_do() {
    let (place, Some(device)) = (Place::new(), Loop::new(16)) else {
        return;
    };
    let programs = place.path("programs");
    fs::create_dir(&programs).unwrap();
    let run = |script: &str, words: &[&str]| {
        support::write_script(&programs.join("aws"), script);
        let arguments = [&["warm", device.path(), "--json"], words].concat();
        let mut command = place.command(&arguments);
        let path = std::env::var("PATH").unwrap_or_default();
        output_of(command.env("PATH", format!("{}:{path}", programs.display())))
    };
    let fails = |text: &str| format!("#!/bin/sh\necho '{text}' >&2; exit 254\n");
    let id = ["--snapshot", "snap-0123456789abcdef0"];
    for (text, advice) in [
        (
            "An error occurred (ExpiredTokenException) when calling the operation: expired",
            "aws sso login",
        ),
        (
            "Unable to locate credentials. You can configure credentials by running aws configure.",
            "give this host a role",
        ),
        (
            "An error occurred (AccessDeniedException) when calling the operation: None",
            "the permission ebs:ListSnapshotBlocks",
        ),
        (
            "An error occurred (ResourceNotFoundException) when calling the operation: None",
            "the right region",
        ),
    ] {
        run(&fails(text), &id).refuses(&["snap-0123456789abcdef0", advice]);
    }
    run("#!/bin/sh\necho nothing\n", &id).refuses(&["not the JSON"]);
    for wrong in ["vol-0123456789abcdef0", "--x", "blocks.json"] {
        let said = run("#!/bin/sh\ntouch asked\n", &["--snapshot", wrong]);
        assert_eq!(said.status, Some(2), "{said:#?}");
    }
    assert!(!place.path("asked").exists());
    // The second page is throttled once.
    let pages = r#"#!/bin/sh
case "$*" in
*--next-token*)
    if [ ! -e throttled ]; then
        touch throttled
        echo 'An error occurred (ThrottlingException) when calling the operation: slow down' >&2
        exit 254
    fi
    echo '{"Blocks":[{"BlockIndex":31}],"BlockSize":524288}';;
*) echo '{"Blocks":[{"BlockIndex":1}],"BlockSize":524288,"NextToken":"more"}';;
esac
"#;
    let said = run(pages, &id).ends_with(0).json();
    assert_eq!(number(&said["volumes"][0]["read_bytes"]), 2 << 19);
}

#[test]
#[ignore = "long proof: make prove"]
fn as_root_the_blocks_of_a_snapshot_are_those_that_the_real_aws_lists() {
    let (place, Some(device), Some(moto)) = (Place::new(), Loop::new(1024), Moto::start()) else {
        return;
    };
    let begun = ["ebs", "start-snapshot", "--volume-size", "1"];
    let begun = moto.aws(&begun).unwrap();
    let id = begun["SnapshotId"].as_str().unwrap();
    fs::write(place.path("block"), [7; 512]).unwrap();
    let block = place.path("block").display().to_string();
    // moto has blocks of 512 bytes.
    for index in ["0", "1", "1000000"] {
        let put = [
            &["ebs", "put-snapshot-block", "--snapshot-id", id][..],
            &["--block-index", index, "--block-data", &block],
            &["--data-length", "512", "--checksum-algorithm", "SHA256"],
            &["--checksum", "RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o="],
        ];
        moto.aws(&put.concat()).unwrap();
    }
    let arguments = ["warm", device.path(), "--snapshot", id, "--json"];
    let said = output_of(moto.ask(&mut place.command(&arguments)))
        .ends_with(0)
        .json();
    // Two of three blocks lie in one piece of 512 KiB.
    assert_eq!(number(&said["volumes"][0]["read_bytes"]), 2 << 19);
    let unknown = ["warm", device.path(), "--snapshot", "snap-00000000"];
    let unknown = support::output_of(moto.ask(&mut place.command(&unknown)));
    unknown.refuses(&["the blocks of snap-00000000 are not known"]);
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
