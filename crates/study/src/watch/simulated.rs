//! A simulated host with known disks, for tests.

use std::sync::Arc;

use super::WatchEvent;
use record::raid::Level;
use record::sample::{
    ArraySample, BytesPerSecond, Device, DeviceId, DeviceKind, DeviceSample, Flow, Fraction,
    PerSecond, Progress, Sample, SampleTime, SyncAction,
};
use record::{Bytes, Nanos};

use super::{ChangeKind, Settings, Watch};
use crate::simulate::Rng;

/// Demand on a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Demand {
    /// Closed loop: about this number of requests is kept in flight.
    InFlight(f64),
    /// Open loop: this number of requests a second arrives, whether or not earlier ones have completed.
    Rate(f64),
}

/// A simulated disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    /// Base time of a request, in seconds.
    pub(crate) base_s: f64,
    /// Standard deviation of the logarithm of that time from second to second, and its autocorrelation.
    pub(crate) noise: f64,
    pub(crate) memory: f64,
    /// Maximum number of requests a second that the disk serves.
    pub(crate) cap: Option<f64>,
    /// Demand on it.
    pub(crate) demand: Demand,
    /// Standard deviation of the logarithm of the number in flight.
    pub(crate) restless: f64,
    /// The size of a request, in bytes.
    pub(crate) size: u64,
    /// The share of reads.
    pub(crate) reads: f64,
    /// Share of the reads that are cold, and the additional seconds of each.
    pub(crate) cold: (f64, f64),
    /// True if the disk completes nothing.
    pub(crate) stuck: bool,
    /// State of the noise of the disk and of its demand.
    pub(crate) state: f64,
    pub(crate) wish: f64,
}

/// Activity of a disk in a second.
#[derive(Clone, Copy, Debug, Default)]
struct DiskActivity {
    ops: f64,
    read_wait: f64,
    write_wait: f64,
    in_flight: f64,
}

impl Disk {
    /// A disk in good health with so many requests in flight.
    pub(crate) fn healthy(in_flight: f64) -> Disk {
        Disk {
            base_s: 0.001,
            noise: 0.12,
            memory: 0.6,
            cap: None,
            demand: Demand::InFlight(in_flight),
            restless: 0.1,
            size: 16_384,
            reads: 0.7,
            cold: (0.0, 0.0),
            stuck: false,
            state: 0.0,
            wish: 0.0,
        }
    }

    fn second(&mut self, rng: &mut Rng) -> DiskActivity {
        let step = (1.0 - self.memory * self.memory).sqrt();
        self.state = self.memory * self.state + step * rng.normal();
        self.wish = 0.8 * self.wish + 0.6 * rng.normal();
        if self.stuck {
            let in_flight = match self.demand {
                Demand::InFlight(count) => count,
                Demand::Rate(_) => 8.0,
            };
            return DiskActivity {
                in_flight,
                ..DiskActivity::default()
            };
        }
        let service = self.base_s * (self.noise * self.state).exp();
        // The number of cold blocks in a second is random.
        let cold = self.cold.0 * (1.0 + 0.5 * rng.normal()).clamp(0.0, 3.0);
        let fetch = cold.min(1.0) * self.cold.1;
        let alone = service + self.reads * fetch;
        let (ops, in_flight) = match self.demand {
            Demand::InFlight(count) => {
                let count = count * (self.restless * self.wish).exp();
                let free = count / alone;
                let held = self.cap.filter(|cap| *cap < free);
                let by_chance = || free + 0.3 * free.sqrt() * rng.normal();
                (held.unwrap_or_else(by_chance).round().max(1.0), count)
            }
            Demand::Rate(rate) => {
                let ops = rng.poisson(rate).min(self.cap.unwrap_or(f64::INFINITY));
                (ops, ops * alone)
            }
        };
        let queueing = (in_flight / ops.max(1.0) - alone).max(0.0);
        DiskActivity {
            ops,
            read_wait: service + fetch + queueing,
            write_wait: service + queueing,
            in_flight,
        }
    }
}

/// A constant number of requests in flight over all disks, with a shared limit that serves the disks with a queue in
/// turn: a closed network of queues (Gordon and Newell, 1967).
pub(crate) struct ClosedLoad {
    /// The length of each disk's queue.
    queues: Vec<u32>,
    /// Number of requests served in a second.
    per_second: u32,
}

impl ClosedLoad {
    /// A load of this number of requests in flight on that many disks.
    pub(crate) fn new(disks: usize, in_flight: u32, per_second: u32) -> ClosedLoad {
        let mut queues = vec![0; disks];
        for number in 0..in_flight as usize {
            queues[number % disks] += 1;
        }
        ClosedLoad { queues, per_second }
    }

    fn any(&self, rng: &mut Rng) -> usize {
        (rng.uniform() * self.queues.len() as f64) as usize
    }

    fn second(&mut self, rng: &mut Rng) -> Vec<DiskActivity> {
        let mut did = vec![DiskActivity::default(); self.queues.len()];
        for _ in 0..self.per_second {
            let served = loop {
                let one = self.any(rng);
                if self.queues[one] > 0 {
                    break one;
                }
            };
            self.queues[served] -= 1;
            did[served].ops += 1.0;
            let next = self.any(rng);
            self.queues[next] += 1;
            for (did, queue) in did.iter_mut().zip(&self.queues) {
                did.in_flight += f64::from(*queue) / f64::from(self.per_second);
            }
        }
        for did in &mut did {
            // By Little's law.
            let wait = did.in_flight / did.ops.max(1.0);
            (did.read_wait, did.write_wait) = (wait, wait);
        }
        did
    }
}

