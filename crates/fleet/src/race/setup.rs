//! Setup of a race: groups that compete, and number of rounds.

use std::collections::BTreeMap;

use study::burnin::{Race, Rule};

use crate::args::RaceArgs;
use crate::floor::HostFloor;
use crate::hosts::GroupBy;
use crate::hosts::Host;
use ui::units::duration;

/// Name of the group of hosts without a zone or type in their source.
pub(crate) const UNKNOWN: &str = "unknown";
/// Name of the single group without a grouping.
const ALL: &str = "all";

/// A race that can begin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    /// The groups' names, in their order.
    pub groups: Vec<String>,
    /// The group of each host.
    pub group_of: Vec<usize>,
    /// Rule of the race.
    pub rule: Rule,
    /// Floors that a host must meet throughout.
    pub floors: Vec<HostFloor>,
    /// Length of a round, in seconds.
    pub round_s: f64,
    /// Number of rounds in which a host is measured before it is kept.
    pub proof_rounds: usize,
    /// Number of rounds in which a host would be measured before it is kept, without a maximum of rounds.
    proof_wanted: usize,
    /// Number of hosts of an unknown group.
    unknown: usize,
}

impl Setup {
    /// Groups the hosts by the facts of their source, and sets the minimum number of rounds so that the longest floor
    /// is watched before any host drops out.
    ///
    /// # Errors
    /// A sentence, if the race would be over before.
    pub(crate) fn of(hosts: &[Host], args: &RaceArgs) -> Result<Setup, String> {
        let name = |host: &Host| name(host.zone.as_deref(), host.kind.as_deref(), args.per);
        let names: Vec<String> = hosts.iter().map(name).collect();
        Setup::grouped(&names, args)
    }

    /// Makes the setup for hosts of these groups.
    ///
    /// # Errors
    /// As [`Setup::of`].
    pub(crate) fn grouped(names: &[String], args: &RaceArgs) -> Result<Setup, String> {
        let mut places: BTreeMap<&str, usize> =
            names.iter().map(|name| (name.as_str(), 0)).collect();
        for (at, place) in places.values_mut().enumerate() {
            *place = at;
        }
        let group_of: Vec<usize> = names.iter().map(|name| places[name.as_str()]).collect();
        let round_s = args.round.0.0 as f64 / 1e9;
        let lasting = args.floor.iter().filter_map(|floor| floor.over);
        let longest = lasting.map(|over| over.0 as f64 / 1e9).fold(0.0, f64::max);
        let rule = Rule {
            rounds: args.rounds as usize,
            least: ((longest / round_s).ceil() as usize).max(2),
            ..Rule::keeping(args.keep as usize)
        };
        if rule.least > rule.rounds {
            return Err(format!(
                "a floor is watched for {}, which is {} rounds of {}, and the race has {} at most; \
                 shorten the floor, or give more --rounds",
                duration(longest),
                rule.least,
                duration(round_s),
                rule.rounds
            ));
        }
        let unbounded = Rule {
            rounds: usize::MAX,
            ..rule
        };
        Ok(Setup {
            proof_wanted: Race::new(&group_of, unbounded).proof_rounds(),
            groups: places.keys().map(|name| (*name).to_owned()).collect(),
            proof_rounds: Race::new(&group_of, rule).proof_rounds(),
            unknown: names.iter().filter(|name| *name == UNKNOWN).count(),
            group_of,
            rule,
            floors: args.floor.clone(),
            round_s,
        })
    }

