//! Tests of reading, on simulated volumes.

use std::cell::Cell;
use std::fs::File;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use engine::IoInterface;
use engine::list::simulated::{FOREGROUND_REQUEST_BYTES, SimulatedVolume, VolumeModel};
use engine::list::{BufferMode, EndReason, List, ListEngine as _};

use reader::ForegroundReport;

use super::super::limit::SharedRateLimit;
use super::super::pace::IoPolicy;
use super::super::plan::{Extent, KnownSpace};
use super::*;

const UNIT: Bytes = Bytes::kib(512);

/// An attached device.
struct TestDevice {
    /// Size of the device, which may change; `None` once it is detached.
    size: Rc<Cell<Option<Bytes>>>,
    /// Number of polls after which the size changes, and the new size.
    later: Option<(u32, Option<Bytes>)>,
    /// Polls of the size so far.
    polls: Cell<u32>,
    /// Reports of progress so far.
    reports: u32,
    /// Policy of the reading; `None` for one without a pace.
    policy: Option<IoPolicy>,
    /// Source of the kernel's counts; `None` where they are not known.
    counts: Option<Counts>,
}

/// Returns the bytes that the kernel counted since the last call.
type Counts = Box<dyn FnMut() -> KernelBytes>;

impl TestDevice {
    fn new(size: Bytes) -> TestDevice {
        TestDevice {
            size: Rc::new(Cell::new(Some(size))),
            later: None,
            polls: Cell::new(0),
            reports: 0,
            policy: None,
            counts: None,
        }
    }
}

impl DeviceObserver for TestDevice {
    fn size(&self) -> Option<Bytes> {
        self.polls.set(self.polls.get() + 1);
        if let Some((polls, size)) = self.later
            && self.polls.get() > polls
        {
            self.size.set(size);
        }
        self.size.get()
    }

    fn counted(&mut self) -> Option<KernelBytes> {
        self.counts.as_mut().map(|counts| counts())
    }

    fn take_progress(&mut self, at: &ReadingProgress<'_>) {
        assert!(at.left.0 + at.done.total().0 >= at.unreadable.total().0);
        self.reports += 1;
    }
}

