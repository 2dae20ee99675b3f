//! The loop in simulated time against a simulated disk.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use super::*;
use crate::arrivals::Arrivals;
use crate::budget::Budget;
use crate::positions::PositionGenerator;
use crate::simulated::SimulatedDisk;
use crate::tally::{Flows, Timetable, merge_flows, ops_of, tests::workload};
use crate::think_pause::ThinkPause;
use crate::throttle::Throttle;
use record::{Bytes, Pattern, Workload};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Runs one worker over `disk` for `seconds`; returns its windows and its end.
fn run(
    workload: &Workload,
    disk: SimulatedDisk,
    seconds: u64,
    budget: Option<u64>,
) -> Result<(Vec<WindowTally>, WorkerEnd), EngineError> {
    let limited = Workload {
        ops: budget,
        ..workload.clone()
    };
    let budget = Budget::of(&limited);
    let [interrupt, enough, finished] = [(); 3].map(|()| AtomicBool::new(false));
    let plan = Plan {
        workload,
        timetable: Timetable {
            start: 0,
            slice: 100 * MS,
            slices: seconds * 10,
        },
        seed: 1,
        budget: budget.as_ref(),
        free_until: 0,
        longest: match workload.details.as_ref().and_then(|it| it.max_latency) {
            None => [u64::MAX; 2],
            Some(most) => [most.reads.0, most.writes.0],
        },
        interrupt: &interrupt,
        enough: &enough,
        finished: &finished,
        verifier: None,
    };
    let is_even = (workload.details.as_ref()).is_some_and(|details| details.even_rate);
    let share = ThreadShare {
        positions: PositionGenerator::of(workload, 1 << 30, 0, 1),
        arrivals: workload
            .rate_per_s
            .map(|rate| Arc::new(Mutex::new(Arrivals::new(1e9 / rate, 0, 2, is_even)))),
        one_sided: workload
            .details
            .as_ref()
            .and_then(|details| details.one_sided_rate)
            .map(|limit| {
                let arrivals = Arrivals::new(1e9 / limit.per_s, 0, 2, true);
                (limit.direction(), Arc::new(Mutex::new(arrivals)))
            }),
        leads: true,
        slots: workload.depth,
        throttle: Throttle {
            think_pause: workload
                .details
                .as_ref()
                .and_then(|details| details.think)
                .map(|think| ThinkPause::new(&think, 0, |span| span.0)),
            ..Throttle::default()
        }
        .if_any(),
    };
    let (sender, receiver) = channel();
    let end = Worker::new(0, &plan, share, disk, sender).run()?;
    Ok((windows(&receiver), end))
}

fn windows(receiver: &Receiver<Message>) -> Vec<WindowTally> {
    receiver
        .try_iter()
        .filter_map(|message| match message {
            Message::Window { tally, .. } => Some(*tally),
            Message::Begin | Message::End { .. } => None,
        })
        .collect()
}

fn total(windows: &[WindowTally], end: &WorkerEnd, workload: &Workload) -> Flows {
    let mut total = crate::tally::flows_for(workload);
    windows
        .iter()
        .map(|window| &window.flows)
        .chain([&end.cut.flows, &end.drained])
        .for_each(|flows| merge_flows(&mut total, flows));
    total
}

#[test]
fn a_closed_loop_does_depth_over_latency() {
    let mut workload = workload();
    workload.depth = 4;
    let (windows, end) = run(&workload, SimulatedDisk::new(MS), 3, None).unwrap();
    assert_eq!(windows.len(), 3);
    for window in &windows {
        assert!(
            ops_of(&window.flows).abs_diff(4000) <= 4,
            "{}",
            ops_of(&window.flows)
        );
        assert_eq!(window.flows[0].as_ref().unwrap().slices.len(), 10);
        assert_eq!(window.in_flight, 4);
    }
    let reads = total(&windows, &end, &workload)[0].clone().unwrap();
    assert_eq!((reads.latency.min(), reads.latency.max()), (MS, MS));
    assert_eq!(
        reads.latency.count() % 4,
        0,
        "the requests in flight at the end completed"
    );
}

