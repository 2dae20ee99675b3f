//! Past results: how hosts came out before.
//!
//! They are read from the answer of `fleet race --json`, of which `figure` (its name) and, for each of
//! `hosts`, `host`, `zone`, `type`, `figure.value` and `decision` are used; from a list of hosts with the
//! attributes `figure` and `decision`; or from a ledger, of each host the worst of its runs and races, and the
//! hosts of `fleet run -- bench …` that never came to one. A host without a figure, such as one that was never
//! reached, came out bad.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use ledger::{Filter, Ledger, LongWork as _};
use record::Verdict;
use serde::Deserialize;

use super::hosts::{Host, listed};
use super::race::{Decided, conclude};
use super::run::{Came, FleetRun};
use crate::bench::conclusion::Conclusion;
use crate::failure::{Failure, Standing as _};
use crate::sweep::{Requirement, figures_of};

/// How the file of a ledger begins (SQLite's file format, section 1.3).
const SQLITE: &[u8] = b"SQLite format 3\0";

/// What a host was decided to be, where it was kept.
const KEEP: &str = "keep";

/// A host of the past.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PastHost {
    /// Its zone.
    pub zone: Option<String>,
    /// Its instance type.
    pub kind: Option<String>,
    /// Its figure, of which there is more or less as good as it is; `None` where it has none.
    pub figure: Option<f64>,
    /// Whether it was kept, where that is known.
    pub kept: Option<bool>,
}

/// The hosts of the past, and which of them were good.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Past {
    /// The hosts, each with whether it was good.
    pub hosts: Vec<(PastHost, bool)>,
    /// What was good, in words.
    pub good: String,
}

impl Past {
    /// Reads past results. Good is what meets the bar; without one, what is as good as the worst host
    /// that was kept.
    ///
    /// # Errors
    /// Refused, where they cannot be read or do not say who was good.
    pub(crate) fn read(from: &Path, good: Option<&Requirement>) -> Result<Past, Failure> {
        let name = from.display().to_string();
        let unread = |why| Failure::refused(format!("{name} cannot be read: {why}"));
        let mut file = File::open(from).map_err(unread)?;
        let mut bytes = Vec::new();
        let first = (&mut file)
            .take(SQLITE.len() as u64)
            .read_to_end(&mut bytes);
        first.map_err(unread)?;
        let hosts = if bytes == SQLITE {
            drop(file);
            let bar = good.ok_or_else(|| {
                Failure::refused(format!(
                    "{name} is a ledger, whose runs do not say which hosts were good; say it with \
                     --good, as in --good 'page-write.iops>=10000'"
                ))
            })?;
            of_ledger(from, bar)?
        } else {
            file.read_to_end(&mut bytes).map_err(unread)?;
            let told = |problems: Vec<String>| Failure::refused_for("no past results", &problems);
            of_text(&name, &bytes, good).map_err(told)?
        };
        Past::of(&name, hosts, good).map_err(Failure::refused)
    }

    /// Tells the good from the others.
    ///
    /// # Errors
    /// A sentence, where nothing says which were good.
    fn of(name: &str, hosts: Vec<PastHost>, good: Option<&Requirement>) -> Result<Past, String> {
        if hosts.is_empty() {
            return Err(format!("{name} holds no past result of any host."));
        }
        if let Some(bar) = good {
            let met = |host: &PastHost| host.figure.is_some_and(|value| bar.is_met_by(value));
            return Ok(Past {
                hosts: hosts
                    .into_iter()
                    .map(|host| (met(&host), host))
                    .map(swap)
                    .collect(),
                good: bar.to_string(),
            });
        }
        let kept = || hosts.iter().filter(|host| host.kept == Some(true));
        if kept().next().is_none() {
            return Err(format!(
                "{name} has no host that was kept, so that nothing says which were good; say it with \
                 --good, as in --good 'page-write.iops>=10000'."
            ));
        }
        // More is better in what a race ranks by.
        let least = kept()
            .filter_map(|host| host.figure)
            .fold(f64::INFINITY, f64::min);
        let as_good = |host: &PastHost| {
            host.kept == Some(true) || host.figure.is_some_and(|figure| figure >= least)
        };
        let good = if least.is_finite() {
            format!("as good as the worst that was kept, {least:.0} or more")
        } else {
            "kept".to_owned()
        };
        Ok(Past {
            hosts: hosts
                .into_iter()
                .map(|host| (as_good(&host), host))
                .map(swap)
                .collect(),
            good,
        })
    }
}

