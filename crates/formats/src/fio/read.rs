//! Reads fio's JSON.

use jiff::Timestamp;
use record::{
    Activity, Bytes, CpuShares, FlowSummary, Histogram, LatencySummary, Percentile, PhaseSummary,
    Samples, Summary,
};
use serde_json::Value;

use super::buckets;
use super::group::{self, SummedJobs};
use super::node::Node;
use super::options::Options;
use crate::ReadError;

/// The key by which a document of fio is recognized.
pub(crate) const VERSION_KEY: &str = "\"fio version\"";

/// True if a JSON document is one of fio's.
pub(crate) fn is_fio(document: &Value) -> bool {
    let has = |key| document.get(key).is_some();
    has("fio version") && (has("jobs") || has("client_stats"))
}

/// True if an incomplete JSON document begins as fio's does: with its version.
pub(crate) fn begins_like_fio(text: &str) -> bool {
    let inside = text.trim_start().strip_prefix('{');
    inside.is_some_and(|inside| inside.trim_start().starts_with(VERSION_KEY))
}

/// Reads a document that begins at `line`.
pub(crate) fn summary(line: usize, document: &Value) -> Result<Summary, ReadError> {
    let document = Node::of_document(line, document)?;
    let mut jobs = document.objects("jobs")?;
    jobs.extend(document.objects("client_stats")?);
    let mut summary = Summary {
        tool: tool(&document)?,
        ran: document.count("timestamp")?.and_then(timestamp),
        host: one_of(jobs.iter().map(|job| job.text("hostname").ok().flatten())),
        target: None,
        target_kind: None,
        options: Vec::new(),
        phases: Vec::new(),
    };
    let mut targets = Vec::new();
    let mut kinds = Vec::new();
    for job in &jobs {
        if is_nobodys(job)? {
            continue;
        }
        let options = Options::of(job, &document)?;
        let summed = group::summed(job, &jobs, &options)?;
        if summed != SummedJobs::Sections {
            targets.push(options.target());
            kinds.push(options.target_kind());
        }
        summary.phases.push(phase(job, &options, summed)?);
    }
    summary.target = one_of(targets.into_iter());
    let first = kinds.first().copied().flatten();
    summary.target_kind = first.filter(|_| kinds.iter().all(|kind| *kind == first));
    Ok(summary)
}

/// The tool of a document: `fio 3.33` for `fio-3.33`. A document that this program wrote names its own version next
/// to fio's.
fn tool(document: &Node<'_>) -> Result<String, ReadError> {
    let text = match document.text("disksmith version")? {
        Some(version) => return Ok(format!("disksmith {version}")),
        None => document.text("fio version")?.unwrap_or_default(),
    };
    Ok(format!("fio {}", text.trim_start_matches("fio-"))
        .trim_end()
        .to_owned())
}

/// Seconds since 1970.
fn timestamp(seconds: u64) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}

/// The text that all known ones of `texts` agree on; `None` if they differ.
fn one_of<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> Option<String> {
    let mut known = texts.flatten();
    let first = known.next()?;
    known.all(|text| text == first).then(|| first.to_owned())
}

/// True if an entry belongs to no job: if sections are summed, fio may write one entry more than there are groups,
/// without a name and without I/O (seen with fio 3.33).
fn is_nobodys(job: &Node<'_>) -> Result<bool, ReadError> {
    if job.value("jobname").is_some() {
        return Ok(false);
    }
    for key in ["read", "write", "trim", "mixed"] {
        let node = job.object(key)?;
        let count = node.map(|node| node.count("total_ios")).transpose()?;
        if count.flatten().is_some_and(|count| count > 0) {
            return Ok(false);
        }
    }
    Ok(job.value("groupid").is_some())
}

