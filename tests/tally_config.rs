//! `tally.toml`: rules that spread tags over stores, read again while `tally` runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "tally/services.rs"]
mod services;
mod support;

use std::fs;
use std::io::Write as _;

use rustix::process::Signal;
use serde_json::Value;
use support::{Place, Running};

/// Count of a tag in one store, or in those of the configuration.
fn count(place: &Place, store: Option<&str>, tag: &str) -> f64 {
    let words = [
        "tally",
        "query",
        tag,
        "--from",
        "2020-01-01",
        "--to",
        "2100-01-01",
        "--by",
        "month",
        "--json",
    ];
    let store: Vec<&str> = store.map_or(vec!["--config", "t.toml"], |store| vec!["--store", store]);
    let said = place.run(&[&words[..], &store].concat());
    match said.status {
        Some(0) => said.json()["total"]["count"].as_f64().unwrap(),
        _ => 0.0,
    }
}

fn write(place: &Place, text: &str) {
    fs::write(place.path("t.toml"), text).unwrap();
}

fn append(place: &Place, text: &str) {
    let mut file = fs::File::options()
        .append(true)
        .create(true)
        .open(place.path("a.log"))
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

const TWO: &str = "\
[stores]
a = \"sqlite:a.db\"
b = \"sqlite:b.db\"
[[route]]
prefix = \"api.\"
store = \"b\"
[[route]]
store = \"a\"
[off]
tags = [\"debug.*\"]
sources = [\"statsd\"]
levels = [\"month\"]
";

#[test]
fn rules_spread_tags_and_change_from_the_next_full_hour_of_event_time_on() {
    let place = Place::new();
    write(&place, TWO);
    append(&place, "login:1|c\napi.get:2|c|#host:x\ndebug.x:4|c\n");
    let statsd = format!("statsd://127.0.0.1:{}", services::free_port());
    let words = format!("tally --from a.log --from {statsd} --follow --config t.toml");
    let mut running = Running::start(&mut place.command(&format!("{words} --flush-every 100ms")));
    running.wait_for_text("is switched off");
    running.wait_until("does not sum", || {
        count(&place, Some("sqlite:b.db"), "api.get") == 2.0
            && count(&place, Some("sqlite:a.db"), "login") == 1.0
    });
    assert_eq!(count(&place, None, "api.get"), 2.0);
    assert_eq!(count(&place, None, "debug.x"), 0.0);
    // A file that is wrong changes nothing.
    write(&place, &TWO.replace("store = \"b\"", "store = \"c\""));
    running.signal(Signal::HUP);
    running.wait_for_text(
        "t.toml, line 4: there is no store 'c' in [stores]; the configuration in force stays",
    );
    // One more store, and all that is 'api.' to it.
    let three = TWO.replace(
        "[[route]]\nprefix",
        "c = \"sqlite:c.db\"\n[[route]]\nprefix",
    );
    write(&place, &three.replace("store = \"b\"", "store = \"c\""));
    running.signal(Signal::HUP);
    running.wait_for_text("t.toml is read again");
    let kept: Value =
        serde_json::from_slice(&fs::read(place.path("tally.routes")).unwrap()).unwrap();
    let from = kept.as_array().unwrap().last().unwrap()["from"]
        .as_i64()
        .unwrap();
    append(
        &place,
        &format!("api.get:10|c|T{}\napi.get:100|c|T{from}\n", from - 1),
    );
    running.wait_until("does not sum", || count(&place, None, "api.get") == 112.0);
    assert_eq!(count(&place, Some("sqlite:b.db"), "api.get"), 12.0);
    assert_eq!(count(&place, Some("sqlite:c.db"), "api.get"), 100.0);
    running.signal(Signal::TERM);
    running.end().ends_with(0);
    // What the first stores have is not read again for the new one.
    place.run("tally --from a.log --config t.toml").ends_with(0);
    assert_eq!(count(&place, None, "api.get"), 112.0);
    assert_eq!(count(&place, None, "login"), 1.0);
}

#[test]
fn a_wrong_configuration_is_refused_with_file_line_and_reason() {
    let place = Place::new();
    let start = "tally --from - --config t.toml";
    place.run(start).refuses(&["t.toml cannot be read"]);
    for (text, words) in [
        (
            TWO.replace("prefix = \"api.\"", "prefx = \"api.\""),
            ["t.toml", "prefx", "line "],
        ),
        (
            TWO.replace("sqlite:b.db", "b.db"),
            ["t.toml", "line 3", "no store"],
        ),
        (
            TWO.replace("prefix = \"api.\"\n", ""),
            ["t.toml", "line 4", "no route below"],
        ),
        (
            TWO.replace("\"month\"", "\"hour\""),
            ["t.toml", "line 9", "hour"],
        ),
    ] {
        write(&place, &text);
        place.run(start).refuses(&words);
    }
    assert!(!place.path("a.db").exists());
    place
        .run("tally --from - --config t.toml --store sqlite:x.db")
        .refuses(&["cannot be used with"]);
}
