//! Instances that a race ends: of a script instead of `aws`, and of moto's EC2 by the real one.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::loops::{Other, skipped};
use crate::net::{HostFault, HostSetup, Net};
use crate::race::{ONE, decision, disk};
use crate::support::{has_program, output_of, write_script};

/// Answers as `aws` does for four instances, of which one is tagged, and writes down what it was asked.
const AWS: &str = r#"#!/bin/sh
echo "$*" >> asked
instance() {
    echo '{"InstanceId": "i-000'$1'", "InstanceType": "i4i.large", "State": {"Name": "running"},
        "PrivateIpAddress": "10.77.'$1'.2", "LaunchTime": "2020-01-01T00:00:00+00:00", "Placement": {"AvailabilityZone": "us-east-1a"},
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

    /// Environment by which a program reaches this EC2.
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
    let Some(net) = Net::undisturbed(&[disk(800), disk(60), disk(40)]) else {
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
    let answer = output_of(moto.ask(&mut command)).ends_with(0).json();
    assert_eq!(answer["terminated"][0]["id"], *bad, "{answer:#}");
    assert_eq!(moto.state(&best), "running");
    assert_eq!(moto.state(&tagged), "running");
    assert!(["shutting-down", "terminated"].contains(&moto.state(&bad).as_str()));
    net.assert_nothing_left();
}

#[test]
fn root_terminates_what_the_race_found_bad_and_nothing_else() {
    // The second is bad, also where a busy host takes most of what the first has; the third is too, and tagged; the
    // fourth is never reached.
    let dead = HostSetup {
        wrong: HostFault::Dead,
        ..disk(500)
    };
    let Some(net) = Net::undisturbed(&[disk(800), disk(60), disk(40), dead]) else {
        return;
    };
    let aws = net.place.path("aws");
    write_script(&aws, AWS);
    let path = format!(
        "{}:{}",
        net.place.path("").display(),
        std::env::var("PATH").unwrap()
    );
    let options = [
        "--keep",
        "1",
        "--round",
        // A disk of 40 IOPS answers in it beside a busy neighbour too.
        "2s",
        "--rounds",
        "5",
        "--json",
        "--terminate",
    ];
    let ec2 = ["--ec2", "Name=tag:role,Values=burnin"];
    let race = |words: &[&str]| {
        let all = [&options[..], words].concat();
        let mut command = net.fleet_of(ec2, "race", &all, &ONE);
        output_of(command.env("PATH", &path))
    };
    // Nobody is there to agree.
    race(&[]).refuses(&[
        "nothing is terminated before the plan is confirmed",
        "--yes",
    ]);
    let raced = race(&["--yes"]).ends_with(0);
    raced.warns(&[
        "h2 (i-0002): another is better",
        "h3 stays: it is tagged keep",
    ]);
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
    // One alone at first, and never one that is tagged.
    let first = format!("{command} i-0001 --dry-run");
    let others = format!("{command} i-0002 i-0004 --dry-run");
    let dry_run = format!("{command} i-0002 --dry-run");
    let done = format!("{command} i-0002");
    assert_eq!(terminations, [first.as_str(), &others, &dry_run, &done]);
    net.assert_nothing_left();
}
