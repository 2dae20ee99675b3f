//! Checks of simulated volumes.

mod stalls;

use std::collections::BTreeSet;
use std::fs::File;

use engine::list::simulated::{SimulatedVolume, VolumeModel as Simulated};
use engine::list::{BufferMode, RequestSource};

use super::super::limit::SharedRateLimit as Shared;
use super::super::pace::{IoPolicy, PROBE_MARK, Pace};
use super::burst::Burst;
use super::pairs::SAMPLED_PLACES;
use super::volume_pace::VolumePace;
use super::*;
use record::Nanos;
use study::cold::sample::Pair;
use study::pace::Targets;

const BLOCK: Bytes = Bytes::kib(512);

/// A pace without a bound.
fn unbound(limit: &Shared) -> VolumePace<'_> {
    VolumePace::new(Pace::unbound(limit), None)
}

/// A pace that keeps a latency target. Without counters of the kernel a foreground is always assumed.
fn beside(limit: &Shared, targets: Targets) -> VolumePace<'_> {
    VolumePace::new(Pace::new(limit, IoPolicy::Target(targets)), None)
}

#[test]
fn places_are_blocks_all_over_the_volume_and_none_comes_twice() {
    let size = Bytes::gib(10);
    let all = places(size, BLOCK, 7);
    assert_eq!(all.len() as u64, SAMPLED_PLACES);
    let distinct: BTreeSet<u64> = all.iter().copied().collect();
    assert_eq!(distinct.len() as u64, SAMPLED_PLACES);
    let part = size.0 / SAMPLED_PLACES;
    for (index, place) in distinct.iter().enumerate() {
        let from = index as u64 * part;
        assert!((from / BLOCK.0 * BLOCK.0..from + part).contains(place));
        assert!(place.is_multiple_of(BLOCK.0));
    }
    assert_ne!(all, places(size, BLOCK, 8));
    assert!(!all.is_sorted());
    assert_eq!(places(Bytes::mib(5), BLOCK, 1).len(), 10);
}

#[test]
fn each_first_read_is_in_flight_with_one_of_a_place_that_was_read_before() {
    for count in [22, 64, 400] {
        let size = Bytes(count * BLOCK.0);
        let volume = SimulatedVolume::new(Simulated::cold(size));
        let places = places(size, BLOCK, 5);
        let limit = Shared::new(None);
        let mut pairs = PairedReads::new(&places, 5, unbound(&limit));
        run(&volume, &mut pairs, DEPTH + 1, Bytes(u64::from(PAGE)));
        let made = volume.requests();
        let read: Vec<u64> = made.iter().map(|one| one.request.offset).collect();
        let mut first_issued = 0;
        for (at, one) in made.iter().enumerate() {
            let is_first = !read[..at].contains(&read[at]);
            let place = one.request.tag / 2;
            if !is_first || place < LEAD_PLACES as u64 {
                continue;
            }
            let beside = made
                .iter()
                .find(|other| other.request.tag == one.request.tag ^ 1)
                .unwrap();
            assert_eq!(beside.began, one.began, "{count} {place}");
            let before = made
                .iter()
                .find(|other| other.request.offset == beside.request.offset)
                .unwrap();
            assert!(before.completed <= one.began, "{count} {place}");
            first_issued += usize::from(made[at - 1] != *beside);
        }
        assert_eq!(pairs.pairs().len() as u64, count - LEAD_PLACES as u64);
        let judged = count as usize - LEAD_PLACES;
        assert!((judged / 4..=3 * judged / 4).contains(&first_issued));
    }
}

fn run(volume: &SimulatedVolume, source: &mut dyn RequestSource, depth: u32, largest: Bytes) {
    let list = List {
        files: &[&File::open("/dev/null").unwrap()],
        memory: BufferMode::Reads,
        max_in_flight: depth,
        largest,
        interface: IoInterface::Auto,
        interrupt: &AtomicBool::new(false),
    };
    volume.run(&list, source).unwrap();
}

/// Checks a simulated volume whose bytes from offset `warm_from` on were read before.
fn checked(volume: &SimulatedVolume, warm_from: u64) -> (Sample, Option<Forecast>) {
    let size = volume.volume().size;
    let run = |source: &mut dyn RequestSource, depth, largest| run(volume, source, depth, largest);
    let warm: Vec<u64> = (warm_from..size.0 / BLOCK.0)
        .map(|index| index * BLOCK.0)
        .collect();
    let limit = Shared::new(None);
    let pace = || VolumePace::new(Pace::new(&limit, IoPolicy::Short), None);
    run(
        &mut Burst::new(&warm, BLOCK, size, pace()),
        burst::DEPTH + 1,
        BLOCK,
    );
    let places = places(size, BLOCK, 3);
    let mut pairs = PairedReads::new(&places, 3, unbound(&limit));
    run(&mut pairs, DEPTH + 1, Bytes(u64::from(PAGE)));
    let sample = assess(&pairs.pairs()).unwrap();
    let mut burst = Burst::new(&places, BLOCK, size, pace());
    run(&mut burst, burst::DEPTH + 1, BLOCK);
    let forecast = forecast_of(&sample, size, BLOCK, burst.rate().unwrap());
    (sample, forecast)
}

