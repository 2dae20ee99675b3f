//! How a zeroing starts: every reason not to in one answer, then anew, or where it was stopped.

use std::path::Path;

use jiff::Timestamp;
use ledger::{Claim, Ledger, Standing};
use linux::Root;
use linux::block::{DevNum, Devices};
use linux::consent::{Consent, open_for_destroying};
use linux::offload;
use record::{Histogram, Ranges, RunId};

use super::kept::{Disk, Method, Zeroing};
use super::pace::Pace;
use super::place::{LARGEST_BLOCK, Place};
use super::sample::read_back;
use crate::array::check::consents;
use crate::array::host::number_at;
use crate::cli::ZeroArgs;
use crate::context::Context;
use crate::failure::{Failure, Standing as _};
use crate::longwork::Here;

/// Where the machine's id is.
const ETC: &str = "/etc";

/// What came of starting.
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
    /// Where they stand.
    pub zeroing: Zeroing,
    /// Where that is kept.
    pub ledger: Ledger,
    /// The right to keep it.
    pub claim: Claim<Zeroing>,
}

/// Checks everything and claims the disks.
///
/// # Errors
/// Everything that speaks against it.
pub(crate) fn start(args: &ZeroArgs, context: &mut Context) -> Result<Start, Failure> {
    let mut problems = Vec::new();
    let consents = consents(&args.destroy, &args.devices, "disks", &mut problems);
    let devices = Devices::read(&context.root).refused()?;
    let places = claim(args, &context.root, &devices, &consents, &mut problems);
    if !problems.is_empty() {
        return Err(refused(&problems));
    }
    let here = Here::of_process(&context.root, Path::new(ETC)).refused()?;
    let ledger = if args.dry_run {
        context.open_ledger_if_there()?
    } else {
        Some(context.open_ledger()?)
    };
    let earlier = match &ledger {
        Some(ledger) => earlier(ledger, &here)?,
        None => Vec::new(),
    };
    let began = Timestamp::now();
    let id = RunId::new(began, u64::from(std::process::id()));
    let mut found = Vec::new();
    for (at, (place, path)) in places.iter().zip(&args.devices).enumerate() {
        let fresh = fresh(
            place,
            path,
            &devices,
            method(args),
            format!("{id}/{}", at + 1),
        );
        let stamp = place.stamp().refused()?;
        let known = stamp.as_deref().and_then(|stamp| find(&earlier, stamp));
        if stamp.is_some() && known.is_none() {
            context.tell(&format!(
                "disksmith: {} was zeroed in part before, which does not count: this ledger does not \
                 know how far.",
                path.display()
            ));
        }
        found.push(goes_on(place, fresh, known, context));
    }
    if args.dry_run {
        context.print(&rehearsal(&found))?;
        return Ok(Start::Rehearsed);
    }
    let Some(mut ledger) = ledger else {
        return Err(Failure::refused(
            "there is no ledger to keep in where it stands",
        ));
    };
    if !ledger.is_writable() {
        return Err(Failure::refused(format!(
            "{} may only be read, and zero must keep where it stands, so that it can go on after a \
             kill; name another ledger with --ledger",
            ledger.path().display()
        )));
    }
    let zeroing = Zeroing {
        began,
        disks: found,
    };
    let claim = begin(&id, &zeroing, &earlier, &mut ledger, &here)?;
    Ok(Start::Ready(Box::new(Ready {
        places,
        zeroing,
        ledger,
        claim,
    })))
}

fn method(args: &ZeroArgs) -> Method {
    match (args.discard, args.write_zeroes) {
        (true, _) => Method::Discard,
        (_, true) => Method::WriteZeroes,
        _ => Method::Writes,
    }
}

