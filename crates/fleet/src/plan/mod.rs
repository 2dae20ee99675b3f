//! Number of hosts to start, and the cost of the race among them.
//!
//! The number follows from the share of good hosts in the past ([`study::supply`]). The requested probability is that
//! for all groups together: the risk is shared among them (Bonferroni). The cost is the result of simulated races
//! ([`study::burnin::simulate`]) among hosts drawn from those of the past, with the default noise. A host is paid for
//! until the race is over, since hosts that dropped out may be called back.

pub(crate) mod past;
pub(crate) mod view;

use std::collections::BTreeMap;

use domain::bought::BoughtVolumes;
use study::burnin::Rule;
use study::burnin::simulate::{RaceNoise, Rng, SimulatedRace, TrueDisk, TrueHost, simulate};
use study::supply;

use crate::hosts::GroupBy;
use past::{PastHost, PastHosts};

/// Number of simulated races; [`RACES_OF_MANY_HOSTS`] for many hosts.
const SIMULATED_RACES: usize = 21;
const RACES_OF_MANY_HOSTS: usize = 3;
/// Number of hosts from which only [`RACES_OF_MANY_HOSTS`] races are simulated.
const MANY_HOSTS: usize = 2_000;
/// Maximum number of hosts for which races are simulated.
const MAX_HOSTS: usize = 50_000;

/// Level of a host without a figure in a simulated race, as the logarithm of a share: so low that the host drops out
/// immediately.
const NO_FIGURE_LEVEL: f64 = -4.0;

/// Name of the single group without a grouping.
const ALL: &str = "all";

/// Goals of a plan: number and probability of good hosts; length of a round and price of a host, for its cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanGoals<'a> {
    /// Number of good hosts wanted of each group.
    pub want: usize,
    /// Property by which hosts are grouped.
    pub per: Option<GroupBy>,
    /// Probability that all groups have enough good hosts.
    pub chance: f64,
    /// Length of a round of the race, in seconds.
    pub round_s: f64,
    /// Price of a host for an hour, without its volumes.
    pub price: Option<f64>,
    /// Volumes of a host.
    pub volumes: &'a [BoughtVolumes],
}

impl PlanGoals<'_> {
    /// Price of a host with its volumes for an hour; `None` if both are unknown.
    pub(crate) fn host_hour(&self) -> Option<f64> {
        let volumes = self.volumes.iter().map(BoughtVolumes::per_hour);
        let volumes = (!self.volumes.is_empty()).then(|| volumes.sum::<f64>());
        match (self.price, volumes) {
            (None, None) => None,
            (host, volumes) => Some(host.unwrap_or(0.0) + volumes.unwrap_or(0.0)),
        }
    }
}

/// Plan of a group of hosts, those of one zone or type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlanGroup {
    /// The zone or type.
    pub name: String,
    /// Good hosts of the past.
    pub past: supply::PastResults,
    /// Number of hosts to start; `None` if the past data are not sufficient.
    pub start: Option<usize>,
    /// Lower bound of the probability that enough of them are good.
    pub chance: f64,
}

/// Cost of the race, over simulated races.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RaceCost {
    /// Median number of rounds.
    pub rounds: usize,
    /// 95th percentile of the number of rounds.
    pub most_rounds: usize,
    /// Median time of measuring, summed over the hosts, in hours.
    pub measured_h: f64,
    /// Median time until the race is over, summed over the hosts, in hours.
    pub running_h: f64,
    /// 95th percentile of that time.
    pub most_running_h: f64,
}

/// Plan of a race: hosts to start of each group, and their cost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RacePlan {
    /// The groups, in the order of their names.
    pub groups: Vec<PlanGroup>,
    /// Cost of the race; `None` if no number of hosts follows from the past, the past has no figures, or there are too
    /// many hosts to simulate.
    pub cost: Option<RaceCost>,
}

impl RacePlan {
    /// Makes a plan.
    ///
    /// # Errors
    /// A sentence, if the group of a past host is unknown.
    pub(crate) fn of(past: &PastHosts, goals: &PlanGoals<'_>) -> Result<RacePlan, String> {
        let mut hosts: BTreeMap<String, Vec<&(PastHost, bool)>> = BTreeMap::new();
        let mut lost = 0;
        for one in &past.hosts {
            let group = match goals.per {
                None => Some(ALL.to_owned()),
                Some(GroupBy::Zone) => one.0.zone.clone(),
                Some(GroupBy::Type) => one.0.kind.clone(),
            };
            match group {
                Some(group) => hosts.entry(group).or_default().push(one),
                None => lost += 1,
            }
        }
        if lost > 0 {
            let what = goals.per.map_or("group", GroupBy::name);
            return Err(format!(
                "of {lost} of the {} hosts of the past no {what} is known; add it to them, or leave \
                 --per out",
                past.hosts.len()
            ));
        }
        // The risk is shared among the groups.
        let chance = 1.0 - (1.0 - goals.chance) / hosts.len().max(1) as f64;
        let groups: Vec<PlanGroup> = hosts
            .iter()
            .map(|(name, hosts)| group(name, hosts, goals.want, chance))
            .collect();
        let pools: Vec<Vec<&PastHost>> = hosts
            .values()
            .map(|hosts| hosts.iter().map(|one| &one.0).collect())
            .collect();
        let mut plan = RacePlan { groups, cost: None };
        plan.cost = plan.simulated_cost(&pools, goals);
        Ok(plan)
    }

    /// Total number of hosts to start; `None` if that of a group is unknown.
    pub(crate) fn total(&self) -> Option<usize> {
        self.groups.iter().map(|group| group.start).sum()
    }

