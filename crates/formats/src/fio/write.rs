//! Writes JSON+ with the keys of fio 3.
//!
//! As in fio's output, latencies that were not measured are zeros with a count `N` of zero, and a direction without I/O
//! is all zeros. In a direction with I/O, unknown values are left out, since a zero would be read as measured; so are
//! values that fio measures and this program does not (`iodepth_level`, context switches, page faults).

use record::{Activity, FlowSummary, Histogram, LatencySummary, PhaseSummary, Samples, Summary};

use super::json::{Json, object};
use super::{buckets, written_options};
use crate::WriteError;

/// The version of fio whose keys are written. Readers derive the units from it.
const VERSION: &str = "fio-3.33";

/// The whole document.
pub(crate) fn document(summary: &Summary) -> Result<String, WriteError> {
    let phases: Vec<&PhaseSummary> = summary
        .phases
        .iter()
        .filter(|phase| is_known(phase))
        .collect();
    if phases.is_empty() && !summary.phases.is_empty() {
        return Err(WriteError::no_place("fio", summary));
    }
    let mut entries = object([("fio version", VERSION.into())]);
    if let Some(version) = summary.tool.strip_prefix("disksmith ") {
        entries.extend(object([("disksmith version", version.into())]));
    }
    if let Some(ran) = summary.ran {
        let count = |value: i64| Json::Count(u64::try_from(value).unwrap_or(0));
        entries.extend(object([
            ("timestamp", count(ran.as_second())),
            ("timestamp_ms", count(ran.as_millisecond())),
            (
                "time",
                ran.strftime("%a %b %e %H:%M:%S %Y").to_string().into(),
            ),
        ]));
    }
    let mut group = 0;
    let mut jobs = Vec::new();
    for (index, phase) in phases.iter().enumerate() {
        // Clones that are not summed have the same name and are in one group.
        group += u64::from(index > 0 && phases[index - 1].name != phase.name);
        jobs.push(job(group, phase, summary));
    }
    entries.extend(object([
        ("global options", Json::Object(Vec::new())),
        ("jobs", Json::List(jobs)),
        ("disk_util", Json::List(Vec::new())),
    ]));
    Ok(format!("{}\n", Json::Object(entries)))
}

/// True if any known value of a phase has a place in fio's format. A phase without I/O counts as known.
fn is_known(phase: &PhaseSummary) -> bool {
    let known = |flow: &FlowSummary| {
        let figures = [flow.ops_per_s, flow.bytes_per_s];
        !matches!(
            flow.activity,
            Activity::Commit | Activity::Create | Activity::Stat | Activity::Delete
        ) && (figures.iter().any(Option::is_some) || flow.ops.is_some())
    };
    phase.flows.is_empty() || phase.flows.iter().any(known)
}

fn job(group: u64, phase: &PhaseSummary, summary: &Summary) -> Json {
    let of = |activity| phase.flows.iter().find(|flow| flow.activity == activity);
    let millis = phase.seconds.map(|seconds| (seconds * 1e3).round() as u64);
    // As in fio, the sum of the processes' times, to which its CPU shares are relative.
    let processes = u64::from(phase.work.threads.unwrap_or(1).max(1));
    let share = |share: f64| Json::Fraction(share * 100.0 / processes as f64);
    let mut entries = object([
        ("jobname", phase.name.as_str().into()),
        ("groupid", Json::Count(group)),
        ("error", Json::Count(u64::from(phase.failure.is_some()))),
        ("eta", Json::Count(0)),
    ]);
    let elapsed = phase.seconds.map(|seconds| seconds.ceil() as u64);
    entries.extend(known_key("elapsed", elapsed));
    let options = written_options::options(phase, summary);
    if !options.is_empty() {
        let texts = options
            .into_iter()
            .map(|(name, value)| (name, Json::Text(value)));
        entries.push(("job options".to_owned(), Json::Object(texts.collect())));
    }
    match phase.flows.as_slice() {
        // As with unified_rw_reporting, there are no other directions.
        [only] if only.activity == Activity::All => {
            entries.push(("mixed".to_owned(), direction(Some(only), millis)));
        }
        _ => {
            for (key, activity) in [
                ("read", Activity::Read),
                ("write", Activity::Write),
                ("trim", Activity::Trim),
            ] {
                entries.push((key.to_owned(), direction(of(activity), millis)));
            }
        }
    }
    let synced = of(Activity::Sync);
    // Without a count of syncs, zero is known only if none were requested.
    if synced.is_some() || phase.work.sync_every == Some(0) {
        entries.push(("sync".to_owned(), syncs(synced)));
    }
    entries.extend(known_key(
        "job_runtime",
        millis.map(|millis| millis.saturating_mul(processes)),
    ));
    entries.extend(known_key("usr_cpu", phase.cpu.user.map(share)));
    entries.extend(known_key("sys_cpu", phase.cpu.system.map(share)));
    entries.extend(distribution(&phase.flows));
    Json::Object(entries)
}

