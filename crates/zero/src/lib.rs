//! The verb `zero`: writes zeros over whole disks, in parallel, and reports disks that are slow or bad.

pub mod args;
mod checkpoint;
mod figures;
mod foreground;
mod limiter;
mod pace;
mod place;
mod progress;
mod report;
mod rerun;
mod sample;
mod source;
mod start;
mod state;
mod work;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use engine::list::ListEngine;
use job::{CheckpointWriter, EndState, ProgressLines, Resumable};
use linux::Root;
use linux::block::Devices;
use reader::ForegroundReport;
use record::Ranges;

use crate::args::ZeroArgs;
use checkpoint::{Checkpoint, Disk};
use figures::ZeroedDisk;
use foreground::{ForegroundWatch, Throttle};
use place::ClaimedDisk;
use progress::DiskLine;
use rerun::{RerunState, rerun_command};
use sample::{ReadBack, read_back};
use start::{PreparedZeroing, start};
use state::{DiskState, IncompleteReason, lock};
use ui::context::{Context, notice};
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome, sentence};
use ui::format;
use work::Work;

/// Interval at which the progress of the disks is read.
const POLL: Duration = Duration::from_millis(50);

/// Zeros the disks.
pub fn zero(args: &ZeroArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let page = args.page.check()?;
    let Some(mut ready) = start(args, context, interrupt)? else {
        return Ok(CommandEnd::Done);
    };
    for disk in &ready.checkpoint.disks {
        if disk.starts > 1 {
            context.notice(&format!(
                "disksmith: continuing with {}: {} of {} are zeroed.",
                disk.path.display(),
                disk.zeroed.total(),
                disk.size
            ));
        }
    }
    let (ended, foreground) = all(
        &mut ready,
        args,
        context.watched,
        &engine::DiskEngine,
        (&context.root, context.ledger_path().ok().as_deref()),
        interrupt,
    );
    let written = page.map_or(Ok(()), |page| {
        let disks = ready.checkpoint.disks.iter().zip(&foreground);
        let foregrounds: Vec<_> = disks
            .map(|(disk, foreground)| (disk.path.display().to_string(), foreground.as_ref()))
            .collect();
        reader::write_page(&page, "zero", &foregrounds)
    });
    if let Some(why) = unfinished(&ready.checkpoint.disks, &ended, &foreground) {
        if let Err(error) = written {
            notice(&format!("disksmith: {}", sentence(&error)));
        }
        let hint = Resumable::if_written(ready.writer.writes()).hint();
        let command = command(&ready, &[], &context.root);
        return Err(Failure::Midway(anyhow!("{why}\n{hint}\n  {command}")));
    }
    let (finished, failures) = finish(
        &ready.places,
        &ready.checkpoint.disks,
        &foreground,
        |place, disk| read_samples(place, disk, &context.root, interrupt),
    );
    // The results are printed even where the ledger cannot be written.
    let printed = if finished.is_empty() {
        Ok(())
    } else {
        context.print(&if args.json {
            report::document(&finished)
        } else {
            report::text(&finished, context.columns)
        })
    };
    let done = |path: &Path| finished.iter().any(|one| one.disk.path == path);
    let paths: Vec<&Path> = finished.iter().map(|one| one.disk.path.as_path()).collect();
    let command = command(&ready, &paths, &context.root);
    ready.checkpoint.disks.retain(|disk| !done(&disk.path));
    let retry = match ready.writer.writes() {
        true => "This tries that again:",
        false => Resumable::Never.hint(),
    };
    let PreparedZeroing {
        checkpoint, writer, ..
    } = ready;
    end(writer, &checkpoint);
    printed?;
    written.midway()?;
    if !failures.is_empty() {
        let failures = failures.join("\n");
        return Err(Failure::Midway(anyhow!("{failures}\n{retry}\n  {command}")));
    }
    Ok(if finished.iter().all(ZeroedDisk::is_well) {
        CommandEnd::Done
    } else {
        CommandEnd::No
    })
}

/// Ends the job: suspended, with the disks that are not done, or discarded where all are.
fn end(writer: CheckpointWriter<Checkpoint>, left: &Checkpoint) {
    let is_over = left.disks.is_empty();
    let state = match is_over {
        true => EndState::Discarded,
        false => EndState::Suspended,
    };
    match writer.end(left, state) {
        Ok(_) => {}
        Err(error) if is_over => notice(&format!(
            "disksmith: the ledger still lists these disks as unfinished ({error}); to zero one \
             of them again, use --anew."
        )),
        Err(error) => report_failure(&error),
    }
}

