//! Depths found while a volume is read, on simulated volumes with a known best depth.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::depth::verdict::{BindingLimit, KnownCaps, of_one};
use crate::depth::{Bounds, Controller, DepthInterval};
use crate::simulate::Rng;

const MIB: f64 = 1048576.0;
/// The size of a request: a block of a snapshot.
const REQUEST: f64 = 0.5 * MIB;
/// The length of an interval in seconds.
const TICK_S: f64 = 0.1;
/// Size of a cap's token bucket, in seconds of its rate.
const BUCKET_S: f64 = 0.005;

/// A part of the work, with the state of the volume during it.
#[derive(Clone, Copy, Debug)]
struct Part {
    requests: usize,
    /// The cap in requests a second.
    cap: f64,
    /// The share of the requests that is cold.
    cold: f64,
}

/// Rate of requests of 512 KiB that a volume with these caps lets through; each request counts as two operations.
fn cap(iops: f64, mib_per_s: f64) -> f64 {
    (iops / 2.0).min(mib_per_s * MIB / REQUEST)
}

impl Part {
    fn latency_s(&self, rng: &mut Rng) -> f64 {
        if rng.uniform() < self.cold {
            0.02 + 0.06 * rng.uniform()
        } else {
            0.001 * (0.3 * rng.normal()).exp()
        }
    }

    /// Requests in flight that fill the cap, by Little's law.
    fn needed(&self) -> f64 {
        self.cap * (self.cold * 0.05 + (1.0 - self.cold) * 0.001)
    }

    fn ideal_s(&self) -> f64 {
        self.requests as f64 / self.cap
    }
}

/// Disturbances during a run.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// Standard deviation of the wander of the cap, as a share of it; its correlation time is a second.
    wander: f64,
    /// Number of pauses a second in which everything stops, as on a host whose processors others use.
    stalls_per_s: f64,
    /// Mean length of such a pause, in seconds.
    stall_s: f64,
}

const QUIET: Noise = Noise {
    wander: 0.0,
    stalls_per_s: 0.0,
    stall_s: 0.0,
};
/// A shared machine: the cap varies by a tenth, and everything stops for a fiftieth of the time.
const NOISY: Noise = Noise {
    wander: 0.1,
    stalls_per_s: 0.2,
    stall_s: 0.1,
};

/// Result of a run.
struct Run {
    seconds: f64,
    /// Part of the run and wanted depth, at the end of each interval.
    depths: Vec<(usize, usize)>,
    controller: Controller,
}

/// State of the noise during a run.
struct NoiseModel {
    noise: Noise,
    rng: Rng,
    /// Present deviation of the cap, as a share of it.
    off: f64,
    next_stall: f64,
}

impl NoiseModel {
    fn new(noise: Noise, seed: u64) -> NoiseModel {
        let mut noise_model = NoiseModel {
            noise,
            rng: Rng::new(seed ^ 0xbad),
            off: 0.0,
            next_stall: f64::INFINITY,
        };
        noise_model.plan_stall(0.0);
        noise_model
    }

    fn plan_stall(&mut self, from: f64) {
        if self.noise.stalls_per_s > 0.0 {
            self.next_stall = from + self.rng.exponential() / self.noise.stalls_per_s;
        }
    }

    /// Actual time of an event that is due at `time`.
    fn delayed(&mut self, time: f64) -> f64 {
        if time < self.next_stall {
            return time;
        }
        let end = self.next_stall + self.noise.stall_s * self.rng.exponential();
        self.plan_stall(end);
        time.max(end)
    }

    /// Advances by an interval: the cap wanders (an Ornstein-Uhlenbeck process).
    fn tick(&mut self) {
        let memory = (-TICK_S).exp();
        let fresh = (1.0 - memory * memory).sqrt() * self.noise.wander * self.rng.normal();
        self.off = (memory * self.off + fresh).clamp(-0.5, 0.5);
    }
}

