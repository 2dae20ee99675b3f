//! The way to a host: something that carries lines to an agent on it, and back.

use std::fmt;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;

use crate::hosts::Host;

/// A way to hosts. Each call is made on a thread that lives as long as the wire is wanted.
pub(crate) trait Transport: Sync {
    /// Starts an agent on the host, and gives the wire to it.
    ///
    /// # Errors
    /// [`ConnectionError`], where no agent came to run.
    fn open(&self, host: &Host, interrupt: &AtomicBool) -> Result<Wire, ConnectionError>;
}

/// The wire to an agent. Dropping it ends the connection.
pub(crate) struct Wire {
    /// Messages to the agent.
    pub input: Box<dyn Write + Send>,
    /// The lines that come.
    pub lines: Receiver<String>,
    /// Ends the connection when it is dropped, and knows why it ended by itself.
    pub end: Box<dyn WireEnd>,
}

/// The end of a wire.
pub(crate) trait WireEnd: Send {
    /// Reason why the connection ended; empty where none is known.
    fn why(&mut self) -> String;
}

/// Reason why `fleet` cannot work on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionError {
    /// It was not reached: nothing ran on it.
    Unreached(String),
    /// It was reached, and no agent can run on it.
    Unfit(String),
    /// Another run or race of a fleet measures on it.
    Busy(String),
    /// The connection was lost.
    Lost(String),
    /// The user wanted the end.
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
