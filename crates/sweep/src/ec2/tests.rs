//! Sweeps of volume types against a simulated EC2.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::anyhow;
use jiff::Timestamp;
use linux::aws::Error;
use linux::exec::Exec;
use record::Bytes;
use serde_json::json;

use super::answer::compare;
use super::checkpoint::{
    RoundMeasurement, TypeSweepCheckpoint, VolumeSpec, VolumeStage, VolumeState,
};
use super::cleanup::clean;
use super::clock::SweepClock;
use super::cloud::{Ec2, HostInstance, TAG};
use super::rounds::{MeasuringHost, Rounds, free_names};
use crate::objective::Objective;
use crate::record::Value;
use crate::run::SweepEnd;
use ui::exit::Failure;

const SWEEP: &str = "ec2-20261128-101500-bcdf";
const INSTANCE: &str = "i-0123";

#[derive(Clone, Debug)]
struct Simulated {
    state: &'static str,
    attached: Option<String>,
    tags: BTreeMap<String, String>,
    gib: u64,
}

/// A simulated EC2.
#[derive(Default)]
struct World {
    volumes: BTreeMap<String, Simulated>,
    /// Calls that change something, in order.
    log: Vec<String>,
    /// The call that fails, and its error code.
    fails: Option<(&'static str, &'static str)>,
    /// Number of listings that do not show a new volume yet.
    unseen: usize,
    /// True if detaching never ends.
    stuck: bool,
}

impl World {
    fn put(&mut self, id: &str, tag: Option<&str>, attached: Option<&str>) {
        let tags = tag.map(|tag| (TAG.to_owned(), tag.to_owned()));
        let volume = Simulated {
            state: if attached.is_some() {
                "in-use"
            } else {
                "available"
            },
            attached: attached.map(str::to_owned),
            tags: tags.into_iter().collect(),
            gib: 100,
        };
        self.volumes.insert(id.to_owned(), volume);
    }

    fn answer(&mut self, program: &Exec) -> Result<Vec<u8>, Error> {
        let line = program.line().replace('\'', "");
        let words: Vec<&str> = line.split(' ').collect();
        let value = |option: &str| {
            let at = words.iter().position(|word| *word == option)?;
            words.get(at + 1).map(|word| (*word).to_owned())
        };
        let action = words[2];
        if let Some((failing, text)) = self.fails
            && failing == action
        {
            return Err(Error::of(text, &["ec2", action]));
        }
        let id = value("--volume-id").unwrap_or_default();
        if action != "describe-volumes" {
            let spec = value("--volume-type").unwrap_or_else(|| id.clone());
            self.log.push(format!("{action} {spec}"));
        }
        match action {
            "create-volume" => {
                let id = format!("vol-{:08x}", self.volumes.len());
                self.put(&id, Some(SWEEP), None);
                Ok(json!({ "VolumeId": id }).to_string().into_bytes())
            }
            "attach-volume" => {
                let volume = self.volumes.get_mut(&id).unwrap();
                assert_eq!(volume.state, "available");
                volume.state = "in-use";
                volume.attached = value("--instance-id");
                Ok(Vec::new())
            }
            "detach-volume" => {
                let stuck = self.stuck;
                let volume = self.volumes.get_mut(&id).unwrap();
                assert_eq!(volume.attached, value("--instance-id"));
                if !stuck {
                    volume.state = "available";
                    volume.attached = None;
                }
                Ok(Vec::new())
            }
            "delete-volume" => {
                let volume = self.volumes.get_mut(&id).unwrap();
                assert_eq!(volume.state, "available", "EC2 refuses this");
                volume.state = "deleting";
                Ok(Vec::new())
            }
            "describe-volumes" => Ok(self.listed(&value("--filters").unwrap())),
            other => panic!("{other} was not to be asked"),
        }
    }

    fn listed(&mut self, filter: &str) -> Vec<u8> {
        let (name, wanted) = filter.split_once(",Values=").unwrap();
        let by_tag = name.starts_with("Name=tag:");
        if by_tag && self.unseen > 0 {
            self.unseen -= 1;
            return b"{}".to_vec();
        }
        let is_wanted = |(id, volume): &(&String, &Simulated)| match by_tag {
            true => volume.tags.get(TAG).is_some_and(|tag| tag == wanted),
            false => *id == wanted,
        };
        let shown = self.volumes.iter().filter(is_wanted).map(|(id, volume)| {
            let tags = volume.tags.iter();
            let tags: Vec<_> = tags
                .map(|(key, value)| json!({ "Key": key, "Value": value }))
                .collect();
            let attachments = volume.attached.iter();
            let attachments: Vec<_> = attachments
                .map(|instance| json!({ "InstanceId": instance, "State": "attached" }))
                .collect();
            json!({ "VolumeId": id, "State": volume.state, "Size": volume.gib, "Tags": tags,
                "Attachments": attachments })
        });
        let shown: Vec<_> = shown.collect();
        json!({ "Volumes": shown }).to_string().into_bytes()
    }

