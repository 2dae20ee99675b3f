//! Direct comparison while there is a foreground: this process reads and compares the members, and md checks only
//! suspected chunks. Without a foreground md checks everything.
//!
//! md's check makes many small requests, each of which waits in the queues of the members. RAID 10 is worse: each
//! request waits until all foreground requests have completed, and none begins meanwhile (`raise_barrier`,
//! drivers/md/raid10.c), so that members which are busy for half of the time do little useful work. Large direct reads
//! are few, and wait in the queues of the disks like any other read.
//!
//! While members are read directly, md is idle and `sync_max` is `max`, so that any other work of md can begin. The
//! progress is known at the end of each unit, where md can take over.

use linux::md::sync::{Sectors, SyncMax, SyncState, Tunable};
use record::Nanos;
use record::sample::SyncAction;
use study::pace::Allowed;

use super::direct::DirectComparison;
use super::{ArrayControl, Drive, ScrubEnd, SyncWindow, TICK, TIMEOUT, Throttle};

/// Number of consecutive mostly suspected steps after which md checks instead: it is faster where much differs.
const MAX_SUSPECT_STEPS: u32 = 4;
/// Time until direct comparison is tried again after it was given up.
const DIRECT_RETRY_DELAY: Nanos = Nanos(600_000_000_000);
/// Longest time after the end of a check for which md refuses an action (EBUSY), though it reports `idle`
/// (`md_check_recovery`, drivers/md/md.c).
const BUSY_TIMEOUT: Nanos = Nanos(1_000_000_000);

