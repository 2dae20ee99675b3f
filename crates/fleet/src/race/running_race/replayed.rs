//! A race from the ledger, prepared for a replay of its rounds.

use study::burnin::{Race, Rule};

use crate::floor::HostFloor;
use crate::store::race::{RaceRecord, RacedHost};
use sweep::Figure;

/// Parameters of a race.
pub(crate) struct RaceSetup<'a> {
    /// The figures of each round; hosts are ranked by the first.
    pub figures: &'a [Figure],
    /// Requirements that each disk of a host must meet.
    pub floors: &'a [HostFloor],
    /// Length of a round, in seconds.
    pub round_s: f64,
    /// Minimum number of seconds for which a host may be missing continuously.
    pub silent_s: f64,
    /// Rule by which it is decided.
    pub rule: Rule,
    /// The group of each host, by its index; `None` for a host that does not take part.
    pub groups: &'a [Option<String>],
    /// The paths of each host's targets.
    pub targets: &'a [Vec<String>],
}

/// Data of a race in the ledger, for [`RaceSetup`].
pub(crate) struct ReplayedRace {
    floors: Vec<HostFloor>,
    groups: Vec<Option<String>>,
    targets: Vec<Vec<String>>,
    rule: Rule,
}

impl ReplayedRace {
    /// Prepares a replay. A floor that is no longer valid is left out.
    pub(crate) fn of(record: &RaceRecord) -> ReplayedRace {
        let hosts = || record.hosts.iter();
        let paths = |host: &RacedHost| {
            host.targets
                .iter()
                .map(|target| target.path.clone())
                .collect()
        };
        ReplayedRace {
            floors: record
                .floors
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect(),
            groups: hosts().map(|host| host.group.clone()).collect(),
            targets: hosts().map(paths).collect(),
            rule: Rule {
                least: record.least_rounds,
                rounds: record.most_rounds,
                ..Rule::keeping(record.keep)
            },
        }
    }

    /// Number of rounds in which a host is measured before it is kept, without a maximum of rounds.
    pub(crate) fn proof_rounds(&self) -> usize {
        let mut groups: Vec<&String> = self.groups.iter().flatten().collect();
        groups.sort();
        groups.dedup();
        let group_of: Vec<usize> = (0..groups.len()).collect();
        let rule = Rule {
            rounds: usize::MAX,
            ..self.rule
        };
        Race::new(&group_of, rule).proof_rounds()
    }

    /// Parameters with which the race of `record` is replayed.
    pub(crate) fn setup<'a>(&'a self, record: &'a RaceRecord) -> RaceSetup<'a> {
        RaceSetup {
            figures: &record.figures,
            floors: &self.floors,
            round_s: record.round_s,
            silent_s: record.silent_s,
            rule: self.rule,
            groups: &self.groups,
            targets: &self.targets,
        }
    }
}
