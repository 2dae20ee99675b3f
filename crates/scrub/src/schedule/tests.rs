//! Scheduled checks of hosts as their packages set them up: Debian's mdadm 4.2, mdadm's own timers, and Red Hat's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use array::programs::InstalledPrograms;
use jiff::Zoned;
use linux::exec::{self, Exec, ProgramOutput};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use tempfile::TempDir;

use super::*;

/// A folder that represents the `/` of a host.
pub(crate) struct Host(pub TempDir);

impl Host {
    pub(crate) fn new() -> Host {
        let host = Host(TempDir::new().unwrap());
        fs::create_dir_all(host.at("run/systemd/system")).unwrap();
        host
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    pub(crate) fn link(&self, path: &str, to: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        symlink(to, self.at(path)).unwrap();
    }

    pub(crate) fn debian() -> Host {
        let host = Host::new();
        host.write(
            "etc/cron.d/mdadm",
            "# periodic checks\n\n57 0 * * 0 root if [ -x /usr/share/mdadm/checkarray ] && \
             [ $(date +\\%d) -le 7 ]; then /usr/share/mdadm/checkarray --cron --all --idle \
             --quiet; fi\n",
        );
        host.write(
            "etc/default/mdadm",
            "# settings\nAUTOCHECK=true\nAUTOSCAN=true\nDAEMON_OPTIONS=\"--syslog\"\n",
        );
        host
    }

    pub(crate) fn mdcheck() -> Host {
        let host = Host::new();
        host.mdcheck_units();
        let wants = "etc/systemd/system/mdmonitor.service.wants";
        host.link(
            &format!("{wants}/mdcheck_start.timer"),
            "/usr/lib/systemd/system/mdcheck_start.timer",
        );
        host.link(
            &format!("{wants}/mdmonitor-oneshot.timer"),
            "/usr/lib/systemd/system/mdmonitor-oneshot.timer",
        );
        host
    }

    fn mdcheck_units(&self) {
        let lib = |name: &str| format!("usr/lib/systemd/system/{name}");
        for (name, next) in [
            ("mdcheck_start.timer", "Sun 2026-12-06 00:00:00"),
            ("mdcheck_continue.timer", "Thu 2026-11-19 00:05:00"),
            ("mdmonitor-oneshot.timer", "Thu 2026-11-19 01:00:00"),
        ] {
            let install = "[Install]\nWantedBy= mdmonitor.service\n";
            self.write(&lib(name), &format!("[Timer]\n#Next={next} UTC\n{install}"));
        }
        let service = |unit: &str, option: &str| {
            format!(
                "[Unit]\n{unit}\n[Service]\nType=oneshot\n\
                 Environment=\"MDADM_CHECK_DURATION=6 hours\"\n\
                 ExecStart=/usr/share/mdadm/mdcheck {option}--duration ${{MDADM_CHECK_DURATION}}\n"
            )
        };
        self.write(
            &lib("mdcheck_start.service"),
            &service("Wants=mdcheck_continue.timer", ""),
        );
        self.write(
            &lib("mdcheck_continue.service"),
            &service(
                "ConditionPathExistsGlob=/var/lib/mdcheck/MD_UUID_*",
                "--continue ",
            ),
        );
        self.write(
            &lib("mdmonitor-oneshot.service"),
            "[Service]\nExecStart=/sbin/mdadm --monitor --oneshot --scan\n",
        );
    }

    pub(crate) fn red_hat() -> Host {
        let host = Host::new();
        host.write(
            "usr/lib/systemd/system/raid-check.timer",
            "[Timer]\n#Next=Sun 2026-11-22 00:00:00 UTC\n[Install]\nWantedBy=timers.target\n",
        );
        host.write(
            "usr/lib/systemd/system/raid-check.service",
            "[Service]\nType=simple\nExecStart=/usr/sbin/raid-check\n",
        );
        host.link(
            "etc/systemd/system/timers.target.wants/raid-check.timer",
            "/usr/lib/systemd/system/raid-check.timer",
        );
        host.write(
            "etc/sysconfig/raid-check",
            "#!/bin/bash\nENABLED=yes\nCHECK=check\nNICE=low\nSKIP_DEVS=\"md1 md2\"\n",
        );
        host
    }

    pub(crate) fn systemd(&self) -> Systemd {
        let root = self.0.path().to_path_buf();
        Systemd { root }
    }

    pub(crate) fn found(&self) -> ScheduledChecks {
        find(self.0.path(), &now(), &mut self.systemd())
    }
}

/// Wednesday, 18 November 2026.
pub(crate) fn now() -> Zoned {
    at("2026-11-18T12:00:00")
}

/// The systemd of a host, as far as it shows its units. A comment in a timer's file gives the next start.
pub(crate) struct Systemd {
    pub(crate) root: PathBuf,
}

impl Systemd {
    /// A unit's file; `None` where there is none.
    pub(crate) fn text(&self, unit: &str) -> Option<String> {
        let folders = ["etc/systemd/system", "usr/lib/systemd/system"];
        let mut paths = folders.iter().map(|folder| self.root.join(folder));
        paths.find_map(|folder| fs::read_to_string(folder.join(unit)).ok())
    }

