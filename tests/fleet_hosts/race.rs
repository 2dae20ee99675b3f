//! Races of real hosts, whose disks are held to limits that are known.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::host;
use crate::net::{Disk, Net, Wish, Wrong};
use crate::support::{Running, said};

/// A host with a disk of so many requests a second.
const fn disk(iops: u64) -> Wish {
    Wish {
        disk: Disk::Mounted(24),
        iops: Some(iops),
        more: &[],
        wrong: Wrong::Nothing,
    }
}

/// What is measured.
const ONE: [&str; 4] = ["--", "/mnt/data", "--size", "8M"];

/// Whose processes measure.
const ROUNDS: &str = "ps -eo args | grep '^disksmith rounds' || true";

fn decision<'a>(answer: &'a Value, name: &str) -> (&'a str, &'a str) {
    let host = host(answer, name);
    let word = |key: &str| host[key].as_str().unwrap();
    (word("decision"), word("reason"))
}

fn listed(net: &Net, name: &str) -> Vec<String> {
    let text = fs::read_to_string(net.place.path(name)).unwrap();
    let hosts = text.lines().filter(|line| !line.starts_with('#'));
    let name = |line: &str| line.split(' ').next().unwrap().to_owned();
    hosts.map(name).collect()
}

#[test]
fn root_races_hosts_of_which_two_are_the_best() {
    let wishes = [
        disk(900),
        disk(750),
        disk(500),
        // The slowest of all but those that miss the floor.
        disk(300),
        // The best, until it drops below the floor.
        disk(1200),
        // Below the floor.
        disk(60),
        Wish {
            wrong: Wrong::Dead,
            ..disk(900)
        },
        // It will be cut off.
        disk(1300),
    ];
    let Some(net) = Net::new(&wishes) else {
        return;
    };
    let options = [
        "--keep",
        "2",
        "--round",
        "1s",
        "--rounds",
        "14",
        "--floor",
        "page-read.iops>=100 for 2s",
        "--json",
    ];
    let mut command = net.fleet("race", &options, &ONE);
    let running = Running::start(&mut command);
    for name in ["h5", "h8"] {
        net.wait_on(name, ROUNDS, Duration::from_secs(60));
    }
    // All but the dead one are waited for, and then some rounds are measured.
    std::thread::sleep(Duration::from_secs(8));
    net.slow_down("h5", 50);
    net.cut("h8");
    let ended = running.end().ends_with(0);
    let answer = ended.json();
    assert_eq!(answer["command"], "fleet race");
    assert_eq!(answer["figure"], "page-read.iops");
    let kept: Vec<&str> = ["h1", "h2"].map(|name| decision(&answer, name).0).into();
    assert_eq!(kept, ["keep", "keep"], "{answer:#}");
    for (name, word, told) in [
        ("h3", "cull", "2 others are better"),
        ("h4", "cull", "2 others are better"),
        ("h5", "floor", "missed page-read.iops>=100 for 2s: it had"),
        ("h6", "floor", "missed page-read.iops>=100 for 2s: it had"),
        ("h7", "unreachable", "h7 was not reached"),
        ("h8", "failed", "missing in 4 rounds"),
    ] {
        let (decided, reason) = decision(&answer, name);
        assert_eq!(decided, word, "{name}: {reason}");
        assert!(reason.contains(told), "{name}: {reason}");
    }
    // The limits are known, so the figures are.
    for (name, limit) in [("h1", 900.0), ("h2", 750.0)] {
        let figure = host(&answer, name)["figure"]["value"].as_f64().unwrap();
        assert!((0.8..1.3).contains(&(figure / limit)), "{name}: {figure}");
    }
    // It was measured for some rounds before, and those that were behind less often than the best.
    assert!(
        host(&answer, "h5")["rounds"].as_u64().unwrap() > 2,
        "{answer:#}"
    );
    let rounds = |name: &str| host(&answer, name)["rounds"].as_u64().unwrap();
    assert!(rounds("h4") < rounds("h1"), "{answer:#}");
    assert_eq!(listed(&net, "keep.txt"), ["h1", "h2"]);
    let mut culled = listed(&net, "cull.txt");
    culled.sort();
    assert_eq!(culled, ["h3", "h4", "h5", "h6"]);
    net.mend("h8");
    let again = net
        .place
        .run(&["fleet", "show", "--json"])
        .ends_with(0)
        .json();
    assert_eq!(again["hosts"], answer["hosts"]);
    net.assert_nothing_left();
}

#[test]
fn root_culls_a_host_for_one_bad_disk_of_four() {
    let four = Wish {
        more: &[600, 600, 600],
        ..disk(600)
    };
    let bad = Wish {
        more: &[900, 200, 900],
        ..disk(900)
    };
    let Some(net) = Net::new(&[four, bad, four, disk(900)]) else {
        return;
    };
    let disks = [
        "--",
        "/mnt/data",
        "/mnt/d2",
        "/mnt/d3",
        "/mnt/d4",
        "--size",
        "8M",
    ];
    let options = ["--keep", "2", "--round", "1s", "--rounds", "8"];
    let raced = said(&mut net.fleet("race", &options, &disks)).ends_with(0);
    raced.fits(100);
    let answer = net
        .place
        .run(&["fleet", "show", "--json"])
        .ends_with(0)
        .json();
    for name in ["h1", "h3"] {
        assert_eq!(decision(&answer, name).0, "keep", "{answer:#}");
    }
    let (decided, reason) = decision(&answer, "h2");
    assert_eq!(decided, "cull", "{reason}");
    let bad = host(&answer, "h2");
    assert_eq!(bad["worst_target"]["path"], "/mnt/d3", "{bad:#}");
    let figure = bad["figure"]["value"].as_f64().unwrap();
    assert!((140.0..240.0).contains(&figure), "{figure}");
    // It has one disk only, and so nothing that could be raced.
    let (decided, reason) = decision(&answer, "h4");
    assert_eq!(decided, "failed", "{reason}");
    assert!(reason.contains("/mnt/d2"), "{reason}");
    net.assert_nothing_left();
}

