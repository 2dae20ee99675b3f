//! Share of right verdicts on simulated services with known causes.

use crate::watch::EventCode;

use super::scenario::{Event, SCENARIOS, Scenario, Service};
use super::*;
use crate::simulate::Rng;

/// Slots of a day, in minutes.
const DAY: usize = 1440;
const WIDTH: usize = 40;
const EARLIER_DAYS: usize = 3;
const MOMENT: usize = EARLIER_DAYS * DAY + DAY / 2;

fn simulate(events: &[Event], rng: &mut Rng) -> Observations {
    let mut simulated = Service::default();
    let mut observed = Observations {
        slot_s: 60.0,
        ..Observations::default()
    };
    let bounds = [200.0, 500.0];
    observed.service.above = bounds.map(|bound| (bound, Vec::new())).to_vec();
    let mut disk = ObservedDisk {
        name: "vda".to_owned(),
        ..ObservedDisk::default()
    };
    let mut evictions = Vec::new();
    for slot in 0..MOMENT + 2 * WIDTH {
        let lasting = if slot >= MOMENT { events } else { &[] };
        let minute = simulated.next(slot as i64, lasting, rng);
        let (rate, mean) = (minute.rate, minute.mean_ms);
        let scatter = |rng: &mut Rng, by: f64| (by * rng.normal()).exp();
        let service = &mut observed.service;
        service.requests.push((rate * 60.0).round());
        service.mean_ms.push(mean);
        service.p50_ms.push(0.7 * mean * scatter(rng, 0.02));
        service.p95_ms.push(2.5 * mean * scatter(rng, 0.05));
        service
            .p99_ms
            .push(4.0 * mean * scatter(rng, 0.1) * if minute.has_stalls { 3.0 } else { 1.0 });
        for (bound, shares) in &mut service.above {
            let share = (-*bound / mean).exp();
            shares.push(rng.poisson(share * rate * 60.0) / (rate * 60.0));
        }
        disk.iops.push(minute.iops * scatter(rng, 0.01));
        disk.await_ms.push(minute.io_ms);
        disk.busy.push(minute.busy);
        evictions.push(minute.evictions * scatter(rng, 0.3));
    }
    let found = events.iter().filter_map(|event| match event {
        Event::Cap(_) => Some(EventCode::VolumeCap),
        Event::Stalls => Some(EventCode::Stalled),
        Event::Scrub(_) => Some(EventCode::ScrubHurts),
        _ => None,
    });
    // A finding takes a while to be detected, and some are not.
    disk.findings = found
        .filter(|_| rng.uniform() < 0.7)
        .map(|code| DiskFinding {
            code,
            slots: MOMENT + 2..MOMENT + WIDTH,
        })
        .collect();
    observed.disks.push(disk);
    observed.series.push(NamedSeries {
        name: "evictions".to_owned(),
        values: evictions,
    });
    observed
}

/// The seeds on which the rules were tuned.
const TUNED: u64 = 17;
/// Other seeds, for the long proof.
const UNSEEN: u64 = 23;

/// Verdicts of a scenario over this number of seeds, each with its count.
fn played(scenario: &Scenario, part: u64, seeds: u64) -> Vec<(Conclusion, usize)> {
    let mut counts: Vec<(Conclusion, usize)> = Vec::new();
    for seed in 0..seeds {
        let mut rng = Rng::of(part, seed);
        let events = (scenario.events)(&mut rng);
        let observed = simulate(&events, &mut rng);
        let count = observed.service.requests.len();
        let windows = Windows::around(MOMENT, WIDTH, count, DAY, 0..count);
        let moment = Moment {
            slot: MOMENT,
            marked: scenario.marked,
        };
        let verdict = judge(&observed, moment, &windows);
        match counts
            .iter_mut()
            .find(|(other, _)| *other == verdict.conclusion)
        {
            Some((_, count)) => *count += 1,
            None => counts.push((verdict.conclusion, 1)),
        }
    }
    counts
}

fn right(scenario: &Scenario, part: u64, seeds: u64) -> usize {
    let counts = played(scenario, part, seeds);
    println!("{:<48} {}: {counts:?}", scenario.name, scenario.truth);
    let right = counts
        .iter()
        .find(|(answer, _)| answer.name() == scenario.truth);
    right.map_or(0, |(_, count)| *count)
}

#[test]
fn each_scenario_is_judged_right() {
    for scenario in &SCENARIOS {
        let right = right(scenario, TUNED, 6);
        assert_eq!(right, 6, "{}", scenario.name);
    }
}

#[test]
#[ignore = "a long proof"]
fn table_of_verdicts() {
    for scenario in &SCENARIOS {
        let right = right(scenario, UNSEEN, 200);
        assert!(right >= 190, "{}: {right} of 200", scenario.name);
    }
}

#[test]
fn sixty_quiet_runs_have_at_most_one_false_alarm() {
    let quiet = &SCENARIOS[SCENARIOS.len() - 1];
    let alarm = |(answer, _): &&(Conclusion, usize)| {
        !matches!(
            answer,
            Conclusion::NothingChanged | Conclusion::NotEnoughData
        )
    };
    let counts = played(quiet, TUNED, 60);
    let alarms: usize = counts.iter().filter(alarm).map(|(_, count)| count).sum();
    assert!(alarms <= 1, "{counts:?}");
}

#[test]
fn three_points_against_three_are_not_enough() {
    let observed = simulate(&[Event::Sleep(50.0)], &mut Rng::new(1));
    let moment = Moment {
        slot: MOMENT,
        marked: true,
    };
    let windows = Windows {
        before: MOMENT - 3..MOMENT,
        after: MOMENT + 1..MOMENT + 4,
        days: Vec::new(),
    };
    let verdict = judge(&observed, moment, &windows);
    assert_eq!(verdict.conclusion, Conclusion::NotEnoughData);
    let nothing = judge(&Observations::default(), moment, &windows);
    assert_eq!(nothing.conclusion, Conclusion::NotEnoughData);
}

#[test]
fn a_change_that_nothing_explains_is_not_the_code_of_no_release() {
    let observed = simulate(&[Event::Sleep(30.0)], &mut Rng::new(2));
    let count = observed.service.requests.len();
    let moment = Moment {
        slot: MOMENT,
        marked: false,
    };
    let verdict = judge(
        &observed,
        moment,
        &Windows::around(MOMENT, WIDTH, count, DAY, 0..count),
    );
    assert_eq!(verdict.conclusion, Conclusion::NotEnoughData);
    assert!(verdict.changes[0].1.shows(0.01, 1.1));
}
