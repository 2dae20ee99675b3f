//! Formats of figures and workloads.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use record::{
    Bytes, CacheKind, CallKind, ClockKind, EngineKind, JobOptions, Nanos, Pattern,
    RandomDistribution, SequentialRuns, Severity, SizeShare, StopReason, Stride, TargetKind,
    ThinkTime, Verdict, Workload, WriteZones, ZoneShare,
};

/// A number with commas between thousands; below 100 with one digit after the point.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value.abs() < 99.95 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes as hexadecimal digits, two each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number of things, whose word takes an s: `1 host`, `1,500 hosts`.
pub fn count(many: usize, what: &str) -> String {
    let plural = if many == 1 { "" } else { "s" };
    let digits = number(many as f64);
    format!("{} {what}{plural}", digits.trim_end_matches(".0"))
}

/// A latency in the unit that suits.
pub fn latency(nanos: u64) -> String {
    Nanos(nanos).to_string().replace(" us", " µs")
}

/// A latency in seconds, without digits that say nothing: for ticks.
pub fn short_latency(seconds: f64) -> String {
    let (factor, unit) = match seconds {
        s if s < 0.999_999e-6 => (1e9, "ns"),
        s if s < 0.999_999e-3 => (1e6, "µs"),
        s if s < 0.999_999 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    format!("{} {unit}", (seconds * factor * 100.0).round() / 100.0)
}

/// Seconds, with two digits below ten.
pub fn seconds(value: f64) -> String {
    match value {
        v if v > 0.0 && v < 1e-4 => format!("{:.0} µs", v * 1e6),
        v if v < 0.1 => format!("{:.1} ms", v * 1e3),
        v if v < 9.995 => format!("{v:.2} s"),
        v => format!("{v:.1} s"),
    }
}

/// A duration that was given as an argument, with the digits that were given.
fn whole(duration: Nanos) -> String {
    match duration.as_secs_f64() {
        seconds if (0.1..300.0).contains(&seconds) => format!("{seconds} s"),
        _ => duration.to_string(),
    }
}

/// A moment in UTC.
pub fn date(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A moment to the second, as clocks here show it.
pub fn local_date(moment: Timestamp) -> String {
    let local = moment.to_zoned(TimeZone::system());
    local.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A share as percent, without digits that say nothing.
pub fn percent(share: f64) -> String {
    let rounded = (share * 1e3).round() / 10.0;
    // Not to be broken before the sign.
    format!("{rounded} %")
}

/// A verdict's sign: told by its shape, not only by its colour.
pub fn verdict_sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Trusted => "✓",
        Verdict::Doubtful => "!",
        Verdict::Invalid => "✕",
    }
}

/// A severity as a word; it is also the name of its style.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warn => "warn",
        Severity::Invalid => "invalid",
    }
}

/// Event that ended a phase.
pub fn stopped(stopped: StopReason) -> &'static str {
    match stopped {
        StopReason::Precise => "precise",
        StopReason::Time => "time was up",
        StopReason::Ops => "count reached",
        StopReason::Signal => "interrupted",
        StopReason::Rule => "a rule of its job",
    }
}

/// Kind of a measured target.
pub fn target_kind(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Directory => "directory",
        TargetKind::File => "file",
        TargetKind::Block => "block device",
    }
}

/// A cache below a target, as JSON has it.
pub fn cache(kind: &CacheKind) -> &str {
    match kind {
        CacheKind::PageCache => "page-cache",
        CacheKind::Memory => "memory",
        CacheKind::FileSystem(name) | CacheKind::FasterDisk(name) => name,
    }
}

/// Interface by which the I/O went to the kernel.
pub fn engine(kind: EngineKind) -> &'static str {
    match kind {
        EngineKind::Uring => "io_uring",
        EngineKind::Sync => "pread/pwrite threads",
        EngineKind::Scripted => "scripted",
        EngineKind::Imported => "another tool's",
    }
}

/// Clock that timed the requests.
pub fn clock(kind: ClockKind) -> &'static str {
    match kind {
        ClockKind::Tsc => "time-stamp counter",
        ClockKind::Monotonic => "monotonic clock",
    }
}

