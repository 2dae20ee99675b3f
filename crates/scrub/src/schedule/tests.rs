//! Hosts as their packages set them up: Debian's mdadm 4.2, mdadm's own timers, and Red Hat's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use array::programs::Installed;
use jiff::Zoned;
use linux::exec::{self, Exec, Output};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use tempfile::TempDir;

use super::*;

/// A folder that stands for `/`.
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
        let timer = |when: &str| {
            format!("[Timer]\nOnCalendar={when}\n[Install]\nWantedBy= mdmonitor.service\n")
        };
        self.write(&lib("mdcheck_start.timer"), &timer("Sun *-*-1..7 1:00:00"));
        self.write(&lib("mdcheck_continue.timer"), &timer(" 1:05:00"));
        self.write(&lib("mdmonitor-oneshot.timer"), &timer(" 2:00:00"));
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
            "[Timer]\nOnCalendar=Sun *-*-* 01:00:00\n[Install]\nWantedBy=timers.target\n",
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

    pub(crate) fn found(&self) -> ScheduledChecks {
        let root = self.0.path().to_path_buf();
        find(&root, &now(), &mut Systemd { root: root.clone() })
    }
}

/// Wednesday, 18 November 2026.
pub(crate) fn now() -> Zoned {
    at("2026-11-18T12:00:00")
}

/// Times are judged by the real program.
pub(crate) fn has_systemd() -> bool {
    let is_there = Installed.has("systemd-analyze");
    if !is_there {
        skip::skipped("systemd-analyze is not installed");
    }
    is_there
}

/// The programs of a host whose time is UTC.
pub(crate) struct InUtc;

impl Programs for InUtc {
    fn run(&mut self, program: &Exec) -> Result<Output, exec::Error> {
        Installed.run(&program.clone().zone("UTC"))
    }

    fn has(&self, program: &str) -> bool {
        Installed.has(program)
    }
}

/// The systemd of a host in Berlin, as far as it tells of its units.
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
        let next = match value("OnCalendar=") {
            event if is_active && !event.is_empty() => {
                let next = systemd::next_elapse(self, &event, &now()).unwrap().unwrap();
                let next = next.timestamp();
                next.strftime("%a %Y-%m-%d %H:%M:%S UTC").to_string()
            }
            _ => String::new(),
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
    fn run(&mut self, program: &Exec) -> Result<Output, exec::Error> {
        let line = program.line();
        let Some((_, units)) = line.split_once("systemctl show ") else {
            return Installed.run(&program.clone().zone("Europe/Berlin"));
        };
        let (_, units) = units.split_once(" -- ").unwrap();
        let blocks: Vec<String> = units.split(' ').map(|unit| self.show(unit)).collect();
        Ok(Output {
            status: ExitStatus::from_raw(0),
            stdout: blocks.join("\n").into(),
            stderr: Vec::new(),
        })
    }

    fn has(&self, program: &str) -> bool {
        Installed.has(program)
    }
}

fn at(text: &str) -> Zoned {
    format!("{text}[Europe/Berlin]").parse().unwrap()
}

/// Checks that run, and their next starts.
fn running(found: &ScheduledChecks) -> Vec<(String, Option<Zoned>)> {
    found
        .running()
        .map(|one| (one.source.to_string(), one.next().cloned()))
        .collect()
}

#[test]
fn debian_checks_on_the_first_sunday() {
    if !has_systemd() {
        return;
    }
    let found = Host::debian().found();
    let line = "/etc/cron.d/mdadm, line 3".to_owned();
    assert_eq!(running(&found), [(line, Some(at("2026-12-06T00:57:00")))]);
    assert_eq!(
        found.scheduled[0].sentence(),
        "/etc/cron.d/mdadm, line 3 runs checkarray, next at 2026-12-06 00:57 CET."
    );
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
    }
    // One that does not say that cron starts it does not heed that.
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
    if !has_systemd() {
        return;
    }
    let found = Host::mdcheck().found();
    assert_eq!(
        running(&found),
        [
            // It is not enabled; the service of the other starts it, and its time is known then.
            ("mdcheck_continue.timer".to_owned(), None),
            (
                "mdcheck_start.timer".to_owned(),
                Some(at("2026-12-06T01:00:00"))
            ),
        ]
    );
    assert_eq!(found.scheduled.len(), 2);
}

#[test]
fn timers_that_are_masked_not_enabled_or_without_systemd_are_off() {
    if !has_systemd() {
        return;
    }
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
    let mut host = Host::red_hat();
    let root = std::mem::replace(&mut host.0, TempDir::new().unwrap());
    struct Mute;
    impl Programs for Mute {
        fn run(&mut self, program: &Exec) -> Result<Output, exec::Error> {
            Err(exec::Error::Missing(program.line()))
        }

        fn has(&self, _: &str) -> bool {
            false
        }
    }
    let found = find(root.path(), &now(), &mut Mute);
    assert!(found.scheduled.is_empty());
    let [unread] = &found.unread[..] else {
        panic!("{found:?}");
    };
    assert!(unread.contains("systemctl show"), "{unread}");
    // The times of crontabs are shown as they are then.
    let found = find(Host::debian().0.path(), &now(), &mut Mute);
    let sentence = found.scheduled[0].sentence();
    assert!(sentence.contains("sun *-*-1..7 0:57:00"), "{sentence}");
}

