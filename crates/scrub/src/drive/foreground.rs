//! Tests of the whole controller on a modelled array with noise, and with superblocks that md writes: the foreground
//! keeps its latency target, and the check gets the remaining capacity.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::model::{Event, Load, Model, Noise};
use super::*;

mod barrier;

const SECOND: u64 = 1_000_000_000;
/// 100 MB a second.
const DEVICE_SECTORS_PER_S: f64 = 200_000.0;

fn task(targets: Option<Targets>) -> Task {
    Task {
        targets,
        ..model::task(4)
    }
}

fn p99(seconds: f64) -> Option<Targets> {
    Some(Targets {
        mean_s: None,
        p99_s: Some(seconds),
    })
}

/// Load of a foreground that uses this share of the array's capacity. A check at a third of the remaining capacity
/// raises its latency by half, as in an M/M/1 queue; a check that yields to it runs at half of the remaining capacity.
fn at(share: f64, noise: Noise) -> Load {
    let left = 1.0 - share;
    let alone = 0.002 / left;
    Load {
        rate: 2400.0 * share,
        alone,
        cost: 0.5 * alone / (left / 3.0),
        gentle: 0.5 * left,
        noise,
        barrier: None,
    }
}

/// Runs the check for `seconds`.
fn run(model: &mut Model, targets: Option<Targets>, seconds: u64) -> DriveResult {
    let end = (seconds * SECOND, Event::Stop(StopCause::Signal));
    model.events.push(end);
    drive(model, &task(targets))
}

fn quantile(model: &Model, from: u64, to: u64, share: f64) -> f64 {
    let within = from * SECOND..to * SECOND;
    let latency = model.latencies.iter();
    let mut latency: Vec<f64> = latency
        .filter(|(then, _)| within.contains(then))
        .map(|(_, latency)| *latency)
        .collect();
    latency.sort_by(f64::total_cmp);
    latency[((latency.len() - 1) as f64 * share) as usize]
}

/// Rate in sectors a second at which the p99.9 stays within 1.5 times its value `alone`. The check alternates between
/// its gentle speed and a pause; the share of the time at gentle speed follows from the limit.
fn spare(load: Load, alone: f64) -> f64 {
    let mut model = Model::new(1, DEVICE_SECTORS_PER_S);
    model.load = load;
    let slower = 1.0 + load.gentle * load.cost / load.alone;
    let beyond = |model: &mut Model, slower: f64| {
        let passed = |_: &u32| model.noise() * load.alone * slower > 1.5 * alone;
        f64::from((0..1_000_000).filter(passed).count() as u32) / 1e6
    };
    let (still, going) = (beyond(&mut model, 1.0), beyond(&mut model, slower));
    let turn = ((0.001 - still) / (going - still)).clamp(0.0, 1.0);
    turn * load.gentle * DEVICE_SECTORS_PER_S
}

/// Mean rate between two seconds of the history, in sectors a second.
fn rate(model: &Model, from: usize, to: usize) -> f64 {
    model.history[from..to].iter().map(|one| one.0).sum::<f64>() / (to - from) as f64
}

#[test]
fn the_foreground_keeps_what_it_was_promised_and_the_check_gets_the_rest() {
    const RUNS: u64 = 3;
    let mut bad = Vec::new();
    for noise in [Noise::Exponential, Noise::Tail] {
        for share in [0.3, 0.6, 0.9] {
            let load = at(share, noise);
            let mut nothing = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
            nothing.load = load;
            nothing.rest(Nanos(200 * SECOND));
            let alone = quantile(&nothing, 0, 200, 0.999);
            let (mut slower, mut got) = (0.0, 0.0);
            for run_of in 0..RUNS {
                let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
                model.load = load;
                model.random = 77 + run_of;
                run(&mut model, None, 400);
                let latency = quantile(&model, 60, 400, 0.999);
                slower += latency / alone / RUNS as f64;
                got += rate(&model, 60, 400) / spare(load, alone) / RUNS as f64;
            }
            let what = format!(
                "{noise:?} {share}: p99.9 {slower:.2} times, rate {got:.2} of what is spare"
            );
            println!("{what}");
            // The aims are 1.5 and 0.83. Where latencies have long tails, the target of the mean is reached before
            // that of the slowest requests, and less of the spare capacity is used. At 90 % load latency has priority:
            // few probes are made, and the rate is only above the minimum.
            let least = match noise {
                _ if share > 0.8 => 0.15,
                Noise::Tail => 0.55,
                _ => 0.75,
            };
            if slower > 1.55 || got < least {
                bad.push(what);
            }
        }
    }
    assert_eq!(bad, [""; 0]);
}

