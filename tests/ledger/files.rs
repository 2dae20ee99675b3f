//! The ledger as a file: where it is, who may write it, and what is refused and left as it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{
    Place, ProgramOutput, Running, SHORT, Words, is_root, names_in, output_of, skipped,
};

/// A place with a ledger that holds one run and that nobody has open.
fn place_with_a_run() -> Place {
    let place = Place::new();
    place.bench(&SHORT).ends_with(0);
    place
}

/// Changes the ledger's bytes, and pins that no verb touches it then: not one byte of it, nor a
/// file next to it.
#[track_caller]
fn refused_and_untouched(change: impl FnOnce(&mut Vec<u8>), expected: &[&str]) {
    let place = place_with_a_run();
    let mut bytes = fs::read(place.ledger()).unwrap();
    change(&mut bytes);
    fs::write(place.ledger(), &bytes).unwrap();
    let beside = names_in(place.ledger().parent().unwrap());
    let bench = [&["bench", "data"], &SHORT[..]].concat();
    let words = ["show last", "runs remove last", "compare last last", "runs"];
    let words = words.map(|words| words.split(' ').collect());
    for words in words.into_iter().chain([bench]) {
        place.run(&words).refuses(&["ledger.db"]).refuses(expected);
        assert_eq!(fs::read(place.ledger()).unwrap(), bytes, "{words:?}");
        assert_eq!(names_in(place.ledger().parent().unwrap()), beside);
    }
    place.assert_nothing_left();
}

#[test]
fn a_file_that_is_no_ledger_is_refused_and_not_touched() {
    refused_and_untouched(
        |bytes| *bytes = b"my notes, which are no ledger\n".repeat(99),
        &["is not a ledger", "It was not touched"],
    );
}

#[test]
fn another_programs_file_is_refused_and_not_touched() {
    // The application id is 4 bytes at 68 (sqlite.org/fileformat2.html).
    refused_and_untouched(
        |bytes| bytes[68..72].copy_from_slice(b"GPKG"),
        &["belongs to another program", "--ledger"],
    );
}

#[test]
fn a_newer_ledger_is_refused_and_not_touched() {
    // The user version is 4 bytes at 60.
    refused_and_untouched(
        |bytes| bytes[60..64].copy_from_slice(&999_u32.to_be_bytes()),
        &["written by a newer disksmith (schema 999;"],
    );
}

#[test]
fn a_ledger_that_is_cut_short_is_refused_and_not_touched() {
    refused_and_untouched(
        |bytes| bytes.truncate(bytes.len() / 2),
        &["is damaged", "It was not repaired"],
    );
}

#[test]
fn a_ledger_with_a_page_of_garbage_is_refused_and_not_touched() {
    refused_and_untouched(
        |bytes| {
            let page = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
            for page in bytes[page..].chunks_mut(page) {
                page[..64].fill(0xa5);
            }
        },
        &["damaged"],
    );
}

#[test]
fn a_ledger_that_cannot_be_a_file_is_refused_before_anything_is_measured() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    for (ledger, expected) in [
        ("data", "is not a regular file"),
        ("/dev/null", "is not a regular file"),
        ("file/ledger.db", "could not be opened"),
    ] {
        for words in [&["runs"][..], &["bench", "data", "--size", "1M"]] {
            let words = [words, &["--ledger", ledger]].concat();
            place
                .run(&words)
                .refuses(&[ledger, expected, "DISKSMITH_LEDGER"]);
        }
    }
    place.assert_nothing_left();
}

#[test]
fn the_ledger_named_on_the_command_line_comes_before_that_of_the_environment() {
    let place = Place::new();
    let other = ["--ledger", "other/folder/mine.db"];
    place.bench(&[&SHORT[..], &other].concat()).ends_with(0);
    assert!(place.path("other/folder/mine.db").is_file());
    assert!(!place.ledger().exists());
    // It is named before the verb or after it.
    for words in [
        [&other[..], &["show", "last"]],
        [&["show", "last"], &other[..]],
    ] {
        place.run(&words.concat()).ends_with(0);
    }
    assert_eq!(place.runs(), [""; 0]);
}

#[test]
fn without_a_name_the_ledger_is_in_the_users_state_folder() {
    let place = Place::new();
    let arguments = [&["bench", "data"], &SHORT[..]].concat();
    let mut command = place.command(&arguments);
    command
        .env_remove("DISKSMITH_LEDGER")
        .env("XDG_STATE_HOME", place.path("state"))
        .env("HOME", place.path("home"));
    output_of(&mut command).ends_with(0);
    assert!(place.path("state/disksmith/ledger.db").is_file());

    if rustix::process::geteuid().is_root() {
        // Root's is the system's own, whatever his home is.
        return;
    }
    command.env_remove("XDG_STATE_HOME");
    output_of(&mut command).ends_with(0);
    let state = place.path("home/.local/state/disksmith");
    assert!(state.join("ledger.db").is_file());
}

