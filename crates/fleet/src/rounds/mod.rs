//! `rounds`: run by `fleet race` on a host. It opens and prepares all targets, reports that it is ready, and measures
//! them at the same time on each order, until its input ends.

mod bench_args;
mod figures;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use engine::{Engine, EngineError};
use linux::Root;
use linux::block::{self, Devices};
use record::{Finding, FindingCode};
use rustix::io::Errno;

use crate::args::RoundsArgs;
use crate::protocol::{lines, parse, send};
use bench::prepared_target::{PreparedTarget, RoundResult};
use sweep::Figure;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};

pub(crate) use crate::protocol::rounds::{
    HostRound, Round, RoundMessage, TargetFacts, TargetRound,
};
pub(crate) use bench_args::{check, overwrites};

/// Name of the verb by which `fleet` has a host measure rounds.
pub(crate) const VERB: &str = "rounds";
/// Interval at which the signal is polled.
const POLL: Duration = Duration::from_millis(100);

/// Measures round by round, as ordered on standard input.
pub(crate) fn rounds(
    args: &RoundsArgs,
    context: &Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Outcome {
    check(args).map_err(Failure::refused)?;
    let orders = lines(BufReader::new(io::stdin())).refused()?;
    check_apart(&args.target, &context.root).map_err(Failure::refused)?;
    let mut targets: Vec<RoundTarget> = prepare(args, context, engine, interrupt)?;
    let facts = facts(&targets, &context.root).map_err(Failure::refused)?;
    let mut out = io::stdout();
    send(&mut out, &RoundMessage::Ready(facts)).midway()?;
    while !interrupt.load(Relaxed) {
        let line = match orders.recv_timeout(POLL) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(CommandEnd::Done),
        };
        let round: Round = parse(&line).map_err(|why| Failure::Midway(anyhow!(why)))?;
        let measured = measure(&mut targets, &args.figure, round, engine, interrupt);
        if !interrupt.load(Relaxed) {
            send(&mut out, &RoundMessage::Measured(measured)).midway()?;
        }
    }
    Ok(CommandEnd::Done)
}

/// A target, and the doubts that were already reported for it: they are the same in every round.
struct RoundTarget {
    prepared: PreparedTarget,
    reported: BTreeSet<(FindingCode, Option<String>)>,
}

