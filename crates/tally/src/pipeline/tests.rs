use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::level::{RollUpLevel, Seconds};
use crate::parse::EventFormat;
use crate::query::Reader;
use crate::source::file::FileSource;
use crate::source::{Delivery, Identity, Intake};
use crate::store::{Advance, Key, StoreAddress, StoreLimits};
use crate::sums::Sums;

fn run(source: Box<dyn Source>, stores: &[StoreAddress], stop: bool) -> PipelineEnd {
    let plan = SumTargets {
        stores: stores.to_vec(),
        routes: None,
        limits: StoreLimits::default(),
    };
    let shared = SharedState {
        stop: Arc::new(AtomicBool::new(false)),
        dead_letters: Arc::new(DeadLetters::at(Path::new("/dev/null"))),
        flush: FlushRule {
            every: Duration::from_millis(1),
            ..FlushRule::default()
        },
        plans: Arc::new(Plans::new(plan)),
    };
    let meter = Arc::new(Meter::default());
    let parser = Parser::new(EventFormat::Statsd);
    let mut pipeline = Pipeline::new(source, parser, shared, Arc::clone(&meter)).unwrap();
    if stop {
        let limit = Instant::now() + Duration::from_secs(120);
        // Idle, with nothing that waits.
        while meter.events.load(Relaxed) == 0
            || pipeline.in_flight.is_some()
            || pipeline.since.is_some()
            || !matches!(
                pipeline.source.poll(TICK, &mut pipeline.intake),
                PollResult::Idle
            )
        {
            pipeline.step();
            assert!(Instant::now() < limit);
        }
        pipeline.shared.stop.store(true, Relaxed);
    }
    pipeline.run()
}

fn count(store: &StoreAddress) -> f64 {
    let mut reader = Reader::open(std::slice::from_ref(store)).unwrap();
    let rows = reader.rows(
        &"a".parse().unwrap(),
        RollUpLevel::Minute,
        0,
        Seconds::MAX / 2,
    );
    rows.unwrap().iter().map(|row| row.count).sum()
}

const TEXT: &[u8] = b"a:1|c\na:2|c\n";

/// A source that ends; another process counts its first line before the first flush.
struct Raced {
    store: StoreAddress,
    other: Option<Batch>,
}

impl Source for Raced {
    fn address(&self) -> &str {
        "raced"
    }

    fn poll(&mut self, _wait: Duration, intake: &mut dyn Intake) -> PollResult {
        let from = intake.position("raced").unwrap().unwrap_or(0);
        let identity = Identity::Step {
            source: "raced",
            from,
            to: TEXT.len() as u64,
        };
        let lines = &TEXT[from as usize..];
        intake.take(&[Delivery { identity, lines }]).unwrap();
        if let Some(batch) = self.other.take() {
            let mut store = self
                .store
                .open(None, None, &StoreLimits::default())
                .unwrap();
            store.apply(&batch, now()).unwrap();
        }
        PollResult::End
    }

    fn rewind(&mut self) {}
}

#[test]
fn events_that_another_process_counted_in_part_are_read_to_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = StoreAddress::Sqlite(folder.path().join("t.db"));
    let mut sums = Sums::new(crate::classes::ClassBounds::default());
    Parser::new(EventFormat::Statsd).lines(&TEXT[..6], &mut |_, event| {
        sums.add(&event.unwrap(), now()).unwrap();
    });
    let other = Batch {
        key: Key::new("batch", &[b"another"]),
        sums,
        keys: Vec::new(),
        advances: vec![Advance {
            source: "raced".to_owned(),
            from: 0,
            to: 6,
        }],
    };
    let source = Raced {
        store: store.clone(),
        other: Some(other),
    };
    let ended = run(Box::new(source), std::slice::from_ref(&store), false);
    assert_eq!((ended, count(&store)), (PipelineEnd::default(), 3.0));
}

#[test]
fn a_store_that_is_added_keeps_nothing_of_a_rotated_file_from_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let stores = ["a.db", "b.db"].map(|name| StoreAddress::Sqlite(path(name)));
    let follow = || Box::new(FileSource::open(&path("a.log"), true).unwrap());
    fs::write(path("a.log"), "a:1|c\n").unwrap();
    assert_eq!(run(follow(), &stores[..1], true), PipelineEnd::default());
    let mut text = fs::read(path("a.log")).unwrap();
    text.extend_from_slice(b"a:10|c\n");
    fs::write(path("a.log"), text).unwrap();
    fs::rename(path("a.log"), path("a.log.1")).unwrap();
    fs::write(path("a.log"), "a:100|c\n").unwrap();
    assert_eq!(run(follow(), &stores, true), PipelineEnd::default());
    assert_eq!(stores.each_ref().map(count), [111.0, 111.0]);
}
