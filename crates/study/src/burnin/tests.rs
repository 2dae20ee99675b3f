//! Small races with known results, and random input.

use super::simulate::{Population, Rng};
use super::*;
use proptest::prelude::*;

/// Races hosts of one disk at these levels, with 2 % of noise, to the end. `slow` returns the share of its level that
/// a host has in a round.
fn run(race: &mut Race, levels: &[f64], seed: u64, slow: impl Fn(usize, usize) -> f64) -> usize {
    let mut rng = Rng::new(seed);
    let mut taken = 0;
    loop {
        let next = race.next();
        if next.is_empty() {
            return taken;
        }
        let round = race.rounds();
        let hour = 0.1 * rng.normal();
        let measured: Vec<MeasuredHost> = next
            .iter()
            .map(|host| MeasuredHost {
                host: *host,
                disks: vec![
                    levels[*host] * slow(*host, round) * (hour + 0.02 * rng.normal()).exp(),
                ],
            })
            .collect();
        taken += measured.len();
        race.take(&measured);
    }
}

/// Three good hosts, two slightly worse, seven far behind.
const LEVELS: [f64; 12] = [
    100.0, 99.0, 110.0, 85.0, 84.0, 50.0, 50.0, 45.0, 40.0, 30.0, 20.0, 10.0,
];

fn never(_: usize, _: usize) -> f64 {
    1.0
}

#[test]
fn results_are_of_now_whenever_they_were_requested() {
    let (mut asked, mut silent) = (
        Race::new(&[0; 12], Rule::keeping(3)),
        Race::new(&[0; 12], Rule::keeping(3)),
    );
    let mut rng = Rng::new(5);
    for _ in 0..6 {
        let measured: Vec<MeasuredHost> = asked
            .next()
            .iter()
            .map(|host| MeasuredHost {
                host: *host,
                disks: vec![LEVELS[*host] * (0.02 * rng.normal()).exp()],
            })
            .collect();
        asked.take(&measured);
        silent.take(&measured);
        let known: Vec<Option<HostEstimate>> = (0..12).map(|host| asked.known(host)).collect();
        let afresh = silent.clone();
        assert_eq!(
            known,
            (0..12).map(|host| afresh.known(host)).collect::<Vec<_>>()
        );
    }
}

#[test]
fn the_best_are_kept_and_the_others_drop_out_early() {
    let mut race = Race::new(&[0; 12], Rule::keeping(3));
    let taken = run(&mut race, &LEVELS, 1, never);
    let decision = race.decision(0);
    assert_eq!((decision.end, decision.places), (Some(End::Decided), 0));
    assert_eq!(decision.keep[0], 2);
    let mut keep = decision.keep.clone();
    keep.sort_unstable();
    assert_eq!(keep, [0, 1, 2]);
    for host in 5..12 {
        let Some(HostStatus::Out { round }) = race.status(host) else {
            panic!("{host} is {:?}", race.status(host));
        };
        assert!(round < 5, "{host}: {round}");
    }
    assert_eq!(race.rounds(), race.proof_rounds());
    assert!(
        taken < 5 * race.rounds(),
        "{taken} of {} rounds",
        race.rounds()
    );
    let best = race.known(2).unwrap();
    assert!(
        best.low < 110.0 && best.high > 110.0 && best.low > 90.0,
        "{best:?}"
    );
    let noise = race.noise().unwrap();
    assert!((0.015..0.025).contains(&noise), "{noise}");
}

#[test]
fn each_group_keeps_its_own() {
    let group_of: Vec<usize> = (0..12).map(|host| host % 2).collect();
    let mut race = Race::new(&group_of, Rule::keeping(1));
    run(&mut race, &LEVELS, 2, never);
    assert_eq!(race.decision(0).keep, [2]);
    assert_eq!(race.decision(1).keep, [1]);
}

