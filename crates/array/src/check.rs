//! Checks before anything is changed: all reasons against the build are reported in one answer.

mod bitmaps;
mod members;

use std::fs;
use std::path::{Path, PathBuf};

use linux::block::Devices;
use linux::exec::Exec;
use linux::md;
use linux::mounts::Mounts;
use record::Bytes;

use super::building;
use super::building::CheckedMember;
use super::files;
use super::geometry::{DEFAULT_CHUNK, Geometry, bad_chunk};
use super::host::ArrayHost;
use super::plan::{ArrayPlan, FsPlan, fstab_field, md_uuid, new_uuid};
use crate::args::CreateArgs;
use domain::filesystem::Fs;
use domain::raid::Placement;
use members::claim_members;
pub use members::{consents, member};

/// Least size of an XFS that `mkfs.xfs` makes (mkfs.xfs(8), since 5.19).
pub const MIN_XFS_SIZE: Bytes = Bytes::mib(300);

/// The longest name that a superblock holds (mdadm(8), `--name`).
const MAX_NAME_BYTES: usize = 32;

/// An array that may be built.
pub(crate) struct CheckedPlan {
    /// Plan that was checked.
    pub plan: ArrayPlan,
    /// The members, as they were checked, and after them the hot spares.
    pub members: Vec<CheckedMember>,
    /// The sizes of the members.
    pub sizes: Vec<Bytes>,
    /// Notes for the user, as sentences.
    pub notes: Vec<String>,
}

/// Examines everything, and passes the claims on the members to the host.
///
/// # Errors
/// All reasons against the build, as sentences.
pub(crate) fn check(args: &CreateArgs, host: &mut ArrayHost) -> Result<CheckedPlan, Vec<String>> {
    let mut problems = shape_problems(args);
    let devices = Devices::read(&host.root).map_err(|error| vec![error.to_string()])?;
    let (name, node) = name(args, host, &devices, &mut problems);
    let mount = mount_point(args, host, &mut problems);
    missing_programs(args, host, &mut problems);
    problems.extend(bitmaps::problems(args.bitmap, args.level, host));
    let (members, sizes) = claim_members(args, host, &devices, &mut problems);

    let geometry = Geometry {
        level: args.level,
        members: args.members.len() as u64,
        chunk: args
            .level
            .has_chunks()
            .then(|| args.chunk.map_or(DEFAULT_CHUNK, |chunk| chunk.0)),
        layout: args.layout.unwrap_or_default(),
    };
    let capacity = if problems.is_empty() {
        geometry.capacity(&sizes)
    } else {
        Bytes(0)
    };
    let room = geometry.usable_bytes(&sizes);
    if problems.is_empty() && args.fs == Some(Fs::Xfs) && room < MIN_XFS_SIZE {
        problems.push(format!(
            "XFS needs {MIN_XFS_SIZE}, and these members have {room} for data behind md's metadata; \
             use larger ones, or ext4"
        ));
    }
    let mut notes = Vec::new();
    if problems.is_empty() {
        kernel_has_md(args.dry_run, host, &mut notes, &mut problems);
    }
    let uuids = new_uuid(&host.root).and_then(|one| Ok((one, new_uuid(&host.root)?)));
    let uuids = uuids.map_err(|error| problems.push(error.to_string())).ok();
    match uuids {
        Some((array, fs)) if problems.is_empty() => Ok(CheckedPlan {
            plan: ArrayPlan {
                geometry,
                members: args.members.clone(),
                spares: args.spares.clone(),
                name,
                node,
                uuid: md_uuid(&array),
                capacity,
                bitmap: args.bitmap,
                assume_clean: args.assume_clean,
                fs: args.fs.map(|kind| FsPlan {
                    fs: kind,
                    uuid: fs,
                    mount,
                    trial: false,
                }),
            },
            members,
            sizes,
            notes,
        }),
        _ => {
            host.claims.clear();
            Err(problems)
        }
    }
}

/// Errors of the arguments alone.
fn shape_problems(args: &CreateArgs) -> Vec<String> {
    let mut problems = Vec::new();
    let (level, least) = (args.level, args.level.least_members());
    let title = level.title();
    if args.members.len() < least {
        problems.push(format!(
            "{title} needs at least {least} members, and {} {} named",
            args.members.len(),
            if args.members.len() == 1 { "is" } else { "are" }
        ));
    }
    if args.layout.is_some() && level.placement() != Placement::StripedCopies {
        problems.push(format!(
            "--layout is for RAID 10, and {title} has no copies to lay out; leave it out"
        ));
    }
    if !args.spares.is_empty() && !level.is_redundant() {
        problems.push(format!(
            "--spares is for levels with copies or parity: of {title} nothing can be rebuilt onto a \
             spare; leave it out"
        ));
    }
    problems.extend(bad_chunk(level, args.chunk.map(|chunk| chunk.0)));
    problems
}

/// First device node of `/dev/md0`, `/dev/md1`, … that is free and not reserved in mdadm.conf.
pub fn free_node(host: &ArrayHost, devices: &Devices) -> PathBuf {
    let is_free = |name: &String| {
        let node = Path::new("/dev").join(name);
        devices.named(name).is_none() && !host.root.locate(&node).exists() && !in_conf(host, &node)
    };
    let free = (0..).map(|number| format!("md{number}")).find(is_free);
    Path::new("/dev").join(free.unwrap_or_default())
}

