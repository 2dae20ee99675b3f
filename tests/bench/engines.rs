//! Both ways to the kernel, and which one a run says that it took.

use crate::no_uring::without_uring;
use crate::support::{Place, Running, SHORT, output_of, skipped};

fn kind(place: &Place, engine: &str) -> String {
    let run = place.document(&[&SHORT[..], &["--engine", engine]].concat());
    let kind = run["phases"][0]["engine"]["kind"].as_str().unwrap();
    kind.to_owned()
}

/// True if io_uring is available here, as the program itself finds; containers often refuse it.
fn has_uring(place: &Place) -> bool {
    let run = place.document(&SHORT);
    let has = run["phases"][0]["engine"]["kind"] == "uring";
    if !has {
        skipped("io_uring is refused here");
    }
    has
}

#[test]
fn threads_are_used_and_named_when_they_are_requested() {
    assert_eq!(kind(&Place::new(), "sync"), "sync");
}

#[test]
fn io_uring_is_used_and_named_when_it_is_requested() {
    let place = Place::new();
    if has_uring(&place) {
        assert_eq!(kind(&place, "uring"), "uring");
    }
}

#[test]
fn where_io_uring_is_refused_threads_do_the_work_and_the_answer_says_so() {
    let place = Place::new();
    // Long enough for a request of a process that other work starves.
    let second = ["--size", "8M", "--seconds", "1s", "--phase", "page-read"];
    let arguments = [&["bench", "data", "--json"], &second[..]].concat();
    let run = output_of(without_uring(&mut place.command(&arguments)))
        .ends_with(0)
        .json();
    let engine = &run["phases"][0]["engine"];
    assert_eq!(engine["kind"], "sync");
    let detail = engine["detail"].as_str().unwrap();
    assert!(detail.contains("io_uring is refused"), "{detail}");
    assert!(run["phases"][0]["read"]["ops"].as_u64().unwrap() > 0);

    let arguments = [&["bench", "data"], &SHORT[..]].concat();
    let text = output_of(without_uring(&mut place.command(&arguments))).ends_with(0);
    assert!(
        text.prose().contains("pread/pwrite threads")
            && text.prose().contains("io_uring is refused here"),
        "{text:#?}"
    );
    place.assert_nothing_left();
}

#[test]
fn where_io_uring_is_refused_asking_for_it_is_an_error_that_names_the_way_out() {
    let place = Place::new();
    let arguments = [&["bench", "data", "--engine", "uring"], &SHORT[..]].concat();
    let said = Running::start(without_uring(&mut place.command(&arguments))).end();
    // Nothing was laid out for it.
    let said = said.ends_with(2);
    said.warns(&["leave out --engine uring"]);
    assert_eq!(said.out, "");
    assert_eq!(place.runs(), [""; 0]);
    place.assert_nothing_left();
}
