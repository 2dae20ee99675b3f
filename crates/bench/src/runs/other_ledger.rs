//! The ledger of another user, which may have a run that is not in this one: root's ledger is not that of the user who
//! calls sudo.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ui::context::Context;

/// Folder of root's ledger, which only root may enter.
const ROOT_LEDGER_FOLDER: &str = "/var/lib/disksmith";

/// A line that names that ledger and the command that lists its runs; `None` where it does not exist, or where the
/// user has named a ledger.
pub(super) fn note(context: &Context) -> Option<String> {
    if context.ledger.is_some() || std::env::var_os("XDG_STATE_HOME").is_some() {
        return None;
    }
    let is_root = rustix::process::geteuid().is_root();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let caller = || home_directory(&users, &std::env::var_os("SUDO_USER")?);
    line(is_root, caller, Path::exists)
}

fn line(
    is_root: bool,
    caller: impl Fn() -> Option<PathBuf>,
    exists: impl Fn(&Path) -> bool,
) -> Option<String> {
    if !is_root {
        let there = exists(Path::new(ROOT_LEDGER_FOLDER));
        return there.then(|| {
            format!("Runs of root, by sudo too, are in {ROOT_LEDGER_FOLDER}: sudo disksmith runs\n")
        });
    }
    let ledger = caller()?.join(".local/state/disksmith/ledger.db");
    exists(&ledger).then(|| {
        format!(
            "Runs without sudo are in {0}: disksmith runs --ledger {0}\n",
            ledger.display()
        )
    })
}

/// A user's home, by the lines of `passwd`.
fn home_directory(users: &str, name: &OsString) -> Option<PathBuf> {
    let fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let mut of_user = fields.filter(|fields| fields.first().is_some_and(|field| name == *field));
    Some(PathBuf::from(of_user.next()?.get(5)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_ledger_is_named_with_the_command_that_lists_it() {
        let users =
            "root:x:0:0:root:/root:/bin/bash\nmarta:x:1000:1000:,,,:/home/marta:/bin/bash\n";
        let home = |name: &str| home_directory(users, &OsString::from(name));
        assert_eq!(home("marta"), Some(PathBuf::from("/home/marta")));
        assert_eq!(home("nobody"), None);
        let said = line(false, || None, |_| true).unwrap();
        assert!(said.ends_with("sudo disksmith runs\n"), "{said}");
        assert_eq!(line(false, || None, |_| false), None);
        let said = line(true, || home("marta"), |_| true).unwrap();
        assert!(
            said.contains("runs --ledger /home/marta/.local/state/disksmith/ledger.db"),
            "{said}"
        );
        assert_eq!(line(true, || None, |_| true), None);
    }
}
