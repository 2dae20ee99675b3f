//! Sockets on which clients connect.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::ServerError;
use crate::nbd::{Exports, Limits, Stream, serve};

/// Delay when the kernel has no more files or memory for another client.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Interval at which clients are polled for the end of their connection.
const POLL: Duration = Duration::from_millis(1);

/// A socket that accepts clients until it is dropped.
pub(super) struct Listener {
    socket: OwnedFd,
    clients: Arc<Clients>,
    thread: Option<JoinHandle<()>>,
}

/// The clients that are currently served.
struct Clients {
    stopped: AtomicBool,
    streams: Mutex<HashMap<u64, Stream>>,
    /// Limits that all clients of the server share.
    limits: Arc<Limits>,
}

impl Listener {
    /// Serves these volumes on a unix socket.
    ///
    /// # Errors
    /// When the socket cannot be made; a path has at most 107 bytes.
    pub(super) fn unix(
        path: &Path,
        exports: Exports,
        limits: Arc<Limits>,
    ) -> Result<Listener, ServerError> {
        let failed = |source| ServerError::Listen {
            address: path.display().to_string(),
            source,
        };
        let listener = UnixListener::bind(path).map_err(failed)?;
        let socket = OwnedFd::from(listener.try_clone().map_err(failed)?);
        let accept = move || listener.accept().map(|(stream, _)| Stream::Unix(stream));
        Listener::start(socket, exports, limits, accept)
    }

    /// Serves these volumes on a TCP port, and returns the port.
    ///
    /// # Errors
    /// When the port cannot be bound.
    pub(super) fn tcp(
        address: SocketAddr,
        exports: Exports,
        limits: Arc<Limits>,
    ) -> Result<(Listener, SocketAddr), ServerError> {
        let failed = |source| ServerError::Listen {
            address: address.to_string(),
            source,
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let socket = OwnedFd::from(listener.try_clone().map_err(failed)?);
        let accept = move || {
            let (stream, _) = listener.accept()?;
            // An answer is sent when it is due, without waiting for more data.
            stream.set_nodelay(true)?;
            Ok(Stream::Tcp(stream))
        };
        Ok((Listener::start(socket, exports, limits, accept)?, bound))
    }

    fn start(
        socket: OwnedFd,
        exports: Exports,
        limits: Arc<Limits>,
        accept: impl Fn() -> io::Result<Stream> + Send + 'static,
    ) -> Result<Listener, ServerError> {
        let clients = Arc::new(Clients {
            stopped: AtomicBool::default(),
            streams: Mutex::default(),
            limits,
        });
        let thread = std::thread::Builder::new()
            .name("lab-accept".into())
            .spawn({
                let clients = Arc::clone(&clients);
                move || take_clients(&clients, &exports, accept)
            })
            .map_err(ServerError::Thread)?;
        Ok(Listener {
            socket,
            clients,
            thread: Some(thread),
        })
    }
}

impl Listener {
    /// Ends every present connection, and waits until its thread has ended. Others may connect meanwhile and are
    /// served.
    pub(super) fn hang_up(&self) {
        let numbers = self.clients.hang_up();
        while self.clients.has_any(&numbers) {
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.clients.stopped.store(true, Ordering::SeqCst);
        // Ends the wait for the next client (listen sockets answer EINVAL then).
        let _ = rustix::net::shutdown(self.socket.as_fd(), rustix::net::Shutdown::Both);
        let _ = self.clients.hang_up();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has reported so.
            let _ = thread.join();
        }
    }
}

impl Clients {
    fn streams(&self) -> MutexGuard<'_, HashMap<u64, Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a client, so that it can be disconnected.
    fn add(&self, number: u64, stream: &Stream) -> io::Result<()> {
        self.streams().insert(number, stream.try_clone()?);
        // A client that connects while the server stops may have been missed.
        if self.stopped.load(Ordering::SeqCst) {
            let _ = self.hang_up();
        }
        Ok(())
    }

    /// Ends every connection, and returns the clients' numbers.
    fn hang_up(&self) -> Vec<u64> {
        let streams = self.streams();
        streams.values().for_each(Stream::shutdown);
        streams.keys().copied().collect()
    }

    /// True if any of these is still served.
    fn has_any(&self, numbers: &[u64]) -> bool {
        let streams = self.streams();
        numbers.iter().any(|number| streams.contains_key(number))
    }
}

/// Removes a client whose thread has ended, for whatever reason.
struct ClientGuard(Arc<Clients>, u64);

impl Drop for ClientGuard {
    fn drop(&mut self) {
        self.0.streams().remove(&self.1);
        self.0.limits.leave();
    }
}

/// Accepts clients until the server stops, and then waits for the last of them to disconnect.
fn take_clients(
    clients: &Arc<Clients>,
    exports: &Exports,
    accept: impl Fn() -> io::Result<Stream>,
) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut number = 0;
    while !clients.stopped.load(Ordering::SeqCst) {
        let Ok(stream) = accept() else {
            // Out of files or memory, most likely: other clients may disconnect.
            if !clients.stopped.load(Ordering::SeqCst) {
                std::thread::sleep(RETRY_DELAY);
            }
            continue;
        };
        threads.retain(|thread| !thread.is_finished());
        number += 1;
        // A client that cannot be served finds its connection closed.
        if let Ok(thread) = serve_client(clients, exports, number, stream) {
            threads.push(thread);
        }
    }
    let _ = clients.hang_up();
    for thread in threads {
        let _ = thread.join();
    }
}

fn serve_client(
    clients: &Arc<Clients>,
    exports: &Exports,
    number: u64,
    stream: Stream,
) -> io::Result<JoinHandle<()>> {
    if !clients.limits.admit() {
        return Err(io::ErrorKind::QuotaExceeded.into());
    }
    // Forgets it in the end, also where it cannot be served at all.
    let leaves = ClientGuard(Arc::clone(clients), number);
    clients.add(number, &stream)?;
    let (limits, exports) = (Arc::clone(&clients.limits), Arc::clone(exports));
    std::thread::Builder::new()
        .name("lab-client".into())
        .spawn(move || {
            let _leaves = leaves;
            // The client reports why it was dropped; the server serves the others.
            let _ = serve(stream, &exports, &limits);
        })
}
