//! The verb `serve`, through the real program and real sockets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "serve/server.rs"]
mod server;
mod support;
#[path = "serve/world.rs"]
mod world;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};
use server::Server;
use support::Place;
use world::{Minute, World};

fn token(place: &Place, role: &str) -> String {
    let file = place.path("tokens");
    let words = format!("serve token {role} --token-file {}", file.display());
    place.run(&words).ends_with(0).out.trim().to_owned()
}

/// Status of an answer, and the method, the path and the headers of its request.
type Case<'a> = (u16, &'a str, &'a str, &'a [(&'a str, &'a str)]);

#[test]
fn hosts_origins_and_types_are_checked_on_loopback_too() {
    let place = Place::new();
    let server = Server::start(&place, "--name disks.example");
    let body = r#"{"text":"deploy 1"}"#;
    let own = format!("http://127.0.0.1:{}", server.port);
    let json = ("Content-Type", "application/json");
    let table: [Case<'_>; 22] = [
        (200, "GET", "/healthz", &[]),
        (200, "GET", "/api/v1/now", &[]),
        (200, "GET", "/api/v1/now", &[("Host", "localhost:1")]),
        (200, "GET", "/api/v1/now", &[("Host", "disks.example")]),
        (421, "GET", "/api/v1/now", &[("Host", "evil.example")]),
        (421, "GET", "/healthz", &[("Host", "evil.example")]),
        (421, "GET", "/", &[("Host", "127.0.0.1.evil.example")]),
        (421, "GET", "/api/v1/now", &[("Host", "192.0.2.1")]),
        (
            400,
            "GET",
            "/api/v1/now",
            &[("Host", "localhost"), ("Host", "evil.example")],
        ),
        (201, "POST", "/api/v1/markers", &[json]),
        (
            201,
            "POST",
            "/api/markers",
            &[json, ("Origin", own.as_str())],
        ),
        (
            403,
            "POST",
            "/api/v1/markers",
            &[json, ("Origin", "http://evil.example")],
        ),
        (403, "POST", "/api/v1/markers", &[json, ("Origin", "null")]),
        (
            403,
            "POST",
            "/api/v1/markers",
            &[json, ("Sec-Fetch-Site", "cross-site")],
        ),
        (
            415,
            "POST",
            "/api/v1/markers",
            &[("Content-Type", "text/plain")],
        ),
        (
            415,
            "POST",
            "/api/v1/markers",
            &[("Content-Type", "application/x-www-form-urlencoded")],
        ),
        (415, "POST", "/api/v1/markers", &[]),
        (405, "POST", "/api/v1/runs", &[json]),
        (405, "DELETE", "/api/v1/markers", &[json]),
        (405, "PUT", "/", &[json]),
        (404, "GET", "/nothing", &[]),
        (404, "GET", "/api/v1/nothing", &[]),
    ];
    for (status, method, path, headers) in table {
        let reply = server.ask(
            method,
            path,
            headers,
            if method == "GET" { "" } else { body },
        );
        assert_eq!(
            reply.status, status,
            "{method} {path} {headers:?}: {}",
            reply.body
        );
        assert!(
            reply
                .header("content-security-policy")
                .contains("default-src 'none'"),
            "{reply:?}"
        );
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
    }
    let markers = server.document("/api/v1/markers");
    assert_eq!(markers["markers"].as_array().unwrap().len(), 2);
    assert_eq!(server.end().status, Some(0));
}

#[test]
fn paths_lead_nowhere_else() {
    let place = Place::new();
    std::fs::write(place.path("secret"), "secret").unwrap();
    let server = Server::start(&place, "");
    for path in [
        "/assets/../secret",
        "/assets/..%2fsecret",
        "/assets/%2e%2e/%2e%2e/secret",
        "/assets/app.0000000000.js",
        "/assets//etc/passwd",
        "/../../etc/passwd",
        "//evil.example/",
        "/runs/..%2f..%2fsecret",
        "/runs/%00",
        "/api/v1/runs/'%20OR%201=1",
        "/%ff",
    ] {
        let reply = server.get(path);
        assert!(matches!(reply.status, 400 | 404), "{path}: {reply:?}");
        assert!(
            !reply.body.contains("secret") || path.contains("secret"),
            "{path}"
        );
        assert_eq!(reply.header("location"), "", "{path}");
    }
}

