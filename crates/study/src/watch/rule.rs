//! A rule: its settings, its input, and the sightings that it returns.

use std::collections::HashSet;

use record::sample::{DeviceId, DeviceKind, DeviceSample, Sample, SampleTime};
use record::{Nanos, Severity, Subject};

use super::history::DeviceHistory;

/// Settings of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Time without completions after which a device with requests in flight has stalled.
    pub stall: Nanos,
    /// The requested devices; empty for all.
    pub names: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            stall: Nanos::from_secs(2),
            names: Vec::new(),
        }
    }
}

/// A rule's sighting at a moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sighting {
    pub(super) subject: Subject,
    pub(super) name: String,
    pub(super) severity: Severity,
    /// Start of the cause.
    pub(super) began: SampleTime,
    pub(super) text: String,
    pub(super) advice: &'static str,
    pub(super) figures: Vec<(&'static str, f64)>,
}

impl Sighting {
    /// A sighting on a device.
    pub(super) fn of(device: &DeviceSample, severity: Severity, began: SampleTime) -> Sighting {
        Sighting {
            subject: Subject::Device(device.device.id),
            name: device.device.name.clone(),
            severity,
            began,
            text: String::new(),
            advice: "",
            figures: Vec::new(),
        }
    }
}

/// Input of a rule.
pub(super) struct RuleInput<'a> {
    pub(super) sample: &'a Sample,
    pub(super) history: &'a DeviceHistory,
    pub(super) devices: Devices<'a>,
}

impl<'a> RuleInput<'a> {
    /// The devices that do the work.
    pub(super) fn disks(&self) -> impl Iterator<Item = &'a DeviceSample> {
        self.devices.disks.iter().copied()
    }
}

/// The devices of a sample that are judged.
pub(super) struct Devices<'a> {
    /// Devices that do the work: the disks, or, if no disk is in view, the devices that lie on no other device in
    /// view, as in a log of an array alone, or with loop devices only.
    pub(super) disks: Vec<&'a DeviceSample>,
    /// Arrays and volumes of a log beside its disks, and partitions whose disk it lacks. The log does not show what
    /// they lie on: the disks, whose work they duplicate, or something that it does not list.
    unplaced: Vec<&'a DeviceSample>,
    /// The requested devices; empty for all.
    wanted: HashSet<DeviceId>,
}

impl<'a> Devices<'a> {
    /// The devices of a sample that are judged. `names`: the requested devices; empty for all.
    pub(super) fn of(sample: &'a Sample, names: &[String]) -> Devices<'a> {
        let wanted = sample.wanted(names);
        let all = || sample.devices.iter();
        let is_disk = |device: &&DeviceSample| device.device.kind == DeviceKind::Disk;
        let is_wanted = |device: &&DeviceSample| is_wanted(&wanted, device);
        let lies_on_none = |device: &&DeviceSample| sample.below(&device.device).next().is_none();
        let may_lie_on_disks = |device: &&DeviceSample| {
            let kinds = [DeviceKind::Partition, DeviceKind::Array, DeviceKind::Mapper];
            kinds.contains(&device.device.kind)
        };
        let (disks, unplaced) = if all().any(|device| is_disk(&device) && is_wanted(&device)) {
            let unplaced = all().filter(may_lie_on_disks).filter(lies_on_none);
            (all().filter(is_disk).collect(), unplaced.collect())
        } else {
            let seen = all().filter(is_wanted).filter(lies_on_none);
            (seen.collect(), Vec::new())
        };
        Devices {
            disks,
            unplaced,
            wanted,
        }
    }

    /// The devices for which `is` holds now, without those for which it may only hold because it holds for a device
    /// below.
    pub(super) fn causes(&self, is: impl Fn(&DeviceSample) -> bool) -> Vec<&'a DeviceSample> {
        let all = self.disks.iter().chain(&self.unplaced).copied();
        let mut seen: Vec<&DeviceSample> = all.filter(|device| is(device)).collect();
        let wanted = seen.iter().filter(|device| is_wanted(&self.wanted, device));
        let heights = wanted.map(|device| height(device));
        if let Some(lowest) = heights.min() {
            seen.retain(|device| height(device) <= lowest);
        }
        seen
    }
}

/// True if a device is requested, or all are.
fn is_wanted(wanted: &HashSet<DeviceId>, device: &DeviceSample) -> bool {
    wanted.is_empty() || wanted.contains(&device.device.id)
}

/// Position of a device in a stack of which only the names are known.
fn height(device: &DeviceSample) -> u8 {
    match device.device.kind {
        DeviceKind::Disk | DeviceKind::Partition => 0,
        DeviceKind::Array => 1,
        DeviceKind::Mapper => 2,
        DeviceKind::Loop | DeviceKind::Memory => 3,
    }
}

/// The rule for a kind of event.
pub(super) trait Rule {
    /// Time for which its cause may be absent before the event ends.
    fn grace_period(&self) -> Nanos {
        Nanos::from_secs(10)
    }

    /// True if it observes every sample, and not only once a second.
    fn is_instant(&self) -> bool {
        false
    }

    /// Sightings at this moment.
    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>);

    /// Drops earlier samples, since the next one does not follow them.
    fn forget(&mut self) {}
}
