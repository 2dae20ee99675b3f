//! A real Prometheus on this host.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::support::ports::free_port;
use super::support::{Place, TIMEOUT};

/// A process that is killed when the test ends.
pub(crate) struct Killed(Child);

impl Killed {
    /// Starts a command that prints nothing.
    pub(crate) fn start(command: &mut Command) -> Killed {
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Killed(command.spawn().unwrap())
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The body of an answer; `None` where nobody answers.
pub(crate) fn get(port: u16, path: &str) -> Option<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
    connection.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some(body.to_owned())
}

/// A text as a part of an address.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Prometheus by `scrape.yml` of the place, with its data in [`data`], on a port.
pub(crate) fn command(place: &Place, port: u16) -> Command {
    let mut command = Command::new("prometheus");
    let option = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
    command
        .arg(option("config.file", place.path("scrape.yml")))
        .arg(option("storage.tsdb.path", data(place)))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"));
    command
}

/// The folder of its data.
pub(crate) fn data(place: &Place) -> PathBuf {
    place.path("prometheus")
}

/// Serves metrics to whoever asks, until the test program ends; the address.
pub(crate) fn exporter(metrics: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let length = metrics.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
            );
            let _ = stream.write_all((head + &metrics).as_bytes());
        }
    });
    address
}

/// Writes `scrape.yml`, by which these addresses are scraped each second.
pub(crate) fn scrape(place: &Place, addresses: &[&str]) {
    let config = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: disks\n    static_configs:\n      - targets: {addresses:?}\n"
    );
    std::fs::write(place.path("scrape.yml"), config).unwrap();
}

/// A Prometheus by `scrape.yml` of the place that answers, and its port.
pub(crate) fn start(place: &Place) -> (u16, Killed) {
    let port = free_port();
    let mut started = Killed::start(&mut command(place, port));
    let began = Instant::now();
    while !get(port, "/-/ready").is_some_and(|body| body.contains("Ready")) {
        let ended = started.0.try_wait().unwrap();
        assert!(ended.is_none(), "prometheus ended: {ended:?}");
        assert!(began.elapsed() < TIMEOUT, "prometheus does not answer");
        std::thread::sleep(Duration::from_millis(200));
    }
    (port, started)
}
