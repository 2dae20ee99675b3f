//! Lists of requests on real files: both ways to the kernel must make each request once, and tell
//! what came of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use engine::list::{Deed, Done, Ended, Errno, Feed, List, ListEnd, Next, Request, RequestError};
use engine::{Choice, EngineError, list};
use record::{Bytes, EngineKind, Nanos};

const BOTH: [Choice; 2] = [Choice::Uring, Choice::Sync];
const MIB: u64 = 1 << 20;

struct Scratch {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

/// A file of `size` bytes that are all 7, in the build's own folder, which is on a disk.
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

/// A feed that gives its requests one after the other and writes down what it is told.
struct Script<D> {
    requests: VecDeque<Request>,
    depth: D,
    in_flight: usize,
    most_seen: usize,
    done: Vec<Done>,
}

impl<D: Fn(usize) -> u32> Script<D> {
    /// `depth` is given how many requests have come back.
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

impl<D: Fn(usize) -> u32> Feed for Script<D> {
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

    fn done(&mut self, now: Nanos, done: Done) {
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
            Request { offset, len, tag }
        })
        .collect()
}

fn run_with(
    file: &File,
    deed: Deed,
    choice: Choice,
    interrupt: &AtomicBool,
    feed: &mut dyn Feed,
) -> Result<ListEnd, EngineError> {
    let list = List {
        file,
        deed,
        most_in_flight: 64,
        largest: Bytes::kib(512),
        choice,
        interrupt,
    };
    list::run(&list, feed)
}

fn run(
    file: &File,
    deed: Deed,
    choice: Choice,
    feed: &mut dyn Feed,
) -> Result<ListEnd, EngineError> {
    run_with(file, deed, choice, &AtomicBool::new(false), feed)
}

/// The tags of what came back well, sorted.
fn good_tags(done: &[Done]) -> Vec<u64> {
    let good = done.iter().filter(|done| done.result.is_ok());
    let mut tags: Vec<u64> = good.map(|done| done.request.tag).collect();
    tags.sort_unstable();
    tags
}

#[test]
fn each_request_is_made_once_and_zeros_are_written_where_asked() {
    const SIZE: u64 = 16 * MIB + 4096;
    for (choice, kind) in [
        (Choice::Uring, EngineKind::Uring),
        (Choice::Sync, EngineKind::Sync),
    ] {
        let scratch = scratch(SIZE);
        let file = open_direct(&scratch.path);
        let all = pieces(SIZE, 128 << 10);
        let mut reads = Script::new(all.clone(), |_| 16);
        let end = run(&file, Deed::Read, choice, &mut reads).unwrap();
        assert_eq!((end.kind.kind, end.ended), (kind, Ended::End));
        assert_eq!(good_tags(&reads.done), (0..129).collect::<Vec<_>>());
        assert_eq!(reads.most_seen, 16);
        // Every third piece, and the short one at the end.
        let is_written = |tag: u64| tag.is_multiple_of(3) || tag == 128;
        let some: Vec<Request> = all.into_iter().filter(|r| is_written(r.tag)).collect();
        let mut writes = Script::new(some.clone(), |_| 16);
        run(&file, Deed::WriteZeros, choice, &mut writes).unwrap();
        assert_eq!(good_tags(&writes.done).len(), some.len());
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
    // Asked for more than the list allows, there are as many as it allows.
    let depth = |done| match done {
        0..50 => 1,
        50..200 => 1000,
        _ => 3,
    };
    let scratch = scratch(8 * MIB);
    let file = open_direct(&scratch.path);
    for choice in BOTH {
        let mut feed = Script::new(pieces(8 * MIB, 16 << 10), depth);
        run(&file, Deed::Read, choice, &mut feed).unwrap();
        assert_eq!(good_tags(&feed.done), (0..512).collect::<Vec<_>>());
        assert_eq!(feed.most_seen, 64);
        // Alone in flight, they come back in the order in which they were issued.
        let first: Vec<u64> = feed.done[..50].iter().map(|d| d.request.tag).collect();
        assert_eq!(first, (0..50).collect::<Vec<_>>());
    }
}

/// Gives a request, waits, and gives another; or waits by a depth of 0.
struct Pause {
    began: Instant,
    until: Nanos,
    by_depth: bool,
    asked: u32,
    given: u64,
    done: Vec<Done>,
}

impl Pause {
    fn over(&self) -> bool {
        self.began.elapsed() >= Duration::from(self.until)
    }
}

impl Feed for Pause {
    fn depth(&self) -> u32 {
        let paused = self.by_depth && self.given == 1 && !self.over();
        if paused { 0 } else { 4 }
    }

    fn next(&mut self, now: Nanos) -> Next {
        self.asked += 1;
        match self.given {
            1 if !self.by_depth && now < self.until => return Next::Wait(self.until),
            2 => return Next::End,
            _ => self.given += 1,
        }
        Next::Request(Request {
            offset: self.given * 4096,
            len: 4096,
            tag: self.given,
        })
    }

    fn done(&mut self, _: Nanos, done: Done) {
        self.done.push(done);
    }
}

fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_wait_passes_without_spinning_and_then_it_goes_on() {
    let scratch = scratch(MIB);
    let file = open_direct(&scratch.path);
    for (choice, by_depth) in BOTH.into_iter().flat_map(|c| [(c, false), (c, true)]) {
        // The first call finds the clock, which is no part of this.
        run(&file, Deed::Read, choice, &mut Script::new([], |_| 1)).unwrap();
        let mut feed = Pause {
            began: Instant::now(),
            until: Nanos(500_000_000),
            by_depth,
            asked: 0,
            given: 0,
            done: Vec::new(),
        };
        let cpu = thread_cpu_time();
        run(&file, Deed::Read, choice, &mut feed).unwrap();
        let cpu = thread_cpu_time() - cpu;
        assert_eq!(good_tags(&feed.done), [1, 2]);
        assert!(feed.done[0].began < Nanos(400_000_000));
        assert!(feed.done[1].began >= Nanos(499_000_000), "{:?}", feed.done);
        // First, wait, wait again after the first came back, second, end; and a few to spare.
        assert!(feed.asked <= 9, "asked {} times", feed.asked);
        assert!(cpu < Duration::from_millis(100), "{cpu:?} with {choice:?}");
    }
}

#[test]
fn a_request_that_comes_back_short_is_told_and_the_rest_goes_on() {
    let scratch = scratch(MIB + 8192);
    let file = open_direct(&scratch.path);
    for choice in BOTH {
        let mut feed = Script::new(pieces(2 * MIB, 64 << 10), |_| 8);
        let end = run(&file, Deed::Read, choice, &mut feed).unwrap();
        assert_eq!(end.ended, Ended::End);
        assert_eq!(good_tags(&feed.done), (0..16).collect::<Vec<_>>());
        for done in feed.done.iter().filter(|done| done.request.tag >= 16) {
            let moved = if done.request.tag == 16 { 8192 } else { 0 };
            assert_eq!(done.result, Err(RequestError::Short { moved }));
        }
        assert_eq!(feed.done.len(), 32);
    }
}

#[test]
fn an_error_of_the_kernel_is_told_with_its_number() {
    let scratch = scratch(MIB);
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(&scratch.path)
        .unwrap();
    for choice in BOTH {
        let mut feed = Script::new(pieces(MIB, 64 << 10), |_| 8);
        run(&file, Deed::WriteZeros, choice, &mut feed).unwrap();
        assert_eq!(feed.done.len(), 16);
        let refused = Err(RequestError::Kernel(Errno::BADF));
        assert!(feed.done.iter().all(|done| done.result == refused));
    }
}

/// Gives requests for ever, and sets the interrupt after a number of them.
struct Endless<'a> {
    interrupt: &'a AtomicBool,
    after: u64,
    given: u64,
    back: u64,
}

impl Feed for Endless<'_> {
    fn depth(&self) -> u32 {
        32
    }

