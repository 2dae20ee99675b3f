//! Foreground latency of a device, on a real host: by probes and by the kernel's counters.

use linux::Root;
use linux::block::{Device, Devices};
use linux::diskstats::{Counter, DiskStats};

use study::pace::Sample;

use reader::Prober;

/// Foreground I/O since the last look.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ForegroundSample {
    /// Latencies of the probes that came back, in seconds.
    pub probes: Vec<f64>,
    /// Time that a probe waits which has not come back, in seconds.
    pub waiting: f64,
    /// Foreground requests to the disks; `None` where the kernel does not count.
    pub others: Option<u64>,
    /// Number of requests that the kernel has counted, and the seconds that they took together.
    pub counted: Option<(u64, f64)>,
    /// Time that any request to the array was outstanding, in seconds; zero where that is not told.
    pub busy: f64,
}

impl ForegroundSample {
    /// The same for the controller, of so many seconds in which the background did so many bytes, and is busy or
    /// not. Probes are outstanding too, so that times count only where there are none.
    pub(crate) fn sample(
        &self,
        seconds: f64,
        background: f64,
        is_busy: bool,
        probing: bool,
    ) -> Sample<'_> {
        Sample {
            seconds,
            foreground: study::pace::Foreground {
                requests: self.others.map(|others| others as f64),
                waited_s: if probing { 0.0 } else { self.busy },
            },
            latencies_s: &self.probes,
            waiting_s: self.waiting,
            timed: self
                .counted
                .map(|(requests, seconds)| (requests as f64, seconds)),
            background,
            is_busy,
        }
    }
}

/// Watches one device.
pub(crate) struct Foreground {
    counter: Option<Counter>,
    before: Option<DiskStats>,
    /// Requests that the kernel has counted beyond our own, as far as they were not reported yet; below zero
    /// when some of our own came back that it had not counted.
    beyond: i64,
    /// Disks of which only a part is the device's.
    neighbours: Vec<Neighbours>,
    prober: Option<Prober>,
}

/// A disk of which only parts are an array's: the rest may be in use, by another array for instance.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    disk: Device,
    parts: Vec<Device>,
}

impl Shared {
    /// The disks of which these members are partitions.
    pub(crate) fn of(members: &[Device], devices: &Devices) -> Vec<Shared> {
        let mut all: Vec<Shared> = Vec::new();
        for member in members {
            let Some(disk) = member.partition_of().and_then(|disk| devices.get(disk)) else {
                continue;
            };
            match all.iter_mut().find(|one| one.disk.number == disk.number) {
                Some(one) => one.parts.push(member.clone()),
                None => all.push(Shared {
                    disk: disk.clone(),
                    parts: vec![member.clone()],
                }),
            }
        }
        all
    }
}

/// The kernel's counts of a device, of all requests.
#[derive(Clone, Copy, Debug)]
struct Counted {
    requests: u64,
    /// The seconds that they took together.
    took: f64,
    /// The seconds in which any was on its way.
    busy: f64,
}

/// Users of the rest of a disk: the kernel's counts of the disk less those of the parts.
struct Neighbours {
    disk: Counter,
    parts: Vec<Counter>,
    before: Option<i64>,
}

impl Neighbours {
    /// Their requests since the last time. The counters are not read at one moment, so that some are
    /// told late, after a number below zero.
    fn since(&mut self) -> i64 {
        let number = |counter: &Counter| {
            let stats = counter.read().ok()?;
            let merged = stats.reads_merged + stats.writes_merged;
            i64::try_from(stats.reads + stats.writes + merged).ok()
        };
        let parts: Option<i64> = self.parts.iter().map(number).sum();
        let now = number(&self.disk)
            .zip(parts)
            .map(|(disk, parts)| disk - parts);
        let before = std::mem::replace(&mut self.before, now);
        now.zip(before).map_or(0, |(now, before)| now - before)
    }
}

impl Foreground {
    /// Of this device, which is not probed yet.
    pub(crate) fn of(device: &Device, root: &Root) -> Foreground {
        let counter = device
            .is_counted(root)
            .then(|| Counter::open(root, device).ok())
            .flatten();
        Foreground {
            before: counter.as_ref().and_then(|counter| counter.read().ok()),
            counter,
            beyond: 0,
            neighbours: Vec::new(),
            prober: Prober::start(root.locate(&device.node()), device.size).ok(),
        }
    }

    /// And of whoever uses the rest of these disks. They wait for the same disks, and the device's own
    /// counters do not know them.
    pub(crate) fn and_beside(mut self, shared: &[Shared], root: &Root) -> Foreground {
        let open = |device: &Device| Counter::open(root, device).ok();
        let neighbours = shared.iter().filter_map(|shared| {
            let parts: Option<Vec<Counter>> = shared.parts.iter().map(open).collect();
            let mut neighbours = Neighbours {
                disk: open(&shared.disk)?,
                parts: parts?,
                before: None,
            };
            neighbours.since();
            Some(neighbours)
        });
        self.neighbours = neighbours.collect();
        self
    }

