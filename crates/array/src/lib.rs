//! The verb `array`: builds, lists and takes down Linux software RAID.

mod advice;
pub mod args;
pub mod bitmap;
pub mod building;
pub mod check;
mod content;
pub mod create;
mod files;
pub mod geometry;
pub mod host;
mod journal;
mod list;
pub mod parsers;
mod persist;
pub mod plan;
pub mod programs;
mod repair;
mod replace;
mod report;
pub mod single_disk;
pub mod steps;
mod stop;
mod superblock;
pub mod teardown;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use linux::block::Devices;

use crate::args::{ArrayArgs, ArrayVerb, CreateArgs};
use building::{BuildStage, Building};
use check::CheckedPlan;
use domain::plan_binding;
use host::ArrayHost;
use job::JobStore;
use journal::Journal;
use programs::{InstalledPrograms, Programs};
use ui::context::{Context, notice};
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome, sentence};
use ui::table::wrap;

/// Folder of this host's settings.
const ETC: &str = "/etc";

/// Runs an action on arrays.
pub fn array(args: &ArrayArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    match &args.verb {
        ArrayVerb::List(args) => list::list(args, context),
        ArrayVerb::Create(args) => {
            // The remains of an interrupted `create` may block a dry run, which changes nothing.
            let left = if args.dry_run {
                list::unfinished_notice(context)
            } else {
                String::new()
            };
            let store = if args.dry_run {
                if args.json {
                    context.notice(left.trim_end());
                } else {
                    context.print(&left)?;
                }
                None
            } else {
                let store = open(context);
                store.map_err(|error| notice(&unrepairable(&error))).ok()
            };
            on_host(
                context,
                &mut InstalledPrograms,
                args.json,
                |host, columns| build(args, host, store, &left, columns, interrupt),
            )
        }
        ArrayVerb::Replace(args) => {
            on_host(context, &mut InstalledPrograms, args.json, |host, _| {
                replace::replace(args, host, interrupt)
            })
        }
        ArrayVerb::Stop(args) => {
            let store = open_if_there(context);
            on_host(context, &mut InstalledPrograms, args.json, |host, _| {
                stop::stop(args, host, store, interrupt)
            })
        }
    }
}

/// Opens the ledger for the journal of an array.
///
/// # Errors
/// When it cannot be opened or written, or the kernel hides which process this is.
fn open(context: &Context) -> anyhow::Result<JobStore> {
    let store = JobStore::open(context).map_err(Failure::error)?;
    anyhow::ensure!(
        store.ledger().is_writable(),
        "the ledger {} may only be read",
        store.ledger().path().display()
    );
    Ok(store)
}

/// Opens the ledger if it exists; without a ledger nothing was left. Problems are reported, and do not prevent that an
/// array is stopped.
fn open_if_there(context: &Context) -> Option<JobStore> {
    let opened = JobStore::open_if_there(context).map_err(|failure| {
        notice(&format!(
            "disksmith: it is unknown whether a killed 'array create' left something to repair: {}",
            sentence(&failure.error())
        ));
    });
    opened.ok()?.filter(|store| store.ledger().is_writable())
}

/// Warning that an array is built without the ledger.
fn unrepairable(error: &anyhow::Error) -> String {
    format!(
        "disksmith: the ledger cannot follow this, so that after a kill -9 or a power cut nothing \
         would be repaired: {}",
        sentence(error)
    )
}

/// Runs the work on this host. With `json` its messages go to standard error, and its answer is a document.
fn on_host(
    context: &mut Context,
    programs: &mut dyn Programs,
    json: bool,
    work: impl FnOnce(&mut ArrayHost, usize) -> Result<String, Failure>,
) -> Outcome {
    let root = context.root.clone();
    let columns = context.columns;
    let mut report = |text: &str| {
        if json {
            notice(text.trim_end());
        } else {
            // Work that has begun is completed, even if standard output is closed.
            let _ = context.print(text);
        }
    };
    let mut host = ArrayHost {
        root,
        etc: PathBuf::from(ETC),
        programs,
        report: &mut report,
        claims: Vec::new(),
        array: None,
        journal: None,
    };
    let answer = work(&mut host, columns)?;
    if json {
        context.print(&answer)?;
    }
    Ok(CommandEnd::Done)
}

