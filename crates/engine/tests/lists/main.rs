//! Lists of requests on real files: both interfaces to the kernel must issue each request once, and report its result.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod errors;
mod pauses;
mod refused;

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use engine::list::{
    BufferMode, CompletedRequest, EndReason, Errno, List, ListSummary, Next, Op, Request,
    RequestError, RequestSource,
};
use engine::{EngineError, IoInterface, list};
use record::{Bytes, EngineKind, Nanos};

const BOTH: [IoInterface; 2] = [IoInterface::Uring, IoInterface::Sync];
const MIB: u64 = 1 << 20;

struct Scratch {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

/// A file of `size` bytes of 7, in the build's folder, which is on a disk.
fn scratch(size: u64) -> Scratch {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![7; size as usize]).unwrap();
    Scratch {
        _folder: folder,
        path,
    }
}

fn open_direct(path: &Path) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(path)
        .unwrap()
}

/// A source that returns its requests one after the other and records the completions.
struct Script<D> {
    requests: VecDeque<Request>,
    depth: D,
    in_flight: usize,
    most_seen: usize,
    done: Vec<CompletedRequest>,
}

impl<D: Fn(usize) -> u32> Script<D> {
    /// `depth` is called with the number of completed requests.
    fn new(requests: impl IntoIterator<Item = Request>, depth: D) -> Script<D> {
        Script {
            requests: requests.into_iter().collect(),
            depth,
            in_flight: 0,
            most_seen: 0,
            done: Vec::new(),
        }
    }
}

impl<D: Fn(usize) -> u32> RequestSource for Script<D> {
    fn depth(&self) -> u32 {
        (self.depth)(self.done.len())
    }

    fn next(&mut self, _: Nanos) -> Next {
        let Some(request) = self.requests.pop_front() else {
            return Next::End;
        };
        self.in_flight += 1;
        self.most_seen = self.most_seen.max(self.in_flight);
        assert!(self.in_flight <= self.depth() as usize);
        Next::Request(request)
    }

    fn done(&mut self, now: Nanos, done: CompletedRequest) {
        assert!(done.began + done.latency <= now);
        self.in_flight -= 1;
        self.done.push(done);
    }
}

/// Requests of `len` bytes from the start to `end`; the last may be shorter.
fn pieces(end: u64, len: u32) -> Vec<Request> {
    (0..end.div_ceil(u64::from(len)))
        .map(|tag| {
            let offset = tag * u64::from(len);
            let len = u64::from(len).min(end - offset) as u32;
            Request::read(offset, len, tag)
        })
        .collect()
}

/// The same ranges as writes.
fn writes(requests: Vec<Request>) -> Vec<Request> {
    let write = |request| Request {
        op: Op::Write,
        ..request
    };
    requests.into_iter().map(write).collect()
}

fn run_with(
    file: &File,
    memory: BufferMode,
    interface: IoInterface,
    interrupt: &AtomicBool,
    source: &mut dyn RequestSource,
) -> Result<ListSummary, EngineError> {
    let list = List {
        files: &[file],
        memory,
        max_in_flight: 64,
        largest: Bytes::kib(512),
        interface,
        interrupt,
    };
    list::run(&list, source)
}

fn run(
    file: &File,
    memory: BufferMode,
    interface: IoInterface,
    source: &mut dyn RequestSource,
) -> Result<ListSummary, EngineError> {
    run_with(file, memory, interface, &AtomicBool::new(false), source)
}

/// Tags of the requests that succeeded, sorted.
fn good_tags(done: &[CompletedRequest]) -> Vec<u64> {
    let good = done.iter().filter(|done| done.result.is_ok());
    let mut tags: Vec<u64> = good.map(|done| done.request.tag).collect();
    tags.sort_unstable();
    tags
}

#[test]
fn each_request_is_issued_once_and_zeros_are_written_where_requested() {
    const SIZE: u64 = 16 * MIB + 4096;
    for (interface, kind) in [
        (IoInterface::Uring, EngineKind::Uring),
        (IoInterface::Sync, EngineKind::Sync),
    ] {
        let scratch = scratch(SIZE);
        let file = open_direct(&scratch.path);
        let all = pieces(SIZE, 128 << 10);
        let mut reads = Script::new(all.clone(), |_| 16);
        let end = run(&file, BufferMode::Reads, interface, &mut reads).unwrap();
        assert_eq!((end.kind.kind, end.ended), (kind, EndReason::Complete));
        assert_eq!(good_tags(&reads.done), (0..129).collect::<Vec<_>>());
        assert_eq!(reads.most_seen, 16);
        // Every third request, and the short one at the end.
        let is_written = |tag: u64| tag.is_multiple_of(3) || tag == 128;
        let some: Vec<Request> = all.into_iter().filter(|r| is_written(r.tag)).collect();
        let mut script = Script::new(writes(some.clone()), |_| 16);
        run(&file, BufferMode::Zeros, interface, &mut script).unwrap();
        assert_eq!(good_tags(&script.done).len(), some.len());
        let content = std::fs::read(&scratch.path).unwrap();
        assert_eq!(content.len() as u64, SIZE);
        for (tag, piece) in content.chunks(128 << 10).enumerate() {
            let expected = if is_written(tag as u64) { 0 } else { 7 };
            assert!(piece.iter().all(|byte| *byte == expected), "piece {tag}");
        }
    }
}

