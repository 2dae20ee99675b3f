//! The logs of iostat: what every version printed is read for what it means.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use formats::iostat::{DateOrder, First, LogError, Notes, Options, Reader, Reading};
use record::sample::{DeviceSample, Flow, Gap, Sample, SourceKind};
use record::{Bytes, Nanos};

fn fixture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/iostat");
    std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
}

fn read_with(text: &str, options: Options) -> (Vec<Reading>, Notes) {
    let mut reader = Reader::new(text.as_bytes(), options);
    let readings = reader.by_ref().map(|reading| reading.unwrap()).collect();
    (readings, reader.notes().clone())
}

fn read(name: &str) -> (Vec<Reading>, Notes) {
    read_with(&fixture(name), Options::default())
}

fn intervals(readings: &[Reading]) -> Vec<&Sample> {
    let real = readings.iter().filter(|reading| !reading.since_boot);
    real.map(|reading| &reading.sample).collect()
}

fn device<'a>(sample: &'a Sample, name: &str) -> &'a DeviceSample {
    sample
        .named(name)
        .unwrap_or_else(|| panic!("no {name} in {sample:?}"))
}

/// iops, KiB/s and milliseconds.
fn flow(flow: &Flow) -> (Option<f64>, Option<f64>, Option<f64>) {
    let round = |value: f64| (value * 1000.0).round() / 1000.0;
    (
        flow.iops.map(|iops| round(iops.0)),
        flow.bytes.map(|bytes| round(bytes.0 / 1024.0)),
        flow.wait.map(|wait| round(wait.0 as f64 / 1e6)),
    )
}

#[test]
fn sysstat_5_has_sectors_and_kilobytes() {
    let (readings, notes) = read("5-x.txt");
    let sdc = device(&readings[0].sample, "sdc");
    assert_eq!(flow(&sdc.read), (Some(267.1), Some(34176.0), None));
    assert_eq!(sdc.all.wait, Some(Nanos(7_290_000)));
    assert_eq!(
        sdc.all.size,
        Some(Bytes((255.9_f64 * 512.0).round() as u64))
    );
    assert_eq!(sdc.read.merged.unwrap().0, 8276.9);
    assert_eq!(sdc.mean_in_flight, Some(1.95));
    assert_eq!((sdc.busy.unwrap().percent() * 100.0).round(), 10_002.0);
    let cpu = readings[0].sample.host.cpu.unwrap();
    let hundredths = |share: record::sample::Fraction| (share.0 * 10_000.0).round();
    assert_eq!(
        (hundredths(cpu.system), hundredths(cpu.iowait), cpu.steal.0),
        (2185.0, 5855.0, 0.0)
    );
    assert!(notes.garbage.count == 0 && notes.cut.count == 0);
}

#[test]
fn sysstat_9_has_one_await_and_sizes_in_sectors() {
    let (readings, _) = read("9-x.txt");
    assert!(readings[0].since_boot);
    let sda = device(&readings[0].sample, "sda");
    assert_eq!(flow(&sda.read), (Some(170.11), Some(10923.92), None));
    assert_eq!(
        sda.write.size,
        Some(Bytes((134.89_f64 * 512.0 / 6.64).round() as u64))
    );
    assert_eq!(flow(&sda.all), (Some(176.75), Some(10991.365), Some(11.65)));
    let (readings, notes) = read("9-x-comma.txt");
    assert_eq!(readings.len(), 3);
    let sda = device(&readings[1].sample, "sda");
    assert_eq!(flow(&sda.read), (Some(1.0), Some(8.0), None));
    assert_eq!(flow(&sda.all), (Some(1.0), Some(8.0), Some(1.0)));
    // The last report has no devices in it: the log was cut off there.
    assert!(readings[2].sample.devices.is_empty());
    assert_eq!(notes.garbage.count, 0);
}

