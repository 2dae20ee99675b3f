//! Tests of the formats of sysstat 12.6: units, names at the end, JSON, groups, colours.

use formats::disk_log::{LogReport, Options, Reader};
use record::sample::SourceKind;

use super::common::{by_name, device, fixture, intervals, read};

/// Every log of sysstat 12.6 in which a line has one device and all of its figures, compared with
/// the figures that stand under each name, taken apart here by position only.
#[test]
fn every_figure_of_sysstat_12_6_is_found_under_its_name() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/iostat");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_plain = name.starts_with("12.6-x") && name.ends_with(".txt");
        if !is_plain || name.contains("-h") || name.contains("xh") || name.contains("pretty") {
            continue;
        }
        let (readings, notes) = read(&name);
        assert_eq!(
            notes.garbage.count + notes.cut.count,
            0,
            "{name}: {notes:?}"
        );
        assert_eq!(compared(&name, &fixture(&name), &readings), 6, "{name}");
        files += 1;
    }
    assert_eq!(files, 20);
}

/// Compares the figures, and returns the number of device lines.
fn compared(file: &str, text: &str, readings: &[LogReport]) -> usize {
    let mut header: Vec<String> = Vec::new();
    let (mut report, mut lines) = (0, 0);
    for line in text.lines() {
        let coloured = line.split('\u{1b}').map(|part| match part.split_once('m') {
            Some((code, rest)) if code.starts_with('[') => rest,
            _ => part,
        });
        let line: String = coloured.collect();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if words.first().is_some_and(|word| word == "Device") {
            header = words;
            report += 1;
        } else if words
            .first()
            .is_some_and(|word| ["vda", "loop0"].contains(&word.as_str()))
        {
            lines += 1;
            let sample = device(&readings[report - 1].sample, &words[0]);
            for (name, word) in header.iter().zip(&words).skip(1) {
                let printed: f64 = match word.trim_end_matches('%').replace(',', ".") {
                    word if word.ends_with('k') => word.trim_end_matches('k').parse().unwrap(),
                    word if word.ends_with('M') => {
                        1024.0 * word.trim_end_matches('M').parse::<f64>().unwrap()
                    }
                    word => word.parse().unwrap(),
                };
                let Some(read) = by_name(sample, name) else {
                    continue;
                };
                assert!(
                    (read - printed).abs() < 1e-3 || printed == 0.0 && read == 0.0,
                    "{file}: {name} of {} is {printed}, read as {read}",
                    words[0]
                );
            }
        } else if words.first().is_some_and(|word| word == "all") {
            lines += usize::from(file.contains("only")) * 2;
        }
    }
    lines
}

#[test]
fn human_units_and_names_at_the_end_say_the_same() {
    let (plain, _) = read("12.6-x.txt");
    for (name, factor) in [
        ("12.6-x-h.txt", 0.05),
        ("12.6-xh-de_DE.txt", 0.05),
        ("12.6-x-pretty.txt", 0.05),
        ("12.6-x-dec0.txt", 0.1),
    ] {
        let (readings, notes) = read(name);
        assert_eq!(
            notes.garbage.count + notes.cut.count,
            0,
            "{name}: {notes:?}"
        );
        assert_eq!(readings.len(), 3, "{name}");
        // The means since boot changed by less than is printed in the moments between the runs.
        let (mine, theirs) = (&readings[0].sample, &plain[0].sample);
        for disk in ["vda", "loop0"] {
            let (a, b) = (device(mine, disk), device(theirs, disk));
            let flows = [
                (&a.read, &b.read),
                (&a.write, &b.write),
                (&a.discard, &b.discard),
            ];
            for (a, b) in flows {
                let near = |a: f64, b: f64| (a - b).abs() <= factor * b + 1.0;
                assert!(
                    near(a.iops.unwrap().0, b.iops.unwrap().0),
                    "{name}: {a:?} {b:?}"
                );
                assert!(
                    near(a.bytes.unwrap().0 / 1e5, b.bytes.unwrap().0 / 1e5),
                    "{name}"
                );
            }
            assert!(
                (a.busy.unwrap().0 - b.busy.unwrap().0).abs() < 0.01,
                "{name}"
            );
            assert!(
                a.flush.iops.is_some() && a.mean_in_flight.is_some(),
                "{name}"
            );
        }
    }
}

#[test]
fn reports_without_x_know_only_some() {
    for (name, factor) in [
        ("12.6-basic.txt", 1.0),
        ("12.6-basic-m.txt", 1.0),
        ("12.6-basic-h.txt", 1.0),
        ("12.6-basic-s.txt", 1.0),
        ("12.6-basic.json", 1.0),
    ] {
        let (readings, notes) = read(name);
        assert_eq!(notes.garbage.count, 0, "{name}");
        let samples = intervals(&readings);
        assert_eq!(samples.len(), 2, "{name}");
        for sample in samples {
            let vda = device(sample, "vda");
            assert!(
                vda.all.iops.is_some() && vda.read.bytes.is_some(),
                "{name}: {vda:?}"
            );
            assert!(vda.read.iops.is_none() && vda.busy.is_none(), "{name}");
            assert!(
                vda.all.bytes.unwrap().0 > vda.read.bytes.unwrap().0,
                "{name}"
            );
            let seconds = sample.length.as_secs_f64() / factor;
            assert!((0.9..1.1).contains(&seconds), "{name}: {seconds}");
        }
        assert!(!notes.interval_unknown, "{name}");
    }
}

