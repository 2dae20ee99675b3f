//! The suites over a scripted engine with known results.

use std::path::Path;

use engine::scripted::ScriptedEngine;
use engine::{Engine, Job};
use record::Slice;
use serde_json::Value;

use crate::tests::{run, windows};
use ui::exit::CommandEnd;

/// Runs a suite in a folder of its own, and returns its document.
fn document(arguments: &str, engine: &dyn Engine) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, text) = run(
        folder.path(),
        &format!("--json --size 1G {arguments}"),
        engine,
    );
    assert_eq!(outcome.unwrap(), CommandEnd::Done);
    serde_json::from_str(&text).unwrap()
}

/// Zone of a job; `None` for the job that lays out the file.
fn zone(job: &Job<'_>) -> Option<u64> {
    job.name.strip_prefix("zone-")?.get(..2)?.parse().ok()
}

/// A disk whose requests a window are `rate` of the zone and of whether it is read again.
fn zoned(rate: impl Fn(u64, bool) -> u64 + Sync) -> impl Engine {
    ScriptedEngine::new(move |job| {
        let ops = zone(job).map_or(1000, |zone| rate(zone, job.name.ends_with("-again")));
        let count = if zone(job).is_some() { 10 } else { 1 };
        Ok(windows(job, count, ops, 1_000_000))
    })
}

/// The texts of the findings of a kind.
fn findings<'a>(document: &'a Value, code: &str) -> Vec<&'a str> {
    let all = document["findings"].as_array().unwrap().iter();
    all.filter(|finding| finding["code"] == code)
        .map(|finding| finding["text"].as_str().unwrap())
        .collect()
}

#[test]
fn zones_that_are_alike_have_no_finding() {
    // Neighbouring zones differ by a few percent, as on real disks.
    let document = document("--suite zones", &zoned(|zone, _| 1000 + zone * 37 % 50));
    let zones = document["answer"]["zones"].as_array().unwrap();
    assert_eq!(zones.len(), 64);
    let size = document["target"]["size_bytes"].as_u64().unwrap();
    let last = zones[63]["position_bytes"].as_u64().unwrap();
    // Zones begin at a whole request of 1 MiB.
    assert!(size - last < size / 64 + (1 << 20), "{last} of {size}");
    assert_eq!(document["phases"].as_array().unwrap().len(), 128);
    assert_eq!(document["answer"]["ends"]["differ"], false);
    assert!(findings(&document, "zones").is_empty());
}

#[test]
fn a_zone_counts_what_came_back_last() {
    // A disk that gives 8 requests every tenth of a second, and ends with the fifth 8 of them.
    let engine = ScriptedEngine::new(|job: &Job<'_>| {
        let mut windows = windows(job, 3, 1000, 1_000_000);
        if zone(job).is_some() {
            for (at, window) in windows.iter_mut().enumerate() {
                let flow = window.read.as_mut().unwrap();
                for (slice, done) in flow.slices.iter_mut().enumerate() {
                    let ops = if (10 * at + slice) % 5 == 0 { 8 } else { 0 };
                    *done = Slice {
                        ops,
                        bytes: ops * job.workload.block.0,
                    };
                }
            }
            // The end is 5 ms into a slice of 20 ms.
            windows[2].seconds = 0.005;
            windows[2].read.as_mut().unwrap().slices.truncate(1);
        }
        Ok(windows)
    });
    let document = document("--suite zones", &engine);
    for (zone, phase) in document["answer"]["zones"]
        .as_array()
        .unwrap()
        .iter()
        .zip(document["phases"].as_array().unwrap())
    {
        let rate = 40.0 * phase["workload"]["block_bytes"].as_f64().unwrap() / 0.405;
        let said = zone["first"]["mean"].as_f64().unwrap();
        assert!((said / rate - 1.0).abs() < 0.001, "{said} for {rate}");
    }
}

#[test]
fn an_end_that_is_slower_is_a_finding() {
    let document = document("--suite zones", &zoned(|zone, _| 2000 - 15 * zone));
    let ratio = document["answer"]["ends"]["ratio"].as_f64().unwrap();
    assert!((ratio - 1110.0 / 1950.0).abs() < 0.02, "{ratio}");
    let [text] = findings(&document, "zones")[..] else {
        panic!("{document:#}")
    };
    assert!(
        text.contains("depends on the position of the data"),
        "{text}"
    );
}

