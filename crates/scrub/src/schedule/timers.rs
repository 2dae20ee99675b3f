//! Timers of systemd that start a check.

use std::path::Path;

use super::units::{Settings, Unit, Units, seconds};
use super::{Checker, Found, Scheduled, Source, calendar};

/// This program's own timer, which is no collision: one scrub refuses another.
pub(crate) const OWN: &str = "disksmith-scrub.timer";

/// Finds the timers whose service runs a check.
pub(super) fn find(root: &Path, found: &mut Found) {
    let units = Units::under(root);
    let mut wanted = Vec::new();
    for name in units.timers() {
        if name == OWN {
            continue;
        }
        match timer(&units, &name) {
            Ok(Some((scheduled, wants))) => {
                if scheduled.off.is_none() {
                    wanted.extend(wants);
                }
                found.scheduled.push(scheduled);
            }
            Ok(None) => {}
            Err(error) => found
                .unread
                .push(format!("The timer {name} could not be read: {error}.")),
        }
    }
    // mdcheck_start.service starts mdcheck_continue.timer, which need not be enabled itself.
    for scheduled in &mut found.scheduled {
        let is_wanted = matches!(&scheduled.source, Source::Timer(name) if wanted.contains(name));
        if is_wanted && scheduled.off.as_deref() == Some(NOT_ENABLED) {
            scheduled.off = None;
        }
    }
}

/// Why a timer that is there does nothing.
const NOT_ENABLED: &str = "it is not enabled";

/// A timer, if it starts a check, and what its service starts with itself.
fn timer(units: &Units, name: &str) -> std::io::Result<Option<(Scheduled, Vec<String>)>> {
    let own_service = || format!("{}.service", name.trim_end_matches(".timer"));
    let (timer, is_masked) = match units.read(name)? {
        None => return Ok(None),
        Some(Unit::Masked) => (Settings::default(), true),
        Some(Unit::Loaded(settings)) => (settings, false),
    };
    let service_name = timer
        .last("Timer", "Unit")
        .map_or_else(own_service, str::to_owned);
    let service = match units.read(&service_name)? {
        Some(Unit::Loaded(settings)) => settings,
        Some(Unit::Masked) | None => Settings::default(),
    };
    let command = service.all("Service", "ExecStart").join("\n");
    let Some(checker) = Checker::of(&command) else {
        return Ok(None);
    };
    let mut scheduled = Scheduled::new(Source::Timer(name.to_owned()), checker, &command);
    scheduled.off = if is_masked {
        Some("it is masked".to_owned())
    } else if units.links(name).is_empty() {
        Some(NOT_ENABLED.to_owned())
    } else if !units.is_running() {
        Some("systemd does not run on this host".to_owned())
    } else {
        None
    };
    set_times(&mut scheduled, &timer);
    scheduled.lasts = duration(&command, &service);
    scheduled.continues = command.contains("--continue");
    let words = |setting: &String| -> Vec<String> {
        setting.split_whitespace().map(str::to_owned).collect()
    };
    let wants = service.all("Unit", "Wants").iter().flat_map(words);
    Ok(Some((scheduled, wants.collect())))
}

/// The times of a timer, and what of them is not understood.
fn set_times(scheduled: &mut Scheduled, timer: &Settings) {
    for text in timer.all("Timer", "OnCalendar") {
        match calendar::times(text) {
            Some(times) => scheduled.times.push(times),
            None => scheduled.unclear.push(format!(
                "Its time OnCalendar={text} is not understood; `systemctl list-timers` shows when it \
                 comes next."
            )),
        }
    }
    for name in [
        "OnActiveSec",
        "OnBootSec",
        "OnStartupSec",
        "OnUnitActiveSec",
        "OnUnitInactiveSec",
    ] {
        if let Some(value) = timer.last("Timer", name) {
            scheduled.unclear.push(format!(
                "It also begins by {name}={value}; `systemctl list-timers` shows when that is."
            ));
        }
    }
    if let Some(text) = timer.last("Timer", "RandomizedDelaySec") {
        match seconds(text) {
            Some(delay) => scheduled.delay = delay,
            None => scheduled.unclear.push(format!(
                "How much later it may begin is not understood: {text}."
            )),
        }
    }
}

/// How long the check may take: mdcheck's `--duration`, which is given in the unit itself or by a
/// variable of the environment that the unit sets.
fn duration(command: &str, service: &Settings) -> Option<u64> {
    let (_, given) = command.split_once("--duration")?;
    let given = given.trim_start_matches(['=', ' ']);
    let Some(name) = given
        .strip_prefix("${")
        .and_then(|rest| rest.split_once('}'))
    else {
        let quoted = given
            .strip_prefix(['"', '\''])
            .map(|rest| rest.split(['"', '\'']).next());
        return seconds(
            quoted
                .flatten()
                .unwrap_or_else(|| given.lines().next().unwrap_or("")),
        );
    };
    service
        .all("Service", "Environment")
        .iter()
        .rev()
        .find_map(|line| {
            let line = line.trim_matches(['"', '\'']);
            line.strip_prefix(name.0)?.strip_prefix('=')
        })
        .and_then(seconds)
}
