//! How much of an array may be checked at this moment.
//!
//! Alone on the array, all that it gives. In company, a [`Rate`] that follows what the foreground feels.
//! What it feels by itself is measured with the check held: before it begins or when the first company
//! comes, a little of it again each minute, and all of it anew where the target is passed although next
//! to nothing is checked. Then the foreground is slow by itself, and that is what it is held to.

mod hidden_foreground;

use std::collections::VecDeque;

use record::Nanos;

use self::hidden_foreground::HiddenForegroundDetector;
use super::foreground_latency::{
    Alone, ForegroundLatency, ForegroundSample, IssueMode, Targets, Verdict,
};
use super::rate::Rate;

/// How long an interval is by which the rate is set.
const INTERVAL: Nanos = Nanos(500_000_000);
/// The check never gets less than this share of what the members give while they are at it. At the least
/// rate they are at it for so much of the time, whatever they are: on volumes of 100 IOPS each number of bytes
/// that does next to no harm to faster ones is most of what a heavy load leaves.
const LEAST_SHARE: f64 = 0.02;
/// No least rate is more than this, nor less than that, in bytes a second: the way must have an end.
pub(crate) const LEAST: f64 = (1 << 20) as f64;
const SLOWEST: f64 = LEAST / 64.0;
/// The rate at which it begins, where it is not known yet what the members give.
const START: f64 = LEAST / 16.0;
/// So many requests [`LATELY`] are nobody: what asks for the state of a disk now and then, the journal of
/// a file system, and what a scrub keeps of itself. Ten a second.
const NOBODY: u64 = 30;
/// Requests are counted together over so long.
const LATELY: Nanos = Nanos(3_000_000_000);
/// So long nobody must be seen before the array counts as idle: at first, and at most. Each time that
/// somebody comes back soon, it is twice as long.
const QUIET: Nanos = Nanos(1_500_000_000);
const LONGEST_QUIET: Nanos = Nanos(60_000_000_000);
/// Where not one request was seen since the beginning, so long is enough.
const SILENT: Nanos = Nanos(1_000_000_000);
/// Who comes back after this comes anew.
const SOON: Nanos = Nanos(120_000_000_000);
/// Where the foreground suffers, nothing is checked for so long.
const HELD: Nanos = Nanos(1_000_000_000);
/// So long the foreground is measured before its target is set, at least; longer where too few probes
/// came back, or too few requests were made to call it a foreground.
pub(crate) const MEASURED: Nanos = Nanos(8_000_000_000);
/// But no longer than this.
const MEASURED_AT_MOST: Nanos = Nanos(20_000_000_000);
/// So many requests make a foreground.
const FOREGROUND: u64 = 50;
/// So often what it has by itself is measured again, and for so long; sooner where the rate was cut so
/// often since: a percentile of a few hundred reads may be off, and a load may grow.
const AGAIN: Nanos = Nanos(60_000_000_000);
const SOONER: Nanos = Nanos(15_000_000_000);
const CUTS: u32 = 3;
const A_LITTLE: Nanos = Nanos(1_500_000_000);
/// What was measured so long ago says nothing of who comes now.
const STALE: Nanos = Nanos(600_000_000_000);
/// What is felt first was begun before the check was held.
const SETTLES: Nanos = Nanos(300_000_000);
/// So often the target is passed at the least rate before the foreground is measured anew.
const NOT_TO_BLAME: u32 = 3;
/// The bytes a second that are really checked are of so many intervals: four seconds of them.
const INTERVALS: usize = 8;
/// The check uses what it is allowed as long as it is behind by no more than this, in seconds and in
/// bytes: it goes in steps.
const BEHIND_S: f64 = 1.5;
const BEHIND: f64 = (16 << 20) as f64;

/// What the check may do now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum May {
    /// Whatever the array gives: nobody else is there.
    All,
    /// So many bytes a second.
    Rate(f64),
    /// Nothing at the moment.
    Nothing,
}

/// Finds it out.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// What the user wants to be kept.
    asked: Option<Targets>,
    /// What the foreground has by itself, and the targets that follow from it.
    alone: Alone,
    own: Option<Targets>,
    way: IssueMode,
    rate: Rate,
    felt: ForegroundLatency,
    state: State,
    /// What others asked for lately.
    others: VecDeque<Others>,
    /// Whether the kernel counts them.
    is_counted: bool,
    /// Requests of others since the foreground is measured.
    foreground: u64,
    /// Since when nobody is there, and how long that must last.
    nobody: Option<Nanos>,
    quiet: Nanos,
    left: Option<Nanos>,
    ears: HiddenForegroundDetector,
    /// When the foreground was last measured.
    measured: Nanos,
    not_to_blame: u32,
    /// How often the rate was cut since then.
    cuts: u32,
    since: Nanos,
    bytes: f64,
    used: VecDeque<f64>,
    behind: f64,
    /// Below this the rate does not fall: what a deadline demands.
    floor: f64,
}

