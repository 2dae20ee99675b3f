//! Replays on simulated volumes, in virtual time.

mod conclusions;

use std::fs::File;
use std::sync::atomic::AtomicBool;

use engine::list::Op as Made;
use engine::list::simulated::{SimulatedVolume, VolumeModel};
use engine::{Control, IoInterface, Observer};
use record::{Bytes, Nanos, OffsetMap, Pace, ReplaySettings, Window};
use trace::{DeviceIndex, Io};

use crate::answer::ReplayAnswer;
use crate::testing::{flush, opener, read, took, write};
use crate::{Disk, Played, play, survey, views};

/// An observer that only counts windows.
#[derive(Default)]
struct Unseen {
    windows: usize,
}

impl Observer for Unseen {
    fn window(&mut self, _: &mut Window) -> Control {
        self.windows += 1;
        Control::Continue
    }
}

fn settings(pace: Pace) -> ReplaySettings {
    ReplaySettings {
        pace,
        speed: 1.0,
        depth: 64,
        map: OffsetMap::Exact,
        reads_only: false,
        discards: false,
        compressible: 0.0,
    }
}

/// A warm volume that accepts every request at once and completes it after `latency_us` microseconds.
fn volume(latency_us: u64) -> SimulatedVolume {
    SimulatedVolume::new(VolumeModel {
        iops: 1e9,
        bytes_per_s: 1e15,
        latency: Nanos(latency_us * 1000),
        cold_latency: Nanos(0),
        fetches: 1 << 20,
        ..VolumeModel::cold(Bytes::gib(1))
    })
}

fn replayed(ios: Vec<Io>, devices: u16, settings: ReplaySettings, on: &SimulatedVolume) -> Played {
    let open = opener(ios, devices);
    let interrupt = AtomicBool::new(false);
    let known = survey(&open, "memory", None, settings.map, &interrupt).unwrap();
    let file = File::open("/dev/null").unwrap();
    let disk = Disk {
        file: &file,
        path: "/dev/null",
        size: Bytes::gib(1),
        alignment: Bytes(512),
    };
    let disks = vec![disk; known.devices.len()];
    let (interface, mut unseen) = (IoInterface::Auto, Unseen::default());
    play(
        on,
        &open,
        &known,
        &disks,
        settings,
        interface,
        1,
        &interrupt,
        &mut unseen,
    )
    .unwrap()
}

/// Times of issue in microseconds since the first.
fn issues(volume: &SimulatedVolume) -> Vec<u64> {
    let made = volume.requests();
    made.iter()
        .map(|one| (one.began - made[0].began).0 / 1000)
        .collect()
}

#[test]
fn each_io_is_issued_at_its_recorded_time_whatever_became_of_earlier_ones() {
    let times = [0, 10, 10, 500, 503, 40_000];
    let ios: Vec<Io> = times
        .iter()
        .map(|at| took(read(1_000_000 + at, 4096 * at, 4096), 100))
        .collect();
    for (speed, latency) in [(1.0, 50), (2.0, 50), (1.0, 30_000)] {
        let volume = volume(latency);
        let settings = ReplaySettings {
            speed,
            ..settings(Pace::Recorded)
        };
        let played = replayed(ios.clone(), 1, settings, &volume);
        let expected: Vec<u64> = times.iter().map(|at| (*at as f64 / speed) as u64).collect();
        assert_eq!(issues(&volume), expected);
        let replay = &played.replay;
        assert_eq!((replay.lateness.count(), replay.lateness.max()), (6, 0));
        assert_eq!(replay.classes[0].all().max() / 1000, latency);
        assert_eq!(replay.classes[0].recorded.max(), 100_000);
    }
}

