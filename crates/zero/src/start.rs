//! Start of zeroing: every reason not to in one answer, then anew, or where it was stopped.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use job::{CheckpointWriter, Interval, Job, Store, Takeover};
use ledger::OwnerLiveness;
use linux::block::{DevNum, Devices};
use linux::consent::{Consent, open_for_destroying};
use linux::{Root, offload};
use record::{Ranges, RunId};

use super::checkpoint::{Checkpoint, Disk, Method};
use super::place::{LARGEST_BLOCK, Place};
use super::report::rehearsal;
use super::sample::read_back;
use crate::args::ZeroArgs;
use array::check::consents;
use array::host::number_at;
use domain::plan_binding;
use ui::context::{Context, notice};
use ui::exit::{ExitClass as _, Failure, sentence};

/// The time between two checkpoints.
const INTERVAL: Duration = Duration::from_secs(2);

/// Result of starting.
pub(crate) enum Start {
    /// Nothing is to be done: what would be was shown.
    Rehearsed,
    /// It can begin.
    Ready(Box<Ready>),
}

/// A zeroing that can begin or go on.
pub(crate) struct Ready {
    /// The disks, claimed to the end.
    pub places: Vec<Place>,
    /// Their state.
    pub checkpoint: Checkpoint,
    /// The writer of that.
    pub writer: CheckpointWriter<Checkpoint>,
}

