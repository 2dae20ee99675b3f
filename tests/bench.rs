//! The verb `bench`, through the real program on a real disk.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

#[path = "bench/document.rs"]
mod document;
#[path = "bench/engines.rs"]
mod engines;
#[path = "support/loops.rs"]
mod loops;
#[path = "support/no_uring.rs"]
mod no_uring;
#[path = "bench/phases.rs"]
mod phases;
#[path = "bench/refusals.rs"]
mod refusals;
#[path = "bench/signals.rs"]
mod signals;
#[path = "bench/terminal.rs"]
mod terminal;

use serde_json::Value;
use support::{Place, Running, SHORT};

#[test]
fn two_runs_in_one_directory_at_once_do_not_hurt_each_other() {
    let place = Place::new();
    let arguments = [&["bench", "data"], &SHORT[..]].concat();
    let both = [(); 2].map(|()| Running::start(&mut place.command(&arguments)));
    for run in both {
        run.end().ends_with(0);
    }
    assert_eq!(place.runs().len(), 2);
    place.assert_nothing_left();
}

#[test]
fn a_report_page_is_written_alongside_the_answer() {
    let place = Place::new();
    let run = place.document(&[&SHORT[..], &["--report", "page.html"]].concat());
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.to_ascii_lowercase().starts_with("<!doctype html>"));
    assert!(page.contains(run["run"].as_str().unwrap()));
    assert!(page.trim_end().ends_with("</html>"));
}

#[test]
fn a_file_that_a_killed_run_left_is_removed_and_reported() {
    let place = Place::new();
    std::fs::write(place.data().join(".disksmith-4242-0.tmp"), "left").unwrap();
    std::fs::write(place.data().join("notes.tmp"), "the user's").unwrap();
    let run = place.document(&SHORT);
    assert_eq!(support::names_in(&place.data()), ["notes.tmp"]);
    let note = run["notes"][0].as_str().unwrap();
    assert!(note.contains(".disksmith-4242-0.tmp"), "{note}");

    std::fs::write(place.data().join(".disksmith-4242-1.tmp"), "left").unwrap();
    let said = place.bench(&SHORT).ends_with(0);
    said.prints(&[".disksmith-4242-1.tmp"]);
}

#[test]
fn a_run_that_is_not_to_be_kept_makes_no_ledger() {
    let place = Place::new();
    let said = place
        .bench(&[&SHORT[..], &["--no-ledger"]].concat())
        .ends_with(0);
    assert!(!said.prose().contains("Kept as run"), "{said:#?}");
    assert!(!place.ledger().exists());
}

#[test]
fn an_existing_file_is_read_and_stays_as_it_is() {
    let place = Place::new();
    let content: Vec<u8> = (0..8 << 20).map(|at: u32| (at % 251) as u8).collect();
    std::fs::write(place.path("table.ibd"), &content).unwrap();
    let run = place
        .run("bench table.ibd --seconds 200ms --json")
        .ends_with(0)
        .json();
    assert_eq!(run["target"]["kind"], "file");
    let phases = run["phases"].as_array().unwrap().iter();
    let names: Vec<_> = phases.map(|phase| &phase["name"]).collect();
    assert_eq!(names, ["seek", "page-read", "scan"]);
    let note = run["notes"][0].as_str().unwrap();
    assert!(
        note.contains("--destroy") && note.contains("page-write"),
        "{note}"
    );
    assert_eq!(std::fs::read(place.path("table.ibd")).unwrap(), content);
}

#[test]
fn figures_from_the_page_cache_are_invalid_and_say_so() {
    let place = Place::new();
    let run = place.document(&[&SHORT[..], &["--buffered"]].concat());
    assert_eq!(run["target"]["direct"], false);
    assert_eq!(run["verdict"], "invalid");
    assert_eq!(finding(&run, "cached")["severity"], "invalid");
}

#[test]
fn figures_from_the_holes_of_a_sparse_file_are_invalid_and_say_so() {
    let place = Place::new();
    let file = std::fs::File::create(place.path("sparse")).unwrap();
    file.set_len(64 << 20).unwrap();
    let options = "bench sparse --seconds 200ms --json";
    let run = place.run(options).ends_with(0).json();
    assert_eq!(run["target"]["unwritten_fraction"], 1.0);
    assert_eq!(run["verdict"], "invalid");
    assert_eq!(finding(&run, "unwritten")["severity"], "invalid");
}

/// The first finding with this code.
#[track_caller]
fn finding<'a>(run: &'a Value, code: &str) -> &'a Value {
    let findings = run["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["code"] == code);
    found.unwrap_or_else(|| panic!("no {code} in {findings:#?}"))
}
