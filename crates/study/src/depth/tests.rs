use proptest::prelude::*;

use super::verdict::{BindingLimit, KnownCaps, Verdict, of_one, shared};
use super::*;

/// Half a second of a device that completes a request in `latency_s` and lets through `cap` requests a second.
fn interval(depth: usize, cap: f64, latency_s: f64) -> DepthInterval {
    let rate = (depth as f64 / latency_s).min(cap);
    DepthInterval {
        seconds: 0.5,
        in_flight: depth as f64,
        requests: 0.5 * rate,
        bytes: 0.5 * rate * 524288.0,
        latency_s: depth as f64 / rate,
    }
}

fn controller(most: usize) -> Controller {
    Controller::new(Bounds::new(1, most).unwrap(), 1)
}

fn settle(controller: &mut Controller, cap: f64, latency_s: f64) -> Vec<usize> {
    let step = |_| controller.observe(&interval(controller.depth(), cap, latency_s));
    (0..400).map(step).collect()
}

#[test]
fn it_doubles_and_settles_at_the_bend() {
    let mut controller = controller(512);
    let depths = settle(&mut controller, 250.0, 0.05);
    let mut doublings = depths.clone();
    doublings.dedup();
    assert_eq!(doublings[..5], [1, 2, 4, 8, 16]);
    // 12.5 are needed; at most a quarter more, plus one trial.
    assert!(
        depths[300..].iter().all(|depth| (9..=20).contains(depth)),
        "{depths:?}"
    );
    let level = controller.level().unwrap();
    assert!((level.requests_per_s - 250.0).abs() < 5.0);
    assert!(!controller.out_of_depth());
}

#[test]
fn a_bound_is_kept_and_reported() {
    let mut controller = controller(8);
    assert!(
        settle(&mut controller, 250.0, 0.05)
            .iter()
            .all(|depth| *depth <= 8)
    );
    assert!(controller.out_of_depth());
    let verdict = of_one(&controller, &KnownCaps::default()).unwrap();
    assert_eq!(
        (verdict.binds, verdict.share_of_limit),
        (BindingLimit::Latency, None)
    );
}

#[test]
fn an_idle_reader_teaches_nothing() {
    let mut controller = controller(64);
    let idle = DepthInterval {
        in_flight: 0.1,
        ..interval(1, 250.0, 0.05)
    };
    for _ in 0..100 {
        assert_eq!(controller.observe(&idle), 1);
    }
}

#[test]
fn senseless_bounds_are_refused() {
    assert_eq!(Bounds::new(0, 4), None);
    assert_eq!(Bounds::new(5, 4), None);
    assert_eq!(Controller::new(Bounds::new(2, 4).unwrap(), 100).depth(), 4);
}

#[test]
fn devices_that_bring_less_together_share_a_limit() {
    let one = |bytes_per_s: f64, binds: BindingLimit| Verdict {
        binds,
        bytes_per_s,
        iops: bytes_per_s / 262144.0,
        depth: 13,
        latency_s: 0.05,
        share_of_limit: None,
    };
    let half = one(5e8, BindingLimit::Unknown);
    let both = shared(&[(half, 1e9), (half, 1e9)]).unwrap();
    assert_eq!(
        (both.binds, both.share_of_limit),
        (BindingLimit::Shared, Some(0.5))
    );
    assert_eq!((both.bytes_per_s, both.depth), (1e9, 26));
    assert!((both.latency_s - 0.05).abs() < 1e-12);
    // Each device is at its own limit, or as fast as alone: no limit is shared.
    let full = one(5e8, BindingLimit::VolumeBytes);
    assert_eq!(shared(&[(full, 1e9), (full, 1e9)]), None);
    assert_eq!(shared(&[(half, 5e8), (half, 5e8)]), None);
    assert_eq!(shared(&[(half, 1e9)]), None);
    assert_eq!(shared(&[(half, f64::NAN), (half, 1e9)]), None);
}

fn any_interval() -> impl Strategy<Value = DepthInterval> {
    let wild = any::<(f64, f64, f64, f64, f64)>();
    let tame = (0.01..2.0, 0.0..600.0, 0.0..1000.0, 0.0..1e9, 0.0..1.0);
    prop_oneof![wild, tame].prop_map(|(seconds, in_flight, requests, bytes, latency_s)| {
        DepthInterval {
            seconds,
            in_flight,
            requests,
            bytes,
            latency_s,
        }
    })
}

proptest! {
    #[test]
    fn any_input_is_answered_within_the_bounds(
        intervals in prop::collection::vec(any_interval(), 0..200),
        least in 1usize..10, more in 0usize..500,
    ) {
        let mut controller = Controller::new(Bounds::new(least, least + more).unwrap(), 8);
        for interval in intervals {
            let depth = controller.observe(&interval);
            prop_assert!((least..=least + more).contains(&depth));
            let verdict = of_one(&controller, &KnownCaps { bytes_per_s: Some(1e8), iops: None });
            prop_assert!(verdict.is_none_or(|v| v.bytes_per_s > 0.0 && v.iops > 0.0));
        }
    }

    #[test]
    fn it_settles_near_the_bend_of_any_device(cap in 20.0..5000.0f64, latency_s in 0.0005..0.1f64) {
        let mut controller = controller(4096);
        let depths = settle(&mut controller, cap, latency_s);
        let needed = (cap * latency_s).max(1.0);
        // Trials are excluded.
        let mut late = depths[350..].to_vec();
        late.sort_unstable();
        let depth = late[late.len() / 2] as f64;
        // With a few in flight, one more is a large share.
        let most = (2.5 * needed).max(needed + 3.0);
        prop_assert!((0.5 * needed..=most).contains(&depth), "{} of {}", depth, needed);
    }
}