/// Prepares all targets at the same time, since each may have a file to lay out.
fn prepare(
    args: &RoundsArgs,
    context: &Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Result<Vec<RoundTarget>, Failure> {
    let root = &context.root;
    let one = |target: &Path| {
        let bench =
            bench_args::of_target(args, target, target.is_dir()).map_err(Failure::refused)?;
        let prepared = PreparedTarget::prepare(&bench, root, engine, interrupt)?;
        Ok(RoundTarget {
            prepared,
            reported: BTreeSet::new(),
        })
    };
    let prepared: Vec<Result<RoundTarget, Failure>> = thread::scope(|scope| {
        let started: Vec<_> = args
            .target
            .iter()
            .map(|target| scope.spawn(|| one(target)))
            .collect();
        started
            .into_iter()
            .map(|thread| {
                let panicked = |_| Err(Failure::Midway(anyhow!("a thread of it panicked")));
                thread.join().unwrap_or_else(panicked)
            })
            .collect()
    });
    prepared.into_iter().collect()
}

/// Facts about the targets.
///
/// # Errors
/// A sentence, if the identity of a target that is overwritten is unknown.
fn facts(targets: &[RoundTarget], root: &Root) -> Result<Vec<TargetFacts>, String> {
    let devices = Devices::read(root).unwrap_or_default();
    let size_of = |name: &str| devices.iter().find(|device| device.name == name);
    let facts_of = |target_of: &RoundTarget| {
        let target = target_of.prepared.target();
        let size = target.device.as_deref().and_then(size_of);
        Ok(TargetFacts {
            path: target.path.clone(),
            device: target.device.clone(),
            model: target.model.clone(),
            serial: target.serial.clone(),
            size_bytes: size.map_or(target.size.0, |device| device.size.0),
            overwritten: target_of.prepared.destroy_target(root)?,
        })
    };
    targets.iter().map(facts_of).collect()
}

/// # Errors
/// A sentence, if two targets are on one disk, possibly through partitions: they would measure each other.
fn check_apart(targets: &[PathBuf], root: &Root) -> Result<(), String> {
    let devices = Devices::read(root).unwrap_or_default();
    let mut owned: BTreeMap<&str, &Path> = BTreeMap::new();
    for target in targets {
        // If it is unknown, opening the target reports the reason.
        let place = block::place_of(root, &devices, target).ok();
        let numbers = place.map(|place| place.devices).unwrap_or_default();
        let disks: BTreeSet<&str> = numbers
            .into_iter()
            .flat_map(|number| devices.stack_below(number))
            .map(|device| device.name.as_str())
            .collect();
        for disk in disks {
            if let Some(other) = owned.insert(disk, target) {
                return Err(format!(
                    "{} and {} both lie on {disk}, and would measure each other; name one of them",
                    other.display(),
                    target.display()
                ));
            }
        }
    }
    Ok(())
}

/// Measures all targets at the same time.
fn measure(
    targets: &mut [RoundTarget],
    figures: &[Figure],
    round: Round,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> HostRound {
    let began = Instant::now();
    let targets = thread::scope(|scope| {
        let started: Vec<_> = targets
            .iter_mut()
            .map(|target_of| {
                scope.spawn(|| {
                    let result = target_of.prepared.measure(round.seconds, engine, interrupt);
                    round_of(&result, figures, &mut target_of.reported)
                })
            })
            .collect();
        started
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(gave) => gave,
                Err(_) => TargetRound {
                    failed: Some("a thread of it panicked".to_owned()),
                    ..TargetRound::default()
                },
            })
            .collect()
    });
    HostRound {
        number: round.number,
        seconds: began.elapsed().as_secs_f64(),
        targets,
    }
}

/// True for an error with which the kernel reports a failure of a disk (the errors of block devices, block/blk-core.c,
/// `blk_errors`). Other errors concern the host: space in a file system, memory, a truncated file.
fn is_of_disk(error: &io::Error) -> bool {
    const DISK_ERRNOS: [Errno; 9] = [
        Errno::IO,
        Errno::NXIO,
        Errno::NODEV,
        Errno::TIMEDOUT,
        Errno::TIME,
        Errno::NOLINK,
        Errno::REMOTEIO,
        Errno::NODATA,
        Errno::ILSEQ,
    ];
    Errno::from_io_error(error).is_some_and(|errno| DISK_ERRNOS.contains(&errno))
}

fn round_of(
    result: &RoundResult,
    figures: &[Figure],
    reported: &mut BTreeSet<(FindingCode, Option<String>)>,
) -> TargetRound {
    let is_disk = |error: &&EngineError| matches!(error, EngineError::Io { source, .. } if is_of_disk(source));
    let ended = result.failed.as_ref();
    let (broken, failed) = (ended.filter(is_disk), ended.filter(|error| !is_disk(error)));
    let mut is_new = |doubt: &&Finding| reported.insert((doubt.code, doubt.phase.clone()));
    TargetRound {
        doubts: result
            .doubts
            .iter()
            .filter(&mut is_new)
            .map(|doubt| doubt.text.clone())
            .collect(),
        figures: figures
            .iter()
            .map(|figure| figures::value_of(&result.phases, figure))
            .collect(),
        disk_latency_ns: result.disk_latency_ns,
        invalid: result.invalid.clone(),
        broken: broken.map(ToString::to_string),
        failed: failed.map(ToString::to_string),
        is_slowed: result.doubts.iter().any(is_outside_disk),
    }
}

/// True for a doubt that something other than the disk has slowed it.
fn is_outside_disk(doubt: &Finding) -> bool {
    matches!(doubt.code, FindingCode::ForeignIo | FindingCode::CpuBound)
}

#[cfg(test)]
mod tests;