/// Reads all parts in turn with the controller's number of requests in flight.
fn run(parts: &[Part], mut controller: Controller, seed: u64, noise: Noise) -> Run {
    let mut rng = Rng::new(seed);
    let mut noise_model = NoiseModel::new(noise, seed);
    let mut work = parts
        .iter()
        .enumerate()
        .flat_map(|(at, part)| std::iter::repeat_n(at, part.requests));
    // Times of completion and of submission, in nanoseconds.
    let mut flying: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let (mut now, mut granted, mut at) = (0.0f64, 0.0f64, 0);
    let mut depths = Vec::new();
    let (mut tick_began, mut done, mut waited, mut area) = (0.0, 0.0, 0.0, 0.0);
    let nanos = |seconds: f64| (seconds * 1e9) as u64;
    loop {
        while flying.len() < controller.depth() {
            let Some(next) = work.next() else { break };
            at = next;
            let cap = parts[at].cap * (1.0 + noise_model.off);
            granted = granted.max(now - BUCKET_S) + 1.0 / cap;
            let done_at = granted.max(now) + parts[at].latency_s(&mut rng);
            flying.push(Reverse((nanos(done_at), nanos(now))));
        }
        let next = flying.peek().map(|Reverse((done, _))| *done as f64 * 1e-9);
        let Some(next) = next else { break };
        let is_tick = next > tick_began + TICK_S;
        let until = noise_model.delayed(now.max(next.min(tick_began + TICK_S)));
        area += (until - now) * flying.len() as f64;
        now = until;
        if !is_tick {
            if let Some(Reverse((_, began))) = flying.pop() {
                done += 1.0;
                waited += now - began as f64 * 1e-9;
            }
            continue;
        }
        let seconds = now - tick_began;
        controller.observe(&DepthInterval {
            seconds,
            in_flight: area / seconds,
            requests: done,
            bytes: done * REQUEST,
            latency_s: waited / f64::max(done, 1.0),
        });
        depths.push((at, controller.depth()));
        noise_model.tick();
        (done, waited, area, tick_began) = (0.0, 0.0, 0.0, now);
    }
    Run {
        seconds: now,
        depths,
        controller,
    }
}

/// The cases, with parts of at least this length in seconds.
fn cases(seconds: f64) -> Vec<(&'static str, Vec<Part>)> {
    let gp3 = cap(3000.0, 125.0);
    let large = cap(16000.0, 1000.0);
    let part = |cap: f64, cold: f64| Part {
        requests: (cap * seconds) as usize,
        cap,
        cold,
    };
    vec![
        ("3,000 IOPS, 125 MiB/s, cold", vec![part(gp3, 1.0)]),
        ("16,000 IOPS, 1,000 MiB/s, cold", vec![part(large, 1.0)]),
        ("125 MiB/s, warm", vec![part(gp3, 0.0)]),
        ("1,000 MiB/s, warm", vec![part(large, 0.0)]),
        ("125 MiB/s, a tenth cold", vec![part(gp3, 0.1)]),
        ("1,000 MiB/s, half cold", vec![part(large, 0.5)]),
        ("cold, then warm", vec![part(large, 1.0), part(large, 0.0)]),
        ("warm, then cold", vec![part(large, 0.0), part(large, 1.0)]),
        ("a burst ends", vec![part(large, 1.0), part(gp3, 1.0)]),
        ("a reader leaves", vec![part(gp3, 1.0), part(large, 1.0)]),
    ]
}

fn controller() -> Controller {
    Controller::new(Bounds::new(4, 512).unwrap(), 32)
}

/// The result of [`judge`].
type Judged = (f64, Vec<(f64, f64)>);

/// Result of a case: the time divided by the ideal, and for each part the median and the maximum depth in its second
/// half, divided by the needed depth (at least the minimum depth).
fn judge(parts: &[Part], seed: u64, noise: Noise) -> Judged {
    let run = run(parts, controller(), seed, noise);
    let ideal: f64 = parts.iter().map(Part::ideal_s).sum();
    let depth_of = |at: usize| {
        let all: Vec<usize> = run
            .depths
            .iter()
            .filter(|d| d.0 == at)
            .map(|d| d.1)
            .collect();
        let mut late = all[all.len() / 2..].to_vec();
        late.sort_unstable();
        let needed = parts[at].needed().max(4.0);
        let over = |depth: usize| depth as f64 / needed;
        (over(late[late.len() / 2]), over(late[late.len() - 1]))
    };
    (
        run.seconds / ideal,
        (0..parts.len()).map(depth_of).collect(),
    )
}

#[test]
fn caps_are_filled_and_no_more() {
    for (name, parts) in cases(120.0) {
        let (time, depths) = judge(&parts, 1, QUIET);
        assert!(time < 1.05, "{name}: {time}");
        for (usual, most) in depths {
            assert!(usual <= 2.1, "{name}: {usual}");
            assert!(most <= 4.0, "{name}: {most}");
        }
    }
}

