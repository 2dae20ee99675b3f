//! `watch --record` through the real program: replay, reports, marks, kills.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::BufRead as _;

use jiff::{SignedDuration, Timestamp};
use rustix::process::Signal;
use serde_json::Value;
use support::documents::all as lines;
use support::{Place, Running};

fn count(lines: &[Value], kind: &str) -> usize {
    lines.iter().filter(|line| line["kind"] == kind).count()
}

/// Records so many intervals of a tenth of a second.
fn record(place: &Place, intervals: &str) {
    let arguments = format!("watch --record --json --interval 100ms --count {intervals}");
    let said = place.run(&arguments).ends_with(0);
    assert_eq!(said.err, "");
}

#[test]
fn what_was_recorded_is_replayed_listed_drawn_and_removed() {
    let place = Place::new();
    place.run("mark before").ends_with(0);
    record(&place, "4");
    let said = place.run(&["mark", "deploy 1.4.2", "--json"]).ends_with(0);
    // A page shows the marks of the time that it covers.
    record(&place, "3");
    assert_eq!(said.json()["mark"]["text"], "deploy 1.4.2");
    let replay = "watch --at -1h --for 2h";
    let said = place.run(&format!("{replay} --json --all")).ends_with(0);
    let replayed = lines(&said.out);
    assert_eq!(replayed[0]["source"], "recorded");
    assert_eq!(count(&replayed, "sample"), 7);
    assert_eq!(count(&replayed, "mark"), 2);
    let sample = replayed
        .iter()
        .find(|line| line["kind"] == "sample")
        .unwrap();
    assert!(sample["time"].is_string() && sample["length_ns"].as_u64().unwrap() > 10_000_000);
    let plain = place.run(&format!("{replay} --plain")).ends_with(0);
    plain.prints(&["deploy 1.4.2"]);
    let table = place.run(&format!("{replay} --table")).ends_with(0);
    table.prints(&["7 samples"]);
    place
        .run(&format!("{replay} --report page.html"))
        .ends_with(0);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains("Content-Security-Policy") && page.contains("deploy 1.4.2"));
    let listed = place.run("runs recordings --json").ends_with(0).json();
    let recording = &listed["recordings"][0];
    assert_eq!(recording["samples"], 4);
    assert_eq!(recording["open"], false);
    assert!(
        place
            .run("runs")
            .ends_with(0)
            .out
            .contains("Also kept: a recording")
    );
    for recording in listed["recordings"].as_array().unwrap() {
        let number = recording["recording"].to_string();
        let remove = format!("runs recordings --remove {number}");
        place.run(&remove).ends_with(0);
        place.run(&remove).refuses(&["there is no recording"]);
    }
    let said = place.run(replay).ends_with(1);
    said.warns(&["Nothing was recorded"]);
}

#[test]
fn a_time_without_a_recording_is_answered_with_what_there_is() {
    let place = Place::new();
    let said = place.run("watch --at 2026-01-01").ends_with(1);
    said.warns(&["Nothing was recorded"]);
    record(&place, "2");
    let said = place
        .run(&["watch", "--at", "2026-01-01 03:00"])
        .ends_with(1);
    said.warns(&["The recordings begin at"]);
    place.run("watch --at soon").refuses(&["is not a time"]);
    place
        .run("watch --record --record-limit 1M")
        .refuses(&["too little room"]);
}

#[test]
fn two_recorders_of_one_host_are_refused() {
    let place = Place::new();
    let arguments = "watch --record --json --interval 100ms";
    let mut running = Running::start(&mut place.command(arguments));
    running.wait_for_text("\"sample\"");
    place
        .run("watch --record --count 1")
        .refuses(&["has been recording the host", "Watch without --record"]);
    running.signal(Signal::INT);
    running.end().ends_with(0);
}

