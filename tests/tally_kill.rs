//! `tally` killed at random moments, and its store: each event counts once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "tally/services.rs"]
mod services;
mod support;

use std::fs;
use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use services::{MariaDb, free_port, gearmand, wait_until};
use support::Place;

/// Kills in `make test`, and in `make prove`.
const FEW: u32 = 10;
const MANY: u32 = 200;

fn terminate(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

/// Numbers that are drawn, the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// A source with its events on their way, and a store.
struct Trial {
    place: Place,
    source: String,
    store: String,
}

impl Trial {
    fn start(&self) -> Child {
        let words = format!(
            "tally --from {} --store {} --follow --flush-every 100ms",
            self.source, self.store
        );
        let mut command = self.place.command(&words);
        let log = fs::File::options()
            .append(true)
            .create(true)
            .open(self.place.path("tally.err"));
        command.stderr(log.unwrap()).spawn().unwrap()
    }

    /// Its standard error.
    fn log(&self) -> String {
        fs::read_to_string(self.place.path("tally.err")).unwrap()
    }

    fn sums(&self) -> (f64, f64) {
        let words = format!(
            "tally query t --store {} --from 2020-01-01 --by month --json",
            self.store
        );
        let said = self.place.run(&words);
        if said.status != Some(0) {
            return (0.0, 0.0);
        }
        let total = &said.json()["total"];
        (
            total["count"].as_f64().unwrap(),
            total["sum"].as_f64().unwrap(),
        )
    }

    /// Kills it so many times, each a while after its start, then lets it run until all is there. Before each start a
    /// part of the lines is handed to `write`, in a thread of its own, so that events come at each kill.
    fn kill(
        &self,
        times: u32,
        (lines, truth): (Vec<String>, (f64, f64)),
        mut write: impl FnMut(&str) + Send + 'static,
    ) {
        let (next, turns) = std::sync::mpsc::channel();
        let writer = std::thread::spawn(move || {
            let parts = lines.chunks(lines.len().div_ceil(times as usize));
            for (some, ()) in parts.zip(turns) {
                write(&some.concat_lines());
            }
        });
        let mut draw = Draw(u64::from(times));
        for _ in 0..times {
            // The thread is done if the parts are fewer.
            let _ = next.send(());
            let mut child = self.start();
            std::thread::sleep(Duration::from_millis(draw.below(400)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let mut child = self.start();
        writer.join().unwrap();
        wait_until("not all events are summed", || self.sums().0 >= truth.0);
        terminate(&child);
        assert!(child.wait().unwrap().success());
        assert_eq!(self.sums(), truth, "{} to {}", self.source, self.store);
    }
}

const EVENTS: u32 = 20_000;

/// Events of three days with whole response times, and their count and sum.
fn events() -> (Vec<String>, (f64, f64)) {
    let mut draw = Draw(7);
    let (mut lines, mut sum) = (Vec::new(), 0.0);
    for _ in 0..EVENTS {
        let (value, at) = (draw.below(3000), 1_760_000_000 + draw.below(3 * 86_400));
        sum += value as f64;
        lines.push(format!("t:{value}|ms|T{at}"));
    }
    (lines, (f64::from(EVENTS), sum))
}

/// Writes the events to a file, in pieces that are no whole lines.
fn from_file(place: Place, store: String, kills: u32) {
    let path = place.path("events.log");
    fs::write(&path, "").unwrap();
    let mut file = fs::File::options().append(true).open(path).unwrap();
    let trial = Trial {
        place,
        source: "events.log".to_owned(),
        store,
    };
    trial.kill(kills, events(), move |text| {
        for piece in text.as_bytes().chunks(text.len() / 7 + 1) {
            file.write_all(piece).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}

/// Lines as a text.
trait ConcatLines {
    fn concat_lines(&self) -> String;
}

impl ConcatLines for [String] {
    fn concat_lines(&self) -> String {
        self.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Sends the events to a source with `tally send`, while it is killed.
fn from_server(place: Place, source: String, store: String, kills: u32) {
    // Two payloads of each part.
    let batch = (EVENTS / kills / 2).to_string();
    let mut send = place.command(&format!("tally send --to {source} --batch {batch}"));
    let send = send.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut sender = send.spawn().unwrap();
    let mut input = sender.stdin.take().unwrap();
    let trial = Trial {
        place,
        source,
        store,
    };
    trial.kill(kills, events(), move |text| {
        input.write_all(text.as_bytes()).unwrap();
    });
    assert!(sender.wait().unwrap().success());
}

fn sqlite(place: &Place) -> String {
    format!("sqlite:{}", place.path("sums.db").display())
}

fn file_to_sqlite(kills: u32) {
    let place = Place::new();
    let store = sqlite(&place);
    from_file(place, store, kills);
}

fn gearman_to_sqlite(kills: u32) {
    let place = Place::new();
    let Some((_gearmand, source)) = gearmand(&place) else {
        return;
    };
    let store = sqlite(&place);
    from_server(place, source, store, kills);
}

fn http_to_sqlite(kills: u32) {
    let place = Place::new();
    let store = sqlite(&place);
    from_server(
        place,
        format!("http://127.0.0.1:{}/events", free_port()),
        store,
        kills,
    );
}

fn all_to_mariadb(kills: u32) {
    let place = Place::new();
    let Some(server) = MariaDb::start(&place) else {
        return;
    };
    let Some((_gearmand, source)) = gearmand(&place) else {
        return;
    };
    from_server(Place::new(), source, server.store(), kills);
    server.run("DROP DATABASE sums; CREATE DATABASE sums");
    from_file(Place::new(), server.store(), kills);
    server.run("DROP DATABASE sums; CREATE DATABASE sums");
    from_server(
        Place::new(),
        format!("http://127.0.0.1:{}/events", free_port()),
        server.store(),
        kills,
    );
}

#[test]
fn a_few_kills_count_nothing_twice_from_a_file() {
    file_to_sqlite(FEW);
}

#[test]
fn a_few_kills_count_nothing_twice_from_gearmand() {
    gearman_to_sqlite(FEW);
}

#[test]
fn a_few_kills_count_nothing_twice_from_http() {
    http_to_sqlite(FEW);
}

#[test]
fn a_few_kills_count_nothing_twice_in_mariadb() {
    all_to_mariadb(FEW);
}

#[test]
#[ignore = "long: 200 kills each"]
fn many_kills_count_nothing_twice() {
    file_to_sqlite(MANY);
    gearman_to_sqlite(MANY);
    http_to_sqlite(MANY);
    all_to_mariadb(MANY);
}

/// Rows of a tag over all time in some stores, as the program prints them.
fn rows(place: &Place, stores: &[&str], level: &str) -> serde_json::Value {
    let mut words = vec!["tally", "query", "t", "--from", "2020-01-01", "--json"];
    words.extend(["--by", level]);
    for store in stores {
        words.extend(["--store", store]);
    }
    let said = place.run(&words);
    assert!(matches!(said.status, Some(0 | 1)), "{said:?}");
    said.json()["rows"].clone()
}

/// Moves all rows of a store to another, which is killed so many times, while late events come to the first; then all
/// of a tag back.
fn moved(place: &Place, target: &str, kills: u32) {
    let (from, truth) = ("sqlite:from.db", "sqlite:truth.db");
    let sum = |lines: &[String], stores: &[&str]| {
        fs::write(place.path("some.log"), lines.concat_lines()).unwrap();
        for store in stores {
            let words = ["tally", "--from", "some.log", "--store", store];
            place.run(&words).ends_with(0);
        }
    };
    let (lines, _) = events();
    let (early, late) = lines.split_at(lines.len() / 2);
    sum(early, &[from, truth]);
    let mut late = late.chunks(late.len() / kills as usize);
    let mut draw = Draw(u64::from(kills));
    for _ in 0..kills {
        let mut child = place
            .command(&format!("tally move --from {from} --to {target}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(draw.below(400)));
        let _ = child.kill();
        child.wait().unwrap();
        sum(late.next().unwrap(), &[from, truth]);
    }
    let all =
        |stores: &[&str]| ["minute", "hour", "day", "month"].map(|by| rows(place, stores, by));
    for (words, there) in [
        (&["--from", from, "--to", target][..], target),
        (&["t", "--from", target, "--to", from], from),
    ] {
        let said = place.run(&[&["tally", "move"][..], words].concat());
        said.ends_with(0);
        assert_eq!(all(&[there]), all(&[truth]), "{words:?}");
        assert_eq!(all(&[from, target]), all(&[truth]), "{words:?}");
    }
}

#[test]
fn rows_that_are_moved_are_in_one_store_whatever_is_killed() {
    let place = Place::new();
    moved(&place, "sqlite:to.db", FEW);
}

#[test]
#[ignore = "long: 200 kills"]
fn rows_that_are_moved_to_mariadb_and_back_are_in_one_store_after_many_kills() {
    let place = Place::new();
    let Some(server) = MariaDb::start(&place) else {
        return;
    };
    moved(&place, &server.store(), MANY);
}

/// The way to a port, which can be cut.
struct Relay {
    port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn start(to: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let all = Arc::clone(&streams);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else {
                    return;
                };
                for (from, into) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut into) =
                        (from.try_clone().unwrap(), into.try_clone().unwrap());
                    all.lock().unwrap().push(from.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut into);
                        let _ = into.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Relay { port, streams }
    }

    /// Ends all connections, with what is on its way.
    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn jobs_count_once_however_often_the_connection_to_gearmand_ends() {
    let place = Place::new();
    let Some((_gearmand, source)) = gearmand(&place) else {
        return;
    };
    let port = source.rsplit(':').next().unwrap();
    let relay = Relay::start(port.split('/').next().unwrap().parse().unwrap());
    let (lines, truth) = events();
    let trial = Trial {
        store: sqlite(&place),
        source: format!("gearman://127.0.0.1:{}/events", relay.port),
        place,
    };
    let words = format!("tally send --to {source} --batch 50");
    let mut send = trial.place.command(&words);
    let mut sender = send
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = sender.stdin.take().unwrap();
    let mut child = trial.start();
    let mut draw = Draw(3);
    for some in lines.chunks(lines.len() / 20) {
        input.write_all(some.concat_lines().as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(draw.below(300)));
        relay.cut();
    }
    drop(input);
    assert!(sender.wait().unwrap().success());
    wait_until("not all events are summed", || trial.sums().0 >= truth.0);
    terminate(&child);
    assert!(child.wait().unwrap().success());
    assert_eq!(trial.sums(), truth);
}

#[test]
fn a_mariadb_that_is_killed_while_sums_come_counts_nothing_twice() {
    let place = Place::new();
    let Some(mut server) = MariaDb::start(&place) else {
        return;
    };
    let (lines, truth) = events();
    let other = Place::new();
    fs::write(other.path("events.log"), "").unwrap();
    let trial = Trial {
        place: other,
        source: "events.log".to_owned(),
        store: server.store(),
    };
    let mut child = trial.start();
    let mut file = fs::File::options()
        .append(true)
        .open(trial.place.path("events.log"))
        .unwrap();
    for (piece, some) in lines.chunks(EVENTS as usize / 30).enumerate() {
        file.write_all(some.concat_lines().as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(60));
        if piece == 0 {
            wait_until("nothing is summed", || trial.sums().0 > 0.0);
        }
        if piece % 10 == 5 {
            server.kill();
            server.begin();
        }
    }
    wait_until("not all events are summed", || {
        assert!(child.try_wait().unwrap().is_none(), "{}", trial.log());
        trial.sums().0 >= truth.0
    });
    terminate(&child);
    assert!(child.wait().unwrap().success());
    assert_eq!(trial.sums(), truth);
}
