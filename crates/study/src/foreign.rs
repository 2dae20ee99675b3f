//! I/O of others on a disk that is measured: its effect on the figure.

/// Share of the measured I/O below which foreign I/O is a note: the file system's own journal and the background of a
/// quiet host do as much.
const WARN_SHARE: f64 = 0.01;
/// Share below which foreign I/O is ignored, however narrow the interval.
const IGNORED_SHARE: f64 = 0.001;

/// Share of the interval's half width by which foreign I/O may move the figure: 92 of 100 intervals are still right
/// then; with half of the width 84 would be.
const MAX_INTERVAL_SHARE: f64 = 0.25;

/// Weight of foreign I/O against a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Foreign I/O may move the interval off the truth, but takes less than a hundredth of the figure.
    Slight,
    /// Foreign I/O moves the figure further than the interval allows for.
    Misleading,
}

/// Weight of `foreign` operations (or bytes) against a figure of `measured` ones whose 95 % interval has this
/// half width, as a fraction of the mean; `None` where they are too few to move it off the truth.
///
/// A disk at a limit gives foreign I/O what it does not give the measurement. The interval tells how far
/// chance moved the figure, and knows nothing of that: it stays right only where what others took is little
/// next to its half width. Without an interval nothing hides the foreign share.
pub fn weigh(foreign: f64, measured: f64, half_width: Option<f64>) -> Option<Weight> {
    if !(foreign > 0.0 && measured >= 0.0) {
        return None;
    }
    let share = foreign / measured;
    if share <= (MAX_INTERVAL_SHARE * half_width.unwrap_or(0.0)).max(IGNORED_SHARE) {
        None
    } else if share <= WARN_SHARE {
        Some(Weight::Slight)
    } else {
        Some(Weight::Misleading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::mean_interval;
    use crate::simulate::Rng;

    /// A disk with a limit, which others share: what the measurement gets in each slice of 8 s, and what they do.
    fn shared(rng: &mut Rng, cap: f64, theirs: f64, scatter: f64) -> (Vec<f64>, f64) {
        let mut foreign = 0.0;
        let slices = (0..80).map(|_| {
            let taken = rng.poisson(theirs / 10.0);
            foreign += taken;
            (cap / 10.0 * (1.0 + scatter * rng.normal()) - taken).max(0.0)
        });
        (slices.collect(), foreign)
    }

    /// Whatever the disk's speed, an interval that foreign I/O moved off the truth is not given without a finding.
    #[test]
    fn foreign_io_that_moves_the_figure_off_its_interval_is_found_at_any_speed() {
        let mut rng = Rng::new(7);
        for cap in [20.0, 100.0, 500.0, 3000.0, 100_000.0] {
            for scatter in [0.001, 0.02, 0.1] {
                for theirs in [0.02, 0.05, 0.1, 0.4] {
                    let mut unseen = 0;
                    for _ in 0..200 {
                        let (slices, foreign) = shared(&mut rng, cap, theirs * cap, scatter);
                        let interval = mean_interval(&slices).unwrap();
                        let half = Some(interval.half_width_fraction());
                        let found = weigh(foreign, slices.iter().sum(), half);
                        let wrong = !interval.contains(cap / 10.0);
                        unseen += u32::from(wrong && found < Some(Weight::Misleading));
                    }
                    // The interval alone is wrong 5 times in 100; the rest is chance, and the quarter of its width.
                    assert!(unseen <= 26, "{cap} {scatter} {theirs}: {unseen}");
                }
            }
        }
    }

    #[test]
    fn forty_a_second_alongside_sixty_mislead_and_a_journal_does_not() {
        assert_eq!(weigh(320.0, 480.0, Some(0.026)), Some(Weight::Misleading));
        assert_eq!(weigh(2.0, 800.0, Some(0.01)), None);
        assert_eq!(weigh(4.0, 800.0, Some(0.002)), Some(Weight::Slight));
        assert_eq!(weigh(70.0, 45_000.0, Some(0.02)), None);
    }

    #[test]
    fn nothing_is_nothing_and_no_interval_hides_nothing() {
        assert_eq!(weigh(0.0, 0.0, None), None);
        assert_eq!(weigh(-5.0, 100.0, None), None);
        assert_eq!(weigh(5.0, 100.0, None), Some(Weight::Misleading));
        assert_eq!(weigh(5.0, 0.0, Some(0.1)), Some(Weight::Misleading));
        assert_eq!(weigh(f64::NAN, 100.0, None), None);
    }
}
