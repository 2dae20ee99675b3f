//! Drives md's check of one array: begins it at the last checkpoint, lets it run at the rate that the controller
//! allows, and ends it when there is a reason to.
//!
//! md checks up to `sync_max`, which is raised to continue. While there is a foreground it is raised by steps, each
//! when md has reached it. The size of a step follows from its duration, because the foreground waits meanwhile; but
//! each step costs writes of the superblock on all members (`linux::md::sync`), so it is no smaller than it must be.
//! `sync_max` cannot be lowered. To yield at once, wherever it is, both speed limits are set to the least: md then
//! sleeps after 128 KiB. The limits are no substitute for `sync_max`, because md sleeps for half a second each time;
//! where `sync_max` was set far ahead, on an array that was idle, they are the only means.
//!
//! Where the members can be compared directly, without md, this is done while there is a foreground (`give_way`),
//! without steps.
//!
//! The progress is known exactly only where md has reached `sync_max` and drained (in a direct comparison, at the end
//! of a unit). There the position and the mismatches are stored together, so that nothing is counted twice after a
//! kill.

mod direct;
#[cfg(test)]
mod foreground;
mod give_way;
#[cfg(test)]
mod model;
mod pending_work;
mod sync_window;
#[cfg(test)]
mod tests;

use std::ops::Range;

use job::StopCause;
use linux::md::sync::{Sectors, SpeedLimit, SyncMax, SyncState, Tunable};
use reader::ForegroundReport;
use record::Nanos;
use record::sample::SyncAction;
use study::pace::{Allowed, Controller, HeldBy, Targets};

use super::compare::ComparisonResult;
use super::foreground::ForegroundSample;
use direct::DirectComparison;
pub(super) use pending_work::{PendingWork, PendingWorkDetector, makes_whole};
pub(super) use sync_window::is_limit;
use sync_window::{SyncWindow, Throttle};

/// Interval at which md's position is polled while it is waited for.
const TICK: Nanos = Nanos(10_000_000);
/// Interval at which the whole state is polled.
const POLL: Nanos = Nanos(100_000_000);
/// The same while the check pauses, so that it pauses for no longer than it must.
const POLL_MEASURING: Nanos = Nanos(50_000_000);
/// Interval at which rare changes are polled: of the speed limits, which no other program should set, and
/// of what md waits to do.
const POLL_SELDOM: Nanos = Nanos(1_000_000_000);
/// A check that md has not let begin after so long waits for another one.
const START_TIMEOUT: Nanos = Nanos(5_000_000_000);
/// Time limit for md to reach `sync_max` when the scrub is to end.
const STOP_TIMEOUT: Nanos = Nanos(5_000_000_000);
/// Time limit for md to end a check.
const TIMEOUT: Nanos = Nanos(10_000_000_000);

/// The driver's view of the machine.
pub(crate) trait ArrayControl {
    /// Time since any moment.
    fn now(&mut self) -> Nanos;
    /// Lets time pass.
    fn rest(&mut self, span: Nanos);
    /// State of the array's work.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn sync_state(&mut self) -> linux::Result<SyncState>;
    /// Position of md at this moment.
    fn live(&mut self) -> Option<Sectors>;
    /// A tunable, as the kernel shows it.
    fn tunable(&mut self, tunable: Tunable) -> Option<String>;
    /// Turns a tunable.
    ///
    /// # Errors
    /// The kernel's error.
    fn turn(&mut self, tunable: Tunable, text: &str) -> linux::Result<()>;
    /// Begins or ends md's work.
    ///
    /// # Errors
    /// The kernel's error.
    fn write_sync_action(&mut self, action: SyncAction) -> linux::Result<()>;
    /// Work that md waits to do until the check has ended.
    fn waits(&mut self) -> Option<PendingWork>;
    /// True if the array exists.
    fn is_there(&mut self) -> bool;
    /// Foreground I/O since the last call; probes continue at least so many seconds apart, or stop.
    fn foreground_sample(&mut self, probing: Option<f64>) -> ForegroundSample;
    /// True if the members can be read and compared directly.
    fn can_compare(&mut self) -> bool;
    /// Begins to read and compare these positions of the check, in idle gaps of the members with so much time between
    /// two requests to one, or with `None` at full speed; true if it begins. At most one comparison is under way.
    fn compare(&mut self, step: &Range<Sectors>, spacing: Option<Nanos>) -> bool;
    /// Result of the comparison; `None` while it goes on.
    fn compared(&mut self, step: &Range<Sectors>) -> Option<ComparisonResult>;
    /// Number of requests in flight on the members.
    fn in_flight(&mut self) -> u64;
    /// Reason to stop early.
    fn stop_cause(&mut self) -> Option<StopCause>;
    /// Takes the progress.
    fn take_progress(&mut self, at: &ScrubProgress);
}

