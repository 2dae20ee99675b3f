//! Collisions of scheduled checks with a scrub.

use jiff::Zoned;

use super::scheduled::{Scheduled, ScheduledChecks, shown};

/// Collisions of a scrub of an array from one time to another, as sentences; none where none is known.
/// `array` is its name in the kernel.
pub(crate) fn collisions(
    found: &ScheduledChecks,
    array: &str,
    from: &Zoned,
    to: &Zoned,
) -> Vec<String> {
    found
        .running()
        .filter(|scheduled| !scheduled.skips.iter().any(|skipped| skipped == array))
        .filter_map(|scheduled| collision(scheduled, from, to))
        .collect()
}

/// Collision with one scheduled check.
fn collision(scheduled: &Scheduled, from: &Zoned, to: &Zoned) -> Option<String> {
    let (source, checker) = (&scheduled.source, scheduled.checker.name());
    let unclear: String = scheduled
        .unclear
        .iter()
        .map(|text| format!(" {text}"))
        .collect();
    if scheduled.runs_now {
        return Some(format!("{source} runs {checker} now.{unclear}"));
    }
    // It begins only after another, which is found too.
    if scheduled.continues && scheduled.next.is_none() {
        return None;
    }
    let Some(begins) = &scheduled.next else {
        return Some(format!(
            "{source} runs {checker}, and may do so before this scrub is done.{unclear}"
        ));
    };
    if begins < from || begins >= to {
        return None;
    }
    let what = if scheduled.continues {
        format!("may go on with a check of {checker}")
    } else {
        format!("runs {checker}")
    };
    Some(format!(
        "{source} {what} at {}, while this scrub runs until about {}.{unclear}",
        shown(begins),
        shown(to)
    ))
}
