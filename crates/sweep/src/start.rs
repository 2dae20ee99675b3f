//! Start of a sweep: a new one, or the continuation of one with the same settings.

use std::path::Path;

use jiff::Timestamp;
use job::{JobStore, OwnedJob, Takeover};
use ledger::{OwnerLiveness, StoredWork};
use linux::block::Devices;
use linux::{cloud, machine, process, remedy};
use record::{Machine, RunId};
use serde::Serialize;

use super::check::check;
use super::checkpoint::Checkpoint;
use super::plan::LayoutPlan;
use super::ready::{ETC, ReadySweep, host, open, refused};
use super::record::{ExcludedSetting, SweepRecord, SweepSettings, SweptVolume};
use super::testbed::{OverwriteConsent, Testbed};
use super::{resume, settings};
use crate::args::SweepArgs;
use crate::views;
use array::check::consents;
use array::host::number_at;
use array::programs::Programs;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

/// Checks everything, takes down the layout that a killed start has left, and claims the devices; `None` for a dry
/// run.
///
/// # Errors
/// All reasons against the sweep.
pub(crate) fn start(
    args: &SweepArgs,
    context: &mut Context,
    programs: &mut dyn Programs,
) -> Result<Option<ReadySweep>, Failure> {
    let mut problems = Vec::new();
    let consents = consents(&args.destroy, &args.devices, "devices", &mut problems);
    let allowed = OverwriteConsent {
        consents,
        planned: args.planned.clone(),
    };
    let read = settings::read(args, context);
    if let Err(found) = &read {
        problems.extend(found.iter().cloned());
    }
    let (Ok((settings, mut planned)), true) = (read, problems.is_empty()) else {
        return Err(refused(&problems));
    };
    let records = "its progress, so that a kill leaves nothing assembled";
    let store = open(records, args.dry_run, context)?;
    // The claim reports a missing device.
    let are_there = settings.devices.iter().all(|volume| volume.size.0 > 0);
    if are_there && let Some(work) = unfinished(&store, &settings)? {
        let (allowed, key) = (allowed.begun(), work.summary.key.clone());
        if args.dry_run {
            resume::check_dry_run(work, &settings, &allowed, &store, context)?;
            context.notice(&format!("disksmith: the sweep {key} would continue."));
            context.print(&dry_run_text(&planned, args.json))?;
            return Ok(None);
        }
        return resume::resume(&key, &settings, &allowed, store, context, programs).map(Some);
    }
    let (notes, testbed) = {
        let mut report = |_: &str| ();
        let mut host = host(context, programs, &mut report);
        let testbed = Testbed::claim(&context.root, Path::new(ETC), &args.devices, &allowed);
        (
            check(&settings, &mut planned, args.dry_run, &mut host),
            testbed,
        )
    };
    let (notes, testbed) = match (notes, testbed) {
        (Ok(notes), Ok(testbed)) => (notes, testbed),
        (notes, testbed) => {
            let problems = notes.err().into_iter().chain(testbed.err());
            return Err(refused(&problems.flatten().collect::<Vec<_>>()));
        }
    };
    for note in notes {
        context.notice(&format!("disksmith: {note}"));
    }
    if args.dry_run {
        context.print(&dry_run_text(&planned, args.json))?;
        return Ok(None);
    }
    begin(settings, planned, testbed, store, context).map(Some)
}

fn begin(
    settings: SweepSettings,
    planned: LayoutPlan,
    testbed: Testbed,
    store: JobStore,
    context: &Context,
) -> Result<ReadySweep, Failure> {
    let started = Timestamp::now();
    let baseline = planned.layouts.len() / 2;
    let checkpoint = Checkpoint {
        record: SweepRecord {
            id: RunId::new(started, u64::from(std::process::id())),
            started,
            disksmith: env!("CARGO_PKG_VERSION").to_owned(),
            command: std::env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            machine: machine_of(context, &settings),
            settings,
            layouts: planned.layouts,
            baseline,
            left_out: planned.left_out,
            probe: None,
            blocks: Vec::new(),
            cells: Vec::new(),
            ran_s: 0.0,
            starts: 1,
            given_up: false,
        },
        underway: None,
        boot: process::boot_id(&context.root).midway()?,
    };
    let key = checkpoint.record.id.to_string();
    let job = OwnedJob::begin(store, &key, &checkpoint, Takeover::FromDead).refused()?;
    context.notice(&format!(
        "disksmith: sweep {key}: {} layouts, each in at most {} blocks. If it is stopped, the same \
         command continues it.",
        checkpoint.record.layouts.len(),
        checkpoint.record.settings.blocks
    ));
    Ok(ReadySweep {
        checkpoint,
        job,
        testbed,
    })
}

