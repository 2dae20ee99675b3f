//! Lines in files in /etc that assemble and mount an array at boot.

use std::path::{Path, PathBuf};

use super::building::mdadm_conf;
use super::plan::ArrayPlan;

/// udev's rules of the host (udev(7)).
const RULES: &str = "udev/rules.d";

/// File of the rules for read-ahead. It is read after mdadm's `63-md-raid-arrays.rules`, which sets the property of
/// an array's id.
const READ_AHEAD: &str = "65-disksmith-read-ahead.rules";

/// Lines for a plan, each with its file, in the order in which they are written.
pub(super) fn lines(plan: &ArrayPlan, etc: &Path) -> Vec<(PathBuf, String)> {
    let fstab = plan.fstab_line().map(|line| (etc.join("fstab"), line));
    let rule = plan.udev_rule().filter(|_| has_udev(etc));
    let rule = rule.map(|line| (read_ahead_rules(etc), line));
    let conf = (mdadm_conf(etc), plan.conf_line());
    [Some(conf), fstab, rule].into_iter().flatten().collect()
}

/// True if the host has udev.
pub(super) fn has_udev(etc: &Path) -> bool {
    etc.join(RULES).is_dir()
}

/// The file of the rules for read-ahead.
pub(super) fn read_ahead_rules(etc: &Path) -> PathBuf {
    etc.join(RULES).join(READ_AHEAD)
}