/// True if mdadm.conf has a line for a node.
fn in_conf(host: &ArrayHost, node: &Path) -> bool {
    let conf = files::content(&building::mdadm_conf(&host.etc)).unwrap_or_default();
    let conf = String::from_utf8_lossy(&conf.unwrap_or_default()).into_owned();
    conf.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("ARRAY") && words.next().is_some_and(|word| Path::new(word) == node)
    })
}

/// The array's name and node.
fn name(
    args: &CreateArgs,
    host: &ArrayHost,
    devices: &Devices,
    problems: &mut Vec<String>,
) -> (Option<String>, PathBuf) {
    let Some(name) = &args.name else {
        return (None, free_node(host, devices));
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !(begins_well && name.chars().all(plain) && name.len() <= MAX_NAME_BYTES) {
        problems.push(format!(
            "'{name}' is not a name for an array: it begins with a letter and has at most \
             {MAX_NAME_BYTES} letters, digits, dots, hyphens and underscores"
        ));
    }
    let numbered = name
        .strip_prefix("md")
        .is_some_and(|rest| rest.parse::<u32>().is_ok());
    let (stored, node) = if numbered {
        (None, Path::new("/dev").join(name))
    } else {
        (Some(name.clone()), Path::new("/dev/md").join(name))
    };
    if let Some(array) = md::find(&host.root, devices, name) {
        problems.push(format!(
            "the name {name} is taken: {} has it; choose another with --name",
            array.label()
        ));
    } else if in_conf(host, &node) {
        problems.push(format!(
            "the name {name} is taken: {} has a line for it; choose another with --name, or take \
             the line out",
            building::mdadm_conf(&host.etc).display()
        ));
    }
    (stored, node)
}

/// Mount point, as an absolute path.
fn mount_point(args: &CreateArgs, host: &ArrayHost, problems: &mut Vec<String>) -> Option<PathBuf> {
    let point = std::path::absolute(args.mount.as_ref()?).ok()?;
    let real = fs::canonicalize(&point).unwrap_or_else(|_| point.clone());
    let shown = point.display();
    match Mounts::read(&host.root) {
        Ok(mounts) => {
            if let Some(mount) = mounts.iter().find(|mount| mount.point == real) {
                problems.push(format!(
                    "{shown} is a mount point already: {} is mounted there",
                    mount.source.display()
                ));
                return Some(point);
            }
        }
        Err(error) => problems.push(error.to_string()),
    }
    match fs::read_dir(&point) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                problems.push(format!(
                    "{shown} is not empty, and its content would be hidden; mount on an empty folder"
                ));
            }
        }
        Err(error) => match error.kind() {
            std::io::ErrorKind::NotFound => {}
            _ if point.symlink_metadata().is_ok() && !point.is_dir() => {
                problems.push(format!("{shown} is not a directory"));
            }
            _ => problems.push(format!("{shown} cannot be examined: {error}")),
        },
    }
    if args.persist {
        let fstab = files::content(&host.etc.join("fstab")).unwrap_or_default();
        let field = fstab_field(&point);
        let lines = String::from_utf8_lossy(&fstab.unwrap_or_default()).into_owned();
        let named = |line: &str| {
            !line.trim_start().starts_with('#')
                && line.split_whitespace().nth(1) == Some(field.as_str())
        };
        if let Some(line) = lines.lines().find(|line| named(line)) {
            problems.push(format!(
                "{} mounts something at {shown} already: '{line}'; take that line out, or leave \
                 --persist out",
                host.etc.join("fstab").display()
            ));
        }
    }
    Some(real)
}

fn missing_programs(args: &CreateArgs, host: &ArrayHost, problems: &mut Vec<String>) {
    let mut needed = vec![("mdadm", "mdadm")];
    match args.fs {
        Some(Fs::Xfs) => needed.push(("mkfs.xfs", "xfsprogs")),
        Some(Fs::Ext4) => needed.push(("mkfs.ext4", "e2fsprogs")),
        None => {}
    }
    if args.mount.is_some() {
        needed.push(("mount", "mount"));
        needed.push(("umount", "mount"));
    }
    for (program, package) in needed {
        if !host.programs.has(program) {
            problems.push(format!(
                "the program {program} is not on the PATH; {}",
                linux::remedy::install(package)
            ));
        }
    }
}

/// Checks that this kernel supports the level. Its module is only loaded if there are no other problems, and never in
/// a dry run.
pub fn kernel_has_md(
    dry_run: bool,
    host: &mut ArrayHost,
    notes: &mut Vec<String>,
    problems: &mut Vec<String>,
) {
    if md::is_supported(&host.root) {
        return;
    }
    if dry_run {
        notes.push(
            "Software RAID (md) is not loaded in this kernel; its module is loaded when the array \
             is built."
                .to_owned(),
        );
        return;
    }
    let loaded = host.ask(&Exec::new("modprobe").arg("md_mod"));
    if !md::is_supported(&host.root) {
        let why = loaded.map_or_else(|error| format!(" ({error})"), |_| String::new());
        problems.push(format!(
            "this kernel has no software RAID: there is no {}, and the module md_mod cannot be \
             loaded{why}; boot a kernel that has it",
            host.root.proc.join("mdstat").display()
        ));
    }
}
