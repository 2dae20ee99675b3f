//! The verb `scrub`: md's own check of an array, paced by the foreground's latency.
//!
//! - `target`: the array, and why it cannot be scrubbed; `lock`: one scrub at a time;
//! - `drive`: begins, paces and ends md's check, at the rate that `study::pace` allows; `host` is its control of a real
//!   array;
//! - `deadline`: warns of a deadline that cannot be met;
//! - `saved_tunables`: the tunables before the scrub; `guard`: the process that restores them after a kill; `health`:
//!   read errors of members;
//! - `start` and `checkpoint`: the state in the ledger; `start_times`: hours and deadlines;
//! - `compare`: reads and compares members directly, where foreground requests would wait for md;
//! - `read`: reads members and disks from end to end instead; `foreground`: the foreground's latency;
//! - `forecast`: the notice before a scrub begins; `speed`: the members' speed, where no earlier scrub gives it;
//! - `choose`: the arrays to scrub, and those to scrub at the same time;
//! - `array_scrub`: one array from its start to its result; `report`, `progress` and `status` report it, and
//!   `live_progress` tells other processes its progress;
//! - `rewrite`: rewrites wrong blocks of one member from the other members;
//! - `mismatch_ranges`: the ranges in which the count of mismatches grew; `locate` finds the mismatches there, for
//!   `seek`, and `places` reports them;
//! - `schedule`: checks that the distribution schedules; `scheduled` reports them; `timer` replaces them, for
//!   `install`.

pub mod args;
mod array_scrub;
mod calendar;
mod checkpoint;
mod choose;
mod compare;
mod deadline;
mod document;
mod drive;
mod forecast;
mod foreground;
mod guard;
mod health;
mod host;
mod hours;
mod install;
mod live_progress;
mod locate;
mod lock;
mod mismatch_ranges;
mod places;
mod progress;
mod read;
mod repair;
mod report;
mod rewrite;
mod saved_tunables;
mod schedule;
mod scheduled;
mod seek;
mod speed;
mod start;
mod start_times;
mod status;
mod target;
mod timer;

use array::programs::InstalledPrograms;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::anyhow;
use jiff::{Timestamp, Zoned};
use job::{JobStore, ProgressLines};
use linux::block::Devices;

use crate::args::ScrubArgs;
use array_scrub::{ScrubResult, Shared};
use choose::{choose, is_any_degraded, refresh_targets, rounds};
use drive::ScrubEnd;
use forecast::{ForecastInput, forecast};
pub use hours::validate;
use hours::{share, times, wait_for_hours};
use repair::RepairMethod;
use saved_tunables::SavedTunables;
use scheduled::Plans;
use start::{StartedScrub, restore_after_kills, start_when_free};
use start_times::DueTime;
use target::Target;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome, sentence};
use ui::journal::{JournalPriority, report as report_of};

