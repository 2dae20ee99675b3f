//! Which devices are shown.

use std::collections::HashSet;
use std::path::Path;

use linux::Root;
use linux::block::Devices;
use record::sample::{DeviceId, DeviceKind, DeviceSample, Sample};
use record::{Event, Subject};

use crate::failure::{Failure, Standing as _};

/// The devices that a person wants to see.
pub(super) struct Filter {
    /// By the kernel's names; empty means all.
    names: Vec<String>,
    /// Also partitions and what does nothing.
    all: bool,
}

impl Filter {
    /// The devices that these words name.
    ///
    /// # Errors
    /// When a word names no device of now.
    pub(super) fn new(words: &[String], all: bool, root: &Root) -> Result<Filter, Failure> {
        let names = if words.is_empty() {
            Vec::new()
        } else {
            let devices = Devices::read(root).refused()?;
            let name = |word: &String| name_of(word, &devices, root);
            words.iter().map(name).collect::<Result<_, _>>()?
        };
        Ok(Filter { names, all })
    }

    /// The devices of a log, whose names nobody can look up any more.
    pub(super) fn of_names(names: Vec<String>, all: bool) -> Filter {
        Filter { names, all }
    }

    /// Leaves in a sample what is wanted.
    pub(super) fn cut(&self, sample: &mut Sample) {
        if self.names.is_empty() {
            let is_part = |device: &DeviceSample| device.device.kind == DeviceKind::Partition;
            sample
                .devices
                .retain(|device| self.all || (!is_part(device) && is_active(device)));
        } else {
            let wanted = self.wanted(sample);
            sample
                .devices
                .retain(|device| wanted.contains(&device.device.id));
        }
    }

    /// Whether an event is about a device that is wanted, or about the host.
    pub(super) fn wants_event(&self, event: &Event, sample: &Sample) -> bool {
        match event.subject {
            Subject::Host => true,
            Subject::Device(_) if self.names.is_empty() => true,
            Subject::Device(id) => {
                self.names.contains(&event.name) || self.wanted(sample).contains(&id)
            }
        }
    }

    /// The devices that are named, and all that these lie on.
    fn wanted(&self, sample: &Sample) -> HashSet<DeviceId> {
        let is_named = |device: &&DeviceSample| self.names.contains(&device.device.name);
        let mut todo: Vec<&DeviceSample> = sample.devices.iter().filter(is_named).collect();
        let mut wanted = HashSet::new();
        while let Some(device) = todo.pop() {
            if wanted.insert(device.device.id) {
                todo.extend(sample.below(&device.device));
            }
        }
        wanted
    }
}

/// Whether a device does something, or is an array that does.
fn is_active(device: &DeviceSample) -> bool {
    let state = device.array.as_ref();
    let works = state.and_then(|state| state.action);
    device.all.is_active()
        || device.flush.is_active()
        || device.in_flight.is_some_and(|count| count > 0)
        || device.mean_in_flight.is_some_and(|count| count > 0.0)
        || works.is_some_and(|action| action.is_work())
}

fn name_of(word: &str, devices: &Devices, root: &Root) -> Result<String, Failure> {
    let found = if word.starts_with('/') {
        devices.at_path(root, Path::new(word))
    } else {
        devices
            .named(word)
            .or_else(|| linux::md::find(root, devices, word))
    };
    found.map(|device| device.name.clone()).ok_or_else(|| {
        Failure::refused(format!(
            "{word} is not a block device that the kernel lists; disksmith devices lists them"
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use record::sample::{Device, Moment, PerSecond};

    use super::*;

    fn sample() -> Sample {
        let device = |id: u32, name: &str, below: &[u32], iops: f64| {
            let mut device = Device::by_name(DeviceId(id), name, Moment::default());
            device.lies_on = below.iter().map(|id| DeviceId(*id)).collect();
            let mut sample = DeviceSample::unknown(Arc::new(device));
            sample.all.iops = Some(PerSecond(iops));
            sample
        };
        Sample {
            devices: vec![
                device(0, "md0", &[1, 2], 5.0),
                device(1, "vdb", &[], 5.0),
                device(2, "vdc1", &[3], 0.0),
                device(3, "vdc", &[], 0.0),
                device(4, "vdd", &[], 1.0),
            ],
            ..Sample::default()
        }
    }

    fn names(filter: &Filter) -> Vec<String> {
        let mut sample = sample();
        filter.cut(&mut sample);
        let names = sample.devices.iter().map(|one| one.device.name.clone());
        names.collect()
    }

    fn filter(names: &[&str], all: bool) -> Filter {
        Filter {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            all,
        }
    }

    #[test]
    fn an_array_is_shown_with_what_it_lies_on() {
        assert_eq!(
            names(&filter(&["md0"], false)),
            ["md0", "vdb", "vdc1", "vdc"]
        );
        assert_eq!(names(&filter(&["vdd"], false)), ["vdd"]);
    }

    #[test]
    fn what_does_nothing_is_shown_when_asked_for() {
        assert_eq!(names(&filter(&[], false)), ["md0", "vdb", "vdd"]);
        assert_eq!(names(&filter(&[], true)).len(), 5);
    }

    #[test]
    fn a_word_that_names_no_device_is_refused() {
        let words = ["no-such-disk".to_owned()];
        assert!(Filter::new(&words, false, &Root::host()).is_err());
    }
}
