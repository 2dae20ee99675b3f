//! CSV formats of public trace collections, one I/O per line.

use record::{Bytes, Nanos};

use crate::decode::{Sink, TimeOrigin};
use crate::io::{Io, Op};
use crate::text::{Field, Fields, LineError, LineFormat, Malformed};

/// Origin of their times.
pub(crate) const ZERO: TimeOrigin = TimeOrigin::Unix;

const SECTOR: u64 = 512;
/// 1970-01-01 in Windows' file time, in units of 100 ns (MS-DTYP, FILETIME).
const UNIX_IN_FILETIME: u64 = 116_444_736_000_000_000;

/// A collection's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Csv {
    /// MSR Cambridge: time (file time), host, disk, Read or Write, offset, size, response time (100 ns).
    Msr,
    /// SYSTOR '17: time (s), response time (s), R, W or empty, LUN, offset, size.
    Systor,
    /// Alibaba: device, R or W, offset, length, time (µs).
    Alibaba,
    /// Tencent: time (whole s), offset and size in sectors, 0 for a read or 1 for a write, volume.
    Tencent,
}

const ALL: [Csv; 4] = [Csv::Msr, Csv::Systor, Csv::Alibaba, Csv::Tencent];

/// An I/O, and its device's name.
struct Row<'a> {
    device: Field<'a>,
    host: Option<Field<'a>>,
    op: Op,
    offset: u64,
    length: u64,
    issued: Nanos,
    took: Option<Nanos>,
}

impl Csv {
    /// The format of a text that begins with `start`.
    pub(crate) fn of(start: &str) -> Option<Csv> {
        let mut lines = start.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next()?;
        let fits = |line: &str| ALL.into_iter().find(|csv| csv.row(line).is_ok());
        // If the first line is a heading, the next one is a row.
        fits(first).or_else(|| fits(lines.next().filter(|_| is_heading(first))?))
    }

    /// Name of the format.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Csv::Msr => "MSR Cambridge",
            Csv::Systor => "SYSTOR '17",
            Csv::Alibaba => "Alibaba",
            Csv::Tencent => "Tencent",
        }
    }

    /// The I/O of a line; `None` for an operation that is neither a read nor a write.
    fn row(self, line: &str) -> Result<Option<Row<'_>>, Malformed> {
        let mut fields = Fields::separated(line, ',');
        let row = match self {
            Csv::Msr => msr(&mut fields).map(Some),
            Csv::Systor => systor(&mut fields),
            Csv::Alibaba => alibaba(&mut fields).map(Some),
            Csv::Tencent => tencent(&mut fields).map(Some),
        }?;
        match fields.next_if_any() {
            Some(more) => Err(more.expected("the end of the line")),
            None => Ok(row),
        }
    }
}

fn is_heading(line: &str) -> bool {
    line.trim_start()
        .starts_with(|c: char| c.is_ascii_alphabetic())
}

const OFFSET: &str = "the offset in bytes";
const LENGTH: &str = "the length in bytes";

fn msr<'a>(fields: &mut Fields<'a>) -> Result<Row<'a>, Malformed> {
    let time = "the time of issue in units of 100 ns since 1601";
    let field = fields.next(time)?;
    let issued = field.number::<u64>(time)?;
    let issued = issued
        .checked_sub(UNIX_IN_FILETIME)
        .ok_or_else(|| field.expected(time))?;
    let host = fields.next("the host's name")?;
    let device = fields.next("the disk's number")?;
    device.number::<u32>("the disk's number")?;
    let field = fields.next("Read or Write")?;
    let op = match field.text {
        "Read" => Op::Read,
        "Write" => Op::Write,
        _ => return Err(field.expected("Read or Write")),
    };
    let offset = fields.next(OFFSET)?.number(OFFSET)?;
    let length = fields.next(LENGTH)?.number(LENGTH)?;
    let response = "the response time in units of 100 ns";
    let took = fields.next(response)?.number::<u64>(response)?;
    Ok(Row {
        device,
        host: Some(host),
        op,
        offset,
        length,
        issued: Nanos(issued.saturating_mul(100)),
        took: Some(Nanos(took.saturating_mul(100))),
    })
}

