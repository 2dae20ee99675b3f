//! How many requests in flight fill the cap and no more, found while working.
//!
//! Little's law (Little 1961) says that requests in flight, throughput and latency are bound to each
//! other: in flight = throughput × latency. Below the cap the latency is what the device needs and
//! the throughput grows in proportion with the requests in flight; beyond it the throughput stays
//! and every further request waits. The best place is the bend, where throughput divided by latency
//! is greatest (Kleinrock 1979, *Power and deterministic rules of thumb*), and it lies at the product
//! of the greatest throughput and the least latency. As BBR (Cardwell and others 2016) does for a
//! network path, the [`Controller`] finds it by turns, since the two cannot be seen at once: more in
//! flight show the throughput, fewer the latency.
//!
//! With the number in flight held constant the mean latency is known from the throughput and says
//! nothing of its own. So all is decided by comparing throughputs at different depths:
//!
//! - **Growing**: the depth doubles while that brings at least a fifth of what it should. At the end
//!   the depth is the product of the plateau and of the latency seen before it, with some room.
//! - **Holding**: it stays, and now and then fewer and more are tried in turn, a quarter at a time.
//!   Fewer that bring the same stay, and yet fewer are tried at once, in larger steps; more stay if they
//!   bring 1.5 % more. Trials that change nothing become rarer.
//! - A throughput that **changes** by itself, in either direction, starts growth anew: cold regions
//!   follow warm ones, a burst ends, another reader comes. Growth that brings nothing is taken back.
//!
//! | part | question |
//! | --- | --- |
//! | [`Controller`] | how many requests in flight next? |
//! | [`verdict`] | what holds the throughput where it is? |

pub mod verdict;
mod window;

pub use window::{Interval, Window};

use window::Gathering;

/// A doubling is worth it that brings this share of what it should: 1.2 times the throughput.
const WORTH: f64 = 0.2;
/// Throughputs that differ by less are the same.
const SAME: f64 = 0.015;
/// A throughput that differs by more from what it was has changed by itself.
const CHANGED: f64 = 0.15;
/// Room above the product of throughput and latency: latencies scatter, and what waits for a slow
/// request must not leave the cap idle.
const ROOM: f64 = 1.25;
/// The first trial of fewer, as a share of the depth; its inverse is the trial of more.
const FEWER: f64 = 0.8;
/// The boldest trial of fewer.
const FEWEST: f64 = 0.5;
/// Windows between trials at first, and at most.
const WAIT: u32 = 4;
const LONGEST_WAIT: u32 = 12;

/// The bounds of the depth, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    least: usize,
    most: usize,
}

impl Bounds {
    /// `None` where `least` is zero or above `most`.
    pub fn new(least: usize, most: usize) -> Option<Bounds> {
        (least > 0 && least <= most).then_some(Bounds { least, most })
    }

    fn clamp(self, depth: f64) -> usize {
        // Out of range saturates when it is cast, and what is no number becomes zero.
        (depth.ceil() as usize).clamp(self.least, self.most)
    }
}

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Doubling. What was seen before, if anything was.
    Growing { before: Option<Window> },
    /// Staying, for so many windows more.
    Holding { windows_left: u32 },
    /// Trying fewer, for the so-many-th time in a row.
    Fewer { run: i32 },
    /// Trying more.
    More,
}

/// Answers how many requests to keep in flight. It is told what the last interval brought, of about
/// 100 ms; intervals of other lengths do too.
#[derive(Clone, Debug)]
pub struct Controller {
    bounds: Bounds,
    depth: usize,
    phase: Phase,
    gathering: Gathering,
    /// What the depth it stays at brings, averaged over the windows.
    level: Option<Window>,
    wait: u32,
    /// Whether fewer are tried next.
    fewer_next: bool,
    /// Whether the last growth ended at the bound of the depth, still growing.
    out_of_depth: bool,
}

impl Controller {
    /// Begins with the given depth, brought within the bounds. A start of a few and a
    /// least depth of about four cost nothing and save doublings.
    pub fn new(bounds: Bounds, start: usize) -> Controller {
        let depth = start.clamp(bounds.least, bounds.most);
        Controller {
            bounds,
            depth,
            phase: Phase::Growing { before: None },
            gathering: Gathering::brief(0.0),
            level: None,
            wait: WAIT,
            fewer_next: true,
            out_of_depth: false,
        }
    }

    /// The depth now wanted.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// What the depth that it stays at brings; `None` until growth has ended for the first time, and
    /// while it goes on.
    pub fn level(&self) -> Option<Window> {
        self.level
            .filter(|_| !matches!(self.phase, Phase::Growing { .. }))
    }

    /// Whether the depth stays at its bound because more in flight would bring more.
    pub fn out_of_depth(&self) -> bool {
        self.out_of_depth
    }

    /// Takes what an interval brought, and answers the depth to keep in flight from now on.
    ///
    /// An interval is left out that makes no sense, or in which far fewer were in flight than wanted:
    /// then it was not the device that limited the work.
    pub fn observe(&mut self, interval: &Interval) -> usize {
        if let Some(window) = self.gathering.add(interval, self.depth) {
            self.decide(window);
        }
        self.depth
    }

    fn decide(&mut self, now: Window) {
        match self.phase {
            Phase::Growing { before } => self.grown(before, now),
            Phase::Holding { windows_left } => self.held(windows_left, now),
            Phase::Fewer { run } => self.tried_fewer(run, now),
            Phase::More => self.tried_more(now),
        }
    }

