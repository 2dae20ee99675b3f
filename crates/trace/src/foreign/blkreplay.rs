//! blkreplay's loads: a notice, a heading, and lines of `start (s) ; sector ; length (sectors) ; R or W ; delay ;
//! duration (s)` (schoebel/blkreplay, doc). A load that was not replayed yet has durations of 0.

use record::{Bytes, Nanos};

use crate::decode::{Sink, TimeOrigin};
use crate::io::{Io, Op};
use crate::text::{Fields, LineError, LineFormat, Malformed};

/// Name of the format.
pub(crate) const NAME: &str = "blkreplay";
/// Origin of its times.
pub(crate) const ZERO: TimeOrigin = TimeOrigin::Start;

const SECTOR: u64 = 512;

/// True if a text that begins with `start` is a load.
pub(crate) fn matches(start: &str) -> bool {
    start.lines().any(is_heading) || start.lines().any(|line| record_of(line).is_ok())
}

fn is_heading(line: &str) -> bool {
    let mut fields = Fields::separated(line, ';');
    ["start", "sector"].iter().all(|name| {
        fields
            .next_if_any()
            .is_some_and(|field| field.text == *name)
    })
}

/// Decoder of the format. Lines before the first record are a notice, which a load of several parts repeats after a
/// heading; after a heading, a line of several fields is a record.
#[derive(Debug, Default)]
pub(crate) struct Blkreplay {
    has_heading: bool,
    in_records: bool,
}

impl Blkreplay {
    /// True for a line that is not a notice.
    fn must_be_record(&self, line: &str) -> bool {
        self.in_records || (self.has_heading && line.matches(';').count() > 1)
    }
}

struct Record {
    start: Nanos,
    offset: Bytes,
    length: Bytes,
    op: Op,
    duration: Option<Nanos>,
}

fn record_of(line: &str) -> Result<Record, Malformed> {
    let mut fields = Fields::separated(line, ';');
    let start = "the start in seconds, such as 0.449518165";
    let start = fields.next(start)?.fixed(9, start)?;
    let sector = "the sector's number";
    let offset = bytes(fields.next(sector)?.number(sector)?);
    let length = "the length in sectors of 512 bytes";
    let length = bytes(fields.next(length)?.number(length)?);
    let op = "R or W";
    let field = fields.next(op)?;
    // Flags may follow, such as the A of read-ahead, which do not change the request.
    let op = match field.text.as_bytes() {
        [b'R' | b'r', ..] => Op::Read,
        [b'W' | b'w', ..] => Op::Write,
        _ => return Err(field.expected(op)),
    };
    let time = "a time in seconds";
    let mut delay_and_duration = [0, 0];
    for value in &mut delay_and_duration {
        if let Some(field) = fields.next_if_any() {
            *value = field.fixed(9, time)?;
        }
    }
    Ok(Record {
        start: Nanos(start),
        offset,
        length,
        op,
        duration: (delay_and_duration[1] > 0).then_some(Nanos(delay_and_duration[1])),
    })
}

/// Sectors as bytes. Saturates: a damaged number is not an offset on a disk anyway.
fn bytes(sectors: u64) -> Bytes {
    Bytes(sectors.saturating_mul(SECTOR))
}

impl LineFormat for Blkreplay {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), LineError> {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            return Ok(());
        }
        if is_heading(line) {
            self.has_heading = true;
            return Ok(());
        }
        let record = match record_of(line) {
            Ok(record) => record,
            Err(_) if !self.must_be_record(line) => return Ok(()),
            Err(malformed) => return Err(malformed.into()),
        };
        self.in_records = true;
        let device = sink.device("0")?;
        sink.push(Io {
            device,
            op: record.op,
            fua: false,
            offset: record.offset,
            length: record.length,
            queued: None,
            issued: record.start,
            completed: record.duration.map(|duration| record.start + duration),
            failed: false,
            process: None,
            thread: None,
            file: None,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;

    use super::*;
    use crate::io::{DeviceIndex, ReadError};
    use crate::open;

    #[test]
    fn an_hour_of_a_real_mysql_is_read() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces/linux-mysql.load.gz");
        let mut reader = open(&path).unwrap();
        assert_eq!(reader.header().format, NAME);
        assert!(!reader.header().has_completions && !reader.header().has_flushes);
        let ios: Vec<Io> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(ios.len(), 80_794);
        let second = Io {
            device: DeviceIndex(0),
            op: Op::Write,
            fua: false,
            offset: Bytes(37_766_917 * 512),
            length: Bytes(14 * 512),
            queued: None,
            issued: Nanos(449_518_165),
            completed: None,
            failed: false,
            process: None,
            thread: None,
            file: None,
        };
        assert_eq!(ios[1], second);
        assert_eq!(ios.last().unwrap().issued, Nanos(3_599_890_074_831));
    }

    fn read(text: &str) -> Result<Vec<Io>, ReadError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        open(file.path())?.collect()
    }

    #[test]
    fn a_replayed_load_has_completions() {
        let ios = read("1.5 ; 8 ; 2 ; R ; 0.25 ; 0.001\n").unwrap();
        assert_eq!(ios[0].completed, Some(Nanos(1_501_000_000)));
    }

    #[test]
    fn a_notice_may_follow_a_heading() {
        let ios =
            read("start ; sector ; length ; op\nnotice: as is\nstart ; sector\n1.0 ; 8 ; 2 ; R\n");
        assert_eq!(ios.unwrap().len(), 1);
    }

    #[test]
    fn malformed_lines_have_a_place() {
        let error =
            read("notice\nstart ; sector ; length ; op\n1.0 ; 8 ; 2 ; R\n2.0 ; 8 ; 2 ; X\n");
        let text = error.unwrap_err().to_string();
        assert!(text.ends_with(":4:15: expected R or W"), "{text}");
        // So have the first ones after a heading.
        let error =
            read("notice\nstart ; sector ; length ; op\n1.0 ; x ; 2 ; R\n2.0 ; 8 ; 2 ; R\n");
        let text = error.unwrap_err().to_string();
        assert!(
            text.ends_with(":3:7: expected the sector's number"),
            "{text}"
        );
    }
}
