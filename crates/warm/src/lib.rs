//! `warm`: reads every block of a volume that was restored from a snapshot once, so that no later
//! read has to wait for object storage.
//!
//! - `plan`: the space to read and its order; from `files`, `space` and `blocks`;
//! - `reading`: the requests, one after the other, over `reader::Work`, `reader::Meter` and `pace`;
//! - `wanted_space`: the search for the space in use, while the first blocks are already being read;
//! - `volume_warming`: one volume from its plan to its result; `start` and `checkpoint`: whether it continues where an
//!   earlier start ended;
//! - `check` and `forecast`: the cold share, and how long warming takes;
//! - `caps`: the limit of the rate; `depth_beside`: the limit of the bytes in flight beside a foreground;
//! - `report`: the output.

pub mod args;
mod blocks;
mod caps;
mod check;
mod checkpoint;
mod depth_beside;
mod files;
mod finding;
mod forecast;
mod left_cold;
mod limit;
mod observer;
mod pace;
mod plan;
mod present;
mod progress;
mod reading;
mod report;
mod space;
mod start;
mod turns;
pub(crate) mod volume;
mod volume_warming;
mod wanted_space;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use engine::list::ListEngine;
use formats::text::Utf8;
use job::ProgressLines;
use linux::Root;
use linux::aws;
use linux::block::{DeviceNumber, Devices};
use record::{Bytes, Ranges};

use crate::args::WarmArgs;
use blocks::SnapshotBlocks;
use finding::{Finding, FindingCode};
use limit::SharedRateLimit;
use pace::IoPolicy;
use plan::{Extent, KnownSpace};
use reader::Volume;
use start::StartOptions;
use turns::Turns;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::output::OutputFile;
use volume_warming::{Shared, Task, WarmResult};
use wanted_space::WantedSpace;

/// Minimum size of a block: a page.
const MIN_BLOCK_SIZE: Bytes = Bytes(4096);
/// Maximum size of a block: 128 requests of this size take 2 GiB of memory.
const MAX_BLOCK_SIZE: Bytes = Bytes::mib(16);

/// Interval at which progress is reported while a long list of blocks is requested.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Runs `warm`: warms volumes, or with `--check` estimates their cold share, or with `--plan` computes how long warming
/// takes.
pub fn warm(
    args: &WarmArgs,
    context: &mut Context,
    lister: &dyn ListEngine,
    interrupt: &AtomicBool,
) -> Outcome {
    if let (Some(size), Some(rate)) = (args.plan, args.rate) {
        return forecast::plan(size.0, rate.0, args, context);
    }
    if args.ready_by.is_some() && !args.check {
        return Err(Failure::refused(
            "--ready-by goes with --check DEVICE, or with --plan SIZE --rate RATE",
        ));
    }
    check_block(args.block.0)?;
    let page = args.page.check()?;
    let devices = Devices::read(&context.root).refused()?;
    let volumes = open_all(&args.devices, &devices, &context.root)?;
    if args.check {
        return check::check(&volumes, args, context, lister, interrupt);
    }
    warm_all(volumes, &devices, (args, page), context, lister, interrupt)
}

fn check_block(block: Bytes) -> Result<(), Failure> {
    let fits = (MIN_BLOCK_SIZE..=MAX_BLOCK_SIZE).contains(&block);
    if fits && block.0.is_multiple_of(MIN_BLOCK_SIZE.0) {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "--block {} is not possible; give a multiple of {MIN_BLOCK_SIZE}, at most {MAX_BLOCK_SIZE}",
        block.exact()
    )))
}

