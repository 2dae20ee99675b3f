//! Compares the members directly while there is a foreground: they are read and compared here, and md checks only
//! suspected chunks. Without a foreground md checks all.
//!
//! md's check makes many small requests, each of which waits in the queues of its members. RAID 10 is worse: each
//! request waits until all foreground requests have completed, and lets none begin meanwhile (`raise_barrier`,
//! drivers/md/raid10.c), so that members which are busy for half of the time get little done. Large direct reads are
//! few, and wait in the queues of the disks like any other read.
//!
//! While members are read, md does nothing, and nothing delays work that it may have to do: `sync_max` is `max`. The
//! progress is known at the end of each unit, where md can take over.

use std::collections::VecDeque;
use std::ops::Range;

use linux::md::sync::{Action, Look, Sectors, Tunable, Until};
use record::Nanos;

use super::super::compare::{Compared, REQUEST};
use super::{Drive, Ending, SyncWindow, TICK, TIMEOUT, Throttle, World};
use study::pace::Allowed;

/// Most requests to each member in a step: more than one where the rate demands it, so that members need not wait
/// for each other after each; few, because a step is not interrupted when a foreground appears.
const DEEPEST: u64 = 4;
/// A step takes about so long, in seconds, if it has more than one request of each member.
const STEP_S: f64 = 0.1;
/// Requests to one member are apart by this share of the interval that the rate gives, so that a late one is made up
/// for; and by no more than this share of a step, so that a slow rate does not last longer than it should.
const APART: f64 = 0.7;
/// Steps that may be made up for at most.
const STEPS: f64 = 2.0;
/// Weight of the last step in the rate of the members.
const LAST_COUNTS: f64 = 0.2;
/// After so many steps in a row, of each of which at least one part in [`PART`] is suspected, md checks by itself:
/// it is faster where much differs.
const SUSPECTED: u32 = 4;
const PART: u64 = 4;
/// Time after that, or after the readers stopped or were too slow for a deadline, until direct comparison is tried
/// again.
const LOST: Nanos = Nanos(600_000_000_000);
/// Longest time after the end of a check for which md refuses an action (EBUSY), though it reports `idle`
/// (`md_check_recovery`, drivers/md/md.c).
const REAPED: Nanos = Nanos(1_000_000_000);
/// Number of looks, while a step takes as long as it does, for its completion and for the start of the next
/// one; within these bounds.
const LOOKS: f64 = 8.0;
const SOONEST: f64 = 0.001;
const SOON: f64 = 0.005;
const LATER: Nanos = Nanos(20_000_000);

/// State of the direct comparison.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    /// Up to here is read, and what is behind is not yet.
    at: Sectors,
    of: Sectors,
    /// Progress is known at multiples of this, where md may be sent.
    unit: Sectors,
    /// Length of one request to each member, in whole units where it is more than one, and the number of them
    /// in a step.
    request: Sectors,
    deep: u64,
    /// Time from one request to a member until the next may begin.
    apart: Nanos,
    /// Bytes that may be read now; negative when it was ahead.
    credit: f64,
    /// The step that is under way.
    reads: Option<Range<Sectors>>,
    /// Rate of the members while they read, in bytes a second.
    gives: Option<f64>,
    /// Number of the last steps in a row of which much was suspected.
    suspected: u32,
    /// Suspected ranges, in units, since the progress was known last.
    suspects: VecDeque<Range<Sectors>>,
}

impl Direct {
    /// From a multiple of `unit` on, to the end of the check, over so many members at once.
    pub(super) fn new(at: Sectors, of: Sectors, unit: Sectors, wide: u64) -> Direct {
        let request = Sectors::of(REQUEST).0.saturating_mul(wide);
        let whole = request / unit.0.max(1) * unit.0;
        Direct {
            at,
            of,
            unit,
            request: Sectors(if whole > 0 { whole } else { request }),
            deep: 1,
            apart: Nanos(0),
            credit: 0.0,
            reads: None,
            gives: None,
            suspected: 0,
            suspects: VecDeque::new(),
        }
    }

