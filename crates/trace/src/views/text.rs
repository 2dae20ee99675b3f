//! The answer of `trace show` as text.

use record::Bytes;
use ui::format::{date, latency, number, seconds, verdict_sign};
use ui::table::{Column, layout, wrap};
use ui::units::rate;

use super::{GroupShown, LatencyShown, TraceDocument};

const NOT_RECORDED: &str = "not recorded";

/// Titles of the columns after the name.
pub(crate) const COLUMNS: [&str; 7] = ["I/Os", "bytes", "mean", "p50", "p99", "p99.9", "max"];
/// Ranks of the columns: in a narrow terminal, columns with a higher rank are dropped first.
const RANKS: [u8; 7] = [1, 5, 6, 3, 2, 4, 3];

/// The answer as text.
pub(crate) fn text(shown: &TraceDocument, width: usize) -> String {
    let mut out = String::new();
    line(&mut out, width, &title(shown));
    for (name, value) in facts(shown) {
        fact(&mut out, width, name, &value);
    }
    groups(&mut out, "class", &shown.classes, width);
    if let Some(rows) = device_rows(shown) {
        table(&mut out, "device", rows, width);
    }
    for (name, named) in [("process", &shown.processes), ("file", &shown.files)] {
        match named {
            Some(named) => groups(&mut out, name, named, width),
            None => line(&mut out, width, &format!("\nby {name}: {NOT_RECORDED}")),
        }
    }
    let verdict = format!("{} {:?}", verdict_sign(shown.verdict), shown.verdict).to_lowercase();
    line(&mut out, width, &format!("\n{verdict}"));
    for finding in &shown.findings {
        line(
            &mut out,
            width,
            &format!("  {}: {}", finding.code, finding.text),
        );
    }
    out
}

