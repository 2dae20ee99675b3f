//! The loop on simulated volumes.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use proptest::prelude::*;
use record::{Bytes, Nanos};

use super::simulated::{SimulatedVolume, VolumeModel};
use super::*;

const MS: u64 = 1_000_000;

/// Next step of a scripted source.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Issues a request.
    Give { offset: u64, len: u32 },
    /// Waits for this time from the call.
    Wait(Nanos),
    /// Changes the depth.
    Depth(u32),
}

/// A source that follows a list of steps, and checks each call.
struct Script {
    op: Op,
    steps: Vec<Step>,
    at: usize,
    depth: u32,
    waits_until: Nanos,
    in_flight: BTreeMap<u64, Request>,
    given: Vec<(Nanos, Request)>,
    done: Vec<(Nanos, CompletedRequest)>,
    /// A flag to set, and the number of requests after which it is set.
    interrupt: Option<(&'static AtomicBool, usize)>,
}

impl Script {
    fn new(steps: Vec<Step>) -> Script {
        Script {
            op: Op::Read,
            steps,
            at: 0,
            depth: 4,
            waits_until: Nanos(0),
            in_flight: BTreeMap::new(),
            given: Vec::new(),
            done: Vec::new(),
            interrupt: None,
        }
    }

    /// Reads a whole volume in requests of `len` bytes.
    fn all_of(volume: &VolumeModel, len: u32, depth: u32) -> Script {
        let pieces = volume.size.0 / u64::from(len);
        let give = |piece| Step::Give {
            offset: piece * u64::from(len),
            len,
        };
        let steps = [Step::Depth(depth)].into_iter();
        Script::new(steps.chain((0..pieces).map(give)).collect())
    }
}

impl RequestSource for Script {
    fn depth(&self) -> u32 {
        self.depth
    }

    fn next(&mut self, now: Nanos) -> Next {
        assert!((self.in_flight.len() as u32) < self.depth);
        assert!(now >= self.waits_until, "called at {now} while it waits");
        loop {
            let step = self.steps.get(self.at).copied();
            self.at += 1;
            match step {
                None => return Next::End,
                Some(Step::Depth(depth)) => {
                    self.depth = depth;
                    if self.in_flight.len() as u32 >= depth {
                        return Next::Wait(now);
                    }
                }
                Some(Step::Wait(span)) => {
                    self.waits_until = now + span;
                    return Next::Wait(self.waits_until);
                }
                Some(Step::Give { offset, len }) => {
                    let tag = self.given.len() as u64;
                    let request = Request {
                        op: self.op,
                        file: 0,
                        offset,
                        len,
                        tag,
                    };
                    self.given.push((now, request));
                    self.in_flight.insert(tag, request);
                    if let Some((flag, after)) = self.interrupt
                        && self.given.len() == after
                    {
                        flag.store(true, Relaxed);
                    }
                    return Next::Request(request);
                }
            }
        }
    }

