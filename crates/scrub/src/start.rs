//! The ledger's part: what a killed scrub has left is put back, and a new one goes on where the
//! last one of its array was left.

use std::path::Path;

use jiff::Timestamp;
use ledger::{Claim, Error, Ledger, LongWork as _, Owner, OwnerLiveness, WorkError};
use linux::block::{DevNum, Device, Devices, Kind};
use linux::md::sync::Sync;
use linux::{Root, process};
use record::Ranges;

use super::health::Errors;
use super::kept::Kept;
use super::saved_tunables::{By, RestoreResult, SavedTunables};
use super::target::Target;
use super::{guard, rewrite};
use job::keeper::Keeper;
use job::process::ProcessIdentity;
use ui::context::Context;
use ui::exit::{Failure, sentence};

/// Where programs keep their settings.
const ETC: &str = "/etc";

/// A scrub that can go on.
pub(crate) struct Started {
    /// Where it stands.
    pub kept: Kept,
    /// What keeps that; `None` where it cannot be kept.
    pub keeper: Option<Keeper<Kept>>,
    /// Whether it is known how long the last one took.
    pub is_known: bool,
    /// What is to be said of it, in sentences.
    pub notes: Vec<String>,
}

/// The ledger, and who this process is in it.
pub(crate) struct Book {
    ledger: Ledger,
    here: ProcessIdentity,
}

impl Book {
    /// Opens the ledger; with `make` one is made where there is none.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(crate) fn open(context: &Context, make: bool) -> anyhow::Result<Option<Book>> {
        let ledger = if make {
            Some(context.open_ledger().map_err(Failure::error)?)
        } else {
            context.open_ledger_if_there().map_err(Failure::error)?
        };
        let here = ProcessIdentity::of_process(&context.root, Path::new(ETC))?;
        Ok(ledger.map(|ledger| Book { ledger, here }))
    }

    /// What is known of the scrub of an array, whether it is finished, and who is or was at it.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn of(&self, uuid: &str) -> ledger::Result<Option<ledger::Work<Kept>>> {
        self.ledger.work::<Kept>(uuid)
    }

    /// Opens the work of an array again whose check is done, to note what a repair is about to write.
    ///
    /// # Errors
    /// When the ledger cannot be written, or another process is at it.
    pub(crate) fn write(self, uuid: &str, kept: &Kept) -> anyhow::Result<Writing> {
        let Book { mut ledger, here } = self;
        let standing = Book::standing(&here);
        let work = ledger.work::<Kept>(uuid)?;
        let is_open = work.is_some_and(|work| work.summary.finished.is_none());
        let claim = if is_open {
            let (claim, _) = ledger.claim_work::<Kept>(uuid, here.owner(), &standing)?;
            ledger.keep_work(&claim, kept)?;
            claim
        } else {
            ledger.begin_work(uuid, here.owner(), kept, &standing)?
        };
        drop(standing);
        Ok(Writing { ledger, claim })
    }

    /// An array may move to another host with its members, so whoever was at it elsewhere is not
    /// any more. What this process has claimed to tidy up it may claim again.
    fn standing(here: &ProcessIdentity) -> impl Fn(&Owner) -> OwnerLiveness + '_ {
        |owner| match here.standing(owner) {
            OwnerLiveness::Alive if owner == here.owner() => OwnerLiveness::Dead,
            OwnerLiveness::Alive => OwnerLiveness::Alive,
            OwnerLiveness::Dead | OwnerLiveness::Elsewhere => OwnerLiveness::Dead,
        }
    }
}

/// The ledger, while a repair writes to members.
pub(crate) struct Writing {
    ledger: Ledger,
    claim: Claim<Kept>,
}

