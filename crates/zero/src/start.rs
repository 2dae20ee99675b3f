//! Start of zeroing: all reasons against it in one error; then from the beginning, or from the last checkpoint.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::anyhow;
use jiff::Timestamp;
use job::{
    CheckpointInterval, CheckpointWriter, EndState, JobRequest, JobStore, OwnedJob, Started,
    Takeover,
};
use ledger::{OwnerLiveness, StoredWork};
use linux::block::{DeviceNumber, Devices};
use linux::consent::{Consent, open_for_destroying};
use linux::{Root, offload};
use record::{Ranges, RunId};

use super::checkpoint::{Checkpoint, Disk, Method};
use super::place::{ClaimedDisk, MAX_LOGICAL_BLOCK};
use super::report::dry_run_text;
use super::sample::read_back;
use crate::args::ZeroArgs;
use array::check::consents;
use array::host::number_at;
use domain::plan_binding;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

/// Interval between checkpoints.
const INTERVAL: Duration = Duration::from_secs(2);

/// A zeroing that is ready to begin or to continue.
pub(crate) struct PreparedZeroing {
    /// The disks, claimed to the end.
    pub places: Vec<ClaimedDisk>,
    /// Their state.
    pub checkpoint: Checkpoint,
    /// Writer of the checkpoint.
    pub writer: CheckpointWriter<Checkpoint>,
}

