//! Logs that the real vmstat writes of this host.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::support::{Place, documents, has_program, skipped};

/// Rounds that vmstat prints, a second apart.
const ROUNDS: usize = 4;

/// Reads and writes of each disk between the first and the last round, by vmstat's own totals.
fn counted(log: &str) -> BTreeMap<String, [f64; 2]> {
    let mut totals: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
    for line in log.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<f64>().ok();
        // Headers have words in their place.
        if let (Some(reads), Some(writes), true) = (number(1), number(5), words.len() > 10) {
            totals.entry(words[0]).or_default().push([reads, writes]);
        }
    }
    let of_all = totals
        .into_iter()
        .filter(|(_, rounds)| rounds.len() == ROUNDS);
    let between = |rounds: Vec<[f64; 2]>| {
        let (first, last) = (rounds[0], rounds[ROUNDS - 1]);
        [last[0] - first[0], last[1] - first[1]]
    };
    of_all
        .map(|(name, rounds)| (name.to_owned(), between(rounds)))
        .collect()
}

/// The same by the rates that are shown of the log.
fn shown(samples: &[Value], name: &str) -> [f64; 2] {
    let requests = |sample: &Value, way: &str| {
        let devices = sample["devices"].as_array().unwrap();
        let device = devices.iter().find(|device| device["name"] == name);
        let rate = device.and_then(|device| device[way]["iops"].as_f64());
        rate.unwrap_or(0.0) * sample["length_ns"].as_f64().unwrap() / 1e9
    };
    ["read", "write"].map(|way| samples.iter().map(|sample| requests(sample, way)).sum())
}

#[test]
fn what_vmstat_prints_of_this_host_is_shown_with_as_many_requests() {
    if !has_program("vmstat") {
        return skipped("vmstat is not installed");
    }
    let place = Place::new();
    let options = ["-d", "-dt", "-dw"];
    let start = |option: &&str| -> Child {
        let mut vmstat = Command::new("vmstat");
        vmstat.args([*option, "1", &ROUNDS.to_string()]);
        vmstat.env("TZ", "UTC").env("LC_ALL", "C");
        vmstat.stdout(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<Child> = options.iter().map(start).collect();
    // Something to count, where the disk of this place is one that the kernel counts.
    let mut file = File::create(place.path("data/written")).unwrap();
    for _ in 0..20 {
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
    }
    for (option, vmstat) in options.iter().zip(running) {
        let output = vmstat.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let log = String::from_utf8(output.stdout).unwrap();
        let path = place.path("vmstat.log");
        fs::write(&path, &log).unwrap();
        let said = place.run(&[
            "watch",
            "--json",
            "--zone",
            "UTC",
            "--parse",
            path.to_str().unwrap(),
        ]);
        let lines = documents::all(&said.ends_with(0).out);
        let samples: Vec<Value> = lines
            .into_iter()
            .filter(|line| line["kind"] == "sample")
            .collect();
        assert_eq!(samples.len(), ROUNDS - 1, "{option}: {log}");
        let counted = counted(&log);
        assert!(!counted.is_empty(), "{log}");
        for (name, requests) in counted {
            let shown = shown(&samples, &name);
            for (shown, counted) in shown.into_iter().zip(requests) {
                assert!(
                    (shown - counted).abs() < 0.5,
                    "{option}: {name} has {counted}, and {shown} are shown: {log}"
                );
            }
        }
    }
}