/// Reads all of a volume except the ranges in `done`, and returns what `then` takes from the reading.
fn read<T>(
    volume: &SimulatedVolume,
    device: &mut TestDevice,
    done: Ranges,
    limit: Option<Bytes>,
    then: impl FnOnce(&Reading<'_>) -> T,
) -> T {
    let size = volume.volume().size;
    let plan = Plan::new(&KnownSpace::default(), size, UNIT, Extent::All).without(&done);
    let (_, plans) = std::sync::mpsc::sync_channel(1);
    read_plan(
        volume,
        device,
        (plan, FinalPlanReceiver::new(plans)),
        done,
        limit,
        then,
    )
}

/// Reads by a plan, and by its final plan as soon as that arrives; returns what `then` takes from the reading.
fn read_plan<T>(
    volume: &SimulatedVolume,
    device: &mut TestDevice,
    (plan, later): (Plan, FinalPlanReceiver),
    done: Ranges,
    limit: Option<Bytes>,
    then: impl FnOnce(&Reading<'_>) -> T,
) -> T {
    let size = volume.volume().size;
    let limit = SharedRateLimit::new(limit);
    let pace = device
        .policy
        .map_or_else(|| Pace::unbound(&limit), |policy| Pace::new(&limit, policy));
    let turns = Turns::new(1, true);
    let mut reading = Reading::new((&plan, later), size, UNIT, done, pace, (&turns, 0), device);
    let list = List {
        files: &[&File::open("/dev/null").unwrap()],
        memory: BufferMode::Reads,
        max_in_flight: MAX_DEPTH as u32 + 1,
        largest: UNIT,
        interface: IoInterface::Auto,
        interrupt: &AtomicBool::new(false),
    };
    let end = volume.run(&list, &mut reading).unwrap();
    assert_eq!(end.ended, EndReason::Complete);
    assert_eq!(
        reading.work.left(),
        reading.work.count_left(),
        "the running total equals a new count"
    );
    then(&reading)
}

#[test]
fn a_cold_volume_is_read_once_at_its_cap() {
    let size = Bytes::gib(8);
    let volume = SimulatedVolume::new(VolumeModel::cold(size));
    let mut device = TestDevice::new(size);
    let (done, rate, verdict) = read(&volume, &mut device, Ranges::new(), None, |reading| {
        let seconds = volume.now().as_secs_f64();
        let rate = reading.read().0 as f64 / seconds;
        (reading.done_ranges().clone(), rate, reading.verdict())
    });
    assert_eq!(done, Ranges::all(size));
    assert_eq!(volume.cold_blocks(), 0);
    assert_eq!(
        volume.requests().len() as u64,
        size.0 / UNIT.0,
        "none twice"
    );
    let cap = Bytes::mib(125).0 as f64;
    assert!(rate > 0.95 * cap, "{rate}");
    let depth = verdict.unwrap().depth;
    assert!(
        (8..=40).contains(&depth),
        "what fills the cap and no more: {depth}"
    );
    assert!(device.reports > 50);
}

#[test]
fn warm_ranges_are_not_read_again_and_the_limit_is_kept() {
    let size = Bytes::gib(1);
    let volume = SimulatedVolume::new(VolumeModel::cold(size));
    let half = Ranges::from(0..size.0 / 2);
    let limit = Bytes::mib(20);
    let read_now = read(
        &volume,
        &mut TestDevice::new(size),
        half,
        Some(limit),
        |reading| {
            assert_eq!(reading.done_ranges(), &Ranges::all(size));
            reading.read()
        },
    );
    assert_eq!(read_now, Bytes(size.0 / 2));
    let least_s = (size.0 / 2) as f64 / limit.0 as f64;
    let took = volume.now().as_secs_f64();
    assert!(
        (0.97 * least_s..1.1 * least_s).contains(&took),
        "{took} {least_s}"
    );
}

#[test]
fn unreadable_pages_are_found_and_the_rest_is_read() {
    let size = Bytes::mib(64);
    let bad = [
        UNIT.0 * 3 + 8192..UNIT.0 * 3 + 12288,
        UNIT.0 * 9..UNIT.0 * 11,
    ];
    let volume = SimulatedVolume::new(VolumeModel {
        bad: bad.to_vec(),
        ..VolumeModel::cold(size)
    });
    read(
        &volume,
        &mut TestDevice::new(size),
        Ranges::new(),
        None,
        |reading| {
            let bad: Ranges = bad.iter().cloned().collect();
            assert_eq!(reading.unreadable(), &bad);
            assert!(!reading.is_coarse());
            assert_eq!(reading.done_ranges(), &Ranges::all(size).subtract(&bad));
            assert_eq!(reading.end_of_reading(), EndOfReading::All);
        },
    );
}

#[test]
fn a_disk_with_many_bad_blocks_is_not_read_page_by_page_for_ever() {
    let size = Bytes::gib(1);
    let bad = Ranges::from(0..size.0 / 2);
    let volume = SimulatedVolume::new(VolumeModel {
        bad: bad.iter().collect(),
        ..VolumeModel::cold(size)
    });
    let mut device = TestDevice::new(size);
    read(&volume, &mut device, Ranges::new(), None, |reading| {
        assert!(reading.is_coarse());
        assert_eq!(reading.unreadable(), &bad);
        let spent = reading.work.spent(volume.now());
        assert!(
            spent < reader::MAX_NARROWING_TIME + Nanos::from_secs(1),
            "{spent:?}"
        );
    });
}

#[test]
fn a_device_that_goes_away_ends_it_and_is_not_called_unreadable() {
    let size = Bytes::gib(4);
    let volume = SimulatedVolume::new(VolumeModel {
        detached_at: Some(Nanos::from_secs(5)),
        ..VolumeModel::cold(size)
    });
    read(
        &volume,
        &mut TestDevice::new(size),
        Ranges::new(),
        None,
        |reading| {
            assert_eq!(reading.end_of_reading(), EndOfReading::Gone);
            assert!(reading.unreadable().is_empty());
            assert!(reading.read() > Bytes::mib(200), "{:?}", reading.read());
        },
    );
    // Most drivers answer EIO instead, and the device has no size any more.
    let volume = SimulatedVolume::new(VolumeModel {
        bad: Ranges::from(size.0 / 2..size.0).iter().collect(),
        ..VolumeModel::cold(size)
    });
    let mut device = TestDevice::new(size);
    device.later = Some((4, None));
    read(&volume, &mut device, Ranges::new(), None, |reading| {
        assert_eq!(reading.end_of_reading(), EndOfReading::Gone);
        assert!(reading.unreadable().is_empty());
    });
}

#[test]
fn a_device_that_answers_nothing_is_not_called_unreadable() {
    let size = Bytes::gib(1);
    let half = Ranges::from(0..size.0 / 2);
    // From the start, and after a part was read.
    for done in [Ranges::new(), half] {
        let volume = SimulatedVolume::new(VolumeModel {
            bad: Ranges::all(size).iter().collect(),
            ..VolumeModel::cold(size)
        });
        let left = Ranges::all(size).subtract(&done);
        let mut device = TestDevice::new(size);
        read(&volume, &mut device, done, None, |reading| {
            assert_eq!(reading.end_of_reading(), EndOfReading::Silent);
            assert!(reading.unreadable().is_empty());
            assert_eq!(reading.work.left(), left.total());
            assert!(!reading.is_complete());
        });
        assert!(volume.requests().len() < 400, "{}", volume.requests().len());
    }
}

#[test]
fn a_volume_that_shrinks_and_grows_again_is_not_called_warm() {
    let size = Bytes::gib(1);
    let volume = SimulatedVolume::new(VolumeModel::cold(size));
    let mut device = TestDevice::new(size);
    device.later = Some((2, Some(Bytes::mib(700))));
    // All but the middle was read before.
    let done = Ranges::all(size).subtract(&Ranges::from(Bytes::mib(300).0..Bytes::mib(800).0));
    read(&volume, &mut device, done, None, |reading| {
        assert_eq!(reading.done_ranges(), &Ranges::all(Bytes::mib(700)));
    });
}

#[test]
fn a_volume_that_shrinks_is_read_to_its_new_end() {
    let size = Bytes::gib(1);
    let smaller = Bytes::mib(700);
    let volume = SimulatedVolume::new(VolumeModel {
        bad: Ranges::from(smaller.0..size.0).iter().collect(),
        ..VolumeModel::cold(size)
    });
    let mut device = TestDevice::new(size);
    device.later = Some((2, Some(smaller)));
    read(&volume, &mut device, Ranges::new(), None, |reading| {
        assert_eq!(reading.end_of_reading(), EndOfReading::All);
        assert_eq!(reading.sizes(), (smaller, smaller));
        assert_eq!(reading.done_ranges(), &Ranges::all(smaller));
        assert!(
            reading.unreadable().is_empty(),
            "{:?}",
            reading.unreadable()
        );
    });
}

/// Space of a volume of this size: 20 units to read first, and 100 units in use from the middle on.
fn known(size: Bytes) -> KnownSpace {
    let unit = UNIT.0;
    KnownSpace {
        first: Ranges::from(40 * unit..60 * unit),
        used: Some(Ranges::from(size.0 / 2..size.0 / 2 + 100 * unit)),
        held: None,
    }
}

/// Numbers of the units that were read, in the order of the requests.
fn order(volume: &SimulatedVolume) -> Vec<u64> {
    let made = volume.requests();
    made.iter().map(|one| one.request.offset / UNIT.0).collect()
}

#[test]
fn reading_begins_before_it_is_known_what_is_used() {
    let size = Bytes::gib(1);
    let volume = SimulatedVolume::new(VolumeModel::cold(size));
    let unknown = KnownSpace {
        used: None,
        ..known(size)
    };
    let at_once = Plan::new(&unknown, size, UNIT, Extent::All);
    let last = Plan::new(&known(size), size, UNIT, Extent::All);
    // The final plan is taken at the first poll of the device.
    let (send, plans) = std::sync::mpsc::sync_channel(1);
    send.send(last).unwrap();
    let plans = (at_once, FinalPlanReceiver::new(plans));
    let mut device = TestDevice::new(size);
    read_plan(
        &volume,
        &mut device,
        plans,
        Ranges::new(),
        None,
        |reading| {
            assert_eq!(reading.done_ranges(), &Ranges::all(size));
        },
    );
    let order = order(&volume);
    assert_eq!(order.len() as u64, size.0 / UNIT.0, "none twice");
    assert_eq!(order[..20], (40..60).collect::<Vec<u64>>());
    assert_eq!(order[20], 0, "from the start until more is known");
    let used = size.0 / 2 / UNIT.0;
    let place = order.iter().position(|block| *block == used).unwrap();
    assert!(place < 100, "{place}");
    let expected: Vec<u64> = (used..used + 100).collect();
    assert_eq!(order[place..place + 100], expected);
}

#[test]
fn space_outside_the_plan_is_not_read_before_the_plan_is_known() {
    let size = Bytes::gib(1);
    let volume = SimulatedVolume::new(VolumeModel::cold(size));
    let at_once = Plan::new(&known(size), size, UNIT, Extent::First);
    let last = Plan::new(&known(size), size, UNIT, Extent::Used);
    let (send, plans) = std::sync::mpsc::sync_channel(1);
    let sending = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        send.send(last).unwrap();
    });
    let plans = (at_once, FinalPlanReceiver::new(plans));
    let mut device = TestDevice::new(size);
    read_plan(&volume, &mut device, plans, Ranges::new(), None, |_| {});
    sending.join().unwrap();
    let used = size.0 / 2 / UNIT.0;
    let expected: Vec<u64> = (40..60).chain(used..used + 100).collect();
    assert_eq!(order(&volume), expected);
    // No final plan comes: the reading ends with the first one.
    let volume = SimulatedVolume::new(VolumeModel::cold(size));
    let at_once = Plan::new(&known(size), size, UNIT, Extent::First);
    let (_, plans) = std::sync::mpsc::sync_channel(1);
    let plans = (at_once, FinalPlanReceiver::new(plans));
    read_plan(&volume, &mut device, plans, Ranges::new(), None, |_| {});
    assert_eq!(order(&volume).len(), 20);
}

