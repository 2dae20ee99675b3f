//! Binary search for the highest depth that meets a latency target.

use record::DepthSearch;

/// The search of a worker, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    latency: u64,
    window: u64,
    share: f64,
    continues: bool,
    /// The highest depth that met the target; 0 before any did.
    keeps: u32,
    /// The lowest depth that missed the target; before any did, one more than the maximum.
    misses: u32,
    depth: u32,
    /// Start of the present measurement; `None` until all requests of the previous depth have completed.
    began: Option<u64>,
    completed: u64,
    in_time: u64,
    found: bool,
}

impl Search {
    /// A search up to the depth `most`; `ticks` converts a time to ticks.
    pub(crate) fn new(
        rules: &DepthSearch,
        most: u32,
        ticks: impl Fn(record::Nanos) -> u64,
    ) -> Search {
        Search {
            latency: ticks(rules.latency),
            window: ticks(rules.window).max(1),
            share: rules.share,
            continues: rules.continues,
            keeps: 0,
            misses: most + 1,
            depth: most.max(1),
            began: None,
            completed: 0,
            in_time: 0,
            found: false,
        }
    }

    /// True if nothing may be issued now, with `in_flight` requests in flight.
    pub(crate) fn is_blocked(&mut self, now: u64, in_flight: usize) -> bool {
        if self.began.is_none() && in_flight == 0 {
            self.began = Some(now);
            (self.completed, self.in_time) = (0, 0);
        }
        self.began.is_none() || in_flight >= self.depth as usize
    }

    /// Counts a request that completed at `now` after `latency`.
    pub(crate) fn completed(&mut self, now: u64, latency: u64) {
        let Some(began) = self.began else { return };
        self.completed += 1;
        self.in_time += u64::from(latency <= self.latency);
        if now - began >= self.window {
            self.decide();
        }
    }

    fn decide(&mut self) {
        let kept = self.in_time as f64 >= self.share * self.completed as f64;
        (self.completed, self.in_time) = (0, 0);
        self.began = None;
        if self.found {
            // The depth was found before; the disk may have become slower since.
            self.depth = if kept {
                self.depth
            } else {
                (self.depth - 1).max(1)
            };
            return;
        }
        match kept {
            true => self.keeps = self.depth,
            false => self.misses = self.depth,
        }
        if self.misses - self.keeps <= 1 {
            self.found = true;
            self.depth = self.keeps.max(1);
        } else {
            self.depth = (self.keeps + self.misses) / 2;
        }
    }

    /// The result, once it is found; 0 if no depth meets the target.
    pub(crate) fn found(&self) -> Option<u32> {
        match (self.found, self.keeps) {
            (false, _) => None,
            (true, 0) => Some(0),
            (true, _) => Some(self.depth),
        }
    }

    /// True if the phase is to end now.
    pub(crate) fn is_over(&self) -> bool {
        self.found && !self.continues
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Nanos;

    /// Depth that is found on a disk that needs 10 ticks for each request in flight.
    fn found(latency: u64, most: u32) -> Option<u32> {
        let rules = DepthSearch {
            latency: Nanos(latency),
            window: Nanos(1000),
            share: 0.99,
            continues: false,
        };
        let mut search = Search::new(&rules, most, |span| span.0);
        let mut now = 0;
        for _ in 0..100_000 {
            let mut out = 0;
            while !search.is_blocked(now, out) {
                out += 1;
            }
            now += 10 * out as u64;
            (0..out).for_each(|_| search.completed(now, 10 * out as u64));
            if search.is_over() {
                return search.found();
            }
        }
        None
    }

    #[test]
    fn the_largest_number_that_keeps_the_latency_is_found() {
        for most in [1, 2, 7, 32, 128] {
            for keeps in 1..=most.min(40) {
                assert_eq!(
                    found(u64::from(keeps) * 10 + 5, most),
                    Some(keeps),
                    "{most}"
                );
            }
            assert_eq!(found(10_000, most), Some(most));
            assert_eq!(found(5, most), Some(0));
        }
    }
}