fn machine_of(context: &Context, settings: &SweepSettings) -> Machine {
    let devices = Devices::read(&context.root).ok();
    let first = settings.devices.first();
    let name = devices.zip(first).and_then(|(devices, volume)| {
        let number = number_at(&context.root, &devices, &volume.path)?;
        Some(devices.get(number)?.name.clone())
    });
    let mut machine = machine::facts(&context.root, name.as_deref(), None);
    machine.cloud = cloud::detect(&context.root);
    machine
}

/// The unfinished sweep of these devices, if there is one.
///
/// # Errors
/// When its settings differ, or it may be running elsewhere: two sweeps cannot share a device.
fn unfinished(
    store: &JobStore,
    settings: &SweepSettings,
) -> Result<Option<StoredWork<Checkpoint>>, Failure> {
    for work in store.unfinished::<Checkpoint>(|_| true).refused()? {
        let work = work.refused()?;
        let (key, owner) = (&work.summary.key, &work.summary.owner);
        let record = &work.document.record;
        let elsewhere = store.liveness(owner) == OwnerLiveness::Elsewhere;
        let shares = |volume: &SweptVolume| {
            let mut others = settings.devices.iter();
            // A path of another host may be any device on this one.
            others.any(|other| volume.is_same_volume(other) && !(elsewhere && volume.id.is_none()))
        };
        if !record.settings.devices.iter().any(shares) {
            continue;
        }
        let abandon = remedy::command(&format!("sweep --abandon {key}"));
        if elsewhere {
            return Err(Failure::refused(format!(
                "the sweep {key} of these devices was begun on the host {}, or in another \
                 container, and is not finished. Continue it there; or, if nothing of it runs any \
                 more, take down what it left:\n  {abandon}",
                owner.host
            )));
        }
        if !is_same_sweep(&record.settings, settings) {
            return Err(Failure::refused(format!(
                "the sweep {key} of these devices is not finished, and it has other settings. Either continue it:\n  {}\nor take down what it left and forget the \
                 rest:\n  {abandon}",
                views::sentences::resume_command(record)
            )));
        }
        return Ok(Some(work));
    }
    Ok(None)
}

/// True if the settings are the same, on the same volumes, whatever their names are now.
fn is_same_sweep(before: &SweepSettings, now: &SweepSettings) -> bool {
    let one_each = |some: &[SweptVolume], others: &[SweptVolume]| {
        some.iter().all(|one| {
            let same = others.iter().filter(|other| one.is_same_volume(other));
            same.count() == 1
        })
    };
    one_each(&before.devices, &now.devices)
        && one_each(&now.devices, &before.devices)
        && *before
            == SweepSettings {
                devices: before.devices.clone(),
                ..now.clone()
            }
}

/// Body of the document of `sweep --dry-run --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DryRunBody<'a> {
    /// Always true: nothing was touched.
    dry_run: bool,
    /// Names of the layouts that would be measured, as in tables.
    layouts: Vec<String>,
    /// Settings that cannot be measured on this host.
    left_out: &'a [ExcludedSetting],
}

/// The layouts that would be measured.
fn dry_run_text(planned: &LayoutPlan, json: bool) -> String {
    let count = planned.layouts.len();
    if json {
        let body = DryRunBody {
            dry_run: true,
            layouts: planned.layouts.iter().map(ToString::to_string).collect(),
            left_out: &planned.left_out,
        };
        return ui::json::document("sweep", &body);
    }
    let mut text = format!("{count} layouts would be measured, and nothing was touched:\n");
    for layout in &planned.layouts {
        text.push_str(&format!("  {layout}\n"));
    }
    for left in &planned.left_out {
        text.push_str(&format!("Not measured: {}: {}.\n", left.what, left.why));
    }
    text
}
