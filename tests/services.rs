//! Services: their units, their configuration, and a verb that runs by it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use support::{Place, Running, TIMEOUT, has_program, names_in, said, skipped};

/// Folder of what is packaged.
fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

#[test]
fn the_configuration_that_is_packaged_is_well() {
    let files = packaging().join("config");
    let files: Vec<String> = names_in(&files)
        .iter()
        .map(|name| files.join(name).display().to_string())
        .collect();
    assert_eq!(files.len(), 4, "{files:?}");
    let words: Vec<&str> = files.iter().map(String::as_str).collect();
    let place = Place::new();
    let checked = place
        .run(&[&["config", "check"], &words[..]].concat())
        .ends_with(0);
    assert_eq!(checked.out.matches(": well\n").count(), 4, "{checked:#?}");
    let words = [&["config", "check", "--json"], &words[..]].concat();
    let document = place.run(&words).ends_with(0).json();
    assert_eq!(document["problems"].as_array().unwrap().len(), 0);
}

#[test]
fn what_is_wrong_is_named_by_file_line_and_reason() {
    let place = Place::new();
    for (text, line, reason) in [
        (
            "record = true\n\nintervall = \"1s\"\n",
            Some(3),
            "'intervall' is not an option",
        ),
        (
            "record = true\ninterval = \"soon\"\n",
            Some(2),
            "invalid value 'soon'",
        ),
        ("record = maybe\n", Some(1), "line 1"),
        ("record-limit = \"1GiB\"\n", None, "--record"),
    ] {
        fs::write(place.path("watch.toml"), text).unwrap();
        let checked = place.run(&["config", "check", "watch.toml"]).ends_with(1);
        let begins = match line {
            Some(line) => format!("watch.toml:{line}: "),
            None => "watch.toml: ".to_owned(),
        };
        assert!(checked.out.starts_with(&begins), "{checked:#?}");
        assert!(checked.out.contains(reason), "{checked:#?}");
        let words = ["config", "check", "watch.toml", "--json"];
        let document = place.run(&words).ends_with(1).json();
        assert_eq!(document["problems"][0]["line"].as_u64(), line);
        place
            .run(&["service", "watch", "--config", "watch.toml"])
            .refuses(&[reason]);
    }
    fs::write(place.path("what.toml"), "").unwrap();
    let checked = place.run(&["config", "check", "what.toml"]).ends_with(1);
    assert!(
        checked.out.contains("no service is named 'what'"),
        "{checked:#?}"
    );
    place
        .run(&["config", "check", "missing.toml"])
        .refuses(&["missing.toml cannot be read"]);
}

/// systemd's side of `Type=notify`.
struct Manager(UnixDatagram);

impl Manager {
    fn at(path: &Path) -> Manager {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Manager(socket)
    }

    fn state(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self.0.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }
}

#[test]
fn a_service_reports_that_it_is_ready_reads_its_file_again_and_ends() {
    let place = Place::new();
    let config = place.path("watch.toml");
    fs::write(&config, "record = true\ninterval = \"100ms\"\n").unwrap();
    // Its path is short, as a socket's has to be.
    let folder = tempfile::tempdir().unwrap();
    let manager = Manager::at(&folder.path().join("notify"));
    let mut command = place.command(&["service", "watch", "--config", "watch.toml"]);
    command.env("NOTIFY_SOCKET", folder.path().join("notify"));
    let mut running = Running::start(&mut command);
    assert_eq!(manager.state(), "READY=1");

    // The same process goes on, with the options of now.
    fs::write(
        &config,
        "record = true\njson = true\ninterval = \"100ms\"\n",
    )
    .unwrap();
    running.signal(Signal::HUP);
    assert_eq!(manager.state(), "RELOADING=1");
    assert_eq!(manager.state(), "READY=1");
    running.wait_for_text("\"kind\":\"sample\"");

    running.signal(Signal::INT);
    running.end().ends_with(0);
    let document = place
        .run(&["runs", "recordings", "--json"])
        .ends_with(0)
        .json();
    // The first may have ended before its first sample.
    assert!(!document["recordings"].as_array().unwrap().is_empty());
}

