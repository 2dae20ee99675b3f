//! Measurement of the foreground latency of a device on a real host: by probes and by the kernel's counters.

use std::time::Instant;

use linux::Root;
use linux::block::{Device, Devices};
use linux::diskstats::{Counter, DiskStats, SECTOR};
use reader::{Prober, Probes};
use record::DeviceCounts;
use study::pace::{ForegroundDetector, IoCounts, Sample};

/// Foreground I/O since the last poll.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ForegroundSample {
    /// Latencies of the probes that completed, in seconds.
    pub probes: Vec<f64>,
    /// Time for which a probe in flight has waited, in seconds.
    pub waiting: f64,
    /// Number of foreground requests to the disks; `None` where the kernel does not count.
    pub others: Option<f64>,
    /// Number of requests that the kernel has counted, and the sum of their latencies in seconds.
    pub counted: Option<(u64, f64)>,
    /// Time for which any request to the array was in flight, in seconds; for a disk that this process reads, an
    /// estimate of the time for the requests of other programs.
    pub busy: f64,
}

impl ForegroundSample {
    /// The sample for the controller, of `seconds` in which the background moved `background` bytes. Probes are in
    /// flight too, so that the time in flight counts only without `probing`.
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
                requests: self.others,
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

/// Detector of foreground I/O on one device.
pub(crate) struct Foreground {
    counter: Option<Counter>,
    before: Option<DiskStats>,
    detector: ForegroundDetector,
    sampled: Instant,
    /// Disks of which only parts belong to the device.
    neighbours: Vec<OtherUsers>,
    prober: Option<Prober>,
}

/// A disk of which only parts belong to an array: the rest may be in use, for example by another array.
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

/// I/O on the rest of a disk: the kernel's counts of the disk minus those of the parts.
struct OtherUsers {
    disk: Counter,
    parts: Vec<Counter>,
    before: Option<(f64, f64)>,
}

impl OtherUsers {
    /// Bytes read and bytes written on the rest of the disk since the last call. The counters are not read at the same
    /// moment, so a number may be negative, and the bytes are counted at the next call.
    fn since(&mut self) -> (f64, f64) {
        let moved = |counter: &Counter| {
            let stats = counter.read().ok()?;
            let bytes = |sectors: u64| (sectors * SECTOR) as f64;
            Some((bytes(stats.sectors_read), bytes(stats.sectors_written)))
        };
        let parts: Option<Vec<_>> = self.parts.iter().map(moved).collect();
        let now = moved(&self.disk).zip(parts).map(|(disk, parts)| {
            let less = |left: (f64, f64), part: (f64, f64)| (left.0 - part.0, left.1 - part.1);
            parts.into_iter().fold(disk, less)
        });
        let before = std::mem::replace(&mut self.before, now);
        now.zip(before).map_or((0.0, 0.0), |(now, before)| {
            (now.0 - before.0, now.1 - before.1)
        })
    }
}

impl Foreground {
    /// Detector of foreground I/O on this device.
    pub(crate) fn of(device: &Device, root: &Root) -> Foreground {
        let counter = Counter::if_counted(root, device);
        Foreground {
            before: counter.as_ref().and_then(|counter| counter.read().ok()),
            counter,
            detector: ForegroundDetector::default(),
            sampled: Instant::now(),
            neighbours: Vec::new(),
            prober: Prober::start(root.locate(&device.node()), device.size).ok(),
        }
    }

