//! The causes that lie in one member of an array, or in what an array does.

use crate::causes::{MIB, SIZES, Times, mixed, reading, volumes};
use crate::dice::Random;
use crate::machine::{Load, Machine};
use crate::play::Play;

/// Volumes of which one has something more in its description: all of them, and that one.
fn one_apart(
    machine: &mut Machine,
    dice: &mut Random,
    count: u64,
    spec: &str,
    apart: &str,
    size: &str,
) -> (Vec<String>, String) {
    let which = dice.between(0, count - 1);
    let all: Vec<String> = (0..count)
        .map(|number| {
            let more = if number == which { apart } else { "" };
            machine.volume(&format!("{spec}{more}:{size}"))
        })
        .collect();
    let one = all[which as usize].clone();
    (all, one)
}

fn with(mut devices: Vec<String>, array: &str) -> Vec<String> {
    devices.push(array.to_owned());
    devices
}

/// A disk, or a member of an array, answers nothing for some seconds.
pub(crate) fn stalled(machine: &mut Machine, dice: &mut Random, times: Times) {
    let begins = dice.between(times.soon.0, times.soon.1);
    let length = dice.between(4, 9) * times.stretch;
    let latency = dice.between(5, 10);
    let stall = format!(",stall={begins}s+{length}s");
    let members = dice.one(&[1, 1, 2, 3]);
    let spec = format!("latency={latency}ms");
    let (all, one) = one_apart(machine, dice, members, &spec, &stall, "256MiB");
    let (device, on) = match members {
        1 => (one.clone(), all),
        _ => {
            let array = machine.array(0, 64, &all);
            (array.clone(), with(all, &array))
        }
    };
    let streams = dice.between(1, 2);
    let load = mixed(dice, streams, 192 * MIB);
    machine.load(&device, &load);
    machine.add(Play {
        what: format!("{members} volumes, {length} s at {begins} s, {load}"),
        on,
        ..Play::of("stalled", &one, begins, begins + length)
    });
}

/// A member is slow from some moment on, also where the volumes answer many requests at once.
pub(crate) fn slow_member(machine: &mut Machine, dice: &mut Random, times: Times) {
    let begins = dice.between(times.early.0, times.early.1);
    let is_deep = dice.between(0, 2) == 0;
    let (level, members) = match is_deep {
        true => dice.one(&[(0, 4), (10, 4), (0, 6)]),
        false => dice.one(&[(0, 3), (0, 4), (5, 4), (10, 4), (1, 2), (0, 6)]),
    };
    // An emulated machine manages some hundred requests a second, so that many at a time take long.
    let (latency, streams) = match is_deep {
        true => (dice.between(100, 200), 32),
        false => (dice.between(5, 10), dice.between(2, 3)),
    };
    let factor = dice.between(4, 10);
    let spec = format!("latency={latency}ms");
    let slow = format!(",slow={begins}s+600s,slow-factor={factor}");
    let (all, one) = one_apart(machine, dice, members, &spec, &slow, "256MiB");
    let array = machine.array(level, 64, &all);
    let load = mixed(dice, streams, 192 * MIB);
    machine.load(&array, &load);
    machine.add(Play {
        what: format!("level {level} of {members}, {factor} times {latency} ms, {load}"),
        on: with(all, &array),
        ..Play::of("slow-member", &one, begins, machine.seconds())
    });
}

/// md checks an array with all its might.
pub(crate) fn scrub_hurts(machine: &mut Machine, dice: &mut Random, times: Times) {
    let begins = dice.between(times.after.0, times.after.1);
    let (level, members) = dice.one(&[(1, 2), (5, 3), (5, 4), (10, 4)]);
    let cap = dice.between(10, 20);
    let all = volumes(
        machine,
        members,
        &format!("throughput={cap}MiB,latency=8ms:1GiB"),
    );
    let array = machine.array(level, 64, &all);
    let streams = dice.between(1, 3);
    let load = mixed(dice, streams, 700 * MIB);
    machine.load(&array, &load);
    let md = format!("/sys/block/{array}/md");
    machine.at(
        begins,
        &format!("echo 500000 >{md}/sync_speed_min; echo check >{md}/sync_action"),
    );
    machine.add(Play {
        what: format!("level {level} of {members} with {cap} MiB/s, from {begins} s, {load}"),
        on: with(all, &array),
        // The check goes at the members' cap.
        follows: &["volume-cap"],
        ..Play::of("scrub-hurts", &array, begins, machine.seconds())
    });
}

/// The hot data lies within one chunk of a striped array: its first, which is on the first member.
pub(crate) fn imbalance(machine: &mut Machine, dice: &mut Random, times: Times) {
    let begins = dice.between(times.early.0, times.early.1);
    let (level, members) = dice.one(&[(0, 3), (0, 4), (5, 4), (0, 6)]);
    let chunk = dice.one(&[256, 512]);
    let latency = dice.between(6, 10);
    let spec = format!("latency={latency}ms,merge=none:256MiB");
    let all = volumes(machine, members, &spec);
    let array = machine.array(level, chunk, &all);
    machine.load(&array, &reading(1, 16, 400 * MIB));
    let hot = reading(dice.between(1, 2), dice.one(&SIZES), chunk);
    machine.load_from(begins, &array, &hot);
    machine.add(Play {
        what: format!("level {level} of {members}, from {begins} s, {hot}"),
        member: Some(all[0].clone()),
        on: with(all, &array),
        ..Play::of("imbalance", &array, begins, machine.seconds())
    });
}

/// A member fails, everywhere or in places, or is given up. (Of a mirror, md may never read the bad copy:
/// also writes fail there.) It is said of the member, as the kernel does, or of the array that lacks it.
pub(crate) fn errors(machine: &mut Machine, dice: &mut Random, times: Times) {
    let begins = dice.between(times.soon.0, times.soon.1);
    let (level, members) = dice.one(&[(1, 2), (5, 3), (10, 4)]);
    let (what, apart) = match dice.between(0, 2) {
        0 => ("fails", format!(",error=all,error-after={begins}s")),
        1 => (
            "fails in places",
            format!(",error=1MiB+30MiB,error-after={begins}s"),
        ),
        _ => ("is given up", String::new()),
    };
    let (all, one) = one_apart(machine, dice, members, "latency=8ms", &apart, "256MiB");
    let array = machine.array(level, 64, &all);
    if apart.is_empty() {
        machine.at(begins, &format!("mdadm /dev/{array} --fail /dev/{one}"));
    }
    let block = dice.one(&SIZES);
    let load = Load {
        reads: 1,
        writes: 1,
        block,
        span: 8 * MIB,
    };
    machine.load(&array, &load);
    machine.add(Play {
        what: format!("a member of level {level} {what} at {begins} s, {load}"),
        on: with(all, &array),
        culprits: vec![one, array.clone()],
        ..Play::of("errors", &array, begins, machine.seconds())
    });
}