/// What others asked for between two looks.
#[derive(Clone, Copy, Debug)]
struct Others {
    seen: Nanos,
    requests: u64,
    /// Seconds in which they waited.
    waited: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Alone,
    /// Who waits behind the check is counted without it, since then.
    Listening(Nanos),
    /// The foreground is measured by itself since then.
    Measuring(Nanos),
    /// A little of that again.
    Again(Nanos),
    Company,
    /// It suffers; nothing is done since then.
    Held(Nanos),
}

/// How far the check may be behind a rate and still use it, in bytes.
fn most_behind(allowed: f64) -> f64 {
    BEHIND + BEHIND_S * allowed
}

/// The least rate where the members give so much, both in bytes a second.
pub(crate) fn least_of(gives: f64) -> f64 {
    (LEAST_SHARE * gives).clamp(SLOWEST, LEAST)
}

impl Pace {
    /// To keep `targets`, or with `None` what is measured before the check begins.
    pub(crate) fn new(targets: Option<Targets>, now: Nanos) -> Pace {
        let state = match targets {
            Some(_) => State::Company,
            None => State::Measuring(now),
        };
        Pace {
            asked: targets,
            alone: Alone::default(),
            own: None,
            way: IssueMode::Steps,
            rate: Rate::new(START),
            felt: ForegroundLatency::default(),
            state,
            others: VecDeque::new(),
            is_counted: true,
            foreground: 0,
            nobody: Some(now),
            quiet: QUIET,
            left: None,
            ears: HiddenForegroundDetector::new(now),
            measured: now,
            not_to_blame: 0,
            cuts: 0,
            since: now,
            bytes: 0.0,
            used: VecDeque::new(),
            behind: 0.0,
            floor: 0.0,
        }
    }

    /// Says how the check meets others from now on.
    pub(crate) fn go(&mut self, way: IssueMode) {
        self.way = way;
    }

    /// Sets the rate below which it may not fall, in bytes a second; 0 for none.
    pub(crate) fn at_least(&mut self, floor: f64) {
        self.floor = floor;
    }

    /// Takes what the members give while they are at it, in bytes a second: the least rate follows from it.
    pub(crate) fn give(&mut self, gives: f64) {
        self.rate.falls_to(least_of(gives));
    }

    /// The latencies that are kept, once they are known: what was asked for, or more where the
    /// foreground does not have that by itself.
    pub(crate) fn targets(&self) -> Option<Targets> {
        let own = self.own.map(|own| own.with_room(self.way));
        match (self.asked, own) {
            (Some(asked), Some(own)) => Some(asked.no_stricter_than(&own)),
            (asked, own) => asked.or(own),
        }
    }

    /// What the foreground feels now; `None` while nobody is there.
    pub(crate) fn felt(&self) -> Option<&ForegroundLatency> {
        self.probes().then_some(&self.felt)
    }

    /// Whether probes are wanted. On an idle array they would only hold back the check.
    pub(crate) fn probes(&self) -> bool {
        !matches!(self.state, State::Alone | State::Listening(_))
    }

    /// Whether the foreground is just being measured.
    pub(crate) fn is_measuring(&self) -> bool {
        matches!(self.state, State::Measuring(_) | State::Again(_))
    }

    /// Measures the foreground from now on: what was felt so far is not its own.
    pub(crate) fn measure_anew(&mut self, now: Nanos) {
        match &mut self.state {
            State::Measuring(since) => {
                *since = now;
                self.alone = Alone::default();
            }
            State::Again(since) => *since = now,
            _ => {}
        }
    }

    /// Takes what was seen since the last time, in which so many bytes were checked.
    pub(crate) fn take(&mut self, now: Nanos, seen: &ForegroundSample, bytes: f64) {
        let targets = self.targets();
        self.felt.take(now, seen, targets.as_ref());
        self.bytes += bytes;
        self.look_around(now, seen);
        match self.state {
            State::Alone | State::Listening(_) => {}
            State::Measuring(since) => self.measure(now, since, seen),
            State::Again(since) => self.refresh(now, since, seen),
            State::Company => self.judge(now),
            State::Held(since) => {
                if now.0.saturating_sub(since.0) >= HELD.0 {
                    self.felt.answer();
                    self.state = State::Company;
                    self.begin_interval(now);
                }
            }
        }
    }