/// Runs `array create`. Without a ledger the array is built all the same. `left` names what an earlier `array create`
/// has left, which a dry run may find in its way.
fn build(
    args: &CreateArgs,
    host: &mut ArrayHost,
    mut store: Option<JobStore>,
    left: &str,
    columns: usize,
    interrupt: &AtomicBool,
) -> Result<String, Failure> {
    if let Some(store) = &mut store {
        // What was left on these disks is taken back before they can be claimed, and checked again.
        let disks = [&args.members[..], &args.spares].concat();
        plan_binding::check_reading(&args.planned, &disks, &host.root)
            .map_err(|problems| refused(problems, ""))?;
        repair::repair(host, store, &args.planned);
    }
    let mut checked = check::check(args, host).map_err(|problems| refused(problems, left))?;
    let advice = advice::advice(&checked, &host.root);
    checked.notes.extend(advice);
    for note in &checked.notes {
        (host.report)(&format!("{}\n", wrap(note, columns, "  ")));
    }
    if args.dry_run {
        host.claims.clear();
        (host.report)(&report::dry_run(&checked, args.persist, &host.etc));
        return Ok(report::document(&checked.plan, args, &host.etc, None));
    }
    host.journal = store.and_then(|store| follow(store, &checked, args.persist, host));
    construct(&checked, args.persist, host, interrupt).midway()?;
    let text = report::summary(&checked, args.persist, host, columns).midway()?;
    (host.report)(&text);
    let node = host.built().midway()?.node;
    let document = report::document(&checked.plan, args, &host.etc, Some(&node));
    Ok(document)
}

/// Refusal to build an array, with its reasons and with what an earlier `array create` has left, which may be one.
fn refused(mut problems: Vec<String>, left: &str) -> Failure {
    let left: Vec<&str> = left.split_whitespace().collect();
    if !left.is_empty() {
        problems.push(left.join(" "));
    }
    Failure::refused_for("no array is built", &problems)
}

/// Begins the journal of the building in the ledger.
fn follow(
    store: JobStore,
    checked: &CheckedPlan,
    persist: bool,
    host: &ArrayHost,
) -> Option<Journal> {
    let devices = Devices::read(&host.root).unwrap_or_default();
    let (plan, members) = (&checked.plan, &checked.members);
    let boot = store.owner().boot.clone();
    let lines = match persist {
        true => persist::lines(plan, &host.etc),
        false => Vec::new(),
    };
    let building = Building::of(plan, members, lines, &devices, boot);
    let journal = Journal::begin(store, building);
    journal
        .map_err(|error| notice(&unrepairable(&error.into())))
        .ok()
}

/// Runs the steps. Once they are done or undone the journal is ended.
fn construct(
    checked: &CheckedPlan,
    persist: bool,
    host: &mut ArrayHost,
    interrupt: &AtomicBool,
) -> Result<(), steps::FailedBuild> {
    let mut steps = create::steps(&checked.plan, &checked.members, persist, &host.etc);
    let undoing = |host: &mut ArrayHost| {
        let noted = host.journal.as_mut().map(Journal::note_undoing);
        if let Some(Err(error)) = noted {
            notice(&unrepairable(&error.into()));
        }
    };
    let outcome = steps::run(&mut steps, host, interrupt, undoing);
    let done = outcome.is_ok();
    let ended = host.journal.take().map(|mut journal| {
        // Two commits, so that a kill between them is not taken for an unfinished build.
        if done {
            journal.note(BuildStage::Done)?;
        }
        journal.end()
    });
    if let Some(Err(error)) = ended {
        notice(&format!(
            "disksmith: that this has ended is not noted: {error}"
        ));
    }
    outcome
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![
        DocumentType::of::<report::Document>("array create"),
        DocumentType::of::<list::Document>("array list"),
        DocumentType::of::<replace::Document>("array replace"),
        DocumentType::of::<stop::Document>("array stop"),
    ]
}
