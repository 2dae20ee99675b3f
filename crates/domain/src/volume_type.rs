//! The volume types of clouds, with their caps, burst, limits and prices: one row of [`TABLE`] for each type. The lab
//! models them, `cost` and `sweep` price them, and verbs name them in their conclusions.
//!
//! Source: Amazon EBS User Guide, "Amazon EBS volume types" with "General Purpose SSD volumes" and "Provisioned
//! IOPS SSD volumes", "Throughput Optimized HDD and Cold HDD volumes", "I/O characteristics and monitoring"; for gp3's
//! 80,000 IOPS and 2,000 MiB/s the Amazon EC2 API Reference, CreateVolume. Latencies are promised there in words only
//! ("single-digit millisecond", "under 500 microseconds" on average for io2); the figures here are of that order,
//! and are assumptions.

use record::{Bytes, Nanos};

use crate::price::{self, Price};

/// A type of cloud volumes: its limits and its price.
#[derive(Debug, PartialEq)]
pub struct VolumeType {
    /// Its name at the provider, in lower case.
    pub name: &'static str,
    /// Sustained IOPS of a volume without provisioned IOPS.
    pub iops: BaselineIops,
    /// Sustained bytes a second.
    pub throughput: BaselineThroughput,
    /// IOPS above the baseline, paid with credits; only volumes with a lower baseline burst.
    pub burst: Option<IopsBurst>,
    /// Bytes a second above the baseline, paid with credits.
    pub throughput_burst: Option<ThroughputBurst>,
    /// Maximum size of an I/O that counts as one operation: adjacent ones are merged up to it, larger ones are split.
    pub merge: Bytes,
    /// Mean latency of an I/O that does not queue.
    pub latency: Nanos,
    /// The smallest and the largest volume.
    pub sizes: (Bytes, Bytes),
    /// IOPS and throughput that can be provisioned; `None` if the size decides.
    pub provision: Option<Provision>,
    /// Price of the type in one region.
    pub price: Price,
}

/// Limits of what can be provisioned for one volume.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Provision {
    /// Minimum IOPS that are sold.
    pub least_iops: f64,
    /// Maximum IOPS of a volume.
    pub most_iops: f64,
    /// Maximum IOPS for each GiB.
    pub iops_per_gib: f64,
    /// Maximum throughput of a volume, and for each IOPS, if throughput is provisioned separately.
    pub throughput: Option<(Bytes, Bytes)>,
}

/// IOPS by size: `per_gib` for each GiB, within bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaselineIops {
    /// IOPS for each GiB.
    pub per_gib: f64,
    /// Minimum, for smaller volumes.
    pub least: f64,
    /// Maximum, for larger volumes.
    pub most: f64,
}

/// Baseline throughput, in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BaselineThroughput {
    /// The same throughput for volumes of every size.
    Constant(Bytes),
    /// Two values: one up to a size, another above it.
    BySize {
        /// The largest of the small volumes.
        up_to: Bytes,
        /// Bytes a second of a volume up to that size.
        small: Bytes,
        /// Bytes a second of a larger volume.
        large: Bytes,
    },
    /// In proportion to the size.
    ByTib {
        /// Bytes a second for each TiB.
        each: Bytes,
        /// Maximum of any volume, in bytes a second.
        most: Bytes,
    },
    /// In proportion to the IOPS.
    ByIops {
        /// Bytes a second for each of the volume's IOPS.
        each: Bytes,
        /// Maximum of any volume, in bytes a second.
        most: Bytes,
    },
}

/// Speed above the baseline, paid with credits of one I/O each, which are refilled at the baseline's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IopsBurst {
    /// IOPS while credits last.
    pub iops: f64,
    /// Credits of a new volume, which is also the maximum that a volume keeps.
    pub credits: f64,
}

/// Bytes a second above the baseline, paid with credits of one byte each, which are refilled at the baseline's rate. A
/// new volume has as many credits as bytes, which is also the maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThroughputBurst {
    /// Bytes a second for each TiB of the volume, while credits last.
    pub per_tib: Bytes,
    /// Maximum of any volume, in bytes a second.
    pub most: Bytes,
}