    fn next(&mut self, _: Nanos) -> Next {
        assert!(self.given < self.after, "asked after the interrupt");
        self.given += 1;
        if self.given == self.after {
            self.interrupt.store(true, Relaxed);
        }
        Next::Request(Request {
            offset: self.given % 16 * 65536,
            len: 65536,
            tag: self.given,
        })
    }

    fn done(&mut self, _: Nanos, done: Done) {
        assert_eq!(done.result, Ok(()));
        self.back += 1;
    }
}

#[test]
fn an_interrupt_lets_what_is_in_flight_come_back_and_issues_no_more() {
    let scratch = scratch(MIB);
    let file = open_direct(&scratch.path);
    for choice in BOTH {
        let interrupt = AtomicBool::new(false);
        let mut feed = Endless {
            interrupt: &interrupt,
            after: 1000,
            given: 0,
            back: 0,
        };
        let end = run_with(&file, Deed::Read, choice, &interrupt, &mut feed).unwrap();
        assert_eq!(end.ended, Ended::Interrupted);
        assert_eq!((feed.given, feed.back), (1000, 1000));
    }
}

#[test]
fn an_interrupt_ends_a_long_wait() {
    struct Sleeper;
    impl Feed for Sleeper {
        fn depth(&self) -> u32 {
            1
        }
        fn next(&mut self, _: Nanos) -> Next {
            Next::Wait(Nanos::from_secs(3600))
        }
        fn done(&mut self, _: Nanos, _: Done) {}
    }
    let scratch = scratch(MIB);
    let file = open_direct(&scratch.path);
    for choice in BOTH {
        let (interrupt, began) = (AtomicBool::new(false), Instant::now());
        let end = std::thread::scope(|scope| {
            let list =
                scope.spawn(|| run_with(&file, Deed::Read, choice, &interrupt, &mut Sleeper));
            std::thread::sleep(Duration::from_millis(100));
            interrupt.store(true, Relaxed);
            list.join().unwrap().unwrap()
        });
        assert_eq!(end.ended, Ended::Interrupted);
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn what_direct_io_does_not_take_is_refused_and_the_rest_comes_back() {
    let scratch = scratch(MIB);
    let file = open_direct(&scratch.path);
    let good = Request {
        offset: 0,
        len: 65536,
        tag: 1,
    };
    let bad = [
        Request {
            offset: 100,
            ..good
        },
        Request { len: 1000, ..good },
        Request { len: 0, ..good },
        Request {
            len: 1 << 20,
            ..good
        },
        Request {
            offset: 1 << 63,
            ..good
        },
    ];
    for (choice, bad) in BOTH.into_iter().flat_map(|c| bad.map(|bad| (c, bad))) {
        let mut feed = Script::new([good, good, bad, good], |_| 8);
        let error = run(&file, Deed::Read, choice, &mut feed).unwrap_err();
        assert!(matches!(error, EngineError::Unfit(_)), "{error}");
        let text = error.to_string();
        let named = format!("of {} bytes at byte {}", bad.len, bad.offset);
        assert!(text.contains(&named), "{text}");
        assert_eq!(good_tags(&feed.done), [1, 1]);
    }
}

#[test]
fn a_list_that_makes_no_sense_is_refused() {
    let scratch = scratch(MIB);
    let (direct, cached) = (
        open_direct(&scratch.path),
        File::open(&scratch.path).unwrap(),
    );
    let interrupt = AtomicBool::new(false);
    for (file, most_in_flight, largest, word) in [
        (&direct, 0, Bytes::kib(64), "in flight"),
        (&direct, 1025, Bytes::kib(64), "in flight"),
        (&direct, 1, Bytes(0), "largest"),
        (&direct, 1, Bytes::mib(65), "largest"),
        (&cached, 1, Bytes::kib(64), "O_DIRECT"),
    ] {
        let list = List {
            file,
            deed: Deed::Read,
            most_in_flight,
            largest,
            choice: Choice::Auto,
            interrupt: &interrupt,
        };
        let error = list::run(&list, &mut Script::new([], |_| 1)).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn lists_run_at_once_each_with_a_thousand_in_flight() {
    for choice in BOTH {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let scratch = scratch(8 * MIB);
                    let file = open_direct(&scratch.path);
                    let interrupt = AtomicBool::new(false);
                    let list = List {
                        file: &file,
                        deed: Deed::Read,
                        most_in_flight: 1024,
                        largest: Bytes::kib(512),
                        choice,
                        interrupt: &interrupt,
                    };
                    let mut feed = Script::new(pieces(8 * MIB, 4 << 10), |_| 1024);
                    let end = list::run(&list, &mut feed).unwrap();
                    assert!(!end.kind.detail.contains("at most"), "{}", end.kind.detail);
                    assert_eq!(good_tags(&feed.done), (0..2048).collect::<Vec<_>>());
                    assert_eq!(feed.most_seen, 1024);
                });
            }
        });
    }
}