    /// Number of hosts of each group.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.groups.len()];
        for group in &self.group_of {
            sizes[*group] += 1;
        }
        sizes
    }

    /// Sentences after the table.
    pub(crate) fn sentences(&self, hosts: usize) -> Vec<String> {
        let lasts = |rounds: usize| duration(rounds as f64 * self.round_s);
        let mut sentences = vec![format!(
            "{hosts} hosts are measured in {} rounds at least, which is {}; those that are kept in \
             {} ({}); and none in more than {} ({}).",
            self.rule.least,
            lasts(self.rule.least),
            self.proof_rounds.max(self.rule.least),
            lasts(self.proof_rounds.max(self.rule.least)),
            self.rule.rounds,
            lasts(self.rule.rounds)
        )];
        if self.proof_wanted > self.rule.rounds {
            sentences.push(format!(
                "That is too short to see a host that is slow in one of {:.0} rounds: it takes {} rounds \
                 ({}) for that; give more --rounds.",
                1.0 / self.rule.unseen,
                self.proof_wanted,
                lasts(self.proof_wanted)
            ));
        }
        for floor in &self.floors {
            sentences.push(format!("A host that misses {floor} is removed."));
        }
        if self.unknown > 0 {
            sentences.push(format!(
                "Of {} hosts the source does not give the group; the hosts are queried.",
                self.unknown
            ));
        }
        sentences
    }
}

/// The group of a host of this zone and type.
pub(crate) fn name(zone: Option<&str>, kind: Option<&str>, per: Option<GroupBy>) -> String {
    let property = match per {
        None => Some(ALL),
        Some(GroupBy::Zone) => zone,
        Some(GroupBy::Type) => kind,
    };
    property.unwrap_or(UNKNOWN).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::FleetVerb;
    use crate::host_line::{LineVerb, parse};

    fn setup(words: &[&str]) -> Setup {
        tried(words).unwrap()
    }

    fn tried(words: &[&str]) -> Result<Setup, String> {
        let line = "fleet race --list x --keep 3 --dry-run";
        let line: Vec<&str> = line.split(' ').collect();
        let host = |zone: Option<&str>| Host {
            zone: zone.map(str::to_owned),
            ..Host::default()
        };
        let hosts = [
            host(Some("b")),
            host(Some("a")),
            host(None),
            host(Some("b")),
        ];
        match parse([&line[..], words].concat()).unwrap() {
            LineVerb::Fleet(args) => match &args.verb {
                FleetVerb::Race(args) => Setup::of(&hosts, args),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn hosts_are_grouped_and_floors_are_watched_before_any_drops_out() {
        let floor = "page-write.iops>=10000 for 65s";
        let setup = setup(&[
            "--per",
            "zone",
            "--floor",
            floor,
            "--floor",
            "disk.latency<1s",
        ]);
        assert_eq!(setup.groups, ["a", "b", "unknown"]);
        assert_eq!(setup.group_of, [1, 0, 2, 1]);
        assert_eq!((setup.rule.least, setup.rule.keep), (7, 3));
        assert_eq!(setup.sizes(), [1, 2, 1]);
        let text = setup.sentences(4).join(" ");
        assert!(
            text.contains("misses page-write.iops>=10000 for 65s"),
            "{text}"
        );
        assert!(text.contains("Of 1 hosts"), "{text}");
    }

    #[test]
    fn a_floor_that_is_longer_than_the_race_is_refused() {
        let floor = ["--floor", "page-write.iops>=10000 for 1h"];
        let why = tried(&floor).unwrap_err();
        assert!(
            why.contains("360 rounds") && why.contains("240 at most"),
            "{why}"
        );
        let longer = [&floor[..], &["--rounds", "360"]].concat();
        assert_eq!(setup(&longer).rule.least, 360);
    }

    #[test]
    fn a_race_that_is_too_short_for_a_proof_is_reported() {
        let text = |words: &[&str]| setup(words).sentences(4).join(" ");
        let short = text(&["--rounds", "20"]);
        assert!(
            short.contains("too short to see a host that is slow in one of 10 rounds"),
            "{short}"
        );
        let long = text(&[]);
        assert!(!long.contains("too short"), "{long}");
    }

    #[test]
    fn without_groups_all_compete() {
        let setup = setup(&[]);
        assert_eq!((setup.groups.len(), setup.rule.least), (1, 2));
    }
}
