//! A simulated service whose truth is known: each request takes processor time and some I/Os of one disk, which queue.
//! Each run has a tag, a host and a time of its own, and quiet windows at the same hours of three earlier days.

use std::ops::Range;

use record::random::SplitMix64;
use study::watch::EventCode;

use super::world::{DiskMinute, Minute};

/// One thing that happens at the moment, with its strength.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Happening {
    /// Each request sleeps for so many ms more.
    Sleep(f64),
    /// So many times the I/Os of a request.
    MoreIo(f64),
    /// So many times the processor time of a request.
    MoreCpu(f64),
    /// So many times the requests.
    MoreLoad(f64),
    /// The disk gives so many times the IOPS that are usual.
    Cap(f64),
    /// The disk answers nothing for seconds, again and again.
    Stalls,
    /// A check of the array beside: so many times the latency.
    Scrub(f64),
    /// So many times the I/Os, and evictions of the cache.
    Evictions(f64),
}

/// A kind of run.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) happens: fn(&mut Dice) -> Vec<Happening>,
    pub(crate) marked: bool,
    pub(crate) truth: &'static str,
}

pub(crate) const SCENARIOS: [Scenario; 11] = [
    Scenario {
        name: "release that sleeps",
        happens: |dice| vec![Happening::Sleep(5.0 + 30.0 * dice.share())],
        marked: true,
        truth: "code",
    },
    Scenario {
        name: "release with N+1 queries",
        happens: |dice| {
            let more_io = Happening::MoreIo(1.6 + 0.6 * dice.share());
            vec![more_io, Happening::MoreCpu(1.0 + 0.4 * dice.share())]
        },
        marked: true,
        truth: "code",
    },
    Scenario {
        name: "release that lost an index",
        happens: |dice| {
            vec![
                Happening::MoreCpu(1.7 + 0.3 * dice.share()),
                Happening::MoreIo(1.4),
            ]
        },
        marked: true,
        truth: "code",
    },
    Scenario {
        name: "more load",
        happens: |dice| vec![Happening::MoreLoad(1.4 + 0.3 * dice.share())],
        marked: false,
        truth: "load",
    },
    Scenario {
        name: "capped disk",
        happens: |dice| vec![Happening::Cap(0.75 + 0.15 * dice.share())],
        marked: false,
        truth: "system",
    },
    Scenario {
        name: "capped disk at a release that changes nothing",
        happens: |dice| vec![Happening::Cap(0.75 + 0.15 * dice.share())],
        marked: true,
        truth: "system",
    },
    Scenario {
        name: "disk that stalls",
        happens: |_| vec![Happening::Stalls],
        marked: false,
        truth: "system",
    },
    Scenario {
        name: "scrub",
        happens: |dice| vec![Happening::Scrub(1.6 + dice.share())],
        marked: false,
        truth: "system",
    },
    Scenario {
        name: "cache too small",
        happens: |dice| vec![Happening::Evictions(1.5 + 0.6 * dice.share())],
        marked: false,
        truth: "system",
    },
    Scenario {
        name: "release and capped disk",
        happens: |dice| {
            vec![
                Happening::MoreIo(1.6 + 0.4 * dice.share()),
                Happening::Cap(0.8),
            ]
        },
        marked: true,
        truth: "several",
    },
    Scenario {
        name: "nothing, at a release",
        happens: |_| Vec::new(),
        marked: true,
        truth: "nothing-changed",
    },
];

/// Chance, from a seed.
pub(crate) struct Dice(SplitMix64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(SplitMix64::new(seed))
    }

    /// A number from 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        self.0.uniform()
    }

    fn normal(&mut self) -> f64 {
        self.0.normal()
    }
}

/// Noise that keeps a share of what it was.
struct Wander(f64);

impl Wander {
    fn next(&mut self, memory: f64, dice: &mut Dice) -> f64 {
        self.0 = memory * self.0 + (1.0 - memory * memory).sqrt() * dice.normal();
        self.0
    }
}