fn refused(problems: &[String]) -> Failure {
    match problems {
        [only] => Failure::refused(format!("nothing is zeroed: {only}")),
        all => {
            let lines: Vec<String> = all
                .iter()
                .map(|problem| format!("\n  - {}", problem.replace('\n', "\n  ")))
                .collect();
            Failure::refused(format!("nothing is zeroed:{}", lines.concat()))
        }
    }
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
        let place = open_for_destroying(root, path, consents)
            .map_err(|refusal| refusal.to_string())
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
    Disk {
        stamp,
        path: path.to_path_buf(),
        name: device.map_or_else(|| place.number.to_string(), |device| device.name.clone()),
        model: device.and_then(|device| device.model.clone()),
        serial: device.and_then(|device| device.serial.clone()),
        size: place.size(),
        method,
        zeroed: Ranges::new(),
        failed: Ranges::new(),
        why_failed: None,
        pace: Pace::new(),
        latency: Histogram::new(),
        passes: None,
        starts: 1,
    }
}

/// A zeroing that was stopped or killed.
struct Earlier {
    key: String,
    zeroing: Zeroing,
}

/// The zeroings of this host that are not finished, the newest first.
fn earlier(ledger: &Ledger, here: &Here) -> Result<Vec<Earlier>, Failure> {
    let mut all = Vec::new();
    for summary in ledger.unfinished::<Zeroing>().refused()? {
        if here.standing(&summary.owner) == Standing::Elsewhere {
            continue;
        }
        let work = ledger.work::<Zeroing>(&summary.key).refused()?;
        all.extend(work.map(|work| Earlier {
            key: summary.key,
            zeroing: work.document,
        }));
    }
    Ok(all)
}

fn find<'a>(earlier: &'a [Earlier], stamp: &str) -> Option<&'a Disk> {
    let disks = earlier.iter().flat_map(|one| &one.zeroing.disks);
    disks.into_iter().find(|disk| disk.stamp == stamp)
}

/// The disk as it was left, if it is known and still as it was; else the fresh one.
fn goes_on(place: &Place, fresh: Disk, known: Option<&Disk>, context: &Context) -> Disk {
    let Some(known) = known else {
        return fresh;
    };
    let anew = |why: String| {
        context.tell(&format!(
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
    let behind = known.zeroed.subtract(&Ranges::from(place.head()));
    let seed = u64::from(known.starts) ^ known.zeroed.total().0;
    let back = read_back(place, &behind, seed);
    if !back.is_well() {
        anew("what was zeroed is not zero any more, so somebody else has written to it".to_owned());
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

/// Keeps the work as begun, and ends the earlier ones that it goes on with.
fn begin(
    id: &RunId,
    zeroing: &Zeroing,
    earlier: &[Earlier],
    ledger: &mut Ledger,
    here: &Here,
) -> Result<Claim<Zeroing>, Failure> {
    let standing = |owner: &ledger::Owner| here.standing(owner);
    let goes_on = |disk: &Disk| zeroing.disks.iter().any(|now| now.stamp == disk.stamp);
    let mut taken = Vec::new();
    for one in earlier {
        if one.zeroing.disks.iter().any(goes_on) {
            let (claim, work) = ledger
                .claim_work::<Zeroing>(&one.key, here.owner(), standing)
                .refused()?;
            taken.push((claim, work.document));
        }
    }
    let claim = ledger
        .begin_work(id.as_str(), here.owner(), zeroing, standing)
        .refused()?;
    for (old, mut left) in taken {
        left.disks.retain(|disk| !goes_on(disk));
        if left.disks.is_empty() {
            ledger.drop_work(old).refused()?;
        } else {
            ledger.keep_work(&old, &left).refused()?;
        }
    }
    Ok(claim)
}

/// What would be done.
fn rehearsal(disks: &[Disk]) -> String {
    let mut text = String::from("Nothing was touched. This would be zeroed:\n");
    for disk in disks {
        let how = match disk.method {
            Method::Writes => "by writing zeros",
            Method::Discard => "by discarding",
            Method::WriteZeroes => "by write-zeroes",
        };
        let left = disk.left().total();
        text.push_str(&match left == disk.size {
            true => format!("  {}: {}, {how}\n", disk.path.display(), disk.size),
            false => format!(
                "  {}: the {left} that are left of {}, {how}\n",
                disk.path.display(),
                disk.size
            ),
        });
    }
    text
}

/// This command, which goes on with these disks.
pub(crate) fn again() -> String {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    words.join(" ")
}