#[test]
fn json_is_read_to_the_figure() {
    for (name, count) in [
        ("12.6-x.json", 3),
        ("12.6-xt.json", 3),
        ("12.6-xt-iso.json", 3),
        ("12.6-x-s.json", 3),
        ("12.6-x-int.json", 3),
        ("12.6-x-term.json", 3),
    ] {
        let text = fixture(name);
        let whole = match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(whole) => whole,
            // A log that was cut off lacks these brackets.
            Err(_) => serde_json::from_str(&format!("{}]}}]}}}}", text.trim_end())).unwrap(),
        };
        let (readings, notes) = read(name);
        assert_eq!(
            notes.garbage.count + notes.cut.count,
            0,
            "{name}: {notes:?}"
        );
        assert_eq!(readings.len(), count, "{name}");
        let reports = whole["sysstat"]["hosts"][0]["statistics"]
            .as_array()
            .unwrap();
        for (reading, report) in readings.iter().zip(reports) {
            let cpu = reading.sample.host.cpu.unwrap();
            assert_eq!(
                cpu.user.percent(),
                report["avg-cpu"]["user"].as_f64().unwrap()
            );
            for disk in report["disk"].as_array().unwrap() {
                let sample = device(&reading.sample, disk["disk_device"].as_str().unwrap());
                for (key, value) in disk.as_object().unwrap() {
                    let key = if key == "util" { "%util" } else { key };
                    if let (Some(read), Some(printed)) = (by_name(sample, key), value.as_f64()) {
                        assert!(
                            (read - printed).abs() < 1e-3,
                            "{name}: {key} {read} {printed}"
                        );
                    }
                }
            }
        }
    }
}

/// A kernel release that is a number does not make the line a row of figures.
#[test]
fn the_host_is_named_whatever_its_kernel_is_called() {
    for kernel in ["6.1.0-13-amd64", "3.10", "6", "5.10.0"] {
        let text = fixture("12.6-x.txt").replace("6.1.0-13-amd64", kernel);
        let mut reader = Reader::new(text.as_bytes(), Options::default());
        assert_eq!(reader.by_ref().count(), 3, "{kernel}");
        let source = reader.source();
        assert_eq!(source.hostname.as_deref(), Some("db1"), "{kernel}");
        assert_eq!(source.kernel.as_deref(), Some(kernel));
    }
}

#[test]
fn the_host_is_named() {
    for (name, kind) in [
        ("12.6-x.txt", SourceKind::IostatText),
        ("12.6-x.json", SourceKind::IostatJson),
    ] {
        let text = fixture(name);
        let mut rest = text.as_bytes();
        let mut reader = Reader::new(&mut rest, Options::default());
        assert_eq!(reader.by_ref().count(), 3);
        let source = reader.source();
        assert_eq!(source.kind, kind);
        assert_eq!(source.hostname.as_deref(), Some("db1"));
        assert_eq!(source.kernel.as_deref(), Some("6.1.0-13-amd64"));
        assert_eq!(source.cpus, Some(2));
        assert!(rest.is_empty(), "{name}: {} bytes are left", rest.len());
    }
}

#[test]
fn groups_are_left_out_where_their_members_are_listed() {
    for name in ["12.6-x-group.txt", "12.6-h-group.txt", "12.6-x-group.json"] {
        let (readings, notes) = read(name);
        assert_eq!(notes.groups, ["all"], "{name}");
        for reading in &readings {
            let names: Vec<&str> = reading
                .sample
                .devices
                .iter()
                .map(|d| d.device.name.as_str())
                .collect();
            assert_eq!(names, ["loop0", "vda"], "{name}");
        }
    }
    let (readings, _) = read("12.6-x-group-only.txt");
    assert!(device(intervals(&readings)[0], "all").read.iops.is_some());
}

#[test]
fn a_log_of_the_processors_alone_has_no_devices() {
    let (readings, notes) = read("12.6-cpu.txt");
    assert_eq!(readings.len(), 3);
    assert!(
        readings
            .iter()
            .all(|r| r.sample.devices.is_empty() && r.sample.host.cpu.is_some())
    );
    assert_eq!(notes.garbage.count, 0);
}

#[test]
fn colours_are_passed_over() {
    let (readings, notes) = read("12.6-x-colours.txt");
    assert_eq!(notes.garbage.count, 0);
    assert_eq!(intervals(&readings).len(), 2);
}