#[test]
fn a_ledger_that_cannot_be_written_is_reported_and_watching_continues() {
    let place = Place::new();
    let mut command = place.command("watch --record --json --count 2 --interval 100ms");
    // Nobody may make a file there, root included.
    command.env("DISKSMITH_LEDGER", "/proc/ledger.db");
    let said = support::output_of(&mut command).ends_with(0);
    said.warns(&["Nothing is recorded"]);
    assert_eq!(count(&lines(&said.out), "sample"), 2);
}

/// The times of samples among lines as they were printed, of which the last may be cut off by a kill.
fn times(text: &str) -> Vec<Timestamp> {
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let samples = lines.filter(|line| line["kind"] == "sample");
    let time = |line: Value| line["time"].as_str().unwrap().parse().unwrap();
    samples.map(time).collect()
}

#[test]
fn a_ledger_that_can_be_written_later_is_recorded_in_then() {
    let place = Place::new();
    let folder = place.path("later");
    let ledger = folder.join("ledger.db");
    // A file is where the folder should be.
    std::fs::write(&folder, "").unwrap();
    let arguments = "watch --record --json --interval 100ms";
    let mut running = Running::start(place.command(arguments).env("DISKSMITH_LEDGER", &ledger));
    running.wait_for_text("Nothing is recorded at the moment");
    std::fs::remove_file(&folder).unwrap();
    // It makes the folder itself where it finds none.
    std::fs::create_dir_all(&folder).unwrap();
    running.wait_for_text("Recording goes on");
    running.signal(Signal::INT);
    let said = running.end().ends_with(0);
    said.warns(&["Nothing is recorded at the moment"]);
    said.prints(&["Recording goes on"]);
    let mut list = place.command("runs recordings --json");
    let listed = support::output_of(list.env("DISKSMITH_LEDGER", &ledger)).ends_with(0);
    let kept = listed.json()["recordings"][0]["samples"].as_u64().unwrap();
    // What was seen before waited in memory.
    assert_eq!(kept as usize, count(&lines(&said.out), "sample"));
}

#[test]
fn a_recording_that_is_removed_continues_as_another() {
    let place = Place::new();
    let arguments = "watch --record --json --interval 100ms";
    let mut running = Running::start(&mut place.command(arguments));
    running.wait_for_text("\"sample\"");
    place.run("runs recordings --remove 1").ends_with(0);
    running.wait_for_text("was removed from the ledger");
    running.signal(Signal::INT);
    running.end().ends_with(0);
    let listed = place.run("runs recordings --json").ends_with(0).json();
    let kept = listed["recordings"][0]["samples"].as_u64().unwrap();
    assert!(kept > 0, "{listed}");
}

#[test]
fn a_page_is_drawn_also_without_a_ledger_and_without_a_reader() {
    let place = Place::new();
    std::fs::write(place.path("text"), "no ledger").unwrap();
    let arguments = "watch --json --interval 100ms --report x.html";
    let mut command = place.command(&format!("{arguments} --count 3"));
    command.env("DISKSMITH_LEDGER", place.path("text"));
    let said = support::output_of(&mut command).ends_with(0);
    said.warns(&["No marks are drawn"]);
    let page = std::fs::read_to_string(place.path("x.html")).unwrap();
    assert!(page.contains("No marks are drawn"));
    // Who reads the lines goes away: no error, and a page.
    std::fs::remove_file(place.path("x.html")).unwrap();
    let mut running = place.command(arguments);
    running.stdout(std::process::Stdio::piped());
    let mut child = running.spawn().unwrap();
    let mut first = String::new();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut first).unwrap();
    drop(lines);
    assert!(child.wait().unwrap().success());
    assert!(place.path("x.html").exists());
}

#[test]
fn a_device_that_no_sample_has_is_reported() {
    let place = Place::new();
    record(&place, "2");
    for end in [&["--table"][..], &["--json"], &["--report", "x.html"]] {
        let arguments = [
            &["watch", "--at", "-1h", "--for", "2h", "no-such-disk"],
            end,
        ]
        .concat();
        let said = place.run(&arguments).ends_with(1);
        said.warns(&["no-such-disk"]);
    }
    assert!(!place.path("x.html").exists());
}

