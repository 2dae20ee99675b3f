//! Search, during the work, for the smallest number of requests in flight that reaches the throughput cap.
//!
//! Little's law (Little 1961) connects requests in flight, throughput and latency: in flight = throughput × latency.
//! Below the cap the latency is the device's own and the throughput grows in proportion to the requests in flight;
//! beyond it the throughput is constant and every further request waits. The best depth is at the bend, where
//! throughput divided by latency is greatest (Kleinrock 1979, *Power and deterministic rules of thumb*): the product
//! of the greatest throughput and the least latency. Like BBR (Cardwell and others 2016) for a network path, the
//! [`Controller`] measures them in turn, since they cannot be measured at once: a larger depth shows the throughput, a
//! smaller one the latency.
//!
//! At a constant depth the mean latency follows from the throughput and carries no further information. Therefore all
//! decisions compare throughputs at different depths:
//!
//! - **Growing**: the depth doubles while that brings at least a fifth of the proportional gain; if a short window is
//!   inconclusive, a longer one is measured. At the end the depth is the product of the plateau and of the latency
//!   before it, with a margin.
//! - **Holding**: the depth stays, and now and then a smaller and a larger depth are tried in turn, a quarter at a
//!   time. A smaller depth with the same throughput is kept, and a yet smaller one tried at once, in larger steps; a
//!   larger depth is kept if it brings 2 % more. Trials without an effect become rarer.
//! - **Trying**: both depths in turn, as often as the noise of the machine requires (`trial`).
//! - A throughput that **changes** at a constant depth, in either direction, starts growth again: cold regions follow
//!   warm ones, a burst ends, another reader starts. Growth without a gain is undone. On a noisy machine the change
//!   must be larger and last; a change by less than a factor of 1.6 starts a trial.
//!
//! | part | question |
//! | --- | --- |
//! | [`Controller`] | how many requests in flight next? |
//! | [`verdict`] | what holds the throughput where it is? |

mod growing;
mod trial;
pub mod verdict;
mod window;

pub use window::{DepthInterval, Window};

use trial::{Judgement, Spread, Trial};
use window::GatheredIntervals;

/// Relative difference below which throughputs count as equal.
const EQUAL_THROUGHPUT: f64 = 0.02;
/// Relative change of the throughput at a constant depth that counts as a change.
const CHANGED_THROUGHPUT: f64 = 0.15;
/// The same, in standard deviations of the usual variation.
const CHANGED_DEVIATIONS: f64 = 2.0;
/// Factor from which a change is large.
const LARGE_CHANGE_FACTOR: f64 = 1.6;
/// Scatter of neighbouring windows above which one window is no evidence of a change.
const NOISY_SCATTER: f64 = 0.03;
/// Depth of the first trial of a smaller depth, as a share of the depth; its inverse is that of a larger depth.
const FIRST_FEWER_SHARE: f64 = 0.8;
/// Minimum depth of a trial of a smaller depth, as a share of the depth.
const MIN_FEWER_SHARE: f64 = 0.5;
/// Number of windows between two trials and the next two, initially and at most.
const FIRST_WAIT_WINDOWS: u32 = 4;
const MAX_WAIT_WINDOWS: u32 = 24;

/// The bounds of the depth, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    least: usize,
    most: usize,
}

impl Bounds {
    /// The bounds; `None` if `least` is zero or above `most`.
    pub fn new(least: usize, most: usize) -> Option<Bounds> {
        (least > 0 && least <= most).then_some(Bounds { least, most })
    }

    fn clamp(self, depth: f64) -> usize {
        // The cast saturates, and turns NaN into zero.
        (depth.ceil() as usize).clamp(self.least, self.most)
    }
}

/// Phase of the search.
#[derive(Clone, Debug, PartialEq)]
enum Phase {
    /// Doubling the depth: the window before, if any, and true if this depth is measured again, for longer.
    Growing { before: Option<Window>, again: bool },
    /// Keeping the depth for this number of windows.
    Holding { windows_left: u32 },
    /// Trying a smaller depth; `run` counts consecutive trials.
    Fewer { run: i32, trial: Trial },
    /// Trying a larger depth.
    More { trial: Trial },
}

/// Decides how many requests to keep in flight. It is given the results of intervals of about 100 ms; other lengths
/// work too.
#[derive(Clone, Debug)]
pub struct Controller {
    bounds: Bounds,
    depth: usize,
    phase: Phase,
    gathering: GatheredIntervals,
    /// True once any request has completed.
    has_answers: bool,
    /// Throughput at the depth that is held, averaged over the windows.
    level: Option<Window>,
    /// The last window at that depth.
    latest: Option<Window>,
    /// Variation between consecutive windows at one depth.
    spread: Spread,
    /// Number of consecutive windows with a higher throughput; negative for a lower one.
    changed: i32,
    wait: u32,
    /// True if a smaller depth is tried next.
    fewer_next: bool,
    /// True if the last growth ended at the upper bound of the depth, still growing.
    out_of_depth: bool,
}