#[test]
fn sysstat_9_counts_in_megabytes_and_tells_of_nfs() {
    let (readings, _) = read("9-xm.txt");
    let sda = device(&intervals(&readings)[0], "sda");
    assert_eq!(flow(&sda.write), (Some(149.5), Some(34.52 * 1024.0), None));
    assert_eq!(sda.all.wait, Some(Nanos(261_660_000)));
    let (readings, notes) = read("9-xmn.txt");
    assert_eq!(readings[0].sample.devices.len(), 3);
    assert_eq!(notes.garbage.count, 0);
}

#[test]
fn amounts_tell_how_long_the_interval_was() {
    let (readings, notes) = read("9-basic-comma.txt");
    let [sample] = intervals(&readings)[..] else {
        panic!("{readings:?}")
    };
    assert_eq!(sample.length, Nanos::from_secs(10));
    assert!(!notes.interval_unknown);
    let xvdf = device(sample, "xvdf");
    assert_eq!(flow(&xvdf.read), (None, Some(924.4), None));
    assert_eq!(flow(&xvdf.all), (Some(56.2), Some(946.8), None));
}

#[test]
fn sysstat_10_has_await_for_reads_and_writes() {
    let (readings, _) = read("10-x.txt");
    let sda = device(&readings[0].sample, "sda");
    assert_eq!(flow(&sda.read), (Some(0.03), Some(0.605), Some(1.07)));
    assert_eq!(flow(&sda.write), (Some(1.04), Some(29.14), Some(12.48)));
    assert_eq!(sda.all.wait, Some(Nanos(12_120_000)));
    // Requests so rare that their rate is printed as zero still took their time.
    let sdb = device(&readings[0].sample, "sdb");
    assert_eq!(flow(&sdb.read), (Some(0.0), Some(0.0), Some(0.28)));
    assert_eq!(sdb.write.wait, None);
    let (readings, _) = read("10-xkd.txt");
    let samples = intervals(&readings);
    assert_eq!(
        flow(&device(samples[1], "sda").write),
        (Some(8.0), Some(44.0), Some(11.0))
    );
    assert_eq!(device(samples[0], "sda").read.wait, None);
    let (readings, _) = read("10-basic-m.txt");
    let vdc = device(&readings[0].sample, "vdc");
    assert_eq!(vdc.write.bytes.unwrap().0, 2.62 * 1024.0 * 1024.0);
    assert_eq!(vdc.all.iops.unwrap().0, 71.84);
}

#[test]
fn sysstat_12_0_has_sizes_in_kilobytes() {
    let (readings, _) = read("12.0-x.txt");
    let card = device(&intervals(&readings)[0], "mmcblk0");
    assert_eq!(
        flow(&card.write),
        (Some(33.0), Some(16896.0), Some(2931.67))
    );
    assert_eq!(card.write.size, Some(Bytes::kib(512)));
    assert_eq!(card.mean_in_flight, Some(2.67));
    assert_eq!(
        (card.discard, card.flush),
        (Flow::default(), Flow::default())
    );
    let (readings, notes) = read("12.0-x-s-z.txt");
    let sdf = device(&readings[0].sample, "sdf");
    assert_eq!(flow(&sdf.all), (Some(1354.0), Some(10832.0), Some(0.71)));
    assert_eq!(
        (sdf.mean_in_flight, sdf.all.size),
        (Some(0.96), Some(Bytes::kib(8)))
    );
    // The name of the host is missing in its first line.
    assert_eq!(notes.garbage.first, [1]);
}

#[test]
fn sysstat_12_2_has_discards() {
    let (readings, _) = read("12.2-dx.txt");
    let vda = device(&readings[0].sample, "vda");
    assert_eq!(flow(&vda.discard), (Some(0.06), Some(716.09), Some(1.37)));
    assert_eq!(vda.flush, Flow::default());
    let (readings, _) = read("12.2-xm.txt");
    let sda = device(&readings[0].sample, "sda");
    assert_eq!(flow(&sda.discard).1, Some(19927.04));
    assert_eq!(sda.discard.size, Some(Bytes((38626.5_f64 * 1024.0) as u64)));
}

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

