#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

const TICK: u64 = 100_000_000;

struct Bench {
    pace: Pace,
    now: u64,
}

impl Bench {
    fn new(targets: Option<Targets>) -> Bench {
        Bench {
            pace: Pace::new(targets, Nanos(0)),
            now: 0,
        }
    }

    /// For so many ticks of 100 ms: the latency of probes, and the requests of others.
    fn live(&mut self, ticks: u32, latency: f64, others: u64) -> May {
        for _ in 0..ticks {
            self.now += TICK;
            let bytes = match self.pace.may() {
                May::Rate(rate) => rate / 10.0,
                May::All => 1e7,
                May::Nothing => 0.0,
            };
            let seen = ForegroundSample {
                probes: vec![latency; if self.pace.probes() { 5 } else { 0 }],
                others: Some(others),
                ..ForegroundSample::default()
            };
            self.pace.take(Nanos(self.now), &seen, bytes);
        }
        self.pace.may()
    }
}

fn p99(target: f64) -> Option<Targets> {
    Some(Targets {
        mean: None,
        p99: Some(target),
    })
}

#[test]
fn an_idle_array_gives_all_and_company_is_measured_first() {
    let mut bench = Bench::new(None);
    assert_eq!(bench.live(30, 0.001, 0), May::All);
    assert!(!bench.pace.probes());
    assert_eq!(bench.live(1, 0.001, 70), May::Nothing, "measuring");
    assert_eq!(bench.live(70, 0.001, 70), May::Nothing);
    assert!(matches!(bench.live(15, 0.001, 70), May::Rate(_)));
    let targets = bench.pace.targets().unwrap();
    assert!(
        (targets.mean.unwrap() - 0.00135).abs() < 1e-9,
        "{targets:?}"
    );
    assert!((targets.p99.unwrap() - 0.0015).abs() < 1e-9);
    assert_eq!(bench.live(70, 0.001, 0), May::All, "it has gone again");
}

#[test]
fn a_foreground_that_suffers_gets_the_disks_within_a_second() {
    let mut bench = Bench::new(p99(0.005));
    let May::Rate(before) = bench.live(140, 0.001, 70) else {
        panic!("company");
    };
    assert!(before > 100.0 * LEAST, "{before}");
    assert_eq!(bench.live(4, 0.050, 70), May::Nothing);
    let May::Rate(after) = bench.live(20, 0.001, 70) else {
        panic!("it is well again");
    };
    assert!(after < before, "{after} of {before}");
    // A little beyond the target is answered with a cut, not with an end.
    let mut bench = Bench::new(p99(0.005));
    bench.live(140, 0.001, 70);
    let May::Rate(cut) = bench.live(8, 0.006, 70) else {
        panic!("no end");
    };
    assert!(cut < 0.8 * before, "{cut} of {before}");
}

#[test]
fn a_burst_that_the_mean_allows_is_no_reason_to_cut_however_often_it_is_looked() {
    // Of four seconds 0.6 at 10 ms, and the rest at 2: a mean of 3.2.
    let mean = Targets {
        mean: Some(0.004),
        p99: None,
    };
    for tick in [TICK, TICK / 5] {
        let mut pace = Pace::new(Some(mean), Nanos(0));
        let (mut now, mut cuts, mut before) = (0, 0, 0.0);
        while now < 40_000_000_000 {
            now += tick;
            let May::Rate(rate) = pace.may() else {
                panic!("{:?}", pace.may());
            };
            cuts += u32::from(rate < before);
            before = rate;
            let seconds = Nanos(tick).as_secs_f64();
            let requests = (500.0 * seconds) as u64;
            let is_burst = now % 4_000_000_000 >= 3_400_000_000;
            let latency = if is_burst { 0.010 } else { 0.002 };
            let is_probed = now.is_multiple_of(TICK);
            let seen = ForegroundSample {
                probes: vec![0.001; if is_probed { 5 } else { 0 }],
                others: Some(requests),
                counted: Some((requests, requests as f64 * latency)),
                ..ForegroundSample::default()
            };
            // All that is allowed is used, and the rate grows until something is felt.
            pace.take(Nanos(now), &seen, rate * seconds);
        }
        assert_eq!(cuts, 0, "looked at each {tick} ns");
    }
}

#[test]
fn the_least_rate_is_a_share_of_what_the_members_give_and_never_nothing() {
    for (gives, least) in [(1e9, LEAST), (1e7, LEAST_SHARE * 1e7), (1e3, SLOWEST)] {
        assert!((least_of(gives) - least).abs() < 1e-6 * least);
        let mut bench = Bench::new(p99(0.005));
        bench.pace.give(gives);
        let rates = (0..40).filter_map(|_| match bench.live(1, 0.050, 70) {
            May::Rate(rate) => Some(rate),
            _ => None,
        });
        let lowest = rates.fold(f64::INFINITY, f64::min);
        assert!((lowest - least).abs() < 1e-6 * least, "{lowest} of {least}");
    }
}

#[test]
fn a_deadline_holds_the_rate_up() {
    let mut bench = Bench::new(p99(0.005));
    bench.pace.at_least(5e7);
    assert_eq!(bench.live(20, 0.050, 70), May::Rate(5e7));
}

#[test]
fn where_nobody_counts_somebody_may_be_there() {
    let mut pace = Pace::new(p99(0.005), Nanos(0));
    for tick in 1..100 {
        pace.take(Nanos(tick * TICK), &ForegroundSample::default(), 0.0);
        assert_ne!(pace.may(), May::All);
    }
}
