//! Simulated hosts with busy disks, for tests: figures with realistic noise, from counters of whole requests, sectors
//! and milliseconds, as the kernel has them.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use record::sample::*;
use record::{Bytes, Nanos};

use crate::testing::Random;

/// A host with several disks, an array over the first eight of them, and a partition on the last.
pub(crate) struct Host {
    random: Random,
    devices: Vec<Arc<Device>>,
    pub(crate) elapsed: Nanos,
    began: Timestamp,
    /// Slow changes of each disk's load, as factors.
    loads: Vec<f64>,
}

impl Host {
    pub(crate) fn new(disks: usize, seed: u64, began: Timestamp) -> Host {
        let mut devices = Vec::new();
        let mut add = |name: &str, kind: DeviceKind, lies_on: Vec<DeviceId>| {
            let id = DeviceId(devices.len() as u32);
            let mut device = Device::by_name(id, name, SampleTime::default());
            device.kind = kind;
            device.lies_on = lies_on;
            device.size = Some(Bytes::gib(500));
            device.model = Some("Amazon Elastic Block Store".to_owned());
            device.serial = Some(format!("vol0123456789abcde{:02}", id.0));
            device.queue_depth = Some(1023);
            devices.push(Arc::new(device));
            id
        };
        let disks: Vec<DeviceId> = (0..disks)
            .map(|nth| add(&format!("nvme{nth}n1"), DeviceKind::Disk, Vec::new()))
            .collect();
        if disks.len() >= 8 {
            add("md0", DeviceKind::Array, disks[..8].to_vec());
        }
        if let Some(last) = disks.last() {
            let name = format!("nvme{}n1p1", disks.len() - 1);
            add(&name, DeviceKind::Partition, vec![*last]);
        }
        Host {
            random: Random::new(seed),
            loads: vec![1.0; devices.len()],
            devices,
            elapsed: Nanos(0),
            began,
        }
    }

    /// A normally distributed value; `share` is its relative standard deviation.
    fn noisy(&mut self, mean: f64, share: f64) -> f64 {
        (mean * (1.0 + share * self.random.normal())).max(0.0)
    }

    /// Lets time pass without a sample.
    pub(crate) fn skip(&mut self, time: Nanos) {
        self.elapsed += time;
    }

    /// The sample of the next second.
    pub(crate) fn next(&mut self) -> Sample {
        let length = Nanos(1_000_000_000 + self.random.bits() % 200_000);
        self.elapsed += length;
        let wall = self.began + SignedDuration::from_nanos(self.elapsed.0 as i64);
        let seconds = length.as_secs_f64();
        let mut devices: Vec<DeviceSample> = Vec::new();
        for nth in 0..self.devices.len() {
            let device = Arc::clone(&self.devices[nth]);
            let one = match device.kind {
                DeviceKind::Partition => {
                    let mut same = devices[device.lies_on[0].0 as usize].clone();
                    same.device = device;
                    same
                }
                _ => self.device(nth, device, seconds),
            };
            devices.push(one);
        }
        Sample {
            at: SampleTime {
                wall: Some(wall),
                elapsed: self.elapsed,
            },
            length,
            gap: None,
            host: self.host(seconds),
            devices,
            removed: Vec::new(),
        }
    }

