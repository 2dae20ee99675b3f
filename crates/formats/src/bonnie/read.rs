//! Reads a line of Bonnie++'s CSV.

use jiff::Timestamp;
use record::{Bytes, CpuShares, FlowSummary, LatencySummary, PhaseSummary, Summary, WorkSummary};

use super::{CHUNK, DATA_TESTS, FILE_OPTIONS, OWN_VERSION_PREFIX, RUN_OPTIONS, TESTS, Test, Unit};
use crate::ReadError;

/// Number of fields before the rates in 1.96 and 1.97.
const FIELDS_BEFORE_RATES: usize = 7;
/// Number of fields between the rates of the data tests and those of the file tests.
const FIELDS_BETWEEN_RATES: usize = FILE_OPTIONS.len();
/// Index of the first option of the run.
const FIRST_OPTION_FIELD: usize = 3;
/// Index of the seed.
const SEED: usize = 4;
/// Number of fields that 1.98 inserted after the chunk size.
const SEEK_FIELDS: usize = 2;

/// True if a line is a result in a known format.
pub(crate) fn is_result(line: &str) -> bool {
    ["1.96,", "1.97,", "1.98,"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// The fields of a line, whose number was checked.
struct Fields<'a> {
    fields: Vec<&'a str>,
    line: usize,
    /// Number of fields in excess of those of 1.97.
    more: usize,
}

impl<'a> Fields<'a> {
    fn of(line: usize, text: &'a str) -> Result<Fields<'a>, ReadError> {
        let mut fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let more = if fields[0] == "1.98" { SEEK_FIELDS } else { 0 };
        let due = FIELDS_BEFORE_RATES + more + FIELDS_BETWEEN_RATES + 3 * TESTS.len();
        if more == 0 && fields.len() == due - 1 && without_data(&fields) {
            fields.insert(FIELDS_BEFORE_RATES - 1, "");
        }
        if fields.len() != due {
            return Err(ReadError::at(
                line,
                format!(
                    "a line of Bonnie++'s CSV {} has {due} fields, and this one {}; was it cut?",
                    fields[0],
                    fields.len()
                ),
            ));
        }
        Ok(Fields { fields, line, more })
    }

    fn get(&self, index: usize) -> &'a str {
        self.fields.get(index).copied().unwrap_or_default()
    }

    /// The rate of test number `test`, and its CPU usage.
    fn rate(&self, test: usize) -> (&'a str, &'a str) {
        let between = if test < DATA_TESTS {
            0
        } else {
            FIELDS_BETWEEN_RATES
        };
        let at = FIELDS_BEFORE_RATES + self.more + between + 2 * test;
        (self.get(at), self.get(at + 1))
    }

    fn latency(&self, test: usize) -> &'a str {
        self.get(FIELDS_BEFORE_RATES + self.more + FIELDS_BETWEEN_RATES + 2 * TESTS.len() + test)
    }

    /// The options that are not empty.
    fn options(&self) -> Vec<(String, String)> {
        let end = FIELDS_BEFORE_RATES + self.more;
        let of_run = (FIRST_OPTION_FIELD..end).zip(RUN_OPTIONS);
        let of_files = (end + 2 * DATA_TESTS..).zip(FILE_OPTIONS);
        of_run
            .chain(of_files)
            .map(|(at, name)| (name.to_owned(), self.get(at).to_owned()))
            .filter(|(_, value)| !value.is_empty())
            .collect()
    }

    fn wrong(&self, field: &str, what: &str) -> ReadError {
        ReadError::at(self.line, format!("'{field}' is not {what}"))
    }

    fn number(&self, field: &str, what: &str) -> Result<f64, ReadError> {
        let number = field.parse::<f64>().ok();
        number
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| self.wrong(field, what))
    }

    /// A time in seconds.
    fn moment(&self, field: &str) -> Result<Timestamp, ReadError> {
        let seconds = field.parse::<i64>().ok();
        seconds
            .and_then(|seconds| Timestamp::from_second(seconds).ok())
            .ok_or_else(|| self.wrong(field, "a time in seconds"))
    }

    /// Number of seeks, and of processes that seek; `None` if the format does not have them.
    fn seeks(&self) -> Result<(Option<u64>, Option<u32>), ReadError> {
        if self.more == 0 {
            return Ok((None, None));
        }
        let whole = |at: usize, what: &str| match self.get(at) {
            "" => Ok(None),
            text => text
                .parse::<u32>()
                .map(Some)
                .map_err(|_| self.wrong(text, what)),
        };
        let count = whole(FIELDS_BEFORE_RATES, "a number of seeks")?.map(u64::from);
        Ok((
            count,
            whole(FIELDS_BEFORE_RATES + 1, "a number of processes that seek")?,
        ))
    }

    /// A size with a unit, or in MiB without one. Bonnie++ writes `32M` or `16G`.
    fn size(&self, field: &str, unit: u64) -> Result<Option<Bytes>, ReadError> {
        if field.is_empty() {
            return Ok(None);
        }
        let bare = field.bytes().all(|byte| byte.is_ascii_digit());
        let size: Bytes = field.parse().map_err(|_| self.wrong(field, "a size"))?;
        match bare {
            true => Ok(size.0.checked_mul(unit).map(Bytes)),
            false => Ok(Some(size)),
        }
    }
}

