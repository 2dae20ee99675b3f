//! The findings of `watch` against causes that are played in the lab: real Linux, real md, and volumes
//! whose troubles are known. Where there is no machine to be had, a test says so and passes.
//!
//! The long form plays each cause 20 times, and nothing 20 times, and prints the table. What it draws
//! comes from a seed that it prints; `WATCH_TRUTH_SEED` sets it, `WATCH_TRUTH_PLAYS` plays less,
//! `WATCH_TRUTH_ONLY` is one of the lanes soon, late and rest, and `WATCH_TRUTH_KEEP` names a folder for
//! what was seen in each machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

#[path = "watch_truth/arrays.rs"]
mod arrays;
#[path = "watch_truth/calm.rs"]
mod calm;
#[path = "watch_truth/caps.rs"]
mod caps;
#[path = "watch_truth/causes.rs"]
mod causes;
#[path = "watch_truth/dice.rs"]
mod dice;
#[path = "watch_truth/healthy.rs"]
mod healthy;
#[path = "watch_truth/held.rs"]
mod held;
#[path = "support/loops.rs"]
mod loops;
#[path = "watch_truth/machine.rs"]
mod machine;
#[path = "watch_truth/meter.rs"]
mod meter;
#[path = "watch_truth/play.rs"]
mod play;
#[path = "watch_truth/program.rs"]
mod program;
#[path = "watch_truth/scenes.rs"]
mod scenes;
mod support;
#[path = "watch_truth/table.rs"]
mod table;
#[path = "watch_truth/world.rs"]
mod world;

use std::thread;

use causes::Times;
use dice::Random;
use machine::Machine;
use play::Verdict;
use table::Table;

/// Number of plays of each cause.
const PLAYS: u64 = 20;
/// Least number of 20 plays in which it must be found, and largest number of 20 plays, with a cause or without, in which anything may be
/// found that is not so.
const FOUND: f64 = 19.0 / 20.0;
const FALSE: f64 = 1.0 / 20.0;

/// A value from the environment.
fn setting(name: &str, without: u64) -> u64 {
    std::env::var(name).map_or(without, |text| text.parse().unwrap())
}

/// The causes that show within seconds.
fn soon(dice: &mut Random) -> Machine {
    let mut machine = Machine::new("soon", 62);
    let times = Times::LONG;
    arrays::stalled(&mut machine, dice, times);
    arrays::slow_member(&mut machine, dice, times);
    causes::cold(&mut machine, dice, times);
    arrays::imbalance(&mut machine, dice, times);
    causes::queue_full(&mut machine, dice, times);
    causes::writeback(&mut machine, dice, times);
    arrays::errors(&mut machine, dice, times);
    machine
}

/// Those that take most of a minute and more. Caps are not among them: an emulated machine hands on what is
/// answered in clumps of all that is in flight, so that what the volumes keep to exactly is not flat in there.
/// They are played on disks of this host, and in simulated time.
fn late(dice: &mut Random) -> Machine {
    let mut machine = Machine::new("late", 125);
    let times = Times::LONG;
    causes::burst_spent(&mut machine, dice);
    arrays::scrub_hurts(&mut machine, dice, times);
    causes::small_io(&mut machine, dice, times);
    machine
}

/// Four hosts' worth of disks without a cause.
fn nothing(dice: &mut Random, round: u64) -> Machine {
    let mut machine = Machine::new("nothing", 125);
    for number in 0..4 {
        healthy::play(&mut machine, dice, 4 * round + number);
    }
    machine
}

/// Plays machines that continue at the same time as those of the other lanes.
fn play_lane(lane: &str, seed: u64, plays: u64) -> Option<Vec<Verdict>> {
    let mut dice = Random::new(seed.wrapping_add(u64::from(lane.as_bytes()[0]) << 32));
    match lane {
        "soon" => play_all((0..plays).map(|_| soon(&mut dice))),
        "late" => play_all((0..plays).map(|_| late(&mut dice))),
        _ => play_all((0..plays.div_ceil(4)).map(|round| nothing(&mut dice, round))),
    }
}