impl<W: ArrayControl> Drive<'_, W> {
    /// Time until the next action of the driver.
    pub(super) fn rest(&self, now: Nanos) -> Nanos {
        match &self.direct {
            Some(direct) if !self.began => direct.rest(),
            _ => self.window.rest(self.pace.allowed(), self.at.live, now),
        }
    }

    /// True if direct comparison is to replace md's check now.
    fn is_to_compare(&mut self) -> bool {
        if self.direct.is_some() {
            // md has checked the suspected chunk for which it was started.
            return self.window.has_stopped(self.at.done);
        }
        let now = self.control.now();
        let is_lost = |since: Nanos| now.0.saturating_sub(since.0) < DIRECT_RETRY_DELAY.0;
        let is_of_use = !self.lost.is_some_and(is_lost) && self.at.of.0 > 0;
        is_of_use && matches!(self.pace.allowed(), Allowed::Rate(_)) && self.control.can_compare()
    }

    /// Ends md's check, where the foreground would wait for it, and continues with direct comparison. At `sync_max`
    /// the progress is known. Elsewhere md reports a position that it has certainly passed, and the mismatches up to
    /// its real position: if it found any since the last stop, that part is checked again. (A repair has rewritten
    /// them.)
    pub(super) fn switch_to_direct(&mut self, now: Nanos) -> linux::Result<Option<ScrubEnd>> {
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
            self.take_certain_progress();
        }
        self.at.mismatches_seen = self.at.mismatches;
        self.at.live = self.at.done;
        if let Some(turned) = self.set(Throttle::Gentle)? {
            return Ok(Some(turned));
        }
        // `sync_min` is reset before `sync_max`, whose finite value shows that the tunables were changed.
        let min = self.task.min.0.to_string();
        let ends = [
            (Tunable::Min, "0"),
            (Tunable::Max, "max"),
            (Tunable::Min, &min),
        ];
        for (tunable, text) in ends {
            if let Err(error) = self.retried(|control| control.turn(tunable, text)) {
                return self.ending_of_refusal(now, error);
            }
        }
        (self.window_set, self.lost) = (false, None);
        self.pace.set_stepped(false);
        if self.direct.is_none() {
            let (unit, wide) = (self.window.unit(), self.task.wide);
            // The start position is known, even if md could not stop there.
            let from = self.window.last_stop(self.at.done);
            self.direct = Some(DirectComparison::new(from, self.at.of, unit, wide));
        }
        Ok(None)
    }

    /// Takes md's progress up to its end, as far as it is certain.
    fn take_certain_progress(&mut self) {
        let repairs = self.task.action == SyncAction::Repair;
        let found = self.at.mismatches_seen != self.at.mismatches;
        if let Some(reached) = self.reached().filter(|_| repairs || !found) {
            self.at.done = self.at.done.max(self.window.last_stop(reached));
            self.at.mismatches = self.at.mismatches_seen;
        }
    }

    /// Position that an interrupted check has certainly reached (`curr_resync_completed`, drivers/md/md.c).
    fn reached(&mut self) -> Option<Sectors> {
        let shown = self.control.tunable(Tunable::Min)?;
        shown.trim().parse().ok().map(Sectors)
    }

    /// Repeats an action that md refuses while it ends a check, for at most [`BUSY_TIMEOUT`].
    pub(super) fn retried(
        &mut self,
        mut act: impl FnMut(&mut W) -> linux::Result<()>,
    ) -> linux::Result<()> {
        let until = self.control.now() + BUSY_TIMEOUT;
        loop {
            match act(self.control) {
                Err(error) if error.is_busy() && self.control.now() < until => {
                    self.control.rest(TICK)
                }
                other => return other,
            }
        }
    }

    /// Ends md's check for the time being, and takes the mismatches that it has counted. If md does not end it, the
    /// check continues. Returns a reason to end the scrub, if there is one.
    fn end_for_now(&mut self, now: Nanos) -> linux::Result<Option<ScrubEnd>> {
        let until = now + TIMEOUT;
        loop {
            let state = self.control.sync_state()?;
            if state.action == self.task.action {
                if self.control.now() >= until {
                    return Ok(None);
                }
                // md ignores the request until its thread has begun.
                self.control.write_sync_action(SyncAction::Idle)?;
                self.control.rest(TICK);
                continue;
            }
            if let Some(reached) = self.reached() {
                self.at.live = self.at.live.max(reached);
            }
            self.count(&state);
            if let Some(ending) = ending_of_state(&state) {
                return Ok(Some(ending));
            }
            if state.until == SyncMax::End && self.window.is_last() {
                return Ok(Some(self.done()));
            }
            self.began = false;
            return Ok(None);
        }
    }

    /// Continues the direct comparison, or has md check suspected chunks. `None` while md checks.
    pub(super) fn tick_direct(&mut self, now: Nanos) -> linux::Result<Option<Option<ScrubEnd>>> {
        let Some(direct) = self.direct.as_mut().filter(|_| !self.began) else {
            return Ok(None);
        };
        let before = direct.at;
        if let Some(step) = &direct.reads
            && let Some(compared) = self.control.compared(step)
            && let Some(device_rate) = direct.complete_step(&compared)
        {
            self.pace.set_device_rate(device_rate);
        }
        if direct.suspected >= MAX_SUSPECT_STEPS {
            self.lost = Some(now);
        }
        let bytes = Sectors(direct.at.0 - before.0).bytes().0 as f64;
        self.at.live = direct.at;
        if direct.is_at_rest() {
            self.at.done = direct.at;
        }
        if self.is_to_poll(now) {
            if let Some(ending) = self.poll_direct(now)? {
                return Ok(Some(Some(ending)));
            }
            self.moved += bytes;
            let is_busy = self
                .direct
                .as_ref()
                .is_some_and(|direct| direct.reads.is_some());
            self.observe(now, is_busy);
            // Where md does not delay all foreground requests, its many requests get a larger share of the queues.
            if !self.task.holds_all && self.pace.falls_short() {
                self.lost = Some(now);
            }
        } else {
            self.moved += bytes;
        }
        let seconds = self.passed(now);
        self.begin_next(now, seconds).map(Some)
    }

    /// Begins the next step or md's check, or ends the scrub where everything is checked.
    fn begin_next(&mut self, now: Nanos, seconds: f64) -> linux::Result<Option<ScrubEnd>> {
        let may = self.pace.allowed();
        let Some(direct) = &mut self.direct else {
            return Ok(None);
        };
        direct.pass(may, seconds);
        if direct.is_at_rest() && direct.at >= direct.of {
            return Ok(Some(self.done()));
        }
        if (may == Allowed::All || self.lost.is_some()) && direct.reads.is_none() {
            // The suspected ranges lie beyond `done`.
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
            match self.control.compare(&step, spacing) {
                true => direct.begin(step),
                // The readers have stopped.
                false => self.lost = Some(now),
            }
        }
        Ok(None)
    }

    /// Starts md's check at `from`; with `to`, up to there, after which direct comparison continues.
    fn send(&mut self, from: Sectors, to: Option<Sectors>) -> linux::Result<Option<ScrubEnd>> {
        self.pace.set_stepped(true);
        let now = self.control.now();
        self.window = SyncWindow::new(from, self.task.chunk, self.task.wide, now)
            .with_barrier_if(self.task.holds_all)
            .with_end(to);
        self.window.ends_at(self.at.of);
        self.from = from;
        self.before = self.at.mismatches;
        self.at.live = from;
        if let Some(turned) = self.limits() {
            return Ok(Some(turned));
        }
        match self.begin() {
            Ok(()) => Ok(None),
            Err(error) => self.ending_of_refusal(now, error),
        }
    }

    /// The end after md refused an action between two of its checks, where it has begun other work, which must not be
    /// delayed; otherwise the error.
    fn ending_of_refusal(
        &mut self,
        now: Nanos,
        error: linux::Error,
    ) -> linux::Result<Option<ScrubEnd>> {
        self.control.turn(Tunable::Max, "max")?;
        self.poll_direct(now)?.map(Some).ok_or(error)
    }

    /// Polls for a reason to end while md does nothing.
    fn poll_direct(&mut self, now: Nanos) -> linux::Result<Option<ScrubEnd>> {
        let state = self.control.sync_state()?;
        if let Some(ending) = ending_of_state(&state) {
            return Ok(Some(ending));
        }
        if state.until != SyncMax::End {
            return Ok(Some(ScrubEnd::Turned(Tunable::Max)));
        }
        self.apply_deadline(now);
        self.poll_seldom(now, false)
    }

    /// Ends the scrub, with everything checked.
    pub(super) fn done(&mut self) -> ScrubEnd {
        self.at.done = self.at.of;
        self.at.live = self.at.of;
        self.at.mismatches = self.at.mismatches_seen;
        ScrubEnd::Done
    }
}

/// The end where md works on an array on which it should be idle; `None` where it is idle.
fn ending_of_state(state: &SyncState) -> Option<ScrubEnd> {
    match state.action {
        _ if state.degraded > 0 => Some(ScrubEnd::Degraded),
        SyncAction::Idle => None,
        SyncAction::Check | SyncAction::Repair => Some(ScrubEnd::Begun),
        other => Some(ScrubEnd::Recovery(other)),
    }
}

#[cfg(test)]
mod tests;
