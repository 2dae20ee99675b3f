//! Races of real hosts, whose disks are held to limits that are known.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::host;
use crate::loops::{Other, skipped};
use crate::net::{Disk, Net, Wish, Wrong};
use crate::support::{Running, has_program, said};

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

#[test]
#[ignore = "long proof: make prove"]
fn root_races_sixteen_hosts_of_which_most_are_not_as_they_should_be() {
    let wrong = |wrong: Wrong| Wish {
        disk: Disk::None,
        iops: None,
        more: &[],
        wrong,
    };
    let mut wishes: Vec<Wish> = [900, 820, 750, 600, 550, 500, 100, 60].map(disk).into();
    wishes.extend([
        // It drops after a minute, is cut off after a minute, and is slow at times.
        disk(1000),
        disk(950),
        disk(1100),
        wrong(Wrong::Dead),
        wrong(Wrong::Key),
        wrong(Wrong::Full),
        wrong(Wrong::ReadOnly),
        Wish {
            wrong: Wrong::NoExec,
            ..disk(400)
        },
    ]);
    let Some(net) = Net::new(&wishes) else {
        return;
    };
    let options = ["--keep", "3", "--round", "3s", "--rounds", "45", "--json"];
    let floor = ["--floor", "page-read.iops>=80 for 9s"];
    let mut command = net.fleet("race", &[&options[..], &floor].concat(), &ONE);
    let running = Running::start(&mut command);
    net.wait_on("h11", ROUNDS, Duration::from_secs(90));
    for minute in 0..3 {
        std::thread::sleep(Duration::from_secs(30));
        net.slow_down("h11", 120);
        std::thread::sleep(Duration::from_secs(7));
        net.slow_down("h11", 1100);
        if minute == 1 {
            net.slow_down("h9", 150);
            net.cut("h10");
        }
    }
    let answer = running.end().ends_with(0).json();
    for name in ["h1", "h2", "h3"] {
        let (decided, reason) = decision(&answer, name);
        assert_eq!(decided, "keep", "{name}: {reason}");
    }
    for (number, words) in [
        (4, &["cull"][..]),
        (5, &["cull"]),
        (6, &["cull"]),
        (7, &["cull"]),
        (8, &["floor"]),
        (9, &["cull"]),
        (10, &["failed"]),
        (11, &["cull"]),
        (12, &["unreachable"]),
        (13, &["unreachable"]),
        (14, &["unreachable"]),
        (15, &["unreachable"]),
        (16, &["cull"]),
    ] {
        let (decided, reason) = decision(&answer, &format!("h{number}"));
        assert!(words.contains(&decided), "h{number}: {decided}: {reason}");
    }
    net.mend("h10");
    net.assert_nothing_left();
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

/// An EC2 of this machine: moto's, asked by the real `aws`.
struct Moto<'a> {
    net: &'a Net,
    _server: Other,
}

impl<'a> Moto<'a> {
    /// `None`, with a note, where one of them is not installed.
    fn start(net: &'a Net) -> Option<Moto<'a>> {
        for program in ["moto_server", "aws"] {
            if !has_program(program) {
                skipped(&format!(
                    "{program} is not installed (moto and awscli of PyPI)"
                ));
                return None;
            }
        }
        let mut server = net.near(&["moto_server", "-H", "127.0.0.1", "-p", "5000"]);
        let moto = Moto {
            net,
            _server: Other::start(&mut server),
        };
        let began = Instant::now();
        while moto.aws(&["ec2", "describe-vpcs"]).is_none() {
            assert!(
                began.elapsed() < Duration::from_secs(120),
                "moto does not answer"
            );
            std::thread::sleep(Duration::from_millis(500));
        }
        Some(moto)
    }

    /// How a program asks this EC2.
    fn ask<'b>(&self, command: &'b mut Command) -> &'b mut Command {
        command
            .env("AWS_ENDPOINT_URL", "http://127.0.0.1:5000")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
    }

    fn aws(&self, words: &[&str]) -> Option<Value> {
        let mut command = self.net.near(&[&["aws"], words].concat());
        let output = self.ask(&mut command).output().unwrap();
        output.status.success().then(|| {
            let text = String::from_utf8(output.stdout).unwrap();
            serde_json::from_str(&text).unwrap_or(Value::Null)
        })
    }

    /// Starts an instance that is this host, with another tag; its id.
    fn instance(&self, subnet: &str, number: usize, tag: &str) -> String {
        let address = format!("10.77.{number}.2");
        let tags = format!(
            "ResourceType=instance,Tags=[{{Key=role,Value=burnin}},{{Key=Name,Value=h{number}}},\
             {{Key={tag},Value=1}}]"
        );
        let words = [
            &[
                "ec2",
                "run-instances",
                "--image-id",
                "ami-12c6146b",
                "--count",
                "1",
            ][..],
            &["--instance-type", "t2.micro", "--subnet-id", subnet],
            &[
                "--private-ip-address",
                &address,
                "--tag-specifications",
                &tags,
            ],
        ]
        .concat();
        let answer = self.aws(&words).unwrap();
        answer["Instances"][0]["InstanceId"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn state(&self, id: &str) -> String {
        let answer = self.aws(&["ec2", "describe-instances", "--instance-ids", id]);
        let answer = answer.unwrap();
        let instance = &answer["Reservations"][0]["Instances"][0];
        instance["State"]["Name"].as_str().unwrap().to_owned()
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn root_terminates_through_the_real_aws() {
    let Some(net) = Net::new(&[disk(800), disk(300), disk(200)]) else {
        return;
    };
    let Some(moto) = Moto::start(&net) else {
        return;
    };
    let network = "10.77.0.0/16";
    let vpc = moto
        .aws(&["ec2", "create-vpc", "--cidr-block", network])
        .unwrap();
    let vpc = vpc["Vpc"]["VpcId"].as_str().unwrap().to_owned();
    let create = [
        "ec2",
        "create-subnet",
        "--vpc-id",
        &vpc,
        "--cidr-block",
        network,
    ];
    let subnet = moto.aws(&create).unwrap();
    let subnet = subnet["Subnet"]["SubnetId"].as_str().unwrap().to_owned();
    let best = moto.instance(&subnet, 1, "a");
    let bad = moto.instance(&subnet, 2, "a");
    let tagged = moto.instance(&subnet, 3, "keep");
    let options = [
        "--keep",
        "1",
        "--round",
        "1s",
        "--rounds",
        "5",
        "--terminate",
        "--yes",
        "--json",
    ];
    let ec2 = ["--ec2", "Name=tag:role,Values=burnin"];
    let mut command = net.fleet_of(ec2, "race", &options, &ONE);
    let answer = said(moto.ask(&mut command)).ends_with(0).json();
    assert_eq!(answer["terminated"][0]["id"], *bad, "{answer:#}");
    assert_eq!(moto.state(&best), "running");
    assert_eq!(moto.state(&tagged), "running");
    assert!(["shutting-down", "terminated"].contains(&moto.state(&bad).as_str()));
    net.assert_nothing_left();
}

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