/// Scrubs arrays, or reports the state of their scrubs.
pub fn scrub(args: &ScrubArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    if args.guard {
        return guard::guard(&context.root)
            .refused()
            .map(|()| CommandEnd::Done);
    }
    let devices = Devices::read(&context.root).refused()?;
    if args.install_timer || args.uninstall_timer {
        return install::install(args, &devices, context);
    }
    validate(args)?;
    let mut store = JobStore::open_if_there(context).unwrap_or_else(|failure| {
        context.notice(&format!(
            "disksmith: it is not known whether a killed scrub has left tunables to restore: {}",
            sentence(&failure.error())
        ));
        None
    });
    let notes = store
        .as_mut()
        .map(|store| restore_after_kills(store, &context.root, &devices))
        .unwrap_or_default();
    if args.status {
        return status::status(args.json, &notes, store.as_ref(), &devices, context);
    }
    drop(store);
    for note in notes {
        context.notice(&format!("disksmith: {note}"));
    }
    if args.read {
        return read::read(args, &devices, context, interrupt);
    }
    let page = args.page.check()?;
    // Errors are reported now rather than when the hours begin; the arrays are examined again then.
    let chosen = choose(args, &devices, context)?;
    repair_methods(&chosen, args, context)?;
    if chosen.is_empty() {
        return answer(&[], Vec::new(), args, context);
    }
    let (by, opening) = times(args)?;
    let Some(stop) = wait_for_hours(opening, args, context, interrupt) else {
        let notices = "interrupted before anything was checked";
        if args.scheduled {
            context.notice(&format!("disksmith: {notices}"));
            return Ok(CommandEnd::Done);
        }
        return Err(Failure::Midway(anyhow!(notices)));
    };
    let devices = Devices::read(&context.root).refused()?;
    let targets = choose(args, &devices, context)?;
    let repair_methods = repair_methods(&targets, args, context)?;
    let _locks = lock_all(&targets)?;
    let now = Zoned::now();
    // With --every a due array is always scrubbed; and a repair by md needs no located mismatches.
    let by_md = |target: &Target| repair_methods.get(&target.uuid) == Some(&RepairMethod::Md);
    let (to_locate, others): (Vec<Target>, Vec<Target>) = targets
        .into_iter()
        .partition(|target| (args.locate || args.repair) && !by_md(target));
    let (mut scrubbed, mut targets) = match !args.anew && args.every.is_none() {
        true => seek::known(to_locate, context),
        false => (Vec::new(), to_locate),
    };
    targets.extend(others);
    let lines = ProgressLines::new(context.watched);
    let shared = share((context, &devices), (stop, &lines), args, by, &now);
    let plans = Plans::read(&context.root, &now, &mut InstalledPrograms);
    for sentence in plans.sentences() {
        context.notice(&format!("disksmith: {sentence}"));
    }
    let mut begun = Ok(());
    let mut left_out = Vec::new();
    for (number, mut round) in rounds(targets).into_iter().enumerate() {
        if let Some(over) = scrubbed
            .iter()
            .find(|one| matches!(one.ending, ScrubEnd::Ordered(_)))
        {
            context.notice(&format!(
                "disksmith: arrays that share disks with {} were not begun.",
                over.target.path()
            ));
            break;
        }
        if number > 0 {
            let (targets, problems) = refresh_targets(round, &context.root);
            round = targets;
            left_out.extend(problems);
        }
        match begin(round, args, &repair_methods, &shared, &plans, context) {
            Ok(tasks) => scrubbed
                .extend(job::each_on_a_thread(tasks, |_, (target, started, old)| {
                    array_scrub::scrub(target, started, &old, &shared)
                })),
            // Earlier results are reported all the same, and the arrays of other rounds are begun.
            Err(failure) => begun = begun.and(Err(failure)),
        }
    }
    if scrubbed.is_empty() {
        begun?;
        return answer(&scrubbed, left_out, args, context);
    }
    for one in &mut scrubbed {
        one.repair_method = repair_methods.get(&one.target.uuid).cloned();
    }
    if args.locate || args.repair {
        // A signal that has ended a scrub does not end the search; the next one does.
        interrupt.store(false, Relaxed);
        for one in &mut scrubbed {
            let repairs = one.repair_method == Some(RepairMethod::Others)
                && matches!(one.ending, ScrubEnd::Done);
            if args.locate || repairs {
                one.located = seek::find(one, &context.root, interrupt);
            }
            if repairs {
                repair_array(one, context, interrupt);
            }
        }
    }
    if let Some(page) = page {
        let foregrounds: Vec<_> = scrubbed
            .iter()
            .map(|one| (one.target.path(), one.foreground.as_ref()))
            .collect();
        reader::write_page(&page, "scrub", &foregrounds).midway()?;
    }
    let answered = answer(&scrubbed, left_out, args, context)?;
    begun.map(|()| answered)
}

/// Method of repair of each array, by its id; empty where no repair is requested.
fn repair_methods(
    targets: &[Target],
    args: &ScrubArgs,
    context: &Context,
) -> Result<BTreeMap<String, RepairMethod>, Failure> {
    if !args.repair {
        return Ok(BTreeMap::new());
    }
    let mut problems = Vec::new();
    let mut repair_methods = BTreeMap::new();
    for target in targets {
        let method = rewrite::repair_method(target, &context.root);
        match &method {
            RepairMethod::Not(why) => problems.push(format!(
                "{} cannot be repaired: {why}. md's own repair would keep the data as it is, also where that is \
                 what is wrong",
                target.path()
            )),
            RepairMethod::Md if args.locate => problems.push(format!(
                "{} is repaired by md, which does not know what is wrong ({}): find the mismatches with \
                 --locate first, and then repair it",
                target.path(),
                target.level
            )),
            RepairMethod::Md | RepairMethod::Others => {}
        }
        repair_methods.insert(target.uuid.clone(), method);
    }
    match problems.is_empty() {
        true => Ok(repair_methods),
        false => Err(Failure::refused_for("nothing is repaired", &problems)),
    }
}