fn swap((good, host): (bool, PastHost)) -> (PastHost, bool) {
    (host, good)
}

/// The answer of a race, as much of it as matters here.
#[derive(Debug, Deserialize)]
struct Answer {
    figure: Option<String>,
    hosts: Vec<Raced>,
}

#[derive(Debug, Deserialize)]
struct Raced {
    zone: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    figure: Option<Value>,
    decision: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Value {
    value: f64,
}

/// Whether a host of which a race decided this may have been good by its figure. One that missed a floor or
/// failed was not.
fn may_be_good(decision: &str) -> bool {
    let never = [Decided::Floor, Decided::Failed, Decided::Unreachable];
    never.iter().all(|one| one.word() != decision)
}

fn of_text(
    name: &str,
    bytes: &[u8],
    good: Option<&Requirement>,
) -> Result<Vec<PastHost>, Vec<String>> {
    let begins = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if begins == Some(&b'{') {
        of_answer(name, bytes, good).map_err(|why| vec![why])
    } else {
        of_list(name, bytes)
    }
}

/// The hosts of a race's answer.
fn of_answer(
    name: &str,
    bytes: &[u8],
    good: Option<&Requirement>,
) -> Result<Vec<PastHost>, String> {
    let answer: Answer = serde_json::from_slice(bytes)
        .map_err(|why| format!("{name} is not the answer of 'fleet race --json': {why}."))?;
    if let (Some(ranked), Some(bar)) = (&answer.figure, good) {
        let wanted = bar.figure.to_string();
        if *ranked != wanted {
            return Err(format!(
                "{name} has the figures of {ranked}, and --good asks for {wanted}; write --good with \
                 {ranked}, or leave it out."
            ));
        }
    }
    let host = |raced: Raced| PastHost {
        zone: raced.zone,
        kind: raced.kind,
        // However high it is: the race found it bad.
        figure: (raced.decision.as_deref().is_none_or(may_be_good))
            .then(|| raced.figure.map(|figure| figure.value))
            .flatten(),
        kept: raced.decision.map(|word| word == KEEP),
    };
    Ok(answer.hosts.into_iter().map(host).collect())
}

/// The hosts of a list.
fn of_list(name: &str, bytes: &[u8]) -> Result<Vec<PastHost>, Vec<String>> {
    let hosts = listed(name, bytes)?;
    let mut past = Vec::new();
    let mut problems = Vec::new();
    for host in hosts {
        match of_attributes(&host) {
            Ok(one) => past.push(one),
            Err(why) => problems.push(format!("{name}: {why}")),
        }
    }
    if problems.is_empty() {
        Ok(past)
    } else {
        Err(problems)
    }
}

fn of_attributes(host: &Host) -> Result<PastHost, String> {
    let said = host.tags.get("figure");
    let figure: Option<f64> = said
        .and_then(|text| text.parse().ok())
        .filter(|figure: &f64| figure.is_finite());
    if let (Some(text), None) = (said, figure) {
        return Err(format!(
            "the figure of {}, '{text}', is no number; write it plainly, such as 11870.",
            host.name
        ));
    }
    let decision = host.tags.get("decision");
    if said.is_none() && decision.is_none() {
        return Err(format!(
            "{} has neither figure=… nor decision=…; write 'decision=failed' for a host that was \
             never measured.",
            host.name
        ));
    }
    Ok(PastHost {
        zone: host.zone.clone(),
        kind: host.kind.clone(),
        figure: figure.filter(|_| decision.is_none_or(|word| may_be_good(word))),
        kept: decision.map(|word| word == KEEP),
    })
}

/// The hosts of a ledger's runs and races that have the figure of the bar: of each the worst. What was
/// measured to its end and is valid counts before what was not, which may be a burst.
fn of_ledger(path: &Path, bar: &Requirement) -> Result<Vec<PastHost>, Failure> {
    let ledger = Ledger::open(path).refused()?;
    let mut worst = Worst {
        is_low_good: bar.side.is_low(),
        hosts: BTreeMap::new(),
    };
    let phase = &bar.figure.phase;
    for summary in ledger.list(&Filter::default()).refused()? {
        if !summary.phases.contains(phase) {
            continue;
        }
        let run = ledger.load(summary.id.as_str()).refused()?;
        let conclusion = Conclusion::of(&run);
        let counts = !run.interrupted && conclusion.verdict != Verdict::Invalid;
        let figures = figures_of(&run, &conclusion);
        let Some(value) = figures.get(&bar.figure) else {
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
    for (key, one) in of_races(&ledger, bar)? {
        worst.take(key, true, one);
    }
    let mut hosts: Vec<PastHost> = worst.hosts.into_values().map(|(_, one)| one).collect();
    hosts.extend(never_measured(&ledger)?);
    Ok(hosts)
}

/// The worst that is known of each host.
struct Worst {
    /// Whether less of the figure is better.
    is_low_good: bool,
    /// Each with whether its figure counts.
    hosts: BTreeMap<String, (bool, PastHost)>,
}

impl Worst {
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

/// The hosts of races that were ranked by the figure of the bar, each with what names it. One that was
/// never measured has no figure.
fn of_races(ledger: &Ledger, bar: &Requirement) -> Result<Vec<(String, PastHost)>, Failure> {
    let mut hosts = Vec::new();
    for summary in ledger.list_work(Some(FleetRun::KIND)).refused()? {
        let Some(work) = ledger.work::<FleetRun>(&summary.key).refused()? else {
            continue;
        };
        let run = work.document;
        let race = run.race.as_ref();
        let Some(record) = race.filter(|race| race.figures.first() == Some(&bar.figure)) else {
            continue;
        };
        for one in conclude(&run, record).ranked {
            let host = run.hosts.get(one.place);
            // Where the race was ended first, it says nothing of a host that was not measured.
            if let Some(host) = host.filter(|_| one.known.is_some() || one.decided != Decided::Open)
            {
                let past = PastHost {
                    zone: host.zone.clone(),
                    kind: host.kind.clone(),
                    figure: (one.known)
                        .filter(|_| may_be_good(one.decided.word()))
                        .map(|known| known.figure),
                    kept: None,
                };
                hosts.push((host.id.clone().unwrap_or_else(|| host.host.clone()), past));
            }
        }
    }
    Ok(hosts)
}

/// The hosts on which a `bench` was to be run and never came to a run: they were dead, failed or lost. To
/// leave them out would be to ask only the survivors how many survive.
fn never_measured(ledger: &Ledger) -> Result<Vec<PastHost>, Failure> {
    let mut hosts: BTreeMap<String, Option<PastHost>> = BTreeMap::new();
    for summary in ledger.list_work(Some(FleetRun::KIND)).refused()? {
        let work = ledger.work::<FleetRun>(&summary.key).refused()?;
        let benches = work
            .map(|work| work.document)
            .filter(|run| run.args.first().is_some_and(|verb| verb == "bench"));
        for host in benches.into_iter().flat_map(|run| run.hosts) {
            let key = host.id.clone().unwrap_or_else(|| host.host.clone());
            let is_bad = matches!(host.came, Came::Unreached | Came::Failed | Came::Lost);
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
    use super::super::run::{HostRun, Kind};
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str, good: Option<&str>) -> Result<Past, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("past");
        std::fs::write(&file, text).unwrap();
        let good: Option<Requirement> = good.map(|text| text.parse().unwrap());
        Past::read(&file, good.as_ref()).map_err(|failure| failure.error().to_string())
    }

    fn goods(past: &Past) -> Vec<bool> {
        past.hosts.iter().map(|(_, good)| *good).collect()
    }

    #[test]
    fn a_host_that_never_came_to_a_run_is_of_the_past_too() {
        let place = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(place.path().join("ledger.db")).unwrap();
        let root = linux::Root::host();
        let here = crate::longwork::Here::of_process(&root, Path::new("/etc")).unwrap();
        let host = |name: &str, came: Came, runs: &[&str]| HostRun {
            came,
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
                    host("dead", Came::Unreached, &[]),
                    host("well", Came::Done, &["r1"]),
                    host("once", Came::Lost, &[]),
                    host("wrong", Came::Refused, &[]),
                ],
            ),
            (
                "b",
                "bench",
                vec![
                    host("dead", Came::Unreached, &[]),
                    host("once", Came::Done, &["r2"]),
                ],
            ),
            ("c", "devices", vec![host("other", Came::Failed, &[])]),
        ];
        for (id, verb, hosts) in all {
            let run = FleetRun {
                id: id.to_owned(),
                began: jiff::Timestamp::UNIX_EPOCH,
                kind: Kind::Run,
                args: vec![verb.to_owned()],
                hosts,
                race: None,
            };
            let standing = |owner: &ledger::Owner| here.standing(owner);
            let claim = ledger.begin_work(id, here.owner(), &run, standing).unwrap();
            ledger.finish_work(claim, &run).unwrap();
        }
        let never = never_measured(&ledger).unwrap();
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
        let mut ledger = Ledger::open(&path).unwrap();
        let root = linux::Root::host();
        let here = crate::longwork::Here::of_process(&root, Path::new("/etc")).unwrap();
        let run = crate::fleet::race::sample::raced(&[1000.0, 900.0, 500.0]);
        let standing = |owner: &ledger::Owner| here.standing(owner);
        let claim = ledger
            .begin_work(&run.id, here.owner(), &run, standing)
            .unwrap();
        ledger.finish_work(claim, &run).unwrap();
        drop(ledger);
        let good = |text: &str| {
            let bar: Requirement = text.parse().unwrap();
            let past = Past::read(&path, Some(&bar)).map_err(|why| why.error().to_string());
            past.map(|past| goods(&past).into_iter().filter(|good| *good).count())
        };
        assert_eq!(good("page-read.iops>=700"), Ok(2));
        let none = good("page-write.iops>=700").unwrap_err();
        assert!(none.contains("no past result"), "{none}");
    }

    const RACE: &str = r#"{"command": "fleet race", "figure": "page-write.iops", "hosts": [
        {"host": "a", "zone": "z1", "type": "t", "figure": {"value": 12000}, "decision": "keep"},
        {"host": "b", "zone": "z1", "figure": {"value": 12500.5}, "decision": "cull"},
        {"host": "c", "zone": "z2", "figure": null, "decision": "unreachable"},
        {"host": "d", "zone": "z2", "figure": {"value": 13000}, "decision": "floor"}]}"#;

