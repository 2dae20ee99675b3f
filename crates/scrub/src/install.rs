//! `--install-timer` and `--uninstall-timer`: settings of the timer, from the arguments.

use std::ffi::OsString;

use linux::block::Devices;
use linux::md;

use super::start_times::DEFAULT_START;
use super::timer::{self, TimerHost, TimerSettings};
use crate::args::ScrubArgs;
use crate::calendar::DueBy;
use array::programs::InstalledPrograms;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};

/// The first Sunday of a month at one o'clock.
const MONTHLY: &str = "Sun *-*-1..7 01:00:00";
/// Time from the end of one scrub to the start of the next, where a scrub takes several nights.
const DEFAULT_INTERVAL: &str = "28d";

/// Installs or removes the timer.
pub(crate) fn install(args: &ScrubArgs, devices: &Devices, context: &mut Context) -> Outcome {
    let wanted = args
        .install_timer
        .then(|| requested_timer(args, devices, context));
    let wanted = wanted.transpose()?;
    let mut message = String::new();
    let done = {
        let mut host = TimerHost {
            root: context.root.system().to_path_buf(),
            programs: &mut InstalledPrograms,
            report: &mut |text| message.push_str(text),
            dry: args.dry_run,
        };
        match &wanted {
            Some(wanted) => timer::install(&mut host, wanted),
            None => timer::uninstall(&mut host),
        }
    };
    context.print(&message)?;
    done.map(|()| CommandEnd::Done)
}

/// Settings of the timer, from the arguments.
fn requested_timer(
    args: &ScrubArgs,
    devices: &Devices,
    context: &Context,
) -> Result<TimerSettings, Failure> {
    let unknown = |word: &&String| md::find(&context.root, devices, word).is_none();
    if let Some(word) = args.arrays.iter().find(unknown) {
        return Err(Failure::refused(format!(
            "{word} is not an array that the kernel lists; --all is all arrays that exist when the timer \
             runs"
        )));
    }
    if matches!(args.by, Some(DueBy::Date(_))) {
        return Err(Failure::refused(
            "--by with a date has passed when the timer runs again; give a weekday",
        ));
    }
    let ledger = std::path::absolute(context.ledger_path()?).refused()?;
    let program = std::env::current_exe().refused()?;
    Ok(TimerSettings {
        program,
        args: scrub_arguments(std::env::args_os().skip(1), args),
        ledger,
        calendar: calendar(args),
        makes_up: catches_up(args),
    })
}

/// Arguments of the command that the timer runs: those of this command, without the options of the timer, and without
/// the ledger, which the service passes to both of its commands.
fn scrub_arguments(given: impl Iterator<Item = OsString>, args: &ScrubArgs) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut given = given;
    while let Some(word) = given.next() {
        let text = word.to_string_lossy();
        if text == "--ledger" {
            given.next();
        } else if !text.starts_with("--ledger=") && text != "--install-timer" && text != "--dry-run"
        {
            words.push(word);
        }
    }
    // No user reads hints or resumes the scrub: the timer's next start does.
    words.push("--scheduled".into());
    if is_nightly(args) && args.every.is_none() {
        words.extend(["--every", DEFAULT_INTERVAL].map(OsString::from));
    }
    words
}

/// True if the timer starts the scrub each night: where a start may end early, or `--every` decides when a scrub is
/// due.
fn is_nightly(args: &ScrubArgs) -> bool {
    args.window.is_some() || args.lasts.is_some() || args.every.is_some()
}

/// True if systemd makes up for a missed start. With hours the scrub waits for them, and a monthly scrub must not be
/// missed. A nightly start without hours is not made up for, so that it does not begin at noon.
fn catches_up(args: &ScrubArgs) -> bool {
    args.window.is_some() || !is_nightly(args)
}

