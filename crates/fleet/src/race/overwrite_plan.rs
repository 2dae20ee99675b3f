//! Plan of the data that a race overwrites on all hosts, confirmed before the first round. Each host keeps its disks
//! open and claimed from its report of them until the end, and is bound to them if it reconnects after a loss.

use std::sync::atomic::AtomicBool;

use crate::destroy::targets;
use crate::destroy::targets::DestroyTarget;
use crate::protocol::rounds::TargetFacts;
use crate::race::entrants::{Entrants, State};
use crate::store::FleetRun;
use ui::confirm::confirm;
use ui::context::notice;
use ui::exit::Failure;
use ui::format::count;
use ui::table::wrap;

/// Participle for messages, as in `nothing was overwritten`. Test files of this program are already laid out in
/// folders then.
pub(super) const PARTICIPLE: &str = "overwritten";

/// Disks that a race overwrites, and the hosts that do not take part.
#[derive(Debug, Default, PartialEq)]
pub(super) struct OverwritePlan {
    /// The disks that are overwritten.
    disks: Vec<DestroyTarget>,
    /// Reasons why hosts do not take part, as sentences.
    absent: Vec<String>,
    /// Reasons why hosts that take part are unreachable at the moment, as sentences.
    away: Vec<String>,
}

impl OverwritePlan {
    /// The plan of a race whose hosts are in their groups.
    pub(super) fn of(field: &Entrants<'_>, run: &FleetRun) -> OverwritePlan {
        let mut plan = OverwritePlan::default();
        let raced = run.race.iter().flat_map(|record| &record.hosts);
        for ((host, raced), entrant) in run.hosts.iter().zip(raced).zip(&field.entrants) {
            if raced.group.is_none() {
                let why = host
                    .why
                    .as_deref()
                    .unwrap_or("it did not come to the start.");
                plan.absent.push(format!("{}: {why}", host.host));
                continue;
            }
            let zone = host.zone.as_deref();
            let disks = raced.targets.iter();
            plan.disks
                .extend(disks.filter_map(|target| disk(&host.host, zone, target)));
            if let State::Away(why) = &entrant.state {
                plan.away.push(format!("{}: {why}", host.host));
            }
        }
        plan
    }

    /// Shows it, and asks for confirmation, unless that was given on the command line. A race that overwrites nothing
    /// needs none.
    ///
    /// # Errors
    /// Refused, if it is not confirmed; nothing was overwritten then.
    pub(super) fn agree(
        &self,
        yes: bool,
        columns: usize,
        interrupt: &AtomicBool,
    ) -> Result<(), Failure> {
        if self.disks.is_empty() {
            return Ok(());
        }
        notice(&self.text(columns));
        if yes {
            return Ok(());
        }
        if confirm(&self.question(), PARTICIPLE, interrupt)? {
            Ok(())
        } else {
            Err(Failure::refused("nothing was overwritten"))
        }
    }

    /// The plan, and the hosts that are not in it.
    pub(super) fn text(&self, columns: usize) -> String {
        let mut text = targets::table(&self.disks, "The race would overwrite this", columns);
        let away = "Lost a moment ago, and raced only where they come back with the same disks:";
        let absent = "Nothing is overwritten on these, which are reported and not ranked:";
        for (what, hosts) in [(away, &self.away), (absent, &self.absent)] {
            if hosts.is_empty() {
                continue;
            }
            let lines = hosts
                .iter()
                .map(|host| wrap(&format!("  - {host}"), columns, "    "));
            for line in std::iter::once(wrap(what, columns, "")).chain(lines) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    }

    /// Question to the user.
    pub(super) fn question(&self) -> String {
        let lost = format!(
            "All that is on these {} will be lost.",
            targets::count(&self.disks)
        );
        match self.absent.len() {
            0 => lost,
            absent => format!(
                "{lost} The race continues without the {} that did not take part so far.",
                count(absent, "host")
            ),
        }
    }
}

/// A target in the plan; `None` if none of its data is overwritten.
fn disk(host: &str, zone: Option<&str>, target: &TargetFacts) -> Option<DestroyTarget> {
    let overwritten = target.overwritten.as_ref()?;
    Some(DestroyTarget {
        host: host.to_owned(),
        zone: zone.map(str::to_owned),
        path: target.path.clone(),
        size_bytes: Some(overwritten.seen.size_bytes),
        content: Some(overwritten.content.clone()),
        model: target.model.clone(),
        serial: target.serial.clone(),
        seen: Some(overwritten.seen.clone()),
        ..DestroyTarget::default()
    })
}