    /// The volumes that are billed.
    fn left(&self) -> BTreeSet<&str> {
        let there = self.volumes.iter();
        there
            .filter(|(_, volume)| volume.state != "deleting")
            .map(|(id, _)| id.as_str())
            .collect()
    }
}

#[derive(Default)]
struct SimulatedClock(Duration);

impl SweepClock for SimulatedClock {
    fn now(&self) -> Duration {
        self.0
    }

    fn pause(&mut self, span: Duration) {
        self.0 += span;
    }
}

/// The host and its ledger.
struct Host {
    /// The last saved state.
    saved: TypeSweepCheckpoint,
    /// Number of saves before a simulated kill.
    saves: usize,
    /// Size of each disk in GiB; `None` if no disk is listed.
    disk: Option<u64>,
    blank: bool,
    measured: Vec<(String, usize)>,
    /// Number of measurements before a signal.
    signal_after: usize,
}

impl Host {
    fn of(checkpoint: &TypeSweepCheckpoint) -> Host {
        Host {
            saved: checkpoint.clone(),
            saves: usize::MAX,
            disk: Some(100),
            blank: true,
            measured: Vec::new(),
            signal_after: usize::MAX,
        }
    }
}

impl MeasuringHost for Host {
    fn find(&mut self, volume: &str) -> Option<(PathBuf, Bytes)> {
        Some((Path::new("/dev").join(volume), Bytes::gib(self.disk?)))
    }

    fn fill(&mut self, _: &Path) -> Result<(), String> {
        match self.blank {
            true => Ok(()),
            false => Err("the new volume is not written to: it carries ext4".to_owned()),
        }
    }

    fn measure(
        &mut self,
        disk: &Path,
        spec: usize,
        round: usize,
    ) -> Result<Option<RoundMeasurement>, Failure> {
        if self.measured.len() == self.signal_after {
            return Ok(None);
        }
        self.measured.push((disk.display().to_string(), round));
        Ok(Some(cell(spec, round, 1000.0 * (spec + 1) as f64)))
    }

    fn save(&mut self, checkpoint: &TypeSweepCheckpoint) -> Result<(), Failure> {
        if self.saves == 0 {
            return Err(Failure::Midway(anyhow!("killed")));
        }
        self.saves -= 1;
        self.saved = checkpoint.clone();
        Ok(())
    }

    fn report(&mut self, _: &str) {}
}

fn cell(spec: usize, round: usize, iops: f64) -> RoundMeasurement {
    let figure = "page-mixed.iops".parse().unwrap();
    RoundMeasurement {
        spec,
        round,
        run: Some(record::RunId::new(Timestamp::UNIX_EPOCH, round as u64)),
        figures: [(figure, Value::plain(iops))].into(),
        doubts: Vec::new(),
        failed: None,
    }
}

fn spec(kind: &str, per_hour: f64) -> VolumeSpec {
    VolumeSpec {
        text: format!("{kind}:100GiB"),
        kind: kind.to_owned(),
        gib: 100,
        iops: None,
        mibps: None,
        per_hour,
        currency: "USD".to_owned(),
    }
}

fn checkpoint() -> TypeSweepCheckpoint {
    TypeSweepCheckpoint {
        id: SWEEP.to_owned(),
        started: Timestamp::UNIX_EPOCH,
        instance: INSTANCE.to_owned(),
        zone: "us-east-1a".to_owned(),
        region: None,
        specs: vec![spec("gp2", 1.0), spec("gp3", 3.0)],
        volumes: Vec::new(),
        objective: "page-mixed.iops".parse().unwrap(),
        requires: Vec::new(),
        rounds: 2,
        cells: Vec::new(),
        given_up: false,
    }
}

fn place() -> HostInstance {
    HostInstance {
        id: INSTANCE.to_owned(),
        zone: "us-east-1a".to_owned(),
        taken: vec![
            "/dev/sda1".to_owned(),
            "/dev/sdf".to_owned(),
            "xvdg".to_owned(),
        ],
    }
}

