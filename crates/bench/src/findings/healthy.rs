//! Runs on healthy, quiet devices with known rates: the verdict is `trusted`, and the figures are right.

use record::{Run, Verdict};

use super::test_run::{self, TestRun};

/// Phases of a default run.
const PHASES: u64 = 7;
const RUNS: u64 = 20;

/// A device at 3,000 IOPS with burst credit for `tokens_s` seconds' worth of requests, ten times as fast while the
/// credit lasts.
fn device(tokens_s: f64, noise: f64, memory: f64) -> TestRun {
    let burst_s = tokens_s / 9.0;
    let rate = move |t: f64| {
        // Share of the slice that begins at `t` in which the burst still lasts.
        let share = ((burst_s - t) / 0.1).clamp(0.0, 1.0);
        3000.0 * (1.0 + 9.0 * share)
    };
    let made = TestRun::new(rate).noise(noise).memory(memory);
    match noise {
        0.0 => made.flat(),
        _ => made,
    }
}

/// A run of all phases on such devices, each `seconds` long.
fn run(number: u64, seconds: usize, device: impl Fn() -> TestRun) -> Run {
    let phase = |at: u64| {
        let made = device()
            .lasting(seconds)
            .seed(1 + 7919 * (PHASES * number + at));
        let mut phase = made.run().phases.remove(0);
        phase.name = format!("phase-{at}");
        phase
    };
    let phases = (0..PHASES).map(phase).collect();
    Run {
        phases,
        ..TestRun::steady(3000.0).run()
    }
}

#[test]
fn nine_of_ten_default_runs_are_trusted_and_right() {
    // A phase that is precise enough ends after 3 s.
    let lengths = |noise: f64| if noise <= 0.02 { &[3, 8][..] } else { &[8][..] };
    for tokens_s in [0.0, 0.2, 1.0, 2.0, 5.0] {
        for (noise, memory) in [
            (0.0, 0.0),
            (0.02, 0.0),
            (0.1, 0.0),
            (0.05, 0.5),
            (0.05, 0.8),
        ] {
            for &seconds in lengths(noise) {
                let (mut trusted, mut covered, mut sum) = (0, 0, 0.0);
                for number in 0..RUNS {
                    let run = run(number, seconds, || device(tokens_s, noise, memory));
                    let conclusion = test_run::conclude(&run);
                    trusted += u64::from(conclusion.verdict == Verdict::Trusted);
                    for figures in &conclusion.phases {
                        let iops = figures.flows[0].iops;
                        let (low, high) = (iops.low.unwrap(), iops.high.unwrap());
                        covered += u64::from(low <= 3000.0 && 3000.0 <= high);
                        sum += iops.mean / 3000.0 - 1.0;
                    }
                }
                let phases = RUNS * PHASES;
                let bias = sum / phases as f64;
                let name =
                    format!("{tokens_s} s of tokens, noise {noise}, memory {memory}, {seconds} s");
                println!(
                    "{name}: {trusted} of {RUNS} trusted, {covered} of {phases} covered, bias {bias:.4}"
                );
                assert!(10 * trusted >= 9 * RUNS, "{name}: {trusted} of {RUNS}");
                assert!(
                    100 * covered >= 93 * phases,
                    "{name}: {covered} of {phases}"
                );
                assert!(bias.abs() < 0.01, "{name}: {bias}");
            }
        }
    }
}
