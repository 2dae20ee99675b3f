//! `trace show` and `trace convert` ended by a signal.

use std::io::{PipeWriter, Write as _, pipe};

use rustix::process::Signal;

use super::support::{Place, Running, names_in};

/// Writes a trace in blkreplay's form until nobody reads it.
fn write_endlessly(mut to: PipeWriter) {
    let lines = |batch: u64| -> String {
        (0..1000)
            .map(|n| format!("{}.{n:03} ; {} ; 8 ; W\n", batch, n * 8))
            .collect()
    };
    let mut batches = (0..).map(lines);
    while batches
        .next()
        .is_some_and(|text| to.write_all(text.as_bytes()).is_ok())
    {}
}

#[test]
fn the_first_signal_ends_both_and_leaves_no_part_of_an_output() {
    let place = Place::new();
    let names = || names_in(&place.path(""));
    let convert = ["trace", "convert", "/dev/stdin", "t.dst"];
    for words in [&["trace", "show", "/dev/stdin"][..], &convert] {
        let (from, writer) = pipe().unwrap();
        let mut command = place.command(words);
        command.stdin(from);
        let before = names();
        let mut running = Running::start(&mut command);
        // Otherwise the pipe stays open.
        drop(command);
        let writer = std::thread::spawn(|| write_endlessly(writer));
        running.wait_for_handler(Signal::INT);
        if words == convert {
            running.wait_until("writes nothing", || names() != before);
        }
        running.signal(Signal::INT);
        let ended = running.end().ends_with(3);
        assert!(ended.err.contains("interrupted"), "{}", ended.err);
        assert_eq!(names(), before);
        writer.join().unwrap();
    }
}