    /// So many seconds passed.
    fn pass(&mut self, may: Allowed, seconds: f64) {
        if let Allowed::Rate(rate) = may {
            let one = self.request.bytes().0 as f64 / rate.max(1.0);
            self.deep = ((STEP_S / one) as u64).clamp(1, DEEPEST);
            self.apart = Nanos((APART * one.min(STEP_S) * 1e9) as u64);
            let most = STEPS * self.step().bytes().0 as f64;
            self.credit = (self.credit + rate * seconds).min(most);
        }
    }

    /// Length that is read at once.
    fn step(&self) -> Sectors {
        Sectors(self.request.0.saturating_mul(self.deep))
    }

    /// The step that may begin now.
    fn next(&self) -> Option<Range<Sectors>> {
        // What is suspected waits for the end of its unit, and all else for md.
        let may_go_on = self.suspects.is_empty() || !self.is_whole();
        let is_due = self.reads.is_none() && may_go_on && self.credit >= 0.0;
        if !is_due || self.at >= self.of {
            return None;
        }
        // What comes to the end of a unit ends at one, wherever it began.
        let reaches = self.at.0.saturating_add(self.step().0);
        let whole = reaches / self.unit.0 * self.unit.0;
        let ends = if whole > self.at.0 { whole } else { reaches };
        Some(self.at..Sectors(ends).min(self.of))
    }

    /// A step begins.
    fn begin(&mut self, step: Range<Sectors>) {
        self.credit -= Sectors(step.end.0 - step.start.0).bytes().0 as f64;
        self.reads = Some(step);
    }

    /// A step came back. Gives what the members give, in bytes a second.
    fn come(&mut self, compared: &Compared) -> Option<f64> {
        let step = self.reads.take()?;
        let bytes = Sectors(step.end.0 - step.start.0).bytes().0 as f64;
        self.at = step.end;
        for range in compared.suspects.iter() {
            self.suspect(range);
        }
        let is_much = PART * compared.suspects.total().0 >= step.end.0 - step.start.0;
        self.suspected = if is_much { self.suspected + 1 } else { 0 };
        // Of what was read again and again that tells nothing.
        if !compared.suspects.is_empty() {
            return None;
        }
        let now = bytes / compared.read.as_secs_f64().max(1e-6);
        let gives = self.gives.get_or_insert(now);
        *gives += LAST_COUNTS * (now - *gives);
        Some(*gives)
    }

    /// Adds what is suspected, in whole units.
    fn suspect(&mut self, range: Range<u64>) {
        let start = Sectors(range.start / self.unit.0 * self.unit.0);
        let end = Sectors(range.end.div_ceil(self.unit.0) * self.unit.0);
        match self.suspects.back_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => self.suspects.push_back(start..end),
        }
    }

    /// True if a unit is whole, so that the progress is known.
    fn is_whole(&self) -> bool {
        self.at.0.is_multiple_of(self.unit.0) || self.at >= self.of
    }

    /// True if nothing is under way, and nothing begun that is not done.
    fn is_at_rest(&self) -> bool {
        self.reads.is_none() && self.suspects.is_empty() && self.is_whole()
    }

    fn rest(&self) -> Nanos {
        if self.reads.is_some() || self.credit >= 0.0 {
            let takes = self
                .gives
                .map_or(0.0, |gives| self.step().bytes().0 as f64 / gives);
            Nanos(((takes / LOOKS).clamp(SOONEST, SOON) * 1e9) as u64)
        } else {
            LATER
        }
    }
}