    /// Adds the I/O on the rest of these disks, which waits for the same disks and is not in the device's own counters.
    pub(crate) fn with_shared_disks(mut self, shared: &[Shared], root: &Root) -> Foreground {
        let open = |device: &Device| Counter::open(root, device).ok();
        let neighbours = shared.iter().filter_map(|shared| {
            let parts: Option<Vec<Counter>> = shared.parts.iter().map(open).collect();
            let mut neighbours = OtherUsers {
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

    /// Notes that the ledger is being written to this device.
    pub(crate) fn commits(&mut self) {
        self.detector.commits();
    }

    /// Foreground I/O since the last call. Probes continue, at least `probing` seconds apart; with `None` they stop.
    /// `own` returns the background's own I/O, without probes, if the device counts it. An array does not count md's
    /// check, so that its counters give the latency of the foreground.
    pub(crate) fn foreground_sample(
        &mut self,
        probing: Option<f64>,
        own: impl FnOnce() -> Option<OwnIo>,
    ) -> ForegroundSample {
        let seconds = self.sampled.elapsed().as_secs_f64();
        self.sampled = Instant::now();
        // Read before the own I/O, so that own requests that complete meanwhile do not count as foreground.
        let counted = self.counted();
        let probes = self.prober.as_ref().map_or_else(Probes::default, |prober| {
            prober.set_gap(probing);
            prober.take()
        });
        let of_others = self.neighbours.iter_mut().map(OtherUsers::since);
        let beside = of_others.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        let own = own();
        let of_reads = own.unwrap_or_default();
        let counts = counted.map(|(counts, _)| IoCounts {
            read: counts.read_bytes as f64 + beside.0,
            written: counts.write_bytes as f64 + beside.1,
            own: of_reads.bytes + probes.completed_bytes() as f64,
            in_flight: of_reads.in_flight + probes.in_flight_bytes() as f64,
        });
        let foreground = self.detector.take(seconds, counts, of_reads.is_deep);
        // The times of a device that this process reads include its own requests.
        let shown = counted.filter(|_| own.is_none());
        ForegroundSample {
            probes: probes.latencies_s,
            waiting: probes.waiting_s,
            others: foreground.requests,
            counted: shown.map(|(counts, took_s)| (counts.reads + counts.writes, took_s)),
            busy: shown.map_or(foreground.waited_s, |(counts, _)| {
                counts.busy_ms as f64 / 1e3
            }),
        }
    }

    /// The kernel's counts since the last call, and the sum of the requests' latencies in seconds.
    fn counted(&mut self) -> Option<(DeviceCounts, f64)> {
        let now = self.counter.as_ref()?.read().ok()?;
        let before = self.before.replace(now)?;
        let counts = now.since(&before)?;
        let ms = |before: u64, now: u64| u64::from((now as u32).wrapping_sub(before as u32));
        let took = ms(before.read_ms, now.read_ms) + ms(before.write_ms, now.write_ms);
        Some((counts, took as f64 / 1e3))
    }
}

/// The background's own I/O on a device that counts it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnIo {
    /// Bytes of requests that completed or failed.
    pub bytes: f64,
    /// Bytes of requests in flight.
    pub in_flight: f64,
    /// True while the queue is deep, so that the kernel's counts are ahead of this process's.
    pub is_deep: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_on_the_rest_of_a_disk_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let class = folder.path().join("sys/class/block");
        let disk = folder.path().join("sys/devices/virtual/block/sda");
        let parts = ["sda1", "sda2", "sda3"];
        for part in parts {
            std::fs::create_dir_all(disk.join(part)).unwrap();
            std::fs::write(disk.join(part).join("partition"), &part[3..]).unwrap();
        }
        std::fs::create_dir_all(&class).unwrap();
        // Pages that were read.
        let stat = |folder: &std::path::Path, pages: u64| {
            let line = format!("{pages} 0 {} 0 0 0 0 0 0 0 0", 8 * pages);
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
        // Two of its partitions are members of one array, and the third is another program's.
        let shared = Shared::of(&[named("sda1"), named("sda3")], &devices);
        assert_eq!(shared.len(), 1);
        let mut foreground =
            Foreground::of(&named("sda1"), &root).with_shared_disks(&shared, &root);
        // 40 of the first itself, and 60 of the neighbour; those of the other member are the array's own.
        stat(&disk, 1200);
        stat(&disk.join("sda1"), 140);
        stat(&disk.join("sda2"), 160);
        stat(&disk.join("sda3"), 1100);
        assert_eq!(
            foreground.foreground_sample(None, || None).others,
            Some(100.0)
        );
        assert_eq!(
            foreground.foreground_sample(None, || None).others,
            Some(0.0)
        );
        // One that waits is no request yet, but the time goes on.
        std::fs::write(disk.join("sda1/stat"), "140 0 1120 0 0 0 0 0 1 250 250").unwrap();
        let seen = foreground.foreground_sample(None, || None);
        assert_eq!((seen.others, seen.busy), (Some(0.0), 0.25));
    }
}