/// Checks the disks and claims them; `None` after a dry run, which only prints the plan.
///
/// # Errors
/// All reasons why the disks cannot be zeroed.
pub(crate) fn start(
    args: &ZeroArgs,
    context: &mut Context,
    interrupt: &AtomicBool,
) -> Result<Option<PreparedZeroing>, Failure> {
    let mut problems = Vec::new();
    let consents = consents(&args.destroy, &args.devices, "disks", &mut problems);
    let stamps = stamps(&earlier(open(context).as_ref())?);
    let consents: Vec<Consent> = consents
        .into_iter()
        .map(|consent| consent.zeroing(stamps.clone()))
        .collect();
    let devices = Devices::read(&context.root).refused()?;
    let places = claim(args, &context.root, &devices, &consents, &mut problems);
    if !problems.is_empty() {
        return Err(refused(&problems));
    }
    // Read again: all disks are claimed now, so that their names no longer change.
    let now = Devices::read(&context.root).refused()?;
    let seen = places
        .iter()
        .map(|place| place.identity(&now, &context.root))
        .collect::<Result<Vec<_>, String>>()
        .map_err(Failure::refused)?;
    let store = open(context);
    let earlier = earlier(store.as_ref())?;
    let began = Timestamp::now();
    let id = RunId::new(began, u64::from(std::process::id()));
    let mut found = Vec::new();
    for (at, (place, path)) in places.iter().zip(&args.devices).enumerate() {
        let stamp = format!("{id}/{}", at + 1);
        let fresh = fresh(place, path, &devices, method(args), stamp);
        match resume_or_begin(place, fresh, &earlier, args.anew, context, interrupt)? {
            Ok(one) => found.push(one),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(refused(&problems));
    }
    let (disks, over): (Vec<_>, Vec<_>) = found.into_iter().map(|one| (one.disk, one.over)).unzip();
    if args.dry_run {
        let content: Vec<Vec<String>> = places.iter().map(ClaimedDisk::content).collect();
        context.print(&dry_run_text(&disks, &seen, &content, args.json))?;
        return Ok(None);
    }
    let request = JobRequest {
        key: id.as_str(),
        anew: false,
        from: Takeover::FromDead,
        interval: CheckpointInterval::every(INTERVAL),
    };
    let started = job::start(request, Checkpoint { began, disks }, context, |_, _| ())?;
    if let Some(why) = &started.not_written {
        context.notice(&format!(
            "disksmith: checkpoints cannot be written ({why}); zeroing continues. After a signal, a \
             kill or a power cut it cannot go on, and would be begun anew."
        ));
    }
    let Started {
        checkpoint, writer, ..
    } = match store.filter(|_| started.writer.writes()) {
        Some(store) => take_over(started, &over.concat(), &earlier, store)?,
        None => started,
    };
    Ok(Some(PreparedZeroing {
        places,
        checkpoint,
        writer,
    }))
}

/// The ledger, if there is one that can be opened.
fn open(context: &Context) -> Option<JobStore> {
    JobStore::open_if_there(context).ok().flatten()
}

fn method(args: &ZeroArgs) -> Method {
    match (args.discard, args.write_zeroes) {
        (true, _) => Method::Discard,
        (_, true) => Method::WriteZeroes,
        _ => Method::Writes,
    }
}

fn refused(problems: &[String]) -> Failure {
    Failure::refused_for("nothing is zeroed", problems)
}

/// Claims all disks. Reasons against any of them are added to `problems`.
fn claim(
    args: &ZeroArgs,
    root: &Root,
    devices: &Devices,
    consents: &[Consent],
    problems: &mut Vec<String>,
) -> Vec<ClaimedDisk> {
    let mut seen: Vec<(DeviceNumber, &Path)> = Vec::new();
    let mut places = Vec::new();
    for path in &args.devices {
        if let Some(number) = number_at(root, devices, path) {
            if let Some((_, first)) = seen.iter().find(|(known, _)| *known == number) {
                problems.push(if *first == path {
                    format!("{} is named twice", path.display())
                } else {
                    format!(
                        "{} and {} are the same device; name it once",
                        first.display(),
                        path.display()
                    )
                });
                continue;
            }
            seen.push((number, path));
        }
        let claimed =
            open_for_destroying(root, path, consents).map_err(|refusal| refusal.to_string());
        let place = claimed
            .and_then(|claim| plan_binding::check(&args.planned, &claim, root).map(|()| claim))
            .and_then(ClaimedDisk::of)
            .and_then(|place| checked_place(place, path, method(args), root, devices));
        match place {
            Ok(place) => places.push(place),
            Err(problem) => problems.push(problem),
        }
    }
    places
}

/// The disk, if it can be zeroed by this method; otherwise the reason, as a sentence.
fn checked_place(
    place: ClaimedDisk,
    path: &Path,
    method: Method,
    root: &Root,
    devices: &Devices,
) -> Result<ClaimedDisk, String> {
    let shown = path.display();
    if place.size().0 == 0 {
        return Err(format!("{shown} has a size of 0: there is nothing to zero"));
    }
    let device = devices.get(place.number);
    let block = device.and_then(|device| device.logical_block);
    if let Some(block) = block.filter(|block| *block > MAX_LOGICAL_BLOCK) {
        return Err(format!(
            "{shown} takes nothing smaller than {block} (its logical block), and zero tries bad \
             places again in pieces of {MAX_LOGICAL_BLOCK}; use blkdiscard --zeroout"
        ));
    }
    if let Some(block) =
        block.filter(|block| block.0 > 0 && !place.size().0.is_multiple_of(block.0))
    {
        return Err(format!(
            "{shown} has {} bytes, which is no multiple of its logical block of {block}: its end \
             cannot be written past the page cache; give it a size that is one",
            place.size().0
        ));
    }
    let offered = device.is_some_and(|device| offload::is_offered(root, device));
    if method != Method::Writes && !offered {
        return Err(format!(
            "{shown} does not zero by itself (its queue/write_zeroes_max_bytes is 0); leave out{}, \
             and zeros are written",
            method.option()
        ));
    }
    Ok(place)
}

/// A disk of which nothing is zeroed yet.
fn fresh(
    place: &ClaimedDisk,
    path: &Path,
    devices: &Devices,
    method: Method,
    stamp: String,
) -> Disk {
    let device = devices.get(place.number);
    let name = device.map_or_else(|| place.number.to_string(), |device| device.name.clone());
    Disk {
        model: device.and_then(|device| device.model.clone()),
        serial: device.and_then(|device| device.serial.clone()),
        method,
        ..Disk::fresh(stamp, path.to_path_buf(), name, place.size())
    }
}

/// The unfinished zeroings of this host in the ledger, the newest first.
fn earlier(store: Option<&JobStore>) -> Result<Vec<StoredWork<Checkpoint>>, Failure> {
    let Some(store) = store else {
        return Ok(Vec::new());
    };
    let works = store.unfinished::<Checkpoint>(|owner| owner != OwnerLiveness::Elsewhere);
    works.refused()?.collect::<Result<_, _>>().refused()
}

/// The stamps of these zeroings. A disk that carries another stamp counts as one with unknown data.
fn stamps(earlier: &[StoredWork<Checkpoint>]) -> Vec<String> {
    let disks = earlier.iter().flat_map(|one| &one.document.disks);
    disks.map(|disk| disk.stamp.clone()).collect()
}

/// A disk of this command, and the earlier zeroings that end with it.
struct FoundDisk {
    disk: Disk,
    /// Stamps of earlier zeroings that are not continued any more.
    over: Vec<String>,
}

/// Decides whether the zeroing of a disk is resumed or begun. The inner error is the reason why it may be neither: an
/// unfinished zeroing has the same path, and this disk is another one or was written to since. The user's consent may
/// then apply to another disk, since names change at a reboot.
fn resume_or_begin(
    place: &ClaimedDisk,
    fresh: Disk,
    earlier: &[StoredWork<Checkpoint>],
    anew: bool,
    context: &Context,
    interrupt: &AtomicBool,
) -> Result<Result<FoundDisk, String>, Failure> {
    let shown = fresh.path.display().to_string();
    let disks = || earlier.iter().flat_map(|one| &one.document.disks);
    let begun: Vec<&Disk> = disks()
        .filter(|disk| disk.path == fresh.path && !disk.zeroed.is_empty() && !disk.unstamped)
        .collect();
    let stamp = place.stamp().refused()?;
    let known = disks().find(|disk| stamp.as_ref() == Some(&disk.stamp));
    if anew {
        let over = begun.into_iter().chain(known);
        let over = over.map(|disk| disk.stamp.clone()).collect();
        return Ok(Ok(FoundDisk { disk: fresh, over }));
    }
    if known.is_none() && !begun.is_empty() {
        return Ok(Err(format!(
            "{shown} is not the disk that was begun as {shown} and is not done, or somebody has \
             written to it; look which disk it is, and if it is to be zeroed from its beginning, \
             say --anew"
        )));
    }
    if known.is_none() && stamp.is_some() {
        context.notice(&format!(
            "disksmith: {shown} was partly zeroed before, and is zeroed from the beginning: this ledger does \
             not know how far."
        ));
    }
    let disk = resumed_disk(place, fresh, known, context, interrupt)?;
    let over = known.filter(|known| known.stamp != disk.stamp);
    let over = over.map(|disk| disk.stamp.clone()).into_iter().collect();
    Ok(Ok(FoundDisk { disk, over }))
}

/// The disk in its recorded state, if it is in the ledger and unchanged; otherwise `fresh`.
///
/// # Errors
/// When a signal arrives meanwhile.
fn resumed_disk(
    place: &ClaimedDisk,
    fresh: Disk,
    known: Option<&Disk>,
    context: &Context,
    interrupt: &AtomicBool,
) -> Result<Disk, Failure> {
    let Some(known) = known else {
        return Ok(fresh);
    };
    let anew = |why: String| {
        context.notice(&format!(
            "disksmith: {} was partly zeroed before, and is zeroed from the beginning: {why}.",
            fresh.path.display()
        ));
    };
    if known.method != fresh.method {
        anew(format!("then it was zeroed by {}", known.method.name()));
        return Ok(fresh);
    }
    if known.size != fresh.size {
        anew(format!("it had {} then", known.size));
        return Ok(fresh);
    }
    let behind = known.zeroed.subtract(&Ranges::from(place.stamped()));
    let seed = u64::from(known.starts) ^ known.zeroed.total().0;
    let back = read_back(place, &behind, seed, &context.root, interrupt);
    let back = back.ok_or_else(|| {
        let path = fresh.path.display();
        Failure::Midway(anyhow!(
            "stopped by a signal while a sample of {path} was read back. Nothing was written; the same command continues."
        ))
    })?;
    if let (true, Some(why)) = (back.not_zero.is_empty(), &back.why) {
        anew(format!("what was zeroed cannot be read ({why})"));
        return Ok(fresh);
    }
    if !back.is_well() {
        anew(
            "what was zeroed is not zero any more, so another program has written to it".to_owned(),
        );
        return Ok(fresh);
    }
    Ok(Disk {
        path: fresh.path,
        name: fresh.name,
        model: fresh.model,
        serial: fresh.serial,
        starts: known.starts + 1,
        // Writes may have failed because the disk was detached for a while: they are tried again.
        failed: Ranges::new(),
        why_failed: None,
        ..known.clone()
    })
}

/// Removes, from the earlier jobs, the disks that this job continues with and those whose stamps are in `over`. This
/// job remains separate: a command may continue with disks of several jobs, and leave others of them.
///
/// # Errors
/// When an earlier job cannot be claimed, since another process continues it.
fn take_over(
    started: Started<Checkpoint>,
    over: &[String],
    earlier: &[StoredWork<Checkpoint>],
    mut store: JobStore,
) -> Result<Started<Checkpoint>, Failure> {
    let is_taken = |disk: &Disk| {
        let now = started.checkpoint.disks.iter().map(|now| &now.stamp);
        now.chain(over).any(|stamp| *stamp == disk.stamp)
    };
    for one in earlier {
        if !one.document.disks.iter().any(is_taken) {
            continue;
        }
        let key = &one.summary.key;
        let claimed = OwnedJob::<Checkpoint, _>::claim(&mut store, key, Takeover::FromDead);
        let (old, work) = match claimed {
            Ok(claimed) => claimed,
            Err(error) => {
                // Nothing is overwritten yet: the job that was just begun is discarded.
                let ended = started.writer.end(&started.checkpoint, EndState::Discarded);
                ended.refused()?;
                return Err(error).refused();
            }
        };
        let mut left = work.document;
        left.disks.retain(|disk| !is_taken(disk));
        if left.disks.is_empty() {
            old.discard().refused()?;
        } else {
            // Another command may continue with the other disks now.
            old.release(&left).refused()?;
        }
    }
    Ok(started)
}
