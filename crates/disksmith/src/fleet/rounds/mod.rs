//! `rounds`: what `fleet race` runs on a host. It opens and prepares all targets, says that it is ready,
//! and measures them at the same time whenever it is told to, until nobody is there to tell it.

mod asked;
mod said;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use engine::{Engine, EngineError};
use linux::Root;
use linux::block::{self, Devices};
use record::{Code, Finding};

use super::talk::{lines, say, understand};
use crate::bench::lane::{Lane, Lap};
use crate::cli::RoundsArgs;
use crate::context::Context;
use crate::failure::{Answer, Failure, Outcome, Standing as _};
use crate::sweep::Figure;

pub(crate) use asked::check;
pub(crate) use said::{HostRound, Round, RoundSaid, TargetFacts, TargetRound};

/// The verb.
pub(crate) const VERB: &str = "rounds";
/// How often it is looked whether it shall end.
const LOOK: Duration = Duration::from_millis(100);
/// How a name begins that says who measures a device (unix(7), abstract socket addresses).
const CLAIM: &str = "disksmith-rounds-";

/// Measures round by round, as it is told on standard input.
pub(crate) fn rounds(
    args: &RoundsArgs,
    context: &Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Outcome {
    check(args).map_err(Failure::refused)?;
    let told = lines(BufReader::new(io::stdin())).refused()?;
    // Before anything is laid out: that alone would disturb a race that is under way.
    let _claims = claim(&args.target, &context.root).map_err(Failure::refused)?;
    let mut tracks: Vec<Track> = prepare(args, context, engine, interrupt)?;
    let facts = facts(&tracks, &context.root);
    let mut out = io::stdout();
    say(&mut out, &RoundSaid::Ready(facts)).midway()?;
    while !interrupt.load(Relaxed) {
        let line = match told.recv_timeout(LOOK) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(Answer::Done),
        };
        let round: Round = understand(&line).map_err(|why| Failure::Midway(anyhow!(why)))?;
        let measured = measure(&mut tracks, &args.figure, round, engine, interrupt);
        if !interrupt.load(Relaxed) {
            say(&mut out, &RoundSaid::Measured(measured)).midway()?;
        }
    }
    Ok(Answer::Done)
}

/// A target, and which doubts were told of it: they are the same in every round.
struct Track {
    lane: Lane,
    told: BTreeSet<(Code, Option<String>)>,
}

/// Prepares all targets, at the same time: each may have a file to lay out.
fn prepare(
    args: &RoundsArgs,
    context: &Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Result<Vec<Track>, Failure> {
    let root = &context.root;
    let one = |target: &Path| {
        let bench = asked::of_target(args, target, target.is_dir()).map_err(Failure::refused)?;
        let lane = Lane::prepare(&bench, root, engine, interrupt)?;
        Ok(Track {
            lane,
            told: BTreeSet::new(),
        })
    };
    let prepared: Vec<Result<Track, Failure>> = thread::scope(|scope| {
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

/// What the targets are.
fn facts(tracks: &[Track], root: &Root) -> Vec<TargetFacts> {
    let devices = Devices::read(root).unwrap_or_default();
    let size_of = |name: &str| devices.iter().find(|device| device.name == name);
    let of_track = |track: &Track| {
        let target = track.lane.target();
        let size = target.device.as_deref().and_then(size_of);
        TargetFacts {
            path: target.path.clone(),
            device: target.device.clone(),
            model: target.model.clone(),
            serial: target.serial.clone(),
            size_bytes: size.map_or(target.size.0, |device| device.size.0),
        }
    };
    tracks.iter().map(of_track).collect()
}

/// Claims the devices that the targets are or lie on for this race, as long as what it gives lives.
///
/// # Errors
/// A sentence, where two lie on one device, or another race measures one: they would measure each other.
fn claim(targets: &[PathBuf], root: &Root) -> Result<Vec<UnixListener>, String> {
    let devices = Devices::read(root).unwrap_or_default();
    let mut owned: BTreeMap<String, &Path> = BTreeMap::new();
    let mut claims = Vec::new();
    for target in targets {
        // Where that cannot be known, who opens the target says why.
        let place = block::place_of(root, &devices, target).ok();
        let first = place.and_then(|place| place.devices.first().copied());
        let Some(device) = first.and_then(|number| devices.get(number)) else {
            continue;
        };
        if let Some(other) = owned.insert(device.name.clone(), target) {
            return Err(format!(
                "{} and {} both lie on {}, and would measure each other; name one of them",
                other.display(),
                target.display(),
                device.name
            ));
        }
        claims.extend(claim_one(target, &device.name)?);
    }
    Ok(claims)
}

/// Claims a device; `None` where there is no such thing as a claim.
///
/// # Errors
/// A sentence, where somebody has it.
fn claim_one(target: &Path, device: &str) -> Result<Option<UnixListener>, String> {
    let name = SocketAddr::from_abstract_name(format!("{CLAIM}{device}"));
    match name.and_then(|name| UnixListener::bind_addr(&name)) {
        Ok(claim) => Ok(Some(claim)),
        Err(why) if why.kind() == io::ErrorKind::AddrInUse => Err(format!(
            "another race is measuring {} ({device}); two at once would measure each other, so wait \
             for its end, or end it",
            target.display()
        )),
        // Where there are no such sockets nobody else can have one either.
        Err(_) => Ok(None),
    }
}

/// Measures all targets at the same time.
fn measure(
    tracks: &mut [Track],
    figures: &[Figure],
    round: Round,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> HostRound {
    let began = Instant::now();
    let targets = thread::scope(|scope| {
        let started: Vec<_> = tracks
            .iter_mut()
            .map(|track| {
                scope.spawn(|| {
                    let lap = track.lane.measure(round.seconds, engine, interrupt);
                    of_lap(&lap, figures, &mut track.told)
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

fn of_lap(
    lap: &Lap,
    figures: &[Figure],
    told: &mut BTreeSet<(Code, Option<String>)>,
) -> TargetRound {
    // What the disk answered, and what the host could not do.
    let is_disk =
        |error: &&EngineError| matches!(error, EngineError::Io { .. } | EngineError::Short { .. });
    let ended = lap.failed.as_ref();
    let (broken, failed) = (ended.filter(is_disk), ended.filter(|error| !is_disk(error)));
    let mut is_new = |doubt: &&Finding| told.insert((doubt.code, doubt.phase.clone()));
    TargetRound {
        doubts: lap
            .doubts
            .iter()
            .filter(&mut is_new)
            .map(|doubt| doubt.text.clone())
            .collect(),
        figures: figures
            .iter()
            .map(|figure| value::value_of(&lap.phases, figure))
            .collect(),
        disk_latency_ns: lap.disk_latency_ns,
        invalid: lap.invalid.clone(),
        broken: broken.map(ToString::to_string),
        failed: failed.map(ToString::to_string),
        is_slowed: lap.doubts.iter().any(is_of_others),
    }
}

/// Whether a doubt is that something else than the disk has slowed it.
fn is_of_others(doubt: &Finding) -> bool {
    matches!(doubt.code, Code::ForeignIo | Code::CpuBound)
}

#[cfg(test)]
mod tests;
