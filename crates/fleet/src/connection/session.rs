//! A session with the agent on a host.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use crate::connection::transport::{ConnectionError, Transport, Wire};
use crate::hosts::Host;
use crate::protocol::{AgentHello, FromAgent, HEARTBEAT_INTERVAL, PROTOCOL, ToAgent, parse, send};

/// Time limit for the agent's first message.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// Time without a message after which a host is given up. ssh itself gives up after 15 s; this is for a host that
/// keeps the connection while its agent hangs, as with a disk that does not answer.
pub(crate) const SILENCE: Duration = Duration::from_secs(25);
/// Interval at which the signal is polled.
const POLL: Duration = Duration::from_millis(100);

/// A session with an agent.
pub(crate) struct AgentSession<'a> {
    host: &'a Host,
    wire: Wire,
    interrupt: &'a AtomicBool,
    hello: AgentHello,
    last_received: Instant,
    last_sent: Instant,
}

/// Result of waiting for a message.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A message of the agent.
    Message(FromAgent),
    /// The time limit passed.
    Timeout,
    /// The user interrupted; the agent has not been told yet.
    Interrupt,
}

impl<'a> AgentSession<'a> {
    /// Starts an agent on a host, and waits for its first message.
    ///
    /// # Errors
    /// If no agent could be started, or another program answers.
    pub(crate) fn open(
        transport: &dyn Transport,
        host: &'a Host,
        interrupt: &'a AtomicBool,
    ) -> Result<AgentSession<'a>, ConnectionError> {
        let wire = transport.open(host, interrupt)?;
        let now = Instant::now();
        let mut session = AgentSession {
            host,
            wire,
            interrupt,
            hello: AgentHello {
                protocol: PROTOCOL,
                disksmith: String::new(),
                left: Vec::new(),
            },
            last_received: now,
            last_sent: now,
        };
        match session.receive(HELLO_TIMEOUT)? {
            Incoming::Message(FromAgent::Hello(hello)) => session.hello = hello,
            Incoming::Interrupt => return Err(ConnectionError::Interrupted),
            Incoming::Timeout => {
                return Err(ConnectionError::Lost(format!(
                    "the agent on {} sent nothing for {} s.",
                    host.name,
                    HELLO_TIMEOUT.as_secs()
                )));
            }
            Incoming::Message(other) => {
                return Err(ConnectionError::Unfit(format!(
                    "the agent on {} began with {other:?} instead of a hello.",
                    host.name
                )));
            }
        }
        let own = env!("CARGO_PKG_VERSION");
        if session.hello.protocol != PROTOCOL || session.hello.disksmith != own {
            return Err(ConnectionError::Unfit(format!(
                "the agent on {} is disksmith {}, and this is {own}; give the same version to \
                 --binary.",
                host.name, session.hello.disksmith
            )));
        }
        Ok(session)
    }

    /// Names of the answers that are not yet collected.
    pub(crate) fn left(&self) -> &[String] {
        &self.hello.left
    }

    /// Sends a message to the agent.
    ///
    /// # Errors
    /// If the connection is lost.
    pub(crate) fn send(&mut self, message: &ToAgent) -> Result<(), ConnectionError> {
        self.last_sent = Instant::now();
        let last_sent: io::Result<()> = send(&mut *self.wire.input, message);
        last_sent.map_err(|_| self.lost_error())
    }

    /// Sends the agent a keep-alive message, while this thread waits for something else.
    pub(crate) fn send_alive(&mut self) {
        // If the connection is lost, the next message fails.
        let _ = self.send(&ToAgent::Alive);
    }

    /// Time since the agent's last message. It sends one every second while the connection exists.
    pub(crate) fn since_last_message(&self) -> Duration {
        self.last_received.elapsed()
    }

    /// Waits for a message for at most `limit`, and sends keep-alive messages meanwhile. After an interrupt it returns
    /// once, and waits if it is called again.
    ///
    /// # Errors
    /// If the connection is lost, or a line is not a message.
    pub(crate) fn receive(&mut self, limit: Duration) -> Result<Incoming, ConnectionError> {
        self.wait_for(limit, true)
    }

    /// Waits like [`AgentSession::receive`], for messages that are needed even after an interrupt.
    ///
    /// # Errors
    /// As [`AgentSession::receive`].
    pub(crate) fn receive_uninterrupted(
        &mut self,
        limit: Duration,
    ) -> Result<Incoming, ConnectionError> {
        self.wait_for(limit, false)
    }

    fn wait_for(
        &mut self,
        limit: Duration,
        until_interrupt: bool,
    ) -> Result<Incoming, ConnectionError> {
        let until = Instant::now() + limit;
        loop {
            if until_interrupt && self.interrupt.load(Relaxed) {
                return Ok(Incoming::Interrupt);
            }
            if self.last_sent.elapsed() >= HEARTBEAT_INTERVAL {
                self.send(&ToAgent::Alive)?;
            }
            match self.wire.lines.recv_timeout(POLL.min(limit)) {
                Ok(line) => {
                    self.last_received = Instant::now();
                    match self.parse(&line)? {
                        Some(FromAgent::Alive) | None => {}
                        Some(message) => return Ok(Incoming::Message(message)),
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.lost_error()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.last_received.elapsed() > SILENCE {
                return Err(silent_error(self.host));
            }
            if Instant::now() >= until {
                return Ok(Incoming::Timeout);
            }
        }
    }

    /// Parses a line as a message; `None` for the last line of the script that started the agent.
    fn parse(&mut self, line: &str) -> Result<Option<FromAgent>, ConnectionError> {
        if line.starts_with("disksmith-fleet ended") {
            let lost = self.lost_error();
            // Before its first message it has done nothing, and is not waited for.
            return Err(if self.hello.disksmith.is_empty() {
                ConnectionError::Unfit(format!("no agent came to run: {lost}"))
            } else {
                lost
            });
        }
        let message = parse(line);
        message
            .map(Some)
            .map_err(|why| ConnectionError::Lost(format!("{}: {why}.", self.host.name)))
    }

    /// Tells the agent to end, and waits for a short time until it has ended.
    pub(crate) fn end(mut self) {
        if self.send(&ToAgent::End).is_ok() {
            self.wire.close();
        }
    }

    /// The error for a lost connection.
    fn lost_error(&mut self) -> ConnectionError {
        self.wire.lost_error(self.host)
    }
}

/// The error for a host that has been silent for too long.
pub(crate) fn silent_error(host: &Host) -> ConnectionError {
    ConnectionError::Lost(format!(
        "{} has sent nothing for {} s.",
        host.name,
        SILENCE.as_secs()
    ))
}
