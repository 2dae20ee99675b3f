//! The rate of the background.

use std::collections::VecDeque;

use super::detector::{ForegroundPresence, PresenceWatch};
use super::guard::{BackOff, LatencyWeight, MAX_GROWTH_PER_S, MeanGuard, SlowGuard};
use super::outcome::{HeldBy, Outcome, Slice};
use super::own::{MIN_LATENCIES_FOR_P99, PausedLatencies, Throughput};
use super::plateau::Plateau;
use super::{Allowed, Sample, TargetSource, Targets};

/// Factor by which the foreground's p99 may grow beside the background.
pub const ROOM: f64 = 1.5;
/// Factor by which the foreground's mean may grow where the background goes in steps: at 1.5 times the mean, p99.9 is
/// higher there. Otherwise it is [`ROOM`].
const ROOM_OF_MEAN: f64 = 1.3;
/// Share of a requested target by which the rate is steered, since the target is to be kept in nearly each interval,
/// not on average; or the middle between the target and the foreground's own latency where that is more.
const STEERED_SHARE: f64 = 0.8;
/// Minimum rate of the background, as a share of what the device does with one request in flight. It lets the work
/// end, and costs the foreground less than 3 %.
const MIN_RATE_SHARE: f64 = 0.02;
/// Upper and lower bound of the least rate, in bytes a second; and the least rate until it is known what the device
/// gives.
pub const MAX_MIN_RATE: f64 = (1 << 20) as f64;
const LOWEST_MIN_RATE: f64 = MAX_MIN_RATE / 64.0;
const MIN_RATE_WHILE_UNKNOWN: f64 = MAX_MIN_RATE / 16.0;
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
/// Length of a span of work, in seconds, while the rate is sought from below or the throughput's bound moves: a
/// foreground that loses throughput is recognized after three cycles, and a loss by chance is forgotten as soon.
const SEARCH_S: f64 = 0.5;
/// Growth of the rate within one span of work, as a logarithm, from which the span ends after [`SEARCH_S`]: half of
/// what a search grows in that time. A foreground's loss at such a rate is not yet known.
const SEARCH_GROWTH: f64 = 0.5 * MAX_GROWTH_PER_S * SEARCH_S;
/// Mean time between probes while the background works and while it pauses, in seconds.
const PROBE_S: f64 = 0.02;
const PROBE_PAUSED_S: f64 = 0.01;
/// Mean time between probes while the background works and while it pauses, as multiples of the foreground's own
/// latency, so that they are a small part of a slow device's load: a twentieth of one request in flight, and a tenth
/// while there is nothing else.
const PROBE_GAP_LATENCIES: f64 = 19.0;
const PROBE_GAP_LATENCIES_PAUSED: f64 = 9.0;
/// Multiple of the rate used over so many seconds, above which the rate does not grow (congestion window validation,
/// RFC 7661). md goes in steps of half a second.
const MAX_MULTIPLE_OF_USED: f64 = 3.0;
const USED_S: f64 = 2.0;
/// Seconds and bytes by which the background must be behind a deadline's rate to miss it.
const BEHIND_S: f64 = 1.5;
const BEHIND: f64 = (16 << 20) as f64;
/// Time without a foreground request after which the rate does not grow, in seconds: nothing is learned.
const IDLE_S: f64 = 0.5;
/// Excess of slow requests over the usual share, which is a few times a p99's, that ends a search (a cumulative sum,
/// Page 1954); a mean of a second above its target ends it too. The last doubling is taken back.
const SLOW_ENDS_SEARCH: f64 = 2.0;
const USUAL_SLOW_SHARE: f64 = 0.025;
const MEAN_S: f64 = 1.0;
const SHARE_AFTER_HARM: f64 = 0.5;
/// Maximum factor by which one cycle of work and pause changes the throughput's bound: tested after each cycle, a
/// loss seems significant by chance now and then, and a rate that fell to a twentieth at once would take a minute to
/// recover.
const MAX_BOUND_CHANGE: f64 = 2.0;
/// The rate grows only while latencies come this often, in seconds.
const MAX_LATENCY_GAP_S: f64 = 0.3;
/// Maximum distance of a guard's rate above the least of all, as a logarithm: a guard far above would be late when it
/// matters.
const MAX_GUARD_LEAD: f64 = std::f64::consts::LN_2;
/// Length of the intervals over which targets are judged in the outcome, in seconds.
const WINDOW_S: f64 = 5.0;
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
    kept: Option<(Targets, TargetSource)>,
    /// Latencies by which the rate is steered, a little below the targets.
    aims: Targets,
    rate: f64,
    least: f64,
    /// True if the background goes in steps, as md's check does.
    is_stepped: bool,
    /// Time that one request of the background occupies the device, for which a foreground request may wait, in
    /// seconds.
    request_s: f64,
    mean: MeanGuard,
    slow: SlowGuard,
    back_off: BackOff,
    plateau: Plateau,
    /// The rate without the back-off, as a logarithm.
    log_rate: f64,
    /// The same when the last foreground left.
    settled: Option<f64>,
    /// Seconds that the next mean counts for.
    since_mean_s: f64,
    latency_weight: LatencyWeight,
    /// Seconds since the last foreground request.
    idle_s: f64,
    start: Option<Start>,
    /// The rate without the back-off when this work began, as a logarithm.
    log_rate_before: f64,
    bound: Option<f64>,
    /// True if the last cycle moved the bound by far, so that it is not yet where it will settle.
    is_bound_sought: bool,
    floor: f64,
    behind: f64,
    /// Bytes a second of the last seconds, while the background works.
    used: f64,
    outcome: Outcome,
    window: Window,
    shown: VecDeque<f64>,
    timed: Option<f64>,
}

