use proptest::prelude::*;

use super::*;

fn pacer() -> Pacer {
    Pacer::new(Rates::new(10.0, 1000.0).unwrap(), 0.01).unwrap()
}

/// Measurements of half a second of a background that uses up its rate.
fn used(pacer: &Pacer, foreground_s: Option<f64>) -> Interval {
    Interval {
        seconds: 0.5,
        foreground_s,
        background: pacer.allowed(),
    }
}

/// A pacer that has grown to its ceiling.
fn grown() -> Pacer {
    let mut pacer = pacer();
    for _ in 0..40 {
        pacer.observe(&used(&pacer, None));
    }
    assert_eq!(pacer.allowed(), 1000.0);
    pacer
}

#[test]
fn it_begins_at_the_floor_and_has_all_when_alone() {
    assert_eq!(pacer().allowed(), 10.0);
    grown();
}

#[test]
fn a_passed_target_cuts_at_once_and_again() {
    let mut pacer = grown();
    assert_eq!(pacer.observe(&used(&pacer, Some(0.02))), 700.0);
    assert!((pacer.observe(&used(&pacer, Some(0.02))) - 490.0).abs() < 1e-9);
}

#[test]
fn the_cut_is_from_what_was_used() {
    let mut pacer = grown();
    let idle = Interval {
        background: 100.0,
        ..used(&pacer, Some(0.02))
    };
    assert_eq!(pacer.observe(&idle), 70.0);
}

#[test]
fn between_calm_and_target_it_stays() {
    let mut pacer = grown();
    pacer.observe(&used(&pacer, Some(0.02)));
    for _ in 0..10 {
        assert_eq!(pacer.observe(&used(&pacer, Some(0.0095))), 700.0);
    }
}

#[test]
fn after_a_cut_it_returns_to_a_little_below_and_then_creeps() {
    let mut pacer = grown();
    pacer.observe(&used(&pacer, Some(0.02)));
    for _ in 0..8 {
        pacer.observe(&used(&pacer, Some(0.005)));
    }
    assert!(
        (900.0..950.0).contains(&pacer.allowed()),
        "{}",
        pacer.allowed()
    );
}

#[test]
fn a_rate_that_is_not_used_does_not_grow() {
    let mut pacer = pacer();
    let idle = Interval {
        background: 1.0,
        ..used(&pacer, None)
    };
    assert_eq!(pacer.observe(&idle), 10.0);
}

#[test]
fn who_suffers_at_the_floor_is_not_our_victim() {
    let mut pacer = pacer();
    for _ in 0..6 {
        assert_eq!(pacer.observe(&used(&pacer, Some(0.03))), 10.0);
    }
    assert!((pacer.held_to_s() - 0.045).abs() < 1e-4);
    assert!(pacer.observe(&used(&pacer, Some(0.03))) > 10.0);
    // It fades.
    for _ in 0..1200 {
        pacer.observe(&used(&pacer, Some(0.001)));
    }
    assert_eq!(pacer.held_to_s(), 0.01);
}

#[test]
fn senseless_bounds_are_refused() {
    assert_eq!(Rates::new(0.0, 1.0), None);
    assert_eq!(Rates::new(2.0, 1.0), None);
    assert_eq!(Rates::new(1.0, f64::INFINITY), None);
    let rates = Rates::new(1.0, 2.0).unwrap();
    assert!(Pacer::new(rates, f64::NAN).is_none());
    assert!(Pacer::new(rates, 0.0).is_none());
}

proptest! {
    #[test]
    fn any_input_is_answered_within_the_bounds(
        intervals in prop::collection::vec((any::<f64>(), any::<Option<f64>>(), any::<f64>()), 0..60),
        small in prop::collection::vec((0.0..2.0, prop::option::of(0.0..0.03), 0.0..2000.0), 0..60),
    ) {
        let mut pacer = pacer();
        for (seconds, foreground_s, background) in intervals.into_iter().chain(small) {
            let allowed = pacer.observe(&Interval { seconds, foreground_s, background });
            prop_assert!((10.0..=1000.0).contains(&allowed));
            prop_assert!(pacer.held_to_s() >= 0.01);
        }
    }
}
