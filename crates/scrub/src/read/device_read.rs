//! The reading of one array or disk, from its start to its result.

use std::sync::atomic::Ordering::Relaxed;
use std::thread::{ScopedJoinHandle, sleep};
use std::time::{Duration, Instant};

use engine::IoInterface;
use engine::list::{BufferMode, EndReason, List, ListEngine};
use job::{ProgressLine, Started, StopCause};
use linux::md::sync::Sectors;
use linux::root::attribute;
use reader::ForegroundReport;
use record::{Bytes, Nanos};
use study::pace::{Allowed, Controller};

use super::super::array_scrub::Shared;
use super::super::deadline::Deadline;
use super::super::drive::ScrubProgress;
use super::super::foreground::{Foreground, OwnIo};
use super::super::progress;
use super::checkpoint::Checkpoint;
use super::member::{BLOCK, MAX_DEPTH, Member, MemberResult, behind};
use super::share::SharedReadState;
use super::source::{ReadPart, ReadSource};

/// Interval at which the rate is updated.
const TICK: Duration = Duration::from_millis(20);
/// Weight of the last completions in the average rate of the members.
const LAST_COMPLETION_WEIGHT: f64 = 0.1;
/// Interval at which the array is examined, and progress is shown.
const POLL: Duration = Duration::from_millis(250);

/// Cause of the end of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// Everything was requested.
    Done,
    /// A signal ended it.
    Interrupted,
    /// The time was up.
    TimeUp,
    /// The array was stopped, or a disk went away.
    Gone(String),
    /// md began this action on the array.
    Busy(String),
    /// The engine failed.
    Failed(String),
}

/// Result of reading an array or disk.
pub(crate) struct Read {
    pub source: ReadSource,
    /// Result of each part.
    pub parts: Vec<MemberResult>,
    pub ending: ReadEnd,
    /// Duration of this start, in seconds.
    pub seconds: f64,
    /// Progress at the end.
    pub at: ScrubProgress,
    /// Foreground latency and targets; `None` where there was no foreground.
    pub foreground: Option<ForegroundReport>,
}

/// Reads one array or disk.
pub(crate) fn read(
    source: ReadSource,
    begun: Vec<Started<Checkpoint>>,
    shared: &Shared<'_>,
) -> Read {
    let parts = source.parts.iter().zip(&begun);
    let passed: u64 = parts
        .map(|(part, one)| behind(&part.whole, &one.checkpoint))
        .sum();
    let share = SharedReadState::new(passed);
    let began = Instant::now();
    let (parts, ending, at, foreground) = std::thread::scope(|scope| {
        let threads: Vec<_> = source
            .parts
            .iter()
            .zip(begun)
            .map(|(part, begun)| {
                let share = &share;
                scope.spawn(move || read_part(part, begun, share, shared))
            })
            .collect();
        let mut steering = Steering::new(&source, &share, shared, began);
        let ordered = steering.steer(&threads);
        let came: Vec<_> = threads.into_iter().map(job::joined).collect();
        let of_parts = came.iter().find_map(|(_, ending)| match ending {
            ReadEnd::Done | ReadEnd::Interrupted => None,
            other => Some(other.clone()),
        });
        let is_done = came.iter().all(|(_, ending)| *ending == ReadEnd::Done);
        let ending = match (of_parts, ordered) {
            (Some(ending), _) => ending,
            (None, _) if is_done => ReadEnd::Done,
            (None, Some(ordered)) => ordered,
            (None, None) => ReadEnd::Interrupted,
        };
        let parts: Vec<MemberResult> = came.into_iter().map(|(came, _)| came).collect();
        steering.line.end();
        let foreground = ForegroundReport::of(&steering.pace.outcome());
        (parts, ending, steering.at, foreground)
    });
    Read {
        source,
        parts,
        ending,
        seconds: began.elapsed().as_secs_f64(),
        at,
        foreground,
    }
}

fn read_part(
    part: &ReadPart,
    begun: Started<Checkpoint>,
    share: &SharedReadState,
    shared: &Shared<'_>,
) -> (MemberResult, ReadEnd) {
    let mut member = Member::new(part, shared.root, share, begun.checkpoint, begun.writer);
    let path = part.volume.path.display();
    let ended = part
        .volume
        .direct()
        .map_err(|error| format!("the kernel refuses direct I/O on {path}: {error}"))
        .and_then(|file| {
            let list = List {
                files: &[&file],
                memory: BufferMode::Reads,
                max_in_flight: MAX_DEPTH as u32,
                largest: BLOCK,
                interface: IoInterface::Auto,
                interrupt: &share.over,
            };
            let end = engine::DiskEngine.run(&list, &mut member);
            end.map(|end| end.ended).map_err(|error| error.to_string())
        });
    let came = member.end(matches!(ended, Ok(EndReason::Complete)));
    let ending = match ended {
        Err(why) => ReadEnd::Failed(why),
        Ok(_) if came.gone => ReadEnd::Gone(format!("{path} went away")),
        Ok(EndReason::Interrupted) => ReadEnd::Interrupted,
        Ok(EndReason::Complete) => ReadEnd::Done,
    };
    (came, ending)
}

