//! Report of a warming at its end: as text, and as one JSON document.

use record::{Bytes, Severity};
use serde::Serialize;

use super::finding::{Finding, FindingCode};
use super::volume_warming::{WarmResult, WarmingEnd};
use ui::table::{Column, layout, wrap};
use ui::units::{rate, span};

/// Number of extents that are listed as text; JSON has all.
const MAX_LISTED_EXTENTS: usize = 20;

const COLUMNS: [Column; 8] = [
    Column::text("volume"),
    Column::numbers("size", 0),
    Column::numbers("read", 0),
    Column::numbers("before", 2),
    Column::numbers("rate", 0),
    Column::numbers("in flight", 3),
    Column::numbers("took", 1),
    Column::text("now"),
];

/// The results as text.
pub(crate) fn text(warmed: &[WarmResult], shared: &[Finding], columns: usize) -> String {
    let rows: Vec<Vec<String>> = warmed.iter().map(row).collect();
    let mut text = layout(&COLUMNS, &rows, columns);
    for one in warmed {
        for finding in one.findings.iter().chain(&unreadable(one)) {
            let line = format!(
                "{}: {}, {}: {}",
                sign(finding.severity),
                finding.code.name(),
                one.device,
                finding.text
            );
            text.push_str(&wrap(&line, columns, "  "));
            text.push('\n');
        }
    }
    for finding in shared {
        let line = format!(
            "{}: {}: {}",
            sign(finding.severity),
            finding.code.name(),
            finding.text
        );
        text.push_str(&wrap(&line, columns, "  "));
        text.push('\n');
    }
    text
}

fn sign(severity: Severity) -> &'static str {
    match severity {
        Severity::Invalid => "invalid",
        Severity::Warn => "warning",
        Severity::Note => "note",
    }
}

fn row(one: &WarmResult) -> Vec<String> {
    let now = match &one.ending {
        WarmingEnd::Done if one.unreadable.is_empty() && one.left_out.0 > 0 => {
            format!("{} left out", one.left_out)
        }
        WarmingEnd::Done if one.unreadable.is_empty() => "warm".to_owned(),
        WarmingEnd::Done => format!("{} cannot be read", one.unreadable.total()),
        WarmingEnd::Interrupted => format!("interrupted, {} left", one.left),
        WarmingEnd::Gone => format!("gone, {} left", one.left),
        WarmingEnd::Failed(_) => format!("failed, {} left", one.left),
    };
    vec![
        one.device.clone(),
        one.size.to_string(),
        one.read.to_string(),
        if one.before.0 > 0 {
            one.before.to_string()
        } else {
            String::new()
        },
        one.rate().map_or_else(|| "–".to_owned(), rate),
        one.verdict
            .map_or_else(String::new, |verdict| verdict.depth.to_string()),
        span(one.seconds),
        now,
    ]
}

/// Finding about the unreadable ranges of a volume.
fn unreadable(one: &WarmResult) -> Option<Finding> {
    if one.unreadable.is_empty() {
        return None;
    }
    let extents: Vec<String> = one
        .unreadable
        .iter()
        .take(MAX_LISTED_EXTENTS)
        .map(|range| format!("{}+{}", range.start, range.end - range.start))
        .collect();
    let more = match one.unreadable.count().saturating_sub(MAX_LISTED_EXTENTS) {
        0 => String::new(),
        more => format!(" and {more} more (--json lists all)"),
    };
    Some(Finding::warn(
        FindingCode::Unreadable,
        format!(
            "{} in {} extents cannot be read. As byte offset and length: {}{more}. What lies there \
             is lost unless a copy of it is elsewhere.",
            one.unreadable.total(),
            one.unreadable.count(),
            extents.join(", ")
        ),
    ))
}

/// Advice for a volume that was not read to the end; `None` for one that was.
pub(crate) fn incomplete_advice(one: &WarmResult) -> Option<String> {
    let device = &one.device;
    let on = one.resumes.hint();
    match &one.ending {
        WarmingEnd::Done => None,
        WarmingEnd::Interrupted => Some(format!(
            "{device}: interrupted with {} left to read. {on}",
            one.left
        )),
        WarmingEnd::Gone => Some(format!(
            "{device}: the device went away with {} left to read. Attach it again. {on}",
            one.left
        )),
        WarmingEnd::Failed(why) => Some(format!(
            "{device}: {why}. {} are left to read. {on}",
            one.left
        )),
    }
}

/// The results as one JSON document, with a newline at the end.
pub(crate) fn document(warmed: &[WarmResult], shared: &[Finding]) -> String {
    let document = Document {
        volumes: warmed.iter().map(VolumeDocument::of).collect(),
        findings: shared.iter().map(FindingDocument::of).collect(),
    };
    ui::json::document("warm", &document)
}

/// The document of `warm --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Result of each volume.
    volumes: Vec<VolumeDocument<'a>>,
    /// Findings about all volumes together.
    findings: Vec<FindingDocument>,
}

