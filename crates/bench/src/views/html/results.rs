//! The table of results: a row for each direction of each phase, the runs below one another.

use record::{Bytes, Direction, Histogram, Phase};

use super::groups::{Group, Member};
use super::header::FindingLine;
use crate::figures::Estimate;
use crate::figures::device_totals;
use page::charts::colour_index;
use ui::format;

/// Below the first row of a group its cell is not repeated.
#[derive(Default)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) span: usize,
}

/// One direction of one run's phase.
pub(super) struct Row {
    /// The direction, in the first row that is about it.
    pub(super) direction: Option<Cell>,
    pub(super) short: String,
    pub(super) colour: usize,
    pub(super) iops: String,
    pub(super) interval: String,
    pub(super) megabytes: String,
    /// p50, p99, p99.9 and the maximum.
    pub(super) latency: [String; 4],
    /// The kernel's counts: operations a second and their average size.
    pub(super) kernel: String,
    pub(super) stopped: &'static str,
}

/// A finding in short, beside the phase that it is about.
pub(super) struct Mark {
    pub(super) finding: FindingLine,
    /// The runs that it is about, where it is not about all of them.
    pub(super) of: String,
}

/// One phase's rows.
pub(super) struct PhaseRows {
    pub(super) name: String,
    pub(super) anchor: String,
    pub(super) marks: Vec<Mark>,
    pub(super) rows: Vec<Row>,
}

/// The whole table.
pub(super) struct Table {
    /// True if there are several runs, so that each row has to name its own.
    pub(super) several: bool,
    /// True if the kernel's counts are known of any phase.
    pub(super) kernel: bool,
    pub(super) phases: Vec<PhaseRows>,
}

pub(super) fn table(groups: &[Group<'_>], several: bool) -> Table {
    let phases: Vec<_> = groups.iter().map(phase_rows).collect();
    let kernel = |rows: &PhaseRows| rows.rows.iter().any(|row| !row.kernel.is_empty());
    Table {
        several,
        kernel: phases.iter().any(kernel),
        phases,
    }
}

fn phase_rows(group: &Group<'_>) -> PhaseRows {
    let mut rows = Vec::new();
    for direction in group.directions() {
        let first = group.members.first();
        let activity = first.map(|member| member.phase.workload.activity(direction));
        let word = activity.map_or(direction.word(), |activity| activity.word());
        add_rows(&mut rows, word, group, |member| row(member, direction));
        // In an open loop the latency counts from the scheduled time; how long the device itself
        // took stands below it.
        add_rows(
            &mut rows,
            &format!("{direction} service", direction = direction.word()),
            group,
            |member| {
                let service = member.phase.flow(direction)?.service.as_ref()?;
                Some(service_row(member, service))
            },
        );
    }
    PhaseRows {
        name: group.name.to_owned(),
        anchor: group.anchor.clone(),
        marks: marks(group),
        rows,
    }
}

/// The findings about the phase, each once.
fn marks(group: &Group<'_>) -> Vec<Mark> {
    let mut found: Vec<(FindingLine, Vec<&str>)> = Vec::new();
    for member in &group.members {
        for finding in member.findings() {
            let short = member.subject.short.as_str();
            match found
                .iter_mut()
                .find(|(known, _)| known.code == finding.code)
            {
                Some((_, runs)) if runs.contains(&short) => {}
                Some((_, runs)) => runs.push(short),
                None => found.push((finding, vec![short])),
            }
        }
    }
    let all = group.members.len();
    let of = |runs: Vec<&str>| {
        if runs.len() == all {
            String::new()
        } else {
            runs.join(", ")
        }
    };
    found
        .into_iter()
        .map(|(finding, runs)| Mark {
            finding,
            of: of(runs),
        })
        .collect()
}

/// Adds a row for each member that `row` knows something of, under one heading.
fn add_rows(
    rows: &mut Vec<Row>,
    heading: &str,
    group: &Group<'_>,
    row: impl Fn(&Member<'_>) -> Option<Row>,
) {
    let mut added: Vec<Row> = group.members.iter().filter_map(row).collect();
    let span = added.len();
    if let Some(first) = added.first_mut() {
        first.direction = Some(Cell {
            text: heading.to_owned(),
            span,
        });
    }
    rows.append(&mut added);
}

fn row(member: &Member<'_>, direction: Direction) -> Option<Row> {
    let flow = member.phase.flow(direction)?;
    let figures = member.flow(direction);
    // One sync at the end has no rate.
    let once = direction == Direction::Sync && member.phase.workload.sync_every == 0;
    let iops = figures.map(|figures| figures.iops).filter(|_| !once);
    Some(Row {
        iops: iops.map_or_else(dash, |iops| format::number(iops.mean)),
        interval: iops.map_or_else(String::new, interval),
        megabytes: match figures {
            Some(figures) if flow.bytes > 0 => {
                format::number(figures.bytes_per_s.mean / (1 << 20) as f64)
            }
            _ => dash(),
        },
        kernel: kernel(member.phase, direction),
        ..service_row(member, &flow.latency)
    })
}

/// A row that knows nothing but a latency.
fn service_row(member: &Member<'_>, latency: &Histogram) -> Row {
    let at = |quantile| {
        if latency.is_empty() {
            dash()
        } else {
            format::latency(latency.quantile(quantile))
        }
    };
    Row {
        direction: None,
        short: member.subject.short.clone(),
        colour: colour_index(member.subject.slot),
        iops: String::new(),
        interval: String::new(),
        megabytes: String::new(),
        latency: [at(0.5), at(0.99), at(0.999), at(1.0)],
        kernel: String::new(),
        stopped: format::stopped(member.phase.stopped),
    }
}

fn dash() -> String {
    "–".to_owned()
}

fn interval(estimate: Estimate) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{} – {}", format::number(low), format::number(high)),
        _ => "no interval".to_owned(),
    }
}