/// The thread has no processor at the ends of windows, as on a busy host, and sends them late. Measured by the nominal
/// length of a window, 60 ms after a late end would count as idle, and all of a pause of 1.5 s would be in the first
/// of its windows.
#[test]
fn a_thread_that_never_waits_is_busy_in_every_window_however_late_it_is_sent() {
    let mut disk = SimulatedDisk::new(MS);
    disk.computes = true;
    let late = [(990, 1060), (1999, 2040), (3900, 5400)];
    disk.without_processor = late.map(|(from, to)| (from * MS, to * MS)).to_vec();
    let (windows, _) = run(&workload(), disk, 7, None).unwrap();
    assert_eq!(windows.len(), 7);
    for window in &windows {
        assert_eq!(window.busy_share, 1.0, "window {}", window.index);
    }
}

/// Two seconds without completions, at 1,000 requests a second due: some 2,000 of them are late,
/// by 1 s on average. A closed loop would have had one late request for each slot.
#[test]
fn an_open_loop_shows_a_stall_as_two_thousand_late_requests() {
    for depth in [4096, 8] {
        let mut workload = workload();
        workload.rate_per_s = Some(1000.0);
        workload.depth = depth;
        let mut disk = SimulatedDisk::new(MS);
        disk.stall = Some((2 * SECOND, 4 * SECOND));
        let (windows, end) = run(&workload, disk, 8, None).unwrap();
        let reads = total(&windows, &end, &workload)[0].clone().unwrap();
        let late = reads.latency.count() - reads.latency.count_at_most(10 * MS);
        assert!(late.abs_diff(2000) < 250, "{late} late at depth {depth}");
        assert!(reads.latency.max().abs_diff(2 * SECOND) < SECOND / 50);
        assert!(reads.latency.count().abs_diff(8000) < 400);
        assert_eq!(
            ops_of(&windows[3].flows),
            0,
            "nothing completed in the stall"
        );
        assert!(windows[3].in_flight > 1500, "{}", windows[3].in_flight);
        let service = reads.service.unwrap();
        let slow = service.count() - service.count_at_most(10 * MS);
        assert!(slow <= u64::from(depth), "{slow} slow from submission");
    }
}

#[test]
fn a_stall_at_the_end_of_an_open_loop_is_not_left_out() {
    let mut workload = workload();
    workload.rate_per_s = Some(1000.0);
    workload.depth = 8;
    let mut disk = SimulatedDisk::new(MS);
    disk.stall = Some((2 * SECOND, 6 * SECOND));
    let (windows, end) = run(&workload, disk, 4, None).unwrap();
    let reads = total(&windows, &end, &workload)[0].clone().unwrap();
    let late = reads.latency.count() - reads.latency.count_at_most(SECOND);
    assert!(late.abs_diff(2000) < 200, "{late}");
    assert_eq!(end.drain_ticks, 2 * SECOND);
}

#[test]
fn the_number_of_requests_is_kept_exactly() {
    let mut workload = workload();
    workload.depth = 7;
    let (windows, end) = run(&workload, SimulatedDisk::new(MS), 3, Some(100)).unwrap();
    assert!(windows.is_empty());
    assert_eq!(ops_of(&end.cut.flows), 100);
    // 100 requests of 1 ms, 7 at a time.
    assert_eq!(end.cut.ticks, 15 * MS);
}

#[test]
fn a_commit_is_its_writes_and_the_sync_that_ends_them() {
    let mut workload = workload();
    workload.pattern = Pattern::Sequential;
    workload.read_fraction = 0.0;
    workload.sync_every = 3;
    let (windows, end) = run(&workload, SimulatedDisk::new(MS), 2, None).unwrap();
    let flows = total(&windows, &end, &workload);
    let [None, Some(write), Some(sync), Some(commit), None] = flows else {
        panic!("{flows:?}");
    };
    assert_eq!(sync.latency.max(), MS);
    assert_eq!(commit.latency.min(), 4 * MS);
    assert_eq!(commit.latency.max(), 4 * MS);
    assert_eq!(sync.latency.count(), commit.latency.count());
    assert!(write.latency.count().abs_diff(3 * sync.latency.count()) <= 3);
}

