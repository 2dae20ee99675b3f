//! Cold blocks, stalls, slow episodes and errors.

use super::*;

#[test]
fn cold_reads_in_flight_together_take_as_long_as_one() {
    let mut cold = volume("cold=1:1GiB");
    let read = |block: u64, within: u64| Request {
        kind: RequestKind::Read,
        offset: block * 512 * KIB + within,
        length: 4096,
    };
    let mut dues: Vec<Nanos> = Vec::new();
    for block in 0..128 {
        let admission = cold.admit(Nanos(0), &read(block, 0));
        dues.push(cold.due(&admission, admission.start));
    }
    let (first, last) = (*dues.iter().min().unwrap(), *dues.iter().max().unwrap());
    assert!(
        first >= Nanos(20_000_000) && last <= Nanos(82_000_000),
        "{first} {last}"
    );
    assert_eq!(cold.cold_blocks_left(), 2048 - 128);

    // A request that arrives while a block is fetched waits for that fetch; later ones do not wait.
    let during = cold.admit(Nanos(1_000_000), &read(5, 8192));
    assert_eq!(cold.due(&during, during.start), dues[5]);
    let warm = cold.admit(Nanos(SECOND), &read(5, 4096));
    assert!(cold.due(&warm, warm.start) < Nanos(SECOND + 2_000_000));
    assert_eq!(cold.counters().cold_waits, 129);
}

#[test]
fn fetches_together_are_no_faster_than_their_limit_and_scale_with_the_caps() {
    for (scale, seconds) in [(1.0, 1.0), (0.5, 2.0)] {
        let group: VolumeGroup = "cold=1,cold-rate=64MiB,cold-latency=20ms:1GiB"
            .parse()
            .unwrap();
        let mut cold = Volume::new(group.spec.scaled(scale), 1);
        let last = (0..128).map(|block| {
            let request = Request {
                kind: RequestKind::Read,
                offset: block * 512 * KIB,
                length: 4096,
            };
            cold.admit(Nanos(0), &request).ready
        });
        // 64 MiB, and the last fetch.
        let took = last.max().unwrap().as_secs_f64();
        assert!((took - seconds - 0.02).abs() < 0.02, "{took}");
    }
}

#[test]
fn a_write_fetches_only_what_it_does_not_cover() {
    let mut cold = volume("cold=1:1GiB");
    let mut wait = |kind, offset: u64, length: u64| {
        let admission = cold.admit(
            Nanos(0),
            &Request {
                kind,
                offset: offset * KIB,
                length: length * KIB,
            },
        );
        (admission.ready > admission.start, cold.cold_blocks_left())
    };
    assert_eq!(wait(RequestKind::Write, 0, 512), (false, 2047));
    assert_eq!(wait(RequestKind::Write, 512, 4), (true, 2046));
    assert_eq!(wait(RequestKind::Zero, 1024, 1024), (false, 2044));
    assert_eq!(wait(RequestKind::Trim, 2048 + 4, 4), (false, 2044));
    assert_eq!(wait(RequestKind::Trim, 2048 + 4, 1024), (false, 2043));
    // A part of a block on either side of a whole one.
    assert_eq!(wait(RequestKind::Write, 8192 + 256, 1024), (true, 2040));
    assert_eq!(wait(RequestKind::Flush, 0, 0), (false, 2040));
}

#[test]
fn a_share_of_the_blocks_is_cold_and_the_seed_says_which() {
    let cold = |seed| Volume::new("cold=25%:8GiB".parse::<VolumeGroup>().unwrap().spec, seed);
    let left = cold(1).cold_blocks_left();
    assert!(within(left as f64, 4096.0, 6.0), "{left}");
    assert_eq!(left, cold(1).cold_blocks_left());
    assert_ne!(left, cold(2).cold_blocks_left());
}

#[test]
fn nothing_is_answered_in_a_stall_and_no_burst_follows() {
    let mut stalled = [volume("iops=400,stall=3s+1s:64GiB")];
    let done = run(&mut stalled, &[random(4096, 32)], Caps::default(), 6);
    assert_eq!(done[0][3], 0);
    assert!(within(done[0][4] as f64, 400.0, 2.0), "{:?}", done[0]);
    assert_eq!(stalled[0].noise().stalls_begun(Nanos::from_secs(6)), 1);
}

