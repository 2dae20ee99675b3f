//! The hours, the deadline and the targets of a command, which a check and `--read` share.

use std::sync::atomic::AtomicBool;

use jiff::{SignedDuration, Timestamp, Zoned};
use job::{ProgressLines, Stop};
use linux::block::Devices;
use record::Nanos;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

use super::array_scrub::Shared;
use super::start_times::{self, DueTime, RunWindow, StartTimes};
use crate::args::ScrubArgs;

/// Checks the arguments that do not depend on an array.
///
/// # Errors
/// When the report page cannot be written, or the times are impossible.
pub fn validate(args: &ScrubArgs) -> Result<(), Failure> {
    if args.dry_run && !args.install_timer && !args.uninstall_timer {
        return Err(Failure::refused(
            "--dry-run is for --install-timer and --uninstall-timer",
        ));
    }
    args.page.check()?;
    times(args).map(drop)
}

/// Deadline, and the hours in which the scrub may run, where they are given.
pub(crate) fn times(args: &ScrubArgs) -> Result<(Option<Zoned>, Option<RunWindow>), Failure> {
    // A weekday is the next one from now, not from the start of the hours.
    let now = Zoned::now();
    let by = args.by.map(|by| start_times::moment(by, &now)).transpose();
    let by = by.refused()?;
    let opening = args.window.map(|hours| start_times::opening(hours, &now));
    let opening = opening.transpose().refused()?;
    let begins = opening.as_ref().map_or(&now, |opening| &opening.from);
    match by.as_ref().filter(|by| *by <= begins) {
        Some(over) => Err(Failure::refused(start_times::is_over(over, begins, &now))),
        None => Ok((by, opening)),
    }
}

/// State that all arrays or disks of the command share.
pub(crate) fn share<'a>(
    (context, devices): (&'a Context, &Devices),
    (stop, lines): (Stop<'a>, &'a ProgressLines),
    args: &ScrubArgs,
    by: Option<Zoned>,
    now: &Zoned,
) -> Shared<'a> {
    Shared {
        root: &context.root,
        below_ledger: context.ledger_path().map_or_else(
            |_| Vec::new(),
            |path| reader::below_ledger(&context.root, devices, &path),
        ),
        stop,
        lines,
        targets: args.keep.targets(),
        due: by.map(|by| due(by, args, stop.deadline(), now)),
        deadline_wins: args.deadline_wins,
    }
}

/// Deadline, with the time until then in which this start and later ones may run.
fn due(by: Zoned, args: &ScrubArgs, ends: Option<Timestamp>, now: &Zoned) -> DueTime {
    let starts = StartTimes {
        ends,
        hours: args.window,
        lasts: args.lasts.and_then(|lasts| duration(lasts.0)),
        is_nightly: args.scheduled && args.lasts.is_some(),
    };
    DueTime::new(by, &starts, now)
}

fn duration(nanos: Nanos) -> Option<SignedDuration> {
    i64::try_from(nanos.0).ok().map(SignedDuration::from_nanos)
}

/// Waits for the hours in which the scrub may run, and returns its reasons to stop; `None` if it was interrupted
/// meanwhile.
pub(crate) fn wait_for_hours<'a>(
    opening: Option<RunWindow>,
    args: &ScrubArgs,
    context: &Context,
    interrupt: &'a AtomicBool,
) -> Option<Stop<'a>> {
    let stop = Stop::on(interrupt);
    if let Some(opening) = &opening
        && opening.from > Zoned::now()
    {
        context.notice(&format!(
            "disksmith: waiting for {}",
            opening.from.strftime("%A %H:%M")
        ));
        if stop.wait_until(opening.from.timestamp()).is_some() {
            return None;
        }
    }
    let lasts = args
        .lasts
        .and_then(|lasts| Timestamp::now().checked_add(duration(lasts.0)?).ok());
    let closes = opening.map(|opening| opening.to.timestamp());
    Some(stop.at([lasts, closes].into_iter().flatten().min()))
}
