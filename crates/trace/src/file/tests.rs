use std::fs::{self, File};
use std::path::Path;

use proptest::prelude::*;

use super::frame::BlockKind;
use super::*;
use crate::io::tests::read_at;
use crate::io::{Caveats, Described, DeviceIndex, Header, Io, NameIndex, Op, ReadError};
use crate::open;

/// Names of a test's trace.
struct Named {
    devices: Vec<Device>,
    names: Vec<String>,
}

impl Described for Named {
    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn name(&self, index: NameIndex) -> Option<&str> {
        self.names.get(index.0 as usize).map(String::as_str)
    }
}

fn named() -> Named {
    let device = |name: &str, size, write_cache| Device {
        name: name.to_owned(),
        size,
        write_cache,
    };
    Named {
        devices: vec![
            device("vda", Some(Bytes::GIB), Some(WriteCache::Back)),
            device("loop7", None, Some(WriteCache::Through)),
        ],
        names: vec!["mariadbd".to_owned(), "ib_logfile0".to_owned()],
    }
}

fn header(named: &Named) -> Header {
    Header {
        format: "disksmith",
        started: Some("2026-11-24T10:00:00Z".parse().unwrap()),
        devices: named.devices.clone(),
        has_completions: true,
        has_flushes: true,
    }
}

fn write(path: &Path, ios: &[Io], block: usize) {
    let named = named();
    let file = File::create(path).unwrap();
    let mut writer = TraceWriter::new(file, &header(&named), Tick::EXACT).unwrap();
    for (n, io) in ios.iter().enumerate() {
        if n > 0 && n % block == 0 {
            writer.close_block().unwrap();
        }
        writer.write(io, &named).unwrap();
    }
    writer.set_caveats(Caveats {
        lost: 3,
        ambiguous: 2,
        ..Caveats::default()
    });
    assert_eq!(writer.finish().unwrap(), ios.len() as u64);
}

/// I/Os of a file, errors while reading it, and its caveats.
fn read(path: &Path) -> (Vec<Io>, Vec<ReadError>, Caveats) {
    let mut reader = open(path).unwrap();
    let (mut ios, mut errors) = (Vec::new(), Vec::new());
    for next in reader.by_ref() {
        match next {
            Ok(io) => ios.push(io),
            Err(error) => errors.push(error),
        }
    }
    (ios, errors, reader.caveats())
}

fn any_io() -> impl Strategy<Value = Io> {
    let op = prop_oneof![
        Just(Op::Read),
        Just(Op::Write),
        Just(Op::Flush),
        Just(Op::Discard)
    ];
    let name = || prop::option::of((0_u32..2).prop_map(NameIndex));
    let time = || prop::option::of(0_u64..10_000_000);
    (
        (0_u16..2, op, any::<bool>(), any::<bool>()),
        (0_u64..1 << 40, 0_u64..1 << 24, 0_u32..13),
        (0_u64..2_000_000, time(), time()),
        (name(), name(), prop::option::of(any::<u32>())),
    )
        .prop_map(
            |((device, op, fua, failed), (offset, length, shift), times, names)| {
                let (issued, queued, completed) = times;
                Io {
                    device: DeviceIndex(device),
                    op,
                    fua,
                    offset: Bytes(offset >> shift << shift),
                    length: Bytes(length >> shift << shift),
                    queued: queued.map(|time| Nanos(issued.saturating_sub(time))),
                    issued: Nanos(issued),
                    completed: completed.map(|time| Nanos(issued + time)),
                    failed,
                    process: names.0,
                    thread: names.2,
                    file: names.1,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_trace_comes_back(mut ios in prop::collection::vec(any_io(), 0..50), block in 1_usize..20) {
        ios.sort_by_key(|io| io.issued);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        write(&path, &ios, block);
        let (back, errors, caveats) = read(&path);
        prop_assert_eq!(errors.len(), 0);
        // Names have the numbers of their first use in the file, so the names themselves are compared.
        let reader = { let mut reader = open(&path).unwrap(); while reader.next().is_some() {} reader };
        let named = named();
        for (io, back) in ios.iter().zip(&back) {
            let name = |index: Option<NameIndex>| index.and_then(|index| named.name(index));
            let name_back = |index: Option<NameIndex>| index.and_then(|index| reader.name(index));
            prop_assert_eq!(name(io.process), name_back(back.process));
            prop_assert_eq!(name(io.file), name_back(back.file));
            let nameless = |io: &Io| Io { process: None, file: None, ..*io };
            prop_assert_eq!(nameless(io), nameless(back));
        }
        prop_assert_eq!(ios.len(), back.len());
        prop_assert_eq!(&reader.header().devices, &named.devices);
        prop_assert_eq!(reader.header(), &header(&named));
        prop_assert_eq!(caveats, Caveats { lost: 3, ambiguous: 2, ..Caveats::default() });
    }
}

/// The column of threads is the last; if no I/O has a thread, it is one byte: the width 0.
#[test]
fn a_file_of_version_1_is_read_without_its_column_of_threads_and_a_later_version_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let ios: Vec<Io> = (0..10).map(|n| read_at(n * 1000, n * 4096)).collect();
    let mut block = block::Builder::default();
    for io in &ios {
        block.push(io, &named());
    }
    let mut block = block.build(Tick::EXACT, Caveats::default());
    assert_eq!(block.pop(), Some(0));
    let write_as = |version| {
        let head = HeadBlock {
            version,
            started: None,
            tick_ns: Tick::EXACT,
            has_completions: true,
            has_flushes: true,
            devices: Vec::new(),
        };
        let head = frame::pack(BlockKind::Head, &serde_json::to_vec(&head).unwrap());
        let ios = frame::pack(BlockKind::Ios, &block);
        fs::write(&path, [&MAGIC[..], &head, &ios].concat()).unwrap();
    };
    write_as(1);
    let (back, errors, _) = read(&path);
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(back, ios);
    write_as(VERSION + 1);
    let error = open(&path).err().unwrap().to_string();
    assert!(error.contains("version 3 of the format"), "{error}");
}

#[test]
fn a_file_that_is_cut_anywhere_is_read_to_its_last_whole_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let ios: Vec<Io> = (0..40).map(|n| read_at(n * 1000, n * 4096)).collect();
    write(&path, &ios, 10);
    let whole = fs::read(&path).unwrap();
    let mut lengths = Vec::new();
    for cut in MAGIC.len()..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        if open(&path).is_err() {
            continue;
        }
        let (back, errors, caveats) = read(&path);
        assert!(errors.is_empty(), "{errors:?}");
        assert!(caveats.cut_off);
        assert_eq!(back.len() % 10, 0);
        assert_eq!(back, ios[..back.len()]);
        lengths.push(back.len());
    }
    lengths.dedup();
    assert_eq!(lengths, [0, 10, 20, 30, 40]);
}

