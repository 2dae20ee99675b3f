//! The cheapest volumes of each type and count that carry a workload, and the reasons that rule out the others.

use record::Nanos;

use crate::instance::InstanceLimits;
use crate::offer::{Offer, OfferedVolume};
use crate::workload::{Demand, Workload};
use ui::format::{latency, number};

/// Requirements in addition to the workload.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    pub(crate) size_gib: u64,
    pub(crate) p99: Option<Nanos>,
    pub(crate) most_volumes: u32,
    pub(crate) instance: Option<InstanceLimits>,
}

/// Volumes of one type that together carry the workload.
#[derive(Clone, Debug)]
pub(crate) struct VolumeChoice {
    pub(crate) offer: Offer,
    pub(crate) count: u32,
    pub(crate) each: OfferedVolume,
    /// Price of all volumes for a month.
    pub(crate) month: f64,
}

/// A type and count that does not carry the workload.
#[derive(Clone, Debug)]
pub(crate) struct RuledOut {
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) reason: String,
}

/// Judgement of a type and count.
#[derive(Debug)]
pub(crate) enum CapacityVerdict {
    Carries(Box<VolumeChoice>),
    RuledOut(RuledOut),
}

/// Verdicts on each type with each count of volumes.
pub(crate) fn all(offers: &[Offer], workload: &Workload, goal: &Goal) -> Vec<CapacityVerdict> {
    let each = offers
        .iter()
        .flat_map(|offer| (1..=goal.most_volumes).map(move |count| (offer, count)));
    each.map(|(offer, count)| {
        judge(offer, count, workload, goal).map_or_else(
            |reason| {
                CapacityVerdict::RuledOut(RuledOut {
                    name: offer.name.clone(),
                    count,
                    reason,
                })
            },
            |choice| CapacityVerdict::Carries(Box::new(choice)),
        )
    })
    .collect()
}

fn judge(
    offer: &Offer,
    count: u32,
    workload: &Workload,
    goal: &Goal,
) -> Result<VolumeChoice, String> {
    let budget = goal
        .p99
        .map(|target| wait_budget(offer, target))
        .transpose()?;
    let demand = workload.demand(offer.merge, budget.flatten());
    if let Some(limits) = &goal.instance {
        limits.carry(demand)?;
    }
    let each = smallest(offer, count, demand, goal.size_gib)?;
    Ok(VolumeChoice {
        offer: offer.clone(),
        count,
        each,
        month: f64::from(count) * offer.month(&each),
    })
}

/// Maximum wait for 99 % of the I/O: the p99 target minus the volume's latency. `None` where the latency is not known.
///
/// # Errors
/// A clause, when the latency alone exceeds the target.
fn wait_budget(offer: &Offer, target: Nanos) -> Result<Option<Nanos>, String> {
    match offer.latency {
        Some(mean) if mean >= target => Err(format!(
            "latency: an I/O without queueing takes about {} (assumed), and 99 % must take less than {}",
            latency(mean.0),
            latency(target.0)
        )),
        Some(mean) => Ok(Some(target - mean)),
        None => Ok(None),
    }
}

