//! The work on one disk, on simulated disks whose truth is known. The stamp is in a real file.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use engine::list::simulated::{SimulatedList, Volume};
use record::Histogram;

use super::*;
use crate::zero::kept::Method;
use crate::zero::pace::Pace;
use crate::zero::place::on_file;

const SIZE: Bytes = Bytes(300 * (1 << 20) + 4096 + 512);

/// What is written between the stamp and the end of this disk goes to a simulation.
fn place() -> Place {
    on_file(SIZE)
}

fn disk() -> Disk {
    Disk {
        stamp: "20261122-000437-k7q2/1".to_owned(),
        path: PathBuf::from("/dev/test"),
        name: "test".to_owned(),
        model: None,
        serial: None,
        size: SIZE,
        method: Method::Writes,
        zeroed: Ranges::new(),
        failed: Ranges::new(),
        why_failed: None,
        pace: Pace::new(),
        latency: Histogram::new(),
        passes: None,
        starts: 1,
    }
}

fn volume() -> Volume {
    Volume {
        bytes_per_s: Bytes::mib(100).0 as f64,
        latency: Nanos(1_000_000),
        ..Volume::cold(SIZE)
    }
}

/// What came of zeroing a disk, and where it stands then.
fn zeroed(
    place: &Place,
    disk: Disk,
    simulated: &SimulatedList,
    limit: Option<Bytes>,
) -> (Result<(), Stop>, Disk) {
    let shared = Shared::new(disk);
    let interrupt = AtomicBool::new(false);
    let work = Work {
        place,
        shared: &shared,
        lister: simulated,
        limit,
        interrupt: &interrupt,
    };
    let ended = work.run();
    assert!(shared.ended.load(Relaxed));
    let durable = lock(&shared.durable).clone().unwrap();
    assert_eq!(durable, *lock(&shared.now));
    (ended, durable)
}

/// What a simulation was asked to write and did.
fn written(simulated: &SimulatedList) -> Ranges {
    let made = simulated.made().into_iter();
    let well = made.filter(|made| made.result.is_ok() && made.deed == Deed::WriteZeros);
    well.map(|made| {
        let request = made.request;
        request.offset..request.offset + u64::from(request.len)
    })
    .collect()
}

#[test]
fn all_is_written_but_the_head_and_the_pace_is_the_disks() {
    let (place, simulated) = (place(), SimulatedList::new(volume()));
    let (ended, disk) = zeroed(&place, disk(), &simulated, None);
    assert_eq!(ended, Ok(()));
    assert_eq!(disk.zeroed, Ranges::all(SIZE));
    assert_eq!(written(&simulated), Ranges::from(place.head().end..SIZE.0));
    assert_eq!(place.stamp().unwrap().as_ref(), Some(&disk.stamp));
    let rate = disk.pace.interval().unwrap();
    assert!(
        (rate.mean / Bytes::mib(100).0 as f64 - 1.0).abs() < 0.05,
        "{rate:?}"
    );
    let passes = disk.passes.unwrap();
    assert_eq!(passes.places(), 64);
    assert!((passes.penalty().unwrap().ratio - 1.0).abs() < 0.01);
    // Nothing was written twice but the sample.
    let asked: u64 = simulated
        .made()
        .iter()
        .map(|made| u64::from(made.request.len))
        .sum();
    assert_eq!(asked, SIZE.0 - place.head().end + 64 * PLACE.0);
}

#[test]
fn a_limit_is_kept_to() {
    let (place, simulated) = (place(), SimulatedList::new(volume()));
    let (ended, disk) = zeroed(&place, disk(), &simulated, Some(Bytes::mib(40)));
    assert_eq!(ended, Ok(()));
    let rate = disk.pace.interval().unwrap().mean / Bytes::MIB.0 as f64;
    assert!((38.0..42.0).contains(&rate), "{rate}");
}

#[test]
fn only_the_bad_blocks_are_lost_and_they_are_named() {
    let bad = [5_000_000..5_000_001, 200 << 20..(200 << 20) + 8192];
    let simulated = SimulatedList::new(Volume {
        bad: bad.to_vec(),
        ..volume()
    });
    let (ended, disk) = zeroed(&place(), disk(), &simulated, None);
    assert_eq!(ended, Ok(()));
    let lost: Ranges = bad.into_iter().collect();
    assert_eq!(disk.failed, lost.aligned(SMALL, SIZE));
    assert_eq!(disk.zeroed, Ranges::all(SIZE).subtract(&disk.failed));
    assert!(disk.why_failed.is_some());
}

#[test]
fn a_disk_that_goes_is_not_called_bad() {
    let simulated = SimulatedList::new(Volume {
        gone_at: Some(Nanos::from_secs(3)),
        ..volume()
    });
    let (ended, disk) = zeroed(&place(), disk(), &simulated, None);
    assert!(
        matches!(&ended, Err(Stop::Gone(why)) if why.contains("gone")),
        "{ended:?}"
    );
    assert!(disk.failed.is_empty());
    assert_eq!(
        disk.zeroed.subtract(&written(&simulated)),
        Ranges::from(0..1 << 20)
    );
}

#[test]
fn a_disk_that_answers_only_with_errors_is_given_up() {
    let simulated = SimulatedList::new(Volume {
        bad: Ranges::all(SIZE).iter().collect(),
        ..volume()
    });
    let place = place();
    // Nothing of it is there to be read either.
    place.direct.set_len(0).unwrap();
    let begun = Disk {
        zeroed: Ranges::from(place.head()),
        ..disk()
    };
    let (ended, _) = zeroed(&place, begun, &simulated, None);
    assert!(
        matches!(&ended, Err(Stop::Gone(why)) if why.contains("read")),
        "{ended:?}"
    );
    assert!(simulated.made().len() < 100, "{}", simulated.made().len());
}

#[test]
fn what_is_zeroed_already_is_not_written_again() {
    let (place, simulated) = (place(), SimulatedList::new(volume()));
    let before: Ranges = [0..100 << 20, 150 << 20..160 << 20].into_iter().collect();
    let begun = Disk {
        zeroed: before.clone(),
        ..disk()
    };
    let (ended, disk) = zeroed(&place, begun, &simulated, None);
    assert_eq!(ended, Ok(()));
    assert_eq!(disk.zeroed, Ranges::all(SIZE));
    assert!(written(&simulated).intersect(&before).is_empty());
    // What the first start did not get to sample cannot be sampled any more.
    assert_eq!(disk.passes, None);
}