/// Work for the driver.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// [`SyncAction::Check`] or [`SyncAction::Repair`].
    pub action: SyncAction,
    /// Position at which to begin.
    pub from: Sectors,
    /// Mismatches that were found before that.
    pub mismatches: u64,
    /// Position at which md's next check that is not driven from here is to begin: `sync_min` as it was.
    pub min: Sectors,
    /// Length on one member before the next has its turn; 0 at RAID 1.
    pub chunk: Sectors,
    /// Number of members, or of pairs of them, over which md goes at once.
    pub wide: u64,
    /// True if all foreground requests wait while md checks, as at RAID 10.
    pub holds_all: bool,
    /// Latency targets; `None` for a multiple of what is measured.
    pub targets: Option<Targets>,
    /// Time by which it must be done, on the control's clock, if that counts more than the latency.
    pub deadline: Option<Nanos>,
}

/// Progress of a scrub: positions, mismatches, and latencies of the foreground.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ScrubProgress {
    /// Position of md.
    pub live: Sectors,
    /// Position of the end; zero until that is known.
    pub of: Sectors,
    /// Position up to which it is done, with all that was found before.
    pub done: Sectors,
    /// The sectors that differed, up to there.
    pub mismatches: u64,
    /// The same, as far as md is; some of it may lie behind `done`.
    pub mismatches_seen: u64,
    /// Mean latency of the foreground, in seconds.
    pub mean: Option<f64>,
    /// The latency that 1 of 100 exceeds, in seconds.
    pub p99: Option<f64>,
    /// Latency targets that are kept.
    pub targets: Option<Targets>,
    /// True if any other program uses the array.
    pub beside: bool,
    /// True if the foreground is measured, and the check waits.
    pub measuring: bool,
    /// Seconds above a target so far.
    pub above_s: f64,
    /// Reason for which the check is no faster beside a foreground.
    pub held: Option<HeldBy>,
}

/// Cause for which driving a check ended.
#[derive(Debug)]
pub(crate) enum ScrubEnd {
    /// The check is at its end.
    Done,
    /// The end was ordered.
    Ordered(StopCause),
    /// Another program ended it.
    Stopped,
    /// Another program began a check while md was to do nothing.
    Begun,
    /// The array is gone.
    Gone,
    /// A member failed.
    Degraded,
    /// md began other work, which was not delayed.
    Recovery(SyncAction),
    /// md waits to do this, which comes first.
    Waits(PendingWork),
    /// md does not let the check begin, since it works on an array that shares a disk with this one.
    Delayed,
    /// Another program changed this tunable.
    Turned(Tunable),
    /// The kernel refused something, or gave an unknown answer.
    Failed(linux::Error),
}

/// Result of a scrub.
#[derive(Debug)]
pub(crate) struct DriveResult {
    /// Cause of the end.
    pub ending: ScrubEnd,
    /// Progress at that time.
    pub at: ScrubProgress,
    /// Result of the foreground; `None` where there was none.
    pub foreground: Option<ForegroundReport>,
    /// True if md's check was begun here, and no other program has ended it: then it is to be ended here.
    pub is_own: bool,
    /// True if `sync_min` and `sync_max` are as they were set here.
    pub window_set: bool,
}

/// Drives a check until it ends. The tunables are then to be restored.
pub(crate) fn drive(control: &mut impl ArrayControl, task: &Task) -> DriveResult {
    let now = control.now();
    let mut pace = Controller::new(task.targets.unwrap_or_default());
    pace.set_stepped(true);
    let mut drive = Drive {
        pace,
        sampled: now,
        moved: 0.0,
        window: SyncWindow::new(task.from, task.chunk, task.wide, now)
            .with_barrier_if(task.holds_all),
        at: ScrubProgress {
            live: task.from,
            done: task.from,
            mismatches: task.mismatches,
            mismatches_seen: task.mismatches,
            targets: task.targets,
            ..ScrubProgress::default()
        },
        control,
        task,
        began: false,
        window_set: false,
        lost: None,
        from: task.from,
        before: task.mismatches,
        direct: None,
        throttle: None,
        polled: Nanos(0),
        polled_seldom: now,
        reported: Nanos(0),
        delayed: None,
        ticked: now,
    };
    let ending = match drive.begin() {
        Ok(()) => drive.run(),
        Err(error) => drive.ending_of_error(error),
    };
    drive.end(&ending);
    DriveResult {
        foreground: ForegroundReport::of(&drive.pace.outcome()),
        is_own: drive.began && !is_over(&ending),
        window_set: drive.window_set,
        ending,
        at: drive.at,
    }
}

