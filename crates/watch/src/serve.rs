//! `watch --prometheus`: metrics over HTTP.
//!
//! The kernel's counters are read for each scrape, so that rates are over the time between scrapes, whatever the
//! interval of the watch; findings come from the watch. The number of connections and their duration are bounded.

mod guard;
mod request;
mod web_config;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use linux::{Root, remedy};
use record::sample::Sample;
use rustls::{ServerConnection, StreamOwned};
use study::watch::WatchEvent;
use study::watch::{ChangeKind, EventChange};

use crate::args::{ListenAddress, WatchArgs};
use crate::capabilities;
use crate::views::prometheus::{self, FindingCounts};
use ui::PROMETHEUS_TEXT;
use ui::context::notice;
use ui::exit::{ExitClass as _, Failure};

pub(crate) use guard::Guard;
use request::Reply;
use web_config::WebConfig;

/// Time limit of a connection, for its request and the response.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of clients that are served at once.
const MAX_CLIENTS: usize = 64;
/// Wait after a connection that could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum size of a request's head, in bytes.
const HEAD: usize = 8192;
/// First byte of a TLS handshake (RFC 8446, 5.1), with which no HTTP request begins.
const TLS_HANDSHAKE_BYTE: u8 = 22;

/// Server of the metrics, on its own thread until the process ends.
pub(super) struct Server {
    found: Arc<Mutex<FindingCounts>>,
}

impl Server {
    /// Begins to serve, if that is requested.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub(super) fn start(
        args: &WatchArgs,
        guard: Guard,
        root: &Root,
    ) -> Result<Option<Server>, Failure> {
        let Some(ListenAddress(address)) = args.prometheus else {
            return Ok(None);
        };
        let cannot = || format!("metrics cannot be served at {address}");
        let listener = TcpListener::bind(address)
            .map_err(|error| remedy::port(error, address.port()))
            .with_context(cannot)
            .refused()?;
        let bound = listener.local_addr().with_context(cannot).refused()?;
        let found = Arc::new(Mutex::new(FindingCounts::default()));
        let scheme = if guard.has_tls() { "https" } else { "http" };
        let site = ResponseSources {
            is_local: bound.ip().is_loopback(),
            root: root.clone(),
            guard,
            found: Arc::clone(&found),
        };
        let needed = capabilities::of_answers(args);
        thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                // A refusal was already reported for the whole process.
                let _ = capabilities::keep_only(needed);
                serve(&listener, &Arc::new(site));
            })
            .with_context(cannot)
            .refused()?;
        notice(&format!(
            "Metrics are served at {scheme}://{bound}/metrics."
        ));
        Ok(Some(Server { found }))
    }

    /// Sets the open findings, and counts those that were opened.
    pub(super) fn publish<'a>(
        &self,
        sample: &Sample,
        open: impl Iterator<Item = &'a WatchEvent>,
        changes: &[EventChange],
    ) {
        // A panic of a holder leaves the data consistent.
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.open = open.cloned().collect();
        for change in changes.iter().filter(|one| one.kind == ChangeKind::Opened) {
            *found.total.entry(change.event.code).or_default() += 1;
        }
        for device in &sample.devices {
            if let Some(page) = &device.vendor {
                let exceeded = &page.exceeded;
                let volume = found
                    .exceeded
                    .entry(device.device.name.clone())
                    .or_default();
                for (sum, more) in volume.iter_mut().zip([
                    Some(exceeded.volume_iops),
                    Some(exceeded.volume_bytes),
                    exceeded.instance_iops,
                    exceeded.instance_bytes,
                ]) {
                    if let Some(more) = more {
                        *sum.get_or_insert(0.0) += more.as_secs_f64();
                    }
                }
            }
        }
        found.times.add(sample);
        let there = |name: &String| sample.named(name).is_some();
        let exceeded: BTreeMap<_, _> = std::mem::take(&mut found.exceeded);
        found.exceeded = exceeded
            .into_iter()
            .filter(|(name, _)| there(name))
            .collect();
    }
}

/// Sources of all responses.
struct ResponseSources {
    /// True if only this host can connect.
    is_local: bool,
    root: Root,
    guard: Guard,
    found: Arc<Mutex<FindingCounts>>,
}

/// Answers each connection on its own thread, so that a slow client does not delay others.
fn serve(listener: &TcpListener, site: &Arc<ResponseSources>) {
    let busy = Arc::new(AtomicUsize::new(0));
    for connection in listener.incoming() {
        let Ok(connection) = connection else {
            // The process may have run out of descriptors: an immediate retry would fail too.
            thread::sleep(ACCEPT_RETRY_DELAY);
            continue;
        };
        let Some(slot) = Slot::take(&busy) else {
            continue;
        };
        let site = Arc::clone(site);
        // A client that disconnects or is too slow gets no response; nor does one for which no thread can be started.
        let _ = thread::Builder::new()
            .name("scrape".to_owned())
            .spawn(move || {
                let _ = site.answer(connection);
                drop(slot);
            });
    }
}

/// Slot of a client that is served.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    /// Takes a slot, if one is free.
    fn take(busy: &Arc<AtomicUsize>) -> Option<Slot> {
        let before = busy.fetch_add(1, Relaxed);
        let slot = Slot(Arc::clone(busy));
        (before < MAX_CLIENTS).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A connection with a deadline: the timeouts of the system restart with each byte.
struct Timed {
    connection: TcpStream,
    deadline: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Some(left))
    }

    /// True if this is the first byte of the connection, which remains to be read.
    fn begins_with(&self, byte: u8) -> io::Result<bool> {
        self.connection.set_read_timeout(self.left()?)?;
        let mut first = [0];
        Ok(self.connection.peek(&mut first)? == 1 && first[0] == byte)
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.connection.set_read_timeout(self.left()?)?;
        self.connection.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.connection.set_write_timeout(self.left()?)?;
        self.connection.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.connection.flush()
    }
}