#[test]
fn a_slow_volume_does_less_and_takes_longer() {
    let what = "iops=400,latency=1ms,jitter=0,slow=2s+2s,slow-factor=4:64GiB";
    let done = run(&mut [volume(what)], &[random(4096, 32)], Caps::default(), 6);
    assert!(within(done[0][3] as f64, 100.0, 3.0), "{:?}", done[0]);
    assert!(within(done[0][5] as f64, 400.0, 1.0), "{:?}", done[0]);
    let done = run(&mut [volume(what)], &[random(4096, 1)], Caps::default(), 6);
    assert!(within(done[0][3] as f64, 100.0, 3.0), "{:?}", done[0]);
}

#[test]
fn requests_that_start_in_a_slow_episode_have_its_latency() {
    let mut slow = volume("iops=100,latency=0us,jitter=0,slow=5ms+10s,slow-factor=10:64GiB");
    let mut start = |block: u64| {
        let request = Request {
            kind: RequestKind::Read,
            offset: block << 20,
            length: 4096,
        };
        slow.admit(Nanos(0), &request).start.0 / 1_000_000
    };
    // The second arrives before the episode and starts in it; the third waits for a slow request.
    assert_eq!([start(0), start(2), start(4)], [0, 10, 110]);
}

#[test]
fn episodes_begin_on_command() {
    let mut late = volume("stall=1s+1s:1GiB").paused();
    late.begin(Nanos::from_secs(10));
    let flush = Request {
        kind: RequestKind::Flush,
        offset: 0,
        length: 0,
    };
    assert_eq!(
        late.admit(Nanos(SECOND * 3 / 2), &flush).start,
        Nanos(SECOND * 3 / 2)
    );
    assert_eq!(
        late.admit(Nanos::from_secs(11), &flush).start,
        Nanos::from_secs(12)
    );
}

#[test]
fn a_volume_that_is_held_has_no_troubles_and_stays_cold() {
    let mut held = volume("cold=1,error=all,stall=0s+1h,slow=0s+1h,jitter=0:1GiB").paused();
    let read = Request {
        kind: RequestKind::Read,
        offset: 0,
        length: 4096,
    };
    let (before, after) = (Nanos::from_secs(5), Nanos::from_secs(60));
    let admission = held.admit(before, &read);
    assert_eq!((admission.start, admission.ready), (before, before));
    assert!(!admission.failed && admission.latency < Nanos(1_000_000));
    assert_eq!(held.cold_blocks_left(), 2048);
    assert_eq!(held.noise().stalls_begun(before), 0);

    held.begin(after);
    // A second call of `begin` changes nothing.
    held.begin(after + after);
    let admission = held.admit(after, &read);
    assert_eq!(admission.start, after + Nanos::from_secs(3600));
    assert!(admission.failed);
    assert_eq!(held.cold_blocks_left(), 2047);
    assert_eq!(held.noise().stalls_begun(after), 1);
}

#[test]
fn errors_come_where_and_when_they_were_requested() {
    let mut bad = volume("error=64k+4k,error-on=read,error-after=1s:1MiB");
    let mut fails = |kind, at: u64, offset: u64| {
        bad.admit(
            Nanos(at),
            &Request {
                kind,
                offset: offset * KIB,
                length: 4096,
            },
        )
        .failed
    };
    assert!(!fails(RequestKind::Read, 0, 64));
    assert!(fails(RequestKind::Read, SECOND, 64));
    assert!(fails(RequestKind::Read, SECOND, 61));
    assert!(!fails(RequestKind::Read, SECOND, 60) && !fails(RequestKind::Read, SECOND, 68));
    assert!(!fails(RequestKind::Write, SECOND, 64));

    let mut chance = volume("error-rate=1%:1GiB");
    let request = Request {
        kind: RequestKind::Write,
        offset: 0,
        length: 4096,
    };
    let failed = (0..100_000)
        .filter(|n| chance.admit(Nanos(n * 1000), &request).failed)
        .count();
    assert!(within(failed as f64, 1000.0, 12.0), "{failed}");
    assert_eq!(chance.counters().errors, failed as u64);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let once = || {
        let mut volumes = [volume("gp3,cold=0.5,error-rate=0.01,slow=1s+1s:1GiB")];
        let done = run(&mut volumes, &[random(4096, 16)], Caps::default(), 3);
        (done, volumes[0].counters(), volumes[0].cold_blocks_left())
    };
    assert_eq!(once(), once());
}
