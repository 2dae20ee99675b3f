//! Identities of devices: each gets a unique id when it is first seen.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linux::block::{self, BlockDeviceKind, Devices};
use linux::diskstats::{CountedFields, DiskStats, DiskStatsLine};
use linux::ebs::StatsPage;
use linux::{Root, md};
use record::Nanos;
use record::sample::{Device, DeviceId, DeviceKind, DeviceNumber, SampleTime, disks_of_partition};

/// Maximum time between two readings of sysfs, since members are added and removed without notice.
const RESCAN_INTERVAL: Nanos = Nanos::from_secs(60);
/// Divisor of the time that may be spent on reading sysfs, which takes long on a host with thousands of devices: at
/// most one part in this number.
const SYSFS_TIME_DIVISOR: u32 = 50;
/// Maximum number of removed devices whose identity is kept.
const MAX_REMOVED_DEVICES: usize = 1000;

/// Counters of a device in one reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceReading {
    /// Major and minor number of the device.
    pub(super) number: DeviceNumber,
    /// Counters of the device.
    pub(super) stats: DiskStats,
    /// Counts since the last reading; `None` at the first one, and when a counter went back.
    pub(super) moved: Option<DiskStats>,
    /// Fields that this kernel counts.
    pub(super) counted: CountedFields,
    /// True if a counter went back.
    pub(super) reset: bool,
}

/// A device that exists.
struct KnownDevice {
    device: Arc<Device>,
    stats: DiskStats,
    /// The reading in which it was last seen.
    reading: u64,
    /// Rank of the device in the order of names.
    rank: u32,
    /// True if it may be another device with the same name: its counters went back, or it was absent from a reading.
    doubtful: bool,
    presence: DevicePresence,
}

/// Presence of a device, by its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DevicePresence {
    /// The device has had no size yet, like a drive without a medium.
    Empty,
    /// The device has a size.
    There,
    /// The device had a size and has none any more, though the kernel may still count for it.
    Gone,
}

/// Attributes by which a removed device is recognized when it returns.
#[derive(PartialEq, Eq)]
struct RemovedEntry {
    id: DeviceId,
    first_seen: SampleTime,
    name: String,
    number: DeviceNumber,
    sequence: u64,
}

/// The existing devices, with their identities.
pub(super) struct DeviceRegistry {
    root: Root,
    known: HashMap<DeviceNumber, KnownDevice>,
    departed: VecDeque<RemovedEntry>,
    devices: Devices,
    next: u32,
    reading: u64,
    now: SampleTime,
    seen: usize,
    changed: bool,
    /// Devices that another one has replaced.
    replaced: Vec<Arc<Device>>,
    last_refresh: Option<Nanos>,
    cost: Duration,
    /// True if it was reported that sysfs does not list the devices.
    reported_unlisted: bool,
    /// True if it was reported that some devices do not count.
    reported_uncounted: bool,
}

impl DeviceRegistry {
    /// A registry without devices.
    pub(super) fn new(root: &Root) -> DeviceRegistry {
        DeviceRegistry {
            root: root.clone(),
            known: HashMap::new(),
            departed: VecDeque::new(),
            devices: Devices::default(),
            next: 0,
            reading: 0,
            now: SampleTime::default(),
            seen: 0,
            changed: false,
            replaced: Vec::new(),
            last_refresh: None,
            cost: Duration::ZERO,
            reported_unlisted: false,
            reported_uncounted: false,
        }
    }

    /// Sets the duration of the last reading of sysfs.
    #[cfg(test)]
    pub(super) fn slow_down(&mut self, cost: Duration) {
        self.cost = cost;
    }

    /// Number of known devices.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Devices in sysfs at the last poll.
    pub(super) fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Begins a reading.
    pub(super) fn begin(&mut self, at: SampleTime) {
        self.reading += 1;
        self.now = at;
        self.seen = 0;
    }

    /// Takes a line of the counters.
    pub(super) fn observe(&mut self, line: &DiskStatsLine<'_>) -> DeviceReading {
        self.seen += 1;
        let mut seen = DeviceReading {
            number: line.number,
            stats: line.stats,
            moved: None,
            counted: line.counted,
            reset: false,
        };
        let known = self.known.get_mut(&line.number);
        match known.filter(|known| known.device.name == line.name) {
            Some(known) => {
                // If the device was absent from the last reading, the difference would span two intervals.
                let before = (known.reading + 1 == self.reading).then_some(known.stats);
                seen.moved = before.and_then(|before| line.stats.moved_since(&before));
                seen.reset = before.is_some() && seen.moved.is_none();
                // A device that was absent from a reading may be another one now.
                let is_doubtful = seen.moved.is_none();
                known.stats = line.stats;
                known.reading = self.reading;
                known.doubtful |= is_doubtful;
                self.changed |= is_doubtful;
            }
            None => self.add_device(line),
        }
        seen
    }

