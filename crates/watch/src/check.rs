//! `watch --check`: one check, reported in the form of a Nagios plugin (Monitoring Plugins Development Guidelines): a
//! line, performance data after a bar, and an exit status.

mod verdict;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use study::watch::{Settings, Watch};

use super::collect::Collector;
use super::filter::Filter;
use super::live::Ticks;
use crate::args::WatchArgs;
use crate::thresholds::Thresholds;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome, sentence};

use verdict::{Observations, Status};

/// Default number of intervals.
const DEFAULT_INTERVALS: u64 = 5;

/// Prints the UNKNOWN line for invalid arguments, and returns the exit status: the status 2 of other verbs would be
/// taken for a critical state of the disks.
pub fn misused(error: &clap::Error) -> u8 {
    let text = error.to_string();
    let what = text.lines().next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what);
    let line = unknown(what);
    // If stdout is closed, the status is enough.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes());
    let _ = error.print();
    Status::Unknown.number()
}

/// Line of a check without a result.
fn unknown(why: &str) -> String {
    format!("DISKSMITH UNKNOWN - {}\n", why.replace(['|', '\n'], " "))
}

/// Checks that each critical value is also a warning.
///
/// # Errors
/// Refused where one is not.
pub(super) fn validate(args: &WatchArgs) -> Result<(), Failure> {
    match (&args.warning, &args.critical) {
        (Some(warning), Some(critical)) => {
            warning.are_warnings_of(critical).map_err(Failure::refused)
        }
        _ => Ok(()),
    }
}

/// Observes the disks for some intervals, and prints the verdict.
pub(super) fn check(args: &WatchArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let none = Thresholds::default();
    let warning = args.warning.as_ref().unwrap_or(&none);
    let critical = args.critical.as_ref().unwrap_or(&none);
    let seen = validate(args).and_then(|()| observe(args, context, interrupt));
    match seen {
        Ok(seen) => {
            let (status, text) = seen.judge(warning, critical, args.verbose > 0);
            context.print(&text)?;
            Ok(CommandEnd::Status(status.number()))
        }
        // The status UNKNOWN tells the caller that the check has no result.
        Err(failure) => {
            context.print(&unknown(&sentence(&failure.error())))?;
            Ok(CommandEnd::Status(Status::Unknown.number()))
        }
    }
}

fn observe(
    args: &WatchArgs,
    context: &Context,
    interrupt: &AtomicBool,
) -> Result<Observations, Failure> {
    let mut filter = Filter::new(&args.devices, true, &context.root)?;
    let begun = Instant::now();
    let timeout = args.timeout.map(Duration::from_secs);
    // At least one interval has to pass before the timeout.
    let interval = Duration::from(args.interval.0);
    let interval = timeout.map_or(interval, |timeout| interval.min(timeout / 2));
    let mut collector = Collector::new(&context.root, interval).refused()?;
    let mut watch = Watch::new(Settings {
        stall: args.stall.0,
        names: filter.names().to_vec(),
    });
    let mut seen = Observations::default();
    let mut ticks = Ticks::every(interval);
    collector.sample().refused()?;
    let ends = timeout.map(|timeout| begun + timeout);
    for number in 0..args.count.unwrap_or(DEFAULT_INTERVALS) {
        if number > 0 && ends.is_some_and(|ends| Instant::now() + interval > ends) {
            break;
        }
        if !ticks.wait(interrupt) {
            return Err(Failure::refused("the check was interrupted"));
        }
        let Some(mut sample) = collector.sample().refused()? else {
            continue;
        };
        for change in watch.observe(&sample) {
            if filter.wants_change(&change, &sample) {
                seen.events.insert(change.event.id, change.event);
            }
        }
        filter.remove_others(&mut sample);
        seen.add(&sample, args.devices.is_empty());
    }
    let is_missing = |name: &&String| !seen.has(name);
    seen.missing = filter.names().iter().filter(is_missing).cloned().collect();
    Ok(seen)
}
