//! Writes the output of sysbench 1.0.

use std::fmt::Write as _;

use record::{Activity, Bytes, FlowSummary, LatencySummary, Pattern, PhaseSummary, Summary};

use super::{PHASE, WRITTEN_BY};
use crate::WriteError;

/// Writes all phases that sysbench could have run, one after another.
pub(crate) fn text(summary: &Summary) -> Result<String, WriteError> {
    let blocks: Vec<String> = summary
        .phases
        .iter()
        .filter_map(|phase| block(&summary.tool, phase))
        .collect();
    if blocks.is_empty() {
        return Err(WriteError::no_place("sysbench fileio", summary));
    }
    Ok(blocks.join("\n"))
}

/// sysbench's name for the test of a phase; `None` if it has no such test.
fn mode(phase: &PhaseSummary) -> Option<&'static str> {
    let reads = phase.work.read_fraction?;
    Some(match (phase.work.pattern?, reads) {
        (Pattern::Sequential, r) if r >= 1.0 => "sequential read",
        (Pattern::Sequential, r) if r <= 0.0 => "sequential rewrite",
        (Pattern::Sequential, _) => return None,
        (Pattern::Random, r) if r >= 1.0 => "random read",
        (Pattern::Random, r) if r <= 0.0 => "random write",
        (Pattern::Random, _) => "random r/w",
    })
}

fn block(tool: &str, phase: &PhaseSummary) -> Option<String> {
    let mode = mode(phase)?;
    let seconds = phase.seconds?;
    let rates = rates(phase)?;
    let heading = format!("{WRITTEN_BY}{tool}{PHASE}{}", phase.name);
    let heading = heading.replace(char::is_control, " ");
    let mut text = format!("sysbench 1.0.20 (using its format; {heading})\n\n");
    text.push_str(&header(phase, mode));
    text.push_str(&rates);
    let _ = write!(
        text,
        "General statistics:\n    total time:                          {seconds:.4}s\n"
    );
    if let Some(events) = events(phase) {
        let _ = writeln!(text, "    total number of events:              {events}");
    }
    if let Some(latency) = latency(phase) {
        text.push_str(&latencies(latency));
    }
    if let Some(fairness) = &phase.fairness {
        let _ = write!(
            text,
            "\nThreads fairness:\n    events (avg/stddev):           {:.4}/{:.2}\n",
            fairness.ops_mean, fairness.ops_stddev
        );
        if let (Some(mean), Some(stddev)) = (fairness.seconds_mean, fairness.seconds_stddev) {
            let _ = writeln!(
                text,
                "    execution time (avg/stddev):   {mean:.4}/{stddev:.2}"
            );
        }
    }
    Some(text)
}

fn header(phase: &PhaseSummary, mode: &str) -> String {
    let work = &phase.work;
    let mut text = String::from("Running the test with following options:\n");
    // sysbench has one request in flight per thread.
    if let (Some(threads), Some(depth)) = (work.threads, work.depth) {
        let in_flight = u64::from(threads) * u64::from(depth);
        let _ = writeln!(text, "Number of threads: {in_flight}");
    }
    if let Some(direct) = work.direct {
        let flags = if direct { "directio" } else { "(none)" };
        let _ = write!(text, "\n\nExtra file open flags: {flags}\n");
    }
    if let Some(span) = work.span {
        let files = u64::from(work.files.unwrap_or(1).max(1));
        let (each, total) = (size(Bytes(span.0 / files)), size(span));
        let _ = write!(
            text,
            "{files} files, {each} each\n{total} total file size\n"
        );
    }
    if let Some(block) = work.block {
        let _ = writeln!(text, "Block size {}", size(block));
    }
    if let (Some(share), "random r/w") = (work.read_fraction, mode) {
        let ratio = share / (1.0 - share);
        let _ = writeln!(
            text,
            "Read/Write ratio for combined random IO test: {ratio:.2}"
        );
    }
    if let Some(every) = work.sync_every.filter(|every| *every > 0) {
        let _ = writeln!(
            text,
            "Periodic FSYNC enabled, calling fsync() each {every} requests."
        );
    }
    let _ = write!(
        text,
        "Using synchronous I/O mode\nDoing {mode} test\n\nThreads started!\n\n\n"
    );
    text
}

/// Formats a size in the largest unit that gives a whole number: `16KiB`.
fn size(bytes: Bytes) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes.0, 0);
    while value > 0 && value.is_multiple_of(1024) && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value}{}", UNITS[unit])
}

fn flow(phase: &PhaseSummary, activity: Activity) -> Option<&FlowSummary> {
    phase.flows.iter().find(|flow| flow.activity == activity)
}

/// Rates of each direction; `None` if they are not known: a zero would mean no requests.
fn rates(phase: &PhaseSummary) -> Option<String> {
    let (read, write) = (flow(phase, Activity::Read), flow(phase, Activity::Write));
    // There is no field for requests whose direction is unknown.
    read.or(write)?;
    let ops = |flow: Option<&FlowSummary>| match flow {
        Some(flow) => flow.ops_per_s,
        None => Some(0.0),
    };
    let mib = |flow: Option<&FlowSummary>| match flow {
        Some(flow) => flow.bytes_per_s.map(|rate| rate / (1_u64 << 20) as f64),
        None => Some(0.0),
    };
    let sync = flow(phase, Activity::Sync);
    // Syncs that were requested but not counted are unknown, not zero.
    let syncs = match (sync, phase.work.sync_every) {
        (None, Some(1..)) => None,
        (sync, _) => ops(sync),
    };
    let syncs = syncs.map_or(String::new(), |rate| {
        format!("    fsyncs/s:                     {rate:.2}\n")
    });
    Some(format!(
        "File operations:\n    reads/s:                      {:.2}\n    writes/s:                     \
         {:.2}\n{syncs}\nThroughput:\n    read, MiB/s:                  {:.2}\n    written, \
         MiB/s:               {:.2}\n\n",
        ops(read)?,
        ops(write)?,
        mib(read)?,
        mib(write)?,
    ))
}

/// Number of reads, writes and syncs: in 1.0 all of them are events.
fn events(phase: &PhaseSummary) -> Option<u64> {
    [Activity::Read, Activity::Write, Activity::Sync]
        .into_iter()
        .filter_map(|activity| flow(phase, activity))
        .try_fold(0_u64, |sum, flow| sum.checked_add(flow.ops?))
}

/// The latency of all requests; if it is not known, that of the only direction.
fn latency(phase: &PhaseSummary) -> Option<&LatencySummary> {
    let all = flow(phase, Activity::All).map(|flow| &flow.latency);
    let known = |latency: &&LatencySummary| !latency.is_unknown();
    if let Some(all) = all.filter(known) {
        return Some(all);
    }
    let reads = flow(phase, Activity::Read).map(|flow| &flow.latency);
    let writes = flow(phase, Activity::Write).map(|flow| &flow.latency);
    match (reads.filter(known), writes.filter(known)) {
        (Some(only), None) | (None, Some(only)) => Some(only),
        _ => None,
    }
}

fn latencies(latency: &LatencySummary) -> String {
    let mut text = String::from("\nLatency (ms):\n");
    let mut line = |key: &str, nanos: Option<f64>| {
        if let Some(nanos) = nanos {
            let _ = writeln!(text, "{key:>13}: {:>38.2}", nanos / 1e6);
        }
    };
    line("min", latency.min_ns);
    line("avg", latency.mean_ns);
    line("max", latency.max_ns);
    if let Some(nanos) = latency.quantile(0.95) {
        let _ = writeln!(text, "         95th percentile: {:>31.2}", nanos / 1e6);
    }
    text
}
