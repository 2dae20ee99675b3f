//! The causes on volumes in simulated time.

use study::watch::{ChangeKind, Settings, Watch};

use crate::dice::Random;
use crate::play::{Found, Play, Verdict, judge};
use crate::program::{Array, Pace, Program, Target};
use crate::world::World;
use crate::{calm, caps};

/// Length of each scene.
pub(crate) const SECONDS: u64 = 150;
const MIB: u64 = 1 << 20;
pub(crate) const SIZES: [u64; 3] = [8192, 16_384, 32_768];

/// One cause, or none, as it is drawn.
type Scene = fn(&mut Random) -> (World, Play);

/// All of them. Nothing comes as often as each kind of healthy host.
const SCENES: [(&str, Scene); 15] = [
    ("stalled", stalled),
    ("slow-member", slow_member),
    ("deep slow-member", deep_slow_member),
    ("volume-cap", caps::volume_cap),
    ("paused volume-cap", caps::paused_volume_cap),
    ("instance-cap", caps::instance_cap),
    ("burst-spent", caps::burst_spent),
    ("imbalance", imbalance),
    ("scrub-hurts", scrub_hurts),
    ("cold", cold),
    ("small-io", small_io),
    ("queue-full", queue_full),
    ("nothing", calm::nothing),
    ("deep nothing", calm::deep),
    ("steady nothing", calm::steady),
];

/// Plays each so often.
pub(crate) fn play_all(plays: u64, seed: u64) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (name, scene) in SCENES {
        let mut dice = Random::new(seed ^ u64::from(name.as_bytes()[0]) << 40);
        for _ in 0..plays {
            let (world, play) = scene(&mut dice);
            let verdict = judge(&play, &found(world));
            if play.cause.is_some() && verdict.found.is_none() || !verdict.others.is_empty() {
                println!("{verdict}");
            }
            verdicts.push(verdict);
        }
    }
    verdicts
}

fn found(world: World) -> Vec<Found> {
    let mut watch = Watch::new(Settings::default());
    let mut found = Vec::new();
    world.play(SECONDS, |sample| {
        let opened = watch.observe(sample).into_iter();
        let opened = opened.filter(|change| change.kind == ChangeKind::Opened);
        found.extend(opened.map(|change| Found {
            code: change.event.code.name().to_owned(),
            name: change.event.name,
            text: change.event.text,
            at: sample.at.elapsed.as_secs_f64(),
        }));
    });
    found
}

/// A cause that a device, or the host, has until the end.
pub(crate) fn played(
    world: &World,
    cause: &'static str,
    culprit: &str,
    begins: u64,
    what: String,
) -> Play {
    Play {
        what,
        on: everything(world),
        ..Play::of(cause, culprit, begins, SECONDS)
    }
}

/// All devices and the host.
pub(crate) fn everything(world: &World) -> Vec<String> {
    let mut on = world.names();
    on.push("host".to_owned());
    on
}

/// So many volumes of one kind.
pub(crate) fn specs(count: u64, spec: &str) -> Vec<String> {
    vec![format!("{spec}:1GiB"); count as usize]
}

/// A program with what is drawn for every play.
pub(crate) fn program(dice: &mut Random, target: Target, pace: Pace) -> Program {
    Program {
        target,
        pace,
        reads: dice.one(&[1.0, 0.8, 0.5, 0.2]),
        block: dice.one(&SIZES),
        span: 1024 * MIB,
        from: 0,
        to: SECONDS + 1,
    }
}

/// Latency of a healthy volume.
pub(crate) fn healthy_latency(dice: &mut Random) -> String {
    format!(
        "latency={}us,jitter=0.{}",
        dice.between(4000, 9000),
        dice.between(2, 6)
    )
}

/// A load that leaves a disk idle most of the time.
fn gentle_pace(dice: &mut Random) -> Pace {
    match dice.between(0, 1) {
        0 => Pace::Rate(dice.between(30, 120) as f64),
        _ => Pace::Depth(dice.between(1, 2)),
    }
}

/// An array with a gentle load that all members share.
pub(crate) fn array(dice: &mut Random, specs: &[String], level: u64, check: Option<u64>) -> World {
    let pace = gentle_pace(dice);
    array_at(dice, specs, level, check, pace)
}

/// An array with a load that all members share, and which is checked from some second on.
pub(crate) fn array_at(
    dice: &mut Random,
    specs: &[String],
    level: u64,
    check_from: Option<u64>,
    pace: Pace,
) -> World {
    let mut world = World::new(specs, dice);
    world.array(Array {
        level,
        chunk: 65_536,
        check_from,
    });
    let program = program(dice, Target::Array, pace);
    world.program(program);
    world
}

fn stalled(dice: &mut Random) -> (World, Play) {
    let (begins, length) = (dice.between(20, 120), dice.between(4, 15));
    let spec = format!("{},stall={begins}s+{length}s", healthy_latency(dice));
    let mut world = World::new(&specs(1, &spec), dice);
    let pace = match dice.between(0, 1) {
        0 => Pace::Rate(dice.between(10, 100) as f64),
        _ => Pace::Depth(dice.between(1, 2)),
    };
    let program = program(dice, Target::Volume(0), pace);
    world.program(program);
    let play = Play {
        ends: begins + length,
        ..played(
            &world,
            "stalled",
            "vda",
            begins,
            format!("{spec}, {program:?}"),
        )
    };
    (world, play)
}

