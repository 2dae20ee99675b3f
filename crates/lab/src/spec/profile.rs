//! Profiles of volumes: a volume type of a cloud ([`domain::volume_type`]), or a type of the lab.
//!
//! The latency of a cold block is not documented (Amazon EBS User Guide, "Initialize Amazon EBS volumes"):
//! the figures here are an assumption. So are all figures of the local disk, which differ by instance type.

use domain::volume_type::{GP3, TABLE, VolumeType};
use record::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::{
    Burst, ColdBlocks, Corruption, Episodes, Errors, FailSlow, Latency, ThroughputBurst, VolumeSpec,
};

/// A kind of volume.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "&'static str", try_from = "String")]
pub enum Profile {
    /// A volume type that a cloud sells.
    Sold(&'static VolumeType),
    /// A local NVMe disk: 100,000 IOPS, 90 us away, no throughput cap, and each request counts one.
    Nvme,
    /// A gp3 volume restored from a snapshot: each block of 512 KiB is fetched at its first use.
    Cold,
}

impl Profile {
    /// All profiles.
    pub fn all() -> impl Iterator<Item = Profile> {
        let sold = TABLE.into_iter().map(Profile::Sold);
        sold.chain([Profile::Nvme, Profile::Cold])
    }

    /// The names of all profiles, separated by commas.
    pub fn names() -> String {
        Profile::all()
            .map(Profile::name)
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Name of the profile on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Sold(sold) => sold.name,
            Profile::Nvme => "nvme",
            Profile::Cold => "cold",
        }
    }

    /// The profile with that name.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::all().find(|profile| profile.name() == name)
    }
}

impl From<Profile> for &'static str {
    fn from(profile: Profile) -> &'static str {
        profile.name()
    }
}

impl TryFrom<String> for Profile {
    type Error = String;

    fn try_from(name: String) -> Result<Profile, String> {
        Profile::named(&name).ok_or_else(|| format!("'{name}' is no profile"))
    }
}

/// A mean latency with half of it as the minimum.
const fn latency(mean: Nanos) -> Latency {
    Latency {
        mean,
        min: Nanos(mean.0 / 2),
        jitter: 0.3,
    }
}

impl VolumeSpec {
    /// A volume without caps and faults, with a latency of 500 us.
    pub fn free(size: Bytes) -> VolumeSpec {
        VolumeSpec {
            profile: None,
            size,
            iops: None,
            throughput: None,
            burst: None,
            throughput_burst: None,
            merge: Some(GP3.merge),
            latency: latency(Nanos(500_000)),
            cold: ColdBlocks {
                fraction: 0.0,
                block: Bytes::kib(512),
                min: Nanos(20_000_000),
                max: Nanos(80_000_000),
                rate: None,
            },
            slow: FailSlow {
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

    /// A volume type of a cloud. `iops` is the provisioned rate, if the throughput depends on it.
    pub fn of(profile: Profile, size: Bytes, iops: Option<f64>) -> VolumeSpec {
        let mut spec = VolumeSpec::free(size);
        spec.profile = Some(profile);
        match profile {
            Profile::Sold(sold) => spec.cap(sold, iops),
            Profile::Cold => {
                spec.cap(&GP3, iops);
                spec.cold.fraction = 1.0;
            }
            Profile::Nvme => {
                spec.iops = Some(100_000.0);
                spec.merge = None;
                spec.latency = latency(Nanos(90_000));
            }
        }
        spec
    }

    fn cap(&mut self, sold: &VolumeType, iops: Option<f64>) {
        let caps = sold.caps(self.size, iops);
        self.iops = Some(caps.iops);
        self.throughput = Some(caps.throughput);
        self.burst = caps.burst.map(|burst| Burst {
            iops: burst.iops,
            credits: burst.credits,
        });
        self.throughput_burst = caps.throughput_burst.map(|throughput| ThroughputBurst {
            throughput,
            credits: self.size,
        });
        self.merge = Some(sold.merge);
        self.latency = latency(sold.latency);
    }
}