#[test]
fn completed_reads_do_not_wait_for_their_order() {
    let size = Bytes::mib(64);
    let volume = SimulatedVolume::new(VolumeModel::cold(size));
    let all = Plan::new(&KnownSpace::default(), size, UNIT, Extent::All);
    // The plan never comes: the list of free space takes for ever.
    let (send, plans) = std::sync::mpsc::sync_channel(1);
    let plans = (all, FinalPlanReceiver::of_new_order(plans));
    let mut device = TestDevice::new(size);
    read_plan(
        &volume,
        &mut device,
        plans,
        Ranges::new(),
        None,
        |reading| {
            assert!(reading.is_complete());
        },
    );
    drop(send);
    // While more may come, what was read is not all.
    let (_send, plans) = std::sync::mpsc::sync_channel(1);
    assert!(FinalPlanReceiver::new(plans).may_add());
}

#[test]
fn bad_places_are_retried_several_at_once() {
    let size = Bytes::mib(64);
    let volume = SimulatedVolume::new(VolumeModel {
        bad: Ranges::from(UNIT.0 * 3..UNIT.0 * 5).iter().collect(),
        ..VolumeModel::cold(size)
    });
    let mut device = TestDevice::new(size);
    read(&volume, &mut device, Ranges::new(), None, |_| {});
    let made = volume.requests();
    let pieces: Vec<_> = made
        .iter()
        .filter(|one| u64::from(one.request.len) < UNIT.0)
        .collect();
    // Number of pieces in flight when one begins.
    let with = |one: &&engine::list::simulated::SimulatedRequest| {
        let is_in_flight = |other: &&&engine::list::simulated::SimulatedRequest| {
            other.began <= one.began && one.began < other.completed
        };
        pieces.iter().filter(is_in_flight).count()
    };
    let maximum = pieces.iter().map(with).max().unwrap();
    assert!(
        (4..=reader::PIECES_IN_FLIGHT).contains(&maximum),
        "{maximum}"
    );
}

