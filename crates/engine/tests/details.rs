//! Extended options of a workload, on real files and through both interfaces to the kernel.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::sync::atomic::AtomicBool;

use engine::{Control, DiskEngine, Engine, EngineError, IoInterface, Job, Observer};
use record::{
    Bytes, JobOptions, Nanos, Pattern, Phase, RandomDistribution, SizeShare, StopReason, Window,
    Workload,
};

const FILE: usize = 1 << 20;

struct Files {
    folder: tempfile::TempDir,
    open: Vec<File>,
}

impl Files {
    /// Files of a MiB, filled with the byte 7.
    fn new(count: usize) -> Files {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let open = (0..count).map(|index| {
            let path = folder.path().join(index.to_string());
            std::fs::write(&path, vec![7; FILE]).unwrap();
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(path)
                .unwrap()
        });
        Files {
            open: open.collect(),
            folder,
        }
    }

    /// For each 4 KiB of a file, true if it was written.
    fn written(&self, index: usize) -> Vec<bool> {
        let mut bytes = Vec::new();
        let path = self.folder.path().join(index.to_string());
        File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), FILE);
        let blocks = bytes.chunks(4096);
        blocks
            .map(|block| block.iter().any(|byte| *byte != 7))
            .collect()
    }
}

fn workload(details: JobOptions) -> Workload {
    Workload {
        read_fraction: 0.0,
        depth: 4,
        longest: Nanos::from_secs(20),
        details: Some(Box::new(details)),
        ..Workload::default()
    }
}

#[derive(Default)]
struct Watch {
    began: bool,
    windows: Vec<f64>,
}

impl Observer for Watch {
    fn begin(&mut self) {
        self.began = true;
    }

    fn window(&mut self, window: &mut Window) -> Control {
        assert!(self.began);
        self.windows.push(window.t_s);
        Control::Continue
    }
}

fn run(
    files: &Files,
    workload: &Workload,
    span: Bytes,
    interface: IoInterface,
) -> Result<Phase, EngineError> {
    let interrupt = AtomicBool::new(false);
    let job = Job {
        name: "test",
        file: &files.open[0],
        span,
        workload,
        interface,
        window: Nanos(100_000_000),
        seed: 5,
        interrupt: &interrupt,
    };
    let mut watch = Watch::default();
    let others: Vec<&File> = files.open[1..].iter().collect();
    let phase = DiskEngine.run_over(&job, &others, &mut watch)?;
    let windows: Vec<f64> = phase.windows.iter().map(|window| window.t_s).collect();
    assert_eq!(watch.windows, windows);
    Ok(phase)
}

#[test]
fn every_block_of_the_span_of_every_file_is_written_once_and_nothing_else() {
    for interface in [IoInterface::Uring, IoInterface::Sync] {
        for (pattern, spread) in [
            (Pattern::Random, RandomDistribution::Once),
            (Pattern::Sequential, RandomDistribution::Uniform),
        ] {
            let files = Files::new(3);
            let mut workload = workload(JobOptions {
                files: 3,
                offset: Bytes::kib(64),
                spread,
                full_sync: true,
                bytes: Some(Bytes::kib(3 * 256)),
                ..JobOptions::default()
            });
            workload.pattern = pattern;
            workload.sync_every = 16;
            workload.sync_at_end = true;
            let phase = run(&files, &workload, Bytes::kib(256), interface).unwrap();
            assert_eq!(phase.stopped, StopReason::Ops);
            assert_eq!(phase.write.unwrap().latency.count(), 192);
            assert!(phase.sync.unwrap().latency.count() >= 12);
            for file in 0..3 {
                for (block, written) in files.written(file).into_iter().enumerate() {
                    assert_eq!(
                        written,
                        (16..80).contains(&block),
                        "{file} {block} {interface:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn sizes_that_differ_are_moved_whole() {
    for interface in [IoInterface::Uring, IoInterface::Sync] {
        let files = Files::new(1);
        let share = |kib, share| SizeShare {
            size: Bytes::kib(kib),
            share,
        };
        let sizes = vec![share(4, 0.5), share(32, 0.5)];
        let mut workload = workload(JobOptions {
            read_sizes: sizes.clone(),
            write_sizes: sizes,
            ..JobOptions::default()
        });
        workload.block = Bytes::kib(18);
        workload.read_fraction = 0.5;
        workload.ops = Some(400);
        let phase = run(&files, &workload, Bytes::mib(1), interface).unwrap();
        let flows = [phase.read.unwrap(), phase.write.unwrap()];
        let ops: u64 = flows.iter().map(|flow| flow.latency.count()).sum();
        assert_eq!(ops, 400);
        for flow in flows {
            let mean = flow.bytes as f64 / flow.ops as f64 / 1024.0;
            assert!((13.0..23.0).contains(&mean), "{mean} KiB");
        }
    }
}

#[test]
fn a_ramp_is_not_counted_and_takes_nothing_of_the_budget() {
    for interface in [IoInterface::Uring, IoInterface::Sync] {
        let files = Files::new(1);
        let mut workload = workload(JobOptions {
            ramp: Nanos(150_000_000),
            ..JobOptions::default()
        });
        workload.rate_per_s = Some(1000.0);
        workload.longest = Nanos(300_000_000);
        // 300 are due in the counted part, and 450 including the ramp. A busy host issues those of the ramp too late,
        // and completes fewer or, all at once, more: one of several attempts is undisturbed.
        let mut counted = std::iter::repeat_with(|| {
            let phase = run(&files, &workload, Bytes::mib(1), interface).unwrap();
            assert_eq!(phase.windows.len(), 3);
            assert!((phase.seconds - 0.3).abs() < 1e-6, "{}", phase.seconds);
            phase.write.unwrap().latency.count()
        });
        assert!(counted.by_ref().take(50).any(|ops| ops < 400));

        workload.ops = Some(20);
        let phase = run(&files, &workload, Bytes::mib(1), interface).unwrap();
        assert_eq!(phase.stopped, StopReason::Ops);
        assert!((20..=30).contains(&phase.write.unwrap().latency.count()));
    }
}

#[test]
fn the_number_of_files_must_be_that_of_the_workload() {
    let files = Files::new(2);
    let workload = workload(JobOptions {
        files: 3,
        ..JobOptions::default()
    });
    let error = run(&files, &workload, Bytes::kib(64), IoInterface::Sync).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("turns with 3 files, and there are 2"),
        "{error}"
    );
}
