//! Rates, bursts, merging, and the caps of an instance.

use record::Bytes;

use super::*;

#[test]
fn the_iops_cap_holds_at_every_block_size_and_depth() {
    for block in [512, 4 * KIB, 16 * KIB, 256 * KIB] {
        for depth in [2, 32, 500] {
            let iops = per_second("iops=400:64GiB", random(block, depth), 10);
            assert!(within(iops, 400.0, 0.5), "{block} {depth}: {iops}");
        }
    }
    for cap in [50.0, 3000.0, 64_000.0] {
        let iops = per_second(&format!("iops={cap}:64GiB"), random(4096, 128), 10);
        assert!(within(iops, cap, 2.0), "{cap}: {iops}");
    }
}

#[test]
fn the_throughput_cap_holds_at_every_block_size_and_depth() {
    for block in [4 * KIB, 64 * KIB, 1024 * KIB, 8192 * KIB] {
        for depth in [32, 128] {
            let ops = per_second("throughput=100MiB:64GiB", random(block, depth), 20);
            let mib = ops * block as f64 / Bytes::MIB.0 as f64;
            assert!(within(mib, 100.0, 1.0), "{block} {depth}: {mib}");
        }
    }
}

#[test]
fn both_caps_hold_and_the_tighter_one_shows() {
    // 3,000 of 16 KiB are 47 MiB/s, below the throughput cap; of 256 KiB they would be above it.
    assert!(within(
        per_second("gp3:64GiB", random(16 * KIB, 32), 10),
        3000.0,
        0.5
    ));
    assert!(within(
        per_second("gp3:64GiB", random(256 * KIB, 32), 10),
        500.0,
        0.5
    ));
}

#[test]
fn larger_requests_are_split_by_256_kib() {
    // 1 MiB counts four.
    assert!(within(
        per_second("iops=400:64GiB", random(1024 * KIB, 32), 10),
        100.0,
        1.0
    ));
    assert!(within(
        per_second("iops=400,merge=none:64GiB", random(1024 * KIB, 32), 10),
        400.0,
        1.0
    ));
}

#[test]
fn adjacent_requests_merge_while_they_are_in_flight_together() {
    let sequential = |block, depth| Load {
        sequential: true,
        ..random(block, depth)
    };
    // 64 of 4 KiB make 256 KiB: 400 operations of that are 25,600 requests.
    let merged = per_second("iops=400:64GiB", sequential(4 * KIB, 128), 10);
    assert!(within(merged, 25_600.0, 2.0), "{merged}");
    let alone = per_second("iops=400:64GiB", sequential(4 * KIB, 1), 10);
    assert!(within(alone, 400.0, 1.0), "{alone}");
}

#[test]
fn the_latency_is_as_configured_where_no_cap_is_met() {
    let iops = per_second("latency=1ms,jitter=0.5:64GiB", random(4096, 1), 60);
    assert!(within(iops, 1000.0, 1.0), "{iops}");
    let mut slow = volume("latency=1ms,latency-min=900us:1GiB");
    let fastest = (0..10_000).map(|n| {
        let request = Request {
            kind: RequestKind::Read,
            offset: n * 8192,
            length: 4096,
        };
        slow.admit(Nanos(n * 1_000_000), &request).latency
    });
    assert!(fastest.min().unwrap() >= Nanos(900_000));
}

#[test]
fn gp2_bursts_until_its_credits_are_gone() {
    // 300 IOPS, 3,000 burst, 27,000 credits: (3,000 - 300) a second are spent, for 10 seconds.
    let done = run(
        &mut [volume("gp2,credits=27000:100GiB")],
        &[random(4096, 64)],
        Caps::default(),
        20,
    );
    let (burst, base) = (&done[0][..10], &done[0][11..]);
    assert!(
        burst.iter().all(|ops| within(*ops as f64, 3000.0, 1.0)),
        "{burst:?}"
    );
    assert!(
        base.iter().all(|ops| within(*ops as f64, 300.0, 1.0)),
        "{base:?}"
    );
}

#[test]
fn gp2_credits_are_what_the_documentation_reckons() {
    // EBS: the burst of a full 100 GiB volume lasts 5,400,000 / (3,000 - 300) = 2,000 seconds.
    // A tenth of all rates and credits: the same time, and a tenth of the requests to simulate.
    let spec = "gp2:100GiB".parse::<VolumeGroup>().unwrap().spec;
    let mut gp2 = Volume::new(spec.scaled(0.1), 1);
    let mut now = Nanos(0);
    let mut ops = 0;
    while gp2.credits(now).unwrap() >= 1.0 && ops < 700_000 {
        let request = Request {
            kind: RequestKind::Write,
            offset: (ops % 1000) * 8192,
            length: 4096,
        };
        now = gp2.admit(now, &request).start;
        ops += 1;
    }
    assert!(within(now.as_secs_f64(), 2000.0, 0.1), "{now}");
    assert!(within(ops as f64, 600_000.0, 0.1), "{ops}");
    // Idle for 1,000 seconds it earns 30 a second.
    let later = now + Nanos::from_secs(1000);
    assert!(within(gp2.credits(later).unwrap(), 30_000.0, 0.1));
    // And never more than it began with.
    let much_later = now + Nanos::from_secs(1_000_000);
    assert_eq!(gp2.credits(much_later), Some(540_000.0));
    assert_eq!(volume("gp3:1GiB").credits(now), None);
}