#[test]
fn processes_that_write_at_once_all_keep_their_runs() {
    let place = Place::new();
    let options = "--size 1M --seconds 100ms --phase seek";
    let arguments = format!("bench data {options}");
    let running = [(); 6].map(|()| Running::start(&mut place.command(&arguments)));
    for run in running {
        let said = run.end().ends_with(0);
        assert_eq!(said.err, "");
    }
    let mut ids = place.runs();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 6);
}

/// Runs the program where the folder of its ledger is mounted read-only: root may write whatever
/// the permissions say. The mount is the command's own and ends with it.
fn with_a_read_only_ledger(
    place: &Place,
    folder: &Path,
    words: &(impl Words + ?Sized),
) -> ProgramOutput {
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script])
        .arg(folder)
        .arg(place.command("").get_program())
        .args(words.words())
        .current_dir(place.path(""))
        .env("DISKSMITH_LEDGER", folder.join("ledger.db"));
    output_of(&mut command)
}

#[test]
fn root_a_ledger_on_a_full_disk_is_read_and_a_run_alongside_it_is_measured_whole() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    place.bench(&SHORT).ends_with(0);
    let folder = place.path("state");
    fs::create_dir(&folder).unwrap();
    // The ledger is copied to a file system of its own, on which then not a byte is left.
    let script = "mount -t tmpfs -o size=1m tmpfs \"$0\" && cp ledger.db \"$0\" && \
                  { dd if=/dev/zero of=\"$0/filler\" bs=4k 2>/dev/null || :; } && exec \"$@\"";
    let in_it = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", script])
            .arg(&folder)
            .arg(place.command("").get_program())
            .args(words)
            .current_dir(place.path(""))
            .env("DISKSMITH_LEDGER", folder.join("ledger.db"));
        output_of(&mut command)
    };
    let probe = in_it(&["--version"]);
    if probe.status != Some(0) {
        skipped(&format!("no mount of one's own here: {}", probe.err.trim()));
        return;
    }
    for words in [
        "runs",
        "show last --json",
        "compare last last",
        "mark --list",
    ] {
        in_it(&words.split(' ').collect::<Vec<_>>()).ends_with(0);
    }
    let said = in_it(&["mark", "deploy"]).refuses(&["its file system is full"]);
    assert_eq!(said.err.matches("full").count(), 1, "{said:#?}");
    let run = in_it(&[&["bench", "data", "--json"], &SHORT[..]].concat()).ends_with(0);
    run.warns(&["this run will not be kept"]);
    assert_eq!(run.json()["phases"].as_array().unwrap().len(), 1);
}

#[test]
fn a_run_whose_ledger_is_removed_meanwhile_is_kept_in_a_new_one() {
    let place = Place::new();
    let folder = place.path("state");
    let ledger = folder.join("ledger.db");
    let mut bench = place.command("bench data --size 8M --phase page-read");
    bench.args(["--seconds", "10m", "--precision", "0"]);
    bench.env("DISKSMITH_LEDGER", &ledger);
    let mut run = Running::start(&mut bench);
    // It has its ledger by then, and measures.
    run.wait_for_reads();
    fs::remove_dir_all(&folder).unwrap();
    run.signal(rustix::process::Signal::INT);
    let said = run.end().ends_with(3);
    said.warns(&["was removed or replaced", "a new one is made"]);
    let listed = place.run(&["runs", "--json", "--ledger", ledger.to_str().unwrap()]);
    let listed = listed.ends_with(0).json();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn root_a_read_only_ledger_is_read_and_a_run_that_it_cannot_keep_is_reported() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let folder = place.path("state");
    fs::create_dir(&folder).unwrap();
    let in_it = |words: &[&str]| with_a_read_only_ledger(&place, &folder, words);
    let probe = in_it(&["--version"]);
    if probe.status != Some(0) {
        skipped(&format!("no mount of one's own here: {}", probe.err.trim()));
        return;
    }
    // With none there, nothing can be kept, and that is said.
    let bench = [&["bench", "data"], &SHORT[..]].concat();
    let run = in_it(&bench).ends_with(0);
    run.warns(&["this run will not be kept", "Read-only"]);

    let ledger = folder.join("ledger.db");
    let named = ["--ledger", ledger.to_str().unwrap()];
    place.bench(&[&SHORT[..], &named].concat()).ends_with(0);
    let bytes = fs::read(&ledger).unwrap();
    for words in ["runs", "show last", "compare last last"] {
        in_it(&words.split(' ').collect::<Vec<_>>()).ends_with(0);
    }
    in_it(&["runs", "remove", "last"]).refuses(&["cannot be written", "read-only"]);
    let run = in_it(&bench).ends_with(0);
    run.warns(&["this run will not be kept"]);
    run.prints(&["page-read"]);
    assert!(!run.prose().contains("Kept as run"), "{run:#?}");
    assert_eq!(fs::read(&ledger).unwrap(), bytes);
    assert_eq!(names_in(&folder), ["ledger.db"]);
}