/// True if the data tests were skipped (`-s 0`): then 1.96 prints one comma less before the fields of the file tests
/// (seen in published output).
fn without_data(fields: &[&str]) -> bool {
    let data = fields.get(FIELDS_BEFORE_RATES - 2..FIELDS_BEFORE_RATES - 1 + 2 * DATA_TESTS);
    data.is_some_and(|data| data.iter().all(|field| field.is_empty()))
}

/// Reads a line; `line` is its number, for errors.
pub(crate) fn summary(line: usize, text: &str) -> Result<Summary, ReadError> {
    let fields = Fields::of(line, text)?;
    let size = fields.size(fields.get(5), 1 << 20)?;
    let chunk = fields.size(fields.get(6), 1)?.unwrap_or(CHUNK);
    let threads = match fields.get(3) {
        "" => None,
        text => Some(
            text.parse()
                .map_err(|_| fields.wrong(text, "a concurrency"))?,
        ),
    };
    let mut phases = Vec::new();
    for (index, test) in TESTS.iter().enumerate() {
        let work = WorkSummary {
            pattern: test.pattern,
            read_fraction: test.read_fraction,
            block: test.pattern.map(|_| chunk),
            threads,
            span: size.filter(|_| test.pattern.is_some()),
            // O_DIRECT is used with -D (bonnie++(8)), which the CSV does not show.
            direct: None,
            ..WorkSummary::default()
        };
        let mut phase = phase(&fields, index, test, work)?;
        if test.name == "seeks"
            && let Some(phase) = &mut phase
        {
            let (count, seekers) = fields.seeks()?;
            phase.work.threads = seekers.or(phase.work.threads);
            phase.flows.iter_mut().for_each(|flow| flow.ops = count);
        }
        phases.extend(phase);
    }
    let version = fields.get(1);
    let is_own = version.starts_with(OWN_VERSION_PREFIX);
    Ok(Summary {
        tool: match version.strip_prefix(OWN_VERSION_PREFIX) {
            Some(version) => format!("disksmith {version}"),
            None => format!("bonnie++ {version}").trim_end().to_owned(),
        },
        // Bonnie++'s seed is getpid() ^ time(), from which no time can be derived; in a line that this program wrote
        // it is the time.
        ran: match fields.get(SEED) {
            seed if is_own && !seed.is_empty() => Some(fields.moment(seed)?),
            _ => None,
        },
        host: Some(fields.get(2).to_owned()).filter(|name| !name.is_empty()),
        target: None,
        target_kind: None,
        options: fields.options(),
        phases,
    })
}

/// The phase of a test; `None` when the test was skipped.
fn phase(
    fields: &Fields<'_>,
    index: usize,
    test: &Test,
    work: WorkSummary,
) -> Result<Option<PhaseSummary>, ReadError> {
    let (rate, cpu) = fields.rate(index);
    if rate.is_empty() {
        return Ok(None);
    }
    let mut flow = FlowSummary::of(test.activity);
    if is_pluses(rate) {
        flow.too_fast = true;
    } else {
        let rate = fields.number(rate, "a rate")?;
        match test.unit {
            Unit::Kib => flow.bytes_per_s = Some(rate * 1024.0),
            Unit::Each => flow.ops_per_s = Some(rate),
        }
    }
    flow.latency = LatencySummary {
        max_ns: latency(fields, fields.latency(index))?,
        ..LatencySummary::default()
    };
    let total = match cpu {
        "" => None,
        pluses if is_pluses(pluses) => None,
        percent => Some(fields.number(percent, "a share of the processor")? / 100.0),
    };
    Ok(Some(PhaseSummary {
        name: test.name.to_owned(),
        work,
        cpu: CpuShares {
            total,
            ..CpuShares::default()
        },
        flows: vec![flow],
        ..PhaseSummary::default()
    }))
}

fn is_pluses(field: &str) -> bool {
    field.len() >= 3 && field.bytes().all(|byte| byte == b'+')
}

/// Parses a latency in nanoseconds: `8121us`, `174ms` or `101s`; empty if nothing was timed.
fn latency(fields: &Fields<'_>, field: &str) -> Result<Option<f64>, ReadError> {
    if field.is_empty() {
        return Ok(None);
    }
    let digits = field.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let nanos = match &field[digits.len()..] {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(fields.wrong(field, "a latency with us, ms or s")),
    };
    Ok(Some(fields.number(digits, "a latency")? * nanos))
}
