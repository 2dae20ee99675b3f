//! The pages of `serve` in a real Chromium.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "serve/chromium.rs"]
mod chromium;
#[path = "support/loops.rs"]
mod loops;
#[path = "tally/services.rs"]
mod services;
mod support;
#[path = "serve/world.rs"]
mod world;

use std::io::Write as _;
use std::process::{Command, Stdio};

use chromium::Chromium;
use jiff::{Timestamp, ToSpan as _};
use loops::Loop;
use rustix::process::Signal;
use services::free_port;
use support::{Place, Running, SHORT, has_program, is_root, skipped, write_script};

/// A name that would change the page if it were taken for markup.
const MARKUP: &str = "<img src=x onerror=\"window.hit=1\">";

/// A ledger with two runs, two markers and a disk, and two hours of response times that became slow half an hour ago. Host,
/// disk, tag and marker have names that look like markup.
fn recorded() -> Place {
    let place = Place::new();
    for _ in 0..2 {
        place.document(&SHORT);
    }
    let now = Timestamp::now();
    let at = |minutes: i64| (now - minutes.minutes()).to_string();
    place
        .run(&["mark", "deploy 1.4.2", "--at", &at(30)])
        .ends_with(0);
    place.run(&["mark", MARKUP, "--at", &at(90)]).ends_with(0);
    let world = world::World::new(&place);
    world.record(MARKUP, MARKUP, world.minutes(-120, 0), |_| {
        world::DiskMinute::default()
    });
    let mut events = String::new();
    for minute in 0..120_i64 {
        for request in 0..30_i64 {
            let slow = if minute < 30 { 3 } else { 1 };
            let ms = (20 + (request * 37 + minute * 11) % 60 + if request == 7 { 480 } else { 0 })
                * slow;
            let time = at(minute);
            events += &format!("{{\"tag\":\"api.get\",\"ms\":{ms},\"ts\":\"{time}\"}}\n");
        }
    }
    let name = serde_json::to_string(&format!("web {MARKUP}")).unwrap();
    events += &format!("{{\"tag\":{name},\"ms\":5,\"ts\":\"{}\"}}\n", at(3));
    let mut tally = place.command(&format!("tally --from - --store {}", store(&place)));
    let mut child = tally.stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(events.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    place
}

/// A ledger with a sweep of a loop device, a race of rounds that were measured, and a run of a fleet of which no host is
/// reached. `None`, with a note, where no device can be had.
fn long_work() -> Option<Place> {
    if !is_root() || !has_program("mkfs.xfs") {
        skipped("a sweep needs root and mkfs.xfs");
        return None;
    }
    let disk = Loop::new(512)?;
    let place = Place::new();
    let device = disk.path();
    let grid = "--members 1 --fs xfs,ext4 --blocks 2 --seconds 200ms --size 8M --full";
    let sweep = ["sweep", "--devices", device, "--destroy", device];
    let workload = ["--workload", "pattern=random,read=0.5,block=16k,depth=4"];
    let grid: Vec<&str> = grid.split(' ').collect();
    place
        .run(&[&sweep[..], &grid, &workload].concat())
        .ends_with(0);
    let hosts = ["db1", "db2"];
    std::fs::write(place.path("hosts"), hosts.join("\n")).unwrap();
    for round in ["1", "2"] {
        let folder = place.path("rounds").join(round);
        std::fs::create_dir_all(&folder).unwrap();
        for host in hosts {
            let measured = place.bench(&[&SHORT[..], &["--json", "--no-ledger"]].concat());
            let answer = measured.ends_with(0).out;
            std::fs::write(folder.join(format!("{host}.json")), answer).unwrap();
        }
    }
    let race = "fleet race --list ./hosts --collect rounds --keep 1";
    // Rounds of one disk seldom show which of its names is the better one.
    let raced = place.run(race);
    assert!(matches!(raced.status, Some(0 | 1)), "{raced:#?}");
    write_script(&place.path("ssh"), "#!/bin/sh\nexit 255\n");
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", place.path("").display());
    let run = "fleet run --list ./hosts -- bench data";
    let output = place.command(run).env("PATH", path).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    Some(place)
}

fn store(place: &Place) -> String {
    format!("sqlite:{}", place.path("tally.db").display())
}

fn serve(place: &Place, port: u16) -> Running {
    let listen = format!("127.0.0.1:{port}");
    let mut running = Running::start(
        &mut place.command(&format!("serve --listen {listen} --tally {}", store(place))),
    );
    running.wait_for_text("http://");
    running
}

/// Pages, and what each holds when its script is through.
const PAGES: [(&str, &str); 8] = [
    (
        "/",
        "document.querySelector('#status').textContent === 'Live'",
    ),
    (
        "/response-times?last=6h&tag=api.get",
        "document.documentElement.dataset.charts === 'drawn'",
    ),
    (
        "/response-times?last=365d&tag=api.get",
        "document.documentElement.dataset.charts === 'drawn'",
    ),
    (
        "/verdicts?last=1d&tag=api.get",
        "document.querySelectorAll('.verdict').length",
    ),
    (
        "/runs",
        "document.querySelectorAll('input[name=a]').length === 2",
    ),
    (
        "/markers",
        "document.querySelectorAll('tbody tr').length === 2",
    ),
    ("/no-such-page", "document.querySelector('h1')"),
    ("COMPARE", "document.querySelectorAll('tbody tr').length"),
];

/// Condition under which the page of a report, a sweep or a run of a fleet is drawn.
const DRAWN: &str = "document.querySelector('h1') && document.querySelector('table, pre')";

/// Addresses of the pages, with what to wait for.
fn pages(place: &Place) -> Vec<(String, &'static str)> {
    let runs = place.runs();
    let compare = format!("/compare?a={}&b={}", runs[1], runs[0]);
    PAGES
        .iter()
        .map(|(path, ready)| (path.replace("COMPARE", &compare), *ready))
        .collect()
}

#[test]
fn every_page_is_whole_in_light_and_dark_and_on_a_phone() {
    let place = recorded();
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    let port = free_port();
    let _server = serve(&place, port);
    let origin = format!("http://127.0.0.1:{port}");
    for (width, scheme) in [
        (1280, "light"),
        (1280, "dark"),
        (360, "light"),
        (3000, "dark"),
    ] {
        chromium.emulate(width, scheme);
        for (path, ready) in pages(&place) {
            assert_whole(&mut chromium, &origin, &path, ready, width);
        }
    }
}

/// Asserts that a page is complete, logs nothing, requests nothing of another origin, and is no wider than the window.
#[track_caller]
fn assert_whole(chromium: &mut Chromium, origin: &str, path: &str, ready: &str, width: u32) {
    chromium.open(&format!("{origin}{path}"));
    chromium.wait_for(ready);
    let mut problems = chromium.problems(origin);
    // Chromium logs an answer of 404 to what it was told to open.
    problems.retain(|line| path != "/no-such-page" || !line.contains("404"));
    assert_eq!(problems, [""; 0], "{path} at {width}");
    // It stands for what a text may not have, and lines are parted otherwise.
    let is_readable = "!document.body.textContent.includes('\\ufffd')";
    assert_eq!(chromium.evaluate(is_readable), true, "{path}");
    let wide = chromium.evaluate("document.documentElement.scrollWidth - innerWidth");
    assert!(
        wide.as_i64().unwrap() <= 0,
        "{path} at {width} is {wide} too wide"
    );
    assert_eq!(
        chromium.evaluate("window.hit ?? null"),
        serde_json::Value::Null
    );
}

/// Addresses of the pages of sweeps and of a fleet, as the page of runs links them.
fn long_work_pages(chromium: &mut Chromium, origin: &str) -> Vec<String> {
    chromium.open(&format!("{origin}/runs"));
    let script = "[...document.querySelectorAll('a.id')].map((link) => link.pathname)";
    let links = chromium.evaluate(script);
    let links = links.as_array().unwrap().iter();
    let links = links.map(|link| link.as_str().unwrap().to_owned());
    links.filter(|link| !link.starts_with("/runs/")).collect()
}

#[test]
fn with_root_pages_of_a_sweep_and_of_a_fleet_are_whole() {
    let Some(place) = long_work() else { return };
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    let port = free_port();
    let _server = serve(&place, port);
    let origin = format!("http://127.0.0.1:{port}");
    let pages = long_work_pages(&mut chromium, &origin);
    let of = |kind: &str| pages.iter().filter(|path| path.starts_with(kind)).count();
    assert_eq!((of("/sweep/"), of("/fleet/")), (1, 2), "{pages:?}");
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (400, "light")] {
        chromium.emulate(width, scheme);
        for path in &pages {
            assert_whole(&mut chromium, &origin, path, DRAWN, width);
        }
    }
}