fn report_failure(error: &dyn std::fmt::Display) {
    notice(&format!(
        "disksmith: progress cannot be written to the ledger ({error}); zeroing continues. After a kill it would \
         resume from the last checkpoint that was written."
    ));
}

/// The command line that continues, without the disks that are done.
fn command(ready: &PreparedZeroing, done: &[&Path], root: &Root) -> String {
    let disks = ready.places.iter().zip(&ready.checkpoint.disks);
    let erased = disks.filter(|(place, disk)| !disk.zeroed.is_empty() && place.is_bare());
    let settled = RerunState {
        root,
        erased: erased.map(|(_, disk)| disk.path.as_path()).collect(),
        done: done.to_vec(),
    };
    rerun_command(std::env::args_os(), &settled)
}

/// Zeros all disks, each on its own thread, and stores their progress. Returns the result of each.
fn all(
    ready: &mut PreparedZeroing,
    args: &ZeroArgs,
    watched: bool,
    lister: &dyn ListEngine,
    (root, ledger): (&Root, Option<&Path>),
    interrupt: &AtomicBool,
) -> (
    Vec<Result<(), IncompleteReason>>,
    Vec<Option<ForegroundReport>>,
) {
    let shared: Vec<DiskState> = ready
        .checkpoint
        .disks
        .iter()
        .cloned()
        .map(DiskState::new)
        .collect();
    let limit = args.limit.map(|limit| limit.0);
    let places = &ready.places;
    let lines = ProgressLines::new(watched);
    let disks = ready.checkpoint.disks.iter();
    let mut lines: Vec<DiskLine> = disks.map(|disk| DiskLine::new(&lines, disk)).collect();
    let throttles: Vec<Throttle> = places.iter().map(|_| Throttle::new()).collect();
    let devices = Devices::read(root).ok();
    let below_ledger = devices.as_ref().zip(ledger);
    let below_ledger = below_ledger.map_or_else(Vec::new, |(devices, path)| {
        reader::below_ledger(root, devices, path)
    });
    let watches = (0..places.len()).map(|number| {
        let devices = devices.as_ref()?;
        let watched = (devices, root);
        ForegroundWatch::of(number, places, watched, &below_ledger, args.keep)
    });
    let watches: Vec<Option<ForegroundWatch>> = watches.collect();
    let began = Instant::now();
    let mut is_new = false;
    let (ended, foreground) = thread::scope(|scope| {
        let mut watchers = Vec::new();
        let threads: Vec<_> = places
            .iter()
            .zip(&shared)
            .zip(&throttles)
            .zip(watches)
            .map(|(((place, shared), throttle), watch)| {
                scope.spawn(|| shared.keep_settling(place));
                let is_watched = watch.is_some();
                let work = Work {
                    place,
                    shared,
                    lister,
                    limit,
                    throttle: is_watched.then_some(throttle),
                    interrupt,
                };
                let all = &throttles;
                let watching =
                    watch.map(|watch| scope.spawn(move || watch.run(all, &shared.ended)));
                watchers.push(watching);
                scope.spawn(move || work.run())
            })
            .collect();
        while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            sleep(POLL);
            for ((line, shared), throttle) in lines.iter_mut().zip(&shared).zip(&throttles) {
                line.show(&lock(&shared.now), throttle.live());
            }
            if take(&shared, &mut ready.checkpoint.disks) {
                is_new = true;
            }
            let PreparedZeroing {
                checkpoint, writer, ..
            } = ready;
            if is_new && writer.is_due(began.elapsed()) {
                writer.write(checkpoint);
                is_new = false;
                throttles.iter().for_each(Throttle::commits);
            }
            if writer.is_writing() {
                throttles.iter().for_each(Throttle::commits);
            }
            if let Some(error) = writer.failure() {
                report_failure(&error);
            }
        }
        let ends: Vec<_> = threads.into_iter().map(joined).collect();
        let foreground = watchers
            .into_iter()
            .map(|watcher| watcher.and_then(|watcher| watcher.join().ok().flatten()));
        (ends, foreground.collect())
    });
    lines.into_iter().for_each(DiskLine::end);
    // All threads that flush have ended: this is the last checkpoint.
    ready.checkpoint.disks = shared.iter().map(DiskState::durable).collect();
    if let Err(error) = ready.writer.save(&ready.checkpoint) {
        report_failure(&error);
    }
    (ended, foreground)
}

/// Copies the states that have become durable since the last call to `disks`; true if there was any.
fn take(shared: &[DiskState], disks: &mut [Disk]) -> bool {
    let mut any = false;
    for (shared, disk) in shared.iter().zip(disks) {
        if let Some(durable) = shared.take() {
            *disk = durable;
            any = true;
        }
    }
    any
}

