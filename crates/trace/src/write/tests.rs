use std::path::Path;
use std::process::Command;

use record::{Bytes, Nanos};

use super::*;
use crate::io::{Device, DeviceIndex, NameIndex, Op};
use crate::open;

struct Named(Vec<Device>);

impl Described for Named {
    fn devices(&self) -> &[Device] {
        &self.0
    }

    fn name(&self, index: NameIndex) -> Option<&str> {
        ["mariadbd", "kworker/0:1H"].get(index.0 as usize).copied()
    }
}

fn named() -> Named {
    let device = |name: &str| Device {
        name: name.to_owned(),
        size: None,
        write_cache: None,
    };
    Named(vec![device("8,16"), device("259,1")])
}

/// Reads, writes, FUA, flushes and discards of two devices, some at once.
fn ios() -> Vec<Io> {
    let ops = [Op::Read, Op::Write, Op::Flush, Op::Write, Op::Discard];
    (0..200_u64)
        .map(|n| {
            let op = ops[n as usize % ops.len()];
            let issued = n * 150_000;
            Io {
                device: DeviceIndex((n / 7 % 2) as u16),
                op,
                fua: n % 5 == 3,
                offset: Bytes(if op == Op::Flush { 0 } else { n * 8192 }),
                length: Bytes(if op == Op::Flush { 0 } else { 4096 }),
                queued: Some(Nanos(issued.saturating_sub(3000))),
                issued: Nanos(issued),
                completed: Some(Nanos(issued + 1000 * (50 + n % 9 * 70))),
                failed: n % 50 == 11,
                process: Some(NameIndex((n % 2) as u32)),
                // A thread changes its name, and some I/Os have no thread.
                thread: [None, Some(4711), Some(4712)]
                    .into_iter()
                    .nth(n as usize % 3)
                    .flatten(),
                file: None,
            }
        })
        .collect()
}

fn write(format: TraceFormat, path: &Path) -> Converted {
    let named = named();
    let header = Header {
        format: "test",
        started: Some("2026-11-24T10:00:00Z".parse().unwrap()),
        devices: named.0.clone(),
        has_completions: true,
        has_flushes: true,
    };
    let mut conversion = format.begin(File::create(path).unwrap(), &header).unwrap();
    for io in ios() {
        conversion.write(&io, &named).unwrap();
    }
    conversion.finish().unwrap()
}

fn read(path: &Path) -> Vec<Io> {
    open(path).unwrap().map(Result::unwrap).collect()
}

#[test]
fn fields_of_blktrace_and_blkparse_come_back() {
    let folder = tempfile::tempdir().unwrap();
    for format in [
        TraceFormat::Blktrace,
        TraceFormat::Blkparse,
        TraceFormat::Own,
    ] {
        let path = folder.path().join("t.blktrace.0");
        let converted = write(format, &path);
        let lost = match format {
            TraceFormat::Blkparse => vec![(IoPart::Started, 200)],
            _ => Vec::new(),
        };
        assert_eq!(converted.lost, lost, "{format:?}");
        let back = read(&path);
        assert_eq!(back.len(), 200);
        for (io, back) in ios().iter().zip(&back) {
            // Names have other numbers.
            let nameless = Io {
                process: back.process,
                ..*io
            };
            assert_eq!(back, &nameless, "{format:?}");
        }
        let mut reader = open(&path).unwrap();
        let second = reader.by_ref().nth(1).unwrap().unwrap();
        assert_eq!(reader.name(second.process.unwrap()), Some("kworker/0:1H"));
        assert_eq!(reader.header().devices[0].name, "8,16");
    }
}

