//! The scrub of one array, from its start to its result.

use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use job::{CheckpointWriter, EndState, ProgressLine, ProgressLines, Stop, StopCause};
use linux::Root;
use linux::block::DeviceNumber;
use linux::md::health::Health;
use linux::md::sync::{Sectors, Sync, Tunable};
use record::Bytes;
use record::sample::SyncAction;

use super::checkpoint::Checkpoint;
use super::deadline::Deadline;
use super::drive::{DriveResult, ScrubEnd, ScrubProgress, Task, drive};
use super::guard::{self, Guard};
use super::health;
use super::host::HostArray;
use super::live_progress::StatusFile;
use super::locate::Located;
use super::mismatch_ranges::MismatchRanges;
use super::progress;
use super::repair::{RepairMethod, Repaired};
use super::saved_tunables::{DEPTH, RestoreResult, RestoredBy, STRIPE_CACHE_SIZE, SavedTunables};
use super::start::StartedScrub;
use super::start_times::DueTime;
use super::target::Target;
use reader::ForegroundReport;
use study::pace::Targets;
use ui::exit::sentence;
use ui::format::short_latency;

/// Bytes of each member in a stripe.
const PAGE: u64 = 4096;
/// Interval at which the members' read errors are examined: md keeps counting, and nothing gets lost.
const ERRORS_EVERY: Duration = Duration::from_secs(10);

/// Time within which an array is gone that mdadm has frozen to stop it, and interval at which it is searched for.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// See [`STOP_TIMEOUT`].
const STOP_POLL: Duration = Duration::from_millis(50);

/// State that all arrays and disks of a command share.
pub(crate) struct Shared<'a> {
    pub root: &'a Root,
    /// Devices that the ledger lies on.
    pub below_ledger: Vec<DeviceNumber>,
    /// Reasons to end before the end.
    pub stop: Stop<'a>,
    pub lines: &'a ProgressLines,
    /// Latency targets; `None` for a multiple of what is measured.
    pub targets: Option<Targets>,
    /// Deadline, where one is given.
    pub due: Option<DueTime>,
    /// True if the deadline counts more than the latency.
    pub deadline_wins: bool,
}

/// Result of the scrub of one array.
pub(crate) struct ScrubResult {
    pub target: Target,
    pub checkpoint: Checkpoint,
    pub ending: ScrubEnd,
    /// Progress at the end.
    pub at: ScrubProgress,
    /// Result of the foreground; `None` where there was none.
    pub foreground: Option<ForegroundReport>,
    /// Duration of this start, in seconds.
    pub seconds: f64,
    /// Bytes that this start went through, as md counts positions.
    pub moved: u64,
    /// True if the ledger has the state.
    pub is_kept: bool,
    /// Notes, in sentences.
    pub notes: Vec<String>,
    /// Settings that could not be restored, in sentences.
    pub left: Vec<String>,
    /// Health of its members.
    pub members: Vec<Health>,
    /// Places of its mismatches, or why they are not known; `None` where they were not requested.
    pub located: Option<Result<Located, String>>,
    /// Method of repair, where that was requested.
    pub repair_method: Option<RepairMethod>,
    /// Result of its repair from the other members, or why there was none.
    pub repaired: Option<Result<Repaired, String>>,
}

impl ScrubResult {
    /// Result for an array whose scrub was done before.
    pub(crate) fn known(target: Target, checkpoint: Checkpoint) -> ScrubResult {
        ScrubResult {
            members: target.sync.health(),
            target,
            checkpoint,
            ending: ScrubEnd::Done,
            at: ScrubProgress::default(),
            foreground: None,
            seconds: 0.0,
            moved: 0,
            is_kept: true,
            notes: Vec::new(),
            left: Vec::new(),
            located: None,
            repair_method: None,
            repaired: None,
        }
    }

    /// True if all agrees, and could be read.
    pub(crate) fn is_clean(&self) -> bool {
        self.checkpoint.mismatches == 0 && health::are_sound(&self.checkpoint.errors, &self.members)
    }
}

