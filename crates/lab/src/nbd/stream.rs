//! A socket of either kind.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A socket of either kind.
pub(crate) enum Stream {
    /// A unix socket.
    Unix(UnixStream),
    /// A TCP connection.
    Tcp(TcpStream),
}

impl Stream {
    /// Opens another handle to the same socket.
    pub(crate) fn try_clone(&self) -> io::Result<Stream> {
        match self {
            Stream::Unix(stream) => stream.try_clone().map(Stream::Unix),
            Stream::Tcp(stream) => stream.try_clone().map(Stream::Tcp),
        }
    }

    /// Limits how long one read of the socket may wait.
    pub(super) fn limit_reads(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(time),
            Stream::Tcp(stream) => stream.set_read_timeout(time),
        }
    }

    /// Limits how long one write to the socket may wait, by any handle to it.
    pub(super) fn limit_writes(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_write_timeout(time),
            Stream::Tcp(stream) => stream.set_write_timeout(time),
        }
    }

    /// Shuts the connection down for all handles.
    pub(crate) fn shutdown(&self) {
        // A socket that is already closed needs no shutdown.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(data),
            Stream::Tcp(stream) => stream.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