    /// Reads and writes of a database's pages and log, with waits that vary by a sixth from second to second, and a
    /// load that varies over minutes.
    fn device(&mut self, nth: usize, device: Arc<Device>, seconds: f64) -> DeviceSample {
        let drift = 1.0 + 0.01 * self.random.normal();
        self.loads[nth] = (self.loads[nth] * drift).clamp(0.3, 2.0);
        let load = self.loads[nth];
        let mut sample = DeviceSample::unknown(device);
        let mut weighted = 0.0;
        let read = (1800.0 * load, 16.0, 0.08, 0.7, 0.16, 2.0);
        let write = (900.0 * load, 24.0, 0.12, 1.1, 0.2, 150.0);
        for (kind, (rate, kib, by, ms, wander, merged)) in [(0, read), (1, write)] {
            let count = self.noisy(rate, by).round();
            let sectors = (count * self.noisy(kib * 2.0, 0.05)).round();
            let merged = self.noisy(merged, 0.2).round();
            let time = (count * self.noisy(ms, wander)).round();
            weighted += time;
            let flow = flow(count, sectors, merged, time, seconds);
            if kind == 0 {
                sample.read = flow;
            } else {
                sample.write = flow;
            }
        }
        sample.discard = flow(0.0, 0.0, 0.0, 0.0, seconds);
        let (count, time) = (
            self.noisy(40.0, 0.15).round(),
            self.noisy(30.0, 0.3).round(),
        );
        weighted += time;
        sample.flush = Flow {
            bytes: None,
            merged: None,
            size: None,
            ..flow(count, 0.0, 0.0, time, seconds)
        };
        sample.mean_in_flight = Some(weighted / seconds / 1e3);
        sample.in_flight = Some(self.noisy(weighted / 1e3, 0.5).round() as u64);
        let busy = self.noisy(850.0, 0.04).round().min(1000.0);
        sample.busy = Some(Fraction(busy / seconds / 1e3));
        sample.sum_up();
        sample
    }

    fn host(&mut self, seconds: f64) -> HostSample {
        let mut share = |mean: f64, by: f64| Fraction((self.noisy(mean, by) * 1e4).round() / 1e4);
        let mut line = |mean: f64| PressureLine {
            stalled: Some(share(mean, 0.3)),
            avg10: share(mean, 0.02),
            avg60: share(mean, 0.005),
            avg300: share(mean, 0.001),
        };
        let pressure = Pressure {
            some: line(0.3),
            full: Some(line(0.1)),
        };
        let cpu = CpuShares {
            user: share(0.2, 0.1),
            nice: Fraction(0.0),
            system: share(0.1, 0.1),
            iowait: share(0.2, 0.2),
            steal: share(0.01, 0.5),
            idle: share(0.5, 0.05),
        };
        let mut pages = |mean: f64, by: f64| Some(Bytes(4096 * self.noisy(mean, by) as u64));
        let memory = Memory {
            available: pages(4e6, 0.001),
            dirty: pages(2e4, 0.2),
            writeback: pages(500.0, 1.0),
            limit: Some(Bytes::gib(6)),
            background_limit: Some(Bytes::gib(3)),
        };
        let mut net = |mean: f64| {
            let packets = self.noisy(mean, 0.1).round();
            NetFlow {
                bytes: BytesPerSecond((packets * self.noisy(900.0, 0.05)).round() / seconds),
                packets: PerSecond(packets / seconds),
                errors: PerSecond(0.0),
                drops: PerSecond(0.0),
            }
        };
        let (rx, tx) = (net(30_000.0), net(25_000.0));
        HostSample {
            pressure: Some(pressure),
            load: Some(Load {
                one: (self.noisy(8.0, 0.01) * 100.0).round() / 100.0,
                five: 7.8,
                fifteen: 7.6,
            }),
            memory: Some(memory),
            cpu: Some(cpu),
            interfaces: vec![InterfaceSample {
                name: "ens5".into(),
                rx,
                tx,
            }],
            errors: Vec::new(),
            limits: Vec::new(),
            processes: Vec::new(),
            tracing: None,
        }
    }
}

/// A flow of the kernel's counts, computed as the collector does.
fn flow(count: f64, sectors: f64, merged: f64, milliseconds: f64, seconds: f64) -> Flow {
    let some = count > 0.0;
    Flow {
        iops: Some(PerSecond(count / seconds)),
        bytes: Some(BytesPerSecond(sectors * 512.0 / seconds)),
        merged: Some(PerSecond(merged / seconds)),
        wait: some.then(|| Nanos((milliseconds * 1e6 / count).round() as u64)),
        size: some.then(|| Bytes((sectors * 512.0 / count) as u64)),
    }
}
