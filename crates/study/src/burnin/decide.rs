//! Decisions of a race: hosts that drop out or are called back, and the end of a group's race.

use std::collections::BTreeSet;

use super::bounds::Bounds;
use super::{Decision, End, HostStatus, MIN_MEASURED_HOSTS, Race};

impl Race {
    /// State of a group's race; empty for an unknown group.
    pub fn decision(&self, group: usize) -> Decision {
        let Some(of) = self.groups.get(group) else {
            return Decision {
                end: None,
                keep: Vec::new(),
                tied: Vec::new(),
                places: 0,
            };
        };
        // A host without measurements is neither among the best nor as good as they are.
        let is_known = |host: &&usize| self.hosts[**host].rounds > 0;
        let left: Vec<usize> = of.left.iter().filter(is_known).copied().collect();
        if left.len() <= self.rule.keep {
            return Decision {
                end: of.end,
                keep: left,
                tied: Vec::new(),
                places: 0,
            };
        }
        let (keep, tied): (Vec<usize>, Vec<usize>) = if of.end == Some(End::Equal) {
            let best_other = self.hosts[left[self.rule.keep]].figure;
            let above = |host: &usize| self.hosts[*host].figure > best_other + self.tie();
            left.into_iter().partition(above)
        } else {
            let mut bounds = self.bounds();
            left.iter()
                .partition(|host| self.is_surely_kept(&mut bounds, **host, &left))
        };
        let places = self.rule.keep.saturating_sub(keep.len());
        Decision {
            end: of.end,
            keep,
            tied: if places == 0 { Vec::new() } else { tied },
            places,
        }
    }

    /// True if fewer of the other hosts than are kept may be ahead of a host.
    fn is_surely_kept(&self, bounds: &mut Bounds, host: usize, left: &[usize]) -> bool {
        let may_lead = |other: &&usize| **other != host && self.lead(bounds, host, **other) <= 0.0;
        left.iter().filter(may_lead).count() < self.rule.keep
    }

    /// The tie as a difference of logarithms.
    fn tie(&self) -> f64 {
        -(-self.rule.tie).ln_1p()
    }

    /// Decides all groups whose race continues.
    pub(super) fn decide(&mut self) {
        let mut bounds = self.bounds();
        for group in 0..self.groups.len() {
            if self.groups[group].end.is_none() {
                self.decide_group(group, &mut bounds);
            }
        }
    }

    /// Lower bound of the lead of `better` over `other`; above zero the lead is significant. Negative infinity if one
    /// of them was measured too rarely.
    fn lead(&self, bounds: &mut Bounds, better: usize, other: usize) -> f64 {
        let (better, other) = (&self.hosts[better], &self.hosts[other]);
        if better.rounds.min(other.rounds) < self.rule.least.max(2) {
            return f64::NEG_INFINITY;
        }
        better.low - other.high - bounds.radius(better, other)
    }

    fn decide_group(&mut self, group: usize, bounds: &mut Bounds) {
        let mut order = self.alive(group);
        order.sort_by(|a, b| self.hosts[*b].figure.total_cmp(&self.hosts[*a].figure));
        let mut left = self.in_question(&order, bounds);
        self.stand(&order, &left);
        let mut end = self.end(&left, order.len(), bounds);
        if end == Some(End::Equal) {
            let round = self.rounds.saturating_sub(1);
            for host in self.leave_equals(&mut left) {
                self.hosts[host].status = HostStatus::Left { round };
            }
            if left.len() <= self.rule.keep {
                end = Some(End::Decided);
            }
        }
        let others = order.into_iter().filter(|host| !left.contains(host));
        let lacking = MIN_MEASURED_HOSTS.saturating_sub(left.len());
        self.groups[group].references = others.take(lacking).collect();
        self.groups[group].left = left;
        self.groups[group].end = end;
    }

    /// The members of a group that are not removed.
    fn alive(&self, group: usize) -> Vec<usize> {
        let alive =
            |host: &&usize| !matches!(self.hosts[**host].status, HostStatus::Removed { .. });
        let members = self.groups[group].members.iter();
        members.filter(alive).copied().collect()
    }

    /// The hosts that may be among the best: fewer hosts than are kept are significantly ahead of them. In the given
    /// order.
    fn in_question(&self, order: &[usize], bounds: &mut Bounds) -> Vec<usize> {
        // Only hosts with a high lower bound can be ahead of many; a few more than are kept are tried, since hosts
        // with more rounds have narrower bounds.
        let mut leaders = order.to_vec();
        let most = 4 * self.rule.keep + 16;
        leaders.sort_by(|a, b| self.hosts[*b].low.total_cmp(&self.hosts[*a].low));
        leaders.truncate(most);
        let mut in_question = |host: &usize| {
            let mut ahead = 0;
            for leader in &leaders {
                ahead += usize::from(self.lead(bounds, *leader, *host) > 0.0);
                if ahead >= self.rule.keep {
                    return false;
                }
            }
            true
        };
        let left = order.iter().filter(|host| in_question(host));
        left.copied().collect()
    }

    fn end(&self, left: &[usize], alive: usize, bounds: &mut Bounds) -> Option<End> {
        let least = self.rule.least.max(2);
        let is_measured = |host: &usize| self.hosts[*host].rounds >= least;
        if alive <= self.rule.keep && left.iter().all(is_measured) {
            return Some(End::Few);
        }
        let proof = super::bounds::proof_rounds(&self.rule, self.groups.len());
        let proven = left.iter().all(|host| self.hosts[*host].rounds >= proof);
        if proven && left.len() <= self.rule.keep {
            return Some(End::Decided);
        }
        if proven && self.equal(left, bounds) {
            return Some(End::Equal);
        }
        (self.rounds >= self.rule.rounds).then_some(End::Rounds)
    }

    /// True if none of the other hosts is better than one of the first by more than the tie.
    fn equal(&self, left: &[usize], bounds: &mut Bounds) -> bool {
        let (first, others) = left.split_at(self.rule.keep.min(left.len()));
        first.iter().all(|one| {
            let mut others = others.iter();
            others.all(|other| -self.lead(bounds, *one, *other) <= self.tie())
        })
    }

    /// Leaves out the hosts that are neither better than a kept one nor as good by their measured figures, and returns
    /// them.
    fn leave_equals(&self, left: &mut Vec<usize>) -> Vec<usize> {
        let figure = |host: &usize| self.hosts[*host].figure;
        let last_kept = self.rule.keep.checked_sub(1).and_then(|at| left.get(at));
        let Some(bar) = last_kept.map(|last| figure(last) - self.tie()) else {
            return Vec::new();
        };
        let (as_good, others) = left.iter().partition(|host| figure(host) >= bar);
        *left = as_good;
        others
    }

    /// Sets the status of each host: in, or out since a round.
    fn stand(&mut self, order: &[usize], left: &[usize]) {
        let round = self.rounds.saturating_sub(1);
        let still: BTreeSet<usize> = left.iter().copied().collect();
        for host in order {
            let status = &mut self.hosts[*host].status;
            *status = match (still.contains(host), *status) {
                (true, _) => HostStatus::In,
                (false, HostStatus::Out { round }) => HostStatus::Out { round },
                (false, _) => HostStatus::Out { round },
            };
        }
    }
}