#[test]
fn others_are_let_in_with_tokens_and_tls_or_a_proxy_only() {
    let place = Place::new();
    token(&place, "read");
    let file = place.path("tokens");
    let file = file.to_str().unwrap();
    for arguments in [
        &[][..],
        &["--token-file", file],
        &["--behind-proxy", "127.0.0.1"],
        &["--listen", "[::]:0"],
    ] {
        let words = [&["serve", "--listen", "0.0.0.0:0"], arguments].concat();
        let words = match arguments.first() {
            Some(&"--listen") => vec!["serve", "--listen", "[::]:0"],
            _ => words,
        };
        place
            .run(&words)
            .refuses(&["others can reach", "--token-file"]);
    }
    std::fs::write(place.path("plain"), "my-secret-token\n").unwrap();
    let plain = place.path("plain");
    place
        .run(&["serve", "--token-file", plain.to_str().unwrap()])
        .refuses(&["a line that is no token's"]);
    let missing = place.path("missing");
    place
        .run(&["serve", "--token-file", missing.to_str().unwrap()])
        .refuses(&["is not there", "disksmith serve token"]);
    place
        .run("serve --slot 10ms")
        .refuses(&["--slot is a whole number of seconds"]);
}

#[test]
fn addresses_that_cannot_be_served_on_are_refused() {
    let place = Place::new();
    for wrong in ["localhost:9188", "127.0.0.1", "999.1.1.1:80", "70000"] {
        let said = place.run(&["serve", "--listen", wrong]).ends_with(2);
        said.warns(&["127.0.0.1:9187"]);
    }
    place
        .run("serve --prometheus https://prometheus:9090")
        .ends_with(2);
    // A port alone is one of the loopback.
    let server = Server::start(&place, "");
    place
        .run(&["serve", "--listen", &server.port.to_string()])
        .refuses(&["127.0.0.1", "Address already in use", "ss -lntup"]);
}

#[test]
fn tokens_are_of_a_role_and_sessions_end() {
    let place = Place::new();
    let (reader, writer) = (token(&place, "read"), token(&place, "write"));
    let file = place.path("tokens");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(&reader) && !text.contains(&writer), "{text}");
    let server = Server::start(&place, &["--token-file", file.to_str().unwrap()]);
    let body = r#"{"text":"deploy 1"}"#;
    let bearer = |token: &str| format!("Bearer {token}");
    let wrong = "0".repeat(64);
    let longer = format!("{reader}0");
    let get = |token: &str| {
        let authorization = bearer(token);
        server
            .ask(
                "GET",
                "/api/v1/now",
                &[("Authorization", &authorization)],
                "",
            )
            .status
    };
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/api/v1/now").status, 401);
    assert_eq!(server.get("/metrics").status, 401);
    assert_eq!((get(&reader), get(&writer)), (200, 200));
    for wrong in [
        "",
        &wrong,
        &reader[..63],
        &longer,
        "' OR 1=1",
        &"x".repeat(5000),
    ] {
        assert_eq!(get(wrong), 401, "{wrong}");
    }
    let post = |token: &str| {
        let authorization = bearer(token);
        let headers = [
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
        ];
        server.ask("POST", "/api/v1/markers", &headers, body).status
    };
    assert_eq!((post(&reader), post(&writer)), (403, 201));
    // A token in the URL is none.
    assert_eq!(
        server.get(&format!("/api/v1/now?token={reader}")).status,
        401
    );

    let page = server.get("/verdicts?last=1d");
    assert_eq!(
        (page.status, page.header("location")),
        (303, "/sign-in?next=/verdicts%3Flast%3D1d")
    );
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let sign_in = |token: &str, next: &str| {
        server.ask(
            "POST",
            "/sign-in",
            &[form],
            &format!("token={token}&next={next}"),
        )
    };
    assert_eq!(sign_in(&wrong, "/").status, 401);
    assert_eq!(
        sign_in(&reader, "https://evil.example/").header("location"),
        "/"
    );
    assert_eq!(sign_in(&reader, "//evil.example/").header("location"), "/");
    let signed_in = sign_in(&reader, "/verdicts");
    assert_eq!(
        (signed_in.status, signed_in.header("location")),
        (303, "/verdicts")
    );
    let cookie = signed_in.header("set-cookie").to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    assert!(!cookie.contains(&reader));
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let with_cookie =
        |method: &str, path: &str| server.ask(method, path, &[("Cookie", &cookie)], "");
    assert_eq!(with_cookie("GET", "/").status, 200);
    assert_eq!(with_cookie("GET", "/api/v1/now").status, 200);
    assert_eq!(with_cookie("POST", "/sign-out").status, 303);
    // The cookie that was valid is replayed.
    assert_eq!(with_cookie("GET", "/api/v1/now").status, 401);
    // A token whose line is removed is no longer known, and neither are its sessions.
    let again = sign_in(&writer, "/")
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let kept: String = text
        .lines()
        .filter(|line| line.starts_with("read"))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&file, kept).unwrap();
    assert_eq!((get(&reader), get(&writer)), (200, 401));
    assert_eq!(
        server
            .ask("GET", "/api/v1/now", &[("Cookie", &again)], "")
            .status,
        401
    );
}

