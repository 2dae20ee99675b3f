//! Selection of the devices and events that are shown.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

use linux::Root;
use linux::block::{BlockDeviceKind, Device, Devices};
use linux::diskstats::AllCounters;
use linux::volume_id::{VolumeId, name_disk};
use record::Subject;
use record::sample::{DeviceKind, DeviceSample, Sample};
use study::watch::WatchEvent;
use study::watch::{ChangeKind, EventChange};

use ui::exit::{ExitClass as _, Failure};

/// Filter of devices and events.
pub(super) struct Filter {
    /// Names of the devices, from the kernel or the administrator; empty for all.
    names: Vec<String>,
    /// True if partitions and idle devices are shown too.
    all: bool,
    /// Ids of open events that are shown.
    shown: HashSet<u64>,
}

impl Filter {
    /// A filter for the devices that these words name.
    ///
    /// # Errors
    /// When a word names no device that exists now.
    pub(super) fn new(words: &[String], all: bool, root: &Root) -> Result<Filter, Failure> {
        let names = if words.is_empty() {
            Vec::new()
        } else {
            let devices = Devices::read(root).refused()?;
            let name = |word: &String| {
                let mut word = OsString::from(word);
                name_disk(&mut word, root).refused()?;
                name_of(&word.to_string_lossy(), &devices, root)
            };
            words.iter().map(name).collect::<Result<_, _>>()?
        };
        Ok(Filter::of_names(names, all))
    }

    /// A filter for devices of a log or a recording, which these words name by path, name or volume id. The disks need
    /// not be on this host.
    pub(super) fn of_arguments(words: &[String], all: bool) -> Filter {
        let name = |word: &String| match VolumeId::parse(word) {
            Some(volume) => volume.serial(),
            None => name_in_path(word),
        };
        Filter::of_names(words.iter().map(name).collect(), all)
    }

    /// A filter for the devices with these names.
    pub(super) fn of_names(names: Vec<String>, all: bool) -> Filter {
        Filter {
            names,
            all,
            shown: HashSet::new(),
        }
    }

    /// The names of the selected devices; empty for all.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Removes the devices that are not selected from a sample. Returns the number of devices, without partitions, that
    /// were removed because they are idle.
    pub(super) fn remove_others(&self, sample: &mut Sample) -> usize {
        if !self.names.is_empty() {
            let wanted = sample.wanted(&self.names);
            sample
                .devices
                .retain(|device| wanted.contains(&device.device.id));
            return 0;
        }
        if self.all {
            return 0;
        }
        sample
            .devices
            .retain(|device| device.device.kind != DeviceKind::Partition);
        let before = sample.devices.len();
        sample.devices.retain(is_active);
        before - sample.devices.len()
    }

    /// True if an event is about a selected device, or about the host.
    pub(super) fn wants_event(&self, event: &WatchEvent, sample: &Sample) -> bool {
        match event.subject {
            Subject::Host => true,
            Subject::Device(_) if self.names.is_empty() => true,
            Subject::Device(id) => {
                self.names.contains(&event.name) || sample.wanted(&self.names).contains(&id)
            }
        }
    }

    /// True if a change of an event is shown. The end of an event whose start was shown is shown too, even if its
    /// device is no longer in the sample.
    pub(super) fn wants_change(&mut self, change: &EventChange, sample: &Sample) -> bool {
        let id = change.event.id;
        let wanted = self.shown.contains(&id) || self.wants_event(&change.event, sample);
        if matches!(change.kind, ChangeKind::Closed | ChangeKind::Unfinished) {
            self.shown.remove(&id);
        } else if wanted {
            self.shown.insert(id);
        }
        wanted
    }
}

/// True if a device has I/O, or is an array with a sync action.
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
    let mapped = |device: &&Device| {
        let name = match &device.kind {
            BlockDeviceKind::Mapper { name, .. } => name.as_deref(),
            _ => None,
        };
        name == Some(word)
    };
    let found = if word.starts_with('/') {
        devices.at_path(root, Path::new(word))
    } else {
        devices
            .named(word)
            .or_else(|| linux::md::find(root, devices, word))
            .or_else(|| devices.iter().find(mapped))
    };
    let found = found.map(|device| device.name.clone());
    found.or_else(|| counted(word, root)).ok_or_else(|| {
        Failure::refused(format!(
            "{word} is not a block device that the kernel lists; disksmith devices lists them"
        ))
    })
}