/// The search from below.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    /// Slow requests beyond the usual.
    slow: f64,
    /// The mean as a share of its target, averaged from zero: the first probe is no mean of a second.
    mean: f64,
    /// Seconds since the last latency.
    unknown_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    seconds: f64,
    requests: f64,
    slow: f64,
    sum_s: f64,
}

impl Controller {
    /// Keeps these targets, or where none is given [`ROOM`] times the foreground's own latency.
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
            aims: Targets::default(),
            rate: MIN_RATE_WHILE_UNKNOWN,
            least: MIN_RATE_WHILE_UNKNOWN,
            is_stepped: false,
            request_s: 0.0,
            mean: MeanGuard::default(),
            slow: SlowGuard::default(),
            back_off: BackOff::default(),
            plateau: Plateau::default(),
            log_rate: MIN_RATE_WHILE_UNKNOWN.ln(),
            settled: None,
            since_mean_s: 0.0,
            latency_weight: LatencyWeight::default(),
            idle_s: 0.0,
            start: None,
            log_rate_before: MIN_RATE_WHILE_UNKNOWN.ln(),
            bound: None,
            is_bound_sought: false,
            floor: 0.0,
            behind: 0.0,
            used: 0.0,
            outcome: Outcome::default(),
            window: Window::default(),
            shown: VecDeque::new(),
            timed: None,
        }
    }

    /// Takes the device's rate of one request after the other, in bytes a second.
    pub fn set_device_rate(&mut self, bytes_per_s: f64) {
        if bytes_per_s > 0.0 && bytes_per_s.is_finite() {
            self.outcome.device_rate = Some(bytes_per_s);
            self.set_min_rate(min_rate(bytes_per_s));
        }
    }

    /// Takes a lower bound of the same rate, before that is known.
    pub fn set_min_device_rate(&mut self, bytes_per_s: f64) {
        if bytes_per_s > 0.0 && bytes_per_s.is_finite() {
            self.set_min_rate(min_rate(bytes_per_s).max(MIN_RATE_WHILE_UNKNOWN));
        }
    }

    /// Takes an estimate of the same rate, from single requests beside a foreground: it is for the outcome only.
    pub fn set_estimated_device_rate(&mut self, bytes_per_s: f64) {
        if bytes_per_s > 0.0 && bytes_per_s.is_finite() {
            self.outcome.device_rate = Some(bytes_per_s);
        }
    }

    fn set_min_rate(&mut self, least: f64) {
        let before = std::mem::replace(&mut self.least, least);
        // With a back-off the rate may be at its minimum while it grows without it.
        let keep = |value: f64, before: f64, least: f64| {
            if value <= before {
                least
            } else {
                value.max(least)
            }
        };
        self.log_rate = keep(self.log_rate, before.ln(), least.ln());
        self.rate = keep(self.rate, before, least);
    }

    /// Sets whether the background goes in steps, as md's check does, or by single requests: with steps more of the
    /// slowest foreground requests coincide.
    pub fn set_stepped(&mut self, steps: bool) {
        self.is_stepped = steps;
        if steps {
            self.plateau = Plateau::default();
        }
    }

    /// Sets the time that one request of the background occupies the device, in seconds: a foreground request may
    /// wait for it.
    pub fn request_takes(&mut self, seconds: f64) {
        if seconds >= 0.0 && seconds.is_finite() {
            self.request_s = seconds;
        }
    }

    /// Sets the rate, in bytes a second, below which the background does not fall whatever the foreground's latency:
    /// a deadline. 0 for none.
    pub fn at_least(&mut self, bytes_per_s: f64) {
        self.floor = bytes_per_s;
    }

    /// True if a deadline demands more than the foreground allows.
    pub fn is_driven(&self) -> bool {
        self.floor > self.rate
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
        self.kept
    }

    /// Amount of I/O that the background may do.
    pub fn allowed(&self) -> Allowed {
        match self.phase {
            ControllerStage::Alone => Allowed::All,
            ControllerStage::Working(_) => Allowed::Rate(self.rate.max(self.floor)),
            ControllerStage::Suspecting
            | ControllerStage::Learning(_)
            | ControllerStage::Pausing(_) => Allowed::Nothing,
        }
    }

    /// Mean latency of the last seconds, in seconds, while there is a foreground.
    pub fn mean_s(&self) -> Option<f64> {
        let probed = self.shown.iter().sum::<f64>() / self.shown.len().max(1) as f64;
        let probed = (!self.shown.is_empty()).then_some(probed);
        self.timed.or(probed).filter(|_| self.probes())
    }

    /// Latency of the last seconds that one probe in a hundred exceeds, in seconds, while there is a foreground.
    pub fn p99_s(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.shown.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let at = sorted.len().checked_sub(1 + (sorted.len() / 100).max(1))?;
        sorted.get(at).copied().filter(|_| self.probes())
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
        outcome.targets = self.kept;
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
                self.settled = self.start.is_none().then_some(self.log_rate);
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
                        self.start = None;
                        self.set(log_rate + SHARE_AFTER_HARM.ln());
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
        self.rate = self.least;
        self.back_off = BackOff::default();
        self.plateau = Plateau::default();
        self.set(self.least.ln());
        self.start = Some(Start::default());
        (self.bound, self.throughput) = (None, Throughput::default());
        self.is_bound_sought = false;
        self.behind = 0.0;
        self.shown.clear();
        self.timed = None;
    }

    fn show(&mut self, sample: &Sample<'_>) {
        self.shown.extend(sample.latencies_s);
        while self.shown.len() > SHOWN_LATENCIES {
            self.shown.pop_front();
        }
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
        let is_bound = self.bound.is_some_and(|bound| self.rate >= bound);
        let targets = self.kept.map_or_else(Targets::default, |kept| kept.0);
        let is_mean = targets.p99_s.is_none()
            || targets.mean_s.is_some() && self.mean.log_rate < self.slow.log_rate;
        match self.phase {
            ControllerStage::Working(_) if self.start.is_some() => HeldBy::Search,
            ControllerStage::Working(_) if is_bound => HeldBy::Throughput,
            ControllerStage::Working(_) if !self.may_grow() => HeldBy::Itself,
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
        let is_enough = so_far >= LEARN_S && self.own.len() >= MIN_LATENCIES_FOR_P99;
        if is_enough || so_far >= LEARN_MAX_S {
            self.throughput = Throughput::default();
            self.begin();
            self.know();
        }
    }

    fn pause(&mut self, so_far: f64, sample: &Sample<'_>) {
        let so_far = self.measure(so_far, sample);
        self.phase = ControllerStage::Pausing(so_far);
        if so_far >= PAUSE_S {
            let cycle_s = self.throughput.cycle();
            let bound = self.next_bound();
            self.is_bound_sought = self.moves_far(bound);
            self.bound = bound;
            self.own.fade(cycle_s);
            self.know();
        }
    }

    /// The throughput's bound after this cycle.
    fn next_bound(&self) -> Option<f64> {
        let before = self.bound.unwrap_or(f64::INFINITY);
        let least = before.min(self.log_rate.exp()) / MAX_BOUND_CHANGE;
        let bound = self.throughput.bound().unwrap_or(f64::INFINITY);
        let bound = bound.max(least).min(MAX_BOUND_CHANGE * before);
        Some(bound).filter(|bound| bound.is_finite())
    }

    /// True if this next bound moves by more than half of what a cycle may move it, and limits the rate, or the last
    /// one did: far above the rate, the bound of a loss by chance doubles with each cycle and tells nothing. Below the
    /// minimum rate, which is kept anyway, it changes nothing.
    fn moves_far(&self, next: Option<f64>) -> bool {
        let before = self.bound.unwrap_or(f64::INFINITY).max(self.least);
        let next = next.unwrap_or(f64::INFINITY).max(self.least);
        let is_limit = before.min(next) < self.log_rate.exp();
        let moved = (next / before).ln().abs();
        is_limit && moved > 0.5 * MAX_BOUND_CHANGE.ln()
    }

    /// Sets the targets by the foreground's own latency, and begins to work.
    fn know(&mut self) {
        self.learned_s = Some(self.now_s);
        let own_mean_s = self.own.mean_of_timed_s().or(self.own.mean_of_probes_s());
        let own = Targets {
            mean_s: own_mean_s,
            p99_s: self.own.p99_s(),
        };
        let room = |room: f64, own_s: f64, waits_s: f64| (room * own_s).max(own_s + waits_s);
        let room_of_mean = if self.is_stepped { ROOM_OF_MEAN } else { ROOM };
        let measured = Targets {
            mean_s: own
                .mean_s
                .map(|own_s| room(room_of_mean, own_s, 0.5 * self.request_s)),
            p99_s: own.p99_s.map(|own_s| room(ROOM, own_s, self.request_s)),
        };
        let mut source = TargetSource::Asked;
        let mut kept = |asked: Option<f64>, own: Option<f64>, measured: Option<f64>| {
            let asked = asked?;
            if own.is_none_or(|own| own <= asked) {
                return Some(asked);
            }
            source = TargetSource::Unreachable;
            measured
        };
        let targets = Targets {
            mean_s: kept(self.asked.mean_s, own.mean_s, measured.mean_s),
            p99_s: kept(self.asked.p99_s, own.p99_s, measured.p99_s),
        };
        let kept = match self.asked.is_empty() {
            true => (measured, TargetSource::Measured),
            false => (targets, source),
        };
        self.aims = Targets {
            mean_s: aim(kept.0.mean_s, self.asked.mean_s, own.mean_s),
            p99_s: aim(kept.0.p99_s, self.asked.p99_s, own.p99_s),
        };
        self.kept = Some(kept);
        self.log_rate_before = self.log_rate;
        self.phase = ControllerStage::Working(0.0);
    }

    fn work(&mut self, so_far: f64, sample: &Sample<'_>) {
        let Some((targets, _)) = self.kept else {
            return;
        };
        let requests = sample.foreground.requests.unwrap_or(0.0);
        self.throughput
            .worked(requests, sample.seconds, sample.background);
        self.judge(&targets, sample);
        self.idle_s = match sample.foreground.requests {
            Some(requests) if requests <= 0.0 => self.idle_s + sample.seconds,
            _ => 0.0,
        };
        let allowed = self.rate.max(self.floor);
        let most = most_behind(allowed);
        self.behind =
            (self.behind + allowed * sample.seconds - sample.background).clamp(-most, 1.1 * most);
        let weight = (sample.seconds / USED_S).min(1.0);
        self.used += weight * (sample.background / sample.seconds.max(1e-9) - self.used);
        let aims = self.aims;
        self.follow(&aims, sample);
        if self.rate <= self.least {
            self.outcome.least_s += sample.seconds;
        }
        let so_far = so_far + sample.seconds;
        let has_grown = self.log_rate - self.log_rate_before >= SEARCH_GROWTH;
        let is_sought =
            self.is_bound_sought || self.start.is_some() && (self.may_grow() || has_grown);
        let work_s = if is_sought { SEARCH_S } else { WORK_S };
        self.phase = if so_far >= work_s && !self.is_driven() {
            ControllerStage::Pausing(0.0)
        } else {
            ControllerStage::Working(so_far)
        };
    }

    /// The mean of these as a share of its target.
    fn share_of_mean(&self, targets: &Targets, sample: &Sample<'_>) -> Option<f64> {
        let target_s = targets.mean_s?;
        let mean_s = match sample.timed {
            Some((requests, seconds)) if requests > 0.0 => seconds / requests,
            _ if sample.latencies_s.is_empty() => return None,
            _ => sample.latencies_s.iter().sum::<f64>() / sample.latencies_s.len() as f64,
        };
        Some(mean_s / target_s)
    }

    /// Latencies as shares of their target, with that of a probe that still waits.
    fn shares_of_slow(targets: &Targets, sample: &Sample<'_>) -> Vec<f64> {
        let Some(target_s) = targets.slow_s().filter(|target_s| *target_s > 0.0) else {
            return Vec::new();
        };
        sample
            .latencies_s
            .iter()
            .map(|one| one / target_s)
            .collect()
    }

    fn follow(&mut self, targets: &Targets, sample: &Sample<'_>) {
        let share_of_mean = self.share_of_mean(targets, sample);
        let shares = Self::shares_of_slow(targets, sample);
        let weight = self.latency_weight.take(shares.len(), sample.seconds);
        let may_grow = self.may_grow();
        // A probe that is outstanding has no latency yet: each poll counts the time that it has waited.
        let waits = targets.slow_s().map(|slow_s| sample.waiting_s / slow_s);
        let is_slow = shares.iter().chain(&waits).any(|share| *share > 1.0);
        self.plateau.pass(sample.seconds);
        // At the least rate nothing can be lowered, steps are not spread over time, and a deadline's rate is not this
        // one.
        if self.rate > self.least && !self.is_stepped && !self.is_driven() {
            self.plateau.take(
                is_slow,
                (self.rate, self.log_used()),
                sample.seconds,
                sample.background,
            );
        }
        self.back_off.pass(sample.seconds);
        if !may_grow && shares.iter().any(|share| *share > 1.0) {
            // It backs off from what it used, as a congestion window does (RFC 7661).
            self.back_off.begin_at(self.log_used() - self.log_rate);
        }
        shares
            .iter()
            .for_each(|share| self.back_off.take(*share, weight));
        if let Some(share) = waits {
            self.back_off.take(share, 1.0);
        }
        let growth = if may_grow {
            MAX_GROWTH_PER_S * sample.seconds
        } else {
            0.0
        };
        match self.start {
            Some(start) => self.search(start, &shares, share_of_mean, growth, sample.seconds),
            None => self.settle(
                targets,
                (&shares, weight),
                share_of_mean,
                growth,
                sample.seconds,
            ),
        }
        self.rate = (self.log_rate + self.back_off.log).exp();
        self.rate = self
            .rate
            .min(self.bound.unwrap_or(f64::INFINITY))
            .max(self.least);
    }

    /// Logarithm of the rate that was used lately, and at least of the least rate.
    fn log_used(&self) -> f64 {
        self.used.max(self.least).ln()
    }

    /// True if the effect of more background I/O would be seen: it uses what it is allowed, beside foreground
    /// requests.
    fn may_grow(&self) -> bool {
        self.idle_s < IDLE_S && self.log_rate <= MAX_MULTIPLE_OF_USED.ln() + self.log_used()
    }

    /// Raises the rate from below until the targets are first missed, or the plateau is exceeded.
    fn search(
        &mut self,
        mut start: Start,
        shares: &[f64],
        of_mean: Option<f64>,
        growth: f64,
        seconds: f64,
    ) {
        for share in shares {
            let slow = f64::from(u8::from(*share > 1.0));
            start.slow = (start.slow + slow - USUAL_SLOW_SHARE).max(0.0);
        }
        if let Some(share) = of_mean {
            start.mean += (seconds / MEAN_S).min(1.0) * (share - start.mean);
        }
        start.unknown_s = if shares.is_empty() && of_mean.is_none() {
            start.unknown_s + seconds
        } else {
            0.0
        };
        let is_bound = self.bound.is_some_and(|bound| self.log_rate >= bound.ln());
        let is_harm = start.slow >= SLOW_ENDS_SEARCH || start.mean > 1.0;
        let log_cap = self.plateau.log_cap().filter(|cap| self.log_rate > *cap);
        let found = is_harm.then(|| self.log_rate + SHARE_AFTER_HARM.ln());
        if let Some(log_rate) = found.or(log_cap) {
            self.start = None;
            self.set(log_rate);
            return;
        }
        self.start = Some(start);
        if growth > 0.0 && start.unknown_s < MAX_LATENCY_GAP_S && !is_bound {
            self.set(self.log_rate + growth);
        }
    }

    /// Moves the rate to the highest at which the targets are met.
    fn settle(
        &mut self,
        targets: &Targets,
        (shares, weight): (&[f64], f64),
        of_mean: Option<f64>,
        growth: f64,
        seconds: f64,
    ) {
        let mut log_rate = self.log_rate + growth;
        self.since_mean_s = (self.since_mean_s + seconds).min(MAX_LATENCY_GAP_S);
        if let Some(share) = of_mean {
            self.mean
                .take(share, std::mem::take(&mut self.since_mean_s));
        }
        if targets.p99_s.is_some() {
            let is_asked = self
                .kept
                .is_some_and(|kept| kept.0.p99_s == self.asked.p99_s);
            self.slow.take(shares, weight, seconds, is_asked);
            log_rate = log_rate.min(self.slow.log_rate);
        }
        if targets.mean_s.is_some() {
            log_rate = log_rate.min(self.mean.log_rate);
        }
        let least = self.least.ln();
        let log_cap = self.plateau.log_cap().unwrap_or(f64::INFINITY);
        self.log_rate = log_rate.min(log_cap).max(least);
        let within = |log: f64| log.clamp(least, self.log_rate + MAX_GUARD_LEAD);
        self.slow.log_rate = within(self.slow.log_rate);
        self.mean.log_rate = within(self.mean.log_rate);
    }

    /// Sets the rate, and each guard's.
    fn set(&mut self, log_rate: f64) {
        self.log_rate = log_rate.max(self.least.ln());
        self.mean.log_rate = self.log_rate;
        self.slow.log_rate = self.log_rate;
    }

    fn judge(&mut self, targets: &Targets, sample: &Sample<'_>) {
        let window = &mut self.window;
        window.seconds += sample.seconds;
        window.requests += sample.latencies_s.len() as f64;
        window.sum_s += sample.latencies_s.iter().sum::<f64>();
        let slow_s = targets.p99_s.unwrap_or(f64::INFINITY);
        let slow = sample.latencies_s.iter().filter(|one| **one > slow_s);
        window.slow += slow.count() as f64;
        if window.seconds >= WINDOW_S {
            let mean_s = targets.mean_s.unwrap_or(f64::INFINITY);
            let is_above =
                window.slow > 0.01 * window.requests || window.sum_s > mean_s * window.requests;
            if is_above {
                self.outcome.above_s += window.seconds;
            }
            self.window = Window::default();
        }
    }
}

