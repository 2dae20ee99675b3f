//! Tests with logs of sar, sadf and vmstat, and counters of node_exporter, of the same disks.

use formats::disk_log::{LogError, LogReport, Notes, Options, Reader};
use record::Nanos;
use record::sample::{DeviceSample, Gap, SourceKind};

fn fixture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/sysstat");
    std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
}

fn read(text: &str) -> (Vec<LogReport>, Notes) {
    let mut reader = Reader::new(text.as_bytes(), Options::default());
    let readings = reader.by_ref().map(|reading| reading.unwrap()).collect();
    (readings, reader.notes().clone())
}

fn error(text: &[u8]) -> LogError {
    let found = Reader::new(text, Options::default()).find_map(Result::err);
    found.unwrap()
}

fn device<'a>(reading: &'a LogReport, name: &str) -> &'a DeviceSample {
    let found = reading.sample.named(name);
    found.unwrap_or_else(|| panic!("no {name} in {reading:?}"))
}

/// End, length in seconds, device names, and the figures of vda.
type LogSummary = (String, f64, Vec<String>, [Option<f64>; 7]);

fn summary(reading: &LogReport) -> LogSummary {
    let sample = &reading.sample;
    let names = sample.devices.iter().map(|d| d.device.name.clone());
    let vda = device(reading, "vda");
    let figures = [
        vda.all.iops.map(|iops| iops.0),
        vda.read.bytes.map(|bytes| bytes.0),
        vda.write.bytes.map(|bytes| bytes.0),
        vda.discard.bytes.map(|bytes| bytes.0),
        vda.all.wait.map(|wait| wait.0 as f64),
        vda.mean_in_flight,
        vda.busy.map(|busy| busy.0),
    ];
    let at = sample.at.wall.unwrap().to_string();
    (at, sample.length.as_secs_f64(), names.collect(), figures)
}

#[test]
fn sar_and_sadf_tell_the_same_in_all_their_forms() {
    let (readings, notes) = read(&fixture("sadf-d.txt"));
    let expected: Vec<LogSummary> = readings.iter().map(summary).collect();
    assert_eq!(expected.len(), 4);
    assert_eq!(expected[0].0, "2026-11-24T19:20:32Z");
    assert_eq!(expected[0].2, ["loop0", "loop8", "vda"]);
    let kib = 1024.0;
    assert_eq!(
        expected[2].3,
        [
            Some(697.0),
            Some(15216.0 * kib),
            Some(86956.0 * kib),
            Some(144.0 * kib),
            Some(4.95e6),
            Some(3.45),
            Some(0.096)
        ]
    );
    assert!(notes.sentences().is_empty(), "{:?}", notes.sentences());
    for name in [
        "sadf-dt.txt",
        "sadf-dU.txt",
        "sadf-p.txt",
        "sadf-j.json",
        "sar-d.txt",
        "sar-A.txt",
    ] {
        let (readings, notes) = read(&fixture(name));
        let found: Vec<LogSummary> = readings.iter().map(summary).collect();
        let message = notes.sentences();
        if name == "sar-A.txt" {
            assert_eq!(found.len(), 4);
            assert_eq!(found[2].3, expected[2].3, "{name}");
        } else {
            assert_near(&found, &expected, 1e-5, name);
        }
        assert!(message.is_empty(), "{name}: {message:?}");
        assert!(
            readings
                .iter()
                .all(|reading| !reading.since_boot && !reading.alone)
        );
    }
    // Rounded as people read it.
    let (readings, notes) = read(&fixture("sar-dh.txt"));
    assert!(notes.sentences().is_empty(), "{:?}", notes.sentences());
    let found: Vec<LogSummary> = readings.iter().map(summary).collect();
    assert_near(&found, &expected, 0.05, "sar-dh.txt");
}

/// Asserts that two lists of reports are equal, except that figures may differ by a relative error of `share`.
fn assert_near(found: &[LogSummary], expected: &[LogSummary], share: f64, name: &str) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (found, expected) in found.iter().zip(expected) {
        let fixed = |summary: &LogSummary| (summary.0.clone(), summary.1, summary.2.clone());
        assert_eq!(fixed(found), fixed(expected), "{name}");
        for (one, other) in found.3.iter().zip(expected.3) {
            let (one, other) = (one.unwrap(), other.unwrap());
            assert!(
                (one - other).abs() <= other * share,
                "{name}: {found:?} {expected:?}"
            );
        }
    }
}