fn phase(
    job: &Node<'_>,
    options: &Options<'_>,
    summed: SummedJobs,
) -> Result<PhaseSummary, ReadError> {
    let name = job.text("jobname")?;
    let name = name.ok_or_else(|| job.wrong("jobname", "missing"))?;
    let mut flows = Vec::new();
    let mut runtimes = Vec::new();
    for (key, activity) in [
        ("read", Activity::Read),
        ("write", Activity::Write),
        ("trim", Activity::Trim),
        // With unified_rw_reporting, this is the only direction.
        ("mixed", Activity::All),
    ] {
        let Some(node) = job.object(key)? else {
            continue;
        };
        if let Some(flow) = flow(&node, activity)? {
            runtimes.extend(node.number("runtime")?);
            flows.push(flow);
        }
    }
    let seconds = runtimes.into_iter().reduce(f64::max).map(|ms| ms / 1e3);
    if let Some(node) = job.object("sync")? {
        flows.extend(syncs(&node, seconds)?);
    }
    let mut work = options.work(summed);
    let one_size = options.get("bssplit").is_none();
    work.block = work.block.or_else(|| block_of(&flows)).filter(|_| one_size);
    let times = group::times(job, options, summed)?;
    let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0 * times);
    Ok(PhaseSummary {
        name: match job.text("hostname")? {
            Some(host) if name != "All clients" => format!("{name}@{host}"),
            _ => name.to_owned(),
        },
        work,
        seconds: seconds.filter(|seconds| *seconds > 0.0),
        cpu: CpuShares {
            user: share(job.number("usr_cpu")?),
            system: share(job.number("sys_cpu")?),
            total: None,
        },
        flows,
        fairness: None,
        failure: failure(job)?,
    })
}

/// fio's own error number of a job, which is an errno.
fn failure(job: &Node<'_>) -> Result<Option<String>, ReadError> {
    let error = job.value("error").and_then(Value::as_i64).unwrap_or(0);
    Ok((error != 0).then(|| {
        let reason = std::io::Error::from_raw_os_error(i32::try_from(error.abs()).unwrap_or(0));
        format!("the job ended with error {error} ({reason})")
    }))
}

/// Size of a request, if all have the same size.
fn block_of(flows: &[FlowSummary]) -> Option<Bytes> {
    let mut sizes = flows.iter().filter_map(|flow| {
        let (ops, bytes) = (flow.ops?, flow.bytes?);
        Some((ops > 0 && bytes % ops == 0).then(|| bytes / ops))
    });
    let first = sizes.next()??;
    sizes
        .all(|size| size == Some(first))
        .then_some(Bytes(first))
}

/// Flow of one direction of a job; `None` if it did no I/O, for which fio writes zeros.
fn flow(node: &Node<'_>, activity: Activity) -> Result<Option<FlowSummary>, ReadError> {
    let bandwidth = match node.number("bw_bytes")? {
        Some(bytes) => Some(bytes),
        None => node.number("bw")?.map(|kib| kib * 1024.0),
    };
    let flow = FlowSummary {
        activity,
        ops: node.count("total_ios")?,
        bytes: bytes(node)?,
        ops_per_s: node.number("iops")?,
        bytes_per_s: bandwidth,
        too_fast: false,
        ops_spread: spread(node)?,
        latency: latency(node)?,
        service: None,
    };
    // fio before 2.1 has no count of requests.
    let did = flow.ops.unwrap_or(0) > 0 || flow.bytes.unwrap_or(0) > 0;
    Ok(did.then_some(flow))
}

/// The samples of the IOPS, which fio 3 takes every half second.
fn spread(node: &Node<'_>) -> Result<Option<Samples>, ReadError> {
    let figure = |key| node.number(key);
    let (min, max) = (figure("iops_min")?, figure("iops_max")?);
    let (mean, stddev) = (figure("iops_mean")?, figure("iops_stddev")?);
    let samples = node.count("iops_samples")?.filter(|samples| *samples > 0);
    Ok((|| {
        Some(Samples {
            min: min?,
            mean: mean?,
            stddev: stddev?,
            max: max?,
            samples: samples?,
        })
    })())
}

/// Bytes of a flow. fio wrote `io_bytes` in KiB before it had `io_kbytes` as well. In a document without that key, the
/// unit follows from the KiB per second.
fn bytes(node: &Node<'_>) -> Result<Option<u64>, ReadError> {
    let Some(amount) = node.count("io_bytes")? else {
        return Ok(None);
    };
    let kib = match (node.number("bw")?, node.number("runtime")?) {
        (Some(bw), Some(ms)) => Some(bw * ms / 1e3).filter(|kib| *kib > 0.0),
        _ => None,
    };
    let apart = |unit: f64| kib.map(|kib| (amount as f64 / unit - kib).abs());
    let in_bytes = apart(1024.0)
        .zip(apart(1.0))
        .is_some_and(|(as_bytes, as_kib)| as_bytes < as_kib);
    if in_bytes || node.value("io_kbytes").is_some() {
        return Ok(Some(amount));
    }
    match amount.checked_mul(1024) {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(node.wrong("io_bytes", "too large")),
    }
}

