//! Volume types of the clouds, from their public documentation.
//!
//! Source of rates and credits: Amazon EBS User Guide, "Amazon EBS volume types" with "General Purpose SSD
//! volumes" and "Provisioned IOPS SSD volumes", "I/O characteristics and monitoring", and "Initialize Amazon
//! EBS volumes". Latencies are promised there in words only ("single-digit millisecond", "under 500
//! microseconds" on average for io2), and how long a cold block takes is not said at all: the figures here
//! are of that order, and are assumptions. So is all of the local disk, as every instance type has another.

use record::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::{Burst, Cold, Corruption, Episodes, Errors, Latency, Slow, VolumeSpec};

/// EBS counts an I/O of an SSD volume up to this size as one operation: it merges adjacent ones
/// and splits larger ones (EBS User Guide, "I/O characteristics").
const EBS_IO: Bytes = Bytes::kib(256);

/// A kind of volume that is sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// EBS General Purpose gp3: 3,000 IOPS and 125 MiB/s unless more is provisioned; no burst.
    Gp3,
    /// EBS General Purpose gp2: 3 IOPS for each GiB, at least 100 and at most 16,000; below 3,000
    /// it bursts to 3,000 while its 5.4 million I/O credits last. 128 MiB/s up to 170 GiB, 250
    /// MiB/s above (between 170 and 334 GiB EBS gives those only while credits last).
    Gp2,
    /// EBS Provisioned IOPS io2: `iops` as provisioned, else 10,000 or the 1,000 for each GiB that
    /// are sold at most; 256 KiB/s for each of them, at most 4,000 MiB/s.
    Io2,
    /// A local NVMe disk: 100,000 IOPS, 90 us away, no throughput cap, and each request counts one.
    Nvme,
    /// A gp3 volume restored from a snapshot: each block of 512 KiB is fetched at its first use.
    Cold,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 5] = [
        Profile::Gp3,
        Profile::Gp2,
        Profile::Io2,
        Profile::Nvme,
        Profile::Cold,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Gp3 => "gp3",
            Profile::Gp2 => "gp2",
            Profile::Io2 => "io2",
            Profile::Nvme => "nvme",
            Profile::Cold => "cold",
        }
    }

    /// The profile of that name.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::ALL.into_iter().find(|p| p.name() == name)
    }
}

/// A mean latency with its minimum at half, in microseconds.
const fn latency(mean_us: u64) -> Latency {
    Latency {
        mean: Nanos(mean_us * 1000),
        min: Nanos(mean_us * 500),
        jitter: 0.3,
    }
}

impl VolumeSpec {
    /// A volume with no caps and no troubles, 500 us away.
    pub fn free(size: Bytes) -> VolumeSpec {
        VolumeSpec {
            profile: None,
            size,
            iops: None,
            throughput: None,
            burst: None,
            merge: Some(EBS_IO),
            latency: latency(500),
            cold: Cold {
                fraction: 0.0,
                block: Bytes::kib(512),
                min: Nanos(20_000_000),
                max: Nanos(80_000_000),
            },
            slow: Slow {
                factor: 10.0,
                when: Episodes::default(),
            },
            stalls: Episodes::default(),
            errors: Errors::default(),
            corruption: Corruption::default(),
            volatile: false,
            serial: None,
            seed: None,
        }
    }

    /// A volume as it is sold. `iops` is what is provisioned, where that decides the throughput.
    pub fn of(profile: Profile, size: Bytes, iops: Option<f64>) -> VolumeSpec {
        let mut spec = VolumeSpec::free(size);
        spec.profile = Some(profile);
        match profile {
            Profile::Gp3 => spec.gp3(),
            Profile::Cold => {
                spec.gp3();
                spec.cold.fraction = 1.0;
            }
            Profile::Gp2 => spec.gp2(),
            Profile::Io2 => spec.io2(iops),
            Profile::Nvme => {
                spec.iops = Some(100_000.0);
                spec.merge = None;
                spec.latency = latency(90);
            }
        }
        spec
    }

    fn gp3(&mut self) {
        self.iops = Some(3_000.0);
        self.throughput = Some(Bytes::mib(125));
        self.latency = latency(700);
    }

    fn gp2(&mut self) {
        const BURST: f64 = 3_000.0;
        let gib = self.gib();
        let baseline = (3.0 * gib).clamp(100.0, 16_000.0);
        self.iops = Some(baseline);
        self.throughput = Some(Bytes::mib(if gib <= 170.0 { 128 } else { 250 }));
        self.burst = (baseline < BURST).then_some(Burst {
            iops: BURST,
            credits: 5_400_000.0,
        });
        self.latency = latency(800);
    }

    fn io2(&mut self, provisioned: Option<f64>) {
        let iops = provisioned.unwrap_or_else(|| (1_000.0 * self.gib()).clamp(100.0, 10_000.0));
        let throughput = (iops * EBS_IO.0 as f64).min(Bytes::mib(4_000).0 as f64);
        self.iops = Some(iops);
        self.throughput = Some(Bytes(throughput as u64));
        self.latency = latency(400);
    }

    fn gib(&self) -> f64 {
        self.size.0 as f64 / Bytes::GIB.0 as f64
    }
}