#[test]
fn one_that_is_slow_at_times_is_not_kept_though_its_mean_is_the_best() {
    // Slow in one round of eight: its mean is still 5 % above that of the next.
    let slow = |host: usize, round: usize| {
        if host == 2 && round % 8 == 7 {
            0.6
        } else {
            1.0
        }
    };
    let mut race = Race::new(&[0; 12], Rule::keeping(2));
    run(&mut race, &LEVELS, 3, slow);
    let mut keep = race.decision(0).keep;
    keep.sort_unstable();
    assert_eq!(keep, [0, 1], "{:?}", race.known(2));
    let known = race.known(2).unwrap();
    assert!(
        known.slow >= 3 && (known.left - 0.6).abs() < 0.05,
        "{known:?}"
    );
}

#[test]
fn one_that_dropped_out_is_called_back_when_a_leader_turns_out_bad() {
    // The best two are good for twenty rounds, and slow from then on.
    let slow = |host: usize, round: usize| {
        if host < 3 && host != 1 && round > 20 {
            0.3
        } else {
            1.0
        }
    };
    let mut race = Race::new(&[0; 12], Rule::keeping(3));
    run(&mut race, &LEVELS, 4, slow);
    let decision = race.decision(0);
    let mut kept: Vec<usize> = decision
        .keep
        .iter()
        .chain(&decision.tied)
        .copied()
        .collect();
    kept.sort_unstable();
    assert_eq!(kept, [1, 3, 4], "{decision:?}");
}

#[test]
fn an_hour_in_which_all_are_slow_is_no_ones_fault() {
    let slow = |_: usize, round: usize| if round % 4 == 1 { 0.2 } else { 1.0 };
    let mut race = Race::new(&[0; 12], Rule::keeping(3));
    run(&mut race, &LEVELS, 5, slow);
    assert_eq!(race.decision(0).end, Some(End::Decided));
    let slow: usize = (0..12).map(|host| race.known(host).unwrap().slow).sum();
    assert_eq!(slow, 0);
}

#[test]
fn one_bad_disk_of_four_makes_a_bad_host() {
    let mut race = Race::new(&[0; 4], Rule::keeping(1));
    let mut rng = Rng::new(6);
    while !race.next().is_empty() {
        let disks = |host: usize, rng: &mut Rng| -> Vec<f64> {
            let level = |disk: usize| match (host, disk) {
                (0, 2) => 90.0,
                (0, _) => 200.0,
                _ => 100.0 - host as f64 * 10.0,
            };
            (0..4)
                .map(|disk| level(disk) * (0.02 * rng.normal()).exp())
                .collect()
        };
        let next = race.next();
        let measured = next.iter().map(|host| MeasuredHost {
            host: *host,
            disks: disks(*host, &mut rng),
        });
        let measured: Vec<MeasuredHost> = measured.collect();
        race.take(&measured);
    }
    // Host 1 has 90 throughout, host 0 only on its third disk: they tie, and host 3 with 70 is out.
    assert_eq!(race.known(0).unwrap().disk, 2);
    assert!(matches!(race.status(3), Some(HostStatus::Out { .. })));
    let decision = race.decision(0);
    assert_eq!(decision.keep.len() + decision.places, 1, "{decision:?}");
}

#[test]
fn those_that_are_equal_tie() {
    let mut race = Race::new(&[0; 5], Rule::keeping(2));
    run(&mut race, &[100.0, 100.0, 100.0, 50.0, 50.0], 7, never);
    let decision = race.decision(0);
    assert_eq!(decision.end, Some(End::Equal));
    assert_eq!(
        (decision.places, decision.tied.len()),
        (2, 3),
        "{decision:?}"
    );
}

#[test]
fn hosts_that_fail_or_are_removed_are_never_kept() {
    let mut race = Race::new(&[0, 0, 0, 0], Rule::keeping(1));
    let of = |host, figure| MeasuredHost {
        host,
        disks: vec![figure],
    };
    race.take(&[
        of(0, 900.0),
        of(1, 0.0),
        of(2, 100.0),
        of(3, 50.0),
        of(9, 1.0),
    ]);
    assert_eq!(race.status(1), Some(HostStatus::Removed { round: 0 }));
    race.remove(0);
    assert_eq!(race.next(), [2, 3]);
    let mut levels = [0.0; 4];
    levels[2..].copy_from_slice(&[100.0, 50.0]);
    run(&mut race, &levels, 8, never);
    assert_eq!(race.decision(0).keep, [2]);
    race.remove(17);
    assert_eq!((race.status(17), race.known(1)), (None, None));
}

