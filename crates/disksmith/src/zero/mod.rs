//! The verb `zero`: writes zeros over whole disks, in parallel, and says which of them is slow or
//! bad.

mod feed;
mod figures;
mod kept;
mod pace;
mod place;
mod progress;
mod report;
mod sample;
mod start;
mod work;

use std::sync::atomic::AtomicBool;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use engine::list::Lister;
use record::Ranges;

use crate::cli::ZeroArgs;
use crate::context::{Context, tell};
use crate::failure::{Answer, Failure, Outcome, Standing as _};
use crate::render::words;
use feed::lock;
use figures::Finished;
use kept::Disk;
use progress::Progress;
use sample::read_back;
use start::{Ready, Start, again, start};
use work::{KEEP, Shared, Stop, Work};

/// How often it is looked how far the disks are.
const LOOK: Duration = Duration::from_millis(50);

/// Zeros the disks.
pub(crate) fn zero(args: &ZeroArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let Start::Ready(mut ready) = start(args, context)? else {
        return Ok(Answer::Done);
    };
    for disk in &ready.zeroing.disks {
        if disk.starts > 1 {
            context.tell(&format!(
                "disksmith: going on with {}: {} of {} are zeroed.",
                disk.path.display(),
                disk.zeroed.total(),
                disk.size
            ));
        }
    }
    let ended = all(&mut ready, args, context.watched, &engine::Disks, interrupt)?;
    if let Some(why) = unfinished(&ready.zeroing.disks, &ended) {
        return Err(Failure::Midway(anyhow!(
            "{why}\nThe same command goes on with what is left:\n  {}",
            again()
        )));
    }
    let finished = finish(&ready).map_err(|why| {
        Failure::Midway(anyhow!(
            "{why}\nThe same command tries that again:\n  {}",
            again()
        ))
    })?;
    let Ready {
        ledger: mut kept,
        claim,
        ..
    } = *ready;
    kept.drop_work(claim).midway()?;
    context.print(&if args.json {
        report::document(&finished)
    } else {
        report::text(&finished, context.columns)
    })?;
    Ok(if finished.iter().all(Finished::is_well) {
        Answer::Done
    } else {
        Answer::No
    })
}

/// Zeros all disks, each on its own thread, and keeps where they stand. What came of each.
///
/// # Errors
/// When where they stand cannot be kept in the end.
fn all(
    ready: &mut Ready,
    args: &ZeroArgs,
    watched: bool,
    lister: &dyn Lister,
    interrupt: &AtomicBool,
) -> Result<Vec<Result<(), Stop>>, Failure> {
    let shared: Vec<Shared> = ready
        .zeroing
        .disks
        .iter()
        .cloned()
        .map(Shared::new)
        .collect();
    let limit = args.limit.map(|limit| limit.0);
    let places = &ready.places;
    let progress = Progress::new(watched, &ready.zeroing.disks);
    let mut complained = false;
    let ended = thread::scope(|scope| {
        let threads: Vec<_> = places
            .iter()
            .zip(&shared)
            .map(|(place, shared)| {
                scope.spawn(|| shared.keep_settling(place));
                let work = Work {
                    place,
                    shared,
                    lister,
                    limit,
                    interrupt,
                };
                scope.spawn(move || work.run())
            })
            .collect();
        let mut last = Instant::now();
        while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            sleep(LOOK);
            if progress.is_watched() {
                let standing = shared.iter().enumerate();
                standing.for_each(|(at, shared)| progress.show(at, &lock(&shared.now)));
            }
            if last.elapsed() >= KEEP && take(&shared, &mut ready.zeroing.disks) {
                last = Instant::now();
                let kept = ready.ledger.keep_work(&ready.claim, &ready.zeroing);
                if let (Err(error), false) = (kept, complained) {
                    complained = true;
                    tell(&format!(
                        "disksmith: where the disks stand cannot be kept ({error}); going on. \
                         After a kill it would be begun anew where it was last kept."
                    ));
                }
            }
        }
        let ends = threads.into_iter().map(|thread| {
            let lost = |_| Err(Stop::Gone("its thread has failed".to_owned()));
            thread.join().unwrap_or_else(lost)
        });
        ends.collect()
    });
    drop(progress);
    take(&shared, &mut ready.zeroing.disks);
    let kept = ready.ledger.keep_work(&ready.claim, &ready.zeroing);
    kept.midway()?;
    Ok(ended)
}

/// Takes what has become durable. Whether there was any.
fn take(shared: &[Shared], disks: &mut [Disk]) -> bool {
    let mut any = false;
    for (shared, disk) in shared.iter().zip(disks) {
        if let Some(durable) = lock(&shared.durable).take() {
            *disk = durable;
            any = true;
        }
    }
    any
}

/// What is said when not all disks came to their end; `None` when they did.
fn unfinished(disks: &[Disk], ended: &[Result<(), Stop>]) -> Option<String> {
    if ended.iter().all(Result::is_ok) {
        return None;
    }
    let line = |(disk, ended): (&Disk, &Result<(), Stop>)| {
        let share = disk.settled().0 as f64 / disk.size.0.max(1) as f64;
        let stopped = match ended {
            Ok(()) => "it only has its stamp left".to_owned(),
            Err(Stop::Signal) => "stopped by a signal".to_owned(),
            Err(Stop::Gone(why)) => why.clone(),
        };
        format!(
            "\n  - {}: {} of {} ({}); {stopped}",
            disk.path.display(),
            disk.zeroed.total(),
            disk.size,
            words::percent(share)
        )
    };
    let lines: Vec<String> = disks.iter().zip(ended).map(line).collect();
    let gone = ended.iter().any(|end| matches!(end, Err(Stop::Gone(_))));
    let advice = match gone {
        true => "\nLeave out a disk that is gone.",
        false => "",
    };
    Some(format!(
        "not all disks are zeroed to their end:{}{advice}",
        lines.concat()
    ))
}

/// Takes the stamps away and reads samples back, of all disks at once.
///
/// # Errors
/// The first stamp that could not be taken away, as a sentence.
fn finish(ready: &Ready) -> Result<Vec<Finished>, String> {
    thread::scope(|scope| {
        let disks = ready.places.iter().zip(&ready.zeroing.disks);
        let threads: Vec<_> = disks
            .map(|(place, disk)| {
                scope.spawn(move || {
                    place.clear_stamp(disk.method.offload()).map_err(|error| {
                        format!(
                            "the first block of {} could not be zeroed: {error}",
                            disk.path.display()
                        )
                    })?;
                    let zeroed = Ranges::all(disk.size).subtract(&disk.failed);
                    Ok(Finished {
                        back: read_back(place, &zeroed, disk.size.0 ^ u64::from(disk.starts)),
                        disk: disk.clone(),
                    })
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                let lost = |_| Err("a thread has failed".to_owned());
                thread.join().unwrap_or_else(lost)
            })
            .collect()
    })
}