    /// So many more bytes were checked.
    pub(crate) fn moved(&mut self, bytes: f64) {
        self.bytes += bytes;
    }

    /// What may be done.
    pub(crate) fn may(&self) -> May {
        match self.state {
            State::Alone => May::All,
            // What moved would be felt: a deadline makes up for this little.
            State::Listening(_) | State::Measuring(_) | State::Again(_) => May::Nothing,
            State::Held(_) if self.floor <= 0.0 => May::Nothing,
            State::Held(_) => May::Rate(self.floor),
            State::Company => May::Rate(self.rate.allowed().max(self.floor)),
        }
    }

    /// Who is there.
    fn look_around(&mut self, now: Nanos, seen: &ForegroundSample) {
        match seen.others {
            Some(others) => {
                self.foreground = self.foreground.saturating_add(others);
                // Probes wait too; there are none where this counts.
                let waited = if self.probes() { 0.0 } else { seen.busy };
                if others > 0 || waited > 0.0 {
                    self.ears.stir(now);
                }
                self.others.push_back(Others {
                    seen: now,
                    requests: others,
                    waited,
                });
                let is_old = |one: &Others| now.0.saturating_sub(one.seen.0) >= LATELY.0;
                while self.others.front().is_some_and(is_old) {
                    self.others.pop_front();
                }
            }
            None => self.is_counted = false,
        }
        let others: u64 = self.others.iter().map(|one| one.requests).sum();
        let is_nobody = self.is_counted && others <= NOBODY;
        if !is_nobody {
            self.nobody = None;
            if !self.probes() {
                self.meet(now);
            }
            return;
        }
        let nobody = *self.nobody.get_or_insert(now);
        match self.state {
            State::Alone => self.suspect(now),
            State::Listening(since) => self.listen(now, since),
            _ if now.0.saturating_sub(nobody.0) >= self.quiet(others).0 => {
                self.state = State::Alone;
                self.left = Some(now);
            }
            _ => {}
        }
    }

    /// How long nobody must be seen, where so many requests were.
    fn quiet(&self, others: u64) -> Nanos {
        let is_silent = others == 0 && self.left.is_none();
        if is_silent { SILENT } else { self.quiet }
    }

    /// Whether somebody waits so much that it may be the check that makes him look like nobody.
    fn suspect(&mut self, now: Nanos) {
        let waited: f64 = self.others.iter().map(|one| one.waited).sum();
        if self.ears.are_wanted(now, waited) {
            self.state = State::Listening(now);
        }
    }

    /// Nobody was heard yet.
    fn listen(&mut self, now: Nanos, since: Nanos) {
        if self.ears.have_heard(now, since) {
            self.state = State::Alone;
        }
    }

    /// Somebody has come.
    fn meet(&mut self, now: Nanos) {
        // Who comes in bursts is not to meet a check at full speed each time.
        let is_back = |left: Nanos| now.0.saturating_sub(left.0) < SOON.0;
        self.quiet = match self.left.is_some_and(is_back) {
            true => Nanos((2 * self.quiet.0).min(LONGEST_QUIET.0)),
            false => QUIET,
        };
        self.ears = HiddenForegroundDetector::new(now);
        self.felt.clear();
        self.rate = Rate::new(self.rate.least());
        self.not_to_blame = 0;
        self.used.clear();
        self.behind = 0.0;
        self.begin_interval(now);
        if now.0.saturating_sub(self.measured.0) >= STALE.0 {
            self.own = None;
        }
        match self.targets() {
            Some(_) => self.state = State::Company,
            None => self.begin_measuring(now),
        }
    }

    fn begin_measuring(&mut self, now: Nanos) {
        self.alone = Alone::default();
        self.foreground = 0;
        self.state = State::Measuring(now);
    }

    /// The foreground is by itself.
    fn measure(&mut self, now: Nanos, since: Nanos, seen: &ForegroundSample) {
        let passed = now.0.saturating_sub(since.0);
        if passed >= SETTLES.0 {
            self.alone.take(seen);
        }
        let is_enough = self.alone.probes() >= Alone::ENOUGH && self.foreground >= FOREGROUND;
        if (passed >= MEASURED.0 && is_enough) || passed >= MEASURED_AT_MOST.0 {
            self.set_own(now);
        }
    }

    fn refresh(&mut self, now: Nanos, since: Nanos, seen: &ForegroundSample) {
        let passed = now.0.saturating_sub(since.0);
        if passed >= SETTLES.0 {
            self.alone.take(seen);
        }
        if passed >= A_LITTLE.0 {
            self.set_own(now);
        }
    }

