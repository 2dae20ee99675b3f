//! The units that are written, as text (systemd.service(5), systemd.timer(5)).

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Settings of the timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimerSettings {
    /// The absolute path of this program.
    pub program: PathBuf,
    /// Its arguments: `scrub`, the arrays or `--all`, and the options that were requested.
    pub args: Vec<OsString>,
    /// The absolute path of the ledger. A service has no home in which it would be searched for, and what
    /// runs after it must look where it has noted its tunables.
    pub ledger: PathBuf,
    /// Time of its starts, as `OnCalendar=` has it.
    pub calendar: String,
    /// True if a start that the host has slept through is made up for when it is up again, at whatever hour
    /// that is.
    pub makes_up: bool,
}

/// The first line of what is written, by which it is known again.
pub(crate) const FIRST_LINE: &str = "# Written by `disksmith scrub --install-timer`; \
                               `disksmith scrub --uninstall-timer` takes it out.";

/// Seconds by which it may begin later, chosen at random: so that many hosts on one storage do not begin at once.
const MAX_RANDOM_DELAY_S: u64 = 900;

impl TimerSettings {
    /// The service.
    ///
    /// It is not made nice, nor given a low I/O class: the check itself runs in threads of the kernel,
    /// which neither reaches, and a pacer that gets no processor cannot yield in time. SIGINT is what
    /// Ctrl-C sends: the program then puts everything back and keeps its place, and it is given two
    /// minutes for that, since a disk may be stuck. A check has no limit of time of its own.
    ///
    /// Only the program itself is killed (`KillMode=process`, systemd.kill(5)), and not its guard, which
    /// ends with it, unless it waits for md to recover before it can put the rest back: then it outlives
    /// the service. With `mixed`, systemd would kill it as soon as the program has ended.
    ///
    /// After a kill of all its processes at once (systemd.kill(5)) there is no guard any more either; so
    /// `--status`, which puts back what was left, runs after each end, however it came. For the same
    /// reason it is no more likely to be killed for memory than others: it has little of it.
    ///
    /// It fails, and is seen to, when mismatches were found (1), it was refused (2), or it ended before
    /// its end (3). That its hours are over is none of these: the command has `--scheduled`. A host without an array
    /// that can be checked is none either: the service is skipped.
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

    /// The first path or argument that cannot be written into a unit.
    pub(crate) fn unwritable(&self) -> Option<&OsStr> {
        let paths = [self.program.as_os_str(), self.ledger.as_os_str()];
        let mut words = self.args.iter().map(OsString::as_os_str).chain(paths);
        let is_writable = |word: &str| !word.chars().any(char::is_control);
        words.find(|word| !word.to_str().is_some_and(is_writable))
    }

    /// The timer.
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

/// A word of a command line in a unit: in quotes where it has to be, with what systemd would expand
/// written twice (systemd.service(5), COMMAND LINES).
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
            // What is left of a kill is put back by the service itself.
            "ExecStopPost=-/bin/true scrub --status --ledger \"/var/lib/a ledger.db\"",
            // control-group, the default, and mixed would kill the guard when the program has ended.
            "KillMode=process",
        ] {
            assert!(service.lines().any(|own| own == line), "{line}: {service}");
        }
        // The guard would have the first too, and with the second a member that failed would be a success (3).
        for key in ["OOMScoreAdjust", "SuccessExitStatus"] {
            assert!(!service.contains(key), "{service}");
        }
    }
}
