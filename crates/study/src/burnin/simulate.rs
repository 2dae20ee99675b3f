//! Simulated races of hosts with known levels, to predict the share of right results and the cost of a race.

use super::{End, MeasuredHost, Race, Rule};
pub use record::random::SplitMix64 as Rng;

/// Noise of the measurements in a race.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RaceNoise {
    /// Standard deviation of one round of one disk, as a share.
    pub noise: f64,
    /// Autocorrelation of the noise of consecutive rounds: zero if rounds are independent.
    pub memory: f64,
    /// True if the noise has heavy tails: Student's t with four degrees of freedom.
    pub heavy: bool,
    /// Standard deviation of the common effect of a round on all hosts.
    pub hour: f64,
}

impl RaceNoise {
    /// 4 % of noise in a round, and hours that differ by 5 %.
    pub fn plain() -> RaceNoise {
        RaceNoise {
            noise: 0.04,
            memory: 0.0,
            heavy: false,
            hour: 0.05,
        }
    }
}

/// Differences between hosts. Shares are of all hosts, and standard deviations are shares of the level.
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    /// The standard deviation of the levels of sound hosts.
    pub spread: f64,
    /// Share of broken hosts: they have [`Population::broken_left`] of their level, half of them on one disk only.
    pub broken: f64,
    /// Range of the share of its level that a broken disk has left.
    pub broken_left: (f64, f64),
    /// Share of hosts that are intermittently slow, half of them on one disk only.
    pub intermittent: f64,
    /// Range of the share of their rounds that is slow.
    pub slow_share: (f64, f64),
    /// Range of the share of the level that is left in these rounds.
    pub slow_left: (f64, f64),
    /// Number of zones.
    pub zones: usize,
    /// Slowdown of each zone against the one before it.
    pub zone_step: f64,
    /// Number of disks of a host.
    pub disks: usize,
    /// Spread of the disks of a host.
    pub disk_spread: f64,
    /// Conditions of measuring.
    pub conditions: RaceNoise,
}

impl Population {
    /// Levels with a spread of 15 %, a tenth of the hosts broken, three in a hundred slow in 5 to 30 % of the rounds,
    /// and three zones, each 5 % slower than the one before; one disk, noise of 4 % a round, and hours that differ by
    /// 5 %.
    pub fn plain() -> Population {
        Population {
            spread: 0.15,
            broken: 0.1,
            broken_left: (0.05, 0.6),
            intermittent: 0.03,
            slow_share: (0.05, 0.3),
            slow_left: (0.1, 0.7),
            zones: 3,
            zone_step: 0.05,
            disks: 1,
            disk_spread: 0.03,
            conditions: RaceNoise::plain(),
        }
    }

    /// Draws hosts, alternating between the zones.
    pub fn draw(&self, hosts: usize, rng: &mut Rng) -> Vec<TrueHost> {
        (0..hosts)
            .map(|host| self.host(host % self.zones.max(1), rng))
            .collect()
    }

    fn host(&self, zone: usize, rng: &mut Rng) -> TrueHost {
        let level = self.spread * rng.normal() + zone as f64 * (-self.zone_step).ln_1p();
        let mut disks: Vec<TrueDisk> = (0..self.disks.max(1))
            .map(|_| TrueDisk {
                level: level + self.disk_spread * rng.normal(),
                slow_share: 0.0,
                slow_depth: 0.0,
            })
            .collect();
        let (luck, one) = (rng.uniform(), rng.uniform() < 0.5);
        let hit = if one { 1 } else { disks.len() };
        let between = |(low, high): (f64, f64), at: f64| low + (high - low) * at;
        let (first, second) = (rng.uniform(), rng.uniform());
        for disk in disks.iter_mut().take(hit) {
            if luck < self.broken {
                disk.level += between(self.broken_left, first).ln();
            } else if luck < self.broken + self.intermittent {
                disk.slow_share = between(self.slow_share, first);
                disk.slow_depth = -between(self.slow_left, second).ln();
            }
        }
        TrueHost { zone, disks }
    }
}

/// A host with known levels.
#[derive(Clone, Debug, PartialEq)]
pub struct TrueHost {
    /// Zone of the host, from 0.
    pub zone: usize,
    /// Disks of the host.
    pub disks: Vec<TrueDisk>,
}

/// A disk with known levels, as logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrueDisk {
    /// Level of the disk.
    pub level: f64,
    /// Share of the rounds in which the disk is slow.
    pub slow_share: f64,
    /// Depth below the level in these rounds.
    pub slow_depth: f64,
}

impl TrueHost {
    /// The logarithm of the figure that a race estimates: the mean of the worst `tail` of all rounds of the worst
    /// disk, without noise.
    pub fn figure(&self, tail: f64) -> f64 {
        let figure =
            |disk: &TrueDisk| disk.level - (disk.slow_share / tail).min(1.0) * disk.slow_depth;
        self.disks.iter().map(figure).fold(f64::INFINITY, f64::min)
    }
}

