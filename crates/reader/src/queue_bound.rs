//! Bound on the requests in flight where no foreground is known.
//!
//! A volume serves requests in about the order in which they arrive. A closed-loop foreground that waits half a
//! second for each page is hardly seen in what the kernel counts. So a page is read ten times a second, and the
//! number of requests in flight is bounded by its latency. On a volume whose cap is reached with fewer that costs
//! nothing, since a queue of this length keeps the volume busy; and beside it a closed-loop foreground makes so
//! many requests a second that it is detected.

use record::Nanos;

/// Time between two probes.
const PROBE_EVERY: Nanos = Nanos(100_000_000);
/// A queue in which a page waits longer is too long, in seconds.
const MAX_WAIT_S: f64 = 0.05;
/// Wait of a page, in seconds, below which the queue has room.
const ROOM_S: f64 = 0.02;
/// Number of probes in a row that must agree: everything stands still now and then.
const AGREEING_PROBES: usize = 3;
/// Requests in flight at the start.
const INITIAL_BOUND: f64 = 4.0;
/// The most requests in flight on a volume.
const MAX_IN_FLIGHT: f64 = 1024.0;
/// The growth with each probe that finds room: before the bound was passed for the first time, and later.
const INITIAL_GROWTH: f64 = 2.0;
/// See [`INITIAL_GROWTH`].
const LATER_GROWTH: f64 = 1.25;
/// Share of the bound that a cut leaves, at least: that all stood still for once must not cost much.
const MIN_CUT_SHARE: f64 = 0.5;

/// Bound on the requests in flight.
#[derive(Clone, Debug)]
pub struct QueueBound {
    most: f64,
    /// True once the bound was passed.
    has_cut: bool,
    /// The latencies of the last probes in seconds, the oldest first.
    latencies_s: Vec<f64>,
    next_probe: Nanos,
    /// Probes that began before this waited in an earlier queue.
    deaf_until: Nanos,
}

impl Default for QueueBound {
    fn default() -> QueueBound {
        QueueBound::new()
    }
}

impl QueueBound {
    /// A bound of a few requests, as it is at the start.
    pub fn new() -> QueueBound {
        QueueBound {
            most: INITIAL_BOUND,
            has_cut: false,
            latencies_s: Vec::new(),
            next_probe: Nanos(0),
            deaf_until: Nanos(0),
        }
    }

    /// Present bound, at least one.
    pub fn most(&self) -> usize {
        self.most as usize
    }

    /// True if a probe is due; the next one is due later then.
    pub fn probes(&mut self, now: Nanos) -> bool {
        let due = now >= self.next_probe;
        if due {
            self.next_probe = now + PROBE_EVERY;
        }
        due
    }

    /// Notes a probe that came back while so many requests were in flight.
    pub fn note_probe(&mut self, now: Nanos, latency: Nanos, in_flight: usize) {
        if now - latency < self.deaf_until {
            return;
        }
        if self.latencies_s.len() == AGREEING_PROBES {
            self.latencies_s.remove(0);
        }
        self.latencies_s.push(latency.as_secs_f64());
        // A bound that was never passed may be passed by far, and then one probe takes long enough.
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
            // What was in flight until now is still before the next ones.
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

    /// The number in flight after so many seconds on a volume that needs `one_s` for a request, of which
    /// it has `at_once` under way without making others wait; and the longest wait of the last second.
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
        // What a volume needs in flight for its cap it has: cold blocks of 200 ms at 125 MiB/s.
        let (in_flight, longest) = settled(0.004, 50.0, 128, |_| 0.0);
        assert!(
            in_flight >= 54 && longest < 2.0 * MAX_WAIT_S,
            "{in_flight} {longest}"
        );
        // And what is wanted for a reason of its own is no business of the bound.
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
