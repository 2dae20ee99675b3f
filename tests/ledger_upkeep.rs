//! `disksmith ledger`: checking, compacting, exporting and copying the ledger, through the real program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;

use support::{Place, SHORT, documents, number};

fn place_with_a_run_and_a_mark() -> Place {
    let place = Place::new();
    place.bench(&SHORT).ends_with(0);
    place.run(&["mark", "deploy 1.2"]).ends_with(0);
    place
}

#[test]
fn a_sound_ledger_is_reported_so_and_counted() {
    let place = place_with_a_run_and_a_mark();
    let said = place.run("ledger check").ends_with(0);
    said.fits(100);
    said.prints(&[" is sound. Schema "]);
    let found = place.run("ledger check --json").ends_with(0).json();
    assert_eq!((number(&found["runs"]), number(&found["marks"])), (1, 1));
    assert_eq!(found["sound"], true);
}

#[test]
fn a_damaged_ledger_is_the_answer_no_with_the_damage() {
    let place = place_with_a_run_and_a_mark();
    let mut bytes = fs::read(place.ledger()).unwrap();
    // The pages after the first: lists and documents.
    bytes[4096 + 8..4 * 4096].fill(0xa5);
    fs::write(place.ledger(), &bytes).unwrap();
    let said = place.run("ledger check").ends_with(1);
    said.prints(&[" is damaged. "]);
    let found = place.run("ledger check --json").ends_with(1).json();
    assert_eq!(found["sound"], false);
    assert!(!found["damage"].as_array().unwrap().is_empty(), "{found}");
    assert_eq!(fs::read(place.ledger()).unwrap(), bytes);
}

#[test]
fn compacting_gives_back_room_and_keeps_what_is_left() {
    let place = place_with_a_run_and_a_mark();
    for _ in 0..3 {
        place.bench(&SHORT).ends_with(0);
    }
    for run in &place.runs()[1..] {
        place.run(&["runs", "remove", run]).ends_with(0);
    }
    let done = place.run("ledger compact --json").ends_with(0).json();
    assert!(
        number(&done["after_bytes"]) < number(&done["before_bytes"]),
        "{done}"
    );
    assert_eq!(place.runs().len(), 1);
    place.run("show last").ends_with(0);
    place.run("ledger compact").ends_with(0);
}

#[test]
fn an_export_has_a_line_for_everything() {
    let place = place_with_a_run_and_a_mark();
    let recorded = "watch --record --count 2 --interval 100ms --json";
    place.run(recorded).ends_with(0);
    let lines = documents::all(&place.run("ledger export").ends_with(0).out);
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!((of("run"), of("mark"), of("recording")), (1, 1, 1));
    let run = lines.iter().find(|line| line["kind"] == "run").unwrap();
    assert_eq!(run["run"]["id"], place.runs()[0].as_str());
    assert!(!run["run"]["phases"].as_array().unwrap().is_empty());
}

#[test]
fn a_backup_is_a_ledger_and_replaces_nothing() {
    let place = place_with_a_run_and_a_mark();
    let run = place.runs();
    let made = place
        .run("ledger backup copy.db --json")
        .ends_with(0)
        .json();
    assert_eq!(made["backup"], "copy.db");
    assert_eq!(
        number(&made["bytes"]),
        place.path("copy.db").metadata().unwrap().len()
    );
    let listed = place
        .run("--ledger copy.db runs --json")
        .ends_with(0)
        .json();
    assert_eq!(listed["runs"][0]["run"], run[0].as_str());
    place
        .run("ledger backup copy.db")
        .refuses(&["copy.db exists"]);
    let said = place.run("ledger backup second.db").ends_with(0);
    said.prints(&["disksmith --ledger second.db runs"]);
}

#[test]
fn without_a_ledger_the_command_that_begins_one_is_named() {
    let place = Place::new();
    for words in [
        &["check"][..],
        &["compact"],
        &["export"],
        &["backup", "x.db"],
    ] {
        let words = [&["ledger"], words].concat();
        place
            .run(&words)
            .refuses(&["there is no ledger at ", "disksmith bench ."]);
    }
    assert!(!place.ledger().exists() && !place.path("x.db").exists());
    // It goes to the ledger that was asked for.
    let said = place.run(&["watch", "--at", "10:00", "--ledger", "no ledger.db"]);
    said.ends_with(1)
        .warns(&["disksmith watch --record --ledger 'no ledger.db'"]);
}
