use super::*;
use crate::fleet::hosts::Host;
use crate::fleet::race::record::{Lap, RacedHost, RoundRecord};
use crate::fleet::rounds::{TargetFacts, TargetRound};
use crate::fleet::run::{HostRun, Kind};
use study::burnin::rehearse::Rng;

/// A race of hosts of one disk at these levels, through all its rounds, of which two are kept.
fn raced(levels: &[f64], ties: Option<Ties>) -> FleetRun {
    let host = |at: usize| {
        HostRun::waiting(&Host {
            name: format!("db{at}"),
            ..Host::default()
        })
    };
    let target = TargetFacts {
        path: "/mnt".to_owned(),
        ..TargetFacts::default()
    };
    let mut record = RaceRecord {
        keep: 2,
        figures: vec!["page-read.iops".parse().unwrap()],
        floors: Vec::new(),
        round_s: 10.0,
        least_rounds: 2,
        most_rounds: 60,
        ties,
        hosts: (0..levels.len())
            .map(|at| RacedHost {
                group: Some("all".to_owned()),
                targets: vec![target.clone()],
                price: Some(100.0 - at as f64),
                ..RacedHost::default()
            })
            .collect(),
        rounds: Vec::new(),
        interrupted: false,
        termination: None,
    };
    let base = record.clone();
    let replayed = Replayed::of(&base);
    let setup = replayed.setup(&base);
    let mut course = Course::new(&setup);
    let mut rng = Rng::new(7);
    loop {
        let next = course.next();
        if next.is_empty() {
            break;
        }
        let lap = |host: &usize| Lap {
            host: *host,
            targets: vec![TargetRound {
                figures: vec![Some(levels[*host] * (0.01 * rng.normal()).exp())],
                ..TargetRound::default()
            }],
        };
        let round = RoundRecord {
            measured: next.iter().map(lap).collect(),
            ..RoundRecord::default()
        };
        course.take(&round);
        record.rounds.push(round);
    }
    FleetRun {
        id: "f".to_owned(),
        began: jiff::Timestamp::UNIX_EPOCH,
        kind: Kind::Race,
        args: Vec::new(),
        hosts: (0..levels.len()).map(host).collect(),
        race: Some(Box::new(record)),
    }
}

fn decided(run: &FleetRun) -> Vec<(usize, Decided, bool)> {
    let concluded = conclude(run, run.race.as_ref().unwrap());
    let mut all: Vec<(usize, Decided, bool)> = concluded
        .ranked
        .iter()
        .map(|one| (one.place, one.decided, one.is_bad))
        .collect();
    all.sort_unstable();
    all
}

/// One is the best; three are as good as each other; one is bad.
const LEVELS: [f64; 5] = [1000.0, 1200.0, 1000.0, 1000.0, 500.0];

#[test]
fn ties_stay_and_are_told() {
    let run = raced(&LEVELS, None);
    let all = decided(&run);
    assert_eq!(all[1], (1, Decided::Keep, false));
    for place in [0, 2, 3] {
        assert_eq!(all[place], (place, Decided::Tie, false), "{all:?}");
    }
    assert_eq!(all[4], (4, Decided::Cull, true));
    let concluded = conclude(&run, run.race.as_ref().unwrap());
    let group = &concluded.groups[0];
    assert_eq!((group.kept, group.tied, group.places), (1, 3, 1));
}

#[test]
fn ties_are_broken_where_that_is_asked_for_and_the_others_are_not_called_bad() {
    let by_name = decided(&raced(&LEVELS, Some(Ties::Name)));
    let keep = (0, Decided::Keep, false);
    let left = |place| (place, Decided::Cull, false);
    assert_eq!(
        [by_name[0], by_name[2], by_name[3]],
        [keep, left(2), left(3)]
    );
    // The last of them is the cheapest.
    let by_price = decided(&raced(&LEVELS, Some(Ties::Price)));
    assert_eq!(by_price[3], (3, Decided::Keep, false));
    assert_eq!(by_price[0], left(0));
}

#[test]
fn a_host_that_took_no_part_stands_last_with_its_reason() {
    let mut run = raced(&LEVELS, None);
    let mut dead = HostRun::waiting(&Host::default());
    dead.came = Came::Unreached;
    dead.why = Some("db9 was not reached.".to_owned());
    run.hosts.push(dead);
    run.race.as_mut().unwrap().hosts.push(RacedHost::default());
    let concluded = conclude(&run, run.race.as_ref().unwrap());
    let last = concluded.ranked.last().unwrap();
    assert_eq!((last.place, last.decided), (5, Decided::Unreachable));
    assert_eq!(last.reason, "db9 was not reached");
}
