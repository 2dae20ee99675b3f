//! The disks of a host in one interval, from any source: the kernel's counters, a recording, or an old log of iostat.
//!
//! Values that a source may lack are optional. `None` means "not known"; a rate of zero means that nothing
//! happened.

mod array;
mod device;
mod device_id;
mod flow_kind;
mod host;
mod latency;
mod quantity;
mod recorded;
mod vendor;

pub use array::{ArraySample, Member, Progress, SyncAction};
pub use device::{
    Device, DeviceKind, DeviceNumber, DeviceSample, Flow, ParseDeviceNumberError,
    disks_of_partition,
};
pub use device_id::DeviceId;
pub use flow_kind::FlowKind;
pub use host::{
    CpuShares, GroupLimit, HostSample, InterfaceSample, KernelError, KernelErrorKind, LimitKind,
    Load, Memory, NetFlow, Pressure, PressureLine,
};
pub use latency::{Latencies, LatencySample, ProcessSample, TracingSample};
pub use quantity::{BytesPerSecond, Fraction, PerSecond};
pub use recorded::{RecordedInterval, Spread};
pub use vendor::{LatencyBin, TimeOverLimits, VendorPage, VendorSample};

use std::collections::HashSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Nanos;

/// A point in time, by two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleTime {
    /// The time of day, which may be set forward or back. `None` in a log without timestamps.
    pub wall: Option<Timestamp>,
    /// Time since the first reading of this watch, log or recording. It never goes back, and
    /// includes the time in which the machine slept.
    pub elapsed: Nanos,
}

impl SampleTime {
    /// The time earlier by `span`, but not before the first reading.
    #[must_use]
    pub fn before(self, span: Nanos) -> SampleTime {
        let signed = SignedDuration::from_nanos(i64::try_from(span.0).unwrap_or(i64::MAX));
        SampleTime {
            wall: self.wall.and_then(|wall| wall.checked_sub(signed).ok()),
            elapsed: self.elapsed - span,
        }
    }
}

/// Reason for a gap between a sample and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// Time in which the machine was suspended, by the difference of the boot-time clock and the monotonic clock
    /// (clock_gettime(2)).
    Suspended(Nanos),
    /// Amount by which the time of day was set forward.
    SetForward(Nanos),
    /// Amount by which the time of day was set back.
    SetBack(Nanos),
    /// Time in which nothing was recorded: the watch was stopped, or lines of a log are missing.
    Unseen(Nanos),
}

/// Source of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// The kernel's live counters.
    #[default]
    Live,
    /// A recording that disksmith made.
    Recorded,
    /// Text of `iostat`.
    IostatText,
    /// JSON of `iostat -o JSON`.
    IostatJson,
    /// Text of `sar -d`.
    Sar,
    /// Text or JSON of `sadf`.
    Sadf,
    /// Text of `vmstat -d`.
    Vmstat,
    /// Counters of node_exporter, in an answer of Prometheus.
    Prometheus,
}

/// Properties of a series of samples as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleSource {
    /// Source of the samples.
    pub kind: SourceKind,
    /// The host's name.
    pub hostname: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Number of processors of the host.
    pub cpus: Option<u32>,
}

/// A host's disks in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// End of the interval.
    pub at: SampleTime,
    /// Length of the interval, without time in which the machine was suspended. Rates are over this length.
    pub length: Nanos,
    /// Gap between this interval and the previous one; `None` if they are adjacent.
    pub gap: Option<Gap>,
    /// The host's own figures.
    pub host: HostSample,
    /// The devices, each once, sorted by name with numbers by value.
    pub devices: Vec<DeviceSample>,
    /// The devices that have disappeared since the previous interval; only in live samples.
    pub removed: Vec<Arc<Device>>,
}

impl Sample {
    /// The sample of a device.
    pub fn device(&self, id: DeviceId) -> Option<&DeviceSample> {
        self.devices.iter().find(|sample| sample.device.id == id)
    }

    /// The sample of a device that is probably at index `nth`, where another sample has it: with thousands of devices,
    /// a linear search for each takes long.
    pub fn near(&self, nth: usize, id: DeviceId) -> Option<&DeviceSample> {
        let there = self.devices.get(nth);
        there
            .filter(|sample| sample.device.id == id)
            .or_else(|| self.device(id))
    }

    /// The sample of the device with this name.
    pub fn named(&self, name: &str) -> Option<&DeviceSample> {
        self.devices
            .iter()
            .find(|sample| sample.device.name == name)
    }

    /// The devices with one of these names, and all devices below them.
    pub fn wanted(&self, names: &[String]) -> HashSet<DeviceId> {
        let is_named =
            |sample: &&DeviceSample| names.iter().any(|name| sample.device.is_called(name));
        let mut todo: Vec<&DeviceSample> = self.devices.iter().filter(is_named).collect();
        let mut wanted = HashSet::new();
        while let Some(sample) = todo.pop() {
            if wanted.insert(sample.device.id) {
                todo.extend(self.below(&sample.device));
            }
        }
        wanted
    }

    /// The devices directly below a device: an array's members, a partition's disk.
    pub fn below<'a>(&'a self, device: &'a Device) -> impl Iterator<Item = &'a DeviceSample> {
        device.lies_on.iter().filter_map(|id| self.device(*id))
    }

    /// The devices directly above a device: its partitions, the arrays of which it is a member.
    pub fn above(&self, id: DeviceId) -> impl Iterator<Item = &DeviceSample> {
        self.devices
            .iter()
            .filter(move |sample| sample.device.lies_on.contains(&id))
    }

    /// The devices at the top of the tree: those with no device above them, apart from partitions. If no tree is known,
    /// as in a log, all devices except partitions.
    pub fn tops(&self) -> impl Iterator<Item = &DeviceSample> {
        self.devices.iter().filter(|sample| {
            let of = |above: &DeviceSample| above.device.kind != DeviceKind::Partition;
            sample.device.kind != DeviceKind::Partition && !self.above(sample.device.id).any(of)
        })
    }
}

#[cfg(test)]
mod tests;