    /// Simulates the race among the hosts to start.
    fn simulated_cost(&self, pools: &[Vec<&PastHost>], goals: &PlanGoals<'_>) -> Option<RaceCost> {
        let total = self.total().filter(|total| *total <= MAX_HOSTS)?;
        pools
            .iter()
            .flatten()
            .find(|host| host.figure.is_some_and(|figure| figure > 0.0))?;
        let trials = if total > MANY_HOSTS {
            RACES_OF_MANY_HOSTS
        } else {
            SIMULATED_RACES
        };
        let mut rng = Rng::new(1);
        let mut races: Vec<SimulatedRace> = (0..trials)
            .map(|_| {
                let hosts = self.drawn(pools, &mut rng);
                simulate(
                    &RaceNoise::plain(),
                    &hosts,
                    Rule::keeping(goals.want),
                    &mut rng,
                )
            })
            .collect();
        races.sort_by_key(|race| race.rounds);
        let (middle, most) = (races.get(trials / 2)?, races.get(trials - 1 - trials / 20)?);
        let mut measured: Vec<usize> = races.iter().map(|race| race.host_rounds).collect();
        measured.sort_unstable();
        let hours = |rounds: usize| rounds as f64 * goals.round_s / 3600.0;
        Some(RaceCost {
            rounds: middle.rounds,
            most_rounds: most.rounds,
            measured_h: hours(*measured.get(trials / 2)?),
            running_h: hours(middle.rounds * total),
            most_running_h: hours(most.rounds * total),
        })
    }

    /// Hosts drawn from the past of each group.
    fn drawn(&self, pools: &[Vec<&PastHost>], rng: &mut Rng) -> Vec<TrueHost> {
        let mut hosts = Vec::new();
        for (zone, (group, pool)) in self.groups.iter().zip(pools).enumerate() {
            for _ in 0..group.start.unwrap_or(0) {
                let at = (rng.uniform() * pool.len() as f64) as usize;
                let figure = pool.get(at).and_then(|host| host.figure);
                let sound = figure.filter(|figure| *figure > 0.0);
                hosts.push(TrueHost {
                    zone,
                    disks: vec![TrueDisk {
                        level: sound.map_or(NO_FIGURE_LEVEL, f64::ln),
                        slow_share: 0.0,
                        slow_depth: 0.0,
                    }],
                });
            }
        }
        hosts
    }
}

fn group(name: &str, hosts: &[&(PastHost, bool)], want: usize, chance: f64) -> PlanGroup {
    let past = supply::PastResults {
        good: hosts.iter().filter(|one| one.1).count(),
        all: hosts.len(),
    };
    let start = past.to_start(want, chance);
    PlanGroup {
        name: name.to_owned(),
        past,
        start,
        chance: start.map_or(0.0, |start| past.chance(want, start)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOALS: PlanGoals<'static> = PlanGoals {
        want: 3,
        per: Some(GroupBy::Zone),
        chance: 0.95,
        round_s: 10.0,
        price: None,
        volumes: &[],
    };

    /// `good` hosts at 12,000 IOPS and `bad` ones at 5,000 in a zone.
    fn zone(name: &str, good: usize, bad: usize) -> Vec<(PastHost, bool)> {
        let host = |figure, good| {
            let host = PastHost {
                zone: Some(name.to_owned()),
                kind: Some("t".to_owned()),
                figure: Some(figure),
                kept: None,
            };
            (host, good)
        };
        let good = (0..good).map(|at| host(12_000.0 + 500.0 * at as f64, true));
        good.chain((0..bad).map(|_| host(5_000.0, false))).collect()
    }

    fn past(hosts: Vec<(PastHost, bool)>) -> PastHosts {
        PastHosts {
            hosts,
            good: String::new(),
        }
    }

    #[test]
    fn a_poor_zone_needs_more_hosts() {
        let both = past([zone("a", 18, 2), zone("b", 10, 10)].concat());
        let plan = RacePlan::of(&both, &GOALS).unwrap();
        let starts: Vec<usize> = plan
            .groups
            .iter()
            .map(|group| group.start.unwrap())
            .collect();
        assert!(starts[0] >= 4 && starts[1] > starts[0] + 2, "{starts:?}");
        assert!(plan.groups.iter().all(|group| group.chance >= 0.975 - 1e-9));
        let cost = plan.cost.unwrap();
        let total = plan.total().unwrap() as f64;
        assert!(cost.rounds <= cost.most_rounds && cost.measured_h < cost.running_h);
        assert!((cost.running_h - total * cost.rounds as f64 / 360.0).abs() < 1e-9);
        let one = RacePlan::of(&both, &PlanGoals { per: None, ..GOALS }).unwrap();
        assert_eq!((one.groups.len(), one.groups[0].past.all), (1, 40));
    }

    #[test]
    fn a_past_without_a_good_host_gives_no_number() {
        let none = past([zone("a", 18, 2), zone("b", 0, 10)].concat());
        let plan = RacePlan::of(&none, &GOALS).unwrap();
        assert_eq!((plan.total(), plan.cost), (None, None));
        assert!(plan.groups[0].start.is_some() && plan.groups[1].start.is_none());
    }

    #[test]
    fn a_host_without_a_zone_is_refused() {
        let mut hosts = zone("a", 3, 0);
        hosts[1].0.zone = None;
        let error = RacePlan::of(&past(hosts), &GOALS).unwrap_err();
        assert!(
            error.starts_with("of 1 of the 3 hosts of the past no zone"),
            "{error}"
        );
    }
}
