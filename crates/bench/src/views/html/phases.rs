//! The sections of the phases: workload, course, and charts.

use record::{Phase, StopReason};

use super::charts;
use super::groups::{Group, Member};
use super::header::FindingLine;
use page::{ChartView, Figures};
use ui::format;

/// Part of one run in a phase.
pub(super) struct MemberView {
    pub(super) short: String,
    pub(super) colour: usize,
    pub(super) workload: String,
    pub(super) course: String,
    pub(super) partial: bool,
    pub(super) unwindowed: bool,
    pub(super) findings: Vec<FindingLine>,
}

/// A phase's section.
pub(super) struct Section {
    pub name: String,
    pub(super) anchor: String,
    /// Workload, if all runs had the same.
    pub(super) workload: Option<String>,
    pub(super) members: Vec<MemberView>,
    pub(super) charts: Vec<ChartView>,
}

pub(super) fn section(group: &Group<'_>, runs: usize, figures: &mut Figures) -> Section {
    let workloads: Vec<String> = group
        .members
        .iter()
        .map(|member| format::workload(&member.phase.workload))
        .collect();
    let shared = workloads
        .first()
        .filter(|first| workloads.iter().all(|w| w == *first));
    let charts = charts::all(group, runs)
        .into_iter()
        .map(|chart| figures.add(chart))
        .collect();
    Section {
        name: group.name.to_owned(),
        anchor: group.anchor.clone(),
        members: group.members.iter().map(member_view).collect(),
        workload: shared.cloned(),
        charts,
    }
}

fn member_view(member: &Member<'_>) -> MemberView {
    let phase = member.phase;
    MemberView {
        short: member.subject.short.clone(),
        colour: page::charts::colour_index(member.subject.slot),
        workload: format::workload(&phase.workload),
        course: course(phase),
        partial: phase.stopped == StopReason::Signal,
        unwindowed: phase.windows.is_empty(),
        findings: member.findings().collect(),
    }
}

/// Course of a phase: its length, the reason for its end, and its processor time on the host.
fn course(phase: &Phase) -> String {
    let mut parts = vec![format!(
        "Measured {} ({})",
        format::seconds(phase.seconds),
        format::stopped(phase.stopped)
    )];
    if phase.drain_seconds > 0.0 {
        parts.push(format!(
            "the last requests took {} more",
            format::seconds(phase.drain_seconds)
        ));
    }
    if phase.cpu.user_s + phase.cpu.system_s > 0.0 {
        parts.push(format!(
            "CPU {} user, {} system",
            format::seconds(phase.cpu.user_s),
            format::seconds(phase.cpu.system_s)
        ));
    }
    if phase.thread_ops.len() > 1 {
        let least = phase.thread_ops.iter().min().copied().unwrap_or_default();
        let most = phase.thread_ops.iter().max().copied().unwrap_or_default();
        parts.push(format!(
            "{} to {} requests a thread",
            format::number(least as f64),
            format::number(most as f64)
        ));
    }
    parts.push(format::engine(phase.engine.kind).to_owned());
    format!("{}.", parts.join("; "))
}
