//! The events of `watch`, on simulated hosts with and without their cause.

use crate::watch::{EventCode, WatchEvent};
use record::raid::Level;
use record::sample::SyncAction;

use super::{error, share};
use crate::simulate::Rng;
use crate::watch::simulated::{Demand, Disk, Host};

/// Time for which a host is watched, in seconds.
const SECONDS: u32 = 240;
/// Hosts of each kind.
const TRIALS: usize = 60;
/// Minimum share of events that must be found; at most the complement may be found without a cause.
const FOUND: f64 = 0.95;
const FALSE: f64 = 0.05;

/// A kind of host: how it is created, and how it changes second by second.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    make: fn(&mut Rng) -> Host,
    change: fn(&mut Host, u32),
    /// Event that must be found, and its subject; `None` if no event may be found.
    truth: Option<(EventCode, &'static str)>,
}

fn nothing(_: &mut Host, _: u32) {}

/// Disks that are not quite equal, with this number of requests in flight.
fn disks(rng: &mut Rng, count: usize, in_flight: f64) -> Vec<Disk> {
    (0..count)
        .map(|_| Disk {
            base_s: 0.001 * (0.1 * rng.normal()).exp(),
            noise: 0.05 + 0.2 * rng.uniform(),
            memory: 0.9 * rng.uniform(),
            ..Disk::healthy(in_flight)
        })
        .collect()
}

/// An array whose members all have the same load.
fn array(rng: &mut Rng, level: Level) -> Host {
    let mut disks = disks(rng, 4, 4.0);
    let rate = 200.0 + 400.0 * rng.uniform();
    for disk in &mut disks {
        disk.demand = Demand::Rate(rate);
    }
    let mut host = Host::of(disks);
    host.level = Some(level);
    host
}

fn one(rng: &mut Rng, in_flight: f64) -> Host {
    Host::of(disks(rng, 1, in_flight))
}

const CASES: [Case; 20] = [
    Case {
        name: "healthy, busy",
        make: |rng| Host::of(disks(rng, 3, 8.0)),
        change: nothing,
        truth: None,
    },
    Case {
        name: "healthy, noisy",
        make: |rng| {
            let mut host = Host::of(disks(rng, 3, 8.0));
            for disk in &mut host.disks {
                disk.noise = 0.4;
                disk.restless = 0.4;
            }
            host
        },
        change: nothing,
        truth: None,
    },
    Case {
        name: "healthy array",
        make: |rng| array(rng, Level::Zero),
        change: nothing,
        truth: None,
    },
    Case {
        name: "healthy mirror under a check that is gentle",
        make: |rng| array(rng, Level::Ten),
        change: |host, second| {
            if second == 100 {
                host.action = SyncAction::Check;
            }
        },
        truth: None,
    },
    Case {
        name: "a program that sends a fixed rate",
        make: |rng| {
            let mut host = one(rng, 1.0);
            // More requests are due than that, so that each second has exactly as many.
            host.disks[0].demand = Demand::Rate(2000.0);
            host.disks[0].cap = Some(1700.0);
            host.disks[0].noise = 0.1;
            host
        },
        change: nothing,
        truth: None,
    },
    Case {
        name: "load that comes and goes",
        make: |rng| one(rng, 8.0),
        change: |host, second| {
            let low = (second / 40) % 2 == 1;
            host.disks[0].demand = Demand::InFlight(if low { 1.5 } else { 8.0 });
        },
        truth: None,
    },
    Case {
        name: "a fast disk at low load",
        make: |rng| {
            let mut host = one(rng, 1.0);
            host.disks[0].demand = Demand::Rate(40.0);
            host
        },
        change: nothing,
        truth: None,
    },
    Case {
        name: "a low cap that is not reached all the time",
        make: |rng| {
            let mut host = one(rng, 2.0);
            host.disks[0].base_s = 0.02;
            host.disks[0].noise = 0.3;
            host.disks[0].restless = 0.5;
            host
        },
        change: nothing,
        truth: None,
    },
    Case {
        name: "stall of 5 s",
        make: |rng| one(rng, 4.0),
        change: |host, second| host.disks[0].stuck = (100..105).contains(&second),
        truth: Some((EventCode::Stalled, "d0")),
    },
    Case {
        name: "slow member",
        make: |rng| array(rng, Level::Zero),
        change: |host, second| {
            if second == 100 {
                host.disks[1].base_s *= 3.0;
            }
        },
        truth: Some((EventCode::SlowMember, "d1")),
    },
    Case {
        name: "imbalance",
        make: |rng| {
            let mut host = array(rng, Level::Zero);
            host.disks[3].demand = Demand::Rate(1000.0);
            host
        },
        change: |host, _| {
            for disk in &mut host.disks[..3] {
                disk.demand = Demand::Rate(400.0);
            }
        },
        truth: Some((EventCode::Imbalance, "md0")),
    },
    Case {
        name: "cap, seen below it first",
        make: |rng| {
            let mut host = one(rng, 2.0);
            host.disks[0].cap = Some(3000.0);
            host
        },
        change: |host, second| {
            let count = if second < 60 { 1.2 } else { 12.0 };
            host.disks[0].demand = Demand::InFlight(count);
        },
        truth: Some((EventCode::VolumeCap, "d0")),
    },
    Case {
        name: "cap, never seen below it",
        make: |rng| {
            let mut host = one(rng, 16.0);
            host.disks[0].cap = Some(500.0 + 2500.0 * rng.uniform());
            host
        },
        change: nothing,
        truth: Some((EventCode::VolumeCap, "d0")),
    },
    Case {
        name: "cap of the instance",
        make: |rng| {
            let mut host = Host::of(disks(rng, 3, 12.0));
            host.shared_cap = Some(6000.0);
            host
        },
        change: nothing,
        truth: Some((EventCode::InstanceCap, "host")),
    },
    Case {
        name: "burst spent",
        make: |rng| {
            let mut host = one(rng, 12.0);
            host.disks[0].cap = Some(3000.0);
            host
        },
        change: |host, second| {
            if second == 120 {
                host.disks[0].cap = Some(1000.0);
            }
        },
        truth: Some((EventCode::BurstSpent, "d0")),
    },
    Case {
        name: "check that hurts",
        make: |rng| array(rng, Level::Ten),
        change: |host, second| {
            if second == 100 {
                host.action = SyncAction::Check;
                for disk in &mut host.disks {
                    disk.base_s *= 4.0;
                }
            }
        },
        truth: Some((EventCode::ScrubHurts, "md0")),
    },
    Case {
        name: "cold blocks, on a disk seen warm",
        make: |rng| one(rng, 2.0),
        change: |host, second| {
            if second == 100 {
                host.disks[0].cold = (0.6, 0.03);
            }
        },
        truth: Some((EventCode::Cold, "d0")),
    },
    Case {
        name: "cold from the beginning, one read at a time",
        make: |rng| {
            let mut host = one(rng, 1.0);
            host.disks[0].reads = 1.0;
            host.disks[0].cold = (0.8, 0.06);
            host
        },
        change: nothing,
        truth: Some((EventCode::Cold, "d0")),
    },
    Case {
        name: "small requests",
        make: |rng| {
            let mut host = one(rng, 4.0);
            host.disks[0].size = 4096;
            host
        },
        change: nothing,
        truth: Some((EventCode::SmallIo, "d0")),
    },
    Case {
        name: "full queue",
        make: |rng| {
            let mut host = one(rng, 64.0);
            host.disks[0].restless = 0.0;
            host.queue_depth = Some(64);
            host
        },
        change: nothing,
        truth: Some((EventCode::QueueFull, "d0")),
    },
];