#[test]
fn what_a_full_depth_delays_is_late_and_its_wait_is_in_the_latency() {
    let ios: Vec<Io> = (0..8).map(|at| read(at, at * 4096, 4096)).collect();
    let volume = volume(1000);
    let limited = ReplaySettings {
        depth: 1,
        ..settings(Pace::Recorded)
    };
    let played = replayed(ios, 1, limited, &volume);
    // One at a time, 1 ms each: the last was due at 7 us and issued at 7 ms.
    assert_eq!(
        issues(&volume),
        (0..8).map(|at| at * 1000).collect::<Vec<_>>()
    );
    let replay = &played.replay;
    let late = replay.lateness.max() / 1000;
    assert!((6980..=7000).contains(&late), "{late}");
    let slowest = replay.classes[0].all().max() / 1000;
    assert!((7960..=8020).contains(&slowest), "{slowest}");
    assert_eq!(replay.classes[0].service.max() / 1000, 1000);
    // All but the first, and the second, which is late by less than 1 ms.
    assert_eq!(replay.counts.full, 6);
}

#[test]
fn a_slower_disk_slows_a_chain_by_its_dependencies_and_keeps_think_times() {
    // 100 us of I/O, and 30 us of thought, ten times.
    let ios: Vec<Io> = (0..10)
        .map(|n| took(read(n * 130, n * 4096, 4096), 100))
        .collect();
    for (speed, latency, step) in [(1.0, 1000, 1030), (1.0, 20, 50), (2.0, 1000, 1015)] {
        let volume = volume(latency);
        let settings = ReplaySettings {
            speed,
            ..settings(Pace::Dependencies)
        };
        replayed(ios.clone(), 1, settings, &volume);
        let expected: Vec<u64> = (0..10).map(|n| n * step).collect();
        assert_eq!(issues(&volume), expected);
    }
}

#[test]
fn what_comes_long_after_a_completion_keeps_its_distance_and_two_clients_go_on_beside_each_other() {
    let mut ios = Vec::new();
    for n in 0..5 {
        ios.push(took(read(n * 300_000, 4096, 4096), 100));
        ios.push(took(write(n * 300_000 + 10, 8192, 4096), 100));
        ios.push(took(flush(n * 300_000 + 150), 50));
    }
    let volume = volume(1000);
    let played = replayed(ios, 1, settings(Pace::Dependencies), &volume);
    // The flush came 40 us after the write had completed, and the next read 299,800 us after the flush had.
    let cycle = 10 + 1000 + 40 + 1000 + 299_800;
    let expected: Vec<u64> = (0..5)
        .flat_map(|n| [0, 10, 10 + 1000 + 40].map(|at| n * cycle + at))
        .collect();
    assert_eq!(issues(&volume), expected);
    assert_eq!(played.replay.lateness.max(), 0);
    assert_eq!(played.phase.commit.as_ref().map(|flow| flow.ops), Some(5));
}

#[test]
fn a_thread_does_not_wait_for_the_reads_of_another() {
    let of = |thread, io| Io {
        thread: Some(thread),
        ..io
    };
    // A read that took as long as fifty reads of another thread, and the one after it.
    let beside = |n: u64| of(2, took(read(10 + n * 130, n * 4096, 4096), 100));
    let mut ios = vec![of(1, took(read(0, 0, 4096), 10_000))];
    ios.extend((0..50).map(beside));
    ios.push(of(1, took(read(10_030, 1 << 29, 4096), 100)));
    let volume = volume(20);
    replayed(ios, 1, settings(Pace::Dependencies), &volume);
    let made = volume.requests();
    let next = made.iter().find(|one| one.request.offset == 1 << 29);
    let at = next.map(|one| (one.began - made[0].began).0 / 1000);
    assert_eq!(at, Some(20 + 30));
}

#[test]
fn asap_keeps_the_order_and_the_depth() {
    let ios: Vec<Io> = (0..40)
        .map(|n| read(n * 1_000_000, n * 4096, 4096))
        .collect();
    let volume = volume(1000);
    let settings = ReplaySettings {
        depth: 4,
        ..settings(Pace::Asap)
    };
    let played = replayed(ios, 1, settings, &volume);
    let made = volume.requests();
    assert!(
        made.windows(2)
            .all(|pair| pair[0].request.offset < pair[1].request.offset)
    );
    let expected: Vec<u64> = (0..40).map(|n| n / 4 * 1000).collect();
    assert_eq!(issues(&volume), expected);
    assert!(
        (0.009..0.013).contains(&played.phase.seconds),
        "{}",
        played.phase.seconds
    );
}

