//! The scrub of one array, from its start to what came of it.

use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use linux::Root;
use linux::md::health::Health;
use linux::md::sync::{Action, Sectors, Sync, Tunable};
use record::Bytes;

use super::drive::{At, Ended, Ending, Order, Task, drive};
use super::foreground_latency::Targets;
use super::guard::{self, Guard};
use super::health;
use super::host::OnHost;
use super::kept::Kept;
use super::locate::Located;
use super::mismatch_ranges::MismatchRanges;
use super::now::Told;
use super::outlook::{Outlook, late};
use super::progress::{Line, Lines};
use super::rewrite::{RepairMethod, Repaired};
use super::saved_tunables::{By, DEPTH, RestoreResult, STRIPES, SavedTunables};
use super::start::Started;
use super::target::Target;
use super::when::Due;
use job::keeper::Keeper;
use ui::exit::sentence;
use ui::words::short_latency;

/// Of each member a stripe has so many bytes.
const PAGE: u64 = 4096;
/// How it stands is kept so often. The ledger may lie on the array, where each time is work for the members.
const KEEPS: Duration = Duration::from_secs(10);
/// What the members could not read is looked at so often: md keeps counting, and nothing gets lost.
const LOOKS_AT_ERRORS: Duration = Duration::from_secs(10);

/// An array that mdadm has frozen to stop it is gone within so long, and is looked for so often.
const STOPS_WITHIN: Duration = Duration::from_secs(2);
/// See [`STOPS_WITHIN`].
const LOOKS_FOR_IT: Duration = Duration::from_millis(50);

/// What is shared by all arrays and disks of a command.
pub(crate) struct Shared<'a> {
    pub root: &'a Root,
    pub interrupt: &'a AtomicBool,
    pub lines: &'a Lines,
    /// What is to be kept; `None` for a multiple of what is measured.
    pub targets: Option<Targets>,
    /// When it must end, whether it is done or not.
    pub ends: Option<Timestamp>,
    /// When it is to be done.
    pub due: Option<Due>,
    /// Whether that counts more than the latency.
    pub deadline_wins: bool,
}

/// What came of the scrub of one array.
pub(crate) struct Scrubbed {
    pub target: Target,
    pub kept: Kept,
    pub ending: Ending,
    /// How it stood at the end.
    pub at: At,
    /// How long this start took, in seconds.
    pub seconds: f64,
    /// Bytes that this start went through, as md counts positions.
    pub moved: u64,
    /// Whether the ledger knows how it stands.
    pub is_kept: bool,
    /// What is to be said besides, in sentences.
    pub notes: Vec<String>,
    /// What could not be put back, in sentences.
    pub left: Vec<String>,
    /// What is known of its members.
    pub members: Vec<Health>,
    /// Where its mismatches are, or why that is not known; `None` where that was not asked for.
    pub located: Option<Result<Located, String>>,
    /// How it is repaired, where that was asked for.
    pub way: Option<RepairMethod>,
    /// What came of its repair from the other members, or why there was none.
    pub repaired: Option<Result<Repaired, String>>,
}

impl Scrubbed {
    /// What is known of an array whose scrub was done before.
    pub(crate) fn known(target: Target, kept: Kept) -> Scrubbed {
        Scrubbed {
            members: target.sync.health(),
            target,
            kept,
            ending: Ending::Done,
            at: At::default(),
            seconds: 0.0,
            moved: 0,
            is_kept: true,
            notes: Vec::new(),
            left: Vec::new(),
            located: None,
            way: None,
            repaired: None,
        }
    }

    /// Whether all agrees, and could be read.
    pub(crate) fn is_clean(&self) -> bool {
        self.kept.mismatches == 0 && health::are_sound(&self.kept.errors, &self.members)
    }
}

