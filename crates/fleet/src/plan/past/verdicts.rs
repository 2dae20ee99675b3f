//! Past results of a ledger, by the decisions of its races.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ledger::{Ledger, LongWork as _};

use crate::plan::past::host::{PastHost, PastHosts, key_of};
use crate::race::setup;
use crate::race::{Decision, conclude, is_good};
use crate::store::FleetRun;
use crate::store::race::RaceRecord;
use sweep::Figure;
use ui::exit::{ExitClass as _, Failure};

/// Result of a race.
struct JudgedRace {
    /// Figure that its hosts were ranked by.
    figure: Figure,
    hosts: Vec<JudgedHost>,
    /// Number of groups that were not decided.
    without_verdict: usize,
}

/// Result of a race for a host.
struct JudgedHost {
    /// Key of the host: its id, or its name.
    key: String,
    host: PastHost,
    good: bool,
}

/// The hosts that the races of a ledger found good, among all raced hosts: those that were kept, or that the race
/// could not distinguish from kept ones. Only races that were ranked by the same figure as the newest one count.
///
/// # Errors
/// Refused, if the ledger cannot be read, or has no decided race.
pub(crate) fn of_verdicts(path: &Path) -> Result<PastHosts, Failure> {
    let ledger = Ledger::open(path).refused()?;
    let mut races: Vec<FleetRun> = Vec::new();
    for summary in ledger.list_work(Some(FleetRun::KIND)).refused()? {
        let work = ledger.work::<FleetRun>(&summary.key).refused()?;
        let run = work.map(|work| work.document);
        races.extend(run.filter(|run| run.race.is_some()));
    }
    races.sort_by_key(|run| run.began);
    let mut raced: Vec<JudgedRace> = Vec::new();
    for run in &races {
        let record = run.race.as_ref();
        let Some((record, figure)) = record.and_then(|one| Some((one, one.figures.first()?)))
        else {
            continue;
        };
        let (hosts, without_verdict) = verdicts(run, record);
        raced.push(JudgedRace {
            figure: figure.clone(),
            hosts,
            without_verdict,
        });
    }
    let mut decided = raced.iter().filter(|race| !race.hosts.is_empty());
    let Some(figure) = decided.next_back().map(|race| race.figure.clone()) else {
        return Err(Failure::refused(format!(
            "{} is a ledger without a race that was decided before its rounds were used up, and among \
             more hosts than it keeps, so it is unknown which hosts were good; give --good, \
             as in --good 'page-write.iops>=10000'",
            path.display()
        )));
    };
    let count = |races: &[JudgedRace]| races.iter().filter(|race| !race.hosts.is_empty()).count();
    let all = count(&raced);
    raced.retain(|race| race.figure == figure);
    let left_out = all - count(&raced);
    Ok(merged(&raced, left_out, &figure))
}

/// The hosts of these races, each once, with its worst result.
fn merged(raced: &[JudgedRace], left_out: usize, figure: &Figure) -> PastHosts {
    let mut hosts: BTreeMap<&str, (PastHost, bool)> = BTreeMap::new();
    for JudgedHost { key, host, good } in raced.iter().flat_map(|race| &race.hosts) {
        let is_worse = |(old, was_good): &(PastHost, bool)| {
            let figure = |host: &PastHost| host.figure.unwrap_or(f64::NEG_INFINITY);
            (*good, figure(host)) < (*was_good, figure(old))
        };
        if hosts.get(key.as_str()).is_none_or(is_worse) {
            hosts.insert(key, (host.clone(), *good));
        }
    }
    let races = match raced.iter().filter(|race| !race.hosts.is_empty()).count() {
        1 => "the race".to_owned(),
        many => format!("each of the {many} races"),
    };
    let others = match left_out {
        0 => String::new(),
        1 => " (a race by another figure does not count)".to_owned(),
        many => format!(" ({many} races by other figures do not count)"),
    };
    let without_verdict = match raced.iter().map(|race| race.without_verdict).sum::<usize>() {
        0 => String::new(),
        1 => "; a group that was not decided does not count".to_owned(),
        many => format!("; {many} groups that were not decided do not count"),
    };
    PastHosts {
        hosts: hosts.into_values().collect(),
        good: format!(
            "kept by {races} by {figure} that it was in, or tied with those that were; not what missed a \
             floor or broke{others}{without_verdict}"
        ),
    }
}

/// Results of a race for its hosts, and the number of undecided groups. Left out are the hosts of such a group, hosts
/// that were never measured and may belong to one, and hosts for which the race ended too early.
fn verdicts(run: &FleetRun, record: &RaceRecord) -> (Vec<JudgedHost>, usize) {
    let concluded = conclude(run, record);
    let names = |is_decided: bool| {
        let groups = concluded.groups.iter();
        groups
            .filter(|group| is_good(group.end, record) == is_decided)
            .map(|group| group.name.as_str())
            .collect::<BTreeSet<&str>>()
    };
    let (decided, without_verdict) = (names(true), names(false));
    if decided.is_empty() {
        return (Vec::new(), without_verdict.len());
    }
    let groups = concluded.groups.iter();
    let good: BTreeSet<usize> = groups
        .filter(|group| decided.contains(group.name.as_str()))
        .flat_map(|group| group.best.iter().copied())
        .collect();
    let mut hosts = Vec::new();
    for one in &concluded.ranked {
        let group = record
            .hosts
            .get(one.place)
            .and_then(|raced| raced.group.as_deref());
        let Some(host) = run.hosts.get(one.place) else {
            continue;
        };
        let has_verdict = match group {
            Some(group) => decided.contains(group),
            // Other hosts of its group would be left out, and it would be the only one that counts.
            None => {
                let of = setup::name(host.zone.as_deref(), host.kind.as_deref(), record.per);
                !without_verdict.iter().any(|group| may_be_of(group, &of))
            }
        };
        if !has_verdict || one.decided == Decision::Open {
            continue;
        }
        let is_good = good.contains(&one.place);
        hosts.push(JudgedHost {
            key: key_of(host),
            host: PastHost {
                kept: Some(is_good),
                ..PastHost::of_race(host, one)
            },
            good: is_good,
        });
    }
    (hosts, without_verdict.len())
}

