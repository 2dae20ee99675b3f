//! The warming of one volume, from its plan to its result.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use engine::IoInterface;
use engine::list::{BufferMode, EndReason, List, ListEngine};
use linux::Root;
use linux::block::{DeviceNumber, Devices};
use linux::ebs::ExceededLimits;
use record::{Bytes, Ranges};
use study::depth::verdict::Verdict;

use super::checkpoint::WarmedPart;
use super::finding::{Finding, FindingCode};
use super::limit::SharedRateLimit;
use super::observer::VolumeObserver;
use super::pace::{IoPolicy, Pace};
use super::plan::{Extent, Plan, Stage};
use super::present::TurnGuard;
use super::progress::VolumeLine;
use super::reading::{EndOfReading, MAX_DEPTH, Reading};
use super::start::StartedVolume;
use super::turns::Turns;
use super::wanted_space::{FinalPlan, FinalPlanReceiver, WantedSpace};
use job::{ProgressLines, Resumable};
use reader::{ForegroundReport, Volume};
use ui::exit::sentence;

/// The warming of one volume, ready to start.
pub(crate) struct Task {
    /// Volume to be warmed.
    pub volume: Volume,
    /// Space to be read.
    pub wanted: WantedSpace,
    /// State from which the warming starts.
    pub started: StartedVolume,
}

/// State that all volumes share.
pub(crate) struct Shared<'a> {
    /// Root of the kernel's files.
    pub root: &'a Root,
    /// The host's devices.
    pub devices: &'a Devices,
    /// Limit of the rate of all volumes together.
    pub limit: &'a SharedRateLimit,
    /// Order in which the volumes are read.
    pub turns: &'a Turns,
    /// Policy towards the foreground.
    pub policy: IoPolicy,
    /// True once a signal has arrived.
    pub interrupt: &'a AtomicBool,
    /// The progress lines.
    pub lines: &'a ProgressLines,
    /// The disks that the ledger lies on.
    pub below_ledger: &'a [DeviceNumber],
}

/// End of the warming of a volume.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WarmingEnd {
    /// All that was to be read was requested.
    Done,
    /// A signal ended it.
    Interrupted,
    /// The device went away.
    Gone,
    /// The engine failed.
    Failed(String),
}

/// Result of a volume.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WarmResult {
    /// The path by which the volume was named.
    pub device: String,
    /// Key of the volume in the ledger.
    pub key: String,
    /// Size of the volume at the start.
    pub size: Bytes,
    /// Bytes fetched at once.
    pub block: Bytes,
    /// Sets that were to be read, with their bytes.
    pub sets: Vec<(Stage, Bytes)>,
    /// Bytes that had been read at earlier starts.
    pub before: Bytes,
    /// Bytes that were read at this start.
    pub read: Bytes,
    /// Duration of this start, in seconds.
    pub seconds: f64,
    /// Share of the blocks read at this start that were cold, from 0 to 1, where it is known.
    pub cold: Option<f64>,
    /// Limit of the rate, where it was found.
    pub verdict: Option<Verdict>,
    /// Limit of the rate while all volumes were read together, and the rate of this volume alone, in bytes a second;
    /// `None` where these were not measured, as for a single volume.
    pub in_parallel: Option<(Verdict, f64)>,
    /// True if the device says that it is an EBS volume.
    pub is_ebs: bool,
    /// The foreground's share of the bytes that were read from and written to the volume's disk, from 0 to 1; `None`
    /// where the kernel does not count.
    pub others_share: Option<f64>,
    /// Foreground latency and targets; `None` where there was no foreground.
    pub foreground: Option<ForegroundReport>,
    /// Time for which demand exceeded the limits of the volume or the instance, by EBS's counters; `None` where the
    /// device has no such counters.
    pub exceeded: Option<ExceededLimits>,
    /// Ranges that could not be read.
    pub unreadable: Ranges,
    /// Bytes that were to be read and were not.
    pub left: Bytes,
    /// Bytes that were left out by choice.
    pub left_out: Bytes,
    /// Extent to which the warming can be resumed later.
    pub resumes: Resumable,
    /// End of the warming.
    pub ending: WarmingEnd,
    /// Findings about the volume.
    pub findings: Vec<Finding>,
}

impl WarmResult {
    /// Mean rate of this start, in bytes a second; `None` where nothing was read.
    pub(crate) fn rate(&self) -> Option<f64> {
        let rate = self.read.0 as f64 / self.seconds;
        (self.read.0 > 0 && rate.is_finite()).then_some(rate)
    }
}

