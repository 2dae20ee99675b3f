//! All that is written where the user says: which files are replaced, which never, and what happens to an
//! answer that cannot be written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use loops::Loop;
use rustix::fs::{CWD, FileType, Mode};
use rustix::process::{Pid, Signal, kill_process};
use support::{Place, SHORT, is_root, names_in, output_of, under};

/// Every way to write a file or a folder of files where an option says: the words, of which `OUT` stands for
/// the path; whether the words alone do it here; and the name of the file where `OUT` is a folder.
const OUTPUTS: [(&str, bool, Option<&str>); 12] = [
    ("report last -o OUT", true, None),
    (
        "bench data --size 8M --seconds 100ms --phase page-read --report OUT",
        true,
        None,
    ),
    ("watch --parse log --report OUT", true, None),
    (
        "watch --json --interval 100ms --count 2 --report OUT",
        true,
        None,
    ),
    ("watch --at -1h --report OUT", false, None),
    ("sweep --show last --report OUT", false, None),
    (
        "lab serve --volumes 1xgp3:1GiB --listen 127.0.0.1:0 --truth OUT",
        false,
        None,
    ),
    (
        "fleet race --list ./hosts --keep 1 --out OUT -- /a",
        false,
        Some("keep.txt"),
    ),
    ("man OUT", true, Some("disksmith-bench.1")),
    ("trace show trace --report OUT", true, None),
    ("trace convert trace OUT", false, None),
    ("doctor --check host --report OUT", false, None),
];

const PRECIOUS: &str = "the only copy\n";

/// A place with what the words need.
fn place() -> Place {
    let place = Place::new();
    place.bench(&SHORT).ends_with(0);
    let log = "avg-cpu:  %user\n           1.00\n\nDevice r/s w/s rkB/s wkB/s avgqu-sz await %util\n\
               sda 100.00 200.00 400.00 800.00 0.50 1.67 30.00\n\n";
    fs::write(place.path("log"), log.repeat(3)).unwrap();
    fs::write(place.path("hosts"), "db1\ndb2\n").unwrap();
    let trace =
        "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n/dev/sda close\n";
    fs::write(place.path("trace"), trace).unwrap();
    fs::write(place.path("precious"), PRECIOUS).unwrap();
    place
}

/// The words with the path, and the path of the file that they write.
fn of(words: &str, named: Option<&str>, out: &str) -> (String, String) {
    let file = named.map_or(out.to_owned(), |name| format!("{out}/{name}"));
    (words.replace("OUT", out), file)
}

/// Makes a node of a disk, or where there is none a link to a device.
fn make_node(disk: Option<&Loop>, at: &Path) {
    let Some(disk) = disk else {
        return symlink("/dev/full", at).unwrap();
    };
    let number = fs::metadata(disk.path()).unwrap().rdev();
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, at, FileType::BlockDevice, mode, number).unwrap();
}

#[test]
fn no_verb_replaces_what_is_not_its_own_nor_writes_to_a_device() {
    let place = place();
    let disk = if is_root() { Loop::new(1) } else { None };
    let runs = place.runs();
    for (words, _, named) in OUTPUTS {
        let out = if named.is_some() { "folder" } else { "out" };
        let (words, file) = of(words, named, out);
        let at = place.path(&file);
        // What else may lie there, the tests of `ui` try: each verb must only go through that.
        let precious = place.path("precious");
        let states: [(&str, &dyn Fn(), &str); 3] = [
            ("text", &|| fs::write(&at, PRECIOUS).unwrap(), "--force"),
            (
                "a link to text",
                &|| symlink(&precious, &at).unwrap(),
                "symbolic link",
            ),
            (
                "a block device",
                &|| make_node(disk.as_ref(), &at),
                if disk.is_some() {
                    "block device"
                } else {
                    "symbolic link"
                },
            ),
        ];
        for (what, make, why) in states {
            if named.is_some() {
                fs::create_dir(place.path(out)).unwrap();
            }
            make();
            let said = place.run(&words).ends_with(2);
            assert!(
                said.out.is_empty() && said.err.contains(why),
                "{what}: {said:#?}"
            );
            assert!(said.err.contains(&file), "{what}: {said:#?}");
            let kept = fs::read_to_string(place.path("precious")).unwrap();
            assert_eq!(kept, PRECIOUS, "{what}");
            if what == "text" {
                assert_eq!(fs::read_to_string(&at).unwrap(), PRECIOUS);
            }
            let folder = at.parent().unwrap();
            let left: Vec<String> = names_in(folder)
                .into_iter()
                .filter(|name| name.starts_with(".disksmith"))
                .collect();
            assert_eq!(left, [""; 0], "{what}");
            if named.is_some() {
                // Nothing was written next to it either.
                assert_eq!(names_in(folder).len(), 1, "{words:?} over {what}");
                fs::remove_dir_all(folder).unwrap();
            } else {
                fs::remove_file(&at).unwrap();
            }
        }
    }
    assert_eq!(place.runs(), runs, "something was measured");
}

