//! A server of HTTP/1 with limits on connections, heads, bodies and time, for the source `http://` and for `/metrics`.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use linux::remedy;
use tokio::sync::{Semaphore, oneshot};

/// Maximum number of connections; others wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 256;
/// Maximum bytes of a request's head.
const HEAD: usize = 16 << 10;
/// Time within which a head must arrive, also that of the next request on a connection.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Wait after a connection that could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// An answer.
pub(crate) type HttpResponse = Response<Full<Bytes>>;

/// An answer in plain text.
pub(crate) fn answer(status: StatusCode, text: impl Into<String>) -> HttpResponse {
    let mut answer = Response::new(Full::new(Bytes::from(text.into())));
    *answer.status_mut() = status;
    answer
}

/// A server, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// Address that the server listens on.
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Begins to serve, in a thread of its own.
    pub(crate) fn start<H, F>(address: SocketAddr, handler: H) -> io::Result<Server>
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = HttpResponse> + Send + 'static,
    {
        let listener =
            TcpListener::bind(address).map_err(|error| remedy::port(error, address.port()))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    () = serve(listener, handler) => {}
                    _ = stopped => {}
                }
                // Time for answers that are still being sent.
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            });
        });
        Ok(Server {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve<H, F>(listener: TcpListener, handler: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = HttpResponse> + Send + 'static,
{
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // File descriptors may be exhausted: the next attempt would fail as fast.
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let handler = handler.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = handler(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(HEAD)
                .serve_connection(TokioIo::new(stream), service);
            // A client that disconnects is not an error.
            let _ = connection.await;
            drop(slot);
        });
    }
}
