//! Data that compresses, on a disk that compresses (zram) and on one that does not.

use std::fs;

use serde_json::Value;

use crate::loops::{Loop, Throttle, skipped};
use crate::support::{Place, output_of};

/// A disk of compressed memory.
struct Zram {
    number: u32,
}

impl Zram {
    fn new(size: &str) -> Option<Zram> {
        // Reading it adds one (Documentation/admin-guide/blockdev/zram.rst).
        let Ok(text) = fs::read_to_string("/sys/class/zram-control/hot_add") else {
            skipped("the kernel has no zram, or this is not root");
            return None;
        };
        let number = text.trim().parse().unwrap();
        let zram = Zram { number };
        fs::write(format!("/sys/block/zram{number}/disksize"), size).unwrap();
        Some(zram)
    }

    fn path(&self) -> String {
        format!("/dev/zram{}", self.number)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let number = self.number;
        let _ = fs::write(format!("/sys/block/zram{number}/reset"), "1");
        let _ = fs::write("/sys/class/zram-control/hot_remove", number.to_string());
    }
}

fn words<'a>(path: &'a str, share: &'a str) -> Vec<&'a str> {
    let target = [
        "bench",
        path,
        "--destroy",
        path,
        "--phase",
        "page-write",
        "--seconds",
        "1s",
    ];
    let rest = ["--span", "64MiB", "--compressible", share, "--json"];
    [&target[..], &rest].concat()
}

fn compressed(document: &Value) -> Option<String> {
    let findings = document["findings"].as_array().unwrap();
    let found = findings
        .iter()
        .find(|finding| finding["code"] == "compressed")?;
    Some(found["text"].as_str().unwrap().to_owned())
}

/// zram is as fast as the processors are: where others have them too, nothing is found.
#[test]
#[ignore = "long proof: make prove"]
fn with_root_a_disk_that_compresses_is_found() {
    // Pages of one value are not even stored.
    let Some(zram) = Zram::new("256M") else {
        return;
    };
    let path = zram.path();
    let document = Place::new().run(&words(&path, "1")).ends_with(0).json();
    let text = compressed(&document).unwrap_or_else(|| panic!("{document:#}"));
    assert!(text.contains("100 % compresses away"), "{text}");
}

#[test]
fn with_root_a_disk_that_does_not_is_as_fast_for_all_data() {
    let Some(device) = Loop::direct(128) else {
        return;
    };
    let Some(throttle) = Throttle::on(&device) else {
        return;
    };
    // The kernel's limit makes both rates.
    throttle.limit_bytes(16 << 20);
    let place = Place::new();
    let command = place.command(&words(device.path(), "1"));
    let document = output_of(&mut throttle.hold(&command)).ends_with(0).json();
    assert_eq!(compressed(&document), None);
}
