//! `trace record` on a disk that is full, or fills up.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use record::random::SplitMix64;
use record::{Bytes, Nanos};
use trace::{Described, Device, DeviceIndex, Header, Io, NameIndex, Op, Tick, TraceWriter};

use super::loops::Mounted;
use super::support::{Place, has_program, is_root, names_in, number};
use super::{load, record, recording, shown, traced_disk};

/// A file system of so many bytes, in memory, whose blocks are pages.
fn memory(size: &str) -> Mounted {
    Mounted::by(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
}

/// There is room for three blocks of 4,096 requests, of 20 to 24 kB each, and not for a fourth.
#[test]
fn with_root_a_full_disk_ends_the_trace_with_what_fitted() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place).filter(|_| has_program("fio")) else {
        return;
    };
    let full = memory("76k");
    let file = full.point.join("t.dst");
    let mut recorder = recording(&place, &disk, file.to_str().unwrap(), &["--json"]);
    while !recorder.has_ended() {
        load(&disk);
    }
    let recorded = recorder.end().ends_with(0).json();
    assert_eq!(recorded["ended_by"], "disk-full", "{recorded:#}");
    let found = shown(&place, &file);
    assert_eq!(found["ios"], recorded["ios"], "{recorded:#}");
    assert_eq!(found["cut_off"], false);
    assert!(number(&found["ios"]) > 0, "{recorded:#}");
}

#[test]
fn with_root_on_a_disk_that_is_full_nothing_is_recorded_and_what_was_there_stays() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let full = memory("4k");
    let other = full.point.join("other");
    fs::write(&other, [7_u8; 4096]).unwrap();
    for (name, force) in [("other", &["--force"][..]), ("t.dst", &[])] {
        let file = full.point.join(name);
        let options = [force, &["--for", "100ms"]].concat();
        let said = record(&place, &disk, file.to_str().unwrap(), &options).ends_with(2);
        assert!(said.err.contains("could not be written"), "{said:#?}");
        assert_eq!(names_in(&full.point), ["other"]);
        assert!(fs::read(&other).unwrap() == [7_u8; 4096], "{name}");
    }
}

/// A trace of one device, which names nothing.
struct OneDevice([Device; 1]);

impl Described for OneDevice {
    fn devices(&self) -> &[Device] {
        &self.0
    }

    fn name(&self, _: NameIndex) -> Option<&str> {
        None
    }
}

/// A device whose name, which does not compress, has so many letters.
fn device(letters: usize) -> OneDevice {
    let mut random = SplitMix64::new(7);
    let letter = |_| char::from(b'a' + random.below(26) as u8);
    OneDevice([Device {
        name: (0..letters).map(letter).collect(),
        size: None,
        write_cache: None,
    }])
}

fn begin(path: &Path, device: &OneDevice) -> io::Result<TraceWriter> {
    let header = Header {
        format: "disksmith",
        started: None,
        devices: device.0.to_vec(),
        has_completions: true,
        has_flushes: true,
    };
    TraceWriter::new(File::create(path)?, &header, Tick::RECORDED)
}

/// The head ends with its page, so that the end needs another, of which something else takes what it gets.
#[test]
fn with_root_the_end_has_room_on_a_disk_that_another_program_fills() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let tried = place.path("tried");
    let fills_a_page = |device: &OneDevice| {
        let length = begin(&tried, device).unwrap().length().0;
        (4096 - 40..=4096).contains(&length)
    };
    let device = (3000..8000).map(device).find(fills_a_page).unwrap();

    let disk = memory("8k");
    let file = disk.point.join("t.dst");
    let mut writer = begin(&file, &device).unwrap();
    let other = fs::write(disk.point.join("other"), [0; 4096]);
    assert_eq!(other.unwrap_err().kind(), ErrorKind::StorageFull);
    let mut random = SplitMix64::new(7);
    let mut write = |n: u64| {
        let io = Io {
            device: DeviceIndex(0),
            op: Op::Read,
            fua: false,
            offset: Bytes(random.below(1 << 30) * 4096),
            length: Bytes(4096),
            queued: None,
            issued: Nanos(n * 100_000),
            completed: None,
            failed: false,
            process: None,
            thread: None,
            file: None,
        };
        writer.write(&io, &device)
    };
    let failed = (0..5000).find_map(|n| write(n).err());
    assert_eq!(failed.unwrap().kind(), ErrorKind::StorageFull);
    assert_eq!(writer.finish().unwrap(), 0);

    let mut reader = trace::open(&file).unwrap();
    assert!(reader.next().is_none());
    assert!(!reader.caveats().cut_off);
}