#[test]
fn cold_zones_are_distinguished_from_slow_ones() {
    // The last quarter is cold, and as fast as the rest in its second read; zone 5 is slow.
    let engine = zoned(|zone, again| match zone {
        48.. if !again => 100,
        5 => 500,
        _ => 1000 + zone * 37 % 50,
    });
    let document = document("--suite zones", &engine);
    let zones = document["answer"]["zones"].as_array().unwrap();
    let cold: Vec<bool> = zones.iter().map(|z| z["cold"].as_bool().unwrap()).collect();
    assert!((0..64).all(|zone| cold[zone] == (zone >= 48)), "{cold:?}");
    assert_eq!(document["answer"]["ends"]["differ"], false);
    let [text] = findings(&document, "zones")[..] else {
        panic!("{document:#}")
    };
    assert!(text.starts_with("16 of 64 zones were cold"), "{text}");
}

/// A disk whose requests take 1 ms up to a rate, and 50 ms above it.
fn limited(at: f64) -> impl Engine {
    ScriptedEngine::new(move |job| {
        let rate = job.workload.rate_per_s.unwrap_or(1000.0);
        let latency = if rate <= at { 1_000_000 } else { 50_000_000 };
        let count = match job.workload.rate_per_s {
            Some(_) => (job.workload.longest.0 / job.window.0) as usize,
            None => 1,
        };
        // Whole tens in a window, and never fewer than are due.
        let ops = (rate * job.window.as_secs_f64() / 10.0).ceil() as u64 * 10;
        Ok(windows(job, count, ops, latency))
    })
}

#[test]
fn the_curve_closes_in_on_the_rate_that_keeps_the_target() {
    let document = document("--suite curve --p99 10ms", &limited(3000.0));
    let answer = &document["answer"];
    let number = |key: &str| answer[key].as_f64().unwrap();
    assert!(
        number("low") <= 3000.0 && 3000.0 < number("high"),
        "{answer:#}"
    );
    assert!(number("high") / number("low") < 1.031, "{answer:#}");
    assert_eq!(number("p99_target_ns"), 10e6);
    assert!(findings(&document, "unsteady").is_empty());
    assert!(
        findings(&document, "short").is_empty(),
        "{:#}",
        document["findings"]
    );
}

#[test]
fn a_target_that_no_rate_keeps_is_reported() {
    let document = document("--suite curve --p99 100us", &limited(3000.0));
    assert!(document["answer"]["low"].is_null());
    assert!(findings(&document, "short")[0].contains("give a higher --p99"));
}

#[test]
fn seeks_are_a_curve_and_the_first_lasts_as_long_as_seeker() {
    let engine = ScriptedEngine::new(|job: &Job<'_>| {
        let count = if job.name == "lay out" { 1 } else { 30 };
        Ok(windows(job, count, 1000, 1_000_000))
    });
    let slow = document("--suite seek", &engine);
    let points = slow["answer"]["points"].as_array().unwrap();
    assert_eq!(points.len(), 7);
    assert_eq!(points[6]["in_flight"], 64);
    assert_eq!(points[0]["access_ns"], 1e6);
    assert_eq!(slow["phases"][0]["seconds"], 30.0);
    let quick = document("--suite seek --quick", &engine);
    assert!(quick["phases"][0]["seconds"].as_f64().unwrap() < 8.0);
}

#[test]
fn what_makes_no_sense_for_a_suite_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (
            "--suite zones --phase zone-00",
            "--phase does not go with --suite zones",
        ),
        (
            "--suite seek --depth 4",
            "--depth or --threads does not go with --suite seek",
        ),
        (
            "--suite curve --rate 5",
            "--rate does not go with --suite curve",
        ),
        (
            "--suite seek --p99 5ms",
            "--p99 does not go with --suite seek",
        ),
        ("--suite zones --size 1M", "too small for 64 zones"),
    ] {
        let (outcome, _) = run(Path::new(folder.path()), arguments, &limited(1.0));
        let said = format!("{outcome:?}");
        assert!(said.contains(expected), "{arguments}: {said}");
    }
}
