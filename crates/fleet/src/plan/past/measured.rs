//! Past results of a ledger: measurements of hosts in its runs and races.

use std::collections::BTreeMap;
use std::path::Path;

use ledger::{Filter, Ledger, LongWork as _};
use record::Verdict;

use crate::plan::past::host::{PastHost, key_of};
use crate::race::RankedBy;
use crate::race::{Decision, conclude};
use crate::store::{FleetRun, HostOutcome};
use bench::conclusion::Conclusion;
use sweep::{Requirement, figures_of};
use ui::exit::{ExitClass as _, Failure};

/// The hosts of a ledger's runs and races that have the figure of the requirement, each with its worst result. A valid
/// and complete run takes precedence over any other, which may show a burst.
pub(crate) fn of_ledger(path: &Path, requirement: &Requirement) -> Result<Vec<PastHost>, Failure> {
    let ledger = Ledger::open(path).refused()?;
    let mut worst = WorstFigures {
        is_low_good: requirement.side.is_low(),
        hosts: BTreeMap::new(),
    };
    let phase = &requirement.figure.phase;
    for summary in ledger.list(&Filter::default()).refused()? {
        if !summary.phases.contains(phase) {
            continue;
        }
        let run = ledger.load(summary.id.as_str()).refused()?;
        let conclusion = Conclusion::of(&run);
        let counts = !run.interrupted && conclusion.verdict != Verdict::Invalid;
        let figures = figures_of(&run, &conclusion);
        let Some(value) = figures.get(&requirement.figure) else {
            continue;
        };
        let cloud = run.machine.cloud.as_ref();
        let one = PastHost {
            zone: cloud.and_then(|cloud| cloud.zone.clone()),
            kind: cloud.and_then(|cloud| cloud.instance_type.clone()),
            figure: Some(value.mean),
            kept: None,
        };
        let id = cloud.and_then(|cloud| cloud.instance_id.clone());
        let key = id.unwrap_or_else(|| run.machine.hostname.clone());
        worst.take(key, counts, one);
    }
    for (key, one) in of_races(&ledger, requirement)? {
        worst.take(key, true, one);
    }
    let mut hosts: Vec<PastHost> = worst.hosts.into_values().map(|(_, one)| one).collect();
    hosts.extend(never_measured(&ledger)?);
    Ok(hosts)
}

/// Worst known result of each host.
struct WorstFigures {
    /// True if a smaller figure is better.
    is_low_good: bool,
    /// Worst result of each host by its key, and true if it was valid.
    hosts: BTreeMap<String, (bool, PastHost)>,
}

impl WorstFigures {
    fn take(&mut self, key: String, counts: bool, one: PastHost) {
        let comes_before = |(old_counts, old): &(bool, PastHost)| {
            if *old_counts != counts {
                return counts;
            }
            match (old.figure, one.figure) {
                (Some(old), Some(new)) if self.is_low_good => old < new,
                (Some(old), Some(new)) => old > new,
                (old, _) => old.is_none(),
            }
        };
        if self.hosts.get(&key).is_none_or(comes_before) {
            self.hosts.insert(key, (counts, one));
        }
    }
}

/// Hosts of the races that were ranked by the figure of the requirement, each with its key. A host that was never
/// measured has no figure.
fn of_races(
    ledger: &Ledger,
    requirement: &Requirement,
) -> Result<Vec<(String, PastHost)>, Failure> {
    let mut hosts = Vec::new();
    for summary in ledger.list_work(Some(FleetRun::KIND)).refused()? {
        let Some(work) = ledger.work::<FleetRun>(&summary.key).refused()? else {
            continue;
        };
        let run = work.document;
        let race = run.race.as_ref();
        let Some(record) = race.filter(|race| race.figures.first() == Some(&requirement.figure))
        else {
            continue;
        };
        for one in conclude(&run, record).ranked {
            let host = run.hosts.get(one.place);
            // If the race was ended before, a host that was not measured does not count.
            if let Some(host) =
                host.filter(|_| one.known.is_some() || one.decided != Decision::Open)
            {
                let mut past = PastHost::of_race(host, &one);
                let by = RankedBy::of(&record.figures);
                past.figure = past.figure.map(|figure| by.turned(figure));
                hosts.push((key_of(host), past));
            }
        }
    }
    Ok(hosts)
}