#[test]
fn the_last_sync_is_made_when_the_writes_are_back() {
    let mut workload = workload();
    workload.read_fraction = 0.0;
    workload.sync_at_end = true;
    workload.depth = 4;
    let (_, end) = run(&workload, SimulatedDisk::new(MS), 1, None).unwrap();
    assert_eq!(end.drained[2].as_ref().unwrap().latency.count(), 1);
}

#[test]
fn a_mix_keeps_its_share() {
    let mut workload = workload();
    workload.read_fraction = 0.7;
    workload.depth = 16;
    let (windows, end) = run(&workload, SimulatedDisk::new(MS), 3, None).unwrap();
    let flows = total(&windows, &end, &workload);
    let reads = flows[0].as_ref().unwrap().latency.count() as f64;
    let writes = flows[1].as_ref().unwrap().latency.count() as f64;
    assert!((reads / (reads + writes) - 0.7).abs() < 0.01);
}

#[test]
fn an_error_names_the_operation_and_its_offset() {
    let mut workload = workload();
    workload.pattern = Pattern::Sequential;
    let mut disk = SimulatedDisk::new(MS);
    disk.fails_at = Some((40_960, -libc::EIO));
    let error = run(&workload, disk, 3, None).unwrap_err().to_string();
    assert!(error.contains("a read at byte 40960 failed"), "{error}");

    let mut disk = SimulatedDisk::new(MS);
    disk.fails_at = Some((8192, 512));
    let error = run(&workload, disk, 3, None).unwrap_err().to_string();
    assert!(error.contains("moved 512 of 4096 bytes"), "{error}");
}

#[test]
fn requests_of_another_size_are_counted_in_bytes() {
    let mut workload = workload();
    workload.block = Bytes::kib(16);
    let mut disk = SimulatedDisk::new(MS);
    disk.block = Some(16 << 10);
    let (windows, _) = run(&workload, disk, 1, None).unwrap();
    let slice = windows[0].flows[0].as_ref().unwrap().slices[5];
    assert_eq!(slice.bytes, slice.ops * (16 << 10));
}

#[test]
fn a_commit_of_several_writers_counts_from_the_first_write() {
    let mut workload = workload();
    workload.read_fraction = 0.0;
    workload.sync_every = 4;
    workload.depth = 4;
    let (windows, end) = run(&workload, SimulatedDisk::new(MS), 2, None).unwrap();
    let flows = total(&windows, &end, &workload);
    let (sync, commit) = (flows[2].as_ref().unwrap(), flows[3].as_ref().unwrap());
    assert_eq!(sync.latency.max(), MS);
    assert_eq!(commit.latency.min(), 2 * MS, "the writes' time is in it");
}

/// A workload with these options, on a disk with a latency of a millisecond.
fn with_details(details: record::JobOptions) -> Workload {
    Workload {
        details: Some(Box::new(details)),
        ..workload()
    }
}

/// A workload with pauses, on the same disk.
fn with_pauses(pauses: record::ThinkTime) -> Workload {
    with_details(record::JobOptions {
        think: Some(pauses),
        ..record::JobOptions::default()
    })
}

/// A pause of 3 ms after each request.
const PAUSE_AFTER_EACH: record::ThinkTime = record::ThinkTime {
    time: record::Nanos(3 * MS),
    every: 1,
    io_time: record::Nanos(0),
    counts_issued: false,
    stops_rate: false,
};

#[test]
fn sizes_that_differ_are_requested_and_counted_each_as_it_is() {
    let share = |kib, share| record::SizeShare {
        size: Bytes::kib(kib),
        share,
    };
    let mut workload = with_details(record::JobOptions {
        read_sizes: vec![share(4, 0.5), share(64, 0.5)],
        write_sizes: vec![share(8, 1.0)],
        ..record::JobOptions::default()
    });
    workload.read_fraction = 0.5;
    workload.depth = 8;
    let (windows, end) = run(&workload, SimulatedDisk::new(MS), 2, None).unwrap();
    let total = total(&windows, &end, &workload);
    let mean = |direction: Direction| {
        let slices = &total[direction as usize].as_ref().unwrap().slices;
        let bytes: u64 = slices.iter().map(|slice| slice.bytes).sum();
        bytes as f64 / slices.iter().map(|slice| slice.ops).sum::<u64>() as f64
    };
    assert!((mean(Direction::Write) - 8192.0).abs() < 1e-9);
    // 8,000 reads of 4 and 64 KiB: the standard deviation of the mean is 343 bytes.
    let read = mean(Direction::Read);
    assert!((read - 34.0 * 1024.0).abs() < 2000.0, "{read}");
}

