//! Duration of warming, and the time to begin: `--plan` and `--ready-by`.

use jiff::{SignedDuration, Timestamp, Zoned};
use record::Bytes;
use serde::Serialize;

use crate::args::WarmArgs;
use domain::ready_by::ReadyBy;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::units::{rate, span};

/// The time at which something is to be ready, and the time to begin it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// Time at which it is to be ready.
    pub ready: Zoned,
    /// Latest time to begin.
    pub begin: Zoned,
    /// True if that time has passed.
    pub late: bool,
}

impl Schedule {
    /// Schedule of work that takes at most `seconds` and is to be ready at `by`, computed at the time `now`.
    ///
    /// # Errors
    /// When there is no such time, or the time to begin is outside the range of the calendar.
    pub(crate) fn new(by: ReadyBy, seconds: f64, now: &Zoned) -> Result<Schedule, jiff::Error> {
        let ready = by.moment(now)?;
        let begin = ready.checked_sub(SignedDuration::try_from_secs_f64(seconds.ceil())?)?;
        Ok(Schedule {
            late: begin < *now,
            ready,
            begin,
        })
    }

    /// Schedule by `--ready-by`; `None` without the option.
    ///
    /// # Errors
    /// As [`Schedule::new`].
    pub(crate) fn requested(args: &WarmArgs, seconds: f64) -> Result<Option<Schedule>, Failure> {
        let schedule = args
            .ready_by
            .map(|by| Schedule::new(by, seconds, &Zoned::now()));
        schedule.transpose().refused()
    }

    /// The schedule as a sentence, with a newline at the end.
    pub(crate) fn sentence(&self) -> String {
        let moment = |at: &Zoned| at.strftime("%Y-%m-%d %H:%M:%S %Z").to_string();
        let (begin, ready) = (moment(&self.begin), moment(&self.ready));
        if self.late {
            format!("To be warm at {ready} it had to begin at {begin}, which is over.\n")
        } else {
            format!("To be warm at {ready}, begin at {begin}.\n")
        }
    }

    /// The schedule as part of a document.
    pub(crate) fn document(&self) -> ScheduleDocument {
        ScheduleDocument {
            ready_by: self.ready.timestamp(),
            begin_at: self.begin.timestamp(),
            late: self.late,
        }
    }
}

/// Time at which to begin warming, from the time at which it is to be done.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ScheduleDocument {
    /// Time at which warming is to be done.
    ready_by: Timestamp,
    /// Time at which warming has to begin.
    begin_at: Timestamp,
    /// True if the time to begin is over.
    late: bool,
}

/// The document of `warm --plan --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PlanDocument {
    /// Mode of the command: `plan`.
    mode: &'static str,
    /// Bytes to read.
    size_bytes: Bytes,
    /// Rate in bytes a second.
    bytes_per_s: Bytes,
    /// Duration in seconds.
    seconds: f64,
    /// Time at which to begin warming; null without `--ready-by`.
    schedule: Option<ScheduleDocument>,
}

/// Prints how long it takes to read `size` bytes at `speed` bytes a second; no device is read.
pub(crate) fn plan(size: Bytes, speed: Bytes, args: &WarmArgs, context: &mut Context) -> Outcome {
    let seconds = size.0 as f64 / speed.0 as f64;
    let schedule = Schedule::requested(args, seconds)?;
    let text = if args.json {
        let document = PlanDocument {
            mode: "plan",
            size_bytes: size,
            bytes_per_s: speed,
            seconds,
            schedule: schedule.as_ref().map(Schedule::document),
        };
        ui::json::document("warm", &document)
    } else {
        let takes = format!(
            "To read {size} at {} takes {}.\n",
            rate(speed.0 as f64),
            span(seconds)
        );
        let when = schedule.as_ref().map(Schedule::sentence);
        format!("{takes}{}", when.unwrap_or_default())
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Zoned {
        text.parse().unwrap()
    }

    #[test]
    fn it_begins_early_enough_and_says_when_that_is_over() {
        let now = at("2026-11-22T16:30:00+01:00[Europe/Berlin]");
        let by: ReadyBy = "18:00".parse().unwrap();
        let schedule = Schedule::new(by, 3599.5, &now).unwrap();
        assert_eq!(
            schedule.begin,
            at("2026-11-22T17:00:00+01:00[Europe/Berlin]")
        );
        assert!(!schedule.late);
        assert_eq!(
            schedule.sentence(),
            "To be warm at 2026-11-22 18:00:00 CET, begin at 2026-11-22 17:00:00 CET.\n"
        );
        let late = Schedule::new(by, 7200.0, &now).unwrap();
        assert!(late.late && late.sentence().contains("which is over"));
        assert!(Schedule::new(by, f64::INFINITY, &now).is_err());
        assert!(Schedule::new(by, 1e15, &now).is_err());
    }
}
