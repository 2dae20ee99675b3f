//! Burn-in race: finds the best of many hosts, and the hosts that need no further measurements.
//!
//! All hosts are measured at the same time, round by round, to find the best [`Rule::keep`] of each group (a zone, and
//! within it a size). Each disk has one figure in each round, such as its rate; a larger figure is better. All
//! computations use logarithms, where a host's level, the hour and the noise are additive.
//!
//! **The figure of a host** is that of its worst disk: one bad disk of four makes a bad host. The figure of a disk is
//! the mean of the worst [`Rule::tail`] of its rounds (expected shortfall; Acerbi and Tasche 2002), without
//! measurement noise: a round counts with the level of the disk's calm rounds, unless it is more than
//! [`SLOW_DEVIATIONS`](rows::SLOW_DEVIATIONS) standard deviations of the noise below them; then it counts with its
//! measured value. With a tail of a tenth, a disk that is slow in one round of twenty has half of that depth in its
//! figure. Slowness within the noise counts in the level like any other round.
//!
//! **The hour** is the common effect of a round on all hosts of a group. Rounds are simultaneous, so it is estimated
//! by the median over the hosts of their distances from their own levels, and subtracted. A median needs references:
//! at least [`MIN_MEASURED_HOSTS`] hosts of a group are measured until its end, even if fewer are still in question.
//!
//! **A host drops out** when as many others as are kept are significantly ahead of it, given the known slow rounds of
//! both. It is not released yet: if a host ahead of it turns out to be intermittently slow, it is called back and
//! measured again. Hosts are released only when the race of their group is over.
//!
//! **The end** of a group's race comes when exactly as many hosts are left as are kept, or when no remaining host is
//! better than a kept one by more than [`Rule::tie`]; hosts within the tie of each other by their measured figures are
//! then reported as tied. Before that, the kept hosts must have been measured in so many rounds that slowness in
//! [`Rule::unseen`] of the rounds would have shown. A group without a result within [`Rule::rounds`] ends as a tie of
//! the remaining hosts.
//!
//! **The risk.** This is the selection of the best subset of Kalyanakrishnan, Tewari, Auer and Stone (2012, PAC subset
//! selection in stochastic multi-armed bandits) by successive elimination (Even-Dar, Mannor and Mansour 2006). A
//! decision is wrong if a host that was left out is truly better by more than the tie than one that is kept. The
//! probability that the decision of any group is wrong is at most [`Rule::risk`]. Half of it is shared among all pairs
//! of a host that belongs to the best and a disk of one that does not (Bonferroni), each with a bound that holds in
//! all rounds at once (Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon 2021, the normal mixture). A quarter is
//! shared among the shares of slow rounds of all disks (Clopper and Pearson 1934) in all rounds, and a quarter among
//! the kept hosts, for slowness that happened not to show. It assumes that the noise of rounds is normal, independent
//! from round to round, and of a size that is estimated from all hosts, by Student's t if there are few data; and that
//! slow rounds are independent of each other. Slowness in less than [`Rule::unseen`] of the rounds may be missed. The
//! tests and `bench/race-sim` simulate how often races are right.
//!
//! The rounds of all disks are kept as four bytes each: 10,000 hosts of eight disks take 80 MB if no host drops out in
//! 240 rounds, and a few MB if most drop out after three.

mod bounds;
mod decide;
mod entrant;
mod noise;
mod rows;
mod rule;
mod shares;
pub mod simulate;
mod status;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use crate::median::median;
use bounds::Bounds;
use entrant::RacedHost;
use noise::Noise;
use rows::DiskRounds;
pub use rule::Rule;
pub use status::HostStatus;

/// Minimum number of hosts of a group that are measured, if it has as many: the effect of the hour can only be
/// separated from that of a host by comparison with others.
pub const MIN_MEASURED_HOSTS: usize = 3;

/// A host measured in a round.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredHost {
    /// The host, from 0.
    pub host: usize,
    /// The figure of each disk, always in the same order, of which more is better; give the inverse
    /// of a latency. A disk whose figure is not positive and finite has failed, and so has its host.
    pub disks: Vec<f64>,
}

