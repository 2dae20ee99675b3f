//! Report of a warming at its end: as text, and as one JSON document.

use record::{Bytes, Severity};
use serde::Serialize;

use super::finding::{Finding, FindingCode};
use super::one::{WarmResult, WarmingEnd};
use ui::table::{Column, layout, wrap};
use ui::units::{rate, span};

/// So many extents are listed as text; JSON has all.
const MOST_LISTED: usize = 20;

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

/// The answer as text.
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
        .take(MOST_LISTED)
        .map(|range| format!("{}+{}", range.start, range.end - range.start))
        .collect();
    let more = match one.unreadable.count().saturating_sub(MOST_LISTED) {
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
pub(crate) fn midway(one: &WarmResult) -> Option<String> {
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

/// The answer as one JSON document, with a line's end behind it.
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
    volumes: Vec<VolumeDocument<'a>>,
    /// Findings about all volumes together.
    findings: Vec<FindingDocument>,
}

/// Result of a volume.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct VolumeDocument<'a> {
    device: &'a str,
    /// The identity by which the ledger knows it.
    key: &'a str,
    size_bytes: Bytes,
    /// Size of the blocks that are fetched as one.
    block_bytes: Bytes,
    sets: Vec<SetDocument>,
    /// Bytes that were read by earlier starts.
    before_bytes: Bytes,
    read_bytes: Bytes,
    left_bytes: Bytes,
    /// Bytes that stay cold by choice.
    left_out_bytes: Bytes,
    seconds: f64,
    bytes_per_s: Option<f64>,
    /// Share of what was read that was cold, from 0 to 1.
    cold_share: Option<f64>,
    /// Share of the disk's bytes that others moved.
    others_share: Option<f64>,
    foreground: Option<reader::ForegroundReport>,
    exceeded_s: Option<ExceededDocument>,
    /// Number of requests in flight that was found best.
    in_flight: Option<usize>,
    plateau_bytes_per_s: Option<f64>,
    unreadable: Vec<ExtentDocument>,
    ended: &'static str,
    resumable: bool,
    findings: Vec<FindingDocument>,
}

/// A set of bytes that was read.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SetDocument {
    set: &'static str,
    bytes: Bytes,
}

/// Time in seconds for which demand exceeded what EBS grants, by its own statistics.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ExceededDocument {
    volume_iops: f64,
    volume_bytes: f64,
    instance_iops: f64,
    instance_bytes: f64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ExtentDocument {
    offset_bytes: u64,
    length_bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FindingDocument {
    code: &'static str,
    severity: Severity,
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
            resumable: one.resumes.goes_on(),
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