/// It reads its routes again without an end, so that a later end is one.
#[test]
fn a_tally_that_has_reloaded_ends_all_the_same() {
    let place = Place::new();
    fs::write(place.path("events.log"), "").unwrap();
    let config = "from = [\"events.log\"]\nfollow = true\nstore = \"sqlite:tally.db\"\n";
    fs::write(place.path("tally.toml"), config).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let manager = Manager::at(&folder.path().join("notify"));
    let mut command = place.command(&["service", "tally", "--config", "tally.toml"]);
    command.env("NOTIFY_SOCKET", folder.path().join("notify"));
    let running = Running::start(&mut command);
    assert_eq!(manager.state(), "READY=1");
    running.signal(Signal::HUP);
    running.signal(Signal::INT);
    running.end().ends_with(0);
    manager.0.set_nonblocking(true).unwrap();
    assert!(manager.0.recv(&mut [0]).is_err());
}

/// Exposure of a unit as systemd judges it: 0 (none) to 10.
fn exposure(unit: &Path) -> f64 {
    let mut command = Command::new("systemd-analyze");
    let judged = said(
        command
            .args(["security", "--offline=true", "--no-pager"])
            .arg(unit),
    );
    let line = judged
        .out
        .lines()
        .find(|line| line.contains("Overall exposure level"));
    let line = line.unwrap_or_else(|| panic!("{judged:#?}"));
    let (_, level) = line.split_once("service: ").unwrap();
    level.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn services_that_need_no_device_have_no_rights() {
    if !has_program("systemd-analyze") {
        return skipped("systemd-analyze");
    }
    let folder = packaging().join("systemd");
    for name in ["watch", "tally", "serve"] {
        let unit = folder.join(format!("disksmith-{name}.service"));
        let level = exposure(&unit);
        assert!(level <= 3.0, "{name}: {level}");
        let text = fs::read_to_string(&unit).unwrap();
        for line in [
            "Type=notify",
            "DynamicUser=yes",
            "CapabilityBoundingSet=",
            "Restart=on-failure",
        ] {
            assert!(text.lines().any(|found| found == line), "{name}: no {line}");
        }
    }
    // It reads members and steers md; with root's rights alone it would be 9.
    assert!(exposure(&folder.join("disksmith-scrub.service")) <= 5.0);
}

#[test]
fn systemd_understands_the_units() {
    if !has_program("systemd-analyze") {
        return skipped("systemd-analyze");
    }
    let place = Place::new();
    let program = assert_cmd::cargo::cargo_bin!("disksmith")
        .display()
        .to_string();
    let mut copies = Vec::new();
    for name in names_in(&packaging().join("systemd")) {
        let text = fs::read_to_string(packaging().join("systemd").join(&name)).unwrap();
        let copy = place.path(&name);
        // The program of the package may not be installed here.
        fs::write(&copy, text.replace("/usr/bin/disksmith", &program)).unwrap();
        copies.push(copy);
    }
    let mut command = Command::new("systemd-analyze");
    command
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .args(copies);
    let verified = said(&mut command).ends_with(0);
    let ours: Vec<&str> = verified
        .err
        .lines()
        .filter(|line| line.contains("disksmith"))
        .collect();
    assert_eq!(ours, [""; 0]);
}

#[test]
fn ansible_understands_the_role() {
    if !has_program("ansible-playbook") {
        return skipped("ansible-playbook");
    }
    let mut command = Command::new("ansible-playbook");
    let folder = packaging().join("ansible");
    command
        .args(["--syntax-check", "-i", "localhost,", "site.yml"])
        .current_dir(folder);
    said(&mut command).ends_with(0);
}
