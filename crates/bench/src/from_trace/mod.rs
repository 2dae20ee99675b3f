//! `replay FILE TARGET…` and `bench TARGET --replay FILE`: the I/O of a trace as the only phase of a run.

pub(crate) mod args;
mod rounds;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::anyhow;
use engine::Engine;
use linux::{Root, offload};
use record::{Bytes, OffsetMap, Pace, ReplaySettings, TargetKind};
pub(crate) use rounds::TraceRounds;

use replay::{Disk, PlayError, Survey};
use trace::{ReadError, TraceReader};

use crate::args::BenchArgs;
use crate::layout::Layout;
use crate::measure::{MeasuredPhases, Watch};
use crate::phase_plan::{PhasePlan, base};
use crate::progress::Progress;
use crate::session::{FinishedRun, Session};
use crate::target::{self, Prepared};
use crate::{layout, phases};
use ui::exit::{ExitClass as _, Failure, sentence};

/// Default maximum of I/Os in flight: more than any device has, so that I/Os queue in the target.
const MAX_IN_FLIGHT: u32 = 4096;
/// I/Os in flight of a replay at full speed.
const ASAP_DEPTH: u32 = 32;
/// Name of the phase that a replay is.
pub const REPLAY: &str = "replay";

/// A trace that was read once, and its opened targets.
pub(crate) struct ReadyTrace {
    file: PathBuf,
    survey: Survey,
    settings: ReplaySettings,
    prepared: Vec<Prepared>,
}

/// Settings of the replay by the arguments.
fn settings(args: &BenchArgs) -> ReplaySettings {
    let options = &args.replay_options;
    let pace = options.pace.unwrap_or(Pace::Recorded);
    ReplaySettings {
        pace,
        speed: options.speed.unwrap_or(1.0),
        depth: args.depth.unwrap_or(match pace {
            Pace::Asap => ASAP_DEPTH,
            Pace::Recorded | Pace::Dependencies => MAX_IN_FLIGHT,
        }),
        map: options.map.unwrap_or(OffsetMap::Exact),
        reads_only: options.reads_only,
        discards: options.discards,
        compressible: options.compressible.unwrap_or(0.0),
    }
}

/// Checks that a block device supports the discards of a trace.
fn check_discards(root: &Root, prepared: &Prepared) -> Result<(), Failure> {
    match prepared.block_device(root)? {
        Some(device) if !offload::takes_discards(root, &device) => Err(Failure::refused(format!(
            "the trace discards, and {} takes no discards (queue/discard_max_bytes is 0); leave out --discards",
            prepared.target.path
        ))),
        _ => Ok(()),
    }
}

impl ReadyTrace {
    /// Reads the trace once and opens the targets. Nothing is written yet.
    ///
    /// # Errors
    /// When the trace cannot be read, or cannot be replayed on these targets as requested.
    pub(crate) fn make(
        args: &BenchArgs,
        file: &Path,
        root: &Root,
        interrupt: &AtomicBool,
    ) -> Result<ReadyTrace, Failure> {
        let settings = settings(args);
        let (first, _) = args.target_and_phases().map_err(Failure::refused)?;
        let targets: Vec<PathBuf> = [first]
            .into_iter()
            .chain(args.more_targets.clone())
            .collect();
        if targets.iter().any(|target| is_same(target, file)) {
            return Err(Failure::refused(format!(
                "{} is the trace itself, and cannot be its target",
                file.display()
            )));
        }
        let survey = surveyed(args, file, targets.len(), interrupt)?;
        let mut prepared = Vec::new();
        for (target, device) in targets.iter().zip(&survey.devices) {
            let size = match target.is_dir() {
                true => Some(
                    args.shared
                        .size
                        .map_or_else(|| needed(device, settings.map), |size| size.0),
                ),
                false => args.shared.size.map(|size| size.0),
            };
            let opened = target::prepare_sized(root, target, args, size, &[]);
            let is_large =
                target.is_dir() && args.shared.size.is_none() && settings.map == OffsetMap::Exact;
            prepared.push(match opened {
                Err(Failure::Refused(why)) if is_large => {
                    let why = sentence(&why);
                    return Err(Failure::refused(format!("{why}, or --map compact")));
                }
                opened => opened?,
            });
        }
        let writes = survey.writes > 0 && !settings.reads_only;
        if let Some(only_read) = prepared.iter().find(|target| writes && !target.writable) {
            return Err(Failure::refused(format!(
                "the trace writes, and {path} may only be read: name it again with --destroy {path}, or give \
                 --reads-only",
                path = only_read.target.path
            )));
        }
        if settings.discards && survey.discards > 0 {
            prepared
                .iter()
                .try_for_each(|target| check_discards(root, target))?;
        }
        if let Some(cached) = prepared.iter().find(|target| !target.target.direct) {
            return Err(Failure::refused(format!(
                "the file system of {} has no direct I/O, and the page cache would answer in place of a disk",
                cached.target.path
            )));
        }
        Ok(ReadyTrace {
            file: file.to_path_buf(),
            survey,
            settings,
            prepared,
        })
    }
}

