//! Races for tests.

use study::burnin::simulate::Rng;

use crate::hosts::Host;
use crate::hosts::TieBreak;
use crate::protocol::rounds::{TargetFacts, TargetRound};
use crate::race::running_race::{ReplayedRace, RunningRace};
use crate::store::race::{Measurement, RaceRecord, RacedHost, RoundRecord};
use crate::store::{FleetRun, HostRun, RunKind};

/// A race like those of [`with_ties`], without a rule for ties.
pub(crate) fn raced(levels: &[f64]) -> FleetRun {
    with_ties(levels, None)
}

/// A complete race of hosts with one disk at these levels, of which two are kept.
pub(crate) fn with_ties(levels: &[f64], ties: Option<TieBreak>) -> FleetRun {
    let host = |at: usize| {
        HostRun::waiting(&Host {
            name: format!("db{at}"),
            zone: Some(["us-east-1a", "us-east-1b"][at % 2].to_owned()),
            kind: Some("i4i.large".to_owned()),
            ..Host::default()
        })
    };
    let target = TargetFacts {
        path: "/mnt".to_owned(),
        ..TargetFacts::default()
    };
    let mut record = RaceRecord {
        keep: 2,
        per: None,
        figures: vec!["page-read.iops".parse().unwrap()],
        floors: Vec::new(),
        round_s: 10.0,
        least_rounds: 2,
        most_rounds: 60,
        silent_s: 0.0,
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
    let replayed = ReplayedRace::of(&base);
    let setup = replayed.setup(&base);
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(7);
    loop {
        let next = course.next();
        if next.is_empty() {
            break;
        }
        let measurement = |host: &usize| Measurement {
            host: *host,
            targets: vec![TargetRound {
                figures: vec![Some(levels[*host] * (0.01 * rng.normal()).exp())],
                ..TargetRound::default()
            }],
            round: None,
        };
        let round = RoundRecord {
            measured: next.iter().map(measurement).collect(),
            ..RoundRecord::default()
        };
        course.take(&round);
        record.rounds.push(round);
    }
    FleetRun {
        id: "f".to_owned(),
        began: jiff::Timestamp::UNIX_EPOCH,
        kind: RunKind::Race,
        args: Vec::new(),
        hosts: (0..levels.len()).map(host).collect(),
        race: Some(Box::new(record)),
    }
}
