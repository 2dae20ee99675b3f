//! Accepts connections, limits their number, size and time, and shuts down gracefully.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::stream::TimedStream;
use crate::metrics::Metrics;

/// Maximum number of concurrent connections; further ones are closed immediately.
pub(crate) const MAX_CONNECTIONS: usize = 1024;
/// Maximum size of a request's head in bytes.
const HEAD: usize = 16 << 10;
/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 64;
/// Time limit for the TLS handshake, and for each request's head, from the end of the request before.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Time limit for a single write of an answer.
const WRITE_TIME: Duration = Duration::from_secs(20);
/// Wait after a failed `accept`, for instance because all file descriptors are in use.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Time for unfinished answers when the server shuts down.
const END_TIME: Duration = Duration::from_secs(5);

/// Everything that is needed to accept connections.
pub(crate) struct Acceptor {
    /// Listening socket.
    pub(crate) listener: TcpListener,
    /// TLS, if the server terminates it.
    pub(crate) tls: Option<TlsAcceptor>,
    /// If not `None`, connections from other addresses are closed.
    pub(crate) only: Option<IpAddr>,
    /// Counters.
    pub(crate) metrics: Arc<Metrics>,
}

impl Acceptor {
    /// Serves until `stop` is true, then gives open connections [`END_TIME`] to finish.
    pub(crate) async fn run(self, router: Router, mut stop: watch::Receiver<bool>) {
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            let Ok((stream, peer)) = accepted else {
                sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            };
            self.metrics.connections.fetch_add(1, Relaxed);
            let slot = Arc::clone(&slots).try_acquire_owned();
            let is_foreign = self
                .only
                .is_some_and(|only| only != peer.ip().to_canonical());
            let (Ok(slot), false) = (slot, is_foreign) else {
                self.metrics.refused_connections.fetch_add(1, Relaxed);
                continue;
            };
            let (router, tls, stop) = (router.clone(), self.tls.clone(), stop.clone());
            tokio::spawn(async move {
                connect(stream, tls, router, stop).await;
                drop(slot);
            });
        }
        drop(self.listener);
        let all = u32::try_from(MAX_CONNECTIONS).unwrap_or(u32::MAX);
        let _ = timeout(END_TIME, slots.acquire_many(all)).await;
    }
}

async fn connect(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let stream = TimedStream::new(stream, WRITE_TIME);
    match tls {
        None => serve(stream, router, stop).await,
        Some(tls) => {
            // A failed handshake is the client's error, and is not reported.
            if let Ok(Ok(stream)) = timeout(HEAD_TIME, tls.accept(stream)).await {
                serve(stream, router, stop).await;
            }
        }
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        // A connection that the client aborts is not reported.
        _ = connection.as_mut() => return,
        _ = stop.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