#[test]
fn what_a_client_makes_the_server_hold_is_bounded() {
    let place = Place::new();
    let server = Server::start(&place, "");
    let host = format!("Host: 127.0.0.1:{}\r\n", server.port);
    // Heads: their size, and the number of headers.
    let long = format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(100_000));
    assert_eq!(server.raw(long.as_bytes()).status, 431);
    let many = format!("GET / HTTP/1.1\r\n{host}{}\r\n", "A: b\r\n".repeat(500));
    assert_eq!(server.raw(many.as_bytes()).status, 431);
    let path = format!("GET /{} HTTP/1.1\r\n{host}\r\n", "x".repeat(70_000));
    assert!(matches!(server.raw(path.as_bytes()).status, 414 | 431));
    // Bodies.
    let big = format!("{{\"text\":\"{}\"}}", "x".repeat(100_000));
    assert_eq!(server.post("/api/v1/markers", &big).status, 413);
    assert_eq!(server.raw(b"\x16\x03\x01\x02\x00").status, 400);
    // Connections that say nothing: more than there are places. Those that find one lose it in time.
    let address = ("127.0.0.1", server.port);
    let idle: Vec<TcpStream> = (0..3000)
        .filter_map(|_| TcpStream::connect(address).ok())
        .collect();
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap();
    let open = open.count();
    assert!(open < 1200, "{open}");
    server::wait_until("it answers none any more", || {
        let stream = TcpStream::connect(address);
        stream.is_ok_and(|mut stream| {
            let mut reply = Vec::new();
            let request = format!("GET /healthz HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
            let _ = stream.write_all(request.as_bytes());
            let _ = stream.read_to_end(&mut reply);
            reply.starts_with(b"HTTP/1.1 200")
        })
    });
    drop(idle);
    // A client that takes nothing of a stream of events is not waited for.
    let mut deaf = server.connect();
    let request = format!("GET /api/v1/live HTTP/1.1\r\n{host}\r\n");
    deaf.write_all(request.as_bytes()).unwrap();
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.end().status, Some(0));
}