/// True if there is no check any more, or none that was begun here.
fn is_over(ending: &ScrubEnd) -> bool {
    matches!(
        ending,
        ScrubEnd::Done
            | ScrubEnd::Stopped
            | ScrubEnd::Begun
            | ScrubEnd::Gone
            | ScrubEnd::Recovery(_)
    )
}

struct Drive<'a, W: ArrayControl> {
    control: &'a mut W,
    task: &'a Task,
    pace: Controller,
    /// Time of the controller's last sample, and the bytes done since.
    sampled: Nanos,
    moved: f64,
    window: SyncWindow,
    at: ScrubProgress,
    /// True if md was made to begin, and not to end.
    began: bool,
    /// True if `sync_min` and `sync_max` are set here.
    window_set: bool,
    /// Time since which direct comparison is of no use: the readers have stopped, or are too slow for a deadline, or
    /// much of the data is suspected.
    lost: Option<Nanos>,
    /// Start of the check that is under way, and mismatches found before it.
    from: Sectors,
    before: u64,
    /// Progress of the direct comparison, once it has begun; md may check a part meanwhile.
    direct: Option<DirectComparison>,
    throttle: Option<Throttle>,
    polled: Nanos,
    polled_seldom: Nanos,
    /// Time of the last report of the progress.
    reported: Nanos,
    /// Time since which md does not let the check begin.
    delayed: Option<Nanos>,
    ticked: Nanos,
}

