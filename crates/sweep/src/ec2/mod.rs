//! `sweep --ec2`: volumes of several types are created, attached to this instance, measured, detached and deleted.
//!
//! - `plan`: the volume types and the price, before anything is created;
//! - `cloud`: requests to EC2; `checkpoint`: the state, saved in the ledger before each request;
//! - `rounds`: creating, attaching, measuring; `host`: the disks; `cleanup`: detaching and deleting, also after an
//!   error;
//! - `answer`: the comparison.
//!
//! A volume has the id of its sweep as a tag from its creation on. The next start or `sweep --abandon` finds the
//! volumes of a killed sweep by that tag. Volumes without it are never changed.

pub(crate) mod answer;
mod checkpoint;
mod cleanup;
mod clock;
mod cloud;
mod host;
pub(crate) mod plan;
mod rounds;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use engine::Engine;
use jiff::Timestamp;
use job::{JobStore, OwnedJob, Takeover};
use linux::{aws, cloud as metadata, remedy};
use record::RunId;

use crate::args::SweepArgs;
use crate::ready::open;
use crate::run::SweepEnd;
use crate::saved::AbandonedBody;
use answer::{TypeComparison, compare};
use checkpoint::{DOCUMENT, PREFIX, TypeSweepCheckpoint, VolumeStage, VolumeState, region_of};
use cleanup::clean;
use clock::HostClock;
use cloud::{Ec2, HostInstance, TAG, is_gone};
use host::HostBench;
use plan::TypeSweepPlan;
use rounds::{Rounds, free_names};
use ui::confirm::confirm;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};

/// True if a word names a sweep of volume types.
pub(crate) fn is_named(word: &str) -> bool {
    word.starts_with(PREFIX)
}