/// A host with disks, possibly in an array.
pub(crate) struct Host {
    /// The disks, called `d0`, `d1`, …
    pub(crate) disks: Vec<Disk>,
    /// The level of the array `md0` of all disks.
    pub(crate) level: Option<Level>,
    /// md's action on the array.
    pub(crate) action: SyncAction,
    /// Maximum number of requests a second of all disks together.
    pub(crate) shared_cap: Option<f64>,
    /// Requests that are always in flight, instead of the disks' separate demands.
    pub(crate) crowd: Option<ClosedLoad>,
    /// Capacity of each disk's queue, in requests.
    pub(crate) queue_depth: Option<u32>,
    now: Nanos,
}

impl Host {
    /// A host of these disks.
    pub(crate) fn of(disks: Vec<Disk>) -> Host {
        Host {
            disks,
            level: None,
            action: SyncAction::Idle,
            shared_cap: None,
            crowd: None,
            queue_depth: None,
            now: Nanos(0),
        }
    }

    /// The next second.
    pub(crate) fn second(&mut self, rng: &mut Rng) -> Sample {
        self.now += Nanos::from_secs(1);
        let at = SampleTime {
            wall: None,
            elapsed: self.now,
        };
        let mut did: Vec<DiskActivity> =
            self.disks.iter_mut().map(|disk| disk.second(rng)).collect();
        self.share(&mut did, rng);
        if let Some(crowd) = &mut self.crowd {
            did = crowd.second(rng);
        }
        let count = u32::try_from(did.len()).unwrap();
        let mut devices: Vec<DeviceSample> = did
            .iter()
            .zip(&self.disks)
            .zip(0..)
            .map(|((did, disk), id)| {
                let mut device = Device::by_name(DeviceId(id), &format!("d{id}"), at);
                device.kind = DeviceKind::Disk;
                device.queue_depth = self.queue_depth;
                device_sample(device, did, disk)
            })
            .collect();
        if let Some(level) = self.level {
            let mut device = Device::by_name(DeviceId(count), "md0", at);
            device.level = Some(level.into());
            device.lies_on = (0..count).map(DeviceId).collect();
            let mut array = device_sample(device, &together(&did), &self.disks[0]);
            array.array = Some(ArraySample {
                action: Some(self.action),
                position: self.action.is_work().then_some(Progress {
                    done: Bytes::mib(1),
                    of: Bytes::mib(2),
                }),
                ..ArraySample::default()
            });
            devices.push(array);
        }
        Sample {
            at,
            length: Nanos::from_secs(1),
            devices,
            ..Sample::default()
        }
    }

    /// Divides the shared limit among the disks at random, differently every second.
    fn share(&self, did: &mut [DiskActivity], rng: &mut Rng) {
        let whole: f64 = did.iter().map(|did| did.ops).sum();
        let Some(cap) = self.shared_cap.filter(|cap| *cap < whole) else {
            return;
        };
        let weights: Vec<f64> = did
            .iter()
            .map(|did| did.ops * (0.3 * rng.normal()).exp())
            .collect();
        let sum: f64 = weights.iter().sum();
        // Grants are whole requests, and no fraction is lost.
        let (mut granted, mut due) = (0.0, 0.0);
        for (did, weight) in did.iter_mut().zip(weights) {
            due += cap * weight / sum;
            did.ops = (due.round() - granted).max(1.0);
            granted = due.round();
            let wait = did.in_flight / did.ops;
            did.read_wait = wait;
            did.write_wait = wait;
        }
    }

    /// Plays this number of seconds, applies `change` before each, and returns all findings.
    pub(crate) fn play(
        mut self,
        seconds: u32,
        rng: &mut Rng,
        change: impl Fn(&mut Host, u32),
    ) -> Vec<WatchEvent> {
        let mut watch = Watch::new(Settings::default());
        let mut found = Vec::new();
        for second in 0..seconds {
            change(&mut self, second);
            let sample = self.second(rng);
            let opened = watch.observe(&sample).into_iter();
            let opened = opened.filter(|change| change.kind == ChangeKind::Opened);
            found.extend(opened.map(|change| change.event));
        }
        found
    }
}

/// Sum over an array's disks.
fn together(did: &[DiskActivity]) -> DiskActivity {
    let ops: f64 = did.iter().map(|did| did.ops).sum();
    let mean = |wait: fn(&DiskActivity) -> f64| {
        did.iter().map(|did| did.ops * wait(did)).sum::<f64>() / ops.max(1.0)
    };
    DiskActivity {
        ops,
        read_wait: mean(|did| did.read_wait),
        write_wait: mean(|did| did.write_wait),
        in_flight: did.iter().map(|did| did.in_flight).sum(),
    }
}

fn device_sample(device: Device, did: &DiskActivity, disk: &Disk) -> DeviceSample {
    let mut sample = DeviceSample::unknown(Arc::new(device));
    let reads = (did.ops * disk.reads).round();
    // The kernel counts time in milliseconds.
    let flow = |ops: f64, wait: f64| Flow {
        iops: Some(PerSecond(ops)),
        bytes: Some(BytesPerSecond(ops * disk.size as f64)),
        merged: Some(PerSecond(0.0)),
        wait: (ops > 0.0).then(|| Nanos(((ops * wait * 1e3).round() * 1e6 / ops) as u64)),
        size: (ops > 0.0).then_some(Bytes(disk.size)),
    };
    sample.read = flow(reads, did.read_wait);
    sample.write = flow(did.ops - reads, did.write_wait);
    sample.mean_in_flight = Some(did.in_flight);
    sample.in_flight = Some(did.in_flight.round() as u64);
    sample.busy = Some(Fraction(did.in_flight.min(1.0)));
    sample.sum_up();
    sample
}
