//! Identity of processes, and their control groups.
//!
//! A process id is reused after a while, so that only the id and the start time together identify a process, and only
//! during one boot.

use std::path::Path;
use std::{fs, io};

use crate::root::{self, Error, Result, Root, attribute, shown};

/// Identity of a process, unique during one boot and in one PID namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Start, in clock ticks after the boot (proc_pid_stat(5), field 22).
    pub started: u64,
}

/// The calling process.
///
/// # Errors
/// When `/proc/self/stat` cannot be read or understood.
pub fn own(root: &Root) -> Result<Process> {
    let path = root.proc.join("self/stat");
    let stat = read_stat(&root::read_bytes(&path)?, &path)?;
    Ok(stat.process)
}

/// The process with that id; `None` if there is none, or if it is a zombie.
///
/// # Errors
/// When its `/proc/PID/stat` exists and cannot be read or parsed: such a process must not count as ended.
pub fn of(root: &Root, pid: u32) -> Result<Option<Process>> {
    let path = root.proc.join(pid.to_string()).join("stat");
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if is_gone(&error) => return Ok(None),
        Err(source) => return Err(Error::Read { path, source }),
    };
    let stat = read_stat(&text, &path)?;
    // Zombies have ended; the states X and x are only seen briefly.
    let has_ended = matches!(stat.state, b'Z' | b'X' | b'x');
    Ok((!has_ended).then_some(stat.process))
}

/// True if an error means that the process does not exist, or ended while its file was open (ESRCH).
fn is_gone(error: &io::Error) -> bool {
    let ended = rustix::io::Errno::SRCH.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ended)
}

/// Id of this boot of the kernel, a random UUID (random(4), `boot_id`).
///
/// # Errors
/// When it cannot be read.
pub fn boot_id(root: &Root) -> Result<String> {
    root::read_text(&root.proc.join("sys/kernel/random/boot_id"))
}

/// The PID namespace of the calling process, as `pid:[4026531836]` (namespaces(7)): process ids are only valid within
/// a namespace. `None` on a kernel without namespaces.
pub fn pid_namespace(root: &Root) -> Option<String> {
    let link = fs::read_link(root.proc.join("self/ns/pid")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// Id of this installation of the system, from `etc`/machine-id (machine-id(5)). `None` if there is none, as in a
/// minimal container.
pub fn machine_id(etc: &Path) -> Option<String> {
    attribute(&etc.join("machine-id"))
}

struct Stat {
    process: Process,
    state: u8,
}

fn read_stat(text: &[u8], path: &Path) -> Result<Stat> {
    parse(text).ok_or_else(|| Error::Parse {
        path: path.to_owned(),
        line: 1,
        what: format!("'{}' names no process, state and start", shown(text)),
    })
}

/// Parses a line like `2187 (a name) S 1 …`: the program chooses the name, which may contain blanks, parentheses and
/// line feeds; the fields after it contain no parenthesis, so the last one ends it.
fn parse(text: &[u8]) -> Option<Stat> {
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let pid = text.split(|&byte| byte == b' ').next()?;
    let mut fields = text
        .get(end + 1..)?
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty());
    // Field 3, and 22 counted from the one after it.
    let state = *fields.next()?.first()?;
    let started = fields.nth(22 - 4)?;
    Some(Stat {
        process: Process {
            pid: std::str::from_utf8(pid).ok()?.parse().ok()?,
            started: std::str::from_utf8(started).ok()?.parse().ok()?,
        },
        state,
    })
}

/// Controllers of a hierarchy and the path of the group in it, from a line of `/proc/PID/cgroup` (cgroups(7)). The
/// unified hierarchy has no controllers there.
pub fn group_membership(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(':')?;
    rest.split_once(':')
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;
    use proptest::prelude::*;

    /// `/proc/PID/stat` of a shell, as Linux 6.18 writes it.
    const SHELL: &str = "2187 (bash) S 2180 2187 2187 34816 2188 4194304 1234 5678 0 1 2 3 4 5 20 0 \
                         1 0 8642097 7340032 1011 18446744073709551615 1 1 0 0 0 0 65536 4 65538 \
                         0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    fn tree(stat: &str) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path().join("proc");
        for process in ["2187", "self"] {
            fs::create_dir_all(proc.join(process).join("ns")).unwrap();
            fs::write(proc.join(process).join("stat"), stat).unwrap();
        }
        symlink("pid:[4026531836]", proc.join("self/ns/pid")).unwrap();
        fs::create_dir_all(proc.join("sys/kernel/random")).unwrap();
        fs::write(
            proc.join("sys/kernel/random/boot_id"),
            "0c5a3f5e-6b1f-4d0c-9a4e-3f1d2a7b9c10\n",
        )
        .unwrap();
        let root = Root::under(folder.path());
        (folder, root)
    }

    #[test]
    fn a_process_is_its_id_and_its_start() {
        let (_folder, root) = tree(SHELL);
        let shell = Process {
            pid: 2187,
            started: 8_642_097,
        };
        assert_eq!(of(&root, 2187).unwrap(), Some(shell));
        assert_eq!(own(&root).unwrap(), shell);
        assert_eq!(of(&root, 2188).unwrap(), None);
        assert_eq!(boot_id(&root).unwrap().len(), 36);
        assert_eq!(pid_namespace(&root).unwrap(), "pid:[4026531836]");
    }

    #[test]
    fn a_name_with_blanks_and_parentheses_moves_no_field() {
        for name in ["a b", "x) R 1 2 3", "((", ") S (", "two\nlines", ""] {
            let stat = SHELL.replace("(bash)", &format!("({name})"));
            let (_folder, root) = tree(&stat);
            let found = of(&root, 2187).unwrap().unwrap();
            assert_eq!((found.pid, found.started), (2187, 8_642_097), "{name}");
        }
    }

    #[test]
    fn a_zombie_has_ended() {
        let (_folder, root) = tree(&SHELL.replace(" S ", " Z "));
        assert_eq!(of(&root, 2187).unwrap(), None);
    }

    #[test]
    fn a_state_that_is_not_understood_is_no_ended_process() {
        for stat in ["", "2187 (bash) S 1 2", "x (bash) S", "2187 bash S"] {
            let (_folder, root) = tree(stat);
            let error = of(&root, 2187).unwrap_err().to_string();
            assert!(error.contains("2187/stat, line 1"), "{error}");
        }
    }

    #[test]
    fn a_child_of_this_kernel_is_seen_and_seen_to_end() {
        let root = Root::host();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let seen = of(&root, child.id()).unwrap().unwrap();
        assert!(seen.started >= own(&root).unwrap().started);
        assert_eq!(own(&root).unwrap().pid, std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_ne!(of(&root, seen.pid).unwrap(), Some(seen));
    }

    #[test]
    fn a_machine_without_an_id_has_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(machine_id(folder.path()), None);
        fs::write(folder.path().join("machine-id"), "6f0c\n").unwrap();
        assert_eq!(machine_id(folder.path()).unwrap(), "6f0c");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(text: Vec<u8>) {
            let _ = parse(&text);
        }
    }
}
