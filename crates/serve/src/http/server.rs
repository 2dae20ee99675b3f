//! Accepting connections, with bounds on their number, bytes and time, and an orderly end.

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

/// Connections at once. One that comes when all are taken is closed at once.
pub(crate) const MAX_CONNECTIONS: usize = 1024;
/// Bytes of a request's head.
const HEAD: usize = 16 << 10;
/// Headers of a request.
const MAX_HEADERS: usize = 64;
/// Time for a head, also of the next request of a connection, and for the handshake of TLS.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Time for a client to take a part of an answer.
const WRITE_TIME: Duration = Duration::from_secs(20);
/// Wait after a connection that could not be taken: there may be no descriptor left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Time for answers that are under way when the server ends.
const END_TIME: Duration = Duration::from_secs(5);

/// Everything that is needed to accept connections.
pub(crate) struct Acceptor {
    /// Socket that connections come from.
    pub(crate) listener: TcpListener,
    /// TLS, if this ends it.
    pub(crate) tls: Option<TlsAcceptor>,
    /// The only peer that is served.
    pub(crate) only: Option<IpAddr>,
    /// Counters.
    pub(crate) metrics: Arc<Metrics>,
}

impl Acceptor {
    /// Serves until `stop` says so, and then ends what is under way.
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
            // Of a client that fails at this there is nothing to tell.
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
        // Of a client that breaks off there is nothing to tell.
        _ = connection.as_mut() => return,
        _ = stop.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
