//! `tally` where something fails: stores that are down, full or refuse; clients that are slow, or send too much.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "tally/services.rs"]
mod services;
mod support;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use services::{MariaDb, free_port, gearmand};
use support::{Place, Running, has_program, output_of, skipped};

/// Count of a tag in a store.
fn count(place: &Place, store: &str, tag: &str) -> f64 {
    let words = format!("tally query {tag} --store {store} --from 2020-01-01 --by month");
    let said = place.run(&format!("{words} --json"));
    match said.status {
        Some(0) => said.json()["total"]["count"].as_f64().unwrap(),
        _ => 0.0,
    }
}

fn append(path: &Path, text: &str) {
    let mut file = fs::File::options()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// `tally` that follows `a.log`.
fn follow(place: &Place, store: &str) -> Running {
    append(&place.path("a.log"), "");
    let words = format!("tally --from a.log --follow --flush-every 100ms --store {store}");
    Running::start(&mut place.command(&words))
}

fn stop(running: Running) {
    running.signal(Signal::TERM);
    running.end().ends_with(0);
}

#[test]
fn with_root_a_full_disk_is_waited_for() {
    let place = Place::new();
    if !rustix::process::geteuid().is_root() {
        return skipped("a file system of a test's own needs root");
    }
    let point = place.path("data");
    let point = point.to_str().unwrap();
    let program = place.command("").get_program().to_owned();
    // In a mount namespace of its own, which goes with the process.
    let script = "mount -t tmpfs -o size=24m none \"$1\" && exec \"$0\" tally --from a.log --follow \
                  --flush-every 100ms --store \"sqlite:$1/t.db\"";
    append(&place.path("a.log"), "a:1|c\n");
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", script])
        .arg(&program)
        .arg(point)
        .current_dir(place.path(""))
        .env("DISKSMITH_LEDGER", place.ledger())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = Running::start(&mut command);
    let process = running.id().to_string();
    let summed = || {
        let mut query = Command::new("nsenter");
        query.args(["-t", &process, "-m"]).arg(&program);
        query.args([
            "tally",
            "query",
            "a",
            "--from",
            "2020-01-01",
            "--by",
            "month",
            "--json",
        ]);
        let said = output_of(query.arg(format!("--store=sqlite:{point}/t.db")));
        match said.status {
            Some(0) => said.json()["total"]["count"].as_f64().unwrap(),
            _ => 0.0,
        }
    };
    running.wait_until("does not sum", || summed() == 1.0);
    let filler = format!("/proc/{process}/root{point}/filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let lines: String = (0..20_000).map(|tag| format!("t{tag}:1|c\n")).collect();
    append(&place.path("a.log"), &format!("{lines}a:10|c\n"));
    running.wait_for_text("the disk is full");
    drop(file);
    fs::remove_file(&filler).unwrap();
    running.wait_until("does not go on", || summed() == 11.0);
    stop(running);
}

#[test]
fn a_wrong_password_is_refused_and_no_password_is_shown() {
    let place = Place::new();
    let secret = "mysql://ann:s3cret@db/sums";
    for words in [
        &["tally", "--from", "-", "--store", secret][..],
        &["tally", "--from", "-", "--store", "mysql://ann:s3cret@db"],
        &[
            "tally",
            "--from",
            "-",
            "--store",
            "postgres://ann:s3cret@db/x",
        ],
        &["tally", "query", "a", "--store", secret],
    ] {
        let refused = place.run(words).refuses(&["error: "]);
        assert!(!refused.err.contains("s3cret"), "{refused:#?}");
    }
    let Some(server) = MariaDb::start(&place) else {
        return;
    };
    server.run(
        "CREATE USER ann@localhost IDENTIFIED BY 'right'; GRANT ALL ON sums.* TO ann@localhost",
    );
    for (password, status) in [("wr0ng", 2), ("right", 0)] {
        fs::write(
            place.path("my.cnf"),
            format!("[client]\npassword={password}\n"),
        )
        .unwrap();
        let store = format!("{}&defaults-file=my.cnf", server.store_of("ann"));
        let said = place
            .run(&format!("tally --from - --store {store}"))
            .ends_with(status);
        assert_eq!(status == 2, said.err.contains("Access denied"), "{said:#?}");
        assert!(!said.err.contains("wr0ng"), "{said:#?}");
    }
}

#[test]
fn a_server_that_is_read_only_or_down_is_waited_for_and_a_newer_schema_is_refused() {
    let place = Place::new();
    let Some(mut server) = MariaDb::start(&place) else {
        return;
    };
    server.run(
        "CREATE USER ann@localhost; GRANT ALL ON sums.* TO ann@localhost; SET GLOBAL read_only = 1",
    );
    let store = server.store_of("ann");
    append(&place.path("a.log"), "a:1|c\n");
    let mut running = follow(&place, &store);
    running.wait_for_text("waiting for it");
    server.run("SET GLOBAL read_only = 0");
    running.wait_until("does not begin", || count(&place, &store, "a") == 1.0);
    server.run("SET GLOBAL read_only = 1");
    append(&place.path("a.log"), "a:10|c\n");
    running.wait_for_text("trying again, and summing in memory meanwhile");
    server.run("SET GLOBAL read_only = 0");
    running.wait_until("does not go on", || count(&place, &store, "a") == 11.0);
    stop(running);
    // Down at the start.
    server.kill();
    let mut waiting = follow(&place, &store);
    waiting.wait_for_text("waiting for it");
    append(&place.path("a.log"), "a:100|c\n");
    server.begin();
    waiting.wait_until("does not begin", || count(&place, &store, "a") == 111.0);
    stop(waiting);
    // Stopped while it is down.
    server.kill();
    let mut waiting = follow(&place, &store);
    waiting.wait_for_text("waiting for it");
    stop(waiting);
    server.begin();
    server.run("UPDATE sums.tally_setting SET value = '2' WHERE name = 'schema'");
    place
        .run(&format!("tally --from - --store {store}"))
        .refuses(&["schema 2"]);
    place
        .run(&format!("tally query a --store {store}"))
        .refuses(&["schema 2"]);
}

#[test]
fn while_the_store_is_down_jobs_and_requests_are_summed_on() {
    let place = Place::new();
    let Some(mut server) = MariaDb::start(&place) else {
        return;
    };
    let Some((_gearmand, source)) = gearmand(&place) else {
        return;
    };
    let store = server.store();
    let port = free_port();
    let http = format!("http://127.0.0.1:{port}/events");
    let words = [
        "tally", "--from", &source, "--from", &http, "--store", &store,
    ];
    let mut running =
        Running::start(&mut place.command(&[&words[..], &["--flush-every", "100ms"]].concat()));
    let send = |count: usize| {
        let events = vec!["g:1|c"; count];
        let words = ["tally", "send", "--batch", "1", "--to", &source];
        place.run(&[&words[..], &events].concat()).ends_with(0);
    };
    send(10);
    running.wait_until("does not sum", || count(&place, &store, "g") == 10.0);
    server.kill();
    send(200);
    let post = place
        .command(&format!("tally send --to {http} h:1|c h:1|c"))
        .spawn()
        .unwrap();
    let admin = source
        .trim_start_matches("gearman://")
        .trim_end_matches("/events");
    running.wait_until("takes no jobs while the store is down", || {
        let mut stream = TcpStream::connect(admin).unwrap();
        stream.write_all(b"status\n").unwrap();
        let mut text = [0; 100];
        let length = stream.read(&mut text).unwrap();
        // All queued jobs are assigned, and none is completed.
        String::from_utf8_lossy(&text[..length]).starts_with("events\t200\t200\t")
    });
    server.begin();
    running.wait_until("does not go on", || count(&place, &store, "g") == 210.0);
    assert!(post.wait_with_output().unwrap().status.success());
    assert_eq!(count(&place, &store, "h"), 2.0);
    stop(running);
}

#[test]
fn a_store_that_is_down_is_not_left_out_before_it_has_what_is_summed() {
    let place = Place::new();
    let Some(mut server) = MariaDb::start(&place) else {
        return;
    };
    let both = format!(
        "[stores]\na = \"sqlite:a.db\"\nb = \"{}\"\n[[route]]\ntag = \"t\"\nstore = \"b\"\n[[route]]\nstore = \"a\"\n",
        server.store()
    );
    fs::write(place.path("t.toml"), &both).unwrap();
    append(&place.path("a.log"), "t:1|c\n");
    let words = "tally --from a.log --follow --config t.toml";
    let mut running = Running::start(&mut place.command(&format!("{words} --flush-every 100ms")));
    let store = server.store();
    running.wait_until("does not begin", || count(&place, &store, "t") == 1.0);
    server.kill();
    append(&place.path("a.log"), "t:10|c\n");
    running.wait_for_text("summing in memory meanwhile");
    fs::write(
        place.path("t.toml"),
        "[stores]\na = \"sqlite:a.db\"\n[[route]]\nstore = \"a\"\n",
    )
    .unwrap();
    running.signal(Signal::HUP);
    running.wait_for_text("Start it and send SIGHUP again");
    server.begin();
    running.wait_until("does not go on", || count(&place, &store, "t") == 11.0);
    running.wait_for_text("takes sums again");
    running.signal(Signal::HUP);
    running.wait_for_text("t.toml is read again");
    append(&place.path("a.log"), "t:100|c\n");
    running.wait_until("does not sum", || {
        count(&place, "sqlite:a.db", "t") == 100.0
    });
    assert_eq!(count(&place, &store, "t"), 11.0);
    stop(running);
}

#[test]
fn a_connection_to_mariadb_is_encrypted_where_a_certificate_is_named() {
    let place = Place::new();
    if !has_program("openssl") {
        return;
    }
    let port = free_port();
    let openssl = |words: &str| {
        let mut openssl = Command::new("openssl");
        openssl.args(words.split(' ')).current_dir(place.path(""));
        output_of(&mut openssl).ends_with(0);
    };
    for authority in ["own", "other"] {
        openssl(&format!(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={authority} -keyout {authority}.key -out {authority}.pem"
        ));
    }
    openssl("req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr");
    fs::write(
        place.path("names"),
        "subjectAltName=DNS:localhost,IP:127.0.0.1\n",
    )
    .unwrap();
    openssl(
        "x509 -req -in server.csr -CA own.pem -CAkey own.key -CAcreateserial -days 2 -extfile names -out server.pem",
    );
    let [key, pem, own, other] =
        ["server.key", "server.pem", "own.pem", "other.pem"].map(|name| place.path(name));
    let options = [
        format!("--ssl-cert={}", pem.display()),
        format!("--ssl-key={}", key.display()),
        "--bind-address=127.0.0.1".to_owned(),
        "--require-secure-transport=ON".to_owned(),
        format!("--port={port}"),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let Some(server) = MariaDb::with(&place, &options) else {
        return;
    };
    server.run("CREATE USER ann@'%'; GRANT ALL ON sums.* TO ann@'%'");
    let store = |more: &str| format!("mysql://ann@127.0.0.1:{port}/sums{more}");
    append(&place.path("a.log"), "a:1|c\n");
    let encrypted = store(&format!("?ssl-ca={}", own.display()));
    place
        .run(&format!("tally --from a.log --store {encrypted}"))
        .ends_with(0);
    assert_eq!(count(&place, &encrypted, "a"), 1.0);
    for refused in [store(""), store(&format!("?ssl-ca={}", other.display()))] {
        place
            .run(&format!("tally query a --store {refused}"))
            .ends_with(2);
    }
}

/// A connection that has sent something, and its answer up to the end.
fn send(port: u16, request: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request).unwrap();
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
    }
    String::from_utf8(text).unwrap()
}

fn head(key: &str, length: usize, more: &str) -> String {
    format!(
        "POST /events HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: {key}\r\n\
         Content-Length: {length}\r\n{more}\r\n"
    )
}

fn post(port: u16, key: &str, more: &str, body: &[u8]) -> String {
    let head = head(key, body.len(), more);
    answer(send(port, &[head.as_bytes(), body].concat()))
}

/// `tally` with a source `http://` at a host, and its port.
fn server(place: &Place, host: &str, more: &[&str]) -> (Running, u16) {
    let port = free_port();
    let source = format!("http://{host}:{port}/events");
    let words = ["tally", "--from", &source];
    let mut running = Running::start(&mut place.command(&[&words[..], more].concat()));
    running.wait_until("does not listen", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    (running, port)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

#[test]
fn packed_bodies_are_read_within_limits() {
    let place = Place::new();
    let (running, port) = server(&place, "127.0.0.1", &[]);
    let store = format!("sqlite:{}", place.path("tally.db").display());
    let packed = "Content-Encoding: gzip\r\n";
    for (key, more, body, status) in [
        ("1", packed, gzip(b"a:1|c\na:2|c\n"), "200"),
        ("2", packed, gzip(&vec![b'x'; 9 << 20]), "413"),
        ("3", packed, b"no gzip".to_vec(), "400"),
        ("4", "Content-Encoding: br\r\n", b"x".to_vec(), "415"),
    ] {
        let answer = post(port, key, more, &body);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{key}: {answer}"
        );
    }
    assert_eq!(count(&place, &store, "a"), 3.0);
    stop(running);
}

#[test]
fn bodies_beyond_what_memory_takes_are_put_off_and_slow_clients_are_dropped() {
    let place = Place::new();
    let (running, port) = server(&place, "127.0.0.1", &[]);
    // As much as all bodies together may take, announced and not sent.
    let mut slow: Vec<TcpStream> = (0..8)
        .map(|client| send(port, head(&format!("s{client}"), 8 << 20, "").as_bytes()))
        .collect();
    let full = loop {
        // Those before it may not be read yet.
        let answer = post(port, "full", "", b"a:1|c\n");
        if !answer.starts_with("HTTP/1.1 200") {
            break answer;
        }
    };
    assert!(full.starts_with("HTTP/1.1 429"), "{full}");
    assert!(full.to_lowercase().contains("retry-after: 1\r\n"), "{full}");
    let late = answer(slow.pop().unwrap());
    assert!(late.starts_with("HTTP/1.1 408"), "{late}");
    drop(slow);
    // More connections than there are places for, none of which sends a whole head.
    let idle: Vec<TcpStream> = (0..300).map(|_| send(port, b"POST /events HTT")).collect();
    let answer = post(port, "2", "", b"a:1|c\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(idle);
    stop(running);
}

#[test]
fn other_hosts_need_the_token() {
    let place = Place::new();
    fs::write(place.path("token"), "s3cret\n").unwrap();
    let (running, port) = server(&place, "0.0.0.0", &["--token-file", "token"]);
    for (more, status) in [
        ("", "401"),
        ("Authorization: Bearer s3cre\r\n", "401"),
        ("Authorization: Basic s3cret\r\n", "401"),
        ("Authorization: Bearer s3cret\r\n", "200"),
    ] {
        let answer = post(port, "k", more, b"a:1|c\n");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{more}: {answer}"
        );
    }
    let source = format!("http://127.0.0.1:{port}/events");
    place
        .run(&format!(
            "tally send --to {source} --token-file token a:1|c"
        ))
        .ends_with(0);
    stop(running);
}
