//! Error rates of the rules for steadiness, warm-up and drops.

use super::{LENGTHS, LONG, error};
use crate::level::find_drop;
use crate::simulate::{PROCESSES, Rng, StationaryProcess};
use crate::steady::{assess, warmup_end};

/// The shares of series that are found unsteady, trimmed of a warm-up, and found to drop.
fn findings(
    slices: usize,
    trials: usize,
    mut series: impl FnMut(&mut Rng, usize) -> Vec<f64>,
) -> [f64; 3] {
    let mut found = [0.0; 3];
    let mut rng = Rng::new(4);
    for _ in 0..trials {
        let series = series(&mut rng, slices);
        let start = warmup_end(&series);
        let answers = [
            !assess(&series[start..]).steady,
            start > 0,
            find_drop(&series).is_some(),
        ];
        for (count, answer) in found.iter_mut().zip(answers) {
            *count += f64::from(u8::from(answer)) / trials as f64;
        }
    }
    found
}

/// A level of 1000 that changes by `change` (a share of the level, as a function of the elapsed share of the series),
/// with noise of the memory `phi` and the standard deviation `noise` (a share).
fn shaped(change: fn(f64) -> f64, phi: f64, noise: f64) -> impl Fn(&mut Rng, usize) -> Vec<f64> {
    move |rng, slices| {
        let series = StationaryProcess::Ar(phi).series(rng, slices);
        let value = |(t, x): (usize, &f64)| {
            1000.0 * (1.0 + change(t as f64 / slices as f64)) + 10.0 * noise * (x - 1000.0)
        };
        series.iter().enumerate().map(value).collect()
    }
}

const DRIFT: fn(f64) -> f64 = |x| 0.2 * x;
const DROP: fn(f64) -> f64 = |x| if x < 0.8 { 0.0 } else { -0.3 };
const EARLY_DROP: fn(f64) -> f64 = |x| if x < 0.3 { 0.0 } else { -0.3 };
const DIP: fn(f64) -> f64 = |x| if (0.4..0.55).contains(&x) { -0.6 } else { 0.0 };
const SLOW_START: fn(f64) -> f64 = |x| if x < 0.125 { -0.2 } else { 0.0 };
const HUMP: fn(f64) -> f64 = |x| 0.2 * (std::f64::consts::PI * x).sin();

#[test]
fn stationary_series_raise_few_alarms() {
    let trials = 100;
    for slices in [30, 50, 80, 200, 600] {
        let mut sum = [0.0; 3];
        for process in PROCESSES {
            let found = findings(slices, trials, |rng, n| process.series(rng, n));
            for (sum, found) in sum.iter_mut().zip(found) {
                *sum += found / PROCESSES.len() as f64;
            }
            assert!(
                found[2] <= 0.01 + error(0.01, trials),
                "drop in {process:?} {slices}: {}",
                found[2]
            );
        }
        assert!(sum[0] <= 0.05 && sum[1] <= 0.05, "{slices}: {sum:?}");
    }
}

#[test]
fn changes_are_detected() {
    let trials = 300;
    let least = 0.95 - error(0.95, trials);
    let [unsteady, _, drop] = findings(80, trials, shaped(DRIFT, 0.0, 0.03));
    assert!(
        unsteady >= least && drop <= 0.02,
        "drift: {unsteady} {drop}"
    );
    for change in [DROP, EARLY_DROP] {
        let [unsteady, warmup, drop] = findings(80, trials, shaped(change, 0.0, 0.05));
        assert!(
            drop >= least && unsteady + warmup >= least,
            "drop: {drop} {unsteady} {warmup}"
        );
    }
    let [unsteady, ..] = findings(80, trials, shaped(HUMP, 0.0, 0.03));
    assert!(unsteady >= least, "hump: {unsteady}");
    let [unsteady, warmup, drop] = findings(80, trials, shaped(SLOW_START, 0.0, 0.03));
    assert!(
        warmup >= least && unsteady <= 0.05 && drop == 0.0,
        "slow start: {warmup} {unsteady} {drop}"
    );
    let [.., drop] = findings(80, trials, shaped(DIP, 0.0, 0.05));
    assert!(drop == 0.0, "dip: {drop}");
}

#[test]
#[ignore = "long proof: make prove"]
fn table_of_findings() {
    println!("% unsteady, warm-up, drop");
    let show = |found: [f64; 3]| {
        found
            .map(|share| format!("{:5.1}", 100.0 * share))
            .join(" ")
    };
    let mut sums = [[0.0; 3]; LENGTHS.len()];
    for process in PROCESSES {
        print!("{:38}", format!("{process:?}"));
        for (sum, slices) in sums.iter_mut().zip(LENGTHS) {
            let found = findings(slices, LONG, |rng, n| process.series(rng, n));
            print!(" {slices}: {}", show(found));
            assert!(found[2] <= 0.01 + error(0.01, LONG), "drop: {found:?}");
            for (sum, found) in sum.iter_mut().zip(found) {
                *sum += found / PROCESSES.len() as f64;
            }
        }
        println!();
    }
    let few = |sum: &[f64; 3]| sum[0] <= 0.05 && sum[1] <= 0.05;
    assert!(sums.iter().all(few), "{sums:?}");
    let [unsteady, warmup, drop] = [0, 1, 2].map(Some);
    let shapes = [
        ("drift", DRIFT, unsteady),
        ("late drop", DROP, drop),
        ("early drop", EARLY_DROP, drop),
        ("dip", DIP, None),
        ("slow start", SLOW_START, warmup),
        ("hump", HUMP, unsteady),
    ];
    for (name, change, truth) in shapes {
        for (phi, noise) in [(0.0, 0.03), (0.0, 0.05), (0.5, 0.03), (0.5, 0.05)] {
            print!("{:38}", format!("{name}, memory {phi}, noise {noise}"));
            for slices in [80, 200, 600] {
                let found = findings(slices, LONG, shaped(change, phi, noise));
                print!(" {slices}: {}", show(found));
                // In 8 s a change of a few deviations is hard to distinguish from autocorrelated noise.
                let least = if phi > 0.0 && slices < 200 { 0.5 } else { 0.95 };
                let is_right = match truth {
                    Some(at) => found[at] >= least,
                    None => found[2] == 0.0,
                };
                assert!(is_right, "{name} {phi} {noise} {slices}: {found:?}");
            }
            println!();
        }
    }
}
