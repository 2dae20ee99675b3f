//! A simulated service with known causes. A request takes processor time, which queues, and some I/Os of one disk, one
//! after the other, which queue too. The rate follows the hour and wanders; response times of a minute scatter around
//! those of the queues, with autocorrelation. The tests of `serve` use it too.

use record::random::SplitMix64 as Rng;

/// Minutes of a day.
const DAY: i64 = 1440;

/// An event at the moment, with its strength.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// Each request sleeps for this many additional milliseconds.
    Sleep(f64),
    /// The I/Os of each request are multiplied by this factor.
    MoreIo(f64),
    /// The processor time of each request is multiplied by this factor.
    MoreCpu(f64),
    /// The number of requests is multiplied by this factor.
    MoreLoad(f64),
    /// The disk's limit falls to this multiple of the load.
    Cap(f64),
    /// The disk repeatedly completes nothing for some seconds of a minute.
    Stalls,
    /// A check of the array runs at the same time, and multiplies the latency by this factor.
    Scrub(f64),
    /// The cache is too small, which multiplies the I/Os by this factor, and evicts.
    Evictions(f64),
}

/// A kind of run, and its right conclusion.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) events: fn(&mut Rng) -> Vec<Event>,
    pub(crate) marked: bool,
    pub(crate) truth: &'static str,
}

pub(crate) const SCENARIOS: [Scenario; 11] = [
    Scenario {
        name: "release that sleeps",
        events: |rng| vec![Event::Sleep(5.0 + 30.0 * rng.uniform())],
        marked: true,
        truth: "code",
    },
    Scenario {
        name: "release with N+1 queries",
        events: |rng| {
            let factor = 1.6 + 0.6 * rng.uniform();
            vec![
                Event::MoreIo(factor),
                Event::MoreCpu(1.0 + 0.4 * rng.uniform()),
            ]
        },
        marked: true,
        truth: "code",
    },
    Scenario {
        name: "release that lost an index",
        events: |rng| {
            vec![
                Event::MoreCpu(1.7 + 0.3 * rng.uniform()),
                Event::MoreIo(1.4),
            ]
        },
        marked: true,
        truth: "code",
    },
    Scenario {
        name: "more load",
        events: |rng| vec![Event::MoreLoad(1.4 + 0.3 * rng.uniform())],
        marked: false,
        truth: "load",
    },
    Scenario {
        name: "capped disk",
        events: |rng| vec![Event::Cap(0.75 + 0.15 * rng.uniform())],
        marked: false,
        truth: "system",
    },
    Scenario {
        name: "capped disk at a release that changes nothing",
        events: |rng| vec![Event::Cap(0.75 + 0.15 * rng.uniform())],
        marked: true,
        truth: "system",
    },
    Scenario {
        name: "disk that stalls",
        events: |_| vec![Event::Stalls],
        marked: false,
        truth: "system",
    },
    Scenario {
        name: "scrub",
        events: |rng| vec![Event::Scrub(1.6 + rng.uniform())],
        marked: false,
        truth: "system",
    },
    Scenario {
        name: "cache too small",
        events: |rng| vec![Event::Evictions(1.5 + 0.6 * rng.uniform())],
        marked: false,
        truth: "system",
    },
    Scenario {
        name: "release and capped disk",
        events: |rng| vec![Event::MoreIo(1.6 + 0.4 * rng.uniform()), Event::Cap(0.8)],
        marked: true,
        truth: "several",
    },
    Scenario {
        name: "nothing, at a release",
        events: |_| Vec::new(),
        marked: true,
        truth: "nothing-changed",
    },
];

/// Autoregressive noise.
#[derive(Default)]
struct AutoregressiveNoise(f64);

impl AutoregressiveNoise {
    fn next(&mut self, memory: f64, rng: &mut Rng) -> f64 {
        self.0 = memory * self.0 + (1.0 - memory * memory).sqrt() * rng.normal();
        self.0
    }
}

/// Time in a queue and its server for a load below 1; beyond it, the queue of a minute.
fn queued(service_ms: f64, load: f64) -> f64 {
    service_ms / (1.0 - load.min(0.97)) + service_ms * 200.0 * (load - 0.97).max(0.0)
}

/// Means of a minute of the service and its disk.
pub(crate) struct Minute {
    pub(crate) rate: f64,
    pub(crate) mean_ms: f64,
    pub(crate) has_stalls: bool,
    pub(crate) iops: f64,
    pub(crate) io_ms: f64,
    pub(crate) busy: f64,
    pub(crate) evictions: f64,
}

/// State of the simulated service: how its rate, times and disk wander.
#[derive(Default)]
pub(crate) struct Service {
    of_rate: AutoregressiveNoise,
    of_time: AutoregressiveNoise,
    of_disk: AutoregressiveNoise,
}

impl Service {
    /// The next minute of the service, during these events.
    pub(crate) fn next(&mut self, minute: i64, events: &[Event], rng: &mut Rng) -> Minute {
        const RATE: f64 = 200.0;
        const CPU_MS: f64 = 4.0;
        const CORES: f64 = 2.0;
        const IO_MS: f64 = 0.6;
        const IOS: f64 = 4.0;
        const CHANNELS: f64 = 1.0;
        let hour = std::f64::consts::TAU * minute.rem_euclid(DAY) as f64 / DAY as f64;
        let mut rate =
            RATE * (1.0 + 0.15 * hour.sin()) * (0.05 * self.of_rate.next(0.7, rng)).exp();
        let (mut ios, mut cpu, mut sleep) = (IOS, CPU_MS, 0.0);
        let (mut slower, mut stalls, mut evictions) = (1.0, 0.0, 20.0);
        let mut limit = f64::INFINITY;
        for event in events {
            match *event {
                Event::Sleep(ms) => sleep += ms,
                Event::MoreIo(factor) => ios *= factor,
                Event::MoreCpu(factor) => cpu *= factor,
                Event::MoreLoad(factor) => rate *= factor,
                Event::Cap(share) => limit = share * RATE * IOS,
                Event::Stalls => stalls = if minute % 3 == 0 { 4.0 } else { 1.0 },
                Event::Scrub(factor) => slower *= factor,
                Event::Evictions(factor) => {
                    ios *= factor;
                    evictions *= 8.0;
                }
            }
        }
        let asked = rate * ios;
        let iops = asked.min(limit);
        // Requests beyond the limit wait in the service's pool, so that the disk has a queue of bounded length.
        let over = (asked / limit - 0.85).max(0.0);
        let busy = (iops * IO_MS * slower / 1000.0 / CHANNELS).min(0.99);
        let noise = (0.08 * self.of_disk.next(0.5, rng)).exp();
        let io_ms = (queued(IO_MS * slower, busy) + 40.0 * over) * noise * (1.0 + 5.0 * stalls);
        let cpu_ms = queued(cpu, rate * cpu / 1000.0 / CORES);
        Minute {
            rate,
            mean_ms: (cpu_ms + sleep + ios * io_ms) * (0.05 * self.of_time.next(0.5, rng)).exp(),
            has_stalls: stalls > 0.0,
            iops,
            io_ms,
            busy,
            evictions,
        }
    }
}