    fn done(&mut self, now: Nanos, done: CompletedRequest) {
        let given = self.in_flight.remove(&done.request.tag);
        assert_eq!(given, Some(done.request), "never issued, or reported twice");
        self.waits_until = Nanos(0);
        self.done.push((now, done));
    }
}

fn run(
    lister: &SimulatedVolume,
    op: Op,
    interrupt: &AtomicBool,
    source: &mut Script,
) -> Result<ListSummary, EngineError> {
    let file = File::open("/dev/null").unwrap();
    let list = List {
        files: &[&file],
        memory: match op {
            Op::Read => BufferMode::Reads,
            _ => BufferMode::Zeros,
        },
        max_in_flight: 256,
        largest: Bytes::mib(1),
        interface: IoInterface::Auto,
        interrupt,
    };
    source.op = op;
    lister.run(&list, source)
}

fn read(volume: VolumeModel, source: &mut Script) -> SimulatedVolume {
    let lister = SimulatedVolume::new(volume);
    let end = run(&lister, Op::Read, &AtomicBool::new(false), source).unwrap();
    assert_eq!(end.ended, EndReason::Complete);
    assert!(source.in_flight.is_empty());
    lister
}

#[test]
fn a_cold_volume_takes_depth_over_latency_until_its_caps() {
    // 1 GiB in requests of 512 KiB: alone, each takes 4 ms at 125 MiB/s, 0.5 ms, and 30 ms for the fetch.
    for (depth, expected_s) in [(1, 2048.0 * 0.0305), (4, 512.0 * 0.0305), (64, 8.192)] {
        let volume = VolumeModel::cold(Bytes::gib(1));
        let mut source = Script::all_of(&volume, 512 << 10, depth);
        let lister = read(volume, &mut source);
        let took_s = lister.now().as_secs_f64();
        assert!(
            (took_s / expected_s - 1.0).abs() < 0.02,
            "{depth}: {took_s}"
        );
        assert_eq!(lister.cold_blocks(), 0);
        assert_eq!(lister.requests().len(), 2048);
    }
}

#[test]
fn the_second_reading_is_warm_and_fetches_are_limited() {
    let mut volume = VolumeModel::cold(Bytes::mib(64));
    volume.bytes_per_s = 1e12;
    volume.iops = 1e6;
    volume.fetches = 8;
    let mut source = Script::all_of(&volume, 512 << 10, 64);
    let lister = read(volume, &mut source);
    // 128 blocks, 8 at a time, 30 ms each.
    let cold = lister.now();
    assert!(cold.0.abs_diff(480 * MS) < 2 * MS, "{cold}");
    let mut source = Script::all_of(lister.volume(), 512 << 10, 64);
    run(&lister, Op::Read, &AtomicBool::new(false), &mut source).unwrap();
    let warm = lister.now() - cold;
    assert!(warm < Nanos(3 * MS), "{warm}");
}

#[test]
fn overwritten_blocks_need_not_be_fetched() {
    let volume = VolumeModel::cold(Bytes::mib(4));
    let lister = SimulatedVolume::new(volume);
    let whole = Step::Give {
        offset: 0,
        len: 512 << 10,
    };
    let part = Step::Give {
        offset: 1 << 20,
        len: 4096,
    };
    let mut source = Script::new(vec![Step::Depth(1), whole, part]);
    run(&lister, Op::Write, &AtomicBool::new(false), &mut source).unwrap();
    assert!(source.done[0].1.latency < Nanos(5 * MS));
    assert!(source.done[1].1.latency > Nanos(30 * MS));
    assert_eq!(lister.cold_blocks(), 6);
}

#[test]
fn errors_are_reported_and_the_rest_continues() {
    let mut volume = VolumeModel::cold(Bytes::mib(8));
    volume.bad.push((1 << 20) + 4096..(2 << 20) + 4096);
    volume.detached_at = Some(Nanos(80 * MS));
    let mut source = Script::all_of(&volume, 512 << 10, 4);
    // The last request extends beyond the end of the volume.
    source.steps.insert(
        1,
        Step::Give {
            offset: (8 << 20) - 4096,
            len: 8192,
        },
    );
    let lister = read(volume, &mut source);
    source.done.sort_by_key(|(_, done)| done.request.tag);
    let results: Vec<_> = source.done.iter().map(|(_, done)| done.result).collect();
    assert_eq!(results.len(), 17);
    assert_eq!(results[0], Err(RequestError::Short { moved: 4096 }));
    assert_eq!(results[1..3], [Ok(()), Ok(())]);
    let failed = Err(RequestError::Kernel(Errno::IO));
    assert_eq!(results[3..6], [failed; 3]);
    assert_eq!(results[6], Ok(()));
    assert_eq!(results[16], Err(RequestError::Kernel(Errno::NODEV)));
    assert!(lister.cold_blocks() > 0);
}

#[test]
fn a_wait_ends_at_its_time_or_when_a_request_completes() {
    let give = |offset| Step::Give { offset, len: 4096 };
    let hour = Nanos::from_secs(3600);
    let steps = vec![give(0), Step::Wait(hour), Step::Wait(hour), give(8192)];
    let volume = VolumeModel::cold(Bytes::mib(1));
    let mut source = Script::new(steps);
    read(volume, &mut source);
    // The first wait ended with the first completion, the second at its time.
    let first = source.done[0].0;
    assert!(first < Nanos(40 * MS));
    assert_eq!(source.given[1].0, first + hour);
}

#[test]
fn a_wait_for_the_past_does_not_stop_time() {
    let steps = vec![Step::Wait(Nanos(0)); 50];
    let mut source = Script::new(steps);
    let lister = read(VolumeModel::cold(Bytes::mib(1)), &mut source);
    assert_eq!(lister.now(), Nanos(50 * MS / 10));
}

#[test]
fn an_interrupt_issues_no_more_and_waits_for_requests_in_flight() {
    let flag: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let volume = VolumeModel::cold(Bytes::mib(64));
    let mut source = Script::all_of(&volume, 512 << 10, 8);
    source.interrupt = Some((flag, 20));
    let lister = SimulatedVolume::new(volume);
    let end = run(&lister, Op::Read, flag, &mut source).unwrap();
    assert_eq!(end.ended, EndReason::Interrupted);
    assert_eq!((source.given.len(), source.done.len()), (20, 20));
    // It took no longer than the requests in flight: three rounds of eight.
    assert!(lister.now() < Nanos(4 * 36 * MS), "{}", lister.now());
    assert_eq!(lister.cold_blocks(), 128 - 20);
}

#[test]
fn an_invalid_request_ends_the_list_after_the_requests_in_flight() {
    let give = |offset, len| Step::Give { offset, len };
    let steps = vec![give(0, 4096), give(4096, 4096), give(8192, 100)];
    let lister = SimulatedVolume::new(VolumeModel::cold(Bytes::mib(1)));
    let mut source = Script::new(steps);
    let error = run(&lister, Op::Read, &AtomicBool::new(false), &mut source).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a request of 100 bytes at byte 8192 cannot be made: direct I/O on this target wants \
         multiples of 512 bytes"
    );
    assert_eq!(source.done.len(), 2);
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_u64..40_000, 1_u32..=1024).prop_map(|(sector, sectors)| Step::Give {
            offset: sector * 512,
            len: sectors * 512,
        }),
        1 => (0..100 * MS).prop_map(|span| Step::Wait(Nanos(span))),
        1 => (1_u32..300).prop_map(Step::Depth),
    ]
}

