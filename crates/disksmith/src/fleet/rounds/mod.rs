//! `rounds`: what `fleet race` runs on a host. It opens and prepares all targets, says that it is ready,
//! and measures them at the same time whenever it is told to, until nobody is there to tell it.

mod asked;
mod said;
mod value;

use std::io::{self, BufReader};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use engine::Engine;
use linux::block::Devices;

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
    let mut lanes = prepare(args, context, engine, interrupt)?;
    let facts = facts(&lanes, context).map_err(Failure::refused)?;
    let _claims = claim(&facts).map_err(Failure::refused)?;
    let mut out = io::stdout();
    say(&mut out, &RoundSaid::Ready(facts)).midway()?;
    while !interrupt.load(Relaxed) {
        let line = match told.recv_timeout(LOOK) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(Answer::Done),
        };
        let round: Round = understand(&line).map_err(|why| Failure::Midway(anyhow!(why)))?;
        let measured = measure(&mut lanes, &args.figure, round, engine, interrupt);
        if !interrupt.load(Relaxed) {
            say(&mut out, &RoundSaid::Measured(measured)).midway()?;
        }
    }
    Ok(Answer::Done)
}

/// Prepares all targets, at the same time: each may have a file to lay out.
fn prepare(
    args: &RoundsArgs,
    context: &Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Result<Vec<Lane>, Failure> {
    let root = &context.root;
    let one = |target: &std::path::Path| {
        let bench = asked::of_target(args, target, target.is_dir()).map_err(Failure::refused)?;
        Lane::prepare(&bench, root, engine, interrupt)
    };
    let prepared: Vec<Result<Lane, Failure>> = thread::scope(|scope| {
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
///
/// # Errors
/// A sentence, where two lie on one device: they would measure each other.
fn facts(lanes: &[Lane], context: &Context) -> Result<Vec<TargetFacts>, String> {
    let devices = Devices::read(&context.root).unwrap_or_default();
    let size_of = |name: &str| devices.iter().find(|device| device.name == name);
    let mut facts: Vec<TargetFacts> = Vec::new();
    for lane in lanes {
        let target = lane.target();
        let device = target.device.clone();
        let same = facts.iter().find(|other| other.device == device);
        if let (Some(other), Some(device)) = (same, &device) {
            return Err(format!(
                "{} and {} both lie on {device}, and would measure each other; name one of them",
                other.path, target.path
            ));
        }
        let size = device.as_deref().and_then(size_of);
        facts.push(TargetFacts {
            path: target.path.clone(),
            model: target.model.clone(),
            serial: target.serial.clone(),
            size_bytes: size.map_or(target.size.0, |device| device.size.0),
            device,
        });
    }
    Ok(facts)
}

/// Claims the devices for this race, as long as what it gives lives.
///
/// # Errors
/// A sentence, where another race measures one of them.
fn claim(facts: &[TargetFacts]) -> Result<Vec<UnixListener>, String> {
    let named = facts
        .iter()
        .filter_map(|target| Some((target, target.device.as_ref()?)));
    let mut claims = Vec::new();
    for (target, device) in named {
        let name = SocketAddr::from_abstract_name(format!("{CLAIM}{device}"));
        match name.and_then(|name| UnixListener::bind_addr(&name)) {
            Ok(claim) => claims.push(claim),
            Err(why) if why.kind() == io::ErrorKind::AddrInUse => {
                return Err(format!(
                    "another race is measuring {} ({device}); two at once would measure each other, \
                     so wait for its end, or end it",
                    target.path
                ));
            }
            // Where there are no such sockets nobody else can have one either.
            Err(_) => {}
        }
    }
    Ok(claims)
}

/// Measures all targets at the same time.
fn measure(
    lanes: &mut [Lane],
    figures: &[Figure],
    round: Round,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> HostRound {
    let began = Instant::now();
    let targets = thread::scope(|scope| {
        let started: Vec<_> = lanes
            .iter_mut()
            .map(|lane| scope.spawn(|| lane.measure(round.seconds, engine, interrupt)))
            .collect();
        started
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(lap) => of_lap(&lap, figures),
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

fn of_lap(lap: &Lap, figures: &[Figure]) -> TargetRound {
    TargetRound {
        figures: figures
            .iter()
            .map(|figure| value::value_of(&lap.phases, figure))
            .collect(),
        disk_latency_ns: lap.disk_latency_ns,
        invalid: lap.invalid.clone(),
        failed: lap.failed.as_ref().map(ToString::to_string),
    }
}

#[cfg(test)]
mod tests;
