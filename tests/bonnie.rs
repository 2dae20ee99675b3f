//! `bench --suite bonnie` through the real program: what it makes, what it leaves, and beside
//! Bonnie++ itself.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a comparison says what it has seen")]

#[path = "support/beside.rs"]
mod beside;
#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use beside::{Limited, can_run, same, tries};
use rustix::process::Signal;
use support::{Place, Running, names_in, under};

/// All of it, small.
const SMALL: [&str; 8] = [
    "bench", "data", "--suite", "bonnie", "--size", "4M", "--files", "200",
];

const TESTS: [&str; 12] = [
    "char-write",
    "block-write",
    "rewrite",
    "char-read",
    "block-read",
    "seeks",
    "seq-create",
    "seq-stat",
    "seq-delete",
    "random-create",
    "random-stat",
    "random-delete",
];

#[test]
fn all_tests_are_made_in_order_and_leave_nothing() {
    let place = Place::new();
    let document = place.run(&[&SMALL[..], &["--json"]].concat());
    let document = document.ends_with(0).json();
    place.assert_nothing_left();
    let phases = document["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, TESTS);
    assert_eq!(document["suite"], "bonnie");
    assert_eq!(document["target"]["direct"], false);
    // Far less than the memory: nobody takes this for the disk's.
    assert_eq!(document["verdict"], "invalid");
    let of = |name: &str| phases.iter().find(|phase| phase["name"] == name).unwrap();
    assert_eq!(of("char-write")["write"]["ops"], 3 << 20);
    assert_eq!(of("block-write")["write"]["bytes"], 4 << 20);
    assert_eq!(of("block-write")["sync"]["ops"], 1);
    assert_eq!(of("rewrite")["read"]["ops"], of("rewrite")["write"]["ops"]);
    assert_eq!(of("seeks")["read"]["ops"], 8192);
    // Work on files is neither a read nor a write.
    let create = of("seq-create");
    assert_eq!(create["create"]["ops"], 200);
    assert!(create["write"].is_null() && create["stat"].is_null());
    assert_eq!(of("random-stat")["stat"]["ops"], 200);
    assert_eq!(of("random-delete")["delete"]["ops"], 200);
    let tests = document["answer"]["tests"].as_array().unwrap();
    for (test, phase) in tests.iter().zip(phases) {
        let rate = test["bytes_per_s"].as_f64().or(test["per_s"].as_f64());
        assert!(rate.unwrap() > 0.0, "{test}");
        assert!(test["cpu"].as_f64().unwrap() >= 0.0);
        // A flush is no call of the test, as Bonnie++ has it.
        let longest = |key: &str| phase[key]["latency_ns"]["max"].as_u64();
        let calls = ["read", "write", "create", "stat", "delete"];
        let calls = calls.into_iter().filter_map(longest).max();
        assert_eq!(test["max_ns"].as_u64(), calls, "{test}");
        assert_eq!(test["max_sync_ns"].as_u64(), longest("sync"), "{test}");
        assert!(!phase["windows"].as_array().unwrap().is_empty());
    }
}

#[test]
fn its_line_reads_as_one_of_bonnie_and_compares_with_one() {
    let place = Place::new();
    let line = place.run(&[&SMALL[..], &["--format", "bonnie"]].concat());
    let line = line.ends_with(0).out;
    let fields: Vec<&str> = line.trim_end().split(',').collect();
    assert_eq!((fields[0], fields.len()), ("1.98", 50));
    // The file's, and not those of the tests of single bytes; 8 KiB is what Bonnie++ leaves out.
    assert_eq!((fields[3], &fields[5..7]), ("1", &["4M", ""][..]));
    // The start stands where Bonnie++ has the seed, by default the time too.
    assert!(fields[4].parse::<i64>().is_ok(), "{line}");
    // The rate, the share of the processor and the longest call of each test.
    let rates = (0..6).chain(0..6).enumerate().map(|(test, _)| match test {
        0..6 => 9 + 2 * test,
        _ => 9 + 2 * test + 5,
    });
    for at in rates {
        assert!(fields[at].parse::<f64>().is_ok(), "{at} of {line}");
        assert!(fields[at + 1].parse::<f64>().is_ok(), "{at} of {line}");
    }
    for latency in &fields[38..50] {
        assert!(latency.ends_with('s'), "{latency} of {line}");
    }
    let measured = place.runs().remove(0);
    fs::write(place.path("line.csv"), &line).unwrap();
    place.run("import line.csv").ends_with(0);
    let runs = place.runs();
    assert_eq!(runs.len(), 2);
    let said = place.run(&["compare", &runs[0], &runs[1]]).ends_with(0);
    for test in TESTS {
        let compared = format!("{test} ");
        assert!(said.prose().contains(&compared), "no {test} in {said:#?}");
    }
    assert!(!said.prose().contains("has no phase"), "{said:#?}");
    assert!(!said.prose().contains("did not do the same"), "{said:#?}");
    // Nor next to one that bonnie++ has written, whose file has another size.
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../formats/fixtures/bonnie-2.00a.csv"
    );
    let first = fs::read_to_string(fixture).unwrap();
    fs::write(place.path("real.csv"), first.lines().next().unwrap()).unwrap();
    place.run("import real.csv").ends_with(0);
    let real = place.runs().into_iter().find(|run| !runs.contains(run));
    let said = place
        .run(&["compare", &measured, &real.unwrap()])
        .ends_with(0);
    for test in ["char-write", "char-read"] {
        said.prints(&[test]);
        let apart = format!("{test}: the two runs did not do the same");
        assert!(!said.prose().contains(&apart), "{said:#?}");
    }
}