/// Estimates of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostEstimate {
    /// The mean of the worst tenth of the rounds of the worst disk, in the unit of what was measured,
    /// at the average hour of the race.
    pub figure: f64,
    /// Lower bound of the figure, by which hosts are compared; the bounds hold for all hosts of the race at once.
    /// They follow from the rounds that were seen: a host without a slow round is supposed to have none.
    pub low: f64,
    /// The upper one.
    pub high: f64,
    /// The worst disk, from 0.
    pub disk: usize,
    /// Number of rounds in which the host was measured.
    pub rounds: usize,
    /// Number of these rounds in which the worst disk was slow.
    pub slow: usize,
    /// Mean rate of these slow rounds as a share of the calm rounds, 0 to 1; 1 if there were none.
    pub left: f64,
}

/// Reason for the end of a group's race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The best are known: none that is left out is better by more than the tie.
    Decided,
    /// The best are known, and some that are left out are as good by their measured figures.
    Equal,
    /// The rounds are used up.
    Rounds,
    /// The group has no more hosts than are kept.
    Few,
}

/// State of a group's race, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Reason for its end; `None` while it continues.
    pub end: Option<End>,
    /// Hosts that are among the best, the best first.
    pub keep: Vec<usize>,
    /// Hosts that tie for the remaining places, the best first; empty if there are none.
    pub tied: Vec<usize>,
    /// Number of places left for those that tie.
    pub places: usize,
}

/// A race in progress.
#[derive(Clone, Debug)]
pub struct Race {
    rule: Rule,
    hosts: Vec<RacedHost>,
    groups: Vec<Group>,
    noise: Noise,
    /// Number of rounds measured.
    rounds: usize,
    /// Common effect of the first round on all hosts.
    centre: Option<f64>,
    /// Bounds since the last round, computed on request: they take a pass over all hosts, which a caller that queries
    /// each host would otherwise repeat.
    known_bounds: RefCell<Option<Bounds>>,
}

/// A group: hosts that compete with each other.
#[derive(Clone, Debug, Default)]
struct Group {
    members: Vec<usize>,
    /// Effects of the hours, as logarithms: their sum and their number.
    hours: (f64, usize),
    /// Hosts that are still in, the best first.
    left: Vec<usize>,
    /// Hosts that are measured only to separate the hour from the hosts.
    references: Vec<usize>,
    end: Option<End>,
}

impl Race {
    /// A race of hosts, each given by its group, from 0.
    pub fn new(group_of: &[usize], rule: Rule) -> Race {
        let count = group_of.iter().max().map_or(0, |last| last + 1);
        let mut groups = vec![Group::default(); count];
        for (host, group) in group_of.iter().enumerate() {
            groups[*group].members.push(host);
            groups[*group].left.push(host);
        }
        let mut race = Race {
            rule,
            hosts: group_of
                .iter()
                .map(|group| RacedHost::new(*group))
                .collect(),
            groups,
            noise: Noise::default(),
            rounds: 0,
            centre: None,
            known_bounds: RefCell::new(None),
        };
        race.decide();
        race
    }

    /// Rule of the race.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Number of rounds measured.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// Number of rounds in which a host is measured before it is kept.
    pub fn proof_rounds(&self) -> usize {
        bounds::proof_rounds(&self.rule, self.groups.len())
    }

    /// The hosts to measure in the next round, all at the same time; empty when the race is over.
    pub fn next(&self) -> Vec<usize> {
        let going = self.groups.iter().filter(|group| group.end.is_none());
        let both = going.flat_map(|group| group.left.iter().chain(&group.references));
        let mut next: Vec<usize> = both.copied().collect();
        next.sort_unstable();
        next
    }

    /// Adds a round. A host without a measurement was unreachable, and may be measured in the next round. Unknown and
    /// removed hosts are ignored.
    pub fn take(&mut self, measured: &[MeasuredHost]) {
        let round = self.rounds;
        self.rounds += 1;
        let mut logs: Vec<(usize, Vec<f64>)> = Vec::with_capacity(measured.len());
        for one in measured {
            let Some(entrant) = self.hosts.get_mut(one.host) else {
                continue;
            };
            if matches!(entrant.status, HostStatus::Removed { .. }) {
                continue;
            }
            if entrant.takes(&one.disks) {
                logs.push((one.host, one.disks.iter().map(|x| x.ln()).collect()));
            } else {
                self.strike(one.host, round);
            }
        }
        let hours = self.hours(&logs);
        for (host, logs) in logs {
            let entrant = &mut self.hosts[host];
            entrant.push(&logs, hours[entrant.group]);
        }
        let own_hour = |group: &&Group| group.members.len() >= MIN_MEASURED_HOSTS;
        let groups = self.groups.iter().filter(own_hour).count().max(1);
        let rows: Vec<&DiskRounds> = self.hosts.iter().flat_map(|host| &host.rows).collect();
        self.noise.learn(&rows, groups);
        *self.known_bounds.get_mut() = None;
        self.judge();
        self.decide();
    }