    /// Foreground I/O since the last call; probes continue at least so many seconds apart, or stop.
    pub(crate) fn seen(&mut self, probing: Option<f64>) -> ForegroundSample {
        self.look(probing, None)
    }

    /// The same of a device from which so many requests of our own, beside probes, came back. How long
    /// others' take is told by probes alone then: the kernel counts ours with them.
    pub(crate) fn seen_beside(&mut self, probing: Option<f64>, own: u64) -> ForegroundSample {
        self.look(probing, Some(own))
    }

    fn look(&mut self, probing: Option<f64>, own: Option<u64>) -> ForegroundSample {
        let (probes, waiting) = self.prober.as_ref().map_or((Vec::new(), 0.0), |prober| {
            prober.want(probing);
            prober.take()
        });
        let counted = self.counted();
        let beside: i64 = self.neighbours.iter_mut().map(Neighbours::since).sum();
        let others = counted.map(|Counted { requests, .. }| {
            let own = i64::try_from(own.unwrap_or(0) + probes.len() as u64).unwrap_or(i64::MAX);
            let requests = i64::try_from(requests).unwrap_or(i64::MAX);
            let requests = requests.saturating_add(beside);
            self.beyond = self.beyond.saturating_add(requests.saturating_sub(own));
            let others = u64::try_from(self.beyond).unwrap_or(0);
            self.beyond = self.beyond.min(0);
            others
        });
        // Of a device that is read here, ours are in its times.
        let told = counted.filter(|_| own.is_none());
        ForegroundSample {
            probes,
            waiting,
            others,
            counted: told.map(|told| (told.requests, told.took)),
            busy: told.map_or(0.0, |told| told.busy),
        }
    }

    /// The kernel's counts since the last call.
    fn counted(&mut self) -> Option<Counted> {
        let now = self.counter.as_ref()?.read().ok()?;
        let before = self.before.replace(now)?;
        let counts = now.since(&before)?;
        let ms = |before: u64, now: u64| u64::from((now as u32).wrapping_sub(before as u32));
        let took = ms(before.read_ms, now.read_ms) + ms(before.write_ms, now.write_ms);
        // Two requests that became one on their way are two all the same.
        let merged = now.reads_merged.saturating_sub(before.reads_merged);
        Some(Counted {
            requests: counts.reads + merged + counts.writes,
            took: took as f64 / 1e3,
            busy: ms(before.busy_ms, now.busy_ms) as f64 / 1e3,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_uses_the_rest_of_a_disk_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let class = folder.path().join("sys/class/block");
        let disk = folder.path().join("sys/devices/virtual/block/sda");
        let parts = ["sda1", "sda2", "sda3"];
        for part in parts {
            std::fs::create_dir_all(disk.join(part)).unwrap();
            std::fs::write(disk.join(part).join("partition"), &part[3..]).unwrap();
        }
        std::fs::create_dir_all(&class).unwrap();
        let stat = |folder: &std::path::Path, reads: u64| {
            let line = format!("{reads} 0 0 0 0 0 0 0 0 0 0");
            std::fs::write(folder.join("stat"), line).unwrap();
        };
        let of_parts = parts.map(|part| (part, disk.join(part)));
        let all = std::iter::once(("sda", disk.clone())).chain(of_parts);
        for (minor, (name, folder)) in all.enumerate() {
            std::fs::write(folder.join("dev"), format!("8:{minor}")).unwrap();
            std::fs::write(folder.join("size"), "2048").unwrap();
            stat(&folder, 100);
            std::os::unix::fs::symlink(&folder, class.join(name)).unwrap();
        }
        let root = Root::under(folder.path());
        let devices = Devices::read(&root).unwrap();
        let named = |name: &str| {
            devices
                .iter()
                .find(|device| device.name == name)
                .unwrap()
                .clone()
        };
        // Two of its partitions are members of one array, and the third is somebody else's.
        let shared = Shared::of(&[named("sda1"), named("sda3")], &devices);
        assert_eq!(shared.len(), 1);
        let mut foreground = Foreground::of(&named("sda1"), &root).and_beside(&shared, &root);
        // 40 of the first itself, and 60 of the neighbour; those of the other member are the array's own.
        stat(&disk, 1200);
        stat(&disk.join("sda1"), 140);
        stat(&disk.join("sda2"), 160);
        stat(&disk.join("sda3"), 1100);
        assert_eq!(foreground.seen(None).others, Some(100));
        assert_eq!(foreground.seen(None).others, Some(0));
        // One that waits is no request yet, but the time goes on.
        std::fs::write(disk.join("sda1/stat"), "140 0 0 0 0 0 0 0 1 250 250").unwrap();
        let seen = foreground.seen(None);
        assert_eq!((seen.others, seen.busy), (Some(0), 0.25));
    }
}
