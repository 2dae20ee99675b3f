//! An imported run as plain text.

use record::ImportedRun;

use super::rows;
use crate::judged::ImportConclusion;
use crate::views::text::finding_text;
use ui::table::{Column, layout, wrap};

const COLUMNS: [Column; 11] = [
    Column::text("phase"),
    Column::text(""),
    Column::numbers("IOPS", 0),
    Column::numbers("95 %", 0),
    Column::numbers("MiB/s", 2),
    Column::numbers("p50", 1),
    Column::numbers("p95", 4),
    Column::numbers("p99", 0),
    Column::numbers("p99.9", 3),
    Column::numbers("max", 5),
    Column::numbers("s", 7),
];

/// The whole output of `show`.
pub(crate) fn run(run: &ImportedRun, judged: &ImportConclusion, columns: usize) -> String {
    let mut last = "";
    let rows = rows(run);
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let first = last != row.phase;
            last = &row.phase;
            let mut cells = vec![
                if first {
                    row.phase.clone()
                } else {
                    String::new()
                },
                row.what.to_owned(),
                row.iops.clone(),
                "?".to_owned(),
                row.mib.clone(),
            ];
            cells.extend(row.latencies.iter().cloned());
            cells.push(row.seconds.clone());
            cells
        })
        .collect();
    let mut text = wrap(&header(run), columns, "  ");
    text.push_str("\n\n");
    text.push_str(&layout(&COLUMNS, &cells, columns));
    let legend = "95 %: unknown for an imported run. –: not reported by the tool. +++++: too fast \
                  for the tool to give a rate.";
    text.push_str(&wrap(legend, columns, ""));
    text.push_str("\n\n");
    for finding in &judged.findings {
        text.push_str(&finding_text(finding, columns));
    }
    let verdict = format!(
        "Verdict: {}: these are another tool's figures. Kept as run {}.",
        judged.verdict, run.id
    );
    text.push_str(&wrap(&verdict, columns, ""));
    text.push('\n');
    text
}

/// Source and target of the figures.
fn header(run: &ImportedRun) -> String {
    let summary = &run.summary;
    let mut parts = vec![match &summary.target {
        Some(target) => format!("{target}, measured by {}", summary.tool),
        None => format!("Measured by {}", summary.tool),
    }];
    parts.extend(summary.host.as_ref().map(|host| format!("at {host}")));
    let day = |ran: jiff::Timestamp| format!("on {}", ran.strftime("%Y-%m-%d"));
    parts.extend(summary.ran.map(day));
    parts.push(format!("imported from {}", run.source));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::imported::sample;

    #[test]
    fn what_is_not_known_is_a_dash_and_never_a_zero() {
        let sample = sample::bonnie();
        let text = run(&sample, &ImportConclusion::of(&sample), 100);
        assert!(
            text.contains("Measured by bonnie++ 1.97, at db-1"),
            "{text}"
        );
        let line = |name: &str| {
            let mut lines = text.lines();
            lines.find(|line| line.starts_with(name)).unwrap()
        };
        let words = |name: &str| line(name).split_whitespace().collect::<Vec<_>>();
        assert_eq!(
            words("block-write"),
            [
                "block-write",
                "write",
                "–",
                "?",
                "59.6",
                "–",
                "–",
                "–",
                "–",
                "9.12",
                "s",
                "–"
            ]
        );
        assert_eq!(words("seq-stat")[2], "+++++");
        assert!(text.contains("warning: imported: "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100));
    }

    #[test]
    fn a_narrow_terminal_keeps_what_matters() {
        let sample = sample::fio();
        let text = run(&sample, &ImportConclusion::of(&sample), 60);
        assert!(
            text.lines().all(|line| line.chars().count() <= 60),
            "{text}"
        );
        assert!(text.contains("IOPS") && text.contains("p99"), "{text}");
    }
}
