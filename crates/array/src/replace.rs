//! `array replace`: exchanges a member for another disk while the array is in use.

mod check;
mod exchange;
mod steps;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::host::ArrayHost;
use super::steps as work;
use super::stop::require_mdadm;
use crate::args::ReplaceArgs;
use exchange::{Exchange, ExchangeMethod};
use ui::exit::{ExitClass as _, Failure};

/// Exchanges a member.
pub(super) fn replace(
    args: &ReplaceArgs,
    host: &mut ArrayHost,
    interrupt: &AtomicBool,
) -> Result<String, Failure> {
    require_mdadm(host)?;
    let exchange = check::check(args, host)?;
    if args.dry_run {
        host.claims.clear();
        let lines = exchange.commands().into_iter();
        let lines: Vec<String> = lines.map(|line| format!("+ {line}\n")).collect();
        (host.report)(&format!(
            "This would be run, and nothing of it was:\n{}",
            lines.concat()
        ));
        return Ok(document(&exchange, true));
    }
    work::run(
        &mut steps::steps(&exchange, interrupt),
        host,
        interrupt,
        |_| (),
    )
    .midway()?;
    (host.report)(&summary(&exchange));
    Ok(document(&exchange, false))
}

fn summary(exchange: &Exchange) -> String {
    let Exchange { node, old, new, .. } = exchange;
    let (node, old, new) = (node.display(), old.path.display(), new.path.display());
    let place = match (exchange.course, exchange.old.slot) {
        (ExchangeMethod::Spare, _) => {
            format!("{new} is a hot spare of {node}: a spare has taken the place of {old} before")
        }
        (_, Some(slot)) => format!("{new} has the place of {old} in {node}, slot {slot}"),
        (_, None) => format!("{new} has the place of {old} in {node}"),
    };
    let left = match exchange.erase.is_empty() {
        true => format!(
            ", which keeps its content: mdadm --zero-superblock {old} erases its superblock.\n"
        ),
        false => ", whose superblock is erased.\n".to_owned(),
    };
    format!("{place}. Out of the array is {old}{left}")
}

/// The document of `array replace --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// True with `--dry-run`: nothing was touched.
    dry_run: bool,
    /// Path of the array's device.
    node: &'a Path,
    /// UUID of the array, as its superblocks have it.
    uuid: &'a str,
    /// Path of the member that is replaced.
    member: &'a Path,
    /// Path of the disk that takes its place.
    with: &'a Path,
    /// Place of the member in the array; `null` where a spare has taken it before.
    slot: Option<u32>,
    /// True if the superblock of the replaced member is erased.
    erased: bool,
    /// The commands, each as a line of a shell.
    commands: Vec<String>,
}

fn document(exchange: &Exchange, dry_run: bool) -> String {
    let document = Document {
        dry_run,
        node: &exchange.node,
        uuid: &exchange.uuid,
        member: &exchange.old.path,
        with: &exchange.new.path,
        slot: exchange.old.slot,
        erased: !exchange.erase.is_empty(),
        commands: exchange.commands(),
    };
    ui::json::document("array replace", &document)
}
