//! The table of results: a row for each direction of each phase, with the runs below one another.

use record::{Bytes, Direction, Histogram, Phase};

use super::groups::{Group, Member};
use super::header::FindingLine;
use crate::figures::Estimate;
use crate::figures::device_totals;
use page::charts::colour_index;
use study::compare::{RatioInterval, ratio};
use ui::format;

/// A cell that spans the rows of a group, and is not repeated below the first.
#[derive(Default)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) span: usize,
}

/// Row of one direction of a phase of one run.
pub(super) struct ResultRow {
    /// The direction, in the first of its rows.
    pub(super) direction: Option<Cell>,
    pub(super) short: String,
    pub(super) colour: usize,
    pub(super) iops: String,
    pub(super) interval: String,
    /// The rate divided by that of the first run, with its interval; empty for the first run, and for other work.
    pub(super) ratio: String,
    /// The ratio's CSS class: significantly better or worse.
    pub(super) shift: &'static str,
    pub(super) megabytes: String,
    /// p50, p99, p99.9 and the maximum.
    pub(super) latency: [String; 4],
    /// The kernel's counts: operations a second and their average size.
    pub(super) kernel: String,
    pub(super) stopped: &'static str,
}

/// A finding in short form, beside its phase.
pub(super) struct FindingMark {
    pub(super) finding: FindingLine,
    /// The runs with the finding, if not all have it.
    pub(super) of: String,
}

/// Rows of the table of results that belong to one phase.
pub(super) struct PhaseRows {
    pub(super) name: String,
    pub(super) anchor: String,
    pub(super) marks: Vec<FindingMark>,
    pub(super) rows: Vec<ResultRow>,
}

/// The whole table.
pub(super) struct ResultTable {
    /// True if there are several runs, so that each row names its run.
    pub(super) several: bool,
    /// The first run, which the others are compared with; empty if there is nothing to compare.
    pub(super) baseline: String,
    /// True if the kernel's counts are known for any phase.
    pub(super) kernel: bool,
    pub(super) phases: Vec<PhaseRows>,
}