/// Counts as the kernel does: the requests of this program, the foreground of the volume model, and other programs that
/// read `pages` pages in each half second of the span `others`, in seconds.
fn counting(volume: &Rc<SimulatedVolume>, others: std::ops::Range<u64>, pages: u64) -> Counts {
    let volume = Rc::clone(volume);
    let (mut before, mut polled) = (0, Nanos(0));
    Box::new(move || {
        let now = volume.now();
        let made = volume.requests();
        // Requests that failed are counted too.
        let own = made.iter().filter(|one| one.completed <= now);
        let bytes: u64 = own.map(|one| u64::from(one.request.len)).sum();
        let foreground =
            volume.foreground_requests().len() as u64 * u64::from(FOREGROUND_REQUEST_BYTES);
        let theirs = if others.contains(&(now.0 / 1_000_000_000)) {
            let halves = (now - polled).as_secs_f64() / 0.5;
            4096 * (halves * pages as f64) as u64
        } else {
            0
        };
        polled = now;
        let read_bytes = bytes + foreground - before + theirs;
        before = bytes + foreground;
        KernelBytes {
            read_bytes,
            ..KernelBytes::default()
        }
    })
}

/// Result of a warming whose rate follows the foreground, as it does by default.
struct PacedWarming {
    /// Duration, in seconds.
    seconds: f64,
    /// Start and end of each probe.
    probes: Vec<Range<Nanos>>,
    /// Report on the foreground; `None` where there was none.
    foreground: Option<ForegroundReport>,
    /// Share of the bytes that others read.
    others_share: f64,
    /// Start and end of each request of the volume model's foreground.
    foreground_requests: Vec<Range<Nanos>>,
}