#[test]
fn a_kill_loses_a_few_seconds_at_most_and_damages_nothing() {
    let place = Place::new();
    // In memory, where a commit takes no disk's time.
    let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let memory = memory.unwrap();
    let ledger = memory.path().join("ledger.db").display().to_string();
    let words = format!("--ledger {ledger} watch");
    let replay = format!("{words} --at -1h --for 2h --json");
    let record = format!("{words} --record --json --interval 100ms");
    // A batch every five seconds, and an interval. A batch that is being written just then may take a while.
    let most = SignedDuration::from_millis(5_100 + 2_000);
    let mut kept = 0;
    // Just before the second batch most is lost: had the first not been written, it would be all.
    for (nth, samples) in [7, 95, 19].into_iter().enumerate() {
        let mut running = Running::start(&mut place.command(&record));
        running.wait_for_output(|text| text.matches("\"kind\":\"sample\"").count() >= samples);
        running.signal(Signal::KILL);
        let seen = times(&running.end().out);
        let written = times(&place.run(&replay).out);
        if let (Some(first), Some(last)) = (seen.first(), seen.last()) {
            let own = written.iter().filter(|time| *time >= first);
            let from = own.max().unwrap_or(first);
            let lost = last.duration_since(*from);
            assert!(
                lost <= most,
                "kill {nth}: {lost:#} of {} samples",
                seen.len()
            );
        }
        kept = written.len();
    }
    assert!(kept > 0, "nothing was kept before its process was killed");
    // Who comes next continues, and all of it can be read.
    place.run(&format!("{record} --count 3")).ends_with(0);
    let said = place.run(&replay).ends_with(0);
    assert_eq!(times(&said.out).len(), kept + 3);
    assert_eq!(said.err, "");
}

#[test]
fn marks_are_listed_and_removed() {
    let place = Place::new();
    place
        .run("mark failover --at 2026-11-20T03:12:00Z")
        .ends_with(0);
    let listed = place.run("mark --list --json").ends_with(0).json();
    assert_eq!(listed["command"], "mark");
    assert_eq!(listed["marks"][0]["time"], "2026-11-20T03:12:00Z");
    let number = listed["marks"][0]["id"].to_string();
    place.run(&["mark", "--remove", &number]).ends_with(0);
    place
        .run(&["mark", "--remove", &number])
        .refuses(&["there is no mark"]);
    place.run(&["mark", " "]).refuses(&["a mark is a name"]);
    place.run(&["mark", "a\nb"]).refuses(&["a mark is a name"]);
    assert!(
        place
            .run("mark --list")
            .ends_with(0)
            .out
            .contains("No marks")
    );
}

#[test]
fn an_old_log_is_drawn() {
    let place = Place::new();
    let log = "Linux 6.1.0 (db-1) \t11/20/2026 \t_x86_64_\t(4 CPU)\n\n\
        11/20/2026 03:00:01 AM\n\
        Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util\n\
        sda             10.00    160.00     0.00   0.00    1.00    16.00   10.00    160.00     0.00   0.00    2.00    16.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00    0.00    0.03   2.00\n\n\
        11/20/2026 03:00:02 AM\n\
        Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util\n\
        sda             20.00    320.00     0.00   0.00    1.00    16.00   10.00    160.00     0.00   0.00    2.00    16.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00    0.00    0.04   3.00\n";
    std::fs::write(place.path("iostat.log"), log).unwrap();
    let arguments = "watch --parse iostat.log --report log.html";
    let said = place.run(arguments).ends_with(0);
    assert_eq!(said.out, "", "{said:#?}");
    let page = std::fs::read_to_string(place.path("log.html")).unwrap();
    assert!(page.contains("sda") && page.contains("Throughput"));
}
