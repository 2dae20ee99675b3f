//! The work on one disk, on simulated disks with known properties. The stamp is in a real file.

use std::sync::atomic::AtomicBool;

use engine::list::Op;
use engine::list::simulated::{SimulatedVolume, VolumeModel};

use super::*;
use crate::checkpoint::{Disk, Method, for_tests};
use crate::place::on_file;

const SIZE: Bytes = Bytes(300 * (1 << 20) + 4096 + 512);

/// A place whose writes between the stamp and the end of the disk go to a simulation.
fn place() -> ClaimedDisk {
    on_file(SIZE)
}

fn disk() -> Disk {
    for_tests(SIZE)
}

fn volume() -> VolumeModel {
    VolumeModel {
        bytes_per_s: Bytes::mib(100).0 as f64,
        latency: Nanos(1_000_000),
        ..VolumeModel::cold(SIZE)
    }
}

/// Result of zeroing a disk, and its state afterwards.
fn zeroed(
    place: &ClaimedDisk,
    disk: Disk,
    simulated: &SimulatedVolume,
    limit: Option<Bytes>,
) -> (Result<(), IncompleteReason>, Disk) {
    let shared = DiskState::new(disk);
    let interrupt = AtomicBool::new(false);
    let work = Work {
        place,
        shared: &shared,
        lister: simulated,
        limit,
        throttle: None,
        interrupt: &interrupt,
    };
    let ended = work.run();
    assert!(shared.ended.load(Relaxed));
    let durable = shared.durable();
    assert_eq!(durable, *lock(&shared.now));
    (ended, durable)
}

/// Ranges that were written successfully to a simulated disk.
fn written(simulated: &SimulatedVolume) -> Ranges {
    let made = simulated.requests().into_iter();
    let well = made.filter(|made| made.result.is_ok() && made.request.op == Op::Write);
    well.map(|made| {
        let request = made.request;
        request.offset..request.offset + u64::from(request.len)
    })
    .collect()
}

#[test]
fn all_is_written_but_the_head_and_the_pace_is_the_disks() {
    let (place, simulated) = (place(), SimulatedVolume::new(volume()));
    let (ended, disk) = zeroed(&place, disk(), &simulated, None);
    assert_eq!(ended, Ok(()));
    assert_eq!(disk.zeroed, Ranges::all(SIZE));
    assert_eq!(written(&simulated), Ranges::from(4096..SIZE.0));
    // The head, with the signatures of the former content, is zeroed first.
    assert_eq!(simulated.requests()[0].request.offset, 4096);
    assert_eq!(place.stamp().unwrap().as_ref(), Some(&disk.stamp));
    let rate = disk.pace.interval().unwrap();
    assert!(
        (rate.mean / Bytes::mib(100).0 as f64 - 1.0).abs() < 0.05,
        "{rate:?}"
    );
    let passes = disk.passes.unwrap();
    assert_eq!(passes.places(), 64);
    assert!((passes.penalty().unwrap().ratio - 1.0).abs() < 0.01);
    // Only the sample was written twice.
    let asked: u64 = simulated
        .requests()
        .iter()
        .map(|made| u64::from(made.request.len))
        .sum();
    assert_eq!(asked, SIZE.0 - 4096 + 64 * PLACE.0);
}

#[test]
fn a_limit_is_kept_to() {
    let (place, simulated) = (place(), SimulatedVolume::new(volume()));
    let (ended, disk) = zeroed(&place, disk(), &simulated, Some(Bytes::mib(40)));
    assert_eq!(ended, Ok(()));
    let rate = disk.pace.interval().unwrap().mean / Bytes::MIB.0 as f64;
    assert!((38.0..42.0).contains(&rate), "{rate}");
}