impl Controller {
    /// Starts with the given depth, limited to the bounds. A start and a lower bound of about four cost nothing and
    /// save doublings.
    pub fn new(bounds: Bounds, start: usize) -> Controller {
        let depth = start.clamp(bounds.least, bounds.most);
        Controller {
            bounds,
            depth,
            phase: Phase::Growing {
                before: None,
                again: false,
            },
            // The interval with the first completions is part of it.
            gathering: GatheredIntervals::brief(f64::MIN_POSITIVE),
            has_answers: false,
            level: None,
            latest: None,
            spread: Spread::new(),
            changed: 0,
            wait: FIRST_WAIT_WINDOWS,
            fewer_next: true,
            out_of_depth: false,
        }
    }

    /// The depth to keep now.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Throughput at the depth that is held; `None` until growth has ended for the first time, and while it continues.
    pub fn level(&self) -> Option<Window> {
        self.level
            .filter(|_| !matches!(self.phase, Phase::Growing { .. }))
    }

    /// True if the depth is at its upper bound, and more in flight would bring more.
    pub fn out_of_depth(&self) -> bool {
        self.out_of_depth
    }

    /// Adds the results of an interval, and returns the depth to keep in flight from now on.
    ///
    /// An interval is ignored if it is invalid, or if far fewer requests were in flight than wanted: then the device
    /// did not limit the work.
    pub fn observe(&mut self, interval: &DepthInterval) -> usize {
        // The time until the first completions shows their latency, but nothing about the throughput.
        self.has_answers |= interval.requests > 0.0;
        if !self.has_answers {
            return self.depth;
        }
        if let Some(window) = self.gathering.add(interval, self.depth) {
            self.decide(window);
        }
        self.depth
    }

    fn decide(&mut self, now: Window) {
        match self.phase.clone() {
            Phase::Growing { before, again } => self.after_growth(before, again, now),
            Phase::Holding { windows_left } => self.held(windows_left, now),
            Phase::Fewer { run, trial } => self.tried_fewer(run, trial, now),
            Phase::More { trial } => self.tried_more(trial, now),
        }
    }

    fn held(&mut self, windows_left: u32, now: Window) {
        let level = match &self.level {
            // The first window at this depth: earlier ones were at another depth.
            Some(level) if level.depth == now.depth => *level,
            _ => now,
        };
        if self.has_changed(&level, &now) {
            return self.changed_to(&level, now);
        }
        if let Some(latest) = self.latest.filter(|latest| latest.depth == now.depth) {
            self.spread.add(&latest, &now);
        }
        self.latest = Some(now);
        if self.changed == 0 {
            self.level = Some(level.averaged(&now));
        }
        if windows_left > 0 || self.changed != 0 {
            self.phase = Phase::Holding {
                windows_left: windows_left.saturating_sub(1),
            };
            self.gathering = GatheredIntervals::careful(0.0);
        } else {
            self.try_other(now);
        }
    }

    /// True if the throughput has changed at a constant depth.
    fn has_changed(&mut self, level: &Window, now: &Window) -> bool {
        let deviation = self.spread.deviation();
        let off = now.bytes_per_s / level.bytes_per_s - 1.0;
        if off.abs() <= CHANGED_THROUGHPUT.max(CHANGED_DEVIATIONS * deviation) {
            self.changed = 0;
            return false;
        }
        let step = if off > 0.0 { 1 } else { -1 };
        let as_before = if self.changed * step > 0 {
            self.changed
        } else {
            0
        };
        self.changed = as_before + step;
        let is_proved = self.changed.abs() > 1 || deviation < NOISY_SCATTER;
        if is_proved {
            self.changed = 0;
        }
        is_proved
    }

    /// Reacts to a change of the throughput. After a large one the depth grows from here; if it may be noise of the
    /// machine, a larger and then a smaller depth are tried at once, which shows the reason at a low cost.
    fn changed_to(&mut self, level: &Window, now: Window) {
        let times = now.bytes_per_s / level.bytes_per_s;
        if !(1.0 / LARGE_CHANGE_FACTOR..LARGE_CHANGE_FACTOR).contains(&times) {
            return self.regrow(&now);
        }
        self.wait = FIRST_WAIT_WINDOWS;
        self.level = Some(now);
        self.latest = Some(now);
        self.fewer_next = false;
        self.try_other(now);
    }

    /// Grows from here after a change. The window in which it was detected covers both levels, and is compared with
    /// nothing.
    fn regrow(&mut self, now: &Window) {
        self.phase = Phase::Growing {
            before: None,
            again: false,
        };
        self.level = None;
        self.latest = None;
        self.out_of_depth = false;
        self.gathering = GatheredIntervals::brief(now.latency_s);
    }

