//! A run as plain text: one table, then the findings in sentences, then the verdict.

use std::fmt::Write as _;

use record::{Direction, Finding, Flow, Histogram, Phase, Run, Severity, StopReason, Verdict};

use super::answer;
use crate::conclusion::Conclusion;
use crate::figures::FlowFigures;
use ui::format::{clock, engine, latency, number};
use ui::table::{Column, layout, wrap};

/// The column that is explained below the table if there is room.
const DISK_IOPS: &str = "disk IOPS";

const COLUMNS: [Column; 12] = [
    Column::text("phase"),
    Column::text(""),
    Column::numbers("IOPS", 0),
    Column::numbers("95 %", 0),
    Column::numbers("MiB/s", 2),
    Column::numbers("p50", 1),
    Column::numbers("p99", 0),
    Column::numbers("p99.9", 3),
    Column::numbers("max", 4),
    Column::numbers(DISK_IOPS, 5),
    Column::numbers("KiB", 6),
    Column::numbers("s", 7),
];

/// The whole output of `bench` and `show`.
pub(crate) fn run(run: &Run, conclusion: &Conclusion, columns: usize, kept: bool) -> String {
    let mut text = header(run, columns);
    text.push('\n');
    let answer = conclusion.answer.as_ref();
    let table = match answer::replaces_table(answer) {
        true => String::new(),
        false => layout(&COLUMNS, &rows(run, conclusion), columns),
    };
    text.push_str(&table);
    if let Some(answer) = answer {
        if !table.is_empty() {
            text.push('\n');
        }
        text.push_str(&answer::text(answer, columns));
    }
    text.push_str(&legend(run, columns, table.contains(DISK_IOPS)));
    text.push('\n');
    for note in &run.notes {
        let _ = writeln!(text, "{}", wrap(note, columns, ""));
    }
    for finding in &conclusion.findings {
        text.push_str(&finding_text(finding, columns));
    }
    let _ = writeln!(
        text,
        "{}",
        wrap(&verdict(run, conclusion, kept), columns, "")
    );
    text
}

fn header(run: &Run, columns: usize) -> String {
    let target = &run.target;
    let mut parts = vec![format!("{} ({})", target.path, target.size)];
    if let Some(device) = &target.device {
        let model = target.model.as_deref().map(|model| format!(", {model}"));
        parts.push(format!("on {device}{}", model.unwrap_or_default()));
    }
    if target.disks.len() > 1 {
        parts.push(format!("over {}", target.disks.join(", ")));
    }
    let machine = &run.machine;
    if let Some(filesystem) = &machine.filesystem {
        parts.push(filesystem.kind.clone());
    }
    parts.push(format!("at {}", machine.hostname));
    if let Some(cloud) = &machine.cloud {
        let known = [&cloud.instance_type, &cloud.zone];
        parts.extend(known.into_iter().flatten().cloned());
    }
    let mut text = wrap(&parts.join(", "), columns, "  ");
    text.push('\n');
    text
}

fn rows(run: &Run, conclusion: &Conclusion) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (phase, figures) in run.phases.iter().zip(&conclusion.phases) {
        let device = device(phase);
        for (index, figures) in figures.flows.iter().enumerate() {
            let Some(flow) = phase.flow(figures.direction) else {
                continue;
            };
            let first = index == 0;
            let mut row = vec![if first {
                phase.name.clone()
            } else {
                String::new()
            }];
            row.extend(flow_cells(phase, flow, figures));
            // The device's counts are of the whole phase, and are shown in its first row.
            if first {
                row.extend([device.0.clone(), device.1.clone(), number(phase.seconds)]);
            }
            rows.push(row);
            rows.extend(flow.service.as_ref().map(service_row));
        }
    }
    rows
}

/// Row of an open loop with the latencies from submission, below those from the due times.
fn service_row(service: &Histogram) -> Vec<String> {
    let mut row = vec![String::new(), "service".to_owned()];
    row.extend([String::new(), String::new(), String::new()]);
    row.extend(latencies(service));
    row
}

fn latencies(latencies: &Histogram) -> [String; 4] {
    [
        latency(latencies.quantile(0.50)),
        latency(latencies.quantile(0.99)),
        latency(latencies.quantile(0.999)),
        latency(latencies.max()),
    ]
}

