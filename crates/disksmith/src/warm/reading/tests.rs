//! Readings of simulated volumes.

use std::cell::Cell;
use std::fs::File;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use engine::Choice;
use engine::list::simulated::{SimulatedList, Volume};
use engine::list::{Deed, Ended, List, Lister as _};

use super::super::pace::{Limit, Manners};
use super::super::plan::{Extent, Known};
use super::*;

const UNIT: Bytes = Bytes::kib(512);

/// A device that is there, of a size that the test may change.
struct There {
    size: Rc<Cell<Option<Bytes>>>,
    /// After so many looks it becomes the size beside.
    later: Option<(u32, Option<Bytes>)>,
    looks: Cell<u32>,
    told: u32,
    manners: Manners,
    /// What the kernel counts, asked for at each interval.
    counts: Option<Counts>,
}

/// What a kernel counts at each interval.
type Counts = Box<dyn FnMut() -> Counted>;

impl There {
    fn new(size: Bytes) -> There {
        There {
            size: Rc::new(Cell::new(Some(size))),
            later: None,
            looks: Cell::new(0),
            told: 0,
            manners: Manners::None,
            counts: None,
        }
    }
}

impl Watch for There {
    fn size(&self) -> Option<Bytes> {
        self.looks.set(self.looks.get() + 1);
        if let Some((looks, size)) = self.later
            && self.looks.get() > looks
        {
            self.size.set(size);
        }
        self.size.get()
    }

    fn counted(&mut self) -> Option<Counted> {
        self.counts.as_mut().map(|counts| counts())
    }

    fn stands(&mut self, at: &At<'_>) {
        assert!(at.left.0 + at.done.total().0 >= at.unreadable.total().0);
        self.told += 1;
    }
}

