//! The controller: when the background works and when it pauses, and what is measured in either.

use super::detector::{ForegroundPresence, PresenceWatch};
use super::latencies::LastLatencies;
use super::outcome::{HeldBy, Outcome, Slice};
use super::own::{PausedLatencies, Throughput};
use super::rate::{Rate, SEARCH_S, Steering};
use super::targets::{BackgroundRequests, KeptTargets};
use super::{Allowed, Sample, TargetSource, Targets};

/// Minimum and maximum time, in seconds, for which a new foreground is measured before its first target; it ends once
/// there are enough probes.
const LEARN_S: f64 = 1.0;
const LEARN_MAX_S: f64 = 20.0;
/// Age from which a foreground's own latency is measured anew, in seconds.
const STALE_S: f64 = 600.0;
/// Time for which the background works, and then pauses while the foreground is measured by itself, in seconds: a
/// sixteenth of the time, and the foreground's own latency and throughput are never older than that.
const WORK_S: f64 = 4.0;
const PAUSE_S: f64 = 0.25;
/// Mean time between probes while the background works and while it pauses, in seconds.
const PROBE_S: f64 = 0.02;
const PROBE_PAUSED_S: f64 = 0.01;
/// Mean time between probes while the background works and while it pauses, as multiples of the foreground's own
/// latency, so that they are a small part of a slow device's load: a twentieth of one request in flight, and a tenth
/// while there is nothing else.
const PROBE_GAP_LATENCIES: f64 = 19.0;
const PROBE_GAP_LATENCIES_PAUSED: f64 = 9.0;
/// Seconds and bytes by which the background must be behind a deadline's rate to miss it.
const BEHIND_S: f64 = 1.5;
const BEHIND: f64 = (16 << 20) as f64;
/// Number of probes of which the shown latencies are: four seconds of them.
const SHOWN_LATENCIES: usize = 200;

/// Stage of the controller: whether a foreground is present, and whether the background works or pauses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ControllerStage {
    /// No foreground is present.
    Alone,
    /// A foreground may be hidden by the background's speed; the background pauses to find out.
    Suspecting,
    /// The foreground is measured before the background begins beside it, for so many seconds so far.
    Learning(f64),
    /// The background works, for so many seconds up to now.
    Working(f64),
    /// The background pauses, for so many seconds up to now.
    Pausing(f64),
}

/// Decides on the rate.
#[derive(Clone, Debug)]
pub struct Controller {
    asked: Targets,
    watch: PresenceWatch,
    phase: ControllerStage,
    now_s: f64,
    own: PausedLatencies,
    learned_s: Option<f64>,
    throughput: Throughput,
    kept: Option<KeptTargets>,
    background: BackgroundRequests,
    rate: Rate,
    /// Logarithm of the rate without the back-off when the last foreground left.
    settled: Option<f64>,
    /// Rate of a deadline, in bytes a second; 0 without one.
    floor: f64,
    /// Bytes by which the background is behind the rate that it is allowed.
    behind: f64,
    outcome: Outcome,
    /// Latencies of the last seconds: of probes, and the mean of requests that the kernel timed.
    shown: LastLatencies<SHOWN_LATENCIES>,
    timed: Option<f64>,
}

impl Controller {
    /// Keeps these targets, or where none is given [`ROOM`](super::ROOM) times the foreground's own latency.
    pub fn new(asked: Targets) -> Controller {
        Controller {
            asked,
            watch: PresenceWatch::new(),
            phase: ControllerStage::Learning(0.0),
            now_s: 0.0,
            own: PausedLatencies::default(),
            learned_s: None,
            throughput: Throughput::default(),
            kept: None,
            background: BackgroundRequests::default(),
            rate: Rate::default(),
            settled: None,
            floor: 0.0,
            behind: 0.0,
            outcome: Outcome::default(),
            shown: LastLatencies::default(),
            timed: None,
        }
    }

    /// Takes the device's rate of one request after the other, in bytes a second.
    pub fn set_device_rate(&mut self, bytes_per_s: f64) {
        if bytes_per_s > 0.0 && bytes_per_s.is_finite() {
            self.outcome.device_rate = Some(bytes_per_s);
            self.rate.set_device_rate(bytes_per_s, false);
        }
    }

    /// Takes a lower bound of the same rate, before that is known.
    pub fn set_min_device_rate(&mut self, bytes_per_s: f64) {
        if bytes_per_s > 0.0 && bytes_per_s.is_finite() {
            self.rate.set_device_rate(bytes_per_s, true);
        }
    }

    /// Takes an estimate of the same rate, from single requests beside a foreground: it is for the outcome only.
    pub fn set_estimated_device_rate(&mut self, bytes_per_s: f64) {
        if bytes_per_s > 0.0 && bytes_per_s.is_finite() {
            self.outcome.device_rate = Some(bytes_per_s);
        }
    }

