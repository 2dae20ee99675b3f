//! Installation and removal of the timer in a folder that represents `/`, with a simulated systemctl that only creates
//! and removes links.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use linux::exec::{self, ProgramEnd, ProgramOutput};

use super::super::schedule::tests::{Host, Systemd};
use super::*;

/// A simulated systemctl, with the visible effects of the real one.
struct Systemctl {
    systemd: Systemd,
    /// The commands that change something.
    lines: Vec<String>,
    /// The command that fails.
    fails: Option<&'static str>,
}

impl Systemctl {
    /// The folder that `WantedBy=` of a unit names.
    fn wants(&self, unit: &str) -> PathBuf {
        let text = self.systemd.text(unit).unwrap_or_default();
        let by = text.lines().find_map(|line| line.strip_prefix("WantedBy="));
        let by = by.unwrap_or("none.target").trim();
        self.systemd
            .root
            .join(UNIT_FOLDER)
            .join(format!("{by}.wants"))
    }
}

impl Programs for Systemctl {
    fn run(&mut self, program: &Exec) -> Result<ProgramOutput, exec::Error> {
        let line = program.line();
        if line.starts_with("systemctl show") || line.starts_with("systemd-analyze") {
            return self.systemd.run(program);
        }
        let status = |code| ExitStatus::from_raw(code << 8);
        self.lines.push(line.clone());
        if self.fails.is_some_and(|fails| line.contains(fails)) {
            return Err(exec::Error::Failed {
                command: line,
                status: ProgramEnd(status(1)),
                stderr: "no".to_owned(),
            });
        }
        let words: Vec<&str> = line.split(' ').collect();
        let unit = words.last().unwrap();
        let null = self.systemd.root.join(UNIT_FOLDER).join(unit);
        let link = self.wants(unit).join(unit);
        match words[1] {
            "enable" => {
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                let _ = std::os::unix::fs::symlink(format!("/unit/{unit}"), &link);
            }
            "disable" => {
                let _ = fs::remove_file(link);
            }
            "mask" => std::os::unix::fs::symlink("/dev/null", null).unwrap(),
            "unmask" => fs::remove_file(null).unwrap(),
            _ => {}
        }
        Ok(ProgramOutput {
            status: status(0),
            stdout: Vec::new(),
            stderr: Vec::new(),
        })
    }

    fn has(&self, program: &str) -> bool {
        self.systemd.has(program)
    }
}

fn wanted() -> TimerSettings {
    TimerSettings {
        // An existing program: systemd checks that it exists.
        program: "/bin/true".into(),
        args: ["scrub", "--all"].map(Into::into).to_vec(),
        ledger: "/var/lib/disksmith/ledger.db".into(),
        calendar: "Sun *-*-1..7 01:00:00".to_owned(),
        makes_up: true,
    }
}

/// Runs a function on a host. Returns its result, its messages, and the calls of systemctl.
fn with<T>(
    host: &Host,
    dry: bool,
    fails: Option<&'static str>,
    work: impl FnOnce(&mut TimerHost) -> T,
) -> (T, String, Vec<String>) {
    let mut programs = Systemctl {
        systemd: host.systemd(),
        lines: Vec::new(),
        fails,
    };
    let mut message = String::new();
    let done = work(&mut TimerHost {
        root: host.0.path().to_path_buf(),
        programs: &mut programs,
        report: &mut |text| message.push_str(text),
        dry,
    });
    (done, message, programs.lines)
}

/// Installs the timer. Returns the messages, and the calls of systemctl.
fn installed(host: &Host, dry: bool, wanted: &TimerSettings) -> (String, Vec<String>) {
    let (done, message, lines) = with(host, dry, None, |host| install(host, wanted));
    done.unwrap();
    (message, lines)
}

/// Removes the timer. Returns the messages, and the calls of systemctl.
fn uninstalled(host: &Host, dry: bool) -> (String, Vec<String>) {
    let (done, message, lines) = with(host, dry, None, uninstall);
    done.unwrap();
    (message, lines)
}

/// All files and links of a host, with their content or target.
fn tree(host: &Host) -> BTreeMap<PathBuf, String> {
    let mut tree = BTreeMap::new();
    let mut folders = vec![host.0.path().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let held = match fs::read_link(&path) {
                Ok(_) => "link".to_owned(),
                Err(_) if path.is_dir() => {
                    folders.push(path);
                    continue;
                }
                Err(_) => fs::read_to_string(&path).unwrap(),
            };
            tree.insert(path, held);
        }
    }
    tree
}