impl ResponseSources {
    fn answer(&self, connection: TcpStream) -> io::Result<()> {
        let mut connection = Timed {
            connection,
            deadline: Instant::now() + TIMEOUT,
        };
        let config = self.guard.now();
        if !self.guard.has_tls() {
            self.exchange(&mut connection, config.as_ref())?;
        } else if !connection.begins_with(TLS_HANDSHAKE_BYTE)? {
            send(&mut connection, Reply::Plain, &[], Reply::Plain.advice())?;
        } else if let Some((config, tls)) = config.and_then(|config| {
            let tls = config.tls.clone()?;
            Some((config, tls))
        }) {
            let session = ServerConnection::new(tls).map_err(io::Error::other)?;
            let mut stream = StreamOwned::new(session, connection);
            self.exchange(&mut stream, Some(&config))?;
            stream.conn.send_close_notify();
            stream.flush()?;
            connection = stream.sock;
        }
        // If unread data remained, closing the connection would discard the response.
        connection.connection.shutdown(Shutdown::Write)?;
        io::copy(&mut connection.take(HEAD as u64 * 8), &mut io::sink())?;
        Ok(())
    }

    /// Reads a request, and answers it.
    fn exchange(
        &self,
        stream: &mut (impl Read + Write),
        config: Option<&WebConfig>,
    ) -> io::Result<()> {
        let head = head(stream)?;
        let Some(config) = config else {
            return send(stream, Reply::Unguarded, &[], Reply::Unguarded.advice());
        };
        let reply = Reply::to(&head, self.is_local, |authorization| {
            self.guard.refuses(config, authorization, Instant::now())
        });
        let body = match reply {
            Reply::Metrics { .. } => {
                let found = &self.found;
                let found = found.lock().unwrap_or_else(PoisonError::into_inner).clone();
                prometheus::text(&self.root, &found)
            }
            other => other.advice().to_owned(),
        };
        send(stream, reply, &config.headers, &body)
    }
}

/// Sends an answer.
fn send(
    stream: &mut impl Write,
    reply: Reply,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<()> {
    let mut answer = format!(
        "HTTP/1.1 {}\r\nContent-Type: {PROMETHEUS_TEXT}\r\nContent-Length: {}\r\nConnection: close\r\n",
        reply.status(),
        body.len()
    );
    for (name, value) in headers {
        answer.push_str(&format!("{name}: {value}\r\n"));
    }
    answer.push_str("\r\n");
    if reply != (Reply::Metrics { text: false }) {
        answer.push_str(body);
    }
    stream.write_all(answer.as_bytes())
}

/// Reads the head of a request, up to its end or [`HEAD`] bytes.
fn head(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while head.len() < HEAD && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece)? {
            0 => break,
            length => head.extend_from_slice(&piece[..length]),
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::net::SocketAddr;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: WatchArgs,
    }

    /// Address of a new server.
    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let site = ResponseSources {
            is_local: true,
            root: Root::host(),
            guard: Guard::new(None).unwrap(),
            found: Arc::default(),
        };
        thread::spawn(move || serve(&listener, &Arc::new(site)));
        address
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(request).unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_scrape_is_answered() {
        let address = server();
        let text = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
        assert!(text.contains("\nnode_load1 "), "{text}");
        let text = ask(address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(
            text.ends_with("close\r\n\r\n") && !text.contains("Length: 0"),
            "{text}"
        );
        let mut post = b"POST /metrics HTTP/1.1\r\n\r\n".to_vec();
        post.resize(40_000, b'x');
        let text = ask(address, &post);
        assert!(
            text.contains(" 405 ") && text.contains("\r\nAllow: GET"),
            "{text}"
        );
        assert!(text.ends_with("are answered.\n"), "{text}");
    }

    #[test]
    fn a_silent_client_keeps_no_other_waiting() {
        let address = server();
        let silent: Vec<TcpStream> = (0..MAX_CLIENTS / 2)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let began = Instant::now();
        let text = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
        // Served one after the other, the silent clients would take this long.
        let all = TIMEOUT * (MAX_CLIENTS / 2) as u32;
        assert!(began.elapsed() < all, "{:?}", began.elapsed());
        drop(silent);
    }

    #[test]
    fn a_slow_client_is_given_up() {
        let (address, began) = (server(), Instant::now());
        let mut connection = TcpStream::connect(address).unwrap();
        let mut byte = [0];
        connection.set_read_timeout(Some(TIMEOUT / 10)).unwrap();
        loop {
            // The server has closed: a byte is refused, or its end of the line is read.
            if connection.write_all(b"x").is_err() || matches!(connection.read(&mut byte), Ok(0)) {
                break;
            }
            assert!(began.elapsed() < TIMEOUT * 100, "it waits on");
        }
    }

    #[test]
    fn no_more_are_served_at_once_than_there_are_places() {
        let busy = Arc::new(AtomicUsize::new(0));
        let slots: Vec<Slot> = std::iter::from_fn(|| Slot::take(&busy)).collect();
        assert_eq!(slots.len(), MAX_CLIENTS);
        drop(slots);
        assert_eq!(busy.load(Relaxed), 0);
        assert!(Slot::take(&busy).is_some());
    }

    #[test]
    fn an_address_that_is_taken_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = listener.local_addr().unwrap();
        let words = ["watch", "--prometheus", &taken.to_string()];
        let Line { args } = Line::parse_from(words);
        let guard = Guard::new(None).unwrap();
        assert!(Server::start(&args, guard, &Root::host()).is_err());
    }
}