#[test]
fn no_more_hosts_than_are_kept_are_all_kept() {
    let mut race = Race::new(&[0, 0], Rule::keeping(3));
    run(&mut race, &[1.0, 2.0], 9, never);
    let decision = race.decision(0);
    assert_eq!((decision.end, decision.keep.len()), (Some(End::Few), 2));
    assert_eq!(race.rounds(), 2);
    assert!(Race::new(&[], Rule::keeping(3)).next().is_empty());
}

#[test]
fn a_host_that_is_not_reached_in_a_round_is_in_the_next() {
    let mut race = Race::new(&[0; 4], Rule::keeping(1));
    let of = |host| MeasuredHost {
        host,
        disks: vec![100.0],
    };
    race.take(&[of(0), of(1), of(2)]);
    race.take(&[of(0), of(1), of(2)]);
    assert!(race.next().contains(&3));
    assert_eq!(race.status(3), Some(HostStatus::In));
}

#[test]
fn a_host_that_was_never_measured_is_neither_kept_nor_in_a_tie() {
    let of = |host| MeasuredHost {
        host,
        disks: vec![100.0],
    };
    // Few hosts are left, and one of them was unreachable until now: the race waits for it.
    let mut race = Race::new(&[0; 3], Rule::keeping(2));
    race.remove(0);
    for _ in 0..4 {
        race.take(&[of(1)]);
    }
    assert_eq!(race.ended(0), None);
    assert_eq!(race.decision(0).keep, [1]);
    for _ in 0..2 {
        race.take(&[of(1), of(2)]);
    }
    assert_eq!(race.ended(0), Some(End::Few));
    // The rounds are used up.
    let rule = Rule {
        rounds: 3,
        ..Rule::keeping(1)
    };
    let mut race = Race::new(&[0; 3], rule);
    for _ in 0..3 {
        race.take(&[of(0), of(1)]);
    }
    let decision = race.decision(0);
    assert_eq!(decision.end, Some(End::Rounds));
    assert!(
        !decision.keep.contains(&2) && !decision.tied.contains(&2),
        "{decision:?}"
    );
}

#[test]
fn every_host_is_measured_as_long_as_the_floors_need() {
    let rule = Rule {
        least: 12,
        ..Rule::keeping(3)
    };
    let mut race = Race::new(&[0; 12], rule);
    let taken = run(&mut race, &LEVELS, 10, never);
    assert!(taken >= 12 * 12);
    assert!((0..12).all(|host| race.known(host).unwrap().rounds >= 12));
}

#[test]
fn the_rounds_of_proof_are_what_the_risk_asks_for() {
    let rule = Rule::keeping(3);
    // Nine hosts are kept. A host that is slow in a tenth of the rounds is calm in all of n rounds with probability
    // 0.9^n, and a quarter of 5 % is for all nine.
    let rounds = Race::new(&[0, 1, 2], rule).proof_rounds();
    let missed = 9.0 * 0.9_f64.powi(rounds as i32);
    assert!(missed <= 0.0125 && missed / 0.9 > 0.0125, "{rounds}");
    let none = Rule {
        unseen: 0.0,
        ..rule
    };
    assert_eq!(Race::new(&[0], none).proof_rounds(), 0);
}

#[test]
fn a_race_of_ten_thousand_keeps_few_rounds() {
    let population = Population {
        disks: 4,
        ..Population::plain()
    };
    let mut rng = Rng::new(11);
    let hosts = population.draw(10_000, &mut rng);
    let got = simulate::simulate(&population.conditions, &hosts, Rule::keeping(3), &mut rng);
    assert!(got.right, "{got:?}");
    // Each round of a disk takes four bytes.
    assert!(got.host_rounds * 4 * 4 < 1 << 20, "{got:?}");
}

