//! Cold positions, recognized by a first read next to a warm one.

use super::{error, share};
use crate::cold::sample::{Pair, Sample, assess};
use crate::cold::stream::{ReadClassifier, Temperature};
use crate::simulate::Rng;

/// A volume with known cold positions.
#[derive(Clone, Copy, Debug)]
struct Volume {
    /// The share of its positions that is cold.
    cold: f64,
    /// The share that is not allocated, and is read three times as fast.
    empty: f64,
    /// Mean exponential wait that foreign I/O adds to every read, in seconds.
    busy_s: f64,
}

const CALM: Volume = Volume {
    cold: 0.5,
    empty: 0.0,
    busy_s: 0.0,
};

impl Volume {
    /// Latency of a warm read of allocated data, whose base time is multiplied by `factor`.
    fn warm_s(self, rng: &mut Rng, factor: f64) -> f64 {
        factor * 0.001 * (0.3 * rng.normal()).exp() + self.busy_s * rng.exponential()
    }

    /// Latency of a first read of allocated data, and true if it was cold.
    fn first_s(self, rng: &mut Rng) -> (f64, bool) {
        let is_cold = rng.uniform() < self.cold;
        let fetch = if is_cold {
            0.02 + 0.06 * rng.uniform()
        } else {
            0.0
        };
        (self.warm_s(rng, 1.0) + fetch, is_cold)
    }

    fn pairs(self, rng: &mut Rng, count: usize) -> (Vec<Pair>, Vec<bool>) {
        let one = |_| {
            // Unallocated blocks need no fetch.
            let is_empty = rng.uniform() < self.empty;
            let factor = if is_empty { 0.3 } else { 1.0 };
            let (first_s, is_cold) = if is_empty {
                (self.warm_s(rng, factor), false)
            } else {
                self.first_s(rng)
            };
            let warm_s = self.warm_s(rng, factor);
            (Pair { first_s, warm_s }, is_cold)
        };
        (0..count).map(one).unzip()
    }

    fn truth(self) -> f64 {
        self.cold * (1.0 - self.empty)
    }
}

/// Results of the rule over many samples.
struct Tally {
    /// The share of intervals that contain the true share.
    covers: f64,
    /// The share of samples with a significant difference.
    differs: f64,
    /// The mean share of misjudged positions.
    wrong: f64,
    /// The mean error of the cold share.
    bias: f64,
    /// The mean width of the interval of the cold share.
    width: f64,
    /// The share of the reported penalty intervals that contain the true median.
    penalty: f64,
    /// The mean of the mean penalties, in seconds.
    mean_s: f64,
}

fn tally(volume: Volume, count: usize, trials: usize) -> Tally {
    let (mut differs, mut wrong, mut bias, mut width) = (0.0, 0.0, 0.0, 0.0);
    let (mut penalties, mut held, mut means, mut sum) = (0.0, 0.0, 0.0, 0.0);
    let per = 1.0 / trials as f64;
    let covers = share(trials, 7, |rng| {
        let (pairs, truth) = volume.pairs(rng, count);
        let got: Sample = assess(&pairs).unwrap();
        let misjudged = got.places.iter().zip(&truth).filter(|(a, b)| a != b);
        wrong += per * misjudged.count() as f64 / count as f64;
        differs += per * f64::from(u8::from(got.differs));
        bias += per * (got.cold.share - volume.truth());
        width += per * (got.cold.high - got.cold.low);
        if let Some(penalty) = got.penalty {
            penalties += 1.0;
            held += f64::from(u8::from(penalty.median_s.contains(0.05)));
        }
        if let Some(mean) = got.mean_penalty_s {
            means += 1.0;
            sum += mean;
        }
        got.cold.contains(volume.truth())
    });
    let mean_s = sum / means;
    let penalty = held / penalties;
    Tally {
        covers,
        differs,
        wrong,
        bias,
        width,
        penalty,
        mean_s,
    }
}

#[test]
fn calm_volumes_are_judged_without_error() {
    for cold in [0.1, 0.5, 0.9, 1.0] {
        for empty in [0.0, 0.3] {
            let volume = Volume {
                cold,
                empty,
                ..CALM
            };
            let got = tally(volume, 300, 200);
            assert!(got.differs > 0.999, "{volume:?}");
            assert!(got.wrong < 0.01, "{volume:?}: {}", got.wrong);
            assert!(
                got.covers >= 0.95 - error(0.95, 200),
                "{volume:?}: {}",
                got.covers
            );
            assert!(
                got.penalty >= 0.95 - error(0.95, 200),
                "{volume:?}: {}",
                got.penalty
            );
        }
    }
}

#[test]
fn warm_volumes_rarely_differ() {
    for busy_s in [0.0, 0.03] {
        for empty in [0.0, 0.3] {
            let got = tally(
                Volume {
                    cold: 0.0,
                    empty,
                    busy_s,
                },
                300,
                400,
            );
            assert!(got.differs <= 0.01 + error(0.01, 400), "{}", got.differs);
            assert!(got.covers >= 0.95 - error(0.95, 400), "{}", got.covers);
            assert!(got.width < 0.05 || busy_s > 0.0, "{}", got.width);
        }
    }
}

