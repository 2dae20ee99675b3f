//! Refusals before anything is touched: status 2, a sentence, no ledger and no file.

use crate::support::Place;

/// Runs `bench` with these words, which must be refused with a sentence that holds `expected`.
#[track_caller]
fn refused(words: &str, expected: &[&str]) {
    let place = Place::new();
    let words: Vec<&str> = words.split(' ').collect();
    place
        .run(&[&["bench"], &words[..]].concat())
        .refuses(expected);
    place.assert_nothing_left();
    if place.ledger().exists() {
        assert_eq!(place.runs(), [""; 0]);
    }
}

#[test]
fn a_test_file_that_does_not_fit_is_refused() {
    refused("data --size 900TiB", &["900 TiB does not fit", "are free"]);
}

#[test]
fn a_span_beyond_the_target_is_refused() {
    refused(
        "data --size 8M --span 16M --phase seek",
        &["a span of 16 MiB is more than the 8 MiB"],
    );
}

#[test]
fn a_block_that_the_span_has_no_room_for_is_refused() {
    refused(
        "data --size 8M --block 16M --phase seek",
        &["no room for blocks of 16 MiB"],
    );
}

#[test]
fn an_unknown_phase_is_refused_and_the_known_are_listed() {
    refused(
        "data --phase sook",
        &["no phase 'sook'", "seek, page-read", "load"],
    );
}

#[test]
fn phases_without_a_target_are_refused() {
    refused("--phase seek", &["name a target"]);
}

#[test]
fn nothing_named_at_all_is_refused() {
    let place = Place::new();
    place.run("bench").refuses(&["TARGET"]);
}

#[test]
fn a_phase_and_a_workload_together_are_refused() {
    refused(
        "data --phase seek --workload block=4k",
        &["--phase", "cannot be used with", "--workload"],
    );
}

#[test]
fn a_mistake_in_a_workload_is_named() {
    refused("data --workload depth=0", &["depth is a number from 1"]);
    refused("data --workload queue=3", &["'queue' is not known"]);
    refused("data --workload block=4k,block=8k", &["given twice"]);
}

#[test]
fn figures_that_make_no_sense_are_refused() {
    for (words, expected) in [
        ("data --seconds 0", "100ms"),
        ("data --seconds soon", "soon"),
        ("data --precision 300%", "not a percentage"),
        ("data --rate 0", "above 0 and at most"),
        ("data --rate=-5", "above 0 and at most"),
        ("data --rate 1e12", "above 0 and at most"),
        ("data --read-fraction 70", "from 0 to 1"),
        ("data --threads 0", "1..=1024"),
        ("data --precision 1", "write 1%, or 100% for that share"),
        ("data --block 0", "cannot be 0"),
        (
            "data --size 8M --phase seek --block 4097",
            "4097 bytes is not",
        ),
        (
            "data --size 8M --phase seek --span 8388609",
            "a span of 8388609 bytes is more than the 8 MiB",
        ),
        ("data --size 12 --phase seek", "too small"),
        ("data --engine aio", "uring, sync"),
    ] {
        refused(words, &[expected]);
    }
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_anything_is_measured() {
    for page in ["missing/page.html", "data"] {
        let place = Place::new();
        let said = place.bench(&["--size", "8M", "--report", page]);
        said.refuses(&[page, "cannot be written"]);
        assert!(!place.ledger().exists());
        place.assert_nothing_left();
    }
}

#[test]
fn consent_to_destroy_something_else_is_refused() {
    refused(
        "data --destroy other --size 8M",
        &["--destroy names other", "not the target data"],
    );
    refused("data --destroy data", &["nothing in it is ever destroyed"]);
}

#[test]
fn writing_to_an_existing_file_without_consent_is_refused() {
    let place = Place::new();
    std::fs::write(place.path("table"), vec![7; 1 << 20]).unwrap();
    place
        .run("bench table --phase page-write")
        .refuses(&["page-write would write", "--destroy"]);
    place
        .run("bench table --size 1M")
        .refuses(&["--size is for the test file in a directory"]);
}
