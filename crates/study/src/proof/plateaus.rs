//! Caps, and disks that are none.

use super::{error, share};
use crate::plateau::{self, Throughput};
use crate::simulate::{Disk, Rng};

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

/// The looks of a watch, every 5 s for so long, at a disk: how many there are, and how many see a plateau.
fn looks(disk: Disk, seconds: usize, seed: u64) -> (usize, usize) {
    let tenths = disk.counts(&mut Rng::new(seed), 10 * seconds);
    let counts: Vec<f64> = tenths
        .chunks(10)
        .map(|tenths| tenths.iter().sum())
        .collect();
    let bytes: Vec<f64> = counts.iter().map(|x| x * 16384.0).collect();
    let looks = (0..counts.len() - plateau::LEAST_SLICES_OFTEN).step_by(5);
    let seen = looks.clone().filter(|from| {
        let window = *from..from + plateau::LEAST_SLICES_OFTEN;
        plateau::assess_often(&Throughput {
            ops: &counts[window.clone()],
            bytes: &bytes[window],
            slice_s: 1.0,
            depth: f64::MIN_POSITIVE,
            mean_latency_s: 0.05,
            base_latency_s: None,
        })
        .is_some()
    });
    (looks.len(), seen.count())
}

#[test]
fn a_disk_that_is_looked_at_for_an_hour_is_not_taken_for_capped() {
    // The last one's grants beat with the seconds: a saw of half a minute, which no look tells from a wander.
    for disk in &caps(400.0)[..5] {
        let (all, seen) = looks(*disk, 600, 3);
        assert!(seen as f64 >= 0.9 * all as f64, "{disk:?}: {seen} of {all}");
    }
    let wrong: Vec<(Disk, usize)> = own(400.0)
        .into_iter()
        .map(|disk| (disk, looks(disk, 3600, 4).1))
        .filter(|(_, seen)| *seen > 0)
        .collect();
    assert!(wrong.len() <= 1, "{wrong:?}");
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