    fn try_other(&mut self, now: Window) {
        let fewer = self
            .bounds
            .clamp((FIRST_FEWER_SHARE * self.depth as f64).floor());
        let more = self.bounds.clamp(self.depth as f64 / FIRST_FEWER_SHARE);
        let wants_fewer = self.fewer_next;
        self.fewer_next = !wants_fewer;
        if wants_fewer && fewer < self.depth {
            self.attempt_fewer(1, now, fewer);
        } else if more > self.depth {
            let trial = Trial::new(now, more, 1.0 + EQUAL_THROUGHPUT);
            self.go_on_trying(
                Phase::More {
                    trial: trial.clone(),
                },
                &trial,
            );
        } else {
            self.rest();
        }
    }

    fn attempt_fewer(&mut self, run: i32, now: Window, depth: usize) {
        let trial = Trial::new(now, depth, 1.0 - EQUAL_THROUGHPUT);
        let phase = Phase::Fewer {
            run,
            trial: trial.clone(),
        };
        self.go_on_trying(phase, &trial);
    }

    /// Sets the depth of a trial's next window.
    fn go_on_trying(&mut self, phase: Phase, trial: &Trial) {
        let latency = match self.level {
            Some(level) if trial.depth() != self.depth => level.latency_s,
            _ => 0.0,
        };
        self.phase = phase;
        self.depth = trial.depth();
        self.gathering = GatheredIntervals::careful(latency);
    }

    fn tried_fewer(&mut self, run: i32, mut trial: Trial, now: Window) {
        let judgement = trial.add(now, &mut self.spread);
        let Some(level) = self.level else {
            return self.stay(now.depth, None);
        };
        match judgement {
            None => {
                let phase = Phase::Fewer {
                    run,
                    trial: trial.clone(),
                };
                self.go_on_trying(phase, &trial)
            }
            Some(Judgement::Fails) => self.step_back(level),
            Some(Judgement::Passes(_)) => self.take_fewer(run, &trial, now),
        }
    }

    /// Takes the smaller depth, which has the same throughput, and tries a yet smaller one at once.
    fn take_fewer(&mut self, run: i32, trial: &Trial, now: Window) {
        self.wait = FIRST_WAIT_WINDOWS;
        self.out_of_depth = false;
        let level = trial.level().unwrap_or(now);
        let factor = FIRST_FEWER_SHARE.powi(run + 1).max(MIN_FEWER_SHARE);
        let depth = self.bounds.clamp((factor * level.depth as f64).floor());
        // The next trial begins with a window at this depth, which must be the last one.
        if depth < level.depth && now.depth == level.depth {
            self.level = Some(level);
            self.depth = now.depth;
            self.attempt_fewer(run.saturating_add(1), now, depth);
        } else {
            self.stay(level.depth, Some(level));
            self.fewer_next = depth < level.depth;
            self.phase = Phase::Holding { windows_left: 0 };
        }
    }

    fn tried_more(&mut self, mut trial: Trial, now: Window) {
        let judgement = trial.add(now, &mut self.spread);
        let Some(level) = self.level else {
            return self.stay(now.depth, None);
        };
        let got = match judgement {
            None => {
                return self.go_on_trying(
                    Phase::More {
                        trial: trial.clone(),
                    },
                    &trial,
                );
            }
            Some(Judgement::Fails) => return self.step_back(level),
            Some(Judgement::Passes(got)) => got,
        };
        let brought = trial.level().unwrap_or(now);
        let (_, proportion) = gain(&level, &brought);
        self.wait = FIRST_WAIT_WINDOWS;
        if got - 1.0 >= 0.5 * (proportion - 1.0) {
            self.grow_or_stay(brought);
        } else {
            self.out_of_depth = brought.depth == self.bounds.most;
            self.fewer_next = false;
            self.stay(brought.depth, Some(brought));
        }
    }

    /// Returns from a trial without an effect. A smaller and a larger depth are tried soon after each other, and then
    /// not for a while.
    fn step_back(&mut self, level: Window) {
        let was_last = self.fewer_next;
        if was_last {
            self.wait = (2 * self.wait).min(MAX_WAIT_WINDOWS);
        }
        self.stay(level.depth, Some(level));
        if !was_last {
            self.phase = Phase::Holding { windows_left: 1 };
        }
    }

    fn stay(&mut self, depth: usize, level: Option<Window>) {
        let latency = level.map_or(0.0, |level| level.latency_s);
        self.depth = depth;
        self.level = level;
        self.latest = None;
        self.changed = 0;
        self.rest();
        self.gathering = GatheredIntervals::careful(latency);
    }

    fn rest(&mut self) {
        self.phase = Phase::Holding {
            windows_left: self.wait,
        };
        self.gathering = GatheredIntervals::careful(0.0);
    }
}

/// Throughput of `after` divided by that of `before`, and the same ratio of the depths.
fn gain(before: &Window, after: &Window) -> (f64, f64) {
    (
        after.bytes_per_s / before.bytes_per_s,
        after.depth as f64 / before.depth as f64,
    )
}

#[cfg(test)]
mod tests;