#[test]
fn changes_of_the_depth_are_followed() {
    // A depth above the limit of the list is reduced to it.
    let depth = |done| match done {
        0..50 => 1,
        50..200 => 1000,
        _ => 3,
    };
    let scratch = scratch(8 * MIB);
    let file = open_direct(&scratch.path);
    for interface in BOTH {
        let mut source = Script::new(pieces(8 * MIB, 16 << 10), depth);
        run(&file, BufferMode::Reads, interface, &mut source).unwrap();
        assert_eq!(good_tags(&source.done), (0..512).collect::<Vec<_>>());
        assert_eq!(source.most_seen, 64);
        // With one in flight, they complete in the order of issue.
        let first: Vec<u64> = source.done[..50].iter().map(|d| d.request.tag).collect();
        assert_eq!(first, (0..50).collect::<Vec<_>>());
    }
}

#[test]
fn lists_run_at_once_each_with_a_thousand_in_flight() {
    for interface in BOTH {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let scratch = scratch(8 * MIB);
                    let file = open_direct(&scratch.path);
                    let interrupt = AtomicBool::new(false);
                    let list = List {
                        files: &[&file],
                        memory: BufferMode::Reads,
                        max_in_flight: 1024,
                        largest: Bytes::kib(512),
                        interface,
                        interrupt: &interrupt,
                    };
                    let mut source = Script::new(pieces(8 * MIB, 4 << 10), |_| 1024);
                    let end = list::run(&list, &mut source).unwrap();
                    assert!(!end.kind.detail.contains("at most"), "{}", end.kind.detail);
                    assert_eq!(good_tags(&source.done), (0..2048).collect::<Vec<_>>());
                    assert_eq!(source.most_seen, 1024);
                });
            }
        });
    }
}

#[test]
fn requests_of_all_operations_go_to_the_files_that_they_name() {
    let memory = BufferMode::Mixed {
        seed: 1,
        compressible: 0.75,
    };
    for interface in BOTH {
        let scratches = [scratch(MIB), scratch(MIB)];
        let files = [&scratches[0], &scratches[1]].map(|one| open_direct(&one.path));
        let request = |op, file, offset, tag| Request {
            op,
            file,
            offset,
            len: if op == Op::Flush { 0 } else { 65536 },
            tag,
        };
        let requests = [
            request(Op::Read, 0, 0, 0),
            request(Op::Write, 1, 65536, 1),
            request(Op::WriteDurable, 1, 131_072, 2),
            request(Op::Flush, 1, 0, 3),
            request(Op::Discard, 0, 524_288, 4),
        ];
        let list = List {
            files: &[&files[0], &files[1]],
            memory,
            max_in_flight: 8,
            largest: Bytes::kib(64),
            interface,
            interrupt: &AtomicBool::new(false),
        };
        let mut source = Script::new(requests, |_| 1);
        list::run(&list, &mut source).unwrap();
        assert_eq!(
            good_tags(&source.done),
            [0, 1, 2, 3, 4],
            "{:?}",
            source.done
        );
        let content = scratches.map(|one| std::fs::read(one.path).unwrap());
        for (number, block) in content[0].chunks(65536).enumerate() {
            let expected = if number == 8 { 0 } else { 7 };
            assert!(block.iter().all(|byte| *byte == expected), "{number}");
        }
        let written = &content[1][65536..196_608];
        for page in written.chunks(4096) {
            let zeros = page.iter().rev().take_while(|byte| **byte == 0).count();
            assert!((3072..3080).contains(&zeros), "{zeros}");
        }
        let pages: std::collections::BTreeSet<&[u8]> = written.chunks(4096).collect();
        assert_eq!(pages.len(), 32, "each page differs");
        assert!(content[1][..65536].iter().all(|byte| *byte == 7));
        assert!(content[1][196_608..].iter().all(|byte| *byte == 7));
    }
}
