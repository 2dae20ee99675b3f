//! `POST /events` over HTTP, answered when the events are committed.
//!
//! A client gives each request an `Idempotency-Key`, and sends the same request again under the same key until it has
//! an answer of 200.

mod request;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::oneshot;

use super::{Delivery, Identity, Intake, PollResult, Source};
use crate::server::Server;
use crate::store::Key;

use request::{PostedRequest, RequestQueue};

/// Time from a request to its commit: long enough that a commit serves many requests.
const COMMIT_DELAY: Duration = Duration::from_millis(100);
/// Maximum number of requests that are delivered at once.
const MAX_BATCH_REQUESTS: usize = 256;

/// Address of a server: `host:port/events`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAddress {
    host: String,
}

impl HttpAddress {
    /// Parses `host:port/events`, the part of an address after `http://`.
    ///
    /// # Errors
    /// If the text is not an address.
    pub fn parse(text: &str) -> Result<HttpAddress, String> {
        let host = text
            .strip_suffix("/events")
            .unwrap_or(text)
            .trim_end_matches('/');
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        match has_port && !host.contains('/') {
            true => Ok(HttpAddress {
                host: host.to_owned(),
            }),
            false => Err(format!(
                "'http://{text}' is no address; write it as http://127.0.0.1:8125/events"
            )),
        }
    }

    /// Host and port; the loopback address if no host is named.
    fn full(&self) -> String {
        match self.host.starts_with(':') {
            true => format!("127.0.0.1{}", self.host),
            false => self.host.clone(),
        }
    }

    /// Checks that a token is set if other hosts can reach the address. A host name is looked up, and checked, when the
    /// source is opened.
    ///
    /// # Errors
    /// Where there is no token.
    pub(super) fn check(&self, token: Option<&str>) -> anyhow::Result<()> {
        match self.full().parse() {
            Ok(address) => self.check_reach(address, token),
            Err(_) => Ok(()),
        }
    }

    fn check_reach(&self, address: SocketAddr, token: Option<&str>) -> anyhow::Result<()> {
        anyhow::ensure!(
            address.ip().is_loopback() || token.is_some(),
            "{self} is reached from other hosts; name a file with a token that they must send: --token-file FILE"
        );
        Ok(())
    }

    /// The address to listen at.
    pub(crate) fn address(&self) -> anyhow::Result<SocketAddr> {
        let host = self.full();
        let mut found = host
            .to_socket_addrs()
            .with_context(|| format!("http://{host} has no address"))?;
        found
            .next()
            .with_context(|| format!("http://{host} has no address"))
    }
}

impl std::fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}/events", self.host)
    }
}

/// A server that takes events.
#[derive(Debug)]
pub struct Http {
    address: String,
    requests: Receiver<PostedRequest>,
    /// Answers to requests since the last batch.
    taken: Vec<oneshot::Sender<()>>,
    /// Answers to the requests of batches that are not committed.
    sealed: Vec<(u64, Vec<oneshot::Sender<()>>)>,
    _server: Server,
}

impl Http {
    /// Begins to listen.
    ///
    /// # Errors
    /// Where the address cannot be listened on, or other hosts can reach it and there is no token.
    pub fn open(place: &HttpAddress, token: Option<&str>) -> anyhow::Result<Http> {
        let address = place.address()?;
        place.check_reach(address, token)?;
        let (sender, requests) = sync_channel(MAX_BATCH_REQUESTS * 4);
        let desk = Arc::new(RequestQueue::new(sender, token));
        let server = Server::start(address, move |request| Arc::clone(&desk).answer(request))
            .with_context(|| format!("{place} cannot be listened on"))?;
        Ok(Http {
            address: format!("http://{}/events", server.address),
            requests,
            taken: Vec::new(),
            sealed: Vec::new(),
            _server: server,
        })
    }
}

impl Source for Http {
    fn address(&self) -> &str {
        &self.address
    }

    fn delay(&self) -> Option<Duration> {
        Some(COMMIT_DELAY)
    }

    fn poll(&mut self, wait: Duration, intake: &mut dyn Intake) -> PollResult {
        let first = match self.requests.recv_timeout(wait) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => return PollResult::Idle,
            Err(RecvTimeoutError::Disconnected) => return PollResult::End,
        };
        let rest = std::iter::from_fn(|| self.requests.try_recv().ok()).take(MAX_BATCH_REQUESTS);
        let requests: Vec<PostedRequest> = std::iter::once(first).chain(rest).collect();
        let deliveries: Vec<Delivery<'_>> = requests
            .iter()
            .map(|request| Delivery {
                identity: Identity::Key(Key::new("http", &[request.key.as_bytes()])),
                lines: &request.lines,
            })
            .collect();
        if intake.take(&deliveries).is_ok() {
            self.taken
                .extend(requests.into_iter().map(|request| request.committed));
        }
        PollResult::More
    }

    fn sealed(&mut self, batch: u64) {
        self.sealed.push((batch, std::mem::take(&mut self.taken)));
    }

    fn committed(&mut self, batch: u64) {
        let (done, open) = self
            .sealed
            .drain(..)
            .partition(|(number, _)| *number <= batch);
        self.sealed = open;
        let done: Vec<(u64, Vec<oneshot::Sender<()>>)> = done;
        for answer in done.into_iter().flat_map(|(_, answers)| answers) {
            // A client that has stopped waiting sends the request again.
            let _ = answer.send(());
        }
    }

    fn rewind(&mut self) {
        // Their clients are told to send them again.
        self.taken.clear();
        self.sealed.clear();
    }
}