/// Scrubs one array. `old` are its tunables before.
pub(crate) fn scrub(
    target: Target,
    started: StartedScrub,
    old: &SavedTunables,
    shared: &Shared<'_>,
) -> ScrubResult {
    let StartedScrub {
        checkpoint,
        writer,
        mut notes,
        ..
    } = started;
    guard::note_turned(&target.uuid);
    let guard = Guard::start(target.device.number, &target.uuid, old)
        .map_err(|error| {
            notes.push(format!(
                "No guard could be started, so that after a kill -9 only the next 'disksmith scrub' puts \
                 the tunables back: {error}."
            ));
        })
        .ok();
    let began = Instant::now();
    let stripes = target.sync.tunable(Tunable::StripeCache);
    let stripes = stripes.and_then(|text| text.parse().ok()).unwrap_or(0);
    // The cache may grow while it is short of stripes.
    let cache = Bytes(STRIPE_CACHE_SIZE.max(stripes).saturating_mul(2 * PAGE));
    let mut tracker = Tracker {
        ranges: MismatchRanges::new(
            checkpoint.done,
            checkpoint.mismatches,
            checkpoint.places.clone(),
            cache,
        ),
        ran_before_s: checkpoint.ran_s,
        deadline: Deadline::new(
            target.path(),
            shared.due.clone(),
            shared.deadline_wins,
            Sectors(checkpoint.done).bytes().0,
        ),
        checkpoint,
        writer,
        line: shared.lines.line(&target.path()),
        sync: target.sync.clone(),
        errors_read: None,
        began,
        status: StatusFile::of(&target.uuid),
        path: target.path(),
        holds_ledger: shared.below_ledger.contains(&target.device.number),
        requested: shared.targets,
        reported_own: false,
    };
    let task = Task {
        action: if tracker.checkpoint.repairs {
            SyncAction::Repair
        } else {
            SyncAction::Check
        },
        from: Sectors(tracker.checkpoint.done),
        mismatches: tracker.checkpoint.mismatches,
        min: old.min(),
        chunk: target.chunk(),
        wide: target.parallel_members(),
        holds_all: target.holds_all(),
        targets: shared.targets,
        deadline: shared
            .due
            .as_ref()
            .filter(|_| shared.deadline_wins)
            .map(DueTime::left),
    };
    let (
        DriveResult {
            ending,
            at,
            foreground,
            ..
        },
        back,
    ) = {
        let mut stands = |at: &ScrubProgress| tracker.take_progress(at);
        let mut control = HostArray::new(&target, shared.root, shared.stop, &mut stands);
        prepare(&target);
        let ended = drive(&mut control, &task);
        let by = RestoredBy::Scrub {
            but_for: match ended.ending {
                ScrubEnd::Turned(tunable) => Some(tunable),
                _ => None,
            },
            ends: ended.is_own,
            window_set: ended.window_set,
        };
        // The control goes after this: it waits for a probe that is on its way, and of an array that
        // hangs that one comes late, just when md has something to recover.
        let back = old.put_back(&target.sync, by);
        (ended, back)
    };
    // To stop an array md first ends what it does with it.
    let (ending, back) = match ending {
        ScrubEnd::Stopped if !target.sync.is_there() => (ScrubEnd::Gone, back),
        ScrubEnd::Recovery(SyncAction::Frozen) if is_gone_soon(&target.sync) => {
            (ScrubEnd::Gone, RestoreResult::default())
        }
        other => (other, back),
    };
    if back.is_all() {
        guard::note_restored(&target.uuid);
    }
    if let Some(guard) = guard {
        guard.dismiss(&back);
    }
    let moved = Sectors(at.live.0.saturating_sub(task.from.0)).bytes().0;
    let seconds = began.elapsed().as_secs_f64();
    let left = back.left();
    let (checkpoint, is_kept) = tracker.end(&at, &ending, back, &mut notes);
    ScrubResult {
        members: target.sync.health(),
        target,
        checkpoint,
        ending,
        at,
        foreground,
        seconds,
        moved,
        is_kept,
        notes,
        left,
        located: None,
        repair_method: None,
        repaired: None,
    }
}

/// True if an array that was frozen is gone soon after: mdadm freezes it before it stops it.
fn is_gone_soon(sync: &Sync) -> bool {
    let began = Instant::now();
    while sync.is_there() && began.elapsed() < STOP_TIMEOUT {
        sleep(STOP_POLL);
    }
    !sync.is_there()
}

/// Gives a level with parity room for more stripes at once, if it has little; and has md let go as little
/// at once beside a foreground as it did before Linux 6.16.
fn prepare(target: &Target) {
    let shown = target.sync.tunable(Tunable::StripeCache);
    let stripes = shown.and_then(|text| text.parse::<u64>().ok());
    if stripes.is_some_and(|stripes| stripes < STRIPE_CACHE_SIZE) {
        let turn = |stripes: u64| target.sync.turn(Tunable::StripeCache, &stripes.to_string());
        if let (Err(_), Some(stripes)) = (turn(STRIPE_CACHE_SIZE), stripes) {
            // There was memory for some, which would not be known for its own. Without it the check is a
            // little slower, and there is nothing to say.
            let _ = turn(stripes);
        }
    }
    if target.sync.tunable(Tunable::IoDepth).is_some() {
        // Without it each step delays the foreground more, which the controller takes into account.
        let _ = target.sync.turn(Tunable::IoDepth, &DEPTH.to_string());
    }
}

/// Writes and shows the state of a scrub.
struct Tracker {
    ranges: MismatchRanges,
    checkpoint: Checkpoint,
    writer: CheckpointWriter<Checkpoint>,
    line: ProgressLine,
    sync: Sync,
    errors_read: Option<Instant>,
    began: Instant,
    ran_before_s: f64,
    deadline: Deadline,
    /// Progress for `--status` of another process.
    status: StatusFile,
    path: String,
    /// True if the ledger lies on the array.
    holds_ledger: bool,
    /// Latency targets of the user, and whether it was reported that the foreground exceeds them by itself.
    requested: Option<Targets>,
    reported_own: bool,
}

