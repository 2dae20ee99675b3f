//! `sweep --ec2`, through the real program: refusals with a script in the place of `aws`, and whole sweeps against
//! moto's EC2, asked by the real `aws`. moto attaches no disks: a loop device stands for each volume that it shows as
//! attached, under the link that udev makes for one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loops::Loop;
use rustix::process::Signal;
use serde_json::Value;
use support::lab::in_lab;
use support::moto::Moto;
use support::{Place, ProgramOutput, Running, TIMEOUT, Words, is_root, output_of, write_script};

const MIB: u64 = 1024;
const TAG: &str = "disksmith-sweep";
/// Short measurements of one phase.
const SHORT: [&str; 10] = [
    "--objective",
    "page-read.iops",
    "--seconds",
    "200ms",
    "--size",
    "8MiB",
    "--blocks",
    "2",
    "--precision",
    "0",
];

/// Answers for an instance; creating works in a dry run, and is written down otherwise.
const AWS: &str = r#"#!/bin/sh
case "$*" in
*describe-instances*i-0123*)
    echo '{"Reservations": [{"Instances": [{"InstanceId": "i-0123", "State": {"Name": "STATE"},
        "Placement": {"AvailabilityZone": "us-east-1a"}, "BlockDeviceMappings": [{"DeviceName": "/dev/sdf"}]}]}]}';;
*create-volume*--dry-run*)
    echo 'An error occurred (DRYRUN) when calling the CreateVolume operation: x' >&2
    exit 254;;
*describe-volumes*) echo '{"Volumes": []}';;
*) echo "$*" >> asked; exit 1;;
esac
"#;

fn with_script(place: &Place, script: &str, words: &(impl Words + ?Sized)) -> ProgramOutput {
    let programs = place.path("programs");
    fs::create_dir_all(&programs).unwrap();
    write_script(&programs.join("aws"), script);
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = place.command(words);
    output_of(command.env("PATH", format!("{}:{path}", programs.display())))
}

fn sweep<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["sweep"], words, &["--instance", "i-0123"], &SHORT[..]].concat()
}

#[test]
fn as_root_what_cannot_be_done_is_refused_before_anything_is_created() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let aws = AWS
        .replace("STATE", "running")
        .replace("DRYRUN", "DryRunOperation");
    let refuses = |aws: &str, words: &[&str], expected: &[&str]| {
        with_script(&place, aws, &sweep(words)).refuses(expected);
    };
    let gp3 = ["--ec2", "gp3:100GiB"];
    refuses(&aws, &gp3, &["nothing is created", "--yes"]);
    refuses(&aws, &[&gp3[..], &gp3].concat(), &["is named twice"]);
    refuses(&aws, &["--ec2", "2xgp3:100GiB"], &["2 volumes"]);
    refuses(&aws, &["--ec2", "gp9:100GiB"], &["no volume type 'gp9'"]);
    refuses(&aws, &["--ec2", "gp3:99.5GiB"], &["whole GiB"]);
    refuses(&aws, &["--ec2", "io2:100GiB"], &["iops="]);
    let many: Vec<String> = (1..=11).map(|nth| format!("gp3:{nth}GiB")).collect();
    let many: Vec<&str> = many
        .iter()
        .flat_map(|one| ["--ec2", one.as_str()])
        .collect();
    refuses(&aws, &many, &["10 of the names"]);
    let stopped = aws.replace("running", "stopped");
    refuses(&stopped, &gp3, &["i-0123 is stopped"]);
    let forbidden = aws.replace("DryRunOperation", "UnauthorizedOperation");
    refuses(&forbidden, &gp3, &["ec2:CreateVolume"]);
    // A program that knows no dry run may have created it.
    let careless = aws.replace("exit 254", "exit 0");
    refuses(&careless, &gp3, &["which a dry run never does"]);
    let other = with_script(&place, &aws, "sweep --ec2 gp3:1GiB --instance vol-1");
    assert_eq!(other.status, Some(2), "{other:#?}");
    let lost = ["sweep", "--abandon", "ec2-20260101-000000-bcdf"];
    with_script(&place, &aws, &lost).refuses(&["neither the ledger nor EC2"]);
    let plan = with_script(&place, &aws, &[&sweep(&gp3)[..], &["--dry-run"]].concat()).ends_with(0);
    plan.prints(&["gp3,iops=3000:100GiB", "us-east-1a", "i-0123", "USD"]);
    plan.fits(100);
    let plan = with_script(
        &place,
        &aws,
        &[&sweep(&gp3)[..], &["--dry-run", "--json"]].concat(),
    );
    let plan = plan.ends_with(0).json();
    assert_eq!(plan["volumes"][0]["gib"], 100);
    assert!(!place.path("asked").exists(), "something was created");
}