#[test]
fn st1_bursts_until_the_credits_of_its_throughput_are_gone() {
    // 40 MiB/s, 250 in a burst, 2,100 MiB of credits: (250 - 40) a second are spent, for 10 seconds.
    let done = run(
        &mut [volume("st1,throughput-credits=2100MiB:1TiB")],
        &[random(1024 * KIB, 16)],
        Caps::default(),
        20,
    );
    let (burst, base) = (&done[0][1..9], &done[0][11..]);
    assert!(
        burst.iter().all(|mib| within(*mib as f64, 250.0, 1.0)),
        "{burst:?}"
    );
    assert!(
        base.iter().all(|mib| within(*mib as f64, 40.0, 3.0)),
        "{base:?}"
    );
}

#[test]
fn a_small_instance_has_its_most_until_its_credits_are_gone() {
    let caps = Caps {
        iops: Some(1000.0),
        most_iops: Some(3000.0),
        burst: Nanos::from_secs(10),
        ..Caps::default()
    };
    let mut volumes = [volume("iops=2500:64GiB"), volume("iops=2500:64GiB")];
    let done = run(&mut volumes, &[random(4096, 32); 2], caps, 20);
    let sum = |second: usize| (done[0][second] + done[1][second]) as f64;
    assert!(
        (1..9).all(|second| within(sum(second), 3000.0, 1.0)),
        "{done:?}"
    );
    assert!(
        (11..20).all(|second| within(sum(second), 1000.0, 1.0)),
        "{done:?}"
    );
}

#[test]
fn an_instance_cap_is_shared_fairly() {
    let caps = Caps {
        iops: None,
        throughput: Some(Bytes::mib(100)),
        ..Caps::default()
    };
    let mut volumes: Vec<Volume> = (0..4).map(|_| volume("gp3:64GiB")).collect();
    // Deep and shallow queues, large and small blocks: 25 MiB/s each.
    let loads = [
        random(64 * KIB, 8),
        random(64 * KIB, 64),
        random(256 * KIB, 32),
        random(128 * KIB, 32),
    ];
    let done = run(&mut volumes, &loads, caps, 20);
    for (load, done) in loads.iter().zip(&done) {
        let mib = (done.iter().sum::<u64>() * load.block) as f64 / 20.0 / Bytes::MIB.0 as f64;
        assert!(within(mib, 25.0, 2.0), "{mib}");
    }
}

#[test]
fn the_rest_of_the_instance_is_for_the_other_volumes() {
    let caps = Caps {
        iops: Some(1000.0),
        throughput: None,
        ..Caps::default()
    };
    let mut volumes = [
        volume("iops=100:64GiB"),
        volume("gp3:64GiB"),
        volume("gp3:64GiB"),
    ];
    let done = run(&mut volumes, &[random(4096, 32); 3], caps, 20);
    let iops: Vec<f64> = done
        .iter()
        .map(|d| d.iter().sum::<u64>() as f64 / 20.0)
        .collect();
    assert!(within(iops[0], 100.0, 2.0), "{iops:?}");
    assert!(
        within(iops[1], 450.0, 2.0) && within(iops[2], 450.0, 2.0),
        "{iops:?}"
    );
}

proptest::proptest! {
    /// For any requests, time does not go back, and the caps hold over every time range.
    #[test]
    fn caps_hold_over_every_stretch(
        requests in proptest::collection::vec((0_u64..3_000_000, 1_u64..2_000, 0_u64..100_000), 1..200),
    ) {
        let mut volume = volume("iops=500,throughput=10MiB:1GiB");
        let mut now = 0;
        let mut starts: Vec<(u64, u64, u64)> = Vec::new();
        for (gap, length, place) in requests {
            now += gap;
            let request = Request { kind: RequestKind::Read, offset: place * 8192, length: length * 512 };
            let admission = volume.admit(Nanos(now), &request);
            assert!(admission.start.0 >= now);
            starts.push((admission.start.0, admission.ops, admission.bytes));
        }
        starts.sort_unstable();
        for (index, first) in starts.iter().enumerate() {
            let (mut ops, mut bytes) = (0, 0);
            // The last request of a range may leave a debt, so it is not counted.
            for at in &starts[index..] {
                let seconds = (at.0 - first.0) as f64 / 1e9 + 0.005 + 1e-6;
                assert!(ops as f64 <= 500.0 * seconds + 4.0, "{ops} ops in {seconds} s");
                assert!(bytes as f64 <= 10.0 * 1048576.0 * seconds + 1_024_000.0);
                ops += at.1;
                bytes += at.2;
            }
        }
    }
}
