//! The settings files of distributions, which turn off or limit a check.

use std::path::Path;

use super::files::read;
use super::scheduled::{Checker, Scheduled};

/// Debian's settings of mdadm: checkarray applies `AUTOCHECK` when cron starts it.
pub(crate) const DEBIAN: &str = "/etc/default/mdadm";
/// Red Hat's settings of raid-check.
pub(crate) const RED_HAT: &str = "/etc/sysconfig/raid-check";

/// Applies the settings of the distribution to a check.
pub(super) fn apply(root: &Path, scheduled: &mut Scheduled, unread: &mut Vec<String>) {
    let mut settings = |file: &str| read(root, Path::new(file), unread);
    let off = match scheduled.checker {
        Checker::Checkarray => {
            let text = settings(DEBIAN).unwrap_or_default();
            debian_is_off(&text)
                .filter(|_| scheduled.heeds_autocheck())
                .map(|why| format!("{why} in {DEBIAN}"))
        }
        Checker::RaidCheck => match settings(RED_HAT) {
            Some(text) => {
                let skips = value(&text, "SKIP_DEVS").unwrap_or_default();
                let skips = skips.split_whitespace();
                let name = |word: &str| word.trim_start_matches("/dev/").to_owned();
                scheduled.skips = skips.map(name).collect();
                red_hat_is_off(&text).map(|why| format!("{why} in {RED_HAT}"))
            }
            None => Some(format!("{RED_HAT} is not there")),
        },
        Checker::Mdcheck | Checker::Own => None,
    };
    scheduled.off = scheduled.off.take().or(off);
    if scheduled.off.is_some() {
        scheduled.next = None;
    }
}

/// Reason why checkarray does nothing; `None` where it checks. It accepts some words as yes, and takes everything else,
/// including an absent value, as no (checkarray, is_true).
fn debian_is_off(text: &str) -> Option<String> {
    const TRUE_WORDS: [&str; 9] = ["Yes", "yes", "Y", "y", "1", "True", "true", "T", "t"];
    match value(text, "AUTOCHECK") {
        Some(value) if TRUE_WORDS.contains(&&*value) => None,
        Some(value) => Some(format!("AUTOCHECK={value}")),
        None => Some("AUTOCHECK is not set".to_owned()),
    }
}

/// Reason why raid-check does nothing; `None` where it checks.
fn red_hat_is_off(text: &str) -> Option<String> {
    let enabled = value(text, "ENABLED").unwrap_or_default();
    if enabled != "yes" {
        return Some(format!("ENABLED={enabled}"));
    }
    let check = value(text, "CHECK").unwrap_or_default();
    (check != "check" && check != "repair").then(|| format!("CHECK={check}"))
}

/// The value of a variable in a file that a shell reads, without quotes; the last assignment counts.
fn value(text: &str, name: &str) -> Option<String> {
    let line = text.lines().rev().find_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        line.strip_prefix(name)?.strip_prefix('=')
    })?;
    let ends: &[char] = match line.starts_with(['"', '\'']) {
        true => &['"', '\''],
        false => &['#', ' ', '\t', ';'],
    };
    let text = line.strip_prefix(['"', '\'']).unwrap_or(line);
    text.split(ends).next().map(str::to_owned)
}
