//! Reasons for which a device may not be overwritten, as far as the kernel's lists tell.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::commands::CommandDevices;
use super::identity::Storage;
use super::option::Consent;
use super::programs::{self, Programs, UsingProgram};
use super::reason::{Reason, Relation};
use super::users::DeviceUsers;
use crate::block::{BlockDeviceKind, Device, DeviceNumber};
use crate::mounts::Mount;
use crate::root::Root;
use crate::signature::{Content, LocatedContent, SignatureKind};
use crate::swaps::{Swap, SwapKind};

/// The disk that carries one of these carries the running system.
const SYSTEM_MOUNT_POINTS: [&str; 5] = ["/", "/usr", "/boot", "/boot/efi", "/efi"];

impl DeviceUsers {
    /// Reasons for which a device may not be overwritten, apart from its content and exclusive claims on it.
    pub fn reasons(&self, number: DeviceNumber) -> Vec<Reason> {
        let Some(target) = self.devices.get(number) else {
            return vec![Reason::Unlisted { number }];
        };
        let mut reasons = self.root_disks(number);
        self.add_uses(target, Relation::Itself, &mut reasons);
        for above in self.devices.stack_above(number) {
            let relation = if above.partition_of() == Some(number) {
                Relation::Partition
            } else {
                Relation::Above
            };
            self.add_uses(above, relation, &mut reasons);
        }
        for sibling in self.siblings(number) {
            self.add_uses(sibling, Relation::Sibling, &mut reasons);
            for above in self.devices.stack_above(sibling.number) {
                self.add_uses(above, Relation::Sibling, &mut reasons);
            }
        }
        if matches!(target.kind, BlockDeviceKind::Loop { .. }) {
            self.add_unclear(&target.label(), &mut reasons);
        }
        self.add_uses_below(target, &mut reasons);
        self.add_uses_of_shown(target, &mut reasons);
        self.add_exports(&self.storage_of(number), &mut reasons);
        if target.read_only {
            reasons.push(Reason::ReadOnly {
                device: target.label(),
            });
        }
        reasons
    }

    /// Reasons as [`reasons`](DeviceUsers::reasons), and the content of the device, which is opened for reading only.
    /// Claims of others are not tried for: that would be a claim itself.
    pub fn why_not_writable(&self, number: DeviceNumber) -> Vec<Reason> {
        self.content_and_reasons(number).1
    }

    /// Content of a device, and the reasons for which it may not be overwritten, as
    /// [`why_not_writable`](DeviceUsers::why_not_writable). `None` of a content that cannot be read.
    pub fn content_and_reasons(&self, number: DeviceNumber) -> (Option<Content>, Vec<Reason>) {
        let mut reasons = self.reasons(number);
        let Some(device) = self.devices.get(number) else {
            return (None, reasons);
        };
        if device.is_empty() || device.hidden {
            return (Some(Content::default()), reasons);
        }
        let node = device.node();
        match self.content(&node, number) {
            Ok(content) => {
                add_content(&node, &content, &[], &mut reasons);
                (Some(content), reasons)
            }
            Err(error) => {
                reasons.push(Reason::Unprobed {
                    path: node,
                    error: error.to_string(),
                });
                (None, reasons)
            }
        }
    }

    fn content(&self, node: &Path, number: DeviceNumber) -> std::io::Result<Content> {
        let file = File::open(self.root.locate(node))?;
        let metadata = file.metadata()?;
        let is_device = metadata.file_type().is_block_device();
        if is_device && DeviceNumber::from_raw(metadata.rdev()) != number {
            return Err(std::io::Error::other("its node stands for another device"));
        }
        Content::of(&file, &self.partitions(number))
    }

    /// Reasons for which a file may not be overwritten, apart from its content and the programs that use it.
    pub(super) fn file_reasons(&self, path: &Path, file: Storage) -> Vec<Reason> {
        let mut reasons = Vec::new();
        self.add_file_uses(file, path, Relation::Itself, &mut reasons);
        for device in self.loops_over(file) {
            reasons.push(Reason::Loop {
                device: path.display().to_string(),
                relation: Relation::Itself,
                holder: device.label(),
            });
        }
        self.add_unclear(&path.display().to_string(), &mut reasons);
        self.add_exports(&[file], &mut reasons);
        reasons
    }

    /// Servers of the kernel that hand out any of some storage.
    fn add_exports(&self, storage: &[Storage], reasons: &mut Vec<Reason>) {
        let served = self.exports.iter();
        for export in served.filter(|export| storage.contains(&export.storage)) {
            reasons.push(Reason::Served {
                storage: self.label(export.storage),
                server: export.server.clone(),
                advice: export.advice,
            });
        }
    }