proptest! {
    #[test]
    fn any_rounds_have_an_answer(
        group_of in prop::collection::vec(0usize..3, 0..7),
        rounds in prop::collection::vec(
            prop::collection::vec(
                (0usize..8, prop::collection::vec(
                    prop_oneof![any::<f64>(), 1.0..2.0, Just(1.0)], 0..3)),
                0..9),
            0..12),
        removed in 0usize..9,
        rule in (0usize..4, any::<f64>(), 0usize..9, 0usize..4, any::<f64>(), any::<f64>(), any::<f64>()),
    ) {
        let (keep, tie, most, least, risk, tail, unseen) = rule;
        let odd = Rule { keep, tie, rounds: most, least, risk, tail, unseen };
        for rule in [odd, Rule { rounds: most, ..Rule::keeping(keep) }] {
            let mut race = Race::new(&group_of, rule);
            for round in &rounds {
                let measured: Vec<MeasuredHost> = round
                    .iter()
                    .map(|(host, disks)| MeasuredHost { host: *host, disks: disks.clone() })
                    .collect();
                race.take(&measured);
                race.remove(removed);
                prop_assert!(race.next().iter().all(|host| *host < group_of.len()));
                for group in 0..=race.groups() {
                    let decision = race.decision(group);
                    prop_assert!(decision.places <= keep);
                    prop_assert!(!decision.keep.iter().any(|host| decision.tied.contains(host)));
                    let removed = |host: &usize| {
                        matches!(race.status(*host), Some(HostStatus::Removed { .. }))
                    };
                    prop_assert!(!decision.keep.iter().chain(&decision.tied).any(removed));
                }
                for host in 0..group_of.len() {
                    let _ = race.known(host);
                }
            }
        }
    }

    #[test]
    fn the_unit_and_the_order_do_not_matter(seed in any::<u64>(), unit in 1e-3..1e3_f64) {
        let course = |unit: f64, turned: bool| {
            let mut rng = Rng::new(seed);
            let mut race = Race::new(&[0; 12], Rule::keeping(2));
            for _ in 0..20 {
                let mut measured: Vec<MeasuredHost> = LEVELS
                    .iter()
                    .enumerate()
                    .map(|(host, level)| MeasuredHost {
                        host,
                        disks: vec![unit * level * (0.03 * rng.normal()).exp()],
                    })
                    .collect();
                if turned {
                    measured.reverse();
                }
                race.take(&measured);
            }
            (0..12).map(|host| race.status(host)).collect::<Vec<_>>()
        };
        prop_assert_eq!(course(1.0, false), course(1.0, true));
        prop_assert_eq!(course(1.0, false), course(unit, false));
    }
}

/// Races hosts of which the fifth drops after `dropped` rounds, where the disks occasionally spend burst credit.
fn with_one_that_drops(dropped: usize, seed: u64) -> Race {
    const LEVELS: [f64; 5] = [900.0, 750.0, 500.0, 300.0, 1200.0];
    let rule = Rule {
        rounds: 14,
        ..Rule::keeping(2)
    };
    let (mut race, mut rng) = (Race::new(&[0; 5], rule), Rng::new(seed));
    while !race.next().is_empty() {
        let round = race.rounds();
        let left = |host: usize| match host {
            4 if round >= dropped => 0.125,
            _ => 1.0,
        };
        let mut figure = |host: usize| {
            let burst = [0.0, 0.075, 0.165][(rng.uniform() * 3.0) as usize % 3];
            LEVELS[host] * left(host) * (1.0 + burst)
        };
        let measured: Vec<MeasuredHost> = race
            .next()
            .into_iter()
            .map(|host| MeasuredHost {
                host,
                disks: vec![figure(host)],
            })
            .collect();
        race.take(&measured);
    }
    race
}

#[test]
fn one_that_drops_on_the_way_is_not_taken_for_noise() {
    for dropped in 2..10 {
        for seed in 0..50 {
            let race = with_one_that_drops(dropped, seed);
            let noise = race.noise().unwrap();
            assert!(noise < 0.15, "{dropped}, {seed}: {noise}");
            let decision = race.decision(0);
            let left = || decision.keep.iter().chain(&decision.tied);
            assert!(
                left().any(|host| *host == 0),
                "{dropped}, {seed}: {decision:?}"
            );
            assert!(
                left().all(|host| *host != 3),
                "{dropped}, {seed}: {decision:?}"
            );
        }
    }
}
