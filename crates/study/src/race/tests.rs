//! Small races with known results, and random input.

use super::*;
use crate::simulate::Rng;
use proptest::prelude::*;

/// A measurement with a half width of 1 %.
fn cell(block: usize, entrant: usize, value: f64) -> Measurement {
    Measurement {
        entrant,
        block,
        value,
        half_width: Some(0.01),
    }
}

/// Full blocks of entrants at these levels, with 1 % of noise and a drift of 10 % a block.
fn blocks(levels: &[f64], count: usize, seed: u64) -> Vec<Measurement> {
    let mut rng = Rng::new(seed);
    let mut seen = Vec::new();
    for block in 0..count {
        for (entrant, level) in levels.iter().enumerate() {
            let log = 0.01 * rng.normal() - 0.1 * block as f64;
            seen.push(cell(block, entrant, level * log.exp()));
        }
    }
    seen
}

/// Two that are hard to distinguish, two slightly behind, and six far behind.
const LEVELS: [f64; 10] = [100.0, 99.0, 88.0, 88.0, 50.0, 40.0, 30.0, 20.0, 10.0, 5.0];

fn dropped_after(race: &Race) -> Vec<Option<usize>> {
    let after = |status: &EntrantStatus| match status {
        EntrantStatus::Dropped { blocks, .. } => Some(*blocks),
        _ => None,
    };
    race.statuses.iter().map(after).collect()
}

#[test]
fn those_far_behind_are_dropped_first_and_those_near_stay() {
    let race = replay(10, &blocks(&LEVELS, 5, 1), &Rule::default());
    let after = dropped_after(&race);
    assert!(
        after[4..].iter().all(|blocks| *blocks == Some(1)),
        "{after:?}"
    );
    assert!(
        after[2..4]
            .iter()
            .all(|blocks| blocks.is_some_and(|b| b > 1))
    );
    assert!(race.entrants().eq([0, 1]));
    assert!(race.leader.is_some_and(|leader| leader < 2));
    assert_eq!(race.ties.len(), 1);
    let noise = race.noise.unwrap();
    assert!((0.004..0.02).contains(&noise), "{noise}");
    let EntrantStatus::Dropped { ratio, .. } = race.statuses[5] else {
        panic!("entrant 5 is in");
    };
    assert!(ratio.high < 0.6 && ratio.low > 0.25);
}

#[test]
fn full_drops_no_one() {
    let rule = Rule {
        full: true,
        ..Rule::default()
    };
    let seen = blocks(&LEVELS, 5, 1);
    let race = replay(10, &seen, &rule);
    assert_eq!((race.entrants().count(), race.end), (10, Some(End::Blocks)));
    assert_eq!(replay(10, &seen[..40], &rule).end, None);
}

#[test]
fn only_complete_blocks_decide() {
    let seen = blocks(&LEVELS, 5, 2);
    let race = |cells: usize| replay(10, &seen[..cells], &Rule::default());
    let (begun, one, more) = (race(9), race(10), race(11));
    assert_eq!((begun.blocks, begun.leader, begun.end), (0, Some(0), None));
    assert_eq!(begun.entrants().count(), 10);
    assert_eq!((one.blocks, one.end), (1, None));
    assert_eq!((&one.statuses, one.leader), (&more.statuses, more.leader));
    assert_eq!(replay(10, &[], &Rule::default()).leader, None);
}

#[test]
fn cells_of_those_that_are_out_change_nothing() {
    let all = blocks(&LEVELS, 5, 3);
    let whole = replay(10, &all, &Rule::default());
    let after = dropped_after(&whole);
    let taken = |seen: &&Measurement| after[seen.entrant].is_none_or(|blocks| seen.block < blocks);
    let raced: Vec<Measurement> = all.iter().filter(taken).copied().collect();
    let race = replay(10, &raced, &Rule::default());
    assert!(raced.len() < all.len() / 2);
    assert_eq!((race.statuses, race.leader), (whole.statuses, whole.leader));
}

#[test]
fn a_race_ends_when_one_is_left_or_all_are_equal() {
    let one = replay(3, &blocks(&[100.0, 99.0, 10.0], 1, 4), &Rule::default());
    assert_eq!(one.end, None);
    let fails = [cell(0, 0, 5.0), cell(0, 1, 0.0)];
    assert_eq!(replay(2, &fails, &Rule::default()).end, Some(End::OneLeft));
    let exact: Vec<Measurement> = (0..2)
        .flat_map(|block| (0..4).map(move |entrant| cell(block, entrant, 7.0)))
        .collect();
    let equal = replay(4, &exact, &Rule::default());
    assert_eq!(
        (equal.end, equal.blocks, equal.ties.len()),
        (Some(End::Equal), 2, 3)
    );
}