/// Reads the trace once.
///
/// # Errors
/// When it cannot be read twice, or cannot be replayed on this number of targets as requested.
pub(crate) fn surveyed(
    args: &BenchArgs,
    file: &Path,
    targets: usize,
    interrupt: &AtomicBool,
) -> Result<Survey, Failure> {
    if fs::metadata(file).is_ok_and(|there| !there.is_file()) {
        return Err(Failure::refused(format!(
            "{} is no regular file, and a replay reads its trace twice; write it to a file first",
            file.display()
        )));
    }
    let settings = settings(args);
    let device = args.replay_options.device.as_deref();
    let name = file.display().to_string();
    let open = || trace::open(file);
    let survey = replay::survey(&open, &name, device, settings.map, interrupt).refused()?;
    if interrupt.load(Relaxed) {
        return Err(Failure::refused(
            "interrupted while the trace was read; nothing was touched",
        ));
    }
    check_survey(&survey, file, device, settings, targets).map_err(Failure::refused)?;
    Ok(survey)
}

/// Size of the test file for a device.
fn needed(device: &replay::SurveyedDevice, map: OffsetMap) -> Bytes {
    let bytes = match map {
        OffsetMap::Compact => device.footprint().unwrap_or(device.reach),
        OffsetMap::Exact | OffsetMap::Wrap => device.reach,
    };
    Bytes(bytes.0.next_multiple_of(Bytes::MIB.0).max(Bytes::MIB.0))
}

/// True if both paths are the same file.
fn is_same(target: &Path, file: &Path) -> bool {
    let both = target.canonicalize().ok().zip(file.canonicalize().ok());
    both.is_some_and(|(target, file)| target == file)
}

/// Checks that there is something to replay, and a target for each device.
///
/// # Errors
/// A sentence, where either is missing.
fn check_survey(
    survey: &Survey,
    file: &Path,
    device: Option<&str>,
    settings: ReplaySettings,
    targets: usize,
) -> Result<(), String> {
    let file = file.display();
    let names: Vec<&str> = survey
        .devices
        .iter()
        .map(|device| device.name.as_str())
        .collect();
    if names.is_empty() {
        return Err(match device {
            Some(device) => format!(
                "{file} has no I/O of a device {device}; 'disksmith trace show {file}' lists them"
            ),
            None => format!("{file} holds no I/O"),
        });
    }
    if settings.reads_only && survey.reads == 0 {
        return Err(format!(
            "{file} holds no reads, and --reads-only leaves out all else"
        ));
    }
    if settings.pace == Pace::Dependencies && !survey.trace.has_completions {
        return Err(format!(
            "{file} holds no completion times, without which nothing is known of what its I/Os waited for; give \
             --pace recorded"
        ));
    }
    if names.len() != targets {
        let first: Vec<&str> = names.iter().copied().take(8).collect();
        return Err(format!(
            "{file} holds I/O of {} device(s) ({}{}), and {targets} target(s) are named: name one target for each, \
             in this order, or choose one with --device",
            names.len(),
            first.join(", "),
            if first.len() < names.len() {
                ", …"
            } else {
                ""
            },
        ));
    }
    Ok(())
}

