//! Rate of background I/O beside a foreground: docs/design/pacing.md has the rule and its proofs.
//!
//! - [`ForegroundDetector`]: foreground I/O, from the kernel's counts minus the background's own;
//! - [`Controller`]: samples in, the allowed rate of the background out;
//! - `targets`: the latencies to keep, and the choice of those in use;
//! - `rate`: the rule: the least of what the guards, the foreground's throughput and the plateau allow;
//! - `guard`: integrators, one for each latency target, and the back-off;
//! - `plateau`: the rate just below a limit of the device;
//! - `own`: latency and throughput of the foreground without the background; `latencies`: the last latencies;
//! - `outcome`: what happened, for the answer.
//!
//! Everything is deterministic: the caller passes the elapsed time.

mod controller;
mod detector;
mod guard;
mod latencies;
mod outcome;
mod own;
mod plateau;
mod rate;
mod targets;

pub use controller::{Controller, ControllerStage};
pub use detector::{Foreground, ForegroundDetector, IoCounts};
pub use outcome::{HeldBy, Outcome, Slice};
pub use rate::{MAX_MIN_RATE, min_rate};
pub use targets::{ROOM, TargetSource, Targets};

/// Amount of background I/O that is allowed now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowed {
    /// Without limit: there is no foreground.
    All,
    /// Bytes a second.
    Rate(f64),
    /// No new request, so that the foreground is measured alone.
    Nothing,
}

/// Measurements since the last call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Foreground I/O.
    pub foreground: Foreground,
    /// Latencies of requests like those of the foreground (probes), in seconds.
    pub latencies_s: &'a [f64],
    /// Time that an outstanding probe has waited, in seconds.
    pub waiting_s: f64,
    /// Number of foreground requests that the kernel timed separately from the background's, and the sum of their
    /// latencies.
    pub timed: Option<(f64, f64)>,
    /// Bytes that the background completed.
    pub background: f64,
    /// True if background requests are outstanding.
    pub is_busy: bool,
}

impl Sample<'_> {
    /// True if every number is plausible.
    fn is_sane(&self) -> bool {
        /// Larger than any plausible number of seconds, requests or bytes.
        const MAX_VALUE: f64 = 1e15;
        let (requests, seconds) = self.timed.unwrap_or_default();
        let others = [
            self.seconds,
            self.foreground.requests.unwrap_or_default(),
            self.foreground.waited_s,
            self.waiting_s,
            requests,
            seconds,
            self.background,
        ];
        let mut all = others.iter().chain(self.latencies_s);
        all.all(|value| (0.0..MAX_VALUE).contains(value))
    }
}

#[cfg(test)]
mod tests;
