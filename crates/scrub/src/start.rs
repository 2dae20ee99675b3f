//! The start of a scrub: restores tunables that a killed scrub has left, and continues from the array's last
//! checkpoint.

use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use job::{
    CheckpointInterval, CheckpointWriter, JobRequest, JobStore, OwnedJob, Previous, Stop, Takeover,
};
use ledger::{OwnerLiveness, WorkError, WorkSummary};
use linux::block::{BlockDeviceKind, Device, DeviceNumber, Devices};
use linux::md::sync::{Sectors, Sync};
use linux::{Root, process};
use record::Ranges;

use super::checkpoint::Checkpoint;
use super::guard;
use super::health::Errors;
use super::lock;
use super::repair;
use super::saved_tunables::{RestoreResult, RestoredBy, SavedTunables};
use super::target::Target;
use ui::context::Context;
use ui::exit::Failure;

/// Interval between checkpoints. The ledger may lie on the array, where each checkpoint is work for the members.
const INTERVAL: Duration = Duration::from_secs(10);
/// Maximum time for which a start waits for another process that cleans up after a kill.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Interval between two polls.
const POLL: Duration = Duration::from_millis(50);
/// Conditions for taking over a job. An array may move to another host with its members, so that the owner on the
/// former host has lost it; and this process may still own the job, if it cleaned up after a kill and could not
/// release it.
pub(crate) const TAKEOVER: Takeover = Takeover::WithTargetOrOwn;

/// A scrub that was started, with the state from which it continues.
pub(crate) struct StartedScrub {
    /// State from which it starts.
    pub checkpoint: Checkpoint,
    /// Writer of later checkpoints.
    pub writer: CheckpointWriter<Checkpoint>,
    /// True if the duration of an earlier scrub is known.
    pub is_known: bool,
    /// Notes, in sentences.
    pub notes: Vec<String>,
}

/// Restores tunables that killed scrubs have left on this host. Returns the changes as sentences.
pub(crate) fn restore_after_kills(
    store: &mut JobStore,
    root: &Root,
    devices: &Devices,
) -> Vec<String> {
    let mut sentences = Vec::new();
    let works = match store.abandoned::<Checkpoint>() {
        Ok(works) => works,
        Err(error) => {
            return vec![format!(
                "It is not known whether a killed scrub has left tunables to restore: {error}."
            )];
        }
    };
    for work in works {
        let turned = store.find::<Checkpoint>(&work.key);
        let is_turned = matches!(&turned, Ok(Some(work)) if work.document.old.is_some());
        if !is_turned || !store.ledger().is_writable() {
            continue;
        }
        match OwnedJob::claim(&mut *store, &work.key, TAKEOVER) {
            Ok((job, work)) => sentences.extend(restore_one(job, work.document, root, devices)),
            // Another process cleans up, and is waited for.
            Err(ledger::Error::Work(WorkError::UnderWay { .. })) => {}
            Err(error) => sentences.push(format!(
                "The scrub of {} that was killed could not be cleaned up: {error}.",
                work.key
            )),
        }
    }
    let is_scrubbed = |uuid: &str| array_of(uuid, root, devices).is_some_and(lock::is_taken);
    wait_for_others(store, is_scrubbed, Instant::now() + TIMEOUT);
    sentences
}

/// Waits until no other process cleans up. That process has claimed the job and restores tunables; a scrub that starts
/// meanwhile would be refused, or would take partly restored tunables for the array's own.
fn wait_for_others(store: &JobStore, is_scrubbed: impl Fn(&str) -> bool, until: Instant) {
    let is_tidied = |work: &WorkSummary| {
        let found = store.find::<Checkpoint>(&work.key);
        work.owner != *store.owner()
            && store.liveness(&work.owner) == OwnerLiveness::Alive
            && matches!(found, Ok(Some(work)) if work.document.old.is_some())
            && !is_scrubbed(&work.key)
    };
    let any = || {
        let works = store.ledger().unfinished::<Checkpoint>();
        works.is_ok_and(|works| works.iter().any(is_tidied))
    };
    while any() && Instant::now() < until {
        sleep(POLL);
    }
}