#[test]
fn a_phase_ends_when_its_bytes_are_issued() {
    let workload = with_details(record::JobOptions {
        bytes: Some(Bytes(4096 * 100 + 1)),
        ..record::JobOptions::default()
    });
    let (windows, end) = run(&workload, SimulatedDisk::new(MS), 5, None).unwrap();
    let total = total(&windows, &end, &workload);
    assert_eq!(ops_of(&total), 101);
}

/// Requests of 1 ms and pauses of 3 ms: number of requests in a cycle and its length in milliseconds, by fio's rule.
#[test]
fn think_time_begins_when_nothing_is_in_flight_and_that_counts_for_the_next() {
    for (depth, every, counts_issued, requests, cycle) in [
        (1, 1, false, 1, 4),
        (2, 2, false, 2, 4),
        // The requests in flight count, so that the next pause follows a single request.
        (16, 1, false, 1, 4),
        // 16 requests, 6 more until 8 have completed, and one between the two pauses.
        (16, 8, false, 23, 9),
        (4, 16, false, 16, 7),
        // Issued requests are counted, so that none is left over for the next pause.
        (16, 8, true, 8, 4),
    ] {
        let mut workload = with_pauses(record::ThinkTime {
            time: record::Nanos(3 * MS),
            every,
            counts_issued,
            ..record::ThinkTime::default()
        });
        workload.depth = depth;
        let (windows, end) = run(&workload, SimulatedDisk::new(MS), 9, None).unwrap();
        let ops = ops_of(&total(&windows, &end, &workload));
        let expected = 9000 / cycle * requests;
        assert!(
            ops.abs_diff(expected) <= 24,
            "{depth}, {every}: {ops} of {expected}"
        );
    }
}

/// 20 ms of requests of 1 ms each, then 5 ms of think time.
#[test]
fn think_time_may_follow_a_time_of_requests() {
    let mut workload = with_pauses(record::ThinkTime {
        time: record::Nanos(5 * MS),
        io_time: record::Nanos(20 * MS),
        ..record::ThinkTime::default()
    });
    workload.depth = 4;
    let (windows, end) = run(&workload, SimulatedDisk::new(MS), 5, None).unwrap();
    let ops = ops_of(&total(&windows, &end, &workload));
    assert!(ops.abs_diff(4 * 20 * 200) <= 160, "{ops}");
}

/// With 1000 requests a second, the writes reach their own rate, at most the share that the mix gives them.
#[test]
fn one_direction_may_have_a_rate_and_the_other_has_the_rest() {
    for (per_s, expected) in [(50.0, 50), (5000.0, 500)] {
        let mut workload = with_details(record::JobOptions {
            one_sided_rate: Some(record::OneSidedRate {
                writes: true,
                per_s,
            }),
            ..record::JobOptions::default()
        });
        workload.read_fraction = 0.5;
        let (windows, end) = run(&workload, SimulatedDisk::new(MS), 4, None).unwrap();
        let total = total(&windows, &end, &workload);
        let [reads, writes] = [Direction::Read, Direction::Write].map(|direction| {
            let slices = &total[direction as usize].as_ref().unwrap().slices;
            slices.iter().map(|slice| slice.ops).sum::<u64>()
        });
        assert!((reads + writes).abs_diff(4000) <= 2, "{reads} {writes}");
        // Random: a standard deviation of 32.
        let chance = if per_s < 500.0 { 3 } else { 150 };
        assert!(writes.abs_diff(4 * expected) <= chance, "{writes}");
    }
}

/// Requests at a rate, with a pause of 3 ms after each.
fn paced_with_pauses(rate: f64) -> Workload {
    let mut workload = with_pauses(PAUSE_AFTER_EACH);
    workload.rate_per_s = Some(rate);
    workload
}