/// Warms a volume at the rate that its foreground leaves, while other programs read `pages` pages in each half second of
/// the span `others`, in seconds.
fn warm_when_idle(volume: VolumeModel, others: std::ops::Range<u64>, pages: u64) -> PacedWarming {
    let size = volume.size;
    let bad: Ranges = volume.bad.iter().cloned().collect();
    let volume = Rc::new(SimulatedVolume::new(volume));
    let mut device = TestDevice::new(size);
    device.policy = Some(IoPolicy::Idle);
    device.counts = Some(counting(&volume, others, pages));
    let (foreground, share) = read(&volume, &mut device, Ranges::new(), None, |reading| {
        assert_eq!(reading.done_ranges(), &Ranges::all(size).subtract(&bad));
        (reading.foreground(), reading.others_share().unwrap())
    });
    let made = volume.requests();
    let probes = made.iter().filter(|one| one.request.tag == PROBE_MARK);
    PacedWarming {
        seconds: volume.now().as_secs_f64(),
        probes: probes.map(|one| one.began..one.completed).collect(),
        foreground,
        others_share: share,
        foreground_requests: volume.foreground_requests(),
    }
}

/// Latencies, in seconds and in ascending order, of the reads that began within a span, in seconds.
fn latencies(reads: &[Range<Nanos>], span: std::ops::Range<u64>) -> Vec<f64> {
    let span = Nanos::from_secs(span.start)..Nanos::from_secs(span.end);
    let within = reads.iter().filter(|one| span.contains(&one.start));
    let mut found: Vec<f64> = within
        .map(|one| (one.end - one.start).as_secs_f64())
        .collect();
    found.sort_by(f64::total_cmp);
    found
}

/// The 90th percentile of latencies in ascending order.
fn p90(sorted: &[f64]) -> f64 {
    sorted[sorted.len() * 9 / 10]
}

#[test]
fn by_default_warming_is_as_fast_without_a_foreground_and_keeps_the_latency_of_one() {
    let size = Bytes::gib(6);
    let cap_s = size.0 as f64 / Bytes::mib(125).0 as f64;
    let alone = warm_when_idle(VolumeModel::cold(size), 0..0, 0);
    assert_eq!(alone.foreground, None);
    let least_s = {
        let volume = SimulatedVolume::new(VolumeModel::cold(size));
        read(
            &volume,
            &mut TestDevice::new(size),
            Ranges::new(),
            None,
            |_| {},
        );
        volume.now().as_secs_f64()
    };
    assert!(alone.probes.len() as f64 <= 10.0 * alone.seconds + 40.0);
    assert!(
        alone.seconds < 1.02 * least_s,
        "{} of {least_s}",
        alone.seconds
    );
    assert!(alone.others_share < 0.01, "{}", alone.others_share);

    let beside = warm_when_idle(VolumeModel::cold(size), 5..40, 500);
    let latency = latencies(&beside.probes, 17..40);
    assert!(p90(&latency) < 0.0075, "{}", p90(&latency));
    assert!(beside.probes.len() > 1000);
    let foreground = beside.foreground.unwrap();
    let time = foreground.foreground_s;
    assert!((25.0..45.0).contains(&time), "{time}");
    let beside_it = foreground.beside.unwrap();
    let target_us = foreground.kept_p99_us.unwrap();
    assert!(
        beside_it.p99_us < 1.3 * target_us,
        "{beside_it:?} {target_us}"
    );
    assert!(
        beside.seconds < 1.9 * cap_s,
        "{} of {cap_s}",
        beside.seconds
    );
    let share = beside.others_share;
    assert!((0.005..0.05).contains(&share), "{share}");
}

