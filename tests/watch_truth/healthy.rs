//! Disks that are in good health, with loads that could be mistaken for a cause.

use crate::dice::Random;
use crate::machine::{Load, Machine};
use crate::play::Play;

const SIZES: [u64; 3] = [8, 16, 32];
const MIB: u64 = 1024;

fn volumes(machine: &mut Machine, count: usize, spec: &str) -> Vec<String> {
    (0..count).map(|_| machine.volume(spec)).collect()
}

/// Adds one of eight kinds of disks and loads.
pub(crate) fn play(machine: &mut Machine, dice: &mut Random, kind: u64) {
    let latency = dice.between(5, 10);
    let streams = dice.between(1, 2);
    let reads = dice.between(0, streams);
    let load = Load {
        reads,
        writes: streams - reads,
        block: dice.one(&SIZES),
        span: 200 * MIB,
    };
    let one = |more: &str| format!("latency={latency}ms{more}:256MiB");
    let (what, on) = match kind % 8 {
        0 => array(machine, dice, &one(""), &load),
        1 => {
            let device = machine.volume(&one(",jitter=0.6"));
            machine.load(&device, &load);
            ("a disk".to_owned(), vec![device])
        }
        2 => {
            // The load is at most half of that.
            let cap = 2 * 1000 * streams / latency;
            let device = machine.volume(&one(&format!(",iops={cap},merge=none")));
            machine.load(&device, &load);
            (
                format!("a cap of {cap} IOPS that is not reached"),
                vec![device],
            )
        }
        3 => comes_and_goes(machine, dice, &one(""), load.block),
        4 => gentle_check(machine, dice, &one(""), &load),
        5 => {
            let device = machine.volume(&one(",throughput=60MiB"));
            machine.load(&device, &Load { block: 256, ..load });
            ("large requests".to_owned(), vec![device])
        }
        6 => {
            let device = machine.volume(&one(""));
            machine.at(
                0,
                &format!(
                    "while sleep 1; do dd if=/dev/zero of=/dev/{device} bs=4k count=1 conv=notrunc,fsync; done"
                ),
            );
            ("a log".to_owned(), vec![device])
        }
        _ => {
            let all = volumes(machine, 2, &one(""));
            let array = machine.array(1, 64, &all);
            machine.load(&array, &load);
            ("a mirror".to_owned(), [all, vec![array]].concat())
        }
    };
    machine.add(Play {
        what: format!("{what}, {latency} ms, {load}"),
        ..Play::nothing(on, machine.seconds())
    });
}

/// An array of any level with a load that all members share.
fn array(
    machine: &mut Machine,
    dice: &mut Random,
    spec: &str,
    load: &Load,
) -> (String, Vec<String>) {
    let (level, members) = dice.one(&[(0, 4), (5, 4), (10, 4), (0, 2), (5, 3)]);
    let all = volumes(machine, members, spec);
    let array = machine.array(level, 64, &all);
    machine.load(&array, load);
    let on = [all, vec![array]].concat();
    (format!("level {level} of {members}"), on)
}

/// Half of the programs end.
fn comes_and_goes(
    machine: &mut Machine,
    dice: &mut Random,
    spec: &str,
    block: u64,
) -> (String, Vec<String>) {
    let device = machine.volume(spec);
    let load = |streams: u64| Load {
        reads: streams,
        writes: 0,
        block,
        span: 200 * MIB,
    };
    let end = dice.between(50, 60);
    machine.load(&device, &load(4));
    machine.end_loads(end, &device);
    machine.at(end + 1, &format!("rm /tmp/{device}.end"));
    machine.load_from(end + 2, &device, &load(1));
    (format!("4 readers, and one from {end} s on"), vec![device])
}

/// A check that leaves nearly all of the disks to others.
fn gentle_check(
    machine: &mut Machine,
    dice: &mut Random,
    spec: &str,
    load: &Load,
) -> (String, Vec<String>) {
    let (level, members) = dice.one(&[(1, 2), (5, 4), (10, 4)]);
    let all = volumes(machine, members, spec);
    let array = machine.array(level, 64, &all);
    let begins = dice.between(25, 40);
    let md = format!("/sys/block/{array}/md");
    machine.at(
        begins,
        &format!(
            "echo 1000 >{md}/sync_speed_min; echo 2000 >{md}/sync_speed_max; \
             echo check >{md}/sync_action"
        ),
    );
    machine.load(&array, load);
    let on = [all, vec![array]].concat();
    (
        format!("level {level} under a gentle check from {begins} s"),
        on,
    )
}
