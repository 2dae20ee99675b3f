//! The settings files of distributions, in which a check is turned off or limited.

use std::path::Path;
use std::{fs, io};

use super::crontabs::below;
use super::scheduled::{Checker, Scheduled};

/// Debian's settings of mdadm: checkarray heeds `AUTOCHECK` when cron starts it.
pub(crate) const DEBIAN: &str = "/etc/default/mdadm";
/// Red Hat's settings of raid-check.
pub(crate) const RED_HAT: &str = "/etc/sysconfig/raid-check";

/// Applies to a check what its distribution's settings say.
pub(super) fn apply(root: &Path, scheduled: &mut Scheduled, unread: &mut Vec<String>) {
    let mut settings = |file: &str| match fs::read(below(root, Path::new(file))) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                unread.push(format!("{file} could not be read: {error}."));
            }
            None
        }
    };
    let off = match scheduled.checker {
        Checker::Checkarray => {
            let text = settings(DEBIAN).unwrap_or_default();
            debian_is_off(&text)
                .filter(|_| scheduled.heeds_autocheck())
                .map(|why| format!("{why} in {DEBIAN}"))
        }
        Checker::RaidCheck => match settings(RED_HAT) {
            Some(text) => {
                scheduled.skips = words(&text, "SKIP_DEVS");
                red_hat_is_off(&text).map(|why| format!("{why} in {RED_HAT}"))
            }
            None => Some(format!("{RED_HAT} is not there")),
        },
        Checker::Mdcheck | Checker::Own => None,
    };
    scheduled.off = scheduled.off.take().or(off);
}

/// Reason for which checkarray does nothing: it takes some words for yes, and everything else, and nothing,
/// for no (checkarray, is_true).
fn debian_is_off(text: &str) -> Option<String> {
    const YES: [&str; 9] = ["Yes", "yes", "Y", "y", "1", "True", "true", "T", "t"];
    match value(text, "AUTOCHECK") {
        Some(value) if YES.contains(&&*value) => None,
        Some(value) => Some(format!("AUTOCHECK={value}")),
        None => Some("AUTOCHECK is not set".to_owned()),
    }
}

/// Reason for which raid-check does nothing.
fn red_hat_is_off(text: &str) -> Option<String> {
    let enabled = value(text, "ENABLED").unwrap_or_default();
    if enabled != "yes" {
        return Some(format!("ENABLED={enabled}"));
    }
    let check = value(text, "CHECK").unwrap_or_default();
    (check != "check" && check != "repair").then(|| format!("CHECK={check}"))
}

/// The words of a setting.
fn words(text: &str, name: &str) -> Vec<String> {
    let value = value(text, name).unwrap_or_default();
    let plain = |word: &str| word.trim_start_matches("/dev/").to_owned();
    value.split_whitespace().map(plain).collect()
}

/// The value of a variable in a file that a shell reads, without quotes; the last counts.
fn value(text: &str, name: &str) -> Option<String> {
    let line = text.lines().rev().find_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        line.strip_prefix(name)?.strip_prefix('=')
    })?;
    let quote = line.chars().next().filter(|c| *c == '"' || *c == '\'');
    Some(match quote {
        Some(quote) => {
            let inner = line.strip_prefix(quote).unwrap_or(line);
            inner.split(quote).next().unwrap_or_default().to_owned()
        }
        None => line
            .split(['#', ' ', '\t', ';'])
            .next()
            .unwrap_or_default()
            .to_owned(),
    })
}
