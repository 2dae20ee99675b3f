//! Depths found while a volume is read, on simulated volumes whose best depth is known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::depth::verdict::{Binds, Caps, of_one};
use crate::depth::{Bounds, Controller, Interval};
use crate::simulate::Rng;

const MIB: f64 = 1048576.0;
/// The size of a request: a block of a snapshot.
const REQUEST: f64 = 0.5 * MIB;
/// The length of an interval in seconds.
const TICK_S: f64 = 0.1;
/// A cap's bucket holds this much of its rate, in seconds.
const BUCKET_S: f64 = 0.005;

/// A part of the work, with what the volume is like while it is done.
#[derive(Clone, Copy, Debug)]
struct Part {
    requests: usize,
    /// The cap in requests a second.
    cap: f64,
    /// The share of the requests that is cold.
    cold: f64,
}

/// What a volume with these caps lets through of requests of 512 KiB, each of which counts twice.
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

/// How a run went.
struct Run {
    seconds: f64,
    /// At the end of each interval: the part it was in, and the depth wanted.
    depths: Vec<(usize, usize)>,
    controller: Controller,
}

/// Reads all parts in turn with as many in flight as the controller wants.
fn run(parts: &[Part], mut controller: Controller, seed: u64) -> Run {
    let mut rng = Rng::new(seed);
    let mut work = parts
        .iter()
        .enumerate()
        .flat_map(|(at, part)| std::iter::repeat_n(at, part.requests));
    // Completions in nanoseconds, with the nanosecond of their start.
    let mut flying: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let (mut now, mut granted, mut at) = (0.0f64, 0.0f64, 0);
    let mut depths = Vec::new();
    let (mut tick_end, mut done, mut waited, mut area) = (TICK_S, 0.0, 0.0, 0.0);
    let nanos = |seconds: f64| (seconds * 1e9) as u64;
    loop {
        while flying.len() < controller.depth() {
            let Some(next) = work.next() else { break };
            at = next;
            granted = granted.max(now - BUCKET_S) + 1.0 / parts[at].cap;
            let done_at = granted.max(now) + parts[at].latency_s(&mut rng);
            flying.push(Reverse((nanos(done_at), nanos(now))));
        }
        let next = flying.peek().map(|Reverse((done, _))| *done as f64 * 1e-9);
        let Some(next) = next else { break };
        let until = next.min(tick_end);
        area += (until - now).max(0.0) * flying.len() as f64;
        now = now.max(until);
        if next <= tick_end {
            if let Some(Reverse((ended, began))) = flying.pop() {
                done += 1.0;
                waited += (ended - began) as f64 * 1e-9;
            }
            continue;
        }
        controller.observe(&Interval {
            seconds: TICK_S,
            in_flight: area / TICK_S,
            requests: done,
            bytes: done * REQUEST,
            latency_s: waited / f64::max(done, 1.0),
        });
        depths.push((at, controller.depth()));
        (done, waited, area) = (0.0, 0.0, 0.0);
        tick_end += TICK_S;
    }
    Run {
        seconds: now,
        depths,
        controller,
    }
}

/// The cases, with parts that take so many seconds each at best.
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
    Controller::new(Bounds::new(4, 512).unwrap(), 8)
}

/// See [`judge`].
type Judged = (f64, Vec<(f64, f64)>);

/// What a case came to: the time over the ideal, and for each part the median depth in its second
/// half and the greatest there, over what is needed (at least the least depth).
fn judge(parts: &[Part], seed: u64) -> Judged {
    let run = run(parts, controller(), seed);
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
        let (time, depths) = judge(&parts, 1);
        assert!(time < 1.05, "{name}: {time}");
        for (usual, most) in depths {
            assert!(usual <= 2.1, "{name}: {usual}");
            assert!(most <= 4.0, "{name}: {most}");
        }
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn table_of_depths() {
    println!(
        "time over the ideal, and in the second half of each part the median and the greatest"
    );
    println!("depth over what is needed; the worst of 20 runs");
    for seconds in [60.0, 120.0, 600.0] {
        for (name, parts) in cases(seconds) {
            let runs: Vec<_> = (0..20).map(|seed| judge(&parts, seed)).collect();
            let worst = |of: &dyn Fn(&Judged) -> f64| runs.iter().map(of).fold(0.0, f64::max);
            print!(
                "{seconds:>4} s {name:32} time {:.3}, depth",
                worst(&|run| run.0)
            );
            for at in 0..parts.len() {
                print!(
                    " {:.2} {:.2};",
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
    let binds = |cap: f64, most: usize, caps: Caps| {
        let bounds = Bounds::new(4, most).unwrap();
        let run = run(&[part(cap)], Controller::new(bounds, 8), 2);
        of_one(&run.controller, &caps).map(|verdict| verdict.binds)
    };
    let gp3 = Caps {
        bytes_per_s: Some(125.0 * MIB),
        iops: Some(3000.0),
    };
    assert_eq!(binds(250.0, 512, gp3), Some(Binds::VolumeBytes));
    let few = Caps {
        iops: Some(400.0),
        ..gp3
    };
    assert_eq!(binds(200.0, 512, few), Some(Binds::VolumeIops));
    let large = Caps {
        bytes_per_s: Some(1000.0 * MIB),
        iops: Some(16000.0),
    };
    assert_eq!(binds(2000.0, 32, large), Some(Binds::Latency));
    assert_eq!(binds(250.0, 512, large), Some(Binds::Unknown));
}
