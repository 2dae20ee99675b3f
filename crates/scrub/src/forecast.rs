//! Forecast of the scrub of an array, printed before it begins: its extent, its duration and its effect on the
//! foreground.

use job::is_late;
use linux::md::sync::Sectors;

use super::checkpoint::Checkpoint;
use super::deadline::kept_of_both;
use super::speed::Speed;
use super::start_times::DueTime;
use super::target::Target;
use crate::args::ScrubArgs;
use study::pace::ROOM;
use ui::format::percent;
use ui::units::{rate, span};

/// Facts from which the forecast is made.
pub(super) struct ForecastInput<'a> {
    /// State from which the scrub starts.
    pub checkpoint: &'a Checkpoint,
    /// Arguments of the command.
    pub args: &'a ScrubArgs,
    /// Deadline.
    pub due: Option<&'a DueTime>,
    /// Speed of the members, where no earlier scrub gives the rate.
    pub speed: Option<Speed>,
}

/// The forecast, in sentences.
pub(super) fn forecast(
    target: &Target,
    known: &ForecastInput<'_>,
    now: jiff::Timestamp,
) -> Vec<String> {
    let left = Sectors(known.checkpoint.of.saturating_sub(known.checkpoint.done)).bytes();
    let mut sentences = vec![format!(
        "{}: {} of {} members, {} of each; md counts {left} to go; {}.",
        target.path(),
        target.level,
        target.places(),
        target.of_member(),
        latency_limit(known.args)
    )];
    let left = left.0 as f64;
    if let Some(due) = known.due {
        sentences.push(deadline(due, left, known.args.deadline_wins, now));
    }
    let fastest = if let Some(so_far) = known.checkpoint.rate() {
        let takes = span(left / so_far);
        sentences.push(format!(
            "At its rate so far, {}, it takes {takes} more.",
            rate(so_far)
        ));
        Some(so_far)
    } else {
        sentences.extend(known.speed.map(|speed| of_members(speed, left)));
        match known.speed {
            Some(Speed::Alone(alone)) => Some(alone),
            Some(Speed::Busy(_)) | None => None,
        }
    };
    // A deadline that cannot be met is reported now, and not only when part of the time has passed.
    if let (Some(due), Some(fastest)) = (known.due, fastest)
        && is_late(left / fastest, due.left_at(now).as_secs_f64())
    {
        sentences.push(match known.checkpoint.rate() {
            Some(_) => format!(
                "That is too late: at this rate {}.",
                kept_of_both(known.args.deadline_wins)
            ),
            None => "That is too late, also with no other programs: it will not be done by then."
                .to_owned(),
        });
    }
    sentences
}

/// Sentence on the target of the foreground's latency.
fn latency_limit(args: &ScrubArgs) -> String {
    let keep = &args.keep;
    let limits = [("a p99 of", keep.keep_p99), ("a mean of", keep.keep_mean)];
    let limits: Vec<String> = limits
        .into_iter()
        .filter_map(|(name, latency)| Some(format!("{name} {}", latency?.0)))
        .collect();
    if limits.is_empty() {
        return format!(
            "others may have up to {ROOM} times the mean latency and the p99 that \
             they have without it, which is measured when there are any"
        );
    }
    format!("{} is kept for others", limits.join(" and "))
}

/// Sentence on the rate that the deadline needs.
fn deadline(due: &DueTime, left: f64, wins: bool, now: jiff::Timestamp) -> String {
    let open = due.left_at(now).as_secs_f64();
    let partly = if due.is_partly {
        format!(", for which it has {} in its hours,", span(open))
    } else {
        ",".to_owned()
    };
    format!(
        "To be done by {}{partly} it must make {} on average; if that and the latency target cannot both be met, {} is kept.",
        due.by.strftime("%A %Y-%m-%d %H:%M"),
        rate(left / open.max(1.0)),
        if wins { "the deadline" } else { "the latency" }
    )
}

