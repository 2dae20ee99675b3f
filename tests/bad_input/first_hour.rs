//! Situations of a new user's first hour: each is answered with a sentence that ends in a command to type.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::no_uring::without_uring;
use crate::support::{Place, ProgramOutput, Running, is_root, output_of};
use crate::{BRIEFLY, OtherUser, fs, try_run};

/// Advice where there is no place for the ledger.
const OTHER_LEDGER: &str = "export DISKSMITH_LEDGER=\"$(mktemp -d -p /var/tmp)/disksmith.db\"";

/// A situation, the answer there, its status, and the end of its last sentence.
struct Case {
    situation: &'static str,
    answer: ProgramOutput,
    status: i32,
    message: &'static str,
    command: String,
}

/// The last sentence of an answer: the error, or the answer itself where there is none.
fn last_sentence(answer: &ProgramOutput) -> String {
    let text = match answer.err.trim() {
        "" => &answer.out,
        err => err,
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(cases: Vec<Case>) {
    for case in cases {
        let (situation, answer) = (case.situation, &case.answer);
        assert_eq!(answer.status, Some(case.status), "{situation}: {answer:#?}");
        let sentence = last_sentence(answer);
        assert!(sentence.contains(case.message), "{situation}: {sentence}");
        assert!(sentence.ends_with(&case.command), "{situation}: {sentence}");
        assert!(!sentence.contains("panicked"), "{situation}: {sentence}");
    }
}

#[test]
fn sentences_of_the_first_hour_end_in_a_command() {
    let place = Place::new();
    let run = |words: &str| place.run(&words.split(' ').collect::<Vec<_>>());
    let create = "array create --level 0 --members data/a,data/b --destroy data/a --destroy data/b";
    let mut recording = Running::start(&mut place.command("watch --record --plain"));
    recording.wait_for_text("# ");
    let recorded = recording.id();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    check(vec![
        Case {
            situation: "a folder that is not there",
            answer: run("bench /no-such-folder"),
            status: 2,
            message: "there is no /no-such-folder",
            command: "disksmith bench .".to_owned(),
        },
        Case {
            situation: "a disk by its bare name",
            answer: run("bench vdz"),
            status: 2,
            message: "'disksmith devices'",
            command: "disksmith bench .".to_owned(),
        },
        Case {
            situation: "a disk without the space",
            answer: run("bench data --size 100000T"),
            status: 2,
            message: "does not fit",
            command: "disksmith bench data --size 64M".to_owned(),
        },
        Case {
            situation: "a disk that is not there",
            answer: run("zero /dev/no-such-disk --destroy /dev/no-such-disk"),
            status: 2,
            message: "/dev/no-such-disk cannot be opened",
            command: "disksmith devices".to_owned(),
        },
        Case {
            situation: "a run before there is one",
            answer: run("show last"),
            status: 2,
            message: "answers to 'last'",
            command: "disksmith runs".to_owned(),
        },
        Case {
            situation: "checks of a database that is not named",
            answer: run("doctor --check mysql"),
            status: 0,
            message: "None of these checks applies here",
            command: "disksmith doctor --mysql".to_owned(),
        },
        Case {
            situation: "io_uring, in a container that refuses it",
            answer: output_of(without_uring(
                &mut place.command("bench data --engine uring --size 8M"),
            )),
            status: 2,
            message: "io_uring cannot be used here",
            command: "--engine sync".to_owned(),
        },
        Case {
            situation: "no run yet",
            answer: run("runs --ledger new.db"),
            status: 0,
            message: "No runs are kept here yet",
            command: "disksmith bench .".to_owned(),
        },
        Case {
            situation: "two recorders at once",
            answer: run("watch --record --count 1 --plain"),
            status: 2,
            message: "two would keep everything twice",
            command: format!("kill {recorded}"),
        },
        Case {
            situation: "two servers at one port",
            answer: run(&format!("watch --prometheus {port} --count 1")),
            status: 2,
            message: "Address already in use",
            command: format!("ss -lntup sport = :{port}"),
        },
    ]);
    check(vec![
        Case {
            situation: "a replay of a trace that is not there",
            answer: run("replay no-trace data/a"),
            status: 2,
            message: "no-trace could not be read: there is no such file",
            command: "disksmith trace record DEVICE --output no-trace".to_owned(),
        },
        Case {
            situation: "a folder for a trace",
            answer: run("trace show data"),
            status: 2,
            message: "data could not be read: it is a directory",
            command: "disksmith trace record DEVICE --output data/trace.dst".to_owned(),
        },
        Case {
            situation: "a result of fio that is not there",
            answer: run("import no-result"),
            status: 2,
            message: "no-result cannot be imported: there is no such file",
            command: "disksmith import --help".to_owned(),
        },
        Case {
            situation: "a job file that is not there",
            answer: run("bench data --fio no-job"),
            status: 2,
            message: "the job file no-job cannot be read: there is no such file",
            command: "disksmith bench .".to_owned(),
        },
        Case {
            situation: "a log of iostat that is not there",
            answer: run("watch --parse no-log"),
            status: 2,
            message: "no-log cannot be read: there is no such file",
            command: "iostat -dxty 1 60 > iostat.log".to_owned(),
        },
        Case {
            situation: "a log of events that is not there",
            answer: run("tally --from no-log --store sqlite:tally.db"),
            status: 2,
            message: "no-log cannot be read: there is no such file",
            command: "disksmith tally --help".to_owned(),
        },
        Case {
            situation: "a configuration that is not there",
            answer: run("config check etc/watch.toml"),
            status: 2,
            message: "etc/watch.toml cannot be read: there is no such file",
            command: "ls .".to_owned(),
        },
        Case {
            situation: "a folder for a configuration",
            answer: run("config check data"),
            status: 2,
            message: "data cannot be read: it is a directory",
            command: "ls data".to_owned(),
        },
        Case {
            situation: "a list of hosts that is not there",
            answer: run("fleet run --list no-list -- devices"),
            status: 2,
            message: "There is no list 'no-list'",
            command: "/.dsh/machines.no-list".to_owned(),
        },
    ]);
    for (situation, words) in [
        (
            "a protection of metrics",
            "watch --prometheus 127.0.0.1:0 --web-config data/none",
        ),
        (
            "a token",
            "tally --from http:127.0.0.1:0 --store sqlite:tally.db --token-file data/none",
        ),
        (
            "a certificate",
            "serve --tls-cert data/none --tls-key data/none",
        ),
        (
            "a list of prices",
            "cost --workload last --prices data/none",
        ),
        (
            "a list of hosts with its path",
            "fleet run --list data/none -- devices",
        ),
        (
            "a program to send",
            "fleet run --hosts a --binary data/none -- devices",
        ),
        ("a folder of a database", "doctor --data data/none"),
        (
            "prices of a sweep",
            "sweep --devices /dev/null --price data/none",
        ),
    ] {
        check(vec![Case {
            situation,
            answer: run(words),
            status: 2,
            message: "data/none cannot be read: there is no such file",
            command: "ls data".to_owned(),
        }]);
    }
    if crate::support::has_program("ssh") {
        let closed = crate::support::ports::free_port();
        fs::write(place.path("hosts"), format!("127.0.0.1 port={closed}\n")).unwrap();
        let mut top = Running::start(&mut place.command("fleet top --list ./hosts"));
        top.wait_for_text("127.0.0.1 was not reached");
        top.signal(rustix::process::Signal::INT);
        check(vec![Case {
            situation: "a host that is not there",
            answer: top.end(),
            status: 2,
            message: "Connection refused; to see more",
            command: format!("ssh -v -p {closed} 127.0.0.1"),
        }]);
    }
    // No manager of packages and no mdadm are found there.
    let mut create = place.command(&create.split(' ').collect::<Vec<_>>());
    let missing = output_of(create.env("PATH", place.data())).ends_with(2);
    missing.warns(&["install the package mdadm"]);
    recording.signal(rustix::process::Signal::INT);
    recording.end();
    place.assert_nothing_left();
}

#[test]
fn with_root_what_another_user_meets_in_the_first_hour_ends_in_a_command() {
    let Some(other_user) = OtherUser::new() else {
        return;
    };
    let program = other_user
        .folder
        .path()
        .join("disksmith")
        .display()
        .to_string();
    let closed = other_user.folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    let secret = other_user.folder.path().join("secret");
    fs::write(&secret, [1; 1 << 20]).unwrap();
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let (closed, secret) = (closed.display(), secret.display());
    let run = |words: &str| {
        let words = words.split(' ').collect::<Vec<_>>();
        output_of(other_user.command().args(words))
    };
    let homeless = |home: Option<&str>| {
        let mut command = other_user.command();
        command
            .env_remove("DISKSMITH_LEDGER")
            .env_remove("XDG_STATE_HOME");
        match home {
            Some(home) => command.env("HOME", home),
            None => command.env_remove("HOME"),
        };
        output_of(command.args(["mark", "deploy"]))
    };
    let export = OTHER_LEDGER.to_owned();
    // An emulator that is found and never started.
    let emulators = other_user.folder.path().join("emulators");
    fs::create_dir(&emulators).unwrap();
    for name in ["qemu-system-x86_64", "qemu-system-aarch64"] {
        fs::write(emulators.join(name), "").unwrap();
    }
    let lab = |home: Option<&str>| {
        let mut command = other_user.command();
        command.env_remove("XDG_CACHE_HOME").env("PATH", &emulators);
        match home {
            Some(home) => command.env("HOME", home),
            None => command.env_remove("HOME"),
        };
        output_of(command.args(["lab", "run", "--volumes", "gp3:1GiB", "--", "true"]))
    };
    let other_cache = "export XDG_CACHE_HOME=\"$(mktemp -d -p /var/tmp)\"";
    check(vec![
        Case {
            situation: "a folder of another user",
            answer: run(&format!("bench {closed} {BRIEFLY}")),
            status: 2,
            message: "may not be written by this user",
            command: format!("sudo {program} bench {closed} {BRIEFLY}"),
        },
        Case {
            situation: "a device of root",
            answer: run(&format!("bench {secret} {BRIEFLY}")),
            status: 2,
            message: "Permission denied",
            command: format!("sudo {program} bench {secret} {BRIEFLY}"),
        },
        Case {
            situation: "a configuration of root's",
            answer: run(&format!("config check {secret}")),
            status: 2,
            message: "cannot be read: this user may not",
            command: format!("sudo {program} config check {secret}"),
        },
        Case {
            situation: "times of requests, without root",
            answer: run("watch --latency --count 1 --plain"),
            status: 2,
            message: "tracing needs root",
            command: format!("sudo {program} watch --latency --count 1 --plain"),
        },
        Case {
            situation: "no HOME",
            answer: homeless(None),
            status: 2,
            message: "there is no place for the ledger",
            command: export.clone(),
        },
        Case {
            situation: "a HOME that is not this user's",
            answer: homeless(Some("/proc/1")),
            status: 2,
            message: "could not be opened",
            command: export,
        },
        Case {
            situation: "the lab without HOME",
            answer: lab(None),
            status: 2,
            message: "/var/cache/disksmith/lab could not be created",
            command: other_cache.to_owned(),
        },
        Case {
            situation: "the lab with a HOME that is not this user's",
            answer: lab(Some("/proc/1")),
            status: 2,
            message: "/proc/1/.cache/disksmith/lab could not be created",
            command: other_cache.to_owned(),
        },
    ]);
}

#[test]
fn with_root_another_user_is_told_how_the_kernels_log_is_read() {
    let Some(other_user) = OtherUser::new() else {
        return;
    };
    if !std::path::Path::new("/dev/kmsg").exists() {
        return crate::skipped("there is no /dev/kmsg");
    }
    if !may_mount() {
        return;
    }
    let program = other_user
        .folder
        .path()
        .join("disksmith")
        .display()
        .to_string();
    // In its place is a file of root's, as some kernels let everybody read it (kernel.dmesg_restrict).
    let script = "touch \"$1.log\"; chmod 600 \"$1.log\"; mount --bind \"$1.log\" /dev/kmsg
        exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$1\" watch --count 1 --plain";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-ec", script]);
    command.args(["sh", &program]).stdin(Stdio::null());
    command.env(
        "DISKSMITH_LEDGER",
        other_user.folder.path().join("ledger.db"),
    );
    check(vec![Case {
        situation: "the kernel's log, without root",
        answer: output_of(&mut command),
        status: 0,
        message: "Errors from the kernel's log are not shown, as this user may not read",
        command: format!("sudo {program} watch --count 1 --plain"),
    }]);
}

/// True for root that may mount in a namespace of its own, which a container may deny; otherwise with a note.
fn may_mount() -> bool {
    let words = "--mount --propagation private mount -t tmpfs none /mnt";
    let tried = || try_run("unshare", &words.split(' ').collect::<Vec<_>>());
    is_root()
        && tried()
            .map_err(|why| crate::skipped(&format!("root may not mount here: {why}")))
            .is_ok()
}

/// Runs a line of a shell in a mount namespace of its own, where `$disksmith` is the program.
fn in_own_mounts(place: &Place, script: &str) -> ProgramOutput {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-ec", script]);
    command
        .current_dir(place.path(""))
        .env("disksmith", assert_cmd::cargo::cargo_bin!("disksmith"))
        .env("DISKSMITH_LEDGER", place.ledger())
        .env("COLUMNS", "100")
        .stdin(Stdio::null());
    output_of(&mut command)
}

#[test]
fn with_root_small_full_and_memory_file_systems_are_answered_with_a_command() {
    if !may_mount() {
        return;
    }
    let place = Place::new();
    let on = |options: &str, words: &str| {
        let script = format!(
            "mount -t tmpfs -o {options} none data; exec \"$disksmith\" bench data {words}"
        );
        in_own_mounts(&place, &script)
    };
    check(vec![
        Case {
            situation: "a tiny disk",
            answer: on("size=64k", ""),
            status: 2,
            message: "64 KiB are free",
            command: "disksmith bench DIRECTORY".to_owned(),
        },
        Case {
            situation: "a small disk",
            answer: on("size=40m", ""),
            status: 2,
            message: "at least 256 MiB are needed",
            command: "disksmith bench data --size 16M".to_owned(),
        },
    ]);
    let full = in_own_mounts(
        &place,
        "mount -t tmpfs -o size=64k none data; head -c 1M /dev/zero >data/full 2>/dev/null || :
        exec \"$disksmith\" mark deploy --ledger data/ledger.db",
    );
    check(vec![Case {
        situation: "no space for the ledger",
        answer: full,
        status: 2,
        message: "could not grow: its file system is full",
        command: OTHER_LEDGER.to_owned(),
    }]);
    let memory = on("size=40m", "--size 8M --phase seek --seconds 200ms").ends_with(0);
    memory.prints(&["no disk was measured"]);
    assert!(
        memory
            .prose()
            .contains("they are listed by: disksmith devices "),
        "{memory:#?}"
    );
    let overlay = in_own_mounts(
        &place,
        "mkdir lower upper work; mount -t overlay none data -o lowerdir=lower,upperdir=upper,workdir=work
        head -c 1M /dev/urandom >data/file; exec \"$disksmith\" bench data/file --destroy data/file=unknown",
    );
    check(vec![Case {
        situation: "a file on an overlay",
        answer: overlay,
        status: 2,
        message: "reached through an overlay",
        command: "disksmith bench DIRECTORY".to_owned(),
    }]);
}

/// Without a server: a mount that is of no device of this host either, with the line of a captured list of mounts.
#[test]
fn with_root_a_network_file_system_is_measured_and_its_server_is_named_with_a_command() {
    if !may_mount() {
        return;
    }
    let place = Place::new();
    let answer = in_own_mounts(
        &place,
        "mkdir lower upper work; mount -t overlay none data -o lowerdir=lower,upperdir=upper,workdir=work
        here=$(pwd -P)/data
        export=\"filer:/export rw,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp,sec=sys\"
        sed \"s|^\\(.* / $here .*\\) - overlay .*|\\1 - nfs4 $export|\" /proc/self/mountinfo >mounts
        grep -q nfs4 mounts
        mount --bind mounts /proc/$$/mountinfo
        exec \"$disksmith\" bench data --size 8M --phase seek --seconds 200ms",
    );
    let prose = answer.ends_with(0).prose();
    for words in [
        "data is on nfs4: the figures are those of the network and of another host",
        "Measure its disks there too: disksmith fleet run --hosts SERVER -- bench DIRECTORY",
    ] {
        assert!(prose.contains(words), "{prose}");
    }
}

#[test]
fn with_root_an_old_kernel_and_the_ledger_of_who_called_sudo_are_named_with_a_command() {
    if !may_mount() {
        return;
    }
    let place = Place::new();
    let home = fs::canonicalize(place.path("")).unwrap();
    let own_ledger = home.join(".local/state/disksmith/ledger.db");
    let other_ledger = "disksmith runs --ledger ".to_owned() + own_ledger.to_str().unwrap();
    check(vec![
        Case {
            situation: "an old kernel",
            answer: in_own_mounts(
                &place,
                "echo 4.19.0-27-amd64 >release; mount --bind release /proc/sys/kernel/osrelease
                exec \"$disksmith\" runs",
            ),
            status: 0,
            message: "this kernel is Linux 4.19.0-27-amd64, and disksmith is made for 5.10 and later",
            command: "disksmith bench --engine sync .".to_owned(),
        },
        Case {
            situation: "sudo with another HOME",
            answer: in_own_mounts(
                &place,
                "unset DISKSMITH_LEDGER XDG_STATE_HOME; export SUDO_USER=marta HOME=/root
                here=$(pwd -P); mkdir -p .local/state/disksmith
                HOME=$here XDG_STATE_HOME=$here/.local/state \"$disksmith\" mark before
                echo \"marta:x:1000:1000::$here:/bin/sh\" >passwd; mount --bind passwd /etc/passwd
                mount -t tmpfs none /var/lib
                exec \"$disksmith\" runs 2>/dev/null",
            ),
            status: 0,
            message: "Runs without sudo are in",
            command: other_ledger,
        },
    ]);
}

#[test]
fn the_disk_of_the_root_file_system_is_refused_with_the_command_that_lists_others() {
    let place = Place::new();
    let listed = place.run("devices --json").ends_with(0).json();
    let devices = listed["devices"].as_array().unwrap();
    let holds_root = |device: &&serde_json::Value| {
        let reasons = device["reasons"].as_array().unwrap().iter();
        let mut texts = reasons.filter_map(serde_json::Value::as_str);
        texts.any(|text| text.contains("of the running system"))
    };
    let Some(root) = devices.iter().find(holds_root) else {
        crate::skipped("the root file system is on no device that is seen here");
        return;
    };
    let path = format!("/dev/{}", root["name"].as_str().unwrap());
    let other_user = OtherUser::new();
    for verb in ["bench", "zero"] {
        let words = [verb, &path, "--destroy", &path];
        let of_other_user = other_user
            .as_ref()
            .map(|other_user| output_of(other_user.command().args(words)));
        for answer in [Some(place.run(&words)), of_other_user]
            .into_iter()
            .flatten()
        {
            let refused = answer.refuses(&[
                "of the running system, and is never overwritten",
                "others are listed by: disksmith devices\n",
            ]);
            // Nobody is led to do it nevertheless.
            for advice in ["sudo", "as root", "run it on the host", "unmount"] {
                assert!(!refused.err.contains(advice), "{advice}: {refused:#?}");
            }
        }
    }
}