/// True if a host whose zone or type has this name could have been in this group. In the name of a group the size
/// follows.
fn may_be_of(group: &str, name: &str) -> bool {
    let rest = group.strip_prefix(name);
    name == setup::UNKNOWN || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::past::tests::good_hosts;
    use crate::race::test_races;
    use crate::store::put_finished;

    #[test]
    fn without_a_bar_the_races_themselves_show_the_good_hosts() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ledger.db");
        let read = || PastHosts::read(&path, None).map_err(|why| why.error().to_string());
        put_finished(&path, &[]);
        let none = read().unwrap_err();
        assert!(none.contains("without a race that was decided"), "{none}");
        // Two are kept, of which the second ties with the third.
        let race = test_races::raced(&[1000.0, 900.0, 899.0, 500.0]);
        put_finished(&path, std::slice::from_ref(&race));
        let past = read().unwrap();
        assert_eq!(good_hosts(&past), [true, true, true, false]);
        assert!(
            past.good.contains("the race by page-read.iops"),
            "{}",
            past.good
        );
        // A later race of other hosts that was ended early does not count.
        let mut early = FleetRun {
            id: "g".to_owned(),
            began: jiff::Timestamp::MAX,
            ..test_races::raced(&[1000.0, 500.0, 400.0])
        };
        if let Some(record) = early.race.as_mut() {
            record.rounds.truncate(1);
            record.interrupted = true;
        }
        put_finished(&path, &[early]);
        let both = read().unwrap();
        assert_eq!(both.hosts, past.hosts);
        assert!(
            both.good.contains("a group that was not decided"),
            "{}",
            both.good
        );
        // A host that was bad in another race was not good.
        let again = FleetRun {
            id: "h".to_owned(),
            ..test_races::raced(&[400.0, 1000.0, 900.0, 500.0])
        };
        put_finished(&path, &[again]);
        let past = read().unwrap();
        assert_eq!(good_hosts(&past), [false, true, true, false]);
        assert!(past.good.contains("each of the 2 races"), "{}", past.good);
    }

    /// Past results of a ledger with this race alone.
    fn alone(race: FleetRun) -> Result<PastHosts, String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ledger.db");
        put_finished(&path, &[race]);
        PastHosts::read(&path, None).map_err(|why| why.error().to_string())
    }

    #[test]
    fn rounds_that_were_used_up_and_hosts_without_rivals_show_nothing() {
        let mut used_up = test_races::raced(&[1000.0, 990.0, 980.0, 970.0]);
        if let Some(record) = used_up.race.as_mut() {
            record.rounds.truncate(3);
            record.most_rounds = 3;
        }
        let few = test_races::raced(&[1000.0, 900.0]);
        let mut with_floor = few.clone();
        if let Some(record) = with_floor.race.as_mut() {
            record.floors.push("page-read.iops>=950".to_owned());
        }
        for silent in [used_up, few] {
            let why = alone(silent).unwrap_err();
            assert!(why.contains("before its rounds were used up"), "{why}");
        }
        // With a floor, hosts were compared with a requirement.
        assert_eq!(good_hosts(&alone(with_floor).unwrap()), [true, false]);
    }

    #[test]
    fn a_host_that_was_not_reached_counts_only_alongside_those_that_do() {
        let mut race = test_races::raced(&[1000.0, 900.0, 500.0, 400.0]);
        let (zone, other) = ("us-east-1a", "us-east-1b");
        // A host in an undecided zone that is alive, and one in each zone that was not reached.
        let added = [(other, true), (other, false), (zone, false)];
        for (at, (zone, _)) in added.iter().enumerate() {
            let host = crate::hosts::Host {
                name: format!("more{at}"),
                zone: Some((*zone).to_owned()),
                ..Default::default()
            };
            race.hosts.push(crate::store::HostRun {
                outcome: crate::store::HostOutcome::Unreached,
                ..crate::store::HostRun::waiting(&host)
            });
        }
        if let Some(record) = race.race.as_mut() {
            record.per = Some(crate::hosts::GroupBy::Zone);
            for host in &mut record.hosts {
                host.group = Some(zone.to_owned());
            }
            let one = record.hosts[0].clone();
            record.hosts.extend(added.map(|(zone, is_alive)| {
                let mut raced = one.clone();
                raced.group = is_alive.then(|| zone.to_owned());
                raced
            }));
            // More groups need more rounds.
            let last = record.rounds.last().unwrap().clone();
            record.rounds.resize(59, last);
        }
        let past = alone(race).unwrap();
        assert_eq!(good_hosts(&past), [true, true, false, false, false]);
        assert!(
            past.good.contains("a group that was not decided"),
            "{}",
            past.good
        );
    }
}