#[test]
fn the_tool_and_the_host_are_recognized() {
    for (name, kind) in [
        ("sar-d.txt", SourceKind::Sar),
        ("sadf-d.txt", SourceKind::Sadf),
        ("sadf-p.txt", SourceKind::Sadf),
        ("sadf-j.json", SourceKind::Sadf),
    ] {
        let text = fixture(name);
        let mut reader = Reader::new(text.as_bytes(), Options::default());
        assert!(reader.by_ref().all(|reading| reading.is_ok()));
        assert_eq!(reader.source().kind, kind, "{name}");
        assert_eq!(reader.source().hostname.as_deref(), Some("db1"), "{name}");
    }
}

/// A file of sar with a row for each time, of a disk that makes as many requests as there are rows before it.
fn day(date: &str, header: &str, times: &[&str]) -> String {
    let rows = times.iter().enumerate();
    let rows = rows.map(|(nth, time)| {
        format!("{time}       sda      {nth}.00      8.00     16.00     10.00\n")
    });
    format!(
        "Linux 6.1.0 (db1) \t{date} \t_x86_64_\t(2 CPU)\n\n\
         {header}       DEV       tps     rkB/s     wkB/s     %util\n{}\
         Average:       sda      1.00      8.00     16.00     10.00\n",
        rows.collect::<String>()
    )
}

fn times(readings: &[LogReport]) -> Vec<(String, u64, Option<Gap>)> {
    let summary = readings.iter().map(|reading| {
        let sample = &reading.sample;
        (
            sample.at.wall.unwrap().to_string(),
            sample.length.0 / 1_000_000_000,
            sample.gap,
        )
    });
    summary.collect()
}

#[test]
fn days_follow_each_other_past_midnight() {
    let days = [
        day("11/24/26", "23:40:01", &["23:50:01", "00:00:01"]),
        day("11/25/26", "00:00:01", &["00:10:01", "00:20:01"]),
    ];
    let (readings, notes) = read(&days.concat());
    assert_eq!(
        times(&readings),
        [
            ("2026-11-24T23:50:01Z".to_owned(), 600, None),
            ("2026-11-25T00:00:01Z".to_owned(), 600, None),
            ("2026-11-25T00:10:01Z".to_owned(), 600, None),
            ("2026-11-25T00:20:01Z".to_owned(), 600, None),
        ]
    );
    assert_eq!((notes.samples, notes.garbage.count), (4, 0));
}

#[test]
fn clocks_of_twelve_hours_and_other_languages_are_read() {
    let lines = [
        ("11/24/2026", "11:50:01 AM", "12:00:01 PM"),
        ("2026年11月24日", "11时50分01秒", "12时00分01秒"),
        ("24.11.2026", "11.50.01", "12.00.01"),
        (
            "11/24/2026",
            "上午 11時50分01秒 CST",
            "下午 12時00分01秒 CST",
        ),
    ];
    for (date, header, row) in lines {
        let text = day(date, header, &[row]).replace("Average:", "平均时间：");
        let (readings, notes) = read(&text);
        let expected = ("2026-11-24T12:00:01Z".to_owned(), 600, None);
        assert_eq!(times(&readings), [expected], "{header}");
        assert!(
            notes.sentences().is_empty(),
            "{header}: {:?}",
            notes.sentences()
        );
    }
}

#[test]
fn the_time_between_two_runs_of_the_host_is_a_gap() {
    let text = day("11/24/26", "10:00:01", &["10:10:01"])
        + "\n12:00:00     LINUX RESTART\t(2 CPU)\n\n12:00:01       DEV       tps     rkB/s     wkB/s     %util\n\
           12:10:01       sda      1.00      8.00     16.00     10.00\n12:10:05  COM upgraded the kernel\n";
    let (readings, notes) = read(&text);
    let gap = Some(Gap::Unseen(Nanos::from_secs(6600)));
    let expected = [
        ("2026-11-24T10:10:01Z".to_owned(), 600, None),
        ("2026-11-24T12:10:01Z".to_owned(), 600, gap),
    ];
    assert_eq!(times(&readings), expected);
    assert_eq!(readings.iter().map(|r| r.run).collect::<Vec<_>>(), [1, 2]);
    assert!(notes.sentences().is_empty(), "{:?}", notes.sentences());
}

/// Output of old versions, from public texts.
#[test]
fn columns_of_old_versions_are_read() {
    let (readings, notes) = read(
        "Linux 3.10.0-1062.9.1.el7.x86_64 (rhel)         01/07/2020      _x86_64_        (32 CPU)\n\n\
         06:43:44 PM       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util\n\
         06:43:45 PM    dev8-0   6274.00    400.00 796672.00    127.04    142.20     22.64      0.16    100.00\n\
         06:43:45 PM  dev253-0     50.00    400.00      0.00      8.00      0.00      0.08      0.08      0.40\n",
    );
    let disk = device(&readings[0], "dev8-0");
    assert_eq!(disk.all.iops.unwrap().0, 6274.0);
    assert_eq!(disk.write.bytes.unwrap().0, 796_672.0 * 512.0);
    assert_eq!(disk.all.size.unwrap().0, 65_044);
    assert_eq!(disk.mean_in_flight, Some(142.2));
    assert_eq!(disk.busy.unwrap().0, 1.0);
    assert_eq!(
        times(&readings),
        [("2020-01-07T18:43:45Z".to_owned(), 1, None)]
    );
    // January the 7th, or the 1st of July.
    assert_eq!(notes.sentences().len(), 1, "{:?}", notes.sentences());
}