/// Compares and returns how many lines of devices there were.
fn compared(file: &str, text: &str, readings: &[Reading]) -> usize {
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

/// What a sample has under iostat's name; zero where it is not known since nothing happened.
fn by_name(sample: &DeviceSample, name: &str) -> Option<f64> {
    let flow = match name.trim_start_matches('%').chars().next()? {
        _ if ["tps", "kB/s", "rqm/s", "await", "areq-sz"].contains(&name) => &sample.all,
        'r' => &sample.read,
        'w' => &sample.write,
        'd' => &sample.discard,
        'f' => &sample.flush,
        'a' if name == "aqu-sz" => return sample.mean_in_flight,
        '%' | 'u' => return sample.busy.map(|busy| busy.percent()),
        _ => return None,
    };
    let kib = |bytes: f64| bytes / 1024.0;
    Some(match name {
        "r/s" | "w/s" | "d/s" | "f/s" | "tps" => flow.iops?.0,
        "kB/s" | "rkB/s" | "wkB/s" | "dkB/s" => kib(flow.bytes?.0),
        "rMB/s" | "wMB/s" | "dMB/s" => kib(kib(flow.bytes?.0)),
        "rsec/s" | "wsec/s" | "dsec/s" => 2.0 * kib(flow.bytes?.0),
        "rrqm/s" | "wrqm/s" | "drqm/s" | "rqm/s" => flow.merged?.0,
        "r_await" | "w_await" | "d_await" | "f_await" | "await" => {
            flow.wait.map_or(0.0, |wait| wait.0 as f64 / 1e6)
        }
        // Sizes are whole bytes here.
        "rareq-sz" | "wareq-sz" | "dareq-sz" | "areq-sz" => {
            let size = flow.size.map_or(0.0, |size| kib(size.0 as f64));
            (size * 100.0).round() / 100.0
        }
        _ => return None,
    })
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
            // What the brackets missing of the one that was cut off are.
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

#[test]
fn the_host_is_named() {
    for (name, kind) in [
        ("12.6-x.txt", SourceKind::IostatText),
        ("12.6-x.json", SourceKind::IostatJson),
    ] {
        let text = fixture(name);
        let mut reader = Reader::new(text.as_bytes(), Options::default());
        assert_eq!(reader.by_ref().count(), 3);
        let source = reader.source();
        assert_eq!(source.kind, kind);
        assert_eq!(source.hostname.as_deref(), Some("db1"));
        assert_eq!(source.kernel.as_deref(), Some("6.1.0-13-amd64"));
        assert_eq!(source.cpus, Some(2));
        assert_eq!(reader.bytes_taken(), text.len() as u64);
    }
}

#[test]
fn times_of_every_locale_mean_the_same_instant() {
    let (reference, _) = read("12.6-xt-iso.txt");
    let reference: Vec<_> = intervals(&reference)
        .iter()
        .map(|s| s.at.wall.unwrap())
        .collect();
    for locale in [
        "C", "de_DE", "en_US", "en_GB", "fr_FR", "ja_JP", "pt_BR", "en_CA", "zh_CN", "en_IN",
    ] {
        let (readings, notes) = read(&format!("12.6-xt-{locale}.txt"));
        assert_eq!(notes.date_order, None, "the 22nd is no month");
        let samples = intervals(&readings);
        for (sample, reference) in samples.iter().zip(&reference) {
            let apart = sample.at.wall.unwrap().duration_since(*reference).as_secs();
            assert!(apart.abs() <= 1, "{locale}: {sample:?}");
            assert_eq!(sample.length, Nanos::from_secs(1), "{locale}");
            assert_eq!(sample.gap, None, "{locale}");
        }
        assert!(!notes.interval_unknown);
    }
    for name in ["12.6-xt.json", "12.6-xt-iso.json"] {
        let (readings, _) = read(name);
        let apart = intervals(&readings)[0]
            .at
            .wall
            .unwrap()
            .duration_since(reference[0]);
        assert!(apart.as_secs().abs() <= 1, "{name}");
    }
}

#[test]
fn the_first_report_is_of_the_time_since_boot_unless_y_was_given() {
    let boots = |readings: &[Reading]| -> Vec<bool> {
        readings.iter().map(|reading| reading.since_boot).collect()
    };
    let (readings, notes) = read("12.6-x.txt");
    assert_eq!(boots(&readings), [true, false, false]);
    assert_eq!((notes.since_boot, notes.samples), (1, 2));
    let (readings, notes) = read("12.6-x-y.txt");
    assert_eq!(boots(&readings), [false; 3]);
    assert_eq!(notes.samples, 3);
    // Where blank lines are gone, somebody may say it.
    let text: String = fixture("12.6-x-y.txt")
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(
        boots(&read_with(&text, Options::default()).0),
        [true, false, false]
    );
    let options = Options {
        first: First::Interval,
        ..Options::default()
    };
    assert_eq!(boots(&read_with(&text, options).0), [false; 3]);
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

#[test]
fn columns_are_guessed_where_grep_took_the_headers() {
    let (readings, notes) = read("10-xk-grep.txt");
    let guess = notes.guess.clone().unwrap();
    assert_eq!(guess.printed_by, "sysstat 10.1 to 11.4, -x");
    assert!(guess.columns.text().contains("rkB/s") && guess.held == guess.checked);
    assert!(notes.sentences()[0].contains("taken as 'Device rrqm/s wrqm/s r/s w/s rkB/s"));
    assert!(notes.interval_unknown);
    assert_eq!(readings.len(), 5);
    let nvme = device(&readings[1].sample, "nvme0n1");
    assert_eq!(flow(&nvme.read), (Some(341.6), Some(35042.4), Some(7.35)));

    // The lines of devices alone, of every column set of which there is a log with enough in it.
    for (name, printed_by) in [
        ("9-x.txt", "sysstat 6 to 10.0, -x"),
        ("9-xm.txt", "sysstat 6 to 10.0, -x"),
        ("5-x.txt", "sysstat 5, -x"),
        ("10-x.txt", "sysstat 10.1 to 11.4, -x"),
        ("12.0-x.txt", "sysstat 11.6 to 12.0, -x"),
        ("12.6-x.txt", "sysstat 12.3 and later, -x"),
        ("12.6-x-m.txt", "sysstat 12.3 and later, -x"),
        ("12.6-x-sectors.txt", "sysstat 12.3 and later, -x"),
        ("12.6-x-s.txt", "sysstat 12.1 and later, -x -s"),
    ] {
        let (with, _) = read(name);
        let disks = ["sd", "md", "vd", "loop", "mmc"];
        let text: String = fixture(name)
            .lines()
            .filter(|line| disks.iter().any(|disk| line.starts_with(disk)))
            .map(|line| format!("{line}\n"))
            .collect();
        let (without, notes) = read_with(&text, Options::default());
        assert_eq!(
            notes.guess.as_ref().unwrap().printed_by,
            printed_by,
            "{name}"
        );
        let with = with
            .iter()
            .filter(|reading| !reading.sample.devices.is_empty());
        let mut compared = 0;
        for (with, without) in with.zip(&without) {
            for (a, b) in with.sample.devices.iter().zip(&without.sample.devices) {
                assert_eq!(
                    (&a.device.name, a.read, a.all),
                    (&b.device.name, b.read, b.all)
                );
                compared += 1;
            }
        }
        assert!(compared >= 2, "{name}");
    }
}

#[test]
fn what_cannot_be_guessed_is_asked_for() {
    let text = "sda 18.89 209.75 135.41 995990159 642992550\n".repeat(50);
    let mut reader = Reader::new(text.as_bytes(), Options::default());
    let error = reader.find_map(Result::err).unwrap();
    let LogError::NoColumns {
        line,
        figures,
        candidates,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((*line, *figures, candidates.len()), (1, 5, 6));
    assert!(error.to_string().contains("--columns"), "{error}");
    let options = Options {
        columns: Some("tps kB_read/s kB_wrtn/s kB_read kB_wrtn".parse().unwrap()),
        interval: Some(Nanos::from_secs(5)),
        first: First::Interval,
        ..Options::default()
    };
    let (readings, _) = read_with(&text, options);
    assert_eq!(readings.len(), 50);
    assert_eq!(
        flow(&device(&readings[0].sample, "sda").read).1,
        Some(209.75)
    );
}

#[test]
fn a_log_that_begins_within_a_report_takes_the_columns_that_follow() {
    let text = fixture("12.6-x.txt");
    let middle = text.find("vda").unwrap();
    let (readings, notes) = read_with(&text[middle..], Options::default());
    assert_eq!((notes.guess, notes.garbage.count), (None, 0));
    assert_eq!(readings.len(), 3);
    assert_eq!(readings[0].sample.devices.len(), 1);
}

#[test]
fn garbage_is_counted_and_named_and_does_no_harm() {
    let text = fixture("12.6-xt-C.txt");
    let (clean, _) = read_with(&text, Options::default());
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.insert(3, "Killed process 4711 (postgres)".to_owned());
    lines.insert(9, "\u{7}rm: cannot remove 'x': No such file".to_owned());
    lines.insert(15, "x".repeat(300_000));
    let (readings, notes) = read_with(&(lines.join("\n") + "\n"), Options::default());
    assert_eq!(notes.garbage.count, 3);
    assert_eq!(notes.garbage.first, [4, 10, 16]);
    assert!(notes.garbage.example.starts_with("Killed process 4711"));
    let figures = |readings: &[Reading]| -> Vec<Sample> {
        readings
            .iter()
            .map(|reading| reading.sample.clone())
            .collect()
    };
    assert_eq!(figures(&readings), figures(&clean));
}

#[test]
fn lines_that_are_cut_off_give_what_they_have() {
    let text = fixture("12.6-x.txt");
    let narrow: String = text
        .lines()
        .map(|line| format!("{}\n", line.chars().take(76).collect::<String>()))
        .collect();
    let (readings, _) = read_with(&narrow, Options::default());
    let (clean, _) = read_with(&text, Options::default());
    for (cut, whole) in readings.iter().zip(&clean) {
        let (cut, whole) = (device(&cut.sample, "vda"), device(&whole.sample, "vda"));
        assert_eq!(cut.read, whole.read);
        assert_eq!(cut.busy, None);
    }
    // A log that ends within a number does not know that number.
    let end = text.trim_end().len();
    let (readings, notes) = read_with(&text[..end - 1], Options::default());
    assert_eq!(notes.cut.count, 1);
    let vda = device(&readings[2].sample, "vda");
    assert_eq!(
        (vda.busy, vda.read),
        (None, device(&clean[2].sample, "vda").read)
    );
    let whole = read_with(&text[..end], Options::default()).0;
    assert!(device(&whole[2].sample, "vda").busy.is_some());
}

#[test]
fn json_that_is_cut_anywhere_gives_the_reports_before() {
    let text = fixture("12.6-x.json");
    let (clean, _) = read_with(&text, Options::default());
    for end in 0..text.len() {
        let mut reader = Reader::new(&text.as_bytes()[..end], Options::default());
        let readings: Vec<Reading> = reader.by_ref().filter_map(Result::ok).collect();
        for (reading, clean) in readings.iter().zip(&clean) {
            for device in &reading.sample.devices {
                let whole = clean.sample.device(device.device.id).unwrap();
                assert!(
                    device.read == whole.read
                        || device.read.wait.is_none()
                        || device.read.size.is_some()
                );
                assert!(device.busy.is_none() || device.busy == whole.busy, "{end}");
                assert!(
                    device.read.iops.is_none() || device.read.iops == whole.read.iops,
                    "{end}"
                );
            }
        }
    }
}

#[test]
fn another_run_behind_a_cut_is_read_too() {
    let (json, cut, text) = (
        fixture("12.6-x.json"),
        fixture("12.6-x-term.json"),
        fixture("12.6-x.txt"),
    );
    for joined in [
        format!("{json}{json}"),
        format!("{cut}{json}"),
        format!("{cut}\n{text}"),
        format!("{text}{json}"),
        format!("{text}{text}"),
        format!("{}{json}", cut.trim_end()),
    ] {
        let (readings, _) = read_with(&joined, Options::default());
        let boots: Vec<bool> = readings.iter().map(|reading| reading.since_boot).collect();
        assert_eq!(boots, [true, false, false, true, false, false]);
        assert_eq!(readings[4].sample.gap, Some(Gap::Unseen(Nanos(0))));
        assert_eq!(readings[5].sample.gap, None);
        assert_eq!(readings[4].sample.devices.len(), 2);
    }
}

#[test]
fn devices_that_z_leaves_out_completed_nothing() {
    let device = |name: &str, iops: f64| {
        format!("{name} {iops:.2} {:.2} 1.00 4.00 1.00 40.00\n", iops * 4.0)
    };
    let header = "\nDevice tps kB/s rqm/s await areq-sz %util\n";
    let report = |names: &[&str]| -> String {
        let lines: Vec<String> = names.iter().map(|name| device(name, 10.0)).collect();
        format!("{header}{}", lines.concat())
    };
    let machine = "Linux 6.1.0 (h) \t01/01/26 \t_x86_64_\t(2 CPU)\n";
    let all = ["sda", "sdb"];
    let text = format!(
        "{machine}{}{}{}{}{}",
        report(&all),
        report(&all),
        report(&["sdb"]),
        report(&all),
        report(&["sda"])
    );
    let (readings, notes) = read_with(&text, Options::default());
    let samples = intervals(&readings);
    let sda = samples[1].named("sda").unwrap();
    assert_eq!(sda.all.iops.map(|iops| iops.0), Some(0.0));
    // A device that hangs is left out too, so nothing is said of what was in flight.
    assert_eq!(
        (sda.busy, sda.mean_in_flight, sda.all.wait),
        (None, None, None)
    );
    assert!(sda.read.iops.is_none());
    // The last report may be cut off; there nothing is filled in.
    assert!(samples[3].named("sdb").is_none());
    assert_eq!(notes.missing, 1);
    // Where idle devices are printed, one that is missing is gone.
    let idle = format!("{header}sda 0.00 0.00 0.00 0.00 0.00 0.00\n");
    let text = format!(
        "{machine}{}{}{idle}{}",
        report(&all),
        report(&all),
        report(&["sdb"])
    );
    let (readings, notes) = read_with(&(text + &report(&all)), Options::default());
    assert!(intervals(&readings)[1].named("sdb").is_none());
    assert_eq!(notes.missing, 0);
}

#[test]
fn long_names_stand_on_a_line_of_their_own() {
    let text = "Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util\n\
        VolGroup00-LogVol00\n                  0.00     0.00    1.00    2.00     8.00    16.00     8.00     0.00    1.00   1.00   0.30\n\
        sda               0.00     0.00    1.00    2.00     8.00    16.00     8.00     0.00    1.00   1.00   0.30\n";
    let (readings, notes) = read_with(text, Options::default());
    assert_eq!(notes.garbage.count, 0);
    assert_eq!(readings[0].sample.devices.len(), 2);
    let volume = device(&readings[0].sample, "VolGroup00-LogVol00");
    assert_eq!(volume.read, device(&readings[0].sample, "sda").read);
}

#[test]
fn a_counter_that_went_back_leaves_rates_unknown() {
    let text = "Device r/s w/s rkB/s wkB/s %util\nsda 1.00 2.00 4.00 18014398509481984.00 1.00\n";
    let (readings, _) = read_with(text, Options::default());
    let sda = device(&readings[0].sample, "sda");
    assert!(sda.reset && sda.read == Flow::default() && sda.busy.is_none());
}

#[test]
fn dates_that_can_be_read_both_ways_are_named() {
    let line = "Device tps await %util\nsda 1.00 1.00 1.00\n";
    let text = format!("03/04/26 10:00:00\n{line}\n03/04/26 10:00:05\n{line}");
    let (readings, notes) = read_with(&text, Options::default());
    assert_eq!(notes.date_order, Some(DateOrder::MonthFirst));
    assert!(
        notes
            .sentences()
            .iter()
            .any(|said| said.contains("--dates dmy"))
    );
    assert_eq!(
        readings[1].sample.at.wall.unwrap().to_string(),
        "2026-03-04T10:00:05Z"
    );
    assert_eq!(readings[1].sample.length, Nanos::from_secs(5));
    let options = Options {
        dates: Some(DateOrder::DayFirst),
        ..Options::default()
    };
    let (readings, notes) = read_with(&text, options);
    assert_eq!(notes.date_order, None);
    assert_eq!(
        readings[1].sample.at.wall.unwrap().to_string(),
        "2026-04-03T10:00:05Z"
    );
}

#[test]
fn runs_of_cron_make_one_series() {
    let run = |minute: u32| {
        format!(
            "Linux 6.1.0 (h) \t11/22/26 \t_x86_64_\t(2 CPU)\n\n\n11/22/26 10:{minute:02}:59\n\
             Device tps await %util\nsda {minute}.00 1.00 1.00\n\n"
        )
    };
    let text: String = (10..20).map(run).collect();
    let (readings, notes) = read_with(&text, Options::default());
    assert_eq!((notes.since_boot, readings.len()), (0, 10));
    for (reading, minute) in readings.iter().zip(1..) {
        assert_eq!(reading.sample.length, Nanos::from_secs(60));
        assert_eq!(reading.sample.gap, None);
        assert_eq!(reading.sample.at.elapsed, Nanos::from_secs(60 * minute));
    }
}

#[test]
fn what_is_no_log_is_refused() {
    let error = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes, Options::default());
        reader.find_map(Result::err).unwrap().to_string()
    };
    assert!(error(b"").contains("no report of iostat, in none of its 0 lines"));
    assert!(error(b"hello\nworld\n").contains("2 lines"));
    assert!(error(b"\x1f\x8b\x08\x00").contains("zcat"));
}

/// A gigabyte of log takes no more memory than a kilobyte: here, that nothing grows with it is seen
/// by a log that is made as it is read.
#[test]
fn a_long_log_is_read_as_a_stream() {
    struct Endless {
        report: Vec<u8>,
        at: usize,
        left: usize,
    }
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.at == self.report.len() {
                if self.left == 0 {
                    return Ok(0);
                }
                (self.at, self.left) = (0, self.left - 1);
            }
            let length = buffer.len().min(self.report.len() - self.at);
            buffer[..length].copy_from_slice(&self.report[self.at..self.at + length]);
            self.at += length;
            Ok(length)
        }
    }
    let text = fixture("12.6-x.txt");
    let report = text[text.rfind("avg-cpu").unwrap()..].as_bytes().to_vec();
    let log = Endless {
        report,
        at: 0,
        left: 10_000,
    };
    let mut reader = Reader::new(std::io::BufReader::new(log), Options::default());
    let mut last = 0;
    for (count, reading) in reader.by_ref().enumerate() {
        assert_eq!(reading.unwrap().sample.devices.len(), 2);
        last = count + 1;
    }
    assert_eq!(last, 10_001);
    assert!(reader.bytes_taken() > 7_000_000);
}
