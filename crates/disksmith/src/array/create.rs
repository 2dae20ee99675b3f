//! The steps that build an array: each with what takes it back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use linux::block::{DevNum, Device, Devices, Kind};
use linux::exec::{self, Exec, Output};
use linux::mounts::Mounts;

use super::files::{AddLine, mdadm_conf};
use super::host::{Built, Host, number_at};
use super::journal::{Stage, missing};
use super::plan::{self, Plan};
use super::steps::{Step, Undone};

/// How often stopping an array is tried: whoever looks at a new device, as udev does, holds it for
/// a moment.
const STOPS: u32 = 5;

/// How long is waited between.
const PAUSE: Duration = Duration::from_millis(500);

/// A member as it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// As the user wrote it.
    pub path: PathBuf,
    /// The device that was checked.
    pub number: DevNum,
    /// Whether it carries signatures, which `--destroy` has named.
    pub signed: bool,
}

/// The steps for a plan.
pub(crate) fn steps<'a>(
    plan: &Plan,
    members: &[Member],
    persist: bool,
    etc: &Path,
) -> Vec<Box<dyn Step<Host<'a>>>> {
    let mut steps: Vec<Box<dyn Step<Host<'a>>>> = Vec::new();
    if members.iter().any(|member| member.signed) {
        steps.push(Box::new(Erase {
            members: members.to_vec(),
            erased: Vec::new(),
        }));
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
        steps.push(Box::new(Format(plan.clone())));
        if fs.mount.is_some() {
            steps.push(Box::new(Mount {
                plan: plan.clone(),
                made: Vec::new(),
            }));
        }
    }
    if persist {
        steps.push(Box::new(AddLine::new(mdadm_conf(etc), plan.conf_line())));
        if let Some(line) = plan.fstab_line() {
            steps.push(Box::new(AddLine::new(etc.join("fstab"), line)));
        }
    }
    steps
}

/// Whether each path still leads to the device that was checked.
fn check_paths(host: &Host, members: &[Member]) -> anyhow::Result<()> {
    let devices = Devices::read(&host.root)?;
    for Member { path, number, .. } in members {
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

/// Erases the signatures that the user has named, while the members are still claimed: what was an
/// array before would otherwise be assembled by udev as soon as the claims are released.
struct Erase {
    members: Vec<Member>,
    erased: Vec<PathBuf>,
}

impl Step<Host<'_>> for Erase {
    fn name(&self) -> String {
        "erasing the old signatures".to_owned()
    }

    fn run(&mut self, host: &mut Host) -> anyhow::Result<()> {
        check_paths(host, &self.members)?;
        host.note(Stage::Erasing)?;
        for member in self.members.iter().filter(|member| member.signed) {
            self.erased.push(member.path.clone());
            // The force is for our own claim, which wipefs would take for somebody else's.
            let wipe = Exec::new("wipefs").args(["--all", "--force", "--quiet"]);
            host.run(&wipe.arg(&member.path))?;
        }
        Ok(())
    }

    fn undo(&mut self, _: &mut Host) -> Vec<Undone> {
        let names: Vec<String> = self
            .erased
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        if names.is_empty() {
            return Vec::new();
        }
        vec![Undone::Left(format!(
            "what --destroy allowed to go is gone: the signatures on {} are erased",
            names.join(", ")
        ))]
    }
}

/// Hands the members over to mdadm and looks at what it made of them.
struct Assemble {
    plan: Plan,
    members: Vec<Member>,
    begun: bool,
}

impl Step<Host<'_>> for Assemble {
    fn name(&self) -> String {
        format!("making the array {}", self.plan.node.display())
    }

    fn run(&mut self, host: &mut Host) -> anyhow::Result<()> {
        check_paths(host, &self.members)?;
        host.note(Stage::Assembling)?;
        self.begun = true;
        // mdadm claims the members itself, so they must be free for it.
        host.claims.clear();
        host.run(&self.plan.mdadm())?;
        host.array = Some(self.verified(host)?);
        Ok(())
    }

    fn undo(&mut self, host: &mut Host) -> Vec<Undone> {
        host.array = None;
        if !self.begun {
            return Vec::new();
        }
        let mut undone = self.stop(host);
        for member in &self.members {
            undone.extend(self.release(host, &member.path));
        }
        undone
    }
}

impl Assemble {
    /// The array that has the members, if they are exactly those that were checked.
    fn verified(&self, host: &Host) -> anyhow::Result<Built> {
        let devices = Devices::read(&host.root)?;
        let mut wanted: Vec<DevNum> = self.members.iter().map(|member| member.number).collect();
        wanted.sort();
        let first = wanted.first().copied().context("there are no members")?;
        let above = devices.children(first);
        let array = above
            .into_iter()
            .find(|device| matches!(device.kind, Kind::Raid { .. }))
            .context("mdadm reports no error, but no array has the devices that were checked")?;
        let below = devices.parents(array.number);
        let mut found: Vec<DevNum> = below.iter().map(|device| device.number).collect();
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
        Ok(Built {
            number: array.number,
            node: array.node(),
            sysfs_name: array.sysfs_name(),
        })
    }

    /// Stops the array, known by the id that was chosen for it.
    fn stop(&self, host: &mut Host) -> Vec<Undone> {
        let devices = match Devices::read(&host.root) {
            Ok(devices) => devices,
            Err(error) => {
                return vec![Undone::Left(format!(
                    "what became of {} is not known: {error}",
                    self.plan.node.display()
                ))];
            }
        };
        let is_array = |device: &&Device| matches!(device.kind, Kind::Raid { .. });
        let nodes: Vec<PathBuf> = devices.iter().filter(is_array).map(Device::node).collect();
        let mut undone = Vec::new();
        for node in nodes {
            if !self.is_ours(host, "--detail", &node) {
                continue;
            }
            let shown = node.display().to_string();
            undone.push(match stop(host, &node) {
                Ok(()) => Undone::Back(format!("the array {shown} was stopped")),
                Err(error) => Undone::Left(format!(
                    "the array {shown}, which could not be stopped: {error}; when nothing uses it, \
                     mdadm --stop {shown}"
                )),
            });
        }
        undone
    }

