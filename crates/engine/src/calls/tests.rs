use std::convert::Infallible;
use std::thread::sleep;
use std::time::Duration;

use record::{Bytes, Pattern, Phase, StopReason, Window};

use super::*;
use crate::job::{Control, Observer};

/// A number of calls of the same duration, and one sync that takes ten times as long.
struct Sleeps {
    left: u32,
    each: Duration,
}

impl Task for Sleeps {
    fn step(&mut self, timer: &mut Timer<'_>) -> Result<bool, EngineError> {
        let nap = |each: Duration| -> Result<(), Infallible> {
            sleep(each);
            Ok(())
        };
        let each = self.each;
        let Ok(()) = match self.left {
            0 => timer.time(Direction::Sync, 0, || nap(each * 10)),
            _ => timer.time(Direction::Write, 100, || nap(each)),
        };
        self.left = self.left.wrapping_sub(1);
        Ok(self.left < u32::MAX)
    }
}

struct Fails;

impl Task for Fails {
    fn step(&mut self, _timer: &mut Timer<'_>) -> Result<bool, EngineError> {
        Err(call_error("creating a", io::Error::from_raw_os_error(28)))
    }
}

#[derive(Default)]
struct RecordedWindows(Vec<Window>);

impl Observer for RecordedWindows {
    fn window(&mut self, window: &mut Window) -> Control {
        self.0.push(window.clone());
        Control::StopPrecise
    }
}

fn workload() -> Workload {
    Workload {
        pattern: Pattern::Sequential,
        read_fraction: 0.0,
        block: Bytes(100),
        threads: 2,
        sync_at_end: true,
        ..Workload::default()
    }
}

fn run_tasks(
    tasks: Vec<Box<dyn Task>>,
    interrupt: &AtomicBool,
) -> (Result<Phase, EngineError>, Vec<Window>) {
    let workload = workload();
    let calls = CallPhase {
        name: "naps",
        workload: &workload,
        window: Nanos(100_000_000),
        interrupt,
    };
    let mut seen = RecordedWindows::default();
    let phase = run(&calls, tasks, &mut seen);
    (phase, seen.0)
}

#[test]
fn all_calls_are_counted_and_the_last_sync_is_in_the_time() {
    let nap = |left| -> Box<dyn Task> {
        Box::new(Sleeps {
            left,
            each: Duration::from_millis(10),
        })
    };
    // One ends long before the other: later windows only have the other one's calls.
    let (phase, seen) = run_tasks(vec![nap(5), nap(30)], &AtomicBool::new(false));
    let phase = phase.unwrap();
    let write = phase.write.as_ref().unwrap();
    assert_eq!((write.ops, write.bytes), (35, 3500));
    assert_eq!(write.latency.count(), 35);
    assert_eq!(phase.sync.as_ref().unwrap().ops, 2);
    assert_eq!(phase.thread_ops, [5, 30]);
    assert!(phase.thread_seconds[1] >= 0.3, "{:?}", phase.thread_seconds);
    // 30 naps and the sync; a busy host can only add to that.
    assert!(phase.seconds >= 0.4, "{}", phase.seconds);
    assert_eq!(phase.stopped, StopReason::Ops);
    assert_eq!(seen, phase.windows);
    let ops: u64 = seen.iter().map(Window::ops).sum();
    assert_eq!(ops, 35);
    for (index, window) in seen.iter().enumerate() {
        assert!((window.t_s - index as f64 * 0.1).abs() < 1e-9, "no gap");
    }
    // The time for which a thread waits for a processor depends on the host. The last window may be shortened
    // immediately after a nap.
    let idle: Vec<f64> = seen.iter().map(|window| window.idle_fraction).collect();
    let whole = &idle[..idle.len() - 1];
    assert!(
        whole.iter().all(|idle| *idle > 0.0),
        "a nap is no work: {idle:?}"
    );
}

#[test]
fn a_call_that_fails_ends_all_and_is_named() {
    let endless: Box<dyn Task> = Box::new(Sleeps {
        left: u32::MAX - 1,
        each: Duration::from_millis(1),
    });
    let (phase, _) = run_tasks(vec![endless, Box::new(Fails)], &AtomicBool::new(false));
    let error = phase.unwrap_err().to_string();
    assert!(error.starts_with("creating a failed: No space"), "{error}");
}

#[test]
fn a_signal_ends_the_work_without_the_last_sync() {
    let endless: Box<dyn Task> = Box::new(Sleeps {
        left: u32::MAX - 1,
        each: Duration::from_millis(1),
    });
    let (phase, _) = run_tasks(vec![endless], &AtomicBool::new(true));
    let phase = phase.unwrap();
    assert_eq!(phase.stopped, StopReason::Signal);
    assert_eq!(phase.sync.unwrap().ops, 0);
}