    #[test]
    fn a_race_says_who_was_good() {
        let past = read(RACE, None).unwrap();
        assert_eq!(goods(&past), [true, true, false, false]);
        assert!(past.good.contains("12000"), "{}", past.good);
        let lower = read(RACE, Some("page-write.iops>=9000")).unwrap();
        // One that missed a floor was not good, however high its figure is.
        assert_eq!(goods(&lower), [true, true, false, false]);
        let told = read(RACE, Some("page-read.iops>=9000")).unwrap_err();
        assert!(told.contains("page-write.iops, and --good"), "{told}");
    }

    #[test]
    fn a_list_says_who_was_good() {
        let text = "a az=z1 figure=100 decision=keep\nb figure=90\nc decision=failed # dead\n";
        assert_eq!(goods(&read(text, None).unwrap()), [true, false, false]);
        let bar = read(text, Some("a.iops>=90")).unwrap();
        assert_eq!(goods(&bar), [true, true, false]);
        for (text, told) in [
            ("a\n", "a has neither figure"),
            ("a figure=fast\n", "'fast', is no number"),
            ("a figure=5\n", "no host that was kept"),
            ("", "lists no host"),
            ("{", "not the answer"),
            (r#"{"hosts": []}"#, "holds no past result"),
        ] {
            let error = read(text, None).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let _ = of_text("past", &bytes, None);
        }
    }
}