    /// Adds a device that was not in the last reading.
    fn add_device(&mut self, line: &DiskStatsLine<'_>) {
        self.changed = true;
        let id = self.take_id();
        let mut device = Device::by_name(id, line.name, self.now);
        device.number = Some(line.number);
        let known = KnownDevice {
            device: Arc::new(device),
            stats: line.stats,
            reading: self.reading,
            rank: u32::MAX,
            doubtful: false,
            presence: DevicePresence::Empty,
        };
        if let Some(before) = self.known.insert(line.number, known) {
            if before.presence == DevicePresence::There {
                self.replaced.push(Arc::clone(&before.device));
            }
            self.store_number(line.number, &before.device);
        }
    }

    /// Ends a reading. Returns the devices that have disappeared since the previous one. `sized` are the devices that
    /// have a size; `None` where it is not known.
    pub(super) fn end_reading(
        &mut self,
        sized: Option<&HashSet<DeviceNumber>>,
    ) -> Vec<Arc<Device>> {
        let mut removed = Vec::new();
        for (number, known) in &mut self.known {
            let is_there =
                known.reading == self.reading && sized.is_none_or(|sized| sized.contains(number));
            known.presence = match (is_there, known.presence) {
                (true, _) => DevicePresence::There,
                (false, DevicePresence::There) => {
                    removed.push(Arc::clone(&known.device));
                    DevicePresence::Gone
                }
                (false, before) => before,
            };
        }
        removed.sort_by_key(|device| device.id);
        removed
    }

    /// Returns the devices that another one has replaced since the last call.
    pub(super) fn take_replaced(&mut self) -> Vec<Arc<Device>> {
        std::mem::take(&mut self.replaced)
    }

    fn take_id(&mut self) -> DeviceId {
        let id = DeviceId(self.next);
        self.next += 1;
        id
    }

    fn store_number(&mut self, number: DeviceNumber, device: &Device) {
        if let Some(sequence) = device.sequence {
            self.departed.push_back(RemovedEntry {
                id: device.id,
                first_seen: device.first_seen,
                name: device.name.clone(),
                number,
                sequence,
            });
            if self.departed.len() > MAX_REMOVED_DEVICES {
                self.departed.pop_front();
            }
        }
    }

    /// True if sysfs is to be read again: devices were added or removed, something else changed, or the last reading is
    /// old.
    pub(super) fn is_due(&mut self, now: Nanos, changed: bool) -> bool {
        self.changed |= changed || self.seen != self.known.len();
        let Some(last) = self.last_refresh else {
            self.last_refresh = Some(now);
            return true;
        };
        let due = if self.changed {
            now - last >= Nanos::from(self.cost * SYSFS_TIME_DIVISOR)
        } else {
            now - last >= RESCAN_INTERVAL
        };
        if due {
            self.last_refresh = Some(now);
        }
        due
    }

    /// Reads the devices' facts from sysfs again.
    pub(super) fn refresh(&mut self, root: &Root, notes: &mut Vec<String>) {
        let began = Instant::now();
        // A disk that hangs must not delay the watch that is to detect it.
        let known = |number, name: &str| {
            let known = self.known.get(&number).filter(|known| !known.doubtful)?;
            let device = known.device.name.replace('/', "!") == name;
            device.then(|| known.device.serial.clone()).flatten()
        };
        let failure = match Devices::read_without_waiting(root, known) {
            Ok(devices) => {
                self.devices = devices;
                None
            }
            Err(error) => Some(format!("sysfs cannot be read: {error}")),
        };
        self.changed = false;
        self.drop_removed();
        self.find_uncertain(root);
        self.describe_all(root);
        self.report_unlisted_once(failure, notes);
        self.report_uncounted_once(root, notes);
        self.cost = began.elapsed();
    }

    /// Sets the cost of the last reading of sysfs to zero: a test has its own clock, and the host may be slow.
    #[cfg(test)]
    pub(super) fn reset_cost(&mut self) {
        self.cost = Duration::ZERO;
    }