/// Hosts on which a `bench` was requested and that have no run: they were dead, failed or lost. Without them only
/// survivors would be counted.
fn never_measured(ledger: &Ledger) -> Result<Vec<PastHost>, Failure> {
    let mut hosts: BTreeMap<String, Option<PastHost>> = BTreeMap::new();
    for summary in ledger.list_work(Some(FleetRun::KIND)).refused()? {
        let work = ledger.work::<FleetRun>(&summary.key).refused()?;
        let benches = work
            .map(|work| work.document)
            .filter(|run| run.args.first().is_some_and(|verb| verb == "bench"));
        for host in benches.into_iter().flat_map(|run| run.hosts) {
            let key = host.id.clone().unwrap_or_else(|| host.host.clone());
            let is_bad = matches!(
                host.outcome,
                HostOutcome::Unreached | HostOutcome::Failed | HostOutcome::Lost
            );
            if !host.runs.is_empty() {
                hosts.insert(key, None);
            } else if is_bad {
                let one = PastHost {
                    zone: host.zone,
                    kind: host.kind,
                    figure: None,
                    kept: None,
                };
                hosts.entry(key).or_insert(Some(one));
            }
        }
    }
    Ok(hosts.into_values().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::Host;
    use crate::plan::past::PastHosts;
    use crate::plan::past::tests::good_hosts;
    use crate::race::test_races;
    use crate::store::{HostRun, RunKind, put_finished};

    #[test]
    fn a_host_that_never_came_to_a_run_is_of_the_past_too() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ledger.db");
        let host = |name: &str, outcome: HostOutcome, runs: &[&str]| HostRun {
            outcome,
            runs: runs.iter().map(|run| (*run).to_owned()).collect(),
            ..HostRun::waiting(&Host {
                name: name.to_owned(),
                zone: Some("z".to_owned()),
                ..Host::default()
            })
        };
        let all = [
            (
                "a",
                "bench",
                vec![
                    host("dead", HostOutcome::Unreached, &[]),
                    host("well", HostOutcome::Done, &["r1"]),
                    host("once", HostOutcome::Lost, &[]),
                    host("wrong", HostOutcome::Refused, &[]),
                ],
            ),
            (
                "b",
                "bench",
                vec![
                    host("dead", HostOutcome::Unreached, &[]),
                    host("once", HostOutcome::Done, &["r2"]),
                ],
            ),
            (
                "c",
                "devices",
                vec![host("other", HostOutcome::Failed, &[])],
            ),
        ];
        let runs = all.map(|(id, verb, hosts)| FleetRun {
            id: id.to_owned(),
            began: jiff::Timestamp::UNIX_EPOCH,
            kind: RunKind::Run,
            args: vec![verb.to_owned()],
            hosts,
            race: None,
        });
        put_finished(&path, &runs);
        let never = never_measured(&Ledger::open(&path).unwrap()).unwrap();
        assert_eq!(never.len(), 1, "{never:?}");
        assert_eq!(
            (never[0].zone.as_deref(), never[0].figure),
            (Some("z"), None)
        );
    }

    #[test]
    fn the_races_of_a_ledger_are_of_the_past_too() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ledger.db");
        put_finished(&path, &[test_races::raced(&[1000.0, 900.0, 500.0])]);
        let good = |text: &str| {
            let requirement: Requirement = text.parse().unwrap();
            let past =
                PastHosts::read(&path, Some(&requirement)).map_err(|why| why.error().to_string());
            past.map(|past| good_hosts(&past).into_iter().filter(|good| *good).count())
        };
        assert_eq!(good("page-read.iops>=700"), Ok(2));
        let none = good("page-write.iops>=700").unwrap_err();
        assert!(none.contains("no past result"), "{none}");
    }
}
