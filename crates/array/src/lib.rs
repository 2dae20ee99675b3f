//! The verb `array`: builds, lists and takes down Linux software RAID.

mod advice;
pub mod alone;
pub mod args;
pub mod building;
pub mod check;
mod content;
pub mod create;
mod files;
pub mod geometry;
pub mod host;
mod journal;
mod list;
pub mod plan;
pub mod programs;
mod repair;
pub mod steps;
mod stop;
pub mod teardown;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use linux::block::Devices;
use record::Bytes;
use serde::Serialize;

use crate::args::{ArrayArgs, ArrayVerb, CreateArgs};
use building::{Building, Stage};
use check::Checked;
use domain::plan_binding;
use host::Host;
use job::Store;
use journal::Journal;
use plan::Plan;
use programs::{Installed, Programs};
use ui::context::{Context, notice};
use ui::exit::{Answer, ExitClass as _, Failure, Outcome, sentence};
use ui::table::wrap;

/// Folder of this host's settings.
const ETC: &str = "/etc";

/// Does what is asked with arrays.
pub fn array(args: &ArrayArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    match &args.verb {
        ArrayVerb::List(args) => list::list(args, context),
        ArrayVerb::Create(args) => {
            // What was left is in the way of a rehearsal, which does not touch it.
            let left = if args.dry_run {
                list::left(context)
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
            on_host(context, &mut Installed, args.json, |host, columns| {
                build(args, host, store, &left, columns, interrupt)
            })
        }
        ArrayVerb::Stop(args) => {
            let store = open_if_there(context);
            on_host(context, &mut Installed, args.json, |host, _| {
                stop::stop(&args.array, host, store)
            })
        }
    }
}

/// Opens the ledger to follow the building of an array.
///
/// # Errors
/// When it cannot be opened or written, or the kernel hides which process this is.
fn open(context: &Context) -> anyhow::Result<Store> {
    let store = Store::open(context).map_err(Failure::error)?;
    anyhow::ensure!(
        store.ledger().is_writable(),
        "the ledger {} may only be read",
        store.ledger().path().display()
    );
    Ok(store)
}

/// The same, if there is a ledger; without one nothing was left. Problems are
/// said, and is no reason not to stop an array.
fn open_if_there(context: &Context) -> Option<Store> {
    let opened = Store::open_if_there(context).map_err(|failure| {
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

/// Gives the work what it works on. With `json` what it says while it works goes to standard error,
/// and its answer is a document.
fn on_host(
    context: &mut Context,
    programs: &mut dyn Programs,
    json: bool,
    work: impl FnOnce(&mut Host, usize) -> Result<String, Failure>,
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
    let mut host = Host {
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
    Ok(Answer::Done)
}

/// `array create`. Without the ledger it is built all the same. `left` says what a rehearsal may find in its way.
fn build(
    args: &CreateArgs,
    host: &mut Host,
    mut store: Option<Store>,
    left: &str,
    columns: usize,
    interrupt: &AtomicBool,
) -> Result<String, Failure> {
    if let Some(store) = &mut store {
        // What was left on these disks is taken back before they can be claimed, and checked again.
        plan_binding::check_reading(&args.planned, &args.members, &host.root)
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
        (host.report)(&rehearsal(&checked, args.persist));
        return Ok(document(&checked.plan, args, None));
    }
    host.journal = store.and_then(|store| follow(store, &checked, args.persist, host));
    construct(&checked, args.persist, host, interrupt).midway()?;
    let text = summary(&checked, args.persist, host, columns).midway()?;
    (host.report)(&text);
    let node = host.built().midway()?.node;
    Ok(document(&checked.plan, args, Some(&node)))
}

/// Refusal to build an array, with its reasons. What was left by one before may be why, and so is told with
/// them.
fn refused(mut problems: Vec<String>, left: &str) -> Failure {
    let left: Vec<&str> = left.split_whitespace().collect();
    if !left.is_empty() {
        problems.push(left.join(" "));
    }
    Failure::refused_for("no array is built", &problems)
}

/// The document of `array create --json`.
#[derive(Serialize)]
struct Document<'a> {
    dry_run: bool,
    /// Path of the array's device.
    node: &'a Path,
    name: Option<&'a str>,
    uuid: &'a str,
    level: &'static str,
    /// Paths of its members.
    members: &'a [PathBuf],
    chunk_bytes: Option<Bytes>,
    capacity_bytes: Bytes,
    filesystem: Option<&'static str>,
    /// Mount point.
    mount: Option<&'a Path>,
    /// The commands that build it, as lines of a shell.
    commands: Vec<String>,
    /// Lines of mdadm.conf and fstab.
    mdadm_conf: String,
    fstab: Option<String>,
    /// True if these lines were written.
    persisted: bool,
}

/// The array that was built, or would be where there is no node.
fn document(plan: &Plan, args: &CreateArgs, node: Option<&Path>) -> String {
    let geometry = plan.geometry;
    let at = node.unwrap_or(&plan.node);
    let commands = [Some(plan.mdadm()), plan.mkfs(at)];
    let mount = plan.mount(at);
    let commands = commands.into_iter().flatten();
    let commands = commands.chain(mount.as_ref().map(|(_, mount)| mount.clone()));
    let document = Document {
        dry_run: node.is_none(),
        node: at,
        name: plan.name.as_deref(),
        uuid: &plan.uuid,
        level: geometry.level.word(),
        members: &plan.members,
        chunk_bytes: geometry.chunk,
        capacity_bytes: plan.capacity,
        filesystem: plan.fs.as_ref().map(|fs| fs.fs.word()),
        commands: commands.map(|command| command.line()).collect(),
        mount: mount.map(|(point, _)| point),
        mdadm_conf: plan.conf_line(),
        fstab: plan.fstab_line(),
        persisted: args.persist && node.is_some(),
    };
    ui::json::document("array create", &document)
}

/// Lets the ledger follow what is done from here on.
fn follow(store: Store, checked: &Checked, persist: bool, host: &Host) -> Option<Journal> {
    let devices = Devices::read(&host.root).unwrap_or_default();
    let (plan, members) = (&checked.plan, &checked.members);
    let boot = store.owner().boot.clone();
    let building = Building::of(plan, members, persist, &host.etc, &devices, boot);
    let journal = Journal::begin(store, building);
    journal
        .map_err(|error| notice(&unrepairable(&error.into())))
        .ok()
}

/// Does the steps. Once they are done or undone the ledger needs to know of them no more.
fn construct(
    checked: &Checked,
    persist: bool,
    host: &mut Host,
    interrupt: &AtomicBool,
) -> Result<(), steps::Failed> {
    let mut steps = create::steps(&checked.plan, &checked.members, persist, &host.etc);
    let undoing = |host: &mut Host| {
        let noted = host.journal.as_mut().map(Journal::note_undoing);
        if let Some(Err(error)) = noted {
            notice(&unrepairable(&error.into()));
        }
    };
    let outcome = steps::run(&mut steps, host, interrupt, undoing);
    let done = outcome.is_ok();
    let ended = host.journal.take().map(|mut journal| {
        // In two changes, so that a kill between them is not taken for one before the end.
        if done {
            journal.note(Stage::Done)?;
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

/// Commands that would be run.
fn rehearsal(checked: &Checked, persist: bool) -> String {
    let plan = &checked.plan;
    let mut lines = vec!["This would be run, and nothing of it was:".to_owned()];
    let signed = checked.members.iter().filter(|member| member.signed);
    lines.extend(
        signed.map(|member| format!("+ wipefs --all --force --quiet {}", member.path.display())),
    );
    lines.push(format!("+ {}", plan.mdadm().line()));
    if let Some(read_ahead) = plan.geometry.read_ahead() {
        // The number of a named array is not known before.
        let node = plan.node.display();
        lines.push(format!(
            "+ echo {} > /sys/class/block/$(basename $(readlink -f {node}))/queue/read_ahead_kb",
            read_ahead.0 >> 10
        ));
    }
    lines.extend(
        plan.mkfs(&plan.node)
            .map(|mkfs| format!("+ {}", mkfs.line())),
    );
    if let Some((point, mount)) = plan.mount(&plan.node) {
        if !point.exists() {
            lines.push(format!("+ mkdir -p {}", point.display()));
        }
        lines.push(format!("+ {}", mount.line()));
    }
    let mut text = lines.join("\n");
    text.push_str("\n\n");
    text.push_str(&kept(checked, persist, "would be"));
    text
}

/// The lines for the files that are read at boot.
fn kept(checked: &Checked, persist: bool, verb: &str) -> String {
    let plan = &checked.plan;
    let files = match plan.fstab_line() {
        Some(_) => "mdadm.conf and fstab",
        None => "mdadm.conf",
    };
    let mut text = if persist {
        format!("For the next boot, this {verb} in {files}:\n")
    } else {
        format!("For the next boot, this belongs in {files} (--persist writes it):\n")
    };
    for line in [Some(plan.conf_line()), plan.fstab_line()].iter().flatten() {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

/// The array that was built.
fn summary(
    checked: &Checked,
    persist: bool,
    host: &Host,
    columns: usize,
) -> anyhow::Result<String> {
    let (plan, array) = (&checked.plan, host.built()?);
    let node = array.node.display();
    let geometry = plan.geometry;
    // What md made of it: chunks and superblocks take a little.
    let devices = Devices::read(&host.root)?;
    let size = devices.get(array.number).map(|device| device.size);
    let mut text = format!(
        "\n{node} is {} of {} members, with {} for data.\n",
        geometry.level.title(),
        geometry.members,
        size.unwrap_or(plan.capacity)
    );
    let mut report = |sentence: String| {
        text.push_str(&wrap(&sentence, columns, "  "));
        text.push('\n');
    };
    if let Some(read_ahead) = geometry.read_ahead() {
        let stripes = geometry.stripe().map(|stripe| stripe.0.saturating_mul(2));
        let why = if stripes == Some(read_ahead.0) {
            "two stripes of data, so that a scan keeps all members at work"
        } else {
            "as near to two stripes of data as is useful; two let a scan keep all members at work"
        };
        report(format!(
            "Read-ahead is {read_ahead}: {why}. It lasts until the array is stopped; newer kernels \
             choose two stripes by themselves."
        ));
    }
    if geometry.level.is_redundant() && !plan.assume_clean {
        report(format!(
            "It can be used at once. Its {} brought in step meanwhile, which takes from its \
             speed{}: 'disksmith array list' shows how far that is; measure after.",
            if geometry.level.has_parity() {
                "parity is"
            } else {
                "copies are"
            },
            if geometry.level.is_built_degraded() {
                ", and until then no member may fail"
            } else {
                ""
            }
        ));
    }
    text.push_str(&kept(checked, persist, "is now"));
    if persist && host.etc.join("initramfs-tools").is_dir() {
        text.push_str("The initramfs has a copy of mdadm.conf: update-initramfs -u renews it.\n");
    }
    Ok(text)
}