    /// Sets whether the background goes in steps, as md's check does, or by single requests: with steps more of the
    /// slowest foreground requests coincide.
    pub fn set_stepped(&mut self, steps: bool) {
        self.background.is_stepped = steps;
        if steps {
            self.rate.forget_plateau();
        }
    }

    /// Sets the time that one request of the background occupies the device, in seconds: a foreground request may
    /// wait for it.
    pub fn request_takes(&mut self, seconds: f64) {
        if seconds >= 0.0 && seconds.is_finite() {
            self.background.request_s = seconds;
        }
    }

    /// Sets the rate, in bytes a second, below which the background does not fall whatever the foreground's latency:
    /// a deadline. 0 for none.
    pub fn at_least(&mut self, bytes_per_s: f64) {
        self.floor = bytes_per_s;
    }

    /// True if a deadline demands more than the foreground allows.
    pub fn is_driven(&self) -> bool {
        self.floor > self.rate.bytes_per_s
    }

    /// True if that is more than could be done for a while.
    pub fn falls_short(&self) -> bool {
        self.is_driven() && self.behind >= most_behind(self.floor)
    }

    /// The stage.
    pub fn phase(&self) -> ControllerStage {
        self.phase
    }

    /// True if the foreground is being measured by itself.
    pub fn is_measuring(&self) -> bool {
        matches!(
            self.phase,
            ControllerStage::Learning(_) | ControllerStage::Pausing(_)
        )
    }

    /// True if probes are wanted. On a device without a foreground they would only delay the background.
    pub fn probes(&self) -> bool {
        !matches!(
            self.phase,
            ControllerStage::Alone | ControllerStage::Suspecting
        )
    }

    /// Mean time from the completion of one probe to the next, in seconds; `None` where none are wanted.
    pub fn probe_gap_s(&self) -> Option<f64> {
        let (least_s, spares) = if self.is_measuring() {
            (PROBE_PAUSED_S, PROBE_GAP_LATENCIES_PAUSED)
        } else {
            (PROBE_S, PROBE_GAP_LATENCIES)
        };
        let own_s = self.own.mean_of_probes_s().unwrap_or(0.0);
        self.probes().then_some(least_s.max(spares * own_s))
    }

    /// Targets that are kept, once they are known, and their source.
    pub fn targets(&self) -> Option<(Targets, TargetSource)> {
        self.kept.map(|kept| (kept.targets, kept.source))
    }

    /// Amount of I/O that the background may do.
    pub fn allowed(&self) -> Allowed {
        match self.phase {
            ControllerStage::Alone => Allowed::All,
            ControllerStage::Working(_) => Allowed::Rate(self.allowed_rate()),
            ControllerStage::Suspecting
            | ControllerStage::Learning(_)
            | ControllerStage::Pausing(_) => Allowed::Nothing,
        }
    }

    /// Mean latency of the last seconds, in seconds, while there is a foreground.
    pub fn mean_s(&self) -> Option<f64> {
        let mean_s = self.timed.or(self.shown.mean_s());
        mean_s.filter(|_| self.probes())
    }

    /// Latency of the last seconds that one probe in a hundred exceeds, in seconds, while there is a foreground.
    pub fn p99_s(&self) -> Option<f64> {
        self.shown.p99_s().filter(|_| self.probes())
    }

    /// Seconds above a target so far.
    pub fn above_s(&self) -> f64 {
        self.outcome.above_s
    }

    /// Reason for which the background is no faster now; `None` while there is no foreground.
    pub fn holds_back(&self) -> Option<HeldBy> {
        self.probes().then(|| self.held_by())
    }

