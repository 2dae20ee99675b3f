use std::path::{Path, PathBuf};

use proptest::prelude::*;
use record::{Bytes, Nanos};

use crate::io::{Io, Op};
use crate::open;

mod text;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
}

fn read(path: &Path) -> Vec<Io> {
    open(path).unwrap().map(Result::unwrap).collect()
}

/// Operation, offset, length, issue and completion.
type Row = (Op, u64, u64, u64, Option<u64>);

fn row(io: &Io) -> Row {
    let completed = io.completed.map(|time| time.0);
    (io.op, io.offset.0, io.length.0, io.issued.0, completed)
}

#[test]
fn each_format_is_recognized_by_its_content_and_read() {
    let cases: [(&str, &str, &[Row]); 9] = [
        (
            "msr.csv",
            "MSR Cambridge",
            &[
                (Op::Read, 383_496_192, 32_768, 0, Some(41_300)),
                (
                    Op::Write,
                    310_983_168,
                    2048,
                    1_332_052_600,
                    Some(1_332_112_600),
                ),
            ],
        ),
        (
            "systor.csv",
            "SYSTOR '17",
            &[
                (Op::Read, 4096, 8192, 0, Some(215_000)),
                (Op::Write, 0, 4096, 2_548_000, None),
            ],
        ),
        (
            "alibaba.csv",
            "Alibaba",
            &[
                (Op::Write, 8_792_731_648, 16_384, 0, None),
                (Op::Read, 59_110_326_272, 4096, 46_000, None),
            ],
        ),
        (
            "tencent.csv",
            "Tencent",
            &[
                (Op::Read, 12_910_952_128 * 512, 65_536, 0, None),
                (Op::Write, 4584 * 512, 4096, 0, None),
            ],
        ),
        (
            "hfplayer.csv",
            "hfplayer",
            &[
                (Op::Read, 8192, 4096, 0, Some(200_000)),
                (Op::Write, 1 << 20, 16_384, 25_500, Some(175_750)),
            ],
        ),
        (
            // Completions of one processor before the issues of another.
            "blkparse-cpus.txt",
            "blkparse",
            &[
                (Op::Read, 4096, 4096, 6892 - 6260, Some(302_905 - 6260)),
                (
                    Op::Read,
                    9144 * 512,
                    16_384,
                    308_780 - 6260,
                    Some(506_568 - 6260),
                ),
            ],
        ),
        (
            "fio-v2.log",
            "fio iolog v2",
            &[
                (Op::Read, 0, 4096, 0, None),
                (Op::Write, 8192, 4096, 500_000, None),
                (Op::Flush, 0, 0, 500_000, None),
            ],
        ),
        (
            "fio-v3.log",
            "fio iolog v3",
            &[
                (Op::Read, 0, 4096, 10_000, None),
                (Op::Discard, 8192, 4096, 25_000, None),
                (Op::Flush, 0, 0, 30_000, None),
            ],
        ),
        (
            "blkparse.txt",
            "blkparse",
            &[
                (Op::Read, 223_490 * 512, 4096, 1000, Some(500_000)),
                (Op::Flush, 0, 0, 600_000, Some(900_000)),
            ],
        ),
    ];
    for (name, format, rows) in cases {
        let path = fixture(name);
        assert_eq!(open(&path).unwrap().header().format, format);
        assert_eq!(
            read(&path).iter().map(row).collect::<Vec<_>>(),
            rows,
            "{name}"
        );
    }
}

#[test]
fn devices_and_the_start_are_read_where_the_format_has_them() {
    let mut msr = open(&fixture("msr.csv")).unwrap();
    msr.by_ref().for_each(drop);
    assert_eq!(msr.header().devices[0].name, "hm:0");
    let started = msr.header().started.unwrap().to_string();
    assert_eq!(started, "2007-02-22T17:00:00.3061629Z");
    let mut systor = open(&fixture("systor.csv")).unwrap();
    systor.by_ref().for_each(drop);
    assert_eq!(systor.caveats().skipped, 1);
    let names: Vec<String> = systor
        .header()
        .devices
        .iter()
        .map(|one| one.name.clone())
        .collect();
    assert_eq!(names, ["3", "6"]);
}

/// The fields of an event in order, each with its width, and the data after them.
type Fields = (Vec<(usize, u64)>, Vec<u8>);

/// The events of a file of version 7.
fn events_v7(bytes: &[u8]) -> Vec<Fields> {
    let (mut at, mut events) = (0, Vec::new());
    while at < bytes.len() {
        let mut fields = Vec::new();
        for width in [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2] {
            let digits = bytes[at..at + width].iter().rev();
            fields.push((
                width,
                digits.fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
            ));
            at += width;
        }
        let data = fields[10].1 as usize;
        events.push((fields, bytes[at..at + data].to_vec()));
        at += data;
    }
    events
}