/// Restores the tunables that one killed scrub has left. The job remains, for the next start to continue.
fn restore_one(
    job: OwnedJob<Checkpoint, &mut JobStore>,
    mut checkpoint: Checkpoint,
    root: &Root,
    devices: &Devices,
) -> Vec<String> {
    let intent = checkpoint.rewriting.take();
    let mut sentences: Vec<String> = intent.iter().map(repair::cut_off).collect();
    // A reboot resets all tunables.
    let is_same_boot = process::boot_id(root).is_ok_and(|boot| boot == checkpoint.boot);
    let array = array_of(job.key(), root, devices).filter(|_| is_same_boot);
    if let (Some(old), Some(array)) = (checkpoint.old.take(), array) {
        let node = array.node().display().to_string();
        match by_now(&old, job.key(), &Sync::of(root, array), array.number) {
            Ok(back) if back.is_all() => sentences.push(format!(
                "The tunables of {node} are as they were before the scrub that was killed."
            )),
            Ok(back) => {
                sentences.push(format!("Of {node}, {}.", back.left().join("; ")));
                checkpoint.old = match back.failed.is_empty() {
                    true => back.later,
                    false => Some(old),
                };
            }
            Err(why) => {
                sentences.push(format!("{node}: {why}."));
                checkpoint.old = Some(old);
            }
        }
    }
    if let Err(error) = job.release(&checkpoint) {
        sentences.push(format!("The ledger could not be written: {error}."));
    }
    sentences
}

/// Restores the tunables of a killed scrub, unless its guard has done so: later changes are not the scrub's.
fn by_now(
    old: &SavedTunables,
    uuid: &str,
    sync: &Sync,
    array: DeviceNumber,
) -> Result<RestoreResult, String> {
    guard::wait_for_others(array)?;
    Ok(match guard::are_back(uuid) {
        true => RestoreResult::default(),
        false => old.put_back(sync, RestoredBy::Another),
    })
}

/// The array with this UUID, under its current name.
fn array_of<'a>(uuid: &str, root: &Root, devices: &'a Devices) -> Option<&'a Device> {
    devices
        .iter()
        .filter(|device| matches!(device.kind, BlockDeviceKind::Raid { .. }))
        .find(|device| Sync::of(root, device).uuid().as_deref() == Some(uuid))
}

/// Settings of a start.
#[derive(Clone, Debug)]
struct StartRequest {
    /// True if mismatches are to be rewritten.
    repairs: bool,
    /// True if earlier progress is discarded.
    anew: bool,
    /// The tunables before the scrub changes them.
    old: SavedTunables,
}

/// Starts the scrub of an array whose lock this process holds. Another process that has claimed the job meanwhile, such
/// as `--status`, only restores tunables and ends in a moment: it is waited for, and the tunables are read again.
/// Returns the scrub, and the tunables before the start.
///
/// # Errors
/// When the tunables cannot be read, and when another process holds the job until the time limit or a reason to stop.
pub(crate) fn start_when_free(
    target: &Target,
    repairs: bool,
    anew: bool,
    stop: &Stop,
    context: &Context,
) -> Result<(StartedScrub, SavedTunables), Failure> {
    let until = Instant::now() + TIMEOUT;
    loop {
        let old = SavedTunables::read(&target.sync, repairs).map_err(Failure::refused)?;
        let ask = StartRequest {
            repairs,
            anew,
            old: old.clone(),
        };
        match start(target, &ask, context) {
            Err(Failure::Refused(_)) if Instant::now() < until && stop.cause().is_none() => {
                sleep(POLL);
            }
            started => return Ok((started?, old)),
        }
    }
}