#[test]
fn operations_and_devices_arrive_as_recorded_and_what_is_left_out_is_counted() {
    let fua = Io {
        fua: true,
        ..write(3, 4096, 4096)
    };
    let other = Io {
        device: DeviceIndex(1),
        ..read(5, 0, 4096)
    };
    let discard = Io {
        op: trace::Op::Discard,
        ..write(6, 1 << 20, 32 << 20)
    };
    let beyond = read(7, 2 << 30, 4096);
    let ios = vec![
        read(0, 0, 4096),
        write(1, 0, 512),
        flush(2),
        fua,
        other,
        discard,
        beyond,
    ];
    let volume = volume(10);
    let played = replayed(ios.clone(), 2, settings(Pace::Recorded), &volume);
    let made: Vec<(Made, u16)> = volume
        .requests()
        .iter()
        .map(|one| (one.request.op, one.request.file))
        .collect();
    assert_eq!(
        made,
        [
            (Made::Read, 0),
            (Made::Write, 0),
            (Made::Flush, 0),
            (Made::WriteDurable, 0),
            (Made::Read, 1)
        ]
    );
    let counts = played.replay.counts;
    assert_eq!((counts.ios, counts.issued), (7, 5));
    assert_eq!((counts.discards_left_out, counts.clipped), (1, 1));
    // With discards, and without writes.
    let volume = self::volume(10);
    let with = ReplaySettings {
        discards: true,
        ..settings(Pace::Recorded)
    };
    replayed(ios.clone(), 2, with, &volume);
    // It is longer than any read or write, and not cut.
    let last = volume.requests().last().map(|one| one.request);
    assert_eq!(
        last.map(|last| (last.op, last.offset, last.len)),
        Some((Made::Discard, 1 << 20, 32 << 20))
    );
    let volume = self::volume(10);
    let only_reads = ReplaySettings {
        reads_only: true,
        ..settings(Pace::Recorded)
    };
    let played = replayed(ios, 2, only_reads, &volume);
    assert!(
        volume
            .requests()
            .iter()
            .all(|one| one.request.op == Made::Read)
    );
    assert_eq!(played.replay.counts.left_out, 4);
}

#[test]
fn targets_are_of_the_devices_in_the_order_in_which_the_trace_names_them() {
    let second = Io {
        device: DeviceIndex(1),
        ..read(0, 0, 4096)
    };
    let volume = volume(10);
    let ios = vec![second, read(1, 4096, 4096)];
    let played = replayed(ios, 2, settings(Pace::Recorded), &volume);
    let devices = played.replay.devices.iter();
    let names: Vec<&str> = devices.map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["sda", "sdb"]);
    let files: Vec<u16> = volume
        .requests()
        .iter()
        .map(|one| one.request.file)
        .collect();
    assert_eq!(files, [1, 0]);
}

#[test]
fn reads_only_of_a_trace_of_writes_has_an_interval() {
    let writes = (0..900).map(|n| write(n * 100, n * 4096, 4096));
    let reads = (0..100).map(|n| read(n * 900 + 1, n * 4096, 4096));
    let mut ios: Vec<Io> = writes.chain(reads).collect();
    ios.sort_by_key(|io| io.issued);
    let only_reads = ReplaySettings {
        reads_only: true,
        ..settings(Pace::Recorded)
    };
    let played = replayed(ios, 1, only_reads, &volume(10));
    let parts = played.replay.classes[0].replayed.iter();
    assert_eq!(parts.filter(|part| !part.is_empty()).count(), 25);
}

