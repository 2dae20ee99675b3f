//! Savings: a smaller provision by time of day, and provision that is paid for and not used.

use record::Bytes;

use crate::choose::{Goal, VolumeChoice, smallest};
use crate::existing_volumes::OwnedVolumes;
use crate::offer::{Offer, OfferedVolume};
use crate::workload::{Demand, Workload};
use ui::format::number;

/// Minimum length of a recording, in seconds, for a provision by time of day.
const DAY_S: f64 = 24.0 * 3600.0;

/// A smaller provision for some hours of each day. It requires two changes a day; EBS allows four.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scaling {
    /// First hour (UTC) of the smaller provision.
    pub(crate) from_hour: u8,
    /// First hour (UTC) after it.
    pub(crate) to_hour: u8,
    /// Provision of each volume in these hours.
    pub(crate) low: OfferedVolume,
    /// Price of all volumes for a month, with both provisions.
    pub(crate) month: f64,
    pub(crate) saved: f64,
}

/// The hours in which a smaller provision saves most; `None` where it saves nothing, with a p99 target, and where less
/// than a day is known.
pub(crate) fn best(choice: &VolumeChoice, workload: &Workload, goal: &Goal) -> Option<Scaling> {
    if workload.seconds() < DAY_S || choice.offer.provision.is_none() {
        return None;
    }
    let mut by_hour = [None::<Demand>; 24];
    for one in &workload.intervals {
        let slot = by_hour.get_mut(usize::from(one.hour))?;
        let only = Workload {
            intervals: vec![*one],
            ..workload.clone()
        };
        let demand = only.demand(choice.offer.merge, None);
        *slot = Some(slot.map_or(demand, |known| known.or(demand)));
    }
    let mut best: Option<Scaling> = None;
    for from in 0..24_u8 {
        for hours in 1..24_u8 {
            let within = (0..hours).map(|at| (from + at) % 24);
            // An hour without data may be the busiest.
            let needs: Option<Vec<Demand>> = within
                .map(|hour| by_hour.get(usize::from(hour)).copied().flatten())
                .collect();
            let Some(needs) = needs else { continue };
            let need = needs.into_iter().fold(Demand::default(), Demand::or);
            let each = |total: f64| total / f64::from(choice.count);
            let low =
                choice
                    .offer
                    .provisioned(choice.each.gib, each(need.iops), each(need.mibps()));
            let Some(low) = low else { continue };
            let share = f64::from(hours) / 24.0;
            let low_month = f64::from(choice.count) * choice.offer.month(&low);
            let saved = (choice.month - low_month) * share;
            if saved > best.as_ref().map_or(0.005, |known| known.saved) {
                best = Some(Scaling {
                    from_hour: from,
                    to_hour: (from + hours) % 24,
                    low,
                    month: choice.month - saved,
                    saved,
                });
            }
        }
    }
    // With a p99 target, a smaller provision could delay bursts beyond it.
    best.filter(|_| goal.p99.is_none())
}

/// The part of existing volumes that the workload does not use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IdleCapacity {
    /// Price of the volumes for a month.
    pub(crate) month: f64,
    /// Price of the minimum provision of these volumes that carries the peak; `None` where they do not carry it.
    pub(crate) needed_month: Option<f64>,
    /// IOPS above the instance's limit; zero where its limits are not known.
    pub(crate) iops_beyond_instance: f64,
    /// Throughput above the instance's limit, in MiB/s; zero where its limits are not known.
    pub(crate) mibps_beyond_instance: f64,
    pub(crate) sentences: Vec<String>,
}