/// Text about the disks that were not zeroed to their end; `None` where all were.
fn unfinished(
    disks: &[Disk],
    ended: &[Result<(), IncompleteReason>],
    foreground: &[Option<ForegroundReport>],
) -> Option<String> {
    if ended.iter().all(Result::is_ok) {
        return None;
    }
    let line = |((disk, ended), foreground): (
        (&Disk, &Result<(), IncompleteReason>),
        &Option<ForegroundReport>,
    )| {
        let beside = foreground.as_ref().map(ForegroundReport::text);
        let beside = beside.map_or(String::new(), |text| {
            format!(". {}", text.trim_end_matches('.'))
        });
        let share = disk.done_or_failed().0 as f64 / disk.size.0.max(1) as f64;
        let stopped = match ended {
            Ok(()) => "only its stamp is left".to_owned(),
            Err(IncompleteReason::Signal) => "stopped by a signal".to_owned(),
            Err(IncompleteReason::Gone(why)) => why.clone(),
        };
        format!(
            "\n  - {}: {} of {} ({}); {stopped}{beside}",
            disk.path.display(),
            disk.zeroed.total(),
            disk.size,
            format::percent(share)
        )
    };
    let disks = disks.iter().zip(ended).zip(foreground);
    let lines: Vec<String> = disks.map(line).collect();
    let gone = ended
        .iter()
        .any(|end| matches!(end, Err(IncompleteReason::Gone(_))));
    let advice = match gone {
        true => "\nLeave out a disk that is gone.",
        false => "",
    };
    Some(format!(
        "not all disks are zeroed to their end:{}{advice}",
        lines.concat()
    ))
}

/// Reads samples of all disks back with `read`, at once, and erases the stamps only when all were read: as long as a
/// signal may stop any disk, each keeps its stamp, from which it can continue. Returns the disks that are done, and for
/// each other disk a sentence: a signal arrived, or its stamp could not be erased.
fn finish(
    places: &[ClaimedDisk],
    disks: &[Disk],
    foreground: &[Option<ForegroundReport>],
    read: impl Fn(&ClaimedDisk, &Disk) -> Result<ReadBack, IncompleteReason> + Sync,
) -> (Vec<ZeroedDisk>, Vec<String>) {
    let read = &read;
    let all = || places.iter().zip(disks);
    let mut backs = at_once(all().map(|(place, disk)| move || read(place, disk)));
    if backs.contains(&Err(IncompleteReason::Signal)) {
        let stopped = backs
            .into_iter()
            .map(|back| back.and(Err(IncompleteReason::Signal)));
        backs = stopped.collect();
    }
    let ended =
        at_once(all().zip(backs).map(|((place, disk), back)| {
            move || back.and_then(|back| take_stamp(place, disk, back))
        }));
    let mut finished = Vec::new();
    let mut failures = Vec::new();
    for ((ended, disk), foreground) in ended.into_iter().zip(disks).zip(foreground) {
        let why = match ended {
            Ok(back) => {
                finished.push(ZeroedDisk {
                    back,
                    disk: disk.clone(),
                    foreground: foreground.clone(),
                });
                continue;
            }
            Err(IncompleteReason::Signal) => {
                "it is zeroed, and was stopped by a signal while samples were read back".to_owned()
            }
            Err(IncompleteReason::Gone(why)) => why,
        };
        failures.push(format!("{}: {why}", disk.path.display()));
    }
    (finished, failures)
}

/// Result of a thread; a panic counts as [`IncompleteReason::Gone`].
fn joined<T>(
    thread: thread::ScopedJoinHandle<'_, Result<T, IncompleteReason>>,
) -> Result<T, IncompleteReason> {
    let lost = |_| Err(IncompleteReason::Gone("its thread has failed".to_owned()));
    thread.join().unwrap_or_else(lost)
}

/// Results of closures, in their order. Each runs on its own thread, at the same time as the others.
fn at_once<T: Send, W: FnOnce() -> Result<T, IncompleteReason> + Send>(
    works: impl Iterator<Item = W>,
) -> Vec<Result<T, IncompleteReason>> {
    thread::scope(|scope| {
        let threads: Vec<_> = works.map(|work| scope.spawn(work)).collect();
        threads.into_iter().map(joined).collect()
    })
}

