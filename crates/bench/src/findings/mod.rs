//! Findings: the stated reasons to doubt a run's figures.
//!
//! Each rule examines the measurements and gives a finding or none. The rules are grouped by subject: `source` (where
//! the data came from), `level` (whether the rate has one level), `trouble` (disturbances), `rules` (rules of a job
//! file). Each has a test that makes it happen and one that does not.

mod bonnie;
mod finding;
mod foreign;
#[cfg(test)]
mod healthy;
mod level;
mod rules;
mod source;
mod suites;
#[cfg(test)]
mod test_run;
mod trouble;

use record::{Finding, Phase, Run};

use super::answer::SuiteResult;
use super::contents;
use super::figures::PhaseFigures;

/// All findings of `run`, the most severe first.
pub(super) fn of(
    run: &Run,
    figures: &[PhaseFigures],
    answer: Option<&SuiteResult>,
) -> Vec<Finding> {
    // First of all: lost data is worse than any figure.
    let mut findings: Vec<Finding> = run.phases.iter().filter_map(rules::corrupt).collect();
    let of_run = [
        source::unwritten(run),
        source::blank(run),
        source::in_memory(run),
        source::buffered(run),
        source::served(run),
        source::cached_below(run),
        source::small_span(run),
        source::compressed(run),
        bonnie::through_cache(run),
    ];
    findings.extend(of_run.into_iter().flatten());
    findings.extend(suites::of_answer(answer));
    findings.extend(
        run.replay
            .iter()
            .flat_map(|replay| replay::conclude::findings(replay)),
    );
    for (phase, figures) in run.phases.iter().zip(figures) {
        findings.extend(rules::floor_missed(phase));
        findings.extend(rules::io_errors(phase));
        let has_level = suites::has_level(answer, phase) && !contents::is_compared(&phase.name);
        findings.extend(match has_level {
            true => of_phase(run, phase, figures),
            false => of_source(run, phase, figures),
        });
    }
    let mut findings = suites::condense(run, answer, findings);
    // A stable sort: findings of equal severity stay in the order of the phases.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// Findings of a phase whose rate has no level to conclude about.
fn of_source(run: &Run, phase: &Phase, figures: &PhaseFigures) -> Vec<Finding> {
    let findings = [
        source::cached(run, phase),
        foreign::foreign_io(run, phase, figures),
        trouble::gap(phase),
        trouble::cpu_bound(run, phase),
    ];
    findings.into_iter().flatten().collect()
}

fn of_phase(run: &Run, phase: &Phase, figures: &PhaseFigures) -> Vec<Finding> {
    // Failed requests completed too, and are in no slice: as many failures as successes can explain a period without
    // completions.
    let done: u64 = phase.windows.iter().map(record::Window::ops).sum();
    let failed = phase.outcome.failed.as_ref().map_or(0, |one| one.count());
    let stall = trouble::stall(phase)
        .filter(|_| !bonnie::waits_at_end_only(phase) && (failed == 0 || failed < done));
    let burst = level::burst(phase);
    let cpu_bound = trouble::cpu_bound(run, phase);
    let gap = trouble::gap(phase);
    // A stall or a spent burst explains why the rate has no single level, and is the more specific finding.
    let explained = stall.is_some() || burst.is_some();
    let behind = level::behind_rate(phase, figures);
    // A search for the depth changes the rate on purpose.
    let details = phase.workload.details.as_ref();
    let searched = details.is_some_and(|details| details.depth_search.is_some());
    let unsteady = level::unsteady(phase, figures)
        .filter(|_| !explained && !searched && behind.is_none() && gap.is_none());
    let capped = level::capped(run, phase, figures);
    [
        source::cached(run, phase),
        // Beside a fixed amount of file work the file system's own writes cannot be distinguished from foreign ones.
        foreign::foreign_io(run, phase, figures).filter(|_| phase.workload.calls().is_none()),
        level::short(phase, figures),
        behind,
        unsteady,
        capped.filter(|_| !explained && cpu_bound.is_none()),
        stall,
        gap,
        burst,
        cpu_bound,
    ]
    .into_iter()
    .flatten()
    .collect()
}