fn slow_member(dice: &mut Random) -> (World, Play) {
    let (level, count) = dice.one(&[(0, 3), (0, 4), (0, 8), (10, 4), (10, 8)]);
    let specs = specs(count, &healthy_latency(dice));
    let pace = gentle_pace(dice);
    slow(dice, specs, level, pace)
}

/// Many requests in flight on volumes that answer many at once. They take long, so that these are not too
/// many in a second to be played.
fn deep_slow_member(dice: &mut Random) -> (World, Play) {
    let (level, count) = dice.one(&[(0, 4), (0, 8), (10, 8)]);
    let specs = specs(count, &deep_latency(dice));
    let pace = Pace::Depth(dice.between(32, 64));
    slow(dice, specs, level, pace)
}

/// Latency of a volume that serves many requests at once.
pub(crate) fn deep_latency(dice: &mut Random) -> String {
    let (latency, jitter) = (dice.between(30, 60), dice.between(2, 6));
    format!("latency={latency}ms,jitter=0.{jitter}")
}

/// One member of an array is slow from some moment on.
fn slow(dice: &mut Random, mut specs: Vec<String>, level: u64, pace: Pace) -> (World, Play) {
    let begins = dice.between(10, 80);
    let which = dice.between(0, specs.len() as u64 - 1) as usize;
    let factor = dice.between(4, 12);
    let slow = format!(",slow={begins}s+600s,slow-factor={factor}:");
    specs[which] = specs[which].replace(':', &slow);
    let world = array_at(dice, &specs, level, None, pace);
    let what = format!(
        "level {level} of {}: {}, {pace:?}",
        specs.len(),
        specs[which]
    );
    let culprit = world.names()[which].clone();
    let play = played(&world, "slow-member", &culprit, begins, what);
    (world, play)
}

fn imbalance(dice: &mut Random) -> (World, Play) {
    let begins = dice.between(10, 80);
    let count = dice.between(3, 8);
    let specs = specs(count, &healthy_latency(dice));
    let mut world = array(dice, &specs, 0, None);
    let rate = dice.between(80, 200) as f64;
    let mut hot = program(dice, Target::Array, Pace::Rate(rate));
    hot.span = 65_536;
    hot.from = begins;
    world.program(hot);
    // Next to it what all members share.
    let what = format!("level 0 of {count}, {hot:?}");
    let play = Play {
        // The first chunk is on the first member.
        member: Some("vda".to_owned()),
        ..played(&world, "imbalance", "md0", begins, what)
    };
    (world, play)
}

fn scrub_hurts(dice: &mut Random) -> (World, Play) {
    let begins = dice.between(25, 90);
    let (level, count) = dice.one(&[(0, 4), (1, 2), (10, 4)]);
    let spec = format!(
        "throughput={}MiB,{}",
        dice.between(20, 60),
        healthy_latency(dice)
    );
    let world = array(dice, &specs(count, &spec), level, Some(begins));
    let what = format!("level {level} of {count}: {spec}");
    let mut play = played(&world, "scrub-hurts", "md0", begins, what);
    // The check goes at the members' cap.
    play.follows = &["volume-cap"];
    (world, play)
}

fn cold(dice: &mut Random) -> (World, Play) {
    let begins = dice.between(0, 60);
    let mut world = World::new(&["cold:4GiB".to_owned()], dice);
    let what = if dice.between(0, 1) == 0 {
        let mut program = program(dice, Target::Volume(0), Pace::Depth(1));
        program.reads = 1.0;
        program.span = 4096 * MIB;
        program.from = begins;
        world.program(program);
        format!("from the first read on, {program:?}")
    } else {
        let rate = dice.between(10, 60) as f64;
        let mut warm = program(dice, Target::Volume(0), Pace::Rate(4.0 * rate));
        warm.span = 8 * MIB;
        warm.to = begins.max(25);
        world.program(warm);
        let mut program = program(dice, Target::Volume(0), Pace::Rate(rate));
        program.reads = 1.0;
        program.span = 4096 * MIB;
        program.from = begins.max(25);
        world.program(program);
        format!("after others, {program:?}")
    };
    let play = played(&world, "cold", "vda", begins, what);
    (world, play)
}

fn small_io(dice: &mut Random) -> (World, Play) {
    let begins = dice.between(0, 80);
    let mut world = World::new(
        &specs(1, &format!("latency={}ms", dice.between(8, 16))),
        dice,
    );
    let depth = dice.between(2, 6);
    let mut program = program(dice, Target::Volume(0), Pace::Depth(depth));
    program.block = dice.one(&[512, 4096]);
    program.from = begins;
    world.program(program);
    let play = played(&world, "small-io", "vda", begins, format!("{program:?}"));
    (world, play)
}

fn queue_full(dice: &mut Random) -> (World, Play) {
    let begins = dice.between(0, 100);
    let mut world = World::new(
        &specs(1, &format!("iops={},latency=3ms", dice.between(80, 250))),
        dice,
    );
    let depth = dice.between(16, 32);
    world.queue(depth);
    let asked = depth + dice.between(1, 16);
    let mut program = program(dice, Target::Volume(0), Pace::Depth(asked));
    program.from = begins;
    world.program(program);
    let mut play = played(
        &world,
        "queue-full",
        "vda",
        begins,
        format!("{depth}, {program:?}"),
    );
    // What is asked beyond a cap fills the queue.
    play.follows = &["volume-cap"];
    (world, play)
}