/// A workload as a sentence.
pub fn workload(workload: &Workload) -> String {
    let pattern = match workload.pattern {
        Pattern::Random => "Random",
        Pattern::Sequential => "Sequential",
    };
    let files = workload.details.as_ref().map_or(0, |details| details.files);
    let order = pattern.to_lowercase();
    let of_files = match workload.calls() {
        Some(CallKind::Create) => Some("created"),
        Some(CallKind::Stat) => Some("read with stat(2)"),
        Some(CallKind::Delete) => Some("removed"),
        Some(CallKind::Data) | None => None,
    };
    let sync = match (workload.sync_every > 0, workload.sync_at_end) {
        (true, _) => ", fsync after each",
        (false, true) => ", flushed at the end",
        (false, false) => "",
    };
    if let Some(done) = of_files {
        let small = workload.details.as_ref();
        let small = small.and_then(|details| details.small_files);
        let small = small.unwrap_or_default();
        let sizes = match small.smallest {
            record::Bytes(0) => "up to".to_owned(),
            smallest => format!("{smallest} to"),
        };
        let within = match small.directories {
            0 => String::new(),
            directories => format!(" in {directories} directories"),
        };
        return format!(
            "{files} files of {sizes} {}{within} {done} in {order} order{sync}.",
            workload.block
        );
    }
    let what = match workload.read_fraction {
        reads if reads >= 1.0 => "reads".to_owned(),
        _ if workload.trims() => "trims".to_owned(),
        _ if workload.trims_first() => "trims and then writes".to_owned(),
        reads if reads <= 0.0 => "writes".to_owned(),
        reads => format!("requests ({} reads)", percent(reads)),
    };
    let mut parts = vec![format!("{pattern} {what} of {}", workload.block)];
    parts.push(match workload.rate_per_s {
        Some(rate) => format!(
            "open loop at {} a second, at most {} in flight",
            number(rate),
            workload.in_flight()
        ),
        None => format!("{} in flight", workload.in_flight()),
    });
    if workload.threads > 1 {
        parts.push(format!(
            "{} threads of depth {}",
            workload.threads, workload.depth
        ));
    }
    if let Some(span) = workload.span {
        parts.push(format!("over {span}"));
    }
    if let Some(asked) = &workload.details {
        parts.extend(details(asked));
    }
    let full_sync = workload
        .details
        .as_ref()
        .is_some_and(|details| details.full_sync);
    let sync = if full_sync { "fsync" } else { "fdatasync" };
    match workload.sync_every {
        0 => {}
        1 => parts.push(format!("{sync} after every write")),
        n => parts.push(format!("{sync} after every {n} writes")),
    }
    if workload.sync_at_end {
        parts.push(format!("one {sync} at the end"));
    }
    if let Some(ops) = workload.ops {
        parts.push(format!("until {} requests", number(ops as f64)));
    }
    let until = if workload.precision > 0.0 {
        format!(
            "{} to {}, until IOPS are known to ±{}",
            whole(workload.shortest),
            whole(workload.longest),
            percent(workload.precision)
        )
    } else {
        format!("for {}", whole(workload.longest))
    };
    format!("{}; {until}.", parts.join(", "))
}

