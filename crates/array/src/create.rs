//! The steps that build an array, each with its undo.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use linux::block::{BlockDeviceKind, DeviceNumber, Devices};
use linux::exec::Exec;
use linux::mounts::Mounts;

use super::building::{BuildStage, CheckedMember, missing};
use super::files::AddLine;
use super::host::{ArrayHost, BuiltArray, number_at};
use super::persist;
use super::plan::{self, ArrayPlan};
use super::steps::{BuildStep, UndoResult};
use super::teardown;

/// The steps for a plan.
pub fn steps<'a>(
    plan: &ArrayPlan,
    members: &[CheckedMember],
    persisted: bool,
    etc: &Path,
) -> Vec<Box<dyn BuildStep<ArrayHost<'a>>>> {
    let mut steps: Vec<Box<dyn BuildStep<ArrayHost<'a>>>> = Vec::new();
    if members.iter().any(|member| member.signed) {
        steps.push(Box::new(Erase::of(members)));
    }
    steps.push(Box::new(Assemble {
        plan: plan.clone(),
        members: members.to_vec(),
        begun: false,
    }));
    if plan.geometry.read_ahead().is_some() {
        steps.push(Box::new(ReadAhead(plan.clone())));
    }
    if let Some(fs) = &plan.fs {
        steps.push(Box::new(MakeFilesystem(plan.clone())));
        if fs.mount.is_some() {
            steps.push(Box::new(Mount::of(plan)));
        }
    }
    if persisted {
        for (file, line) in persist::lines(plan, etc) {
            steps.push(Box::new(AddLine::new(file, line)));
        }
    }
    steps
}

/// Checks that each path still leads to the device that was checked.
pub(super) fn check_paths(host: &ArrayHost, members: &[CheckedMember]) -> anyhow::Result<()> {
    let devices = Devices::read(&host.root)?;
    for CheckedMember { path, number, .. } in members {
        match number_at(&host.root, &devices, path) {
            Some(now) if now == *number => {}
            _ => bail!(
                "{} no longer leads to the device {number} that was checked",
                path.display()
            ),
        }
    }
    Ok(())
}

/// Erases the signatures that the user has named, while the members are still claimed: a former array would otherwise
/// be assembled by udev as soon as the claims are released.
pub(super) struct Erase {
    members: Vec<CheckedMember>,
    erased: Vec<PathBuf>,
}

impl Erase {
    /// Makes the step for these members.
    pub(super) fn of(members: &[CheckedMember]) -> Erase {
        Erase {
            members: members.to_vec(),
            erased: Vec::new(),
        }
    }
}

impl BuildStep<ArrayHost<'_>> for Erase {
    fn name(&self) -> String {
        "erasing the old signatures".to_owned()
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        check_paths(host, &self.members)?;
        host.note(BuildStage::Erasing)?;
        for member in self.members.iter().filter(|member| member.signed) {
            self.erased.push(member.path.clone());
            host.run(&plan::wipe(&member.path))?;
        }
        Ok(())
    }

    fn undo(&mut self, _: &mut ArrayHost) -> Vec<UndoResult> {
        let names: Vec<String> = self
            .erased
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        if names.is_empty() {
            return Vec::new();
        }
        vec![UndoResult::Leftover(format!(
            "the signatures that --destroy named are erased on {}",
            names.join(", ")
        ))]
    }
}

/// Releases the members for mdadm, builds the array, and verifies the result.
struct Assemble {
    plan: ArrayPlan,
    members: Vec<CheckedMember>,
    begun: bool,
}

impl BuildStep<ArrayHost<'_>> for Assemble {
    fn name(&self) -> String {
        format!("making the array {}", self.plan.node.display())
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        check_paths(host, &self.members)?;
        host.note(BuildStage::Assembling)?;
        self.begun = true;
        // mdadm claims the members itself, so they must be free for it.
        host.claims.clear();
        host.run(&self.plan.mdadm())?;
        // Recorded at once: after a kill, an array that may only have been created is removed.
        host.note(BuildStage::Assembled)?;
        host.array = Some(self.verified(host)?);
        Ok(())
    }

    fn undo(&mut self, host: &mut ArrayHost) -> Vec<UndoResult> {
        host.array = None;
        if !self.begun {
            return Vec::new();
        }
        let mut undone = teardown::stop(host, &self.plan.uuid, &self.plan.node);
        for member in &self.members {
            undone.extend(teardown::release(host, &self.plan.uuid, &member.path));
        }
        undone
    }
}