#[test]
fn a_deadline_far_away_leaves_the_steering_to_the_latency() {
    let of = 30_000_000;
    let mut model = Model::new(of, DEVICE_SECTORS_PER_S);
    model.load = at(0.3, Noise::Exponential);
    let deadline = 3000 * SECOND;
    let end = Event::Stop(StopCause::Signal);
    model.events.push((300 * SECOND, end));
    drive(
        &mut model,
        &Task {
            deadline: Some(Nanos(deadline)),
            ..task(None)
        },
    );
    let reported: Vec<&ScrubProgress> = model.reported.iter().filter(|at| at.live.0 > 0).collect();
    let measuring = reported.iter().filter(|at| at.measuring).count();
    let share = measuring as f64 / reported.len() as f64;
    assert!(share < 0.1, "it measures {share:.2} of the time");
    let (got, demanded) = (rate(&model, 60, 300), of as f64 / 3000.0);
    println!("{got:.0} sectors a second, of which the deadline demands {demanded:.0}");
    assert!(got > 1.5 * demanded, "{got:.0} of {demanded:.0}");
}

#[test]
fn noise_alone_does_not_keep_it_low() {
    for noise in [Noise::Exponential, Noise::Tail] {
        let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
        model.load = Load {
            cost: 0.0,
            gentle: 0.4,
            ..at(0.3, noise)
        };
        run(&mut model, None, 300);
        let got = rate(&model, 60, 300) / (0.4 * DEVICE_SECTORS_PER_S);
        println!("{noise:?}: {got:.2}");
        assert!(got > 0.75, "{noise:?}: {got:.2}");
    }
}

#[test]
fn a_foreground_that_is_slow_by_itself_does_not_stop_the_check() {
    for noise in [Noise::None, Noise::Exponential] {
        let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
        model.load = Load {
            alone: 0.050,
            cost: 0.0,
            ..at(0.3, noise)
        };
        let ended = run(&mut model, p99(0.005), 180);
        let got = rate(&model, 10, 180) * 512.0;
        assert!(got > study::pace::MAX_MIN_RATE / 2.0, "{noise:?}: {got}");
        let kept = ended.at.targets.unwrap().p99_s.unwrap();
        assert!(kept > 0.050, "it is held to what it has: {kept}");
        assert!(
            rate(&model, 120, 180) > 0.2 * DEVICE_SECTORS_PER_S,
            "and goes on"
        );
    }
}

#[test]
fn whoever_comes_gets_the_disks_within_a_second_however_far_the_sync_window_reaches() {
    let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    let load = Load {
        gentle: 0.3,
        ..at(0.3, Noise::Exponential)
    };
    model
        .events
        .push((60 * SECOND + 300_000_000, Event::Load(load)));
    run(&mut model, None, 75);
    assert!(rate(&model, 20, 60) > 0.95 * DEVICE_SECTORS_PER_S, "alone");
    let after = rate(&model, 61, 68);
    assert!(after < 0.01 * DEVICE_SECTORS_PER_S, "{after}");
    // A load that grows during the check raises the latency too.
    let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    model.load = load;
    let heavy = Load { cost: 2.0, ..load };
    model.events.push((90 * SECOND, Event::Load(heavy)));
    run(&mut model, None, 100);
    let (before, after) = (rate(&model, 80, 90), rate(&model, 91, 95));
    assert!(after < 0.3 * before, "{after} of {before}");
}