impl Session<'_> {
    /// Replays the trace.
    pub(crate) fn run_trace(&mut self, ready: ReadyTrace) -> Result<FinishedRun, Failure> {
        let ReadyTrace {
            file,
            survey,
            settings,
            mut prepared,
        } = ready;
        let mut progress = Progress::new(self.context.watched);
        let mut notes = Vec::new();
        let mut counters = Vec::new();
        for target in &mut prepared {
            if target.target.kind == TargetKind::Directory {
                lay_out_for_trace(
                    self.engine,
                    target,
                    self.seed,
                    self.interrupt,
                    &mut progress,
                )?;
            }
            phases::inspect_content(target, &[])?;
            notes.append(&mut target.notes);
            counters.append(&mut target.counters);
        }
        let Some(first) = prepared.first() else {
            return Err(Failure::refused("no target is named"));
        };
        let (machine, target) = (self.machine(first), first.target.clone());
        let disks: Vec<Disk<'_>> = prepared
            .iter()
            .map(|prepared| Disk {
                file: &prepared.file,
                path: &prepared.target.path,
                size: prepared.target.size,
                alignment: prepared.alignment,
            })
            .collect();
        progress.begin(REPLAY, survey.trace.seconds / settings.speed);
        let plan = PhasePlan::new(REPLAY, base());
        let mut watch = Watch::new(&plan, &counters, &progress);
        let open = || trace::open(&file);
        let open: &(dyn Fn() -> Result<Box<dyn TraceReader>, ReadError> + Sync) = &open;
        let played = replay::play(
            &engine::DiskEngine,
            open,
            &survey,
            &disks,
            settings,
            self.args.interface(),
            self.seed,
            self.interrupt,
            &mut watch,
        );
        let mut played = match played {
            Ok(played) => played,
            Err(PlayError::Read(error)) => return Err(error).midway(),
            Err(PlayError::Engine(error)) => {
                let what = format!(
                    "{} could not be replayed on {}",
                    file.display(),
                    target.path
                );
                return Err(anyhow::Error::new(error).context(what)).midway();
            }
        };
        watch.finish(&mut played.phase);
        progress.end();
        let phases = match played.replay.counts.issued {
            0 => Vec::new(),
            _ => vec![played.phase],
        };
        let failed = None;
        let measured = MeasuredPhases { phases, failed };
        let mut ran = self.recorded(target, machine, measured, &[], notes);
        ran.run.replay = Some(Box::new(played.replay));
        ran.failed = played.failed.map(|error| {
            anyhow::Error::new(error).context("the trace could not be read to its end")
        });
        Ok(ran)
    }
}

/// Lays out the test file of a directory.
///
/// # Errors
/// Failed midway, where there is no room, a write fails, or a signal arrives; the file is removed then.
fn lay_out_for_trace(
    engine: &dyn Engine,
    target: &mut Prepared,
    seed: u64,
    interrupt: &AtomicBool,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let path = target.target.path.clone();
    let data = Layout {
        most: target.target.size,
        fixed: true,
        contents: None,
    };
    layout::lay_out(engine, target, &data, seed, interrupt, progress)
        .map_err(|error| {
            anyhow::Error::new(error).context(format!(
                "the test file in {path} could not be laid out; it is removed"
            ))
        })
        .midway()?;
    match interrupt.load(Relaxed) {
        true => Err(Failure::Midway(anyhow!(
            "interrupted while the test file was laid out; it is removed, and nothing was replayed"
        ))),
        false => Ok(()),
    }
}
