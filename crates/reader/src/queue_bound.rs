//! Limit of requests in flight when no foreground is detected.
//!
//! A volume serves requests roughly in the order of arrival. A closed-loop foreground that waits half a second for each
//! page is hardly visible in the kernel's counts. So a page is read ten times a second, and its latency limits the
//! number of requests in flight. This does not lower the rate, since a queue of this length still keeps the volume
//! busy; and with this queue a closed-loop foreground makes enough requests per second to be detected.

use record::Nanos;

/// Time between two probes.
const PROBE_EVERY: Nanos = Nanos(100_000_000);
/// Maximum wait of a page in seconds; with a longer wait, the queue is too long.
const MAX_WAIT_S: f64 = 0.05;
/// Wait of a page, in seconds, below which the limit may grow.
const ROOM_S: f64 = 0.02;
/// Number of consecutive probes that must agree, since a device may stall briefly.
const AGREEING_PROBES: usize = 3;
/// Initial limit of requests in flight.
const INITIAL_BOUND: f64 = 4.0;
/// Maximum of the limit.
const MAX_IN_FLIGHT: f64 = 1024.0;
/// Factor by which the limit grows, before the wait was too long for the first time.
const INITIAL_GROWTH: f64 = 2.0;
/// Factor by which the limit grows afterwards.
const LATER_GROWTH: f64 = 1.25;
/// Minimum share of the limit that remains after a reduction, so that a single stall does not cost much.
const MIN_CUT_SHARE: f64 = 0.5;

/// Limit of requests in flight.
#[derive(Clone, Debug)]
pub struct QueueBound {
    most: f64,
    /// True once the limit was reduced.
    has_cut: bool,
    /// The latencies of the last probes in seconds, the oldest first.
    latencies_s: Vec<f64>,
    next_probe: Nanos,
    /// Probes that began before this time are ignored: they waited in an earlier, longer queue.
    deaf_until: Nanos,
}

impl Default for QueueBound {
    fn default() -> QueueBound {
        QueueBound::new()
    }
}

impl QueueBound {
    /// The initial limit.
    pub fn new() -> QueueBound {
        QueueBound {
            most: INITIAL_BOUND,
            has_cut: false,
            latencies_s: Vec::new(),
            next_probe: Nanos(0),
            deaf_until: Nanos(0),
        }
    }

    /// Present limit, at least 1.
    pub fn most(&self) -> usize {
        self.most as usize
    }

    /// True if a probe is due; this schedules the next one.
    pub fn probes(&mut self, now: Nanos) -> bool {
        let due = now >= self.next_probe;
        if due {
            self.next_probe = now + PROBE_EVERY;
        }
        due
    }

    /// Records a probe that completed while `in_flight` requests were in flight.
    pub fn note_probe(&mut self, now: Nanos, latency: Nanos, in_flight: usize) {
        if now - latency < self.deaf_until {
            return;
        }
        if self.latencies_s.len() == AGREEING_PROBES {
            self.latencies_s.remove(0);
        }
        self.latencies_s.push(latency.as_secs_f64());
        // Before the first reduction the limit may be far too high, and then a single probe takes long enough.
        let enough = if self.has_cut { AGREEING_PROBES } else { 1 };
        let shortest = self
            .latencies_s
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min);
        let longest = self.latencies_s.iter().copied().fold(0.0, f64::max);
        let in_flight = in_flight as f64;
        if self.latencies_s.len() >= enough && shortest > MAX_WAIT_S {
            let used = self.most.min(in_flight.max(1.0));
            self.most = (used * MIN_CUT_SHARE.max(MAX_WAIT_S / shortest)).max(1.0);
            self.has_cut = true;
            self.latencies_s.clear();
            // Requests in flight now are still ahead of the next probes.
            self.deaf_until = now + latency;
        } else if longest < ROOM_S && 2.0 * in_flight >= self.most.floor() {
            let factor = if self.has_cut {
                LATER_GROWTH
            } else {
                INITIAL_GROWTH
            };
            self.most = (self.most * factor).min(MAX_IN_FLIGHT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of requests in flight in the steady state, on a volume that needs `one_s` for a request and serves
    /// `at_once` requests in parallel; and the longest wait in the last second.
    fn settled(
        one_s: f64,
        at_once: f64,
        wanted: usize,
        stall: impl Fn(f64) -> f64,
    ) -> (usize, f64) {
        let mut short = QueueBound::new();
        let (mut now, mut longest) = (Nanos(0), 0.0f64);
        let end = Nanos::from_secs(30);
        while now < end {
            let in_flight = short.most().min(wanted);
            let queued = (in_flight as f64 - at_once).max(0.0);
            let wait = queued * one_s + 0.0005 + stall(now.as_secs_f64());
            if now > Nanos::from_secs(29) {
                longest = longest.max(wait);
            }
            now += PROBE_EVERY.max(Nanos((wait * 1e9) as u64));
            short.note_probe(now, Nanos((wait * 1e9) as u64), in_flight);
        }
        (short.most().min(wanted), longest)
    }

    #[test]
    fn the_queue_is_short_at_any_speed_and_never_empty() {
        // Blocks of 512 KiB, at 10, 25, 40 and 125 MiB/s.
        for one_s in [0.05, 0.02, 0.0125, 0.004] {
            let (in_flight, longest) = settled(one_s, 1.0, 128, |_| 0.0);
            assert!(longest < 2.0 * MAX_WAIT_S, "{one_s}: {longest}");
            assert!(
                in_flight >= 1 && in_flight as f64 * one_s >= ROOM_S,
                "{one_s}: {in_flight}"
            );
        }
        // The volume has as many requests in flight as it needs for its cap: cold blocks of 200 ms at 125 MiB/s.
        let (in_flight, longest) = settled(0.004, 50.0, 128, |_| 0.0);
        assert!(
            in_flight >= 54 && longest < 2.0 * MAX_WAIT_S,
            "{in_flight} {longest}"
        );
        // A lower number of requests, for other reasons, is not raised.
        assert_eq!(settled(0.004, 12.0, 16, |_| 0.0).0, 16);
    }

    #[test]
    fn a_moment_in_which_all_stands_still_costs_little() {
        let now_and_then = |now: f64| if now % 5.0 < 0.1 { 0.2 } else { 0.0 };
        assert_eq!(settled(0.004, 12.0, 16, now_and_then).0, 16);
    }

    #[test]
    fn where_others_wait_anyway_one_goes_on() {
        assert_eq!(settled(0.0, 1.0, 16, |_| 0.3).0, 1);
    }
}
