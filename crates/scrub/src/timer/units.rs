//! The units that are written, as text (systemd.service(5), systemd.timer(5)).

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Settings of the timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The absolute path of this program.
    pub program: PathBuf,
    /// Its arguments: `scrub`, the arrays or `--all`, and the options that were requested.
    pub args: Vec<OsString>,
    /// The absolute path of the ledger. A service has no home in which it would be searched for, and what
    /// runs after it must look where it has noted its tunables.
    pub ledger: PathBuf,
    /// When it begins, as `OnCalendar=` has it.
    pub calendar: String,
    /// True if a start that the host has slept through is made up for when it is up again, at whatever hour
    /// that is.
    pub makes_up: bool,
    /// By how many seconds it may begin later, chosen at random: so that many hosts on one storage do
    /// not begin at once.
    pub delay: u64,
}

/// The first line of what is written, by which it is known again.
pub(crate) const MARK: &str = "# Written by `disksmith scrub --install-timer`; \
                               `disksmith scrub --uninstall-timer` takes it out.";

/// True if a path or an argument cannot be written into a unit.
fn is_unwritable(word: &OsStr) -> bool {
    word.to_str()
        .is_none_or(|word| word.chars().any(char::is_control))
}

impl Wanted {
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
    /// its end (3). That its hours are over is none of these: the command has `--scheduled`.
    pub(crate) fn service(&self) -> String {
        format!(
            "{MARK}\n\
             [Unit]\n\
             Description=Paced check of software RAID\n\
             ConditionPathExists=/proc/mdstat\n\
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
        let mut words = self.args.iter().map(OsString::as_os_str);
        let paths = [self.program.as_os_str(), self.ledger.as_os_str()];
        words
            .find(|word| is_unwritable(word))
            .or_else(|| paths.into_iter().find(|word| is_unwritable(word)))
    }

    /// The timer.
    pub(crate) fn timer(&self) -> String {
        format!(
            "{MARK}\n\
             [Unit]\n\
             Description=Paced check of software RAID\n\
             \n\
             [Timer]\n\
             OnCalendar={}\n\
             RandomizedDelaySec={}\n\
             Persistent={}\n\
             \n\
             [Install]\n\
             WantedBy=timers.target\n",
            self.calendar, self.delay, self.makes_up
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
pub(crate) mod tests {
    use super::*;
    use std::process::Command;

    fn wanted() -> Wanted {
        Wanted {
            program: "/bin/true".into(),
            args: [
                "scrub",
                "/dev/md0",
                "--window",
                "01:00-06:00",
                "a b",
                "$HOME",
                "5%",
                "\"\\",
                "",
            ]
            .map(OsString::from)
            .to_vec(),
            ledger: "/var/lib/a ledger.db".into(),
            calendar: "*-*-* 01:00:00".to_owned(),
            makes_up: true,
            delay: 900,
        }
    }

    #[test]
    fn a_command_is_written_so_that_systemd_reads_it_back() {
        let service = wanted().service();
        let line = "ExecStart=/bin/true scrub /dev/md0 --window 01:00-06:00 \"a b\" $$HOME 5%% \
                    \"\\\"\\\\\" \"\" --ledger \"/var/lib/a ledger.db\"\n";
        assert!(service.contains(line), "{service}");
        assert!(is_unwritable(OsStr::new("a\nb")) && !is_unwritable(OsStr::new("a b")));
    }

    #[test]
    fn rests_of_a_kill_are_put_back_by_the_service_itself() {
        let service = wanted().service();
        let line = "\nExecStopPost=-/bin/true scrub --status --ledger \"/var/lib/a ledger.db\"\n";
        assert!(service.contains(line), "{service}");
        assert!(
            !service.contains("OOMScoreAdjust"),
            "its guard would have it too"
        );
        assert!(
            !service.contains("SuccessExitStatus"),
            "a member that failed in mid-check ends it with 3, and would be a success"
        );
    }

    #[test]
    fn the_guard_outlives_the_service() {
        let service = wanted().service();
        let mode = service
            .lines()
            .find_map(|line| line.strip_prefix("KillMode="));
        // Both control-group, the default, and mixed kill what is left when the program has ended.
        assert_eq!(mode, Some("process"), "{service}");
    }

    /// Faults that systemd's own program finds in units; `None`, with a note, where it is not installed.
    pub(crate) fn faults(service: &str, timer: &str) -> Option<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["disksmith-scrub.service", "disksmith-scrub.timer"]
            .map(|name| folder.path().join(name));
        std::fs::write(&paths[0], service).unwrap();
        std::fs::write(&paths[1], timer).unwrap();
        let mut verify = Command::new("systemd-analyze");
        let Ok(output) = verify.arg("verify").args(&paths).output() else {
            skip::skipped("systemd-analyze is not installed");
            return None;
        };
        let message = String::from_utf8_lossy(&output.stderr);
        // What it says of other units of this machine is not about these.
        let ours = message
            .lines()
            .filter(|line| line.contains("disksmith-scrub"));
        Some(ours.map(str::to_owned).collect())
    }

    #[test]
    fn systemd_finds_no_fault_with_the_units_where_it_is_installed() {
        let (service, timer) = (wanted().service(), wanted().timer());
        let Some(found) = faults(&service, &timer) else {
            return;
        };
        assert!(found.is_empty(), "{found:#?}");
        // It would find them.
        let service = service.replace("KillMode=", "KillMood=");
        let timer = timer.replace("Persistent=true", "Persistent=often");
        let found = faults(&service, &timer).unwrap();
        assert_eq!(found.len(), 2, "{found:#?}");
    }
}
