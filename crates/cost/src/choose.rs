//! The cheapest volumes of each type and count that carry a workload, and what rules the others out.

use record::Nanos;

use crate::instance::InstanceLimits;
use crate::offer::{Offer, Volume};
use crate::workload::{Demand, Workload};
use ui::format::{latency, number};

/// Requirements besides the workload.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    pub(crate) size_gib: u64,
    pub(crate) p99: Option<Nanos>,
    pub(crate) most_volumes: u32,
    pub(crate) instance: Option<InstanceLimits>,
}

/// Volumes of one type that carry the workload together.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) offer: Offer,
    pub(crate) count: u32,
    pub(crate) each: Volume,
    /// Price of all for a month.
    pub(crate) month: f64,
}

/// A type and count that does not carry it.
#[derive(Clone, Debug)]
pub(crate) struct RuledOut {
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) reason: String,
}

/// Judgement of a type and count.
#[derive(Debug)]
pub(crate) enum Verdict {
    Carries(Box<Choice>),
    RuledOut(RuledOut),
}

/// Judges each type with each count.
pub(crate) fn all(offers: &[Offer], workload: &Workload, goal: &Goal) -> Vec<Verdict> {
    let each = offers
        .iter()
        .flat_map(|offer| (1..=goal.most_volumes).map(move |count| (offer, count)));
    each.map(|(offer, count)| {
        judge(offer, count, workload, goal).map_or_else(
            |reason| {
                Verdict::RuledOut(RuledOut {
                    name: offer.name.clone(),
                    count,
                    reason,
                })
            },
            |choice| Verdict::Carries(Box::new(choice)),
        )
    })
    .collect()
}

fn judge(offer: &Offer, count: u32, workload: &Workload, goal: &Goal) -> Result<Choice, String> {
    let budget = goal.p99.map(|target| within(offer, target)).transpose()?;
    let demand = workload.demand(offer.merge, budget.flatten());
    if let Some(limits) = &goal.instance {
        limits.carry(demand)?;
    }
    let each = smallest(offer, count, demand, goal.size_gib)?;
    Ok(Choice {
        offer: offer.clone(),
        count,
        each,
        month: f64::from(count) * offer.month(&each),
    })
}

/// The time that 1 % of the I/O may wait longer than: what is left of the target.
fn within(offer: &Offer, target: Nanos) -> Result<Option<Nanos>, String> {
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

/// The smallest volumes of a count that hold the data and carry a demand.
///
/// A volume's performance never falls with its size, and its price never falls with its size, IOPS or throughput; so the
/// smallest with the least provisioned is the cheapest.
pub(crate) fn smallest(
    offer: &Offer,
    count: u32,
    demand: Demand,
    size_gib: u64,
) -> Result<Volume, String> {
    let share = |total: f64| total / f64::from(count);
    let (iops, mibps) = (share(demand.iops), share(demand.mibps()));
    let least = size_gib.div_ceil(u64::from(count)).max(offer.least_gib);
    let of_count = match count {
        1 => String::new(),
        count => format!(" {count} of them"),
    };
    if least > offer.most_gib {
        return Err(format!(
            "size: a volume has at most {} GiB, and{of_count} must hold {} GiB",
            number(offer.most_gib as f64),
            number(size_gib as f64)
        ));
    }
    let fits = |gib: u64| offer.provisioned(gib, iops, mibps);
    if fits(offer.most_gib).is_none() {
        let most = offer.most_iops(offer.most_gib);
        return Err(match iops > most {
            true => format!(
                "volume cap: {} IOPS are needed of each{of_count}, and a volume has at most {}",
                number(iops),
                number(most)
            ),
            false => format!(
                "volume cap: {} MiB/s are needed of each{of_count}, which is more than a volume has",
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
    use proptest::prelude::*;

    fn demand(iops: f64, mibps: f64) -> Demand {
        Demand {
            iops,
            bytes_per_s: mibps * (1 << 20) as f64,
        }
    }

    /// All volumes on a grid of sizes, IOPS and throughput that carry a share: none is cheaper.
    fn cheapest_of_all(offer: &Offer, iops: f64, mibps: f64, least: u64) -> Option<f64> {
        let sizes = (least..least + 700).chain((least + 700..=offer.most_gib).step_by(97));
        let sizes: Vec<u64> = sizes.filter(|gib| *gib <= offer.most_gib).collect();
        let mut best: Option<f64> = None;
        for gib in sizes {
            let Some(limits) = offer.provision else {
                if offer.provisioned(gib, iops, mibps).is_some() {
                    let volume = Volume {
                        gib,
                        iops: offer.most_iops(gib),
                        mibps: 0.0,
                    };
                    let month = offer.month(&volume);
                    best = Some(best.map_or(month, |least| least.min(month)));
                }
                continue;
            };
            let most = (limits.iops_per_gib * gib as f64).min(limits.most_iops);
            let most = most.max(if offer.name == "gp3" { 3_000.0 } else { 0.0 });
            let mut bought = limits.least_iops;
            while bought <= most {
                let throughputs: Vec<f64> = match offer.name.as_str() {
                    "gp3" => (125..=2_000)
                        .step_by(5)
                        .map(f64::from)
                        .filter(|mibps| *mibps <= 125.0 || *mibps <= bought * 0.25)
                        .collect(),
                    "io1" => vec![(bought * 0.25).min(500.0)],
                    _ => vec![(bought * 0.25).min(4_000.0)],
                };
                for given in throughputs {
                    if bought >= iops && given >= mibps {
                        let month = offer.month(&Volume {
                            gib,
                            iops: bought,
                            mibps: given,
                        });
                        best = Some(best.map_or(month, |least| least.min(month)));
                    }
                }
                bought += 500.0;
            }
            // A larger size of these costs more and allows no more once something fits.
            if best.is_some() && gib > least + 700 {
                break;
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5))]
        #[test]
        fn nothing_on_a_grid_of_all_configurations_is_cheaper(
            iops in 1.0..90_000.0_f64, mibps in 1.0..2_500.0_f64, size in 1u64..2_000, count in 1u32..4
        ) {
            for offer in table() {
                let found = smallest(&offer, count, demand(iops, mibps), size);
                let (iops, mibps) = (iops / f64::from(count), mibps / f64::from(count));
                let least = size.div_ceil(u64::from(count)).max(offer.least_gib);
                let grid = cheapest_of_all(&offer, iops, mibps, least);
                match (found, grid) {
                    (Ok(found), Some(grid)) => prop_assert!(
                        offer.month(&found) <= grid + 1e-9, "{}: {found:?} and {grid}", offer.name
                    ),
                    (Err(why), Some(grid)) => prop_assert!(false, "{}: {why}, but {grid}", offer.name),
                    // The grid is too coarse for what just fits.
                    (_, None) => {}
                }
                if let Ok(found) = smallest(&offer, count, demand(iops * f64::from(count), mibps * f64::from(count)), size) {
                    prop_assert!(found.iops >= iops && found.mibps >= mibps - 1e-9 && found.gib >= least);
                    prop_assert!(found.iops <= offer.most_iops(found.gib));
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
        assert_eq!(of("gp2", 3_000.0, 1.0, 1).unwrap().gib, 1_000);
        assert_eq!(of("gp3", 16_000.0, 1.0, 1).unwrap().gib, 32);
        assert_eq!(of("st1", 1.0, 100.0, 1).unwrap().gib, 2_560);
    }
}