/// Result of a volume.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct VolumeDocument<'a> {
    /// Path of the device, as it was named.
    device: &'a str,
    /// Identity by which the ledger knows the volume.
    key: &'a str,
    /// Size of the volume.
    size_bytes: Bytes,
    /// Size of the blocks that are fetched as one.
    block_bytes: Bytes,
    /// Sets of bytes that were to be read, in their order.
    sets: Vec<SetDocument>,
    /// Bytes that earlier starts read.
    before_bytes: Bytes,
    /// Bytes that this start read.
    read_bytes: Bytes,
    /// Bytes that are still to be read.
    left_bytes: Bytes,
    /// Bytes that stay cold by choice.
    left_out_bytes: Bytes,
    /// Duration of this start, in seconds.
    seconds: f64,
    /// Mean rate of this start, in bytes a second; null where nothing was read.
    bytes_per_s: Option<f64>,
    /// Share of the bytes read that was cold, from 0 to 1; null where that is not known.
    cold_share: Option<f64>,
    /// Share of other programs in the bytes that went through the disk meanwhile, from 0 to 1; null where that is
    /// not counted.
    others_share: Option<f64>,
    /// Latency of the foreground without and beside the warming; null where there was none.
    foreground: Option<reader::ForegroundReport>,
    /// Time in seconds for which demand exceeded what EBS grants; null where the device has no EBS statistics.
    exceeded_s: Option<ExceededDocument>,
    /// Number of requests in flight that was found best; null where it was not found.
    in_flight: Option<usize>,
    /// Rate in bytes a second that more requests in flight do not raise; null where it was not found.
    plateau_bytes_per_s: Option<f64>,
    /// Extents that could not be read.
    unreadable: Vec<ExtentDocument>,
    /// End of the warming: `done`, `interrupted`, `gone` or `failed`.
    ended: &'static str,
    /// True if the same command continues from here.
    resumable: bool,
    /// Findings about the volume.
    findings: Vec<FindingDocument>,
}

/// A set of bytes that was read.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SetDocument {
    /// `first` for the data that `--first` names, `used` for other space that file systems use, `rest` for the
    /// other bytes.
    set: &'static str,
    /// Bytes of the set.
    bytes: Bytes,
}

/// Time in seconds for which demand exceeded what EBS grants, by EBS's own statistics.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ExceededDocument {
    /// The volume's IOPS.
    volume_iops: f64,
    /// The volume's throughput.
    volume_bytes: f64,
    /// The instance's IOPS to its volumes.
    instance_iops: f64,
    /// The instance's throughput to its volumes.
    instance_bytes: f64,
}

/// A contiguous range of bytes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ExtentDocument {
    /// Offset of its first byte.
    offset_bytes: u64,
    /// Length in bytes.
    length_bytes: u64,
}

/// A finding, by its code and in sentences.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FindingDocument {
    /// Code of the finding, which stays the same over versions.
    code: &'static str,
    /// Severity of the finding.
    severity: Severity,
    /// Sentences for people.
    text: String,
}

impl FindingDocument {
    fn of(finding: &Finding) -> FindingDocument {
        FindingDocument {
            code: finding.code.name(),
            severity: finding.severity,
            text: finding.text.clone(),
        }
    }
}

impl<'a> VolumeDocument<'a> {
    fn of(one: &'a WarmResult) -> VolumeDocument<'a> {
        let sets = one.sets.iter().map(|(stage, bytes)| SetDocument {
            set: stage.name(),
            bytes: *bytes,
        });
        let extents = one.unreadable.iter().map(|range| ExtentDocument {
            offset_bytes: range.start,
            length_bytes: range.end - range.start,
        });
        let unreadable = unreadable(one);
        let findings = one.findings.iter().chain(&unreadable);
        VolumeDocument {
            device: &one.device,
            key: &one.key,
            size_bytes: one.size,
            block_bytes: one.block,
            sets: sets.collect(),
            before_bytes: one.before,
            read_bytes: one.read,
            left_bytes: one.left,
            left_out_bytes: one.left_out,
            seconds: one.seconds,
            bytes_per_s: one.rate(),
            cold_share: one.cold,
            others_share: one.others_share,
            foreground: one.foreground.clone(),
            exceeded_s: one.exceeded.map(|exceeded| ExceededDocument {
                volume_iops: exceeded.volume_iops.as_secs_f64(),
                volume_bytes: exceeded.volume_bytes.as_secs_f64(),
                instance_iops: exceeded.instance_iops.as_secs_f64(),
                instance_bytes: exceeded.instance_bytes.as_secs_f64(),
            }),
            in_flight: one.verdict.map(|verdict| verdict.depth),
            plateau_bytes_per_s: one.verdict.map(|verdict| verdict.bytes_per_s),
            unreadable: extents.collect(),
            ended: ending_label(&one.ending),
            resumable: one.resumes.continues(),
            findings: findings.map(FindingDocument::of).collect(),
        }
    }
}

fn ending_label(ending: &WarmingEnd) -> &'static str {
    match ending {
        WarmingEnd::Done => "done",
        WarmingEnd::Interrupted => "interrupted",
        WarmingEnd::Gone => "gone",
        WarmingEnd::Failed(_) => "failed",
    }
}