#[test]
fn only_the_bad_blocks_are_lost_and_they_are_named() {
    let bad = [5_000_000..5_000_001, 200 << 20..(200 << 20) + 8192];
    let simulated = SimulatedVolume::new(VolumeModel {
        bad: bad.to_vec(),
        ..volume()
    });
    let (ended, disk) = zeroed(&place(), disk(), &simulated, None);
    assert_eq!(ended, Ok(()));
    let lost: Ranges = bad.into_iter().collect();
    assert_eq!(disk.failed, lost.aligned(RETRY_PIECE, SIZE));
    assert_eq!(disk.zeroed, Ranges::all(SIZE).subtract(&disk.failed));
    assert!(disk.why_failed.is_some());
}

#[test]
fn a_disk_that_goes_is_not_called_bad() {
    let simulated = SimulatedVolume::new(VolumeModel {
        detached_at: Some(Nanos::from_secs(3)),
        ..volume()
    });
    let (ended, disk) = zeroed(&place(), disk(), &simulated, None);
    assert!(
        matches!(&ended, Err(IncompleteReason::Gone(why)) if why.contains("gone")),
        "{ended:?}"
    );
    assert!(disk.failed.is_empty());
    assert_eq!(
        disk.zeroed.subtract(&written(&simulated)),
        Ranges::from(place().stamped())
    );
}

#[test]
fn a_disk_that_answers_only_with_errors_is_given_up() {
    let simulated = SimulatedVolume::new(VolumeModel {
        bad: Ranges::all(SIZE).iter().collect(),
        ..volume()
    });
    let mut place = place();
    // It cannot be read either.
    let mut unreadable = std::fs::File::options();
    let file = tempfile::NamedTempFile::new().unwrap();
    place.direct = unreadable.write(true).open(file.path()).unwrap();
    let begun = Disk {
        zeroed: Ranges::from(place.head()),
        ..disk()
    };
    let (ended, _) = zeroed(&place, begun, &simulated, None);
    assert!(
        matches!(&ended, Err(IncompleteReason::Gone(why)) if why.contains("read")),
        "{ended:?}"
    );
    assert!(
        simulated.requests().len() < 100,
        "{}",
        simulated.requests().len()
    );
}

#[test]
fn what_is_zeroed_already_is_not_written_again() {
    let (place, simulated) = (place(), SimulatedVolume::new(volume()));
    let before: Ranges = [0..100 << 20, 150 << 20..160 << 20].into_iter().collect();
    let begun = Disk {
        zeroed: before.clone(),
        ..disk()
    };
    let (ended, disk) = zeroed(&place, begun, &simulated, None);
    assert_eq!(ended, Ok(()));
    assert_eq!(disk.zeroed, Ranges::all(SIZE));
    assert!(written(&simulated).intersect(&before).is_empty());
    // Places that the first start did not sample cannot be sampled any more.
    assert_eq!(disk.passes, None);
}

#[test]
fn what_a_failed_flush_may_have_lost_is_never_called_durable() {
    let mut place = place();
    let shared = DiskState::new(disk());
    lock(&shared.now).zeroed.insert(0..100);
    assert_eq!(shared.make_durable(&place), Ok(()));
    let before = shared.take().unwrap();
    lock(&shared.now).zeroed.insert(100..200);
    // A character device cannot be flushed; the next flush succeeds, as after a lost write.
    let null = std::fs::File::open("/dev/null").unwrap();
    let whole = std::mem::replace(&mut place.direct, null);
    let failed = shared.make_durable(&place);
    assert!(
        matches!(&failed, Err(IncompleteReason::Gone(why)) if why.contains("could not be flushed")),
        "{failed:?}"
    );
    place.direct = whole;
    assert_eq!(shared.make_durable(&place), failed);
    assert_eq!((shared.take(), shared.durable()), (None, before));
    // The disk's thread ends at once, and the ranges that are not certain remain to be zeroed.
    let simulated = SimulatedVolume::new(volume());
    let work = Work {
        place: &place,
        shared: &shared,
        lister: &simulated,
        limit: None,
        throttle: None,
        interrupt: &AtomicBool::new(false),
    };
    assert_eq!(work.run(), failed);
    assert!(simulated.requests().is_empty());
    assert_eq!(shared.durable().zeroed, Ranges::from(0..100));
}