#[test]
fn a_cut_line_and_a_line_of_another_kind_are_named() {
    let text = day("11/24/26", "10:00:01", &["10:10:01"]);
    let text = text.replace(
        "Average:",
        "rm: cannot remove\n10:20:01 sda 1.00 8.00\n10:30:01 sda 7.00 3\nx",
    );
    let text = text.split("\nx").next().unwrap();
    let (readings, notes) = read(text);
    assert_eq!((notes.garbage.count, notes.cut.count), (1, 2));
    let last = device(&readings[2], "sda");
    assert_eq!((last.all.iops.unwrap().0, last.read.bytes), (7.0, None));
}

#[test]
fn vmstat_tells_what_happened_between_its_rounds() {
    let (readings, notes) = read(&fixture("vmstat-dt.txt"));
    assert_eq!(
        times(&readings),
        [
            ("2026-11-24T19:20:36Z".to_owned(), 1, None),
            ("2026-11-24T19:20:37Z".to_owned(), 1, None)
        ]
    );
    let vda = device(&readings[0], "vda");
    assert_eq!(vda.read.iops.unwrap().0, 80.0);
    assert_eq!(vda.read.bytes.unwrap().0, 1264.0 * 512.0);
    assert_eq!(vda.read.wait.unwrap().0, 312_500);
    assert_eq!((vda.write.iops.unwrap().0, vda.write.wait), (0.0, None));
    assert_eq!((vda.in_flight, vda.busy), (Some(0), None));
    assert!(notes.sentences().is_empty(), "{:?}", notes.sentences());
    let (readings, notes) = read(&fixture("vmstat-d.txt"));
    assert_eq!((readings.len(), notes.interval_unknown), (2, true));
    let error = error(b"disk- ---reads--- ---writes---\nsda 1 2 3 4 5 6 7 8 9 10\n").to_string();
    assert!(
        error.contains("no report") || error.contains("vmstat -d"),
        "{error}"
    );
}

/// An answer of Prometheus with counters of one device: name, and its value at 0, 10 and 20 s.
fn answer(series: &[(&str, &str, [f64; 3])]) -> String {
    let one = |(name, labels, values): &(&str, &str, [f64; 3])| {
        let values: Vec<String> = (0..)
            .zip(values)
            .map(|(n, v)| format!("[{}.5,\"{v}\"]", 1_795_547_000 + n * 10))
            .collect();
        format!(
            "{{\"metric\":{{\"__name__\":\"{name}\",{labels}}},\"values\":[{}]}}",
            values.join(",")
        )
    };
    let series: Vec<String> = series.iter().map(one).collect();
    format!(
        "{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[{}]}}}}",
        series.join(",")
    )
}

#[test]
fn counters_of_node_exporter_are_rates_between_scrapes() {
    let sda = "\"device\":\"sda\",\"instance\":\"db1:9100\",\"job\":\"node\"";
    let text = answer(&[
        ("node_disk_io_time_seconds_total", sda, [1.0, 6.0, 6.0]),
        ("node_disk_io_now", sda, [0.0, 2.0, 0.0]),
        (
            "node_disk_reads_completed_total",
            sda,
            [100.0, 1100.0, 1.1e3],
        ),
        ("node_disk_read_bytes_total", sda, [0.0, 4096e3, 0.0]),
        ("node_disk_read_time_seconds_total", sda, [1.0, 3.0, 3.0]),
        ("node_filesystem_free_bytes", sda, [1.0, 1.0, 1.0]),
    ]);
    // As it comes, and in lines.
    for text in [text.clone(), text.replace([','], ",\n"), text.repeat(2)] {
        let mut reader = Reader::new(text.as_bytes(), Options::default());
        let readings: Vec<LogReport> = reader.by_ref().map(|reading| reading.unwrap()).collect();
        assert_eq!(reader.source().kind, SourceKind::Prometheus);
        assert_eq!(reader.source().hostname.as_deref(), Some("db1:9100"));
        assert_eq!(readings.len(), 2);
        let disk = device(&readings[0], "sda");
        assert_eq!(readings[0].sample.length, Nanos::from_secs(10));
        assert_eq!(
            readings[0].sample.at.wall.unwrap().to_string(),
            "2026-11-24T19:03:30.5Z"
        );
        assert_eq!(disk.read.iops.unwrap().0, 100.0);
        assert_eq!(disk.read.wait.unwrap(), Nanos(2_000_000));
        assert_eq!((disk.busy.unwrap().0, disk.in_flight), (0.5, Some(2)));
        assert!(device(&readings[1], "sda").reset, "bytes went back");
    }
}