/// The caps of one volume.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VolumeCaps {
    /// Sustained IOPS.
    pub iops: f64,
    /// Sustained bytes a second.
    pub throughput: Bytes,
    /// Burst of IOPS; `None` for a type without one.
    pub burst: Option<IopsBurst>,
    /// Bytes a second while its throughput credits last; `None` without a burst.
    pub throughput_burst: Option<Bytes>,
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
    throughput_burst: None,
    merge: EBS_IO,
    latency: Nanos(700_000),
    sizes: (Bytes::gib(1), Bytes::gib(64 << 10)),
    provision: Some(Provision {
        least_iops: 3_000.0,
        most_iops: 80_000.0,
        iops_per_gib: 500.0,
        throughput: Some((Bytes::mib(2_000), Bytes::kib(256))),
    }),
    price: price::GP3,
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
    burst: Some(IopsBurst {
        iops: 3_000.0,
        credits: 5_400_000.0,
    }),
    throughput_burst: None,
    merge: EBS_IO,
    latency: Nanos(800_000),
    sizes: (Bytes::gib(1), Bytes::gib(16 << 10)),
    provision: None,
    price: price::GP2,
};

/// EBS Provisioned IOPS io1. Above 32,000 IOPS EBS gives up to 1,000 MiB/s, which is left out.
pub static IO1: VolumeType = VolumeType {
    name: "io1",
    iops: BaselineIops {
        per_gib: 50.0,
        least: 100.0,
        most: 10_000.0,
    },
    throughput: BaselineThroughput::ByIops {
        each: EBS_IO,
        most: Bytes::mib(500),
    },
    burst: None,
    throughput_burst: None,
    merge: EBS_IO,
    latency: Nanos(700_000),
    sizes: (Bytes::gib(4), Bytes::gib(16 << 10)),
    provision: Some(Provision {
        least_iops: 100.0,
        most_iops: 64_000.0,
        iops_per_gib: 50.0,
        throughput: None,
    }),
    price: price::IO1,
};

/// EBS Provisioned IOPS io2. Without a given number, the maximum IOPS for the size are assumed, at most 10,000.
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
    throughput_burst: None,
    merge: EBS_IO,
    latency: Nanos(400_000),
    sizes: (Bytes::gib(4), Bytes::gib(64 << 10)),
    provision: Some(Provision {
        least_iops: 100.0,
        most_iops: 256_000.0,
        iops_per_gib: 1_000.0,
        throughput: None,
    }),
    price: price::IO2,
};

/// The size up to which EBS counts an I/O of a HDD volume as one operation ("I/O characteristics").
const EBS_HDD_IO: Bytes = Bytes::mib(1);

/// EBS Throughput Optimized HDD st1.
pub static ST1: VolumeType = VolumeType {
    name: "st1",
    iops: BaselineIops {
        per_gib: 0.0,
        least: 500.0,
        most: 500.0,
    },
    throughput: BaselineThroughput::ByTib {
        each: Bytes::mib(40),
        most: Bytes::mib(500),
    },
    burst: None,
    throughput_burst: Some(ThroughputBurst {
        per_tib: Bytes::mib(250),
        most: Bytes::mib(500),
    }),
    merge: EBS_HDD_IO,
    latency: Nanos(8_000_000),
    sizes: (Bytes::gib(125), Bytes::gib(16 << 10)),
    provision: None,
    price: price::ST1,
};

/// EBS Cold HDD sc1.
pub static SC1: VolumeType = VolumeType {
    name: "sc1",
    iops: BaselineIops {
        per_gib: 0.0,
        least: 250.0,
        most: 250.0,
    },
    throughput: BaselineThroughput::ByTib {
        each: Bytes::mib(12),
        most: Bytes::mib(192),
    },
    burst: None,
    throughput_burst: Some(ThroughputBurst {
        per_tib: Bytes::mib(80),
        most: Bytes::mib(250),
    }),
    merge: EBS_HDD_IO,
    latency: Nanos(10_000_000),
    sizes: (Bytes::gib(125), Bytes::gib(16 << 10)),
    provision: None,
    price: price::SC1,
};

/// All volume types.
pub static TABLE: [&VolumeType; 6] = [&GP3, &GP2, &IO1, &IO2, &ST1, &SC1];

impl BaselineIops {
    /// IOPS of a volume of this size.
    pub fn of(&self, size: Bytes) -> f64 {
        let gib = size.0 as f64 / Bytes::GIB.0 as f64;
        (self.per_gib * gib).clamp(self.least, self.most)
    }
}

