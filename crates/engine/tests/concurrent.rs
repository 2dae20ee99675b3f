//! Jobs that run at the same time, on real files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{File, OpenOptions};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use engine::{Control, DiskEngine, Engine, EngineError, IoInterface, Job, Observer, StartGroup};
use record::{Bytes, Nanos, Phase, Window, Workload};

const WINDOW: Nanos = Nanos(100_000_000);

fn workload() -> Workload {
    Workload {
        depth: 2,
        longest: Nanos(300_000_000),
        ..Workload::default()
    }
}

/// A file of a MiB, which is deleted when it is closed.
fn file() -> File {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap()
}

/// An observer that records the start of the measured time.
struct Watch<'a>(&'a AtomicBool);

impl Observer for Watch<'_> {
    fn begin(&mut self) {
        self.0.store(true, Relaxed);
    }

    fn window(&mut self, _window: &mut Window) -> Control {
        Control::Continue
    }
}

fn run(
    file: &File,
    workload: &Workload,
    interface: IoInterface,
    start: &StartGroup,
    began: &AtomicBool,
) -> Result<Phase, EngineError> {
    let interrupt = AtomicBool::new(false);
    let job = Job {
        name: "test",
        file,
        span: Bytes::mib(1),
        workload,
        interface,
        window: WINDOW,
        seed: 5,
        interrupt: &interrupt,
    };
    DiskEngine.run_concurrently(&job, &[], start, &mut Watch(began))
}

#[test]
fn no_job_begins_before_the_last_one_is_ready() {
    for interface in [IoInterface::Uring, IoInterface::Sync] {
        let (file, workload, start) = (file(), workload(), StartGroup::of(2));
        let (first, second) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let early = scope.spawn(|| run(&file, &workload, interface, &start, &first));
            thread::sleep(Duration::from_millis(300));
            assert!(!first.load(Relaxed), "it did not wait for the other");
            let late = run(&file, &workload, interface, &start, &second).unwrap();
            let early = early.join().unwrap().unwrap();
            assert!(first.load(Relaxed) && second.load(Relaxed));
            // Neither includes the time for which the first one waited.
            assert_eq!((early.windows.len(), late.windows.len()), (3, 3));
        });
    }
}

#[test]
fn a_job_that_cannot_be_set_up_does_not_delay_the_others() {
    let (file, start, began) = (file(), StartGroup::of(3), AtomicBool::new(false));
    let unfit = Workload {
        block: Bytes::mib(2),
        ..workload()
    };
    thread::scope(|scope| {
        let others: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| run(&file, &workload(), IoInterface::Sync, &start, &began)))
            .collect();
        thread::sleep(Duration::from_millis(100));
        let error = run(
            &file,
            &unfit,
            IoInterface::Sync,
            &start,
            &AtomicBool::new(false),
        )
        .unwrap_err();
        assert!(
            error.to_string().contains("has room for 0 blocks"),
            "{error}"
        );
        for other in others {
            other.join().unwrap().unwrap();
        }
    });
}

/// One makes a hundred thousand reads from the page cache, the other ten. However long a busy host takes for either,
/// the processor time corresponds to the work; the time of the process would count for both.
#[test]
fn each_job_has_the_processor_time_of_its_own_threads() {
    for interface in [IoInterface::Uring, IoInterface::Sync] {
        let (file, start, began) = (file(), StartGroup::of(2), AtomicBool::new(false));
        let reads = |ops| Workload {
            ops: Some(ops),
            longest: Nanos::from_secs(600),
            ..workload()
        };
        let (much, little) = (reads(100_000), reads(10));
        let (much, little) = thread::scope(|scope| {
            let much = scope.spawn(|| run(&file, &much, interface, &start, &began));
            let little = run(&file, &little, interface, &start, &began).unwrap();
            (much.join().unwrap().unwrap(), little)
        });
        let used = |phase: &Phase| phase.cpu.user_s + phase.cpu.system_s;
        assert!(used(&much) > 0.0, "{:?}", much.cpu);
        assert!(
            used(&little) < 0.2 * used(&much),
            "{:?} {:?}",
            little.cpu,
            much.cpu
        );
    }
}
