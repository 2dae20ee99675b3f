//! Writes JSON+ with the keys of fio 3.
//!
//! As fio does, what was not measured is a zero beside a count `N` of zero, and a direction that did
//! nothing is all zeros. What fio measures and this program does not (`iodepth_level`, context
//! switches, page faults) is left out.

use record::{
    Activity, FlowSummary, Histogram, LatencySummary, Pattern, PhaseSummary, Samples, Summary,
};

use super::buckets;
use super::json::{Json, object};

/// The version whose keys these are. Readers tell the units from it.
const VERSION: &str = "fio-3.33";

/// The whole document.
pub(crate) fn document(summary: &Summary) -> String {
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
    let jobs = summary.phases.iter().enumerate();
    let jobs = jobs
        .map(|(index, phase)| job(index, phase, summary))
        .collect();
    entries.extend(object([
        ("global options", Json::Object(Vec::new())),
        ("jobs", Json::List(jobs)),
        ("disk_util", Json::List(Vec::new())),
    ]));
    format!("{}\n", Json::Object(entries))
}

fn job(index: usize, phase: &PhaseSummary, summary: &Summary) -> Json {
    let seconds = phase.seconds.unwrap_or(0.0);
    let of = |activity| phase.flows.iter().find(|flow| flow.activity == activity);
    let share = |share: Option<f64>| Json::Fraction(share.unwrap_or(0.0) * 100.0);
    let mut entries = object([
        ("jobname", phase.name.as_str().into()),
        ("groupid", Json::Count(index as u64)),
        ("error", Json::Count(u64::from(phase.failure.is_some()))),
        ("eta", Json::Count(0)),
        ("elapsed", Json::Count(seconds.ceil() as u64)),
        ("job options", options(phase, summary)),
    ]);
    for (key, activity) in [
        ("read", Activity::Read),
        ("write", Activity::Write),
        ("trim", Activity::Trim),
    ] {
        entries.push((key.to_owned(), direction(of(activity), seconds)));
    }
    // Only where it is not the sum of what stands above: as with unified_rw_reporting.
    if let [only] = phase.flows.as_slice()
        && only.activity == Activity::All
    {
        entries.push(("mixed".to_owned(), direction(Some(only), seconds)));
    }
    let sync = of(Activity::Sync);
    let unknown = LatencySummary::default();
    entries.extend(object([
        (
            "sync",
            Json::Object(object([
                (
                    "total_ios",
                    sync.and_then(|sync| sync.ops).unwrap_or(0).into(),
                ),
                (
                    "lat_ns",
                    latency(sync.map_or(&unknown, |sync| &sync.latency), true),
                ),
            ])),
        ),
        ("job_runtime", Json::Count((seconds * 1e3).round() as u64)),
        ("usr_cpu", share(phase.cpu.user)),
        ("sys_cpu", share(phase.cpu.system)),
    ]));
    entries.extend(distribution(&phase.flows));
    Json::Object(entries)
}

/// The options of a job that would do the same.
fn options(phase: &PhaseSummary, summary: &Summary) -> Json {
    let work = &phase.work;
    let mut options: Vec<(String, Json)> = Vec::new();
    let mut given = |name: &str, value: Option<String>| {
        options.extend(value.map(|value| (name.to_owned(), Json::Text(value))));
    };
    let reads = work.read_fraction;
    let rw = work
        .pattern
        .zip(reads)
        .map(|(pattern, reads)| rw(pattern, reads));
    let mixed = reads.filter(|reads| *reads > 0.0 && *reads < 1.0);
    let whole = |flag: bool| u8::from(flag).to_string();
    given("name", Some(phase.name.clone()));
    given("filename", summary.target.clone());
    given("ioengine", work.engine.clone());
    given("rw", rw.map(str::to_owned));
    given(
        "rwmixread",
        mixed.map(|reads| format!("{:.0}", reads * 100.0)),
    );
    given("bs", work.block.map(|block| block.0.to_string()));
    given("iodepth", work.depth.map(|depth| depth.to_string()));
    given("numjobs", work.threads.map(|threads| threads.to_string()));
    given("size", work.span.map(|span| span.0.to_string()));
    given("direct", work.direct.map(whole));
    given("rate_iops", work.rate_per_s.map(|rate| format!("{rate}")));
    let every = work.sync_every.filter(|every| *every > 0);
    given("fdatasync", every.map(|every| every.to_string()));
    given("group_reporting", Some(whole(true)));
    Json::Object(options)
}

