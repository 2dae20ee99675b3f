//! The controller and the detector, step by step.

use proptest::prelude::*;

use super::*;

const TICK_S: f64 = 0.1;

/// Passes `seconds` with a foreground of `per_s` requests a second and this latency, beside a background that uses its
/// allowed rate.
fn pass(controller: &mut Controller, seconds: f64, per_s: f64, latency_s: impl Fn(Allowed) -> f64) {
    for _ in 0..(seconds / TICK_S).round() as usize {
        let allowed = controller.allowed();
        let latencies_s = [latency_s(allowed); 4];
        controller.take(&Sample {
            seconds: TICK_S,
            foreground: Foreground {
                requests: Some(per_s * TICK_S),
                waited_s: 0.0,
            },
            latencies_s: if per_s > 0.0 { &latencies_s } else { &[] },
            background: match allowed {
                Allowed::All => 1e8 * TICK_S,
                Allowed::Rate(rate) => rate * TICK_S,
                Allowed::Nothing => 0.0,
            },
            ..Sample::default()
        });
    }
}

/// The highest allowed rate in a few seconds, without pauses.
fn rate(controller: &mut Controller, per_s: f64, latency_s: impl Fn(Allowed) -> f64) -> f64 {
    let mut highest = 0.0_f64;
    for _ in 0..30 {
        pass(controller, TICK_S, per_s, &latency_s);
        if let Allowed::Rate(rate) = controller.allowed() {
            highest = highest.max(rate);
        }
    }
    highest
}

#[test]
fn an_idle_device_is_given_away_after_a_moment_and_taken_back_at_once() {
    let mut controller = Controller::new(Targets::default());
    assert_eq!(controller.allowed(), Allowed::Nothing);
    pass(&mut controller, 0.6, 0.0, |_| 0.001);
    assert_eq!(controller.allowed(), Allowed::All);
    pass(&mut controller, TICK_S, 600.0, |_| 0.001);
    assert_eq!(
        controller.allowed(),
        Allowed::Nothing,
        "it is measured first"
    );
    pass(&mut controller, 3.0, 600.0, |_| 0.001);
    assert!(!matches!(controller.allowed(), Allowed::All));
    pass(&mut controller, 6.0, 0.0, |_| 0.001);
    assert_eq!(controller.allowed(), Allowed::All);
}

#[test]
fn it_grows_from_below_and_backs_off_within_a_second_of_harm() {
    let mut controller = Controller::new(Targets::default());
    controller.set_device_rate(1e8);
    let well = |_: Allowed| 0.002;
    pass(&mut controller, 4.0, 300.0, well);
    let first = rate(&mut controller, 300.0, well);
    assert!(first < 2e7, "{first}");
    pass(&mut controller, 20.0, 300.0, well);
    let later = rate(&mut controller, 300.0, well);
    assert!(later > 10.0 * first, "{first} {later}");
    let slow = |allowed: Allowed| {
        if allowed == Allowed::Nothing {
            0.002
        } else {
            0.02
        }
    };
    pass(&mut controller, 1.0, 300.0, slow);
    let harmed = rate(&mut controller, 300.0, slow);
    assert!(harmed < 0.1 * later, "{later} {harmed}");
    assert!(harmed >= 1e6, "it never stops for good: {harmed}");
    pass(&mut controller, 60.0, 300.0, well);
    let recovered = rate(&mut controller, 300.0, well);
    assert!(recovered > 10.0 * harmed, "{harmed} {recovered}");
}

#[test]
fn a_target_below_what_the_foreground_has_alone_is_unreachable() {
    let asked = Targets {
        mean_s: None,
        p99_s: Some(0.005),
    };
    for (own_s, source, kept_s) in [
        (0.002, TargetSource::Asked, 0.005),
        (0.010, TargetSource::Unreachable, 0.015),
    ] {
        let mut controller = Controller::new(asked);
        pass(&mut controller, 5.0, 300.0, |_| own_s);
        let (targets, found) = controller.targets().unwrap();
        assert_eq!(found, source);
        assert!(
            (targets.p99_s.unwrap() - kept_s).abs() < 1e-9,
            "{targets:?}"
        );
        assert_eq!(targets.mean_s, None);
        let outcome = controller.outcome();
        assert!(!outcome.alone.is_empty() && !outcome.beside.is_empty());
    }
}