#[test]
fn arrivals_before_the_issue_set_the_order_and_the_times() {
    let queued = |at: u64, issued: u64| Io {
        queued: Some(Nanos(at * 1000)),
        ..read(issued, at * 512, 512)
    };
    let volume = volume(10);
    replayed(
        vec![queued(5, 20), queued(0, 30), queued(40, 50)],
        1,
        settings(Pace::Recorded),
        &volume,
    );
    assert_eq!(issues(&volume), [0, 5, 40]);
    assert_eq!(volume.requests()[0].request.offset, 0);
}

#[test]
fn the_recorded_load_stands_beside_the_replayed_one() {
    // 2 in flight for 4 s, on a volume that keeps 8 in flight.
    let ios: Vec<Io> = (0..1000)
        .map(|n| took(read(n * 4000, n * 4096, 4096), 8000))
        .collect();
    let volume = volume(32_000);
    let played = replayed(ios, 1, settings(Pace::Recorded), &volume);
    let replay = &played.replay;
    let middle = &replay.load[replay.load.len() / 4..replay.load.len() / 2];
    let mean = |of: fn(&record::LoadSlice) -> f64| {
        middle.iter().map(of).sum::<f64>() / middle.len() as f64
    };
    assert!((mean(|slice| slice.recorded_in_flight) - 2.0).abs() < 0.1);
    assert!((mean(|slice| slice.replayed_in_flight) - 8.0).abs() < 0.1);
    let due: u64 = replay.load.iter().map(|slice| slice.due).sum();
    let recorded: u64 = replay.load.iter().map(|slice| slice.recorded_ios).sum();
    assert_eq!((due, recorded), (1000, 1000));
    let windows: u64 = played.phase.windows.iter().map(Window::ops).sum();
    assert_eq!((windows, played.phase.windows.len()), (1000, 5));
    let parts = replay.classes[0]
        .replayed
        .iter()
        .filter(|part| !part.is_empty());
    assert_eq!(parts.count(), 30);
}

#[test]
fn all_percentiles_have_intervals_recorded_and_replayed_in_a_table_of_80_columns() {
    // Latencies of 100 to 199 us, and one in a thousand of ten times as much.
    let latency = |n: u64| match n % 1000 {
        999 => 1500,
        n => 100 + n * 37 % 100,
    };
    let ios: Vec<Io> = (0..9000)
        .map(|n| took(read(n * 200, n * 4096, 4096), latency(n)))
        .collect();
    let played = replayed(ios, 1, settings(Pace::Recorded), &volume(150));
    let answer = ReplayAnswer::of(&played.replay);
    let reads = &answer.totals[0];
    let recorded = reads.recorded.unwrap();
    for latencies in [recorded, reads.replayed] {
        for figure in [latencies.p50, latencies.p99, latencies.p999] {
            let (low, high) = figure.low_ns.zip(figure.high_ns).unwrap();
            assert!(low <= figure.ns && figure.ns <= high, "{figure:?}");
        }
    }
    let half = recorded.p50.low_ns.zip(recorded.p50.high_ns).unwrap();
    assert!(half.0 < 150_000 && 149_000 < half.1, "{half:?}");
    // The number of slow I/Os in each part may differ by one.
    assert!(recorded.p999.low_ns.unwrap() < 250_000, "{recorded:?}");
    let table = views::table(&answer, 80);
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for (at, word) in [(1, "recorded"), (3, "replayed")] {
        assert!(rows[at].contains(&word), "{table}");
        let below = &rows[at + 1];
        assert_eq!(below[..2], ["95", "%"], "{table}");
        let bounds = below.iter().filter(|cell| cell.contains("/+"));
        assert_eq!(bounds.count(), 3, "{table}");
    }
    // An earlier version kept the recorded latency as a whole, of which no interval is known.
    let mut before = played.replay;
    before.classes[0].recorded_parts.clear();
    let before = ReplayAnswer::of(&before).totals[0].recorded.unwrap();
    assert_eq!((before.p50.ns, before.p50.low_ns), (recorded.p50.ns, None));
}
