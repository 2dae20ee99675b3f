//! `scrub --read`: reads every member of an array, or a disk, from end to end, and lists the unreadable extents. It is
//! paced like a scrub, by the foreground latency of the array, while the reads go to its members directly, without md.
//!
//! - `source`: the array or disk to read; `checkpoint`: the state from which a later start continues;
//! - `device_read`: one array or disk; `member`: the requests to each member; `share`: their common rate;
//! - `places`: the bytes of an array at unreadable extents of a member; `report`: the output.

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
/// Maximum time between two checkpoints, while few readings take turns to write them.
const MAX_CHECKPOINT_INTERVAL: Duration = Duration::from_secs(10);

/// Reads arrays and disks from end to end.
pub(super) fn read(
    args: &ScrubArgs,
    devices: &Devices,
    context: &mut Context,
    interrupt: &AtomicBool,
) -> Outcome {
    let page = args.page.check()?;
    // Errors are reported now rather than when the hours begin; the sources are examined again then.
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
    // A `warm` of one of the disks and this reading would yield to each other.
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

/// All sources that were named. The error lists the problems of all of them.
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
                        "{} and {} share a disk, so each would slow down the other; read one after \
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

/// Starts the job of each part, from its checkpoint in the ledger, if there is one.
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
                "the ranges that were read before are not known, so all are read: {error}"
            )),
        })?;
        notes.extend(started.not_written.as_ref().map(|why| {
            format!("its progress cannot be stored, so after an interruption it starts over: {why}")
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