    fn set_own(&mut self, now: Nanos) {
        let Some(own) = self.alone.own() else {
            // Not one probe came back.
            return self.begin_measuring(now);
        };
        self.own = Some(own);
        self.measured = now;
        self.not_to_blame = 0;
        self.cuts = 0;
        self.felt.answer();
        self.state = State::Company;
        self.begin_interval(now);
    }

    /// In company: how the target is kept.
    fn judge(&mut self, now: Nanos) {
        let Some(targets) = self.targets() else {
            return;
        };
        // What somebody asked for is no target to lean on.
        let way = if self.asked.is_some() {
            IssueMode::Steps
        } else {
            self.way
        };
        let verdict = self.felt.verdict(&targets, way);
        let is_over = now.0.saturating_sub(self.since.0) >= INTERVAL.0;
        if is_over || matches!(verdict, Verdict::Passed | Verdict::Far) {
            self.close(now, verdict, &targets);
        }
        if matches!(verdict, Verdict::Passed | Verdict::Far) {
            self.answer(now, verdict);
        } else if !self.rate.is_least() {
            self.not_to_blame = 0;
        }
        let after = if self.cuts >= CUTS { SOONER } else { AGAIN };
        let is_due = now.0.saturating_sub(self.measured.0) >= after.0;
        let is_of_use = self.own.is_some() && !self.is_driven();
        if self.state == State::Company && is_of_use && is_due {
            self.alone.age();
            self.state = State::Again(now);
        }
    }

    /// The target is passed.
    fn answer(&mut self, now: Nanos, verdict: Verdict) {
        self.felt.answer();
        self.cuts += 1;
        let used = self.used();
        match verdict {
            // It never gets less than that, or it would not end where the foreground is slow by itself.
            _ if self.rate.is_least() => self.not_to_blame += 1,
            Verdict::Far => {
                self.rate.collapse(used);
                self.state = State::Held(now);
            }
            _ => self.rate.cut(used),
        }
        // What was measured a moment ago needs no new measuring.
        let is_old = self.own.is_none() || now.0.saturating_sub(self.measured.0) >= AGAIN.0;
        if self.not_to_blame >= NOT_TO_BLAME && is_old && !self.is_driven() {
            self.begin_measuring(now);
        }
    }

    /// Whether a deadline demands more than what is felt allows: then what the foreground has by itself
    /// decides nothing, and to measure it would only make the check late.
    pub(crate) fn is_driven(&self) -> bool {
        self.floor > self.rate.allowed()
    }

    /// Whether that is more than could be done for a while.
    pub(crate) fn falls_short(&self) -> bool {
        self.is_driven() && self.behind >= most_behind(self.floor)
    }

    /// An interval is over.
    fn close(&mut self, now: Nanos, verdict: Verdict, targets: &Targets) {
        let seconds = Nanos(now.0.saturating_sub(self.since.0)).as_secs_f64();
        let allowed = self.rate.allowed().max(self.floor);
        let most = most_behind(allowed);
        self.behind = (self.behind + allowed * seconds - self.bytes).clamp(-most, 1.1 * most);
        if seconds > 0.0 {
            self.used.push_back(self.bytes / seconds);
            if self.used.len() > INTERVALS {
                self.used.pop_front();
            }
        }
        self.rate.pass(seconds);
        self.follow(verdict, targets, self.behind < most, seconds);
        self.begin_interval(now);
    }

    /// Sets the rate by what was felt in the last interval: it leans on the mean where there is one to lean on, and
    /// grows otherwise. It does not grow where it is not used.
    fn follow(&mut self, verdict: Verdict, targets: &Targets, is_used: bool, seconds: f64) {
        if self.way == IssueMode::Steps || targets.mean.is_none() {
            if verdict == Verdict::Calm && is_used {
                self.rate.grow(seconds);
            }
            return;
        }
        // Not known where it was answered a moment ago.
        let Some(share) = self.felt.share(targets) else {
            return;
        };
        let leans = match verdict {
            Verdict::Calm => is_used,
            // Near its target by the mean alone, or also by the slowest, for which it is no time to grow.
            Verdict::Near => share > 1.0 || is_used && self.felt.is_even(),
            _ => false,
        };
        if leans {
            self.rate.lean(share, seconds);
        }
    }

    /// Bytes a second that were really checked lately.
    fn used(&self) -> f64 {
        self.used.iter().sum::<f64>() / self.used.len().max(1) as f64
    }

    fn begin_interval(&mut self, now: Nanos) {
        (self.since, self.bytes) = (now, 0.0);
    }
}

#[cfg(test)]
mod tests;