    /// The name of storage in a sentence.
    fn label(&self, storage: Storage) -> String {
        match storage {
            Storage::Device(number) => match self.devices.get(number) {
                Some(device) => device.label(),
                None => format!("the device {number}"),
            },
            Storage::File(..) => "the file".to_owned(),
        }
    }

    /// Swap on a file, and file systems that are mounted from it without a loop device, as erofs may be.
    fn add_file_uses(
        &self,
        file: Storage,
        path: &Path,
        relation: Relation,
        reasons: &mut Vec<Reason>,
    ) {
        let is_it =
            |other: &Path| fs::metadata(other).is_ok_and(|found| Storage::of(&found) == Some(file));
        let device = path.display().to_string();
        let as_swap =
            |swap: &Swap| swap.kind == SwapKind::File && is_it(&self.root.locate(&swap.path));
        if self.swaps.iter().any(|(swap, _)| as_swap(swap)) {
            reasons.push(Reason::Swap {
                device: device.clone(),
                relation,
            });
        }
        let from_file = |mount: &&Mount| mount.device.is_anonymous();
        for mount in self.mounts().filter(from_file) {
            let source = Path::new(&mount.source);
            if source.is_absolute() && is_it(&self.root.locate(source)) {
                reasons.push(Reason::Mounted {
                    device: device.clone(),
                    relation,
                    point: mount.point.clone(),
                });
            }
        }
        for (process, mount, _) in &self.elsewhere {
            let there = self.root.proc.join(process.to_string()).join("root");
            let source = Path::new(&mount.source).strip_prefix("/");
            if mount.device.is_anonymous() && source.is_ok_and(|path| is_it(&there.join(path))) {
                reasons.push(Reason::MountedElsewhere {
                    device: device.clone(),
                    relation,
                    point: mount.point.clone(),
                    process: *process,
                });
            }
        }
    }

    /// Uses of the files behind loop devices at or below a target, other than by another loop device.
    fn add_uses_of_shown(&self, target: &Device, reasons: &mut Vec<Reason>) {
        for device in self
            .devices
            .below(target.number)
            .into_iter()
            .chain([target])
        {
            if let Some((path, file)) = self.file_shown(device) {
                self.add_file_uses(file, path, Relation::Below, reasons);
            }
        }
    }

    /// A loop device of which it cannot be determined what it shows may show the target, or be another name of it.
    fn add_unclear(&self, target: &str, reasons: &mut Vec<Reason>) {
        if let Some((device, why)) = self.unclear_loop() {
            reasons.push(Reason::UnclearLoop {
                target: target.to_owned(),
                holder: device.label(),
                why,
            });
        }
    }

    /// The programs that use any of some storage, as reasons; and how many processes could not be examined.
    /// `target` is the storage itself, which this program may have open.
    ///
    /// # Errors
    /// When the processes cannot be listed.
    pub(super) fn programs(
        &self,
        target: Storage,
        storage: &[Storage],
    ) -> std::io::Result<(Vec<Reason>, usize)> {
        let commands = CommandDevices::read(&self.root, &self.devices);
        let Programs { found, unreadable } =
            programs::using(&self.root, &commands, target, storage)?;
        let reasons = found.into_iter().map(|program| self.in_use(program));
        Ok((reasons.collect(), unreadable))
    }

    fn in_use(&self, program: UsingProgram) -> Reason {
        let storage = self.label(program.storage);
        if program.pid == std::process::id() {
            return Reason::AlsoTarget { other: storage };
        }
        Reason::InUse {
            storage,
            hold: program.hold,
            program: program.name,
            pid: program.pid,
        }
    }

    /// The disks under a device that also lie under the running system.
    fn root_disks(&self, number: DeviceNumber) -> Vec<Reason> {
        let mut reasons = Vec::new();
        for disk in self.devices.stack_below(number) {
            let point = SYSTEM_MOUNT_POINTS
                .iter()
                .find(|point| self.lies_under(disk, Path::new(point)));
            if let Some(point) = point {
                reasons.push(Reason::RootDisk {
                    disk: disk.label(),
                    point: PathBuf::from(point),
                });
            }
        }
        reasons
    }

    fn lies_under(&self, disk: &Device, point: &Path) -> bool {
        self.mounts
            .iter()
            .filter(|(mount, _)| mount.point == point)
            .flat_map(|(_, on)| on)
            .flat_map(|&number| self.devices.stack_below(number))
            .any(|bottom| bottom.number == disk.number)
    }

    /// Adds the users of devices below. These have other partitions and volumes next to the target, and
    /// whether those are in use is no reason. A file system on the whole of it is; and so is a holder of the
    /// whole disk that the target is a part of, such as multipath.
    fn add_uses_below(&self, target: &Device, reasons: &mut Vec<Reason>) {
        let below = self.devices.below(target.number);
        for &device in &below {
            self.add_content(device, Relation::Below, reasons);
            let is_cut = below
                .iter()
                .chain([&target])
                .any(|part| part.partition_of() == Some(device.number));
            if is_cut {
                self.add_holders(device, Relation::Below, reasons);
            }
        }
    }

