//! The verb `replay` on real files and devices: what it issues, by the kernel's count; what it refuses; and its
//! answer. What needs root or loop devices says so and passes without.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
mod support;
#[path = "replay/written.rs"]
mod written;

use std::fs::{self, File};
use std::path::PathBuf;

use loops::{Loop, digest, fill};
use record::{Bytes, Nanos};
use rustix::process::Signal;
use serde_json::Value;
use support::{Place, Running, names_in};
use trace::{
    Caveats, Described, Device, DeviceIndex, Header, Io, NameIndex, Op, Tick, TraceWriter,
    WriteCache,
};

/// An hour of a real MySQL's I/O.
fn mysql() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces/linux-mysql.load.gz")
}

/// A trace of one device, and of a file of this name.
struct OneDevice(Vec<Device>, Option<&'static str>);

impl Described for OneDevice {
    fn devices(&self) -> &[Device] {
        &self.0
    }

    fn name(&self, _: NameIndex) -> Option<&str> {
        self.1
    }
}

/// Milliseconds, operation, FUA, offset and length.
type Recorded = (u64, Op, bool, u64, u64);

/// A trace file of these I/Os. Each took 0.1 ms.
fn recorded(place: &Place, ios: &[Recorded]) -> String {
    recorded_on(place, None, None, ios)
}

/// The same, on a disk with this write cache, of a file of this name.
fn recorded_on(
    place: &Place,
    write_cache: Option<WriteCache>,
    file: Option<&'static str>,
    ios: &[Recorded],
) -> String {
    let path = place.path("recorded.trace");
    let devices = vec![Device {
        name: "sda".to_owned(),
        size: None,
        write_cache,
    }];
    let header = Header {
        format: "disksmith",
        started: None,
        devices: devices.clone(),
        has_completions: true,
        has_flushes: true,
    };
    let described = OneDevice(devices, file);
    let file = File::create(&path).unwrap();
    let mut writer = TraceWriter::new(file, &header, Tick::EXACT).unwrap();
    for (ms, op, fua, offset, length) in ios.iter().copied() {
        let issued = Nanos(ms * 1_000_000);
        let io = Io {
            device: DeviceIndex(0),
            op,
            fua,
            offset: Bytes(offset),
            length: Bytes(length),
            queued: None,
            issued,
            completed: Some(issued + Nanos(100_000)),
            failed: false,
            process: None,
            thread: None,
            file: described.1.map(|_| NameIndex(0)),
        };
        writer.write(&io, &described).unwrap();
    }
    writer.set_caveats(Caveats::default());
    writer.finish().unwrap();
    path.to_str().unwrap().to_owned()
}

/// A trace of blkreplay's format: seconds, sector, sectors, operation.
fn load(place: &Place, ios: &[(f64, u64, u64, char)]) -> String {
    let path = place.path("trace.load");
    let mut text = "start ; sector ; length ; op ; replay_delay ; replay_duration\n".to_owned();
    for (start, sector, length, op) in ios {
        text.push_str(&format!(
            "{start:.9} ; {sector} ; {length} ; {op} ; 0.0 ; 0.0\n"
        ));
    }
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn counts(document: &Value) -> &Value {
    &document["answer"]["counts"]
}

/// Completed reads, writes and flushes of a device.
fn kernel(device: &Loop) -> [u64; 3] {
    let name = device
        .node
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let field = |index: usize| stat.split_whitespace().nth(index).unwrap().parse().unwrap();
    [field(0), field(4), field(15)]
}

#[test]
fn a_trace_is_replayed_in_a_directory_kept_shown_and_leaves_no_file() {
    let place = Place::new();
    let ios: Vec<_> = (0..200)
        .map(|n| {
            (
                n as f64 / 1000.0,
                n * 64,
                8,
                if n % 2 == 0 { 'R' } else { 'W' },
            )
        })
        .collect();
    let trace = load(&place, &ios);
    let folder = place.path("data");
    let words = ["replay", &trace, folder.to_str().unwrap(), "--json"];
    let document = place.run(&words).ends_with(0).json();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let answer = &document["answer"];
    assert_eq!(answer["trace_ios"], 200);
    assert_eq!(
        (
            counts(&document)["issued"].as_u64(),
            counts(&document)["failed"].as_u64()
        ),
        (Some(200), Some(0))
    );
    let ios = |direction: &str| document["phases"][0][direction]["ops"].as_u64();
    assert_eq!((ios("read"), ios("write")), (Some(100), Some(100)));
    let shown = place.run(&["show", "last"]).ends_with(0);
    for word in ["replay", "read-4k", "write-4k", "lateness", "95 %"] {
        assert!(shown.out.contains(word), "no {word} in {}", shown.out);
    }
    place.run(&["runs"]).ends_with(0);
    place
        .run(&["replay", &trace, folder.to_str().unwrap(), "--pace", "asap"])
        .ends_with(0);
    place.run(&["compare", "last~1", "last"]).ends_with(0);
    let page = place.path("page.html");
    place
        .run(&["report", "last", "-o", page.to_str().unwrap()])
        .ends_with(0);
    let page = fs::read_to_string(page).unwrap();
    for words in ["Latency by class", ">95 %<"] {
        assert!(page.contains(words), "no {words}");
    }
}

#[test]
fn what_cannot_be_replayed_is_refused_before_anything_is_touched() {
    let place = Place::new();
    let trace = load(&place, &[(0.0, 0, 8, 'W'), (0.1, 1 << 30, 8, 'R')]);
    let target = place.path("target");
    fs::write(&target, vec![7; 1 << 20]).unwrap();
    let target = target.to_str().unwrap();
    let before = fs::read(target).unwrap();
    let data = place.path("data");
    let data = data.to_str().unwrap();
    for (words, why) in [
        (
            &[trace.as_str(), target][..],
            "name it again with --destroy",
        ),
        (&[&trace, &trace], "is the trace itself"),
        (
            &[&trace, target, "--reads-only", "--pace", "dependencies"],
            "holds no completion times",
        ),
        (&[&trace, target, target, "--reads-only"], "1 device(s)"),
        (
            &[&trace, target, "--reads-only", "--device", "sdz"],
            "no I/O of a device sdz",
        ),
        (&[&trace, data], "does not fit"),
        (&[target, data], "is no trace that is known"),
        (&["/nonexistent", data], "could not be read"),
        (&["/dev/stdin", data], "reads its trace twice"),
        (&[&trace, target, "--speed", "0x"], "a speed is a factor"),
    ] {
        let words = [&["replay"][..], words].concat();
        place.run(&words).refuses(&[why]);
    }
    assert_eq!(fs::read(target).unwrap(), before);
}

#[test]
fn reads_only_leaves_the_target_as_it_is_and_counts_what_is_left_out_or_beyond() {
    let place = Place::new();
    let trace = load(
        &place,
        &[
            (0.0, 0, 8, 'W'),
            (0.001, 8, 8, 'R'),
            (0.002, 1 << 30, 8, 'R'),
        ],
    );
    let target = place.path("target");
    fs::write(&target, vec![7; 1 << 20]).unwrap();
    let words = [
        "replay",
        &trace,
        target.to_str().unwrap(),
        "--reads-only",
        "--json",
    ];
    let document = place.run(&words).ends_with(0).json();
    let counted =
        ["ios", "issued", "left_out", "clipped"].map(|key| counts(&document)[key].as_u64());
    assert_eq!(counted, [Some(3), Some(1), Some(1), Some(1)]);
    let codes = document["findings"].as_array().unwrap();
    assert!(codes.iter().any(|finding| finding["code"] == "clipped"));
    let wrapped = [&words[..], &["--map", "wrap"]].concat();
    let document = place.run(&wrapped).ends_with(0).json();
    assert_eq!(
        (
            counts(&document)["clipped"].as_u64(),
            counts(&document)["remapped"].as_u64()
        ),
        (Some(0), Some(1))
    );
    assert!(fs::read(&target).unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn with_root_the_kernel_counts_the_reads_writes_and_flushes_of_the_trace() {
    let (Some(device), Some(signed)) = (Loop::new(16), Loop::new(16)) else {
        return;
    };
    let place = Place::new();
    let trace = recorded(
        &place,
        &[
            (1, Op::Read, false, 0, 4096),
            (2, Op::Write, false, 8192, 4096),
            (3, Op::Flush, false, 0, 0),
            (4, Op::Write, false, 16384, 8192),
            (5, Op::Flush, false, 0, 0),
            (6, Op::Read, false, 1 << 20, 16384),
            (7, Op::Write, true, 65536, 4096),
        ],
    );
    signed.mkfs();
    let before = digest(&signed.node);
    place
        .run(&["replay", &trace, signed.path(), "--destroy", signed.path()])
        .refuses(&["carries the signature 'ext4'"]);
    assert_eq!(digest(&signed.node), before);
    // What was written to is data of an unknown kind.
    let consent = format!("{}=unknown", device.path());
    fill(device.path(), 16);
    let words = [
        "replay",
        &trace,
        device.path(),
        "--destroy",
        &consent,
        "--json",
    ];
    // A loop device has no FUA of its own: the kernel writes and flushes. It counts a flush without data as a
    // write too. Flushes that are in flight at the same time may be one.
    let counted = |before: [u64; 3], document: &Value| {
        let now = kernel(&device);
        assert_eq!(now[1] - before[1], 5, "{document}");
        let flushes = now[2] - before[2];
        assert!((1..=3).contains(&flushes), "{flushes}: {document}");
        assert!(now[0] - before[0] >= 2, "{document}");
    };
    let before = kernel(&device);
    let document = place.run(&words).ends_with(0).json();
    counted(before, &document);
    let ops = |direction: &str| document["phases"][0][direction]["ops"].as_u64();
    let all = ["read", "write", "sync", "commit"].map(ops);
    assert_eq!(all, [Some(2), Some(3), Some(2), Some(3)]);
    for pace in ["dependencies", "asap"] {
        let again = [&words[..], &["--pace", pace]].concat();
        let before = kernel(&device);
        let document = place.run(&again).ends_with(0).json();
        counted(before, &document);
    }
}

#[test]
fn with_root_discards_reach_the_device_as_discards_and_whole() {
    let Some(device) = Loop::new(16) else {
        return;
    };
    let place = Place::new();
    let ios = [
        (1, Op::Write, false, 0, 4096),
        (2, Op::Discard, false, 4 << 20, 8 << 20),
    ];
    let trace = recorded(&place, &ios);
    // What was written to is data of an unknown kind.
    let consent = format!("{}=unknown", device.path());
    fill(device.path(), 16);
    let words = ["replay", &trace, device.path(), "--destroy", &consent];
    let words = [&words[..], &["--json", "--discards"]].concat();
    let discarded = || {
        let stat = fs::read_to_string(format!("/sys/block/{}/stat", device.name())).unwrap();
        let sectors = stat.split_whitespace().nth(13).unwrap();
        sectors.parse::<u64>().unwrap() * 512
    };
    for engine in ["uring", "sync"] {
        let before = discarded();
        let words = [&words[..], &["--engine", engine]].concat();
        let document = place.run(&words).ends_with(0).json();
        assert_eq!(
            document["phases"][0]["engine"]["kind"], engine,
            "{document}"
        );
        assert_eq!(counts(&document)["shortened"], 0, "{document}");
        assert_eq!(counts(&document)["failed"], 0, "{document}");
        assert_eq!(discarded() - before, 8 << 20, "{engine}: {document}");
    }
}

#[test]
fn with_root_each_target_takes_requests_of_its_own_block_size() {
    let Some(small) = Loop::new(16) else {
        return;
    };
    let place = Place::new();
    let disk = place.path("disk");
    File::create(&disk).unwrap().set_len(16 << 20).unwrap();
    let large = Loop::part_of(&disk, &["--sector-size", "4096"]).unwrap();
    // Alibaba's format: device, operation, offset, length, microseconds.
    let trace = place.path("two.csv");
    fs::write(
        &trace,
        "4,R,512,512,1577808000000000\n5,W,512,512,1577808000000100\n",
    )
    .unwrap();
    let trace = trace.to_str().unwrap();
    let consents = [small.path(), large.path()].map(|path| ["--destroy", path]);
    let words = [
        &["replay", trace, small.path(), large.path(), "--json"][..],
        consents.as_flattened(),
    ];
    let document = place.run(&words.concat()).ends_with(0).json();
    let counted = ["issued", "failed", "widened"].map(|key| counts(&document)[key].as_u64());
    assert_eq!(counted, [Some(2), Some(0), Some(1)]);
}

#[test]
fn with_root_an_hour_of_mysql_is_replayed_within_moments() {
    let Some(device) = Loop::new(64) else {
        return;
    };
    fill(device.path(), 64);
    let place = Place::new();
    let trace = mysql();
    let consent = format!("{}=unknown", device.path());
    let words = [
        "replay",
        trace.to_str().unwrap(),
        device.path(),
        "--destroy",
        &consent,
        "--map",
        "wrap",
    ];
    let words = [&words[..], &["--speed", "1000x", "--json"]].concat();
    let before = kernel(&device);
    let document = place.run(&words).ends_with(0).json();
    let now = kernel(&device);
    assert_eq!(document["answer"]["trace_ios"], 80_794);
    assert_eq!(counts(&document)["issued"], 80_794);
    assert_eq!(counts(&document)["failed"], 0);
    let ops = |direction: &str| {
        document["phases"][0][direction]["ops"]
            .as_u64()
            .unwrap_or(0)
    };
    // Neighbours in the queue are merged.
    assert!(now[1] - before[1] <= ops("write") && now[1] > before[1]);
    assert_eq!(ops("read") + ops("write"), 80_794);
}

/// A trace of a read of 64 KiB each millisecond, for 18 s.
fn endless(place: &Place) -> String {
    let ios: Vec<_> = (0..18_000)
        .map(|n| {
            (
                f64::from(n) / 1000.0,
                u64::from(n as u32 % 256) * 128,
                128,
                'R',
            )
        })
        .collect();
    load(place, &ios)
}

#[test]
fn a_signal_ends_it_with_what_was_measured_and_a_kill_leaves_no_file() {
    let place = Place::new();
    let trace = endless(&place);
    let words = ["replay", &trace, "data", "--json"];
    let mut run = Running::start(&mut place.command(&words));
    run.wait_for_reads();
    run.signal(Signal::INT);
    let ended = run.end().ends_with(3);
    let document = ended.json();
    assert_eq!(document["interrupted"], true);
    let issued = counts(&document)["issued"].as_u64().unwrap();
    assert!((1..18_000).contains(&issued), "{issued}");
    place.assert_nothing_left();
    let mut run = Running::start(&mut place.command(&words));
    run.wait_for_test_file();
    run.signal(Signal::KILL);
    drop(run);
    assert_eq!(names_in(&place.data()), [""; 0]);
    assert_eq!(place.runs().len(), 1);
}

#[test]
fn bench_takes_a_trace_in_place_of_a_suite() {
    let place = Place::new();
    let trace = load(
        &place,
        &[(0.0, 0, 8, 'R'), (0.01, 64, 8, 'W'), (0.02, 0, 32, 'R')],
    );
    let document = place.document(&["--replay", &trace, "--speed", "2x"]);
    assert_eq!(counts(&document)["issued"], 3);
    assert_eq!(document["answer"]["speed"], 2.0);
    place
        .bench(&["--replay", &trace, "--suite", "seek"])
        .refuses(&["cannot be used with"]);
    place.bench(&["--speed", "2x"]).refuses(&["--replay"]);
}
