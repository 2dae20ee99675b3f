//! The rate of zeroing beside foreground I/O: other partitions of the same disk may be in use while one is zeroed.

use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::Root;
use linux::block::{Device, DeviceNumber, Devices};
use reader::{
    DiskCounter, ForegroundReport, KeepArgs, LeastLatency, MeasuredInterval, Pacer, Prober,
};
use record::{Bytes, Nanos};
use study::pace::{Allowed, IoCounts};

use super::place::{ClaimedDisk, whole};
use super::state::lock;

/// Interval at which the rate is updated.
const POLL: Duration = Duration::from_millis(40);
/// Wait until the next attempt while no write is allowed.
const IDLE_WAIT: Nanos = Nanos(10_000_000);

/// Rate that a disk's thread is allowed, and counts of its writes.
#[derive(Debug)]
pub(crate) struct Throttle {
    allowed: Mutex<Allowed>,
    /// Text with latency and target of the foreground.
    live: Mutex<Option<String>>,
    /// Bytes written since the last poll.
    written: AtomicU64,
    /// All bytes that this program has written or read so far, including probes.
    own: AtomicU64,
    /// Bytes of writes that were issued and are not in `own` yet.
    in_flight: AtomicU64,
    /// Minimum latency of the writes since the last poll.
    least: LeastLatency,
    /// True if the ledger was written since the last poll.
    commits: AtomicBool,
}

impl Throttle {
    /// A throttle that allows no writes yet.
    pub(crate) fn new() -> Throttle {
        Throttle {
            allowed: Mutex::new(Allowed::Nothing),
            live: Mutex::new(None),
            written: AtomicU64::new(0),
            own: AtomicU64::new(0),
            least: LeastLatency::default(),
            commits: AtomicBool::new(false),
            in_flight: AtomicU64::new(0),
        }
    }

    /// Rate that is allowed now.
    pub(crate) fn allowed(&self) -> Allowed {
        *lock(&self.allowed)
    }

    /// Sets what is allowed from now on.
    pub(crate) fn allow(&self, allowed: Allowed) {
        *lock(&self.allowed) = allowed;
    }

    /// Rate that is allowed, in bytes a second, `None` for no limit. The error is the time of the next attempt, where
    /// nothing may be written.
    pub(crate) fn rate(&self, now: Nanos) -> Result<Option<f64>, Nanos> {
        match self.allowed() {
            Allowed::All => Ok(None),
            Allowed::Rate(rate) => Ok(Some(rate)),
            Allowed::Nothing => Err(now + IDLE_WAIT),
        }
    }

    /// Text with latency and target of the foreground; `None` while there is no foreground.
    pub(crate) fn live(&self) -> Option<String> {
        lock(&self.live).clone()
    }

    /// Notes a write that is issued.
    pub(crate) fn issued(&self, bytes: Bytes) {
        self.in_flight.fetch_add(bytes.0, Relaxed);
    }

    /// Notes a write that has completed with this latency, or has failed, without one. Both count, as in the kernel's
    /// counters; so do bytes that the device zeroes itself.
    pub(crate) fn done(&self, bytes: Bytes, latency: Option<Nanos>) {
        self.least
            .note(bytes, reader::REQUEST_SIZE_BESIDE_FOREGROUND, latency);
        self.written.fetch_add(bytes.0, Relaxed);
        self.own.fetch_add(bytes.0, Release);
        self.in_flight.fetch_sub(bytes.0, Release);
    }

    /// Notes that the ledger is being written.
    pub(crate) fn commits(&self) {
        self.commits.store(true, Relaxed);
    }
}

/// Detector of foreground I/O on the disk of one place and on the disks that share a limit with it.
pub(crate) struct ForegroundWatch {
    disk: DiskCounter,
    beside: Vec<DiskCounter>,
    /// True if the ledger lies on any of these disks.
    holds_ledger: bool,
    /// Number of the place.
    number: usize,
    /// Numbers of all places on the same disk, whose counters include the writes to each.
    of_disk: Vec<usize>,
    /// Own bytes of all places on the disk at the last poll.
    own: u64,
    prober: Prober,
    pacer: Pacer,
}