#[test]
fn a_foreground_that_waits_behind_the_background_is_suspected() {
    let mut controller = Controller::new(Targets::default());
    pass(&mut controller, 5.0, 0.0, |_| 0.001);
    let poll = |controller: &mut Controller, requests: f64, waited_s: f64| {
        controller.take(&Sample {
            seconds: TICK_S,
            foreground: Foreground {
                requests: Some(requests),
                waited_s,
            },
            ..Sample::default()
        })
    };
    // Four requests a second, each of a quarter of a second.
    let mut polls = 0;
    while poll(&mut controller, 0.4, 0.1) == Allowed::All {
        polls += 1;
        assert!(polls < 10);
    }
    assert_eq!(controller.phase(), ControllerStage::Suspecting);
    // Alone it makes three hundred.
    (0..2).for_each(|_| {
        poll(&mut controller, 30.0, 0.1);
    });
    assert!(controller.probes());
    // A journal makes no more requests, and is not suspected again soon.
    let mut controller = Controller::new(Targets::default());
    pass(&mut controller, 5.0, 0.0, |_| 0.001);
    (0..5).for_each(|_| {
        poll(&mut controller, 1.0, 0.1);
    });
    (0..6).for_each(|_| {
        poll(&mut controller, 0.0, 0.0);
    });
    assert_eq!(controller.allowed(), Allowed::All);
    assert_eq!(poll(&mut controller, 1.0, 0.1), Allowed::All);
}

#[test]
fn a_deadline_sets_the_least_rate_and_ends_pauses() {
    let mut controller = Controller::new(Targets::default());
    pass(&mut controller, 3.0, 300.0, |_| 0.002);
    controller.at_least(5e8);
    let slow = |allowed: Allowed| {
        if allowed == Allowed::Nothing {
            0.002
        } else {
            0.05
        }
    };
    pass(&mut controller, 5.0, 300.0, slow);
    assert!(controller.is_driven());
    assert_eq!(controller.allowed(), Allowed::Rate(5e8));
}

fn counts(read: f64, written: f64, own: f64) -> Option<IoCounts> {
    Some(IoCounts {
        read,
        written,
        own,
        in_flight: 0.0,
    })
}

#[test]
fn own_requests_that_the_kernel_counts_earlier_are_no_foreground() {
    let mut detector = ForegroundDetector::default();
    let block = 524_288.0;
    let mut seen = 0.0;
    for poll in 0..100 {
        // At every other poll the kernel is ahead by three blocks.
        let (read, own) = if poll % 2 == 0 {
            (8.0, 5.0)
        } else {
            (5.0, 8.0)
        };
        let foreground = detector.take(0.04, counts(read * block, 0.0, own * block), true);
        seen += foreground.requests.unwrap();
    }
    assert!(seen < 1.0, "{seen}");
    // A hundred pages a second in addition are foreground.
    for poll in 0..100 {
        let (read, own) = if poll % 2 == 0 {
            (8.0, 5.0)
        } else {
            (5.0, 8.0)
        };
        let read = read * block + 4.0 * 4096.0;
        seen += detector
            .take(0.04, counts(read, 0.0, own * block), true)
            .requests
            .unwrap();
    }
    assert!((350.0..=400.0).contains(&seen), "{seen}");
    assert_eq!(detector.take(0.04, None, true).requests, None);
}

#[test]
fn a_background_that_gets_no_processor_is_not_its_own_foreground() {
    let block = 524_288.0;
    let mut detector = ForegroundDetector::default();
    let mut behind = 0.0;
    let mut seen_in = |detector: &mut ForegroundDetector, polls: u32, foreground: f64| {
        let mut seen = 0.0;
        for poll in 0..polls {
            // Polls are further apart than the lag; at five of six the kernel is ahead, each time by another number of
            // blocks.
            let ahead = [7.0, 3.0, 0.0, 9.0, 2.0, 5.0][poll as usize % 6] * block;
            let own = 20.0 * block + behind - ahead;
            behind = ahead;
            let read = 20.0 * block + foreground;
            seen += detector
                .take(0.7, counts(read, 0.0, own), true)
                .requests
                .unwrap();
        }
        seen
    };
    assert_eq!(seen_in(&mut detector, 60, 0.0), 0.0);
    // Of a hundred foreground pages a poll, all but those of the last few polls are detected.
    let seen = seen_in(&mut detector, 60, 100.0 * 4096.0);
    assert!((5000.0..=6000.0).contains(&seen), "{seen}");
}