/// Repairs an array from the members that agree, where mismatches were located.
fn repair_array(one: &mut ScrubResult, context: &Context, interrupt: &AtomicBool) {
    let located = one.located.take();
    if let Some(Ok(located)) = &located {
        let repaired = rewrite::repair(one, located, context, interrupt);
        one.repaired = Some(repaired.map_err(|error| format!("{error:#}")));
    }
    one.located = located;
}

/// Starts the scrubs of some arrays, and prints their forecasts.
fn begin(
    targets: Vec<Target>,
    args: &ScrubArgs,
    repair_methods: &BTreeMap<String, RepairMethod>,
    shared: &Shared<'_>,
    plans: &Plans,
    context: &Context,
) -> Result<Vec<(Target, StartedScrub, SavedTunables)>, Failure> {
    let mut tasks = Vec::new();
    for target in targets {
        let repairs = repair_methods.get(&target.uuid) == Some(&RepairMethod::Md);
        let (started, old) = start_when_free(&target, repairs, args.anew, &shared.stop, context)?;
        announce(&target, &started, args, shared.due.as_ref(), context);
        for sentence in plans.obstacles(
            &target.device.name,
            &started.checkpoint,
            shared.stop.deadline(),
        ) {
            let text = format!("disksmith: {}: {sentence}", target.path());
            report_of(JournalPriority::Notice, &text, &[target.field()]);
        }
        tasks.push((target, started, old));
    }
    Ok(tasks)
}

fn lock_all(targets: &[Target]) -> Result<Vec<File>, Failure> {
    let mut locks = Vec::new();
    for (number, target) in targets.iter().enumerate() {
        let refuse =
            |why: String| Failure::refused(format!("{} cannot be scrubbed: {why}", target.path()));
        let disks = choose::new_disks(target, &targets[..number]);
        locks.extend(lock::take(target.device.number, &disks).map_err(refuse)?);
        guard::wait_for_others(target.device.number).map_err(refuse)?;
    }
    Ok(locks)
}

/// Prints the forecast of a scrub.
fn announce(
    target: &Target,
    started: &StartedScrub,
    args: &ScrubArgs,
    due: Option<&DueTime>,
    context: &Context,
) {
    // The latency to keep is measured at the start of the scrub; the members' speed is measured here.
    let is_unknown = started.checkpoint.rate().is_none() && !started.is_known;
    let speed = is_unknown.then(|| speed::of_members(target, &context.root));
    let known = ForecastInput {
        checkpoint: &started.checkpoint,
        args,
        due,
        speed: speed.flatten(),
    };
    let mut notices = forecast(target, &known, Timestamp::now());
    notices.extend(started.notes.iter().cloned());
    let text = format!("disksmith: {}", notices.join(" "));
    report_of(JournalPriority::Notice, &text, &[target.field()]);
}

/// Prints the results, and the arrays of later rounds that were left out.
fn answer(
    scrubbed: &[ScrubResult],
    left_out: Vec<String>,
    args: &ScrubArgs,
    context: &mut Context,
) -> Outcome {
    let text = if args.json {
        report::document(scrubbed)
    } else {
        report::text(scrubbed, context.columns)
    };
    context.print(&text)?;
    report::add_to_journal(scrubbed);
    let (sentences, outcome) = report::conclusion(scrubbed, left_out, args.scheduled);
    for sentence in sentences {
        context.notice(&format!("disksmith: {sentence}"));
    }
    match outcome {
        Ok(CommandEnd::Done) if args.all && is_any_degraded(&context.root) => Ok(CommandEnd::No),
        other => other,
    }
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![
        DocumentType::of::<report::Document>("scrub"),
        DocumentType::of::<read::report::Document>("scrub"),
        DocumentType::of::<status::Document>("scrub"),
    ]
}
