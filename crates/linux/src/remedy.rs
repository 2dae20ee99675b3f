//! Commands to type, for the ends of error messages.

use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind};
use std::path::Path;

use crate::exec;

/// Package managers, each with the prefix of the command that installs a package.
const MANAGERS: [(&str, &str); 5] = [
    ("apt-get", "apt-get install"),
    ("dnf", "dnf install"),
    ("zypper", "zypper install"),
    ("apk", "apk add"),
    ("pacman", "pacman -S"),
];

/// Clause for an action that only root may do: the present command, run as root. If root may not do it either, as in a
/// container, the clause says to run it on the host.
pub fn as_root() -> String {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_else(|| "disksmith".into());
    let arguments: Vec<OsString> = words.collect();
    rerun_command(rustix::process::geteuid().is_root(), &program, &arguments)
}

/// Command line of this process without one of its options, as a user would type it.
pub fn without(option: &str) -> String {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_else(|| "disksmith".into());
    line_without(option, &program, words.collect())
}

/// A command of this program as a user would type it, with the ledger of the present command, since another ledger
/// would not have the data.
pub fn command(line: &str) -> String {
    // The arguments of another program follow it.
    let words: Vec<OsString> = std::env::args_os()
        .take_while(|word| word != "--")
        .collect();
    command_in(named_ledger(&words), line)
}

fn command_in(ledger: Option<OsString>, line: &str) -> String {
    // An empty name counts as none.
    let named = ledger.filter(|file| !file.is_empty());
    let option = named.map(|file| exec::line("--ledger".as_ref(), &[file]));
    let option = option.map_or_else(String::new, |option| format!(" {option}"));
    format!("disksmith {line}{option}")
}

/// The ledger that the words of a command line name.
pub fn named_ledger(words: &[OsString]) -> Option<OsString> {
    let named = words.iter().position(|word| word == "--ledger");
    let apart = named.and_then(|at| words.get(at + 1));
    let joined = || {
        let after = |word: &OsString| word.to_str()?.strip_prefix("--ledger=").map(OsString::from);
        words.iter().find_map(after)
    };
    apart.cloned().or_else(joined)
}

fn line_without(option: &str, program: &OsStr, mut arguments: Vec<OsString>) -> String {
    // A later occurrence may be an argument of another program.
    if let Some(at) = arguments.iter().position(|word| word == option) {
        arguments.remove(at);
    }
    exec::line(&typed(program), &arguments)
}

fn rerun_command(is_root: bool, program: &OsStr, arguments: &[OsString]) -> String {
    // An agent of a fleet is not started by a user.
    if arguments
        .first()
        .is_some_and(|verb| verb == "agent" || verb == "rounds")
    {
        return "run it as root: fleet has --sudo".to_owned();
    }
    let line = exec::line(&typed(program), arguments);
    match is_root {
        true => format!("root may not here, as in a container; run it on the host: {line}"),
        false => format!("run it as root: sudo {line}"),
    }
}

/// The program as it was called: by its name on the PATH, or by its path.
fn typed(program: &OsStr) -> OsString {
    match Path::new(program).components().count() {
        1 => "disksmith".into(),
        _ => program.to_owned(),
    }
}

/// The error of a port on which this program cannot listen, with advice about a port that is in use, and about a port
/// that is reserved for root.
pub fn port(error: Error, port: u16) -> Error {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => {
            format!("name another port, or see which program listens: ss -lntup sport = :{port}")
        }
        ErrorKind::PermissionDenied => format!("name a port above 1023, or {}", as_root()),
        _ => return error,
    };
    Error::new(error.kind(), format!("{error}; {remedy}"))
}

/// Reason why a file cannot be read. `other` is the advice for a missing file or a directory: a clause that ends in a
/// command.
pub fn file(error: &Error, other: &str) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!("there is no such file; {other}"),
        ErrorKind::IsADirectory => format!("it is a directory; {other}"),
        ErrorKind::PermissionDenied => format!("this user may not; {}", as_root()),
        _ => error.to_string(),
    }
}

/// Sentence about a file that was named by the user and cannot be read: its path, the reason, and advice. For a
/// missing file the command lists the nearest existing folder above it.
pub fn unread(path: &Path, error: &Error) -> String {
    let mut above = path.ancestors().filter(|folder| folder.is_dir());
    let folder = above.next().unwrap_or(Path::new("."));
    let list = exec::line("ls".as_ref(), &[folder.into()]);
    let reason = file(
        error,
        &format!("those that are there are listed by: {list}"),
    );
    format!("{} cannot be read: {reason}", path.display())
}