    fn grown(&mut self, before: Option<Window>, now: Window) {
        let gain = before.map(|before| gain(&before, &now));
        let worth = gain.is_none_or(|(got, proportion)| got - 1.0 >= WORTH * (proportion - 1.0));
        if worth && now.depth < self.bounds.most {
            return self.grow_from(now);
        }
        self.out_of_depth = worth && before.is_some();
        let depth = match before.filter(|_| !worth) {
            Some(before) => self.bend(&before, &now),
            None => now.depth,
        };
        self.wait = WAIT;
        self.fewer_next = true;
        self.stay(depth, Some(now));
        // Where growth found no bend the depth may be far beyond it: fewer are tried soon.
        self.phase = Phase::Holding { windows_left: 1 };
    }

    /// Where the throughput bends, from a window before it and one beyond.
    fn bend(&self, before: &Window, beyond: &Window) -> usize {
        let needed = ROOM * beyond.requests_per_s.max(before.requests_per_s) * before.latency_s;
        // Had the plateau been reached before already, the latency seen there is no device's.
        let reached = gain(before, beyond).0 < 1.0 + 2.0 * SAME;
        let most = if reached { before.depth } else { beyond.depth };
        self.bounds.clamp(needed).min(most)
    }

    fn grow_from(&mut self, before: Window) {
        self.phase = Phase::Growing {
            before: Some(before),
        };
        self.level = None;
        self.out_of_depth = false;
        self.depth = before.depth.saturating_mul(2).min(self.bounds.most);
        self.gathering = Gathering::brief(before.latency_s);
    }

    fn held(&mut self, windows_left: u32, now: Window) {
        let level = match &self.level {
            // The first window at this depth: what came before it was seen at another.
            Some(level) if level.depth == now.depth => *level,
            _ => now,
        };
        if (now.bytes_per_s / level.bytes_per_s - 1.0).abs() > CHANGED {
            return self.regrow(&now);
        }
        self.level = Some(level.averaged(&now));
        if windows_left > 0 {
            self.phase = Phase::Holding {
                windows_left: windows_left - 1,
            };
            self.gathering = Gathering::careful(0.0);
        } else {
            self.try_other();
        }
    }

    /// Something has changed: grows from here. The window in which it was seen is part old, part new,
    /// and nothing can be compared with it.
    fn regrow(&mut self, now: &Window) {
        self.phase = Phase::Growing { before: None };
        self.level = None;
        self.out_of_depth = false;
        self.gathering = Gathering::brief(now.latency_s);
    }

    fn try_other(&mut self) {
        let fewer = self.bounds.clamp((FEWER * self.depth as f64).floor());
        let more = self.bounds.clamp(self.depth as f64 / FEWER);
        let wants_fewer = self.fewer_next;
        self.fewer_next = !wants_fewer;
        if wants_fewer && fewer < self.depth {
            self.attempt(Phase::Fewer { run: 1 }, fewer);
        } else if more > self.depth {
            self.attempt(Phase::More, more);
        } else {
            self.rest();
        }
    }

    fn attempt(&mut self, phase: Phase, depth: usize) {
        let latency = self.level.map_or(0.0, |level| level.latency_s);
        self.phase = phase;
        self.depth = depth;
        self.gathering = Gathering::careful(latency);
    }

    fn tried_fewer(&mut self, run: i32, now: Window) {
        let Some(level) = self.level else {
            return self.stay(now.depth, None);
        };
        if now.bytes_per_s < (1.0 - SAME) * level.bytes_per_s {
            return self.back(level);
        }
        // As good with fewer: from there yet fewer are tried at once.
        self.wait = WAIT;
        self.out_of_depth = false;
        self.level = Some(Window {
            bytes_per_s: now.bytes_per_s.max(level.bytes_per_s),
            ..now
        });
        let factor = FEWER.powi(run + 1).max(FEWEST);
        let depth = self.bounds.clamp((factor * now.depth as f64).floor());
        if depth < now.depth {
            let run = run.saturating_add(1);
            self.attempt(Phase::Fewer { run }, depth);
        } else {
            self.stay(now.depth, self.level);
        }
    }

    fn tried_more(&mut self, now: Window) {
        let Some(level) = self.level else {
            return self.stay(now.depth, None);
        };
        let (got, proportion) = gain(&level, &now);
        if got - 1.0 >= 0.5 * (proportion - 1.0) && now.depth < self.bounds.most {
            self.wait = WAIT;
            self.grow_from(now);
        } else if got >= 1.0 + SAME {
            self.wait = WAIT;
            self.out_of_depth = now.depth == self.bounds.most;
            self.fewer_next = false;
            self.stay(now.depth, Some(now));
        } else {
            self.back(level);
        }
    }

    /// Returns from a trial that brought nothing.
    fn back(&mut self, level: Window) {
        self.wait = (2 * self.wait).min(LONGEST_WAIT);
        self.stay(level.depth, Some(level));
    }

    fn stay(&mut self, depth: usize, level: Option<Window>) {
        let latency = level.map_or(0.0, |level| level.latency_s);
        self.depth = depth;
        self.level = level;
        self.rest();
        self.gathering = Gathering::careful(latency);
    }

    fn rest(&mut self) {
        self.phase = Phase::Holding {
            windows_left: self.wait,
        };
        self.gathering = Gathering::careful(0.0);
    }
}

/// How many times the throughput of `before` there is in `after`, and how many times its depth.
fn gain(before: &Window, after: &Window) -> (f64, f64) {
    (
        after.bytes_per_s / before.bytes_per_s,
        after.depth as f64 / before.depth as f64,
    )
}

#[cfg(test)]
mod tests;
