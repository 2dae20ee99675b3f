use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use linux::Root;
use linux::block::{BlockDeviceKind, Devices};

use super::bootstrap::arch_of;
use super::*;
use crate::connection::errors::{refusal, unreached};
use crate::connection::transport::COUNTERS_END_LINE;

fn program(arch: &'static str) -> Program {
    Program {
        path: "x".into(),
        arch,
        is_static: true,
        hash: String::new(),
        bytes: Arc::from(&b""[..]),
    }
}

fn ssh() -> OpenSsh {
    OpenSsh {
        config: None,
        user: Some("root".to_owned()),
        connect_timeout: Duration::from_secs(7),
        sudo: false,
        programs: vec![program("x86_64"), program("aarch64")],
    }
}

fn host(address: &str) -> Host {
    Host {
        name: "db1".to_owned(),
        address: address.to_owned(),
        ..Host::default()
    }
}

fn ssh_arguments(ssh: &OpenSsh, host: &Host) -> Vec<String> {
    let command = ssh.command(host, SCRIPT);
    let words = command.get_args();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn the_address_is_behind_the_options_and_the_host_s_own_user_counts() {
    let mut ssh = ssh();
    let ssh_text = ssh_arguments(&ssh, &host("10.0.0.1")).join(" ");
    assert!(
        ssh_text.starts_with("-l root -T ") && ssh_text.contains(" -- 10.0.0.1 exec sh -c '"),
        "{ssh_text}"
    );
    assert!(
        ssh_text.contains("BatchMode=yes") && ssh_text.contains("ConnectTimeout=7"),
        "{ssh_text}"
    );
    assert!(!ssh_text.contains("StrictHostKeyChecking"), "{ssh_text}");
    let ssh_text = ssh_arguments(&ssh, &host("admin@[fe80::1%eth0]")).join(" ");
    assert!(!ssh_text.contains("-l "), "{ssh_text}");
    assert!(
        ssh_text.contains("-- admin@fe80::1%eth0 exec"),
        "{ssh_text}"
    );
    ssh.config = Some("my config".into());
    let own = Host {
        user: Some("ec2-user".to_owned()),
        port: Some(2222),
        ..host("h")
    };
    let ssh_text = ssh_arguments(&ssh, &own);
    let options = ["-F", "my config", "-p", "2222", "-l", "ec2-user"];
    assert_eq!(ssh_text[..6], options);
    assert!(ssh_text.join(" ").contains(" -- h exec"), "{ssh_text:?}");
    assert_eq!(
        ssh.verbose(&own),
        "ssh -v -F 'my config' -p 2222 -l ec2-user h"
    );
}

#[test]
fn a_program_is_chosen_by_the_processor() {
    let ssh = ssh();
    let arch = arch_of(&host("h"), "Linux aarch64").unwrap();
    assert_eq!(ssh.program(&host("h"), arch).unwrap().arch, "aarch64");
    let why = ssh.program(&host("h"), "s390x").unwrap_err().to_string();
    assert!(
        why.contains("db1 is s390x, and the disksmith at hand is for x86_64 and aarch64"),
        "{why}"
    );
    let why = arch_of(&host("h"), "FreeBSD amd64")
        .unwrap_err()
        .to_string();
    assert!(why.contains("db1 runs FreeBSD"), "{why}");
}

#[test]
fn the_scripts_hold_nothing_that_a_login_shell_would_change() {
    for text in [SCRIPT, COUNTERS] {
        let line = one_line(text);
        let script = line
            .strip_prefix("exec sh -c '")
            .and_then(|line| line.strip_suffix('\''))
            .unwrap();
        assert!(!script.contains(['\'', '\\', '\n']), "{script}");
        assert!(!script.replace("!=", "").contains('!'), "{script}");
    }
}

/// Runs the script in this shell without ssh, and returns its lines.
fn by_hand(shell: &str, place: &Path, go: &str, program: &[u8]) -> Vec<String> {
    let path = std::env::var("PATH").unwrap();
    by_hand_with(&path, shell, place, go, program)
}

/// The same, with this PATH.
fn by_hand_with(path: &str, shell: &str, place: &Path, go: &str, program: &[u8]) -> Vec<String> {
    answers(
        SCRIPT,
        path,
        shell,
        place,
        &[go.as_bytes(), program].concat(),
    )
}

/// Lines that a script writes when it is sent these bytes.
fn answers(script: &str, path: &str, shell: &str, place: &Path, sent: &[u8]) -> Vec<String> {
    let mut child = Command::new(shell)
        .args(["-c", &one_line(script)])
        .env("TMPDIR", place)
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let _ = input.write_all(sent);
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn sum(bytes: &[u8], folder: &Path) -> String {
    let file = folder.join("sum");
    std::fs::write(&file, bytes).unwrap();
    let ssh_text = linux::exec::Exec::new("sha256sum")
        .arg(&file)
        .run()
        .unwrap();
    std::fs::remove_file(file).unwrap();
    ssh_text.text().split(' ').next().unwrap().to_owned()
}

#[test]
fn the_script_takes_a_program_in_checks_it_runs_it_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let bytes = b"#!/bin/sh\necho \"I am $1 of ${0##*/}\"\nexit 7\n";
    let hash = sum(bytes, place.path());
    for shell in ["sh", "bash"] {
        let ssh_text = by_hand(
            shell,
            place.path(),
            &format!("go {} {hash} no\n", bytes.len()),
            bytes,
        );
        let uname = linux::exec::Exec::new("uname")
            .args(["-s", "-m"])
            .run()
            .unwrap();
        assert_eq!(
            ssh_text,
            [
                format!("disksmith-fleet host {}", uname.text().trim()).as_str(),
                "disksmith-fleet ready",
                "disksmith-fleet received",
                "I am agent of disksmith",
                "disksmith-fleet ended 7",
            ]
        );
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

/// Creates programs that run these scripts, and returns a PATH on which they come first.
///
/// Another process writes them: a file that this process has open for writing is also open in each process that
/// another test forks meanwhile, and cannot be executed until that one executes its own program (execve(2), ETXTBSY).
fn path_with(folder: &Path, programs: &[(&str, &str)]) -> String {
    for (name, script) in programs {
        let written = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(written.path(), format!("#!/bin/sh\n{script}\n")).unwrap();
        let mut install = Command::new("install");
        install.args(["-m", "755"]).arg(written.path());
        assert!(install.arg(folder.join(name)).status().unwrap().success());
    }
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

#[test]
fn the_agent_is_root_by_sudo_or_the_reason_is_reported() {
    let (place, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bytes = b"#!/bin/sh\necho \"I am $1, $SUDO\"\n";
    let hash = sum(bytes, place.path());
    let go = format!("go {} {hash} yes\n", bytes.len());
    let user = ("id", "echo 1000");
    let sudo = (
        "sudo",
        "[ \"$1\" = -n ] || exit 9\nshift\nexec env SUDO=root \"$@\"",
    );
    let path = path_with(programs.path(), &[user, sudo]);
    let ssh_text = by_hand_with(&path, "sh", place.path(), &go, bytes);
    assert!(
        ssh_text.contains(&"I am agent, root".to_owned()),
        "{ssh_text:?}"
    );
    // Root needs no sudo.
    let deny = ("sudo", "echo 'sudo: a password is required' >&2; exit 1");
    let path = path_with(programs.path(), &[("id", "echo 0"), deny]);
    let ssh_text = by_hand_with(&path, "sh", place.path(), &go, bytes);
    assert!(
        ssh_text.contains(&"I am agent, ".to_owned()),
        "{ssh_text:?}"
    );
    let path = path_with(programs.path(), &[user, deny]);
    let ssh_text = by_hand_with(&path, "sh", place.path(), &go, bytes);
    assert_eq!(
        ssh_text.last().map(String::as_str),
        Some("disksmith-fleet refused sudo sudo: a password is required")
    );
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_program_that_does_not_arrive_whole_is_not_run() {
    let place = tempfile::tempdir().unwrap();
    let bytes = b"#!/bin/sh\necho run\n";
    let hash = sum(b"another", place.path());
    let ssh_text = by_hand(
        "sh",
        place.path(),
        &format!("go {} {hash} no\n", bytes.len()),
        bytes,
    );
    assert!(
        ssh_text[2].starts_with("disksmith-fleet refused hash "),
        "{ssh_text:?}"
    );
    let ssh_text = by_hand("sh", place.path(), &format!("go 99999 {hash} no\n"), bytes);
    assert!(
        ssh_text[2].starts_with("disksmith-fleet refused hash "),
        "{ssh_text:?}"
    );
    let ssh_text = by_hand("sh", place.path(), "stop\n", b"");
    assert_eq!(ssh_text.len(), 1, "{ssh_text:?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn refusals_and_failures_are_sentences() {
    for (words, expected) in [
        (
            "sudo sudo: a password is required",
            "sudo on db1 wants a password",
        ),
        ("sum", "db1 has none of sha256sum"),
        (
            "place  /tmp:noexec /run:full /a:unwritable",
            "/tmp may not execute (noexec), /run is full, /a may not be written;",
        ),
        (
            "write No space left on device",
            "could not be written on db1: No space left on device.",
        ),
        (
            "hash 00",
            "the program that arrived on db1 differs from the one that was sent",
        ),
    ] {
        let sentence = refusal("db1", words);
        assert!(
            sentence.contains(expected) && sentence.ends_with('.'),
            "{sentence}"
        );
    }
    for (ssh_text, expected) in [
        (
            "@@@\nIT IS POSSIBLE\nREMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification \
             failed.",
            "another host key than the one that is known",
        ),
        (
            "No ED25519 host key is known\r\nHost key verification failed.\r\n",
            "is not known; log in once",
        ),
        (
            "root@h: Permission denied (publickey).",
            "accepts none of the available keys: root@h: Permission denied (publickey).",
        ),
        (
            "ssh: connect to host h port 22: Connection refused\r\n",
            "was not reached: ssh: connect to host h port 22: Connection refused; to see more: ssh -v -p 2222 h",
        ),
        (
            "",
            "was not reached: ssh said nothing; to see more: ssh -v -p 2222 h",
        ),
    ] {
        let sentence = unreached("db1", "ssh -v -p 2222 h", ssh_text);
        assert!(sentence.contains(expected), "{sentence}");
    }
}

#[test]
fn a_host_that_does_not_exist_is_reported_without_waiting_long() {
    let mut ssh = ssh();
    ssh.config = Some("/dev/null".into());
    let began = Instant::now();
    // Port 1 of this host, on which nothing listens.
    let host = Host {
        port: Some(1),
        ..host("127.0.0.1")
    };
    let Err(trouble) = ssh.open(&host, &AtomicBool::new(false)) else {
        panic!("a program listens on port 1");
    };
    let is_reported = match &trouble {
        ConnectionError::Unreached(why) => {
            why.contains("db1 was not reached") || why.contains("not installed")
        }
        _ => false,
    };
    assert!(is_reported, "{trouble:?}");
    assert!(began.elapsed() < Duration::from_secs(30));
}

/// Disks of this host, by the rule of the agent (`facts.rs`).
fn disks() -> BTreeSet<String> {
    let devices = Devices::read(&Root::host()).unwrap();
    let disks = devices.iter().filter(|device| {
        matches!(device.kind, BlockDeviceKind::Disk) && !device.is_empty() && !device.hidden
    });
    disks.map(|disk| disk.name.clone()).collect()
}

#[test]
fn the_counters_of_this_host_are_printed_as_often_as_is_asked() {
    let place = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    for shell in ["sh", "bash"] {
        // Other tests attach and detach disks meanwhile.
        let (lines, own) = loop {
            let own = disks();
            let lines = answers(COUNTERS, &path, shell, place.path(), b"\n\n");
            if disks() == own {
                break (lines, own);
            }
        };
        assert!(
            lines[0].starts_with("disksmith-fleet host Linux "),
            "{lines:?}"
        );
        let blocks: Vec<&[String]> = lines[1..].split(|line| line == COUNTERS_END_LINE).collect();
        assert_eq!(blocks.len(), 3, "{lines:?}");
        assert!(blocks[2].is_empty(), "{lines:?}");
        for block in &blocks[..2] {
            for file in ["/proc/uptime:", "/proc/loadavg:", "/proc/net/dev:"] {
                assert!(block.iter().any(|line| line.starts_with(file)), "{block:?}");
            }
            let paths = block.iter().filter_map(|line| line.split_once("/stat:"));
            let names = paths.filter_map(|(path, _)| path.strip_prefix("/sys/class/block/"));
            let names: BTreeSet<String> = names.map(|name| name.replace('!', "/")).collect();
            assert_eq!(names, own, "{block:?}");
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
