//! Effect of foreign I/O on the figures of a measured disk.

/// Share of the measured I/O below which foreign I/O is a note: a file system's own journal and the background of a
/// quiet host reach as much.
const WARN_SHARE: f64 = 0.01;
/// Share below which foreign I/O is ignored, however narrow the interval.
const IGNORED_SHARE: f64 = 0.001;

/// Share of the interval's half width by which foreign I/O may shift the figure: then 92 of 100 intervals are still
/// right; with half of the width 84 would be.
const MAX_INTERVAL_SHARE: f64 = 0.25;

/// Weight of foreign I/O against a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Foreign I/O may shift the figure out of its interval, but takes less than a hundredth of it.
    Slight,
    /// Foreign I/O shifts the figure by more than the interval allows for.
    Misleading,
}

/// Weight of `foreign` operations (or bytes) against a figure of `measured` ones whose 95 % interval has this half
/// width, as a share of the mean; `None` if they are too few to invalidate the interval.
///
/// On a disk at a limit, foreign I/O reduces the measured I/O. The interval reflects the noise but not this shift: it
/// stays right only if the foreign share is small compared with its half width. Without an interval the foreign share
/// alone decides.
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

    /// A disk with a limit that others share: the I/O of the measurement in each slice of 8 s, and the foreign I/O.
    fn shared(rng: &mut Rng, cap: f64, theirs: f64, scatter: f64) -> (Vec<f64>, f64) {
        let mut foreign = 0.0;
        let slices = (0..80).map(|_| {
            let taken = rng.poisson(theirs / 10.0);
            foreign += taken;
            (cap / 10.0 * (1.0 + scatter * rng.normal()) - taken).max(0.0)
        });
        (slices.collect(), foreign)
    }

    /// Whatever the disk's speed, an interval that foreign I/O invalidates always has a finding.
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
                    // The interval alone is wrong 5 times in 100; the rest is from the allowed quarter of its width.
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
