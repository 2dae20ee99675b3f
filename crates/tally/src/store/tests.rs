//! The contract that every store must keep.

use std::collections::BTreeMap;

use super::*;
use crate::classes::ClassBounds;
use crate::event::{EventFigure, ParsedEvent};
use crate::level::Zone;
use crate::query::{Reader, Selection};

fn batch(name: u64, events: &[(&str, Seconds, f64)]) -> Batch {
    let mut sums = Sums::new(ClassBounds::default());
    for (tag, at, value) in events {
        let event = ParsedEvent {
            tag: tag.as_bytes(),
            count: 1.0,
            at: Some(*at),
            figure: EventFigure::Time(*value),
        };
        sums.add(&event, 0).unwrap();
    }
    Batch {
        key: Key::new("batch", &[&name.to_be_bytes()]),
        sums,
        keys: Vec::new(),
        advances: Vec::new(),
    }
}

fn rows(address: &StoreAddress, tag: &str, level: RollUpLevel) -> Vec<(Seconds, f64, f64, f64)> {
    let mut reader = Reader::open(std::slice::from_ref(address)).unwrap();
    let selection: Selection = tag.parse().unwrap();
    let rows = reader.rows(&selection, level, 0, Seconds::MAX / 2).unwrap();
    rows.iter()
        .map(|row| {
            let values = row.values.unwrap();
            assert_eq!(row.histogram.count(), row.count);
            assert_eq!(values.classes.iter().sum::<f64>(), row.count);
            (row.start, row.count, values.sum, values.max)
        })
        .collect()
}

fn address(folder: &tempfile::TempDir) -> StoreAddress {
    StoreAddress::Sqlite(folder.path().join("t.db"))
}

fn open(address: &StoreAddress, limits: &StoreLimits) -> Box<dyn Store> {
    address.open(None, None, limits).unwrap()
}

#[test]
fn a_batch_counts_once_however_often_it_is_applied() {
    let folder = tempfile::tempdir().unwrap();
    let address = address(&folder);
    let mut store = open(&address, &StoreLimits::default());
    let mut first = batch(1, &[("a", 0, 5.0), ("a", 59, 7.0), ("b", 61, 1.0)]);
    first.keys.push(Key::new("job", &[b"1"]));
    first.advances.push(Advance {
        source: "f".to_owned(),
        from: 0,
        to: 10,
    });
    for _ in 0..3 {
        store.apply(&first, 0).unwrap();
    }
    assert_eq!(
        rows(&address, "a", RollUpLevel::Minute),
        [(0, 2.0, 12.0, 7.0)]
    );
    assert_eq!(store.position("f").unwrap(), Some(10));
    let keys = [Key::new("job", &[b"1"]), Key::new("job", &[b"2"])];
    assert_eq!(store.known(&keys).unwrap(), [true, false]);
    // A batch that shares an identity with it is not applied at all.
    let mut second = batch(2, &[("a", 0, 1.0)]);
    second.keys = keys.to_vec();
    assert!(matches!(store.apply(&second, 0), Err(StoreError::Conflict)));
    let mut third = batch(3, &[("a", 0, 1.0)]);
    third.advances.push(Advance {
        source: "f".to_owned(),
        from: 5,
        to: 15,
    });
    assert!(matches!(store.apply(&third, 0), Err(StoreError::Conflict)));
    assert_eq!(store.known(&keys).unwrap(), [true, false]);
    assert_eq!(
        rows(&address, "a", RollUpLevel::Minute),
        [(0, 2.0, 12.0, 7.0)]
    );
}

