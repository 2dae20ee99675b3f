//! Sweeps that replay a trace in place of a suite.

use std::fs;

use serde_json::Value;

use super::support::documents;
use super::support::lab::in_lab;
use super::support::requests::database_trace;
use super::support::{Place, number};
use super::{Disk, assert_each_once, cells};

const COMMITS: &str = "replay.commit.p99";

fn figure(figures: &Value, name: &str) -> f64 {
    let mean = figures[name]["mean"].as_f64();
    mean.unwrap_or_else(|| panic!("no {name} in {figures:#}"))
}

/// Panics unless each layout was judged by the replay's 99th percentile over its cells.
fn assert_by_replays(document: &Value) {
    let settings = &document["settings"];
    assert_eq!(settings["objective"], "replay.p99", "{settings:#}");
    assert_eq!(settings["requires"][0]["figure"], COMMITS, "{settings:#}");
    for layout in document["layouts"].as_array().unwrap() {
        let cells = document["cells"].as_array().unwrap().iter();
        let cells = cells.filter(|cell| cell["layout"] == layout["index"]);
        let values: Vec<f64> = cells
            .map(|cell| figure(&cell["figures"], "replay.p99"))
            .collect();
        let judged = layout["objective"]["mean"].as_f64().unwrap();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        // A mean of logarithms ends on a bound but for the last digit, where there is one value.
        let bounds = least * 0.999..=most * 1.001;
        assert!(bounds.contains(&judged), "{layout:#}: {values:?}");
    }
}

#[test]
fn with_root_a_sweep_replays_a_trace_on_each_layout_and_judges_by_its_figures() {
    let Some(disk) = Disk::new() else { return };
    let place = Place::new();
    let trace = place.path("database.txt");
    fs::write(&trace, database_trace(80, 200)).unwrap();
    let device = disk.0.path();
    let sweep = |consent: &str, floor: &str, fs: &str| {
        let mut words = vec!["sweep", "--devices", device, "--destroy", consent];
        words.extend([
            "--members",
            "1",
            "--fs",
            fs,
            "--blocks",
            "2",
            "--size",
            "8M",
        ]);
        words.extend(["--full", "--replay", trace.to_str().unwrap()]);
        let require = format!("{COMMITS}<{floor}");
        words.extend(["--require", &require, "--json"]);
        place.run(&words)
    };
    // No host is so busy.
    let said = sweep(device, "1000s", "xfs,ext4").ends_with(0);
    let document = said.json();
    assert_eq!(document["over"], true);
    assert_each_once(&document);
    assert_by_replays(&document);
    let path = document["settings"]["replay"].as_str();
    assert_eq!(path, trace.to_str(), "{document:#}");
    assert!(document["winner"].is_number(), "{document:#}");
    // Two layouts in two blocks, and the baseline once more: each is a run with the replay's answer.
    assert_eq!(cells(&document).len(), 5);
    for cell in document["cells"].as_array().unwrap() {
        let run = cell["run"].as_str().unwrap();
        let shown = place.run(&["show", run, "--json"]).ends_with(0).json();
        assert_eq!(number(&shown["answer"]["trace_ios"]), 80, "{shown:#}");
        assert_eq!(
            number(&shown["answer"]["counts"]["issued"]),
            80,
            "{shown:#}"
        );
        let commits = shown["phases"][0]["commit"]["latency_ns"]["p99"].as_f64();
        assert_eq!(commits, Some(figure(&cell["figures"], COMMITS)), "{run}");
    }
    // No disk answers so fast.
    let unknown = format!("{device}=unknown");
    let document = sweep(&unknown, "1us", "ext4").ends_with(1).json();
    assert!(document["winner"].is_null(), "{document:#}");
    disk.assert_nothing_left(&place);
}

/// One volume falls behind a trace of 300 requests a second, by 8 s at the end, and four together do not.
#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_sweep_by_a_trace_chooses_the_layout_that_follows_it() {
    let place = Place::new();
    fs::write(place.path("database.txt"), database_trace(1200, 300)).unwrap();
    let script = format!(
        "disksmith sweep --devices /dev/vda,/dev/vdb,/dev/vdc,/dev/vdd $(for x in a b c d; do echo --destroy /dev/vd$x; done) \
         --members 1,4 --level 0 --chunk 64k --fs ext4 --size 16M --blocks 2 --full --replay database.txt --by replay.p99 \
         --require '{COMMITS}<4s' --json"
    );
    let options = ["--volumes", "4xiops=100:512MiB", "--copy", "database.txt"];
    let Some(said) = in_lab(&place, &options, &script) else {
        return;
    };
    let said = said.ends_with(0);
    let [document] = &documents::all(&said.out)[..] else {
        panic!("{said:#?}");
    };
    assert_by_replays(document);
    let layouts = document["layouts"].as_array().unwrap();
    let of = |members: u64| {
        let layout = layouts.iter().find(|layout| layout["members"] == members);
        layout.unwrap_or_else(|| panic!("{document:#}"))
    };
    let (one, four) = (of(1), of(4));
    assert_eq!(document["winner"], four["index"], "{document:#}");
    let [behind, follows] = [one, four].map(|layout| figure(&layout["figures"], COMMITS));
    assert!(follows < 4e9 && 4e9 < behind, "{document:#}");
    let [behind, follows] = [one, four].map(|layout| layout["objective"]["mean"].as_f64());
    let (behind, follows) = behind.zip(follows).unwrap();
    assert!(follows * 3.0 < behind, "{document:#}");
    let why = one["why"].as_str().unwrap_or_default();
    assert!(why.contains(COMMITS), "{one:#}");
}
