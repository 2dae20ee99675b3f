//! Reads the output of sysbench.

use record::{
    Activity, Fairness, FlowSummary, LatencySummary, Pattern, Percentile, PhaseSummary, Summary,
    WorkSummary,
};

use super::values::{Checked, fine_size, is_direct, nanos, number, pair, percentile, size, whole};
use super::{PHASE, WRITTEN_BY};
use crate::ReadError;

/// True if a line is the first line of sysbench's output: `sysbench 1.0.20 (using …` or `sysbench 0.4.12:
/// multi-threaded system evaluation benchmark`.
pub(crate) fn is_heading(line: &str) -> bool {
    version(line).is_some()
}

/// True if a line begins the results of a sysbench whose heading was cut off.
pub(crate) fn begins_headless(line: &str) -> bool {
    [
        "Running the test with following options:",
        "Operations performed:",
        "File operations:",
    ]
    .iter()
    .any(|start| line.trim_start().starts_with(start))
}

fn version(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let first = words.next()? == "sysbench";
    let version = words.next()?.trim_end_matches(':').trim_start_matches('v');
    let digits = version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.');
    // In a transcript, the command line has an option here.
    let is_heading_line = words
        .next()
        .is_none_or(|word| word == "(using" || word.starts_with("multi"));
    (first && digits && is_heading_line).then_some(version)
}

/// The tool that measured and the name of the phase, in a heading that this program wrote.
fn writer(heading: &str) -> Option<(&str, &str)> {
    let (_, author) = heading.trim_end().split_once(WRITTEN_BY)?;
    author.strip_suffix(')')?.split_once(PHASE)
}

/// Reads the output of one run, which begins at `line`; `None` if it has no results, as with `prepare` and `cleanup`.
pub(crate) fn phase(line: usize, text: &str) -> Result<Option<Summary>, ReadError> {
    let mut reading = Reading::default();
    for (index, text) in text.lines().enumerate() {
        let text = text.trim();
        reading
            .header(text)
            .and_then(|()| reading.results(text))
            .map_err(|what| ReadError::at(line + index, what))?;
    }
    if !reading.has_results {
        return Ok(None);
    }
    let heading = text
        .lines()
        .find(|line| is_heading(line))
        .unwrap_or_default();
    let tool = format!("sysbench {}", version(heading).unwrap_or_default());
    let mut tool = tool.trim_end().to_owned();
    let mut phase = reading.phase(line)?;
    if let Some((writer, name)) = writer(heading) {
        (tool, phase.name) = (writer.to_owned(), name.to_owned());
    }
    Ok(Some(Summary {
        tool,
        phases: vec![phase],
        ..Summary::default()
    }))
}

/// Values read so far.
#[derive(Default)]
struct Reading {
    has_results: bool,
    /// True if the results are in the format of 1.1, which has no total time.
    without_time: bool,
    mode: Option<&'static str>,
    work: WorkSummary,
    /// Reads per write in the mixed test.
    ratio: Option<f64>,
    seconds: Option<f64>,
    events: Option<u64>,
    read: Counts,
    write: Counts,
    sync: Counts,
    /// `Requests/sec executed`: reads and writes together.
    requests_per_s: Option<f64>,
    latency: LatencySummary,
    in_latency: bool,
    fairness: Option<Fairness>,
}

/// Counts of one direction.
#[derive(Clone, Copy, Default)]
struct Counts {
    ops: Option<u64>,
    bytes: Option<f64>,
    ops_per_s: Option<f64>,
    bytes_per_s: Option<f64>,
}

impl Reading {
    /// Reads a line about the requested work.
    fn header(&mut self, line: &str) -> Checked<()> {
        let work = &mut self.work;
        if let Some(text) = line.strip_prefix("Number of threads:") {
            work.threads = Some(whole(text)?);
            work.depth = Some(1);
        } else if let Some(text) = line.strip_prefix("Block size ") {
            work.block = Some(size(text)?);
        } else if let Some(text) = line.strip_suffix(" total file size") {
            work.span = Some(size(text)?);
        } else if let Some(text) = line.strip_prefix("Extra file open flags:") {
            work.direct = is_direct(text.trim());
        } else if let Some(text) =
            line.strip_prefix("Read/Write ratio for combined random IO test:")
        {
            self.ratio = Some(number(text)?);
        } else if let Some(text) =
            line.strip_prefix("Periodic FSYNC enabled, calling fsync() each ")
        {
            work.sync_every = Some(whole(text.trim_end_matches(" requests."))?);
        } else if let Some(text) = line
            .strip_prefix("Using ")
            .and_then(|t| t.strip_suffix(" I/O mode"))
        {
            work.engine = Some(text.to_owned());
        } else if let Some(text) = line
            .strip_prefix("Doing ")
            .and_then(|t| t.strip_suffix(" test"))
        {
            self.mode = mode(text);
        }
        Ok(())
    }