/// Calendar expression of the timer's starts.
fn calendar(args: &ScrubArgs) -> String {
    match args.window {
        Some(hours) => format!("*-*-* {}", hours.from.strftime("%H:%M:%S")),
        None if is_nightly(args) => format!("*-*-* {}", DEFAULT_START.strftime("%H:%M:%S")),
        None => MONTHLY.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::super::timer::faults;
    use super::*;
    use crate::args::tests::parsed;
    use array::programs::Programs as _;
    use linux::exec::Exec;

    /// Timer of a command.
    fn wanted_of(command: &str) -> TimerSettings {
        let args = parsed(command);
        let given = command.split(' ').skip(1).map(OsString::from);
        TimerSettings {
            // An existing program: systemd checks that it exists.
            program: "/bin/true".into(),
            args: scrub_arguments(given, &args),
            ledger: "/l.db".into(),
            calendar: calendar(&args),
            makes_up: catches_up(&args),
        }
    }

    /// Calendar expression of a command's timer, `Persistent=`, and the commands of its service.
    fn made(command: &str) -> [String; 4] {
        let wanted = wanted_of(command);
        let service = wanted.service();
        let runs = |key: &str| {
            let line = service.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap().replace("/bin/true", "disksmith")
        };
        let timer = wanted.timer();
        let made_up = timer
            .lines()
            .find_map(|line| line.strip_prefix("Persistent="));
        let made_up = made_up.unwrap().to_owned();
        let (runs, after) = (runs("ExecStart="), runs("ExecStopPost=-"));
        [wanted.calendar, made_up, runs, after]
    }

    #[test]
    fn the_timer_runs_the_given_command_and_knows_its_ledger() {
        for (command, calendar, made_up, words) in [
            (
                "disksmith scrub --install-timer --all",
                MONTHLY,
                "true",
                "scrub --all --scheduled --ledger /l.db",
            ),
            (
                "disksmith --ledger x scrub --install-timer --dry-run --window 23:30-05:00 md0 --keep-p99 5ms",
                "*-*-* 23:30:00",
                "true",
                "scrub --window 23:30-05:00 md0 --keep-p99 5ms --scheduled --every 28d --ledger /l.db",
            ),
            (
                "disksmith scrub --install-timer --all --every 7d --ledger=y",
                "*-*-* 01:00:00",
                "false",
                "scrub --all --every 7d --scheduled --ledger /l.db",
            ),
            (
                "disksmith scrub --install-timer --all --for 2h --locate",
                "*-*-* 01:00:00",
                "false",
                "scrub --all --for 2h --locate --scheduled --every 28d --ledger /l.db",
            ),
        ] {
            let runs = format!("disksmith {words}");
            // The command that restores tunables after a kill must use the same ledger.
            let after = "disksmith scrub --status --ledger /l.db".to_owned();
            for command in [&runs, &after] {
                parsed(command);
            }
            let (calendar, made_up) = (calendar.to_owned(), made_up.to_owned());
            assert_eq!(made(command), [calendar, made_up, runs, after]);
        }
    }

    #[test]
    fn systemd_takes_the_units_of_all_options() {
        if !InstalledPrograms.has("systemd-analyze") {
            return skip::skipped("systemd-analyze is not installed");
        }
        for options in [
            "--all",
            "md0 --window 00:00-04:45",
            "--all --for 2h --locate",
            "--all --every 7d --keep-p99 5ms",
        ] {
            let wanted = wanted_of(&format!("disksmith scrub --install-timer {options}"));
            let found = faults(&mut InstalledPrograms, &wanted).unwrap();
            assert!(found.is_empty(), "{options}: {found:#?}");
        }
        // The first Sunday of a month, as systemd understands it.
        let base = "--base-time=2026-03-02 00:00:00 UTC";
        let calendar = Exec::new("systemd-analyze").args(["calendar", base, MONTHLY]);
        let text = calendar.zone("UTC").run().unwrap().text();
        assert!(text.contains("Sun 2026-04-05 01:00:00 UTC"), "{text}");
    }
}