/// Scrubs one array. `old` are its tunables before.
pub(crate) fn scrub(
    target: Target,
    started: Started,
    old: &SavedTunables,
    shared: &Shared<'_>,
) -> Scrubbed {
    let Started {
        kept,
        keeper,
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
    let cache = Bytes(STRIPES.max(stripes).saturating_mul(2 * PAGE));
    let mut keeping = Keeping {
        grown: MismatchRanges::new(kept.done, kept.mismatches, kept.places.clone(), cache),
        ran_before_s: kept.ran_s,
        outlook: Outlook::new(Sectors(kept.done).bytes().0),
        kept,
        keeper,
        line: shared
            .lines
            .line(&target.path())
            .map_err(|error| notes.push(format!("How it goes on could not be shown: {error}.")))
            .ok(),
        sync: target.sync.clone(),
        looked_at_errors: None,
        began,
        due: shared.due.clone(),
        status: Told::of(&target.uuid),
        wins: shared.deadline_wins,
        path: target.path(),
        asked: shared.targets,
        told_own: false,
        last_kept: None,
    };
    let task = Task {
        action: if keeping.kept.repairs {
            Action::Repair
        } else {
            Action::Check
        },
        from: Sectors(keeping.kept.done),
        mismatches: keeping.kept.mismatches,
        min: old.min(),
        chunk: target.chunk(),
        wide: target.wide(),
        holds_all: target.holds_all(),
        targets: shared.targets,
        deadline: shared
            .due
            .as_ref()
            .filter(|_| shared.deadline_wins)
            .map(Due::left),
    };
    let (Ended { ending, at, .. }, back) = {
        let mut stands = |at: &At| keeping.stands(at);
        let mut world = OnHost::new(
            &target,
            shared.root,
            shared.interrupt,
            shared.ends,
            &mut stands,
        );
        prepare(&target);
        let ended = drive(&mut world, &task);
        let by = By::Scrub {
            but_for: match ended.ending {
                Ending::Turned(tunable) => Some(tunable),
                _ => None,
            },
            ends: ended.is_own,
            fenced: ended.fenced,
        };
        // The world goes after this: it waits for a probe that is on its way, and of an array that
        // hangs that one comes late, just when md has something to recover.
        let back = old.put_back(&target.sync, by);
        (ended, back)
    };
    // To stop an array md first ends what it does with it.
    let (ending, back) = match ending {
        Ending::Stopped if !target.sync.is_there() => (Ending::Gone, back),
        Ending::Recovery(Action::Frozen) if is_gone_soon(&target.sync) => {
            (Ending::Gone, RestoreResult::default())
        }
        other => (other, back),
    };
    if back.is_all() {
        guard::note_back(&target.uuid);
    }
    if let Some(guard) = guard {
        guard.dismiss(&back);
    }
    let moved = Sectors(at.live.0.saturating_sub(task.from.0)).bytes().0;
    let seconds = began.elapsed().as_secs_f64();
    let left = back.left();
    let (kept, is_kept) = keeping.end(&at, &ending, back, &mut notes);
    Scrubbed {
        members: target.sync.health(),
        target,
        kept,
        ending,
        at,
        seconds,
        moved,
        is_kept,
        notes,
        left,
        located: None,
        way: None,
        repaired: None,
    }
}

/// Whether an array that was frozen is gone soon after: mdadm freezes it before it stops it.
fn is_gone_soon(sync: &Sync) -> bool {
    let began = Instant::now();
    while sync.is_there() && began.elapsed() < STOPS_WITHIN {
        sleep(LOOKS_FOR_IT);
    }
    !sync.is_there()
}

/// Gives a level with parity room for more stripes at once, if it has little; and has md let go as little
/// at once in company as it did before Linux 6.16.
fn prepare(target: &Target) {
    let shown = target.sync.tunable(Tunable::StripeCache);
    let stripes = shown.and_then(|text| text.parse::<u64>().ok());
    if stripes.is_some_and(|stripes| stripes < STRIPES) {
        let turn = |stripes: u64| target.sync.turn(Tunable::StripeCache, &stripes.to_string());
        if let (Err(_), Some(stripes)) = (turn(STRIPES), stripes) {
            // There was memory for some, which would not be known for its own. Without it the check is a
            // little slower, and there is nothing to say.
            let _ = turn(stripes);
        }
    }
    if target.sync.tunable(Tunable::IoDepth).is_some() {
        // Without it others feel each step more, and the pace goes by what they feel.
        let _ = target.sync.turn(Tunable::IoDepth, &DEPTH.to_string());
    }
}

/// Keeps and shows how it stands.
struct Keeping {
    grown: MismatchRanges,
    kept: Kept,
    keeper: Option<Keeper<Kept>>,
    /// What shows it; `None` where it cannot be shown.
    line: Option<Line>,
    sync: Sync,
    looked_at_errors: Option<Instant>,
    began: Instant,
    ran_before_s: f64,
    outlook: Outlook,
    due: Option<Due>,
    /// What `--status` of another process reads.
    status: Told,
    wins: bool,
    path: String,
    /// What the user wants to be kept, and whether it was said that it is not had anyway.
    asked: Option<Targets>,
    told_own: bool,
    last_kept: Option<Instant>,
}

impl Keeping {
    /// Looks at what the members could not read, with `now` in any case.
    fn look_at_errors(&mut self, now: bool) {
        let is_due = |looked: Instant| looked.elapsed() >= LOOKS_AT_ERRORS;
        if now || self.looked_at_errors.is_none_or(is_due) {
            self.looked_at_errors = Some(Instant::now());
            self.kept.errors.take(&self.sync.health());
        }
    }

    fn take(&mut self, at: &At) {
        if at.done.0 > self.kept.done {
            self.kept.moved = Some(Timestamp::now());
        }
        self.kept.done = at.done.0;
        self.kept.mismatches = at.mismatches;
        // What a repair found it has written anew.
        if !self.kept.repairs {
            self.kept.places = self.grown.list(at);
        }
        if at.of.0 > 0 {
            self.kept.of = at.of.0;
        }
        self.kept.ran_s = self.ran_before_s + self.began.elapsed().as_secs_f64();
    }

    fn stands(&mut self, at: &At) {
        self.grown.take(at);
        let now_s = self.began.elapsed().as_secs_f64();
        let rate = self.outlook.rate(now_s, at.live.bytes().0);
        if let Some(line) = &self.line {
            line.show(at, rate);
        }
        self.status.tell(at, rate, Timestamp::now());
        self.foresee(at, rate, now_s);
        self.say_own(at);
        self.look_at_errors(false);
        let is_due = self.last_kept.is_none_or(|then| then.elapsed() >= KEEPS);
        if at.done.0 > self.kept.done && is_due {
            self.last_kept = Some(Instant::now());
            self.take(at);
            if let Some(keeper) = &self.keeper {
                // A state that is not taken is in the next one too.
                keeper.keep(&self.kept);
            }
        }
    }

    /// Says once when the foreground is slower by itself than it was to be.
    fn say_own(&mut self, at: &At) {
        let (Some(asked), Some(kept), false) = (self.asked, at.targets, self.told_own) else {
            return;
        };
        if kept == asked {
            return;
        }
        let or = |latency: Option<f64>, word: &str| {
            latency.map(|latency| format!("a {word} of {}", short_latency(latency)))
        };
        let held = [or(kept.mean, "mean"), or(kept.p99, "p99")];
        let held: Vec<String> = held.into_iter().flatten().collect();
        let said = format!(
            "disksmith: those who use {} do not have the latency that is to be kept, also while nothing is \
             checked. They are held to what they have with some room: {}.",
            self.path,
            held.join(" and ")
        );
        self.told_own = self.line.as_ref().is_some_and(|line| line.say(said));
    }

    /// Says when what was asked for cannot be had.
    fn foresee(&mut self, at: &At, rate: Option<f64>, now_s: f64) {
        let (Some(due), Some(rate)) = (&self.due, rate.filter(|_| at.of.0 > 0)) else {
            return;
        };
        let left = Sectors(at.of.0.saturating_sub(at.live.0)).bytes().0 as f64 / rate;
        let available = due.left().as_secs_f64();
        if self.outlook.is_to_be_said(now_s, left, available) {
            let said = late(&self.path, left, available, self.wins);
            // What is not shown now is said again.
            if self.line.as_ref().is_some_and(|line| line.say(said)) {
                self.outlook.said(now_s);
            }
        }
    }

    /// Keeps how it stood in the end, and what was left of the tunables.
    fn end(
        mut self,
        at: &At,
        ending: &Ending,
        back: RestoreResult,
        notes: &mut Vec<String>,
    ) -> (Kept, bool) {
        self.look_at_errors(true);
        self.take(at);
        if back.failed.is_empty() {
            self.kept.old = back.later;
        }
        let finished = matches!(ending, Ending::Done);
        let ended = self.keep_last(finished, notes);
        if let Some(line) = self.line.take() {
            line.end();
        }
        (self.kept, ended)
    }

    /// Keeps the last state, and whether it is kept.
    fn keep_last(&mut self, finished: bool, notes: &mut Vec<String>) -> bool {
        let Some(keeper) = self.keeper.take() else {
            return false;
        };
        match keeper.end(&self.kept, finished) {
            Ok(()) => true,
            Err(error) => {
                notes.push(format!(
                    "How far it is could not be kept: {}.",
                    sentence(&error)
                ));
                false
            }
        }
    }
}

/// Why it ended before its end, and what it is about, in a sentence; `None` where it did not.
pub(crate) fn why(ending: &Ending) -> Option<String> {
    Some(match ending {
        Ending::Done => return None,
        Ending::Ordered(Order::Interrupted) => "it was interrupted".to_owned(),
        Ending::Ordered(Order::TimeUp) => "its time is up".to_owned(),
        Ending::Stopped => "somebody else has ended the check".to_owned(),
        Ending::Begun => {
            "somebody else has begun a check, which goes on by itself; nothing holds it back".to_owned()
        }
        Ending::Gone => "the array was stopped, and is not there any more".to_owned(),
        Ending::Degraded => {
            "a member failed, so that the check ended; 'disksmith array list' shows which"
                .to_owned()
        }
        Ending::Recovery(Action::Frozen) => {
            "md was frozen, so that it begins nothing: mdadm does so before it stops or grows an array"
                .to_owned()
        }
        Ending::Recovery(action) => format!(
            "md has begun a {} of its own, which comes first; nothing holds it back",
            action.word()
        ),
        Ending::Waits(waits) => waits.sentence(),
        Ending::Delayed => {
            "md does not begin it before it has done what it does with another array, which shares a disk \
             with it (/proc/mdstat shows what)"
                .to_owned()
        }
        Ending::Turned(tunable) => format!(
            "somebody else has written to {}, and two cannot steer; what they wrote was left",
            tunable.file()
        ),
        Ending::Failed(error) => error.to_string(),
    })
}