    /// Result of the foreground so far.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = self.outcome.clone();
        outcome.targets = self.targets();
        outcome
    }

    /// Takes the measurements since the last call, and returns what the background may do from now on. An invalid
    /// sample changes nothing.
    pub fn take(&mut self, sample: &Sample<'_>) -> Allowed {
        if !sample.is_sane() {
            return self.allowed();
        }
        self.now_s += sample.seconds;
        let presence = self.watch.take(sample.seconds, &sample.foreground);
        self.meet(presence);
        if self.probes() {
            self.show(sample);
        }
        match self.phase {
            ControllerStage::Alone | ControllerStage::Suspecting => {}
            ControllerStage::Learning(so_far) => self.learn(so_far, sample),
            ControllerStage::Working(so_far) => self.work(so_far, sample),
            ControllerStage::Pausing(so_far) => self.pause(so_far, sample),
        }
        self.allowed()
    }

    /// Takes the presence of a foreground, and changes the stage.
    fn meet(&mut self, presence: ForegroundPresence) {
        match (presence, self.phase) {
            (
                ForegroundPresence::Absent,
                ControllerStage::Working(_) | ControllerStage::Pausing(_),
            ) => {
                self.settled = self.rate.search.is_none().then_some(self.rate.log);
                self.phase = ControllerStage::Alone;
            }
            (ForegroundPresence::Absent, _) => self.phase = ControllerStage::Alone,
            (ForegroundPresence::Suspected, _) => self.phase = ControllerStage::Suspecting,
            (ForegroundPresence::Present, ControllerStage::Alone | ControllerStage::Suspecting) => {
                let is_known = self
                    .learned_s
                    .is_some_and(|then| self.now_s - then < STALE_S);
                self.begin();
                if is_known {
                    // Half of what it had beside a foreground a moment ago.
                    if let Some(log_rate) = self.settled {
                        self.rate.resume_at_half(log_rate);
                    }
                    self.phase = ControllerStage::Pausing(0.0);
                } else {
                    self.own = PausedLatencies::default();
                    self.phase = ControllerStage::Learning(0.0);
                }
            }
            (ForegroundPresence::Present, _) => {}
        }
    }

    /// Begins from below.
    fn begin(&mut self) {
        self.rate.search_from_below();
        self.throughput = Throughput::default();
        self.behind = 0.0;
        self.shown = LastLatencies::default();
        self.timed = None;
    }

    fn show(&mut self, sample: &Sample<'_>) {
        self.shown.take(sample.latencies_s);
        if let Some((requests, seconds)) = sample.timed
            && requests > 0.0
        {
            let weight = sample.seconds.min(1.0);
            let now = seconds / requests;
            let shown = self.timed.get_or_insert(now);
            *shown += weight * (now - *shown);
        }
        let interval = Slice {
            seconds: sample.seconds,
            bytes: sample.background,
            ..Slice::default()
        };
        // What was asked before the pause counts as beside.
        let is_alone = matches!(self.phase, ControllerStage::Learning(s) | ControllerStage::Pausing(s) if s > 0.0)
            && !sample.is_busy
            && sample.background <= 0.0;
        self.outcome.pass(&interval, sample.latencies_s, is_alone);
        let held = self.held_by();
        self.outcome.held(held, sample.seconds);
    }

    /// Reason for which the background is no faster.
    fn held_by(&self) -> HeldBy {
        let targets = self.kept.map_or_else(Targets::default, |kept| kept.targets);
        let is_mean =
            targets.p99_s.is_none() || targets.mean_s.is_some() && self.rate.is_mean_below_p99();
        match self.phase {
            ControllerStage::Working(_) if self.rate.search.is_some() => HeldBy::Search,
            ControllerStage::Working(_) if self.rate.is_at_bound() => HeldBy::Throughput,
            ControllerStage::Working(_) if !self.rate.may_grow() => HeldBy::Itself,
            ControllerStage::Working(_) if is_mean => HeldBy::Mean,
            ControllerStage::Working(_) => HeldBy::P99,
            _ => HeldBy::Measuring,
        }
    }

    /// Measures a foreground by itself, without the background's requests in flight.
    fn measure(&mut self, so_far: f64, sample: &Sample<'_>) -> f64 {
        let requests = sample.foreground.requests.unwrap_or(0.0);
        let is_busy = sample.is_busy || sample.background > 0.0;
        if is_busy || so_far <= 0.0 {
            // The detector holds back what may be the background's own until none of it is in flight: what it gives
            // now, the foreground had while the background worked.
            self.throughput
                .drained(requests, sample.seconds, sample.background);
        } else {
            self.own.take(sample.latencies_s, sample.timed);
            self.throughput.paused(requests, sample.seconds);
        }
        if is_busy {
            return 0.0;
        }
        so_far + sample.seconds
    }

    fn learn(&mut self, so_far: f64, sample: &Sample<'_>) {
        let so_far = self.measure(so_far, sample);
        self.phase = ControllerStage::Learning(so_far);
        let is_enough = so_far >= LEARN_S && self.own.is_enough();
        if is_enough || so_far >= LEARN_MAX_S {
            self.begin();
            self.know();
        }
    }

    fn pause(&mut self, so_far: f64, sample: &Sample<'_>) {
        let so_far = self.measure(so_far, sample);
        self.phase = ControllerStage::Pausing(so_far);
        if so_far >= PAUSE_S {
            let cycle_s = self.throughput.cycle();
            self.rate.take_bound(self.throughput.bound());
            self.own.fade(cycle_s);
            self.know();
        }
    }

    /// Sets the targets by the foreground's own latency, and begins to work.
    fn know(&mut self) {
        self.learned_s = Some(self.now_s);
        let own = self.own.latency();
        self.kept = Some(KeptTargets::of(&self.asked, &own, self.background));
        self.rate.begin_work();
        self.phase = ControllerStage::Working(0.0);
    }

    fn work(&mut self, so_far: f64, sample: &Sample<'_>) {
        let Some(kept) = self.kept else {
            return;
        };
        let requests = sample.foreground.requests.unwrap_or(0.0);
        self.throughput
            .worked(requests, sample.seconds, sample.background);
        self.outcome.judge(&kept.targets, sample);
        let allowed = self.allowed_rate();
        let most = most_behind(allowed);
        self.behind =
            (self.behind + allowed * sample.seconds - sample.background).clamp(-most, 1.1 * most);
        let steering = Steering {
            aims: kept.aims,
            is_p99_asked: kept.is_p99_asked,
            is_stepped: self.background.is_stepped,
            is_driven: self.is_driven(),
        };
        self.rate.take(&steering, sample);
        if self.rate.bytes_per_s <= self.rate.least {
            self.outcome.least_s += sample.seconds;
        }
        let so_far = so_far + sample.seconds;
        let work_s = if self.rate.is_sought() {
            SEARCH_S
        } else {
            WORK_S
        };
        self.phase = if so_far >= work_s && !self.is_driven() {
            ControllerStage::Pausing(0.0)
        } else {
            ControllerStage::Working(so_far)
        };
    }

    /// The rate while the background works, in bytes a second.
    fn allowed_rate(&self) -> f64 {
        self.rate.bytes_per_s.max(self.floor)
    }
}