#[test]
fn a_run_can_be_flushed_at_every_write() {
    let place = Place::new();
    let phases = ["--sync", "--phase", "block-write,seq-delete", "--json"];
    let said = place.run(&[&SMALL[..], &["--block", "256k"], &phases].concat());
    let document = said.ends_with(0).json();
    let phases = document["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 3, "seq-create was run too");
    // One after each of 16 writes, and one at the end.
    assert_eq!(phases[0]["sync"]["ops"], 17);
    assert_eq!(phases[0]["commit"]["ops"], 16);
    // The file and its directory, and the file system at the end.
    assert_eq!(phases[1]["sync"]["ops"], 401);
    assert_eq!(phases[2]["sync"]["ops"], 201);
    place.assert_nothing_left();
}

#[test]
fn what_cannot_be_is_refused_and_nothing_written() {
    let place = Place::new();
    let refused = |options: &[&str], why: &str| {
        let words = [&["bench", "data", "--suite", "bonnie"], options].concat();
        place.run(&words).refuses(&[why]);
        place.assert_nothing_left();
    };
    refused(&["--size", "4096T"], "give a --size that fits");
    refused(&["--size", "4M", "--rate", "5"], "does not go with");
    refused(&["--size", "4M", "--phase", "rewrit"], "no phase 'rewrit'");
    fs::write(place.path("file"), "data").unwrap();
    let on_a_file = place.run("bench file --suite bonnie");
    on_a_file.refuses(&["is not a directory"]);
    let elsewhere = place.run("bench data --suite seek --sync");
    elsewhere.refuses(&["only the suite bonnie"]);
}

#[test]
fn a_link_to_a_directory_is_measured_as_the_directory() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.data(), place.path("link")).unwrap();
    let words = "bench link --suite bonnie --files 50";
    let phases = "--phase seq-delete,random-delete --no-ledger";
    place.run(&format!("{words} {phases}")).ends_with(0);
    place.assert_nothing_left();
}

/// Found out in the middle, it would be found out when all data is written.
#[test]
fn as_many_threads_have_descriptors_as_the_hard_limit_allows() {
    let place = Place::new();
    let seeks = "bench data --suite bonnie --size 4M --phase seeks --threads 100 --no-ledger";
    let cells = "bench data --suite sysbench --size 40M --files 40 --phase rndrd-40x1MiB-40t \
                 --threads 40 --seconds 1 --no-ledger";
    for (words, soft, hard) in [
        (seeks, "ulimit -Sn 100", "ulimit -n 100"),
        (cells, "ulimit -Sn 90", "ulimit -n 90"),
    ] {
        let words: Vec<&str> = words.split_whitespace().collect();
        let command = place.command(&words);
        under(soft, &command).ends_with(0);
        under(hard, &command).refuses(&["(ulimit -Hn); use fewer --"]);
        place.assert_nothing_left();
    }
}

