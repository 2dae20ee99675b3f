use super::*;
use crate::hosts::Host;
use crate::race::test_races::with_ties as raced;
use crate::store::HostRun;
use crate::store::race::RacedHost;

fn decided(run: &FleetRun) -> Vec<(usize, Decision, bool)> {
    let concluded = conclude(run, run.race.as_ref().unwrap());
    let mut all: Vec<(usize, Decision, bool)> = concluded
        .ranked
        .iter()
        .map(|one| (one.place, one.decided, one.is_bad))
        .collect();
    all.sort_unstable();
    all
}

/// Levels of five hosts: one is the best, three are equally good, and one is bad.
const LEVELS: [f64; 5] = [1000.0, 1200.0, 1000.0, 1000.0, 500.0];

#[test]
fn ties_stay_and_are_reported() {
    let run = raced(&LEVELS, None);
    let all = decided(&run);
    assert_eq!(all[1], (1, Decision::Keep, false));
    for place in [0, 2, 3] {
        assert_eq!(all[place], (place, Decision::Tie, false), "{all:?}");
    }
    assert_eq!(all[4], (4, Decision::Cull, true));
    let concluded = conclude(&run, run.race.as_ref().unwrap());
    let group = &concluded.groups[0];
    assert_eq!((group.kept, group.tied, group.places), (1, 3, 1));
}

#[test]
fn ties_are_broken_where_that_is_asked_for_and_the_others_are_not_called_bad() {
    let by_name = decided(&raced(&LEVELS, Some(TieBreak::Name)));
    let keep = (0, Decision::Keep, false);
    let left = |place| (place, Decision::Cull, false);
    assert_eq!(
        [by_name[0], by_name[2], by_name[3]],
        [keep, left(2), left(3)]
    );
    // The last of them is the cheapest.
    let by_price = decided(&raced(&LEVELS, Some(TieBreak::Price)));
    assert_eq!(by_price[3], (3, Decision::Keep, false));
    assert_eq!(by_price[0], left(0));
}

#[test]
fn a_host_that_took_no_part_stands_last_with_its_reason() {
    let mut run = raced(&LEVELS, None);
    let mut dead = HostRun::waiting(&Host::default());
    dead.outcome = HostOutcome::Unreached;
    dead.why = Some("db9 was not reached.".to_owned());
    run.hosts.push(dead);
    run.race.as_mut().unwrap().hosts.push(RacedHost::default());
    let concluded = conclude(&run, run.race.as_ref().unwrap());
    let last = concluded.ranked.last().unwrap();
    assert_eq!((last.place, last.decided), (5, Decision::Unreachable));
    assert_eq!(last.reason, "db9 was not reached");
}

#[test]
fn a_host_that_is_kept_and_dead_by_now_is_reported() {
    let mut run = raced(&LEVELS, None);
    run.hosts
        .iter_mut()
        .for_each(|host| host.outcome = HostOutcome::Done);
    run.hosts[1].outcome = HostOutcome::Lost;
    run.hosts[1].why = Some("the connection to db1 was lost.".to_owned());
    run.hosts[4].outcome = HostOutcome::Lost;
    let record = run.race.as_ref().unwrap();
    let concluded = conclude(&run, record);
    let of = |place: usize| {
        let mut ranked = concluded.ranked.iter();
        ranked.find(|one| one.place == place).unwrap()
    };
    let expected =
        "It was not there any more when the race was over: the connection to db1 was lost.";
    assert_eq!(of(1).decided, Decision::Keep);
    assert!(of(1).doubts.iter().any(|doubt| doubt == expected));
    // It is still bad, and its figures are still valid.
    assert!(of(4).is_bad && of(4).is_gone && of(4).doubts.is_empty());
    assert!(!of(0).is_gone && !of(1).is_doubtful);
    // One is kept, and one of the three that tie will be.
    let group = &concluded.groups[0];
    assert_eq!((group.kept, group.places, group.there), (1, 1, 1));
    let actual = crate::race::view::missing_hosts_notice(group);
    let expected = "all: of 2 that are kept 1 were there when the race was over.";
    assert_eq!(actual.as_deref(), Some(expected));
    let text = crate::race::view::text(&run, record, &concluded, 200);
    assert!(text.contains("db1: It was not there any more"), "{text}");
    let json = crate::race::view::json(&run, record, &concluded);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["hosts"][0]["came"], "lost");
}