fn volume() -> impl Strategy<Value = VolumeModel> {
    let bad = prop::collection::vec(0_u64..16 << 20, 0..4);
    (1.0..20_000.0, 1e5..1e10, 0..50 * MS, 1_u32..64, bad).prop_map(
        |(iops, bytes_per_s, cold, fetches, bad)| VolumeModel {
            iops,
            bytes_per_s,
            cold_latency: Nanos(cold),
            fetches,
            bad: bad.into_iter().map(|start| start..start + 5000).collect(),
            ..VolumeModel::cold(Bytes::mib(16))
        },
    )
}

proptest! {
    /// For any source: each request is issued once and reported once, in the order of completion and with the result
    /// of the volume, and the limits of the volume hold.
    #[test]
    fn each_request_is_issued_once_and_reported_once(
        steps in prop::collection::vec(step(), 0..200),
        volume in volume(),
    ) {
        let mut source = Script::new(steps.clone());
        let lister = read(volume.clone(), &mut source);
        let wanted = steps.iter().filter(|step| matches!(step, Step::Give { .. })).count();
        let made = lister.requests();
        prop_assert_eq!((made.len(), source.done.len()), (wanted, wanted));
        prop_assert!(source.done.is_sorted_by_key(|(_, done)| done.began + done.latency));
        for (now, done) in &source.done {
            let truth = &made[done.request.tag as usize];
            prop_assert_eq!(truth.request, done.request);
            prop_assert_eq!((truth.began, truth.completed), (done.began, done.began + done.latency));
            prop_assert_eq!(*now, truth.completed);
            let result = match truth.result {
                Err(errno) => Err(RequestError::Kernel(errno)),
                Ok(moved) if moved < done.request.len => Err(RequestError::Short { moved }),
                Ok(_) => Ok(()),
            };
            prop_assert_eq!(done.result, result);
        }
        let at_least_s = (wanted as f64 / volume.iops).max(
            made.iter().filter_map(|made| made.result.ok()).map(f64::from).sum::<f64>()
                / volume.bytes_per_s,
        );
        // Each time is rounded down to whole nanoseconds.
        let rounded_s = wanted as f64 * 1e-9;
        prop_assert!(lister.now().as_secs_f64() + rounded_s >= at_least_s);
    }
}