/// Plays one machine after the other. `None` where there is no machine to be had.
fn play_all(machines: impl Iterator<Item = Machine>) -> Option<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for machine in machines {
        verdicts.extend(machine.play()?);
    }
    Some(verdicts)
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_each_cause_is_found_and_without_one_nothing_is() {
    let plays = setting("WATCH_TRUTH_PLAYS", PLAYS);
    let seed = setting("WATCH_TRUTH_SEED", Random::any());
    println!("WATCH_TRUTH_SEED={seed}");
    let only = std::env::var("WATCH_TRUTH_ONLY").ok();
    // Several machines at a time: what a cause needs is time, and little work.
    let lanes: Vec<_> = ["soon", "late", "rest"]
        .into_iter()
        .filter(|lane| only.as_deref().is_none_or(|only| only == *lane))
        .map(|lane| thread::spawn(move || play_lane(lane, seed, plays)))
        .collect();
    let verdicts: Option<Vec<_>> = lanes.into_iter().map(|lane| lane.join().unwrap()).collect();
    let Some(verdicts) = verdicts else {
        return;
    };
    let verdicts = verdicts.into_iter().flatten().collect();
    let table = Table::of(verdicts);
    println!("{table}");
    table.assert(FOUND, FALSE);
}

/// Caps on disks of this host, which must not be so busy that a disk at its cap cannot keep to it.
#[test]
#[ignore = "long proof: make prove"]
fn caps_of_the_kernel_are_found() {
    let seed = setting("WATCH_TRUTH_SEED", Random::any());
    println!("WATCH_TRUTH_SEED={seed}");
    let plays = setting("WATCH_TRUTH_PLAYS", PLAYS);
    let Some(verdicts) = held::play_all(plays, &mut Random::new(seed)) else {
        return;
    };
    let table = Table::of(verdicts);
    println!("{table}");
    table.assert(FOUND, FALSE);
}

/// The lab's volumes in simulated time: all causes that do not need the kernel.
#[test]
fn causes_on_volumes_in_simulated_time_are_found() {
    simulated(setting("WATCH_TRUTH_PLAYS", 2), 1);
}

#[test]
#[ignore = "long proof: make prove"]
fn each_cause_on_volumes_in_simulated_time_is_found_and_without_one_nothing_is() {
    simulated(setting("WATCH_TRUTH_PLAYS", 100), Random::any());
}

fn simulated(plays: u64, seed: u64) {
    let seed = setting("WATCH_TRUTH_SEED", seed);
    println!("WATCH_TRUTH_SEED={seed}");
    let table = Table::of(scenes::play_all(plays, seed));
    println!("{table}");
    table.assert(FOUND, FALSE);
}

/// The causes that show at once. Those that take half a minute and more are left to the long form and to
/// simulated time: a machine that is emulated takes most of a minute as it is.
#[test]
fn with_qemu_causes_that_show_at_once_are_found() {
    let seed = setting("WATCH_TRUTH_SEED", 7);
    // To a machine that hardly gets a processor, some seconds are one interval: then it looks for longer.
    for stretch in [1, 3, 9] {
        let times = Times {
            stretch,
            ..Times::SHORT
        };
        let mut dice = Random::new(seed);
        let mut machine = Machine::new("short", 20 * stretch);
        arrays::stalled(&mut machine, &mut dice, times);
        arrays::errors(&mut machine, &mut dice, times);
        causes::queue_full(&mut machine, &mut dice, times);
        let Some(verdicts) = machine.play() else {
            return;
        };
        let table = Table::of(verdicts);
        println!("WATCH_TRUTH_SEED={seed}\n{table}");
        if table.is_complete() || stretch == 9 {
            // A host that is busy may hold up all volumes for a moment, which is a stall of one that has none.
            return table.assert(1.0, 1.0 / 3.0);
        }
    }
}