    fn add_uses(&self, device: &Device, relation: Relation, reasons: &mut Vec<Reason>) {
        self.add_content(device, relation, reasons);
        self.add_holders(device, relation, reasons);
    }

    /// Devices that are built on a device, and loop devices that show it.
    fn add_holders(&self, device: &Device, relation: Relation, reasons: &mut Vec<Reason>) {
        for name in &device.holders {
            let holder = self.devices.named(name);
            reasons.push(Reason::Held {
                device: device.label(),
                relation,
                holder: holder.map_or_else(|| format!("/dev/{name}"), Device::label),
                advice: advice_on(holder),
            });
        }
        for holder in self.devices.children(device.number) {
            if holder.loop_on() == Some(device.number) {
                reasons.push(Reason::Loop {
                    device: device.label(),
                    relation,
                    holder: holder.label(),
                });
            }
        }
    }

    /// Mounts of a device and swap on it.
    fn add_content(&self, device: &Device, relation: Relation, reasons: &mut Vec<Reason>) {
        let mounts = self
            .mounts
            .iter()
            .filter(|(_, on)| on.contains(&device.number));
        for (mount, _) in mounts {
            reasons.push(Reason::Mounted {
                device: device.label(),
                relation,
                point: mount.point.clone(),
            });
        }
        for (process, mount, _) in self
            .elsewhere
            .iter()
            .filter(|(_, _, on)| on.contains(&device.number))
        {
            reasons.push(Reason::MountedElsewhere {
                device: device.label(),
                relation,
                point: mount.point.clone(),
                process: *process,
            });
        }
        let as_swap = |(swap, on): &(Swap, Vec<DeviceNumber>)| {
            swap.kind == SwapKind::Device && on.contains(&device.number)
        };
        if self.swaps.iter().any(as_swap) {
            reasons.push(Reason::Swap {
                device: device.label(),
                relation,
            });
        }
    }
}

/// Advice on taking a holder down.
fn advice_on(holder: Option<&Device>) -> &'static str {
    match holder.map(|device| &device.kind) {
        Some(BlockDeviceKind::Raid { .. }) => "stop the array first (mdadm --stop)",
        Some(BlockDeviceKind::Mapper { uuid, .. }) => match uuid.as_deref() {
            Some(uuid) if uuid.starts_with("LVM-") => {
                "deactivate the volume first (lvchange -an), and take the disk out of its group"
            }
            Some(uuid) if uuid.starts_with("CRYPT-") => "close it first (cryptsetup close)",
            Some(uuid) if uuid.starts_with("mpath-") => {
                "name the multipath device instead of one of its paths"
            }
            _ => "remove it first (dmsetup remove)",
        },
        _ => "take that down first",
    }
}

/// Adds the reasons against overwriting this content: content that no consent names, and names of content
/// that does not exist. `unknown` may be named of what is blank: it is no mark by which a disk is distinguished from
/// another.
pub(super) fn add_content(
    path: &Path,
    content: &Content,
    consents: &[&Consent],
    reasons: &mut Vec<Reason>,
) {
    let begun = consents.iter().any(|consent| consent.has_begun(content));
    let named: Vec<SignatureKind> = consents
        .iter()
        .flat_map(|consent| consent.signatures.iter().copied())
        .collect();
    let all = content.kinds();
    let is_allowed =
        |kind: SignatureKind| named.contains(&kind) || (begun && kind == SignatureKind::Unknown);
    let unnamed: Vec<LocatedContent> = content
        .found
        .iter()
        .filter(|found| !is_allowed(found.kind))
        .cloned()
        .collect();
    let mut missing: Vec<SignatureKind> = named
        .into_iter()
        .filter(|kind| !begun && *kind != SignatureKind::Unknown && !all.contains(kind))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    if !missing.is_empty() {
        reasons.push(Reason::NotThere {
            path: path.to_path_buf(),
            named: missing,
            found: all.clone(),
        });
    }
    if !unnamed.is_empty() {
        reasons.push(Reason::Carries {
            path: path.to_path_buf(),
            unnamed,
            all,
        });
    }
}

/// Reasons for which a device may not be overwritten, as far as can be determined without opening it for writing.
/// Empty when nothing speaks against it. For many devices, [`DeviceUsers::read`] once is cheaper.
pub fn why_not_writable(root: &Root, number: DeviceNumber) -> Vec<Reason> {
    match DeviceUsers::read(root) {
        Ok(uses) => uses.why_not_writable(number),
        Err(error) => vec![Reason::Unknown {
            error: error.to_string(),
        }],
    }
}
