//! `look`: what `fleet run` asks each host for before a verb that overwrites something begins anywhere:
//! whether the host's own rules let it, and which disks those are. Nothing is written.

use std::ffi::OsString;
use std::{io, mem};

use linux::Root;
use linux::block::Devices;
use linux::consent::{Consent, Uses, open_for_reading};
use linux::signature::Content;
use serde_json::{Value, json};

use crate::args::LookArgs;
use crate::host_line::check::destroyed;
use crate::host_line::{HostVerb, LineVerb, parse};
use array::args::ArrayVerb;
use domain::plan_binding;
use domain::plan_binding::DiskIdentity;
use ui::context::Context;
use ui::exit::Answer;
use ui::exit::ExitClass as _;
use ui::exit::Failure;
use ui::exit::Outcome;
use ui::json::SCHEMA;

/// The verb.
pub(crate) const VERB: &str = "look";

/// Prints the disks that a verb would overwrite.
pub fn look(args: &LookArgs, context: &mut Context) -> Outcome {
    let verb = match parse(&args.verb).map_err(Failure::refused)? {
        LineVerb::Host(verb) if !destroyed(&verb).is_empty() => verb,
        _ => {
            return Err(Failure::refused(format!(
                "'{}' overwrites nothing, so that there is nothing to look at",
                args.verb.join(" ")
            )));
        }
    };
    let named = destroyed(&verb).to_vec();
    rehearse(verb, context)?;
    let devices = Devices::read(&context.root).refused()?;
    let disks = named
        .iter()
        .map(|consent| disk(consent, &devices, &context.root))
        .collect::<Result<Vec<Value>, Failure>>()?;
    let document = json!({ "schema": SCHEMA, "command": VERB, "disks": disks });
    context.print(&format!("{document:#}\n"))?;
    Ok(Answer::Done)
}

/// Lets the verb look at everything by its own rules.
///
/// # Errors
/// As the verb itself would refuse.
fn rehearse(verb: HostVerb, context: &mut Context) -> Result<(), Failure> {
    let interrupt = ui::signals::interrupt_flag().refused()?;
    match verb {
        HostVerb::Bench(args) => bench::rehearse(&args, context, &engine::Disks),
        // These go another way, on which nothing asks whether it is a rehearsal.
        HostVerb::Sweep(args) if args.show.is_some() || args.abandon.is_some() => {
            Err(Failure::refused(
                "a sweep that is shown or given up overwrites nothing, so that there is nothing to \
                 look at",
            ))
        }
        HostVerb::Sweep(mut args) => {
            args.dry_run = true;
            silently(context, |context| {
                sweep::sweep(&args, context, &engine::Disks, &interrupt)
            })
        }
        HostVerb::Array(mut args) => {
            if let ArrayVerb::Create(args) = &mut args.verb {
                args.dry_run = true;
            }
            silently(context, |context| array::array(&args, context, &interrupt))
        }
        // It says all of this itself.
        other => Err(Failure::refused(format!(
            "{other:?} is looked at by its own --dry-run"
        ))),
    }
}

/// Runs a rehearsal without its output: only whether it would run matters here.
fn silently(
    context: &mut Context,
    rehearsal: impl FnOnce(&mut Context) -> Outcome,
) -> Result<(), Failure> {
    let out = mem::replace(&mut context.out, Box::new(io::sink()));
    let rehearsed = rehearsal(context);
    context.out = out;
    rehearsed.map(drop)
}

/// A disk, as the plan has it. The verb's rules have been asked by now, so that it is only read here.
fn disk(consent: &OsString, devices: &Devices, root: &Root) -> Result<Value, Failure> {
    let path = Consent::parse(consent).refused()?.path;
    let opened = open_for_reading(&path).refused()?;
    let uses = Uses::read(root).refused()?;
    let listed = opened.device.map(|number| uses.partitions(number));
    let content = Content::of(&opened.file, &listed.unwrap_or_default()).refused()?;
    let seen =
        DiskIdentity::of(&opened.file, opened.size, devices, root).map_err(Failure::refused)?;
    let device = opened.device.and_then(|number| devices.get(number));
    Ok(json!({
        "path": path,
        "device": device.map(|device| &device.name),
        "model": device.and_then(|device| device.model.as_ref()),
        "serial": device.and_then(|device| device.serial.as_ref()),
        "size_bytes": opened.size,
        "content": plan_binding::words(&content),
        "seen": seen,
    }))
}