#[test]
fn an_answer_of_a_real_prometheus_is_read() {
    let (readings, notes) = read(&fixture("prometheus.json"));
    assert!(readings.len() >= 5, "{}", readings.len());
    assert!(notes.sentences().is_empty(), "{:?}", notes.sentences());
    let busy = readings.iter().map(|reading| device(reading, "vda"));
    assert!(
        busy.clone()
            .all(|disk| disk.busy.is_some() && disk.flush.iops.is_some())
    );
    assert!(busy.map(|disk| disk.all.iops.unwrap().0).sum::<f64>() > 0.0);
}

#[test]
fn an_answer_of_prometheus_that_tells_nothing_says_why() {
    let of = |device: &str, host: &str| format!("\"device\":\"{device}\",\"instance\":\"{host}\"");
    let name = "node_disk_reads_completed_total";
    let (one, other) = (of("sda", "db1:9100"), of("sda", "db2:9100"));
    for (text, expected) in [
        (
            answer(&[(name, &one, [1.0; 3]), (name, &other, [1.0; 3])]),
            "2 hosts (db1:9100, db2:9100)",
        ),
        (answer(&[("", &one, [1.0; 3])]), "without rate()"),
    ] {
        let error = error(text.as_bytes()).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn other_reports_of_sar_are_named() {
    for (text, expected) in [
        (
            "Linux 6.1.0 (db1) \t11/22/2026\n\n10:00:01  CPU %user %nice %system %iowait %steal %idle\n10:00:02 all 1 0 1 0 0 98\n",
            "sar -u",
        ),
        (
            "\n10:26:25   device    r+w/s    blks/s\nNew Disk: [disk0] IODeviceTree:/PCI0@0/SATA@1F\n\
             10:26:26   disk0         5        64\n10:26:27   disk0         0         0\n\
             Average:   disk0         2        32\n",
            "line 2 looks like the output of sar -d of macOS; only that of Linux (sysstat) is read",
        ),
        (
            "10:26:25  %usr   %nice   %sys   %idle\n10:26:26     5       0      3      92\n",
            "sar -u of macOS",
        ),
        (
            "Average:  DEV  tps  rkB/s  wkB/s  %util\nAverage:  sda  1.00  8.00  16.00  10.00\n",
            "sar -d",
        ),
        (
            "# hostname;interval;timestamp;CPU;%user\ndb1;1;2026-11-24 19:20:32 UTC;-1;1.00\n",
            "sadf -d",
        ),
        (
            "# hostname;interval;timestamp;DEV;tps;await[...]\ndb1;1;2026-11-24 19:20:32 UTC;sda;1.00;2.00\n",
            "sadf -d",
        ),
    ] {
        let error = error(text.as_bytes()).to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(matches!(error(b"\x96\xd5u!\x0c\x06"), LogError::Binary));
}

#[test]
fn prefixes_of_the_lines_of_sar_are_no_part_of_them() {
    let fronts: [fn(usize) -> String; 6] = [
        |_| "> ".to_owned(),
        |_| ">> ".to_owned(),
        |_| "# ".to_owned(),
        |line| format!("{}:", line + 1),
        |_| "db1 | ".to_owned(),
        |line| format!("Nov 22 12:01:{:02} db1 sar[77]: ", line / 7),
    ];
    let samples = |text: &str| {
        let (readings, _) = read(text);
        let samples: Vec<_> = readings.into_iter().map(|one| one.sample).collect();
        samples
    };
    for name in [
        "sar-d.txt",
        "sar-dh.txt",
        "sar-A.txt",
        "vmstat-d.txt",
        "sadf-d.txt",
        "sadf-j.json",
    ] {
        let whole = fixture(name);
        // The signs of a mail are known everywhere, and others by a header of sar or iostat.
        let known = if name.starts_with("sar") {
            fronts.len()
        } else {
            2
        };
        // With the line that names the host, and without it.
        let (_, behind) = whole.split_once('\n').unwrap();
        for text in [&whole, behind] {
            let plain = samples(text);
            for front in &fronts[..known] {
                let line = |(at, line): (usize, &str)| format!("{}{line}\n", front(at));
                let log: String = text.lines().enumerate().map(line).collect();
                assert_eq!(samples(&log), plain, "{name}: {log}");
            }
        }
        assert!(!samples(&whole).is_empty(), "{name}");
    }
}