impl Writing {
    /// Keeps how it stands. When this returns, it is on the ledger's disk.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn keep(&mut self, kept: &Kept) -> anyhow::Result<()> {
        Ok(self.ledger.keep_work(&self.claim, kept)?)
    }

    /// Keeps how it stands in the end, as finished or not.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn end(mut self, kept: &Kept, finished: bool) -> anyhow::Result<()> {
        match finished {
            true => self.ledger.finish_work(self.claim, kept)?,
            false => self.ledger.keep_work(&self.claim, kept)?,
        }
        Ok(())
    }
}

/// Puts back what killed scrubs have left on this host, and says what was done, in sentences.
pub(crate) fn tidy(book: &mut Book, root: &Root, devices: &Devices) -> Vec<String> {
    let mut said = Vec::new();
    let works = match book.ledger.unfinished::<Kept>() {
        Ok(works) => works,
        Err(error) => {
            return vec![format!(
                "Whether a killed scrub has left something to put back is not known: {error}."
            )];
        }
    };
    for work in works {
        if book.here.standing(&work.owner) != OwnerLiveness::Dead {
            continue;
        }
        let turned = book.ledger.work::<Kept>(&work.key);
        let is_turned = matches!(&turned, Ok(Some(work)) if work.document.old.is_some());
        if !is_turned || !book.ledger.is_writable() {
            continue;
        }
        let claimed = book.ledger.claim_work::<Kept>(
            &work.key,
            book.here.owner(),
            Book::standing(&book.here),
        );
        match claimed {
            Ok((claim, work)) => said.extend(one(book, &claim, work.document, root, devices)),
            Err(error) => said.push(format!(
                "The scrub of {} that was killed could not be tidied up after: {error}.",
                work.key
            )),
        }
    }
    said
}

/// Puts back what one has left. The work stays, to be gone on with.
fn one(
    book: &mut Book,
    claim: &Claim<Kept>,
    mut kept: Kept,
    root: &Root,
    devices: &Devices,
) -> Vec<String> {
    let intent = kept.rewriting.take();
    let mut said: Vec<String> = intent.iter().map(rewrite::cut_off).collect();
    // A boot sets all tunables as they were.
    let is_same_boot = process::boot_id(root).is_ok_and(|boot| boot == kept.boot);
    let array = array_of(claim.key(), root, devices).filter(|_| is_same_boot);
    if let (Some(old), Some(array)) = (kept.old.take(), array) {
        let node = array.node().display().to_string();
        match by_now(&old, claim.key(), &Sync::of(root, array), array.number) {
            Ok(back) if back.is_all() => said.push(format!(
                "The tunables of {node} are as they were before the scrub that was killed."
            )),
            Ok(back) => {
                said.push(format!("Of {node}, {}.", back.left().join("; ")));
                kept.old = match back.failed.is_empty() {
                    true => back.later,
                    false => Some(old),
                };
            }
            Err(why) => {
                said.push(format!("{node}: {why}."));
                kept.old = Some(old);
            }
        }
    }
    if let Err(error) = book.ledger.keep_work(claim, &kept) {
        said.push(format!("The ledger could not be told: {error}."));
    }
    said
}

/// Puts the tunables of a killed scrub back, unless its guard has: what was set since is not its own.
fn by_now(
    old: &SavedTunables,
    uuid: &str,
    sync: &Sync,
    array: DevNum,
) -> Result<RestoreResult, String> {
    guard::wait_for_others(array)?;
    Ok(match guard::are_back(uuid) {
        true => RestoreResult::default(),
        false => old.put_back(sync, By::Another),
    })
}

/// The array of an id, as it is named now.
fn array_of<'a>(uuid: &str, root: &Root, devices: &'a Devices) -> Option<&'a Device> {
    devices
        .iter()
        .filter(|device| matches!(device.kind, Kind::Raid { .. }))
        .find(|device| Sync::of(root, device).uuid().as_deref() == Some(uuid))
}

/// What is asked of a start.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// Whether what differs is to be written anew.
    pub repairs: bool,
    /// Whether what was done before does not count.
    pub anew: bool,
    /// The tunables as they are, before they are turned.
    pub old: SavedTunables,
}

