//! Number of hosts to start for a required number of good ones.
//!
//! The share of good hosts in the future is not the share in the past: ten hosts are little evidence. Given `good` of
//! `all`, the number of good ones among the next is predicted as beta-binomial with the parameters `good` and `all -
//! good + 1`. Of the two predictions that Thatcher (1964, Relationships between Bayesian and confidence limits for
//! predictions) shows to hold whatever the true share is, as the limits of Clopper and Pearson (1934) do for the share
//! itself, this is the cautious one. The tests compute exactly, for all shares, that it also holds if the number to
//! start is chosen by it. It assumes that future hosts are like past ones, and that hosts are independently good or
//! bad.

use crate::distribution::ln_gamma;

/// Maximum number of hosts: beyond it a better past is needed, not more hosts.
pub const MAX_HOSTS: usize = 1_000_000;

/// Results of past hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PastResults {
    /// Number of good hosts.
    pub good: usize,
    /// Number of all hosts.
    pub all: usize,
}

impl PastResults {
    /// Probability that fewer than `want` of `started` hosts are good; 1 if there was no good host in the past.
    fn shortfall_probability(&self, want: usize, started: usize) -> f64 {
        if want == 0 {
            return 0.0;
        }
        if self.good == 0 || self.good > self.all || started < want {
            return 1.0;
        }
        let (good, bad) = (self.good as f64, (self.all - self.good) as f64 + 1.0);
        let count = started as f64;
        let beta = |a: f64, b: f64| ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
        // The probability of zero, and the ratio from each number to the next.
        let mut log = beta(good, count + bad) - beta(good, bad);
        let mut sum = 0.0;
        for hits in 0..want {
            sum += log.exp();
            let hits = hits as f64;
            let left = count - hits;
            log += (left / (hits + 1.0)).ln() + (hits + good).ln() - (left - 1.0 + bad).ln();
        }
        sum.min(1.0)
    }

    /// Lower bound of the probability that at least `want` of `started` hosts are good.
    pub fn chance(&self, want: usize, started: usize) -> f64 {
        1.0 - self.shortfall_probability(want, started)
    }