    /// Reports once that sysfs does not list the devices.
    fn report_unlisted_once(&mut self, failure: Option<String>, notes: &mut Vec<String>) {
        let lists_none = self.devices.iter().next().is_none() && !self.known.is_empty();
        let hidden = || lists_none.then(|| "sysfs lists none of them".to_owned());
        if let Some(why) = failure.or_else(hidden)
            && !self.reported_unlisted
        {
            self.reported_unlisted = true;
            notes.push(format!(
                "The stacking of devices is unknown, and their kinds are guessed from their names, \
                 since {why}."
            ));
        }
    }

    /// Reports once the devices whose counters are switched off: they seem idle.
    fn report_uncounted_once(&mut self, root: &Root, notes: &mut Vec<String>) {
        if self.reported_uncounted {
            return;
        }
        let uncounted: Vec<&str> = self
            .devices
            .iter()
            .filter(|device| {
                // Devices other than disks count whatever their queue's setting is.
                let is_disk = device.kind == BlockDeviceKind::Disk;
                is_disk && self.known.contains_key(&device.number) && !device.is_counted(root)
            })
            .map(|device| device.name.as_str())
            .collect();
        if !uncounted.is_empty() {
            self.reported_uncounted = true;
            notes.push(format!(
                "The kernel does not count the requests of {}, so that nothing is seen of them; 1 in \
                 queue/iostats of a disk in sysfs makes it count.",
                uncounted.join(", ")
            ));
        }
    }

    fn drop_removed(&mut self) {
        let reading = self.reading;
        let is_gone = |known: &KnownDevice| known.reading != reading;
        let gone: Vec<DeviceNumber> = self
            .known
            .iter()
            .filter(|(_, known)| is_gone(known))
            .map(|(number, _)| *number)
            .collect();
        for number in gone {
            if let Some(known) = self.known.remove(&number) {
                self.store_number(number, &known.device);
            }
        }
    }

    /// Replaces the identities of devices that are other ones now: those with another disk sequence number, and those
    /// whose counters went back or that were absent, unless their sequence number is the same.
    fn find_uncertain(&mut self, root: &Root) {
        let mut others = Vec::new();
        for (number, known) in &mut self.known {
            let sequence = sequence_of(&self.devices, *number, root);
            let before = known.device.sequence;
            let is_other = match (before, sequence) {
                (Some(before), Some(now)) => before != now,
                _ => known.doubtful,
            };
            if is_other && known.presence == DevicePresence::There && before.is_some() {
                self.replaced.push(Arc::clone(&known.device));
            }
            known.doubtful = false;
            if is_other {
                others.push(*number);
            }
        }
        for number in others {
            let id = self.take_id();
            if let Some(known) = self.known.get_mut(&number) {
                let device = Device::by_name(id, &known.device.name, self.now);
                known.device = Arc::new(device);
            }
        }
    }

    fn describe_all(&mut self, root: &Root) {
        let mut ids: HashMap<DeviceNumber, DeviceId> = HashMap::new();
        let mut sequences: HashMap<DeviceNumber, Option<u64>> = HashMap::new();
        let numbers: Vec<DeviceNumber> = self.known.keys().copied().collect();
        for number in numbers {
            let sequence = sequence_of(&self.devices, number, root);
            self.restore_number(number, sequence);
            sequences.insert(number, sequence);
            if let Some(known) = self.known.get(&number) {
                ids.insert(number, known.device.id);
            }
        }
        self.rank();
        self.describe_by_name();
        // Without these names, the kernel names are used.
        let links = md::links(root, &self.devices).unwrap_or_default();
        for device in self.devices.iter() {
            let Some(known) = self.known.get_mut(&device.number) else {
                continue;
            };
            let sequence = sequences.get(&device.number).copied().flatten();
            let mut described =
                describe(device, &known.device, sequence, &self.devices, &ids, root);
            if described.kind == DeviceKind::Array {
                // A name that is a number alone is no better than the kernel name.
                let mut names = links.iter().filter(|(name, number)| {
                    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
                    *number == device.number && !is_number
                });
                described.alias = names.next().map(|(name, _)| name.clone());
            }
            if described != *known.device {
                known.device = Arc::new(described);
            }
        }
    }

    /// Describes the devices that sysfs does not list, as in a container: a device whose name is that of a partition of
    /// an existing disk counts as one.
    fn describe_by_name(&mut self) {
        let ids = self.known.values().map(|known| &known.device);
        let ids: HashMap<String, DeviceId> =
            ids.map(|device| (device.name.clone(), device.id)).collect();
        for (number, known) in &mut self.known {
            let device = &known.device;
            let disk = disks_of_partition(&device.name).find_map(|disk| ids.get(disk));
            let Some(disk) = disk.filter(|_| self.devices.get(*number).is_none()) else {
                continue;
            };
            let mut device = Device::clone(device);
            device.kind = DeviceKind::Partition;
            device.lies_on = vec![*disk];
            known.device = Arc::new(device);
        }
    }