#[test]
fn root_ends_a_race_with_a_signal_and_starts_none_twice() {
    let Some(net) = Net::new(&[disk(400), disk(300)]) else {
        return;
    };
    let options = ["--keep", "1", "--round", "1s", "--json"];
    let mut command = net.fleet("race", &options, &ONE);
    let running = Running::start(&mut command);
    net.wait_on("h1", ROUNDS, Duration::from_secs(60));
    net.wait_on("h2", ROUNDS, Duration::from_secs(60));
    std::thread::sleep(Duration::from_secs(4));
    said(&mut net.fleet("race", &options, &ONE)).refuses(&["the race", "is under way on h1"]);
    // Another ledger does not know it; the hosts do.
    let mut other = net.fleet("race", &options, &ONE);
    let elsewhere = net.place.path("other.db");
    let other = said(other.env("DISKSMITH_LEDGER", elsewhere)).ends_with(2);
    assert!(
        other.out.contains("another race is measuring /mnt/data"),
        "{other:#?}"
    );
    running.signal(Signal::INT);
    let ended = running.end().ends_with(3);
    assert!(ended.err.contains("neither list was written"), "{ended:#?}");
    let answer = ended.json();
    assert_eq!(answer["interrupted"], true, "{answer:#}");
    assert!(answer["rounds"].as_u64().unwrap() >= 2, "{answer:#}");
    assert_eq!(decision(&answer, "h1").0, "open", "{answer:#}");
    assert!(!net.place.path("keep.txt").exists());
    net.assert_nothing_left();
    assert_eq!(net.on("h1", "ls /mnt/data"), "lost+found");
}

/// Answers as `aws` does for four instances, of which one is tagged, and writes down what it was asked.
const AWS: &str = r#"#!/bin/sh
echo "$*" >> asked
instance() {
    echo '{"InstanceId": "i-000'$1'", "InstanceType": "i4i.large", "State": {"Name": "running"},
        "PrivateIpAddress": "10.77.'$1'.2", "Placement": {"AvailabilityZone": "us-east-1a"},
        "Tags": [{"Key": "Name", "Value": "h'$1'"}, {"Key": "'$2'", "Value": ""}]}'
}
case "$*" in
*--dry-run*)
    echo 'An error occurred (DryRunOperation) when calling the TerminateInstances operation' >&2
    exit 254;;
*terminate-instances*)
    echo '{"TerminatingInstances": [{"InstanceId": "i-0002",
        "CurrentState": {"Code": 32, "Name": "shutting-down"}}]}';;
*)
    echo "{\"Reservations\": [{\"Instances\": [
        $(instance 1 a), $(instance 2 a), $(instance 3 keep), $(instance 4 a)]}]}";;
esac
"#;

#[test]
fn root_terminates_what_the_race_found_bad_and_nothing_else() {
    // The second is bad; the third is too, and tagged; the fourth is never reached.
    let dead = Wish {
        wrong: Wrong::Dead,
        ..disk(500)
    };
    let Some(net) = Net::new(&[disk(800), disk(300), disk(200), dead]) else {
        return;
    };
    let aws = net.place.path("aws");
    fs::write(&aws, AWS).unwrap();
    fs::set_permissions(&aws, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        net.place.path("").display(),
        std::env::var("PATH").unwrap()
    );
    let options = [
        "--keep",
        "1",
        "--round",
        "1s",
        "--rounds",
        "5",
        "--json",
        "--terminate",
    ];
    let ec2 = ["--ec2", "Name=tag:role,Values=burnin"];
    let race = |words: &[&str]| {
        let all = [&options[..], words].concat();
        let mut command = net.fleet_of(ec2, "race", &all, &ONE);
        said(command.env("PATH", &path))
    };
    // Nobody is there to agree.
    race(&[]).refuses(&["nothing is terminated before somebody has agreed", "--yes"]);
    let raced = race(&["--yes"]).ends_with(0);
    for told in [
        "h2 (i-0002): another is better",
        "h3 stays: it is tagged keep",
    ] {
        assert!(raced.err.contains(told), "{raced:#?}");
    }
    let answer = raced.json();
    assert_eq!(decision(&answer, "h1").0, "keep", "{answer:#}");
    assert_eq!(decision(&answer, "h4").0, "unreachable", "{answer:#}");
    let terminated = answer["terminated"].as_array().unwrap();
    assert_eq!(terminated.len(), 1, "{answer:#}");
    assert_eq!(terminated[0]["id"], "i-0002");
    assert_eq!(terminated[0]["state"], "shutting-down");
    let asked = fs::read_to_string(net.place.path("asked")).unwrap();
    let terminations: Vec<&str> = asked
        .lines()
        .filter(|line| line.contains("terminate-instances"))
        .collect();
    let command = "ec2 terminate-instances --output json --instance-ids";
    let all = format!("{command} i-0001 i-0002 i-0003 i-0004 --dry-run");
    let rehearsed = format!("{command} i-0002 --dry-run");
    let done = format!("{command} i-0002");
    assert_eq!(terminations, [all.as_str(), &rehearsed, &done]);
    net.assert_nothing_left();
}
