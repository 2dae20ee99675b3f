//! Volume types with their prices, from the table or from a file.

use domain::price::{PriceTier, tiered};
use domain::volume_type::{BaselineIops, BaselineThroughput, Provision, TABLE};
use record::{Bytes, Nanos};

/// A volume type in a region, with its price.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Offer {
    pub(crate) name: String,
    pub(crate) region: String,
    pub(crate) currency: String,
    /// Date of the price, such as `2026-11-01`.
    pub(crate) as_of: String,
    pub(crate) source: String,
    pub(crate) iops: BaselineIops,
    pub(crate) throughput: BaselineThroughput,
    pub(crate) provision: Option<Provision>,
    pub(crate) least_gib: u64,
    pub(crate) most_gib: u64,
    pub(crate) merge: Bytes,
    pub(crate) latency: Option<Nanos>,
    pub(crate) gib_month: f64,
    pub(crate) iops_free: f64,
    pub(crate) iops_tiers: Vec<PriceTier>,
    pub(crate) mibps_free: f64,
    pub(crate) mibps_month: f64,
}

/// Size and provision of a volume to buy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OfferedVolume {
    pub(crate) gib: u64,
    /// IOPS, provisioned or included with the size.
    pub(crate) iops: f64,
    /// Throughput in MiB/s, provisioned or included with size and IOPS.
    pub(crate) mibps: f64,
}

/// Offers of all volume types of the built-in table.
pub(crate) fn table() -> Vec<Offer> {
    let offer = |sold: &&'static domain::volume_type::VolumeType| Offer {
        name: sold.name.to_owned(),
        region: sold.price.region.to_owned(),
        currency: sold.price.currency.to_owned(),
        as_of: sold.price.as_of.to_owned(),
        source: sold.price.source.to_owned(),
        iops: sold.iops,
        throughput: sold.throughput,
        provision: sold.provision,
        least_gib: sold.sizes.0.0 / Bytes::GIB.0,
        most_gib: sold.sizes.1.0 / Bytes::GIB.0,
        merge: sold.merge,
        latency: Some(sold.latency),
        gib_month: sold.price.gib_month,
        iops_free: sold.price.iops_free,
        iops_tiers: sold.price.iops_tiers.to_vec(),
        mibps_free: sold.price.mibps_free,
        mibps_month: sold.price.mibps_month,
    };
    TABLE.iter().map(offer).collect()
}

/// Replaces the offers of the same type and region by those of a file, and adds the others.
pub(crate) fn merge(offers: &mut Vec<Offer>, own: Vec<Offer>) {
    offers.retain(|known| {
        !own.iter()
            .any(|new| new.name == known.name && new.region == known.region)
    });
    offers.extend(own);
}

impl Offer {
    /// Maximum IOPS of a volume of this size.
    pub(crate) fn most_iops(&self, gib: u64) -> f64 {
        let included = self.iops.of(Bytes::gib(gib));
        match self.provision {
            Some(limits) => (limits.iops_per_gib * gib as f64)
                .min(limits.most_iops)
                .max(included.min(limits.least_iops)),
            None => included,
        }
    }

    /// The volume of this size with the minimum provision that carries this load; `None` where no volume of this size
    /// does.
    pub(crate) fn provisioned(&self, gib: u64, iops: f64, mibps: f64) -> Option<OfferedVolume> {
        let size = Bytes::gib(gib);
        let included = |iops: f64| self.throughput.of(size, iops).0 as f64 / Bytes::mib(1).0 as f64;
        let Some(limits) = self.provision else {
            let volume = OfferedVolume {
                gib,
                iops: self.iops.of(size),
                mibps: included(self.iops.of(size)),
            };
            return Some(volume).filter(|it| it.iops >= iops && it.mibps >= mibps);
        };
        let mib = Bytes::mib(1).0 as f64;
        let for_throughput = match (limits.throughput, self.throughput) {
            // Provisioned throughput requires a number of IOPS.
            (Some((_, each)), _) if mibps > included(0.0) => mibps * mib / each.0 as f64,
            (None, BaselineThroughput::ByIops { each, .. }) => mibps * mib / each.0 as f64,
            _ => 0.0,
        };
        let iops = iops.max(for_throughput).max(limits.least_iops).ceil();
        let mibps = match limits.throughput {
            Some(_) => mibps.max(included(iops)).ceil(),
            None => included(iops).max(mibps),
        };
        let most = match limits.throughput {
            Some((most, _)) => most.0 as f64 / mib,
            None => included(iops),
        };
        (iops <= self.most_iops(gib) && mibps <= most).then_some(OfferedVolume { gib, iops, mibps })
    }

    /// Price of a volume for a month.
    pub(crate) fn month(&self, volume: &OfferedVolume) -> f64 {
        volume.gib as f64 * self.gib_month
            + tiered(volume.iops, self.iops_free, &self.iops_tiers)
            + (volume.mibps - self.mibps_free).max(0.0) * self.mibps_month
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Offer {
        table()
            .into_iter()
            .find(|offer| offer.name == name)
            .unwrap()
    }

    /// Sums of infracost's ebs_volume_test.golden, which come from AWS's own prices.
    #[test]
    fn prices_are_those_of_worked_examples() {
        for (name, gib, iops, mibps, month) in [
            ("io1", 30, 300.0, 75.0, 3.75 + 19.50),
            ("io2", 30, 300.0, 75.0, 3.75 + 19.50),
            ("gp3", 40, 4_000.0, 130.0, 3.20 + 0.20 + 5.00),
            ("st1", 40, 500.0, 1.0, 1.80),
            ("gp2", 10, 100.0, 128.0, 1.00),
            ("sc1", 50, 250.0, 1.0, 0.75),
        ] {
            let volume = OfferedVolume { gib, iops, mibps };
            let got = named(name).month(&volume);
            assert!((got - month).abs() < 1e-9, "{name}: {got}");
        }
    }

    #[test]
    fn the_least_that_carries_is_provisioned() {
        let gp3 = named("gp3");
        let of = |gib, iops, mibps| gp3.provisioned(gib, iops, mibps);
        let volume = |gib, iops, mibps| Some(OfferedVolume { gib, iops, mibps });
        assert_eq!(of(1, 100.0, 10.0), volume(1, 3_000.0, 125.0));
        assert_eq!(of(100, 100.0, 1_000.0), volume(100, 4_000.0, 1_000.0));
        assert_eq!(of(160, 80_000.0, 2_000.0), volume(160, 80_000.0, 2_000.0));
        assert_eq!(of(159, 80_000.0, 2_000.0), None);
        assert_eq!(of(10, 5_001.0, 1.0), None);
        assert_eq!(of(200, 100.0, 2_001.0), None);
        let io2 = named("io2");
        assert_eq!(io2.provisioned(4, 4_000.0, 100.0).unwrap().mibps, 1_000.0);
        assert_eq!(io2.provisioned(4, 4_001.0, 1.0), None);
        assert_eq!(named("gp2").provisioned(333, 1_000.0, 1.0), None);
        assert!(named("gp2").provisioned(334, 1_000.0, 1.0).is_some());
    }
}