/// Until some small files are there.
fn wait_for_small_files(place: &Place) {
    let began = Instant::now();
    let some = || {
        let mut find = Command::new("find");
        find.arg(place.data()).args(["-type", "f"]);
        find.output().unwrap().stdout.len() > 1000
    };
    while !some() {
        assert!(began.elapsed() < support::TIMEOUT, "no small files");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A run of one test that has made some of its small files, and would continue for long.
fn many_small_files(place: &Place, phase: &str, options: &str) -> Running {
    let words = "bench data --suite bonnie --size 4M --files 400000 --phase";
    let run = Running::start(&mut place.command(&format!("{words} {phase} {options}")));
    wait_for_small_files(place);
    run
}

#[test]
fn what_a_kill_leaves_the_next_start_removes() {
    let place = Place::new();
    let run = many_small_files(&place, "random-stat", "--directories 4");
    run.signal(Signal::KILL);
    run.end();
    let left = names_in(&place.data());
    assert!(left.iter().all(|name| name.ends_with(".dir")), "{left:?}");
    fs::write(place.data().join(".disksmith-notes"), "mine").unwrap();
    // Another suite in the same place removes it just as well.
    let said = place.bench(&support::SHORT).ends_with(0);
    said.prints(&["which a killed run had left"]);
    assert_eq!(names_in(&place.data()), [".disksmith-notes"]);
}

#[test]
fn what_a_kill_leaves_goes_before_the_room_is_examined() {
    let place = Place::new();
    let left = place.data().join(".disksmith-1-2.dir");
    fs::create_dir(&left).unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(left.join("0000000000"), "data").unwrap();
    // The small files alone are more than fits anywhere.
    let words = "bench data --suite bonnie --phase seq-create";
    let large = "--file-size 1g --files 1000000";
    place.run(&format!("{words} {large}")).refuses(&["need"]);
    place.assert_nothing_left();
}

#[test]
fn a_signal_ends_it_and_the_small_files_go() {
    let place = Place::new();
    let run = many_small_files(&place, "seq-create", "--sync");
    run.signal(Signal::INT);
    let said = run.end();
    assert_eq!(said.status, Some(3), "{said:#?}");
    place.assert_nothing_left();
}

/// A file system for each of the two, held at the limit.
struct Both {
    bonnie: Limited,
    ours: Limited,
    place: Place,
}

/// Bytes that the limit lets through. A limit of requests would have no effect, since the page cache makes few of
/// them, and large ones.
const BYTES_PER_S: u64 = 16 << 20;

impl Both {
    fn new() -> Option<Both> {
        if !can_run("bonnie++", "-h") {
            return None;
        }
        let both = Both {
            bonnie: Limited::with_files(128)?,
            ours: Limited::with_files(128)?,
            place: Place::new(),
        };
        for device in [&both.bonnie, &both.ours] {
            device.throttle.limit_bytes(BYTES_PER_S);
        }
        Some(both)
    }

    /// Checks that both rewrite a file of so many MiB at the same rate. Rewritten data is written by the fsync
    /// of the tool itself. New blocks are not: the journal's thread writes them, which no limit of a
    /// group holds, and bonnie++ prints no rate then.
    fn agrees(&self, mib: u64, times: usize) -> bool {
        let theirs = || {
            let mut command = Command::new("bonnie++");
            command.args([
                "-q",
                "-f",
                "-n",
                "0",
                "-u",
                "root",
                "-d",
                self.bonnie.path(),
            ]);
            command.args(["-s", &mib.to_string(), "-r", &(mib / 2).to_string()]);
            let text = self.bonnie.output(&command);
            let line = text.lines().find(|line| line.starts_with("1.9")).unwrap();
            let rate = line.split(',').nth(13).unwrap().parse();
            rate.unwrap_or_else(|_| panic!("no rate: {line}"))
        };
        let ours = || {
            let size = format!("{mib}M");
            let words = ["bench", self.ours.path(), "--suite", "bonnie", "--json"];
            let which = ["--no-ledger", "--size", &size, "--phase", "rewrite"];
            let command = self.place.command(&[&words[..], &which].concat());
            let document = self.ours.document(&command);
            // The file is written before, which is a test too.
            let test = &document["answer"]["tests"][1];
            assert_eq!(test["name"], "rewrite");
            test["bytes_per_s"].as_f64().unwrap() / 1024.0
        };
        let limit = BYTES_PER_S as f64 / 1024.0;
        same(
            "rewrite by bonnie++",
            Some(limit),
            &tries(times, theirs, ours),
        )
    }
}

#[test]
#[ignore = "needs a host with little else to do: make prove"]
fn with_root_rewriting_at_a_limit_is_what_bonnie_says() {
    let Some(both) = Both::new() else {
        return;
    };
    assert!(both.agrees(64, 7));
}
