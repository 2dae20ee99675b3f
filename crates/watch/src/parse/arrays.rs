//! Arrays of a log, whose members the user names, since a log does not have them.

use std::sync::Arc;

use record::raid::MdLevel;
use record::sample::{Device, DeviceId, DeviceKind, DeviceSample, Sample, SampleTime};

use crate::log_array::LogArray;

/// The named arrays, which are added to the samples of a log.
pub(super) struct Arrays(Vec<NamedArray>);

struct NamedArray {
    array: LogArray,
    /// Id of the array, if the log does not show the array itself.
    own: DeviceId,
    /// The array's device as last created, with its id.
    made: Option<(DeviceId, Arc<Device>)>,
    /// The device as the log shows it; `None` if it does not.
    shown: Option<Arc<Device>>,
}

impl Arrays {
    /// Arrays, each after those that it lies on.
    pub(super) fn new(arrays: Vec<LogArray>) -> Arrays {
        // A log numbers its devices from zero on.
        let numbers = (0..=u32::MAX).rev().map(DeviceId);
        let named = arrays
            .into_iter()
            .zip(numbers)
            .map(|(array, own)| NamedArray {
                array,
                own,
                made: None,
                shown: None,
            });
        Arrays(named.collect())
    }

    /// Adds the arrays to a sample, with those of their members that the sample has.
    pub(super) fn add_arrays(&mut self, sample: &mut Sample) {
        for named in &mut self.0 {
            named.add_arrays(sample);
        }
    }
}

impl NamedArray {
    fn add_arrays(&mut self, sample: &mut Sample) {
        let members = self.array.members.iter();
        let lies_on: Vec<DeviceId> = members
            .filter_map(|name| Some(sample.named(name)?.device.id))
            .collect();
        let name = &self.array.name;
        let shown = sample
            .devices
            .iter()
            .position(|one| one.device.name == *name);
        if let Some(at) = shown {
            self.shown = Some(Arc::clone(&sample.devices[at].device));
        }
        let id = self.shown.as_ref().map_or(self.own, |device| device.id);
        let device = match self.made.take() {
            Some((made_of, device)) if made_of == id && device.lies_on == lies_on => device,
            _ => Arc::new(self.device(id, sample.at, lies_on)),
        };
        self.made = Some((id, Arc::clone(&device)));
        match shown {
            Some(at) => sample.devices[at].device = device,
            // Its figures are unknown: the log does not show which members' requests belong to one request of the
            // array.
            None => sample.devices.push(DeviceSample::unknown(device)),
        }
    }

    fn device(&self, id: DeviceId, at: SampleTime, lies_on: Vec<DeviceId>) -> Device {
        let first_seen = self.shown.as_ref().map_or(at, |shown| shown.first_seen);
        Device {
            kind: DeviceKind::Array,
            level: self.array.level.map(MdLevel::from),
            lies_on,
            ..Device::by_name(id, &self.array.name, first_seen)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(names: &[&str]) -> Sample {
        let device = |(id, name): (u32, &&str)| {
            let device = Device::by_name(DeviceId(id), name, SampleTime::default());
            DeviceSample::unknown(Arc::new(device))
        };
        Sample {
            devices: (0..).zip(names).map(device).collect(),
            ..Sample::default()
        }
    }

    #[test]
    fn an_array_lies_on_the_members_that_are_there() {
        let array: LogArray = "md0:raid10=sda,sdb,sdc".parse().unwrap();
        let mut arrays = Arrays::new(vec![array]);
        let mut below = |names: &[&str]| {
            let mut sample = sample(names);
            arrays.add_arrays(&mut sample);
            let array = Arc::clone(&sample.named("md0").unwrap().device);
            assert_eq!(
                (array.kind, array.level.as_ref().map(MdLevel::name)),
                (DeviceKind::Array, Some("raid10"))
            );
            let below = sample.below(&array).map(|one| one.device.name.clone());
            let below: Vec<String> = below.collect();
            (array, below)
        };
        let (first, members) = below(&["sda", "sdb", "sdc"]);
        assert_eq!(members, ["sda", "sdb", "sdc"]);
        let (again, _) = below(&["sda", "sdb", "sdc"]);
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(below(&["sda", "sdb"]).1, ["sda", "sdb"]);
        let (shown, members) = below(&["sda", "sdb", "sdc", "md0"]);
        assert_eq!((shown.id, members.len()), (DeviceId(3), 3));
        assert_ne!(first.id, shown.id);
        assert_eq!(below(&["sda", "sdb", "sdc"]).0.id, shown.id);
    }
}
