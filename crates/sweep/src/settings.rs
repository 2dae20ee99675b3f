//! Settings of a sweep and its layouts, from its arguments, checked before anything is changed.

use std::fs;
use std::path::{Path, PathBuf};

use linux::block::{Device, Devices};
use record::Bytes;

use super::figure::{Figure, Metric};
use super::figures::reason_never_measured;
use super::layout::Factors;
use super::objective::{Objective, Requirement};
use super::plan::{self, LayoutPlan};
use super::price::Prices;
use super::record::{SweepSettings, SweptTrace, SweptVolume};
use crate::args::SweepArgs;
use crate::measure::bench_args;
use array::host::number_at;
use bench::{PhasePlan, REPLAY, suite};
use ui::context::Context;

/// Phase of a workload given by the user.
const OWN_WORKLOAD: &str = "workload";

/// Objective if the user names none.
const DEFAULT_OBJECTIVE: &str = "page-mixed.iops";

/// Default size of the test file: large enough to cover every member of a large array, and small enough to be laid out
/// for each of many layouts.
const DEFAULT_SIZE: Bytes = Bytes::gib(1);

/// Settings and layouts from the arguments.
///
/// # Errors
/// All errors in them, as sentences.
pub(crate) fn read(
    args: &SweepArgs,
    context: &Context,
) -> Result<(SweepSettings, LayoutPlan), Vec<String>> {
    let mut problems = Vec::new();
    let devices = volumes(args, context, &mut problems);
    let prices = or_problem(prices(args), &mut problems).flatten();
    let objective = or_problem(objective(args, prices.as_ref()), &mut problems);
    let requires: Vec<Requirement> = args
        .require
        .iter()
        .filter_map(|text| or_problem(text.parse(), &mut problems))
        .collect();
    let factors = factors(args);
    let planned = or_problems(plan::plan(&factors, args.devices.len()), &mut problems);
    let (Some(objective), Some(planned)) = (objective, planned) else {
        return Err(problems);
    };
    let phases = or_problem(phases(args, &objective, &requires), &mut problems);
    let size = or_problem(size(args, &devices, &planned), &mut problems);
    let (Some(phases), Some(size), true) = (phases, size, problems.is_empty()) else {
        return Err(problems);
    };
    let settings = SweepSettings {
        devices,
        objective,
        requires,
        factors,
        phases,
        workload: args.workload.clone(),
        replay: args.replay.as_ref().map(|path| SweptTrace {
            // Absolute, since a sweep may be resumed from another folder.
            path: std::path::absolute(path).unwrap_or_else(|_| path.clone()),
            options: args.replay_options.clone(),
        }),
        seconds: args.seconds.0,
        precision: args.precision.0,
        size,
        threads: args.threads,
        depth: args.depth,
        blocks: args.blocks,
        tie: args.tie.0,
        full: args.full,
        seed: args.seed,
        prices,
    };
    if settings.replay.is_some() {
        // The I/O of a trace is only known when it is read.
        return Ok((settings, planned));
    }
    // The phases are checked against the suite or the workload.
    let checked = bench_args(&settings, Path::new("/"), 0).and_then(|bench| {
        let names = if settings.workload.is_some() {
            &[][..]
        } else {
            &settings.phases[..]
        };
        suite::plan(&bench, names)
    });
    let phases = checked.map_err(|why| vec![why])?;
    let never = never_measured(&settings, &phases);
    if never.is_empty() {
        Ok((settings, planned))
    } else {
        Err(never)
    }
}

/// Errors for requested figures that their phases never have: otherwise no layout could win, after hours of measuring.
fn never_measured(settings: &SweepSettings, phases: &[PhasePlan]) -> Vec<String> {
    let why = |figure: &Figure| {
        let phase = phases.iter().find(|phase| phase.name == figure.phase)?;
        reason_never_measured(figure, &phase.workload)
    };
    let requires = settings.requires.iter();
    settings
        .objective
        .figure()
        .into_iter()
        .chain(requires.map(|require| &require.figure))
        .filter_map(why)
        .collect()
}

/// The value; an error is added to the problems.
fn or_problem<T>(result: Result<T, String>, problems: &mut Vec<String>) -> Option<T> {
    or_problems(result.map_err(|problem| vec![problem]), problems)
}

fn or_problems<T>(result: Result<T, Vec<String>>, problems: &mut Vec<String>) -> Option<T> {
    result.map_err(|new| problems.extend(new)).ok()
}

