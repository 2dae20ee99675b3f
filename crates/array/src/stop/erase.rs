//! `array stop --erase`: checks first, then stops the array and erases the superblocks of its members.

use std::path::PathBuf;

use anyhow::Context as _;
use linux::block::{Device, Devices};
use linux::consent::Consent;
use linux::exec::Exec;
use linux::md;

use super::super::check::consents;
use super::super::host::ArrayHost;
use super::super::steps::{BuildStep, UndoResult};
use super::super::{plan, superblock, teardown};
use crate::args::StopArgs;
use domain::plan_binding;
use ui::exit::{ExitClass as _, Failure};

/// An array that may be stopped and erased.
#[derive(Clone, Debug)]
pub(super) struct Erasure {
    node: PathBuf,
    uuid: String,
    members: Vec<PathBuf>,
    consents: Vec<Consent>,
}

/// Checks that all members are there, and may be erased.
///
/// # Errors
/// Every reason not to.
pub(super) fn check(
    args: &StopArgs,
    host: &mut ArrayHost,
    devices: &Devices,
    device: &Device,
) -> Result<Erasure, Failure> {
    let arrays = md::arrays(&host.root, devices).refused()?;
    let found = arrays.into_iter().find(|one| one.number == device.number);
    let array = found.context("md does not list it").refused()?;
    let mut problems = shape_problems(&array);
    let paths: Vec<PathBuf> = array
        .members
        .iter()
        .filter_map(|member| devices.get(member.number?))
        .map(Device::node)
        .collect();
    let consents = consents(&args.destroy, &paths, "members", &mut problems);
    for path in &paths {
        problems.extend(superblock::reason_against(&host.root, path, &consents));
    }
    let planned = plan_binding::check_reading(&args.planned, &paths, &host.root);
    problems.extend(planned.err().into_iter().flatten());
    let node = device.node();
    let uuid = teardown::uuid_of(host, &node);
    match uuid {
        Ok(uuid) if problems.is_empty() => Ok(Erasure {
            node,
            uuid,
            members: paths,
            consents,
        }),
        uuid => {
            problems.extend(uuid.err().map(|error| error.to_string()));
            let what = format!("{} is not stopped", device.label());
            Err(Failure::refused_for(&what, &problems))
        }
    }
}

/// Reasons that the array itself gives.
fn shape_problems(array: &md::Array) -> Vec<String> {
    let mut problems = Vec::new();
    problems.extend(superblock::foreign(array));
    let has_place = |member: &&md::Member| member.slot.is_some() || member.has("faulty");
    let there = array
        .members
        .iter()
        .filter(|member| member.number.is_some());
    let there = there.filter(has_place).count();
    let missing = (array.wanted.unwrap_or(0) as usize).saturating_sub(there);
    if missing > 0 {
        problems.push(format!(
            "{missing} of its members {} not here, and would keep the superblock: attached again, it \
             brings the array back. Attach it, or stop the array without --erase and erase the others \
             with mdadm --zero-superblock",
            if missing == 1 { "is" } else { "are" }
        ));
    }
    problems
}

impl Erasure {
    /// The commands that erase, as lines of a shell.
    pub(super) fn commands(&self) -> Vec<String> {
        let wipes = self.members.iter().map(|path| plan::wipe(path).line());
        wipes.collect()
    }

    /// Paths of the members.
    pub(super) fn paths(&self) -> Vec<String> {
        let paths = self.members.iter().map(|path| path.display().to_string());
        paths.collect()
    }

    /// Steps that stop the array and erase its members, in their order.
    pub(super) fn steps<'a>(&self) -> Vec<Box<dyn BuildStep<ArrayHost<'a>>>> {
        vec![
            Box::new(Stop(self.clone())),
            Box::new(Erase {
                erasure: self.clone(),
                erased: Vec::new(),
            }),
        ]
    }
}

/// Stops the array and claims its members at once.
struct Stop(Erasure);

impl BuildStep<ArrayHost<'_>> for Stop {
    fn name(&self) -> String {
        format!("stopping {}", self.0.node.display())
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        teardown::stop_with_retries(host, &self.0.node)?;
        for path in &self.0.members {
            let claim = superblock::claim(host, path, &self.0.consents)?;
            host.claims.push(claim);
        }
        Ok(())
    }

    /// Assembles the array again, if it is stopped and all of it is still there.
    fn undo(&mut self, host: &mut ArrayHost) -> Vec<UndoResult> {
        host.claims.clear();
        let Erasure {
            node,
            uuid,
            members,
            ..
        } = &self.0;
        let mut carries =
            |path: &PathBuf| teardown::has_uuid(host, "--examine", path, uuid).unwrap_or(false);
        let is_whole = members.iter().all(&mut carries);
        let is_up = teardown::uuid_of(host, node).is_ok_and(|up| up == *uuid);
        if !is_whole || is_up {
            return Vec::new();
        }
        let assemble = Exec::new("mdadm")
            .arg("--assemble")
            .arg(node)
            .arg(format!("--uuid={uuid}"))
            .args(members);
        let shown = node.display();
        vec![match host.run(&assemble.bound()) {
            Ok(_) => UndoResult::Reverted(format!("{shown} was assembled again")),
            Err(error) => UndoResult::Leftover(format!("{shown} is stopped: {error}")),
        }]
    }
}

/// Erases the superblocks.
struct Erase {
    erasure: Erasure,
    erased: Vec<PathBuf>,
}

impl BuildStep<ArrayHost<'_>> for Erase {
    fn name(&self) -> String {
        "erasing the superblocks".to_owned()
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        let claims = std::mem::take(&mut host.claims);
        superblock::erase(host, &claims, &mut self.erased)
    }

    fn undo(&mut self, _: &mut ArrayHost) -> Vec<UndoResult> {
        if self.erased.is_empty() {
            return Vec::new();
        }
        let shown = |paths: &[&PathBuf]| {
            let paths: Vec<String> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            paths.join(" ")
        };
        let (gone, left): (Vec<&PathBuf>, Vec<&PathBuf>) = self
            .erasure
            .members
            .iter()
            .partition(|path| self.erased.contains(path));
        let mut text = format!(
            "{} is stopped and the superblocks of {} are erased",
            self.erasure.node.display(),
            shown(&gone)
        );
        if !left.is_empty() {
            let left = shown(&left);
            text.push_str(&format!(
                "; mdadm --zero-superblock {left} erases the others"
            ));
        }
        vec![UndoResult::Leftover(text)]
    }
}
