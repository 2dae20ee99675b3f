//! Past results of a ledger as its races themselves judged them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ledger::{Ledger, LongWork as _};

use super::super::race::{Decided, RaceRecord, conclude, found_good};
use super::super::run::FleetRun;
use super::text::may_be_good;
use super::{Past, PastHost};
use crate::failure::{Failure, Standing as _};
use crate::sweep::Figure;

/// A race that was decided.
struct Raced {
    /// What its hosts were ranked by.
    figure: Figure,
    hosts: Vec<Found>,
}

/// What a race found of a host.
struct Found {
    /// What names it: its id, or what it is called.
    key: String,
    host: PastHost,
    good: bool,
}

/// The hosts that the races of a ledger found good, among all that they raced: those that were kept, or that
/// the race could not tell from those. They are of the races that were ranked by what the newest was.
///
/// # Errors
/// Refused, where the ledger cannot be read, or no race in it was decided.
pub(super) fn of_verdicts(path: &Path) -> Result<Past, Failure> {
    let ledger = Ledger::open(path).refused()?;
    let mut races: Vec<FleetRun> = Vec::new();
    for summary in ledger.list_work(Some(FleetRun::KIND)).refused()? {
        let work = ledger.work::<FleetRun>(&summary.key).refused()?;
        let run = work.map(|work| work.document);
        races.extend(run.filter(|run| run.race.is_some()));
    }
    races.sort_by_key(|run| run.began);
    let mut raced: Vec<Raced> = Vec::new();
    for run in &races {
        let record = run.race.as_ref();
        let Some((record, figure)) = record.and_then(|one| Some((one, one.figures.first()?)))
        else {
            continue;
        };
        let hosts = verdicts(run, record);
        if !hosts.is_empty() {
            let figure = figure.clone();
            raced.push(Raced { figure, hosts });
        }
    }
    let Some(figure) = raced.last().map(|race| race.figure.clone()) else {
        return Err(Failure::refused(format!(
            "{} is a ledger without a race that was decided, so that nothing says which hosts were good; \
             say it with --good, as in --good 'page-write.iops>=10000'",
            path.display()
        )));
    };
    let all = raced.len();
    raced.retain(|race| race.figure == figure);
    Ok(merged(&raced, all - raced.len(), &figure))
}

/// The hosts of these races, each once: as it came out where that was worst.
fn merged(raced: &[Raced], left_out: usize, figure: &Figure) -> Past {
    let mut hosts: BTreeMap<&str, (PastHost, bool)> = BTreeMap::new();
    for Found { key, host, good } in raced.iter().flat_map(|race| &race.hosts) {
        let is_worse = |(old, was_good): &(PastHost, bool)| {
            let figure = |host: &PastHost| host.figure.unwrap_or(f64::NEG_INFINITY);
            (*good, figure(host)) < (*was_good, figure(old))
        };
        if hosts.get(key.as_str()).is_none_or(is_worse) {
            hosts.insert(key, (host.clone(), *good));
        }
    }
    let races = match raced.len() {
        1 => "the race".to_owned(),
        many => format!("each of the {many} races"),
    };
    let others = match left_out {
        0 => String::new(),
        1 => " (a race by another figure does not count)".to_owned(),
        many => format!(" ({many} races by other figures do not count)"),
    };
    Past {
        hosts: hosts.into_values().collect(),
        good: format!(
            "kept by {races} by {figure} that it was in, or tied with those that were; not what missed a \
             floor or broke{others}"
        ),
    }
}

/// What a race found of its hosts, each with what names it. Of a group that was not decided, and of a host that
/// it ended before, it says nothing.
fn verdicts(run: &FleetRun, record: &RaceRecord) -> Vec<Found> {
    let concluded = conclude(run, record);
    let ends = concluded.groups.iter();
    let decided: BTreeSet<&str> = ends
        .filter(|group| group.end.is_some())
        .map(|group| group.name.as_str())
        .collect();
    if decided.is_empty() {
        return Vec::new();
    }
    let good = found_good(record);
    let mut hosts = Vec::new();
    for one in &concluded.ranked {
        let group = record
            .hosts
            .get(one.place)
            .and_then(|raced| raced.group.as_deref());
        let says =
            one.decided != Decided::Open && group.is_none_or(|group| decided.contains(group));
        let Some(host) = run.hosts.get(one.place).filter(|_| says) else {
            continue;
        };
        let is_good = good.contains(&one.place);
        let past = PastHost {
            zone: host.zone.clone(),
            kind: host.kind.clone(),
            figure: (one.known)
                .filter(|_| may_be_good(one.decided.word()))
                .map(|known| known.figure),
            kept: Some(is_good),
        };
        let key = host.id.clone().unwrap_or_else(|| host.host.clone());
        hosts.push(Found {
            key,
            host: past,
            good: is_good,
        });
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::super::super::race::sample;
    use super::super::tests::goods;
    use super::*;

    /// Puts these runs into a ledger of this place.
    fn kept(path: &Path, runs: &[FleetRun]) {
        let mut ledger = Ledger::open(path).unwrap();
        let root = linux::Root::host();
        let here = crate::longwork::Here::of_process(&root, Path::new("/etc")).unwrap();
        for run in runs {
            let standing = |owner: &ledger::Owner| here.standing(owner);
            let claim = ledger
                .begin_work(&run.id, here.owner(), run, standing)
                .unwrap();
            ledger.finish_work(claim, run).unwrap();
        }
    }

    #[test]
    fn without_a_bar_the_races_themselves_say_who_was_good() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ledger.db");
        let read = || Past::read(&path, None).map_err(|why| why.error().to_string());
        kept(&path, &[]);
        let none = read().unwrap_err();
        assert!(none.contains("without a race that was decided"), "{none}");
        // Two are kept, of which the second ties with the third.
        let race = sample::raced(&[1000.0, 900.0, 899.0, 500.0]);
        kept(&path, std::slice::from_ref(&race));
        let past = read().unwrap();
        assert_eq!(goods(&past), [true, true, true, false]);
        assert!(
            past.good.contains("the race by page-read.iops"),
            "{}",
            past.good
        );
        // A later race of other hosts that was ended early says nothing.
        let mut early = FleetRun {
            id: "g".to_owned(),
            began: jiff::Timestamp::MAX,
            ..sample::raced(&[1000.0, 500.0, 400.0])
        };
        if let Some(record) = early.race.as_mut() {
            record.rounds.truncate(1);
            record.interrupted = true;
        }
        kept(&path, &[early]);
        assert_eq!(read().unwrap(), past);
        // A host that was bad in another race was not good.
        let again = FleetRun {
            id: "h".to_owned(),
            ..sample::raced(&[400.0, 1000.0, 900.0, 500.0])
        };
        kept(&path, &[again]);
        let past = read().unwrap();
        assert_eq!(goods(&past), [false, true, true, false]);
        assert!(past.good.contains("each of the 2 races"), "{}", past.good);
    }
}