pub(super) fn table(groups: &[Group<'_>], several: bool) -> ResultTable {
    let phases: Vec<_> = groups.iter().map(phase_rows).collect();
    let kernel = |rows: &PhaseRows| rows.rows.iter().any(|row| !row.kernel.is_empty());
    let compared = |rows: &PhaseRows| rows.rows.iter().any(|row| !row.ratio.is_empty());
    let baseline = phases
        .iter()
        .any(compared)
        .then(|| groups.iter().find_map(first_run));
    ResultTable {
        several,
        baseline: baseline.flatten().unwrap_or_default(),
        kernel: phases.iter().any(kernel),
        phases,
    }
}

/// Short id of the first run, if it is in a group.
fn first_run(group: &Group<'_>) -> Option<String> {
    let member = group
        .members
        .first()
        .filter(|member| member.subject.slot == 0)?;
    Some(member.subject.short.clone())
}

fn phase_rows(group: &Group<'_>) -> PhaseRows {
    let mut rows = Vec::new();
    for direction in group.directions() {
        let first = group.members.first();
        let activity = first.map(|member| member.phase.workload.activity(direction));
        let word = activity.map_or(direction.name(), |activity| activity.name());
        let base = first.filter(|member| member.subject.slot == 0);
        add_rows(&mut rows, word, group, |member| {
            row(member, base, direction)
        });
        // In an open loop the latency counts from the scheduled time; the service time of the device is in the row
        // below.
        add_rows(&mut rows, &format!("{word} service"), group, |member| {
            let service = member.phase.flow(direction)?.service.as_ref()?;
            Some(service_row(member, service))
        });
    }
    PhaseRows {
        name: group.name.to_owned(),
        anchor: group.anchor.clone(),
        marks: marks(group),
        rows,
    }
}

/// The findings about the phase, without duplicates.
fn marks(group: &Group<'_>) -> Vec<FindingMark> {
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
        .map(|(finding, runs)| FindingMark {
            finding,
            of: of(runs),
        })
        .collect()
}

/// Adds a row for each member for which `row` returns one, under one heading.
fn add_rows(
    rows: &mut Vec<ResultRow>,
    heading: &str,
    group: &Group<'_>,
    row: impl Fn(&Member<'_>) -> Option<ResultRow>,
) {
    let mut added: Vec<ResultRow> = group.members.iter().filter_map(row).collect();
    let span = added.len();
    if let Some(first) = added.first_mut() {
        first.direction = Some(Cell {
            text: heading.to_owned(),
            span,
        });
    }
    rows.append(&mut added);
}

fn row(member: &Member<'_>, base: Option<&Member<'_>>, direction: Direction) -> Option<ResultRow> {
    let flow = member.phase.flow(direction)?;
    let figures = member.flow(direction);
    // A single sync at the end has no rate.
    let once = direction == Direction::Sync && member.phase.workload.sync_every == 0;
    let iops = figures.map(|figures| figures.iops).filter(|_| !once);
    let relative = base
        .filter(|base| base.subject.slot != member.subject.slot && !once)
        .and_then(|base| relative(base, member, direction));
    Some(ResultRow {
        ratio: relative.map_or_else(String::new, |ratio| {
            format!("{:.3} ({:.3} – {:.3})", ratio.ratio, ratio.low, ratio.high)
        }),
        shift: match relative {
            Some(ratio) if ratio.high < 1.0 => "worse",
            Some(ratio) if ratio.low > 1.0 => "better",
            _ => "muted",
        },
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

/// The rate of a direction divided by that of the first run, if both did the same work.
fn relative(base: &Member<'_>, member: &Member<'_>, direction: Direction) -> Option<RatioInterval> {
    let work = |member: &Member<'_>| {
        let workload = &member.phase.workload;
        (
            workload.pattern,
            workload.read_fraction.to_bits(),
            workload.block,
            (workload.threads, workload.depth),
            workload.rate_per_s.map(f64::to_bits),
            workload.sync_every,
        )
    };
    let rates = |member: &Member<'_>| {
        let warmup = member.figures.map_or(0, |figures| figures.warmup_slices);
        let mut rates = member.phase.slice_rates(direction);
        rates.drain(..warmup.min(rates.len()));
        rates
    };
    if work(base) != work(member) {
        return None;
    }
    ratio(&rates(member), &rates(base))
}

/// A row with only a latency.
fn service_row(member: &Member<'_>, latency: &Histogram) -> ResultRow {
    let at = |quantile| {
        if latency.is_empty() {
            dash()
        } else {
            format::latency(latency.quantile(quantile))
        }
    };
    ResultRow {
        direction: None,
        short: member.subject.short.clone(),
        colour: colour_index(member.subject.slot),
        iops: String::new(),
        interval: String::new(),
        ratio: String::new(),
        shift: "muted",
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

/// The kernel's counts on the device during the phase, as "operations a second × average size". They are taken after
/// splitting and merging, and do not distinguish commits.
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
        // Discards are counted separately.
        Direction::Write if phase.workload.trims() => String::new(),
        Direction::Write => sized(total.writes, total.write_bytes),
        Direction::Sync => format!("{} flushes", rate(total.flushes)),
        Direction::Commit | Direction::Trim => String::new(),
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
        // The other run is compared with the first.
        assert_eq!(table.baseline, subjects[0].short);
        let ratios: Vec<bool> = mixed.rows.iter().map(|row| !row.ratio.is_empty()).collect();
        assert_eq!(ratios, [false, true, false, true]);
        assert!(
            mixed.rows[1].ratio.contains(" – "),
            "{}",
            mixed.rows[1].ratio
        );
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
    fn a_run_that_is_slower_beyond_doubt_is_marked_and_other_work_is_not_compared() {
        let mut runs = [sample::database_run(1), sample::database_run(2)];
        for window in &mut runs[1].0.phases[0].windows {
            for slice in window.read.iter_mut().flat_map(|flow| &mut flow.slices) {
                slice.ops /= 2;
            }
        }
        runs[1].1 = crate::conclusion::Conclusion::of(&runs[1].0);
        let first = |runs: &[(record::Run, crate::conclusion::Conclusion)]| {
            let subjects = subjects(runs);
            let rows = &table(&groups(&subjects), true).phases[0].rows;
            (rows[1].ratio.clone(), rows[1].shift)
        };
        let (ratio, shift) = first(&runs);
        assert!(
            ratio.starts_with("0.") && shift == "worse",
            "{ratio} {shift}"
        );
        runs[1].0.phases[0].workload.depth += 1;
        assert_eq!(first(&runs), (String::new(), "muted"));
        let alone = &runs[..1];
        let subjects = subjects(alone);
        assert_eq!(table(&groups(&subjects), false).baseline, "");
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