/// Result of a simulated race.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedRace {
    /// Rounds until the last group was decided.
    pub rounds: usize,
    /// Number of measured rounds, summed over all hosts.
    pub host_rounds: usize,
    /// True if the kept hosts are the true best of every group: no host that was left out is better by more than the
    /// tie than one that is kept. Among tied hosts, the race's own order decides.
    pub right: bool,
    /// True if that holds with a tie of zero.
    pub exact: bool,
    /// Number of groups that ended as a tie, because the hosts are equal or the rounds were used up.
    pub equal: usize,
    /// Number of groups that used up their rounds.
    pub used_up: usize,
    /// Number of groups.
    pub groups: usize,
}

impl SimulatedRace {
    /// The cost as a share of measuring all hosts for as long as the slowest decision took.
    pub fn share(&self, hosts: usize) -> f64 {
        self.host_rounds as f64 / (self.rounds * hosts).max(1) as f64
    }
}

/// Runs a race of these hosts, grouped by their zones.
pub fn simulate(
    conditions: &RaceNoise,
    hosts: &[TrueHost],
    rule: Rule,
    rng: &mut Rng,
) -> SimulatedRace {
    let zones: Vec<usize> = hosts.iter().map(|host| host.zone).collect();
    let mut race = Race::new(&zones, rule);
    let mut stage = Stage::new(conditions, hosts);
    let mut host_rounds = 0;
    loop {
        let next = race.next();
        if next.is_empty() {
            break;
        }
        host_rounds += next.len();
        race.take(&stage.round(&next, rng));
    }
    let mut simulated = SimulatedRace {
        rounds: race.rounds(),
        host_rounds,
        right: true,
        exact: true,
        equal: 0,
        used_up: 0,
        groups: race.groups(),
    };
    for group in 0..race.groups() {
        simulated.note(&race, group, hosts);
    }
    simulated
}

impl SimulatedRace {
    /// Adds the result of a group's race.
    fn note(&mut self, race: &Race, group: usize, hosts: &[TrueHost]) {
        let rule = race.rule();
        let decision = race.decision(group);
        self.equal += usize::from(decision.end == Some(End::Equal));
        self.used_up += usize::from(decision.end == Some(End::Rounds));
        let tied = decision.tied.iter().take(decision.places);
        let kept: Vec<usize> = decision.keep.iter().chain(tied).copied().collect();
        let figure = |host: usize| hosts[host].figure(rule.tail);
        let members = (0..hosts.len()).filter(|host| hosts[*host].zone == group);
        let worst = kept.iter().map(|host| figure(*host));
        let worst = worst.fold(f64::INFINITY, f64::min);
        let out = members.clone().filter(|host| !kept.contains(host));
        let best = out.map(figure).fold(f64::NEG_INFINITY, f64::max);
        let enough = kept.len() == rule.keep.min(members.count());
        self.right &= enough && best - worst <= -(-rule.tie).ln_1p();
        self.exact &= enough && best <= worst;
    }
}

/// The measured hosts.
struct Stage<'a> {
    conditions: &'a RaceNoise,
    hosts: &'a [TrueHost],
    /// The noise of the last round of each disk, for autocorrelated noise.
    last: Vec<Vec<f64>>,
}

impl<'a> Stage<'a> {
    fn new(conditions: &'a RaceNoise, hosts: &'a [TrueHost]) -> Stage<'a> {
        Stage {
            conditions,
            hosts,
            last: hosts
                .iter()
                .map(|host| vec![0.0; host.disks.len()])
                .collect(),
        }
    }

    /// Measurements of one round of these hosts.
    fn round(&mut self, next: &[usize], rng: &mut Rng) -> Vec<MeasuredHost> {
        let hour = self.conditions.hour * rng.normal();
        let measured = next.iter().map(|host| MeasuredHost {
            host: *host,
            disks: self.disks(*host, hour, rng),
        });
        measured.collect()
    }

    fn disks(&mut self, host: usize, hour: f64, rng: &mut Rng) -> Vec<f64> {
        let conditions = self.conditions;
        let keeps = conditions.memory;
        // If all disks of a host are intermittently slow, they are slow at the same times.
        let luck = rng.uniform();
        let disks = self.hosts[host].disks.iter().zip(&mut self.last[host]);
        let measured = disks.map(|(disk, last)| {
            let fresh = deviation(conditions.heavy, rng);
            *last = keeps * *last + (1.0 - keeps * keeps).sqrt() * fresh;
            let slow = if luck < disk.slow_share {
                disk.slow_depth
            } else {
                0.0
            };
            1e4 * (disk.level + hour + conditions.noise * *last - slow).exp()
        });
        measured.collect()
    }
}

/// A random deviation with variance one.
fn deviation(heavy: bool, rng: &mut Rng) -> f64 {
    let normal = rng.normal();
    if !heavy {
        return normal;
    }
    let squares: f64 = (0..4).map(|_| rng.normal().powi(2)).sum();
    // Student's t with four degrees of freedom has a variance of two.
    normal / (squares / 4.0).sqrt() / std::f64::consts::SQRT_2
}
