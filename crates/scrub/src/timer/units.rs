//! Text of the units (systemd.service(5), systemd.timer(5)).

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Settings of the timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimerSettings {
    /// The absolute path of this program.
    pub program: PathBuf,
    /// Arguments of the program: `scrub`, the arrays or `--all`, and the requested options.
    pub args: Vec<OsString>,
    /// The absolute path of the ledger. A service has no home folder from which the path would follow, and the command
    /// that runs after it must use the same ledger.
    pub ledger: PathBuf,
    /// Times of the starts, in the format of `OnCalendar=`.
    pub calendar: String,
    /// True if a start that was missed while the host was down is made up for at its next boot, at any hour
    /// (`Persistent=`).
    pub makes_up: bool,
}

/// First line of the units, by which this program recognizes them.
pub(crate) const FIRST_LINE: &str = "# Written by `disksmith scrub --install-timer`; \
                               `disksmith scrub --uninstall-timer` takes it out.";

/// Maximum random delay of a start, in seconds, so that many hosts on the same storage do not start at once.
const MAX_RANDOM_DELAY_S: u64 = 900;

impl TimerSettings {
    /// Text of the service.
    ///
    /// It has no low CPU or I/O priority: the check itself runs in kernel threads, which the service's priority does
    /// not affect, and a pacer without CPU time cannot yield in time. It is stopped with SIGINT, like Ctrl-C: the
    /// program then restores all tunables and stores its progress. It has two minutes for that, since a disk may hang.
    /// The duration of a check is not limited.
    ///
    /// Only the program itself is killed (`KillMode=process`, systemd.kill(5)), and not its guard. The guard ends with
    /// the program, unless it waits for md to recover before it can restore the remaining tunables: then it outlives
    /// the service. With `mixed`, systemd would kill it as soon as the program has ended.
    ///
    /// After a kill of all its processes at once (systemd.kill(5)) there is no guard either; so `--status`, which
    /// restores tunables, runs after each end of the service. The service has the usual OOM score, which its guard
    /// would inherit.
    ///
    /// The service fails when mismatches were found (1), the command was refused (2), or the scrub ended early (3). An
    /// end by its hours is no failure, by `--scheduled`. On a host without an array that can be checked, the service
    /// is skipped.
    pub(crate) fn service(&self) -> String {
        format!(
            "{FIRST_LINE}\n\
             [Unit]\n\
             Description=Paced check of software RAID\n\
             # An array with redundancy.\n\
             ConditionPathExistsGlob=/sys/block/*/md/sync_action\n\
             After=local-fs.target\n\
             \n\
             [Service]\n\
             Type=oneshot\n\
             ExecStart={}\n\
             # Puts back what was left, also after a kill; 1 only says that there are mismatches.\n\
             ExecStopPost=-{}\n\
             KillMode=process\n\
             KillSignal=SIGINT\n\
             TimeoutStartSec=infinity\n\
             TimeoutStopSec=2min\n",
            self.command(self.args.iter().map(OsString::as_os_str)),
            self.command(["scrub", "--status"].map(OsStr::new).into_iter()),
        )
    }

    /// A command line of this program, with its ledger.
    fn command<'a>(&'a self, args: impl Iterator<Item = &'a OsStr>) -> String {
        let words = std::iter::once(self.program.as_os_str()).chain(args);
        let words = words.chain([OsStr::new("--ledger"), self.ledger.as_os_str()]);
        words.map(quoted).collect::<Vec<String>>().join(" ")
    }

    /// The first argument or path that cannot be written into a unit.
    pub(crate) fn unwritable(&self) -> Option<&OsStr> {
        let paths = [self.program.as_os_str(), self.ledger.as_os_str()];
        let mut words = self.args.iter().map(OsString::as_os_str).chain(paths);
        let is_writable = |word: &str| !word.chars().any(char::is_control);
        words.find(|word| !word.to_str().is_some_and(is_writable))
    }

    /// Text of the timer.
    pub(crate) fn timer(&self) -> String {
        format!(
            "{FIRST_LINE}\n\
             [Unit]\n\
             Description=Paced check of software RAID\n\
             \n\
             [Timer]\n\
             OnCalendar={}\n\
             RandomizedDelaySec={MAX_RANDOM_DELAY_S}\n\
             Persistent={}\n\
             \n\
             [Install]\n\
             WantedBy=timers.target\n",
            self.calendar, self.makes_up
        )
    }
}

/// A word of a command line in a unit: quoted where necessary, with doubled characters where systemd would expand them
/// (systemd.service(5), COMMAND LINES).
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy().replace('%', "%%").replace('$', "$$");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%$".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word;
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_written_so_that_systemd_reads_them_back() {
        let words = ["scrub", "md0", "a b", "$HOME", "5%", "\"\\", ""];
        let service = TimerSettings {
            program: "/bin/true".into(),
            args: words.map(OsString::from).to_vec(),
            ledger: "/var/lib/a ledger.db".into(),
            calendar: "daily".to_owned(),
            makes_up: true,
        }
        .service();
        for line in [
            "ExecStart=/bin/true scrub md0 \"a b\" $$HOME 5%% \"\\\"\\\\\" \"\" --ledger \"/var/lib/a ledger.db\"",
            // The service itself restores the tunables after a kill.
            "ExecStopPost=-/bin/true scrub --status --ledger \"/var/lib/a ledger.db\"",
            // The default control-group, and mixed, would kill the guard when the program has ended.
            "KillMode=process",
        ] {
            assert!(service.lines().any(|own| own == line), "{line}: {service}");
        }
        // The guard would inherit the first, and with the second a failed member (3) would count as success.
        for key in ["OOMScoreAdjust", "SuccessExitStatus"] {
            assert!(!service.contains(key), "{service}");
        }
    }
}
