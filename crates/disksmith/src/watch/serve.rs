//! `watch --prometheus`: metrics for whoever asks over HTTP.
//!
//! The kernel's counters are read anew for each scrape, so that rates are over the time between
//! scrapes whatever the interval of the watch; what was found comes from the watch. One connection is
//! served at a time, for a short time: a scraper needs no more.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use linux::Root;
use record::Event;
use record::sample::Sample;
use study::watch::{Change, ChangeKind};

use crate::context::tell;
use crate::failure::{Failure, Standing as _};
use crate::render::watch::prometheus::{self, Found};

/// A request must come and an answer be taken within this time.
const PATIENCE: Duration = Duration::from_secs(2);
/// A request's head is not longer.
const HEAD: usize = 8192;

/// Serves metrics from a thread of its own until the process ends.
pub(super) struct Server {
    found: Arc<Mutex<Found>>,
}

impl Server {
    /// Begins to serve.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub(super) fn start(address: SocketAddr, root: &Root) -> Result<Server, Failure> {
        let cannot = || format!("metrics cannot be served at {address}");
        let listener = TcpListener::bind(address).with_context(cannot).refused()?;
        let bound = listener.local_addr().with_context(cannot).refused()?;
        let found = Arc::new(Mutex::new(Found::default()));
        let (shared, root) = (Arc::clone(&found), root.clone());
        thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || serve(&listener, &root, &shared))
            .with_context(cannot)
            .refused()?;
        tell(&format!("Metrics are served at http://{bound}/metrics."));
        Ok(Server { found })
    }

    /// Takes what was found: the events that last, and what began.
    pub(super) fn tell<'a>(
        &self,
        sample: &Sample,
        open: impl Iterator<Item = &'a Event>,
        changes: &[Change],
    ) {
        // A panic while it was held left nothing half done.
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
                    exceeded.volume_iops.unwrap_or_default(),
                    exceeded.volume_bytes.unwrap_or_default(),
                    exceeded.instance_iops,
                    exceeded.instance_bytes,
                ]) {
                    *sum += more.as_secs_f64();
                }
            }
        }
        let there = |name: &String| sample.named(name).is_some();
        let exceeded: BTreeMap<String, [f64; 4]> = std::mem::take(&mut found.exceeded);
        found.exceeded = exceeded
            .into_iter()
            .filter(|(name, _)| there(name))
            .collect();
    }
}

fn serve(listener: &TcpListener, root: &Root, found: &Mutex<Found>) {
    for connection in listener.incoming() {
        // Whoever breaks off, or is too slow, gets no answer.
        let _ = connection.and_then(|connection| answer(connection, root, found));
    }
}

fn answer(mut connection: TcpStream, root: &Root, found: &Mutex<Found>) -> io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let head = head(&mut connection)?;
    let (status, body) = match wanted(&head) {
        Some("/metrics") => {
            let found = found.lock().unwrap_or_else(PoisonError::into_inner).clone();
            ("200 OK", prometheus::text(root, &found))
        }
        Some(_) => ("404 Not Found", "The metrics are at /metrics.\n".to_owned()),
        None => (
            "405 Method Not Allowed",
            "Only GET is answered.\n".to_owned(),
        ),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(answer.as_bytes())
}

/// The request's head, as far as it comes in time and is of use.
fn head(connection: &mut TcpStream) -> io::Result<Vec<u8>> {
    let began = Instant::now();
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while began.elapsed() < PATIENCE
        && head.len() < HEAD
        && !head.windows(4).any(|end| end == b"\r\n\r\n")
    {
        match connection.read(&mut piece)? {
            0 => break,
            length => head.extend_from_slice(&piece[..length]),
        }
    }
    Ok(head)
}

/// The path that a GET asks for, without what is behind a question mark.
fn wanted(head: &[u8]) -> Option<&str> {
    let line = head.split(|&byte| byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let path = words
        .next()
        .filter(|method| *method == "GET")
        .and(words.next())?;
    path.split('?').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_has_a_path() {
        assert_eq!(
            wanted(b"GET /metrics?x=1 HTTP/1.1\r\n\r\n"),
            Some("/metrics")
        );
        assert_eq!(wanted(b"POST /metrics HTTP/1.1\r\n\r\n"), None);
        assert_eq!(wanted(b""), None);
        assert_eq!(wanted(b"\xff\xfe"), None);
    }

    #[test]
    fn a_scrape_is_answered() {
        let server = Server::start("127.0.0.1:0".parse().unwrap(), &Root::host());
        assert!(server.is_ok());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let found = Mutex::new(Found::default());
        thread::scope(|scope| {
            scope.spawn(|| {
                let (connection, _) = listener.accept().unwrap();
                answer(connection, &Root::host(), &found).unwrap();
            });
            let mut connection = TcpStream::connect(address).unwrap();
            connection
                .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
                .unwrap();
            let mut text = String::new();
            connection.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
            assert!(text.contains("\nnode_load1 "), "{text}");
        });
    }
}
