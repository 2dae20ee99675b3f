//! Due times of the requests of an open loop.

use crate::random::Random;

/// Generator of Poisson or evenly spaced arrivals. The exponential gaps of Poisson arrivals make bursts and idle gaps,
/// as with many independent users. Arrivals do not wait for completions, which makes the loop open.
pub(crate) struct Arrivals {
    mean_gap: f64,
    /// Due time of the next request, in ticks. A fraction, so that rounding errors do not accumulate.
    due: f64,
    /// Separate from the generator of positions, so that the schedule does not depend on it.
    random: Random,
    even: bool,
}

impl Arrivals {
    /// Arrivals with a mean gap of `mean_gap` ticks, or exactly this gap if they are `even`. The first of even
    /// arrivals is due at `start`, as in fio. Poisson arrivals begin one gap later: otherwise those of many threads
    /// would all be due at `start`.
    pub(crate) fn new(mean_gap: f64, start: u64, seed: u64, even: bool) -> Arrivals {
        let mut arrivals = Arrivals {
            mean_gap,
            due: start as f64,
            random: Random::new(seed),
            even,
        };
        if !even {
            arrivals.advance();
        }
        arrivals
    }

    /// Due time of the next request, in ticks.
    pub(crate) fn due(&self) -> u64 {
        self.due as u64
    }

    /// Advances to the following request.
    pub(crate) fn advance(&mut self) {
        let gap = if self.even {
            1.0
        } else {
            self.random.exponential()
        };
        self.due += gap * self.mean_gap;
    }

    /// Postpones due requests by a pause of `pause` ticks. Returns the delay: as in fio (`handle_thinktime`), even
    /// arrivals continue at the end of a pause that is longer than their gap.
    pub(crate) fn postpone(&mut self, pause: u64) -> u64 {
        let pause = pause as f64;
        let ticks = match self.even && pause >= self.mean_gap {
            true => pause - self.mean_gap,
            false => pause,
        };
        self.due += ticks;
        ticks as u64
    }

    /// Approximate number of requests that are due at `now` and not yet issued.
    pub(crate) fn backlog(&self, now: u64) -> u64 {
        ((now as f64 - self.due) / self.mean_gap).ceil().max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_over_many_arrivals() {
        let mut arrivals = Arrivals::new(1000.0, 5_000_000, 3, false);
        for _ in 0..100_000 {
            arrivals.advance();
        }
        let mean_gap = (arrivals.due() - 5_000_000) as f64 / 100_001.0;
        // The mean of 100,000 exponential gaps has a deviation of 0.3 %.
        assert!((mean_gap / 1000.0 - 1.0).abs() < 0.015, "{mean_gap}");
    }

    #[test]
    fn threads_do_not_begin_together() {
        let first = |seed| Arrivals::new(1000.0, 0, seed, false).due();
        let mut due: Vec<u64> = (0..64).map(first).collect();
        due.sort_unstable();
        // An exponential gap has its median at 0.69 of the mean.
        assert!((400..1000).contains(&due[32]), "{due:?}");
    }

    #[test]
    fn even_arrivals_come_at_equal_gaps_from_the_start_on() {
        let mut arrivals = Arrivals::new(1000.5, 0, 3, true);
        let due: Vec<u64> = (0..4)
            .map(|_| {
                let due = arrivals.due();
                arrivals.advance();
                due
            })
            .collect();
        assert_eq!(due, [0, 1000, 2001, 3001]);
    }

    #[test]
    fn even_arrivals_go_on_at_the_end_of_a_pause_that_is_longer_than_a_gap() {
        let mut arrivals = Arrivals::new(1000.0, 0, 3, true);
        arrivals.advance();
        // The last one was due at 0: the pause ends at 5000.
        assert_eq!((arrivals.postpone(5000), arrivals.due()), (4000, 5000));
        assert_eq!((arrivals.postpone(300), arrivals.due()), (300, 5300));
        let mut poisson = Arrivals::new(1000.0, 0, 3, false);
        let before = poisson.due();
        assert_eq!(
            (poisson.postpone(5000), poisson.due()),
            (5000, before + 5000)
        );
    }
}
