//! Drives md's check of one array: begins it at the last checkpoint, lets it run at the rate that the controller
//! allows, and ends it when there is a reason to.
//!
//! md checks up to `sync_max`, which is raised to continue. While there is a foreground it is raised in steps, each
//! when md has reached it. The foreground waits during a step, so its size follows from its duration; but each step
//! costs writes of the superblock on all members (`linux::md::sync`), so it is no smaller than necessary. `sync_max`
//! cannot be lowered. To stop md at once, wherever `sync_max` is, both speed limits are set to the minimum: md then
//! sleeps after 128 KiB. The limits do not replace `sync_max`, because md sleeps for half a second each time; where
//! `sync_max` was set far ahead, on an array that was idle, they are the only means.
//!
//! Where the members can be compared directly, without md, this is done while there is a foreground (`give_way`),
//! without such steps.
//!
//! The progress is known exactly only where md has reached `sync_max` and drained (in a direct comparison, at the end
//! of a unit). There the position and the mismatches are stored together, so that no mismatch is counted twice after a
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
/// Interval at which the whole state is polled while the check pauses to measure the foreground alone, so that the
/// pause is no longer than necessary.
const POLL_MEASURING: Nanos = Nanos(50_000_000);
/// Interval at which rare changes are polled: of the speed limits, which no other program should set, and of the work
/// that md waits to do.
const POLL_SELDOM: Nanos = Nanos(1_000_000_000);
/// Time after which a check that md does not begin counts as delayed by the work on another array.
const START_TIMEOUT: Nanos = Nanos(5_000_000_000);
/// Time limit for md to reach `sync_max` when the scrub is to end.
const STOP_TIMEOUT: Nanos = Nanos(5_000_000_000);
/// Time limit for md to end a check.
const TIMEOUT: Nanos = Nanos(10_000_000_000);

/// The driver's view of the machine.
pub(crate) trait ArrayControl {
    /// Current time of a monotonic clock.
    fn now(&mut self) -> Nanos;
    /// Waits for this duration.
    fn rest(&mut self, span: Nanos);
    /// State of md's check or other work on the array.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn sync_state(&mut self) -> linux::Result<SyncState>;
    /// Current position of md.
    fn live(&mut self) -> Option<Sectors>;
    /// A tunable, as the kernel shows it.
    fn tunable(&mut self, tunable: Tunable) -> Option<String>;
    /// Sets a tunable.
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
    /// Foreground I/O since the last call. Probes continue, at least `probing` seconds apart; with `None` they stop.
    fn foreground_sample(&mut self, probing: Option<f64>) -> ForegroundSample;
    /// True if the members can be read and compared directly.
    fn can_compare(&mut self) -> bool;
    /// Begins to read and compare these positions of the check; true if it begins. `spacing` is the minimum time
    /// between two requests to a member, which are made in idle gaps; `None` for full speed. At most one comparison
    /// runs at a time.
    fn compare(&mut self, step: &Range<Sectors>, spacing: Option<Nanos>) -> bool;
    /// Result of the comparison; `None` while it runs.
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
    /// Number of mismatches that were found before that position.
    pub mismatches: u64,
    /// Former `sync_min`, at which the next check of another program is to begin.
    pub min: Sectors,
    /// Chunk size; 0 for RAID 1.
    pub chunk: Sectors,
    /// Number of members, or of pairs of members, that md reads at once.
    pub wide: u64,
    /// True if all foreground requests wait while md checks, as with RAID 10.
    pub holds_all: bool,
    /// Latency targets; `None` for targets that follow from the foreground's latency alone.
    pub targets: Option<Targets>,
    /// Deadline on the control's clock, if it has priority over the latency targets.
    pub deadline: Option<Nanos>,
}

/// Progress of a scrub: positions, mismatches, and latencies of the foreground.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ScrubProgress {
    /// Position of md.
    pub live: Sectors,
    /// Position of the end; zero until it is known.
    pub of: Sectors,
    /// Position up to which the array is checked and all mismatches are counted.
    pub done: Sectors,
    /// Number of sectors that differed, up to `done`.
    pub mismatches: u64,
    /// Number of sectors that differed, up to `live`, including some beyond `done`.
    pub mismatches_seen: u64,
    /// Mean latency of the foreground, in seconds.
    pub mean: Option<f64>,
    /// 99th percentile of the latency of the foreground, in seconds.
    pub p99: Option<f64>,
    /// Latency targets that are kept.
    pub targets: Option<Targets>,
    /// True if another program uses the array.
    pub beside: bool,
    /// True if the check pauses while the foreground is measured alone.
    pub measuring: bool,
    /// Time for which latency exceeded a target so far, in seconds.
    pub above_s: f64,
    /// Limit of the check's rate beside a foreground.
    pub held: Option<HeldBy>,
}