/// An entry for a value; `None` if the value is unknown.
fn known_key<T: Into<Json>>(key: &str, value: Option<T>) -> Option<(String, Json)> {
    value.map(|value| (key.to_owned(), value.into()))
}

fn syncs(flow: Option<&FlowSummary>) -> Json {
    let none = FlowSummary {
        ops: Some(0),
        ..FlowSummary::of(Activity::Sync)
    };
    let flow = flow.unwrap_or(&none);
    let mut entries: Vec<(String, Json)> = known_key("total_ios", flow.ops).into_iter().collect();
    entries.push(("lat_ns".to_owned(), latency(&flow.latency, flow.ops, true)));
    Json::Object(entries)
}

/// Object of one direction; zeros if it did no I/O.
fn direction(flow: Option<&FlowSummary>, millis: Option<u64>) -> Json {
    let none = FlowSummary {
        ops: Some(0),
        bytes: Some(0),
        ops_per_s: Some(0.0),
        bytes_per_s: Some(0.0),
        ..FlowSummary::of(Activity::Read)
    };
    let millis = if flow.is_some() { millis } else { Some(0) };
    let flow = flow.unwrap_or(&none);
    let kib = flow.bytes_per_s.map(|rate| (rate / 1024.0) as u64);
    let mut entries: Vec<(String, Json)> = [
        known_key("io_bytes", flow.bytes),
        known_key("io_kbytes", flow.bytes.map(|bytes| bytes >> 10)),
        known_key("bw_bytes", flow.bytes_per_s.map(|rate| rate.round() as u64)),
        known_key("bw", kib),
        known_key("iops", flow.ops_per_s),
        known_key("runtime", millis),
        known_key("total_ios", flow.ops),
    ]
    .into_iter()
    .flatten()
    .collect();
    // fio's completion latency begins at the submission, its total latency before that. A closed loop has one
    // latency, which is written for both.
    let service = flow.service.as_ref();
    let since_due = service.is_some();
    entries.extend(object([
        ("short_ios", Json::Count(0)),
        ("drop_ios", Json::Count(0)),
        ("slat_ns", latency(&LatencySummary::default(), None, false)),
        (
            "clat_ns",
            latency(service.unwrap_or(&flow.latency), flow.ops, true),
        ),
        ("lat_ns", latency(&flow.latency, flow.ops, since_due)),
    ]));
    if let (Some(bytes), Some(ops)) = (flow.bytes, flow.ops) {
        let mean_bytes = bytes.checked_div(ops).unwrap_or(0) as f64;
        entries.extend(samples(flow.ops_spread, mean_bytes / 1024.0));
    }
    Json::Object(entries)
}

/// Sampled IOPS and KiB per second; the latter are the IOPS times the size.
fn samples(spread: Option<Samples>, kib: f64) -> Vec<(String, Json)> {
    let spread = spread.unwrap_or(Samples {
        min: 0.0,
        mean: 0.0,
        stddev: 0.0,
        max: 0.0,
        samples: 0,
    });
    let share = if spread.samples > 0 { 100.0 } else { 0.0 };
    object([
        ("bw_min", ((spread.min * kib) as u64).into()),
        ("bw_max", ((spread.max * kib) as u64).into()),
        ("bw_agg", share.into()),
        ("bw_mean", (spread.mean * kib).into()),
        ("bw_dev", (spread.stddev * kib).into()),
        ("bw_samples", spread.samples.into()),
        ("iops_min", (spread.min as u64).into()),
        ("iops_max", (spread.max as u64).into()),
        ("iops_mean", spread.mean.into()),
        ("iops_stddev", spread.stddev.into()),
        ("iops_samples", spread.samples.into()),
    ])
}

