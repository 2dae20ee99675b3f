//! Phases of the same name in several runs, which are shown together.

use ledger::Mark;
use record::{Direction, Flow, Phase};

use super::header::{FindingLine, finding_line};
use super::names::Subject;
use crate::figures::{FlowFigures, PhaseFigures};

/// Part of one run in a group of phases.
pub(super) struct Member<'a> {
    pub(super) subject: &'a Subject<'a>,
    pub(super) phase: &'a Phase,
    pub(super) figures: Option<&'a PhaseFigures>,
}

impl Member<'_> {
    /// The figures of a direction, if there are any.
    pub(super) fn flow(&self, direction: Direction) -> Option<&FlowFigures> {
        self.figures?.flow(direction)
    }

    /// Findings about this phase.
    pub(super) fn findings(&self) -> impl Iterator<Item = FindingLine> {
        let findings = &self.subject.conclusion.findings;
        let about = |phase: &Option<String>| phase.as_deref() == Some(self.phase.name.as_str());
        findings
            .iter()
            .filter(move |finding| about(&finding.phase))
            .map(finding_line)
    }
}

/// Phases that are shown together: the same name in different runs.
pub struct Group<'a> {
    pub name: &'a str,
    /// Anchor of the group for links.
    pub(super) anchor: String,
    pub(super) members: Vec<Member<'a>>,
    /// Marks that were set while a member ran: seconds from the phase's start, and the text.
    pub(super) marks: Vec<(f64, String)>,
}

impl<'a> Group<'a> {
    /// Adds the marks that were set while a member ran.
    pub(super) fn mark(&mut self, marks: &[Mark]) {
        for member in &self.members {
            let began = member.subject.run.started;
            for mark in marks {
                let since_run = mark.at.duration_since(began).as_secs_f64();
                let at = since_run - member.phase.began_s;
                if (0.0..=member.phase.seconds).contains(&at) {
                    self.marks.push((at, mark.text.clone()));
                }
            }
        }
    }

    /// The directions in which any member has requests, in display order.
    pub fn directions(&self) -> Vec<Direction> {
        self.directions_where(|_| true)
    }

    /// Directions in which any member has a flow that `wanted` accepts.
    pub(super) fn directions_where(&self, wanted: impl Fn(&Flow) -> bool) -> Vec<Direction> {
        let in_any = |direction: &Direction| {
            self.members
                .iter()
                .filter_map(|member| member.phase.flow(*direction))
                .any(&wanted)
        };
        Direction::ALL.into_iter().filter(in_any).collect()
    }
}

/// Groups the phases of all runs by name, in the order in which they first appear. The second phase of a name in a run
/// is grouped with the second of that name in the others.
pub fn groups<'a>(subjects: &'a [Subject<'a>]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for subject in subjects {
        for (i, phase) in subject.run.phases.iter().enumerate() {
            let member = Member {
                subject,
                phase,
                figures: subject.conclusion.phases.get(i),
            };
            let free = groups.iter_mut().find(|group| {
                let last = group.members.last();
                group.name == phase.name && last.is_some_and(|m| m.subject.slot < subject.slot)
            });
            match free {
                Some(group) => group.members.push(member),
                None => groups.push(Group {
                    name: &phase.name,
                    anchor: format!("phase-{}", groups.len() + 1),
                    members: vec![member],
                    marks: Vec::new(),
                }),
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::html::names::subjects;
    use crate::views::sample;

    #[test]
    fn phases_of_one_name_share_a_group_and_keep_their_order() {
        let mut runs = [sample::database_run(1), sample::database_run(2)];
        runs[1].0.phases.remove(0);
        let subjects = subjects(&runs);
        let groups = groups(&subjects);
        let sizes: Vec<_> = groups.iter().map(|g| (g.name, g.members.len())).collect();
        assert_eq!(sizes[..2], [("seek", 1), ("page-read", 2)]);
        assert_eq!(groups.len(), 7);
    }

    #[test]
    fn a_mark_is_in_the_phase_that_ran_then() {
        let runs = [sample::database_run(1)];
        let subjects = subjects(&runs);
        let mut groups = groups(&subjects);
        let phase = &runs[0].0.phases[1];
        let second = jiff::SignedDuration::from_secs_f64(phase.began_s + 1.0);
        let mark = Mark {
            number: 1,
            at: runs[0].0.started + second,
            host: "db-1".to_owned(),
            text: "deploy".to_owned(),
        };
        for group in &mut groups {
            group.mark(std::slice::from_ref(&mark));
        }
        let marked: Vec<&str> = groups
            .iter()
            .filter(|group| !group.marks.is_empty())
            .map(|group| group.name)
            .collect();
        assert_eq!(marked, [phase.name.as_str()]);
    }

    #[test]
    fn a_name_that_one_run_has_twice_makes_two_groups() {
        let mut runs = [sample::database_run(1), sample::database_run(2)];
        for (run, _) in &mut runs {
            run.phases.truncate(1);
            run.phases.push(run.phases[0].clone());
        }
        let subjects = subjects(&runs);
        let sizes: Vec<_> = groups(&subjects).iter().map(|g| g.members.len()).collect();
        assert_eq!(sizes, [2, 2]);
    }
}
