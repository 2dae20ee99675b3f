//! Output of zeroing: a table with sentences, or one JSON document.

use std::path::Path;

use record::{Bytes, Ranges};
use serde::Serialize;
use study::compare::RatioInterval;
use study::interval::Interval;

use super::checkpoint::{Disk, Method};
use super::figures::{ZeroedDisk, slow};
use domain::plan_binding::DiskIdentity;
use ui::table::{Column, layout, wrap};
use ui::{format, relative};

const MIB: f64 = 1_048_576.0;

const COLUMNS: [Column; 9] = [
    Column::text("disk"),
    Column::numbers("size", 0),
    Column::numbers("took", 2),
    Column::numbers("MiB/s", 0),
    Column::numbers("95 %", 1),
    Column::numbers("p99", 3),
    Column::numbers("max", 3),
    Column::numbers("first write", 1),
    Column::text("zeros"),
];

/// The table, followed by the notes.
pub(crate) fn text(disks: &[ZeroedDisk], columns: usize) -> String {
    let rows: Vec<Vec<String>> = disks.iter().map(row).collect();
    let mut text = layout(&COLUMNS, &rows, columns);
    let sentences = notes(disks);
    if !sentences.is_empty() {
        text.push('\n');
    }
    for sentence in sentences {
        text.push_str(&wrap(&sentence, columns, "  "));
        text.push('\n');
    }
    text
}

/// All notes: those on bad disks first.
fn notes(disks: &[ZeroedDisk]) -> Vec<String> {
    let rates: Vec<Option<Interval>> = disks.iter().map(|one| one.disk.pace.interval()).collect();
    let slow = slow(&rates);
    let slow = slow.iter().map(|slow| slow.sentence(disks));
    let (bad, well): (Vec<_>, Vec<_>) = disks.iter().partition(|one| !one.is_well());
    let of = |some: Vec<&ZeroedDisk>| -> Vec<String> {
        some.iter().flat_map(|one| one.sentences()).collect()
    };
    of(bad).into_iter().chain(slow).chain(of(well)).collect()
}

fn row(one: &ZeroedDisk) -> Vec<String> {
    let disk = &one.disk;
    let pace = &disk.pace;
    let interval = pace.interval();
    let latency = |nanos: u64| match disk.latency.is_empty() {
        true => String::new(),
        false => format::latency(nanos),
    };
    vec![
        disk.path.display().to_string(),
        disk.size.to_string(),
        pace.elapsed().to_string(),
        format::number(interval.map_or(pace.mean(), |rate| rate.mean) / MIB),
        interval.map_or_else(String::new, |rate| {
            let shown = |rate: f64| format::number(rate / MIB);
            let text = relative::interval(rate.mean, Some(rate.low), Some(rate.high), shown);
            text.unwrap_or_default()
        }),
        latency(disk.latency.quantile(0.99)),
        latency(disk.latency.max()),
        one.penalty().map_or_else(String::new, |times| {
            format!("×{:.2} ({:.2}–{:.2})", times.ratio, times.low, times.high)
        }),
        match (disk.failed.is_empty(), one.back.is_well()) {
            (true, true) => "all".to_owned(),
            (false, true) => format!("all but {}", disk.failed.total()),
            // A wrong read-back is more serious than a failed write.
            (_, false) => "no".to_owned(),
        },
    ]
}

/// The JSON document, with a newline at the end.
pub(crate) fn document(disks: &[ZeroedDisk]) -> String {
    let rates: Vec<Option<Interval>> = disks.iter().map(|one| one.disk.pace.interval()).collect();
    let slow = slow(&rates);
    let found = disks.iter().enumerate().map(|(at, one)| {
        let slow = slow.iter().find(|slow| slow.disk == at);
        let found = FoundDocument::of(one, slow.map(|slow| slow.ratio));
        DiskDocument::of(&one.disk, found)
    });
    let document = Document {
        well: disks.iter().all(ZeroedDisk::is_well),
        disks: found.collect(),
        notes: notes(disks),
    };
    ui::json::document("zero", &document)
}

/// The document of `zero --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// True if all disks are zero, as far as is known.
    well: bool,
    /// Result of each disk.
    disks: Vec<DiskDocument<'a, FoundDocument<'a>>>,
    /// Notes for people, in sentences.
    notes: Vec<String>,
}

/// The document of `zero --dry-run --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DryRunDocument<'a> {
    /// True: nothing was written.
    dry_run: bool,
    /// Plan for each disk.
    disks: Vec<DiskDocument<'a, PlanDocument<'a>>>,
}

/// A disk by its identity and its method, and what else is known of it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DiskDocument<'a, T> {
    /// Path of the disk, as it was named.
    path: &'a Path,
    /// Kernel name of the disk, such as `nvme1n1`.
    device: &'a str,
    /// Model; null where it is not known.
    model: Option<&'a str>,
    /// Serial number or volume id; null where it is not known.
    serial: Option<&'a str>,
    /// Size of the disk.
    size_bytes: Bytes,
    /// Method of zeroing: `writes`, `discard` or `write-zeroes`.
    method: &'static str,
    /// Number of starts, this one included.
    starts: u32,
    #[serde(flatten)]
    more: T,
}

/// Plan for a disk.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PlanDocument<'a> {
    /// Bytes that are still to be zeroed.
    left_bytes: Bytes,
    /// Content, in the words of `--destroy`.
    content: &'a [String],
    /// The identity by which the disk is known again when the plan is carried out.
    seen: &'a DiskIdentity,
}