    /// Reads a line about the results.
    fn results(&mut self, line: &str) -> Checked<()> {
        if line.starts_with("Latency (ms)")
            || line.ends_with("statistics:")
            || line == "response time:"
        {
            // No latencies follow "General statistics:".
            self.in_latency = !line.starts_with("General");
        } else if line.starts_with("Threads fairness:") {
            self.in_latency = false;
        }
        if let Some(text) = line.strip_prefix("Operations performed:") {
            self.operations(text)
        } else if let Some(text) = line.strip_suffix("Requests/sec executed") {
            self.requests_per_s = Some(number(text)?);
            Ok(())
        } else if line.starts_with("Read ") && line.contains("Written ") {
            self.transferred(line)
        } else if let Some((key, value)) = line.split_once(':') {
            self.keyed(key.trim(), value.trim())
        } else {
            Ok(())
        }
    }

    /// `6000 Read, 4000 Write, 12800 Other = 22800 Total`; sysbench 0.5 writes `reads`.
    fn operations(&mut self, text: &str) -> Checked<()> {
        // The memory test has a line that begins in the same way.
        if !text.contains("Other") {
            return Ok(());
        }
        self.has_results = true;
        for part in text.split([',', '=']) {
            let Some((count, what)) = part.trim().split_once(' ') else {
                return Err(format!("'{part}' is not a count of operations"));
            };
            let count = whole(count)?;
            match what.to_ascii_lowercase().as_str() {
                "read" | "reads" => self.read.ops = Some(count),
                "write" | "writes" => self.write.ops = Some(count),
                // sysbench calls syncs "other".
                "other" => self.sync.ops = Some(count),
                _ => {}
            }
        }
        Ok(())
    }