#[test]
fn a_chart_is_zoomed_by_keys_and_its_address_holds_the_view() {
    let place = recorded();
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    let port = free_port();
    let _server = serve(&place, port);
    let drawn = "document.querySelectorAll('#charts .uplot').length >= 3";
    chromium.open(&format!(
        "http://127.0.0.1:{port}/response-times?last=6h&tag=api.get"
    ));
    chromium.wait_for(drawn);
    chromium.evaluate("document.querySelector('#charts').focus()");
    chromium.press("End");
    chromium.wait_for("document.querySelector('#spoken').textContent.includes('requests/s')");
    let wide = chromium.evaluate("document.querySelectorAll('.head time').length");
    assert_eq!(wide, 2);
    chromium.press("+");
    chromium.wait_for("new URL(location).searchParams.has('from')");
    let from = chromium.evaluate("Number(new URL(location).searchParams.get('from'))");
    let shown =
        format!("Date.parse(document.querySelector('.head time').dateTime) / 1000 >= {from} - 60");
    chromium.wait_for(&shown);
    chromium.wait_for(drawn);
    // The same address in another window shows the same.
    let address = chromium.evaluate("location.href");
    chromium.open(address.as_str().unwrap());
    chromium.wait_for(drawn);
    chromium.wait_for(&shown);
    // Each chart has a table.
    chromium
        .evaluate("document.querySelectorAll('details.table').forEach((one) => (one.open = true))");
    chromium.wait_for("[...document.querySelectorAll('#charts figure')].every((one) => one.querySelector('tbody tr'))");
}

