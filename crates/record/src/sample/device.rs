//! A block device: its identity, and its I/O in an interval.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    ArraySample, BytesPerSecond, DeviceId, FlowKind, Fraction, LatencySample, PerSecond,
    SampleTime, VendorSample,
};
use crate::raid::{Level, MdLevel};
use crate::{Bytes, Nanos};

/// The kernel's number of a device: `major:minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceNumber {
    /// Major number, which identifies the driver. 0 means no device: file systems without a device get numbers with
    /// this major.
    pub major: u32,
    /// Minor number, which identifies the device.
    pub minor: u32,
}

impl DeviceNumber {
    /// A number from its parts.
    pub const fn new(major: u32, minor: u32) -> DeviceNumber {
        DeviceNumber { major, minor }
    }

    /// The number in an `st_dev` or `st_rdev`, in glibc's encoding (sys/sysmacros.h).
    pub const fn from_raw(raw: u64) -> DeviceNumber {
        DeviceNumber {
            major: (((raw >> 32) & 0xffff_f000) | ((raw >> 8) & 0xfff)) as u32,
            minor: (((raw >> 12) & 0xffff_ff00) | (raw & 0xff)) as u32,
        }
    }

    /// True if it is not the number of a block device: tmpfs, NFS, overlay, and also btrfs.
    pub const fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// Error: the text is not a device number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a device number such as 8:1")]
pub struct ParseDeviceNumberError(String);

impl FromStr for DeviceNumber {
    type Err = ParseDeviceNumberError;

    fn from_str(text: &str) -> Result<DeviceNumber, ParseDeviceNumberError> {
        text.split_once(':')
            .and_then(|(major, minor)| {
                Some(DeviceNumber {
                    major: major.parse().ok()?,
                    minor: minor.parse().ok()?,
                })
            })
            .ok_or_else(|| ParseDeviceNumberError(text.to_owned()))
    }
}

/// Kind of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A disk, real or virtual.
    Disk,
    /// A partition of a disk.
    Partition,
    /// Linux software RAID.
    Array,
    /// A device-mapper device: LVM, dm-crypt, multipath.
    Mapper,
    /// A loop device.
    Loop,
    /// Memory: zram or a RAM disk.
    Memory,
}

impl DeviceKind {
    /// The kind of a device by its name alone, if sysfs is not available: in a container, or in a log. The names are
    /// the kernel's (Documentation/admin-guide/devices.txt). Never returns a partition, which cannot be recognized by
    /// its name alone: see [`disks_of_partition`].
    pub fn by_name(name: &str) -> DeviceKind {
        let numbered = |prefix: &str| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        if numbered("md") || name.starts_with("md_") {
            DeviceKind::Array
        } else if numbered("dm-") {
            DeviceKind::Mapper
        } else if numbered("loop") {
            DeviceKind::Loop
        } else if numbered("ram") || numbered("zram") {
            DeviceKind::Memory
        } else {
            DeviceKind::Disk
        }
    }

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            DeviceKind::Disk => "disk",
            DeviceKind::Partition => "partition",
            DeviceKind::Array => "array",
            DeviceKind::Mapper => "mapper",
            DeviceKind::Loop => "loop",
            DeviceKind::Memory => "memory",
        }
    }
}

/// The names of disks of which a device with this name may be a partition: `sda` for `sda1`, `nvme0n1` for
/// `nvme0n1p1`, `mpatha` for `mpatha1`, `mpathap1` and `mpatha-part1`. It is a partition only if such a disk is also
/// listed: a Xen guest may have a device `sda1` and no `sda`, and a log may have partitions only.
pub fn disks_of_partition(name: &str) -> impl Iterator<Item = &str> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_numbered = stem.len() < name.len();
    // Names of logical volumes have dashes, and `vg-data1` is not a partition of `vg-data`.
    let plain = Some(stem).filter(|stem| {
        let ends_in_letter = stem.ends_with(|c: char| c.is_ascii_lowercase());
        ends_in_letter && !stem.contains(['-', '_'])
    });
    let disks = [stem.strip_suffix("-part"), stem.strip_suffix('p'), plain];
    let disks = disks.into_iter().flatten();
    disks.filter(move |disk| is_numbered && !disk.is_empty())
}

/// Identity and properties of a device. They change rarely and are shared by the device's samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    /// Number of the device in this series of samples.
    pub id: DeviceId,
    /// The kernel's name, such as `nvme1n1`.
    pub name: String,
    /// The name that the administrator gave it, if any: `vg-data` for `/dev/mapper/vg-data`, `data` for `/dev/md/data`.
    pub alias: Option<String>,
    /// `major:minor`.
    pub number: Option<DeviceNumber>,
    /// The kernel's sequence number of the disk (`diskseq`, Linux 5.15; partitions have that of their disk). It is
    /// unique within a boot.
    pub sequence: Option<u64>,
    /// Time at which it was first seen in this series.
    pub first_seen: SampleTime,
    /// Kind of the device.
    pub kind: DeviceKind,
    /// The level of an array, such as `raid10`.
    pub level: Option<MdLevel>,
    /// Size of the device.
    pub size: Option<Bytes>,
    /// Model name.
    pub model: Option<String>,
    /// The serial number; on EBS the volume id.
    pub serial: Option<String>,
    /// Total depth of its queues.
    pub queue_depth: Option<u32>,
    /// True if it reports itself as rotational; many virtual disks do so wrongly.
    pub rotational: Option<bool>,
    /// The devices directly below it: the members of an array, the disk of a partition.
    pub lies_on: Vec<DeviceId>,
}

