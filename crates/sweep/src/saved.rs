//! Saved sweeps: showing one again, and abandoning one.

use std::path::PathBuf;

use anyhow::anyhow;
use job::{JobStore, LAST_JOB_WORD, OwnedJob, Takeover, named};
use ledger::{Ledger, LongWork as _};
use linux::block::Devices;
use linux::{process, remedy};
use serde::Serialize;

use super::answer::{self, answer};
use super::checkpoint::Checkpoint;
use super::record::{SweepRecord, SweptVolume};
use super::resume::take_down;
use crate::args::SweepArgs;
use array::programs::Programs;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::output::OutputFile;

/// Shows a sweep again.
pub(crate) fn show(
    args: &SweepArgs,
    word: &str,
    page: Option<&OutputFile>,
    context: &mut Context,
) -> Outcome {
    let ledger = context.open_ledger_or_empty()?;
    let record = record(&ledger, word)?;
    answer(args, page, context, &record, &ledger)
}

/// The page of a sweep, for an HTTP server.
///
/// # Errors
/// When it is not in the ledger, or cannot be read.
pub fn report_page(ledger: &Ledger, word: &str) -> Result<Vec<u8>, Failure> {
    answer::page(&record(ledger, word)?, ledger).midway()
}

/// The document of a sweep.
///
/// # Errors
/// When it is not in the ledger, or cannot be read.
pub fn document(ledger: &Ledger, word: &str) -> Result<String, Failure> {
    Ok(answer::document(&record(ledger, word)?))
}

fn record(ledger: &Ledger, word: &str) -> Result<SweepRecord, Failure> {
    let key = find(ledger, word, false)?;
    match ledger.work::<Checkpoint>(&key).refused()? {
        Some(work) => Ok(work.document.record),
        None => Err(Failure::refused(format!(
            "the sweep {key} was removed just now"
        ))),
    }
}

/// Takes down the layout of an unfinished sweep, and saves it as finished.
pub(crate) fn abandon(
    args: &SweepArgs,
    word: &str,
    context: &mut Context,
    programs: &mut dyn Programs,
) -> Outcome {
    let store = JobStore::open(context)?;
    let key = find(store.ledger(), word, true)?;
    // Only the user can know that a sweep of another host or container no longer runs, and confirms it by its full id.
    let from = match word == key {
        true => Takeover::WithTarget,
        false => Takeover::FromDead,
    };
    let (job, work) = OwnedJob::claim(store, &key, from).refused()?;
    let mut checkpoint: Checkpoint = work.document;
    let gone = locate(&mut checkpoint, context)?;
    let paths = checkpoint.record.settings.paths();
    let missing: Vec<String> = checkpoint.underway.as_ref().map_or_else(Vec::new, |underway| {
        let members = gone.iter().filter(|at| **at < underway.members);
        let one = |at: &usize| {
            let path = paths.get(*at)?.display();
            Some(format!(
                "the disk that was {path} cannot be found; if it returns it may carry a superblock of \
                 the array {} or the file system {}, which wipefs --all erases",
                underway.array, underway.fs
            ))
        };
        members.filter_map(one).collect()
    });
    take_down(&mut checkpoint, &paths, context, programs)?;
    checkpoint.record.given_up = true;
    job.finish(&checkpoint).midway()?;
    if !missing.is_empty() {
        return Err(Failure::Midway(anyhow!(
            "the sweep {key} is given up. Left: {}",
            missing.join("; ")
        )));
    }
    context.print(&given_up(&key, args.json))?;
    Ok(CommandEnd::Done)
}

/// Body of the document of `sweep --abandon --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AbandonedBody<'a> {
    /// The sweep's key in the ledger.
    pub abandoned: &'a str,
}

fn given_up(key: &str, json: bool) -> String {
    if json {
        return ui::json::document("sweep", &AbandonedBody { abandoned: key });
    }
    format!(
        "The sweep {key} is given up, and nothing is left of it on its devices. What it measured is \
         kept: {}\n",
        remedy::command(&format!("sweep --show {key}"))
    )
}

/// Updates the names of a sweep's volumes. Returns the indices of those that cannot be found.
fn locate(checkpoint: &mut Checkpoint, context: &Context) -> Result<Vec<usize>, Failure> {
    let devices = Devices::read(&context.root).refused()?;
    let same_boot = process::boot_id(&context.root).refused()? == checkpoint.boot;
    let mut gone = Vec::new();
    for (at, volume) in checkpoint.record.settings.devices.iter_mut().enumerate() {
        match now(volume, &devices, context, same_boot) {
            Some(path) => volume.path = path,
            None => gone.push(at),
        }
    }
    Ok(gone)
}

/// Current path of a volume.
fn now(
    volume: &SweptVolume,
    devices: &Devices,
    context: &Context,
    same_boot: bool,
) -> Option<PathBuf> {
    let at_path = devices.at_path(&context.root, &volume.path);
    let Some(id) = &volume.id else {
        // Without an identity the path is used, as long as names cannot have changed.
        let found = at_path.filter(|device| same_boot && device.size == volume.size);
        return found.map(|_| volume.path.clone());
    };
    if at_path.is_some_and(|device| device.identity().as_ref() == Some(id)) {
        return Some(volume.path.clone());
    }
    let mut named = devices
        .iter()
        .filter(|device| device.identity().as_ref() == Some(id));
    let only = named.next().filter(|_| named.next().is_none());
    only.map(linux::block::Device::node)
}

/// The sweep that a word names: `last`, an id, or the beginning of one.
fn find(ledger: &Ledger, word: &str, unfinished: bool) -> Result<String, Failure> {
    let mut works = ledger.list_work(Some(Checkpoint::KIND)).refused()?;
    works.retain(|work| !unfinished || work.finished.is_none());
    let keys: Vec<&str> = works.iter().map(|work| work.key.as_str()).collect();
    let what = match unfinished {
        true => "unfinished sweep",
        false => "sweep",
    };
    Err(Failure::refused(match named(&keys, word) {
        Ok(Some(key)) => return Ok(key.to_owned()),
        Ok(None) if word == LAST_JOB_WORD => format!("the ledger has no {what}"),
        Ok(None) => format!("the ledger has no {what} {word}; 'last' is the newest"),
        Err(several) => format!(
            "{word} begins the names of {} sweeps: {}; write more of it",
            several.len(),
            several.join(", ")
        ),
    }))
}
