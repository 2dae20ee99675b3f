//! `scrub --read`: reads every member of an array, or a disk, from end to end, and lists what cannot
//! be read. At the pace of a scrub: what users of the array feel decides, while the reads go to its
//! members, past md.
//!
//! - `source`: what is read; `kept`: what the ledger holds of it; `keeping`: when it is told;
//! - `one`: one array or disk; `member`: the requests to each member; `share`: their common pace;
//! - `places`: which bytes of an array lie on a bad place; `report`: what is said in the end.

mod keeping;
mod kept;
mod member;
mod one;
mod places;
mod report;
mod share;
mod source;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use jiff::Zoned;
use linux::block::Devices;

use super::progress::Lines;
use super::{lock, share, times, wait_for_hours};
use crate::args::ScrubArgs;
use keeping::{Keeping, Turns};
use kept::Kept;
use one::Begun;
use reader::{Begin, Refused, begin, lock_disks};
use report::Found;
use source::Source;
use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Failure, Outcome, sentence};

/// Reads arrays and disks from end to end.
pub(super) fn read(
    args: &ScrubArgs,
    devices: &Devices,
    context: &mut Context,
    interrupt: &AtomicBool,
) -> Outcome {
    // What cannot be is said now, and not when the hours have come; and is looked at then again.
    find_all(&args.arrays, devices, context)?;
    let (by, opening) = times(args)?;
    let Some(ends) = wait_for_hours(opening, args, context, interrupt)? else {
        return Err(Failure::Midway(anyhow!(
            "interrupted before anything was read"
        )));
    };
    let devices = &Devices::read(&context.root).refused()?;
    let sources = find_all(&args.arrays, devices, context)?;
    let mut locks = Vec::new();
    for source in &sources {
        let taken = lock::take(source.device.number, &source.disks());
        let refuse = |why| Failure::refused(format!("{} cannot be read: {why}", source.path()));
        locks.extend(taken.map_err(refuse)?);
    }
    // Whoever warms one of the disks would yield to this, and this to him.
    let parts = sources.iter().flat_map(|source| &source.parts);
    let _warmings = lock_disks(parts.map(|part| &part.volume)).map_err(Failure::refused)?;
    let turns = Arc::new(Turns::default());
    let mut tasks = Vec::new();
    for source in sources {
        let begun = begin_all(&source, args.anew, &turns, context)?;
        tasks.push((source, begun));
    }
    let lines = Lines::new(context.watched);
    let host = (&context.root, interrupt, &lines);
    let shared = share(host, args, by, &ends, &Zoned::now());
    let read: Vec<one::Read> = std::thread::scope(|scope| {
        let shared = &shared;
        let threads: Vec<_> = tasks
            .into_iter()
            .map(|(source, begun)| scope.spawn(move || one::read(source, begun, shared)))
            .collect();
        threads.into_iter().map(one::joined).collect()
    });
    drop(locks);
    let of_host = (&context.root, devices);
    let found: Vec<Found> = read
        .into_iter()
        .map(|read| report::look_up(read, of_host, args.locate, interrupt))
        .collect();
    answer(&found, args, context)
}

/// All that was named, or what is wrong with any of it.
fn find_all(
    words: &[String],
    devices: &Devices,
    context: &Context,
) -> Result<Vec<Source>, Failure> {
    let mut sources: Vec<Source> = Vec::new();
    let mut problems = Vec::new();
    for word in words {
        match Source::find(word, &context.root, devices) {
            Ok(source) => {
                let disks = source.disks();
                let is_shared =
                    |other: &&Source| other.disks().iter().any(|disk| disks.contains(disk));
                if let Some(other) = sources.iter().find(is_shared) {
                    problems.push(format!(
                        "{} and {} share a disk, so that each would hold back the other; read one after \
                         the other",
                        other.path(),
                        source.path()
                    ));
                }
                sources.push(source);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        Ok(sources)
    } else {
        Err(Failure::refused_for("nothing is read", &problems))
    }
}

/// Begins with each part, or goes on where the ledger says that it was left.
fn begin_all(
    source: &Source,
    anew: bool,
    turns: &Arc<Turns>,
    context: &Context,
) -> Result<Vec<Begun>, Failure> {
    let mut begun = Vec::new();
    for part in &source.parts {
        let path = part.volume.path.display().to_string();
        let mut kept = Kept::fresh(path.clone(), &part.volume.key, part.whole.clone());
        let key = source.key(part);
        let mut notes = Vec::new();
        let what = Begin { key: &key, anew };
        let keeper = begin(
            what,
            context,
            &mut kept,
            |before, kept: &mut Kept| match before {
                Ok(work) if work.summary.finished.is_some() || anew => {}
                Ok(work) => {
                    if kept.goes_on_from(&work.document, part.slot.is_some()) {
                        kept.take_over(&work.document);
                        notes.push(format!(
                            "{} were read before, since {}, and are not read again (--anew would)",
                            kept.done.total(),
                            kept.began.strftime("%Y-%m-%d %H:%M UTC")
                        ));
                    }
                }
                Err(error) => notes.push(format!(
                    "what was read before is not known, and all is read: {error}"
                )),
            },
        );
        let keeping = match keeper {
            Ok(keeper) => Some(Keeping::new(keeper, turns)),
            Err(Refused::UnderWay(error)) => return Err(Failure::Refused(error.into())),
            Err(Refused::NotKept(error)) => {
                notes.push(format!(
                    "how far it is cannot be kept, so that after an interruption it begins from the \
                     start: {}", sentence(&error)
                ));
                None
            }
        };
        for note in notes {
            context.tell(&format!("disksmith: {path}: {note}."));
        }
        begun.push(Begun { kept, keeping });
    }
    Ok(begun)
}

fn answer(found: &[Found], args: &ScrubArgs, context: &mut Context) -> Outcome {
    let text = if args.json {
        report::document(found)
    } else {
        report::text(found, context.columns)
    };
    context.print(&text)?;
    let midway: Vec<String> = found.iter().filter_map(report::midway).collect();
    if !midway.is_empty() {
        return Err(Failure::Midway(anyhow!(midway.join("\n"))));
    }
    let is_whole = found.iter().all(Found::is_whole);
    Ok(if is_whole { Answer::Done } else { Answer::No })
}
