//! Whether a check that is scheduled would run while a scrub does.

use jiff::{SignedDuration, Zoned};

use super::{Found, Scheduled};

/// What would happen to a scrub of an array that runs from one moment to another, as sentences; none
/// where nothing is known to get in its way. `array` is its name in the kernel.
pub(crate) fn collisions(found: &Found, array: &str, from: &Zoned, to: &Zoned) -> Vec<String> {
    found
        .running()
        .filter(|scheduled| !scheduled.skips.iter().any(|skipped| skipped == array))
        .filter_map(|scheduled| collision(scheduled, from, to))
        .collect()
}

/// How one of them collides.
fn collision(scheduled: &Scheduled, from: &Zoned, to: &Zoned) -> Option<String> {
    let (source, checker) = (&scheduled.source, scheduled.checker.name());
    let unclear: String = scheduled
        .unclear
        .iter()
        .map(|text| format!(" {text}"))
        .collect();
    if scheduled.times.is_empty() {
        return Some(format!(
            "{source} runs {checker}, and may do so before this scrub is done.{unclear}"
        ));
    }
    // What began before may still run.
    let reach = scheduled.delay.saturating_add(scheduled.lasts.unwrap_or(0));
    let reach = SignedDuration::from_secs(i64::try_from(reach).unwrap_or(i64::MAX));
    // One moment earlier, since what begins at `from` collides too.
    let earliest = from.checked_sub(reach).ok()?;
    let earliest = earliest.checked_sub(SignedDuration::from_nanos(1)).ok()?;
    let begins = scheduled.next(&earliest).filter(|begins| begins < to)?;
    let what = if scheduled.continues {
        format!("may go on with a check of {checker}")
    } else {
        format!("runs {checker}")
    };
    let when = if begins >= *from {
        format!(
            "at {}, while this scrub runs until about {}",
            shown(&begins),
            shown(to)
        )
    } else {
        format!("at {}, and it may still run", shown(&begins))
    };
    let mut text = format!("{source} {what} {when}.");
    if scheduled.delay > 0 {
        text.push_str(&format!(" It may begin up to {} s later.", scheduled.delay));
    }
    Some(text + &unclear)
}

/// A moment as a person reads it.
pub(super) fn shown(moment: &Zoned) -> String {
    moment.strftime("%Y-%m-%d %H:%M %Z").to_string()
}
