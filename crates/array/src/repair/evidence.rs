//! Evidence that an unfinished array holds data.

use std::fs::File;

use anyhow::Context as _;
use linux::block::{BlockDeviceKind, Device};
use linux::consent::DeviceUsers;
use linux::exec::Exec;
use linux::mounts::Mounts;

use super::super::building::{BuildStage, Building, SavedFs, SavedLine, SavedMember};
use super::super::content::{Content, content};
use super::super::host::ArrayHost;
use super::super::teardown;
use super::missing_superblock;
use super::unfinished::{UnfinishedArray, members, unfinished_arrays};

/// Evidence of use of what a killed `array create` left.
pub(super) enum Evidence {
    /// The array cannot have been used.
    Unused,
    /// The array is used, or may have been: the reason why it stays, as sentences.
    InUse(String),
    /// Unknown for now; the reason, as a clause.
    Unclear(String),
}

/// Examines what was left.
///
/// # Errors
/// When the kernel's lists cannot be read.
pub(super) fn evidence(host: &mut ArrayHost, building: &Building) -> anyhow::Result<Evidence> {
    let mut arrays = unfinished_arrays(host, building)?;
    arrays.retain(|array| !array.is_hollow);
    if arrays.is_empty() {
        return not_assembled(host, building);
    }
    for array in &arrays {
        match of_array(host, building, &array.device)? {
            Evidence::Unused => {}
            evidence => return Ok(evidence),
        }
    }
    Ok(Evidence::Unused)
}

/// Evidence where no array is assembled: there are superblocks at most. If all of them are present, the array may
/// have been assembled, used and stopped, and is assembled to be examined.
fn not_assembled(host: &mut ArrayHost, building: &Building) -> anyhow::Result<Evidence> {
    let members = members(host, building)?;
    let (found, wanted) = (members.len(), building.members.len());
    if found == 0 {
        return Ok(Evidence::Unused);
    }
    if found < wanted {
        // mdadm may have been killed before it had written all superblocks: then there never was an
        // array. It may also have completed a moment before that could be recorded.
        let unmade = building.stage == BuildStage::Assembling;
        let doubt = unmade.then(|| missing_superblock::doubt(host, building, &members));
        let why = match doubt.transpose()? {
            Some(None) => return Ok(Evidence::Unused),
            Some(Some(why)) => format!(": {why}"),
            None => String::new(),
        };
        let named: Vec<String> = building.members.iter().map(SavedMember::named).collect();
        return Ok(Evidence::Unclear(format!(
            "{found} of its {wanted} members ({}) are present, so its content is unknown{why}; \
             attach the others",
            named.join(", ")
        )));
    }
    let assemble = Exec::new("mdadm")
        .arg("--assemble")
        .arg(&building.node)
        .args(["--readonly", "--config=none"])
        .arg(format!("--uuid={}", building.uuid))
        .args(members.iter().map(Device::node));
    if let Err(error) = host.run(&assemble) {
        return Ok(Evidence::Unclear(format!(
            "it could not be assembled to examine its content: {error}"
        )));
    }
    let arrays = unfinished_arrays(host, building)?;
    match arrays.iter().find(|array| !array.is_hollow) {
        None => Ok(Evidence::Unclear(
            "mdadm has assembled it, but it does not exist".to_owned(),
        )),
        Some(UnfinishedArray { device, .. }) => {
            let evidence = of_array(host, building, device);
            if !matches!(evidence, Ok(Evidence::Unused)) {
                // It did not exist before. If it cannot be stopped, it is at least read-only.
                let _ = teardown::stop_with_retries(host, &device.node());
            }
            evidence
        }
    }
}

fn of_array(host: &ArrayHost, building: &Building, array: &Device) -> anyhow::Result<Evidence> {
    if array.is_empty() || matches!(array.kind, BlockDeviceKind::Raid { level: None, .. }) {
        // It was never started, and nothing can be written to it.
        return Ok(Evidence::Unused);
    }
    let (uses, mounts) = (
        DeviceUsers::read(&host.root)?,
        Mounts::read_everywhere(&host.root)?,
    );
    let node = array.node().display().to_string();
    let path = host.root.locate(&array.node());
    let found = File::open(&path).and_then(|file| content(&file, building.fs.as_ref()));
    let has_fs = matches!(found, Ok(Content::Fresh | Content::Used(_)));
    let in_use = |why: &str| in_use(building, has_fs, why);
    let point = building.point();
    let is_mounted = mounts
        .on(array.number)
        .any(|mount| Some(mount.point.as_path()) == point);
    if let Some(point) = point.filter(|_| is_mounted) {
        return Ok(in_use(&format!("{node} is mounted at {}", point.display())));
    }
    let reasons = teardown::uses_of(&uses, array.number);
    if !reasons.is_empty() {
        return Ok(in_use(&format!("{node} is in use: {}", reasons.join("; "))));
    }
    if building.stage > usable_after(building.fs.as_ref()) {
        return Ok(in_use(&format!(
            "{node} was ready to be used before its builder ended"
        )));
    }
    let found = found.with_context(|| format!("the content of {node} cannot be read"))?;
    Ok(match found {
        Content::Nothing | Content::Fresh => Evidence::Unused,
        Content::Used(how) => in_use(&format!("{node} has been used: {how}")),
        Content::Other(what) => in_use(&format!(
            "{node} carries {what}, which was not made by its builder"
        )),
    })
}

/// The stage after which the array may have been used.
fn usable_after(fs: Option<&SavedFs>) -> BuildStage {
    match fs {
        None => BuildStage::Assembling,
        Some(SavedFs { mount: None, .. }) => BuildStage::Formatting,
        Some(_) => BuildStage::Mounting,
    }
}

/// The decision to leave the array as it is, with the commands that remove it by hand.
/// `has_fs`: the array carries the file system that its builder was to make.
fn in_use(building: &Building, has_fs: bool, why: &str) -> Evidence {
    let members: Vec<String> = building
        .members
        .iter()
        .map(|member| member.path.display().to_string())
        .collect();
    let mut text = format!(
        "{why}: it stays, and is not examined again. If nothing on it is needed, unmount it, \
         and\n  mdadm --stop {}\n  mdadm --zero-superblock {}\nend it.",
        building.node.display(),
        members.join(" ")
    );
    let is_there = |line: &&SavedLine| has_fs || !names_fs(&line.line, building);
    for kept in building.lines.iter().filter(is_there) {
        let bytes = super::super::files::content(&kept.file).unwrap_or_default();
        let bytes = bytes.unwrap_or_default();
        if !String::from_utf8_lossy(&bytes)
            .lines()
            .any(|line| line == kept.line)
        {
            text.push_str(&format!(
                "\nFor the next boot, this is still missing in {}:\n  {}",
                kept.file.display(),
                kept.line
            ));
        }
    }
    Evidence::InUse(text)
}

/// True if a line for the next boot names the file system, and not the array.
fn names_fs(line: &str, building: &Building) -> bool {
    let fs = building.fs.as_ref();
    fs.is_some_and(|fs| line.contains(&format!("UUID={} ", fs.uuid)))
}
