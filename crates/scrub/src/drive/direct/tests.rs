//! Tests of the steps: their lengths, durations and ends.

use super::*;

#[test]
fn reads_of_a_member_are_spread_over_the_time_of_a_step() {
    let mut direct = DirectComparison::new(Sectors(0), Sectors(1 << 30), Sectors(128), 4);
    let mib = f64::from(1 << 20);
    // One request to each of four members, or pairs of members, covers 1 MiB.
    for (rate, deep, apart) in [(0.5, 1, 70), (12.0, 1, 58), (45.0, 4, 15), (1000.0, 4, 0)] {
        direct.credit = 0.0;
        direct.pass(Allowed::Rate(rate * mib), 0.0);
        assert_eq!(
            (direct.deep, direct.apart.0 / 1_000_000),
            (deep, apart),
            "{rate}"
        );
        let step = direct.next().unwrap();
        assert_eq!(step.end.0 - step.start.0, deep * 2048);
    }
}

#[test]
fn the_rate_of_the_members_is_estimated_by_the_steps() {
    let mut direct = DirectComparison::new(Sectors(0), Sectors(1 << 30), Sectors(128), 4);
    let rate_of = |direct: &mut DirectComparison| {
        direct.credit = 0.0;
        let step = direct.next().unwrap();
        direct.begin(step);
        direct.complete_step(&ComparisonResult {
            read: Nanos(1_000_000_000),
            ..ComparisonResult::default()
        })
    };
    let mib = f64::from(1 << 20);
    // A step of 1 MiB in a second, and then one of 4 MiB.
    assert_eq!(rate_of(&mut direct), Some(mib));
    direct.deep = 4;
    assert_eq!(rate_of(&mut direct), Some(1.6 * mib));
}

#[test]
fn steps_end_where_a_unit_does() {
    for (unit, wide, lengths) in [
        (128, 4, [2048, 2048, 2048]),
        (4096, 3, [1536, 1536, 1024]),
        (1024, 3, [1024, 1024, 1024]),
    ] {
        let mut direct = DirectComparison::new(Sectors(0), Sectors(100_000), Sectors(unit), wide);
        let ends = lengths.map(|length| {
            direct.credit = 0.0;
            let step = direct.next().unwrap();
            assert_eq!(step.end.0 - step.start.0, length, "{unit} {wide}");
            direct.begin(step);
            direct.complete_step(&ComparisonResult::default());
            direct.is_at_rest()
        });
        assert!(ends[2], "what is done is known at the end of a unit");
    }
}

#[test]
fn a_step_that_comes_to_the_end_of_a_unit_ends_at_one_however_the_pace_changes() {
    for unit in [128, 384, 1024, 2048, 8192] {
        for wide in [1, 3, 4] {
            let mut direct =
                DirectComparison::new(Sectors(0), Sectors(1_000_000), Sectors(unit), wide);
            for deep in [1, 2, 4, 2, 3, 1, 4, 4].iter().cycle() {
                (direct.credit, direct.deep) = (0.0, *deep);
                let Some(step) = direct.next() else { break };
                let (first, behind) = (step.start.0 / unit, step.end.0 / unit);
                let is_at_end = direct.of == step.end || step.end.0.is_multiple_of(unit);
                assert!(
                    first == behind || is_at_end,
                    "{unit} {wide} {deep}: {step:?}"
                );
                direct.begin(step);
                direct.complete_step(&ComparisonResult::default());
            }
            assert_eq!(direct.at, direct.of);
        }
    }
}
