//! Error rates on simulated disks with known limits and caches.

use record::Histogram;
use record::random::SplitMix64 as Rng;

use super::cap::{Load, held};
use super::percentile::percentile;
use super::warmth::warmer;

const TRIALS: u64 = 100;
const SLICE_S: f64 = 0.5;

/// A disk that serves requests one after the other, or `servers` at once.
#[derive(Clone, Copy, Debug)]
enum Disk {
    /// A token bucket of `per_s` requests a second in front of a fast disk.
    Capped { per_s: f64 },
    /// A disk without a limit, with its own service times only.
    Own { servers: usize, service_s: f64 },
}

/// A load with `busy` requests in flight, in bursts with pauses in between.
fn recorded(disk: Disk, busy: usize, seed: u64) -> Vec<Load> {
    let mut rng = Rng::of(seed, 1);
    let (mut free, mut tokens) = (vec![0.0_f64; 256], 0.0_f64);
    let mut now = 0.0;
    let mut flights = Vec::new();
    // Idle, busy, idle: closed loop with `busy` clients for 60 s between two quiet spans.
    while now < 30.0 {
        now += 0.02 * rng.exponential();
        flights.push((
            now,
            now + serve(disk, now, &mut free, &mut tokens, &mut rng),
        ));
    }
    let mut clients: Vec<f64> = vec![30.0; busy];
    loop {
        let next = (0..busy)
            .min_by(|a, b| clients[*a].total_cmp(&clients[*b]))
            .unwrap();
        let arrival: f64 = clients[next];
        if arrival > 90.0 {
            break;
        }
        let latency = serve(disk, arrival, &mut free, &mut tokens, &mut rng);
        flights.push((arrival, arrival + latency));
        clients[next] = arrival + latency + 0.0001 * rng.exponential();
    }
    let mut load = vec![
        Load {
            ios: 0.0,
            bytes: 0.0,
            in_flight: 0.0
        };
        (95.0 / SLICE_S) as usize
    ];
    for (from, to) in flights {
        let last = ((to / SLICE_S) as usize).min(load.len() - 1);
        load[last].ios += 1.0;
        load[last].bytes += 16384.0;
        let first = (from / SLICE_S) as usize;
        for (slice, sums) in load.iter_mut().enumerate().take(last + 1).skip(first) {
            let start = slice as f64 * SLICE_S;
            let overlap = to.min(start + SLICE_S) - from.max(start);
            sums.in_flight += overlap.max(0.0) / SLICE_S;
        }
    }
    load
}

/// Latency of a request that arrives now.
fn serve(disk: Disk, now: f64, free: &mut [f64], tokens: &mut f64, rng: &mut Rng) -> f64 {
    match disk {
        Disk::Capped { per_s } => {
            let granted = tokens.max(now);
            *tokens = granted + 1.0 / per_s;
            granted - now + 0.0005 * (0.8 + 0.4 * rng.uniform())
        }
        Disk::Own { servers, service_s } => {
            let server = free[..servers]
                .iter_mut()
                .min_by(|a, b| a.total_cmp(b))
                .unwrap();
            let begins = server.max(now);
            let service = service_s * (0.3 * rng.normal()).exp();
            *server = begins + service;
            *server - now
        }
    }
}

fn share_of(trials: u64, is: impl Fn(u64) -> bool) -> f64 {
    (0..trials).filter(|seed| is(*seed)).count() as f64 / trials as f64
}

#[test]
fn a_recording_at_a_cap_is_distinguished_from_one_at_the_disks_own_speed() {
    for (disk, busy, from, to) in [
        (Disk::Capped { per_s: 3000.0 }, 16, 0.95, 1.0),
        (Disk::Capped { per_s: 500.0 }, 8, 0.95, 1.0),
        // Its clients never reach the limit.
        (Disk::Capped { per_s: 30_000.0 }, 4, 0.0, 0.05),
        (
            Disk::Own {
                servers: 1,
                service_s: 0.0005,
            },
            16,
            0.0,
            0.05,
        ),
        (
            Disk::Own {
                servers: 8,
                service_s: 0.002,
            },
            32,
            0.0,
            0.05,
        ),
        (
            Disk::Own {
                servers: 8,
                service_s: 0.002,
            },
            4,
            0.0,
            0.05,
        ),
    ] {
        let base = match disk {
            Disk::Capped { .. } => 0.0005,
            Disk::Own { service_s, .. } => service_s,
        };
        let share = share_of(20, |seed| {
            held(&recorded(disk, busy, seed), SLICE_S, base).is_some()
        });
        println!(
            "{disk:?} with {busy} in flight: held in {:.1} %",
            100.0 * share
        );
        assert!((from..=to).contains(&share), "{disk:?} {busy}: {share}");
    }
}