/// The hypervisor of moto's instance: attaches a loop device for each volume, and detaches it.
struct Hypervisor {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hypervisor {
    fn start(moto: &Arc<Moto>) -> Hypervisor {
        let ends = Arc::new(AtomicBool::new(false));
        let (asked, stop) = (Arc::clone(moto), Arc::clone(&ends));
        let serve = move || {
            let mut disks: BTreeMap<String, Disk> = BTreeMap::new();
            while !stop.load(Ordering::Relaxed) {
                let attached = of_state(&asked, "in-use");
                disks.retain(|id, _| attached.contains(id));
                for id in attached {
                    let there = disks.contains_key(&id);
                    if let Some(disk) = (!there).then(|| Disk::of(&id)).flatten() {
                        disks.insert(id, disk);
                    }
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        };
        Hypervisor {
            ends,
            thread: Some(std::thread::spawn(serve)),
        }
    }
}

impl Drop for Hypervisor {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A disk with the link of a volume.
struct Disk {
    link: PathBuf,
    _device: Loop,
}

impl Disk {
    fn of(id: &str) -> Option<Disk> {
        let device = Loop::new(MIB)?;
        let folder = Path::new("/dev/disk/by-id");
        fs::create_dir_all(folder).unwrap();
        let serial = id.replace('-', "");
        let link = folder.join(format!("nvme-Amazon_Elastic_Block_Store_{serial}"));
        std::os::unix::fs::symlink(device.path(), &link).unwrap();
        Some(Disk {
            link,
            _device: device,
        })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.link);
        // Only where this test has made them.
        let _ = fs::remove_dir("/dev/disk/by-id");
        let _ = fs::remove_dir("/dev/disk");
    }
}

/// Ids of the volumes of sweeps in a state.
fn of_state(moto: &Moto, state: &str) -> Vec<String> {
    let answer = moto.aws(&["ec2", "describe-volumes"]).unwrap_or_default();
    let volumes = answer["Volumes"].as_array().cloned().unwrap_or_default();
    let is_of_sweep = |volume: &&Value| {
        let tags = volume["Tags"].as_array();
        let tagged = tags.is_some_and(|tags| tags.iter().any(|tag| tag["Key"] == TAG));
        tagged && (state.is_empty() || volume["State"] == state)
    };
    let found = volumes.iter().filter(is_of_sweep);
    found
        .map(|volume| volume["VolumeId"].as_str().unwrap().to_owned())
        .collect()
}

/// moto with an instance, and a volume that no sweep has made.
fn cloud() -> Option<(Arc<Moto>, String, String)> {
    if !is_root() {
        return None;
    }
    let moto = Moto::start()?;
    let words = ["ec2", "run-instances", "--image-id", "ami-12c6146b"];
    let begun = moto.aws(&words).unwrap();
    let instance = begun["Instances"][0]["InstanceId"]
        .as_str()
        .unwrap()
        .to_owned();
    let zone = begun["Instances"][0]["Placement"]["AvailabilityZone"]
        .as_str()
        .unwrap();
    let words = [
        "ec2",
        "create-volume",
        "--size",
        "1",
        "--availability-zone",
        zone,
    ];
    let stranger = moto.aws(&words).unwrap()["VolumeId"]
        .as_str()
        .unwrap()
        .to_owned();
    Some((Arc::new(moto), instance, stranger))
}

fn arguments<'a>(instance: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    let types = ["sweep", "--ec2", "gp3:1GiB", "--ec2", "gp2:1GiB"];
    [
        &types[..],
        &["--instance", instance, "--yes"],
        &SHORT,
        words,
    ]
    .concat()
}

fn assert_only(moto: &Moto, stranger: &str) {
    assert_eq!(of_state(moto, ""), Vec::<String>::new());
    let words = ["ec2", "describe-volumes", "--volume-ids", stranger];
    let there = moto.aws(&words).unwrap();
    assert_eq!(there["Volumes"][0]["State"], "available", "{there}");
}

#[test]
#[ignore = "long proof: make prove"]
fn as_root_types_of_volumes_are_compared_and_all_are_deleted() {
    let (place, Some((moto, instance, stranger))) = (Place::new(), cloud()) else {
        return;
    };
    let hypervisor = Hypervisor::start(&moto);
    let words = arguments(&instance, &["--json"]);
    let swept = output_of(moto.ask(&mut place.command(&words))).ends_with(0);
    let document = swept.json();
    assert_eq!(document["over"], true, "{document}");
    let volumes = document["volumes"].as_array().unwrap();
    assert_eq!(volumes.len(), 2);
    for volume in volumes {
        assert_eq!(volume["runs"].as_array().unwrap().len(), 2, "{volume}");
        assert!(
            volume["figures"]["page-read.iops"]["mean"]
                .as_f64()
                .unwrap()
                > 0.0
        );
    }
    assert_only(&moto, &stranger);
    drop(hypervisor);
    let name = document["sweep"].as_str().unwrap();
    let shown = place.run(&["sweep", "--show", name, "--json"]).ends_with(0);
    assert_eq!(shown.json(), document);
    place.run(&["sweep", "--show", name]).ends_with(0).fits(100);
    let run = volumes[0]["runs"][0].as_str().unwrap();
    place.run(&["show", run]).ends_with(0);
}

#[test]
#[ignore = "long proof: make prove"]
fn as_root_a_volume_that_is_never_seen_is_deleted_too() {
    let (place, Some((moto, instance, stranger))) = (Place::new(), cloud()) else {
        return;
    };
    let words = arguments(&instance, &["--attach-timeout", "1s"]);
    let swept = output_of(moto.ask(&mut place.command(&words))).ends_with(3);
    swept.warns(&[
        "no disk of this host has the id",
        "all of its volumes are deleted",
    ]);
    assert_only(&moto, &stranger);
}

/// Starts a sweep that waits for a disk, and kills it; its name.
fn killed(place: &Place, moto: &Moto, instance: &str) -> String {
    let words = arguments(instance, &["--attach-timeout", "1h"]);
    let running = Running::start(moto.ask(&mut place.command(&words)));
    let began = Instant::now();
    while of_state(moto, "in-use").is_empty() {
        assert!(began.elapsed() < TIMEOUT, "nothing was attached");
    }
    running.signal(Signal::KILL);
    let _ = running.end();
    let answer = moto.aws(&["ec2", "describe-volumes"]).unwrap();
    let volumes = answer["Volumes"].as_array().unwrap();
    let tags = volumes
        .iter()
        .filter_map(|volume| volume["Tags"].as_array());
    let tag = tags.flatten().find(|tag| tag["Key"] == TAG).unwrap();
    tag["Value"].as_str().unwrap().to_owned()
}

#[test]
#[ignore = "long proof: make prove"]
fn as_root_what_a_killed_sweep_has_left_is_deleted_by_the_next_and_by_its_name() {
    let (place, Some((moto, instance, stranger))) = (Place::new(), cloud()) else {
        return;
    };
    let first = killed(&place, &moto, &instance);
    let words = arguments(&instance, &["--attach-timeout", "1s"]);
    let next = output_of(moto.ask(&mut place.command(&words))).ends_with(3);
    next.warns(&[&format!("the sweep {first} was killed")]);
    assert_only(&moto, &stranger);
    let second = killed(&place, &moto, &instance);
    let abandon = ["sweep", "--abandon", &second];
    output_of(moto.ask(&mut place.command(&abandon))).ends_with(0);
    assert_only(&moto, &stranger);
    // Its ledger is lost.
    let third = killed(&place, &moto, &instance);
    let elsewhere = Place::new();
    let abandon = ["sweep", "--abandon", &third];
    output_of(moto.ask(&mut elsewhere.command(&abandon))).refuses(&["is not touched"]);
    let abandon = [&abandon[..], &["--instance", &instance]].concat();
    output_of(moto.ask(&mut elsewhere.command(&abandon))).refuses(&["--yes"]);
    assert_eq!(of_state(&moto, "").len(), 2);
    let abandon = [&abandon[..], &["--yes"]].concat();
    output_of(moto.ask(&mut elsewhere.command(&abandon))).ends_with(0);
    assert_only(&moto, &stranger);
}

/// A volume of the lab has the id of moto's as its serial number. The machine has no network: its `aws` repeats what the
/// real one was answered, and moto is asked here in the words that were used there.
#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_devices_shows_a_volume_as_moto_has_it() {
    let (place, Some(moto)) = (Place::new(), Moto::start()) else {
        return;
    };
    let create = "ec2 create-volume --size 8 --volume-type gp3 --iops 4000 --throughput 200 \
                  --availability-zone us-east-1a --tag-specifications \
                  ResourceType=volume,Tags=[{Key=Name,Value=db}]";
    let create: Vec<&str> = create.split_whitespace().collect();
    let made = moto.aws(&create).unwrap();
    let id = made["VolumeId"].as_str().unwrap();
    let answer = moto.aws(&["ec2", "describe-volumes", "--volume-ids", id]);
    let answer = answer.unwrap();
    fs::write(place.path("answer.json"), answer.to_string()).unwrap();
    let script = r#"set -e; here=$PWD; mkdir programs
        printf '#!/bin/sh\necho "$@" >%s/asked; cat %s/answer.json\n' $here $here >programs/aws
        chmod 755 programs/aws
        PATH=$here/programs:$PATH disksmith devices --ec2 --json
        cat asked >&2"#;
    let volume = format!("serial={}:64MiB", id.replace('-', ""));
    let Some(said) = in_lab(
        &place,
        &["--volumes", &volume, "--copy", "answer.json"],
        script,
    ) else {
        return;
    };
    let said = said.ends_with(0);
    let asked = said.err.lines().find(|line| line.starts_with("ec2 "));
    let asked: Vec<&str> = asked.unwrap().split_whitespace().collect();
    assert_eq!(
        moto.aws(&asked).unwrap()["Volumes"],
        answer["Volumes"],
        "{asked:?}"
    );
    let document = said.json();
    let disks = document["devices"].as_array().unwrap();
    let disk = disks.iter().find(|disk| disk["name"] == "vda").unwrap();
    let volume = &disk["ec2"];
    for (key, value) in [
        ("volume", Value::from(id)),
        ("type", "gp3".into()),
        ("size_gib", 8.into()),
        ("iops", 4000.into()),
        ("throughput_mib_per_s", 200.into()),
        ("zone", "us-east-1a".into()),
    ] {
        assert_eq!(volume[key], value, "{key}: {disk:#}");
    }
    assert_eq!(volume["tags"]["Name"], "db");
}