/// Pauses of 3 ms after requests of 1 ms permit 250 a second, whatever rate is due; a lower rate is reached.
#[test]
fn think_time_limits_a_rate() {
    for (rate, expected) in [(100.0, 100), (1000.0, 250)] {
        let workload = paced_with_pauses(rate);
        let (windows, end) = run(&workload, SimulatedDisk::new(MS), 20, None).unwrap();
        let in_time: u64 = windows.iter().map(|window| ops_of(&window.flows)).sum();
        // Poisson arrivals: a standard deviation of 45.
        assert!(in_time.abs_diff(20 * expected) < 200, "{rate}: {in_time}");
        // Requests that cannot be issued wait.
        let longest = total(&windows, &end, &workload)[0]
            .as_ref()
            .unwrap()
            .latency
            .max();
        assert_eq!(longest > 10_000 * MS, rate > 250.0, "{rate}: {longest}");
    }
}

/// Four requests of 1 ms with gaps of 5 ms, and then a pause of 40 ms: the next four follow in 44 ms if the delay is
/// made up for, in 55 ms if the pause stops the rate. A pause of 2 ms, which is shorter than a gap, is added to 20 ms.
#[test]
fn think_time_may_stop_a_rate() {
    for (pause, made_up, stopped) in [(40, 91, 73), (2, 200, 182)] {
        for (stops_rate, expected) in [(false, made_up), (true, stopped)] {
            let mut workload = with_pauses(record::ThinkTime {
                time: record::Nanos(pause * MS),
                every: 4,
                stops_rate,
                ..record::ThinkTime::default()
            });
            workload.rate_per_s = Some(200.0);
            workload.details.as_mut().unwrap().even_rate = true;
            let (windows, _) = run(&workload, SimulatedDisk::new(MS), 20, None).unwrap();
            let in_time: u64 = windows.iter().map(|window| ops_of(&window.flows)).sum();
            assert!(
                in_time.abs_diff(20 * expected) < 2 * 20,
                "{pause} {stops_rate}: {in_time}"
            );
        }
    }
}

/// A request that was due in a pause waits for the worker, and one that was due in a stall of the disk waits for the
/// disk, even if a pause follows.
#[test]
fn a_stall_before_a_pause_is_in_the_latencies() {
    let workload = paced_with_pauses(100.0);
    let mut disk = SimulatedDisk::new(MS);
    disk.stall = Some((1000 * MS, 2000 * MS));
    let (windows, end) = run(&workload, disk, 20, None).unwrap();
    let flows = total(&windows, &end, &workload);
    let latency = &flows[0].as_ref().unwrap().latency;
    // A hundred of 2000 were due in the stall.
    let slow = latency.quantile(0.97);
    assert!(slow > 300 * MS, "{slow}");
    // With 100 a second a third of all is due in a pause, which is not part of their latency.
    let usual = latency.quantile(0.5);
    assert!(usual < 2 * MS, "{usual}");
}

/// A write and its sync of 1 ms each, then 3 ms of think time.
#[test]
fn think_time_of_a_worker_that_syncs_begins_after_the_sync() {
    let mut workload = with_pauses(PAUSE_AFTER_EACH);
    workload.read_fraction = 0.0;
    workload.sync_every = 1;
    let (windows, end) = run(&workload, SimulatedDisk::new(MS), 5, None).unwrap();
    let total = total(&windows, &end, &workload);
    let slices = &total[Direction::Write as usize].as_ref().unwrap().slices;
    let writes: u64 = slices.iter().map(|slice| slice.ops).sum();
    assert!(writes.abs_diff(1000) <= 2, "{writes}");
}

/// The number of failed requests, and the position and error of the first.
fn failed(end: &WorkerEnd) -> (u64, u64, &str) {
    (end.failed.reads, end.failed.writes, &end.failed.first)
}