#[test]
fn a_server_that_goes_away_is_shown_and_found_again() {
    let place = recorded();
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    let port = free_port();
    let server = serve(&place, port);
    let status = |kind| format!("document.documentElement.dataset.server === '{kind}'");
    chromium.open(&format!("http://127.0.0.1:{port}/"));
    chromium.wait_for(&status("current"));
    server.signal(Signal::KILL);
    server.end();
    chromium.wait_for(&status("lost"));
    let _server = serve(&place, port);
    chromium.wait_for(&status("current"));
}

#[test]
fn a_marker_that_is_set_on_its_page_is_listed_as_text() {
    let place = recorded();
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    let port = free_port();
    let _server = serve(&place, port);
    chromium.open(&format!("http://127.0.0.1:{port}/markers"));
    chromium.evaluate(&format!(
        "document.querySelector('[name=text]').value = {}",
        serde_json::to_string(&format!("2 {MARKUP}")).unwrap()
    ));
    chromium.evaluate("document.querySelector('#mark').requestSubmit()");
    chromium.wait_for("document.querySelectorAll('tbody tr').length === 3");
    chromium.wait_for("document.querySelector('tbody').textContent.includes('2 <img src=x')");
    assert_eq!(
        chromium.evaluate("window.hit ?? null"),
        serde_json::Value::Null
    );
}

/// With the library of rules for accessible pages, as npm has it.
#[test]
#[ignore = "downloads axe-core; make prove"]
fn axe_finds_nothing_on_any_page() {
    let place = recorded();
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    let folder = place.path("axe");
    let installed = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ])
        .arg(&folder)
        .arg("axe-core@4")
        .status();
    assert!(
        installed.is_ok_and(|status| status.success()),
        "axe-core cannot be installed from npm"
    );
    let axe = std::fs::read_to_string(folder.join("node_modules/axe-core/axe.min.js")).unwrap();
    let port = free_port();
    let server = serve(&place, port);
    let origin = format!("http://127.0.0.1:{port}");
    let mut pages = pages(&place);
    pages.push((format!("/runs/{}", place.runs()[0]), DRAWN));
    assert_axe_finds_nothing(&mut chromium, &axe, &origin, &pages);
    drop(server);
    let Some(place) = long_work() else { return };
    let _server = serve(&place, port);
    let pages = long_work_pages(&mut chromium, &origin).into_iter();
    let pages: Vec<_> = pages.map(|path| (path, DRAWN)).collect();
    assert_axe_finds_nothing(&mut chromium, &axe, &origin, &pages);
}

#[track_caller]
fn assert_axe_finds_nothing(
    chromium: &mut Chromium,
    axe: &str,
    origin: &str,
    pages: &[(String, &str)],
) {
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (360, "light")] {
        chromium.emulate(width, scheme);
        for (path, ready) in pages {
            chromium.open(&format!("{origin}{path}"));
            chromium.wait_for(ready);
            chromium.evaluate(&format!("{axe}; 0"));
            let found = chromium.evaluate(
                "axe.run().then(({ violations }) => violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(' ')}`))",
            );
            assert_eq!(
                found,
                serde_json::json!([]),
                "{path} at {width} in {scheme}"
            );
        }
    }
}