impl<W: World> Drive<'_, W> {
    /// Time for which nothing is to be done.
    pub(super) fn rest(&self, now: Nanos) -> Nanos {
        match &self.direct {
            Some(direct) if !self.began => direct.rest(),
            _ => self.window.rest(self.pace.allowed(), self.at.live, now),
        }
    }

    /// True if md's check is to give way to reads of the members.
    fn is_to_compare(&mut self) -> bool {
        if self.direct.is_some() {
            // What it was sent for is done.
            return self.window.has_stopped(self.at.done);
        }
        let now = self.world.now();
        let is_lost = |since: Nanos| now.0.saturating_sub(since.0) < LOST.0;
        let is_of_use = !self.lost.is_some_and(is_lost) && self.at.of.0 > 0;
        is_of_use && matches!(self.pace.allowed(), Allowed::Rate(_)) && self.world.can_compare()
    }

    /// Ends md's check, where the foreground would wait for it, and continues with direct comparison. At `sync_max`
    /// the progress is known. Elsewhere md reports a position that it has surely passed, and the mismatches up to its
    /// real position: if it found any since the last stop, that part is checked again. A repair has rewritten it.
    pub(super) fn give_way(&mut self, now: Nanos) -> linux::Result<Option<Ending>> {
        if !self.is_to_compare() {
            return Ok(None);
        }
        let stands = self.at.done == self.window.at();
        if let Some(ending) = self.end_for_now(now)? {
            return Ok(Some(ending));
        }
        if self.began {
            return Ok(None);
        }
        if !stands {
            self.take_what_is_sure();
        }
        self.at.mismatches_seen = self.at.mismatches;
        self.at.live = self.at.done;
        if let Some(turned) = self.set(Throttle::Gentle)? {
            return Ok(Some(turned));
        }
        // Where md's next check begins is 0 before nothing tells any more that it was moved.
        let min = self.task.min.0.to_string();
        let ends = [
            (Tunable::Min, "0"),
            (Tunable::Max, "max"),
            (Tunable::Min, &min),
        ];
        for (tunable, text) in ends {
            if let Err(error) = self.retried(|world| world.turn(tunable, text)) {
                return self.is_in_the_way(now, error);
            }
        }
        (self.window_set, self.lost) = (false, None);
        self.pace.goes_in_steps(false);
        if self.direct.is_none() {
            let (unit, wide) = (self.window.unit(), self.task.wide);
            // Where it began is known, though it may be no place where md could stop.
            let from = self.window.stands_at(self.at.done);
            self.direct = Some(Direct::new(from, self.at.of, unit, wide));
        }
        Ok(None)
    }

    /// Takes what md did up to where it was ended, as far as that is known.
    fn take_what_is_sure(&mut self) {
        let repairs = self.task.action == Action::Repair;
        let found = self.at.mismatches_seen != self.at.mismatches;
        if let Some(reached) = self.reached().filter(|_| repairs || !found) {
            self.at.done = self.at.done.max(self.window.stands_at(reached));
            self.at.mismatches = self.at.mismatches_seen;
        }
    }

    /// Up to where a check surely was that has ended before its end (`curr_resync_completed`, drivers/md/md.c).
    fn reached(&mut self) -> Option<Sectors> {
        let shown = self.world.tunable(Tunable::Min)?;
        shown.trim().parse().ok().map(Sectors)
    }

    /// Does what md refuses for as long as it ends a check.
    pub(super) fn retried(
        &mut self,
        mut act: impl FnMut(&mut W) -> linux::Result<()>,
    ) -> linux::Result<()> {
        let until = self.world.now() + REAPED;
        loop {
            match act(self.world) {
                Err(error) if error.is_busy() && self.world.now() < until => self.world.rest(TICK),
                other => return other,
            }
        }
    }

    /// Ends md's check, to begin it again later; if md does not end it, it goes on as it was. Takes what it has
    /// counted until it had ended.
    fn end_for_now(&mut self, now: Nanos) -> linux::Result<Option<Ending>> {
        let until = now + TIMEOUT;
        loop {
            let look = self.world.look()?;
            if look.action == self.task.action {
                if self.world.now() >= until {
                    return Ok(None);
                }
                // Before its thread has begun, md takes no notice.
                self.world.act(Action::Idle)?;
                self.world.rest(TICK);
                continue;
            }
            if let Some(reached) = self.reached() {
                self.at.live = self.at.live.max(reached);
            }
            self.count(&look);
            if let Some(ending) = not_left_alone(&look) {
                return Ok(Some(ending));
            }
            if look.until == Until::End && self.window.is_last() {
                return Ok(Some(self.done()));
            }
            self.began = false;
            return Ok(None);
        }
    }

    /// Continues, directly or with md. `None` while md checks.
    pub(super) fn tick_direct(&mut self, now: Nanos) -> linux::Result<Option<Option<Ending>>> {
        let Some(direct) = self.direct.as_mut().filter(|_| !self.began) else {
            return Ok(None);
        };
        let before = direct.at;
        if let Some(step) = &direct.reads
            && let Some(compared) = self.world.compared(step)
            && let Some(gives) = direct.come(&compared)
        {
            self.pace.gives(gives);
        }
        if direct.suspected >= SUSPECTED {
            self.lost = Some(now);
        }
        let bytes = Sectors(direct.at.0 - before.0).bytes().0 as f64;
        self.at.live = direct.at;
        if direct.is_at_rest() {
            self.at.done = direct.at;
        }
        if self.is_to_look(now) {
            if let Some(ending) = self.look_direct(now)? {
                return Ok(Some(Some(ending)));
            }
            self.moved += bytes;
            let is_busy = self
                .direct
                .as_ref()
                .is_some_and(|direct| direct.reads.is_some());
            self.observe(now, is_busy);
            // Where md does not delay all foreground requests, it gets more of the queues with its many requests.
            if !self.task.holds_all && self.pace.falls_short() {
                self.lost = Some(now);
            }
        } else {
            self.moved += bytes;
        }
        let seconds = self.passed(now);
        self.go_on(now, seconds).map(Some)
    }

    /// Begins the next step, or md's check, or is done.
    fn go_on(&mut self, now: Nanos, seconds: f64) -> linux::Result<Option<Ending>> {
        let may = self.pace.allowed();
        let Some(direct) = &mut self.direct else {
            return Ok(None);
        };
        direct.pass(may, seconds);
        if direct.is_at_rest() && direct.at >= direct.of {
            return Ok(Some(self.done()));
        }
        if (may == Allowed::All || self.lost.is_some()) && direct.reads.is_none() {
            // What is suspected lies behind what is done.
            self.direct = None;
            return self.send(self.at.done, None);
        }
        if direct.is_whole()
            && direct.reads.is_none()
            && may != Allowed::Nothing
            && let Some(suspect) = direct.suspects.pop_front()
        {
            self.at.done = suspect.start;
            return self.send(suspect.start, Some(suspect.end));
        }
        if matches!(may, Allowed::Rate(_))
            && let Some(step) = direct.next()
        {
            let spacing = (!self.pace.is_driven()).then_some(direct.apart);
            match self.world.compare(&step, spacing) {
                true => direct.begin(step),
                // Nobody reads any more.
                false => self.lost = Some(now),
            }
        }
        Ok(None)
    }

    /// Lets md check from there on; up to `to`, if that is given, after which direct comparison continues.
    fn send(&mut self, from: Sectors, to: Option<Sectors>) -> linux::Result<Option<Ending>> {
        self.pace.goes_in_steps(true);
        let now = self.world.now();
        self.window = SyncWindow::new(from, self.task.chunk, self.task.wide, now)
            .that_holds_all(self.task.holds_all)
            .that_stops_at(to);
        self.window.ends_at(self.at.of);
        self.from = from;
        self.before = self.at.mismatches;
        self.at.live = from;
        if let Some(turned) = self.limits() {
            return Ok(Some(turned));
        }
        match self.begin() {
            Ok(()) => Ok(None),
            Err(error) => self.is_in_the_way(now, error),
        }
    }

    /// Meaning of md's refusal between two of its checks: other work has begun, which must not be delayed.
    fn is_in_the_way(&mut self, now: Nanos, error: linux::Error) -> linux::Result<Option<Ending>> {
        self.world.turn(Tunable::Max, "max")?;
        self.look_direct(now)?.map(Some).ok_or(error)
    }

    /// Looks for a reason to end while md does nothing.
    fn look_direct(&mut self, now: Nanos) -> linux::Result<Option<Ending>> {
        let look = self.world.look()?;
        if let Some(ending) = not_left_alone(&look) {
            return Ok(Some(ending));
        }
        if look.until != Until::End {
            return Ok(Some(Ending::Turned(Tunable::Max)));
        }
        self.hurry(now);
        self.look_seldom(now, false)
    }

    /// All is done.
    pub(super) fn done(&mut self) -> Ending {
        self.at.done = self.at.of;
        self.at.live = self.at.of;
        self.at.mismatches = self.at.mismatches_seen;
        Ending::Done
    }
}

/// End for an array that md works on though it should do nothing; `None` where it does nothing.
fn not_left_alone(look: &Look) -> Option<Ending> {
    match look.action {
        _ if look.degraded > 0 => Some(Ending::Degraded),
        Action::Idle => None,
        Action::Check | Action::Repair => Some(Ending::Begun),
        other => Some(Ending::Recovery(other)),
    }
}

#[cfg(test)]
mod tests;