impl Device {
    /// True if this is its kernel name, its alias or its serial number.
    pub fn is_called(&self, name: &str) -> bool {
        let others = [&self.alias, &self.serial];
        self.name == name
            || others
                .into_iter()
                .any(|other| other.as_deref() == Some(name))
    }

    /// The RAID level of an array; `None` for any other device, and for an array without a RAID level.
    pub fn raid_level(&self) -> Option<Level> {
        self.level.as_ref()?.raid()
    }

    /// A device with only its name known, as in a log.
    pub fn by_name(id: DeviceId, name: &str, first_seen: SampleTime) -> Device {
        Device {
            id,
            name: name.to_owned(),
            alias: None,
            number: None,
            sequence: None,
            first_seen,
            kind: DeviceKind::by_name(name),
            level: None,
            size: None,
            model: None,
            serial: None,
            queue_depth: None,
            rotational: None,
            lies_on: Vec::new(),
        }
    }
}

/// Requests of one kind in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// Requests that completed, after merging.
    pub iops: Option<PerSecond>,
    /// Bytes that they moved. Flushes move none.
    pub bytes: Option<BytesPerSecond>,
    /// Requests that were merged into others before they were issued. Not counted for flushes.
    pub merged: Option<PerSecond>,
    /// Mean latency of the completed requests, including their time in the queue: iostat's await.
    /// `None` also if no requests completed.
    pub wait: Option<Nanos>,
    /// Mean size of the completed requests. `None` also if no requests completed.
    pub size: Option<Bytes>,
}

impl Flow {
    /// True if requests are known to have completed.
    pub fn is_active(&self) -> bool {
        self.iops.is_some_and(|iops| iops.0 > 0.0)
    }
}

/// A device in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSample {
    /// The device.
    pub device: Arc<Device>,
    /// Reads.
    pub read: Flow,
    /// Writes.
    pub write: Flow,
    /// Discards (Linux 4.18).
    pub discard: Flow,
    /// Flushes (Linux 5.5); not counted on partitions.
    pub flush: Flow,
    /// Reads, writes and discards together. A log may have only these figures: `tps`, `avgrq-sz`, `await`.
    pub all: Flow,
    /// Mean number of requests in flight: iostat's aqu-sz.
    pub mean_in_flight: Option<f64>,
    /// Number of requests in flight at the end of the interval. iostat does not report it.
    pub in_flight: Option<u64>,
    /// The share of time in which any request was in flight: iostat's %util. For a device that serves requests in
    /// parallel, it does not show the spare capacity.
    pub busy: Option<Fraction>,
    /// True if a counter decreased within the interval, so that the rates are not known.
    pub reset: bool,
    /// State of the array; `None` for other devices.
    pub array: Option<ArraySample>,
    /// The vendor's statistics page; only in samples in which it was read.
    pub vendor: Option<VendorSample>,
    /// Latencies of its requests; `None` if they are not traced, and if none completed.
    pub latency: Option<Arc<LatencySample>>,
}

impl DeviceSample {
    /// A device without figures, as in the interval in which it appeared.
    pub fn unknown(device: Arc<Device>) -> DeviceSample {
        DeviceSample {
            device,
            read: Flow::default(),
            write: Flow::default(),
            discard: Flow::default(),
            flush: Flow::default(),
            all: Flow::default(),
            mean_in_flight: None,
            in_flight: None,
            busy: None,
            reset: false,
            array: None,
            vendor: None,
            latency: None,
        }
    }

    /// The requests of one kind.
    pub fn flow(&self, kind: FlowKind) -> &Flow {
        match kind {
            FlowKind::Read => &self.read,
            FlowKind::Write => &self.write,
            FlowKind::Discard => &self.discard,
            FlowKind::Flush => &self.flush,
        }
    }

    /// Fills [`all`](DeviceSample::all) from reads, writes and discards, as iostat does. Figures that none of these
    /// have stay as they are.
    pub fn sum_up(&mut self) {
        let parts = [&self.read, &self.write, &self.discard];
        let known = |of: fn(&Flow) -> Option<f64>| {
            let values: Vec<f64> = parts.iter().filter_map(|flow| of(flow)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>())
        };
        let iops = known(|flow| flow.iops.map(|iops| iops.0));
        let bytes = known(|flow| flow.bytes.map(|bytes| bytes.0));
        let merged = known(|flow| flow.merged.map(|merged| merged.0));
        let waited = known(|flow| Some(flow.iops?.0 * flow.wait?.0 as f64));
        let active = iops.filter(|iops| *iops > 0.0);
        self.all = Flow {
            iops: iops.map(PerSecond).or(self.all.iops),
            bytes: bytes.map(BytesPerSecond).or(self.all.bytes),
            merged: merged.map(PerSecond).or(self.all.merged),
            wait: active
                .zip(waited)
                .map(|(iops, waited)| Nanos((waited / iops).round() as u64))
                .or(self.all.wait),
            size: active
                .zip(bytes)
                .map(|(iops, bytes)| Bytes((bytes / iops).round() as u64))
                .or(self.all.size),
        };
    }
}
