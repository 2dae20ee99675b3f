//! Scheduled checks of the distribution or of others: Debian's checkarray, mdadm's mdcheck timers and Red
//! Hat's raid-check; and their collisions with a scrub.

mod crontabs;
mod distribution;
mod files;
mod scheduled;
pub(super) mod systemd;
#[cfg(test)]
pub(crate) mod tests;
mod timers;

use std::path::Path;

use array::programs::Programs;
use jiff::Zoned;

pub(crate) use distribution::{DEBIAN, RED_HAT};
pub(crate) use files::below;
pub(crate) use scheduled::{Checker, ScheduleSource, Scheduled, ScheduledChecks};

/// Finds the checks that are scheduled on the host whose `/` is at `root`. Files that cannot be read are reported and
/// skipped.
pub(crate) fn find(root: &Path, now: &Zoned, programs: &mut dyn Programs) -> ScheduledChecks {
    let mut found = ScheduledChecks::default();
    timers::find(root, now, programs, &mut found);
    crontabs::find(root, &mut found);
    for scheduled in &mut found.scheduled {
        distribution::apply(root, scheduled, &mut found.unread);
    }
    found
}