/// The name of a device in the kernel's counters, for a container that hides sysfs.
fn counted(word: &str, root: &Root) -> Option<String> {
    let name = word.strip_prefix("/dev/").unwrap_or(word);
    let mut counters = AllCounters::open(root).ok()?;
    let mut lines = counters.read().ok()?;
    lines.any(|line| line.name == name).then(|| name.to_owned())
}

/// The name of a device in a log or a recording, from a word that may be its path. A link names the disk to which it
/// leads on this host; a link that does not exist here is a name that iostat and sar print with `-j`.
pub(crate) fn name_in_path(word: &str) -> String {
    let given = |folder: &str| word.strip_prefix(folder);
    if let Some(name) = given("/dev/mapper/").or_else(|| given("/dev/md/")) {
        return name.to_owned();
    }
    // The name on the log's host counts, also where this host has a link with that name (EC2: /dev/xvdf leads to
    // nvme1n1).
    if let Some(name) = given("/dev/").filter(|name| !name.contains('/')) {
        return name.to_owned();
    }
    let resolved = match word.starts_with(['/', '.']) {
        true => std::fs::canonicalize(word).ok(),
        false => None,
    };
    let path = resolved.as_deref().and_then(Path::to_str).unwrap_or(word);
    let name = path.strip_prefix("/dev/").unwrap_or(path);
    match name.strip_prefix("disk/by-") {
        Some(link) => link.split_once('/').map_or(name, |(_, name)| name),
        None => name,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use record::Severity;
    use record::sample::{Device, DeviceId, PerSecond, SampleTime};
    use study::watch::EventCode;

    use super::*;

    fn sample() -> Sample {
        let device = |id: u32, name: &str, below: &[u32], iops: f64| {
            let mut device = Device::by_name(DeviceId(id), name, SampleTime::default());
            device.lies_on = below.iter().map(|id| DeviceId(*id)).collect();
            if name == "vdc1" {
                device.kind = DeviceKind::Partition;
            }
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
        filter.remove_others(&mut sample);
        let names = sample.devices.iter().map(|one| one.device.name.clone());
        names.collect()
    }

    fn filter(names: &[&str], all: bool) -> Filter {
        let names = names.iter().map(|name| (*name).to_owned());
        Filter::of_names(names.collect(), all)
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
    fn recorded_devices_are_named_as_by_paths_and_on_the_screen() {
        for word in [
            "data",
            "/dev/md/data",
            "/dev/mapper/data",
            "md0",
            "/dev/md0",
            "vol-0123456789abcdef0",
        ] {
            let filter = Filter::of_arguments(&[word.to_owned()], false);
            let mut sample = sample();
            let array = Device::clone(&sample.devices[0].device);
            sample.devices[0].device = Arc::new(Device {
                alias: Some("data".to_owned()),
                serial: Some("vol0123456789abcdef0".to_owned()),
                ..array
            });
            filter.remove_others(&mut sample);
            assert_eq!(sample.devices.len(), 4, "{word}");
        }
    }

    #[test]
    fn links_name_the_disk_to_which_they_lead_and_else_what_iostat_prints_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("backup");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        assert_eq!(name_in_path(link.to_str().unwrap()), "null");
        for (word, name) in [
            ("/dev/disk/by-id/gone-disk", "gone-disk"),
            ("/dev/gone", "gone"),
            ("/dev/cciss/c9d9", "cciss/c9d9"),
            ("cciss/c0d0", "cciss/c0d0"),
            ("sda", "sda"),
        ] {
            assert_eq!(name_in_path(word), name);
        }
    }

    #[test]
    fn idle_devices_are_shown_when_named_and_else_counted() {
        assert_eq!(names(&filter(&[], false)), ["md0", "vdb", "vdd"]);
        assert_eq!(names(&filter(&[], true)).len(), 5);
        let idle = |filter: &Filter| filter.remove_others(&mut sample());
        assert_eq!(idle(&filter(&[], false)), 1);
        assert_eq!(idle(&filter(&[], true)), 0);
        assert_eq!(idle(&filter(&["vdc"], false)), 0);
        let mut with_a_part = sample();
        let part = Device {
            kind: DeviceKind::Partition,
            ..Device::by_name(DeviceId(9), "vdc1", SampleTime::default())
        };
        with_a_part.devices = vec![DeviceSample::unknown(Arc::new(part))];
        assert_eq!(filter(&[], false).remove_others(&mut with_a_part), 0);
    }

    #[test]
    fn a_finding_that_was_shown_when_it_began_is_shown_when_it_is_over() {
        let event = |id: u64, name: &str, device: u32| WatchEvent {
            id,
            code: EventCode::Stalled,
            severity: Severity::Warn,
            subject: Subject::Device(DeviceId(device)),
            name: name.to_owned(),
            began: SampleTime::default(),
            ended: None,
            text: String::new(),
            advice: String::new(),
            figures: Vec::new(),
        };
        let change = |kind, id, name, device| EventChange {
            kind,
            event: event(id, name, device),
        };
        let mut filter = filter(&["md0"], false);
        let (opened, closed) = (ChangeKind::Opened, ChangeKind::Closed);
        assert!(filter.wants_change(&change(opened, 1, "vdb", 1), &sample()));
        assert!(!filter.wants_change(&change(opened, 2, "vdd", 4), &sample()));
        let mut without = sample();
        without
            .devices
            .retain(|device| device.device.id != DeviceId(1));
        assert!(filter.wants_change(&change(closed, 1, "vdb", 1), &without));
        assert!(!filter.wants_change(&change(closed, 2, "vdd", 4), &without));
        assert!(filter.shown.is_empty());
    }

    #[test]
    fn a_device_is_named_without_sysfs_and_by_the_name_that_people_gave_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        std::fs::create_dir_all(&root.proc).unwrap();
        let counters = "254 0 vda 1 2 3 4 5 6 7 8 9 10 11\n253 0 dm-0 1 2 3 4 5 6 7 8 9 10 11\n";
        std::fs::write(root.proc.join("diskstats"), counters).unwrap();
        let named = |word: &str| {
            let filter = Filter::new(&[word.to_owned()], false, &root);
            filter.map(|filter| filter.names().to_vec()).ok()
        };
        assert_eq!(named("vda"), Some(vec!["vda".to_owned()]));
        assert_eq!(named("/dev/vda"), Some(vec!["vda".to_owned()]));
        assert_eq!(named("vdb"), None);
        let mapper = root.sys.join("class/block/dm-0");
        std::fs::create_dir_all(mapper.join("dm")).unwrap();
        std::fs::write(mapper.join("dev"), "253:0\n").unwrap();
        std::fs::write(mapper.join("size"), "2048\n").unwrap();
        std::fs::write(mapper.join("dm/name"), "vg-data\n").unwrap();
        assert_eq!(named("vg-data"), Some(vec!["dm-0".to_owned()]));
        let volume = root.sys.join("class/block/nvme1n1");
        std::fs::create_dir_all(volume.join("device")).unwrap();
        std::fs::write(volume.join("dev"), "259:0\n").unwrap();
        std::fs::write(volume.join("size"), "2048\n").unwrap();
        std::fs::write(volume.join("device/serial"), "vol0123456789abcdef0\n").unwrap();
        for word in ["vol-0123456789abcdef0", "vol0123456789abcdef0"] {
            assert_eq!(named(word), Some(vec!["nvme1n1".to_owned()]));
        }
        assert_eq!(named("vol-0123456789abcdef1"), None);
    }

    #[test]
    fn a_word_that_names_no_device_is_refused() {
        let words = ["no-such-disk".to_owned()];
        assert!(Filter::new(&words, false, &Root::host()).is_err());
    }
}