#[test]
fn what_is_new_or_its_own_or_given_up_is_written_as_a_whole() {
    let place = place();
    for (words, writes, named) in OUTPUTS.into_iter().filter(|(_, writes, _)| *writes) {
        let out = if named.is_some() { "folder" } else { "out" };
        if named.is_some() {
            fs::create_dir(place.path(out)).unwrap();
        }
        let (words, file) = of(words, named, out);
        let at = place.path(&file);
        assert!(writes);
        for round in ["new", "its own", "forced"] {
            let mut words = words.clone();
            if round == "forced" {
                fs::remove_file(&at).unwrap();
                symlink(place.path("precious"), &at).unwrap();
                words.push_str(" --force");
            }
            place.run(&words).ends_with(0);
            let text = fs::read_to_string(&at).unwrap();
            let ours = [
                "name=\"generator\" content=\"disksmith\"",
                "Generated by disksmith",
            ];
            assert!(ours.iter().any(|mark| text.contains(mark)), "{words:?}");
            assert!(fs::symlink_metadata(&at).unwrap().is_file());
            assert_eq!(
                fs::read_to_string(place.path("precious")).unwrap(),
                PRECIOUS
            );
        }
        match named {
            Some(_) => fs::remove_dir_all(place.path(out)).unwrap(),
            None => fs::remove_file(&at).unwrap(),
        }
    }
}

#[test]
fn the_truth_of_a_lab_replaces_its_own_and_is_forced_over_others() {
    let place = place();
    let serve = |more: &str| {
        let words =
            format!("lab serve --volumes 1xgp3:1GiB --listen 127.0.0.1:0 --truth truth {more}");
        let mut server = place.command(&words).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.contains("nbd"), "{line}");
        kill_process(Pid::from_child(&server), Signal::INT).unwrap();
        assert_eq!(server.wait().unwrap().code(), Some(0));
        let text = fs::read_to_string(place.path("truth")).unwrap();
        let truth: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(
            truth["generator"]
                .as_str()
                .unwrap()
                .starts_with("disksmith "),
            "{truth}"
        );
    };
    serve("");
    serve("");
    fs::write(place.path("truth"), PRECIOUS).unwrap();
    serve("--force");
}

#[test]
fn a_report_goes_to_a_pipe_and_to_standard_output() {
    let place = place();
    let piped = place.run("report last -o /dev/stdout").ends_with(0);
    assert!(piped.out.starts_with("<!doctype html>") && piped.out.ends_with("</html>"));
    let mut full = place.command("report last -o /dev/stdout");
    full.stdout(fs::File::options().write(true).open("/dev/full").unwrap());
    let refused = output_of(&mut full).ends_with(2);
    refused.warns(&["device"]);
    place.run("report last -o /dev/null").ends_with(0);
}

/// Everything that only prints.
const TEXTS: [&str; 14] = [
    "--help",
    "--version",
    "help",
    "bench --help",
    "watch -h",
    "help fleet race",
    "completions bash",
    "devices",
    "devices --json",
    "runs",
    "show last",
    "compare last last --json",
    "mark --list",
    "watch --json --interval 100ms --count 1",
];

#[test]
fn an_answer_that_cannot_be_written_is_an_error_and_a_closed_pipe_is_none() {
    let place = place();
    for words in TEXTS {
        let mut command = place.command(words);
        command.stdout(fs::File::options().write(true).open("/dev/full").unwrap());
        let full = output_of(&mut command).ends_with(3);
        assert!(
            full.err.contains("could not be written to standard output"),
            "{words:?}: {full:#?}"
        );
        assert_eq!(full.err.matches("os error 28").count(), 1, "{full:#?}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = place.command(words);
        command.stdout(Stdio::from(writer));
        let closed = output_of(&mut command).ends_with(0);
        assert_eq!(closed.err, "", "{words:?}");
        place.run(words).ends_with(0);
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_with_a_sentence() {
    let place = place();
    // Blocks of 512 bytes in a POSIX shell.
    let limit = "ulimit -f 100";
    let report = place.command("report last -o page.html");
    let said = under(limit, &report).ends_with(3);
    said.warns(&["page.html could not be written", "os error 27"]);
    assert!(!place.path("page.html").exists());
    let bench = place.command(&[&["bench", "data"], &SHORT[..]].concat());
    let said = under(limit, &bench).ends_with(3);
    said.warns(&["os error 27"]);
    // SQLite says of this only that it is an I/O error.
    let mut mark = place.command("mark deploy");
    mark.env("DISKSMITH_LEDGER", place.path("new.db"));
    under("ulimit -f 0", &mark)
        .refuses(&["new.db cannot be written (disk I/O error)", "ulimit -f"]);
    place.assert_nothing_left();
}

/// A descriptor that the caller opened for reading is none to write to, whatever its file allows.
#[test]
fn a_descriptor_that_is_open_for_reading_is_no_output() {
    let place = place();
    let program = place.command("");
    let script = "exec \"$0\" report last -o /dev/fd/3 3<precious";
    let mut shell = Command::new("bash");
    shell.args(["-c", script]).arg(program.get_program());
    shell.current_dir(place.path(""));
    shell.env("DISKSMITH_LEDGER", place.ledger());
    let said = output_of(&mut shell).ends_with(2);
    said.warns(&["open for reading only"]);
    let kept = fs::read_to_string(place.path("precious")).unwrap();
    assert_eq!(kept, PRECIOUS);
}

/// A pipe that nobody reads ends the command with a sentence, and does not hold it forever.
#[test]
fn a_pipe_without_a_reader_is_not_waited_for_in_vain() {
    let place = place();
    let pipe = place.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let said = place.run("report last -o pipe").ends_with(3);
    said.warns(&["no program reads from this pipe"]);
}