    /// `Read 93.75Mb  Written 62.5Mb  Total transferred 156.25Mb  (3.0527Mb/sec)`.
    fn transferred(&mut self, line: &str) -> Checked<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            match pair[0] {
                "Read" => self.read.bytes = Some(fine_size(pair[1])?),
                "Written" => self.write.bytes = Some(fine_size(pair[1])?),
                _ => {}
            }
        }
        Ok(())
    }

    fn keyed(&mut self, key: &str, value: &str) -> Checked<()> {
        let mib = |value: &str| number(value).map(|mib| Some(mib * (1_u64 << 20) as f64));
        match key {
            "File operations" => self.has_results = true,
            "reads/s" => self.read.ops_per_s = Some(number(value)?),
            "writes/s" => self.write.ops_per_s = Some(number(value)?),
            "fsyncs/s" => self.sync.ops_per_s = Some(number(value)?),
            "read, MiB/s" => self.read.bytes_per_s = mib(value)?,
            "written, MiB/s" => self.write.bytes_per_s = mib(value)?,
            "read" | "write" | "fsync" if value.starts_with("IOPS=") => self.iops(key, value)?,
            // The names before 1.1, and in 1.1.
            "total time" | "time elapsed" => {
                self.seconds = Some(number(value.trim_end_matches('s'))?);
            }
            "total number of events" => self.events = Some(whole(value)?),
            "events (avg/stddev)" => {
                let (mean, stddev) = pair(value)?;
                self.fairness = Some(Fairness {
                    ops_mean: mean,
                    ops_stddev: stddev,
                    seconds_mean: None,
                    seconds_stddev: None,
                });
            }
            "execution time (avg/stddev)" => {
                let (mean, stddev) = pair(value)?;
                if let Some(fairness) = &mut self.fairness {
                    fairness.seconds_mean = Some(mean);
                    fairness.seconds_stddev = Some(stddev);
                }
            }
            _ if self.in_latency => self.latency(key, value)?,
            _ => {}
        }
        Ok(())
    }

    /// sysbench 1.1: `IOPS=6104.19 95.38 MiB/s (100.01 MB/s)`.
    fn iops(&mut self, key: &str, value: &str) -> Checked<()> {
        (self.has_results, self.without_time) = (true, true);
        let mut words = value.trim_start_matches("IOPS=").split_whitespace();
        let ops_per_s = Some(number(words.next().unwrap_or_default())?);
        let bytes_per_s = match words.next() {
            Some(mib) => Some(number(mib)? * (1_u64 << 20) as f64),
            None => None,
        };
        let counts = match key {
            "read" => &mut self.read,
            "write" => &mut self.write,
            _ => &mut self.sync,
        };
        (counts.ops_per_s, counts.bytes_per_s) = (ops_per_s, bytes_per_s);
        Ok(())
    }

    fn latency(&mut self, key: &str, value: &str) -> Checked<()> {
        let latency = &mut self.latency;
        match key {
            "min" => latency.min_ns = Some(nanos(value)?),
            "avg" => latency.mean_ns = Some(nanos(value)?),
            "max" => latency.max_ns = Some(nanos(value)?),
            _ => {
                let Some(percent) = percentile(key) else {
                    return Ok(());
                };
                latency.percentiles = vec![Percentile {
                    percent: percent?,
                    ns: nanos(value)?,
                }];
            }
        }
        Ok(())
    }

    fn phase(self, line: usize) -> Result<PhaseSummary, ReadError> {
        // fileio of 1.1 ends with the latencies, and prints no time.
        let is_whole = self.seconds.is_some() || self.without_time && self.latency.max_ns.is_some();
        if !is_whole {
            return Err(ReadError::at(
                line,
                match self.without_time {
                    true => "the output of sysbench that begins here ends before its latencies",
                    false => "the output of sysbench that begins here ends before its total time",
                },
            ));
        }
        let flows = self.flows();
        let mut work = self.work;
        let (pattern, reads) = match self.mode {
            Some("rndrd") => (Some(Pattern::Random), Some(1.0)),
            Some("rndwr") => (Some(Pattern::Random), Some(0.0)),
            Some("rndrw") => (
                Some(Pattern::Random),
                self.ratio.map(|ratio| ratio / (ratio + 1.0)),
            ),
            Some("seqrd") => (Some(Pattern::Sequential), Some(1.0)),
            Some(_) => (Some(Pattern::Sequential), Some(0.0)),
            None => (None, None),
        };
        (work.pattern, work.read_fraction) = (pattern, reads);
        Ok(PhaseSummary {
            name: self.mode.unwrap_or("fileio").to_owned(),
            work,
            seconds: self.seconds,
            flows,
            fairness: self.fairness,
            ..PhaseSummary::default()
        })
    }

    /// Flows of the output. sysbench prints the latency of all requests together; if there was only one direction, it
    /// is that direction's latency.
    fn flows(&self) -> Vec<FlowSummary> {
        let mut flows: Vec<FlowSummary> = [
            (Activity::Read, self.read),
            (Activity::Write, self.write),
            (Activity::Sync, self.sync),
        ]
        .into_iter()
        .filter_map(|(activity, counts)| counts.flow(activity, self.seconds))
        .collect();
        match flows.as_mut_slice() {
            [only] => {
                only.latency = self.latency.clone();
                only.ops = only.ops.or(self.events);
                only.ops_per_s = only.ops_per_s.or(self.requests_per_s);
            }
            _ => flows.push(self.all()),
        }
        flows
    }

    /// Flow of reads and writes together, with the latency of all requests. Since 1.0 syncs are events too, so that the
    /// number of events is not that of requests.
    fn all(&self) -> FlowSummary {
        let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        let counted = self.read.ops.zip(self.write.ops);
        FlowSummary {
            ops: counted.and_then(|(reads, writes)| reads.checked_add(writes)),
            ops_per_s: self
                .requests_per_s
                .or_else(|| sum(self.read.ops_per_s, self.write.ops_per_s)),
            bytes_per_s: sum(self.read.bytes_per_s, self.write.bytes_per_s),
            latency: self.latency.clone(),
            ..FlowSummary::of(Activity::All)
        }
    }
}

impl Counts {
    /// Flow of one direction; `None` if it did no I/O, for which sysbench prints zeros.
    fn flow(self, activity: Activity, seconds: Option<f64>) -> Option<FlowSummary> {
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        let rate = |amount: Option<f64>| Some(amount? / seconds?);
        let ops = self.ops.map(|ops| ops as f64);
        let flow = FlowSummary {
            ops: self.ops,
            bytes: self.bytes.map(|bytes| bytes as u64),
            ops_per_s: self.ops_per_s.or_else(|| rate(ops)),
            bytes_per_s: self.bytes_per_s.or_else(|| rate(self.bytes)),
            ..FlowSummary::of(activity)
        };
        let any = |figure: Option<f64>| figure.is_some_and(|figure| figure > 0.0);
        (any(ops) || any(self.ops_per_s)).then_some(flow)
    }
}

/// The value of `--file-test-mode` for the test that a line `Doing … test` names.
fn mode(text: &str) -> Option<&'static str> {
    Some(match text {
        "sequential read" => "seqrd",
        "sequential write (creation)" | "sequential write" => "seqwr",
        "sequential rewrite" => "seqrewr",
        "random read" => "rndrd",
        "random write" => "rndwr",
        "random r/w" => "rndrw",
        "mixed read/write" | "mixed" => "rndrw",
        _ => return None,
    })
}