/// Checks everything and claims the disks.
///
/// # Errors
/// Everything that speaks against it.
pub(crate) fn start(args: &ZeroArgs, context: &mut Context) -> Result<Start, Failure> {
    let mut problems = Vec::new();
    let consents = consents(&args.destroy, &args.devices, "disks", &mut problems);
    let stamps = stamps(context)?;
    let consents: Vec<Consent> = consents
        .into_iter()
        .map(|consent| consent.zeroing(stamps.clone()))
        .collect();
    let devices = Devices::read(&context.root).refused()?;
    let places = claim(args, &context.root, &devices, &consents, &mut problems);
    if !problems.is_empty() {
        return Err(refused(&problems));
    }
    // Read once more: all disks are claimed now, and what is under their names stays there.
    let now = Devices::read(&context.root).refused()?;
    let seen = places
        .iter()
        .map(|place| place.seen(&now, &context.root))
        .collect::<Result<Vec<_>, String>>()
        .map_err(Failure::refused)?;
    let store = open(args, context);
    let earlier = match &store {
        Ok(Some(store)) => earlier(store)?,
        _ => Vec::new(),
    };
    let began = Timestamp::now();
    let id = RunId::new(began, u64::from(std::process::id()));
    let mut found = Vec::new();
    for (at, (place, path)) in places.iter().zip(&args.devices).enumerate() {
        let stamp = format!("{id}/{}", at + 1);
        let fresh = fresh(place, path, &devices, method(args), stamp);
        match look(place, fresh, &earlier, args.anew, context)? {
            Ok(one) => found.push(one),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(refused(&problems));
    }
    let (disks, over): (Vec<_>, Vec<_>) = found.into_iter().map(|one| (one.disk, one.over)).unzip();
    if args.dry_run {
        let content: Vec<Vec<String>> = places.iter().map(Place::content).collect();
        context.print(&rehearsal(&disks, &seen, &content, args.json))?;
        return Ok(Start::Rehearsed);
    }
    let checkpoint = Checkpoint { began, disks };
    let begun = match store {
        Ok(Some(store)) => begin(&id, &checkpoint, &over.concat(), &earlier, store)?,
        Ok(None) => Err("there is no ledger for checkpoints".to_owned()),
        Err(why) => Err(why),
    };
    let writer = begun.unwrap_or_else(|why| {
        notice(&format!(
            "disksmith: {why}; zeroing all the same. After a signal, a kill or a power cut it cannot \
             go on, and would be begun anew."
        ));
        CheckpointWriter::none()
    });
    Ok(Start::Ready(Box::new(Ready {
        places,
        checkpoint,
        writer,
    })))
}

/// The ledger, if there is one; else why it cannot be used, as a clause.
fn open(args: &ZeroArgs, context: &Context) -> Result<Option<Store>, String> {
    let opened = if args.dry_run {
        Store::open_if_there(context)
    } else {
        Store::open(context).map(Some)
    };
    opened.map_err(|failure| {
        format!(
            "the ledger cannot be opened ({})",
            sentence(&failure.error())
        )
    })
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

/// Claims all disks; what speaks against any of them goes to the problems.
fn claim(
    args: &ZeroArgs,
    root: &Root,
    devices: &Devices,
    consents: &[Consent],
    problems: &mut Vec<String>,
) -> Vec<Place> {
    let mut seen: Vec<(DevNum, &Path)> = Vec::new();
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
            .and_then(Place::of)
            .and_then(|place| suits(place, path, method(args), root, devices));
        match place {
            Ok(place) => places.push(place),
            Err(problem) => problems.push(problem),
        }
    }
    places
}

/// The place, if it can be zeroed in this way.
fn suits(
    place: Place,
    path: &Path,
    method: Method,
    root: &Root,
    devices: &Devices,
) -> Result<Place, String> {
    let shown = path.display();
    if place.size().0 == 0 {
        return Err(format!(
            "{shown} has no size: there is nothing in it to zero"
        ));
    }
    let device = devices.get(place.number);
    let block = device.and_then(|device| device.logical_block);
    if let Some(block) = block.filter(|block| *block > LARGEST_BLOCK) {
        return Err(format!(
            "{shown} takes nothing smaller than {block} (its logical block), and zero tries bad \
             places again in pieces of {LARGEST_BLOCK}; use blkdiscard --zeroout"
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
fn fresh(place: &Place, path: &Path, devices: &Devices, method: Method, stamp: String) -> Disk {
    let device = devices.get(place.number);
    let name = device.map_or_else(|| place.number.to_string(), |device| device.name.clone());
    Disk {
        model: device.and_then(|device| device.model.clone()),
        serial: device.and_then(|device| device.serial.clone()),
        method,
        ..Disk::fresh(stamp, path.to_path_buf(), name, place.size())
    }
}

/// A zeroing that was stopped or killed.
struct Earlier {
    key: String,
    checkpoint: Checkpoint,
}

/// The zeroings of this host that are not finished, the newest first.
fn earlier(store: &Store) -> Result<Vec<Earlier>, Failure> {
    let mut all = Vec::new();
    for summary in store.unfinished::<Checkpoint>().refused()? {
        if store.liveness(&summary.owner) == OwnerLiveness::Elsewhere {
            continue;
        }
        let work = store.find::<Checkpoint>(&summary.key).refused()?;
        all.extend(work.map(|work| Earlier {
            key: summary.key,
            checkpoint: work.document,
        }));
    }
    Ok(all)
}

/// The stamps of the zeroings of this host that are not finished, for all that the ledger tells: with none, a disk
/// that carries a stamp carries data of an unknown kind.
fn stamps(context: &Context) -> Result<Vec<String>, Failure> {
    let Ok(Some(store)) = Store::open_if_there(context) else {
        return Ok(Vec::new());
    };
    let disks = earlier(&store)?;
    let disks = disks.into_iter().flat_map(|one| one.checkpoint.disks);
    Ok(disks.map(|disk| disk.stamp).collect())
}

/// A disk of this command, and what is over with it.
struct Found {
    disk: Disk,
    /// The stamps of earlier zeroings that nobody goes on with any more.
    over: Vec<String>,
}

/// Decides whether a disk is resumed or begun. The inner error says why it may be neither: the path was that
/// of a disk which was begun and is not done, and this is another one, or has been written to. What was
/// consented to then was another disk, since names change with a reboot.
fn look(
    place: &Place,
    fresh: Disk,
    earlier: &[Earlier],
    anew: bool,
    context: &Context,
) -> Result<Result<Found, String>, Failure> {
    let shown = fresh.path.display().to_string();
    let disks = || earlier.iter().flat_map(|one| &one.checkpoint.disks);
    let begun: Vec<&Disk> = disks()
        .filter(|disk| disk.path == fresh.path && !disk.zeroed.is_empty() && !disk.unstamped)
        .collect();
    let stamp = place.stamp().refused()?;
    let known = disks().find(|disk| stamp.as_ref() == Some(&disk.stamp));
    if anew {
        let over = begun.into_iter().chain(known);
        let over = over.map(|disk| disk.stamp.clone()).collect();
        return Ok(Ok(Found { disk: fresh, over }));
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
            "disksmith: {shown} was zeroed in part before, which does not count: this ledger does \
             not know how far."
        ));
    }
    let disk = goes_on(place, fresh, known, context);
    let over = known.filter(|known| known.stamp != disk.stamp);
    let over = over.map(|disk| disk.stamp.clone()).into_iter().collect();
    Ok(Ok(Found { disk, over }))
}

/// The disk as it was left, if it is known and still as it was; else the fresh one.
fn goes_on(place: &Place, fresh: Disk, known: Option<&Disk>, context: &Context) -> Disk {
    let Some(known) = known else {
        return fresh;
    };
    let anew = |why: String| {
        context.notice(&format!(
            "disksmith: {} was zeroed in part before, which does not count: {why}.",
            fresh.path.display()
        ));
    };
    if known.method != fresh.method {
        anew(format!("then it was zeroed by {}", known.method.word()));
        return fresh;
    }
    if known.size != fresh.size {
        anew(format!("it had {} then", known.size));
        return fresh;
    }
    let behind = known.zeroed.subtract(&Ranges::from(place.stamped()));
    let seed = u64::from(known.starts) ^ known.zeroed.total().0;
    let back = read_back(place, &behind, seed);
    if let (true, Some(why)) = (back.not_zero.is_empty(), &back.why) {
        anew(format!("what was zeroed cannot be read ({why})"));
        return fresh;
    }
    if !back.is_well() {
        anew(
            "what was zeroed is not zero any more, so another program has written to it".to_owned(),
        );
        return fresh;
    }
    Disk {
        path: fresh.path,
        name: fresh.name,
        model: fresh.model,
        serial: fresh.serial,
        starts: known.starts + 1,
        // What failed then may have failed because the disk was away.
        failed: Ranges::new(),
        why_failed: None,
        ..known.clone()
    }
}

/// Begins the job, and ends the earlier ones that it goes on with, and what is `over`. The inner error is a clause:
/// why no checkpoints can be written.
fn begin(
    id: &RunId,
    checkpoint: &Checkpoint,
    over: &[String],
    earlier: &[Earlier],
    store: Store,
) -> Result<Result<CheckpointWriter<Checkpoint>, String>, Failure> {
    if !store.ledger().is_writable() {
        let path = store.ledger().path().display();
        return Ok(Err(format!("the ledger {path} may only be read")));
    }
    let is_taken = |disk: &Disk| {
        let now = checkpoint.disks.iter().map(|now| &now.stamp);
        now.chain(over).any(|stamp| *stamp == disk.stamp)
    };
    let unwritable = |error: String| format!("the ledger cannot be written ({error})");
    let mut job = match Job::begin(store, id.as_str(), checkpoint, Takeover::FromDead) {
        Ok(job) => job,
        Err(error) => return Ok(Err(unwritable(error.to_string()))),
    };
    for one in earlier {
        if !one.checkpoint.disks.iter().any(is_taken) {
            continue;
        }
        let claimed = Job::<Checkpoint, _>::claim(job.store_mut(), &one.key, Takeover::FromDead);
        let (mut old, work) = match claimed {
            Ok(claimed) => claimed,
            Err(error) => {
                // Nothing is touched yet; what was begun here a moment ago is not there for anybody.
                job.discard().refused()?;
                return Err(error).refused();
            }
        };
        let mut left = work.document;
        left.disks.retain(|disk| !is_taken(disk));
        if left.disks.is_empty() {
            old.discard().refused()?;
        } else {
            old.save(&left).refused()?;
        }
    }
    let writer = CheckpointWriter::start(job, Interval::every(INTERVAL));
    Ok(writer.map_err(|error| unwritable(error.to_string())))
}