#[test]
fn red_hat_checks_every_sunday_unless_configured_otherwise() {
    if !has_systemd() {
        return;
    }
    let host = Host::red_hat();
    let found = host.found();
    let timer = "raid-check.timer".to_owned();
    assert_eq!(running(&found), [(timer, Some(at("2026-11-22T01:00:00")))]);
    let (from, to) = (at("2026-11-21T20:00:00"), at("2026-11-22T04:00:00"));
    assert!(collisions(&found, "md1", &from, &to).is_empty());
    assert_eq!(collisions(&found, "md0", &from, &to).len(), 1);
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
fn older_red_hat_has_a_crontab_or_a_weekly_script() {
    if !has_systemd() {
        return;
    }
    let host = Host::red_hat();
    fs::remove_dir_all(host.at("usr")).unwrap();
    host.write(
        "etc/cron.d/raid-check",
        "0 1 * * Sun root /usr/sbin/raid-check\n",
    );
    host.write(
        "etc/cron.d/raid-check.rpmsave",
        "0 2 * * Sun root /usr/sbin/raid-check\n",
    );
    let line = "/etc/cron.d/raid-check, line 1".to_owned();
    assert_eq!(
        running(&host.found()),
        [(line, Some(at("2026-11-22T01:00:00")))]
    );
    fs::remove_dir_all(host.at("etc/cron.d")).unwrap();
    host.write(
        "etc/cron.weekly/99-raid-check",
        "#!/bin/sh\nexec /usr/sbin/raid-check\n",
    );
    let script = "/etc/cron.weekly/99-raid-check".to_owned();
    assert_eq!(running(&host.found()), [(script.clone(), None)]);
    host.write(
        "etc/crontab",
        "22 4 * * 0 root run-parts /etc/cron.weekly\n",
    );
    assert_eq!(
        running(&host.found()),
        [(script, Some(at("2026-11-22T04:22:00")))]
    );
}

#[test]
fn checks_that_begin_in_the_time_of_a_scrub_collide() {
    if !has_systemd() {
        return;
    }
    let found = Host::debian().found();
    let of = |from: &str, to: &str| collisions(&found, "md0", &at(from), &at(to));
    assert!(of("2026-11-18T01:00:00", "2026-12-05T06:00:00").is_empty());
    assert!(of("2026-12-06T00:58:00", "2026-12-06T06:00:00").is_empty());
    assert_eq!(
        of("2026-12-05T23:00:00", "2026-12-06T06:00:00"),
        [
            "/etc/cron.d/mdadm, line 3 runs checkarray at 2026-12-06 00:57 CET, while this scrub runs \
          until about 2026-12-06 06:00 CET."
        ]
    );
    assert_eq!(of("2026-12-06T00:57:00", "2026-12-06T00:58:00").len(), 1);
}

#[test]
fn running_checks_collide_and_those_after_another_do_not() {
    if !has_systemd() {
        return;
    }
    let host = Host::mdcheck();
    let texts = |from: &str, to: &str| collisions(&host.found(), "md0", &at(from), &at(to));
    assert!(texts("2026-11-18T12:00:00", "2026-11-20T12:00:00").is_empty());
    host.write("active/mdcheck_start.service", "");
    let now = texts("2026-11-18T12:00:00", "2026-11-18T13:00:00");
    assert_eq!(now, ["mdcheck_start.timer runs mdcheck now."]);
    host.write("active/mdcheck_continue.timer", "");
    let texts = texts("2026-11-18T12:00:00", "2026-11-20T12:00:00");
    assert_eq!(texts.len(), 2);
    assert!(
        texts[0].contains("may go on with a check of mdcheck at 2026-11-19 01:05"),
        "{}",
        texts[0]
    );
}

#[test]
fn a_command_of_ones_own_is_found_and_a_monitor_is_not() {
    if !has_systemd() {
        return;
    }
    let host = Host::new();
    host.write(
        "etc/cron.d/own",
        "0 3 * * 1 root cat /sys/block/md0/md/sync_action | mail root\n\
         0 4 * * 1 root echo check > /sys/block/md0/md/sync_action\n",
    );
    let line = "/etc/cron.d/own, line 2".to_owned();
    assert_eq!(
        running(&host.found()),
        [(line, Some(at("2026-11-23T04:00:00")))]
    );
}

#[test]
fn a_host_without_any_has_none() {
    assert_eq!(Host::new().found(), ScheduledChecks::default());
    let mut systemd = Systemd { root: "/".into() };
    let found = find(Path::new("/no/such/folder"), &now(), &mut systemd);
    assert_eq!(found, ScheduledChecks::default());
}
