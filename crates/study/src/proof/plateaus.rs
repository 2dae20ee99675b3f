//! Series of caps, and of disks without one.

use super::{error, share};
use crate::plateau::{self, Throughput};
use crate::simulate::{Disk, Rng};

/// Length of a watch's window, in slices of a second.
const SLICES: usize = plateau::MIN_SLICES_REPEATED;
/// Maximum probability that a test of a window finds a plateau by chance.
const MAX_FALSE_POSITIVE_RATE: f64 = 1e-5;

/// The share of phases of `slices` on `disk` that show a plateau, with 20 in flight and requests of
/// one size.
fn plateaus(disk: Disk, slices: usize, trials: usize) -> f64 {
    share(trials, 6, |rng| {
        let ops = disk.counts(rng, slices);
        let bytes: Vec<f64> = ops.iter().map(|x| x * 16384.0).collect();
        let rate = ops.iter().sum::<f64>() / (0.1 * slices as f64);
        let base = disk.base_latency_s();
        let phase = Throughput {
            ops: &ops,
            bytes: &bytes,
            slice_s: 0.1,
            depth: 20.0,
            mean_latency_s: 20.0 / rate,
            base_latency_s: Some(base),
        };
        plateau::assess(&phase).is_some()
    })
}

/// Caps at `rate` a second: smooth, jittered, and granted by the clock in step and out of step with the slices.
fn caps(rate: f64) -> [Disk; 6] {
    [
        (0.0, 0.0),
        (0.0, 0.0002),
        (0.0, 0.02),
        (0.01, 0.0),
        (0.1, 0.001),
        (0.1003, 0.0),
    ]
    .map(|(grant_s, jitter_s)| Disk::Cap {
        rate,
        grant_s,
        jitter_s,
    })
}

/// Disks limited by their own service times at `rate` a second, on a quiet host and on a noisy one.
fn own(rate: f64) -> Vec<Disk> {
    let mut disks = Vec::new();
    for cv in [0.1, 0.3, 1.0] {
        for count in [1, 4, 20] {
            for (wander, memory) in [(0.0, 0.0), (0.01, 0.0), (0.02, 0.8)] {
                disks.push(Disk::Servers {
                    count,
                    service_s: count as f64 / rate,
                    cv,
                    wander,
                    memory,
                });
            }
        }
    }
    disks
}

#[test]
fn caps_are_seen_and_disks_are_not() {
    let trials = 30;
    // 125 a second is 125 MiB/s of 1 MiB requests.
    for rate in [125.0, 400.0, 3000.0] {
        for slices in [50, 80] {
            for disk in caps(rate) {
                let seen = plateaus(disk, slices, trials);
                assert!(
                    seen >= 0.95 - error(0.95, trials),
                    "{disk:?} {slices}: {seen}"
                );
            }
            for disk in own(rate) {
                let seen = plateaus(disk, slices, trials);
                assert!(
                    seen <= 0.02 + error(0.02, trials),
                    "{disk:?} {slices}: {seen}"
                );
            }
        }
    }
}

/// Disks with nearly constant service times, on a quiet host.
fn steady(rate: f64) -> Vec<Disk> {
    let kinds = [0.03, 0.05].map(|cv| [1, 4, 16].map(|count| (cv, count)));
    let disk = |(cv, count)| Disk::Servers {
        count,
        service_s: count as f64 / rate,
        cv,
        wander: 0.0,
        memory: 0.0,
    };
    kinds.into_iter().flatten().map(disk).collect()
}

/// True if `watch` should distinguish a disk from a cap: it is capped, or its service times vary enough for their
/// length.
fn is_told_apart(disk: Disk) -> bool {
    match disk {
        Disk::Cap { .. } => true,
        Disk::Servers {
            count,
            service_s,
            cv,
            ..
        } => {
            let is_seen_to_vary = cv >= 0.1 || cv * cv * count as f64 / service_s >= 4.0;
            is_seen_to_vary && cv * cv >= 0.2 * service_s
        }
    }
}

/// True if `watch` finds a plateau in counts and sizes of 80 seconds.
fn is_seen(ops: &[f64], bytes: &[f64]) -> bool {
    let phase = Throughput {
        ops,
        bytes,
        slice_s: 1.0,
        depth: f64::MIN_POSITIVE,
        mean_latency_s: 0.05,
        base_latency_s: None,
    };
    plateau::assess_often(&phase).is_some()
}

/// Tests of the windows of a disk, one every 5 s for `seconds`: their number, and how many find a plateau.
fn tests_of_windows(disk: Disk, seconds: usize, seed: u64) -> (usize, usize) {
    let tenths = disk.counts(&mut Rng::new(seed), 10 * seconds);
    let counts: Vec<f64> = tenths
        .chunks(10)
        .map(|tenths| tenths.iter().sum())
        .collect();
    let bytes: Vec<f64> = counts.iter().map(|x| x * 16384.0).collect();
    let starts = (0..counts.len() - SLICES).step_by(5);
    let seen = starts
        .clone()
        .filter(|from| is_seen(&counts[*from..from + SLICES], &bytes[*from..from + SLICES]));
    (starts.len(), seen.count())
}

