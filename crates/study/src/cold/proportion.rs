//! Shares of a sample, with their intervals.

/// The 97.5 % quantile of the normal distribution.
const Z_97_5: f64 = 1.959_964;

/// A share between 0 and 1 with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proportion {
    /// Share of the sample, 0 to 1.
    pub share: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Proportion {
    /// The share of `hits` in `all` with the score interval of Wilson (1927), which keeps its coverage near 0 and 1,
    /// where the usual interval has no width (Brown, Cai and DasGupta 2001). `None` if `all` is zero or smaller than
    /// `hits`.
    pub fn of(hits: usize, all: usize) -> Option<Proportion> {
        if all == 0 || hits > all {
            return None;
        }
        let count = all as f64;
        let share = hits as f64 / count;
        let square = Z_97_5 * Z_97_5 / count;
        let middle = (share + 0.5 * square) / (1.0 + square);
        let half = Z_97_5 / (1.0 + square)
            * (share * (1.0 - share) / count + 0.25 * square / count).sqrt();
        Some(Proportion {
            share,
            // Rounding must not push a bound past the share itself.
            low: (middle - half).clamp(0.0, share),
            high: (middle + half).clamp(share, 1.0),
        })
    }

    /// True if `share` lies within the bounds.
    pub fn contains(&self, share: f64) -> bool {
        self.low <= share && share <= self.high
    }

    /// This share less another share of the same sample, at least zero, where nothing counts towards both.
    ///
    /// The bounds are computed from those of the two shares (Newcombe 1998, method 10; Zou and Donner 2008, MOVER).
    pub(super) fn less(&self, other: &Proportion) -> Proportion {
        let share = (self.share - other.share).max(0.0);
        let below = (self.share - self.low).hypot(other.high - other.share);
        let above = (self.high - self.share).hypot(other.share - other.low);
        Proportion {
            share,
            low: (self.share - other.share - below).clamp(0.0, share),
            high: (self.share - other.share + above).clamp(share, 1.0),
        }
    }

    /// `1 - self / of`, at least zero: the part of `of` that this share lacks.
    ///
    /// The bounds of the ratio are those of Donner and Zou (2012, MOVER-R), from the bounds of the two shares. `None`
    /// if `of` may be zero.
    pub(super) fn missing_of(&self, of: &Proportion) -> Option<Proportion> {
        if of.low <= 0.0 {
            return None;
        }
        let product = self.share * of.share;
        let bound = |own: f64, other: f64, sign: f64| {
            let inner = own * (2.0 * self.share - own);
            let outer = other * (2.0 * of.share - other);
            (outer > 0.0).then(|| {
                (product + sign * (product * product - inner * outer).max(0.0).sqrt()) / outer
            })
        };
        let least = bound(self.low, of.high, -1.0)?;
        let most = bound(self.high, of.low, 1.0)?;
        let share = (1.0 - self.share / of.share).clamp(0.0, 1.0);
        Some(Proportion {
            share,
            low: (1.0 - most).clamp(0.0, share),
            high: (1.0 - least).clamp(share, 1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Rng;
    use proptest::prelude::*;

    #[test]
    fn wilson_as_printed() {
        // Newcombe (1998), table I: 81 of 263 and 15 of 148.
        for (hits, all, low, high) in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605)] {
            let got = Proportion::of(hits, all).unwrap();
            assert!(
                (got.low - low).abs() < 1e-4 && (got.high - high).abs() < 1e-4,
                "{got:?}"
            );
        }
        assert_eq!(Proportion::of(0, 0), None);
        assert_eq!(Proportion::of(2, 1), None);
        assert_eq!(Proportion::of(0, 20).unwrap().low, 0.0);
        assert_eq!(Proportion::of(20, 20).unwrap().high, 1.0);
    }

    #[test]
    fn the_ratio_covers() {
        let mut rng = Rng::new(11);
        for (cold, seen) in [(0.1, 0.9), (0.5, 0.5), (0.9, 0.7)] {
            let mut covered = 0;
            for _ in 0..1000 {
                let mut count = |p: f64| (0..300).filter(|_| rng.uniform() < p).count();
                let first = Proportion::of(count(seen * (1.0 - cold)), 300).unwrap();
                let second = Proportion::of(count(seen), 300).unwrap();
                covered += usize::from(first.missing_of(&second).unwrap().contains(cold));
            }
            assert!(covered >= 930, "{cold} {seen}: {covered}");
        }
    }

    #[test]
    fn the_difference_covers() {
        let mut rng = Rng::new(12);
        for (more, less) in [(0.06, 0.01), (0.1, 0.02), (0.5, 0.01)] {
            let mut covered = 0;
            for _ in 0..1000 {
                let (mut above, mut below) = (0, 0);
                for _ in 0..400 {
                    let draw = rng.uniform();
                    above += usize::from(draw < more);
                    below += usize::from((more..more + less).contains(&draw));
                }
                let above = Proportion::of(above, 400).unwrap();
                let got = above.less(&Proportion::of(below, 400).unwrap());
                covered += usize::from(got.contains(more - less));
            }
            assert!(covered >= 930, "{more} {less}: {covered}");
        }
    }

    proptest! {
        #[test]
        fn the_bounds_enclose_the_share(hits in 0usize..500, of in 0usize..500, more in 0usize..500) {
            let all = hits.max(of) + more;
            let both = (Proportion::of(hits, all), Proportion::of(of, all));
            if let (Some(hits), Some(of)) = both {
                prop_assert!(hits.contains(hits.share));
                let less = hits.less(&of);
                prop_assert!(less.contains(less.share) && less.low >= 0.0 && less.high <= 1.0);
                if let Some(missing) = hits.missing_of(&of) {
                    prop_assert!(missing.contains(missing.share));
                    prop_assert!(missing.low >= 0.0 && missing.high <= 1.0);
                }
            }
        }
    }
}