/// Reads a sample of a zeroed disk back.
fn read_samples(
    place: &ClaimedDisk,
    disk: &Disk,
    root: &Root,
    interrupt: &AtomicBool,
) -> Result<ReadBack, IncompleteReason> {
    if let Some(why) = place.resized() {
        return Err(IncompleteReason::Gone(why));
    }
    let zeroed = Ranges::all(disk.size).subtract(&disk.failed);
    let zeroed = zeroed.subtract(&Ranges::from(place.stamped()));
    let seed = disk.size.0 ^ u64::from(disk.starts);
    read_back(place, &zeroed, seed, root, interrupt).ok_or(IncompleteReason::Signal)
}

/// Erases the stamp of a disk, and reads its block back too.
fn take_stamp(
    place: &ClaimedDisk,
    disk: &Disk,
    mut back: ReadBack,
) -> Result<ReadBack, IncompleteReason> {
    // A bad first block carries no stamp, and is among the failed ranges.
    if !disk.unstamped {
        let stamp = place.stamped();
        place.clear_stamp(disk.method.offload()).map_err(|error| {
            IncompleteReason::Gone(format!("its first block could not be zeroed: {error}"))
        })?;
        back.take(stamp.clone(), place.is_zero(stamp));
    }
    Ok(back)
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![
        DocumentType::of::<report::Document>("zero"),
        DocumentType::of::<report::DryRunDocument>("zero"),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::Ordering::Relaxed;

    use record::Bytes;

    use super::*;
    use crate::checkpoint::for_tests;
    use crate::place::on_file;

    #[test]
    fn one_stamp_that_stays_costs_no_other_disk_its_report() {
        let mut places = [0, 1, 2].map(|_| on_file(Bytes::MIB));
        let disks = ["/dev/a", "/dev/b", "/dev/c"].map(|path| Disk {
            path: path.into(),
            zeroed: Ranges::all(Bytes::MIB),
            ..for_tests(Bytes::MIB)
        });
        for place in &places {
            place.put_stamp("one/1").unwrap();
        }
        let unwritable = tempfile::NamedTempFile::new().unwrap();
        places[1].direct = std::fs::File::open(unwritable.path()).unwrap();
        places[2].direct.set_len(2 << 20).unwrap();
        let root = Root::under(Path::new("/no/such"));
        let foreground = [None, None, None];
        let signal = AtomicBool::new(true);
        let (finished, failures) = finish(&places, &disks, &foreground, |place, disk| {
            read_samples(place, disk, &root, &signal)
        });
        assert!(finished.is_empty());
        assert_eq!(failures.len(), 3);
        assert!(failures[0].contains("stopped by a signal"), "{failures:?}");
        assert!(
            failures[2].starts_with("/dev/c: its size changed"),
            "{failures:?}"
        );
        assert_eq!(places[0].stamp().unwrap().as_deref(), Some("one/1"));
        let signal = AtomicBool::new(false);
        let (finished, failures) = finish(&places, &disks, &foreground, |place, disk| {
            read_samples(place, disk, &root, &signal)
        });
        assert_eq!(finished.len(), 1);
        assert!(finished[0].is_well() && finished[0].disk.path == Path::new("/dev/a"));
        assert_eq!(failures.len(), 2);
        assert!(
            failures[0].starts_with("/dev/b: its first block could not"),
            "{failures:?}"
        );
        assert!(
            failures[1].starts_with("/dev/c: its size changed"),
            "{failures:?}"
        );
    }

    #[test]
    fn no_stamp_is_taken_away_when_a_signal_comes_while_another_disk_is_read_back() {
        let places = [0, 1].map(|_| on_file(Bytes::MIB));
        let disks = ["/dev/a", "/dev/b"].map(|path| Disk {
            path: path.into(),
            zeroed: Ranges::all(Bytes::MIB),
            ..for_tests(Bytes::MIB)
        });
        for place in &places {
            place.put_stamp("one/1").unwrap();
        }
        let root = Root::under(Path::new("/no/such"));
        let signal = AtomicBool::new(false);
        let first_is_read = Barrier::new(2);
        let (finished, failures) = finish(&places, &disks, &[None, None], |place, disk| {
            if disk.path == Path::new("/dev/a") {
                let back = read_samples(place, disk, &root, &signal);
                first_is_read.wait();
                return back;
            }
            first_is_read.wait();
            signal.store(true, Relaxed);
            read_samples(place, disk, &root, &signal)
        });
        assert!(finished.is_empty());
        assert_eq!(failures.len(), 2);
        for (place, failure) in places.iter().zip(&failures) {
            assert!(failure.contains("stopped by a signal"), "{failures:?}");
            assert_eq!(place.stamp().unwrap().as_deref(), Some("one/1"));
        }
    }
}