#[test]
fn failed_layouts_are_out_unless_they_were_measured_again() {
    let mut seen = blocks(&[100.0, 100.0, 100.0], 1, 5);
    seen[1].value = f64::NAN;
    let failed = replay(3, &seen, &Rule::default());
    assert_eq!(failed.statuses[1], EntrantStatus::Failed { block: 0 });
    assert_eq!(failed.ratios[1], None);
    seen.push(cell(0, 1, 100.0));
    assert_eq!(
        replay(3, &seen, &Rule::default()).statuses[1],
        EntrantStatus::In
    );
    let none = [cell(0, 0, -1.0)];
    assert_eq!(replay(1, &none, &Rule::default()).end, Some(End::NoneLeft));
    assert_eq!(replay(0, &[], &Rule::default()).end, Some(End::NoneLeft));
}

#[test]
fn one_lucky_cell_drops_no_one() {
    let mut seen = blocks(&[100.0; 12], 1, 6);
    seen[3].value *= 3.0;
    let race = replay(12, &seen, &Rule::default());
    assert_eq!(race.entrants().count(), 12);
}

#[test]
fn one_stalled_cell_does_not_drop_the_best() {
    let mut levels = [80.0; 12];
    levels[7] = 100.0;
    let mut seen = blocks(&levels, 5, 7);
    for at in [12 + 7, 24 + 7] {
        let kept = seen[at].value;
        seen[at].value *= 0.4;
        let race = replay(12, &seen, &Rule::default());
        assert_eq!(
            (race.leader, race.statuses[7]),
            (Some(7), EntrantStatus::In),
            "cell {at}"
        );
        seen[at].value = kept;
    }
}

proptest! {
    #[test]
    fn any_observations_have_an_answer(
        entrants in 0usize..7,
        seen in prop::collection::vec(
            (0usize..8, 0usize..7, prop_oneof![any::<f64>(), 1.0..2.0], any::<Option<f64>>()),
            0..50,
        ),
        rule in (0usize..7, any::<f64>(), any::<bool>(), any::<f64>())
    ) {
        let seen: Vec<Measurement> = seen
            .into_iter()
            .map(|(entrant, block, value, half_width)| Measurement { entrant, block, value, half_width })
            .collect();
        let (blocks, tie, full, build_noise) = rule;
        for rule in [Rule { blocks, tie, full, build_noise }, Rule { blocks, full, ..Rule::default() }] {
            let race = replay(entrants, &seen, &rule);
            prop_assert_eq!(race.statuses.len(), entrants);
            prop_assert_eq!(race.ratios.len(), entrants);
            prop_assert!(race.blocks <= blocks);
            for ratio in race.ratios.iter().flatten() {
                prop_assert!(ratio.low <= ratio.ratio && ratio.ratio <= ratio.high);
            }
            if let Some(leader) = race.leader {
                prop_assert_eq!(race.statuses[leader], EntrantStatus::In);
                prop_assert!(!race.ties.contains(&leader));
            }
            if full {
                prop_assert_eq!(dropped_after(&race), vec![None; entrants]);
            }
        }
    }

    #[test]
    fn the_order_and_the_unit_of_the_observations_do_not_matter(
        seed in any::<u64>(), unit in 1e-6..1e6, turn in 0usize..50
    ) {
        let seen = blocks(&LEVELS, 5, seed);
        let mut turned = seen.clone();
        turned.rotate_left(turn);
        prop_assert_eq!(
            replay(10, &seen, &Rule::default()),
            replay(10, &turned, &Rule::default())
        );
        for one in &mut turned {
            one.value *= unit;
        }
        let scaled = replay(10, &turned, &Rule::default());
        prop_assert_eq!(
            dropped_after(&scaled),
            dropped_after(&replay(10, &seen, &Rule::default()))
        );
    }

    #[test]
    fn a_later_block_never_brings_back_who_was_dropped(seed in any::<u64>()) {
        let seen = blocks(&LEVELS, 5, seed);
        let mut last = vec![None; 10];
        for count in 1..=5 {
            let after = dropped_after(&replay(10, &seen[..10 * count], &Rule::default()));
            for (old, new) in last.iter().zip(&after) {
                prop_assert!(old.is_none() || old == new);
            }
            last = after;
        }
    }
}
