//! `tally` into ClickHouse: its engine (chdb, which `make prove` installs with `bench/install-chdb`) behind a server that
//! leaves a quarter of the inserts without an answer. This proves tables, queries and that what is sent again is left out
//! by its token. Debian's server is too old for these tables; it proves the requests' form, users and passwords, and that
//! such a server is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "tally/services.rs"]
mod services;
mod support;

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use services::{free_port, wait_until};
use support::{Place, has_program, skipped};

const EVENTS: u64 = 4000;

fn engine(python: &Path, port: u16, folder: &Path) -> Child {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tally/clickhouse.py");
    let mut command = Command::new(python);
    command.arg(program).arg(port.to_string()).arg(folder);
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the engine does not answer", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    child
}

fn total(place: &Place, store: &str, by: &str) -> (f64, f64, f64) {
    let words = format!("tally query t --store {store} --from 2020-01-01 --by {by} --json");
    let said = place.run(&words);
    if said.status != Some(0) {
        return (0.0, 0.0, 0.0);
    }
    let total = &said.json()["total"];
    let classes = total["buckets"].as_array().unwrap();
    let of_classes = classes
        .iter()
        .map(|class| class["count"].as_f64().unwrap())
        .sum();
    (
        total["count"].as_f64().unwrap(),
        total["sum"].as_f64().unwrap(),
        of_classes,
    )
}

#[test]
#[ignore = "needs chdb, of PyPI"]
fn what_is_sent_again_counts_once() {
    let place = Place::new();
    let python = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("chdb/bin/python3");
    if !python.is_file() {
        return skipped("chdb is not installed (bench/install-chdb)");
    }
    let (port, folder) = (free_port(), place.path("engine"));
    let mut server = engine(&python, port, &folder);
    let store = format!(
        "clickhouse://127.0.0.1:{port}/sums?outbox={}",
        place.path("outbox.db").display()
    );
    let words = format!("tally --from a.log --follow --flush-every 100ms --store {store}");
    let (mut text, mut sum, mut random) = (String::new(), 0.0, 1_u64);
    let mut draw = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    for _ in 0..EVENTS {
        let value = draw(3000);
        sum += value as f64;
        text.push_str(&format!(
            "t:{value}|ms|T{}\n",
            1_760_000_000 + draw(3 * 86_400)
        ));
    }
    let truth = (EVENTS as f64, sum, EVENTS as f64);
    let start = || {
        place
            .command(&words)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap()
    };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    fs::write(place.path("a.log"), "").unwrap();
    for some in lines.chunks(EVENTS as usize / 8) {
        let old = fs::read_to_string(place.path("a.log")).unwrap();
        fs::OpenOptions::new()
            .append(true)
            .open(place.path("a.log"))
            .and_then(|mut file| std::io::Write::write_all(&mut file, some.concat().as_bytes()))
            .unwrap();
        assert!(fs::metadata(place.path("a.log")).unwrap().len() > old.len() as u64);
        let mut tally = start();
        std::thread::sleep(Duration::from_millis(200 + draw(800)));
        tally.kill().unwrap();
        tally.wait().unwrap();
    }
    let mut tally = start();
    wait_until("not all is summed", || {
        total(&place, &store, "minute").0 >= truth.0
    });
    // The engine is down for a while: what comes is acknowledged from the outbox, and sent later.
    server.kill().unwrap();
    server.wait().unwrap();
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(place.path("a.log"))
        .unwrap();
    std::io::Write::write_all(&mut file, b"t:1000|ms|T1760000000\n").unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let mut server = engine(&python, port, &folder);
    wait_until("what waited is not sent", || {
        total(&place, &store, "minute").0 > truth.0
    });
    kill_process(Pid::from_child(&tally), Signal::TERM).unwrap();
    assert!(tally.wait().unwrap().success());
    let truth = (truth.0 + 1.0, truth.1 + 1000.0, truth.2 + 1.0);
    for by in ["minute", "hour", "day", "month"] {
        assert_eq!(total(&place, &store, by), truth, "{by}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

/// Debian's server, with a user who has a password and a database `sums`.
fn old_server(place: &Place) -> Option<(Child, u16)> {
    if !has_program("clickhouse-server") {
        return None;
    }
    let (http, tcp) = (free_port(), free_port());
    let folder = place.path("old");
    fs::create_dir(&folder).unwrap();
    let folder = folder.display();
    let config = format!(
        "<yandex><logger><level>none</level></logger><http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
         <listen_host>127.0.0.1</listen_host><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>
         <users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>
         <default_database>default</default_database><mark_cache_size>5368709</mark_cache_size></yandex>"
    );
    let user = |password: &str| {
        format!(
            "<password>{password}</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
             <quota>default</quota>"
        )
    };
    let users = format!(
        "<yandex><profiles><default/></profiles><quotas><default/></quotas>
         <users><default>{}</default><ann>{}</ann></users></yandex>",
        user(""),
        user("right")
    );
    fs::write(place.path("old/users.xml"), users).unwrap();
    fs::write(place.path("old/config.xml"), config).unwrap();
    let mut command = Command::new("clickhouse-server");
    command.arg(format!("--config-file={folder}/config.xml"));
    let command = command.current_dir(place.path("old")).stdin(Stdio::null());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    wait_until("the server does not answer", || {
        TcpStream::connect(("127.0.0.1", http)).is_ok()
    });
    Some((child.unwrap(), http))
}

#[test]
#[ignore = "needs Debian's ClickHouse: make prove"]
fn debians_old_server_is_refused_with_its_version_and_a_wrong_password_with_a_sentence() {
    let place = Place::new();
    let Some((mut server, port)) = old_server(&place) else {
        return;
    };
    fs::write(place.path("a.log"), "login:1|c\n").unwrap();
    fs::write(place.path("wrong"), "wrong\n").unwrap();
    fs::write(place.path("right"), "right\n").unwrap();
    for (database, password, words) in [
        ("default", "wrong", "Wrong password for user ann"),
        ("sums", "right", "Database sums doesn't exist"),
        ("default", "right", "this needs 22.2 or later"),
    ] {
        let store = format!(
            "clickhouse://ann@127.0.0.1:{port}/{database}?outbox=outbox.db&password-file={password}"
        );
        let said = place.run(&format!("tally --from a.log --store {store}"));
        let said = said.ends_with(2);
        assert!(said.err.contains(words), "{said:?}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}