/// Reads all of a volume but what is done, with what a test then looks at.
fn read<T>(
    volume: &SimulatedList,
    there: &mut There,
    done: Ranges,
    limit: Option<Bytes>,
    then: impl FnOnce(&Reading<'_>) -> T,
) -> T {
    let size = volume.volume().size;
    let plan = Plan::new(&Known::default(), size, UNIT, Extent::All).without(&done);
    let (_, plans) = std::sync::mpsc::sync_channel(1);
    read_plan(volume, there, (plan, Later::new(plans)), done, limit, then)
}

/// Reads what a plan names, until another one comes.
fn read_plan<T>(
    volume: &SimulatedList,
    there: &mut There,
    (plan, later): (Plan, Later),
    done: Ranges,
    limit: Option<Bytes>,
    then: impl FnOnce(&Reading<'_>) -> T,
) -> T {
    let size = volume.volume().size;
    let limit = Limit::new(limit, 1);
    let pace = Pace::new(&limit, there.manners, Some(Bytes::kib(128)));
    let turns = Turns::new(1, true);
    let mut reading = Reading::new((&plan, later), size, UNIT, done, pace, (&turns, 0), there);
    let list = List {
        file: &File::open("/dev/null").unwrap(),
        deed: Deed::Read,
        most_in_flight: MOST_DEPTH as u32 + 1,
        largest: UNIT,
        choice: Choice::Auto,
        interrupt: &AtomicBool::new(false),
    };
    let end = volume.run(&list, &mut reading).unwrap();
    assert_eq!(end.ended, Ended::End);
    assert_eq!(
        reading.work.left(),
        reading.work.truly_left(),
        "the running total is the true one"
    );
    then(&reading)
}

#[test]
fn a_cold_volume_is_read_once_at_its_cap() {
    let size = Bytes::gib(8);
    let volume = SimulatedList::new(Volume::cold(size));
    let mut there = There::new(size);
    let (done, rate, verdict) = read(&volume, &mut there, Ranges::new(), None, |reading| {
        let seconds = volume.now().as_secs_f64();
        let rate = reading.read().0 as f64 / seconds;
        (reading.done_ranges().clone(), rate, reading.verdict())
    });
    assert_eq!(done, Ranges::all(size));
    assert_eq!(volume.cold_blocks(), 0);
    assert_eq!(volume.made().len() as u64, size.0 / UNIT.0, "none twice");
    let cap = Bytes::mib(125).0 as f64;
    assert!(rate > 0.95 * cap, "{rate}");
    let depth = verdict.unwrap().depth;
    assert!(
        (8..=40).contains(&depth),
        "what fills the cap and no more: {depth}"
    );
    assert!(there.told > 50);
}

#[test]
fn what_is_done_is_not_read_again_and_the_limit_is_kept() {
    let size = Bytes::gib(1);
    let volume = SimulatedList::new(Volume::cold(size));
    let half = Ranges::from(0..size.0 / 2);
    let limit = Bytes::mib(20);
    let read_now = read(
        &volume,
        &mut There::new(size),
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
fn what_cannot_be_read_is_found_to_the_page_and_the_rest_is_read() {
    let size = Bytes::mib(64);
    let bad = [
        UNIT.0 * 3 + 8192..UNIT.0 * 3 + 12288,
        UNIT.0 * 9..UNIT.0 * 11,
    ];
    let volume = SimulatedList::new(Volume {
        bad: bad.to_vec(),
        ..Volume::cold(size)
    });
    read(
        &volume,
        &mut There::new(size),
        Ranges::new(),
        None,
        |reading| {
            let bad: Ranges = bad.iter().cloned().collect();
            assert_eq!(reading.unreadable(), &bad);
            assert!(!reading.is_coarse());
            assert_eq!(reading.done_ranges(), &Ranges::all(size).subtract(&bad));
            assert_eq!(reading.over(), Over::All);
        },
    );
}

#[test]
fn a_disk_with_many_bad_blocks_is_not_looked_at_page_by_page_for_ever() {
    let size = Bytes::gib(1);
    let bad = Ranges::from(0..size.0 / 2);
    let volume = SimulatedList::new(Volume {
        bad: bad.iter().collect(),
        ..Volume::cold(size)
    });
    let mut there = There::new(size);
    read(&volume, &mut there, Ranges::new(), None, |reading| {
        assert!(reading.is_coarse());
        assert_eq!(reading.unreadable(), &bad);
        let spent = reading.work.spent(volume.now());
        assert!(
            spent < crate::reading::LONGEST + Nanos::from_secs(1),
            "{spent:?}"
        );
    });
}

#[test]
fn a_device_that_goes_away_ends_it_and_is_not_called_unreadable() {
    let size = Bytes::gib(4);
    let volume = SimulatedList::new(Volume {
        gone_at: Some(Nanos::from_secs(5)),
        ..Volume::cold(size)
    });
    read(
        &volume,
        &mut There::new(size),
        Ranges::new(),
        None,
        |reading| {
            assert_eq!(reading.over(), Over::Gone);
            assert!(reading.unreadable().is_empty());
            assert!(reading.read() > Bytes::mib(200), "{:?}", reading.read());
        },
    );
    // Or it answers EIO, as most drivers have it, and has no size any more.
    let volume = SimulatedList::new(Volume {
        bad: Ranges::from(size.0 / 2..size.0).iter().collect(),
        ..Volume::cold(size)
    });
    let mut there = There::new(size);
    there.later = Some((4, None));
    read(&volume, &mut there, Ranges::new(), None, |reading| {
        assert_eq!(reading.over(), Over::Gone);
        assert!(reading.unreadable().is_empty());
    });
}

#[test]
fn a_volume_that_shrinks_is_read_to_its_new_end() {
    let size = Bytes::gib(1);
    let smaller = Bytes::mib(700);
    let volume = SimulatedList::new(Volume {
        bad: Ranges::from(smaller.0..size.0).iter().collect(),
        ..Volume::cold(size)
    });
    let mut there = There::new(size);
    there.later = Some((2, Some(smaller)));
    read(&volume, &mut there, Ranges::new(), None, |reading| {
        assert_eq!(reading.over(), Over::All);
        assert_eq!(reading.sizes(), (smaller, smaller));
        assert_eq!(reading.done_ranges(), &Ranges::all(smaller));
        assert!(
            reading.unreadable().is_empty(),
            "{:?}",
            reading.unreadable()
        );
    });
}

/// What is named, used and on the whole volume.
fn known(size: Bytes) -> Known {
    let unit = UNIT.0;
    Known {
        first: Ranges::from(40 * unit..60 * unit),
        used: Some(Ranges::from(size.0 / 2..size.0 / 2 + 100 * unit)),
        held: None,
    }
}

fn order(volume: &SimulatedList) -> Vec<u64> {
    let made = volume.made();
    made.iter().map(|one| one.request.offset / UNIT.0).collect()
}

#[test]
fn reading_begins_before_it_is_known_what_is_used() {
    let size = Bytes::gib(1);
    let volume = SimulatedList::new(Volume::cold(size));
    let unknown = Known {
        used: None,
        ..known(size)
    };
    let at_once = Plan::new(&unknown, size, UNIT, Extent::All);
    let last = Plan::new(&known(size), size, UNIT, Extent::All);
    // It is taken note of at the first look at the device.
    let (send, plans) = std::sync::mpsc::sync_channel(1);
    send.send(last).unwrap();
    let plans = (at_once, Later::new(plans));
    let mut there = There::new(size);
    read_plan(&volume, &mut there, plans, Ranges::new(), None, |reading| {
        assert_eq!(reading.done_ranges(), &Ranges::all(size));
    });
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
fn what_is_not_wanted_is_not_read_while_it_is_not_known_what_is() {
    let size = Bytes::gib(1);
    let volume = SimulatedList::new(Volume::cold(size));
    let at_once = Plan::new(&known(size), size, UNIT, Extent::First);
    let last = Plan::new(&known(size), size, UNIT, Extent::Used);
    let (send, plans) = std::sync::mpsc::sync_channel(1);
    let sending = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        send.send(last).unwrap();
    });
    let plans = (at_once, Later::new(plans));
    let mut there = There::new(size);
    read_plan(&volume, &mut there, plans, Ranges::new(), None, |_| {});
    sending.join().unwrap();
    let used = size.0 / 2 / UNIT.0;
    let expected: Vec<u64> = (40..60).chain(used..used + 100).collect();
    assert_eq!(order(&volume), expected);
    // Nobody found out anything: it ends with what is known.
    let volume = SimulatedList::new(Volume::cold(size));
    let at_once = Plan::new(&known(size), size, UNIT, Extent::First);
    let (_, plans) = std::sync::mpsc::sync_channel(1);
    let plans = (at_once, Later::new(plans));
    read_plan(&volume, &mut there, plans, Ranges::new(), None, |_| {});
    assert_eq!(order(&volume).len(), 20);
}

#[test]
fn bad_places_are_looked_at_several_at_once() {
    let size = Bytes::mib(64);
    let volume = SimulatedList::new(Volume {
        bad: Ranges::from(UNIT.0 * 3..UNIT.0 * 5).iter().collect(),
        ..Volume::cold(size)
    });
    let mut there = There::new(size);
    read(&volume, &mut there, Ranges::new(), None, |_| {});
    let made = volume.made();
    let pieces: Vec<_> = made
        .iter()
        .filter(|one| u64::from(one.request.len) < UNIT.0)
        .collect();
    let with = |one: &&engine::list::simulated::Made| {
        let flies = |other: &&&engine::list::simulated::Made| {
            other.began <= one.began && one.began < other.answered
        };
        pieces.iter().filter(flies).count()
    };
    let most = pieces.iter().map(with).max().unwrap();
    assert!(
        (4..=crate::reading::PIECES_IN_FLIGHT).contains(&most),
        "{most}"
    );
}

/// Counts as the kernel does on a volume on which others read `others` pages in each half second from
/// one of its times to another.
fn counting(volume: &Rc<SimulatedList>, others: std::ops::Range<u64>, pages: u64) -> Counts {
    let volume = Rc::clone(volume);
    let (mut before, mut looks) = (0, 0);
    Box::new(move || {
        looks += 1;
        // The list's own time is not to be had here; looks are half a second apart.
        let now = Nanos(looks * 500_000_000);
        let made = volume.made();
        let own = made.iter().filter(|one| one.answered <= now);
        let bytes: u64 = own.map(|one| u64::from(one.request.len)).sum();
        let theirs = if others.contains(&(looks / 2)) {
            4096 * pages
        } else {
            0
        };
        let read_bytes = bytes.saturating_sub(before) + theirs;
        before = bytes.max(before);
        Counted {
            read_bytes,
            ..Counted::default()
        }
    })
}

/// A warming that takes what is idle: its seconds, the p90 of its probes late in the time in which
/// others read, how many probes there were, for how long it yielded and the others' share.
fn idle(others: std::ops::Range<u64>) -> (f64, Option<f64>, usize, f64, f64) {
    let size = Bytes::gib(6);
    let volume = Rc::new(SimulatedList::new(Volume::cold(size)));
    let mut there = There::new(size);
    there.manners = Manners::Idle;
    there.counts = Some(counting(&volume, others.clone(), 500));
    let (yielded, share) = read(&volume, &mut there, Ranges::new(), None, |reading| {
        assert_eq!(reading.done_ranges(), &Ranges::all(size));
        (reading.yielded(), reading.others_share().unwrap())
    });
    let made = volume.made();
    let probes = made.iter().filter(|one| one.request.len == PROBE_BYTES);
    let late = Nanos::from_secs(others.start + 12)..Nanos::from_secs(others.end);
    let mut felt: Vec<f64> = probes
        .clone()
        .filter(|one| late.contains(&one.began))
        .map(|one| (one.answered - one.began).as_secs_f64())
        .collect();
    felt.sort_by(f64::total_cmp);
    let p90 = felt.get(felt.len() * 9 / 10).copied();
    let seconds = volume.now().as_secs_f64();
    (seconds, p90, probes.count(), yielded.as_secs_f64(), share)
}

#[test]
fn by_default_nothing_is_lost_where_nobody_is_and_others_are_left_as_they_are() {
    let cap_s = Bytes::gib(6).0 as f64 / Bytes::mib(125).0 as f64;
    let (seconds, _, probes, yielded, share) = idle(0..0);
    assert_eq!((probes, yielded), (0, 0.0));
    assert!(seconds < 1.04 * cap_s, "{seconds} of {cap_s}");
    assert!(share < 0.01, "{share}");
    let (seconds, p90, probes, yielded, share) = idle(5..40);
    assert!(p90.unwrap() < 0.0075, "{p90:?}");
    assert!(probes > 1000, "{probes}");
    assert!((25.0..45.0).contains(&yielded), "{yielded}");
    assert!(seconds < 1.9 * cap_s, "{seconds} of {cap_s}");
    assert!((0.005..0.05).contains(&share), "{share}");
}