#[test]
fn a_non_fatal_error_is_counted_and_in_no_figure() {
    let mut workload = with_details(record::JobOptions {
        non_fatal: Some(record::NonFatal {
            reads: vec![libc::EIO],
            writes: vec![libc::ENOSPC],
        }),
        ..record::JobOptions::default()
    });
    workload.pattern = Pattern::Sequential;
    let failing = |errno: i32| {
        let mut disk = SimulatedDisk::new(MS);
        disk.fails_at = Some((40_960, -errno));
        disk
    };
    let (_, end) = run(&workload, failing(libc::EIO), 3, Some(100)).unwrap();
    assert_eq!(ops_of(&end.cut.flows), 99);
    let (reads, writes, first) = failed(&end);
    assert_eq!((reads, writes), (1, 0));
    assert!(
        first.starts_with("a read at byte 40960 failed: "),
        "{first}"
    );
    // The setting for writes does not apply to reads, and short requests are fatal.
    let error = run(&workload, failing(libc::ENOSPC), 3, Some(100)).unwrap_err();
    assert!(
        error.to_string().contains("a read at byte 40960"),
        "{error}"
    );
    assert!(run(&workload, failing(-512), 3, Some(100)).is_err());
    workload.read_fraction = 0.0;
    let (_, end) = run(&workload, failing(libc::ENOSPC), 3, Some(100)).unwrap();
    assert_eq!((failed(&end).0, failed(&end).1), (0, 1));
}

#[test]
fn a_write_that_follows_a_discard_waits_for_it_and_both_are_counted() {
    let mut workload = with_details(record::JobOptions {
        trims_first: true,
        ..record::JobOptions::default()
    });
    workload.read_fraction = 0.0;
    workload.depth = 4;
    let (windows, end) = run(&workload, SimulatedDisk::new(MS), 3, Some(100)).unwrap();
    let flows = total(&windows, &end, &workload);
    let [None, Some(write), None, None, Some(trim)] = flows else {
        panic!("{flows:?}");
    };
    for flow in [&write, &trim] {
        assert_eq!((flow.latency.count(), flow.latency.max()), (100, MS));
        assert_eq!(flow.slices.iter().map(|slice| slice.ops).sum::<u64>(), 100);
    }
    // 100 pairs of 2 ms, four at a time.
    assert_eq!(end.cut.ticks, 50 * MS);
}

/// Blocks that are discarded at the end of the time are still written.
#[test]
fn no_block_is_left_discarded_at_the_end() {
    let mut workload = with_details(record::JobOptions {
        trims_first: true,
        ..record::JobOptions::default()
    });
    workload.read_fraction = 0.0;
    workload.depth = 4;
    let (windows, end) = run(&workload, SimulatedDisk::new(7 * MS), 2, None).unwrap();
    let flows = total(&windows, &end, &workload);
    let [None, Some(write), None, None, Some(trim)] = flows else {
        panic!("{flows:?}");
    };
    assert!(trim.latency.count() > 8);
    assert_eq!(write.latency.count(), trim.latency.count());
}

/// A disk that completes no read between the second and the fourth second.
#[test]
fn a_request_that_takes_too_long_ends_the_phase_unless_it_is_to_go_on_with_that_error() {
    let stalled = || {
        let mut disk = SimulatedDisk::new(MS);
        disk.stall = Some((2 * SECOND, 4 * SECOND));
        disk
    };
    let late = |reads: u64, ignored: &[i32]| {
        with_details(record::JobOptions {
            max_latency: Some(record::MaxLatency {
                reads: record::Nanos(reads),
                writes: record::Nanos(1),
            }),
            non_fatal: Some(record::NonFatal {
                reads: ignored.to_vec(),
                writes: Vec::new(),
            }),
            ..record::JobOptions::default()
        })
    };
    let error = run(&late(10 * MS, &[]), stalled(), 6, None).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("a read at byte ")
            && text.ends_with(" took longer than 10.0 ms, the max_latency of its job"),
        "{text}"
    );
    assert!(run(&late(3 * SECOND, &[]), stalled(), 6, None).is_ok());
    // It counts as failed, and its latency is kept.
    let workload = late(10 * MS, &[libc::ETIMEDOUT]);
    let (windows, end) = run(&workload, stalled(), 6, None).unwrap();
    assert_eq!(end.failed.reads, 1);
    let reads = total(&windows, &end, &workload)[0].clone().unwrap();
    assert!(reads.latency.max() > SECOND);
}