/// Warms one volume; `number` is its number among those that are read at once. The space in use is searched for
/// meanwhile.
pub(crate) fn warm(
    task: Task,
    number: usize,
    lister: &dyn ListEngine,
    shared: &Shared<'_>,
) -> WarmResult {
    let Task {
        volume,
        wanted,
        started,
    } = task;
    let present = TurnGuard::new(shared.turns, number);
    let block = started.checkpoint.block;
    let at_once = wanted.at_once(volume.size, block);
    let extent = wanted.extent;
    let is_over = AtomicBool::new(false);
    let is_unwanted = || shared.interrupt.load(Relaxed) || is_over.load(Relaxed);
    std::thread::scope(|scope| {
        let (send, plans) = sync_channel(1);
        let (volume, is_unwanted) = (&volume, &is_unwanted);
        let finding = scope.spawn(move || {
            let of_host = (shared.devices, shared.root);
            let found = wanted.find(volume, block, of_host, is_unwanted);
            // The receiver is gone once the reading is over.
            let _ = send.send(found.plan.clone());
            found
        });
        let later = match extent {
            Extent::All => FinalPlanReceiver::of_new_order(plans),
            Extent::First | Extent::Used => FinalPlanReceiver::new(plans),
        };
        let space = SpaceToRead {
            plan: at_once,
            later,
            started,
            present,
        };
        let found = || {
            is_over.store(true, Relaxed);
            match finding.join() {
                Ok(found) => found,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        };
        read(volume, space, number, lister, shared, found)
    })
}

/// Input of [`read`]: the plan so far, the receiver of the final plan, the started work and the volume's turn.
struct SpaceToRead<'a> {
    plan: Plan,
    later: FinalPlanReceiver,
    started: StartedVolume,
    present: TurnGuard<'a>,
}

/// Reads one volume. `found` returns the final plan after the reading.
fn read(
    volume: &Volume,
    space: SpaceToRead<'_>,
    number: usize,
    lister: &dyn ListEngine,
    shared: &Shared<'_>,
    found: impl FnOnce() -> FinalPlan,
) -> WarmResult {
    let started = space.started;
    let done = started.checkpoint.done.clone();
    let todo = space.plan.without(&done);
    let mut findings = started.findings;
    let name = volume.path.display().to_string();
    let line = VolumeLine::new(shared.lines, &name, todo.total());
    let block = started.checkpoint.block;
    let whole = started.checkpoint.whole;
    let mut watching = VolumeObserver::new(
        volume,
        shared.root,
        started.checkpoint,
        started.writer,
        line,
        shared.below_ledger.contains(&volume.disk.number),
    );
    let pace = Pace::new(shared.limit, shared.policy);
    let counted = volume.own_counters();
    let began = Instant::now();
    let mut reading = Reading::new(
        (&todo, space.later),
        volume.size,
        block,
        done.clone(),
        pace,
        (shared.turns, number),
        &mut watching,
    );
    let ended = run(volume, block, lister, shared.interrupt, &mut reading);
    let seconds = began.elapsed().as_secs_f64();
    let exceeded = counted.and_then(|before| volume.own_counters()?.exceeded_since(&before));
    drop(space.present);
    reading.report();
    let FinalPlan {
        plan,
        findings: of_plan,
    } = found();
    findings.extend(of_plan);
    let mut ending = match ended {
        Err(why) => WarmingEnd::Failed(why),
        Ok(_) if reading.end_of_reading() == EndOfReading::Gone => WarmingEnd::Gone,
        Ok(_) if reading.end_of_reading() == EndOfReading::Silent => WarmingEnd::Failed(
            "it answers no read any more, also where it did before, though the kernel still lists it"
                .to_owned(),
        ),
        // A signal after the last read has not interrupted the work.
        Ok(EndReason::Interrupted) if !reading.is_complete() => WarmingEnd::Interrupted,
        Ok(_) => WarmingEnd::Done,
    };
    let unreadable = reading.unreadable().clone();
    let is_coarse = reading.is_coarse();
    if is_coarse {
        findings.push(Finding::note(
            FindingCode::Unreadable,
            "Bad places were too many or too slow to try each page of them: some of what is listed \
             is whole blocks, of which a part can be read perhaps. The same command tries them \
             again.",
        ));
    }
    let foreground = reading.foreground();
    findings.extend(foreground_finding(foreground.as_ref()));
    let (size_now, smallest) = reading.sizes();
    findings.extend(resized(volume.size, size_now, smallest));
    let done_now = reading.done_ranges().clone();
    let covered = done_now.union(&unreadable);
    let within = Ranges::all(volume.size.min(size_now));
    let left = plan.all().intersect(&within).subtract(&covered).total();
    if ending == WarmingEnd::Done && size_now > smallest && left.0 > 0 {
        ending = WarmingEnd::Failed(
            "it became smaller and then larger again, and was read only up to its smallest size"
                .to_owned(),
        );
    }
    let mut warmed = WarmResult {
        device: volume.path.display().to_string(),
        key: volume.key.text().to_owned(),
        size: volume.size,
        block,
        sets: sets(&plan),
        before: plan.all().intersect(&done).total(),
        read: reading.read(),
        seconds,
        cold: reading.cold_share(),
        verdict: reading.verdict(),
        in_parallel: reading.in_parallel(),
        is_ebs: volume.is_ebs(),
        others_share: reading.others_share(),
        foreground,
        exceeded,
        left,
        left_out: plan.left_out.subtract(&done).total(),
        unreadable,
        resumes: Resumable::Never,
        ending,
        findings,
    };
    if watching.writes() {
        warmed.resumes = volume.key.resumable();
        if warmed.ending == WarmingEnd::Gone {
            warmed.resumes = warmed.resumes.when_detached();
        }
    }
    let end = end(&warmed.ending, whole, is_coarse);
    let failed = watching.end(end, done_now, warmed.unreadable.clone());
    if let Some(error) = failed {
        warmed.resumes = Resumable::Never;
        warmed.findings.push(Finding::warn(
            FindingCode::NotKept,
            format!(
                "Progress could not be stored to the end: {}.",
                sentence(&error)
            ),
        ));
    }
    warmed
}

