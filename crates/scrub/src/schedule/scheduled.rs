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
    /// The one that a command runs, if it does.
    pub(super) fn of(command: &str) -> Option<Checker> {
        let named = [
            ("checkarray", Checker::Checkarray),
            ("mdcheck", Checker::Mdcheck),
            ("raid-check", Checker::RaidCheck),
        ]
        .into_iter()
        .find(|(word, _)| command.contains(word))
        .map(|(_, checker)| checker);
        // Who only examines it, such as a monitor, names no action.
        let writes = command.contains("sync_action")
            && (command.contains("check") || command.contains("repair"));
        named.or(writes.then_some(Checker::Own))
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Checker::Checkarray => "checkarray",
            Checker::Mdcheck => "mdcheck",
            Checker::RaidCheck => "raid-check",
            Checker::Own => "a command that writes to sync_action",
        }
    }
}

/// A timer of systemd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    /// The unit's name.
    pub unit: String,
    /// It is enabled by links in `/etc`, which systemctl can take out again.
    pub is_enabled: bool,
    /// It is started.
    pub is_active: bool,
}

/// Source of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A timer of systemd.
    Timer(Timer),
    /// A line of a crontab: the file, as a path on the host, and the line's number from 1.
    CronLine(PathBuf, usize),
    /// A script in a folder such as `/etc/cron.weekly`.
    CronScript(PathBuf),
}

impl std::fmt::Display for Source {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Source::Timer(timer) => out.write_str(&timer.unit),
            Source::CronLine(file, line) => write!(out, "{}, line {line}", file.display()),
            Source::CronScript(file) => write!(out, "{}", file.display()),
        }
    }
}

/// A check that is scheduled, or would be if it were not turned off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// Source of the schedule.
    pub source: Source,
    /// Program that is started.
    pub checker: Checker,
    /// The command that starts it.
    pub command: String,
    /// Reason for which it does not run, as the end of a sentence that begins with the source; `None` where
    /// it does.
    pub off: Option<String>,
    /// Next start; `None` where that is not known.
    pub next: Option<Zoned>,
    /// It runs now.
    pub runs_now: bool,
    /// True if it only goes on with what another has begun.
    pub continues: bool,
    /// Arrays that it leaves out, by their names in the kernel.
    pub skips: Vec<String>,
    /// Parts of its times that are not understood, or not known, as sentences.
    pub unclear: Vec<String>,
}

impl Scheduled {
    pub(super) fn new(source: Source, checker: Checker, command: &str) -> Scheduled {
        Scheduled {
            source,
            checker,
            command: command.to_owned(),
            off: None,
            next: None,
            runs_now: false,
            continues: false,
            skips: Vec::new(),
            unclear: Vec::new(),
        }
    }

    /// True if `AUTOCHECK` turns it off: checkarray heeds that when it is told that cron starts it.
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

    /// Next start; `None` where it does not run, or that is not known.
    pub(crate) fn next(&self) -> Option<&Zoned> {
        self.next.as_ref().filter(|_| self.off.is_none())
    }

    /// As a sentence: what it is, and when it begins next.
    pub(crate) fn sentence(&self) -> String {
        let (source, checker) = (&self.source, self.checker.name());
        if let Some(why) = &self.off {
            return format!("{source} would run {checker}, and does not: {why}.");
        }
        let unclear: String = self.unclear.iter().map(|text| format!(" {text}")).collect();
        match self.next() {
            Some(next) => format!("{source} runs {checker}, next at {}.{unclear}", shown(next)),
            None => format!("{source} runs {checker}.{unclear}"),
        }
    }
}

/// Scheduled checks that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScheduledChecks {
    /// The checks that are scheduled, also those that are turned off.
    pub scheduled: Vec<Scheduled>,
    /// Files that could not be read, as sentences.
    pub unread: Vec<String>,
}

impl ScheduledChecks {
    /// Those that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Scheduled> {
        self.scheduled.iter().filter(|one| one.off.is_none())
    }
}

/// A moment as a person reads it.
pub(super) fn shown(moment: &Zoned) -> String {
    moment.strftime("%Y-%m-%d %H:%M %Z").to_string()
}