/// Sentence on the duration, by the members' speed.
fn of_members(speed: Speed, left: f64) -> String {
    match speed {
        Speed::Alone(alone) => format!(
            "Its members were read for a moment, at {} of what md counts: alone it takes about {}, and longer \
             beside others.",
            rate(alone),
            span(left / alone)
        ),
        Speed::Busy(busy) => format!(
            "Other programs keep its members busy for {} of the time, so that they were not read to learn their \
             rate: the progress line says how long it takes.",
            percent(busy)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::checkpoint::example;
    use super::super::start_times::StartTimes;
    use super::super::target::tests::find;
    use super::*;
    use crate::args::tests::parsed;
    use jiff::Zoned;

    const NOW: &str = "2026-11-27T22:00:00+01:00[Europe/Berlin]";
    const SUNDAY: &str = "2026-11-29T00:00:00+01:00[Europe/Berlin]";

    /// Forecast on a Friday at ten in the evening, for 72 GiB of which the share `done` was checked in `ran_s` seconds.
    fn sentences(command: &str, done: f64, ran_s: f64, speed: Option<Speed>) -> String {
        let args = parsed(command);
        let now: Zoned = NOW.parse().unwrap();
        let of = 72 << 21;
        let checkpoint = Checkpoint {
            of,
            done: (of as f64 * done) as u64,
            ran_s,
            ..example()
        };
        // It was begun by hand in hours of its own, which end at half past ten.
        let ends = now.timestamp() + jiff::SignedDuration::from_mins(30);
        let starts = StartTimes {
            ends: args.window.map(|_| ends),
            hours: args.window,
            ..StartTimes::default()
        };
        let by: Zoned = SUNDAY.parse().unwrap();
        let due = args.by.map(|_| DueTime::new(by, &starts, &now));
        let known = ForecastInput {
            checkpoint: &checkpoint,
            args: &args,
            due: due.as_ref(),
            speed,
        };
        forecast(&find(&[]).unwrap(), &known, now.timestamp()).join(" ")
    }

    fn assert_contains(sentences: &str, words: &[&str]) {
        for word in words {
            assert!(sentences.contains(word), "{word} is not in: {sentences}");
        }
    }

    #[test]
    fn it_says_what_is_done_what_is_kept_and_how_long_it_takes() {
        let first = sentences("disksmith scrub md0", 0.0, 0.0, None);
        assert_contains(
            &first,
            &[
                "/dev/md0: raid10 of 2 members, 1 MiB of each; md counts 72 GiB to go",
                "up to 1.5 times the mean latency and the p99",
            ],
        );
        assert!(!first.contains("takes"), "nothing is known: {first}");
        let again = sentences("disksmith scrub md0 --keep-p99 5ms", 0.5, 3686.4, None);
        assert_contains(
            &again,
            &[
                "md counts 36 GiB to go; a p99 of 5.00 ms is kept for others.",
                "At its rate so far, 10.0 MiB/s, it takes 61 min more.",
            ],
        );
        assert!(!again.contains("too late"), "{again}");
    }

    #[test]
    fn the_duration_is_known_of_idle_members_alone() {
        let with = |speed| sentences("disksmith scrub md0", 0.0, 0.0, Some(speed));
        assert_contains(
            &with(Speed::Alone((20 << 20) as f64)),
            &["alone it takes about 61 min, and longer beside others."],
        );
        assert_contains(
            &with(Speed::Busy(0.5)),
            &["busy for 50 % of the time, so that they were not read"],
        );
    }

    #[test]
    fn a_deadline_is_held_against_the_hours_in_which_it_may_run() {
        // 26 hours of the clock are left, and half an hour and five hours of those that are open.
        let open = sentences("disksmith scrub md0 --by sunday", 0.5, 3686.4, None);
        assert_contains(
            &open,
            &["by Sunday 2026-11-29 00:00, it must make 0.4 MiB/s"],
        );
        assert!(!open.contains("too late"), "{open}");
        let night = "disksmith scrub md0 --by sunday --window 01:00-06:00";
        let hours = sentences(night, 0.5, 3686.4, None);
        assert_contains(
            &hours,
            &["for which it has 5.5 h in its hours, it must make 1.9 MiB/s"],
        );
        assert!(!hours.contains("too late"), "{hours}");
        // It takes ten hours: by the clock there is time enough.
        let late = sentences(night, 0.5, 36864.0, None);
        assert_contains(
            &late,
            &["At its rate so far, 1.0 MiB/s, it takes 10.2 h more. That is too late"],
        );
        assert_contains(
            &late,
            &["the latency target and --by cannot both be met. The latency target is kept"],
        );
        let wins = sentences(&format!("{night} --deadline-wins"), 0.5, 36864.0, None);
        assert_contains(
            &wins,
            &[
                "the deadline is kept",
                "faster than the latency target allows",
            ],
        );
        let slow = Speed::Alone((2 << 20) as f64);
        assert_contains(
            &sentences(night, 0.0, 0.0, Some(slow)),
            &["also with no other programs"],
        );
    }
}
