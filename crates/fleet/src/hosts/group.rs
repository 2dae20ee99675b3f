//! Groups of ClusterShell, such as `@web` and `@source:web`. ClusterShell's `nodeset` expands them by its
//! configuration.

use linux::exec::{Error, Exec};
use linux::remedy;

use super::command::LIMIT;

/// The hosts of a word that begins with `@`.
///
/// # Errors
/// A sentence, if `nodeset` is not installed, fails, or knows no host of the group.
pub(super) fn hosts(group: &str) -> Result<Vec<String>, String> {
    let program = Exec::new("nodeset").args(["--expand", group]).limit(LIMIT);
    let output = match program.die_with_parent().run() {
        Ok(output) => output,
        Err(Error::Missing(_)) => {
            return Err(format!(
                "'{group}' is a group of ClusterShell, whose nodeset is not installed ({})",
                remedy::install("clustershell")
            ));
        }
        Err(why) => return Err(why.to_string()),
    };
    let hosts: Vec<String> = output
        .text()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    match hosts.is_empty() {
        true => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let why = stderr.lines().next().map(|line| format!(": {line}"));
            Err(format!(
                "ClusterShell knows no host of '{group}' (its groups: nodeset --list-all){}",
                why.unwrap_or_default()
            ))
        }
        false => Ok(hosts),
    }
}