/// Runs the rounds, without cleaning up.
fn run(
    world: &RefCell<World>,
    host: &mut Host,
    checkpoint: &mut TypeSweepCheckpoint,
) -> Result<SweepEnd, Failure> {
    let mut answer = |program: &Exec| world.borrow_mut().answer(program);
    Rounds {
        ec2: &mut Ec2::new(&mut answer, None),
        bench: host,
        clock: &mut SimulatedClock::default(),
        place: &place(),
        timeout: Duration::from_secs(180),
        interrupt: &AtomicBool::new(false),
    }
    .run(checkpoint)
}

fn cleaned(world: &RefCell<World>, checkpoint: &mut TypeSweepCheckpoint) -> Vec<String> {
    let mut answer = |program: &Exec| world.borrow_mut().answer(program);
    let mut ec2 = Ec2::new(&mut answer, None);
    clean(
        checkpoint,
        &mut ec2,
        &mut SimulatedClock::default(),
        &mut |_| (),
    )
}

/// A simulated EC2 with volumes of other owners.
fn with_other_volumes() -> RefCell<World> {
    let world = RefCell::new(World::default());
    world.borrow_mut().put("vol-aaaaaaaa", None, Some(INSTANCE));
    world
        .borrow_mut()
        .put("vol-bbbbbbbb", Some("ec2-other"), None);
    world
}

fn other_volumes() -> BTreeSet<&'static str> {
    BTreeSet::from(["vol-aaaaaaaa", "vol-bbbbbbbb"])
}

#[test]
fn volumes_are_created_measured_in_turn_and_deleted() {
    let world = with_other_volumes();
    let mut state = checkpoint();
    let mut host = Host::of(&state);
    assert_eq!(run(&world, &mut host, &mut state).unwrap(), SweepEnd::Over);
    let (a, b) = ("/dev/vol-00000002", "/dev/vol-00000003");
    let wanted = [(a, 0), (b, 0), (b, 1), (a, 1)].map(|(disk, round)| (disk.to_owned(), round));
    assert_eq!(host.measured, wanted);
    assert!(cleaned(&world, &mut state).is_empty());
    let world = world.into_inner();
    assert_eq!(world.left(), other_volumes());
    assert_eq!(
        world.log,
        [
            "create-volume gp2",
            "create-volume gp3",
            "attach-volume vol-00000002",
            "attach-volume vol-00000003",
            "detach-volume vol-00000002",
            "delete-volume vol-00000002",
            "detach-volume vol-00000003",
            "delete-volume vol-00000003",
        ]
    );
    assert!(
        state
            .volumes
            .iter()
            .all(|made| made.stage == VolumeStage::Gone)
    );
    let compared = compare(&state);
    assert!(
        compared
            .text(100)
            .contains("The best by page-mixed.iops is gp3:100GiB.")
    );
}

#[test]
fn after_any_failure_no_volume_is_left_and_no_other_volume_is_changed() {
    type Change = fn(&mut World, &mut Host);
    let cases: [(Change, &str); 7] = [
        (
            |world, _| {
                world.fails = Some((
                    "create-volume",
                    "An error occurred (VolumeLimitExceeded) when",
                ))
            },
            "service-quotas",
        ),
        (
            |world, _| {
                world.fails = Some((
                    "attach-volume",
                    "An error occurred (AttachmentLimitExceeded) when",
                ))
            },
            "no more volumes can be attached",
        ),
        (
            |_, host| host.disk = None,
            "after 180 s no disk of this host",
        ),
        (|_, host| host.disk = Some(99), "it is not its disk"),
        (|_, host| host.blank = false, "carries ext4"),
        (|_, host| host.saves = 3, "killed"),
        (|_, host| host.signal_after = 1, ""),
    ];
    for (change, words) in cases {
        let world = with_other_volumes();
        let mut state = checkpoint();
        let mut host = Host::of(&state);
        change(&mut world.borrow_mut(), &mut host);
        match run(&world, &mut host, &mut state) {
            Ok(ending) => assert_eq!((ending, words), (SweepEnd::Interrupted, "")),
            Err(error) => {
                let text = format!("{:#}", error.error());
                assert!(!words.is_empty() && text.contains(words), "{text}");
            }
        }
        world.borrow_mut().fails = None;
        assert_eq!(cleaned(&world, &mut state), [""; 0], "{words}");
        assert_eq!(world.borrow().left(), other_volumes(), "{words}");
    }
}