    fn is_enabled(&self, unit: &str) -> bool {
        let folders = fs::read_dir(self.root.join("etc/systemd/system"));
        let mut folders = folders.into_iter().flatten().flatten();
        folders.any(|folder| folder.path().join(unit).symlink_metadata().is_ok())
    }

    fn show(&mut self, unit: &str) -> String {
        let text = self.text(unit).unwrap_or_default();
        let value = |name: &str| -> String {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        let mask = self.root.join("etc/systemd/system").join(unit);
        let is_masked = fs::read_link(mask).is_ok_and(|to| to == Path::new("/dev/null"));
        let is_enabled = self.is_enabled(unit) && !is_masked;
        let is_active = is_enabled || self.root.join("active").join(unit).exists();
        let (load, triggers) = match is_masked {
            true => ("masked", String::new()),
            false => ("loaded", unit.replace(".timer", ".service")),
        };
        let next = if is_active {
            value("#Next=")
        } else {
            String::new()
        };
        format!(
            "Id={unit}\nLoadState={load}\nActiveState={}\nUnitFileState={}\nTriggers={triggers}\n\
             NextElapseUSecRealtime={next}\nWants={}\nExecStart={{ path=/x ; argv[]={} ; pid=0 }}\n",
            if is_active { "active" } else { "inactive" },
            if is_enabled { "enabled" } else { "disabled" },
            value("Wants="),
            value("ExecStart="),
        )
    }
}

impl Programs for Systemd {
    fn run(&mut self, program: &Exec) -> Result<ProgramOutput, exec::Error> {
        let line = program.line();
        let Some((_, units)) = line.split_once("systemctl show ") else {
            return InstalledPrograms.run(program);
        };
        if self.root.join("silent").exists() {
            return Err(exec::Error::Missing(line));
        }
        let (_, units) = units.split_once(" -- ").unwrap();
        let blocks: Vec<String> = units.split(' ').map(|unit| self.show(unit)).collect();
        Ok(ProgramOutput {
            status: ExitStatus::from_raw(0),
            stdout: blocks.join("\n").into(),
            stderr: Vec::new(),
        })
    }

