//! `removed`: a device that was watched no longer exists.

use std::collections::HashMap;

use record::sample::{Device, DeviceId, DeviceKind, DeviceSample, Sample, SampleTime};
use record::{Nanos, Severity, Subject};

use crate::watch::format::digits;
use crate::watch::rule::{Rule, RuleInput, Sighting};

/// Maximum duration of the event, if no device of the name appears again.
const MAX_EVENT_TIME: Nanos = Nanos::from_secs(600);

const ADVICE: &str = "Requests in flight have failed, and devices on top of it lack a member. If it was not removed on \
                      purpose, check the kernel's log and the volume's status.";

/// Last sample of a device.
#[derive(Clone, Debug, Default)]
struct LastActivity {
    iops: f64,
    in_flight: u64,
    /// Devices that lay on it, without partitions.
    above: Vec<String>,
}

/// A device that is gone.
struct RemovedDevice {
    name: String,
    at: SampleTime,
    sighting: Sighting,
}

/// Rule for devices that are gone.
pub(super) struct Removed {
    /// The requested devices.
    names: Vec<String>,
    last: HashMap<DeviceId, LastActivity>,
    gone: Vec<RemovedDevice>,
}

impl Removed {
    pub(super) fn new(names: Vec<String>) -> Removed {
        Removed {
            names,
            last: HashMap::new(),
            gone: Vec::new(),
        }
    }

    /// True if the removal of a device is reported. Loop devices, volumes and partitions are removed in normal use.
    fn is_reported(&self, device: &Device) -> bool {
        let is_asked_for = self.names.iter().any(|name| device.is_called(name));
        let is_own = matches!(device.kind, DeviceKind::Disk | DeviceKind::Array);
        is_asked_for || is_own || self.last.contains_key(&device.id)
    }

    fn sighting(&self, device: &Device, at: SampleTime) -> Sighting {
        let last = self.last.get(&device.id).cloned().unwrap_or_default();
        let is_asked_for = self.names.iter().any(|name| device.is_called(name));
        let was_used = last.iops > 0.0 || last.in_flight > 0 || !last.above.is_empty();
        let mut text = format!("{} was removed.", device.name);
        if last.iops > 0.0 || last.in_flight > 0 {
            text.push_str(&format!(
                " It last completed {} requests a second, with {} in flight.",
                digits(last.iops),
                last.in_flight
            ));
        }
        if !last.above.is_empty() {
            text.push_str(&format!(" It carried {}.", last.above.join(", ")));
        }
        Sighting {
            subject: Subject::Device(device.id),
            name: device.name.clone(),
            severity: if was_used || is_asked_for {
                Severity::Warn
            } else {
                Severity::Note
            },
            began: at,
            text,
            advice: ADVICE,
            figures: Vec::new(),
        }
    }
}

impl Rule for Removed {
    fn grace_period(&self) -> Nanos {
        Nanos(0)
    }

    fn is_instant(&self) -> bool {
        true
    }

    fn forget(&mut self) {
        self.last.clear();
    }

    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        let sample = now.sample;
        for device in &sample.removed {
            if self.is_reported(device) {
                // Another device may take its place at once.
                seen.push(self.sighting(device, sample.at));
                self.gone.push(RemovedDevice {
                    name: device.name.clone(),
                    at: sample.at,
                    sighting: self.sighting(device, sample.at),
                });
            }
        }
        self.gone.retain(|gone| {
            let is_old = sample.at.elapsed - gone.at.elapsed > MAX_EVENT_TIME;
            !is_old && sample.named(&gone.name).is_none()
        });
        seen.extend(self.gone.iter().map(|gone| gone.sighting.clone()));
        let disks = now
            .disks()
            .map(|device| (device.device.id, last(device, sample)));
        self.last = disks.collect();
    }
}

