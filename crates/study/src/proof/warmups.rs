//! Warm-up and opening bursts: the remaining bias of the mean, and the coverage of its interval.

use super::{LONG, error, hopeless};
use crate::interval::mean_interval;
use crate::simulate::{PROCESSES, Rng, StationaryProcess};
use crate::steady::{burst_end, warmup_end};

const LEVEL: f64 = 300.0;

/// A series of slices and its true mean.
type SeriesWithMean = (Vec<f64>, f64);

/// Start of a series, as a factor on its level.
#[derive(Clone, Copy, Debug)]
enum SeriesStart {
    /// The series begins at its level.
    None,
    /// A cap that begins with tokens for `seconds`, on a disk that is `speed` times as fast.
    Tokens { seconds: f64, speed: f64 },
    /// The first slice has this multiple of the level, as with a throttle that grants a slice twice.
    First(f64),
    /// The series approaches its level from a share of it, with this time constant in seconds.
    Ramp { from: f64, seconds: f64 },
}

impl SeriesStart {
    const fn tokens(seconds: f64, speed: f64) -> SeriesStart {
        SeriesStart::Tokens { seconds, speed }
    }

    /// The factor on slice `at`.
    fn factor(self, at: usize) -> f64 {
        match self {
            SeriesStart::None => 1.0,
            SeriesStart::Tokens { seconds, speed } => {
                // Tokens flow in while the burst lasts.
                let lasts = seconds / (speed - 1.0);
                let share = (10.0 * lasts - at as f64).clamp(0.0, 1.0);
                1.0 + share * (speed - 1.0)
            }
            SeriesStart::First(factor) if at == 0 => factor,
            SeriesStart::First(_) => 1.0,
            SeriesStart::Ramp { from, seconds } => {
                1.0 - (1.0 - from) * (-(at as f64 + 0.5) * 0.1 / seconds).exp()
            }
        }
    }
}

/// A series with a start: of a cap, or with noise of the memory `phi` and this standard deviation as a share of the
/// level.
fn opened(
    opening: SeriesStart,
    phi: f64,
    noise: f64,
) -> impl Fn(&mut Rng, usize) -> SeriesWithMean {
    move |rng, slices| {
        let around = StationaryProcess::Ar(phi).series(rng, slices);
        let value = |(at, x): (usize, &f64)| {
            (LEVEL * (opening.factor(at) + 10.0 * noise * (x / 1000.0 - 1.0))).round()
        };
        (around.iter().enumerate().map(value).collect(), LEVEL)
    }
}

/// A rate that changes by this share from the first slice to the last.
fn drifting(change: f64) -> impl Fn(&mut Rng, usize) -> SeriesWithMean {
    move |rng, slices| {
        let at = |t: usize| 1.0 + change * ((t as f64 + 0.5) / slices as f64 - 0.5);
        let series = (0..slices).map(|t| LEVEL * (at(t) + 0.03 * rng.normal()));
        (series.collect(), LEVEL)
    }
}

/// A rate that alternates every second between half the level and one and a half times the level, with a random phase.
fn alternating(rng: &mut Rng, slices: usize) -> SeriesWithMean {
    let begun = (20.0 * rng.uniform()) as usize;
    let at = |t: usize| {
        if ((t + begun) / 10).is_multiple_of(2) {
            0.5
        } else {
            1.5
        }
    };
    let series: Vec<f64> = (0..slices)
        .map(|t| LEVEL * (at(t) + 0.03 * rng.normal()))
        .collect();
    (series, LEVEL)
}

/// Result of a rule on a class of series.
#[derive(Debug)]
struct RuleAccuracy {
    /// The mean error of the mean, as a share of the truth.
    bias: f64,
    /// The share of series whose interval covers the truth.
    covered: f64,
    /// The share of series that are trimmed.
    trimmed: f64,
    /// The mean half width of the interval, as a share of the truth.
    width: f64,
}

fn left(
    slices: usize,
    trials: usize,
    made: impl Fn(&mut Rng, usize) -> SeriesWithMean,
) -> RuleAccuracy {
    let mut rng = Rng::new(11);
    let mut left = RuleAccuracy {
        bias: 0.0,
        covered: 0.0,
        trimmed: 0.0,
        width: 0.0,
    };
    for _ in 0..trials {
        let (series, truth) = made(&mut rng, slices);
        let end = warmup_end(&series);
        let interval = mean_interval(&series[end..]).unwrap();
        let one = 1.0 / trials as f64;
        left.bias += one * (interval.mean / truth - 1.0);
        left.width += one * 0.5 * (interval.high - interval.low) / truth;
        // A flat cap has an interval of width zero, and its true mean may be off by rounding.
        let near = (interval.mean / truth - 1.0).abs() < 1e-3;
        left.covered += one * f64::from(u8::from(near || interval.contains(truth)));
        left.trimmed += one * f64::from(u8::from(end > 0));
    }
    left
}