fn flow_cells(phase: &Phase, flow: &Flow, figures: &FlowFigures) -> [String; 8] {
    let once = figures.direction == Direction::Sync && phase.workload.sync_every == 0;
    let rate = |text: String| if once { String::new() } else { text };
    let moves = !matches!(figures.direction, Direction::Sync | Direction::Commit)
        && !phase.workload.is_metadata_work();
    let mib = number(figures.bytes_per_s.mean / (1 << 20) as f64);
    let [p50, p99, p999, max] = latencies(&flow.latency);
    [
        phase.workload.activity(figures.direction).name().to_owned(),
        rate(number(figures.iops.mean)),
        rate(figures.iops.width(number).unwrap_or("?".to_owned())),
        if moves { mib } else { String::new() },
        p50,
        p99,
        p999,
        max,
    ]
}

/// The device's own IOPS and mean request size in KiB, by the kernel's count.
fn device(phase: &Phase) -> (String, String) {
    let Some((counts, seconds)) = crate::figures::device_totals(phase) else {
        return (String::new(), String::new());
    };
    let ops = (counts.reads + counts.writes) as f64;
    let bytes = (counts.read_bytes + counts.write_bytes) as f64;
    let size = if ops > 0.0 {
        number(bytes / ops / 1024.0)
    } else {
        "–".to_owned()
    };
    (number(ops / seconds), size)
}

fn legend(run: &Run, columns: usize, disks: bool) -> String {
    let mut parts = vec![
        "95 %: half the width of the 95 % interval of the IOPS, or its bounds where it is wide.",
    ];
    if disks {
        parts.push("disk IOPS, KiB: the kernel's own count and mean request size.");
    }
    if run
        .phases
        .iter()
        .any(|phase| phase.workload.rate_per_s.is_some())
    {
        parts.push("Latencies count from when a request was due; service: from submission.");
    }
    let mut text = wrap(&parts.join(" "), columns, "");
    text.push('\n');
    for line in engines(run) {
        let _ = writeln!(text, "{}", wrap(&line, columns, "  "));
    }
    text
}

/// I/O interfaces of the phases, one line each.
fn engines(run: &Run) -> Vec<String> {
    let mut ways: Vec<(String, Vec<&str>)> = Vec::new();
    for phase in &run.phases {
        let used = &phase.engine;
        let mut way = format!("{}, {}", engine(used.kind), clock(used.clock));
        if !used.detail.is_empty() {
            let _ = write!(way, "; {}", used.detail);
        }
        match ways.iter_mut().find(|(known, _)| *known == way) {
            Some((_, phases)) => phases.push(&phase.name),
            None => ways.push((way, vec![&phase.name])),
        }
    }
    let all = ways.len() == 1;
    ways.into_iter()
        .map(|(way, phases)| {
            if all {
                format!("I/O through {way}.")
            } else {
                format!("{}: through {way}.", phases.join(", "))
            }
        })
        .collect()
}

/// A finding as a sentence, preceded by its severity.
pub(super) fn finding_text(finding: &Finding, columns: usize) -> String {
    let sign = match finding.severity {
        Severity::Invalid => "invalid",
        Severity::Warn => "warning",
        Severity::Note => "note",
    };
    let phase = finding.phase.as_ref().map(|phase| format!(", {phase}"));
    let text = format!(
        "{sign}: {}{}: {}",
        finding.code,
        phase.unwrap_or_default(),
        finding.text
    );
    format!("{}\n", wrap(&text, columns, "  "))
}

fn verdict(run: &Run, conclusion: &Conclusion, kept: bool) -> String {
    let what = match conclusion.verdict {
        Verdict::Trusted => "nothing speaks against these figures.",
        Verdict::Doubtful => "read the warnings before you rely on these figures.",
        Verdict::Invalid => "these figures do not mean what they seem to mean.",
    };
    let cut = run
        .phases
        .iter()
        .any(|phase| phase.stopped == StopReason::Signal);
    let partial = if run.interrupted || cut {
        " The run was interrupted: it is partial."
    } else {
        ""
    };
    let kept = if kept {
        format!(" Kept as run {}.", run.id)
    } else {
        String::new()
    };
    format!("Verdict: {}: {what}{partial}{kept}", conclusion.verdict)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::views::sample;

    #[test]
    fn the_answer_fits_its_columns() {
        let (sample, conclusion) = sample::database_run(1);
        for columns in [100, 60, 40] {
            let text = run(&sample, &conclusion, columns, true);
            for line in text.lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
            assert_snapshot!(format!("run-{columns}"), text);
        }
    }

    #[test]
    fn a_partial_run_is_marked() {
        let (sample, conclusion) = sample::interrupted_run(1);
        let text = run(&sample, &conclusion, 100, false);
        assert!(text.contains("partial"), "{text}");
    }

    #[test]
    fn an_imported_run_has_no_interval() {
        let (sample, conclusion) = sample::imported_run(1);
        let text = run(&sample, &conclusion, 100, false);
        assert!(text.contains('?'), "{text}");
    }
}