/// Opens all volumes. The error lists the problems of all of them.
fn open_all(paths: &[PathBuf], devices: &Devices, root: &Root) -> Result<Vec<Volume>, Failure> {
    let mut volumes: Vec<Volume> = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        match volume::open(path, devices, root) {
            Ok(volume) => {
                let twice = volumes.iter().find(|one| one.number() == volume.number());
                if let Some(other) = twice {
                    problems.push(format!(
                        "{} and {} are the same device",
                        other.path.display(),
                        path.display()
                    ));
                }
                volumes.push(volume);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        Ok(volumes)
    } else {
        Err(Failure::refused(problems.join("\n")))
    }
}

fn warm_all(
    volumes: Vec<Volume>,
    devices: &Devices,
    (args, page): (&WarmArgs, Option<OutputFile>),
    context: &mut Context,
    lister: &dyn ListEngine,
    interrupt: &AtomicBool,
) -> Outcome {
    let held = held(args, &volumes, context, interrupt)?;
    let locks = reader::lock_disks(&volumes).map_err(Failure::refused)?;
    let first = files::find(&args.first, devices, &volumes, context, interrupt)?;
    if interrupt.load(Ordering::Relaxed) {
        return Err(Failure::Midway(anyhow!(
            "interrupted before anything was read; the same command begins with it"
        )));
    }
    let mut tasks = Vec::new();
    let extent = extent(args, first.has_unknown);
    let is_elsewhere = first.is_elsewhere;
    let mut of_files = first.findings;
    if args.until_hot && extent != Extent::First {
        of_files.push(not_known_hot());
    }
    for (volume, first) in volumes.into_iter().zip(first.each) {
        let known = KnownSpace {
            first,
            used: None,
            held: held.clone(),
        };
        tasks.push(task(volume, WantedSpace { known, extent }, args, context)?);
    }
    let lines = ProgressLines::new(context.watched);
    let below_ledger = below_ledger(args, devices, context);
    let limit = SharedRateLimit::new(args.limit.map(|limit| limit.0));
    // Where the user limits the rate, the volumes' rates alone are not measured.
    let unlimited = args.limit.is_none() && args.keep.targets().is_none();
    // Nor are they with --until-hot, where somebody waits for the data that --first names.
    let turns = Turns::new(tasks.len(), unlimited && !args.until_hot);
    let shared = Shared {
        root: &context.root,
        devices,
        limit: &limit,
        turns: &turns,
        policy: IoPolicy::of(args.keep.targets(), locks.len() < tasks.len()),
        interrupt,
        lines: &lines,
        below_ledger: &below_ledger,
    };
    let warmed = job::each_on_a_thread(tasks, |number, task| {
        volume_warming::warm(task, number, lister, &shared)
    });
    let hot = !(args.until_hot && is_elsewhere);
    if unlimited {
        of_files.extend(caps::findings(&warmed));
    }
    if let Some(page) = page {
        let foregrounds: Vec<_> = warmed
            .iter()
            .map(|one| (one.device.clone(), one.foreground.as_ref()))
            .collect();
        reader::write_page(&page, "warm", &foregrounds).midway()?;
    }
    answer(&warmed, &of_files, hot, args, context)
}

/// The disks that hold the ledger; empty if it is not used.
fn below_ledger(args: &WarmArgs, devices: &Devices, context: &Context) -> Vec<DeviceNumber> {
    let path = (!args.no_ledger)
        .then(|| context.ledger_path().ok())
        .flatten();
    path.map_or_else(Vec::new, |path| {
        reader::below_ledger(&context.root, devices, &path)
    })
}

/// The ranges that the volume's snapshot holds, by --snapshot or --blocks; `None` without these options.
fn held(
    args: &WarmArgs,
    volumes: &[Volume],
    context: &Context,
    interrupt: &AtomicBool,
) -> Result<Option<Ranges>, Failure> {
    let option = match (&args.snapshot, &args.blocks) {
        (Some(_), _) => "--snapshot is",
        (None, Some(_)) => "--blocks is the list of",
        (None, None) => return Ok(None),
    };
    if volumes.len() > 1 {
        return Err(Failure::refused(format!(
            "{option} one snapshot, and goes with the one volume that was restored from it; warm each with its own"
        )));
    }
    let (shown, held) = match (&args.snapshot, &args.blocks) {
        (Some(id), _) => (id.clone(), request(id, context, interrupt).refused()?),
        (None, blocks) => {
            let path = blocks.clone().unwrap_or_default();
            (path.display().to_string(), read(&path).refused()?)
        }
    };
    fits(&shown, &held, volumes).refused()?;
    Ok(Some(held.ranges))
}

/// Requests the list of a snapshot's blocks from `aws`.
fn request(id: &str, context: &Context, interrupt: &AtomicBool) -> anyhow::Result<SnapshotBlocks> {
    let mut reported = Instant::now();
    let mut report = |count: usize| {
        // A snapshot of 1 TiB has 200 pages, which take minutes.
        if context.watched && reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            context.notice(&format!(
                "disksmith: aws has listed {count} blocks of {id} so far."
            ));
        }
    };
    blocks::request(id, interrupt, &mut aws::run, &mut report)
        .with_context(|| format!("the blocks of {id} are not known"))
}

