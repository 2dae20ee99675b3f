//! StatsD over UDP and TCP on one port: counted at most once, since the protocol has no acknowledgement.

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use linux::datagrams::{self, Datagrams};
use linux::remedy;
use rustix::event::{PollFd, PollFlags, poll};

use super::{Delivery, Identity, Intake, PollResult, Source};
use crate::lines::Lines;

/// Maximum number of connections.
const MAX_CONNECTIONS: usize = 256;
/// Time after which a connection that sends nothing is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// Bytes of datagrams that the kernel keeps while sums are written.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Maximum bytes of a datagram.
const MAX_DATAGRAM_BYTES: usize = 65_536;
/// Datagrams received by one system call.
const DATAGRAMS_PER_CALL: usize = 64;
/// Bytes of one read of a connection. A line is no longer than a datagram, so that all connections hold 20 MiB.
const READ: usize = 16 << 10;
/// Maximum bytes of datagrams that are delivered at once.
const MAX_BATCH_BYTES: usize = 512 << 10;

/// Interval at which the number of dropped datagrams is polled.
const POLL: Duration = Duration::from_secs(1);

/// Source that listens on a StatsD port, UDP and TCP.
#[derive(Debug)]
pub struct Statsd {
    address: String,
    datagrams: UdpSocket,
    listener: TcpListener,
    connections: Vec<Connection>,
    /// Datagrams received by one system call.
    received: Datagrams,
    /// Lines of those datagrams.
    buffer: Vec<u8>,
    lost: DroppedDatagrams,
}

/// Datagrams that the kernel dropped.
#[derive(Debug)]
struct DroppedDatagrams {
    /// The kernel's number at the last poll.
    counted: u32,
    all: u64,
    polled: Instant,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    lines: Lines,
    heard: Instant,
    ended: bool,
}

impl Statsd {
    /// Listens at `host:port`; without a host, on the loopback address.
    ///
    /// # Errors
    /// Where the address cannot be listened on.
    pub fn open(place: &str) -> anyhow::Result<Statsd> {
        let host = if place.starts_with(':') {
            format!("127.0.0.1{place}")
        } else {
            place.to_owned()
        };
        let cannot = || format!("statsd://{place} cannot be listened on");
        let mut found = host.to_socket_addrs().with_context(cannot)?;
        let address: SocketAddr = found.next().with_context(cannot)?;
        let cannot_bind = |error| remedy::port(error, address.port());
        let datagrams = UdpSocket::bind(address).map_err(cannot_bind);
        let datagrams = datagrams.with_context(cannot)?;
        let bound = datagrams.local_addr().with_context(cannot)?;
        let listener = TcpListener::bind(bound).map_err(cannot_bind);
        let listener = listener.with_context(cannot)?;
        datagrams.set_nonblocking(true).with_context(cannot)?;
        listener.set_nonblocking(true).with_context(cannot)?;
        // The kernel grants as much as the host allows; a smaller buffer loses datagrams sooner.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&datagrams, RECEIVE_BUFFER);
        Ok(Statsd {
            address: format!("statsd://{bound}"),
            datagrams,
            listener,
            connections: Vec::new(),
            received: Datagrams::new(DATAGRAMS_PER_CALL, MAX_DATAGRAM_BYTES),
            buffer: Vec::new(),
            lost: DroppedDatagrams {
                counted: 0,
                all: 0,
                polled: Instant::now(),
            },
        })
    }

    /// Polls the number of datagrams that the kernel dropped, and reports the first.
    fn count_dropped(&mut self) {
        if self.lost.polled.elapsed() < POLL {
            return;
        }
        self.lost.polled = Instant::now();
        // Old kernels do not count them.
        let Ok(counted) = datagrams::dropped(self.datagrams.as_fd()) else {
            return;
        };
        let more = counted.wrapping_sub(self.lost.counted);
        if more > 0 && self.lost.all == 0 {
            crate::notices::report(&format!(
                "{}: the kernel drops datagrams, as they come faster than they are taken; a larger net.core.rmem_max bridges longer flushes",
                self.address
            ));
        }
        self.lost.counted = counted;
        self.lost.all += u64::from(more);
    }

    /// Receives the waiting datagrams.
    fn receive(&mut self) -> io::Result<()> {
        self.buffer.clear();
        while self.buffer.len() < MAX_BATCH_BYTES {
            match self.received.receive(self.datagrams.as_fd()) {
                Ok(()) => {
                    for datagram in self.received.iter() {
                        self.buffer.extend_from_slice(datagram);
                        self.buffer.push(b'\n');
                    }
                    if !self.received.is_full() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Such as an earlier answer that was refused.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        while self.connections.len() < MAX_CONNECTIONS {
            let Ok((stream, _)) = self.listener.accept() else {
                break;
            };
            if stream.set_nonblocking(true).is_ok() {
                self.connections.push(Connection {
                    stream,
                    lines: Lines::of(READ, MAX_DATAGRAM_BYTES),
                    heard: Instant::now(),
                    ended: false,
                });
            }
        }
    }

    fn wait(&self, wait: Duration) {
        let mut all = vec![PollFd::new(&self.datagrams, PollFlags::IN)];
        if self.connections.len() < MAX_CONNECTIONS {
            all.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        all.extend(
            self.connections
                .iter()
                .map(|one| PollFd::new(&one.stream, PollFlags::IN)),
        );
        let limit = wait.try_into().unwrap_or_default();
        // An interruption only makes the wait shorter.
        let _ = poll(&mut all, Some(&limit));
    }
}

impl Connection {
    /// Reads once, and delivers the lines received; false if nothing could be read.
    fn read(&mut self, intake: &mut dyn Intake) -> bool {
        let read = self.lines.fill(|room| self.stream.read(room));
        let lines = match read {
            Ok(0) => {
                self.ended = true;
                self.lines.rest()
            }
            Ok(_) => {
                self.heard = Instant::now();
                self.lines.whole_lines()
            }
            Err(error) => {
                self.ended = error.kind() != io::ErrorKind::WouldBlock
                    || self.heard.elapsed() > IDLE_TIMEOUT;
                return false;
            }
        };
        let delivery = Delivery {
            identity: Identity::None,
            lines,
        };
        if intake.take(&[delivery]).is_ok() {
            self.lines.consume();
        }
        true
    }
}

impl Source for Statsd {
    fn address(&self) -> &str {
        &self.address
    }

    fn poll(&mut self, wait: Duration, intake: &mut dyn Intake) -> PollResult {
        self.wait(wait);
        if let Err(error) = self.receive() {
            return PollResult::Down(error.to_string());
        }
        let mut came = !self.buffer.is_empty();
        if came {
            let delivery = Delivery {
                identity: Identity::None,
                lines: &self.buffer,
            };
            // After a stop it is lost: StatsD clients do not send again.
            let _ = intake.take(&[delivery]);
        }
        self.count_dropped();
        self.accept();
        for connection in &mut self.connections {
            came |= connection.read(intake);
        }
        self.connections.retain(|connection| !connection.ended);
        if came {
            PollResult::More
        } else {
            PollResult::Idle
        }
    }

    fn rewind(&mut self) {}

    fn lost(&self) -> u64 {
        self.lost.all
    }
}