#[test]
fn every_level_has_all_events_however_late_and_whatever_is_rolled_up() {
    let folder = tempfile::tempdir().unwrap();
    let address = address(&folder);
    let limits = StoreLimits::default();
    let mut store = open(&address, &limits);
    // A month in steps of 11 hours, each event up to a day late, with upkeep at a moving time.
    let mut random = 1_u64;
    let mut truth: BTreeMap<(RollUpLevel, Seconds), (f64, f64)> = BTreeMap::new();
    let zone = Zone::utc();
    for step in 0..80_i64 {
        let now = 1_760_000_000 + step * 11 * HOUR_SECONDS;
        let mut events = Vec::new();
        for _ in 0..5 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let late = (random >> 33) as i64 % 86_400;
            events.push(("a", now - late, (late % 100) as f64));
        }
        for (_, at, value) in &events {
            for level in RollUpLevel::ALL {
                let place = truth.entry((level, zone.start(level, *at))).or_default();
                place.0 += 1.0;
                place.1 += value;
            }
        }
        store
            .apply(&batch(step.cast_unsigned(), &events), now)
            .unwrap();
        while step % 3 == 0
            && store
                .maintain(
                    &StoreLimits {
                        minutes: Seconds::MAX / 4,
                        ..limits.clone()
                    },
                    now,
                    Duration::ZERO,
                )
                .unwrap()
        {}
    }
    for level in RollUpLevel::ALL {
        let found: BTreeMap<Seconds, (f64, f64)> = rows(&address, "a", level)
            .into_iter()
            .map(|row| (row.0, (row.1, row.2)))
            .collect();
        let expected: BTreeMap<Seconds, (f64, f64)> = truth
            .iter()
            .filter(|((of, _), _)| *of == level)
            .map(|((_, start), sums)| (*start, *sums))
            .collect();
        assert_eq!(found, expected, "{level:?}");
    }
    // Minutes are removed by age; the levels that they were rolled up to stay.
    let end = 1_760_000_000 + 80 * 11 * HOUR_SECONDS;
    while store.maintain(&limits, end, Duration::ZERO).unwrap() {}
    let earliest = rows(&address, "a", RollUpLevel::Minute)[0].0;
    assert!(
        earliest >= end - limits.minutes - 12 * HOUR_SECONDS,
        "{earliest}"
    );
    let all: f64 = rows(&address, "a", RollUpLevel::Day)
        .iter()
        .map(|row| row.1)
        .sum();
    assert_eq!(all, 400.0);
    // By size, everything that is rolled up is removed.
    let small = StoreLimits {
        size: record::Bytes(1),
        ..limits
    };
    while store.maintain(&small, end, Duration::ZERO).unwrap() {}
    let all: f64 = rows(&address, "a", RollUpLevel::Month)
        .iter()
        .map(|row| row.1)
        .sum();
    assert_eq!(all, 400.0);
    assert!(rows(&address, "a", RollUpLevel::Minute).len() < 120);
}

const HOUR_SECONDS: Seconds = crate::level::HOUR;

#[test]
fn identities_age_by_the_time_that_a_store_is_written_and_by_no_clock() {
    let folder = tempfile::tempdir().unwrap();
    let address = address(&folder);
    let limits = StoreLimits::default();
    let mut store = open(&address, &limits);
    let mut first = batch(1, &[("a", 0, 5.0)]);
    first.keys.push(Key::new("job", &[b"1"]));
    let step = Duration::from_secs(60);
    store.maintain(&limits, 0, step).unwrap();
    store.apply(&first, 1_760_000_000).unwrap();
    let is_known = |store: &mut Box<dyn Store>| store.known(&first.keys).unwrap()[0];
    // A clock that is ten days ahead, and one that is back in 1970, in processes that start anew.
    for now in [1_760_864_000, 0, 1_760_864_000] {
        let mut store = open(&address, &limits);
        for _ in 0..3 {
            while store.maintain(&limits, now, step).unwrap() {}
        }
        assert!(is_known(&mut store));
    }
    // Two processes at the same time count it once.
    let mut other = open(&address, &limits);
    let hours = KEYS_KEPT.as_secs() / 3600;
    for hour in 1..=hours + 1 {
        for store in [&mut store, &mut other] {
            while store.maintain(&limits, 0, step * 60).unwrap() {}
        }
        assert_eq!(is_known(&mut store), hour <= hours, "{hour}");
    }
}

#[test]
fn two_events_a_century_apart_are_found_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let address = address(&folder);
    let last = crate::level::MAX_TIME - 60;
    let events = [("a", 0, 1.0), ("a", 60, 1.0), ("a", last, 2.0)];
    open(&address, &StoreLimits::default())
        .apply(&batch(1, &events), 0)
        .unwrap();
    let found = rows(&address, "a", RollUpLevel::Minute);
    assert_eq!(
        found.iter().map(|row| row.0).collect::<Vec<_>>(),
        [0, 60, last]
    );
    assert_eq!(rows(&address, "a", RollUpLevel::Month).len(), 2);
}

#[test]
fn a_reader_holds_no_transaction_between_its_answers() {
    let folder = tempfile::tempdir().unwrap();
    let address = address(&folder);
    let mut store = open(&address, &StoreLimits::default());
    store.apply(&batch(1, &[("a", 0, 1.0)]), 0).unwrap();
    let mut reader = Reader::open(std::slice::from_ref(&address)).unwrap();
    assert_eq!(reader.series().unwrap().len(), 1);
    let StoreAddress::Sqlite(path) = &address else {
        panic!("{address}")
    };
    // A checkpoint that truncates waits for all readers, and says so.
    let busy: i64 = rusqlite::Connection::open(path)
        .unwrap()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(busy, 0);
}

