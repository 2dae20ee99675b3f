//! The volume types that clouds sell, with their caps and burst: one row of [`TABLE`] a type. The lab models them,
//! and verbs name them in what they conclude.
//!
//! Source: Amazon EBS User Guide, "Amazon EBS volume types" with "General Purpose SSD volumes" and "Provisioned
//! IOPS SSD volumes", "I/O characteristics and monitoring". Latencies are promised there in words only
//! ("single-digit millisecond", "under 500 microseconds" on average for io2); the figures here are of that order,
//! and are assumptions.

use record::{Bytes, Nanos};

/// A volume type.
#[derive(Debug, PartialEq)]
pub struct VolumeType {
    /// Its name with the provider, in lower case.
    pub name: &'static str,
    /// Sustained IOPS of a volume for which none are provisioned.
    pub iops: BaselineIops,
    /// Sustained bytes a second.
    pub throughput: BaselineThroughput,
    /// IOPS above the baseline, paid with credits; only volumes with a lower baseline burst.
    pub burst: Option<Burst>,
    /// The largest I/O that counts as one operation: adjacent ones merge up to it, larger ones are split by it.
    pub merge: Bytes,
    /// Mean latency of an I/O that waits for nothing.
    pub latency: Nanos,
}

/// IOPS by size: `per_gib` for each GiB, within bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaselineIops {
    /// IOPS for each GiB.
    pub per_gib: f64,
    /// A smaller volume has these.
    pub least: f64,
    /// A larger volume has these.
    pub most: f64,
}

/// Bytes a second, by what they depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BaselineThroughput {
    /// The same for every volume.
    Constant(Bytes),
    /// One figure up to a size, another above it.
    BySize {
        /// The largest of the small volumes.
        up_to: Bytes,
        /// Of a volume up to that size.
        small: Bytes,
        /// Of a larger volume.
        large: Bytes,
    },
    /// So much for each of its IOPS.
    ByIops {
        /// For each of its IOPS.
        each: Bytes,
        /// Of any volume, at most.
        most: Bytes,
    },
}

/// Speed above the baseline, paid with credits of one I/O each, which flow back at the baseline's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// IOPS while credits last.
    pub iops: f64,
    /// Credits of a new volume, which is also the most that are kept.
    pub credits: f64,
}

/// The caps of one volume.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caps {
    /// Sustained IOPS.
    pub iops: f64,
    /// Sustained bytes a second.
    pub throughput: Bytes,
    /// Its burst, if it has one.
    pub burst: Option<Burst>,
}

/// The size up to which EBS counts an I/O of an SSD volume as one operation ("I/O characteristics").
const EBS_IO: Bytes = Bytes::kib(256);

/// EBS General Purpose gp3: 3,000 IOPS and 125 MiB/s unless more is provisioned.
pub static GP3: VolumeType = VolumeType {
    name: "gp3",
    iops: BaselineIops {
        per_gib: 0.0,
        least: 3_000.0,
        most: 3_000.0,
    },
    throughput: BaselineThroughput::Constant(Bytes::mib(125)),
    burst: None,
    merge: EBS_IO,
    latency: Nanos(700_000),
};

/// EBS General Purpose gp2. (Between 170 and 334 GiB EBS gives 250 MiB/s only while credits last.)
pub static GP2: VolumeType = VolumeType {
    name: "gp2",
    iops: BaselineIops {
        per_gib: 3.0,
        least: 100.0,
        most: 16_000.0,
    },
    throughput: BaselineThroughput::BySize {
        up_to: Bytes::gib(170),
        small: Bytes::mib(128),
        large: Bytes::mib(250),
    },
    burst: Some(Burst {
        iops: 3_000.0,
        credits: 5_400_000.0,
    }),
    merge: EBS_IO,
    latency: Nanos(800_000),
};

/// EBS Provisioned IOPS io2. Without a number of IOPS, as many as are sold for the size, 10,000 at most.
pub static IO2: VolumeType = VolumeType {
    name: "io2",
    iops: BaselineIops {
        per_gib: 1_000.0,
        least: 100.0,
        most: 10_000.0,
    },
    throughput: BaselineThroughput::ByIops {
        each: EBS_IO,
        most: Bytes::mib(4_000),
    },
    burst: None,
    merge: EBS_IO,
    latency: Nanos(400_000),
};

/// All volume types.
pub static TABLE: [&VolumeType; 3] = [&GP3, &GP2, &IO2];

impl VolumeType {
    /// The type of that name.
    pub fn named(name: &str) -> Option<&'static VolumeType> {
        TABLE.into_iter().find(|row| row.name == name)
    }

    /// The caps of a volume of this size with so many provisioned IOPS, or with the baseline. Throughput follows
    /// the provisioned IOPS; the burst is that of the baseline.
    pub fn caps(&self, size: Bytes, provisioned: Option<f64>) -> Caps {
        let gib = size.0 as f64 / Bytes::GIB.0 as f64;
        let baseline = (self.iops.per_gib * gib).clamp(self.iops.least, self.iops.most);
        let iops = provisioned.unwrap_or(baseline);
        let throughput = match self.throughput {
            BaselineThroughput::Constant(bytes) => bytes,
            BaselineThroughput::BySize {
                up_to,
                small,
                large,
            } => {
                if size <= up_to {
                    small
                } else {
                    large
                }
            }
            BaselineThroughput::ByIops { each, most } => {
                Bytes((iops * each.0 as f64).min(most.0 as f64) as u64)
            }
        };
        Caps {
            iops,
            throughput,
            burst: self.burst.filter(|burst| baseline < burst.iops),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_rows_are_consistent() {
        for row in TABLE {
            assert!(std::ptr::eq(VolumeType::named(row.name).unwrap(), row));
            assert!(row.iops.least <= row.iops.most, "{}", row.name);
        }
        assert_eq!(VolumeType::named("gp1"), None);
    }

    #[test]
    fn caps_follow_size_and_provisioned_iops() {
        let gp2 = GP2.caps(Bytes::gib(100), None);
        assert_eq!((gp2.iops, gp2.burst), (300.0, GP2.burst));
        assert_eq!(GP2.caps(Bytes::gib(1_000), None).burst, None);
        let large = GP2.caps(Bytes::gib(6_000), None);
        assert_eq!((large.iops, large.throughput), (16_000.0, Bytes::mib(250)));
        let io2 = IO2.caps(Bytes::gib(16), Some(400.0));
        assert_eq!((io2.iops, io2.throughput), (400.0, Bytes::mib(100)));
        let most = IO2.caps(Bytes::gib(1_024), Some(256_000.0));
        assert_eq!(most.throughput, Bytes::mib(4_000));
        assert_eq!(GP3.caps(Bytes::GIB, None).throughput, Bytes::mib(125));
    }
}