/// Cause of the end of a driven check.
#[derive(Debug)]
pub(crate) enum ScrubEnd {
    /// The check is complete.
    Done,
    /// The scrub was told to stop.
    Ordered(StopCause),
    /// Another program ended the check.
    Stopped,
    /// Another program began a check while md was to do nothing.
    Begun,
    /// The array is gone.
    Gone,
    /// A member failed.
    Degraded,
    /// md began other work, which the check does not delay.
    Recovery(SyncAction),
    /// md waits to do this work, which has priority.
    Waits(PendingWork),
    /// md does not let the check begin, since it works on an array that shares a disk with this one.
    Delayed,
    /// Another program changed this tunable.
    Turned(Tunable),
    /// The kernel refused something, or gave an unknown answer.
    Failed(linux::Error),
}

/// Result of driving a check.
#[derive(Debug)]
pub(crate) struct DriveResult {
    /// Cause of the end.
    pub ending: ScrubEnd,
    /// Progress at that time.
    pub at: ScrubProgress,
    /// Foreground latency and targets; `None` where there was no foreground.
    pub foreground: Option<ForegroundReport>,
    /// True if this process began md's check, and no other program has ended it: then this process has to end it.
    pub is_own: bool,
    /// True if `sync_min` and `sync_max` have the values that this process set.
    pub window_set: bool,
}

/// Drives a check until it ends. The caller restores the tunables.
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

/// True if no check runs any more, or only one that this process did not begin.
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
    /// Time of the controller's last sample.
    sampled: Nanos,
    /// Bytes checked since the last sample.
    moved: f64,
    window: SyncWindow,
    at: ScrubProgress,
    /// True if this process has begun md's check, and has not ended it.
    began: bool,
    /// True if this process has set `sync_min` and `sync_max`.
    window_set: bool,
    /// Time at which direct comparison was given up: the readers have stopped, or are too slow for a deadline, or much
    /// of the data is suspected.
    lost: Option<Nanos>,
    /// Start position of the running check.
    from: Sectors,
    /// Number of mismatches found before that position.
    before: u64,
    /// Progress of the direct comparison, once it has begun; md may check suspected chunks meanwhile.
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
    /// Prepares the check, with `sync_max` at its start position, so that md does not proceed yet.
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

    /// Waits until md reaches `sync_max`, where the progress is known, for at most [`STOP_TIMEOUT`]; does not wait
    /// where md is stopped because of the foreground.
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
        // The rate of a part that md checks for the direct comparison is not used: it includes the start of the check.
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
            // md's requests in flight are visible as progress.
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

    /// True if the whole state is due to be polled.
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

    /// Passes the measurements of the foreground since the last call to the controller. `is_busy` is true if
    /// background I/O was in progress meanwhile.
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

    /// Time since the last tick, in seconds.
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

    /// Polls the whole state: updates the progress, and returns a reason to end, if there is one.
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

    /// Takes the mismatches that md's check has counted.
    fn count(&mut self, state: &SyncState) {
        // Until md has moved, its count may be that of the previous check. A check that is over has counted to its end.
        let moved = |done: Sectors| done > self.from;
        let is_over = state.action == SyncAction::Idle && state.until == SyncMax::End;
        if is_over || moved(self.at.live) || state.completed.is_some_and(|(done, _)| moved(done)) {
            self.at.mismatches_seen = self.before.saturating_add(state.mismatches);
        }
    }

    /// Polls rare changes, at [`POLL_SELDOM`]; returns a reason to end, if there is one.
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

    /// Sets the minimum rate that the deadline needs, where the deadline has priority over the latency targets.
    fn apply_deadline(&mut self, now: Nanos) {
        let Some(deadline) = self.task.deadline else {
            return;
        };
        let left = Sectors(self.at.of.0.saturating_sub(self.at.live.0)).bytes();
        // A check that is already late runs at full speed.
        let seconds = Nanos(deadline.0.saturating_sub(now.0))
            .as_secs_f64()
            .max(0.001);
        self.pace.at_least(left.0 as f64 / seconds);
    }

    /// The end, where another program has changed a speed limit; otherwise `None`.
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

    /// Sets the speed limits; returns the end, if another program has changed one of them since they were last set.
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

    /// The end after an error: [`ScrubEnd::Gone`] where the array no longer exists.
    fn ending_of_error(&mut self, error: linux::Error) -> ScrubEnd {
        if self.control.is_there() {
            ScrubEnd::Failed(error)
        } else {
            ScrubEnd::Gone
        }
    }

    /// Ends md's check, if it is still the one that this process began.
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
            // An error here shows again when the tunables are restored. md ignores the request until its thread has
            // begun.
            let _ = self.control.write_sync_action(SyncAction::Idle);
            self.control.rest(TICK);
        }
    }
}