/// End as the ledger records it.
fn end(ending: &WarmingEnd, whole: bool, is_coarse: bool) -> WarmedPart {
    match ending {
        WarmingEnd::Interrupted | WarmingEnd::Gone | WarmingEnd::Failed(_) => WarmedPart::Midway,
        // Ranges that are marked as unreadable may hold readable pages: the same command continues with them.
        WarmingEnd::Done if is_coarse => WarmedPart::Midway,
        WarmingEnd::Done if whole => WarmedPart::Whole,
        // Work that leaves space out by choice is unfinished: a later start may read the rest.
        WarmingEnd::Done => WarmedPart::Requested,
    }
}

fn run(
    volume: &Volume,
    block: Bytes,
    lister: &dyn ListEngine,
    interrupt: &AtomicBool,
    reading: &mut Reading<'_>,
) -> Result<EndReason, String> {
    let file = volume.direct().map_err(|error| {
        format!(
            "the kernel refuses direct I/O on it, and a read through memory proves nothing: {error}"
        )
    })?;
    let list = List {
        files: &[&file],
        memory: BufferMode::Reads,
        // One more, for a probe of foreground latency.
        max_in_flight: MAX_DEPTH as u32 + 1,
        largest: block,
        interface: IoInterface::Auto,
        interrupt,
    };
    let end = lister.run(&list, reading);
    end.map(|end| end.ended).map_err(|error| error.to_string())
}

fn sets(plan: &Plan) -> Vec<(Stage, Bytes)> {
    let stages = plan.stages.iter();
    stages
        .map(|(stage, ranges)| (*stage, ranges.total()))
        .collect()
}

/// Finding about the foreground, if there was one.
fn foreground_finding(foreground: Option<&ForegroundReport>) -> Option<Finding> {
    let foreground = foreground?;
    let text = format!(
        "{} --keep-p99 and --keep-mean set another target.",
        foreground.text()
    );
    let is_unreachable = foreground.target_source == Some("unreachable");
    Some(if is_unreachable {
        Finding::warn(FindingCode::Yielded, text)
    } else {
        Finding::note(FindingCode::Yielded, text)
    })
}

fn resized(then: Bytes, now: Bytes, smallest: Bytes) -> Option<Finding> {
    if smallest < then {
        return Some(Finding::warn(
            FindingCode::Resized,
            format!(
                "The volume became smaller meanwhile: it had {then}, and {smallest} then. It was read \
                 to that end. It has {now} now."
            ),
        ));
    }
    (now > then).then(|| {
        Finding::note(
            FindingCode::Resized,
            format!(
                "The volume grew meanwhile from {then} to {now}. What was added comes from no \
                 snapshot and was not read."
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_was_read_coarsely_is_not_finished() {
        for (ending, whole, is_coarse, expected) in [
            (WarmingEnd::Done, true, false, WarmedPart::Whole),
            (WarmingEnd::Done, false, false, WarmedPart::Requested),
            (WarmingEnd::Done, true, true, WarmedPart::Midway),
            (WarmingEnd::Done, false, true, WarmedPart::Midway),
            (WarmingEnd::Interrupted, true, false, WarmedPart::Midway),
            (
                WarmingEnd::Failed(String::new()),
                true,
                false,
                WarmedPart::Midway,
            ),
        ] {
            assert_eq!(end(&ending, whole, is_coarse), expected, "{ending:?}");
        }
    }
}