#[test]
fn a_disk_that_is_examined_for_an_hour_is_not_taken_for_capped() {
    // The grants of the last cap beat with the seconds: a sawtooth of half a minute, which the test of a window cannot
    // distinguish from a wander.
    for disk in &caps(400.0)[..5] {
        let (all, seen) = tests_of_windows(*disk, 600, 3);
        assert!(seen as f64 >= 0.9 * all as f64, "{disk:?}: {seen} of {all}");
    }
    let hour = own(400.0).into_iter().map(|disk| (disk, 3600));
    let steady = steady(400.0).into_iter().chain(steady(3200.0));
    let steady = steady.filter(|disk| is_told_apart(*disk));
    for (disk, seconds) in hour.chain(steady.map(|disk| (disk, 900))) {
        let (all, seen) = tests_of_windows(disk, seconds, 4);
        assert_eq!(seen, 0, "{disk:?}: of {all}");
    }
}

/// Prints rows of `trials` series of 80 seconds each: what is drawn, and the percentage of tests that find a plateau.
fn print_series(trials: usize) {
    type Draw = fn(&mut Rng) -> f64;
    let normal: Draw = |rng| 4000.0 + 60.0 * rng.normal();
    let counts: Draw = |rng| rng.poisson(50.0);
    for (name, draw) in [("normal", normal), ("of Poisson", counts)] {
        for sizes in ["one size", "any size"] {
            let seen = share(trials, 21, |rng| {
                let ops: Vec<f64> = (0..SLICES).map(|_| draw(rng)).collect();
                let bytes = match sizes {
                    "one size" => ops.clone(),
                    _ => (0..SLICES).map(|_| draw(rng)).collect(),
                };
                is_seen(&ops, &bytes)
            });
            println!("independent slices, {name}, {sizes}: {:.5}", 100.0 * seen);
            let most = MAX_FALSE_POSITIVE_RATE * if sizes == "one size" { 1.0 } else { 2.0 };
            assert!(seen <= most + error(most, trials), "{name}: {seen}");
        }
    }
    // A late grant has no lasting effect; if a share of the errors accumulates, it has.
    for adds_up in [0.0, 0.1, 0.2, 0.3] {
        let seen = share(trials / 20, 22, |rng| {
            let mut late = 0.0;
            let mut slice = || {
                let before = std::mem::replace(&mut late, 3.0 * rng.normal());
                (400.0 + before - late + 3.0 * adds_up * rng.normal()).round()
            };
            let ops: Vec<f64> = (0..SLICES).map(|_| slice()).collect();
            is_seen(&ops, &ops)
        });
        println!(
            "a cap, of whose errors {adds_up} add up: {:.2}",
            100.0 * seen
        );
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn table_of_window_tests() {
    println!("% of tests of a watch's windows that find a plateau");
    print_series(400_000);
    let (mut all, mut wrong) = (0, 0);
    for (rate, seconds) in [(125.0, 7200), (400.0, 7200), (3000.0, 3600), (16000.0, 900)] {
        let disks = caps(rate).into_iter().chain(own(rate));
        for disk in disks.chain(steady(rate)) {
            let (tests, seen) = tests_of_windows(disk, seconds, 5);
            let share = 100.0 * seen as f64 / tests as f64;
            println!("{:100} {share:7.3} of {tests}", format!("{disk:?}"));
            if matches!(disk, Disk::Servers { .. }) && is_told_apart(disk) {
                all += tests;
                wrong += seen;
            }
        }
    }
    println!("of disks that are told apart: {wrong} of {all}");
    // Tests of overlapping windows are correlated, so that errors come in clusters.
    assert!(wrong as f64 <= 10.0 * MAX_FALSE_POSITIVE_RATE * all as f64);
}

#[test]
#[ignore = "long proof: make prove"]
fn table_of_plateaus() {
    println!("% called a plateau");
    let trials = 300;
    // In two seconds a jitter of many requests hides a cap; it must not make a disk look like one.
    let lengths = [(20, 0.5), (30, 0.75), (50, 0.95), (80, 0.99)];
    for rate in [125.0, 400.0, 3000.0, 16000.0] {
        for disk in caps(rate).into_iter().chain(own(rate)) {
            let row = lengths.map(|(slices, least)| {
                let seen = plateaus(disk, slices, trials);
                let is_right = match disk {
                    Disk::Cap { .. } => seen >= least - error(least, trials),
                    Disk::Servers { .. } => seen <= 0.02 + error(0.02, trials),
                };
                assert!(is_right, "{disk:?} {slices}: {seen}");
                format!("{slices}: {:5.1}", 100.0 * seen)
            });
            println!("{:100} {}", format!("{disk:?}"), row.join(" "));
        }
    }
}