#[test]
fn the_live_page_has_events_and_ends_with_the_server() {
    let place = Place::new();
    let server = Server::start(&place, "");
    let mut stream = server.connect();
    let request = format!(
        "GET /api/v1/live HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n",
        server.port
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut heard = String::new();
    let mut piece = [0; 65536];
    // The first at once, and each second another, with the disks of this host.
    while heard.matches("event: now\n").count() < 3 || !heard.contains("\"source\":\"kernel\"") {
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    assert!(heard.contains("text/event-stream"), "{heard}");
    let metrics = server.get("/metrics").body;
    assert!(
        metrics.contains("\ndisksmith_serve_viewers 1\n"),
        "{metrics}"
    );
    assert_eq!(server.end().status, Some(0));
    // The stream ends too.
    while stream.read(&mut piece).unwrap() > 0 {}
}

#[test]
fn markers_are_set_listed_and_written_in_other_forms() {
    let place = Place::new();
    let server = Server::start(&place, "");
    assert_eq!(server.document("/api/v1/markers")["markers"], json!([]));
    let own = r#"{"text":"deploy <b>1</b>","time":"2026-11-24T14:05:00Z","hostname":"db-1"}"#;
    let reply = server.post("/api/v1/markers", own);
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!(reply.json()["markers"][0]["hostname"], "db-1");
    let grafana =
        r#"{"time":1795529200000,"timeEnd":1795529300000,"tags":["deploy"],"text":"deploy 2"}"#;
    assert_eq!(server.post("/api/v1/markers", grafana).status, 201);
    let ganglia =
        r#"[{"event_id":"1","start_time":1795529400,"summary":"deploy 3","host_regex":"db-2"}]"#;
    assert_eq!(server.post("/api/v1/markers", ganglia).status, 201);
    for wrong in ["", "{}", "[]", "nonsense", r#"{"text":"a","x":1}"#] {
        assert_eq!(server.post("/api/v1/markers", wrong).status, 400, "{wrong}");
    }
    // They are those of `disksmith mark`.
    let marks = place.run("mark --list --json").ends_with(0).json();
    let texts: Vec<&str> = marks["marks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mark| mark["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["deploy <b>1</b>", "deploy 2", "deploy 3"]);
    place.run(&["mark", "deploy 4"]).ends_with(0);
    let listed = server.document("/api/v1/markers");
    assert_eq!(listed["markers"].as_array().unwrap().len(), 4);
    let some = server.document("/api/v1/markers?from=2026-11-24T14:06:00Z&to=2026-11-24T14:08:00Z");
    assert_eq!(some["markers"][0]["text"], "deploy 2");
    let annotations: Value =
        serde_json::from_str(&server.get("/api/v1/markers?form=grafana").body).unwrap();
    assert_eq!(annotations[0]["time"], 1_795_529_100_000_i64);
    let events: Value =
        serde_json::from_str(&server.get("/api/v1/markers?form=ganglia").body).unwrap();
    assert_eq!(events[2]["summary"], "deploy 3");
    let csv = server.get("/api/v1/markers.csv");
    assert!(csv.header("content-disposition").contains("markers.csv"));
    assert!(
        csv.body
            .contains("2026-11-24T14:05:00Z,db-1,deploy <b>1</b>\n"),
        "{}",
        csv.body
    );
    // On the page it is text.
    let page = server.get("/markers").body;
    assert!(!page.contains("<b>1</b>"), "{page}");
}

#[test]
fn runs_are_listed_compared_and_reported() {
    let place = Place::new();
    let server = Server::start(&place, "");
    assert_eq!(server.document("/api/v1/runs")["runs"], json!([]));
    assert_eq!(server.get("/api/v1/runs/last").json()["status"], 404);
    place.bench(&support::SHORT).ends_with(0);
    place.bench(&support::SHORT).ends_with(0);
    let runs = server.document("/api/v1/runs");
    let ids: Vec<&str> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    assert_eq!(ids, place.runs());
    assert_eq!(
        server.document(&format!("/api/v1/runs/{}", ids[0]))["command"],
        "bench"
    );
    let compared = server.document(&format!("/api/v1/compare?a={}&b={}", ids[1], ids[0]));
    assert_eq!(compared["command"], "compare");
    assert_eq!(server.get("/api/v1/compare?a=last").status, 400);
    assert_eq!(server.get("/api/v1/runs/none").status, 404);
    let report = server.get(&format!("/runs/{}", ids[0]));
    assert_eq!(report.status, 200);
    assert!(
        report
            .header("content-security-policy")
            .starts_with("sandbox "),
        "{report:?}"
    );
    assert!(report.body.contains("disksmith"));
    let both = server.get(&format!("/report?run={}&run={}", ids[0], ids[1]));
    assert_eq!(both.status, 200);
    assert_eq!(server.get("/report").status, 400);
    assert!(server.get("/api/v1/runs.csv").body.contains(ids[0]));
}

/// A day of a service: a value and a count for each minute.
fn steady(slot: i64) -> Minute {
    Minute {
        requests: 600.0 + 30.0 * ((slot * 7919) % 13) as f64 / 13.0,
        p50_ms: 20.0 + 2.0 * ((slot * 104_729) % 17) as f64 / 17.0,
        ..Minute::default()
    }
}

#[test]
fn a_view_has_response_times_and_disks_on_one_axis() {
    let place = Place::new();
    let world = World::new(&place);
    let minutes = world.minutes(-120, 0);
    world.tally("api.get", minutes.clone(), steady);
    world.record("db-1", "vda", minutes.clone(), |slot| world::DiskMinute {
        await_ms: if slot == world.minute(-30) {
            400.0
        } else {
            1.0
        },
        ..world::DiskMinute::default()
    });
    let server = Server::start(&place, "");
    // Not "last=2h", which a minute later is one minute more or less.
    let (from, to) = (60 * world.minute(-120), 60 * world.minute(0));
    let two_hours = format!("from={from}&to={to}");
    let view = server.document(&format!("/api/v1/response-times?{two_hours}"));
    let slots = view["time_s"].as_array().unwrap().len();
    assert!((119..=122).contains(&slots), "{slots}");
    assert_eq!(view["selection"], "api.get");
    assert_eq!(view["level"], "minute");
    assert_eq!(view["bounds_ms"], json!([200.0, 500.0, 1000.0, 2000.0]));
    for key in ["mean_ms", "max_ms"] {
        assert_eq!(view[key].as_array().unwrap().len(), slots, "{key}");
    }
    assert_eq!(view["shares"].as_array().unwrap().len(), 5);
    let p50 = view["p50_ms"]["mean"][60].as_f64().unwrap();
    assert!((17.0..23.0).contains(&p50), "{p50}");
    let disk = &view["disks"][0];
    assert_eq!(
        (disk["hostname"].as_str(), disk["name"].as_str()),
        (Some("db-1"), Some("vda"))
    );
    // With fewer points the spike of one minute stays.
    let coarse = server.document(&format!("/api/v1/response-times?{two_hours}&points=20"));
    let most = |line: &Value| {
        let values = line["max"].as_array().unwrap().iter();
        values.filter_map(Value::as_f64).fold(0.0, f64::max)
    };
    assert!(coarse["time_s"].as_array().unwrap().len() <= 21);
    assert_eq!(most(&coarse["disks"][0]["await_ms"]), 400.0);
    // A year, from days.
    let year = server.document("/api/v1/response-times?last=1y");
    assert_eq!(year["level"], "day");
    let csv = server.get(&format!("/api/v1/response-times.csv?{two_hours}"));
    assert!(csv.body.starts_with("time,requests_per_s,"), "{}", csv.body);
    assert_eq!(csv.body.lines().count(), slots + 1);
    for wrong in ["last=x", "from=5&to=1", "points=x", "last=99y"] {
        assert_eq!(
            server
                .get(&format!("/api/v1/response-times?{wrong}"))
                .status,
            400,
            "{wrong}"
        );
    }
    let tags = server.document("/api/v1/tags");
    assert_eq!(tags["tags"][0]["selection"], "api.get");
}

#[test]
fn a_release_a_disk_and_nothing_are_distinguished() {
    let place = Place::new();
    let world = World::new(&place);
    let minutes = world.minutes(-400, 0);
    let (release, disk, nothing) = (world.minute(-320), world.minute(-200), world.minute(-80));
    world.tally("api.get", minutes.clone(), |slot| Minute {
        p50_ms: match slot {
            slot if (release..release + 60).contains(&slot) => 45.0,
            slot if (disk..disk + 60).contains(&slot) => 60.0,
            _ => 20.0,
        } * steady(slot).p50_ms
            / 20.0,
        ..steady(slot)
    });
    world.record("db-1", "vda", minutes, |slot| world::DiskMinute {
        await_ms: if (disk..disk + 60).contains(&slot) {
            12.0
        } else {
            1.0
        } * steady(slot).p50_ms
            / 20.0,
        ..world::DiskMinute::default()
    });
    world.mark(release, "release 2");
    world.mark(nothing, "release 3");
    let server = Server::start(&place, "");
    let found = server.document("/api/v1/verdicts?last=7h");
    let verdicts = found["verdicts"].as_array().unwrap();
    let of = |text: &str| {
        let is = |verdict: &&Value| verdict["marker"]["text"] == text;
        verdicts
            .iter()
            .find(is)
            .unwrap_or_else(|| panic!("{found}"))
    };
    assert_eq!(of("release 2")["conclusion"], "code", "{found}");
    assert_eq!(of("release 3")["conclusion"], "nothing-changed", "{found}");
    let at = |slot: i64| world.time(slot);
    let is_disk = |verdict: &&Value| {
        verdict["marker"].is_null()
            && verdict["conclusion"] == "system"
            && verdict["time"].as_str().unwrap() >= at(disk - 3).as_str()
    };
    let system = verdicts
        .iter()
        .find(is_disk)
        .unwrap_or_else(|| panic!("{found}"));
    assert_eq!(system["causes"][0]["name"], "db-1/vda");
    assert!(
        system["sentence"].as_str().unwrap().contains("db-1/vda"),
        "{system}"
    );
    let csv = server.get("/api/v1/verdicts.csv?last=7h").body;
    assert!(csv.contains(",release 2,code,"), "{csv}");
}

#[test]
fn a_store_that_is_away_is_reported_and_comes_back() {
    let place = Place::new();
    let server = Server::start(&place, "");
    let state = |document: &Value| {
        let sources = document["sources"].as_array().unwrap();
        let tally = sources
            .iter()
            .find(|source| source["kind"] == "tally")
            .unwrap();
        tally["state"].as_str().unwrap().to_owned()
    };
    let view = server.document("/api/v1/response-times");
    assert_eq!(state(&view), "away");
    assert_eq!(view["selection"], Value::Null);
    let judged = server.document("/api/v1/verdicts?tag=api.get");
    assert_eq!(state(&judged), "away");
    let page = server.get("/verdicts?tag=api.get");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("does not answer"), "{}", page.body);
    assert!(!page.body.contains("No marker is set"), "{}", page.body);
    let world = World::new(&place);
    world.tally("api.get", world.minutes(-30, 0), steady);
    server::wait_until("it does not see the store", || {
        let view = server.document("/api/v1/response-times?last=31m");
        state(&view) == "ok" && view["selection"] == "api.get"
    });
}