/// Starts the scrub of an array. The tunables are noted here, before anything turns them.
///
/// # Errors
/// When another process is at it. A ledger that cannot be used is no reason not to scrub.
pub(crate) fn start(target: &Target, ask: &Ask, context: &Context) -> Result<Started, Failure> {
    let mut kept = Kept {
        path: target.path(),
        level: target.level.clone(),
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
    let mut notes: Vec<String> = ask.old.midway(&target.sync).into_iter().collect();
    let mut is_known = false;
    let keeper = match with_ledger(target, ask, context, &mut kept, &mut notes) {
        Ok((keeper, known)) => {
            is_known = known;
            Some(keeper)
        }
        Err(error)
            if matches!(
                error.downcast_ref(),
                Some(Error::Work(WorkError::UnderWay { .. }))
            ) =>
        {
            return Err(Failure::Refused(error));
        }
        Err(error) => {
            notes.push(format!(
                "How far it is cannot be kept, so that after an interruption it begins from the start, \
                 and only its guard puts the tunables back after a kill: {}.", sentence(&error)
            ));
            None
        }
    };
    Ok(Started {
        kept,
        keeper,
        is_known,
        notes,
    })
}

/// What keeps it, and whether it is known how long the last one took.
fn with_ledger(
    target: &Target,
    ask: &Ask,
    context: &Context,
    kept: &mut Kept,
    notes: &mut Vec<String>,
) -> anyhow::Result<(Keeper<Kept>, bool)> {
    let Some(Book { mut ledger, here }) = Book::open(context, true)? else {
        anyhow::bail!("there is no ledger");
    };
    let standing = Book::standing(&here);
    let before = match ledger.work::<Kept>(&target.uuid) {
        Ok(before) => before,
        Err(error) => {
            notes.push(format!(
                "What was done before is not known, and all is checked: {error}."
            ));
            if ask.anew || matches!(error, Error::Work(WorkError::Unreadable { .. })) {
                ledger.remove_work(Kept::KIND, &target.uuid, &standing)?;
            }
            None
        }
    };
    let unfinished = before
        .as_ref()
        .filter(|work| work.summary.finished.is_none());
    let last = before.as_ref().and_then(|work| work.document.rate());
    if let Some(work) = unfinished {
        go_on(ask, &work.document, kept, notes);
    } else if let Some(rate) = last {
        let seconds = target.end.bytes().0 as f64 / rate;
        notes.push(format!(
            "The last scrub took {} in all, at {}.",
            ui::units::span(seconds),
            ui::units::rate(rate)
        ));
    }
    let claim = if unfinished.is_some() {
        let (claim, _) = ledger.claim_work::<Kept>(&target.uuid, here.owner(), &standing)?;
        ledger.keep_work(&claim, kept)?;
        claim
    } else {
        ledger.begin_work(&target.uuid, here.owner(), kept, &standing)?
    };
    drop(standing);
    Ok((Keeper::start(ledger, claim)?, last.is_some()))
}

/// Takes over what was done before, where it is of the same work.
fn go_on(ask: &Ask, before: &Kept, kept: &mut Kept, notes: &mut Vec<String>) {
    if ask.anew || before.done == 0 {
        return;
    }
    if let Some(past) = before.is_past(kept, Timestamp::now()) {
        notes.push(format!("It was begun before {past}, and begins anew."));
        return;
    }
    notes.push(format!(
        "It goes on at {} of the way, where it was left; {} mismatches were found until there (--anew \
         would begin from the start).",
        ui::words::percent(before.share()),
        before.mismatches
    ));
    kept.done = before.done;
    kept.moved = before.moved;
    kept.mismatches = before.mismatches;
    kept.places = before.places.clone();
    kept.began = before.began;
    kept.ran_s = before.ran_s;
    kept.starts = before.starts.saturating_add(1);
    kept.errors = before.errors.clone();
}