/// Time in a queue and its server at a load; beyond 1, the queue of a minute.
fn queued(service_ms: f64, load: f64) -> f64 {
    service_ms / (1.0 - load.min(0.97)) + service_ms * 200.0 * (load - 0.97).max(0.0)
}

/// A minute of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    pub(crate) service: Minute,
    pub(crate) disk: DiskMinute,
    pub(crate) evictions: f64,
}

/// Minutes of a run, of which those from `moment` on are changed.
pub(crate) fn play(
    happens: &[Happening],
    minutes: Range<i64>,
    moment: i64,
    dice: &mut Dice,
) -> Vec<Slot> {
    const RATE: f64 = 200.0;
    const IOS: f64 = 4.0;
    const IO_MS: f64 = 0.6;
    let (mut of_rate, mut of_time, mut of_disk) = (Wander(0.0), Wander(0.0), Wander(0.0));
    let found = happens.iter().find_map(code).filter(|_| dice.share() < 0.7);
    let mut slot = |minute: i64| {
        let hour = std::f64::consts::TAU * minute.rem_euclid(1440) as f64 / 1440.0;
        let mut rate = RATE * (1.0 + 0.15 * hour.sin()) * (0.05 * of_rate.next(0.7, dice)).exp();
        let (mut ios, mut cpu, mut sleep, mut slower) = (IOS, 4.0, 0.0, 1.0);
        let (mut stalls, mut evictions, mut limit) = (0.0, 20.0, f64::INFINITY);
        for one in happens.iter().filter(|_| minute >= moment) {
            match *one {
                Happening::Sleep(ms) => sleep += ms,
                Happening::MoreIo(factor) => ios *= factor,
                Happening::MoreCpu(factor) => cpu *= factor,
                Happening::MoreLoad(factor) => rate *= factor,
                Happening::Cap(share) => limit = share * RATE * IOS,
                Happening::Stalls => stalls = if minute % 3 == 0 { 4.0 } else { 1.0 },
                Happening::Scrub(factor) => slower *= factor,
                Happening::Evictions(factor) => {
                    ios *= factor;
                    evictions *= 8.0;
                }
            }
        }
        let asked = rate * ios;
        let iops = asked.min(limit);
        // Beyond the limit requests wait in the service's pool: the disk's queue is of bounded length.
        let over = (asked / limit - 0.85).max(0.0);
        let busy = (iops * IO_MS * slower / 1000.0).min(0.99);
        let noise = (0.08 * of_disk.next(0.5, dice)).exp();
        let io_ms = (queued(IO_MS * slower, busy) + 40.0 * over) * noise * (1.0 + 5.0 * stalls);
        let cpu_ms = queued(cpu, rate * cpu / 2000.0);
        let mean = (cpu_ms + sleep + ios * io_ms) * (0.05 * of_time.next(0.5, dice)).exp();
        let is_found = found.is_some() && minute >= moment + 2;
        Slot {
            service: Minute {
                requests: (rate * 60.0).round(),
                p50_ms: 0.7 * mean * (0.02 * dice.normal()).exp(),
                tail: 6.0 * (0.05 * dice.normal()).exp() * if stalls > 0.0 { 2.0 } else { 1.0 },
            },
            disk: DiskMinute {
                iops: iops * (0.01 * dice.normal()).exp(),
                await_ms: io_ms,
                busy,
                finding: found.filter(|_| is_found),
            },
            evictions: evictions * (0.3 * dice.normal()).exp(),
        }
    };
    minutes.map(&mut slot).collect()
}

/// The code of the finding that a happening has.
fn code(happening: &Happening) -> Option<EventCode> {
    match happening {
        Happening::Cap(_) => Some(EventCode::VolumeCap),
        Happening::Stalls => Some(EventCode::Stalled),
        Happening::Scrub(_) => Some(EventCode::ScrubHurts),
        _ => None,
    }
}
