//! A rule: its settings, data shown to it, and sightings that it answers with.

use record::sample::{DeviceKind, DeviceSample, Moment, Sample};
use record::{Nanos, Severity, Subject};

use super::history::History;

/// Settings that a person may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A device with requests in flight of which none completes for so long has stalled.
    pub stall: Nanos,
    /// The devices that are requested; none means all.
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

/// Sighting of a rule at a moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sighting {
    pub(super) subject: Subject,
    pub(super) name: String,
    pub(super) severity: Severity,
    /// Start of the cause.
    pub(super) began: Moment,
    pub(super) text: String,
    pub(super) advice: &'static str,
    pub(super) figures: Vec<(&'static str, f64)>,
}

impl Sighting {
    /// Something about a device.
    pub(super) fn of(device: &DeviceSample, severity: Severity, began: Moment) -> Sighting {
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

/// Data shown to a rule.
pub(super) struct Now<'a> {
    pub(super) sample: &'a Sample,
    pub(super) history: &'a History,
    pub(super) disks: Vec<&'a DeviceSample>,
}

impl<'a> Now<'a> {
    /// The devices that do the work.
    pub(super) fn disks(&self) -> impl Iterator<Item = &'a DeviceSample> {
        self.disks.iter().copied()
    }
}

/// The devices that do the work: the disks, or, where none is in view, what lies on no other that is: in a
/// log of an array alone, and where only loop devices are in use. (An old log does not tell what
/// lies on what, and its arrays do the same work as its disks.)
pub(super) fn disks<'a>(sample: &'a Sample, names: &[String]) -> Vec<&'a DeviceSample> {
    let is_disk = |device: &DeviceSample| device.device.kind == DeviceKind::Disk;
    let all = || sample.devices.iter();
    let wanted = sample.wanted(names);
    let is_wanted = |device: &DeviceSample| wanted.contains(&device.device.id);
    if !wanted.is_empty() && !all().any(|device| is_disk(device) && is_wanted(device)) {
        return lowest(sample, &is_wanted);
    }
    if all().any(is_disk) {
        return all().filter(|device| is_disk(device)).collect();
    }
    lowest(sample, &|_| true)
}

/// Devices in view that lie on nothing else, partitions aside.
fn lowest<'a>(
    sample: &'a Sample,
    is_seen: &dyn Fn(&DeviceSample) -> bool,
) -> Vec<&'a DeviceSample> {
    let lies_on_none = |device: &&DeviceSample| {
        device.device.kind != DeviceKind::Partition && sample.below(&device.device).next().is_none()
    };
    let seen = sample.devices.iter().filter(|device| is_seen(device));
    seen.filter(lies_on_none).collect()
}

/// One kind of event and how it is seen.
pub(super) trait Rule {
    /// Time for which its cause may be out of sight before the event ends.
    fn linger(&self) -> Nanos {
        Nanos::from_secs(10)
    }

    /// True if it looks at every sample, and not only once a second.
    fn is_instant(&self) -> bool {
        false
    }

    /// Sightings at this moment.
    fn look(&mut self, now: &Now<'_>, seen: &mut Vec<Sighting>);

    /// Forgets what it remembers: what comes next does not follow it.
    fn forget(&mut self) {}
}