#[test]
fn a_busy_volume_costs_precision_and_not_truth() {
    for cold in [0.3, 0.7, 1.0] {
        let volume = Volume {
            cold,
            busy_s: 0.03,
            ..CALM
        };
        let got = tally(volume, 300, 200);
        assert!(got.differs > 0.98, "{volume:?}: {}", got.differs);
        assert!(
            got.covers >= 0.93 - error(0.93, 200),
            "{volume:?}: {}",
            got.covers
        );
        assert!(
            got.bias.abs() < 0.06 && got.width < 0.4,
            "{volume:?}: {} {}",
            got.bias,
            got.width
        );
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn table_of_cold_shares() {
    println!(
        "300 pairs, 2,000 samples; in %: how often the interval holds the truth, how often first"
    );
    println!(
        "and warm reads differ, places misjudged, bias and width of the cold share, and how often the"
    );
    println!("interval of the median penalty holds it");
    for busy_s in [0.0, 0.003, 0.01, 0.03, 0.1] {
        for cold in [0.0, 0.01, 0.03, 0.1, 0.5, 0.9, 1.0] {
            let volume = Volume {
                cold,
                empty: 0.2,
                busy_s,
            };
            let got = tally(volume, 300, 2000);
            // If the foreground delays a read by as much as a cold block does, or more, less can be determined.
            let (covers, wrong) = match busy_s {
                0.0..0.005 => (0.92, 0.01),
                0.005..0.02 => (0.88, 0.09),
                0.02..0.05 => (0.93, 0.25),
                _ => (0.8, 0.6),
            };
            assert!(
                got.covers >= covers - error(covers, 2000),
                "{volume:?}: {}",
                got.covers
            );
            assert!(
                got.wrong <= wrong + error(wrong, 2000),
                "{volume:?}: {}",
                got.wrong
            );
            println!(
                "wait {:>3.0} ms, cold {:>5.1}: covers {:>5.1}, differs {:>5.1}, wrong {:>4.1}, \
                 bias {:>5.1}, width {:>4.1}, penalty {:>5.1}, mean {:>3.0} ms",
                1e3 * busy_s,
                100.0 * volume.truth(),
                100.0 * got.covers,
                100.0 * got.differs,
                100.0 * got.wrong,
                100.0 * got.bias,
                100.0 * got.width,
                100.0 * got.penalty,
                1e3 * got.mean_s
            );
        }
    }
}

/// The share of the reads that were classified, and of these the share classified wrongly.
fn judged(
    volume: Volume,
    warm_s: Option<f64>,
    reads: usize,
    seed: u64,
) -> (f64, f64, ReadClassifier) {
    let mut rng = Rng::new(seed);
    let mut stream = ReadClassifier::new(warm_s);
    let (mut count, mut wrong) = (0.0, 0.0);
    for _ in 0..reads {
        let (latency, is_cold) = volume.first_s(&mut rng);
        if let Some(found) = stream.watch(latency) {
            count += 1.0;
            wrong += f64::from(u8::from(is_cold != (found == Temperature::Cold)));
        }
    }
    (count / reads as f64, wrong / f64::max(count, 1.0), stream)
}

#[test]
fn a_stream_learns_its_threshold() {
    for cold in [0.02, 0.1, 0.5, 0.9, 0.98] {
        let (judged_share, wrong, stream) = judged(Volume { cold, ..CALM }, None, 5000, 3);
        let share = stream.cold_share().unwrap();
        assert!(judged_share > 0.95, "{cold}: {judged_share}");
        assert!(wrong < 0.002, "{cold}: {wrong}");
        assert!((share - cold).abs() < 0.03, "{cold}: {share}");
        let threshold = stream.threshold_s().unwrap();
        assert!((0.002..0.025).contains(&threshold), "{cold}: {threshold}");
    }
}

#[test]
fn a_stream_of_one_kind_has_no_threshold() {
    for busy_s in [0.0, 0.03] {
        for cold in [0.0, 1.0] {
            let volume = Volume {
                cold,
                busy_s,
                ..CALM
            };
            let (judged_share, _, stream) = judged(volume, None, 20_000, 4);
            assert_eq!(
                (judged_share, stream.threshold_s()),
                (0.0, None),
                "{volume:?}"
            );
        }
    }
    let all_warm = Volume { cold: 0.0, ..CALM };
    let (judged_share, wrong, _) = judged(all_warm, Some(0.001), 5000, 4);
    assert!(judged_share > 0.95 && wrong == 0.0);
}

#[test]
#[ignore = "long proof: make prove"]
fn table_of_streams() {
    println!("reads that a stream could judge, and of these the wrong ones, in %");
    for busy_s in [0.0, 0.003, 0.01] {
        for cold in [0.0, 0.01, 0.03, 0.1, 0.5, 0.9, 1.0] {
            let volume = Volume {
                cold,
                empty: 0.0,
                busy_s,
            };
            let (judged_share, wrong, _) = judged(volume, Some(0.001), 100_000, 5);
            // If the foreground's waits are like those of cold blocks, few reads are classified, but those correctly.
            assert!(wrong <= 0.02, "{volume:?}: {wrong}");
            assert!(
                judged_share >= 0.95 || busy_s > 0.0 || cold == 1.0,
                "{volume:?}: {judged_share}"
            );
            println!(
                "wait {:>3.0} ms, cold {:>5.1}: judged {:>5.1}, wrong {:>4.2}",
                1e3 * busy_s,
                100.0 * cold,
                100.0 * judged_share,
                100.0 * wrong
            );
        }
    }
}
