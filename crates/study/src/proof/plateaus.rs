//! Caps, and disks that are none.

use super::{error, share};
use crate::plateau::{self, Throughput};
use crate::simulate::Disk;

/// The share of phases of `slices` on `disk` that show a plateau, with 20 in flight and requests of
/// one size.
fn plateaus(disk: Disk, slices: usize, trials: usize) -> f64 {
    share(trials, 6, |rng| {
        let ops = disk.counts(rng, slices);
        let bytes: Vec<f64> = ops.iter().map(|x| x * 16384.0).collect();
        let rate = ops.iter().sum::<f64>() / (0.1 * slices as f64);
        let base = disk.base_latency_s();
        let phase = Throughput {
            ops: &ops,
            bytes: &bytes,
            slice_s: 0.1,
            depth: 20.0,
            mean_latency_s: 20.0 / rate,
            base_latency_s: Some(base),
        };
        plateau::assess(&phase).is_some()
    })
}

/// Caps at `rate` a second: smooth, jittered, and granted by the clock in step and out of step with
/// the slices.
fn caps(rate: f64) -> [Disk; 6] {
    [
        (0.0, 0.0),
        (0.0, 0.0002),
        (0.0, 0.02),
        (0.01, 0.0),
        (0.1, 0.001),
        (0.1003, 0.0),
    ]
    .map(|(grant_s, jitter_s)| Disk::Cap {
        rate,
        grant_s,
        jitter_s,
    })
}

/// Disks limited by their own service at `rate` a second, on a quiet host and on a noisy one.
fn own(rate: f64) -> Vec<Disk> {
    let mut disks = Vec::new();
    for cv in [0.1, 0.3, 1.0] {
        for count in [1, 4, 20] {
            for (wander, memory) in [(0.0, 0.0), (0.01, 0.0), (0.02, 0.8)] {
                disks.push(Disk::Servers {
                    count,
                    service_s: count as f64 / rate,
                    cv,
                    wander,
                    memory,
                });
            }
        }
    }
    disks
}

#[test]
fn caps_are_seen_and_disks_are_not() {
    let trials = 60;
    // 125 a second is 125 MiB/s of 1 MiB requests.
    for rate in [125.0, 400.0, 3000.0] {
        for slices in [50, 80] {
            for disk in caps(rate) {
                let seen = plateaus(disk, slices, trials);
                assert!(
                    seen >= 0.95 - error(0.95, trials),
                    "{disk:?} {slices}: {seen}"
                );
            }
            for disk in own(rate) {
                let seen = plateaus(disk, slices, trials);
                assert!(
                    seen <= 0.02 + error(0.02, trials),
                    "{disk:?} {slices}: {seen}"
                );
            }
        }
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn table_of_plateaus() {
    println!("% called a plateau");
    for rate in [125.0, 400.0, 3000.0, 16000.0] {
        for disk in caps(rate).into_iter().chain(own(rate)) {
            let row = [30, 50, 80]
                .map(|slices| format!("{slices}: {:5.1}", 100.0 * plateaus(disk, slices, 300)));
            println!("{:100} {}", format!("{disk:?}"), row.join(" "));
        }
    }
}
