//! `look`: run by `fleet run` on each host before a verb that overwrites anything begins on any host. It reports
//! whether the host's own rules permit the verb, and which disks it overwrites. Nothing is written.

use std::ffi::OsString;
use std::path::PathBuf;

use linux::Root;
use linux::block::Devices;
use linux::consent::{Consent, DeviceUsers, open_for_reading};
use linux::signature::Content;
use record::Bytes;
use serde::Serialize;

use crate::args::InspectArgs;
use crate::host_line::check::INSPECT_VERB;
use crate::host_line::{LineVerb, parse};
use domain::plan_binding;
use domain::plan_binding::DiskIdentity;
use ui::context::Context;
use ui::exit::CommandEnd;
use ui::exit::ExitClass as _;
use ui::exit::Failure;
use ui::exit::Outcome;
use ui::json::Document;

/// Body of the document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Disks {
    /// The disks that would be overwritten, in the order of the `--destroy`.
    disks: Vec<DiskReport>,
}

/// A disk that would be overwritten.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DiskReport {
    /// Path as it was given.
    path: PathBuf,
    /// The kernel's name of the block device; `null` for a file.
    device: Option<String>,
    /// Model; `null` where the kernel shows none.
    model: Option<String>,
    /// Serial number, on EBS the volume's id; `null` where the kernel shows none.
    serial: Option<String>,
    /// Size of the disk.
    size_bytes: Bytes,
    /// Kinds of the signatures on it.
    content: Vec<String>,
    /// Identity of the disk, to which the later command is bound.
    seen: DiskIdentity,
}

/// Prints the disks that a verb would overwrite.
pub(crate) fn inspect_disks(args: &InspectArgs, context: &mut Context) -> Outcome {
    let mut verb = match parse(&args.verb).map_err(Failure::refused)? {
        LineVerb::Host(verb) if !verb.overwrites().is_empty() => verb,
        _ => {
            return Err(Failure::refused(format!(
                "'{}' overwrites nothing, so there is nothing to check",
                args.verb.join(" ")
            )));
        }
    };
    verb.name_disks(&context.root)?;
    let named = verb.overwrites().to_vec();
    verb.dry_run(context)?;
    let devices = Devices::read(&context.root).refused()?;
    let disks = named
        .iter()
        .map(|consent| disk(consent, &devices, &context.root))
        .collect::<Result<Vec<DiskReport>, Failure>>()?;
    let document = Document::of(INSPECT_VERB, Disks { disks });
    context.print(&format!("{document:#}"))?;
    Ok(CommandEnd::Done)
}

/// A disk, as shown in the plan. The verb's rules were already checked, so that it is only read here.
fn disk(consent: &OsString, devices: &Devices, root: &Root) -> Result<DiskReport, Failure> {
    let path = Consent::parse(consent).refused()?.path;
    let opened = open_for_reading(&path).refused()?;
    let uses = DeviceUsers::read(root).refused()?;
    let listed = opened.device.map(|number| uses.partitions(number));
    let content = Content::of(&opened.file, &listed.unwrap_or_default()).refused()?;
    let seen =
        DiskIdentity::of(&opened.file, opened.size, devices, root).map_err(Failure::refused)?;
    let device = opened.device.and_then(|number| devices.get(number));
    Ok(DiskReport {
        path,
        device: device.map(|device| device.name.clone()),
        model: device.and_then(|device| device.model.clone()),
        serial: device.and_then(|device| device.serial.clone()),
        size_bytes: opened.size,
        content: plan_binding::content_names(&content),
        seen,
    })
}
