//! A check that is scheduled: its source, its program and its next start.

use std::path::PathBuf;

use jiff::Zoned;

/// Program that checks arrays on a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checker {
    /// Debian's script, `/usr/share/mdadm/checkarray`.
    Checkarray,
    /// The script that comes with mdadm, `/usr/share/mdadm/mdcheck`.
    Mdcheck,
    /// Red Hat's script, `/usr/sbin/raid-check`.
    RaidCheck,
    /// A command that writes to `sync_action`, of another program or an administrator.
    Own,
}

impl Checker {
    /// The checker that a command starts; `None` for a command that checks no array.
    pub(super) fn of(command: &str) -> Option<Checker> {
        let named = [
            ("checkarray", Checker::Checkarray),
            ("mdcheck", Checker::Mdcheck),
            ("raid-check", Checker::RaidCheck),
        ]
        .into_iter()
        .find(|(word, _)| command.contains(word))
        .map(|(_, checker)| checker);
        // A command that only reads `sync_action`, such as a monitor's, names no action.
        let writes = command.contains("sync_action")
            && (command.contains("check") || command.contains("repair"));
        named.or(writes.then_some(Checker::Own))
    }

    /// Name of the checker in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Checker::Checkarray => "checkarray",
            Checker::Mdcheck => "mdcheck",
            Checker::RaidCheck => "raid-check",
            Checker::Own => "a command that writes to sync_action",
        }
    }
}

/// Where a check is scheduled, such as a timer of systemd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScheduleSource {
    /// A timer of systemd.
    Timer {
        /// The unit's name.
        unit: String,
        /// True if links in `/etc` enable it, which systemctl can remove.
        is_enabled: bool,
        /// True if the timer is active.
        is_active: bool,
    },
    /// A crontab, as a path on the host, with the number of the line from 1; without a number, a script in a folder
    /// such as `/etc/cron.weekly`.
    Cron(PathBuf, Option<usize>),
}

impl std::fmt::Display for ScheduleSource {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            ScheduleSource::Timer { unit, .. } => out.write_str(unit),
            ScheduleSource::Cron(file, Some(line)) => {
                write!(out, "{}, line {line}", file.display())
            }
            ScheduleSource::Cron(file, None) => write!(out, "{}", file.display()),
        }
    }
}

/// A scheduled check, which may be turned off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// Source of the schedule.
    pub source: ScheduleSource,
    /// Program that is started.
    pub checker: Checker,
    /// The command that starts it.
    pub command: String,
    /// Reason why the check does not run, as the end of a sentence that begins with the source; `None` where it runs.
    pub off: Option<String>,
    /// Next start; `None` where the check does not run, or the time is not known.
    pub next: Option<Zoned>,
    /// Sentence with the times at which cron starts the check, as written in the crontab.
    pub times: Option<String>,
    /// True if the check runs now.
    pub runs_now: bool,
    /// Kernel names of the arrays that the check skips.
    pub skips: Vec<String>,
}

impl Scheduled {
    pub(super) fn new(source: ScheduleSource, checker: Checker, command: &str) -> Scheduled {
        Scheduled {
            source,
            checker,
            command: command.to_owned(),
            off: None,
            next: None,
            times: None,
            runs_now: false,
            skips: Vec::new(),
        }
    }

    /// True if `AUTOCHECK` applies to the command: checkarray reads it when an option tells it that cron starts it.
    pub(crate) fn heeds_autocheck(&self) -> bool {
        let is_option = |word: &str| {
            word == "--cron"
                || (word.starts_with('-') && !word.starts_with("--") && word.contains('c'))
        };
        self.checker == Checker::Checkarray
            && self
                .command
                .split(|c: char| c.is_whitespace() || c == ';')
                .skip_while(|word| !word.ends_with("/checkarray") && *word != "checkarray")
                .any(is_option)
    }

    /// The check and its next start, as a sentence.
    pub(crate) fn sentence(&self) -> String {
        let (source, checker) = (&self.source, self.checker.name());
        match (&self.off, &self.next, &self.times) {
            (Some(why), ..) => format!("{source} would run {checker}, and does not: {why}."),
            (None, Some(next), _) => {
                format!("{source} runs {checker}, next at {}.", shown(next))
            }
            (None, None, Some(times)) => format!("{source} runs {checker}: {times}"),
            (None, None, None) => format!("{source} runs {checker}."),
        }
    }

    /// Sentence on a collision with a scrub of an array between two times; `None` where there is none. Where the end of
    /// the scrub is not known, each check that is not off may collide. `array` is the kernel name of the array.
    pub(crate) fn collision(
        &self,
        array: &str,
        from: &Zoned,
        to: Option<&Zoned>,
    ) -> Option<String> {
        // A check at the start of the host does not collide.
        let times = self.times.as_deref();
        let is_at_start = times.is_some_and(|times| times.contains("'@reboot'"));
        let is_skipped = self.skips.iter().any(|skipped| skipped == array);
        if self.off.is_some() || is_at_start || is_skipped {
            return None;
        }
        let (source, checker) = (&self.source, self.checker.name());
        if self.runs_now {
            return Some(format!("{source} runs {checker} now."));
        }
        let Some(to) = to else {
            return Some(self.sentence());
        };
        let is_stopped = matches!(
            &self.source,
            ScheduleSource::Timer {
                is_active: false,
                is_enabled: false,
                ..
            }
        );
        match &self.next {
            Some(begins) if begins < from || begins >= to => None,
            Some(begins) => Some(format!(
                "{source} runs {checker} at {}, while this scrub runs until about {}.",
                shown(begins),
                shown(to)
            )),
            // A timer that is neither started nor enabled begins only after another, which is found too.
            None if is_stopped => None,
            None => {
                let times = times.map_or_else(|| ".".to_owned(), |times| format!(": {times}"));
                Some(format!(
                    "{source} runs {checker}, and may do so before this scrub is done{times}"
                ))
            }
        }
    }
}

/// Result of the search for scheduled checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScheduledChecks {
    /// The scheduled checks, including those that are turned off.
    pub scheduled: Vec<Scheduled>,
    /// Files that could not be read, as sentences.
    pub unread: Vec<String>,
}

impl ScheduledChecks {
    /// Checks that are not turned off.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Scheduled> {
        self.scheduled.iter().filter(|one| one.off.is_none())
    }
}

/// A time as text, to the minute, with its zone.
fn shown(moment: &Zoned) -> String {
    moment.strftime("%Y-%m-%d %H:%M %Z").to_string()
}
