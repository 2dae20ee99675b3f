//! Pacing of a check of RAID 10, which delays all foreground requests by each request of the check.

use super::super::model::Barrier;
use super::*;
use study::pace::min_rate;

/// RAID 10 over four pairs of volumes, each of which reads 64 KiB in 2.6 ms, under the load of [`at`]. A little more
/// than half of the members' capacity is lost until the slowest of the requests in flight has completed.
fn raid10(share: f64) -> Load {
    let load = at(share, Noise::Exponential);
    let read = 4.0 * 128.0 / DEVICE_SECTORS_PER_S;
    // With direct reads there is no barrier: the cost is that of [`at`].
    let barrier = Barrier {
        holds: 2.0 * load.alone + read,
        lost: 0.6,
        demand: share,
        direct: load.gentle,
        cost: load.cost,
        superblock: 0.5 * read,
    };
    Load {
        cost: 0.0,
        gentle: 1.0,
        barrier: Some(barrier),
        ..load
    }
}

/// Method by which a check runs beside a foreground.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Steps {
    /// md's check in steps whose size ignores their duration.
    Any,
    /// md's check in steps whose size follows from their duration.
    ByTime,
    /// Direct comparison.
    Direct,
}

fn run(model: &mut Model, steps: Steps, seconds: u64) {
    let end = (seconds * SECOND, Event::Stop(StopCause::Signal));
    model.events.push(end);
    model.direct.can = steps == Steps::Direct;
    let task = Task {
        holds_all: steps != Steps::Any,
        ..task(None)
    };
    drive(model, &task);
}

fn mean(model: &Model, from: u64, to: u64) -> f64 {
    let within = from * SECOND..to * SECOND;
    let latency = model.latencies.iter();
    let latency = latency.filter(|(then, _)| within.contains(then));
    let (number, sum) = latency.fold((0_u32, 0.0), |(number, sum), (_, latency)| {
        (number + 1, sum + latency)
    });
    sum / f64::from(number)
}

/// Latency of the foreground, as multiples of its latency alone, and the rate of the check.
struct OthersShare {
    mean: f64,
    p99: f64,
    p999: f64,
    /// Rate of the check, in bytes a second.
    got: f64,
}

/// Latency of a foreground with this share of the load beside a check.
fn slowed(share: f64, steps: Steps) -> OthersShare {
    let mut nothing = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    nothing.load = raid10(share);
    nothing.rest(Nanos(300 * SECOND));
    let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    model.load = raid10(share);
    run(&mut model, steps, 400);
    let of = |share| quantile(&model, 60, 400, share) / quantile(&nothing, 0, 300, share);
    let latency = OthersShare {
        mean: mean(&model, 60, 400) / mean(&nothing, 0, 300),
        p99: of(0.99),
        p999: of(0.999),
        got: rate(&model, 60, 400) * 512.0,
    };
    println!(
        "{share} {steps:?}: mean {:.2}, p99 {:.2}, p99.9 {:.2} times, {:.0} KiB/s, {:.1} superblocks a second",
        latency.mean,
        latency.p99,
        latency.p999,
        latency.got / 1024.0,
        f64::from(model.superblocks) / 400.0
    );
    latency
}

#[test]
fn requests_wait_little_for_a_barrier_at_every_load() {
    for share in [0.3, 0.6, 0.9] {
        let latency = slowed(share, Steps::ByTime);
        assert!(latency.mean < 1.45, "{share}: {:.2}", latency.mean);
        assert!(latency.p99 < 1.5 && latency.p999 < 1.5, "{share}");
        assert!(latency.got > min_rate(0.0), "{share}: {:.0}", latency.got);
    }
}

#[test]
fn beside_md_others_keep_what_they_have_and_the_check_gets_a_good_part_of_what_they_leave() {
    for share in [0.3, 0.6, 0.9] {
        let latency = slowed(share, Steps::Direct);
        assert!(latency.mean < 1.6, "{share}: {:.2}", latency.mean);
        // A foreground whose own latency is long waits no longer for the rest of one request than any other.
        assert!(latency.p99 < 1.35 && latency.p999 < 1.35, "{share}");
        let of_spare = latency.got / (512.0 * DEVICE_SECTORS_PER_S * (1.0 - share));
        println!("{of_spare:.2} of what is spare");
        assert!(of_spare > 0.25, "{share}: {of_spare:.2}");
    }
}

/// Shows that the test above can fail: with steps of 1 MiB on each member, the slowest requests are delayed.
#[test]
fn steps_that_take_as_long_as_they_like_delay_all_at_such_a_barrier() {
    for share in [0.6, 0.9] {
        let latency = slowed(share, Steps::Any);
        assert!(latency.p999 > 2.0, "{share}: {:.2}", latency.p999);
    }
}

#[test]
fn nobody_waits_for_a_barrier_on_an_idle_array() {
    let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    model.load = Load {
        rate: 0.0,
        ..raid10(0.3)
    };
    run(&mut model, Steps::Direct, 60);
    let got = rate(&model, 10, 60) / DEVICE_SECTORS_PER_S;
    assert!(got > 0.95, "{got:.2}");
}
