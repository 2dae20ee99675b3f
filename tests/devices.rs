//! The verb `devices`, through the real program on the real host.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::os::unix::fs::MetadataExt as _;

use serde_json::Value;
use support::{Place, skipped};

/// A device of the document, and all that is stacked on it.
fn walk<'a>(device: &'a Value, seen: &mut Vec<&'a Value>) {
    seen.push(device);
    for above in device["above"].as_array().unwrap() {
        walk(above, seen);
    }
}

#[test]
fn the_document_has_these_keys_of_these_types() {
    let said = Place::new().run("devices --json").ends_with(0);
    assert_eq!(said.err, "");
    let document = said.json();
    assert_eq!(document["schema"], 1);
    assert_eq!(document["command"], "devices");
    let mut seen = Vec::new();
    for disk in document["devices"].as_array().unwrap() {
        walk(disk, &mut seen);
    }
    for device in seen {
        let text_or_null = |key: &str| device[key].is_string() || device[key].is_null();
        assert!(device["name"].is_string(), "{device}");
        assert!(device["kind"].is_string(), "{device}");
        assert!(device["size_bytes"].is_u64(), "{device}");
        assert!(device["used_as"].is_array(), "{device}");
        assert!(text_or_null("model") && text_or_null("serial"), "{device}");
        let signatures = &device["signatures"];
        assert!(signatures.is_array() || signatures.is_null(), "{device}");
        let number = device["number"].as_str().unwrap();
        assert!(number.contains(':'), "{device}");
        // Either it may be written, or the reasons say why not.
        let reasons = device["reasons"].as_array().unwrap();
        assert_eq!(device["may_be_written"], reasons.is_empty(), "{device}");
    }
}

#[test]
fn the_disk_below_the_root_may_never_be_written() {
    let number = std::fs::metadata("/").unwrap().dev();
    let number = format!("{}:{}", libc::major(number), libc::minor(number));
    let document = Place::new().run("devices --json").ends_with(0).json();
    let disks = document["devices"].as_array().unwrap();
    let mut found = false;
    for disk in disks {
        let mut branch = Vec::new();
        walk(disk, &mut branch);
        if branch.iter().all(|device| device["number"] != number) {
            continue;
        }
        found = true;
        // The disk itself, and the device on it that holds the root.
        for device in [disk, branch.iter().find(|d| d["number"] == number).unwrap()] {
            assert_eq!(device["may_be_written"], false, "{device}");
            let reason = device["reasons"][0].as_str().unwrap();
            assert!(reason.contains("never overwritten"), "{reason}");
        }
    }
    if !found {
        skipped("/ lies on no block device here");
    }
}

#[test]
fn the_text_fits_100_columns_and_names_every_disk_and_every_reason() {
    let place = Place::new();
    let said = place.run("devices").ends_with(0);
    assert_eq!(said.err, "");
    said.fits(100);
    let document = place.run("devices --json").ends_with(0).json();
    for disk in document["devices"].as_array().unwrap() {
        let name = disk["name"].as_str().unwrap();
        // Other tests on this host attach and detach loop devices between the two looks.
        if name.starts_with("loop") {
            continue;
        }
        assert!(said.out.contains(name), "{name} is missing in {said:#?}");
        if disk["may_be_written"] == false {
            let title = format!("{name} may not be written:");
            assert!(said.out.contains(&title), "no '{title}' in {said:#?}");
        }
    }
}

#[test]
fn looking_at_the_devices_touches_no_ledger() {
    let place = Place::new();
    place.run("devices").ends_with(0);
    assert!(!place.ledger().exists());
}