    /// Takes the superblock off a member, if it is the one that was written here.
    fn release(&self, host: &mut Host, path: &Path) -> Option<Undone> {
        if !self.is_ours(host, "--examine", path) {
            return None;
        }
        let shown = path.display();
        let zero = Exec::new("mdadm").arg("--zero-superblock").arg(path);
        Some(match host.run(&zero) {
            Ok(_) => Undone::Back(format!("the superblock on {shown} was erased")),
            Err(error) => Undone::Left(format!(
                "a superblock on {shown}: {error}; mdadm --zero-superblock {shown}"
            )),
        })
    }

    fn is_ours(&self, host: &mut Host, look: &str, path: &Path) -> bool {
        let said = host.ask(&Exec::new("mdadm").args([look, "--export"]).arg(path));
        says_uuid(said, &self.plan.uuid)
    }
}

/// Whether mdadm's answer to `--export` names an array's id.
pub(crate) fn says_uuid(said: Result<Output, exec::Error>, uuid: &str) -> bool {
    let ours = format!("MD_UUID={uuid}");
    said.is_ok_and(|said| said.text().lines().any(|line| line.trim() == ours))
}

/// Stops an array.
///
/// # Errors
/// What mdadm says at the last try.
pub(crate) fn stop(host: &mut Host, node: &Path) -> Result<(), exec::Error> {
    let stop = plan::stop(node);
    let mut outcome = host.run(&stop);
    for _ in 1..STOPS {
        if outcome.is_ok() {
            break;
        }
        std::thread::sleep(PAUSE);
        outcome = host.ask(&stop);
    }
    outcome.map(|_| ())
}

/// Sets the read-ahead. It goes with the array, so there is nothing to undo.
struct ReadAhead(Plan);

impl Step<Host<'_>> for ReadAhead {
    fn name(&self) -> String {
        "setting the read-ahead".to_owned()
    }

    fn run(&mut self, host: &mut Host) -> anyhow::Result<()> {
        let Some(read_ahead) = self.0.geometry.read_ahead() else {
            return Ok(());
        };
        host.note(Stage::Tuning)?;
        let array = host.built()?;
        let below = Path::new("class/block")
            .join(&array.sysfs_name)
            .join("queue/read_ahead_kb");
        let kib = read_ahead.0 >> 10;
        (host.say)(&format!("+ echo {kib} > /sys/{}\n", below.display()));
        let file = host.root.sys.join(&below);
        std::fs::write(&file, kib.to_string())
            .with_context(|| format!("{} cannot be written", file.display()))
    }

    fn undo(&mut self, _: &mut Host) -> Vec<Undone> {
        Vec::new()
    }
}

/// Makes the file system. It goes with the array, so there is nothing to undo.
struct Format(Plan);

impl Step<Host<'_>> for Format {
    fn name(&self) -> String {
        "making the file system".to_owned()
    }

    fn run(&mut self, host: &mut Host) -> anyhow::Result<()> {
        host.note(Stage::Formatting)?;
        let array = host.built()?;
        if let Some(mkfs) = self.0.mkfs(&array.node) {
            host.run(&mkfs)?;
        }
        Ok(())
    }

    fn undo(&mut self, _: &mut Host) -> Vec<Undone> {
        Vec::new()
    }
}

/// Mounts the file system, in a folder that is made when it is missing.
struct Mount {
    plan: Plan,
    /// The folders that were made, the outermost first.
    made: Vec<PathBuf>,
}

impl Step<Host<'_>> for Mount {
    fn name(&self) -> String {
        "mounting the file system".to_owned()
    }

    fn run(&mut self, host: &mut Host) -> anyhow::Result<()> {
        let array = host.built()?;
        let Some((point, mount)) = self.plan.mount(&array.node) else {
            return Ok(());
        };
        host.note(Stage::Mounting)?;
        let missing = missing(point);
        if !missing.is_empty() {
            let make = Exec::new("mkdir").arg("-p").arg(point);
            (host.say)(&format!("+ {}\n", make.line()));
        }
        for folder in missing {
            std::fs::create_dir(&folder)
                .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
            self.made.push(folder);
        }
        host.run(&mount)?;
        Ok(())
    }

    fn undo(&mut self, host: &mut Host) -> Vec<Undone> {
        let mut undone = Vec::new();
        let array = host.array.clone();
        if let Some((array, (point, _))) =
            array.and_then(|array| Some((array.clone(), self.plan.mount(&array.node)?)))
        {
            let is_mounted = Mounts::read(&host.root)
                .is_ok_and(|mounts| mounts.on(array.number).any(|mount| mount.point == point));
            if is_mounted {
                let shown = point.display();
                undone.push(match host.run(&Exec::new("umount").arg(point)) {
                    Ok(_) => Undone::Back(format!("{shown} was unmounted")),
                    Err(error) => Undone::Left(format!("{shown} is mounted: {error}")),
                });
            }
        }
        for folder in self.made.drain(..).rev() {
            let shown = folder.display();
            undone.push(match std::fs::remove_dir(&folder) {
                Ok(()) => Undone::Back(format!("the folder {shown} was removed")),
                Err(error) => Undone::Left(format!("the folder {shown}: {error}")),
            });
        }
        undone
    }
}
