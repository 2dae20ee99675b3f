//! Checks before a new sweep changes anything: programs, kernel, schedulers and space. Layouts whose prerequisites are
//! missing are left out; the sweep is refused if that is all of them.

use std::path::PathBuf;

use linux::block::{DeviceNumber, Devices};

use super::built_layout::schedulers;
use super::layout::Layout;
use super::plan::LayoutPlan;
use super::record::{ExcludedSetting, SweepSettings};
use array::check::{MIN_XFS_SIZE, kernel_has_md};
use array::host::ArrayHost;
use domain::filesystem::Fs;

/// Programs that every layout needs, with the packages that contain them.
const NEEDED: [(&str, &str); 3] = [
    ("mount", "mount, or util-linux"),
    ("umount", "mount, or util-linux"),
    ("wipefs", "util-linux"),
];

/// Leaves out layouts that cannot be measured on this host.
///
/// # Errors
/// Reasons against the whole sweep, as sentences.
pub(crate) fn check(
    settings: &SweepSettings,
    planned: &mut LayoutPlan,
    dry_run: bool,
    host: &mut ArrayHost,
) -> Result<Vec<String>, Vec<String>> {
    let mut problems = Vec::new();
    let mut notes = Vec::new();
    file_systems(planned, host);
    scheduler_names(settings, planned, host);
    leave_out_small(settings, planned);
    arrays(planned, dry_run, host, &mut notes, &mut problems);
    for (program, package) in NEEDED {
        if !host.programs.has(program) {
            problems.push(missing(program, package));
        }
    }
    if problems.is_empty() && planned.layouts.is_empty() {
        problems.push(no_layout_error(planned));
    }
    notes.extend(lost_capacity(settings));
    if problems.is_empty() {
        Ok(notes)
    } else {
        Err(problems)
    }
}

/// Error that a program is missing, with its package.
pub(crate) fn missing(program: &str, package: &str) -> String {
    format!(
        "the program {program} is not on the PATH; {}",
        linux::remedy::install(package)
    )
}

fn no_layout_error(planned: &LayoutPlan) -> String {
    let listed: Vec<String> = planned
        .left_out
        .iter()
        .map(|left| format!("\n  - {}: {}", left.what, left.why))
        .collect();
    format!("there is no layout to measure:{}", listed.concat())
}

/// Leaves out the layouts for which `is_out` is true, if there are any.
fn exclude(planned: &mut LayoutPlan, what: String, why: String, is_out: impl Fn(&Layout) -> bool) {
    let before = planned.layouts.len();
    planned.layouts.retain(|layout| !is_out(layout));
    if planned.layouts.len() < before {
        planned.left_out.push(ExcludedSetting { what, why });
    }
}

fn file_systems(planned: &mut LayoutPlan, host: &ArrayHost) {
    for (fs, package) in [(Fs::Xfs, "xfsprogs"), (Fs::Ext4, "e2fsprogs")] {
        if !host.programs.has(fs.tool()) {
            let why = missing(fs.tool(), package);
            exclude(planned, format!("fs {}", fs.name()), why, |layout| {
                layout.fs == fs
            });
        }
    }
}

/// Leaves out schedulers that not every disk has, as all disks of a layout need the same.
fn scheduler_names(settings: &SweepSettings, planned: &mut LayoutPlan, host: &ArrayHost) {
    let Ok(devices) = Devices::read(&host.root) else {
        return;
    };
    let mut names: Vec<String> = planned
        .layouts
        .iter()
        .filter_map(|layout| layout.scheduler.clone())
        .collect();
    names.sort();
    names.dedup();
    let numbers: Vec<(&PathBuf, DeviceNumber)> = settings
        .devices
        .iter()
        .filter_map(|volume| {
            let number = array::host::number_at(&host.root, &devices, &volume.path)?;
            Some((&volume.path, number))
        })
        .collect();
    for name in names {
        let without = numbers.iter().find_map(|(path, number)| {
            let there = schedulers(&host.root, &devices, *number);
            (!there.contains(&name)).then(|| (path.display().to_string(), there.join(", ")))
        });
        if let Some((path, there)) = without {
            let why = format!("{path} has {there}; a module may have to be loaded for another");
            exclude(planned, format!("scheduler {name}"), why, |layout| {
                layout.scheduler.as_ref() == Some(&name)
            });
        }
    }
}

/// Leaves out XFS on layouts below its smallest size.
fn leave_out_small(settings: &SweepSettings, planned: &mut LayoutPlan) {
    let sizes = settings.sizes();
    // A device without a size is missing, which the claim reports.
    let too_small = |layout: &Layout| {
        let capacity = layout.capacity(&sizes);
        layout.fs == Fs::Xfs && capacity.0 > 0 && capacity < MIN_XFS_SIZE
    };
    let Some(first) = planned.layouts.iter().find(|layout| too_small(layout)) else {
        return;
    };
    let capacity = first.capacity(&sizes);
    exclude(
        planned,
        "fs xfs on the smallest layouts".to_owned(),
        format!("XFS needs {MIN_XFS_SIZE}, and one has {capacity} for data"),
        too_small,
    );
}

fn arrays(
    planned: &LayoutPlan,
    dry_run: bool,
    host: &mut ArrayHost,
    notes: &mut Vec<String>,
    problems: &mut Vec<String>,
) {
    if planned.layouts.iter().all(|layout| layout.level.is_none()) {
        return;
    }
    if !host.programs.has("mdadm") {
        problems.push(missing("mdadm", "mdadm"));
    }
    kernel_has_md(dry_run, host, notes, problems);
}

/// Capacity lost to devices of different sizes, as sentences.
fn lost_capacity(settings: &SweepSettings) -> Vec<String> {
    let least = settings.devices.iter().map(|volume| volume.size).min();
    let Some(least) = least else {
        return Vec::new();
    };
    let larger: Vec<String> = settings
        .devices
        .iter()
        .filter(|volume| volume.size > least)
        .map(|volume| {
            format!(
                "{} is larger by {}",
                volume.path.display(),
                volume.size - least
            )
        })
        .collect();
    if larger.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "The devices are not equal: {}. Levels with copies or parity lose what is beyond the \
         smallest, and RAID 0 has fewer members there.",
        larger.join(", ")
    )]
}
