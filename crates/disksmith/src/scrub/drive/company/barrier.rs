//! The steering against RAID 10, which holds all others up while it is at a request of the check.

use super::super::super::pace::LEAST;
use super::super::model::Barrier;
use super::*;

/// RAID 10 over four pairs of volumes, of which each reads 64 KiB in 2.6 ms, under the load of [`at`]. Half of
/// what they can do and a little more is lost until the slowest of what was begun has come back.
fn ten(share: f64) -> Load {
    let load = at(share, Noise::Exponential);
    let read = 4.0 * 128.0 / FASTEST;
    let barrier = Barrier {
        holds: 2.0 * load.alone + read,
        lost: 0.6,
        asked: share,
        superblock: 0.5 * read,
    };
    Load {
        cost: 0.0,
        gentle: 1.0,
        barrier: Some(barrier),
        ..load
    }
}

fn run(model: &mut Model, seconds: u64) {
    let end = (seconds * SECOND, Event::Order(Order::Interrupted));
    model.events.push(end);
    let task = Task {
        holds_all: true,
        ..task(None)
    };
    drive(model, &task);
}

fn mean(model: &Model, from: u64, to: u64) -> f64 {
    let within = from * SECOND..to * SECOND;
    let felt = model.latencies.iter();
    let felt = felt.filter(|(then, _)| within.contains(then));
    let (number, sum) = felt.fold((0_u32, 0.0), |(number, sum), (_, felt)| {
        (number + 1, sum + felt)
    });
    sum / f64::from(number)
}

#[test]
fn who_waits_for_a_barrier_waits_little_at_every_load() {
    let mut bad = Vec::new();
    for share in [0.3, 0.6, 0.9] {
        let mut nothing = Model::new(u64::MAX / 4096, FASTEST);
        nothing.load = ten(share);
        nothing.rest(Nanos(300 * SECOND));
        let mut model = Model::new(u64::MAX / 4096, FASTEST);
        model.load = ten(share);
        run(&mut model, 400);
        let slower = mean(&model, 60, 400) / mean(&nothing, 0, 300);
        let of = |share| quantile(&model, 60, 400, share) / quantile(&nothing, 0, 300, share);
        let (p99, p999) = (of(0.99), of(0.999));
        let got = rate(&model, 60, 400) * 512.0;
        let what = format!(
            "{share}: mean {slower:.2}, p99 {p99:.2}, p99.9 {p999:.2} times, {:.0} KiB/s, {:.1} superblocks a second",
            got / 1024.0,
            f64::from(model.superblocks) / 400.0
        );
        println!("{what}");
        if slower > 1.45 || p99 > 1.55 || p999 > 1.55 || got < LEAST / 64.0 {
            bad.push(what);
        }
    }
    assert_eq!(bad, [""; 0]);
}

#[test]
fn nobody_waits_for_a_barrier_on_an_idle_array() {
    let mut model = Model::new(u64::MAX / 4096, FASTEST);
    model.load = Load {
        rate: 0.0,
        ..ten(0.3)
    };
    run(&mut model, 60);
    let got = rate(&model, 10, 60) / FASTEST;
    assert!(got > 0.95, "{got:.2}");
}
