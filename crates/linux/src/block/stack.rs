//! The stack of devices: for each, the devices below and above it.

use super::{Device, DeviceNumber, Devices};

impl Devices {
    /// The devices directly below a device: a partition's disk, an array's members, a volume's physical volumes, the
    /// backing device of a loop device. A loop device with a backing file is the end of the stack: its I/O goes
    /// through a file system.
    pub fn parents(&self, number: DeviceNumber) -> Vec<&Device> {
        let Some(device) = self.get(number) else {
            return Vec::new();
        };
        let below = device.partition_of().or_else(|| device.loop_on());
        let slaves = device.slaves.iter().filter_map(|name| self.named(name));
        below
            .and_then(|number| self.get(number))
            .into_iter()
            .chain(slaves)
            .collect()
    }

    /// The devices directly above a device: its partitions, its holders, and loop devices backed by it.
    pub fn children(&self, number: DeviceNumber) -> Vec<&Device> {
        let Some(below) = self.get(number) else {
            return Vec::new();
        };
        self.iter()
            .filter(|device| {
                device.partition_of() == Some(number)
                    || device.slaves.contains(&below.name)
                    || below.holders.contains(&device.name)
                    || device.loop_on() == Some(number)
            })
            .collect()
    }

    /// All devices below a device, nearest first, without the device itself.
    pub fn below(&self, number: DeviceNumber) -> Vec<&Device> {
        self.walk(number, |number| self.parents(number))
    }

    /// All devices above a device, nearest first, without the device itself.
    pub fn stack_above(&self, number: DeviceNumber) -> Vec<&Device> {
        self.walk(number, |number| self.children(number))
    }

    /// The devices at the bottom of a stack, which do the work: the disks below a partition, an array or a volume; for
    /// a disk, the disk itself. Empty for a device that the kernel does not list.
    pub fn stack_below(&self, number: DeviceNumber) -> Vec<&Device> {
        self.get(number)
            .into_iter()
            .chain(self.below(number))
            .filter(|device| self.parents(device.number).is_empty())
            .collect()
    }

    /// All devices reachable by `next`, each once, so that a cycle ends.
    fn walk<'a>(
        &'a self,
        from: DeviceNumber,
        next: impl Fn(DeviceNumber) -> Vec<&'a Device>,
    ) -> Vec<&'a Device> {
        let mut seen: Vec<&Device> = Vec::new();
        let mut todo = next(from);
        while !todo.is_empty() {
            let mut further = Vec::new();
            for device in todo {
                let known = |other: &&Device| other.number == device.number;
                if device.number != from && !seen.iter().any(known) {
                    seen.push(device);
                    further.extend(next(device.number));
                }
            }
            todo = further;
        }
        seen
    }
}