impl Tracker {
    /// Examines what the members could not read, with `now` in any case.
    fn read_errors(&mut self, now: bool) {
        let is_due = |read: Instant| read.elapsed() >= ERRORS_EVERY;
        if now || self.errors_read.is_none_or(is_due) {
            self.errors_read = Some(Instant::now());
            self.checkpoint.errors.take(&self.sync.health());
        }
    }

    fn take(&mut self, at: &ScrubProgress) {
        if at.done.0 > self.checkpoint.done {
            self.checkpoint.moved = Some(Timestamp::now());
        }
        self.checkpoint.done = at.done.0;
        self.checkpoint.mismatches = at.mismatches;
        // What a repair found it has written anew.
        if !self.checkpoint.repairs {
            self.checkpoint.places = self.ranges.list(at);
        }
        if at.of.0 > 0 {
            self.checkpoint.of = at.of.0;
        }
        self.checkpoint.ran_s = self.ran_before_s + self.began.elapsed().as_secs_f64();
    }

    /// Takes the progress, and returns true where a commit of the ledger to the array is under way.
    fn take_progress(&mut self, at: &ScrubProgress) -> bool {
        self.ranges.take(at);
        let now_s = self.began.elapsed().as_secs_f64();
        let rate = self.deadline.rate(now_s, at.live.bytes().0);
        progress::show(&self.line, at, rate);
        self.status.publish(at, rate, Timestamp::now());
        let left = Sectors(at.of.0.saturating_sub(at.live.0)).bytes().0;
        let known = rate.filter(|_| at.of.0 > 0);
        self.deadline.report_if_late(now_s, left, known, &self.line);
        self.report_own(at);
        self.read_errors(false);
        if at.done.0 > self.checkpoint.done && self.writer.is_due(self.began.elapsed()) {
            self.take(at);
            self.writer.write(&self.checkpoint);
            return self.holds_ledger;
        }
        self.holds_ledger && self.writer.is_writing()
    }

    /// Reports once that the foreground is slower by itself than its target.
    fn report_own(&mut self, at: &ScrubProgress) {
        let (Some(requested), Some(applied), false) =
            (self.requested, at.targets, self.reported_own)
        else {
            return;
        };
        if applied == requested {
            return;
        }
        let or = |latency: Option<f64>, word: &str| {
            latency.map(|latency| format!("a {word} of {}", short_latency(latency)))
        };
        let held = [or(applied.mean_s, "mean"), or(applied.p99_s, "p99")];
        let held: Vec<String> = held.into_iter().flatten().collect();
        let message = format!(
            "disksmith: programs that use {} exceed the latency targets even while nothing is checked. The \
             targets are now their own latency with some room: {}.",
            self.path,
            held.join(" and ")
        );
        self.reported_own = self.line.report(message);
    }

    /// Stores the state at the end, and what was left of the tunables.
    fn end(
        mut self,
        at: &ScrubProgress,
        ending: &ScrubEnd,
        back: RestoreResult,
        notes: &mut Vec<String>,
    ) -> (Checkpoint, bool) {
        self.read_errors(true);
        self.take(at);
        if back.failed.is_empty() {
            self.checkpoint.old = back.later;
        }
        let state = match ending {
            ScrubEnd::Done => EndState::Finished,
            _ => EndState::Suspended,
        };
        let is_kept = self
            .writer
            .end(&self.checkpoint, state)
            .unwrap_or_else(|error| {
                notes.push(format!(
                    "Its progress could not be saved: {}.",
                    sentence(&error)
                ));
                false
            });
        self.line.end();
        (self.checkpoint, is_kept)
    }
}

/// Reason why it ended before its end, as a sentence; `None` where it did not.
pub(crate) fn end_reason(ending: &ScrubEnd) -> Option<String> {
    Some(match ending {
        ScrubEnd::Done => return None,
        ScrubEnd::Ordered(StopCause::Signal) => "it was interrupted".to_owned(),
        ScrubEnd::Ordered(StopCause::Deadline) => "its time is up".to_owned(),
        ScrubEnd::Stopped => "another program has ended the check".to_owned(),
        ScrubEnd::Begun => {
            "another program has begun a check, which goes on by itself, and is not throttled".to_owned()
        }
        ScrubEnd::Gone => "the array was stopped, and is not there any more".to_owned(),
        ScrubEnd::Degraded => {
            "a member failed, so that the check ended; 'disksmith array list' shows which"
                .to_owned()
        }
        ScrubEnd::Recovery(SyncAction::Frozen) => {
            "md was frozen, so that it begins nothing: mdadm does so before it stops or grows an array"
                .to_owned()
        }
        ScrubEnd::Recovery(action) => format!(
            "md has begun a {} of its own, which comes first, and is not throttled",
            action.name()
        ),
        ScrubEnd::Waits(waits) => waits.sentence(),
        ScrubEnd::Delayed => {
            "md does not begin it before it has done what it does with another array, which shares a disk \
             with it (/proc/mdstat shows what)"
                .to_owned()
        }
        ScrubEnd::Turned(tunable) => format!(
            "another program has written to {}, and only one can control md; its value was left",
            tunable.file()
        ),
        ScrubEnd::Failed(error) => error.to_string(),
    })
}