/// A cold volume of so many MiB/s, which takes `seconds` to be read. In the span `reads`, in seconds, a foreground reads
/// one page after the other; without a span there is none.
fn with_a_reader(mib_per_s: u64, seconds: u64, reads: Option<std::ops::Range<u64>>) -> VolumeModel {
    VolumeModel {
        bytes_per_s: Bytes::mib(mib_per_s).0 as f64,
        foreground: reads.map(|span| Nanos::from_secs(span.start)..Nanos::from_secs(span.end)),
        ..VolumeModel::cold(Bytes::mib(mib_per_s * seconds))
    }
}

#[test]
fn a_foreground_of_one_page_is_soon_seen_and_never_starved_however_slow_the_volume() {
    for mib_per_s in [2, 10, 25, 40, 125] {
        let alone = warm_when_idle(with_a_reader(mib_per_s, 60, None), 0..0, 0);
        assert_eq!(alone.foreground, None);
        assert!(
            alone.seconds < 1.04 * 60.0,
            "{mib_per_s}: {}",
            alone.seconds
        );
        // A foreground from the start, and one that begins while the warming goes at full speed.
        for from in [0, 20] {
            let reads = Some(from..from + 30);
            let warming = warm_when_idle(with_a_reader(mib_per_s, 60, reads), 0..0, 0);
            // A block of 512 KiB takes a quarter of a second at 2 MiB/s.
            let longest = f64::max(0.15, 1.5 / mib_per_s as f64);
            let unseen = latencies(&warming.foreground_requests, from + 2..from + 6);
            let later = latencies(&warming.foreground_requests, from + 10..from + 30);
            let first = unseen.iter().sum::<f64>() / unseen.len() as f64;
            println!(
                "{mib_per_s} MiB/s, from {from} s: {:.0} reads/s of {:.1} ms at first, then {:.0} of p90 {:.2} ms; \
                 {:.1} s, alone {:.1}; {:?}",
                unseen.len() as f64 / 4.0,
                first * 1e3,
                later.len() as f64 / 20.0,
                p90(&later) * 1e3,
                warming.seconds,
                alone.seconds,
                warming.foreground,
            );
            assert!(*unseen.last().unwrap() < longest, "{mib_per_s}: {unseen:?}");
            assert!(warming.foreground.is_some(), "{mib_per_s} {from}");
            // Number of reads that the foreground would make alone.
            let page_s = f64::max(1.0 / 3000.0, 4096.0 / Bytes::mib(mib_per_s).0 as f64);
            let without = 20.0 / (page_s + 0.0005);
            assert!(
                later.len() as f64 > 0.45 * without,
                "{mib_per_s}: {} of {without}",
                later.len()
            );
            let limit_s = f64::max(0.0075, 1.2 * 0.5 / mib_per_s as f64);
            assert!(p90(&later) < limit_s, "{mib_per_s}: {}", p90(&later));
        }
    }
}

#[test]
fn failed_reads_are_no_io_of_others() {
    let size = Bytes::gib(1);
    let volume = VolumeModel {
        bad: Ranges::from(size.0 / 2..size.0 / 2 + Bytes::mib(40).0)
            .iter()
            .collect(),
        ..VolumeModel::cold(size)
    };
    let warming = warm_when_idle(volume, 0..0, 0);
    assert_eq!(warming.foreground, None);
    assert!(warming.others_share < 0.02, "{}", warming.others_share);
}
