//! The mean of an autocorrelated series, with its interval.

use crate::noise::{Noise, batch_means, mean};

/// A mean and the bounds of its 95 % interval, in the unit of the series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// Half the width of the interval as a fraction of the mean; infinite where the mean is zero
    /// and the width is not.
    pub fn half_width_fraction(&self) -> f64 {
        let half = 0.5 * (self.high - self.low);
        if half == 0.0 { 0.0 } else { half / self.mean.abs() }
    }
}

/// Fewer values than this say too little about their own memory.
pub const LEAST: usize = 8;

/// x
pub fn mean_interval(slices: &[f64]) -> Option<Interval> {
    if slices.len() < LEAST {
        return None;
    }
    let scale = slices.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    if slices.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mean_value = slices.iter().map(|x| x / slices.len() as f64).sum::<f64>();
    let scaled: Vec<f64> = slices.iter().map(|x| (x - mean_value) / scale).collect();
    let (batches, _) = batch_means(&scaled);
    let count = batches.len();
    let Some(noise) = Noise::learn(&batches, &[vec![1.0; count]]) else {
        return Some(Interval { mean: mean_value, low: mean_value, high: mean_value });
    };
    let half = scale * noise.half_width(&vec![1.0 / count as f64; count], 0.05);
    let _ = mean(&batches);
    Some(Interval { mean: mean_value, low: mean_value - half, high: mean_value + half })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{PROCESSES, Rng};

    #[test]
    #[ignore = "long proof: make prove"]
    fn coverage_table() {
        let trials = 1000;
        for process in PROCESSES {
            print!("{:28}", format!("{process:?}"));
            for n in [10, 15, 30, 50, 80, 200, 600, 3000] {
                let mut rng = Rng::new(7);
                let mut hit = 0;
                let mut width = 0.0;
                for _ in 0..trials {
                    let series = process.series(&mut rng, n);
                    let i = mean_interval(&series).unwrap();
                    if i.low <= process.mean() && process.mean() <= i.high {
                        hit += 1;
                    }
                    width += i.half_width_fraction() / trials as f64;
                }
                let ideal = process.ideal_half_width(n);
                print!(" {n}: {:.1} ({:.2})", 100.0 * hit as f64 / trials as f64, width / ideal);
            }
            println!();
        }
    }

    #[test]
    #[ignore = "long proof: make prove"]
    fn stop_table() {
        for process in PROCESSES {
            // Such that half the runs would stop at about 50 slices.
            let mut rng = Rng::new(9);
            let trials = 1000;
            let scale = 0.03 / process.ideal_half_width(50);
            print!("{:28}", format!("{process:?}"));
            for (twice, times) in [(false, 1.0), (true, 1.0), (true, 0.8)] {
                for size in [0.5, 0.7, 1.0] {
                let (mut hit, mut early, mut hit_early) = (0, 0, 0);
                for _ in 0..trials {
                    let mut series = process.series(&mut rng, 80);
                    for x in &mut series {
                        *x = process.mean() + (*x - process.mean()) * scale * size;
                    }
                    let mut before = !twice;
                    let mut n = 30;
                    let i = loop {
                        let i = mean_interval(&series[..n]).unwrap();
                        let ok = i.half_width_fraction() <= 0.03 * times;
                        if ok && before {
                            early += 1;
                            hit_early += (i.low <= process.mean() && process.mean() <= i.high) as i32;
                            break i;
                        }
                        before = ok || !twice;
                        if n == 80 {
                            break i;
                        }
                        n += 10;
                    };
                    if i.low <= process.mean() && process.mean() <= i.high {
                        hit += 1;
                    }
                }
                print!(" {:.1} (early {early} {:.1})", 100.0 * hit as f64 / trials as f64, 100.0 * hit_early as f64 / early as f64);
                }
                print!("|");
            }
            println!();
        }
    }
}
