//! `array stop`: stops an array that is not in use, and erases its members' superblocks if requested.

mod erase;

use std::sync::atomic::AtomicBool;

use linux::block::{BlockDeviceKind, Device, Devices};
use linux::consent::DeviceUsers;
use linux::md;
use serde::Serialize;

use super::host::ArrayHost;
use super::{building, files, persist, plan, repair, steps, teardown};
use crate::args::StopArgs;
use erase::Erasure;
use job::JobStore;
use ui::exit::{ExitClass as _, Failure, listed};

/// Stops an array, after the remains of a killed `array create` were removed.
pub(super) fn stop(
    args: &StopArgs,
    host: &mut ArrayHost,
    store: Option<JobStore>,
    interrupt: &AtomicBool,
) -> Result<String, Failure> {
    let word = &args.array;
    let before = DeviceUsers::read(&host.root).refused()?;
    let named = md::find(&host.root, before.devices(), word).map(|array| array.number);
    if let Some(mut store) = store.filter(|_| !args.dry_run) {
        repair::repair(host, &mut store, &args.planned);
    }
    let uses = DeviceUsers::read(&host.root).refused()?;
    let devices = uses.devices();
    let Some(array) = md::find(&host.root, devices, word) else {
        if named.is_some() {
            // It was an incomplete array, and the repair has removed it.
            return Ok(document(&Document::of(word)));
        }
        return Err(Failure::refused(unknown(word, devices)));
    };
    let label = array.label();
    let reasons = teardown::uses_of(&uses, array.number);
    if !reasons.is_empty() {
        return Err(Failure::refused(format!(
            "{label} is in use and not stopped:{}",
            listed(&reasons)
        )));
    }
    require_mdadm(host)?;
    let erasure = match args.erase {
        true => Some(erase::check(args, host, devices, array)?),
        false => None,
    };
    let node = array.node();
    let members: Vec<String> = devices
        .parents(array.number)
        .iter()
        .map(|member| member.node().display().to_string())
        .collect();
    let mut answer = Document {
        members: &members,
        dry_run: args.dry_run,
        ..Document::of(&node.display().to_string())
    };
    answer.commands.push(plan::stop(&node).line());
    let wipes = erasure.iter().flat_map(Erasure::commands);
    answer.commands.extend(wipes);
    if args.dry_run {
        let commands: Vec<String> = answer
            .commands
            .iter()
            .map(|line| format!("+ {line}\n"))
            .collect();
        (host.report)(&format!(
            "This would be run, and nothing of it was:\n{}",
            commands.concat()
        ));
        return Ok(document(&answer));
    }
    let lines = lines_for(host, devices, array);
    match erasure {
        None => {
            // mdadm stops an array or leaves it as it is, so nothing was touched when it fails.
            teardown::stop_with_retries(host, &node).refused()?;
            let (node, members) = (node.display(), members.join(" "));
            (host.report)(&format!(
                "{label} is stopped. Its members keep their content:\n  \
                 mdadm --assemble {node} {members}\nbrings it back, and\n  \
                 mdadm --zero-superblock {members}\nends it for good.\n",
            ));
        }
        Some(erasure) => {
            answer.erased = erasure.paths();
            steps::run(&mut erasure.steps(), host, interrupt, |_| ()).midway()?;
            (host.report)(&format!(
                "{label} is stopped, and the superblocks of {} are erased.\n",
                answer.erased.join(", ")
            ));
        }
    }
    if !lines.is_empty() {
        (host.report)(&format!(
            "For the next boot there are still lines for it, and fstab may have one; take them out \
             if it is not to come back:\n{lines}"
        ));
    }
    Ok(document(&answer))
}

/// # Errors
/// When mdadm is not installed.
pub(super) fn require_mdadm(host: &ArrayHost) -> Result<(), Failure> {
    if host.programs.has("mdadm") {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "the program mdadm is not on the PATH; {}",
        linux::remedy::install("mdadm")
    )))
}

/// The document of `array stop --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// True with `--dry-run`: nothing was touched.
    dry_run: bool,
    /// The array: its path, or the name that was given.
    stopped: String,
    /// Paths of its members.
    members: &'a [String],
    /// Paths of the members whose superblocks are erased.
    erased: Vec<String>,
    /// The commands, each as a line of a shell.
    commands: Vec<String>,
}

impl Document<'_> {
    fn of(stopped: &str) -> Document<'static> {
        Document {
            dry_run: false,
            stopped: stopped.to_owned(),
            members: &[],
            erased: Vec::new(),
            commands: Vec::new(),
        }
    }
}

fn document(document: &Document) -> String {
    ui::json::document("array stop", document)
}

/// Lines in boot configuration files that name an array, each with its file.
fn lines_for(host: &ArrayHost, devices: &Devices, array: &Device) -> String {
    let read = |file: &std::path::Path| {
        let bytes = files::content(file).unwrap_or_default();
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    };
    let (conf, rules) = (
        building::mdadm_conf(&host.etc),
        persist::read_ahead_rules(&host.etc),
    );
    let text = read(&conf);
    let names_it = |line: &&str| {
        let mut words = line.split_whitespace();
        words.next() == Some("ARRAY")
            && words
                .next()
                .and_then(|node| md::find(&host.root, devices, node))
                .is_some_and(|named| named.number == array.number)
    };
    let of_array: Vec<&str> = text.lines().filter(names_it).collect();
    let words = of_array.iter().flat_map(|line| line.split_whitespace());
    let ids: Vec<&str> = words
        .filter_map(|word| word.strip_prefix("UUID="))
        .collect();
    let ruled = read(&rules);
    let has_id = |line: &&str| ids.iter().any(|id| line.contains(&format!("\"{id}\"")));
    let of_rules: Vec<&str> = ruled.lines().filter(has_id).collect();
    let mut shown = String::new();
    for (file, lines) in [(conf, of_array), (rules, of_rules)] {
        for line in lines {
            shown.push_str(&format!("  {}: {line}\n", file.display()));
        }
    }
    shown
}

/// Error for a word that names no array.
pub(super) fn unknown(word: &str, devices: &Devices) -> String {
    let arrays: Vec<&str> = devices
        .iter()
        .filter(|device| matches!(device.kind, BlockDeviceKind::Raid { .. }))
        .map(|device| device.name.as_str())
        .collect();
    let there = match &arrays[..] {
        [] => "there is no array on this host".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    match devices.named(word.strip_prefix("/dev/").unwrap_or(word)) {
        Some(device) => format!("{} is not an array but a {}; {there}", word, device.title()),
        None => format!("there is no array {word}; {there}"),
    }
}