/// Reads the list of a snapshot's blocks from a file.
fn read(path: &Path) -> anyhow::Result<SnapshotBlocks> {
    let shown = path.display();
    let list = File::open(path).map_err(|error| anyhow!(linux::remedy::unread(path, &error)))?;
    blocks::parse(BufReader::new(Utf8::new(list)))
        .with_context(|| format!("{shown} cannot be used"))
}

/// Checks that each volume can have been restored from the snapshot of this list.
fn fits(shown: &str, held: &SnapshotBlocks, volumes: &[Volume]) -> anyhow::Result<()> {
    for volume in volumes {
        let device = volume.path.display();
        ensure!(
            volume.device.partition_of().is_none(),
            "{shown} counts blocks from the start of a whole volume, and {device} is a partition; \
             name its disk"
        );
        held.check(volume.size)
            .with_context(|| format!("{shown} cannot be used for {device}"))?;
    }
    Ok(())
}

/// Extent of the reading. Where the location of data that `--first` names is not known, it is warm only when all space
/// in use is.
fn extent(args: &WarmArgs, has_unknown: bool) -> Extent {
    match (args.until_hot, args.only_used) {
        (true, _) if !has_unknown => Extent::First,
        (true, _) | (false, true) => Extent::Used,
        (false, false) => Extent::All,
    }
}

fn not_known_hot() -> Finding {
    Finding::warn(
        FindingCode::NotMapped,
        "The location of part of the data that --first names is not known, so --until-hot ends only \
         when all space in use is warm.",
    )
}

fn task(
    volume: Volume,
    wanted: WantedSpace,
    args: &WarmArgs,
    context: &Context,
) -> Result<Task, Failure> {
    let options = StartOptions {
        block: args.block.0,
        whole: wanted.extent == Extent::All && wanted.known.held.is_none(),
        anew: args.anew,
        keep: !args.no_ledger,
    };
    Ok(Task {
        started: start::start(&volume, options, context)?,
        volume,
        wanted,
    })
}

/// Prints the results. `findings` are those about all volumes together; `hot` is true if the data that `--first` names
/// is warm, as far as it can be.
fn answer(
    warmed: &[WarmResult],
    findings: &[Finding],
    hot: bool,
    args: &WarmArgs,
    context: &mut Context,
) -> Outcome {
    let text = if args.json {
        report::document(warmed, findings)
    } else {
        report::text(warmed, findings, context.columns)
    };
    context.print(&text)?;
    let midway: Vec<String> = warmed
        .iter()
        .filter_map(report::incomplete_advice)
        .collect();
    let is_done = hot && warmed.iter().all(|one| one.unreadable.is_empty());
    job::outcome(
        &midway,
        if is_done {
            CommandEnd::Done
        } else {
            CommandEnd::No
        },
    )
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![
        DocumentType::of::<report::Document>("warm"),
        DocumentType::of::<check::report::Document>("warm"),
        DocumentType::of::<forecast::PlanDocument>("warm"),
    ]
}
