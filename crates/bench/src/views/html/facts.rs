//! The machine, the device and the program: one row for each fact, one column for each run.

use record::{Origin, Run};

use super::names::Subject;
use ui::format;

/// A fact, with its value for each run.
pub(super) struct FactRow {
    pub(super) name: &'static str,
    /// A value for each run, or a single one where all runs agree.
    pub(super) values: Vec<String>,
}

impl FactRow {
    /// Number of columns that each value takes.
    pub(super) fn span(&self, runs: usize) -> usize {
        if self.values.len() == 1 { runs } else { 1 }
    }

    /// True if the runs disagree.
    pub(super) fn differs(&self) -> bool {
        self.values.len() > 1
    }
}

/// The table of all facts.
pub(super) struct FactTable {
    /// Short id and colour of each run.
    pub(super) runs: Vec<(String, usize)>,
    pub(super) rows: Vec<FactRow>,
}

pub(super) fn table(subjects: &[Subject<'_>]) -> FactTable {
    let columns: Vec<_> = subjects.iter().map(|subject| facts(subject.run)).collect();
    let rows = columns.first().map_or_else(Vec::new, |first| {
        (0..first.len())
            .filter_map(|i| row(columns.iter().map(|column| &column[i])))
            .collect()
    });
    FactTable {
        runs: subjects
            .iter()
            .map(|subject| {
                let colour = page::charts::colour_index(subject.slot);
                (subject.short.clone(), colour)
            })
            .collect(),
        rows,
    }
}

/// A row; `None` if the fact is unknown for all runs.
fn row<'a>(facts: impl Iterator<Item = &'a (&'static str, Option<String>)>) -> Option<FactRow> {
    let facts: Vec<_> = facts.collect();
    let (name, first) = facts.first()?;
    if facts.iter().all(|(_, value)| value.is_none()) {
        return None;
    }
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let values = if facts.iter().all(|(_, value)| value == first) {
        vec![shown(first)]
    } else {
        facts.iter().map(|(_, value)| shown(value)).collect()
    };
    Some(FactRow { name, values })
}

/// The facts of a run, always the same in the same order.
fn facts(run: &Run) -> Vec<(&'static str, Option<String>)> {
    let (machine, target) = (&run.machine, &run.target);
    let cloud = machine.cloud.as_ref();
    let filesystem = machine.filesystem.as_ref();
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    vec![
        ("Target", text(&target.path)),
        ("Kind", text(format::target_kind(target.kind))),
        ("Size used", Some(target.size.to_string())),
        ("Device", target.device.clone()),
        ("Disks below", text(&target.disks.join(", "))),
        ("Device model", target.model.clone()),
        ("Serial or volume", target.serial.clone()),
        ("Direct I/O", Some(yes_or_no(target.direct))),
        ("Kept in memory", target.in_memory.then(|| yes_or_no(true))),
        (
            "Unwritten share",
            target.unwritten_fraction.map(format::percent),
        ),
        ("File system", filesystem.map(|fs| fs.kind.clone())),
        ("Mounted at", filesystem.map(|fs| fs.mount_point.clone())),
        ("Mount options", filesystem.map(|fs| fs.options.clone())),
        ("I/O scheduler", machine.scheduler.clone()),
        (
            "Read-ahead",
            machine.read_ahead.map(|bytes| bytes.to_string()),
        ),
        ("Rotational", machine.rotational.map(yes_or_no)),
        ("Write cache", machine.write_cache.clone()),
        ("Host", text(&machine.hostname)),
        ("Cloud", cloud.map(|cloud| cloud.provider.clone())),
        (
            "Instance type",
            cloud.and_then(|cloud| cloud.instance_type.clone()),
        ),
        ("Zone", cloud.and_then(|cloud| cloud.zone.clone())),
        (
            "Instance",
            cloud.and_then(|cloud| cloud.instance_id.clone()),
        ),
        ("CPU", text(&machine.cpu)),
        ("Cores", Some(machine.cores.to_string())),
        ("Memory", Some(machine.memory.to_string())),
        (
            "Memory limit",
            machine.memory_limit.map(|bytes| bytes.to_string()),
        ),
        ("Kernel", text(&machine.kernel)),
        ("Architecture", text(&machine.arch)),
        ("Engine", engines(run)),
        ("Measured by", Some(measured_by(run))),
        ("Command", text(&command_line(&run.command))),
    ]
}

fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// The engines and clocks that the run's phases used, each once.
fn engines(run: &Run) -> Option<String> {
    let mut engines: Vec<String> = Vec::new();
    for phase in &run.phases {
        let used = &phase.engine;
        let mut text = format!(
            "{}, {}",
            format::engine(used.kind),
            format::clock(used.clock)
        );
        if !used.detail.is_empty() {
            text = format!("{text} ({})", used.detail);
        }
        if !engines.contains(&text) {
            engines.push(text);
        }
    }
    (!engines.is_empty()).then(|| engines.join("; "))
}

fn measured_by(run: &Run) -> String {
    match &run.origin {
        Origin::Measured => format!("disksmith {}", run.disksmith),
        Origin::Imported { tool } => format!("{tool}, imported by disksmith {}", run.disksmith),
    }
}

/// A command line, quoted for a shell.
pub fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./:,+@%".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::html::names::subjects;
    use crate::views::sample;

    #[test]
    fn facts_that_runs_agree_on_are_shown_once_and_unknown_ones_are_left_out() {
        let mut runs = [sample::database_run(1), sample::database_run(2)];
        runs[1].0.machine.scheduler = Some("mq-deadline".to_owned());
        let table = table(&subjects(&runs));
        let row = |name| table.rows.iter().find(|row| row.name == name);
        assert_eq!(row("Kernel").unwrap().values, ["6.1.0-28-cloud-amd64"]);
        assert_eq!(
            row("I/O scheduler").unwrap().values,
            ["none", "mq-deadline"]
        );
        assert!(row("Memory limit").is_none());
    }

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let words = ["disksmith", "bench", "/srv/my data", "it's"].map(String::from);
        assert_eq!(
            command_line(&words),
            r"disksmith bench '/srv/my data' 'it'\''s'"
        );
    }
}
