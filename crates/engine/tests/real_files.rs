//! The engine on a real file: both interfaces to the kernel must give the same results.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::AtomicBool;

use engine::{Control, DiskEngine, Engine, EngineError, IoInterface, Job, Observer};
use record::{Bytes, EngineKind, Nanos, Phase, StopReason, Window, Workload};

const O_DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits() as i32;

struct Scratch {
    _folder: tempfile::TempDir,
    file: File,
}

/// A written file of `size`, opened with O_DIRECT in the build's folder, which is on a disk.
fn scratch(size: u64) -> Scratch {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![7; size as usize]).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(O_DIRECT)
        .open(path)
        .unwrap();
    Scratch {
        _folder: folder,
        file,
    }
}

fn workload() -> Workload {
    Workload {
        depth: 4,
        longest: Nanos(300_000_000),
        shortest: Nanos(300_000_000),
        ..Workload::default()
    }
}

struct Watch {
    windows: usize,
    stop_after: usize,
}

impl Observer for Watch {
    fn window(&mut self, window: &mut Window) -> Control {
        assert!((window.t_s - self.windows as f64 * 0.1).abs() < 1e-9);
        self.windows += 1;
        if self.windows == self.stop_after {
            Control::StopPrecise
        } else {
            Control::Continue
        }
    }
}

fn run(file: &File, workload: &Workload, interface: IoInterface) -> Result<Phase, EngineError> {
    run_until(file, workload, interface, usize::MAX)
}

fn run_until(
    file: &File,
    workload: &Workload,
    interface: IoInterface,
    stop_after: usize,
) -> Result<Phase, EngineError> {
    let interrupt = AtomicBool::new(false);
    let job = Job {
        name: "test",
        file,
        span: Bytes::mib(8),
        workload,
        interface,
        window: Nanos(100_000_000),
        seed: 5,
        interrupt: &interrupt,
    };
    DiskEngine.run(
        &job,
        &mut Watch {
            windows: 0,
            stop_after,
        },
    )
}

#[test]
fn both_engines_read_write_and_sync() {
    let scratch = scratch(8 << 20);
    for (interface, kind) in [
        (IoInterface::Uring, EngineKind::Uring),
        (IoInterface::Sync, EngineKind::Sync),
    ] {
        for threads in [1, 2] {
            let mut workload = workload();
            workload.threads = threads;
            workload.read_fraction = 0.5;
            workload.sync_every = 8;
            workload.ops = Some(400);
            workload.longest = Nanos::from_secs(60);
            let phase = run(&scratch.file, &workload, interface).unwrap();
            assert_eq!(phase.engine.kind, kind);
            assert_eq!(phase.stopped, StopReason::Ops);
            assert_eq!(phase.thread_ops.len(), threads as usize);
            let (read, write) = (phase.read.unwrap(), phase.write.unwrap());
            // The measured time ends when the first thread has done its requests: those of other threads that are in
            // flight then are counted as late.
            let ops = read.ops + write.ops;
            let in_flight = u64::from(workload.depth * threads);
            assert!((400 - in_flight..=400).contains(&ops), "{ops}");
            assert_eq!(read.latency.count() + write.latency.count(), 400);
            // Half of each, with a standard deviation of 10.
            assert!(read.ops.abs_diff(200) < 60, "{} reads", read.ops);
            assert_eq!(read.bytes, read.ops * 4096);
            assert_eq!(phase.thread_ops.iter().sum::<u64>(), read.ops + write.ops);
            let in_windows: u64 = phase.windows.iter().map(Window::ops).sum();
            assert_eq!(in_windows, read.ops + write.ops);
            assert!(phase.sync.unwrap().ops > 0);
            assert!(phase.commit.unwrap().latency.min() > 0);
        }
    }
}