    /// Removes a host that missed a floor or is gone. Others may be called back in its place, even if the race of its
    /// group was over.
    pub fn remove(&mut self, host: usize) {
        if host < self.hosts.len() {
            self.strike(host, self.rounds);
            self.decide();
        }
    }

    /// Removes a host, and reopens its group if the host was to be kept.
    fn strike(&mut self, host: usize, round: usize) {
        self.hosts[host].status = HostStatus::Removed { round };
        let group = &mut self.groups[self.hosts[host].group];
        if group.left.contains(&host) {
            group.end = None;
        }
    }

    /// Status of a host; `None` for an unknown host.
    pub fn status(&self, host: usize) -> Option<HostStatus> {
        Some(self.hosts.get(host)?.status)
    }

    /// Standard deviation of one round of a disk, as a share of its level; `None` until it is estimated.
    pub fn noise(&self) -> Option<f64> {
        self.noise.deviation()
    }

    /// Reason for the end of a group's race; `None` while it continues, or for an unknown group.
    pub fn ended(&self, group: usize) -> Option<End> {
        self.groups.get(group)?.end
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Estimates of a host; `None` before its first measurement.
    pub fn known(&self, host: usize) -> Option<HostEstimate> {
        let entrant = self.hosts.get(host)?;
        let worst = entrant.worst_row()?;
        let group = &self.groups[entrant.group];
        let hour = group.hours.0 / group.hours.1.max(1) as f64;
        let mut known_bounds = self.known_bounds.borrow_mut();
        let bounds = known_bounds.get_or_insert_with(|| self.bounds());
        let radius = bounds.radius_of_one(entrant);
        let unit = |log: f64| (log + hour).exp();
        Some(HostEstimate {
            figure: unit(entrant.figure),
            low: unit(entrant.low - radius),
            high: unit(entrant.high + radius),
            disk: entrant.worst,
            rounds: entrant.rounds,
            slow: worst.slow,
            left: (-worst.depth).exp(),
        })
    }

    /// The bounds with the present noise estimate.
    fn bounds(&self) -> Bounds {
        let sizes = self.groups.iter().map(|group| group.members.len());
        let disks = self.hosts.iter().map(|host| host.rows.len()).max();
        Bounds::new(&self.rule, sizes, disks.unwrap_or(1), self.noise)
    }

    /// Common effect of a round on each group, as a logarithm.
    fn hours(&mut self, logs: &[(usize, Vec<f64>)]) -> Vec<f64> {
        let first = |logs: &[(usize, Vec<f64>)]| {
            let own = logs
                .iter()
                .map(|(_, logs)| median(logs.clone()).unwrap_or(0.0));
            median(own.collect()).unwrap_or(0.0)
        };
        if logs.is_empty() {
            return vec![0.0; self.groups.len()];
        }
        let centre = *self.centre.get_or_insert_with(|| first(logs));
        let mut off: Vec<Vec<f64>> = vec![Vec::new(); self.groups.len()];
        for (host, logs) in logs {
            let entrant = &self.hosts[*host];
            if let Some(one) = entrant.off(logs) {
                off[entrant.group].push(one);
            }
        }
        let all: Vec<f64> = off.iter().flatten().copied().collect();
        // Too few hosts over all groups cannot show the effect of the hour.
        let shared = if all.len() < MIN_MEASURED_HOSTS {
            centre
        } else {
            median(all).unwrap_or(0.0)
        };
        let hours: Vec<f64> = off
            .into_iter()
            .map(|off| match off.len() {
                few if few < MIN_MEASURED_HOSTS => shared,
                _ => median(off).unwrap_or(0.0),
            })
            .collect();
        for (group, hour) in self.groups.iter_mut().zip(&hours) {
            if group.end.is_none() {
                group.hours = (group.hours.0 + hour, group.hours.1 + 1);
            }
        }
        hours
    }

    /// Judges each host by its rounds, with the present noise estimate.
    fn judge(&mut self) {
        let rows: usize = self.hosts.iter().map(|host| host.rows.len()).sum();
        let risk = bounds::slow_risk(&self.rule, rows);
        let (noise, tail) = (self.noise, self.rule.tail);
        for entrant in &mut self.hosts {
            entrant.judge(noise, tail, risk);
        }
    }
}
