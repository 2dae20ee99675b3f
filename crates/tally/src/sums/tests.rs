use std::collections::BTreeMap;

use super::*;
use proptest::prelude::*;

fn event(tag: &str, at: Seconds, figure: EventFigure) -> ParsedEvent<'_> {
    ParsedEvent {
        tag: tag.as_bytes(),
        count: 1.0,
        at: Some(at),
        figure,
    }
}

#[test]
fn an_event_that_cannot_be_summed_leaves_nothing() {
    let mut sums = Sums::new(ClassBounds::default());
    let long = "x".repeat(1 << 20);
    for (tag, at, figure, reason) in [
        ("", 0, EventFigure::None, Rejection::NoTag),
        (long.as_str(), 0, EventFigure::None, Rejection::LongTag),
        ("a\u{1b}[2J", 0, EventFigure::None, Rejection::TagText),
        ("a", 0, EventFigure::Time(f64::NAN), Rejection::NotSummable),
        (
            "a",
            0,
            EventFigure::Gauge(f64::INFINITY),
            Rejection::NotSummable,
        ),
        ("a", 0, EventFigure::Gauge(-1e101), Rejection::NotSummable),
        ("a", 0, EventFigure::Time(-1.0), Rejection::NegativeTime),
        ("a", -1, EventFigure::None, Rejection::Time),
        ("a", i64::MAX, EventFigure::None, Rejection::Time),
    ] {
        assert_eq!(sums.add(&event(tag, at, figure), 0), Err(reason));
    }
    assert!(sums.is_empty() && sums.events() == 0);
}

#[test]
fn a_gauge_keeps_its_last_value() {
    let mut sums = Sums::new(ClassBounds::default());
    for (at, value) in [(0, 5.0), (59, -3.0), (60, 1.0)] {
        sums.add(&event("g", at, EventFigure::Gauge(value)), 0)
            .unwrap();
    }
    let hour = sums.coarser(RollUpLevel::Hour, &Zone::utc(), 0..Seconds::MAX);
    let values = hour.rows().next().unwrap().values.copied().unwrap();
    assert_eq!(
        (values.sum, values.min, values.max, values.last),
        (3.0, -3.0, 5.0, Some(1.0))
    );
}

proptest! {
    #[test]
    fn sums_are_those_of_a_plain_map(
        events in prop::collection::vec(("[a-c]{1,2}", 0_i64..10_000, 0_u16..3000), 0..200),
    ) {
        let mut sums = Sums::new(ClassBounds::default());
        let mut truth: BTreeMap<(String, i64), (f64, f64)> = BTreeMap::new();
        for (tag, at, value) in &events {
            let value = f64::from(*value);
            sums.add(&event(tag, *at, EventFigure::Time(value)), 0).unwrap();
            let place = truth.entry((tag.clone(), at / 60 * 60)).or_default();
            place.0 += 1.0;
            place.1 += value;
        }
        for (sums, level) in [
            (sums.clone(), RollUpLevel::Minute),
            (sums.coarser(RollUpLevel::Hour, &Zone::utc(), 0..Seconds::MAX), RollUpLevel::Hour),
        ] {
            let mut expected: BTreeMap<(String, i64), (f64, f64)> = BTreeMap::new();
            for ((tag, start), (count, sum)) in &truth {
                let place = expected.entry((tag.clone(), Zone::utc().start(level, *start))).or_default();
                place.0 += count;
                place.1 += sum;
            }
            let names: Vec<&str> = sums.names().collect();
            let found: BTreeMap<(String, i64), (f64, f64)> = sums.rows()
                .map(|row| ((names[row.tag as usize].to_owned(), row.start), (row.count, row.values.unwrap().sum)))
                .collect();
            prop_assert_eq!(&found, &expected);
            let in_buckets: f64 = sums.buckets().map(|bucket| bucket.count).sum();
            let in_classes: f64 = sums.rows().flat_map(|row| row.values.unwrap().classes).sum();
            prop_assert_eq!(in_buckets, events.len() as f64);
            prop_assert_eq!(in_classes, events.len() as f64);
        }
    }
}