/// Minimum rate on a device with this rate of one request after the other, both in bytes a second.
pub fn min_rate(device_rate: f64) -> f64 {
    (MIN_RATE_SHARE * device_rate).clamp(LOWEST_MIN_RATE, MAX_MIN_RATE)
}

/// Latency by which the rate is steered to keep a target, which may be the requested one.
fn aim(target_s: Option<f64>, asked_s: Option<f64>, own_s: Option<f64>) -> Option<f64> {
    if target_s != asked_s {
        return target_s;
    }
    let target_s = target_s?;
    Some((STEERED_SHARE * target_s).max(0.5 * (own_s.unwrap_or(0.0) + target_s)))
}

/// Bytes by which the background may be behind a rate that it uses.
fn most_behind(allowed: f64) -> f64 {
    BEHIND + BEHIND_S * allowed
}

#[cfg(test)]
mod tests {
    use super::super::Foreground;
    use super::*;

    #[test]
    fn a_bound_moves_far_where_it_limits_the_rate_above_the_minimum() {
        let mut controller = Controller::new(Targets::default());
        controller.least = 1e5;
        controller.log_rate = 1e6_f64.ln();
        for (before, next, moves_far) in [
            (None, Some(5e5), true),
            (Some(8e5), Some(4e5), true),
            (Some(8e5), Some(7e5), false),
            // Far above the rate.
            (Some(2e7), Some(1e7), false),
            (None, Some(1e7), false),
            // Below the minimum, which is kept anyway.
            (Some(8e4), Some(4e4), false),
        ] {
            controller.bound = before;
            assert_eq!(controller.moves_far(next), moves_far, "{before:?} {next:?}");
        }
    }