#[test]
fn fields_of_fio_come_back_and_the_rest_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    for format in [TraceFormat::Iolog2, TraceFormat::Iolog3] {
        let path = folder.path().join("t.log");
        let lost = write(format, &path).lost;
        assert!(lost.iter().all(|(part, _)| *part != IoPart::ShortWait));
        assert_eq!(lost[0], (IoPart::Completion, 200));
        assert!(lost.contains(&(IoPart::Fua, 40)));
        assert!(lost.contains(&(IoPart::Thread, 133)));
        let back = read(&path);
        assert_eq!(back.len(), 200);
        for (io, back) in ios().iter().zip(&back) {
            let kept = Io {
                fua: false,
                queued: None,
                completed: None,
                failed: false,
                process: None,
                thread: None,
                ..*io
            };
            assert_eq!(back, &kept, "{format:?}");
        }
    }
}

/// A trace as of blkreplay, without completions, and with I/Os 60 µs apart.
#[test]
fn what_a_format_makes_up_or_moves_is_counted_too() {
    let folder = tempfile::tempdir().unwrap();
    let header = Header {
        format: "test",
        started: None,
        devices: named().0,
        has_completions: false,
        has_flushes: false,
    };
    for (format, expected) in [
        (TraceFormat::Own, &[][..]),
        (
            TraceFormat::Blkparse,
            &[(IoPart::NoQueued, 4), (IoPart::NoFlushes, 4)],
        ),
        (
            TraceFormat::Blktrace,
            &[(IoPart::NoQueued, 4), (IoPart::NoFlushes, 4)],
        ),
        // Those at 60 and 180 µs come too early, and the wait before the one at 120 µs is of both.
        (
            TraceFormat::Iolog2,
            &[(IoPart::ShortWait, 2), (IoPart::NoFlushes, 4)],
        ),
        (TraceFormat::Iolog3, &[(IoPart::NoFlushes, 4)]),
    ] {
        let file = File::create(folder.path().join("t")).unwrap();
        let mut conversion = format.begin(file, &header).unwrap();
        for n in 0..4 {
            let io = crate::io::tests::read_at(n * 60_000, n * 4096);
            conversion.write(&io, &named()).unwrap();
        }
        assert_eq!(conversion.finish().unwrap().lost, expected, "{format:?}");
    }
}

#[test]
fn what_is_known_of_a_device_is_counted_where_it_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let named = Named(vec![Device {
        name: "sda".to_owned(),
        size: Some(Bytes::gib(1)),
        write_cache: None,
    }]);
    let header = Header {
        format: "test",
        started: None,
        devices: named.0.clone(),
        has_completions: true,
        has_flushes: true,
    };
    let facts = (IoPart::DeviceFacts, 1);
    let of_events = vec![(IoPart::DeviceName, 1), facts, (IoPart::NoQueued, 1)];
    for (format, expected) in [
        (TraceFormat::Own, Vec::new()),
        (TraceFormat::Blktrace, of_events.clone()),
        (TraceFormat::Blkparse, of_events),
        (TraceFormat::Iolog3, vec![facts]),
    ] {
        let file = File::create(folder.path().join("t")).unwrap();
        let mut conversion = format.begin(file, &header).unwrap();
        let io = crate::io::tests::read_at(0, 0);
        conversion.write(&io, &named).unwrap();
        assert_eq!(conversion.finish().unwrap().lost, expected, "{format:?}");
    }
}

#[test]
fn blkparse_prints_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    write(TraceFormat::Blktrace, &folder.path().join("t.blktrace.0"));
    let run = Command::new("blkparse")
        .args(["-i", "t"])
        .current_dir(folder.path())
        .output();
    let Ok(printed) = run else {
        return skip::skipped("there is no blkparse");
    };
    let text = String::from_utf8_lossy(&printed.stdout);
    let path = folder.path().join("printed");
    std::fs::write(&path, text.as_bytes()).unwrap();
    let back = read(&path);
    assert_eq!(back.len(), 200, "{text}");
    for (io, back) in ios().iter().zip(&back) {
        let nameless = Io {
            process: back.process,
            ..*io
        };
        assert_eq!(back, &nameless);
    }
}