/// 24 hours in steps of a minute, with upkeep after each: events up to 26 hours late and up to 5 minutes ahead, in
/// batches out of order, each of which comes again now and then, into a store that is opened anew now and then.
#[test]
fn a_day_of_late_and_disordered_events_is_summed_exactly() {
    let folder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    let address = address(&folder);
    let limits = StoreLimits::default();
    let mut store = open(&address, &limits);
    let mut random = 9_u64;
    let mut draw = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    let mut truth: BTreeMap<(RollUpLevel, Seconds), (f64, f64)> = BTreeMap::new();
    let mut waiting: Vec<Batch> = Vec::new();
    let begin = 1_760_000_000;
    for minute in 0..24 * 60_i64 {
        let now = begin + 60 * minute;
        let mut events = Vec::new();
        for _ in 0..3 {
            let late = match draw(10) {
                0 => draw(26 * 3600).cast_signed(),
                1..4 => draw(3600).cast_signed(),
                _ => draw(600).cast_signed() - 300,
            };
            events.push(("a", now - late, draw(100) as f64));
        }
        for (_, at, value) in &events {
            for level in RollUpLevel::ALL {
                let place = truth
                    .entry((level, Zone::utc().start(level, *at)))
                    .or_default();
                place.0 += 1.0;
                place.1 += value;
            }
        }
        waiting.push(batch(minute.cast_unsigned(), &events));
        while waiting.len() > draw(6) as usize {
            let one = waiting.remove(draw(waiting.len() as u64) as usize);
            for _ in 0..=u64::from(draw(8) == 0) {
                store.apply(&one, now).unwrap();
            }
        }
        if draw(60) == 0 {
            store = open(&address, &limits);
        }
        store
            .maintain(&limits, now, Duration::from_secs(60))
            .unwrap();
    }
    let end = begin + 25 * HOUR_SECONDS;
    waiting
        .iter()
        .for_each(|one| assert!(store.apply(one, end).is_ok()));
    while store.maintain(&limits, end, Duration::ZERO).unwrap() {}
    for level in RollUpLevel::ALL {
        let found: BTreeMap<Seconds, (f64, f64)> = rows(&address, "a", level)
            .into_iter()
            .map(|row| (row.0, (row.1, row.2)))
            .collect();
        let of_level = truth.iter().filter(|((of, _), _)| *of == level);
        let expected = of_level.map(|((_, start), sums)| (*start, *sums));
        assert_eq!(found, expected.collect(), "{level:?}");
    }
}

#[test]
fn tags_beyond_the_bound_are_summed_as_other() {
    let folder = tempfile::tempdir().unwrap();
    let address = address(&folder);
    let mut store = open(
        &address,
        &StoreLimits {
            tags: 2,
            ..StoreLimits::default()
        },
    );
    let events = [("a", 0, 1.0), ("b", 0, 1.0), ("c", 0, 1.0), ("d", 0, 1.0)];
    let applied = store.apply(&batch(1, &events), 0).unwrap();
    assert_eq!(applied.others, 2);
    store.apply(&batch(2, &events), 0).unwrap();
    assert_eq!(
        rows(&address, "(other)", RollUpLevel::Minute),
        [(0, 4.0, 4.0, 1.0)]
    );
    assert_eq!(
        rows(&address, "a", RollUpLevel::Minute),
        [(0, 2.0, 2.0, 1.0)]
    );
}

#[test]
fn a_store_keeps_what_it_was_made_with() {
    let folder = tempfile::tempdir().unwrap();
    let address = address(&folder);
    let limits = StoreLimits::default();
    let bounds: ClassBounds = "10,20".parse().unwrap();
    let zone = Zone::named("Asia/Kolkata").unwrap();
    drop(address.open(Some(&bounds), Some(&zone), &limits).unwrap());
    let store = open(&address, &limits);
    assert_eq!(
        (&store.settings().bounds, store.settings().zone.name()),
        (&bounds, "Asia/Kolkata")
    );
    for error in [
        address
            .open(Some(&ClassBounds::default()), None, &limits)
            .err(),
        address.open(None, Some(&Zone::utc()), &limits).err(),
    ] {
        assert!(matches!(error, Some(StoreError::Refused(_))));
    }
}

#[test]
fn a_newer_schema_and_another_programs_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let address = address(&folder);
    drop(open(&address, &StoreLimits::default()));
    let StoreAddress::Sqlite(path) = &address else {
        panic!("{address}")
    };
    let change = |sql: &str| {
        rusqlite::Connection::open(path)
            .unwrap()
            .execute_batch(sql)
            .unwrap()
    };
    change("UPDATE tally_setting SET value = '2' WHERE name = 'schema'");
    let refused = |words: &str| {
        for error in [
            address.open(None, None, &StoreLimits::default()).err(),
            address.open_archive().err(),
        ] {
            let Some(StoreError::Refused(error)) = error else {
                panic!("{words}")
            };
            assert!(error.to_string().contains(words), "{error}");
        }
    };
    refused("schema 2");
    std::fs::remove_file(path).unwrap();
    change("CREATE TABLE other (x)");
    refused("");
}