#[test]
fn blktrace_is_read_in_both_versions_and_both_orders_of_bytes() {
    let own = std::fs::read(fixture("small.blktrace")).unwrap();
    let little = |width: usize, value: u64| value.to_le_bytes()[..width].to_vec();
    let big = |width: usize, value: u64| value.to_be_bytes()[8 - width..].to_vec();
    let mut versions = [Vec::new(), Vec::new()];
    for (fields, data) in events_v7(&own) {
        for (width, value) in &fields {
            versions[0].extend(big(*width, *value));
        }
        versions[0].extend(&data);
        let of = |index: usize| fields[index].1;
        // Version 8: bytes and pid, an action of 64 bits, then 12 bytes of padding.
        let order = [
            (4, of(0) + 1),
            (4, of(1)),
            (8, of(2)),
            (8, of(3)),
            (4, of(4)),
            (4, of(6)),
        ];
        let rest = [
            (8, of(5)),
            (4, of(7)),
            (4, of(8)),
            (2, of(9)),
            (2, of(10)),
            (8, 0),
            (4, 0),
        ];
        for (width, value) in order.into_iter().chain(rest) {
            versions[1].extend(little(width, value));
        }
        versions[1].extend(&data);
    }
    let folder = tempfile::tempdir().unwrap();
    for version in versions {
        let path = folder.path().join("t");
        std::fs::write(&path, version).unwrap();
        assert_eq!(read(&path), read(&fixture("small.blktrace")));
    }
}

#[test]
fn files_of_several_processors_are_read_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::fs::read(fixture("small.blktrace")).unwrap();
    let mut files = [Vec::new(), Vec::new()];
    let mut at = 0;
    for (number, (_, data)) in events_v7(&own).iter().enumerate() {
        files[number % 2].extend(&own[at..at + 48 + data.len()]);
        at += 48 + data.len();
    }
    for (cpu, file) in files.iter().enumerate() {
        std::fs::write(folder.path().join(format!("sda.blktrace.{cpu}")), file).unwrap();
    }
    let rows = |path: &Path| read(path).iter().map(row).collect::<Vec<_>>();
    let merged = rows(&folder.path().join("sda.blktrace.1"));
    assert_eq!(merged, rows(&fixture("small.blktrace")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A file with a part replaced by noise.
    #[test]
    fn no_damage_makes_a_reader_panic(
        file in 0_usize..10, at in 0.0_f64..1.0, noise in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let names = [
            "msr.csv", "systor.csv", "alibaba.csv", "tencent.csv", "fio-v2.log", "fio-v3.log", "blkparse.txt",
            "small.load", "small.blktrace", "small.dst",
        ];
        let mut bytes = std::fs::read(fixture(names[file])).unwrap();
        let at = (at * bytes.len() as f64) as usize;
        let end = (at + noise.len() / 2).min(bytes.len());
        bytes.splice(at..end, noise);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        std::fs::write(&path, bytes).unwrap();
        let mut last = Nanos(0);
        for io in open(&path).into_iter().flatten().flatten() {
            prop_assert!(io.issued >= last);
            prop_assert!(io.offset <= Bytes(u64::MAX));
            last = io.issued;
        }
    }
}

/// Lines of blkparse: an fsync(2), and a commit after a flush on a device without FUA. `own` are the letters of the
/// kernel's flush, `{0}` here.
fn flushes(own: &str) -> String {
    "  8,0    0        1     0.000000000    99  Q FWS [db]
  8,0    0        2     0.000010000    99  D {0} [kworker/0:1H]
  8,0    0        3     0.000020000     0  C {0} 0 [0]
  8,0    0        4     0.000021000     0  C FWS 0 [0]
  8,0    0        5     0.000030000    99  Q FWFS 800 + 8 [jbd2]
  8,0    0        6     0.000040000    99  D {0} [kworker/0:1H]
  8,0    0        7     0.000050000     0  C {0} 0 [0]
  8,0    0        8     0.000060000    99  D  WS 800 + 8 [jbd2]
  8,0    0        9     0.000070000     0  C  WS 800 + 8 [0]
  8,0    0       10     0.000080000    99  D {0} [kworker/0:1H]
  8,0    0       11     0.000090000     0  C {0} 0 [0]
  8,0    0       12     0.000091000     0  C  WS 808 [0]
"
    .replace("{0}", own)
}

#[test]
fn a_repeated_completion_after_a_flush_is_no_io_and_not_ambiguous() {
    let folder = tempfile::tempdir().unwrap();
    for own in ["FN", "FF", "FWS"] {
        let path = folder.path().join("flushes.txt");
        std::fs::write(&path, flushes(own)).unwrap();
        let mut reader = open(&path).unwrap();
        let rows: Vec<Row> = reader.by_ref().map(|io| row(&io.unwrap())).collect();
        let expected = [
            (Op::Flush, 0, 0, 10_000, Some(20_000)),
            (Op::Flush, 0, 0, 40_000, Some(50_000)),
            (Op::Write, 409_600, 4096, 60_000, Some(70_000)),
            (Op::Flush, 0, 0, 80_000, Some(90_000)),
        ];
        assert_eq!(rows, expected, "{own}");
        assert_eq!(reader.caveats().ambiguous, 0, "{own}");
    }
}
