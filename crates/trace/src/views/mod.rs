//! The answer of `trace show`: one document, from which JSON, text and page are made.

mod findings;
mod text;

pub(crate) use findings::{TraceFinding, verdict};
pub(crate) use text::{COLUMNS, device_rows, facts, row, text, title};

use jiff::Timestamp;
use record::{Bytes, Histogram, Verdict};
use serde::Serialize;

use crate::figures::{Figures, Group};
use crate::io::{Described as _, NameIndex, Op, TraceReader, WriteCache};

/// Maximum number of rows in a table of names, and in JSON.
const MAX_LISTED_NAMES: usize = 30;
/// Maximum number of sizes listed.
const MAX_LISTED_SIZES: usize = 12;
/// Number of points of the working set's growth.
const GROWTH_POINTS: usize = 20;

/// The document of `trace show --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TraceDocument {
    /// Path of the trace.
    pub(crate) file: String,
    /// Format of the trace, such as `disksmith`, `blktrace` or `fio iolog v3`.
    pub(crate) format: &'static str,
    /// Time at which the trace was started; null where the format has only relative times.
    pub(crate) started: Option<Timestamp>,
    /// Seconds from the start of the trace to the last completion or, where completions were not recorded, issue.
    pub(crate) seconds: f64,
    /// Verdict of the findings.
    pub(crate) verdict: Verdict,
    /// Findings about the trace.
    pub(crate) findings: Vec<TraceFinding>,
    /// Number of I/Os: reads, writes, flushes and discards.
    pub(crate) ios: u64,
    /// Number of reads.
    pub(crate) reads: u64,
    /// Number of writes.
    pub(crate) writes: u64,
    /// Number of writes with FUA.
    pub(crate) fua_writes: u64,
    /// Number of flushes.
    pub(crate) flushes: u64,
    /// Number of discards.
    pub(crate) discards: u64,
    /// Number of I/Os that failed.
    pub(crate) failed: u64,
    /// Bytes read.
    pub(crate) read_bytes: u64,
    /// Bytes written.
    pub(crate) write_bytes: u64,
    /// Bytes discarded.
    pub(crate) discard_bytes: u64,
    /// Mean rate of I/Os, per second.
    pub(crate) iops: f64,
    /// Mean rate of reads and writes, in bytes a second.
    pub(crate) bytes_per_s: f64,
    /// Highest rate of reads, writes and flushes in an interval of `peak_seconds`, per second.
    pub(crate) peak_iops: f64,
    /// Length of the intervals in which the highest rate was sought, in seconds.
    pub(crate) peak_seconds: f64,
    /// False if the format of the trace holds no flushes.
    pub(crate) flushes_recorded: bool,
    /// Queue depth; null where completions were not recorded.
    pub(crate) queue_depth: Option<DepthShown>,
    /// Share of the reads and writes that begin where one of the last 32 of the device and kind ended, in percent.
    pub(crate) sequential_percent: f64,
    /// Bytes that were read or written at least once, in blocks of 4 KiB.
    pub(crate) distinct_bytes: u64,
    /// True if `distinct_bytes` was estimated from a sample of the blocks.
    pub(crate) distinct_is_estimated: bool,
    /// Growth of `distinct_bytes` over time, in up to 20 points.
    pub(crate) growth: Vec<GrowthShown>,
    /// Share of the accesses that goes to the hottest blocks.
    pub(crate) skew: Vec<SkewShown>,
    /// The most frequent sizes of reads and writes, up to 12.
    pub(crate) sizes: Vec<SizeShown>,
    /// Number of events that the recorder lost.
    pub(crate) lost_events: u64,
    /// Number of completions that fitted more than one request, or none.
    pub(crate) ambiguous_pairs: u64,
    /// Number of records of other operations that were skipped.
    pub(crate) skipped_records: u64,
    /// True if the recorder ended before it closed the file.
    pub(crate) cut_off: bool,
    /// Devices of the trace, the busiest first.
    pub(crate) devices: Vec<DeviceShown>,
    /// I/Os by class: operation and range of sizes.
    pub(crate) classes: Vec<GroupShown>,
    /// Time from the block layer to the issue; null where it was not recorded.
    pub(crate) queued: Option<LatencyShown>,
    /// I/Os by process, the 30 busiest; null where names were not recorded.
    pub(crate) processes: Option<Vec<GroupShown>>,
    /// I/Os by file, the 30 busiest; null where names were not recorded.
    pub(crate) files: Option<Vec<GroupShown>>,
}

/// Queue depth: I/Os issued and not completed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DepthShown {
    /// Mean over time.
    pub(crate) mean: f64,
    /// The highest.
    pub(crate) max: u64,
}

/// Distinct bytes that were touched by a time.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct GrowthShown {
    /// Seconds since the start of the trace.
    pub(crate) seconds: f64,
    /// Bytes read or written at least once by then.
    pub(crate) distinct_bytes: u64,
}