    /// Number of hosts to start so that at least `want` are good with the probability `chance`, below 1. `None` if the
    /// past is insufficient: no good host, or too few hosts for a number of at most [`MAX_HOSTS`].
    pub fn to_start(&self, want: usize, chance: f64) -> Option<usize> {
        let enough = |started: usize| self.shortfall_probability(want, started) <= 1.0 - chance;
        if chance.is_nan() || chance >= 1.0 || !enough(MAX_HOSTS) {
            return None;
        }
        // Never enough at the first, always at the second.
        let (mut few, mut many) = (0, MAX_HOSTS);
        if enough(few) {
            return Some(few);
        }
        while many - few > 1 {
            let middle = few + (many - few) / 2;
            if enough(middle) {
                many = middle;
            } else {
                few = middle;
            }
        }
        Some(many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burnin::simulate::{Population, Rng};
    use proptest::prelude::*;

    #[test]
    fn a_good_past_asks_for_few_and_a_short_one_for_more() {
        let of = |good, all| PastResults { good, all }.to_start(3, 0.95);
        assert_eq!(of(0, 40), None);
        assert_eq!(of(0, 0), None);
        let (short, long, poor) = (of(9, 10), of(900, 1000), of(100, 1000));
        assert!(short > long && poor > short, "{short:?} {long:?} {poor:?}");
        // With a share of 0.9 that is nearly known: 4 give three with 94.8 %, 5 with 99 %.
        assert_eq!(long, Some(5));
        assert_eq!(PastResults { good: 1, all: 5 }.to_start(0, 0.95), Some(0));
    }

    #[test]
    fn the_prediction_is_that_of_the_urn() {
        // One good host of one: with the cautious prior the share is uniform, so that two more are both good with the
        // probability of the integral of p^2, a third.
        let past = PastResults { good: 1, all: 1 };
        assert!((past.chance(2, 2) - 1.0 / 3.0).abs() < 1e-12);
        assert!((past.chance(1, 2) - 2.0 / 3.0).abs() < 1e-12);
    }

    /// The probability that enough are good, over all pasts that give a number, for a true share of `share`.
    fn kept_promise(share: f64, all: usize, want: usize, numbers: &[Option<usize>]) -> f64 {
        let mut kept = 0.0;
        let mut known = 0.0;
        for (good, number) in numbers.iter().enumerate() {
            let Some(number) = number else { continue };
            let weight = binomial(all, good, share);
            if weight < 1e-12 {
                continue;
            }
            let short: f64 = (0..want).map(|few| binomial(*number, few, share)).sum();
            known += weight;
            kept += weight * (1.0 - short);
        }
        if known < 1e-9 {
            1.0
        } else {
            kept + (1.0 - known)
        }
    }

    fn binomial(all: usize, hits: usize, share: f64) -> f64 {
        if hits > all {
            return 0.0;
        }
        let (all, hits) = (all as f64, hits as f64);
        let ways = ln_gamma(all + 1.0) - ln_gamma(hits + 1.0) - ln_gamma(all - hits + 1.0);
        (ways + hits * share.ln() + (all - hits) * (-share).ln_1p()).exp()
    }

    #[test]
    fn the_promise_is_kept_whatever_the_true_share_is() {
        let mut least: f64 = 1.0;
        for all in [1, 3, 5, 10, 16, 30, 46, 100] {
            for want in [1, 3, 10] {
                let numbers: Vec<Option<usize>> = (0..=all)
                    .map(|good| PastResults { good, all }.to_start(want, 0.95))
                    .collect();
                for step in 1..100 {
                    let share = f64::from(step) / 100.0;
                    let kept = kept_promise(share, all, want, &numbers);
                    assert!(kept >= 0.95, "{all} {want} {share}: {kept}");
                    least = least.min(kept);
                }
            }
        }
        // A guarantee that always holds would start too many.
        assert!(least < 0.97, "{least}");
    }

    #[test]
    fn enough_good_ones_come_in_every_zone_of_simulated_fleets() {
        // Hosts that reach the typical figure of a plain zone are good; each zone has its own past.
        let population = Population::plain();
        let mut rng = Rng::new(5);
        let (want, trials, past_hosts) = (3, 400, 60);
        let good = |host: &crate::burnin::simulate::TrueHost| host.figure(0.1) > -0.1;
        let (mut kept, mut asked) = (0, 0);
        for _ in 0..trials {
            let past = population.draw(past_hosts, &mut rng);
            let chance = 1.0 - 0.05 / population.zones as f64;
            let plan: Vec<usize> = (0..population.zones)
                .map(|zone| {
                    let own = past.iter().filter(|host| host.zone == zone);
                    let own: Vec<bool> = own.map(good).collect();
                    let past = PastResults {
                        good: own.iter().filter(|good| **good).count(),
                        all: own.len(),
                    };
                    past.to_start(want, chance).unwrap()
                })
                .collect();
            let most = plan.iter().copied().max().unwrap();
            let fresh = population.draw(most * population.zones, &mut rng);
            let enough = plan.iter().enumerate().all(|(zone, number)| {
                let own = fresh.iter().filter(|host| host.zone == zone).take(*number);
                own.filter(|host| good(host)).count() >= want
            });
            kept += usize::from(enough);
            asked += plan.iter().sum::<usize>();
        }
        assert!(kept as f64 >= 0.95 * trials as f64, "{kept} of {trials}");
        assert!(asked / trials < 3 * 20, "{}", asked / trials);
    }

    proptest! {
        #[test]
        fn more_hosts_are_never_worse(
            good in 0usize..60, bad in 0usize..60, want in 0usize..12, started in 0usize..200
        ) {
            let past = PastResults { good, all: good + bad };
            let chance = past.chance(want, started);
            prop_assert!((0.0..=1.0).contains(&chance));
            prop_assert!(past.chance(want, started + 1) >= chance - 1e-12);
            if let Some(number) = past.to_start(want, 0.95) {
                prop_assert!(number >= want && past.chance(want, number) >= 0.95 - 1e-9);
                prop_assert!(number == 0 || past.chance(want, number - 1) < 0.95 + 1e-9);
            }
        }

        #[test]
        fn any_numbers_have_an_answer(good: usize, all: usize, want in 0usize..9, chance: f64) {
            let _ = PastResults { good, all }.to_start(want, chance);
        }
    }
}