    /// Sets the ranks of all devices in the order of names.
    fn rank(&mut self) {
        let mut known: Vec<&mut KnownDevice> = self.known.values_mut().collect();
        known.sort_by_cached_key(|known| block::natural(&known.device.name));
        for (known, rank) in known.into_iter().zip(0..) {
            known.rank = rank;
        }
    }

    /// Restores the former id of a new device that existed before.
    fn restore_number(&mut self, number: DeviceNumber, sequence: Option<u64>) {
        let Some(known) = self.known.get_mut(&number) else {
            return;
        };
        if known.device.sequence.is_some() {
            return;
        }
        let before = self.departed.iter().position(|departed| {
            Some(departed.sequence) == sequence
                && departed.number == number
                && departed.name == known.device.name
        });
        if let Some(before) = before.and_then(|at| self.departed.remove(at)) {
            let mut device = Device::by_name(before.id, &before.name, before.first_seen);
            device.number = known.device.number;
            known.device = Arc::new(device);
        }
    }

    /// The device of a reading, with its rank in the order of names. `None` for devices that are gone, and for loop
    /// devices and RAM disks without any I/O so far, of which a host may have many.
    pub(super) fn device(&self, seen: &DeviceReading) -> Option<(u32, Arc<Device>)> {
        let known = self.known.get(&seen.number)?;
        let spare = matches!(known.device.kind, DeviceKind::Loop | DeviceKind::Memory);
        let unused = seen.stats.reads == 0 && seen.stats.writes == 0 && seen.stats.in_flight == 0;
        let is_gone = known.presence == DevicePresence::Gone;
        let is_hidden = is_gone || (spare && unused);
        (!is_hidden).then(|| (known.rank, Arc::clone(&known.device)))
    }

    /// Id of the device that has this name now.
    pub(super) fn id_of(&self, name: &str) -> Option<DeviceId> {
        let number = self.devices.named(name)?.number;
        Some(self.known.get(&number)?.device.id)
    }

    /// The disks that have a vendor's statistics page, with their device nodes.
    pub(super) fn devices_of_vendors(&self) -> Vec<(DeviceId, std::path::PathBuf)> {
        let has_page = |device: &&block::Device| {
            let model = device.model.as_deref();
            device.kind == BlockDeviceKind::Disk
                && !device.hidden
                && model.is_some_and(StatsPage::is_had_by)
        };
        self.devices
            .iter()
            .filter(has_page)
            .filter_map(|device| {
                let known = self.known.get(&device.number)?;
                Some((known.device.id, self.root.locate(&device.node())))
            })
            .collect()
    }
}

/// Sequence number of a disk (diskseq); a partition has that of its disk.
fn sequence_of(devices: &Devices, number: DeviceNumber, root: &Root) -> Option<u64> {
    let device = devices.get(number)?;
    let disk = device.partition_of().and_then(|disk| devices.get(disk));
    disk.unwrap_or(device).sequence(root)
}

fn describe(
    device: &block::Device,
    before: &Device,
    sequence: Option<u64>,
    devices: &Devices,
    ids: &HashMap<DeviceNumber, DeviceId>,
    root: &Root,
) -> Device {
    let (kind, level, alias) = match &device.kind {
        BlockDeviceKind::Disk => (DeviceKind::Disk, None, None),
        BlockDeviceKind::Partition { .. } => (DeviceKind::Partition, None, None),
        BlockDeviceKind::Loop { .. } => (DeviceKind::Loop, None, None),
        BlockDeviceKind::Mapper { name, .. } => (DeviceKind::Mapper, None, name.clone()),
        BlockDeviceKind::Raid { level, .. } => (DeviceKind::Array, level.clone(), None),
        BlockDeviceKind::Ram => (DeviceKind::Memory, None, None),
    };
    let below = devices.parents(device.number);
    Device {
        id: before.id,
        name: device.name.clone(),
        alias,
        number: Some(device.number),
        sequence,
        first_seen: before.first_seen,
        kind,
        level,
        size: Some(device.size),
        model: device.model.clone(),
        serial: device.serial.clone(),
        queue_depth: device.queue_depth(root),
        rotational: device.rotational,
        lies_on: below
            .iter()
            .filter_map(|below| ids.get(&below.number).copied())
            .collect(),
    }
}
