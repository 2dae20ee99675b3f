//! hfplayer's CSV (umn-cris/hfplayer). The heading, which begins with `#`, names the columns; they differ between
//! files. Operations are `RD` and `WR`, or in a controller's dump `RD_IN` and `WR_IN`, whose completions end with
//! `_OUT`.

use record::{Bytes, Nanos};

use crate::decode::{Sink, TimeOrigin};
use crate::io::{Io, Op};
use crate::text::{Field, Fields, LineError, LineFormat, Malformed};

/// Name of the format.
pub(crate) const NAME: &str = "hfplayer";
/// Origin of its times.
pub(crate) const ZERO: TimeOrigin = TimeOrigin::Arbitrary;

const SECTOR: u64 = 512;

/// Indices of the columns that are read.
#[derive(Clone, Copy, Debug)]
struct Columns {
    time: usize,
    operation: usize,
    device: usize,
    sector: usize,
    sectors: usize,
    latency: Option<usize>,
}

impl Columns {
    /// Columns that a heading names; `None` if one is missing.
    fn of(heading: &str) -> Option<Columns> {
        let names: Vec<&str> = heading
            .strip_prefix('#')?
            .split(',')
            .map(str::trim)
            .collect();
        let place = |wanted: &str| names.iter().position(|name| *name == wanted);
        Some(Columns {
            time: place("ELAPSED_USECS.D")?,
            operation: place("CMD.S")?,
            device: place("LUN_SSID.I")?,
            sector: place("LBA.I")?,
            sectors: place("NBLKS.I")?,
            latency: place("LATENCY_USECS.D"),
        })
    }
}

/// True if a text that begins with `start` is hfplayer's.
pub(crate) fn matches(start: &str) -> bool {
    start.lines().next().and_then(Columns::of).is_some()
}

/// Decoder of the format.
#[derive(Debug, Default)]
pub(crate) struct Hfplayer {
    columns: Option<Columns>,
}

impl LineFormat for Hfplayer {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), LineError> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let Some(columns) = self.columns else {
            let heading = "a heading with ELAPSED_USECS.D, CMD.S, LUN_SSID.I, LBA.I and NBLKS.I";
            let columns = Columns::of(line).ok_or_else(|| Malformed::new(1, heading))?;
            self.columns = Some(columns);
            return Ok(());
        };
        let mut fields = Fields::separated(line, ',');
        let all: Vec<Field<'_>> = std::iter::from_fn(|| fields.next_if_any()).collect();
        let behind = line.chars().count() + 1;
        let field = |at: usize, expected: &str| {
            let field = all.get(at).copied();
            field.ok_or_else(|| Malformed::new(behind, expected))
        };
        let kind = "RD, WR, RD_IN, WR_IN, RD_OUT or WR_OUT";
        let operation = field(columns.operation, kind)?;
        let op = match operation.text {
            "RD" | "RD_IN" => Op::Read,
            "WR" | "WR_IN" => Op::Write,
            "RD_OUT" | "WR_OUT" => {
                sink.caveats.skipped += 1;
                return Ok(());
            }
            _ => return Err(operation.expected(kind).into()),
        };
        let number = |at: usize, expected: &str| field(at, expected)?.number::<u64>(expected);
        let micros = |at: usize, expected: &str| field(at, expected)?.fixed(3, expected);
        let issued = Nanos(micros(columns.time, "the time in µs since the start")?);
        let sector = number(columns.sector, "the first sector")?;
        let sectors = number(columns.sectors, "the number of sectors")?;
        let took = match columns.latency {
            Some(at) => micros(at, "the latency in µs")?,
            None => 0,
        };
        let device = sink.device(field(columns.device, "the LUN")?.text)?;
        sink.push(Io {
            device,
            op,
            fua: false,
            offset: Bytes(sector.saturating_mul(SECTOR)),
            length: Bytes(sectors.saturating_mul(SECTOR)),
            queued: None,
            issued,
            // A latency of zero means that it was not measured.
            completed: (took > 0).then(|| issued + Nanos(took)),
            failed: false,
            process: None,
            thread: None,
            file: None,
        });
        Ok(())
    }
}
