//! Prices of volumes for a month: by size, and by the provisioned amounts beyond those that the size includes.

/// Price of the volumes of a type in one region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// The provider's region.
    pub region: &'static str,
    /// Currency in ISO 4217.
    pub currency: &'static str,
    /// Date at which the source had this price, such as `2024-07-01`.
    pub as_of: &'static str,
    /// Page from which the price was read.
    pub source: &'static str,
    /// Price of a GiB for a month.
    pub gib_month: f64,
    /// IOPS that are included in the price.
    pub iops_free: f64,
    /// Price tiers of further IOPS.
    pub iops_tiers: &'static [PriceTier],
    /// MiB/s that are included in the price.
    pub mibps_free: f64,
    /// Price of one more MiB/s for a month.
    pub mibps_month: f64,
}

/// A tier of a price that falls with the amount.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriceTier {
    /// Upper end of the tier, as the amount of one volume including the free part.
    pub up_to: f64,
    /// Price of each unit within it, for a month.
    pub month: f64,
}

/// Price of an amount beyond `free`, by tiers. Any amount beyond the last tier costs as much as within it.
pub fn tiered(amount: f64, free: f64, tiers: &[PriceTier]) -> f64 {
    let (mut from, mut sum) = (free, 0.0);
    for (at, tier) in tiers.iter().enumerate() {
        let is_last = at + 1 == tiers.len();
        let to = if is_last {
            amount
        } else {
            amount.min(tier.up_to)
        };
        if to > from {
            sum += (to - from) * tier.month;
            from = to;
        }
    }
    sum
}

const US_EAST_1: Price = Price {
    region: "us-east-1",
    currency: "USD",
    as_of: "2024-07-01",
    source: "infracost, ebs_volume_test.golden",
    gib_month: 0.0,
    iops_free: 0.0,
    iops_tiers: &[],
    mibps_free: 0.0,
    mibps_month: 0.0,
};

/// A price that is the same for any amount.
const fn flat(month: f64) -> PriceTier {
    PriceTier {
        up_to: f64::INFINITY,
        month,
    }
}

/// gp3. infracost's file has the price in us-west-2, which is the same.
pub(crate) const GP3: Price = Price {
    source: "infracost, ebs_volume_test.golden (us-west-2); saisci.com, \"gp3 throughput explained\" (us-east-1)",
    gib_month: 0.08,
    iops_free: 3_000.0,
    iops_tiers: &[flat(0.005)],
    mibps_free: 125.0,
    mibps_month: 0.04,
    ..US_EAST_1
};

/// gp2.
pub(crate) const GP2: Price = Price {
    gib_month: 0.10,
    ..US_EAST_1
};

/// io1.
pub(crate) const IO1: Price = Price {
    gib_month: 0.125,
    iops_tiers: &[flat(0.065)],
    ..US_EAST_1
};

/// io2. infracost's file only has the first tier.
pub(crate) const IO2: Price = Price {
    source: "infracost, ebs_volume_test.golden; the steps above 32,000 IOPS from an answer on repost.aws",
    gib_month: 0.125,
    iops_tiers: &[
        PriceTier {
            up_to: 32_000.0,
            month: 0.065,
        },
        PriceTier {
            up_to: 64_000.0,
            month: 0.046,
        },
        flat(0.032),
    ],
    ..US_EAST_1
};

/// st1.
pub(crate) const ST1: Price = Price {
    gib_month: 0.045,
    ..US_EAST_1
};

/// sc1.
pub(crate) const SC1: Price = Price {
    gib_month: 0.015,
    ..US_EAST_1
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_costs_its_own_price() {
        let of = |iops| tiered(iops, 0.0, IO2.iops_tiers);
        for (iops, month) in [
            (0.0, 0.0),
            (300.0, 19.5),
            (32_000.0, 2_080.0),
            (64_000.0, 2_080.0 + 32_000.0 * 0.046),
            (100_000.0, 2_080.0 + 1_472.0 + 36_000.0 * 0.032),
        ] {
            assert!((of(iops) - month).abs() < 1e-6, "{iops}");
        }
        assert!((tiered(4_000.0, 3_000.0, GP3.iops_tiers) - 5.0).abs() < 1e-9);
        assert!(tiered(2_000.0, 3_000.0, GP3.iops_tiers).abs() < 1e-9);
        assert!(tiered(2_000.0, 0.0, &[]).abs() < 1e-9);
    }
}