#[test]
fn a_recording_that_queues_throughout_is_distinguished_from_a_busy_disk() {
    for (disk, busy, from, to) in [
        (Disk::Capped { per_s: 3000.0 }, 16, 0.95, 1.0),
        (Disk::Capped { per_s: 500.0 }, 8, 0.95, 1.0),
        (
            Disk::Own {
                servers: 1,
                service_s: 0.0005,
            },
            16,
            0.0,
            0.05,
        ),
        (
            Disk::Own {
                servers: 8,
                service_s: 0.002,
            },
            32,
            0.0,
            0.05,
        ),
    ] {
        let share = share_of(40, |seed| {
            // Without the idle periods at its start and end, whose first slices show the latency of a request that
            // does not wait.
            let load = recorded(disk, busy, seed);
            let load = &load[(31.0 / SLICE_S) as usize..(89.0 / SLICE_S) as usize];
            let queued = load
                .iter()
                .map(|slice| slice.in_flight / slice.ios * SLICE_S);
            let base = queued.fold(f64::INFINITY, f64::min);
            held(load, SLICE_S, base).is_some()
        });
        println!(
            "{disk:?} with {busy} throughout: held in {:.1} %",
            100.0 * share
        );
        assert!((from..=to).contains(&share), "{disk:?} {busy}: {share}");
    }
}

#[test]
fn a_level_that_was_passed_elsewhere_is_no_limit() {
    let disk = Disk::Capped { per_s: 500.0 };
    let mut load = recorded(disk, 8, 1);
    assert!(held(&load, SLICE_S, 0.0005).is_some());
    for slice in &mut load[..40] {
        slice.ios = 1.5 * 500.0 * SLICE_S;
        slice.bytes = slice.ios * 16384.0;
    }
    assert_eq!(held(&load, SLICE_S, 0.0005), None);
}

/// Reads on a disk whose cache serves a share of them.
fn reads(count: u64, hits: f64, miss_ns: f64, spread: f64, rng: &mut Rng) -> Histogram {
    let mut latency = Histogram::new();
    for _ in 0..count {
        let (middle, spread) = match rng.uniform() < hits {
            true => (25_000.0, 0.2),
            false => (miss_ns, spread),
        };
        latency.record((middle * (spread * rng.normal()).exp()) as u64);
    }
    latency
}

#[test]
fn a_warmer_cache_is_distinguished_from_a_faster_disk_and_a_wider_spread() {
    // Recorded: hits, miss latency, spread; replayed: the same; range of the share of trials with the finding.
    for (then, now, from, to) in [
        ((0.0, 500e3, 0.3), (0.6, 500e3, 0.3), 0.99, 1.0),
        ((0.2, 500e3, 0.3), (0.5, 400e3, 0.4), 0.99, 1.0),
        ((0.5, 500e3, 0.3), (0.5, 500e3, 0.3), 0.0, 0.02),
        ((0.5, 500e3, 0.3), (0.2, 500e3, 0.3), 0.0, 0.02),
        // Recorded on a disk whose cache is hardly faster than itself.
        ((0.5, 95e3, 0.3), (0.5, 110e3, 0.3), 0.0, 0.02),
        ((0.5, 60e3, 0.3), (0.5, 120e3, 0.3), 0.0, 0.02),
        // A faster disk, and one with a larger spread.
        ((0.0, 500e3, 0.3), (0.0, 90e3, 0.3), 0.0, 0.02),
        ((0.0, 500e3, 0.3), (0.0, 300e3, 0.9), 0.0, 0.02),
        ((0.0, 500e3, 0.3), (0.0, 300e3, 1.4), 0.0, 0.02),
    ] {
        let share = share_of(TRIALS, |seed| {
            let mut rng = Rng::of(seed, 2);
            let mut make = |(hits, miss, spread)| reads(2000, hits, miss, spread, &mut rng);
            let (then, now) = (make(then), make(now));
            warmer(&then, &now).is_some()
        });
        println!("{then:?} then {now:?}: warmer in {:.1} %", 100.0 * share);
        assert!((from..=to).contains(&share), "{then:?} {now:?}: {share}");
    }
}

#[test]
fn intervals_of_percentiles_hold_the_truth_also_where_slow_requests_come_in_bunches() {
    // Lognormal latencies whose median wanders from part to part.
    for wander in [0.0, 0.2] {
        let truth = {
            let mut rng = Rng::of(1, 3);
            let mut all = Histogram::new();
            for _ in 0..400_000 {
                let level = wander * rng.normal();
                all.record((1e5 * (level + 0.5 * rng.normal()).exp()) as u64);
            }
            all.quantile(0.99)
        };
        let covered = share_of(TRIALS, |seed| {
            let mut rng = Rng::of(seed, 4);
            let parts: Vec<Histogram> = (0..30)
                .map(|_| {
                    let level = wander * rng.normal();
                    let mut part = Histogram::new();
                    for _ in 0..1000 {
                        part.record((1e5 * (level + 0.5 * rng.normal()).exp()) as u64);
                    }
                    part
                })
                .collect();
            let (low, high) = percentile(&parts, 0.99).bounds.unwrap();
            (low..=high).contains(&truth)
        });
        println!("wander {wander}: covered {:.1} %", 100.0 * covered);
        assert!(covered > 0.88, "{wander}: {covered}");
    }
}

#[test]
fn there_is_no_interval_of_what_hardly_happened() {
    let mut part = Histogram::new();
    part.record_many(1000, 100);
    let parts = vec![part; 30];
    assert!(percentile(&parts, 0.99).bounds.is_some());
    assert_eq!(percentile(&parts, 0.9999).bounds, None);
    assert_eq!(percentile(&parts[..3], 0.5).bounds, None);
}