/// The smallest volumes, `count` of them, that hold the data and carry a demand.
///
/// A volume's performance does not decrease with its size, and its price does not decrease with its size, IOPS or
/// throughput; so the smallest size with the minimum provision is the cheapest.
pub(crate) fn smallest(
    offer: &Offer,
    count: u32,
    demand: Demand,
    size_gib: u64,
) -> Result<OfferedVolume, String> {
    let share = |total: f64| total / f64::from(count);
    let (iops, mibps) = (share(demand.iops), share(demand.mibps()));
    let least = size_gib.div_ceil(u64::from(count)).max(offer.least_gib);
    let (of_each, all) = match count {
        1 => (String::new(), "it".to_owned()),
        count => (format!(" of each of {count}"), format!("{count} of them")),
    };
    if least > offer.most_gib {
        return Err(format!(
            "size: a volume has at most {} GiB, and {all} must hold {} GiB",
            number(offer.most_gib as f64),
            number(size_gib as f64)
        ));
    }
    let fits = |gib: u64| offer.provisioned(gib, iops, mibps);
    if fits(offer.most_gib).is_none() {
        let most = offer.most_iops(offer.most_gib);
        return Err(match iops > most {
            true => format!(
                "volume cap: {} IOPS are needed{of_each}, and a volume has at most {}",
                number(iops),
                number(most)
            ),
            false => format!(
                "volume cap: {} MiB/s are needed{of_each}, which is more than a volume has",
                number(mibps)
            ),
        });
    }
    // The smallest size in (below, enough].
    let (mut below, mut enough) = (least - 1, offer.most_gib);
    if fits(least).is_some() {
        enough = least;
    }
    while enough - below > 1 && enough > least {
        let middle = below + (enough - below) / 2;
        match fits(middle).is_some() {
            true => enough = middle,
            false => below = middle,
        }
    }
    fits(enough).ok_or_else(|| "volume cap".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offer::table;
    use crate::workload::LoadInterval;
    use proptest::prelude::*;
    use record::Bytes;

    fn demand(iops: f64, mibps: f64) -> Demand {
        Demand {
            iops,
            bytes_per_s: mibps * (1 << 20) as f64,
        }
    }

    /// The volume types of the table and of the manual's examples.
    fn offers() -> Vec<Offer> {
        let mut offers = table();
        for path in ["azure-premium-ssd-v2.toml", "gcp-hyperdisk.csv"] {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prices");
            offers.extend(crate::prices::read(&folder.join(path)).unwrap());
        }
        offers
    }

    /// Lowest price of all volumes that carry this load, on a grid of sizes, IOPS and throughput that includes the
    /// needed values.
    fn cheapest_of_all(offer: &Offer, iops: f64, mibps: f64, least: u64) -> Option<f64> {
        let sizes = (least..least + 100).chain((least + 100..=offer.most_gib).step_by(97));
        let mut best: Option<f64> = None;
        for gib in sizes.filter(|gib| *gib <= offer.most_gib) {
            for bought in bought_iops(offer, gib, iops) {
                for given in bought_mibps(offer, gib, bought, mibps) {
                    if bought >= iops && given >= mibps {
                        let volume = OfferedVolume {
                            gib,
                            iops: bought,
                            mibps: given,
                        };
                        let month = offer.month(&volume);
                        best = Some(best.map_or(month, |least| least.min(month)));
                    }
                }
            }
            // A larger size costs more and allows no more once something fits.
            if best.is_some() && gib > least + 100 {
                break;
            }
        }
        best
    }

    /// Grid of the IOPS that can be bought for a volume of this size.
    fn bought_iops(offer: &Offer, gib: u64, needed: f64) -> Vec<f64> {
        let Some(limits) = offer.provision else {
            return vec![offer.most_iops(gib)];
        };
        let most = offer.most_iops(gib);
        let steps = (most - limits.least_iops) / 500.0;
        let grid =
            (0..=steps.max(0.0) as u32).map(|step| limits.least_iops + f64::from(step) * 500.0);
        grid.chain([needed.ceil().max(limits.least_iops), most])
            .filter(|iops| *iops <= most)
            .collect()
    }

    /// Grid of the throughput, in MiB/s, that can be bought for a volume of this size with these IOPS.
    fn bought_mibps(offer: &Offer, gib: u64, iops: f64, needed: f64) -> Vec<f64> {
        let mib = Bytes::mib(1).0 as f64;
        let included = offer.throughput.of(Bytes::gib(gib), iops).0 as f64 / mib;
        let Some((most, each)) = offer.provision.and_then(|limits| limits.throughput) else {
            return vec![included];
        };
        let most = (most.0 as f64 / mib)
            .min(iops * each.0 as f64 / mib)
            .max(included);
        let steps = ((most - included) / 25.0) as u32;
        let grid = (0..=steps).map(|step| included + f64::from(step) * 25.0);
        // Throughput is bought in whole MiB/s.
        grid.chain([needed.ceil(), most.floor()])
            .filter(|mibps| *mibps >= included && *mibps <= most)
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3))]
        #[test]
        fn nothing_on_a_grid_of_all_configurations_is_cheaper(
            iops in 1.0..90_000.0_f64, mibps in 1.0..2_500.0_f64, size in 1u64..2_000, count in 1u32..4
        ) {
            for offer in offers() {
                let found = smallest(&offer, count, demand(iops, mibps), size);
                let (iops, mibps) = (iops / f64::from(count), mibps / f64::from(count));
                let least = size.div_ceil(u64::from(count)).max(offer.least_gib);
                let grid = cheapest_of_all(&offer, iops, mibps, least);
                match (&found, grid) {
                    (Ok(found), Some(grid)) => prop_assert!(
                        offer.month(found) <= grid + 1e-9, "{}: {found:?} and {grid}", offer.name
                    ),
                    (Err(why), Some(grid)) => prop_assert!(false, "{}: {why}, but {grid}", offer.name),
                    // The grid of sizes may be too coarse for a volume that just fits.
                    (_, None) => {}
                }
                if let Ok(found) = found {
                    prop_assert!(found.iops >= iops && found.mibps >= mibps - 1e-9 && found.gib >= least);
                    prop_assert!(found.iops <= offer.most_iops(found.gib));
                }
            }
        }

        #[test]
        fn the_first_choice_is_the_cheapest_of_all_types_and_counts(
            iops in 1.0..90_000.0_f64, mibps in 1.0..2_500.0_f64, size in 1u64..2_000
        ) {
            let workload = Workload { intervals: vec![LoadInterval { hour: 0, seconds: 1.0, rate: demand(iops, mibps) }],
                ..crate::workload::tests::hours(&[1.0]) };
            let goal = Goal { size_gib: size, p99: None, most_volumes: 3, instance: None };
            let months = all(&offers(), &workload, &goal).into_iter().filter_map(|verdict| match verdict {
                CapacityVerdict::Carries(choice) => Some(choice.month),
                CapacityVerdict::RuledOut(_) => None,
            });
            let first = months.min_by(f64::total_cmp);
            for offer in offers() {
                let need = workload.demand(offer.merge, None);
                for count in 1..=3_u32 {
                    let each = size.div_ceil(u64::from(count)).max(offer.least_gib);
                    let share = f64::from(count);
                    let grid = cheapest_of_all(&offer, need.iops / share, need.mibps() / share, each);
                    if let Some(grid) = grid {
                        prop_assert!(first.is_some_and(|first| first <= grid * share + 1e-6), "{}", offer.name);
                    }
                }
            }
        }
    }

    #[test]
    fn each_cap_is_named() {
        let of = |name: &str, iops, mibps, size| {
            let offer = table()
                .into_iter()
                .find(|offer| offer.name == name)
                .unwrap();
            smallest(&offer, 1, demand(iops, mibps), size)
        };
        for (name, iops, mibps, size, reason) in [
            ("gp3", 80_001.0, 1.0, 1, "volume cap: 80,001 IOPS"),
            ("gp2", 1.0, 251.0, 1, "volume cap: 251 MiB/s"),
            ("st1", 501.0, 1.0, 1, "at most 500"),
            (
                "gp2",
                1.0,
                1.0,
                16_385,
                "size: a volume has at most 16,384 GiB",
            ),
        ] {
            let why = of(name, iops, mibps, size).unwrap_err();
            assert!(why.contains(reason), "{why}");
        }
        let gp3 = table()
            .into_iter()
            .find(|offer| offer.name == "gp3")
            .unwrap();
        let why = smallest(&gp3, 2, demand(160_002.0, 1.0), 1).unwrap_err();
        assert!(
            why.contains("80,001 IOPS are needed of each of 2, and"),
            "{why}"
        );
        assert_eq!(of("gp2", 3_000.0, 1.0, 1).unwrap().gib, 1_000);
        assert_eq!(of("gp3", 16_000.0, 1.0, 1).unwrap().gib, 32);
        assert_eq!(of("st1", 1.0, 100.0, 1).unwrap().gib, 2_560);
    }
}