fn last(device: &DeviceSample, sample: &Sample) -> LastActivity {
    let iops = [&device.all, &device.flush];
    let above = sample.above(device.device.id);
    let above = above.filter(|one| one.device.kind != DeviceKind::Partition);
    LastActivity {
        iops: iops
            .iter()
            .filter_map(|flow| flow.iops)
            .map(|iops| iops.0)
            .sum(),
        in_flight: device.in_flight.unwrap_or(0),
        above: above.map(|one| one.device.name.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use record::sample::PerSecond;

    use super::*;
    use crate::watch::EventCode;
    use crate::watch::{ChangeKind, EventChange, Settings, Watch};

    fn device(id: u32, name: &str, kind: DeviceKind, on: &[u32]) -> Arc<Device> {
        let mut device = Device::by_name(DeviceId(id), name, SampleTime::default());
        device.kind = kind;
        device.lies_on = on.iter().map(|id| DeviceId(*id)).collect();
        Arc::new(device)
    }

    /// Findings while the given devices exist, step by step.
    fn found(names: &[&str], steps: &[&[&Arc<Device>]]) -> Vec<EventChange> {
        let mut watch = Watch::new(Settings {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Settings::default()
        });
        let mut changes = Vec::new();
        let mut before: Vec<Arc<Device>> = Vec::new();
        for (second, there) in (1..).zip(steps) {
            let is_gone = |one: &&Arc<Device>| !there.iter().any(|other| other.id == one.id);
            let removed = before.iter().filter(is_gone).cloned().collect();
            before = there.iter().map(|one| Arc::clone(one)).collect();
            let sample = |one: &Arc<Device>| {
                let mut sample = DeviceSample::unknown(Arc::clone(one));
                sample.read.iops = Some(PerSecond(120.0));
                sample.in_flight = Some(4);
                sample.sum_up();
                sample
            };
            changes.extend(watch.observe(&Sample {
                at: SampleTime {
                    wall: None,
                    elapsed: Nanos::from_secs(second),
                },
                length: Nanos::from_secs(1),
                devices: before.iter().map(sample).collect(),
                removed,
                ..Sample::default()
            }));
        }
        changes.retain(|change| change.event.code == EventCode::Removed);
        changes
    }

    #[test]
    fn a_disk_that_is_gone_is_named_until_it_is_back() {
        let sda = device(0, "sda", DeviceKind::Disk, &[]);
        let sdb = device(1, "sdb", DeviceKind::Disk, &[]);
        let md0 = device(2, "md0", DeviceKind::Array, &[0, 1]);
        let again = device(3, "sdb", DeviceKind::Disk, &[]);
        let changes = found(
            &[],
            &[
                &[&sda, &sdb, &md0],
                &[&sda, &md0],
                &[&sda, &md0],
                &[&sda, &again, &md0],
                &[&sda, &again, &md0],
            ],
        );
        let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.kind).collect();
        assert_eq!(kinds, [ChangeKind::Opened, ChangeKind::Closed]);
        let event = &changes[0].event;
        assert_eq!(
            (event.name.as_str(), event.severity),
            ("sdb", Severity::Warn)
        );
        for part in ["120 requests a second", "4 in flight", "md0"] {
            assert!(event.text.contains(part), "{}", event.text);
        }
    }

    #[test]
    fn loop_devices_and_volumes_come_and_go_unless_they_are_watched() {
        let sda = device(0, "sda", DeviceKind::Disk, &[]);
        for (kind, name) in [
            (DeviceKind::Loop, "loop3"),
            (DeviceKind::Mapper, "dm-3"),
            (DeviceKind::Partition, "sda1"),
        ] {
            let one = device(1, name, kind, &[]);
            let steps: [&[&Arc<Device>]; 3] = [&[&sda, &one], &[&sda], &[&sda]];
            assert!(found(&[], &steps).is_empty(), "{name}");
            assert_eq!(found(&[name], &steps).len(), 1, "{name}");
        }
        // If no other device is in view, they are reported.
        let one = device(1, "loop3", DeviceKind::Loop, &[]);
        assert_eq!(found(&[], &[&[&one], &[], &[]]).len(), 1);
    }
}