#[test]
fn a_bad_block_in_the_first_mebibyte_costs_that_block() {
    let bad = 8192..8193;
    let simulated = SimulatedVolume::new(VolumeModel {
        bad: vec![bad],
        ..volume()
    });
    let (ended, disk) = zeroed(&place(), disk(), &simulated, None);
    assert_eq!(ended, Ok(()));
    assert_eq!(disk.failed, Ranges::from(8192..12288));
}

#[test]
fn a_stamp_that_cannot_be_written_costs_only_the_going_on() {
    let mut place = place();
    // This file cannot be written, and can be flushed.
    let whole = tempfile::NamedTempFile::new().unwrap();
    place.direct = std::fs::File::open(whole.path()).unwrap();
    let simulated = SimulatedVolume::new(volume());
    let (ended, disk) = zeroed(&place, disk(), &simulated, None);
    assert_eq!(ended, Ok(()));
    assert!(disk.unstamped);
    // The retry by writing succeeded.
    assert_eq!(disk.zeroed, Ranges::all(SIZE));
}

#[test]
fn places_that_fail_after_the_device_zeroed_itself_are_not_called_zeroed() {
    let of_all = Ranges::all(SIZE);
    let bad = 1 << 20..SIZE.0 / 4096 * 4096;
    let simulated = SimulatedVolume::new(VolumeModel {
        bad: vec![bad],
        ..volume()
    });
    let begun = Disk {
        method: Method::Discard,
        zeroed: of_all.clone(),
        ..disk()
    };
    let place = place();
    place.put_stamp(&begun.stamp).unwrap();
    let (ended, disk) = zeroed(&place, begun, &simulated, None);
    assert_eq!(ended, Ok(()));
    assert_eq!(disk.failed.total(), Bytes::mib(64));
    assert_eq!(disk.zeroed, of_all.subtract(&disk.failed));
    assert!(disk.why_failed.is_some());
}

#[test]
fn what_the_device_did_not_zero_is_written_however_much_it_is() {
    let place = place();
    let simulated = SimulatedVolume::new(volume());
    let begun = Disk {
        method: Method::Discard,
        failed: Ranges::from(1 << 20..SIZE.0),
        zeroed: Ranges::from(0..1 << 20),
        passes: Some(DoubleWriteTimes::default()),
        ..disk()
    };
    place.put_stamp(&begun.stamp).unwrap();
    let (ended, disk) = zeroed(&place, begun, &simulated, None);
    assert_eq!(ended, Ok(()));
    assert_eq!(
        (disk.failed, disk.zeroed),
        (Ranges::new(), Ranges::all(SIZE))
    );
}

#[test]
fn a_disk_whose_size_changes_is_not_called_zeroed() {
    let (place, simulated) = (place(), SimulatedVolume::new(volume()));
    place.direct.set_len(SIZE.0 * 2).unwrap();
    let (ended, _) = zeroed(&place, disk(), &simulated, None);
    assert!(
        matches!(&ended, Err(IncompleteReason::Gone(why)) if why.contains("size changed")),
        "{ended:?}"
    );
}

#[test]
fn a_disk_to_which_nothing_can_be_written_is_given_up() {
    let mut place = place();
    let unwritable = tempfile::NamedTempFile::new().unwrap();
    place.direct = std::fs::File::open(unwritable.path()).unwrap();
    let simulated = SimulatedVolume::new(VolumeModel {
        bad: Ranges::all(SIZE).iter().collect(),
        ..volume()
    });
    let (ended, _) = zeroed(&place, disk(), &simulated, None);
    assert!(
        matches!(&ended, Err(IncompleteReason::Gone(why)) if why.contains("nothing can be written")),
        "{ended:?}"
    );
    assert!(
        simulated.requests().len() < 200,
        "{}",
        simulated.requests().len()
    );
}
