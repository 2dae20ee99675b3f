//! A server of a test's own, and a client that sends what the test says, byte by byte.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::support::documents;
use super::support::{Place, ProgramOutput, Running, TIMEOUT, Words};

/// The program as a server.
pub(crate) struct Server {
    running: Running,
    pub(crate) port: u16,
}

impl Server {
    /// Starts it on a port of its own.
    pub(crate) fn start(place: &Place, arguments: &(impl Words + ?Sized)) -> Server {
        let words = [vec!["serve", "--listen", "127.0.0.1:0"], arguments.words()].concat();
        let log = place.path("serve.out");
        let mut command = place.command(&words);
        command.stdout(std::fs::File::create(&log).unwrap());
        command.stderr(Stdio::inherit());
        let mut running = Running::start(&mut command);
        let mut port = None;
        running.wait_until("does not serve", || {
            let text = std::fs::read_to_string(&log).unwrap();
            let url = text.lines().find_map(|line| line.strip_prefix("Serving "));
            port = url.and_then(|url| url.trim_end_matches('/').rsplit_once(':')?.1.parse().ok());
            port.is_some()
        });
        Server {
            running,
            port: port.unwrap(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// The answer to what is sent as it is.
    pub(crate) fn raw(&self, request: &[u8]) -> Reply {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Reply::parse(&bytes)
    }

    /// The answer to a request with these headers.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.raw(format!("{head}\r\n{body}").as_bytes())
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Reply {
        self.ask("POST", path, &[("Content-Type", "application/json")], body)
    }

    /// A document of the API, whose keys are those that are pinned.
    pub(crate) fn document(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.json()
    }

    /// Ends it as systemd does.
    pub(crate) fn end(self) -> ProgramOutput {
        self.running.signal(Signal::TERM);
        self.running.end()
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) body: String,
}

impl Reply {
    /// Status 0 is no answer: the connection was closed.
    fn parse(bytes: &[u8]) -> Reply {
        let end = bytes.windows(4).position(|part| part == b"\r\n\r\n");
        let Some(end) = end else {
            return Reply {
                status: 0,
                headers: HashMap::new(),
                bytes: Vec::new(),
                body: String::new(),
            };
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let bytes = bytes[end + 4..].to_vec();
        Reply {
            status,
            headers,
            body: String::from_utf8_lossy(&bytes).into_owned(),
            bytes,
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.body));
        documents::check(&value);
        value
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !ready() {
        assert!(began.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