/// fsync and fdatasync calls, which fio 3.7 and later time.
fn syncs(node: &Node<'_>, seconds: Option<f64>) -> Result<Option<FlowSummary>, ReadError> {
    let latency = latency(node)?;
    // With group_reporting, fio 3 leaves the total at zero and counts only the latencies.
    let timed = node.object("lat_ns")?.map(|timed| timed.count("N"));
    let ops = node.count("total_ios")?.filter(|ops| *ops > 0);
    let ops = ops.or(timed.transpose()?.flatten());
    let rate = |seconds: &f64| Some(ops? as f64 / seconds);
    Ok((ops.unwrap_or(0) > 0).then(|| FlowSummary {
        ops,
        ops_per_s: seconds
            .filter(|seconds| *seconds > 0.0)
            .as_ref()
            .and_then(rate),
        latency,
        ..FlowSummary::of(Activity::Sync)
    }))
}

/// The completion latency, for which fio gives percentiles; or else the total latency, for jobs with `lat_percentiles`
/// and for syncs.
fn latency(node: &Node<'_>) -> Result<LatencySummary, ReadError> {
    let mut fallback = LatencySummary::default();
    for (key, nanos) in [("clat_ns", 1), ("clat", 1000), ("lat_ns", 1), ("lat", 1000)] {
        let Some(node) = node.object(key)? else {
            continue;
        };
        let latency = latency_of(&node, nanos)?;
        if !latency.percentiles.is_empty() || latency.histogram.is_some() {
            return Ok(latency);
        }
        if fallback.is_unknown() {
            fallback = latency;
        }
    }
    Ok(fallback)
}

/// A latency of a direction, from figures in units of `nanos`.
fn latency_of(node: &Node<'_>, nanos: u64) -> Result<LatencySummary, ReadError> {
    let figure = |key| Ok::<_, ReadError>(node.number(key)?.map(|value| value * nanos as f64));
    let (min, max) = (figure("min")?, figure("max")?);
    let (mean, stddev) = (figure("mean")?, figure("stddev")?);
    // Zeros mean that nothing was measured, as with disable_clat.
    if mean.unwrap_or(0.0) == 0.0 && max.unwrap_or(0.0) == 0.0 {
        return Ok(LatencySummary::default());
    }
    Ok(LatencySummary {
        min_ns: min,
        mean_ns: mean,
        stddev_ns: stddev,
        max_ns: max,
        percentiles: percentiles(node, nanos)?,
        histogram: histogram(node, nanos)?,
    })
}

fn percentiles(node: &Node<'_>, nanos: u64) -> Result<Vec<Percentile>, ReadError> {
    let Some(node) = node.object("percentile")? else {
        return Ok(Vec::new());
    };
    let mut percentiles = Vec::new();
    for (key, _) in node.entries() {
        let percent: Option<f64> = key.parse().ok();
        let percent = percent
            .filter(|percent| (0.0..=100.0).contains(percent))
            .ok_or_else(|| node.wrong(key, "not a percentile"))?;
        let value = node.number(key)?;
        // fio 2 pads the list with a 0th percentile.
        if let (Some(value), true) = (value, percent > 0.0) {
            percentiles.push(Percentile {
                percent,
                ns: value * nanos as f64,
            });
        }
    }
    percentiles.sort_by(|a, b| a.percent.total_cmp(&b.percent));
    Ok(percentiles)
}

/// Maximum number of I/Os: more than any disk does in a century, and few enough that sums do not overflow.
const MAX_IOS: u64 = 1 << 53;

/// The buckets of JSON+: keyed by their middle, or in fio 2 by their number.
fn histogram(node: &Node<'_>, nanos: u64) -> Result<Option<Histogram>, ReadError> {
    let Some(node) = node.object("bins")? else {
        return Ok(None);
    };
    let bits = node.count("FIO_IO_U_PLAT_BITS")?;
    let numbered = bits.map(|bits| u32::try_from(bits).unwrap_or(u32::MAX));
    let mut histogram = Histogram::new();
    for (key, _) in node
        .entries()
        .filter(|(key, _)| !key.starts_with("FIO_IO_U"))
    {
        let count = node.count(key)?.unwrap_or(0);
        let middle = key.parse().ok().and_then(|number| match numbered {
            Some(bits) => buckets::middle(number, bits),
            None => Some(number),
        });
        let value = middle.and_then(|middle: u64| middle.checked_mul(nanos));
        let value = value.ok_or_else(|| node.wrong(key, "not a bucket"))?;
        if count > MAX_IOS || histogram.count() > MAX_IOS {
            return Err(node.wrong(key, "too large a count"));
        }
        histogram.record_many(value, count);
    }
    histogram.trim();
    Ok((!histogram.is_empty()).then_some(histogram))
}