#[test]
fn bursts_do_not_meet_a_check_at_full_speed_each_time() {
    let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    let busy = at(0.3, Noise::None);
    for burst in 0..40 {
        let at = (20 + 8 * burst) * SECOND;
        model.events.push((at, Event::Load(busy)));
        model
            .events
            .push((at + SECOND, Event::Load(Load { rate: 0.0, ..busy })));
    }
    run(&mut model, None, 340);
    let alone = |from: u64, to: u64| {
        let met = (from..to).filter(|burst| {
            let before = (20 + 8 * burst) as usize - 1;
            model.history[before].0 > 0.8 * DEVICE_SECTORS_PER_S
        });
        met.count()
    };
    assert!(alone(20, 40) < 5, "{} of 20", alone(20, 40));
}

#[test]
fn a_journal_is_no_foreground() {
    let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    let busy = Load {
        rate: 200.0,
        ..at(0.3, Noise::None)
    };
    for commit in 1..20 {
        let at = 5 * commit * SECOND;
        model.events.push((at, Event::Load(busy)));
        model
            .events
            .push((at + SECOND / 10, Event::Load(Load { rate: 0.0, ..busy })));
    }
    run(&mut model, None, 100);
    let got = rate(&model, 10, 100);
    assert!(got > 0.93 * DEVICE_SECTORS_PER_S, "{got}");
}

/// Load in which a foreground request beside a check at full speed waits for 0.3 seconds.
fn slow_volumes() -> Load {
    Load {
        rate: 0.0,
        alone: 0.002,
        cost: 0.3,
        gentle: 0.3,
        noise: Noise::None,
        barrier: None,
    }
}

#[test]
fn one_who_waits_for_each_answer_is_met_though_the_check_makes_him_few_requests() {
    let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    model.load = slow_volumes();
    let comes = 30 * SECOND + 300_000_000;
    model.events.push((comes, Event::Client));
    run(&mut model, None, 40);
    assert!(rate(&model, 10, 30) > 0.95 * DEVICE_SECTORS_PER_S, "alone");
    let after = rate(&model, 32, 37);
    assert!(after < 0.01 * DEVICE_SECTORS_PER_S, "{after}");
    let slow = model.latencies.iter().skip(1);
    let slow = slow.filter(|(then, latency)| *then > comes + SECOND && *latency > 0.1);
    assert_eq!(slow.count(), 0, "within a second");
}

#[test]
fn a_journal_on_slow_volumes_is_no_foreground_either() {
    let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    let commits = Load {
        rate: 20.0,
        ..slow_volumes()
    };
    model.load = slow_volumes();
    for commit in 1..40 {
        let at = 5 * commit * SECOND;
        model.events.push((at, Event::Load(commits)));
        let over = at + 3 * SECOND / 10;
        model.events.push((over, Event::Load(slow_volumes())));
    }
    run(&mut model, None, 200);
    let got = rate(&model, 10, 200);
    println!("{:.3} of full speed", got / DEVICE_SECTORS_PER_S);
    assert!(got > 0.93 * DEVICE_SECTORS_PER_S, "{got}");
}

#[test]
fn the_least_rate_costs_few_superblocks() {
    let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    // Any check delays all requests.
    model.load = Load {
        cost: 50.0,
        ..at(0.3, Noise::None)
    };
    run(&mut model, None, 180);
    let mib = model.position * 512.0 / record::Bytes::MIB.0 as f64;
    assert!((10.0..400.0).contains(&mib), "near the least: {mib}");
    let each = f64::from(model.superblocks) / mib;
    println!("{each:.1} superblocks for each MiB");
    // Steps of 256 KiB, two or three superblocks each, would be ten and more.
    assert!(each < 3.0, "{each}");
}