/// Share of the accesses that goes to the hottest blocks.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SkewShown {
    /// Share of the blocks that were touched, the hottest of them, in percent.
    pub(crate) hottest_percent: f64,
    /// Share of the accesses that goes to them, in percent.
    pub(crate) accesses_percent: f64,
}

/// Number of reads or writes of a size.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SizeShown {
    /// `read` or `write`.
    pub(crate) op: &'static str,
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// Number of I/Os.
    pub(crate) ios: u64,
}

/// A device of the trace.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DeviceShown {
    /// Size of the device; null where the trace does not hold it.
    pub(crate) size_bytes: Option<Bytes>,
    /// Write cache of the device: `back`, or `through` where flushes do not reach it; null where the trace does
    /// not hold it.
    pub(crate) write_cache: Option<&'static str>,
    #[serde(flatten)]
    pub(crate) group: GroupShown,
}

/// I/Os of a class, a process, a file or a device.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct GroupShown {
    /// Name of the class, process, file or device.
    pub(crate) name: String,
    /// Number of I/Os.
    pub(crate) ios: u64,
    /// Bytes of these I/Os.
    pub(crate) bytes: u64,
    /// Latency from issue to completion; null where completions were not recorded.
    pub(crate) latency: Option<LatencyShown>,
}

/// Latencies, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LatencyShown {
    /// Mean latency.
    pub(crate) mean_us: f64,
    /// Median latency.
    pub(crate) p50_us: f64,
    /// The 99th percentile.
    pub(crate) p99_us: f64,
    /// The 99.9th percentile.
    pub(crate) p999_us: f64,
    /// Longest latency.
    pub(crate) max_us: f64,
}

impl LatencyShown {
    fn of(histogram: &Histogram) -> Option<LatencyShown> {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        (!histogram.is_empty()).then(|| LatencyShown {
            mean_us: histogram.mean() / 1e3,
            p50_us: micros(histogram.quantile(0.5)),
            p99_us: micros(histogram.quantile(0.99)),
            p999_us: micros(histogram.quantile(0.999)),
            max_us: micros(histogram.max()),
        })
    }
}

impl GroupShown {
    fn of(name: String, group: &Group) -> GroupShown {
        GroupShown {
            name,
            ios: group.ios,
            bytes: group.bytes.0,
            latency: LatencyShown::of(&group.latency),
        }
    }
}

/// Makes the document of a trace that was read to its end.
pub(crate) fn document(
    file: String,
    reader: &dyn TraceReader,
    figures: &mut Figures,
) -> TraceDocument {
    let header = reader.header();
    let caveats = reader.caveats();
    let seconds = figures.end.as_secs_f64();
    let per_s = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let findings = findings::of(figures, header, caveats);
    let moved = figures.reads.bytes + figures.writes.bytes;
    let places = figures.reads.ios + figures.writes.ios;
    let depth = figures.depth();
    let names =
        |groups: &std::collections::HashMap<Option<NameIndex>, Group>| named(groups, reader);
    let mut devices: Vec<DeviceShown> = Vec::new();
    for (index, device) in reader.devices().iter().enumerate() {
        let group = figures.devices.get(&crate::io::DeviceIndex(index as u16));
        devices.push(DeviceShown {
            size_bytes: device.size,
            write_cache: device.write_cache.map(|cache| match cache {
                WriteCache::Back => "back",
                WriteCache::Through => "through",
            }),
            group: GroupShown::of(device.name.clone(), group.unwrap_or(&Group::default())),
        });
    }
    devices.sort_by_key(|device| std::cmp::Reverse(device.group.ios));
    let classes = figures.classes.iter();
    TraceDocument {
        file,
        format: header.format,
        started: header.started,
        seconds,
        verdict: verdict(&findings),
        findings,
        ios: figures.ios(),
        reads: figures.reads.ios,
        writes: figures.writes.ios,
        fua_writes: figures.fua,
        flushes: figures.flushes.ios,
        discards: figures.discards.ios,
        failed: figures.failed,
        read_bytes: figures.reads.bytes.0,
        write_bytes: figures.writes.bytes.0,
        discard_bytes: figures.discards.bytes.0,
        iops: per_s(figures.ios() as f64),
        bytes_per_s: per_s(moved.0 as f64),
        peak_iops: figures.peak_iops(),
        peak_seconds: figures.over_time.width().as_secs_f64(),
        flushes_recorded: header.has_flushes,
        queue_depth: depth.map(|depth| DepthShown {
            mean: depth.mean,
            max: depth.max,
        }),
        sequential_percent: 100.0 * figures.sequential as f64 / places.max(1) as f64,
        distinct_bytes: figures.distinct().0,
        distinct_is_estimated: figures.is_sampled(),
        growth: growth(figures),
        skew: figures
            .skew()
            .into_iter()
            .map(|skew| SkewShown {
                hottest_percent: skew.hottest * 100.0,
                accesses_percent: skew.accesses * 100.0,
            })
            .collect(),
        sizes: sizes(figures),
        lost_events: caveats.lost,
        ambiguous_pairs: caveats.ambiguous,
        skipped_records: caveats.skipped,
        cut_off: caveats.cut_off,
        devices,
        classes: classes
            .map(|(class, group)| GroupShown::of(class.name(), group))
            .collect(),
        queued: LatencyShown::of(&figures.queued),
        processes: names(&figures.processes),
        files: names(&figures.files),
    }
}