/// Extended options of a job file, as clauses.
pub fn details(details: &JobOptions) -> Vec<String> {
    let sizes = |shares: &[SizeShare]| -> String {
        let of = |share: &SizeShare| format!("{} ({})", share.size, percent(share.share));
        shares.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let mut parts = Vec::new();
    for (what, shares) in [
        ("reads", &details.read_sizes),
        ("writes", &details.write_sizes),
    ] {
        if !shares.is_empty() {
            parts.push(format!("{what} of {}", sizes(shares)));
        }
    }
    match details.spread {
        RandomDistribution::Uniform => {}
        RandomDistribution::Once => parts.push("each block once before any again".to_owned()),
        RandomDistribution::Zipf(theta) => parts.push(format!("by Zipf's law of {theta}")),
        RandomDistribution::Pareto(h) => parts.push(format!("by a power law, {h}")),
        RandomDistribution::Normal(deviation) => {
            parts.push(format!("by a bell curve, {deviation}"))
        }
    }
    parts.extend(zones(details));
    parts.extend(details.sequential_runs.as_ref().and_then(sequential_runs));
    if details.offset.0 > 0 {
        parts.push(format!("from {} on", details.offset));
    }
    if details.files > 1 {
        parts.push(format!("in {} files", details.files));
    }
    if let Some(limit) = details.one_sided_rate {
        let what = if limit.writes { "writes" } else { "reads" };
        parts.push(format!("{what} at most {} a second", number(limit.per_s)));
    }
    if let Some(think) = &details.think {
        parts.push(pauses(think));
    }
    if let Some(bytes) = details.bytes {
        parts.push(format!("until {bytes}"));
    }
    if details.ramp.0 > 0 {
        parts.push(format!("after {} that do not count", whole(details.ramp)));
    }
    parts
}

/// Requests of a random job that continue others, as a clause.
fn sequential_runs(runs: &SequentialRuns) -> Option<String> {
    Some(match (runs.every, runs.repeats) {
        (0 | 1, _) => {
            let shares = [(runs.reads, "reads"), (runs.writes, "writes")].into_iter();
            let shares = shares.filter(|(drawn, _)| *drawn < 1.0);
            let shares: Vec<String> = shares
                .map(|(drawn, what)| format!("{} of {what}", small_percent(1.0 - drawn)))
                .collect();
            if shares.is_empty() {
                return None;
            }
            format!("{} sequential", shares.join(" and "))
        }
        (every, true) => format!("{every} requests at each place"),
        (every, false) => format!("{every} requests in a row at each place"),
    })
}

/// A share that is more than none, however small.
fn small_percent(share: f64) -> String {
    match share < 0.001 {
        true => format!("under {}", percent(0.001)),
        false => percent(share),
    }
}

/// Shares of the span and of the requests that lie there, as a clause; without those where none lie.
fn zone_shares(zones: &[ZoneShare]) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    // Where the zone begins, and where the last one that was named ends.
    let (mut start, mut named) = (0.0, 0.0);
    for (nth, zone) in zones.iter().enumerate() {
        let end = start + zone.size;
        if zone.access > 0.0 {
            let of = if parts.is_empty() { " of requests" } else { "" };
            let (access, size) = (small_percent(zone.access), small_percent(zone.size));
            let place = match nth {
                0 => format!("the first {size}"),
                _ if named < start => {
                    format!("the {size} behind the first {}", small_percent(start))
                }
                _ => format!("the next {size}"),
            };
            parts.push(format!("{access}{of} in {place}"));
            named = end;
        }
        start = end;
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Zones of a job, and gaps between its requests, as a clause.
fn zones(details: &JobOptions) -> Option<String> {
    if !details.zones.is_empty() {
        return zone_shares(&details.zones);
    }
    match (details.stride, details.write_zones) {
        (Some(Stride::Add(bytes)), _) if bytes < 0 => Some(format!(
            "each {} before the end of the one before",
            Bytes(bytes.unsigned_abs())
        )),
        (Some(Stride::Add(bytes)), _) => Some(format!(
            "with gaps of {} between them",
            Bytes(bytes.unsigned_abs())
        )),
        (Some(Stride::Zones { size, range, skip }), _) => Some(match skip.0 {
            0 => format!("{size} in each zone of {range}"),
            _ => format!("{size} in each zone of {range}, {skip} between zones"),
        }),
        (_, Some(WriteZones { range, size, .. })) => {
            Some(format!("appended to zones of {range} up to {size}"))
        }
        _ => None,
    }
}

/// Pauses of a job, as a clause.
fn pauses(think: &ThinkTime) -> String {
    let requests = count(think.every as usize, "request");
    let of_io = format!("{} of I/O", short_latency(think.io_time.as_secs_f64()));
    let after = match (think.every, think.io_time.0) {
        (_, 0) => requests,
        (0, _) => of_io,
        _ => format!("{requests} or {of_io}"),
    };
    let stops = if think.stops_rate {
        ", which stop the rate"
    } else {
        ""
    };
    format!(
        "pauses of {} after {after}{stops}",
        short_latency(think.time.as_secs_f64())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Bytes, Nanos, Pattern};

    /// Random reads of 4 KiB, one in flight.
    fn seek() -> Workload {
        Workload {
            span: Some(Bytes::gib(4)),
            longest: Nanos::from_secs(8),
            shortest: Nanos::from_secs(3),
            precision: 0.03,
            ..Workload::default()
        }
    }

    #[test]
    fn what_a_job_file_requested_is_said() {
        let mut asked = seek();
        asked.details = Some(Box::new(JobOptions {
            read_sizes: vec![SizeShare {
                size: record::Bytes::kib(8),
                share: 0.25,
            }],
            spread: RandomDistribution::Zipf(1.2),
            files: 3,
            full_sync: true,
            ramp: record::Nanos::from_secs(5),
            ..JobOptions::default()
        }));
        asked.sync_every = 2;
        let sentence = workload(&asked);
        for part in [
            "reads of 8 KiB (25 %), by Zipf's law of 1.2, in 3 files, after 5 s that do not count",
            "fsync after every 2 writes;",
        ] {
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    #[test]
    fn pauses_a_rate_of_one_direction_and_zones_are_said() {
        let mut asked = JobOptions {
            think: Some(ThinkTime {
                time: Nanos(50_000_000),
                every: 8,
                ..ThinkTime::default()
            }),
            one_sided_rate: Some(record::OneSidedRate {
                writes: true,
                per_s: 150.0,
            }),
            stride: Some(Stride::Zones {
                size: Bytes::kib(256),
                range: Bytes::mib(1),
                skip: Bytes::mib(1),
            }),
            ..JobOptions::default()
        };
        assert_eq!(
            details(&asked),
            [
                "256 KiB in each zone of 1 MiB, 1 MiB between zones",
                "writes at most 150 a second",
                "pauses of 50 ms after 8 requests",
            ]
        );
        asked = JobOptions {
            think: Some(ThinkTime {
                time: Nanos::from_secs(1),
                io_time: Nanos::from_secs(2),
                stops_rate: true,
                ..ThinkTime::default()
            }),
            write_zones: Some(WriteZones {
                range: Bytes::mib(1),
                size: Bytes::kib(768),
                open: None,
            }),
            ..JobOptions::default()
        };
        assert_eq!(
            details(&asked),
            [
                "appended to zones of 1 MiB up to 768 KiB",
                "pauses of 1 s after 2 s of I/O, which stop the rate",
            ]
        );
    }

    #[test]
    fn steps_places_that_follow_others_and_shares_of_the_span_are_said() {
        let of = |asked: JobOptions| details(&asked).join("; ");
        let step = |bytes| JobOptions {
            stride: Some(Stride::Add(bytes)),
            ..JobOptions::default()
        };
        assert_eq!(of(step(8192)), "with gaps of 8 KiB between them");
        assert_eq!(
            of(step(-8192)),
            "each 8 KiB before the end of the one before"
        );
        let runs = |every, repeats, reads| JobOptions {
            sequential_runs: Some(SequentialRuns {
                every,
                repeats,
                reads,
                writes: 1.0,
            }),
            ..JobOptions::default()
        };
        assert_eq!(of(runs(8, false, 1.0)), "8 requests in a row at each place");
        assert_eq!(of(runs(8, true, 1.0)), "8 requests at each place");
        assert_eq!(of(runs(1, false, 0.7)), "30 % of reads sequential");
        let mut both = runs(1, false, 0.7);
        both.sequential_runs.as_mut().unwrap().writes = 0.5;
        assert_eq!(of(both), "30 % of reads and 50 % of writes sequential");
        let zones = |shares: &[(f64, f64)]| JobOptions {
            zones: shares
                .iter()
                .map(|(access, size)| ZoneShare {
                    access: *access,
                    size: *size,
                })
                .collect(),
            ..JobOptions::default()
        };
        assert_eq!(
            of(zones(&[(0.75, 0.1), (0.25, 0.9)])),
            "75 % of requests in the first 10 %, 25 % in the next 90 %"
        );
        // Where no request lies nothing is said, and little is not nothing.
        assert_eq!(
            of(zones(&[(0.75, 0.0001), (0.25, 0.5), (0.0, 0.4999)])),
            "75 % of requests in the first under 0.1 %, 25 % in the next 50 %"
        );
        assert_eq!(
            of(zones(&[(0.75, 0.25), (0.0, 0.25), (0.25, 0.5)])),
            "75 % of requests in the first 25 %, 25 % in the 50 % behind the first 50 %"
        );
    }

    #[test]
    fn numbers_have_commas_and_few_digits() {
        for (value, text) in [
            (0.0, "0.0"),
            (9.34, "9.3"),
            (99.96, "100"),
            (1_234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(count(1, "layout"), "1 layout");
        assert_eq!(count(96, "layout"), "96 layouts");
        assert_eq!(count(1_000, "cell"), "1,000 cells");
    }

    #[test]
    fn a_workload_reads_as_a_sentence() {
        assert_eq!(
            workload(&seek()),
            "Random reads of 4 KiB, 1 in flight, over 4 GiB; 3 s to 8 s, until IOPS are known to ±3 %."
        );
        let mixed = Workload {
            read_fraction: 0.7,
            block: Bytes::kib(16),
            ..seek()
        };
        let sentence = workload(&mixed);
        assert!(
            sentence.starts_with("Random requests (70 % reads) of 16 KiB"),
            "{sentence}"
        );
        let log = Workload {
            pattern: Pattern::Sequential,
            read_fraction: 0.0,
            sync_every: 1,
            ..seek()
        };
        let sentence = workload(&log);
        assert!(
            sentence.contains("fdatasync after every write;"),
            "{sentence}"
        );
    }
}
