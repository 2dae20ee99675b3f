//! The verb `watch`, through the real program on the real host. Timing is the host's own; nothing
//! here depends on what its disks do meanwhile.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::io::Read as _;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;
use support::documents::all as lines;
use support::{Place, Running};

#[test]
fn json_lines_have_these_keys_of_these_types() {
    let said = Place::new()
        .run("watch --json --all --count 2 --interval 100ms")
        .ends_with(0);
    let lines = lines(&said.out);
    assert_eq!(lines[0]["kind"], "start");
    assert_eq!(lines[0]["command"], "watch");
    let samples: Vec<&Value> = lines
        .iter()
        .filter(|line| line["kind"] == "sample")
        .collect();
    assert_eq!(samples.len(), 2, "{said:#?}");
    for sample in samples {
        assert_eq!(sample["schema"], 1);
        assert!(sample["time"].is_string());
        assert!(sample["length_ns"].as_u64().unwrap() >= 10_000_000);
        for device in sample["devices"].as_array().unwrap() {
            assert!(
                device["id"].is_u64() && device["name"].is_string(),
                "{device}"
            );
            for kind in ["read", "write", "discard", "flush", "all"] {
                let iops = &device[kind]["iops"];
                assert!(iops.is_f64() || iops.is_null(), "{device}");
            }
        }
    }
}

#[test]
fn plain_lines_fit_and_know_the_devices_that_are_named() {
    let place = Place::new();
    // Loop devices and memory that were never used are not shown.
    let counters = std::fs::read_to_string("/proc/diskstats").unwrap_or_default();
    let is_used = |line: &&str| {
        let mut words = line.split_whitespace().skip(3);
        words.next().is_some_and(|reads| reads != "0")
    };
    let used = counters.lines().filter(is_used);
    let mut names = used.filter_map(|line| line.split_whitespace().nth(2));
    // Loop devices come and go with other tests.
    let Some(name) = names.find(|name| !name.starts_with("loop")) else {
        support::skipped("no block device was used here");
        return;
    };
    let arguments = format!("watch {name} --count 1 --interval 100ms");
    let said = place.run(&arguments).ends_with(0);
    let is_row = |line: &&str| !line.starts_with(['!', '*', '-', '#']);
    let rows: Vec<&str> = said.out.lines().filter(is_row).collect();
    assert!(rows.len() >= 2 && rows[0].starts_with("time "), "{said:#?}");
    assert!(rows[1..].iter().any(|row| row.contains(name)), "{said:#?}");
    for line in rows {
        assert!(line.chars().count() <= 140, "{line}");
    }
    place
        .run("watch no-such-disk")
        .refuses(&["no-such-disk is not a block device"]);
}

