//! Simulated series with known parameters, for tests. Each is reproducible from its seed.

pub(crate) use record::random::SplitMix64 as Rng;

/// A stationary process with a known mean.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StationaryProcess {
    /// First-order autoregression with this memory; its standard deviation is a tenth of the mean.
    Ar(f64),
    /// Moving average of this number of white-noise values.
    Moving(usize),
    /// Poisson counts at a rate that jumps between `rate - swing` and `rate + swing`, staying for
    /// ten slices on average.
    Regimes { rate: f64, swing: f64 },
    /// Independent counts.
    Poisson(f64),
}

pub(crate) const PROCESSES: [StationaryProcess; 11] = [
    StationaryProcess::Ar(0.0),
    StationaryProcess::Ar(0.5),
    StationaryProcess::Ar(0.8),
    StationaryProcess::Ar(0.9),
    StationaryProcess::Ar(0.95),
    StationaryProcess::Ar(-0.5),
    StationaryProcess::Moving(2),
    StationaryProcess::Moving(10),
    StationaryProcess::Regimes {
        rate: 40.0,
        swing: 12.0,
    },
    StationaryProcess::Regimes {
        rate: 400.0,
        swing: 20.0,
    },
    StationaryProcess::Poisson(4.0),
];

const LEVEL: f64 = 1000.0;

impl StationaryProcess {
    pub(crate) fn mean(self) -> f64 {
        match self {
            StationaryProcess::Ar(_) | StationaryProcess::Moving(_) => LEVEL,
            StationaryProcess::Regimes { rate, .. } | StationaryProcess::Poisson(rate) => rate,
        }
    }

    /// The standard deviation of one value, and the factor by which autocorrelation widens that of a mean.
    fn spread(self) -> (f64, f64) {
        match self {
            StationaryProcess::Ar(phi) => (0.1 * LEVEL, (1.0 + phi) / (1.0 - phi)),
            StationaryProcess::Moving(width) => (0.1 * LEVEL, width as f64),
            StationaryProcess::Regimes { rate, swing } => {
                let share = swing * swing / (swing * swing + rate);
                ((swing * swing + rate).sqrt(), 1.0 + 2.0 * share * 0.8 / 0.2)
            }
            StationaryProcess::Poisson(rate) => (rate.sqrt(), 1.0),
        }
    }

    /// The half width, as a share of the mean, with a known process.
    pub(crate) fn ideal_half_width(self, n: usize) -> f64 {
        let (deviation, memory) = self.spread();
        1.96 * deviation * (memory / n as f64).sqrt() / self.mean()
    }

    pub(crate) fn series(self, rng: &mut Rng, n: usize) -> Vec<f64> {
        let (deviation, _) = self.spread();
        match self {
            StationaryProcess::Ar(phi) => {
                let mut state = rng.normal();
                let step = (1.0 - phi * phi).sqrt();
                let next = || {
                    state = phi * state + step * rng.normal();
                    LEVEL + deviation * state
                };
                std::iter::repeat_with(next).take(n).collect()
            }
            StationaryProcess::Moving(width) => {
                let white: Vec<f64> = (0..n + width - 1).map(|_| rng.normal()).collect();
                let root = (width as f64).sqrt();
                white
                    .windows(width)
                    .map(|w| LEVEL + deviation * w.iter().sum::<f64>() / root)
                    .collect()
            }
            StationaryProcess::Regimes { rate, swing } => {
                let mut sign = if rng.uniform() < 0.5 { -1.0 } else { 1.0 };
                let next = || {
                    if rng.uniform() < 0.1 {
                        sign = -sign;
                    }
                    rng.poisson(rate + sign * swing)
                };
                std::iter::repeat_with(next).take(n).collect()
            }
            StationaryProcess::Poisson(rate) => (0..n).map(|_| rng.poisson(rate)).collect(),
        }
    }
}

/// A closed loop or a cap, counted in slices of 100 ms.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Disk {
    /// A volume that grants `rate` operations a second, `grant_s` seconds' worth at a time (zero: one at a time),
    /// whose completions are reported up to `jitter_s` late.
    Cap {
        rate: f64,
        grant_s: f64,
        jitter_s: f64,
    },
    /// Servers with a mean service time of `service_s` seconds and the coefficient of variation `cv` (gamma
    /// distributed), always busy, on a host whose speed changes by `wander` (a share) from slice to slice, with the
    /// autocorrelation `memory`.
    Servers {
        count: usize,
        service_s: f64,
        cv: f64,
        wander: f64,
        memory: f64,
    },
}

impl Disk {
    /// The latency of a request that does not wait.
    pub(crate) fn base_latency_s(self) -> f64 {
        match self {
            Disk::Cap { .. } => 0.0005,
            Disk::Servers { service_s, .. } => service_s,
        }
    }

    pub(crate) fn counts(self, rng: &mut Rng, slices: usize) -> Vec<f64> {
        const SLICE_S: f64 = 0.1;
        let mut counts = vec![0.0; slices];
        let mut count_at = |time: f64| {
            if time >= 0.0 && ((time / SLICE_S) as usize) < slices {
                counts[(time / SLICE_S) as usize] += 1.0;
            }
        };
        let end = slices as f64 * SLICE_S;
        match self {
            Disk::Cap {
                rate,
                grant_s,
                jitter_s,
            } => {
                let phase = rng.uniform();
                let mut granted = 0u64;
                // Begins a second early, to include delayed completions from before.
                let start = -1.0;
                loop {
                    let due = (granted as f64 + phase) / rate;
                    let time = start
                        + if grant_s > 0.0 {
                            ((due / grant_s).floor() + phase) * grant_s
                        } else {
                            due
                        };
                    if time >= end {
                        break;
                    }
                    count_at(time + jitter_s * rng.uniform() * rng.uniform());
                    granted += 1;
                }
            }
            Disk::Servers {
                count,
                service_s,
                cv,
                wander,
                memory,
            } => {
                let mut speed = 0.0;
                let speeds: Vec<f64> = (0..slices + 1)
                    .map(|_| {
                        speed = memory * speed + (1.0 - memory * memory).sqrt() * rng.normal();
                        (1.0 + wander * speed).max(0.1)
                    })
                    .collect();
                for _ in 0..count {
                    let mut time = -service_s * rng.uniform();
                    while time < end {
                        let speed = speeds[(time.max(0.0) / SLICE_S) as usize];
                        time += service_s * gamma(rng, cv) / speed;
                        count_at(time);
                    }
                }
            }
        }
        counts
    }
}

/// Gamma distributed with mean 1 and the coefficient of variation `cv`, by Marsaglia and Tsang (2000), for cv up
/// to 1.
fn gamma(rng: &mut Rng, cv: f64) -> f64 {
    if cv == 0.0 {
        return 1.0;
    }
    let shape = 1.0 / (cv * cv);
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = rng.normal();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && rng.uniform().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v / shape;
        }
    }
}