impl BaselineThroughput {
    /// Bytes a second of a volume of this size with `iops` IOPS.
    pub fn of(&self, size: Bytes, iops: f64) -> Bytes {
        let by = |each: Bytes, amount: f64, most: Bytes| {
            Bytes((amount * each.0 as f64).min(most.0 as f64) as u64)
        };
        match *self {
            BaselineThroughput::Constant(bytes) => bytes,
            BaselineThroughput::BySize { up_to, small, .. } if size <= up_to => small,
            BaselineThroughput::BySize { large, .. } => large,
            BaselineThroughput::ByTib { each, most } => {
                by(each, size.0 as f64 / (1u64 << 40) as f64, most)
            }
            BaselineThroughput::ByIops { each, most } => by(each, iops, most),
        }
    }
}

impl VolumeType {
    /// The type with this name.
    pub fn named(name: &str) -> Option<&'static VolumeType> {
        TABLE.into_iter().find(|row| row.name == name)
    }

    /// The caps of a volume of this size with `provisioned` IOPS, or with the baseline. Throughput follows the
    /// provisioned IOPS; the burst is that of the baseline.
    pub fn caps(&self, size: Bytes, provisioned: Option<f64>) -> VolumeCaps {
        let baseline = self.iops.of(size);
        let iops = provisioned.unwrap_or(baseline);
        let throughput = self.throughput.of(size, iops);
        let burst = self.throughput_burst.map(|burst| {
            let (each, most) = (burst.per_tib, burst.most);
            BaselineThroughput::ByTib { each, most }.of(size, iops)
        });
        VolumeCaps {
            iops,
            throughput,
            burst: self.burst.filter(|burst| baseline < burst.iops),
            throughput_burst: burst.filter(|burst| throughput < *burst),
        }
    }

    /// Limits of this type that the size, the IOPS or the bytes a second of a volume violate, one sentence each. IOPS
    /// and bytes a second that are `None`, or not provisioned separately from the size, violate none.
    pub fn outside(
        &self,
        size: Bytes,
        iops: Option<f64>,
        throughput: Option<Bytes>,
    ) -> Vec<String> {
        let (name, (smallest, largest)) = (self.name, self.sizes);
        let mut sentences = Vec::new();
        if !(smallest..=largest).contains(&size) {
            sentences.push(format!(
                "a volume of type {name} has {smallest} to {largest}, not {size}"
            ));
        }
        let Some(limits) = self.provision else {
            return sentences;
        };
        if let Some(iops) = iops.filter(|iops| *iops < limits.least_iops) {
            let least = limits.least_iops;
            sentences.push(format!(
                "a volume of type {name} has at least {least} IOPS, not {iops}"
            ));
        }
        // If throughput can be provisioned, the constant baseline is the minimum.
        if let BaselineThroughput::Constant(least) = self.throughput
            && let Some(throughput) = throughput.filter(|throughput| *throughput < least)
        {
            sentences.push(format!(
                "a volume of type {name} has at least {least} a second, not {throughput}"
            ));
        }
        sentences
    }

    /// Checks that a volume of this size is sold with these IOPS and bytes a second, if they are provisioned
    /// separately from its size. For a type without provisioning, and for `None`, nothing is checked.
    ///
    /// # Errors
    /// A sentence that describes what is sold.
    pub fn check_ratios(
        &self,
        size: Bytes,
        iops: Option<f64>,
        throughput: Option<Bytes>,
    ) -> Result<(), String> {
        let Some(limits) = self.provision else {
            return Ok(());
        };
        let name = self.name;
        let per_gib = limits.iops_per_gib * size.0 as f64 / Bytes::GIB.0 as f64;
        // A small volume has at least its baseline.
        let most = limits.most_iops.min(per_gib.max(self.iops.least));
        if let Some(iops) = iops.filter(|iops| *iops > most) {
            return Err(format!(
                "a volume of type {name} and {size} has at most {most:.0} IOPS ({} for each GiB, {} in all), not {iops}",
                limits.iops_per_gib, limits.most_iops
            ));
        }
        let (Some((most, each)), Some(throughput)) = (limits.throughput, throughput) else {
            return Ok(());
        };
        if throughput > most {
            let [most, throughput] = distinct([most, throughput]);
            return Err(format!(
                "a volume of type {name} has at most {most} a second, not {throughput}"
            ));
        }
        let iops = iops.unwrap_or(self.iops.of(size)).max(self.iops.least);
        let by_iops = Bytes((each.0 as f64 * iops) as u64);
        if throughput > by_iops {
            let [by_iops, throughput] = distinct([by_iops, throughput]);
            return Err(format!(
                "a volume of type {name} with {iops} IOPS has at most {by_iops} a second ({each} for each of them), not \
                 {throughput}"
            ));
        }
        Ok(())
    }
}