/// A loop device on a file, which goes when it is dropped.
struct Loop {
    node: String,
    scratch: Scratch,
}

impl Loop {
    /// `None`, with a line, without root or loop devices.
    fn new(size: u64) -> Option<Loop> {
        let scratch = scratch(size);
        let control = File::open("/dev/loop-control");
        // Two processes may be given the same free device; the lock keeps tests apart.
        let _held = control.as_ref().map(|control| {
            rustix::fs::flock(control, rustix::fs::FlockOperation::LockExclusive).unwrap();
        });
        let made = std::process::Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&scratch.path)
            .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
            .output();
        match made {
            Ok(output) if output.status.success() => Some(Loop {
                node: String::from_utf8(output.stdout).unwrap().trim().to_owned(),
                scratch,
            }),
            other => {
                println!("skipped: no loop device can be attached here ({other:?})");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let detached = std::process::Command::new("losetup")
            .args(["--detach", &self.node])
            .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
            .status();
        assert!(detached.is_ok_and(|status| status.success()));
    }
}

/// Behind the end of its file, a loop device has only errors.
#[test]
fn with_root_errors_of_a_device_are_told_and_the_rest_goes_on() {
    let Some(device) = Loop::new(8 * MIB) else {
        return;
    };
    let file = open_direct(Path::new(&device.node));
    for choice in BOTH {
        let backing = OpenOptions::new()
            .write(true)
            .open(&device.scratch.path)
            .unwrap();
        backing.set_len(4 * MIB).unwrap();
        let mut feed = Script::new(pieces(8 * MIB, 512 << 10), |_| 4);
        let end = run(&file, Deed::Read, choice, &mut feed).unwrap();
        assert_eq!(end.ended, Ended::End);
        assert_eq!(good_tags(&feed.done), (0..8).collect::<Vec<_>>());
        assert_eq!(feed.done.len(), 16);
        let failed = Err(RequestError::Kernel(Errno::IO));
        let bad = feed.done.iter().filter(|done| done.result == failed);
        assert_eq!(bad.count(), 8);
        // To write is to make the file whole again.
        let mut feed = Script::new(pieces(8 * MIB, 512 << 10), |_| 4);
        run(&file, Deed::WriteZeros, choice, &mut feed).unwrap();
        assert_eq!(good_tags(&feed.done), (0..16).collect::<Vec<_>>());
        let content = std::fs::read(&device.node).unwrap();
        assert_eq!(content.len() as u64, 8 * MIB);
        assert!(content.iter().all(|byte| *byte == 0));
    }
}
