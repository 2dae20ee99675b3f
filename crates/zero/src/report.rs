//! Answer of zeroing: a table with sentences, or one JSON document.

use record::Ranges;
use serde_json::{Value, json};
use study::compare::RatioInterval;
use study::interval::Interval;

use super::checkpoint::{Disk, Method};
use super::figures::{Finished, slow};
use domain::plan_binding::DiskIdentity;
use ui::json::SCHEMA;
use ui::table::{Column, layout, wrap};
use ui::{relative, words};

const MIB: f64 = 1_048_576.0;

const COLUMNS: [Column; 9] = [
    Column::words("disk"),
    Column::numbers("size", 0),
    Column::numbers("took", 2),
    Column::numbers("MiB/s", 0),
    Column::numbers("95 %", 1),
    Column::numbers("p99", 3),
    Column::numbers("max", 3),
    Column::numbers("first write", 1),
    Column::words("zeros"),
];

/// The table, and what is to be said.
pub(crate) fn text(disks: &[Finished], columns: usize) -> String {
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

/// All sentences: what is bad first.
fn notes(disks: &[Finished]) -> Vec<String> {
    let rates: Vec<Option<Interval>> = disks.iter().map(|one| one.disk.pace.interval()).collect();
    let slow = slow(&rates);
    let slow = slow.iter().map(|slow| slow.sentence(disks));
    let (bad, well): (Vec<_>, Vec<_>) = disks.iter().partition(|one| !one.is_well());
    let of = |some: Vec<&Finished>| -> Vec<String> {
        some.iter().flat_map(|one| one.sentences()).collect()
    };
    of(bad).into_iter().chain(slow).chain(of(well)).collect()
}

fn row(one: &Finished) -> Vec<String> {
    let disk = &one.disk;
    let pace = &disk.pace;
    let interval = pace.interval();
    let latency = |nanos: u64| match disk.latency.is_empty() {
        true => String::new(),
        false => words::latency(nanos),
    };
    vec![
        disk.path.display().to_string(),
        disk.size.to_string(),
        pace.took().to_string(),
        words::number(interval.map_or(pace.mean(), |rate| rate.mean) / MIB),
        interval.map_or_else(String::new, |rate| {
            let shown = |rate: f64| words::number(rate / MIB);
            let told = relative::interval(rate.mean, Some(rate.low), Some(rate.high), shown);
            told.unwrap_or_default()
        }),
        latency(disk.latency.quantile(0.99)),
        latency(disk.latency.max()),
        one.penalty().map_or_else(String::new, |times| {
            format!("×{:.2} ({:.2}–{:.2})", times.ratio, times.low, times.high)
        }),
        match (disk.failed.is_empty(), one.back.is_well()) {
            (true, true) => "all".to_owned(),
            (false, true) => format!("all but {}", disk.failed.total()),
            // What came back weighs more than what could not be written.
            (_, false) => "no".to_owned(),
        },
    ]
}

/// The JSON document, with a line's end behind it.
pub(crate) fn document(disks: &[Finished]) -> String {
    let rates: Vec<Option<Interval>> = disks.iter().map(|one| one.disk.pace.interval()).collect();
    let slow = slow(&rates);
    let values: Vec<Value> = disks
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let slow = slow.iter().find(|slow| slow.disk == at);
            value(one, slow.map(|slow| slow.ratio))
        })
        .collect();
    let document = json!({
        "schema": SCHEMA,
        "command": "zero",
        "disksmith": env!("CARGO_PKG_VERSION"),
        "well": disks.iter().all(Finished::is_well),
        "disks": values,
        "notes": notes(disks),
    });
    format!("{document:#}\n")
}

fn value(one: &Finished, slow: Option<RatioInterval>) -> Value {
    let (disk, back) = (&one.disk, &one.back);
    let interval = disk.pace.interval();
    let latency = (!disk.latency.is_empty()).then(|| {
        json!({
            "p50_ns": disk.latency.quantile(0.5),
            "p99_ns": disk.latency.quantile(0.99),
            "max_ns": disk.latency.max(),
        })
    });
    let found = json!({
        "seconds": disk.pace.took().as_secs_f64(),
        "bytes_per_s": {
            "mean": interval.map_or(disk.pace.mean(), |rate| rate.mean),
            "low": interval.map(|rate| rate.low),
            "high": interval.map(|rate| rate.high),
        },
        "latency": latency,
        "first_write": one.penalty().map(|penalty| json!({
            "places": disk.passes.as_ref().map(|passes| passes.places()),
            "ratio": ratio(&penalty),
        })),
        "slower_than_siblings": slow.as_ref().map(ratio),
        "not_written": places(&disk.failed),
        "why_not_written": disk.why_failed.as_ref().filter(|_| !disk.failed.is_empty()),
        "read_back": {
            "places": back.places,
            "not_zero": places(&back.not_zero),
            "unreadable": places(&back.unreadable),
        },
        "well": one.is_well(),
    });
    of_disk(disk, found)
}

/// Document of a disk, with its identity and its method.
fn of_disk(disk: &Disk, mut said: Value) -> Value {
    said["path"] = json!(disk.path);
    said["device"] = json!(disk.name);
    said["model"] = json!(disk.model);
    said["serial"] = json!(disk.serial);
    said["size_bytes"] = json!(disk.size);
    said["method"] = json!(disk.method.word());
    said["starts"] = json!(disk.starts);
    said
}

fn ratio(ratio: &RatioInterval) -> Value {
    json!({ "mean": ratio.ratio, "low": ratio.low, "high": ratio.high })
}

fn places(ranges: &Ranges) -> Vec<Value> {
    ranges
        .iter()
        .map(|range| json!({ "offset": range.start, "bytes": range.end - range.start }))
        .collect()
}

/// Rehearsal: for a person, or one JSON document, which also has the identity by which each disk is known
/// again when the plan is carried out.
pub(crate) fn rehearsal(
    disks: &[Disk],
    seen: &[DiskIdentity],
    content: &[Vec<String>],
    json: bool,
) -> String {
    if json {
        let disks: Vec<Value> = disks
            .iter()
            .zip(seen)
            .zip(content)
            .map(|((disk, seen), content)| {
                let left = disk.left().total();
                let said = json!({ "left_bytes": left, "content": content, "seen": seen });
                of_disk(disk, said)
            })
            .collect();
        let document = json!({
            "schema": SCHEMA,
            "command": "zero",
            "dry_run": true,
            "disks": disks,
        });
        return format!("{document:#}\n");
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