/// Bytes by which the background may be behind a rate that it uses.
fn most_behind(allowed: f64) -> f64 {
    BEHIND + BEHIND_S * allowed
}

#[cfg(test)]
mod tests {
    use super::super::Foreground;
    use super::super::rate::{MAX_MIN_RATE, SEARCH_GROWTH, Search};
    use super::*;

    #[test]
    fn a_search_that_grew_is_compared_soon() {
        // Far above what is used, it may not grow; what it grew before is to be compared.
        for (grew, phase) in [
            (2.0 * SEARCH_GROWTH, ControllerStage::Pausing(0.0)),
            (0.0, ControllerStage::Working(SEARCH_S + 0.1)),
        ] {
            let mut controller = Controller::new(Targets::default());
            controller.know();
            controller.rate.search = Some(Search::default());
            controller.rate.set(controller.rate.log_used() + 2.0);
            controller.rate.log_before = controller.rate.log - grew;
            let sample = Sample {
                seconds: 0.1,
                ..Sample::default()
            };
            controller.work(SEARCH_S, &sample);
            assert_eq!(controller.phase, phase, "{grew}");
        }
    }

    #[test]
    fn a_rate_recovers_from_its_minimum_while_the_device_rate_is_measured() {
        let mut controller = Controller::new(Targets {
            p99_s: None,
            mean_s: Some(0.01),
        });
        controller.know();
        controller.rate.back_off.begin_at(-1.0);
        let mut seconds = 0.0;
        while controller.rate.bytes_per_s < 2.0 * MAX_MIN_RATE && seconds < 10.0 {
            // As after each request of `scrub --read`.
            controller.set_device_rate(1e9 + seconds);
            let sample = Sample {
                seconds: 0.02,
                foreground: Foreground {
                    requests: Some(10.0),
                    ..Foreground::default()
                },
                latencies_s: &[0.001],
                background: 0.02 * controller.rate.bytes_per_s,
                ..Sample::default()
            };
            controller.work(0.0, &sample);
            seconds += sample.seconds;
        }
        assert!((0.5..3.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn a_limit_just_above_the_least_rate_is_left_again() {
        let mut controller = Controller::new(Targets {
            p99_s: Some(0.01),
            mean_s: None,
        });
        controller.know();
        controller.rate.least = 1e6;
        for _ in 0..2 {
            controller.rate.plateau.pass(1.0);
            controller
                .rate
                .plateau
                .take(true, (1.05e6, 1.05e6_f64.ln()), 1.0, 0.0);
        }
        assert!(controller.rate.plateau.log_cap() < Some(controller.rate.least.ln()));
        for _ in 0..600 {
            let sample = Sample {
                seconds: 0.1,
                foreground: Foreground {
                    requests: Some(10.0),
                    ..Foreground::default()
                },
                latencies_s: &[0.001; 4],
                background: 0.1 * controller.rate.bytes_per_s,
                ..Sample::default()
            };
            controller.work(0.0, &sample);
        }
        let rate = controller.rate.bytes_per_s;
        assert!(rate > 1.5e6, "{rate}");
    }
}