    #[test]
    fn a_search_that_grew_is_compared_soon() {
        // Far above what is used, it may not grow; what it grew before is to be compared.
        for (grew, phase) in [
            (2.0 * SEARCH_GROWTH, ControllerStage::Pausing(0.0)),
            (0.0, ControllerStage::Working(SEARCH_S + 0.1)),
        ] {
            let mut controller = Controller::new(Targets::default());
            controller.know();
            controller.start = Some(Start::default());
            controller.set(controller.log_used() + 2.0);
            controller.log_rate_before = controller.log_rate - grew;
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
        controller.back_off.begin_at(-1.0);
        let mut seconds = 0.0;
        while controller.rate < 2.0 * MAX_MIN_RATE && seconds < 10.0 {
            // As after each request of `scrub --read`.
            controller.set_device_rate(1e9 + seconds);
            let sample = Sample {
                seconds: 0.02,
                foreground: Foreground {
                    requests: Some(10.0),
                    ..Foreground::default()
                },
                latencies_s: &[0.001],
                background: 0.02 * controller.rate,
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
        controller.least = 1e6;
        for _ in 0..2 {
            controller.plateau.pass(1.0);
            controller
                .plateau
                .take(true, (1.05e6, 1.05e6_f64.ln()), 1.0, 0.0);
        }
        assert!(controller.plateau.log_cap() < Some(controller.least.ln()));
        for _ in 0..600 {
            let sample = Sample {
                seconds: 0.1,
                foreground: Foreground {
                    requests: Some(10.0),
                    ..Foreground::default()
                },
                latencies_s: &[0.001; 4],
                background: 0.1 * controller.rate,
                ..Sample::default()
            };
            controller.work(0.0, &sample);
        }
        assert!(controller.rate > 1.5e6, "{}", controller.rate);
    }
}