/// Texts of two different amounts that differ: in their own units, or else in MiB or bytes.
fn distinct(amounts: [Bytes; 2]) -> [String; 2] {
    let usual = amounts.map(|amount| amount.to_string());
    if usual[0] != usual[1] {
        return usual;
    }
    let is_whole = |amount: &Bytes| amount.0.is_multiple_of(Bytes::MIB.0);
    match amounts.iter().all(is_whole) {
        true => amounts.map(|amount| format!("{} MiB", amount.0 / Bytes::MIB.0)),
        false => amounts.map(|amount| format!("{} B", amount.0)),
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
            assert!(row.sizes.0 < row.sizes.1, "{}", row.name);
            assert!(row.price.gib_month > 0.0, "{}", row.name);
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
        let st1 = ST1.caps(Bytes::gib(2_048), None);
        assert_eq!((st1.iops, st1.throughput), (500.0, Bytes::mib(80)));
        assert_eq!(st1.throughput_burst, Some(Bytes::mib(500)));
        let full = ST1.caps(Bytes::gib(12_800), None);
        assert_eq!(
            (full.throughput, full.throughput_burst),
            (Bytes::mib(500), None)
        );
        let sc1 = SC1.caps(Bytes::gib(1_024), None);
        assert_eq!(
            (sc1.throughput, sc1.throughput_burst),
            (Bytes::mib(12), Some(Bytes::mib(80)))
        );
    }

    #[test]
    fn ratios_are_those_that_are_sold() {
        let (gib, mib) = (Bytes::gib, Bytes::mib);
        for (sold, size, iops, throughput) in [
            (&GP3, gib(1), Some(3_000.0), Some(mib(125))),
            (&GP3, gib(12), Some(6_000.0), Some(mib(1_500))),
            (&GP3, gib(160), Some(80_000.0), Some(mib(2_000))),
            (&GP3, gib(1), None, Some(mib(750))),
            (&IO2, gib(256), Some(256_000.0), None),
            (&GP2, gib(1), Some(9_000.0), Some(mib(900))),
        ] {
            assert_eq!(
                sold.check_ratios(size, iops, throughput),
                Ok(()),
                "{} {size}",
                sold.name
            );
        }
        for (sold, size, iops, throughput, words) in [
            (
                &GP3,
                gib(11),
                Some(6_000.0),
                None,
                "and 11 GiB has at most 5500 IOPS (500 for each GiB",
            ),
            (&GP3, gib(1_000), Some(90_000.0), None, "at most 80000 IOPS"),
            (
                &GP3,
                gib(100),
                None,
                Some(mib(751)),
                "with 3000 IOPS has at most 750 MiB a second",
            ),
            (
                &GP3,
                gib(1_000),
                Some(50_000.0),
                Some(mib(2_001)),
                "at most 2000 MiB a second, not 2001 MiB",
            ),
            (&IO1, gib(10), Some(501.0), None, "has at most 500 IOPS"),
        ] {
            let refused = sold.check_ratios(size, iops, throughput).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn what_is_outside_of_what_is_sold_is_told_by_its_bounds() {
        let (gib, mib) = (Bytes::gib, Bytes::mib);
        for (sold, size, iops, throughput, sentences) in [
            (&GP3, gib(1), Some(3_000.0), Some(mib(125)), &[][..]),
            (&GP3, gib(1), None, None, &[]),
            (
                &GP3,
                gib(1),
                Some(400.0),
                Some(mib(50)),
                &[
                    "a volume of type gp3 has at least 3000 IOPS, not 400",
                    "a volume of type gp3 has at least 125 MiB a second, not 50 MiB",
                ],
            ),
            (
                &IO1,
                gib(4),
                Some(99.0),
                Some(mib(1)),
                &["a volume of type io1 has at least 100 IOPS, not 99"],
            ),
            (
                &ST1,
                gib(100),
                Some(1.0),
                None,
                &["a volume of type st1 has 125 GiB to 16 TiB, not 100 GiB"],
            ),
            (
                &GP2,
                gib(17 << 10),
                Some(1.0),
                None,
                &["a volume of type gp2 has 1 GiB to 16 TiB, not 17 TiB"],
            ),
        ] {
            assert_eq!(
                sold.outside(size, iops, throughput),
                sentences,
                "{}",
                sold.name
            );
        }
    }
}