impl ForegroundWatch {
    /// Detector for the whole disk that place `number` lies on; `None` where the kernel does not count, or the disk
    /// cannot be probed. All EBS volumes of an instance share the instance's limit, so the volumes that are not in
    /// `zeroed` are watched too.
    pub(crate) fn of(
        number: usize,
        zeroed: &[ClaimedDisk],
        (devices, root): (&Devices, &Root),
        below_ledger: &[DeviceNumber],
        keep: KeepArgs,
    ) -> Option<ForegroundWatch> {
        let device = devices.get(zeroed.get(number)?.number)?;
        let disk = whole(device, devices);
        let disk_of = |place: &ClaimedDisk| Some(whole(devices.get(place.number)?, devices).number);
        let of_zeroed: Vec<Option<DeviceNumber>> = zeroed.iter().map(disk_of).collect();
        let beside: Vec<&Device> = devices
            .iter()
            .filter(|one| reader::is_ebs(disk) && reader::is_ebs(one))
            .filter(|one| one.partition_of().is_none() && !of_zeroed.contains(&Some(one.number)))
            .collect();
        let mut watched = beside.iter().copied().chain([disk]);
        Some(ForegroundWatch {
            holds_ledger: watched.any(|one| below_ledger.contains(&one.number)),
            number,
            of_disk: (0..zeroed.len())
                .filter(|at| of_zeroed[*at] == Some(disk.number))
                .collect(),
            own: 0,
            disk: DiskCounter::open(disk, root)?,
            beside: beside
                .into_iter()
                .filter_map(|one| DiskCounter::open(one, root))
                .collect(),
            prober: Prober::start(root.locate(&device.node()), device.size).ok()?,
            pacer: Pacer::new(keep.targets().unwrap_or_default()),
        })
    }

    /// Updates the allowed rate until the disk's thread has ended. Returns foreground latency and targets.
    pub(crate) fn run(
        mut self,
        throttles: &[Throttle],
        ended: &AtomicBool,
    ) -> Option<ForegroundReport> {
        let mut polled = Instant::now();
        while !ended.load(Relaxed) {
            sleep(POLL);
            let seconds = polled.elapsed().as_secs_f64();
            polled = Instant::now();
            self.observe(throttles, seconds);
        }
        self.pacer.foreground()
    }

    fn observe(&mut self, throttles: &[Throttle], seconds: f64) {
        let throttle = &throttles[self.number];
        // Read before the own bytes, so that own writes that complete meanwhile do not count as foreground.
        let moved = self.moved();
        let probes = self.prober.take();
        throttle.own.fetch_add(probes.completed_bytes(), Relaxed);
        let of_disk = |count: fn(&Throttle) -> &AtomicU64| -> u64 {
            let throttles = self.of_disk.iter().map(|at| &throttles[*at]);
            throttles
                .map(|throttle| count(throttle).load(Acquire))
                .sum()
        };
        // In this order, so that a write that completes meanwhile is in both counts rather than in neither.
        let in_flight = of_disk(|throttle| &throttle.in_flight);
        let own = of_disk(|throttle| &throttle.own);
        let own_since = own - std::mem::replace(&mut self.own, own);
        let written = throttle.written.swap(0, Relaxed) as f64;
        let counts = moved.map(|(read, written)| IoCounts {
            read,
            written,
            own: own_since as f64,
            in_flight: (in_flight + probes.in_flight_bytes()) as f64,
        });
        let allowed = self.pacer.take(&MeasuredInterval {
            seconds,
            counts,
            commits: throttle.commits.swap(false, Relaxed) && self.holds_ledger,
            latencies_s: &probes.latencies_s,
            waiting_s: probes.waiting_s,
            background: written,
            is_busy: throttle.in_flight.load(Relaxed) > 0,
            request: reader::REQUEST_SIZE_BESIDE_FOREGROUND,
            own_latency_s: throttle.least.take(),
        });
        throttle.allow(allowed);
        *lock(&throttle.live) = self.pacer.live();
        self.prober.set_gap(self.pacer.controller().probe_gap_s());
    }

    /// Bytes read and bytes written, by the kernel's counters since the last call.
    fn moved(&mut self) -> Option<(f64, f64)> {
        let of_disk = self.disk.since()?;
        let of_others = self.beside.iter_mut().filter_map(DiskCounter::since);
        let all = std::iter::once(of_disk).chain(of_others);
        Some(all.fold((0.0, 0.0), |(read, written), one| {
            (
                read + one.read_bytes as f64,
                written + one.write_bytes as f64,
            )
        }))
    }
}