/// Result of a disk.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FoundDocument<'a> {
    /// Time spent zeroing, over all starts, in seconds.
    seconds: f64,
    /// Rate of zeroing.
    bytes_per_s: RateDocument,
    /// Latency of writes; null where nothing was written.
    latency: Option<LatencyDocument>,
    /// Time of a first write compared with a second one to the same place; null where that was not measured.
    first_write: Option<PenaltyDocument>,
    /// Rate of the other disks divided by this disk's; null where the disk is not significantly slower.
    slower_than_siblings: Option<RatioDocument>,
    /// Ranges that could not be written.
    not_written: Vec<PlaceDocument>,
    /// The kernel's first error; null where all was written.
    why_not_written: Option<&'a str>,
    /// Result of reading a sample back.
    read_back: ReadBackDocument,
    /// Latency of the foreground without and beside the zeroing; null where there was none.
    foreground: Option<&'a reader::ForegroundReport>,
    /// True if the disk is zero, as far as is known.
    well: bool,
}

/// A rate in bytes a second, with its 95 % interval.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RateDocument {
    /// Mean rate, in bytes a second.
    mean: f64,
    /// Lower bound; null where too little is known.
    low: Option<f64>,
    /// Upper bound; null where too little is known.
    high: Option<f64>,
}

/// Latency of requests, in nanoseconds.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LatencyDocument {
    /// The median.
    p50_ns: u64,
    /// The 99th percentile.
    p99_ns: u64,
    /// The longest.
    max_ns: u64,
}

/// Time of a first write compared with a second one to the same place.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PenaltyDocument {
    /// Number of places that were written twice.
    places: Option<usize>,
    /// Time of the first write divided by that of the second.
    ratio: RatioDocument,
}

/// A ratio, with its 95 % interval.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RatioDocument {
    /// The ratio.
    mean: f64,
    /// Lower bound.
    low: f64,
    /// Upper bound.
    high: f64,
}

/// A contiguous range of bytes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PlaceDocument {
    /// Offset of its first byte.
    offset: u64,
    /// Length in bytes.
    bytes: u64,
}

/// Result of reading a sample back.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReadBackDocument {
    /// Number of places that were read back.
    places: usize,
    /// Places that are not zero.
    not_zero: Vec<PlaceDocument>,
    /// Places that could not be read.
    unreadable: Vec<PlaceDocument>,
}

impl<'a, T> DiskDocument<'a, T> {
    fn of(disk: &'a Disk, more: T) -> DiskDocument<'a, T> {
        DiskDocument {
            path: &disk.path,
            device: &disk.name,
            model: disk.model.as_deref(),
            serial: disk.serial.as_deref(),
            size_bytes: disk.size,
            method: disk.method.name(),
            starts: disk.starts,
            more,
        }
    }
}

impl<'a> FoundDocument<'a> {
    fn of(one: &'a ZeroedDisk, slow: Option<RatioInterval>) -> FoundDocument<'a> {
        let (disk, back) = (&one.disk, &one.back);
        let interval = disk.pace.interval();
        let why = disk.why_failed.as_deref();
        FoundDocument {
            seconds: disk.pace.elapsed().as_secs_f64(),
            bytes_per_s: RateDocument {
                mean: interval.map_or(disk.pace.mean(), |rate| rate.mean),
                low: interval.map(|rate| rate.low),
                high: interval.map(|rate| rate.high),
            },
            latency: (!disk.latency.is_empty()).then(|| LatencyDocument {
                p50_ns: disk.latency.quantile(0.5),
                p99_ns: disk.latency.quantile(0.99),
                max_ns: disk.latency.max(),
            }),
            first_write: one.penalty().map(|penalty| PenaltyDocument {
                places: disk.passes.as_ref().map(|passes| passes.places()),
                ratio: penalty.into(),
            }),
            slower_than_siblings: slow.map(RatioDocument::from),
            not_written: places(&disk.failed),
            why_not_written: why.filter(|_| !disk.failed.is_empty()),
            read_back: ReadBackDocument {
                places: back.places,
                not_zero: places(&back.not_zero),
                unreadable: places(&back.unreadable),
            },
            foreground: one.foreground.as_ref(),
            well: one.is_well(),
        }
    }
}

impl From<RatioInterval> for RatioDocument {
    fn from(ratio: RatioInterval) -> RatioDocument {
        RatioDocument {
            mean: ratio.ratio,
            low: ratio.low,
            high: ratio.high,
        }
    }
}

fn places(ranges: &Ranges) -> Vec<PlaceDocument> {
    let places = ranges.iter().map(|range| PlaceDocument {
        offset: range.start,
        bytes: range.end - range.start,
    });
    places.collect()
}

/// Output of a dry run: text, or one JSON document, which also has the identity by which each disk is recognized when
/// the plan is carried out.
pub(crate) fn dry_run_text(
    disks: &[Disk],
    seen: &[DiskIdentity],
    content: &[Vec<String>],
    json: bool,
) -> String {
    if json {
        let disks = disks.iter().zip(seen).zip(content);
        let disks = disks.map(|((disk, seen), content)| {
            let left_bytes = disk.left().total();
            let plan = PlanDocument {
                left_bytes,
                content,
                seen,
            };
            DiskDocument::of(disk, plan)
        });
        let document = DryRunDocument {
            dry_run: true,
            disks: disks.collect(),
        };
        return ui::json::document("zero", &document);
    }
    let mut text = String::from("Nothing was touched. This would be zeroed:\n");
    for disk in disks {
        let how = match disk.method {
            Method::Writes => "by writing zeros",
            Method::Discard => "by discarding",
            Method::WriteZeroes => "by write-zeroes",
        };
        let left = disk.left().total();
        text.push_str(&match left == disk.size {
            true => format!("  {}: {}, {how}\n", disk.path.display(), disk.size),
            false => format!(
                "  {}: the {left} that are left of {}, {how}\n",
                disk.path.display(),
                disk.size
            ),
        });
    }
    text
}