#[test]
fn ctrl_c_ends_it_quietly_and_well() {
    let place = Place::new();
    let mut running = Running::start(&mut place.command("watch --json --interval 100ms"));
    running.wait_for_text("\"sample\"");
    running.signal(Signal::INT);
    let said = running.end().ends_with(0);
    assert!(!said.err.contains("disksmith:"), "{said:#?}");
    assert!(!lines(&said.out).is_empty());
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let place = Place::new();
    let mut child = place
        .command("watch --json --all --interval 100ms")
        .spawn()
        .unwrap();
    let mut first = [0; 16];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{ended:#?}");
}

#[test]
fn an_interval_that_is_too_short_is_refused() {
    let place = Place::new();
    place
        .run("watch --interval 50ms")
        .refuses(&["at least 100ms"]);
    place.run("watch --count 0").refuses(&["0"]);
}

#[test]
fn a_check_is_one_line_with_performance_data_and_a_status() {
    let place = Place::new();
    let arguments = "watch --check --count 1 --interval 100ms";
    let said = place.run(arguments);
    assert!(matches!(said.status, Some(0..=3)), "{said:#?}");
    assert_eq!(said.out.lines().count(), 1, "{said:#?}");
    assert!(
        said.out.starts_with("DISKSMITH ") && said.out.contains(" | "),
        "{said:#?}"
    );
    let unknown = place.run("watch no-such-disk --check").ends_with(3);
    assert!(
        unknown.out.starts_with("DISKSMITH UNKNOWN - no-such-disk"),
        "{unknown:#?}"
    );
    // Status 2 would be taken for a critical state of the disks.
    for wrong in [
        vec!["watch", "--check", "--bogus"],
        vec!["watch", "--warning", "busy=x", "--check"],
        vec!["watch", "--check", "--parse", "x"],
        vec!["watch", "--check", "-w", "await=20:10"],
    ] {
        let said = place.run(&wrong).ends_with(3);
        assert_eq!(said.out.lines().count(), 1, "{said:#?}");
        assert!(said.out.starts_with("DISKSMITH UNKNOWN - "), "{said:#?}");
        said.warns(&["--help"]);
    }
    let beyond = place
        .run("watch --check -w await=100 -c await=20")
        .ends_with(3);
    beyond.prints(&["lies beyond its critical"]);
    place.run("watch --bogus").ends_with(2);
    for version in ["-V", "--version"] {
        let said = place.run(&["watch", "--check", version]).ends_with(0);
        assert!(said.out.contains(env!("CARGO_PKG_VERSION")), "{said:#?}");
    }
}

/// It ends with what it saw, long before the intervals that it was told are over.
#[test]
fn a_check_that_has_a_second_answers_with_what_it_saw() {
    let Some(disk) = loops::Loop::new(8) else {
        return;
    };
    let began = Instant::now();
    let hour = "--count 36000 -t 1";
    let said = Place::new().run(&format!("watch {} --check {hour}", disk.name()));
    assert!(began.elapsed() < support::TIMEOUT, "{said:#?}");
    assert!(said.out.starts_with("DISKSMITH "), "{said:#?}");
    let rate = format!("'{}_iops'=", disk.name());
    let has_seen = said.out.split_whitespace().any(|word| {
        let value = word.strip_prefix(&rate);
        value.is_some_and(|value| !value.starts_with('U'))
    });
    assert!(has_seen, "{said:#?}");
}

#[test]
fn a_check_with_v_has_a_line_for_each_device() {
    let disks: Option<Vec<loops::Loop>> = (0..2).map(|_| loops::Loop::new(8)).collect();
    let Some(disks) = disks else {
        return;
    };
    let [first, second] = [disks[0].name(), disks[1].name()];
    let check = ["watch", &first, &second, "--check", "--count", "1"];
    for (more, lines) in [
        (&[][..], 1),
        (&["-v"], 3),
        (&["-vv"], 3),
        (&["--verbose"], 3),
    ] {
        let said = Place::new().run(&[&check, more].concat());
        let shown: Vec<&str> = said.out.lines().collect();
        let of_devices = shown.iter().filter(|line| {
            let of =
                |disk: &String| line.starts_with(&format!("{disk}: ")) && line.contains("await ");
            of(&first) || of(&second)
        });
        assert_eq!(of_devices.count(), lines - 1, "{said:#?}");
        assert!(
            shown[0].starts_with("DISKSMITH ") && shown[0].contains(" | "),
            "{said:#?}"
        );
    }
}

/// Debian's negate swaps what the plugin answers, and its word where it is told to.
#[test]
fn the_plugin_s_answer_is_negated_by_monitoring_plugins() {
    let negate = "/usr/lib/nagios/plugins/negate";
    if !std::path::Path::new(negate).exists() {
        support::skipped("monitoring-plugins-basic is not installed");
        return;
    }
    let place = Place::new();
    let check = |before: &[&str], after: &[&str]| {
        let own = place.command("watch --check --count 1 --interval 100ms");
        let mut command = std::process::Command::new(negate);
        command
            .args(before)
            .arg(std::fs::canonicalize(own.get_program()).unwrap());
        command.args(own.get_args()).args(after);
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        support::output_of(&mut command)
    };
    // A disk of its own, which does nothing: what others do is no matter of it.
    let Some(disk) = loops::Loop::new(8) else {
        return;
    };
    let disk = disk.name();
    let patient = ["-s", "-t", "600"];
    let said = check(&patient, &["no-such-disk"]);
    // Unknown stays so.
    assert_eq!(said.status, Some(3), "{said:#?}");
    for (range, status, word) in [
        // Critical is well, well is critical, and a warning stays one.
        ("-c iops=@0:1000000000", 0, "OK"),
        ("-c iops=1000000000", 2, "CRITICAL"),
        ("-w iops=@0:1000000000", 1, "WARNING"),
    ] {
        let words: Vec<&str> = range.split(' ').chain([disk.as_str()]).collect();
        let said = check(&patient, &words);
        assert_eq!(said.status, Some(status), "{range}: {said:#?}");
        let begins = format!("DISKSMITH {word} - ");
        assert!(said.out.starts_with(&begins), "{range}: {said:#?}");
        assert!(said.out.contains(" | '"), "{range}: {said:#?}");
    }
}

/// As udev makes them in `/dev/disk/by-id`, which is other tests'.
#[test]
fn a_link_to_a_disk_is_as_good_as_its_name() {
    let Some(disk) = loops::Loop::new(8) else {
        return;
    };
    let place = Place::new();
    let folder = tempfile::tempdir_in("/dev").unwrap();
    let link = folder.path().join("nvme-Samsung_S1");
    std::os::unix::fs::symlink(disk.path(), &link).unwrap();
    for line in [
        "watch LINK --json --count 1 --interval 100ms",
        "bench LINK --json --phase page-read --seconds 200ms",
        "warm LINK --json",
    ] {
        let words: Vec<&str> = line
            .split(' ')
            .map(|word| match word {
                "LINK" => link.to_str().unwrap(),
                word => word,
            })
            .collect();
        let said = place.run(&words).ends_with(0);
        assert!(said.out.contains(&disk.name()), "{said:#?}");
    }
}
