//! The verb `devices`: each disk with what is stacked on it, and whether it may be written.

pub mod args;
mod ec2;
mod raid;

use std::sync::atomic::AtomicBool;

use linux::aws;
use linux::aws::volumes::EbsVolume;
use linux::block::{Device, DeviceNumber};
use linux::consent::{DeviceUsers, Reason, decisive};
use linux::signature::Content;
use linux::{md, mounts::Mounts, swaps};
use record::Bytes;
use serde::Serialize;

use crate::args::DevicesArgs;
use crate::raid::{ArrayPart, Membership};
use ec2::{VolumeDocument, Volumes};
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Outcome};
use ui::table::{Column, layout, wrap};

/// A device and all that is stacked on it.
struct Branch {
    name: String,
    number: DeviceNumber,
    what: String,
    size: Bytes,
    model: Option<String>,
    serial: Option<String>,
    /// Mount points, and `swap` where it is used as swap.
    used_as: Vec<String>,
    /// Signatures of its content, in the words of `--destroy`; `None` where it could not be read.
    signatures: Option<Vec<String>>,
    /// Reasons for which it may not be overwritten; empty when it may.
    reasons: Vec<Reason>,
    /// Properties of an array; `None` for any other device.
    array: Option<ArrayPart>,
    /// The arrays that have it as a member or spare.
    member_of: Vec<Membership>,
    /// EBS volume of the disk; `None` where it is none, or none was requested.
    volume: Option<EbsVolume>,
    above: Vec<Branch>,
}

/// Lists the disks.
pub fn devices(args: &DevicesArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let uses = DeviceUsers::read(&context.root).refused()?;
    let volumes = match args.ec2 {
        true => ec2::query(uses.devices(), interrupt, &mut aws::run).refused()?,
        false => Volumes::default(),
    };
    for note in &volumes.notes {
        context.notice(note);
    }
    let lists = KernelLists {
        context,
        uses: &uses,
        volumes: &volumes,
        mounts: Mounts::read(&context.root).refused()?,
        swaps: swaps::read(&context.root).refused()?,
        arrays: md::arrays(&context.root, uses.devices()).refused()?,
        all: args.all,
    };
    let disks = lists.disks();
    let text = if args.json {
        let devices = disks.iter().map(DeviceDocument::of).collect();
        ui::json::document("devices", &Document { devices })
    } else {
        text(&disks, args.ec2, context.columns)
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

/// The kernel's lists from which the tree is made.
struct KernelLists<'a> {
    context: &'a Context,
    uses: &'a DeviceUsers,
    volumes: &'a Volumes,
    mounts: Mounts,
    swaps: Vec<swaps::Swap>,
    arrays: Vec<md::Array>,
    all: bool,
}

impl KernelLists<'_> {
    /// The devices that lie on no other, with what lies on them.
    fn disks(&self) -> Vec<Branch> {
        let devices = self.uses.devices();
        devices
            .iter()
            .filter(|device| devices.parents(device.number).is_empty())
            .filter(|device| self.all || !(device.is_empty() || device.hidden))
            .map(|device| self.branch(device))
            .collect()
    }

    fn branch(&self, device: &Device) -> Branch {
        let devices = self.uses.devices();
        let (content, reasons) = self.uses.content_and_reasons(device.number);
        Branch {
            name: device.name.clone(),
            number: device.number,
            what: device.title(),
            size: device.size,
            model: device.model.clone(),
            serial: device.serial.clone(),
            used_as: self.used_as(device),
            signatures: content.as_ref().map(signature_labels),
            reasons,
            array: raid::array(&self.arrays, device.number),
            member_of: raid::memberships(&self.arrays, device.number),
            volume: self.volumes.of(device).cloned(),
            above: devices
                .children(device.number)
                .into_iter()
                .map(|child| self.branch(child))
                .collect(),
        }
    }

    fn used_as(&self, device: &Device) -> Vec<String> {
        let mounted = self
            .mounts
            .on(device.number)
            .map(|mount| mount.point.display().to_string());
        let devices = self.uses.devices();
        let swap = self
            .swaps
            .iter()
            .filter(|swap| {
                swap.devices(&self.context.root, devices)
                    .contains(&device.number)
            })
            .map(|_| "swap".to_owned());
        let mut used_as: Vec<String> = mounted.chain(swap).collect();
        used_as.sort();
        used_as.dedup();
        used_as
    }
}

/// Signatures of a device itself, each word once. Those of its partitions are shown with these.
fn signature_labels(content: &Content) -> Vec<String> {
    let own = content
        .found
        .iter()
        .filter(|found| found.partition.is_none());
    let mut labels: Vec<String> = own.map(|found| found.kind.to_string()).collect();
    labels.dedup();
    labels
}

const COLUMNS: [Column; 7] = [
    Column::text("device"),
    Column::text("what").ranked(2),
    Column::numbers("size", 0),
    Column::text("model").ranked(3),
    Column::text("carries").ranked(1),
    Column::text("mounted"),
    Column::text("may be written"),
];