/// Compares the current provision with the minimum provision of the same volumes for the workload's peak.
pub(crate) fn idle(
    have: &OwnedVolumes,
    offers: &[Offer],
    workload: &Workload,
    goal: &Goal,
) -> Result<IdleCapacity, String> {
    let offer = offers
        .iter()
        .find(|offer| offer.name == have.name)
        .ok_or_else(|| {
            let names: Vec<&str> = offers.iter().map(|offer| offer.name.as_str()).collect();
            format!(
                "--have: there is no type '{}' in this region; there are {}",
                have.name,
                names.join(", ")
            )
        })?;
    let bought = offer
        .provisioned(
            have.gib,
            have.iops.unwrap_or(0.0),
            have.mibps.unwrap_or(0.0),
        )
        .filter(|_| have.gib <= offer.most_gib && have.gib >= offer.least_gib)
        .ok_or_else(|| {
            format!(
                "--have: {} is not sold with that size, IOPS and throughput",
                have.name
            )
        })?;
    let count = f64::from(have.count);
    let month = count * offer.month(&bought);
    let demand = workload.demand(offer.merge, None);
    let needed = smallest(offer, have.count, demand, have.gib * u64::from(have.count)).ok();
    let needed_month = needed
        .filter(|needed| {
            needed.iops <= bought.iops && needed.mibps <= bought.mibps && needed.gib == bought.gib
        })
        .map(|needed| count * offer.month(&needed));
    let beyond = |have: f64, limit: Option<f64>| limit.map_or(0.0, |limit| (have - limit).max(0.0));
    let instance = goal.instance.as_ref();
    let mibps_limit = instance.map(|it| it.maximum_mb_per_s * 1e6 / Bytes::mib(1).0 as f64);
    let mut idle = IdleCapacity {
        month,
        needed_month,
        iops_beyond_instance: beyond(count * bought.iops, instance.map(|it| it.maximum_iops)),
        mibps_beyond_instance: beyond(count * bought.mibps, mibps_limit),
        sentences: Vec::new(),
    };
    idle.sentences = idle.describe(offer, &demand);
    Ok(idle)
}
impl IdleCapacity {
    fn describe(&self, offer: &Offer, demand: &Demand) -> Vec<String> {
        let currency = &offer.currency;
        let mut sentences = vec![match self.needed_month {
            None => format!(
                "These volumes do not carry the peak of {} IOPS and {} MiB/s.",
                number(demand.iops),
                number(demand.mibps())
            ),
            Some(needed) if self.month - needed >= 0.01 => format!(
                "{:.2} {currency} a month of {:.2} buy IOPS or throughput that the peak does not use.",
                self.month - needed,
                self.month
            ),
            Some(_) => "Nothing is provisioned beyond the peak.".to_owned(),
        }];
        if self.iops_beyond_instance > 0.0 {
            sentences.push(format!(
                "{} provisioned IOPS are beyond the most that the instance carries: it never \
                 delivers them.",
                number(self.iops_beyond_instance)
            ));
        }
        if self.mibps_beyond_instance > 0.0 {
            sentences.push(format!(
                "{} MiB/s are beyond the most that the instance carries: it never delivers them.",
                number(self.mibps_beyond_instance)
            ));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choose::{CapacityVerdict, all};
    use crate::instance::InstanceLimits;
    use crate::offer::table;
    use crate::workload::tests::hours;

    fn goal(instance: Option<InstanceLimits>) -> Goal {
        Goal {
            size_gib: 500,
            p99: None,
            most_volumes: 1,
            instance,
        }
    }

    fn gp3(workload: &Workload) -> VolumeChoice {
        let found = all(&table(), workload, &goal(None))
            .into_iter()
            .find_map(|verdict| match verdict {
                CapacityVerdict::Carries(choice) if choice.offer.name == "gp3" => Some(*choice),
                _ => None,
            });
        found.unwrap()
    }

    #[test]
    fn the_quiet_hours_are_found() {
        let mut day = [4_000.0; 24];
        day[8..18].fill(10_000.0);
        let workload = hours(&day);
        let choice = gp3(&workload);
        let found = best(&choice, &workload, &goal(None)).unwrap();
        assert_eq!((found.from_hour, found.to_hour), (18, 8));
        // 14 hours of 24 with 6,000 IOPS and 93.75 MiB/s... less: 16 KiB x 4,000 is 62.5 MiB/s, 125 are free.
        let saved = (6_000.0 * 0.005 + (156.25_f64.ceil() - 125.0) * 0.04) * 14.0 / 24.0;
        assert!((found.saved - saved).abs() < 1e-9, "{found:?} {saved}");
        assert_eq!(best(&choice, &hours(&day[..20]), &goal(None)), None);
        assert_eq!(
            best(
                &gp3(&hours(&[9_000.0; 24])),
                &hours(&[9_000.0; 24]),
                &goal(None)
            ),
            None
        );
    }

    #[test]
    fn idle_money_is_what_the_peak_does_not_need() {
        let workload = hours(&[5_000.0; 24]);
        let judge = |text: &str, instance| {
            let have = text.parse::<OwnedVolumes>().unwrap();
            idle(&have, &table(), &workload, &goal(instance))
        };
        let idle = judge("gp3,500GiB,16000,500", None).unwrap();
        // 13,000 IOPS and 375 MiB/s are paid; 2,000 and none are needed.
        assert!((idle.month - (40.0 + 65.0 + 15.0)).abs() < 1e-9);
        assert!((idle.needed_month.unwrap() - (40.0 + 10.0)).abs() < 1e-9);
        assert_eq!(judge("gp3,500GiB", None).unwrap().needed_month, None);
        let limits = InstanceLimits {
            name: "a".to_owned(),
            baseline_iops: 6_000.0,
            baseline_mb_per_s: 143.75,
            maximum_iops: 10_000.0,
            maximum_mb_per_s: 1_000.0,
        };
        let idle = judge("gp3,500GiB,16000,500", Some(limits)).unwrap();
        assert_eq!(idle.iops_beyond_instance, 6_000.0);
        assert!(
            judge("gp9,1GiB", None)
                .unwrap_err()
                .contains("no type 'gp9'")
        );
        assert!(
            judge("gp3,1GiB,16000", None)
                .unwrap_err()
                .contains("not sold")
        );
        for wrong in [
            "",
            "gp3",
            "gp3,1GiB,x",
            "gp3,1GiB,1,1,1.5",
            "gp3,1GiB,1,1,1,1",
        ] {
            assert!(wrong.parse::<OwnedVolumes>().is_err(), "{wrong}");
        }
    }
}
