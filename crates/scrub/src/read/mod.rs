//! `scrub --read`: reads every member of an array, or a disk, from end to end, and lists what cannot
//! be read. At the pace of a scrub: the foreground latency of the array decides, while the reads go to its
//! members, without md.
//!
//! - `source`: what is read; `checkpoint`: the state from which a later start continues;
//! - `device_read`: one array or disk; `member`: the requests to each member; `share`: their common pace;
//! - `places`: the bytes of an array at a bad place; `report`: the answer.

mod checkpoint;
mod device_read;
mod member;
mod places;
pub(crate) mod report;
mod share;
mod source;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::anyhow;
use jiff::Zoned;
use job::{CheckpointInterval, JobRequest, Previous, ProgressLines, Started, Takeover, Turns};
use linux::block::Devices;

use super::hours::{share, times, wait_for_hours};
use super::lock;
use crate::args::ScrubArgs;
use checkpoint::Checkpoint;
use reader::lock_disks;
use report::ReadResult;
use source::ReadSource;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};

/// Time until the first checkpoint.
const FIRST_CHECKPOINT: Duration = Duration::from_secs(2);
/// The longest time between two checkpoints, while they are few that take turns.
const MAX_CHECKPOINT_INTERVAL: Duration = Duration::from_secs(10);

/// Reads arrays and disks from end to end.
pub(super) fn read(
    args: &ScrubArgs,
    devices: &Devices,
    context: &mut Context,
    interrupt: &AtomicBool,
) -> Outcome {
    let page = args.page.check()?;
    // What cannot be is refused now, and not when the hours have come; and is examined then again.
    find_all(&args.arrays, devices, context)?;
    let (by, opening) = times(args)?;
    let Some(stop) = wait_for_hours(opening, args, context, interrupt) else {
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
    // A `warm` of one of the disks would yield to this, and this to it.
    let parts = sources.iter().flat_map(|source| &source.parts);
    let _warmings = lock_disks(parts.map(|part| &part.volume)).map_err(Failure::refused)?;
    let turns = Arc::new(Turns::default());
    let mut tasks = Vec::new();
    for source in sources {
        let begun = begin_all(&source, args.anew, &turns, context)?;
        tasks.push((source, begun));
    }
    let lines = ProgressLines::new(context.watched);
    let shared = share((context, devices), (stop, &lines), args, by, &Zoned::now());
    let read = job::each_on_a_thread(tasks, |_, (source, begun)| {
        device_read::read(source, begun, &shared)
    });
    drop(locks);
    let of_host = (&context.root, devices);
    let found: Vec<ReadResult> = read
        .into_iter()
        .map(|read| report::locate_unreadable(read, of_host, args.locate, interrupt))
        .collect();
    if let Some(page) = page {
        let foregrounds: Vec<_> = found.iter().map(ReadResult::foreground).collect();
        reader::write_page(&page, "scrub --read", &foregrounds).midway()?;
    }
    answer(&found, args, context)
}

/// All sources that were named, or what is wrong with any of them.
fn find_all(
    words: &[String],
    devices: &Devices,
    context: &Context,
) -> Result<Vec<ReadSource>, Failure> {
    let mut sources: Vec<ReadSource> = Vec::new();
    let mut problems = Vec::new();
    for word in words {
        match ReadSource::find(word, &context.root, devices) {
            Ok(source) => {
                let disks = source.disks();
                let is_shared =
                    |other: &&ReadSource| other.disks().iter().any(|disk| disks.contains(disk));
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
    source: &ReadSource,
    anew: bool,
    turns: &Arc<Turns>,
    context: &Context,
) -> Result<Vec<Started<Checkpoint>>, Failure> {
    let mut begun = Vec::new();
    for part in &source.parts {
        let path = part.volume.path.display().to_string();
        let fresh = Checkpoint::fresh(path.clone(), &part.volume.key, part.whole.clone());
        let mut notes = Vec::new();
        let request = JobRequest {
            key: &source.key(part),
            anew,
            from: Takeover::WithTarget,
            interval: CheckpointInterval::growing(FIRST_CHECKPOINT, MAX_CHECKPOINT_INTERVAL)
                .in_turn(turns),
        };
        let started = job::start(request, fresh, context, |previous, fresh| match previous {
            Previous::Unfinished(work) if !anew => {
                if fresh.continues_from(&work.document, part.slot.is_some()) {
                    fresh.take_over(&work.document);
                    notes.push(format!(
                        "{} were read before, since {}, and are not read again (--anew would)",
                        fresh.done.total(),
                        fresh.began.strftime("%Y-%m-%d %H:%M UTC")
                    ));
                }
            }
            Previous::Unfinished(_) | Previous::Finished(_) => {}
            Previous::Unreadable(error) => notes.push(format!(
                "what was read before is not known, and all is read: {error}"
            )),
        })?;
        notes.extend(started.not_written.as_ref().map(|why| {
            format!(
                "its progress cannot be saved, so that after an interruption it starts over: {why}"
            )
        }));
        for note in notes {
            context.notice(&format!("disksmith: {path}: {note}."));
        }
        begun.push(started);
    }
    Ok(begun)
}

fn answer(found: &[ReadResult], args: &ScrubArgs, context: &mut Context) -> Outcome {
    let text = if args.json {
        report::document(found)
    } else {
        report::text(found, context.columns)
    };
    context.print(&text)?;
    let midway: Vec<String> = found.iter().filter_map(report::incomplete_reason).collect();
    let is_whole = found.iter().all(ReadResult::is_whole);
    job::outcome(
        &midway,
        if is_whole {
            CommandEnd::Done
        } else {
            CommandEnd::No
        },
    )
}