fn factors(args: &SweepArgs) -> Factors {
    let members = if args.members.is_empty() {
        plan::default_members(args.devices.len())
    } else {
        args.members.clone()
    };
    Factors {
        members,
        levels: args.level.clone(),
        copies: args.layout.clone(),
        chunks: args.chunk.iter().map(|chunk| chunk.0).collect(),
        file_systems: args.fs.clone(),
        schedulers: args.scheduler.clone(),
        survives: args.survives,
    }
}

/// The devices as the kernel lists them. The claim reports the problems of a device that it does not list.
fn volumes(args: &SweepArgs, context: &Context, problems: &mut Vec<String>) -> Vec<SweptVolume> {
    let devices = match Devices::read(&context.root) {
        Ok(devices) => devices,
        Err(error) => {
            problems.push(error.to_string());
            return Vec::new();
        }
    };
    let volume = |path: &PathBuf| {
        let number = number_at(&context.root, &devices, path);
        let device: Option<&Device> = number.and_then(|number| devices.get(number));
        SweptVolume {
            path: path.clone(),
            id: device.and_then(Device::identity),
            serial: device.and_then(|device| device.serial.clone()),
            model: device.and_then(|device| device.model.clone()),
            size: device.map_or(Bytes(0), |device| device.size),
        }
    };
    args.devices.iter().map(volume).collect()
}

fn prices(args: &SweepArgs) -> Result<Option<Prices>, String> {
    let Some(path) = &args.price else {
        return Ok(None);
    };
    let shown = path.display().to_string();
    let text = fs::read(path)
        .map(formats::text::lossy)
        .map_err(|error| linux::remedy::unread(path, &error))?;
    Prices::parse(&shown, &text).map(Some)
}

fn objective(args: &SweepArgs, prices: Option<&Prices>) -> Result<Objective, String> {
    let objective: Objective = match &args.objective {
        Some(text) => text.parse()?,
        None if args.replay.is_some() => Objective::Figure(Figure::of(REPLAY, Metric::P99)),
        None if args.workload.is_some() => {
            Objective::Figure(Figure::of(OWN_WORKLOAD, Metric::Iops))
        }
        None => DEFAULT_OBJECTIVE.parse()?,
    };
    if objective.needs_prices() && prices.is_none() {
        return Err(format!(
            "the objective {objective} needs the prices of volumes; name a file with --price"
        ));
    }
    if objective == Objective::Cost && args.require.is_empty() {
        return Err(
            "the objective cost alone would choose the cheapest without measuring anything; give \
             with --require what a layout must reach"
                .to_owned(),
        );
    }
    Ok(objective)
}

/// The phases of the figures, and those named by the user, without duplicates.
fn phases(
    args: &SweepArgs,
    objective: &Objective,
    requires: &[Requirement],
) -> Result<Vec<String>, String> {
    let figures = objective
        .figure()
        .into_iter()
        .chain(requires.iter().map(|require| &require.figure));
    let mut phases: Vec<String> = Vec::new();
    for phase in figures.map(|figure| &figure.phase).chain(&args.phase) {
        if !phases.contains(phase) {
            phases.push(phase.clone());
        }
    }
    let only = match (&args.replay, &args.workload) {
        (Some(_), _) => Some(("--replay", REPLAY)),
        (None, Some(_)) => Some(("--workload", OWN_WORKLOAD)),
        (None, None) => None,
    };
    match only {
        Some((option, only)) => match phases.iter().find(|phase| *phase != only) {
            Some(other) => Err(format!(
                "with {option} there is one phase, {only}, and no {other}"
            )),
            None => Ok(phases),
        },
        None => Ok(phases),
    }
}

/// The size of the test file, which must fit on the smallest layout.
fn size(args: &SweepArgs, devices: &[SweptVolume], planned: &LayoutPlan) -> Result<Bytes, String> {
    let sizes: Vec<Bytes> = devices.iter().map(|device| device.size).collect();
    let least = planned
        .layouts
        .iter()
        .map(|layout| layout.capacity(&sizes))
        .min()
        .unwrap_or_default();
    let half = Bytes(least.0 / 2).round_down(Bytes::MIB);
    match args.size {
        None => Ok(DEFAULT_SIZE.min(half)),
        Some(size) if size.0 <= half || least.0 == 0 => Ok(size.0),
        Some(size) => Err(format!(
            "a test file of {} has no room on every layout: the smallest has {least} for data, of \
             which half is used at most; name a smaller --size",
            size.0
        )),
    }
}