/// Groups by name, the largest first; `None` if no I/O has a name.
fn named(
    groups: &std::collections::HashMap<Option<NameIndex>, Group>,
    reader: &dyn TraceReader,
) -> Option<Vec<GroupShown>> {
    if groups.keys().all(Option::is_none) {
        return None;
    }
    let name = |index: &Option<NameIndex>| match index {
        Some(index) => TraceReader::name(reader, *index)
            .unwrap_or_default()
            .to_owned(),
        None => "(none)".to_owned(),
    };
    let mut shown: Vec<GroupShown> = groups
        .iter()
        .map(|(index, group)| GroupShown::of(name(index), group))
        .collect();
    shown.sort_by(|a, b| b.ios.cmp(&a.ios).then_with(|| a.name.cmp(&b.name)));
    shown.truncate(MAX_LISTED_NAMES);
    Some(shown)
}

fn growth(figures: &Figures) -> Vec<GrowthShown> {
    let (width, slices) = (
        figures.over_time.width().as_secs_f64(),
        figures.over_time.slices(),
    );
    let step = slices.len().div_ceil(GROWTH_POINTS).max(1);
    let mut points = Vec::new();
    let mut distinct = 0;
    for (at, slice) in slices.iter().enumerate() {
        distinct = distinct.max(slice.distinct);
        if (at + 1) % step == 0 || at + 1 == slices.len() {
            points.push(GrowthShown {
                seconds: (at + 1) as f64 * width,
                distinct_bytes: distinct,
            });
        }
    }
    points
}

fn sizes(figures: &Figures) -> Vec<SizeShown> {
    let mut sizes: Vec<SizeShown> = figures
        .sizes
        .iter()
        .map(|((op, bytes), ios)| SizeShown {
            op: if *op == Op::Read { "read" } else { "write" },
            bytes: *bytes,
            ios: *ios,
        })
        .collect();
    sizes.sort_by_key(|size| std::cmp::Reverse(size.ios));
    sizes.truncate(MAX_LISTED_SIZES);
    sizes
}

/// The document as JSON.
pub(crate) fn json(shown: &TraceDocument) -> String {
    ui::json::document("trace show", shown)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::io::{Header, Io, ReadError};

    struct Read(Header);

    impl Iterator for Read {
        type Item = Result<Io, ReadError>;

        fn next(&mut self) -> Option<Self::Item> {
            None
        }
    }

    impl TraceReader for Read {
        fn header(&self) -> &Header {
            &self.0
        }

        fn name(&self, _: NameIndex) -> Option<&str> {
            None
        }

        fn caveats(&self) -> crate::io::Caveats {
            crate::io::Caveats {
                lost: 1,
                ..Default::default()
            }
        }
    }

    /// The document of a trace with these figures, with one lost event.
    pub(crate) fn shown(figures: &mut Figures) -> TraceDocument {
        let header = Header {
            format: "disksmith",
            started: None,
            devices: Vec::new(),
            has_completions: true,
            has_flushes: true,
        };
        document("t".to_owned(), &Read(header), figures)
    }

    #[test]
    fn few_lost_events_are_doubtful_and_more_are_invalid_and_a_larger_buffer_is_named() {
        for (ios, verdict, option) in [
            (1000, Verdict::Doubtful, "--buffer 55MiB"),
            (50, Verdict::Invalid, "--buffer 3MiB"),
        ] {
            let mut figures = Figures::default();
            (0..ios).for_each(|n| figures.add(&crate::io::tests::read_at(n, 0)));
            let shown = shown(&mut figures);
            assert_eq!(shown.verdict, verdict);
            // All are in the first tenth of a second.
            let text = &shown.findings[0].text;
            assert!(text.contains(option), "{text}");
        }
    }

    #[test]
    fn the_working_set_grows_by_what_was_not_touched_before() {
        let mut figures = Figures::default();
        // A new block each second, and from the tenth on the first ones again.
        let reads = (0..20).map(|n| crate::io::tests::read_at(n * 1_000_000_000, n % 10 * 4096));
        reads.for_each(|io| figures.add(&io));
        let growth = shown(&mut figures).growth;
        let at = |seconds: f64| growth.iter().find(|point| point.seconds > seconds);
        let distinct = [0.5, 4.5, 9.5, 15.5].map(|seconds| at(seconds).unwrap().distinct_bytes);
        assert_eq!(distinct, [1, 5, 10, 10].map(|blocks| blocks * 4096));
    }

    #[test]
    fn a_trace_without_io_is_invalid() {
        let shown = shown(&mut Figures::default());
        assert_eq!(shown.verdict, Verdict::Invalid);
        assert_eq!(shown.findings[0].code, "no-ios");
    }
}