/// The kernel's counts on the device meanwhile, as "operations a second × average size". It counts what it
/// sent after splitting and merging, and it does not know of commits.
fn kernel(phase: &Phase, direction: Direction) -> String {
    let Some((total, seconds)) = device_totals(phase) else {
        return String::new();
    };
    let rate = |ops: u64| format::number(ops as f64 / seconds);
    let sized = |ops: u64, bytes: u64| {
        let size = Bytes(bytes.checked_div(ops).unwrap_or_default());
        format!("{} × {size}", rate(ops))
    };
    match direction {
        Direction::Read => sized(total.reads, total.read_bytes),
        Direction::Write => sized(total.writes, total.write_bytes),
        Direction::Sync => format!("{} flushes", rate(total.flushes)),
        Direction::Commit => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::html::groups::groups;
    use crate::views::html::names::subjects;
    use crate::views::sample;

    #[test]
    fn runs_stand_below_one_another_and_a_direction_is_named_once() {
        let runs = [sample::database_run(1), sample::database_run(2)];
        let subjects = subjects(&runs);
        let table = table(&groups(&subjects), true);
        let mixed = &table.phases[3];
        assert_eq!(mixed.name, "page-mixed");
        assert_eq!(mixed.rows.len(), 4);
        let headings: Vec<_> = mixed
            .rows
            .iter()
            .map(|row| row.direction.is_some())
            .collect();
        assert_eq!(headings, [true, false, true, false]);
        assert_eq!(mixed.marks.len(), 1, "one mark for what both runs show");
        assert_eq!(mixed.marks[0].of, "");
    }

    #[test]
    fn a_mark_says_whose_it_is_unless_all_runs_have_it() {
        let mut runs = [sample::database_run(1), sample::database_run(2)];
        runs[0].1.findings.clear();
        let subjects = subjects(&runs);
        let table = table(&groups(&subjects), true);
        assert_eq!(table.phases[3].marks[0].of, subjects[1].short);
    }

    #[test]
    fn the_kernel_counts_what_it_split() {
        let (run, _) = sample::database_run(1);
        let scan = &run.phases[5];
        let text = kernel(scan, Direction::Read);
        assert!(text.ends_with("× 256 KiB"), "{text}");
        assert_eq!(kernel(scan, Direction::Commit), "");
    }

    #[test]
    fn an_open_loop_has_its_service_time_below() {
        let mut runs = [sample::database_run(1)];
        if let Some(flow) = &mut runs[0].0.phases[1].read {
            flow.service = Some(flow.latency.scaled(0.5));
        }
        let subjects = subjects(&runs);
        let table = table(&groups(&subjects), false);
        let rows = &table.phases[1].rows;
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].direction.as_ref().unwrap().text, "read service");
    }
}
