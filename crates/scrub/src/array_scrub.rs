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

/// Size of one member's page in a stripe of the stripe cache, in bytes.
const PAGE: u64 = 4096;
/// Interval at which the members' read errors are read. md's counters only grow, so that none is lost in between.
const ERRORS_EVERY: Duration = Duration::from_secs(10);

/// Time within which an array disappears after mdadm has frozen it to stop it.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which the presence of a frozen array is polled.
const STOP_POLL: Duration = Duration::from_millis(50);

/// State that all arrays and disks of a command share.
pub(crate) struct Shared<'a> {
    pub root: &'a Root,
    /// Devices that the ledger lies on.
    pub below_ledger: Vec<DeviceNumber>,
    /// Reasons to stop early.
    pub stop: Stop<'a>,
    pub lines: &'a ProgressLines,
    /// Latency targets; `None` for targets that follow from the foreground's latency alone.
    pub targets: Option<Targets>,
    /// Deadline, if one is given.
    pub due: Option<DueTime>,
    /// True if the deadline has priority over the latency targets.
    pub deadline_wins: bool,
}

/// Result of the scrub of one array.
pub(crate) struct ScrubResult {
    pub target: Target,
    pub checkpoint: Checkpoint,
    pub ending: ScrubEnd,
    /// Progress at the end.
    pub at: ScrubProgress,
    /// Foreground latency and targets; `None` where there was no foreground.
    pub foreground: Option<ForegroundReport>,
    /// Duration of this start, in seconds.
    pub seconds: f64,
    /// Bytes that this start checked, in md's positions.
    pub moved: u64,
    /// True if the state is stored in the ledger.
    pub is_kept: bool,
    /// Notes, in sentences.
    pub notes: Vec<String>,
    /// Settings that could not be restored, in sentences.
    pub left: Vec<String>,
    /// Health of the members.
    pub members: Vec<Health>,
    /// Locations of the mismatches, or the reason why they are not known; `None` where they were not requested.
    pub located: Option<Result<Located, String>>,
    /// Method of repair; `None` where no repair was requested.
    pub repair_method: Option<RepairMethod>,
    /// Result of the repair from the other members, or the reason why it was not done; `None` where none was requested.
    pub repaired: Option<Result<Repaired, String>>,
}

impl ScrubResult {
    /// Result for an array whose scrub was already done.
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

    /// True if there are no mismatches and no read errors.
    pub(crate) fn is_clean(&self) -> bool {
        self.checkpoint.mismatches == 0 && health::are_sound(&self.checkpoint.errors, &self.members)
    }
}

/// Scrubs one array. `old` are its tunables before the scrub.
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
                "No guard process could be started, so after a kill -9 only the next 'disksmith scrub' restores \
                 the tunables back: {error}."
            ));
        })
        .ok();
    let began = Instant::now();
    let stripes = target.sync.tunable(Tunable::StripeCache);
    let stripes = stripes.and_then(|text| text.parse().ok()).unwrap_or(0);
    // The stripe cache may grow while it is full.
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
        // The control is dropped only after this: its drop waits for a probe in flight, and the probe of an array that
        // hangs completes late, just when md has to recover something.
        let back = old.put_back(&target.sync, by);
        (ended, back)
    };
    // Before an array is stopped, md ends its check.
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

/// True if a frozen array disappears within [`STOP_TIMEOUT`]: mdadm freezes an array before it stops it.
fn is_gone_soon(sync: &Sync) -> bool {
    let began = Instant::now();
    while sync.is_there() && began.elapsed() < STOP_TIMEOUT {
        sleep(STOP_POLL);
    }
    !sync.is_there()
}

/// Enlarges the stripe cache of an array with parity, if it is small, and sets md's I/O depth beside a foreground to
/// the value that was fixed before Linux 6.16.
fn prepare(target: &Target) {
    let shown = target.sync.tunable(Tunable::StripeCache);
    let stripes = shown.and_then(|text| text.parse::<u64>().ok());
    if stripes.is_some_and(|stripes| stripes < STRIPE_CACHE_SIZE) {
        let turn = |stripes: u64| target.sync.turn(Tunable::StripeCache, &stripes.to_string());
        if let (Err(_), Some(stripes)) = (turn(STRIPE_CACHE_SIZE), stripes) {
            // The cache may have grown in part, which could not be attributed to this process later. The former size
            // only makes the check a little slower.
            let _ = turn(stripes);
        }
    }
    if target.sync.tunable(Tunable::IoDepth).is_some() {
        // If it cannot be set, each step delays the foreground more, which the controller takes into account.
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
    /// Latency targets of the user.
    requested: Option<Targets>,
    /// True once it was reported that the foreground exceeds these targets even without the check.
    reported_own: bool,
}

impl Tracker {
    /// Reads the members' read errors, if [`ERRORS_EVERY`] has passed or `now` is true.
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
        // A repair by md has rewritten the mismatches that it found.
        if !self.checkpoint.repairs {
            self.checkpoint.places = self.ranges.list(at);
        }
        if at.of.0 > 0 {
            self.checkpoint.of = at.of.0;
        }
        self.checkpoint.ran_s = self.ran_before_s + self.began.elapsed().as_secs_f64();
    }

    /// Takes the progress. Returns true if the ledger is being written to the array.
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

    /// Reports once that the foreground exceeds the latency targets even while nothing is checked.
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

    /// Stores the state at the end, with the tunables that could not be restored.
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

/// Reason why a scrub ended early, as a clause; `None` where it did not.
pub(crate) fn end_reason(ending: &ScrubEnd) -> Option<String> {
    Some(match ending {
        ScrubEnd::Done => return None,
        ScrubEnd::Ordered(StopCause::Signal) => "it was interrupted".to_owned(),
        ScrubEnd::Ordered(StopCause::Deadline) => "its time is up".to_owned(),
        ScrubEnd::Stopped => "another program has ended the check".to_owned(),
        ScrubEnd::Begun => {
            "another program has begun a check, which continues by itself, and is not throttled".to_owned()
        }
        ScrubEnd::Gone => "the array was stopped, and no longer exists".to_owned(),
        ScrubEnd::Degraded => {
            "a member failed, so that the check ended; 'disksmith array list' shows which"
                .to_owned()
        }
        ScrubEnd::Recovery(SyncAction::Frozen) => {
            "md was frozen and begins no work: mdadm does so before it stops or grows an array"
                .to_owned()
        }
        ScrubEnd::Recovery(action) => format!(
            "md has begun a {} of its own, which has priority, and is not throttled",
            action.name()
        ),
        ScrubEnd::Waits(waits) => waits.sentence(),
        ScrubEnd::Delayed => {
            "md does not begin the check before it has finished its work on another array, which shares a disk \
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