/// Clause about a missing package: the command that installs it on this host.
pub fn install(package: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has =
        |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    installed_by(rustix::process::geteuid().is_root(), package, has)
}

fn installed_by(is_root: bool, package: &str, has: impl Fn(&str) -> bool) -> String {
    let sudo = if is_root { "" } else { "sudo " };
    match MANAGERS.iter().find(|(program, _)| has(program)) {
        Some((_, command)) => format!("install it: {sudo}{command} {package}"),
        None => format!("install the package {package}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_the_one_that_was_typed() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let at = |is_root, program: &str, line: &[&str]| {
            rerun_command(is_root, program.as_ref(), &words(line))
        };
        assert_eq!(
            at(false, "disksmith", &["bench", "/my data"]),
            "run it as root: sudo disksmith bench '/my data'"
        );
        assert_eq!(
            at(false, "target/release/disksmith", &["warm", "/dev/vdb"]),
            "run it as root: sudo target/release/disksmith warm /dev/vdb"
        );
        assert_eq!(
            at(true, "disksmith", &["warm", "/dev/vdb"]),
            "root may not here, as in a container; run it on the host: disksmith warm /dev/vdb"
        );
        assert_eq!(
            at(false, "/run/x/disksmith", &["agent"]),
            "run it as root: fleet has --sudo"
        );
    }

    #[test]
    fn an_option_is_left_out_of_a_command_and_its_words_are_quoted() {
        let words = ["fleet", "exec", "--retry-failed", "--", "sh", "-c", "a 'b'"];
        let words = words.iter().map(OsString::from).collect();
        assert_eq!(
            line_without("--retry-failed", "disksmith".as_ref(), words),
            r"disksmith fleet exec -- sh -c 'a '\''b'\'''"
        );
    }

    #[test]
    fn a_command_names_the_ledger_that_this_one_names() {
        let of = |line: &str| {
            let words: Vec<_> = line.split(' ').map(OsString::from).collect();
            command_in(named_ledger(&words), "fleet show last")
        };
        assert_eq!(of("disksmith fleet run"), "disksmith fleet show last");
        let named = "disksmith fleet show last --ledger /a";
        assert_eq!(of("disksmith --ledger /a fleet run"), named);
        assert_eq!(of("disksmith fleet run --ledger=/a"), named);
        assert_eq!(of("disksmith fleet run --ledger="), of("disksmith"));
        let spaced = command_in(Some("/my ledger".into()), "runs");
        assert_eq!(spaced, "disksmith runs --ledger '/my ledger'");
    }

    #[test]
    fn the_error_of_a_port_says_what_to_do() {
        let in_use = port(ErrorKind::AddrInUse.into(), 9188);
        assert_eq!(in_use.kind(), ErrorKind::AddrInUse);
        assert!(
            in_use.to_string().ends_with(": ss -lntup sport = :9188"),
            "{in_use}"
        );
        let other = port(ErrorKind::AddrNotAvailable.into(), 9188).to_string();
        assert_eq!(other, Error::from(ErrorKind::AddrNotAvailable).to_string());
    }

    #[test]
    fn the_error_of_a_file_ends_in_a_command() {
        let other = "they are listed by: ls";
        let of = |kind: ErrorKind| file(&kind.into(), other);
        assert_eq!(
            of(ErrorKind::NotFound),
            "there is no such file; they are listed by: ls"
        );
        assert_eq!(
            of(ErrorKind::IsADirectory),
            "it is a directory; they are listed by: ls"
        );
        let refused = of(ErrorKind::PermissionDenied);
        assert!(refused.starts_with("this user may not; "), "{refused}");
        let full = Error::from_raw_os_error(23);
        assert_eq!(file(&full, other), full.to_string());
    }

    #[test]
    fn of_a_missing_file_the_nearest_folder_is_listed() {
        let of = |path: &str| unread(path.as_ref(), &ErrorKind::NotFound.into());
        let list = "there is no such file; those that are there are listed by: ls";
        assert_eq!(
            of("/proc/no/such"),
            format!("/proc/no/such cannot be read: {list} /proc")
        );
        assert_eq!(of("such"), format!("such cannot be read: {list} ."));
    }

    #[test]
    fn a_package_is_installed_by_the_manager_that_is_there() {
        assert_eq!(
            installed_by(true, "mdadm", |_| true),
            "install it: apt-get install mdadm"
        );
        assert_eq!(
            installed_by(false, "mdadm", |name| name == "dnf"),
            "install it: sudo dnf install mdadm"
        );
        assert_eq!(
            installed_by(false, "mdadm", |_| false),
            "install the package mdadm"
        );
    }
}
