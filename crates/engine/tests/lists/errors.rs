//! Errors are reported, and the rest continues.

use super::*;

#[test]
fn a_short_request_is_reported_and_the_rest_continues() {
    let scratch = scratch(MIB + 8192);
    let file = open_direct(&scratch.path);
    for interface in BOTH {
        let mut source = Script::new(pieces(2 * MIB, 64 << 10), |_| 8);
        let end = run(&file, BufferMode::Reads, interface, &mut source).unwrap();
        assert_eq!(end.ended, EndReason::Complete);
        assert_eq!(good_tags(&source.done), (0..16).collect::<Vec<_>>());
        for done in source.done.iter().filter(|done| done.request.tag >= 16) {
            let moved = if done.request.tag == 16 { 8192 } else { 0 };
            assert_eq!(done.result, Err(RequestError::Short { moved }));
        }
        assert_eq!(source.done.len(), 32);
    }
}

#[test]
fn an_error_of_the_kernel_is_reported_with_its_number() {
    let scratch = scratch(MIB);
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(&scratch.path)
        .unwrap();
    for interface in BOTH {
        let mut source = Script::new(writes(pieces(MIB, 64 << 10)), |_| 8);
        run(&file, BufferMode::Zeros, interface, &mut source).unwrap();
        assert_eq!(source.done.len(), 16);
        let refused = Err(RequestError::Kernel(Errno::BADF));
        assert!(source.done.iter().all(|done| done.result == refused));
    }
}

#[test]
fn misaligned_requests_are_refused_and_the_rest_completes() {
    let scratch = scratch(MIB);
    let file = open_direct(&scratch.path);
    let good = Request::read(0, 65536, 1);
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
        Request { file: 1, ..good },
        Request {
            op: Op::Write,
            ..good
        },
    ];
    for (interface, bad) in BOTH.into_iter().flat_map(|c| bad.map(|bad| (c, bad))) {
        let mut source = Script::new([good, good, bad, good], |_| 8);
        let error = run(&file, BufferMode::Reads, interface, &mut source).unwrap_err();
        assert!(matches!(error, EngineError::Unfit(_)), "{error}");
        let text = error.to_string();
        let named = format!("of {} bytes at byte {}", bad.len, bad.offset);
        assert!(text.contains(&named), "{text}");
        assert_eq!(good_tags(&source.done), [1, 1]);
    }
}

#[test]
fn an_invalid_list_is_refused() {
    let scratch = scratch(MIB);
    let (direct, cached) = (
        open_direct(&scratch.path),
        File::open(&scratch.path).unwrap(),
    );
    let interrupt = AtomicBool::new(false);
    for (file, max_in_flight, largest, word) in [
        (&direct, 0, Bytes::kib(64), "in flight"),
        (&direct, 16_385, Bytes::kib(64), "in flight"),
        (&direct, 1, Bytes(0), "largest"),
        (&direct, 1, Bytes::mib(65), "largest"),
        (&cached, 1, Bytes::kib(64), "O_DIRECT"),
    ] {
        let list = List {
            files: &[file],
            memory: BufferMode::Reads,
            max_in_flight,
            largest,
            interface: IoInterface::Auto,
            interrupt: &interrupt,
        };
        let error = list::run(&list, &mut Script::new([], |_| 1)).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

/// A loop device on a file, which is detached when it is dropped.
struct Loop {
    node: String,
    scratch: Scratch,
}

impl Loop {
    /// `None`, with a message, without root or loop devices.
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
                skip::skipped(&format!("no loop device can be attached here ({other:?})"));
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

/// Beyond the end of its file, a loop device returns errors only.
#[test]
fn with_root_errors_of_a_device_are_reported_and_the_rest_continues() {
    let Some(device) = Loop::new(8 * MIB) else {
        return;
    };
    let file = open_direct(Path::new(&device.node));
    for interface in BOTH {
        let backing = OpenOptions::new()
            .write(true)
            .open(&device.scratch.path)
            .unwrap();
        backing.set_len(4 * MIB).unwrap();
        let mut source = Script::new(pieces(8 * MIB, 512 << 10), |_| 4);
        let end = run(&file, BufferMode::Reads, interface, &mut source).unwrap();
        assert_eq!(end.ended, EndReason::Complete);
        assert_eq!(good_tags(&source.done), (0..8).collect::<Vec<_>>());
        assert_eq!(source.done.len(), 16);
        let failed = Err(RequestError::Kernel(Errno::IO));
        let bad = source.done.iter().filter(|done| done.result == failed);
        assert_eq!(bad.count(), 8);
        // Writing extends the file again.
        let mut source = Script::new(writes(pieces(8 * MIB, 512 << 10)), |_| 4);
        run(&file, BufferMode::Zeros, interface, &mut source).unwrap();
        assert_eq!(good_tags(&source.done), (0..16).collect::<Vec<_>>());
        let content = std::fs::read(&device.node).unwrap();
        assert_eq!(content.len() as u64, 8 * MIB);
        assert!(content.iter().all(|byte| *byte == 0));
    }
}

/// Bytes that were discarded on a device, by the kernel's count: zeroes that it was told to write count as written.
fn discarded(device: &Loop) -> u64 {
    let name = device.node.trim_start_matches("/dev/");
    let stat = std::fs::read_to_string(format!("/sys/class/block/{name}/stat")).unwrap();
    let sectors: u64 = stat.split_whitespace().nth(13).unwrap().parse().unwrap();
    sectors * 512
}

#[test]
fn with_root_a_discard_of_a_device_is_a_discard_and_longer_than_any_data() {
    let Some(device) = Loop::new(8 * MIB) else {
        return;
    };
    let file = open_direct(Path::new(&device.node));
    for choice in BOTH {
        let before = discarded(&device);
        let request = Request {
            op: Op::Discard,
            ..Request::read(MIB, 4 << 20, 0)
        };
        let mut script = Script::new([request], |_| 1);
        run(&file, BufferMode::Zeros, choice, &mut script).unwrap();
        assert_eq!(good_tags(&script.done), [0], "{:?}", script.done);
        assert_eq!(discarded(&device) - before, 4 * MIB, "{choice:?}");
    }
}

#[test]
fn a_discard_of_almost_4_gib_completes() {
    let scratch = scratch(MIB);
    let file = open_direct(&scratch.path);
    file.set_len(8 << 30).unwrap();
    for interface in BOTH {
        let request = Request {
            op: Op::Discard,
            ..Request::read(0, 0xFFFF_F000, 0)
        };
        let mut source = Script::new([request], |_| 1);
        run(&file, BufferMode::Zeros, interface, &mut source).unwrap();
        assert_eq!(good_tags(&source.done), [0], "{:?}", source.done);
    }
}