#[test]
fn the_own_requests_in_flight_are_no_foreground_beside_one() {
    let request = 65_536.0;
    let mut detector = ForegroundDetector::default();
    let mut behind = 0.0;
    let mut seen = 0.0;
    for poll in 0..60 {
        // Two are outstanding, of which the kernel has counted none, one or both.
        let ahead = f64::from(poll % 3) * request;
        let counts = IoCounts {
            read: 10.0 * request + 4096.0,
            written: 0.0,
            own: 10.0 * request + behind - ahead,
            in_flight: 2.0 * request,
        };
        behind = ahead;
        seen += detector.take(0.7, Some(counts), false).requests.unwrap();
        // One page a poll is the foreground's: never more than that is reported.
        assert!(seen <= f64::from(poll + 1), "{poll}: {seen}");
    }
    assert!(seen >= 60.0 - 2.0 * 16.0, "{seen}");
}

#[test]
fn few_requests_behind_a_deep_queue_are_suspected_without_a_probe() {
    let (mut detector, mut controller) = (
        ForegroundDetector::default(),
        Controller::new(Targets::default()),
    );
    pass(&mut controller, 5.0, 0.0, |_| 0.001);
    let mut is_suspected = |per_s: f64| {
        (0..100).any(|poll| {
            let is_due = |at: i32| (f64::from(at) * TICK_S * per_s).floor();
            let pages = is_due(poll + 1) - is_due(poll);
            // 8 MiB in flight at 40 MiB/s: each waits for 0.2 s.
            let own = TICK_S * 40.0 * 1_048_576.0;
            let counts = IoCounts {
                read: 4096.0 * pages,
                written: own,
                own,
                in_flight: 8.0 * 1_048_576.0,
            };
            let foreground = detector.take(TICK_S, Some(counts), true);
            let allowed = controller.take(&Sample {
                seconds: TICK_S,
                foreground,
                background: own,
                is_busy: true,
                ..Sample::default()
            });
            allowed == Allowed::Nothing
        })
    };
    assert!(!is_suspected(0.3), "a journal");
    assert!(is_suspected(4.0), "a reader that waits for each answer");
}

#[test]
fn a_commit_of_the_ledger_is_no_foreground_and_what_is_more_is() {
    let mut detector = ForegroundDetector::default();
    detector.take(0.1, counts(0.0, 0.0, 0.0), false);
    detector.commits();
    let of = |detector: &mut ForegroundDetector, pages: f64| {
        let seen = detector.take(0.1, counts(0.0, pages * 4096.0, 0.0), false);
        seen.requests.unwrap()
    };
    assert_eq!(of(&mut detector, 20.0), 0.0);
    assert_eq!(of(&mut detector, 60.0), 16.0);
    for _ in 0..12 {
        of(&mut detector, 0.0);
    }
    assert_eq!(of(&mut detector, 5.0), 5.0, "a second later");
}

proptest! {
    #[test]
    fn any_input_is_answered_within_the_bounds(
        polls in prop::collection::vec((any::<f64>(), any::<f64>(), any::<f64>(), any::<f64>()), 0..60),
        sane in prop::collection::vec((0.0..1.0, 0.0..500.0, 0.0..0.1, 0.0..1e9), 0..200),
    ) {
        let mut controller = Controller::new(Targets::default());
        for (seconds, requests, latency_s, background) in polls.into_iter().chain(sane) {
            let latencies_s = [latency_s];
            let allowed = controller.take(&Sample {
                seconds,
                foreground: Foreground { requests: Some(requests), waited_s: latency_s },
                latencies_s: &latencies_s,
                waiting_s: latency_s,
                timed: Some((requests, latency_s)),
                background,
                is_busy: false,
            });
            if let Allowed::Rate(rate) = allowed {
                prop_assert!(rate > 0.0 && rate.is_finite(), "{rate}");
            }
        }
    }
}