#[test]
fn after_a_kill_at_any_moment_the_volumes_are_found_again() {
    for saves in 0..12 {
        // A listing shows a new volume only after a while.
        for unseen in [0, 2] {
            let world = with_other_volumes();
            let mut state = checkpoint();
            let mut host = Host::of(&state);
            host.saves = saves;
            let _ = run(&world, &mut host, &mut state);
            world.borrow_mut().unseen = unseen;
            // Only the saved state is known after the kill.
            let mut saved = host.saved;
            assert_eq!(cleaned(&world, &mut saved), [""; 0], "{saves}");
            assert_eq!(world.borrow().left(), other_volumes(), "{saves} {unseen}");
        }
    }
}

#[test]
fn a_volume_is_changed_only_with_the_tag_and_on_this_instance() {
    let made = |id: &str| VolumeState {
        stage: VolumeStage::Created,
        id: Some(id.to_owned()),
    };
    for (tag, attached, words) in [
        (None, None, "does not carry the tag"),
        (Some("ec2-other"), Some(INSTANCE), "does not carry the tag"),
        (Some(SWEEP), Some("i-4567"), "is attached to i-4567"),
    ] {
        let world = RefCell::new(World::default());
        world.borrow_mut().put("vol-cccccccc", tag, attached);
        let mut state = checkpoint();
        state.volumes = vec![made("vol-cccccccc")];
        let left = cleaned(&world, &mut state);
        assert!(left.len() == 1 && left[0].contains(words), "{left:?}");
        assert!(world.borrow().log.is_empty(), "{:?}", world.borrow().log);
        assert_eq!(state.volumes[0].stage, VolumeStage::Created);
    }
}

#[test]
fn volumes_that_cannot_be_removed_are_reported_and_saved() {
    type Change = fn(&mut World);
    let cases: [(Change, &str); 3] = [
        (|world| world.stuck = true, "still attached after 300 s"),
        (
            |world| {
                world.fails = Some((
                    "delete-volume",
                    "An error occurred (UnauthorizedOperation) when",
                ))
            },
            "ec2:DeleteVolume",
        ),
        (
            |world| {
                world.fails = Some(("describe-volumes", "An error occurred (ExpiredToken) when"))
            },
            "aws sso login",
        ),
    ];
    for (change, words) in cases {
        let world = with_other_volumes();
        let mut state = checkpoint();
        let mut host = Host::of(&state);
        run(&world, &mut host, &mut state).unwrap();
        change(&mut world.borrow_mut());
        let left = cleaned(&world, &mut state).join("\n");
        assert!(left.contains(words), "{left}");
        // The next start removes it.
        world.borrow_mut().fails = None;
        world.borrow_mut().stuck = false;
        let mut saved = state;
        assert_eq!(cleaned(&world, &mut saved), [""; 0]);
        assert_eq!(world.borrow().left(), other_volumes());
    }
}

#[test]
fn device_names_in_use_are_not_used() {
    assert_eq!(free_names(&place(), 2).unwrap(), ["/dev/sdh", "/dev/sdi"]);
    let error = free_names(&place(), 10).unwrap_err();
    assert!(error.contains("has 9 of the names"), "{error}");
}

#[test]
fn the_best_meets_the_requirements_and_equals_are_named() {
    let mut state = checkpoint();
    state.rounds = 3;
    let noise = [1.0, 1.02, 0.98];
    for (round, noise) in noise.iter().enumerate() {
        state.cells.push(cell(0, round, 3000.0 * noise));
        state.cells.push(cell(1, round, 3010.0 * (2.0 - noise)));
    }
    let text = compare(&state).text(200);
    assert!(
        text.contains("is gp3:100GiB.") && text.contains("Not shown to be worse: gp2:100GiB."),
        "{text}"
    );
    state.objective = "page-mixed.iops/$".parse().unwrap();
    let text = compare(&state).text(200);
    assert!(
        text.contains("is gp2:100GiB.") && !text.contains("Not shown"),
        "{text}"
    );
    state.requires = vec!["page-mixed.iops>=9999".parse().unwrap()];
    let compared = compare(&state);
    assert!(!compared.has_best() && compared.text(200).contains("No volume meets"));
    state.objective = Objective::Cost;
    state.requires = vec!["page-mixed.iops>=1000".parse().unwrap()];
    assert!(
        compare(&state)
            .text(200)
            .contains("The best by cost is gp2:100GiB.")
    );
}
