//! Timers of systemd that start a check.

use std::path::Path;

use array::programs::Programs;
use jiff::Zoned;

use super::scheduled::{Checker, ScheduleSource, Scheduled, ScheduledChecks};
use super::systemd::{self, Unit};

/// disksmith's own timer, which does not collide: a scrub refuses to start while another one runs.
const OWN_TIMER: &str = "disksmith-scrub.timer";
const TIMER_PROPERTIES: &str =
    "Id,LoadState,UnitFileState,ActiveState,Triggers,NextElapseUSecRealtime";
const SERVICE_PROPERTIES: &str = "Id,ActiveState,Wants,ExecStart";
/// Reason why an installed timer does nothing.
const NOT_ENABLED: &str = "it is not enabled";

/// Finds the timers whose service runs a check. Without systemd there are none.
pub(super) fn find(
    root: &Path,
    now: &Zoned,
    programs: &mut dyn Programs,
    found: &mut ScheduledChecks,
) {
    if !systemd::is_running(root) {
        return;
    }
    match query(root, now, programs) {
        Ok(timers) => found.scheduled.extend(timers),
        Err(error) => found
            .unread
            .push(format!("The timers of systemd are not known: {error:#}.")),
    }
}

/// The timers that start a check.
fn query(root: &Path, now: &Zoned, programs: &mut dyn Programs) -> anyhow::Result<Vec<Scheduled>> {
    let names = systemd::timers(root).into_iter();
    let names: Vec<String> = names.filter(|name| name != OWN_TIMER).collect();
    let timers = systemd::show(programs, &names, TIMER_PROPERTIES)?;
    let service = |timer: &Unit| match timer.get("Triggers") {
        "" => timer.get("Id").replace(".timer", ".service"),
        triggers => triggers.to_owned(),
    };
    let services: Vec<String> = timers.iter().map(service).collect();
    let services = systemd::show(programs, &services, SERVICE_PROPERTIES)?;
    let mut wanted = Vec::new();
    let mut scheduled = Vec::new();
    for (timer, service) in timers.iter().zip(&services) {
        let Some(one) = of_units(timer, service, now) else {
            continue;
        };
        if one.off.is_none() {
            wanted.extend(service.get("Wants").split(' '));
        }
        scheduled.push(one);
    }
    // mdcheck_start.service starts mdcheck_continue.timer, which need not be enabled itself.
    for one in &mut scheduled {
        let is_wanted = matches!(&one.source, ScheduleSource::Timer { unit, .. } if wanted.contains(&unit.as_str()));
        if is_wanted && one.off.as_deref() == Some(NOT_ENABLED) {
            one.off = None;
        }
    }
    Ok(scheduled)
}

/// The scheduled check of a timer, if its service runs one.
fn of_units(timer: &Unit, service: &Unit, now: &Zoned) -> Option<Scheduled> {
    let command = service.commands();
    let checker = Checker::of(&command)?;
    let is_masked = timer.get("LoadState") == "masked";
    let is_enabled = timer.get("UnitFileState") == "enabled";
    let is_active = timer.get("ActiveState") == "active";
    let off = match (is_masked, is_enabled || is_active) {
        (true, _) => Some("it is masked"),
        (false, true) => None,
        (false, false) => Some(NOT_ENABLED),
    };
    let source = ScheduleSource::Timer {
        unit: timer.get("Id").to_owned(),
        is_enabled,
        is_active,
    };
    let next = timer.moment("NextElapseUSecRealtime");
    Some(Scheduled {
        off: off.map(str::to_owned),
        next: next.map(|next| next.to_zoned(now.time_zone().clone())),
        runs_now: matches!(service.get("ActiveState"), "active" | "activating"),
        ..Scheduled::new(source, checker, &command)
    })
}
