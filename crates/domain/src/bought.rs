//! Bought volumes in arguments and lists of hosts: `2xgp3,iops=6000,throughput=250MiB:500GiB`, in the notation of the
//! lab's volumes.

use std::str::FromStr;

use record::Bytes;

use crate::price::tiered;
use crate::volume_type::{TABLE, VolumeType};

/// Number of hours in a month for prices (Amazon EC2 pricing: 730).
const HOURS_PER_MONTH: f64 = 730.0;
const GIB: f64 = (1_u64 << 30) as f64;
const MIB: f64 = (1_u64 << 20) as f64;

/// Volumes of one type and size.
#[derive(Clone, Debug, PartialEq)]
pub struct BoughtVolumes {
    count: u32,
    sold: &'static VolumeType,
    size: Bytes,
    /// Provisioned IOPS of each volume.
    iops: f64,
    /// Provisioned throughput of each volume, per second.
    throughput: Bytes,
}

impl BoughtVolumes {
    /// Number of volumes.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Their type, by AWS's name.
    pub fn kind(&self) -> &'static str {
        self.sold.name
    }

    /// Size of each volume.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Provisioned IOPS of each volume; `None` if the size decides.
    pub fn iops(&self) -> Option<u64> {
        self.sold.provision.map(|_| self.iops as u64)
    }

    /// Provisioned throughput of each volume; `None` if the size or the IOPS decide, or it is included in the type's
    /// price.
    pub fn throughput(&self) -> Option<Bytes> {
        let sells = self.sold.provision.and_then(|sold| sold.throughput);
        sells.map(|_| self.throughput).filter(|it| it.0 > 0)
    }

    /// Currency of the price.
    pub fn currency(&self) -> &'static str {
        self.sold.price.currency
    }

    /// Price of all volumes for an hour, in the currency of the table.
    pub fn per_hour(&self) -> f64 {
        let price = &self.sold.price;
        let mibps = (self.throughput.0 as f64 / MIB - price.mibps_free).max(0.0);
        let month = self.size.0 as f64 / GIB * price.gib_month
            + tiered(self.iops, price.iops_free, price.iops_tiers)
            + mibps * price.mibps_month;
        f64::from(self.count) * month / HOURS_PER_MONTH
    }

    /// Region, currency and date of the price, such as `us-east-1, USD, 2024-07-01`.
    pub fn price_source(&self) -> String {
        let price = &self.sold.price;
        format!("{}, {}, {}", price.region, price.currency, price.as_of)
    }
}

impl FromStr for BoughtVolumes {
    type Err = String;

    fn from_str(text: &str) -> Result<BoughtVolumes, String> {
        let (what, size) = text.rsplit_once(':').ok_or_else(|| {
            format!("'{text}' has no size; write TYPE:SIZE, such as gp3:500GiB or 2xgp3,iops=6000:500GiB")
        })?;
        let size: Bytes = size
            .parse()
            .map_err(|_| format!("'{size}' is not a size; write it as 500GiB"))?;
        let (count, what) = match what.split_once('x') {
            Some((count, rest)) if count.bytes().all(|c| c.is_ascii_digit()) => (
                count
                    .parse()
                    .ok()
                    .filter(|count| *count > 0)
                    .ok_or_else(|| {
                        format!("'{count}' is not a number of volumes; write it as in 2xgp3:500GiB")
                    })?,
                rest,
            ),
            _ => (1, what),
        };
        let mut words = what.split(',');
        let name = words.next().unwrap_or_default();
        let sold = VolumeType::named(name).ok_or_else(|| {
            let names: Vec<&str> = TABLE.iter().map(|sold| sold.name).collect();
            format!(
                "there is no volume type '{name}'; there are {}",
                names.join(", ")
            )
        })?;
        if let Some(why) = sold.outside(size, None, None).into_iter().next() {
            return Err(why);
        }
        let mut bought = BoughtVolumes {
            count,
            sold,
            size,
            iops: sold.price.iops_free,
            throughput: Bytes(0),
        };
        for word in words {
            bought.set(word)?;
        }
        sold.check_ratios(size, Some(bought.iops), Some(bought.throughput))?;
        match sold.provision {
            Some(limits) if bought.iops < limits.least_iops => Err(format!(
                "a volume of type {name} is sold with its IOPS; write {name},iops=…:{size}"
            )),
            _ => Ok(bought),
        }
    }
}

impl BoughtVolumes {
    fn set(&mut self, word: &str) -> Result<(), String> {
        let name = self.sold.name;
        let bad = |takes: &str| format!("'{word}' is not understood; write {takes}");
        let provision = self.sold.provision.ok_or_else(|| {
            format!("{name} has no IOPS and no throughput to be bought apart from its size")
        })?;
        match word.split_once('=') {
            Some(("iops", value)) => {
                let iops: f64 = value.parse().map_err(|_| bad("iops=6000"))?;
                if iops < provision.least_iops || iops.is_nan() {
                    return Err(format!(
                        "a volume of type {name} has at least {} IOPS, not {value}",
                        provision.least_iops
                    ));
                }
                self.iops = iops;
            }
            Some(("throughput", value)) => {
                let throughput: Bytes = value.parse().map_err(|_| bad("throughput=250MiB"))?;
                if provision.throughput.is_none() {
                    return Err(format!(
                        "{name} has no throughput to be bought apart from its IOPS"
                    ));
                }
                self.throughput = throughput;
            }
            _ => return Err(bad("iops=6000 or throughput=250MiB")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_month_costs_what_the_table_says() {
        for (text, month) in [
            ("gp3:100GiB", 8.0),
            (
                "2xgp3,iops=4000,throughput=225MiB:100GiB",
                2.0 * (8.0 + 5.0 + 4.0),
            ),
            ("io2,iops=300:30GiB", 30.0 * 0.125 + 19.5),
            ("st1:500GiB", 22.5),
        ] {
            let volumes: BoughtVolumes = text.parse().unwrap();
            assert!(
                (volumes.per_hour() * HOURS_PER_MONTH - month).abs() < 1e-9,
                "{text}"
            );
            assert_eq!(volumes.price_source(), "us-east-1, USD, 2024-07-01");
        }
    }

    #[test]
    fn sizes_that_are_not_sold_are_refused() {
        for (text, words) in [
            ("gp3", "has no size"),
            ("io2:30GiB", "write io2,iops="),
            ("gp9:1GiB", "there is no volume type 'gp9'"),
            ("0xgp3:1GiB", "not a number of volumes"),
            ("gp3:much", "is not a size"),
            ("st1:1GiB", "has 125 GiB to"),
            (
                "gp2,iops=6000:100GiB",
                "no IOPS and no throughput to be bought",
            ),
            ("gp3,iops=90000:100GiB", "at most 50000 IOPS"),
            ("gp3,throughput=9GiB:100GiB", "at most"),
            ("gp3,size=3:100GiB", "'size=3' is not understood"),
        ] {
            let why = text.parse::<BoughtVolumes>().unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String, end in "[0-9]{0,2}x?(gp3|io2),iops=[0-9]{0,6}:[0-9]{1,4}GiB") {
            let _ = text.parse::<BoughtVolumes>();
            if let Ok(volumes) = end.parse::<BoughtVolumes>() {
                prop_assert!(volumes.per_hour() > 0.0);
            }
        }
    }
}