impl<W: ArrayControl> Drive<'_, W> {
    /// Begins with `sync_max` at the start of the check: nothing moves yet.
    fn begin(&mut self) -> linux::Result<()> {
        self.set(Throttle::Gentle)?;
        let from = self.window.at().0.to_string();
        // `sync_max` is set before `sync_min`: a process that finds a finite `sync_max` after a kill knows that the
        // other tunables must be restored too. It may not be below the start of a check.
        let ends = [
            (Tunable::Min, "0"),
            (Tunable::Max, &from),
            (Tunable::Min, &from),
        ];
        for (tunable, text) in ends {
            self.retried(|control| control.turn(tunable, text))?;
            self.window_set = true;
        }
        let action = self.task.action;
        self.retried(|control| control.write_sync_action(action))?;
        self.began = true;
        Ok(())
    }

    fn run(&mut self) -> ScrubEnd {
        loop {
            if let Some(order) = self.control.stop_cause() {
                return self.let_reach_sync_max(order);
            }
            let now = self.control.now();
            let tick = self.rest(now);
            self.control.rest(tick);
            match self.tick() {
                Ok(None) => {}
                Ok(Some(ending)) => return ending,
                Err(error) => return self.ending_of_error(error),
            }
        }
    }

    /// Lets md reach `sync_max`, where the progress is known, unless that takes long, or md is held because of the
    /// foreground.
    fn let_reach_sync_max(&mut self, order: StopCause) -> ScrubEnd {
        if self.throttle == Some(Throttle::Shut) || !self.began {
            return ScrubEnd::Ordered(order);
        }
        let until = self.control.now() + STOP_TIMEOUT;
        while self.at.done < self.window.at() && self.control.now() < until {
            match self.poll(self.polled) {
                Ok(None) => self.control.rest(TICK),
                Ok(Some(ending)) => return ending,
                Err(error) => return self.ending_of_error(error),
            }
        }
        ScrubEnd::Ordered(order)
    }

    fn tick(&mut self) -> linux::Result<Option<ScrubEnd>> {
        let now = self.control.now();
        if let Some(ending) = self.tick_direct(now)? {
            return Ok(ending);
        }
        let before = self.at.live;
        if let Some(live) = self.control.live() {
            self.at.live = live.max(before);
        }
        // A part for which md is sent tells nothing: it is begun for it.
        if let Some(device_rate) = self.window.follow(self.at.live, now)
            && self.direct.is_none()
        {
            self.pace.set_device_rate(device_rate);
        }
        let moved = self.at.live.0.saturating_sub(before.0);
        let bytes = Sectors(moved).bytes().0 as f64;
        if self.is_to_poll(now) {
            if let Some(ending) = self.poll(now)? {
                return Ok(Some(ending));
            }
            self.moved += bytes;
            // What md has in flight shows as progress.
            self.observe(now, false);
            let kept = self.pace.targets();
            self.window.keep(kept.and_then(|(kept, _)| kept.slow_s()));
        } else {
            self.moved += bytes;
        }
        let passed = self.passed(now);
        if let Some(ending) = self.switch_to_direct(now)? {
            return Ok(Some(ending));
        }
        if !self.began {
            return Ok(None);
        }
        let may = self.pace.allowed();
        self.window.set_hurries(self.pace.is_driven());
        let throttle = self.window.throttle(may, self.at.live, bytes, passed);
        if let Some(turned) = self.set(throttle)? {
            return Ok(Some(turned));
        }
        if self.at.of.0 > 0 && self.window.is_wanted(may, self.at.live, now) {
            let in_flight = match may {
                Allowed::Rate(_) => self.control.in_flight(),
                Allowed::All | Allowed::Nothing => 0,
            };
            let stood = self.window.at();
            if let Some(to) = self.window.raise(may, self.at.live, in_flight, now)
                && let Err(error) = self.control.turn(Tunable::Max, &to.0.to_string())
            {
                return self.refused(stood, error).map(Some);
            }
        }
        Ok(None)
    }

    /// True if the whole state is to be polled now.
    fn is_to_poll(&mut self, now: Nanos) -> bool {
        let each = match self.pace.is_measuring() {
            true => POLL_MEASURING,
            false => POLL,
        };
        let is_due = now.0.saturating_sub(self.polled.0) >= each.0;
        if is_due {
            self.polled = now;
        }
        is_due
    }

    /// Takes what was measured of the foreground since the last time, beside background I/O that is under way or
    /// not.
    fn observe(&mut self, now: Nanos, is_busy: bool) {
        let probing = self.pace.probes();
        let seen = self.control.foreground_sample(self.pace.probe_gap_s());
        let before = std::mem::replace(&mut self.sampled, now);
        let seconds = Nanos(now.0.saturating_sub(before.0)).as_secs_f64();
        let bytes = std::mem::take(&mut self.moved);
        self.pace
            .take(&seen.sample(seconds, bytes, is_busy, probing));
        if now.0.saturating_sub(self.reported.0) >= POLL.0 {
            self.reported = now;
            self.report();
        }
    }

    /// The seconds since the last tick.
    fn passed(&mut self, now: Nanos) -> f64 {
        let before = std::mem::replace(&mut self.ticked, now);
        Nanos(now.0.saturating_sub(before.0)).as_secs_f64()
    }

    /// Reason why `sync_max` could not be raised: another program's change, or the kernel's error.
    fn refused(&mut self, stood: Sectors, error: linux::Error) -> linux::Result<ScrubEnd> {
        let state = self.control.sync_state()?;
        if state.action == self.task.action && state.degraded == 0 {
            return match state.until == SyncMax::At(stood) {
                true => Err(error),
                false => Ok(ScrubEnd::Turned(Tunable::Max)),
            };
        }
        let now = self.control.now();
        self.poll(now)?.ok_or(error)
    }

    /// Polls the whole state: for progress to keep, and for a reason to end.
    fn poll(&mut self, now: Nanos) -> linux::Result<Option<ScrubEnd>> {
        let state = self.control.sync_state()?;
        self.count(&state);
        match state.action {
            action if action == self.task.action => {}
            // md resets `sync_max` at the end.
            SyncAction::Idle if state.until == SyncMax::End && self.window.is_last() => {
                return Ok(Some(self.done()));
            }
            _ if state.degraded > 0 => return Ok(Some(ScrubEnd::Degraded)),
            SyncAction::Idle | SyncAction::Check | SyncAction::Repair => {
                return Ok(Some(ScrubEnd::Stopped));
            }
            other => return Ok(Some(ScrubEnd::Recovery(other))),
        }
        if state.degraded > 0 {
            return Ok(Some(ScrubEnd::Degraded));
        }
        // At the end md first resets `sync_max`, and is idle a moment later.
        let is_ending = state.until == SyncMax::End && self.window.is_last();
        if state.until != SyncMax::At(self.window.at()) && !is_ending {
            return Ok(Some(ScrubEnd::Turned(Tunable::Max)));
        }
        if let Some((done, of)) = state.completed {
            self.at.of = of;
            self.window.ends_at(of);
            if done == self.window.at() {
                self.at.done = done;
                self.at.mismatches = self.at.mismatches_seen;
                self.window.note_stop(now);
            }
        }
        self.apply_deadline(now);
        self.poll_seldom(now, state.delayed)
    }

    /// Takes what md's check has counted.
    fn count(&mut self, state: &SyncState) {
        // Until md has moved, its count may be that of the check before. One that is over was at its end.
        let moved = |done: Sectors| done > self.from;
        let is_over = state.action == SyncAction::Idle && state.until == SyncMax::End;
        if is_over || moved(self.at.live) || state.completed.is_some_and(|(done, _)| moved(done)) {
            self.at.mismatches_seen = self.before.saturating_add(state.mismatches);
        }
    }

    /// Polls what changes seldom.
    fn poll_seldom(&mut self, now: Nanos, delayed: bool) -> linux::Result<Option<ScrubEnd>> {
        if now.0.saturating_sub(self.polled_seldom.0) < POLL_SELDOM.0 {
            return Ok(None);
        }
        self.polled_seldom = now;
        if let Some(waits) = self.control.waits() {
            return Ok(Some(ScrubEnd::Waits(waits)));
        }
        if !delayed {
            self.delayed = None;
        } else if now.0.saturating_sub(self.delayed.get_or_insert(now).0) >= START_TIMEOUT.0 {
            return Ok(Some(ScrubEnd::Delayed));
        }
        Ok(self.limits())
    }

    /// Sets the least rate that the deadline needs, where the deadline counts more than the latency.
    fn apply_deadline(&mut self, now: Nanos) {
        let Some(deadline) = self.task.deadline else {
            return;
        };
        let left = Sectors(self.at.of.0.saturating_sub(self.at.live.0)).bytes();
        // What is late already goes as fast as it can.
        let seconds = Nanos(deadline.0.saturating_sub(now.0))
            .as_secs_f64()
            .max(0.001);
        self.pace.at_least(left.0 as f64 / seconds);
    }

    /// End where another program has changed a speed limit.
    fn limits(&mut self) -> Option<ScrubEnd> {
        let limits = self.throttle?.limits();
        let turned = limits.into_iter().find(|(tunable, kib)| {
            let shown = self
                .control
                .tunable(*tunable)
                .and_then(|text| SpeedLimit::parse(&text));
            shown
                != Some(SpeedLimit {
                    kib: *kib,
                    local: true,
                })
        });
        turned.map(|(tunable, _)| ScrubEnd::Turned(tunable))
    }

    /// Sets the limits, unless another program has written to one of them since they were set last.
    fn set(&mut self, throttle: Throttle) -> linux::Result<Option<ScrubEnd>> {
        if self.throttle == Some(throttle) {
            return Ok(None);
        }
        if let Some(turned) = self.limits() {
            return Ok(Some(turned));
        }
        for (tunable, kib) in throttle.limits() {
            self.control.turn(tunable, &kib.to_string())?;
        }
        self.throttle = Some(throttle);
        Ok(None)
    }

    fn report(&mut self) {
        self.at.mean = self.pace.mean_s();
        self.at.p99 = self.pace.p99_s();
        self.at.targets = self
            .pace
            .targets()
            .map_or(self.task.targets, |kept| Some(kept.0));
        self.at.beside = self.pace.probes();
        self.at.measuring = self.pace.is_measuring();
        self.at.above_s = self.pace.above_s();
        self.at.held = self.pace.holds_back();
        self.control.take_progress(&self.at);
    }

    /// Meaning of an error: of an array that is gone nothing can be read.
    fn ending_of_error(&mut self, error: linux::Error) -> ScrubEnd {
        if self.control.is_there() {
            ScrubEnd::Failed(error)
        } else {
            ScrubEnd::Gone
        }
    }

    /// Ends md's work, if it is still the one that was begun here.
    fn end(&mut self, ending: &ScrubEnd) {
        if is_over(ending) || !self.began {
            return;
        }
        let ours = self.task.action;
        let is_ours =
            |state: &linux::Result<SyncState>| matches!(state, Ok(state) if state.action == ours);
        if !is_ours(&self.control.sync_state()) {
            return;
        }
        let until = self.control.now() + TIMEOUT;
        while is_ours(&self.control.sync_state()) && self.control.now() < until {
            // What stands in its way is found when the tunables are put back. Before its thread has begun, md takes
            // no notice.
            let _ = self.control.write_sync_action(SyncAction::Idle);
            self.control.rest(TICK);
        }
    }
}
