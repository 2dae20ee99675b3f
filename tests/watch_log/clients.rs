//! Logs that the real vmstat, iostat and sar write of this host, and logs of several hosts that the real clush gathers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::support::{Place, documents, has_program, is_root, output_of, skipped};

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

/// Its headings fold the hosts that answer the same: `db[2-3] (2)`.
#[test]
fn what_clush_gathers_of_several_hosts_is_refused_and_of_one_is_read() {
    if !has_program("clush") {
        return skipped("clush is not installed (clustershell)");
    }
    let place = Place::new();
    for (host, reads) in [("db1", 1), ("db2", 2), ("db3", 2)] {
        let log = format!(
            "Device r/s w/s rkB/s wkB/s await %util\nsda {reads}.00 2.00 3.00 4.00 5.00 6.00\n\n"
        );
        fs::write(place.path(host), log.repeat(2)).unwrap();
    }
    for (hosts, other) in [("db[1-3]", "db[2-3]"), ("db[1-2]", "db2"), ("db[2-3]", "")] {
        let mut clush = Command::new("clush");
        clush.args(["-b", "-w", hosts, "-R", "exec", "cat %h"]);
        let log = output_of(clush.current_dir(place.path("")))
            .ends_with(0)
            .out;
        fs::write(place.path("clush.log"), &log).unwrap();
        let parsed = place.run(&["watch", "--parse", "./clush.log"]);
        if other.is_empty() {
            parsed.ends_with(0);
            continue;
        }
        let why = parsed.ends_with(2).err;
        let is_reported = |first, then| {
            why.contains(&format!(
                "of the host {then}, and those before it of {first}"
            ))
        };
        // clush begins with either.
        assert!(
            is_reported("db1", other) || is_reported(other, "db1"),
            "{why}: {log}"
        );
    }
}

/// Runs a program where /dev has the name of a disk by an id, and little else: NAME MAJOR MINOR ID PROGRAM….
const BY_ID: &str = r#"mount --make-rprivate / && mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 &&
    mknod "/dev/$1" b "$2" "$3" && mkdir -p /dev/disk/by-id && ln -s "../../$1" "/dev/disk/by-id/$4" &&
    shift 4 && exec "$@""#;

/// Number, name and count of reads of a disk of this host that was read from.
fn disk() -> Option<Vec<String>> {
    let made = ["loop", "dm-", "md", "nbd", "zram", "ram"];
    let stats = fs::read_to_string("/proc/diskstats").ok()?;
    let lines = stats
        .lines()
        .map(|line| line.split_whitespace().take(4).map(str::to_owned));
    let mut disks = lines.map(Iterator::collect::<Vec<String>>);
    disks.find(|words| {
        let sysfs = Path::new("/sys/class/block").join(&words[2]);
        let is_made = made.iter().any(|begin| words[2].starts_with(begin));
        words[3] != "0" && !is_made && sysfs.exists() && !sysfs.join("partition").exists()
    })
}

#[test]
fn with_root_logs_in_which_iostat_and_sar_name_disks_by_ids_are_read_by_these() {
    if !is_root() || !has_program("iostat") || !has_program("sar") {
        return;
    }
    let Some(disk) = disk() else {
        return skipped("no disk of this host was read from");
    };
    let place = Place::new();
    let id = "nvme-Amazon_Elastic_Block_Store_vol0123456789abcdef0";
    for program in [
        "iostat -d -x -j ID 1 3",
        "iostat -d -o JSON -j ID 1 3",
        "sar -d -j ID 1 2",
    ] {
        let mut logged = Command::new("unshare");
        logged.args(["--mount", "--", "sh", "-c", BY_ID, "sh"]);
        logged
            .args([disk[2].as_str(), &disk[0], &disk[1], id])
            .args(program.split(' '));
        let log = output_of(logged.env("LC_ALL", "C").env("TZ", "UTC"))
            .ends_with(0)
            .out;
        fs::write(place.path("disks.log"), &log).unwrap();
        for word in [id.to_owned(), format!("/dev/disk/by-id/{id}")] {
            let words = ["watch", "--json", "--parse", "./disks.log", &word];
            let lines = documents::all(&place.run(&words).ends_with(0).out);
            let samples = lines.iter().filter(|line| line["kind"] == "sample");
            let names = samples.flat_map(|sample| sample["devices"].as_array().unwrap());
            let names: Vec<&Value> = names.map(|device| &device["name"]).collect();
            assert_eq!(names, [id, id], "{program}: {log}");
        }
    }
}
