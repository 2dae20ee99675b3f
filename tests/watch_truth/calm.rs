//! Healthy hosts on volumes in simulated time.

use crate::dice::Random;
use crate::play::Play;
use crate::program::{Pace, Program, Target};
use crate::scenes::{
    SECONDS, array, array_at, deep_latency, everything, healthy_latency, program, specs,
};
use crate::world::World;

/// Disks in good health with loads that could be mistaken for a cause.
pub(crate) fn nothing(dice: &mut Random) -> (World, Play) {
    let latency = healthy_latency(dice);
    let rate = dice.between(20, 100);
    let (world, what) = match dice.between(0, 6) {
        0 => {
            let (level, count) = dice.one(&[(0, 4), (10, 4), (1, 2), (0, 2)]);
            let world = array(dice, &specs(count, &latency), level, None);
            (world, format!("level {level} of {count}"))
        }
        1 => {
            let mut world = World::new(&specs(1, &latency), dice);
            let depth = dice.between(1, 3);
            let program = program(dice, Target::Volume(0), Pace::Depth(depth));
            world.program(program);
            (world, format!("{program:?}"))
        }
        2 => {
            let spec = format!("iops={},{latency}", 2 * rate);
            let mut world = World::new(&specs(1, &spec), dice);
            let program = program(dice, Target::Volume(0), Pace::Rate(rate as f64));
            world.program(program);
            (world, format!("half of a cap: {spec}"))
        }
        3 => {
            let mut world = World::new(&specs(1, &latency), dice);
            let end = dice.between(50, 100);
            for (from, to, depth) in [(0, end, 4), (end, SECONDS + 1, 1)] {
                let program = program(dice, Target::Volume(0), Pace::Depth(depth));
                world.program(Program {
                    from,
                    to,
                    ..program
                });
            }
            (world, format!("4 in flight until {end} s, then 1"))
        }
        4 => {
            let mut world = World::new(&specs(3, &latency), dice);
            for volume in 0..3 {
                let program = program(dice, Target::Volume(volume), Pace::Rate(rate as f64));
                world.program(program);
            }
            (world, format!("three disks at {rate} IOPS each"))
        }
        5 => {
            let mut world = World::new(&specs(1, &latency), dice);
            for from in (0..SECONDS).step_by(30) {
                let program = program(dice, Target::Volume(0), Pace::Depth(2));
                let to = from + 20;
                world.program(Program {
                    from,
                    to,
                    ..program
                });
            }
            (world, "20 s of load, and 10 s without".to_owned())
        }
        _ => {
            let mut world = World::new(&specs(1, &latency), dice);
            let few = dice.between(1, 8) as f64;
            let mut program = program(dice, Target::Volume(0), Pace::Rate(few));
            program.reads = 0.0;
            program.block = 4096;
            world.program(program);
            (world, "a log".to_owned())
        }
    };
    let play = Play {
        what: format!("{latency}, {what}"),
        ..Play::nothing(everything(&world), SECONDS)
    };
    (world, play)
}

/// Many requests in flight on volumes that answer as many at once: each takes no longer than alone.
pub(crate) fn deep(dice: &mut Random) -> (World, Play) {
    let latency = deep_latency(dice);
    let pace = Pace::Depth(dice.between(32, 64));
    let (level, count) = dice.one(&[(0, 1), (0, 4), (0, 8), (10, 8)]);
    let specs = specs(count, &latency);
    let world = match count {
        1 => {
            let mut world = World::new(&specs, dice);
            let program = program(dice, Target::Volume(0), pace);
            world.program(program);
            world
        }
        _ => array_at(dice, &specs, level, None, pace),
    };
    let play = Play {
        what: format!("{count} of {latency}, level {level}, {pace:?}"),
        ..Play::nothing(everything(&world), SECONDS)
    };
    (world, play)
}

/// A volume that takes nearly the same time for each of the many requests that it answers at once.
pub(crate) fn steady(dice: &mut Random) -> (World, Play) {
    let latency = dice.between(4, 6);
    // The lab's least latency is half of the mean, so that this is a deviation of 5 %.
    let spec = format!("latency={latency}ms,jitter=0.1");
    let mut world = World::new(&specs(1, &spec), dice);
    let depth = dice.between(12, 16);
    let program = program(dice, Target::Volume(0), Pace::Depth(depth));
    world.program(program);
    let play = Play {
        what: format!("{spec}, {program:?}"),
        ..Play::nothing(everything(&world), SECONDS)
    };
    (world, play)
}
