//! Transport to a host: a connection that carries lines to an agent and back.

use std::fmt;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::hosts::Host;

/// The line after the counters of a host.
pub(crate) const COUNTERS_END_LINE: &str = "disksmith-fleet counted";
/// Time limit for closing a connection normally.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Transport to hosts. Each method is called on a thread that lives as long as the connection is needed.
pub(crate) trait Transport: Sync {
    /// Starts an agent on the host, and returns the connection to it.
    ///
    /// # Errors
    /// [`ConnectionError`], if no agent could be started.
    fn open(&self, host: &Host, interrupt: &AtomicBool) -> Result<Wire, ConnectionError>;

    /// Returns a connection on which the host answers each line with its kernel's counters and [`COUNTERS_END_LINE`].
    ///
    /// # Errors
    /// [`ConnectionError`], if the host was not reached, or does not run Linux.
    fn counters(&self, host: &Host, interrupt: &AtomicBool) -> Result<Wire, ConnectionError>;
}

/// The connection to a host. Dropping it closes the connection.
pub(crate) struct Wire {
    /// Lines to the host.
    pub input: Box<dyn Write + Send>,
    /// The received lines.
    pub lines: Receiver<String>,
    /// Closes the connection when it is dropped, and has the reason if it ended by itself.
    pub end: Box<dyn WireEnd>,
}

impl Wire {
    /// Closes the input, and waits for a short time until the other side has ended.
    pub(crate) fn close(self) {
        drop(self.input);
        let until = Instant::now() + CLOSE_TIMEOUT;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if let Err(RecvTimeoutError::Disconnected) = self.lines.recv_timeout(left) {
                return;
            }
        }
    }

    /// The error for a lost connection to a host, with the reason if it is known.
    pub(crate) fn lost_error(&mut self, host: &Host) -> ConnectionError {
        let why = self.end.end_reason();
        let why = why.lines().next_back().unwrap_or_default();
        let why = why.trim().trim_end_matches('.');
        ConnectionError::Lost(match why {
            "" => format!("the connection to {} was lost.", host.name),
            why => format!("the connection to {} was lost: {why}.", host.name),
        })
    }
}

/// Source of the reason why a [`Wire`] ended.
pub(crate) trait WireEnd: Send {
    /// Reason why the connection ended; empty if unknown.
    fn end_reason(&mut self) -> String;
}

/// Reason why `fleet` cannot work on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionError {
    /// The host was not reached: nothing ran on it.
    Unreached(String),
    /// The host was reached, but no agent can run on it.
    Unfit(String),
    /// Another run or race of a fleet measures on the host.
    Busy(String),
    /// The connection was lost.
    Lost(String),
    /// The user interrupted the command.
    Interrupted,
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionError::Unreached(why)
            | ConnectionError::Unfit(why)
            | ConnectionError::Busy(why)
            | ConnectionError::Lost(why) => f.write_str(why),
            ConnectionError::Interrupted => f.write_str("interrupted"),
        }
    }
}
