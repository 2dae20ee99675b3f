//! Caps on volumes in simulated time.

use crate::dice::Random;
use crate::play::Play;
use crate::program::{Array, Pace, Program, Target};
use crate::scenes::{SECONDS, SIZES, healthy_latency, played, program, specs};
use crate::world::World;

/// More is asked than the volume's cap.
pub(crate) fn volume_cap(dice: &mut Random) -> (World, Play) {
    let begins = dice.between(0, 50);
    let (mut world, program, spec) = capped(dice);
    world.program(Program {
        from: begins,
        ..program
    });
    let what = format!("{spec}, {program:?}");
    let play = played(&world, "volume-cap", "vda", begins, what);
    (world, play)
}

/// The same, while the program pauses for a second now and then, as a database does at a checkpoint.
pub(crate) fn paused_volume_cap(dice: &mut Random) -> (World, Play) {
    let begins = dice.between(0, 50);
    let (mut world, program, spec) = capped(dice);
    let every = dice.between(35, 90);
    let mut from = begins;
    while from < SECONDS {
        world.program(Program {
            from,
            to: from + every,
            ..program
        });
        from += every + 1;
    }
    let what = format!("{spec}, {program:?}, pauses after {every} s");
    let play = played(&world, "volume-cap", "vda", begins, what);
    (world, play)
}

/// A volume with a cap on operations or on throughput, a program that asks for more, and how the volume is
/// made.
fn capped(dice: &mut Random) -> (World, Program, String) {
    let (cap, block) = match dice.between(0, 1) {
        0 => (format!("iops={}", dice.between(80, 300)), dice.one(&SIZES)),
        _ => (format!("throughput={}MiB", dice.between(10, 40)), 131_072),
    };
    let spec = format!("{cap},{}", healthy_latency(dice));
    let world = World::new(&specs(1, &spec), dice);
    let depth = dice.between(16, 48);
    let program = Program {
        block,
        ..program(dice, Target::Volume(0), Pace::Depth(depth))
    };
    (world, program, spec)
}

/// An array over volumes that share a cap, or programs that come and go.
pub(crate) fn instance_cap(dice: &mut Random) -> (World, Play) {
    let count = dice.between(3, 8);
    let cap = dice.between(150, 300);
    let specs = specs(count, &healthy_latency(dice));
    let mut world = World::new(&specs, dice);
    world.instance(cap);
    let what = if dice.between(0, 1) == 0 {
        world.array(Array {
            level: 0,
            chunk: 65_536,
            check_from: None,
        });
        let depth = dice.between(24, 64);
        let program = program(dice, Target::Array, Pace::Depth(depth));
        world.program(program);
        format!("an array of {count}, {program:?}")
    } else {
        for volume in 0..count as usize {
            let program = program(dice, Target::Volume(volume), Pace::Depth(24));
            let mut from = 0;
            while from < SECONDS {
                // The first is always there.
                let works = if volume == 0 {
                    SECONDS + 1
                } else {
                    dice.between(2, 6)
                };
                world.program(Program {
                    from,
                    to: from + works,
                    ..program
                });
                from += works + dice.between(1, 5);
            }
        }
        format!("{count} programs that come and go")
    };
    let play = played(
        &world,
        "instance-cap",
        "host",
        0,
        format!("{cap} IOPS, {what}"),
    );
    (world, play)
}

/// Burst credit lasts for a minute or more.
pub(crate) fn burst_spent(dice: &mut Random) -> (World, Play) {
    let begins = dice.between(50, 100);
    let base = dice.between(40, 100);
    let burst = base * dice.between(18, 40) / 10;
    let credits = (burst - base) * begins;
    let spec = format!(
        "iops={base},burst={burst},credits={credits},{}",
        healthy_latency(dice)
    );
    let mut world = World::new(&specs(1, &spec), dice);
    let depth = dice.between(12, 32);
    let program = program(dice, Target::Volume(0), Pace::Depth(depth));
    world.program(program);
    let mut play = played(
        &world,
        "burst-spent",
        "vda",
        begins,
        format!("{spec}, {program:?}"),
    );
    // A burst has its own cap, and so has what is left.
    play.follows = &["volume-cap"];
    (world, play)
}