fn hosts() -> [(&'static str, Host); 3] {
    [
        ("debian", Host::debian()),
        ("mdcheck", Host::mdcheck()),
        ("red hat", Host::red_hat()),
    ]
}

#[test]
fn replaced_checks_come_back_exactly() {
    for (name, host) in hosts() {
        let before = tree(&host);
        assert!(host.found().running().count() > 0);
        let (message, _) = installed(&host, false, &wanted());
        assert_eq!(host.found().running().count(), 0, "{name}: {message}");
        let timer =
            fs::read_to_string(host.at("etc/systemd/system/disksmith-scrub.timer")).unwrap();
        assert!(timer.contains("OnCalendar=Sun *-*-1..7 01:00:00\nRandomizedDelaySec=900\n"));
        assert!(message.contains("--uninstall-timer"), "{message}");
        // A second installation changes only the timer.
        let first = tree(&host);
        let mut other = wanted();
        other.calendar = "daily".to_owned();
        installed(&host, false, &other);
        let second = tree(&host);
        let is_changed = |(path, text): &(&PathBuf, &String)| first.get(*path) != Some(*text);
        let changed: Vec<_> = second.iter().filter(is_changed).collect();
        assert_eq!(changed.len(), 1, "{name}: {changed:?}");
        uninstalled(&host, false);
        assert_eq!(tree(&host), before, "{name}");
    }
}

#[test]
fn a_dry_run_reports_all_changes_and_makes_none() {
    for (name, host) in hosts() {
        let before = tree(&host);
        let (message, lines) = installed(&host, true, &wanted());
        assert_eq!((tree(&host), lines), (before, Vec::new()), "{name}");
        assert!(
            message.contains("ExecStart=/bin/true scrub --all --ledger /"),
            "{message}"
        );
        installed(&host, false, &wanted());
        let before = tree(&host);
        uninstalled(&host, true);
        assert_eq!(tree(&host), before, "{name}");
    }
}

#[test]
fn changes_are_shown_as_commands() {
    let host = Host::mdcheck();
    host.write("active/mdcheck_continue.timer", "");
    let (message, lines) = installed(&host, false, &wanted());
    assert_eq!(
        lines,
        [
            // Not enabled itself, and started by the other's service.
            "systemctl mask --now mdcheck_continue.timer",
            "systemctl disable --now mdcheck_start.timer",
            "systemctl daemon-reload",
            "systemctl enable --now disksmith-scrub.timer",
            "systemctl restart disksmith-scrub.timer",
        ]
    );
    assert!(lines.iter().all(|line| message.contains(line)), "{message}");
    let (_, lines) = uninstalled(&host, false);
    assert_eq!(
        lines,
        [
            "systemctl disable --now disksmith-scrub.timer",
            "systemctl daemon-reload",
            "systemctl enable --now mdcheck_start.timer",
            "systemctl unmask mdcheck_continue.timer",
            "systemctl start mdcheck_continue.timer",
        ]
    );
}

#[test]
fn a_failure_midway_can_be_taken_back() {
    for (name, host) in hosts() {
        let before = tree(&host);
        for fails in [
            "daemon-reload",
            "enable --now disksmith",
            "disable --now",
            "mask --now",
        ] {
            let (done, _, lines) = with(&host, false, Some(fails), |host| install(host, &wanted()));
            let failed = lines.iter().any(|line| line.contains(fails));
            assert_eq!(
                matches!(done, Err(Failure::Midway(_))),
                failed,
                "{name}, {fails}"
            );
            // A unit that could not be masked cannot be unmasked here: the real systemctl accepts that.
            let mask = host.at("etc/systemd/system/mdcheck_continue.timer");
            if failed && fails == "mask --now" {
                std::os::unix::fs::symlink("/dev/null", mask).unwrap();
            }
            uninstalled(&host, false);
            assert_eq!(tree(&host), before, "{name}, {fails}");
        }
    }
}

#[test]
fn changes_of_others_since_are_left() {
    let host = Host::debian();
    installed(&host, false, &wanted());
    host.write("etc/default/mdadm", "AUTOCHECK=no # mine\n");
    let (message, _) = uninstalled(&host, false);
    assert!(
        message.contains("has no line AUTOCHECK=false any more"),
        "{message}"
    );
    let text = fs::read_to_string(host.at("etc/default/mdadm")).unwrap();
    assert_eq!(text, "AUTOCHECK=no # mine\n");
}

#[test]
fn units_that_somebody_made_are_reported_and_left() {
    let host = Host::debian();
    host.write(
        "etc/cron.d/own",
        "0 3 * * 1 root echo check > /sys/block/md0/md/sync_action\n",
    );
    let (message, _) = installed(&host, false, &wanted());
    assert!(
        message.contains("/etc/cron.d/own, line 1 runs a command"),
        "{message}"
    );
    assert_eq!(host.found().running().count(), 1);
}

#[test]
fn timers_that_cannot_work_are_refused_and_nothing_touched() {
    let refused = |host: &Host, wanted: &TimerSettings, words: &str| {
        let before = tree(host);
        let (done, _, lines) = with(host, false, None, |host| install(host, wanted));
        let Err(Failure::Refused(error)) = done else {
            panic!("{done:?}");
        };
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!((tree(host), lines), (before, Vec::new()));
    };
    let host = Host::debian();
    let but = |change: fn(&mut TimerSettings)| {
        let mut wanted = wanted();
        change(&mut wanted);
        wanted
    };
    refused(
        &host,
        &but(|w| w.args.push("a\nb".into())),
        "cannot be written into a unit",
    );
    refused(
        &host,
        &but(|w| w.ledger = "/a\nb".into()),
        "cannot be written into a unit",
    );
    // systemd judges the rest.
    if host.systemd().has("systemd-analyze") {
        let calendar = but(|w| w.calendar = "at night".into());
        refused(&host, &calendar, "ignoring: at night");
        let words = but(|w| {
            w.args
                .extend(["a b", "$HOME", "5%", "\"\\", ""].map(Into::into))
        });
        let found = faults(&mut host.systemd(), &words).unwrap();
        assert_eq!(found, [""; 0]);
    } else {
        skip::skipped("systemd-analyze is not installed");
    }
    host.write(
        "etc/systemd/system/disksmith-scrub.service",
        "[Service]\nExecStart=/mine\n",
    );
    refused(&host, &wanted(), "was not written by this program");
    let host = Host::debian();
    fs::remove_dir_all(host.at("run")).unwrap();
    refused(&host, &wanted(), "systemd does not run on this host");
    let (done, _, _) = with(&Host::debian(), false, None, uninstall);
    assert!(matches!(done, Err(Failure::Refused(_))));
}