fn systor<'a>(fields: &mut Fields<'a>) -> Result<Option<Row<'a>>, Malformed> {
    let time = "the time in seconds since 1970, such as 1455592144.213452000";
    let issued = fields.next(time)?.fixed(9, time)?;
    let response = "the response time in seconds, or nothing";
    let field = fields.next(response)?;
    let took = match field.text {
        "" => None,
        _ => Some(Nanos(field.fixed(9, response)?)),
    };
    let kind = "R, W or nothing";
    let field = fields.next(kind)?;
    let op = match field.text {
        "R" => Some(Op::Read),
        "W" => Some(Op::Write),
        "" => None,
        _ => return Err(field.expected(kind)),
    };
    let device = fields.next("the LUN")?;
    device.number::<u32>("the LUN")?;
    // Rows without an operation may lack offset and length too.
    let (offset, length) = (fields.next(OFFSET)?, fields.next(LENGTH)?);
    let Some(op) = op else {
        return Ok(None);
    };
    Ok(Some(Row {
        device,
        host: None,
        op,
        offset: offset.number(OFFSET)?,
        length: length.number(LENGTH)?,
        issued: Nanos(issued),
        took,
    }))
}

fn alibaba<'a>(fields: &mut Fields<'a>) -> Result<Row<'a>, Malformed> {
    let device = fields.next("the device's number")?;
    device.number::<u64>("the device's number")?;
    let field = fields.next("R or W")?;
    let op = match field.text {
        "R" => Op::Read,
        "W" => Op::Write,
        _ => return Err(field.expected("R or W")),
    };
    let offset = fields.next(OFFSET)?.number(OFFSET)?;
    let length = fields.next(LENGTH)?.number(LENGTH)?;
    let time = "the time in µs since 1970";
    let issued = fields.next(time)?.number::<u64>(time)?;
    Ok(Row {
        device,
        host: None,
        op,
        offset,
        length,
        issued: Nanos(issued.saturating_mul(1000)),
        took: None,
    })
}

fn tencent<'a>(fields: &mut Fields<'a>) -> Result<Row<'a>, Malformed> {
    let time = "the time in whole seconds since 1970";
    let issued = fields.next(time)?.number::<u64>(time)?;
    let offset = "the offset in sectors of 512 bytes";
    let offset = fields.next(offset)?.number::<u64>(offset)?;
    let length = "the size in sectors of 512 bytes";
    let length = fields.next(length)?.number::<u64>(length)?;
    let kind = "0 for a read or 1 for a write";
    let field = fields.next(kind)?;
    let op = match field.text {
        "0" => Op::Read,
        "1" => Op::Write,
        _ => return Err(field.expected(kind)),
    };
    let device = fields.next("the volume's number")?;
    device.number::<u64>("the volume's number")?;
    Ok(Row {
        device,
        host: None,
        op,
        offset: offset.saturating_mul(SECTOR),
        length: length.saturating_mul(SECTOR),
        issued: Nanos(issued.saturating_mul(1_000_000_000)),
        took: None,
    })
}

/// Decoder of a format, which may begin with a heading.
#[derive(Debug)]
pub(crate) struct CsvLines {
    csv: Csv,
    is_first: bool,
}

impl CsvLines {
    pub(crate) fn new(csv: Csv) -> CsvLines {
        CsvLines {
            csv,
            is_first: true,
        }
    }
}

impl LineFormat for CsvLines {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), LineError> {
        let is_first = std::mem::take(&mut self.is_first);
        if line.trim().is_empty() || (is_first && is_heading(line)) {
            return Ok(());
        }
        let Some(row) = self.csv.row(line)? else {
            sink.caveats.skipped += 1;
            return Ok(());
        };
        let device = match row.host {
            Some(host) => sink.device(&format!("{}:{}", host.text, row.device.text))?,
            None => sink.device(row.device.text)?,
        };
        sink.push(Io {
            device,
            op: row.op,
            fua: false,
            offset: Bytes(row.offset),
            length: Bytes(row.length),
            queued: None,
            issued: row.issued,
            completed: row.took.map(|took| row.issued + took),
            failed: false,
            process: None,
            thread: None,
            file: None,
        });
        Ok(())
    }
}