fn text(disks: &[Branch], ec2: bool, columns: usize) -> String {
    if disks.is_empty() {
        return "No disk is listed by this kernel.\n".to_owned();
    }
    let mut rows = Vec::new();
    disks.iter().for_each(|disk| disk.add_rows(0, &mut rows));
    let mut text = layout(&COLUMNS, &rows, columns);
    text.push('\n');
    if ec2 {
        let volumes: Vec<(&str, &EbsVolume)> = disks
            .iter()
            .filter_map(|disk| Some((disk.name.as_str(), disk.volume.as_ref()?)))
            .collect();
        text.push_str(&ec2::text(&volumes, columns));
    }
    disks
        .iter()
        .for_each(|disk| disk.add_reasons(columns, &mut text));
    text
}

impl Branch {
    fn may_be_written(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Kind of the device, with its properties as an array and its role as a member.
    fn title(&self) -> String {
        let array = self.array.iter().flat_map(ArrayPart::properties);
        let member = self.member_of.iter().filter_map(Membership::role);
        let parts = [self.what.clone()].into_iter().chain(array).chain(member);
        parts.collect::<Vec<String>>().join(", ")
    }

    fn add_rows(&self, depth: usize, rows: &mut Vec<Vec<String>>) {
        let or_dash = |text: String| {
            if text.is_empty() {
                "–".to_owned()
            } else {
                text
            }
        };
        let carries = match &self.signatures {
            Some(labels) => or_dash(labels.join(",")),
            None => "?".to_owned(),
        };
        rows.push(vec![
            format!("{}{}", "  ".repeat(depth), self.name),
            self.title(),
            self.size.to_string(),
            or_dash(self.model.clone().unwrap_or_default()),
            carries,
            or_dash(self.used_as.join(" ")),
            if self.may_be_written() { "yes" } else { "no" }.to_owned(),
        ]);
        self.above
            .iter()
            .for_each(|above| above.add_rows(depth + 1, rows));
    }

    fn add_reasons(&self, columns: usize, text: &mut String) {
        if !self.reasons.is_empty() {
            text.push_str(&format!("{} may not be written:\n", self.name));
        }
        for reason in decisive(&self.reasons) {
            text.push_str(&wrap(&format!("  - {reason}"), columns, "    "));
            text.push('\n');
        }
        self.above
            .iter()
            .for_each(|above| above.add_reasons(columns, text));
    }
}

/// The document of `devices --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Document<'a> {
    /// The devices that lie on no other, each with what is stacked on it.
    devices: Vec<DeviceDocument<'a>>,
}

/// A device, and the devices above it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DeviceDocument<'a> {
    /// The kernel's name, such as `nvme1n1`.
    name: &'a str,
    /// Major and minor number: `259:0`.
    number: String,
    /// Kind in words, such as `disk`, `partition`, `raid10 array` or `LVM volume`.
    kind: &'a str,
    /// Size of the device, in bytes.
    size_bytes: Bytes,
    /// Model; `null` where the kernel shows none.
    model: Option<&'a str>,
    /// Serial number, on EBS the volume's id; `null` where the kernel shows none.
    serial: Option<&'a str>,
    /// Mount points, and `swap` where it is used as swap.
    used_as: &'a [String],
    /// Signatures of its content, in the words of `--destroy`; `null` where it could not be read.
    signatures: Option<&'a [String]>,
    /// True if `--destroy` may overwrite it: `reasons` is empty.
    may_be_written: bool,
    /// Reasons for which it may not be overwritten, as sentences.
    reasons: Vec<String>,
    /// Properties of an array; `null` for any other device.
    array: Option<&'a ArrayPart>,
    /// The arrays of Linux software RAID that have it as a member or spare.
    member_of: &'a [Membership],
    /// EBS volume of the disk; `null` where it is none, or without `--ec2`.
    ec2: Option<VolumeDocument<'a>>,
    /// The devices that lie on it: partitions, arrays, mapped devices.
    above: Vec<DeviceDocument<'a>>,
}

impl<'a> DeviceDocument<'a> {
    fn of(branch: &'a Branch) -> DeviceDocument<'a> {
        DeviceDocument {
            name: &branch.name,
            number: branch.number.to_string(),
            kind: &branch.what,
            size_bytes: branch.size,
            model: branch.model.as_deref(),
            serial: branch.serial.as_deref(),
            used_as: &branch.used_as,
            signatures: branch.signatures.as_deref(),
            may_be_written: branch.may_be_written(),
            reasons: branch.reasons.iter().map(ToString::to_string).collect(),
            array: branch.array.as_ref(),
            member_of: &branch.member_of,
            ec2: branch.volume.as_ref().map(VolumeDocument::of),
            above: branch.above.iter().map(DeviceDocument::of).collect(),
        }
    }
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![DocumentType::of::<Document>("devices")]
}