/// A latency over `ops` requests; zeros if it was not measured.
fn latency(latency: &LatencySummary, ops: Option<u64>, whole: bool) -> Json {
    let histogram = latency.histogram.as_ref();
    if latency.is_unknown() {
        return Json::Object(object([
            ("min", Json::Count(0)),
            ("max", Json::Count(0)),
            ("mean", Json::Fraction(0.0)),
            ("stddev", Json::Fraction(0.0)),
            ("N", Json::Count(0)),
        ]));
    }
    let round = |nanos: f64| Json::Count(nanos.round() as u64);
    let mut entries: Vec<(String, Json)> = [
        known_key("min", latency.min_ns.map(round)),
        known_key("max", latency.max_ns.map(round)),
        known_key("mean", latency.mean_ns),
        known_key("stddev", latency.stddev_ns),
        known_key("N", histogram.map(Histogram::count).or(ops)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if whole && !latency.percentiles.is_empty() {
        let each = latency.percentiles.iter();
        let each = each.map(|p| (format!("{:.6}", p.percent), round(p.ns)));
        entries.push(("percentile".to_owned(), Json::Object(each.collect())));
    }
    if let Some(histogram) = histogram.filter(|_| whole) {
        entries.push(("bins".to_owned(), bins(histogram)));
    }
    Json::Object(entries)
}

/// Counts in fio's own buckets, which are twice as wide as those of this program.
fn bins(histogram: &Histogram) -> Json {
    let mut bins: Vec<(u64, u64)> = Vec::new();
    for (low, high, count) in histogram.buckets() {
        let middle = buckets::middle_of(low + (high - low) / 2);
        match bins.last_mut() {
            Some(last) if last.0 == middle => last.1 += count,
            _ => bins.push((middle, count)),
        }
    }
    let entry = |(middle, count): (u64, u64)| (middle.to_string(), Json::Count(count));
    Json::Object(bins.into_iter().map(entry).collect())
}

/// `latency_ns`, `latency_us` and `latency_ms`: percentages of reads, writes and trims by their completion latency,
/// in ranges that begin with the bound before.
fn distribution(flows: &[FlowSummary]) -> Vec<(String, Json)> {
    const BOUNDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    let mut all = Histogram::new();
    for flow in flows {
        let counts = matches!(
            flow.activity,
            Activity::Read | Activity::Write | Activity::Trim
        );
        let latency = flow.service.as_ref().unwrap_or(&flow.latency);
        let histogram = latency.histogram.as_ref().filter(|_| counts);
        if let Some(histogram) = histogram {
            all.merge(histogram);
        }
    }
    if all.is_empty() {
        return Vec::new();
    }
    let mut below = 0;
    let mut share = |bound: Option<u64>| {
        let count = bound.map_or(all.count(), |bound| all.count_at_most(bound - 1));
        let more = count.saturating_sub(below);
        below = below.max(count);
        Json::Fraction(more as f64 / all.count() as f64 * 100.0)
    };
    let mut entries = Vec::new();
    for (key, unit) in [
        ("latency_ns", 1),
        ("latency_us", 1_000),
        ("latency_ms", 1_000_000),
    ] {
        let mut shares: Vec<(String, Json)> = BOUNDS
            .iter()
            .map(|bound| (bound.to_string(), share(Some(bound * unit))))
            .collect();
        if key == "latency_ms" {
            shares.push(("2000".to_owned(), share(Some(2_000_000_000))));
            shares.push((">=2000".to_owned(), share(None)));
        }
        entries.push((key.to_owned(), Json::Object(shares)));
    }
    entries
}
