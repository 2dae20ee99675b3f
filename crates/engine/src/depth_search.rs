//! The most requests in flight that keep a latency, found by halves.

use record::DepthSearch;

/// The search of a worker, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    latency: u64,
    window: u64,
    share: f64,
    continues: bool,
    /// The most that was seen to keep it; 0 before any did.
    keeps: u32,
    /// The least that was seen to miss it; one more than are possible before any did.
    misses: u32,
    depth: u32,
    /// Start of the window; `None` until what was in flight at another depth has come back.
    began: Option<u64>,
    came_back: u64,
    in_time: u64,
    found: bool,
}

impl Search {
    /// For at most `most` in flight; a second has `ticks_of_nanos(1e9)` ticks.
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
            came_back: 0,
            in_time: 0,
            found: false,
        }
    }

    /// True if nothing may be issued while `in_flight` are out.
    pub(crate) fn holds(&mut self, now: u64, in_flight: usize) -> bool {
        if self.began.is_none() && in_flight == 0 {
            self.began = Some(now);
            (self.came_back, self.in_time) = (0, 0);
        }
        self.began.is_none() || in_flight >= self.depth as usize
    }

    /// A request came back at `now` after `latency`.
    pub(crate) fn came_back(&mut self, now: u64, latency: u64) {
        let Some(began) = self.began else { return };
        self.came_back += 1;
        self.in_time += u64::from(latency <= self.latency);
        if now - began >= self.window {
            self.decide();
        }
    }

    fn decide(&mut self) {
        let kept = self.in_time as f64 >= self.share * self.came_back as f64;
        (self.came_back, self.in_time) = (0, 0);
        self.began = None;
        if self.found {
            // The disk has become slower since.
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

    /// The number, once it is found; 0 where none keeps the latency.
    pub(crate) fn found(&self) -> Option<u32> {
        match (self.found, self.keeps) {
            (false, _) => None,
            (true, 0) => Some(0),
            (true, _) => Some(self.depth),
        }
    }

    /// True if the phase ends now.
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
            while !search.holds(now, out) {
                out += 1;
            }
            now += 10 * out as u64;
            (0..out).for_each(|_| search.came_back(now, 10 * out as u64));
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