fn rw(pattern: Pattern, reads: f64) -> &'static str {
    match (pattern, reads) {
        (Pattern::Random, r) if r >= 1.0 => "randread",
        (Pattern::Random, r) if r <= 0.0 => "randwrite",
        (Pattern::Random, _) => "randrw",
        (Pattern::Sequential, r) if r >= 1.0 => "read",
        (Pattern::Sequential, r) if r <= 0.0 => "write",
        (Pattern::Sequential, _) => "rw",
    }
}

/// One direction; zeros when it did nothing.
fn direction(flow: Option<&FlowSummary>, seconds: f64) -> Json {
    let nothing = FlowSummary::of(Activity::Read);
    let did = flow.is_some();
    let flow = flow.unwrap_or(&nothing);
    let bytes = flow.bytes.unwrap_or(0);
    let bytes_per_s = flow.bytes_per_s.unwrap_or(0.0);
    let mut entries = object([
        ("io_bytes", bytes.into()),
        ("io_kbytes", (bytes >> 10).into()),
        ("bw_bytes", (bytes_per_s.round() as u64).into()),
        ("bw", ((bytes_per_s / 1024.0) as u64).into()),
        ("iops", flow.ops_per_s.unwrap_or(0.0).into()),
        (
            "runtime",
            Json::Count(if did {
                (seconds * 1e3).round() as u64
            } else {
                0
            }),
        ),
        ("total_ios", flow.ops.unwrap_or(0).into()),
        ("short_ios", Json::Count(0)),
        ("drop_ios", Json::Count(0)),
        ("slat_ns", latency(&LatencySummary::default(), false)),
        ("clat_ns", latency(&flow.latency, true)),
        // There is one latency, from submission to the end: fio's total one.
        ("lat_ns", latency(&flow.latency, false)),
    ]);
    let mean_bytes = bytes.checked_div(flow.ops.unwrap_or(0)).unwrap_or(0) as f64;
    entries.extend(samples(flow.ops_spread, mean_bytes / 1024.0));
    Json::Object(entries)
}

/// What was sampled of the IOPS, and of the KiB a second, which are the IOPS times the size.
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

fn latency(latency: &LatencySummary, whole: bool) -> Json {
    let round = |nanos: Option<f64>| Json::Count(nanos.unwrap_or(0.0).round() as u64);
    let histogram = latency.histogram.as_ref();
    let mut entries = object([
        ("min", round(latency.min_ns)),
        ("max", round(latency.max_ns)),
        ("mean", latency.mean_ns.unwrap_or(0.0).into()),
        ("stddev", latency.stddev_ns.unwrap_or(0.0).into()),
        ("N", histogram.map_or(0, Histogram::count).into()),
    ]);
    if whole && !latency.percentiles.is_empty() {
        let each = latency.percentiles.iter();
        let each = each.map(|p| (format!("{:.6}", p.percent), round(Some(p.ns))));
        entries.push(("percentile".to_owned(), Json::Object(each.collect())));
    }
    if let Some(histogram) = histogram.filter(|_| whole) {
        entries.push(("bins".to_owned(), bins(histogram)));
    }
    Json::Object(entries)
}

/// The counts in fio's own buckets, which are twice as wide as ours.
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

/// `latency_ns`, `latency_us` and `latency_ms`: the percentage of reads and writes that took less
/// than so long, and no less than the bound before.
fn distribution(flows: &[FlowSummary]) -> Vec<(String, Json)> {
    const BOUNDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    let mut all = Histogram::new();
    for flow in flows {
        let counts = matches!(flow.activity, Activity::Read | Activity::Write);
        let histogram = flow.latency.histogram.as_ref().filter(|_| counts);
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