    fn has(&self, program: &str) -> bool {
        InstalledPrograms.has(program)
    }
}

fn at(text: &str) -> Zoned {
    format!("{text}[Europe/Berlin]").parse().unwrap()
}

/// Sentences on the checks that run.
fn running(host: &Host) -> Vec<String> {
    host.found().running().map(Scheduled::sentence).collect()
}

#[test]
fn a_line_of_cron_is_shown_with_its_times() {
    assert_eq!(
        running(&Host::debian()),
        ["/etc/cron.d/mdadm, line 3 runs checkarray: cron starts it at '57 0 * * 0'."]
    );
    let collision = Host::debian().found().scheduled[0].collision("md0", &now(), Some(&now()));
    assert_eq!(
        collision.as_deref(),
        Some(
            "/etc/cron.d/mdadm, line 3 runs checkarray, and may do so before this scrub is done: cron starts it at \
             '57 0 * * 0'."
        )
    );
}

#[test]
fn a_line_of_cron_that_runs_when_the_host_starts_does_not_collide() {
    let host = Host::new();
    let line = "@reboot root /usr/share/mdadm/checkarray --all\n";
    host.write("etc/cron.d/mdadm", line);
    let found = host.found();
    let check = &found.scheduled[0];
    for to in [None, Some(&now())] {
        assert_eq!(check.collision("md0", &now(), to), None);
    }
}

#[test]
fn times_of_cron_have_their_zone() {
    let host = Host::new();
    let check = "root /usr/share/mdadm/checkarray --all";
    let text = format!("1 1 * * 0 {check}\nCRON_TZ = Asia/Tokyo\n2 2 * * 0 {check}\n");
    host.write("etc/cron.d/mdadm", &text);
    assert_eq!(
        running(&host),
        [
            "/etc/cron.d/mdadm, line 1 runs checkarray: cron starts it at '1 1 * * 0'.",
            "/etc/cron.d/mdadm, line 3 runs checkarray: cron starts it at '2 2 * * 0' Asia/Tokyo.",
        ]
    );
}

#[test]
fn a_timer_that_is_enabled_and_not_started_may_start() {
    let mut check = Host::red_hat().found().scheduled.remove(0);
    check.next = None;
    let stopped = |is_enabled| ScheduleSource::Timer {
        unit: "raid-check.timer".to_owned(),
        is_enabled,
        is_active: false,
    };
    for (is_enabled, text) in [
        (
            true,
            Some("raid-check.timer runs raid-check, and may do so before this scrub is done."),
        ),
        (false, None),
    ] {
        check.source = stopped(is_enabled);
        let collision = check.collision("md0", &now(), Some(&now()));
        assert_eq!(collision.as_deref(), text);
    }
}

#[test]
fn debian_is_off_without_autocheck() {
    for (text, why) in [
        ("AUTOCHECK=false\n", "AUTOCHECK=false in /etc/default/mdadm"),
        (
            "AUTOCHECK=true\nAUTOCHECK=\"no\" # mine\n",
            "AUTOCHECK=no in",
        ),
        ("", "AUTOCHECK is not set in"),
    ] {
        let host = Host::debian();
        host.write("etc/default/mdadm", text);
        let found = host.found();
        assert_eq!(found.running().count(), 0, "{text}");
        let off = found.scheduled[0].off.clone().unwrap();
        assert!(off.starts_with(why), "{off}");
        let collision = found.scheduled[0].collision("md0", &now(), None);
        assert_eq!(collision, None);
    }
    // Without the option for cron, checkarray ignores AUTOCHECK.
    let host = Host::debian();
    host.write("etc/default/mdadm", "AUTOCHECK=false\n");
    host.write(
        "etc/cron.d/mdadm",
        "0 1 * * 0 root /usr/share/mdadm/checkarray --all\n",
    );
    assert_eq!(host.found().running().count(), 1);
}

#[test]
fn mdadms_timers_are_found_and_its_reminder_is_no_check() {
    assert_eq!(
        running(&Host::mdcheck()),
        [
            // This timer is not enabled; the service of the other one starts it, and only then is its time known.
            "mdcheck_continue.timer runs mdcheck.",
            "mdcheck_start.timer runs mdcheck, next at 2026-12-06 01:00 CET.",
        ]
    );
    assert_eq!(Host::mdcheck().found().scheduled.len(), 2);
}

#[test]
fn timers_that_are_masked_not_enabled_or_without_systemd_are_off() {
    let host = Host::mdcheck();
    host.link("etc/systemd/system/mdcheck_start.timer", "/dev/null");
    let off: Vec<_> = host
        .found()
        .scheduled
        .into_iter()
        .map(|one| one.off)
        .collect();
    assert_eq!(
        off,
        ["it is not enabled", "it is masked"].map(|why| Some(why.to_owned()))
    );
    let host = Host::new();
    host.mdcheck_units();
    assert_eq!(host.found().running().count(), 0);
    let host = Host::red_hat();
    fs::remove_dir_all(host.at("run")).unwrap();
    assert_eq!(
        host.found(),
        ScheduledChecks::default(),
        "nothing starts timers there"
    );
}

#[test]
fn a_systemd_that_does_not_answer_is_reported() {
    let host = Host::red_hat();
    host.write("silent", "");
    let found = host.found();
    assert!(found.scheduled.is_empty());
    let [unread] = &found.unread[..] else {
        panic!("{found:?}");
    };
    assert!(unread.contains("systemctl show"), "{unread}");
}

#[test]
fn red_hat_checks_unless_configured_otherwise() {
    let host = Host::red_hat();
    assert_eq!(
        running(&host),
        ["raid-check.timer runs raid-check, next at 2026-11-22 01:00 CET."]
    );
    for (text, why) in [
        ("ENABLED=no\n", "ENABLED=no in"),
        ("ENABLED=yes\nCHECK=idle\n", "CHECK=idle in"),
    ] {
        host.write("etc/sysconfig/raid-check", text);
        let off = host.found().scheduled[0].off.clone().unwrap();
        assert!(off.starts_with(why), "{off}");
    }
    fs::remove_file(host.at("etc/sysconfig/raid-check")).unwrap();
    let off = host.found().scheduled[0].off.clone().unwrap();
    assert!(off.ends_with("is not there"), "{off}");
}

#[test]
fn crontabs_and_scripts_of_all_kinds_are_read() {
    let host = Host::new();
    let check = "echo check > /sys/block/md0/md/sync_action";
    for (path, text) in [
        (
            "etc/crontab",
            format!("# c\nMAILTO=root\n# 0 4 * * 1 root {check}\n@reboot root {check}\n"),
        ),
        (
            // A monitor only reads sync_action.
            "etc/cron.d/own",
            format!("0 3 * * 1 root cat /sys/block/md0/md/sync_action\n0 4 * * 1 root {check}\n"),
        ),
        (
            "etc/cron.d/own.rpmsave",
            format!("0 4 * * 1 root {check}\n"),
        ),
        ("etc/cron.d/short", "0 4 * * checkarray\n".to_owned()),
        (
            "var/spool/cron/crontabs/root",
            format!("0~30 4 * * 1 {check}\n"),
        ),
        (
            "etc/cron.weekly/99-raid-check",
            "#!/bin/sh\nexec /usr/sbin/raid-check\n".to_owned(),
        ),
        (
            "etc/cron.daily/other",
            "# not raid-check\ntrue\n".to_owned(),
        ),
        (
            "etc/sysconfig/raid-check",
            "ENABLED=yes\nCHECK=check\n".to_owned(),
        ),
    ] {
        host.write(path, &text);
    }
    let own = "runs a command that writes to sync_action: cron starts it";
    assert_eq!(
        running(&host),
        [
            format!("/etc/crontab, line 4 {own} at '@reboot'."),
            format!("/etc/cron.d/own, line 2 {own} at '0 4 * * 1'."),
            format!("/var/spool/cron/crontabs/root, line 1 {own} at '0~30 4 * * 1'."),
            "/etc/cron.weekly/99-raid-check runs raid-check: cron starts it weekly.".to_owned(),
        ]
    );
    let found = host.found();
    assert!(found.running().take(3).all(|one| one.command == check));
}

/// Collisions with a scrub of an array between two times.
fn collisions(host: &Host, array: &str, from: &str, to: &str) -> Vec<String> {
    let found = host.found();
    let checks = found.scheduled.iter();
    let collisions = checks.filter_map(|one| one.collision(array, &at(from), Some(&at(to))));
    collisions.collect()
}

#[test]
fn timers_that_start_in_the_time_of_a_scrub_collide() {
    let host = Host::red_hat();
    let of = |from: &str, to: &str| collisions(&host, "md0", from, to);
    assert!(of("2026-11-18T01:00:00", "2026-11-21T06:00:00").is_empty());
    assert!(of("2026-11-22T01:01:00", "2026-11-22T06:00:00").is_empty());
    assert_eq!(
        of("2026-11-21T23:00:00", "2026-11-22T06:00:00"),
        [
            "raid-check.timer runs raid-check at 2026-11-22 01:00 CET, while this scrub runs until about \
          2026-11-22 06:00 CET."
        ]
    );
    assert_eq!(of("2026-11-22T01:00:00", "2026-11-22T01:01:00").len(), 1);
    let left_out = collisions(&host, "md1", "2026-11-21T23:00:00", "2026-11-22T06:00:00");
    assert!(left_out.is_empty());
}

#[test]
fn running_checks_collide_and_those_after_another_do_not() {
    let host = Host::mdcheck();
    let of = |to: &str| collisions(&host, "md0", "2026-11-18T12:00:00", to);
    assert!(of("2026-11-20T12:00:00").is_empty());
    host.write("active/mdcheck_start.service", "");
    assert_eq!(
        of("2026-11-18T13:00:00"),
        ["mdcheck_start.timer runs mdcheck now."]
    );
    host.write("active/mdcheck_continue.timer", "");
    let texts = of("2026-11-20T12:00:00");
    assert_eq!(texts.len(), 2);
    assert!(
        texts[0].contains("runs mdcheck at 2026-11-19 01:05"),
        "{}",
        texts[0]
    );
}

#[test]
fn a_host_without_any_has_none() {
    assert_eq!(Host::new().found(), ScheduledChecks::default());
    let host = Host::new();
    fs::remove_dir_all(host.at("")).unwrap();
    assert_eq!(host.found(), ScheduledChecks::default());
}