/// Shares of the hosts of a case on which its event was found, and on which any event was found that is not a
/// consequence of it.
fn play(case: &Case, trials: usize) -> (f64, f64) {
    let mut wrong = 0;
    let found = share(trials, 11, |rng| {
        let events = (case.make)(rng).play(SECONDS, rng, case.change);
        let is_truth = |event: &WatchEvent| case.truth == Some((event.code, event.name.as_str()));
        let is_found = events.iter().any(is_truth);
        let others = events
            .iter()
            .filter(|event| !is_truth(event) && !follows(case, event));
        wrong += usize::from(others.count() > 0);
        is_found
    });
    (found, wrong as f64 / trials as f64)
}

/// True if `event` is a consequence of the case's cause: spent credit leaves a cap, and a disk at a cap has a full
/// queue.
fn follows(case: &Case, event: &WatchEvent) -> bool {
    matches!(
        (case.truth, event.code),
        (Some((EventCode::BurstSpent, _)), EventCode::VolumeCap)
    )
}

#[test]
fn each_cause_is_found_and_nothing_else() {
    for case in CASES {
        let (found, wrong) = play(&case, TRIALS);
        let least = FOUND - error(FOUND, TRIALS);
        let most = FALSE + error(FALSE, TRIALS);
        assert!(
            case.truth.is_none() || found >= least,
            "{}: found on {found}",
            case.name
        );
        assert!(wrong <= most, "{}: something else on {wrong}", case.name);
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn table_of_events() {
    println!("{:46} found  else", "%");
    for case in CASES {
        let (found, wrong) = play(&case, 400);
        let found = match case.truth {
            Some(_) => format!("{:5.1}", 100.0 * found),
            None => "    -".to_owned(),
        };
        println!("{:46} {found} {:5.1}", case.name, 100.0 * wrong);
        assert!(case.truth.is_none() || found.trim().parse::<f64>().unwrap() >= 100.0 * FOUND);
        assert!(wrong <= FALSE, "{}", case.name);
    }
}