#[test]
fn the_cold_share_of_a_simulated_volume_is_found() {
    let size = Bytes::gib(4);
    let blocks = size.0 / BLOCK.0;
    let volume = SimulatedVolume::new(Simulated::cold(size));
    let (sample, forecast) = checked(&volume, blocks / 4);
    assert!(is_cold(&sample) && sample.cold.contains(0.25), "{sample:?}");
    let penalty = sample.penalty.unwrap().median_s.mean;
    assert!((0.025..0.035).contains(&penalty), "{penalty}");
    let seconds = forecast.unwrap().seconds;
    let cap = size.0 as f64 / Bytes::mib(125).0 as f64;
    assert!((0.8 * cap..1.3 * cap).contains(&seconds), "{seconds} {cap}");
    let warm = SimulatedVolume::new(Simulated::cold(size));
    let (sample, _) = checked(&warm, 0);
    assert!(!is_cold(&sample), "{sample:?}");
}

#[test]
fn a_first_read_that_is_slower_by_a_cache_is_no_cold_one() {
    let pairs = |first_s: f64| {
        let pair = |index: u32| Pair {
            first_s: if index.is_multiple_of(3) {
                first_s
            } else {
                0.001
            },
            warm_s: 0.001 + f64::from(index) * 1e-7,
        };
        assess(&(0..300).map(pair).collect::<Vec<_>>()).unwrap()
    };
    let (cache, fetch) = (pairs(0.005), pairs(0.04));
    assert!(!cache.differs && !is_cold(&cache), "{cache:?}");
    assert!(fetch.differs && is_cold(&fetch), "{fetch:?}");
}

#[test]
fn beside_a_foreground_pairs_go_one_after_the_other_and_the_cold_share_is_the_same() {
    let size = Bytes::gib(4);
    let places = places(size, BLOCK, 3);
    let limit = Shared::new(None);
    let checked = |paced| {
        let volume = SimulatedVolume::new(Simulated::cold(size));
        let mut pairs = PairedReads::new(&places, 3, paced);
        run(&volume, &mut pairs, DEPTH + 1, Bytes(u64::from(PAGE)));
        let made = volume.requests();
        let reads = || made.iter().filter(|one| one.request.tag != PROBE_MARK);
        let at_once = |at: Nanos| {
            let in_flight = reads().filter(|one| one.began <= at && at < one.completed);
            in_flight.count()
        };
        let most = reads().map(|one| at_once(one.began)).max().unwrap();
        let sample = assess(&pairs.pairs()).unwrap();
        assert!(is_cold(&sample) && sample.cold.share > 0.99, "{sample:?}");
        let at_first = reads().filter(|one| one.began < Nanos::from_secs(1));
        (most, made.len() - reads().count(), at_first.count())
    };
    let (most, probes, at_first) = checked(unbound(&limit));
    assert_eq!((most, probes), (DEPTH as usize, 0));
    assert!(at_first > 20, "{at_first}");
    let (most, probes, at_first) = checked(beside(&limit, Targets::default()));
    assert_eq!(most, 2);
    assert!(probes > 50, "{probes}");
    // For a second the foreground is measured alone, except for the first read, which the probes need.
    assert_eq!(at_first, 1);
}

#[test]
fn the_burst_is_paced_by_what_others_may_feel() {
    let size = Bytes::gib(4);
    let volume = SimulatedVolume::new(Simulated::cold(size));
    let places = places(size, BLOCK, 3);
    let limit = Shared::new(None);
    let targets = Targets {
        mean_s: None,
        p99_s: Some(0.005),
    };
    let mut burst = Burst::new(&places, BLOCK, size, beside(&limit, targets));
    let list = List {
        files: &[&File::open("/dev/null").unwrap()],
        memory: BufferMode::Reads,
        max_in_flight: burst::DEPTH + 1,
        largest: BLOCK,
        interface: IoInterface::Auto,
        interrupt: &AtomicBool::new(false),
    };
    // The places are warm in a burst.
    let mut pairs = PairedReads::new(&places, 3, unbound(&limit));
    volume.run(&list, &mut pairs).unwrap();
    let began = volume.now();
    volume.run(&list, &mut burst).unwrap();
    let made = volume.requests();
    let probes = made
        .iter()
        .filter(|one| one.began >= began && one.request.len == PAGE);
    let (slow, all) = probes.fold((0, 0), |(slow, all), one| {
        let took = one.completed - one.began;
        (slow + u32::from(took > Nanos(10_000_000)), all + 1)
    });
    assert!(all > 100, "{all}");
    assert!(20 * slow < all, "{slow} of {all}");
    // Blocks that arrived while the pacer searched for its rate do not count. A requested target is kept with a margin,
    // and approached slowly.
    let rate = burst.rate().unwrap();
    assert!(rate.mean > Bytes::mib(5).0 as f64, "{rate:?}");
}
