//! Tests of text formats: malformed lines, and lines of blkparse that are not requests.

use super::{Row, fixture, row};
use crate::io::{Io, Op};
use crate::{ReadError, TraceReader, open};

/// A trace of this text.
fn of_text(text: &str) -> Result<Box<dyn TraceReader>, ReadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    std::fs::write(&path, text).unwrap();
    open(&path)
}

/// A fixture, a line to append to it, and the column and the expectation of the error.
const MALFORMED: &str = "\
msr.csv | x,hm,0,Read,0,512,1 | 1: expected the time of issue
msr.csv | 128166372003061629,hm,x,Read,0,512,1 | 23: expected the disk's number
msr.csv | 128166372003061629,hm,0,read,0,512,1 | 25: expected Read or Write
msr.csv | 128166372003061629,hm,0,Read,0,512 | 35: expected the response time
systor.csv | 1455592144.2x,0.1,R,3,0,512 | 1: expected the time in seconds
systor.csv | 1455592144.2,0.1,X,3,0,512 | 18: expected R, W or nothing
systor.csv | 1455592144.2,0.1,R,3,-1,512 | 22: expected the offset in bytes
alibaba.csv | 419,W,0,,1577808144360767 | 9: expected the length in bytes
alibaba.csv | 419,W,0,512,1577808144360767,1 | 30: expected the end of the line
tencent.csv | 1538323200,0,128,2,1063 | 18: expected 0 for a read or 1 for a write
tencent.csv | 1538323200,0,128,1, | 20: expected the volume's number
fio-v2.log | /dev/sdb raed 0 4096 | 10: expected add, open
fio-v2.log | /dev/sdb read 0 | 16: expected the length in bytes
fio-v3.log | x /dev/sdb read 0 4096 | 1: expected the time in µs
fio-v3.log | 40 /dev/sdb write x 4096 | 19: expected the offset in bytes
small.load | 1.0 ; 8 ; x ; W | 11: expected the length in sectors
small.load | 1.0 ; 8 ; 8 ; T | 15: expected R or W
blkparse.txt | zz,0 1 7 0.002 697 D R 8 + 8 [db] | 1: expected the device
blkparse.txt | 8 0 1 7 0.002 697 D R 8 + 8 [db] | 1: expected the device
blkparse.txt | zz,0 (x) | 1: expected the device
blkparse.txt |  zz 8,0 1 7 0.002 697 D R 8 + 8 [db] | 2: expected the device
blkparse.txt | 8,0 1 7 | 8: expected the time
blkparse.txt | 8,0 1 7 0.002 697 D | 20: expected the kind of request
blkparse.txt | 8,0 1 7 0.002 697 D r 8 + 8 [db] | 21: expected the kind of request
blkparse.txt | 8,0 1 7 0.002 697 D R | 22: expected the sector
blkparse.txt | 8,0 1 7 0.002 697 D R zz + 8 [db] | 23: expected the sector
blkparse.txt | 8,0 1 7 0.002 697 Q D -8 + 8 [db] | 23: expected the sector
blkparse.txt | 8,0 1 7 0.002 697 D R 223490 | 29: expected +
blkparse.txt | 8,0 1 7 0.002 697 C W 223490 | 29: expected +
blkparse.txt | 8,0 1 7 0.002 697 R W 223490 8 [0] | 30: expected +
blkparse.txt | 8,0 1 7 0.002 697 D W 223490 + | 31: expected the number of sectors
blkparse.txt | 8,0 1 7 0.002 697 D W 223490 + x [db] | 32: expected the number of sectors
blkparse.txt | 8,0 1 7 0.002 697 D W 223490 + 8 db] | 34: expected the process or the error
blkparse.txt | 8,0 1 7 0.002 697 D W 223490 + 8 [db | 34: expected the process or the error
blkparse.txt | 8,0 1 7 0.002 697 C W 223490 + 8 ( 5 [0] | 34: expected the process or the error
blkparse.txt | 8,0 1 7 0.002 697 C FN x [0] | 24: expected the sector
";

#[test]
fn malformed_lines_of_each_format_have_a_place() {
    for case in MALFORMED.lines() {
        let fields: Vec<&str> = case.split(" | ").collect();
        let &[name, line, expected] = &fields[..] else {
            panic!("{case}");
        };
        let text = std::fs::read_to_string(fixture(name)).unwrap();
        // After the sums of blkparse any line is accepted.
        let text = text.split("CPU0").next().unwrap();
        let number = text.lines().count() + 1;
        let read = of_text(&format!("{text}{line}\n")).and_then(|reader| reader.collect());
        let error = read.map(|ios: Vec<Io>| ios.len()).unwrap_err().to_string();
        let expected = format!("t:{number}:{expected}");
        assert!(error.contains(&expected), "{case}: {error}");
    }
}

/// Output of blkparse: files first, `-t` and `-s`, messages, a remap, a command to the driver, and a completion without
/// data.
const BLKPARSE: &str = "Input file sda.blktrace.0 added

  8,0    0        1     0.000000000    99  A   R 8 + 8 <- (8,1) 0
  8,0    0        2     0.000001000    99  Q   R 8 + 8 [a [b] c]
  8,0    0        0     0.000002000     0  m   N cfq99 / alloced
  8,0    0        3     0.000010000    99  D   R 8 + 8 (    9000) [a [b] c]
  8,0    0        4     0.000110000     0  C   R 8 + 8 (  100000) [0]
  8,0    0        5     0.000120000    99  D  FN (       0) [db]
  8,0    0        6     0.000130000     0  C  FN 0 (   10000) [0]
  8,0    0        7     0.000140000    99  D   R 36 (12 00 ..) [smartctl]
  8,0    0        8     0.000150000     0  C   R (12 00 ..) [0]
  8,0    0        9     0.000160000    99  D   R 36 [smartctl]
  8,0    0       10     0.000170000     0  C   R [0]
  8,0    0       11     0.000180000    99  D   W 16 + 8
  8,0    0       12     0.000190000     0  C   W 16 + 8 [-5]
  8,0    0       13     0.000200000    99  U   N [db] 1
db (99)
 Reads Queued:           1,        4KiB  Writes Queued:           0,        0KiB

CPU0 (sda):
 IO unplugs:             1               Timer unplugs:           0

Throughput (R/W): 4,000KiB/s / 0KiB/s
Events (sda): 13 entries
Skips: 0 forward (0 -   0.0%)
Input file sda.blktrace.0 added
";

#[test]
fn blkparse_is_read_with_all_that_it_prints_around_requests() {
    let mut reader = of_text(BLKPARSE).unwrap();
    let ios: Vec<Io> = reader.by_ref().map(Result::unwrap).collect();
    let expected: [Row; 3] = [
        (Op::Read, 4096, 4096, 9000, Some(109_000)),
        (Op::Flush, 0, 0, 119_000, Some(129_000)),
        (Op::Write, 8192, 4096, 179_000, Some(189_000)),
    ];
    assert_eq!(ios.iter().map(row).collect::<Vec<_>>(), expected);
    assert_eq!(reader.name(ios[0].process.unwrap()), Some("a [b] c"));
    assert!(ios[2].failed && ios[2].process.is_none());
}