impl Assemble {
    /// The array that has the members, if they are exactly those that were checked.
    fn verified(&self, host: &ArrayHost) -> anyhow::Result<BuiltArray> {
        let devices = Devices::read(&host.root)?;
        let mut wanted: Vec<DeviceNumber> =
            self.members.iter().map(|member| member.number).collect();
        wanted.sort();
        let first = wanted.first().copied().context("there are no members")?;
        let above = devices.children(first);
        let array = above
            .into_iter()
            .find(|device| matches!(device.kind, BlockDeviceKind::Raid { .. }))
            .context("mdadm reports no error, but no array has the devices that were checked")?;
        let below = devices.parents(array.number);
        let mut found: Vec<DeviceNumber> = below.iter().map(|device| device.number).collect();
        found.sort();
        if found != wanted {
            let names: Vec<String> = below.iter().map(|device| device.label()).collect();
            bail!(
                "{} was made of {}, which are not the devices that were checked; something \
                 changed their names meanwhile",
                array.node().display(),
                names.join(", ")
            );
        }
        Ok(BuiltArray {
            number: array.number,
            node: array.node(),
            sysfs_name: array.sysfs_name(),
        })
    }
}

/// Sets the read-ahead. It disappears with the array, so there is nothing to undo.
struct ReadAhead(ArrayPlan);

impl BuildStep<ArrayHost<'_>> for ReadAhead {
    fn name(&self) -> String {
        "setting the read-ahead".to_owned()
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        let Some(read_ahead) = self.0.geometry.read_ahead() else {
            return Ok(());
        };
        host.note(BuildStage::Tuning)?;
        let array = host.built()?;
        let below = Path::new("class/block")
            .join(&array.sysfs_name)
            .join("queue/read_ahead_kb");
        let kib = read_ahead.0 >> 10;
        (host.report)(&format!("+ echo {kib} > /sys/{}\n", below.display()));
        let file = host.root.sys.join(&below);
        std::fs::write(&file, kib.to_string())
            .with_context(|| format!("{} cannot be written", file.display()))
    }

    fn undo(&mut self, _: &mut ArrayHost) -> Vec<UndoResult> {
        Vec::new()
    }
}

/// Makes the file system. It disappears with the array, so there is nothing to undo.
pub(super) struct MakeFilesystem(pub(super) ArrayPlan);

impl BuildStep<ArrayHost<'_>> for MakeFilesystem {
    fn name(&self) -> String {
        "making the file system".to_owned()
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        host.note(BuildStage::Formatting)?;
        let array = host.built()?;
        if let Some(mkfs) = self.0.mkfs(&array.node) {
            host.run(&mkfs)?;
        }
        Ok(())
    }

    fn undo(&mut self, _: &mut ArrayHost) -> Vec<UndoResult> {
        Vec::new()
    }
}

/// Mounts the file system, in a folder that is created if it does not exist.
pub(super) struct Mount {
    plan: ArrayPlan,
    /// The folders that were made, the outermost first.
    made: Vec<PathBuf>,
}

impl Mount {
    /// Makes the step for this plan.
    pub(super) fn of(plan: &ArrayPlan) -> Mount {
        Mount {
            plan: plan.clone(),
            made: Vec::new(),
        }
    }
}

impl BuildStep<ArrayHost<'_>> for Mount {
    fn name(&self) -> String {
        "mounting the file system".to_owned()
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        let array = host.built()?;
        let Some((point, mount)) = self.plan.mount(&array.node) else {
            return Ok(());
        };
        host.note(BuildStage::Mounting)?;
        let missing = missing(point);
        if !missing.is_empty() {
            let make = Exec::new("mkdir").arg("-p").arg(point);
            (host.report)(&format!("+ {}\n", make.line()));
        }
        for folder in missing {
            std::fs::create_dir(&folder)
                .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
            self.made.push(folder);
        }
        host.run(&mount)?;
        Ok(())
    }

    fn undo(&mut self, host: &mut ArrayHost) -> Vec<UndoResult> {
        let mut undone = Vec::new();
        let array = host.array.clone();
        if let Some((array, (point, _))) =
            array.and_then(|array| Some((array.clone(), self.plan.mount(&array.node)?)))
        {
            let is_mounted = Mounts::read(&host.root)
                .is_ok_and(|mounts| mounts.on(array.number).any(|mount| mount.point == point));
            if is_mounted {
                let shown = point.display();
                undone.push(match host.run(&Exec::new("umount").arg(point).bound()) {
                    Ok(_) => UndoResult::Reverted(format!("{shown} was unmounted")),
                    Err(error) => UndoResult::Leftover(format!("{shown} is mounted: {error}")),
                });
            }
        }
        for folder in self.made.drain(..).rev() {
            let shown = folder.display();
            undone.push(match std::fs::remove_dir(&folder) {
                Ok(()) => UndoResult::Reverted(format!("the folder {shown} was removed")),
                Err(error) => UndoResult::Leftover(format!("the folder {shown}: {error}")),
            });
        }
        undone
    }
}