const BURSTS: [SeriesStart; 8] = [
    SeriesStart::None,
    SeriesStart::First(1.36),
    SeriesStart::First(2.9),
    SeriesStart::tokens(1.0, 10.0),
    SeriesStart::tokens(2.0, 10.0),
    SeriesStart::tokens(5.0, 10.0),
    SeriesStart::tokens(0.5, 2.0),
    SeriesStart::tokens(2.0, 2.0),
];
const RAMPS: [SeriesStart; 2] = [
    SeriesStart::Ramp {
        from: 0.1,
        seconds: 0.2,
    },
    SeriesStart::Ramp {
        from: 0.5,
        seconds: 0.5,
    },
];
/// Memory and standard deviation of the noise.
const NOISES: [(f64, f64); 4] = [(0.0, 0.001), (0.0, 0.02), (0.0, 0.1), (0.8, 0.05)];

/// True if the start is over within the third of a series that may be left out.
fn is_knowable(opening: SeriesStart, slices: usize) -> bool {
    opening.factor(slices / 3) < 1.01
}

impl RuleAccuracy {
    /// Panics if the bias is more than `share` of the half width (and more than 0.2 %), or the coverage is too low.
    fn assert(self, name: &str, share: f64, trials: usize) -> RuleAccuracy {
        let most = f64::max(0.002, share * self.width);
        assert!(self.bias.abs() <= most, "{name}: {self:?}");
        let least = 0.94 - error(0.94, trials);
        assert!(self.covered >= least, "{name}: {self:?}");
        self
    }

    fn row(&self) -> String {
        let percent = [self.bias, self.covered, self.trimmed, self.width].map(|x| 100.0 * x);
        let [bias, covered, trimmed, width] = percent;
        format!("{bias:6.2} {covered:5.1} {trimmed:5.1} {width:6.2}")
    }
}

#[test]
fn an_opening_burst_is_left_out_and_so_is_a_ramp() {
    let trials = 60;
    for slices in [30, 80] {
        for (memory, noise) in [NOISES[0], NOISES[1], NOISES[3]] {
            for opening in BURSTS.into_iter().filter(|one| is_knowable(*one, slices)) {
                let name = format!("{opening:?} {memory} {noise} {slices}");
                let left = left(slices, trials, opened(opening, memory, noise));
                left.assert(&name, 0.15, trials);
            }
        }
        for opening in RAMPS {
            let left = left(slices, trials, opened(opening, 0.0, 0.02));
            left.assert(&format!("{opening:?} {slices}"), 0.35, trials);
        }
    }
}

#[test]
fn what_has_no_warmup_is_hardly_ever_trimmed() {
    let trials = 100;
    let most = 0.05 + error(0.05, trials);
    for slices in [30, 80] {
        for change in [0.05, -0.05, 0.2, -0.2] {
            let left = left(slices, trials, drifting(change));
            let left = left.assert(&format!("drift by {change}"), 0.15, trials);
            assert!(left.trimmed <= most, "{change}: {left:?}");
        }
        assert_eq!(left(slices, trials, alternating).trimmed, 0.0);
    }
}

#[test]
fn a_slow_start_is_no_burst() {
    let mut rng = Rng::new(12);
    for opening in RAMPS {
        for _ in 0..20 {
            let (series, _) = opened(opening, 0.0, 0.02)(&mut rng, 80);
            assert!(burst_end(&series) == 0 && warmup_end(&series) > 0);
        }
    }
    let (series, _) = opened(SeriesStart::tokens(2.0, 10.0), 0.0, 0.02)(&mut rng, 80);
    assert_eq!(burst_end(&series), 3);
}

#[test]
#[ignore = "long proof: make prove"]
fn table_of_warmups() {
    println!("bias of the mean in %, coverage in %, trimmed in %, half width in %");
    for opening in BURSTS.into_iter().chain(RAMPS) {
        let share = if matches!(opening, SeriesStart::Ramp { .. }) {
            0.35
        } else {
            0.1
        };
        for (memory, noise) in NOISES {
            let name = format!("{opening:?}, memory {memory}, noise {noise}");
            print!("{name:60}");
            for slices in [30, 80, 200] {
                let left = left(slices, LONG, opened(opening, memory, noise));
                print!(" | {slices}: {}", left.row());
                if is_knowable(opening, slices) {
                    left.assert(&name, share, LONG);
                }
            }
            println!();
        }
    }
    for process in PROCESSES {
        let name = format!("{process:?}");
        print!("{name:60}");
        for slices in [30, 80, 200] {
            let left = left(slices, LONG, |rng, n| {
                (process.series(rng, n), process.mean())
            });
            print!(" | {slices}: {}", left.row());
            if !hopeless(process, slices) {
                left.assert(&name, 0.1, LONG);
            }
        }
        println!();
    }
    for change in [0.05, -0.05, 0.2, -0.2] {
        let name = format!("drift by {change}");
        print!("{name:60}");
        for slices in [30, 80, 200] {
            let left = left(slices, LONG, drifting(change));
            print!(" | {slices}: {}", left.assert(&name, 0.1, LONG).row());
        }
        println!();
    }
    print!("{:60}", "alternating");
    for slices in [30, 80, 200] {
        let left = left(slices, LONG, alternating);
        print!(
            " | {slices}: {}",
            left.assert("alternating", 0.1, LONG).row()
        );
    }
    println!();
}