/// Reads of a file that compresses well do not change the data of writes, which stays random.
#[test]
fn what_is_written_is_not_what_was_read() {
    for interface in [IoInterface::Uring, IoInterface::Sync] {
        let scratch = scratch(8 << 20);
        let mut workload = workload();
        workload.read_fraction = 0.5;
        workload.ops = Some(400);
        workload.longest = Nanos::from_secs(60);
        run(&scratch.file, &workload, interface).unwrap();
        let mut content = Vec::new();
        let path = format!("/proc/self/fd/{}", scratch.file.as_raw_fd());
        File::open(path).unwrap().read_to_end(&mut content).unwrap();
        let sevens = |block: &[u8]| block.iter().filter(|byte| **byte == 7).count();
        let blocks = content.chunks(4096).map(sevens);
        let written: Vec<usize> = blocks.filter(|sevens| *sevens < 4096).collect();
        assert!(written.len() > 100, "{}", written.len());
        // 16 of 4096 random bytes are a seven, with a standard deviation of 4.
        assert!(written.iter().all(|sevens| *sevens < 64), "{written:?}");
    }
}

#[test]
fn an_open_loop_is_no_faster_than_its_rate_on_both_engines() {
    let scratch = scratch(8 << 20);
    for interface in [IoInterface::Uring, IoInterface::Sync] {
        let mut workload = workload();
        workload.rate_per_s = Some(500.0);
        workload.depth = 16;
        workload.longest = Nanos::from_secs(1);
        let phase = run(&scratch.file, &workload, interface).unwrap();
        let read = phase.read.unwrap();
        // Poisson: 500 with a standard deviation of 22. On a busy host fewer may complete; the rate is tested on
        // simulated disks (`worker`).
        assert!(read.ops < 620, "{} with {interface:?}", read.ops);
        assert!(read.service.unwrap().count() > 0);
    }
}

#[test]
fn the_observer_ends_the_phase_after_the_window_it_saw() {
    let scratch = scratch(8 << 20);
    for interface in [IoInterface::Uring, IoInterface::Sync] {
        let phase = run_until(&scratch.file, &workload(), interface, 2).unwrap();
        assert_eq!(phase.stopped, StopReason::Precise);
        assert_eq!(phase.windows.len(), 2);
        assert!((phase.seconds - 0.2).abs() < 1e-6);
    }
}

#[test]
fn a_number_of_requests_is_kept_by_many_threads() {
    let scratch = scratch(8 << 20);
    for interface in [IoInterface::Uring, IoInterface::Sync] {
        let mut workload = workload();
        workload.threads = 3;
        workload.ops = Some(200);
        workload.longest = Nanos::from_secs(60);
        let phase = run(&scratch.file, &workload, interface).unwrap();
        assert_eq!(phase.stopped, StopReason::Ops);
        let read = phase.read.unwrap();
        assert_eq!(read.latency.count(), 200);
        let in_flight = u64::from(workload.depth * workload.threads);
        assert!((200 - in_flight..=200).contains(&read.ops), "{}", read.ops);
    }
}

#[test]
fn reading_past_the_end_is_an_error_in_a_sentence() {
    let scratch = scratch(4 << 20);
    for interface in [IoInterface::Uring, IoInterface::Sync] {
        let error = run(&scratch.file, &workload(), interface).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("the target is shorter than it was"), "{text}");
    }
}

#[test]
fn a_file_opened_for_reading_cannot_be_written() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![7; 8 << 20]).unwrap();
    let file = File::open(path).unwrap();
    let mut workload = workload();
    workload.read_fraction = 0.0;
    for interface in [IoInterface::Uring, IoInterface::Sync] {
        let error = run(&file, &workload, interface).unwrap_err();
        assert!(matches!(error, EngineError::Io { .. }), "{error}");
    }
}

#[test]
fn invalid_workloads_are_refused_before_any_request() {
    let scratch = scratch(4096);
    let mut cases = vec![workload(); 4];
    cases[0].depth = 0;
    cases[1].read_fraction = 1.5;
    cases[2].block = Bytes::gib(1);
    cases[3].rate_per_s = Some(0.0);
    for workload in cases {
        let error = run(&scratch.file, &workload, IoInterface::Auto).unwrap_err();
        assert!(matches!(error, EngineError::Unfit(_)), "{error}");
    }
}
