//! Clients in simulated time: each keeps a number of requests in flight, or sends all at once.

mod caps;
mod troubles;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use record::Nanos;

use super::*;
use crate::spec::VolumeGroup;

const KIB: u64 = 1024;
const SECOND: u64 = 1_000_000_000;

fn volume(what: &str) -> Volume {
    let group: VolumeGroup = what.parse().unwrap();
    Volume::new(group.spec, 1)
}

/// Requests of a client.
#[derive(Clone, Copy)]
struct Load {
    kind: RequestKind,
    block: u64,
    depth: u32,
    sequential: bool,
}

const fn random(block: u64, depth: u32) -> Load {
    Load {
        kind: RequestKind::Read,
        block,
        depth,
        sequential: false,
    }
}

/// Runs each load on its volume, followed by one fair queue, and returns the requests completed in each second.
fn run(volumes: &mut [Volume], loads: &[Load], caps: Caps, seconds: u64) -> Vec<Vec<u64>> {
    let mut fair_queue = FairQueue::new(caps, volumes.len());
    let mut random = Random::new(5);
    let mut places = vec![0_u64; volumes.len()];
    let mut done = vec![vec![0; seconds as usize]; volumes.len()];
    let mut events: BinaryHeap<Reverse<(Nanos, usize, bool)>> = BinaryHeap::new();
    for (index, load) in loads.iter().enumerate() {
        events.extend((0..load.depth).map(|_| Reverse((Nanos(0), index, false))));
    }
    loop {
        let next_event = events.peek().map(|e| e.0.0);
        let next_turn = fair_queue.next();
        let now = [next_event, next_turn].into_iter().flatten().min().unwrap();
        if now >= Nanos(seconds * SECOND) {
            return done;
        }
        if next_turn == Some(now) {
            if let Some(passed) = fair_queue.step(now) {
                let (index, admission): (usize, Admission) = passed.what;
                let due = volumes[index].due(&admission, passed.at);
                events.push(Reverse((due, index, true)));
            }
            continue;
        }
        let Reverse((_, index, finished)) = events.pop().unwrap();
        if finished {
            done[index][(now.0 / SECOND) as usize] += 1;
        }
        let load = loads[index];
        let blocks = volumes[index].spec().size.0 / load.block;
        places[index] = match load.sequential {
            true => (places[index] + 1) % blocks,
            false => random.below(blocks),
        };
        let request = Request {
            kind: load.kind,
            offset: places[index] * load.block,
            length: load.block,
        };
        let admission = volumes[index].admit(now, &request);
        if caps.is_open() {
            events.push(Reverse((
                volumes[index].due(&admission, admission.start),
                index,
                true,
            )));
        } else {
            fair_queue.enqueue(
                admission.start,
                index,
                admission.ops,
                admission.bytes,
                (index, admission),
            );
        }
    }
}

fn per_second(what: &str, load: Load, seconds: u64) -> f64 {
    let done = run(&mut [volume(what)], &[load], Caps::default(), seconds);
    done[0].iter().sum::<u64>() as f64 / seconds as f64
}

fn within(value: f64, of: f64, percent: f64) -> bool {
    (value / of - 1.0).abs() <= percent / 100.0
}