/// Compares types of volumes.
pub(crate) fn sweep(
    args: &SweepArgs,
    context: &mut Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Outcome {
    let plan = TypeSweepPlan::of(args).map_err(|problems| refused(&problems))?;
    if !args.dry_run && !rustix::process::geteuid().is_root() {
        return Err(refused(&[format!(
            "the disks of the volumes are written to, which needs root; {}",
            linux::remedy::as_root()
        )]));
    }
    let store = open("which volumes it has made", args.dry_run, context)?;
    let store = repair(store, args.dry_run, context)?;
    let id = instance(args, context)?;
    let mut run = aws::run;
    let mut ec2 = Ec2::new(&mut run, None);
    let place = ec2.instance(&id).map_err(Failure::refused)?;
    let started = Timestamp::now();
    let sweep = format!(
        "{PREFIX}{}",
        RunId::new(started, u64::from(std::process::id()))
    );
    let mut problems: Vec<String> = free_names(&place, plan.specs.len())
        .err()
        .into_iter()
        .collect();
    for spec in &plan.specs {
        let may = ec2.may_create(spec, &place, &sweep);
        problems.extend(may.err().map(|why| format!("{}: {why}", spec.text)));
    }
    if !problems.is_empty() {
        return Err(refused(&problems));
    }
    if args.dry_run {
        let text = match args.json {
            true => plan.document(&place),
            false => plan.text(&place, &sweep, context.columns),
        };
        context.print(&text)?;
        return Ok(CommandEnd::Done);
    }
    context.notice(&plan.text(&place, &sweep, context.columns));
    if !args.yes && !confirm("Create and measure these volumes?", "created", interrupt)? {
        return Err(refused(&["the plan was not confirmed".to_owned()]));
    }
    let checkpoint = TypeSweepCheckpoint {
        id: sweep.clone(),
        started,
        instance: place.id.clone(),
        zone: place.zone.clone(),
        region: ec2.region.clone(),
        specs: plan.specs,
        volumes: Vec::new(),
        objective: plan.objective,
        requires: plan.requires,
        rounds: plan.rounds,
        cells: Vec::new(),
        given_up: false,
    };
    let job = OwnedJob::begin(store, &sweep, &checkpoint, Takeover::FromDead).refused()?;
    let bench = HostBench {
        args,
        phases: plan.phases,
        span: plan.span,
        context,
        engine,
        interrupt,
        job,
    };
    carry_out(checkpoint, &place, &mut ec2, bench)
}

/// Runs a sweep, and removes its volumes also after an error.
fn carry_out(
    mut checkpoint: TypeSweepCheckpoint,
    place: &HostInstance,
    ec2: &mut Ec2<'_>,
    mut bench: HostBench<'_>,
) -> Outcome {
    let mut clock = HostClock::start();
    let (interrupt, args) = (bench.interrupt, bench.args);
    let ended = Rounds {
        ec2,
        bench: &mut bench,
        clock: &mut clock,
        place,
        timeout: args.attach_timeout.0.into(),
        interrupt,
    }
    .run(&mut checkpoint);
    let HostBench { context, job, .. } = bench;
    let given_up = !matches!(ended, Ok(SweepEnd::Over));
    let left = end(&mut checkpoint, given_up, job, ec2, &mut clock, context).err();
    let compared = compare(&checkpoint);
    if compared.is_measured() {
        print(&compared, args.json, context)?;
    }
    match (ended, left) {
        (Err(error), None) => {
            Err(Failure::Midway(error.error().context(
                "the sweep failed, and all of its volumes are deleted",
            )))
        }
        (Err(error), Some(left)) => Err(Failure::Midway(anyhow!(
            "{:#}\n{:#}",
            error.error(),
            left.error()
        ))),
        (Ok(_), Some(left)) => Err(left),
        (Ok(SweepEnd::Interrupted), None) => Err(Failure::Midway(anyhow!(
            "interrupted; all of its volumes are deleted"
        ))),
        (Ok(SweepEnd::Over), None) => status(&compared),
    }
}

/// Removes all volumes, and saves the sweep as finished. They are also removed when the ledger cannot be written.
///
/// # Errors
/// Failed midway, if volumes remain; the sweep is then unfinished, and the next start tries again. Also when the
/// ledger cannot be written.
fn end(
    checkpoint: &mut TypeSweepCheckpoint,
    given_up: bool,
    mut job: OwnedJob<TypeSweepCheckpoint>,
    ec2: &mut Ec2<'_>,
    clock: &mut HostClock,
    context: &Context,
) -> Result<JobStore, Failure> {
    let left = clean(checkpoint, ec2, clock, &mut |state| {
        if let Err(error) = job.save(state) {
            context.notice(&format!("disksmith: {error}."));
        }
    });
    checkpoint.given_up = given_up;
    match left.is_empty() {
        true => job.finish(checkpoint).midway(),
        false => Err(remains(&left, &checkpoint.id)),
    }
}

fn remains(left: &[String], sweep: &str) -> Failure {
    Failure::Midway(anyhow!(
        "volumes are left, which cost money:\n  {}\nThis tries again, and so does the next sweep with --ec2:\n  {}",
        left.join("\n  "),
        remedy::command(&format!("sweep --abandon {sweep}"))
    ))
}

fn status(compared: &TypeComparison) -> Outcome {
    match (compared.has_best(), compared.is_measured()) {
        (true, _) => Ok(CommandEnd::Done),
        (false, true) => Ok(CommandEnd::No),
        (false, false) => Err(Failure::Midway(anyhow!(
            "nothing could be measured; all volumes are deleted"
        ))),
    }
}

fn print(compared: &TypeComparison, json: bool, context: &mut Context) -> Result<(), Failure> {
    let text = match json {
        true => compared.document(),
        false => compared.text(context.columns),
    };
    context.print(&text)
}

fn refused(problems: &[String]) -> Failure {
    Failure::refused_for("no volume is created", problems)
}

/// The instance of this host.
///
/// # Errors
/// When it is unknown, or a different instance is named.
fn instance(args: &SweepArgs, context: &Context) -> Result<String, Failure> {
    let own = metadata::detect(&context.root).filter(|cloud| cloud.provider == "aws");
    let own = own.and_then(|cloud| cloud.instance_id);
    match (&args.instance, own) {
        (Some(named), Some(own)) if *named != own => Err(refused(&[format!(
            "this host is the instance {own}, and volumes that are attached to {named} are not seen here"
        )])),
        (Some(id), _) => Ok(id.clone()),
        (None, Some(own)) => Ok(own),
        (None, None) => Err(refused(&[
            "neither firmware nor metadata service says which instance of EC2 this host is; name it with --instance"
                .to_owned(),
        ])),
    }
}

/// Removes the volumes of sweeps that were killed on this host.
///
/// # Errors
/// When the ledger cannot be read, or volumes remain.
fn repair(mut store: JobStore, dry_run: bool, context: &Context) -> Result<JobStore, Failure> {
    for summary in store.abandoned::<TypeSweepCheckpoint>().refused()? {
        let key = summary.key;
        if dry_run {
            context.notice(&format!(
                "disksmith: the sweep {key} was killed; its volumes would be deleted first."
            ));
            continue;
        }
        context.notice(&format!(
            "disksmith: the sweep {key} was killed; its volumes are deleted."
        ));
        store = give_up(store, &key, Takeover::FromDead, context)?;
    }
    Ok(store)
}

/// Removes the volumes of an unfinished sweep of the ledger, and saves it as finished.
fn give_up(
    store: JobStore,
    key: &str,
    from: Takeover,
    context: &Context,
) -> Result<JobStore, Failure> {
    let (job, work) = OwnedJob::<TypeSweepCheckpoint>::claim(store, key, from).refused()?;
    let mut checkpoint = work.document;
    let mut run = aws::run;
    let mut ec2 = Ec2::new(&mut run, checkpoint.region.clone());
    let clock = &mut HostClock::start();
    end(&mut checkpoint, true, job, &mut ec2, clock, context)
}

/// Deletes the volumes of a sweep in the ledger or, if its ledger is lost, the volumes with its tag.
pub(crate) fn abandon(
    args: &SweepArgs,
    key: &str,
    context: &mut Context,
    interrupt: &AtomicBool,
) -> Outcome {
    let store = JobStore::open(context)?;
    match store.find::<TypeSweepCheckpoint>(key).refused()? {
        Some(work) if work.summary.finished.is_none() => {
            // Only the user can know that a sweep of another host no longer runs, and confirms it by its full id.
            give_up(store, key, Takeover::WithTarget, context)?;
        }
        _ => drop(lost(args, key, context, interrupt)?),
    }
    let text = match args.json {
        true => ui::json::document(DOCUMENT, &AbandonedBody { abandoned: key }),
        false => format!("The sweep {key} is given up, and none of its volumes is left.\n"),
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

/// Lists and deletes the volumes with the tag of a sweep, unless it is an unfinished sweep of this ledger.
fn lost(
    args: &SweepArgs,
    key: &str,
    context: &Context,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    let mut run = aws::run;
    let mut ec2 = Ec2::new(&mut run, None);
    let mut volumes = ec2.tagged(key).refused()?;
    volumes.retain(|volume| !is_gone(volume));
    let Some(first) = volumes.first() else {
        return Err(Failure::refused(format!(
            "neither the ledger nor EC2 has anything left of a sweep {key}: no volume has the tag {TAG}={key} in the \
             region that aws asks"
        )));
    };
    let zone = first.zone.clone().unwrap_or_default();
    let mut checkpoint = TypeSweepCheckpoint {
        id: key.to_owned(),
        started: Timestamp::now(),
        // A host that is not an instance has no volumes attached.
        instance: instance(args, context).unwrap_or_default(),
        region: region_of(&zone),
        zone,
        specs: Vec::new(),
        volumes: volumes
            .iter()
            .map(|volume| VolumeState {
                stage: VolumeStage::Created,
                id: Some(volume.id.clone()),
            })
            .collect(),
        objective: crate::Objective::Cost,
        requires: Vec::new(),
        rounds: 0,
        cells: Vec::new(),
        given_up: true,
    };
    let problems: Vec<String> = volumes
        .iter()
        .filter_map(|volume| cleanup::may_be_removed(volume, &checkpoint).err())
        .collect();
    if !problems.is_empty() {
        return Err(Failure::refused_for("no volume is deleted", &problems));
    }
    for volume in &volumes {
        context.notice(&format!(
            "{}: {}, {} GiB, {}",
            volume.id,
            volume.kind.as_deref().unwrap_or("?"),
            volume.gib.unwrap_or(0),
            volume.state.as_deref().unwrap_or("?")
        ));
    }
    if !args.yes && !confirm("Delete these volumes?", "deleted", interrupt)? {
        return Err(Failure::refused(
            "nothing is deleted: the list was not confirmed",
        ));
    }
    let left = clean(
        &mut checkpoint,
        &mut ec2,
        &mut HostClock::start(),
        &mut |_| (),
    );
    match left.is_empty() {
        true => Ok(()),
        false => Err(remains(&left, key)),
    }
}

/// Shows a sweep of the ledger again.
pub(crate) fn show(args: &SweepArgs, key: &str, context: &mut Context) -> Outcome {
    let store = JobStore::open_if_there(context)?;
    let work = match &store {
        Some(store) => store.find::<TypeSweepCheckpoint>(key).refused()?,
        None => None,
    };
    let Some(work) = work else {
        return Err(Failure::refused(format!("the ledger has no sweep {key}")));
    };
    let compared = compare(&work.document);
    print(&compared, args.json, context)?;
    Ok(CommandEnd::Done)
}