fn line(out: &mut String, width: usize, text: &str) {
    out.push_str(&wrap(text, width, "      "));
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// Writes a name and its value.
fn fact(out: &mut String, width: usize, name: &str, value: &str) {
    let name = format!("  {name:<13}");
    let indent = " ".repeat(name.len());
    let lines = wrap(&format!("{indent}{value}"), width, &indent);
    out.push_str(&name);
    out.push_str(lines.trim_start());
    out.push('\n');
}

/// The trace in one line.
pub(crate) fn title(shown: &TraceDocument) -> String {
    let started = shown
        .started
        .map_or(String::new(), |started| format!(", {}", date(started)));
    format!(
        "{}: {}, {}{started}, {}",
        shown.file,
        shown.format,
        ui::format::count(shown.ios as usize, "I/O"),
        seconds(shown.seconds)
    )
}

/// Figures of a trace, with their names.
pub(crate) fn facts(shown: &TraceDocument) -> Vec<(&'static str, String)> {
    let bytes = |value: u64| Bytes(value).to_string();
    // A count, unlike a rate, has no decimals.
    let counted = |count: u64| number(count as f64).trim_end_matches(".0").to_owned();
    let count = |count: u64, what| ui::format::count(count as usize, what);
    let flushes = match shown.flushes_recorded {
        true => counted(shown.flushes),
        false => NOT_RECORDED.to_owned(),
    };
    let about = if shown.distinct_is_estimated {
        "about "
    } else {
        ""
    };
    let skew = shown.skew.iter().map(|skew| {
        format!(
            "{:.0} % to the hottest {:.0} %",
            skew.accesses_percent, skew.hottest_percent
        )
    });
    let sizes = shown.sizes.iter().take(6).map(|size| {
        let share = 100.0 * size.ios as f64 / (shown.reads + shown.writes).max(1) as f64;
        format!("{share:.0} % {}s of {}", size.op, Bytes(size.bytes))
    });
    let mut facts = vec![
        (
            "rate",
            format!(
                "{} IOPS, {}{}",
                number(shown.iops),
                rate(shown.bytes_per_s),
                peak(shown)
            ),
        ),
        (
            "mix",
            format!(
                "{} ({}), {} ({}), of these {} FUA; flushes: {flushes}; discards: {} ({})",
                count(shown.reads, "read"),
                bytes(shown.read_bytes),
                count(shown.writes, "write"),
                bytes(shown.write_bytes),
                counted(shown.fua_writes),
                counted(shown.discards),
                bytes(shown.discard_bytes),
            ),
        ),
        ("sizes", sizes.collect::<Vec<_>>().join(", ")),
        ("sequential", format!("{:.1} %", shown.sequential_percent)),
        (
            "queue depth",
            shown
                .queue_depth
                .as_ref()
                .map_or(NOT_RECORDED.to_owned(), |depth| {
                    format!("{:.2} in the mean, at most {}", depth.mean, depth.max)
                }),
        ),
        (
            "working set",
            format!(
                "{about}{}{}",
                bytes(shown.distinct_bytes),
                growth_text(shown)
            ),
        ),
        ("skew", skew.collect::<Vec<_>>().join(", ")),
        (
            "scheduler",
            shown.queued.map_or(NOT_RECORDED.to_owned(), |queued| {
                format!(
                    "{} before the issue in the mean, p99 {}",
                    micros(queued.mean_us),
                    micros(queued.p99_us)
                )
            }),
        ),
    ];
    // Otherwise each class shows its latency.
    if shown.classes.iter().all(|class| class.latency.is_none()) {
        facts.push(("latency", NOT_RECORDED.to_owned()));
    }
    // Without reads and writes there are neither sizes nor offsets.
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// The highest rate in a slice of time; empty if the trace is shorter than a slice.
fn peak(shown: &TraceDocument) -> String {
    if shown.seconds < shown.peak_seconds {
        return String::new();
    }
    let width = seconds(shown.peak_seconds);
    format!("; most in {width}: {} IOPS", number(shown.peak_iops))
}

/// Growth of the working set in the second half.
fn growth_text(shown: &TraceDocument) -> String {
    let half = shown
        .growth
        .iter()
        .find(|point| point.seconds >= shown.seconds / 2.0);
    half.map_or(String::new(), |half| {
        let share = 100.0 * half.distinct_bytes as f64 / shown.distinct_bytes.max(1) as f64;
        format!(", {share:.0} % of it in the first half")
    })
}

fn micros(value: f64) -> String {
    latency((value * 1e3) as u64)
}

fn groups(out: &mut String, name: &str, groups: &[GroupShown], width: usize) {
    table(out, name, groups.iter().map(row).collect(), width);
}

fn table(out: &mut String, name: &str, rows: Vec<Vec<String>>, width: usize) {
    if rows.is_empty() {
        return;
    }
    let mut columns = vec![Column::text(name)];
    let others = COLUMNS.iter().zip(RANKS);
    columns.extend(others.map(|(title, rank)| Column::numbers(title, rank)));
    out.push('\n');
    out.push_str(&layout(&columns, &rows, width));
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// Rows of the devices; `None` unless several have I/Os.
pub(crate) fn device_rows(shown: &TraceDocument) -> Option<Vec<Vec<String>>> {
    let groups = || shown.devices.iter().map(|device| &device.group);
    let with_ios = groups().filter(|group| group.ios > 0);
    (with_ios.count() > 1).then(|| groups().map(row).collect())
}

/// Cells of a group: its name, then those of [`COLUMNS`].
pub(crate) fn row(group: &GroupShown) -> Vec<String> {
    let figure = |of: fn(&LatencyShown) -> f64| {
        group
            .latency
            .as_ref()
            .map_or("-".to_owned(), |latency| micros(of(latency)))
    };
    vec![
        group.name.clone(),
        number(group.ios as f64).trim_end_matches(".0").to_owned(),
        Bytes(group.bytes).to_string(),
        figure(|latency| latency.mean_us),
        figure(|latency| latency.p50_us),
        figure(|latency| latency.p99_us),
        figure(|latency| latency.p999_us),
        figure(|latency| latency.max_us),
    ]
}