/// On a shared machine the cap itself wanders, so the time is compared with that of a constant, sufficient depth.
#[test]
fn noise_costs_little_and_does_not_drive_the_depth_up() {
    let gp3 = |cold: f64| Part {
        requests: 60_000,
        cap: cap(3000.0, 125.0),
        cold,
    };
    let by_iops = Part {
        cap: cap(400.0, 125.0),
        ..gp3(1.0)
    };
    for (name, part) in [
        ("by bytes, cold", gp3(1.0)),
        ("by bytes, half cold", gp3(0.5)),
        ("by operations, cold", by_iops),
    ] {
        let (mut time, mut usual) = (0.0, 0.0);
        for seed in 0..8 {
            let enough = Controller::new(Bounds::new(128, 128).unwrap(), 128);
            let best = run(&[part], enough, seed, NOISY).seconds;
            let found = run(&[part], controller(), seed, NOISY).seconds;
            time += found / best / 8.0;
            usual += judge(&[part], seed, NOISY).1[0].0 / 8.0;
        }
        assert!(time < 1.03, "{name}: {time}");
        assert!(usual < 2.5, "{name}: {usual}");
    }
}

/// Only the latency holds the depth back: all that is allowed is used.
#[test]
fn without_a_cap_the_depth_goes_to_its_bound() {
    let part = Part {
        requests: 60_000,
        cap: 1e9,
        cold: 1.0,
    };
    for noise in [QUIET, NOISY] {
        let bounds = Bounds::new(4, 64).unwrap();
        let run = run(&[part], Controller::new(bounds, 16), 3, noise);
        let late = &run.depths[run.depths.len() / 2..];
        let mean = late.iter().map(|d| d.1 as f64).sum::<f64>() / late.len() as f64;
        assert!(mean > 58.0, "{noise:?}: {mean}");
        let ideal = 60_000.0 * 0.05 / 64.0;
        let most = if noise.wander > 0.0 { 1.08 } else { 1.05 };
        assert!(run.seconds < most * ideal, "{noise:?}: {}", run.seconds);
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn table_of_depths() {
    println!(
        "time over the ideal, and in the second half of each part the median and the greatest"
    );
    println!(
        "depth over what is needed; the mean and the worst of 20 runs (of the greatest: the worst)"
    );
    for (seconds, noise) in [
        (16.0, QUIET),
        (60.0, QUIET),
        (600.0, QUIET),
        (16.0, NOISY),
        (60.0, NOISY),
        (600.0, NOISY),
    ] {
        let noisy = if noise.wander > 0.0 { "noisy" } else { "quiet" };
        for (name, parts) in cases(seconds) {
            let runs: Vec<_> = (0..20).map(|seed| judge(&parts, seed, noise)).collect();
            let worst = |of: &dyn Fn(&Judged) -> f64| runs.iter().map(of).fold(0.0, f64::max);
            let mean = |of: &dyn Fn(&Judged) -> f64| runs.iter().map(of).sum::<f64>() / 20.0;
            let most = match seconds {
                ..30.0 => 1.14,
                30.0..120.0 => 1.09,
                _ => 1.04,
            };
            assert!(mean(&|run| run.0) <= most, "{seconds} s {noisy} {name}");
            print!(
                "{seconds:>4} s {noisy} {name:32} time {:.3} {:.3}, depth",
                mean(&|run| run.0),
                worst(&|run| run.0)
            );
            for at in 0..parts.len() {
                print!(
                    " {:.2} {:.2} {:.2};",
                    mean(&|run| run.1[at].0),
                    worst(&|run| run.1[at].0),
                    worst(&|run| run.1[at].1)
                );
            }
            println!();
        }
    }
}

#[test]
fn what_binds_is_named() {
    let part = |cap: f64| Part {
        requests: (cap * 60.0) as usize,
        cap,
        cold: 1.0,
    };
    let binds = |cap: f64, most: usize, caps: KnownCaps| {
        let bounds = Bounds::new(4, most).unwrap();
        let run = run(&[part(cap)], Controller::new(bounds, 8), 2, QUIET);
        of_one(&run.controller, &caps).map(|verdict| verdict.binds)
    };
    let gp3 = KnownCaps {
        bytes_per_s: Some(125.0 * MIB),
        iops: Some(3000.0),
    };
    assert_eq!(binds(250.0, 512, gp3), Some(BindingLimit::VolumeBytes));
    let few = KnownCaps {
        iops: Some(400.0),
        ..gp3
    };
    assert_eq!(binds(200.0, 512, few), Some(BindingLimit::VolumeIops));
    let large = KnownCaps {
        bytes_per_s: Some(1000.0 * MIB),
        iops: Some(16000.0),
    };
    assert_eq!(binds(2000.0, 32, large), Some(BindingLimit::Latency));
    assert_eq!(binds(250.0, 512, large), Some(BindingLimit::Unknown));
}
