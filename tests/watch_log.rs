//! The verb `watch --parse`, through the real program, on logs that iostat wrote.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
#[path = "support/prometheus.rs"]
mod prometheus;
#[path = "support/pty.rs"]
mod pty;
mod support;

#[path = "watch_log/clients.rs"]
mod clients;
#[path = "watch_log/node_exporter.rs"]
mod node_exporter;
#[path = "watch_log/ranges.rs"]
mod ranges;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use pty::Pty;
use rustix::process::Signal;
use serde_json::{Value, json};
use support::documents::all as lines;
use support::{Place, ProgramOutput, Running, output_of};

fn fixture(name: &str) -> String {
    format!(
        "{}/../formats/fixtures/iostat/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

fn parse(path: &str, more: &[&str]) -> ProgramOutput {
    let mut arguments = vec!["watch", "--parse", path];
    arguments.extend(more);
    Place::new().run(&arguments)
}

#[test]
fn a_log_is_shown_as_what_happens_now() {
    let said = parse(&fixture("12.6-xt-de_DE.txt"), &["--zone", "UTC"]).ends_with(0);
    let rows: Vec<&str> = said.out.lines().collect();
    assert_eq!(rows.len(), 6, "{said:#?}");
    assert!(rows[0].starts_with("# 2026-11-2"), "{said:#?}");
    assert!(rows[1].starts_with("time "), "{said:#?}");
    assert!(rows[2].contains("loop0") && rows[3].contains("vda"));
    assert!(said.err.contains("since boot"), "{said:#?}");

    let said = parse(&fixture("12.6-x-term.json"), &["--json"]).ends_with(0);
    let lines = lines(&said.out);
    assert_eq!(lines[0]["kind"], "start");
    assert_eq!(lines[0]["source"], "iostat-json");
    assert_eq!(lines[0]["hostname"], "db1");
    let samples = lines.iter().filter(|line| line["kind"] == "sample");
    let samples: Vec<&Value> = samples.collect();
    assert_eq!(samples.len(), 2, "{said:#?}");
    assert!(samples[0]["time"].is_null());
    assert_eq!(samples[0]["devices"][0]["read"]["iops"], 380.0);
    assert!(lines.iter().any(|line| line["kind"] == "note"));
}

#[test]
fn a_stall_in_a_log_is_found_once_and_is_over() {
    let place = Place::new();
    let path = place.path("stall.log");
    let header = "Device r/s w/s rkB/s wkB/s avgqu-sz await %util\n";
    let report = |second: u32| {
        let hangs = (20..35).contains(&second);
        let figures = match hangs {
            true => "0.00 0.00 0.00 0.00 7.00 0.00 100.00",
            false => "100.00 200.00 400.00 800.00 0.50 1.67 30.00",
        };
        format!("11/22/2026 10:00:{second:02} AM\n{header}sda {figures}\n\n")
    };
    let text: String = (0..60).map(report).collect();
    std::fs::write(&path, text).unwrap();
    let arguments = ["watch", "--json", "--zone", "UTC", "--parse"];
    let mut arguments = arguments.to_vec();
    arguments.push(path.to_str().unwrap());
    let said = place.run(&arguments).ends_with(0);
    let found: Vec<Value> = lines(&said.out)
        .into_iter()
        .filter(|line| line["finding"]["code"] == "stalled" && line["change"] != "updated")
        .collect();
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!(found[0]["finding"]["name"], "sda");
    assert_eq!(found[0]["finding"]["began"]["time"], "2026-11-22T10:00:19Z");
    assert_eq!(found[1]["finding"]["ended"]["time"], "2026-11-22T10:00:34Z");
}

/// Output of versions of iostat for an active device, and for one that hangs with 7 in flight.
const FORMS: [(&str, &str, &str); 5] = [
    (
        "rrqm/s wrqm/s r/s w/s rsec/s wsec/s rkB/s wkB/s avgrq-sz avgqu-sz await svctm %util",
        "0.00 0.00 90.00 10.00 1440.00 160.00 720.00 80.00 16.00 0.50 5.00 4.00 40.00",
        "0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 7.00 0.00 0.00 100.00",
    ),
    (
        "rrqm/s wrqm/s r/s w/s rsec/s wsec/s avgrq-sz avgqu-sz await svctm %util",
        "0.00 0.00 90.00 10.00 1440.00 160.00 16.00 0.50 5.00 4.00 40.00",
        "0.00 0.00 0.00 0.00 0.00 0.00 0.00 7.00 0.00 0.00 100.00",
    ),
    (
        "rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await w_await svctm %util",
        "0.00 0.00 90.00 10.00 720.00 80.00 16.00 0.50 5.00 5.00 5.00 4.00 40.00",
        "0.00 0.00 0.00 0.00 0.00 0.00 0.00 7.00 0.00 0.00 0.00 0.00 100.00",
    ),
    (
        "r/s w/s rMB/s wMB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz svctm %util",
        "100.00 20.00 12.50 2.50 0.00 0.00 0.00 0.00 5.00 5.00 0.60 128.00 128.00 4.00 48.00",
        "0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 7.00 0.00 0.00 0.00 100.00",
    ),
    (
        "r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz d/s dkB/s drqm/s \
         %drqm d_await dareq-sz f/s f_await aqu-sz %util",
        "90.00 720.00 0.00 0.00 5.00 8.00 10.00 80.00 0.00 0.00 5.00 8.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 \
         0.00 0.50 40.00",
        "0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 \
         0.00 100.00",
    ),
];

/// Partitions and disks by their names, none of which has its disk next to it.
const ALONE: [&str; 11] = [
    "sda1",
    "xvdap1",
    "hda3",
    "cciss/c0d0p1",
    "nvme0n1p1",
    "emcpowera1",
    "rbd0p1",
    "mmcblk0p1",
    "dasda1",
    "mpatha-part1",
    "sda",
];

/// A log of a device that hangs from the fourth report to the ninth.
fn stalled_log(name: &str, form: usize, every: u64, headers: bool) -> String {
    let (header, works, hangs) = FORMS[form];
    let report = |number: u64| {
        let figures = if (4..10).contains(&number) {
            hangs
        } else {
            works
        };
        match headers {
            true => {
                let at = number * every;
                let (minute, second) = (at / 60, at % 60);
                format!(
                    "11/22/2026 10:{minute:02}:{second:02} AM\nDevice: {header}\n{name} {figures}\n\n"
                )
            }
            false => format!("{name} {figures}\n"),
        }
    };
    (0..14).map(report).collect()
}

#[test]
fn a_partition_whose_disk_is_not_in_the_log_is_a_disk_that_may_stall() {
    let place = Place::new();
    let path = place.path("alone.log");
    let path = path.to_str().unwrap();
    let mut wrong = Vec::new();
    for (number, name) in ALONE.iter().enumerate() {
        for every in [1, 5, 60] {
            for headers in [true, false] {
                // Each name in some forms, each form with some names.
                let form = (number + every as usize + usize::from(headers)) % FORMS.len();
                std::fs::write(path, stalled_log(name, form, every, headers)).unwrap();
                let interval = format!("{every}s");
                for named in [true, false] {
                    let mut arguments = vec!["watch", "--plain", "--parse", path];
                    arguments.extend(["--log-interval", &interval]);
                    arguments.extend(named.then_some(*name));
                    let said = place.run(&arguments).ends_with(0);
                    let found = said.out.lines().filter(|line| line.starts_with("! "));
                    let found: Vec<&str> = found.collect();
                    let is_right =
                        found.len() == 1 && found[0].contains(&format!("stalled {name}:"));
                    let is_idle =
                        said.out.contains("idle") || said.out.contains("no device is there");
                    if !is_right || is_idle {
                        wrong.push(format!(
                            "{name} {form} {every} {headers} {named}: {said:#?}"
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong: {}", wrong.len(), wrong[0]);
}

/// A driver of Linux 2.4 counted the bytes that it moved, and none of the requests.
#[test]
fn what_moves_bytes_hangs_not_though_no_request_is_counted() {
    let place = Place::new();
    let path = place.path("uncounted.log");
    let header = "Device: rrqm/s wrqm/s r/s w/s rsec/s wsec/s rkB/s wkB/s avgrq-sz avgqu-sz await svctm %util";
    let moves =
        "rd/c0d0 0.00 9344.00 0.00 0.00 0.00 75360.00 0.00 37680.00 0.00 13488.18 0.00 0.00 100.00";
    let hangs = "rd/c0d0 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 13488.18 0.00 0.00 100.00";
    for (row, stalls) in [(moves, 0), (hangs, 1)] {
        std::fs::write(&path, format!("{header}\n{row}\n\n").repeat(10)).unwrap();
        let said = place
            .run(&["watch", "--plain", "--parse", path.to_str().unwrap()])
            .ends_with(0);
        assert_eq!(said.out.matches("! ").count(), stalls, "{said:#?}");
    }
}

#[test]
fn a_log_without_headers_in_which_nothing_ever_completes_is_read_too() {
    let place = Place::new();
    let path = place.path("hangs.log");
    // The first two sets differ in what else they print, and the unit of the others is open.
    for (_, _, hangs) in FORMS {
        std::fs::write(&path, format!("xvdap1 {hangs}\n").repeat(10)).unwrap();
        let said = place
            .run(&["watch", "--plain", "--parse", path.to_str().unwrap()])
            .ends_with(0);
        assert!(
            said.out.contains("! ") && said.out.contains("stalled xvdap1:"),
            "{hangs} {said:#?}"
        );
        assert!(!said.err.contains("since boot"), "{said:#?}");
    }
}

#[test]
fn a_partition_alongside_its_disk_is_its_disks() {
    let place = Place::new();
    let path = place.path("beside.log");
    let log = |rows: &[(&str, &str)]| {
        let (header, works, hangs) = FORMS[2];
        let report = |number: usize| {
            let rows = rows.iter().map(|(name, does)| {
                let hangs_now = (4..10).contains(&number) && *does == "hangs";
                let idle = "0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00";
                let figures = match *does {
                    "idle" => idle,
                    _ if hangs_now => hangs,
                    _ => works,
                };
                format!("{name} {figures}\n")
            });
            let rows: String = rows.collect();
            format!("11/22/2026 10:00:{number:02} AM\nDevice: {header}\n{rows}\n")
        };
        std::fs::write(&path, (0..14).map(report).collect::<String>()).unwrap();
        let arguments = ["watch", "--plain", "--parse", path.to_str().unwrap()];
        place.run(&arguments).ends_with(0).out
    };
    for (disk, part) in [
        ("sda", "sda1"),
        ("cciss/c0d0", "cciss/c0d0p1"),
        ("nvme0n1", "nvme0n1p1"),
        ("mpatha", "mpatha-part1"),
        ("emcpowera", "emcpowera1"),
    ] {
        // The order does not matter.
        for rows in [
            [(disk, "hangs"), (part, "hangs")],
            [(part, "hangs"), (disk, "hangs")],
        ] {
            let out = log(&rows);
            let found = out.lines().filter(|line| line.starts_with("! "));
            let found: Vec<&str> = found.collect();
            assert_eq!(found.len(), 1, "{out}");
            assert!(found[0].contains(&format!("stalled {disk}:")), "{out}");
            assert!(!out.contains(&format!(" {part} ")), "{out}");
        }
    }
    // A volume whose name speaks of another that does nothing is none of its parts.
    let out = log(&[("data", "idle"), ("data1", "hangs")]);
    assert!(out.contains("stalled data1:"), "{out}");
    let out = log(&[("vg-data", "hangs"), ("vg-data1", "works")]);
    assert!(
        out.contains("stalled vg-data:") && out.contains(" vg-data1 "),
        "{out}"
    );
}

#[test]
fn a_log_of_one_report_is_shown_and_what_one_report_tells_is_found() {
    let place = Place::new();
    let path = place.path("one.log");
    let linux = "Linux 5.10.0 (db1) \t11/22/2026 \t_x86_64_\t(8 CPU)\n\n";
    let header = "Device: r/s w/s rkB/s wkB/s avgqu-sz r_await w_await %util\n";
    let run = |rows: &[&str], more: &[&str]| {
        let log = format!("{linux}{header}{}\n\n", rows.join("\n"));
        std::fs::write(&path, log).unwrap();
        let mut arguments = vec!["watch", "--json", "--parse", path.to_str().unwrap()];
        arguments.extend(more);
        let said = place.run(&arguments).ends_with(0);
        let lines = lines(&said.out);
        let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
        assert_eq!(of("sample"), 1, "{said:#?}");
        assert!(
            said.out.contains("may show the means since boot"),
            "{said:#?}"
        );
        let found = lines.iter().filter(|line| line["kind"] == "finding");
        let code = |line: &Value| {
            assert_eq!(line["change"], "opened");
            let finding = &line["finding"];
            let word = |key: &str| finding[key].as_str().unwrap().to_owned();
            (word("code"), word("name"), word("text"))
        };
        found.map(code).collect::<Vec<_>>()
    };
    let is = |found: &[(String, String, String)], expected: &[(&str, &str)]| {
        let found: Vec<_> = found
            .iter()
            .map(|(code, name, _)| (code.as_str(), name.as_str()))
            .collect();
        assert_eq!(found, expected);
    };
    // A mirror, of which one side is read far less. That it is one shows in the writes.
    let mirror = [
        "sda 700.00 50.00 11200.00 800.00 0.50 1.00 1.00 30.00",
        "sdb 100.00 50.00 1600.00 801.00 0.10 1.10 1.00 5.00",
        "md0 800.00 49.00 12800.00 798.00 0.00 0.00 0.00 0.00",
    ];
    let found = run(&mirror, &[]);
    is(&found, &[("imbalance", "sda")]);
    assert!(
        found[0].2.contains("700") && found[0].2.contains("sdb is 100"),
        "{found:?}"
    );
    is(
        &run(&mirror, &["--array", "md0:raid1=sda,sdb"]),
        &[("imbalance", "sda")],
    );
    // Without an array, two disks that write alike are two disks.
    is(&run(&mirror[..2], &[]), &[]);
    // A stripe, of which one member is asked for more, and one that is slow.
    let stripe = [
        "sda 100.00 50.00 1600.00 800.00 0.50 1.00 1.00 30.00",
        "sdb 400.00 50.00 6400.00 800.00 0.50 1.00 1.00 30.00",
        "sdc 100.00 50.00 1600.00 800.00 0.50 9.00 1.00 90.00",
    ];
    is(
        &run(&stripe, &["--array", "md0:raid0=sda,sdb,sdc"]),
        &[("imbalance", "sdb"), ("slow-member", "sdc")],
    );
    // One that does not keep up, one that hangs, and one that is well.
    is(
        &run(
            &["sda 90.00 10.00 720.00 80.00 99.00 950.00 1200.00 99.80"],
            &[],
        ),
        &[("saturated", "sda")],
    );
    is(
        &run(&["xvdap1 0.00 0.00 0.00 0.00 42.00 0.00 0.00 100.00"], &[]),
        &[("stalled", "xvdap1")],
    );
    is(
        &run(&["sda 90.00 10.00 720.00 80.00 0.50 5.00 5.00 40.00"], &[]),
        &[],
    );
    // As a page, with the await of old versions.
    let page = place.path("one.html");
    let old = "Device: rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await svctm %util\n";
    let row = "sda 0.00 0.00 90.00 10.00 720.00 80.00 16.00 0.50 5.25 4.00 41.00";
    for log in [
        format!("{linux}{old}{row}\n"),
        format!("{linux}{old}{row}\n\n{old}{row}\n\n{old}{row}\n"),
    ] {
        std::fs::write(&path, log).unwrap();
        let arguments = [
            "watch",
            "--parse",
            path.to_str().unwrap(),
            "--report",
            page.to_str().unwrap(),
        ];
        place.run(&arguments).ends_with(0);
        let text = std::fs::read_to_string(&page).unwrap();
        for part in [">await<", "5.25 ms", ">busy<", "41%"] {
            assert!(text.contains(part), "{part}");
        }
        std::fs::remove_file(&page).unwrap();
    }
}

/// The names and texts of the findings that began.
fn opened(said: &str) -> Vec<(String, String, String)> {
    let found = lines(said).into_iter();
    let found = found.filter(|line| line["kind"] == "finding" && line["change"] == "opened");
    let found = found.map(|line| {
        let word = |key: &str| line["finding"][key].as_str().unwrap().to_owned();
        (word("code"), word("name"), word("text"))
    });
    found.collect()
}

#[test]
fn a_run_of_one_interval_is_examined_for_what_one_report_tells() {
    let place = Place::new();
    let path = place.path("two.log");
    let linux = "Linux 5.10.0 (db1) \t11/22/2026 \t_x86_64_\t(8 CPU)\n\n";
    let cpu = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n 1.00 0.00 1.00 20.00 0.00 78.00\n\n";
    let header = "Device: r/s w/s rkB/s wkB/s avgqu-sz r_await w_await %util\n";
    let boot = "sdl 3.40 6.05 266.00 245.00 0.01 5.50 2.82 3.62\n\n";
    let hangs = "sdl 0.00 0.00 0.00 0.00 42.00 0.00 0.00 100.00\n\n";
    let well = "sdl 90.00 6.05 266.00 245.00 0.30 5.50 2.82 30.00\n\n";
    let report = |row: &str| format!("{cpu}{header}{row}");
    let run = |rows: &[&str]| {
        let reports: String = rows.iter().map(|row| report(row)).collect();
        format!("{linux}{reports}")
    };
    for (log, expected) in [
        // The mean since boot and one second, whole or with the next report cut off.
        (run(&[boot, hangs]), 1),
        (format!("{}{cpu}", run(&[boot, hangs])), 1),
        (run(&[boot, well]), 0),
        // Each minute a run: it hung once, and is told once, or twice with a good run between.
        (
            run(&[boot, hangs]) + &run(&[boot, hangs]) + &run(&[boot, hangs]),
            1,
        ),
        (
            run(&[boot, hangs]) + &run(&[boot, well]) + &run(&[boot, hangs]),
            2,
        ),
        // Single reports, as of a loop that runs iostat again and again.
        (run(&[hangs]) + &run(&[hangs]) + &run(&[hangs]), 1),
        // One second among many is none: a request may take as long.
        (run(&[boot, well, hangs, well, well]), 0),
    ] {
        std::fs::write(&path, &log).unwrap();
        let said = place
            .run(&["watch", "--json", "--parse", path.to_str().unwrap()])
            .ends_with(0);
        let found = opened(&said.out);
        assert_eq!(found.len(), expected, "{log}\n{found:#?}");
        assert!(
            found.iter().all(|(code, ..)| code == "stalled"),
            "{found:#?}"
        );
    }
}

#[test]
fn members_of_a_stripe_that_write_alike_are_no_mirror() {
    let place = Place::new();
    let path = place.path("one.log");
    let header = "Device: r/s w/s rkB/s wkB/s avgqu-sz r_await w_await %util\n";
    // Three stripes of the same amount, one of them slow: nothing tells which of them belong together.
    let rows = |array_kb: f64| {
        format!(
            "{header}sda 10.00 300.00 160.00 19300.00 0.50 1.00 1.00 30.00\n\
             sdb 300.00 300.00 4800.00 19400.00 0.50 1.00 9.00 30.00\n\
             sdc 10.00 300.00 160.00 19350.00 0.50 1.00 1.00 30.00\n\
             md0 320.00 900.00 5120.00 {array_kb:.2} 0.00 0.00 0.00 0.00\n"
        )
    };
    let found = |array_kb: f64| {
        std::fs::write(&path, rows(array_kb)).unwrap();
        let said = place
            .run(&["watch", "--json", "--parse", path.to_str().unwrap()])
            .ends_with(0);
        opened(&said.out).len()
    };
    assert_eq!(found(58050.0), 0);
    // Of three copies each disk writes all.
    assert_eq!(found(19350.0), 2);
}

#[test]
fn what_stands_in_front_of_each_line_is_no_part_of_it() {
    let place = Place::new();
    let path = place.path("passed-on.log");
    let linux = "Linux 5.10.0 (db1) \t11/22/2026 \t_x86_64_\t(8 CPU)\n\n";
    let cpu = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           1.00    0.00    1.00   20.00    0.00   78.00\n\n";
    let header = "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await  svctm  %util\n";
    let row = |name: &str, iops: u32| {
        format!(
            "{name}               0.00     0.00   {iops}.00    5.00   720.00    80.00    16.00     0.50    5.25   4.00  41.00\n"
        )
    };
    let report = |iops: u32| {
        format!(
            "{cpu}{header}{}{}\n",
            row("sda", iops),
            row("dm-0", iops + 1)
        )
    };
    let plain = format!("{linux}{}{}{}", report(90), report(120), report(150));
    let samples = |log: &str| {
        std::fs::write(&path, log).unwrap();
        let said = place
            .run(&["watch", "--json", "--parse", path.to_str().unwrap()])
            .ends_with(0);
        let samples = lines(&said.out).into_iter();
        let samples = samples.filter(|line| line["kind"] == "sample");
        samples.collect::<Vec<Value>>()
    };
    let figures = |samples: &[Value]| {
        let parts = samples
            .iter()
            .map(|sample| (sample["devices"].clone(), sample["host"]["cpu"].clone()));
        parts.collect::<Vec<_>>()
    };
    let expected = samples(&plain);
    assert_eq!(expected.len(), 2);
    type Front = fn(usize) -> String;
    let fronts: [(&str, Front); 10] = [
        ("quoted", |_| "> ".to_owned()),
        ("quoted twice", |_| "> > ".to_owned()),
        ("comment", |_| "# ".to_owned()),
        ("comment without a space", |_| "#".to_owned()),
        ("grep -n", |line| format!("{}:", line + 1)),
        ("list", |line| format!("  {}. ", line + 1)),
        ("ansible", |_| "db1 | ".to_owned()),
        ("ts", |line| format!("Nov 22 12:01:{:02} ", line / 7)),
        ("docker logs -t", |line| {
            format!("2026-11-22T12:01:{:02}.123Z ", line / 7)
        }),
        ("syslog", |line| {
            format!("Nov 22 12:01:{:02} db1 iostat[77]: ", line / 7)
        }),
    ];
    for (what, front) in fronts {
        for end in ["\n", "\r\n"] {
            let line = |(at, line): (usize, &str)| format!("{}{line}{end}", front(at));
            let log: String = plain.lines().enumerate().map(line).collect();
            assert_eq!(figures(&samples(&log)), figures(&expected), "{what}: {log}");
        }
    }
    // A time in front is that of the report.
    let at = |(at, line): (usize, &str)| format!("2026-11-22T12:{:02}:00Z {line}\n", at / 7);
    let log: String = plain.lines().enumerate().map(at).collect();
    let timed = samples(&log);
    assert_eq!(timed[1]["time"], "2026-11-22T12:02:00Z", "{timed:#?}");
    assert_eq!(timed[1]["length_ns"], 60_000_000_000_u64);
    // A blank line behind each is nothing either.
    let spaced = plain.replace('\n', "\n\n");
    assert_eq!(figures(&samples(&spaced)), figures(&expected));
}

#[test]
fn what_is_not_iostats_is_refused_by_its_name() {
    let place = Place::new();
    let path = place.path("other.log");
    let linux = "Linux 6.1.0 (db1) \t11/22/2026 \t_x86_64_\t(2 CPU)\n\n";
    let cpu = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n 1.00 0.00 1.00 0.00 0.00 98.00\n\n";
    for (name, log) in [
        (
            "sar -d",
            format!(
                "{linux}Average:          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n\
                 Average:          sda      1.00      0.00     16.00      0.00     16.00      0.00      1.00      0.10\n"
            ),
        ),
        (
            "sar -b",
            format!(
                "{linux}12:00:01 AM       tps      rtps      wtps   bread/s   bwrtn/s\n\
                 12:10:01 AM      1.00      0.00      1.00      0.00     16.00\n"
            ),
        ),
        (
            "vmstat -d",
            "disk- ------------reads------------ ------------writes----------- -----IO------\n       total merged sectors      \
             ms  total merged sectors      ms    cur    sec\nsda    21954   6954 1481566   10154   9127   7714  283514   \
             12345      0     14\n"
                .to_owned(),
        ),
        (
            "vmstat",
            "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   swpd   free   buff  \
             cache   si   so    bi    bo   in   cs us sy id wa st\n 1  0      0  20204  49488 319036    0    0     8    36   \
             31   40  0  0 99  0  0\n"
                .to_owned(),
        ),
        (
            "dstat",
            "You did not select any stats, using -cdngy by default.\n--total-cpu-usage-- -dsk/total-\nusr sys idl wai stl| \
             read  writ\n  0   0  99   0   0|8521B   36k\n"
                .to_owned(),
        ),
        ("top", "top - 17:52:17 up 42 days,  7:10,  1 user,  load average: 0.02, 0.02, 0.05\n".to_owned()),
        (
            "mpstat",
            format!(
                "{linux}10:00:01     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n\
                 10:00:02     all    1.00    0.00    1.00    0.00    0.00    0.00    0.00    0.00    0.00   98.00\n"
            ),
        ),
        (
            "iostat of FreeBSD",
            "                        extended device statistics  \ndevice       r/s     w/s     kr/s     kw/s  ms/r  ms/w  \
             ms/o  ms/t qlen  %b  \nada0           1       2     16.0     32.0     1     1     0     1    0   0 \n"
                .to_owned(),
        ),
        (
            "iostat of Solaris",
            "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device\n    1.0    2.0   16.0   32.0  0.0  0.0    0.0    \
             1.0   0   0 c0t0d0\n"
                .to_owned(),
        ),
        (
            "iostat of macOS",
            "              disk0       cpu    load average\n    KB/t  tps  MB/s  us sy id   1m   5m   15m\n   20.00   15  0.29   5  \
             3 92  1.50 1.60 1.70\n"
                .to_owned(),
        ),
        (
            "iostat of AIX",
            "System configuration: lcpu=4 drives=2\n\nDisks:        % tm_act     Kbps      tps    Kb_read   Kb_wrtn\nhdisk0           \
             0.5      12.0       1.5          0       120\n"
                .to_owned(),
        ),
        ("iostat -c", format!("{linux}{cpu}{cpu}")),
    ] {
        std::fs::write(&path, log).unwrap();
        for more in [&[][..], &["--json"]] {
            let mut arguments = vec!["watch", "--parse", path.to_str().unwrap()];
            arguments.extend(more);
            let said = place.run(&arguments).ends_with(2);
            assert!(said.out.is_empty(), "{said:#?}");
            assert!(said.err.contains(name), "{name}: {said:#?}");
        }
    }
}

/// A file of sar that sadc wrote just now.
fn sar_file(place: &Place) -> Option<String> {
    let sadc = "/usr/lib/sysstat/sadc";
    if !Path::new(sadc).exists() {
        skip::skipped("sysstat is not installed");
        return None;
    }
    let path = place.path("sa24").to_str().unwrap().to_owned();
    let mut command = Command::new(sadc);
    let status = command.args(["-S", "DISK", "1", "3", &path]).status();
    assert!(status.unwrap().success());
    Some(path)
}

#[test]
fn a_binary_file_of_sar_is_read_through_sadf() {
    let place = Place::new();
    let Some(path) = sar_file(&place) else { return };
    let binary = parse(&path, &["--json", "--all"]).ends_with(0);
    let binary = lines(&binary.out);
    assert_eq!(binary[0]["source"], "sadf");
    let samples = |lines: &[Value]| -> Vec<Value> {
        let samples = lines.iter().filter(|line| line["kind"] == "sample");
        let devices = samples.flat_map(|sample| {
            let devices = sample["devices"].as_array().unwrap().iter();
            devices.map(|device| {
                let figures = [&device["all"]["iops"], &device["busy_fraction"]];
                json!([sample["time"], sample["length_ns"], device["name"], figures])
            })
        });
        devices.collect()
    };
    let binary = samples(&binary);
    assert!(!binary.is_empty(), "{binary:#?}");
    // The same as all other forms of the file, as the installed tools print them.
    for (program, arguments) in [
        ("sar", &["-d", "-f", &path][..]),
        ("sadf", &["-d", &path, "--", "-d"]),
        ("sadf", &["-p", &path, "--", "-d"]),
        ("sadf", &["-j", &path, "--", "-d"]),
    ] {
        let printed = Command::new(program)
            .args(arguments)
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        let log = place.path("printed.log");
        std::fs::write(&log, printed.stdout).unwrap();
        let found = parse(log.to_str().unwrap(), &["--json", "--all"]).ends_with(0);
        let mut found = samples(&lines(&found.out));
        assert_eq!(found.len(), binary.len(), "{program} {arguments:?}");
        // sar prints no lengths, and its times are whole seconds: between two of them may lie one more.
        for (one, known) in found.iter_mut().zip(&binary) {
            let more = one[1]
                .as_u64()
                .unwrap()
                .abs_diff(known[1].as_u64().unwrap());
            if program == "sar" && more <= 1_000_000_000 {
                one[1] = known[1].clone();
            }
        }
        assert_eq!(found, binary, "{program} {arguments:?}");
    }
}

#[test]
fn a_binary_file_of_sar_that_cannot_be_read_is_refused_with_the_reason() {
    let place = Place::new();
    let Some(path) = sar_file(&place) else { return };
    let mut other = std::fs::read(&path).unwrap();
    // The mark of the format of sysstat 11.
    other[2] = 0x71;
    let old = place.path("sa23");
    std::fs::write(&old, &other).unwrap();
    parse(old.to_str().unwrap(), &[]).refuses(&["sadf", "sadf -c"]);
    let mut command = place.command(&["watch", "--parse", &path]);
    let missing = output_of(command.env("PATH", "/nowhere"));
    missing.refuses(&["sadf is not installed"]);
    let mut command = place.command(&["watch", "--parse", "-"]);
    let piped = output_of(command.stdin(File::open(&path).unwrap()));
    piped.refuses(&["by its name"]);
}

#[test]
fn the_slow_member_of_an_array_that_is_named_is_found_in_a_log() {
    let place = Place::new();
    let path = place.path("members.log");
    let header = "Device r/s w/s rkB/s wkB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz svctm %util\n";
    let row = |name: &str, wait: &str| {
        format!(
            "{name} 100.00 0.00 1600.00 0.00 0.00 0.00 0.00 0.00 {wait} 0.00 0.50 16.00 0.00 0.00 40.00\n"
        )
    };
    let report = |second: u32| {
        let waits = [
            ("sda", "2.00"),
            ("sdb", "2.10"),
            ("sdc", "20.00"),
            ("sdd", "1.90"),
        ];
        let rows: String = waits.iter().map(|(name, wait)| row(name, wait)).collect();
        format!("11/22/2026 10:00:{second:02} AM\n{header}{rows}\n")
    };
    let text: String = (0..60).map(report).collect();
    std::fs::write(&path, text).unwrap();
    let found = |more: &[&str]| {
        let mut arguments = vec!["watch", "--json", "--parse", path.to_str().unwrap()];
        arguments.extend(more);
        let said = place.run(&arguments).ends_with(0);
        let opened = lines(&said.out).into_iter();
        let opened = opened.filter(|line| line["change"] == "opened");
        let slow = opened.filter(|line| line["finding"]["code"] == "slow-member");
        slow.map(|line| line["finding"]["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(found(&[]).is_empty());
    assert_eq!(
        found(&["--array", "md0:raid0=sda,sdb,/dev/sdc,sdd"]),
        ["sdc"]
    );
    assert_eq!(found(&["--array", "data=sda,sdb,sdc,sdd"]), ["sdc"]);
    let arguments = [
        "watch",
        "--parse",
        path.to_str().unwrap(),
        "--array",
        "md0=sda,sdz",
    ];
    let said = place.run(&arguments).ends_with(0);
    assert!(said.err.contains("has no device sdz"), "{said:#?}");
    place
        .run(&[
            "watch",
            "--parse",
            path.to_str().unwrap(),
            "--array",
            "md0=sda",
        ])
        .ends_with(2);
}

/// All load is on one member of an array from the beginning of a log.
#[test]
fn a_member_that_is_asked_for_all_is_found_alongside_idle_ones() {
    let place = Place::new();
    let path = place.path("hot.log");
    let header = "Device r/s w/s rkB/s wkB/s avgqu-sz await %util\n";
    let report = |second: u32| {
        let row = |name: &str| match name {
            "sdc" => format!("{name} 200.00 0.00 3200.00 0.00 0.50 2.00 30.00\n"),
            _ => format!("{name} 0.00 0.00 0.00 0.00 0.00 0.00 0.00\n"),
        };
        let rows = ["sda", "sdb", "sdc", "sdd"].map(row).concat();
        format!("11/22/2026 10:00:{second:02} AM\n{header}{rows}\n")
    };
    let text: String = (0..60).map(report).collect();
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let found = |array: &str| {
        let said = parse(path, &["--json", "--array", array]).ends_with(0);
        let opened = lines(&said.out).into_iter();
        let opened = opened.filter(|line| line["change"] == "opened");
        let hot = opened.filter(|line| line["finding"]["code"] == "imbalance");
        hot.map(|line| line["finding"]["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(found("/dev/md/data:raid0=sda,sdb,sdc,sdd"), ["data"]);
    // A mirror is read as md likes.
    assert!(found("data:raid1=sda,sdb,sdc,sdd").is_empty());
    let twice = ["--array", "md0=sda,sdb", "--array", "md0=sdc,sdd"];
    parse(path, &twice).refuses(&["md0 twice"]);
}

#[test]
fn columns_are_guessed_and_named_or_requested() {
    let grep = fixture("10-xk-grep.txt");
    let more = ["--log-interval", "10s", "--first", "interval"];
    let said = parse(&grep, &more).ends_with(0);
    assert!(
        said.err.contains("sysstat 10.1 to 11.4, -x") && said.err.contains("20 of 20"),
        "{said:#?}"
    );
    assert!(said.out.contains("50.000s"), "{said:#?}");
    let place = Place::new();
    let path = place.path("basic.log");
    std::fs::write(
        &path,
        "sda 18.89 209.75 135.41 995990159 642992550\n".repeat(9),
    )
    .unwrap();
    let path = path.to_str().unwrap();
    parse(path, &[]).refuses(&["line 1: no header names", "--columns"]);
    parse(
        path,
        &["--columns", "tps kB_read/s kB_wrtn/s kB_read kB_wrtn"],
    )
    .ends_with(0);
    parse(path, &["--columns", "nonsense"]).refuses(&["'nonsense' are not the columns"]);
}

#[test]
fn what_old_versions_tell_of_all_requests_together_is_shown() {
    let first = ["--first", "interval"];
    let said = parse(&fixture("9-x.txt"), &first).ends_with(0);
    assert!(said.out.contains("  all: await "), "{said:#?}");
    let said = parse(&fixture("12.6-x-s.txt"), &first).ends_with(0);
    let all = said.out.lines().find(|line| line.contains("  all: "));
    assert!(all.is_some_and(|line| line.contains("/s ")), "{said:#?}");
}

#[test]
fn ctrl_c_ends_the_reading_of_what_has_no_report() {
    let place = Place::new();
    let mut running = Running::start(&mut place.command(&["watch", "--parse", "/dev/zero"]));
    running.wait_for_handler(Signal::INT);
    running.signal(Signal::INT);
    let said = running.end().ends_with(0);
    assert_eq!(said.out, "", "{said:#?}");
}

/// Reads a log, as the words of a shell say it, on a terminal.
fn watched(place: &Place, words: &str) -> Pty {
    let program = place.command(&[]);
    let mut shell = Command::new("sh");
    shell.arg("-c");
    shell.arg(format!("exec \"$0\" watch --json --parse {words}"));
    shell.arg(program.get_program());
    shell.current_dir(place.path("")).env("TERM", "xterm");
    Pty::start(&shell, (100, 10), true)
}

/// A log that is read through a pipe, as a compressed one is, with what a person sees of it.
fn piped(place: &Place) -> (Pty, File) {
    let pipe = place.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let pty = watched(place, "pipe > out");
    let mut pipe = File::options().write(true).open(&pipe).unwrap();
    let header = "Device r/s w/s rkB/s wkB/s avgqu-sz await %util\n";
    let report = format!("{header}sda 100.00 200.00 400.00 800.00 0.50 1.67 30.00\n\n");
    let many = report.repeat(1000);
    let began = Instant::now();
    // Until it is seen that it takes long.
    while !pty.seen().text().contains(" read at ") {
        let waited = began.elapsed();
        assert!(waited < pty::TIMEOUT, "no line:\n{}", pty.seen().text());
        pipe.write_all(many.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    (pty, pipe)
}

#[test]
fn who_watches_sees_how_far_a_long_log_is_read_through_a_pipe() {
    if !support::has_program("setsid") {
        return;
    }
    let place = Place::new();
    let (mut pty, pipe) = piped(&place);
    drop(pipe);
    assert_eq!(pty.end().code(), Some(0));
    pty.wait_until_gone(" read at ");
    let out = std::fs::read_to_string(place.path("out")).unwrap();
    assert!(lines(&out).len() > 1000);
    assert!(!out.contains(" read at "));
}

#[test]
fn a_pipe_in_which_nothing_comes_slows_the_speed_and_ends_with_ctrl_c() {
    if !support::has_program("setsid") {
        return;
    }
    let place = Place::new();
    let (mut pty, pipe) = piped(&place);
    // What is still in the pipe is read, and then the speed falls with each look.
    for _ in 0..3 {
        let before = pty.seen().line_with(" read at ");
        pty.wait_for(|seen| {
            let now = seen.line_with(" read at ");
            // On a busy host little was in the pipe, and the speed is as low as it can be shown.
            let is_lowest = seen.text().contains(" at 0.0 MiB/s");
            now.is_some() && (now != before || is_lowest)
        });
    }
    pty.press("\u{3}");
    assert_eq!(pty.end().code(), Some(0));
    let seen = pty.wait_until_gone(" read at ");
    assert!(!seen.text().contains("ending"), "{}", seen.text());
    drop(pipe);
}

/// A place with a log that takes long, which without content takes no room on the disk.
fn with_a_long_log() -> Place {
    let place = Place::new();
    let file = File::create(place.path("long.log")).unwrap();
    file.set_len(1 << 40).unwrap();
    place
}

#[test]
fn who_watches_sees_how_far_a_file_is_read() {
    if !support::has_program("setsid") {
        return;
    }
    let place = with_a_long_log();
    for words in ["long.log > out", "- < long.log > out"] {
        let mut pty = watched(&place, words);
        pty.wait_for(|seen| {
            let text = seen.text();
            text.contains(" of 1 TiB at ") && text.contains(" left")
        });
        pty.press("\u{3}");
        assert_eq!(pty.end().code(), Some(0));
        pty.wait_until_gone(" of 1 TiB");
    }
}

#[test]
fn where_the_lines_may_come_to_the_same_terminal_there_is_no_bar() {
    if !support::has_program("setsid") {
        return;
    }
    let place = with_a_long_log();
    for words in ["long.log", "long.log | cat"] {
        let mut pty = watched(&place, words);
        std::thread::sleep(Duration::from_millis(2500));
        pty.press("\u{3}");
        pty.end();
        let written = String::from_utf8_lossy(&pty.written()).into_owned();
        assert!(!written.contains(" of 1 TiB"), "{written:?}");
    }
}

#[test]
fn that_all_is_idle_is_said_of_a_log_too() {
    let place = Place::new();
    let path = place.path("idle.log");
    let report = "Device r/s w/s await %util\nsda 0.00 0.00 0.00 0.00\n\n";
    std::fs::write(&path, report.repeat(20)).unwrap();
    let path = path.to_str().unwrap();
    let said = parse(path, &["--plain"]).ends_with(0);
    assert_eq!(said.out.lines().count(), 1, "{said:#?}");
    assert!(said.out.contains("the only device is idle"), "{said:#?}");
    // Who names a device sees it.
    let said = parse(path, &["--plain", "sda"]).ends_with(0);
    assert!(!said.out.contains("idle"), "{said:#?}");
}

#[test]
fn years_that_cannot_be_are_no_panic() {
    let place = Place::new();
    let path = place.path("far.log");
    let report = |year: &str| {
        format!("{year}-01-01 00:00:00\nDevice r/s w/s await %util\nsda 1.00 1.00 1.00 1.00\n\n")
    };
    let years = ["1970", "2026", "9999", "1971", "9999"];
    std::fs::write(&path, years.map(report).concat()).unwrap();
    let said = parse(path.to_str().unwrap(), &["--zone", "UTC"]).ends_with(0);
    assert!(said.out.contains("was set back by"), "{said:#?}");
}

#[test]
fn what_is_no_log_is_refused() {
    parse(&fixture("README.md"), &[]).refuses(&["holds no report of iostat"]);
    parse("/no/such/log", &[]).refuses(&["/no/such/log cannot be read"]);
    parse("/", &[]).refuses(&["/ cannot be read: it is a directory"]);
    parse(&fixture("12.6-x.txt"), &["--all", "--interval", "1s"]).refuses(&["--interval"]);
    Place::new()
        .run(&["watch", "--dates", "dmy"])
        .refuses(&["--parse"]);
}

#[test]
fn a_device_that_the_log_does_not_have_is_named() {
    let said = parse(&fixture("12.6-x.txt"), &["vda", "/dev/sdq"]).ends_with(0);
    assert!(said.out.contains("vda") && !said.out.contains("loop0"));
    assert!(said.err.contains("has no device sdq"), "{said:#?}");
}
