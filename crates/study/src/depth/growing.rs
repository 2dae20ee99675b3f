//! Doubling of the depth, while the throughput grows.

use super::window::GatheredIntervals;
use super::{Controller, EQUAL_THROUGHPUT, FIRST_WAIT_WINDOWS, Phase, Window, gain};

/// Share of the proportional gain that a doubling must bring: 1.2 times the throughput.
const MIN_GAIN_SHARE: f64 = 0.2;
/// Shares of the proportional gain between which a growth is examined again.
const UNCLEAR_GAIN: (f64, f64) = (0.1, 0.6);
/// Factor on the product of throughput and latency: latencies scatter, and requests queued after a slow one must not
/// leave the cap idle.
const DEPTH_MARGIN: f64 = 1.25;

impl Controller {
    pub(super) fn after_growth(&mut self, before: Option<Window>, again: bool, now: Window) {
        let Some(before) = before else {
            return self.grow_or_stay(now);
        };
        let (got, proportion) = gain(&before, &now);
        let share = (got - 1.0) / (proportion - 1.0);
        if !again && (UNCLEAR_GAIN.0..UNCLEAR_GAIN.1).contains(&share) {
            self.phase = Phase::Growing {
                before: Some(before),
                again: true,
            };
            self.gathering = GatheredIntervals::careful(0.0);
            return;
        }
        if share >= MIN_GAIN_SHARE {
            return self.grow_or_stay(now);
        }
        let depth = self.bend(&before, &now);
        self.settle_at(depth, now);
    }

    /// Doubles the depth again after a gain, unless it is at the bound.
    pub(super) fn grow_or_stay(&mut self, now: Window) {
        if now.depth < self.bounds.most {
            return self.grow_from(now);
        }
        self.settle_at(now.depth, now);
        self.out_of_depth = true;
    }

    /// Ends growth at this depth.
    fn settle_at(&mut self, depth: usize, now: Window) {
        self.out_of_depth = false;
        self.wait = FIRST_WAIT_WINDOWS;
        self.fewer_next = true;
        self.stay(depth, Some(now));
        // If growth found no bend, the depth may be far beyond it: a smaller depth is tried soon.
        self.phase = Phase::Holding { windows_left: 1 };
    }

    /// Depth at which the throughput bends, from a window before it and one beyond.
    fn bend(&self, before: &Window, beyond: &Window) -> usize {
        let needed =
            DEPTH_MARGIN * beyond.requests_per_s.max(before.requests_per_s) * before.latency_s;
        // If the plateau had already been reached before, the latency there includes queueing.
        let reached = gain(before, beyond).0 < 1.0 + 2.0 * EQUAL_THROUGHPUT;
        let most = if reached { before.depth } else { beyond.depth };
        self.bounds.clamp(needed).min(most)
    }

    fn grow_from(&mut self, before: Window) {
        self.phase = Phase::Growing {
            before: Some(before),
            again: false,
        };
        self.level = None;
        self.out_of_depth = false;
        self.depth = before.depth.saturating_mul(2).min(self.bounds.most);
        self.gathering = GatheredIntervals::brief(before.latency_s);
    }
}