/// Control of the rate of all parts, by the foreground's latency.
struct Steering<'a> {
    source: &'a ReadSource,
    share: &'a SharedReadState,
    shared: &'a Shared<'a>,
    foreground: Foreground,
    /// True if the ledger lies on the watched device.
    holds_ledger: bool,
    pace: Controller,
    sampled: Nanos,
    /// Rate of all members together, in bytes a second, while each has a request in flight beside a foreground.
    device_rate: Option<f64>,
    began: Instant,
    line: ProgressLine,
    deadline: Deadline,
    of: u64,
    at: ScrubProgress,
}

impl<'a> Steering<'a> {
    fn new(
        source: &'a ReadSource,
        share: &'a SharedReadState,
        shared: &'a Shared<'a>,
        began: Instant,
    ) -> Self {
        let parts = source.parts.iter();
        Steering {
            foreground: Foreground::of(&source.watched, shared.root)
                .with_shared_disks(&source.shared, shared.root),
            holds_ledger: shared.below_ledger.contains(&source.watched.number),
            pace: Controller::new(shared.targets.unwrap_or_default()),
            sampled: Nanos(0),
            device_rate: None,
            line: shared.lines.line(&source.path()),
            deadline: Deadline::new(
                source.path(),
                shared.due.clone(),
                shared.deadline_wins,
                share.passed(),
            ),
            of: parts.map(|part| part.whole.total().0).sum(),
            at: ScrubProgress::default(),
            source,
            share,
            shared,
            began,
        }
    }

    /// Controls the rate until all threads have ended. Returns the reason why it stopped them, if it did.
    fn steer<T>(&mut self, threads: &[ScopedJoinHandle<'_, T>]) -> Option<ReadEnd> {
        let mut ordered = None;
        let mut polled = Instant::now();
        while !threads.iter().all(ScopedJoinHandle::is_finished) {
            self.tick();
            if ordered.is_none() {
                let is_due = polled.elapsed() >= POLL;
                ordered = self
                    .order()
                    .or_else(|| is_due.then(|| self.array_failure())?);
                if ordered.is_some() {
                    self.share.over.store(true, Relaxed);
                }
            }
            if polled.elapsed() >= POLL {
                polled = Instant::now();
                self.show();
            }
            sleep(TICK);
        }
        self.show();
        ordered
    }

    fn tick(&mut self) {
        let now = Nanos::from(self.began.elapsed());
        let (probes, probing) = (self.pace.probes(), self.pace.probe_gap_s());
        if self.share.commits.swap(false, Relaxed) && self.holds_ledger {
            self.foreground.commits();
        }
        let mut bytes = 0;
        let seen = self.foreground.foreground_sample(probing, || {
            let in_flight;
            (bytes, in_flight) = self.share.since();
            // An array's counters do not include reads of its members.
            self.source.array.is_none().then(|| OwnIo {
                bytes: bytes as f64,
                in_flight: in_flight as f64,
                is_deep: self.pace.allowed() == Allowed::All,
            })
        });
        if let Some(due) = self
            .shared
            .due
            .as_ref()
            .filter(|_| self.shared.deadline_wins)
        {
            let left = self.of.saturating_sub(self.share.passed()) as f64;
            self.pace.at_least(left / due.left().as_secs_f64().max(1.0));
        }
        if let Some(device_rate) = self.share.member_rate() {
            // A single latency varies: the rate is averaged.
            let all = device_rate * self.source.parts.len() as f64;
            let known = self.device_rate.get_or_insert(all);
            *known += LAST_COMPLETION_WEIGHT * (all - *known);
            self.pace.set_device_rate(*known);
        }
        let before = std::mem::replace(&mut self.sampled, now);
        let seconds = Nanos(now.0.saturating_sub(before.0)).as_secs_f64();
        let sample = seen.sample(seconds, bytes as f64, self.share.is_busy(), probes);
        self.share.set(self.pace.take(&sample));
    }

    fn order(&self) -> Option<ReadEnd> {
        Some(match self.shared.stop.cause()? {
            StopCause::Signal => ReadEnd::Interrupted,
            StopCause::Deadline => ReadEnd::TimeUp,
        })
    }

    /// The end where the array was stopped, or md works on it.
    fn array_failure(&self) -> Option<ReadEnd> {
        let sync = &self.source.array.as_ref()?.sync;
        if !sync.is_there() {
            return Some(ReadEnd::Gone("the array was stopped".to_owned()));
        }
        let action = attribute(&sync.folder().join("sync_action"))?;
        (action != "idle").then_some(ReadEnd::Busy(action))
    }

    fn show(&mut self) {
        let passed = self.share.passed();
        self.at = ScrubProgress {
            live: Sectors::of(Bytes(passed)),
            of: Sectors::of(Bytes(self.of)),
            mean: self.pace.mean_s().or(self.at.mean),
            p99: self.pace.p99_s().or(self.at.p99),
            targets: self
                .pace
                .targets()
                .map_or(self.shared.targets, |kept| Some(kept.0)),
            beside: self.pace.allowed() != Allowed::All,
            measuring: self.pace.is_measuring(),
            above_s: self.pace.above_s(),
            held: self.pace.holds_back(),
            ..ScrubProgress::default()
        };
        let seconds = self.began.elapsed().as_secs_f64();
        let rate = self.deadline.rate(seconds, passed);
        progress::show(&self.line, &self.at, rate);
        let left = self.of.saturating_sub(passed);
        self.deadline
            .report_if_late(seconds, left, rate, &self.line);
    }
}