#[test]
fn a_damaged_block_is_reported_and_the_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let ios: Vec<Io> = (0..30).map(|n| read_at(n * 1000, n * 4096)).collect();
    write(&path, &ios, 10);
    let whole = fs::read(&path).unwrap();
    let frames: Vec<usize> = (0..whole.len() - 4)
        .filter(|at| whole[*at..].starts_with(b"dsTB"))
        .collect();
    // The head, three blocks of I/Os, and the end.
    assert_eq!(frames.len(), 5);
    let mut damaged = whole.clone();
    damaged[frames[2] + 30] ^= 0x40;
    fs::write(&path, &damaged).unwrap();
    let (back, errors, _) = read(&path);
    assert_eq!(errors.len(), 1);
    assert_eq!(
        errors[0].to_string(),
        format!(
            "{}: damaged at byte {}: the checksum of a block is wrong",
            path.display(),
            frames[2]
        )
    );
    assert_eq!(back, [&ios[..10], &ios[20..]].concat());
    // The last block's length without its bytes, as after a power failure.
    let mut torn = whole[..frames[4]].to_vec();
    torn[frames[3] + 40..].fill(0);
    fs::write(&path, &torn).unwrap();
    let (back, errors, caveats) = read(&path);
    assert_eq!((back.len(), errors.len(), caveats.cut_off), (20, 0, true));
}

#[test]
fn random_io_takes_at_most_12_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let named = named();
    let file = File::create(&path).unwrap();
    let mut writer = TraceWriter::new(file, &header(&named), Tick::RECORDED).unwrap();
    let mut random = record::random::SplitMix64::new(7);
    let mut now = 0.0;
    for _ in 0..50_000 {
        // 1,000 IOPS of 4 KiB at random places of 1 TiB, with 30 µs in the scheduler and 1 ms in the device.
        now += random.exponential() * 1e6;
        let wait = (random.exponential() * 30e3) as u64;
        let io = Io {
            queued: Some(Nanos((now as u64).saturating_sub(wait))),
            completed: Some(Nanos(now as u64 + (random.exponential() * 1e6) as u64)),
            process: Some(NameIndex(random.below(2) as u32)),
            thread: Some(20_000 + random.below(8) as u32),
            file: Some(NameIndex(random.below(2) as u32)),
            ..read_at(now as u64, random.below(1 << 28) * 4096)
        };
        writer.write(&io, &named).unwrap();
    }
    writer.finish().unwrap();
    let length = fs::metadata(&path).unwrap().len();
    assert!(
        length <= 12 * 50_000,
        "{} bytes an I/O",
        length as f64 / 5e4
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn noise_after_the_start_never_panics(noise in prop::collection::vec(any::<u8>(), 0..300)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        write(&path, &[read_at(1, 2)], 1);
        let whole = fs::read(&path).unwrap();
        for keep in [MAGIC.len(), whole.len() / 2, whole.len() - 40] {
            fs::write(&path, [&whole[..keep], &noise].concat()).unwrap();
            if let Ok(reader) = open(&path) {
                reader.for_each(drop);
            }
        }
        let _ = block::read(&noise, Tick::EXACT);
    }
}