/// Starts the scrub of an array. The tunables are stored in the ledger before any is changed.
///
/// # Errors
/// When another process holds the job.
fn start(target: &Target, ask: &StartRequest, context: &Context) -> Result<StartedScrub, Failure> {
    let fresh = Checkpoint {
        path: target.path(),
        level: target.level.into(),
        shape: target.sync.shape(),
        members: target.identities(),
        moved: None,
        repairs: ask.repairs,
        done: 0,
        of: target.end.0,
        mismatches: 0,
        places: Ranges::new(),
        rewriting: None,
        repaired: None,
        began: Timestamp::now(),
        ran_s: 0.0,
        starts: 1,
        old: Some(ask.old.clone()),
        errors: Errors::default(),
        boot: process::boot_id(&context.root).unwrap_or_default(),
    };
    let interrupted = ask.old.interrupted_check_note(&target.sync);
    let mut notes: Vec<String> = interrupted.into_iter().collect();
    let mut last = None;
    let request = JobRequest {
        key: &target.uuid,
        anew: ask.anew,
        from: TAKEOVER,
        interval: CheckpointInterval::every(INTERVAL),
    };
    let started = job::start(request, fresh, context, |previous, fresh| {
        last = resume(ask, &previous, fresh, &mut notes);
    })?;
    notes.extend(started.not_written.map(|why| {
        format!(
            "Its progress cannot be saved, so that after an interruption it starts over, and \
             only its guard puts the tunables back after a kill: {why}."
        )
    }));
    Ok(StartedScrub {
        is_known: last.is_some() && started.writer.writes(),
        checkpoint: started.checkpoint,
        writer: started.writer,
        notes,
    })
}

/// Adds the progress of an earlier checkpoint to a fresh one. Returns the rate of the earlier scrub.
fn resume(
    ask: &StartRequest,
    previous: &Previous<'_, Checkpoint>,
    fresh: &mut Checkpoint,
    notes: &mut Vec<String>,
) -> Option<f64> {
    match previous {
        Previous::Unfinished(work) => {
            take_over(ask, &work.document, fresh, notes);
            work.document.rate()
        }
        Previous::Finished(work) => {
            let rate = work.document.rate();
            notes.extend(rate.map(|rate| {
                let seconds = Sectors(fresh.of).bytes().0 as f64 / rate;
                format!(
                    "The last scrub took {} in all, at {}.",
                    ui::units::span(seconds),
                    ui::units::rate(rate)
                )
            }));
            rate
        }
        Previous::Unreadable(error) => {
            notes.push(format!(
                "Earlier progress is not known, so the whole array is checked: {error}."
            ));
            None
        }
    }
}

/// Takes over the progress of an earlier checkpoint, if it is of the same work.
fn take_over(
    ask: &StartRequest,
    before: &Checkpoint,
    checkpoint: &mut Checkpoint,
    notes: &mut Vec<String>,
) {
    if ask.anew || before.done == 0 {
        return;
    }
    if let Some(past) = before.is_past(checkpoint, Timestamp::now()) {
        notes.push(format!("It was begun before {past}, and starts over."));
        return;
    }
    notes.push(format!(
        "It resumes at {}; {} mismatches were found until there (--anew would start over).",
        ui::format::percent(before.share()),
        before.mismatches
    ));
    checkpoint.done = before.done;
    checkpoint.moved = before.moved;
    checkpoint.mismatches = before.mismatches;
    checkpoint.places = before.places.clone();
    checkpoint.began = before.began;
    checkpoint.ran_s = before.ran_s;
    checkpoint.starts = before.starts.saturating_add(1);
    checkpoint.errors = before.errors.clone();
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    use super::*;
    use crate::checkpoint::example;

    #[test]
    fn another_process_that_tidies_up_is_waited_for_and_a_scrub_that_runs_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let context = Context::of_process(Some(folder.path().join("ledger.db")));
        let mut store = JobStore::open(&context).unwrap();
        let mut other = Command::new("sleep").arg("600").spawn().unwrap();
        let seen = process::of(&Root::host(), other.id()).unwrap().unwrap();
        let mut owner = store.owner().clone();
        (owner.pid, owner.started) = (seen.pid, seen.started);
        let checkpoint = Checkpoint {
            old: Some(SavedTunables {
                settings: Vec::new(),
                repairs: false,
            }),
            ..example()
        };
        let begun = store
            .ledger_mut()
            .begin_work("a", &owner, &checkpoint, |_| OwnerLiveness::Alive);
        begun.unwrap();

        let far = Instant::now() + Duration::from_secs(600);
        wait_for_others(&store, |uuid| uuid == "a", far);
        wait_for_others(&store, |_| false, Instant::now());
        let is_killed = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                sleep(POLL * 3);
                is_killed.store(true, SeqCst);
                other.kill().unwrap();
            });
            wait_for_others(&store, |_| false, far);
            assert!(is_killed.load(SeqCst));
        });
        other.wait().unwrap();
    }
}
